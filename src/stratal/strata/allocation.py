"""`Allocation`: how many labels each stratum gets; `allocate`: one for a `Strata`, by the name of a rule."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record, plain
from stratal.errors import BudgetError, InputError, names_mistyped, refuse_unknown
from stratal.strata.integers import (
    Bounds,
    by_threshold,
    importance_of,
    one_per_stratum,
    optimal_integers,
    whole_number,
)
from stratal.strata.strata import Moments, expected_deviations

# Share of the money that rounding may cost.
_SLACK = 1e-12

# Names of the rules that look at labels: a second round, and later ones (Kumar & Raj 2016).
FROM_LABELS = ("opt-a1", "opt-a2")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation(Record):
    """How many units of the budget each stratum gets.

    Parameters
    ----------
    n_h : int (H,)
        Labels per stratum; their sum is `budget`.
    method : str
        Name of the rule that made it.
    budget : int
        Labels in all.
    minimum, maximum : int (H,)
        The bounds that were respected.
    notes : tuple of str
        What the user should know, for a report.

    Raises
    ------
    InputError
        If the sum is not the budget or a bound is broken.

    Examples
    --------
    >>> allocation = Allocation(n_h=[3, 2], method="given", budget=5, minimum=[2, 2], maximum=[9, 9])
    >>> Allocation.from_dict(allocation.to_dict()) == allocation
    True
    """

    n_h: IntArray
    method: str
    budget: int
    minimum: IntArray
    maximum: IntArray
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._set(n_h=np.array(self.n_h))
        self._freeze()
        self._set(budget=whole_number("budget", self.budget))
        alike = self.n_h.ndim == 1 and self.n_h.shape == self.minimum.shape == self.maximum.shape
        within = alike and np.all((self.n_h >= self.minimum) & (self.n_h <= self.maximum))
        if not within or self.n_h.sum() != self.budget:
            raise InputError(
                "n_h must lie within its bounds and sum to the budget",
                given=f"{self.n_h.tolist()}, {self.n_h.sum()} in all",
                allowed=f"{self.minimum.tolist()} to {self.maximum.tolist()}, {self.budget} in all",
            )

    @property
    def n_strata(self) -> int:
        """H."""
        return len(self.n_h)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        names = ("method", "budget", "n_h", "minimum", "maximum", "notes")
        return {name: plain(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Allocation:
        """Return the allocation that `to_dict` described."""
        return cls(**description)


_UNSCALED = "The proxy only orders the units, so the strata count as equally variable."
_KNAPSACK = "The best whole numbers found within the cost budget; the exact problem is a knapsack."

# From strata, N_h (H,) and options to the weight a_h (H,) of each stratum.
Weigh = Callable[[Moments, FloatArray, Mapping[str, Any]], FloatArray]


def _deviations(strata: Moments, options: Mapping[str, Any]) -> FloatArray:
    """Return S_h (H,): given ones, else the proxy's, else ones."""
    given = options["standard_deviations"]
    if given is None:
        return strata.standard_deviations
    return one_per_stratum("standard_deviations", given, strata.n_strata)


def _neyman(strata: Moments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    return importance_of(sizes, "standard_deviations", _deviations(strata, options))


def _robust(strata: Moments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    """Return N_h S_h, with the S_h expected over the ways in which the proxy may be off.

    Neyman's rule believes the proxy. A model that is 99.9 % sure of every unit in a stratum where it is right
    98 % of the time has a true S_h four times its plug-in, and with √(m(1 − m)) of a judge's flat 0 and 1
    whole strata are left with the minimum. Measured by `benchmarks/robust_allocation.py`.
    """
    return sizes * expected_deviations(strata) if strata.scaled else sizes


def _stratppi(strata: Moments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    """Return N_h σ_h with σ_h² = (1 − λ)² Var(ẑ) + mean of Var(z | x), the plug-in of Var(z − λẑ).

    It is Fisch et al. eq. 20–21 with the autorater's mean as the prediction: the mean of z − λẑ given x is
    (1 − λ)ẑ, and its variance given x is that of z.
    """
    if not strata.scaled:
        return sizes
    given = 1.0 if options["lam"] is None else options["lam"]
    lam = one_per_stratum(
        "lam", np.full(len(sizes), given) if np.ndim(given) == 0 else given, len(sizes), -np.inf
    )
    variances = (1.0 - lam) ** 2 * strata.proxy_variances + strata.conditional_variances
    return np.asarray(sizes * np.sqrt(variances))


# The weight a_h (H,) of each rule by name: the labels minimise Σ a_h² / n_h (`integers`, `cost`).
METHODS: dict[str, Weigh] = {
    "proportional": lambda strata, sizes, options: sizes,
    "equal": lambda strata, sizes, options: (sizes > 0).astype(np.float64),
    "neyman": _neyman,
    "robust": _robust,
    "power": lambda strata, sizes, options: np.sqrt(sizes) * _deviations(strata, options),
    "cost-optimal": _neyman,
    "stratppi": _stratppi,
}

# Options, and the methods that do not ignore them.
_USERS = {
    "standard_deviations": ("neyman", "power", "cost-optimal"),
    "costs": ("cost-optimal",),
    "cost_budget": ("cost-optimal",),
    "lam": ("stratppi",),
}


@names_mistyped
def allocate(
    strata: Moments,
    budget: int | None = None,
    method: str = "robust",
    minimum: Any = 2,
    maximum: Any = None,
    *,
    standard_deviations: Any = None,
    costs: Any = None,
    cost_budget: float | None = None,
    lam: Any = None,
) -> Allocation:
    """Share a budget of labels among strata.

    Parameters
    ----------
    strata : Strata
        Sizes and plug-in moments per stratum.
    budget : int
        Labels in all; left out only for "cost-optimal".
    method : str
        "robust" (default: Neyman's with the S_h expected over the ways in which the proxy may be off),
        "proportional", "equal", "neyman", "power" (Bankier 1988: n_h ∝ √N_h S_h, a bargain between the whole
        and each stratum's own mean), "cost-optimal" (Cochran, eq. 5.23: n_h ∝ N_h S_h / √c_h, the best whole
        numbers found within the money) or "stratppi" (Fisch et al. 2024, eq. 18-21: n_h ∝ N_h σ_h for the
        residual z − λẑ).
    minimum, maximum : int or int (H,)
        Bounds; 2 by default, so that every stratum has a variance. Strata in which an estimand is known by
        construction get no label.
    standard_deviations : float (H,), optional
        S_h instead of the proxy's, for "neyman", "power" and "cost-optimal".
    costs : float (H,), cost_budget : float
        Cost of a label per stratum and money in all, for "cost-optimal".
    lam : float or float (H,), optional
        λ of the residual for "stratppi", 1 by default.

    Returns
    -------
    Allocation

    Raises
    ------
    BudgetError
        If the bounds cannot meet the budget.
    InputError
        If the method is unknown, or lacks what it needs.

    Notes
    -----
    The whole numbers are the best within the bounds (Wright 2012, `stratal.strata.integers`). Robust
    deviations are measured in docs/methods/allocation.md.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.5] * 20)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> allocate(strata, 50).n_h, allocate(strata, 50, method="proportional").n_h
    (array([37, 13]), array([40, 10]))
    """
    refuse_unknown("allocation method", method, METHODS)
    if np.any(strata.is_known):  # these units need no label
        most = strata.sizes if maximum is None else np.broadcast_to(maximum, strata.sizes.shape)
        minimum, maximum = np.where(strata.is_known, 0, minimum), np.where(strata.is_known, 0, most)
    options = {"standard_deviations": standard_deviations, "costs": costs, "cost_budget": cost_budget}
    options["lam"] = lam
    for name, users in _USERS.items():
        if options[name] is not None and method not in users:
            allowed = f"with method {', '.join(map(repr, users))}"
            raise InputError(f"method '{method}' takes no {name}", allowed=allowed)
    limits = Bounds.read(strata.sizes, minimum, maximum)
    notes: tuple[str, ...] = ()
    by_cost = method == "cost-optimal"
    if by_cost and (costs is None or cost_budget is None or budget is not None):
        raise InputError(
            "method 'cost-optimal' needs costs, and a budget of money instead of labels",
            given="budget" if budget is not None else None,
            action="Give a cost per stratum and the money: costs=, cost_budget=.",
        )
    sizes = limits.sizes.astype(np.float64)
    if by_cost:
        prices, money = check_money(limits, costs, cost_budget)
        importance = _neyman(strata, sizes, options)
        n_h = filled(importance if importance.any() else sizes, prices, money, limits)
        notes = (_KNAPSACK, f"The labels cost {float(np.asarray(costs) @ n_h):g}.")
    elif budget is None:
        raise InputError(
            "budget is missing", action="Give the number of labels; only cost-optimal works without it."
        )
    else:
        n_h = optimal_integers(METHODS[method](strata, sizes, options), limits, limits.check(budget))
        if method not in ("proportional", "equal") and standard_deviations is None and not strata.scaled:
            notes = (_UNSCALED,)
    return Allocation(
        n_h=n_h, method=method, budget=int(n_h.sum()), minimum=limits.lower, maximum=limits.upper, notes=notes
    )


def check_money(bounds: Bounds, costs: Any, cost_budget: Any) -> tuple[FloatArray, float]:
    """Return what a label costs in each stratum (H,), and the money that may be spent.

    It must pay for the minima; a trifle for rounding is added.
    """
    prices = one_per_stratum("costs", costs, len(bounds.sizes))
    if not np.all(prices > 0):
        raise InputError("every cost must be positive", given=f"{prices.min():g}", allowed="above 0")
    money = float(cost_budget) if np.ndim(cost_budget) == 0 else float("nan")
    if not np.isfinite(money) or money < 0:
        raise InputError("cost_budget must be a finite number", given=cost_budget, allowed="0 or more")
    least = float(prices @ bounds.lower)
    if least > money * (1 + _SLACK):
        raise BudgetError(
            "the budget is below the cost of the strata's minima",
            given=f"{money:g}",
            allowed=f"at least {least:g}",
        )
    return prices, money * (1 + _SLACK)


def filled(a: FloatArray, prices: FloatArray, money: float, bounds: Bounds) -> IntArray:
    """Return the lower bounds with units added by value per cost as long as one fits, for Σ a_h²/n_h.

    Examples
    --------
    >>> filled(np.array([50.0, 50.0]), np.array([1.0, 4.0]), 60.0, Bounds.read([100, 100]))
    array([20, 10])
    """
    values = a / np.sqrt(prices)
    most = np.where(values > 0, bounds.upper, bounds.lower)
    scaled = np.where(values > 0, values / (values.max() or 1.0), 1.0)
    _, below = by_threshold(scaled, bounds.lower, most, money, costs=prices)
    n_h = np.maximum(below - 1, bounds.lower)  # the heap has little left to do
    left = money - float(prices @ n_h)

    def entry(h: int) -> tuple[float, float, int]:
        value, n = float(values[h]), int(n_h[h])
        worth = value / math.sqrt(n * (n + 1)) if n else math.inf if value > 0 else 0.0
        return -worth, -value, h

    heap = [entry(h) for h in range(len(a)) if n_h[h] < bounds.upper[h]]
    heapq.heapify(heap)
    while heap:
        h = heapq.heappop(heap)[2]
        if prices[h] <= left:  # money only gets less: other strata are done
            n_h[h] += 1
            left -= float(prices[h])
            if n_h[h] < bounds.upper[h]:
                heapq.heappush(heap, entry(h))
    return n_h


def proportional(sizes: Any, budget: int, minimum: Any = 2, maximum: Any = None) -> IntArray:
    """Return n_h ∝ N_h, the best for equal S_h (Cochran, 5.3).

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds; the minimum of a small stratum is its size, a maximum of None is the size.

    Returns
    -------
    int (H,)
        n_h, whose sum is the budget.

    Raises
    ------
    BudgetError
        If the bounds cannot meet the budget.
    InputError
        If a size or bound is no whole number, or a maximum is below its minimum.

    Examples
    --------
    >>> proportional([50, 30, 20], 10)
    array([5, 3, 2])
    """
    bounds = Bounds.read(sizes, minimum, maximum)
    return optimal_integers(bounds.sizes.astype(np.float64), bounds, bounds.check(budget))


def equal(sizes: Any, budget: int, minimum: Any = 2, maximum: Any = None) -> IntArray:
    """Return n_h as equal as the bounds allow: the best where W_h S_h is constant.

    Parameters, errors and result are those of `proportional`; what does not divide goes to the first strata.

    Examples
    --------
    >>> equal([50, 30, 3], 12)
    array([5, 4, 3])
    """
    bounds = Bounds.read(sizes, minimum, maximum)
    return optimal_integers((bounds.sizes > 0).astype(np.float64), bounds, bounds.check(budget))


def neyman(
    sizes: Any, standard_deviations: Any, budget: int, minimum: Any = 2, maximum: Any = None
) -> IntArray:
    """Return n_h ∝ N_h S_h, exactly optimal among integers for the variance Σ W_h² (1 − f_h) S_h² / n_h.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    standard_deviations : float (H,)
        S_h, in the outcome's units; zeros are allowed.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds; the minimum of a small stratum is its size, a maximum of None is the size.

    Returns
    -------
    int (H,)
        n_h, whose sum is the budget. Ties go to the lowest index.

    Raises
    ------
    BudgetError
        If the bounds cannot meet the budget.
    InputError
        If a size or bound is no whole number, an S_h is negative, NaN or infinite, or lengths differ.

    Notes
    -----
    Neyman (1934); integers by the priority values of Wright (2012), see `stratal.strata.integers`.

    Examples
    --------
    >>> neyman([8, 10, 9], [1.95, 0.04, 0.12], 12, minimum=1)
    array([8, 1, 3])
    """
    bounds = Bounds.read(sizes, minimum, maximum)
    importance = importance_of(bounds.sizes, "standard_deviations", standard_deviations)
    return optimal_integers(importance, bounds, bounds.check(budget))
