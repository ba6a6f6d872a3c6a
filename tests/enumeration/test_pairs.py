"""Differences of two models: every number of wins and losses."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.exact_cells import DIFFERING, difference_coverage, difference_limits, two_models

import stratal
from stratal.intervals.proportion import clopper_pearson


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("n", [3, 5, 10])
def test_differences_cover_at_all_rates(n, known):
    """Where two models always differ, MOVER on wins and losses covered .912 with 5 labels."""
    cells = difference_coverage(n, known=known)

    assert min(cells.values()) >= 0.94


def test_without_ties_the_limits_are_those_of_the_share_of_wins():
    population = two_models(DIFFERING)
    sample = stratal.plan(population, 12, estimand="difference:first,second").draw(seed=1)
    counts, limits = difference_limits(sample, known=True)
    alone = counts.sum(axis=1) == 12
    low, high = clopper_pearson(counts[alone, 0] / 12, 12)

    # Of 2,000 units that differ 12 are labelled, which moves the limits by less than the tolerance.
    expected = DIFFERING * (2 * np.column_stack([low, high]) - 1)
    assert limits[alone] == pytest.approx(expected, abs=0.003 * DIFFERING)
