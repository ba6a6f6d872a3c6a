"""Files that other tools wrote, and a way to change one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def tools() -> Path:
    """The folder of files that annotation and evaluation tools wrote themselves."""
    return Path(__file__).parents[1] / "tools"


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a document as JSON, or its entries as JSON Lines."""

    def write(document: Any, *, lines: bool) -> Path:
        path = tmp_path / ("file.jsonl" if lines else "file.json")
        text = "".join(json.dumps(line) + "\n" for line in document) if lines else json.dumps(document)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def changed() -> Callable[..., Any]:
    """Return a deep copy of a document with what a function does to it."""

    def change(document: Any, how: Any) -> Any:
        copied = copy.deepcopy(document)
        how(copied)
        return copied

    return change
