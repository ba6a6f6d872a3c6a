"""Files as tables: DuckDB reads text, JSON Lines and Parquet in place; libraries read the other formats."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, time
from functools import cache, partial
from pathlib import Path
from typing import Any, TextIO

from stratal.errors import (
    InputError,
    MissingExtraError,
    lone_surrogate_error,
    optional_import,
    unreadable_file_error,
)
from stratal.question.facts import is_named_as_answer
from stratal.tables import files, number_format, parquet, source
from stratal.tables.engine import duckdb_connection
from stratal.tables.frames import arrow_table, register_columns
from stratal.tables.logs.hugging_face import read_saved_dataset
from stratal.tables.logs.inspect_ai import read_inspect_file
from stratal.tables.logs.log import Log
from stratal.tables.logs.reading import read_log_document, read_log_lines, read_log_table
from stratal.tables.source import (
    ColumnSelection,
    EveryColumn,
    ReadOptions,
    Rows,
    Table,
    stack_columns,
    translate_engine_errors,
)
from stratal.tables.spark_files import read_on_spark
from stratal.tables.spilling import private_file
from stratal.whole_numbers import MAX_EXACT_INTEGER

# Number of first objects of a JSON Lines file whose keys are the columns.
_MAX_INSPECTED_RECORDS = 1000
# Largest row number whose line is searched for an error message, by reading the file again. This takes a
# second for this number of rows.
_MAX_ROWS_SEARCHED = 2_000_000


def accept_any_sheet(names: Sequence[str]) -> bool:
    """Accept a sheet with any columns (default of `open_table`)."""
    return True


def open_table(
    path: str | os.PathLike[str],
    options: ReadOptions | None = None,
    is_wanted_sheet: Callable[[Sequence[str]], bool] = accept_any_sheet,
) -> Table:
    """Open a file as a table without reading its rows; see `Population.read`.

    Parameters
    ----------
    path : str or path
    options : ReadOptions, optional
    is_wanted_sheet : callable
        `is_wanted_sheet(columns)` returns whether a sheet of a workbook with several sheets is the one to
        read.
    """
    options = source.check_read_options(options or {})
    if options.get("engine") == source.SPARK:
        return read_on_spark(path, options)
    address = address_of(path, remote=options.get("remote", False))
    if address is not None:
        return _remote_table(address, options, is_wanted_sheet)
    file = files.local_path(path)
    connection = duckdb_connection(options.get("threads"), options.get("memory"))
    if options.get("directory", False):
        return _parquet_table(connection, file, parquet.find_part_files(file))
    saved_dataset = read_saved_dataset(file) if file.is_dir() else None
    if saved_dataset is not None:
        return arrow_table(connection, saved_dataset, str(file))
    file_format = files.format_of_file(file, options.get("format"))
    if file_format == "parquet":
        return _parquet_table(connection, file, [file])
    files.check_gzip(file)
    try:
        if file_format == "csv":
            return _csv_table(connection, file, options.get("delimiter"))
        if file_format == "xlsx":
            return _workbook_table(connection, file, is_wanted_sheet)
        return _READERS[file_format](connection, file)
    except files.READ_ERRORS as error:
        raise unreadable_file_error(file, error) from error


def _remote_table(
    address: str, options: ReadOptions, is_wanted_sheet: Callable[[Sequence[str]], bool]
) -> Table:
    """Return a file on the web or in S3: Parquet is read in place, other formats are copied first."""
    file_format = options.get("format") or files.format_of(Path(address.split("?")[0]))
    # DuckDB would search for files if the address contains a wildcard.
    if file_format == "parquet" and literal_path(address) == address:
        connection = duckdb_connection(options.get("threads"), options.get("memory"), shared=False)
        return _parquet_table(connection, address, [address])
    copy = fetch_copy(address)
    table = open_table(copy, options | {"format": file_format, "directory": False}, is_wanted_sheet)
    return replace(
        table,
        table_name=address,
        read_columns=lambda selection: replace(table.read_columns(selection), table_name=address),
    )


# ---- Parquet


def _parquet_table(connection: Any, file: Path | str, parts: Sequence[Path | str]) -> Table:
    """Return a table of one or several Parquet files.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    file : path or str
        The file, the directory, or the address.
    parts : sequence of path or str
        The files to read: `file`, or those in the directory.
    """
    local_parts = [part for part in parts if isinstance(part, Path)]
    partition_parts = {
        key: part for part in local_parts for key in parquet.partition_keys(part.relative_to(file))
    }
    options = {}
    if local_parts:
        options = {"hive_partitioning": bool(partition_parts), "union_by_name": len(local_parts) > 1}
        options |= {"hive_types_autocast": False} if partition_parts else {}
    else:
        register_address(connection, str(file))
    # DuckDB takes the partitions from the names of the folders, which a link would hide.
    if partition_parts and _needs_link(str(file)):
        raise InputError(
            f"{file}: the folder of a partitioned table must not contain a backslash or begin with ~",
            action="Rename the folder.",
        )
    paths = [_quote_text(duckdb_path(part) if local_parts else str(part)) for part in parts]
    sql_options = {name: str(value).lower() for name, value in options.items()}
    from_clause = _function_sql("read_parquet", f"[{', '.join(paths)}]", **sql_options)
    with translate_engine_errors(str(file)):
        relation = connection.sql(f"SELECT * FROM {from_clause}")
    if local_parts:
        names = parquet.parquet_column_names(local_parts[0], len(relation.columns))
    else:
        names = []
    names += relation.columns[len(names) :]
    # If a name occurs several times, its first column is read: in reverse order, it is stored last.
    column_types = dict(zip(reversed(names), reversed(relation.types), strict=True))
    top_columns = dict(zip(reversed(names), map(_quote_name, reversed(relation.columns)), strict=True))
    fields = parquet.field_paths(
        {name: column_types[name] for name in names},
        lambda column_type: dict(column_type.children) if column_type.id == "struct" else {},
    )
    columns = {
        name: "".join([top_columns[top], *(f"[{_quote_text(part)}]" for part in inner)])
        for name, (top, *inner) in fields.items()
    }

    def read_columns(selection: ColumnSelection) -> Rows:
        selected_names = selection.select_from(columns)
        if local_parts:
            parquet.refuse_unlike_parts(local_parts, selected_names, partition_parts)
            for part in local_parts:
                parquet.refuse_expanding_columns(part, selection.select_from(names))
        selected_columns = {name: columns[name] for name in selected_names}
        return Rows(
            table_name=str(file), connection=connection, from_clause=from_clause, columns=selected_columns
        )

    return Table(
        table_name=str(file), names=(*names, *list(columns)[len(column_types) :]), read_columns=read_columns
    )


# ---- text


def _csv_table(connection: object, file: Path, delimiter: str | None) -> Table:
    """Return a CSV file as a table of text columns; the log of an evaluation tool as such."""
    delimiter, first_line, names = files.csv_header(file, delimiter)
    if names is None:
        raise InputError(f"{file} is empty", allowed="a header and one row per unit")
    log = read_log_table(file, names, delimiter)
    if log is not None:
        return log_table(connection, log, str(file))
    # If a name occurs several times, its first column is read: in reverse order, it is stored last.
    internal_names = {name: f"c{position}" for position, name in reversed(list(enumerate(names)))}
    is_small = file.stat().st_size <= source.MAX_STORED_BYTES
    locate = _row_locator(file, lambda text: _csv_row_lines(text, delimiter))
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
        locate=locate,
        notes=delimiter_notes,
    )
    number_format_of_file = cache(lambda: _csv_format(all_rows, internal_names, delimiter))

    def read_columns(selection: ColumnSelection) -> Rows:
        rows = replace(
            all_rows, columns={name: internal_names[name] for name in selection.select_from(names)}
        )
        # Counting blank rows reads the whole file once more.
        if is_small and (selection.id in rows.columns or not selection.id):
            rows = _drop_blank_rows(rows, rows.columns.get(selection.id), len(names))
        return with_decimal_points(rows, selection, number_format_of_file())

    return Table(table_name=str(file), names=tuple(names), read_columns=read_columns)


def _csv_sql(file: Path, columns: int, delimiter: str, skipped_lines: int) -> str:
    """Return the SQL of a CSV file with text columns `c0`, `c1`, …, without detection of types.

    `skipped_lines` is the number of lines before the header.
    """
    rows = _function_sql(
        "read_csv",
        _quote_text(duckdb_path(file)),
        columns=_columns_sql((f"c{position}" for position in range(columns)), "VARCHAR"),
        header="true",
        auto_detect="false",
        skip=str(skipped_lines),
        delim=_quote_text(delimiter),
        hive_partitioning="false",
        max_line_size=str(files.MAX_LINE_CHARACTERS),
        buffer_size=str(2 * files.MAX_LINE_CHARACTERS),
    )
    # In a file with one column, a blank line is a missing value and no unit.
    if columns == 1:
        return f"(SELECT * FROM {rows} WHERE c0 IS NOT NULL)"
    return rows


# Regular expression of DuckDB for a character that is not white space for `str.strip` of Python.
_VISIBLE_CHARACTER = r"[^\s\p{Z}\x0b\x1c-\x1f\x85]"


def _drop_blank_rows(rows: Rows, ids: str | None, columns: int) -> Rows:
    """Return the rows without the blank rows that spreadsheets write, and with a note on their number.

    `ids` is the internal name of the id column, and `columns` the number of columns. A file in which every
    row has an id has no blank rows.
    """
    if ids and not rows.query_row(f"count(*) FILTER ({ids} IS NULL OR trim({ids}) = '')")[0]:
        return rows
    row_text = f"concat({', '.join(f'c{position}' for position in range(columns))})"
    not_blank = f"regexp_matches({row_text}, '{_VISIBLE_CHARACTER}')"
    blank_count = rows.query_row(f"count(*) FILTER (NOT {not_blank})")[0]
    from_clause = f"(SELECT * FROM {rows.from_clause} WHERE {not_blank})"
    notes = blank_note(rows.table_name, blank_count)
    if blank_count:
        return replace(rows, from_clause=from_clause, notes=(*rows.notes, *notes))
    return rows


def blank_note(table_name: str, count: int) -> tuple[str, ...]:
    """Return the note on the number of omitted blank rows; empty for 0."""
    if not count:
        return ()
    return (f"{table_name}: {count:,} blank row{'s were' if count > 1 else ' was'} left out",)


def _json_lines_table(connection: object, file: Path) -> Table:
    """Return a JSON Lines file as a table; the log of an evaluation tool as such."""
    with closing(files.open_text(file)) as text:
        log = read_log_lines((record for _, record in files.json_records(text, file)), str(file))
    if log is not None:
        return log_table(connection, log, str(file))
    with closing(files.open_text(file)) as text:
        records = (record for _, record in files.json_records(text, file, _MAX_INSPECTED_RECORDS))
        return _json_table(connection, file, str(file), records, _row_locator(file, _nonblank_lines))


def _json_table(
    connection: object,
    file: Path,
    table_name: str,
    records: Iterable[dict[str, Any]],
    locate: Callable[[int], str] | None,
) -> Table:
    """Return a JSON Lines file as a table with the columns of its first records.

    Nested columns have dotted names. `locate` is as in `Source`.
    """
    top_names = dict[str, None]()
    nested_names = dict[str, None]()
    for record in records:
        if not top_names.keys() >= record.keys():
            top_names |= dict.fromkeys(record)
        if dict in map(type, record.values()):
            nested_names |= dict.fromkeys(files.flatten_record(record))
    names = tuple(top_names | nested_names)
    if not names:
        raise InputError(f"{table_name} is empty", allowed="one JSON object per line")
    size = file.stat().st_size
    # The unpacked size is unknown, but JSON is rarely compressed to less than a twentieth.
    if file.suffix == ".gz":
        size *= 20
    file_without_mark = cache(partial(remove_byte_order_mark, file))

    def read_columns(selection: ColumnSelection) -> Rows:
        key_paths = {name: _key_path_of_name(name, top_names) for name in selection.select_from(names)}
        numbers = set(selection.numbers)
        if len(key_paths) > _MAX_SQL_KEYS and size <= _MAX_WIDE_BYTES:
            columns = _columns_of_wide_file(file, key_paths, numbers)
            return replace(register_columns(connection, columns, table_name), all_text=True, locate=locate)
        return Rows(
            table_name=table_name,
            connection=connection,
            from_clause=_json_sql(file_without_mark(), key_paths.values()),
            columns={
                name: _json_text_sql(_json_value_sql(place), name in numbers)
                for name, place in key_paths.items()
            },
            all_text=True,
            materialise=size <= source.MAX_STORED_BYTES,
            locate=locate,
        )

    def read_long_format(selection: Sequence[str]) -> Rows:
        key_paths = [_key_path_of_name(name, top_names) for name in selection]
        stacked = stack_columns(
            _json_sql(file_without_mark(), key_paths), list(map(_json_value_sql, key_paths))
        )
        columns = {"column": "c0", "text": _json_text_sql("c1", is_number=False)}
        return Rows(
            table_name=table_name,
            connection=connection,
            from_clause=f"({stacked})",
            columns=columns,
            all_text=True,
        )

    return Table(
        table_name=table_name,
        names=names,
        read_columns=read_columns,
        read_values=partial(_json_values, file, table_name),
        read_long_format=read_long_format,
    )


def _json_values(file: Path, table_name: str) -> tuple[dict[str, list[Any]], list[int]]:
    """Return all columns of a small JSON Lines file as Python values, and the line of each row."""
    with closing(files.open_text(file)) as text:
        numbered_records = list(
            files.limit_records(
                files.json_records(text, file), lambda record: len(str(record[1])), table_name
            )
        )
    records = [files.flatten_record(record) for _, record in numbered_records]
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}, [
        line for line, _ in numbered_records
    ]


# Largest number of keys for which DuckDB converts JSON faster than Python.
_MAX_SQL_KEYS = 200
# Largest size in bytes of a JSON file whose values fit in memory as Python objects.
_MAX_WIDE_BYTES = 2**26


def _key_path_of_name(name: str, keys: Collection[str]) -> tuple[str, ...]:
    """Return the path of keys of a dotted name; `keys` are the keys of the records, which may have dots."""
    if name in keys:
        return (name,)
    top = next(key for key in keys if name.startswith(f"{key}."))
    return (top, *name.removeprefix(f"{top}.").split("."))


def _json_sql(file: Path, key_paths: Iterable[Sequence[str]]) -> str:
    """Return the SQL of a JSON Lines file with a column of JSON for the first key of each path."""
    return _function_sql(
        "read_json",
        _quote_text(duckdb_path(file)),
        columns=_columns_sql(dict.fromkeys(key_path[0] for key_path in key_paths), "JSON"),
        format="'newline_delimited'",
        hive_partitioning="false",
        # Detection by DuckDB would take longer than reading.
        records="true",
        maximum_object_size=str(files.MAX_LINE_CHARACTERS),
    )


def _json_value_sql(key_path: Sequence[str]) -> str:
    """Return the SQL of the JSON value at a path of keys."""
    # A JSON pointer (RFC 6901), in which ~ and / of keys are escaped.
    pointer = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in key_path[1:])
    if pointer:
        return f"json_extract({_quote_name(key_path[0])}, {_quote_text(pointer)})"
    return _quote_name(key_path[0])


def _json_text_sql(column: str, is_number: bool) -> str:
    """Return the SQL of a column of JSON as text.

    Text is unquoted, and numbers keep their digits. As in a dataframe, whole floating-point numbers below 2⁵³
    become integers, truth values are written as in Python, and a NaN is missing unless the column
    `is_number`.
    """
    text = f"({column} ->> '$')"
    number = f"TRY_CAST({column} ->> '$' AS DOUBLE)"
    is_whole = f"({number} = floor({number}) AND abs({number}) < {MAX_EXACT_INTEGER:.0f})"
    nan = "" if is_number else f"WHEN {text} = 'NaN' THEN NULL "
    return (
        f"CASE json_type({column}) WHEN 'BOOLEAN' THEN upper({text}[1]) || {text}[2:] "
        f"WHEN 'DOUBLE' THEN CASE {nan}WHEN {is_whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) "
        f"ELSE {text} END ELSE {text} END"
    )


class _JsonNumber(str):
    """A number of JSON as text, with its digits."""

    __slots__ = ()


def _columns_of_wide_file(
    file: Path, key_paths: dict[str, tuple[str, ...]], numbers: set[str]
) -> dict[str, Any]:
    """Return the text columns of a file with many keys, as `_json_text_sql` writes them.

    Unlike with DuckDB, numbers beyond 2⁵³ keep their digits.
    """
    import pyarrow as pa

    columns: dict[str, list[str | None]] = {name: [] for name in key_paths}
    with closing(files.open_text(file)) as text:
        for _, record in files.json_records(text, file, parse_number=_JsonNumber):
            for name, (top_key, *inner_keys) in key_paths.items():
                value = record.get(top_key)
                for key in inner_keys:
                    if isinstance(value, dict):
                        value = value.get(key)
                    else:
                        value = None
                columns[name].append(_json_value_text(value, name in numbers))
    try:
        return {name: pa.chunked_array([pa.array(values, pa.string())]) for name, values in columns.items()}
    except UnicodeEncodeError as error:
        raise lone_surrogate_error(str(file), error.object[error.start : error.end]) from None


def _json_value_text(value: object, is_number: bool) -> str | None:
    """Return a value of JSON as text, as `_json_text_sql` writes it."""
    if isinstance(value, _JsonNumber) and not value.lstrip("-").isdecimal():
        number = float(value)
        if number != number:
            if is_number:
                return "NaN"
            return None
        if number.is_integer() and abs(number) < MAX_EXACT_INTEGER:
            return str(int(number))
        return str(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    return _json_with_digits(value)


def _json_with_digits(value: object) -> str:
    """Return a nested value as JSON, with the digits of its numbers."""
    if isinstance(value, _JsonNumber):
        return str(value)
    if isinstance(value, dict):
        pairs = (
            f"{json.dumps(key, ensure_ascii=False)}:{_json_with_digits(entry)}"
            for key, entry in value.items()
        )
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_json_with_digits, value))}]"
    return json.dumps(value, ensure_ascii=False)


def remove_byte_order_mark(path: Path) -> Path:
    """Return a JSON Lines file, or a copy without its byte order mark, which DuckDB does not accept."""
    with closing(files.open_text(path)) as text:
        if text.buffer.peek(3)[:3] != b"\xef\xbb\xbf":  # type: ignore[attr-defined]
            return path
        copy = private_file(".jsonl")
        with copy.open("w", encoding="utf-8", newline="") as stream:
            shutil.copyfileobj(text, stream)
    return copy


# ---- formats that a library reads


def _json_document_table(connection: object, file: Path) -> Table:
    """Return a table of a log, or of an array of JSON objects, which is converted to JSON Lines."""
    document = files.json_document(file)
    log = read_log_document(document, str(file))
    if log is not None:
        return log_table(connection, log, str(file))
    records = files.json_array(document, file)
    lines = private_file(".jsonl")
    with lines.open("w", encoding="utf-8") as text:
        try:
            text.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        except UnicodeEncodeError as error:
            raise lone_surrogate_error(str(file), error.object[error.start : error.end]) from None
    return _json_table(connection, lines, str(file), records, None)


def _feather_table(connection: object, file: Path) -> Table:
    """Return a Feather file as a table."""
    import pyarrow as pa
    import pyarrow.feather

    try:
        table = pyarrow.feather.read_table(file, memory_map=True)
    except pa.ArrowException as error:
        raise OSError(str(error)) from None
    for name, column in zip(table.column_names, table.columns, strict=True):
        parquet.refuse_long_categories(file, name, column, len(column))
    return arrow_table(connection, table, str(file))


def _inspect_table(connection: object, file: Path) -> Table:
    """Return a log of Inspect as a table."""
    return log_table(connection, read_inspect_file(file), str(file))


def log_table(connection: object, log: Log, table_name: str) -> Table:
    """Return an evaluation tool's log as a table."""

    def read_columns(selection: ColumnSelection) -> Rows:
        columns = {name: _log_column(log.columns[name]) for name in selection.select_from(log.columns)}
        return replace(
            register_columns(connection, columns, table_name),
            all_text=True,
            notes=log.notes,
            locate=lambda row: f"unit {log.columns['id'][row]!r}",
        )

    return Table(table_name=table_name, names=tuple(log.columns), read_columns=read_columns, log=log)


def _log_column(values: Sequence[Any]) -> Any:
    """Return values as an Arrow column; without any value it is text, and lone surrogates are replaced."""
    import pyarrow as pa

    are_texts = any(isinstance(value, str) for value in values) or all(value is None for value in values)
    if not are_texts:
        return pa.chunked_array([pa.array(values)])
    texts = [None if value is None else value.encode("utf-8", "replace").decode() for value in values]
    return pa.chunked_array([pa.array(texts, pa.string())])


# ---- workbooks, read with openpyxl: cells become text, as in a CSV file


def cell_text(value: object) -> str | None:
    """Return a cell as text: whole numbers without a point, dates as 2026-03-01, None if it is empty."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT_INTEGER:
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time.min:
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)


def _open_workbook(path: Path) -> Any:
    """Open a workbook with the saved values of its formulas."""
    with optional_import("openpyxl", extra="excel"):
        import openpyxl

    # The file is read into memory first, because openpyxl leaves a damaged file open.
    content = io.BytesIO(path.read_bytes())
    with _translate_workbook_errors(path):
        return openpyxl.load_workbook(content, read_only=True, data_only=True)


@contextmanager
def _translate_workbook_errors(path: Path) -> Iterator[None]:
    """Translate the errors of a damaged workbook into an `InputError`; errors of XML are SyntaxErrors."""
    # Few tables are workbooks.
    import zipfile
    import zlib

    from openpyxl.utils.exceptions import InvalidFileException

    try:
        yield
    except InputError:
        raise
    except (
        *(SyntaxError, KeyError, ValueError, TypeError, AttributeError, IndexError, EOFError),
        *(zlib.error, zipfile.BadZipFile, InvalidFileException),
    ) as error:
        raise InputError(
            f"{path} is not a readable workbook",
            given=str(error)[:200] or type(error).__name__,
            allowed="an .xlsx file that was saved by a spreadsheet program",
            action="Open the file in a spreadsheet program and save it again.",
        ) from None


def _find_unreadable_cells(book: Any, sheet: Any) -> str:
    """Return a description of the first merged cell or formula without a value, empty if there is none."""
    # Few tables are workbooks.
    from xml.etree.ElementTree import iterparse

    with book._archive.open(sheet._worksheet_path) as stream:
        for _, node in iterparse(stream):
            namespace, _, tag = node.tag.rpartition("}")
            if tag == "mergeCell":
                return f"merged cells: {node.get('ref')}"
            # The cell of a formula whose value is the empty text has the type `str`.
            if tag == "c" and node.get("t") != "str" and node.find(f"{namespace}}}f") is not None:
                if not node.findtext(f"{namespace}}}v"):
                    return f"a formula without a saved value: {node.get('r')}"
            elif tag == "row":
                # Frees the memory of the row.
                node.clear()
    return ""


# Largest number of cells of a sheet: a few compressed bytes may expand to 16,384 columns and a million rows.
_MAX_SHEET_CELLS = 50_000_000


def _read_sheet(sheet: Any, path: Path) -> tuple[tuple[str, ...], list[tuple[int, list[str | None]]], int]:
    """Return the column names, the rows that are not blank with their numbers, and the number of blank rows.

    Empty columns at the end are left out. The size that a sheet states is ignored, since it may be wrong.
    """
    sheet.reset_dimensions()
    rows: list[tuple[int, list[str | None]]] = []
    cells_read = row_number = 0
    for row_number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = [cell_text(value) for value in values]
        while cells and cells[-1] is None:
            cells.pop()
        cells_read += len(cells)
        if cells_read > _MAX_SHEET_CELLS:
            raise files.too_large_error(path)
        if cells:
            rows.append((row_number, cells))
    if not rows:
        return (), [], 0
    (header_row, names), *data_rows = rows
    width = max(len(cells) for _, cells in rows)
    if width * len(rows) > _MAX_SHEET_CELLS:
        raise files.too_large_error(path)
    padded_rows = [(number, cells + [None] * (width - len(cells))) for number, cells in data_rows]
    blank_count = row_number - header_row - len(padded_rows)
    column_names = tuple((name or "").strip() for name in names + [None] * (width - len(names)))
    return column_names, padded_rows, blank_count


def _is_table(names: Sequence[str], rows: Sequence[object]) -> bool:
    """Return whether a sheet has a table: several columns with names, and rows, unlike a page of notes."""
    return sum(map(bool, names)) > 1 and len(rows) > 0


def _workbook_table(
    connection: object, file: Path, is_wanted_sheet: Callable[[Sequence[str]], bool]
) -> Table:
    """Return the only sheet of a workbook with values as a table; of several, the one that is wanted."""
    import pyarrow as pa

    book = _open_workbook(file)
    try:
        with _translate_workbook_errors(file):
            contents = [(sheet, *_read_sheet(sheet, file)) for sheet in book.worksheets]
        nonempty_sheets = [content for content in contents if content[1]]
        if not nonempty_sheets:
            raise InputError(f"{file} is empty", allowed="a header and one row per unit")
        titles = ", ".join(repr(sheet.title) for sheet, *_ in nonempty_sheets)
        wanted_sheets = [
            content for content in nonempty_sheets if len(nonempty_sheets) == 1 or is_wanted_sheet(content[1])
        ]
        if len(wanted_sheets) > 1:
            wanted_sheets = [
                content for content in wanted_sheets if _is_table(*content[1:3])
            ] or wanted_sheets
        if len(wanted_sheets) != 1:
            raise InputError(
                f"{file}: {len(wanted_sheets)} of {len(nonempty_sheets)} sheets have the requested columns",
                given=titles,
                allowed="exactly one",
                action="Save the required sheet as a separate file.",
            )
        sheet, names, filled_rows, blank_count = wanted_sheets[0]
        is_title = len(names) > 1 and names[0] != "" and not any(names[1:])
        if is_title:
            raise InputError(
                f"{file}: the first row of sheet {sheet.title!r} is a title, not a header",
                given=repr(names[0]),
                allowed="a name for each column in the first row",
                action="Delete the rows above the header.",
            )
        with _translate_workbook_errors(file):
            unreadable_cells = _find_unreadable_cells(book, sheet)
        if unreadable_cells:
            raise InputError(
                f"{file}: sheet {sheet.title!r} contains {unreadable_cells}",
                allowed="a value in each cell",
                action="Unmerge merged cells and fill in each row. For formulas, open the workbook in a "
                "spreadsheet program and save it, or paste the formulas as values.",
            )
    finally:
        book.close()
    if len(nonempty_sheets) > 1:
        sheet_notes = [f"{file}: only sheet {sheet.title!r} was read (sheets: {titles})"]
    else:
        sheet_notes = []
    notes = (*sheet_notes, *blank_note(str(file), blank_count))

    def read_columns(selection: ColumnSelection) -> Rows:
        columns = {
            name: pa.array([cells[names.index(name)] for _, cells in filled_rows], pa.string())
            for name in selection.select_from(names)
        }
        rows = replace(
            register_columns(connection, columns, str(file)),
            all_text=True,
            notes=notes,
            locate=lambda row: f"row {filled_rows[row][0]}",
        )
        facts = {
            name: number_format.column_facts([cells[names.index(name)] for _, cells in filled_rows])
            for name in columns
            if name != selection.id
        }
        return with_decimal_points(
            rows, selection, number_format.file_format(facts, may_group=False, shared=False)
        )

    return Table(table_name=str(file), names=names, read_columns=read_columns)


# Readers by format; those of CSV files and workbooks have further arguments.
_READERS = {
    "jsonl": _json_lines_table,
    "json": _json_document_table,
    "feather": _feather_table,
    "eval": _inspect_table,
}


# ---- number formats


# Number of first rows in which columns of numbers are recognised, before their formats are counted in all
# rows.
_HEAD_ROWS = 1_000
# Largest number of columns of one query that counts number formats, which has two expressions for each
# format.
_MAX_FORMAT_COLUMNS = 100


def _csv_format(rows: Rows, columns: dict[str, str], delimiter: str) -> number_format.NumberFormat:
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
        expressions = [number_format.column_facts_sql(columns[name], _quote_text) for name in names]
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
        name: number_format.number_sql(column, file_numbers.decimals[name], _quote_text)
        for name, column in rows.columns.items()
        if name in file_numbers.decimals and name != selection.id
    }
    converted_columns |= {
        name: number_format.share_sql(column, file_numbers.percents[name], _quote_text)
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


# ---- SQL


def _function_sql(function: str, path: str, **options: str) -> str:
    """Return the SQL of a table function such as `read_csv`, with its options."""
    return f"{function}({', '.join([path, *(f'{name} = {value}' for name, value in options.items())])})"


def _columns_sql(names: Iterable[str], type_name: str) -> str:
    """Return the SQL of columns with one type, as an option of `read_csv` and `read_json`."""
    return "{" + ", ".join(f"{_quote_text(name)}: '{type_name}'" for name in names) + "}"


def literal_path(path: str) -> str:
    """Return a path with escaped wildcards, which DuckDB would expand."""
    literal = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
    if "://" in path or os.path.isabs(path):
        return literal
    # DuckDB interprets the text before a colon as a drive or a scheme.
    if ":" in path:
        return f"./{literal}"
    return literal


def duckdb_path(path: Path | str) -> str:
    """Return a local path under which DuckDB opens the same file as Python.

    DuckDB interprets a backslash as a slash, and ~ at the beginning as the home folder. The path of such a
    file is a new symbolic link to it.
    """
    text = str(path)
    if not _needs_link(text):
        return literal_path(text)
    link = private_file("".join(Path(text).suffixes[-2:]).replace("\\", ""))
    link.unlink()
    link.symlink_to(Path(text).resolve())
    return literal_path(str(link))


def _needs_link(path: str) -> bool:
    """Return whether DuckDB would open another file under this path; see `duckdb_path`."""
    return "\\" in path or path.startswith("~")


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# ---- positions of rows


def _row_locator(file: Path, lines: Callable[[TextIO], Iterator[int]]) -> Callable[[int], str]:
    """Return a function that describes a row number, from 0, by its line, which it finds by reading the file.

    `lines(text)` yields the line number of each row. It differs from the row number because of the header,
    blank lines and quoted line breaks.
    """

    def locate(row: int) -> str:
        if row >= _MAX_ROWS_SEARCHED:
            return f"row {row + 1}"
        with closing(files.open_text(file)) as text:
            line = next(itertools.islice(lines(text), row, None), None)
        if line is None:
            return f"row {row + 1}"
        return f"line {line}"

    return locate


def _csv_row_lines(text: TextIO, delimiter: str) -> Iterator[int]:
    """Yield the first line number of each data row that is not blank."""
    rows = itertools.islice(files.csv_records(text, delimiter), 1, None)
    return (line for line, fields in rows if any(field.strip() for field in fields))


def _nonblank_lines(text: TextIO) -> Iterator[int]:
    """Yield the number of each line that is not blank."""
    return (number for number, line in enumerate(text, start=1) if line.strip())


# ---- remote files, read with fsspec only if the user allows it


# An address of a remote file; `Path` removes one of the two slashes after the scheme.
_ADDRESS = re.compile(r"(https?|s3):/+(.+)")

# Other addresses, such as gs:// and hdfs://, which only Spark reads.
_OTHER_ADDRESS = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+://")

# Time of the last change that DuckDB gets for files on the web, whose time is unknown.
_UNKNOWN_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def address_of(path: str | os.PathLike[str], *, remote: bool) -> str | None:
    """Return the address if a path is that of a remote file, None for a local file.

    Raises
    ------
    InputError
        For an address if `remote` is false.
    """
    text = os.fspath(path)
    match = _ADDRESS.fullmatch(text)
    if match is None:
        if _OTHER_ADDRESS.match(text):
            raise InputError(
                f"{text}: only Spark reads addresses of this kind",
                allowed="https://… or s3://… with --remote, or engine='spark' (--engine spark)",
            )
        return None
    address = f"{match[1]}://{match[2]}"
    if not remote:
        raise InputError(
            f"{address} is not on this machine, and remote files are read only on request",
            action="Add remote=True (--remote), or download the file first.",
        )
    return address


def register_address(connection: Any, address: str) -> None:
    """Register the file system of an address with a DuckDB connection, which then reads parts of the file."""
    with remote_filesystem(address) as system:
        # Raises the error for a missing file here, in translated form.
        system.info(address)
        # DuckDB requests the time of the last change, which fsspec does not know for the web.
        if address.startswith("http"):
            system.modified = lambda path: _UNKNOWN_TIME
        connection.register_filesystem(system)


def fetch_copy(address: str) -> Path:
    """Download a remote file and return the copy, which is deleted when the process ends."""
    copy = private_file("-" + (address.split("?")[0].rsplit("/", 1)[-1] or "file"))
    with remote_filesystem(address) as system:
        system.get_file(address, str(copy))
    return copy


@contextmanager
def remote_filesystem(address: str) -> Iterator[Any]:
    """Yield the fsspec file system of an address, and translate its errors into an `InputError`.

    Raises
    ------
    MissingExtraError
        If fsspec, or the package that it requires for this kind of address, is not installed.
    """
    try:
        import fsspec

        yield fsspec.filesystem(address.split(":")[0], skip_instance_cache=True)
    except InputError:
        raise
    except ImportError:
        raise MissingExtraError("fsspec for remote files", extra="remote") from None
    # fsspec passes on the exceptions of its clients, which have no common class.
    except Exception as error:
        if str(error):
            reason = str(error).splitlines()[0]
        else:
            reason = type(error).__name__
        raise InputError(
            f"{address} cannot be fetched",
            given=reason,
            action="Check the address and your credentials, or download the file first.",
        ) from error
