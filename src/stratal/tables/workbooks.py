"""Workbooks (.xlsx), read by openpyxl: the sheet that is meant, its cells as text, as in a CSV file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from stratal.errors import InputError, MissingExtraError

LARGEST_WHOLE = 2.0**53
"""Whole numbers from here on have lost digits, and are not written out as if they had not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One sheet of a workbook.

    Parameters
    ----------
    title : str
    names : tuple of str (columns,)
    rows : list of list of str or None (m, columns)
        Empty cells are None.
    places : list of int (m,)
        Number of each row in the sheet.
    notes : tuple of str
        Which sheet was read, where there are several.

    Examples
    --------
    >>> Sheet(title="Sheet1", names=("id",), rows=[["a"]], places=[2]).notes
    ()
    """

    title: str
    names: tuple[str, ...]
    rows: list[list[str | None]]
    places: list[int]
    notes: tuple[str, ...] = ()


def one_sheet(path: Path, fits: Callable[[Sequence[str]], bool]) -> Sheet:
    """Return the sheet of a workbook that holds anything, of several the one whose columns fit.

    Raises
    ------
    InputError
        For a workbook that cannot be read or is empty, and where not exactly one of several sheets fits.
    MissingExtraError
        If openpyxl is not installed.
    """
    book = _opened(path)
    try:
        found = [(page, _sheet(page.title, page.iter_rows(values_only=True))) for page in book.worksheets]
        sheets = [(page, sheet) for page, sheet in found if sheet.names]
        if not sheets:
            raise InputError(f"{path}: is empty", allowed="a header and one row per unit")
        titles = ", ".join(repr(sheet.title) for _, sheet in sheets)
        fitting = [each for each in sheets if len(sheets) == 1 or fits(each[1].names)]
        if len(fitting) != 1:
            raise InputError(
                f"{path}: {len(fitting)} of {len(sheets)} sheets have the columns",
                given=titles,
                action="Save the sheet that is meant as a file of its own.",
            )
        page, sheet = fitting[0]
        _refuse_unreadable(path, sheet, _unreadable(book, page))
    finally:
        book.close()
    note = f"{path}: sheet {sheet.title!r} was read, of {titles}"
    return replace(sheet, notes=(note,)) if len(sheets) > 1 else sheet


def _refuse_unreadable(path: Path, sheet: Sheet, unreadable: str) -> None:
    """Refuse a title above the header, and cells that only look as if they held a value."""
    if [name != "" for name in sheet.names] == [True] + [False] * (len(sheet.names) - 1) != [True]:
        raise InputError(
            f"{path}: the first row of sheet {sheet.title!r} is a title, and no header",
            given=repr(sheet.names[0]),
            action="Delete the rows above the header.",
        )
    if unreadable:
        raise InputError(
            f"{path}: sheet {sheet.title!r} has {unreadable}",
            action="Unmerge cells and fill in each row; open the workbook in a spreadsheet and save it, or "
            "paste formulas as values.",
        )


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


def _opened(path: Path) -> Any:
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError("openpyxl", extra="excel") from None
    import zipfile

    bad = (zipfile.BadZipFile, KeyError, ValueError, openpyxl.utils.exceptions.InvalidFileException)
    try:
        return openpyxl.load_workbook(path, read_only=True, data_only=True)
    except bad as error:
        what, allowed = f"{path}: is not a workbook that can be read", ".xlsx as spreadsheets save it"
        raise InputError(what, given=str(error), allowed=allowed) from None


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


def _sheet(title: str, lines: Any) -> Sheet:
    """Return a sheet; its first row with an entry is the header, and empty columns at the end are none."""
    rows = [(number, [cell_text(cell) for cell in line]) for number, line in enumerate(lines, start=1)]
    header = next((at for at, (_, cells) in enumerate(rows) if any(cells)), None)
    if header is None:
        return Sheet(title=title, names=(), rows=[], places=[])
    names, below = rows[header][1], rows[header + 1 :]
    width = max((at + 1 for _, cells in rows for at, cell in enumerate(cells) if cell is not None), default=0)
    padded = [(cells + [None] * width)[:width] for _, cells in below]
    return Sheet(
        title=title,
        names=tuple((name or "").strip() for name in (names + [None] * width)[:width]),
        rows=padded,
        places=[number for number, _ in below],
    )
