"""Intervals of a metric on a sample that was planned for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.estimation.estimands import F1, NegativePredictiveValue, Precision, Recall
from stratal.intervals.proportion import clopper_pearson


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(2)
    truth = rng.random(5000) < 0.03
    score = np.where(truth, rng.beta(5, 2, 5000), rng.beta(1, 20, 5000))
    population = stratal.Population.from_arrays(
        proxy={"score": score},
        groups={"answer": np.where(score > 0.5, "match", "other")},
        predicted="answer",
    )
    return population, np.where(truth, "match", "other")


def sample_of(pool, estimand, budget=200):
    population, truth = pool
    sample = stratal.plan(population, budget, estimand=estimand).draw(seed=3)
    return sample, {int(unit): str(truth[unit]) for unit in sample.ids}


@pytest.mark.parametrize("kind", [F1, Recall])
def test_the_interval_is_narrower_than_that_of_a_sample_for_anything(pool, kind):
    estimand = kind("match", probability="score")
    sample, labels = sample_of(pool, estimand)
    planned = stratal.estimate(sample, labels)
    unplanned = stratal.estimate(replace(sample, estimand=None), labels, estimand=estimand)

    assert planned.value == unplanned.value
    assert planned.standard_error == unplanned.standard_error
    assert planned.confidence_interval().width < unplanned.confidence_interval().width
    assert planned.confidence_interval().width > 2 * 1.9 * planned.standard_error


@pytest.mark.parametrize("kind", [F1, Recall])
@pytest.mark.parametrize("target", ["population", "superpopulation"])
def test_the_table_of_metrics_has_the_interval_of_the_planned_estimand(pool, kind, target):
    sample, labels = sample_of(pool, kind("match", probability="score"))
    planned = stratal.estimate(sample, labels, target=target)
    table = stratal.classification_metrics(sample, labels, metrics=["f1", "recall"], target=target)
    row = table.row(metric=kind.kind, **{"class": "match"})

    assert row["confidence_interval"] == list(planned.confidence_interval())
    other = "recall" if kind is F1 else "f1"
    asked = stratal.estimate(sample, labels, estimand=f"{other}:match", target=target)
    found = table.row(metric=other, **{"class": "match"})
    assert found["confidence_interval"] == list(asked.confidence_interval())


def test_all_labels_are_counted_beside_those_of_the_denominator(pool):
    sample, labels = sample_of(pool, F1("match", probability="score"))
    found = stratal.estimate(sample, labels)

    assert found.n < found.labels == found.to_dict()["labels"] == 200
    assert f"200 labels, {found.n} of them in its denominator" in str(found)


def test_it_is_never_narrower_than_the_labels_own_variance(pool):
    estimand = F1("match", probability="score")
    for seed in range(8):
        population, truth = pool
        sample = stratal.plan(population, 150, estimand=estimand).draw(seed=seed)
        found = stratal.estimate(sample, {int(u): str(truth[u]) for u in sample.ids})
        index = found.value / (2 - found.value)
        if found.standard_error == 0:
            continue
        most = index * (1 - index) / (found.standard_error * 2 / (2 - found.value) ** 2) ** 2
        assert found.trials <= most * (1 + 1e-9)


def test_labels_of_every_unit_leave_no_width(pool):
    estimand = F1("match", probability="score")
    sample, labels = sample_of(pool, estimand, 5000)

    low, high = stratal.estimate(sample, labels).confidence_interval()

    assert low == pytest.approx(high)


@pytest.mark.parametrize("kind", [Precision, NegativePredictiveValue])
def test_where_other_answers_need_no_label_the_interval_is_a_proportions(pool, kind):
    estimand = kind("match", probability="score")
    sample, labels = sample_of(pool, estimand, 60)
    found = stratal.estimate(sample, labels)
    low, high = found.confidence_interval()
    least, most = clopper_pearson(found.value, 60)

    assert sample.design.strata.is_known.sum() == 1
    assert high - low < 1.2 * (most - least)


@pytest.mark.parametrize("kind", [F1, Recall])
def test_parts_of_a_list_have_the_interval_of_their_own_plan(pool, kind, tmp_path):
    """What the plan expects of each is in the sample's file; a file of before has it not, and is read."""
    own = kind("match", probability="score")
    sample, labels = sample_of(pool, [F1("match", probability="score"), Recall("match", probability="score")])
    again = stratal.Sample.read(sample.write(tmp_path / "sample.parquet"))
    before = replace(sample, estimand={key: sample.estimand[key] for key in ("kind", "estimands")})
    width, without = (
        stratal.estimate(entry, labels, estimand=own).confidence_interval().width for entry in (again, before)
    )
    rows = {row["estimand"]: row for row in stratal.estimate(again, labels).rows}
    low, high = rows[own.text]["confidence_interval"]

    assert len(again.estimand["planned"][own.text]) == again.design.strata.n_strata
    assert again.estimand == sample.estimand
    assert high - low == pytest.approx(width)
    assert width < 0.8 * without
    assert width > 2 * 1.9 * stratal.estimate(again, labels, estimand=own).standard_error


def test_a_list_of_very_many_numbers_keeps_its_file_small(pool, monkeypatch):
    monkeypatch.setattr("stratal.planning.plan._MOST_KEPT", 3)
    sample, labels = sample_of(pool, [F1("match", probability="score"), Recall("match", probability="score")])

    assert "planned" not in sample.estimand
    assert len(stratal.estimate(sample, labels).rows) == 2
