"""A source's rows as units: ids as text, numbers as doubles, categories as text, whatever they were.

Everything here is a lazy Ibis expression. The canonical texts are those of `stratal.randomness.id_text`, so
that 7 in a CSV file, a Parquet BIGINT and a dataframe's 7.0 are one id and one category.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stratal.errors import InputError, near_names
from stratal.population.tables.declaration import Declaration
from stratal.population.tables.engine import moment_text
from stratal.population.tables.source import Source

WHOLE_LIMIT = 2.0**53
"""Floating-point ids are taken as integers below this."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """A lazy table with one row per unit and columns of known kinds.

    Parameters
    ----------
    table : Ibis table
        Columns `unit_id` (text), `unit_key` (to find duplicates by), then numbers, categories, payload.
    numbers, categories, shown : mapping of str to str
        The user's column names to the table's: doubles, text, and values as they are.
    integer_ids : bool
        Whether ids are integers, returned as such.
    backend : Ibis backend
        Runs the queries.
    """

    table: Any
    numbers: Mapping[str, str]
    categories: Mapping[str, str]
    shown: Mapping[str, str]
    integer_ids: bool
    backend: Any

    def number(self, name: str) -> Any:
        """Return the Ibis column of a proxy or a feature."""
        return self.table[self.internal(name, self.numbers)]

    def internal(self, name: str, kind: Mapping[str, str]) -> str:
        """Return the table's own name of a column, of this kind or any other."""
        for mapping in (kind, self.numbers, self.categories):
            if name in mapping:
                return mapping[name]
        raise InputError(
            f"no such column: {name!r}", allowed=near_names(name, (*self.numbers, *self.categories))
        )


def units_of(source: Source, declared: Declaration) -> Units:
    """Return the source's rows as units.

    Raises
    ------
    InputError
        For a column whose type cannot be an id, a number or a category.
    """
    raw_id = source.column(declared.id)
    numbers = {name: f"x{i}" for i, name in enumerate(declared.numbers)}
    categories = {name: f"g{i}" for i, name in enumerate(declared.groups)}
    shown = {name: f"s{i}" for i, name in enumerate(declared.shown)}
    where = f"{source.label}: column"
    columns = {"unit_id": id_text_of(raw_id, f"{where} {declared.id!r}")}
    columns["unit_key"] = raw_id if raw_id.type().is_integer() else columns["unit_id"]
    columns |= {numbers[name]: number(source, name, f"{where} {name!r}") for name in numbers}
    columns |= {categories[name]: category(source.column(name), f"{where} {name!r}") for name in categories}
    columns |= {shown[name]: source.column(name) for name in shown}
    return Units(
        table=source.table.select(**columns),
        numbers=numbers,
        categories=categories,
        shown=shown,
        integer_ids=_are_integers(raw_id.type()),
        backend=source.backend,
    )


def _are_integers(kind: Any) -> bool:
    return bool(kind.is_integer() or kind.is_floating() or _is_whole_decimal(kind))


def _is_whole_decimal(kind: Any) -> bool:
    return bool(kind.is_decimal() and kind.scale == 0)


def id_text_of(column: Any, name: str) -> Any:
    """Return the text of ids as an Ibis expression, null where a float is no whole number below 2⁵³.

    Examples
    --------
    >>> import ibis
    >>> id_text_of(ibis.literal(7.0), "column 'id'").type().is_string()
    True
    """
    kind = column.type()
    if kind.is_string():
        return column
    if kind.is_floating():
        return whole_number(column).cast("string")
    if kind.is_uuid():
        return column.cast("string").lower()
    if kind.is_integer() or _is_whole_decimal(kind) or kind.is_null():
        return column.cast("string")
    raise InputError(
        f"{name} has a type that cannot be an id",
        given=str(kind),
        allowed="text, integers, whole floats, UUIDs",
        action="Make a text column of it.",
    )


def is_whole(column: Any) -> Any:
    """Return whether each floating-point value is a whole number below 2⁵³, as an Ibis expression."""
    return whole_number(column).notnull()


def whole_number(column: Any) -> Any:
    """Return floating-point values as integers, null where they are not whole or not below 2⁵³.

    Examples
    --------
    >>> import ibis
    >>> whole_number(ibis.literal(7.0)).type().is_integer()
    True
    """
    import ibis

    double = column.cast("float64")
    bounded = ibis.ifelse(double.abs() < WHOLE_LIMIT, double, ibis.null("float64"))
    integer = bounded.cast("int64")
    return ibis.ifelse(integer.cast("float64") == double, integer, ibis.null("int64"))


def number(source: Source, name: str, words: str | None = None) -> Any:
    """Return a column as numbers, text that is none as null; an error calls it by `words`."""
    words = words or f"{source.label}: column {name!r}"
    column = source.column(name)
    kind = column.type()
    if source.is_text(name):
        return number_of_text(column)
    if kind.is_boolean():
        return column.cast("int8").cast("float64")
    if kind.is_numeric() or kind.is_null():
        return column.cast("float64")
    raise InputError(f"{words} is not numeric", given=str(kind), allowed="numbers")


def number_of_text(column: Any) -> Any:
    """Return text as numbers, null where it is none; `1_0`, which engines and Python read as 10, is none.

    Examples
    --------
    >>> import ibis
    >>> number_of_text(ibis.literal("1_0")).type().is_floating()
    True
    """
    import ibis

    return ibis.ifelse(column.contains("_"), ibis.null("float64"), column.try_cast("float64"))


def with_point(column: Any) -> Any:
    """Return text as numbers, a decimal comma as a point and a percent sign left out; null where it is none.

    Examples
    --------
    >>> import ibis
    >>> with_point(ibis.literal("97,6 %")).type().is_floating()
    True
    """
    return number_of_text(column.replace(",", ".").replace("%", "").strip())


def category(column: Any, words: str) -> Any:
    """Return a column as the text of categories, null where there is none; an error calls it by `words`."""
    import ibis

    kind = column.type()
    if kind.is_boolean():
        return ibis.cases((column, "True"), (~column, "False"))
    if kind.is_floating():
        double = ibis.ifelse(column.isnan(), ibis.null("float64"), column.cast("float64"))
        return whole_number(double).cast("string").coalesce(double.cast("string"))
    if kind.is_binary() or kind.is_nested():
        raise InputError(f"{words} cannot be a group", given=str(kind), allowed="text, numbers, dates")
    if kind.is_timestamp():
        return moment_text(column)
    return column.cast("string")
