"""The number of units with a property that no label has."""

from __future__ import annotations

import numpy as np

from stratal.arrays import AnyArray


def max_unseen_units(sizes: AnyArray, counts: AnyArray, error: float = 0.025) -> float:
    """Return the largest number of units with a property that no label has; no valid limit is smaller.

    It is the largest Σ N_h p_h with Π (1 − p_h)^n_h ≥ `error`, at p_h = 1 − min(1, μ n_h / N_h).

    Parameters
    ----------
    sizes, counts : int (H,)
        N_h, and n_h of at least 1.
    """
    density = counts / sizes
    # Bisection on log μ. exp(−800) is 0 in double precision, and 100 halvings reach rounding.
    low = -800.0
    high = float(-np.log(density.min()))
    for _ in range(100):
        middle = (low + high) / 2.0
        likelihood = float(counts @ np.minimum(0.0, middle + np.log(density)))
        if likelihood < np.log(error):
            low = middle
        else:
            high = middle
    excluded_share = np.minimum(1.0, np.exp(high) * density)
    return float(np.sum(np.where(counts >= sizes, 0.0, sizes * (1.0 - excluded_share))))
