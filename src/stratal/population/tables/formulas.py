"""Formulas of columns as queries: the engine of `population.expressions` that works on Ibis columns."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any

from stratal.population.cells import Cells
from stratal.population.expressions import Expression
from stratal.population.rules.derived import CELL, INFLUENCE, Derived
from stratal.population.tables.engine import double
from stratal.population.tables.units import Units


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

    def logistic(self, value: Any) -> Any:
        """Return 1 / (1 + exp(−value))."""
        return 1.0 / (1.0 + (-value).exp())

    def exponential(self, value: Any) -> Any:
        """Return exp(value)."""
        return value.exp()

    def constant(self, value: float) -> Any:
        """Return one number for every unit."""
        return double(value)

    def at_least(self, value: Any, least: float) -> Any:
        """Return the larger of a value and a constant."""
        import ibis

        return ibis.greatest(value, double(least))


def cell_column(cells: Cells, columns: TableColumns) -> Any:
    """Return each unit's cell as text.

    Examples
    --------
    >>> import ibis, pyarrow as pa
    >>> table = ibis.memtable(pa.table({"x0": [0.25]}))
    >>> units = Units(table=table, numbers={"p": "x0"}, categories={}, shown={}, integer_ids=True,
    ...               backend=None)
    >>> cell_column(Cells(names=("all",)), TableColumns(units, table)).type().is_string()
    True
    """
    import ibis

    last = ibis.literal(cells.names[-1])
    branches = [
        (test.on(columns) > 0.5, ibis.literal(name))
        for name, test in zip(cells.names[:-1], cells.tests, strict=True)
    ]
    return ibis.cases(*branches, else_=last) if branches else last


def with_formulas(rule: Derived, units: Units, table: Any, out: str) -> tuple[Any, Units]:
    """Return a table with the two columns that a derived rule looks at, and units that know them.

    Examples
    --------
    >>> import ibis, pyarrow as pa
    >>> from stratal.population.expressions import Number
    >>> from stratal.population.rules.rule import Everything
    >>> table = ibis.memtable(pa.table({"x0": [0.25]}))
    >>> units = Units(table=table, numbers={"p": "x0"}, categories={}, shown={}, integer_ids=True,
    ...               backend=None)
    >>> rule = Derived(inner=Everything(), cells=Cells(names=("all",)), influence=Number(name="p"))
    >>> with_formulas(rule, units, table, "code")[0].columns
    ('x0', 'code_influence', 'code_cell')
    """
    columns = TableColumns(units, table)
    names = {INFLUENCE: f"{out}_{INFLUENCE}", CELL: f"{out}_{CELL}"}
    made = {names[INFLUENCE]: rule.influence.on(columns), names[CELL]: cell_column(rule.cells, columns)}
    known = replace(
        units,
        numbers={**units.numbers, INFLUENCE: names[INFLUENCE]},
        categories={**units.categories, CELL: names[CELL]},
    )
    return table.mutate(**made), known


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
