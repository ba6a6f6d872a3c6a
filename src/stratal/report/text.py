"""Plain text: how a number is written, aligned tables, and pages of sentences, tables and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice
from typing import Any

from stratal.errors import MissingExtraError

_NUMERIC = "0123456789+-−–<∞"
"""What an entry begins with that stands to the right of its column."""


MOST_STRATA = 100
"""Strata that a page shows; a plain dict has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose entries are numbers, text, intervals, or None where nothing is known.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequence
    title : str

    Examples
    --------
    >>> print(table_text(Table(header=["stratum", "units"], rows=[["low", 1200], ["high", 7]])))
    stratum  units
    low      1,200
    high         7
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""

    def cells(self) -> list[list[str]]:
        """Return the entries as text."""
        return [[cell(entry) for entry in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Return which columns hold numbers alone, and so are aligned to the right."""
        columns = zip(*self.cells(), strict=True) if self.rows else [()] * len(self.header)
        return [j > 0 and all(entry[:1] in _NUMERIC for entry in column) for j, column in enumerate(columns)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is shown of a result: sentences, tables, and notes below them.

    Parameters
    ----------
    lines : sequence of str
    tables : sequence of Table
    notes : sequence of str

    Examples
    --------
    >>> print(page_text(Page(lines=["Estimate 0.5"], notes=["Note: few labels."])))
    Estimate 0.5
    <BLANKLINE>
    Note: few labels.
    """

    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()


def filled(table: Table) -> Table:
    """Return the table without the columns in which no row has anything.

    Examples
    --------
    >>> filled(Table(title="", header=("a", "b"), rows=[[1, None], [2, None]])).header
    ['a']
    """
    kept = [k for k in range(len(table.header)) if any(row[k] is not None for row in table.rows)]
    if not table.rows or len(kept) == len(table.header):
        return table
    rows = [[row[k] for k in kept] for row in table.rows]
    return replace(table, header=[table.header[k] for k in kept], rows=rows)


def table_of(
    title: str, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Any] | Sequence[str], what: str = ""
) -> Table:
    """Return the table of several dicts, its columns entries of these, or header → entry or function.

    With `what`, the plural of what a row is, only the first rows are shown.

    Examples
    --------
    >>> table_of("Strata", [{"n": 3, "size": 6}], {"n": "n", "share": lambda row: row["n"] / row["size"]})
    Table(header=['n', 'share'], rows=[[3, 0.5]], title='Strata')
    """
    given = columns if isinstance(columns, Mapping) else {name: name for name in columns}
    cells = [[get(row) if callable(get) else row[get] for get in given.values()] for row in rows]
    return Table(title=title, header=list(given), rows=first_rows(cells, what) if what else cells)


def first_rows(
    rows: Sequence[Sequence[Any]],
    what: str,
    where: str = "--json or to_dict()",
    most: int | None = MOST_STRATA,
) -> list[Sequence[Any]]:
    """Return the first rows of a table, with a last one that says how many more there are, and where.

    Examples
    --------
    >>> first_rows([["a", 1], ["b", 2], ["c", 3]], "strata", most=2)
    [['a', 1], ['b', 2], ['… and 1 more strata: see --json or to_dict()', '']]
    """
    shown = list(rows[:most])
    if len(shown) < len(rows):
        rest = f"… and {len(rows) - len(shown):,} more {what}: see {where}"
        shown.append([rest, *[""] * (len(rows[0]) - 1)])
    return shown


MOST_LINES = 15
"""Lines of an answer, with the next command: what one sees at a glance, above a prompt."""

_AFTER = 2
"""Lines of the next command: an empty one and its own."""


def brief(page: Page, most: int = MOST_LINES - _AFTER) -> Page:
    """Return a page of at most so many lines: the first rows of its tables, and the notes that fit.

    A table takes an empty line, its title and its header; what is left out is counted, and where it is said.

    Examples
    --------
    >>> notes = [f"Note: {k}." for k in range(20)]
    >>> short = brief(Page(lines=["Estimate 0.5"], notes=notes))
    >>> len(short.notes), short.notes[-1]
    (11, '… and 10 more notes: --details')
    """
    tables, left = list(page.tables), most - len(page.lines)
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
    room = 1 + max(left, 0)
    notes = list(page.notes)
    if len(notes) > room:
        rest = len(notes) - (room - 1)
        words = f"more note{'s' if rest > 1 else ''}" if room > 1 else f"note{'s' if rest > 1 else ''}"
        notes = [*notes[: room - 1], f"{'… and ' if room > 1 else ''}{rest} {words}: --details"]
    return Page(lines=[*page.lines, *extra], tables=cut, notes=notes)


def page_text(page: Page) -> str:
    """Return a page as plain text, its parts apart by an empty line.

    Examples
    --------
    >>> print(page_text(Page(tables=[Table(header=["a"], rows=[["x"]], title="Letters")])))
    Letters
    a
    x
    """
    parts = ["\n".join(page.lines), *map(table_text, page.tables), "\n".join(page.notes)]
    return "\n\n".join(part for part in parts if part)


def table_text(table: Table) -> str:
    """Return an aligned table below its title: text to the left, numbers to the right.

    Examples
    --------
    >>> print(table_text(Table(header=["unit", "proxy"], rows=[["a", 0.5], ["b", None]])))
    unit   proxy
    a     0.5000
    b          –
    """
    right = table.numeric()
    lines = [list(table.header), *table.cells()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join(
            entry.rjust(width) if to_right else entry.ljust(width)
            for entry, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([table.title, *shown] if table.title else shown)


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
        return f"{entry:.4f}" if entry == 0 or 1e-4 <= abs(entry) < 1e6 else f"{entry:.3g}"
    if isinstance(entry, list):
        return interval_text(entry, cell)
    return f"{entry:,}" if isinstance(entry, int) else str(entry)


def number(value: float | None) -> str:
    """Return a number in a sentence: four significant digits.

    Examples
    --------
    >>> number(0.0138312), number(None)
    ('0.01383', '–')
    """
    return "–" if value is None else f"{value:.4g}"


def value_text(value: float | None, findings: Mapping[str, Any]) -> str:
    """Return a value as people say it: a share in percent, anything else as a number.

    Examples
    --------
    >>> value_text(0.9312, {"share": True}), value_text(3.51234, {"share": False})
    ('93.1%', '3.512')
    """
    if value is None:
        return "–"
    return f"{_percent(value)}%" if findings["share"] else number(value)


def ends_text(interval: Sequence[float | None], *, share: bool) -> str:
    """Return the ends of an interval as people say them.

    Examples
    --------
    >>> ends_text([0.916, 0.944], share=True), ends_text([None, 1.5], share=False)
    ('91.6–94.4%', '−∞ to 1.5')
    """
    low, high = interval
    if share and low is not None and high is not None:
        return f"{_percent(low)}–{_percent(high)}%"
    return interval_text(interval)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}" if abs(value) >= 0.0005 or value == 0 else f"{100 * value:.2g}"


def interval_text(ends: Sequence[float | None], write: Callable[[float | None], str] = number) -> str:
    """Return an interval as text; None is an end that is open.

    Examples
    --------
    >>> interval_text([None, 0.5])
    '−∞ to 0.5'
    """
    low, high = ends
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


_AS_THEY_ARE = (str, int, bool, type(None))


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: arrays become lists, what is not finite becomes None.

    Examples
    --------
    >>> plain([float("nan"), 0.5, {"n": (1, 2)}])
    [None, 0.5, {'n': [1, 2]}]
    """
    if type(value) in _AS_THEY_ARE:  # most of a large table
        return value
    if type(value) is float:
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return plain_dict(value)
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_dict(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict whose values JSON can hold; see `plain`.

    Examples
    --------
    >>> plain_dict({"low": -math.inf, "n": 3})
    {'low': None, 'n': 3}
    """
    return {name: plain(value) for name, value in entries.items()}


_NUMBER = ' class="number"'
"""Of cells that are aligned to the right."""


def page_html(page: Page) -> str:
    """Return a page as one HTML element; all text is escaped.

    Examples
    --------
    >>> page_html(Page(lines=["1 < 2"]))
    "<div class='stratal'><p>1 &lt; 2</p></div>"
    """
    parts = [_paragraphs(page.lines), *map(table_html, page.tables), _paragraphs(page.notes)]
    return f"<div class='stratal'>{''.join(parts)}</div>"


def table_html(table: Table) -> str:
    """Return a table as an HTML element.

    Examples
    --------
    >>> table_html(Table(header=["n"], rows=[[3]]))
    '<table><thead><tr><th scope="col">n</th></tr></thead><tbody><tr><td>3</td></tr></tbody></table>'
    """
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    numeric = table.numeric()
    head = _row(table.header, numeric, 'th scope="col"')
    body = "".join(_row(row, numeric, "td") for row in table.cells())
    return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"


def _row(entries: Iterable[str], numeric: Iterable[bool], kind: str) -> str:
    cells = (
        f"<{kind}{_NUMBER if right else ''}>{escape(entry)}</{kind.split()[0]}>"
        for entry, right in zip(entries, numeric, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


MOST_ROWS = 20
"""Rows of a table that a notebook shows."""


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
        columns = {name: _listed(values) for name, values in self._columns().items()}
        rows = list(islice(zip(*columns.values(), strict=True), MOST_ROWS))
        more = max(len(values) for values in columns.values()) - len(rows)
        notes = [f"… and {more:,} more rows"] if more else []
        return page_html(Page(tables=[Table(header=list(columns), rows=rows)], notes=notes))

    def to_pandas(self) -> Any:
        """Return the table as a pandas dataframe.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", extra="pandas") from None
        return pandas.DataFrame({name: _listed(values) for name, values in self._columns().items()})


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)
