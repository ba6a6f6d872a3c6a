"""Files of labels: tables and tools' own, as `read_labels` reads them, and tasks that go out to be labelled.

Tables are CSV, Excel or JSON Lines: a row per item, an empty column for the answer. They are read as any file
of labels is: by `item_id`, `id` or the sample's own id column, the answer from `label`, and `annotator`,
`status` and `note` where these are there.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from typing import Any, Self

import numpy as np

from stratal.errors import InputError, LabelError, installed, names_mistyped, near_names
from stratal.labels.annotation_tools import (
    ARGILLA,
    ITEM_ID,
    LABEL_STUDIO,
    NOTE,
    POTATO,
    PRODIGY,
    STATE,
    VERDICT,
    Answers,
    Task,
    Tool,
    ToolAnswer,
    ToolQuestion,
    columns_of,
    newest,
    write_lines,
)
from stratal.labels.labels import ADJUDICATED, SAMPLE_TOKEN, SKIPPED, SUBMITTED, Labels, UnitRows
from stratal.labels.meanings import class_text, stand_for_numbers
from stratal.population.declaration import ROW
from stratal.question.tags import JSON_LISTS, how_to_write
from stratal.randomness import id_text
from stratal.tables import files
from stratal.tables.files import (
    csv_header,
    csv_line,
    csv_records,
    existing_file,
    format_of,
    json_document,
    json_records,
    limited,
    local_path,
    opened,
)
from stratal.tables.logs import ID_NAMES
from stratal.tables.small_table import SmallTable, is_missing, plain_text

# Columns that say who answered, the first that is there.
ANNOTATOR_NAMES = ("annotator", "annotator_id", "rater", "labeler", "labeller")

# Different answers of a column that is taken for one of answers, though it is not called so.
_FEW = 3

# In the name of a column of the model's answers.
_PREDICTED = "pred"

# Columns of answers, the first that is there.
ANSWER_NAMES = ("label", "verdict", "labels")


# Columns of what people said, in files that were not made for labelling, the first that is there.
HUMAN_NAMES = ("human", "human_label", "human_score", "gold", "gold_label", "ground_truth", "truth", "winner")


def is_table(labels: Any, names: Iterable[str] = ()) -> bool:
    """Return whether labels are a dataframe, an Arrow table or a mapping of columns to lists.

    A mapping of ids to lists of answers is none: it has neither a usual column nor one of these names.

    Examples
    --------
    >>> is_table({"id": ["a", "b"], "label": [1, 0]}), is_table({"a": [1, 0], "b": [1, 1]})
    (True, False)
    """
    if isinstance(labels, Labels):
        return False
    if isinstance(labels, Mapping):
        columns = [column for column in labels.values() if isinstance(column, list | tuple | np.ndarray)]
        named = {ANSWER_NAMES[0], *ID_NAMES, *names} & set(labels)
        return len(columns) == len(labels) > 1 and bool(named)
    return hasattr(labels, "columns") or hasattr(labels, "column_names")


def labels_of_table(
    table: Any, sample: UnitRows, value: str | None = None, id_name: str | None = None
) -> Labels:
    """Return a column of labels of a table in memory, `label` or one called alike unless it is named.

    Parameters
    ----------
    table : dataframe or mapping of columns
    sample : Sample
    value, id_name : str, optional
        The columns of labels and of ids; ids are called as in the sample unless given.
    """
    rows = SmallTable.of(table, "the labels")
    return label_rows(rows, value, id_name or sample.question.id, sample.ids.tolist())[0]


def read_from_table(labels: Any, sample: UnitRows) -> Any:
    """Return the labels of a table in memory, and labels of any other kind as they are.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1], ids=["a"])
    >>> sample = stratal.designs.SimpleRandom(budget=1).draw(population, seed=7)
    >>> read_from_table([1.0], sample), read_from_table({"a": 1.0}, sample)
    ([1.0], {'a': 1.0})
    """
    # A mapping of columns has one of ids; others are mappings of ids.
    has_ids = not isinstance(labels, Mapping) or bool({sample.question.id, *ID_NAMES} & set(labels))
    return labels_of_table(labels, sample) if has_ids and is_table(labels) else labels


def label_rows(
    table: SmallTable, value: str | None = None, id_name: str = "id", order: Sequence[Any] | None = None
) -> tuple[Labels, list[bool]]:
    """Return the labels of a table, and which rows (m,) were skipped.

    The answers are in the column `value`, or in the first of `ANSWER_NAMES`, if there is but one such. Rows
    without ids are in the order of the sample's ids (n,).

    Examples
    --------
    >>> label_rows(SmallTable.of({"item_id": ["a"], "Label": [" Pass "]}, "labels"))[0].values
    ('Pass',)
    """
    if value is None:
        several = ", or several models': --compare A,B"
    else:
        several = ""
    if value is None:
        value = table.find(*ANSWER_NAMES) or ANSWER_NAMES[0]
        alike = [name for name in table.lists if name.strip().casefold() == value.strip().casefold()]
        if len(alike) > 1:
            named = " or ".join(f"value={name!r} (--value {quote(name)})" for name in alike)
            what = f"{table.label}: several columns may be that of the labels"
            action = f"Rename or drop all but one, or name it: {named}."
            raise InputError(what, given=", ".join(map(repr, alike)), action=action)
    entries = table.answers(value, action=f"Name it: value= (--value COL){several}.")
    notes = table.notes
    if id_name == ROW and table.find(ROW) is None and order is not None:
        if len(table) != len(order):
            what = (
                f"{table.label}: without ids there must be a row for each drawn unit, in to_label.csv's order"
            )
            raise LabelError(what, given=f"{len(table)} rows", allowed=str(len(order)))
        ids = tuple(map(id_text, order))
        notes = (*notes, f"{table.label}: has no ids; its rows are taken in the order of the sample")
    else:
        ids = _ids(table, id_name)
    who = table.find(*ANNOTATOR_NAMES)
    status = table.find("status")
    if status is None:
        statuses = [None] * len(table)
    else:
        statuses = table.values(status)
    given = [str(entry or SUBMITTED).strip().lower() for entry in statuses]
    for at, entry in zip(table.places, given, strict=True):
        if entry not in (SUBMITTED, SKIPPED):
            what = f"{table.label}, {at}: unknown status"
            allowed = f"{SUBMITTED} or {SKIPPED}"
            raise LabelError(what, given=repr(entry), allowed=allowed)
    skipped = [entry == SKIPPED for entry in given]
    token = table.find(SAMPLE_TOKEN)
    read = {table.find(id_name, *ID_NAMES), value, who, status, token}
    labels = Labels(
        ids=ids,
        columns={name: tuple(entries) for name, entries in table.lists.items() if name not in read},
        values=tuple(None if out else entry for out, entry in zip(skipped, entries, strict=True)),
        annotators=None if who is None else tuple(plain_text(name) or "" for name in table.values(who)),
        places=table.places,
        source=table.label,
        notes=notes,
        failed=table.failed(value),
        tokens=None if token is None else tuple(plain_text(entry) or "" for entry in table.values(token)),
    )
    return labels, skipped


def _ids(table: SmallTable, id_name: str) -> tuple[str, ...]:
    """Return the ids (m,) in the sample's own column, or in `item_id` or `id`."""
    known = tuple(dict.fromkeys((id_name, *reversed(ID_NAMES))))
    found = table.find(*known)
    if found is None:
        given = ", ".join(table.lists)
        allowed = " or ".join(known)
        action = "Name it: --id COLUMN; --id row where rows are in the order of to_label.csv."
        raise InputError(f"{table.label}: no id column", given=given, allowed=allowed, action=action)
    ids = table.values(found)
    for row, entry in enumerate(ids):
        if entry == "" or (is_missing(entry) and not isinstance(entry, str)):
            what = f"{table.label}, {table.places[row]}: the id is missing"
            action = "Fill it in from the file that was handed out; an answer without one matches no unit."
            raise LabelError(what, action=action)
    return tuple(map(id_text, ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumn:
    """The column of answers of a table, and how far it is filled in.

    Parameters
    ----------
    name : str, optional
        None where no column is called so.
    rows, filled : int
    counted : bool
        Whether every answer is a number, or a word that stands for one.
    others : tuple of str
        Columns that hold answers too: two values or three, which stand for numbers.
    model : str, optional
        Column of the model that was judged, in long tables.
    human : str, optional
        Column of what people said of some units: called so, or one of few values and empty in most rows.
    predicted : str, optional
        Column of the model's answers, where what people said in the column `human` is of the same classes.
    alternatives : tuple of str
        Further columns that may hold what people said.

    Examples
    --------
    >>> table = SmallTable.of({"id": ["a", "b"], "label": ["Pass", ""]}, "labels")
    >>> AnswerColumn.of(table).filled
    1
    """

    name: str | None
    rows: int
    filled: int = 0
    counted: bool = False
    others: tuple[str, ...] = ()
    model: str | None = None
    human: str | None = None
    predicted: str | None = None
    alternatives: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: SmallTable) -> Self:
        """Return what is known of the answers of a table."""
        name = table.find(*ANSWER_NAMES)
        given = {
            column: [value for value in values if not is_missing(value)]
            for column, values in table.lists.items()
        }
        others = tuple(
            column
            for column, values in given.items()
            if column != name and len(set(map(plain_text, values))) <= _FEW and _stand_for_numbers(values)
        )
        called = table.find(*HUMAN_NAMES)
        sparse = (column for column in others if 2 * len(given[column]) < len(table))
        if name is None and (called is None or not _stand_for_numbers(given[called])):
            called = next(sparse, None)
        human = called if name is None else name
        human, predicted = _classes_beside(table, given) or (human, None)
        answered = given.get(name or human or "", [])
        usual_names = {*ANSWER_NAMES, *HUMAN_NAMES}
        alternatives = tuple(
            column
            for column in given
            if column not in (name, human, predicted)
            and (
                column.strip().casefold() in usual_names
                or (column in others and 2 * len(given[column]) < len(table))
            )
        )
        return cls(
            name=name,
            rows=len(table),
            filled=len(answered),
            counted=name is not None and _stand_for_numbers(answered),
            others=others,
            model=table.find("model"),
            human=human,
            predicted=predicted,
            alternatives=alternatives,
        )


def _classes_beside(table: SmallTable, given: dict[str, list[Any]]) -> tuple[str, str] | None:
    """Return a column of what people said and one of the model's answers, if both are of the same classes.

    Classes that are numbers are taken for classes where the model's column is called so.
    """
    called = table.find(*ANSWER_NAMES)
    sparse = (name for name, values in given.items() if 2 * len(values) < len(table))
    if called is None:
        candidates = [table.find(*HUMAN_NAMES), *sparse]
    else:
        candidates = [called]
    if not any(candidates):
        return None
    full = {
        name: set(map(plain_text, values))
        for name, values in given.items()
        if len(values) == len(table) and not any(isinstance(value, (dict, list)) for value in values[:1])
    }
    for human in filter(None, candidates):
        said = set(map(plain_text, given[human]))
        numbers = _stand_for_numbers(given[human])
        for name, classes in full.items():
            likely = name != human and (not numbers or _PREDICTED in name.lower())
            if likely and 1 < len(classes) <= len(table) / 2 and 2 * len(said & classes) > len(said):
                return human, name
    return None


def _stand_for_numbers(values: list[Any]) -> bool:
    """Return whether there are values, and all are numbers or words that stand for numbers."""
    return not any(isinstance(value, dict | list) for value in values) and stand_for_numbers(
        map(class_text, filter(None, map(plain_text, values)))
    )


# ---- tools with files of their own


# ---- tables


LABEL = "label"


_OWN = (ITEM_ID, LABEL, "annotator", "status", NOTE, SAMPLE_TOKEN)


# Characters that Excel takes in a list of choices.
_LONGEST_LIST = 255


def _header(tasks: Sequence[Task]) -> dict[str, str]:
    """Return column to its name in the table: changed where it would mean something else there."""
    return {name: f"{name}_shown" if name.lower() in _OWN else name for name in columns_of(tasks)}


def _rows(tasks: Sequence[Task]) -> list[list[str]]:
    """Return the table of some tasks as texts, with its header."""
    names = _header(tasks)
    if any(task.token for task in tasks):
        token = [SAMPLE_TOKEN]
    else:
        token = []
    rows = (
        [task.id, *task.texts(names).values(), *[task.token or "" for _ in token], "", ""] for task in tasks
    )
    return [[ITEM_ID, *names.values(), *token, LABEL, NOTE], *rows]


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
    with path.open("x", encoding="utf-8", newline="") as file:
        file.writelines(map(csv_line, _rows(tasks)))
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

    shown = ({names[name]: value for name, value in task.payload.items()} for task in tasks)
    lines = zip(tasks, shown, strict=True)
    tokens = {task.id: {SAMPLE_TOKEN: task.token} if task.token else {} for task in tasks}
    empty = {LABEL: None, NOTE: None}
    write_lines(path, ({ITEM_ID: task.id, **own, **tokens[task.id], **empty} for task, own in lines))
    return _advice(requested)


def write_excel(tasks: Sequence[Task], requested: ToolQuestion, path: Path) -> str:
    """Write a workbook whose ids stay text, with the choices to pick from in the answer's column."""
    with installed("openpyxl", extra="excel"):
        from openpyxl import Workbook
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
        from openpyxl.styles import Alignment
        from openpyxl.utils import get_column_letter
        from openpyxl.worksheet.datavalidation import DataValidation
    book = Workbook()
    rows = _rows(tasks)
    sheet = book.active
    sheet.title = "items"
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
    column = get_column_letter(len(rows[0]) - 1)
    listed = ",".join(requested.choices)
    if (
        requested.choices
        and not (requested.free or requested.sets)
        and len(listed) <= _LONGEST_LIST
        and '"' not in listed
    ):
        picking = DataValidation(type="list", formula1=f'"{listed}"', allow_blank=True)
        picking.add(f"{column}2:{column}{len(rows)}")
        sheet.add_data_validation(picking)
    with path.open("xb") as file:
        book.save(file)
    return _advice(requested)


def _advice(requested: ToolQuestion) -> str:
    if requested.choices:
        given = f" ({', '.join(requested.choices)})"
    else:
        given = ""
    if requested.sets:
        given += f" with {how_to_write(JSON_LISTS, requested.choices)}"
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

    def texts(*names: str) -> list[str]:
        found = table.find(*names)
        if found is None:
            entries = [None] * len(table)
        else:
            entries = table.values(found)
        return [plain_text(entry) or "" for entry in entries]

    notes = texts(NOTE, "notes", "comment")
    times = texts("timestamp", "updated_at")
    said = [
        ToolAnswer(
            id=labels.ids[row],
            value=value if value is None or isinstance(value, str) else class_text(value),
            annotator="" if labels.annotators is None else labels.annotators[row],
            note=notes[row],
            at=times[row],
            place=labels.place(row),
            token="" if labels.tokens is None else labels.tokens[row],
        )
        for row, value in enumerate(labels.values)
        if skipped[row] or value is not None
    ]
    kind = {"xlsx": "excel", "csv": "csv"}.get(format_of(path), "jsonl")
    return Answers(tool=kind, said=newest(said), notes=labels.notes)


_TABLES = (
    Tool("excel", "Excel", write_excel),
    Tool("csv", "CSV", write_csv),
    Tool("jsonl", "JSON Lines", write_json_lines),
)

TOOLS = {tool.name: tool for tool in (LABEL_STUDIO, ARGILLA, POTATO, PRODIGY, *_TABLES)}


_SUFFIXES = {"excel": (".xlsx",), "csv": (".csv",), "jsonl": (".jsonl", ".ndjson"), "prodigy": (".jsonl",)}


def tool_called(name: str, *others: str) -> Tool:
    """Return a tool by its name; `others` would have been allowed too.

    Examples
    --------
    >>> tool_called("argilla").title
    'Argilla'
    """
    if name not in TOOLS:
        raise InputError("unknown annotation tool", given=repr(name), allowed=", ".join((*others, *TOOLS)))
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
    if requested.sets and tool not in _TABLES:
        raise InputError(
            f"{tool.title} cannot ask for sets of tags",
            allowed=", ".join(["html", *(table.name for table in _TABLES)]),
            action="Use the page, or a table: stratal study export STUDY --output items.csv.",
        )
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
        what = f"{path}: cannot be written ({error.strerror or error})"
        raise InputError(what, action="Choose another folder.") from None
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
    found = answers_of_tool(path, id_name)
    if wanted is not None and wanted.formats and (found is None or found.tool != wanted.name):
        if found is None:
            other = ""
        else:
            other = f"; it looks like {TOOLS[found.tool].title}"
        raise LabelError(f"{path}: is not an export of {wanted.title}{other}", action="Leave out --from.")
    if found is None:
        found = read_table(path, id_name)
    refuse_empty(found, str(path))
    return found


def refuse_empty(answers: Answers, source: str) -> None:
    """Refuse a file without an answer."""
    if not answers.said:
        action = "Check that the answers were saved, or that it is the file that came back."
        raise LabelError(f"{source}: holds no answer", action=action)


def answers_of_tool(path: Path, id_name: str = "id") -> Answers | None:
    """Return the answers in a tool's own kind of file, None for a table or anything else.

    `id_name` is what the sample calls its id column.
    """
    path = local_path(path)
    if path.is_dir():
        parts = sorted(path.glob(f"*/{STATE}"))
    else:
        parts = [path]
    start = _document(parts[0], most=1) if parts else None
    known = (tool for tool in TOOLS.values() if tool.format_of(start) is not None)
    tool = POTATO if parts and path.is_dir() else next(known, None)
    if tool is None:
        return None
    found = [tool.answers(_document(part), str(part), id_name) for part in parts]
    return replace(found[0], said=newest(entry for answers in found for entry in answers.said))


def _document(path: Path, most: int | None = None) -> Any:
    """Return a JSON document, or the first objects of JSON Lines; None for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    if last == ".json":
        return json_document(existing_file(path), files.MOST_BYTES, "for a table of labels")
    if last in (".csv", ".tsv"):
        return _rows_of_tool(existing_file(path))
    if last not in (".jsonl", ".ndjson"):
        return None
    with closing(opened(existing_file(path))) as text:
        return [record for _, record in islice(json_records(text, path), most)]


# Columns that every CSV file of Label Studio has.
_LABEL_STUDIO_COLUMNS = {"annotation_id", "annotator", "lead_time"}


def _rows_of_tool(path: Path) -> list[dict[str, str]] | None:
    """Return the rows of a CSV file that Label Studio wrote, None of any other."""
    delimiter, _, names = csv_header(path)
    if names is None or not set(names) >= _LABEL_STUDIO_COLUMNS:
        return None
    with closing(opened(path)) as text:
        records = limited(csv_records(text, delimiter), lambda record: sum(map(len, record[1])), path)
        return [dict(zip(names, fields, strict=False)) for _, fields in islice(records, 1, None)]


# What the column of first labels is called before their own name, and that of the judges who differ: a file
# with the latter is a second look.
FIRST = "first_"
DIFFERS_FROM = "differs_from"


@names_mistyped
def read_labels(
    *paths: str | Path,
    id_name: str = "id",
    value: str | None = None,
    positive: str | None = None,
    mapping: Mapping[Any, float | str | None] | None = None,
    order: Sequence[Any] | None = None,
    same_rows: bool = False,
) -> Labels:
    """Read labels from one file or several: of several rounds, or of several annotators.

    Parameters
    ----------
    *paths : str or Path
        `.csv`, `.tsv`, `.xlsx`, `.jsonl`, `.json`, `.parquet` or `.feather`, one row per answer: an id column
        (`id_name`, `item_id` or `id`), the label, and optionally `annotator` and `status` (`submitted` or
        `skipped`). Columns are found without regard to case; blank rows are left out. Where files answer for
        the same units and nobody is named, each file's name is its annotator.
    id_name : str
        What the sample calls its id column; `row` for files without ids, whose rows are in the order of
        `order`. Of a file for a second look (`write_disagreements`) the answers replace the first ones, which
        stay in `Labels.replaced`.
    value : str, optional
        Column of the label; `label` or `verdict` unless given.
    positive : str, optional
        The label that counts as 1, and every other as 0; case does not matter.
    mapping : mapping of label to float, str or None, optional
        What labels count as: a number, the name of a class, or None for no answer.
    order : sequence (n,), optional
        The sample's ids, for rows without ids.
    same_rows : bool
        Of ids that are row numbers: these are the rows of the sample, so that no column `sample_token` needs
        to state it.

    Returns
    -------
    Labels
        Empty and skipped ones with value None.

    Raises
    ------
    InputError
        For no file, one that cannot be read, and for missing columns (naming near ones).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,label\\na,Pass\\nb,\\n")
    >>> read_labels(path).values
    ('Pass', None)
    """
    if not paths:
        raise InputError("no file of labels is given", action="Give its path: read_labels('labels.csv').")
    read = [_read_one(Path(path), id_name, value, order) for path in paths]
    parts = [part for part in read if part is not None and part.replaced is None]
    if not parts:
        action = "Give the files of the first labels too, before it."
        raise InputError(f"{paths[0]}: is a second look at labels, which are not given", action=action)
    labels = parts[0] if len(parts) == 1 else _together(parts)
    for part in read:
        if part is not None and part.replaced is not None:
            labels = _looked_again(labels, part, part.replaced)
    if same_rows:
        tokens = None
    else:
        tokens = labels.tokens or ("",) * len(labels.ids)
    return replace(labels, positive=positive, mapping=mapping, tokens=tokens)


def read_labels_or_verdicts(
    *paths: str | Path,
    models: Sequence[str],
    id_name: str = "id",
    mapping: Mapping[Any, float | str | None] | None = None,
    same_rows: bool = False,
) -> Labels | dict[str, Labels]:
    """Read labels from files, or verdicts on several models' answers: a column for each model, of its name.

    Files hold verdicts if they have the columns of all models and no label.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,new,old\\n7,pass,fail\\n")
    >>> found = read_labels_or_verdicts(path, models=("new", "old"))
    >>> {name: labels.values for name, labels in found.items()}
    {'new': ('pass',), 'old': ('fail',)}
    """
    how: Any = {"id_name": id_name, "mapping": mapping, "same_rows": same_rows}
    own = [Path(path) for path in paths if answers_of_tool(Path(path)) is None]
    tables = [SmallTable.of(path, str(path), (LABEL,)) for path in own]
    if len(tables) < len(paths) or any({*models} - {*table.lists} for table in tables):
        return read_labels(*paths, **how)
    if all(table.find(*ANSWER_NAMES) for table in tables):
        labels = read_labels(*paths, **how)
        if labels.answered:
            return labels
    return {name: read_labels(*paths, value=name, **how) for name in models}


def _looked_again(labels: Labels, look: Labels, first: Labels) -> Labels:
    """Return labels of which those of a second look are replaced; `first` is what these were."""
    said: dict[str, list[str]] = {}
    for unit, answer in zip(labels.ids, labels.values, strict=True):
        if answer is not None:
            said.setdefault(unit, []).append(class_text(answer))
    changed = 0
    for row, (unit, before, after) in enumerate(zip(look.ids, first.values, look.values, strict=True)):
        if class_text(before) not in said.get(unit, ()):
            what = f"{look.place(row)}: the first label of {unit!r} is not that of the labels"
            given = f"{before!r}, and {', '.join(map(repr, said.get(unit, ()))) or 'none'}"
            raise LabelError(what, given=given, action="Give the labels from which the file was written.")
        changed += class_text(before).casefold() != class_text(after).casefold()
    again = set(look.ids)
    gone = labels.only([row for row, unit in enumerate(labels.ids) if unit in again])
    kept = labels.only([row for row, unit in enumerate(labels.ids) if unit not in again])
    earlier = () if labels.replaced is None else (labels.replaced,)
    note = (
        f"in {changed} of {len(look.ids)} the first label was wrong; only items on which a judge and people "
        "differed were looked at again, which can only bring them closer"
    )
    note = f"second look ({look.source}): {note if look.ids else 'nothing is filled in yet'}"
    look = replace(look, annotators=kept.annotators and (ADJUDICATED,) * len(look.ids))
    return replace(
        _joined([kept, look]), notes=(*labels.notes, *look.notes, note), replaced=_joined([*earlier, gone])
    )


def _together(parts: Sequence[Labels]) -> Labels:
    """Return several files' labels as one, with their names as annotators where they answer for one unit."""
    said: tuple[str, ...] = ()
    answered = (
        {unit for unit, answer in zip(part.ids, part.values, strict=True) if answer is not None}
        for part in parts
    )
    overlap = max(Counter(chain.from_iterable(answered)).values(), default=0) > 1
    if overlap and not all(part.annotators for part in parts):
        names = [Path(part.source).name.split(".")[0] for part in parts]
        if len(set(names)) < len(names):
            names = [part.source for part in parts]
        parts = [
            part if part.annotators else replace(part, annotators=(name,) * len(part.ids))
            for part, name in zip(parts, names, strict=True)
        ]
        said = (f"annotators are taken from the files' names: {', '.join(names)}",)
    whole = _joined(parts)
    return replace(whole, notes=(*whole.notes, *said))


def _joined(parts: Sequence[Labels]) -> Labels:
    """Return the rows of some labels as one; who is not named where others are is nobody."""
    named = any(part.annotators for part in parts)
    people = (who for part in parts for who in part.annotators or ("",) * len(part.ids))
    failed = (each for part in parts for each in part.failed or (False,) * len(part.ids))
    tokens = (each for part in parts for each in part.tokens or ("",) * len(part.ids))
    return Labels(
        ids=tuple(unit for part in parts for unit in part.ids),
        values=tuple(answer for part in parts for answer in part.values),
        annotators=tuple(people) if named else None,
        columns=_shared_columns(parts),
        places=tuple(part.place(row) for part in parts for row in range(len(part.ids))),
        failed=tuple(failed) if any(part.failed for part in parts) else None,
        tokens=tuple(tokens),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _shared_columns(parts: Sequence[Labels]) -> dict[str, tuple[Any, ...]]:
    """Return the other columns that all files have."""
    if parts:
        shared = set.intersection(*(set(part.columns) for part in parts))
    else:
        shared = set()
    return {name: tuple(entry for part in parts for entry in part.columns[name]) for name in shared}


def _read_one(path: Path, id_name: str, value: str | None, order: Sequence[Any] | None) -> Labels | None:
    """Return the labels of a file; None of a second look at another column than this."""
    if value in (None, LABEL, VERDICT):
        found = answers_of_tool(path, id_name)
    else:
        found = None
    if found is not None:
        refuse_empty(found, str(path))
        named = any(entry.annotator for entry in found.said)
        return Labels(
            ids=tuple(entry.id for entry in found.said),
            values=tuple(entry.value for entry in found.said),
            annotators=tuple(entry.annotator for entry in found.said) if named else None,
            places=tuple(entry.place.removeprefix(f"{path}, ") for entry in found.said),
            source=str(path),
            notes=found.notes,
        )
    table = SmallTable.of(path, str(path), (value or LABEL,))
    if table.log is not None and order is not None:  # of a log the drawn units alone
        drawn = {id_text(entry) for entry in order}
        rows = [row for row, unit in enumerate(table.lists["id"]) if unit in drawn]
        if not rows:
            given = f"{table.lists['id'][0]!r}, …"
            allowed = f"ids of the sample: {order[0]!r}, …"
            raise LabelError(f"{table.label}: none of its units was drawn", given=given, allowed=allowed)
        left = len(table) - len(rows)
        note = f"{table.label}: {left:,} units that were not drawn are left out"
        table = replace(table.only(rows), notes=(*table.notes, *((note,) if left else ())))
    if table.find(DIFFERS_FROM) is None:
        return label_rows(table, value, id_name, order)[0]
    name = value or table.find(*ANSWER_NAMES) or LABEL
    first = table.find(FIRST + name)
    if first is None:
        return None
    now = label_rows(table, name, id_name)[0]
    rows = [row for row, answer in enumerate(now.values) if answer is not None]
    before = replace(now, values=tuple(table.values(first))).only(rows)
    return replace(now.only(rows), replaced=before)


def by_model(models: Labels, outcomes: Labels, wanted: tuple[str, ...] = ()) -> dict[str, Labels]:
    """Return the outcomes of each model, in the order in which the models first appear.

    Parameters
    ----------
    models : Labels
        The column of the models' names.
    outcomes : Labels
        The column of their outcomes, of the same rows.
    wanted : tuple of str
        The models to keep, in this order; all of them if empty.

    Raises
    ------
    LabelError
        For a model that is not there.

    Examples
    --------
    >>> models = Labels(ids=("1", "1", "2"), values=("new", "old", "new"))
    >>> found = by_model(models, Labels(ids=("1", "1", "2"), values=(1, 0, 1)))
    >>> {name: labels.values for name, labels in found.items()}
    {'new': (1, 1), 'old': (0,)}
    """
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(models.values):
        if name is not None:
            rows.setdefault(str(name), []).append(row)
    for name in wanted:
        if name not in rows:
            raise LabelError(f"{models.source}: no model is called {name!r}", allowed=near_names(name, rows))
    return {name: outcomes.only(rows[name]) for name in wanted or rows}
