"""Files as text: the format that a name tells, and the records of CSV and JSON with where they stand."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO, TypeVar
from urllib.parse import unquote

from stratal.errors import InputError, refuse_unknown, unreadable, utf8_path

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".feather": "feather",
    ".arrow": "feather",
    ".xlsx": "xlsx",
    ".eval": "eval",
}

# What delimits columns where the usual character is not in the header.
OTHER_DELIMITERS = (";", "\t")

# What reading a damaged file raises; a damaged .gz is mostly an OSError.
UNREADABLE = (UnicodeDecodeError, EOFError, csv.Error, OSError, zlib.error)

# Characters of a record, at most: what is longer is no record but a damaged file, or an attack.
LONGEST = 2**24

# Characters and values of a JSON document: a small packed file may stand for very many.
MOST_JSON = 2**29
MOST_VALUES = 2**24

_CHUNK = 2**20

csv.field_size_limit(max(csv.field_size_limit(), LONGEST))


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a local file: as it is if it exists, else with ~ expanded, or of a `file:` address.

    Examples
    --------
    >>> local_path("file:///data/labels.csv"), local_path("labels.csv")
    (PosixPath('/data/labels.csv'), PosixPath('labels.csv'))
    """
    text = os.fspath(path)
    literal = Path(text)
    if os.path.lexists(literal):
        return literal
    if text.startswith("~"):
        try:
            return literal.expanduser()
        except RuntimeError:  # no such user
            return literal
    # Path makes one stroke of several.
    address = re.fullmatch(r"file:(?://(?:localhost)?(?=/))?(/.*)", text)
    if address is None:
        return literal
    return Path(unquote(address[1]).replace("//", "/"))


def existing_file(path: Path) -> Path:
    """Return `path` if it is a file, else raise an `InputError`.

    Examples
    --------
    >>> existing_file(Path("/nowhere/labels.csv"))
    Traceback (most recent call last):
    stratal.errors.InputError: /nowhere/labels.csv: no such file...
    """
    utf8_path(path)
    if path.is_dir():
        action = "A directory of Parquet parts with predictions is read with directory=True."
        raise InputError(f"{path}: is a directory", allowed="a file", action=action)
    if not path.exists():
        near = sorted(entry.name for entry in path.parent.glob("*") if entry.suffix in FORMATS)[:5]
        if near:
            action = f"In that folder: {', '.join(near)}."
        else:
            action = "Check the path."
        if re.match(r"(https?|s3):/", str(path)):
            action = "Download it first; only predictions are fetched."
        raise InputError(f"{path}: no such file", action=action)
    if not path.is_file():
        raise InputError(f"{path} is not a regular file", action="Write the rows to a file first.")
    return path


def format_of(path: Path) -> str:
    """Return the format that a file's name tells.

    Examples
    --------
    >>> format_of(Path("labels.tsv")), format_of(Path("predictions.csv.gz"))
    ('csv', 'csv')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = FORMATS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise InputError(
            f"{path}: the name does not tell the format",
            allowed=", ".join(FORMATS),
            action="Rename it; in Python Population.read takes format='parquet', 'csv', 'jsonl' and others.",
        )
    return kind


def kind_of(path: Path, given: str | None = None) -> str:
    """Return the format of a file that exists: as it was said, or as its name tells.

    Raises
    ------
    InputError
        If there is no such file, or no such format.

    Examples
    --------
    >>> kind_of(Path("nowhere-at-all.csv"))
    Traceback (most recent call last):
    stratal.errors.InputError: nowhere-at-all.csv: no such file...
    """
    existing_file(path)
    kind = format_of(path) if given is None else given
    refuse_unknown("file format", kind, dict.fromkeys(FORMATS.values()))
    return kind


def opened(path: Path) -> TextIO:
    """Return a text file, packed or not, without its byte order mark."""
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open("r", encoding="utf-8-sig", newline="")


def whole_gzip(path: Path) -> None:
    """Refuse a packed file that was cut or changed: engines read it without looking at its checksum.

    Raises
    ------
    InputError
        For a file that is damaged, and for one with a line of more than `LONGEST` characters, which stops
        at that line, whatever it would unpack to.
    """
    if not path.name.lower().endswith(".gz"):
        return
    try:
        with gzip.open(path, "rb") as stream:
            started = 0
            while chunk := stream.read(_CHUNK):
                first = chunk.find(b"\n")
                last = chunk.rfind(b"\n")
                if started + (len(chunk) if first < 0 else first) > 4 * LONGEST:
                    raise _too_long(path)
                if last < 0:
                    started = started + len(chunk)
                else:
                    started = len(chunk) - last - 1
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable(path, error) from None


def bounded(text: TextIO, label: Path | str) -> Iterator[str]:
    """Yield the lines of a text, refusing one of more than `LONGEST` characters before it is read whole.

    Examples
    --------
    >>> import io
    >>> list(bounded(io.StringIO("a\\nb"), "labels.csv"))
    ['a\\n', 'b']
    """
    while line := text.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise _too_long(label)
        yield line


def _too_long(label: Path | str) -> InputError:
    return InputError(
        f"{label}: a line is too long", allowed=f"up to {LONGEST:,} characters", action="Is it a text file?"
    )


# What a spreadsheet takes for a formula, and the same behind apostrophes.
_RUN = re.compile(r"'*[=+\-@\t\r]")


def cell(value: Any) -> Any:
    """Return a value as a CSV file for people holds it: a text that a spreadsheet would run is quoted by `'`.

    Examples
    --------
    >>> cell("=1+1"), cell("'=1"), cell("it's"), cell(-1), cell(None)
    ("'=1+1", "''=1", "it's", -1, '')
    """
    if isinstance(value, int | float):
        return value
    text = "" if value is None else str(value)
    return "'" + text if _RUN.match(text) else text


# What ends a cell, for the reader of a CSV file or for a spreadsheet that splits lines at semicolons or tabs.
_ENDS_CELL = re.compile(r'[,;"\t\r\n]')


def csv_line(values: Iterable[Any]) -> str:
    """Return a line of a CSV file for people: nothing in a cell becomes a formula or another cell.

    Examples
    --------
    >>> csv_line(["u1", "a;=1+1", "plain", None])
    'u1,"a;=1+1",plain,\\r\\n'
    """
    texts = (str(cell(value)) for value in values)
    quoted = ('"' + text.replace('"', '""') + '"' if _ENDS_CELL.search(text) else text for text in texts)
    return ",".join(quoted) + "\r\n"


def text_of_cell(text: str) -> str:
    """Return the text that `cell` wrote.

    Examples
    --------
    >>> text_of_cell("'=1+1"), text_of_cell("''=1"), text_of_cell("'tis")
    ('=1+1', "'=1", "'tis")
    """
    if text.startswith("'") and _RUN.match(text):
        return text[1:]
    return text


_NAMED_DELIMITER = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


def named_delimiter(line: str) -> str | None:
    """Return the delimiter that the first line of a CSV file names for Excel, None of any other line.

    Examples
    --------
    >>> named_delimiter("sep=;\\n"), named_delimiter("id;label\\n")
    (';', None)
    """
    found = _NAMED_DELIMITER.fullmatch(line.rstrip("\r\n"))
    return None if found is None else found[1]


def csv_records(text: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each record begins and its fields, the header first, without blank lines.

    A first line `sep=;`, by which Excel knows the delimiter, is left out.
    """
    lines = bounded(text, getattr(text, "name", "the file"))
    first = next(lines, "")
    left_out = 0 if named_delimiter(first) is None else 1
    reader = csv.reader(
        lines if left_out else itertools.chain([first], lines), delimiter=delimiter, strict=True
    )
    start = 1 + left_out
    for fields in reader:
        if fields:
            yield start, fields
        start = reader.line_num + 1 + left_out


def first_line_delimiter(path: Path) -> str | None:
    """Return the delimiter that the first line of a CSV file names for Excel, None if it names none."""
    with opened(path) as text:
        return named_delimiter(next(bounded(text, path), ""))


def csv_header(path: Path, delimiter: str | None = None) -> tuple[str, int, list[str] | None]:
    """Return what delimits the columns of a CSV file, the line of its header and their names, None of none.

    Where no delimiter is given it is the usual one of such a file, unless the header holds another alone.
    """
    with opened(path) as text:
        if delimiter is None:
            if ".tsv" in (suffix.lower() for suffix in path.suffixes):
                usual = "\t"
            else:
                usual = ","
            first = next((line for line in bounded(text, path) if line.strip()), "")
            other = next((mark for mark in OTHER_DELIMITERS if usual not in first and mark in first), usual)
            delimiter = named_delimiter(first) or other
            text.seek(0)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise InputError(
                "the delimiter must be one character", given=repr(delimiter), allowed="',', ';', tab"
            )
        return delimiter, *next(csv_records(text, delimiter), (0, None))


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object with what is nested beside what holds it, under dotted names.

    Examples
    --------
    >>> flat({"id": 1, "judge": {"score": 0.5}})
    {'id': 1, 'judge': {'score': 0.5}, 'judge.score': 0.5}
    """
    result = dict(record)
    for name, value in record.items():
        if isinstance(value, dict):
            result |= {f"{name}.{inner}": entry for inner, entry in flat(value).items()}
    return result


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, refusing a key that stands in it twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def json_document(path: Path, most: int = MOST_JSON, what: str = "to be read as one document") -> Any:
    """Return what a JSON file of at most so many characters, and `MOST_VALUES` values, holds.

    Raises
    ------
    InputError
        For a file that is not JSON, or larger.
    """
    parts = list[str]()
    characters = values = 0
    try:
        with opened(path) as text:
            while part := text.read(_CHUNK):
                characters = characters + len(part)
                values = values + sum(map(part.count, ",[{"))
                if characters > most or values > MOST_VALUES:
                    raise InputError(
                        f"{path}: is too large {what}",
                        allowed=f"up to {most // 2**20:,} MiB of text and {MOST_VALUES:,} values",
                        action="Write one object per line and call it .jsonl, or keep the columns that are "
                        "needed.",
                    )
                parts.append(part)
        return json.loads("".join(parts), object_pairs_hook=_once)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: is not JSON",
            given=str(error),
            allowed="an array of objects",
            action="With one object per line, call it .jsonl.",
        ) from None


def json_array(found: Any, path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON document: an array of them, or an object that holds one such array.

    Raises
    ------
    InputError
        For a document that holds anything else.
    """
    if isinstance(found, dict):
        arrays = [entry for entry in found.values() if _objects(entry)]
        found = arrays[0] if len(arrays) == 1 else found
    if not _objects(found):
        raise InputError(f"{path}: is not an array of JSON objects", allowed='[{"id": …}, …]')
    return list(found)


def _objects(entry: Any) -> bool:
    return isinstance(entry, list) and bool(entry) and all(isinstance(item, dict) for item in entry)


def _quickly(line: str) -> dict[str, Any] | None:
    """Return the JSON object of a line whose colons show that no key stands in it twice; None of others.

    `msgspec` takes a quarter of the time of `json`, refuses more, and keeps the last of two equal keys.
    """
    import msgspec

    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if isinstance(record, dict) and len(record) == line.count(":"):
        return record
    return None


_READ_NUMBERS = ("parse_float", "parse_int", "parse_constant")


def json_records(
    text: TextIO, path: Path, most: int | None = None, numbers: Callable[[str], Any] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line of each of the first `most` lines that holds a JSON object, and the object.

    Numbers are read by `numbers`, if given.

    Raises
    ------
    InputError
        For a line that is not JSON, or no object.
    """
    for number, line in enumerate(itertools.islice(bounded(text, path), most), start=1):
        if not line.strip():
            continue
        try:
            read = dict.fromkeys(_READ_NUMBERS, numbers)
            record = (not numbers and _quickly(line)) or json.loads(line, object_pairs_hook=_once, **read)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path}: line {number} is not JSON", given=str(error), allowed="one JSON object per line"
            ) from None
        if not isinstance(record, dict):
            raise InputError(
                f"{path}: line {number} is not a JSON object", given=line.strip()[:60], allowed='{"id": …}'
            )
        yield number, record


# ---- how large a table may be that is read as a whole: a small file may stand for much


# What a table of labels may have; larger ones are no answers of people, but a population or an attack.
MOST_ROWS = 2_000_000
MOST_BYTES = 2**28

Entry = TypeVar("Entry")


def limited(
    records: Iterable[Entry],
    size: Callable[[Entry], int],
    path: Path | str,
    rows: int = MOST_ROWS,
    characters: int = MOST_BYTES,
) -> Iterator[Entry]:
    """Yield records, refusing to go on after so many of them, or so many characters.

    Raises
    ------
    InputError
        Where there are more.

    Examples
    --------
    >>> list(limited(["a", "b"], len, Path("labels.csv"), rows=1))
    Traceback (most recent call last):
    stratal.errors.InputError: labels.csv: is too large for a table of labels (allowed: up to 1 rows and ...
    """
    held = 0
    for number, record in enumerate(records, start=1):
        held += size(record)
        if number > rows or held > characters:
            raise too_large(path, rows, characters)
        yield record


def too_large(path: Path | str, rows: int = MOST_ROWS, characters: int = MOST_BYTES) -> InputError:
    """Return the error of a table of labels that is too large."""
    return InputError(
        f"{path}: is too large for a table of labels",
        allowed=f"up to {rows:,} rows and {characters // 2**20:,} MiB of text",
        action="Keep the labelled units and the columns that are needed.",
    )
