"""Text files: the format of a file name, and the records of CSV and JSON files with their line numbers."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeVar
from urllib.parse import unquote

from stratal.errors import InputError, check_choice, unreadable_file_error, utf8_path
from stratal.protocols import JsonDict

# Format of a file by its suffix.
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

# Delimiters of CSV files whose header does not contain the default delimiter.
OTHER_DELIMITERS = (";", "\t", "|")

# Exceptions from reading a damaged file; a damaged .gz file usually raises an OSError.
READ_ERRORS = (UnicodeDecodeError, EOFError, csv.Error, OSError, zlib.error)

# Longest line in characters. Longer lines are damaged files, or attacks.
MAX_LINE_CHARACTERS = 2**24

# Largest JSON document in characters and values. A small compressed file may expand to more.
MAX_JSON_CHARACTERS = 2**29

# Each value of a document becomes an object in memory.
MAX_JSON_VALUES = 2**24

# Characters or bytes that are read at once.
_CHUNK_SIZE = 2**20

csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_CHARACTERS))


def local_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a local file: unchanged if it exists, else with ~ or a `file:` address resolved."""
    text = os.fspath(path)
    literal = Path(text)
    if os.path.lexists(literal):
        return literal
    if text.startswith("~"):
        try:
            return literal.expanduser()
        except RuntimeError:
            # There is no such user: ~ is a part of the name.
            return literal
    # `Path` replaces several slashes by one.
    address = re.fullmatch(r"file:(?://(?:localhost)?(?=/))?(/.*)", text)
    if address is None:
        return literal
    return Path(unquote(address[1]).replace("//", "/"))


def existing_file(path: Path) -> Path:
    """Return `path` if it is a file, else raise an `InputError`."""
    utf8_path(path)
    if path.is_dir():
        action = "To read a directory of Parquet parts with predictions, use directory=True."
        raise InputError(f"{path} is a directory", allowed="a file", action=action)
    if not path.exists():
        file_names = sorted(entry.name for entry in path.parent.glob("*") if entry.suffix in FORMATS)[:5]
        if file_names:
            action = f"Files in that folder: {', '.join(file_names)}."
        else:
            action = "Check the path."
        if re.match(r"(https?|s3):/", str(path)):
            action = "Download the file first; only files of predictions are read from an address."
        from stratal.tables.platforms.platform import PLATFORMS

        if str(path).partition(":")[0] in PLATFORMS:
            action = (
                f"Read the units of the project first: stratal platform read {path} --output units.jsonl."
            )
        raise InputError(f"{path}: no such file", action=action)
    if not path.is_file():
        raise InputError(f"{path} is not a regular file", action="Write the rows to a file first.")
    return path


def format_of(path: Path) -> str:
    """Return the format of a file by its name, such as `csv` for `.csv` and `.csv.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = FORMATS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        raise InputError(
            f"{path}: the format cannot be determined from the name",
            allowed=", ".join(FORMATS),
            action="Rename the file. In Python, Population.read accepts format='parquet', 'csv', 'jsonl' "
            "and others.",
        )
    return kind


def format_of_file(path: Path, stated_format: str | None = None) -> str:
    """Return the format of an existing file: the stated format, or the format of its name.

    Raises an `InputError` for a missing file, and for an unknown format.
    """
    existing_file(path)
    if stated_format is None:
        kind = format_of(path)
    else:
        kind = stated_format
    check_choice("file format", kind, dict.fromkeys(FORMATS.values()))
    return kind


def open_text(path: Path) -> TextIO:
    """Open a text file, compressed or not, without its byte order mark."""
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open("r", encoding="utf-8-sig", newline="")


def check_gzip(path: Path) -> None:
    """Raise an error for a damaged compressed file, because engines do not verify the checksum.

    Raises an `InputError` for a damaged file, and for a line of more than `MAX_LINE_CHARACTERS` characters;
    reading stops there.
    """
    if not path.name.lower().endswith(".gz"):
        return
    try:
        with gzip.open(path, "rb") as stream:
            # Bytes since the last line break.
            line_length = 0
            while chunk := stream.read(_CHUNK_SIZE):
                first_break = chunk.find(b"\n")
                last_break = chunk.rfind(b"\n")
                bytes_to_first_break = first_break if first_break >= 0 else len(chunk)
                # A character has at most four bytes in UTF-8.
                if line_length + bytes_to_first_break > 4 * MAX_LINE_CHARACTERS:
                    raise _line_too_long_error(path)
                if last_break < 0:
                    line_length = line_length + len(chunk)
                else:
                    line_length = len(chunk) - last_break - 1
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable_file_error(path, error) from None


def bounded_lines(text: TextIO, table_name: Path | str) -> Iterator[str]:
    """Yield the lines of a text; a line of more than `MAX_LINE_CHARACTERS` characters is an error."""
    while line := text.readline(MAX_LINE_CHARACTERS + 1):
        if len(line) > MAX_LINE_CHARACTERS:
            raise _line_too_long_error(table_name)
        yield line


def _line_too_long_error(table_name: Path | str) -> InputError:
    """Return the error for a line of more than `MAX_LINE_CHARACTERS` characters."""
    return InputError(
        f"{table_name}: a line is too long",
        allowed=f"up to {MAX_LINE_CHARACTERS:,} characters",
        action="Check that it is a text file.",
    )


# Start of a text that a spreadsheet runs as a formula, possibly after apostrophes.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def csv_cell(value: object) -> Any:
    """Return a value for a CSV file: text that would be a formula begins with an apostrophe."""
    if isinstance(value, int | float):
        return value
    text = "" if value is None else str(value)
    if _FORMULA.match(text):
        return "'" + text
    return text


# Characters that end a cell in a CSV reader, or in a spreadsheet that splits lines at semicolons or tabs.
_CELL_DELIMITER = re.compile(r'[,;"\t\r\n]')


def csv_line(values: Iterable[object]) -> str:
    """Return a line of a CSV file in which no cell becomes a formula or another cell."""
    texts = (str(csv_cell(value)) for value in values)
    quoted = ('"' + text.replace('"', '""') + '"' if _CELL_DELIMITER.search(text) else text for text in texts)
    return ",".join(quoted) + "\r\n"


def json_line(record: object) -> str:
    """Return a line of a JSON Lines file."""
    return json.dumps(record, ensure_ascii=False) + "\n"


def unquote_cell(text: str) -> str:
    """Return the text of a cell that `csv_cell` wrote."""
    if text.startswith("'") and _FORMULA.match(text):
        return text[1:]
    return text


# First line of a CSV file that tells Excel the delimiter.
_NAMED_DELIMITER = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


def named_delimiter(line: str) -> str | None:
    """Return the delimiter in the first line `sep=;` of a CSV file, None for any other line."""
    match = _NAMED_DELIMITER.fullmatch(line.rstrip("\r\n"))
    if match is None:
        return None
    return match[1]


def csv_records(text: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line number and the fields of each record, the header first, without blank lines.

    A first line `sep=;`, which tells Excel the delimiter, is skipped.
    """
    lines = bounded_lines(text, getattr(text, "name", "the file"))
    first_line = next(lines, "")
    if named_delimiter(first_line) is None:
        skipped_lines = 0
    else:
        skipped_lines = 1
    reader = csv.reader(
        lines if skipped_lines else itertools.chain([first_line], lines), delimiter=delimiter, strict=True
    )
    start = 1 + skipped_lines
    for fields in reader:
        if fields:
            yield start, fields
        start = reader.line_num + 1 + skipped_lines


def first_line_delimiter(path: Path) -> str | None:
    """Return the delimiter in the first line `sep=;` of a CSV file, None without such a line."""
    with open_text(path) as text, translate_read_errors(path):
        return named_delimiter(next(bounded_lines(text, path), ""))


@contextmanager
def translate_read_errors(path: Path) -> Iterator[None]:
    """Translate the errors of a damaged file into an `InputError`."""
    try:
        yield
    except READ_ERRORS as error:
        raise unreadable_file_error(path, error) from None


def csv_header(path: Path, delimiter: str | None = None) -> tuple[str, int, list[str] | None]:
    """Return the delimiter of a CSV file, the line number of its header, and the names of the columns.

    The names are None for an empty file. Without a stated delimiter, it is inferred from the first line.
    """
    with open_text(path) as text, translate_read_errors(path):
        if delimiter is None:
            first_line = next((line for line in bounded_lines(text, path) if line.strip()), "")
            delimiter = named_delimiter(first_line) or _delimiter_of_header(first_line, path)
            text.seek(0)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise InputError(
                "the delimiter must be one character", given=repr(delimiter), allowed="',', ';', '|', tab"
            )
        return delimiter, *next(csv_records(text, delimiter), (0, None))


def _delimiter_of_header(header: str, path: Path) -> str:
    """Return the delimiter of the file's suffix, unless the header contains only another one."""
    if ".tsv" in (suffix.lower() for suffix in path.suffixes):
        default_delimiter = "\t"
    else:
        default_delimiter = ","
    if default_delimiter in header:
        return default_delimiter
    return next((mark for mark in OTHER_DELIMITERS if mark in header), default_delimiter)


def flatten_record(record: JsonDict) -> JsonDict:
    """Return a JSON object with the entries of nested objects added under dotted names."""
    result = dict(record)
    for name, value in record.items():
        if isinstance(value, dict):
            result |= {f"{name}.{inner}": entry for inner, entry in flatten_record(value).items()}
    return result


def _unique_keys(pairs: list[tuple[str, object]]) -> JsonDict:
    """Return a JSON object from its keys and values; raise a `ValueError` for a duplicate key."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return record


def json_document(
    path: Path, max_characters: int = MAX_JSON_CHARACTERS, purpose: str = "to be read as one document"
) -> Any:
    """Return the document in a JSON file of at most `max_characters` and `MAX_JSON_VALUES` values.

    `purpose` completes the sentence "… is too large" in the error.

    Raises an `InputError` for a file that is not JSON, or is larger.
    """
    chunks = list[str]()
    n_characters = 0
    n_values = 0
    try:
        with open_text(path) as text:
            while chunk := text.read(_CHUNK_SIZE):
                n_characters = n_characters + len(chunk)
                # An upper bound: each value follows a comma or the start of a list or an object.
                n_values = n_values + sum(map(chunk.count, ",[{"))
                if n_characters > max_characters or n_values > MAX_JSON_VALUES:
                    raise InputError(
                        f"{path} is too large {purpose}",
                        allowed=f"up to {max_characters // 2**20:,} MiB of text "
                        f"and {MAX_JSON_VALUES:,} values",
                        action="Write one object per line and name the file .jsonl, or keep only the columns "
                        "that are needed.",
                    )
                chunks.append(chunk)
        return json.loads("".join(chunks), object_pairs_hook=_unique_keys)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not JSON",
            given=str(error),
            allowed="an array of objects",
            action="If the file has one object per line, rename it to .jsonl.",
        ) from None


def json_array(document: Any, path: Path) -> list[JsonDict]:
    """Return the objects in a JSON document: an array of objects, or an object that contains one such array.

    Raises an `InputError` for any other document.
    """
    if isinstance(document, dict):
        # Exports often have the records under one key, next to their metadata.
        arrays = [entry for entry in document.values() if _is_object_list(entry)]
        document = arrays[0] if len(arrays) == 1 else document
    if not _is_object_list(document):
        raise InputError(f"{path} is not an array of JSON objects", allowed='[{"id": …}, …]')
    return list(document)


def _is_object_list(entry: object) -> bool:
    """Return whether an entry is a list of JSON objects, and not empty."""
    return isinstance(entry, list) and bool(entry) and all(isinstance(item, dict) for item in entry)


def _decode_quickly(line: str) -> JsonDict | None:
    """Return the JSON object of a line if its number of colons excludes duplicate keys, else None.

    `msgspec` is four times as fast as `json`, accepts less, and keeps the last of two equal keys.
    """
    # Imported late, because only JSON needs it.
    import msgspec

    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        # `json` decides whether the line is invalid, and has the message.
        return None
    # Every key is followed by a colon. With more colons, a key may occur twice, or be nested.
    if isinstance(record, dict) and len(record) == line.count(":"):
        return record
    return None


# Keywords of `json.loads` for the parsers of numbers.
_NUMBER_PARSERS = ("parse_float", "parse_int", "parse_constant")


def json_records(
    text: TextIO, path: Path, max_lines: int | None = None, parse_number: Callable[[str], Any] | None = None
) -> Iterator[tuple[int, JsonDict]]:
    """Yield the line number and the JSON object of each line that is not blank, among the first `max_lines`.

    `parse_number` converts the text of numbers, if given.

    Raises an `InputError` for a line that is not a JSON object.
    """
    for number, line in enumerate(itertools.islice(bounded_lines(text, path), max_lines), start=1):
        if not line.strip():
            continue
        try:
            record = None if parse_number else _decode_quickly(line)
            # An empty object is decoded once more, which costs nothing.
            if not record:
                number_parsers = dict.fromkeys(_NUMBER_PARSERS, parse_number)
                record = json.loads(line, object_pairs_hook=_unique_keys, **number_parsers)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path}: line {number} is not JSON", given=str(error), allowed="one JSON object per line"
            ) from None
        if not isinstance(record, dict):
            raise InputError(
                f"{path}: line {number} is not a JSON object", given=line.strip()[:60], allowed='{"id": …}'
            )
        yield number, record


# ---- size limits of tables that are read completely: a small file may expand to a large table


# Largest table of labels, in rows and in bytes or characters. Larger ones are populations or attacks, and no
# answers of annotators.
MAX_TABLE_ROWS = 2_000_000
MAX_TABLE_BYTES = 2**28

RecordT = TypeVar("RecordT")


def limit_records(
    records: Iterable[RecordT],
    size: Callable[[RecordT], int],
    path: Path | str,
    max_rows: int = MAX_TABLE_ROWS,
    max_characters: int = MAX_TABLE_BYTES,
) -> Iterator[RecordT]:
    """Yield records up to a maximum number of rows and characters; `size` returns the characters of a record.

    Raises
    ------
    InputError
        If there are more.
    """
    n_characters = 0
    for number, record in enumerate(records, start=1):
        n_characters += size(record)
        if number > max_rows or n_characters > max_characters:
            raise too_large_error(path, max_rows, max_characters)
        yield record


def too_large_error(
    path: Path | str, max_rows: int = MAX_TABLE_ROWS, max_characters: int = MAX_TABLE_BYTES
) -> InputError:
    """Return the error for a table of labels that is too large."""
    return InputError(
        f"{path} is too large for a table of labels",
        allowed=f"up to {max_rows:,} rows and {max_characters // 2**20:,} MiB of text",
        action="Keep only the labelled units and the columns that are needed.",
    )
