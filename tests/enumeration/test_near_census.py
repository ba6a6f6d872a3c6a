"""Intervals where most units are labelled: coverage by enumeration, and limits that can be."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.near_census import CLOSE, chances, one_stratum, tiny_strata, two_strata
from scipy.stats import hypergeom

import stratal
from stratal.designs import StratifiedWeighting
from stratal.estimation.domain_means import domain_mean
from stratal.intervals.hypergeometric import largest_count, smallest_count
from stratal.planning.interim_widths import interval_of_counts


def test_limits_are_those_of_the_hypergeometric_test():
    for size, n in ((20, 16), (60, 7), (37, 37), (400, 100)):
        k = np.arange(n + 1)
        whole = np.arange(size + 1)[:, None]
        possible = (whole >= k) & (whole <= k + size - n)
        above = possible & (hypergeom(size, whole, n).sf(k - 1) > 0.025)
        below = possible & (hypergeom(size, whole, n).cdf(k) > 0.025)

        assert smallest_count(k, np.array(n), size, 0.025).tolist() == np.argmax(above, axis=0).tolist()
        last = size - np.argmax(below[::-1], axis=0)
        assert largest_count(k, np.array(n), size, 0.025).tolist() == last.tolist()


def test_one_stratum_of_up_to_60_units():
    """Every number of labels, and of wrong units: with one wrong unit and f = .8 coverage was .80."""
    for size in range(1, 61):
        assert one_stratum(size).min() >= 0.95 - CLOSE, size


@pytest.mark.parametrize("size", [20, 100, 1000, 5000])
def test_one_wrong_unit_where_four_fifths_are_labelled(size):
    n = size * 4 // 5
    low, high = interval_of_counts(np.array([size]), np.array([n]), np.array([[n - 1], [n]]), 0.95)
    truth = 1 - 1 / size
    held = (low <= truth + CLOSE) & (truth <= high + CLOSE)

    assert np.array([0.8, 0.2]) @ held >= 0.95


@pytest.mark.parametrize(("first", "second"), [(1, 8), (3, 12), (5, 5), (8, 10), (12, 12)])
def test_two_strata_of_up_to_12_units(first, second):
    """Every number of labels and of wrong units; all pairs are in benchmarks/near_census.py: least .9418."""
    found = two_strata(first, second)

    assert found.min() >= 0.94
    assert np.mean(found >= 0.95 - CLOSE) > 0.9


def test_the_estimate_has_the_exact_limits_and_no_others():
    population = stratal.Population.from_arrays(ids=np.arange(20))
    sample = stratal.designs.SimpleRandom(budget=16).draw(population, seed=1)
    for wrong in range(4):
        z = np.r_[np.zeros(wrong), np.ones(16 - wrong)]
        found = stratal.estimate(sample, z).confidence_interval()

        assert found.low * 20 == pytest.approx(smallest_count(z.sum(), np.array(16), 20, 0.025))
        assert found.high * 20 == pytest.approx(largest_count(z.sum(), np.array(16), 20, 0.025))
        assert (16 - wrong) / 20 <= found.low
        assert found.high <= (20 - wrong) / 20


def test_a_constant_proxy_under_the_default_plan():
    """The plan has one stratum, and λ nothing to fit."""
    population = stratal.Population.from_arrays(ids=np.arange(100), proxy=np.full(100, 0.9))
    sample = stratal.plan(population, budget=80).draw(seed=1)
    low, high = stratal.estimate(sample, np.r_[0.0, np.ones(79)]).confidence_interval()

    assert low * 100 <= 98
    assert high * 100 == pytest.approx(99)


@pytest.mark.parametrize("size", [20, 100])
def test_ratings_with_one_that_is_not_like_the_others(size):
    """All are 5 but one, which is drawn with probability .8: neither interval may miss the mean."""
    population = stratal.Population.from_arrays(ids=np.arange(size))
    sample = stratal.designs.SimpleRandom(budget=size * 4 // 5).draw(population, seed=1)
    n = sample.size
    for worst in (1.0, 3.0):
        truth = 5 - (5 - worst) / size
        for labels in (np.full(n, 5.0), np.r_[worst, np.full(n - 1, 5.0)]):
            low, high = stratal.estimate(sample, labels, bounds=(1, 5)).confidence_interval()

            assert low - CLOSE <= truth <= high + CLOSE
            least = (labels.sum() + (size - n) * 1.0) / size
            most = (labels.sum() + (size - n) * 5.0) / size
            assert least - CLOSE <= low <= high <= most + CLOSE


def test_slices_with_all_units_but_one_labelled():
    """14 of 15 labelled: the mean is k/15 or (k + 1)/15, and no standard error is 0."""
    weighting = StratifiedWeighting(stratum=np.repeat([0, 1], [14, 24]), sizes=np.array([15, 25]))
    z = np.r_[0.0, np.ones(37)]
    first = domain_mean(z, weighting.stratum == 0, weighting, bounds=(0.0, 1.0))
    second = domain_mean(z, weighting.stratum == 1, weighting, bounds=(0.0, 1.0))

    assert tuple(first.confidence_interval()) == pytest.approx((13 / 15, 14 / 15))
    assert tuple(second.confidence_interval()) == pytest.approx((24 / 25, 1.0))
    assert first.standard_error > 0
    assert second.standard_error > 0


@pytest.mark.parametrize("drawn", [80, 93])
def test_slices_of_a_simple_random_sample_near_a_census(drawn):
    """A slice of 15 of 100 units, one of them wrong: its units in the sample are chance."""
    rng = np.random.default_rng(3)
    z, member = np.ones(100), np.arange(100) < 15
    z[0] = 0.0
    held, draws = 0, 1000
    weighting = StratifiedWeighting(stratum=np.zeros(drawn, np.int64), sizes=np.array([100]))
    known: dict[tuple[int, float], bool] = {}
    for _ in range(draws):
        rows = rng.choice(100, drawn, replace=False)
        key = (int(member[rows].sum()), float(z[rows].sum()))
        if key not in known:
            found = domain_mean(z[rows], member[rows], weighting, bounds=(0.0, 1.0))
            low, high = found.confidence_interval()
            known[key] = low <= 14 / 15 <= high
        held += known[key]

    assert held / draws >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / draws)


def test_chances_are_probabilities():
    assert chances(12, 7).sum(axis=1) == pytest.approx(np.ones(13))


def test_tiny_strata_keep_every_share_under_which_the_labels_are_likely():
    """Of strata of 2, 8 and 2 units with 1, 6 and 1 labels .893 of the intervals held, exactly."""
    assert tiny_strata((2, 8, 2), (1, 6, 1)) >= 0.94
    assert tiny_strata((6, 8, 2), (2, 4, 1)) >= 0.94
