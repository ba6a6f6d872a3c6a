"""What `allocate_several` is asked for, checked once, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from stratal.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Record,
    numeric_array,
    plain,
    refuse_nonfinite,
)  # fmt: skip
from stratal.errors import BudgetError, InputError
from stratal.report import Tabular
from stratal.strata.allocation import Allocation
from stratal.strata.cost import check_money
from stratal.strata.integers import Bounds, one_per_stratum
from stratal.strata.several_dual import Demands, Optimum
from stratal.strata.several_integers import Whole

_GOALS = ("standard_errors", "weights")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedAllocation(Record, Tabular):
    """Labels per stratum that serve J estimands at once, and how far they are from the best there is.

    Parameters
    ----------
    n_h : int (H,)
        Labels per stratum.
    real_n_h : float (H,)
        The optimum in real numbers.
    objective : str
        "cost" (labels or money), "ratio" (largest of expected to wanted standard error) or "variance" (the
        weighted sum).
    value, bound : float
        The objective at n_h, and a number that no whole allocation comes below: a certificate.
    standard_errors : float (J,)
        Expected with n_h.
    wanted : float (J,) or None
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
    >>> SharedAllocation.from_dict(found.to_dict()) == found
    True
    """

    n_h: IntArray
    real_n_h: FloatArray
    objective: str
    value: float
    bound: float
    standard_errors: FloatArray
    wanted: FloatArray | None
    shares: FloatArray
    names: tuple[str, ...]
    minimum: IntArray
    maximum: IntArray

    def __post_init__(self) -> None:
        self._set(names=tuple(self.names))
        self._freeze()

    @property
    def budget(self) -> int:
        """Σ n_h."""
        return int(self.n_h.sum())

    @property
    def gap(self) -> float:
        """How much better another whole allocation could be at most, relatively; 0 if none is better."""
        return (self.value - self.bound) / self.value if self.value > self.bound else 0.0

    @property
    def ratios(self) -> FloatArray | None:
        """Expected over wanted standard errors (J,); None where none are wanted."""
        return None if self.wanted is None else np.asarray(self.standard_errors / self.wanted)

    @property
    def allocation(self) -> Allocation:
        """The labels per stratum, as a design takes them."""
        return Allocation(
            n_h=self.n_h, method="several", budget=self.budget, minimum=self.minimum, maximum=self.maximum
        )

    def _columns(self) -> dict[str, Any]:
        wanted = {} if self.wanted is None else {"wanted": self.wanted, "ratio": self.ratios}
        return (
            {"estimand": self.names, "standard error": self.standard_errors} | wanted | {"share": self.shares}
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return {entry.name: plain(getattr(self, entry.name)) for entry in fields(self)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> SharedAllocation:
        """Return the allocation that `to_dict` described."""
        return cls(**description)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTask:
    """What `allocate_several` was asked for, checked."""

    bounds: Bounds
    spread: FloatArray
    slack: FloatArray
    prices: FloatArray
    money: float | None
    wanted: FloatArray | None
    weights: FloatArray | None
    names: tuple[str, ...]

    def demands(self, spread: FloatArray, slack: FloatArray) -> Demands:
        """Return the demands of these variances (J, H)."""
        lower, upper = self.bounds.lower.astype(np.float64), self.bounds.upper.astype(np.float64)
        return Demands(spread=spread, slack=slack, prices=self.prices, lower=lower, upper=upper)

    @property
    def scaled(self) -> Demands:
        """The demands with every wanted variance 1."""
        assert self.wanted is not None
        squares = self.wanted**2
        return self.demands(self.spread / squares[:, None], self.slack / squares)

    def result(self, whole: Whole, optimum: Optimum, objective: str, value: float) -> SharedAllocation:
        """Return the allocation with what is expected of it."""
        counts = np.maximum(whole.n_h, 1)
        variances = np.maximum((self.spread / counts * (whole.n_h > 0)).sum(axis=1) - self.slack, 0.0)
        total = float(optimum.multipliers.sum())
        return SharedAllocation(
            n_h=whole.n_h,
            real_n_h=optimum.n_h,
            objective=objective,
            value=value,
            bound=whole.bound,
            standard_errors=np.sqrt(variances),
            wanted=self.wanted,
            shares=optimum.multipliers / total if total > 0 else np.zeros(len(variances)),
            names=self.names,
            minimum=self.bounds.lower,
            maximum=self.bounds.upper,
        )


def read_task(
    bounds: Bounds,
    standard_deviations: Any,
    goals: tuple[Any, Any, Sequence[str] | None],
    means: tuple[Any, Any, Any],
    *,
    known: Any,
    correction: bool,
) -> SharedTask:
    """Return the checked task."""
    deviations = _deviations(standard_deviations, len(bounds.sizes))
    bounds = _bounds(bounds, deviations, known)
    count = len(deviations)
    names = tuple(goals[2]) if goals[2] is not None else tuple(f"estimand {j}" for j in range(count))
    if len(names) != count:
        raise InputError(
            "names must have one entry per estimand",
            given=f"{len(names)} for {count}",
            action="Give a name for each row of standard_deviations.",
        )
    wanted, weights = (
        _per_estimand(name, values, count) for name, values in zip(_GOALS, goals, strict=False)
    )
    prices, money = _means(bounds, *means)
    if (wanted is None) == (weights is None) or (weights is not None and money is None):
        raise InputError(
            "say how precise the estimands must be",
            given=" and ".join(n for n, v in zip(_GOALS, (wanted, weights), strict=True) if v is not None)
            or "neither",
            allowed="standard_errors, standard_errors with a budget, or weights with a budget",
        )
    total = int(bounds.sizes.sum())
    spread = (bounds.sizes / max(total, 1) * deviations) ** 2
    slack = (spread / np.maximum(bounds.sizes, 1)).sum(axis=1) * bool(correction)
    return SharedTask(
        bounds=bounds,
        spread=spread,
        slack=slack,
        prices=prices,
        money=money,
        wanted=wanted,
        weights=weights,
        names=names,
    )


def _deviations(values: Any, n_strata: int) -> FloatArray:
    array = numeric_array("standard_deviations", values)
    if array.ndim != 2 or array.shape[1] != n_strata or array.shape[0] == 0:
        raise InputError(
            "standard_deviations must have a row per estimand and a column per stratum",
            given=f"shape {array.shape}",
            allowed=f"(J, {n_strata})",
        )
    refuse_nonfinite("standard_deviations", array)
    if np.any(array < 0):
        j, h = np.argwhere(array < 0)[0]
        given = f"{array[j, h]:g} for estimand {j} in stratum {h}"
        raise InputError("standard_deviations must not be negative", given=given, allowed="0 or more")
    return array


def _bounds(bounds: Bounds, deviations: FloatArray, known: Any) -> Bounds:
    """Return the bounds with no label where all is known, and at least one where anything varies."""
    free = np.zeros(len(bounds.sizes), dtype=bool) if known is None else _known(known, len(bounds.sizes))
    varies = np.any(deviations > 0, axis=0) & (bounds.sizes > 0)
    if np.any(free & varies):
        h = int(np.flatnonzero(free & varies)[0])
        raise InputError(
            f"stratum {h} cannot both be known and vary",
            given=f"standard deviation {deviations[:, h].max():g}",
            allowed="0 where an estimand's influence is known by construction",
            action="Leave it out of known, or give 0.",
        )
    if np.any(varies & (bounds.upper < 1)):
        h = int(np.flatnonzero(varies & (bounds.upper < 1))[0])
        raise InputError(
            f"stratum {h} varies and may have no label", given="maximum 0", allowed="maximum 1 or more"
        )
    lower = np.where(free, 0, np.maximum(bounds.lower, varies))
    return Bounds(sizes=bounds.sizes, lower=lower, upper=np.where(free, 0, bounds.upper))


def _known(known: Any, n_strata: int) -> BoolArray:
    array = np.asarray(known)
    if array.shape != (n_strata,) or array.dtype.kind != "b":
        raise InputError(
            "known must be one truth value per stratum",
            given=f"{array.dtype} {array.shape}",
            allowed=f"bool ({n_strata},)",
        )
    return array


def _per_estimand(name: str, values: Any, count: int) -> FloatArray | None:
    if values is None:
        return None
    array = numeric_array(name, values)
    if array.shape != (count,):
        raise InputError(
            f"{name} must have one entry per estimand",
            given=f"shape {array.shape} for {count}",
            action="Give one number for each row of standard_deviations.",
        )
    refuse_nonfinite(name, array)
    low = array <= 0 if name == "standard_errors" else array < 0
    if np.any(low) or not array.any():
        raise InputError(f"{name} must be positive", given=array.tolist(), allowed="above 0")
    return array


def _means(bounds: Bounds, budget: Any, costs: Any, cost_budget: Any) -> tuple[FloatArray, float | None]:
    """Return the prices (H,) and the labels or money in all, if they are limited."""
    if (costs is None and cost_budget is not None) or (costs is not None and budget is not None):
        raise InputError(
            "costs go with a budget of money",
            given="cost_budget without costs" if costs is None else "costs with a budget of labels",
            allowed="budget, or costs with cost_budget",
        )
    if costs is None:
        prices = np.ones(len(bounds.sizes))
        return prices, None if budget is None else float(_check(bounds, budget))
    prices = one_per_stratum("costs", costs, len(bounds.sizes))
    if not np.all(prices > 0):
        raise InputError("every cost must be positive", given=f"{prices.min():g}", allowed="above 0")
    if cost_budget is None:
        return prices, None
    return prices, min(check_money(bounds, prices, cost_budget), float(prices @ bounds.upper) * (1 + 1e-12))


def _check(bounds: Bounds, budget: Any) -> int:
    known = int(bounds.sizes[bounds.upper == 0].sum())
    most = int(bounds.upper.sum())
    if known and isinstance(budget, int) and budget > most:
        raise BudgetError(
            "the budget is above the units whose value is not known already",
            given=budget,
            allowed=f"{bounds.lower.sum()} to {most}",
            action="Lower the budget; the other units need no label.",
        )
    return bounds.check(budget)
