"""Standard deviations per stratum of outcomes without bounds, from a few labels and the order of the proxy.

A stratum's sample variance is off by √((κ − 1)/n_h) of itself, κ the kurtosis of its outcome: by 30 % at 20
labels of a normal outcome, by 100 % where one unit in twelve is not zero. A second round that believes it
goes to the strata that happened to show a large value, and is worse than none. So the variances are taken to
lie near a line along the strata's order, and each counts for as much as its κ leaves it.
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray
from stratal.strata.moments import SHRINKAGE

_NORMAL = 2.0
"""κ − 1 of a normal outcome; smaller estimates are raised to it."""

_ABOUT_THE_LINE = 1.0 / 7.0
"""Squared relative distance of a stratum's variance from the line: 38 %, so that the line counts for fourteen
labels of a normal outcome. Tried were 1/2 to 1/16: larger ones lose more where strata are alike, smaller ones
gain nothing more there."""

_SLOPE_LABELS = 2.0
"""Prior precision of the slope: the last stratum's variance lies within e^(±1.4) = 4 times the first's, two
times in three."""

_STEEPEST = 3.0
"""Largest slope: S_h grows twentyfold from the first stratum to the last."""

_STEPS = 3
"""Steps of scoring; a fourth changes no allocation."""


def unbounded_deviations(
    counts: FloatArray,
    squares: FloatArray,
    shape: FloatArray,
    *,
    means: FloatArray | None = None,
    kurtoses: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return smoothed S_h (…, H) of an outcome without bounds.

    Parameters
    ----------
    counts : float (…, H)
        n_h.
    squares : float (…, H)
        Σ (z − z̄_h)² over each stratum's labels.
    shape : float (H,)
        What the strata's variances are proportional to by the proxy; ones where it does not say.
    means : float (H,), optional
        Mean proxies, of which the order counts: variances may grow or fall along it.
    kurtoses : float (…, H), optional
        n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² of each stratum's labels; a normal outcome's if left out.
    weights : float (H,), optional
        W_h; equal if left out.

    Notes
    -----
    log S_h² = a + log shape_h + b t_h + e_h with t_h the stratum's place in the order from −1 to 1, b by
    scoring with a normal prior, a from the labels, and e_h shrunk with weight (κ − 1)/τ² labels. κ is pooled
    over strata, each relative to the line's variance, then to the one found: a stratum that shows no large
    value has a small kurtosis of its own.

    Examples
    --------
    >>> counts, squares = np.array([20.0, 20.0, 20.0]), np.array([0.0, 0.0, 19.0])
    >>> unbounded_deviations(counts, squares, np.ones(3)).round(2)
    array([0.38, 0.38, 0.85])
    >>> unbounded_deviations(counts, squares, np.ones(3), kurtoses=np.array([1.0, 1.0, 18.0])).round(2)
    array([0.56, 0.56, 0.61])
    """
    weights = np.full(len(shape), 1.0 / len(shape)) if weights is None else weights
    freedom = np.maximum(counts - 1.0, 0.0)
    flat = shape + SHRINKAGE * (float(weights @ shape) - shape)
    level = _ratio(squares.sum(axis=-1), freedom @ flat)
    flat = np.where(level > 0, level, 1.0)[..., None] * flat  # labels all equal tell no level
    along = _along(means, len(shape))
    slope = np.zeros(level.shape)
    line = flat
    for _ in range(_STEPS):
        noise = _noise(freedom, squares, line, kurtoses)
        score = (squares / line - freedom) @ along / noise - _SLOPE_LABELS * slope
        slope = slope + np.clip(score / (freedom @ along**2 / noise + _SLOPE_LABELS), -2.0, 2.0)
        slope = np.clip(slope, -_STEEPEST, _STEEPEST)
        line = flat * np.exp(slope[..., None] * along)
        scale = _ratio((freedom * flat).sum(axis=-1), (freedom * line).sum(axis=-1))
        line = np.where(scale > 0, scale, 1.0)[..., None] * line
    variances = line
    for _ in range(2):  # then κ about what is found, or a stratum unlike the line would look like noise
        weight = _noise(freedom, squares, variances, kurtoses)[..., None] / _ABOUT_THE_LINE
        variances = (squares + weight * line) / (freedom + weight)
    return np.asarray(np.sqrt(variances))


def _noise(
    freedom: FloatArray, squares: FloatArray, variances: FloatArray, kurtoses: FloatArray | None
) -> FloatArray:
    """Return κ − 1 (…,): n_h times the squared relative error of a stratum's sample variance."""
    if kurtoses is None:
        return np.full(squares.shape[:-1], _NORMAL)
    labels = np.maximum(freedom + 1.0, 1.0)
    fourths = np.sum(kurtoses * (squares / variances) ** 2 / labels, axis=-1)
    return np.asarray(np.maximum(_ratio(fourths, freedom.sum(axis=-1)) - 1.0, _NORMAL))


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return a quotient, 0 where there is nothing below."""
    return np.asarray(np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0))


def _along(means: FloatArray | None, n_strata: int) -> FloatArray:
    """Return each stratum's place in the order of the mean proxies, −1 to 1; 0 where there is no order."""
    if means is None or n_strata == 1:
        return np.zeros(n_strata)
    below = np.searchsorted(np.sort(means), means, "left")
    most = np.searchsorted(np.sort(means), means, "right") - 1
    return np.asarray((below + most) / (n_strata - 1) - 1.0)
