"""Effective number of labels: the simple random sample with the same error, or the same width of interval."""

from __future__ import annotations

import math

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.intervals.evidence import Evidence
from stratal.intervals.proportion import clopper_pearson

# Replicates of the effective size, of which the range has the outer 2.5%: 25 on each side.
WORTH_REPLICATES = 1_000

# Number of labels that a stratum borrows from all strata: few labels that agree may have a variance too.
POOLED_LABELS = 2.0

# Fixed, so that the same labels have the same effective number.
_SEED = 20_261_121

# Beyond this the range is within a few hundredths, and not worth the memory.
_MAX_LABELS = 20_000

# Halvings until the number of labels is exact in double precision.
_BISECTIONS = 60


def effective_size_interval(
    size: float | None, evidence: Evidence, population_size: float, confidence_level: float = 0.95
) -> tuple[float, float] | None:
    """Return a range for the effective sample size; None where it is not known or there is none.

    For simple random and stratified samples, and the mean over the population. How often it holds the true
    size was measured: benchmarks/results/effective_size.md.

    Parameters
    ----------
    size : float, optional
        The effective sample size.
    evidence : Evidence
        What it is of.
    population_size : float
        N, the largest possible size.
    confidence_level : float
    """
    weighting = evidence.weighting
    stratified = weighting.random_within_strata and not evidence.superpopulation
    if size is None or not evidence.varies or not stratified or evidence.n > _MAX_LABELS:
        return None
    tail = (1.0 - confidence_level) / 2.0
    sizes = _replicated(evidence)
    # The labels all agree, but the residuals of the proxy vary: they are worth no random label.
    if not np.all(sizes > 0):
        return None
    logs = np.log(sizes)
    ends = np.quantile(logs, [tail, 1.0 - tail])
    ends_around_size = ends - logs.mean() + math.log(size)
    # Replicates of a win rate or a metric have the size of its parts: only their spread is meaningful.
    if evidence.interval is not None or evidence.linearised:
        ends = ends_around_size
    low = math.exp(min(ends_around_size[0], ends[0]))
    high = math.exp(max(ends_around_size[1], ends[1]))
    return min(low, size), float(min(max(high, size), population_size))


def random_labels_of_equal_width(
    size: float | None,
    evidence: Evidence,
    interval: tuple[float, float],
    confidence_level: float,
    size_range: tuple[float, float] | None,
) -> float | None:
    """Return how many random labels give as narrow an interval; None if the effective size agrees with it.

    Parameters
    ----------
    size : float, optional
        The effective sample size.
    evidence : Evidence
    interval : (float, float)
        Two-sided.
    confidence_level : float
    size_range : (float, float), optional
        Range of the effective size. It agrees if it is not entirely above the number of random labels.
    """
    if evidence.bounds is None or evidence.interval is not None or evidence.census:
        return None
    lowest, highest = evidence.bounds
    scale = highest - lowest
    value = (evidence.value - lowest) / scale
    width = (interval[1] - interval[0]) / scale
    # Bisection on the logarithm of the binary trials whose interval about the value has this width.
    few = math.log(0.1)
    many = math.log(1e15)
    for _ in range(_BISECTIONS):
        middle = (few + many) / 2.0
        low, high = clopper_pearson(value, math.exp(middle), confidence_level=confidence_level)
        if high - low > width:
            few = middle
        else:
            many = middle
    labels = math.exp(many)
    binary_variance = value * (1.0 - value)
    # Graded outcomes vary less than binary ones with the same mean, so that fewer labels have this width.
    if binary_variance > 0:
        labels *= evidence.population_covariance_parts / scale**2 / binary_variance
    if not evidence.superpopulation:
        labels = labels / (1.0 + labels / evidence.weighting.population_size)
    if size is None or size_range is None or labels < size_range[0]:
        return float(labels)
    return None


def _replicated(evidence: Evidence) -> FloatArray:
    """Return the effective size of each replicate (B,)."""
    weighting = evidence.weighting
    z = evidence.z
    residuals = evidence.residuals
    stratum = weighting.stratum
    counts = weighting.counts
    shares = weighting.shares
    factors = weighting.variance_factors
    # Borrowed labels represent the population: a label counts as many units as its weight.
    probabilities = (shares / np.maximum(counts, 1))[stratum]
    probabilities = probabilities / probabilities.sum()
    rng = np.random.default_rng(_SEED)
    variance = np.zeros(WORTH_REPLICATES)
    means = []
    within = []
    for h, count in enumerate(counts):
        unit_indices = np.flatnonzero(stratum == h)
        borrowed_indices = rng.choice(len(z), size=WORTH_REPLICATES, p=probabilities)
        # Normalised gamma numbers have the Dirichlet distribution (the Bayesian bootstrap, Rubin 1981).
        weights = rng.gamma(np.r_[np.ones(count), POOLED_LABELS], size=(WORTH_REPLICATES, count + 1))
        weights /= weights.sum(axis=1, keepdims=True)
        mean, spread = _borrowed_moments(z, unit_indices, borrowed_indices, weights)
        means.append(mean)
        within.append(spread)
        variance += factors[h] * _borrowed_moments(residuals, unit_indices, borrowed_indices, weights)[1]
    centres = np.column_stack(means)
    between = (centres - (centres @ shares)[:, None]) ** 2
    spread = (np.column_stack(within) + between) @ shares
    return np.asarray(
        spread / np.maximum(variance + spread / weighting.population_size, np.finfo(float).tiny)
    )


def _borrowed_moments(
    values: FloatArray, unit_indices: IntArray, borrowed_indices: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return weighted mean and variance (B,) of a stratum's values and one borrowed value per replicate."""
    stratum_values = values[unit_indices]
    borrowed = values[borrowed_indices]
    borrowed_weights = weights[:, -1]
    mean = weights[:, :-1] @ stratum_values + borrowed_weights * borrowed
    square = weights[:, :-1] @ stratum_values**2 + borrowed_weights * borrowed**2
    return mean, np.maximum(square - mean**2, 0.0)
