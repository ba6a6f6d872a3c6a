"""A population whose rows stay in a table: every operation is a query, which the engine of the table runs."""

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

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_matrix, select_rows
from stratal.errors import InputError
from stratal.population.column_names import OWN_STRATUM_GROUP
from stratal.population.declaration import OWN_STRATUM, Declaration, label_outcome
from stratal.population.digest import KEY_BITS, DigestedColumns, PopulationDigest, digits
from stratal.population.distribution import (
    BIN_COUNT,
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
from stratal.population.expressions import ArrayEvaluator, Expression
from stratal.population.in_memory import object_column
from stratal.population.population import DEFAULT_BATCH_SIZE, UNIT_ID, NumberColumns, Population
from stratal.population.predictions import with_predictions
from stratal.population.proxy_info import ProxyInfo
from stratal.population.queries.units import Units, units_of_source, validate_units
from stratal.population.rules import (
    CELL,
    INFLUENCE,
    Categories,
    Crossed,
    CutPoints,
    Derived,
    Everything,
    NearestCentre,
    Rule,
)
from stratal.population.size_measure import SIZE_STEPS, SizeMeasure, SizeProfile, sum_of_other_sizes
from stratal.population.summary import StratumSummary
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

# Function that runs an Ibis expression and returns a PyArrow table.
RunQuery = Callable[[Foreign], Foreign]


@dataclass(frozen=True)
class TableCounter:
    """Counts the values of a proxy in a table by group-bys; see `ProxyCounter`.

    Parameters
    ----------
    run : callable
        Runs an Ibis expression and returns a PyArrow table.
    table : Ibis table
    total_extent : Extent
        Extent of all rows.
    value : str
        Column of the proxy (doubles).
    second_moments : str, optional
        Column of its second moments.
    steps : MomentSteps, optional
        Conversion of the second moments to integers.
    total_histogram : mapping of column to array, optional
        The histogram of all rows, if one query has computed it together with those of other tables.
    """

    run: RunQuery
    table: Foreign
    total_extent: Extent
    value: str
    second_moments: str | None = None
    steps: MomentSteps | None = None
    total_histogram: Mapping[str, Foreign] | None = None

    def extent(self, span: Span) -> Extent:
        """Return the smallest and largest proxy, and the number of units, within the span."""
        if span == Span():
            return self.total_extent
        inside = self._rows_within(span)
        low = inside[self.value].min()
        high = inside[self.value].max()
        range_row = self.run(inside.aggregate(low=low, high=high, n=inside.count())).to_pylist()[0]
        if not range_row["n"]:
            return Extent(math.nan, math.nan, 0)
        return Extent(float(range_row["low"]), float(range_row["high"]), int(range_row["n"]))

    def distinct(self) -> Bins:
        """Return a bin for each distinct value."""
        query = _distinct_values_query(self.table, self.table[self.value], self._moments(self.table))
        columns = columns_of(self.run(query))
        columns = select_rows(columns, np.argsort(columns["value"]))
        counts = columns["n"].astype(np.int64)
        second_moments = None
        if self.steps is not None:
            second_moments = self.steps.means(columns["second"].astype(np.int64), counts)
        return Bins(columns["value"], columns["value"], counts, second_moments, True)

    def histogram(self, grid: Grid, span: Span) -> Histogram:
        """Return the histogram of the proxies within the span."""
        if self.total_histogram is not None and span == Span():
            return _histogram_of_bins(self.total_histogram)
        inside = self._rows_within(span)
        query = _histogram_query(
            inside, inside[self.value], double(grid.low), double(grid.scale), self._moments(inside)
        )
        return _histogram_of_bins(columns_of(self.run(query)))

    def _moments(self, table: Foreign) -> Foreign:
        """Return the steps of the second moments as an Ibis expression, None without second moments."""
        if self.steps is None:
            return None
        low = double(float(self.steps.low))
        scale = double(float(self.steps.scale))
        return steps_expression(table[self.second_moments], low, scale)

    def _rows_within(self, span: Span) -> Foreign:
        """Return the rows whose proxy is within a span."""
        table = self.table
        if math.isfinite(span.at_least):
            table = table.filter(table[self.value] >= double(span.at_least))
        if math.isfinite(span.below):
            table = table.filter(table[self.value] < double(span.below))
        return table


def steps_expression(moments: Foreign, low: Foreign, scale: Foreign) -> Foreign:
    """Return second moments as integers, in an Ibis expression; see `MomentSteps`."""
    return ((moments - low) * scale).floor().cast("int64")


def columns_of(table: Foreign) -> dict[str, Foreign]:
    """Return the columns of a small PyArrow table as NumPy arrays by name."""
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _distinct_values_query(table: Foreign, values: Foreign, moments: Foreign, *keys: str) -> Foreign:
    """Return the query of the count and the sum of second moments of each distinct value.

    `values` and `moments` are Ibis columns of the proxy and of its second moments as integers; `moments` is
    None without them. `keys` are further columns to group by.
    """
    measures = {"n": table.count()}
    if moments is not None:
        measures["second"] = moments.sum().cast("int64")
    # The sum with 0.0 turns −0.0 into 0.0, which engines may count separately.
    columns = {key: table[key] for key in keys} | {"value": values + double(0.0)}
    return table.group_by(**columns).aggregate(**measures)


def _histogram_query(
    table: Foreign, values: Foreign, low: Foreign, scale: Foreign, moments: Foreign, *keys: str
) -> Foreign:
    """Return the query of the count, integer sums, and smallest and largest value of each bin of a grid.

    `low` and `scale` are those of the grid; `moments` and `keys` are as in `_distinct_values_query`.
    """
    position = ((values - low) * scale).floor().cast("int64")
    # The largest value belongs to the last bin, whose upper end is exclusive otherwise.
    last = ibis.literal(BIN_COUNT * OFFSET_COUNT - 1, "int64")
    columns = {"position": ibis.least(position, last), "value": values}
    columns |= {key: table[key] for key in keys}
    if moments is not None:
        columns["moment"] = moments
    positioned_rows = table.select(**columns)
    positioned_rows = positioned_rows.mutate(bin=positioned_rows.position >> OFFSET_BITS)
    measures = {
        "n": positioned_rows.count(),
        "offsets": (positioned_rows.position & (OFFSET_COUNT - 1)).sum().cast("int64"),
        "low": positioned_rows.value.min(),
        "high": positioned_rows.value.max(),
    }
    if moments is not None:
        measures["second"] = positioned_rows.moment.sum().cast("int64")
    return positioned_rows.group_by([*keys, "bin"]).aggregate(**measures)


def _histogram_of_bins(columns: Mapping[str, Foreign]) -> Histogram:
    """Return the histogram with all bins, from the result of `_histogram_query` for the occupied ones."""
    bins = columns["bin"].astype(np.int64)

    def by_bin(name: str) -> IntArray:
        """Return a column with a value for every bin, 0 for empty ones."""
        values = np.zeros(BIN_COUNT, np.int64)
        values[bins] = columns[name].astype(np.int64)
        return values

    # If each bin has a single distinct value, the bins are exact.
    single_values: FloatArray | None = None
    if np.array_equal(columns["low"], columns["high"]):
        single_values = np.full(BIN_COUNT, np.nan)
        single_values[bins] = columns["low"]
    second_moments = None
    if "second" in columns:
        second_moments = by_bin("second")
    return Histogram(by_bin("n"), by_bin("offsets"), second_moments, single_values)


# ---- distributions within all levels of a group column at once


def _level_extents(
    run: RunQuery, table: Foreign, level: str, value: str, second_moments: str | None
) -> tuple[list[str], dict[str, AnyArray]]:
    """Return the sorted levels (L,), and facts of each level by name, each (L,).

    They are the number of units `n`, the smallest and largest proxy, `low` and `high`, and with second
    moments the smallest and largest of these, `second_low` and `second_high`.
    """
    measures = {"n": table.count(), "low": table[value].min(), "high": table[value].max()}
    if second_moments is not None:
        measures |= {"second_low": table[second_moments].min(), "second_high": table[second_moments].max()}
    result = run(table.group_by(level=table[level]).aggregate(**measures))
    names = result.column("level").to_pylist()
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    return sorted(names), select_rows(columns_of(result.drop_columns("level")), order)


def _grid_scales(extents: Sequence[Extent], has_few_values: BoolArray) -> FloatArray:
    """Return the scale (L,) of the grid of each level; 0 for levels that need no grid."""
    scales = np.zeros(len(extents))
    for number, extent in enumerate(extents):
        if not has_few_values[number]:
            scales[number] = Grid.over(extent.low, extent.high).scale
    return scales


def level_bins(
    run: RunQuery, backend: Foreign, table: Foreign, level: str, value: str, second_moments: str | None = None
) -> LevelBins:
    """Return the distinct values within each level of a category, from two or three queries in total.

    Parameters
    ----------
    run : callable
        Runs an Ibis expression and returns a PyArrow table.
    backend : Ibis backend
        The backend that runs the expression.
    table : Ibis table
    level, value : str
        Columns of categories and of proxies.
    second_moments : str, optional
        Column of second moments.
    """
    names, facts = _level_extents(run, table, level, value, second_moments)
    ends_and_counts = [facts[name].tolist() for name in ("low", "high", "n")]
    extents = [Extent(low, high, n) for low, high, n in zip(*ends_and_counts, strict=True)]
    has_few_values = np.fromiter(map(has_distinct_value_bins, extents), bool, len(names))
    parameters = {
        "level_name": np.array(names, dtype=object),
        "level_number": np.arange(len(names)),
        "has_few_values": has_few_values,
        "grid_low": facts["low"],
        "grid_scale": _grid_scales(extents, has_few_values),
    }
    steps = None
    if second_moments is not None:
        steps = MomentSteps.over(facts["second_low"], facts["second_high"])
        parameters |= {"step_low": np.asarray(steps.low), "step_scale": np.asarray(steps.scale)}
    parameter_table = literal_table(parameters, backend)
    joined = table.join(parameter_table, table[level] == parameter_table.level_name)

    def moments(rows: Foreign) -> Foreign:
        """Return the second moments as integers, None without them."""
        if second_moments is None:
            return None
        return steps_expression(rows[second_moments], rows.step_low, rows.step_scale)

    rows = joined.filter(joined.has_few_values)
    distinct = columns_of(run(_distinct_values_query(rows, rows[value], moments(rows), "level_number")))
    distinct = select_rows(distinct, np.lexsort((distinct["value"], distinct["level_number"])))
    counts = distinct["n"].astype(np.int64)
    means = None
    if steps is not None:
        means = steps[distinct["level_number"]].means(distinct["second"].astype(np.int64), counts)
    counters: dict[int, TableCounter] = {}
    if not np.all(has_few_values):
        # One query for all levels with many values.
        rows = joined.filter(~joined.has_few_values)
        binned = _histogram_query(
            rows, rows[value], rows.grid_low, rows.grid_scale, moments(rows), "level_number"
        )
        bins = columns_of(run(binned))
        for number in np.flatnonzero(~has_few_values).tolist():
            level_steps = None
            if steps is not None:
                level_steps = steps[number]
            counters[number] = TableCounter(
                run,
                table=table.filter(table[level] == names[number]),
                total_extent=extents[number],
                value=value,
                second_moments=second_moments,
                steps=level_steps,
                total_histogram=select_rows(bins, bins["level_number"] == number),
            )
    return LevelBins(
        names=tuple(names),
        level=distinct["level_number"],
        values=distinct["value"],
        counts=counts,
        second_moments=means,
        counters=counters,
    )


# ---- formulas and rules as queries


class TableEvaluator(ArrayEvaluator):
    """Evaluates formulas on the columns of a table: the values are Ibis columns.

    Parameters
    ----------
    units : Units
    table : Ibis table
        `units.table`, or this table with additional columns.
    """

    def __init__(self, units: Units, table: Foreign) -> None:
        self._units = units
        self._table = table

    def number(self, name: str) -> Foreign:
        """Return a numeric column."""
        return self._table[self._units.internal_name(name, self._units.numbers)]

    def by_level(
        self, name: str, levels: tuple[str, ...], values: tuple[float, ...], otherwise: float
    ) -> Foreign:
        """Return the number of each unit's level of a group column."""
        column = self._table[self._units.internal_name(name, self._units.categories)]
        branches = [(column == level, double(value)) for level, value in zip(levels, values, strict=True)]
        return ibis.cases(*branches, else_=double(otherwise))

    def all_equal(self, names: tuple[str, ...]) -> Foreign:
        """Return 1 if all group columns agree, else 0."""
        internal_names = [self._units.internal_name(name, self._units.categories) for name in names]
        first, *others = (self._table[name] for name in internal_names)
        is_same = reduce(and_, (first == other for other in others))
        return ibis.ifelse(is_same, double(1.0), double(0.0))

    def apply(self, function: str, value: Foreign) -> Foreign:
        """Return a function of a column, such as `floor`."""
        return getattr(value, function)()

    def constant(self, value: float) -> Foreign:
        """Return one number for every unit."""
        return double(value)

    def at_least(self, value: object, least: float) -> Foreign:
        """Return a column in which numbers below `least` are replaced by `least`."""
        return ibis.greatest(value, double(least))

    def below(self, value: object, limit: float) -> Foreign:
        """Return a column that is 1 for values below a constant, else 0."""
        return ibis.ifelse(value < double(limit), double(1.0), double(0.0))


def with_codes(rule: Rule, units: Units, table: Foreign, out: str = "code") -> Foreign:
    """Return `table` with a column `out` of stratum codes.

    Parameters
    ----------
    rule : Rule
    units : Units
        Maps the user's names of columns to those of the table.
    table : Ibis table
        `units.table`, or this table with additional columns.
    out : str
        Name of the new column.

    Raises an `InputError` for a rule that has no query.
    """
    match rule:
        case Everything():
            return table.mutate(**{out: ibis.literal(0, "int64")})
        case CutPoints():
            column = table[units.internal_name(rule.column, units.numbers)]
            code = _count_cuts_below(column, rule.cuts.tolist(), 0, len(rule.cuts))
            return table.mutate(**{out: code.cast("int64")})
        case Categories():
            level = units.internal_name(rule.column, units.categories)
            level_name = f"{out}_level"
            code_table = literal_table(
                {level_name: np.array(rule.levels, dtype=object), out: rule.codes}, units.backend
            )
            return table.left_join(code_table, table[level] == code_table[level_name]).drop(level_name)
        case Derived():
            return _derived_codes(rule, units, table, out)
        case Crossed() if rule.cuts is not None:
            return _interval_codes_by_level(rule, *rule.cuts, units, table, out)
        case Crossed():
            group = f"{out}_group"
            coded = with_codes(rule.categories, units, table, group)
            branches = []
            for number, (inner, offset) in enumerate(zip(rule.inner, rule.offsets.tolist(), strict=True)):
                coded = with_codes(inner, units, coded, f"{out}_{number}")
                branches.append((coded[group] == number, coded[f"{out}_{number}"] + offset))
            temporary_columns = [group, *(f"{out}_{number}" for number in range(len(branches)))]
            return coded.mutate(**{out: ibis.cases(*branches).cast("int64")}).drop(*temporary_columns)
        case NearestCentre():
            return _nearest_centre_codes(rule, units, table, out)
    raise InputError(
        f"a table cannot be stratified by a rule of kind {rule.kind!r}",
        action="Load the population into memory: Population.from_arrays.",
    )


def _count_cuts_below(column: object, cuts: list[float], first: int, last: int) -> Foreign:
    """Return the number of cut points at or below a value as nested conditions.

    The number is known to be between `first` and `last`. A value is compared with about log₂ H cut points
    instead of H, as in a binary search.
    """
    if first == last:
        return ibis.literal(first, "int32")
    middle = (first + last) // 2
    below = _count_cuts_below(column, cuts, first, middle)
    above = _count_cuts_below(column, cuts, middle + 1, last)
    return ibis.ifelse(column < double(cuts[middle]), below, above)


def _derived_codes(rule: Derived, units: Units, table: Foreign, out: str) -> Foreign:
    """Return `table` with the codes of a rule that uses formulas; see `with_codes`."""
    columns = TableEvaluator(units, table)
    influence = f"{out}_{INFLUENCE}"
    cell = f"{out}_{CELL}"
    *names, last = (ibis.literal(name) for name in rule.cells.names)
    tests = [
        (test.evaluate_with(columns) > 0.5, name) for test, name in zip(rule.cells.tests, names, strict=True)
    ]
    if tests:
        cells = ibis.cases(*tests, else_=last)
    else:
        cells = last
    computed = table.mutate(**{influence: rule.influence.evaluate_with(columns), cell: cells})
    numbers = {**units.numbers, INFLUENCE: influence}
    categories = {**units.categories, CELL: cell}
    computed_units = replace(units, numbers=numbers, categories=categories)
    return with_codes(rule.inner, computed_units, computed, out).drop(influence, cell)


def _interval_codes_by_level(
    rule: Crossed, column: str, cuts: list[FloatArray], units: Units, table: Foreign, out: str
) -> Foreign:
    """Return `table` with the codes of intervals within levels, by a join with a table of all intervals."""
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
    value = table[units.internal_name(column, units.numbers)]
    level_column = table[units.internal_name(rule.categories.column, units.categories)]
    conditions = [
        level_column == interval_table[names[0]],
        value >= interval_table[names[1]],
        value < interval_table[names[2]],
    ]
    return table.left_join(interval_table, conditions).drop(*names)


def _nearest_centre_codes(rule: NearestCentre, units: Units, table: Foreign, out: str) -> Foreign:
    """Return `table` with the number of the nearest centre of each unit; see `with_codes`."""
    # The nearest centre c maximises 2 c·x − c·c. All are whole numbers, so that every engine gets the same.
    grid = rule.grid
    doubled, squares = rule.integer_centres
    coordinates = []
    for name, origin, step in zip(rule.names, grid.origin, grid.step, strict=True):
        value = table[units.internal_name(name, units.numbers)]
        position = (value - double(origin)) / double(step) + double(0.5)
        clipped = position.clip(double(-grid.limit), double(grid.limit))
        coordinates.append(clipped.floor().cast("float64"))
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


# Number of limits between groups of sizes, which are the largest size divided by powers of two. All smaller
# sizes are in the first group.
_N_OCTAVES = 24

# Keys are unsigned integers of 64 bits.
_MAX_KEY = 2**64 - 1

# Products of 64 bits are added in two halves of 32 bits, whose sums do not overflow.
_HALF_BITS = 32

# Largest text of the hexadecimal digits of an MD5 digest after those of the key.
_LARGEST_REST_OF_DIGEST = "f" * (32 - KEY_DIGITS)

# If the highest key of a draw is larger, which holds for more than one unit in 64, its rows are not returned
# together with the sums of the digest: they would be too many.
_MAX_KEY_WITH_SUMS = 2**58


@dataclass(kw_only=True, eq=False, repr=False)
class TablePopulation(Population):
    """N units as the rows of a table; made by `Population.read` and `Population.from_table`.

    Parameters
    ----------
    units : Units
    source : Source
        The rows on their engine.
    extents : mapping of column to (float, float)
        Smallest and largest value of each number.
    """

    units: Units
    source: Source
    extents: Mapping[str, tuple[float, float]]
    _summaries: list[tuple[Rule, StratumSummary]] = field(init=False, default_factory=list)

    # ---- distributions, levels and summaries

    def _counter(self, info: ProxyInfo) -> TableCounter:
        """Return the counter of a proxy, which runs one query, or two if some bins are too coarse."""
        units = self.units
        extent = Extent(*self.extents[info.name], self.size)
        moments = None
        steps = None
        if info.second_moment:
            moments = units.numbers[info.second_moment]
            steps = MomentSteps.over(*self.extents[info.second_moment])
        value = units.numbers[info.name]
        return TableCounter(self.source.run, units.table, extent, value, moments, steps)

    def extent(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest value of a proxy."""
        return self.extents[name]

    def _renumbered(self, base: int) -> TablePopulation:
        """Return the population with row numbers that count from `base`."""
        assert self.row_base is not None
        key = self.units.table.unit_key + (base - self.row_base)
        table = self.units.table.mutate(unit_key=key, unit_id=key.cast("string"))
        return replace(self, units=replace(self.units, table=table), row_base=base)

    def _level_bins(self, by: str, info: ProxyInfo) -> LevelBins:
        """Return the distinct values or bins of a proxy within each level, from two or three queries."""
        units = self.units
        moments_column = None
        if info.second_moment:
            moments_column = units.numbers[info.second_moment]
        return level_bins(
            self.source.run,
            self.source.backend,
            units.table,
            units.categories[by],
            units.numbers[info.name],
            moments_column,
        )

    def levels(self, group: str) -> dict[str, int]:
        """Return the number of units in each level of a group column."""
        table = self.units.table
        level = table[self.units.categories[self.require_group(group)]]
        result = self.source.run(table.group_by(level=level).aggregate(n=table.count()))
        # Raises the error for a level with the character NUL.
        _text_array(result.column("level"))
        rows = result.to_pylist()
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
        query = coded.group_by("code").aggregate(**measures)
        strata_columns = columns_of(self.source.run(query))
        summary = _summary_of_groups(strata_columns, rule, len(columns))
        self._summaries.append((rule, summary))
        return summary

    def _units_below_limits(
        self, rule: Rule, limits: KeyArray, counts: IntArray, seed: int
    ) -> tuple[Foreign, IntArray, KeyArray, AnyArray]:
        """Return the units with keys up to the limits of their strata; the query may also compute the digest.

        An engine that returns rows together with sums needs one query: it returns all units below the highest
        limit, which are then assigned to their strata.
        """
        units = self.units
        highest = int(limits[counts > 0].max(initial=np.uint64(0)))
        if seed in self._digests or highest > _MAX_KEY_WITH_SUMS or not _returns_rows_with_sums(units):
            table = units.table.mutate(digest=_digest(units, seed))
            if highest < _MAX_KEY:
                table = table.filter(table.digest <= _digest_limit(highest))
            limit_by_code = {int(h): _digest_limit(int(limits[h])) for h in np.flatnonzero(counts)}
            coded = with_codes(rule, units, table)
            rows = self.source.run(_rows_under_limits(coded, units, limit_by_code, "code"))
            codes = rows.column("code").to_numpy().astype(np.int64)
            texts = _text_array(rows.column("unit_id"))
            return rows, codes, keys_of_ids(texts.tolist(), seed), texts
        # The keys in this query have only the first `KEY_BITS` bits, so that it may return a few more units.
        max_bits = highest >> (4 * KEY_DIGITS - KEY_BITS)
        row = self.source.run(_digest_query(units, self._digested_columns, seed, max_bits))
        self._digests[seed] = _digest_of_sums(self._digested_columns, row.drop_columns("rows").to_pylist()[0])
        rows = pa.Table.from_struct_array(row.column("rows").combine_chunks().flatten())
        texts = _text_array(rows.column("unit_id"))
        keys = keys_of_ids(texts.tolist(), seed)
        # A rule without columns needs one to know the number of units.
        columns = {"": texts}
        for name in rule.columns:
            columns[name] = _numpy_column(rows.column(units.internal_name(name, units.numbers)))
        codes = rule.assign(columns)
        selected = np.flatnonzero((keys <= limits[codes]) & (counts[codes] > 0))
        return rows.take(selected), codes[selected], keys[selected], texts[selected]

    def _digest(self, seed: int) -> PopulationDigest:
        """Return the digest, from one query."""
        row = self.source.first_row(_digest_query(self.units, self._digested_columns, seed))
        return _digest_of_sums(self._digested_columns, row)

    def _digest_columns(self) -> tuple[NumberColumns, dict[str, str]]:
        """Return the numeric columns and the columns of categories, by their keys in a digest."""
        columns = {f"number:{name}": name for name in (*self.proxy_names, *self.feature_names)}
        columns |= {f"second:{info.name}": info.second_moment for info in self.proxies if info.second_moment}
        numbers = {key: (self.units.numbers[name], self.extents[name]) for key, name in columns.items()}
        return numbers, {f"group:{name}": self.units.categories[name] for name in self.group_names}

    def means_of(self, formulas: Sequence[Expression]) -> FloatArray:
        """Return the means (q,) of formulas: one query."""
        columns = TableEvaluator(self.units, self.units.table)
        values = {f"m{j}": formula.evaluate_with(columns) for j, formula in enumerate(formulas)}
        table = self.units.table.mutate(**values)
        row = self.source.first_row(table.aggregate(**{name: table[name].mean() for name in values}))
        return np.array([float(mean) for mean in row.values()])

    def batches(
        self, columns: tuple[str, ...], size: int = DEFAULT_BATCH_SIZE
    ) -> Iterator[dict[str, AnyArray]]:
        """Yield the named columns in the order of the ids' text, which does not depend on the storage."""
        units = self.units
        internal = {name: units.internal_name(name, units.numbers) for name in columns if name != UNIT_ID}
        if UNIT_ID in columns:
            internal[UNIT_ID] = "unit_id"
        ordered = units.table.order_by(byte_order_key(units.backend, units.table.unit_id))
        ordered = ordered.select(*dict.fromkeys(internal.values()))
        for batch in self.source.batches(ordered, size):
            yield {name: _numpy_column(batch.column(column)) for name, column in internal.items()}

    # ---- unequal probabilities, an order, groups

    def _aggregate(self, table: Foreign, expression: Foreign) -> Foreign:
        """Return an aggregate of a table, such as the sum of a column."""
        return self.source.first_row(table.aggregate(value=expression))["value"]

    def size_profile(self, size: SizeMeasure, count: int) -> SizeProfile:
        """Return the extent, the sum and the `count` largest values of a size measure: three queries."""
        sized = self._with_size_measure(size)
        measure = sized.size_measure
        low = float(self._aggregate(sized, measure.min()))
        largest_rows = sized.order_by(ibis.desc("size_measure")).limit(min(count, self.size))
        sizes = self.source.run(largest_rows.select("size_measure")).column("size_measure")
        largest = np.sort(sizes.to_numpy())[::-1]
        cap = float(largest[-1])
        total = 0
        if low > 0:
            # Sums of whole numbers are equal on every engine.
            scaled = ibis.least(measure, double(cap)) * double(SIZE_STEPS / cap)
            steps = (scaled + double(0.5)).floor()
            total = int(self._aggregate(sized, steps.cast("int64").sum()))
        rest = sum_of_other_sizes(total, cap, len(largest))
        return SizeProfile(units=self.size, low=low, largest=largest, rest=rest)

    def units_below_size_limit(self, size: SizeMeasure, limit: float, seed: int) -> Candidates:
        """Return the units whose permanent random number u is below `limit` times their size."""
        seed = check_seed(seed)
        sized = self._with_size_measure(size)
        high = float(self._aggregate(sized, sized.size_measure.max()))
        # The engine selects units by a threshold on the text of the digest for each octave of sizes, in a
        # small joined table. It returns about twice as many units as needed, which are then compared exactly.
        cuts = high * 2.0 ** -np.arange(_N_OCTAVES, 0, -1.0)
        # The largest u of a unit in each group is that for the largest size in the group.
        u_limits = enumerate(min(limit * cut, 1.0) for cut in (*cuts.tolist(), high))
        # A float of 53 bits is below the exact limit by up to 2¹¹.
        limit_by_octave = {
            octave: _digest_limit(int(u_limit * 2.0**64) + (1 << 11)) for octave, u_limit in u_limits
        }
        units = replace(self.units, numbers={**self.units.numbers, "size_measure": "size_measure"})
        rule = CutPoints(column="size_measure", cuts=cuts)
        coded = with_codes(rule, units, sized.mutate(digest=_digest(units, seed)))
        rows = self.source.run(_rows_under_limits(coded, self.units, limit_by_octave, "size_measure"))
        u = uniforms(keys_of_ids(_text_array(rows.column("unit_id")).tolist(), seed))
        sizes = rows.column("size_measure").to_numpy()
        selected = np.flatnonzero(u < limit * sizes)
        drawn, order = self._drawn_units(rows.take(selected), seed)
        return Candidates(drawn=drawn, uniform=u[selected][order], size=sizes[selected][order])

    def at_ranks(self, column: str, ranks: IntArray, seed: int) -> DrawnUnits:
        """Return the units at these ranks (n,), from 0, when sorted by a column: one sort by the engine."""
        seed = check_seed(seed)
        table = self.units.table
        value = self._number_column(column)
        table = table.select(selected_value="unit_id", value=value, digest=_digest(self.units, seed))
        window = ibis.window(order_by=[table.value, table.digest, table.selected_value])
        numbered = table.select("selected_value", position=ibis.row_number().over(window).cast("int64"))
        ranked = literal_table({"rank": ranks}, self.units.backend)
        drawn = numbered.join(ranked, numbered.position == ranked.rank).select("selected_value")
        return self._units_with_values("unit_id", drawn, seed)

    def units_of_levels(self, group: str, levels: tuple[str, ...], seed: int) -> DrawnUnits:
        """Return every unit of these levels of a group column."""
        values = literal_table({"selected_value": np.array(levels, object)}, self.units.backend)
        return self._units_with_values(self.units.categories[self.require_group(group)], values, seed)

    def units_with_ids(self, ids: Sequence[str]) -> DrawnUnits:
        """Return the units that have one of these ids, as text; ids without a unit are ignored."""
        distinct_ids = np.array(list(dict.fromkeys(ids)), object)
        values = literal_table({"selected_value": distinct_ids}, self.units.backend)
        return self._units_with_values("unit_id", values, 0)

    def _units_with_values(self, column: str, values: Foreign, seed: int) -> DrawnUnits:
        """Return the units whose value of a column is in the column `selected_value` of another table."""
        table = self.units.table
        joined = table.join(values, table[column] == values.selected_value)
        rows = self.source.run(joined.select("unit_id", *_stored_columns(self.units)))
        return self._drawn_units(rows, seed)[0]

    def _with_size_measure(self, size: SizeMeasure) -> Foreign:
        """Return the units' table with a column `size_measure` of doubles."""
        table = self.units.table
        columns = TableEvaluator(self.units, table)
        if size.formula is not None:
            values = size.formula.evaluate_with(columns)
            return table.mutate(size_measure=size.evaluate_with(columns, values, None))
        if size.column is None:
            return table.mutate(size_measure=double(1.0))
        values = self._number_column(size.column)
        moments = None
        if size.uses_second_moments:
            moments = self._number_column(str(self.proxy_info(size.column).second_moment))
        return table.mutate(size_measure=size.evaluate_with(columns, values, moments))

    def _number_column(self, name: str) -> Foreign:
        """Return the Ibis column of a proxy or a feature; raise an error for categories."""
        if name in self.units.categories and name not in self.units.numbers:
            raise InputError(f"column {name!r} contains categories", allowed="a proxy or a feature")
        return self.units.table[self.units.internal_name(name, self.units.numbers)]

    def _drawn_units(
        self, rows: Foreign, seed: int, stratum: IntArray | None = None
    ) -> tuple[DrawnUnits, IntArray]:
        """Return the units of the rows in the random order of the sample, and this order (n,)."""
        ids = _id_array(rows.column("unit_id"), self.units.integer_ids)
        units = self.units
        order = shown_order(ids, seed)
        rows = rows.take(order)
        if stratum is None:
            codes = np.zeros(len(ids), np.int64)
        else:
            codes = stratum[order]
        proxies = [rows.column(units.numbers[name]).to_numpy() for name in self.proxy_names]
        drawn = DrawnUnits(
            ids=ids[order],
            stratum=codes,
            proxies=as_matrix(proxies, len(ids)),
            groups={name: _text_array(rows.column(column)) for name, column in units.categories.items()},
            shown={name: object_column(rows.column(column)) for name, column in units.shown.items()},
            features={name: rows.column(units.numbers[name]).to_numpy() for name in self.feature_names},
        )
        return drawn, order


def table_population(source: Source, declared: Declaration, row_base: int | None = None) -> TablePopulation:
    """Return the population of a table's rows after checking them; see `Population.row_base`."""
    units = units_of_source(source, declared)
    size, extents = validate_units(units, source, declared)
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
        missing_proxy_group=OWN_STRATUM_GROUP if declared.missing == OWN_STRATUM else None,
        units=units,
        source=source,
        extents=extents,
    )
    return with_predictions(population, declared.predicts, scaled=declared.scaled)


def _summary_of_groups(columns: dict[str, Foreign], rule: Rule, k: int) -> StratumSummary:
    """Return the summary of all H strata, including empty ones, from the rows of a group-by."""
    if np.ma.is_masked(columns["code"]) or columns["code"].dtype.kind != "i":
        raise InputError(
            "the table has a category that does not occur in the strata",
            given=f"rule {rule.kind!r}",
            action="Stratify this population, or give the population from which the strata were formed.",
        )
    codes = columns["code"].astype(np.int64)

    def by_stratum(name: str) -> FloatArray:
        values = np.zeros(rule.n_strata)
        values[codes] = columns[name]
        return values

    covariances = np.zeros((rule.n_strata, k, k))
    for a in range(k):
        for b in range(a + 1):
            covariances[:, a, b] = covariances[:, b, a] = by_stratum(f"cov{a}_{b}")
    means = np.empty((rule.n_strata, k))
    for a in range(k):
        means[:, a] = by_stratum(f"mean{a}")
    return StratumSummary(
        sizes=by_stratum("n").astype(np.int64),
        proxy_means=means,
        proxy_covariances=covariances,
    )


def _returns_rows_with_sums(units: Units) -> bool:
    """Return whether the engine has structs, and Arrow the types of the shown columns in them."""
    types = [units.table[name].type() for name in units.shown.values()]
    return units.backend.name in ANALYTIC_ENGINES and all(
        kind.is_string() or kind.is_numeric() or kind.is_boolean() or kind.is_temporal() for kind in types
    )


def _text_array(column: Foreign) -> AnyArray:
    """Return a column of texts as an array; raise an error for the character NUL, which NumPy would drop."""
    texts = column.to_pylist()
    for text in texts:
        if "\0" in text:
            raise InputError(
                "a string contains the character NUL",
                given=repr(text),
                action="Remove the character, because NumPy would drop it.",
            )
    return np.array(texts, dtype=np.str_)


def _id_array(column: object, are_integers: bool) -> AnyArray:
    """Return ids as integers if they are integers of 64 bits, otherwise as text."""
    texts = _text_array(column)
    if not are_integers:
        return texts
    try:
        return texts.astype(np.int64)
    except OverflowError:
        # Integers beyond 64 bits identify units as text just as well.
        return texts


def _numpy_column(column: object) -> AnyArray:
    """Return a column as an array of numbers or of text."""
    array: AnyArray = np.asarray(column)
    if array.dtype.kind == "O":
        return array.astype(np.str_)
    return array


# ---- the queries of designs


def _rows_under_limits(coded: Foreign, units: Units, limits: dict[int, str], *columns: str) -> Foreign:
    """Return the query for the rows whose digest is at most the limit of their code, if the code has one.

    `coded` has the columns `code` and `digest`. The result has the ids, `columns` and the stored columns.
    """
    codes = np.array(list(limits), np.int64)
    digests = np.array(list(limits.values()), object)
    limit_table = literal_table({"limited_code": codes, "digest_limit": digests}, units.backend)
    joined = coded.join(limit_table, coded.code == limit_table.limited_code)
    selected = joined.filter(joined.digest <= joined.digest_limit)
    return selected.select("unit_id", *columns, *_stored_columns(units))


def _digest_query(units: Units, columns: DigestedColumns, seed: int, limit: int = -1) -> Foreign:
    """Return the query for the sums of the population's digest, and for the units with keys up to `limit`.

    Each sum consists of two halves, which fit 64 bits for up to 2³¹ units. No unit has a key below a negative
    limit.
    """
    text = ibis.literal(f"{seed}:") + units.table.unit_id
    table = units.table.mutate(key=key_bits(units.backend, text))
    measures = {"size": table.count(), "ids": table.key.sum().cast("int64")}
    # The factors of the keys: digits of numbers, then the hashes of levels.
    evaluator = TableEvaluator(units, table)
    number_digits = [
        digits(table[column], exponent, evaluator) for column, exponent in columns.numbers.values()
    ]
    factors = [digit.cast("int64") for digit in chain.from_iterable(number_digits)]
    factors += [key_bits(units.backend, table[column]) >> 1 for column in columns.groups.values()]
    for number, factor in enumerate(factors):
        product = table.key * factor
        measures[f"high{number}"] = (product >> _HALF_BITS).sum().cast("int64")
        measures[f"low{number}"] = (product & (2**_HALF_BITS - 1)).sum().cast("int64")
    if limit >= 0:
        rows = ibis.struct({name: table[name] for name in ("unit_id", *_stored_columns(units))})
        measures["rows"] = rows.collect(where=table.key <= limit)
    return table.aggregate(**measures)


def _digest_of_sums(columns: DigestedColumns, row: Mapping[str, Foreign]) -> PopulationDigest:
    """Return the digest from the result of `_digest_query`."""
    n_sums = len([name for name in row if name.startswith("high")])
    sums = [(int(row[f"high{number}"]) << _HALF_BITS) + int(row[f"low{number}"]) for number in range(n_sums)]
    return columns.digest(int(row["size"]), int(row["ids"]), sums)


def _stored_columns(units: Units) -> list[str]:
    """Return the columns of the table that a sample stores for the drawn units."""
    return [*units.numbers.values(), *units.categories.values(), *units.shown.values()]


def _digest(units: Units, seed: int) -> Foreign:
    """Return the MD5 digest of seed and id, whose first digits are the permanent random number."""
    return md5_digest(units.backend, ibis.literal(f"{seed}:") + units.table.unit_id)


def _digest_limit(key: int) -> str:
    """Return the largest digest whose first digits are those of `key`."""
    return f"{min(key, _MAX_KEY):0{KEY_DIGITS}x}{_LARGEST_REST_OF_DIGEST}"
