"""Intervals that hold at every moment, for stratified samples labelled in random order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stratal.intervals.betting import (
    betting_interval,
    log_capital,
    random_order,
    sequence_interval,
    stratified_betting_interval,
)


def every_order(values, counts):
    """Yield (stratum, outcomes) of every stratified sample of a tiny population in every order."""
    draws = [list(itertools.permutations(z, n)) for z, n in zip(values, counts, strict=True)]
    labels = np.repeat(np.arange(len(counts)), counts)
    for chosen in itertools.product(*draws):
        for places in set(itertools.permutations(labels.tolist())):
            stratum = np.array(places)
            outcomes = np.empty(len(stratum))
            for h, drawn in enumerate(chosen):
                outcomes[stratum == h] = drawn
            yield stratum, outcomes


@pytest.mark.parametrize(
    ("values", "counts"),
    [(((1.0, 0.0, 0.5), (0.0, 1.0)), (2, 2)), (((1.0, 1.0, 0.0), (0.0, 0.0), (1.0, 0.25)), (1, 1, 1))],
)
@pytest.mark.parametrize("flipped", [False, True])
def test_no_bet_on_the_truth_wins_on_average(values, counts, flipped):
    """Over all samples and orders, capital has mean 1 while all strata have units to come, and never more."""
    values = tuple(tuple(1.0 - z if flipped else z for z in stratum) for stratum in values)
    sizes = np.array([len(z) for z in values])
    truth = float(np.mean(np.concatenate(values)))
    capital, fair = [], []
    for stratum, outcomes in every_order(values, counts):
        order = random_order(stratum, np.ones(len(stratum), bool), sizes, np.array(counts))
        capital.append(np.exp(log_capital(truth, outcomes, order, 0.05)))
        fair.append(order.is_complete)

    means = np.mean(capital, axis=0)
    assert means[0] == pytest.approx(1.0, abs=1e-12)
    assert np.all(means <= 1.0 + 1e-12)
    always = np.minimum.accumulate(np.all(fair, axis=0))
    assert means[always] == pytest.approx(1.0, abs=1e-12)


def test_one_stratum_is_the_confidence_sequence():
    outcomes = np.random.default_rng(3).random(60)
    order = random_order(np.zeros(60, np.int64), np.ones(60, bool), np.array([200]), np.array([80]))

    one = betting_interval(outcomes, 200, 0.025, 0.025, anytime=True)

    assert sequence_interval(outcomes, order, 0.025, 0.025) == pytest.approx(one, abs=1e-9)


def draw(generator, outcomes, sizes, counts, skipped=0.0):
    """Return stratum, answered and outcomes of a stratified sample in random order."""
    stratum = generator.permutation(np.repeat(np.arange(len(sizes)), counts))
    values = np.empty(len(stratum))
    for h, z in enumerate(outcomes):
        values[stratum == h] = generator.permutation(z)[: counts[h]]
    return stratum, generator.random(len(stratum)) >= skipped, values


SIZES, COUNTS = np.array([400, 300, 200, 100]), np.array([12, 12, 18, 18])


@pytest.fixture(scope="module")
def outcomes():
    generator = np.random.default_rng(1)
    return [
        (generator.random(n) < p).astype(float) for n, p in zip(SIZES, (0.97, 0.9, 0.7, 0.4), strict=True)
    ]


@pytest.mark.parametrize("skipped", [0.0, 0.2])
def test_it_holds_at_every_moment_in_at_least_95_percent(outcomes, skipped):
    generator = np.random.default_rng(2)
    truth, replicates, missed = float(np.mean(np.concatenate(outcomes))), 2000, 0
    for _ in range(replicates):
        stratum, answered, values = draw(generator, outcomes, SIZES, COUNTS, skipped)
        order = random_order(stratum, answered, SIZES, COUNTS)
        above = log_capital(truth, values[answered], order, 0.025).max()
        below = log_capital(1 - truth, 1 - values[answered], order, 0.025).max()
        missed += max(above, below) >= -np.log(0.025)

    assert missed / replicates <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / replicates)


def test_it_is_far_narrower_than_strata_bounded_one_by_one(outcomes):
    generator = np.random.default_rng(4)
    stratum, answered, values = draw(generator, outcomes, SIZES, COUNTS)

    low, high = sequence_interval(values, random_order(stratum, answered, SIZES, COUNTS), 0.025, 0.025)

    apart = stratified_betting_interval(values, stratum, SIZES, 0.025, 0.025, anytime=True)
    assert high - low < 0.6 * (apart[1] - apart[0])


def test_rounds_follow_each_other(outcomes):
    """A second round that goes to one stratum alone: capital keeps a mean of at most 1."""
    generator = np.random.default_rng(5)
    truth = float(np.mean(np.concatenate(outcomes)))
    capital = []
    for _ in range(3000):
        pools = [generator.permutation(z) for z in outcomes]
        first, second = np.array([4, 4, 4, 4]), np.array([0, 0, 0, 10])
        strata = [generator.permutation(np.repeat(np.arange(4), counts)) for counts in (first, second)]
        stratum = np.concatenate(strata)
        values = np.empty(len(stratum))
        for h, pool in enumerate(pools):
            values[stratum == h] = pool[: np.sum(stratum == h)]
        order = random_order(
            stratum, np.ones(len(stratum), bool), SIZES, np.array([first, second]),
            np.repeat([0, 1], [16, 10]),
        )  # fmt: skip
        capital.append(np.exp(log_capital(truth, values, order, 0.05)))

    last = np.array(capital)[:, -1]
    assert last.mean() <= 1 + 3 * last.std() / np.sqrt(len(last))


def test_a_census_is_certain(outcomes):
    sizes = np.array([3, 2])
    order = random_order(np.array([0, 1, 0, 1, 0]), np.ones(5, bool), sizes, sizes)

    assert sequence_interval(np.ones(5), order, 0.025, 0.025) == pytest.approx((1.0, 1.0))
    assert sequence_interval(np.zeros(5), order, 0.025, 0.025) == pytest.approx((0.0, 0.0))


def test_no_label_says_nothing():
    order = random_order(np.empty(0, np.int64), np.empty(0, bool), np.array([5]), np.array([2]))

    assert sequence_interval(np.empty(0), order, 0.025, 0.025) == (0.0, 1.0)
