"""All differences of several models."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.estimands import Differences


@pytest.fixture
def pool():
    rng = np.random.default_rng(5)
    classes = np.array(["x", "y"])
    truth = rng.integers(0, 2, 700)
    answers = {
        name: classes[np.where(rng.random(700) < p, truth, 1 - truth)]
        for name, p in (("a", 0.9), ("b", 0.85), ("c", 0.8))
    }
    return stratal.Population.from_arrays(groups=answers), classes[truth]


def test_labels_of_all_units_that_differ_know_every_difference(pool):
    population, truth = pool
    columns = next(population.batches(("a", "b", "c")))
    means = {name: float(np.mean(values == truth)) for name, values in columns.items()}
    estimand = Differences(("a", "b", "c"))
    strata = stratal.strata.stratify(population, "neyman", 2, influence=estimand.influence(population))
    budget = int(strata.sizes[~strata.is_known].sum())
    sample = stratal.designs.Stratified(
        strata=strata, allocation=stratal.strata.allocate(strata, budget)
    ).draw(population, 1)

    table = stratal.estimate(sample, {int(unit): str(truth[unit]) for unit in sample.ids}, estimand=estimand)

    assert [tuple(row.label.values()) for row in table] == [("a", "b"), ("a", "c"), ("b", "c")]
    for row in table:
        expected = means[row.label["a"]] - means[row.label["b"]]
        assert row.value == pytest.approx(expected, abs=1e-12)
        assert row.standard_error == 0.0


def test_the_rows_are_those_of_compare_where_every_unit_may_be_drawn(pool):
    population, truth = pool
    sample = stratal.designs.SimpleRandom(budget=90).draw(population, seed=3)
    labels = {int(unit): str(truth[unit]) for unit in sample.ids}
    z = {name: (sample.groups[name] == truth[sample.ids]).astype(float) for name in ("a", "b", "c")}
    expected = stratal.compare(sample, z, bounds=(0.0, 1.0))

    table = stratal.estimate(sample, labels, estimand="differences:a,b,c")

    for row, wanted in zip(table, expected, strict=True):
        assert row.value == pytest.approx(wanted.value, abs=1e-12)
        assert row.standard_error == pytest.approx(wanted.standard_error, rel=1e-9)
        assert [*row.confidence_interval()] == pytest.approx([*wanted.confidence_interval()], abs=1e-9)
