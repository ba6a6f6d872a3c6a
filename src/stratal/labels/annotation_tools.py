"""Export of tasks to annotation tools, and import of their answers.

`TOOLS` of `stratal.labels.label_files` lists the tools. That module also has tables (Excel, CSV, JSON Lines).

Label Studio: tasks and a labelling config are written, JSON and JSON-MIN are read (label-studio-sdk 2.1.2).
The id of a task is in its data under `item_id`, because JSON-MIN omits a key `id` of the data.

Argilla: a folder for `rg.Dataset.from_disk` is written, and the records that
`json.dump(dataset.records.to_list(flatten=True), file)` writes are read (argilla 2.8.0).

Potato: a config and its instances are written. The folder `annotation_output` with a `user_state.json` for
each annotator is read, or one of these files (potato-annotation 2.12.1).

Prodigy: JSON Lines for the choice interface are written, and the output of `prodigy db-out` is read (as
documented for version 1.18).
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

from stratal.arrays import number_of_text
from stratal.errors import InputError, LabelError, same_name
from stratal.labels.label_values import (
    LabelMapping,
    LabelValue,
    class_text,
    label_value_notes,
    unused_mapping_notes,
)
from stratal.protocols import JsonDict, JsonMapping, Keywords
from stratal.tables.files import json_line
from stratal.tables.logs.log import translate_tool_errors

# Names of the answer, the note and the id in the files of annotation tools.
VERDICT = "verdict"
NOTE = "note"
ITEM_ID = "item_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An item to label, without any information on its proxy, prediction or stratum.

    Parameters
    ----------
    id : str
    payload : mapping of column to value
        The columns that annotators see, in this order. Values may be nested, such as lists of turns.
    token : str, optional
        Token of the sample, if ids are row numbers; see `Question.sample_token`.
    """

    id: str
    payload: JsonMapping
    token: str | None = None

    def texts(self, tool_names: Mapping[str, str]) -> dict[str, str]:
        """Return the columns as texts, empty if missing, by their names in the tool."""
        return {tool_name: display_text(self.payload.get(name)) for name, tool_name in tool_names.items()}

    def as_text(self) -> str:
        """Return the payload as one text; several columns have their names as headings."""
        texts = {name: display_text(value) for name, value in self.payload.items()}
        if len(texts) == 1:
            return next(iter(texts.values()))
        return "\n\n".join(f"{name}:\n{text}" for name, text in texts.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuestion:
    """The question that annotators answer.

    Parameters
    ----------
    text : str
    choices : tuple of str
    keys : tuple of str
        The keyboard shortcut of each choice, empty without one.
    allows_free_text : bool
        Whether an answer may be free text.
    rubric : str
    allows_several_choices : bool
        Whether an answer is a set of any number of the choices.
    """

    text: str
    choices: tuple[str, ...]
    keys: tuple[str, ...] = ()
    allows_free_text: bool = False
    rubric: str = ""
    allows_several_choices: bool = False

    def choices_with_keys(self) -> list[tuple[str, str]]:
        """Return each choice with its keyboard shortcut, empty without one."""
        return list(zip(self.choices, self.keys or ("",) * len(self.choices), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """One answer in the export of a tool.

    Parameters
    ----------
    id : str
        Id of the item.
    value : str, optional
        None if the item was skipped.
    annotator : str
        Name in the tool, empty if unknown.
    note : str
    timestamp : str
        Time of the answer, as the tool writes it.
    seconds : float, optional
    place : str
        Position in the file, for error messages.
    token : str, optional
        For tables: the token of the sample for which the item was written, empty without one.
    """

    id: str
    value: str | None
    annotator: str = ""
    note: str = ""
    timestamp: str = ""
    seconds: float | None = None
    place: str = ""
    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswers:
    """The answers in one file.

    Parameters
    ----------
    tool : str
    answers : tuple of ToolAnswer
    notes : tuple of str
        Notes on information that the file does not contain, such as skipped items.
    mapped_values : tuple of str
        The values that are in the mapping that `apply_mapping` has applied.
    """

    tool: str
    answers: tuple[ToolAnswer, ...]
    notes: tuple[str, ...] = ()
    mapped_values: tuple[str, ...] = ()

    def apply_mapping(self, mapping: Mapping[Any, float | str | None] | None) -> ToolAnswers:
        """Return the answers with mapped values, without those that are mapped to None."""
        counts = Counter(answer.value for answer in self.answers if answer.value is not None)
        label_mapping = LabelMapping.of(counts, None, mapping, is_partial=True)
        mapped_values = [
            LabelValue(value=text, count=counts[text], meaning=meaning, counts_as_itself=False)
            for text, meaning in label_mapping.meanings.items()
        ]
        answers = []
        for answer in self.answers:
            # Skipped items, whose value is None, are kept.
            meaning = label_mapping.meanings.get(answer.value or "", answer.value)
            if meaning == answer.value:
                answers.append(answer)
            elif meaning is not None:
                answers.append(replace(answer, value=class_text(meaning)))
        unused = unused_mapping_notes(label_mapping.unused)
        notes = (*self.notes, *unused, *label_mapping.notes, *label_value_notes(mapped_values))
        return replace(self, answers=tuple(answers), notes=notes, mapped_values=tuple(label_mapping.meanings))


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format of a tool's exports: a JSON document or JSON Lines with several records.

    Parameters
    ----------
    required_keys : set of str
        Keys of the first record by which the format is recognised.
    record_name : str
        Name of a record in error messages.
    read_record : callable
        `read_record(record, place, id_name)` returns the answers of a record.
    note : str
        Note on information that the format omits.
    """

    required_keys: set[str]
    record_name: str
    read_record: Callable[[Any, str, str], list[ToolAnswer]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """An annotation tool: how its files are written and read.

    Parameters
    ----------
    name : str
        Value of the options `--to` and `--from`.
    title : str
        Name in messages.
    write : callable
        `write(tasks, question, path)` writes the files, and returns instructions for the next step in the
        tool.
    formats : tuple of ExportFormat
        Formats of the exports; empty for tables.
    suffixes : tuple of str
        Suffixes of the file that `write` creates, in lower case; empty if it creates a folder with several
        files.
    export_name : str
        Example name of the file that the tool exports.
    answers_folder, answer_files : str
        For a tool that saves answers in the folder of the tasks: the name of their subfolder, and a pattern
        of the files in it.
    """

    name: str
    title: str
    write: Callable[[Sequence[Task], ToolQuestion, Path], str]
    formats: tuple[ExportFormat, ...] = ()
    suffixes: tuple[str, ...] = ()
    export_name: str = ""
    answers_folder: str = ""
    answer_files: str = ""

    @property
    def names_annotators(self) -> bool:
        """Whether the exports contain the names of the annotators, which tables do not."""
        return bool(self.formats)

    def answers_path(self, tasks_path: Path) -> str:
        """Return the path at which the tool writes the answers to tasks, for examples of commands."""
        return self.export_name or str(tasks_path / self.answers_folder)

    def format_of(self, document: object) -> ExportFormat | None:
        """Return the format of a JSON document or of JSON Lines, None for files of other tools."""
        first_record = document
        if isinstance(document, list):
            first_record = next(iter(document), None)
        if not isinstance(first_record, Mapping):
            return None
        keys = set(first_record)
        matching_formats = (entry for entry in self.formats if entry.required_keys <= keys)
        return next(matching_formats, None)

    def read_document(self, document: object, source: str, id_name: str = "id") -> ToolAnswers:
        """Return the answers in an export of this tool; an error names the invalid record.

        The id of an item is under `item_id`, or under the name of the sample's id column.
        """
        export_format = self.format_of(document)
        if export_format is None:
            raise LabelError(f"{source} is not an export of {self.title}", action="Export it again.")
        records = document if isinstance(document, list) else [document]
        answers: list[ToolAnswer] = []
        for number, record in enumerate(records, start=1):
            place = f"{source}, {export_format.record_name} {number}"
            with translate_tool_errors(place, self.title):
                answers += export_format.read_record(record, place, id_name)
        notes: tuple[str, ...] = ()
        if export_format.note:
            notes = (f"{source}: {export_format.note}",)
        return ToolAnswers(tool=self.name, answers=latest_answers(answers), notes=notes)


def display_text(value: Any) -> str:
    """Return a value as text: None as an empty text, a chat as its turns, other nested values as JSON."""
    if value is None:
        return ""
    if is_chat(value):
        return "\n\n".join(f"{turn['role']}: {display_text(turn['content'])}" for turn in value)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def column_slugs(names: Iterable[str]) -> dict[str, str]:
    """Return a unique name of lower-case letters, digits and _ for each column, as tools require."""
    slugs: dict[str, str] = {}
    for name in names:
        base = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "column"
        if not base[0].isalpha():
            base = f"c_{base}"
        candidates = chain([base], (f"{base}_{number}" for number in count(2)))
        used_names = {ITEM_ID, VERDICT, NOTE, "id", *slugs.values()}
        slugs[name] = next(slug for slug in candidates if slug not in used_names)
    return slugs


def task_columns(tasks: Sequence[Task]) -> list[str]:
    """Return the columns of tasks, in the order of their first appearance."""
    return list(dict.fromkeys(name for task in tasks for name in task.payload))


def is_chat(value: object) -> bool:
    """Return whether a value is a list of turns, each with a role and a content."""
    if not isinstance(value, list) or not value or not all(isinstance(turn, dict) for turn in value):
        return False
    return all(isinstance(turn.get("role"), str) and "content" in turn for turn in value)


# Larger Unix times are in milliseconds: as seconds they would be later than the year 5000.
_MIN_MILLISECONDS = 1e11
# The last second of the year 9999, the largest Unix time that `datetime` supports.
_MAX_SECONDS = 253_402_300_799


def parse_timestamp(text: str) -> datetime | None:
    """Return the time of a text, in UTC unless the text has an offset; None if it is not a time."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        seconds = number_of_text(text)
        if seconds >= _MIN_MILLISECONDS:
            seconds /= 1000
        if 0 < seconds <= _MAX_SECONDS:
            return datetime.fromtimestamp(seconds, UTC)
        return None
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    return time


def latest_answers(answers: Iterable[ToolAnswer]) -> tuple[ToolAnswer, ...]:
    """Return one answer per item and annotator: the latest, or the first of equal answers without times.

    Raises
    ------
    LabelError
        For two different answers whose order is unknown.
    """
    latest: dict[tuple[str, str], ToolAnswer] = {}
    for answer in answers:
        key = (answer.id, answer.annotator)
        previous = latest.get(key)
        if previous is None:
            latest[key] = answer
            continue
        time = parse_timestamp(answer.timestamp)
        previous_time = parse_timestamp(previous.timestamp)
        has_order = time is not None and previous_time is not None and time != previous_time
        if not has_order and previous.value != answer.value:
            by_annotator = f" by {answer.annotator!r}" if answer.annotator else ""
            raise LabelError(
                f"{answer.place or 'the file'}: item {answer.id!r} has two answers{by_annotator}",
                given=f"{previous.value!r} and {answer.value!r}",
                allowed="one per item and annotator",
                action="Remove one of them in the tool.",
            )
        if time is not None and previous_time is not None and time > previous_time:
            latest[key] = answer
    return tuple(latest.values())


_EXPORT_ACTION = (
    "Import into the tool the file that `stratal study export` wrote, so that the tool exports the ids."
)


def require_text(record: Mapping[str, object], name: str, place: str, action: str = _EXPORT_ACTION) -> str:
    """Return an entry of a record as text, refusing a missing or empty one with the next step."""
    if record.get(name) in (None, ""):
        keys = ", ".join(list(record)[:8])
        raise LabelError(f"{place} has no {name!r}", given=keys, action=action)
    return display_text(record[name])


def read_item_id(data: Mapping[str, object], id_name: str, place: str) -> str:
    """Return the id of an item from its data: under the name of the sample's id column, `item_id` or `id`."""
    names = [ITEM_ID, "id"]
    if id_name != "id":
        names.insert(0, id_name)
    keys = (same_name(name, data) for name in names)
    present = (key for key in keys if key is not None and data[key] not in (None, ""))
    action = f"If the ids have another key, name it: id= (--id KEY). Otherwise: {_EXPORT_ACTION}"
    return require_text(data, next(present, ITEM_ID), place, action)


def write_json(path: Path, document: object) -> None:
    """Write an indented JSON file."""
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_json_records(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    """Write records to a new JSON Lines file."""
    with path.open("x", encoding="utf-8") as file:
        file.writelines(map(json_line, records))


# Files of an export: the tasks, and the labelling interface to paste into the settings of the project.
LABEL_STUDIO_TASKS = "tasks.json"
LABEL_STUDIO_CONFIG = "config.xml"
# Name of the control for free text.
_FREE_TEXT_CONTROL = f"{VERDICT}_words"


def write_label_studio(tasks: Sequence[Task], question: ToolQuestion, folder: Path) -> str:
    """Write `tasks.json` and `config.xml`."""
    names = column_slugs(task_columns(tasks))
    write_json(
        folder / LABEL_STUDIO_TASKS, [{"data": {ITEM_ID: task.id, **task.texts(names)}} for task in tasks]
    )
    (folder / LABEL_STUDIO_CONFIG).write_text(_labelling_config(names, question), encoding="utf-8")
    return (
        f"In Label Studio: new project, Labeling Setup > Custom template: paste {LABEL_STUDIO_CONFIG}; "
        f"Import: {LABEL_STUDIO_TASKS}. When done: Export > JSON."
    )


def _labelling_config(names: Mapping[str, str], question: ToolQuestion) -> str:
    """Return the labelling config of Label Studio as XML."""
    view = ET.Element("View")
    for name, slug in names.items():
        ET.SubElement(view, "Header", value=name)
        ET.SubElement(view, "Text", name=slug, value=f"${slug}")
    if question.rubric:
        ET.SubElement(view, "Header", value=question.rubric, size="6")
    ET.SubElement(view, "Header", value=question.text)
    # Each control must refer to a text of the task: here the first one.
    text_reference = {"toName": next(iter(names.values()))}
    if question.choices:
        required = "false" if question.allows_free_text else "true"
        group = ET.SubElement(
            view, "Choices", text_reference, name=VERDICT, choice="single", required=required
        )
        for choice, key in question.choices_with_keys():
            attributes = {"value": choice}
            if key:
                attributes["hotkey"] = key
            ET.SubElement(group, "Choice", attributes)
    text_areas = [(NOTE, "Note")]
    if question.allows_free_text:
        text_areas.insert(0, (_FREE_TEXT_CONTROL, "In your own words"))
    for name, hint in text_areas:
        ET.SubElement(
            view, "TextArea", text_reference, name=name, maxSubmissions="1", editable="true", placeholder=hint
        )
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _read_label_studio_task(task: Any, place: str, id_name: str) -> list[ToolAnswer]:
    """Return the answers of a task in a JSON export; versions before 1 call annotations completions."""
    answers = []
    if "annotations" in task:
        annotations = task["annotations"]
    else:
        annotations = task["completions"]
    for annotation in annotations:
        item = read_item_id(task["data"], id_name, place)
        controls: dict[str, list[str]] = {}
        for entry in annotation.get("result") or []:
            controls.setdefault(entry["from_name"], []).extend(_control_values(entry.get("value")))
        annotator = annotation.get("completed_by")
        answers.append(_label_studio_answer(item, controls, annotation, annotator, place))
    return answers


def _read_label_studio_entry(entry: Any, place: str, id_name: str) -> list[ToolAnswer]:
    """Return the answer of an entry of JSON-MIN, or of a row of CSV."""
    controls = {
        name: _control_values(entry[name])
        for name in (VERDICT, _FREE_TEXT_CONTROL, NOTE)
        if entry.get(name) not in (None, "")
    }
    if entry.get(ITEM_ID) in (None, "") and (id_name == "id" or entry.get(id_name) in (None, "")):
        raise LabelError(
            f"{place} has no {ITEM_ID!r}, and its 'id' identifies the task, not the item",
            given=", ".join(list(entry)[:8]),
            action="Export JSON, which keeps the ids of the items in each task's data; or name the column "
            "of the ids: id_name= (--id COLUMN).",
        )
    item = read_item_id(entry, id_name, place)
    return [_label_studio_answer(item, controls, entry, entry.get("annotator"), place)]


def _label_studio_answer(
    item: str, controls: Mapping[str, list[str]], entry: JsonMapping, annotator: Any, place: str
) -> ToolAnswer:
    """Return the answer in the controls (texts by name) of a task or entry, with its annotator and time."""
    if isinstance(annotator, Mapping):
        annotator = annotator.get("email") or annotator.get("id")
    seconds = entry.get("lead_time")
    if isinstance(seconds, str):
        seconds = number_of_text(seconds)
    # NaN, for a text that is not a number, is not equal to itself.
    has_seconds = isinstance(seconds, int | float) and seconds == seconds
    return ToolAnswer(
        id=item,
        value=None if entry.get("was_cancelled") else _single_answer(controls, place),
        annotator=display_text(annotator),
        note=" ".join(controls.get(NOTE, [])),
        timestamp=display_text(entry.get("updated_at") or entry.get("created_at")),
        seconds=seconds if has_seconds else None,
        place=place,
    )


def _control_values(value: object) -> list[str]:
    """Return the texts in the value of a control: choices, a text, a number or a rating."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return [text for entry in value for text in _control_values(entry)]
    return [display_text(value)]


def _single_answer(controls: Mapping[str, list[str]], place: str) -> str:
    """Return the answer: from the free text, the choices, or the only other control."""
    other_controls = [values for name, values in controls.items() if not name.startswith((VERDICT, NOTE))]
    answers = controls.get(_FREE_TEXT_CONTROL) or controls.get(VERDICT) or []
    if not answers and len(other_controls) == 1:
        answers = other_controls[0]
    if len(answers) != 1:
        answers_text = ", ".join(map(repr, answers)) or f"controls {', '.join(controls) or 'none'}"
        raise LabelError(
            f"{place}: an annotation must contain exactly one answer",
            given=answers_text,
            allowed=f"one choice of {VERDICT!r}",
            action="Answer or skip the task in Label Studio, and export again.",
        )
    return answers[0]


LABEL_STUDIO = Tool(
    "label-studio",
    "Label Studio",
    write_label_studio,
    (
        ExportFormat({"data", "annotations"}, "task", _read_label_studio_task),
        ExportFormat({"data", "completions"}, "task", _read_label_studio_task),  # before version 1
        ExportFormat(
            {"annotation_id", "annotator", "lead_time"},
            "entry",
            _read_label_studio_entry,
            "such an export leaves out skipped tasks; export JSON to keep them",
        ),
    ),
    export_name="export.json",
)


# States of an answer in Argilla; drafts, the third state, are not answers.
_ARGILLA_SUBMITTED = "submitted"
_ARGILLA_DISCARDED = "discarded"
_ARGILLA_FOLDER = ".argilla"


def write_argilla(tasks: Sequence[Task], question: ToolQuestion, folder: Path) -> str:
    """Write the records and the settings of a dataset."""
    names = column_slugs(task_columns(tasks))
    (folder / _ARGILLA_FOLDER).mkdir()
    write_json(folder / _ARGILLA_FOLDER / "dataset.json", {"name": folder.resolve().name, "status": "draft"})
    write_json(folder / _ARGILLA_FOLDER / "settings.json", _argilla_settings(names, question))
    records = [{"id": task.id, "fields": task.texts(names), "metadata": {ITEM_ID: task.id}} for task in tasks]
    write_json(folder / "records.json", records)
    return (
        f"In Python: rg.Dataset.from_disk({str(folder)!r}, client=…). When done: "
        "json.dump(dataset.records.to_list(flatten=True), file)."
    )


def _argilla_settings(names: Mapping[str, str], question: ToolQuestion) -> JsonDict:
    """Return the settings of an Argilla dataset, as `rg.Dataset.from_disk` reads them."""
    text_settings = {"type": "text", "use_markdown": False}

    def question_entry(
        name: str, title: str, settings: Keywords = text_settings, *, required: bool = False
    ) -> Any:
        """Return the entry of a question or a field."""
        kind = settings["type"]
        return {"name": name, "title": title, "required": required, "type": kind, "settings": settings}

    options = [{"text": choice, "value": choice} for choice in question.choices]
    choice_settings = {"type": "label_selection", "options": options, "visible_options": None}
    verdict_settings = text_settings if question.allows_free_text else choice_settings
    verdict = question_entry(VERDICT, question.text, verdict_settings, required=True)
    metadata_settings = {"type": "terms", "values": None, "visible_for_annotators": False}
    metadata_entry = {
        "name": ITEM_ID,
        "title": ITEM_ID,
        "settings": metadata_settings,
        "visible_for_annotators": False,
    }
    return {
        "guidelines": question.rubric or question.text,
        "questions": [verdict, question_entry(NOTE, "Note")],
        "fields": [question_entry(slug, name) for name, slug in names.items()],
        "vectors": [],
        "metadata": [metadata_entry],
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
        "mapping": None,
    }


def _read_argilla_record(record: Any, place: str, id_name: str) -> list[ToolAnswer]:
    """Return the submitted answers and the skips of a record."""
    item = require_text(record, "id", place)
    if "responses" in record:
        action = "Export again: json.dump(dataset.records.to_list(flatten=True), file)."
        raise LabelError(
            f"{place}: the file was written by to_json, which leaves out discarded answers", action=action
        )
    names = [key.removesuffix(".responses") for key in record if key.endswith(".responses")]
    question_names = [name for name in names if name != NOTE]
    if len(question_names) > 1 and VERDICT not in question_names:
        problem = f"{place}: several questions were answered"
        allowed = f"one, or {VERDICT!r}"
        raise LabelError(problem, given=", ".join(question_names), allowed=allowed)
    if not question_names:
        return []
    if VERDICT in question_names:
        name = VERDICT
    else:
        name = question_names[0]
    values = record[f"{name}.responses"] or []
    users = record[f"{name}.responses.users"] or []
    states = record[f"{name}.responses.status"] or []
    note_users = record.get(f"{NOTE}.responses.users") or []
    notes = dict(zip(note_users, record.get(f"{NOTE}.responses") or [], strict=False))
    answers = []
    for value, user, state in zip(values, users, states, strict=True):
        if state not in (_ARGILLA_SUBMITTED, _ARGILLA_DISCARDED):
            continue
        answer = ToolAnswer(
            id=item,
            value=None if state == _ARGILLA_DISCARDED else display_text(value),
            annotator=display_text(user),
            note=display_text(notes.get(user)),
            place=place,
        )
        answers.append(answer)
    return answers


ARGILLA = Tool(
    "argilla",
    "Argilla",
    write_argilla,
    (ExportFormat({"_server_id"}, "record", _read_argilla_record),),
    export_name="records.json",
)


POTATO_CONFIG = "config.yaml"
POTATO_INSTANCES = "instances.jsonl"
POTATO_OUTPUT = "annotation_output"
# File of each annotator in the folder of answers.
POTATO_STATE = "user_state.json"


_POTATO_ANSWERS_KEY = "instance_id_to_label_to_value"


def write_potato(tasks: Sequence[Task], question: ToolQuestion, folder: Path) -> str:
    """Write `config.yaml` (JSON, which is YAML too) and `instances.jsonl`."""
    write_json_records(folder / POTATO_INSTANCES, ({"id": task.id, "text": task.as_text()} for task in tasks))
    answer: JsonDict = {"annotation_type": "text", "name": VERDICT, "description": question.text}
    if not question.allows_free_text:
        labels = []
        for choice, key in question.choices_with_keys():
            label = {"name": choice}
            if key:
                label["key_value"] = key
            labels.append(label)
        answer |= {"annotation_type": "radio", "labels": labels}
    config = {
        "annotation_task_name": question.text,
        "task_dir": ".",
        "output_annotation_dir": POTATO_OUTPUT,
        "output_annotation_format": "jsonl",
        "data_files": [POTATO_INSTANCES],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "annotation_schemes": [
            {**answer, "label_requirement": {"required": True}},
            {"annotation_type": "text", "name": NOTE, "description": "Note"},
        ],
    }
    write_json(folder / POTATO_CONFIG, config)
    return (
        f"In this folder, run: potato start {POTATO_CONFIG}. When done: the answers are in {POTATO_OUTPUT}."
    )


def _read_potato_annotator(state: Any, place: str, id_name: str) -> list[ToolAnswer]:
    """Return the answers of an annotator: the selected choice, or the text of a text box."""
    annotator = require_text(state, "user_id", place)
    answers = []
    for item, labels in state[_POTATO_ANSWERS_KEY].items():
        entries = [(label["schema"], label["name"], display_text(value)) for label, value in labels]
        answer_texts = [
            value if name == "text_box" else name for schema, name, value in entries if schema == VERDICT
        ]
        note = " ".join(value for schema, _, value in entries if schema == NOTE)
        if len(answer_texts) > 1:
            problem = f"{place}: item {item!r} has several answers"
            raise LabelError(problem, given=", ".join(answer_texts), allowed="one")
        answers += [
            ToolAnswer(id=item, value=text, annotator=annotator, note=note, place=place)
            for text in answer_texts
        ]
    return answers


POTATO = Tool(
    "potato",
    "Potato",
    write_potato,
    (ExportFormat({"user_id", _POTATO_ANSWERS_KEY}, "annotator", _read_potato_annotator),),
    answers_folder=POTATO_OUTPUT,
    answer_files=f"*/{POTATO_STATE}",
)


# Decisions about an item in Prodigy. After one of the skips, the item has no answer.
PRODIGY_ACCEPT = "accept"
PRODIGY_SKIPS = ("ignore", "reject")


def write_prodigy(tasks: Sequence[Task], question: ToolQuestion, path: Path) -> str:
    """Write a line for each task, with the choices as options."""
    if not question.choices:
        free_text_description = "answers in the annotators' own words"
        raise InputError(
            "Prodigy requires choices", given=free_text_description, allowed="--choices, --scale"
        )
    options = [{"id": choice, "text": choice} for choice in question.choices]

    shared_fields = {"options": options, "meta": {"question": question.text}}
    write_json_records(path, ({ITEM_ID: task.id, "text": task.as_text(), **shared_fields} for task in tasks))
    return f"prodigy mark DATASET {path} --view-id choice. When done: prodigy db-out DATASET > answers.jsonl."


def _read_prodigy_line(line: Any, place: str, id_name: str) -> list[ToolAnswer]:
    """Return the accepted choice, or a skip if the item was ignored or rejected."""
    item = read_item_id({**(line.get("meta") or {}), **line}, id_name, place)
    answer = line["answer"]
    choices = line.get("accept") or []
    timestamp = line.get("_timestamp")
    if answer not in (PRODIGY_ACCEPT, *PRODIGY_SKIPS):
        raise LabelError(f"{place}: unknown answer", given=repr(answer), allowed="accept, reject or ignore")
    if answer == PRODIGY_ACCEPT and len(choices) != 1:
        action = "In Prodigy, select exactly one choice or ignore the item; then export again."
        raise LabelError(
            f"{place}: an accepted item must have exactly one choice", given=str(choices)[:60], action=action
        )
    time_text = ""
    if isinstance(timestamp, int | float):
        time_text = datetime.fromtimestamp(timestamp, UTC).isoformat()
    tool_answer = ToolAnswer(
        id=item,
        value=display_text(choices[0]) if answer == PRODIGY_ACCEPT else None,
        annotator=display_text(line.get("_annotator_id") or line.get("_session_id")),
        note=display_text(line.get("user_input")),
        timestamp=time_text,
        place=place,
    )
    return [tool_answer]


PRODIGY = Tool(
    "prodigy",
    "Prodigy",
    write_prodigy,
    (ExportFormat({"answer", "_task_hash"}, "line", _read_prodigy_line),),
    suffixes=(".jsonl",),
    export_name="answers.jsonl",
)
