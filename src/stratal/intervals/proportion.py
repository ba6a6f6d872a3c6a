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
