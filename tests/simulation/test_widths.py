"""Intervals of planned samples are no wider than those of simple random samples with no smaller errors."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import widths
from sklearn.metrics import cohen_kappa_score
from tests.tiers import cells, sized

import stratal

DRAWS = sized(30, 400)


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


def test_intervals_of_kappa_use_how_many_units_have_a_rare_answer(pools):
    """.3 % of the units have the answer: its hits are no more, which 300 labels do not show."""
    designs = (widths.SIMPLE, widths.PLANNED)
    simple, planned = widths.measure(pools["rare class"], 300, designs, ["kappa"], DRAWS)

    # By the labels alone: .38 and .46.
    assert max(simple.width, planned.width) <= 0.22
    assert min(simple.coverage, planned.coverage) >= sized(0.9, 0.94)


def test_intervals_of_kappa_use_which_labels_have_a_rare_answer(pools):
    """Strata without such a label allow for hits and for false alarms, but together only the counted ones."""
    (planned,) = widths.measure(pools["rare class"], 1000, [widths.PLANNED], ["kappa"], sized(20, 200))

    # With upper limits of the hits alone: .12.
    assert planned.width <= 0.107
    assert planned.coverage >= sized(0.85, 0.94)


@pytest.mark.parametrize("missed_rate", cells([0.02, 0.1], fast=[0.1]))
def test_kappa_is_covered_if_every_rare_answer_is_right(missed_rate):
    """The largest kappa that the counted answers allow is the true one."""
    rng = np.random.default_rng(5)
    score = rng.beta(0.5, 5.0, widths.UNITS)
    is_answered = score > np.quantile(score, 0.99)
    is_class = is_answered | (rng.random(widths.UNITS) < missed_rate)
    population = stratal.Population.from_arrays(
        proxy=score, groups={"answer": np.where(is_answered, "1", "0")}
    )
    classes = np.where(is_class, "1", "0")
    kappa = cohen_kappa_score(is_class, is_answered)
    plan = stratal.plan(population, budget=300)
    held = 0
    for seed in range(DRAWS):
        sample = plan.draw(seed)
        low, high = stratal.estimate(
            sample, classes[sample.ids], estimand="kappa:answer"
        ).confidence_interval()
        held += low <= kappa <= high

    assert held / DRAWS >= 0.94 - 2 * np.sqrt(0.94 * 0.06 / DRAWS)
