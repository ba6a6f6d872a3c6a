"""Rounds of an estimand, or of several, until intervals are as narrow as wanted."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import cells

import stratal
from stratal.errors import InputError


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(5)
    size = 6000
    truth = rng.random(size) < 0.04
    score = np.where(truth, rng.beta(5, 2, size), rng.beta(1, 15, size))
    answer = np.where(score > 0.5, "match", "other")
    older = np.where(score + rng.normal(0, 0.25, size) > 0.5, "match", "other")
    population = stratal.Population.from_arrays(
        proxy={"score": score},
        groups={
            "answer": answer,
            "older": older,
            "part": rng.choice(["a", "b", "c"], size, p=(0.8, 0.15, 0.05)),
        },
        predicted="answer",
    )
    return population, np.where(truth, "match", "other"), (rng.random(size) < score).astype(float)


def half_widths(found):
    each = [found] if isinstance(found, stratal.Estimate) else found
    return np.array([row.confidence_interval().width / 2 for row in each])


ASKED = {
    "f1:match,probability=score": 0.06,
    "difference:answer,older": 0.0015,
    "mean@part": [0.06, 0.08, 0.1],
    "f1:match,probability=score;recall:match,probability=score": 0.08,
    # Of some 200 answers: limits lie on whole ones, so that near a census a half-width moves in steps.
    "precision:match,probability=score": 0.012,
}


@pytest.mark.parametrize("text", cells(ASKED, fast=list(ASKED)[:-1]))
@pytest.mark.filterwarnings("ignore::stratal.StratalWarning")
def test_rounds_reach_the_half_width_and_do_not_overshoot(pool, text):
    population, classes, ratings = pool
    wanted = ASKED[text]
    truth = ratings if text.startswith("mean") else classes
    sample = stratal.plan(population, 100, estimand=text).draw(seed=3)
    sizes = [sample.size]
    for _ in range(8):
        needed = stratal.labels_needed(sample, truth[sample.ids], wanted)
        larger = stratal.next_round(sample, truth[sample.ids], half_width=wanted)
        assert larger.size == sample.size + needed.additional
        if needed.additional == 0:
            break
        assert list(larger.ids[: sample.size]) == list(sample.ids)
        sample = larger
        sizes.append(sample.size)

    reached = half_widths(stratal.estimate(sample, truth[sample.ids])) / np.asarray(wanted)
    assert needed.reached
    assert reached.max() <= 1
    # No more labels than it takes: the wider of two forecasts decides, of several estimands the widest.
    assert reached.max() > (0.7 if ";" in text else 0.75)
    assert len(sizes) <= 7


def test_what_is_furthest_is_named(pool):
    population, _, ratings = pool
    sample = stratal.plan(population, 90, estimand="mean@part").draw(seed=3)
    needed = stratal.labels_needed(sample, ratings[sample.ids], [0.5, 0.5, 0.01])

    assert needed.estimand == "mean@part:c"
    assert needed.to_dict()["estimand"] == "mean@part:c"
    assert needed.target_half_width == 0.01 < needed.half_width


def test_the_level_that_is_too_wide_gets_the_labels(pool):
    population, _, ratings = pool
    sample = stratal.plan(population, 90, estimand="mean@part").draw(seed=3)
    larger = stratal.next_round(sample, ratings[sample.ids], half_width=[0.5, 0.5, 0.06])
    new = larger.groups["part"][larger.round == 2]

    assert set(new.tolist()) == {"c"}


def test_units_that_are_known_get_no_label_in_any_round(pool):
    population, classes, _ = pool
    sample = stratal.plan(population, 40, estimand="difference:answer,older").draw(seed=3)
    larger = stratal.next_round(sample, classes[sample.ids], half_width=1e-6)
    for _ in range(3):
        larger = stratal.next_round(larger, classes[larger.ids], half_width=1e-6)

    assert np.all(larger.groups["answer"] != larger.groups["older"])
    needed = stratal.labels_needed(larger, classes[larger.ids], 1e-6)
    assert needed.reached
    assert needed.half_width == 0


def test_more_units_for_several_go_to_the_widest(pool):
    population, _, ratings = pool
    sample = stratal.plan(population, 60, estimand="mean@part").draw(seed=3)
    larger = stratal.next_round(sample, ratings[sample.ids], additional=200)
    before = half_widths(stratal.estimate(sample, ratings[sample.ids]))
    after = half_widths(stratal.estimate(larger, ratings[larger.ids]))

    assert larger.size == 260
    assert after.max() < 0.6 * before.max()


def test_a_sample_from_a_file_needs_its_population(pool, tmp_path):
    population, classes, _ = pool
    text = "f1:match,probability=score"
    drawn = stratal.plan(population, 100, estimand=text).draw(seed=3)
    sample = stratal.Sample.read(drawn.write(tmp_path / "sample.parquet"))

    with pytest.raises(InputError, match="population="):
        stratal.labels_needed(sample, classes[sample.ids], 0.05)
    found = stratal.labels_needed(sample, classes[sample.ids], 0.1, population=population)
    assert found == stratal.labels_needed(drawn, classes[drawn.ids], 0.1)


def test_a_simple_random_sample_grows_too(pool):
    population, classes, _ = pool
    plan = stratal.plan(population, 200, estimand="f1:match,probability=score")
    sample = plan.using("simple-random").draw(seed=3)
    larger = stratal.next_round(sample, classes[sample.ids], half_width=0.05)

    assert larger.design.kind == "simple-random"
    assert larger.size > 600


def test_units_that_were_not_answered_are_asked_for_again(pool):
    population, classes, _ = pool
    sample = stratal.plan(population, 200, estimand="f1:match,probability=score").draw(seed=3)
    all_of_them = {int(unit): str(classes[unit]) for unit in sample.ids}
    half = {unit: label for k, (unit, label) in enumerate(all_of_them.items()) if k % 2}

    complete = stratal.labels_needed(sample, all_of_them, 0.08)
    with pytest.warns(stratal.StratalWarning):
        lacking = stratal.labels_needed(sample, half, 0.08)
    assert lacking.expected_total > 1.5 * complete.expected_total


@pytest.mark.parametrize("wanted", [0, -1, np.nan, [0.1, 0.1]])
def test_a_half_width_is_a_positive_number_for_each(pool, wanted):
    population, classes, _ = pool
    sample = stratal.plan(population, 100, estimand="f1:match,probability=score").draw(seed=3)
    with pytest.raises(InputError, match=r"half.width"):
        stratal.next_round(sample, classes[sample.ids], half_width=wanted)
