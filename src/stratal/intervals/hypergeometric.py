"""Tests of a hypergeometric count: K of n labels are ones, if M of the N units are ones."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from stratal.arrays import FloatArray, IntArray

# Maximum number of terms of the tail in memory at once.
_BATCH_TERMS = 2_000_000

# Number of units by which the product of a probability and N may differ from a whole number by rounding.
_ROUNDING = 1e-6


def smallest_count(ones: IntArray, counts: IntArray, size: int, error: float) -> IntArray:
    """Return the smallest M (…,) of N = `size` for which P(K ≥ ones) of n labels is larger than `error`.

    Parameters
    ----------
    ones, counts : int (…,)
        k and n; `counts` may have fewer axes.
    size : int
    error : float

    Examples
    --------
    >>> smallest_count(np.array([15, 16]), np.array(16), 20, 0.025)
    array([17, 18])
    """
    shape = np.shape(ones)
    pairs = np.column_stack([np.ravel(ones), np.broadcast_to(counts, shape).ravel()])
    distinct_pairs, pair_index = np.unique(pairs, axis=0, return_inverse=True)
    k, n = distinct_pairs.T
    too_small = k - 1
    # All units that were not drawn are ones.
    large_enough = k + size - n
    while np.any(is_open := large_enough - too_small > 1):
        middle = (too_small + large_enough) // 2
        is_enough = np.zeros(len(k), dtype=bool)
        tail = hypergeometric_upper_tail(k[is_open], n[is_open], size, middle[is_open])
        is_enough[is_open] = tail > error
        large_enough = np.where(is_open & is_enough, middle, large_enough)
        too_small = np.where(is_open & ~is_enough, middle, too_small)
    return np.asarray(large_enough[pair_index.ravel()].reshape(shape))


def largest_count(ones: IntArray, counts: IntArray, size: int, error: float) -> IntArray:
    """Return the largest M (…,) for which P(K ≤ ones) is larger than `error`."""
    return np.asarray(size - smallest_count(counts - ones, counts, size, error))


def quantile_ranks(
    n: int, size: int, probability: float, error_below: float, error_above: float
) -> tuple[int, int]:
    """Return the ranks among n labels, 1 … n, of the limits of a quantile of N = `size` units.

    Rank 0 or n + 1 means that there is no limit on this side. The quantile is that of the ⌈qN⌉-th unit. The
    lower rank is the largest r with P(K < r) ≤ `error_below`, where K is the hypergeometric number of labels
    at or below the quantile. The upper rank is the smallest s with P(K′ ≥ s) ≤ `error_above`, where K′ is the
    number of labels below it (David & Nagaraja 2003, section 7.1).

    Examples
    --------
    >>> quantile_ranks(400, 10**6, 0.01, 0.025, 0.025), quantile_ranks(5, 10**6, 0.5, 0.025, 0.025)
    ((1, 9), (0, 6))
    """
    units_at_or_below = int(np.ceil(probability * size - _ROUNDING))
    lower_rank = 0
    upper_rank = n + 1
    if error_below > 0:
        # The labels above the quantile are a hypergeometric count of the other units.
        lower_rank = n + 1 - _smallest_rare_count(n, size, size - units_at_or_below, error_below)
    if error_above > 0:
        upper_rank = _smallest_rare_count(n, size, units_at_or_below - 1, error_above)
    return lower_rank, upper_rank


def _smallest_rare_count(n: int, size: int, total: int, error: float) -> int:
    """Return the smallest k, up to n + 1, with P(K ≥ k) ≤ `error`, if M = `total` of the N units are ones."""
    not_rare = max(n - (size - total), 0)
    rare = min(n, total) + 1
    while rare - not_rare > 1:
        middle = (not_rare + rare) // 2
        tail = hypergeometric_upper_tail(np.array([middle]), np.array([n]), size, np.array([total]))[0]
        if tail <= error:
            rare = middle
        else:
            not_rare = middle
    return rare


def hypergeometric_upper_tail(ones: IntArray, counts: IntArray, size: int, total: IntArray) -> FloatArray:
    """Return P(K ≥ k) (R,) of k = `ones` among n = `counts` drawn of N units, M = `total` of them ones.

    It is the first term, P(K = k), times one plus the cumulative products of the ratios of later terms. k
    ones must be possible: k ≤ M, and n − k ≤ N − M.
    """
    n_ratios = np.minimum(counts, total) - ones
    log_first_terms = (log_binomial(total, ones) + log_binomial(size - total, counts - ones)) - log_binomial(
        np.full(1, size), counts
    )
    tails = np.zeros(len(ones))
    batch_size = max(_BATCH_TERMS // (int(n_ratios.max(initial=0)) + 1), 1)
    for start in range(0, len(ones), batch_size):
        rows = slice(start, start + batch_size)
        j = np.arange(int(n_ratios[rows].max(initial=0)))
        k, n, m = (array[rows, None].astype(np.float64) for array in (ones, counts, total))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (m - k - j) * (n - k - j) / ((k + j + 1.0) * (size - m - n + k + j + 1.0))
        ratios = np.where(j < n_ratios[rows, None], np.maximum(ratios, 0.0), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            log_tails = log_first_terms[rows] + np.log1p(np.cumprod(ratios, axis=1).sum(axis=1))
        tails[rows] = np.exp(np.minimum(log_tails, 0.0))
    return tails


def log_binomial(total: IntArray, chosen: IntArray) -> FloatArray:
    """Return the logarithm of the binomial coefficient; 0 outside 0 ≤ chosen ≤ total."""
    is_possible = (chosen >= 0) & (chosen <= total)
    total = np.where(is_possible, total, 0.0)
    chosen = np.where(is_possible, chosen, 0.0)
    return np.asarray(gammaln(total + 1.0) - gammaln(chosen + 1.0) - gammaln(total - chosen + 1.0))
