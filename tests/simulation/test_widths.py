"""Intervals of planned samples are no wider than those of simple random samples with no smaller errors."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import widths
from tests.tiers import sized

DRAWS = sized(40, 400)


def sharp_scores():
    """Return a population whose scores separate the classes almost perfectly."""
    rng = np.random.default_rng(5)
    positive = rng.random(widths.UNITS) < 0.3
    score = 1.0 / (1.0 + np.exp(-(rng.normal(size=widths.UNITS) + 4.0 * (positive - 0.5))))
    return widths.Pool(name="sharp", outcome=positive.astype(np.float64), proxy=score)


@pytest.fixture(scope="module")
def pools():
    return {pool.name: pool for pool in (*widths.generated(), sharp_scores())}


@pytest.mark.parametrize(
    ("population", "estimand", "n", "largest"),
    [
        # With one label of other pairs, or of the other class, for each stratum: 3.9, 2.2, 2.7 and 2.7.
        ("numbers, close judge", "pearson", 100, 1.05),
        ("ratings, close judge", "pearson", 100, 1.05),
        ("sharp", "average_precision", 300, 1.5),
        ("sharp", "auc", 300, 1.5),
        # With the correlation of exclusive cells for sums of graded outcomes: 1.29 and 2.05.
        ("ratings", "slice mean", 300, 1.05),
        ("numbers", "slice mean", 300, 1.05),
    ],
)
def test_metrics_of_planned_samples_are_no_wider(pools, population, estimand, n, largest):
    designs = (widths.SIMPLE, widths.PLANNED)
    simple, planned = widths.measure(pools[population], n, designs, [estimand], DRAWS)

    assert planned.width <= largest * simple.width
    assert min(simple.coverage, planned.coverage) >= sized(0.85, 0.93)
