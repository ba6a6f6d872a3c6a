"""Files as DuckDB reads them: CSV, JSON Lines and remote Parquet as tables of the columns that are used."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stratal.tables.engine import table_of


def create_csv_view(
    backend: Any, path: str, names: Sequence[str], delimiter: str, blank_lines: int, longest: int
) -> Any:
    """Return a CSV file as an Ibis table of text columns `names`, parsed by each query.

    A header comes after `blank_lines`. Nothing is found out from the data. No record may have more than
    `longest` bytes.
    """
    read = _call(
        "read_csv",
        _text(literal_path(path)),
        columns=_columns(names, "VARCHAR"),
        header="true",
        auto_detect="false",
        skip=str(blank_lines),
        delim=_text(delimiter),
        quote=_text('"'),
        escape=_text('"'),
        nullstr="''",
        strict_mode="true",
        hive_partitioning="false",
        max_line_size=str(longest),
        buffer_size=str(2 * longest),
    )
    return _view(backend, f"SELECT * FROM {read}", dict.fromkeys(names, "string"))


def create_parquet_view(backend: Any, paths: Sequence[str], **options: bool) -> Any:
    """Return Parquet files as one Ibis table, with the options of DuckDB's `read_parquet`.

    A remote one is read through a file system that was registered; Ibis would install DuckDB's own extension
    for it.
    """
    written = {name: str(value).lower() for name, value in options.items()}
    backend.raw_sql("SET autoinstall_known_extensions = false")
    read = _call("read_parquet", f"[{', '.join(map(_text, paths))}]", **written)
    return _view(backend, f"SELECT * FROM {read}")


def create_json_view(backend: Any, path: str, places: Mapping[tuple[str, ...], bool], longest: int) -> Any:
    """Return a JSON Lines file as an Ibis table of text columns named `c0`, `c1`, ….

    Each is told by its key, and the keys of what is nested within; with it stands whether it is a number.

    Text is unquoted; other values keep their digits, but whole floating-point numbers below 2⁵³ become
    integers, truth values are written as Python writes them and a NaN that is no number is missing, so that
    a category is the same from a dataframe. No line may have more than `longest` bytes.
    """
    texts = {
        f"c{column}": _json_text(_json_place(place), str(number).lower())
        for column, (place, number) in enumerate(places.items())
    }
    selected = ", ".join(f"{text} AS {name}" for name, text in texts.items())
    query = f"SELECT {selected} FROM {_json_rows(path, places, longest)}"
    return _view(backend, query, dict.fromkeys(texts, "string"))


def read_json_texts(
    backend: Any, path: str, places: Mapping[tuple[str, ...], bool], longest: int
) -> list[Any]:
    """Return columns of `create_json_view` as PyArrow arrays: all values below each other, turned at once.

    The view has an expression of its own for each column, over which DuckDB takes longer than over the rows.
    """
    import pyarrow as pa

    selected = ", ".join(f"CAST({_json_place(place)} AS VARCHAR)" for place in places)
    rows = f"SELECT {selected} FROM {_json_rows(path, places, longest)}"
    read = backend.con.sql(rows).to_arrow_table()
    values = pa.chunked_array([chunk for column in read.columns for chunk in column.chunks], pa.string())
    numbers = np.repeat(list(places.values()), read.num_rows)
    found = _turned(backend, _json_text("CAST(value AS JSON)", "number"), value=values, number=numbers)
    return [found.slice(start, read.num_rows) for start in range(0, len(found), max(read.num_rows, 1))]


def turned_texts(backend: Any, texts: Any, kinds: Any, numbers: Any) -> Any:
    """Return values of JSON as `create_json_view` turns them, a PyArrow array of text.

    Parameters
    ----------
    backend : Ibis backend
        Of DuckDB.
    texts, kinds : pyarrow.Array
        What `json_extract_string` and `json_type` say of each.
    numbers : array of bool
        Whether each is to be a number.
    """
    return _turned(backend, _as_text("value", "kind", "number"), value=texts, kind=kinds, number=numbers)


def _turned(backend: Any, expression: str, **columns: Any) -> Any:
    """Return an expression of columns as a PyArrow array."""
    import pyarrow as pa

    raw = f"raw_{uuid.uuid4().hex}"
    backend.con.register(raw, pa.table(columns))
    found = backend.con.sql(f"SELECT {expression} AS value FROM {raw}").to_arrow_table()
    backend.con.unregister(raw)
    return found["value"].combine_chunks()


def json_objects(path: str, longest: int) -> str:
    """Return the objects of a JSON Lines file as a table of SQL with a column `json`.

    Examples
    --------
    >>> json_objects("rows.jsonl", 100)
    "read_json_objects('rows.jsonl', format = 'newline_delimited', maximum_object_size = 100)"
    """
    lines = {"format": "'newline_delimited'", "maximum_object_size": str(longest)}
    return _call("read_json_objects", _text(literal_path(path)), **lines)


def _json_rows(path: str, places: Iterable[Sequence[str]], longest: int) -> str:
    return _call(
        "read_json",
        _text(literal_path(path)),
        columns=_columns(dict.fromkeys(place[0] for place in places), "JSON"),
        format="'newline_delimited'",
        records="true",  # else DuckDB looks through the file for it, which takes longer than all else
        maximum_object_size=str(longest),
    )


def _call(function: str, path: str, **options: str) -> str:
    return f"{function}({', '.join([path, *(f'{name} = {value}' for name, value in options.items())])})"


def _columns(names: Iterable[str], kind: str) -> str:
    return "{" + ", ".join(f"{_text(name)}: '{kind}'" for name in names) + "}"


def _view(backend: Any, query: str, types: Mapping[str, str] | None = None) -> Any:
    """Return a query as an Ibis table of the given types, or of those that DuckDB names.

    Ibis parses the type of each column anew, which takes longer than the query where there are thousands.
    """
    view = f"view_{uuid.uuid4().hex}"
    backend.raw_sql(f"CREATE TEMP VIEW {view} AS {query}").fetchall()
    if types is None:
        described = [row[:2] for row in backend.raw_sql(f"DESCRIBE {view}").fetchall()]
        named = {kind for _, kind in described}
        known = {kind: backend.compiler.type_mapper.from_string(kind) for kind in named}
        types = {name: known[kind] for name, kind in described}
    return table_of(backend, view, types)


COPIED = {".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson"}
"""Endings of files that DuckDB reads by their name alone."""


def copy_of_rows(path: str, column: str, value: str, output: str) -> str:
    """Return a query, to be shown, that copies the rows of a file with one value of a column.

    Examples
    --------
    >>> copy_of_rows("answers.csv", "model", "gpt", "one.csv")
    "COPY (FROM 'answers.csv' WHERE model = 'gpt') TO 'one.csv'"
    """
    name = column if column.isidentifier() and column.isascii() else _quoted(column)
    kept = f"FROM {_text(literal_path(path))} WHERE {name} = {_text(value)}"
    return f"COPY ({kept}) TO {_text(output)}"


def literal_path(path: str) -> str:
    """Return a path in which no character is a wildcard to DuckDB.

    Examples
    --------
    >>> literal_path("run[1]*.csv")
    'run[[]1][*].csv'
    """
    literal = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
    beside = literal != path and ":" in path and "://" not in path and not os.path.isabs(path)
    return f"./{literal}" if beside else literal  # of a colon DuckDB makes the name of a drive


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _json_place(place: Sequence[str]) -> str:
    """Return a key as a column, what is nested within by a JSON pointer."""
    inner = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in place[1:])
    return f"json_extract({_quoted(place[0])}, {_text(inner)})" if inner else _quoted(place[0])


def _json_text(column: str, is_number: str) -> str:
    return _as_text(f"({column} ->> '$')", f"json_type({column})", is_number)


def _as_text(text: str, kind: str, is_number: str) -> str:
    """Return an expression of a value's text and type of JSON: the text that `create_json_view` tells of."""
    number = f"TRY_CAST({text} AS DOUBLE)"
    whole = f"({number} = floor({number}) AND abs({number}) < 9007199254740992)"
    return (
        f"CASE {kind} WHEN 'BOOLEAN' THEN upper({text}[1]) || {text}[2:] "
        f"WHEN 'DOUBLE' THEN CASE WHEN {text} = 'NaN' AND NOT {is_number} THEN NULL "
        f"WHEN {whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) ELSE {text} END "
        f"ELSE {text} END"
    )
