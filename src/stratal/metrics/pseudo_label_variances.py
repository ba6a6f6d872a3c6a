"""Variances of labels that are mixed with pseudo-labels, so that equal labels have a variance."""

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
    """Return the larger of a smoothed variance and that of the labels, and the smoothed standard error.

    Parameters
    ----------
    design_variance : float
        Variance under the design of the mean of the smoothed labels.
    variable, weights : float (n + J,)
        The variable that is averaged, and the weights of the n labels and J pseudo-labels.
    result : Linearised
        The result without pseudo-labels.
    weighting : Weighting
    target : {"population", "superpopulation"}
    factor : float
        Factor of both smoothed variances.
    """
    population_variance = 0.0
    if target == "superpopulation":
        # Even if all units are labelled, equal labels do not show that new units would have the same label.
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
    """Return the variance under the design of a mean if each unit has several possible labels.

    Parameters
    ----------
    weighting : Weighting
    shares, influence : float (c n,)
        For each of c possible labels, one after the other: its share in each unit, and its influence.
    """
    counts = weighting.counts
    stratum = np.tile(weighting.stratum, len(shares) // len(weighting.stratum))
    divisors = np.maximum(counts, 1)
    mean = np.bincount(stratum, shares * influence, minlength=len(counts)) / divisors
    square = np.bincount(stratum, shares * influence**2, minlength=len(counts)) / divisors
    return float(weighting.variance_factors @ np.maximum(square - mean**2, 0.0))


def satterthwaite_of_groups(true: IntArray, weights: FloatArray, variable: FloatArray) -> float:
    """Return Satterthwaite's degrees of freedom of a sum over true classes.

    The degrees of freedom of a class are its effective number of labels (Kish). All arguments are (n,).
    """
    contributions = np.bincount(true, (weights * variable) ** 2)
    sums = np.bincount(true, weights)
    squares = np.bincount(true, weights**2)
    varies = contributions > 0
    if not np.any(varies):
        return np.inf
    sizes = sums[varies] ** 2 / squares[varies]
    return float(contributions.sum() ** 2 / np.sum(contributions[varies] ** 2 / sizes))
