"""The weighted distribution of a proxy, which stratification and planning use instead of the units.

It is exact (one bin per distinct value) for small populations, and a histogram for large ones. One algorithm
computes it on every engine from three queries of a `ProxyCounter`: extent, distinct values and histogram.
`ArrayCounter` (`stratal.population.in_memory`) runs them on NumPy arrays, and `TableCounter`
(`stratal.population.queries.table`) runs them as group-bys in the engine of a table.
Values are rounded down to 2⁻³⁰ of the range, and their sums are integers. The results are therefore identical
on every engine, although engines add in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record
from stratal.errors import InputError

# A population of up to this many units has one bin per distinct value.
EXACT_LIMIT = 65_536

# Number of bins of a histogram.
BIN_COUNT = 16_384

# Number of positions within a bin, to which values are rounded down before they are added.
OFFSET_COUNT = 65_536
# The lowest bits of a position on the grid are the offset within the bin. The other bits are the bin.
OFFSET_BITS = OFFSET_COUNT.bit_length() - 1

# Number of steps between the smallest and the largest second moment, to which they are rounded down.
SECOND_MOMENT_STEPS = 2**30

# Largest number of times that coarse bins of a histogram are divided into finer ones. Each needs a query.
MAX_REFINEMENTS = 4

# A bin with more than this share of the units is too coarse.
COARSE_BIN_SHARE = 0.25

# A histogram with fewer occupied bins is too coarse. Its bins with more than `HEAVY_BIN_SHARE` of the units
# are divided into finer ones.
MIN_BINS = 512
HEAVY_BIN_SHARE = 1 / 1024


class _BinsWithVariances(Record):
    """Base of records with bins of a proxy: computes `conditional_variances` from the second moments."""

    __slots__ = ()
    values: FloatArray
    second_moments: FloatArray | None
    conditional_variances: FloatArray

    def __post_init__(self) -> None:
        second_moments = self.second_moments
        if second_moments is None:
            variances = np.zeros(len(self.values))
        else:
            variances = np.maximum(second_moments - self.values**2, 0.0)
        self._set(conditional_variances=variances)
        self._freeze()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution(_BinsWithVariances):
    """The distribution of a proxy over the population, as weighted bins in increasing order.

    Parameters
    ----------
    values : float (B,)
        Mean proxy of each bin, strictly increasing.
    counts : int (B,)
        Number of units in each bin, all positive.
    second_moments : float (B,), optional
        Mean E[z² | x] of each bin, on the outcome's scale: from the column `second_moment=`, or implied by
        the bounds. `None` for a proxy that only orders units.
    cuts : float (B − 1,)
        The smallest proxy of each bin except the first: unit i is in bin b if `cuts[b−1] <= x < cuts[b]`.
    scaled : bool
        Whether the values predict the outcome on its scale. Otherwise they only order units.
    exact : bool
        Whether each bin is one distinct value.
    bounds : (float, float), optional
        Bounds of the outcome; `None` if it is unbounded (infinite in `Moments`).

    Attributes
    ----------
    conditional_variances : float (B,)
        Plug-in Var(z | x) of each bin, E[z² | x] − E[z | x]², at least zero; zero without second moments.
    """

    values: FloatArray
    counts: IntArray
    cuts: FloatArray
    second_moments: FloatArray | None = None
    scaled: bool = True
    exact: bool = True
    bounds: tuple[float, float] | None = None
    conditional_variances: FloatArray = field(init=False, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Number of units in the population, N."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean proxy of the population."""
        return float(self.counts @ self.values / self.counts.sum())


@dataclass(frozen=True, slots=True)
class Span:
    """A range `at_least <= x < below` of proxies, without limits by default."""

    at_least: float = -math.inf
    below: float = math.inf


@dataclass(frozen=True, slots=True)
class Extent:
    """Smallest and largest proxy and the number of units within a `Span`; NaN for 0 units."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Bins of equal width from `low`, each with `OFFSET_COUNT` positions to which values are rounded down.

    `scale` is the number of positions per unit of the proxy.
    """

    low: float
    scale: float

    @classmethod
    def over(cls, low: float, high: float) -> Grid:
        """Return the grid whose last position is at `high`."""
        return cls(low, BIN_COUNT * OFFSET_COUNT / (high - low))

    def positions(self, values: FloatArray) -> IntArray:
        """Return floor((x − low) · scale), at most the last position, as integers (n,)."""
        positions = ((values - self.low) * self.scale).astype(np.int64)
        return np.minimum(positions, BIN_COUNT * OFFSET_COUNT - 1, out=positions)

    def cuts(self, bins: IntArray) -> FloatArray:
        """Return the smallest double that is in each of these bins (B,) or a later one, by bisection."""
        first_positions = bins * float(OFFSET_COUNT)
        approximate_cuts = self.low + first_positions / self.scale
        # An upper bound of the rounding errors of the three operations above.
        error_bound = 8.0 * np.spacing(np.maximum(np.abs(approximate_cuts), abs(self.low)))
        below = approximate_cuts - error_bound
        above = approximate_cuts + error_bound
        while True:
            middle = below + 0.5 * (above - below)
            # Neighbouring doubles have no double between them.
            if not np.any((below < middle) & (middle < above)):
                return np.asarray(above)
            is_in_bin = (middle - self.low) * self.scale >= first_positions
            below = np.where(is_in_bin, below, middle)
            above = np.where(is_in_bin, middle, above)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts and integer sums per bin of a grid.

    Parameters
    ----------
    counts : int (BIN_COUNT,)
        Number of units in each bin.
    offsets : int (BIN_COUNT,)
        Sum of the positions within the bin, each in 0 … OFFSET_COUNT − 1.
    second_moments : int (BIN_COUNT,), optional
        Sum of the second moments as integers; see `MomentSteps`.
    single_values : float (BIN_COUNT,), optional
        The value of each occupied bin, if no bin has two distinct values; else `None`.
    """

    counts: IntArray
    offsets: IntArray
    second_moments: IntArray | None
    single_values: FloatArray | None


@dataclass(frozen=True, slots=True)
class Bins:
    """Occupied bins in increasing order.

    Parameters
    ----------
    starts : float (B,)
        Smallest double in each bin.
    values : float (B,)
        Mean proxy of each bin.
    counts : int (B,)
        Number of units in each bin.
    second_moments : float (B,), optional
        Mean second moment of each bin.
    exact : bool
        Whether each bin is one distinct value.
    """

    starts: FloatArray
    values: FloatArray
    counts: IntArray
    second_moments: FloatArray | None
    exact: bool


class ProxyCounter(Protocol):
    """The queries on the values of a proxy from which its distribution is computed."""

    @property
    def steps(self) -> MomentSteps | None:
        """Conversion of second moments to integers; `None` without second moments."""

    def extent(self, span: Span) -> Extent:
        """Return the smallest and largest proxy, and the number of units, within the span."""

    def distinct(self) -> Bins:
        """Return a bin for each distinct value."""

    def histogram(self, grid: Grid, span: Span) -> Histogram:
        """Return the histogram of the proxies within the span."""


@dataclass(frozen=True, slots=True)
class MomentSteps:
    """Conversion of second moments m to integers: floor((m − low) · scale).

    `low` and `scale` are numbers, or arrays with one entry per level (L,) or per second moment (n,).
    """

    low: float | FloatArray
    scale: float | FloatArray

    @classmethod
    def over(cls, low: float | FloatArray, high: float | FloatArray) -> MomentSteps:
        """Return the conversion of second moments from `low` to `high`, of all units or of each level."""
        scale = np.zeros(np.shape(low))
        with np.errstate(over="ignore"):
            np.divide(SECOND_MOMENT_STEPS, np.subtract(high, low), out=scale, where=np.greater(high, low))
        return cls(low, scale)

    def __getitem__(self, level: IntArray | int) -> MomentSteps:
        """Return the conversion of each second moment (n,), given the level number of its unit (n,)."""
        return MomentSteps(np.asarray(self.low)[level], np.asarray(self.scale)[level])

    def numbers(self, second_moments: FloatArray) -> IntArray:
        """Return the second moments as integers (n,)."""
        return ((second_moments - self.low) * self.scale).astype(np.int64)

    def means(self, sums: IntArray, counts: IntArray) -> FloatArray:
        """Return mean second moments (B,) from sums of their integers (B,) and numbers of units (B,)."""
        scale = np.broadcast_to(self.scale, np.shape(sums))
        rescaled_sums = np.zeros(len(scale))
        # The integers are rounded down, by half a step on average.
        half_step = np.zeros(len(scale))
        np.divide(sums, scale, out=rescaled_sums, where=scale != 0.0)
        np.divide(0.5, scale, out=half_step, where=scale != 0.0)
        return np.asarray(self.low + rescaled_sums / counts + half_step)


def build_distribution(
    counter: ProxyCounter, *, scaled: bool = True, bounds: tuple[float, float] | None = (0.0, 1.0)
) -> Distribution:
    """Return the distribution of the proxies that `counter` counts.

    Parameters
    ----------
    counter : ProxyCounter
        Runs the queries on one engine.
    scaled : bool
        Whether the proxies predict the outcome on its scale.
    bounds : (float, float), optional
        Bounds (a, b) of the outcome. For a scaled proxy without second moments, the outcome is assumed to
        have the largest variance that the bounds allow: it is always a or b, so that E[z² | x] = (a + b) E[z
        | x] − a b. For (0, 1), the outcome is binary.

    Returns
    -------
    Distribution
        Exact for up to `EXACT_LIMIT` units, and if every bin of the histogram has a single value.
    """
    extent = counter.extent(Span())
    if extent.count == 0:
        raise InputError("the population is empty", allowed="at least one unit")
    if has_distinct_value_bins(extent):
        bins = counter.distinct()
    else:
        bins = _histogram_bins(counter, extent)
    second_moments = bins.second_moments
    if second_moments is None:
        second_moments = _extreme_outcome_moments(bins.values, scaled, bounds)
    return Distribution(
        values=bins.values,
        counts=bins.counts,
        cuts=bins.values[1:] if bins.exact else bins.starts[1:],
        second_moments=second_moments,
        scaled=scaled,
        exact=bins.exact,
        bounds=bounds,
    )


def _extreme_outcome_moments(
    values: FloatArray, scaled: bool, bounds: tuple[float, float] | None
) -> FloatArray | None:
    """Return E[z² | x] (B,) of an outcome that is always at a bound, given E[z | x] (B,).

    `None` if the proxy is not on the scale of the outcome, or if the outcome has no bounds.
    """
    if not scaled or bounds is None:
        return None
    return np.asarray((bounds[0] + bounds[1]) * values - bounds[0] * bounds[1])


def has_distinct_value_bins(extent: Extent) -> bool:
    """Return whether a proxy has a bin for each distinct value instead of a histogram.

    This holds for few units, for a constant proxy, and if the range is too wide or too narrow for a grid.
    """
    if extent.count <= EXACT_LIMIT or not extent.high > extent.low:
        return True
    if not math.isfinite(extent.high - extent.low):
        return True
    return not _has_grid(extent)


def _has_grid(extent: Extent) -> bool:
    """Return whether the range is wide enough: the scale of the grid of a narrower one overflows."""
    return math.isfinite(Grid.over(extent.low, extent.high).scale)


def _histogram_bins(counter: ProxyCounter, extent: Extent) -> Bins:
    """Return the occupied bins of the histogram, with coarse bins divided into finer ones."""
    bins = _occupied_bins(counter, extent, Span())
    for _ in range(MAX_REFINEMENTS):
        refined_bins = _refine_coarse_bins(counter, bins, extent.count)
        if refined_bins is None:
            break
        bins = refined_bins
    return bins


def _occupied_bins(counter: ProxyCounter, extent: Extent, span: Span) -> Bins:
    """Return the occupied bins of the histogram of the proxies within a span."""
    grid = Grid.over(extent.low, extent.high)
    steps = counter.steps
    histogram = counter.histogram(grid, span)
    occupied = np.flatnonzero(histogram.counts)
    counts = histogram.counts[occupied]
    starts = grid.cuts(occupied)
    starts[0] = max(span.at_least, extent.low)
    if histogram.single_values is not None:
        values = histogram.single_values[occupied]
    else:
        # Positions are rounded down, by half a position on average.
        mean_offsets = histogram.offsets[occupied] / counts + 0.5
        values = grid.low + (occupied * OFFSET_COUNT + mean_offsets) / grid.scale
    second_moments = None
    if steps is not None and histogram.second_moments is not None:
        second_moments = steps.means(histogram.second_moments[occupied], counts)
    return Bins(starts, values, counts, second_moments, histogram.single_values is not None)


def _refine_coarse_bins(counter: ProxyCounter, bins: Bins, size: int) -> Bins | None:
    """Return the bins of `size` units with the coarse ones divided into finer ones.

    `None` if none are too coarse, or if they cannot be divided.
    """
    coarse_bins = _find_coarse_bins(bins, size)
    if coarse_bins is None:
        return None
    first, last = coarse_bins
    if last + 1 < len(bins.starts):
        below = bins.starts[last + 1]
    else:
        below = math.inf
    span = Span(float(bins.starts[first]), float(below))
    extent = counter.extent(span)
    if extent.low == extent.high or not _has_grid(extent):
        return None
    finer_bins = _occupied_bins(counter, extent, span)

    def splice(values: AnyArray, finer_values: AnyArray) -> AnyArray:
        """Return values of the bins (B,) with those of the coarse bins replaced."""
        return np.concatenate([values[:first], finer_values, values[last + 1 :]])

    second_moments = None
    if bins.second_moments is not None and finer_bins.second_moments is not None:
        second_moments = splice(bins.second_moments, finer_bins.second_moments)
    return Bins(
        starts=splice(bins.starts, finer_bins.starts),
        values=splice(bins.values, finer_bins.values),
        counts=splice(bins.counts, finer_bins.counts),
        second_moments=second_moments,
        exact=False,
    )


def _find_coarse_bins(bins: Bins, size: int) -> tuple[int, int] | None:
    """Return the first and the last of neighbouring bins of `size` units that are too coarse, or `None`."""
    if bins.exact:
        return None
    # A few extreme values, such as 999 for unknown, leave nearly all units in few bins.
    if len(bins.counts) < MIN_BINS:
        heavy_bins = np.flatnonzero(bins.counts > HEAVY_BIN_SHARE * size)
        if heavy_bins[-1] - heavy_bins[0] + 1 < len(bins.counts):
            return int(heavy_bins[0]), int(heavy_bins[-1])
    heaviest = int(np.argmax(bins.counts))
    if bins.counts[heaviest] > COARSE_BIN_SHARE * size:
        return (heaviest, heaviest)
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelBins(_BinsWithVariances):
    """The distinct proxies within each level of a group column.

    Parameters
    ----------
    names : tuple of str (L,)
        The levels, sorted.
    level : int (B,)
        Number of the level of each bin. Bins are sorted by level, then by value.
    values : float (B,)
        Proxy of each bin. There is one bin for each level and distinct value.
    counts : int (B,)
        Number of units in each bin.
    second_moments : float (B,), optional
        Mean second moment of each bin, if the proxy has second moments.
    counters : mapping of int to ProxyCounter
        Counters of the levels, by number, with too many distinct values for one bin per value.
    """

    names: tuple[str, ...]
    level: IntArray
    values: FloatArray
    counts: IntArray
    second_moments: FloatArray | None = None
    counters: Mapping[int, ProxyCounter] = field(default_factory=dict)
    conditional_variances: FloatArray = field(init=False, repr=False, compare=False)


class LevelDistributions(Mapping[str, Distribution]):
    """The distributions of a proxy within the levels of a group column, by level.

    Parameters
    ----------
    level_bins : LevelBins
    scaled : bool
        Whether the proxies predict the outcome on its scale.
    bounds : (float, float), optional
        Bounds of the outcome, as for `build_distribution`.

    Attributes
    ----------
    starts : int (L,)
        Index of the first bin of each level in `bins`.
    bins : LevelBins
        The bins of all levels. Without second moments of the proxy, they have those that the bounds imply, as
        in `build_distribution`.
    """

    def __init__(
        self, level_bins: LevelBins, *, scaled: bool = True, bounds: tuple[float, float] | None = (0.0, 1.0)
    ) -> None:
        self._number_of_level = {name: number for number, name in enumerate(level_bins.names)}
        # The distributions of the levels with too many distinct values, by the number of the level.
        self._large_levels = {
            number: build_distribution(counter, scaled=scaled, bounds=bounds)
            for number, counter in level_bins.counters.items()
        }
        self.scaled = scaled
        self.bounds = bounds
        large = list(self._large_levels.values())
        second_moments = level_bins.second_moments
        if second_moments is None:
            second_moments = _extreme_outcome_moments(level_bins.values, scaled, bounds)
        all_moments = [second_moments, *(distribution.second_moments for distribution in large)]
        available_moments = [moments for moments in all_moments if moments is not None]
        bin_counts = [len(distribution.values) for distribution in large]
        large_numbers = np.repeat(np.array(list(self._large_levels), np.int64), bin_counts)
        level = np.concatenate([level_bins.level, large_numbers])
        values = np.concatenate([level_bins.values, *(distribution.values for distribution in large)])
        counts = np.concatenate([level_bins.counts, *(distribution.counts for distribution in large)])
        order = np.argsort(level, kind="stable")
        bins_moments = None
        if available_moments:
            bins_moments = np.concatenate(available_moments)[order]
        self.bins = LevelBins(
            names=level_bins.names,
            level=level[order],
            values=values[order],
            counts=counts[order],
            second_moments=bins_moments,
        )
        self.starts = np.searchsorted(self.bins.level, np.arange(len(level_bins.names)))

    @property
    def sizes(self) -> dict[str, int]:
        """Number of units in each level."""
        sizes = np.add.reduceat(self.bins.counts, self.starts)
        return dict(zip(self._number_of_level, sizes.tolist(), strict=True))

    @property
    def approximate_levels(self) -> list[int]:
        """Numbers of the levels with an approximate distribution, whose bins have several values."""
        return [number for number, distribution in self._large_levels.items() if not distribution.exact]

    def __getitem__(self, level: str) -> Distribution:
        number = self._number_of_level[level]
        if number in self._large_levels:
            return self._large_levels[number]
        is_last_level = number + 1 == len(self.starts)
        level_slice = slice(self.starts[number], None if is_last_level else self.starts[number + 1])
        bins = self.bins
        second_moments = None
        if bins.second_moments is not None:
            second_moments = bins.second_moments[level_slice]
        return Distribution(
            values=bins.values[level_slice],
            counts=bins.counts[level_slice],
            cuts=bins.values[level_slice][1:],
            second_moments=second_moments,
            scaled=self.scaled,
            bounds=self.bounds,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._number_of_level)

    def __len__(self) -> int:
        return len(self._number_of_level)
