"""Prodigy: JSON Lines for the choice interface out, `prodigy db-out` in (as documented for version 1.18)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stratal.errors import LabelError
from stratal.labels.exchange.exchange import (
    ITEM_ID,
    Answers,
    Asked,
    Said,
    Task,
    Tool,
    first_of,
    newest,
    refuse_free,
    required,
    text_of,
    write_lines,
)

ACCEPT, LEFT = "accept", ("ignore", "reject")


def write(tasks: Sequence[Task], asked: Asked, path: Path) -> str:
    """Write a line per item with the choices as options.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "tasks.jsonl"
    >>> _ = write([Task(id="q7", payload={"q": "2 + 2?"})], Asked(text="OK?", choices=("Pass", "Fail")), path)
    >>> path.read_text()[:40]
    '{"item_id": "q7", "text": "2 + 2?", "opt'
    """
    refuse_free(TOOL.title, asked)
    options = [{"id": choice, "text": choice} for choice in asked.choices]

    def line(task: Task) -> dict[str, Any]:
        return {ITEM_ID: task.id, "text": task.page(), "options": options, "meta": {"question": asked.text}}

    write_lines(path, (line(task) for task in tasks))
    return f"prodigy mark DATASET {path} --view-id choice. When done: prodigy db-out DATASET > answers.jsonl."


def recognises(found: Any) -> bool:
    """Return whether JSON Lines are of Prodigy.

    Examples
    --------
    >>> recognises([{"answer": "accept", "accept": ["Pass"], "_task_hash": 1}]), recognises([{"id": 1}])
    (True, False)
    """
    first = first_of(found)
    return "answer" in first and bool({"_task_hash", "_input_hash"} & set(first))


def read(found: Sequence[Any], source: str) -> Answers:
    """Return the answers of a dataset: an accepted choice, or a skip for what was ignored or rejected.

    Raises
    ------
    LabelError
        For a line without `item_id`, an unknown answer, and an accepted one without one choice.

    Examples
    --------
    >>> line = {"item_id": "q7", "accept": ["Pass"], "answer": "accept", "_annotator_id": "ann"}
    >>> [(said.id, said.value, said.annotator) for said in read([line], "out.jsonl").said]
    [('q7', 'Pass', 'ann')]
    """
    said = [_said(line, f"{source}, line {n}") for n, line in enumerate(found, start=1)]
    return Answers(tool=TOOL.name, said=newest(said))


def _said(line: Any, place: str) -> Said:
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
    return Said(
        id=item,
        value=text_of(chosen[0]) if answer == ACCEPT else None,
        annotator=text_of(line.get("_annotator_id") or line.get("_session_id")),
        note=text_of(line.get("user_input")),
        at=datetime.fromtimestamp(moment, UTC).isoformat() if timed else "",
        place=place,
    )


TOOL = Tool(name="prodigy", title="Prodigy", write=write, recognises=recognises, read=read)
