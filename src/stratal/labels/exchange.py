"""What goes out to annotation tools and comes back: items, the question, answers; and the tools.

Tables are CSV, Excel or JSON Lines: a row per item, an empty column for the answer. They are read as any file
of labels is: by `item_id`, `id` or the sample's own id column, the answer from `label`, and `annotator`,
`status` and `note` where these are there.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from stratal.errors import InputError, LabelError, MissingExtraError
from stratal.labels.annotation_tools import ARGILLA, LABEL_STUDIO, POTATO, PRODIGY, STATE
from stratal.labels.label_table import label_rows
from stratal.labels.meanings import class_text
from stratal.labels.tasks import (
    ITEM_ID,
    NOTE,
    Answers,
    Task,
    Tool,
    ToolAnswer,
    ToolQuestion,
    columns_of,
    newest,
    text_of,
    write_lines,
)
from stratal.tables import files
from stratal.tables.files import cell, existing_file, format_of, json_document, json_records, opened
from stratal.tables.small_table import SmallTable, plain_text

# ---- tools with files of their own


# ---- tables


LABEL = "label"


_OWN = (ITEM_ID, LABEL, "annotator", "status", NOTE)


_LONGEST_LIST = 255
"""Characters that Excel takes in a list of choices."""


def _header(tasks: Sequence[Task]) -> dict[str, str]:
    """Return column to its name in the table: changed where it would mean something else there."""
    return {name: f"{name}_shown" if name.lower() in _OWN else name for name in columns_of(tasks)}


def write_csv(tasks: Sequence[Task], requested: ToolQuestion, path: Path) -> str:
    """Write a CSV file; what a spreadsheet would run gets an apostrophe before it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "items.csv"
    >>> question = ToolQuestion(text="OK?", choices=("Pass",))
    >>> _ = write_csv([Task(id="007", payload={"q": "=1"})], question, path)
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
    return _advice(requested)


def write_json_lines(tasks: Sequence[Task], requested: ToolQuestion, path: Path) -> str:
    """Write JSON Lines.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "items.jsonl"
    >>> question = ToolQuestion(text="OK?", choices=("Pass",))
    >>> _ = write_json_lines([Task(id="007", payload={"q": "?"})], question, path)
    >>> path.read_text()
    '{"item_id": "007", "q": "?", "label": null, "note": null}\\n'
    """
    names = _header(tasks)

    def line(task: Task) -> dict[str, Any]:
        shown = {names[name]: task.payload[name] for name in names if name in task.payload}
        return {ITEM_ID: task.id, **shown, LABEL: None, NOTE: None}

    write_lines(path, (line(task) for task in tasks))
    return _advice(requested)


def write_excel(tasks: Sequence[Task], requested: ToolQuestion, path: Path) -> str:
    """Write a workbook whose ids stay text, with the choices to pick from in the answer's column."""
    try:
        from openpyxl import Workbook
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
        from openpyxl.styles import Alignment
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
    for place in range(2, len(rows[0])):
        sheet.column_dimensions[get_column_letter(place)].width = 50
    column = get_column_letter(len(names) + 2)
    listed = ",".join(requested.choices)
    if requested.choices and not requested.free and len(listed) <= _LONGEST_LIST and '"' not in listed:
        picking = DataValidation(type="list", formula1=f'"{listed}"', allow_blank=True)
        picking.add(f"{column}2:{column}{len(rows)}")
        sheet.add_data_validation(picking)
    with path.open("xb") as file:
        book.save(file)
    return _advice(requested)


def _advice(requested: ToolQuestion) -> str:
    given = f" ({', '.join(requested.choices)})" if requested.choices else ""
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
    labels, skipped = label_rows(table, None, id_name)
    notes, times = (_texts(table, *names) for names in _REMARKS)
    said = [
        ToolAnswer(
            id=labels.ids[row],
            value=value if value is None or isinstance(value, str) else class_text(value),
            annotator="" if labels.annotators is None else labels.annotators[row],
            note=notes[row],
            at=times[row],
            place=labels.place(row),
        )
        for row, value in enumerate(labels.values)
        if skipped[row] or value is not None
    ]
    kind = _TOOL_OF.get(format_of(path), JSON_LINES.name)
    return Answers(tool=kind, said=newest(said), notes=labels.notes)


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


TOOLS = {
    tool.name: tool
    for tool in (
        *(LABEL_STUDIO, ARGILLA, POTATO, PRODIGY),
        *(EXCEL, CSV, JSON_LINES),
    )
}


_SUFFIXES = {"excel": (".xlsx",), "csv": (".csv",), "jsonl": (".jsonl", ".ndjson"), "prodigy": (".jsonl",)}


def tool_called(name: str) -> Tool:
    """Return a tool by its name.

    Examples
    --------
    >>> tool_called("argilla").title
    'Argilla'
    """
    if name not in TOOLS:
        raise InputError("unknown annotation tool", given=repr(name), allowed=", ".join(TOOLS))
    return TOOLS[name]


def named_for(path: Path) -> str | None:
    """Return the name of the tool whose files end as this one does, the plainest of several.

    Examples
    --------
    >>> named_for(Path("items.csv")), named_for(Path("items.jsonl")), named_for(Path("page.html"))
    ('csv', 'jsonl', None)
    """
    return next((name for name, ends in _SUFFIXES.items() if path.suffix.lower() in ends), None)


def write_tasks(tool: Tool, tasks: Sequence[Task], requested: ToolQuestion, path: Path) -> str:
    """Write items for a tool, whole or not at all; return what to do with them there.

    Parameters
    ----------
    tool : Tool
    tasks : sequence of Task
    requested : ToolQuestion
    path : Path
        A new file, or a new folder for tools that need several files.

    Raises
    ------
    InputError
        If `path` exists, has a name of another kind, or cannot be written; and for no items.

    Examples
    --------
    >>> asked = ToolQuestion(text="OK?", choices=("Pass", "Fail"))
    >>> path = Path(tempfile.mkdtemp()) / "items.csv"
    >>> write_tasks(TOOLS["csv"], [Task(id="q7", payload={"q": "?"})], asked, path)[:27]
    "Fill in the column 'label' "
    """
    allowed = _SUFFIXES.get(tool.name, ())
    if allowed and path.suffix.lower() not in allowed:
        raise InputError(f"{path}: {tool.title} needs another name", allowed=f"a file {' or '.join(allowed)}")
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists", action="Give the name of a new file or folder.")
    if not tasks:
        raise InputError("there is nothing left to label", action="Ask `stratal study status` who said what.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".export.") as beside:
            partial = Path(beside, path.name)
            if tool.folder:
                partial.mkdir()
            advice = tool.write(tasks, requested, partial)
            shutil.move(partial, path)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error})", action="Choose another folder."
        ) from None
    return advice.replace(str(partial), str(path))


def read_answers(path: Path, tool: str | None = None, id_name: str = "id") -> Answers:
    """Return the answers of a tool's file; which tool it is of is found out unless it is said.

    Parameters
    ----------
    path : Path
        A file, or Potato's folder.
    tool : str, optional
    id_name : str
        What the sample calls its id column, for tables.

    Raises
    ------
    LabelError
        For a file that cannot be read, is of another tool, or holds no answer.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("item_id,label\\n007,Pass\\n008,\\n")
    >>> [(said.id, said.value) for said in read_answers(path).said]
    [('007', 'Pass')]
    """
    wanted = None if tool is None else tool_called(tool)
    found = answers_of_tool(path)
    if wanted is not None and wanted.formats and (found is None or found.tool != wanted.name):
        other = "" if found is None else f"; it looks like {TOOLS[found.tool].title}"
        raise LabelError(f"{path}: is not an export of {wanted.title}{other}", action="Leave out --from.")
    if found is None:
        found = read_table(path, id_name)
    refuse_empty(found, str(path))
    return found


def refuse_empty(answers: Answers, source: str) -> None:
    """Refuse a file without an answer."""
    if not answers.said:
        raise LabelError(
            f"{source}: holds no answer",
            action="Check that the answers were saved, or that it is the file that came back.",
        )


def answers_of_tool(path: Path) -> Answers | None:
    """Return the answers in a tool's own kind of file, None for a table or anything else.

    Examples
    --------
    >>> answers_of_tool(Path("labels.csv"))
    """
    tool = tool_of(path)
    if tool is None:
        return None
    parts = sorted(path.glob(f"*/{STATE}")) if path.is_dir() else [path]
    found = [tool.answers(_document(part), str(part)) for part in parts]
    said = newest(entry for answers in found for entry in answers.said)
    return replace(found[0], said=said)


def tool_of(path: Path) -> Tool | None:
    """Return the tool that a JSON file or folder is of, None for any other.

    Examples
    --------
    >>> tool_of(Path("labels.csv"))
    """
    if path.is_dir():
        return POTATO if any(path.glob(f"*/{STATE}")) else None
    start = _document(path, most=1)
    return next((tool for tool in TOOLS.values() if tool.format_of(start) is not None), None)


def _document(path: Path, most: int | None = None) -> Any:
    """Return a JSON document, or the first objects of JSON Lines; None for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    if last == ".json":
        return json_document(existing_file(path), files.MOST_BYTES, "for a table of labels")
    if last not in (".jsonl", ".ndjson"):
        return None
    with closing(opened(existing_file(path))) as text:
        return [record for _, record in islice(json_records(text, path), most)]
