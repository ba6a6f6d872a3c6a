"""Reports of samples that were drawn for an estimand other than the mean."""

from __future__ import annotations

import json

import numpy as np
import pytest

import stratal
from stratal import estimands

ANSWERS = np.tile(["match", *["other"] * 9], 40)


@pytest.fixture
def audited():
    """A sample drawn for F1, and the true classes of its units."""
    score = np.where(ANSWERS == "match", 0.8, 0.05)
    population = stratal.Population.from_arrays(
        proxy={"score": score}, groups={"answer": ANSWERS}, predicted="answer"
    )
    f1 = estimands.F1("match", probability="score")
    sample = stratal.plan(population, budget=80, estimand=f1).draw(seed=3)
    truth = np.where(np.arange(len(ANSWERS)) % 7 == 0, "other", ANSWERS)
    return sample, {str(unit): str(truth[int(unit)]) for unit in sample.ids}


def test_a_report_says_the_estimand_that_the_sample_was_drawn_for(audited):
    sample, labels = audited

    found = stratal.findings(sample, labels).to_dict()

    f1 = stratal.estimate(sample, labels)
    assert found["quantity"] == "f1 of match"
    assert found["estimate"]["estimate"] == pytest.approx(f1.value, rel=1e-12)
    assert found["estimate"]["confidence_interval"] == pytest.approx(list(f1.confidence_interval()))
    assert sum(row["n"] for row in found["strata"]) == len(labels)
    assert "f1 of match" in stratal.findings(sample, labels)._repr_html_().lower()


def test_several_estimands_are_a_table_of_the_report(audited, tmp_path):
    sample, labels = audited

    report = stratal.findings(sample, labels, estimand=[estimands.F1("match"), estimands.Recall("match")])

    assert [row["estimand"] for row in report.to_dict()["estimate"]["estimands"]] == [
        "f1:match",
        "recall:match",
    ]
    text = report.write(tmp_path / "report.md").read_text()
    assert "recall:match" in text
    assert "mean outcome" not in text, "a column without any entry is left out"


def test_the_command_reports_an_estimand(audited, tmp_path, run_command):
    sample, labels = audited
    sample.write(tmp_path / "sample.parquet")
    rows = "\n".join(f"{unit},{label}" for unit, label in labels.items())
    (tmp_path / "labels.csv").write_text(f"id,label\n{rows}\n")

    done = run_command(
        "report", tmp_path / "sample.parquet", tmp_path / "labels.csv", "--output", tmp_path / "report.json"
    )

    assert done.status == 0, done.message
    assert json.loads((tmp_path / "report.json").read_text())["quantity"] == "f1 of match"
