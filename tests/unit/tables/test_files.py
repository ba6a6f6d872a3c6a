from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from stratal.errors import InputError
from stratal.tables import files

LINES = [
    '{"a": 1, "b": -0, "c": 12345678901234567890123, "d": 0.1000000000000000055511151231257827}',
    '{"a": 1e999, "b": NaN, "c": -Infinity, "d": 4.9e-324}',
    '{"a": "x: y", "b": "\\u00e9", "c": "\\ud83d", "d": ""}',
    '{"a": {"a": 1, "b": {}}, "b": [1, 2.50, null], "c": true, "d": {}}',
    "{}",
]


def records(*lines: str) -> list[tuple[int, object]]:
    return list(files.json_records(io.StringIO("\n".join(lines)), Path("rows.jsonl")))


def test_objects_are_as_json_reads_them():
    assert repr(records(*LINES)) == repr([(at, json.loads(line)) for at, line in enumerate(LINES, start=1)])


@pytest.mark.parametrize(
    "line", ['{"a": 1, "a": 2}', '{"a" :1, "\\u0061": {}}', '{"a": {"b": 1, "b": 2}}', '{"a": ":", "a": 1}']
)
def test_a_key_that_stands_twice_is_refused(line):
    with pytest.raises(InputError, match=r"line 2 .*occurs twice"):
        records('{"a": 1}', line)


@pytest.mark.parametrize("line", ["[1]", "1", '"a:"', "null"])
def test_what_is_no_object_is_refused(line):
    with pytest.raises(InputError, match="line 2 is not a JSON object"):
        records('{"a": 1}', line)
