"""JSON Lines of many keys: read in one pass, with the same answers as those of few."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import pytest

from stratal.errors import InputError
from stratal.population.declaration import Declared
from stratal.population.inspection import describe_columns
from stratal.tables import json_lines, readers
from stratal.tables.engine import connect

OBJECTS = [
    {"id": "a", "x": 1.0, "y": True, "text": 'é "q" \\ \n', "none": None},
    {"y": "True", "id": "b", "late": 12345678901234567890, "x": -0.0},
    {"id": "c", "x": 1e300, "y": False, "text": "true", "none": [1, 2.50]},
    {},
    {"late": 0.1, "x": float("nan"), "id": "a b", "y": None, "text": ""},
]


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def held(path: Path) -> list[dict[str, Any]]:
    source, _ = readers.read_source(path, Declared(id="id", show=("x", "y", "text", "none", "late")))
    wanted = {name: source.column(name) for name in source.columns}
    rows: list[dict[str, Any]] = source.run(source.table.select(**wanted)).to_pylist()
    return rows


@pytest.mark.parametrize("times", [1, 1_500])
def test_objects_that_differ_in_their_keys_and_in_their_order_are_read_as_by_a_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    path = write(tmp_path / "it's [1].jsonl", OBJECTS * times)
    few = held(path)
    monkeypatch.setattr(readers, "MANY_KEYS", 1)
    monkeypatch.setattr(readers, "_WIDE", 2)
    for module, name in ((readers, "create_json_view"), (json_lines, "read_json_texts")):
        monkeypatch.setattr(module, name, None)  # not called

    assert held(path) == few
    assert few[1]["y"] == few[0]["y"] == "True"


def test_the_keys_of_a_file_are_those_of_its_first_objects_and_by_first_appearance(tmp_path: Path) -> None:
    path = str(write(tmp_path / "rows.jsonl", [{"b": 1, "a": 2}, {"c": 3, "a": 4}, {"a": 1, "d": {"e": 5}}]))

    two, all_three = (json_lines.wide_lines(connect(), path, most) for most in (2, 3))

    assert two is not None
    assert all_three is not None
    assert json_lines.names_of_keys(two, []) == (["b", "a", "c"], ["b", "a", "c"])
    assert (two.nested, all_three.nested) == (False, True)


@pytest.mark.parametrize("odd", ['{"id": "c", "x": 1, "x": 2}', '["c", 1]', '{"id": "c"', "7"])
def test_a_file_with_something_else_than_objects_of_single_keys_is_read_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    path = write(tmp_path / "rows.jsonl", [*OBJECTS, odd])

    def answer() -> Any:
        try:
            return describe_columns(path)
        except InputError as error:
            return str(error)

    few = answer()
    monkeypatch.setattr(readers, "MANY_KEYS", 1)

    assert json_lines.wide_lines(connect(), str(path), 1_000) is None
    assert answer() == few


def test_objects_that_differ_in_too_many_keys_are_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "rows.jsonl", [{f"k{number}": 1, "id": number} for number in range(20)])
    assert json_lines.wide_lines(connect(), str(path), 10) is not None
    monkeypatch.setattr(json_lines, "_MOST_KEYS", 39)

    assert json_lines.wide_lines(connect(), str(path), 10) is None


def test_where_memory_is_short_for_whole_objects_they_are_read_by_groups_of_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "rows.jsonl", [{f"k{key}": key + row for key in range(400)} for row in range(9)])
    plenty = describe_columns(path)
    by_groups = Mock(wraps=json_lines.read_json_texts)
    monkeypatch.setattr(json_lines, "_values", Mock(side_effect=duckdb.OutOfMemoryException))
    monkeypatch.setattr(json_lines, "read_json_texts", by_groups)
    monkeypatch.setattr(readers, "_WIDE", 100)

    assert describe_columns(path) == plenty
    assert by_groups.call_count == 4


def test_python_parses_the_first_object_alone_of_many_flat_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "rows.jsonl", [{f"k{number}": row for number in range(300)} for row in range(50)])
    loads = Mock(wraps=json.loads)
    monkeypatch.setattr("stratal.tables.files.json.loads", loads)

    assert len(describe_columns(path)["columns"]) == 300
    assert (
        loads.call_count == 2
    )  # one to see whether it is an evaluation tool's log, one to see how many keys
