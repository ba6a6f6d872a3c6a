"""How wide the interval of a sample is expected to be once more labels are in, beside those that are.

The width is an average over sets of labels: those that are in, and others about each stratum's mean. Labels
of 0 and 1 are two numbers for each stratum, and replicate axes may lead. Where the outcome has no bounds,
the residuals of the others are drawn from those seen so far.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import bdtrik, betaincinv

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.designs import StratifiedWeighting
from stratal.designs.stratified import stratified_factors
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.evidence import UnitMoments, Variances, stratum_rates
from stratal.intervals.stratified import stratified_clopper_pearson
from stratal.planning.expected_widths import (
    MOST_LABELS,
    REPLICATES,
    normal_half_width,
    orders,
    unbounded_half_width,
)
from stratal.strata.strata import expected_variance

# Share of the largest variance from which an outcome within bounds counts as one of 0 and 1.
_NEARLY = 0.98

# What the real quantile of a count may exceed a whole number by.
_ROUNDING = 1e-9


def interim_half_width(
    sizes: IntArray,
    n_h: IntArray,
    means: FloatArray,
    variances: FloatArray,
    *,
    labelled: tuple[FloatArray, IntArray],
    bounds: tuple[float, float],
    confidence_level: float,
    label_driven: bool,
) -> float:
    """Return half the mean width of the default interval of a stratified mean, of which some labels are in.

    Parameters
    ----------
    sizes : int (H,)
        N_h; one stratum is a simple random sample.
    n_h : int (H,)
        Labels in all.
    means, variances : float (H,)
        Mean and S_h² of the outcomes to come in each stratum.
    labelled : (float (m,), int (m,))
        Outcome and stratum of the labels that are in.
    bounds : (float, float)
        Of the outcome; infinite ones give the skewness-corrected interval.
    confidence_level : float
    label_driven : bool
        Whether these labels decided the n_h.
    """
    low, high = bounds
    outcomes, stratum_of_label = labelled
    if not np.isfinite(high - low):
        return unbounded_half_width(sizes, n_h, variances, confidence_level, labelled)
    if n_h.sum() > MOST_LABELS or np.all(n_h >= sizes):
        return normal_half_width(math.sqrt(expected_variance(sizes, n_h, variances)), confidence_level)
    new = n_h - np.bincount(stratum_of_label, minlength=len(sizes))
    unit_means = (means - low) / (high - low)
    unit_variances = variances / (high - low) ** 2
    stratum = np.concatenate([stratum_of_label, np.repeat(np.arange(len(sizes)), new)])
    weighting = StratifiedWeighting(
        stratum=stratum, sizes=sizes, sizes_follow_labels=label_driven and len(sizes) > 1
    )
    is_binary = bool(np.all((outcomes == low) | (outcomes == high)))
    widths = []
    for labels in label_sets(new, unit_means, unit_variances, is_binary=is_binary):
        z = np.concatenate([outcomes, low + (high - low) * labels])
        no_proxies = np.zeros((len(z), 0))
        estimate = estimate_mean(
            z, no_proxies, weighting, None, stratum=stratum, estimator="horvitz-thompson", bounds=bounds
        )
        widths.append(estimate.confidence_interval(confidence_level).width)
    return float(np.mean(widths)) / 2.0


def label_sets(
    n_h: IntArray, means: FloatArray, variances: FloatArray, *, is_binary: bool = True
) -> list[FloatArray]:
    """Return outcomes on the 0-1 scale (n,), stratum after stratum, several sets of them.

    Each stratum's number of ones runs through the quantiles of its binomial distribution, in an order of its
    own. An outcome that varies less than one of 0 and 1 takes the quantiles of a beta distribution.

    Parameters
    ----------
    n_h : int (H,)
    means, variances : float (H,)
    is_binary : bool
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
        elif is_binary and variance > _NEARLY * largest:
            columns.append((np.arange(n) < ones).astype(np.float64))
        else:
            strength = largest / max(min(variance, _NEARLY * largest), 1e-12) - 1.0
            levels = (np.arange(n) + order[:, None]) / n
            columns.append(betaincinv(mean * strength, (1.0 - mean) * strength, levels))
    return [np.concatenate([column[k] for column in columns]) for k in range(REPLICATES)]


def likely_means(counts: AnyArray, ones: AnyArray, deviations: FloatArray) -> FloatArray:
    """Return each stratum's rate (…, H): the one of the smoothed deviation, on its labels' side of one half.

    Examples
    --------
    >>> likely_means(np.array([5, 5]), np.array([5, 4]), np.array([0.3, 0.4])).round(2)
    array([0.9, 0.8])
    """
    overall = ones.sum(axis=-1, keepdims=True) / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    rates = np.where(counts > 0, ones / np.maximum(counts, 1), overall)
    root = np.sqrt(np.maximum(1.0 - 4.0 * deviations**2, 0.0))
    return np.asarray(np.where(rates > 0.5, 1.0 + root, 1.0 - root) / 2.0)


def stratum_labels(
    sizes: IntArray,
    counts: FloatArray,
    means: FloatArray,
    squares: FloatArray,
    *,
    factors: FloatArray,
    label_driven: Any,
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
    sizes: IntArray, counts: AnyArray, ones: AnyArray, confidence_level: float, *, label_driven: Any = False
) -> tuple[FloatArray, FloatArray]:
    """Return the default interval (low, high), each (…,), of a mean of 0 and 1 in one stratum or more.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    counts, ones : int (…, H)
        Labels, and those of them that are 1; `ones` may have more leading axes.
    confidence_level : float
    label_driven : bool, or bool (…,)
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
        label_driven = np.broadcast_to(label_driven, shape[:-1]).ravel()
    rates = np.asarray(right / np.maximum(n_h, 1.0))
    factors = stratified_factors(n_h, sizes)
    labels = stratum_labels(sizes, n_h, rates, rates, factors=factors, label_driven=label_driven, binary=True)
    value = np.sum(labels.shares * rates, axis=-1)
    rates_of_strata = stratum_rates(value, labels, Variances())
    share = (1.0 - confidence_level) / 2.0
    low, high = stratified_clopper_pearson(rates_of_strata, share, share)
    return (np.minimum(low, value).reshape(shape[:-1]), np.maximum(high, value).reshape(shape[:-1]))


def expected_of_counts(
    sizes: IntArray,
    counts: IntArray,
    means: FloatArray,
    confidence_level: float,
    *,
    seen: tuple[IntArray, IntArray] | None = None,
    label_driven: Any = True,
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
    label_driven : bool, or bool (…,)
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
        sizes, counts, sets, confidence_level, label_driven=seen is not None and label_driven
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
    varies = (counts > 0) & (means > 0) & (means < 1)
    with np.errstate(invalid="ignore"):
        counts_of_levels = bdtrik(
            levels, np.where(varies, counts, 1).astype(np.float64), np.where(varies, means, 0.5)
        )
    # The quantile of a binomial count; the function gives a real number, often just above a whole.
    ones = np.clip(np.ceil(counts_of_levels - _ROUNDING), 0, counts)
    return np.asarray(np.where(varies, ones, counts * (np.asarray(means) >= 1.0)))
