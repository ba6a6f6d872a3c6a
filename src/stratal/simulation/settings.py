"""What a simulation asks of every design, in one record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stratal.errors import BudgetError, InputError, no_level


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is asked of every design.

    Parameters
    ----------
    estimators, intervals : tuple of str
    budgets : tuple of int
        Increasing.
    replicates : int
    seed : int
    confidence_level : float
    target : str
    stratum_weights_known : bool
        For the superpopulation: whether the W_h are known rather than drawn with the N units.
    bounds : (float, float), optional
    with_replacement : bool

    Examples
    --------
    >>> Settings(estimators=("horvitz-thompson",), intervals=("auto",), budgets=(50,), replicates=100, seed=7
    ...          ).target
    'population'
    """

    estimators: tuple[str, ...]
    intervals: tuple[str, ...]
    budgets: tuple[int, ...]
    replicates: int
    seed: int
    confidence_level: float = 0.95
    target: str = "population"
    stratum_weights_known: bool = True
    bounds: tuple[float, float] | None = None
    with_replacement: bool = False

    @property
    def counts_suffice(self) -> bool:
        """Whether no estimator needs the proxies of the units drawn, and no interval their third powers."""
        return set(self.estimators) <= {"horvitz-thompson", "hajek"} and not self.thirds

    @property
    def thirds(self) -> bool:
        """Whether an interval looks at the skewness of the labels: those of outcomes without bounds."""
        return self.bounds is None and bool({"auto", "skewness-corrected"} & set(self.intervals))


def several(given: Any) -> tuple[Any, ...]:
    """Return one name, or several, as a tuple.

    Examples
    --------
    >>> several("simple-random"), several(["t", "wilson"])
    (('simple-random',), ('t', 'wilson'))
    """
    return (given,) if isinstance(given, str) or not hasattr(given, "__iter__") else tuple(given)


def check_settings(settings: Settings, size: int) -> None:
    """Refuse settings that cannot be run.

    Examples
    --------
    >>> check_settings(Settings(
    ...     estimators=("difference",), intervals=(), budgets=(50,), replicates=9, seed=7), 100)
    """
    if settings.replicates < 2:
        raise InputError(
            "replicates must be 2 or more",
            given=settings.replicates,
            allowed="2 or more",
            action="A few thousand measure coverage to within half a percent.",
        )
    if not settings.estimators:
        raise InputError("no estimator is given", action="Give estimators=, such as 'horvitz-thompson'.")
    if not settings.budgets or min(settings.budgets) < 2 or max(settings.budgets) > size:
        raise BudgetError("a budget is out of range", given=list(settings.budgets), allowed=f"2 to {size}")
    if not 0 < settings.confidence_level < 1:
        raise no_level(settings.confidence_level)
