from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.estimation.estimate import Estimate
from stratal.estimation.model_pairs import bounds_of_outcomes, difference_of_models, ratio_of_models, win_rate
from stratal.estimation.respondents import Respondents


def drawn(n, size=20_000, outcome=None):
    population = stratal.Population.from_arrays(ids=np.arange(size))
    sample = stratal.SimpleRandom(budget=n).draw(population, seed=4)
    return sample, Respondents.of(sample, np.ones(n, dtype=bool))


def pairs_of(kind, rng, n):
    """Two models' outcomes of which the win rate (.923) and the ratio (.840) once covered too little."""
    if kind == "one rarely loses":
        return (rng.random(n) < 0.995) * 1.0, (rng.random(n) < 0.9) * 1.0
    if kind == "ratings that mostly tie":
        first = rng.choice([0, 0.25, 0.5, 0.75, 1], n, p=[0.02, 0.03, 0.05, 0.2, 0.7])
        return first, np.clip(first - rng.choice([0, 0.25, 0.5, 1], n, p=[0.9, 0.05, 0.03, 0.02]), 0, 1)
    first = rng.random(n) * 0.2 + 0.7
    return first, np.where(rng.random(n) < 0.04, 0.0, np.clip(first + 0.05, 0, 1))


@pytest.mark.parametrize("kind", ["one rarely loses", "ratings that mostly tie", "rarely far worse"])
def test_small_samples_cover(kind):
    """500 draws of 50: a coverage of .94 is known to ± .011 (one standard deviation)."""
    rng = np.random.default_rng(8)
    _, frame = drawn(50)
    many = pairs_of(kind, rng, 400_000)
    truth = np.mean(many[0]) / np.mean(many[1]), np.mean((many[0] > many[1]) + 0.5 * (many[0] == many[1]))
    inside = np.zeros(2)
    replicates = 500
    for _ in range(replicates):
        first, second = pairs_of(kind, rng, 50)
        found = (
            ratio_of_models(first, second, frame, bounds=(0, 1)),
            win_rate(first, second, frame, "simple-random"),
        )
        for j, quantity in enumerate(found):
            low, high = quantity.confidence_interval()
            inside[j] += low <= truth[j] <= high
    assert np.all(inside / replicates > 0.94 - 3 * 0.011)


def test_the_win_rate_of_right_and_wrong_is_half_the_difference():
    sample, frame = drawn(40)
    rng = np.random.default_rng(3)
    a, b = (rng.random(40) < 0.8) * 1.0, (rng.random(40) < 0.6) * 1.0
    row = stratal.compare(sample, {"a": a, "b": b}).rows[0]
    found = win_rate(a, b, frame, "simple-random")

    assert found.value == pytest.approx(0.5 + row["difference"] / 2)
    assert found.standard_error == pytest.approx(row["standard_error"] / 2)
    assert row["win_rate"]["confidence_interval"] == pytest.approx([*found.confidence_interval()])


def test_without_ties_the_win_rate_is_a_proportion():
    _, frame = drawn(30)
    a, b = np.arange(30) % 3 * 1.0, np.ones(30) * 0.5
    wins = stratal.estimation.evaluation.estimate_mean(
        (a > b) * 1.0, np.zeros((30, 0)), frame.weighting, None, stratum=frame.stratum, design="simple-random"
    )
    assert isinstance(wins, Estimate)
    assert [*win_rate(a, b, frame, "simple-random").confidence_interval()] == pytest.approx(
        [*wins.confidence_interval()], abs=1e-9
    )


def test_models_that_never_differ_have_a_ratio_of_one_with_an_interval():
    _, frame = drawn(50)
    right = np.r_[np.ones(45), np.zeros(5)]
    low, high = ratio_of_models(right, right, frame, bounds=(0, 1)).confidence_interval()
    assert 0.85 < low < 1 < high < 1.17
    with pytest.raises(stratal.InputError, match="all labels agree"):
        ratio_of_models(right, right, frame).confidence_interval()


def test_a_census_leaves_nothing_open():
    sample, frame = drawn(20, size=20)
    a, b = np.r_[np.ones(15), np.zeros(5)], np.r_[np.ones(12), np.zeros(8)]
    assert [*ratio_of_models(a, b, frame, bounds=(0, 1)).confidence_interval()] == pytest.approx([1.25, 1.25])
    assert [*win_rate(a, b, frame, "simple-random").confidence_interval()] == pytest.approx([0.575, 0.575])
    assert bounds_of_outcomes(sample, np.column_stack([a, b])) == (0.0, 1.0)


def test_a_model_that_is_never_right_has_no_ratio():
    _, frame = drawn(10)
    assert not ratio_of_models(np.ones(10), np.zeros(10), frame, bounds=(0, 1)).defined


def test_the_difference_is_the_row_of_compare():
    sample, frame = drawn(25)
    rng = np.random.default_rng(3)
    a, b = (rng.random(25) < 0.9) * 1.0, (rng.random(25) < 0.8) * 1.0
    row = stratal.compare(sample, {"a": a, "b": b}).rows[0]
    found = difference_of_models(a, b, frame, bounds=(0, 1))

    assert (found.value, found.standard_error) == pytest.approx((row["difference"], row["standard_error"]))
    assert [*found.confidence_interval()] == pytest.approx(row["confidence_interval"])
    assert found.p_value(0.0) == pytest.approx(row["p_value"], abs=1e-6)
    with pytest.raises(stratal.InputError, match="all labels agree"):
        difference_of_models(a, a, frame).confidence_interval()
