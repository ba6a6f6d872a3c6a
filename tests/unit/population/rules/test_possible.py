from __future__ import annotations

import numpy as np
import pytest

from stratal.population.expressions import Agree, ByLevel, Cells, Number
from stratal.population.rules import Categories, Crossed, CutPoints, Derived, Everything, possible_levels

ANSWERS = Categories(column="answer", levels=("a", "b", "c"), codes=np.array([0, 1, 1]))
HALVES = CutPoints(column="proxy", cuts=np.array([0.5]))


def of(rule, levels=("a", "b", "c")):
    return possible_levels(rule, "answer", levels).astype(int).tolist()


@pytest.mark.parametrize(
    "rule", [Everything(), HALVES, Categories(column="other", levels=("a", "b"), codes=np.array([0, 1]))]
)
def test_a_rule_of_something_else_says_nothing(rule):
    assert np.all(possible_levels(rule, "answer", ("a", "b")))


def test_merged_categories_hold_each_of_theirs():
    assert of(ANSWERS) == [[1, 0, 0, 0], [0, 1, 1, 0]]


def test_a_level_that_is_not_asked_about_is_another():
    assert of(ANSWERS, ("a", "b")) == [[1, 0, 0], [0, 1, 1]]


def test_strata_within_a_category_are_of_its_levels():
    rule = Crossed(categories=ANSWERS, inner=(HALVES, Everything()))

    assert of(rule) == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]]


def derived(cells):
    inside = Crossed(
        categories=Categories(column="cell", levels=("x", "y"), codes=np.array([0, 1])),
        inner=(Everything(), CutPoints(column="influence", cuts=np.array([0.5]))),
    )
    return Derived(inner=inside, cells=cells, influence=Number(name="p"))


def test_cells_of_the_answer_are_known_and_the_rest_is_what_they_leave():
    is_a = ByLevel(name="answer", levels=("a",), values=(1.0,))

    found = of(derived(Cells(names=("x", "y"), tests=(is_a,))))

    assert found == [[1, 0, 0, 0], [0, 1, 1, 1], [0, 1, 1, 1]]


def test_cells_of_other_columns_say_nothing():
    agree = Agree(names=("answer", "old"))

    assert np.all(of(derived(Cells(names=("x", "y"), tests=(agree,)))))
