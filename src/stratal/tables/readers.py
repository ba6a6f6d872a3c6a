"""Files as sources: Parquet, CSV and JSON Lines stay files that DuckDB reads; libraries read the others."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, TextIO

from stratal.errors import InputError, half_a_character
from stratal.tables.decimal_commas import source_with_points
from stratal.tables.duckdb_files import create_csv_view, create_json_view, create_parquet_view, literal_path
from stratal.tables.engine import connect, read_columns, some_columns, stored
from stratal.tables.files import (
    LONGEST,
    UNREADABLE,
    csv_records,
    delimiter_of,
    format_of,
    header_line,
    json_array,
    json_document,
    json_records,
    kind_of,
    opened,
    usual_delimiter,
    whole_gzip,
)
from stratal.tables.frames import arrow_source, frame_columns
from stratal.tables.json_lines import MANY_KEYS, names_of_keys, place_of, read_wide, wide_lines
from stratal.tables.limits import refuse_exploding
from stratal.tables.logs.hugging_face import saved_table
from stratal.tables.logs.inspect_ai import read_packed
from stratal.tables.logs.log import Log
from stratal.tables.logs.reading import log_of_document, log_of_lines
from stratal.tables.parquet import parquet_names, partition_keys, parts_of, refuse_unlike_parts, with_nested
from stratal.tables.remote import address_of, fetched, register
from stratal.tables.small_table import blank_note, is_missing
from stratal.tables.source import SPARK, Chosen, FileReading, Request, Source, readable
from stratal.tables.spark_files import read_on_spark
from stratal.tables.spilling import without_mark
from stratal.tables.workbooks import one_sheet


def log_source(log: Log, request: Request, label: str) -> tuple[Source, Any]:
    """Return a log as a source, and its columns as the user declared them, or as it is used where nothing is.

    Parameters
    ----------
    log : Log
    request : Declared
        Where it names no proxy the log's first score is taken; where it shows nothing, what a person needs
        to judge an answer.
    label : str
        What the log is called in errors.

    Examples
    --------
    >>> from stratal.tables.logs.log import Row, log_of
    >>> log = log_of("a tool", [Row(unit="q7", own={"answer": "4"}, scores={"match": 1.0})])
    >>> from stratal.population.declaration import Declared
    >>> source, declared = log_source(log, Declared(), "log.json")
    >>> declared.proxies, declared.shown
    (('match',), ('answer',))
    """
    names = list(log.columns)
    declared = request.of_log(log).among(names, label)
    columns = {name: _column(log.columns[name]) for name in declared.among(names)}
    return replace(arrow_source(columns, label), notes=log.notes, log=log), declared


def _column(values: Sequence[Any]) -> Any:
    """Return a column for Arrow: what is missing throughout is text, and half a character is none."""
    import pyarrow as pa

    texts = any(isinstance(value, str) for value in values) or all(value is None for value in values)
    if not texts:
        return pa.chunked_array([pa.array(values)])
    whole = [None if value is None else value.encode("utf-8", "replace").decode() for value in values]
    return pa.chunked_array([pa.array(whole, pa.string())])


STORE_LIMIT = 256 * 2**20
"""Text files of up to this many bytes are parsed once and kept; larger ones are parsed by each query."""
_WIDE = 2_000

HERE = FileReading()

_RECORDS_LOOKED_AT = 1000
_LONGEST_LINE_SEARCH = 2_000_000


def read_source(
    path: str | os.PathLike[str], request: Request, reading: FileReading = HERE
) -> tuple[Source, Any]:
    """Return a file as a source, and its columns as the user declared them; see `Population.read`."""
    if reading.engine == SPARK:
        return read_on_spark(path, request, reading)
    address = address_of(path, remote=reading.remote)
    if address is not None:
        return _read_remote(address, request, reading)
    file = Path(path)
    backend = connect(reading.threads, reading.memory)
    if reading.directory:
        return _read_parquet(backend, file, request, parts_of(file))
    saved = saved_table(file) if file.is_dir() else None
    if saved is not None:
        return _of_arrow(backend, saved, request, str(file))
    kind = kind_of(file, reading.format)
    if kind == "parquet":
        return _read_parquet(backend, file, request, [file])
    whole_gzip(file)
    try:
        if kind == "csv":
            return _read_csv(backend, file, request, reading.delimiter)
        return _READERS[kind](backend, file, request)
    except UNREADABLE as error:
        raise InputError(
            f"{file} cannot be read", given=str(error), action="Check that the file is whole, and UTF-8 text."
        ) from error


def _read_remote(address: str, request: Request, reading: FileReading) -> tuple[Source, Any]:
    """Return a file on the web or in S3: Parquet is read where it is, others are copied here."""
    kind = format_of(Path(address.split("?")[0])) if reading.format is None else reading.format
    if kind == "parquet" and literal_path(address) == address:
        return _read_parquet(connect(reading.threads, reading.memory), address, request, [address])
    with fetched(address) as copy:
        source, declared = read_source(copy, request, replace(reading, format=kind, directory=False))
        with readable(address):
            table = stored(source.backend, source.table)
    return replace(source, label=address, table=table, locate=None), declared


# ---- Parquet


def _read_parquet(
    backend: Any, file: Path | str, request: Request, parts: Sequence[Path | str]
) -> tuple[Source, Any]:
    local = [part for part in parts if isinstance(part, Path)]
    keys = {key: part for part in local for key in partition_keys(part.relative_to(file))}
    with readable(str(file)):
        if local:
            options = {"hive_partitioning": bool(keys), "union_by_name": len(local) > 1}
            options |= {"hive_types_autocast": False} if keys else {}
            table = create_parquet_view(backend, [literal_path(str(part)) for part in local], **options)
        else:
            register(backend, str(file))
            table = create_parquet_view(backend, [str(file)])
    names = parquet_names(local[0], len(table.columns)) if local else []
    names += list(table.columns[len(names) :])
    columns = dict(zip(names, table.columns, strict=True))
    table, columns = with_nested(table, columns)
    declared = request.among(list(columns), str(file))
    if local:
        refuse_unlike_parts(local, declared.among(columns), keys)
        for part in local:
            refuse_exploding(part, declared.among(names))
    return Source(label=str(file), backend=backend, table=table, columns=columns), declared


# ---- text


def _read_csv(backend: Any, file: Path, request: Request, delimiter: str | None) -> tuple[Source, Any]:
    if delimiter is None:
        delimiter = delimiter_of(header_line(file), usual_delimiter(file))
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(
            "the delimiter must be one character", given=repr(delimiter), allowed="',', ';', tab"
        )
    with closing(opened(file)) as text:
        first_line, names = next(csv_records(text, delimiter), (0, None))
    if names is None:
        raise InputError(f"{file} is empty", allowed="a header and one row per unit")
    declared = request.among(names, str(file))
    internal = [f"c{number}" for number in range(len(names))]
    with readable(str(file)):
        table = create_csv_view(backend, str(file), internal, delimiter, first_line - 1, LONGEST)
    if len(names) == 1:  # a blank line is no unit, though it may be read as an empty field
        table = table.filter(table[internal[0]].notnull())
    first = dict(zip(reversed(names), reversed(internal), strict=True))
    columns = {name: first[name] for name in declared.among(names)}
    locate = _locator(file, lambda text: _csv_lines(text, delimiter))
    source = _text_source(file, backend, table, columns, locate)
    source = _without_blank_rows(source, declared, file, table)
    return source if delimiter == "," else source_with_points(source, declared), declared


def _without_blank_rows(source: Source, declared: Chosen, file: Path, table: Any) -> Source:
    """Return the source without rows that hold nothing, as spreadsheets leave them; counted and said.

    Looked for only where an id is missing, and in files that are parsed once.
    """
    if declared.id not in source.columns or file.stat().st_size > STORE_LIMIT:
        return source
    ids = some_columns(source.backend, source.table, [source.columns[declared.id]])
    if not int(source.first(ids.aggregate(n=ids[0].isnull().sum()))["n"] or 0):
        return source
    kept = _full_rows(source, table)
    count = int(source.first(source.table.aggregate(n=source.table.count()))["n"])
    left = int(source.first(kept.aggregate(n=kept.count()))["n"])
    return replace(source, table=kept, notes=(*source.notes, *blank_note(source.label, count - left)))


def _full_rows(source: Source, table: Any) -> Any:
    """Return the source's table without the rows that are blank in all columns of the whole file, `table`."""
    import ibis
    from pyarrow.compute import or_

    def full(columns: Any) -> Any:
        return ibis.coalesce(*(columns[name].strip().nullif("") for name in columns.columns)).notnull()

    used = tuple(dict.fromkeys(source.columns.values()))
    if len(table.columns) <= _WIDE:
        return stored(source.backend, table.filter(full(table)).select(*used))
    groups = [some_columns(source.backend, table, names) for names in _groups(table.columns)]
    masks = [source.run(group.select(full=full(group)))["full"] for group in groups]
    return ibis.memtable(read_columns(source.backend, source.table, used).filter(reduce(or_, masks)))


def _read_json_lines(backend: Any, file: Path, request: Request) -> tuple[Source, Any]:
    with closing(opened(file)) as text:
        log = log_of_lines((record for _, record in json_records(text, file)), str(file))
    if log is not None:
        return log_source(log, request, str(file))
    with closing(opened(file)) as text:
        records = (record for _, record in json_records(text, file, _RECORDS_LOOKED_AT))
        return _of_json(backend, file, request, records, _RECORDS_LOOKED_AT, _locator(file, _full_lines))


def _of_json(
    backend: Any,
    file: Path,
    request: Request,
    records: Iterable[dict[str, Any]],
    most: int,
    locate: Callable[[int], str] | None,
) -> tuple[Source, Any]:
    """Return a JSON Lines file whose first `most` records tell its keys, nested ones by dotted names."""
    given, path = iter(records), str(without_mark(file))
    first, small = next(given, {}), file.stat().st_size <= STORE_LIMIT
    alike = len(first) > MANY_KEYS and small and file.suffix != ".gz"
    wide = wide_lines(backend, path, most) if alike else None
    keys, names = names_of_keys(wide, itertools.chain([first], given))
    if not names:
        raise InputError(f"{file} is empty", allowed="one JSON object per line")
    declared = request.among(names, str(file))
    used, order = declared.among(names), {key: number for number, key in enumerate(keys)}
    places = {f"c{number}": place_of(name, order) for number, name in enumerate(used)}
    columns = dict(zip(used, places, strict=True))
    numbers = {places[columns[name]]: name in declared.numbers for name in used}
    with readable(str(file)):
        if len(places) <= MANY_KEYS or not small:
            table = create_json_view(backend, path, numbers, LONGEST)
            return _text_source(file, backend, table, columns, locate), declared
        table = _in_memory(read_wide(backend, path, wide, numbers, _WIDE), list(places))
    return Source(
        label=str(file), backend=backend, table=table, columns=columns, text=True, locate=locate
    ), declared


# ---- read by a library


def _read_json(backend: Any, file: Path, request: Request) -> tuple[Source, Any]:
    """Return a log, or an array of JSON objects by way of JSON Lines."""
    found = json_document(file)
    log = log_of_document(found, str(file))
    if log is not None:
        return log_source(log, request, str(file))
    records = json_array(found, file)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "rows.jsonl")
        with lines.open("w", encoding="utf-8") as text:
            try:
                text.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            except UnicodeEncodeError as error:
                raise half_a_character(str(file), error.object[error.start : error.end]) from None
        source, declared = _of_json(backend, lines, request, records, len(records), None)
        with readable(str(file)):
            table = stored(source.backend, source.table)
    return replace(source, label=str(file), table=table), declared


def _read_feather(backend: Any, file: Path, request: Request) -> tuple[Source, Any]:
    import pyarrow as pa
    import pyarrow.feather

    try:
        found = pyarrow.feather.read_table(file, memory_map=True)
    except pa.ArrowException as error:
        raise OSError(str(error)) from None
    return _of_arrow(backend, found, request, str(file))


def _of_arrow(backend: Any, table: Any, request: Request, label: str) -> tuple[Source, Any]:
    names, read = frame_columns(table)
    declared = request.among(names, label)
    return arrow_source(read(declared.among(names)), label, backend), declared


def _read_packed_log(_: Any, file: Path, request: Request) -> tuple[Source, Any]:
    return log_source(read_packed(file), request, str(file))


def _read_workbook(backend: Any, file: Path, request: Request) -> tuple[Source, Any]:
    import pyarrow as pa

    def fits(names: Sequence[str]) -> bool:
        try:
            request.among(names, str(file))
        except InputError:
            return False
        return True

    sheet = one_sheet(file, fits)
    declared = request.among(sheet.names, str(file))
    full = [row for row, cells in enumerate(sheet.rows) if not all(map(is_missing, cells))]
    used = declared.among(sheet.names)
    found = {
        name: pa.chunked_array(
            [pa.array([sheet.rows[row][sheet.names.index(name)] for row in full], pa.string())]
        )
        for name in used
    }
    source = arrow_source(found, str(file), backend)
    notes = (*sheet.notes, *blank_note(str(file), len(sheet.rows) - len(full)))
    places = [sheet.places[row] for row in full]
    source = replace(source, text=True, notes=notes, locate=lambda row: f"row {places[row]}")
    return source_with_points(source, declared), declared


_READERS = {
    "jsonl": _read_json_lines,
    "json": _read_json,
    "feather": _read_feather,
    "xlsx": _read_workbook,
    "eval": _read_packed_log,
}


def _text_source(
    file: Path,
    backend: Any,
    table: Any,
    columns: dict[str, str],
    locate: Callable[[int], str] | None,
) -> Source:
    label = str(file)
    if file.stat().st_size <= STORE_LIMIT:
        with readable(label):
            used = tuple(dict.fromkeys(columns.values())) or table.columns[:1]
            table = _kept(backend, table if used == table.columns else some_columns(backend, table, used))
    return Source(label=label, backend=backend, table=table, columns=columns, text=True, locate=locate)


def _kept(backend: Any, table: Any) -> Any:
    """Return a text file's table parsed once, or by groups of columns: each column takes 100 kB meanwhile."""
    names = table.columns
    if len(names) <= _WIDE:
        return stored(backend, table)
    pieces = [read_columns(backend, table, group) for group in _groups(names)]
    return _in_memory([column for piece in pieces for column in piece.columns], names)


def _in_memory(columns: Sequence[Any], names: Sequence[str]) -> Any:
    """Return text columns as an Ibis table."""
    import ibis  # loads slowly
    import pyarrow as pa

    return ibis.memtable(pa.table(list(columns), names=list(names)))


def _groups(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + _WIDE] for start in range(0, len(names), _WIDE)]


# ---- where a row is


def _locator(file: Path, lines: Callable[[TextIO], Iterator[int]]) -> Callable[[int], str]:
    """Return what finds a row's line again by reading the file up to it; quoted line breaks shift lines."""

    def place(row: int) -> str:
        if row >= _LONGEST_LINE_SEARCH:
            return f"row {row + 1}"
        with closing(opened(file)) as text:
            line = next(itertools.islice(lines(text), row, None), None)
        return f"row {row + 1}" if line is None else f"line {line}"

    return place


def _csv_lines(text: TextIO, delimiter: str) -> Iterator[int]:
    """Yield the line on which each data row begins, blank rows left out."""
    rows = itertools.islice(csv_records(text, delimiter), 1, None)
    return (line for line, fields in rows if not all(map(is_missing, fields)))


def _full_lines(text: TextIO) -> Iterator[int]:
    return (number for number, line in enumerate(text, start=1) if line.strip())
