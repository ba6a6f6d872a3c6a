"""How many of N units are 1, by the count among n drawn without replacement: the test inverted, exactly.

The smallest M that P(K ≥ k | M) > α/2 allows, and the largest that P(K ≤ k | M) > α/2 does: for drawing
without replacement what Clopper & Pearson's limits are for independent draws (Wendell & Schmee 2001).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from stratal.arrays import FloatArray, IntArray

_AT_ONCE = 2_000_000
"""Terms of the tail that are held at once."""


def smallest_count(ones: IntArray, counts: IntArray, size: int, error: float) -> IntArray:
    """Return the smallest M (…,) of N = `size` under which as many `ones` among n have probability > `error`.

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
    each, back = np.unique(
        np.column_stack([np.ravel(ones), np.broadcast_to(counts, shape).ravel()]), axis=0, return_inverse=True
    )
    k, n = each.T
    below, found = k - 1, k + size - n  # at most: all that were not drawn are 1
    while np.any(open_ := found - below > 1):
        middle = (below + found) // 2
        enough = np.zeros(len(k), dtype=bool)
        enough[open_] = _upper_tail(k[open_], n[open_], size, middle[open_]) > error
        found = np.where(open_ & enough, middle, found)
        below = np.where(open_ & ~enough, middle, below)
    return np.asarray(found[back.ravel()].reshape(shape))


def largest_count(ones: IntArray, counts: IntArray, size: int, error: float) -> IntArray:
    """Return the largest M (…,) under which so few `ones` have probability > `error`.

    Examples
    --------
    >>> largest_count(np.array([0, 1]), np.array(16), 20, 0.025)
    array([2, 3])
    """
    return np.asarray(size - smallest_count(counts - ones, counts, size, error))


def _upper_tail(ones: IntArray, counts: IntArray, size: int, total: IntArray) -> FloatArray:
    """Return P(K ≥ k) (R,) of k among n drawn of N units, M of them 1: the first term and its ratios."""
    most = np.minimum(counts, total)
    terms = np.maximum(most - ones, 0)
    first = _logs(total, ones) + _logs(size - total, counts - ones) - _logs(np.full(1, size), counts)
    result = np.zeros(len(ones))
    batch = max(_AT_ONCE // (int(terms.max(initial=0)) + 1), 1)
    for start in range(0, len(ones), batch):
        some = slice(start, start + batch)
        step = np.arange(int(terms[some].max(initial=0)))
        k, n, m = (part[some, None].astype(np.float64) for part in (ones, counts, total))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (m - k - step) * (n - k - step) / ((k + step + 1.0) * (size - m - n + k + step + 1.0))
        ratio = np.where(step < terms[some, None], np.maximum(ratio, 0.0), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            whole = first[some] + np.log1p(np.cumprod(ratio, axis=1).sum(axis=1))
        result[some] = np.exp(np.minimum(whole, 0.0))
    impossible = (ones > most) | (counts - ones > size - total)
    return np.where(impossible, np.where(ones > most, 0.0, 1.0), result)


def _logs(whole: IntArray, part: IntArray) -> FloatArray:
    """Return the logarithm of the binomial coefficient; nonsense outside 0 ≤ part ≤ whole."""
    inside = (part >= 0) & (part <= whole)
    whole, part = np.where(inside, whole, 0.0), np.where(inside, part, 0.0)
    return np.asarray(gammaln(whole + 1.0) - gammaln(part + 1.0) - gammaln(whole - part + 1.0))
