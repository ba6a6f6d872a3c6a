"""Pooled levels: a limited correction, and an interval for a stated largest change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from tests.tiers import sized

import stratal
from stratal.errors import InputError
from stratal.waves.pooled import (
    MAX_CORRECTION,
    MAX_CORRECTION_TO_MIDDLE,
    biased_quantile,
    bounded_level,
    limited_level,
    pool_levels,
)

LABELS = np.full(8, 50.0)


def drawn(levels, n, series, seed=0):
    """Return estimates and standard errors (S, T) of simple random samples."""
    rng = np.random.default_rng(seed)
    shares = rng.binomial(n, levels, (series, len(levels))) / n
    return shares, np.sqrt(shares * (1 - shares) / (n - 1))


@pytest.mark.parametrize(
    ("levels", "largest"),
    [
        ([0.9] * 8, 0.93),
        ([0.9] * 7 + [0.8], 1.03),
        ([0.8] * 7 + [0.95], 1.05),
        (np.linspace(0.95, 0.83, 8), 0.97),
    ],
)
def test_the_error_is_hardly_larger_than_the_waves_own(levels, largest):
    values, errors = drawn(np.array(levels), 50, sized(4_000, 40_000))
    pooled = limited_level(values, errors, LABELS, (0.0, 1.0))
    ratio = np.sqrt(np.mean((pooled - levels[-1]) ** 2) / np.mean((values[:, -1] - levels[-1]) ** 2))

    assert ratio <= largest


def test_the_correction_is_limited_and_smaller_towards_the_middle():
    values = np.array([[0.9] * 7 + [0.7], [0.9] * 7 + [0.99]])
    errors = np.full((2, 8), 0.03)
    correction = limited_level(values, errors, LABELS, (0.0, 1.0)) - values[:, -1]

    assert correction == pytest.approx([MAX_CORRECTION * 0.03, -MAX_CORRECTION_TO_MIDDLE * 0.03])
    agreeing = limited_level(np.full(8, 0.9), np.full(8, 0.03), LABELS, (0.0, 1.0))
    assert agreeing == pytest.approx(0.9)


def test_the_quantile_of_a_biased_normal_estimate():
    bias = np.array([0.0, 0.3, 1.0, 4.0])
    quantile = biased_quantile(bias, 0.95)

    assert ndtr(quantile - bias) - ndtr(-quantile - bias) == pytest.approx(np.full(4, 0.95))
    assert quantile[0] == pytest.approx(1.959964)


@pytest.mark.parametrize("step", [-0.01, 0.0, 0.01])
def test_the_interval_of_a_stated_largest_change_holds_and_is_shorter(step):
    levels = 0.9 + step * np.arange(-7, 1)
    series = sized(4_000, 40_000)
    values, errors = drawn(levels, 50, series)
    means, half_widths = bounded_level(values, errors, LABELS, 0.01, 0.95, (0.0, 1.0))
    coverage = np.mean(np.abs(means - levels[-1]) <= half_widths)

    assert coverage >= 0.94 - 3 * np.sqrt(0.05 / series)
    assert half_widths.mean() < 0.8 * 1.96 * np.sqrt(0.09 / 50)


def test_without_a_change_all_waves_count_and_with_a_large_one_only_the_latest():
    values = np.array([0.8, 0.85, 0.9])
    errors = np.full(3, 0.05)
    labels = np.full(3, 40.0)
    means = [
        float(bounded_level(values, errors, labels, change, 0.95, (0.0, 1.0))[0]) for change in (0.0, 1.0)
    ]

    assert means == pytest.approx([0.85, 0.9])
    half_width = bounded_level(values, errors, labels, 1.0, 0.95, (0.0, 1.0))[1]
    assert 1.96 * 0.05 < half_width < 1.25 * 1.96 * 0.05


def waves(shares):
    pairs = []
    for week, share in enumerate(shares):
        population = stratal.Population.from_arrays(ids=[f"{week}-{item}" for item in range(1000)])
        sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=week)
        pairs.append((sample, [1] * share + [0] * (100 - share)))
    return pairs


def test_a_trend_prints_the_pooled_level_with_its_assumption():
    plain = stratal.trend(waves([90, 92, 91, 90]))
    bounded = stratal.trend(waves([90, 92, 91, 90]), max_change=0.01)

    assert plain.pooled.confidence_interval is None
    assert 0.9 < plain.pooled.value < 0.91
    assert "more precise if the level changes slowly" in str(plain)
    low, high = bounded.pooled.confidence_interval
    assert high - low < 0.8 * (0.96 - 0.83)
    assert "if the level changes by at most 1 points" in str(bounded)
    assert bounded.to_dict()["pooled"]["max_change"] == 0.01
    assert stratal.trend(waves([90, 92])).pooled is None


def test_a_stated_change_that_the_waves_exceed_is_a_note():
    notes = stratal.trend(waves([95, 95, 94, 60, 62]), max_change=0.01).notes

    assert any("between wave 3 and wave 4" in note for note in notes)
    assert not stratal.trend(waves([90, 92, 91, 90]), max_change=0.01).notes


def test_what_cannot_be_pooled_is_refused():
    assert (
        pool_levels(
            np.ones(3), np.full(3, 0.1), LABELS[:3], max_change=None, confidence_level=0.95, bounds=None
        )
        is None
    )
    with pytest.raises(InputError, match="3 waves or more"):
        stratal.trend(waves([90, 92]), max_change=0.01)
    with pytest.raises(InputError, match="is out of range"):
        stratal.trend(waves([90, 92, 91]), max_change=-1)
