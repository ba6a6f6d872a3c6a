"""Exact one-dimensional strata by dynamic programming over bins, for every number of strata at once.

`k_means_boundaries` minimises the within-strata sum of squares: by Proposition 2 of Fogliato et al. (2024)
the best strata on a calibrated proxy under proportional allocation. `neyman_boundaries` minimises Σ W_h S_h:
the best intervals under Neyman allocation, to leading order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.population.distribution import Distribution

NEYMAN_BINS = 1_500
"""Most bins of the full recursion of `neyman_boundaries`; more are merged first, the cuts refined after."""


@dataclass(frozen=True, slots=True)
class PrefixSums:
    """Sums over the bins before each of the B + 1 bin edges: a run of bins has its moments in O(1).

    Values are centred at the weighted median and summed outward from it: an offset costs no digits, and a far
    unit spoils only the sums beyond it.

    Examples
    --------
    >>> values = np.array([1e8, 1e8 + 2])
    >>> sums = PrefixSums.of(Distribution(values=values, counts=np.array([1, 1]), cuts=values[1:]))
    >>> float(sums.squares_within(np.array([0]), np.array([2]))[0])
    2.0
    """

    counts: FloatArray
    firsts: FloatArray
    squares: FloatArray
    conditional: FloatArray

    @classmethod
    def of(cls, distribution: Distribution) -> PrefixSums:
        """Return the sums of a distribution's bins."""
        counts = distribution.counts.astype(np.float64)
        anchor = int(np.searchsorted(np.cumsum(counts), 0.5 * counts.sum()))
        centred = distribution.values - distribution.values[anchor]
        powers = np.ones_like(centred), centred, centred**2, distribution.conditional_variances
        terms = counts * np.stack(powers)
        left = -np.cumsum(terms[:, anchor - 1 :: -1] if anchor else terms[:, :0], axis=1)[:, ::-1]
        outward = np.hstack([left, np.zeros((4, 1)), np.cumsum(terms[:, anchor:], axis=1)])
        return cls(*outward)

    def squares_within(self, start: IntArray, end: IntArray) -> FloatArray:
        """Return Σ (x − mean)² over the units of bins `start` … `end − 1`, not below zero."""
        firsts = self.firsts[end] - self.firsts[start]
        counts = self.counts[end] - self.counts[start]
        return np.asarray(np.maximum(self.squares[end] - self.squares[start] - firsts * firsts / counts, 0.0))

    def spread(self, start: IntArray, end: IntArray) -> FloatArray:
        """Return N_h S_h of bins `start` … `end − 1`, with S_h² = mean Var(z | x) + Var(E[z | x])."""
        counts = self.counts[end] - self.counts[start]
        inside = self.conditional[end] - self.conditional[start]
        return np.asarray(np.sqrt(counts * (np.maximum(inside, 0.0) + self.squares_within(start, end))))


def k_means_boundaries(distribution: Distribution, n_strata: int) -> list[IntArray]:
    """Return the boundaries that minimise the within-strata sum of squares, for 1, 2, … strata.

    The best last cut moves right as the end moves right, so each layer of the dynamic programme is solved by
    halving, all halves of a level in one NumPy pass: O(H · B log B) for B bins.

    Parameters
    ----------
    distribution : Distribution
        B bins.
    n_strata : int
        Largest number of strata wanted.

    Returns
    -------
    list of int (H − 1,), one for each H = 1, …, min(n_strata, B)
        First bin of every stratum but the first, increasing.

    Examples
    --------
    >>> values = np.array([1e8, 1e8 + 1, 1e8 + 5, 1e8 + 6])
    >>> picture = Distribution(values=values, counts=np.ones(4, int), cuts=values[1:])
    >>> [boundaries.tolist() for boundaries in k_means_boundaries(picture, 3)]
    [[], [2], [1, 2]]
    """
    n_bins = len(distribution.values)
    most = min(n_strata, n_bins)
    sums = PrefixSums.of(distribution)
    costs = np.full(n_bins + 1, np.inf)
    ends = np.arange(1, n_bins + 1)
    costs[1:] = sums.squares_within(np.zeros(n_bins, np.int64), ends)
    layers: list[IntArray] = []
    for layer in range(2, most + 1):
        base = costs - sums.squares
        if layer == most:
            choice = np.zeros(n_bins + 1, np.int64)
            last = np.array([n_bins])
            choice[last] = _best_cuts(sums, base, last, np.array([layer - 1]), last - 1)[1]
        else:
            costs, choice = _layer(sums, base, layer)
        layers.append(choice)
    return [_trace(layers[:count], n_bins) for count in range(most)]


def _layer(sums: PrefixSums, base: FloatArray, layer: int) -> tuple[FloatArray, IntArray]:
    """Return cost and best last cut for every end; `base` is the previous layer less the squares."""
    n_bins = len(base) - 1
    n_ends = n_bins - layer + 1  # ends layer, …, n_bins
    best = np.full(n_bins + 1, np.inf)
    choice = np.full(n_bins + 1, layer - 1, np.int64)
    step = 1 << (n_ends.bit_length() - 1)
    while step:
        ends = np.arange(step - 1, n_ends, 2 * step) + layer
        lowest = choice[np.maximum(ends - step, layer - 1)]
        right = ends + step
        highest = np.where(right <= n_bins, choice[np.minimum(right, n_bins)], n_bins)
        highest = np.maximum(np.minimum(highest, ends - 1), lowest)
        best[ends], choice[ends] = _best_cuts(sums, base, ends, lowest, highest)
        step >>= 1
    return best + sums.squares, choice


def _best_cuts(
    sums: PrefixSums, base: FloatArray, ends: IntArray, lowest: IntArray, highest: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return, of each end, the smallest value over its range of last cuts and where it is taken first."""
    lengths = highest - lowest + 1
    starts = np.cumsum(lengths) - lengths
    cuts = np.arange(int(lengths.sum())) + np.repeat(lowest - starts, lengths)
    gap = np.repeat(sums.firsts[ends], lengths)
    gap -= sums.firsts[cuts]
    gap *= gap
    weight = np.repeat(sums.counts[ends], lengths)
    weight -= sums.counts[cuts]
    gap /= weight
    values = np.subtract(base[cuts], gap, out=gap)
    smallest = np.minimum.reduceat(values, starts)
    hits = np.flatnonzero(values == np.repeat(smallest, lengths))
    return smallest, cuts[hits[np.searchsorted(hits, starts)]]


def _trace(layers: list[IntArray], end: int) -> IntArray:
    """Return the boundaries of len(layers) + 1 strata, from the best last cuts of each layer."""
    boundaries = np.empty(len(layers), np.int64)
    for layer in range(len(layers) - 1, -1, -1):
        end = int(layers[layer][end])
        boundaries[layer] = end
    return boundaries


def neyman_boundaries(distribution: Distribution, n_strata: int) -> list[IntArray]:
    """Return the boundaries that minimise Σ N_h S_h, with S_h the plug-in, for 1, 2, … strata.

    Σ W_h S_h squared over the budget is the variance under Neyman allocation, to leading order (Cochran 1977,
    5.26). The halving of `k_means_boundaries` is not exact for this cost, so every last cut is tried: exact
    on up to `NEYMAN_BINS` bins. With more, neighbours are merged first; each cut is then optimised, jointly
    with the others, over the bins around it.

    Parameters
    ----------
    distribution : Distribution
        B bins with second moments.
    n_strata : int
        Largest number of strata wanted.

    Returns
    -------
    list of int (H − 1,), one for each H = 1, …, min(n_strata, B)
        First bin of every stratum but the first, increasing.

    Examples
    --------
    >>> values = np.array([0.1, 0.2, 0.5, 0.95, 1.0])
    >>> picture = Distribution(
    ...     values=values, counts=np.array([10, 10, 10, 100, 500]), cuts=values[1:], second_moments=values
    ... )
    >>> neyman_boundaries(picture, 3)[2].tolist()
    [3, 4]
    """
    n_bins = len(distribution.values)
    sums = PrefixSums.of(distribution)
    edges = coarse_edges(distribution, NEYMAN_BINS)
    layers = _full_recursion(sums, edges, min(n_strata, len(edges) - 1))
    found = [edges[_trace(layers[:count], len(edges) - 1)] for count in range(len(layers) + 1)]
    if len(edges) == n_bins + 1:
        return found
    return [_refined(sums, edges, boundaries) for boundaries in found]


def coarse_edges(distribution: Distribution, most: int) -> IntArray:
    """Return the bin edges 0, …, B of at most `most` runs of bins: even in rank and in value, half each."""
    n_bins = len(distribution.values)
    if n_bins <= most:
        return np.arange(n_bins + 1)
    rank = (np.cumsum(distribution.counts) - 0.5 * distribution.counts) / distribution.counts.sum()
    height = np.searchsorted(
        np.linspace(distribution.values[0], distribution.values[-1], most), distribution.values
    )
    run = np.floor((0.5 * rank + 0.5 * height / most) * (most - 1)).astype(np.int64)
    return np.concatenate([[0], np.flatnonzero(np.diff(run)) + 1, [n_bins]])


def _full_recursion(sums: PrefixSums, edges: IntArray, n_strata: int) -> list[IntArray]:
    """Return the best last cut of every layer from the second on, for every end among `edges`."""
    costs = _cost_table(sums, edges, edges)
    best = costs[:, 0]
    layers = []
    for _ in range(1, n_strata):
        totals = costs + best
        choice = totals.argmin(axis=1)
        best = totals[np.arange(len(edges)), choice]
        layers.append(choice)
    return layers


def _cost_table(sums: PrefixSums, ends: IntArray, starts: IntArray) -> FloatArray:
    """Return the costs (ends, starts), infinite where a start is not below its end."""
    allowed = starts < ends[:, None]
    costs = np.full(allowed.shape, np.inf)
    rows, columns = np.nonzero(allowed)
    costs[rows, columns] = sums.spread(starts[columns], ends[rows])
    return costs


def _refined(sums: PrefixSums, edges: IntArray, boundaries: IntArray) -> IntArray:
    """Return the best boundaries with each free among the bins within one coarse run of where it was."""
    if len(boundaries) == 0:
        return boundaries
    position = np.searchsorted(edges, boundaries)
    windows = [np.arange(edges[p - 1] + 1, edges[p + 1]) for p in position]
    n_bins = int(edges[-1])
    best, starts = np.zeros(1), np.zeros(1, np.int64)
    choices = []
    for ends in [*windows, np.array([n_bins])]:
        totals = _cost_table(sums, ends, starts) + best
        choice = totals.argmin(axis=1)
        best, starts = totals[np.arange(len(ends)), choice], ends
        choices.append(choice)
    result = np.empty(len(boundaries), np.int64)
    at = 0
    for number in range(len(boundaries) - 1, -1, -1):
        at = int(choices[number + 1][at])
        result[number] = windows[number][at]
    return result
