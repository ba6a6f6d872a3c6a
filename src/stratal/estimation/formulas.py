"""The papers' closed forms, each as printed, to compare with the simulated values.

[F] Fogliato et al. (2024), [K] Kumar & Raj (2016), [S] Fisch et al. (2024). S² has divisor N − 1, as in [F]
and [K]. [K] assumes draws with replacement and leaves 1 − f out; its eq. 2, 5, 7, 8 and 10 put the divisor
N_h − 1 where such draws have N_h, and so overstate each S_h² by N_h/(N_h − 1).
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray


def simple_random(variance: float, n: int, size: int) -> float:
    """Return [F] eq. 3, (1 − f)/n S²: the HT mean under simple random sampling (exact).

    Examples
    --------
    >>> simple_random(0.25, 10, 100)
    0.0225
    """
    return (1.0 - n / size) / n * variance


def proportional(sizes: IntArray, variances: FloatArray, n: int) -> float:
    """Return [F] eq. 4, (1 − f)/n Σ W_h S_h²: the HT mean under proportional allocation, n_h not rounded.

    Examples
    --------
    >>> round(proportional(np.array([50, 50]), np.array([0.25, 0.05]), 10), 6)
    0.0135
    """
    size = sizes.sum()
    return float((1.0 - n / size) / n * (sizes / size) @ variances)


def neyman(sizes: IntArray, variances: FloatArray, n: int) -> float:
    """Return [F] eq. 5, (Σ W_h S_h)²/n − Σ W_h S_h²/N: the HT mean under Neyman allocation, n_h not rounded.

    Examples
    --------
    >>> round(neyman(np.array([50, 50]), np.array([0.25, 0.01]), 10), 6)
    0.0077
    """
    weights = sizes / sizes.sum()
    return float((weights @ np.sqrt(variances)) ** 2 / n - weights @ variances / sizes.sum())


def stratified(
    sizes: IntArray, variances: FloatArray, counts: IntArray, *, with_replacement: bool = False
) -> float:
    """Return Σ W_h² (1 − f_h) S_h²/n_h, the exact variance for whole n_h (Cochran, eq. 5.6).

    With replacement 1 − f_h becomes 1 − 1/N_h, which makes S_h² the variance with divisor N_h.

    Examples
    --------
    >>> round(stratified(np.array([50, 50]), np.array([0.25, 0.05]), np.array([5, 5])), 6)
    0.0135
    """
    weights = sizes / sizes.sum()
    left = 1.0 - 1.0 / sizes if with_replacement else 1.0 - counts / sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = weights**2 * left * variances / counts
    return float(np.where(variances > 0, parts, 0.0).sum())
