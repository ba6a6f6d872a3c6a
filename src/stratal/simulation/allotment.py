"""Whole numbers of labels for thousands of replicates at once, each with standard deviations of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray

_STEPS = 60
_NEGLIGIBLE = 1e-12


def optimal_counts(importance: FloatArray, lower: Any, upper: IntArray, budget: int) -> IntArray:
    """Return the n_h (R, H) that minimise Σ a_h²/n_h in every replicate, Σ n_h = budget, within the bounds.

    `stratal.allocation.integers.optimal_integers` on arrays: Wright's priorities a/√(n (n + 1)).

    Parameters
    ----------
    importance : float (R, H)
        a_h; a replicate of zeros is shared in proportion to `upper`.
    lower : int (H,) or (R, H)
        At least 1.
    upper : int (H,)
        N_h.
    budget : int

    Examples
    --------
    >>> optimal_counts(np.array([[15.6, 0.4, 1.08]]), np.ones(3, dtype=int), np.array([8, 10, 9]), 12)
    array([[8, 1, 3]])
    """
    a = _positive(importance, upper)
    least = np.minimum(np.broadcast_to(np.asarray(lower, dtype=np.float64), a.shape), upper)
    low = np.full((len(a), 1), np.log(_NEGLIGIBLE) - np.log(upper.max() + 2.0) - 40.0)
    high = np.full((len(a), 1), 2.0)
    best = least.copy()
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        ratio = np.minimum(a * np.exp(-middle), 1e12)
        worth = np.floor((np.sqrt(1.0 + 4.0 * ratio * ratio) - 1.0) / 2.0) + 1.0
        counts = np.clip(worth, least, upper)
        fits = counts.sum(axis=1, keepdims=True) <= budget
        best = np.where(fits, counts, best)
        high, low = np.where(fits, middle, high), np.where(fits, low, middle)
    start = np.maximum(best - 1.0, least)  # one back, against rounding in the closed form
    return _hand_out(a, start, upper, budget, lambda n: 1.0 / np.sqrt(n * (n + 1.0)))


def rounded_shares(importance: FloatArray, upper: IntArray, budget: int) -> IntArray:
    """Return n_h (R, H) as near to budget · a_h / Σ a_h as whole numbers get (Webster's rule).

    What a paper's real-valued rule becomes; a larger budget never takes a label back.

    Examples
    --------
    >>> rounded_shares(np.array([[5.2, 4.8, 0.0]]), np.array([50, 50, 50]), 7)
    array([[4, 3, 0]])
    """
    a = _positive(importance, upper)
    quota = budget * a / a.sum(axis=1, keepdims=True)
    start = np.minimum(np.maximum(np.floor(quota) - 1.0, 0.0), upper)
    return _hand_out(a, start, upper, budget, lambda n: 1.0 / (n + 0.5))


def _hand_out(
    a: FloatArray, start: FloatArray, upper: IntArray, budget: int, value: Callable[[FloatArray], FloatArray]
) -> IntArray:
    """Return `start` with one unit after another given to the highest a · value(n), up to the budget."""
    n, rows = start.copy(), np.arange(len(a))
    left = budget - n.sum(axis=1)
    with np.errstate(divide="ignore"):
        for _ in range(int(left.max(initial=0))):
            worth = np.where(n < upper, a * value(n), -1.0)
            n[rows, worth.argmax(axis=1)] += left > 0
            left -= 1
    return n.astype(np.int64)


def _positive(importance: FloatArray, upper: IntArray) -> FloatArray:
    """Return a_h with largest 1; zeros come last of all, among themselves by size."""
    largest = importance.max(axis=1, keepdims=True)
    a = np.where(largest > 0, importance / np.where(largest > 0, largest, 1.0), 0.0)
    tiny = upper / upper.max()
    return np.asarray(np.where(largest > 0, np.maximum(a, _NEGLIGIBLE * tiny), tiny))
