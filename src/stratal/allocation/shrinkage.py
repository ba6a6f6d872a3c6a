"""The robust allocation: Neyman's rule on deviations that a miscalibrated proxy cannot drive to zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.allocation.bounds import Bounds
from stratal.allocation.integers import optimal_integers
from stratal.allocation.rules import per_stratum
from stratal.arrays import FloatArray, IntArray, finite_vector
from stratal.errors import InputError

SHRINKAGE = 0.2


def robust(
    sizes: Any,
    proxy_means: Any,
    proxy_variances: Any,
    conditional_variances: Any,
    budget: int,
    minimum: Any = 2,
    maximum: Any = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> IntArray:
    """Return n_h by Neyman's rule on shrunk standard deviations.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    proxy_means : float (H,)
        Mean of E[z | x] in each stratum.
    proxy_variances : float (H,)
        Variance of E[z | x] within each stratum (divisor N_h).
    conditional_variances : float (H,)
        Mean of Var(z | x) in each stratum.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds on n_h as in `neyman`.
    bounds : (float, float)
        The outcome's limits; infinite where it has none.

    Examples
    --------
    >>> robust([500, 500], [0.5, 0.999], [0.0, 0.0], [0.25, 0.001], 20)
    array([14,  6])
    """
    limits = Bounds.read(sizes, minimum, maximum)
    deviations = robust_standard_deviations(
        sizes, proxy_means, proxy_variances, conditional_variances, bounds
    )
    return optimal_integers(limits.sizes * deviations, limits, limits.check(budget))


def robust_standard_deviations(
    sizes: Any,
    proxy_means: Any,
    proxy_variances: Any,
    conditional_variances: Any,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> FloatArray:
    """Return the shrunk S_h (H,).

    Examples
    --------
    >>> robust_standard_deviations([500, 500], [0.5, 1.0], [0.0, 0.0], [0.25, 0.0]).round(3)
    array([0.497, 0.218])
    """
    limits = Bounds.read(sizes)
    means = finite_vector("proxy_means", proxy_means)
    variances = per_stratum(limits, "proxy_variances", proxy_variances) + per_stratum(
        limits, "conditional_variances", conditional_variances
    )
    if len(means) != len(limits.sizes):
        raise InputError(
            "proxy_means must have one entry per stratum",
            given=f"{len(means)} for {len(limits.sizes)} strata",
        )
    weights = limits.sizes / max(1, limits.sizes.sum())
    low, high = bounds
    if not np.isfinite(high - low):
        return np.asarray(np.sqrt((1.0 - SHRINKAGE) * variances + SHRINKAGE * float(weights @ variances)))
    largest = np.maximum((means - low) * (high - means), 0.0)
    shrunk = means + SHRINKAGE * (float(weights @ means) - means)
    allowed = np.maximum((shrunk - low) * (high - shrunk), 0.0)
    pooled = float(weights @ variances) / max(float(weights @ largest), np.finfo(float).tiny)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(largest > 0, variances / largest, pooled)
    return np.asarray(np.sqrt(np.minimum(spread, 1.0) * allowed))
