"""Potato: a config and its instances out, annotations in (potato-annotation 2.12.1).

Annotations come back as the folder `annotation_output` (a `user_state.json` per annotator), as one of those
files, or as the JSON Lines that Potato exports.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratal.errors import LabelError
from stratal.labels.exchange.exchange import (
    NOTE,
    VERDICT,
    Answers,
    Asked,
    Said,
    Task,
    Tool,
    first_of,
    newest,
    required,
    text_of,
    write_json,
    write_lines,
)
from stratal.tables.logs.log import as_written

CONFIG, INSTANCES, OUTPUT = "config.yaml", "instances.jsonl", "annotation_output"
STATE = "user_state.json"
_SAID = "instance_id_to_label_to_value"


def write(tasks: Sequence[Task], asked: Asked, folder: Path) -> str:
    """Write `config.yaml` (JSON, which is YAML too) and `instances.jsonl`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> asked = Asked(text="OK?", choices=("Pass", "Fail"))
    >>> _ = write([Task(id="q7", payload={"q": "2 + 2?"})], asked, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['config.yaml', 'instances.jsonl']
    """
    write_lines(folder / INSTANCES, ({"id": task.id, "text": task.page()} for task in tasks))
    answer: dict[str, Any] = {"annotation_type": "text", "name": VERDICT, "description": asked.text}
    if not asked.free:
        labels = [{"name": choice, **({"key_value": key} if key else {})} for choice, key in asked.keyed()]
        answer |= {"annotation_type": "radio", "labels": labels}
    config = {
        "annotation_task_name": asked.text,
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


def recognises(found: Any) -> bool:
    """Return whether a JSON document, or JSON Lines, is of Potato.

    Examples
    --------
    >>> recognises({"user_id": "ann", "instance_id_to_label_to_value": {}}), recognises([{"id": 1}])
    (True, False)
    """
    if isinstance(found, Mapping):
        return "user_id" in found and _SAID in found
    return {"instance_id", "user_id", "labels"} <= set(first_of(found))


def read(found: Any, source: str) -> Answers:
    """Return the answers of one annotator's state, or of an export.

    Raises
    ------
    LabelError
        For an entry without an id, and for an instance with several answers.

    Examples
    --------
    >>> state = {"user_id": "ann", "instance_id_to_label_to_value": {
    ...     "q7": [[{"schema": "verdict", "name": "Pass"}, "Pass"]]}}
    >>> [(said.id, said.value, said.annotator) for said in read(state, "user_state.json").said]
    [('q7', 'Pass', 'ann')]
    """
    if isinstance(found, Mapping):
        who = text_of(required(found, "user_id", source))
        entries = found[_SAID]
        if not isinstance(entries, Mapping):
            raise LabelError(
                f"{source}: {_SAID} is not an object", action="Take the file as Potato wrote it."
            )
        said = [_said(item, who, _pairs(labels, source), source) for item, labels in entries.items()]
    else:
        said = [_of_line(line, f"{source}, line {n}") for n, line in enumerate(found, start=1)]
    kept = newest(entry for entry in said if entry is not None)
    return Answers(tool=TOOL.name, said=kept)


def read_folder(folder: Path) -> Answers | None:
    """Return the answers of all annotators in a folder `annotation_output`, None for any other folder.

    Examples
    --------
    >>> read_folder(Path("nowhere"))
    """
    states = sorted(folder.glob(f"*/{STATE}"))
    if not states:
        return None
    said: list[Said] = []
    for path in states:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise LabelError(
                f"{path}: cannot be read ({error})", action="Take the file as Potato wrote it."
            ) from None
        if not recognises(found):
            raise LabelError(f"{path}: is no {STATE} of Potato", allowed=f"user_id and {_SAID}")
        with as_written(str(path), "Potato"):
            said += read(found, str(path)).said
    return Answers(tool=TOOL.name, said=newest(said))


def _of_line(line: Any, place: str) -> Said | None:
    item, who = (text_of(required(line, name, place)) for name in ("instance_id", "user_id"))
    labels = line.get("labels")
    if not isinstance(labels, Mapping):
        raise LabelError(
            f"{place}: its labels are not an object",
            given=str(labels)[:60],
            action="Export the annotations from Potato again.",
        )
    return _said(
        item,
        who,
        [
            (str(schema), str(name), text_of(value))
            for schema, given in labels.items()
            for name, value in (given.items() if isinstance(given, Mapping) else [(text_of(given), given)])
        ],
        place,
    )


def _pairs(labels: Any, place: str) -> list[tuple[str, str, str]]:
    """Return schema, name and value of each label of an instance."""
    try:
        return [(str(label["schema"]), str(label["name"]), text_of(value)) for label, value in labels]
    except (TypeError, ValueError, KeyError):
        raise LabelError(
            f"{place}: a label is not as Potato writes it",
            given=str(labels)[:80],
            action="Take the file as Potato wrote it.",
        ) from None


def _said(item: str, who: str, labels: list[tuple[str, str, str]], place: str) -> Said | None:
    """Return an answer: the chosen name of a radio, the words of a text; None where there is only a note."""
    words = [value if name == "text_box" else name for schema, name, value in labels if schema == VERDICT]
    note = " ".join(value for schema, _, value in labels if schema == NOTE)
    if len(words) > 1:
        raise LabelError(f"{place}: item {item!r} has several answers", given=", ".join(words), allowed="one")
    return Said(id=item, value=words[0], annotator=who, note=note, place=place) if words else None


TOOL = Tool(name="potato", title="Potato", write=write, recognises=recognises, read=read, folder=True)
