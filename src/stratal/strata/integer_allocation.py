"""The optimal integers of an allocation, within bounds.

To minimise Σ a_h² / n_h with Σ n_h fixed, the (n + 1)-th unit of stratum h has the priority a_h / √(n (n +
1)). Its square is the amount by which the unit reduces the sum. The priorities decrease with n, so the units
with the highest priorities are the optimum, within any bounds (Wright 2012, "The equivalence of Neyman
optimum allocation for sampling and equal proportions for apportioning the U.S. House of Representatives"). A
larger budget adds units with lower priorities, so it never removes a unit.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import NO_DIVISOR, BoolArray, FloatArray, IntArray, Record
from stratal.errors import BudgetError, InputError
from stratal.strata.arguments import whole_number, whole_numbers_per_stratum

# Maximum number of steps of the threshold search: bisection then determines all digits of a double.
_MAX_SEARCH_STEPS = 60

# Margins on the log threshold for the first steps of the search. Each step evaluates a value slightly below
# or above the predicted threshold, on alternating sides, so that two steps enclose it. The margins decrease
# because the first prediction ignores the bounds, and later ones ignore only the rounding of counts.
_BRACKET_MARGINS = (0.05, 0.02, 0.01, 0.004)

# Limit of a / t, which avoids overflow. No stratum has as many units as the count at this ratio.
_MAX_RATIO = 1e12

# Priority of units that cannot be added. The priorities of all others are at least 0.
_UNAVAILABLE = -1.0

# An a_h below this share of the largest counts as 0, because its square would underflow.
_NEGLIGIBLE_SHARE = 1e-200

# The threshold search leaves at most four units of a stratum undecided. These are compared exactly.
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


def _wright_priority(n: FloatArray) -> FloatArray:
    """Return 1 / √(n (n + 1))."""
    return np.asarray(1.0 / np.sqrt(n * (n + 1.0)))


def _wright_count(ratio: FloatArray) -> FloatArray:
    """Return the largest n with n (n − 1) ≤ (a / t)², at least 1."""
    return np.asarray(np.floor((np.sqrt(1.0 + 4.0 * ratio * ratio) - 1.0) / 2.0) + 1.0)


def _webster_priority(n: FloatArray) -> FloatArray:
    """Return 1 / (n + ½)."""
    return np.asarray(1.0 / (n + 0.5))


def _webster_count(ratio: FloatArray) -> FloatArray:
    """Return the largest n with n − ½ ≤ a / t."""
    return np.asarray(np.floor(ratio + 0.5))


# Minimises Σ a_h² / n_h (Wright 2012; equal proportions).
WRIGHT = DivisorMethod(_wright_priority, _wright_count, first_is_infinite=True)
# Rounds budget · a_h / Σ a_h to the nearest integers (Webster; Sainte-Laguë).
WEBSTER = DivisorMethod(_webster_priority, _webster_count, first_is_infinite=False)


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
    is_important = importance > importance.max(axis=-1, keepdims=True) * _NEGLIGIBLE_SHARE
    upper = np.where(is_important, bounds.upper, bounds.lower)
    budget_by_importance = np.minimum(budget, upper.sum(axis=-1, keepdims=True))
    lower = np.broadcast_to(bounds.lower, upper.shape)
    n_h = _add_units(importance, lower, upper, budget_by_importance, divisor)
    if (budget_by_importance < budget).any():
        sizes = np.broadcast_to(bounds.sizes, n_h.shape).astype(np.float64)
        n_h = _add_units(sizes, n_h, np.where(is_important, n_h, bounds.upper), budget, divisor)
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

    Ties go to the stratum with the lowest index. First units with an infinite priority are added in the order
    of decreasing a_h.
    """
    is_empty = (lower == 0) & (upper > 0)
    if divisor.first_is_infinite and is_empty.any():
        remaining = budget - lower.sum(axis=-1, keepdims=True)
        importance_of_empty = np.where(is_empty, importance, _UNAVAILABLE)
        lower = lower + (is_empty & _largest_mask(importance_of_empty, remaining))
    is_extendable = (upper > lower) & (importance > 0)
    scaled = np.where(is_extendable, importance, 0.0)
    largest = np.maximum(scaled.max(axis=-1, keepdims=True), NO_DIVISOR)
    scaled = np.where(is_extendable, scaled / largest, 1.0)
    maximums = np.where(is_extendable, np.minimum(upper, np.maximum(budget, lower)), lower)
    threshold_n_h = threshold_allocation(scaled, lower, maximums, budget, divisor=divisor)
    # The closed form of the counts is rounded and may include one unit too many.
    n_h = np.maximum(threshold_n_h - 1, lower)
    remaining = np.asarray(budget - n_h.sum(axis=-1, keepdims=True))
    candidates = (n_h[..., None] + _CANDIDATE_OFFSETS).astype(np.float64)
    with np.errstate(divide="ignore"):
        priorities = scaled[..., None] * divisor.priority(candidates)
    is_available = candidates < maximums[..., None]
    priorities = np.where(is_available, priorities, _UNAVAILABLE).reshape(*importance.shape[:-1], -1)
    added = _largest_mask(priorities, remaining).reshape(candidates.shape)
    # A matrix product is faster than a sum over a short last axis.
    return np.asarray(n_h + added.astype(np.float64) @ np.ones(len(_CANDIDATE_OFFSETS))).astype(np.int64)


def _largest_mask(values: FloatArray, number: IntArray) -> BoolArray:
    """Return a mask of the `number` (…, 1) largest of the values (…, m); ties go to the lowest index."""
    # Position of the smallest selected value in ascending order; negative if all values are selected.
    position = values.shape[-1] - number
    has_position = (number > 0) & (position >= 0)
    position = np.minimum(np.maximum(position, 0), values.shape[-1] - 1)
    smallest = np.take_along_axis(np.sort(values, axis=-1), position, axis=-1)
    smallest = np.where(has_position, smallest, np.where(number > 0, -np.inf, np.inf))
    is_larger = values > smallest
    is_tied = values == smallest
    n_selected_ties = number - np.count_nonzero(is_larger, axis=-1, keepdims=True)
    if (np.count_nonzero(is_tied, axis=-1, keepdims=True) > n_selected_ties).any():
        is_tied &= np.cumsum(is_tied, axis=-1) <= n_selected_ties
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

    The number of units with a priority of at least t has a closed form. The search for t ends when it is
    exact to half a unit of each stratum. Away from the bounds the number is proportional to 1/t, which
    predicts t (see `_BRACKET_MARGINS`). Further steps bisect. If the lower bounds exceed the budget, they are
    returned. The a_h are in (0, 1], and the budget, also (…, 1), has the unit of the costs of a label (H,).
    """
    # `low`, `middle` and `high` are logarithms of t. The units with a priority of at least `high` are within
    # the budget.
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
            # The strata at their bounds have fixed costs.
            variable_cost = np.where(is_between_bounds, counts, 0.0) @ unit_costs
            variable_budget = np.maximum(budget - cost + variable_cost, 1.0)
            margin = _BRACKET_MARGINS[step]
            middle += np.log(np.maximum(variable_cost, 1.0) / variable_budget)
            middle += np.where(fits, -margin, margin)
    return best_n_h.astype(np.int64)


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
    importance_per_cost = importance / np.sqrt(unit_costs)
    is_important = importance_per_cost > 0
    upper = np.where(is_important, bounds.upper, bounds.lower)
    scaled = np.where(is_important, importance_per_cost / (importance_per_cost.max() or 1.0), 1.0)
    threshold_n_h = threshold_allocation(scaled, bounds.lower, upper, cost_limit, costs=unit_costs)
    # One unit less: the closed form may include one too many. The heap adds the few remaining units.
    n_h = np.maximum(threshold_n_h - 1, bounds.lower)
    remaining_cost = cost_limit - float(unit_costs @ n_h)

    def heap_entry(h: int) -> tuple[float, float, int]:
        """Return the entry of a stratum: the heap has the highest priority first, then the importance."""
        a = float(importance_per_cost[h])
        n = int(n_h[h])
        if n:
            priority = a / math.sqrt(n * (n + 1))
        elif a > 0:
            priority = math.inf
        else:
            priority = 0.0
        return -priority, -a, h

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
