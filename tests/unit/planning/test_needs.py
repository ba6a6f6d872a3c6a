from __future__ import annotations

import math

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.planning.repeated_labels import half_width_of
from stratal.planning.rounds import next_sample_size


def truth_of(size, seed=0):
    """Return a population of 10,000 units and outcomes that follow its proxy less closely than it says."""
    rng = np.random.default_rng(seed)
    proxy = rng.beta(4, 1, size)
    z = (rng.random(size) < 0.5 + 0.5 * proxy**2).astype(float)
    return stratal.Population.from_arrays(proxy=proxy), z


def answers(sample, z):
    return {unit: z[unit] for unit in sample.ids.tolist()}


@pytest.mark.parametrize("half_width", [0.1, 0.05, 0.02])
def test_rounds_end_at_the_half_width_that_was_asked_for(half_width):
    population, z = truth_of(10_000)
    sample = stratal.plan(population, half_width=half_width, pilot=True).draw(seed=3)
    rounds = 1
    assert stratal.next_round(sample, answers(sample, z), half_width=0.4, population=population) is sample
    while (larger := stratal.next_round(sample, answers(sample, z), half_width=half_width)) is not sample:
        assert larger.ids[: sample.size].tolist() == sample.ids.tolist()
        sample, rounds = larger, rounds + 1

    found = half_width_of(stratal.estimate(sample, answers(sample, z)), 0.95)
    assert found <= half_width
    assert found > 0.85 * half_width  # no more labels than needed
    assert rounds <= 5


def test_the_last_label_is_foreseen():
    """Labels that agree with what was foreseen give the half-width that was foreseen."""
    _, z = truth_of(10_000)
    units = stratal.Population.from_arrays(ids=range(10_000))
    sample = stratal.designs.SimpleRandom(budget=600).draw(units, seed=1)
    needed = stratal.labels_needed(sample, answers(sample, z), half_width=0.03)
    larger = stratal.next_round(sample, answers(sample, z), half_width=0.03)

    assert larger.size == 600 + needed.additional
    assert needed.expected_total == larger.size
    now = half_width_of(stratal.estimate(larger, answers(larger, z)), 0.95)
    assert now == pytest.approx(0.03, rel=0.05)


def test_nothing_is_needed_once_the_interval_is_there():
    population, z = truth_of(1_000)
    sample = stratal.plan(population, 200).draw(seed=1)
    needed = stratal.labels_needed(sample, answers(sample, z), half_width=0.2)

    assert needed.reached
    assert needed.additional == 0
    assert stratal.next_round(sample, answers(sample, z), half_width=0.2) is sample


def test_a_round_that_would_multiply_the_labels_is_taken_in_two():
    population, z = truth_of(10_000)
    sample = stratal.plan(population, 50).draw(seed=1)
    needed = stratal.labels_needed(sample, answers(sample, z), half_width=0.01)

    assert needed.expected_total > 1.5 * sample.size
    assert sample.size + needed.additional < needed.expected_total


def test_units_that_nobody_answered_are_made_up_for():
    population, z = truth_of(10_000)
    sample = stratal.designs.SimpleRandom(budget=300).draw(population, seed=1)
    everyone = answers(sample, z)
    some = {unit: value for unit, value in everyone.items() if unit % 4}

    with pytest.warns(stratal.StratalWarning, match="have no label"):
        fewer = stratal.labels_needed(sample, some, half_width=0.03)
    assert (
        fewer.expected_total > 1.1 * stratal.labels_needed(sample, everyone, half_width=0.03).expected_total
    )


def test_unbounded_outcomes_and_labels_that_all_agree():
    rng = np.random.default_rng(2)
    proxy = rng.normal(size=5_000)
    population = stratal.Population.from_arrays(proxy=proxy, scaled=True)
    z = proxy + rng.normal(size=5_000)
    sample = stratal.plan(population, half_width=0.1, pilot=True).draw(seed=1)
    needed = stratal.labels_needed(sample, answers(sample, z), half_width=0.1)
    same = stratal.labels_needed(sample, answers(sample, z * 0 + 2.5), half_width=0.1)

    assert 100 < needed.expected_total < 1_500
    assert same.half_width == math.inf
    assert same.additional > 0


def test_a_design_without_a_next_round_and_no_half_width_are_refused():
    population, z = truth_of(1_000)
    systematic = stratal.designs.Systematic(budget=20).draw(population, seed=1)
    with pytest.raises(InputError, match="no next round"):
        stratal.labels_needed(systematic, answers(systematic, z), half_width=0.1)
    sample = stratal.plan(population, 50).draw(seed=1)
    with pytest.raises(InputError, match="positive"):
        stratal.labels_needed(sample, answers(sample, z), half_width=math.nan)
    for wrong in ("narrow", {"a": 0.1}, [0.1, 0.2]):
        with pytest.raises(InputError, match=r"half.width"):
            stratal.labels_needed(sample, answers(sample, z), half_width=wrong)
    for both in ({}, {"additional": 5, "half_width": 0.1}):
        with pytest.raises(InputError, match="one of additional, half_width and design"):
            stratal.next_round(sample, answers(sample, z), **both)


def shrink(n):
    return n**-0.5


def test_later_rounds_bring_a_little_more_than_is_expected_to_be_enough():
    assert next_sample_size(shrink, 0.12, 0.1, 70, 1000) == (30, 100)
    assert next_sample_size(shrink, 0.12, 0.1, 70, 1000, label_based=True) == (36, 106)


def test_no_more_than_there_is():
    assert next_sample_size(shrink, 0.12, 0.1, 70, 101, label_based=True) == (31, 101)


def test_a_round_that_goes_far_is_careful_all_the_same():
    assert next_sample_size(lambda n: 5.0**0.5 * n**-0.5, 0.2236, 0.1, 100, 10_000, label_based=True) == (
        300,
        500,
    )


@pytest.mark.parametrize("seed", [0, 2])
def test_labels_of_every_unit_leave_no_rounding_in_the_forecast(seed):
    generator = np.random.default_rng(seed)
    population = stratal.Population.from_arrays(proxy=generator.beta(2, 1, 300))
    sample = stratal.plan(population, budget=75).draw(seed=seed)
    labels = {unit: float(generator.random() < 0.7) for unit in sample.ids.tolist()}
    forecasts = stratal.findings(sample, labels).to_dict()["more_labels"]

    assert forecasts[-1] == {"labels": 300, "half_width": 0.0}
    assert all(forecast["half_width"] == 0.0 or forecast["half_width"] > 1e-6 for forecast in forecasts)
