"""Models that differ by the smallest detectable difference are distinguished in four draws of five."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.planning.entry_points import plan_for_rate

REPLICATES = 1500


def test_two_models_that_differ_by_it_are_told_apart_in_four_draws_of_five():
    plan = plan_for_rate(20_000, 0.8, budget=400)
    generator = np.random.default_rng(5)
    half = plan.detectable_difference / 2
    z = generator.random((REPLICATES, 400, 2)) < np.array([0.8 + half, 0.8 - half])
    difference = z[..., 0].astype(float) - z[..., 1]
    t = difference.mean(axis=1) / (
        difference.std(axis=1, ddof=1) / math.sqrt(400) * math.sqrt(1 - 400 / 20_000)
    )
    power = np.mean(np.abs(t) > 1.96)

    assert power == pytest.approx(0.8, abs=4 * math.sqrt(0.8 * 0.2 / REPLICATES))


def test_it_is_the_quantiles_times_the_standard_error_of_a_difference():
    """The second model's is that of a simple random sample, where that is larger."""
    plan = plan_for_rate(20_000, 0.8, budget=400)
    own, random = (replace(plan.recommended, expected_standard_error=error) for error in (0.03, 0.04))
    plan = replace(plan, recommended=own, designs=(random,))

    assert plan.detectable_difference == pytest.approx((1.959964 + 0.841621) * 0.05, rel=1e-6)


def test_a_census_tells_everything_and_an_unknown_proxy_nothing():
    population = stratal.Population.from_arrays(proxy=np.linspace(-3, 3, 50), scaled=False)

    assert stratal.plan(population, 20).detectable_difference is None
    assert plan_for_rate(50, 0.8, budget=50).detectable_difference == 0.0


def test_more_labels_tell_smaller_differences():
    found = [plan_for_rate(20_000, 0.8, budget=n).detectable_difference for n in (50, 100, 400, 1600)]

    assert found == sorted(found, reverse=True)
