"""Correlations of scores with which nearly all labels agree: the labelled units may contain no exception."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.arrays import FloatArray
from stratal.designs import Design
from stratal.metrics import associations

UNITS = 2000
LABELS = 100
DRAWS = sized(200, 1000)


def close_judge(exceptions: int) -> tuple[FloatArray, FloatArray]:
    """Return scores and labels, 1 above a score of one half, except for some units."""
    rng = np.random.default_rng(7)
    score = 1.0 / (1.0 + np.exp(-1.5 * rng.normal(size=UNITS)))
    right = (score > 0.5).astype(np.float64)
    chosen = rng.choice(UNITS, exceptions, replace=False)
    right[chosen] = 1.0 - right[chosen]
    return score, right


@pytest.mark.parametrize("design", ["random", "planned", "two rounds"])
@pytest.mark.parametrize("estimand", ["pearson", "spearman"])
@pytest.mark.parametrize("exceptions", [20, 100])
def test_exceptions_that_no_label_shows(design, estimand, exceptions):
    """Of planned samples, .71 and .92 of the intervals of Pearson's correlation held."""
    score, right = close_judge(exceptions)
    truth, _ = getattr(associations, estimand)(score, right, np.full(UNITS, 1.0 / UNITS))
    population = stratal.Population.from_arrays(proxy=score)
    first = LABELS // 2 if design == "two rounds" else LABELS
    planned: Design
    if design == "random":
        planned = stratal.designs.SimpleRandom(budget=first)
    else:
        planned = stratal.plan(population, first).design
    held = 0
    for seed in range(DRAWS):
        sample = planned.draw(population, seed=seed)
        if design == "two rounds":
            sample = stratal.next_round(sample, right[sample.ids], additional=LABELS - first)
        low, high = stratal.estimate(sample, right[sample.ids], estimand=estimand).confidence_interval()
        held += low <= truth <= high

    assert held / DRAWS >= 0.94 - 2 * np.sqrt(0.94 * 0.06 / DRAWS)
