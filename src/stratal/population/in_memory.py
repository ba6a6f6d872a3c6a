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
    as_matrix,
    checked_threads,
    frozen,
    is_null,
    select_rows,
    without_mask,
)
from stratal.errors import InputError, duplicate_ids_error, suggest_names
from stratal.population.digest import PopulationDigest, array_digits, leading_bits, level_numbers
from stratal.population.distribution import (
    BIN_COUNT,
    EXACT_LIMIT,
    OFFSET_BITS,
    OFFSET_COUNT,
    Bins,
    Extent,
    Grid,
    Histogram,
    LevelBins,
    MomentSteps,
    Span,
    has_distinct_value_bins,
)
from stratal.population.drawn_units import Candidates, DrawnUnits
from stratal.population.expressions import Expression
from stratal.population.population import DEFAULT_BATCH_SIZE, UNIT_ID, NumberColumns, Population
from stratal.population.proxy_info import ProxyInfo
from stratal.population.rules import BATCH_UNITS, Everything, Rule
from stratal.population.size_measure import SizeMeasure, SizeProfile
from stratal.population.summary import StratumSummary
from stratal.protocols import WithPylist
from stratal.randomness import KeyArray, check_seed, uniforms

SliceResult = TypeVar("SliceResult")

# Largest population whose stratum codes are stored with 64 bits. For more units, they have as few bytes as
# possible.
_MAX_UNITS_WITH_WIDE_CODES = 1_000_000

# Smallest number of slices (`BATCH_UNITS` rows each) per thread: with fewer, threads wait for Python longer
# than they save. Two threads take 1.4 times as long as one for 10⁶ units, equally long for 10⁷, and .7 times
# as long for 10⁸ (docs/scale.md).
_MIN_SLICES_PER_THREAD = 160

# Number of slices per thread that are started in advance; a limit, so that memory does not grow with N.
_SLICES_IN_ADVANCE = 2


def threads_to_use(requested: int | None = None, slices: int | None = None) -> int:
    """Return the number of threads for a pass over slices of the rows.

    It is the requested number, else `OMP_NUM_THREADS`, else the number of cores, limited so that each thread
    has at least `_MIN_SLICES_PER_THREAD` slices. joblib and clusters set `OMP_NUM_THREADS` for processes that
    share a machine.

    Raises an `InputError` if the requested number is below one.
    """
    if requested is not None:
        return checked_threads(requested)
    # The variable may list numbers for nested levels of parallelism, of which the first is the outermost.
    stated = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if stated.isdecimal() and int(stated) > 0:
        return int(stated)
    # On Linux, this number is that of the process, which a container often limits.
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    if slices is None:
        return cores
    return max(1, min(cores, slices // _MIN_SLICES_PER_THREAD))


def map_slices(
    size: int, work: Callable[[slice], SliceResult], threads: int | None = None
) -> Iterator[SliceResult]:
    """Yield the result of `work` for each slice of `BATCH_UNITS` rows, in the order of the rows.

    Parameters
    ----------
    size : int
        Number of rows, N.
    work : callable
        Called with a slice, on any thread; it may write only to the rows of its slice.
    threads : int, optional
        As in `threads_to_use`.
    """
    slices = [slice(start, min(start + BATCH_UNITS, size)) for start in range(0, size, BATCH_UNITS)]
    if len(slices) > 1:
        workers = min(threads_to_use(threads, len(slices)), len(slices))
    else:
        workers = 1
    if workers < 2:
        yield from map(work, slices)
        return
    # Imported late: it takes 3 ms, and tables with few rows do not need it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers, thread_name_prefix="stratal") as pool:
        futures = deque(pool.submit(work, rows) for rows in slices[: _SLICES_IN_ADVANCE * workers])
        for rows in slices[_SLICES_IN_ADVANCE * workers :]:
            yield futures.popleft().result()
            futures.append(pool.submit(work, rows))
        while futures:
            yield futures.popleft().result()


def object_column(values: object) -> AnyArray:
    """Return a column as an array of objects (n,), with None for missing entries."""
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
    # In a column of texts, NaN is a missing entry of a dataframe and not a number.
    has_texts = any(isinstance(entry, str) for entry in entries)
    column = np.empty(len(entries), dtype=object)
    column[:] = [
        None if is_null(entry) or (has_texts and isinstance(entry, float) and entry != entry) else entry
        for entry in entries
    ]
    return column


def refuse_duplicate_ids(ids: list[str]) -> None:
    """Raise an error with the number of duplicate ids and the first one."""
    if len(set(ids)) == len(ids):
        return
    duplicates = [text for text, count in Counter(ids).items() for _ in range(count - 1)]
    raise duplicate_ids_error("", len(duplicates), duplicates[0])


# The largest permanent random number (64 bits).
_MAX_KEY = np.uint64(2**64 - 1)

# Number of first rows in which two values in one bin are searched for. Most columns with such bins have one
# there, which saves the search in all rows.
_CHECKED_ROWS = 4096

# Counts and sums of offsets are added together: offsets in the lower bits, counts from this bit on. The sum
# of up to `BATCH_UNITS` offsets is below 2³², and with the count it is below 2⁵³, where doubles are exact.
_COUNT_SHIFT = 32


@dataclass(kw_only=True, eq=False, repr=False)
class ArrayPopulation(Population):
    """N units as arrays; made by `Population.from_arrays`.

    Parameters
    ----------
    values : mapping of str to float (N,)
        The proxies.
    second_moments : mapping of str to float (N,), or None
        The second moments E[z² | x] of each proxy, if it has them.
    ids : (N,), optional
        int64 or text. Default: row numbers.
    groups, features, shown : mapping of str to (N,) array
        Columns of text, of numbers, and of values that annotators see.
    threads : int, optional
        As in `threads_to_use`.
    """

    values: Mapping[str, FloatArray]
    second_moments: Mapping[str, FloatArray | None]
    ids: AnyArray | None
    groups: Mapping[str, AnyArray]
    features: Mapping[str, FloatArray]
    shown: Mapping[str, AnyArray]
    threads: int | None = None
    # Stored results: for the last rule, for each group column, for the last seed, and for each list of
    # formulas.
    _stored_codes: tuple[Rule, IntArray] | None = field(init=False, default=None)
    _stored_summary: tuple[Rule, StratumSummary] | None = field(init=False, default=None)
    _stored_levels: dict[str, tuple[AnyArray, IntArray, IntArray]] = field(init=False, default_factory=dict)
    _stored_keys: tuple[int, KeyArray] | None = field(init=False, default=None)
    _stored_means: dict[tuple[Expression, ...], FloatArray] = field(init=False, default_factory=dict)
    # The ids as text; None for row numbers.
    _id_texts: list[str] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.group_names = tuple(self.groups)
        self.shown_names = tuple(self.shown)
        self.feature_names = tuple(self.features)
        self.numbered_by_row = self.ids is None
        if self.ids is not None:
            self._id_texts = randomness.id_texts(self.ids)
            refuse_duplicate_ids(self._id_texts)

    # ---- distributions, levels and summaries

    def _counter(self, info: ProxyInfo) -> ArrayCounter:
        """Return the object that counts the values of a proxy for its distribution."""
        return ArrayCounter(self.values[info.name], self.second_moments[info.name], self.threads)

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

    def _level_bins(self, by: str, info: ProxyInfo) -> LevelBins:
        """Return the bins of a proxy's values within each level of a group column."""
        levels, codes, _ = self._levels(by)
        return count_levels(tuple(levels.tolist()), codes.astype(np.int64), self._counter(info))

    def levels(self, group: str) -> dict[str, int]:
        """Return the number of units in each level of a group column."""
        names, _, counts = self._levels(self.require_group(group))
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def _levels(self, group: str) -> tuple[AnyArray, IntArray, IntArray]:
        """Return the sorted levels (L,) of a group column, each unit's level number (N,), and sizes (L,)."""
        # Stored, because sorting texts is slow.
        if group not in self._stored_levels:
            levels, codes, counts = np.unique(self.groups[group], return_inverse=True, return_counts=True)
            self._stored_levels[group] = levels, codes.astype(np.min_scalar_type(len(levels))), counts
        return self._stored_levels[group]

    def means_of(self, formulas: Sequence[Expression]) -> FloatArray:
        """Return the means (q,) of formulas over all units; stored, as a plan and every round need them."""
        key = tuple(formulas)
        if key not in self._stored_means:
            self._stored_means[key] = frozen(super().means_of(formulas))
        return self._stored_means[key]

    def known_level_codes(self, columns: Iterable[str], rows: slice) -> dict[str, tuple[list[str], IntArray]]:
        """Return the levels of group columns and the level number of each unit of a batch."""
        levels_by_column = {name: self._levels(name) for name in columns if name in self.groups}
        return {name: (levels.tolist(), codes[rows]) for name, (levels, codes, _) in levels_by_column.items()}

    def codes(self, rule: Rule) -> IntArray:
        """Return the number of each unit's stratum (N,), for large N in the smallest integer type."""
        if isinstance(rule, Everything):
            return np.broadcast_to(np.int64(0), (self.size,))
        # A copy of the reference, because another thread may replace it by other strata.
        stored = self._stored_codes
        if stored is not None and stored[0] is rule:
            return stored[1]
        columns = {name: self._column(name) for name in rule.columns}
        if self.size <= BATCH_UNITS:
            codes = rule.codes_of(columns).astype(np.int64, copy=False)
            self._stored_codes = rule, codes
            return codes
        is_large = self.size > _MAX_UNITS_WITH_WIDE_CODES
        codes = np.empty(self.size, np.min_scalar_type(rule.n_strata) if is_large else np.int64)

        def assign(rows: slice) -> None:
            codes[rows] = rule.codes_of(select_rows(columns, rows))

        # A deque of length 0 runs the iterator without storing its results.
        deque(map_slices(self.size, assign, self.threads), maxlen=0)
        self._stored_codes = rule, codes
        return codes

    def summarise(self, rule: Rule) -> StratumSummary:
        """Return sizes and proxy moments per stratum; proxies are centred first, to keep precision."""
        stored = self._stored_summary
        if stored is not None and stored[0] is rule:
            return stored[1]
        n_strata = rule.n_strata
        k = len(self.proxies)
        stratum = self.codes(rule)
        columns = [self.values[info.name] for info in self.proxies]
        centres = [float(column.mean()) for column in columns]

        def sums_of_slice(rows: slice) -> tuple[IntArray, FloatArray, FloatArray]:
            codes = stratum[rows].astype(np.intp, copy=False)
            centred = [column[rows] - centre for column, centre in zip(columns, centres, strict=True)]
            sums = np.zeros((n_strata, k))
            products = np.zeros((n_strata, k, k))
            for a, column in enumerate(centred):
                sums[:, a] = np.bincount(codes, column, minlength=n_strata)
                for b, other in enumerate(centred[: a + 1]):
                    products[:, a, b] = np.bincount(codes, column * other, minlength=n_strata)
            return np.bincount(codes, minlength=n_strata), sums, products

        counts = np.zeros(n_strata, np.int64)
        sums = np.zeros((n_strata, k))
        products = np.zeros((n_strata, k, k))
        for slice_counts, slice_sums, slice_products in map_slices(self.size, sums_of_slice, self.threads):
            counts = counts + slice_counts
            sums = sums + slice_sums
            products = products + slice_products
        summary = StratumSummary.from_centred_sums(counts, sums, products, np.array(centres))
        self._stored_summary = rule, summary
        return summary

    def _units_below_limits(
        self, rule: Rule, limits: KeyArray, counts: IntArray, seed: int
    ) -> tuple[IntArray, IntArray, KeyArray, IntArray]:
        """Return row numbers, strata and keys (m,) of units with keys up to the limits (H,) of their strata.

        The fourth array orders units with equal keys: the row numbers.
        """
        codes = self.codes(rule)
        rows, keys = self._select_units(seed, lambda rows, keys: keys <= limits[codes[rows]], limits.max())
        return rows, codes[rows].astype(np.int64), keys, rows

    def _drawn_units(
        self, rows: IntArray, seed: int, stratum: IntArray | None = None
    ) -> tuple[DrawnUnits, IntArray]:
        """Return the units of rows (n,) in the order in which annotators see them, and this order (n,)."""
        if stratum is None:
            stratum = np.zeros(len(rows), np.int64)
        if self.ids is None:
            ids = rows.astype(np.int64)
        else:
            ids = self.ids[rows]
        order = randomness.shown_order(ids, seed)
        rows = rows[order]
        drawn = DrawnUnits(
            ids=ids[order],
            stratum=stratum[order],
            proxies=as_matrix([self.values[info.name][rows] for info in self.proxies], len(rows)),
            groups=select_rows(self.groups, rows),
            shown=select_rows(self.shown, rows),
            features=select_rows(self.features, rows),
        )
        return drawn, order

    def _digest(self, seed: int) -> PopulationDigest:
        """Return the digest, from one pass over the rows."""
        digested = self._digested_columns
        # Numbers of levels are integers already, and need no exponent.
        columns = [*digested.numbers.values(), *((numbers, None) for numbers in digested.groups.values())]

        def digest_sums_of_slice(rows: slice) -> list[int]:
            keys = leading_bits(self._keys(rows, seed))
            sums = [int(keys.sum())]
            for values, exponent in columns:
                slice_values = values[rows]
                digits = [slice_values]
                if exponent is not None:
                    digits = list(array_digits(slice_values, exponent))
                sums += [int(np.dot(keys, digit)) for digit in digits]
            return sums

        # Python computes the digests of texts, so that threads would wait for each other.
        threads = self.threads if self._id_texts is None else 1
        sums_by_slice = map_slices(self.size, digest_sums_of_slice, threads)
        totals = [sum(column) for column in zip(*sums_by_slice, strict=True)]
        return digested.digest(self.size, totals[0], totals[1:])

    def _digest_columns(self) -> tuple[NumberColumns, dict[str, KeyArray]]:
        """Return the columns of numbers with their extents, and the numbers of levels (N,) of each group."""
        columns = {f"number:{name}": self._column(name) for name in (*self.proxy_names, *self.feature_names)}
        columns |= {
            f"second:{name}": values for name, values in self.second_moments.items() if values is not None
        }
        numbers = {
            name: (np.asarray(values, np.float64), (float(values.min()), float(values.max())))
            for name, values in columns.items()
        }
        levels_by_column = {name: self._levels(name) for name in self.groups}
        groups = {
            f"group:{name}": level_numbers(levels)[codes]
            for name, (levels, codes, _) in levels_by_column.items()
        }
        return numbers, groups

    def digest_of_draw(self, seed: int) -> Callable[[], PopulationDigest]:
        """Return the function that computes the digest, which most simulated draws do not need."""
        return partial(self.digest, seed)

    def _keys(self, rows: slice, seed: int) -> KeyArray:
        """Return the permanent random numbers of a slice; those of ids are stored, as hashing is slow."""
        if self._id_texts is None:
            return randomness.keys_of_rows(rows, seed)
        # A copy of the reference, because another thread may draw with another seed.
        stored = self._stored_keys
        if stored is None or stored[0] != seed:
            stored = self._stored_keys = seed, randomness.keys_of_ids(self._id_texts, seed)
        return stored[1][rows]

    # ---- selection for designs with unequal probabilities, an order or clusters

    def size_profile(self, size: SizeMeasure, count: int) -> SizeProfile:
        """Return the extent, the sum and the `count` largest values of a size measure."""
        return SizeProfile.of(self._size_measure_values(size), count)

    def units_below_size_limit(self, size: SizeMeasure, limit: float, seed: int) -> Candidates:
        """Return the units whose permanent random number u is below `limit` times their size."""
        sizes = self._size_measure_values(size)
        rows, keys = self._select_units(
            check_seed(seed), lambda rows, keys: uniforms(keys) < limit * sizes[rows]
        )
        drawn, order = self._drawn_units(rows, seed)
        return Candidates(drawn=drawn, uniform=uniforms(keys)[order], size=sizes[rows][order])

    def at_ranks(self, column: str, ranks: IntArray, seed: int) -> DrawnUnits:
        """Return the units at these ranks (n,), from 0, when sorted by a column; ties in random order."""
        _, keys = self._select_units(check_seed(seed), lambda rows, keys: np.ones(len(rows), bool))
        # Units with equal values are ordered by their keys, and those with equal keys by their ids.
        ties: tuple[AnyArray, ...]
        if self._id_texts is None:
            ties = (keys,)
        else:
            ties = (np.array(self._id_texts), keys)
        # `lexsort` sorts by its last array first.
        rows = np.lexsort((*ties, self._number_column(column)))[ranks]
        return self._drawn_units(rows, seed)[0]

    def units_of_levels(self, group: str, levels: tuple[str, ...], seed: int) -> DrawnUnits:
        """Return every unit of these levels of a group column."""
        rows = np.flatnonzero(np.isin(self.groups[self.require_group(group)], np.array(levels)))
        return self._drawn_units(rows, seed)[0]

    def units_with_ids(self, ids: Sequence[str]) -> DrawnUnits:
        """Return the units that have one of these ids (as text); ids without a unit are ignored."""
        if self._id_texts is None:
            numbers = (int(text) for text in ids if text.isdecimal() and text == str(int(text)))
            rows = np.unique(np.array([row for row in numbers if row < self.size], dtype=np.int64))
        else:
            rows = np.flatnonzero(np.isin(np.array(self._id_texts), np.array(list(ids), np.str_)))
        return self._drawn_units(rows, 0)[0]

    def _size_measure_values(self, size: SizeMeasure) -> FloatArray:
        """Return the size measure of each unit (N,)."""
        if size.formula is not None:
            columns = {name: self._number_column(name) for name in size.formula.columns}
            return size.evaluate(size.formula.evaluate(columns))
        if size.column is None:
            return np.ones(self.size)
        return size.evaluate(self._number_column(size.column), self.second_moments.get(size.column))

    def _number_column(self, name: str) -> FloatArray:
        """Return a proxy or a feature (N,); raise an error for categories."""
        if name in self.group_names and name not in (*self.proxy_names, *self.feature_names):
            raise InputError(f"column {name!r} contains categories", allowed="a proxy or a feature")
        return self._column(name)

    def batches(
        self, columns: tuple[str, ...], size: int = DEFAULT_BATCH_SIZE
    ) -> Iterator[dict[str, AnyArray]]:
        """Yield the named columns in row order."""
        arrays = {name: self._column(name) for name in columns if name != UNIT_ID}
        if UNIT_ID in columns:
            if self.ids is None:
                arrays[UNIT_ID] = np.arange(self.size)
            else:
                arrays[UNIT_ID] = self.ids
        for start in range(0, self.size, size):
            yield select_rows(arrays, slice(start, start + size))

    def _select_units(
        self,
        seed: int,
        test: Callable[[IntArray, KeyArray], BoolArray],
        max_key: np.uint64 = _MAX_KEY,
    ) -> tuple[IntArray, KeyArray]:
        """Return row numbers and keys (n,) of the units that pass a test.

        Parameters
        ----------
        seed : int
        test : callable
            `test(rows, keys)` returns whether each unit passes (m,), given row numbers and keys (m,).
        max_key : uint64
            Only units whose permanent random number is at most `max_key` are tested.
        """

        def select_from_slice(row_slice: slice) -> tuple[IntArray, KeyArray]:
            keys = self._keys(row_slice, seed)
            tested = np.flatnonzero(keys <= max_key)
            rows = tested + row_slice.start
            keys = keys[tested]
            passes = test(rows, keys)
            return rows[passes], keys[passes]

        # Python computes the digests of texts, so that threads would wait for each other.
        threads = self.threads if self._id_texts is None else 1
        rows, keys = zip(*map_slices(self.size, select_from_slice, threads), strict=True)
        return np.concatenate(rows), np.concatenate(keys)

    def _column(self, name: str) -> AnyArray:
        """Return a proxy, a feature or a group column (N,)."""
        columns = {**self.features, **self.groups, **self.values}
        if name not in columns:
            raise InputError(f"no such column: {name!r}", allowed=suggest_names(name, columns))
        return columns[name]


@dataclass(frozen=True, slots=True)
class ArrayCounter:
    """Counts the values of a proxy in an array, slice by slice; see `ProxyCounter`.

    Parameters
    ----------
    values : float (N,)
        Finite numbers.
    second_moments : float (N,), optional
    threads : int, optional
        As in `threads_to_use`.
    """

    values: FloatArray
    second_moments: FloatArray | None = None
    threads: int | None = None

    @property
    def steps(self) -> MomentSteps | None:
        """Conversion of second moments to integers; `None` without second moments."""
        second_moments = self.second_moments
        if second_moments is None:
            return None
        return MomentSteps.over(float(second_moments.min()), float(second_moments.max()))

    def extent(self, span: Span) -> Extent:
        """Return the smallest and largest proxy, and the number of units, within the span."""
        values = self.values[_span_index(self.values, span)]
        if len(values) == 0:
            return Extent(math.nan, math.nan, 0)
        return Extent(float(values.min()), float(values.max()), len(values))

    def distinct(self) -> Bins:
        """Return a bin for each distinct value."""
        # The sum turns −0.0 into 0.0, because they are the same value.
        values, inverse, counts = np.unique(self.values + 0.0, return_inverse=True, return_counts=True)
        second_moments = None
        steps = self.steps
        if self.second_moments is not None and steps is not None:
            sums = np.zeros(len(values), np.int64)
            np.add.at(sums, inverse, steps.numbers(self.second_moments))
            second_moments = steps.means(sums, counts)
        return Bins(values, values, counts, second_moments, True)

    def histogram(self, grid: Grid, span: Span) -> Histogram:
        """Return the histogram of the proxies within the span."""
        counts = np.zeros(BIN_COUNT, np.int64)
        offsets = np.zeros(BIN_COUNT, np.int64)
        if self.second_moments is None:
            second_moments = None
        else:
            second_moments = np.zeros(BIN_COUNT, np.int64)
        work = partial(self._count_slice, grid, span, self.steps)
        for sums, moments in map_slices(len(self.values), work, self.threads):
            counts += sums >> _COUNT_SHIFT
            offsets += sums & ((1 << _COUNT_SHIFT) - 1)
            if second_moments is not None and moments is not None:
                second_moments += moments
        return Histogram(counts, offsets, second_moments, self._single_values(grid, span))

    def _count_slice(
        self,
        grid: Grid,
        span: Span,
        steps: MomentSteps | None,
        rows: slice,
    ) -> tuple[IntArray, IntArray | None]:
        """Return the sums of a slice per bin.

        Returns
        -------
        sums : int (BIN_COUNT,)
            Counts, from bit `_COUNT_SHIFT` on, and sums of offsets, in the lower bits.
        moments : int (BIN_COUNT,), optional
            Sums of the second moments as integers.
        """
        inside = _span_index(self.values[rows], span)
        positions = grid.positions(self.values[rows][inside])
        bins = positions >> OFFSET_BITS
        positions &= OFFSET_COUNT - 1
        positions += 1 << _COUNT_SHIFT
        sums = np.bincount(bins, positions, minlength=BIN_COUNT).astype(np.int64)
        if steps is None or self.second_moments is None:
            return sums, None
        moments = steps.numbers(self.second_moments[rows][inside])
        return sums, np.bincount(bins, moments, minlength=BIN_COUNT).astype(np.int64)

    def _single_values(self, grid: Grid, span: Span) -> FloatArray | None:
        """Return the value of each bin, NaN if it is empty; `None` if a bin has two distinct values."""
        single_values = np.full(BIN_COUNT, np.nan)
        for start in (0, *range(_CHECKED_ROWS, len(self.values), BATCH_UNITS)):
            values = self.values[start : start + BATCH_UNITS if start else _CHECKED_ROWS]
            values = values[_span_index(values, span)]
            bins = grid.positions(values) >> OFFSET_BITS
            is_empty = np.isnan(single_values[bins])
            single_values[bins[is_empty]] = values[is_empty]
            if not np.array_equal(single_values[bins], values):
                return None
        return single_values

    def select_rows(self, rows: IntArray) -> ArrayCounter:
        """Return the counter of the units at these row numbers."""
        second_moments = self.second_moments
        return ArrayCounter(
            self.values[rows], None if second_moments is None else second_moments[rows], self.threads
        )


def _span_index(values: FloatArray, span: Span) -> Any:
    """Return the index of the values (n,) within a span: a mask, or a slice of all for an unlimited span."""
    if span == Span():
        return slice(None)
    return (values >= span.at_least) & (values < span.below)


def count_levels(names: tuple[str, ...], level: IntArray, counter: ArrayCounter) -> LevelBins:
    """Return the distinct values within each level, given the number of each unit's level (N,)."""
    # The sum turns −0.0 into 0.0, because they are the same value.
    values = counter.values + 0.0
    order = np.lexsort((values, level))
    level_limits = np.searchsorted(level[order], np.arange(len(names) + 1))
    counters = _counters_of_large_levels(counter, order, level_limits)
    # The counter of a large level counts its values later.
    is_counted_here = np.ones(len(values), bool)
    for number in counters:
        is_counted_here[level_limits[number] : level_limits[number + 1]] = False
    order = order[is_counted_here]
    values = values[order]
    level = level[order]
    starts = np.flatnonzero(np.append(True, (np.diff(level) > 0) | (np.diff(values) > 0))[: len(order)])
    counts = np.diff(np.append(starts, len(order)))
    means = None
    if counter.second_moments is not None and len(order):
        means = _mean_moments_of_bins(counter.second_moments[order], level, len(names), starts, counts)
    return LevelBins(
        names=names,
        level=level[starts],
        values=values[starts],
        counts=counts,
        second_moments=means,
        counters=counters,
    )


def _counters_of_large_levels(
    counter: ArrayCounter, order: IntArray, level_limits: IntArray
) -> dict[int, ArrayCounter]:
    """Return the counters of the levels with too many distinct values for one bin per value, by number.

    `order` (N,) sorts the units by level. Level l has the positions from `level_limits[l]` up to
    `level_limits[l + 1]` in this order.
    """
    counters = {}
    for number in np.flatnonzero(np.diff(level_limits) > EXACT_LIMIT).tolist():
        rows = order[level_limits[number] : level_limits[number + 1]]
        counter_of_level = counter.select_rows(np.sort(rows))
        if not has_distinct_value_bins(counter_of_level.extent(Span())):
            counters[number] = counter_of_level
    return counters


def _mean_moments_of_bins(
    second_moments: FloatArray, level: IntArray, n_levels: int, starts: IntArray, counts: IntArray
) -> FloatArray:
    """Return the mean second moment of each bin (B,).

    Parameters
    ----------
    second_moments, level : (n,)
        Second moment, and number of the level, of each unit in the order of the bins.
    n_levels : int
    starts, counts : int (B,)
        Position of the first unit of each bin, and number of units.
    """
    low = np.full(n_levels, np.inf)
    high = np.full(n_levels, -np.inf)
    np.minimum.at(low, level, second_moments)
    np.maximum.at(high, level, second_moments)
    steps = MomentSteps.over(low, high)
    sums = np.add.reduceat(steps[level].numbers(second_moments), starts)
    return steps[level[starts]].means(sums, counts)
