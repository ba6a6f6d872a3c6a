"""`allocate_several`: one allocation for many estimands, each with a wanted precision or a weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.errors import BudgetError, InputError, names_mistyped
from stratal.strata.allocation import Allocation
from stratal.strata.integers import Bounds, one_per_stratum
from stratal.strata.several_solver import (
    Demands,
    Optimum,
    Whole,
    cheapest,
    closest,
    fewest,
    most_precise,
    without_floors,
    without_settled,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedAllocation(Record):
    """Labels per stratum that serve J estimands at once, and how far they are from the best there is.

    Parameters
    ----------
    n_h : int (H,)
        Labels per stratum.
    real_n_h : float (H,)
        The optimum in real numbers.
    objective : str
        "cost" (labels) or "ratio" (largest of expected to wanted standard error).
    value, bound : float
        The objective at n_h, and a number that no whole allocation comes below: a certificate.
    standard_errors : float (J,)
        Expected with n_h.
    wanted : float (J,)
        Wanted standard errors.
    shares : float (J,)
        How much each estimand decides: its price in the optimum, as a share of all; 0 where it has slack.
    names : tuple of str
        Of the estimands.
    minimum, maximum : int (H,)
        The bounds that were respected.

    Examples
    --------
    >>> from stratal.strata import allocate_several
    >>> found = allocate_several([900, 100], [[0.4, 0.4], [0.0, 4.0]], standard_errors=[0.02, 0.04])
    >>> found.n_h, found.budget, found.gap
    (array([246,  50]), 296, 0.0)
    """

    n_h: IntArray
    real_n_h: FloatArray
    objective: str
    value: float
    bound: float
    standard_errors: FloatArray
    wanted: FloatArray
    shares: FloatArray
    names: tuple[str, ...]
    minimum: IntArray
    maximum: IntArray

    @property
    def budget(self) -> int:
        """Σ n_h."""
        return int(self.n_h.sum())

    @property
    def gap(self) -> float:
        """How much better another whole allocation could be at most, relatively; 0 if none is better."""
        return (self.value - self.bound) / self.value if self.value > self.bound else 0.0

    @property
    def ratios(self) -> FloatArray:
        """Expected over wanted standard errors (J,)."""
        return np.asarray(self.standard_errors / self.wanted)

    @property
    def allocation(self) -> Allocation:
        """The labels per stratum, as a design takes them."""
        return Allocation(
            n_h=self.n_h, method="several", budget=self.budget, minimum=self.minimum, maximum=self.maximum
        )


def _bounds(bounds: Bounds, deviations: FloatArray, known: Any) -> Bounds:
    """Return the bounds with no label where all is known, and at least one where anything varies."""
    free = np.zeros(len(bounds.sizes), dtype=bool) if known is None else np.asarray(known, dtype=bool)
    varies = np.any(deviations > 0, axis=0) & (bounds.sizes > 0)
    for h in np.flatnonzero(varies & (free | (bounds.upper < 1)))[:1].tolist():
        raise InputError(
            f"stratum {h} varies, and {'is known' if free[h] else 'may have no label'}",
            given=f"standard deviation {deviations[:, h].max():g}",
            action="Leave it out of known, or raise its maximum.",
        )
    lower = np.where(free, 0, np.maximum(bounds.lower, varies))
    return Bounds(sizes=bounds.sizes, lower=lower, upper=np.where(free, 0, bounds.upper))


@names_mistyped
def allocate_several(
    sizes: Any,
    standard_deviations: Any,
    budget: int | None = None,
    *,
    standard_errors: Any = None,
    minimum: Any = 2,
    maximum: Any = None,
    known: Any = None,
    finite_population_correction: bool = True,
    names: Sequence[str] | None = None,
) -> SharedAllocation:
    """Share labels among strata for J estimands at once.

    With `standard_errors` alone: the fewest labels that reach all of them.
    With a budget too: the labels that make the largest ratio of expected to wanted standard error smallest.
    The smallest weighted sum of variances is `neyman`'s, on the root of the weighted sum of squares.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    standard_deviations : float (J, H)
        S_jh: the standard deviation within stratum h of estimand j's influence u_j, the variable whose mean
        over all N units has the estimand's error. So the variance of estimand j is
        Σ_h (N_h / N)² S_jh² (1/n_h − 1/N_h). For a mean u is the outcome; for the mean of a domain that is a
        share w of the units it is (outcome − mean) / w inside and 0 outside; for a total it is N times the
        outcome.
    budget : int, optional
        Labels in all.
    standard_errors : float (J,), optional
        Wanted standard errors: half-widths divided by the quantile, 1.96 at 95 %.
    minimum, maximum : int or int (H,)
        Bounds on n_h; the minimum of a smaller stratum is its size. A stratum in which anything varies has
        at least one label.
    known : bool (H,), optional
        Strata in which every u_j is a known constant by construction: they get no label. Where that is only
        believed, leave it out: the stratum keeps its minimum.
    finite_population_correction : bool
        False leaves out the −1/N_h, for the superpopulation.
    names : sequence of str, optional
        What the estimands are called in errors and tables.

    Returns
    -------
    SharedAllocation

    Raises
    ------
    BudgetError
        If the bounds cannot meet the budget, or cannot reach a wanted standard error.
    InputError
        If an array has another shape or an impossible value, or the task is not one of the two.

    Notes
    -----
    Bethel (1989), "Sample allocation in multivariate surveys", and Chromy (1987), whose real-valued optimum
    is found here by Newton's method on the dual, with the duality gap as certificate; whole numbers are found
    by rounding with the dual's prices and exchange.

    Examples
    --------
    >>> sd = [[0.4, 0.4, 0.4], [0.1, 0.9, 0.2]]
    >>> allocate_several([800, 150, 50], sd, standard_errors=[0.03, 0.03]).n_h
    array([120,  23,   8])
    >>> allocate_several([800, 150, 50], sd, 100, standard_errors=[0.03, 0.03]).ratios.round(3)
    array([1.265, 1.147])
    """
    bounds = Bounds.read(sizes, minimum, maximum)
    deviations = one_per_stratum("standard_deviations", standard_deviations, len(bounds.sizes), axes=2)
    deviations = np.atleast_2d(deviations)
    bounds = _bounds(bounds, deviations, known)
    count = len(deviations)
    wanted = one_per_stratum("standard_errors", standard_errors, count, of="estimand")
    if np.any(wanted <= 0):
        raise InputError("standard_errors must be positive", given=wanted.tolist(), allowed="above 0")
    money = None if budget is None else float(bounds.check(budget))
    spread = (bounds.sizes / max(int(bounds.sizes.sum()), 1) * deviations) ** 2
    slack = (spread / np.maximum(bounds.sizes, 1)).sum(axis=1) * bool(finite_population_correction)
    squares = wanted**2
    demands = Demands(
        spread=spread / squares[:, None],
        slack=slack / squares,
        lower=bounds.lower.astype(np.float64),
        upper=bounds.upper.astype(np.float64),
    )
    called = tuple(names or (f"estimand {j}" for j in range(count)))
    if len(called) != count or len(set(called)) < count:
        raise InputError("names must be one for each estimand", given=", ".join(called), allowed=f"{count}")
    if money is None:
        found, optimum = _fewest(demands, called, wanted)
    else:
        found, optimum = _closest(demands, money, bounds.sizes)
    price = optimum.multipliers
    used = (spread / np.maximum(found.n_h, 1) * (found.n_h > 0)).sum(axis=1)
    return SharedAllocation(
        n_h=found.n_h,
        real_n_h=optimum.n_h,
        objective="cost" if money is None else "ratio",
        value=found.value,
        bound=found.bound,
        standard_errors=np.sqrt(np.maximum(used - slack, 0.0)),
        wanted=wanted,
        shares=price / (price.sum() or 1.0),
        names=called,
        minimum=bounds.lower,
        maximum=bounds.upper,
    )


def _fewest(demands: Demands, names: Sequence[str], wanted: FloatArray) -> tuple[Whole, Optimum]:
    """Return the cheapest allocation that reaches every wanted standard error (J,)."""
    floors = demands.levels(demands.upper)
    if np.any(floors > 1 + 1e-9):
        j = int(np.argmax(floors))
        raise BudgetError(
            f"no allocation within the bounds is as precise as wanted for {names[j]}",
            given=f"standard error {wanted[j]:g}",
            allowed=f"at least {wanted[j] * np.sqrt(floors[j]):.6g}",
        )
    optimum = cheapest(demands)
    kept, open_ = without_settled(demands)
    return fewest(kept, optimum.multipliers[open_]), optimum


def _closest(demands: Demands, money: float, sizes: IntArray) -> tuple[Whole, Optimum]:
    """Return the allocation with the smallest largest ratio of expected to wanted standard error."""
    kept, open_ = without_floors(demands, money)
    optimum = Optimum(n_h=kept.lower, multipliers=np.zeros(len(open_)), bound=0.0)
    if open_.any():
        found = most_precise(kept, money)
        optimum.multipliers[open_] = found.multipliers
        optimum = replace(optimum, n_h=found.n_h)
    whole = closest(kept, optimum.multipliers[open_], money, sizes)
    value = float(demands.levels(whole.n_h).max())
    bound = min(max(whole.bound, float(demands.levels(demands.upper).max())), value)
    return Whole(whole.n_h, float(np.sqrt(value)), float(np.sqrt(bound))), optimum
