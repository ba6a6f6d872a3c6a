"""CSV files as tables of text columns, which DuckDB reads in place."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from stratal.errors import InputError
from stratal.tables import files, source
from stratal.tables.duckdb_sql import columns_sql, duckdb_path, function_sql, quote_text
from stratal.tables.log_tables import log_table
from stratal.tables.logs.reading import read_log_table
from stratal.tables.number_columns import csv_number_format, with_decimal_points
from stratal.tables.row_lines import csv_row_lines, row_locator
from stratal.tables.source import ColumnSelection, Rows, Table


def csv_table(connection: object, file: Path, delimiter: str | None) -> Table:
    """Return a CSV file as a table of text columns, or as the table of a log that a tool wrote."""
    delimiter, first_line, names = files.csv_header(file, delimiter)
    if names is None:
        raise InputError(f"{file} is empty", allowed="a header and one row per unit")
    log = read_log_table(file, names, delimiter)
    if log is not None:
        return log_table(connection, log, str(file))
    # If a name occurs several times, its first column is read: in reverse order, it is stored last.
    internal_names = {name: f"c{position}" for position, name in reversed(list(enumerate(names)))}
    is_small = file.stat().st_size <= source.MAX_STORED_BYTES
    row_location = row_locator(file, lambda text: csv_row_lines(text, delimiter))
    stated_delimiter = files.first_line_delimiter(file)
    delimiter_notes: tuple[str, ...] = ()
    if stated_delimiter is not None:
        delimiter_notes = (f"{file}: the first line, 'sep={stated_delimiter}', names the delimiter",)
    all_rows = Rows(
        table_name=str(file),
        connection=connection,
        from_clause=_csv_sql(file, len(names), delimiter, first_line - 1),
        columns=internal_names,
        all_text=True,
        materialise=is_small,
        row_location=row_location,
        notes=delimiter_notes,
    )
    number_format_of_file = cache(lambda: csv_number_format(all_rows, internal_names, delimiter))

    def read_columns(selection: ColumnSelection) -> Rows:
        rows = replace(
            all_rows, columns={name: internal_names[name] for name in selection.existing_columns(names)}
        )
        # Counting blank rows reads the whole file once more. A missing id column is an error, which the
        # caller raises.
        if is_small and (selection.id in rows.columns or not selection.id):
            rows = _drop_blank_rows(rows, rows.columns.get(selection.id), len(names))
        return with_decimal_points(rows, selection, number_format_of_file())

    return Table(table_name=str(file), names=tuple(names), read_columns=read_columns)


def _csv_sql(file: Path, n_columns: int, delimiter: str, skipped_lines: int) -> str:
    """Return the SQL of a CSV file with text columns `c0`, `c1`, …, without detection of types.

    `skipped_lines` is the number of lines before the header.
    """
    rows = function_sql(
        "read_csv",
        quote_text(duckdb_path(file)),
        columns=columns_sql((f"c{position}" for position in range(n_columns)), "VARCHAR"),
        header="true",
        auto_detect="false",
        skip=str(skipped_lines),
        delim=quote_text(delimiter),
        hive_partitioning="false",
        max_line_size=str(files.MAX_LINE_CHARACTERS),
        buffer_size=str(2 * files.MAX_LINE_CHARACTERS),
    )
    # In a file with one column, a blank line is a missing value and no unit.
    if n_columns == 1:
        return f"(SELECT * FROM {rows} WHERE c0 IS NOT NULL)"
    return rows


# Regular expression of DuckDB for a character that Python's `str.strip` does not remove.
_VISIBLE_CHARACTER = r"[^\s\p{Z}\x0b\x1c-\x1f\x85]"


def _drop_blank_rows(rows: Rows, id_column: str | None, n_columns: int) -> Rows:
    """Return the rows without the blank rows that spreadsheets write, and with a note on their number.

    `id_column` is the internal name of the id column. A file in which every row has an id has no blank rows,
    so that no other column needs to be read.
    """
    if id_column is not None:
        is_blank_id = f"{id_column} IS NULL OR trim({id_column}) = ''"
        if not rows.query_row(f"count(*) FILTER ({is_blank_id})")[0]:
            return rows
    row_text = f"concat({', '.join(f'c{position}' for position in range(n_columns))})"
    not_blank = f"regexp_matches({row_text}, '{_VISIBLE_CHARACTER}')"
    blank_count = rows.query_row(f"count(*) FILTER (NOT {not_blank})")[0]
    from_clause = f"(SELECT * FROM {rows.from_clause} WHERE {not_blank})"
    if blank_count:
        notes = blank_note(rows.table_name, blank_count)
        return replace(rows, from_clause=from_clause, notes=(*rows.notes, *notes))
    return rows


def blank_note(table_name: str, count: int) -> tuple[str, ...]:
    """Return the note on the number of omitted blank rows; empty for 0."""
    if not count:
        return ()
    return (f"{table_name}: {count:,} blank row{'s were' if count > 1 else ' was'} left out",)
