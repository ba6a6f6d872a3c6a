"""Files of labels (tables and exports of annotation tools, read by `read_labels`), and files of tasks.

A file of tasks is a CSV, Excel or JSON Lines file with a row per item and an empty column for the answer.
Like other tables of labels, it has a column of ids (`item_id`, `id` or the name of the sample's id column),
the answer in `label`, and optional columns `annotator`, `status` and `note`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from stratal.errors import (
    InputError,
    LabelError,
    MissingColumnError,
    suggest_names,
)
from stratal.labels.annotation_tools import (
    ARGILLA,
    ITEM_ID,
    LABEL_STUDIO,
    NOTE,
    POTATO,
    PRODIGY,
    VERDICT,
    Task,
    Tool,
    ToolAnswer,
    ToolAnswers,
    ToolQuestion,
    latest_answers,
    task_columns,
    write_json_records,
)
from stratal.labels.annotator_columns import (
    columns_of_annotators,
    concatenate_labels,
    join_column_names,
    labels_of_annotators,
    names_of_annotators,
    require_common_values,
)
from stratal.labels.label_values import class_text
from stratal.labels.labels import (
    ADJUDICATED,
    ANNOTATOR_COLUMN,
    LABEL_COLUMN,
    SAMPLE_TOKEN,
    TO_LABEL_NAME,
    WORKBOOK_NAME,
    Labels,
    SampleLike,
)
from stratal.labels.workbooks import write_workbook
from stratal.names import option_of
from stratal.population.column_names import ROW_NUMBER_ID
from stratal.protocols import JsonDict, WithColumnNames, WithColumns
from stratal.question.column_words import ID_NAMES
from stratal.question.tags import JSON_LISTS, how_to_write
from stratal.question.vocabulary import SKIPPED, SUBMITTED
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
    limit_records,
    local_path,
    open_text,
)
from stratal.tables.small_table import SmallTable, is_missing, plain_text

# Names of the column of annotators, in order of preference.
ANNOTATOR_NAMES = (ANNOTATOR_COLUMN, "annotator_id", "rater", "labeler", "labeller")

# Names of the column of labels, in order of preference.
LABEL_COLUMN_NAMES = (LABEL_COLUMN, "verdict", "labels")


def is_table(labels: object, names: Iterable[str] = ()) -> bool:
    """Return whether labels are a dataframe, an Arrow table or a mapping of columns to lists.

    A mapping of ids to lists of answers is not a table, because it has no column of ids or labels. `names`
    are further names of these columns.
    """
    if isinstance(labels, Labels):
        return False
    if isinstance(labels, Mapping):
        columns = [column for column in labels.values() if isinstance(column, list | tuple | np.ndarray)]
        # A mapping of ids to lists, such as several answers of a unit, has other keys.
        named_columns = {LABEL_COLUMN, *ID_NAMES, *names} & set(labels)
        return len(columns) == len(labels) > 1 and bool(named_columns)
    return isinstance(labels, WithColumns | WithColumnNames)


def read_labels_of_table(
    table: object,
    sample: SampleLike,
    value: str | None = None,
    id_name: str | None = None,
    *,
    mapping: Mapping[Any, float | str | None] | None = None,
) -> Labels:
    """Return the labels in a column of a table in memory.

    Parameters
    ----------
    table : dataframe or mapping of columns
    sample : Sample
    value, id_name : str, optional
        The columns of labels and of ids. The defaults are one of `LABEL_COLUMN_NAMES`, and the id column of
        the sample.
    mapping : mapping of label to float, str or None, optional
        As for `read_labels`.
    """
    rows = SmallTable.of(table, "the labels")
    require_common_values(rows, columns_of_annotators(rows, value), mapping)
    return read_label_rows(rows, value, id_name or sample.question.id, sample.ids.tolist())[0]


def read_labels_if_table(labels: object, sample: SampleLike) -> Any:
    """Return the labels of a table in memory; other types of labels are returned unchanged."""
    # A mapping of columns has a column of ids; other mappings have ids as keys.
    has_ids = not isinstance(labels, Mapping) or bool({sample.question.id, *ID_NAMES} & set(labels))
    if not (has_ids and is_table(labels)):
        return labels
    rows = SmallTable.of(labels, "the labels")
    if len({name.casefold() for name in rows.columns} & set(LABEL_COLUMN_NAMES)) == 0:
        raise MissingColumnError(
            "the labels have no column 'label'",
            column=LABEL_COLUMN,
            given=", ".join(map(repr, rows.names)),
            action="Rename the column of the labels to 'label', or give only that column, indexed by id.",
        )
    return read_label_rows(rows, None, sample.question.id, sample.ids.tolist())[0]


def read_outcomes_of_models(
    table: object, sample: SampleLike, stored_columns: Iterable[str]
) -> dict[str, Labels] | None:
    """Return the outcomes of several models from a table in memory with a column of ids; None for others.

    Columns of annotators, and `stored_columns` of the sample, are not outcomes.
    """
    if not is_table(table):
        return None
    rows = SmallTable.of(table, "the outcomes")
    id_name = sample.question.id
    id_column = rows.find(id_name, *ID_NAMES)
    # A mapping of models to outcomes in the order of the sample is no table.
    if id_column is None:
        return None
    # The stored columns may be copied from the file of the sample.
    other_columns = {id_column, rows.find(*ANNOTATOR_NAMES), SAMPLE_TOKEN, *stored_columns}
    sample_ids = sample.ids.tolist()
    names = [name for name in rows.columns if name not in other_columns]
    return {name: read_label_rows(rows, name, id_name, sample_ids)[0] for name in names}


def read_label_rows(
    table: SmallTable,
    value: str | None = None,
    id_name: str | None = "id",
    sample_ids: Sequence[object] | None = None,
) -> tuple[Labels, list[bool]]:
    """Return the labels of a table with m rows, and which rows (m,) were skipped.

    The labels are in the column `value`, or in the only column with a name of `LABEL_COLUMN_NAMES`. Rows
    without ids are in the order of the sample's ids (n,). If `id_name` is None, the column of ids is
    recognised. Of several columns, separated by commas in `value`, each has the answers of one annotator.
    A table that lacks some of them has no answers of these annotators.
    """
    columns = columns_of_annotators(table, value, are_optional=True)
    if columns:
        return _labels_of_columns(table, columns, id_name, sample_ids)
    if id_name is None:
        id_name = _recognised_id_column(table)
    compare_hint = ""
    if value is None:
        value = _unique_label_column(table)
        compare_hint = (
            "; if columns hold the answers of several annotators: value='A,B' (--value A,B); if they hold "
            "the outcomes of several models: compare= (--compare A,B)"
        )
    entries = table.answers(
        value, action=f"Name the column of the labels: value= (--value COL){compare_hint}."
    )
    ids, notes = _ids_of_rows(table, id_name, sample_ids)
    status_column = table.find("status")
    is_skipped = _skipped_rows(table, status_column)
    annotator_column = table.find(*ANNOTATOR_NAMES)
    token_column = table.find(SAMPLE_TOKEN)
    used_columns = {table.find(id_name, *ID_NAMES), value, annotator_column, status_column, token_column}
    other_columns = {
        name: tuple(column) for name, column in table.columns.items() if name not in used_columns
    }
    values = (None if skip else entry for skip, entry in zip(is_skipped, entries, strict=True))
    labels = Labels(
        ids=ids,
        columns=other_columns,
        values=tuple(values),
        annotators=_optional_texts(table, annotator_column),
        places=table.places,
        source=table.table_name,
        notes=notes,
        failed=table.failed_answer_mask(value),
        tokens=_optional_texts(table, token_column),
    )
    return labels, is_skipped


def _labels_of_columns(
    table: SmallTable, columns: Sequence[str], id_name: str | None, sample_ids: Sequence[object] | None
) -> tuple[Labels, list[bool]]:
    """Return the labels of several columns, each of which has the answers of one annotator."""
    results = {column: read_label_rows(table, column, id_name, sample_ids) for column in columns}
    labels = labels_of_annotators({column: labels for column, (labels, _) in results.items()})
    return labels, [skipped for _, is_skipped in results.values() for skipped in is_skipped]


def _unique_label_column(table: SmallTable) -> str:
    """Return the name of the column of labels, refusing a table with several columns of this name."""
    name = find_label_column(table) or LABEL_COLUMN
    key = name.strip().casefold()
    candidates = [column for column in table.columns if column.strip().casefold() == key]
    if len(candidates) > 1:
        options = " or ".join(option_of("value", column) for column in candidates)
        raise InputError(
            f"{table.table_name}: several columns may contain the labels",
            given=", ".join(map(repr, candidates)),
            action=f"Rename or drop all but one, or name the right one: {options}.",
        )
    return name


def _recognised_id_column(table: SmallTable) -> str:
    """Return the column of ids of a table of labels: a usual name, or that of a table that `draw` wrote."""
    named_column = table.find(*reversed(ID_NAMES))
    if named_column is not None:
        return named_column
    # Row numbers are ids only together with the token of their sample.
    if table.find(ROW_NUMBER_ID) is not None and table.find(SAMPLE_TOKEN) is not None:
        return ROW_NUMBER_ID
    # The first column of these tables has the ids, under the name that the population has for them.
    if Path(table.table_name).name in (TO_LABEL_NAME, WORKBOOK_NAME):
        return next(iter(table.columns))
    return ID_NAMES[0]


def _ids_of_rows(
    table: SmallTable, id_name: str, sample_ids: Sequence[object] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids (m,) of a table's rows, and the notes of the table and of its ids."""
    # Without a column of row numbers, rows can only be matched by their order.
    if id_name != ROW_NUMBER_ID or table.find(ROW_NUMBER_ID) is not None or sample_ids is None:
        return _read_ids(table, id_name), table.notes
    if len(table) != len(sample_ids):
        raise LabelError(
            f"{table.table_name}: without ids, the file must have one row per drawn unit, in the order of "
            "to_label.csv",
            given=f"{len(table)} rows",
            allowed=str(len(sample_ids)),
        )
    note = f"{table.table_name}: there are no ids; the rows are assumed to be in the order of the sample"
    return tuple(map(id_text, sample_ids)), (*table.notes, note)


def _skipped_rows(table: SmallTable, status_column: str | None) -> list[bool]:
    """Return which rows (m,) have the status `skipped`; an empty status means `submitted`."""
    if status_column is None:
        return [False] * len(table)
    # People may write statuses in upper case or with spaces.
    statuses = [str(entry or SUBMITTED).strip().lower() for entry in table.values(status_column)]
    for place, status in zip(table.places, statuses, strict=True):
        if status not in (SUBMITTED, SKIPPED):
            raise LabelError(
                f"{table.table_name}, {place}: unknown status",
                given=repr(status),
                allowed=f"{SUBMITTED} or {SKIPPED}",
                action="Rename the column if it is not the status of the labels.",
            )
    return [status == SKIPPED for status in statuses]


def _optional_texts(table: SmallTable, column: str | None) -> tuple[str, ...] | None:
    """Return a column as text, empty where an entry is missing; None without a column."""
    if column is None:
        return None
    return tuple(plain_text(entry) or "" for entry in table.values(column))


def _read_ids(table: SmallTable, id_name: str) -> tuple[str, ...]:
    """Return the ids (m,) in the sample's id column, or in `item_id` or `id`."""
    id_names = tuple(dict.fromkeys((id_name, *reversed(ID_NAMES))))
    id_column = table.find(*id_names)
    if id_column is None:
        action = (
            "Name the column of the ids: id_name='…' (--id COLUMN). If the rows are in the order of "
            "to_label.csv: id_name='row' (--id row). In a dataframe, rename the column to 'id'."
        )
        if id_name == ROW_NUMBER_ID:
            action = "If the rows are in the order of the sample, give its ids: order=sample.ids."
        raise InputError(
            f"{table.table_name}: no id column",
            given=", ".join(table.names),
            allowed=" or ".join(id_names),
            action=action,
        )
    ids = table.values(id_column)
    for row, entry in enumerate(ids):
        # A text of spaces only may be an id.
        is_absent = is_missing(entry) and not isinstance(entry, str)
        if entry == "" or is_absent:
            raise LabelError(
                f"{table.table_name}, {table.places[row]}: the id is missing",
                action="Fill it in from the file that was handed out; an answer without an id matches no "
                "unit.",
            )
    return tuple(map(id_text, ids))


def find_label_column(table: SmallTable) -> str | None:
    """Return the column of a table that has a usual name of labels, None without one."""
    return table.find(*LABEL_COLUMN_NAMES)


# ---- tables as annotation tools


# Names of columns of a table of labels. A column that annotators see gets a suffix if it has such a name.
_RESERVED_COLUMNS = (ITEM_ID, LABEL_COLUMN, ANNOTATOR_COLUMN, "status", NOTE, SAMPLE_TOKEN)


def _column_names(tasks: Sequence[Task]) -> dict[str, str]:
    """Return the name in the table for each column of the tasks; reserved names get a suffix."""
    return {
        name: f"{name}_shown" if name.lower() in _RESERVED_COLUMNS else name for name in task_columns(tasks)
    }


def _task_rows(tasks: Sequence[Task]) -> list[list[str]]:
    """Return the header and the rows of the table of tasks as texts."""
    names = _column_names(tasks)
    has_tokens = any(task.token for task in tasks)
    token_header = [SAMPLE_TOKEN] if has_tokens else []
    table = [[ITEM_ID, *names.values(), *token_header, LABEL_COLUMN, NOTE]]
    for task in tasks:
        row = [task.id, *task.texts(names).values()]
        if has_tokens:
            row.append(task.token or "")
        table.append([*row, "", ""])
    return table


def write_csv(tasks: Sequence[Task], question: ToolQuestion, path: Path) -> str:
    """Write a CSV file; a text that a spreadsheet would run as a formula gets an apostrophe."""
    with path.open("x", encoding="utf-8", newline="") as file:
        file.writelines(map(csv_line, _task_rows(tasks)))
    return _filling_advice(question)


def write_json_lines(tasks: Sequence[Task], question: ToolQuestion, path: Path) -> str:
    """Write a JSON Lines file with one object per task."""
    names = _column_names(tasks)
    records: list[JsonDict] = []
    for task in tasks:
        record: dict[str, Any] = {ITEM_ID: task.id}
        record |= {names[name]: value for name, value in task.payload.items()}
        if task.token:
            record[SAMPLE_TOKEN] = task.token
        records.append(record | {LABEL_COLUMN: None, NOTE: None})
    write_json_records(path, records)
    return _filling_advice(question)


def write_excel(tasks: Sequence[Task], question: ToolQuestion, path: Path) -> str:
    """Write a workbook with a list of choices in the column of the label."""
    rows = _task_rows(tasks)
    choices: Sequence[str] = ()
    if not (question.allows_free_text or question.allows_several_choices):
        choices = question.choices
    write_workbook(path, rows, choices, columns=[rows[0].index(LABEL_COLUMN)])
    return _filling_advice(question)


def _filling_advice(question: ToolQuestion) -> str:
    """Return the instructions for filling in a table of tasks."""
    choice_text = ""
    if question.choices:
        choice_text = f" ({', '.join(question.choices)})"
    if question.allows_several_choices:
        choice_text += f" with {how_to_write(JSON_LISTS, question.choices)}"
    return (
        f"Fill in the column {LABEL_COLUMN!r}{choice_text}; {NOTE!r} is for remarks. "
        "If you cannot tell, leave the cell empty."
    )


def read_answer_table(path: Path, id_name: str) -> ToolAnswers:
    """Return the answers in a table, without the rows that have no answer and were not skipped.

    Raises
    ------
    LabelError
        For a row without an id; an `InputError` for a file that cannot be read, and for missing columns.
    """
    table = SmallTable.of(path, str(path), (LABEL_COLUMN,))
    labels, is_skipped = read_label_rows(table, None, id_name)
    empty_texts = ("",) * len(table)
    notes = _optional_texts(table, table.find(NOTE, "notes", "comment")) or empty_texts
    times = _optional_texts(table, table.find("timestamp", "updated_at")) or empty_texts
    annotators = labels.annotators or empty_texts
    tokens = labels.tokens or empty_texts
    answers = []
    for row, value in enumerate(labels.values):
        if value is None and not is_skipped[row]:
            continue
        if value is not None and not isinstance(value, str):
            value = class_text(value)
        answer = ToolAnswer(
            id=labels.ids[row],
            value=value,
            annotator=annotators[row],
            note=notes[row],
            timestamp=times[row],
            place=labels.place(row),
            token=tokens[row],
        )
        answers.append(answer)
    tool_name = {"xlsx": "excel", "csv": "csv"}.get(format_of(path), "jsonl")
    return ToolAnswers(tool=tool_name, answers=latest_answers(answers), notes=labels.notes)


# Tables are read by `read_answer_table`, so that they have no export format.
_TABLE_TOOLS = (
    Tool("excel", "Excel", write_excel, suffixes=(".xlsx",)),
    Tool("csv", "CSV", write_csv, suffixes=(".csv",)),
    Tool("jsonl", "JSON Lines", write_json_lines, suffixes=(".jsonl", ".ndjson")),
)

TOOLS = {tool.name: tool for tool in (LABEL_STUDIO, ARGILLA, POTATO, PRODIGY, *_TABLE_TOOLS)}


def find_tool(name: str, *others: str) -> Tool:
    """Return a tool by its name; an error lists `others` as allowed names too."""
    if name not in TOOLS:
        raise InputError("unknown annotation tool", given=repr(name), allowed=", ".join((*others, *TOOLS)))
    return TOOLS[name]


def tool_name_for(path: Path) -> str | None:
    """Return the name of the table format with the suffix of a path, else of another tool, or None."""
    tools = (*_TABLE_TOOLS, *TOOLS.values())
    return next((tool.name for tool in tools if path.suffix.lower() in tool.suffixes), None)


def write_tasks(tool: Tool, tasks: Sequence[Task], question: ToolQuestion, path: Path) -> str:
    """Write tasks for a tool completely or not at all, and return the next step in the tool.

    `path` is a new file, or a new folder for tools that need several files.

    Raises
    ------
    InputError
        If `path` exists, has another suffix, or cannot be written, and if there are no tasks.
    """
    if question.allows_several_choices and tool not in _TABLE_TOOLS:
        raise InputError(
            f"{tool.title} cannot ask for sets of tags",
            allowed=", ".join(["html", *(table.name for table in _TABLE_TOOLS)]),
            action="Use the labelling page, or export a table: stratal study export STUDY --output "
            "items.csv.",
        )
    if tool.suffixes and path.suffix.lower() not in tool.suffixes:
        raise InputError(
            f"{path}: {tool.title} requires a different file name",
            allowed=f"a file {' or '.join(tool.suffixes)}",
        )
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists", action="Give the name of a new file or folder.")
    if not tasks:
        raise InputError("no item is left to label", action="Run `stratal study status` to list the answers.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".export.") as temporary_folder:
            temporary_path = Path(temporary_folder, path.name)
            if not tool.suffixes:
                temporary_path.mkdir()
            advice = tool.write(tasks, question, temporary_path)
            shutil.move(temporary_path, path)
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror or error})"
        raise InputError(problem, action="Choose another folder.") from None
    return advice.replace(str(temporary_path), str(path))


def read_answers(path: Path, tool: str | None = None, id_name: str = "id") -> ToolAnswers:
    """Return the answers of an annotation tool's file or of a table.

    Parameters
    ----------
    path : Path
        A file, or a folder in which a tool saves answers.
    tool : str, optional
        Name of the tool; detected from the file if left out.
    id_name : str
        Id column of the sample, for tables.

    Raises
    ------
    LabelError
        For a file that cannot be read, is of another tool, or contains no answer.
    """
    requested_tool = None if tool is None else find_tool(tool)
    answers = read_tool_answers(path, id_name)
    if requested_tool is not None:
        _refuse_other_tool(path, requested_tool, answers)
    if answers is None:
        answers = read_answer_table(path, id_name)
    require_answers(answers, str(path))
    return answers


def _refuse_other_tool(path: Path, tool: Tool, answers: ToolAnswers | None) -> None:
    """Refuse a file that is not an export of a tool; any file may be a table."""
    if not tool.formats or (answers is not None and answers.tool == tool.name):
        return
    hint = ""
    if answers is not None:
        hint = f"; it looks like {TOOLS[answers.tool].title}"
    raise LabelError(f"{path} is not an export of {tool.title}{hint}", action="Leave out --from.")


def require_answers(answers: ToolAnswers, source: str) -> None:
    """Refuse a file without an answer."""
    if not answers.answers:
        action = "Check that the answers were saved, and that this is the file the annotator sent back."
        raise LabelError(f"{source} contains no answers", action=action)


def read_tool_answers(path: Path, id_name: str = "id") -> ToolAnswers | None:
    """Return the answers in an export of an annotation tool, None for a table or any other file.

    `id_name` is the id column of the sample.
    """
    path = local_path(path)
    if path.is_dir():
        tool = _tool_of_folder(path)
    else:
        tool = _tool_of_document(_read_document(path, max_records=1))
    if tool is None:
        return None
    paths = sorted(path.glob(tool.answer_files)) if path.is_dir() else [path]
    answers_by_file = [tool.read_document(_read_document(file), str(file), id_name) for file in paths]
    all_answers = chain.from_iterable(answers.answers for answers in answers_by_file)
    return replace(answers_by_file[0], answers=latest_answers(all_answers))


def _tool_of_folder(folder: Path) -> Tool | None:
    """Return the tool whose files of answers are in a folder, None if there are none."""
    tools = (tool for tool in TOOLS.values() if tool.answer_files)
    return next((tool for tool in tools if any(folder.glob(tool.answer_files))), None)


def _tool_of_document(document: object) -> Tool | None:
    """Return the tool whose export has the format of a document, None if there is none."""
    return next((tool for tool in TOOLS.values() if tool.format_of(document) is not None), None)


def _read_document(path: Path, max_records: int | None = None) -> Any:
    """Return a JSON document, up to `max_records` JSON Lines, or a Label Studio CSV; None for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last_suffix = suffixes[-1] if suffixes else ""
    if last_suffix == ".json":
        return json_document(existing_file(path), files.MAX_TABLE_BYTES, "for a table of labels")
    if last_suffix in (".csv", ".tsv"):
        return _read_label_studio_csv(existing_file(path))
    if last_suffix not in (".jsonl", ".ndjson"):
        return None
    with closing(open_text(existing_file(path))) as text:
        return [record for _, record in islice(json_records(text, path), max_records)]


# Columns by which a CSV export of Label Studio is recognised.
_LABEL_STUDIO_COLUMNS = {"annotation_id", "annotator", "lead_time"}


def _read_label_studio_csv(path: Path) -> list[dict[str, str]] | None:
    """Return the rows of a CSV export of Label Studio, None for any other CSV file."""
    delimiter, _, names = csv_header(path)
    if names is None or not set(names) >= _LABEL_STUDIO_COLUMNS:
        return None
    with closing(open_text(path)) as text:
        records = limit_records(csv_records(text, delimiter), lambda record: sum(map(len, record[1])), path)
        return [dict(zip(names, fields, strict=False)) for _, fields in islice(records, 1, None)]


# Columns of a file for a review of disagreements: the first labels, and the judges that differ from them.
FIRST_LABEL_PREFIX = "first_"
DIFFERS_FROM = "differs_from"


def read_labels(
    *paths: str | Path,
    id_name: str | None = None,
    value: str | Sequence[str] | None = None,
    positive: str | None = None,
    mapping: Mapping[Any, float | str | None] | None = None,
    order: Sequence[object] | None = None,
    same_rows: bool = False,
    in_every_file: bool = False,
) -> Labels:
    """Read labels from one or several files, such as those of several rounds or annotators.

    Parameters
    ----------
    *paths : str or Path
        `.csv`, `.tsv`, `.xlsx`, `.jsonl`, `.json`, `.parquet` or `.feather`, one row per answer: an id column
        (`id_name`, `item_id` or `id`), the label, and optionally `annotator` and `status` (`submitted` or
        `skipped`). The case of column names does not matter, and blank rows are ignored. If several files
        without annotators have answers for the same units, the names of the files are the annotators. The
        answers in a file for a review (`write_disagreements`) replace the first ones, which are stored
        in `Labels.replaced`.
    id_name : str, optional
        Name of the sample's id column; `row` for files without ids whose rows have the same order as `order`.
        Default: `item_id` or `id`; in a table that `draw` wrote, the id column of the draw.
    value : str or sequence of str, optional
        Column of the label, or the columns of several annotators, of which a file may have only some. Of
        several files, one without these columns may have a column `label` instead, such as the file to label
        of a further round. Default: `label` or `verdict`.
    positive : str, optional
        The label that counts as 1; all others count as 0. Case does not matter.
    mapping : mapping of label to float, str or None, optional
        The number or the name of a class that each label represents, or None for no answer.
    order : sequence (n,), optional
        The ids of the sample, for rows without ids.
    same_rows : bool
        Accept ids that are row numbers without a column `sample_token`, which identifies the sample.
    in_every_file : bool
        Require the column `value` in every file.

    Returns
    -------
    Labels
        Empty and skipped labels have the value None.

    Raises
    ------
    InputError
        For no file, a file that cannot be read, and for missing columns.

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
    for path in paths:
        if not isinstance(path, str | Path):
            raise InputError(
                "read_labels reads files",
                given=type(path).__name__,
                allowed="a path",
                action="Give labels in memory directly: estimate(sample, labels).",
            )
    value = join_column_names(value)
    sources = [_open_label_file(Path(path), id_name, value) for path in paths]
    tables = [source for source in sources if isinstance(source, SmallTable)]
    _check_columns_of_annotators(tables, value, mapping)
    columns = [value] * len(paths)
    if not in_every_file and any(_has_labels_in(table, value) for table in tables):
        sources, columns = _with_default_columns(sources, paths, id_name, value)
    labels_of_files: list[Labels] = []
    file_labels: Labels | None
    for path, source, column in zip(paths, sources, columns, strict=True):
        if isinstance(source, ToolAnswers):
            file_labels = _labels_of_answers(Path(path), source)
        else:
            file_labels = _labels_of_file(source, id_name, column, order)
        # A review of the labels in another column has none of this one.
        if file_labels is not None:
            labels_of_files.append(file_labels)
    labels = _labels_after_reviews(labels_of_files, paths[0])
    # If ids are row numbers, `join_labels` refuses labels without the token of the sample. A file without a
    # column of tokens gets empty ones, so that it is refused, too. With None, no token is compared.
    tokens = None if same_rows else labels.tokens or ("",) * len(labels.ids)
    return replace(labels, positive=positive, mapping=mapping, tokens=tokens)


def _labels_after_reviews(labels_of_files: Sequence[Labels], first_path: str | Path) -> Labels:
    """Return the labels of all files, in which those of reviews replace the ones that they review."""
    # Only the labels of a review have replaced ones.
    first_labels = [labels for labels in labels_of_files if labels.replaced is None]
    if not first_labels:
        action = "Give the files with the first labels before the review."
        raise InputError(
            f"{first_path} is a review, but the labels that it reviews are not given", action=action
        )
    combined = first_labels[0] if len(first_labels) == 1 else _combine_files(first_labels)
    for labels in labels_of_files:
        if labels.replaced is not None:
            combined = _apply_review(combined, labels, labels.replaced)
    return combined


def _open_label_file(path: Path, id_name: str | None, value: str | None) -> ToolAnswers | SmallTable:
    """Return the answers of an annotation tool, or a table; of a workbook, the sheet with labels."""
    names = names_of_annotators(value)
    # `label` is the column of the tables that stratal writes, and `verdict` the question of the tasks that it
    # exports to tools. Both denote the answer; another column exists only in a table.
    if value in (None, LABEL_COLUMN, VERDICT) or names:
        answers = read_tool_answers(path, id_name or ID_NAMES[0])
        if answers is not None:
            return answers
    if names:
        # A file may have the answers of only some annotators, or no annotator's column.
        return SmallTable.of(path, str(path), (str(value), *names, *LABEL_COLUMN_NAMES), has_any=True)
    return SmallTable.of(path, str(path), (value or LABEL_COLUMN,))


def _with_default_columns(
    sources: Sequence[ToolAnswers | SmallTable],
    paths: Sequence[str | Path],
    id_name: str | None,
    value: str | None,
) -> tuple[list[ToolAnswers | SmallTable], list[str | None]]:
    """Return the sources of labels, and the column of each: `value`, or None for the default columns.

    A source without the column `value` may have a default column, or be an export of an annotation tool.
    """
    result: list[tuple[ToolAnswers | SmallTable, str | None]] = []
    for path, source in zip(paths, sources, strict=True):
        if isinstance(source, SmallTable) and not _has_labels_in(source, value):
            default_source = _open_label_file(Path(path), id_name, None)
            if isinstance(default_source, ToolAnswers) or find_label_column(default_source) is not None:
                result.append((default_source, None))
                continue
        result.append((source, value))
    return [source for source, _ in result], [column for _, column in result]


def _has_labels_in(table: SmallTable, value: str | None) -> bool:
    """Return whether a table has the column `value`, or one of several annotators."""
    return table.find(*filter(None, (value, *names_of_annotators(value)))) is not None


def _check_columns_of_annotators(
    tables: Sequence[SmallTable], value: str | None, mapping: Mapping[Any, Any] | None
) -> None:
    """Refuse a column of an annotator that no table has, and columns without common values."""
    names = names_of_annotators(value)
    if names and not tables:
        raise InputError(
            "exports of annotation tools have no columns of labels to name",
            given=option_of("value", str(value)),
            action="Leave out value= (--value): the answers of all annotators are read.",
        )
    for table in tables:
        require_common_values(table, columns_of_annotators(table, value, are_optional=True), mapping)
    if any(table.find(str(value)) is not None for table in tables):
        return
    for name in names:
        if not any(table.find(name) for table in tables):
            columns = dict.fromkeys(column for table in tables for column in table.columns)
            raise MissingColumnError(
                f"{', '.join(table.table_name for table in tables)}: no column {name!r}",
                column=name,
                allowed=suggest_names(name, columns),
            )


def read_labels_or_verdicts(
    *paths: str | Path,
    models: Sequence[str],
    id_name: str = "id",
    mapping: Mapping[Any, float | str | None] | None = None,
    same_rows: bool = False,
) -> Labels | dict[str, Labels]:
    """Read labels from files, or verdicts on the answers of several models, with a column for each model.

    Files contain verdicts if they have a column with the name of each model and no labels.
    """
    options: Any = {"id_name": id_name, "mapping": mapping, "same_rows": same_rows}
    table_paths = [Path(path) for path in paths if read_tool_answers(Path(path)) is None]
    tables = [SmallTable.of(path, str(path), (LABEL_COLUMN,)) for path in table_paths]
    if len(tables) < len(paths) or any({*models} - {*table.columns} for table in tables):
        return read_labels(*paths, **options)
    if all(find_label_column(table) for table in tables):
        labels = read_labels(*paths, **options)
        if labels.answered:
            return labels
    return {name: read_labels(*paths, value=name, **options) for name in models}


def _apply_review(labels: Labels, review: Labels, first_labels: Labels) -> Labels:
    """Return labels in which a review with r units replaces the first labels (r,) of these units."""
    answers_by_unit: dict[str, list[str]] = {}
    for unit, answer in zip(labels.ids, labels.values, strict=True):
        if answer is not None:
            answers_by_unit.setdefault(unit, []).append(class_text(answer))
    change_count = 0
    rows = zip(review.ids, first_labels.values, review.values, strict=True)
    for row, (unit, before, after) in enumerate(rows):
        unit_answers = answers_by_unit.get(unit, [])
        if class_text(before) not in unit_answers:
            raise LabelError(
                f"{review.place(row)}: the first label of {unit!r} in the review differs from the one in the "
                "files of labels",
                given=f"{before!r}, and {', '.join(map(repr, unit_answers)) or 'none'}",
                action="Give the labels from which the review file was written.",
            )
        if class_text(before).casefold() != class_text(after).casefold():
            change_count += 1
    reviewed_units = set(review.ids)
    reviewed_labels = labels.only([row for row, unit in enumerate(labels.ids) if unit in reviewed_units])
    other_labels = labels.only([row for row, unit in enumerate(labels.ids) if unit not in reviewed_units])
    # Keep the labels that an earlier review replaced.
    replaced_labels = [reviewed_labels] if labels.replaced is None else [labels.replaced, reviewed_labels]
    review = replace(review, annotators=other_labels.annotators and (ADJUDICATED,) * len(review.ids))
    return replace(
        concatenate_labels([other_labels, review]),
        notes=(*labels.notes, *review.notes, _review_note(review, change_count)),
        replaced=concatenate_labels(replaced_labels),
    )


def _review_note(review: Labels, change_count: int) -> str:
    """Return the note on the number of first labels that a review changed."""
    source = f"review ({review.source})"
    if not review.ids:
        return f"{source}: nothing is filled in yet"
    return (
        f"{source}: the first label was wrong for {change_count} of {len(review.ids)} items; only items on "
        "which a judge and the annotators disagreed were reviewed, so corrections can only increase their "
        "agreement"
    )


def _combine_files(labels_of_files: Sequence[Labels]) -> Labels:
    """Return the labels of several files as one; file names are annotators if units have several answers."""
    notes: tuple[str, ...] = ()
    answered_units = (
        {unit for unit, answer in zip(file_labels.ids, file_labels.values, strict=True) if answer is not None}
        for file_labels in labels_of_files
    )
    has_overlap = max(Counter(chain.from_iterable(answered_units)).values(), default=0) > 1
    if has_overlap and not all(file_labels.annotators for file_labels in labels_of_files):
        names = [Path(file_labels.source).name.split(".")[0] for file_labels in labels_of_files]
        if len(set(names)) < len(names):
            names = [file_labels.source for file_labels in labels_of_files]
        labels_of_files = [
            file_labels if file_labels.annotators else file_labels.of_annotator(name)
            for file_labels, name in zip(labels_of_files, names, strict=True)
        ]
        notes = (f"annotators are taken from the files' names: {', '.join(names)}",)
    combined = concatenate_labels(labels_of_files)
    return replace(combined, notes=(*combined.notes, *notes))


def _labels_of_file(
    table: SmallTable, id_name: str | None, value: str | None, sample_ids: Sequence[object] | None
) -> Labels | None:
    """Return the labels of the table of a file, None for a review of the labels in another column.

    The labels of a review have the first labels of their units in `replaced`.
    """
    if table.log is not None and sample_ids is not None:
        table = _drawn_units_of_log(table, sample_ids)
    if table.find(DIFFERS_FROM) is None:
        return read_label_rows(table, value, id_name, sample_ids)[0]
    label_column = value or find_label_column(table) or LABEL_COLUMN
    first_column = table.find(FIRST_LABEL_PREFIX + label_column)
    if first_column is None:
        return None
    labels = read_label_rows(table, label_column, id_name)[0]
    answered_rows = [row for row, answer in enumerate(labels.values) if answer is not None]
    first_labels = replace(labels, values=tuple(table.values(first_column))).only(answered_rows)
    return replace(labels.only(answered_rows), replaced=first_labels)


def _labels_of_answers(path: Path, answers: ToolAnswers) -> Labels:
    """Return the answers of an annotation tool as labels."""
    require_answers(answers, str(path))
    annotators = tuple(answer.annotator for answer in answers.answers)
    places = (answer.place.removeprefix(f"{path}, ") for answer in answers.answers)
    return Labels(
        ids=tuple(answer.id for answer in answers.answers),
        values=tuple(answer.value for answer in answers.answers),
        annotators=annotators if any(annotators) else None,
        places=tuple(places),
        source=str(path),
        notes=answers.notes,
    )


def _drawn_units_of_log(table: SmallTable, sample_ids: Sequence[object]) -> SmallTable:
    """Return the rows of an evaluation log whose units were drawn, with a note on the others."""
    drawn_ids = {id_text(entry) for entry in sample_ids}
    rows = [row for row, unit in enumerate(table.columns["id"]) if unit in drawn_ids]
    if not rows:
        raise LabelError(
            f"{table.table_name}: none of its units was drawn",
            given=f"{table.columns['id'][0]!r}, …",
            allowed=f"ids of the sample: {sample_ids[0]!r}, …",
        )
    undrawn_count = len(table) - len(rows)
    if not undrawn_count:
        return table.only(rows)
    note = f"{table.table_name}: {undrawn_count:,} units that were not drawn are left out"
    return replace(table.only(rows), notes=(*table.notes, note))


def split_by_model(models: Labels, outcomes: Labels, model_names: tuple[str, ...] = ()) -> dict[str, Labels]:
    """Return the outcomes of each model, or of `model_names`, in their order; unknown models are refused.

    `models` has the names of the models, and `outcomes` their outcomes in the same rows.
    """
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(models.values):
        if name is not None:
            rows.setdefault(str(name), []).append(row)
    for name in model_names:
        if name not in rows:
            raise LabelError(
                f"{models.source}: no model is called {name!r}", allowed=suggest_names(name, rows)
            )
    return {name: outcomes.only(rows[name]) for name in model_names or rows}
