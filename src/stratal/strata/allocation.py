"""`allocate`: how many labels each stratum gets, by the name of a rule; the best whole numbers within bounds.

To minimise Σ a_h² / n_h with Σ n_h fixed, the (n + 1)-th unit of stratum h is worth a_h / √(n (n + 1)): the
square is what it takes off the sum. The values fall with n, so the units with the highest values are the
optimum, within any bounds (Wright 2012, "The equivalence of Neyman optimum allocation for sampling and equal
proportions for apportioning the U.S. House of Representatives"). A larger budget goes further down the same
list, so it never takes a unit back.
"""

from __future__ import annotations

import heapq
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    Record,
    finite_vector,
    frozen,
    numeric_array,
    plain_fields,
    refuse_nonfinite,
)
from stratal.errors import BudgetError, InputError, check_choice, type_text
from stratal.protocols import JsonDict, JsonMapping
from stratal.strata.strata import Moments, expected_deviations

# Bisections at most: all digits of a double.
_STEPS = 60

# How far beyond the threshold that one look tells the next one is, so that it lies between them: the first is
# wrong by the bounds, later ones by the rounding of counts.
_ASIDE = (0.05, 0.02, 0.01, 0.004)

# Beyond this a stratum is full whatever its size.
_LARGEST_RATIO = 1e12

# Weights smaller than this share of the largest count as 0: their squares would vanish.
_NEGLIGIBLE = 1e-200

# The next units of a stratum that are weighed exactly; the threshold settles all before them.
_NEAREST = np.arange(4)


@dataclass(frozen=True, slots=True)
class Divisor:
    """The value of each further unit: a · value(n) for the (n + 1)-th; `count(a / t)` have at least t."""

    value: Callable[[FloatArray], FloatArray]
    count: Callable[[FloatArray], FloatArray]
    first_is_infinite: bool


WRIGHT = Divisor(
    lambda n: 1.0 / np.sqrt(n * (n + 1.0)),
    lambda ratio: np.floor((np.sqrt(1.0 + 4.0 * ratio * ratio) - 1.0) / 2.0) + 1.0,
    first_is_infinite=True,
)
WEBSTER = Divisor(lambda n: 1.0 / (n + 0.5), lambda ratio: np.floor(ratio + 0.5), first_is_infinite=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllocationBounds(Record):
    """Sizes and bounds that every allocation respects.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    lower, upper : int (H,)
        Fewest and most labels per stratum, both at most N_h.
    """

    sizes: IntArray
    lower: IntArray
    upper: IntArray

    @classmethod
    def read(cls, sizes: object, minimum: object = 2, maximum: object = None) -> AllocationBounds:
        """Return the bounds from sizes (H,), and minimum and maximum, one number or one per stratum.

        The minimum of a stratum that is smaller is its size; a maximum of None is the size.

        Raises
        ------
        InputError
            If a size or bound is negative, not whole, or NaN, if lengths differ, or if a maximum is below
            its minimum.
        """
        counts = whole_numbers_per_stratum("sizes", sizes)
        if len(counts) == 0:
            raise InputError("there are no strata", given="sizes of length 0", allowed="at least one stratum")
        least = whole_numbers_per_stratum("minimum", minimum, len(counts))
        if maximum is None:
            upper = counts
        else:
            upper = whole_numbers_per_stratum("maximum", maximum, len(counts))
        if maximum is not None and np.any(upper < np.minimum(least, counts)):
            h = int(np.flatnonzero(upper < np.minimum(least, counts))[0])
            raise InputError(
                f"the maximum of stratum {h} is below its minimum",
                given=f"maximum {upper[h]}, minimum {least[h]}",
                allowed="a maximum of at least the minimum",
            )
        return cls(sizes=counts, lower=np.minimum(least, counts), upper=np.minimum(upper, counts))

    def check(self, budget: object) -> int:
        """Return the budget as an int, refusing one that the bounds cannot meet."""
        n = whole_number("budget", budget)
        fewest = int(self.lower.sum())
        largest = int(self.upper.sum())
        if n < fewest:
            raise BudgetError(
                "the budget is below the sum of the strata's minima",
                given=f"{n} for {len(self.sizes)} strata",
                allowed=f"{fewest} to {largest}",
                action="Raise the budget, use fewer strata, or give minimum=1.",
            )
        if n > largest:
            census = np.array_equal(self.upper, self.sizes)
            if census:
                above = "the population"
            else:
                above = "the sum of the strata's maxima"
            raise BudgetError(f"the budget is above {above}", given=n, allowed=f"{fewest} to {largest}")
        return n


def optimal_integers(
    importance: FloatArray, bounds: AllocationBounds, budget: Any, divisor: Divisor = WRIGHT
) -> IntArray:
    """Return the n_h (…, H) that minimise Σ a_h²/n_h with Σ n_h = budget, within the bounds.

    Ties go to the stratum with the lowest index. Where a_h is 0 a stratum keeps its lower bound until all
    others are at their upper bounds; what is left then is spread in proportion to the sizes, by the same
    rule.

    Parameters
    ----------
    importance : float (…, H)
        a_h, for instance N_h S_h; finite, not negative. Leading axes are replicates.
    bounds : Bounds
        Lower and upper bounds, (H,) or (…, H); a lower bound of 0 gives way first to the largest a_h.
    budget : int
        Checked by `Bounds.check`.
    divisor : Divisor
        What units are worth.
    """
    matters = importance > importance.max(axis=-1, keepdims=True) * _NEGLIGIBLE
    upper = np.where(matters, bounds.upper, bounds.lower)
    total = np.minimum(budget, upper.sum(axis=-1, keepdims=True))
    n_h = _highest(importance, np.where(matters, bounds.lower, upper), upper, total, divisor)
    if (total < budget).any():
        sizes = np.broadcast_to(bounds.sizes, n_h.shape).astype(np.float64)
        n_h = _highest(sizes, n_h, np.where(matters, n_h, bounds.upper), budget, divisor)
    return n_h


def nearest_integers(importance: FloatArray, sizes: IntArray, budget: int) -> IntArray:
    """Return n_h (…, H) as near to budget · a_h / Σ a_h as whole numbers get, at most N_h (Webster's rule).

    What a paper's real-valued rule becomes; a larger budget never takes a label back. Where all a_h are 0
    the sizes take their place; so they do for what the strata with a_h above 0 cannot hold.
    """
    bounds = AllocationBounds(sizes=sizes, lower=np.zeros_like(sizes), upper=sizes)
    return optimal_integers(importance, bounds, budget, WEBSTER)


def _highest(a: FloatArray, lower: IntArray, upper: IntArray, budget: Any, divisor: Divisor) -> IntArray:
    """Return `lower` with the units of the highest values added, the lowest index among equals.

    Where the first unit of a stratum has an infinite value, larger a_h go first.
    """
    empty = (lower == 0) & (upper > 0)
    if divisor.first_is_infinite and empty.any():
        remaining = budget - lower.sum(axis=-1, keepdims=True)
        lower = lower + (empty & _first(np.where(empty, a, -1.0), remaining))
    free = (upper > lower) & (a > 0)
    scaled = np.where(free, a, 0.0)
    scaled = np.where(free, scaled / np.maximum(scaled.max(axis=-1, keepdims=True), 1e-300), 1.0)
    most = np.where(free, np.minimum(upper, np.maximum(budget, lower)), lower)
    _, below = by_threshold(scaled, lower, most, budget, divisor=divisor)
    n_h = np.maximum(below - 1, lower)  # one back, against rounding in the closed form
    remaining = np.asarray(budget - n_h.sum(axis=-1, keepdims=True))
    candidates = (n_h[..., None] + _NEAREST).astype(np.float64)
    with np.errstate(divide="ignore"):
        values = scaled[..., None] * divisor.value(candidates)
    values = np.where(candidates < most[..., None], values, -1.0).reshape(*a.shape[:-1], -1)
    added = _first(values, remaining).reshape(candidates.shape)
    return np.asarray(n_h + added.astype(np.float64) @ np.ones(len(_NEAREST))).astype(np.int64)


def _first(values: FloatArray, number: IntArray) -> BoolArray:
    """Return which of the values (…, m) are the `number` (…, 1) largest, the lowest index among equals."""
    places = values.shape[-1] - number
    within = (number > 0) & (places >= 0)
    last = np.minimum(np.maximum(places, 0), values.shape[-1] - 1)
    smallest = np.take_along_axis(np.sort(values, axis=-1), last, axis=-1)
    smallest = np.where(within, smallest, np.where(number > 0, -np.inf, np.inf))
    chosen = values > smallest
    equal = values == smallest
    lacking = number - np.count_nonzero(chosen, axis=-1, keepdims=True)
    if (np.count_nonzero(equal, axis=-1, keepdims=True) > lacking).any():
        equal &= np.cumsum(equal, axis=-1) <= lacking
    return np.asarray(chosen | equal)


def by_threshold(
    a: FloatArray,
    lower: IntArray,
    upper: IntArray,
    budget: Any,
    *,
    costs: FloatArray | float = 1.0,
    divisor: Divisor = WRIGHT,
    tolerance: float = 0.5,
) -> tuple[FloatArray, IntArray]:
    """Return the value t (…, 1) at which units worth t or more just fit the budget, and their n_h (…, H).

    The number of units whose value is at least t has a closed form: the t that just fits is found to within
    `tolerance` units of any stratum. Where no bound is met the number goes with 1/t, which tells t from any
    other; it is looked for on either side by turns, and by bisection after a few. Where the lower bounds
    alone exceed the budget they are returned.
    """
    high = np.ones((*a.shape[:-1], 1))
    low = np.log(a.min(axis=-1, keepdims=True)) - np.log(np.max(upper, initial=0) + 2.0)
    best = np.asarray(lower, dtype=np.float64)
    lower_bounds = best
    upper_bounds = np.asarray(upper, dtype=np.float64)
    prices = np.broadcast_to(np.asarray(costs, dtype=np.float64), a.shape[-1:])[:, None]
    middle = np.log((a @ prices) / np.maximum(budget, 1.0))
    for step in range(_STEPS):
        if step > len(_ASIDE):
            middle = (low + high) / 2.0
        middle = np.minimum(np.maximum(middle, low), high)
        ratio = np.minimum(a * np.exp(-middle), _LARGEST_RATIO)
        counts = np.minimum(np.maximum(divisor.count(ratio), lower_bounds), upper_bounds)
        spent = counts @ prices
        fits = spent <= budget
        best = np.where(fits, counts, best)
        high = np.where(fits, middle, high)
        low = np.where(fits, low, middle)
        if (high - low).max() * (counts.max() + 2.0) < tolerance:
            break
        if step < len(_ASIDE):
            free = np.where((counts > lower_bounds) & (counts < upper_bounds), counts, 0.0) @ prices
            rest = np.maximum(budget - spent + free, 1.0)
            middle += np.log(np.maximum(free, 1.0) / rest) + np.where(fits, -_ASIDE[step], _ASIDE[step])
    return np.exp(high), best.astype(np.int64)


def check_budget(budget: object, population_size: float = math.inf) -> None:
    """Raise a `BudgetError` unless the budget is a whole number from 1 to N."""
    if not isinstance(budget, numbers.Integral) or isinstance(budget, bool) or int(budget) < 1:
        raise BudgetError("the budget must be a whole number of units", given=repr(budget), allowed="1 to N")
    if int(budget) > population_size:
        raise BudgetError(
            "the budget is larger than the population", given=budget, allowed=f"1 to {population_size}"
        )


def whole_number(name: str, value: object) -> int:
    """Return `value` as an int, refusing fractions, negatives, booleans and anything that is not a number."""
    array = np.asarray(value)
    number = array.ndim == 0 and array.dtype.kind in "iuf" and np.isfinite(array)
    if number and array >= 0 and array == int(array):
        return int(array)
    raise InputError(f"{name} must be a whole number", given=repr(value), allowed="0, 1, 2, …")


def whole_numbers_per_stratum(name: str, values: Any, length: int | None = None) -> IntArray:
    """Return `values` as read-only integers (H,); one number is repeated if a length is given."""
    if length is not None and np.ndim(values) == 0:
        return frozen(np.full(length, whole_number(name, values), dtype=np.int64))
    ours = isinstance(values, np.ndarray) and values.dtype == np.int64 and values.ndim == 1
    if ours and length in (None, len(values)) and np.all(values >= 0):
        return frozen(values)
    if length is None:
        count = len(finite_vector(name, values))
    else:
        count = length
    array = one_per_stratum(name, values, count)
    if np.any(array != np.floor(array)):
        h = int(np.flatnonzero(array != np.floor(array))[0])
        raise InputError(
            f"{name} must be whole numbers", given=f"{array[h]:g} in stratum {h}", allowed="0, 1, 2, …"
        )
    return frozen(array.astype(np.int64))


def importance_of(sizes: AnyArray, name: str, deviations: object) -> FloatArray:
    """Return N_h S_h (H,), scaled so that it cannot overflow."""
    array = one_per_stratum(name, deviations, len(sizes))
    largest = array.max()
    if largest > 0:
        return np.asarray(sizes * (array / largest))
    return np.zeros(len(array))


def one_per_stratum(
    name: str, values: object, count: int, least: float = 0.0, *, of: str = "stratum", axes: int = 1
) -> FloatArray:
    """Return `values` as read-only finite numbers (…, count) of at most so many axes, none below `least`."""
    array = np.atleast_1d(numeric_array(name, values))
    refuse_nonfinite(name, array)
    if array.ndim > axes or array.shape[-1] != count:
        shape = f"{' × '.join(map(str, array.shape))} for {count}"
        raise InputError(f"{name} must have one entry per {of}", given=shape, allowed="as many")
    if np.any(array < least):
        raise InputError(f"{name} must not be negative", given=f"{array.min():g}", allowed="0 or more")
    return frozen(array)


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

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready description."""
        names = ("method", "budget", "n_h", "minimum", "maximum", "notes")
        return plain_fields(self, names)

    @classmethod
    def from_dict(cls, description: JsonMapping) -> Allocation:
        """Return the allocation that `to_dict` described."""
        return cls(**description)


_UNSCALED = "There is no proxy, or it only orders the units: all strata are treated as equally variable."
_KNAPSACK = (
    "The best whole numbers that were found within the cost budget; the exact problem is a knapsack problem."
)

# From strata, N_h (H,) and options to the weight a_h (H,) of each stratum.
Weigh = Callable[[Moments, FloatArray, Mapping[str, Any]], FloatArray]


def _deviations(strata: Moments, options: Mapping[str, object]) -> FloatArray:
    """Return S_h (H,): given ones, else the proxy's, else ones."""
    deviations = options["standard_deviations"]
    if deviations is None:
        return strata.standard_deviations
    return one_per_stratum("standard_deviations", deviations, strata.n_strata)


def _neyman(strata: Moments, sizes: FloatArray, options: Mapping[str, object]) -> FloatArray:
    return importance_of(sizes, "standard_deviations", _deviations(strata, options))


def _robust(strata: Moments, sizes: FloatArray, options: Mapping[str, object]) -> FloatArray:
    """Return N_h S_h, with the S_h expected over the ways in which the proxy may be off.

    Neyman's rule believes the proxy. A model that is 99.9% sure of every unit in a stratum where it is right
    98% of the time has a true S_h four times its plug-in, and with √(m(1 − m)) of a judge's flat 0 and 1
    whole strata are left with the minimum. Measured by `benchmarks/robust_allocation.py`.
    """
    if strata.scaled:
        return sizes * expected_deviations(strata)
    return sizes


def _stratppi(strata: Moments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    """Return N_h σ_h with σ_h² = (1 − λ)² Var(ẑ) + mean of Var(z | x), the plug-in of Var(z − λẑ).

    It is Fisch et al. eq. 20–21 with the autorater's mean as the prediction: the mean of z − λẑ given x is
    (1 − λ)ẑ, and its variance given x is that of z.
    """
    if not strata.scaled:
        return sizes
    if options["lam"] is None:
        lam_option = 1.0
    else:
        lam_option = options["lam"]
    lam = one_per_stratum(
        "lam",
        np.full(len(sizes), lam_option) if np.ndim(lam_option) == 0 else lam_option,
        len(sizes),
        -np.inf,
    )
    variances = (1.0 - lam) ** 2 * strata.proxy_variances + strata.conditional_variances
    return np.asarray(sizes * np.sqrt(variances))


# The weight a_h (H,) of each rule by name: the labels minimise Σ a_h² / n_h (`integers`, `cost`).
ALLOCATION_METHODS: dict[str, Weigh] = {
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
    The whole numbers are the best within the bounds (Wright 2012, `stratal.strata.allocation`). Robust
    deviations are measured in docs/methods/allocation.md.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.5] * 20)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> allocate(strata, 50).n_h, allocate(strata, 50, method="proportional").n_h
    (array([37, 13]), array([40, 10]))
    """
    if not isinstance(strata, Moments):
        action = "Create strata first: stratal.strata.stratify(population)."
        raise InputError("allocate takes Strata", given=type_text(strata), action=action)
    check_choice("allocation method", method, ALLOCATION_METHODS)
    options = {"standard_deviations": standard_deviations, "costs": costs, "cost_budget": cost_budget}
    options["lam"] = lam
    for name, users in _USERS.items():
        if options[name] is not None and method not in users:
            allowed = f"with method {', '.join(map(repr, users))}"
            raise InputError(f"method '{method}' takes no {name}", allowed=allowed)
    limits = _bounds_of_strata(strata, minimum, maximum)
    notes: tuple[str, ...] = ()
    by_cost = method == "cost-optimal"
    if by_cost and (costs is None or cost_budget is None or budget is not None):
        raise InputError(
            "method 'cost-optimal' requires costs, and a budget in money rather than in labels",
            given="budget" if budget is not None else None,
            action="Give a cost per stratum and the total cost: costs=, cost_budget=.",
        )
    sizes = limits.sizes.astype(np.float64)
    if by_cost:
        prices, money = check_money(limits, costs, cost_budget)
        importance = _neyman(strata, sizes, options)
        n_h = filled(importance if importance.any() else sizes, prices, money, limits)
        notes = (_KNAPSACK, f"The labels cost {float(np.asarray(costs) @ n_h):g}.")
    elif budget is None:
        raise InputError(
            "budget is missing",
            action="Give the number of labels; only the method 'cost-optimal' works without it.",
        )
    else:
        n_h = optimal_integers(
            ALLOCATION_METHODS[method](strata, sizes, options), limits, limits.check(budget)
        )
        if method not in ("proportional", "equal") and standard_deviations is None and not strata.scaled:
            notes = (_UNSCALED,)
    return Allocation(
        n_h=n_h, method=method, budget=int(n_h.sum()), minimum=limits.lower, maximum=limits.upper, notes=notes
    )


def allocate_budgets(strata: Moments, budgets: IntArray, method: str, minimum: Any = 2) -> IntArray:
    """Return the n_h (B, H) of several budgets (B,), each as `allocate` shares it.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.5] * 20)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> allocate_budgets(strata, np.array([20, 50]), "robust")
    array([[15,  5],
           [37, 13]])
    """
    limits = _bounds_of_strata(strata, minimum, None)
    for budget in budgets:
        limits.check(budget)
    options = dict.fromkeys(_USERS)
    importance = ALLOCATION_METHODS[method](strata, limits.sizes.astype(np.float64), options)
    return optimal_integers(
        np.broadcast_to(importance, (len(budgets), len(importance))), limits, budgets[:, None]
    )


def _bounds_of_strata(strata: Moments, minimum: Any, maximum: Any) -> AllocationBounds:
    """Return the bounds of an allocation; known strata need no label."""
    if np.any(strata.is_known):
        if maximum is None:
            upper = strata.sizes
        else:
            upper = np.broadcast_to(maximum, strata.sizes.shape)
        minimum = np.where(strata.is_known, 0, minimum)
        maximum = np.where(strata.is_known, 0, upper)
    return AllocationBounds.read(strata.sizes, minimum, maximum)


def check_money(bounds: AllocationBounds, costs: Any, cost_budget: Any) -> tuple[FloatArray, float]:
    """Return what a label costs in each stratum (H,), and the money that may be spent.

    It must pay for the minima; a trifle for rounding is added.
    """
    prices = one_per_stratum("costs", costs, len(bounds.sizes))
    if not np.all(prices > 0):
        raise InputError("every cost must be positive", given=f"{prices.min():g}", allowed="above 0")
    if np.ndim(cost_budget) == 0:
        money = float(cost_budget)
    else:
        money = float("nan")
    if not np.isfinite(money) or money < 0:
        raise InputError("cost_budget must be a finite number", given=cost_budget, allowed="0 or more")
    least = float(prices @ bounds.lower)
    if least > money * (1 + _SLACK):
        raise BudgetError(
            "the budget is below the total cost of the strata's minima",
            given=f"{money:g}",
            allowed=f"at least {least:g}",
        )
    return prices, money * (1 + _SLACK)


def filled(a: FloatArray, prices: FloatArray, money: float, bounds: AllocationBounds) -> IntArray:
    """Return the lower bounds with units added by value per cost as long as one fits, for Σ a_h²/n_h."""
    values = a / np.sqrt(prices)
    upper = np.where(values > 0, bounds.upper, bounds.lower)
    scaled = np.where(values > 0, values / (values.max() or 1.0), 1.0)
    _, below = by_threshold(scaled, bounds.lower, upper, money, costs=prices)
    n_h = np.maximum(below - 1, bounds.lower)  # the heap has little left to do
    money_left = money - float(prices @ n_h)

    def entry(h: int) -> tuple[float, float, int]:
        value = float(values[h])
        n = int(n_h[h])
        if n:
            unit_value = value / math.sqrt(n * (n + 1))
        elif value > 0:
            unit_value = math.inf
        else:
            unit_value = 0.0
        return -unit_value, -value, h

    heap = [entry(h) for h in range(len(a)) if n_h[h] < bounds.upper[h]]
    heapq.heapify(heap)
    while heap:
        h = heapq.heappop(heap)[2]
        if prices[h] <= money_left:  # money only gets less: other strata are done
            n_h[h] += 1
            money_left -= float(prices[h])
            if n_h[h] < bounds.upper[h]:
                heapq.heappush(heap, entry(h))
    return n_h


def proportional(sizes: object, budget: int, minimum: object = 2, maximum: object = None) -> IntArray:
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
        If a size or bound is not a whole number, or a maximum is below its minimum.

    Examples
    --------
    >>> proportional([50, 30, 20], 10)
    array([5, 3, 2])
    """
    bounds = AllocationBounds.read(sizes, minimum, maximum)
    return optimal_integers(bounds.sizes.astype(np.float64), bounds, bounds.check(budget))


def equal(sizes: object, budget: int, minimum: object = 2, maximum: object = None) -> IntArray:
    """Return n_h as equal as the bounds allow: the best where W_h S_h is constant.

    Parameters, errors and result are those of `proportional`; what does not divide goes to the first strata.

    Examples
    --------
    >>> equal([50, 30, 3], 12)
    array([5, 4, 3])
    """
    bounds = AllocationBounds.read(sizes, minimum, maximum)
    return optimal_integers((bounds.sizes > 0).astype(np.float64), bounds, bounds.check(budget))


def neyman(
    sizes: object, standard_deviations: object, budget: int, minimum: object = 2, maximum: object = None
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
        If a size or bound is not a whole number, an S_h is negative, NaN or infinite, or lengths differ.

    Notes
    -----
    Neyman (1934); integers by the priority values of Wright (2012), see `stratal.strata.allocation`.

    Examples
    --------
    >>> neyman([8, 10, 9], [1.95, 0.04, 0.12], 12, minimum=1)
    array([8, 1, 3])
    """
    bounds = AllocationBounds.read(sizes, minimum, maximum)
    importance = importance_of(bounds.sizes, "standard_deviations", standard_deviations)
    return optimal_integers(importance, bounds, bounds.check(budget))
