"""Optimal intervals of a proxy by dynamic programming over its bins, for all numbers of strata in one run.

`k_means_boundaries` minimises the within-strata sum of squares. By Proposition 2 of Fogliato et al. (2024),
these are the optimal strata of a calibrated proxy under proportional allocation. `neyman_boundaries`
minimises Σ W_h S_h, which is optimal under Neyman allocation, to leading order. `robust_neyman_boundaries`
minimises the same sum with the S_h of the robust allocation, which is averaged over possible miscalibrations.

The functions describe strata by bin edges: edge b is between the bins b − 1 and b, so that B bins have the
edges 0, …, B. A stratum from edge a (its start) to edge b (its end) has the bins a, …, b − 1. The boundaries
of H strata are the H − 1 edges between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from stratal.arrays import FloatArray, IntArray, frozen, unit_scale
from stratal.population.distribution import Distribution
from stratal.strata.strata import possible_rates

# Maximum number of bins for the full recursion of `neyman_boundaries`. More bins are merged into runs first,
# and the boundaries are refined afterwards.
MAX_NEYMAN_BINS = 1_500

# Maximum number of bins for `robust_neyman_boundaries`. More bins are merged into runs. The sum Σ N_h S_h is
# then at most 0.001% above its minimum, and the time is at most that of k-means.
MAX_ROBUST_BINS = 300

# `neyman_boundaries_for_number` computes the boundaries of at least so many strata in one recursion. A plan
# compares up to this number.
SHARED_NUMBERS = 15

# Number of runs of bins from which `k_means_boundaries_for_number` computes the first windows, the ranges of
# possible edges of each boundary.
INITIAL_RUNS = 192

# Target size of the widest window, in bins. Each step divides the widest window into this number of runs.
WINDOW_SIZE = 128

# Minimum numbers of bins, and of initial runs per stratum, at which windows save time.
MIN_BINS_FOR_WINDOWS = 4 * INITIAL_RUNS
MIN_RUNS_PER_STRATUM = 4

# Up to this number of edges, or its square of pairs of a start and an end, comparing all pairs in one array
# operation takes less time than the divide-and-conquer recursion.
MAX_DENSE_EDGES = 129

# Rounding errors relative to the largest sum of squares: of a difference of sums, and of the cost of strata.
_DIFFERENCE_ROUNDING = 1e-14
_COST_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class PrefixSums:
    """Cumulative sums at the B + 1 bin edges (B + 1,), from which the moments of any stratum follow in O(1).

    Values are centred at the weighted median, and the sums start there. A large offset of the values
    therefore causes no rounding error, and an outlier affects only the sums beyond it.

    Parameters
    ----------
    counts, totals, squares : float (B + 1,)
        Sums of 1, x and x² over the units, with x the centred value.
    conditional_variances : float (B + 1,)
        Sum of Var(z | x).
    """

    counts: FloatArray
    totals: FloatArray
    squares: FloatArray
    conditional_variances: FloatArray

    @classmethod
    def of(cls, distribution: Distribution) -> PrefixSums:
        """Return the sums of a distribution's bins."""
        counts = distribution.counts.astype(np.float64)
        anchor = int(np.searchsorted(np.cumsum(counts), 0.5 * counts.sum()))
        centred = distribution.values - distribution.values[anchor]
        terms = counts * np.stack(
            [np.ones_like(centred), centred, centred**2, distribution.conditional_variances]
        )
        # The sums start at the anchor. Those before it are negative.
        terms_before = terms[:, :anchor][:, ::-1]
        sums_before = -np.cumsum(terms_before, axis=1)[:, ::-1]
        sums_after = np.cumsum(terms[:, anchor:], axis=1)
        return cls(*np.hstack([sums_before, np.zeros((4, 1)), sums_after]))

    def to_bytes(self) -> bytes:
        """Return the contents of the four arrays, from which `from_bytes` makes equal sums."""
        return np.stack([self.counts, self.totals, self.squares, self.conditional_variances]).tobytes()

    @classmethod
    def from_bytes(cls, contents: bytes) -> PrefixSums:
        """Return the sums with these contents."""
        return cls(*np.frombuffer(contents).reshape(4, -1))

    def squares_within(self, start: IntArray, end: IntArray) -> FloatArray:
        """Return Σ (x − mean)², at least 0, of the strata between the edges `start` and `end`."""
        totals = self.totals[end] - self.totals[start]
        counts = self.counts[end] - self.counts[start]
        squares = self.squares[end] - self.squares[start]
        return np.asarray(np.maximum(squares - totals * totals / counts, 0.0))

    def neyman_cost(self, start: IntArray, end: IntArray) -> FloatArray:
        """Return N_h S_h of strata, with S_h² = mean Var(z | x) + Var(E[z | x])."""
        counts = self.counts[end] - self.counts[start]
        conditional = self.conditional_variances[end] - self.conditional_variances[start]
        return np.asarray(np.sqrt(counts * (np.maximum(conditional, 0.0) + self.squares_within(start, end))))


# Returns N_h S_h of the strata between start edges and end edges, of equal shapes.
StratumCost = Callable[[IntArray, IntArray], FloatArray]


@dataclass(frozen=True, slots=True)
class RateSums:
    """Cumulative sums at the B + 1 bin edges of possible rates: mean outcomes if the proxy is miscalibrated.

    Parameters
    ----------
    counts : float (B + 1,)
        Number of units.
    rates : float (9, B + 1)
        Sum of the mean outcomes of these units, for each slope on the log-odds (`possible_rates`).
    """

    counts: FloatArray
    rates: FloatArray

    @classmethod
    def of(cls, distribution: Distribution) -> RateSums:
        """Return the sums of a distribution's bins."""
        assert distribution.bounds is not None
        means = np.clip(unit_scale(distribution.values, distribution.bounds), 0.0, 1.0)
        rates = distribution.counts * possible_rates(distribution.counts, means)
        zeros = np.zeros((len(rates), 1))
        return cls(
            counts=np.append(0.0, np.cumsum(distribution.counts)),
            rates=np.hstack([zeros, np.cumsum(rates, axis=1)]),
        )

    def neyman_cost(self, start: IntArray, end: IntArray) -> FloatArray:
        """Return N_h S_h of strata, with S_h² the mean of r(1 − r) over the slopes."""
        counts = self.counts[end] - self.counts[start]
        rates = self.rates[:, end] - self.rates[:, start]
        return np.asarray(np.sqrt(np.maximum((rates * (counts - rates)).mean(axis=0), 0.0)))


def k_means_boundaries(distribution: Distribution, n_strata: int) -> list[IntArray]:
    """Return the boundaries that minimise the within-strata sum of squares, for 1, 2, … strata.

    The best start of the last stratum does not decrease as its end increases. Each layer of the dynamic
    programme is therefore solved by divide and conquer, with all subproblems of a level in one NumPy
    operation: O(H · B log B) for B bins. The result has arrays (H − 1,) for H = 1, …, min(n_strata, B).
    """
    n_bins = len(distribution.values)
    max_strata = min(n_strata, n_bins)
    # Each stratum may be the last one, for a smaller number of strata, and then ends at the last edge.
    lowest_ends = np.append(np.arange(1, max_strata), n_bins)
    highest_ends = np.full(max_strata, n_bins)
    layers = _solve_layers(PrefixSums.of(distribution), lowest_ends, highest_ends)
    return [_trace_back(layers[:count], n_bins) for count in range(max_strata)]


def k_means_boundaries_for_number(distribution: Distribution, n_strata: int) -> IntArray:
    """Return the boundaries that minimise the within-strata sum of squares for one number of strata.

    The result is identical to the last one of `k_means_boundaries`. It takes less than half of the time,
    because edges that cannot be a boundary are excluded first.
    """
    n_bins = len(distribution.values)
    max_strata = min(n_strata, n_bins)
    sums = PrefixSums.of(distribution)
    has_few_runs = MIN_RUNS_PER_STRATUM * n_strata > INITIAL_RUNS
    if n_strata < 2 or has_few_runs or n_bins < MIN_BINS_FOR_WINDOWS:
        lowest = np.arange(1, max_strata)
        highest = np.full(max_strata - 1, n_bins)
    else:
        lowest, highest = _boundary_windows(distribution, sums, n_strata)
    layers = _solve_layers(sums, np.append(lowest, n_bins), np.append(highest, n_bins))
    return _trace_back(layers, n_bins)


def _boundary_windows(
    distribution: Distribution, sums: PrefixSums, n_strata: int
) -> tuple[IntArray, IntArray]:
    """Return the lowest and the highest possible edge (H − 1,) of each boundary of the optimal H strata.

    The bins are merged into runs, and a lower limit for the cost is computed for strata with a boundary at
    each edge of a run. Edges whose limit is above the cost of known strata are excluded. The step is repeated
    with shorter runs.
    """
    n_bins = len(distribution.values)
    values = distribution.values - distribution.values[0]
    largest_sum = float(np.abs(sums.squares).max())
    positions = _run_positions(distribution.counts, values)
    lowest = np.zeros(n_strata - 1, np.int64)
    highest = np.full(n_strata - 1, n_bins)
    n_runs = float(INITIAL_RUNS)
    best_cost = np.inf
    while True:
        run_numbers = (positions[:-1] * n_runs).astype(np.int64)
        edges = np.flatnonzero(np.diff(run_numbers, prepend=-1, append=-1))
        first_edge = np.searchsorted(edges, lowest, side="right") - 1
        last_edge = np.searchsorted(edges, highest)
        windows = list(zip(first_edge.tolist(), last_edge.tolist(), strict=True))
        cost_limits = _lower_cost_limits(sums, values, edges, windows, largest_sum)
        likely_edges = [
            first + limits.argmin() for first, limits in zip(first_edge, cost_limits, strict=True)
        ]
        strata_edges = edges[[0, *likely_edges, -1]]
        if np.all(np.diff(strata_edges) > 0):
            cost = float(sums.squares_within(strata_edges[:-1], strata_edges[1:]).sum())
            best_cost = min(best_cost, cost)
        for number, limits in enumerate(cost_limits):
            is_possible = limits <= best_cost + _COST_ROUNDING * largest_sum
            possible_edges = first_edge[number] + np.flatnonzero(is_possible)
            # One edge further on each side, because the boundary may lie inside the run next to the edge.
            lowest[number] = max(lowest[number], edges[max(possible_edges[0] - 1, 0)])
            highest[number] = min(highest[number], edges[min(possible_edges[-1] + 1, len(edges) - 1)])
        # At least a tiny width, so that the number of runs is finite.
        widest = max(float((positions[highest] - positions[lowest]).max()), 1e-12)
        next_n_runs = WINDOW_SIZE / widest
        # Another step saves time only if its runs are clearly shorter.
        if int((highest - lowest).max()) <= WINDOW_SIZE or next_n_runs < 1.5 * n_runs:
            return _separate_windows(lowest, highest, n_bins)
        n_runs = next_n_runs


def _run_positions(counts: IntArray, values: FloatArray) -> FloatArray:
    """Return the edges (B + 1,) on a scale from 0 to 1, of which each run of bins covers an equal part.

    The effect of replacing a run of n units over a range r by its mean grows as n r. Three quarters of the
    scale are sums of √(n r) over bins, which are about equal in runs of equal effect. One quarter is the
    range alone, so that no run contains a wide gap. These proportions affect only the time.
    """
    ranges = np.diff(values, append=values[-1])
    root_effects, cumulative_range = np.cumsum([np.sqrt(counts * ranges), ranges], axis=1)
    positions = 0.75 * root_effects / root_effects[-1] + 0.25 * cumulative_range / cumulative_range[-1]
    return np.append(0.0, positions)


def _separate_windows(lowest: IntArray, highest: IntArray, n_bins: int) -> tuple[IntArray, IntArray]:
    """Return windows (H − 1,) in which each boundary is at least one edge above the previous one."""
    # Boundary h minus h does not decrease with h, if each boundary is above the previous one.
    numbers = np.arange(1, len(lowest) + 1)
    highest = np.minimum(highest - numbers, n_bins - len(numbers) - 1)
    lowest = np.maximum.accumulate(np.maximum(lowest - numbers, 0))
    highest = np.minimum.accumulate(highest[::-1])[::-1]
    return lowest + numbers, highest + numbers


def _lower_cost_limits(
    sums: PrefixSums, values: FloatArray, edges: IntArray, windows: list[tuple[int, int]], largest_sum: float
) -> list[FloatArray]:
    """Return lower limits for the cost of strata with a boundary next to each edge of each window.

    If a boundary divides a run, the values of the run are replaced by their mean. The cost is then a concave
    function of the position of the boundary inside the run, so that it is smallest at one of the run's ends.
    The limit is this cost minus the largest effect of the replacement: Σ |x − mean| over the part of the run
    on either side is at most √(n Σ (x − mean)²) / 2, and the replacement changes the cost by at most twice
    that times the width of the stratum.

    Parameters
    ----------
    sums : PrefixSums
    values : float (B,)
        Values of the bins, minus the smallest.
    edges : int (R + 1,)
        Bin edges of R runs.
    windows : list of (int, int) (H − 1,)
        First and last index into `edges` of each boundary.
    largest_sum : float
        Largest sum of squares, for rounding errors.
    """
    columns_of_sums = (sums.counts, sums.totals, sums.squares, sums.conditional_variances)
    run_sums = PrefixSums(*(column[edges] for column in columns_of_sums))
    # Differences of sums have rounding errors; the addition keeps the limits valid.
    squares_of_runs = sums.squares_within(edges[:-1], edges[1:]) + _DIFFERENCE_ROUNDING * largest_sum
    final = len(edges) - 1
    effect_per_width = float(np.sqrt(np.diff(run_sums.counts) * squares_of_runs).max())
    # The limit of a stratum is the sum of a term of its start, a term of its end, and −n mean². Its width
    # includes the adjacent runs, because a boundary may lie inside them. A run that is replaced by its mean
    # loses its sum of squares, at most the largest one.
    start_terms = effect_per_width * values[np.append(0, edges[:-1])] - run_sums.squares
    end_values = values[np.append(edges[1:], edges[-1]) - 1]
    end_terms = run_sums.squares - effect_per_width * end_values - squares_of_runs.max()
    previous_windows = None
    strata = []
    for start_window, end_window in pairwise([(0, 0), *windows, (final, final)]):
        starts = slice(start_window[0], start_window[1] + 1)
        ends = slice(end_window[0], end_window[1] + 1)
        # Strata that share their windows with the previous one share its matrix.
        if (start_window, end_window) != previous_windows:
            previous_windows = (start_window, end_window)
            mean_terms = _mean_terms(run_sums, starts, ends, 0.0)
        strata.append((mean_terms, start_terms[starts], end_terms[ends]))
    costs_before = [np.zeros(1)]
    costs_after = [np.zeros(1)]
    for mean_terms, start_term, end_term in strata[:-1]:
        costs_before.append((costs_before[-1] + start_term - mean_terms).min(axis=1) + end_term)
    for mean_terms, start_term, end_term in strata[:0:-1]:
        costs_after.append(((costs_after[-1] + end_term)[:, None] - mean_terms).min(axis=0) + start_term)
    return [before + after for before, after in zip(costs_before[1:], costs_after[:0:-1], strict=True)]


def _solve_layers(sums: PrefixSums, lowest_ends: IntArray, highest_ends: IntArray) -> list[IntArray]:
    """Return the best start (B + 1,) of the last stratum for each end, one array for each of 2, …, H strata.

    Stratum h ends between the edges `lowest_ends[h]` and `highest_ends[h]` (H,).
    """
    costs = np.full(len(sums.counts), np.inf)
    ends = np.arange(lowest_ends[0], highest_ends[0] + 1)
    costs[ends] = sums.squares_within(np.zeros(len(ends), np.int64), ends)
    layers = []
    is_small = len(costs) <= MAX_DENSE_EDGES
    all_mean_terms = np.empty((0, 0))
    if is_small:
        all_mean_terms = _mean_terms(sums, slice(None), slice(None))
    windows = zip(lowest_ends.tolist(), highest_ends.tolist(), strict=True)
    for (first_start, last_start), (first_end, last_end) in pairwise(windows):
        # The sum of squares of a stratum is Σ x² − n mean². The difference of `squares` is Σ x². The cost of
        # a start is that of the strata before it, minus the Σ x² up to it.
        start_costs = costs - sums.squares
        n_pairs = (last_end - first_end + 1) * (last_start - first_start + 1)
        if is_small or n_pairs <= MAX_DENSE_EDGES**2:
            rows = slice(first_end, last_end + 1)
            columns = slice(first_start, last_start + 1)
            if is_small:
                mean_terms = all_mean_terms[rows, columns]
            else:
                mean_terms = _mean_terms(sums, columns, rows)
            totals = start_costs[columns] - mean_terms
            costs = np.full(len(start_costs), np.inf)
            best_starts = np.full(len(start_costs), first_start, np.int64)
            costs[rows] = totals.min(axis=1)
            best_starts[rows] += totals.argmin(axis=1)
        else:
            costs, best_starts = _divide_and_conquer(
                sums, start_costs, (first_start, last_start), (first_end, last_end)
            )
        costs += sums.squares
        layers.append(best_starts)
    return layers


def _divide_and_conquer(
    sums: PrefixSums, start_costs: FloatArray, start_window: tuple[int, int], end_window: tuple[int, int]
) -> tuple[FloatArray, IntArray]:
    """Return the smallest cost, without Σ x² up to the end, and the best start (B + 1,) for each end.

    The best starts of the neighbouring ends of the previous level of the recursion limit the range of starts.
    """
    first_start, last_start = start_window
    first_end, last_end = end_window
    costs = np.full(len(start_costs), np.inf)
    best_starts = np.full(len(start_costs), first_start, np.int64)
    step = 1 << ((last_end - first_end + 1).bit_length() - 1)
    while step:
        ends = np.arange(first_end + step - 1, last_end + 1, 2 * step)
        lowest = best_starts[np.maximum(ends - step, first_end - 1)]
        next_starts = best_starts[np.minimum(ends + step, last_end)]
        highest = np.where(ends + step <= last_end, next_starts, last_start)
        highest = np.maximum(np.minimum(highest, ends - 1), lowest)
        costs[ends], best_starts[ends] = _best_starts(sums, start_costs, ends, lowest, highest)
        step >>= 1
    return costs, best_starts


def _mean_terms(sums: PrefixSums, starts: slice, ends: slice, min_count: float = 1.0) -> FloatArray:
    """Return n mean² (ends, starts) of the units between; −∞ if there are fewer than `min_count`.

    With `min_count` 0, a stratum may be empty.
    """
    counts = sums.counts[ends, None] - sums.counts[starts]
    mean_terms = sums.totals[ends, None] - sums.totals[starts]
    mean_terms *= mean_terms
    mean_terms /= np.maximum(counts, 1.0)
    mean_terms[counts < min_count] = -np.inf
    return mean_terms


def _best_starts(
    sums: PrefixSums, start_costs: FloatArray, ends: IntArray, lowest: IntArray, highest: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return the smallest cost for each end (E,) over its range of starts, and the first such start.

    The ranges have different lengths and are concatenated. Operations in place avoid temporary arrays.
    """
    lengths = highest - lowest + 1
    offsets = np.cumsum(lengths) - lengths
    starts = np.arange(int(lengths.sum())) + np.repeat(lowest - offsets, lengths)
    mean_terms = np.repeat(sums.totals[ends], lengths)
    mean_terms -= sums.totals[starts]
    mean_terms *= mean_terms
    counts = np.repeat(sums.counts[ends], lengths)
    counts -= sums.counts[starts]
    mean_terms /= counts
    costs = np.subtract(start_costs[starts], mean_terms, out=mean_terms)
    smallest = np.minimum.reduceat(costs, offsets)
    positions = np.flatnonzero(costs == np.repeat(smallest, lengths))
    # If several starts have the smallest cost, the first one counts.
    if len(positions) > len(ends):
        positions = positions[np.searchsorted(positions, offsets)]
    return smallest, starts[positions]


def _trace_back(layers: list[IntArray], end: int) -> IntArray:
    """Return the boundaries of len(layers) + 1 strata of which the last one ends at the edge `end`."""
    boundaries = np.empty(len(layers), np.int64)
    for layer in range(len(layers) - 1, -1, -1):
        end = int(layers[layer][end])
        boundaries[layer] = end
    return boundaries


def neyman_boundaries(distribution: Distribution, n_strata: int) -> list[IntArray]:
    """Return the boundaries that minimise Σ N_h S_h, with the plug-in S_h, for 1, 2, … strata.

    (Σ W_h S_h)² / n is the variance under Neyman allocation, to leading order (Cochran 1977, 5.26). Divide
    and conquer as in `k_means_boundaries` is not exact for this cost, so all starts are compared. The result
    is exact for up to `MAX_NEYMAN_BINS` bins. More bins are merged into runs first, and the boundaries are
    then optimised jointly over the bins near them. The result is as in `k_means_boundaries`.
    """
    numbers = range(1, min(n_strata, len(distribution.values)) + 1)
    return _neyman_boundaries_for_numbers(distribution, numbers, n_strata)


def neyman_boundaries_for_number(distribution: Distribution, n_strata: int) -> IntArray:
    """Return the last boundaries of `neyman_boundaries`, without a refinement of the others."""
    number = min(n_strata, len(distribution.values))
    return _neyman_boundaries_for_numbers(distribution, [number], max(n_strata, SHARED_NUMBERS))[0]


def _neyman_boundaries_for_numbers(
    distribution: Distribution, numbers: Iterable[int], max_strata: int
) -> list[IntArray]:
    """Return the boundaries of these numbers of strata, from a recursion up to `max_strata`."""
    edges = run_edges(distribution, MAX_NEYMAN_BINS)
    sums = PrefixSums.of(distribution)
    boundaries = _boundaries_of_runs(sums.to_bytes(), edges.tobytes(), max_strata)
    if len(edges) == len(distribution.values) + 1:
        return [boundaries[number - 1] for number in numbers]
    return [_refine(sums.neyman_cost, edges, boundaries[number - 1]) for number in numbers]


@lru_cache(maxsize=32)
def _boundaries_of_runs(sums: bytes, edges: bytes, max_strata: int) -> tuple[IntArray, ...]:
    """Return the boundaries of 1, 2, … strata among these edges that minimise Σ N_h S_h.

    A plan compares several numbers of strata, and one recursion gives the boundaries of all of them. The
    arguments are the contents of arrays, because each comparison makes new arrays with equal contents.
    """
    edge_array = np.frombuffer(edges, np.int64)
    costs = _cost_table(PrefixSums.from_bytes(sums).neyman_cost, edge_array, edge_array)
    # Every caller receives the same arrays.
    return tuple(map(frozen, _minimise_cost(costs, edge_array, max_strata)))


def robust_neyman_boundaries(distribution: Distribution, n_strata: int) -> list[IntArray]:
    """Return the boundaries that minimise Σ N_h S_h of a proxy that may be miscalibrated, for 1, 2, … strata.

    S_h² is the mean of r_h(1 − r_h) over the slopes on the log-odds of the robust allocation
    (`stratal.strata.strata.expected_deviations`), with r_h the mean over the units of the stratum. The proxy
    must have bounds. The result is as in `k_means_boundaries`.
    """
    edges, costs = _robust_costs(_DistributionKey(distribution))
    return _minimise_cost(costs, edges, n_strata)


class _DistributionKey:
    """A distribution as the key of a cache. A distribution has no hash, because it is compared by value."""

    def __init__(self, distribution: Distribution) -> None:
        self.distribution = distribution

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DistributionKey) and other.distribution is self.distribution

    def __hash__(self) -> int:
        return id(self.distribution)


# A plan compares several numbers of strata of one distribution. The table takes most of the time, and does
# not depend on the number.
@lru_cache(maxsize=1)
def _robust_costs(key: _DistributionKey) -> tuple[IntArray, FloatArray]:
    """Return the bin edges that may be boundaries, and the table of costs between them."""
    edges = run_edges(key.distribution, MAX_ROBUST_BINS)
    costs = _cost_table(RateSums.of(key.distribution).neyman_cost, edges, edges)
    return frozen(edges), frozen(costs)


def _minimise_cost(costs: FloatArray, edges: IntArray, n_strata: int) -> list[IntArray]:
    """Return the boundaries among these bin edges that minimise the sum of the costs, for 1, 2, … strata.

    `costs` is the table (ends, starts) of the costs between the edges.
    """
    # With one stratum, it starts at the first edge.
    best_costs = costs[:, 0]
    layers = []
    for _ in range(1, min(n_strata, len(edges) - 1)):
        totals = costs + best_costs
        best_starts = totals.argmin(axis=1)
        best_costs = totals[np.arange(len(edges)), best_starts]
        layers.append(best_starts)
    return [edges[_trace_back(layers[:count], len(edges) - 1)] for count in range(len(layers) + 1)]


def run_edges(distribution: Distribution, max_runs: int) -> IntArray:
    """Return the bin edges 0, …, B of at most `max_runs` runs of bins.

    The runs have equal lengths on a scale that is the mean of the relative rank and the relative value.
    """
    n_bins = len(distribution.values)
    if n_bins <= max_runs:
        return np.arange(n_bins + 1)
    rank = (np.cumsum(distribution.counts) - 0.5 * distribution.counts) / distribution.counts.sum()
    grid = np.linspace(distribution.values[0], distribution.values[-1], max_runs)
    relative_value = np.searchsorted(grid, distribution.values) / max_runs
    run = np.floor((0.5 * rank + 0.5 * relative_value) * (max_runs - 1)).astype(np.int64)
    return np.concatenate([[0], np.flatnonzero(np.diff(run)) + 1, [n_bins]])


def _cost_table(cost: StratumCost, starts: IntArray, ends: IntArray) -> FloatArray:
    """Return the costs (ends, starts) of strata; infinite unless the start is below the end."""
    is_valid = starts < ends[:, None]
    costs = np.full(is_valid.shape, np.inf)
    rows, columns = np.nonzero(is_valid)
    costs[rows, columns] = cost(starts[columns], ends[rows])
    return costs


def _refine(cost: StratumCost, edges: IntArray, boundaries: IntArray) -> IntArray:
    """Return the best boundaries among the bins at most one run away from the given boundaries (H − 1,)."""
    if len(boundaries) == 0:
        return boundaries
    positions = np.searchsorted(edges, boundaries)
    windows = [np.arange(edges[position - 1] + 1, edges[position + 1]) for position in positions]
    n_bins = int(edges[-1])
    best_costs = np.zeros(1)
    starts = np.zeros(1, np.int64)
    layers = []
    for ends in [*windows, np.array([n_bins])]:
        totals = _cost_table(cost, starts, ends) + best_costs
        # Positions in the window of the start.
        best_starts = totals.argmin(axis=1)
        best_costs = totals[np.arange(len(ends)), best_starts]
        starts = ends
        layers.append(best_starts)
    choices = _trace_back(layers[1:], 0)
    return np.array([window[choice] for window, choice in zip(windows, choices, strict=True)])
