"""Lines of rows in text files, for error messages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TextIO

from stratal.tables import files

# Largest row number whose line is searched for an error message, by reading the file again. This takes a
# second for this number of rows.
_MAX_ROWS_SEARCHED = 2_000_000


def row_locator(file: Path, lines: Callable[[TextIO], Iterator[int]]) -> Callable[[int], str]:
    """Return a function that describes a row number, from 0, by its line in the file, such as `line 17`.

    The function reads the file again. `lines(text)` yields the line number of each row, which differs from
    the row number because of the header, blank lines and quoted line breaks.
    """

    def row_location(row: int) -> str:
        if row >= _MAX_ROWS_SEARCHED:
            return f"row {row + 1}"
        with closing(files.open_text(file)) as text:
            line = next(itertools.islice(lines(text), row, None), None)
        if line is None:
            return f"row {row + 1}"
        return f"line {line}"

    return row_location


def csv_row_lines(text: TextIO, delimiter: str) -> Iterator[int]:
    """Yield the first line number of each data row that is not blank."""
    rows = itertools.islice(files.csv_records(text, delimiter), 1, None)
    return (line for line, fields in rows if any(field.strip() for field in fields))


def nonblank_lines(text: TextIO) -> Iterator[int]:
    """Yield the number of each line that is not blank."""
    return (number for number, line in enumerate(text, start=1) if line.strip())
