"""Metrics at thresholds of a score: equal to those of answers, several on one sample, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimation.estimand import Estimand, as_estimand
from stratal.testing import assert_requirement

N = 3000


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    toxic = rng.random(N) < 0.1
    score = 1 / (1 + np.exp(-(np.log(0.1 / 0.9) + 2.5 * (rng.normal(0, 1, N) + 2.5 * toxic) - 2.5**2 / 2)))
    answer = np.where(score >= 0.8, "toxic", "not toxic")
    population = stratal.Population.from_arrays(
        proxy={"score": score}, predicts="class:toxic", groups={"answer": answer}, ids=np.arange(N)
    )
    return population, np.where(toxic, "toxic", "fine"), score


def labels_of(data, sample):
    return {unit: data[1][unit] for unit in sample.ids.tolist()}


@pytest.mark.parametrize("metric", ["precision", "recall", "f1", "specificity"])
def test_a_metric_at_a_threshold_is_that_of_the_answers_which_it_gives(data, metric):
    sample = stratal.designs.SimpleRandom(budget=400).draw(data[0], seed=2)
    labels = labels_of(data, sample)
    at = stratal.estimate(sample, labels, estimand=f"{metric}@threshold=.8")
    named = stratal.estimate(sample, labels, estimand=f"{metric}:toxic,predicted=answer")

    assert at.value == pytest.approx(named.value)
    assert at.standard_error == pytest.approx(named.standard_error)


def test_a_plan_labels_only_what_the_precision_needs(data):
    sample = stratal.plan(data[0], 150, estimand="precision@threshold=.5,.8").draw(seed=2)
    found: Any = stratal.estimate(sample, labels_of(data, sample))
    true = [np.mean(data[1][data[2] >= cut] == "toxic") for cut in (0.5, 0.8)]

    assert sample.proxies[:, 0].min() >= 0.5
    assert [row.label["estimand"] for row in found] == [
        "precision@threshold=0.5",
        "precision@threshold=0.8",
    ]
    for row, value in zip(found, true, strict=True):
        low, high = row.confidence_interval(0.999)
        assert low <= value <= high
        assert high - low < 0.5


def test_a_declared_probability_of_the_class_plans_where_the_answers_are_known_too(data):
    population = stratal.Population.from_arrays(
        proxy={"score": data[2]},
        predicts="class:toxic",
        groups={"answer": np.where(data[2] >= 0.8, "toxic", "fine")},
        predicted="answer",
        ids=np.arange(N),
    )

    sample = stratal.plan(population, 150, estimand="precision@threshold=.8,positive=toxic").draw(seed=2)

    assert sample.proxies[:, 0].min() >= 0.8


def test_every_estimand_of_a_request_shares_the_labels(data):
    sample = stratal.plan(data[0], 300, estimand="precision@threshold=.8;recall@threshold=.8").draw(seed=2)
    both: Any = stratal.estimate(sample, labels_of(data, sample))
    precision, recall = both
    true = np.sum((data[2] >= 0.8) & (data[1] == "toxic"))

    assert abs(recall.value - true / np.sum(data[1] == "toxic")) < 4 * recall.standard_error
    assert 0 <= precision.confidence_interval().low <= precision.value


def test_texts_and_records_are_read_again():
    several = as_estimand("precision@threshold=.5,.8")
    single = Estimand.parse_text("recall@threshold=.5,positive=toxic,score=risk")

    assert several.text == "precision@threshold=0.5;precision@threshold=0.8"
    assert Estimand.from_dict(several.to_dict()) == several
    assert Estimand.parse_text(single.text) == single
    assert single.proxy_names == ("risk",)


@pytest.mark.parametrize(
    "text", ["precision@threshold", "precision@threshold=x", "precision@threshold=.5,a=b"]
)
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match="unsupported metric at a threshold"):
        Estimand.parse_text(text)


def test_a_score_of_right_answers_is_no_probability_of_the_class(data):
    population = stratal.Population.from_arrays(proxy={"score": data[2]}, predicts="right")
    with pytest.raises(InputError, match="probability of the class"):
        stratal.plan(population, 100, estimand="precision@threshold=.5,positive=toxic")


def test_a_threshold_that_no_unit_reaches_cannot_be_planned_for(data):
    with pytest.raises(InputError, match="no forecast is possible"):
        stratal.plan(data[0], 100, estimand="precision@threshold=1.5")


def test_one_estimate_has_its_name_and_meets_requirements_however_the_threshold_is_written(data):
    sample = stratal.designs.SimpleRandom(budget=400).draw(data[0], seed=2)
    estimate = stratal.estimate(sample, labels_of(data, sample), estimand="precision@threshold=.8")

    assert str(estimate).startswith("Precision at threshold 0.8 ")
    for written in ("precision@threshold=.8>=.1", "precision@threshold=0.80>=.1"):
        assert_requirement(estimate, written)


@pytest.mark.parametrize("text", ["precision@threshold=.5", "precision@threshold=.5,.8"])
def test_messages_have_no_internal_names(data, text):
    sample = stratal.designs.SimpleRandom(budget=100).draw(data[0], seed=2)
    labels = labels_of(data, sample)

    with pytest.raises(InputError, match=r"'precision@threshold=0.5.* takes no estimator="):
        stratal.estimate(sample, labels, estimand=text, estimator="ppi++")
    with pytest.raises(InputError) as refusal:
        stratal.estimate(sample, labels, estimand=text, by="language")
    assert "at 0.5" not in str(refusal.value)
    assert "'list'" not in str(refusal.value)
