"""Columns of numbers and percentages in files of text: their format, and their conversion."""

from __future__ import annotations

import itertools
from dataclasses import replace

from stratal.question.facts import is_named_as_answer
from stratal.tables import number_format
from stratal.tables.duckdb_sql import quote_text
from stratal.tables.source import ColumnSelection, EveryColumn, Rows

# Number of first rows in which columns of numbers are recognised, before their formats are counted in all
# rows.
_HEAD_ROWS = 1_000

# Largest number of columns of one query that counts number formats, which has two expressions for each
# format.
_MAX_FORMAT_COLUMNS = 100


def csv_number_format(rows: Rows, columns: dict[str, str], delimiter: str) -> number_format.NumberFormat:
    """Return the number format of a CSV file, from all entries of the columns of numbers."""
    all_columns = replace(rows, columns=columns)
    head = all_columns.head(list(columns), _HEAD_ROWS)
    # In a file whose columns are separated by commas, numbers cannot have decimal commas.
    if delimiter == ",":
        head = {name: entries for name, entries in head.items() if number_format.has_percent_sign(entries)}
    head_facts = {name: number_format.column_facts(entries) for name, entries in head.items()}
    number_columns = [
        name for name, entry in head_facts.items() if entry.is_number or entry.percent_mark is not None
    ]
    facts = {}
    for start in range(0, len(number_columns), _MAX_FORMAT_COLUMNS):
        names = number_columns[start : start + _MAX_FORMAT_COLUMNS]
        expressions = [number_format.column_facts_sql(columns[name], quote_text) for name in names]
        row = all_columns.query_row(*itertools.chain.from_iterable(expressions))
        width = len(expressions[0])
        for position, name in enumerate(names):
            facts[name] = number_format.column_facts_of_row(row[position * width : (position + 1) * width])
    return number_format.file_format(facts, may_group=delimiter == ";")


def with_decimal_points(
    rows: Rows, selection: ColumnSelection, file_numbers: number_format.NumberFormat
) -> Rows:
    """Return rows of text with numbers written as in Python, and notes on the conversion; ids are unchanged.

    Raises
    ------
    InputError
        For a column of numbers with two interpretations.
    """
    file_numbers.require_unambiguous(rows.table_name, selection.numbers)
    converted_columns = {
        name: number_format.number_sql(column, file_numbers.decimals[name], quote_text)
        for name, column in rows.columns.items()
        if name in file_numbers.decimals and name != selection.id
    }
    converted_columns |= {
        name: number_format.share_sql(column, file_numbers.percents[name], quote_text)
        for name, column in rows.columns.items()
        if name in file_numbers.percents and _is_read_as_share(name, selection)
    }
    ambiguous = {name: entry for name, entry in file_numbers.ambiguous.items() if name in rows.columns}
    notes = (*rows.notes, *number_format.number_format_notes(file_numbers, list(converted_columns)))
    return replace(rows, columns={**rows.columns, **converted_columns}, notes=notes, ambiguous=ambiguous)


def _is_read_as_share(name: str, selection: ColumnSelection) -> bool:
    """Return whether a column of percentages is read as numbers: declared numbers, and scores by their names.

    Answers such as 10% and 25%, and the labels that are compared with them, may be classes.
    """
    if name == selection.id:
        return False
    return name in selection.numbers or (isinstance(selection, EveryColumn) and not is_named_as_answer(name))
