"""`stratal platform`: what is repeated or interrupted neither duplicates nor loses anything."""

from __future__ import annotations

import csv
import json
from dataclasses import fields

import pytest
from click.testing import CliRunner
from tests.unit.cli import fake_platform

import stratal
from stratal.cli.application import app
from stratal.tables.platforms.platform import PLATFORMS, text_of


@pytest.fixture(autouse=True)
def project(monkeypatch, tmp_path):
    monkeypatch.setitem(PLATFORMS, "fake", "tests.unit.cli.fake_platform")
    monkeypatch.chdir(tmp_path)
    new = fake_platform.FakeProject()
    for entry in fields(new):
        setattr(fake_platform.PROJECT, entry.name, getattr(new, entry.name))
    return fake_platform.PROJECT


def run(*words):
    done = CliRunner().invoke(app, ["platform", *map(str, words), "--json"])
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


def interrupted(*words):
    assert CliRunner().invoke(app, ["platform", *map(str, words)]).exit_code == 130


def units():
    with open("units.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


READ = ("read", "fake:project", "--output", "units.jsonl")


def test_an_interrupted_read_is_continued_where_it_stopped(project):
    project.fail_after = 2
    interrupted(*READ)
    assert len(units()) == 100
    with open("units.jsonl", "a", encoding="utf-8") as file:
        file.write('{"id": "u100", "ti')
    project.fail_after = None

    assert run(*READ) == {"file": "units.jsonl", "units": 120, "new": 20}
    assert [unit["id"] for unit in units()] == [f"u{n}" for n in range(120)]
    assert project.reads == [0, 1_049]
    assert run(*READ)["new"] == 0
    assert units()[3] == {
        "id": "u3",
        "time": 1_001,
        "input": "input 3",
        "answer": "answer 3",
        "judge": 3 / 120,
        "score_time": 3,
    }


def test_a_window_of_time_is_read():
    window = ("--since", "1970-01-01T00:00:01.010", "--until", "1970-01-01T00:00:01.020+00:00")

    assert run(*READ, *window)["units"] == 20
    assert {unit["time"] for unit in units()} == set(range(1_010, 1_020))


@pytest.fixture
def sample():
    run(*READ)
    options = "--id id --proxy judge --budget 40 --seed 1 --output audit"
    assert CliRunner().invoke(app, ["draw", "units.jsonl", *options.split()]).exit_code == 0
    return stratal.Sample.read("audit/sample.parquet")


def test_units_are_queued_once_in_random_order_and_their_labels_come_back(project, sample):
    queue = ("queue", "fake:project", "audit/sample.parquet", "--choices", "Pass,Fail")
    project.fail_after = 15
    interrupted(*queue)
    project.fail_after = None

    assert [run(*queue)["new"] for _ in range(2)] == [25, 0]
    [queued] = project.queues.values()
    assert queued["ids"] == sample.ids.tolist()
    assert queued["choices"] == ["Pass", "Fail"]

    labels = ("labels", "fake:project", "audit/sample.parquet", "--output", "labels.csv")
    first = run(*labels)
    assert (first["labels"], first["skipped"]) == (39, 1)
    with open("labels.csv", encoding="utf-8", newline="") as file:
        content = file.read()
    rows = list(csv.DictReader(content.splitlines()))
    assert [row["id"] for row in rows] == sample.ids.tolist()
    assert rows[0] == {
        "id": queued["ids"][0],
        "label": "",
        "annotator": "bob",
        "status": "skipped",
        "timestamp": "2023-11-14T22:13:20+00:00",
        "note": "",
    }
    assert run(*labels) == first
    with open("labels.csv", encoding="utf-8", newline="") as file:
        assert file.read() == content

    words = ["estimate", "audit/sample.parquet", "labels.csv", "--map", "Pass=1,Fail=0", "--json"]
    estimate = json.loads(CliRunner().invoke(app, words).stdout)
    assert (estimate["n"], estimate["nonresponse"]["drawn"]) == (39, 40)
    written = run("write", "fake:project", "audit/sample.parquet", "labels.csv", "--map", "Pass=1,Fail=0")
    assert written["new"] == 39
    assert project.figures["estimate"] == estimate["estimate"]
    again = run("write", "fake:project", "audit/sample.parquet", "labels.csv", "--map", "Pass=1,Fail=0")
    assert again["new"] == 0
    # Labels that are mapped to no answer are not written as feedback.
    passes = run("write", "fake:project", "audit/sample.parquet", "labels.csv", "--map", "Pass=1,Fail=")
    assert 0 < passes["labels"] == content.count(",Pass,") < 39


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("read", "project", "--output", "u.jsonl"), "the source must be a platform and a project"),
        (("read", "langfuse2:project", "--output", "u.jsonl"), "no such platform"),
        (("read", "fake:project", "--output", "u.csv"), "JSON Lines file"),
        (("read", "fake:project", "--output", "other.jsonl"), "is not a file of units"),
        (("read", "fake:project", "--output", "u.jsonl", "--since", "yesterday"), "--since is not a date"),
    ],
)
def test_mistakes(words, problem):
    with open("other.jsonl", "w", encoding="utf-8") as file:
        file.write('{"id": 1}\n')

    assert problem in str(CliRunner().invoke(app, ["platform", *words]).exception)
    with open("other.jsonl", encoding="utf-8") as file:
        assert file.read() == '{"id": 1}\n'


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), ("a", "a"), ('"a"', "a"), ('{"q": 1}', '{"q": 1}'), ({"q": "ä"}, '{"q": "ä"}'), (3, "3")],
)
def test_inputs_and_outputs_as_text(value, text):
    assert text_of(value) == text


@pytest.mark.parametrize("command", ["doctor", "plan --budget 10", "draw --budget 10 --output audit"])
def test_a_source_in_place_of_a_file_names_the_command_that_reads_it(command):
    name, *options = command.split()
    message = str(CliRunner().invoke(app, [name, "fake:project", *options]).exception)

    assert "stratal platform read fake:project --output units.jsonl" in message
