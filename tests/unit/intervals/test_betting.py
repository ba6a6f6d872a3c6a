"""Betting intervals: what is certain, what is refused, and that they hold."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import sized

from stratal.designs import PoissonWeighting, StratifiedWeighting
from stratal.errors import InputError
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.betting import betting_interval, stratified_betting_interval


def sequence(unit, size, level=0.95):
    """Return the narrowest bounds (n,), (n,) so far after each label."""
    error = (1.0 - level) / 2.0
    steps = [betting_interval(unit[: t + 1], size, error, error, anytime=True) for t in range(len(unit))]
    low, high = np.array(steps).T
    return np.maximum.accumulate(low), np.minimum.accumulate(high)


def test_never_outside_what_is_certain():
    rng = np.random.default_rng(1)
    for size in (10, 11, 40):
        unit = rng.random(10)
        low, high = betting_interval(unit, size, 0.025, 0.025)
        assert unit.sum() / size <= low + 1e-12
        assert high <= (unit.sum() + size - 10) / size + 1e-12


def test_a_census_is_certain():
    unit = np.array([0.0, 1, 1, 0.5])

    assert pytest.approx(betting_interval(unit, 4, 0.025, 0.025)) == (0.625, 0.625)


def test_more_labels_are_narrower_and_open_sides_open():
    rng = np.random.default_rng(2)
    z = (rng.random(400) < 0.8).astype(float)
    widths = [np.diff(betting_interval(z[:n], 1000, 0.025, 0.025))[0] for n in (20, 100, 400)]

    assert widths == sorted(widths, reverse=True)
    assert betting_interval(z, 1000, 0.05, 0.0)[1] == 1.0
    assert betting_interval(z, 1000, 0.0, 0.05)[0] == 0.0


def test_sequence_is_monotone_and_wider_than_for_one_n():
    rng = np.random.default_rng(3)
    z = (rng.random(80) < 0.7).astype(float)
    low, high = sequence(z, 500)
    fixed = betting_interval(z, 500, 0.025, 0.025)

    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) <= 0)
    assert high[-1] - low[-1] > 0.9 * (fixed[1] - fixed[0])


def test_coverage_without_replacement_at_all_times():
    """Nominal 80 %: the share of sequences that ever miss is at most .2 plus 3 standard errors."""
    rng = np.random.default_rng(4)
    z = (np.arange(60) < 45).astype(float)
    missed, sequences = 0, sized(50, 400)
    for _ in range(sequences):
        low, high = sequence(rng.permutation(z)[:15], 60, 0.8)
        missed += bool(np.any((low > 0.75 + 1e-9) | (high < 0.75 - 1e-9)))

    assert missed / sequences <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / sequences)


def test_stratified_bounds_add_up():
    stratum = np.array([0, 0, 0, 1, 1])
    low, high = stratified_betting_interval(
        np.array([1.0, 0, 1, 1, 0]), stratum, np.array([3, 2]), 0.025, 0.025
    )

    assert pytest.approx((low, high)) == (0.6, 0.6)


def test_designs_that_it_cannot_serve():
    z, stratum = np.array([0.0, 1, 1, 0]), np.array([0, 0, 1, 1])
    nothing = np.zeros((4, 0))
    poisson = PoissonWeighting(inclusion_probability=np.full(4, 0.5), size=8)
    with pytest.raises(InputError, match="simple random sample, or a stratified sample"):
        estimate_mean(z, nothing, poisson, None, stratum=stratum).confidence_interval(method="betting")
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([5, 5]))
    with pytest.raises(InputError, match="of one population"):
        estimate_mean(
            z, nothing, weighting, None, stratum=stratum, target="superpopulation"
        ).confidence_interval(method="betting")
