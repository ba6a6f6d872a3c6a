"""The optimal allocation in real numbers, within bounds: what the integers are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.strata.allocation import neyman_importance
from stratal.strata.integer_allocation import AllocationBounds


def real_optimum(
    sizes: Any, standard_deviations: Any, budget: float, minimum: Any = 2, maximum: Any = None
) -> FloatArray:
    """Return the real-valued Neyman allocation under bounds: n_h = N_h S_h / c, cut off at the bounds.

    Bounds are as in `neyman`; the sum is the budget up to rounding.

    Notes
    -----
    Cochran, "Sampling techniques", 5.5 and 5.8; both bounds: Wesołowski, Wieczorkowski and Wójciak (2021).

    Examples
    --------
    >>> real_optimum([3000, 4000, 5000, 2000], [48, 79, 76, 16], 1284,
    ...              [100, 90, 500, 50], [300, 400, 800, 90]).round(4)
    array([228.9496, 400.    , 604.1727,  50.8777])
    """
    bounds = AllocationBounds.read(sizes, minimum, maximum)
    bounds.check(np.floor(budget) if np.isfinite(budget) else budget)
    a = neyman_importance(bounds.sizes, "standard_deviations", standard_deviations)
    n_h = bounds.lower.astype(np.float64)
    matters = a > 0
    n_h[matters] = bounds.upper[matters]
    left = float(budget) - float(n_h.sum())
    members, weights = (matters, a) if left < 0 else (~matters, bounds.sizes.astype(np.float64))
    members = members & (weights > 0)
    if left != 0 and members.any():
        share = left + float(n_h[members].sum())
        n_h[members] = _between(weights[members], bounds.lower[members], bounds.upper[members], share)
    return n_h


def _between(a: FloatArray, lower: IntArray, upper: IntArray, budget: float) -> FloatArray:
    """Return clip(c·a, lower, upper) with the c that spends the budget, by its break points."""
    corners = np.unique(np.concatenate([lower / a, upper / a]))
    first, last = 0, len(corners) - 1
    while last - first > 1:
        middle = (first + last) // 2
        if np.clip(corners[middle] * a, lower, upper).sum() <= budget:
            first = middle
        else:
            last = middle
    n_h = np.clip(corners[first] * a, lower, upper)
    free = (lower / a <= corners[first]) & (upper / a > corners[first])
    if free.any():
        n_h[free] += (budget - n_h.sum()) * a[free] / a[free].sum()
    return np.asarray(n_h)
