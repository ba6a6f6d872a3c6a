"""Files as tables: DuckDB reads text, JSON Lines and Parquet where they are; libraries read the others."""

from __future__ import annotations

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

from stratal.errors import InputError, MissingExtraError, installed, lone_surrogate, unreadable
from stratal.tables import files, number_format, parquet, source
from stratal.tables.engine import duckdb_connection
from stratal.tables.frames import arrow_table, registered
from stratal.tables.logs import Log, log_of_document, log_of_lines, read_packed, saved_table
from stratal.tables.source import Chosen, FileReading, Rows, Table, below_each_other, readable
from stratal.tables.spark_files import read_on_spark
from stratal.tables.spilling import private_file

# First objects of a JSON Lines file, whose names are its columns.
_RECORDS_INSPECTED = 1000
# A row beyond this is named by its number: its line is found by reading the file again, a second for so many.
_LONGEST_LINE_SEARCH = 2_000_000


def everything(names: Sequence[str]) -> bool:
    """Return that any columns will do."""
    return True


def open_table(
    path: str | os.PathLike[str],
    reading: FileReading | None = None,
    fits: Callable[[Sequence[str]], bool] = everything,
) -> Table:
    """Return a file as a table of which no column is read yet; see `Population.read`.

    Parameters
    ----------
    path : str or path
    reading : FileReading
    fits : callable
        Whether the columns of a sheet are those that are meant, of a workbook with several.
    """
    reading = source.checked_reading(reading or {})
    if reading.get("engine") == source.SPARK:
        return read_on_spark(path, reading)
    address = address_of(path, remote=reading.get("remote", False))
    if address is not None:
        return _remote(address, reading, fits)
    file = files.local_path(path)
    connection = duckdb_connection(reading.get("threads"), reading.get("memory"))
    if reading.get("directory", False):
        return _parquet(connection, file, parquet.parts_of(file))
    saved = saved_table(file) if file.is_dir() else None
    if saved is not None:
        return arrow_table(connection, saved, str(file))
    kind = files.kind_of(file, reading.get("format"))
    if kind == "parquet":
        return _parquet(connection, file, [file])
    files.whole_gzip(file)
    try:
        if kind == "csv":
            return _csv(connection, file, reading.get("delimiter"))
        if kind == "xlsx":
            return _workbook(connection, file, fits)
        return _READERS[kind](connection, file)
    except files.UNREADABLE as error:
        raise unreadable(file, error) from error


def _remote(address: str, reading: FileReading, fits: Callable[[Sequence[str]], bool]) -> Table:
    """Return a file on the web or in S3: Parquet is read where it is, others are copied here."""
    kind = reading.get("format") or files.format_of(Path(address.split("?")[0]))
    if kind == "parquet" and literal_path(address) == address:
        connection = duckdb_connection(reading.get("threads"), reading.get("memory"), shared=False)
        return _parquet(connection, address, [address])
    copy = fetched(address)
    table = open_table(copy, reading | {"format": kind, "directory": False}, fits)
    return replace(table, label=address, take=lambda chosen: replace(table.take(chosen), label=address))


# ---- Parquet


def _parquet(connection: Any, file: Path | str, parts: Sequence[Path | str]) -> Table:
    local = [part for part in parts if isinstance(part, Path)]
    keys = {key: part for part in local for key in parquet.partition_keys(part.relative_to(file))}
    options = {}
    if local:
        options = {"hive_partitioning": bool(keys), "union_by_name": len(local) > 1}
        options |= {"hive_types_autocast": False} if keys else {}
    else:
        register(connection, str(file))
    if keys and _needs_link(str(file)):
        raise InputError(
            f"{file}: a partitioned table needs a folder without a backslash, and not beginning with ~",
            action="Rename the folder.",
        )
    paths = [_text(duckdb_path(part) if local else str(part)) for part in parts]
    written = {name: str(value).lower() for name, value in options.items()}
    origin = _call("read_parquet", f"[{', '.join(paths)}]", **written)
    with readable(str(file)):
        found = connection.sql(f"SELECT * FROM {origin}")
    if local:
        names = parquet.parquet_names(local[0], len(found.columns))
    else:
        names = []
    names += found.columns[len(names) :]
    kinds = dict(zip(reversed(names), reversed(found.types), strict=True))
    tops = dict(zip(reversed(names), map(_quoted, reversed(found.columns)), strict=True))
    fields = parquet.nested_names(
        {name: kinds[name] for name in names}, lambda kind: dict(kind.children) if kind.id == "struct" else {}
    )
    columns = {
        name: "".join([tops[top], *(f"[{_text(part)}]" for part in inner)])
        for name, (top, *inner) in fields.items()
    }

    def take(chosen: Chosen) -> Rows:
        used = chosen.among(columns)
        if local:
            parquet.refuse_unlike_parts(local, used, keys)
            for part in local:
                parquet.refuse_exploding(part, chosen.among(names))
        kept = {name: columns[name] for name in used}
        return Rows(label=str(file), connection=connection, origin=origin, columns=kept)

    return Table(label=str(file), names=(*names, *list(columns)[len(kinds) :]), take=take)


# ---- text


def _csv(connection: Any, file: Path, delimiter: str | None) -> Table:
    delimiter, first_line, names = files.csv_header(file, delimiter)
    if names is None:
        raise InputError(f"{file} is empty", allowed="a header and one row per unit")
    internal = {name: f"c{at}" for at, name in reversed(list(enumerate(names)))}
    small = file.stat().st_size <= source.STORE_LIMIT
    locate = _locator(file, lambda text: _csv_lines(text, delimiter))
    named = files.first_line_delimiter(file)
    whole = Rows(
        label=str(file),
        connection=connection,
        origin=_read_csv(file, len(names), delimiter, first_line - 1),
        columns=internal,
        text=True,
        stored=small,
        locate=locate,
        notes=() if named is None else (f"{file}: the first line, 'sep={named}', names the delimiter",),
    )
    written = cache(lambda: _csv_format(whole, internal, delimiter))

    def take(chosen: Chosen) -> Rows:
        rows = replace(whole, columns={name: internal[name] for name in chosen.among(names)})
        if small and (chosen.id in rows.columns or not chosen.id):
            rows = _without_blank_rows(rows, rows.columns.get(chosen.id), len(names))
        if delimiter == ",":
            return rows
        return with_points(rows, chosen, written())

    return Table(label=str(file), names=tuple(names), take=take)


def _read_csv(file: Path, columns: int, delimiter: str, blank_lines: int) -> str:
    """Return a CSV file as SQL, columns of text `c0`, `c1`, …; nothing is found out from the data."""
    rows = _call(
        "read_csv",
        _text(duckdb_path(file)),
        columns=_columns((f"c{at}" for at in range(columns)), "VARCHAR"),
        header="true",
        auto_detect="false",
        skip=str(blank_lines),
        delim=_text(delimiter),
        hive_partitioning="false",
        max_line_size=str(files.LONGEST),
        buffer_size=str(2 * files.LONGEST),
    )
    # A blank line is no unit, which only a file of one column can tell.
    if columns == 1:
        return f"(SELECT * FROM {rows} WHERE c0 IS NOT NULL)"
    return rows


# What Python does not strip off a text.
_INK = r"[^\s\p{Z}\x0b\x1c-\x1f\x85]"


def _without_blank_rows(rows: Rows, ids: str | None, columns: int) -> Rows:
    """Return the rows without those that hold nothing, as spreadsheets leave them; counted and said.

    Looked for where an id is missing, or none is named, and in files that are parsed once.
    """
    if ids and not rows.one(f"count(*) FILTER ({ids} IS NULL OR trim({ids}) = '')")[0]:
        return rows
    full = f"regexp_matches(concat({', '.join(f'c{at}' for at in range(columns))}), '{_INK}')"
    left = rows.one(f"count(*) FILTER (NOT {full})")[0]
    origin = f"(SELECT * FROM {rows.origin} WHERE {full})"
    notes = blank_note(rows.label, left)
    if left:
        return replace(rows, origin=origin, notes=(*rows.notes, *notes))
    return rows


def blank_note(label: str, count: int) -> tuple[str, ...]:
    """Return what is said of blank rows that were left out.

    Examples
    --------
    >>> blank_note("labels.csv", 1)
    ('labels.csv: 1 blank row was left out',)
    """
    if not count:
        return ()
    return (f"{label}: {count:,} blank row{'s were' if count > 1 else ' was'} left out",)


def _json_lines(connection: Any, file: Path) -> Table:
    with closing(files.opened(file)) as text:
        log = log_of_lines((record for _, record in files.json_records(text, file)), str(file))
    if log is not None:
        return log_table(connection, log, str(file))
    with closing(files.opened(file)) as text:
        records = (record for _, record in files.json_records(text, file, _RECORDS_INSPECTED))
        return _of_json(connection, file, str(file), records, _locator(file, _full_lines))


def _of_json(
    connection: Any,
    file: Path,
    label: str,
    records: Iterable[dict[str, Any]],
    locate: Callable[[int], str] | None,
) -> Table:
    """Return a JSON Lines file whose first records tell its keys, nested ones by dotted names."""
    keys = dict[str, None]()
    nested = dict[str, None]()
    for record in records:
        if not keys.keys() >= record.keys():
            keys |= dict.fromkeys(record)
        if dict in map(type, record.values()):
            nested |= dict.fromkeys(files.flat(record))
    names = tuple(keys | nested)
    if not names:
        raise InputError(f"{label} is empty", allowed="one JSON object per line")
    size = file.stat().st_size * (20 if file.suffix == ".gz" else 1)
    unmarked = cache(partial(without_mark, file))

    def take(chosen: Chosen) -> Rows:
        places = {name: _place(name, keys) for name in chosen.among(names)}
        numbers = set(chosen.numbers)
        if len(places) > _MANY_KEYS and size <= _WIDE_JSON:
            columns = _wide_columns(file, places, numbers)
            return replace(registered(connection, columns, label), text=True, locate=locate)
        return Rows(
            label=label,
            connection=connection,
            origin=_read_json(unmarked(), places.values()),
            columns={name: _json_text(_json_value(place), name in numbers) for name, place in places.items()},
            text=True,
            stored=size <= source.STORE_LIMIT,
            locate=locate,
        )

    def below(chosen: Sequence[str]) -> Rows:
        places = [_place(name, keys) for name in chosen]
        found = below_each_other(_read_json(unmarked(), places), list(map(_json_value, places)))
        columns = {"column": "c0", "text": _json_text("c1", is_number=False)}
        return Rows(label=label, connection=connection, origin=f"({found})", columns=columns, text=True)

    return Table(label=label, names=names, take=take, values=partial(_json_values, file, label), below=below)


def _json_values(file: Path, label: str) -> tuple[dict[str, list[Any]], list[int]]:
    """Return all columns of a small JSON Lines file as Python has the values, and the line of each row."""
    with closing(files.opened(file)) as text:
        found = list(files.limited(files.json_records(text, file), lambda record: len(str(record[1])), label))
    records = [files.flat(record) for _, record in found]
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}, [line for line, _ in found]


# Of more keys DuckDB takes longer than Python, which holds the values of a file of such a size.
_MANY_KEYS = 200
_WIDE_JSON = 2**26


def _place(name: str, keys: Collection[str]) -> tuple[str, ...]:
    """Return the key of an object, and those within it, that a dotted name stands for."""
    if name in keys:
        return (name,)
    top = next(key for key in keys if name.startswith(f"{key}."))
    return (top, *name.removeprefix(f"{top}.").split("."))


def _read_json(file: Path, places: Iterable[Sequence[str]]) -> str:
    """Return the keys of a JSON Lines file as SQL, columns of JSON."""
    return _call(
        "read_json",
        _text(duckdb_path(file)),
        columns=_columns(dict.fromkeys(place[0] for place in places), "JSON"),
        format="'newline_delimited'",
        hive_partitioning="false",
        records="true",  # else DuckDB looks through the file for it, which takes longer than all else
        maximum_object_size=str(files.LONGEST),
    )


def _json_value(place: Sequence[str]) -> str:
    """Return the SQL of a value as JSON."""
    inner = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in place[1:])
    if inner:
        return f"json_extract({_quoted(place[0])}, {_text(inner)})"
    return _quoted(place[0])


def _json_text(column: str, is_number: bool) -> str:
    """Return the SQL of a value as text.

    Text is unquoted; other values keep their digits, but whole floating-point numbers below 2⁵³ become
    integers, truth values are written as Python writes them and a NaN that is no number is missing, so that
    a category is the same from a dataframe.
    """
    text = f"({column} ->> '$')"
    number = f"TRY_CAST({column} ->> '$' AS DOUBLE)"
    whole = f"({number} = floor({number}) AND abs({number}) < 9007199254740992)"
    nan = "" if is_number else f"WHEN {text} = 'NaN' THEN NULL "
    return (
        f"CASE json_type({column}) WHEN 'BOOLEAN' THEN upper({text}[1]) || {text}[2:] "
        f"WHEN 'DOUBLE' THEN CASE {nan}WHEN {whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) "
        f"ELSE {text} END ELSE {text} END"
    )


class _Digits(str):
    """A number of JSON as it is written."""

    __slots__ = ()


def _wide_columns(file: Path, places: dict[str, tuple[str, ...]], numbers: set[str]) -> dict[str, Any]:
    """Return columns of text, as `_json_text` writes them, of a file of very many keys.

    Numbers beyond 2⁵³ stay as they are written, which DuckDB writes anew.
    """
    import pyarrow as pa

    columns: dict[str, list[str | None]] = {name: [] for name in places}
    with closing(files.opened(file)) as text:
        for _, record in files.json_records(text, file, numbers=_Digits):
            for name, (top, *inner) in places.items():
                value = record.get(top)
                for key in inner:
                    value = value.get(key) if isinstance(value, dict) else None
                columns[name].append(_value_text(value, name in numbers))
    try:
        return {name: pa.chunked_array([pa.array(values, pa.string())]) for name, values in columns.items()}
    except UnicodeEncodeError as error:
        raise lone_surrogate(str(file), error.object[error.start : error.end]) from None


def _value_text(value: Any, is_number: bool) -> str | None:
    if isinstance(value, _Digits) and not value.lstrip("-").isdecimal():
        number = float(value)
        if number != number:
            return "NaN" if is_number else None
        if number.is_integer() and abs(number) < 2**53:
            return str(int(number))
        return str(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    return _json_of(value)


def _json_of(value: Any) -> str:
    """Return a nested value as JSON with the digits that its numbers had."""
    if isinstance(value, _Digits):
        return str(value)
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key, ensure_ascii=False)}:{_json_of(each)}" for key, each in value.items())
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_json_of, value))}]"
    return json.dumps(value, ensure_ascii=False)


def without_mark(path: Path) -> Path:
    """Return a JSON Lines file, or a copy without its byte order mark, which the engine would refuse."""
    with closing(files.opened(path)) as text:
        if text.buffer.peek(3)[:3] != b"\xef\xbb\xbf":  # type: ignore[attr-defined]
            return path
        copy = private_file(".jsonl")
        with copy.open("w", encoding="utf-8", newline="") as stream:
            shutil.copyfileobj(text, stream)
    return copy


# ---- read by a library


def _json(connection: Any, file: Path) -> Table:
    """Return a log, or an array of JSON objects by way of JSON Lines."""
    found = files.json_document(file)
    log = log_of_document(found, str(file))
    if log is not None:
        return log_table(connection, log, str(file))
    records = files.json_array(found, file)
    lines = private_file(".jsonl")
    with lines.open("w", encoding="utf-8") as text:
        try:
            text.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        except UnicodeEncodeError as error:
            raise lone_surrogate(str(file), error.object[error.start : error.end]) from None
    return _of_json(connection, lines, str(file), records, None)


def _feather(connection: Any, file: Path) -> Table:
    import pyarrow as pa
    import pyarrow.feather

    try:
        found = pyarrow.feather.read_table(file, memory_map=True)
    except pa.ArrowException as error:
        raise OSError(str(error)) from None
    for name, column in zip(found.column_names, found.columns, strict=True):
        parquet.refuse_long(file, name, column, len(column))
    return arrow_table(connection, found, str(file))


def _packed_log(connection: Any, file: Path) -> Table:
    return log_table(connection, read_packed(file), str(file))


def log_table(connection: Any, log: Log, label: str) -> Table:
    """Return an evaluation tool's log as a table."""

    def take(chosen: Chosen) -> Rows:
        columns = {name: _log_column(log.columns[name]) for name in chosen.among(log.columns)}
        return replace(
            registered(connection, columns, label),
            text=True,
            notes=log.notes,
            locate=lambda row: f"unit {log.columns['id'][row]!r}",
        )

    return Table(label=label, names=tuple(log.columns), take=take, log=log)


def _log_column(values: Sequence[Any]) -> Any:
    """Return a column for Arrow: what is missing throughout is text, and a lone surrogate is none."""
    import pyarrow as pa

    texts = any(isinstance(value, str) for value in values) or all(value is None for value in values)
    if not texts:
        return pa.chunked_array([pa.array(values)])
    whole = [None if value is None else value.encode("utf-8", "replace").decode() for value in values]
    return pa.chunked_array([pa.array(whole, pa.string())])


# ---- workbooks, by openpyxl: the sheet that is meant, its cells as text, as in a CSV file


# Whole numbers from here on have lost digits, and are not written out as if they had not.
LARGEST_WHOLE = 2.0**53


def cell_text(value: Any) -> str | None:
    """Return a cell as text: whole numbers without a point, dates as 2026-03-01, None where it is empty.

    Examples
    --------
    >>> cell_text(415.0), cell_text(0.25), cell_text(datetime(2026, 3, 1)), cell_text(True), cell_text(None)
    ('415', '0.25', '2026-03-01', 'True', None)
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_WHOLE:
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time.min:
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)


def _book(path: Path) -> Any:
    with installed("openpyxl", extra="excel"):
        import openpyxl

    with _readable_workbook(path):
        return openpyxl.load_workbook(path, read_only=True, data_only=True)


@contextmanager
def _readable_workbook(path: Path) -> Iterator[None]:
    """Turn what a damaged workbook raises into one error; errors of XML are of the kind SyntaxError."""
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
            f"{path}: is not a workbook that can be read",
            given=str(error)[:200] or type(error).__name__,
            allowed=".xlsx as spreadsheets save it",
            action="Open it in a spreadsheet and save it again.",
        ) from None


def _unreadable(book: Any, page: Any) -> str:
    """Return which cells of a page are merged, or are formulas without a value, in words."""
    from xml.etree.ElementTree import iterparse

    with book._archive.open(page._worksheet_path) as stream:
        for _, node in iterparse(stream):
            space, _, name = node.tag.rpartition("}")
            if name == "mergeCell":
                return f"merged cells: {node.get('ref')}"
            # A formula whose value is the empty text is saved as one of type str.
            if name == "c" and node.get("t") != "str" and node.find(f"{space}}}f") is not None:
                if not node.findtext(f"{space}}}v"):
                    return f"a formula without a saved value: {node.get('r')}"
            elif name == "row":
                node.clear()
    return ""


# Cells of a sheet, at most: a few bytes may stand for a table of 16,384 columns and a million rows.
_MOST_CELLS = 50_000_000


def _sheet(page: Any, path: Path) -> tuple[tuple[str, ...], list[tuple[int, list[str | None]]], int]:
    """Return the columns' names, each row below that holds anything with its number, and the blank rows.

    Empty columns at the end are none. What a sheet says of its own size is not believed.
    """
    page.reset_dimensions()
    rows: list[tuple[int, list[str | None]]] = []
    cells_read = number = 0
    for number, line in enumerate(page.iter_rows(values_only=True), start=1):
        cells = [cell_text(cell) for cell in line]
        while cells and cells[-1] is None:
            cells.pop()
        cells_read += len(cells)
        if cells_read > _MOST_CELLS:
            raise files.too_large(path)
        if cells:
            rows.append((number, cells))
    if not rows:
        return (), [], 0
    (header, names), *below = rows
    width = max(len(cells) for _, cells in rows)
    if width * len(rows) > _MOST_CELLS:
        raise files.too_large(path)
    padded = [(number, cells + [None] * (width - len(cells))) for number, cells in below]
    blank = number - header - len(padded)
    return tuple((name or "").strip() for name in names + [None] * (width - len(names))), padded, blank


def _workbook(connection: Any, file: Path, fits: Callable[[Sequence[str]], bool]) -> Table:
    """Read the sheet of a workbook that holds anything, of several the one whose columns fit."""
    import pyarrow as pa

    book = _book(file)
    try:
        with _readable_workbook(file):
            found = [(page, *_sheet(page, file)) for page in book.worksheets]
        sheets = [each for each in found if each[1]]
        if not sheets:
            raise InputError(f"{file}: is empty", allowed="a header and one row per unit")
        titles = ", ".join(repr(page.title) for page, *_ in sheets)
        fitting = [each for each in sheets if len(sheets) == 1 or fits(each[1])]
        if len(fitting) != 1:
            raise InputError(
                f"{file}: {len(fitting)} of {len(sheets)} sheets have the columns",
                given=titles,
                allowed="one sheet with them",
                action="Save the sheet that is meant as a file of its own.",
            )
        page, names, full, blank = fitting[0]
        if [name != "" for name in names] == [True] + [False] * (len(names) - 1) != [True]:
            raise InputError(
                f"{file}: the first row of sheet {page.title!r} is a title, and no header",
                given=repr(names[0]),
                allowed="a name for each column in the first row",
                action="Delete the rows above the header.",
            )
        with _readable_workbook(file):
            unreadable = _unreadable(book, page)
        if unreadable:
            raise InputError(
                f"{file}: sheet {page.title!r} has {unreadable}",
                allowed="a value in each cell",
                action="Unmerge cells and fill in each row; open the workbook in a spreadsheet and save it, "
                "or paste formulas as values.",
            )
    finally:
        book.close()
    if len(sheets) > 1:
        which = [f"{file}: sheet {page.title!r} was read, of {titles}"]
    else:
        which = []
    notes = (*which, *blank_note(str(file), blank))

    def take(chosen: Chosen) -> Rows:
        columns = {
            name: pa.array([cells[names.index(name)] for _, cells in full], pa.string())
            for name in chosen.among(names)
        }
        rows = replace(
            registered(connection, columns, str(file)),
            text=True,
            notes=notes,
            locate=lambda row: f"row {full[row][0]}",
        )
        facts = {
            name: number_format.column_facts([cells[names.index(name)] for _, cells in full])
            for name in columns
            if name != chosen.id
        }
        return with_points(rows, chosen, number_format.file_format(facts, may_group=False, shared=False))

    return Table(label=str(file), names=names, take=take)


_READERS = {"jsonl": _json_lines, "json": _json, "feather": _feather, "eval": _packed_log}


# ---- how numbers are written


# Rows by which columns of numbers are recognised, before all of them are looked at.
_HEAD = 1_000
# Columns of one query that counts how numbers are written.
_FORMATS_AT_ONCE = 100


def _csv_format(rows: Rows, columns: dict[str, str], delimiter: str) -> number_format.NumberFormat:
    """Return how the columns of a CSV file write numbers, by all entries of those that seem to hold some."""
    every = replace(rows, columns=columns)
    head = every.head(list(columns), _HEAD)
    likely = [name for name, entries in head.items() if number_format.column_facts(entries).is_number]
    facts = {}
    for start in range(0, len(likely), _FORMATS_AT_ONCE):
        names = likely[start : start + _FORMATS_AT_ONCE]
        wanted = [number_format.facts_sql(columns[name], _text) for name in names]
        answer = every.one(*itertools.chain.from_iterable(wanted))
        width = len(wanted[0])
        for at, name in enumerate(names):
            facts[name] = number_format.facts_of_row(answer[at * width : (at + 1) * width])
    return number_format.file_format(facts, may_group=delimiter == ";")


def with_points(rows: Rows, chosen: Chosen, written: number_format.NumberFormat) -> Rows:
    """Return rows of text with numbers as Python writes them, as their notes say; ids stay as they are.

    Raises
    ------
    InputError
        For a column of numbers that may be read in two ways.
    """
    written.require_unambiguous(rows.label, chosen.numbers)
    changed = {
        name: number_format.number_sql(column, written.decimals[name], _text)
        for name, column in rows.columns.items()
        if name in written.decimals and name != chosen.id
    }
    ambiguous = {name: entry for name, entry in written.ambiguous.items() if name in rows.columns}
    notes = (*rows.notes, *number_format.reading_notes(written, list(changed)))
    return replace(rows, columns={**rows.columns, **changed}, notes=notes, ambiguous=ambiguous)


# ---- SQL


def _call(function: str, path: str, **options: str) -> str:
    return f"{function}({', '.join([path, *(f'{name} = {value}' for name, value in options.items())])})"


def _columns(names: Iterable[str], kind: str) -> str:
    return "{" + ", ".join(f"{_text(name)}: '{kind}'" for name in names) + "}"


def literal_path(path: str) -> str:
    """Return a path in which no character is a wildcard to DuckDB.

    Examples
    --------
    >>> literal_path("run[1]*.csv")
    'run[[]1][*].csv'
    """
    literal = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
    if "://" in path or os.path.isabs(path):
        return literal
    # Of what precedes a colon DuckDB makes the name of a drive or a scheme.
    return f"./{literal}" if ":" in path else literal


def duckdb_path(path: Path | str) -> str:
    """Return a local path by which DuckDB finds the same file as Python.

    A link stands for a name with a backslash, which DuckDB takes for a slash, and for one that begins with
    ~, which it takes for the home folder.
    """
    text = str(path)
    if not _needs_link(text):
        return literal_path(text)
    link = private_file("".join(Path(text).suffixes[-2:]).replace("\\", ""))
    link.unlink()
    link.symlink_to(Path(text).resolve())
    return literal_path(str(link))


def _needs_link(path: str) -> bool:
    return "\\" in path or path.startswith("~")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# ---- where a row is


def _locator(file: Path, lines: Callable[[TextIO], Iterator[int]]) -> Callable[[int], str]:
    """Return what finds a row's line again by reading the file up to it; quoted line breaks shift lines."""

    def place(row: int) -> str:
        if row >= _LONGEST_LINE_SEARCH:
            return f"row {row + 1}"
        with closing(files.opened(file)) as text:
            line = next(itertools.islice(lines(text), row, None), None)
        return f"row {row + 1}" if line is None else f"line {line}"

    return place


def _csv_lines(text: TextIO, delimiter: str) -> Iterator[int]:
    """Yield the line on which each data row begins, blank rows left out."""
    rows = itertools.islice(files.csv_records(text, delimiter), 1, None)
    return (line for line, fields in rows if any(field.strip() for field in fields))


def _full_lines(text: TextIO) -> Iterator[int]:
    return (number for number, line in enumerate(text, start=1) if line.strip())


# ---- files on the web and in S3, fetched only when asked for, through fsspec


_ADDRESS = re.compile(r"(https?|s3):/+(.+)")

_OTHER = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+://")

_UNKNOWN_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def address_of(path: str | os.PathLike[str], *, remote: bool) -> str | None:
    """Return the address that a path is, None where it is a file of this machine.

    Raises
    ------
    InputError
        For an address, unless `remote` files were asked for.

    Examples
    --------
    >>> address_of(Path("s3://bucket/p.parquet"), remote=True), address_of("p.csv", remote=False)
    ('s3://bucket/p.parquet', None)
    """
    text = os.fspath(path)
    found = _ADDRESS.fullmatch(text)
    if found is None:
        if _OTHER.match(text):
            raise InputError(
                f"{text}: only Spark reads addresses of this kind",
                allowed="https://… and s3://… with --remote, or engine='spark' (--engine spark)",
            )
        return None
    address = f"{found[1]}://{found[2]}"
    if not remote:
        raise InputError(
            f"{address} is not on this machine, and remote files are read only on request",
            action="Add remote=True (--remote), or download it first.",
        )
    return address


def register(connection: Any, address: str) -> None:
    """Let a DuckDB connection read an address through fsspec, by the parts of the file that it needs."""
    with reachable(address) as system:
        system.info(address)
        if address.startswith(
            "http"
        ):  # DuckDB asks when a file was changed, which fsspec cannot tell of the web
            system.modified = lambda path: _UNKNOWN_TIME
        connection.register_filesystem(system)


def fetched(address: str) -> Path:
    """Return a copy of a remote file, which is deleted when the process ends."""
    copy = private_file("-" + (address.split("?")[0].rsplit("/", 1)[-1] or "file"))
    with reachable(address) as system:
        system.get_file(address, str(copy))
    return copy


@contextmanager
def reachable(address: str) -> Iterator[Any]:
    """Yield fsspec's file system for an address; what fetching raises becomes one `InputError` that names it.

    Raises
    ------
    MissingExtraError
        If fsspec, or what it needs for this kind of address, is not installed.

    Examples
    --------
    >>> with reachable("https://example.org/p.csv"):
    ...     raise OSError("no route to host")
    Traceback (most recent call last):
    stratal.errors.InputError: https://example.org/p.csv: cannot be fetched (given: no route to host)...
    """
    try:
        import fsspec

        yield fsspec.filesystem(address.split(":")[0], skip_instance_cache=True)
    except InputError:
        raise
    except ImportError:
        raise MissingExtraError("fsspec for remote files", extra="remote") from None
    except Exception as error:  # fsspec's file systems raise what their clients raise
        if str(error):
            reason = str(error).splitlines()[0]
        else:
            reason = type(error).__name__
        raise InputError(
            f"{address}: cannot be fetched",
            given=reason,
            action="Check the address and your credentials, or download it first.",
        ) from error
