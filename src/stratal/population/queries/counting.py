"""Group-bys that answer what `population.distribution` asks: the integers that arrays give, in any order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ibis
import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.population.distribution import (
    BIN_COUNT,
    EXACT_LIMIT,
    OFFSET_COUNT,
    Distinct,
    Extent,
    Grid,
    Histogram,
    LevelBins,
    Span,
    Steps,
    wants_distinct,
)
from stratal.tables.engine import double, small_table

_OFFSET_BITS = OFFSET_COUNT.bit_length() - 1

Run = Callable[[Any], Any]


@dataclass(frozen=True)
class TableCounter:
    """Counts the proxies of a table by group-bys.

    Parameters
    ----------
    run : callable
        Runs an Ibis expression and returns a PyArrow table.
    table : Ibis table
    value : str
        Column of proxies, doubles.
    second : str, optional
        Column of second moments.
    whole : Extent, optional
        Of all proxies, where known already.
    second_extent : (float, float), optional
        Of all second moments, where known already.
    first : mapping of column to array, optional
        The histogram over all, where one query found it for many tables.

    Examples
    --------
    >>> import ibis, pyarrow as pa
    >>> from stratal.population.distribution import build_distribution
    >>> table = ibis.memtable(pa.table({"x": [0.9, 0.5, 0.9]}))
    >>> build_distribution(TableCounter(lambda query: query.to_pyarrow(), table, "x")).values
    array([0.5, 0.9])
    """

    run: Run
    table: Any
    value: str
    second: str | None = None
    whole: Extent | None = None
    second_extent: tuple[float, float] | None = None
    first: Mapping[str, Any] | None = None

    def extent(self, span: Span) -> Extent:
        """Return smallest and largest proxy and count within the span."""
        if span == Span() and self.whole is not None:
            return self.whole
        inside = self._inside(span)
        values = inside[self.value]
        found = self.run(inside.aggregate(low=values.min(), high=values.max(), n=values.count())).to_pylist()[
            0
        ]
        if not found["n"]:
            return Extent(math.nan, math.nan, 0)
        return Extent(float(found["low"]), float(found["high"]), int(found["n"]))

    def second_moment_extent(self) -> tuple[float, float] | None:
        """Return smallest and largest second moment, or `None`."""
        if self.second is None or self.second_extent is not None:
            return self.second_extent
        moments = self.table[self.second]
        found = self.run(self.table.aggregate(low=moments.min(), high=moments.max())).to_pylist()[0]
        return float(found["low"]), float(found["high"])

    def distinct(self, steps: Steps | None) -> Distinct:
        """Return all distinct values with counts."""
        moments = self._moments(self.table, steps)
        found = columns_of(self.run(_distinct_rows(self.table, self.table[self.value], moments)))
        order = np.argsort(found["value"])
        second = found["second"][order].astype(np.int64) if "second" in found else None
        return Distinct(found["value"][order], found["n"][order].astype(np.int64), second)

    def histogram(self, grid: Grid, span: Span, steps: Steps | None) -> Histogram:
        """Return the histogram of the proxies within the span."""
        if self.first is not None and span == Span():
            return _histogram(self.first)
        inside = self._inside(span)
        moments, ends = self._moments(inside, steps), (double(grid.low), double(grid.scale))
        return _histogram(columns_of(self.run(_histogram_rows(inside, inside[self.value], *ends, moments))))

    def _moments(self, table: Any, steps: Steps | None) -> Any:
        """Return the steps of the second moments as an Ibis expression, None where they are not wanted."""
        if steps is None or self.second is None:
            return None
        return in_steps(table[self.second], double(float(steps.low)), double(float(steps.scale)))

    def _inside(self, span: Span) -> Any:
        table = self.table
        if math.isfinite(span.at_least):
            table = table.filter(table[self.value] >= double(span.at_least))
        if math.isfinite(span.below):
            table = table.filter(table[self.value] < double(span.below))
        return table


def in_steps(moments: Any, low: Any, scale: Any) -> Any:
    """Return floor((m − low) · scale) as an Ibis expression; see `stratal.population.distribution.Steps`."""
    return ((moments - low) * scale).floor().cast("int64")


def columns_of(table: Any) -> dict[str, Any]:
    """Return the columns of a small PyArrow table as NumPy arrays by name."""
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _distinct_rows(table: Any, values: Any, moments: Any, *keys: str) -> Any:
    """Return the group-by of distinct values: counts, and sums of the second moments in steps."""
    measures = {"n": table.count()}
    if moments is not None:
        measures["second"] = moments.sum().cast("int64")
    return table.group_by(**{key: table[key] for key in keys}, value=values + double(0.0)).aggregate(
        **measures
    )


def _histogram_rows(table: Any, values: Any, low: Any, scale: Any, moments: Any, *keys: str) -> Any:
    """Return the group-by of bins: counts, integer sums, and the smallest and largest value of each."""
    position = ((values - low) * scale).floor().cast("int64")
    last = ibis.literal(BIN_COUNT * OFFSET_COUNT - 1, "int64")
    columns = {"position": ibis.least(position, last), "value": values} | {key: table[key] for key in keys}
    placed = table.select(**columns, **({} if moments is None else {"moment": moments}))
    placed = placed.mutate(bin=placed.position >> _OFFSET_BITS)
    measures = {
        "n": placed.count(),
        "offsets": (placed.position & (OFFSET_COUNT - 1)).sum().cast("int64"),
        "low": placed.value.min(),
        "high": placed.value.max(),
    }
    if moments is not None:
        measures["second"] = placed.moment.sum().cast("int64")
    return placed.group_by([*keys, "bin"]).aggregate(**measures)


def _histogram(found: Mapping[str, Any]) -> Histogram:
    bins = found["bin"].astype(np.int64)

    def spread(name: str) -> IntArray:
        full = np.zeros(BIN_COUNT, np.int64)
        full[bins] = found[name].astype(np.int64)
        return full

    atoms: FloatArray | None = None
    if np.array_equal(found["low"], found["high"]):
        atoms = np.full(BIN_COUNT, np.nan)
        atoms[bins] = found["low"]
    second = spread("second") if "second" in found else None
    return Histogram(spread("n"), spread("offsets"), second, atoms)


# ---- all levels of a category at once


def level_bins(
    run: Run, backend: Any, table: Any, level: str, value: str, second: str | None = None
) -> LevelBins:
    """Return the distinct values within each level of a category, from two or three queries in all.

    Parameters
    ----------
    run : callable
        Runs an Ibis expression and returns a PyArrow table.
    backend : Ibis backend
        What runs it.
    table : Ibis table
    level, value : str
        Columns of categories and of proxies.
    second : str, optional
        Column of second moments.

    Examples
    --------
    >>> import ibis, pyarrow as pa
    >>> from stratal.tables.engine import connect
    >>> table = ibis.memtable(pa.table({"g": ["b", "a", "b"], "x": [0.1, 0.2, 0.3]}))
    >>> level_bins(lambda query: query.to_pyarrow(), connect(), table, "g", "x").names
    ('a', 'b')
    """
    levels = _level_facts(run, table, level, value, second)
    joined = _with_parameters(backend, table, level, levels)
    few = joined.filter(joined.few)
    found = columns_of(run(_distinct_rows(few, few[value], _moments(few, second), "level_number")))
    order = np.lexsort((found["value"], found["level_number"]))
    numbers, counts = found["level_number"][order], found["n"][order].astype(np.int64)
    means = None
    if levels.steps is not None:
        means = levels.steps[numbers].means(found["second"][order].astype(np.int64), counts)
    return LevelBins(
        names=levels.names,
        level=numbers,
        values=found["value"][order],
        counts=counts,
        second=means,
        large=_large_levels(joined, levels, TableCounter(run, table, value, second), level),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    """Extents of the proxies and of their second moments within L levels, in the order of their names."""

    names: tuple[str, ...]
    low: FloatArray
    high: FloatArray
    counts: IntArray
    second_low: FloatArray | None
    second_high: FloatArray | None

    @property
    def steps(self) -> Steps | None:
        if self.second_low is None or self.second_high is None:
            return None
        return Steps.of_levels(self.second_low, self.second_high)

    @property
    def few(self) -> BoolArray:
        """Which levels are told apart value by value (L,)."""
        few = self.counts <= EXACT_LIMIT
        for number in np.flatnonzero(~few).tolist():
            few[number] = wants_distinct(self.extent(number))
        return few

    def extent(self, number: int) -> Extent:
        return Extent(float(self.low[number]), float(self.high[number]), int(self.counts[number]))


def _level_facts(run: Run, table: Any, level: str, value: str, second: str | None) -> _Levels:
    measures = {"n": table.count(), "low": table[value].min(), "high": table[value].max()}
    if second is not None:
        measures |= {"second_low": table[second].min(), "second_high": table[second].max()}
    answer = run(table.group_by(level=table[level]).aggregate(**measures))
    names = answer.column("level").to_pylist()
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    found = {name: array[order] for name, array in columns_of(answer.drop_columns("level")).items()}
    return _Levels(
        names=tuple(sorted(names)),
        low=found["low"],
        high=found["high"],
        counts=found["n"].astype(np.int64),
        second_low=found.get("second_low"),
        second_high=found.get("second_high"),
    )


def _with_parameters(backend: Any, table: Any, level: str, levels: _Levels) -> Any:
    """Return the table with each unit's level number, and the grid and steps of that level."""
    few, grid_scale = levels.few, np.zeros(len(levels.names))
    for number in np.flatnonzero(~few).tolist():
        grid_scale[number] = Grid.over(levels.low[number], levels.high[number]).scale
    steps = levels.steps or Steps(np.zeros(len(few)), np.zeros(len(few)))
    known = small_table(
        {
            "level_name": np.array(levels.names, dtype=object),
            "level_number": np.arange(len(few)),
            "few": few,
            "grid_low": levels.low,
            "grid_scale": grid_scale,
            "step_low": np.asarray(steps.low),
            "step_scale": np.asarray(steps.scale),
        },
        backend,
    )
    return table.join(known, table[level] == known.level_name)


def _large_levels(joined: Any, levels: _Levels, whole: TableCounter, level: str) -> dict[int, TableCounter]:
    """Return the counters of the levels that are binned, from one query for all of them."""
    numbers = np.flatnonzero(~levels.few)
    if not len(numbers):
        return {}
    many = joined.filter(~joined.few)
    grid = many.grid_low, many.grid_scale, _moments(many, whole.second)
    found = columns_of(whole.run(_histogram_rows(many, many[whole.value], *grid, "level_number")))
    counters = {}
    for number in numbers.tolist():
        rows = found["level_number"] == number
        moments = None
        if levels.second_low is not None and levels.second_high is not None:
            moments = float(levels.second_low[number]), float(levels.second_high[number])
        counters[number] = replace(
            whole,
            table=whole.table.filter(whole.table[level] == levels.names[number]),
            whole=levels.extent(number),
            second_extent=moments,
            first={name: values[rows] for name, values in found.items()},
        )
    return counters


def _moments(table: Any, second: str | None) -> Any:
    return None if second is None else in_steps(table[second], table.step_low, table.step_scale)
