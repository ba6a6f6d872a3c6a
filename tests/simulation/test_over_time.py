"""Coverage of the latest level and its changes, in generated waves whose level moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.over_time import (
    ROW_LEVEL,
    change_ends,
    outcomes_of,
    plan_for,
    replicated_wave,
    trend_coverage,
)
from tests.tiers import cells, sized

import stratal


@pytest.mark.parametrize(
    ("scenario", "labels"),
    cells(
        [("slide", 25), ("jump", 100), ("drifting judge", 50), ("seasonal", 50), ("no drift", 200)],
        fast=("drifting judge",),
    ),
)
def test_intervals_of_level_and_changes_hold_together(scenario, labels):
    draws = sized(10, 200)
    share = trend_coverage(scenario, labels, draws, seed=3)["together"]

    assert share >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / draws)


def test_the_kernels_of_the_page_give_the_intervals_of_a_trend():
    waves = []
    replicated = []
    for number, rate in enumerate((0.9, 0.86, 0.93)):
        outcomes = outcomes_of(np.random.default_rng(number), rate)
        sample = plan_for(50).draw(seed=number)
        rows = sample.ids.astype(np.int64)
        question = replace(sample.question, row_base=None)
        ids = np.array([f"{number}-{row}" for row in rows.tolist()])
        waves.append((replace(sample, ids=ids, question=question, population=None), outcomes[rows]))
        ones = np.bincount(sample.stratum, outcomes[rows], minlength=len(sample.n_h))[None]
        replicated.append(replicated_wave(plan_for(50), outcomes, ones, 1, number))
    level, previous, first = stratal.trend(waves, outcome="binary").rows

    assert np.ravel(replicated[2].ends[ROW_LEVEL]) == pytest.approx(level.confidence_interval, abs=1e-9)
    for row, reference in ((previous, replicated[1]), (first, replicated[0])):
        assert np.ravel(change_ends(replicated[2], reference)) == pytest.approx(
            row.confidence_interval, abs=1e-9
        )
