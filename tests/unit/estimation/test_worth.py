"""The range around the effective sample size: it holds the estimate, narrows with labels, and is honest."""

import numpy as np
import pytest

import stratal
from stratal.estimation.worth import effective_size_interval


@pytest.fixture
def world():
    """5,000 units with a fairly calibrated proxy, and their outcomes."""
    rng = np.random.default_rng(11)
    proxy = rng.beta(3, 1, 5000)
    return stratal.Population.from_arrays(proxy=proxy), (rng.random(5000) < proxy).astype(float)


def ranges(world, budget, draws):
    population, z = world
    plan = stratal.plan(population, budget)
    for seed in range(draws):
        sample = plan.draw(seed=seed)
        found = stratal.estimate(sample, z[sample.ids])
        yield plan, found, effective_size_interval(found)


def test_it_holds_the_estimate_and_narrows_with_labels(world):
    widths = {}
    for budget in (100, 800):
        _, found, (low, high) = next(ranges(world, budget, 1))
        assert low < found.effective_sample_size < high
        widths[budget] = np.log(high / low)
    assert widths[800] < 0.6 * widths[100]


def test_it_holds_the_true_size_about_as_often_as_it_says(world):
    """95 % of 100 draws: at least 89, but for one run in a hundred (binomial)."""
    _, z = world
    held = 0
    for plan, _, (low, high) in ranges(world, 150, 100):
        strata, n_h = plan.strata, plan.allocation.n_h
        squares = np.array([z[strata.codes == h].var(ddof=1) for h in range(strata.n_strata)])
        variance = np.sum(strata.weights**2 * (1 - n_h / strata.sizes) * squares / n_h)
        true = z.var(ddof=1) / (variance + z.var(ddof=1) / len(z))
        held += low <= true <= high
    assert held >= 89


def test_a_higher_level_is_wider(world):
    _, found, (low, high) = next(ranges(world, 100, 1))
    lower, higher = effective_size_interval(found, 0.99)

    assert lower < low < high < higher


def test_a_simple_random_sample_is_worth_itself(world):
    population, z = world
    sample = stratal.SimpleRandom(budget=200).draw(population, seed=7)
    found = stratal.estimate(sample, z[sample.ids], estimator="horvitz-thompson")
    low, high = effective_size_interval(found)

    assert low == pytest.approx(200, abs=2)
    assert high == pytest.approx(200, abs=2)


def test_where_nothing_is_known(world):
    population, z = world
    plan = stratal.plan(population, 40)
    sample = plan.draw(seed=7)
    same = stratal.estimate(sample, [1.0] * 40)
    unequal = stratal.Poisson(budget=40).draw(population, seed=7)
    other = stratal.estimate(sample, z[sample.ids], target="superpopulation")

    assert effective_size_interval(same) is None
    assert effective_size_interval(stratal.estimate(unequal, z[unequal.ids])) is None
    assert effective_size_interval(other) is None
