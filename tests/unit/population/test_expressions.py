"""Formulas of columns: worked out on arrays, written down and read again."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.population.expressions import (
    Agree,
    ByLevel,
    Constant,
    Expression,
    NumberColumn,
    Quotient,
    logistic,
    sum_of,
)

COLUMNS = {
    "p": np.array([0.2, 0.5, 0.9]),
    "a": np.array(["x", "y", "x"]),
    "b": np.array(["x", "x", "y"]),
}
P = NumberColumn(name="p")
LEVEL = ByLevel(name="a", levels=("x",), values=(2.0,), otherwise=-1.0)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (2 * P - 0.5, [-0.1, 0.5, 1.3]),
        (1 - P * P, [0.96, 0.75, 0.19]),
        (LEVEL + P, [2.2, -0.5, 2.9]),
        (Agree(names=("a", "b")), [1, 0, 0]),
        (logistic(0.0 * P), [0.5, 0.5, 0.5]),
        (Quotient(parts=(P, 2 * P), least=1.0), [0.2, 0.5, 0.5]),
        (sum_of([P, P, Constant(value=1.0)]), [1.4, 2.0, 2.8]),
    ],
)
def test_a_formula_is_worked_out_and_comes_back_from_its_record(formula, expected):
    again = Expression.from_dict(formula.to_dict())

    np.testing.assert_allclose(formula.evaluate(COLUMNS), expected, rtol=1e-12)
    np.testing.assert_array_equal(again.evaluate(COLUMNS), formula.evaluate(COLUMNS))
    assert again == formula
    assert set(formula.columns) <= set(COLUMNS)


def test_the_sum_of_nothing_is_nothing():
    assert float(sum_of([]).evaluate(COLUMNS)) == 0.0
