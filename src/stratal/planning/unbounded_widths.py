"""The half-width to expect where the outcome has no bounds: that of the skewness-corrected interval.

That interval reaches further than Student's t by what the labels' skewness shows, and few labels show some
even where the outcome has none. So the width is an average over sets of labels: those that are in, and others
about each stratum's mean, whose residuals are drawn from the residuals seen so far, or from a normal
distribution where none are.
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.intervals.skewed import mean_skewness, skewness_corrected
from stratal.weighting.stratum_moments import satterthwaite
from stratal.weighting.weighting import stratified_factors

SETS = 64
"""Sets of labels that a width is averaged over."""

_SEED = 20_261_121
_FEWEST_RESIDUALS = 10


def expected_unbounded(
    sizes: IntArray,
    n_h: IntArray,
    variances: FloatArray,
    confidence_level: float,
    seen: tuple[FloatArray, IntArray] | None = None,
) -> float:
    """Return half the mean width of the default interval of a stratified mean without bounds.

    Parameters
    ----------
    sizes, n_h : int (H,)
        N_h and labels, two at least of each stratum.
    variances : float (H,)
        S_h².
    confidence_level : float
    seen : (float (m,), int (m,)), optional
        Outcome and stratum of labels that are in already.

    Examples
    --------
    >>> sizes, n_h = np.array([10_000]), np.array([30])
    >>> round(expected_unbounded(sizes, n_h, np.array([1.0]), 0.95) / (2.045 / 30**0.5), 2)
    1.03
    """
    known, of_known = (np.empty(0), np.empty(0, np.int64)) if seen is None else seen
    own, residuals = _centred(known, of_known, len(sizes))
    squares, cubes = np.zeros((SETS, len(sizes))), np.zeros((SETS, len(sizes)))
    for h, number in enumerate((n_h - np.bincount(of_known, minlength=len(sizes))).tolist()):
        new = np.sqrt(variances[h]) * _drawn(residuals, max(number, 0), h)
        labels = np.concatenate([np.repeat(own[of_known == h][:, None], SETS, axis=1), new])
        labels -= labels.mean(axis=0)
        squares[:, h], cubes[:, h] = np.sum(labels**2, axis=0), np.sum(labels**3, axis=0)
    counts, factors = n_h.astype(np.float64), stratified_factors(n_h, sizes)
    spreads = squares / np.maximum(counts - 1.0, 1.0)
    parts = factors * spreads
    low, high = skewness_corrected(
        0.0,
        np.sqrt(parts.sum(axis=1)),
        mean_skewness(counts, factors, spreads, cubes),
        degrees_of_freedom=np.maximum(satterthwaite(parts, np.maximum(counts - 1.0, 0.0)), 1.0),
        confidence_level=confidence_level,
    )
    return float(np.mean(high - low)) / 2.0


def _centred(known: FloatArray, stratum: IntArray, n_strata: int) -> tuple[FloatArray, FloatArray]:
    """Return the labels less their stratum's mean (m,), and residuals of variance 1 if there are enough."""
    counts = np.bincount(stratum, minlength=n_strata)
    means = np.bincount(stratum, known, minlength=n_strata) / np.maximum(counts, 1)
    own = known - means[stratum]
    freedom = int(np.maximum(counts - 1, 0).sum())
    spread = float(np.sum(own**2)) / max(freedom, 1)
    enough = freedom >= _FEWEST_RESIDUALS and spread > 0
    return own, own / np.sqrt(spread) if enough else np.empty(0)


def _drawn(residuals: FloatArray, number: int, stratum: int) -> FloatArray:
    """Return residuals (number, SETS) for one stratum; more of them begin with the same ones."""
    random = np.random.Generator(np.random.PCG64((_SEED, stratum)))
    if len(residuals) == 0:
        return random.standard_normal((number, SETS))
    return residuals[random.integers(len(residuals), size=(number, SETS))]
