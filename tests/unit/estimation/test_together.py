"""Several estimands as one: their cells crossed, and what is known to all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stratal
from stratal.estimation.crossed_cells import NOTHING_OPEN, SOMETHING_OPEN, crossed_cells
from stratal.estimation.estimand import as_estimand


@pytest.fixture(scope="module")
def pool():
    """Two models over twelve classes, and the truth."""
    rng = np.random.default_rng(0)
    classes = [f"c{k}" for k in range(12)]
    new = rng.choice(classes, 3000)
    old = np.where(rng.random(3000) < 0.8, new, rng.choice(classes, 3000))
    truth = np.where(rng.random(3000) < 0.7, new, rng.choice(classes, 3000))
    population = stratal.Population.from_arrays(
        proxy=rng.beta(7, 3, 3000), groups={"new": new, "old": old, "g": rng.choice(list("uvw"), 3000)},
        predicted="new",
    )  # fmt: skip
    return population, truth


def crossed(population, texts):
    return crossed_cells([as_estimand(text).influence(population) for text in texts])


def test_answers_of_two_classes_at_once_are_no_cell(pool):
    population, _ = pool
    texts = [f"f1:c{k}" for k in range(11)]
    cells, known = crossed(population, texts)
    columns = next(population.batches(("new",)))
    found = cells.assign(columns)

    assert known == ()
    assert cells.names == (*(f"answer c{k}" for k in range(11)), "other answers")
    for k in range(11):
        assert np.array_equal(found == f"answer c{k}", columns["new"] == f"c{k}")


@pytest.mark.parametrize(
    "texts",
    [
        ["precision:c0", "precision:c1"],
        ["difference:new,old", "precision:c0"],
        ["precision:c0", "precision:c0,predicted=old"],
        ["difference:new,old", "mean@g:u,predicted=new"],
        ["difference:new,old", "win_rate:new,old", "negative_predictive_value:c3"],
    ],
)
def test_what_was_left_out_for_all_is_known_to_each(pool, texts):
    """Such lists were planned, and then refused to be estimated."""
    population, truth = pool
    plan = stratal.plan(population, 300, estimand=texts)
    sample = plan.draw(seed=1)
    rows: Any = stratal.estimate(sample, truth[sample.ids])
    census = stratal.designs.SimpleRandom(budget=3000).draw(population, seed=1)
    whole = stratal.estimate(census, truth[census.ids], estimand=texts)

    assert plan.strata.is_known.any()
    assert sample.n_h[plan.strata.is_known].sum() == 0
    for row, true in zip(rows, whole, strict=True):
        assert row.value == pytest.approx(true.value, abs=5 * row.standard_error + 1e-9)


def test_very_many_cells_become_two_that_are_known_or_open(pool):
    population, _ = pool
    texts = [f"precision:c{k},predicted={model}" for k in range(12) for model in ("new", "old")]
    cells, known = crossed(population, [*texts[:16], "difference:new,old"])
    columns = next(population.batches(("new", "old")))
    answered = [f"c{k}" for k in range(8)]
    irrelevant = ~np.isin(columns["new"], answered) & ~np.isin(columns["old"], answered)

    assert cells.names == (NOTHING_OPEN, SOMETHING_OPEN)
    assert known == (NOTHING_OPEN,)
    assert np.array_equal(
        cells.assign(columns) == NOTHING_OPEN, irrelevant & (columns["new"] == columns["old"])
    )


def test_where_nothing_is_known_to_one_there_is_one_cell(pool):
    population, _ = pool
    texts = [f"f1:c{k},predicted={model}" for k in range(12) for model in ("new", "old")]

    assert crossed(population, texts)[0].names == ("all",)


@pytest.mark.parametrize("target", ["population", "superpopulation"])
def test_one_label_of_three_models_leaves_every_difference_open(target):
    sample = stratal.designs.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5] * 50), 7)
    comparisons = stratal.compare(sample, {"a": [1], "b": [0], "c": [1]}, target=target)

    for row in comparisons:
        low, high = row.confidence_interval()
        assert low < 0 < high
    assert set(comparisons.ranks().values()) == {(1, 3)}
