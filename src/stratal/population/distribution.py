"""The weighted distribution of a proxy: the part of a population that stratifiers and planners use.

Exact (one bin per distinct value) while small, a histogram when large, by one algorithm for every engine. It
asks a `Counter` three questions (extent, distinct values, histogram) and never sees a unit: `ArrayCounter`
(`stratal.population.in_memory`) answers for NumPy arrays, a table by group-bys.
Sums are integers (a value is rounded down to 2⁻³⁰ of the range first), so that engines, which add in any
order, agree to the last bit.
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

# Bins of a histogram.
BIN_COUNT = 16_384

# Positions within a bin, to which values are rounded down before they are added.
OFFSET_COUNT = 65_536

# Steps between the smallest and the largest second moment, to which they are rounded down.
SECOND_MOMENT_STEPS = 2**30

# Times that bins are binned again within themselves where a histogram is too coarse.
ZOOM_DEPTH = 4

# A bin with over this share of the units is too coarse.
ZOOM_SHARE = 0.25

# Fewer occupied bins than this are too coarse; those with over a 1024th of the units are binned again.
MIN_BINS = 512


class _Bins(Record):
    """Bins of a proxy, whose conditional variances follow from their second moments."""

    __slots__ = ()
    values: FloatArray
    second_moments: FloatArray | None
    conditional_variances: FloatArray

    def __post_init__(self) -> None:
        second = self.second_moments
        if second is None:
            variances = np.zeros(len(self.values))
        else:
            variances = np.maximum(second - self.values**2, 0.0)
        self._set(conditional_variances=variances)
        self._freeze()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution(_Bins):
    """The distribution of a proxy over the population, as weighted bins in increasing order.

    Parameters
    ----------
    values : float (B,)
        Mean proxy of each bin, strictly increasing.
    counts : int (B,)
        Units in each bin, all positive.
    second_moments : float (B,), optional
        Mean conditional second moment E[z² | x] of each bin, on the outcome's scale; `None` where the proxy
        has none (it only orders).
    cuts : float (B − 1,)
        The smallest proxy of each bin but the first: unit i lies in bin b when `cuts[b−1] <= x < cuts[b]`.
    scaled : bool
        Whether the values predict the outcome on its own scale. A margin only orders.
    exact : bool
        Whether each bin is one distinct value.
    bounds : (float, float), optional
        Bounds of the outcome; `None` where it has none.

    Attributes
    ----------
    conditional_variances : float (B,)
        Plug-in Var(z | x) of each bin, E[z² | x] − E[z | x]², not below zero; zero where unknown.

    Examples
    --------
    >>> distribution = Distribution(
    ...     values=np.array([0.5, 0.9]), counts=np.array([1, 2]), cuts=np.array([0.9]),
    ...     second_moments=np.array([0.5, 0.9]),
    ... )
    >>> distribution.size, round(distribution.mean, 6)
    (3, 0.766667)
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
        """N, units in the population."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean proxy of the population."""
        return float(self.counts @ self.values / self.counts.sum())


@dataclass(frozen=True, slots=True)
class Span:
    """A range `at_least <= x < below` of proxies; infinite where it is open."""

    at_least: float = -math.inf
    below: float = math.inf


@dataclass(frozen=True, slots=True)
class Extent:
    """Smallest and largest proxy and the number of units within a span."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal bins from `low`, and within each the positions to which values are rounded."""

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
        """Return the smallest double that falls into each of these bins (B,) or a later one, by bisection."""
        goals = bins * float(OFFSET_COUNT)
        approximate = self.low + goals / self.scale
        # The rounding errors of three operations, with room: the cut lies within this distance.
        reach = 8.0 * np.spacing(np.maximum(np.abs(approximate), abs(self.low)))
        below = approximate - reach
        above = approximate + reach
        while True:
            middle = below + 0.5 * (above - below)
            if not np.any((below < middle) & (middle < above)):
                return np.asarray(above)
            inside = (middle - self.low) * self.scale >= goals
            below = np.where(inside, below, middle)
            above = np.where(inside, middle, above)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts and integer sums per bin of a grid.

    Parameters
    ----------
    counts : int (BIN_COUNT,)
    offsets : int (BIN_COUNT,)
        Sum of the positions within the bin, each in 0 … OFFSET_COUNT − 1.
    second : int (BIN_COUNT,), optional
        Sum of the second moments, in steps.
    atoms : float (BIN_COUNT,), optional
        The one value of each occupied bin, if every occupied bin has just one; else `None`.
    """

    counts: IntArray
    offsets: IntArray
    second: IntArray | None
    atoms: FloatArray | None


@dataclass(frozen=True, slots=True)
class Bins:
    """Occupied bins in increasing order: the smallest double, the mean and the mean second moment of each."""

    starts: FloatArray
    values: FloatArray
    counts: IntArray
    second: FloatArray | None
    atoms: bool


class Counter(Protocol):
    """The queries of the algorithm to an engine."""

    @property
    def steps(self) -> Steps | None:
        """How second moments are turned into integers; `None` where there are none."""

    def extent(self, span: Span) -> Extent:
        """Return smallest and largest proxy and count within the span."""

    def distinct(self) -> Bins:
        """Return a bin for each distinct value."""

    def histogram(self, grid: Grid, span: Span) -> Histogram:
        """Return the histogram of the proxies within the span."""


@dataclass(frozen=True, slots=True)
class Steps:
    """How second moments are turned into integers: floor((m − low) · scale).

    `low` and `scale` are numbers, or one per second moment where these are of several levels.
    """

    low: float | FloatArray
    scale: float | FloatArray

    @classmethod
    def over(cls, low: float | FloatArray, high: float | FloatArray) -> Steps:
        """Return the steps whose last is at the largest second moment, of all units or of each level (L,)."""
        scale = np.zeros(np.shape(low))
        with np.errstate(over="ignore"):
            np.divide(SECOND_MOMENT_STEPS, np.subtract(high, low), out=scale, where=np.greater(high, low))
        return cls(low, scale)

    def __getitem__(self, level: IntArray | int) -> Steps:
        """Return the steps of each second moment (n,), from those of levels and the number of its level."""
        return Steps(np.asarray(self.low)[level], np.asarray(self.scale)[level])

    def numbers(self, second_moments: FloatArray) -> IntArray:
        """Return each second moment in steps (n,)."""
        return ((second_moments - self.low) * self.scale).astype(np.int64)

    def means(self, sums: IntArray, counts: IntArray) -> FloatArray:
        """Return mean second moments (B,) from sums in steps."""
        scale = np.broadcast_to(self.scale, np.shape(sums))
        exact = np.zeros(len(scale))
        # Steps are rounded down, by half a step on average.
        half = np.zeros(len(scale))
        np.divide(sums, scale, out=exact, where=scale != 0.0)
        np.divide(0.5, scale, out=half, where=scale != 0.0)
        return np.asarray(self.low + exact / counts + half)


def build_distribution(
    counter: Counter, *, scaled: bool = True, bounds: tuple[float, float] | None = (0.0, 1.0)
) -> Distribution:
    """Build the distribution of the proxies that `counter` counts.

    Parameters
    ----------
    counter : Counter
        Runs the queries on one engine.
    scaled : bool
        Whether the proxies predict the outcome on its own scale.
    bounds : (float, float), optional
        Bounds (a, b) of the outcome. A scaled proxy without second moments of its own is taken to predict
        an outcome that is as spread as they allow, always a or b: E[z² | x] = (a + b) E[z | x] − a b,
        binary on (0, 1).

    Returns
    -------
    Distribution
        Exact for up to `EXACT_LIMIT` units, and where every bin of the histogram holds a single value.
    """
    extent = counter.extent(Span())
    if extent.count == 0:
        raise InputError("the population is empty", allowed="at least one unit")
    if wants_distinct(extent):
        bins = counter.distinct()
    else:
        bins = _binned(counter, extent)
    second = bins.second
    if second is None:
        second = _widest_moments(bins.values, scaled, bounds)
    return Distribution(
        values=bins.values,
        counts=bins.counts,
        cuts=bins.values[1:] if bins.atoms else bins.starts[1:],
        second_moments=second,
        scaled=scaled,
        exact=bins.atoms,
        bounds=bounds,
    )


def _widest_moments(
    values: FloatArray, scaled: bool, bounds: tuple[float, float] | None
) -> FloatArray | None:
    """Return the second moments (B,) of an outcome that is always at one of its bounds; `None` if unknown."""
    if not scaled or bounds is None:
        return None
    return np.asarray((bounds[0] + bounds[1]) * values - bounds[0] * bounds[1])


def wants_distinct(extent: Extent) -> bool:
    """Return whether so few units, or so narrow or wide a range, are distinguished value by value."""
    if extent.count <= EXACT_LIMIT or not extent.high > extent.low:
        return True
    # A width that overflows, or a scale that does, leaves no grid.
    return not math.isfinite(extent.high - extent.low) or not math.isfinite(
        Grid.over(extent.low, extent.high).scale
    )


def _binned(counter: Counter, extent: Extent) -> Bins:
    bins = _occupied(counter, extent, Span())
    for _ in range(ZOOM_DEPTH):
        zoomed = _zoom(counter, bins, extent.count)
        if zoomed is None:
            break
        bins = zoomed
    return bins


def _occupied(counter: Counter, extent: Extent, span: Span) -> Bins:
    grid = Grid.over(extent.low, extent.high)
    steps = counter.steps
    histogram = counter.histogram(grid, span)
    used = np.flatnonzero(histogram.counts)
    counts = histogram.counts[used]
    starts = grid.cuts(used)
    starts[0] = max(span.at_least, extent.low)
    if histogram.atoms is not None:
        values = histogram.atoms[used]
    else:
        # Positions are rounded down, by half a position on average.
        within = histogram.offsets[used] / counts + 0.5
        values = grid.low + (used * OFFSET_COUNT + within) / grid.scale
    second = None
    if steps is not None and histogram.second is not None:
        second = steps.means(histogram.second[used], counts)
    return Bins(starts, values, counts, second, histogram.atoms is not None)


def _zoom(counter: Counter, bins: Bins, total: int) -> Bins | None:
    """Return the bins with a coarse stretch of them binned again, or `None` if no stretch is too coarse."""
    stretch = _coarse_stretch(bins, total)
    if stretch is None:
        return None
    first, last = stretch
    if last + 1 < len(bins.starts):
        below = bins.starts[last + 1]
    else:
        below = math.inf
    span = Span(float(bins.starts[first]), float(below))
    extent = counter.extent(span)
    if extent.low == extent.high or not math.isfinite(Grid.over(extent.low, extent.high).scale):
        return None
    inner = _occupied(counter, extent, span)

    def spliced(outer: AnyArray, new: AnyArray) -> AnyArray:
        return np.concatenate([outer[:first], new, outer[last + 1 :]])

    second = None
    if bins.second is not None and inner.second is not None:
        second = spliced(bins.second, inner.second)
    return Bins(
        starts=spliced(bins.starts, inner.starts),
        values=spliced(bins.values, inner.values),
        counts=spliced(bins.counts, inner.counts),
        second=second,
        atoms=False,
    )


def _coarse_stretch(bins: Bins, total: int) -> tuple[int, int] | None:
    """Return the first and the last bin of a stretch that is too coarse, or `None`."""
    if bins.atoms:
        return None
    # A few extreme values, such as 999 for unknown, leave nearly all units in few bins.
    if len(bins.counts) < MIN_BINS:
        heavy = np.flatnonzero(bins.counts > total / 1024)
        if heavy[-1] - heavy[0] + 1 < len(bins.counts):
            return int(heavy[0]), int(heavy[-1])
    heaviest = int(np.argmax(bins.counts))
    if bins.counts[heaviest] > ZOOM_SHARE * total:
        return (heaviest, heaviest)
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelBins(_Bins):
    """The distinct values within each level of a category, as an engine counts them.

    Parameters
    ----------
    names : tuple of str (L,)
        The levels, sorted.
    level : int (B,)
        Number of the level that each bin is of; bins in the order of levels, then of values.
    values : float (B,)
        One bin per level and distinct value.
    counts : int (B,)
        Units in each bin.
    second_moments : float (B,), optional
        Mean second moment of each bin, where the proxy has second moments of its own.
    large : mapping of int to Counter
        Levels, by number, that have too many units for one bin per value: counted on their own.
    """

    names: tuple[str, ...]
    level: IntArray
    values: FloatArray
    counts: IntArray
    second_moments: FloatArray | None = None
    large: Mapping[int, Counter] = field(default_factory=dict)
    conditional_variances: FloatArray = field(init=False, repr=False, compare=False)


class LevelDistributions(Mapping[str, Distribution]):
    """The distribution of one proxy within each level of a category, computed when it is read.

    Parameters
    ----------
    level_bins : LevelBins
    scaled : bool
        Whether the proxies predict the outcome on its own scale.
    bounds : (float, float), optional
        Bounds of the outcome, as for `build_distribution`.

    Attributes
    ----------
    starts : int (L,)
        First bin of each level among the bins of all.
    bins : LevelBins
        The bins of all levels, with the second moments that the bounds imply where there are no others.
    """

    def __init__(
        self, level_bins: LevelBins, *, scaled: bool = True, bounds: tuple[float, float] | None = (0.0, 1.0)
    ) -> None:
        self._number = {name: number for number, name in enumerate(level_bins.names)}
        self._large = {
            number: build_distribution(counter, scaled=scaled, bounds=bounds)
            for number, counter in level_bins.large.items()
        }
        self.scaled = scaled
        self.bounds = bounds
        large = list(self._large.values())
        second = level_bins.second_moments
        if second is None:
            second = _widest_moments(level_bins.values, scaled, bounds)
        second_moments = [second, *(part.second_moments for part in large)]
        available_moments = [entry for entry in second_moments if entry is not None]
        numbers = np.repeat(np.array(list(self._large), np.int64), [len(part.values) for part in large])
        level = np.concatenate([level_bins.level, numbers])
        values = np.concatenate([level_bins.values, *(part.values for part in large)])
        counts = np.concatenate([level_bins.counts, *(part.counts for part in large)])
        order = np.argsort(level, kind="stable")
        self.bins = LevelBins(
            names=level_bins.names,
            level=level[order],
            values=values[order],
            counts=counts[order],
            second_moments=np.concatenate(available_moments)[order] if available_moments else None,
        )
        self.starts = np.searchsorted(self.bins.level, np.arange(len(level_bins.names)))

    @property
    def sizes(self) -> dict[str, int]:
        """Units in each level."""
        return dict(zip(self._number, np.add.reduceat(self.bins.counts, self.starts).tolist(), strict=True))

    @property
    def histograms(self) -> list[int]:
        """Numbers of the levels whose bins hold several values each."""
        return [number for number, distribution in self._large.items() if not distribution.exact]

    def __getitem__(self, level: str) -> Distribution:
        number = self._number[level]
        if number in self._large:
            return self._large[number]
        last = number + 1 == len(self.starts)
        rows = slice(self.starts[number], None if last else self.starts[number + 1])
        bins = self.bins
        return Distribution(
            values=bins.values[rows],
            counts=bins.counts[rows],
            cuts=bins.values[rows][1:],
            second_moments=None if bins.second_moments is None else bins.second_moments[rows],
            scaled=self.scaled,
            bounds=self.bounds,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._number)

    def __len__(self) -> int:
        return len(self._number)
