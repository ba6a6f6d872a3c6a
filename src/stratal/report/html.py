"""HTML: a page as elements for a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from stratal.report.text import Page, Table

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
