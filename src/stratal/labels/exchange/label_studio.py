"""Label Studio: tasks and a labelling config out, JSON and JSON-MIN in (label-studio-sdk 2.1.2).

The id stands in the task's data under `item_id`: a key `id` of the data is lost in JSON-MIN.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratal.errors import LabelError
from stratal.labels.exchange.exchange import (
    ITEM_ID,
    NOTE,
    VERDICT,
    Answers,
    Asked,
    Fields,
    Said,
    Task,
    Tool,
    first_of,
    newest,
    required,
    text_of,
    write_json,
)

TASKS, CONFIG = "tasks.json", "config.xml"
_MIN = {"annotation_id", "annotator", "lead_time"}
"""What every entry of JSON-MIN has."""


def write(tasks: Sequence[Task], asked: Asked, folder: Path) -> str:
    """Write `tasks.json` and `config.xml`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> asked = Asked(text="OK?", choices=("Pass", "Fail"))
    >>> _ = write([Task(id="q7", payload={"q": "2 + 2?"})], asked, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['config.xml', 'tasks.json']
    """
    fields = Fields.of(tasks)
    write_json(
        folder / TASKS,
        [{"data": {ITEM_ID: task.id, **fields.blank, **fields.values(task)}} for task in tasks],
    )
    (folder / CONFIG).write_text(_config(fields, asked), encoding="utf-8")
    return (
        f"In Label Studio: new project, Labeling Setup > Custom template: paste {CONFIG}; Import: {TASKS}. "
        "When done: Export > JSON."
    )


def _config(fields: Fields, asked: Asked) -> str:
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
    if asked.rubric:
        ET.SubElement(view, "Header", value=asked.rubric, size="6")
    ET.SubElement(view, "Header", value=asked.text)
    first = next(iter(fields.names.values()))
    if asked.choices:
        needed = "false" if asked.free else "true"
        group = ET.SubElement(view, "Choices", name=VERDICT, toName=first, choice="single", required=needed)
        for choice, key in asked.keyed():
            ET.SubElement(group, "Choice", {"value": choice, **({"hotkey": key} if key else {})})
    if asked.free:
        ET.SubElement(
            view, "TextArea", name=f"{VERDICT}_words", toName=first, maxSubmissions="1", editable="true",
            placeholder="In your own words",
        )  # fmt: skip
    ET.SubElement(
        view, "TextArea", name=NOTE, toName=first, maxSubmissions="1", editable="true", placeholder="Note"
    )
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def recognises(found: Any) -> bool:
    """Return whether a JSON document is an export of Label Studio.

    Examples
    --------
    >>> recognises([{"id": 1, "data": {}, "annotations": []}]), recognises([{"id": 1}])
    (True, False)
    """
    first = set(first_of(found))
    return first >= {"data", "annotations"} or first >= _MIN


def read(found: Sequence[Any], source: str) -> Answers:
    """Return the answers of an export.

    Raises
    ------
    LabelError
        For a task without `item_id`, and for an annotation with no answer or several.

    Examples
    --------
    >>> task = {"id": 1, "data": {"item_id": "q7"}, "annotations": [{"completed_by": 2, "result": [
    ...     {"from_name": "verdict", "type": "choices", "value": {"choices": ["Pass"]}}]}]}
    >>> [(said.id, said.value, said.annotator) for said in read([task], "export.json").said]
    [('q7', 'Pass', '2')]
    """
    if set(found[0]) >= _MIN and "annotations" not in found[0]:
        said = [_of_min(entry, f"{source}, entry {n}") for n, entry in enumerate(found, start=1)]
        note = f"{source}: JSON-MIN leaves out skipped tasks; export JSON to keep them"
        return Answers(tool=TOOL.name, said=newest(said), notes=(note,))
    said = [
        _of_annotation(text_of(required(required(task, "data", place), ITEM_ID, place)), annotation, place)
        for place, task in ((f"{source}, task {n}", task) for n, task in enumerate(found, start=1))
        for annotation in _annotations(task, place)
    ]
    return Answers(tool=TOOL.name, said=newest(said))


def _annotations(task: Any, place: str) -> list[Any]:
    required(task, "data", place)
    annotations = task.get("annotations")
    if not isinstance(annotations, list):
        raise LabelError(f"{place}: has no list of annotations", action="Export JSON, not another format.")
    return annotations


def _of_annotation(item: str, annotation: Any, place: str) -> Said:
    if not isinstance(annotation, Mapping):
        raise LabelError(
            f"{place}: an annotation is not an object", action="Export JSON from Label Studio again."
        )
    results = annotation.get("result") or []
    if not isinstance(results, list) or not all(isinstance(entry, Mapping) for entry in results):
        raise LabelError(
            f"{place}: an annotation's result is not a list of objects",
            action="Export JSON from Label Studio again.",
        )
    controls: dict[str, list[str]] = {}
    for entry in results:
        controls.setdefault(str(entry.get("from_name")), []).extend(_values(entry))
    skipped = bool(annotation.get("was_cancelled"))
    lead = annotation.get("lead_time")
    return Said(
        id=item,
        value=None if skipped else _answer(controls, place),
        annotator=_who(annotation.get("completed_by")),
        note=" ".join(controls.get(NOTE, [])),
        at=str(annotation.get("updated_at") or annotation.get("created_at") or ""),
        seconds=float(lead) if isinstance(lead, int | float) and not isinstance(lead, bool) else None,
        place=place,
    )


def _of_min(entry: Any, place: str) -> Said:
    item = text_of(required(entry, ITEM_ID, place))
    controls = {name: _listed(entry[name]) for name in (VERDICT, f"{VERDICT}_words", NOTE) if name in entry}
    lead = entry.get("lead_time")
    return Said(
        id=item,
        value=_answer(controls, place),
        annotator=_who(entry.get("annotator")),
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


TOOL = Tool(
    name="label-studio", title="Label Studio", write=write, recognises=recognises, read=read, folder=True
)
