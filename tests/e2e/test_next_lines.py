"""Every line after "Next:" works when it is pasted, from the first look at a file to the estimate."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from .pasted import invoke, next_line, run, write

NAMES = ("p.csv", "my predictions.csv")


def fill(folder, truth):
    """Do what the annotators do: fill in the column `label` of the table that was handed over."""
    path = Path(folder) / "to_label.csv"
    rows = list(csv.DictReader(path.read_text().splitlines()))
    write(path, list(rows[0]), [[*list(row.values())[:-1], truth[row["id"]]] for row in rows])


@pytest.fixture
def truth(tmp_path, monkeypatch):
    """Predictions under two names, and what each unit's label would be."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    score = generator.beta(3, 1, 600).round(4)
    answers = generator.choice(["cat", "dog"], 600)
    rows = [(f"u{i}", s, a, f"picture {i}") for i, (s, a) in enumerate(zip(score, answers, strict=True))]
    for name in NAMES:
        write(name, ["id", "score", "answer", "picture"], rows)
    right = generator.random(600) < score
    return {
        f"u{i}": (str(a) if r else {"cat": "dog", "dog": "cat"}[a], int(r))
        for i, (a, r) in enumerate(zip(answers, right, strict=True))
    }


@pytest.mark.parametrize("name", NAMES)
def test_from_the_first_look_to_the_estimate(truth, name):
    drawing = next_line(run(next_line(run(f"doctor {shlex.quote(name)}"))))
    estimating = next_line(run(drawing))
    fill("audit", {unit: right for unit, (_, right) in truth.items()})

    found = json.loads(run(f"{estimating} --json"))

    assert found["n"] == 150
    assert found["confidence_interval"][0] < np.mean([right for _, right in truth.values()])


def test_classes_are_compared_by_the_line_that_is_pasted(truth):
    drawing = "draw p.csv --proxy score --predicted answer --show picture --budget 60 --output audit"
    estimating = next_line(run(drawing))
    fill("audit", {unit: label for unit, (label, _) in truth.items()})
    by_class = json.loads(run(f"{estimating} --json"))
    fill("audit", {unit: right for unit, (_, right) in truth.items()})
    by_outcome = json.loads(run(f"{estimating} --json"))

    assert by_class["estimate"] == by_outcome["estimate"]


def test_every_option_of_a_plan_goes_on_to_the_draw(truth):
    plan = "plan p.csv --id id --proxy score --by answer --budget 80 --allocation proportional --minimum 3"
    drawing = next_line(run(plan))
    drawn = json.loads(run(f"{drawing} --json"))
    planned = json.loads(run(f"{plan} --json"))

    assert drawn["n"] == planned["budget"] == 80
    assert drawn["design"] == planned["recommended"]["design"]


def test_a_folder_that_is_taken_is_not_named_again(truth):
    plan = "plan p.csv --proxy score --budget 40"
    run(next_line(run(plan)))
    second = next_line(run(plan))

    assert second.endswith("--output audit-2/")
    run(second)


def test_the_demonstrations_line_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    run(next_line(run(next_line(run("demo --output 'my demo'")))))


def test_a_file_smaller_than_the_usual_budget_and_without_id_or_proxy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("small.csv", ["text"], [("some words",)] * 20)

    run(next_line(run("doctor small.csv")))


def test_every_line_of_a_study_works_from_the_first_item_to_the_report(truth, monkeypatch):
    served = []

    def serve(opened, place, ready, **_):
        served.append(opened.folder.name)
        ready("here", {"ann": "link"}, "owner")

    monkeypatch.setattr("stratal.study.web.server.serve", serve)
    run("draw p.csv --proxy score --show picture --budget 40 --output drawn")
    making = "study new drawn --question Right? --choices 1,0"
    labelling = next_line(run(f"{making} --annotators ann --output 'my study'"))
    assert "link" in run(labelling)
    for line in ("estimate 'my study'", "report 'my study' --output r.html"):
        error = str(invoke(line).exception)
        assert error.endswith(f"stratal {labelling}.")
    assert next_line(run("study status 'my study'")) == labelling

    for round_ in (1, 2):
        trying = next_line(run(f"study export 'my study' --to csv --output 'items {round_}.csv'"))
        rows = list(csv.DictReader(Path(f"items {round_}.csv").read_text().splitlines()))
        write(
            f"items {round_}.csv",
            ["item_id", "label"],
            [(r["item_id"], truth[r["item_id"]][1]) for r in rows],
        )
        looking = next_line(run(next_line(run(trying))))
        estimating = next_line(run(looking))
        reporting = next_line(run(estimating))
        run(reporting)
        assert json.loads(run(f"{estimating} --json"))["n"] == 30 + 10 * round_
        assert next_line(run(next_line(run("study extend 'my study' --additional 10")))) == labelling

    assert served == ["my study"]
    assert Path("report.html").stat().st_size > 1000
