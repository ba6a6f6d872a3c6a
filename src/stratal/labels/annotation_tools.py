"""Items, the question and answers as annotation tools have them; and the tools with files of their own.

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
from stratal.errors import InputError, LabelError
from stratal.labels.meanings import Declared, Meaning, class_text, sentences
from stratal.tables.logs import as_written

VERDICT = "verdict"


NOTE = "note"


# What the answer, the note and the item's id are called in tools that need a name.
ITEM_ID = "item_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An item as it goes out: nothing of proxy, prediction or stratum.

    Parameters
    ----------
    id : str
    payload : mapping of column to value
        What annotators see, in this order; lists of turns and dicts as JSON has them.
    token : str, optional
        States of which rows the ids are the numbers; see `Question.sample_token`.

    Examples
    --------
    >>> Task(id="q7", payload={"question": "2 + 2?"}).texts({"question": "q", "answer": "a"})
    {'q': '2 + 2?', 'a': ''}
    """

    id: str
    payload: Mapping[str, Any]
    token: str | None = None

    def texts(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return columns as text, by other names; what the task lacks is empty."""
        return {new: text_of(self.payload.get(name)) for name, new in names.items()}

    def page(self) -> str:
        """Return the payload as one text: the only column's, or each below its name."""
        texts = {name: text_of(value) for name, value in self.payload.items()}
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
    sets : bool
        Whether an answer is a set of any number of the choices.

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
    sets: bool = False

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
    token : str, optional
        Of a table: the token of the sample that the item was handed out for, empty where there is none.

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
    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
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


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that comes back from a tool: JSON, or JSON Lines, of several records.

    Parameters
    ----------
    marks : set of str
        The keys by which the first record is known.
    record : str
        What a record is called in errors.
    answers : callable
        `answers(record, place, id_name)` returns the answers of a record.
    note : str
        What such a file does not tell.

    Examples
    --------
    >>> Format({"id"}, "line", print).note
    ''
    """

    marks: set[str]
    record: str
    answers: Callable[[Any, str, str], list[ToolAnswer]]
    note: str = ""


@dataclass(frozen=True, slots=True)
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
    >>> Tool("a", "A", print).folder
    False
    """

    name: str
    title: str
    write: Callable[[Sequence[Task], ToolQuestion, Path], str]
    formats: tuple[Format, ...] = ()
    folder: bool = False

    def format_of(self, document: Any) -> Format | None:
        """Return the format of a JSON document, or of the first of JSON Lines; None if it is of another."""
        if isinstance(document, list):
            first = next(iter(document), None)
        else:
            first = document
        keys = set(first) if isinstance(first, Mapping) else set()
        return next((known for known in self.formats if known.marks <= keys), None)

    def answers(self, document: Any, source: str, id_name: str = "id") -> Answers:
        """Return the answers in a document of this tool's, naming a record that it cannot have written.

        The id of an item stands in `item_id`, or under the name that the sample has for it.
        """
        known = self.format_of(document)
        if known is None:
            raise LabelError(f"{source}: is not an export of {self.title}", action="Export it again.")
        said: list[ToolAnswer] = []
        for number, record in enumerate(document if isinstance(document, list) else [document], start=1):
            place = f"{source}, {known.record} {number}"
            with as_written(place, self.title):
                said += known.answers(record, place, id_name)
        notes = (f"{source}: {known.note}",) if known.note else ()
        return Answers(tool=self.name, said=newest(said), notes=notes)


def text_of(value: Any) -> str:
    """Return a value as text: a chat turn by turn, what else is nested as JSON.

    Examples
    --------
    >>> text_of(None), text_of(3), text_of(["a"]), text_of([{"role": "user", "content": "Hi"}])
    ('', '3', '["a"]', 'user: Hi')
    """
    if value is None:
        return ""
    if is_chat(value):
        return "\n\n".join(f"{turn['role']}: {text_of(turn['content'])}" for turn in value)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def slugs(names: Iterable[str]) -> dict[str, str]:
    """Return names by which tools can call columns: letters, digits and _, each once.

    Examples
    --------
    >>> slugs(["answer@strict-match", "id", "Frage?", "frage"])
    {'answer@strict-match': 'answer_strict_match', 'id': 'id_2', 'Frage?': 'frage', 'frage': 'frage_2'}
    """
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "column"
        plain = plain if plain[0].isalpha() else f"c_{plain}"
        spellings = chain([plain], (f"{plain}_{number}" for number in count(2)))
        used = {ITEM_ID, VERDICT, NOTE, "id", *found.values()}
        found[name] = next(slug for slug in spellings if slug not in used)
    return found


def columns_of(tasks: Sequence[Task]) -> list[str]:
    """Return the columns of some tasks, in the order in which they first appear.

    Examples
    --------
    >>> columns_of([Task(id="a", payload={"q": 1}), Task(id="b", payload={"q": 1, "r": 2})])
    ['q', 'r']
    """
    return list(dict.fromkeys(name for task in tasks for name in task.payload))


def is_chat(value: Any) -> bool:
    """Return whether a value is a list of turns, each with a role and a content.

    Examples
    --------
    >>> is_chat([{"role": "user", "content": "hello"}]), is_chat([1, 2])
    (True, False)
    """
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(turn, dict) and isinstance(turn.get("role"), str) for turn in value)
        and all("content" in turn for turn in value)
    )


# Numbers of seconds since 1970 from here on are milliseconds: as seconds they are beyond the year 5000.
_MILLISECONDS = 1e11


def moment_of(text: str) -> datetime | None:
    """Return the moment that a tool's time stands for, in UTC unless it has an offset; None of other texts.

    Examples
    --------
    >>> moment_of("2026-01-01T10:00:00+02:00") < moment_of("2026-01-01T09:00:00Z")
    True
    >>> moment_of("yesterday") is None
    True
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        seconds = number_of_text(text)
        if not 0 < seconds < 1e15:
            return None
        return datetime.fromtimestamp(seconds / (1000 if seconds >= _MILLISECONDS else 1), UTC)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment


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
        if other is None:
            found[key] = entry
            continue
        now = moment_of(entry.at)
        before = moment_of(other.at)
        times_known = now is not None and before is not None
        if now is not None and before is not None and now > before:
            found[key] = entry
        elif other.value != entry.value and not (times_known and now != before):
            by = f" by {entry.annotator!r}" if entry.annotator else ""
            what = f"{entry.place or 'the file'}: item {entry.id!r} has two answers{by}"
            given = f"{other.value!r} and {entry.value!r}"
            allowed = "one per item and annotator"
            raise LabelError(what, given=given, allowed=allowed, action="Remove one of them in the tool.")
    return tuple(found.values())


def required(record: Mapping[str, Any], name: str, place: str) -> str:
    """Return an entry of an object as text, refusing one that is not there.

    Examples
    --------
    >>> required({"id": 1}, "id", "line 1")
    '1'
    """
    if record.get(name) in (None, ""):
        given = ", ".join(list(record)[:8])
        action = "Take the file that `stratal study export` wrote to the tool, so that ids come back."
        raise LabelError(f"{place}: has no {name!r}", given=given, action=action)
    return text_of(record[name])


def item_of(data: Mapping[str, Any], id_name: str, place: str) -> str:
    """Return the id of an item from its data: under the sample's own name, `item_id` or `id`.

    Examples
    --------
    >>> item_of({"id": "q7"}, "id", "task 1"), item_of({"id": 1, "item_id": "q7"}, "id", "task 1")
    ('q7', 'q7')
    """
    if id_name == "id":
        names = [ITEM_ID, "id"]
    else:
        names = [id_name, ITEM_ID, "id"]
    present = (name for name in names if data.get(name) not in (None, ""))
    return required(data, next(present, ITEM_ID), place)


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file that a person can read."""
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines."""
    with path.open("x", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


TASKS = "tasks.json"
LABELLING_CONFIG = "config.xml"
# The control of an answer in the annotator's own words.
_WORDS = f"{VERDICT}_words"


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
    names = slugs(columns_of(tasks))
    write_json(folder / TASKS, [{"data": {ITEM_ID: task.id, **task.texts(names)}} for task in tasks])
    (folder / LABELLING_CONFIG).write_text(_labelling_config(names, requested), encoding="utf-8")
    return (
        f"In Label Studio: new project, Labeling Setup > Custom template: paste {LABELLING_CONFIG}; "
        f"Import: {TASKS}. When done: Export > JSON."
    )


def _labelling_config(names: Mapping[str, str], requested: ToolQuestion) -> str:
    view = ET.Element("View")
    for name, slug in names.items():
        ET.SubElement(view, "Header", value=name)
        ET.SubElement(view, "Text", name=slug, value=f"${slug}")
    if requested.rubric:
        ET.SubElement(view, "Header", value=requested.rubric, size="6")
    ET.SubElement(view, "Header", value=requested.text)
    answers = {"toName": next(iter(names.values()))}
    if requested.choices:
        needed = "false" if requested.free else "true"
        group = ET.SubElement(view, "Choices", answers, name=VERDICT, choice="single", required=needed)
        for choice, key in requested.keyed():
            ET.SubElement(group, "Choice", {"value": choice, **({"hotkey": key} if key else {})})
    for name, hint in ([(_WORDS, "In your own words")] if requested.free else []) + [(NOTE, "Note")]:
        ET.SubElement(
            view, "TextArea", answers, name=name, maxSubmissions="1", editable="true", placeholder=hint
        )
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _of_task(task: Any, place: str, id_name: str) -> list[ToolAnswer]:
    said = []
    for annotation in task["annotations"] if "annotations" in task else task["completions"]:
        item = item_of(task["data"], id_name, place)
        controls: dict[str, list[str]] = {}
        for entry in annotation.get("result") or []:
            controls.setdefault(entry["from_name"], []).extend(_values(entry.get("value")))
        said.append(_of_controls(item, controls, annotation, annotation.get("completed_by"), place))
    return said


def _of_entry(entry: Any, place: str, id_name: str) -> list[ToolAnswer]:
    """Return the answer of an entry of JSON-MIN, or of a row of CSV."""
    controls = {
        name: _values(entry[name]) for name in (VERDICT, _WORDS, NOTE) if entry.get(name) not in (None, "")
    }
    if entry.get(ITEM_ID) in (None, "") and (id_name == "id" or entry.get(id_name) in (None, "")):
        raise LabelError(
            f"{place}: has no {ITEM_ID!r}, and its 'id' is the task's own",
            given=", ".join(list(entry)[:8]),
            action="Export JSON, which keeps the ids of the items in each task's data; or name their column: "
            "id_name= (--id COLUMN).",
        )
    item = item_of(entry, id_name, place)
    return [_of_controls(item, controls, entry, entry.get("annotator"), place)]


def _of_controls(
    item: str, controls: Mapping[str, list[str]], entry: Mapping[str, Any], by: Any, place: str
) -> ToolAnswer:
    """Return an answer of what the controls say, and when and by whom an entry was made."""
    written = entry.get("lead_time")
    seconds = number_of_text(written) if isinstance(written, str) else written
    return ToolAnswer(
        id=item,
        value=None if entry.get("was_cancelled") else _answer(controls, place),
        annotator=text_of(by.get("email") or by.get("id") if isinstance(by, Mapping) else by),
        note=" ".join(controls.get(NOTE, [])),
        at=text_of(entry.get("updated_at") or entry.get("created_at")),
        seconds=seconds if isinstance(seconds, int | float) and seconds == seconds else None,
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
        found = ", ".join(map(repr, given)) or f"controls {', '.join(controls) or 'none'}"
        what = f"{place}: an annotation needs one answer"
        allowed = f"one choice of {VERDICT!r}"
        action = "Answer or skip the task in Label Studio, and export again."
        raise LabelError(what, given=found, allowed=allowed, action=action)
    return given[0]


LABEL_STUDIO = Tool(
    "label-studio",
    "Label Studio",
    write_label_studio,
    (
        Format({"data", "annotations"}, "task", _of_task),
        Format({"data", "completions"}, "task", _of_task),  # before version 1
        Format(
            {"annotation_id", "annotator", "lead_time"},
            "entry",
            _of_entry,
            "such an export leaves out skipped tasks; export JSON to keep them",
        ),
    ),
    folder=True,
)


_DONE = "submitted"
_LEFT = "discarded"
_HIDDEN = ".argilla"


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
    names = slugs(columns_of(tasks))
    (folder / _HIDDEN).mkdir()
    write_json(folder / _HIDDEN / "dataset.json", {"name": folder.resolve().name, "status": "draft"})
    write_json(folder / _HIDDEN / "settings.json", _settings(names, requested))
    records = [{"id": task.id, "fields": task.texts(names), "metadata": {ITEM_ID: task.id}} for task in tasks]
    write_json(folder / "records.json", records)
    return (
        f"In Python: rg.Dataset.from_disk({str(folder)!r}, client=…). When done: "
        "json.dump(dataset.records.to_list(flatten=True), file)."
    )


def _settings(names: Mapping[str, str], requested: ToolQuestion) -> dict[str, Any]:
    words = {"type": "text", "use_markdown": False}

    def entry(name: str, title: str, settings: dict[str, Any] = words, required: bool = False) -> Any:
        kind = settings["type"]
        return {"name": name, "title": title, "required": required, "type": kind, "settings": settings}

    options = [{"text": choice, "value": choice} for choice in requested.choices]
    choosing = {"type": "label_selection", "options": options, "visible_options": None}
    verdict = entry(VERDICT, requested.text, words if requested.free else choosing, True)
    shown = {"type": "terms", "values": None, "visible_for_annotators": False}
    return {
        "guidelines": requested.rubric or requested.text,
        "questions": [verdict, entry(NOTE, "Note")],
        "fields": [entry(slug, name) for name, slug in names.items()],
        "vectors": [],
        "metadata": [{"name": ITEM_ID, "title": ITEM_ID, "settings": shown, "visible_for_annotators": False}],
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
        "mapping": None,
    }


def _of_record(record: Any, place: str, id_name: str) -> list[ToolAnswer]:
    item = required(record, "id", place)
    if "responses" in record:
        action = "Export again: json.dump(dataset.records.to_list(flatten=True), file)."
        raise LabelError(f"{place}: is of to_json, which leaves out who discarded what", action=action)
    names = [key.removesuffix(".responses") for key in record if key.endswith(".responses")]
    requested = [name for name in names if name != NOTE]
    if len(requested) > 1 and VERDICT not in requested:
        what = f"{place}: several questions were answered"
        allowed = f"one, or {VERDICT!r}"
        raise LabelError(what, given=", ".join(requested), allowed=allowed)
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
    "argilla", "Argilla", write_argilla, (Format({"_server_id"}, "record", _of_record),), folder=True
)


CONFIG = "config.yaml"
INSTANCES = "instances.jsonl"
OUTPUT = "annotation_output"
# The file of each annotator in the folder of answers.
STATE = "user_state.json"


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


def _of_annotator(state: Any, place: str, id_name: str) -> list[ToolAnswer]:
    """Return an annotator's answers: the chosen name of a radio, or the words of a text."""
    who = required(state, "user_id", place)
    said = []
    for item, labels in state[_ANSWERS].items():
        named = [(label["schema"], label["name"], text_of(value)) for label, value in labels]
        words = [value if name == "text_box" else name for schema, name, value in named if schema == VERDICT]
        note = " ".join(value for schema, _, value in named if schema == NOTE)
        if len(words) > 1:
            what = f"{place}: item {item!r} has several answers"
            raise LabelError(what, given=", ".join(words), allowed="one")
        said += [ToolAnswer(id=item, value=word, annotator=who, note=note, place=place) for word in words]
    return said


POTATO = Tool(
    "potato",
    "Potato",
    write_potato,
    (Format({"user_id", _ANSWERS}, "annotator", _of_annotator),),
    folder=True,
)


ACCEPT = "accept"
LEFT = ("ignore", "reject")


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
    if not requested.choices:
        given = "answers in the annotators' own words"
        raise InputError("Prodigy needs choices", given=given, allowed="--choices, --scale")
    options = [{"id": choice, "text": choice} for choice in requested.choices]

    same = {"options": options, "meta": {"question": requested.text}}
    write_lines(path, ({ITEM_ID: task.id, "text": task.page(), **same} for task in tasks))
    return f"prodigy mark DATASET {path} --view-id choice. When done: prodigy db-out DATASET > answers.jsonl."


def _of_line(line: Any, place: str, id_name: str) -> list[ToolAnswer]:
    """Return an accepted choice, or a skip for what was ignored or rejected."""
    item = item_of({**(line.get("meta") or {}), **line}, id_name, place)
    answer = line["answer"]
    chosen = line.get("accept") or []
    moment = line.get("_timestamp")
    if answer not in (ACCEPT, *LEFT):
        raise LabelError(f"{place}: unknown answer", given=repr(answer), allowed="accept, reject or ignore")
    if answer == ACCEPT and len(chosen) != 1:
        action = "Choose one, or ignore the item, in Prodigy and export again."
        raise LabelError(f"{place}: an accepted item needs one choice", given=str(chosen)[:60], action=action)
    said = ToolAnswer(
        id=item,
        value=text_of(chosen[0]) if answer == ACCEPT else None,
        annotator=text_of(line.get("_annotator_id") or line.get("_session_id")),
        note=text_of(line.get("user_input")),
        at=datetime.fromtimestamp(moment, UTC).isoformat() if isinstance(moment, int | float) else "",
        place=place,
    )
    return [said]


PRODIGY = Tool("prodigy", "Prodigy", write_prodigy, (Format({"answer", "_task_hash"}, "line", _of_line),))
