"""Rounds of any estimand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import BudgetError, InputError
from stratal.estimands import F1, Difference
from stratal.planning.interim_analysis import InterimAnalysis


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(1)
    truth = rng.random(8000) < 0.02
    score = np.where(truth, rng.beta(4, 2, 8000), rng.beta(1, 20, 8000))
    answer = np.where(score > 0.5, "match", "other")
    older = np.where(score + rng.normal(0, 0.3, 8000) > 0.5, "match", "other")
    population = stratal.Population.from_arrays(
        proxy={"score": score}, groups={"answer": answer, "older": older}, predicted="answer"
    )
    return population, np.where(truth, "match", "other")


def labels_of(sample, truth):
    return {int(unit): str(truth[unit]) for unit in sample.ids}


def test_a_second_round_goes_where_the_class_was_found(pool):
    population, truth = pool
    estimand = F1("match", probability="score")
    plan = stratal.plan(population, 100, estimand=estimand)
    pilot = plan.draw(seed=4)
    found = InterimAnalysis(pilot, labels_of(pilot, truth), 0.95, {}).deviations[0]
    hits = np.bincount(pilot.stratum, truth[pilot.ids] == "match", minlength=plan.strata.n_strata)
    planned = plan.strata.standard_deviations
    relative = (found / found.mean()) / (planned / planned.mean())
    other = np.array([name.startswith("other") for name in plan.strata.names])

    assert np.all(found > 0)
    assert relative[other & (hits > 0)].mean() > relative[other & (hits == 0)].mean()


def test_strata_in_which_the_pilot_saw_no_match_do_not_starve(pool):
    population, truth = pool
    plan = stratal.plan(population, 100, estimand="f1:match,probability=score")
    pilot = plan.draw(seed=4)
    none = dict.fromkeys(labels_of(pilot, truth), "other")

    larger = stratal.next_round(pilot, none, additional=400)

    assert larger.size == 500
    assert larger.question.estimand == pilot.question.estimand
    assert np.all(larger.n_h[plan.strata.sizes > 200] > pilot.n_h[plan.strata.sizes > 200])


def test_rounds_of_a_difference_stay_where_the_answers_differ(pool, tmp_path):
    population, truth = pool
    plan = stratal.plan(population, 20, estimand=Difference(("answer", "older")))
    differ = int(plan.strata.sizes[~plan.strata.is_known].sum())
    pilot = stratal.Sample.read(plan.draw(seed=4).write(tmp_path / "pilot.parquet"))

    larger = stratal.next_round(pilot, labels_of(pilot, truth), additional=differ - 20, population=population)

    assert np.all(larger.groups["answer"] != larger.groups["older"])
    assert stratal.estimate(larger, labels_of(larger, truth)).standard_error == 0.0
    with pytest.raises(BudgetError, match="the other units do not affect the result"):
        stratal.next_round(larger, labels_of(larger, truth), additional=1, population=population)


def test_either_a_number_or_a_half_width_is_asked_for(pool):
    population, truth = pool
    pilot = stratal.plan(population, 60, estimand="f1:match,probability=score").draw(seed=4)
    for given in ({}, {"additional": 10, "half_width": 0.05}):
        with pytest.raises(InputError, match="one of additional, half_width and design"):
            stratal.next_round(pilot, labels_of(pilot, truth), **given)


@pytest.mark.parametrize(
    "text",
    [
        "mcc",
        "average:f1",
        "mean@older:match,predicted=answer",
        "f1:match,probability=score;recall:match,probability=score",
    ],
)
def test_every_estimand_has_a_next_round(pool, text):
    population, truth = pool
    plan = stratal.plan(population, 120, estimand=text)
    pilot = plan.draw(seed=4)
    labels = labels_of(pilot, truth)
    found = InterimAnalysis(pilot, labels, 0.95, {}).deviations

    assert np.all((found > 0).any(axis=0) == ~plan.strata.is_known)
    assert stratal.next_round(pilot, labels, additional=60).size == 180


def test_two_rounds_for_f1_cover_and_beat_one_simple_random_sample(pool):
    """The tolerance is three standard deviations of the number of hits: 52 of 60 are enough, 10 of 13."""
    population, truth = pool
    estimand = F1("match", probability="score")
    plan = stratal.plan(population, 100, estimand=estimand)
    columns = next(population.batches(("answer",)))["answer"]
    both = np.sum((columns == "match") & (truth == "match"))
    value = 2 * both / (np.sum(columns == "match") + np.sum(truth == "match"))
    errors, hits = [], 0
    draws = sized(13, 60)
    for seed in range(draws):
        pilot = plan.draw(seed=seed)
        sample = stratal.next_round(pilot, labels_of(pilot, truth), additional=100)
        found = stratal.estimate(sample, labels_of(sample, truth))
        low, high = found.confidence_interval()
        hits += low <= value <= high
        errors.append(found.value - value)

    assert hits >= 0.95 * draws - 3 * np.sqrt(0.95 * 0.05 * draws)
    assert np.sqrt(np.mean(np.square(errors))) < 0.1
