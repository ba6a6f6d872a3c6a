"""k-means with integer coordinates: equal rows and seeds give equal centres on every machine.

Floating-point sums depend on the order of the additions, and therefore on the processor, the BLAS library and
the number of threads. Such differences may lead k-means to another local optimum. Here, coordinates are
integers on a grid (`population.rules.IntegerGrid`) with so few bits that every product, distance and sum is
exact in double precision or in 64-bit integers, for any order.
"""

from __future__ import annotations

import math

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray

# Number of random starts; the result has the smallest sum of squares.
N_STARTS = 4

# Maximum number of Lloyd's steps of a start.
_MAX_STEPS = 300

# A start has converged if a step reduces the sum of squares by less than the share 2⁻¹⁴.
_TOLERANCE_BITS = 14

# Number of rows whose distances are computed at once, which limits the memory.
_ROWS_AT_ONCE = 16_384

# Bits of the integers that a double represents exactly.
_DOUBLE_BITS = 53

# Bits of a signed 64-bit integer without the sign.
_INTEGER_BITS = 63


def coordinate_bits(n_rows: int, n_columns: int) -> int:
    """Return the largest number of bits of a coordinate for which sums of squared distances are exact.

    A squared distance is at most d · 2^(2 bits + 2). It must fit into a double, and the sum over n rows into
    a 64-bit integer.
    """
    columns = math.ceil(math.log2(n_columns))
    rows = math.ceil(math.log2(max(n_rows, 2)))
    return min(_DOUBLE_BITS - 3 - columns, _INTEGER_BITS - 3 - columns - rows) // 2


def whole_number_k_means(rows: FloatArray, n_clusters: int, seed: int) -> FloatArray:
    """Return integer centres (K, d); there are fewer if there are fewer distinct rows.

    Initial centres are drawn by greedy k-means++ (Arthur & Vassilvitskii 2007) and improved by Lloyd's steps.

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
    for start in range(N_STARTS):
        bit_generator = np.random.Philox(key=seed, counter=start << 64)
        centres = _initial_centres(rows, squares, n_clusters, bit_generator)
        centres, total = _improve_centres(rows, squares, centres)
        if total < best_total:
            best_centres = centres
            best_total = total
    return np.unique(best_centres, axis=0)


def _squared_distances(rows: FloatArray, squares: FloatArray, centres: FloatArray) -> FloatArray:
    """Return the exact squared distances (n, K); `squares` (n,) are the squared norms of the rows."""
    return np.asarray(squares[:, None] - 2.0 * (rows @ centres.T) + np.sum(centres**2, axis=1))


def _initial_centres(
    rows: FloatArray, squares: FloatArray, n_clusters: int, bit_generator: np.random.Philox
) -> FloatArray:
    """Return at most K distinct rows, drawn one after another by greedy k-means++.

    Of several candidates, which are drawn with probabilities proportional to the squared distances from the
    nearest centre, the one that reduces the sum of squares most becomes the next centre.
    """
    n_candidates = 2 + int(math.log(n_clusters))
    first = _random_below(bit_generator, len(rows))
    centre_rows = [first]
    nearest = _squared_distances(rows, squares, rows[[first]])[:, 0].astype(np.int64)
    while len(centre_rows) < n_clusters:
        cumulative = np.cumsum(nearest)
        total = int(cumulative[-1])
        if total == 0:  # every distinct row is a centre already
            break
        targets = [_random_below(bit_generator, total) for _ in range(n_candidates)]
        candidates = np.searchsorted(cumulative, targets, side="right")
        distances = _squared_distances(rows, squares, rows[candidates]).astype(np.int64)
        new_nearest = np.minimum(distances, nearest[:, None])
        best = int(np.argmin(new_nearest.sum(axis=0)))
        centre_rows.append(int(candidates[best]))
        nearest = new_nearest[:, best]
    return rows[centre_rows]


def _random_below(bit_generator: np.random.Philox, limit: int) -> int:
    """Return a random integer from 0 to limit − 1, from raw output, which is equal in all NumPy versions."""
    return int(bit_generator.random_raw()) * limit >> 64


def _improve_centres(rows: FloatArray, squares: FloatArray, centres: FloatArray) -> tuple[FloatArray, int]:
    """Return the centres (K, d) after Lloyd's steps, and the sum of squared distances to them."""
    labels, distances = _nearest_centres(rows, squares, centres)
    total = int(distances.sum())
    for _ in range(_MAX_STEPS):
        new_centres = _rounded_means(rows, labels, distances, len(centres))
        new_labels, new_distances = _nearest_centres(rows, squares, new_centres)
        new_total = int(new_distances.sum())
        if new_total >= total:
            break
        gain = total - new_total
        centres = new_centres
        labels = new_labels
        distances = new_distances
        total = new_total
        if gain << _TOLERANCE_BITS < total:
            break
    return centres, total


def _nearest_centres(rows: FloatArray, squares: FloatArray, centres: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the nearest centre of each row (n,), the first of several, and its squared distance (n,)."""
    labels = np.empty(len(rows), np.int64)
    distances = np.empty(len(rows), np.int64)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        batch = slice(start, start + _ROWS_AT_ONCE)
        batch_distances = _squared_distances(rows[batch], squares[batch], centres)
        labels[batch] = np.argmin(batch_distances, axis=1)
        distances[batch] = batch_distances[np.arange(len(batch_distances)), labels[batch]]
    return labels, distances


def _rounded_means(rows: FloatArray, labels: IntArray, distances: IntArray, n_clusters: int) -> FloatArray:
    """Return the mean of the rows of each cluster, rounded to the grid.

    The centre of an empty cluster is the row with the largest distance from its centre.
    """
    sums = np.zeros((n_clusters, rows.shape[1]))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        batch = slice(start, start + _ROWS_AT_ONCE)
        is_member: AnyArray = np.zeros((n_clusters, len(labels[batch])))
        is_member[labels[batch], np.arange(is_member.shape[1])] = 1.0
        sums += is_member @ rows[batch]
    counts = np.bincount(labels, minlength=n_clusters)
    means = np.floor(sums / np.maximum(counts, 1)[:, None] + 0.5)
    empty = np.flatnonzero(counts == 0)
    farthest = np.argsort(-distances, kind="stable")[: len(empty)]
    means[empty] = rows[farthest]
    return np.asarray(means)
