"""Files as tables: DuckDB reads text, JSON Lines and Parquet in place; libraries read the other formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stratal.errors import InputError, unreadable_file_error
from stratal.tables import files, parquet, source
from stratal.tables.csv_files import csv_table
from stratal.tables.duckdb_sql import (
    duckdb_path,
    function_sql,
    literal_path,
    needs_link,
    quote_name,
    quote_text,
)
from stratal.tables.engine import duckdb_connection
from stratal.tables.frames import arrow_table
from stratal.tables.json_files import json_document_table, json_lines_table
from stratal.tables.log_tables import log_table
from stratal.tables.logs.hugging_face import read_saved_dataset
from stratal.tables.logs.inspect_ai import read_inspect_file
from stratal.tables.number_columns import with_shares
from stratal.tables.remote_files import address_of, fetch_copy, register_address
from stratal.tables.source import ColumnSelection, ReadOptions, Rows, Table, translate_engine_errors
from stratal.tables.spark_files import read_on_spark
from stratal.tables.workbooks import workbook_table


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
    return with_shares(_open_table(path, source.check_read_options(options or {}), is_wanted_sheet))


def _open_table(
    path: str | os.PathLike[str],
    options: ReadOptions,
    is_wanted_sheet: Callable[[Sequence[str]], bool],
) -> Table:
    """Open a file as a table whose percentages are text."""
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
            return csv_table(connection, file, options.get("delimiter"))
        if file_format == "xlsx":
            return workbook_table(connection, file, is_wanted_sheet)
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
    table = _open_table(copy, options | {"format": file_format, "directory": False}, is_wanted_sheet)
    return replace(
        table,
        table_name=address,
        read_columns=lambda selection: replace(table.read_columns(selection), table_name=address),
    )


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
    # Columns in the names of folders, each with a part in such a folder.
    partition_parts = {
        key: part for part in local_parts for key in parquet.partition_keys(part.relative_to(file))
    }
    options = {}
    if local_parts:
        options = {"hive_partitioning": bool(partition_parts), "union_by_name": len(local_parts) > 1}
        if partition_parts:
            options["hive_types_autocast"] = False
    else:
        register_address(connection, str(file))
    # DuckDB takes the partitions from the names of the folders, which a link would hide.
    if partition_parts and needs_link(str(file)):
        raise InputError(
            f"{file}: the folder of a partitioned table must not contain a backslash or begin with ~",
            action="Rename the folder.",
        )
    paths = [quote_text(duckdb_path(part) if local_parts else str(part)) for part in parts]
    sql_options = {name: str(value).lower() for name, value in options.items()}
    from_clause = function_sql("read_parquet", f"[{', '.join(paths)}]", **sql_options)
    with translate_engine_errors(str(file)):
        relation = connection.sql(f"SELECT * FROM {from_clause}")
    if local_parts:
        names = parquet.parquet_column_names(local_parts[0], len(relation.columns))
    else:
        names = []
    names += relation.columns[len(names) :]
    columns = _column_expressions(relation, names)

    def read_columns(selection: ColumnSelection) -> Rows:
        selected_names = selection.existing_columns(columns)
        if local_parts:
            parquet.refuse_unlike_parts(local_parts, selected_names, partition_parts)
            for part in local_parts:
                parquet.refuse_expanding_columns(part, selection.existing_columns(names))
        selected_columns = {name: columns[name] for name in selected_names}
        return Rows(
            table_name=str(file), connection=connection, from_clause=from_clause, columns=selected_columns
        )

    # Nested fields follow the columns.
    nested_names = list(columns)[len(set(names)) :]
    return Table(table_name=str(file), names=(*names, *nested_names), read_columns=read_columns)


def _column_expressions(relation: Any, names: Sequence[str]) -> dict[str, str]:
    """Return the SQL expression of each column of a DuckDB relation by name, then those of nested fields.

    `names` are the columns' names in the file, which differ from DuckDB's if a name occurs several times.
    """
    # If a name occurs several times, its first column is read: in reverse order, it is stored last.
    column_types = dict(zip(reversed(names), reversed(relation.types), strict=True))
    top_columns = dict(zip(reversed(names), map(quote_name, reversed(relation.columns)), strict=True))
    fields = parquet.field_paths(
        {name: column_types[name] for name in names},
        lambda column_type: dict(column_type.children) if column_type.id == "struct" else {},
    )
    return {
        name: "".join([top_columns[top], *(f"[{quote_text(field)}]" for field in inner_fields)])
        for name, (top, *inner_fields) in fields.items()
    }


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


# Readers of the other formats by name; those of CSV files and workbooks have further arguments.
_READERS = {
    "jsonl": json_lines_table,
    "json": json_document_table,
    "feather": _feather_table,
    "eval": _inspect_table,
}
