"""A population held in memory as NumPy arrays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray
from stratal.errors import InputError, near_names
from stratal.population.distribution import (
    BIN_COUNT,
    OFFSET_COUNT,
    Distinct,
    Extent,
    Grid,
    Histogram,
    Span,
    Steps,
)
from stratal.population.pictures import LevelBins, bins_of_levels
from stratal.population.population import Population
from stratal.population.rules.rule import Everything, Rule
from stratal.population.size_measures import Candidates, Size, SizeProfile
from stratal.population.summary import Contents, Drawn, ProxyInfo, StratumSummary
from stratal.randomness import (
    KeyArray,
    check_seed,
    id_texts,
    keys_of_ids,
    keys_of_rows,
    rank_smallest,
    shown_order,
    thresholds,
    uniforms,
)

_CHUNK = 1 << 16
"""Rows handled at a time, so that temporaries stay in the processor's cache."""

_COUNTED = 1 << 15
"""The same for counting, whose temporaries are wider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayUnits:
    """The columns of N units as arrays, each (N,), by name.

    Parameters
    ----------
    values, second : mapping
        Proxies, and the second moments of each or None.
    ids : optional
        int64 or text; row numbers if left out.
    groups, features, shown : mapping
        Text, numbers, payload.
    """

    values: Mapping[str, FloatArray]
    second: Mapping[str, FloatArray | None]
    ids: AnyArray | None
    groups: Mapping[str, AnyArray]
    features: Mapping[str, FloatArray]
    shown: Mapping[str, AnyArray]

    @property
    def others(self) -> tuple[Mapping[str, AnyArray], ...]:
        """All columns but ids and proxies."""
        return self.groups, self.features, self.shown


class ArrayPopulation(Population):
    """N units as arrays; made by `Population.from_arrays`.

    Parameters
    ----------
    contents : Contents
    units : ArrayUnits

    Examples
    --------
    >>> population = Population.from_arrays(proxy=[0.9, 0.2, 0.6], groups={"language": ["de", "en", "de"]})
    >>> population.levels("language")
    {'de': 2, 'en': 1}
    """

    def __init__(self, contents: Contents, units: ArrayUnits) -> None:
        super().__init__(contents)
        self._units = units
        self._texts = None if units.ids is None else id_texts(units.ids)
        if self._texts is not None:
            _refuse_duplicates(self._texts)

    # ---- what it answers

    @property
    def numbered_by_row(self) -> bool:
        """Whether no ids were given."""
        return self._units.ids is None

    def _counter(self, info: ProxyInfo) -> ArrayCounter:
        return ArrayCounter(self._units.values[info.name], self._units.second[info.name])

    def _level_bins(self, by: str, info: ProxyInfo) -> LevelBins:
        levels, number = np.unique(self._units.groups[by], return_inverse=True)
        counter = self._counter(info)
        return bins_of_levels(tuple(map(str, levels.tolist())), number, counter)

    def levels(self, group: str) -> dict[str, int]:
        """Return the number of units in each level of a group column."""
        levels, counts = np.unique(self._units.groups[self.require_group(group)], return_counts=True)
        return {str(level): int(count) for level, count in zip(levels.tolist(), counts, strict=True)}

    def codes(self, rule: Rule) -> IntArray:
        """Return each unit's stratum (N,), in the smallest integer type that the rule chose."""
        if isinstance(rule, Everything):
            return np.broadcast_to(np.int64(0), (self.contents.size,))
        return rule.assign({name: self._column(name) for name in rule.columns})

    def summarise(self, rule: Rule, codes: IntArray | None = None) -> StratumSummary:
        """Return sizes and proxy moments per stratum; centred first, so that an offset costs no digits."""
        codes = self.codes(rule) if codes is None else codes
        n_strata, k = rule.n_strata, len(self.proxies)
        if n_strata == 1:
            return self._summarise_whole()
        columns = [self._units.values[info.name] for info in self.proxies]
        centres = [float(column[0]) for column in columns]
        counts = np.zeros(n_strata, np.int64)
        sums, products = np.zeros((n_strata, k)), np.zeros((n_strata, k, k))
        for start in range(0, self.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            stratum = codes[part].astype(np.intp)
            counts += np.bincount(stratum, minlength=n_strata)
            shifted = [column[part] - centre for column, centre in zip(columns, centres, strict=True)]
            for a, left in enumerate(shifted):
                sums[:, a] += np.bincount(stratum, left, minlength=n_strata)
                for b, right in enumerate(shifted[: a + 1]):
                    products[:, a, b] += np.bincount(stratum, left * right, minlength=n_strata)
        return _summary_of_sums(counts, sums, products, np.array(centres))

    def _summarise_whole(self) -> StratumSummary:
        k = len(self.proxies)
        columns = [self._units.values[info.name] for info in self.proxies]
        means = np.array([column.mean() for column in columns])
        covariances = np.zeros((k, k))
        for a in range(k):
            for b in range(a + 1):
                deviations = (columns[a] - means[a]) @ (columns[b] - means[b])
                covariances[a, b] = covariances[b, a] = deviations / self.size
        return StratumSummary(
            sizes=np.array([self.size]),
            proxy_means=means.reshape(1, k),
            proxy_covariances=covariances.reshape(1, k, k),
        )

    def smallest(self, rule: Rule, counts: IntArray, seed: int, codes: IntArray | None = None) -> Drawn:
        """Return, of each stratum, the `counts` (H,) units with the smallest permanent random numbers."""
        seed = check_seed(seed)
        codes = self.codes(rule) if codes is None else codes
        sizes = self._sizes(rule, codes)
        for widening in range(64):
            limits = thresholds(counts, sizes, widening)
            rows, keys = self._where(seed, lambda part, keys: keys <= _limit_of(limits, codes, part))  # noqa: B023
            stratum = codes[rows].astype(np.int64)
            if np.all(np.bincount(stratum, minlength=len(counts)) >= counts):
                break
        kept = rank_smallest(stratum, keys, rows, counts)
        return self.take(rows[kept], stratum[kept], seed)

    def take(self, rows: IntArray, stratum: IntArray, seed: int) -> Drawn:
        """Return the units in these rows, in the order in which they are shown."""
        return self._taken(rows, stratum, seed)[0]

    def _taken(self, rows: IntArray, stratum: IntArray, seed: int) -> tuple[Drawn, IntArray]:
        """Return the units in these rows as they are shown, and that order (n,)."""
        ids = rows.astype(np.int64) if self._units.ids is None else self._units.ids[rows]
        order = shown_order(ids, seed)
        rows, ids, stratum = rows[order], ids[order], stratum[order]
        proxies = [self._units.values[info.name][rows] for info in self.proxies]
        drawn = Drawn(
            ids=ids,
            stratum=stratum,
            proxies=np.stack(proxies, axis=1) if proxies else np.empty((len(rows), 0)),
            groups={name: column[rows] for name, column in self._units.groups.items()},
            shown={name: column[rows] for name, column in self._units.shown.items()},
            features={name: column[rows] for name, column in self._units.features.items()},
        )
        return drawn, order

    # ---- unequal probabilities, an order, groups

    def has_second_moments(self, proxy: str) -> bool:
        """Return whether E[z² | x] is known beside a proxy."""
        return self._units.second.get(proxy) is not None

    def size_profile(self, size: Size, count: int) -> SizeProfile:
        """Return the extent, the sum and the `count` largest values of a size measure."""
        return SizeProfile.of(self._sizes_of(size), count)

    def below(self, size: Size, limit: float, seed: int) -> Candidates:
        """Return the units whose permanent random number u is below `limit` times their size."""
        sizes = self._sizes_of(size)
        rows, keys = self._where(check_seed(seed), lambda part, keys: uniforms(keys) < limit * sizes[part])
        drawn, order = self._taken(rows, np.zeros(len(rows), np.int64), seed)
        return Candidates(drawn=drawn, uniform=uniforms(keys)[order], size=sizes[rows][order])

    def at_ranks(self, column: str, ranks: IntArray, seed: int) -> Drawn:
        """Return the units at these ranks (n,), from 0, when sorted by a column; ties in random order."""
        keys = np.concatenate([found for _, found in self.keys(check_seed(seed))])
        ties: tuple[AnyArray, ...] = (keys,) if self._texts is None else (np.array(self._texts), keys)
        rows = np.lexsort((*ties, self._numbers(column)))[ranks]
        return self.take(rows, np.zeros(len(rows), np.int64), seed)

    def members(self, group: str, levels: tuple[str, ...], seed: int) -> Drawn:
        """Return every unit of these levels of a group column."""
        rows = np.flatnonzero(np.isin(self._units.groups[self.require_group(group)], np.array(levels)))
        return self.take(rows, np.zeros(len(rows), np.int64), seed)

    def find(self, ids: Sequence[str]) -> Drawn:
        """Return the units that have one of these ids, as text; those of no unit are left out."""
        texts = np.arange(self.size).astype(np.str_) if self._texts is None else np.array(self._texts)
        rows = np.flatnonzero(np.isin(texts, np.array(list(ids), np.str_)))
        return self.take(rows, np.zeros(len(rows), np.int64), 0)

    def _sizes_of(self, size: Size) -> FloatArray:
        if size.column is None:
            return np.ones(self.size)
        return size.of_arrays(self._numbers(size.column), self._units.second.get(size.column))

    def _numbers(self, name: str) -> FloatArray:
        if name in self._units.groups:
            raise InputError(f"column {name!r} holds categories", allowed="a proxy or a feature")
        return self._column(name)

    def batches(self, columns: tuple[str, ...], size: int = 262_144) -> Iterator[dict[str, AnyArray]]:
        """Yield the named columns in row order."""
        arrays = {name: self._column(name) for name in columns}
        for start in range(0, self.size, size):
            yield {name: array[start : start + size] for name, array in arrays.items()}

    def keys(self, seed: int) -> Iterator[tuple[slice, KeyArray]]:
        """Yield every unit's permanent random number in chunks of rows."""
        if self._texts is None:
            yield from keys_of_rows(self.size, seed)
            return
        chunk = 1 << 16
        for start in range(0, self.size, chunk):
            texts = self._texts[start : start + chunk]
            yield slice(start, start + len(texts)), keys_of_ids(texts, seed)

    def _sizes(self, rule: Rule, codes: IntArray) -> IntArray:
        if rule.n_strata == 1:
            return np.array([self.size])
        parts = (codes[start : start + _CHUNK] for start in range(0, self.size, _CHUNK))
        sizes = np.zeros(rule.n_strata, np.int64)
        for part in parts:
            sizes += np.bincount(part, minlength=rule.n_strata)
        return sizes

    def _where(self, seed: int, test: Callable[[slice, KeyArray], BoolArray]) -> tuple[IntArray, KeyArray]:
        """Return rows and keys of the units for which a test of some rows' keys is true."""
        rows, kept = [], []
        for part, keys in self.keys(seed):
            hits = np.flatnonzero(test(part, keys))
            rows.append(hits + part.start)
            kept.append(keys[hits])
        return np.concatenate(rows), np.concatenate(kept)

    def _column(self, name: str) -> AnyArray:
        for store in (self._units.values, self._units.groups, self._units.features):
            if name in store:
                return np.asarray(store[name])
        existing = [*self._units.values, *self._units.groups, *self._units.features]
        raise InputError(f"no such column: {name!r}", allowed=near_names(name, existing))


def _summary_of_sums(
    counts: IntArray, sums: FloatArray, products: FloatArray, centres: FloatArray
) -> StratumSummary:
    """Return the summary from sums (H, k) and lower triangles of sums of products (H, k, k), centred."""
    divisor = np.maximum(counts, 1)
    means = sums / divisor[:, None]
    lower = np.tril(products)
    moments = lower + np.tril(products, -1).transpose(0, 2, 1)
    covariances = moments / divisor[:, None, None] - means[:, :, None] * means[:, None, :]
    diagonal = np.arange(len(centres))
    covariances[:, diagonal, diagonal] = np.maximum(covariances[:, diagonal, diagonal], 0.0)
    return StratumSummary(sizes=counts, proxy_means=means + centres, proxy_covariances=covariances)


def _limit_of(limits: KeyArray, codes: IntArray, part: slice) -> KeyArray:
    return limits if len(limits) == 1 else limits[codes[part]]


def _refuse_duplicates(texts: list[str]) -> None:
    if len(set(texts)) == len(texts):
        return
    repeated = [text for text, count in Counter(texts).items() for _ in range(count - 1)]
    raise InputError(
        f"{len(repeated)} ids are duplicated (first: {repeated[0]!r})",
        allowed="one unit per id",
        action="Remove the duplicates, or make an id that tells the units apart.",
    )


@dataclass(frozen=True, slots=True)
class ArrayCounter:
    """Counts proxies held in arrays, in chunks that fit the processor's cache.

    Parameters
    ----------
    values : float (N,)
        Finite.
    second_moments : float (N,), optional

    Examples
    --------
    >>> from stratal.population.distribution import build_distribution
    >>> build_distribution(ArrayCounter(np.array([0.9, 0.5, 0.9]))).values
    array([0.5, 0.9])
    """

    values: FloatArray
    second_moments: FloatArray | None = None

    def extent(self, span: Span) -> Extent:
        """Return smallest and largest proxy and count within the span."""
        values = self.values
        if span != Span():
            values = values[(values >= span.at_least) & (values < span.below)]
        if len(values) == 0:
            return Extent(math.nan, math.nan, 0)
        return Extent(float(values.min()), float(values.max()), len(values))

    def second_moment_extent(self) -> tuple[float, float] | None:
        """Return smallest and largest second moment, or `None`."""
        if self.second_moments is None:
            return None
        return float(self.second_moments.min()), float(self.second_moments.max())

    def distinct(self, steps: Steps | None) -> Distinct:
        """Return all distinct values with counts."""
        values, inverse, counts = np.unique(self.values + 0.0, return_inverse=True, return_counts=True)
        second = None
        if steps is not None and self.second_moments is not None:
            second = np.zeros(len(values), np.int64)
            np.add.at(second, inverse, steps.numbers(self.second_moments))
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

    def of_rows(self, rows: IntArray) -> ArrayCounter:
        """Return the counter of some rows."""
        second = self.second_moments
        return ArrayCounter(self.values[rows], None if second is None else second[rows])

    def _chunks(self, span: Span) -> Iterator[tuple[FloatArray, FloatArray | None]]:
        for start in range(0, len(self.values), _COUNTED):
            values = self.values[start : start + _COUNTED]
            moments = None if self.second_moments is None else self.second_moments[start : start + _COUNTED]
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
