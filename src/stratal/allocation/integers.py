"""Optimal whole numbers of labels: Wright's priority values, taken from the highest down.

To minimise Σ a_h² / n_h with Σ n_h fixed, the (n + 1)-th unit of stratum h is worth a_h / √(n (n + 1)): the
square is what it takes off the sum. The values fall with n, so the units with the highest values are the
optimum, within any bounds (Wright 2012, "The equivalence of Neyman optimum allocation for sampling and equal
proportions for apportioning the U.S. House of Representatives"). A larger budget goes further down the same
list, so it never takes a unit back.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from stratal.allocation.bounds import Bounds
from stratal.arrays import BoolArray, FloatArray, IntArray

_STEPS = 200
_LARGEST_RATIO = 1e12
_NEGLIGIBLE = 1e-200


def optimal_integers(importance: FloatArray, bounds: Bounds, budget: int) -> IntArray:
    """Return the n_h (H,) that minimise Σ a_h²/n_h with Σ n_h = budget, within the bounds.

    Ties go to the stratum with the lowest index. Where a_h is 0 a stratum keeps its lower bound until all
    others are at their upper bounds; what is left then is spread in proportion to the sizes, by the same
    rule.

    Parameters
    ----------
    importance : float (H,)
        a_h, for instance N_h S_h; finite, not negative.
    bounds : Bounds
        Lower and upper bounds; a lower bound of 0 gives way first to the largest a_h.
    budget : int
        Checked by `Bounds.check`.

    Examples
    --------
    >>> optimal_integers(np.array([15.6, 0.4, 1.08]), Bounds.read([8, 10, 9], minimum=1), 12)
    array([8, 1, 3])
    """
    n_h = bounds.lower.copy()
    matters = importance > importance.max() * _NEGLIGIBLE
    n_h[matters] = bounds.upper[matters]
    left = budget - int(n_h.sum())
    if left < 0:
        n_h[matters] = _highest_priorities(importance, bounds, matters, left + int(n_h[matters].sum()))
    elif left > 0:
        rest = ~matters & (bounds.sizes > 0)
        sizes = bounds.sizes.astype(np.float64)
        n_h[rest] = _highest_priorities(sizes, bounds, rest, left + int(n_h[rest].sum()))
    return n_h


def _highest_priorities(importance: FloatArray, bounds: Bounds, members: BoolArray, budget: int) -> IntArray:
    """Return n_h of the member strata, all of positive importance, when they share `budget`."""
    a = importance[members] / importance[members].max()
    lower, upper = bounds.lower[members].copy(), bounds.upper[members]
    empty = np.flatnonzero((lower == 0) & (upper > 0))
    left = budget - int(lower.sum())
    # The first unit of an empty stratum has an infinite value: the larger importance goes first.
    lower[empty[np.argsort(-a[empty], kind="stable")][:left]] = 1
    if left <= len(empty):
        return lower
    start = just_below(a, lower, upper, np.ones(len(a)), float(budget))
    return _by_heap(a, start, upper, budget - int(start.sum()))


def just_below(a: FloatArray, lower: IntArray, upper: IntArray, costs: FloatArray, budget: float) -> IntArray:
    """Return a point that greedy passes through on its way, a unit or so per stratum short of the budget.

    The number of units whose value is at least t has a closed form: the t that just fits is found by
    bisection.
    """
    low, high = math.log(a.min() / (float(upper.max()) + 2.0)), 0.0
    best = lower
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        counts = np.clip(_units_worth(a, math.exp(middle)), lower, upper)
        spent = float(costs @ counts)
        if spent <= budget:
            best, high = counts, middle
            if budget - spent <= costs.sum():
                break
        else:
            low = middle
    # One back, against rounding in the closed form; the heap puts it back if it was right.
    return np.maximum(best - 1, lower)


def _units_worth(a: FloatArray, threshold: float) -> IntArray:
    """Return for each stratum the number of units whose value a/√(n(n + 1)) is at least the threshold."""
    ratio = np.minimum(a / threshold, _LARGEST_RATIO)
    last = np.floor((np.sqrt(1.0 + 4.0 * ratio * ratio) - 1.0) / 2.0)
    return np.asarray(last.astype(np.int64) + 1)


def _by_heap(a: FloatArray, start: IntArray, upper: IntArray, units: int) -> IntArray:
    """Return `start` with `units` more, one at a time to the highest value, the lowest index among equals."""
    n_h = start.tolist()
    limits, weights = upper.tolist(), a.tolist()
    heap = [(-priority(weights[h], n_h[h]), h) for h in range(len(n_h)) if n_h[h] < limits[h]]
    heapq.heapify(heap)
    for _ in range(units):
        h = heap[0][1]
        n_h[h] += 1
        if n_h[h] < limits[h]:
            heapq.heapreplace(heap, (-priority(weights[h], n_h[h]), h))
        else:
            heapq.heappop(heap)
    return np.array(n_h, dtype=np.int64)


def priority(importance: float, n: int) -> float:
    """Return Wright's value of the unit after the n-th, a/√(n(n + 1)), n ≥ 1.

    Examples
    --------
    >>> priority(6.0, 2) == 6.0 / math.sqrt(6)
    True
    """
    return importance / math.sqrt(n * (n + 1))
