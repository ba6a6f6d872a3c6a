"""Notes on plans that the labels refute: silent where the plan is right, with a remedy where it is not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.tiers import cells

import stratal
from stratal.errors import StratalWarning
from stratal.estimation.plan_check_notes import MIN_LABELS_OF_A_NOTE, REFUTED, planned_strata

N = 4000
SURE = np.random.default_rng(0).beta(8, 1, N).clip(0.001, 0.999)


def refuted(sample, z, **how):
    estimate = stratal.estimate(sample, z[np.array(sample.ids)], **how)
    assert estimate.notes[len(estimate.notes) - len(estimate.refuted) :] == estimate.refuted
    return [note.removeprefix(f"{REFUTED}: ") for note in estimate.refuted]


def notes(truth, draws, *, budget=100, design="stratified", proxy=SURE, residual_sd=None):
    """The notes of each of so many draws, labels drawn anew from the truth each time."""
    given = {"bounds": (0, 1)} if residual_sd is None else {"scaled": True}
    population = stratal.Population.from_arrays(proxy=proxy, **given)
    plan = stratal.plan(population, budget, residual_sd=residual_sd).using(design)
    generator = np.random.default_rng(1)
    return [refuted(plan.draw(seed), truth(generator)) for seed in range(draws)]


def rate(values):
    return lambda generator: (generator.random(N) < values).astype(float)


def log_odds(offset, slope):
    centre = np.log(SURE.mean() / (1 - SURE.mean()))
    return 1 / (1 + np.exp(-(centre + offset + slope * (np.log(SURE / (1 - SURE)) - centre))))


@pytest.mark.parametrize("design", cells(["stratified", "simple-random"], fast=("stratified",)))
@pytest.mark.parametrize("truth", [SURE, log_odds(-1.5, 1.0), log_odds(-1.5, 0.25), log_odds(1.5, 0.25)])
def test_a_plan_that_is_right_is_hardly_ever_called_refuted(truth, design):
    """At most 5 % of draws: of 80, more than 9 would come by chance once in a hundred."""
    said = notes(rate(truth), 80, design=design)

    assert sum(map(bool, said)) <= 9


@pytest.mark.parametrize("shape", ["normal", "lognormal"])
def test_without_bounds_twice_the_deviation_is_within_the_plan(shape):
    proxy = 3 * np.random.default_rng(2).normal(size=N)

    def truth(generator):
        noise = generator.normal(size=N)
        return proxy + 2 * (noise if shape == "normal" else (np.exp(noise) - np.exp(0.5)) / 2.161)

    assert sum(map(bool, notes(truth, 80, proxy=proxy, residual_sd=1.0))) <= 9


def test_a_mean_that_no_way_allows_is_said():
    said = notes(rate(log_odds(-3.0, 1.0)), 20)

    assert sum(any("the mean is" in note for note in one) for one in said) >= 18


def test_a_plan_of_a_simple_random_sample_is_held_against_its_labels_too():
    said = notes(rate(1 - SURE), 5, budget=400, design="simple-random")

    assert all(any("the mean is" in note for note in one) for one in said)
    assert all(any("one minus the" in note for note in one) for one in said)


def test_outcomes_that_fall_where_the_proxy_rises_are_said():
    said = notes(rate(1 - SURE), 20, budget=400)

    assert all(any("one minus the" in note for note in one) for one in said)


def test_a_deviation_of_four_times_the_taken_one_is_said_with_one_to_plan_with():
    proxy = 3 * np.random.default_rng(2).normal(size=N)
    said = notes(lambda generator: proxy + 4 * generator.normal(size=N), 20, proxy=proxy, residual_sd=1.0)

    found = [note for one in said for note in one]
    assert len(found) == 20
    wanted = [float(note.split("residual_sd=")[1].split(" ")[0]) for note in found]
    assert np.mean(wanted) == pytest.approx(4.0, rel=0.1)
    assert "but the plan assumed 1," in found[0]


def test_labels_that_vary_more_than_the_cautious_end_are_said():
    """A model that is sure of 97 or 99 in 100 answers, and right in 70."""
    sure = np.where(np.arange(N) % 2, 0.97, 0.99)
    said = notes(rate(0.7), 20, proxy=sure, budget=300)

    assert all(any("outcomes vary more" in note for note in one) for one in said)


def test_what_no_plan_foretold_is_not_held_against_it():
    orders = stratal.Population.from_arrays(proxy=SURE, scaled=False)
    asked = stratal.Population.from_arrays(proxy=SURE)
    falling = (SURE < 0.9).astype(float)
    few = stratal.plan(asked, MIN_LABELS_OF_A_NOTE - 1, n_strata=2).draw(7)

    assert refuted(stratal.plan(orders, 100).draw(7), falling) == []
    assert refuted(stratal.designs.Poisson(budget=100).draw(asked, 7), falling) == []
    assert refuted(few, falling) == []
    assert planned_strata(stratal.designs.SimpleRandom(budget=9).draw(orders, 7)) is None


def test_classes_of_an_outcome_other_than_the_proxy_s_are_not_compared():
    sample = stratal.plan(stratal.Population.from_arrays(proxy=SURE), 100).draw(7)

    assert refuted(sample, 5 - 4 * SURE, outcome="unbounded") == []


def test_the_next_round_warns():
    population = stratal.Population.from_arrays(proxy=SURE)
    sample = stratal.plan(population, 100).draw(7)
    labels = (SURE < 0.9).astype(float)

    with pytest.warns(StratalWarning, match=REFUTED):
        stratal.next_round(sample, labels[np.array(sample.ids)], additional=20)
    right = (np.random.default_rng(3).random(N) < SURE).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stratal.next_round(sample, right[np.array(sample.ids)], additional=20)


def test_no_note_has_an_interval_of_its_own():
    """The mean's note had one at 98 % beside the estimate's at 95 %."""
    population = stratal.Population.from_arrays(proxy=[0.3] * 500 + [0.5] * 500)
    sample = stratal.plan(population, budget=100, n_strata=2).draw(seed=7)
    estimate = stratal.estimate(sample, np.arange(100) % 20 > 0)
    note = next(note for note in estimate.notes if "the mean is" in note)
    assert "interval" not in note
    assert "%" not in note
    low, high = estimate.confidence_interval(0.98)
    assert not any(f"{end:.3g}" in note for end in (low, high))


def test_a_table_whose_score_is_of_the_opposite_gets_a_note_and_no_plan_is_named():
    generator = np.random.default_rng(1)
    score = generator.random(3000)
    right = generator.random(3000) < 1 - score
    labelled = generator.random(3000) < 0.05

    estimate = stratal.estimate_from(
        right[labelled].astype(float), proxy_labelled=score[labelled], proxy_unlabelled=score[~labelled]
    )

    note = next(note for note in estimate.notes if note.code == "score-refuted")
    assert "plan" not in note
    assert "'proxy'" in note


def test_a_score_without_relation_to_the_outcome_is_not_called_refuted():
    generator = np.random.default_rng(2)
    noted = 0
    for _ in range(200):
        score = generator.random(300)
        outcomes = (generator.random(60) < 0.5).astype(float)
        estimate = stratal.estimate_from(outcomes, score[:60], score[60:])
        noted += "score-refuted" in {note.code for note in estimate.notes}
    assert noted <= 5
