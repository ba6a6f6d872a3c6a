"""Langfuse with a store instead of the server: pages, windows, interruptions, answers, scores, secrets."""

from __future__ import annotations

import csv
import json
import sys

import pytest
from click.testing import CliRunner
from tests.tools.langfuse_store import Store
from tests.unit.tables.platforms.fake_langfuse import fake_modules

from stratal.cli.application import app

READ = ("read", "langfuse:support", "--output", "units.jsonl")
SAMPLE = "audit/sample.parquet"
QUEUE = ("queue", "langfuse:support", SAMPLE, "--choices", "Pass,Fail")
LABELS = ("labels", "langfuse:support", SAMPLE, "--output", "labels.csv")
WRITE = ("write", "langfuse:support", SAMPLE, "labels.csv", "--map", "Pass=1,Fail=0")
SECRET = "sk-secret"
N_TRACES = 250


class InterruptedStore(Store):
    """A store that an interruption stops after some requests."""

    requests_left = None

    def before_request(self):
        if self.requests_left is not None:
            self.requests_left -= 1
            if self.requests_left < 0:
                raise KeyboardInterrupt


@pytest.fixture
def store(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-public")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)
    store = InterruptedStore("pk-public", SECRET)
    for name, module in fake_modules(store).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "stratal.tables.platforms.langfuse", raising=False)
    store.add_traces(N_TRACES)
    judge = {"name": "judge", "dataType": "NUMERIC"}
    for number in range(N_TRACES):
        trace_id = f"{number + 1:032x}"
        root = {} if number % 2 else {"observationId": f"{number + 1:016x}"}
        store.create_scores([judge | {"value": number / N_TRACES, "traceId": trace_id} | root])
    # None of them is a score of a judge for the trace.
    child = {"observationId": f"{100_001:016x}", "traceId": f"{1:032x}"}
    person = {"source": "ANNOTATION", "configId": "c", "dataType": "CATEGORICAL", "traceId": f"{1:032x}"}
    store.create_scores([judge | {"value": 9.0} | child, person | {"name": "person", "value": "Pass"}])
    return store


def run(*words):
    done = CliRunner().invoke(app, ["platform", *words, "--json"])
    assert done.exit_code == 0, done.exception
    return json.loads(done.stdout)


def interrupted(store, requests, *words):
    store.requests_left = requests
    assert CliRunner().invoke(app, ["platform", *words]).exit_code == 130
    store.requests_left = None


def units():
    with open("units.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_an_interrupted_read_is_continued_and_the_order_of_pages_does_not_matter(store):
    interrupted(store, 8, *READ)
    saved = len(units())
    assert 0 < saved < N_TRACES

    assert run(*READ)["new"] == N_TRACES - saved
    assert run(*READ)["new"] == 0
    rows = units()
    assert [row["id"] for row in rows] == [f"{number + 1:032x}" for number in range(N_TRACES)]
    assert [row["judge"] for row in rows] == [number / N_TRACES for number in range(N_TRACES)]
    assert rows[2] == {
        "id": f"{3:032x}",
        "time": 1_772_409_601_123,
        "input": "question 2",
        "answer": '{"text": "answer 2"}',
        "judge": 2 / N_TRACES,
    }


def test_a_window_of_time_and_a_trace_that_has_not_ended(store):
    store.observations[20]["endTime"] = None
    window = ("--since", "2026-03-02T00:00:05", "--until", "2026-03-02T00:00:15")

    assert run(*READ, *window)["units"] == 19


def draw():
    run(*READ)
    words = "--id id --proxy judge --show input,answer --budget 40 --seed 1 --output audit"
    assert CliRunner().invoke(app, ["draw", "units.jsonl", *words.split()]).exit_code == 0


def answer_items(store):
    """Answer as a person: every tenth item is completed without a score, every fourth fails."""
    [config] = store.configs
    for number, item in enumerate(store.items):
        item["status"] = "COMPLETED"
        if number % 10:
            score = {"name": config["name"], "configId": config["id"], "traceId": item["objectId"]}
            value = {"value": "Pass" if number % 4 else "Fail", "dataType": "CATEGORICAL"}
            store.create_scores([score | value | {"source": "ANNOTATION", "comment": "clear"}])
    store.items[-1]["status"] = "PENDING"


@pytest.mark.filterwarnings("ignore:5 of 40 drawn units have no label")
def test_traces_are_queued_once_and_answers_and_results_are_exchanged_once(store):
    draw()
    # After the configuration, after the queue, and after some items.
    for requests in (4, 5, 12):
        interrupted(store, requests, *QUEUE)
    run(*QUEUE)
    assert run(*QUEUE)["new"] == 0
    [config] = store.configs
    [queue] = store.queues
    assert [category["label"] for category in config["categories"]] == ["Pass", "Fail"]
    assert queue["scoreConfigIds"] == [config["id"]]
    with open("audit/to_label.csv", encoding="utf-8", newline="") as file:
        assert [item["objectId"] for item in store.items] == [row["id"] for row in csv.DictReader(file)]

    answer_items(store)
    labels = run(*LABELS)
    assert (labels["labels"], labels["skipped"]) == (35, 4)
    with open("labels.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["label"], row["annotator"], row["note"]) for row in rows if row["label"]} == {
        ("Pass", "ann", "clear"),
        ("Fail", "ann", "clear"),
    }
    assert run(*WRITE)["new"] == 0
    figures = {
        score["name"]: score["value"]
        for score in store.scores.values()
        if score["subject"] == {"kind": "session", "id": queue["name"]}
    }
    estimate = CliRunner().invoke(app, ["estimate", SAMPLE, "labels.csv", "--map", "Pass=1,Fail=0", "--json"])
    assert figures["estimate"] == json.loads(estimate.stdout)["estimate"]
    n_scores = len(store.scores)
    run(*WRITE)
    assert len(store.scores) == n_scores


def test_scores_that_cannot_be_read_yet_are_not_written_twice(store):
    draw()
    with open("audit/to_label.csv", encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    lines = [f"{unit},{'Fail' if number % 4 else 'Pass'}\n" for number, unit in enumerate(ids)]
    with open("labels.csv", "w", encoding="utf-8") as file:
        file.writelines(["id,label\n", *lines])
    n_scores = len(store.scores)
    store.has_delay = True
    assert [run(*WRITE)["new"] for _ in range(2)] == [40, 40]
    store.hidden_scores.clear()
    store.has_delay = False
    assert len(store.scores) == n_scores + 45  # with five figures

    # A changed label replaces the previous one, and no label is a score of a judge.
    with open("labels.csv", "w", encoding="utf-8") as file:
        file.writelines(["id,label\n", lines[0].replace("Pass", "Fail"), *lines[1:]])
    assert run(*WRITE)["new"] == 1
    assert len(store.scores) == n_scores + 45
    run("read", "langfuse:support", "--output", "again.jsonl")
    with open("again.jsonl", encoding="utf-8") as file:
        assert {name for line in file for name in json.loads(line)} == set(units()[0])


def test_a_rejected_score_is_an_error(store):
    draw()
    create = store.create_scores
    store.create_scores = lambda body: create([body[0] | {"value": 1}, *body[1:]])
    with open("audit/to_label.csv", encoding="utf-8", newline="") as file:
        lines = [f"{row['id']},Pass\n" for row in csv.DictReader(file)]
    with open("labels.csv", "w", encoding="utf-8") as file:
        file.writelines(["id,label\n", *lines])

    assert "Langfuse rejected 1 score" in str(CliRunner().invoke(app, ["platform", *WRITE]).exception)


@pytest.mark.parametrize(
    ("words", "key", "problem"),
    [
        (("read", "langfuse:other", "--output", "u.jsonl"), SECRET, "unknown project 'other'"),
        (READ, "sk-wrong", "the server of langfuse returned an error (given: ApiError)"),
        (LABELS, SECRET, "unknown queue 'stratal-"),
    ],
)
def test_mistakes_are_errors_without_secrets(store, monkeypatch, words, key, problem):
    draw()
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", key)

    message = str(CliRunner().invoke(app, ["platform", *words]).exception)

    assert problem in message
    assert key not in message
