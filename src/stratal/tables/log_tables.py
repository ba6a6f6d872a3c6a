"""Logs of evaluation tools as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stratal.tables.frames import register_columns
from stratal.tables.logs.log import Log
from stratal.tables.source import ColumnSelection, Rows, Table


def log_table(connection: object, log: Log, table_name: str) -> Table:
    """Return an evaluation tool's log as a table."""

    def read_columns(selection: ColumnSelection) -> Rows:
        columns = {name: _log_column(log.columns[name]) for name in selection.existing_columns(log.columns)}
        return replace(
            register_columns(connection, columns, table_name),
            all_text=True,
            notes=log.notes,
            row_location=lambda row: f"unit {log.columns['id'][row]!r}",
        )

    return Table(table_name=table_name, names=tuple(log.columns), read_columns=read_columns, log=log)


def _log_column(values: Sequence[Any]) -> Any:
    """Return numbers or texts as an Arrow column; a column without values is text.

    Lone surrogates are replaced by question marks, because Arrow cannot store them.
    """
    import pyarrow as pa

    are_texts = any(isinstance(value, str) for value in values) or all(value is None for value in values)
    if not are_texts:
        return pa.chunked_array([pa.array(values)])
    texts = [None if value is None else value.encode("utf-8", "replace").decode() for value in values]
    return pa.chunked_array([pa.array(texts, pa.string())])
