"""Workbooks as tables, read with openpyxl: cells become text, as in a CSV file."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, TypeAlias

from stratal.errors import InputError, optional_import
from stratal.tables import files, number_format
from stratal.tables.csv_files import blank_note
from stratal.tables.frames import register_columns
from stratal.tables.number_columns import with_decimal_points
from stratal.tables.source import ColumnSelection, Rows, Table
from stratal.whole_numbers import MAX_EXACT_INTEGER


def cell_text(value: object) -> str | None:
    """Return a cell as text: whole numbers without a point, dates as 2026-03-01, None if it is empty."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT_INTEGER:
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time.min:
        return value.date().isoformat()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)


def _open_workbook(path: Path) -> Any:
    """Open a workbook with the saved values of its formulas."""
    with optional_import("openpyxl", extra="excel"):
        import openpyxl

    # The file is read into memory first, because openpyxl leaves a damaged file open.
    content = io.BytesIO(path.read_bytes())
    with _translate_workbook_errors(path):
        return openpyxl.load_workbook(content, read_only=True, data_only=True)


@contextmanager
def _translate_workbook_errors(path: Path) -> Iterator[None]:
    """Translate the errors of a damaged workbook into an `InputError`; errors of XML are SyntaxErrors."""
    # Few tables are workbooks.
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
            f"{path} is not a readable workbook",
            given=str(error)[:200] or type(error).__name__,
            allowed="an .xlsx file that was saved by a spreadsheet program",
            action="Open the file in a spreadsheet program and save it again.",
        ) from None


def _find_unreadable_cells(book: Any, sheet: Any) -> str:
    """Return a description of the first merged cell or formula without a value, empty if there is none."""
    # Few tables are workbooks.
    from xml.etree.ElementTree import iterparse

    with book._archive.open(sheet._worksheet_path) as stream:
        for _, node in iterparse(stream):
            namespace, _, tag = node.tag.rpartition("}")
            if tag == "mergeCell":
                return f"merged cells: {node.get('ref')}"
            # A cell (c) may have a formula (f) and a value (v). If the value is an empty text, t is `str`.
            if tag == "c" and node.get("t") != "str" and node.find(f"{namespace}}}f") is not None:
                if not node.findtext(f"{namespace}}}v"):
                    return f"a formula without a saved value: {node.get('r')}"
            elif tag == "row":
                # Frees the memory of the row.
                node.clear()
    return ""


# Largest number of cells of a sheet: a few compressed bytes may expand to 16,384 columns and a million rows.
_MAX_SHEET_CELLS = 50_000_000

# A sheet with the column names, the rows that are not blank with their numbers, and the number of blank rows.
_SheetContent: TypeAlias = tuple[Any, tuple[str, ...], list[tuple[int, list[str | None]]], int]


def _read_sheet(sheet: Any, path: Path) -> tuple[tuple[str, ...], list[tuple[int, list[str | None]]], int]:
    """Return the column names, the rows that are not blank with their numbers, and the number of blank rows.

    Empty columns at the end are left out. The size that a sheet states is ignored, since it may be wrong.
    """
    sheet.reset_dimensions()
    rows: list[tuple[int, list[str | None]]] = []
    cells_read = 0
    row_number = 0
    for row_number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = [cell_text(value) for value in values]
        while cells and cells[-1] is None:
            cells.pop()
        cells_read += len(cells)
        if cells_read > _MAX_SHEET_CELLS:
            raise files.too_large_error(path)
        if cells:
            rows.append((row_number, cells))
    if not rows:
        return (), [], 0
    (header_row, names), *data_rows = rows
    width = max(len(cells) for _, cells in rows)
    if width * len(rows) > _MAX_SHEET_CELLS:
        raise files.too_large_error(path)
    padded_rows = [(number, cells + [None] * (width - len(cells))) for number, cells in data_rows]
    blank_count = row_number - header_row - len(padded_rows)
    column_names = tuple((name or "").strip() for name in names + [None] * (width - len(names)))
    return column_names, padded_rows, blank_count


def _find_note_below(rows: Sequence[tuple[int, Sequence[str | None]]]) -> tuple[int, str] | None:
    """Return the first of the last rows if these are notes: its number and text; None without notes.

    Notes have an entry only in the first column. They follow a blank row, or they are the only rows with
    spaces in the first column, such as `Source: survey of 2026` below ids. A label may be missing in the last
    row with an id.
    """
    n_notes = 0
    for _, cells in reversed(rows):
        if cells[0] is None or any(cell is not None for cell in cells[1:]):
            break
        n_notes += 1
    n_units = len(rows) - n_notes
    if not n_notes or not n_units:
        return None
    row_number, (text, *_) = rows[n_units]
    follows_blank_row = row_number > rows[n_units - 1][0] + 1
    has_other_spaces = any(" " in (cells[0] or "") for _, cells in rows[:n_units])
    if not follows_blank_row and (has_other_spaces or " " not in str(text)):
        return None
    return row_number, str(text)


def _is_table(names: Sequence[str], rows: Sequence[object]) -> bool:
    """Return whether a sheet has several columns with names, and rows; a sheet of notes has not."""
    return sum(map(bool, names)) > 1 and len(rows) > 0


def workbook_table(connection: object, file: Path, is_wanted_sheet: Callable[[Sequence[str]], bool]) -> Table:
    """Return the only sheet of a workbook with values as a table; of several, the one that is wanted."""
    import pyarrow as pa

    book = _open_workbook(file)
    try:
        with _translate_workbook_errors(file):
            contents = [(sheet, *_read_sheet(sheet, file)) for sheet in book.worksheets]
        nonempty_sheets = [content for content in contents if content[1]]
        titles = ", ".join(repr(sheet.title) for sheet, *_ in nonempty_sheets)
        sheet, names, filled_rows, blank_count = _wanted_sheet(nonempty_sheets, titles, file, is_wanted_sheet)
        _refuse_unreadable_sheet(book, sheet, names, filled_rows, file)
    finally:
        book.close()
    notes = blank_note(str(file), blank_count)
    if len(nonempty_sheets) > 1:
        notes = (f"{file}: only sheet {sheet.title!r} was read (sheets: {titles})", *notes)

    def read_columns(selection: ColumnSelection) -> Rows:
        columns = {}
        format_counts = {}
        for name in selection.existing_columns(names):
            position = names.index(name)
            entries = [cells[position] for _, cells in filled_rows]
            columns[name] = pa.array(entries, pa.string())
            if name != selection.id:
                format_counts[name] = number_format.count_formats(entries)
        rows = replace(
            register_columns(connection, columns, str(file)),
            all_text=True,
            notes=notes,
            row_location=lambda row: f"row {filled_rows[row][0]}",
        )
        # Only numbers that were typed as text have marks, so columns may have different formats.
        file_format = number_format.file_format(
            format_counts, point_may_group_thousands=False, have_one_format=False
        )
        return with_decimal_points(rows, selection, file_format)

    return Table(table_name=str(file), names=names, read_columns=read_columns)


def _wanted_sheet(
    sheets: Sequence[_SheetContent],
    titles: str,
    file: Path,
    is_wanted_sheet: Callable[[Sequence[str]], bool],
) -> _SheetContent:
    """Return the only one of the sheets that are not empty, or of several the one that is wanted.

    `titles` are their names, for the error.
    """
    if not sheets:
        raise InputError(f"{file} is empty", allowed="a header and one row per unit")
    if len(sheets) == 1:
        return sheets[0]
    wanted_sheets = [content for content in sheets if is_wanted_sheet(content[1])]
    if len(wanted_sheets) > 1:
        tables = [content for content in wanted_sheets if _is_table(*content[1:3])]
        wanted_sheets = tables or wanted_sheets
    if len(wanted_sheets) != 1:
        raise InputError(
            f"{file}: {len(wanted_sheets)} of {len(sheets)} sheets have the requested columns",
            given=titles,
            allowed="exactly one",
            action="Save the required sheet as a separate file.",
        )
    return wanted_sheets[0]


def _refuse_unreadable_sheet(
    book: Any, sheet: Any, names: Sequence[str], rows: Sequence[tuple[int, list[str | None]]], file: Path
) -> None:
    """Raise an error for a title above the header, a note below the rows, merged cells, unsaved formulas."""
    is_title = len(names) > 1 and names[0] != "" and not any(names[1:])
    if is_title:
        raise InputError(
            f"{file}: the first row of sheet {sheet.title!r} is a title, not a header",
            given=repr(names[0]),
            allowed="a name for each column in the first row",
            action="Delete the rows above the header.",
        )
    note = _find_note_below(rows)
    if note is not None:
        row_number, text = note
        raise InputError(
            f"{file}: row {row_number} of sheet {sheet.title!r} is a note below the table, not a unit",
            given=repr(text[:60]),
            allowed="entries in other columns than the first, too",
            action="Delete the notes below the table. If the row is a unit, fill in another column, or "
            "delete the blank rows above it.",
        )
    with _translate_workbook_errors(file):
        unreadable_cells = _find_unreadable_cells(book, sheet)
    if unreadable_cells:
        raise InputError(
            f"{file}: sheet {sheet.title!r} contains {unreadable_cells}",
            allowed="a value in each cell",
            action="Unmerge merged cells and fill in each row. For formulas, open the workbook in a "
            "spreadsheet program and save it, or paste the formulas as values.",
        )
