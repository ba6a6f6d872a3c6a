"""The half-width to expect of the interval that will be used: of labels as a scenario would give them.

Labels of 0 and 1 in several strata are two numbers for each stratum, and replicate axes may lead. Where the
outcome has no bounds the interval reaches further than Student's t by what the labels' skewness shows, and
few labels show some even where the outcome has none: the width is then an average over sets of labels, those
that are in and others about each stratum's mean, whose residuals are drawn from those seen so far, or from
a normal distribution where none are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import bdtrik, betaincinv

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.designs import StratifiedWeighting
from stratal.designs.stratified import stratified_factors
from stratal.designs.stratum_moments import satterthwaite
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.evidence import UnitMoments, Variances, smoothed_moments, stratum_rates
from stratal.intervals.proportion import mean_skewness, student_quantile, student_t
from stratal.intervals.stratified import stratified_clopper_pearson
from stratal.strata.strata import expected_variance

# Sets of labels that a width is averaged over; evenly spread over what a stratum may show.
REPLICATES = 5

# Fixed, so that equal plans expect equal widths.
_SEED = 20_261_121

# What the real quantile of a count may exceed a whole number by.
_ROUNDING = 1e-9


# Sets of labels that a width is averaged over.
SETS = 64

# Degrees of freedom below which residuals are taken from a normal distribution instead.
_FEWEST_RESIDUALS = 10


# With more labels the interval is the normal one to within a hundredth.
_MOST_LABELS = 5_000


def expected_half_width(
    sizes: IntArray,
    n_h: IntArray,
    means: FloatArray,
    variances: FloatArray,
    *,
    bounds: tuple[float, float],
    confidence_level: float,
    seen: tuple[FloatArray, IntArray, bool] | None = None,
) -> float:
    """Return half the mean width of the default interval of a stratified mean.

    Parameters
    ----------
    sizes : int (H,)
        N_h; one stratum is a simple random sample.
    n_h : int (H,)
        Labels.
    means, variances : float (H,)
        Mean and S_h² of the outcome in each stratum.
    bounds : (float, float)
        Of the outcome; infinite ones give the skewness-corrected interval.
    confidence_level : float
    seen : (float (m,), int (m,), bool), optional
        Outcome and stratum of labels that are in already, and count towards n_h; whether labels decided the
        n_h.

    Examples
    --------
    >>> one = np.array([10_000])
    >>> w = expected_half_width(one, np.array([100]), np.array([0.5]), np.array([0.25]), bounds=(0, 1),
    ...                         confidence_level=0.95)
    >>> round(w, 2)
    0.1
    """
    low, high = bounds
    known, of_known, label_driven = seen or (np.empty(0), np.empty(0, np.int64), False)
    error, share = math.sqrt(expected_variance(sizes, n_h, variances)), (1.0 - confidence_level) / 2.0
    if not np.isfinite(high - low):
        if np.all(n_h >= 2) and n_h.sum() <= _MOST_LABELS:
            return expected_unbounded(sizes, n_h, variances, confidence_level, (known, of_known))
        parts = (sizes / sizes.sum()) ** 2 * variances / np.maximum(n_h, 1)
        freedom = max(float(satterthwaite(parts, np.maximum(n_h - 1.0, 0.0))), 1.0)
        return float(-student_quantile(share, freedom)) * error
    if n_h.sum() > _MOST_LABELS or np.all(n_h >= sizes):
        return float(-student_quantile(share, np.inf)) * error
    new = n_h - np.bincount(of_known, minlength=len(sizes))
    unit_means, unit_variances = (means - low) / (high - low), variances / (high - low) ** 2
    if seen is None and len(sizes) > 1 and np.all(unit_variances >= _NEARLY * unit_means * (1 - unit_means)):
        return (high - low) * float(expected_of_counts(sizes, n_h, unit_means, confidence_level))
    stratum = np.concatenate([of_known, np.repeat(np.arange(len(sizes)), new)])
    follow = label_driven and len(sizes) > 1
    weighting = StratifiedWeighting(stratum=stratum, sizes=sizes, sizes_follow_labels=follow)
    binary = bool(np.all((known == low) | (known == high)))
    how: dict[str, Any] = {"stratum": stratum, "estimator": "horvitz-thompson", "bounds": bounds}
    widths = []
    for labels in label_sets(new, unit_means, unit_variances, whole=binary):
        z = np.concatenate([known, low + (high - low) * labels])
        found = estimate_mean(z, np.zeros((len(z), 0)), weighting, None, **how)
        widths.append(found.confidence_interval(confidence_level).width)
    return float(np.mean(widths)) / 2.0


def label_sets(
    n_h: IntArray, means: FloatArray, variances: FloatArray, *, whole: bool = True
) -> list[FloatArray]:
    """Return outcomes on the 0-1 scale (n,), stratum after stratum, several sets of them.

    Each stratum's number of ones runs through the quantiles of its binomial distribution, in an order of its
    own. An outcome that varies less than one of 0 and 1 takes the quantiles of a beta distribution.

    Parameters
    ----------
    n_h : int (H,)
    means, variances : float (H,)
    whole : bool
        Whether the outcome takes no value but 0 and 1 where it may.

    Examples
    --------
    >>> sets = label_sets(np.array([10]), np.array([0.5]), np.array([0.25]))
    >>> sorted(int(labels.sum()) for labels in sets)
    [3, 4, 5, 6, 7]
    """
    columns = []
    counts = quantiles(n_h, means).T[..., None]
    each = zip(n_h.tolist(), means.tolist(), variances.tolist(), orders(len(n_h)), counts, strict=True)
    for n, mean, variance, order, ones in each:
        largest = mean * (1.0 - mean)
        if n == 0 or largest <= 0:
            columns.append(np.full((REPLICATES, n), mean))
        elif whole and variance > _NEARLY * largest:
            columns.append((np.arange(n) < ones).astype(np.float64))
        else:
            strength = largest / max(min(variance, _NEARLY * largest), 1e-12) - 1.0
            levels = (np.arange(n) + order[:, None]) / n
            columns.append(betaincinv(mean * strength, (1.0 - mean) * strength, levels))
    return [np.concatenate([column[k] for column in columns]) for k in range(REPLICATES)]


# Share of the largest variance from which an outcome within bounds counts as one of 0 and 1.
_NEARLY = 0.98


def likely_means(counts: AnyArray, ones: AnyArray, deviations: FloatArray) -> FloatArray:
    """Return each stratum's rate (…, H): the one of the smoothed deviation, on its labels' side of one half.

    Examples
    --------
    >>> likely_means(np.array([5, 5]), np.array([5, 4]), np.array([0.3, 0.4])).round(2)
    array([0.9, 0.8])
    """
    every = ones.sum(axis=-1, keepdims=True) / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    own = np.where(counts > 0, ones / np.maximum(counts, 1), every)
    root = np.sqrt(np.maximum(1.0 - 4.0 * deviations**2, 0.0))
    return np.asarray(np.where(own > 0.5, 1.0 + root, 1.0 - root) / 2.0)


def stratum_labels(
    sizes: IntArray,
    counts: FloatArray,
    means: FloatArray,
    squares: FloatArray,
    *,
    factors: FloatArray,
    label_driven: bool,
    binary: bool,
) -> UnitMoments:
    """Return what the labels of strata add up to, from their means and mean squares (…, H)."""
    labelled = np.where(counts > 0, sizes, 0)
    shares = labelled / labelled.sum(axis=-1, keepdims=True)
    return UnitMoments(
        means=means,
        squares=squares,
        counts=counts,
        shares=shares,
        factors=factors,
        draws=1.0 / np.sum(shares**2 / np.maximum(counts, 1.0), axis=-1),
        label_driven=label_driven,
        units=float(np.sum(sizes)) if np.all(counts > 0) else np.inf,
        binary=binary,
    )


def interval_of_counts(
    sizes: IntArray, counts: AnyArray, ones: AnyArray, confidence_level: float, *, label_driven: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return the default interval (low, high), each (…,), of a mean of 0 and 1 in one stratum or more.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    counts, ones : int (…, H)
        Labels, and those of them that are 1; `ones` may have more leading axes.
    confidence_level : float
    label_driven : bool
        Whether labels of earlier rounds decided the counts.

    Examples
    --------
    >>> low, high = interval_of_counts(np.array([500, 500]), np.array([50, 50]), np.array([10, 45]), 0.95)
    >>> float(low.round(3)), float(high.round(3))
    (0.477, 0.624)
    """
    shape = np.shape(ones)
    n_h, right = (np.asarray(part, dtype=np.float64) for part in (counts, ones))
    if n_h.ndim > 1:  # every replicate has its own
        n_h, right = (np.broadcast_to(part, shape).reshape(-1, shape[-1]) for part in (n_h, right))
    rates = np.asarray(right / np.maximum(n_h, 1.0))
    factors = stratified_factors(n_h, sizes)
    labels = stratum_labels(sizes, n_h, rates, rates, factors=factors, label_driven=label_driven, binary=True)
    value = np.sum(labels.shares * rates, axis=-1)
    found = stratum_rates(value, labels, smoothed_moments(labels), Variances())
    share = (1.0 - confidence_level) / 2.0
    low, high = stratified_clopper_pearson(found, share, share)
    return (np.minimum(low, value).reshape(shape[:-1]), np.maximum(high, value).reshape(shape[:-1]))


def expected_of_counts(
    sizes: IntArray,
    counts: IntArray,
    means: FloatArray,
    confidence_level: float,
    *,
    seen: tuple[IntArray, IntArray] | None = None,
    label_driven: bool = True,
) -> FloatArray:
    """Return half the mean width (…,) of the interval of labels of 0 and 1, `seen` ones among them.

    Parameters
    ----------
    sizes : int (H,)
    counts : int (…, H)
        Labels in all.
    means : float (…, H)
        Rates of those to come.
    confidence_level : float
    seen : (int (…, H), int (…, H)), optional
        Labels that are in, and those of them that are 1.
    label_driven : bool
        Whether these decided the others' number.

    Examples
    --------
    >>> sizes, n_h = np.array([5000, 5000]), np.array([50, 50])
    >>> float(expected_of_counts(sizes, n_h, np.array([0.2, 0.9]), 0.95).round(3))
    0.076
    """
    known, ones = seen or (np.zeros_like(counts), np.zeros_like(counts))
    sets = ones + quantiles(counts - known, means)
    low, high = interval_of_counts(
        sizes, counts, sets, confidence_level, label_driven=label_driven and seen is not None
    )
    return np.asarray((high - low).mean(axis=0) / 2.0)


def quantiles(counts: IntArray, means: FloatArray) -> FloatArray:
    """Return ones (K, …, H) of so many labels: quantiles of the binomial count, in each stratum's own order.

    Examples
    --------
    >>> sorted(quantiles(np.array([10]), np.array([0.5]))[:, 0].tolist())
    [3.0, 4.0, 5.0, 6.0, 7.0]
    """
    levels = orders(np.shape(means)[-1]).T.reshape(REPLICATES, *(1,) * (np.ndim(counts) - 1), -1)
    open_ = (counts > 0) & (means > 0) & (means < 1)
    with np.errstate(invalid="ignore"):
        found = bdtrik(levels, np.where(open_, counts, 1).astype(np.float64), np.where(open_, means, 0.5))
    # The quantile of a binomial count; the function gives a real number, often just above a whole.
    whole = np.clip(np.ceil(found - _ROUNDING), 0, counts)
    return np.asarray(np.where(open_, whole, counts * (np.asarray(means) >= 1.0)))


def orders(n_strata: int) -> FloatArray:
    """Return levels (H, K), evenly spread over (0, 1), in an order of each stratum's own.

    Examples
    --------
    >>> orders(2).shape, sorted(orders(2)[1].round(1).tolist())
    ((2, 5), [0.1, 0.3, 0.5, 0.7, 0.9])
    """
    rng = np.random.Generator(np.random.PCG64(_SEED))
    levels = (np.arange(REPLICATES) + 0.5) / REPLICATES
    return np.array([rng.permutation(levels) for _ in range(n_strata)])


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
    random = np.random.Generator(np.random.PCG64((_SEED, stratum)))
    if len(residuals) == 0:
        return random.standard_normal((number, SETS))
    return residuals[random.integers(len(residuals), size=(number, SETS))]


def smallest_budget(width: Callable[[int], float], wanted: float, start: int, least: int, most: int) -> int:
    """Return the smallest budget, to within a hundredth, whose width is as wanted; `most` if none is.

    Squared widths are about linear in 1/n, so that a few looks are enough.

    Parameters
    ----------
    width : callable
        Budget to half-width.
    wanted : float
    start, least, most : int
        Where to look first, and between which budgets; `most` is the whole population.

    Examples
    --------
    >>> smallest_budget(lambda n: n**-0.5, 0.1, 20, 2, 1000)
    100
    """
    above, below, wide, narrow = least - 1, most, math.nan, 0.0
    n = min(max(start, least), most)
    for _ in range(_MOST_LOOKS):
        squared = width(n) ** 2
        if squared <= wanted**2:
            below, narrow = n, squared
        else:
            above, wide = n, squared
        if below - above <= max(1, below // 100):
            break
        # Every unit labelled leaves nothing open.
        known = math.isfinite(wide)
        one, first = (1.0 / above, wide) if known else (1.0 / n, squared)
        other, second = (1.0 / below, narrow) if known else (1.0 / most, 0.0)
        guess = (above + below) // 2
        if math.isfinite(first) and first != second:
            inverse = other + (wanted**2 - second) * (one - other) / (first - second)
            guess = math.ceil(min(1.0 / inverse, below)) if inverse > 0 else guess
        step = max((below - above) // 8, 1)
        n = min(max(guess, above + step), below - step)
    return below


# Budgets tried at most; a few are usual, and bisection alone needs as many for 10⁷ units.
_MOST_LOOKS = 24
