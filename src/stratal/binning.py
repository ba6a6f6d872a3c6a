"""From proxies to a `Distribution`: one algorithm for every engine.

The algorithm asks a `Counter` three questions (extent, distinct values, histogram) and never sees a unit.
`ArrayCounter` answers for NumPy arrays; a table answers by group-bys. Sums are integers (a value is rounded
down to 2⁻³⁰ of the range first), so that engines, which add in any order, agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stratal.arrays import FloatArray, IntArray, finite_vector, same_length
from stratal.distribution import Distribution
from stratal.errors import InputError

EXACT_LIMIT = 65_536
"""A population of up to this many units has one bin per distinct value."""

BIN_COUNT = 16_384
"""Bins of a histogram."""

OFFSET_COUNT = 65_536
"""Positions within a bin, to which values are rounded down before they are added."""

SECOND_MOMENT_STEPS = 2**30
"""Steps between the smallest and the largest second moment, to which they are rounded down."""

ZOOM_SHARE = 0.25
ZOOM_DEPTH = 4
"""A bin that holds over this share of the units is binned again within itself, up to this many times."""

_CHUNK = 1 << 15


@dataclass(frozen=True, slots=True)
class Span:
    """The range `at_least <= x < below` of proxies that a question is about; infinite where open."""

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
    """Equal bins from `low`, and within each the positions to which values are rounded.

    Examples
    --------
    >>> grid = Grid.over(0.0, 1.0)
    >>> int(grid.positions(np.array([0.5]))[0]) == BIN_COUNT * OFFSET_COUNT // 2
    True
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

    def cut(self, bin_number: int) -> float:
        """Return the smallest double that falls into this bin or a later one."""
        goal = bin_number * OFFSET_COUNT
        x = self.low + goal / self.scale
        while (x - self.low) * self.scale >= goal:
            x = math.nextafter(x, -math.inf)
        while (x - self.low) * self.scale < goal:
            x = math.nextafter(x, math.inf)
        return x


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
class Distinct:
    """Distinct values in increasing order, their counts, and the summed second moments in steps."""

    values: FloatArray
    counts: IntArray
    second: IntArray | None


class Counter(Protocol):
    """What the algorithm asks of an engine."""

    def extent(self, span: Span) -> Extent:
        """Return smallest and largest proxy and count within the span."""

    def second_moment_extent(self) -> tuple[float, float] | None:
        """Return smallest and largest second moment, or `None` if the proxy has none of its own."""

    def distinct(self, steps: Steps | None) -> Distinct:
        """Return all distinct values with counts."""

    def histogram(self, grid: Grid, span: Span, steps: Steps | None) -> Histogram:
        """Return the histogram of the proxies within the span."""


@dataclass(frozen=True, slots=True)
class Steps:
    """How second moments are turned into integers: floor((m − low) · scale)."""

    low: float
    scale: float

    @classmethod
    def over(cls, extent: tuple[float, float] | None) -> Steps | None:
        """Return the steps whose last is at the largest second moment, or `None` without second moments."""
        if extent is None:
            return None
        low, high = extent
        return cls(low, SECOND_MOMENT_STEPS / (high - low) if high > low else 0.0)

    def numbers(self, second_moments: FloatArray) -> IntArray:
        """Return each second moment in steps (n,)."""
        return ((second_moments - self.low) * self.scale).astype(np.int64)

    def means(self, sums: IntArray, counts: IntArray) -> FloatArray:
        """Return mean second moments (B,) from sums in steps."""
        half = 0.0 if self.scale == 0.0 else 0.5 / self.scale
        exact = sums / self.scale / counts if self.scale else np.zeros(len(counts))
        return np.asarray(self.low + exact + half)


def build_distribution(
    counter: Counter, *, scaled: bool = True, bounds: tuple[float, float] | None = (0.0, 1.0)
) -> Distribution:
    """Build the distribution of the proxies that `counter` counts.

    Parameters
    ----------
    counter : Counter
        Answers for one engine.
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
    steps = Steps.over(counter.second_moment_extent())
    if wants_distinct(extent):
        return _exact(counter.distinct(steps), steps, scaled, bounds)
    return _binned(counter, extent, steps, scaled, bounds)


def wants_distinct(extent: Extent) -> bool:
    """Return whether so few units, or so narrow or wide a range, are told apart value by value.

    Examples
    --------
    >>> wants_distinct(Extent(0.0, 1.0, 10)), wants_distinct(Extent(0.0, 1.0, 10**6))
    (True, False)
    """
    if extent.count <= EXACT_LIMIT or not extent.high > extent.low:
        return True
    return not math.isfinite(extent.high - extent.low) or not math.isfinite(
        Grid.over(extent.low, extent.high).scale
    )


def _exact(
    distinct: Distinct, steps: Steps | None, scaled: bool, bounds: tuple[float, float] | None
) -> Distribution:
    second = _widest_second_moments(distinct.values, bounds) if scaled else None
    if steps is not None and distinct.second is not None:
        second = steps.means(distinct.second, distinct.counts)
    return Distribution(
        values=distinct.values,
        counts=distinct.counts,
        cuts=distinct.values[1:],
        second_moments=second,
        scaled=scaled,
    )


@dataclass(frozen=True, slots=True)
class _Bins:
    """Occupied bins in increasing order; `starts` is the smallest double of each."""

    starts: FloatArray
    values: FloatArray
    counts: IntArray
    second: FloatArray | None
    atoms: bool


def _widest_second_moments(values: FloatArray, bounds: tuple[float, float] | None) -> FloatArray | None:
    if bounds is None:
        return None
    low, high = bounds
    return np.asarray((low + high) * values - low * high)


def _binned(
    counter: Counter, extent: Extent, steps: Steps | None, scaled: bool, bounds: tuple[float, float] | None
) -> Distribution:
    bins = _occupied(counter, extent, Span(), steps)
    for _ in range(ZOOM_DEPTH):
        zoomed = _zoom(counter, bins, extent.count, steps)
        if zoomed is None:
            break
        bins = zoomed
    second = bins.second
    if second is None and scaled:
        second = _widest_second_moments(bins.values, bounds)
    return Distribution(
        values=bins.values,
        counts=bins.counts,
        cuts=bins.values[1:] if bins.atoms else bins.starts[1:],
        second_moments=second,
        scaled=scaled,
        exact=bins.atoms,
    )


def _occupied(counter: Counter, extent: Extent, span: Span, steps: Steps | None) -> _Bins:
    grid = Grid.over(extent.low, extent.high)
    histogram = counter.histogram(grid, span, steps)
    used = np.flatnonzero(histogram.counts)
    counts = histogram.counts[used]
    starts = np.array([grid.cut(int(b)) for b in used])
    starts[0] = max(span.at_least, extent.low)
    if histogram.atoms is not None:
        values = histogram.atoms[used]
    else:
        within = histogram.offsets[used] / counts + 0.5
        values = grid.low + (used * OFFSET_COUNT + within) / grid.scale
    second = None
    if steps is not None and histogram.second is not None:
        second = steps.means(histogram.second[used], counts)
    return _Bins(starts, values, counts, second, histogram.atoms is not None)


def _zoom(counter: Counter, bins: _Bins, total: int, steps: Steps | None) -> _Bins | None:
    """Return the bins with the heaviest one binned again within itself, or `None` if no bin calls for it."""
    heaviest = int(np.argmax(bins.counts))
    if bins.atoms or bins.counts[heaviest] <= ZOOM_SHARE * total:
        return None
    below = bins.starts[heaviest + 1] if heaviest + 1 < len(bins.starts) else math.inf
    span = Span(float(bins.starts[heaviest]), float(below))
    extent = counter.extent(span)
    if extent.low == extent.high or not math.isfinite(Grid.over(extent.low, extent.high).scale):
        return None
    inner = _occupied(counter, extent, span, steps)

    def spliced(outer: FloatArray, new: FloatArray) -> FloatArray:
        return np.concatenate([outer[:heaviest], new, outer[heaviest + 1 :]])

    second = None
    if bins.second is not None and inner.second is not None:
        second = spliced(bins.second, inner.second)
    counts = np.concatenate([bins.counts[:heaviest], inner.counts, bins.counts[heaviest + 1 :]])
    return _Bins(
        spliced(bins.starts, inner.starts), spliced(bins.values, inner.values), counts, second, False
    )


class ArrayCounter:
    """Counts proxies held in arrays, in chunks that fit the processor's cache.

    Parameters
    ----------
    values : float (N,)
    second_moments : float (N,), optional

    Examples
    --------
    >>> build_distribution(ArrayCounter(np.array([0.9, 0.5, 0.9]))).values
    array([0.5, 0.9])
    """

    def __init__(self, values: FloatArray, second_moments: FloatArray | None = None) -> None:
        self._values = finite_vector("proxy", values)
        self._second = None if second_moments is None else finite_vector("second_moments", second_moments)
        if self._second is not None:
            same_length(second_moments=self._second, proxy=self._values)

    def extent(self, span: Span) -> Extent:
        """Return smallest and largest proxy and count within the span."""
        values = self._values
        if span != Span():
            values = values[(values >= span.at_least) & (values < span.below)]
        if len(values) == 0:
            return Extent(math.nan, math.nan, 0)
        return Extent(float(values.min()), float(values.max()), len(values))

    def second_moment_extent(self) -> tuple[float, float] | None:
        """Return smallest and largest second moment, or `None`."""
        if self._second is None:
            return None
        return float(self._second.min()), float(self._second.max())

    def distinct(self, steps: Steps | None) -> Distinct:
        """Return all distinct values with counts."""
        values, inverse, counts = np.unique(self._values + 0.0, return_inverse=True, return_counts=True)
        second = None
        if steps is not None and self._second is not None:
            second = np.zeros(len(values), np.int64)
            np.add.at(second, inverse, steps.numbers(self._second))
        return Distinct(values, counts, second)

    def histogram(self, grid: Grid, span: Span, steps: Steps | None) -> Histogram:
        """Return the histogram of the proxies within the span."""
        counts, offsets = np.zeros(BIN_COUNT, np.int64), np.zeros(BIN_COUNT, np.int64)
        second = None if steps is None else np.zeros(BIN_COUNT, np.int64)
        atoms: FloatArray | None = np.full(BIN_COUNT, np.nan)
        for values, moments in self._chunks(span):
            positions = grid.positions(values)
            bins = positions // OFFSET_COUNT
            counts += np.bincount(bins, minlength=BIN_COUNT)
            offsets += np.bincount(bins, positions & (OFFSET_COUNT - 1), minlength=BIN_COUNT).astype(np.int64)
            if second is not None and steps is not None and moments is not None:
                second += np.bincount(bins, steps.numbers(moments), minlength=BIN_COUNT).astype(np.int64)
            atoms = _still_atoms(atoms, bins, values)
        return Histogram(counts, offsets, second, atoms)

    def _chunks(self, span: Span) -> Iterator[tuple[FloatArray, FloatArray | None]]:
        for start in range(0, len(self._values), _CHUNK):
            values = self._values[start : start + _CHUNK]
            moments = None if self._second is None else self._second[start : start + _CHUNK]
            if span != Span():
                inside = (values >= span.at_least) & (values < span.below)
                values = values[inside]
                moments = None if moments is None else moments[inside]
            if len(values):
                yield values, moments


def _still_atoms(atoms: FloatArray | None, bins: IntArray, values: FloatArray) -> FloatArray | None:
    """Return the one value of each bin seen so far, or `None` once a bin has shown two."""
    if atoms is None:
        return None
    fresh = np.isnan(atoms[bins])
    atoms[bins[fresh]] = values[fresh]
    return atoms if np.array_equal(atoms[bins], values) else None
