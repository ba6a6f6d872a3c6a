"""Plain text: how a number is written, aligned tables, and pages of sentences, tables and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import compress
from typing import Any
from unicodedata import east_asian_width

from stratal.errors import installed

# What an entry begins with that stands to the right of its column.
_NUMERIC = "0123456789+-−–<∞"


# Rows of a table that are shown, so that a report stays a small page; a plain dict has them all.
MOST_ROWS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A table whose entries are numbers, text, intervals, or None where nothing is known.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequence
    title : str
    most : int
        Rows that are shown.

    Examples
    --------
    >>> print(table_text(ReportTable(header=["stratum", "units"], rows=[["low", 1200], ["high", 7]])))
    stratum  units
    low      1,200
    high         7
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    most: int = MOST_ROWS

    def cells(self) -> list[list[str]]:
        """Return the entries as text."""
        return [[cell(entry) for entry in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Return which columns hold numbers alone, and so are aligned to the right."""
        columns = zip(*self.cells(), strict=True) if self.rows else [()] * len(self.header)
        return [j > 0 and all(entry[:1] in _NUMERIC for entry in column) for j, column in enumerate(columns)]

    def first(self) -> ReportTable:
        """Return the rows that are shown, with a last one that says how many more there are, and where."""
        more = len(self.rows) - self.most
        if more <= 0:
            return self
        last = [f"… and {more:,} more: see --json or to_dict()", *[""] * (len(self.header) - 1)]
        return replace(self, rows=[*self.rows[: self.most], last], most=self.most + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is shown of a result: sentences, tables, and notes below them.

    Parameters
    ----------
    lines : sequence of str
    tables : sequence of ReportTable
    notes : sequence of str
    title, name : str
        As a section of a report, with its address within the page.
    drawings : sequence of Drawing
        Of a report.
    commands : sequence of str
        Lines to type, in a report.

    Examples
    --------
    >>> print(page_text(Page(lines=["Estimate 0.5"], notes=["Note: few labels."])))
    Estimate 0.5
    <BLANKLINE>
    Note: few labels.
    """

    lines: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    notes: Sequence[str] = ()
    title: str = ""
    name: str = ""
    drawings: Sequence[Any] = ()
    commands: Sequence[str] = ()


def table_of(
    title: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Any] | Sequence[str]
) -> ReportTable:
    """Return the table of several dicts, its columns entries of these, or header → entry or function.

    A column in which no row has anything is left out.

    Examples
    --------
    >>> table_of("Strata", [{"n": 3, "size": 6}], {"n": "n", "share": lambda row: row["n"] / row["size"]})
    ReportTable(header=['n', 'share'], rows=[[3, 0.5]], title='Strata', most=300)
    """
    if isinstance(columns, Mapping):
        given = columns
    else:
        given = {name: name for name in columns}
    found = [[get(row) if callable(get) else row.get(get) for row in rows] for get in given.values()]
    known = [any(entry is not None for entry in column) or not rows for column in found]
    cells = [list(row) for row in zip(*compress(found, known), strict=True)]
    return ReportTable(title=title, header=list(compress(given, known)), rows=cells)


# Lines of an answer, with the next command: what one sees at a glance, above a prompt.
MOST_LINES = 15

# Lines of the next command: an empty one and its own.
_AFTER = 2


def brief(page: Page, most: int = MOST_LINES - _AFTER) -> Page:
    """Return a page of at most so many lines: the first rows of its tables, and the notes that fit.

    A table takes an empty line, its title and its header; what is left out is counted, and where it is said.

    Examples
    --------
    >>> notes = [f"Note: {k}." for k in range(20)]
    >>> short = brief(Page(lines=["Estimate 0.5"], notes=notes))
    >>> len(short.notes), short.notes[-1]
    (11, 'Also: notes (10): --details')
    """
    tables = list(page.tables)
    left = most - len(page.lines)
    kept = 2 if page.notes else 0  # an empty line, and a note or their number
    shown = [table for k, table in enumerate(tables) if (k + 1) * 4 + kept <= left]
    extra = [f"Also: {table.title.lower()} ({len(table.rows)}): --details" for table in tables[len(shown) :]]
    left -= len(extra) + kept + 4 * len(shown)
    cut = []
    for table in shown:
        rows = list(table.rows[: 1 + max(left, 0)])
        if len(rows) < len(table.rows):
            title = f"{table.title}: {len(rows)} of {len(table.rows):,} (--details: all)"
            table = replace(table, title=title, rows=rows)
        left -= len(rows) - 1
        cut.append(table)
    notes = list(page.notes)
    room = 1 + max(left, 0)
    if len(notes) > room:
        notes = [*notes[: room - 1], f"Also: notes ({len(notes) - room + 1}): --details"]
    return Page(lines=[*page.lines, *extra], tables=cut, notes=notes)


def page_text(page: Page) -> str:
    """Return a page as plain text, its parts apart by an empty line.

    Examples
    --------
    >>> print(page_text(Page(tables=[ReportTable(header=["a"], rows=[["x"]], title="Letters")])))
    Letters
    a
    x
    """
    parts = ["\n".join(page.lines), *map(table_text, page.tables), "\n".join(page.notes)]
    return "\n\n".join(part for part in parts if part)


def table_text(table: ReportTable) -> str:
    """Return an aligned table below its title: text to the left, numbers to the right.

    Examples
    --------
    >>> print(table_text(ReportTable(header=["unit", "proxy"], rows=[["a", 0.5], ["b", None]])))
    unit   proxy
    a     0.5000
    b          –
    """
    table = table.first()
    lines = [list(table.header), *table.cells()]
    columns = []
    for column, to_right in zip(zip(*lines, strict=True), table.numeric(), strict=True):
        widest = max(map(_width, column))
        spaces = [" " * (widest - _width(entry)) for entry in column]
        pairs = zip(spaces, column, strict=True)
        columns.append([space + entry if to_right else entry + space for space, entry in pairs])
    shown = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
    return "\n".join([table.title, *shown] if table.title else shown)


def _width(text: str) -> int:
    """Return the places that a text takes in a terminal: wide letters take two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def cell(entry: Any) -> str:
    """Return an entry of a table as text.

    Examples
    --------
    >>> cell(1200), cell(0.5), cell(None), cell([0.25, None]), cell("low")
    ('1,200', '0.5000', '–', '0.2500 to ∞', 'low')
    """
    if entry is None:
        return "–"
    if isinstance(entry, float):
        if entry == 0 or 1e-4 <= abs(entry) < 1e6:
            return f"{entry:.4f}"
        return f"{entry:.3g}"
    if isinstance(entry, list):
        return interval_text(entry, write=cell)
    return f"{entry:,}" if isinstance(entry, int) else str(entry)


def number(value: float | None) -> str:
    """Return a number in a sentence: four significant digits.

    Examples
    --------
    >>> number(0.0138312), number(None)
    ('0.01383', '–')
    """
    return "–" if value is None else f"{value:.4g}"


def value_text(value: float | None, share: bool = False) -> str:
    """Return a value as people write it: a share in percent, anything else as a number.

    Examples
    --------
    >>> value_text(0.9312, share=True), value_text(3.51234)
    ('93.1%', '3.512')
    """
    if share and value is not None:
        return f"{_percent(value)}%"
    return number(value)


def _percent(value: float) -> str:
    if abs(value) >= 0.0005 or value == 0:
        return f"{100 * value:.1f}"
    return f"{100 * value:.2g}"


def interval_text(
    ends: Sequence[float | None], share: bool = False, write: Callable[[float | None], str] = number
) -> str:
    """Return an interval as text; None is an end that is open.

    Examples
    --------
    >>> interval_text([None, 0.5]), interval_text([0.916, 0.944], share=True)
    ('−∞ to 0.5', '91.6–94.4%')
    """
    low, high = ends
    if share and low is not None and high is not None:
        return f"{_percent(low)}–{_percent(high)}%"
    return f"{'−∞' if low is None else write(low)} to {'∞' if high is None else write(high)}"


def level_text(confidence_level: float) -> str:
    """Return the name of an interval of this level.

    Examples
    --------
    >>> level_text(0.95)
    '95% interval'
    """
    return f"{100 * confidence_level:g}% interval"


def noted(notes: Iterable[str], word: str = "Note") -> list[str]:
    """Return notes as sentences.

    Examples
    --------
    >>> noted(["few labels"])
    ['Note: few labels.']
    """
    return [f"{word}: {note.removesuffix('.')}." for note in notes]


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: arrays become lists, what is not finite becomes None.

    Examples
    --------
    >>> plain([float("nan"), 0.5, {"n": (1, 2)}])
    [None, 0.5, {'n': [1, 2]}]
    """
    if hasattr(value, "tolist"):
        whole = value.dtype.kind in "biuU"
        value = value.tolist()
        if whole:
            return value
    if isinstance(value, Mapping):
        return plain_dict(value)
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def plain_dict(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict whose values JSON can hold; see `plain`.

    Examples
    --------
    >>> plain_dict({"low": -math.inf, "n": 3})
    {'low': None, 'n': 3}
    """
    return {name: plain(value) for name, value in entries.items()}


def page_html(page: Page) -> str:
    """Return a page as one HTML element; all text is escaped.

    Examples
    --------
    >>> page_html(Page(lines=["1 < 2"]))
    "<div class='stratal'><p>1 &lt; 2</p></div>"
    """
    lines, notes = ([f"<p>{escape(line)}</p>" for line in lines] for lines in (page.lines, page.notes))
    return f"<div class='stratal'>{''.join([*lines, *map(table_html, page.tables), *notes])}</div>"


def table_html(table: ReportTable) -> str:
    """Return a table as an HTML element.

    Examples
    --------
    >>> table_html(ReportTable(header=["n"], rows=[[3]]))
    '<table><thead><tr><th scope="col">n</th></tr></thead><tbody><tr><td>3</td></tr></tbody></table>'
    """
    if table.title:
        caption = f"<caption>{escape(table.title)}</caption>"
    else:
        caption = ""
    table = table.first()
    kinds = [' class="number"' if right else "" for right in table.numeric()]
    head, *body = (
        "".join(f"<{tag}{kind}>{escape(entry)}</{tag[:2]}>" for entry, kind in zip(row, kinds, strict=True))
        for tag, row in [('th scope="col"', table.header), *(("td", row) for row in table.cells())]
    )
    rows = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


class Printed:
    """Base of results that print themselves, as text in a terminal and as HTML in a notebook.

    Examples
    --------
    >>> class Answer(Printed):
    ...     def _page(self):
    ...         return Page(lines=["Forty-two"])
    >>> print(Answer())
    Forty-two
    """

    __slots__ = ()

    def _page(self) -> Page:
        """Return what is shown of the result."""
        raise NotImplementedError

    def __str__(self) -> str:
        return page_text(self._page())

    def _repr_html_(self) -> str:
        return page_html(self._page())


class Tabular:
    """Base of things that are a table: shown as one in a notebook, and handed on as a dataframe.

    Examples
    --------
    >>> class Counts(Tabular):
    ...     def _columns(self):
    ...         return {"stratum": ["low", "high"], "units": [12, 7]}
    >>> Counts()._repr_html_().count("<tr>")
    3
    """

    __slots__ = ()

    def _columns(self) -> Mapping[str, Any]:
        """Return the columns by name, all of one length."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        columns = self._columns()
        rows = list(zip(*map(_listed, columns.values()), strict=True))
        return page_html(Page(tables=[ReportTable(header=list(columns), rows=rows, most=20)]))

    def to_pandas(self) -> Any:
        """Return the table as a pandas dataframe.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        with installed("pandas", extra="pandas"):
            import pandas
        return pandas.DataFrame({name: _listed(values) for name, values in self._columns().items()})


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)
