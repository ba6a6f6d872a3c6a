"""Rules put units into strata: any two can be crossed, and many codes take few bytes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stratal.errors import InputError
from stratal.population import rules
from stratal.strata import Categories, Crossed, CutPoints, Everything, NearestCentre, Rule


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
        few = rule.assign(columns)

        monkeypatch.setattr(rules, "EAGER_LIMIT", 200)
        monkeypatch.setattr(rules, "_CHUNK", 64)
        many = rule.assign(columns)

        assert few.dtype == np.int64
        assert many.dtype.itemsize < 8
        assert many.tolist() == few.tolist()


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
