from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError

N = 5_000


def drawn(z, budget=100, seed=1):
    population = stratal.Population.from_arrays(ids=range(len(z)))
    sample = stratal.designs.SimpleRandom(budget=budget).draw(population, seed=seed)
    return sample, {int(unit): float(z[int(unit)]) for unit in sample.ids}


def test_the_mean_within_limits_is_that_of_a_bounded_outcome_and_says_its_bias():
    z = np.random.default_rng(1).lognormal(0, 1.5, N)
    sample, labels = drawn(z)
    estimate = stratal.estimate(sample, labels, limits=(0.0, 10.0))
    values = np.array(list(labels.values()))

    assert estimate.value == pytest.approx(np.minimum(values, 10).mean())
    assert (estimate.outcome, estimate.bounds) == ("bounded", (0.0, 10.0))
    assert f"{int((values > 10).sum())} of 100 labels" in estimate.notes[0]
    assert f"{np.minimum(values, 10).mean() - values.mean():+.4g}" in estimate.notes[0]


def test_its_interval_holds_where_that_of_the_mean_without_limits_does_not():
    """Normal outcomes with 1 % outliers of + 50, 30 labels: three samples in four show no outlier."""
    random = np.random.default_rng(2)
    z = random.normal(size=N) + 50.0 * (random.random(N) < 0.01)
    truth = np.clip(z, -4, 4).mean()
    plain = held = 0
    for seed in range(100):
        sample, labels = drawn(z, 30, seed)
        interval = stratal.estimate(sample, labels, limits=(-4.0, 4.0)).confidence_interval()
        held += interval.low <= truth <= interval.high
        without = stratal.estimate(sample, labels, outcome="unbounded").confidence_interval()
        plain += without.low <= z.mean() <= without.high

    assert held >= 92
    assert plain <= 70


def test_units_that_no_label_was_like_are_said():
    sample, labels = drawn(np.ones(N) * 2.0 + np.arange(N) % 3)
    note = stratal.estimate(sample, labels, limits=(0.0, 10.0)).notes[0]

    assert "0 of 100 labels" in note
    assert "2.9%" in note


@pytest.mark.parametrize("limits", [(1.0, 0.0), (0.0, np.inf), (1.0,)])
def test_limits_that_are_none_are_refused(limits):
    sample, labels = drawn(np.ones(N))
    with pytest.raises(InputError, match="limits must be two finite numbers"):
        stratal.estimate(sample, labels, limits=limits)
