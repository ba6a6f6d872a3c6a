"""Effective number of labels: the simple random sample with the same error, or the same width of interval."""

from __future__ import annotations

import math

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.intervals.evidence import Evidence
from stratal.intervals.proportion import clopper_pearson

WORTH_REPLICATES = 1_000


# Labels' worth that a stratum takes from all labels.
POOLED_LABELS = 2.0


# Fixed, so that the same labels have the same effective number.
_SEED = 20_261_121


# Beyond this the range is within a few hundredths, and not worth the memory.
_MAX_LABELS = 20_000


# Halvings until the number of labels is exact in double precision.
_BISECTIONS = 60


def effective_size_interval(
    size: float | None, evidence: Evidence, confidence_level: float = 0.95
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
    confidence_level : float
    """
    weighting = evidence.weighting
    stratified = weighting.random_within_strata and not evidence.superpopulation
    if size is None or not evidence.varies or not stratified or evidence.n > _MAX_LABELS:
        return None
    tail = (1.0 - confidence_level) / 2.0
    sizes = _replicated(evidence)
    if not np.all(sizes > 0):  # labels that all agree, about which the proxy varies: worth no random label
        return None
    logs = np.log(sizes)
    ends = np.quantile(logs, [tail, 1.0 - tail])
    around = ends - logs.mean() + math.log(size)
    at = around if evidence.interval is not None else ends  # a win rate's own size is not that of its parts
    low = math.exp(min(around[0], at[0]))
    high = math.exp(max(around[1], at[1]))
    return min(low, size), float(min(max(high, size), weighting.population_size))


def random_labels_of_equal_width(
    size: float | None,
    evidence: Evidence,
    interval: tuple[float, float],
    confidence_level: float,
    range_: tuple[float, float] | None,
) -> float | None:
    """Return how many random labels give as narrow an interval; None where the effective size stands.

    Parameters
    ----------
    size : float, optional
        The effective sample size.
    evidence : Evidence
    interval : (float, float)
        Two-sided.
    confidence_level : float
    range_ : (float, float), optional
        That of the effective size. Without one it does not stand, nor where all of it is more than this.
    """
    if evidence.bounds is None or evidence.interval is not None or evidence.census:
        return None
    lowest, highest = evidence.bounds
    scale = highest - lowest
    value = (evidence.value - lowest) / scale
    width = (interval[1] - interval[0]) / scale
    few = math.log(0.1)
    many = math.log(1e15)
    for _ in range(_BISECTIONS):  # binary trials whose interval about the value has this width
        middle = (few + many) / 2.0
        low, high = clopper_pearson(value, math.exp(middle), confidence_level=confidence_level)
        if high - low > width:
            few = middle
        else:
            many = middle
    binary = value * (1.0 - value)
    labels = math.exp(many) * (evidence.population_spread / scale**2 / binary if binary > 0 else 1.0)
    if not evidence.superpopulation:
        labels = labels / (1.0 + labels / evidence.weighting.population_size)
    if size is None or range_ is None or labels < range_[0]:
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
    chances = (shares / np.maximum(counts, 1))[stratum]
    chances = chances / chances.sum()
    rng = np.random.default_rng(_SEED)
    variance = np.zeros(WORTH_REPLICATES)
    means = []
    within = []
    for h, count in enumerate(counts):
        unit_indices = np.flatnonzero(stratum == h)
        other = rng.choice(len(z), size=WORTH_REPLICATES, p=chances)
        weights = rng.gamma(np.r_[np.ones(count), POOLED_LABELS], size=(WORTH_REPLICATES, count + 1))
        weights /= weights.sum(axis=1, keepdims=True)
        mean, spread = _borrowed_moments(z, unit_indices, other, weights)
        means.append(mean)
        within.append(spread)
        variance += factors[h] * _borrowed_moments(residuals, unit_indices, other, weights)[1]
    centres = np.column_stack(means)
    between = (centres - (centres @ shares)[:, None]) ** 2
    spread = (np.column_stack(within) + between) @ shares
    return np.asarray(
        spread / np.maximum(variance + spread / weighting.population_size, np.finfo(float).tiny)
    )


def _borrowed_moments(
    values: FloatArray, unit_indices: IntArray, other: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return weighted mean and variance (B,) of a stratum's values and one borrowed value per replicate."""
    stratum_values = values[unit_indices]
    borrowed = values[other]
    borrowed_weights = weights[:, -1]
    mean = weights[:, :-1] @ stratum_values + borrowed_weights * borrowed
    square = weights[:, :-1] @ stratum_values**2 + borrowed_weights * borrowed**2
    return mean, np.maximum(square - mean**2, 0.0)
