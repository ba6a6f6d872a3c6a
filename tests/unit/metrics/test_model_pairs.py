from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.tiers import cells, sized

import stratal
from stratal.estimation.estimate import Estimate
from stratal.estimation.outcome_means import estimate_mean
from stratal.estimation.respondents import Respondents
from stratal.metrics.comparison import ModelOutcomes, bounds_of_outcomes


def drawn(n, size=20_000):
    population = stratal.Population.from_arrays(ids=np.arange(size))
    return stratal.designs.SimpleRandom(budget=n).draw(population, seed=4)


def pair_of(sample, first, second, **more):
    everyone = np.ones(sample.size, dtype=bool)
    respondents = Respondents.of(sample, everyone)
    z, models = np.column_stack([first, second]), ("first", "second")
    return ModelOutcomes(
        sample=sample, respondents=respondents, labelled=everyone, z=z, models=models, **more
    )


def pairs_of(kind, rng, n):
    """Two models' outcomes of which the win rate (.923) and the ratio (.840) once covered too little."""
    if kind == "one rarely loses":
        return (rng.random(n) < 0.995) * 1.0, (rng.random(n) < 0.9) * 1.0
    if kind == "ratings that mostly tie":
        first = rng.choice([0, 0.25, 0.5, 0.75, 1], n, p=[0.02, 0.03, 0.05, 0.2, 0.7])
        return first, np.clip(first - rng.choice([0, 0.25, 0.5, 1], n, p=[0.9, 0.05, 0.03, 0.02]), 0, 1)
    first = rng.random(n) * 0.2 + 0.7
    return first, np.where(rng.random(n) < 0.04, 0.0, np.clip(first + 0.05, 0, 1))


@pytest.mark.parametrize(
    "kind",
    cells(
        ["one rarely loses", "ratings that mostly tie", "rarely far worse"],
        fast=("rarely far worse",),
    ),
)
def test_small_samples_cover(kind):
    """Draws of 50; the tolerance is three standard deviations of a coverage of .94."""
    rng = np.random.default_rng(8)
    sample = drawn(50)
    many = pairs_of(kind, rng, 400_000)
    truth = np.mean(many[0]) / np.mean(many[1]), np.mean((many[0] > many[1]) + 0.5 * (many[0] == many[1]))
    inside = np.zeros(2)
    replicates = sized(60, 500)
    for _ in range(replicates):
        first, second = pairs_of(kind, rng, 50)
        found = (
            pair_of(sample, first, second, bounds=(0, 1)).ratio(),
            pair_of(sample, first, second).win_rate(),
        )
        for j, estimate in enumerate(found):
            low, high = estimate.confidence_interval()
            inside[j] += low <= truth[j] <= high
    assert np.all(inside / replicates > 0.94 - 3 * np.sqrt(0.94 * 0.06 / replicates))


def test_the_win_rate_of_right_and_wrong_is_half_the_difference():
    sample = drawn(40)
    rng = np.random.default_rng(3)
    a, b = (rng.random(40) < 0.8) * 1.0, (rng.random(40) < 0.6) * 1.0
    row = stratal.compare(sample, {"a": a, "b": b}).rows()[0]
    found = pair_of(sample, a, b).win_rate()

    assert found.value == pytest.approx(0.5 + row["estimate"] / 2)
    assert found.standard_error == pytest.approx(row["standard_error"] / 2)
    assert row["win_rate"]["confidence_interval"] == pytest.approx([*found.confidence_interval()])


def test_without_ties_the_win_rate_is_a_proportion():
    sample = drawn(30)
    respondents = Respondents.of(sample, np.ones(30, dtype=bool))
    a, b = np.arange(30) % 3 * 1.0, np.ones(30) * 0.5
    wins = estimate_mean(
        (a > b) * 1.0,
        np.zeros((30, 0)),
        respondents.weighting,
        None,
        stratum=respondents.stratum,
        design="simple-random",
    )
    assert isinstance(wins, Estimate)
    found = pair_of(sample, a, b).win_rate()
    assert [*found.confidence_interval()] == pytest.approx([*wins.confidence_interval()], abs=1e-9)


def test_models_that_never_differ_have_a_ratio_of_one_with_an_interval():
    sample = drawn(50)
    right = np.r_[np.ones(45), np.zeros(5)]
    low, high = pair_of(sample, right, right, bounds=(0, 1)).ratio().confidence_interval()
    assert 0.85 < low < 1 < high < 1.17
    with pytest.raises(stratal.InputError, match="all labels agree"):
        pair_of(sample, right, right).ratio().confidence_interval()


def test_a_census_leaves_nothing_open():
    sample = drawn(20, size=20)
    a, b = np.r_[np.ones(15), np.zeros(5)], np.r_[np.ones(12), np.zeros(8)]
    pair = pair_of(sample, a, b, bounds=(0, 1))
    assert [*pair.ratio().confidence_interval()] == pytest.approx([1.25, 1.25])
    assert [*pair.win_rate().confidence_interval()] == pytest.approx([0.575, 0.575])
    assert [*pair.difference().confidence_interval()] == pytest.approx([0.15, 0.15])
    assert bounds_of_outcomes(sample, np.column_stack([a, b])) == (0.0, 1.0)


def test_a_model_that_is_never_right_has_no_ratio():
    found = pair_of(drawn(10), np.ones(10), np.zeros(10), bounds=(0, 1)).ratio()
    assert np.isnan(found.value)
    assert "the mean outcome of a model is 0" in found.notes


def test_the_difference_is_the_row_of_compare():
    sample = drawn(25)
    rng = np.random.default_rng(3)
    a, b = (rng.random(25) < 0.9) * 1.0, (rng.random(25) < 0.8) * 1.0
    row = stratal.compare(sample, {"a": a, "b": b}).rows()[0]
    found = pair_of(sample, a, b, bounds=(0, 1)).difference()

    assert (found.value, found.standard_error) == pytest.approx((row["estimate"], row["standard_error"]))
    assert [*found.confidence_interval()] == pytest.approx(row["confidence_interval"])
    assert found.p_value(0.0) == pytest.approx(row["p_value"], abs=1e-6)
    with pytest.raises(stratal.InputError, match="all labels agree"):
        pair_of(sample, a, a).difference().confidence_interval()


def test_a_difference_of_right_and_wrong_has_the_win_rate_s_interval():
    """In two strata of .8 and .2 with 2 and 8 labels Student's t had one degree of freedom: [−1, 1]."""
    units = stratal.Population.from_arrays(proxy=np.repeat([0.9, 0.6], [8000, 2000]))
    strata = stratal.strata.stratify(units, n_strata=2)
    allocation = stratal.strata.allocate(strata, 10, "equal")
    sample = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(units, seed=2)
    new, old = np.r_[np.ones(8), 0, 1], np.r_[np.ones(7), 0, 1, 0]
    row = stratal.compare(sample, {"new": new, "old": old}).rows()[0]
    low, high = row["confidence_interval"]

    assert [low, high] == pytest.approx([2 * end - 1 for end in row["win_rate"]["confidence_interval"]])
    assert high - low < 1.2


@pytest.mark.parametrize("alternative", cells(["two-sided", "less", "greater"], fast=("two-sided", "less")))
def test_simultaneous_intervals_of_right_and_wrong_are_wider_and_agree_with_p(alternative):
    sample = drawn(60)
    rng = np.random.default_rng(6)
    z = {name: (rng.random(60) < rate) * 1.0 for name, rate in (("a", 0.95), ("b", 0.7), ("c", 0.8))}
    together, alone = (stratal.compare(sample, z, simultaneous=flag) for flag in (True, False))
    for pair, single in zip(together, alone, strict=True):
        p_value = pair.p_value(0.0, alternative=alternative)
        assert p_value >= single.p_value(0.0, alternative=alternative) - 1e-3
        for level in (0.8, 0.9, 0.95, 0.99):
            low, high = pair.confidence_interval(level, alternative=alternative)
            narrow = single.confidence_interval(level, alternative=alternative)
            assert (not low <= 0 <= high) == (p_value < 1 - level)
            assert low <= narrow.low
            assert high >= narrow.high


def test_a_ratio_of_which_nothing_is_known_has_no_upper_end():
    sample = drawn(2)
    first, second = np.array([1e-300, 1.0]), np.array([1.0, 1.0])
    with np.errstate(over="raise"):
        low, high = pair_of(sample, first, second).ratio().confidence_interval(1 - 1e-9)
    assert low == 0.0
    assert high == np.inf


def test_a_ratio_of_outcomes_with_bounds_ends_where_the_means_own_limits_do():
    """One of twelve right: Student's t on the logarithm alone ended at 10⁴ at 99.9 %, at 6e33 on average."""
    first, second = np.r_[np.ones(7), np.zeros(5)], np.r_[np.zeros(11), 1.0]
    pair = pair_of(drawn(12), first, second, bounds=(0, 1))
    ends = [pair.ratio().confidence_interval(level).high for level in (0.95, 0.999, 1 - 1e-6)]
    assert ends == sorted(ends)
    assert ends[1] < 1 / stats.beta.ppf(0.00025, 1, 12) * 1.01
    assert np.isfinite(ends[2])
    low, high = pair.ratio().confidence_interval(0.9)
    assert pair.ratio().confidence_interval(0.95, alternative="greater").low == low
    assert pair.ratio().confidence_interval(0.95, alternative="less").high == high
