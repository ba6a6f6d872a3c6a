"""The half-width to expect of the interval that will be used: of labels as a scenario would give them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import bdtrik, betaincinv

from stratal.arrays import FloatArray, IntArray
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.proportion import student_quantile
from stratal.planning.counts_so_far import REPLICATES, expected_of_counts, orders
from stratal.planning.unbounded_widths import expected_unbounded
from stratal.strata.moments import expected_variance
from stratal.weighting import StratifiedWeighting
from stratal.weighting.stratum_moments import satterthwaite

_MOST_LABELS = 5_000
"""With more labels the interval is the normal one to within a hundredth."""


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
    error = math.sqrt(expected_variance(sizes, n_h, variances))
    if not np.isfinite(high - low) and np.all(n_h >= 2) and n_h.sum() <= _MOST_LABELS:
        return expected_unbounded(sizes, n_h, variances, confidence_level, None if seen is None else seen[:2])
    if not np.isfinite(high - low):
        share = (1.0 - confidence_level) / 2.0
        parts = (sizes / sizes.sum()) ** 2 * variances / np.maximum(n_h, 1)
        freedom = max(float(satterthwaite(parts, np.maximum(n_h - 1.0, 0.0))), 1.0)
        return float(-student_quantile(share, freedom)) * error
    if n_h.sum() > _MOST_LABELS or np.all(n_h >= sizes):
        return float(-student_quantile((1.0 - confidence_level) / 2.0, np.inf)) * error
    known, of_known, looked = (np.empty(0), np.empty(0, np.int64), False) if seen is None else seen
    new = n_h - np.bincount(of_known, minlength=len(sizes))
    unit_means, unit_variances = (means - low) / (high - low), variances / (high - low) ** 2
    if seen is None and len(sizes) > 1 and np.all(unit_variances >= _NEARLY * unit_means * (1 - unit_means)):
        return (high - low) * float(expected_of_counts(sizes, n_h, unit_means, confidence_level))
    stratum = np.concatenate([of_known, np.repeat(np.arange(len(sizes)), new)])
    follow = looked and len(sizes) > 1
    weighting = StratifiedWeighting(stratum=stratum, sizes=sizes, sizes_follow_labels=follow)
    binary = bool(np.all((known == low) | (known == high)))
    widths = [
        _width(np.concatenate([known, low + (high - low) * labels]), weighting, bounds, confidence_level)
        for labels in label_sets(new, unit_means, unit_variances, whole=binary)
    ]
    return float(np.mean(widths)) / 2.0


def _width(
    z: FloatArray, weighting: StratifiedWeighting, bounds: tuple[float, float], confidence_level: float
) -> float:
    options: dict[str, Any] = {"estimator": "horvitz-thompson", "bounds": bounds}
    nothing = np.zeros((len(z), 0))
    found = estimate_mean(z, nothing, weighting, None, stratum=weighting.stratum, **options)
    return found.confidence_interval(confidence_level).width


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
    each = zip(n_h.tolist(), means.tolist(), variances.tolist(), orders(len(n_h)), strict=True)
    for n, mean, variance, order in each:
        largest = mean * (1.0 - mean)
        if n == 0 or largest <= 0:
            columns.append(np.full((REPLICATES, n), mean))
        elif whole and variance > _NEARLY * largest:
            # The quantile of a binomial count; the function gives a real number, often just above a whole.
            ones = np.clip(np.ceil(bdtrik(order, n, mean) - 1e-9), 0, n)
            columns.append((np.arange(n) < ones[:, None]).astype(np.float64))
        else:
            columns.append(_graded(n, mean, min(variance, _NEARLY * largest), order))
    return [np.concatenate([column[k] for column in columns]) for k in range(REPLICATES)]


_NEARLY = 0.98


def _graded(n: int, mean: float, variance: float, order: FloatArray) -> FloatArray:
    strength = mean * (1.0 - mean) / max(variance, 1e-12) - 1.0
    levels = (np.arange(n) + order[:, None]) / n
    return np.asarray(betaincinv(mean * strength, (1.0 - mean) * strength, levels))


def smallest_budget(width: Callable[[int], float], wanted: float, start: int, least: int, most: int) -> int:
    """Return the smallest budget, to within a hundredth, whose width is as wanted; `most` if none is.

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
    one = [np.array([number]) for number in (start, least, most)]
    return int(smallest_budgets(lambda n, _: np.array([width(int(n[0]))]), wanted, *one)[0])


def smallest_budgets(
    width: Callable[[IntArray, IntArray], FloatArray],
    wanted: float,
    start: IntArray,
    least: IntArray,
    most: IntArray,
) -> IntArray:
    """Return the smallest budgets (R,), to within a hundredth, whose widths are as wanted.

    Squared widths are about linear in 1/n, so that a few looks are enough.

    Parameters
    ----------
    width : callable
        Budgets (r,) and the replicates (r,) that they are of, to half-widths (r,).
    wanted : float
    start, least, most : int (R,)
        As in `smallest_budget`.

    Examples
    --------
    >>> at = [np.full(2, number) for number in (20, 2, 1000)]
    >>> smallest_budgets(lambda n, rows: (1.0 + rows) * n**-0.5, 0.1, *at)
    array([100, 400])
    """
    above, below = least - 1, most.copy()
    # Every unit labelled leaves nothing open.
    wide, narrow = np.full(len(most), np.nan), np.zeros(len(most))
    rows, n = np.arange(len(most)), np.clip(start, least, most)
    for _ in range(_MOST_LOOKS):
        squared = width(n, rows) ** 2
        enough = squared <= wanted**2
        below[rows[enough]], narrow[rows[enough]] = n[enough], squared[enough]
        above[rows[~enough]], wide[rows[~enough]] = n[~enough], squared[~enough]
        open_ = below[rows] - above[rows] > np.maximum(1, below[rows] // 100)
        rows = rows[open_]
        if len(rows) == 0:
            break
        last = (n[open_], squared[open_])
        ends = above[rows], wide[rows], below[rows], narrow[rows]
        n = _between(ends, last, most[rows], wanted**2)
    return below


_MOST_LOOKS = 24


def _between(
    ends: tuple[IntArray, FloatArray, IntArray, FloatArray],
    last: tuple[IntArray, FloatArray],
    most: IntArray,
    wanted: float,
) -> IntArray:
    """Return the next budgets (r,) to look at, within their brackets (above, below with squared widths)."""
    above, wide, below, narrow = ends
    both = np.isfinite(wide)
    one, first = 1.0 / np.where(both, above, last[0]), np.where(both, wide, last[1])
    other, second = 1.0 / np.where(both, below, most), np.where(both, narrow, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = other + (wanted - second) * (one - other) / (first - second)
        usable = np.isfinite(first) & (first != second) & (inverse > 0)
        guess = np.ceil(np.minimum(1.0 / np.where(usable, inverse, 1.0), below))
    guess = np.where(usable, guess, (above + below) // 2).astype(np.int64)
    least = np.maximum((below - above) // 8, 1)
    return np.asarray(np.minimum(np.maximum(guess, above + least), below - least))
