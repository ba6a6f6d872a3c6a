"""`require`: whether an interval lies where it must, for pipelines and tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stratal.errors import InputError, RequirementError, kind_of
from stratal.estimation.estimate import Estimate
from stratal.report import value_with_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Where both ends of an interval must lie.

    Parameters
    ----------
    lower : float, optional
        The lower end must be at least this.
    upper : float, optional
        The upper end must be at most this.

    Examples
    --------
    >>> Requirement(lower=0.9).met([0.91, 0.97]), Requirement(lower=0.9, upper=0.95).met([0.91, 0.97])
    (True, False)
    """

    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise InputError(
                    f"{name} must be a number",
                    given=repr(value),
                    action="Give it in the outcome's units, such as 0.9.",
                )
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise InputError(
                "the lower requirement must be below the upper one",
                given=f"at least {self.lower}, at most {self.upper}",
                action="Swap them, or give one of them.",
            )

    def met(self, interval: Any) -> bool:
        """Return whether an interval lies where it must; an open or unknown end does not."""
        if interval is None:
            return self.lower is None and self.upper is None
        low, high = interval
        above = self.lower is None or (low is not None and low >= self.lower)
        return above and (self.upper is None or (high is not None and high <= self.upper))

    def to_dict(self, interval: Any) -> dict[str, Any]:
        """Return what was required, and whether it is met."""
        return {"lower": self.lower, "upper": self.upper, "met": self.met(interval)}


def require(
    estimate: Estimate,
    *,
    lower: float | None = None,
    upper: float | None = None,
    confidence_level: float = 0.95,
    method: str = "auto",
) -> Estimate:
    """Return the estimate if its interval lies where it must, and raise otherwise.

    For a test (pytest shows the figures where it fails) and for any pipeline. What is held against the limit
    is the end of the two-sided interval, not the estimate: a model passes because its labels show it, not
    because they are few.

    Parameters
    ----------
    estimate : Estimate
    lower, upper : float, optional
        The lower end must be at least `lower`, the upper end at most `upper`; at least one of them.
    confidence_level : float
    method : str
        Of the interval.

    Raises
    ------
    RequirementError
        An AssertionError that says the estimate, its interval and what was required.
    InputError
        If nothing is required.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 400)
    >>> sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    >>> found = stratal.estimate(sample, [1.0] * 95 + [0.0] * 5)
    >>> stratal.require(found, lower=0.85).value
    0.95
    >>> stratal.require(found, lower=0.9)
    Traceback (most recent call last):
    stratal.errors.RequirementError: the interval does not lie where it must (given: 0.95, 95% interval 0.8975
    to 0.98, from 100 labels; allowed: a lower end of at least 0.9)...
    """
    if not isinstance(estimate, Estimate):
        raise InputError(
            "require takes an Estimate",
            given=kind_of(estimate),
            action="Make one first: stratal.estimate(sample, labels).",
        )
    if lower is None and upper is None:
        raise InputError("nothing is required", allowed="lower=, upper=, or both")
    wanted = Requirement(lower=lower, upper=upper)
    found = estimate.to_dict(confidence_level, method)
    if not wanted.met(found["confidence_interval"]):
        limits = [
            *([f"a lower end of at least {lower:g}"] if lower is not None else []),
            *([f"an upper end of at most {upper:g}"] if upper is not None else []),
        ]
        raise RequirementError(
            "the interval does not lie where it must",
            given=f"{value_with_interval(found)}, from {found['n']:,} labels",
            allowed=", ".join(limits),
            action="More labels narrow it; a better model moves it.",
        )
    return estimate
