"""Effective number of labels: the simple random sample with the same error, or the same width of interval."""

from __future__ import annotations

import math

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.intervals.evidence import Evidence
from stratal.intervals.proportion import clopper_pearson

# Replicates of the effective size. With a confidence level of 0.95, the limits are the 25th from each end.
_N_REPLICATES = 1_000

# Weight, as a number of labels, of one label of the whole sample that is added to each stratum, so that a
# stratum with a few equal labels has a variance.
_WEIGHT_OF_ADDED_LABEL = 2.0

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
    is_supported_design = weighting.random_within_strata and not evidence.superpopulation
    if size is None or not evidence.varies or not is_supported_design or evidence.n > _MAX_LABELS:
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

    None if it agrees with the effective size, so that it need not be reported.

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
        labels *= evidence.outcome_variance / scale**2 / binary_variance
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
    # The added label of each stratum is drawn from the whole sample with probability proportional to weight.
    probabilities = (shares / np.maximum(counts, 1))[stratum]
    probabilities = probabilities / probabilities.sum()
    rng = np.random.default_rng(_SEED)
    error_variance = np.zeros(_N_REPLICATES)
    means_by_stratum = []
    variances_by_stratum = []
    for h, count in enumerate(counts):
        unit_indices = np.flatnonzero(stratum == h)
        added_indices = rng.choice(len(z), size=_N_REPLICATES, p=probabilities)
        # Normalised gamma numbers have the Dirichlet distribution (the Bayesian bootstrap, Rubin 1981).
        weights = rng.gamma(np.r_[np.ones(count), _WEIGHT_OF_ADDED_LABEL], size=(_N_REPLICATES, count + 1))
        weights /= weights.sum(axis=1, keepdims=True)
        stratum_mean, stratum_variance = _replicate_moments(z, unit_indices, added_indices, weights)
        means_by_stratum.append(stratum_mean)
        variances_by_stratum.append(stratum_variance)
        residual_variance = _replicate_moments(residuals, unit_indices, added_indices, weights)[1]
        error_variance += factors[h] * residual_variance
    means = np.column_stack(means_by_stratum)
    between = (means - (means @ shares)[:, None]) ** 2
    variance = (np.column_stack(variances_by_stratum) + between) @ shares
    # The size n of a simple random sample with the same error: (1 − n/N) S² / n = error variance.
    divisor = error_variance + variance / weighting.population_size
    return np.asarray(variance / np.maximum(divisor, np.finfo(float).tiny))


def _replicate_moments(
    values: FloatArray, unit_indices: IntArray, added_indices: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return weighted mean and variance (B,) of a stratum's values and one added value per replicate."""
    stratum_values = values[unit_indices]
    added_values = values[added_indices]
    added_weights = weights[:, -1]
    mean = weights[:, :-1] @ stratum_values + added_weights * added_values
    square = weights[:, :-1] @ stratum_values**2 + added_weights * added_values**2
    return mean, np.maximum(square - mean**2, 0.0)
