"""The number of units with a property that no label has."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.intervals.unseen_units import max_unseen_units


def test_the_bound_of_unseen_misses_is_the_largest_that_the_labels_allow():
    """By brute force over the rates of two strata."""
    sizes, counts = np.array([1000, 4000]), np.array([40, 60])
    rates = np.linspace(0, 0.2, 2001)
    first, second = np.meshgrid(rates, rates, indexing="ij")
    allowed = counts[0] * np.log1p(-first) + counts[1] * np.log1p(-second) >= np.log(0.025)
    largest = np.max((sizes[0] * first + sizes[1] * second)[allowed])

    assert max_unseen_units(sizes, counts) == pytest.approx(largest, abs=1.0)
    assert max_unseen_units(np.array([50]), np.array([50])) == 0.0
