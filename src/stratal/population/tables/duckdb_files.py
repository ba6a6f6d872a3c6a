"""Files as DuckDB reads them: CSV, JSON Lines and remote Parquet as tables of the columns that are used."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any


def create_csv_view(
    backend: Any, path: str, names: Sequence[str], delimiter: str, blank_lines: int, longest: int
) -> Any:
    """Return a CSV file as an Ibis table of text columns `names`, parsed by each query.

    A header comes after `blank_lines`. Nothing is found out from the data. No record may have more than
    `longest` bytes.
    """
    return backend.read_csv(
        literal_path(path),
        columns=dict.fromkeys(names, "VARCHAR"),
        header=True,
        auto_detect=False,
        skip=blank_lines,
        delim=delimiter,
        quote='"',
        escape='"',
        nullstr="",
        strict_mode=True,
        hive_partitioning=False,
        max_line_size=longest,
        buffer_size=2 * longest,
    )


def create_parquet_view(backend: Any, address: str) -> Any:
    """Return a remote Parquet file as an Ibis table, read through a file system that was registered.

    Ibis would install DuckDB's own extension for it.
    """
    view = f"parquet_{uuid.uuid4().hex}"
    backend.raw_sql("SET autoinstall_known_extensions = false")
    quoted = address.replace("'", "''")
    backend.raw_sql(f"CREATE TEMP VIEW {view} AS SELECT * FROM read_parquet('{quoted}')").fetchall()
    return backend.table(view)


def create_json_view(backend: Any, path: str, places: Sequence[Sequence[str]], longest: int) -> Any:
    """Return a JSON Lines file as an Ibis table of text columns named `c0`, `c1`, ….

    Each is told by its key, and the keys of what is nested within.

    Text is unquoted; other values keep their digits, but whole floating-point numbers below 2⁵³ become
    integers and truth values are written as Python writes them, so that a category is the same from a
    dataframe. No line may have more than `longest` bytes.
    """
    raw = backend.read_json(
        literal_path(path),
        columns=dict.fromkeys((place[0] for place in places), "JSON"),
        format="newline_delimited",
        maximum_object_size=longest,
    )
    view = f"json_{uuid.uuid4().hex}"
    texts = ", ".join(f"{_json_text(_json_place(place))} AS c{number}" for number, place in enumerate(places))
    backend.raw_sql(f"CREATE TEMP VIEW {view} AS SELECT {texts} FROM {_quoted(raw.get_name())}").fetchall()
    return backend.table(view)


def literal_path(path: str) -> str:
    """Return a path in which no character is a wildcard to DuckDB.

    Examples
    --------
    >>> literal_path("run[1]*.csv")
    'run[[]1][*].csv'
    """
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _json_place(place: Sequence[str]) -> str:
    """Return a key as a column, what is nested within by a JSON pointer."""
    inner = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in place[1:])
    pointer = inner.replace("'", "''")
    return f"json_extract({_quoted(place[0])}, '{pointer}')" if inner else _quoted(place[0])


def _json_text(column: str) -> str:
    text = f"({column} ->> '$')"
    number = f"TRY_CAST({text} AS DOUBLE)"
    whole = f"({number} = floor({number}) AND abs({number}) < 9007199254740992)"
    return (
        f"CASE json_type({column}) WHEN 'BOOLEAN' THEN upper({text}[1]) || {text}[2:] "
        f"WHEN 'DOUBLE' THEN CASE WHEN {whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) "
        f"ELSE {text} END "
        f"ELSE {text} END"
    )
