"""The distributions of a proxy within all levels of a category, however many: bins below each other.

What an engine counts of all levels at once (`LevelBins`) becomes the picture of each (`Pictures`), without
any work per level but for the few that are too large for one bin per distinct value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.population.distribution import (
    EXACT_LIMIT,
    Counter,
    Distribution,
    Span,
    Steps,
    build_distribution,
    wants_distinct,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelBins:
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
    second : float (B,), optional
        Mean second moment of each bin, where the proxy has second moments of its own.
    large : mapping of int to Counter
        Levels, by number, that have too many units for one bin per value: counted on their own.
    """

    names: tuple[str, ...]
    level: IntArray
    values: FloatArray
    counts: IntArray
    second: FloatArray | None = None
    large: Mapping[int, Counter] = field(default_factory=dict)

    @property
    def conditional_variances(self) -> FloatArray:
        """Plug-in Var(z | x) of each bin (B,), as a distribution's."""
        if self.second is None:
            return np.zeros(len(self.values))
        return np.asarray(np.maximum(self.second - self.values**2, 0.0))


class Pictures(Mapping[str, Distribution]):
    """The distribution of one proxy within each level of a category; made when it is asked for.

    Parameters
    ----------
    found : LevelBins
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

    Examples
    --------
    >>> found = LevelBins(names=("a", "b"), level=np.array([0, 1, 1]), values=np.array([0.5, 0.2, 0.9]),
    ...                   counts=np.array([1, 1, 2]))
    >>> pictures = Pictures(found)
    >>> pictures["b"].values, pictures.sizes
    (array([0.2, 0.9]), {'a': 1, 'b': 3})
    """

    def __init__(
        self, found: LevelBins, *, scaled: bool = True, bounds: tuple[float, float] | None = (0.0, 1.0)
    ) -> None:
        self._number = {name: number for number, name in enumerate(found.names)}
        self._large = {
            number: build_distribution(counter, scaled=scaled, bounds=bounds)
            for number, counter in found.large.items()
        }
        self.scaled = scaled
        second = found.second
        if second is None and scaled and bounds is not None:
            second = np.asarray((bounds[0] + bounds[1]) * found.values - bounds[0] * bounds[1])
        own = [second, *(picture.second_moments for picture in self._large.values())]
        known = [entry for entry in own if entry is not None]
        lengths = [len(picture.values) for picture in self._large.values()]
        level = np.concatenate([found.level, np.repeat(np.array(list(self._large), np.int64), lengths)])
        order = np.argsort(level, kind="stable")
        values = [found.values, *(picture.values for picture in self._large.values())]
        counts = [found.counts, *(picture.counts for picture in self._large.values())]
        self.bins = LevelBins(
            names=found.names,
            level=level[order],
            values=np.concatenate(values)[order],
            counts=np.concatenate(counts)[order],
            second=np.concatenate(known)[order] if known else None,
        )
        self.starts = np.searchsorted(self.bins.level, np.arange(len(found.names)))

    @property
    def sizes(self) -> dict[str, int]:
        """Units in each level."""
        return dict(zip(self._number, np.add.reduceat(self.bins.counts, self.starts).tolist(), strict=True))

    @property
    def histograms(self) -> list[int]:
        """Numbers of the levels whose bins hold several values each."""
        return [number for number, picture in self._large.items() if not picture.exact]

    def __getitem__(self, level: str) -> Distribution:
        number = self._number[level]
        if number in self._large:
            return self._large[number]
        last = number + 1 == len(self.starts)
        rows, bins = slice(self.starts[number], None if last else self.starts[number + 1]), self.bins
        return Distribution(
            values=bins.values[rows],
            counts=bins.counts[rows],
            cuts=bins.values[rows][1:],
            second_moments=None if bins.second is None else bins.second[rows],
            scaled=self.scaled,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._number)

    def __len__(self) -> int:
        return len(self._number)


class UnitCounter(Counter, Protocol):
    """A counter of proxies that are at hand, unit by unit."""

    @property
    def values(self) -> FloatArray:
        """Proxies (N,)."""

    @property
    def second_moments(self) -> FloatArray | None:
        """Second moments (N,), or `None`."""

    def of_rows(self, rows: IntArray) -> UnitCounter:
        """Return the counter of some rows."""


def bins_of_levels(names: tuple[str, ...], level: IntArray, counter: UnitCounter) -> LevelBins:
    """Return the distinct values within each level, from the number of each unit's level (N,).

    Examples
    --------
    >>> from stratal.population.in_memory import ArrayCounter
    >>> found = bins_of_levels(("a", "b"), np.array([1, 0, 1]), ArrayCounter(np.array([0.9, 0.5, 0.9])))
    >>> found.values, found.counts
    (array([0.5, 0.9]), array([1, 2]))
    """
    values, second = counter.values + 0.0, counter.second_moments
    order = np.lexsort((values, level))
    first = np.searchsorted(level[order], np.arange(len(names) + 1))
    large: dict[int, Counter] = {}
    few = np.ones(len(values), bool)
    for number in np.flatnonzero(np.diff(first) > EXACT_LIMIT).tolist():
        alone = counter.of_rows(np.sort(order[first[number] : first[number + 1]]))
        if not wants_distinct(alone.extent(Span())):
            large[number] = alone
            few[first[number] : first[number + 1]] = False
    order = order[few]
    values, level = values[order], level[order]
    starts = np.flatnonzero(np.append(True, (np.diff(level) > 0) | (np.diff(values) > 0))[: len(order)])
    counts = np.diff(np.append(starts, len(order)))
    means = None if second is None else _level_means(second[order], level, starts, counts)
    return LevelBins(
        names=names, level=level[starts], values=values[starts], counts=counts, second=means, large=large
    )


def _level_means(second: FloatArray, level: IntArray, starts: IntArray, counts: IntArray) -> FloatArray:
    """Return the mean second moment of each bin, in steps of the level that the bin is of."""
    if not len(level):
        return np.zeros(0)
    found, place = np.unique(level, return_index=True)
    low, high = np.minimum.reduceat(second, place), np.maximum.reduceat(second, place)
    number = np.searchsorted(found, level)
    steps = Steps.of_levels(low, high)
    sums = np.add.reduceat(steps[number].numbers(second), starts)
    return steps[number[starts]].means(sums, counts)
