"""Items with ids as people have them, the files that the tools wrote themselves, and ways to change those."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from stratal.errors import InputError
from stratal.labels.exchange.exchange import Asked, Task
from stratal.labels.exchange.tools import read_answers

TOOLS = Path(__file__).parents[3] / "tools"
IDS = ("007", 'a"b', "two\nlines", "köln", "=1+1")
NOTE = 'doubtful, "very"'


@pytest.fixture
def tools() -> Path:
    return TOOLS


@pytest.fixture
def tasks() -> list[Task]:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    return [
        Task(
            id=name, payload={"question": f"Is {name} right?", "answer@strict": "<b>東京</b>", "turns": turns}
        )
        for name in IDS
    ]


@pytest.fixture
def asked() -> Asked:
    return Asked(
        text="Is the answer correct?", choices=("Pass", "Fail"), keys=("1", "2"), rubric="Be strict."
    )


@pytest.fixture
def refusal(tmp_path):
    """Return the one error that a changed document ends in; written as JSON Lines where asked for."""

    def read(document: Any, tool: str | None = None, *, lines: bool = False) -> str:
        path = tmp_path / ("file.jsonl" if lines else "file.json")
        text = "".join(json.dumps(line) + "\n" for line in document) if lines else json.dumps(document)
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            read_answers(path, tool)
        return str(caught.value)

    return read


@pytest.fixture
def changed():
    """Return a deep copy of a document with what a function does to it."""

    def change(document: Any, how: Any) -> Any:
        copied = copy.deepcopy(document)
        how(copied)
        return copied

    return change


@pytest.fixture
def expected():
    """Return what ann and bob said, as {(annotator, id): value}, by the names that a tool gives them."""

    def answers(ann: str = "ann", bob: str = "bob", *, skips: bool = True) -> dict[tuple[str, str], Any]:
        said = dict(zip([(ann, name) for name in IDS], ["Pass", "Fail", "Pass", "Pass", None], strict=True))
        said |= {(bob, "007"): "Fail", (bob, 'a"b'): "Fail"}
        return {key: value for key, value in said.items() if skips or value is not None}

    return answers


@pytest.fixture
def given():
    """Return answers as `expected` has them."""
    return lambda found: {(entry.annotator, entry.id): entry.value for entry in found.said}
