"""Plans for estimands other than the mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.work import calls

import stratal
from stratal.errors import BudgetError, InputError
from stratal.estimands import F1, LevelMeans
from stratal.planning.planner import Planner
from stratal.population.influence import influence_moments


@pytest.fixture
def pool():
    rng = np.random.default_rng(1)
    truth = rng.random(6000) < 0.03
    score = np.where(truth, rng.beta(5, 2, 6000), rng.beta(1, 15, 6000))
    answer = np.where(score > 0.5, "match", "other")
    older = np.where(score + rng.normal(0, 0.1, 6000) > 0.5, "match", "other")
    population = stratal.Population.from_arrays(
        proxy={"score": score},
        groups={
            "answer": answer,
            "older": older,
            "part": rng.choice(["a", "b", "c"], 6000, p=(0.8, 0.15, 0.05)),
        },
        predicted="answer",
    )
    return population, np.where(truth, "match", "other")


def test_a_plan_for_f1_is_drawn_and_estimated_as_f1(pool, tmp_path):
    population, truth = pool
    plan = stratal.plan(population, 300, estimand=F1("match", probability="score"))
    sample = stratal.Sample.read(plan.draw(seed=2).write(tmp_path / "sample.parquet"))

    found = stratal.estimate(sample, {int(unit): str(truth[unit]) for unit in sample.ids})

    assert sample.size == 300
    assert (
        sample.question.estimand
        == plan.estimand
        == {"kind": "f1", "positive": "match", "predicted": None, "probability": "score", "right": None}
    )
    assert plan.to_dict()["estimand"]["kind"] == "f1"
    assert 0.6 < found.value < 1.0
    assert plan.detectable_difference is None
    assert plan.recommended.relative_efficiency > 3


def test_the_strata_are_finer_where_the_class_is(pool):
    population, _ = pool
    plan = stratal.plan(population, 300, estimand="f1:match,probability=score")
    inside = [name.startswith("answer match") for name in plan.strata.names]

    assert sum(inside) == 12
    assert plan.allocation.n_h[inside].sum() / 300 > 5 * plan.strata.weights[inside].sum()


def test_a_difference_spends_no_label_where_the_models_agree(pool):
    population, _ = pool
    plan = stratal.plan(population, 40, estimand="difference:answer,older")
    sample = plan.draw(seed=3)

    assert np.all(sample.groups["answer"] != sample.groups["older"])
    assert any("require no label" in note for note in plan.notes)


def test_more_labels_than_matter_are_not_planned(pool):
    population, truth = pool
    columns = next(population.batches(("answer", "older")))
    differ = int(np.sum(columns["answer"] != columns["older"]))
    plan = stratal.plan(population, 5000, estimand="difference:answer,older")
    sample = plan.draw(seed=3)

    assert plan.budget == sample.size == differ
    assert any("determine the value" in note for note in plan.notes)
    assert stratal.estimate(sample, {int(u): str(truth[u]) for u in sample.ids}).standard_error == 0.0


def test_a_half_width_finds_the_budget(pool):
    population, _ = pool
    wide = stratal.plan(population, half_width=0.1, estimand="f1:match,probability=score")
    narrow = stratal.plan(
        population, half_width=0.05, estimand="f1:match,probability=score", assume="expected"
    )
    pilot = stratal.plan(population, half_width=0.05, estimand="f1:match,probability=score", pilot=True)

    assert wide.half_width_if("conservative") <= 0.1
    assert narrow.half_width_if("expected") <= 0.05
    assert (
        pilot.budget < stratal.plan(population, half_width=0.05, estimand="f1:match,probability=score").budget
    )


def test_a_half_width_for_each_level_takes_the_fewest_labels_that_reach_all(pool):
    population, truth = pool
    wanted = [0.03, 0.05, 0.08]
    plan = stratal.plan(population, half_width=wanted, estimand=LevelMeans("part"))
    one = stratal.plan(population, plan.budget, estimand=LevelMeans("part"))
    sample = plan.draw(seed=1)
    table: Any = stratal.estimate(sample, (truth[sample.ids] == "match").astype(float))

    assert [row["domain"] for row in table.rows()] == ["a", "b", "c"]
    assert plan.allocation.method == "several"
    assert plan.budget == plan.allocation.n_h.sum() == one.budget
    assert plan.allocation.n_h.tolist() != one.allocation.n_h.tolist()


def test_a_list_is_planned_and_estimated_together(pool):
    population, truth = pool
    asked = ["f1:match,probability=score", "recall:match,probability=score"]
    plan = stratal.plan(population, 200, estimand=asked)
    sample = plan.draw(seed=1)
    table: Any = stratal.estimate(sample, {int(u): str(truth[u]) for u in sample.ids})

    assert [row["estimand"] for row in table.rows()] == asked
    assert plan.budget == 200


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": 50, "by": "part"}, "does not accept by="),
        ({"budget": 50, "allocation": "equal"}, "does not accept allocation="),
        ({"budget": 50, "pilot": True}, "requires a target half-width"),
        ({"half_width": -1}, "positive number"),
        ({"half_width": [0.1, 0.2]}, "one half-width per estimand"),
        ({}, "either a budget or a half-width"),
    ],
)
def test_what_does_not_go_together_is_refused(pool, given, message):
    population, _ = pool
    with pytest.raises(InputError, match=message):
        stratal.plan(population, estimand="f1:match,probability=score", **given)


def test_a_mean_as_estimand_is_the_plan_as_it_was(pool):
    population, _ = pool
    assert stratal.plan(population, 50, estimand="mean").allocation == stratal.plan(population, 50).allocation
    with pytest.raises(InputError, match="one half-width per estimand"):
        stratal.plan(population, half_width=[0.1, 0.2])


def test_models_that_always_agree_leave_nothing_open():
    population = stratal.Population.from_arrays(groups={"a": list("xy") * 9, "b": list("xy") * 9})
    with pytest.raises(InputError, match="known without labels"):
        stratal.plan(population, 5, estimand="difference:a,b")


def _with_levels(count: int) -> stratal.Population:
    rng = np.random.default_rng(5)
    levels = np.array([f"level {k:04d}" for k in range(count)])[np.arange(4 * count) % count]
    return stratal.Population.from_arrays(proxy=rng.random(4 * count), groups={"g": levels})


def test_the_moments_of_levels_are_those_of_each_level_on_its_own(pool):
    population, _ = pool
    planner = Planner(population=population, estimand=LevelMeans("part"))
    strata = planner.anticipated.strata(300)
    alone = [part.influence(population) for part in planner.parts]

    influences = list(planner.estimand.influences(population))
    together = influence_moments(population, strata.rule, influences)

    assert len(influences) == 1
    # values are rounded to nine digits, as engines add in any order
    assert together == pytest.approx(influence_moments(population, strata.rule, alone), rel=1e-7, abs=1e-9)


def test_the_work_of_a_plan_for_levels_grows_with_their_number_and_not_with_its_power():
    def planned(count: int) -> int:
        return calls(lambda: stratal.plan(_with_levels(count), 2 * count, estimand="mean@g"))[1]

    planned(5)  # imports
    assert planned(40) < 4 * planned(10) + 20_000


def test_more_levels_than_can_be_planned_for_are_refused_with_a_way_out():
    with pytest.raises(InputError, match=r"given: 501; allowed: up to 500.*by="):
        stratal.plan(_with_levels(501), 1200, estimand="mean@g")


def test_a_wide_half_width_needs_the_fewest_labels_that_strata_allow(pool):
    """The search began at two labels, too few for the minima of two cells, and ended in their error."""
    population, _ = pool
    plan = stratal.plan(
        population, half_width=0.9, estimand="f1:match,probability=score", assume="optimistic"
    )

    assert plan.allocation.n_h.min() == 2
    assert plan.half_width_if("optimistic") <= 0.9


def test_a_large_minimum_makes_fewer_strata_as_for_the_mean(pool):
    population, _ = pool
    plan = stratal.plan(population, 100, minimum=20, estimand="f1:match,probability=score")

    assert plan.strata.n_strata == 2
    assert plan.allocation.n_h.min() >= 20


def test_a_budget_beyond_all_units_is_refused_for_every_estimand(pool):
    population, _ = pool
    for estimand in (None, "f1:match,probability=score", "difference:answer,older", "mean@part"):
        with pytest.raises(BudgetError, match="allowed: 1 to 6,000"):
            stratal.plan(population, 6001, estimand=estimand)


def test_a_mean_is_planned_with_the_proxy_that_it_names():
    rng = np.random.default_rng(3)
    population = stratal.Population.from_arrays(proxy={"weak": rng.random(500), "good": rng.beta(5, 1, 500)})

    found = stratal.plan(population, 60, estimand="mean:proxy=good")

    assert found.to_dict() == stratal.plan(population, 60, proxy="good").to_dict()
    assert found.strata.names[0].startswith("good")


def test_the_expected_value_is_told_of_one_number_alone(pool):
    population, _ = pool
    one = stratal.plan(population, 50, estimand="f1:match,probability=score")
    level = stratal.plan(population, 50, estimand="mean@part:c")

    assert "which is 0." in one.assumptions[0]
    assert "which is" not in level.assumptions[0]


def test_the_method_that_is_asked_for_is_used_and_an_allocation_is_refused_even_if_it_is_the_means(pool):
    population, _ = pool
    f1 = "f1:match,probability=score"
    usual, asked = (stratal.plan(population, 200, estimand=f1, method=name) for name in (None, "k-means"))

    assert usual.strata.method.startswith("neyman")
    assert asked.strata.method.startswith("k-means")
    with pytest.raises(InputError, match="does not accept allocation="):
        stratal.plan(population, 200, estimand=f1, allocation="robust")


@pytest.mark.parametrize(
    ("estimand", "expected"),
    [
        ("f1:Match", "Did you mean 'match'"),
        ("recall:MATCH,probability=score", "Did you mean 'match'"),
        ("f1:third", r"no answer in 'answer' is 'third'.*allowed: 'match', 'other'"),
        ("precision:third,predicted=older", "no answer in 'older'"),
        ("prevalence:Match", "Did you mean 'match'"),
    ],
)
def test_a_class_that_no_answer_names_is_an_error_that_lists_the_classes(pool, estimand, expected):
    population, _ = pool

    with pytest.raises(InputError, match=expected):
        stratal.plan(population, 300, estimand=estimand)
    with pytest.raises(InputError, match=expected):
        stratal.plan(population, half_width=0.1, estimand=estimand)


def test_the_prevalence_of_a_class_with_a_score_needs_no_answer_that_names_it(pool):
    population, _ = pool

    assert stratal.plan(population, 300, estimand="prevalence:third,probability=score").budget == 300


def test_a_plan_for_a_metric_reaches_a_class_that_few_answers_name():
    """A simple random sample had no label of the 27 answers: F1 was unknown after labelling."""
    answers = np.where(np.arange(5000) < 27, "yes", "no")
    population = stratal.Population.from_arrays(
        proxy={"score": (answers == "yes").astype(float)}, groups={"answer": answers}, predicted="answer"
    )

    for budget in (4, 5, 6, 20):
        plan = stratal.plan(population, budget, estimand="f1:yes,probability=score")
        simple = [row for row in plan.designs if row.design == "simple-random"]
        assert plan.recommended.design == "stratified"
        assert plan.expected_half_width is not None
        assert all(row.expected_standard_error is None for row in simple)
        assert all(row.relative_efficiency is None for row in plan.designs)
        assert any("no precision can be forecast" in note for note in plan.notes)
