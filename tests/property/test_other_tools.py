"""Damaged files of other tools end in one error of ours, whatever the damage; ids survive every tool."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiers import sized

from stratal.errors import InputError
from stratal.labels.annotation_tools import Task, ToolQuestion
from stratal.labels.label_files import find_tool, read_answers, write_tasks
from stratal.population import Population

TOOLS = Path(__file__).parents[1] / "tools"
LOGS = [
    *("lm-eval-0.4.13-capitals.jsonl", "lm-eval-0.4.13-choose.jsonl", "inspect-0.3.285.json"),
    *("promptfoo-0.121.20.json", "deepeval-4.3.1.json", "deepeval-4.3.1-conversation.json"),
    "evaluate-0.4.6.json",
]
ANSWERS = [
    *("label-studio-sdk-2.1.2.json", "label-studio-sdk-2.1.2-min.json"),
    *("argilla-2.8.0-list.json", "potato-2.12.1/ann/user_state.json"),
]
JUNK = [None, True, 0, -1, 1e308, "", "x", "\ud800", "\0", [], {}, [None], {"": None}, [[]], [{}], {"id": []}]
TRIES = sized(6, 40)


def places(document: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to every entry of a document."""
    inner: Any
    if isinstance(document, dict):
        inner = document.items()
    elif isinstance(document, list):
        inner = enumerate(document)
    else:
        return [at] if at else []
    return [*([at] if at else []), *(path for key, value in inner for path in places(value, (*at, key)))]


def damaged(document: Any, chance: random.Random) -> Any:
    """Return a document with up to three entries removed, doubled or replaced."""
    document = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        found = places(document)
        if not found:
            break
        *path, last = chance.choice([at for at in found if len(at) <= chance.randint(1, 8)] or found)
        holder = document
        for key in path:
            holder = holder[key]
        kind = chance.randrange(3)
        if kind == 0:
            del holder[last]
        elif kind == 1 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        else:
            holder[last] = copy.deepcopy(chance.choice(JUNK))
    return document


def loaded(name: str) -> Any:
    text = (TOOLS / name).read_text()
    return [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)


def write(path: Path, document: Any) -> Path:
    lines = path.suffix == ".jsonl" and isinstance(document, list)
    text = "".join(json.dumps(line) + "\n" for line in document) if lines else json.dumps(document)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", LOGS)
def test_damaged_logs_are_read_or_refused(name, tmp_path):
    chance, document, refused = random.Random(name), loaded(name), 0
    for number in range(TRIES):
        path = write(tmp_path / f"{number}{Path(name).suffix}", damaged(document, chance))
        try:
            Population.read(path, proxy=())
        except InputError:
            refused += 1
    assert refused or TRIES < 40  # some damage harms nothing, and of few tries all may be such


@pytest.mark.parametrize("name", ANSWERS)
def test_damaged_answers_are_read_or_refused(name, tmp_path):
    chance, document, refused = random.Random(name), loaded(name), 0
    for number in range(TRIES):
        path = write(tmp_path / f"{number}{Path(name).suffix}", damaged(document, chance))
        try:
            found = read_answers(path)
        except InputError:
            refused += 1
        else:
            assert all(isinstance(entry.id, str) and entry.id for entry in found.answers)
    assert refused or TRIES < 40  # some damage harms nothing, and of few tries all may be such


IDS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1, unique=True
)
WAYS = ["label-studio", "argilla", "potato", "prodigy", "jsonl"]


@pytest.mark.parametrize("way", WAYS)
@given(ids=IDS)
@settings(max_examples=sized(10, 200))
def test_ids_survive_every_tool(way, ids, tmp_path_factory):
    tasks = [Task(id=name, payload={"q": f"{name}?"}) for name in ids]
    asked = ToolQuestion(text="Right?", choices=("Pass", "Fail"))
    folder = tmp_path_factory.mktemp("out")
    path = folder / ("out.jsonl" if way in ("prodigy", "jsonl") else "out")
    write_tasks(find_tool(way), tasks, asked, path)

    answered = ANSWERED[way](path)
    found = read_answers(
        write(folder / ("back.jsonl" if way in ("prodigy", "jsonl") else "back.json"), answered)
    )

    assert [entry.id for entry in found.answers] == ids


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def of_label_studio(path: Path) -> Any:
    result = [{"from_name": "verdict", "type": "choices", "value": {"choices": ["Pass"]}}]
    tasks = json.loads((path / "tasks.json").read_text())
    return [{**task, "annotations": [{"completed_by": 1, "result": result}]} for task in tasks]


def of_argilla(path: Path) -> Any:
    said = {"": "Pass", ".users": "u", ".status": "submitted"}
    given = {f"verdict.responses{end}": [value] for end, value in said.items()}
    records = json.loads((path / "records.json").read_text())
    return [{"id": record["id"], "_server_id": "1", **given} for record in records]


def of_potato(path: Path) -> Any:
    said = {
        line["id"]: [[{"schema": "verdict", "name": "Pass"}, "Pass"]]
        for line in lines_of(path / "instances.jsonl")
    }
    return {"user_id": "ann", "instance_id_to_label_to_value": said}


ANSWERED = {
    "label-studio": of_label_studio,
    "argilla": of_argilla,
    "potato": of_potato,
    "prodigy": lambda path: [
        {**line, "accept": ["Pass"], "answer": "accept", "_task_hash": 1} for line in lines_of(path)
    ],
    "jsonl": lambda path: [{**line, "label": "Pass"} for line in lines_of(path)],
}
