"""Annotation tools with files of their own: Label Studio, Argilla, Potato and Prodigy.

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

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stratal.errors import InputError, LabelError
from stratal.labels.tasks import (
    ITEM_ID,
    NOTE,
    VERDICT,
    Format,
    Task,
    Tool,
    ToolAnswer,
    ToolQuestion,
    columns_of,
    required,
    slugs,
    text_of,
    write_json,
    write_lines,
)

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
    "label-studio",
    "Label Studio",
    write_label_studio,
    (
        Format({"data", "annotations"}, "task", _of_task),
        Format(
            {"annotation_id", "annotator", "lead_time"},
            "entry",
            _of_entry,
            "JSON-MIN leaves out skipped tasks; export JSON to keep them",
        ),
    ),
    folder=True,
)


_DONE, _LEFT = "submitted", "discarded"
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
    "argilla", "Argilla", write_argilla, (Format({"_server_id"}, "record", _of_record),), folder=True
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
    "potato",
    "Potato",
    write_potato,
    (Format({"user_id", _ANSWERS}, "annotator", _of_annotator),),
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
    if not requested.choices:
        raise InputError(
            "Prodigy needs choices",
            given="answers in the annotators' own words",
            allowed="--choices, --scale",
        )
    options = [{"id": choice, "text": choice} for choice in requested.choices]

    same = {"options": options, "meta": {"question": requested.text}}
    write_lines(path, ({ITEM_ID: task.id, "text": task.page(), **same} for task in tasks))
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


PRODIGY = Tool("prodigy", "Prodigy", write_prodigy, (Format({"answer", "_task_hash"}, "line", _of_line),))
