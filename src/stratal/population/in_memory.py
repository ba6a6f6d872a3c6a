"""A population held in memory as NumPy arrays."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from stratal import randomness
from stratal.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    checked_threads,
    frozen,
    is_null,
    without_mask,
)
from stratal.errors import InputError, duplicate_ids_error, suggest_names
from stratal.population import distribution as distributions
from stratal.population.digest import PopulationDigest, array_digits, leading_bits, level_numbers
from stratal.population.expressions import Expression
from stratal.population.population import UNIT_ID, Columns, Population
from stratal.population.rules import BATCH_UNITS, Everything, Rule
from stratal.population.summary import Candidates, Drawn, ProxyInfo, Size, SizeProfile, StratumSummary
from stratal.protocols import WithPylist
from stratal.randomness import KeyArray, check_seed, uniforms

PartResult = TypeVar("PartResult")

# Stratum codes of more units are stored in as few bytes as possible.
_MAX_WIDE_CODES = 1_000_000

# Smallest number of parts for an additional thread: with fewer, threads wait for Python longer than they
# save. Two threads take 1.4 times as long as one for 10⁶ units, equally long for 10⁷, and .7 times as long
# for 10⁸ (docs/scale.md).
_MIN_PARTS_PER_THREAD = 160

# Number of parts per thread that are started in advance; a limit, so that memory does not grow with N.
_PARTS_IN_ADVANCE = 2


def threads_to_use(requested: int | None = None, parts: int | None = None) -> int:
    """Return the number of threads of a pass: as requested, else `OMP_NUM_THREADS`, else all useful cores.

    Cores are useful as long as each thread has enough parts of the rows. joblib and clusters set
    `OMP_NUM_THREADS` for processes that share a machine.

    Raises
    ------
    InputError
        If fewer than one are requested.
    """
    if requested is not None:
        return checked_threads(requested)
    # It may list numbers for nested levels of parallelism, of which the first is the outermost.
    stated = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if stated.isdecimal() and int(stated) > 0:
        return int(stated)
    # Linux knows how many cores this process may use; a container often has fewer than the machine.
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    if parts is None:
        return cores
    return max(1, min(cores, parts // _MIN_PARTS_PER_THREAD))


def over(size: int, work: Callable[[slice], PartResult], threads: int | None = None) -> Iterator[PartResult]:
    """Yield the result of `work` for each part of `size` rows, in the order of the rows.

    Parameters
    ----------
    size : int
        N.
    work : callable
        Called with one part, a slice, on any thread; it may write only to the rows of its part.
    threads : int, optional
        As in `threads_to_use`.
    """
    parts = [slice(start, min(start + BATCH_UNITS, size)) for start in range(0, size, BATCH_UNITS)]
    if len(parts) > 1:
        workers = min(threads_to_use(threads, len(parts)), len(parts))
    else:
        workers = 1
    if workers < 2:
        yield from map(work, parts)
        return
    # Imported late: it takes 3 ms, and tables with few rows do not need it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers, thread_name_prefix="stratal") as pool:
        futures = deque(pool.submit(work, part) for part in parts[: _PARTS_IN_ADVANCE * workers])
        for part in parts[_PARTS_IN_ADVANCE * workers :]:
            yield futures.popleft().result()
            futures.append(pool.submit(work, part))
        while futures:
            yield futures.popleft().result()


def object_column(values: object) -> AnyArray:
    """Return values as an array of objects (n,); nested values are unchanged."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return without_mask(values)
    if not isinstance(values, Iterable):
        problem = "a column must have one entry per unit"
        action = "Give a list or an array."
        raise InputError(problem, given=repr(values), action=action)
    if isinstance(values, WithPylist):
        entries = values.to_pylist()
    else:
        entries = list(values)
    # Among texts, NaN is a missing entry of a dataframe and no number.
    texts = any(isinstance(entry, str) for entry in entries)
    column = np.empty(len(entries), dtype=object)
    column[:] = [
        None if is_null(entry) or (texts and isinstance(entry, float) and entry != entry) else entry
        for entry in entries
    ]
    return column


def refuse_duplicates(texts: list[str]) -> None:
    """Raise an `InputError` that counts the ids that occur more than once and names the first."""
    if len(set(texts)) == len(texts):
        return
    repeated = [text for text, count in Counter(texts).items() for _ in range(count - 1)]
    raise duplicate_ids_error("", len(repeated), repeated[0])


# No permanent random number is above this, so that every unit is tested.
_LAST_KEY = np.uint64(2**64 - 1)

# A position is a bin and, in its lowest bits, the offset within the bin.
_OFFSET_BITS = distributions.OFFSET_COUNT.bit_length() - 1

# Number of first rows that are checked for bins with two values; if most bins have two, the search for bins
# with a single value is skipped.
_PROBE_ROWS = 4096

# A sum of up to `BATCH_UNITS` offsets is below 2³², and with the count above it below 2⁵³: exact.
_COUNT_SHIFT = 32


@dataclass(kw_only=True, eq=False, repr=False)
class ArrayPopulation(Population):
    """N units as arrays; made by `Population.from_arrays`.

    Parameters
    ----------
    values, second : mapping of str to float (N,)
        Proxies, and the second moments of each, or None.
    ids : (N,), optional
        int64 or text; row numbers if left out.
    groups, features, shown : mapping of str to (N,) array
        Text, numbers, payload.
    threads : int, optional
        As in `stratal.population.in_memory.threads_to_use`.
    """

    values: Mapping[str, FloatArray]
    second: Mapping[str, FloatArray | None]
    ids: AnyArray | None
    groups: Mapping[str, AnyArray]
    features: Mapping[str, FloatArray]
    shown: Mapping[str, AnyArray]
    threads: int | None = None
    _codes: tuple[Rule, IntArray] | None = field(init=False, default=None)
    _summary: tuple[Rule, StratumSummary] | None = field(init=False, default=None)
    _coded: dict[str, tuple[AnyArray, IntArray, IntArray]] = field(init=False, default_factory=dict)
    _kept_keys: tuple[int, KeyArray] | None = field(init=False, default=None)
    _texts: list[str] | None = field(init=False, default=None)
    _means: dict[tuple[Expression, ...], FloatArray] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.group_names = tuple(self.groups)
        self.shown_names = tuple(self.shown)
        self.feature_names = tuple(self.features)
        self.numbered_by_row = self.ids is None
        if self.ids is not None:
            self._texts = randomness.id_texts(self.ids)
            refuse_duplicates(self._texts)

    # ---- distributions, levels and summaries

    def _counter(self, info: ProxyInfo) -> ArrayCounter:
        return ArrayCounter(self.values[info.name], self.second[info.name], self.threads)

    def extent(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest value of a proxy."""
        values = self.values[name]
        return float(values.min()), float(values.max())

    def _renumbered(self, base: int) -> ArrayPopulation:
        """Return the population with row numbers that count from `base`."""
        assert self.row_base is not None
        if self.ids is None:
            ids = np.arange(self.size, dtype=np.int64)
        else:
            ids = self.ids - self.row_base
        return replace(self, ids=ids + base, row_base=base)

    def _level_bins(self, by: str, info: ProxyInfo) -> distributions.LevelBins:
        levels, number, _ = self._levels(by)
        return bins_of_levels(tuple(levels.tolist()), number.astype(np.int64), self._counter(info))

    def levels(self, group: str) -> dict[str, int]:
        """Return the number of units in each level of a group column."""
        names, _, counts = self._levels(self.require_group(group))
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def _levels(self, group: str) -> tuple[AnyArray, IntArray, IntArray]:
        """Return the sorted levels (L,) of a group column, the level of each unit (N,), and sizes (L,)."""
        # Stored, because sorting texts is slow.
        if group not in self._coded:
            levels, codes, counts = np.unique(self.groups[group], return_inverse=True, return_counts=True)
            self._coded[group] = levels, codes.astype(np.min_scalar_type(len(levels))), counts
        return self._coded[group]

    def means_of(self, formulas: Sequence[Expression]) -> FloatArray:
        """Return the means (q,) of formulas over all units; stored, as a plan and every round need them."""
        key = tuple(formulas)
        if key not in self._means:
            self._means[key] = frozen(super().means_of(formulas))
        return self._means[key]

    def known_levels(self, columns: Iterable[str], part: slice) -> dict[str, tuple[list[str], IntArray]]:
        """Return the levels of group columns, and the level of each unit of a part."""
        coded = {name: self._levels(name) for name in columns if name in self.groups}
        return {name: (levels.tolist(), number[part]) for name, (levels, number, _) in coded.items()}

    def codes(self, rule: Rule) -> IntArray:
        """Return each unit's stratum (N,); for many units in few bytes."""
        if isinstance(rule, Everything):
            return np.broadcast_to(np.int64(0), (self.size,))
        # A copy of the reference, because another thread may replace it by other strata.
        stored = self._codes
        if stored is not None and stored[0] is rule:
            return stored[1]
        columns = {name: self._column(name) for name in rule.columns}
        if self.size <= BATCH_UNITS:
            codes = rule.codes_of(columns).astype(np.int64, copy=False)
            self._codes = rule, codes
            return codes
        is_large = self.size > _MAX_WIDE_CODES
        codes = np.empty(self.size, np.min_scalar_type(rule.n_strata) if is_large else np.int64)

        def assign(part: slice) -> None:
            codes[part] = rule.codes_of({name: column[part] for name, column in columns.items()})

        deque(over(self.size, assign, self.threads), maxlen=0)
        self._codes = rule, codes
        return codes

    def summarise(self, rule: Rule) -> StratumSummary:
        """Return sizes and proxy moments per stratum; proxies are centred first, to keep precision."""
        stored = self._summary
        if stored is not None and stored[0] is rule:
            return stored[1]
        n_strata = rule.n_strata
        k = len(self.proxies)
        stratum = self.codes(rule)
        columns = [self.values[info.name] for info in self.proxies]
        centres = [float(column.mean()) for column in columns]

        def part_moments(part: slice) -> tuple[IntArray, FloatArray, FloatArray]:
            code = stratum[part].astype(np.intp, copy=False)
            shifted = [column[part] - centre for column, centre in zip(columns, centres, strict=True)]
            sums = np.zeros((n_strata, k))
            products = np.zeros((n_strata, k, k))
            for a, first in enumerate(shifted):
                sums[:, a] = np.bincount(code, first, minlength=n_strata)
                for b, second in enumerate(shifted[: a + 1]):
                    products[:, a, b] = np.bincount(code, first * second, minlength=n_strata)
            return np.bincount(code, minlength=n_strata), sums, products

        counts = np.zeros(n_strata, np.int64)
        sums = np.zeros((n_strata, k))
        products = np.zeros((n_strata, k, k))
        for part_sums in over(self.size, part_moments, self.threads):
            counts = counts + part_sums[0]
            sums = sums + part_sums[1]
            products = products + part_sums[2]
        summary = StratumSummary.of_sums(counts, sums, products, np.array(centres))
        self._summary = rule, summary
        return summary

    def _under(
        self, rule: Rule, limits: KeyArray, counts: IntArray, seed: int
    ) -> tuple[IntArray, IntArray, KeyArray, IntArray]:
        codes = self.codes(rule)
        rows, keys = self._where(seed, lambda rows, keys: keys <= limits[codes[rows]], limits.max())
        return rows, codes[rows].astype(np.int64), keys, rows

    def _drawn_units(
        self, rows: IntArray, seed: int, stratum: IntArray | None = None
    ) -> tuple[Drawn, IntArray]:
        if stratum is None:
            stratum = np.zeros(len(rows), np.int64)
        if self.ids is None:
            ids = rows.astype(np.int64)
        else:
            ids = self.ids[rows]
        order = randomness.shown_order(ids, seed)
        rows = rows[order]
        ids = ids[order]
        stratum = stratum[order]
        proxies = [self.values[info.name][rows] for info in self.proxies]
        drawn = Drawn(
            ids=ids,
            stratum=stratum,
            proxies=np.stack(proxies, axis=1) if proxies else np.empty((len(rows), 0)),
            groups={name: column[rows] for name, column in self.groups.items()},
            shown={name: column[rows] for name, column in self.shown.items()},
            features={name: column[rows] for name, column in self.features.items()},
        )
        return drawn, order

    def _digest(self, seed: int) -> PopulationDigest:
        digested = self._digested_columns
        columns = [*digested.numbers.values(), *((numbers, None) for numbers in digested.groups.values())]

        def part_sums_of_digits(part: slice) -> list[int]:
            keys = leading_bits(self._keys(part, seed))
            sums = [int(keys.sum())]
            for values, exponent in columns:
                part_values = values[part]
                digits = [part_values]
                if exponent is not None:
                    digits = list(array_digits(part_values, exponent))
                sums += [int(np.dot(keys, digit)) for digit in digits]
            return sums

        # Python computes the digests of texts, so that threads would wait for each other.
        threads = self.threads if self._texts is None else 1
        totals = [sum(column) for column in zip(*over(self.size, part_sums_of_digits, threads), strict=True)]
        return digested.digest(self.size, totals[0], totals[1:])

    def _digest_columns(self) -> tuple[Columns, dict[str, KeyArray]]:
        named = {f"number:{name}": self._column(name) for name in (*self.proxy_names, *self.feature_names)}
        named |= {f"second:{name}": values for name, values in self.second.items() if values is not None}
        ends = {name: (float(values.min()), float(values.max())) for name, values in named.items()}
        levels_by_name = {name: self._levels(name) for name in self.groups}
        groups = {
            f"group:{name}": level_numbers(levels)[codes]
            for name, (levels, codes, _) in levels_by_name.items()
        }
        return {name: (np.asarray(values, np.float64), ends[name]) for name, values in named.items()}, groups

    def digest_of_draw(self, seed: int) -> Callable[[], PopulationDigest]:
        """Return the function that computes the digest: thousands of simulated draws do not need it."""
        return partial(self.digest, seed)

    def _keys(self, part: slice, seed: int) -> KeyArray:
        """Return the permanent random numbers of a part; of ids they are kept, since Python hashes slowly."""
        if self._texts is None:
            return randomness.keys_of_rows(part, seed)
        # A copy of the reference, because another thread may draw with another seed.
        stored = self._kept_keys
        if stored is None or stored[0] != seed:
            stored = self._kept_keys = seed, randomness.keys_of_ids(self._texts, seed)
        return stored[1][part]

    # ---- unequal probabilities, an order, groups

    def size_profile(self, size: Size, count: int) -> SizeProfile:
        """Return the extent, the sum and the `count` largest values of a size measure."""
        return SizeProfile.of(self._sizes_of(size), count)

    def below(self, size: Size, limit: float, seed: int) -> Candidates:
        """Return the units whose permanent random number u is below `limit` times their size."""
        sizes = self._sizes_of(size)
        rows, keys = self._where(check_seed(seed), lambda rows, keys: uniforms(keys) < limit * sizes[rows])
        drawn, order = self._drawn_units(rows, seed)
        return Candidates(drawn=drawn, uniform=uniforms(keys)[order], size=sizes[rows][order])

    def at_ranks(self, column: str, ranks: IntArray, seed: int) -> Drawn:
        """Return the units at these ranks (n,), from 0, when sorted by a column; ties in random order."""
        _, keys = self._where(check_seed(seed), lambda rows, keys: np.ones(len(rows), bool))
        ties: tuple[AnyArray, ...]
        if self._texts is None:
            ties = (keys,)
        else:
            ties = (np.array(self._texts), keys)
        rows = np.lexsort((*ties, self._numeric(column)))[ranks]
        return self._drawn_units(rows, seed)[0]

    def members(self, group: str, levels: tuple[str, ...], seed: int) -> Drawn:
        """Return every unit of these levels of a group column."""
        rows = np.flatnonzero(np.isin(self.groups[self.require_group(group)], np.array(levels)))
        return self._drawn_units(rows, seed)[0]

    def find(self, ids: Sequence[str]) -> Drawn:
        """Return the units that have one of these ids, as text; those of no unit are left out."""
        if self._texts is None:
            numbers = (int(text) for text in ids if text.isdecimal() and text == str(int(text)))
            rows = np.unique(np.array([row for row in numbers if row < self.size], dtype=np.int64))
        else:
            rows = np.flatnonzero(np.isin(np.array(self._texts), np.array(list(ids), np.str_)))
        return self._drawn_units(rows, 0)[0]

    def _sizes_of(self, size: Size) -> FloatArray:
        if size.formula is not None:
            columns = {name: self._numeric(name) for name in size.formula.columns}
            return size.of_arrays(size.formula.of(columns))
        if size.column is None:
            return np.ones(self.size)
        return size.of_arrays(self._numeric(size.column), self.second.get(size.column))

    def _numeric(self, name: str) -> FloatArray:
        if name in self.group_names and name not in (*self.proxy_names, *self.feature_names):
            raise InputError(f"column {name!r} contains categories", allowed="a proxy or a feature")
        return self._column(name)

    def batches(self, columns: tuple[str, ...], size: int = 262_144) -> Iterator[dict[str, AnyArray]]:
        """Yield the named columns in row order."""
        arrays = {name: self._column(name) for name in columns if name != UNIT_ID}
        if UNIT_ID in columns:
            if self.ids is None:
                arrays[UNIT_ID] = np.arange(self.size)
            else:
                arrays[UNIT_ID] = self.ids
        for start in range(0, self.size, size):
            yield {name: array[start : start + size] for name, array in arrays.items()}

    def _where(
        self,
        seed: int,
        test: Callable[[IntArray, KeyArray], BoolArray],
        highest: np.uint64 = _LAST_KEY,
    ) -> tuple[IntArray, KeyArray]:
        """Return rows and keys of the units for which a test of some rows and their keys is true.

        Only units whose permanent random number is at most `highest` are tested.
        """

        def chosen(part: slice) -> tuple[IntArray, KeyArray]:
            keys = self._keys(part, seed)
            tested = np.flatnonzero(keys <= highest)
            rows = tested + part.start
            keys = keys[tested]
            passes = test(rows, keys)
            return rows[passes], keys[passes]

        # Python computes the digests of texts, so that threads would wait for each other.
        threads = self.threads if self._texts is None else 1
        rows, keys = zip(*over(self.size, chosen, threads), strict=True)
        return np.concatenate(rows), np.concatenate(keys)

    def _column(self, name: str) -> AnyArray:
        columns = {**self.features, **self.groups, **self.values}
        if name not in columns:
            raise InputError(f"no such column: {name!r}", allowed=suggest_names(name, columns))
        return columns[name]


@dataclass(frozen=True, slots=True)
class ArrayCounter:
    """Counts proxies held in arrays, a part of the rows at a time.

    Parameters
    ----------
    values : float (N,)
        Finite.
    second_moments : float (N,), optional
    threads : int, optional
        As in `stratal.population.in_memory.threads_to_use`.
    """

    values: FloatArray
    second_moments: FloatArray | None = None
    threads: int | None = None

    @property
    def steps(self) -> distributions.Steps | None:
        """How second moments are turned into integers; `None` where there are none."""
        second = self.second_moments
        if second is None:
            return None
        return distributions.Steps.over(float(second.min()), float(second.max()))

    def extent(self, span: distributions.Span) -> distributions.Extent:
        """Return smallest and largest proxy and count within the span."""
        values = self.values[_inside(self.values, span)]
        if len(values) == 0:
            return distributions.Extent(math.nan, math.nan, 0)
        return distributions.Extent(float(values.min()), float(values.max()), len(values))

    def distinct(self) -> distributions.Bins:
        """Return a bin for each distinct value."""
        values, inverse, counts = np.unique(self.values + 0.0, return_inverse=True, return_counts=True)
        second = None
        if self.second_moments is not None:
            steps = distributions.Steps.over(
                float(self.second_moments.min()), float(self.second_moments.max())
            )
            sums = np.zeros(len(values), np.int64)
            np.add.at(sums, inverse, steps.numbers(self.second_moments))
            second = steps.means(sums, counts)
        return distributions.Bins(values, values, counts, second, True)

    def histogram(self, grid: distributions.Grid, span: distributions.Span) -> distributions.Histogram:
        """Return the histogram of the proxies within the span."""
        counts = np.zeros(distributions.BIN_COUNT, np.int64)
        offsets = np.zeros(distributions.BIN_COUNT, np.int64)
        if self.second_moments is None:
            second = None
        else:
            second = np.zeros(distributions.BIN_COUNT, np.int64)
        work = partial(self._counted, grid, span, self.steps)
        for sums, moments in over(len(self.values), work, self.threads):
            counts += sums >> _COUNT_SHIFT
            offsets += sums & ((1 << _COUNT_SHIFT) - 1)
            if second is not None and moments is not None:
                second += moments
        return distributions.Histogram(counts, offsets, second, self._atoms(grid, span))

    def _counted(
        self,
        grid: distributions.Grid,
        span: distributions.Span,
        steps: distributions.Steps | None,
        part: slice,
    ) -> tuple[IntArray, IntArray | None]:
        """Return counts and sums of offsets, as bits of one exact sum, and sums of moments of some rows."""
        inside = _inside(self.values[part], span)
        positions = grid.positions(self.values[part][inside])
        bins = positions >> _OFFSET_BITS
        positions &= distributions.OFFSET_COUNT - 1
        positions += 1 << _COUNT_SHIFT
        sums = np.bincount(bins, positions, minlength=distributions.BIN_COUNT).astype(np.int64)
        if steps is None or self.second_moments is None:
            return sums, None
        moments = steps.numbers(self.second_moments[part][inside])
        return sums, np.bincount(bins, moments, minlength=distributions.BIN_COUNT).astype(np.int64)

    def _atoms(self, grid: distributions.Grid, span: distributions.Span) -> FloatArray | None:
        """Return the one value of each bin; `None` if a bin has two, which the first rows mostly show."""
        atoms = np.full(distributions.BIN_COUNT, np.nan)
        for start in (0, *range(_PROBE_ROWS, len(self.values), BATCH_UNITS)):
            values = self.values[start : start + BATCH_UNITS if start else _PROBE_ROWS]
            values = values[_inside(values, span)]
            bins = grid.positions(values) >> _OFFSET_BITS
            is_empty = np.isnan(atoms[bins])
            atoms[bins[is_empty]] = values[is_empty]
            if not np.array_equal(atoms[bins], values):
                return None
        return atoms

    def of_rows(self, rows: IntArray) -> ArrayCounter:
        """Return the counter of some rows."""
        second = self.second_moments
        return ArrayCounter(self.values[rows], None if second is None else second[rows], self.threads)


def _inside(values: FloatArray, span: distributions.Span) -> Any:
    """Return what picks the values (n,) within a span, all of them without a copy where it is open."""
    if span == distributions.Span():
        return slice(None)
    return (values >= span.at_least) & (values < span.below)


def bins_of_levels(names: tuple[str, ...], level: IntArray, counter: ArrayCounter) -> distributions.LevelBins:
    """Return the distinct values within each level, from the number of each unit's level (N,)."""
    # The sum turns −0.0 into 0.0, which are one value.
    values = counter.values + 0.0
    second = counter.second_moments
    order = np.lexsort((values, level))
    first = np.searchsorted(level[order], np.arange(len(names) + 1))
    large: dict[int, ArrayCounter] = {}
    is_counted_here = np.ones(len(values), bool)
    for number in np.flatnonzero(np.diff(first) > distributions.EXACT_LIMIT).tolist():
        counter_of_level = counter.of_rows(np.sort(order[first[number] : first[number + 1]]))
        if not distributions.wants_distinct(counter_of_level.extent(distributions.Span())):
            large[number] = counter_of_level
            is_counted_here[first[number] : first[number + 1]] = False
    order = order[is_counted_here]
    values = values[order]
    level = level[order]
    starts = np.flatnonzero(np.append(True, (np.diff(level) > 0) | (np.diff(values) > 0))[: len(order)])
    counts = np.diff(np.append(starts, len(order)))
    means = None
    if second is not None and len(order):
        low = np.full(len(names), np.inf)
        high = np.full(len(names), -np.inf)
        np.minimum.at(low, level, second[order])
        np.maximum.at(high, level, second[order])
        steps = distributions.Steps.over(low, high)
        sums = np.add.reduceat(steps[level].numbers(second[order]), starts)
        means = steps[level[starts]].means(sums, counts)
    return distributions.LevelBins(
        names=names,
        level=level[starts],
        values=values[starts],
        counts=counts,
        second_moments=means,
        large=large,
    )
