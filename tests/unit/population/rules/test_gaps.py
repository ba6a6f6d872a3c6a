"""Cuts between values: units stay where they were, whatever the last bit of a formula."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import stratal
from stratal.population.rules import Categories, Crossed, CutPoints, cut_between, in_digits


def test_units_stay_in_their_strata_though_the_last_bit_differs():
    rng = np.random.default_rng(1)
    values = in_digits(rng.normal(size=200))
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

    np.testing.assert_allclose(in_digits(values), values, rtol=1e-11)
    assert in_digits(np.nextafter(values, np.inf)).tolist() == in_digits(values).tolist()


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
