"""Excel workbooks that annotators fill in: cells are text, and columns of labels have a list of choices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from stratal.errors import optional_import
from stratal.tables.files import csv_cell

# Excel accepts at most this many characters in a list of choices.
_MAX_CHOICE_CHARACTERS = 255

# Width in characters, so that a sentence is legible without resizing the column.
_COLUMN_WIDTH = 50


def write_workbook(
    path: Path, rows: Sequence[Sequence[str]], choices: Sequence[str], columns: Iterable[int]
) -> None:
    """Write rows with a header to a workbook; cells of `columns` (from 0) only accept the choices.

    Cells accept any text if Excel cannot store the list of choices.
    """
    with optional_import("openpyxl", extra="excel"):
        from openpyxl import Workbook
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
        from openpyxl.styles import Alignment
        from openpyxl.utils import get_column_letter
        from openpyxl.worksheet.datavalidation import DataValidation
    book = Workbook()
    sheet = book.active
    sheet.title = "items"
    for number, row in enumerate(rows, start=1):
        for column_number, text in enumerate(row, start=1):
            entry = sheet.cell(number, column_number)
            entry.number_format = "@"
            entry.alignment = Alignment(wrap_text=True, vertical="top")
            if text.startswith("'"):
                # The reader removes an apostrophe at the start, as from a CSV file, so add another one.
                text = csv_cell(text)
            if text:
                entry.value = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", text)
                entry.data_type = "s"
    label_columns = list(columns)
    for column in range(1, label_columns[0]):
        sheet.column_dimensions[get_column_letter(column + 1)].width = _COLUMN_WIDTH
    choice_list = ",".join(choices)
    # A comma separates choices, and a quotation mark ends their list.
    is_storable = not any("," in choice or '"' in choice for choice in choices)
    if choices and is_storable and len(choice_list) <= _MAX_CHOICE_CHARACTERS:
        validation = DataValidation(
            type="list", formula1=f'"{choice_list}"', allow_blank=True, showErrorMessage=True
        )
        for column in label_columns:
            letter = get_column_letter(column + 1)
            validation.add(f"{letter}2:{letter}{len(rows)}")
        sheet.add_data_validation(validation)
    with path.open("xb") as file:
        book.save(file)
