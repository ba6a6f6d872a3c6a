"""Coverage of the latest level and its changes, in generated waves whose level moves."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.over_time import coverage
from tests.tiers import cells, sized


@pytest.mark.parametrize(
    ("scenario", "labels"),
    cells(
        [("slide", 25), ("jump", 100), ("drifting judge", 50), ("seasonal", 50), ("no drift", 200)],
        fast=("drifting judge",),
    ),
)
def test_intervals_of_level_and_changes_hold_together(scenario, labels):
    draws = sized(10, 200)
    share = coverage(scenario, labels, draws, seed=3)["together"]

    assert share >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / draws)
