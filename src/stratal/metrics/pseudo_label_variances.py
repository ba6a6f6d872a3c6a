"""Variances of labels that are mixed with pseudo-labels, so that labels that agree have a variance."""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs import Weighting
from stratal.estimation.linearised import Linearised


def smoothed_variance(
    design_variance: float,
    variable: FloatArray,
    weights: FloatArray,
    result: Linearised,
    weighting: Weighting,
    target: str,
    factor: float = 1.0,
) -> tuple[float, float]:
    """Return the larger of a smoothed variance and the labels' own, and the smoothed standard error.

    `design_variance` is that of the smoothed variable (n + J,). Both parts of the variance are multiplied by
    `factor`.
    """
    population_variance = 0.0
    if target == "superpopulation":
        # Even if all units are labelled, labels that agree do not show that new units would agree, too.
        population_variance = float(weights @ variable**2 / weights.sum()) / weighting.population_size
    design_variance = design_variance * factor
    population_variance = population_variance * factor
    observed_variance = 0.0
    if np.isfinite(result.design_variance):
        observed_variance = result.design_variance
    largest_design = max(design_variance, observed_variance)
    largest_population = max(population_variance, result.population_variance)
    return largest_design + largest_population, float(np.sqrt(design_variance + population_variance))


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
