"""Outcomes on a scale, and what λ leaves: few large residuals, seen and unseen, and no needless width."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import stratal
from stratal.intervals.guards import UnitMoments, Variances, stratum_rates
from stratal.intervals.proportion import poisson_distances
from stratal.intervals.stratified import stratified_clopper_pearson


@pytest.mark.parametrize("jumps", [1, 2, 4, 9, 100])
def test_the_reach_of_seen_jumps_is_garwoods_exact_limit(jumps):
    """A count of k has standard deviation √k and skewness 1/√k."""
    below, above = poisson_distances(1 / np.sqrt(jumps), (0.025, 0.025))

    assert below == 0
    assert above * np.sqrt(jumps) + jumps == pytest.approx(chi2.ppf(0.975, 2 * jumps + 2) / 2)


def test_the_reach_turns_with_the_lean_and_is_open_where_no_error_is_left():
    assert poisson_distances(-0.5, (0.025, 0.025))[0] == poisson_distances(0.5, (0.025, 0.025))[1]
    assert poisson_distances(-0.5, (0.0, 0.05))[0] == 0
    assert [float(reach) for reach in poisson_distances(0.0, (0.025, 0.025))] == [0.0, 0.0]


def test_a_two_valued_proxy_that_erred_on_no_label_may_err_on_others():
    """With errors in one direction only, on 9 % of half the units, .902 of the intervals held."""
    size, n = 20_000, 50
    z = (np.arange(size) % 2).astype(float)
    population = stratal.Population.from_arrays(proxy=z)
    sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed=1)
    low, high = stratal.estimate(sample, z[sample.ids]).confidence_interval()
    missed = 1 - 0.025 ** (1 / n)

    assert 0.5 - missed * 0.75 < low < 0.5 - missed * 0.65
    assert 0.5 + missed * 0.65 < high < 0.5 + missed * 0.75


def test_few_large_residuals_reach_as_far_as_their_count_can():
    """Three of 400 ratings are at the lower bound, where the proxy expects .7; .927 of the intervals held."""
    rng = np.random.default_rng(0)
    size, n = 20_000, 400
    proxy = 0.6 + 0.2 * rng.random(size)
    population = stratal.Population.from_arrays(proxy=proxy)
    sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed=1)
    z = proxy[sample.ids] + 0.001 * rng.standard_normal(n)
    z[:3] = 0.0
    found = stratal.estimate(sample, z, bounds=(0, 1))
    low, high = found.confidence_interval()
    missing = chi2.ppf(0.975, 8) / 2 - 3

    assert found.value - low == pytest.approx(missing * z[3:].mean() / n, rel=0.06)
    assert high - found.value < 0.7 * (found.value - low)


def test_strata_apart_do_not_widen_a_graded_outcome():
    """The spread between strata was mixed into that within: 1.3 times the width at 400 labels."""
    rng = np.random.default_rng(0)
    proxy = rng.beta(4, 2, 20_000)
    z = np.clip(proxy + 0.1 * rng.standard_normal(20_000), 0, 1)
    population = stratal.Population.from_arrays(proxy=proxy)
    sample = stratal.plan(population, budget=400).draw(seed=1)
    found = stratal.estimate(sample, z[sample.ids], bounds=(0, 1))

    assert found.confidence_interval().width == pytest.approx(3.92 * found.standard_error, rel=0.04)


def test_a_scale_whose_labels_are_near_its_bounds_has_nearly_the_interval_of_a_binary_outcome():
    weighting = stratal.designs.StratifiedWeighting(
        stratum=np.repeat([0, 1, 2], 10), sizes=np.array([500, 500, 500])
    )
    z = np.tile(np.r_[np.zeros(3), np.ones(7)], 3)
    binary, scale = (
        stratified_clopper_pearson(
            stratum_rates(0.7, UnitMoments.of(unit, weighting, binary=unit is z), Variances()), 0.025, 0.025
        )
        for unit in (z, np.clip(z, 1e-6, 1 - 1e-6))
    )

    assert scale == pytest.approx(binary, abs=0.01)


LEVELS = (0.5, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9999)


@pytest.mark.parametrize("size", [4, 9, 30])
@pytest.mark.parametrize("unlabelled", [1, 2])
@pytest.mark.parametrize("halves", [0, 1, 2])
@pytest.mark.parametrize("ones", [0, 1])
def test_limits_near_a_census_grow_with_the_level_and_stay_within_what_is_certain(
    size, unlabelled, halves, ones
):
    """The limits of .99 were inside those of .95, and some were outside of the certain range."""
    n = size - unlabelled
    population = stratal.Population.from_arrays(ids=np.arange(size))
    sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed=1)
    labels = np.zeros(n)
    labels[:halves] = 0.5
    labels[halves : halves + ones] = 1.0
    estimate = stratal.estimate(sample, labels, bounds=(0, 1))
    limits = np.array([tuple(estimate.confidence_interval(level)) for level in LEVELS])

    assert np.all(np.diff(limits[:, 0]) <= 1e-12)
    assert np.all(np.diff(limits[:, 1]) >= -1e-12)
    assert np.all(limits[:, 0] >= labels.sum() / size - 1e-12)
    assert np.all(limits[:, 1] <= (labels.sum() + unlabelled) / size + 1e-12)
