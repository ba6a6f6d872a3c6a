"""The region of the second round, and how labels are spread in it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from stratal.strata.region import PilotCells, max_faults, planned_region, total_labels


def test_the_most_faults_are_those_of_clopper_and_pearson():
    allowed = max_faults(200, 0.05, 0.05)

    assert allowed[58] == -1
    assert allowed[59] == 0
    for labels in (93, 150, 200):
        faults = int(allowed[labels])
        assert binom.cdf(faults, labels, 0.05) <= 0.05 < binom.cdf(faults + 1, labels, 0.05)


def pilot(rights):
    return PilotCells(
        sizes=np.full(10, 500),
        scores=np.linspace(0.995, 0.6, 10),
        counts=np.full(10, 10),
        correct_labels=np.asarray(rights, float),
    )


def test_a_score_that_is_worse_than_it_says_has_a_smaller_region():
    good = planned_region(pilot(np.full(10, 10)), 400, 0.05)
    poor = planned_region(pilot([10, 10, 9, 8, 8, 7, 7, 6, 6, 5]), 400, 0.05)

    assert poor < good


def test_labels_are_even_inside_the_region_and_those_of_the_pilot_outside():
    sizes = np.array([100, 300, 600, 1000])
    totals = total_labels(sizes, np.array([5, 15, 30, 50]), 2, 180)

    assert totals.tolist() == [25, 75, 30, 50]
    assert totals.sum() == 180


def test_a_cell_gets_no_more_labels_than_it_has_units():
    totals = total_labels(np.array([10, 40]), np.array([2, 8]), 1, 40)

    assert totals.tolist() == [10, 8]


def test_a_worthless_score_has_a_region_too():
    cells = pilot(np.zeros(10))

    assert 1 <= planned_region(cells, 100, 0.05) <= 10
    assert planned_region(cells, 100, 0.05) == pytest.approx(planned_region(cells, 100, 0.05))
