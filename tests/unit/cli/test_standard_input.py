"""`-` is standard input for the commands that read their file once."""

from __future__ import annotations

import json
import shlex

import pytest
from click.testing import CliRunner
from tests.e2e.pasted import write

from stratal.cli.application import app
from stratal.cli.standard_input import STORED_FILES, find_suffix

TABLE = "id,label\n" + "".join(f"{unit},{int(unit % 10 > 0)}\n" for unit in range(200))


@pytest.fixture(autouse=True)
def _no_stored_file():
    yield
    STORED_FILES.clear()


def run(*words, content=TABLE):
    return CliRunner().invoke(app, [*map(str, words)], input=content)


@pytest.mark.parametrize(
    "content",
    [
        TABLE,
        "".join(json.dumps({"id": unit, "label": int(unit % 10 > 0)}) + "\n" for unit in range(200)),
        json.dumps([{"id": unit, "label": int(unit % 10 > 0)} for unit in range(200)]),
    ],
)
def test_a_table_from_standard_input_is_estimated_like_a_file(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("labels.csv", ["id", "label"], [[unit, int(unit % 10 > 0)] for unit in range(200)])
    expected = run("estimate", "labels.csv", "--chosen", "all", "--json")

    done = run("estimate", "-", "--chosen", "all", "--json", content=content)

    assert json.loads(done.stdout)["estimate"] == json.loads(expected.stdout)["estimate"] == 0.9


def test_the_path_of_the_stored_file_is_not_printed():
    done = run("estimate", "-", "--chosen", "all")

    assert str(STORED_FILES[0]) not in done.stdout
    assert "Next, with the same input: stratal report - --chosen all" in done.stdout


@pytest.mark.parametrize(
    ("words", "content"),
    [
        (("estimate", "-", "--chosen", "all"), TABLE),
        (("doctor", "-"), TABLE),
        (("doctor", "-"), "id,score\n" + "a,0.5\nb,0.25\n" * 30),
    ],
)
def test_no_next_command_reads_standard_input_again(words, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = run(*words, content=content).stdout

    assert "Next:" not in printed
    for line in printed.splitlines():
        if line.startswith("Next, with the same input: "):
            again = shlex.split(line.removeprefix("Next, with the same input: stratal "))
            assert run(*again, content=content).exit_code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("draw", "-", "--budget", 5, "--output", "audit"), "draw cannot read standard input"),
        (("estimate", "-", "-"), "standard input can be read only once"),
    ],
)
def test_what_cannot_read_standard_input_is_an_error(words, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert problem in str(run(*words).exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("head", "suffix"),
    [
        (b"PAR1\x15", ".parquet"),
        (b"PK\x03\x04", ".xlsx"),
        (b'{\n "a": 1}', ".json"),
        (b'{"a": 1}\n{"a"', ".jsonl"),
        (b" [1]", ".json"),
        (b"a;b", ".csv"),
        (b"", ".csv"),
    ],
)
def test_the_format_follows_from_the_first_bytes(head, suffix):
    assert find_suffix(head) == suffix
