"""Rules as queries: each kind of rule registers how it puts a table's units into strata.

To add a rule, register a function with `with_codes.register` that returns the table with one more column,
`out`, of integer codes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce, singledispatch
from operator import add, and_
from typing import Any

import ibis
import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.population.expressions import Expression
from stratal.population.queries.units import Units
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
from stratal.tables.engine import double, small_table


class TableColumns:
    """The columns of a table's units, for formulas.

    Parameters
    ----------
    units : Units
    table : Ibis table
        `units.table`, or made of it by adding columns.

    Examples
    --------
    >>> import ibis, pyarrow as pa
    >>> table = ibis.memtable(pa.table({"x0": [0.25]}))
    >>> units = Units(table=table, numbers={"p": "x0"}, categories={}, shown={}, integer_ids=True,
    ...               backend=None)
    >>> from stratal.population.expressions import Number
    >>> (2.0 * Number(name="p")).on(TableColumns(units, table)).type().is_floating()
    True
    """

    def __init__(self, units: Units, table: Any) -> None:
        self._units, self._table = units, table

    def number(self, name: str) -> Any:
        """Return a numeric column."""
        return self._table[self._units.internal(name, self._units.numbers)]

    def by_level(
        self, name: str, levels: tuple[str, ...], values: tuple[float, ...], otherwise: float
    ) -> Any:
        """Return the number of each unit's level of a group column."""
        import ibis

        column = self._table[self._units.internal(name, self._units.categories)]
        branches = [(column == level, double(value)) for level, value in zip(levels, values, strict=True)]
        return ibis.cases(*branches, else_=double(otherwise))

    def same(self, names: tuple[str, ...]) -> Any:
        """Return 1 where group columns all agree, else 0."""
        import ibis

        first, *others = (self._table[self._units.internal(name, self._units.categories)] for name in names)
        return ibis.ifelse(reduce(and_, (first == other for other in others)), double(1.0), double(0.0))

    def apply(self, function: str, value: Any) -> Any:
        """Return a function of a value, such as `floor`."""
        return getattr(value, function)()

    def constant(self, value: float) -> Any:
        """Return one number for every unit."""
        return double(value)

    def at_least(self, value: Any, least: float) -> Any:
        """Return the larger of a value and a constant."""
        import ibis

        return ibis.greatest(value, double(least))


def query_averages(formulas: list[Expression], units: Units) -> Any:
    """Return the query of the means of formulas: one row, `m0`, `m1`, ….

    Examples
    --------
    >>> import ibis, pyarrow as pa
    >>> from stratal.population.expressions import Number
    >>> table = ibis.memtable(pa.table({"x0": [0.25, 0.75]}))
    >>> units = Units(table=table, numbers={"p": "x0"}, categories={}, shown={}, integer_ids=True,
    ...               backend=None)
    >>> query_averages([Number(name="p")], units).columns
    ('m0',)
    """
    columns = TableColumns(units, units.table)
    made = units.table.mutate(**{f"f{j}": formula.on(columns) for j, formula in enumerate(formulas)})
    return made.aggregate(**{f"m{j}": made[f"f{j}"].mean() for j in range(len(formulas))})


_FEW_LEVELS = 16
"""Up to so many categories are branches of the query itself; more are joined from a small table."""


@singledispatch
def with_codes(rule: Rule, units: Units, table: Any, out: str = "code") -> Any:
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
    raise InputError(
        f"a table cannot be stratified by a rule of kind {rule.kind!r}",
        action="Load the population into memory: Population.from_arrays.",
    )


@with_codes.register
def _(rule: Everything, units: Units, table: Any, out: str = "code") -> Any:
    return table.mutate(**{out: ibis.literal(0, "int64")})


@with_codes.register
def _(rule: CutPoints, units: Units, table: Any, out: str = "code") -> Any:
    column = table[units.internal(rule.column, units.numbers)]
    return table.mutate(**{out: _halving(column, rule.cuts.tolist(), 0, len(rule.cuts)).cast("int64")})


def _halving(column: Any, cuts: list[float], first: int, last: int) -> Any:
    """Return nested choices, so that a value meets log₂ H cut points and not H."""
    if first == last:
        return ibis.literal(first, "int32")
    middle = (first + last) // 2
    below = _halving(column, cuts, first, middle)
    return ibis.ifelse(column < double(cuts[middle]), below, _halving(column, cuts, middle + 1, last))


@with_codes.register
def _(rule: Categories, units: Units, table: Any, out: str = "code") -> Any:
    level = units.internal(rule.column, units.categories)
    if len(rule.levels) <= _FEW_LEVELS:
        text = table[level]
        branches = [(text == name, code) for name, code in zip(rule.levels, rule.codes.tolist(), strict=True)]
        return table.mutate(**{out: ibis.cases(*branches).cast("int64")})
    known = small_table({f"{out}_level": np.array(rule.levels, dtype=object), out: rule.codes}, units.backend)
    joined = table.left_join(known, table[level] == known[f"{out}_level"])
    return joined.drop(f"{out}_level")


@with_codes.register
def _(rule: Derived, units: Units, table: Any, out: str = "code") -> Any:
    columns = TableColumns(units, table)
    influence, cell = f"{out}_{INFLUENCE}", f"{out}_{CELL}"
    *names, last = (ibis.literal(name) for name in rule.cells.names)
    tests = [(test.on(columns) > 0.5, name) for test, name in zip(rule.cells.tests, names, strict=True)]
    cells = ibis.cases(*tests, else_=last) if tests else last
    made = table.mutate(**{influence: rule.influence.on(columns), cell: cells})
    known = replace(
        units,
        numbers={**units.numbers, INFLUENCE: influence},
        categories={**units.categories, CELL: cell},
    )
    return with_codes(rule.inner, known, made, out).drop(influence, cell)


@with_codes.register
def _(rule: Crossed, units: Units, table: Any, out: str = "code") -> Any:
    if rule.cuts is not None:
        return _cuts_by_level(rule, *rule.cuts, units, table, out)
    group = f"{out}_group"
    coded = with_codes(rule.categories, units, table, group)
    branches, added = [], [group]
    for number, (inner, offset) in enumerate(zip(rule.inner, rule.offsets.tolist(), strict=True)):
        added.append(f"{out}_{number}")
        coded = with_codes(inner, units, coded, added[-1])
        branches.append((coded[group] == number, coded[added[-1]] + offset))
    return coded.mutate(**{out: ibis.cases(*branches).cast("int64")}).drop(*added)


def _cuts_by_level(
    rule: Crossed, column: str, cuts: list[FloatArray], units: Units, table: Any, out: str
) -> Any:
    """Return the codes by a join with the intervals of every level, however many levels there are."""
    levels, lows, highs, codes = [], [], [], []
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
    known = small_table(intervals, units.backend)
    value = table[units.internal(column, units.numbers)]
    level_column = table[units.internal(rule.categories.column, units.categories)]
    here = [level_column == known[names[0]], value >= known[names[1]], value < known[names[2]]]
    return table.left_join(known, here).drop(*names)


@with_codes.register
def _(rule: NearestCentre, units: Units, table: Any, out: str = "code") -> Any:
    if rule.n_strata == 1:
        return table.mutate(**{out: ibis.literal(0, "int64")})
    middle = rule.centres.mean(axis=0)
    centres = (rule.centres - middle) / rule.scale
    scaled = [
        (table[units.internal(name, units.numbers)] - double(middle[j])) / double(rule.scale[j])
        for j, name in enumerate(rule.names)
    ]
    halves = 0.5 * np.sum(centres**2, axis=1)
    scores = {}
    for k, (centre, half) in enumerate(zip(centres, halves, strict=True)):
        products = [column * double(weight) for column, weight in zip(scaled, centre, strict=True)]
        scores[f"{out}_score{k}"] = reduce(add, products) - double(half)
    scored = table.mutate(**scores)
    best = ibis.greatest(*(scored[name] for name in scores))
    branches = [(scored[name] == best, k) for k, name in enumerate(scores)]
    return scored.mutate(**{out: ibis.cases(*branches).cast("int64")}).drop(*scores)
