"""`planned_half_width`: the expected width of a plan's interval, smooth in the numbers of labels.

The comparison of strata and the search for a budget require a width that decreases with each label. The width
of the default interval does not always decrease, because counts of 0 and 1 are whole numbers. Therefore rates
are real numbers here, and the step between two rates is replaced by its average.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np
from scipy.special import betainc, betaincinv

from stratal.arrays import NO_DIVISOR, FloatArray, IntArray, frozen, unit_scale
from stratal.designs.stratified import stratified_factors
from stratal.designs.stratum_moments import satterthwaite
from stratal.intervals.proportion import mean_skewness, student_quantile, student_t
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson
from stratal.strata.strata import expected_variance

# Usual probability to detect a difference in the planning of studies (Cohen 1988).
DEFAULT_POWER = 0.8

# Number of simulated sets of binary labels over which a width is averaged. Five are enough because they are
# quantiles of the distribution of each stratum's rate, not random.
QUANTILE_SETS = 5

# The same in every run, so that equal plans have equal expected widths.
LABEL_SETS_SEED = 20_261_121

# The interval of a graded outcome includes the variance of a binary one with the weight of this many labels.
_LABELS_AT_BOUNDS = 2.0

# Number of sets of random labels over which the width for an outcome without bounds is averaged.
LABEL_SETS = 64

# With fewer degrees of freedom, residuals are drawn from a normal distribution instead of the observed ones.
_MIN_DEGREES_OF_FREEDOM = 10

# With more labels, the width of the normal interval differs by less than 1%.
MAX_SIMULATED_LABELS = 5_000


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
    """
    low, high = bounds
    if not math.isfinite(high - low):
        return unbounded_half_width(sizes, n_h, variances, confidence_level)
    if n_h.sum() > MAX_SIMULATED_LABELS:
        return normal_half_width(math.sqrt(expected_variance(sizes, n_h, variances)), confidence_level)
    rates = np.clip(unit_scale(means, bounds), 0.0, 1.0)
    unit_variances = variances / (high - low) ** 2
    return (high - low) * _rate_half_width(sizes, n_h, rates, unit_variances, confidence_level)


def simulated_half_width(
    sizes: IntArray,
    n_h: IntArray,
    variances: FloatArray,
    confidence_level: float,
    observed: tuple[FloatArray, IntArray] | None = None,
) -> float:
    """Return half the mean width of the default interval of a stratified mean without bounds.

    Parameters
    ----------
    sizes, n_h : int (H,)
        N_h and labels, at least two in each stratum.
    variances : float (H,)
        S_h².
    confidence_level : float
    observed : (float (m,), int (m,)), optional
        Outcome and stratum of existing labels.
    """
    if observed is None:
        squares, cubes = _sums_of_new_labels(n_h, variances)
    else:
        squares, cubes = _sums_with_observed(n_h, variances, *observed)
    counts = n_h.astype(np.float64)
    factors = stratified_factors(n_h, sizes)
    sample_variances = squares / np.maximum(counts - 1.0, 1.0)
    variance_parts = factors * sample_variances
    degrees_of_freedom = satterthwaite(variance_parts, np.maximum(counts - 1.0, 0.0))
    low, high = student_t(
        0.0,
        np.sqrt(variance_parts.sum(axis=1)),
        skewness=mean_skewness(counts, factors, sample_variances, cubes),
        degrees_of_freedom=np.maximum(degrees_of_freedom, 1.0),
        confidence_level=confidence_level,
    )
    return float(np.mean(high - low)) / 2.0


def _sums_of_new_labels(n_h: IntArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Σ (z − mean)² and Σ (z − mean)³ (LABEL_SETS, H) of normal labels of each stratum."""
    sums = np.array([_normal_sums(number, h) for h, number in enumerate(n_h.tolist())])
    squares, cubes = np.moveaxis(sums, 1, 0)
    return squares.T * variances, cubes.T * variances**1.5


# A search for a budget compares strata with the same numbers of labels again and again.
@lru_cache(maxsize=4096)
def _normal_sums(number: int, stratum: int) -> FloatArray:
    """Return Σ (z − mean)² and Σ (z − mean)³ (2, LABEL_SETS) of standard normal labels of a stratum."""
    labels = _residual_sets(np.empty(0), number, stratum)
    labels -= labels.mean(axis=0)
    return frozen(np.array([np.sum(labels**2, axis=0), np.sum(labels**3, axis=0)]))


def _sums_with_observed(
    n_h: IntArray, variances: FloatArray, outcomes: FloatArray, stratum: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return Σ (z − mean)² and Σ (z − mean)³ (LABEL_SETS, H) of existing and new labels of each stratum."""
    n_strata = len(n_h)
    observed_counts = np.bincount(stratum, minlength=n_strata)
    observed_means = np.bincount(stratum, outcomes, minlength=n_strata) / np.maximum(observed_counts, 1)
    residuals = outcomes - observed_means[stratum]
    standardised = _standardised(residuals, int(np.maximum(observed_counts - 1, 0).sum()))
    squares = np.zeros((LABEL_SETS, n_strata))
    cubes = np.zeros((LABEL_SETS, n_strata))
    for h, number in enumerate((n_h - observed_counts).tolist()):
        new_residuals = np.sqrt(variances[h]) * _residual_sets(standardised, max(number, 0), h)
        # The existing labels are the same in all sets.
        observed_residuals = np.repeat(residuals[stratum == h][:, None], LABEL_SETS, axis=1)
        all_residuals = np.concatenate([observed_residuals, new_residuals])
        all_residuals -= all_residuals.mean(axis=0)
        squares[:, h] = np.sum(all_residuals**2, axis=0)
        cubes[:, h] = np.sum(all_residuals**3, axis=0)
    return squares, cubes


def _standardised(residuals: FloatArray, degrees_of_freedom: int) -> FloatArray:
    """Return residuals with variance 1; none if there are too few to represent a distribution."""
    square_sum = float(np.sum(residuals**2))
    if degrees_of_freedom < _MIN_DEGREES_OF_FREEDOM or square_sum == 0:
        return np.empty(0)
    return np.asarray(residuals / np.sqrt(square_sum / degrees_of_freedom))


def _residual_sets(residuals: FloatArray, number: int, stratum: int) -> FloatArray:
    """Return residuals (number, LABEL_SETS) drawn at random for a stratum; normal ones if none are given.

    The rows of a smaller number are the first rows of a larger one, so that widths change smoothly.
    """
    random = np.random.Generator(np.random.PCG64((LABEL_SETS_SEED, stratum)))
    if len(residuals) == 0:
        return random.standard_normal((number, LABEL_SETS))
    return residuals[random.integers(len(residuals), size=(number, LABEL_SETS))]


def unbounded_half_width(
    sizes: IntArray,
    n_h: IntArray,
    variances: FloatArray,
    confidence_level: float,
    observed: tuple[FloatArray, IntArray] | None = None,
) -> float:
    """Return half the expected width of Student's interval for an outcome without bounds.

    The parameters are those of `simulated_half_width`, which corrects for skewness. With many labels, or less
    than two in a stratum, the correction is left out.
    """
    if np.all(n_h >= 2) and n_h.sum() <= MAX_SIMULATED_LABELS:
        return simulated_half_width(sizes, n_h, variances, confidence_level, observed)
    variance_parts = (sizes / sizes.sum()) ** 2 * variances / np.maximum(n_h, 1)
    degrees_of_freedom = max(float(satterthwaite(variance_parts, np.maximum(n_h - 1.0, 0.0))), 1.0)
    error = math.sqrt(expected_variance(sizes, n_h, variances))
    return -float(student_quantile((1.0 - confidence_level) / 2.0, degrees_of_freedom)) * error


def _rate_half_width(
    sizes: IntArray, n_h: IntArray, rates: FloatArray, variances: FloatArray, confidence_level: float
) -> float:
    """Return half the expected width of the interval of a mean on the 0-1 scale from n_h (H,) labels."""
    unlabelled_share = 1.0 - float(n_h.sum()) / float(sizes.sum())
    if unlabelled_share <= 0:
        return 0.0
    shares = sizes / sizes.sum()
    corrections = 1.0 - n_h / sizes
    labels = np.maximum(n_h, 1).astype(np.float64)
    binary_variances = rates * (1.0 - rates)
    binary_variance = float(expected_variance(sizes, n_h, binary_variances))
    # A graded outcome varies less than a binary one, but a few labels do not show that.
    differences = np.maximum(binary_variances - variances, 0.0)
    weight = min(_LABELS_AT_BOUNDS / float(n_h.sum()), 1.0)
    variance_allowance = weight * float(np.sum(shares**2 * differences / labels))
    variance = float(expected_variance(sizes, n_h, variances)) + variance_allowance
    # Number of binary labels that are as precise as one graded label.
    if binary_variance > 0:
        factor = binary_variance / max(variance, NO_DIVISOR)
    else:
        factor = 1.0
    sample_rates = rates + np.sqrt(corrections) * (rate_sets(rates, labels) - rates)
    is_sampled = corrections > 0
    evidence = StratumRates(
        value=sample_rates @ shares,
        rates=sample_rates,
        counts=labels,
        trials=np.where(is_sampled, labels / np.where(is_sampled, corrections, 1.0), np.inf),
        shares=shares,
        factor=np.full(len(sample_rates), factor),
        is_binary=True,
        uses_average_step=True,
    )
    tail = (1.0 - confidence_level) / 2.0
    low, high = stratified_clopper_pearson(evidence, tail, tail)
    # With all unlabelled units at one bound or at the other, the means differ by this share.
    return min(float(np.mean(high - low)), unlabelled_share) / 2.0


def rate_sets(rates: FloatArray, labels: FloatArray) -> FloatArray:
    """Return K likely rates (K, H) among the labels of strata, in another order for each stratum.

    They are the means of K equally probable parts of a beta distribution. It has the mean and nearly the
    variance of a binomial share, but also exists for real numbers of labels.

    Examples
    --------
    >>> sets = rate_sets(np.array([0.25]), np.array([10.0]))
    >>> sorted(sets[:, 0].round(2).tolist()), round(float(sets.mean()), 12)
    ([0.09, 0.17, 0.23, 0.31, 0.45], 0.25)
    """
    varies = (rates > 0) & (rates < 1)
    # Any rate between 0 and 1 avoids an error for rates of 0 and 1, which are replaced below.
    beta_means = np.where(varies, rates, 0.5)[:, None]
    ones = labels[:, None] * beta_means
    zeros = labels[:, None] - ones
    edges = betaincinv(ones, zeros, np.arange(1, QUANTILE_SETS) / QUANTILE_SETS)
    # ∫ x dB(x) up to an edge is the mean times the distribution function of Beta(ones + 1, zeros).
    at_edges = betainc(ones + 1.0, zeros, edges)
    integrals = beta_means * np.hstack([np.zeros_like(beta_means), at_edges, np.ones_like(beta_means)])
    part_means = np.where(varies[:, None], QUANTILE_SETS * np.diff(integrals, axis=1), rates[:, None])
    order = (level_orders(len(rates)) * QUANTILE_SETS).astype(np.int64)
    return np.asarray(np.clip(np.take_along_axis(part_means, order, axis=1).T, 0.0, 1.0))


@cache
def level_orders(n_strata: int) -> FloatArray:
    """Return K probabilities, evenly spread over (0, 1), in another random order for each stratum: (H, K).

    Examples
    --------
    >>> level_orders(2).shape, sorted(level_orders(2)[1].round(1).tolist())
    ((2, 5), [0.1, 0.3, 0.5, 0.7, 0.9])
    """
    rng = np.random.Generator(np.random.PCG64(LABEL_SETS_SEED))
    levels = (np.arange(QUANTILE_SETS) + 0.5) / QUANTILE_SETS
    return frozen(np.array([rng.permutation(levels) for _ in range(n_strata)]))
