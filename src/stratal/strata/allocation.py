"""`allocate`: the number of labels of each stratum, as the optimal integers within bounds.

To minimise Σ a_h² / n_h with Σ n_h fixed, the (n + 1)-th unit of stratum h has the priority a_h / √(n (n +
1)). Its square is the amount by which the unit reduces the sum. The priorities decrease with n, so the units
with the highest priorities are the optimum, within any bounds (Wright 2012, "The equivalence of Neyman
optimum allocation for sampling and equal proportions for apportioning the U.S. House of Representatives"). A
larger budget adds units with lower priorities, so it never removes a unit.
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
    NO_DIVISOR,
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

# Maximum number of steps of the threshold search: bisection then determines all digits of a double.
_MAX_SEARCH_STEPS = 60

# Margins on the log threshold for the first steps of the search. Each step evaluates the predicted threshold
# plus or minus a margin, so that the threshold lies between two consecutive evaluations. The margins decrease
# because the first prediction ignores the bounds, and later ones ignore only the rounding of counts.
_BRACKET_MARGINS = (0.05, 0.02, 0.01, 0.004)

# Limit of a / t, which avoids overflow: every stratum has fewer units than the count at this ratio.
_MAX_RATIO = 1e12

# An a_h below this share of the largest counts as 0, because its square would underflow.
_NEGLIGIBLE_SHARE = 1e-200

# The threshold search leaves at most this many units of a stratum undecided. These are compared exactly.
_CANDIDATE_OFFSETS = np.arange(4)


@dataclass(frozen=True, slots=True)
class DivisorMethod:
    """A divisor method of apportionment, which ranks the units of all strata by their priority.

    Parameters
    ----------
    priority : callable
        From n to the priority of the (n + 1)-th unit of a stratum with a_h = 1; it is proportional to a_h.
    count : callable
        From a_h / t to the number of units with a priority of at least t.
    first_is_infinite : bool
        Whether the first unit of a stratum has an infinite priority.
    """

    priority: Callable[[FloatArray], FloatArray]
    count: Callable[[FloatArray], FloatArray]
    first_is_infinite: bool


# Minimises Σ a_h² / n_h (Wright 2012; equal proportions).
WRIGHT = DivisorMethod(
    lambda n: 1.0 / np.sqrt(n * (n + 1.0)),
    lambda ratio: np.floor((np.sqrt(1.0 + 4.0 * ratio * ratio) - 1.0) / 2.0) + 1.0,
    first_is_infinite=True,
)
# Rounds budget · a_h / Σ a_h to the nearest integers (Webster; Sainte-Laguë).
WEBSTER = DivisorMethod(
    lambda n: 1.0 / (n + 0.5), lambda ratio: np.floor(ratio + 0.5), first_is_infinite=False
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllocationBounds(Record):
    """Sizes of the strata, and bounds on their numbers of labels.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    lower, upper : int (H,)
        Minimum and maximum number of labels of each stratum, both at most N_h.
    """

    sizes: IntArray
    lower: IntArray
    upper: IntArray

    @classmethod
    def read(cls, sizes: object, minimum: object = 2, maximum: object = None) -> AllocationBounds:
        """Return validated bounds. `minimum` and `maximum` are one number, or one per stratum (H,).

        If a stratum is smaller than its minimum, the minimum is its size. A maximum of None is the size.

        Raises
        ------
        InputError
            If a size or bound is negative, not whole, or NaN, if lengths differ, or if a maximum is below
            its minimum.
        """
        counts = whole_numbers_per_stratum("sizes", sizes)
        if len(counts) == 0:
            raise InputError("there are no strata", given="sizes of length 0", allowed="at least one stratum")
        minimums = whole_numbers_per_stratum("minimum", minimum, len(counts))
        lower = np.minimum(minimums, counts)
        if maximum is None:
            return cls(sizes=counts, lower=lower, upper=counts)
        maximums = whole_numbers_per_stratum("maximum", maximum, len(counts))
        contradictory_strata = np.flatnonzero(maximums < lower)
        if len(contradictory_strata):
            h = int(contradictory_strata[0])
            raise InputError(
                f"the maximum of stratum {h} is below its minimum",
                given=f"maximum {maximums[h]}, minimum {minimums[h]}",
                allowed="a maximum of at least the minimum",
            )
        return cls(sizes=counts, lower=lower, upper=np.minimum(maximums, counts))

    def check(self, budget: object) -> int:
        """Return the budget as an int; raise `BudgetError` if the bounds allow no allocation of it."""
        n = whole_number("budget", budget)
        smallest = int(self.lower.sum())
        largest = int(self.upper.sum())
        if n < smallest:
            raise BudgetError(
                "the budget is below the sum of the strata's minima",
                given=f"{n} for {len(self.sizes)} strata",
                allowed=f"{smallest} to {largest}",
                action="Raise the budget, use fewer strata, or give minimum=1.",
            )
        if n > largest:
            limit = "the sum of the strata's maxima"
            if np.array_equal(self.upper, self.sizes):
                limit = "the population"
            raise BudgetError(f"the budget is above {limit}", given=n, allowed=f"{smallest} to {largest}")
        return n


def optimal_integers(
    importance: FloatArray, bounds: AllocationBounds, budget: Any, divisor: DivisorMethod = WRIGHT
) -> IntArray:
    """Return the n_h (…, H) that minimise Σ a_h²/n_h with Σ n_h = budget, within the bounds.

    Ties go to the stratum with the lowest index. A stratum with a_h = 0 keeps its lower bound until all
    others are at their upper bounds. The remaining labels are then allocated in proportion to the sizes, by
    the same divisor method.

    Parameters
    ----------
    importance : float (…, H)
        a_h, for instance N_h S_h; finite, not negative. Leading axes are replicates.
    bounds : AllocationBounds
        Lower and upper bounds, (H,) or (…, H). If lower bounds are 0, the strata with the largest a_h get
        their first label first.
    budget : int, or int (…, 1)
        Σ n_h, checked by `AllocationBounds.check`.
    divisor : DivisorMethod
        Priorities of the units.
    """
    is_relevant = importance > importance.max(axis=-1, keepdims=True) * _NEGLIGIBLE_SHARE
    upper = np.where(is_relevant, bounds.upper, bounds.lower)
    relevant_budget = np.minimum(budget, upper.sum(axis=-1, keepdims=True))
    n_h = _add_units(importance, np.broadcast_to(bounds.lower, upper.shape), upper, relevant_budget, divisor)
    if (relevant_budget < budget).any():
        sizes = np.broadcast_to(bounds.sizes, n_h.shape).astype(np.float64)
        n_h = _add_units(sizes, n_h, np.where(is_relevant, n_h, bounds.upper), budget, divisor)
    return n_h


def nearest_integers(importance: FloatArray, sizes: IntArray, budget: int) -> IntArray:
    """Return the integers n_h (…, H) nearest to budget · a_h / Σ a_h, at most N_h (Webster's method).

    It rounds the real-valued allocations of papers. A larger budget never removes a label. If all a_h are 0,
    the allocation is proportional to the sizes; so is the allocation of labels that exceed the sizes of the
    strata with positive a_h.
    """
    bounds = AllocationBounds(sizes=sizes, lower=np.zeros_like(sizes), upper=sizes)
    return optimal_integers(importance, bounds, budget, WEBSTER)


def _add_units(
    importance: FloatArray, lower: IntArray, upper: IntArray, budget: Any, divisor: DivisorMethod
) -> IntArray:
    """Return the n_h (…, H): `lower`, plus the units with the highest priorities up to the budget.

    Ties go to the stratum with the lowest index. If first units have an infinite priority, the strata with
    larger a_h get theirs first.
    """
    is_empty = (lower == 0) & (upper > 0)
    if divisor.first_is_infinite and is_empty.any():
        remaining = budget - lower.sum(axis=-1, keepdims=True)
        lower = lower + (is_empty & _largest_mask(np.where(is_empty, importance, -1.0), remaining))
    is_free = (upper > lower) & (importance > 0)
    scaled = np.where(is_free, importance, 0.0)
    scaled = np.where(is_free, scaled / np.maximum(scaled.max(axis=-1, keepdims=True), NO_DIVISOR), 1.0)
    maximums = np.where(is_free, np.minimum(upper, np.maximum(budget, lower)), lower)
    threshold_n_h = threshold_allocation(scaled, lower, maximums, budget, divisor=divisor)
    # The closed form of the counts is rounded and may include one unit too many.
    n_h = np.maximum(threshold_n_h - 1, lower)
    remaining = np.asarray(budget - n_h.sum(axis=-1, keepdims=True))
    candidates = (n_h[..., None] + _CANDIDATE_OFFSETS).astype(np.float64)
    with np.errstate(divide="ignore"):
        priorities = scaled[..., None] * divisor.priority(candidates)
    is_available = candidates < maximums[..., None]
    priorities = np.where(is_available, priorities, -1.0).reshape(*importance.shape[:-1], -1)
    added = _largest_mask(priorities, remaining).reshape(candidates.shape)
    # A matrix product is faster than a sum over a short last axis.
    return np.asarray(n_h + added.astype(np.float64) @ np.ones(len(_CANDIDATE_OFFSETS))).astype(np.int64)


def _largest_mask(values: FloatArray, number: IntArray) -> BoolArray:
    """Return a mask of the `number` (…, 1) largest of the values (…, m); ties go to the lowest index."""
    position = values.shape[-1] - number  # of the smallest selected value, in ascending order
    is_inside = (number > 0) & (position >= 0)
    position = np.minimum(np.maximum(position, 0), values.shape[-1] - 1)
    smallest = np.take_along_axis(np.sort(values, axis=-1), position, axis=-1)
    smallest = np.where(is_inside, smallest, np.where(number > 0, -np.inf, np.inf))
    is_larger = values > smallest
    is_tied = values == smallest
    missing = number - np.count_nonzero(is_larger, axis=-1, keepdims=True)
    if (np.count_nonzero(is_tied, axis=-1, keepdims=True) > missing).any():
        is_tied &= np.cumsum(is_tied, axis=-1) <= missing
    return np.asarray(is_larger | is_tied)


def threshold_allocation(
    importance: FloatArray,
    lower: IntArray,
    upper: IntArray,
    budget: Any,
    *,
    costs: FloatArray | float = 1.0,
    divisor: DivisorMethod = WRIGHT,
) -> IntArray:
    """Return the n_h (…, H) of the units whose priority is at least t, for the lowest t within the budget.

    The number of units with a priority of at least t has a closed form, and t is found to within half a unit
    of each stratum. Away from the bounds the number is proportional to 1/t, which predicts t. The first steps
    evaluate values on alternating sides of the prediction, and further steps bisect. If the lower bounds
    exceed the budget, they are returned.

    Parameters
    ----------
    importance : float (…, H)
        a_h, in (0, 1].
    lower, upper : int (…, H)
    budget : float, or float (…, 1)
        In labels, or in the unit of `costs`.
    costs : float (H,)
        Cost of a label in each stratum.
    divisor : DivisorMethod
    """
    # `low`, `middle` and `high` are logarithms of t: the units above `high` fit the budget.
    high = np.ones((*importance.shape[:-1], 1))
    low = np.log(importance.min(axis=-1, keepdims=True)) - np.log(np.max(upper, initial=0) + 2.0)
    best_n_h = np.asarray(lower, dtype=np.float64)
    lower_bounds = best_n_h
    upper_bounds = np.asarray(upper, dtype=np.float64)
    unit_costs = np.broadcast_to(np.asarray(costs, dtype=np.float64), importance.shape[-1:])[:, None]
    middle = np.log((importance @ unit_costs) / np.maximum(budget, 1.0))
    for step in range(_MAX_SEARCH_STEPS):
        if step > len(_BRACKET_MARGINS):
            middle = (low + high) / 2.0
        middle = np.minimum(np.maximum(middle, low), high)
        ratio = np.minimum(importance * np.exp(-middle), _MAX_RATIO)
        counts = np.minimum(np.maximum(divisor.count(ratio), lower_bounds), upper_bounds)
        cost = counts @ unit_costs
        fits = cost <= budget
        best_n_h = np.where(fits, counts, best_n_h)
        high = np.where(fits, middle, high)
        low = np.where(fits, low, middle)
        # Half a unit: the caller compares the remaining candidates exactly.
        if (high - low).max() * (counts.max() + 2.0) < 0.5:
            break
        if step < len(_BRACKET_MARGINS):
            is_between_bounds = (counts > lower_bounds) & (counts < upper_bounds)
            variable_cost = np.where(is_between_bounds, counts, 0.0) @ unit_costs
            variable_budget = np.maximum(budget - cost + variable_cost, 1.0)
            margin = _BRACKET_MARGINS[step]
            middle += np.log(np.maximum(variable_cost, 1.0) / variable_budget)
            middle += np.where(fits, -margin, margin)
    return best_n_h.astype(np.int64)


def check_budget(budget: object, population_size: float = math.inf) -> None:
    """Raise a `BudgetError` unless the budget is a whole number from 1 to N."""
    allowed = "1 to N, the number of units"
    if math.isfinite(population_size):
        allowed = f"1 to {population_size:,.0f}"
    if not isinstance(budget, numbers.Integral) or isinstance(budget, bool) or int(budget) < 1:
        raise BudgetError(
            "the budget must be a whole number of units",
            given=repr(budget),
            allowed=allowed,
            action="Give the number of units that people can label, such as 100.",
        )
    if int(budget) > population_size:
        raise BudgetError(
            "the budget is larger than the population",
            given=budget,
            allowed=allowed,
            action="To label all units, use their number as the budget.",
        )


def whole_number(name: str, value: object) -> int:
    """Return a nonnegative whole number as an int.

    Fractions, negative numbers, booleans and other types raise `InputError`.
    """
    array = np.asarray(value)
    is_number = array.ndim == 0 and array.dtype.kind in "iuf" and np.isfinite(array)
    if is_number and array >= 0 and array == int(array):
        return int(array)
    raise InputError(f"{name} must be a whole number", given=repr(value), allowed="0, 1, 2, …")


def whole_numbers_per_stratum(name: str, values: Any, length: int | None = None) -> IntArray:
    """Return `values` as read-only integers (H,); one number is repeated if a length is given."""
    if length is not None and np.ndim(values) == 0:
        return frozen(np.full(length, whole_number(name, values), dtype=np.int64))
    is_integer_vector = isinstance(values, np.ndarray) and values.dtype == np.int64 and values.ndim == 1
    if is_integer_vector and length in (None, len(values)) and np.all(values >= 0):
        return frozen(values)
    if length is None:
        length = len(finite_vector(name, values))
    array = one_per_stratum(name, values, length)
    fractional_strata = np.flatnonzero(array != np.floor(array))
    if len(fractional_strata):
        h = int(fractional_strata[0])
        raise InputError(
            f"{name} must be whole numbers", given=f"{array[h]:g} in stratum {h}", allowed="0, 1, 2, …"
        )
    return frozen(array.astype(np.int64))


def neyman_importance(sizes: AnyArray, name: str, standard_deviations: object) -> FloatArray:
    """Return N_h S_h / max S_h (H,). The division avoids overflow; only ratios affect an allocation.

    `name` is the name of the deviations in errors.
    """
    deviations = one_per_stratum(name, standard_deviations, len(sizes))
    largest = deviations.max()
    if largest > 0:
        return np.asarray(sizes * (deviations / largest))
    return np.zeros(len(deviations))


def one_per_stratum(
    name: str,
    values: object,
    count: int,
    minimum: float = 0.0,
    *,
    entity: str = "stratum",
    max_axes: int = 1,
) -> FloatArray:
    """Return `values` as a validated, read-only array (…, count) of finite numbers.

    Parameters
    ----------
    name : str
        Name of the argument in errors.
    values : array-like (…, count)
    count : int
        Length of the last axis.
    minimum : float
        Smallest allowed value.
    entity : str
        To what an entry of the last axis belongs, for errors.
    max_axes : int
        Largest number of axes.
    """
    array = np.atleast_1d(numeric_array(name, values))
    refuse_nonfinite(name, array)
    if array.ndim > max_axes or array.shape[-1] != count:
        shape = f"{' × '.join(map(str, array.shape))} for {count}"
        raise InputError(f"{name} must have one entry per {entity}", given=shape, allowed="as many")
    if np.any(array < minimum):
        raise InputError(f"{name} must not be negative", given=f"{array.min():g}", allowed="0 or more")
    return frozen(array)


# Relative rounding error of sums of costs.
_COST_ROUNDING = 1e-12

# Allocations of later rounds that depend on the labels of earlier ones: of a second round, and of any number
# of rounds (Kumar & Raj 2016).
LABEL_BASED_METHODS = ("opt-a1", "opt-a2")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation(Record):
    """The number of labels of each stratum.

    Parameters
    ----------
    n_h : int (H,)
        Labels per stratum; their sum is `budget`.
    method : str
        Name of the allocation method.
    budget : int
        Total number of labels.
    minimum, maximum : int (H,)
        Bounds on n_h.
    notes : tuple of str
        Notes for the report.

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
        has_equal_shapes = self.n_h.ndim == 1 and self.n_h.shape == self.minimum.shape == self.maximum.shape
        is_within_bounds = has_equal_shapes and np.all(
            (self.n_h >= self.minimum) & (self.n_h <= self.maximum)
        )
        if not is_within_bounds or self.n_h.sum() != self.budget:
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
        """Return a JSON-serializable dict."""
        names = ("method", "budget", "n_h", "minimum", "maximum", "notes")
        return plain_fields(self, names)

    @classmethod
    def from_dict(cls, description: JsonMapping) -> Allocation:
        """Return the allocation that `to_dict` described."""
        return cls(**description)


# Notes of an allocation.
_UNSCALED_NOTE = "There is no proxy, or it only orders the units: all strata are treated as equally variable."
_KNAPSACK_NOTE = (
    "These are the best whole numbers that were found within the cost budget; finding the exact optimum is "
    "a knapsack problem."
)

# Returns the importance a_h (H,) of the strata from their moments, N_h (H,) and the options of `allocate`.
ImportanceFunction = Callable[[Moments, FloatArray, Mapping[str, Any]], FloatArray]


def _standard_deviations(strata: Moments, options: Mapping[str, object]) -> FloatArray:
    """Return S_h (H,): the option if it is given, otherwise those implied by the proxy, otherwise ones."""
    deviations = options["standard_deviations"]
    if deviations is None:
        return strata.standard_deviations
    return one_per_stratum("standard_deviations", deviations, strata.n_strata)


def _neyman_importance(strata: Moments, sizes: FloatArray, options: Mapping[str, object]) -> FloatArray:
    """Return N_h S_h (H,)."""
    return neyman_importance(sizes, "standard_deviations", _standard_deviations(strata, options))


def _robust_importance(strata: Moments, sizes: FloatArray, options: Mapping[str, object]) -> FloatArray:
    """Return N_h S_h (H,), with S_h averaged over possible miscalibrations of the proxy.

    Neyman allocation assumes that the proxy is calibrated. In a stratum where a model has a confidence of
    99.9% but an accuracy of 98%, the true S_h is four times the plug-in value. Where a judge has only the
    scores 0 and 1, the plug-in S_h is 0, and the stratum would get only its minimum. Measured by
    `benchmarks/robust_allocation.py`.
    """
    if strata.scaled:
        return sizes * expected_deviations(strata)
    return sizes


def _stratppi_importance(strata: Moments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    """Return N_h σ_h (H,) with σ_h² = (1 − λ)² Var(ẑ) + mean of Var(z | x), the plug-in of Var(z − λẑ).

    Fisch et al. (2024), eq. 20–21, with the mean of the autorater as the prediction: the mean of z − λẑ given
    x is (1 − λ)ẑ, and its variance given x is that of z.
    """
    if not strata.scaled:
        return sizes
    lam_values: Any = 1.0
    if options["lam"] is not None:
        lam_values = options["lam"]
    if np.ndim(lam_values) == 0:
        lam_values = np.full(len(sizes), lam_values)
    lam = one_per_stratum("lam", lam_values, len(sizes), -np.inf)
    variances = (1.0 - lam) ** 2 * strata.proxy_variances + strata.conditional_variances
    return np.asarray(sizes * np.sqrt(variances))


# The importance a_h (H,) of each method by name: the allocation minimises Σ a_h² / n_h.
ALLOCATION_METHODS: dict[str, ImportanceFunction] = {
    "proportional": lambda strata, sizes, options: sizes,
    "equal": lambda strata, sizes, options: (sizes > 0).astype(np.float64),
    "neyman": _neyman_importance,
    "robust": _robust_importance,
    "power": lambda strata, sizes, options: np.sqrt(sizes) * _standard_deviations(strata, options),
    "cost-optimal": _neyman_importance,
    "stratppi": _stratppi_importance,
}

# Options of `allocate`, and the methods that use them; with other methods an option is an error.
_METHODS_BY_OPTION = {
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
    """Allocate a budget of labels to strata.

    Parameters
    ----------
    strata : Strata
        Sizes and plug-in moments per stratum.
    budget : int
        Total number of labels. Only "cost-optimal" has none.
    method : str
        "robust" (default: Neyman allocation, with S_h averaged over possible miscalibrations of the proxy),
        "proportional", "equal", "neyman", "power" (Bankier 1988: n_h ∝ √N_h S_h, a compromise between the
        precision of the overall mean and of the stratum means), "cost-optimal" (Cochran, eq. 5.23:
        n_h ∝ N_h S_h / √c_h, the best integers found within the cost budget) or "stratppi" (Fisch et al.
        2024, eq. 18-21: n_h ∝ N_h σ_h for the residual z − λẑ).
    minimum, maximum : int or int (H,)
        Bounds on n_h. The default minimum is 2, which is sufficient for a variance in every stratum. Strata
        in which an estimand is known by construction get no label.
    standard_deviations : float (H,), optional
        S_h instead of those implied by the proxy, for "neyman", "power" and "cost-optimal".
    costs : float (H,), cost_budget : float
        Cost of a label in each stratum, and total cost, for "cost-optimal".
    lam : float or float (H,), optional
        λ of the residual for "stratppi". Default: 1.

    Returns
    -------
    Allocation

    Raises
    ------
    BudgetError
        If no allocation within the bounds has the sum `budget`.
    InputError
        If the method is unknown, or a required option is missing.

    Notes
    -----
    The integers are optimal within the bounds (Wright 2012, `stratal.strata.allocation`). Measurements of
    the robust allocation are in docs/methods/allocation.md.

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
    for name, methods in _METHODS_BY_OPTION.items():
        if options[name] is not None and method not in methods:
            allowed = f"with method {', '.join(map(repr, methods))}"
            raise InputError(f"method '{method}' takes no {name}", allowed=allowed)
    bounds = _bounds_of_strata(strata, minimum, maximum)
    notes: tuple[str, ...] = ()
    by_cost = method == "cost-optimal"
    if by_cost and (costs is None or cost_budget is None or budget is not None):
        raise InputError(
            "method 'cost-optimal' requires costs, and a budget in money rather than in labels",
            given="budget" if budget is not None else None,
            action="Give a cost per stratum and the total cost: costs=, cost_budget=.",
        )
    sizes = bounds.sizes.astype(np.float64)
    if by_cost:
        unit_costs, cost_limit = check_costs(bounds, costs, cost_budget)
        importance = _neyman_importance(strata, sizes, options)
        if not importance.any():
            importance = sizes
        n_h = cost_allocation(importance, unit_costs, cost_limit, bounds)
        notes = (_KNAPSACK_NOTE, f"The labels cost {float(np.asarray(costs) @ n_h):g}.")
    elif budget is None:
        raise InputError(
            "budget is missing",
            action="Give the number of labels; only the method 'cost-optimal' works without it.",
        )
    else:
        importance = ALLOCATION_METHODS[method](strata, sizes, options)
        n_h = optimal_integers(importance, bounds, bounds.check(budget))
        if method not in ("proportional", "equal") and standard_deviations is None and not strata.scaled:
            notes = (_UNSCALED_NOTE,)
    return Allocation(
        n_h=n_h, method=method, budget=int(n_h.sum()), minimum=bounds.lower, maximum=bounds.upper, notes=notes
    )


def allocate_budgets(strata: Moments, budgets: IntArray, method: str, minimum: Any = 2) -> IntArray:
    """Return the n_h (B, H) of several budgets (B,); each row equals the result of `allocate`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.5] * 20)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> allocate_budgets(strata, np.array([20, 50]), "robust")
    array([[15,  5],
           [37, 13]])
    """
    bounds = _bounds_of_strata(strata, minimum, None)
    for budget in budgets:
        bounds.check(budget)
    options = dict.fromkeys(_METHODS_BY_OPTION)
    importance = ALLOCATION_METHODS[method](strata, bounds.sizes.astype(np.float64), options)
    importance_by_budget = np.broadcast_to(importance, (len(budgets), len(importance)))
    return optimal_integers(importance_by_budget, bounds, budgets[:, None])


def _bounds_of_strata(strata: Moments, minimum: Any, maximum: Any) -> AllocationBounds:
    """Return the bounds of an allocation. Strata with a known influence get no label."""
    if np.any(strata.is_known):
        if maximum is None:
            maximum = strata.sizes
        minimum = np.where(strata.is_known, 0, minimum)
        maximum = np.where(strata.is_known, 0, maximum)
    return AllocationBounds.read(strata.sizes, minimum, maximum)


def check_costs(bounds: AllocationBounds, costs: Any, cost_budget: Any) -> tuple[FloatArray, float]:
    """Return the validated cost of a label in each stratum (H,), and the limit of the total cost.

    The limit is the cost budget plus a tolerance for rounding. It must be sufficient for the minima.
    """
    unit_costs = one_per_stratum("costs", costs, len(bounds.sizes))
    if not np.all(unit_costs > 0):
        raise InputError("every cost must be positive", given=f"{unit_costs.min():g}", allowed="above 0")
    is_valid = np.ndim(cost_budget) == 0 and np.isfinite(float(cost_budget)) and float(cost_budget) >= 0
    if not is_valid:
        raise InputError("cost_budget must be a finite number", given=cost_budget, allowed="0 or more")
    cost_limit = float(cost_budget) * (1 + _COST_ROUNDING)
    minimum_cost = float(unit_costs @ bounds.lower)
    if minimum_cost > cost_limit:
        raise BudgetError(
            "the budget is below the total cost of the strata's minima",
            given=f"{float(cost_budget):g}",
            allowed=f"at least {minimum_cost:g}",
        )
    return unit_costs, cost_limit


def cost_allocation(
    importance: FloatArray, unit_costs: FloatArray, cost_limit: float, bounds: AllocationBounds
) -> IntArray:
    """Return the n_h (H,) of a greedy search for the minimum of Σ a_h²/n_h with Σ c_h n_h ≤ `cost_limit`.

    It starts from the lower bounds, and adds units in the order of their priority per cost while they fit.

    Parameters
    ----------
    importance, unit_costs : float (H,)
        a_h and c_h.
    cost_limit : float
    bounds : AllocationBounds
    """
    values = importance / np.sqrt(unit_costs)
    upper = np.where(values > 0, bounds.upper, bounds.lower)
    scaled = np.where(values > 0, values / (values.max() or 1.0), 1.0)
    threshold_n_h = threshold_allocation(scaled, bounds.lower, upper, cost_limit, costs=unit_costs)
    # One unit less: the closed form may include one too many. The heap adds the few remaining units.
    n_h = np.maximum(threshold_n_h - 1, bounds.lower)
    remaining_cost = cost_limit - float(unit_costs @ n_h)

    def heap_entry(h: int) -> tuple[float, float, int]:
        value = float(values[h])
        n = int(n_h[h])
        if n:
            priority = value / math.sqrt(n * (n + 1))
        elif value > 0:
            priority = math.inf
        else:
            priority = 0.0
        return -priority, -value, h

    heap = [heap_entry(h) for h in range(len(importance)) if n_h[h] < bounds.upper[h]]
    heapq.heapify(heap)
    while heap:
        h = heapq.heappop(heap)[2]
        # A stratum that does not fit is not pushed again, because the remaining cost only decreases.
        if unit_costs[h] <= remaining_cost:
            n_h[h] += 1
            remaining_cost -= float(unit_costs[h])
            if n_h[h] < bounds.upper[h]:
                heapq.heappush(heap, heap_entry(h))
    return n_h


def proportional(sizes: object, budget: int, minimum: object = 2, maximum: object = None) -> IntArray:
    """Return n_h ∝ N_h, the optimal allocation if all S_h are equal (Cochran, 5.3).

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds. If a stratum is smaller than its minimum, the minimum is its size. A maximum of None is the
        size.

    Returns
    -------
    int (H,)
        n_h, whose sum is the budget.

    Raises
    ------
    BudgetError
        If no allocation within the bounds has the sum `budget`.
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
    """Return n_h as equal as the bounds allow: the optimal allocation if W_h S_h is constant.

    Parameters, errors and result are those of `proportional`. The first strata get the remainder.

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
    """Return the integers n_h ∝ N_h S_h that minimise the variance Σ W_h² (1 − f_h) S_h² / n_h.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    standard_deviations : float (H,)
        S_h, in the outcome's units; zeros are allowed.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds. If a stratum is smaller than its minimum, the minimum is its size. A maximum of None is the
        size.

    Returns
    -------
    int (H,)
        n_h, whose sum is the budget. Ties go to the lowest index.

    Raises
    ------
    BudgetError
        If no allocation within the bounds has the sum `budget`.
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
    importance = neyman_importance(bounds.sizes, "standard_deviations", standard_deviations)
    return optimal_integers(importance, bounds, bounds.check(budget))
