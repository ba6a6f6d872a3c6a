"""Items with ids as people have them, the files that the tools wrote themselves, and ways to change those."""

from __future__ import annotations

from typing import Any

import pytest

from stratal.errors import InputError
from stratal.labels.annotation_tools import Task, ToolQuestion
from stratal.labels.label_files import read_answers

IDS = ("007", 'a"b', "two\nlines", "köln", "=1+1")
NOTE = 'doubtful, "very"'


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
def asked() -> ToolQuestion:
    return ToolQuestion(
        text="Is the answer correct?", choices=("Pass", "Fail"), keys=("1", "2"), rubric="Be strict."
    )


@pytest.fixture
def refusal(written):
    """Return the one error that a changed document ends in; written as JSON Lines where asked for."""

    def read(document: Any, tool: str | None = None, *, lines: bool = False) -> str:
        with pytest.raises(InputError) as caught:
            read_answers(written(document, lines=lines), tool)
        return str(caught.value)

    return read


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
    return lambda found: {(entry.annotator, entry.id): entry.value for entry in found.answers}
