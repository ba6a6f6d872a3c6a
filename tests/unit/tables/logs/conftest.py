"""The files that the tools wrote themselves, and a way to change one."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from stratal.errors import InputError
from stratal.population import Population

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture
def tools() -> Path:
    return TOOLS


@pytest.fixture
def refusal(tmp_path):
    """Return the one error that a changed document ends in; a list is written as JSON Lines."""

    def read(document: Any) -> str:
        lines = isinstance(document, list)
        path = tmp_path / ("log.jsonl" if lines else "log.json")
        text = "".join(json.dumps(line) + "\n" for line in document) if lines else json.dumps(document)
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            Population.read(path)
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
