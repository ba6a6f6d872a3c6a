"""Reports with an accepted set: of a planned sample, next to an estimate, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from stratal.report.thresholds import threshold_sections

N = 3000


@pytest.fixture(scope="module")
def units():
    rng = np.random.default_rng(8)
    confidence = np.clip(rng.beta(5, 1, N), 0.01, 0.999).round(4)
    return confidence, (rng.random(N) < confidence**0.7).astype(int)


def write_rows(path, header, rows):
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])


@pytest.fixture
def planned(units, tmp_path, monkeypatch, run_command):
    """A sample of two rounds for a threshold, with the labels of both, in the current directory."""
    monkeypatch.chdir(tmp_path)
    confidence, right = units
    write_rows("all.csv", ["id", "confidence"], zip(range(N), confidence, strict=True))
    goal = ("--proxy", "confidence", "--budget", "300", "--for", "threshold:error<=.1")
    run_command("draw", "all.csv", *goal, "--seed", "3", "--output", "one")
    label("one/to_label.csv", "one.csv", right)
    more = ("--labels", "one.csv", "--additional", "225", "--output", "two")
    run_command("draw", "--extend", "one/sample.parquet", *more)
    label("two/to_label.csv", "two.csv", right)
    return ("two", "one.csv", "two.csv")


def label(source, target, right):
    with open(source) as stream:
        ids = [int(row["id"]) for row in csv.DictReader(stream)]
    write_rows(target, ["id", "label"], [[unit, right[unit]] for unit in ids])


def test_the_report_of_a_planned_sample_is_that_of_its_accepted_set(planned, run_command):
    answer = run_command("threshold", *planned, "--require", "error<=.1", "--json")
    done = run_command("report", *planned, "--output", "report.html")
    page = Path("report.html").read_text()

    assert done.status == answer.status == 0
    assert done.stdout.startswith("error<=0.1: PASS. Accept confidence ≥ ")
    assert page.count("<polygon") == 2
    assert "share of right answers" in page
    assert "mean confidence" in page
    assert "step-down max-t" in page
    assert "stratal report two one.csv two.csv" in page
    run_command("report", *planned, "--output", "report.json")
    content = json.loads(Path("report.json").read_text())
    assert content["threshold"]["chosen"] == json.loads(answer.stdout)["chosen"]
    assert {row["metric"] for row in content["reliability"]} >= {"brier", "outcome"}


def test_a_report_can_have_an_estimate_and_an_accepted_set(planned, run_command):
    done = run_command("report", *planned, "--estimand", "mean;threshold:error<=.1", "--output", "report.md")
    text = Path("report.md").read_text()
    headings = [line for line in text.splitlines() if line.startswith("## ")]

    assert done.status == 0
    assert headings[:4] == ["## Answer", "## Accepted set", "## By threshold", "## Candidate sets"]
    assert "95% interval" in done.stdout.splitlines()[0]
    assert any(line.startswith("error<=0.1: PASS") for line in done.stdout.splitlines()[:3])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--metric", "brier"], "--metric would have no effect"),
        (["--estimand", "threshold:error<=.1;threshold:error<=.2"], "one accepted set"),
    ],
)
def test_options_without_effect_on_an_accepted_set_are_refused(planned, run_command, options, problem):
    done = run_command("report", *planned, *options, "--output", "report.html")

    assert problem in done.message
    assert not Path("report.html").exists()


def test_a_recall_without_labels_in_some_strata_says_which_labels_it_needs(planned, run_command, units):
    confidence, right = units
    write_rows("all.csv", ["id", "score"], zip(range(N), confidence**9, strict=True))
    options = ("--proxy", "score", "--predicts", "score=class:1", "--budget", "100", "--seed", "3")
    run_command("draw", "all.csv", *options, "--estimand", "precision@threshold=.8", "--output", "top")
    label("top/to_label.csv", "top.csv", right)
    done = run_command("threshold", "top", "top.csv", "--require", "recall>=.9")

    assert done.status == 5
    assert "units in strata without a label count against recall:1>=0.9" in done.stdout


def point(threshold, share, value):
    interval = [value - 0.1, value + 0.1]
    curve = {"estimate": value, "pointwise": interval, "simultaneous": interval}
    return {"threshold": threshold, "share": share, "metrics": {"precision": curve}}


def test_small_shares_are_told_apart_and_thresholds_stay_in_the_drawing():
    points = [point(0.9, 0.00021, 0.8), point(0.5, 0.00024, 0.7)]
    row = {"group": None, "thresholds": [0.9], "items": 21, "share": 0.00021, "labels": 30}
    chosen = {**row, "estimate": 0.8, "limit": 0.7, "accepted": True}
    result = {
        **{"requirement": "precision>=0.7", "metric": "precision", "required": 0.7, "by": None},
        **{"scores": ["score"], "target": "population", "confidence_level": 0.95, "labels": 60},
        **{"verdict": "PASS", "chosen": [chosen], "candidates": [chosen], "notes": []},
        "curve": {"confidence_level": 0.95, "best_f1": None, "points": points},
    }
    answer, curve, _ = threshold_sections(result)
    (drawing,) = curve.drawings

    assert "0.021% of all" in answer.lines[0]
    assert [row[1] for row in curve.tables[0].rows] == ["0.021%", "0.024%"]
    assert drawing.svg().count('class="diagonal"') == 2
    assert "score ≥ 0.9: 80.0%" in drawing.description
