"""Rules put units into strata: any two can be crossed, and many codes take few bytes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimands import F1
from stratal.population import Population, in_memory, rules
from stratal.population.expressions import Agree, ByLevel, Cells, NumberColumn
from stratal.population.rules import (
    Categories,
    Crossed,
    CutPoints,
    Derived,
    Everything,
    cut_between,
    possible_levels,
    round_to_digits,
)
from stratal.strata import NearestCentre, Rule


class TestCompactCodes:
    """Codes of many units are kept in few bytes, and say the same."""

    @pytest.mark.parametrize(
        "rule",
        [
            CutPoints(column="p", cuts=np.linspace(0.1, 0.9, 5)),
            CutPoints(column="p", cuts=np.linspace(0.01, 0.99, 400)),
            Categories(column="g", levels=("a", "b"), codes=np.array([1, 0])),
            NearestCentre(names=("p",), centres=np.array([[0.0], [1.0]]), scale=np.array([2.0])),
            Crossed(
                categories=Categories(column="g", levels=("a", "b"), codes=np.array([0, 1])),
                inner=(CutPoints(column="p", cuts=np.array([0.5])), Everything()),
            ),
            Crossed(
                categories=Categories(column="g", levels=("a", "b"), codes=np.array([0, 1])),
                inner=(CutPoints(column="p", cuts=np.array([0.5])), CutPoints(column="p", cuts=np.array([]))),
            ),
        ],
        ids=lambda rule: f"{rule.kind} {rule.n_strata}",
    )
    def test_many_units(self, rule, monkeypatch):
        rng = np.random.default_rng(9)
        columns = {"p": rng.random(300), "g": rng.choice(["a", "b"], 300)}
        given = {"proxy": {"p": columns["p"]}, "groups": {"g": columns["g"]}}
        few = rule.assign(columns)
        assert few.dtype == Population.from_arrays(**given).codes(rule).dtype == np.int64

        monkeypatch.setattr(rules, "BATCH_UNITS", 64)
        monkeypatch.setattr(in_memory, "BATCH_UNITS", 64)
        monkeypatch.setattr(in_memory, "_MAX_UNITS_WITH_WIDE_CODES", 200)
        many = Population.from_arrays(**given).codes(rule)

        assert many.dtype.itemsize < 8
        assert many.tolist() == few.tolist() == rule.assign(columns).tolist()


class TestRules:
    RULES = (
        Everything(),
        CutPoints(column="p", cuts=np.array([0.5])),
        Categories(column="g", levels=("a", "b"), codes=np.array([1, 0])),
        NearestCentre(names=("p",), centres=np.array([[0.0], [1.0]]), scale=np.array([2.0])),
    )
    COLUMNS = {"p": np.array([0.2, 0.5, 0.9]), "g": np.array(["a", "b", "b"])}  # noqa: RUF012

    @pytest.mark.parametrize("inner", RULES, ids=lambda rule: rule.kind)
    def test_any_rule_can_be_crossed(self, inner):
        outer = Categories(column="g", levels=("a", "b"), codes=np.array([0, 1]))
        rule = Crossed(categories=outer, inner=(inner, inner))

        codes = rule.assign(self.COLUMNS)

        expected = np.array([0, 1, 1]) * inner.n_strata + inner.assign(self.COLUMNS)
        assert codes.tolist() == expected.tolist()
        assert Rule.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule

    def test_crossed_cuts_agree_with_each_group_by_itself(self):
        rng = np.random.default_rng(6)
        inner = tuple(CutPoints(column="p", cuts=np.sort(rng.random(k))) for k in (0, 1, 5, 30))
        levels = ("a", "b", "c", "d")
        rule = Crossed(categories=Categories(column="g", levels=levels, codes=np.arange(4)), inner=inner)
        group, p = rng.integers(0, 4, 500), rng.random(500)

        codes = rule.assign({"g": np.array(levels)[group], "p": p})

        for number, part in enumerate(inner):
            here = group == number
            expected = rule.offsets[number] + part.assign({"p": p[here]})
            assert codes[here].tolist() == expected.tolist()

    def test_a_strange_level_is_named(self):
        with pytest.raises(InputError, match="'c'"):
            self.RULES[2].assign({"g": np.array(["c"])})

    @pytest.mark.parametrize(
        "build",
        [
            lambda: Crossed(
                categories=Categories(column="g", levels=("a", "b"), codes=np.array([0, 1])),
                inner=(Everything(),),
            ),
            lambda: NearestCentre(names=("p",), centres=np.zeros((2, 2)), scale=np.ones(1)),
            lambda: NearestCentre(names=("p",), centres=np.zeros((2, 1)), scale=np.zeros(1)),
            lambda: CutPoints(column="p", cuts=np.array([1.0, 1.0])),
            lambda: Rule.from_dict({"kind": "astrology"}),
            lambda: Crossed.parse({"categories": {"kind": "everything"}, "inner": []}),
        ],
    )
    def test_refuses_what_does_not_fit(self, build):
        with pytest.raises(InputError):
            build()


@pytest.fixture
def population():
    rng = np.random.default_rng(3)
    score = rng.beta(0.3, 2, 800)
    answer = np.where(score > 0.5, "match", "other")
    return stratal.Population.from_arrays(
        proxy={"score": score}, groups={"answer": answer}, predicted="answer"
    )


def test_the_rule_assigns_what_the_strata_were_made_of(population, tmp_path):
    influence = F1("match", probability="score").influence(population)
    strata = stratal.strata.stratify(population, "neyman", 4, influence=influence)
    design = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, 60))

    sample = stratal.Sample.read(design.draw(population, seed=5).write(tmp_path / "sample.parquet"))
    again = sample.design.strata.rule

    assert isinstance(again, Derived)
    assert set(again.columns) == {"score", "answer"}
    np.testing.assert_array_equal(population.codes(again), strata.codes)
    np.testing.assert_array_equal(np.bincount(population.codes(again)), strata.sizes)


def test_a_sample_from_a_file_is_extended_in_the_same_strata(population, tmp_path):
    influence = F1("match", probability="score").influence(population)
    strata = stratal.strata.stratify(population, "neyman", 4, influence=influence)
    small, large = (
        stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, n))
        for n in (40, 90)
    )
    sample = stratal.Sample.read(small.draw(population, seed=5).write(tmp_path / "sample.parquet"))

    larger = stratal.next_round(sample, design=large, population=population)

    assert larger.size == 90
    assert larger.ids[:40].tolist() == sample.ids.tolist()


def test_units_stay_in_their_strata_though_the_last_bit_differs():
    rng = np.random.default_rng(1)
    values = round_to_digits(rng.normal(size=200))
    cuts = np.sort(rng.choice(values, 12, replace=False))
    rule = CutPoints(column="u", cuts=cuts)
    moved = cut_between(rule, np.sort(values))
    codes = rule.assign({"u": values})

    for other in (values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)):
        np.testing.assert_array_equal(moved.assign({"u": other}), codes)
    assert not np.array_equal(rule.assign({"u": np.nextafter(values, -np.inf)}), codes)


def test_cuts_within_categories_are_moved_and_cuts_beyond_all_values_are_not():
    categories = Categories(column="g", levels=("a", "b"), codes=np.array([0, 1]))
    inner = (CutPoints(column="u", cuts=np.array([2.0])), CutPoints(column="u", cuts=np.array([9.0])))
    found = cut_between(Crossed(categories=categories, inner=inner), np.array([1.0, 2.0, 3.0]))

    assert [part.cuts.tolist() for part in found.inner] == [[1.5], [9.0]]
    assert cut_between(categories, np.array([1.0])) is categories


@pytest.mark.parametrize("size", [1e-200, 1e-5, 1.0, 1e5, 1e200])
def test_values_keep_twelve_digits(size):
    values = size * np.array([1 / 3, -2 / 3, 0.0])

    np.testing.assert_allclose(round_to_digits(values), values, rtol=1e-11)
    assert round_to_digits(np.nextafter(values, np.inf)).tolist() == round_to_digits(values).tolist()


@pytest.mark.parametrize(
    "text", ["quantile:.5", "quantile:.9", "f1:a", "difference:A,B", "coefficient:length"]
)
def test_a_table_gives_the_sample_that_arrays_give(tmp_path, text):
    rng = np.random.default_rng(1)
    columns = {
        "id": [f"u{k}" for k in range(1500)],
        "p": rng.beta(3, 1, 1500),
        "length": rng.gamma(2, 1, 1500),
        "A": rng.choice(list("abc"), 1500),
        "B": rng.choice(list("abc"), 1500),
    }
    pd.DataFrame(columns).to_parquet(tmp_path / "units.parquet")
    table = stratal.Population.read(
        tmp_path / "units.parquet", id="id", proxy="p", groups=["A", "B"], features=["length"], predicted="A"
    )
    arrays = stratal.Population.from_arrays(
        ids=columns["id"], proxy={"p": columns["p"]}, groups={"A": columns["A"], "B": columns["B"]},
        features={"length": columns["length"]}, predicted="A",
    )  # fmt: skip
    one, other = (stratal.plan(units, 120, estimand=text).draw(seed=3) for units in (table, arrays))

    assert sorted(one.ids.tolist()) == sorted(other.ids.tolist())


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
    return Derived(inner=inside, cells=cells, influence=NumberColumn(name="p"))


def test_cells_of_the_answer_are_known_and_the_rest_is_what_they_leave():
    is_a = ByLevel(name="answer", levels=("a",), values=(1.0,))

    found = of(derived(Cells(names=("x", "y"), tests=(is_a,))))

    assert found == [[1, 0, 0, 0], [0, 1, 1, 1], [0, 1, 1, 1]]


def test_cells_of_other_columns_say_nothing():
    agree = Agree(names=("answer", "old"))

    assert np.all(of(derived(Cells(names=("x", "y"), tests=(agree,)))))
