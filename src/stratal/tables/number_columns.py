"""Columns of numbers and percentages in files of text: their format, and their conversion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from stratal.protocols import Foreign
from stratal.tables import number_format
from stratal.tables.duckdb_sql import quote_text
from stratal.tables.source import ColumnSelection, Rows, Table

# Largest number of columns of one query that counts number formats, which has two expressions for each
# format.
_MAX_FORMAT_COLUMNS = 100


def csv_number_format(rows: Rows, columns: dict[str, str], delimiter: str) -> number_format.NumberFormat:
    """Return the number format of a CSV file, from all entries of the columns of numbers.

    `columns` has the SQL expression of each column.
    """
    # In a file whose columns are separated by commas, numbers cannot have decimal commas.
    if delimiter == ",":
        return number_format.file_format({}, point_may_group_thousands=False)
    all_columns = replace(rows, columns=columns)
    head = all_columns.head(list(columns), number_format.HEAD_ROWS)
    number_columns = [
        name for name, entries in head.items() if number_format.count_formats(entries).is_number
    ]
    counts = _format_counts(all_columns, number_columns)
    # Spreadsheets write semicolons where a comma is the decimal mark; `1.234` may then mean a thousand.
    return number_format.file_format(counts, point_may_group_thousands=delimiter == ";")


def _format_counts(rows: Rows, names: Sequence[str]) -> dict[str, number_format.FormatCounts]:
    """Return the number of entries in each number format of columns of text, from all rows."""
    counts = {}
    for start in range(0, len(names), _MAX_FORMAT_COLUMNS):
        group = names[start : start + _MAX_FORMAT_COLUMNS]
        expressions = [number_format.format_counts_sql(rows.columns[name], quote_text) for name in group]
        row = rows.query_row(*itertools.chain.from_iterable(expressions))
        n_values = len(expressions[0])
        for position, name in enumerate(group):
            values = row[position * n_values : (position + 1) * n_values]
            counts[name] = number_format.format_counts_of_row(values)
    return counts


def percentage_columns(rows: Rows, names: Sequence[str]) -> dict[str, number_format.FormatCounts]:
    """Return the counts of formats of the columns of text in which every number has a percent sign."""
    if not names:
        return {}
    candidates = [
        name
        for name, entries in rows.head(names, number_format.HEAD_ROWS).items()
        if any(map(number_format.is_percentage, entries))
    ]
    counts = _format_counts(rows, candidates)
    # The decimal mark of the percentages is None if they are mixed with other numbers.
    return {name: column for name, column in counts.items() if column.percent_mark is not None}


def first_differing_entries(rows: Rows, name: str, *, are_percentages: bool) -> tuple[str, str] | None:
    """Return the first number (or percentage) of a column of text, and the first other entry, of all rows.

    None if one of them does not exist.
    """
    column = rows.columns[name]
    is_usual = f"(TRY_CAST({column} AS DOUBLE) IS NOT NULL)"
    if are_percentages:
        decimal_mark = _format_counts(rows, [name])[name].most_common_mark
        pattern = quote_text(number_format.percentage_pattern(decimal_mark))
        is_usual = f"regexp_full_match(trim({column}), {pattern})"
    is_other = f"NOT {is_usual} AND trim({column}) <> ''"
    usual, other = rows.query_row(
        f"first({column}) FILTER ({is_usual})", f"first({column}) FILTER ({is_other})"
    )
    if usual is None or other is None:
        return None
    return str(usual), str(other)


def share_range_sql(column: str, counts: number_format.FormatCounts) -> tuple[str, str, str]:
    """Return the SQL of the smallest, the largest and the mean share of a column of percentages."""
    share = f"TRY_CAST({number_format.share_sql(column, counts.most_common_mark, quote_text)} AS DOUBLE)"
    return f"min({share})", f"max({share})", f"avg({share})"


def with_shares(table: Table) -> Table:
    """Return a table whose columns of percentages are shares if they are declared to be numbers.

    Others may be classes, such as the labels 10% and 25%.
    """

    def read_columns(selection: ColumnSelection) -> Foreign:
        rows = table.read_columns(selection)
        names = [name for name in (*selection.number_columns, *selection.softmax) if name != selection.id]
        # A table on another engine is not converted.
        if not isinstance(rows, Rows):
            return rows
        return rows_with_shares(rows, [name for name in names if name in rows.columns])

    return replace(table, read_columns=read_columns)


def rows_with_shares(rows: Rows, names: Sequence[str]) -> Rows:
    """Return rows with columns of percentages as shares, and a note on them; others are unchanged."""
    if not names:
        return rows
    numbers = replace(rows, columns={name: rows.columns[name] for name in names})
    types = numbers.types()
    counts = percentage_columns(rows, [name for name in names if types[name] == "varchar"])
    shares = {
        name: number_format.share_sql(rows.columns[name], str(column.percent_mark), quote_text)
        for name, column in counts.items()
    }
    if not rows.all_text:
        # In a table with types, numbers have a type; a text that is no percentage leaves the column text.
        counts = {name: column for name, column in counts.items() if column.has_only_percentages}
        shares = {name: f"CAST({shares[name]} AS DOUBLE)" for name in counts}
    return replace(
        rows,
        columns={**rows.columns, **shares},
        notes=(*rows.notes, *number_format.percentage_notes(counts)),
    )


def with_decimal_points(
    rows: Rows, selection: ColumnSelection, file_format: number_format.NumberFormat
) -> Rows:
    """Return rows of text with numbers written as in Python, and notes on the conversion; ids are unchanged.

    Raises an `InputError` for a column of numbers with two interpretations.
    """
    file_format.require_unambiguous(rows.table_name, selection.number_columns)
    converted_columns = {
        name: number_format.number_sql(column, file_format.decimals[name], quote_text)
        for name, column in rows.columns.items()
        if name in file_format.decimals and name != selection.id
    }
    # Ambiguous columns that are not declared to be numbers may be text. Reading their numbers is an error.
    ambiguous = {name: entry for name, entry in file_format.ambiguous.items() if name in rows.columns}
    notes = (*rows.notes, *number_format.number_format_notes(file_format, list(converted_columns)))
    return replace(rows, columns={**rows.columns, **converted_columns}, notes=notes, ambiguous=ambiguous)
