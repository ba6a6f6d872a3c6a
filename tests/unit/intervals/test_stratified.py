"""Clopper–Pearson's interval in strata: the textbook's for one, and never taken in by agreement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc, betaincinv

from stratal.intervals import stratified, weighted_sum
from stratal.intervals.stratified import StratumRates, _tail, stratified_clopper_pearson
from stratal.planning.interim_widths import interval_of_counts


def rates_of(ones, counts, sizes) -> StratumRates:
    """Return what so many ones (…, H) among n_h labels of N_h units say."""
    ones, counts, sizes = (np.asarray(part, dtype=float) for part in (ones, counts, sizes))
    left = 1 - np.minimum(counts / sizes, 1)
    shares = sizes / sizes.sum(axis=-1, keepdims=True)
    return StratumRates(
        value=np.sum(shares * ones / counts, axis=-1),
        rates=ones / counts,
        counts=counts,
        trials=np.where(left > 0, counts / np.where(left > 0, left, 1), np.inf),
        shares=shares,
    )


def exact_coverage(sizes, rates, counts, level=0.95) -> float:
    """Return the coverage over all samples of two strata."""
    sizes, counts = np.asarray(sizes), np.asarray(counts)
    ones = np.round(sizes * np.asarray(rates)).astype(int)
    grid = np.array([[a, b] for a in range(counts[0] + 1) for b in range(counts[1] + 1)])
    chance = np.prod(
        [stats.hypergeom(sizes[h], ones[h], counts[h]).pmf(grid[:, h]) for h in range(2)], axis=0
    )
    share = (1 - level) / 2
    low, high = stratified_clopper_pearson(rates_of(grid, counts, sizes), share, share)
    truth = ones.sum() / sizes.sum()
    return float(chance @ ((low <= truth + 1e-12) & (truth - 1e-12 <= high)))


@pytest.mark.parametrize(("x", "n"), [(0, 5), (1, 20), (18, 20), (20, 20), (7, 30), (250, 500)])
def test_one_stratum_of_a_large_population_is_clopper_pearsons(x, n):
    expected = stats.binomtest(x, n).proportion_ci(0.95)
    low, high = stratified_clopper_pearson(rates_of([x], [n], [10**13]), 0.025, 0.025)

    assert [expected.low, expected.high] == pytest.approx([float(low), float(high)], abs=1e-7)


@pytest.mark.parametrize("ones", [[9, 9], [3, 6], [10, 10]])
def test_strata_alike_are_one_sample(ones):
    """Two halves with equal rates are a simple random sample, up to the degree of freedom that they cost."""
    together = stats.binomtest(sum(ones), 20).proportion_ci(0.95)
    low, high = stratified_clopper_pearson(rates_of(ones, [10, 10], [10**9, 10**9]), 0.025, 0.025)

    assert float(low) == pytest.approx(together.low, abs=0.03)
    assert float(high) == pytest.approx(together.high, abs=0.03)


@pytest.mark.parametrize(
    ("sizes", "rates", "counts"),
    [
        ([18_000, 2_000], [0.97, 0.9], [60, 60]),  # .841 once
        ([19_000, 1_000], [0.97, 0.7], [50, 50]),  # .781 once
        ([16_000, 4_000], [0.97, 0.9], [30, 90]),
        ([19_600, 400], [0.99, 0.7], [2, 98]),
        ([19_600, 400], [0.9, 0.6], [5, 95]),
        ([18_000, 2_000], [0.9, 0.6], [50, 50]),
        ([10_000, 10_000], [0.5, 0.995], [50, 50]),
        ([1979, 20], [0.97, 0.95], [9, 20]),
        ([50, 149], [0.893, 0.912], [50, 147]),
    ],
)
def test_a_dominant_stratum_with_few_labels(sizes, rates, counts):
    assert exact_coverage(sizes, rates, counts) >= 0.94


def test_the_limit_has_the_tail_that_it_is_named_after():
    """At the lower limit's own rates the exact tail of the weighted sum is close to α/2."""
    counts, weights = np.array([20, 30]), np.array([0.7, 0.3])
    ones = np.array([17, 22])
    low, _ = stratified_clopper_pearson(rates_of(ones, counts, weights * 10**9), 0.025, 0.025)
    # The rates of greatest likelihood under Σ W p = low, by brute force over the line.
    first = np.linspace(0.3, 0.999, 20_000)
    second = (float(low) - weights[0] * first) / weights[1]
    inside = (second > 0) & (second < 1)
    likelihood = sum(
        ones[h] * np.log(p[inside]) + (counts[h] - ones[h]) * np.log1p(-p[inside])
        for h, p in enumerate((first, second))
    )
    best = np.array([first[inside], second[inside]])[:, np.argmax(likelihood)]
    grid = np.array([[a, b] for a in range(21) for b in range(31)])
    chance = stats.binom(20, best[0]).pmf(grid[:, 0]) * stats.binom(30, best[1]).pmf(grid[:, 1])
    reached = (grid / counts) @ weights >= (ones / counts) @ weights - 1e-12

    assert 0.018 < chance @ reached < 0.03


def test_limits_are_nested_and_turn_with_the_outcome():
    rates = rates_of([[9, 30], [10, 12]], [10, 40], [300, 700])
    turned = rates_of([[1, 10], [0, 28]], [10, 40], [300, 700])
    before = np.array([[1.0, 1.0], [0.0, 0.0]])
    for level in (0.5, 0.8, 0.95, 0.999):
        share = (1 - level) / 2
        low, high = stratified_clopper_pearson(rates, share, share)
        other_low, other_high = stratified_clopper_pearson(turned, share, share)

        assert low == pytest.approx(1 - other_high, abs=1e-9)
        assert high == pytest.approx(1 - other_low, abs=1e-9)
        assert np.all(low <= before[0])
        assert np.all(high >= before[1])
        before = np.array([low, high])


def test_replicates_with_their_own_counts_are_the_same_one_by_one():
    ones, counts = np.array([[9, 3, 0], [4, 8, 5]]), np.array([[10, 5, 4], [5, 9, 5]])
    sizes = np.array([100, 50, 5])
    together = stratified_clopper_pearson(rates_of(ones, counts, sizes[None] + 0 * counts), 0.05, 0.05)
    for r in range(2):
        alone = stratified_clopper_pearson(rates_of(ones[r], counts[r], sizes), 0.05, 0.05)

        assert [float(part[r]) for part in together] == pytest.approx(
            [float(part) for part in alone], abs=1e-9
        )


def test_a_census_leaves_nothing_open():
    low, high = stratified_clopper_pearson(rates_of([3, 4], [5, 5], [5, 5]), 0.025, 0.025)

    assert float(low) == pytest.approx(0.7)
    assert float(high) == pytest.approx(0.7)


def test_an_open_side_is_a_bound():
    rates = rates_of([9, 30], [10, 40], [300, 700])

    assert float(stratified_clopper_pearson(rates, 0.0, 0.05)[0]) == 0.0
    assert float(stratified_clopper_pearson(rates, 0.05, 0.0)[1]) == 1.0
    of_units = replace(
        rates, units=1000.0, is_binary=True, lowest_mean=np.array(0.039), highest_mean=np.array(0.989)
    )
    assert float(stratified_clopper_pearson(of_units, 0.0, 0.05)[0]) == 0.0
    assert float(stratified_clopper_pearson(of_units, 0.05, 0.0)[1]) == 1.0


def test_a_limit_takes_one_or_two_incomplete_betas(monkeypatch):
    """Thousands of replicates are simulated at the price of Clopper & Pearson's own interval."""
    rng = np.random.default_rng(7)
    sizes, counts = np.full(10, 1000), np.full(10, 10)
    ones = rng.binomial(10, np.linspace(0.5, 0.95, 10), (500, 10))
    evaluations = []

    def counted(a, b, x):
        evaluations.append(len(a))
        return betainc(a, b, x)

    monkeypatch.setattr(weighted_sum, "betainc", counted)

    stratified_clopper_pearson(rates_of(ones, counts, sizes), 0.025, 0.025)

    assert 0 < sum(evaluations) / (2 * len(ones)) < 1.5


@pytest.fixture
def looks(monkeypatch):
    """What the tail is looked at with, look by look."""
    found = []

    def look(*arguments):
        found.append(arguments)
        return _tail(*arguments)

    monkeypatch.setattr(stratified, "_tail", look)
    return found


def test_the_search_begins_near_its_root(looks):
    """At a thousand labels the first price is right to a hundredth: three looks settle both limits."""
    counts, ones = np.full(10, 100), np.round(100 * np.linspace(0.55, 0.95, 10))
    stratified_clopper_pearson(rates_of(ones, counts, np.full(10, 10_000)), 0.025, 0.025)

    assert 0 < len(looks) <= 3


@pytest.mark.parametrize("counts", [[10, 9], [20, 29]])
def test_a_limit_of_0_ends_the_search(looks, counts):
    """The estimate is within half a step of 0, which the sum reaches at any price: no price is the last."""
    low, _ = interval_of_counts(np.array([9000, 1000]), counts, [0, 0], 0.95, label_based=True)

    assert float(low) == 0.0
    assert 0 < len(looks) < 25


@pytest.mark.parametrize("few", [False, True])
def test_of_thousands_of_strata_a_hundred_steps_say_what_all_do(monkeypatch, few):
    """One stratum may hold a third of the units: its step is the largest, and is among those looked at."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(20, 400, 2_100)
    sizes[7] = sizes.sum() // 2 if few else sizes[7]
    counts = rng.integers(2, 6, 2_100)
    found = rates_of(rng.binomial(counts, 0.9), counts, sizes)
    some = [float(end) for end in stratified_clopper_pearson(found, 0.025, 0.025)]
    monkeypatch.setattr(weighted_sum, "_MAX_STEPS", 10**6)
    monkeypatch.setattr(weighted_sum, "_MAX_PAIRS", 2_100**2)

    every = [float(end) for end in stratified_clopper_pearson(found, 0.025, 0.025)]

    assert some == pytest.approx(every, abs=1e-7)


@pytest.mark.parametrize(("ones", "count"), [(1, 20), (0, 50), (19, 20), (300, 700)])
def test_one_stratum_of_a_large_population_is_clopper_and_pearsons_to_nine_digits(ones, count):
    rates = StratumRates(
        value=np.array(ones / count),
        rates=np.array([ones / count]),
        counts=np.array([float(count)]),
        trials=np.array([float(count)]),
        shares=np.ones(1),
    )
    low, high = stratified_clopper_pearson(rates, 0.025, 0.025)

    assert float(low) == pytest.approx(
        0.0 if ones == 0 else betaincinv(ones, count - ones + 1, 0.025), abs=1e-9
    )
    assert float(high) == pytest.approx(betaincinv(ones + 1, count - ones, 0.975), abs=1e-9)


def test_the_factor_multiplies_all_trials():
    """As much as half the labels of half the units do; `trials` alone would stand for another f_h."""
    rates = rates_of([90, 300], [100, 400], [3000, 7000])
    halved = stratified_clopper_pearson(rates_of([45, 150], [50, 200], [1500, 3500]), 0.025, 0.025)
    found = stratified_clopper_pearson(replace(rates, factor=np.array(0.5)), 0.025, 0.025)

    assert np.array(found) == pytest.approx(np.array(halved), abs=1e-3)


def test_constrained_rates_solve_their_equation_at_prices_of_either_sign():
    """ones/p − (labels − ones)/(1 − p) = μ W_h."""
    ones, labels = np.array([[3.0], [8.0]]), np.array([[10.0], [20.0]])
    weights, price = np.array([[0.3], [0.7]]), np.array([40.0, -25.0, 0.0])
    p = stratified._constrained_rates(np.broadcast_to(ones, (2, 3)), labels, weights, price)

    assert ones / p - (labels - ones) / (1 - p) == pytest.approx(weights * price, abs=1e-9)
    assert stratified._constrained_rates(ones, labels, weights, price[1:2])[:, 0] == pytest.approx(p[:, 1])


def test_an_estimate_above_what_can_be_has_the_limit_of_the_most_that_can():
    """Half of the units are known to be 0, and λ ẑ moves the value above the half that is left."""
    rates = StratumRates(
        value=np.array(0.95),
        rates=np.array([0.0, 1.0]),
        counts=np.array([50.0, 20.0]),
        trials=np.array([np.inf, 20.0]),
        shares=np.array([0.5, 0.5]),
    )
    low = float(stratified_clopper_pearson(rates, 0.025, 0.025)[0])
    at_most = float(stratified_clopper_pearson(replace(rates, value=np.array(0.5)), 0.025, 0.025)[0])

    assert at_most <= low < 0.95
    assert at_most == pytest.approx(0.5 * 0.025 ** (1 / 20), rel=0.02)
