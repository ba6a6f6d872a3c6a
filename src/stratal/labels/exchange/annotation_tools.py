"""Annotation tools with files of their own: Label Studio, Argilla, Potato and Prodigy.

Label Studio: tasks and a labelling config out, JSON and JSON-MIN in (label-studio-sdk 2.1.2).

The id stands in the task's data under `item_id`: a key `id` of the data is lost in JSON-MIN.

Argilla: a dataset folder out, its records in (argilla 2.8.0).

The folder is one that `rg.Dataset.from_disk` takes. Records come back from `dataset.records.to_json(path)`,
which leaves out who discarded what, or from `json.dump(dataset.records.to_list(flatten=True), file)`.

Potato: a config and its instances out, annotations in (potato-annotation 2.12.1).

Annotations come back as the folder `annotation_output` (a `user_state.json` per annotator), as one of those
files, or as the JSON Lines that Potato exports.

Prodigy: JSON Lines for the choice interface out, `prodigy db-out` in (as documented for version 1.18).
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stratal.errors import LabelError
from stratal.labels.exchange.exchange import (
    ITEM_ID,
    NOTE,
    VERDICT,
    Answers,
    Fields,
    Task,
    Tool,
    ToolAnswer,
    ToolQuestion,
    each_record,
    first_of,
    newest,
    refuse_free,
    required,
    text_of,
    write_json,
    write_lines,
)
from stratal.tables.logs.log import as_written

TASKS, LABELLING_CONFIG = "tasks.json", "config.xml"
_MIN = {"annotation_id", "annotator", "lead_time"}
"""What every entry of JSON-MIN has."""


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
            view, "TextArea", name=f"{VERDICT}_words", toName=first, maxSubmissions="1", editable="true",
            placeholder="In your own words",
        )  # fmt: skip
    ET.SubElement(
        view, "TextArea", name=NOTE, toName=first, maxSubmissions="1", editable="true", placeholder="Note"
    )
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def is_label_studio(found: Any) -> bool:
    """Return whether a JSON document is an export of Label Studio.

    Examples
    --------
    >>> is_label_studio([{"id": 1, "data": {}, "annotations": []}]), is_label_studio([{"id": 1}])
    (True, False)
    """
    first = set(first_of(found))
    return first >= {"data", "annotations"} or first >= _MIN


def read_label_studio(found: Sequence[Any], source: str) -> Answers:
    """Return the answers of an export.

    Raises
    ------
    LabelError
        For a task without `item_id`, and for an annotation with no answer or several.

    Examples
    --------
    >>> task = {"id": 1, "data": {"item_id": "q7"}, "annotations": [{"completed_by": 2, "result": [
    ...     {"from_name": "verdict", "type": "choices", "value": {"choices": ["Pass"]}}]}]}
    >>> [(said.id, said.value, said.annotator) for said in read_label_studio([task], "export.json").said]
    [('q7', 'Pass', '2')]
    """
    if set(found[0]) >= _MIN and "annotations" not in found[0]:
        said = each_record(found, source, LABEL_STUDIO.title, "entry", _of_min)
        note = f"{source}: JSON-MIN leaves out skipped tasks; export JSON to keep them"
        return Answers(tool=LABEL_STUDIO.name, said=said, notes=(note,))
    said = each_record(found, source, LABEL_STUDIO.title, "task", _of_task)
    return Answers(tool=LABEL_STUDIO.name, said=said)


def _of_task(task: Any, place: str) -> list[ToolAnswer]:
    data = required(task, "data", place)
    return [
        _of_annotation(text_of(required(data, ITEM_ID, place)), annotation, place)
        for annotation in task["annotations"]
    ]


def _of_annotation(item: str, annotation: Any, place: str) -> ToolAnswer:
    controls: dict[str, list[str]] = {}
    for entry in annotation.get("result") or []:
        controls.setdefault(str(entry.get("from_name")), []).extend(_values(entry))
    return _of_controls(item, controls, annotation, annotation.get("completed_by"), place)


def _of_min(entry: Any, place: str) -> list[ToolAnswer]:
    item = text_of(required(entry, ITEM_ID, place))
    controls = {name: _listed(entry[name]) for name in (VERDICT, f"{VERDICT}_words", NOTE) if name in entry}
    return [_of_controls(item, controls, entry, entry.get("annotator"), place)]


def _of_controls(
    item: str, controls: Mapping[str, list[str]], entry: Mapping[str, Any], by: Any, place: str
) -> ToolAnswer:
    """Return an answer of what the controls say, and when and by whom an entry was made."""
    lead = entry.get("lead_time")
    return ToolAnswer(
        id=item,
        value=None if entry.get("was_cancelled") else _answer(controls, place),
        annotator=_who(by),
        note=" ".join(controls.get(NOTE, [])),
        at=str(entry.get("updated_at") or entry.get("created_at") or ""),
        seconds=float(lead) if isinstance(lead, int | float) and not isinstance(lead, bool) else None,
        place=place,
    )


def _listed(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return _values({"value": value})
    parts = value if isinstance(value, list) else [value]
    return [
        text for part in parts for text in (_listed(part) if isinstance(part, Mapping) else [text_of(part)])
    ]


def _values(entry: Mapping[str, Any]) -> list[str]:
    """Return what a control says, whatever its kind: choices, a text, a number, a rating."""
    value = entry.get("value")
    parts = list(value.values()) if isinstance(value, Mapping) else []
    return [
        text_of(each)
        for part in parts
        for each in (part if isinstance(part, list) else [part])
        if not isinstance(each, Mapping | list)
    ]


def _answer(controls: Mapping[str, list[str]], place: str) -> str:
    """Return the answer: of `verdict`, of its words, or of the only control there is."""
    own = [controls.get(name, []) for name in (f"{VERDICT}_words", VERDICT)]
    others = [values for name, values in controls.items() if not name.startswith((VERDICT, NOTE))]
    given = next((values for values in own if values), others[0] if len(others) == 1 else [])
    if len(given) != 1:
        raise LabelError(
            f"{place}: an annotation needs one answer",
            given=", ".join(map(repr, given)) or f"controls {', '.join(controls) or 'none'}",
            allowed=f"one choice of {VERDICT!r}",
            action="Answer or skip the task in Label Studio, and export again.",
        )
    return given[0]


def _who(by: Any) -> str:
    if isinstance(by, Mapping):
        return str(by.get("email") or by.get("username") or by.get("id") or "")
    return "" if by is None else str(by)


LABEL_STUDIO = Tool(
    name="label-studio",
    title="Label Studio",
    write=write_label_studio,
    recognises=is_label_studio,
    read=read_label_studio,
    folder=True,
)


_HIDDEN = ".argilla"
_DONE, _LEFT = ("submitted",), ("discarded",)


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


def is_argilla(found: Any) -> bool:
    """Return whether a JSON document holds records of Argilla.

    Examples
    --------
    >>> is_argilla([{"id": "q7", "fields": {}, "responses": {}}]), is_argilla([{"id": "q7"}])
    (True, False)
    """
    first = first_of(found)
    if not first:
        return False
    names = [str(name) for entry in found if isinstance(entry, Mapping) for name in entry]
    flat = "_server_id" in first and any(name.endswith(".responses") for name in names)
    return {"fields", "responses"} <= set(first) or flat


def read_argilla(found: Sequence[Any], source: str) -> Answers:
    """Return the answers of some records; drafts are none.

    Raises
    ------
    LabelError
        For a record without an id, and for a response without a user.

    Examples
    --------
    >>> record = {"id": "q7", "_server_id": None, "verdict.responses": ["Pass"],
    ...           "verdict.responses.users": ["ann"], "verdict.responses.status": ["submitted"]}
    >>> [(said.id, said.value, said.annotator) for said in read_argilla([record], "records.json").said]
    [('q7', 'Pass', 'ann')]
    """
    flat = not isinstance(found[0], Mapping) or "responses" not in found[0]
    said = each_record(found, source, ARGILLA.title, "record", _of_flat if flat else _of_nested)
    note = f"{source}: to_json leaves out who discarded what; to_list(flatten=True) tells"
    return Answers(tool=ARGILLA.name, said=said, notes=() if flat else (note,))


def _of_flat(record: Any, place: str) -> list[ToolAnswer]:
    item = text_of(required(record, "id", place))
    name = _question([key.removesuffix(".responses") for key in record if key.endswith(".responses")], place)
    if name is None:
        return []
    values, users, states = (record.get(f"{name}.responses{end}") or [] for end in ("", ".users", ".status"))
    notes = dict(
        zip(record.get(f"{NOTE}.responses.users") or [], record.get(f"{NOTE}.responses") or [], strict=False)
    )
    return [
        ToolAnswer(
            id=item,
            value=None if state in _LEFT else text_of(value),
            annotator=text_of(user),
            note=text_of(notes.get(user)),
            place=place,
        )
        for value, user, state in zip(values, users, states, strict=True)
        if state in (*_DONE, *_LEFT)
    ]


def _of_nested(record: Any, place: str) -> list[ToolAnswer]:
    item = text_of(required(record, "id", place))
    responses = record.get("responses") or {}
    name = _question(list(responses), place)
    given = [(text_of(required(entry, "user_id", place)), entry) for entry in responses.get(name) or []]
    remarks = responses.get(NOTE) or []
    notes = {text_of(required(entry, "user_id", place)): entry.get("value") for entry in remarks}
    return [
        ToolAnswer(
            id=item,
            value=None if entry.get("value") is None else text_of(entry["value"]),
            annotator=who,
            note=text_of(notes.get(who)),
            place=place,
        )
        for who, entry in given
    ]


def _question(names: Sequence[str], place: str) -> str | None:
    """Return the question that was answered: `verdict`, or the only one besides the note."""
    requested = [name for name in names if name != NOTE]
    if VERDICT in requested or not requested:
        return VERDICT if requested else None
    if len(requested) > 1:
        raise LabelError(
            f"{place}: several questions were answered",
            given=", ".join(requested),
            allowed=f"one, or {VERDICT!r}",
        )
    return requested[0]


ARGILLA = Tool(
    name="argilla",
    title="Argilla",
    write=write_argilla,
    recognises=is_argilla,
    read=read_argilla,
    folder=True,
)


CONFIG, INSTANCES, OUTPUT = "config.yaml", "instances.jsonl", "annotation_output"
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


def is_potato(found: Any) -> bool:
    """Return whether a JSON document, or JSON Lines, is of Potato.

    Examples
    --------
    >>> is_potato({"user_id": "ann", "instance_id_to_label_to_value": {}}), is_potato([{"id": 1}])
    (True, False)
    """
    if isinstance(found, Mapping):
        return "user_id" in found and _ANSWERS in found
    return {"instance_id", "user_id", "labels"} <= set(first_of(found))


def read_potato(found: Any, source: str) -> Answers:
    """Return the answers of one annotator's state, or of an export.

    Raises
    ------
    LabelError
        For an entry without an id, and for an instance with several answers.

    Examples
    --------
    >>> state = {"user_id": "ann", "instance_id_to_label_to_value": {
    ...     "q7": [[{"schema": "verdict", "name": "Pass"}, "Pass"]]}}
    >>> [(said.id, said.value, said.annotator) for said in read_potato(state, "user_state.json").said]
    [('q7', 'Pass', 'ann')]
    """
    if isinstance(found, Mapping):
        who = text_of(required(found, "user_id", source))
        entries = ((item, who, labels) for item, labels in found[_ANSWERS].items())
        said = each_record(entries, source, POTATO.title, "item", _of_state)
    else:
        said = each_record(found, source, POTATO.title, "line", _of_line)
    return Answers(tool=POTATO.name, said=said)


def _of_state(entry: Any, place: str) -> list[ToolAnswer]:
    item, who, labels = entry
    named = [(str(label["schema"]), str(label["name"]), text_of(value)) for label, value in labels]
    return _potato_answer(item, who, named, place)


def read_folder(folder: Path) -> Answers | None:
    """Return the answers of all annotators in a folder `annotation_output`, None for any other folder.

    Examples
    --------
    >>> read_folder(Path("nowhere"))
    """
    states = sorted(folder.glob(f"*/{STATE}"))
    if not states:
        return None
    said: list[ToolAnswer] = []
    for path in states:
        with as_written(str(path), "Potato"):
            found = json.loads(path.read_text(encoding="utf-8"))
            if not is_potato(found):
                raise LabelError(f"{path}: is not a {STATE} of Potato", allowed=f"user_id and {_ANSWERS}")
            said += read_potato(found, str(path)).said
    return Answers(tool=POTATO.name, said=newest(said))


def _of_line(line: Any, place: str) -> list[ToolAnswer]:
    item, who = (text_of(required(line, name, place)) for name in ("instance_id", "user_id"))
    return _potato_answer(
        item,
        who,
        [
            (str(schema), str(name), text_of(value))
            for schema, given in line["labels"].items()
            for name, value in (given.items() if isinstance(given, Mapping) else [(text_of(given), given)])
        ],
        place,
    )


def _potato_answer(item: str, who: str, labels: list[tuple[str, str, str]], place: str) -> list[ToolAnswer]:
    """Return an answer: the chosen name of a radio, the words of a text; none where there is only a note."""
    words = [value if name == "text_box" else name for schema, name, value in labels if schema == VERDICT]
    note = " ".join(value for schema, _, value in labels if schema == NOTE)
    if len(words) > 1:
        raise LabelError(f"{place}: item {item!r} has several answers", given=", ".join(words), allowed="one")
    return [ToolAnswer(id=item, value=word, annotator=who, note=note, place=place) for word in words]


POTATO = Tool(
    name="potato", title="Potato", write=write_potato, recognises=is_potato, read=read_potato, folder=True
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


def is_prodigy(found: Any) -> bool:
    """Return whether JSON Lines are of Prodigy.

    Examples
    --------
    >>> is_prodigy([{"answer": "accept", "accept": ["Pass"], "_task_hash": 1}]), is_prodigy([{"id": 1}])
    (True, False)
    """
    first = first_of(found)
    return "answer" in first and bool({"_task_hash", "_input_hash"} & set(first))


def read_prodigy(found: Sequence[Any], source: str) -> Answers:
    """Return the answers of a dataset: an accepted choice, or a skip for what was ignored or rejected.

    Raises
    ------
    LabelError
        For a line without `item_id`, an unknown answer, and an accepted one without one choice.

    Examples
    --------
    >>> line = {"item_id": "q7", "accept": ["Pass"], "answer": "accept", "_annotator_id": "ann"}
    >>> [(said.id, said.value, said.annotator) for said in read_prodigy([line], "out.jsonl").said]
    [('q7', 'Pass', 'ann')]
    """
    said = each_record(found, source, PRODIGY.title, "line", _prodigy_answer)
    return Answers(tool=PRODIGY.name, said=said)


def _prodigy_answer(line: Any, place: str) -> list[ToolAnswer]:
    item = text_of(required(line, ITEM_ID, place))
    answer, chosen = line.get("answer"), line.get("accept") or []
    if answer not in (ACCEPT, *LEFT):
        raise LabelError(f"{place}: unknown answer", given=repr(answer), allowed="accept, reject or ignore")
    if answer == ACCEPT and (not isinstance(chosen, list) or len(chosen) != 1):
        raise LabelError(
            f"{place}: an accepted item needs one choice",
            given=str(chosen)[:60],
            allowed="one",
            action="Choose one, or ignore the item, in Prodigy and export again.",
        )
    moment = line.get("_timestamp")
    timed = isinstance(moment, int | float) and not isinstance(moment, bool)
    said = ToolAnswer(
        id=item,
        value=text_of(chosen[0]) if answer == ACCEPT else None,
        annotator=text_of(line.get("_annotator_id") or line.get("_session_id")),
        note=text_of(line.get("user_input")),
        at=datetime.fromtimestamp(moment, UTC).isoformat() if timed else "",
        place=place,
    )
    return [said]


PRODIGY = Tool(name="prodigy", title="Prodigy", write=write_prodigy, recognises=is_prodigy, read=read_prodigy)
