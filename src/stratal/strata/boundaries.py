"""Exact one-dimensional strata by dynamic programming over bins, for every number of strata at once.

`k_means_boundaries` minimises the within-strata sum of squares: by Proposition 2 of Fogliato et al. (2024)
the best strata on a calibrated proxy under proportional allocation. `neyman_boundaries` minimises Σ W_h S_h:
the best intervals under Neyman allocation, to leading order. `robust_neyman_boundaries` minimises the same
sum with the S_h of the robust allocation, which allow for a miscalibrated proxy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stratal.arrays import FloatArray, IntArray, unit_scale
from stratal.population.distribution import Distribution
from stratal.strata.strata import moments_of_bins, possible_rates

# Most bins of the full recursion of `neyman_boundaries`; more are merged first, the cuts refined after.
NEYMAN_BINS = 1_500

# Most bins of `robust_neyman_boundaries`; more are merged. The sum that it minimises is then at most .001 %
# above its minimum, and the cuts take no longer than those of k-means.
ROBUST_BINS = 300

# Runs of bins for which `k_means_cuts` first bounds where a boundary can lie.
PRUNING_RUNS = 192

# Runs in the widest window of a boundary each time after, and bins to which it is narrowed.
PRUNED = 128

# From this many bins on, bounding the boundaries first saves time.
MANY_BINS = 4 * PRUNING_RUNS

# Among this many bin edges, or as many pairs of an end and a cut, every cut is tried at once.
DENSE_EDGES = 129

# What rounding may cost a sum of squares, as a share of the largest.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class PrefixSums:
    """Sums over the bins before each of the B + 1 bin edges: a run of bins has its moments in O(1).

    Values are centred at the weighted median and summed outward from it: an offset costs no digits, and a far
    unit spoils only the sums beyond it.
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
        before_anchor = -np.cumsum(terms[:, anchor - 1 :: -1] if anchor else terms[:, :0], axis=1)[:, ::-1]
        outward = np.hstack([before_anchor, np.zeros((4, 1)), np.cumsum(terms[:, anchor:], axis=1)])
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


# Returns N_h S_h of the bins from each start to each end.
SpreadOfRuns = Callable[[IntArray, IntArray], FloatArray]


@dataclass(frozen=True, slots=True)
class RateSums:
    """Sums over the bins before each of the B + 1 bin edges, for the rates by which a proxy may be off.

    Parameters
    ----------
    counts : float (B + 1,)
        Units.
    rates : float (9, B + 1)
        Σ of the rates of these units, for each factor on their log-odds.
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

    def spread(self, start: IntArray, end: IntArray) -> FloatArray:
        """Return N_h S_h of bins `start` … `end − 1`, with S_h² the mean of r(1 − r) over the factors."""
        counts = self.counts[end] - self.counts[start]
        rates = self.rates[:, end] - self.rates[:, start]
        return np.asarray(np.sqrt(np.maximum((rates * (counts - rates)).mean(axis=0), 0.0)))


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
    """
    n_bins = len(distribution.values)
    most = min(n_strata, n_bins)
    lowest = np.arange(1, most + 1)
    highest = np.full(most, n_bins)
    lowest[-1] = n_bins  # the last stratum ends at the end
    layers = _layers(PrefixSums.of(distribution), lowest, highest)
    return [_trace(layers[:count], n_bins) for count in range(most)]


def k_means_cuts(distribution: Distribution, n_strata: int) -> IntArray:
    """Return the boundaries that minimise the within-strata sum of squares for one number of strata.

    The last of `k_means_boundaries`, to the bit, in less than half the time: the runs of bins in which a
    boundary cannot lie are left out first.
    """
    n_bins = len(distribution.values)
    most = min(n_strata, n_bins)
    sums = PrefixSums.of(distribution)
    if n_strata < 2 or 4 * n_strata > PRUNING_RUNS or n_bins < MANY_BINS:
        lowest = np.arange(1, most)
        highest = np.full(most - 1, n_bins)
    else:
        lowest, highest = _windows(distribution, sums, n_strata)
    return _trace(_layers(sums, np.append(lowest, n_bins), np.append(highest, n_bins)), n_bins)


def _windows(distribution: Distribution, sums: PrefixSums, n_strata: int) -> tuple[IntArray, IntArray]:
    """Return the first and the last bin (H − 1,) that each boundary of the best H strata may be.

    Runs of bins stand for their bins. Where a boundary cuts a run, its bins are moved to their mean: then the
    cost is concave in the share of the run that lies on either side, so that no cut within costs less than
    the better one of its ends. What the moves cost at most is known: edges are left out whose bound exceeds
    the cost of strata that exist, and runs get shorter as windows do.
    """
    n_bins = len(distribution.values)
    order = np.arange(1, n_strata)
    values = distribution.values - distribution.values[0]
    rounding = float(np.abs(sums.squares).max())
    # What a run of n units over a range r hides grows as √(n r), which ends most runs; a quarter of them end
    # by the range alone, so that none bridges a wide gap. The shares decide the time, never the cuts.
    ranges = np.diff(values, append=values[-1])
    spread, height = np.cumsum([np.sqrt(distribution.counts * ranges), ranges], axis=1)
    lengths = np.append(0.0, 0.75 * spread / spread[-1] + 0.25 * height / height[-1])
    lowest = np.zeros(n_strata - 1, np.int64)
    highest = np.full(n_strata - 1, n_bins)
    runs = float(PRUNING_RUNS)
    reached = np.inf
    while True:
        edges = np.flatnonzero(np.diff((lengths[:-1] * runs).astype(np.int64), prepend=-1, append=-1))
        first = np.searchsorted(edges, lowest, side="right") - 1
        last = np.searchsorted(edges, highest)
        bounds = _bounds(sums, values, edges, list(zip(first.tolist(), last.tolist(), strict=True)), rounding)
        cuts = edges[[0, *(at + bound.argmin() for at, bound in zip(first, bounds, strict=True)), -1]]
        if np.all(np.diff(cuts) > 0):
            reached = min(reached, float(sums.squares_within(cuts[:-1], cuts[1:]).sum()))
        possible = [np.flatnonzero(bound <= reached + _SLACK * rounding) for bound in bounds]
        ends = (
            np.array([(possible_edges[0] - 1, possible_edges[-1] + 1) for possible_edges in possible])
            + first[:, None]
        )
        ends = edges[np.clip(ends, 0, len(edges) - 1)]
        lowest = np.maximum(lowest, ends[:, 0])
        highest = np.minimum(highest, ends[:, 1])
        # Another look pays only where runs get a good deal shorter.
        finer = PRUNED / max(float((lengths[highest] - lengths[lowest]).max()), 1e-12)
        if int((highest - lowest).max()) <= PRUNED or finer < 1.5 * runs:
            break
        runs = finer
    highest = np.minimum(highest - order, n_bins - n_strata)
    lowest = np.maximum.accumulate(np.maximum(lowest - order, 0))
    return lowest + order, np.minimum.accumulate(highest[::-1])[::-1] + order


def _bounds(
    sums: PrefixSums, values: FloatArray, edges: IntArray, windows: list[tuple[int, int]], rounding: float
) -> list[FloatArray]:
    """Return what strata with a boundary next to an edge cost at least, for each edge of each window.

    Of a run that is cut, Σ |x − mean| over either side is at most √(n Σ (x − mean)²) / 2; moving its units to
    the mean costs up to twice that for each unit of the width of the stratum.
    """
    at = PrefixSums(*(part[edges] for part in (sums.counts, sums.firsts, sums.squares, sums.conditional)))
    # A difference of sums is off by some of their last digits: a bound must not be above what it bounds.
    within = sums.squares_within(edges[:-1], edges[1:]) + 1e-14 * rounding
    final = len(edges) - 1
    moving_cost = float(np.sqrt(np.diff(at.counts) * within).max())
    starts = moving_cost * values[np.append(0, edges[:-1])] - at.squares
    ends = at.squares - moving_cost * values[np.append(edges[1:], edges[-1]) - 1] - within.max()
    cached_windows = None
    steps = []
    for left, right in pairwise([(0, 0), *windows, (final, final)]):
        rows = slice(right[0], right[1] + 1)
        columns = slice(left[0], left[1] + 1)
        if (left, right) != cached_windows:
            cached_windows = (left, right)
            gains = _gains(at, rows, columns, 0.0)
        steps.append((gains, starts[columns], ends[rows]))
    before = [np.zeros(1)]
    after = [np.zeros(1)]
    for gains, start, end in steps[:-1]:
        before.append((before[-1] + start - gains).min(axis=1) + end)
    for gains, start, end in steps[:0:-1]:
        after.append(((after[-1] + end)[:, None] - gains).min(axis=0) + start)
    return [left + right for left, right in zip(before[1:], after[:0:-1], strict=True)]


def _layers(sums: PrefixSums, lowest: IntArray, highest: IntArray) -> list[IntArray]:
    """Return the best last cut (B + 1,) of every end, for 2, …, H strata.

    The end of stratum h is sought from `lowest[h]` to `highest[h]` (H,).
    """
    costs = np.full(len(sums.counts), np.inf)
    ends = np.arange(lowest[0], highest[0] + 1)
    costs[ends] = sums.squares_within(np.zeros(len(ends), np.int64), ends)
    layers = []
    few = len(costs) <= DENSE_EDGES
    if few:
        every = _gains(sums, slice(None), slice(None))
    else:
        every = np.empty((0, 0))
    for cuts, (first, final) in pairwise(zip(lowest.tolist(), highest.tolist(), strict=True)):
        base = costs - sums.squares
        costs = np.full(len(base), np.inf)
        choice = np.full(len(base), cuts[0], np.int64)
        step = 1 << ((final - first + 1).bit_length() - 1)
        if few or (final - first + 1) * (cuts[1] - cuts[0] + 1) <= DENSE_EDGES**2:  # all at once
            rows = slice(first, final + 1)
            columns = slice(cuts[0], cuts[1] + 1)
            step = 0
            values = base[columns] - (every[rows, columns] if few else _gains(sums, rows, columns))
            choice[rows] += values.argmin(axis=1)
            costs[rows] = values.min(axis=1)
        while step:
            ends = np.arange(first + step - 1, final + 1, 2 * step)
            left = choice[np.maximum(ends - step, first - 1)]
            right = np.where(ends + step <= final, choice[np.minimum(ends + step, final)], cuts[1])
            right = np.maximum(np.minimum(right, ends - 1), left)
            costs[ends], choice[ends] = _best_cuts(sums, base, ends, left, right)
            step >>= 1
        costs += sums.squares
        layers.append(choice)
    return layers


def _gains(sums: PrefixSums, ends: slice, cuts: slice, fewest: float = 1.0) -> FloatArray:
    """Return n mean² (ends, cuts) of the units between, −∞ where there are fewer than `fewest`."""
    counts = sums.counts[ends, None] - sums.counts[cuts]
    gains = sums.firsts[ends, None] - sums.firsts[cuts]
    gains *= gains
    gains /= np.maximum(counts, 1.0)
    gains[counts < fewest] = -np.inf
    return gains


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
    if len(hits) > len(ends):  # ties
        hits = hits[np.searchsorted(hits, starts)]
    return smallest, cuts[hits]


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
    5.26). The halving of `k_means_boundaries` is not exact for this cost, so every final cut is tried: exact
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
    """
    spread = PrefixSums.of(distribution).spread
    edges = coarse_edges(distribution, NEYMAN_BINS)
    boundaries_by_number = _least_spread(spread, edges, n_strata)
    if len(edges) == len(distribution.values) + 1:
        return boundaries_by_number
    return [_refined(spread, edges, boundaries) for boundaries in boundaries_by_number]


def robust_neyman_boundaries(distribution: Distribution, n_strata: int) -> list[IntArray]:
    """Return the boundaries that minimise Σ N_h S_h of a proxy that may be miscalibrated, for 1, 2, … strata.

    S_h² is the mean of r_h(1 − r_h) over the factors on the log-odds that the robust allocation assumes
    (`stratal.strata.strata.expected_deviations`), with r_h the mean over the units of the stratum.

    Parameters
    ----------
    distribution : Distribution
        B bins with bounds.
    n_strata : int
        Maximum number of strata.

    Returns
    -------
    list of int (H − 1,), one for each H = 1, …, min(n_strata, B)
        First bin of every stratum but the first, increasing.
    """
    edges = coarse_edges(distribution, ROBUST_BINS)
    return _least_spread(RateSums.of(distribution).spread, edges, n_strata)


def _least_spread(spread: SpreadOfRuns, edges: IntArray, n_strata: int) -> list[IntArray]:
    """Return the boundaries among these bin edges that minimise the sum of `spread`, for 1, 2, … strata."""
    costs = _cost_table(spread, edges, edges)
    best = costs[:, 0]
    layers = []
    for _ in range(1, min(n_strata, len(edges) - 1)):
        totals = costs + best
        choice = totals.argmin(axis=1)
        best = totals[np.arange(len(edges)), choice]
        layers.append(choice)
    return [edges[_trace(layers[:count], len(edges) - 1)] for count in range(len(layers) + 1)]


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


def _cost_table(spread: SpreadOfRuns, ends: IntArray, starts: IntArray) -> FloatArray:
    """Return the costs (ends, starts), infinite where a start is not below its end."""
    allowed = starts < ends[:, None]
    costs = np.full(allowed.shape, np.inf)
    rows, columns = np.nonzero(allowed)
    costs[rows, columns] = spread(starts[columns], ends[rows])
    return costs


def _refined(spread: SpreadOfRuns, edges: IntArray, boundaries: IntArray) -> IntArray:
    """Return the best boundaries with each free among the bins within one coarse run of where it was."""
    if len(boundaries) == 0:
        return boundaries
    position = np.searchsorted(edges, boundaries)
    windows = [np.arange(edges[p - 1] + 1, edges[p + 1]) for p in position]
    n_bins = int(edges[-1])
    best = np.zeros(1)
    starts = np.zeros(1, np.int64)
    choices = []
    for ends in [*windows, np.array([n_bins])]:
        totals = _cost_table(spread, ends, starts) + best
        choice = totals.argmin(axis=1)
        best = totals[np.arange(len(ends)), choice]
        starts = ends
        choices.append(choice)
    result = np.empty(len(boundaries), np.int64)
    at = 0
    for number in range(len(boundaries) - 1, -1, -1):
        at = int(choices[number + 1][at])
        result[number] = windows[number][at]
    return result


# Cells of the grid on which a density is estimated.
DENSITY_CELLS = 4_096


def equal_size(distribution: Distribution, n_strata: int) -> IntArray:
    """Return boundaries that split the units as evenly as the bins allow (EQSZ)."""
    return split_evenly(distribution.counts.astype(np.float64), n_strata)


def equal_width(distribution: Distribution, n_strata: int) -> IntArray:
    """Return boundaries at low + range · h/H (EQWD); intervals without a unit are left out."""
    return _at_cuts(
        distribution, np.linspace(distribution.values[0], distribution.values[-1], n_strata + 1)[1:-1]
    )


def weighted_mean(distribution: Distribution, n_strata: int) -> IntArray:
    """Return boundaries that give every stratum the same Σ ẑ (WTMN; Hansen, Hurwitz & Madow).

    Negative proxies are shifted so that the smallest is zero.
    """
    shifted = distribution.values - min(0.0, float(distribution.values[0]))
    return split_evenly(distribution.counts * shifted, n_strata)


def cumulative_root(distribution: Distribution, n_strata: int, *, power: float) -> IntArray:
    """Return boundaries that split the cumulative of a power of the density evenly.

    Parameters
    ----------
    distribution : Distribution
    n_strata : int
        H.
    power : float
        1/2 for cum-√f (SQRT; Dalenius & Hodges 1959), 1/3 for cum-∛f (CBRT; Singh 1971).
    """
    edges, density = kernel_density(distribution)
    if len(density) == 1:
        return np.empty(0, np.int64)
    cumulative = np.concatenate([[0.0], np.cumsum(density**power)])
    targets = cumulative[-1] * np.arange(1, n_strata) / n_strata
    return _at_cuts(distribution, np.interp(targets, cumulative, edges))


def kernel_density(distribution: Distribution, cells: int = DENSITY_CELLS) -> tuple[FloatArray, FloatArray]:
    """Return cell edges (cells + 1,) and a Gaussian kernel estimate of the density in each cell (cells,).

    Silverman's bandwidth, .9 min(s, IQR / 1.34) N^(−1/5), at least half a cell. The estimate is reflected at
    both ends, since no unit lies beyond, and computed by fast Fourier transform. A constant proxy has a
    single cell.
    """
    low = float(distribution.values[0])
    high = float(distribution.values[-1])
    width = (high - low) / cells
    if not 0.0 < width < np.inf:
        return np.array([low, high]), np.ones(1)
    position = np.clip(((distribution.values - low) / width).astype(np.int64), 0, cells - 1)
    mass = np.bincount(position, distribution.counts, minlength=cells) / distribution.size
    share = (np.cumsum(distribution.counts) - 0.5 * distribution.counts) / distribution.size
    quarter, three_quarters = np.interp([0.25, 0.75], share, distribution.values)
    deviations = distribution.values - distribution.mean
    spread = float(np.sqrt(distribution.counts @ deviations**2 / distribution.size))
    if three_quarters > quarter:  # Silverman's rule
        spread = min(spread, float(three_quarters - quarter) / 1.34)
    bandwidth = max(float(0.9 * spread * distribution.size**-0.2) / width, 0.5)
    reflected = np.concatenate([mass, mass[::-1]])
    frequency = 2.0 * np.pi * np.fft.rfftfreq(2 * cells)
    kernel = np.exp(-0.5 * (bandwidth * frequency) ** 2)
    smooth: FloatArray = np.fft.irfft(np.fft.rfft(reflected) * kernel, 2 * cells)[:cells]
    smooth = np.maximum(smooth, 1e-12 / cells)
    return np.asarray(low + width * np.arange(cells + 1)), smooth / (smooth.sum() * width)


def split_evenly(mass: FloatArray, n_strata: int) -> IntArray:
    """Return the boundaries whose cumulative mass is nearest to h/H of the total, each at most once."""
    before = np.concatenate([[0.0], np.cumsum(mass)])
    targets = before[-1] * np.arange(1, n_strata) / n_strata
    right = np.clip(np.searchsorted(before, targets), 1, len(mass))
    nearest = np.where(targets - before[right - 1] <= before[right] - targets, right - 1, right)
    return _inner(nearest, len(mass))


def _at_cuts(distribution: Distribution, cuts: FloatArray) -> IntArray:
    """Return the first bin that begins at or after each cut."""
    return _inner(np.searchsorted(distribution.cuts, cuts) + 1, len(distribution.values))


def _inner(boundaries: IntArray, n_bins: int) -> IntArray:
    distinct = np.unique(boundaries)
    return np.asarray(distinct[(distinct > 0) & (distinct < n_bins)])


# Bins of the distribution on which boundaries are first searched.
FIT_BINS = 1_024

# Limit for distributions on which the search does not settle.
ITERATIONS = 300
# EM stops when the mean log-likelihood rises by less.
TOLERANCE = 1e-6

# No component is narrower than this share of the standard deviation of all units.
SMALLEST_DEVIATION = 1e-3


def log_densities(values: FloatArray, mixture: FloatArray) -> FloatArray:
    """Return log(share · density) of each value (B,) under each component (B, K) of a mixture (3, K)."""
    shares, means, deviations = mixture
    return np.asarray(-0.5 * ((values[:, None] - means) / deviations) ** 2 + np.log(shares / deviations))


def fit_mixture(distribution: Distribution, n_components: int) -> FloatArray:
    """Fit a Gaussian mixture by expectation–maximisation on weighted bins, from equal-sized starting groups.

    Returns shares, means and deviations (3, K), in the order of the means. The start depends on nothing
    random, so the same population always gives the same strata.
    """
    edges = coarse_edges(distribution, FIT_BINS)
    groups = moments_of_bins(distribution, edges[1:-1])
    values = groups.proxy_means
    weights = groups.sizes / groups.sizes.sum()
    centre = float(weights @ values)
    deviation = float(np.sqrt(weights @ (values - centre) ** 2))
    if deviation == 0.0:
        return np.array([[1.0], [centre], [1.0]])
    start = moments_of_bins(distribution, equal_size(distribution, n_components))
    narrow = np.maximum(np.sqrt(start.proxy_variances), deviation * 0.05)
    mixture = np.stack([start.weights, start.proxy_means, narrow])
    previous = -np.inf
    for _ in range(ITERATIONS):
        mixture, likelihood = _step(mixture, values, weights, deviation * SMALLEST_DEVIATION)
        if likelihood - previous < TOLERANCE:
            break
        previous = likelihood
    return np.asarray(mixture[:, np.argsort(mixture[1], kind="stable")])


def mixture_boundaries(distribution: Distribution, n_strata: int) -> IntArray:
    """Return the boundaries between neighbouring components of a fitted mixture.

    A stratum begins where its component becomes likelier than the one before it, between their means; so
    strata are intervals even where a wide component surrounds a narrow one.
    """
    mixture = fit_mixture(distribution, n_strata)
    values = distribution.values
    boundaries = []
    for left in range(mixture.shape[1] - 1):
        pair = mixture[:, left : left + 2]
        first, last = np.searchsorted(values, pair[1])
        between = np.arange(first, min(max(last, first) + 1, len(values)))
        density, next_density = log_densities(values[between], pair).T
        later = np.flatnonzero(next_density > density)
        boundaries.append(int(between[later[0]]) if len(later) else int(last))
    return _inner(np.array(boundaries, np.int64), len(values))


def _step(
    mixture: FloatArray, values: FloatArray, weights: FloatArray, narrowest: float
) -> tuple[FloatArray, float]:
    """Return the mixture after a step of EM, without weightless components, and the mean log-likelihood."""
    joint = log_densities(values, mixture)
    highest = joint.max(axis=1)
    responsibilities = np.exp(joint - highest[:, None])
    totals = responsibilities.sum(axis=1)
    responsibilities *= (weights / totals)[:, None]
    shares = responsibilities.sum(axis=0)
    alive = shares > 1e-12
    responsibilities = responsibilities[:, alive]
    shares = shares[alive]
    means = responsibilities.T @ values / shares
    variances = np.sum(responsibilities * (values[:, None] - means) ** 2, axis=0) / shares
    stepped = np.stack([shares / shares.sum(), means, np.maximum(np.sqrt(variances), narrowest)])
    return stepped, float(weights @ (highest + np.log(totals)))
