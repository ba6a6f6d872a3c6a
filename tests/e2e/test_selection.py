"""`stratal select`, `plan --select` and a study of it, as they are typed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from stratal.study import open_study

from .pasted import invoke, run, write

CLASSES = np.array(["bug", "praise", "spam"])


@pytest.fixture
def tickets(tmp_path, monkeypatch):
    """Answers of four models, and what each unit's label is."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 800)
    models = [np.where(rng.random(800) < a, truth, (truth + 1) % 3) for a in (0.95, 0.9, 0.8, 0.6)]
    header = ["id", "text", *(f"answer_{name}" for name in "abcd")]
    rows = ((f"u{i}", f"text {i}", *(CLASSES[m[i]] for m in models)) for i in range(800))
    write("p.csv", header, rows)
    return {f"u{i}": CLASSES[truth[i]] for i in range(800)}


def fill(path, truth):
    rows = list(csv.DictReader(Path(path).read_text().splitlines()))
    write(path, ["id", "label"], [(row["id"], truth[row["id"]]) for row in rows])


def test_rounds_until_the_winner_is_known(tickets):
    assert "The best of 4 models within 0.02" in run(
        "plan p.csv --answers answer_* --select --indifference 0.02"
    )
    run("select p.csv --answers answer_* --show text --indifference 0.02 --output round1")
    labels = ""
    for number in range(1, 12):
        fill(f"round{number}/to_label.csv", tickets)
        labels += f" --labels round{number}/to_label.csv"
        found = json.loads(run(f"select --extend round{number}/ {labels} --output round{number + 1}/ --json"))
        if found["done"]:
            break
    assert found["winner"] == "answer_a"
    assert not Path(f"round{number + 1}").exists()
    assert "answer_a wins" in run(f"select --extend round{number} {labels}")
    assert found["labels"] < 500


def test_a_plan_says_how_to_select_with_the_same_options(tickets):
    said = run("plan p.csv --answers answer_* --select --id id --confidence-level .9 --budget 200")
    line = said.splitlines()[-1].removeprefix("Next: stratal ")
    assert all(words in line for words in ("--id id", "--confidence-level 0.9", "--budget 200"))
    assert "50 units to label" in run(line.replace("'", ""))


def test_labels_of_an_earlier_round_that_were_left_out_are_counted(tickets):
    run("select p.csv --answers answer_* --indifference 0.001 --output round1")
    fill("round1/to_label.csv", tickets)
    run("select --extend round1 --labels round1/to_label.csv --output round2")
    fill("round2/to_label.csv", tickets)
    said = run("select --extend round2 --labels round2/to_label.csv")
    assert "50 drawn units without a label count against every claim" in said
    assert "without a label" not in run("select --extend round1 --labels round1/to_label.csv")


def test_a_study_goes_on_until_the_winner_is_known(tickets):
    run("select p.csv --answers answer_* --show text --indifference 0.05 --output round1")
    run("study new round1 --output st --question Topic? --annotators ada --classes bug,praise,spam")
    for _ in range(9):
        with open_study(Path("st")) as study:
            while (item := study.next_item("ada")) is not None:
                study.submit("ada", item.id, str(tickets[item.id]))
        assert "study extend" in run("study status st")
        found = json.loads(run("study extend st --json"))
        if found["selection"]["done"]:
            break
    assert found["selection"]["winner"] == "answer_a"
    assert found["new"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("select p.csv --answers answer_*", "--output is missing"),
        ("select p.csv --output r", "answers is missing"),
        ("select p.csv --answers answer_x* --output r", "no column matches"),
        ("select p.csv --answers answer_a --output r", "too few or too many models"),
        ("select p.csv --answers answer_* --indifference 2 --output r", "indifference is out of range"),
        ("select p.csv --answers answer_* --labels p.csv --output r", "--labels"),
        ("select --extend r --output s", "requires the existing labels"),
        ("plan p.csv --select --budget 5", "--select"),
        ("plan p.csv --answers answer_* --select --half-width .1", "--half-width without --select"),
    ],
)
def test_mistakes(tickets, words, message):
    done = invoke(words)
    assert done.exit_code != 0
    assert message in str(done.output) + str(done.exception)
    assert not Path("r").exists()


def test_a_selection_goes_on_before_any_label_and_says_what_agreement_shows(tickets):
    run("select p.csv --answers answer_* --output round1")

    assert "leads, according to agreement alone" in run("select --extend round1 --labels round1/to_label.csv")
