"""Pages of sentences, tables and notes as plain text and HTML, and numbers as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import compress
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from stratal.errors import optional_import
from stratal.protocols import JsonDict, JsonMapping

# First characters of entries that are aligned to the right.
_NUMERIC = "0123456789+-−–<∞"

# Largest number of rows of a printed table, so that a report stays small. The JSON output contains all rows.
MAX_ROWS = 300

# Widths below this share are printed with a decimal digit. Rounded to two digits, it is 10 points.
_MIN_INTEGER_WIDTH = 0.0995

# Largest number of rows of a table in a notebook.
_NOTEBOOK_ROWS = 20

# Floats outside this range are printed with an exponent.
_MIN_DECIMAL = 1e-4
_MAX_DECIMAL = 1e6

# Shares below this value, .05%, would be printed as 0.0% or 0.1% with one decimal digit.
_MIN_PERCENT = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A table whose entries are numbers, text, intervals, or None for unknown values.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequence
    title : str
    max_rows : int
        Largest number of printed rows.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    max_rows: int = MAX_ROWS

    def cells(self) -> list[list[str]]:
        """Return the entries as text."""
        return [[cell(entry) for entry in row] for row in self.rows]

    def numeric_columns(self) -> list[bool]:
        """Return for each column whether all its entries are numbers, which are aligned to the right."""
        columns: list[tuple[str, ...]] = [()] * len(self.header)
        if self.rows:
            columns = list(zip(*self.cells(), strict=True))
        # The first column names the rows.
        return [
            index > 0 and all(entry[:1] in _NUMERIC for entry in column)
            for index, column in enumerate(columns)
        ]

    def printed(self) -> ReportTable:
        """Return the table with at most `max_rows` rows, and a row that states the number of the others."""
        n_hidden = len(self.rows) - self.max_rows
        if n_hidden <= 0:
            return self
        last_row = [f"… and {n_hidden:,} more: see --json or to_dict()", *[""] * (len(self.header) - 1)]
        return replace(self, rows=[*self.rows[: self.max_rows], last_row], max_rows=self.max_rows + 1)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Page:
    """A printed result: sentences, tables, and notes below them.

    Parameters
    ----------
    lines : sequence of str
    tables : sequence of ReportTable
    notes : sequence of str
    title, name : str
        Title and anchor of a section of a report.
    drawings : sequence of Drawing
        Drawings in a report.
    commands : sequence of str
        Commands in a report.
    """

    lines: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    notes: Sequence[str] = ()
    title: str = ""
    name: str = ""
    drawings: Sequence[Any] = ()
    commands: Sequence[str] = ()

    def __str__(self) -> str:
        return page_text(self)

    def __repr__(self) -> str:
        return page_text(self)

    def _repr_html_(self) -> str:
        return page_html(self)


def table_of(title: str, rows: Sequence[JsonMapping], columns: JsonMapping | Sequence[str]) -> ReportTable:
    """Return the table of dicts. `columns` are keys, or a mapping of header to key or function of the row.

    A column in which all values are None is omitted.
    """
    if isinstance(columns, Mapping):
        getters = columns
    else:
        getters = {name: name for name in columns}
    values = [[get(row) if callable(get) else row.get(get) for row in rows] for get in getters.values()]
    # A table without rows keeps its header.
    has_values = [any(entry is not None for entry in column) or not rows for column in values]
    cells = [list(row) for row in zip(*compress(values, has_values), strict=True)]
    return ReportTable(title=title, header=list(compress(getters, has_values)), rows=cells)


# Largest number of lines of an answer including the next command, so that it is visible above a prompt.
MAX_LINES = 15

# Rows of a table that an answer prints in any case.
MIN_TABLE_ROWS = 12

# Number of lines of the next command: an empty line and the command.
_COMMAND_LINES = 2

# Number of lines of a table with one row: an empty line, title, header and row.
_TABLE_LINES = 4

# Smallest number of lines of the notes: an empty line, and a note or the number of notes.
_NOTE_LINES = 2


def shorten_page(page: Page, max_lines: int = MAX_LINES - _COMMAND_LINES) -> Page:
    """Return a page of about `max_lines` lines: the first rows of its tables, and the notes that fit.

    A table keeps at least `MIN_TABLE_ROWS` rows. Omitted rows and notes are replaced by their number and the
    option that prints them.
    """
    note_lines = 0
    if page.notes:
        note_lines = _NOTE_LINES
    free_lines = max_lines - len(page.lines) - note_lines - _TABLE_LINES * len(page.tables)
    tables = []
    for table in page.tables:
        rows = list(table.rows[: max(1 + free_lines, MIN_TABLE_ROWS)])
        if len(rows) < len(table.rows):
            title = f"{table.title}: {len(rows)} of {len(table.rows):,} (--details: all)"
            table = replace(table, title=title, rows=rows)
        free_lines -= len(rows) - 1
        tables.append(table)
    notes = list(page.notes)
    max_notes = 1 + max(free_lines, 0)
    if len(notes) > max_notes:
        n_omitted = len(notes) - max_notes + 1
        notes = [*notes[: max_notes - 1], f"Also: notes ({n_omitted}): --details"]
    return Page(lines=page.lines, tables=tables, notes=notes)


def page_text(page: Page) -> str:
    """Return a page as plain text, with an empty line between its parts."""
    parts = ["\n".join(page.lines), *map(table_text, page.tables), "\n".join(page.notes)]
    return "\n\n".join(part for part in parts if part)


def table_text(table: ReportTable) -> str:
    """Return a table as text below its title, with text aligned to the left and numbers to the right."""
    table = table.printed()
    lines = [list(table.header), *table.cells()]
    columns = []
    for column, is_numeric in zip(zip(*lines, strict=True), table.numeric_columns(), strict=True):
        width = max(map(_terminal_width, column))
        aligned = []
        for entry in column:
            spaces = " " * (width - _terminal_width(entry))
            if is_numeric:
                aligned.append(spaces + entry)
            else:
                aligned.append(entry + spaces)
        columns.append(aligned)
    text_rows = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    if table.title:
        text_rows.insert(0, table.title)
    return "\n".join(text_rows)


def _terminal_width(text: str) -> int:
    """Return the width of a text in a terminal, where wide characters take two columns."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def cell(entry: object) -> str:
    """Return an entry of a table as text."""
    if entry is None:
        return "–"
    if isinstance(entry, float):
        # A mean can be a rounding error below 0. A tiny positive number can be a p-value, which keeps digits.
        if -_ROUNDING_ERROR < entry <= 0:
            return f"{0.0:.4f}"
        if _MIN_DECIMAL <= abs(entry) < _MAX_DECIMAL:
            return f"{entry:.4f}"
        return f"{entry:.3g}"
    if isinstance(entry, list):
        return interval_text(entry, write=cell)
    if isinstance(entry, int):
        return f"{entry:,}"
    return str(entry)


def signed_text(value: float, number_format: str) -> str:
    """Return a number in a format of Python such as `+.2f`, with a minus sign instead of a hyphen."""
    return format(value, number_format).replace("-", "−")


def format_number(value: float | None) -> str:
    """Return a number with four significant digits for a sentence."""
    if value is None:
        return "–"
    return f"{_without_rounding_error(value):.4g}"


# A smaller distance from 0, or of a share from 1, is a rounding error of floating-point numbers.
_ROUNDING_ERROR = 1e-12


def _without_rounding_error(value: float) -> float:
    """Return the number, or 0 if it differs from 0 by a rounding error."""
    if abs(value) < _ROUNDING_ERROR:
        return 0.0
    return value


def value_text(value: float | None, is_share: bool = False) -> str:
    """Return a share in percent, or another value as a number."""
    if is_share and value is not None:
        return f"{_percent(value)}%"
    return format_number(value)


def _percent(value: float) -> str:
    """Return a share in percent with one decimal digit; with more digits close to 0% and 100%."""
    value = _without_rounding_error(value)
    if 1.0 - abs(value) < _ROUNDING_ERROR:
        value = math.copysign(max(abs(value), 1.0), value)
    if value == 0 or _MIN_PERCENT <= abs(value) <= 1.0 - _MIN_PERCENT or abs(value) >= 1.0:
        return f"{100 * value:.1f}"
    if abs(value) < _MIN_PERCENT:
        return f"{100 * value:.2g}"
    # 99.97 instead of 100.0: enough digits to show the distance to 100.
    n_digits = -math.floor(math.log10(100 * (1.0 - abs(value))))
    return f"{100 * value:.{n_digits}f}"


def interval_text(
    ends: Sequence[float | None], is_share: bool = False, write: Callable[[float | None], str] = format_number
) -> str:
    """Return an interval as text: of a share in percent, else each limit by `write`. None is infinite."""
    low, high = ends
    if is_share and low is not None and high is not None:
        return f"{_percent(low)}% to {_percent(high)}%"
    low_text = "−∞"
    high_text = "∞"
    if low is not None:
        low_text = write(low)
    if high is not None:
        high_text = write(high)
    return f"{low_text} to {high_text}"


def value_and_interval(row: JsonMapping, is_share: bool = True) -> str:
    """Return the value of a row of estimates, with its interval if there is one."""
    value = value_text(row["estimate"], is_share)
    ends = row["confidence_interval"]
    if ends is None:
        return value
    return f"{value} ({interval_text(ends, is_share)})"


def capitalise(text: str) -> str:
    """Return a text whose first character is a capital letter; the others do not change."""
    return f"{text[:1].upper()}{text[1:]}"


def points_text(value: float | None) -> str:
    """Return a difference of shares in percentage points, without the unit."""
    if value is None:
        return "–"
    return signed_text(100 * value, ".1f")


def points_interval_text(ends: Sequence[float | None]) -> str:
    """Return the interval of a difference of shares in percentage points; None is an infinite limit."""
    return f"{interval_text(ends, write=points_text)}{POINTS}"


def difference_text(value: float | None, is_share: bool) -> str:
    """Return a difference; that of shares in percentage points."""
    if is_share and value is not None:
        return f"{points_text(value)}{POINTS}"
    return format_number(value)


def difference_interval_text(ends: Sequence[float | None], is_share: bool) -> str:
    """Return the interval of a difference; that of shares in percentage points."""
    if is_share:
        return points_interval_text(ends)
    return interval_text(ends)


def table_entry(row: JsonMapping, name: str) -> Any:
    """Return an entry of a table of estimates: as text in percent or in percentage points, or the number."""
    value = row.get(name)
    if value is None and name == "estimate":
        # `table_of` omits columns in which all entries are None, but the estimates are always shown.
        return "–"
    if value is None or not row.get("share"):
        return value
    if name == "standard_error":
        return difference_text(value, is_share=True)
    # Only differences are tested.
    is_difference = "p_value" in row
    if name == "estimate" and is_difference:
        return difference_text(value, is_share=True)
    if name == "estimate":
        return value_text(value, is_share=True)
    if is_difference:
        return difference_interval_text(value, is_share=True)
    return interval_text(value, is_share=True)


# The unit of differences of shares, and of widths of their intervals.
POINTS = " points"


def width_text(width: float, is_share: bool) -> str:
    """Return the width of an interval, of a share in percentage points."""
    width = _without_rounding_error(width)
    if not is_share:
        return format_number(width)
    if width < _MIN_INTEGER_WIDTH:
        return f"{100 * width:.2g}{POINTS}"
    return f"{100 * width:.0f}{POINTS}"


def level_text(confidence_level: float) -> str:
    """Return the name of an interval with this confidence level, such as `95% interval`."""
    return f"{100 * confidence_level:g}% interval"


def format_notes(notes: Iterable[str], word: str = "Note") -> list[str]:
    """Return notes as sentences after a word and a colon."""
    return [f"{word}: {note.removesuffix('.')}." for note in notes]


def json_value(value: object) -> Any:
    """Return a value that JSON supports: arrays become lists, and values that are not finite become None."""
    if isinstance(value, np.ndarray | np.generic):
        # Integers, booleans and text are always finite.
        is_finite = value.dtype.kind in "biuU"
        value = value.tolist()
        if is_finite:
            return value
    if isinstance(value, Mapping):
        return json_dict(value)
    if isinstance(value, list | tuple):
        return [json_value(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_dict(entries: Mapping[str, object]) -> JsonDict:
    """Return a dict whose values JSON supports; see `json_value`."""
    return {name: json_value(value) for name, value in entries.items()}


def page_html(page: Page) -> str:
    """Return a page as an HTML element; all text is escaped."""
    lines = [f"<p>{escape(line)}</p>" for line in page.lines]
    notes = [f"<p>{escape(note)}</p>" for note in page.notes]
    return f"<div class='stratal'>{''.join([*lines, *map(table_html, page.tables), *notes])}</div>"


def table_html(table: ReportTable) -> str:
    """Return a table as an HTML element."""
    if table.title:
        caption = f"<caption>{escape(table.title)}</caption>"
    else:
        caption = ""
    table = table.printed()
    classes = [' class="number"' if is_numeric else "" for is_numeric in table.numeric_columns()]
    header = ""
    for entry, class_ in zip(table.header, classes, strict=True):
        header += f'<th scope="col"{class_}>{escape(entry)}</th>'
    body = ""
    for row in table.cells():
        cells = (f"<td{class_}>{escape(entry)}</td>" for entry, class_ in zip(row, classes, strict=True))
        body += f"<tr>{''.join(cells)}</tr>"
    return f"<table>{caption}<thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def one_line(result: object, lines: Sequence[str]) -> str:
    """Return the first of the printed lines of a result, with the name of its class."""
    return f"<{type(result).__name__}: {next(iter(lines), '')}>"


class PageDisplay:
    """Base of results that are printed as a page: text in a terminal, HTML in a notebook."""

    __slots__ = ()

    def _page(self) -> Page:
        """Return the page that is printed, which fits on a screen."""
        raise NotImplementedError

    def summary(self) -> Page:
        """Return the page with all details, to be printed."""
        return self._page()

    def __repr__(self) -> str:
        return one_line(self, self._page().lines)

    def __str__(self) -> str:
        return page_text(self._page())

    def _repr_html_(self) -> str:
        page = self.summary()
        tables = [replace(table, max_rows=min(table.max_rows, _NOTEBOOK_ROWS)) for table in page.tables]
        return page_html(replace(page, tables=tables))


class TableDisplay:
    """Base of tables: displayed in a notebook, and converted to a dataframe."""

    __slots__ = ()

    def _columns(self) -> JsonMapping:
        """Return the columns by name, all of the same length."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        columns = self._columns()
        rows = list(zip(*map(_as_list, columns.values()), strict=True))
        table = ReportTable(header=list(columns), rows=rows, max_rows=_NOTEBOOK_ROWS)
        return page_html(Page(tables=[table]))

    def to_pandas(self) -> Any:
        """Return the table as a pandas dataframe.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        with optional_import("pandas", extra="pandas"):
            import pandas
        return pandas.DataFrame({name: _as_list(values) for name, values in self._columns().items()})


def _as_list(values: Any) -> list[Any]:
    """Return a column as a list of Python objects."""
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    return list(values)
