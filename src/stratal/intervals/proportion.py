"""Intervals of a proportion at an effective number of trials, Student's t, and corrections for skewness.

The arguments are arrays that broadcast. `size` is the effective number of trials (Korn & Graubard 1998), not
necessarily whole. With `size` = n, the intervals are those of textbooks. For a census, `size` is infinite and
the width is 0. Each method is a lower limit; the upper limit is 1 minus the lower limit of 1 − proportion.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from scipy import special

from stratal.arrays import AnyArray, FloatArray, Number
from stratal.designs import Weighting
from stratal.designs.stratum_moments import centre_within_strata, stratum_counts, stratum_sums
from stratal.intervals.interval import error_probabilities

# The lower and the upper limit.
LimitArrays = tuple[FloatArray, FloatArray]


def student_t(
    value: Number,
    standard_error: Number,
    *,
    skewness: Number = 0.0,
    degrees_of_freedom: Number = np.inf,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
) -> LimitArrays:
    """Return value ± t · standard error, within the bounds. Infinite degrees of freedom give the normal.

    Parameters
    ----------
    value, standard_error, degrees_of_freedom : float, or arrays that broadcast
    skewness : float or array
        γ of the estimate (`mean_skewness`), not of the outcome. Each limit is the outer one of Student's t
        and of Hall's transformation.
    bounds : (float, float)
        Smallest and largest possible value.
    """
    below, above = error_probabilities(confidence_level, alternative)
    value = np.clip(np.asarray(value, dtype=np.float64), *bounds)
    shape = np.broadcast(value, standard_error, skewness).shape
    low, high = (np.full(shape, bound, dtype=np.float64) for bound in bounds)
    if below > 0:
        quantile = -student_quantile(below, degrees_of_freedom)
        distance = standard_error * adjusted_quantile(quantile, skewness, degrees_of_freedom)
        low = np.maximum(value - distance, bounds[0])
    if above > 0:
        quantile = -student_quantile(above, degrees_of_freedom)
        distance = standard_error * adjusted_quantile(quantile, -np.asarray(skewness), degrees_of_freedom)
        high = np.minimum(value + distance, bounds[1])
    return np.asarray(low), np.asarray(high)


def _add_upper_limit(lower_limit: Callable[..., FloatArray]) -> Callable[..., LimitArrays]:
    """Convert a function for the lower limit (…,) into a function for the interval."""

    @wraps(lower_limit)
    def interval(
        proportion: Number,
        size: Number,
        *,
        confidence_level: float = 0.95,
        alternative: str = "two-sided",
        **options: object,
    ) -> LimitArrays:
        below, above = error_probabilities(confidence_level, alternative)
        p, n = np.broadcast_arrays(np.asarray(proportion, dtype=np.float64), size)
        p = np.clip(p, 0.0, 1.0)
        is_census = ~np.isfinite(n)
        n = np.where(is_census, 1.0, n)
        low = np.zeros_like(p)
        high = np.ones_like(p)
        if below > 0:
            low = np.where(is_census, p, np.minimum(lower_limit(p, n, below, **options), p))
        if above > 0:
            high = np.where(is_census, p, np.maximum(1.0 - lower_limit(1.0 - p, n, above, **options), p))
        return low, high

    return interval


def _clopper_pearson_low(proportion: FloatArray, size: FloatArray, error: float) -> FloatArray:
    """Return Clopper & Pearson's lower limit (…,); 0 for a proportion of 0."""
    ones = proportion * size
    zeros = (1.0 - proportion) * size
    positive_ones = np.where(ones > 0, ones, 1.0)
    return np.where(ones > 0, special.betaincinv(positive_ones, zeros + 1.0, error), 0.0)


@_add_upper_limit
def clopper_pearson(proportion: FloatArray, size: FloatArray, error: float) -> FloatArray:
    """Return the exact binomial interval (Clopper & Pearson 1934), by quantiles of beta distributions."""
    return _clopper_pearson_low(proportion, size, error)


@_add_upper_limit
def wilson(p: FloatArray, n: FloatArray, error: float) -> FloatArray:
    """Return Wilson's score interval (Wilson 1927).

    Its coverage is too low near 0 and 1: the minimum for a 95% interval was 0.911.
    """
    z = -special.ndtri(error)
    half_width = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    low = (p + z**2 / (2 * n) - half_width) / (1 + z**2 / n)
    return np.asarray(np.clip(low, 0.0, 1.0))


@_add_upper_limit
def logit(
    proportion: FloatArray, size: FloatArray, error: float, *, degrees_of_freedom: Number = np.inf
) -> FloatArray:
    """Return the interval that is symmetric in log-odds, with Student's t (R's `svyciprop`, "logit").

    For a proportion of 0 or 1, whose log-odds are infinite, it is the Clopper–Pearson interval.
    """
    is_inside = (proportion > 0) & (proportion < 1)
    p = np.where(is_inside, proportion, 0.5)
    shift = student_quantile(error, degrees_of_freedom) / np.sqrt(p * (1 - p) * size)
    low = special.expit(special.logit(p) + shift)
    return np.where(is_inside, low, _clopper_pearson_low(proportion, size, error))


def blaker(
    proportion: Number, size: Number, *, confidence_level: float = 0.95, alternative: str = "two-sided"
) -> LimitArrays:
    """Return Blaker's exact interval (Blaker 2000), about 2% narrower than Clopper–Pearson's, and inside it.

    Its ends are the smallest and largest p whose acceptability exceeds the error. A one-sided interval is
    that of Clopper & Pearson.
    """
    if alternative == "two-sided":
        interval = _blaker
    else:
        interval = clopper_pearson
    return interval(proportion, size, confidence_level=confidence_level, alternative=alternative)


# Number of bisections of a grid interval: the error of a limit is below 2⁻⁵⁴, a rounding error.
_BISECTIONS = 48


@_add_upper_limit
def _blaker(proportion: FloatArray, size: FloatArray, error: float) -> FloatArray:
    """Return the smallest acceptable p (…,) above Clopper & Pearson's: on a grid, then by bisection."""
    start = _clopper_pearson_low(proportion, size, error)
    # The acceptability is not monotonic in p. The grid finds its first interval with an acceptable end.
    grid_positions = np.linspace(0.0, 1.0, 65).reshape((-1,) + (1,) * proportion.ndim)
    grid = start + grid_positions * (proportion - start)
    ones = proportion * size
    first = np.argmax(_acceptability(grid, ones, size) > 2.0 * error, axis=0)
    lower = np.take_along_axis(grid, np.maximum(first - 1, 0)[None], axis=0)[0]
    upper = np.take_along_axis(grid, first[None], axis=0)[0]
    for _ in range(_BISECTIONS):
        middle = (lower + upper) / 2
        is_acceptable = _acceptability(middle, ones, size) > 2.0 * error
        lower = np.where(is_acceptable, lower, middle)
        upper = np.where(is_acceptable, middle, upper)
    return np.asarray(np.where(proportion > 0, lower, 0.0))


def _acceptability(p: FloatArray, x: FloatArray, size: FloatArray) -> FloatArray:
    """Return P(X ≥ x) plus the largest P(X ≤ y), y < x, that does not exceed it (…,), at p below x / size."""
    upper = _upper_tail(p, x, size)
    # y differs from x by a whole number, so that a whole number of trials gives Blaker's value. Bisection is
    # over j = y + fraction; j = −1 stands for an empty lower tail.
    fraction = np.ceil(x) - x
    smallest = np.full_like(upper, -1.0)
    largest = np.floor(x) + fraction
    for _ in range(int(np.ceil(np.log2(np.max(size) + 3))) + 1):
        middle = np.floor((smallest + largest) / 2)
        is_small_enough = 1.0 - _upper_tail(p, middle - fraction + 1.0, size) <= upper
        smallest = np.where(is_small_enough, middle, smallest)
        largest = np.where(is_small_enough, largest, middle)
    lower = np.where(smallest < 0, 0.0, 1.0 - _upper_tail(p, smallest - fraction + 1.0, size))
    return np.asarray(upper + lower)


def _upper_tail(p: FloatArray, x: FloatArray, size: FloatArray) -> FloatArray:
    """Return P(X ≥ x) (…,) of a binomial(size, p), for fractional x and size: incomplete beta function."""
    is_inside = (x > 0) & (x < size + 1)
    first_shape = np.where(is_inside, x, 1.0)
    second_shape = np.where(is_inside, size - x + 1, 1.0)
    tail = np.where(is_inside, special.betainc(first_shape, second_shape, p), 0.0)
    return np.asarray(np.where(x <= 0, 1.0, tail))


def student_quantile(probability: float | FloatArray, degrees_of_freedom: Number) -> FloatArray:
    """Return the quantile (…,) of Student's t; that of the normal for infinite degrees of freedom."""
    df = np.asarray(degrees_of_freedom, dtype=np.float64)
    # From here on, the two quantiles agree to nine digits.
    is_normal = df > 1e10
    normal = special.ndtri(probability)
    t = special.stdtrit(np.where(is_normal, 1.0, df), probability)
    # SciPy's quantile at 0 is +∞ for some degrees of freedom.
    return np.asarray(np.where(is_normal | np.isinf(normal), normal, t))


# Largest error probability in a ratio of quantiles, which are 0 at one half.
_MAX_RATIO_ERROR = 0.5 - 1e-6


def upper_tail(statistic: FloatArray, degrees_of_freedom: FloatArray) -> FloatArray:
    """Return P(T > statistic) (…,) of Student's t; that of the normal for infinite degrees of freedom."""
    is_normal = np.isinf(degrees_of_freedom)
    t = special.stdtr(np.where(is_normal, 1.0, degrees_of_freedom), -statistic)
    return np.asarray(np.where(is_normal, special.ndtr(-statistic), t))


def df_correction(n: float, degrees_of_freedom: float, error: float) -> float:
    """Return the factor of the trials if the variance has ν degrees of freedom instead of n − 1.

    It is (t_{n−1} / t_ν)² at the error probability of one side (Korn & Graubard 1998).
    """
    error = min(error, 1.0 - error, _MAX_RATIO_ERROR)
    usual_quantile = student_quantile(error, max(n - 1, 1))
    return float((usual_quantile / student_quantile(error, degrees_of_freedom)) ** 2)


# A smaller absolute skewness is treated as 0, because the transformation divides by it.
_MIN_SKEWNESS = 1e-9

# A smaller absolute skewness is that of a Poisson count above 10⁸, which is treated as symmetric.
_MIN_POISSON_SKEWNESS = 1e-4

# Smallest error probability of one side at which Hall's transformation is used: that of a 99% interval.
_MIN_HALL_ERROR = 0.005


def adjusted_quantile(quantile: Number, skewness: Number, degrees_of_freedom: Number = np.inf) -> FloatArray:
    """Return the distance (…,) of a lower limit from the value in standard errors, for a quantile of t.

    For the upper limit, pass the negative skewness. Hall's transformation is an expansion about 0 and nearly
    constant around T = −3/γ, where it would change t = 11.9 to 3.3. Therefore, beyond the 99.5% quantile, the
    ratio of the limit to Student's is that of the 99.5% quantile.
    """
    largest_quantile = -student_quantile(_MIN_HALL_ERROR, degrees_of_freedom)
    inner = np.minimum(quantile, largest_quantile)
    distance = np.maximum(inner, _inverse_hall(inner, skewness))
    return np.asarray(np.maximum(quantile / largest_quantile, 1.0) * distance)


def poisson_distances(skewness: Number, errors: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Return the distances (…,) of Poisson limits below and above the value, in standard errors.

    A Poisson count with mean 1/γ², in steps of γ standard errors, has the variance and the skewness γ of the
    estimate. Its exact limit (Garwood 1936) is used on the side of its longer tail; the other distance is 0.
    """
    g = np.asarray(skewness, dtype=np.float64)
    step = np.maximum(np.abs(g), _MIN_POISSON_SKEWNESS)
    mean_count = step**-2.0
    below, above = (
        step * (special.gammaincinv(mean_count + 1.0, 1.0 - error) - mean_count) if error > 0 else 0.0
        for error in errors
    )
    return (
        np.where(g < -_MIN_POISSON_SKEWNESS, below, 0.0),
        np.where(g > _MIN_POISSON_SKEWNESS, above, 0.0),
    )


def adjusted_statistic(
    statistic: FloatArray, skewness: FloatArray, degrees_of_freedom: Number = np.inf
) -> FloatArray:
    """Return the t statistic (d,) whose one-sided p-value agrees with the limit by `adjusted_quantile`."""
    g = skewness
    is_finite = np.isfinite(statistic)
    t = np.where(is_finite, statistic, 0.0)
    hall = np.where(is_finite, t + g * t**2 / 3.0 + g**2 * t**3 / 27.0 + g / 6.0, statistic)
    largest_quantile = -student_quantile(_MIN_HALL_ERROR, degrees_of_freedom)
    largest_distance = adjusted_quantile(largest_quantile, skewness, degrees_of_freedom)
    beyond = statistic * (largest_quantile / largest_distance)
    return np.asarray(np.where(statistic > largest_distance, beyond, np.minimum(statistic, hall)))


def _inverse_hall(y: Number, skewness: Number) -> FloatArray:
    """Return the T (…,) for which Hall's transformation T + γ T²/3 + γ² T³/27 + γ/6 is y."""
    g = np.asarray(skewness, dtype=np.float64)
    is_skewed = np.abs(g) > _MIN_SKEWNESS
    divisor = np.where(is_skewed, g, 1.0)
    root = np.cbrt(1.0 + divisor * (y - g / 6.0))
    return np.asarray(np.where(is_skewed, 3.0 / divisor * (root - 1.0), y))


def skewness_of(variable: FloatArray, weighting: Weighting) -> float:
    """Return the skewness γ of the weighted mean of a variable (n,) of the labelled units."""
    return float(skewnesses_of(variable[:, None], weighting)[0])


def skewnesses_of(variables: FloatArray, weighting: Weighting) -> FloatArray:
    """Return the skewness γ (d,) of the weighted mean of each variable (n, d); see `mean_skewness`."""
    values, factors = weighting.resampling_variables(variables)
    stratum = weighting.stratum
    n_strata = len(factors)
    if n_strata == 1:
        stratum = np.zeros(len(values), dtype=np.int64)
    counts = stratum_counts(stratum, n_strata)
    deviations = centre_within_strata(values, stratum, n_strata)
    largest = np.abs(deviations).max(axis=0, initial=0.0)
    # γ does not depend on the scale. Without this division, the third powers may overflow.
    deviations /= np.where(largest > 0, largest, 1.0)
    squares = deviations * deviations
    sums_of_squares = stratum_sums(squares, stratum, n_strata).T
    third_moments = stratum_sums(squares * deviations, stratum, n_strata).T
    variances = sums_of_squares / np.maximum(counts - 1.0, 1.0)
    return np.asarray(mean_skewness(counts, factors, variances, third_moments))


def mean_skewness(
    counts: AnyArray, factors: FloatArray, variances: FloatArray, third_moments: FloatArray
) -> Any:
    """Return the skewness γ (…,) of a stratified mean; strata with fewer than three labels contribute 0.

    It is Σ a_h^{3/2} k_h n_h^{−1/2} / (Σ a_h s_h²)^{3/2}, with a_h = W_h² (1 − f_h)/n_h and the unbiased
    third cumulants k_h. For one stratum of a large population, it is the skewness of the outcome divided by
    √n. It is not shrunk towards 0: with shrinkage, the coverage of intervals from five strata with 30 labels
    in total was 0.74 instead of 0.80 for lognormal outcomes (σ = 2); for normal outcomes, they were 7%
    narrower.

    Parameters
    ----------
    counts, factors : (…, H)
        n_h and a_h.
    variances : float (…, H)
        s_h²; NaN in strata without a variance.
    third_moments : float (…, H)
        Σ (y − ȳ_h)³ over the labels of the stratum.
    """
    n = np.maximum(counts, 3.0)
    cumulants = np.where(counts >= 3.0, n / ((n - 1.0) * (n - 2.0)) * third_moments, 0.0)
    has_variance = (factors > 0) & ~np.isnan(variances)
    variance = np.where(has_variance, factors * variances, 0.0).sum(axis=-1)
    third = (factors**1.5 * cumulants / np.sqrt(n)).sum(axis=-1)
    divisor = np.where(variance > 0, variance, 1.0)
    return np.where(variance > 0, third / divisor**1.5, 0.0)
