"""The rescaling bootstrap of Rao & Wu (1988): resampled means with the design's own variance.

In each stratum n_h − 1 units are drawn with replacement from the n_h, and their mean's deviation is scaled by
√(1 − f_h), so that the bootstrap variance is W_h² (1 − f_h) s_h² / n_h exactly. A mean needs no weights per
replicate: only sums over drawn units, which is why 10,000 replicates of 1,000 labels take a fraction of a
second.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.intervals.evidence import Evidence
from stratal.intervals.interval import tail_shares

REPLICATES = 10_000
"""So many leave a limit of a 95 % interval a Monte Carlo error of .03 standard errors."""

SEED = 20_240_611
"""Fixed, so that the same labels have the same interval."""

_CELLS_AT_ONCE = 4_000_000
"""Resampled labels that are held at once: 32 MB."""


def bootstrap_bounds(evidence: Evidence, alternative: str) -> Callable[[float], tuple[float, float]]:
    """Return the function from confidence level to bounds, an open side a bound of the outcome."""
    deviations = _deviations(evidence)
    lowest, highest = (-np.inf, np.inf) if evidence.bounds is None else evidence.bounds

    def bounds(level: float) -> tuple[float, float]:
        below, above = tail_shares(level, alternative)
        low = evidence.value + float(np.quantile(deviations, below)) if below > 0 else lowest
        high = evidence.value + float(np.quantile(deviations, 1.0 - above)) if above > 0 else highest
        return float(np.clip(low, lowest, highest)), float(np.clip(high, lowest, highest))

    return bounds


def _deviations(evidence: Evidence) -> FloatArray:
    """Return the deviations of the replicates, scaled for a fitted λ and the target."""
    rng, weighting = np.random.default_rng(SEED), evidence.weighting
    stratum = weighting.stratum
    values, factors = weighting.resampling(evidence.residuals)
    deviations = rescaled_deviations(values, stratum, factors, rng=rng)
    spread = sum(
        factor * float(np.var(values[stratum == h], ddof=1))
        for h, factor in enumerate(factors)
        if np.sum(stratum == h) > 1
    )
    if spread <= 0:
        # Every stratum has one label: nothing to resample, so the normal shape stands in.
        return np.asarray(np.sqrt(evidence.variance) * rng.standard_normal(len(deviations)))
    return np.asarray(deviations * np.sqrt(evidence.variance / spread))


def rescaled_deviations(
    values: FloatArray,
    stratum: IntArray,
    factors: FloatArray,
    *,
    replicates: int = REPLICATES,
    rng: np.random.Generator,
) -> FloatArray:
    """Return bootstrap deviations (replicates,) of Σ W_h ȳ_h.

    Parameters
    ----------
    values : float (n,)
    stratum : int (n,)
    factors : float (H,)
        W_h² (1 − f_h) / n_h: what s_h² is multiplied by in the variance. Strata of one label have no spread
        and add nothing.
    replicates : int
    rng : numpy Generator

    Examples
    --------
    >>> rng = np.random.default_rng(7)
    >>> y, h = rng.normal(size=40), np.zeros(40, dtype=int)
    >>> deviations = rescaled_deviations(y, h, np.array([1 / 40]), rng=rng)
    >>> bool(abs(deviations.var() / (y.var(ddof=1) / 40) - 1) < 0.1)
    True
    """
    deviations = np.zeros(replicates)
    for h, factor in enumerate(factors):
        own = values[stratum == h]
        n = len(own)
        if n < 2 or factor <= 0:
            continue
        centred = own - own.mean()
        batch = max(1, _CELLS_AT_ONCE // (n - 1))
        for start in range(0, replicates, batch):
            some = deviations[start : start + batch]
            drawn = centred[rng.integers(0, n, (len(some), n - 1), dtype=np.int32)]
            # The mean of n_h − 1 draws has variance s_h² / n_h; √(n_h · factor) turns it into factor · s_h².
            some += np.sqrt(factor * n) * drawn.mean(axis=1)
    return deviations
