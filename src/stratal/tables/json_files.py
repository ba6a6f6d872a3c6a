"""JSON Lines, which DuckDB reads in place, and JSON documents as tables."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from stratal.errors import InputError, lone_surrogate_error
from stratal.tables import files, source
from stratal.tables.duckdb_sql import columns_sql, duckdb_path, function_sql, quote_name, quote_text
from stratal.tables.frames import register_columns
from stratal.tables.log_tables import log_table
from stratal.tables.logs.reading import read_log_document, read_log_lines
from stratal.tables.row_lines import nonblank_lines, row_locator
from stratal.tables.source import ColumnSelection, Rows, Table, stack_columns
from stratal.tables.spilling import private_file
from stratal.whole_numbers import MAX_EXACT_INTEGER

# Number of first objects of a JSON Lines file whose keys are the columns.
_MAX_INSPECTED_RECORDS = 1000


def json_lines_table(connection: object, file: Path) -> Table:
    """Return a JSON Lines file as a table: of a log if an evaluation tool wrote it, else of its objects."""
    with closing(files.open_text(file)) as text:
        log = read_log_lines((record for _, record in files.json_records(text, file)), str(file))
    if log is not None:
        return log_table(connection, log, str(file))
    with closing(files.open_text(file)) as text:
        records = (record for _, record in files.json_records(text, file, _MAX_INSPECTED_RECORDS))
        return _json_table(connection, file, str(file), records, row_locator(file, nonblank_lines))


def json_document_table(connection: object, file: Path) -> Table:
    """Return a JSON document as a table: of a log if an evaluation tool wrote it, else of an object array.

    The array is written to a temporary file of JSON Lines, which DuckDB reads.
    """
    document = files.json_document(file)
    log = read_log_document(document, str(file))
    if log is not None:
        return log_table(connection, log, str(file))
    records = files.json_array(document, file)
    lines = private_file(".jsonl")
    with lines.open("w", encoding="utf-8") as text:
        try:
            text.writelines(map(files.json_line, records))
        except UnicodeEncodeError as error:
            raise lone_surrogate_error(str(file), error.object[error.start : error.end]) from None
    return _json_table(connection, lines, str(file), records, None)


def _json_table(
    connection: object,
    file: Path,
    table_name: str,
    records: Iterable[dict[str, Any]],
    row_location: Callable[[int], str] | None,
) -> Table:
    """Return a JSON Lines file as a table with the columns of its first records.

    Nested columns have dotted names. `row_location` is as in `Source`.
    """
    top_names, names = _names_of_records(records)
    if not names:
        raise InputError(f"{table_name} is empty", allowed="one JSON object per line")
    size = file.stat().st_size
    # The unpacked size is unknown, but JSON is rarely compressed to less than a twentieth.
    if file.suffix == ".gz":
        size *= 20
    file_without_mark = cache(partial(remove_byte_order_mark, file))

    def read_columns(selection: ColumnSelection) -> Rows:
        key_paths = {name: _key_path_of_name(name, top_names) for name in selection.existing_columns(names)}
        number_columns = set(selection.number_columns)
        if len(key_paths) > _MAX_SQL_KEYS and size <= _MAX_WIDE_BYTES:
            columns = _columns_of_wide_file(file, key_paths, number_columns)
            rows = register_columns(connection, columns, table_name)
            return replace(rows, all_text=True, row_location=row_location)
        text_columns = {
            name: _json_text_sql(_json_value_sql(key_path), is_number=name in number_columns)
            for name, key_path in key_paths.items()
        }
        return Rows(
            table_name=table_name,
            connection=connection,
            from_clause=_json_sql(file_without_mark(), key_paths.values()),
            columns=text_columns,
            all_text=True,
            materialise=size <= source.MAX_STORED_BYTES,
            row_location=row_location,
        )

    def read_long_format(selection: Sequence[str]) -> Rows:
        key_paths = [_key_path_of_name(name, top_names) for name in selection]
        from_clause = _json_sql(file_without_mark(), key_paths)
        stacked = stack_columns(from_clause, list(map(_json_value_sql, key_paths)))
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


def _names_of_records(records: Iterable[dict[str, Any]]) -> tuple[Collection[str], tuple[str, ...]]:
    """Return the keys of objects, and these with the dotted names of nested entries, as they occur."""
    keys = dict[str, None]()
    nested_names = dict[str, None]()
    for record in records:
        if not keys.keys() >= record.keys():
            keys |= dict.fromkeys(record)
        if dict in map(type, record.values()):
            nested_names |= dict.fromkeys(files.flatten_record(record))
    return keys, tuple(keys | nested_names)


def _json_values(file: Path, table_name: str) -> tuple[dict[str, list[Any]], list[int]]:
    """Return all columns of a small JSON Lines file as Python values, and the line of each row."""
    with closing(files.open_text(file)) as text:
        numbered_records = files.json_records(text, file)
        limited_records = files.limit_records(
            numbered_records, lambda record: len(str(record[1])), table_name
        )
        lines = []
        records = []
        for line, record in limited_records:
            lines.append(line)
            records.append(files.flatten_record(record))
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}, lines


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
    return function_sql(
        "read_json",
        quote_text(duckdb_path(file)),
        columns=columns_sql(dict.fromkeys(key_path[0] for key_path in key_paths), "JSON"),
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
        return f"json_extract({quote_name(key_path[0])}, {quote_text(pointer)})"
    return quote_name(key_path[0])


def _json_text_sql(column: str, *, is_number: bool) -> str:
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
    file: Path, key_paths: dict[str, tuple[str, ...]], number_columns: set[str]
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
                columns[name].append(_json_value_text(value, is_number=name in number_columns))
    try:
        return {name: pa.chunked_array([pa.array(values, pa.string())]) for name, values in columns.items()}
    except UnicodeEncodeError as error:
        raise lone_surrogate_error(str(file), error.object[error.start : error.end]) from None


def _json_value_text(value: object, *, is_number: bool) -> str | None:
    """Return a value of JSON as text, as `_json_text_sql` writes it."""
    if isinstance(value, _JsonNumber) and not value.lstrip("-").isdecimal():
        number = float(value)
        if math.isnan(number):
            return "NaN" if is_number else None
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
