"""Weighted Clopper–Pearson limits: the exact special case, cells without a label, a census, ratios."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from stratal.intervals.proportion import clopper_pearson
from stratal.thresholds.limits import RegionMean, WeightedTotals, part_limits


def equal_totals(faults, labels, **options):
    weights = np.full((labels, 1), 1.0 / labels)
    return WeightedTotals.of(weights, np.arange(labels) < faults, **options)


@pytest.mark.parametrize("faults", [0, 1, 7, 30])
def test_equal_weights_give_clopper_and_pearsons_limit(faults):
    upper = equal_totals(faults, 30).upper(0.05)[0]
    exact = clopper_pearson(faults / 30, 30, confidence_level=0.95, alternative="less")[1]

    assert upper == pytest.approx(exact, abs=1e-9)


def test_the_p_value_of_equal_weights_is_the_binomial_probability():
    assert equal_totals(2, 80).p_values(0.1)[0] == pytest.approx(binom.cdf(2, 80, 0.1), abs=1e-9)


def test_a_mean_at_the_limit_has_a_p_value_of_one():
    assert equal_totals(8, 80).p_values(0.1)[0] == 1.0


def test_cells_without_a_label_count_as_faults():
    covered = equal_totals(1, 100)
    totals = equal_totals(1, 100, unlabelled=0.03)

    assert totals.upper(0.05)[0] == pytest.approx(covered.upper(0.05)[0] + 0.03)
    assert totals.p_values(0.08)[0] == pytest.approx(covered.p_values(0.05)[0])


def test_no_label_decides_nothing():
    totals = WeightedTotals.of(np.zeros((5, 1)), np.zeros(5))

    assert totals.upper(0.05)[0] == 1.0
    assert totals.p_values(0.5)[0] == 1.0


def test_a_census_has_its_own_mean_as_limit():
    totals = equal_totals(3, 60, variance_reduction=1.0)

    assert totals.upper(0.05)[0] == pytest.approx(0.05)
    assert totals.p_values(0.0501)[0] == 0.0


def test_the_largest_weight_is_that_of_a_cluster():
    weights = np.full((20, 1), 0.05)
    single = WeightedTotals.of(weights, np.zeros(20))
    pairs = WeightedTotals.of(weights, np.zeros(20), cluster=np.arange(20) // 2)

    assert pairs.largest_weight[0] == pytest.approx(2 * single.largest_weight[0])
    assert pairs.upper(0.05)[0] == pytest.approx(
        WeightedTotals.of(weights[:10] * 2, np.zeros(10)).upper(0.05)[0]
    )


def test_a_cluster_that_was_not_drawn_may_lie_in_the_set_with_all_its_units():
    """One unit of each drawn cluster is in the set; a tenth of all clusters have five there, all wrong.

    None of these is among 20 drawn clusters with probability .12, and the set's error is .36.
    """
    inside = (np.arange(100) % 5 == 0)[:, None]
    totals = WeightedTotals.of(inside / 20, np.zeros(100), cluster=np.arange(100) // 5)

    assert totals.upper(0.05)[0] == pytest.approx(1 - 0.05 ** (1 / 4))
    assert totals.p_values(0.2)[0] > 0.12


def test_limits_of_a_part_are_those_of_the_rest_turned_round():
    def mean(faults):
        return RegionMean(
            successes=equal_totals(faults, 50), failures=equal_totals(50 - faults, 50), share=np.array([0.5])
        )

    low, high = part_limits(mean(9), mean(30), 0.05)
    rest_low, rest_high = part_limits(mean(30), mean(9), 0.05)

    assert 0 < low[0] < 9 / 39 < high[0] < 1
    assert rest_low[0] == pytest.approx(1 - high[0])
    assert rest_high[0] == pytest.approx(1 - low[0])


def test_a_part_without_anything_has_a_lower_limit_of_zero():
    part = RegionMean(successes=equal_totals(0, 50), failures=equal_totals(50, 50), share=np.array([0.5]))
    rest = RegionMean(successes=equal_totals(25, 50), failures=equal_totals(25, 50), share=np.array([0.5]))
    low, high = part_limits(part, rest, 0.05)

    assert low[0] == 0.0
    assert 0 < high[0] < 0.3


@pytest.mark.parametrize(("size", "drawn", "ones"), [(2000, 600, 1998), (5000, 1500, 4998), (72, 23, 70)])
def test_limits_of_a_frequent_outcome_hold_in_large_samples(size, drawn, ones):
    """With the correction for finite populations they were passed with probability .09 to .10 at 5 %."""
    counts = np.arange(max(drawn - (size - ones), 0), drawn + 1)
    limits = []
    for count in counts:
        weights = np.full((drawn, 1), 1.0 / drawn)
        totals = WeightedTotals.of(weights, np.arange(drawn) < count, variance_reduction=drawn / size)
        limits.append(totals.upper(0.05)[0])
    passed = np.array(limits) < ones / size - 1e-12

    assert hypergeom(size, ones, drawn).pmf(counts) @ passed <= 0.05
