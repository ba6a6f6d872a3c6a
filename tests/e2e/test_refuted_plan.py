"""Labels that refute a plan are said to by every command that meets them, and what is to be done works."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from stratal.errors import StratalWarning

from .pasted import run, write


@pytest.fixture
def opposite(tmp_path, monkeypatch):
    """Predictions with the score of the opposite, and what each unit's label is."""
    monkeypatch.chdir(tmp_path)
    score = np.random.default_rng(0).beta(3, 1, 600).round(4)
    write("p.csv", ["id", "score"], [(f"u{i}", s) for i, s in enumerate(score)])
    return {f"u{i}": int(s < 0.7) for i, s in enumerate(score)}


def filled(path, truth, name="label"):
    rows = list(csv.DictReader(Path(path).read_text().splitlines()))
    write(path, ["id", name], [(row["id"], truth[row["id"]]) for row in rows])


def test_estimate_and_another_round_say_it(opposite):
    run("draw p.csv --proxy score --budget 100 --output audit")
    filled("audit/to_label.csv", opposite)
    assert "the labels contradict the plan: outcomes fall as the proxy rises" in run(
        "estimate audit/sample.parquet audit/to_label.csv"
    )

    more = (
        "draw p.csv --extend audit/sample.parquet --labels audit/to_label.csv --additional 20 --output more"
    )
    with pytest.warns(StratalWarning, match="the labels contradict the plan"):
        run(more)


def test_a_study_says_it(opposite):
    run("draw p.csv --proxy score --budget 100 --output drawn")
    run("study new drawn --annotators ann --scale 0,1 --question Right? --output study")
    run("study export study --to csv --output items.csv")
    filled("items.csv", opposite)
    run("study import study items.csv")

    for line in ("estimate study", "study status study"):
        assert "the labels contradict the plan" in " ".join(run(line).split()), line
    with pytest.warns(StratalWarning, match="the labels contradict the plan"):
        run("study extend study --additional 20")


def test_the_remedy_ends_it(opposite):
    rows = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
    write("p.csv", ["id", "score"], [(row["id"], round(1 - float(row["score"]), 4)) for row in rows])
    run("draw p.csv --proxy score --budget 100 --output audit")
    filled("audit/to_label.csv", opposite)

    assert "contradict" not in run("estimate audit/sample.parquet audit/to_label.csv")
