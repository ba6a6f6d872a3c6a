from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiers import cells

import stratal
from stratal.planning.stratum_minimums import cell_share_minimums
from stratal.population.rules import cells_of

F1 = "f1:match,probability=score"
RECALL = "recall:match,probability=score"


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(2)
    odds = -6 + 3 * rng.standard_normal(20_000)
    true = np.where(rng.random(20_000) < 1 / (1 + np.exp(-odds)), "match", "other")
    population = stratal.Population.from_arrays(
        proxy={"score": 1 / (1 + np.exp(-odds))},
        groups={"answer": np.where(odds > 0, "match", "other")},
        predicted="answer",
    )
    return population, true


def least_share(strata, n_h):
    """Return the least n_h over the proportional share among the strata of the same answer."""
    cells = cells_of(strata.rule)
    used = ~strata.is_known
    labels, sizes = (np.bincount(cells, np.where(used, part, 0)) for part in (n_h, strata.sizes))
    return float(np.min(n_h[used] / strata.sizes[used] / (labels / np.maximum(sizes, 1))[cells[used]]))


@pytest.mark.parametrize(
    "asked", [F1, RECALL, "precision:match,probability=score", "mcc", "balanced_accuracy", [F1, RECALL]]
)
@pytest.mark.parametrize("budget", cells([100, 1000], fast=[100]))
def test_no_label_of_a_planned_metric_weighs_far_more_than_others_of_its_answer(pool, asked, budget):
    """Neyman's rule alone leaves strata .05 to .3 of their proportional share."""
    plan = stratal.plan(pool[0], budget, estimand=asked)

    matters = int(plan.strata.sizes[~plan.strata.is_known].sum())
    assert int(plan.allocation.n_h.sum()) == min(budget, matters)
    assert least_share(plan.strata, plan.allocation.n_h) > 0.4  # of the labels that the answer has then


@pytest.mark.parametrize("asked", [F1, [F1, RECALL]])
def test_so_it_is_in_every_round(pool, asked):
    population, true = pool
    sample = stratal.plan(population, 200, estimand=asked).draw(seed=1)
    larger = stratal.next_round(sample, true[sample.ids], additional=200)

    assert larger.size == 400
    assert np.all(larger.n_h >= sample.n_h)
    assert least_share(larger.design.strata, larger.n_h) > 0.4


def test_half_widths_of_several_are_still_reached(pool):
    plan = stratal.plan(pool[0], half_width=[0.1, 0.12], estimand=[F1, RECALL])

    assert least_share(plan.strata, plan.allocation.n_h) > 0.4
    assert plan.budget == int(plan.allocation.n_h.sum())
    for part in plan.parts:
        assert part.expected_half_width <= part.wanted_half_width * (1 + 1e-9)


@given(
    sizes=st.lists(st.integers(5, 500), min_size=2, max_size=8),
    seed=st.integers(0, 10_000),
)
def test_the_floor_never_asks_for_more_labels_than_there_are(sizes, seed):
    rng = np.random.default_rng(seed)
    sizes = np.array(sizes)
    cells = rng.integers(0, 2, len(sizes))
    n_h = rng.integers(1, sizes + 1)
    drawn = rng.integers(0, n_h + 1)
    known = np.zeros(len(sizes), dtype=bool)

    found = cell_share_minimums(sizes, cells, n_h, drawn, known)

    assert np.all(drawn <= found)
    assert np.all(found <= sizes)
    assert found.sum() <= n_h.sum()


@pytest.mark.parametrize("labels", range(1, 8))
def test_the_floor_uses_all_labels_that_drawn_units_leave(labels):
    """Half of the share of the second stratum is more than the labels that are left."""
    sizes = np.array([100, 100])
    n_h = np.array([30, labels])

    found = cell_share_minimums(sizes, np.zeros(2, np.int64), n_h, np.array([30, 0]), np.zeros(2, dtype=bool))

    assert found.tolist() == [30, labels]
