"""Several columns of answers in one request: two thresholds of a score, or two models."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import stratal
from stratal.population.expressions import Agree, ByLevel, Cells, NumberColumn
from stratal.population.rules import CELL, Categories, Derived, possible_levels

THRESHOLDS = (0.5, 0.8)
TEXT = ";".join(
    f"{metric}:yes,predicted=at{round(10 * threshold)},probability=score"
    for threshold in THRESHOLDS
    for metric in ("precision", "recall")
)


@cache
def population(thresholds: tuple[float, ...] = THRESHOLDS) -> stratal.Population:
    score = np.random.default_rng(1).uniform(size=3000)
    answers = {f"at{round(10 * cut)}": np.where(score >= cut, "yes", "no") for cut in thresholds}
    ids = [f"u{k}" for k in range(len(score))]
    return stratal.Population.from_arrays(ids=ids, proxy={"score": score}, groups=answers)


@cache
def sample() -> stratal.Sample:
    return stratal.plan(population(), budget=400, estimand=TEXT).draw(seed=3)


def labels() -> list[str]:
    chance = np.random.default_rng(2).uniform(size=sample().size)
    return ["yes" if is_class else "no" for is_class in chance < sample().proxies[:, 0]]


def test_every_cell_has_a_name_of_its_own() -> None:
    strata = sample().design.strata
    assert strata is not None
    assert isinstance(strata.rule, Derived)
    names = strata.rule.cells.names
    assert len(set(names)) == len(names) == 4
    assert all("(at5)" in name and "(at8)" in name for name in names)


def test_strata_of_two_columns_know_the_answers_of_each() -> None:
    strata = sample().design.strata
    assert strata is not None
    for column in ("at5", "at8"):
        possible = possible_levels(strata.rule, column, ("no", "yes"))
        assert np.all(possible.sum(axis=1) == np.where(possible[:, 1], 1, 2)), "yes, or anything else"
        answers = (sample().groups[column] == "yes").astype(int)
        assert np.all(possible[sample().stratum, answers])


def test_intervals_are_those_of_strata_of_one_answer() -> None:
    """Cells of one name were merged: strata mixed answers, and intervals were up to 1.4 times as wide."""
    estimate = stratal.estimate(sample(), labels())
    for row in estimate:
        interval = row.confidence_interval()
        assert interval.method == "mover"
        assert interval.high - interval.low < 2 * 2.3 * row.standard_error


@pytest.mark.parametrize("thresholds", [(0.3, 0.5, 0.8), (0.2, 0.4, 0.6, 0.8)])
def test_more_columns_have_distinct_cells(thresholds: tuple[float, ...]) -> None:
    columns = [f"at{round(10 * cut)}" for cut in thresholds]
    text = ";".join(
        f"{metric}:yes,predicted={name},probability=score"
        for name in columns
        for metric in ("precision", "recall")
    )
    units = population(thresholds)
    strata = stratal.plan(units, budget=500, estimand=text).draw(seed=3).design.strata
    assert strata is not None
    assert isinstance(strata.rule, Derived)
    assert len(set(strata.rule.cells.names)) == len(strata.rule.cells.names) == 2 ** len(columns)
    codes = np.concatenate([strata.rule.assign(part) for part in units.batches((*columns, "score"))])
    for name in columns:
        answers = np.concatenate([part[name] for part in units.batches((name,))])
        possible = possible_levels(strata.rule, name, ("no", "yes"))
        seen = np.zeros_like(possible)
        seen[codes, (answers == "yes").astype(int)] = True
        assert np.array_equal(seen[:, 1], possible[:, 1])
        assert np.all(possible[seen])


def _by_cell(cells: Cells) -> Derived:
    names = tuple(sorted(cells.names))
    inner = Categories(column=CELL, levels=names, codes=np.arange(len(names)))
    return Derived(inner=inner, cells=cells, influence=NumberColumn(name="p"))


def test_a_test_that_compares_columns_leaves_every_level_possible() -> None:
    is_cat = ByLevel(name="a", levels=("cat",), values=(1.0,))
    cells = Cells(names=("agree", "cat", "rest"), tests=(Agree(names=("a", "b")), is_cat))
    found = possible_levels(_by_cell(cells), "a", ("cat", "dog"))
    assert found.tolist() == [[True, True, True], [True, False, False], [False, True, True]]


def test_a_factor_that_is_no_matter_of_levels_rules_nothing_out_later() -> None:
    is_cat = ByLevel(name="a", levels=("cat",), values=(1.0,))
    cells = Cells(names=("first", "last"), tests=(is_cat * NumberColumn(name="sure"),))
    found = possible_levels(_by_cell(cells), "a", ("cat", "dog"))
    assert found.tolist() == [[True, False, False], [True, True, True]]
