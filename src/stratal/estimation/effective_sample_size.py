"""Effective number of labels: the simple random sample with the same error, or the same width of interval."""

from __future__ import annotations

import math

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.intervals.evidence import Evidence
from stratal.intervals.proportion import clopper_pearson

# Replicates of the effective size: the limits of the range are the 25th from each end.
N_REPLICATES = 1_000

# Number of labels as which a value from all strata counts in a stratum, so that a stratum with a few equal
# labels has a variance.
POOLED_LABELS = 2.0

# Fixed, so that the same labels have the same effective number.
_SEED = 20_261_121

# With more labels, the range is only a few percent wide, and would take much memory.
_MAX_LABELS = 20_000

# Range in which the number of trials is searched, and bisections until it is exact in double precision.
_MIN_TRIALS = 0.1
_MAX_TRIALS = 1e15
_BISECTIONS = 60


def effective_size_interval(
    size: float | None, evidence: Evidence, population_size: float, confidence_level: float = 0.95
) -> tuple[float, float] | None:
    """Return an interval for the effective sample size, None if it is not available.

    It is available for means over the population from simple random and stratified samples. Its coverage was
    measured: benchmarks/results/effective_size.md.

    Parameters
    ----------
    size : float, optional
        The effective sample size.
    evidence : Evidence
        The evidence of the estimate.
    population_size : float
        N, the largest possible size.
    confidence_level : float
    """
    weighting = evidence.weighting
    stratified = weighting.random_within_strata and not evidence.superpopulation
    if size is None or not evidence.varies or not stratified or evidence.n > _MAX_LABELS:
        return None
    tail = (1.0 - confidence_level) / 2.0
    sizes = _replicate_sizes(evidence)
    # If all labels are equal but the residuals vary, the effective size is 0.
    if not np.all(sizes > 0):
        return None
    logs = np.log(sizes)
    ends = np.quantile(logs, [tail, 1.0 - tail])
    ends_around_size = ends - logs.mean() + math.log(size)
    # For a win rate or a metric, the replicates are those of a linearised variable: only their spread counts.
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
    """Return the number of labels of a simple random sample with an equally narrow interval.

    None if it agrees with the effective size.

    Parameters
    ----------
    size : float, optional
        The effective sample size.
    evidence : Evidence
    interval : (float, float)
        The two-sided interval of the estimate.
    confidence_level : float
    size_range : (float, float), optional
        Interval of the effective size. It agrees if its lower limit is at most the number of random labels.
    """
    if evidence.bounds is None or evidence.interval is not None or evidence.census:
        return None
    lowest, highest = evidence.bounds
    scale = highest - lowest
    value = (evidence.value - lowest) / scale
    width = (interval[1] - interval[0]) / scale
    # Bisection on the logarithm of the binary trials whose interval about the value has this width.
    log_low = math.log(_MIN_TRIALS)
    log_high = math.log(_MAX_TRIALS)
    for _ in range(_BISECTIONS):
        middle = (log_low + log_high) / 2.0
        low, high = clopper_pearson(value, math.exp(middle), confidence_level=confidence_level)
        if high - low > width:
            log_low = middle
        else:
            log_high = middle
    labels = math.exp(log_high)
    binary_variance = value * (1.0 - value)
    # Graded outcomes vary less than binary ones with the same mean, so that fewer labels have this width.
    if binary_variance > 0:
        labels *= evidence.population_covariance_parts / scale**2 / binary_variance
    if not evidence.superpopulation:
        labels = labels / (1.0 + labels / evidence.weighting.population_size)
    if size is None or size_range is None or labels < size_range[0]:
        return float(labels)
    return None


def _replicate_sizes(evidence: Evidence) -> FloatArray:
    """Return the effective size of each replicate (B,) of a Bayesian bootstrap of the labels."""
    weighting = evidence.weighting
    z = evidence.z
    residuals = evidence.residuals
    stratum = weighting.stratum
    counts = weighting.counts
    shares = weighting.shares
    factors = weighting.variance_factors
    # Each stratum borrows a label of the whole sample, which is drawn with probability proportional to
    # weight.
    probabilities = (shares / np.maximum(counts, 1))[stratum]
    probabilities = probabilities / probabilities.sum()
    rng = np.random.default_rng(_SEED)
    variance = np.zeros(N_REPLICATES)
    means = []
    within = []
    for h, count in enumerate(counts):
        unit_indices = np.flatnonzero(stratum == h)
        borrowed_indices = rng.choice(len(z), size=N_REPLICATES, p=probabilities)
        # Normalised gamma numbers have the Dirichlet distribution (the Bayesian bootstrap, Rubin 1981).
        weights = rng.gamma(np.r_[np.ones(count), POOLED_LABELS], size=(N_REPLICATES, count + 1))
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
