"""Formulas give the same strata, and so the same units, in memory and in a table."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.population.expressions import (
    Agree,
    ByLevel,
    Cells,
    Constant,
    LogLoss,
    NumberColumn,
    Quotient,
    logistic,
)
from stratal.population.influence import population_means
from stratal.population.rules import CutPoints, Derived

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def both():
    rng = np.random.default_rng(9)
    columns = {
        "id": np.arange(900),
        "p": rng.random(900),
        "q": rng.random(900),
        "a": rng.choice(["x", "y", "z"], 900),
        "b": rng.choice(["x", "y", "z"], 900),
    }
    table = stratal.Population.from_table(pa.table(columns), proxy=["p", "q"], groups=["a", "b"])
    arrays = stratal.Population.from_arrays(
        proxy={"p": columns["p"], "q": columns["q"]},
        groups={"a": columns["a"], "b": columns["b"]},
        ids=columns["id"],
    )
    return arrays, table


P, Q = NumberColumn(name="p"), NumberColumn(name="q")
FORMULAS = [
    2.0 * P - Q * P + 0.25,
    ByLevel(name="a", levels=("x", "y"), values=(1.0, -0.5), otherwise=0.1) * P,
    Agree(names=("a", "b")) * Q,
    logistic(4.0 * (P - Q)),
    LogLoss(parts=(P,), least=0.01),
    Quotient(parts=(P, P + Q), least=1.0),
    Constant(value=0.5) + P,
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_strata_of_a_formula_have_the_same_units_on_both(both, formula):
    arrays, table = both
    cells = Cells(names=("same", "other"), tests=(Agree(names=("a", "b")),))
    cuts = np.quantile(formula.evaluate(next(arrays.batches(formula.columns))), [0.7, 0.9])
    rule = Derived(inner=CutPoints(column="influence", cuts=cuts), cells=cells, influence=formula)
    counts = np.array([5, 5, 5])

    left, right = (
        arrays.units_with_smallest_keys(rule, counts, 1),
        table.units_with_smallest_keys(rule, counts, 1),
    )

    np.testing.assert_array_equal(arrays.summarise(rule).sizes, table.summarise(rule).sizes)
    assert left.ids.tolist() == right.ids.tolist()


def test_averages_of_a_query_are_those_of_the_arrays(both):
    arrays, table = both
    found = table.means_of(FORMULAS)
    columns = next(arrays.batches(("p", "q", "a", "b")))

    for j, formula in enumerate(FORMULAS):
        assert found[j] == pytest.approx(formula.evaluate(columns).mean(), rel=1e-12)


@pytest.mark.parametrize("text", ["difference:a,b,proxies=p+q", "precision:x,predicted=a", "mean@a:x,y"])
def test_a_plan_for_an_estimand_draws_the_same_units_from_both(both, text):
    left, right = (stratal.plan(population, 40, estimand=text) for population in both)

    assert left.allocation == right.allocation
    assert sorted(left.draw(seed=4).ids.tolist()) == sorted(right.draw(seed=4).ids.tolist())


def test_constants_of_many_digits_are_the_same_doubles_in_a_query(both):
    arrays, table = both
    constants = np.random.default_rng(4).random(40) * 4
    for number, constant in enumerate(constants.tolist()):
        formula = constant * P + ByLevel(name="a", levels=("x",), values=(constant / 3,), otherwise=constant)
        values = np.sort(formula.evaluate(next(arrays.batches(("p", "a")))))
        cuts = values[10 + number :: 60]  # each is a unit's value: one bit less, and the unit is elsewhere
        rule = Derived(
            inner=CutPoints(column="influence", cuts=cuts), cells=Cells(names=("all",)), influence=formula
        )

        np.testing.assert_array_equal(arrays.summarise(rule).sizes, table.summarise(rule).sizes)


def test_means_of_formulas_are_asked_of_the_engine_in_one_query_and_are_those_of_arrays(
    tmp_path, monkeypatch
):

    rng = np.random.default_rng(2)
    score, answer = rng.random(400).round(3), rng.choice(["x", "y"], 400)
    file = tmp_path / "p.csv"
    rows = [f"{k},{p},{a}" for k, (p, a) in enumerate(zip(score, answer, strict=True))]
    file.write_text("\n".join(["id,score,answer", *rows]) + "\n")
    table = stratal.Population.read(file, proxy="score", groups="answer")
    arrays = stratal.Population.from_arrays(proxy={"score": score}, groups={"answer": answer})
    is_x = ByLevel(name="answer", levels=("x",), values=(1.0,))
    formulas = [NumberColumn(name="score"), is_x * NumberColumn(name="score"), 1.0 - is_x]
    monkeypatch.setattr(type(table), "batches", None)  # no row leaves the engine

    assert population_means(table, formulas).tolist() == population_means(arrays, formulas).tolist()
