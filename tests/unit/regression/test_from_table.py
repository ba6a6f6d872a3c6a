"""Regressions from a table or from arrays with an outcome in some rows."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, MissingColumnError

ROWS = 600


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(ROWS, 2))
    true = 1 + features @ [2.0, -1.0] + rng.normal(size=ROWS)
    outcome = np.where(np.arange(ROWS) < 120, true, np.nan)
    return features, outcome, true + 0.3 * rng.normal(size=ROWS)


@pytest.fixture
def table(arrays):
    features, outcome, proxy = arrays
    return {
        "y": [None if np.isnan(value) else value for value in outcome],
        "x1": features[:, 0],
        "x2": features[:, 1],
        "proxy": proxy,
        "site": ["a" if row % 2 else "b" for row in range(ROWS)],
    }


def test_a_formula_and_arrays_give_the_same_fit(arrays, table):
    by_formula = stratal.regress("y ~ x1 + x2", table)
    by_arrays = stratal.regress(arrays)

    assert by_formula.names == by_arrays.names == ("intercept", "x1", "x2")
    for one, other, truth in zip(by_formula, by_arrays, (1.0, 2.0, -1.0), strict=True):
        assert (one.value, one.standard_error) == pytest.approx((other.value, other.standard_error))
        assert abs(one.value - truth) < 5 * one.standard_error


def test_the_proxy_narrows_the_fit_and_none_is_needed(arrays, table):
    without = stratal.regress(arrays[:2])
    least_squares = np.linalg.lstsq(
        np.column_stack([np.ones(120), arrays[0][:120]]), arrays[1][:120], rcond=None
    )[0]

    assert [row.value for row in without] == pytest.approx(least_squares.tolist())
    narrower = stratal.regress("y ~ x1 + x2", table)
    assert all(a.standard_error < b.standard_error for a, b in zip(narrower, without, strict=True))


def test_a_category_needs_a_formula_and_gets_levels(table):
    pytest.importorskip("formulaic")

    assert stratal.regress("y ~ x1 + site", table).names == ("Intercept", "x1", "site[T.b]")


def test_what_is_no_formula_or_no_column_is_refused(arrays, table):
    with pytest.raises(InputError, match="not a formula"):
        stratal.regress("y x1", table)
    with pytest.raises(MissingColumnError, match="'nope'"):
        stratal.regress("y ~ nope", table)
    with pytest.raises(InputError, match="wrong number of arrays"):
        stratal.regress((*arrays, arrays[1]))
    with pytest.raises(InputError, match="describe a sample"):
        stratal.regress("y ~ x1", table, features="x2")


def test_features_may_be_called_as_the_other_arrays(arrays):
    """A feature called outcome replaced y: its coefficient was 1 with no error."""
    pandas = pytest.importorskip("pandas")
    features, outcome, proxy = arrays
    named = pandas.DataFrame(features, columns=["outcome", "proxy"])

    plain = [row.value for row in stratal.regress(arrays)]
    assert [row.value for row in stratal.regress((named, outcome, proxy))] == pytest.approx(plain)
