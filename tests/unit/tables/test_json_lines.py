"""JSON Lines: values as text with their digits, and what is not an object refused by its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stratal.errors import InputError
from stratal.population.declaration import Declaration
from stratal.population.inspection import describe_columns
from stratal.tables import readers

OBJECTS = [
    {"id": "a", "x": 1.0, "y": True, "text": 'é "q" \\ \n', "none": None},
    {"y": "True", "id": "b", "late": 12345678901234567890, "x": -0.0},
    {"id": "c", "x": 0.1234567890123, "y": False, "text": "true", "none": [1, 2.50]},
    {},
    {"late": 0.1, "x": float("nan"), "id": "a b", "y": None, "text": ""},
]


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def held(path: Path) -> dict[str, list[Any]]:
    table = readers.open_table(path)
    names = ("id", "x", "y", "text", "none", "late")
    rows = table.read_columns(Declaration(id="id", shown=names))
    found: dict[str, list[Any]] = rows.head(names, 10_000)
    return found


def test_values_keep_their_digits_and_truth_values_are_those_of_python(tmp_path: Path) -> None:
    found = held(write(tmp_path / "it's [1].jsonl", OBJECTS))

    assert found["y"] == ["True", "True", "False", None, None]
    assert found["late"] == [None, "12345678901234567890", None, None, "0.1"]


@pytest.mark.parametrize("odd", ['["c", 1]', '{"id": "c"', "7"])
def test_what_is_no_object_is_refused_by_its_line(tmp_path: Path, odd: str) -> None:
    path = write(tmp_path / "rows.jsonl", [*OBJECTS, odd])

    with pytest.raises(InputError, match="line 6"):
        describe_columns(path)
