"""How many random labels these are worth: a range around the effective sample size.

The size is a ratio of two variances that the labels themselves show, so that few labels, or few errors among
them, leave it open. The range is that of a Bayesian bootstrap within strata (Rubin 1981): labels get random
weights, and each stratum borrows two labels' worth from all labels, since one whose labels agree is not known
to have no spread.
"""

from __future__ import annotations

import math

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.estimation.estimate import Estimate

REPLICATES = 1_000
BORROWED = 2.0
"""Labels' worth that a stratum takes from all labels."""

_SEED = 20_261_121
_MOST_LABELS = 20_000
"""Beyond this the range is within a few hundredths, and not worth the memory."""


def effective_size_interval(found: Estimate, confidence_level: float = 0.95) -> tuple[float, float] | None:
    """Return a range for the effective sample size; None where it is not known or there is none.

    For simple random and stratified samples, and the mean over the population. How often it holds the true
    size was measured: benchmarks/results/effective_size.md.

    Parameters
    ----------
    found : Estimate
    confidence_level : float

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 500 + [0.9] * 500)
    >>> sample = stratal.plan(population, 100).draw(seed=7)
    >>> labels = {unit: float((unit >= 500) != (unit % 10 == 0)) for unit in sample.ids.tolist()}
    >>> low, high = effective_size_interval(stratal.estimate(sample, labels))
    >>> low < stratal.estimate(sample, labels).effective_sample_size < high
    True
    """
    size, weighting = found.effective_sample_size, found.evidence.weighting
    stratified = weighting.random_within_strata and found.target == "population"
    if size is None or found.standard_error == 0 or not stratified or found.n > _MOST_LABELS:
        return None
    tail = (1.0 - confidence_level) / 2.0
    logs = np.log(_replicated(found))
    ends = np.quantile(logs, [tail, 1.0 - tail])
    around, at = ends - logs.mean() + math.log(size), ends
    low, high = math.exp(min(around[0], at[0])), math.exp(max(around[1], at[1]))
    return min(low, size), float(min(max(high, size), found.population_size))


def _replicated(found: Estimate) -> FloatArray:
    """Return the effective size of each replicate (B,)."""
    evidence = found.evidence
    weighting, z, residuals = evidence.weighting, evidence.z, evidence.residuals
    stratum, counts = weighting.stratum, weighting.counts
    shares, factors = weighting.shares, weighting.variance_factors
    chances = (shares / np.maximum(counts, 1))[stratum]
    chances = chances / chances.sum()
    rng = np.random.default_rng(_SEED)
    variance, means, within = np.zeros(REPLICATES), [], []
    for h, count in enumerate(counts):
        own = np.flatnonzero(stratum == h)
        other = rng.choice(len(z), size=REPLICATES, p=chances)
        weights = rng.gamma(np.r_[np.ones(count), BORROWED], size=(REPLICATES, count + 1))
        weights /= weights.sum(axis=1, keepdims=True)
        mean, spread = _moments(z, own, other, weights)
        means.append(mean)
        within.append(spread)
        variance += factors[h] * _moments(residuals, own, other, weights)[1]
    centres = np.column_stack(means)
    between = (centres - (centres @ shares)[:, None]) ** 2
    spread = (np.column_stack(within) + between) @ shares
    return np.asarray(
        spread / np.maximum(variance + spread / weighting.population_size, np.finfo(float).tiny)
    )


def _moments(
    values: FloatArray, own: IntArray, other: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return weighted mean and variance (B,) of a stratum's values and one borrowed value per replicate."""
    known, borrowed, last = values[own], values[other], weights[:, -1]
    mean = weights[:, :-1] @ known + last * borrowed
    square = weights[:, :-1] @ known**2 + last * borrowed**2
    return mean, np.maximum(square - mean**2, 0.0)
