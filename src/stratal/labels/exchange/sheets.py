"""Tables that a person fills in: CSV, Excel, JSON Lines; a row per item, an empty column for the answer.

They are read as any file of labels is: by `item_id`, `id` or the sample's own id column, the answer from
`label`, and `annotator`, `status` and `note` where these are there.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stratal.errors import MissingExtraError
from stratal.labels.exchange.exchange import (
    ITEM_ID,
    NOTE,
    Answers,
    Asked,
    Said,
    Task,
    Tool,
    columns_of,
    newest,
    text_of,
    write_lines,
)
from stratal.labels.label_table import ANSWER_NAMES, LabelRows
from stratal.tables.files import cell, format_of, text_of_cell
from stratal.tables.small_table import SmallTable, plain_text

LABEL = "label"
_OWN = (ITEM_ID, LABEL, "annotator", "status", NOTE)
_LONGEST_LIST = 255
"""Characters that Excel takes in a list of choices."""


def _header(tasks: Sequence[Task]) -> dict[str, str]:
    """Return column to its name in the table: changed where it would mean something else there."""
    return {name: f"{name}_shown" if name.lower() in _OWN else name for name in columns_of(tasks)}


def write_csv(tasks: Sequence[Task], asked: Asked, path: Path) -> str:
    """Write a CSV file; what a spreadsheet would run gets an apostrophe before it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "items.csv"
    >>> _ = write_csv([Task(id="007", payload={"q": "=1"})], Asked(text="OK?", choices=("Pass",)), path)
    >>> path.read_text().splitlines()
    ['item_id,q,label,note', "007,'=1,,"]
    """
    names = _header(tasks)
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([cell(name) for name in (ITEM_ID, *names.values(), LABEL, NOTE)])
        for task in tasks:
            writer.writerow(
                [cell(task.id), *(cell(text_of(task.payload.get(name))) for name in names), "", ""]
            )
    return _advice(asked)


def write_json_lines(tasks: Sequence[Task], asked: Asked, path: Path) -> str:
    """Write JSON Lines.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "items.jsonl"
    >>> _ = write_json_lines([Task(id="007", payload={"q": "?"})], Asked(text="OK?", choices=("Pass",)), path)
    >>> path.read_text()
    '{"item_id": "007", "q": "?", "label": null, "note": null}\\n'
    """
    names = _header(tasks)

    def line(task: Task) -> dict[str, Any]:
        shown = {names[name]: task.payload[name] for name in names if name in task.payload}
        return {ITEM_ID: task.id, **shown, LABEL: None, NOTE: None}

    write_lines(path, (line(task) for task in tasks))
    return _advice(asked)


def write_excel(tasks: Sequence[Task], asked: Asked, path: Path) -> str:
    """Write a workbook whose ids stay text, with the choices to pick from in the answer's column.

    Examples
    --------
    >>> write_excel.__name__
    'write_excel'
    """
    try:
        from openpyxl import Workbook
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
        from openpyxl.styles import Alignment, Font
        from openpyxl.utils import get_column_letter
        from openpyxl.worksheet.datavalidation import DataValidation
    except ImportError:
        raise MissingExtraError("openpyxl", extra="excel") from None
    names = _header(tasks)
    book = Workbook()
    sheet = book.active
    sheet.title = "items"
    rows = [[ITEM_ID, *names.values(), LABEL, NOTE]]
    rows += [[task.id, *(text_of(task.payload.get(name)) for name in names), "", ""] for task in tasks]
    for number, row in enumerate(rows, start=1):
        for place, text in enumerate(row, start=1):
            entry = sheet.cell(number, place)
            entry.number_format = "@"
            entry.alignment = Alignment(wrap_text=True, vertical="top")
            if text:
                entry.value = ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", text)
                entry.data_type = "s"
            if number == 1:
                entry.font = Font(bold=True)
    for place in range(2, len(rows[0])):
        sheet.column_dimensions[get_column_letter(place)].width = 50
    column = get_column_letter(len(names) + 2)
    sheet.column_dimensions[column].width = 14
    sheet.freeze_panes = "B2"
    listed = ",".join(asked.choices)
    if asked.choices and not asked.free and len(listed) <= _LONGEST_LIST and '"' not in listed:
        picking = DataValidation(type="list", formula1=f'"{listed}"', allow_blank=True)
        picking.add(f"{column}2:{column}{len(rows)}")
        sheet.add_data_validation(picking)
    with path.open("xb") as file:
        book.save(file)
    return _advice(asked)


def _advice(asked: Asked) -> str:
    given = f" ({', '.join(asked.choices)})" if asked.choices else ""
    return f"Fill in the column {LABEL!r}{given}; {NOTE!r} is for remarks. Leave empty what cannot be said."


def read_table(path: Path, id_name: str) -> Answers:
    """Return the answers in a table: rows without an answer, and not skipped, are left out.

    Raises
    ------
    LabelError
        For a row without an id; an `InputError` for a file that cannot be read, and for missing columns.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,label,status\\na,Pass,\\nb,,skipped\\nc,,\\n")
    >>> [(said.id, said.value) for said in read_table(path, "id").said]
    [('a', 'Pass'), ('b', None)]
    """
    table = SmallTable.of(path, str(path), (LABEL,))
    rows = LabelRows.of(table, table.find(*ANSWER_NAMES) or LABEL, id_name)
    notes, times = (_texts(table, *names) for names in _REMARKS)
    said = [
        Said(
            id=rows.ids[row],
            value=None if value is None else text_of_cell(str(plain_text(value))),
            annotator="" if rows.annotators is None else rows.annotators[row],
            note=notes[row],
            at=times[row],
            place=f"{path}, {table.places[row]}",
        )
        for row, value in enumerate(rows.values)
        if rows.skipped[row] or value is not None
    ]
    kind = _TOOL_OF.get(format_of(path), JSON_LINES.name)
    return Answers(tool=kind, said=newest(said), notes=(*table.notes, *rows.notes))


_REMARKS = ((NOTE, "notes", "comment"), ("timestamp", "updated_at"))
_TOOL_OF = {"xlsx": "excel", "csv": "csv"}


def _texts(table: SmallTable, *names: str) -> list[str]:
    found = table.find(*names)
    return [
        plain_text(entry) or "" for entry in ([None] * len(table) if found is None else table.values(found))
    ]


CSV = Tool(name="csv", title="CSV", write=write_csv)
EXCEL = Tool(name="excel", title="Excel", write=write_excel)
JSON_LINES = Tool(name="jsonl", title="JSON Lines", write=write_json_lines)
