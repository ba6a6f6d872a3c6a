"""Regressions from a table or from arrays with an outcome in some rows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import sized

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
    with pytest.raises(InputError, match="can only be used with a sample"):
        stratal.regress("y ~ x1", table, features="x2")


def test_features_may_be_called_as_the_other_arrays(arrays):
    """A feature called outcome replaced y: its coefficient was 1 with no error."""
    pandas = pytest.importorskip("pandas")
    features, outcome, proxy = arrays
    named = pandas.DataFrame(features, columns=["outcome", "proxy"])

    plain = [row.value for row in stratal.regress(arrays)]
    assert [row.value for row in stratal.regress((named, outcome, proxy))] == pytest.approx(plain)


def judged_table(words):
    """Return a table whose judge agrees with the outcome in nine of ten rows, in these words for 0 and 1."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=ROWS)
    right = rng.random(ROWS) < 1 / (1 + np.exp(-x))
    verdict = np.where(rng.random(ROWS) < 0.9, right, ~right)
    return {
        "y": [int(value) if row < 150 else None for row, value in enumerate(right)],
        "x": x,
        "judge": np.array(words)[verdict.astype(int)].tolist(),
    }


@pytest.mark.parametrize("words", [("no", "yes"), ("fail", "pass"), ("false", "true")])
def test_verdicts_in_words_are_a_proxy_as_numbers_are(words):
    """A judge in words was ignored without a note, so that the fit was that of the labels alone."""
    by_words = stratal.regress("y ~ x", judged_table(words))
    by_numbers = stratal.regress("y ~ x", judged_table((0, 1)))
    stated = stratal.regress("y ~ x", judged_table(words), proxy="judge")
    table = judged_table(words)
    del table["judge"]
    alone = stratal.regress("y ~ x", table)

    for row, other, same, single in zip(by_words, by_numbers, stated, alone, strict=True):
        assert row.value == same.value == pytest.approx(other.value)
        assert row.standard_error == pytest.approx(other.standard_error)
        assert row.standard_error < 0.9 * single.standard_error


def test_verdicts_that_are_no_proxy_are_named_in_a_note():
    table = judged_table(("no", "yes"))
    table["remark"] = table.pop("judge")
    assert any("'remark' is not used" in note for note in stratal.regress("y ~ x", table).notes)

    constant = judged_table(("yes", "yes"))
    assert any("'judge' is 'yes' in every row" in note for note in stratal.regress("y ~ x", constant).notes)

    missing = judged_table(("no", "yes"))
    missing["judge"] = [None if row < 100 else entry for row, entry in enumerate(missing["judge"])]
    assert any("no verdict in 100 of 150" in note for note in stratal.regress("y ~ x", missing).notes)
    with pytest.raises(InputError, match="has a verdict in"):
        stratal.regress("y ~ x", missing, proxy="judge")


def test_a_table_with_all_outcomes_is_about_future_rows(arrays, table):
    """All standard errors were 0, since the coefficients of these rows are known."""
    rng = np.random.default_rng(1)
    table["y"] = (1 + arrays[0] @ [2.0, -1.0] + rng.normal(size=ROWS)).tolist()
    result = stratal.regress("y ~ x1 + x2", table)
    design = np.column_stack([np.ones(ROWS), arrays[0]])
    coefficients, (residual,), *_ = np.linalg.lstsq(design, np.array(table["y"]), rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * residual / (ROWS - 3))

    assert [row.value for row in result] == pytest.approx(coefficients.tolist())
    assert [row.standard_error for row in result] == pytest.approx(errors.tolist(), rel=0.1)
    assert all(row.target == "superpopulation" for row in result)
    assert any("target superpopulation" in note for note in result.notes)
    exact = stratal.regress("y ~ x1 + x2", table, target="population")
    assert all(row.standard_error == 0 for row in exact)


def of_questions(rng, *, questions=200, drawn=40, rank=5):
    """Return rows of questions with effects of their own; the outcomes of some questions are known."""
    question = np.repeat(np.arange(questions), 5)
    x = rng.normal(size=questions)[question] + rng.normal(size=5 * questions)
    y = x + rng.normal(size=questions)[question] + rng.normal(size=5 * questions)
    is_known = np.isin(question, rng.choice(questions, drawn, replace=False))
    is_known &= np.arange(5 * questions) % 5 < rank
    table = {
        "question": [f"q{number}" for number in question],
        "x": x.tolist(),
        "y": [float(value) if known else None for value, known in zip(y, is_known, strict=True)],
    }
    slope = np.polyfit(x, y, 1)[0]
    return table, slope


def test_outcomes_of_whole_groups_are_a_sample_of_clusters():
    tries = sized(40, 400)
    covered = 0
    for seed in range(tries):
        table, slope = of_questions(np.random.default_rng(seed))
        result = stratal.regress("y ~ x", table)
        assert any("40 clusters ('question') with labels" in note for note in result.notes)
        low, high = result[1].limits(0.95)
        covered += low <= slope <= high
    assert covered > 0.93 * tries - 3.5 * np.sqrt(0.065 * tries)


def test_outcomes_of_some_rows_of_some_groups_are_refused():
    table, _ = of_questions(np.random.default_rng(0), drawn=30, rank=3)

    with pytest.raises(InputError, match="two-stage"):
        stratal.regress("y ~ x", table)
