"""Quantiles: coverage of simple random samples by enumeration, and the same limits from every path."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.exact_cells import quantile_coverage
from tests.tiers import sized

import stratal
from stratal.designs import StratifiedWeighting
from stratal.intervals.hypergeometric import quantile_ranks
from stratal.regression.quantiles import quantile, weighted_quantile_estimate


def simple(n, size):
    return StratifiedWeighting(stratum=np.zeros(n, dtype=np.int64), sizes=np.array([size]))


@pytest.mark.parametrize("fraction", [0.0005, 0.5, 0.8])
def test_every_size_and_probability_covers(fraction):
    """With limits of a share at p̂ = q, q = .01 and 380 labels covered .891."""
    for n in range(20, 401, sized(95, 1)):
        found = quantile_coverage(n, round(n / fraction), np.arange(1, 100) / 100)
        assert found.min() >= 0.95 - 1e-9, n


def test_ranks_are_the_acceptance_region_of_a_count():
    assert quantile_ranks(400, 10**8, 0.01, 0.025, 0.025) == (1, 9)
    assert quantile_ranks(20, 20, 0.5, 0.025, 0.025) == (10, 10)
    assert quantile_ranks(5, 10**6, 0.5, 0.025, 0.025) == (0, 6)
    assert quantile_ranks(400, 10**8, 0.01, 0.0, 0.05) == (0, 9)


@pytest.mark.parametrize(
    ("n", "size", "probability"), [(40, 10**6, 0.1), (40, 50, 0.9), (12, 30, 0.5), (60, 61, 0.02)]
)
def test_ranks_are_where_the_limits_of_the_share_reach_the_probability(n, size, probability):
    """A domain that holds all units takes the general path."""
    z = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
    found = weighted_quantile_estimate(z, probability, simple(n, size))
    general = weighted_quantile_estimate(z, probability, simple(n, size), member=np.ones(n, dtype=bool))
    ranks = np.clip(quantile_ranks(n, size, probability, 0.025, 0.025), 0, n + 1)
    expected = np.r_[-np.inf, np.arange(1.0, n + 1), np.inf][ranks]

    assert [*found.confidence_interval()] == expected.tolist()
    assert [*general.confidence_interval()] == expected.tolist()
    for alternative in ("two-sided", "less", "greater"):
        low, high = found.confidence_interval(0.9, alternative=alternative)
        for null in z[:8].tolist():
            inside = low <= null <= high
            assert (found.p_value(null, alternative=alternative) > 0.1) == inside, (alternative, null)


def test_a_complement_has_the_mirrored_interval():
    z = np.random.default_rng(1).normal(size=70)
    low, high = weighted_quantile_estimate(z, 0.205, simple(70, 900)).confidence_interval()
    below, above = weighted_quantile_estimate(-z, 0.795, simple(70, 900)).confidence_interval()

    assert (low, high) == (-above, -below)


def test_open_limits_are_the_bounds_of_the_outcome():
    z = np.array([3.0, 4.0, 5.0])
    by_weights = weighted_quantile_estimate(z, 0.5, simple(3, 500), bounds=(1.0, 5.0))
    fitted = quantile(z, 0.5, weighting=simple(3, 500), bounds=(1.0, 5.0), estimator="classical")
    for found in (by_weights, fitted):
        low, high = found.confidence_interval()
        assert 1.0 <= low <= found.value <= high <= 5.0
        assert 0 < found.standard_error < np.inf


@pytest.mark.parametrize("labels", [[4.0] * 30, [1.0] * 29 + [5.0], [3.0, 5.0], [2.0]])
@pytest.mark.parametrize("probability", [0.01, 0.5, 0.99])
def test_a_standard_error_is_positive_and_finite_while_units_are_unlabelled(labels, probability):
    weighting = simple(len(labels), 200)
    found = weighted_quantile_estimate(np.array(labels), probability, weighting, bounds=(1.0, 5.0))

    assert 0 < found.standard_error < 4.0
    unbounded = weighted_quantile_estimate(np.array(labels), probability, weighting)
    assert np.isnan(unbounded.standard_error) or 0 < unbounded.standard_error < np.inf


def test_labels_without_bounds_that_agree_have_an_interval_and_no_standard_error():
    population = stratal.Population.from_arrays(ids=range(900))
    sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=1)
    found = stratal.estimate(sample, [4.0] * 60, estimand="quantile:.5")

    assert tuple(found.confidence_interval()) == (4.0, 4.0)
    assert np.isnan(found.standard_error)


def test_the_bounds_of_the_sample_are_used():
    population = stratal.Population.from_arrays(proxy=np.linspace(1, 5, 900), bounds=(1, 5))
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    labels = np.random.default_rng(1).uniform(2, 4, 20)
    found = stratal.estimate(sample, labels, estimand="quantile:.01")

    assert found.confidence_interval().low == 1.0
    with pytest.raises(stratal.LabelError, match="outside"):
        stratal.estimate(sample, labels, estimand="quantile:.01", bounds=(3, 5))


def test_strata_whose_labels_lie_on_one_side_leave_the_others_open():
    """Two strata, the quantile within the larger: only its labels count, and few of them say little."""
    stratum = np.repeat([0, 1], [4, 40])
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([9000, 1000]))
    z = np.r_[1.0, 2.0, 3.0, 4.0, np.linspace(10, 20, 40)]
    low, high = weighted_quantile_estimate(z, 0.4, weighting).confidence_interval()

    assert low == -np.inf
    assert high >= 4.0
