"""Intervals for a proportion on an effective number of trials, which need not be whole.

All take arrays and broadcast: `proportion` in [0, 1], `size` the number of independent trials that would be
as informative (Korn & Graubard 1998). At `size` = n they are the textbook intervals. A census has infinite
`size` and gets an interval of width zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from stratal.arrays import FloatArray
from stratal.designs import Weighting
from stratal.designs.stratum_moments import stratum_means
from stratal.intervals.interval import tail_shares


def student_t(
    value: Any,
    standard_error: Any,
    *,
    degrees_of_freedom: Any = np.inf,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
) -> tuple[FloatArray, FloatArray]:
    """Return value ± t · standard error, cut at `bounds`; infinite degrees of freedom are the normal.

    Parameters
    ----------
    value, standard_error, degrees_of_freedom : float, or arrays that broadcast
        Satterthwaite's degrees of freedom for a stratified mean.
    bounds : (float, float)
        What the outcome cannot leave. A value outside is pulled to the nearest bound.

    Examples
    --------
    >>> low, high = student_t(0.9, 0.1, degrees_of_freedom=9, bounds=(0, 1))
    >>> round(float(low), 3), float(high)
    (0.674, 1.0)
    """
    below, above = tail_shares(confidence_level, alternative)
    value = np.clip(np.asarray(value, dtype=np.float64), *bounds)
    error = np.asarray(standard_error, dtype=np.float64)
    low = np.full(np.broadcast(value, error).shape, bounds[0], dtype=np.float64)
    high = np.full_like(low, bounds[1])
    if below > 0:
        low = np.maximum(value + student_quantile(below, degrees_of_freedom) * error, bounds[0])
    if above > 0:
        high = np.minimum(value - student_quantile(above, degrees_of_freedom) * error, bounds[1])
    return np.asarray(low), np.asarray(high)


_BISECTIONS = 48
"""Of 1/64 of an interval: to the last digit."""


def clopper_pearson(
    proportion: Any, size: Any, *, confidence_level: float = 0.95, alternative: str = "two-sided"
) -> tuple[FloatArray, FloatArray]:
    """Return the exact binomial interval (Clopper & Pearson 1934), by quantiles of the beta distribution.

    Examples
    --------
    >>> low, high = clopper_pearson(1.0, 20)
    >>> round(float(low), 4), float(high)
    (0.8316, 1.0)
    """
    proportion, size = _broadcast(proportion, size)
    below, above = tail_shares(confidence_level, alternative)
    finite = np.where(np.isfinite(size), size, 1.0)
    x, rest = proportion * finite, (1.0 - proportion) * finite
    low = np.zeros_like(x)
    high = np.ones_like(x)
    if below > 0:
        low = np.where(x > 0, special.betaincinv(np.where(x > 0, x, 1.0), rest + 1.0, below), 0.0)
    if above > 0:
        high = np.where(rest > 0, special.betainccinv(x + 1.0, np.where(rest > 0, rest, 1.0), above), 1.0)
    return _settle(proportion, size, low, high, below, above)


def wilson(
    proportion: Any, size: Any, *, confidence_level: float = 0.95, alternative: str = "two-sided"
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's score interval (Wilson 1927).

    It undercovers near 0 and 1: .911 at worst on the project's grid.

    Examples
    --------
    >>> low, high = wilson(0.5, 20)
    >>> round(float(low), 4), round(float(high), 4)
    (0.2993, 0.7007)
    """
    proportion, size = _broadcast(proportion, size)
    below, above = tail_shares(confidence_level, alternative)
    finite = np.where(np.isfinite(size), size, 1.0)
    low = _score_bound(proportion, finite, below, -1.0)
    high = _score_bound(proportion, finite, above, 1.0)
    return _settle(proportion, size, low, high, below, above)


def _score_bound(proportion: FloatArray, size: FloatArray, error: float, side: float) -> FloatArray:
    if error == 0:
        return np.full_like(proportion, 0.0 if side < 0 else 1.0)
    z = -special.ndtri(error)
    centre = proportion + z**2 / (2 * size)
    half = z * np.sqrt(proportion * (1 - proportion) / size + z**2 / (4 * size**2))
    return np.asarray(np.clip((centre + side * half) / (1 + z**2 / size), 0.0, 1.0))


def logit(
    proportion: Any,
    size: Any,
    *,
    degrees_of_freedom: Any = np.inf,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
) -> tuple[FloatArray, FloatArray]:
    """Return the interval that is symmetric in log-odds, with Student's t (R's `svyciprop`, "logit").

    At a proportion of 0 or 1, where log-odds do not exist, the Clopper–Pearson interval is given.

    Examples
    --------
    >>> low, high = logit(0.9, 50)
    >>> round(float(low), 3), round(float(high), 3)
    (0.781, 0.958)
    """
    proportion, size = _broadcast(proportion, size)
    below, above = tail_shares(confidence_level, alternative)
    inside = (proportion > 0) & (proportion < 1)
    p = np.where(inside, proportion, 0.5)
    finite = np.where(np.isfinite(size), size, 1.0)
    error = 1.0 / np.sqrt(p * (1 - p) * finite)
    low, high = np.zeros_like(p), np.ones_like(p)
    if below > 0:
        low = special.expit(special.logit(p) + student_quantile(below, degrees_of_freedom) * error)
    if above > 0:
        high = special.expit(special.logit(p) - student_quantile(above, degrees_of_freedom) * error)
    exact = clopper_pearson(proportion, size, confidence_level=confidence_level, alternative=alternative)
    low, high = np.where(inside, low, exact[0]), np.where(inside, high, exact[1])
    return _settle(proportion, size, low, high, below, above)


def blaker(
    proportion: Any, size: Any, *, confidence_level: float = 0.95, alternative: str = "two-sided"
) -> tuple[FloatArray, FloatArray]:
    """Return Blaker's interval (Blaker 2000): exact as Clopper–Pearson and inside it, about 2 % narrower.

    The bounds are the outermost values whose acceptability exceeds the error; with a fractional number of
    trials the opposite tail is cut at the binomial quantile interpolated in between. One-sided, it is
    Clopper–Pearson.

    Examples
    --------
    >>> low, high = blaker(0.9, 20)
    >>> round(float(low), 3), round(float(high), 3)
    (0.684, 0.982)
    """
    exact = clopper_pearson(proportion, size, confidence_level=confidence_level, alternative=alternative)
    if alternative != "two-sided":
        return exact
    proportion, size = _broadcast(proportion, size)
    finite = np.where(np.isfinite(size), size, 1.0)
    error = 1.0 - confidence_level
    low = _blaker_low(proportion, finite, exact[0], error)
    high = 1.0 - _blaker_low(1.0 - proportion, finite, 1.0 - exact[1], error)
    return _settle(proportion, size, low, high, error / 2, error / 2)


def _blaker_low(proportion: FloatArray, size: FloatArray, start: FloatArray, error: float) -> FloatArray:
    """Return the smallest value ≥ `start` that is acceptable: first by a grid, then by bisection."""
    steps = np.linspace(0.0, 1.0, 65).reshape((-1,) + (1,) * proportion.ndim)
    grid = start + steps * (proportion - start)
    acceptable = _acceptability(grid, proportion * size, size) > error
    first = np.argmax(acceptable, axis=0)
    lower = np.take_along_axis(grid, np.maximum(first - 1, 0)[None], axis=0)[0]
    upper = np.take_along_axis(grid, first[None], axis=0)[0]
    for _ in range(_BISECTIONS):
        middle = (lower + upper) / 2
        good = _acceptability(middle, proportion * size, size) > error
        lower, upper = np.where(good, lower, middle), np.where(good, middle, upper)
    return np.asarray(np.where(proportion > 0, lower, 0.0))


def _acceptability(p: FloatArray, x: FloatArray, size: FloatArray) -> FloatArray:
    """Return P(X ≥ x) plus the largest lower tail that does not exceed it, at p below x / size."""
    upper = _upper_tail(p, x, size)
    # The opposite tail at whole-numbered distances below x, so that whole numbers of trials give Blaker's own
    # value.
    count = np.ceil(x) - x
    smallest, largest = np.full_like(upper, -1.0), np.floor(x) + count
    for _ in range(int(np.ceil(np.log2(np.max(size) + 3))) + 1):
        middle = np.floor((smallest + largest) / 2)
        fits = 1.0 - _upper_tail(p, middle - count + 1.0, size) <= upper
        smallest, largest = np.where(fits, middle, smallest), np.where(fits, largest, middle)
    lower = np.where(smallest < 0, 0.0, 1.0 - _upper_tail(p, smallest - count + 1.0, size))
    return np.asarray(upper + lower)


def _upper_tail(p: FloatArray, x: FloatArray, size: FloatArray) -> FloatArray:
    """Return P(X ≥ x), X binomial(size, p), for fractional x and size by the incomplete beta function."""
    inside = (x > 0) & (x < size + 1)
    tail = special.betainc(np.where(inside, x, 1.0), np.where(inside, size - x + 1, 1.0), p)
    return np.asarray(np.where(x <= 0, 1.0, np.where(inside, tail, 0.0)))


def student_quantile(probability: float | FloatArray, degrees_of_freedom: Any) -> FloatArray:
    """Return the quantile of Student's t, the normal one for infinite degrees of freedom.

    Examples
    --------
    >>> round(float(student_quantile(0.975, 10)), 3), round(float(student_quantile(0.975, np.inf)), 3)
    (2.228, 1.96)
    """
    freedom = np.asarray(degrees_of_freedom, dtype=np.float64)
    large = freedom > 1e10
    normal = special.ndtri(probability)
    t = special.stdtrit(np.where(large, 1.0, freedom), probability)
    # SciPy's quantile at 0 is +∞ for some degrees of freedom.
    return np.asarray(np.where(large | np.isinf(normal), normal, t))


def _broadcast(proportion: Any, size: Any) -> tuple[FloatArray, FloatArray]:
    p, m = np.broadcast_arrays(np.asarray(proportion, dtype=np.float64), np.asarray(size, dtype=np.float64))
    return np.clip(p, 0.0, 1.0), p * 0 + m


def _settle(
    proportion: FloatArray, size: FloatArray, low: FloatArray, high: FloatArray, below: float, above: float
) -> tuple[FloatArray, FloatArray]:
    """Close the interval on the value itself: for a census, and against rounding."""
    census = ~np.isfinite(size)
    if below > 0:
        low = np.where(census, proportion, np.minimum(low, proportion))
    if above > 0:
        high = np.where(census, proportion, np.maximum(high, proportion))
    return low, high


_SYMMETRICAL = 1e-9
"""A skewness below this is 0: the transformation divides by it."""

_EXPANDED_TO = 0.005
"""Error of one side down to which limits are the transformation's own: that of a 99 % interval."""


def skewness_corrected(
    value: Any,
    standard_error: Any,
    skewness: Any,
    *,
    degrees_of_freedom: Any = np.inf,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
) -> tuple[FloatArray, FloatArray]:
    """Return the farther limits of Student's t and of Hall's transformation of it.

    Parameters
    ----------
    value, standard_error, degrees_of_freedom : float, or arrays that broadcast
    skewness : float or array
        γ of the estimate itself (`mean_skewness`), not of the outcome.

    Examples
    --------
    >>> low, high = skewness_corrected(10.0, 1.0, 0.3, degrees_of_freedom=29)
    >>> round(float(low), 2), round(float(high), 2)
    (7.95, 12.81)
    """
    below, above = tail_shares(confidence_level, alternative)
    value, error = np.asarray(value, dtype=np.float64), np.asarray(standard_error, dtype=np.float64)
    shape = np.broadcast(value, error, skewness).shape
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    if below > 0:
        low = (
            value
            - error * farther(-student_quantile(below, degrees_of_freedom), skewness, degrees_of_freedom)[0]
        )
    if above > 0:
        high = (
            value
            + error * farther(-student_quantile(above, degrees_of_freedom), skewness, degrees_of_freedom)[1]
        )
    return np.asarray(low), np.asarray(high)


def farther(quantile: Any, skewness: Any, degrees_of_freedom: Any = np.inf) -> tuple[FloatArray, FloatArray]:
    """Return how many standard errors the limits lie below and above the value, for a quantile of t.

    Hall's transformation is an expansion about 0 and has a plateau at T = −3/γ: left alone it would hold
    t = 11.9 for no more than t = 3.3. Beyond the quantile that leaves out .5 % the limits therefore keep the
    ratio to Student's that they have there.

    Examples
    --------
    >>> [round(float(reach), 2) for reach in farther(2.0, 0.3)]
    [2.0, 2.73]
    >>> [round(float(farther(quantile, 0.3)[1] / quantile), 2) for quantile in (2.0, 2.576, 8.0)]
    [1.36, 1.57, 1.57]
    """
    most = -student_quantile(_EXPANDED_TO, degrees_of_freedom)
    inner = np.minimum(quantile, most)
    scale = np.maximum(quantile / most, 1.0)
    low, high = _untransformed(inner, skewness), -_untransformed(-inner, skewness)
    return scale * np.maximum(inner, low), scale * np.maximum(inner, high)


def nearer(statistic: FloatArray, skewness: FloatArray, degrees_of_freedom: Any = np.inf) -> FloatArray:
    """Return what stands in for T (d,) in a one-sided p-value that agrees with the lower limit of `farther`.

    Examples
    --------
    >>> nearer(np.array([2.0, 2.0]), np.array([0.3, -0.3])).round(2)
    array([2.  , 1.58])
    """
    g, known = skewness, np.isfinite(statistic)
    t = np.where(known, statistic, 0.0)
    hall = np.where(known, t + g * t**2 / 3.0 + g**2 * t**3 / 27.0 + g / 6.0, statistic)
    most = -student_quantile(_EXPANDED_TO, degrees_of_freedom)
    last = farther(most, skewness, degrees_of_freedom)[0]
    return np.asarray(np.where(statistic > last, statistic * (most / last), np.minimum(statistic, hall)))


def _untransformed(y: Any, skewness: Any) -> FloatArray:
    """Return the T at which Hall's g(T) is y."""
    g = np.asarray(skewness, dtype=np.float64)
    lean = np.abs(g) > _SYMMETRICAL
    safe = np.where(lean, g, 1.0)
    return np.asarray(np.where(lean, 3.0 / safe * (np.cbrt(1.0 + safe * (y - g / 6.0)) - 1.0), y))


def skewness_of(variable: FloatArray, weighting: Weighting) -> float:
    """Return the skewness γ of the weighted mean of a variable (n,), from what the labelled units show.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([10**6]))
    >>> round(skewness_of(np.array([0.0, 0.0, 0.0, 1.0]), weighting), 3)
    1.0
    """
    return float(skewnesses_of(variable[:, None], weighting)[0])


def skewnesses_of(variables: FloatArray, weighting: Weighting) -> FloatArray:
    """Return `skewness_of` each variable (n, d).

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([10**6]))
    >>> skewnesses_of(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [1.0, 4.0]]), weighting).round(3)
    array([1., 0.])
    """
    resampled = [weighting.resampling(column) for column in variables.T]
    values, factors = np.stack([column for column, _ in resampled], axis=1), resampled[0][1]
    stratum, n_strata = weighting.stratum, len(factors)
    if n_strata == 1:
        stratum = np.zeros(len(values), dtype=np.int64)
    counts = np.bincount(stratum, minlength=n_strata).astype(np.float64)
    centred = values - stratum_means(values, stratum, n_strata)[stratum]
    largest = np.max(np.abs(centred), axis=0, initial=0.0)
    centred /= np.where(largest > 0, largest, 1.0)  # γ has no scale, its powers do
    squares = centred * centred
    second, third = (
        np.array([np.bincount(stratum, column, minlength=n_strata) for column in powers.T])
        for powers in (squares, squares * centred)
    )
    return np.asarray(mean_skewness(counts, factors, second / np.maximum(counts - 1.0, 1.0), third))


def mean_skewness(counts: FloatArray, factors: FloatArray, spreads: FloatArray, thirds: FloatArray) -> Any:
    """Return the skewness γ (…,) of a stratified mean; strata of fewer than three labels add none.

    Σ a_h^{3/2} k_h n_h^{−1/2} / (Σ a_h s_h²)^{3/2}, with a_h = W_h² (1 − f_h)/n_h and the unbiased third
    cumulants k_h: for one stratum of a large population it is the outcome's skewness over √n. It is taken as
    it is: drawn to 0 by what normal labels would show by chance, five strata of 30 labels in all cover .74 of
    lognormal outcomes (σ = 2) instead of .80, for 7 % less width where the outcome is normal.

    Parameters
    ----------
    counts, factors : float (…, H)
        n_h and a_h.
    spreads : float (…, H)
        s_h²; NaN where there is none.
    thirds : float (…, H)
        Σ (y − ȳ_h)³ over the stratum's labels.

    Examples
    --------
    >>> float(mean_skewness(np.array([4.0]), np.array([0.25]), np.array([1.0]), np.array([3.0])).round(6))
    1.0
    """
    n = np.maximum(counts, 3.0)
    cumulants = np.where(counts >= 3.0, n / ((n - 1.0) * (n - 2.0)) * thirds, 0.0)
    variance = np.sum(np.where(factors > 0, factors * np.nan_to_num(spreads), 0.0), axis=-1)
    third = np.sum(factors**1.5 * cumulants / np.sqrt(n), axis=-1)
    return np.where(variance > 0, third / np.where(variance > 0, variance, 1.0) ** 1.5, 0.0)
