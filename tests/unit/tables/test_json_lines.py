"""JSON Lines of many keys: read in one pass, with the same answers as those of few."""

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
    rows = table.take(Declaration(id="id", shown=names))
    found: dict[str, list[Any]] = rows.head(names, 10_000)
    return found


@pytest.mark.parametrize("times", [1, 1_500])
def test_objects_of_many_keys_are_read_as_those_of_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Of 10,000 keys an expression each took DuckDB over a minute."""
    path = write(tmp_path / "it's [1].jsonl", OBJECTS * times)
    few = held(path)
    monkeypatch.setattr(readers, "_MANY_KEYS", 1)
    monkeypatch.setattr(readers, "_read_json", None)  # not called

    assert held(path) == few
    assert few["y"][:2] == ["True", "True"]


@pytest.mark.parametrize("odd", ['["c", 1]', '{"id": "c"', "7"])
@pytest.mark.parametrize("many", [200, 1])
def test_what_is_no_object_is_refused_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str, many: int
) -> None:
    monkeypatch.setattr(readers, "_MANY_KEYS", many)
    path = write(tmp_path / "rows.jsonl", [*OBJECTS, odd])

    with pytest.raises(InputError, match="line 6"):
        describe_columns(path)
