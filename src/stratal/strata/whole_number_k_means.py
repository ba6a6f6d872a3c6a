"""k-means in whole numbers: the same rows and seed give the same centres on every machine.

Floating-point sums depend on their order, and with it on the processor, the BLAS library and the number of
threads. A last digit decides between two starting centres, and k-means then ends in another local optimum.
Here coordinates are whole numbers on a grid (`population.rules.Grid`), few enough bits long that every
product, distance and sum is exact in double precision or 64-bit integers, whatever the order.
"""

from __future__ import annotations

import math

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray

# Starts, of which the one with the smallest sum of squares is kept.
STARTS = 4

# Assignments of all rows per start at most.
_ITERATIONS = 300

# A start ends when a step takes off less than this fraction of the sum of squares: one part in 2^14.
_TOLERANCE_BITS = 14

# Rows whose distances are held at once.
_ROWS_AT_ONCE = 16_384

# Bits of a whole number that a double holds exactly, and of one that a signed 64-bit integer holds.
_DOUBLE_BITS = 53

# Sums of integers must fit into 64 bits with a sign.
_INTEGER_BITS = 63


def coordinate_bits(n_rows: int, n_columns: int) -> int:
    """Return the bits of a coordinate with which squared distances of n rows add up exactly.

    A squared distance is at most d · 2^(2 bits + 2): a double holds it, and 64 bits the sum over n rows.
    """
    columns = math.ceil(math.log2(n_columns))
    rows = math.ceil(math.log2(max(n_rows, 2)))
    return min(_DOUBLE_BITS - 3 - columns, _INTEGER_BITS - 3 - columns - rows) // 2


def whole_number_k_means(rows: FloatArray, n_clusters: int, seed: int) -> FloatArray:
    """Return the centres (K, d) of the best of several starts, as whole numbers; fewer where rows are equal.

    Starting centres are drawn by greedy k-means++ (Arthur & Vassilvitskii 2007), improved by Lloyd's steps.

    Parameters
    ----------
    rows : float (n, d)
        Whole numbers of at most `coordinate_bits` bits.
    n_clusters : int
    seed : int
    """
    squares = np.sum(rows**2, axis=1)
    best_centres = rows[:1]
    best_total = math.inf
    for start in range(STARTS):
        raw = np.random.Philox(key=seed, counter=start << 64)
        centres = _starting_centres(rows, squares, n_clusters, raw)
        centres, total = _improved_centres(rows, squares, centres)
        if total < best_total:
            best_centres = centres
            best_total = total
    return np.unique(best_centres, axis=0)


def _squared_distances(rows: FloatArray, squares: FloatArray, centres: FloatArray) -> FloatArray:
    """Return the squared distances (n, K), exact."""
    return np.asarray(squares[:, None] - 2.0 * (rows @ centres.T) + np.sum(centres**2, axis=1))


def _starting_centres(
    rows: FloatArray, squares: FloatArray, n_clusters: int, raw: np.random.Philox
) -> FloatArray:
    """Return at most K distinct rows, each drawn in proportion to its squared distance from those before."""
    trials = 2 + int(math.log(n_clusters))
    first = _below(raw, len(rows))
    chosen = [first]
    nearest = _squared_distances(rows, squares, rows[[first]])[:, 0].astype(np.int64)
    while len(chosen) < n_clusters:
        cumulative = np.cumsum(nearest)
        total = int(cumulative[-1])
        if total == 0:  # every row is a centre already
            break
        targets = [_below(raw, total) for _ in range(trials)]
        candidates = np.searchsorted(cumulative, targets, side="right")
        distances = _squared_distances(rows, squares, rows[candidates]).astype(np.int64)
        remaining = np.minimum(distances, nearest[:, None])
        best = int(np.argmin(remaining.sum(axis=0)))
        chosen.append(int(candidates[best]))
        nearest = remaining[:, best]
    return rows[chosen]


def _below(raw: np.random.Philox, limit: int) -> int:
    """Return a random whole number from 0 to limit − 1, from raw output, which NumPy keeps stable."""
    return int(raw.random_raw()) * limit >> 64


def _improved_centres(rows: FloatArray, squares: FloatArray, centres: FloatArray) -> tuple[FloatArray, int]:
    """Return the centres (K, d) after Lloyd's steps, and the sum of squared distances to them."""
    labels, distances = _nearest(rows, squares, centres)
    total = int(distances.sum())
    for _ in range(_ITERATIONS):
        moved = _rounded_means(rows, labels, distances, len(centres))
        new_labels, new_distances = _nearest(rows, squares, moved)
        new_total = int(new_distances.sum())
        if new_total >= total:
            break
        gain = total - new_total
        centres = moved
        labels = new_labels
        distances = new_distances
        total = new_total
        if gain << _TOLERANCE_BITS < total:
            break
    return centres, total


def _nearest(rows: FloatArray, squares: FloatArray, centres: FloatArray) -> tuple[IntArray, IntArray]:
    """Return each row's nearest centre (n,), the first among equals, and its squared distance (n,)."""
    labels = np.empty(len(rows), np.int64)
    distances = np.empty(len(rows), np.int64)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        every = _squared_distances(rows[part], squares[part], centres)
        labels[part] = np.argmin(every, axis=1)
        distances[part] = every[np.arange(len(every)), labels[part]]
    return labels, distances


def _rounded_means(rows: FloatArray, labels: IntArray, distances: IntArray, n_clusters: int) -> FloatArray:
    """Return the mean of each cluster's rows, rounded to the grid; an empty one takes the farthest row."""
    sums = np.zeros((n_clusters, rows.shape[1]))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        members: AnyArray = np.zeros((n_clusters, len(labels[part])))
        members[labels[part], np.arange(members.shape[1])] = 1.0
        sums += members @ rows[part]
    counts = np.bincount(labels, minlength=n_clusters)
    means = np.floor(sums / np.maximum(counts, 1)[:, None] + 0.5)
    empty = np.flatnonzero(counts == 0)
    farthest = np.argsort(-distances, kind="stable")[: len(empty)]
    means[empty] = rows[farthest]
    return np.asarray(means)
