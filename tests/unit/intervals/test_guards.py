"""Effective trials: textbook numbers where there are any, and never too many."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.evidence import Evidence
from stratal.intervals.guards import (
    UnitMoments,
    Variances,
    remaining_share,
    smoothed_moments,
    stratum_rates,
)
from stratal.intervals.stratified import stratified_clopper_pearson
from stratal.population.summary import StratumSummary


def at_shrunk_rates(found):
    """The same at the shrunk rates, the value moved with them."""
    value = found.value + np.sum(found.shares * (found.shrunk_rates - found.rates))
    return dataclasses.replace(found, value=value, rates=found.shrunk_rates, shrunk_rates=None)


def trials(unit, weighting, share=1.0, *, uses_proxy=False) -> float:
    plain = float(weighting.covariance(unit[:, None])[0, 0])
    return Evidence(
        value=float(unit.mean()),
        variance=share * plain,
        population_part=0.0,
        degrees_of_freedom=1.0,
        outcome="bounded",
        bounds=(0.0, 1.0),
        z=unit,
        residuals=unit,
        offset=0.0,
        weighting=weighting,
        uses_proxy=uses_proxy,
    ).trials


@pytest.mark.parametrize("ones", [0, 1, 10, 20])
def test_a_simple_random_sample_is_worth_its_size(ones):
    unit = (np.arange(20) < ones).astype(float)
    weighting = StratifiedWeighting(stratum=np.zeros(20, dtype=int), sizes=np.array([40]))

    assert trials(unit, weighting) == pytest.approx(20 / (1 - 20 / 40))


def test_all_right_in_all_strata_is_worth_what_the_weights_allow():
    stratum = np.repeat([0, 1], [4, 16])
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([1000, 1000]))

    assert trials(np.ones(20), weighting) == pytest.approx(1 / np.sum(weighting.variance_factors), rel=0.3)


def test_graded_outcomes_are_worth_more():
    weighting = StratifiedWeighting(stratum=np.zeros(40, dtype=int), sizes=np.array([10**6]))
    graded = np.tile([0.4, 0.6], 20)

    assert trials(graded, weighting) > 3 * trials(np.round(graded), weighting)


def test_a_proxy_counts_for_more_with_more_informative_labels():
    few, many = (remaining_share(1.0, 0.2, information) for information in (4.0, 400.0))

    assert 0.2 < many < few < 1
    assert remaining_share(1.0, 2.0, 10.0) == 2.0
    assert remaining_share(0.0, 0.0, 10.0) == 1.0
    assert remaining_share(1.0, float("nan"), 10.0) == 1.0


def test_smoothing_fades():
    for n in (10, 10_000):
        unit = (np.arange(n) < 0.9 * n).astype(float)
        weighting = StratifiedWeighting(stratum=np.zeros(n, dtype=int), sizes=np.array([10**8]))
        smooth = smoothed_moments(UnitMoments.of(unit, weighting))
        assert smooth.mean == pytest.approx(0.9, abs=2 / np.sqrt(n) / 4)
        assert 0 < smooth.spread < 0.25


def test_what_a_proxy_adds_is_set_against_what_the_outcome_may_have():
    """A nearly constant sample shows next to no variance of its own: the share would have no bound."""
    assert remaining_share(1e-4, 2e-2, 10.0, variance_with_unseen=1e-2) == pytest.approx(2.99)
    assert remaining_share(1e-2, 2e-2, 10.0, variance_with_unseen=1e-3) == pytest.approx(2.0)


def test_rounding_is_no_evidence():
    """Labels that agree left a variance of 1e-33, and the difference estimator's interval was [0, 1]."""
    stratum = np.repeat([0, 1], [2, 6])
    z, proxy = np.repeat([0.0, 1.0], [2, 6]), np.r_[0.1, 0.11, 0.9, 0.91, 0.9, 0.91, 0.9, 0.91]
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([700, 300]))
    summary = StratumSummary(
        sizes=weighting.sizes,
        proxy_means=np.array([[0.105], [0.905]]),
        proxy_covariances=np.full((2, 1, 1), 2.5e-5),
    )
    plain, difference = (
        estimate_mean(
            z, proxy[:, None], weighting, summary, stratum=stratum, estimator=estimator
        ).confidence_interval()
        for estimator in ("horvitz-thompson", "difference")
    )

    assert difference.width == pytest.approx(plain.width, rel=0.02)
    assert difference.width < 0.75


def rates_after_a_round(unit, stratum, sizes, *, label_based=True):
    weighting = StratifiedWeighting(
        stratum=np.asarray(stratum), sizes=np.asarray(sizes), has_adaptive_allocation=label_based
    )
    labels = UnitMoments.of(unit, weighting)
    value = float(weighting.weights @ unit)
    return stratum_rates(value, labels, Variances())


def test_limits_allow_for_shrunk_rates_where_labels_decided_the_sizes():
    """By what ½ a label of either kind amounts to, 1 where one stratum makes up all of the variance.

    The rates themselves stay: both are allowed for, and 10½/11 of the shift where ten labels differ.
    """
    unit = np.r_[np.zeros(190), np.ones(10), np.ones(100)]
    stratum = np.repeat([0, 1], [200, 100])
    found = rates_after_a_round(unit, stratum, [10**6, 10**3])
    each = 0.5 * 2.0 * np.mean([200 / (200 + k) for k in (16, 64, 256)]) * 10.5 / 11

    assert found.rates.tolist() == [0.05, 1.0]
    assert found.shrunk_rates[0] == pytest.approx((10 + each) / (200 + 2 * each), abs=1e-4)
    assert float(at_shrunk_rates(found).value) > 0.05
    plain = rates_after_a_round(unit, stratum, [10**6, 10**3], label_based=False)
    assert plain.shrunk_rates is None


def test_sizes_that_follow_labels_only_widen():
    """Limits are the farther of those with and without the shift, alone .83 to .92 of rare classes."""
    unit = np.r_[np.zeros(190), np.ones(10), np.ones(98), np.zeros(2)]
    stratum = np.repeat([0, 1], [200, 100])
    found = rates_after_a_round(unit, stratum, [10**6, 10**4])
    plain = rates_after_a_round(unit, stratum, [10**6, 10**4], label_based=False)
    low, high = stratified_clopper_pearson(found, 0.025, 0.025)
    plain_low, plain_high = stratified_clopper_pearson(plain, 0.025, 0.025)
    moved_low, moved_high = stratified_clopper_pearson(at_shrunk_rates(found), 0.025, 0.025)

    assert low == pytest.approx(min(plain_low, moved_low), rel=1e-12) == plain_low
    assert high == pytest.approx(max(plain_high, moved_high), rel=1e-12) == moved_high > plain_high


def test_a_stratum_that_is_labelled_whole_or_hardly_at_all_is_not_shrunk():
    unit = np.r_[np.ones(50), 0.0, 1.0, np.zeros(40), np.ones(60)]
    stratum = np.repeat([0, 1, 2], [50, 2, 100])
    found = rates_after_a_round(unit, stratum, [50, 5_000, 5_000]).shrunk_rates

    assert found[0] == 1.0
    assert found[1] == 0.5
    assert 0.6 > found[2] > 0.595
