from __future__ import annotations

import numpy as np
import pyarrow as pa
from tests.work import calls

from stratal.population import Population
from stratal.population.rules.crossed import Crossed
from stratal.population.rules.rule import Categories, CutPoints


def summarised(levels):
    names = tuple(f"k{number:05}" for number in range(levels))
    table = pa.table({"id": np.arange(levels), "x": np.linspace(0, 1, levels), "g": names})
    population = Population.from_table(table, id="id", proxy="x", groups="g")
    categories = Categories(column="g", levels=names, codes=np.arange(levels))
    inner = tuple(CutPoints(column="x", cuts=np.array([0.5])) for _ in names)
    summary, work = calls(population.summarise, Crossed(categories=categories, inner=inner))
    assert summary.sizes.sum() == levels
    return work


def test_the_work_of_a_fine_category_grows_with_its_levels_alone():
    summarised(50)
    few, many = summarised(250), summarised(1000)

    assert many < 5 * few


def test_the_pictures_of_the_levels_need_no_expression_for_each():
    def pictures(levels):
        names = [f"k{number:05}" for number in range(levels)]
        table = pa.table({"id": np.arange(levels), "x": np.linspace(0, 1, levels), "g": names})
        population = Population.from_table(table, id="id", proxy="x", groups="g")
        found, work = calls(population.distributions, "g")
        assert len(found) == levels
        return work

    pictures(50)
    assert (pictures(600) - pictures(100)) / 500 < 300
