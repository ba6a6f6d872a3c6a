from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import stratal
from stratal.estimation.estimate import Estimate
from stratal.estimation.model_pairs import ModelPair, bounds_of_outcomes
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
            ModelPair(first=first, second=second, frame=frame, bounds=(0, 1)).ratio(),
            ModelPair(first=first, second=second, frame=frame).win_rate(),
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
    found = ModelPair(first=a, second=b, frame=frame).win_rate()

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
    assert [*ModelPair(first=a, second=b, frame=frame).win_rate().confidence_interval()] == pytest.approx(
        [*wins.confidence_interval()], abs=1e-9
    )


def test_models_that_never_differ_have_a_ratio_of_one_with_an_interval():
    _, frame = drawn(50)
    right = np.r_[np.ones(45), np.zeros(5)]
    low, high = ModelPair(first=right, second=right, frame=frame, bounds=(0, 1)).ratio().confidence_interval()
    assert 0.85 < low < 1 < high < 1.17
    with pytest.raises(stratal.InputError, match="all labels agree"):
        ModelPair(first=right, second=right, frame=frame).ratio().confidence_interval()


def test_a_census_leaves_nothing_open():
    sample, frame = drawn(20, size=20)
    a, b = np.r_[np.ones(15), np.zeros(5)], np.r_[np.ones(12), np.zeros(8)]
    pair = ModelPair(first=a, second=b, frame=frame, bounds=(0, 1))
    assert [*pair.ratio().confidence_interval()] == pytest.approx([1.25, 1.25])
    assert [*pair.win_rate().confidence_interval()] == pytest.approx([0.575, 0.575])
    assert [*pair.difference().confidence_interval()] == pytest.approx([0.15, 0.15])
    assert bounds_of_outcomes(sample, np.column_stack([a, b])) == (0.0, 1.0)


def test_a_model_that_is_never_right_has_no_ratio():
    _, frame = drawn(10)
    assert not ModelPair(first=np.ones(10), second=np.zeros(10), frame=frame, bounds=(0, 1)).ratio().defined


def test_the_difference_is_the_row_of_compare():
    sample, frame = drawn(25)
    rng = np.random.default_rng(3)
    a, b = (rng.random(25) < 0.9) * 1.0, (rng.random(25) < 0.8) * 1.0
    row = stratal.compare(sample, {"a": a, "b": b}).rows[0]
    found = ModelPair(first=a, second=b, frame=frame, bounds=(0, 1)).difference()

    assert (found.value, found.standard_error) == pytest.approx((row["difference"], row["standard_error"]))
    assert [*found.confidence_interval()] == pytest.approx(row["confidence_interval"])
    assert found.p_value(0.0) == pytest.approx(row["p_value"], abs=1e-6)
    with pytest.raises(stratal.InputError, match="all labels agree"):
        ModelPair(first=a, second=a, frame=frame).difference().confidence_interval()


def test_a_difference_of_right_and_wrong_has_the_win_rate_s_interval():
    """In two strata of .8 and .2 with 2 and 8 labels Student's t had one degree of freedom: [−1, 1]."""
    units = stratal.Population.from_arrays(proxy=np.repeat([0.9, 0.6], [8000, 2000]))
    strata = stratal.stratify(units, n_strata=2)
    allocation = stratal.allocate(strata, 10, "equal")
    sample = stratal.Stratified(strata=strata, allocation=allocation).draw(units, seed=2)
    new, old = np.r_[np.ones(8), 0, 1], np.r_[np.ones(7), 0, 1, 0]
    row = stratal.compare(sample, {"new": new, "old": old}).rows[0]
    low, high = row["confidence_interval"]

    assert [low, high] == pytest.approx([2 * end - 1 for end in row["win_rate"]["confidence_interval"]])
    assert high - low < 1.2


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_simultaneous_intervals_of_right_and_wrong_are_wider_and_agree_with_p(alternative):
    sample, _frame = drawn(60)
    rng = np.random.default_rng(6)
    z = {name: (rng.random(60) < rate) * 1.0 for name, rate in (("a", 0.95), ("b", 0.7), ("c", 0.8))}
    alone = stratal.compare(sample, z, simultaneous=False, alternative=alternative)
    for level in (0.8, 0.9, 0.95, 0.99):
        for row, single in zip(
            stratal.compare(sample, z, alternative=alternative, confidence_level=level), alone, strict=True
        ):
            low, high = row["confidence_interval"]
            assert (not low <= 0 <= high) == (row["p_value"] < 1 - level)
            assert row["p_value"] >= single["p_value"] - 1e-3
            if level == 0.95:
                assert low <= single["confidence_interval"][0]
                assert high >= single["confidence_interval"][1]


def test_a_ratio_of_which_nothing_is_known_has_no_upper_end():
    _, frame = drawn(2)
    first, second = np.array([1e-300, 1.0]), np.array([1.0, 1.0])
    with np.errstate(over="raise"):
        low, high = ModelPair(first=first, second=second, frame=frame).ratio().confidence_interval(1 - 1e-9)
    assert low == 0.0
    assert high == np.inf


def test_a_ratio_of_outcomes_with_bounds_ends_where_the_means_own_limits_do():
    """One of twelve right: Student's t on the logarithm alone ended at 10⁴ at 99.9 %, at 6e33 on average."""
    _, frame = drawn(12)
    first, second = np.r_[np.ones(7), np.zeros(5)], np.r_[np.zeros(11), 1.0]
    pair = ModelPair(first=first, second=second, frame=frame, bounds=(0, 1))
    ends = [pair.ratio().confidence_interval(level).high for level in (0.95, 0.999, 1 - 1e-6)]
    assert ends == sorted(ends)
    assert ends[1] < 1 / stats.beta.ppf(0.00025, 1, 12) * 1.01
    assert np.isfinite(ends[2])
    low, high = pair.ratio().confidence_interval(0.9)
    assert pair.ratio().confidence_interval(0.95, alternative="greater").low == low
    assert pair.ratio().confidence_interval(0.95, alternative="less").high == high
