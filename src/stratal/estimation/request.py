"""`Request`: what `stratal.estimate` was asked for besides the estimand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from stratal.arrays import Record
from stratal.intervals.evidence import require_target

if TYPE_CHECKING:
    from stratal.population.population import Population


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request(Record):
    """The keywords of `stratal.estimate`, where they are described. An estimand takes those that it names."""

    target: str = "population"
    estimator: str = "auto"
    outcome: Any = None
    bounds: tuple[float, float] | None = None
    limits: tuple[float, float] | None = None
    lam: Any = None
    proxy: str | None = None
    predicted: bool | str = False
    clip: bool = False
    combine: str = "mean"
    cross_fit: int | None = None
    calibration: Any = None
    features: Sequence[str] | None = None
    population: Population | None = None
    stratum_weights_known: bool = False

    def __post_init__(self) -> None:
        require_target(self.target)

    @property
    def given(self) -> dict[str, Any]:
        """What differs from its default, by keyword."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        defaults = {entry.name: entry.default for entry in fields(self)}
        return {
            name: value
            for name, value in found.items()
            if not (value is defaults[name] or (isinstance(value, str) and value == defaults[name]))
        }


PLAIN = Request()
"""Nothing but the defaults."""
MEAN_OPTIONS = tuple(entry.name for entry in fields(Request))
"""What a mean of one outcome takes: all of them."""
RIGHT_OPTIONS = tuple(name for name in MEAN_OPTIONS if name != "predicted")
"""What a mean of right answers takes: it says itself which answers."""
