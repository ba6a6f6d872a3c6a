from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import stratal
from stratal.designs import StratifiedWeighting
from stratal.designs.clusters import ClusterWeighting
from stratal.estimands import RatioOfMeans
from stratal.metrics.functions_of_means import FiellerInterval


def simple(n, size=10**7):
    return StratifiedWeighting(stratum=np.zeros(n, dtype=int), sizes=np.array([size]))


def test_symmetrical_labels_have_the_textbook_interval():
    """Without skewness it is the root of (ā − ρb̄)² = t² (v_a − 2ρ v_ab + ρ² v_b) (Cochran, eq. 6.18)."""
    a = np.array([-2.0, -1, 0, 1, 2, -2, -1, 0, 1, 2]) + 10
    b = np.array([1.0, 0, -1, 0, 1, -1, 0, 1, 0, -1]) + 4
    found = FiellerInterval.of(a, b, simple(10))
    v = np.cov(a, b) / 10 * (1 - 10 / 10**7)
    t2 = stats.t.ppf(0.975, found.degrees_of_freedom) ** 2
    roots = np.roots([4.0**2 - t2 * v[1, 1], -2 * (40.0 - t2 * v[0, 1]), 100.0 - t2 * v[0, 0]])
    assert found.ends(0.95, "two-sided") == pytest.approx(sorted(roots), rel=1e-9)


def test_scale_and_reversed_roles():
    rng = np.random.default_rng(0)
    a, b = rng.poisson(3, 40) * 1.0, 1.0 + rng.poisson(6, 40)
    low, high = FiellerInterval.of(a, b, simple(40)).ends(0.9, "two-sided")
    scaled = FiellerInterval.of(1000 * a, b, simple(40)).ends(0.9, "two-sided")
    turned = FiellerInterval.of(b, a, simple(40)).ends(0.9, "two-sided")
    assert scaled == pytest.approx((1000 * low, 1000 * high))
    # The set of ratios not distinguished is one; only the degrees of freedom could differ.
    assert turned == pytest.approx((1 / high, 1 / low), rel=1e-9)


def test_a_denominator_near_zero_has_no_upper_end():
    b = np.array([0.0, 0, 0, 1, 0, 0, 0, 1])
    low, high = FiellerInterval.of(np.ones(8), b, simple(8)).ends(0.95, "two-sided")
    assert 0 < low < 4
    assert high == np.inf


@pytest.mark.parametrize("kind", ["clustered answers", "rare errors"])
def test_ten_labels_cover(kind):
    """Linearised at the estimate they covered .886 and .926; 3,000 draws know .94 to ± .0043."""
    rng = np.random.default_rng(5)
    inside, told = 0, 0
    for _ in range(3000):
        if kind == "clustered answers":
            b = 1.0 + rng.geometric(0.1, 10)
            a, truth = rng.binomial(b.astype(int), rng.beta(4, 1, 10)) * 1.0, 0.8
        else:
            b = np.exp(rng.normal(4, 0.8, 10))
            a, truth = rng.poisson(0.005 * b) * 1.0, 0.005
        if not a.any():
            continue
        told += 1
        inside += not FiellerInterval.of(a, b, simple(10))._excludes_ratios(np.array([truth]), 0.025)[0]
    assert inside / told > 0.94 - 3 * 0.0043


def test_strata_and_bounds_of_what_cannot_be_negative():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 400))
    sample = stratal.plan(population, budget=40).draw(seed=2)
    rng = np.random.default_rng(3)
    words = 1.0 + rng.poisson(2, sample.size)
    errors = np.zeros(sample.size)
    errors[0] = 1
    labels, asked = {"errors": errors, "words": words}, RatioOfMeans(["errors", "words"])
    estimate = stratal.estimate(sample, labels, estimand=asked)
    low, high = estimate.confidence_interval()
    assert 0 == low < high < 0.2
    assert estimate.p_value(0.5) < 0.01
    beyond = stratal.estimate(sample, labels, estimand=asked, target="superpopulation")
    wider = beyond.confidence_interval()
    assert wider.high > high


def test_numbers_near_the_largest_do_not_overflow():
    rng = np.random.default_rng(5)
    a, b = rng.random(30), 1.0 + rng.random(30)
    plain = FiellerInterval.of(a, b, simple(30)).ends(0.95, "two-sided")
    with np.errstate(over="raise"):
        found = FiellerInterval.of(a * 1e110, b, simple(30)).ends(0.95, "two-sided")
    assert np.array(found) / 1e110 == pytest.approx(np.array(plain), rel=1e-6)


def test_a_denominator_on_both_sides_of_zero_has_no_ends():
    """Ratios of the other sign are possible too: the set is no interval, and no end is told."""
    b = np.array([-3.0, 5, -2, 4, -4, 3, -1, 2])
    a = np.full(8, 10.0) + np.arange(8)
    found = FiellerInterval.of(a, b, simple(8))
    assert found.ends(0.95, "two-sided") == (-np.inf, np.inf)
    assert np.isfinite(FiellerInterval.of(a, b + 20, simple(8)).ends(0.95, "two-sided")).all()


def test_one_side_with_half_the_error_has_the_same_end():
    rng = np.random.default_rng(0)
    a, b = rng.poisson(3, 40) * 1.0, 1.0 + rng.poisson(6, 40)
    found = FiellerInterval.of(a, b, simple(40))
    low, high = found.ends(0.9, "two-sided")
    assert found.ends(0.95, "greater")[0] == low
    assert found.ends(0.95, "less")[1] == high


def in_clusters(drawn, clusters=10**6):
    """Return the weighting of clusters of one unit each, drawn at random from very many."""
    return ClusterWeighting(
        cluster=np.arange(drawn), drawn=np.ones(drawn, int), clusters=clusters, size=float(clusters)
    )


@pytest.mark.parametrize("others", [1, 7, 60])
def test_drawn_clusters_without_a_unit_of_the_group_do_not_change_a_ratio(others):
    numerator = np.array([3.0, 5, 2, 8, 4, 6])
    denominator = np.array([10.0, 14, 9, 20, 12, 17])
    alone = FiellerInterval.of(numerator, denominator, in_clusters(6)).ends(0.95, "two-sided")

    padding = np.zeros(others)
    among = FiellerInterval.of(
        np.append(numerator, padding), np.append(denominator, padding), in_clusters(6 + others)
    ).ends(0.95, "two-sided")

    # The skewness of the others' zeros is all that is left of them.
    assert among == pytest.approx(alone, rel=0.05)


def test_a_null_at_a_bound_is_inside_an_interval_that_ends_there():
    sample = stratal.designs.SimpleRandom(budget=4).draw(
        stratal.Population.from_arrays(proxy=np.full(10**5, 0.5)), seed=1
    )
    labels = {"errors": [0.0, 0, 0, 1], "words": [3.0, 5, 9, 4]}
    estimate = stratal.estimate(sample, labels, estimand=RatioOfMeans(("errors", "words")))
    assert estimate.confidence_interval(0.95).low == 0.0

    assert estimate.p_value(0.0) > 0.05
    assert estimate.p_value(0.0) == pytest.approx(estimate.p_value(1e-9), rel=0.01)


def test_the_ratio_of_a_census_is_exact():
    population = stratal.Population.from_arrays(proxy=[0.5] * 4)
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)
    labels = {"errors": [0.0, 2, 0, 1], "words": [3.0, 5, 9, 4]}
    estimate = stratal.estimate(
        sample, labels, estimand=RatioOfMeans(("errors", "words")), target="population"
    )

    interval = estimate.confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((3 / 21, 3 / 21))
