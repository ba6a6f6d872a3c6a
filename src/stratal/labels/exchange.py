"""What goes out to annotation tools and comes back: items, the question, answers; and the tools.

Tables are CSV, Excel or JSON Lines: a row per item, an empty column for the answer. They are read as any file
of labels is: by `item_id`, `id` or the sample's own id column, the answer from `label`, and `annotator`,
`status` and `note` where these are there.

Label Studio: tasks and a labelling config out, JSON and JSON-MIN in (label-studio-sdk 2.1.2).

The id stands in the task's data under `item_id`: a key `id` of the data is lost in JSON-MIN.

Argilla: a dataset folder out, its records in (argilla 2.8.0).

The folder is one that `rg.Dataset.from_disk` takes. Records come back from
`json.dump(dataset.records.to_list(flatten=True), file)`.

Potato: a config and its instances out, annotations in (potato-annotation 2.12.1).

Annotations come back as the folder `annotation_output` (a `user_state.json` per annotator), or as one of
those files.

Prodigy: JSON Lines for the choice interface out, `prodigy db-out` in (as documented for version 1.18).
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Self

from stratal.arrays import Record
from stratal.errors import InputError, LabelError, MissingExtraError
from stratal.labels.label_table import label_rows
from stratal.labels.meanings import Declared, Meaning, class_text, sentences
from stratal.tables.files import cell, existing_file, format_of, json_document, json_records, opened
from stratal.tables.limits import MOST_BYTES
from stratal.tables.logs import as_written
from stratal.tables.small_table import SmallTable, plain_text

VERDICT, NOTE, ITEM_ID = "verdict", "note", "item_id"
"""What the answer, the note and the item's id are called in tools that need a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An item as it goes out: nothing of proxy, prediction or stratum.

    Parameters
    ----------
    id : str
    payload : mapping of column to value
        What annotators see, in this order; lists of turns and dicts as JSON has them.

    Examples
    --------
    >>> Task(id="q7", payload={"question": "2 + 2?"}).texts()
    {'question': '2 + 2?'}
    """

    id: str
    payload: Mapping[str, Any]

    def texts(self) -> dict[str, str]:
        """Return the payload as text."""
        return {name: text_of(value) for name, value in self.payload.items()}

    def page(self) -> str:
        """Return the payload as one text: the only column's, or each below its name."""
        texts = self.texts()
        if len(texts) == 1:
            return next(iter(texts.values()))
        return "\n\n".join(f"{name}:\n{text}" for name, text in texts.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuestion:
    """What annotators are asked.

    Parameters
    ----------
    text : str
    choices : tuple of str
    keys : tuple of str
        The key of each choice; "" for none.
    free : bool
        Whether an answer may be in the annotator's own words.
    rubric : str

    Examples
    --------
    >>> ToolQuestion(text="Correct?", choices=("Pass", "Fail")).free
    False
    """

    text: str
    choices: tuple[str, ...]
    keys: tuple[str, ...] = ()
    free: bool = False
    rubric: str = ""

    def keyed(self) -> list[tuple[str, str]]:
        """Return each choice with its key."""
        return list(zip(self.choices, self.keys or ("",) * len(self.choices), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """One answer as a tool gives it back.

    Parameters
    ----------
    id : str
        The item's.
    value : str, optional
        None for a skip.
    annotator : str
        As the tool calls them; "" where it does not say.
    note : str
    at : str
        When, as the tool says it.
    seconds : float, optional
    place : str
        Where it stands in the file, for errors.

    Examples
    --------
    >>> ToolAnswer(id="q7", value="Pass").annotator
    ''
    """

    id: str
    value: str | None
    annotator: str = ""
    note: str = ""
    at: str = ""
    seconds: float | None = None
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers(Record):
    """All answers of one file.

    Parameters
    ----------
    tool : str
    said : tuple of ToolAnswer
    notes : tuple of str
        What the file does not tell, such as skips.

    Examples
    --------
    >>> Answers(tool="csv", said=()).notes
    ()
    """

    tool: str
    said: tuple[ToolAnswer, ...]
    notes: tuple[str, ...] = ()

    def mapped(self, mapping: Mapping[Any, float | str | None] | None) -> Answers:
        """Return the answers as what they are mapped to; those that are mapped to None are left out.

        Examples
        --------
        >>> said = ToolAnswer(id="a", value="ok"), ToolAnswer(id="b", value="N/A")
        >>> given = Answers(tool="csv", said=said)
        >>> found = given.mapped({"OK": "Pass", "n/a": None})
        >>> [(entry.id, entry.value) for entry in found.said], found.notes
        ([('a', 'Pass')], ('labels: ok 1 → Pass, N/A 1 → no answer',))
        """
        counts = Counter(entry.value for entry in self.said if entry.value is not None)
        declared = Declared.of(counts, None, mapping, partly=True)
        table = [
            Meaning(value=text, count=counts[text], meaning=meaning, usual=False)
            for text, meaning in declared.meanings.items()
        ]
        said = tuple(
            entry if meaning == entry.value else replace(entry, value=class_text(meaning))
            for entry in self.said
            for meaning in [declared.meanings.get(entry.value or "", entry.value)]
            if meaning is not None or entry.value is None
        )
        return replace(self, said=said, notes=(*self.notes, *declared.notes, *sentences(table)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of file that comes back from a tool: JSON, or JSON Lines, of several records.

    Parameters
    ----------
    marks : frozenset of str
        The keys by which the first record is known.
    record : str
        What a record is called in errors.
    answers : callable
        `answers(record, place)` returns the answers of a record.
    note : str
        What such a file does not tell.

    Examples
    --------
    >>> Format(marks=frozenset({"id"}), record="line", answers=print).note
    ''
    """

    marks: frozenset[str]
    record: str
    answers: Callable[[Any, str], list[ToolAnswer]]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """How one tool's files are written and read.

    Parameters
    ----------
    name : str
        As in `--to` and `--from`.
    title : str
    write : callable
        `write(tasks, asked, path)` returns what to do with the files in the tool, in a sentence.
    formats : tuple of Format
        What comes back; none where that is a table.
    folder : bool
        Whether `write` makes a folder of several files.

    Examples
    --------
    >>> Tool(name="a", title="A", write=print).folder
    False
    """

    name: str
    title: str
    write: Callable[[Sequence[Task], ToolQuestion, Path], str]
    formats: tuple[Format, ...] = ()
    folder: bool = False

    def format_of(self, document: Any) -> Format | None:
        """Return the format of a JSON document, or of the first of JSON Lines; None if it is of another."""
        first = next(iter(document), None) if isinstance(document, list) else document
        keys = set(first) if isinstance(first, Mapping) else set()
        return next((known for known in self.formats if known.marks <= keys), None)

    def answers(self, document: Any, source: str) -> Answers:
        """Return the answers in a document of this tool's, naming a record that it cannot have written."""
        known = self.format_of(document)
        if known is None:
            raise LabelError(f"{source}: is not an export of {self.title}", action="Export it again.")
        said: list[ToolAnswer] = []
        for number, record in enumerate(document if isinstance(document, list) else [document], start=1):
            place = f"{source}, {known.record} {number}"
            with as_written(place, self.title):
                said += known.answers(record, place)
        notes = (f"{source}: {known.note}",) if known.note else ()
        return Answers(tool=self.name, said=newest(said), notes=notes)


def text_of(value: Any) -> str:
    """Return a value as text, what is nested as JSON.

    Examples
    --------
    >>> text_of(None), text_of(3), text_of(["a"])
    ('', '3', '["a"]')
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def slugs(names: Iterable[str], taken: Sequence[str] = (ITEM_ID, VERDICT, NOTE, "id")) -> dict[str, str]:
    """Return names by which tools can call columns: letters, digits and _, each once.

    Examples
    --------
    >>> slugs(["answer@strict-match", "id", "Frage?", "frage"])
    {'answer@strict-match': 'answer_strict_match', 'id': 'id_2', 'Frage?': 'frage', 'frage': 'frage_2'}
    """
    found: dict[str, str] = {}
    used = set(taken)
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "column"
        plain = plain if plain[0].isalpha() else f"c_{plain}"
        slug, number = plain, 1
        while slug in used:
            number += 1
            slug = f"{plain}_{number}"
        used.add(slug)
        found[name] = slug
    return found


def columns_of(tasks: Sequence[Task]) -> list[str]:
    """Return the columns of some tasks, in the order in which they first appear.

    Examples
    --------
    >>> columns_of([Task(id="a", payload={"q": 1}), Task(id="b", payload={"q": 1, "r": 2})])
    ['q', 'r']
    """
    return list(dict.fromkeys(name for task in tasks for name in task.payload))


def is_chat(values: Iterable[Any]) -> bool:
    """Return whether a column holds talks: lists of turns with a role and what was said.

    Examples
    --------
    >>> is_chat([[{"role": "user", "content": "Hi"}]]), is_chat(["Hi"])
    (True, False)
    """
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, list)
        and value
        and all(isinstance(turn, dict) and {"role", "content"} <= set(turn) for turn in value)
        for value in present
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The columns of some tasks as fields of a tool.

    Parameters
    ----------
    names : mapping of column to the name that the tool calls it by
    chats : set of str
        Columns of talks, which stay lists of turns; all others are text.

    Examples
    --------
    >>> fields = Fields.of([Task(id="a", payload={"Frage?": 1}), Task(id="b", payload={})])
    >>> fields.names, [fields.values(Task(id="a", payload={"Frage?": 1})), fields.blank]
    ({'Frage?': 'frage'}, [{'frage': '1'}, {'frage': ''}])
    """

    names: Mapping[str, str]
    chats: frozenset[str]

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> Self:
        """Return the fields of some tasks."""
        names = slugs(columns_of(tasks))
        chats = (name for name in names if is_chat(task.payload.get(name) for task in tasks))
        return cls(names=names, chats=frozenset(chats))

    def values(self, task: Task) -> dict[str, Any]:
        """Return what a task has of each field; what it lacks is left out."""
        present = {name: value for name, value in task.payload.items() if value is not None}
        return {
            slug: present[name] if name in self.chats else text_of(present[name])
            for name, slug in self.names.items()
            if name in present
        }

    @property
    def blank(self) -> dict[str, Any]:
        """What each field holds where a task lacks it."""
        return {slug: None if name in self.chats else "" for name, slug in self.names.items()}


def newest(said: Iterable[ToolAnswer]) -> tuple[ToolAnswer, ...]:
    """Return one answer per item and annotator: the latest, where times tell which that is.

    Raises
    ------
    LabelError
        For two different answers without times.

    Examples
    --------
    >>> first = ToolAnswer(id="a", value="x", at="2026-01-01")
    >>> second = ToolAnswer(id="a", value="y", at="2026-01-02")
    >>> [entry.value for entry in newest([second, first])]
    ['y']
    """
    found: dict[tuple[str, str], ToolAnswer] = {}
    for entry in said:
        key = (entry.id, entry.annotator)
        other = found.get(key)
        if other is None or (entry.at and other.at and entry.at > other.at):
            found[key] = entry
        elif other.value != entry.value and not (entry.at and other.at and entry.at < other.at):
            by = f" by {entry.annotator!r}" if entry.annotator else ""
            raise LabelError(
                f"{entry.place or 'the file'}: item {entry.id!r} has two answers{by}",
                given=f"{other.value!r} and {entry.value!r}",
                allowed="one per item and annotator",
                action="Remove one of them in the tool.",
            )
    return tuple(found.values())


def required(record: Mapping[str, Any], name: str, place: str) -> str:
    """Return an entry of an object as text, refusing one that is not there.

    Examples
    --------
    >>> required({"id": 1}, "id", "line 1")
    '1'
    """
    if record.get(name) in (None, ""):
        raise LabelError(
            f"{place}: has no {name!r}",
            given=", ".join(list(record)[:8]),
            action="Take the file that `stratal study export` wrote to the tool, so that ids come back.",
        )
    return text_of(record[name])


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file that a person can read."""
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines."""
    with path.open("x", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def refuse_free(tool: str, requested: ToolQuestion) -> None:
    """Refuse a question that a tool cannot ask: one without choices.

    Examples
    --------
    >>> refuse_free("Prodigy", ToolQuestion(text="Correct?", choices=("Pass", "Fail")))
    """
    if not requested.choices:
        raise InputError(
            f"{tool} needs choices",
            given="answers in the annotators' own words",
            allowed="--choices, --scale",
        )


# ---- tools with files of their own


TASKS, LABELLING_CONFIG = "tasks.json", "config.xml"
_WORDS = f"{VERDICT}_words"
"""The control of an answer in the annotator's own words."""


def write_label_studio(tasks: Sequence[Task], requested: ToolQuestion, folder: Path) -> str:
    """Write `tasks.json` and `config.xml`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> asked = ToolQuestion(text="OK?", choices=("Pass", "Fail"))
    >>> _ = write_label_studio([Task(id="q7", payload={"q": "2 + 2?"})], asked, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['config.xml', 'tasks.json']
    """
    fields = Fields.of(tasks)
    write_json(
        folder / TASKS,
        [{"data": {ITEM_ID: task.id, **fields.blank, **fields.values(task)}} for task in tasks],
    )
    (folder / LABELLING_CONFIG).write_text(_labelling_config(fields, requested), encoding="utf-8")
    return (
        f"In Label Studio: new project, Labeling Setup > Custom template: paste {LABELLING_CONFIG}; "
        f"Import: {TASKS}. When done: Export > JSON."
    )


def _labelling_config(fields: Fields, requested: ToolQuestion) -> str:
    view = ET.Element("View")
    for name, slug in fields.names.items():
        ET.SubElement(view, "Header", value=name)
        if name in fields.chats:
            ET.SubElement(
                view, "Paragraphs", name=slug, value=f"${slug}", layout="dialogue", nameKey="role",
                textKey="content",
            )  # fmt: skip
        else:
            ET.SubElement(view, "Text", name=slug, value=f"${slug}")
    if requested.rubric:
        ET.SubElement(view, "Header", value=requested.rubric, size="6")
    ET.SubElement(view, "Header", value=requested.text)
    first = next(iter(fields.names.values()))
    if requested.choices:
        needed = "false" if requested.free else "true"
        group = ET.SubElement(view, "Choices", name=VERDICT, toName=first, choice="single", required=needed)
        for choice, key in requested.keyed():
            ET.SubElement(group, "Choice", {"value": choice, **({"hotkey": key} if key else {})})
    if requested.free:
        ET.SubElement(
            view, "TextArea", name=_WORDS, toName=first, maxSubmissions="1", editable="true",
            placeholder="In your own words",
        )  # fmt: skip
    ET.SubElement(
        view, "TextArea", name=NOTE, toName=first, maxSubmissions="1", editable="true", placeholder="Note"
    )
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _of_task(task: Any, place: str) -> list[ToolAnswer]:
    said = []
    for annotation in task["annotations"]:
        item = required(task["data"], ITEM_ID, place)
        controls: dict[str, list[str]] = {}
        for entry in annotation.get("result") or []:
            controls.setdefault(entry["from_name"], []).extend(_values(entry.get("value")))
        said.append(_of_controls(item, controls, annotation, annotation.get("completed_by"), place))
    return said


def _of_entry(entry: Any, place: str) -> list[ToolAnswer]:
    """Return the answer of an entry of JSON-MIN."""
    controls = {name: _values(entry[name]) for name in (VERDICT, _WORDS, NOTE) if name in entry}
    item = required(entry, ITEM_ID, place)
    return [_of_controls(item, controls, entry, entry.get("annotator"), place)]


def _of_controls(
    item: str, controls: Mapping[str, list[str]], entry: Mapping[str, Any], by: Any, place: str
) -> ToolAnswer:
    """Return an answer of what the controls say, and when and by whom an entry was made."""
    seconds = entry.get("lead_time")
    return ToolAnswer(
        id=item,
        value=None if entry.get("was_cancelled") else _answer(controls, place),
        annotator=text_of(by.get("email") or by.get("id") if isinstance(by, Mapping) else by),
        note=" ".join(controls.get(NOTE, [])),
        at=text_of(entry.get("updated_at") or entry.get("created_at")),
        seconds=seconds if isinstance(seconds, int | float) else None,
        place=place,
    )


def _values(value: Any) -> list[str]:
    """Return what a control says, whatever its kind: choices, a text, a number, a rating."""
    if isinstance(value, Mapping | list):
        parts = value.values() if isinstance(value, Mapping) else value
        return [text for part in parts for text in _values(part)]
    return [text_of(value)]


def _answer(controls: Mapping[str, list[str]], place: str) -> str:
    """Return the answer: of `verdict`, of its words, or of the only control there is."""
    others = [values for name, values in controls.items() if not name.startswith((VERDICT, NOTE))]
    given = controls.get(_WORDS) or controls.get(VERDICT) or (others[0] if len(others) == 1 else [])
    if len(given) != 1:
        raise LabelError(
            f"{place}: an annotation needs one answer",
            given=", ".join(map(repr, given)) or f"controls {', '.join(controls) or 'none'}",
            allowed=f"one choice of {VERDICT!r}",
            action="Answer or skip the task in Label Studio, and export again.",
        )
    return given[0]


LABEL_STUDIO = Tool(
    name="label-studio",
    title="Label Studio",
    write=write_label_studio,
    formats=(
        Format(marks=frozenset({"data", "annotations"}), record="task", answers=_of_task),
        Format(
            marks=frozenset({"annotation_id", "annotator", "lead_time"}),
            record="entry",
            answers=_of_entry,
            note="JSON-MIN leaves out skipped tasks; export JSON to keep them",
        ),
    ),
    folder=True,
)


_HIDDEN = ".argilla"
_DONE, _LEFT = "submitted", "discarded"


def write_argilla(tasks: Sequence[Task], requested: ToolQuestion, folder: Path) -> str:
    """Write the records, and beside them the dataset's settings.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> asked = ToolQuestion(text="OK?", choices=("Pass", "Fail"))
    >>> _ = write_argilla([Task(id="q7", payload={"q": "2 + 2?"})], asked, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['.argilla', 'records.json']
    """
    if not requested.free:
        refuse_free(ARGILLA.title, requested)
    fields = Fields.of(tasks)
    (folder / _HIDDEN).mkdir()
    write_json(folder / _HIDDEN / "dataset.json", {"name": folder.resolve().name, "status": "draft"})
    write_json(folder / _HIDDEN / "settings.json", _settings(fields, requested))
    records = [
        {"id": task.id, "fields": fields.values(task), "metadata": {ITEM_ID: task.id}} for task in tasks
    ]
    write_json(folder / "records.json", records)
    return (
        f"In Python: rg.Dataset.from_disk({str(folder)!r}, client=…). When done: "
        "json.dump(dataset.records.to_list(flatten=True), file)."
    )


def _settings(fields: Fields, requested: ToolQuestion) -> dict[str, Any]:
    shown_fields = [
        {
            "name": slug, "title": name, "required": False, "type": kind,
            "settings": {"type": kind, "use_markdown": name in fields.chats},
        }
        for name, slug in fields.names.items()
        for kind in ["chat" if name in fields.chats else "text"]
    ]  # fmt: skip
    words = {"type": "text", "use_markdown": False}
    options = [{"text": choice, "value": choice} for choice in requested.choices]
    choosing = {"type": "label_selection", "options": options, "visible_options": None}
    verdict = {
        "name": VERDICT, "title": requested.text, "required": True, "description": None,
        "type": "text" if requested.free else "label_selection",
        "settings": words if requested.free else choosing,
    }  # fmt: skip
    note = {"name": NOTE, "title": "Note", "required": False, "type": "text", "settings": words}
    shown = {"type": "terms", "values": None, "visible_for_annotators": False}
    return {
        "guidelines": requested.rubric or requested.text,
        "questions": [verdict, note],
        "fields": shown_fields,
        "vectors": [],
        "metadata": [{"name": ITEM_ID, "title": ITEM_ID, "settings": shown, "visible_for_annotators": False}],
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
        "mapping": None,
    }


def _of_record(record: Any, place: str) -> list[ToolAnswer]:
    item = required(record, "id", place)
    if "responses" in record:
        raise LabelError(
            f"{place}: is of to_json, which leaves out who discarded what",
            action="Export again: json.dump(dataset.records.to_list(flatten=True), file).",
        )
    names = [key.removesuffix(".responses") for key in record if key.endswith(".responses")]
    requested = [name for name in names if name != NOTE]
    if len(requested) > 1 and VERDICT not in requested:
        raise LabelError(
            f"{place}: several questions were answered",
            given=", ".join(requested),
            allowed=f"one, or {VERDICT!r}",
        )
    if not requested:
        return []
    name = VERDICT if VERDICT in requested else requested[0]
    values, users, states = (record[f"{name}.responses{end}"] or [] for end in ("", ".users", ".status"))
    remarks = (record.get(f"{NOTE}.responses{end}") or [] for end in (".users", ""))
    notes = dict(zip(*remarks, strict=False))
    return [
        ToolAnswer(
            id=item,
            value=None if state == _LEFT else text_of(value),
            annotator=text_of(user),
            note=text_of(notes.get(user)),
            place=place,
        )
        for value, user, state in zip(values, users, states, strict=True)
        if state in (_DONE, _LEFT)
    ]


ARGILLA = Tool(
    name="argilla",
    title="Argilla",
    write=write_argilla,
    formats=(Format(marks=frozenset({"_server_id"}), record="record", answers=_of_record),),
    folder=True,
)


CONFIG, INSTANCES, OUTPUT = "config.yaml", "instances.jsonl", "annotation_output"
STATE = "user_state.json"
"""The file of each annotator in the folder of answers."""
_ANSWERS = "instance_id_to_label_to_value"


def write_potato(tasks: Sequence[Task], requested: ToolQuestion, folder: Path) -> str:
    """Write `config.yaml` (JSON, which is YAML too) and `instances.jsonl`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> asked = ToolQuestion(text="OK?", choices=("Pass", "Fail"))
    >>> _ = write_potato([Task(id="q7", payload={"q": "2 + 2?"})], asked, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['config.yaml', 'instances.jsonl']
    """
    write_lines(folder / INSTANCES, ({"id": task.id, "text": task.page()} for task in tasks))
    answer: dict[str, Any] = {"annotation_type": "text", "name": VERDICT, "description": requested.text}
    if not requested.free:
        labels = [
            {"name": choice, **({"key_value": key} if key else {})} for choice, key in requested.keyed()
        ]
        answer |= {"annotation_type": "radio", "labels": labels}
    config = {
        "annotation_task_name": requested.text,
        "task_dir": ".",
        "output_annotation_dir": OUTPUT,
        "output_annotation_format": "jsonl",
        "data_files": [INSTANCES],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "annotation_schemes": [
            {**answer, "label_requirement": {"required": True}},
            {"annotation_type": "text", "name": NOTE, "description": "Note"},
        ],
    }
    write_json(folder / CONFIG, config)
    return f"In the folder: potato start {CONFIG}. When done: the folder {OUTPUT}."


def _of_annotator(state: Any, place: str) -> list[ToolAnswer]:
    """Return an annotator's answers: the chosen name of a radio, or the words of a text."""
    who, said = required(state, "user_id", place), []
    for item, labels in state[_ANSWERS].items():
        named = [(label["schema"], label["name"], text_of(value)) for label, value in labels]
        words = [value if name == "text_box" else name for schema, name, value in named if schema == VERDICT]
        note = " ".join(value for schema, _, value in named if schema == NOTE)
        if len(words) > 1:
            raise LabelError(
                f"{place}: item {item!r} has several answers", given=", ".join(words), allowed="one"
            )
        said += [ToolAnswer(id=item, value=word, annotator=who, note=note, place=place) for word in words]
    return said


POTATO = Tool(
    name="potato",
    title="Potato",
    write=write_potato,
    formats=(Format(marks=frozenset({"user_id", _ANSWERS}), record="annotator", answers=_of_annotator),),
    folder=True,
)


ACCEPT, LEFT = "accept", ("ignore", "reject")


def write_prodigy(tasks: Sequence[Task], requested: ToolQuestion, path: Path) -> str:
    """Write a line per item with the choices as options.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "tasks.jsonl"
    >>> asked = ToolQuestion(text="OK?", choices=("Pass", "Fail"))
    >>> _ = write_prodigy([Task(id="q7", payload={"q": "2 + 2?"})], asked, path)
    >>> path.read_text()[:40]
    '{"item_id": "q7", "text": "2 + 2?", "opt'
    """
    refuse_free(PRODIGY.title, requested)
    options = [{"id": choice, "text": choice} for choice in requested.choices]

    def line(task: Task) -> dict[str, Any]:
        return {
            ITEM_ID: task.id,
            "text": task.page(),
            "options": options,
            "meta": {"question": requested.text},
        }

    write_lines(path, (line(task) for task in tasks))
    return f"prodigy mark DATASET {path} --view-id choice. When done: prodigy db-out DATASET > answers.jsonl."


def _of_line(line: Any, place: str) -> list[ToolAnswer]:
    """Return an accepted choice, or a skip for what was ignored or rejected."""
    item = required(line, ITEM_ID, place)
    answer, chosen, moment = line["answer"], line.get("accept") or [], line.get("_timestamp")
    if answer not in (ACCEPT, *LEFT):
        raise LabelError(f"{place}: unknown answer", given=repr(answer), allowed="accept, reject or ignore")
    if answer == ACCEPT and len(chosen) != 1:
        raise LabelError(
            f"{place}: an accepted item needs one choice",
            given=str(chosen)[:60],
            allowed="one",
            action="Choose one, or ignore the item, in Prodigy and export again.",
        )
    said = ToolAnswer(
        id=item,
        value=text_of(chosen[0]) if answer == ACCEPT else None,
        annotator=text_of(line.get("_annotator_id") or line.get("_session_id")),
        note=text_of(line.get("user_input")),
        at=datetime.fromtimestamp(moment, UTC).isoformat() if isinstance(moment, int | float) else "",
        place=place,
    )
    return [said]


PRODIGY = Tool(
    name="prodigy",
    title="Prodigy",
    write=write_prodigy,
    formats=(Format(marks=frozenset({"answer", "_task_hash"}), record="line", answers=_of_line),),
)


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
        return json_document(existing_file(path), MOST_BYTES, "for a table of labels")
    if last not in (".jsonl", ".ndjson"):
        return None
    with closing(opened(existing_file(path))) as text:
        return [record for _, record in islice(json_records(text, path), most)]
