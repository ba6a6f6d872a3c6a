"""Variances of labels that are mixed with other classes, so that labels that agree have a variance."""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs import Weighting
from stratal.estimation.linearised import Linearised


def smoothed_variance(
    hidden: float,
    variable: FloatArray,
    weights: FloatArray,
    result: Linearised,
    weighting: Weighting,
    target: str,
    larger: float = 1.0,
) -> tuple[float, float]:
    """Return the larger of a smoothed variance and the labels' own, and the smoothed standard error.

    `hidden` is what the design adds to a smoothed variable (n + J,); both parts count `larger` times.
    """
    drawn = 0.0
    if target == "superpopulation":
        # Labels that agree, be they of all units, leave open what other units would have been.
        drawn = float(weights @ variable**2 / weights.sum()) / weighting.population_size
    hidden = hidden * larger
    drawn = drawn * larger
    if np.isfinite(result.design_variance):
        shown = result.design_variance
    else:
        shown = 0.0
    return max(hidden, shown) + max(drawn, result.population_variance), float(np.sqrt(hidden + drawn))


def mixed_variance(weighting: Weighting, shares: FloatArray, influence: FloatArray) -> float:
    """Return the variance of a mean of labels that each stratum mixes with others.

    Both arrays hold the units (n,) one or more times; `shares` is what each copy counts of its unit.
    """
    counts = weighting.counts
    groups = np.tile(weighting.stratum, len(shares) // len(weighting.stratum))
    mean, square = (
        np.bincount(groups, shares * influence**power, minlength=len(counts)) / np.maximum(counts, 1)
        for power in (1, 2)
    )
    return float(weighting.variance_factors @ np.maximum(square - mean**2, 0.0))


def satterthwaite_of_groups(true: IntArray, weights: FloatArray, variable: FloatArray) -> float:
    """Return Satterthwaite's degrees of freedom over the true classes, each with its effective size."""
    parts = np.bincount(true, (weights * variable) ** 2)
    sums = np.bincount(true, weights)
    squares = np.bincount(true, weights**2)
    used = parts > 0
    if not np.any(used):
        return np.inf
    sizes = sums[used] ** 2 / squares[used]
    return float(parts.sum() ** 2 / np.sum(parts[used] ** 2 / sizes))
