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
    assert found["quantity"] == "F1 of match"
    assert found["estimate"]["estimate"] == pytest.approx(f1.value, rel=1e-12)
    assert found["estimate"]["confidence_interval"] == pytest.approx(list(f1.confidence_interval()))
    assert sum(row["n"] for row in found["strata"]) == len(labels)
    assert "F1 of match" in stratal.findings(sample, labels)._repr_html_()


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

    files = (tmp_path / "sample.parquet", tmp_path / "labels.csv")
    done = run_command("report", *files, "--same-rows", "--output", tmp_path / "report.json")

    assert done.status == 0, done.message
    assert json.loads((tmp_path / "report.json").read_text())["quantity"] == "F1 of match"


@pytest.fixture(scope="module")
def two_models():
    """Two models' answers and the truth, which four units in five have as the better model says."""
    rng = np.random.default_rng(6)
    new = rng.choice(["a", "b", "c"], 1500)
    old = np.where(rng.random(1500) < 0.8, new, rng.choice(["a", "b", "c"], 1500))
    truth = np.where(rng.random(1500) < 0.8, new, rng.choice(["a", "b", "c"], 1500))
    population = stratal.Population.from_arrays(groups={"new": new, "old": old}, predicted="new")
    return population, truth


@pytest.mark.parametrize(
    "asked",
    ["difference:new,old", "win_rate:new,old", "accuracy", "f1:a", "recall:b", "mcc", "average:f1"],
)
def test_more_labels_are_what_the_next_round_brings(two_models, asked):
    population, truth = two_models
    sample = stratal.plan(population, 100, estimand=asked).draw(seed=3)
    labels = truth[sample.ids]
    rows = stratal.findings(sample, labels).to_dict()["more_labels"]
    low, high = stratal.estimate(sample, labels).confidence_interval()
    larger = stratal.next_round(sample, labels, additional=rows[2]["labels"] - 100)
    after = stratal.estimate(larger, truth[larger.ids]).confidence_interval()

    assert rows[0] == {"labels": 100, "half_width": pytest.approx((high - low) / 2)}
    widths = [row["half_width"] for row in rows]
    assert widths == sorted(widths, reverse=True)
    assert rows[2]["half_width"] == pytest.approx((after.high - after.low) / 2, rel=0.3)


def test_a_report_of_a_difference_is_that_of_its_estimate(two_models):
    population, truth = two_models
    sample = stratal.plan(population, 80, estimand="difference:new,old").draw(seed=3)
    found = stratal.findings(sample, truth[sample.ids]).to_dict()
    made = stratal.estimate(sample, truth[sample.ids])

    assert found["quantity"] == "difference of new, old"
    assert found["estimate"]["confidence_interval"] == pytest.approx([*made.confidence_interval()])
    assert found["estimate"]["estimator"] == made.estimator
    assert "Expected precision with more labels" in stratal.findings(sample, truth[sample.ids])._repr_html_()


def test_a_report_of_accuracy_is_that_of_a_mean(two_models):
    population, truth = two_models
    sample = stratal.plan(population, 80, estimand="accuracy").draw(seed=3)
    found = stratal.findings(sample, truth[sample.ids]).to_dict()

    assert found["quantity"] == "accuracy"
    assert found["share"] is True
    assert [row["name"] for row in found["side_by_side"]] == ["labels, unweighted", "with the design"]


def test_nothing_is_expected_where_every_unit_that_matters_is_labelled(two_models):
    population, truth = two_models
    sample = stratal.plan(population, 1500, estimand="difference:new,old").draw(seed=3)
    rows = stratal.findings(sample, truth[sample.ids]).to_dict()["more_labels"]

    assert rows == []
