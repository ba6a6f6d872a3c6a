"""`planned_half_width`: the expected width of a plan's interval, smooth in the labels.

A choice among strata needs a width that falls with every further label, and a search for a budget finds it
faster. The default interval does not quite fall: a sum of counts of 0 and 1 moves in steps, which depend on
how the numbers of labels fit each other. Rates are therefore real numbers here, and the step is an average.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.special import betainc, betaincinv

from stratal.arrays import FloatArray, IntArray, frozen
from stratal.designs.stratified import stratified_factors
from stratal.designs.stratum_moments import satterthwaite
from stratal.intervals.proportion import mean_skewness, student_quantile, student_t
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson
from stratal.strata.strata import expected_variance

# Sets of labels that a width is averaged over; evenly spread over what a stratum may show.
REPLICATES = 5

# Fixed, so that equal plans expect equal widths.
SEED = 20_261_121

# Labels' worth of a binary outcome's variance that the interval of scores within bounds allows for.
_LABELS_AT_BOUNDS = 2.0

# Replaces 0 as a divisor.
_TINY = 1e-300

# Sets of labels that a width is averaged over.
SETS = 64

# Degrees of freedom below which residuals are taken from a normal distribution instead.
_FEWEST_RESIDUALS = 10

# With more labels the interval is the normal one to within a hundredth.
MOST_LABELS = 5_000


def normal_half_width(error: float, confidence_level: float) -> float:
    """Return half the width of the normal interval with a standard error."""
    return -float(student_quantile((1.0 - confidence_level) / 2.0, np.inf)) * error


def planned_half_width(
    sizes: IntArray,
    n_h: IntArray,
    means: FloatArray,
    variances: FloatArray,
    *,
    bounds: tuple[float, float],
    confidence_level: float,
) -> float:
    """Return half the expected width of the default interval of a stratified mean, smooth in the labels.

    Parameters
    ----------
    sizes : int (H,)
        N_h; one stratum is a simple random sample.
    n_h : int (H,)
        Labels.
    means, variances : float (H,)
        Mean and S_h² of the outcome in each stratum.
    bounds : (float, float)
        Of the outcome; infinite ones give an interval by Student's t.
    confidence_level : float

    Examples
    --------
    >>> one, half = np.array([10_000]), np.array([0.5])
    >>> width = planned_half_width(one, np.array([100]), half, half**2, bounds=(0.0, 1.0),
    ...                            confidence_level=0.95)
    >>> round(width, 3)
    0.101
    """
    low, high = bounds
    if not math.isfinite(high - low):
        return unbounded_half_width(sizes, n_h, variances, confidence_level)
    if n_h.sum() > MOST_LABELS:
        return normal_half_width(math.sqrt(expected_variance(sizes, n_h, variances)), confidence_level)
    rates = np.clip((means - low) / (high - low), 0.0, 1.0)
    unit_variances = variances / (high - low) ** 2
    return (high - low) * _rate_half_width(sizes, n_h, rates, unit_variances, confidence_level)


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
    taken = np.bincount(of_known, minlength=len(sizes))
    own = known - (np.bincount(of_known, known, minlength=len(sizes)) / np.maximum(taken, 1))[of_known]
    freedom, spread = int(np.maximum(taken - 1, 0).sum()), float(np.sum(own**2))
    enough = freedom >= _FEWEST_RESIDUALS and spread > 0
    residuals = own / np.sqrt(spread / freedom) if enough else np.empty(0)
    squares, cubes = np.zeros((SETS, len(sizes))), np.zeros((SETS, len(sizes)))
    for h, number in enumerate((n_h - taken).tolist()):
        new = np.sqrt(variances[h]) * _drawn(residuals, max(number, 0), h)
        labels = np.concatenate([np.repeat(own[of_known == h][:, None], SETS, axis=1), new])
        labels -= labels.mean(axis=0)
        squares[:, h], cubes[:, h] = np.sum(labels**2, axis=0), np.sum(labels**3, axis=0)
    counts, factors = n_h.astype(np.float64), stratified_factors(n_h, sizes)
    spreads = squares / np.maximum(counts - 1.0, 1.0)
    parts = factors * spreads
    low, high = student_t(
        0.0,
        np.sqrt(parts.sum(axis=1)),
        skewness=mean_skewness(counts, factors, spreads, cubes),
        degrees_of_freedom=np.maximum(satterthwaite(parts, np.maximum(counts - 1.0, 0.0)), 1.0),
        confidence_level=confidence_level,
    )
    return float(np.mean(high - low)) / 2.0


def _drawn(residuals: FloatArray, number: int, stratum: int) -> FloatArray:
    """Return residuals (number, SETS) for one stratum; more of them begin with the same ones."""
    random = np.random.Generator(np.random.PCG64((SEED, stratum)))
    if len(residuals) == 0:
        return random.standard_normal((number, SETS))
    return residuals[random.integers(len(residuals), size=(number, SETS))]


def unbounded_half_width(
    sizes: IntArray,
    n_h: IntArray,
    variances: FloatArray,
    confidence_level: float,
    seen: tuple[FloatArray, IntArray] | None = None,
) -> float:
    """Return half the expected width of Student's interval, corrected for skewness if labels are few."""
    if np.all(n_h >= 2) and n_h.sum() <= MOST_LABELS:
        return expected_unbounded(sizes, n_h, variances, confidence_level, seen)
    parts = (sizes / sizes.sum()) ** 2 * variances / np.maximum(n_h, 1)
    freedom = max(float(satterthwaite(parts, np.maximum(n_h - 1.0, 0.0))), 1.0)
    error = math.sqrt(expected_variance(sizes, n_h, variances))
    return -float(student_quantile((1.0 - confidence_level) / 2.0, freedom)) * error


def _rate_half_width(
    sizes: IntArray, n_h: IntArray, rates: FloatArray, variances: FloatArray, confidence_level: float
) -> float:
    """Return half the expected width of the interval of a mean on the 0-1 scale from n_h (H,) labels."""
    unlabelled = 1.0 - float(n_h.sum()) / float(sizes.sum())
    if unlabelled <= 0:
        return 0.0
    shares = sizes / sizes.sum()
    left = 1.0 - n_h / sizes
    labels = np.maximum(n_h, 1).astype(np.float64)
    binary = float(expected_variance(sizes, n_h, rates * (1.0 - rates)))
    # An outcome on a scale varies less than one of 0 and 1, which few labels do not show.
    missing = np.maximum(rates * (1.0 - rates) - variances, 0.0)
    allowance = min(_LABELS_AT_BOUNDS / float(n_h.sum()), 1.0) * float(np.sum(shares**2 * missing / labels))
    variance = float(expected_variance(sizes, n_h, variances)) + allowance
    factor = binary / max(variance, _TINY) if binary > 0 else 1.0
    drawn = rates + np.sqrt(left) * (expected_rates(rates, labels) - rates)
    evidence = StratumRates(
        value=drawn @ shares,
        rates=drawn,
        counts=labels,
        trials=np.where(left > 0, labels / np.where(left > 0, left, 1.0), np.inf),
        shares=shares,
        factor=np.full(len(drawn), factor),
        is_binary=True,
        smooth=True,
    )
    tail = (1.0 - confidence_level) / 2.0
    low, high = stratified_clopper_pearson(evidence, tail, tail)
    # The mean lies between what it is with all unlabelled units at one bound and at the other.
    return min(float(np.mean(high - low)), unlabelled) / 2.0


def expected_rates(rates: FloatArray, labels: FloatArray) -> FloatArray:
    """Return sets (K, H) of the rates among the labels of strata: means of K equal cells of a distribution.

    The distribution is beta, with the mean and nearly the variance of a share of real numbers of labels. Each
    stratum has its own order of the cells.

    Examples
    --------
    >>> sets = expected_rates(np.array([0.25]), np.array([10.0]))
    >>> sorted(sets[:, 0].round(2).tolist()), round(float(sets.mean()), 12)
    ([0.09, 0.17, 0.23, 0.31, 0.45], 0.25)
    """
    varies = (rates > 0) & (rates < 1)
    inner = np.where(varies, rates, 0.5)[:, None]
    ones = labels[:, None] * inner
    zeros = labels[:, None] - ones
    edges = betaincinv(ones, zeros, np.arange(1, REPLICATES) / REPLICATES)
    # ∫ x dB(x) up to an edge is the mean times the distribution function of Beta(ones + 1, zeros).
    sums = inner * np.hstack([np.zeros_like(inner), betainc(ones + 1.0, zeros, edges), np.ones_like(inner)])
    cells = np.where(varies[:, None], REPLICATES * np.diff(sums, axis=1), rates[:, None])
    order = (orders(len(rates)) * REPLICATES).astype(np.int64)
    return np.asarray(np.clip(np.take_along_axis(cells, order, axis=1).T, 0.0, 1.0))


@cache
def orders(n_strata: int) -> FloatArray:
    """Return levels (H, K), evenly spread over (0, 1), in an order of each stratum's own.

    Examples
    --------
    >>> orders(2).shape, sorted(orders(2)[1].round(1).tolist())
    ((2, 5), [0.1, 0.3, 0.5, 0.7, 0.9])
    """
    rng = np.random.Generator(np.random.PCG64(SEED))
    levels = (np.arange(REPLICATES) + 0.5) / REPLICATES
    return frozen(np.array([rng.permutation(levels) for _ in range(n_strata)]))
