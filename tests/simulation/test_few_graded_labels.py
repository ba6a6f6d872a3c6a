"""Graded outcomes with few labels: coverage in strata and slices, and of every population near a census."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.graded import compositions, least_coverage, slice_coverage, strata_coverage, wins
from tests.tiers import sized

DRAWS = sized(1000, 4000)
# Four standard errors of a coverage of .94.
LEAST = 0.94 - 4 * np.sqrt(0.94 * 0.06 / DRAWS)


@pytest.mark.parametrize(("n_strata", "n_h"), [(50, 1), (25, 2), (50, 2)])
def test_few_labels_in_each_of_many_strata(n_strata, n_h):
    """The smoothing of 0 and 1 lost half of the variance: coverage was .55 to .90."""
    rates = np.linspace(0.25, 0.75, n_strata)
    coverage, width = strata_coverage(wins(rates, 0.6), np.array([0.0, 0.5, 1.0]), n_h, DRAWS, seed=7)

    assert coverage >= LEAST
    assert width < 1.35


@pytest.mark.parametrize("labels", [1, 4])
def test_slices_of_few_labels(labels):
    """Of a uniform outcome .39 and .89 of the intervals held."""
    draws = sized(60, 2000)
    outcome = (np.arange(200) + 0.5) / 200
    coverage, _ = slice_coverage(outcome, labels, draws, seed=3)

    assert coverage >= 0.94 - 2 * np.sqrt(0.94 * 0.06 / draws)


@pytest.mark.parametrize(("size", "labels"), [(12, 10), (8, 5), (20, 17)])
def test_every_population_of_three_values_near_a_census(size, labels):
    """With one 0, one 1 and ten .9 of which ten are labelled, .848 of the intervals held, exactly."""
    assert least_coverage(np.array([0.0, 0.9, 1.0]), size, labels, (0.0, 1.0)) >= 0.94


def test_the_compositions_of_a_whole_number():
    assert compositions(2, 2).tolist() == [[0, 2], [1, 1], [2, 0]]
