"""Argilla: a dataset folder out, its records in (argilla 2.8.0).

The folder is one that `rg.Dataset.from_disk` takes. Records come back from `dataset.records.to_json(path)`,
which leaves out who discarded what, or from `json.dump(dataset.records.to_list(flatten=True), file)`.
"""

from __future__ import annotations

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
    refuse_free,
    required,
    text_of,
    write_json,
)

_HIDDEN = ".argilla"
_DONE, _LEFT = ("submitted",), ("discarded",)


def write(tasks: Sequence[Task], asked: Asked, folder: Path) -> str:
    """Write the records, and beside them the dataset's settings.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> asked = Asked(text="OK?", choices=("Pass", "Fail"))
    >>> _ = write([Task(id="q7", payload={"q": "2 + 2?"})], asked, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['.argilla', 'records.json']
    """
    if not asked.free:
        refuse_free(TOOL.title, asked)
    fields = Fields.of(tasks)
    (folder / _HIDDEN).mkdir()
    write_json(folder / _HIDDEN / "dataset.json", {"name": folder.resolve().name, "status": "draft"})
    write_json(folder / _HIDDEN / "settings.json", _settings(fields, asked))
    records = [
        {"id": task.id, "fields": fields.values(task), "metadata": {ITEM_ID: task.id}} for task in tasks
    ]
    write_json(folder / "records.json", records)
    return (
        f"In Python: rg.Dataset.from_disk({str(folder)!r}, client=…). When done: "
        "json.dump(dataset.records.to_list(flatten=True), file)."
    )


def _settings(fields: Fields, asked: Asked) -> dict[str, Any]:
    shown_fields = [
        {
            "name": slug, "title": name, "required": False, "type": kind,
            "settings": {"type": kind, "use_markdown": name in fields.chats},
        }
        for name, slug in fields.names.items()
        for kind in ["chat" if name in fields.chats else "text"]
    ]  # fmt: skip
    words = {"type": "text", "use_markdown": False}
    options = [{"text": choice, "value": choice} for choice in asked.choices]
    choosing = {"type": "label_selection", "options": options, "visible_options": None}
    verdict = {
        "name": VERDICT, "title": asked.text, "required": True, "description": None,
        "type": "text" if asked.free else "label_selection", "settings": words if asked.free else choosing,
    }  # fmt: skip
    note = {"name": NOTE, "title": "Note", "required": False, "type": "text", "settings": words}
    shown = {"type": "terms", "values": None, "visible_for_annotators": False}
    return {
        "guidelines": asked.rubric or asked.text,
        "questions": [verdict, note],
        "fields": shown_fields,
        "vectors": [],
        "metadata": [{"name": ITEM_ID, "title": ITEM_ID, "settings": shown, "visible_for_annotators": False}],
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
        "mapping": None,
    }


def recognises(found: Any) -> bool:
    """Return whether a JSON document holds records of Argilla.

    Examples
    --------
    >>> recognises([{"id": "q7", "fields": {}, "responses": {}}]), recognises([{"id": "q7"}])
    (True, False)
    """
    first = first_of(found)
    if not first:
        return False
    names = [str(name) for entry in found if isinstance(entry, Mapping) for name in entry]
    flat = "_server_id" in first and any(name.endswith(".responses") for name in names)
    return {"fields", "responses"} <= set(first) or flat


def read(found: Sequence[Any], source: str) -> Answers:
    """Return the answers of some records; drafts are none.

    Raises
    ------
    LabelError
        For a record without an id, and for a response without a user.

    Examples
    --------
    >>> record = {"id": "q7", "_server_id": None, "verdict.responses": ["Pass"],
    ...           "verdict.responses.users": ["ann"], "verdict.responses.status": ["submitted"]}
    >>> [(said.id, said.value, said.annotator) for said in read([record], "records.json").said]
    [('q7', 'Pass', 'ann')]
    """
    flat = not isinstance(found[0], Mapping) or "responses" not in found[0]
    said = [
        entry
        for place, record in ((f"{source}, record {n}", record) for n, record in enumerate(found, start=1))
        for entry in (_of_flat if flat else _of_nested)(record, text_of(required(record, "id", place)), place)
    ]
    note = f"{source}: to_json leaves out who discarded what; to_list(flatten=True) tells"
    return Answers(tool=TOOL.name, said=newest(said), notes=() if flat else (note,))


def _of_flat(record: Mapping[str, Any], item: str, place: str) -> list[Said]:
    name = _question([key.removesuffix(".responses") for key in record if key.endswith(".responses")], place)
    if name is None:
        return []
    values, users, states = (record.get(f"{name}.responses{end}") or [] for end in ("", ".users", ".status"))
    if not len(values) == len(users) == len(states):
        raise LabelError(
            f"{place}: responses, users and status do not fit",
            given=f"{len(values)}, {len(users)}",
            allowed="three lists of the same length",
            action="Export the records from Argilla again.",
        )
    notes = dict(
        zip(record.get(f"{NOTE}.responses.users") or [], record.get(f"{NOTE}.responses") or [], strict=False)
    )
    return [
        Said(
            id=item,
            value=None if state in _LEFT else text_of(value),
            annotator=text_of(user),
            note=text_of(notes.get(user)),
            place=place,
        )
        for value, user, state in zip(values, users, states, strict=True)
        if state in (*_DONE, *_LEFT)
    ]


def _of_nested(record: Mapping[str, Any], item: str, place: str) -> list[Said]:
    responses = record.get("responses") or {}
    if not isinstance(responses, Mapping):
        raise LabelError(
            f"{place}: its responses are not an object",
            given=str(responses)[:60],
            action="Export the records from Argilla again.",
        )
    name = _question(list(responses), place)
    given = [(text_of(required(entry, "user_id", place)), entry) for entry in responses.get(name) or []]
    remarks = responses.get(NOTE) or []
    notes = {text_of(required(entry, "user_id", place)): entry.get("value") for entry in remarks}
    return [
        Said(
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
    asked = [name for name in names if name != NOTE]
    if VERDICT in asked or not asked:
        return VERDICT if asked else None
    if len(asked) > 1:
        raise LabelError(
            f"{place}: several questions were answered",
            given=", ".join(asked),
            allowed=f"one, or {VERDICT!r}",
        )
    return asked[0]


TOOL = Tool(name="argilla", title="Argilla", write=write, recognises=recognises, read=read, folder=True)
