"""Rules as queries: each kind of rule registers how it puts a table's units into strata.

To add a rule, register a function with `with_codes.register` that returns the table with one more column,
`out`, of integer codes.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from stratal.errors import InputError
from stratal.population.units import Units
from stratal.strata.rule import Categories, CutPoints, Everything, Rule

_FEW_LEVELS = 16


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
    import ibis

    return table.mutate(**{out: ibis.literal(0, "int64")})


@with_codes.register
def _(rule: CutPoints, units: Units, table: Any, out: str = "code") -> Any:
    column = table[units.internal(rule.column, units.numbers)]
    return table.mutate(**{out: _halving(column, rule.cuts.tolist(), 0, len(rule.cuts)).cast("int64")})


def _halving(column: Any, cuts: list[float], first: int, last: int) -> Any:
    """Return nested choices, so that a value meets log₂ H cut points and not H."""
    import ibis

    if first == last:
        return ibis.literal(first, "int32")
    middle = (first + last) // 2
    below = _halving(column, cuts, first, middle)
    return ibis.ifelse(column < double(cuts[middle]), below, _halving(column, cuts, middle + 1, last))


@with_codes.register
def _(rule: Categories, units: Units, table: Any, out: str = "code") -> Any:
    import ibis

    level = units.internal(rule.column, units.categories)
    if len(rule.levels) <= _FEW_LEVELS:
        text = table[level]
        branches = [(text == name, code) for name, code in zip(rule.levels, rule.codes.tolist(), strict=True)]
        return table.mutate(**{out: ibis.cases(*branches).cast("int64")})
    known = lookup({f"{out}_level": np.array(rule.levels, dtype=object), out: rule.codes})
    joined = table.left_join(known, table[level] == known[f"{out}_level"])
    return joined.drop(f"{out}_level")


def lookup(columns: dict[str, Any]) -> Any:
    """Return a small table to join with, from arrays by column name.

    Examples
    --------
    >>> lookup({"code": np.array([0, 1])}).columns
    ('code',)
    """
    import ibis
    import pyarrow as pa

    return ibis.memtable(pa.table({name: pa.array(values) for name, values in columns.items()}))


def double(value: float) -> Any:
    """Return a number as an Ibis literal that every engine parses to the very same double.

    Engines may take `0.1` in a query as a decimal and round it twice on its way to a double; text, once.

    Examples
    --------
    >>> double(0.1).type().is_floating()
    True
    """
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")
