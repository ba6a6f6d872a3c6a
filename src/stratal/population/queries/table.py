"""A population that stays a table: every question is a query, run where the rows are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from operator import add, and_

import ibis
import numpy as np
import pyarrow as pa

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray
from stratal.errors import InputError
from stratal.population import distribution as pictures
from stratal.population import rules
from stratal.population import summary as summaries
from stratal.population.declaration import OWN_STRATUM_GROUP, Declaration, label_outcome
from stratal.population.digest import KEY_BITS, Digested, PopulationDigest, digits
from stratal.population.expressions import Expression, OnArrays
from stratal.population.in_memory import object_column
from stratal.population.population import UNIT_ID, Columns, Population
from stratal.population.predictions import with_predictions
from stratal.population.queries.units import Units, checked, units_of
from stratal.population.rules import CELL, INFLUENCE, Rule
from stratal.population.summary import Candidates, Drawn, ProxyInfo, Size, SizeProfile, StratumSummary
from stratal.protocols import Foreign
from stratal.randomness import KEY_DIGITS, KeyArray, check_seed, keys_of_ids, shown_order, uniforms
from stratal.tables.engine import (
    ANALYTIC_ENGINES,
    byte_order_key,
    double,
    key_bits,
    literal_table,
    md5_digest,
)
from stratal.tables.source import Source

# A position is a bin and, in its lowest bits, the offset within the bin.
_OFFSET_BITS = pictures.OFFSET_COUNT.bit_length() - 1

Run = Callable[[Foreign], Foreign]


@dataclass(frozen=True)
class TableCounter:
    """Counts the proxies of a table by group-bys.

    Parameters
    ----------
    run : callable
        Runs an Ibis expression and returns a PyArrow table.
    table : Ibis table
    total_extent : Extent
        Of all proxies.
    value : str
        Column of proxies, doubles.
    second : str, optional
        Column of second moments.
    steps : Steps, optional
        How these are turned into integers.
    first : mapping of column to array, optional
        The histogram over all, where one query found it for many tables.
    """

    run: Run
    table: Foreign
    total_extent: pictures.Extent
    value: str
    second: str | None = None
    steps: pictures.Steps | None = None
    first: Mapping[str, Foreign] | None = None

    def extent(self, span: pictures.Span) -> pictures.Extent:
        """Return smallest and largest proxy and count within the span."""
        if span == pictures.Span():
            return self.total_extent
        inside = self._inside(span)
        low = inside[self.value].min()
        high = inside[self.value].max()
        range_row = self.run(inside.aggregate(low=low, high=high, n=inside.count())).to_pylist()[0]
        if not range_row["n"]:
            return pictures.Extent(math.nan, math.nan, 0)
        return pictures.Extent(float(range_row["low"]), float(range_row["high"]), int(range_row["n"]))

    def distinct(self) -> pictures.Bins:
        """Return a bin for each distinct value."""
        columns = columns_of(
            self.run(_distinct_rows(self.table, self.table[self.value], self._moments(self.table)))
        )
        columns = {name: column[np.argsort(columns["value"])] for name, column in columns.items()}
        counts = columns["n"].astype(np.int64)
        second = None
        if self.steps is not None:
            second = self.steps.means(columns["second"].astype(np.int64), counts)
        return pictures.Bins(columns["value"], columns["value"], counts, second, True)

    def histogram(self, grid: pictures.Grid, span: pictures.Span) -> pictures.Histogram:
        """Return the histogram of the proxies within the span."""
        if self.first is not None and span == pictures.Span():
            return _histogram(self.first)
        inside = self._inside(span)
        moments = self._moments(inside)
        ends = (double(grid.low), double(grid.scale))
        return _histogram(columns_of(self.run(_histogram_rows(inside, inside[self.value], *ends, moments))))

    def _moments(self, table: Foreign) -> Foreign:
        """Return the steps of the second moments as an Ibis expression, None where there are none."""
        if self.steps is None:
            return None
        return steps_expression(
            table[self.second], double(float(self.steps.low)), double(float(self.steps.scale))
        )

    def _inside(self, span: pictures.Span) -> Foreign:
        table = self.table
        if math.isfinite(span.at_least):
            table = table.filter(table[self.value] >= double(span.at_least))
        if math.isfinite(span.below):
            table = table.filter(table[self.value] < double(span.below))
        return table


def steps_expression(moments: Foreign, low: Foreign, scale: Foreign) -> Foreign:
    """Return floor((m − low) · scale) as an Ibis expression; see `stratal.population.distribution.Steps`."""
    return ((moments - low) * scale).floor().cast("int64")


def columns_of(table: Foreign) -> dict[str, Foreign]:
    """Return the columns of a small PyArrow table as NumPy arrays by name."""
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _distinct_rows(table: Foreign, values: Foreign, moments: Foreign, *keys: str) -> Foreign:
    """Return the group-by of distinct values: counts, and sums of the second moments in steps."""
    measures = {"n": table.count()}
    if moments is not None:
        measures["second"] = moments.sum().cast("int64")
    return table.group_by(**{key: table[key] for key in keys}, value=values + double(0.0)).aggregate(
        **measures
    )


def _histogram_rows(
    table: Foreign, values: Foreign, low: Foreign, scale: Foreign, moments: Foreign, *keys: str
) -> Foreign:
    """Return the group-by of bins: counts, integer sums, and the smallest and largest value of each."""
    position = ((values - low) * scale).floor().cast("int64")
    last = ibis.literal(pictures.BIN_COUNT * pictures.OFFSET_COUNT - 1, "int64")
    columns = {"position": ibis.least(position, last), "value": values} | {key: table[key] for key in keys}
    placed = table.select(**columns, **({} if moments is None else {"moment": moments}))
    placed = placed.mutate(bin=placed.position >> _OFFSET_BITS)
    measures = {
        "n": placed.count(),
        "offsets": (placed.position & (pictures.OFFSET_COUNT - 1)).sum().cast("int64"),
        "low": placed.value.min(),
        "high": placed.value.max(),
    }
    if moments is not None:
        measures["second"] = placed.moment.sum().cast("int64")
    return placed.group_by([*keys, "bin"]).aggregate(**measures)


def _histogram(columns: Mapping[str, Foreign]) -> pictures.Histogram:
    bins = columns["bin"].astype(np.int64)

    def spread(name: str) -> IntArray:
        full = np.zeros(pictures.BIN_COUNT, np.int64)
        full[bins] = columns[name].astype(np.int64)
        return full

    atoms: FloatArray | None = None
    if np.array_equal(columns["low"], columns["high"]):
        atoms = np.full(pictures.BIN_COUNT, np.nan)
        atoms[bins] = columns["low"]
    second = spread("second") if "second" in columns else None
    return pictures.Histogram(spread("n"), spread("offsets"), second, atoms)


# ---- all levels of a category at once


def _facts_of_levels(
    run: Run, table: Foreign, level: str, value: str, second: str | None
) -> tuple[list[str], dict[str, AnyArray]]:
    """Return the sorted levels (L,), and their counts and ends of proxies and second moments, each (L,)."""
    measures = {"n": table.count(), "low": table[value].min(), "high": table[value].max()}
    if second is not None:
        measures |= {"second_low": table[second].min(), "second_high": table[second].max()}
    answer = run(table.group_by(level=table[level]).aggregate(**measures))
    names = answer.column("level").to_pylist()
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    facts = {name: array[order] for name, array in columns_of(answer.drop_columns("level")).items()}
    return sorted(names), facts


def _grid_scales(extents: Sequence[pictures.Extent], few: BoolArray) -> FloatArray:
    """Return the scale (L,) of the grid of each level; 0 where its few distinct values are counted."""
    return np.array(
        [
            0.0 if is_exact else pictures.Grid.over(extent.low, extent.high).scale
            for extent, is_exact in zip(extents, few, strict=True)
        ]
    )


def level_bins(
    run: Run, backend: Foreign, table: Foreign, level: str, value: str, second: str | None = None
) -> pictures.LevelBins:
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
    """
    names, facts = _facts_of_levels(run, table, level, value, second)
    extents = list(map(pictures.Extent, *(facts[name].tolist() for name in ("low", "high", "n"))))
    few = np.fromiter(map(pictures.wants_distinct, extents), bool, len(names))
    parameters = {
        "level_name": np.array(names, dtype=object),
        "level_number": np.arange(len(names)),
        "few": few,
        "grid_low": facts["low"],
        "grid_scale": _grid_scales(extents, few),
    }
    steps = None
    if second is not None:
        steps = pictures.Steps.over(facts["second_low"], facts["second_high"])
        parameters |= {"step_low": np.asarray(steps.low), "step_scale": np.asarray(steps.scale)}
    parameter_table = literal_table(parameters, backend)
    joined = table.join(parameter_table, table[level] == parameter_table.level_name)

    def moments(rows: Foreign) -> Foreign:
        if second is None:
            return None
        return steps_expression(rows[second], rows.step_low, rows.step_scale)

    rows = joined.filter(joined.few)
    distinct = columns_of(run(_distinct_rows(rows, rows[value], moments(rows), "level_number")))
    order = np.lexsort((distinct["value"], distinct["level_number"]))
    distinct = {name: column[order] for name, column in distinct.items()}
    counts = distinct["n"].astype(np.int64)
    means = None
    if steps is not None:
        means = steps[distinct["level_number"]].means(distinct["second"].astype(np.int64), counts)
    large: dict[int, TableCounter] = {}
    if not np.all(few):  # one query for all of them
        rows = joined.filter(~joined.few)
        binned = _histogram_rows(
            rows, rows[value], rows.grid_low, rows.grid_scale, moments(rows), "level_number"
        )
        bins = columns_of(run(binned))
        for number in np.flatnonzero(~few).tolist():
            in_level = bins["level_number"] == number
            large[number] = TableCounter(
                run,
                table.filter(table[level] == names[number]),
                extents[number],
                value,
                second,
                None if steps is None else steps[number],
                {name: column[in_level] for name, column in bins.items()},
            )
    return pictures.LevelBins(
        names=tuple(names),
        level=distinct["level_number"],
        values=distinct["value"],
        counts=counts,
        second_moments=means,
        large=large,
    )


# ---- formulas and rules as queries


class TableColumns(OnArrays):
    """The columns of a table's units, for formulas.

    Parameters
    ----------
    units : Units
    table : Ibis table
        `units.table`, or made of it by adding columns.
    """

    def __init__(self, units: Units, table: Foreign) -> None:
        self._units = units
        self._table = table

    def number(self, name: str) -> Foreign:
        """Return a numeric column."""
        return self._table[self._units.internal(name, self._units.numbers)]

    def by_level(
        self, name: str, levels: tuple[str, ...], values: tuple[float, ...], otherwise: float
    ) -> Foreign:
        """Return the number of each unit's level of a group column."""
        column = self._table[self._units.internal(name, self._units.categories)]
        branches = [(column == level, double(value)) for level, value in zip(levels, values, strict=True)]
        return ibis.cases(*branches, else_=double(otherwise))

    def same(self, names: tuple[str, ...]) -> Foreign:
        """Return 1 where group columns all agree, else 0."""
        first, *others = (self._table[self._units.internal(name, self._units.categories)] for name in names)
        return ibis.ifelse(reduce(and_, (first == other for other in others)), double(1.0), double(0.0))

    def apply(self, function: str, value: Foreign) -> Foreign:
        """Return a function of a value, such as `floor`."""
        return getattr(value, function)()

    def constant(self, value: float) -> Foreign:
        """Return one number for every unit."""
        return double(value)

    def at_least(self, value: object, least: float) -> Foreign:
        """Return the larger of a value and a constant."""
        return ibis.greatest(value, double(least))

    def below(self, value: object, limit: float) -> Foreign:
        """Return 1 where a value is below a constant, else 0."""
        return ibis.ifelse(value < double(limit), double(1.0), double(0.0))


def with_codes(rule: Rule, units: Units, table: Foreign, out: str = "code") -> Foreign:
    """Return `table` with a column `out` of stratum codes.

    Parameters
    ----------
    rule : Rule
    units : Units
        Knows the columns by the user's names.
    table : Ibis table
        `units.table`, or made of it by adding columns.
    out : str
        Name of the new column.

    Raises
    ------
    InputError
        For a rule that no query is known for.
    """
    match rule:
        case rules.Everything():
            return table.mutate(**{out: ibis.literal(0, "int64")})
        case rules.CutPoints():
            column = table[units.internal(rule.column, units.numbers)]
            code = _halving(column, rule.cuts.tolist(), 0, len(rule.cuts))
            return table.mutate(**{out: code.cast("int64")})
        case rules.Categories():
            level = units.internal(rule.column, units.categories)
            level_name = f"{out}_level"
            code_table = literal_table(
                {level_name: np.array(rule.levels, dtype=object), out: rule.codes}, units.backend
            )
            return table.left_join(code_table, table[level] == code_table[level_name]).drop(level_name)
        case rules.Derived():
            return _codes_of_formulas(rule, units, table, out)
        case rules.Crossed() if rule.cuts is not None:
            return _cuts_by_level(rule, *rule.cuts, units, table, out)
        case rules.Crossed():
            group = f"{out}_group"
            coded = with_codes(rule.categories, units, table, group)
            branches = []
            for number, (inner, offset) in enumerate(zip(rule.inner, rule.offsets.tolist(), strict=True)):
                coded = with_codes(inner, units, coded, f"{out}_{number}")
                branches.append((coded[group] == number, coded[f"{out}_{number}"] + offset))
            added = [group, *(f"{out}_{number}" for number in range(len(branches)))]
            return coded.mutate(**{out: ibis.cases(*branches).cast("int64")}).drop(*added)
        case rules.NearestCentre():
            return _nearest(rule, units, table, out)
    raise InputError(
        f"a table cannot be stratified by a rule of kind {rule.kind!r}",
        action="Load the population into memory: Population.from_arrays.",
    )


def _halving(column: object, cuts: list[float], first: int, last: int) -> Foreign:
    """Return nested choices, so that a value meets log₂ H cut points and not H."""
    if first == last:
        return ibis.literal(first, "int32")
    middle = (first + last) // 2
    below = _halving(column, cuts, first, middle)
    return ibis.ifelse(column < double(cuts[middle]), below, _halving(column, cuts, middle + 1, last))


def _codes_of_formulas(rule: rules.Derived, units: Units, table: Foreign, out: str) -> Foreign:
    columns = TableColumns(units, table)
    influence = f"{out}_{INFLUENCE}"
    cell = f"{out}_{CELL}"
    *names, last = (ibis.literal(name) for name in rule.cells.names)
    tests = [(test.on(columns) > 0.5, name) for test, name in zip(rule.cells.tests, names, strict=True)]
    cells = ibis.cases(*tests, else_=last) if tests else last
    computed = table.mutate(**{influence: rule.influence.on(columns), cell: cells})
    numbers = {**units.numbers, INFLUENCE: influence}
    categories = {**units.categories, CELL: cell}
    computed_units = replace(units, numbers=numbers, categories=categories)
    return with_codes(rule.inner, computed_units, computed, out).drop(influence, cell)


def _cuts_by_level(
    rule: rules.Crossed, column: str, cuts: list[FloatArray], units: Units, table: Foreign, out: str
) -> Foreign:
    """Return the codes by a join with the intervals of every level, however many levels there are."""
    levels = []
    lows = []
    highs = []
    codes = []
    offsets = rule.offsets.tolist()
    for level, group in zip(rule.categories.levels, rule.categories.codes.tolist(), strict=True):
        edges = [-np.inf, *cuts[group].tolist(), np.inf]
        levels += [level] * (len(edges) - 1)
        lows += edges[:-1]
        highs += edges[1:]
        codes += [offsets[group] + number for number in range(len(edges) - 1)]
    names = [f"{out}_level", f"{out}_low", f"{out}_high"]
    arrays = [np.array(levels, dtype=object), np.array(lows), np.array(highs)]
    intervals = {**dict(zip(names, arrays, strict=True)), out: np.array(codes, np.int64)}
    interval_table = literal_table(intervals, units.backend)
    value = table[units.internal(column, units.numbers)]
    level_column = table[units.internal(rule.categories.column, units.categories)]
    conditions = [
        level_column == interval_table[names[0]],
        value >= interval_table[names[1]],
        value < interval_table[names[2]],
    ]
    return table.left_join(interval_table, conditions).drop(*names)


def _nearest(rule: rules.NearestCentre, units: Units, table: Foreign, out: str) -> Foreign:
    grid, (doubled, squares) = rule.grid, rule.whole_centres
    coordinates = []
    for name, origin, step in zip(rule.names, grid.origin, grid.step, strict=True):
        places = (table[units.internal(name, units.numbers)] - double(origin)) / double(step) + double(0.5)
        within = places.clip(double(-grid.most), double(grid.most))
        coordinates.append(within.floor().cast("float64"))
    scores = {}
    for k, (weights, square) in enumerate(zip(doubled, squares, strict=True)):
        products = [value * double(weight) for value, weight in zip(coordinates, weights, strict=True)]
        scores[f"{out}_score{k}"] = reduce(add, products) - double(square)
    scored = table.mutate(**scores)
    if len(scores) > 1:
        best = ibis.greatest(*(scored[name] for name in scores))
    else:
        best = scored[f"{out}_score0"]
    branches = [(scored[name] == best, k) for k, name in enumerate(scores)]
    return scored.mutate(**{out: ibis.cases(*branches).cast("int64")}).drop(*scores)


# ---- the population


# Sizes are counted by powers of two below the largest.
_OCTAVES = 24

# Keys are unsigned integers of 64 bits.
_HIGHEST_KEY = 2**64 - 1

# Products of 64 bits are added up by halves, whose sums do not overflow.
_HALF = 32
_REST_OF_DIGEST = "f" * (32 - KEY_DIGITS)

# Keys up to this are those of one unit in 64: as many rows come back with the sums.
_FEW = 2**58


@dataclass(kw_only=True, eq=False, repr=False)
class TablePopulation(Population):
    """N units as the rows of a table; made by `Population.read` and `Population.from_table`.

    Parameters
    ----------
    units : Units
    source : Source
        Where the rows are.
    extents : mapping of column to (float, float)
        Smallest and largest value of each number.
    """

    units: Units
    source: Source
    extents: Mapping[str, tuple[float, float]]
    _summaries: list[tuple[Rule, StratumSummary]] = field(init=False, default_factory=list)

    # ---- what it answers

    def _counter(self, info: ProxyInfo) -> TableCounter:
        """Return what asks one group-by, or two where it has to look closer."""
        units = self.units
        second = info.second_moment
        extent = pictures.Extent(*self.extents[info.name], self.size)
        names = (info.name, second)
        value, moments = (name and units.numbers[name] for name in names)
        if second:
            steps = pictures.Steps.over(*self.extents[second])
        else:
            steps = None
        return TableCounter(self.source.run, units.table, extent, str(value), moments, steps)

    def extent(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest value of a proxy."""
        return self.extents[name]

    def _renumbered(self, base: int) -> TablePopulation:
        """Return the population with row numbers that count from `base`."""
        assert self.row_base is not None
        key = self.units.table.unit_key + (base - self.row_base)
        table = self.units.table.mutate(unit_key=key, unit_id=key.cast("string"))
        return replace(self, units=replace(self.units, table=table), row_base=base)

    def _level_bins(self, by: str, info: ProxyInfo) -> pictures.LevelBins:
        """Return what two or three queries count of all levels."""
        units = self.units
        second = info.second_moment
        names = units.categories[by], units.numbers[info.name], second and units.numbers[second]
        return level_bins(self.source.run, self.source.backend, units.table, *names)

    def levels(self, group: str) -> dict[str, int]:
        """Return the number of units in each level of a group column."""
        table = self.units.table
        level = table[self.units.categories[self.require_group(group)]]
        answer = self.source.run(table.group_by(level=level).aggregate(n=table.count()))
        _texts(answer.column("level"))
        rows = answer.to_pylist()
        return {row["level"]: int(row["n"]) for row in sorted(rows, key=lambda row: str(row["level"]))}

    def summarise(self, rule: Rule) -> StratumSummary:
        """Return sizes and proxy moments per stratum: one group-by, centred by the engine."""
        for stored_rule, summary in self._summaries:
            if stored_rule == rule:
                return summary
        coded = with_codes(rule, self.units, self.units.table)
        columns = [coded[self.units.numbers[info.name]] for info in self.proxies]
        measures: dict[str, Foreign] = {"n": coded.count()}
        for a, column in enumerate(columns):
            measures[f"mean{a}"] = column.mean()
            measures[f"cov{a}_{a}"] = column.var(how="pop")
            measures |= {f"cov{a}_{b}": column.cov(columns[b], how="pop") for b in range(a)}
        columns_of_strata = columns_of(self.source.run(coded.group_by("code").aggregate(**measures)))
        summary = _summary(columns_of_strata, rule, len(columns))
        self._summaries.append((rule, summary))
        return summary

    def _under(
        self, rule: Rule, limits: KeyArray, counts: IntArray, seed: int
    ) -> tuple[Foreign, IntArray, KeyArray, AnyArray]:
        """Return the units below the limits of their strata; the query also computes the digest if possible.

        An engine that returns rows together with sums needs one query: it returns all units below the highest
        limit, which are then assigned to their strata.
        """
        units = self.units
        highest = int(limits[counts > 0].max(initial=np.uint64(0)))
        # An engine returns rows together with sums if it has structs, and Arrow has their types.
        kinds = [units.table[name].type() for name in units.shown.values()]
        is_transferable = all(
            k.is_string() or k.is_numeric() or k.is_boolean() or k.is_temporal() for k in kinds
        )
        is_one_pass = units.backend.name in ANALYTIC_ENGINES and is_transferable
        if seed in self._digests or highest > _FEW or not is_one_pass:
            strata = np.flatnonzero(counts)
            table = units.table.mutate(digest=_digest(units, seed))
            if highest < _HIGHEST_KEY:
                table = table.filter(table.digest <= _digest_limit(highest))
            by_code = {int(h): _digest_limit(int(limits[h])) for h in strata}
            rows = self.source.run(_under_limits(with_codes(rule, units, table), units, by_code, "code"))
            codes = rows.column("code").to_numpy().astype(np.int64)
            texts = _texts(rows.column("unit_id"))
            return rows, codes, keys_of_ids(texts.tolist(), seed), texts
        max_bits = highest >> (4 * KEY_DIGITS - KEY_BITS)
        row = self.source.run(_digested(units, self._digested, seed, max_bits))
        self._digests[seed] = _digest_of(self._digested, row.drop_columns("rows").to_pylist()[0])
        rows = pa.Table.from_struct_array(row.column("rows").combine_chunks().flatten())
        texts = _texts(rows.column("unit_id"))
        names = rule.columns
        keys = keys_of_ids(texts.tolist(), seed)
        columns = {name: _plain(rows.column(units.internal(name, units.numbers))) for name in names}
        codes = rule.assign({"": texts, **columns})
        selected = np.flatnonzero((keys <= limits[codes]) & (counts[codes] > 0))
        return rows.take(selected), codes[selected], keys[selected], texts[selected]

    def _digest(self, seed: int) -> PopulationDigest:
        return _digest_of(self._digested, self.source.first(_digested(self.units, self._digested, seed)))

    def _digest_columns(self) -> tuple[Columns, dict[str, str]]:
        second = {f"second:{info.name}": info.second_moment for info in self.proxies if info.second_moment}
        named = {f"number:{name}": name for name in (*self.proxy_names, *self.feature_names)} | second
        numbers = {kind: (self.units.numbers[name], self.extents[name]) for kind, name in named.items()}
        return numbers, {f"group:{name}": self.units.categories[name] for name in self.group_names}

    def means_of(self, formulas: Sequence[Expression]) -> FloatArray:
        """Return the means (q,) of formulas: one query."""
        columns = TableColumns(self.units, self.units.table)
        table = self.units.table.mutate(
            **{f"m{j}": formula.on(columns) for j, formula in enumerate(formulas)}
        )
        row = self.source.first(
            table.aggregate(**{f"m{j}": table[f"m{j}"].mean() for j in range(len(formulas))})
        )
        return np.array([float(mean) for mean in row.values()])

    def batches(self, columns: tuple[str, ...], size: int = 262_144) -> Iterator[dict[str, AnyArray]]:
        """Yield the named columns in the order of the ids' text: the same however the rows are stored."""
        units = self.units
        internal = {name: units.internal(name, units.numbers) for name in columns if name != UNIT_ID}
        if UNIT_ID in columns:
            internal[UNIT_ID] = "unit_id"
        ordered = units.table.order_by(byte_order_key(units.backend, units.table.unit_id)).select(
            *dict.fromkeys(internal.values())
        )
        for batch in self.source.batches(ordered, size):
            yield {name: _plain(batch.column(column)) for name, column in internal.items()}

    # ---- unequal probabilities, an order, groups

    def size_profile(self, size: Size, count: int) -> SizeProfile:
        """Return the extent, the sum and the `count` largest values of a size measure: three queries."""
        sized = self._sized(size)
        measure = sized.size_measure
        low = float(self.source.first(sized.aggregate(low=measure.min()))["low"])
        largest_rows = (
            sized.order_by(ibis.desc("size_measure")).limit(min(count, self.size)).select("size_measure")
        )
        largest = np.sort(self.source.run(largest_rows).column("size_measure").to_numpy())[::-1]
        cap = float(largest[-1])
        total = 0
        if low > 0:
            steps = (
                ibis.least(measure, double(cap)) * double(summaries.SIZE_STEPS / cap) + double(0.5)
            ).floor()
            total = int(self.source.first(sized.aggregate(total=steps.cast("int64").sum()))["total"])
        return SizeProfile(
            units=self.size, low=low, largest=largest, rest=summaries.rest_of(total, cap, len(largest))
        )

    def below(self, size: Size, limit: float, seed: int) -> Candidates:
        """Return the units whose permanent random number u is below `limit` times their size."""
        seed = check_seed(seed)
        sized = self._sized(size)
        high = float(self.source.first(sized.aggregate(high=sized.size_measure.max()))["high"])
        # Sizes are divided into octaves below the largest; each octave has a threshold on the digest's text,
        # in a small joined table. So the engine returns about twice as many units as needed, which are
        # compared exactly.
        cuts = high * 2.0 ** -np.arange(_OCTAVES, 0, -1.0)
        shares = enumerate(min(limit * cut, 1.0) for cut in (*cuts.tolist(), high))
        by_octave = {octave: _digest_limit(int(share * 2.0**64) + (1 << 11)) for octave, share in shares}
        units = replace(self.units, numbers={**self.units.numbers, "size_measure": "size_measure"})
        rule = rules.CutPoints(column="size_measure", cuts=cuts)
        coded = with_codes(rule, units, sized.mutate(digest=_digest(units, seed)))
        rows = self.source.run(_under_limits(coded, self.units, by_octave, "size_measure"))
        u = uniforms(keys_of_ids(_texts(rows.column("unit_id")).tolist(), seed))
        sizes = rows.column("size_measure").to_numpy()
        selected = np.flatnonzero(u < limit * sizes)
        drawn, order = self._taken(rows.take(selected), seed)
        return Candidates(drawn=drawn, uniform=u[selected][order], size=sizes[selected][order])

    def at_ranks(self, column: str, ranks: IntArray, seed: int) -> Drawn:
        """Return the units at these ranks (n,), from 0, when sorted by a column: one sort by the engine."""
        seed = check_seed(seed)
        table = self.units.table
        value = self._numeric(column)
        table = table.select(selected_value="unit_id", value=value, digest=_digest(self.units, seed))
        window = ibis.window(order_by=[table.value, table.digest, table.selected_value])
        numbered = table.select("selected_value", position=ibis.row_number().over(window).cast("int64"))
        ranked = literal_table({"rank": ranks}, self.units.backend)
        drawn = numbered.join(ranked, numbered.position == ranked.rank).select("selected_value")
        return self._matching("unit_id", drawn, seed)

    def members(self, group: str, levels: tuple[str, ...], seed: int) -> Drawn:
        """Return every unit of these levels of a group column."""
        values = literal_table({"selected_value": np.array(levels, object)}, self.units.backend)
        return self._matching(self.units.categories[self.require_group(group)], values, seed)

    def find(self, ids: Sequence[str]) -> Drawn:
        """Return the units that have one of these ids, as text; those of no unit are left out."""
        values = literal_table(
            {"selected_value": np.array(list(dict.fromkeys(ids)), object)}, self.units.backend
        )
        return self._matching("unit_id", values, 0)

    def _matching(self, column: str, values: Foreign, seed: int) -> Drawn:
        """Return the units whose value of a column is in the column `selected_value` of another table."""
        table = self.units.table
        joined = table.join(values, table[column] == values.selected_value)
        return self._taken(self.source.run(joined.select("unit_id", *_payload(self.units))), seed)[0]

    def _sized(self, size: Size) -> Foreign:
        """Return the units' table with a column `size_measure` of doubles."""
        units = self.units
        table = self.units.table
        columns = TableColumns(units, table)
        if size.formula is not None:
            return table.mutate(size_measure=size.on(columns, size.formula.on(columns), None))
        if size.column is None:
            return table.mutate(size_measure=double(1.0))
        values = self._numeric(size.column)
        moments = None
        if size.second:
            moments = self._numeric(str(self.proxy_info(size.column).second_moment))
        return table.mutate(size_measure=size.on(columns, values, moments))

    def _numeric(self, name: str) -> Foreign:
        """Return the Ibis column of a proxy or a feature, refusing categories."""
        if name in self.units.categories and name not in self.units.numbers:
            raise InputError(f"column {name!r} contains categories", allowed="a proxy or a feature")
        return self.units.table[self.units.internal(name, self.units.numbers)]

    def _taken(self, rows: Foreign, seed: int, stratum: IntArray | None = None) -> tuple[Drawn, IntArray]:
        """Return the units of the rows in the order in which they are shown, and that order (n,)."""
        ids = _ids(rows.column("unit_id"), self.units.integer_ids)
        units = self.units
        order = shown_order(ids, seed)
        rows = rows.take(order)
        proxies = [rows.column(units.numbers[name]).to_numpy() for name in self.proxy_names]
        drawn = Drawn(
            ids=ids[order],
            stratum=np.zeros(len(ids), np.int64) if stratum is None else stratum[order],
            proxies=np.stack(proxies, axis=1) if proxies else np.empty((len(ids), 0)),
            groups={name: _texts(rows.column(column)) for name, column in units.categories.items()},
            shown={name: object_column(rows.column(column)) for name, column in units.shown.items()},
            features={name: rows.column(units.numbers[name]).to_numpy() for name in self.feature_names},
        )
        return drawn, order


def table_population(source: Source, declared: Declaration, row_base: int | None = None) -> TablePopulation:
    """Return the population of a table's rows, once they are checked; see `Population.row_base`."""
    units = units_of(source, declared)
    size, extents = checked(units, source, declared)
    population = TablePopulation(
        size=size,
        proxies=declared.proxy_infos(extents),
        group_names=declared.groups,
        shown_names=declared.shown,
        feature_names=declared.features,
        id_name=declared.id,
        row_base=row_base,
        roles=declared.roles,
        tags=declared.tags,
        label_outcome=label_outcome(declared.label),
        notes=source.notes,
        own_stratum=OWN_STRATUM_GROUP if declared.missing else None,
        units=units,
        source=source,
        extents=extents,
    )
    return with_predictions(population, declared.predicts, scaled=declared.scaled)


def _summary(columns: dict[str, Foreign], rule: Rule, k: int) -> StratumSummary:
    """Return the summary of all H strata, including empty ones, from the rows of a group-by."""
    if np.ma.is_masked(columns["code"]) or columns["code"].dtype.kind != "i":
        raise InputError(
            "the table has a category that does not occur in the strata",
            given=f"rule {rule.kind!r}",
            action="Stratify this population, or give the one that the strata came from.",
        )
    codes = columns["code"].astype(np.int64)

    def spread(name: str) -> FloatArray:
        values = np.zeros(rule.n_strata)
        values[codes] = columns[name]
        return values

    covariances = np.zeros((rule.n_strata, k, k))
    for a in range(k):
        for b in range(a + 1):
            covariances[:, a, b] = covariances[:, b, a] = spread(f"cov{a}_{b}")
    means = [spread(f"mean{a}") for a in range(k)]
    return StratumSummary(
        sizes=spread("n").astype(np.int64),
        proxy_means=np.stack(means, axis=1) if means else np.empty((rule.n_strata, 0)),
        proxy_covariances=covariances,
    )


def _texts(column: Foreign) -> AnyArray:
    for text in (texts := column.to_pylist()):
        if "\0" in text:
            raise InputError(
                "a text contains the character NUL",
                given=repr(text),
                action="Remove it; NumPy would drop it.",
            )
    return np.array(texts, dtype=np.str_)


def _ids(column: object, integers: bool) -> AnyArray:
    """Return ids as integers where they are and fit."""
    try:
        if integers:
            return _texts(column).astype(np.int64)
        return _texts(column)
    except OverflowError:
        return _texts(column)


def _plain(column: object) -> AnyArray:
    array: AnyArray = np.asarray(column)
    if array.dtype.kind == "O":
        return array.astype(np.str_)
    return array


# ---- the queries of designs


def _under_limits(coded: Foreign, units: Units, limits: dict[int, str], *columns: str) -> Foreign:
    """Return the query for the rows whose digest is at most the limit of their code."""
    names = np.array(list(limits), np.int64), np.array(list(limits.values()), object)
    limit_table = literal_table({"limited": names[0], "highest": names[1]}, units.backend)
    joined = coded.join(limit_table, coded.code == limit_table.limited)
    selected = joined.filter(joined.digest <= joined.highest)
    return selected.select("unit_id", *columns, *_payload(units))


def _digested(units: Units, columns: Digested, seed: int, limit: int = -1) -> Foreign:
    """Return the query for the sums of the population's digest, and for the units whose k is at most `limit`.

    Each sum comes in two halves, which fit 64 bits for up to 2³¹ units. A negative limit is of no unit.
    """
    text = ibis.literal(f"{seed}:") + units.table.unit_id
    table = units.table.mutate(key=key_bits(units.backend, text))
    measures = {"size": table.count(), "ids": table.key.sum().cast("int64")}
    # What the keys are multiplied by: digits of numbers, then the numbers of levels.
    engine = TableColumns(units, table)
    parts = [digits(table[column], exponent, engine) for column, exponent in columns.numbers.values()]
    factors = [digit.cast("int64") for digit in chain.from_iterable(parts)]
    factors += [key_bits(units.backend, table[column]) >> 1 for column in columns.groups.values()]
    for at, factor in enumerate(factors):
        product = table.key * factor
        measures[f"high{at}"] = (product >> _HALF).sum().cast("int64")
        measures[f"low{at}"] = (product & (2**_HALF - 1)).sum().cast("int64")
    if limit >= 0:
        rows = ibis.struct({name: table[name] for name in ("unit_id", *_payload(units))})
        measures["rows"] = rows.collect(where=table.key <= limit)
    return table.aggregate(**measures)


def _digest_of(columns: Digested, row: Mapping[str, Foreign]) -> PopulationDigest:
    """Return the digest from the row of sums."""
    halves = len([name for name in row if name.startswith("high")])
    sums = [(int(row[f"high{at}"]) << _HALF) + int(row[f"low{at}"]) for at in range(halves)]
    return columns.digest(int(row["size"]), int(row["ids"]), sums)


def _payload(units: Units) -> list[str]:
    return [*units.numbers.values(), *units.categories.values(), *units.shown.values()]


def _digest(units: Units, seed: int) -> Foreign:
    return md5_digest(units.backend, ibis.literal(f"{seed}:") + units.table.unit_id)


def _digest_limit(key: int) -> str:
    """Return the largest digest whose first digits are those of `key`."""
    return f"{min(key, _HIGHEST_KEY):0{KEY_DIGITS}x}{_REST_OF_DIGEST}"
