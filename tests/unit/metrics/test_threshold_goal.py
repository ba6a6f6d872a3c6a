"""Plans for what a threshold guarantees: a pilot, a second round in a region, and what cannot be."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimation.estimand import as_estimand
from stratal.strata.region import PilotCells, planned_region, total_labels

N = 4000


@pytest.fixture(scope="module")
def units():
    rng = np.random.default_rng(4)
    confidence = np.clip(rng.beta(6, 1, N), 0.01, 0.999).round(4)
    right = (rng.random(N) < confidence).astype(float)
    return stratal.Population.from_arrays(proxy={"confidence": confidence}, ids=np.arange(N)), right


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(6)
    toxic = rng.random(N) < 0.02
    signal = rng.normal(0, 1, N) + 3.5 * toxic
    score = 1 / (1 + np.exp(-(np.log(0.02 / 0.98) + 3.5 * signal - 3.5**2 / 2)))
    population = stratal.Population.from_arrays(
        proxy={"score": score}, predicts="class:toxic", ids=np.arange(N)
    )
    return population, np.where(toxic, "toxic", "fine")


def test_the_first_round_is_a_quarter_of_the_labels_in_equal_shares(units):
    plan = stratal.plan(units[0], 400, for_="threshold:error<=.1")

    assert (plan.budget, plan.rounds.total) == (100, 400)
    assert plan.allocation.n_h.tolist() == [5] * 20
    assert "and 300 more in a second round" in str(plan)
    assert json.loads(json.dumps(plan.to_dict()))["rounds"]["total"] == 400


def test_the_second_round_has_equal_rates_in_the_region_of_the_labels(units):
    population, right = units
    first = stratal.plan(population, 400, for_="threshold:error<=.1").draw(seed=3)
    second = stratal.next_round(first, right[first.ids], additional=300)
    strata = first.design.strata
    cells = PilotCells(
        sizes=strata.sizes[::-1],
        scores=strata.proxy_means[::-1],
        counts=first.n_h[::-1],
        correct_labels=np.bincount(first.stratum, right[first.ids], minlength=20)[::-1],
    )
    region = planned_region(cells, 400, 0.1)
    expected = total_labels(cells.sizes, cells.counts, region, 400)

    assert second.n_h[::-1].tolist() == expected.tolist()
    assert second.size == 400
    assert 1 < region < 20


def test_sets_end_between_the_planned_cells_and_the_guarantee_holds(units):
    population, right = units
    first = stratal.plan(population, 400, for_="threshold:error<=.1").draw(seed=3)
    second = stratal.next_round(first, right[first.ids], additional=300)
    result = stratal.threshold(second, right[second.ids], "error<=.1")
    cuts = first.design.strata.rule.cuts[::-1].tolist()
    accepted = second.population.batches(("confidence",))
    scores = np.concatenate([batch["confidence"] for batch in accepted])

    assert [row.thresholds[0] for row in result.candidates] == [*cuts, None]
    assert result.verdict == "PASS"
    assert 1 - right[scores >= result.chosen[0].thresholds[0]].mean() <= 0.1


def test_a_rare_class_is_labelled_only_where_its_precision_can_be_high(rare):
    population, classes = rare
    plan = stratal.plan(population, 120, for_="threshold:precision>=.8")
    first = plan.draw(seed=2)
    second = stratal.next_round(first, classes[first.ids], additional=90)
    result = stratal.threshold(second, classes[second.ids], "precision>=.8")

    assert plan.allocation.n_h[0] == 0
    assert plan.strata.sizes[0] > 0.9 * N
    assert second.size == 120
    assert result.verdict == "PASS"
    assert result.requirement.positive == "toxic"


@pytest.mark.parametrize(
    ("require", "cases", "labels"), [("recall>=.9", 29, 1450), ("false_positive_rate<=.01", 299, 306)]
)
def test_rates_of_a_class_say_how_many_random_labels_they_take(rare, require, cases, labels):
    plan = stratal.plan(rare[0], 200, for_=f"threshold:{require}")

    assert plan.recommended.design == "simple-random"
    assert plan.budget == 200
    assert plan.rounds.cases_needed == cases
    assert plan.rounds.labels_needed == pytest.approx(labels, rel=0.1)
    assert f"{plan.rounds.labels_needed:,} random labels" in str(plan)
    assert "cannot be guaranteed with 200 labels" in str(plan)


def test_too_few_labels_say_how_many_accept_half_of_the_largest_set(units):
    plan = stratal.plan(units[0], 60, for_="threshold:error<=.05")
    enough = stratal.plan(units[0], plan.rounds.labels_needed, for_="threshold:error<=.05")

    assert 59 < plan.rounds.labels_needed < N
    assert plan.rounds.expected_items < 0.5 * plan.rounds.largest_items
    assert enough.rounds.expected_items >= 0.5 * enough.rounds.largest_items
    assert "A guarantee for half of that set requires about" in str(plan)


def test_a_requirement_that_no_set_satisfies_cannot_be_guaranteed():
    population = stratal.Population.from_arrays(proxy={"confidence": np.linspace(0.2, 0.6, N)})
    plan = stratal.plan(population, 100, for_="threshold:error<=.05")

    assert plan.rounds.labels_needed is None
    assert "cannot be guaranteed" in str(plan)


@pytest.mark.parametrize(
    "scores", [np.full(N, 0.9), np.repeat([0.5, 0.9], N // 2), np.arange(N, dtype=float)]
)
def test_constant_tied_and_ordering_scores_have_two_rounds(units, scores):
    population = stratal.Population.from_arrays(proxy={"score": scores}, ids=np.arange(N))
    first = stratal.plan(population, 200, for_="threshold:error<=.3").draw(seed=1)
    second = stratal.next_round(first, units[1][first.ids], additional=150)

    assert (first.size, second.size) == (50, 200)
    assert stratal.threshold(second, units[1][second.ids], "error<=.3").verdict == "PASS"


def test_metrics_at_thresholds_have_a_random_pilot_and_then_all_labels(rare):
    population, classes = rare
    plan = stratal.plan(population, 60, estimand="precision@threshold=.2,.5")
    first = plan.draw(seed=2)
    second = stratal.next_round(first, classes[first.ids], additional=plan.rounds.total - plan.budget)
    is_open = ~first.design.strata.is_known
    shares = first.n_h[is_open] / first.design.strata.sizes[is_open]

    assert plan.budget < 0.5 * plan.rounds.total
    assert first.design.allocation.method == "proportional"
    assert np.ptp(shares) < 0.5
    assert second.size == plan.rounds.total == 60
    found: Any = stratal.estimate(second, classes[second.ids])
    assert [row.n > 0 for row in found] == [True, True]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"for_": "error<=.05"}, "invalid threshold goal"),
        ({"for_": "mean"}, "invalid threshold goal"),
        ({"for_": "threshold:error>=.05"}, "unsupported requirement of a threshold"),
        ({"for_": "threshold:error<=.05", "estimand": "mean"}, "mutually exclusive"),
        ({"for_": "threshold:error<=.05", "n_strata": 3}, "does not accept n_strata="),
        ({"for_": "threshold:error<=.05,seed=3"}, "invalid threshold goal"),
    ],
)
def test_goals_that_mean_nothing_are_refused(units, options, what):
    with pytest.raises(InputError, match=what):
        stratal.plan(units[0], 100, **options)


def test_a_goal_has_no_half_width_and_no_estimate(units):
    population, right = units
    with pytest.raises(InputError, match="no half-width"):
        stratal.plan(population, half_width=0.05, for_="threshold:error<=.05")
    sample = stratal.plan(population, 200, for_="threshold:error<=.1").draw(seed=1)
    with pytest.raises(InputError, match="stratal threshold"):
        stratal.estimate(sample, right[sample.ids])
    with pytest.raises(InputError, match="additional="):
        stratal.next_round(sample, right[sample.ids], half_width=0.05)
    assert stratal.estimate(sample, right[sample.ids], estimand="mean").n == 50


def test_a_goal_survives_a_file(units, tmp_path):
    goal = as_estimand("threshold:precision:spam>=.9,score=p")
    assert as_estimand(goal.to_dict()) == goal
    assert goal.text == "threshold:precision:spam>=0.9,score=p"
    sample = stratal.plan(units[0], 200, for_="threshold:error<=.1").draw(seed=1)
    sample.write(tmp_path / "s.parquet")
    read = stratal.Sample.read(tmp_path / "s.parquet")
    labels = units[1][sample.ids]
    larger = stratal.next_round(read, labels, additional=150, population=units[0])

    assert larger.n_h.tolist() == stratal.next_round(sample, labels, additional=150).n_h.tolist()


def test_commands_lead_from_the_plan_to_the_accepted_set(units, tmp_path, run_command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    population, right = units
    scores = next(population.batches(("confidence",), N))["confidence"]
    (tmp_path / "all.csv").write_text("id,confidence\n" + "".join(f"{i},{x}\n" for i, x in enumerate(scores)))

    def label(folder):
        ids = [line.split(",")[0] for line in (tmp_path / folder / "to_label.csv").read_text().split()[1:]]
        text = "id,label\n" + "".join(f"{unit},{int(right[int(unit)])}\n" for unit in ids)
        (tmp_path / f"{folder}.csv").write_text(text)

    goal = ("--proxy", "confidence", "--budget", 400, "--for", "threshold:error<=.1")
    planned = run_command("plan", "all.csv", *goal)
    assert "--budget 400 --for 'threshold:error<=.1'" in planned.stdout
    drawn = run_command("draw", "all.csv", *goal, "--seed", 3, "--output", "one")
    assert "--additional 300" in drawn.stdout
    label("one")
    extend = ("--extend", "one/sample.parquet", "--labels", "one.csv", "--additional", 300)
    extended = run_command("draw", *extend, "--output", "two")
    assert "stratal threshold two/sample.parquet" in extended.stdout
    label("two")
    decided = run_command("threshold", "two", "one.csv", "two.csv", "--require", "error<=.1")
    assert decided.stdout.startswith("error<=0.1: PASS")
