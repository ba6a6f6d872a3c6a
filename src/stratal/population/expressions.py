"""Formulas of a population's columns, which are evaluated on arrays and in queries.

An estimand states its expected influence as a formula of existing columns (answers, probabilities). A rule
that assigns units to strata may contain such a formula. The rule is stored in the sample file, so that a
later round has the same strata although the user's data have no column of the influence.

A test is a formula that is 1 for the units that pass and 0 for all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any, Literal

import numpy as np

from stratal.arrays import AnyArray, Described, FloatArray, IntArray


class Expression(Described, noun="formula", registry={}):
    """A formula of columns. Formulas and numbers are combined with `+`, `-` and `*`."""

    __slots__ = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the formula reads."""
        return ()

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the values as an array (n,) or an Ibis column, with the operations of the evaluator."""
        raise NotImplementedError

    def evaluate(self, columns: Mapping[str, AnyArray] | ArrayEvaluator) -> FloatArray:
        """Return the values (n,) from arrays (n,) by name, or from an evaluator that formulas share."""
        if isinstance(columns, ArrayEvaluator):
            evaluator = columns
        else:
            evaluator = ArrayEvaluator(columns)
        return np.asarray(self.evaluate_with(evaluator), dtype=np.float64)

    def __add__(self, other: Expression | float) -> Expression:
        return Sum(parts=(self, _as_formula(other)))

    def __radd__(self, other: float) -> Expression:
        return Sum(parts=(_as_formula(other), self))

    def __sub__(self, other: Expression | float) -> Expression:
        return self + (-1.0) * _as_formula(other)

    def __rsub__(self, other: float) -> Expression:
        return other + (-1.0) * self

    def __mul__(self, other: Expression | float) -> Expression:
        return Product(parts=(self, _as_formula(other)))

    def __rmul__(self, other: float) -> Expression:
        return Product(parts=(_as_formula(other), self))


def _as_formula(value: Expression | float) -> Expression:
    """Return a formula unchanged, and a number as a constant."""
    if isinstance(value, Expression):
        return value
    return Constant(value=float(value))


def columns_read(formulas: Iterable[Expression]) -> tuple[str, ...]:
    """Return the names of the columns that formulas read, each once."""
    return tuple(dict.fromkeys(name for formula in formulas for name in formula.columns))


def sum_of(formulas: list[Expression]) -> Expression:
    """Return the sum of formulas; 0 for an empty list."""
    if formulas:
        return Sum(parts=tuple(formulas))
    return Constant(value=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Expression, kind="constant"):
    """One number for every unit."""

    value: float

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the number."""
        return evaluator.constant(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberColumn(Expression, kind="number"):
    """A proxy or a feature."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.name,)

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the column."""
        return evaluator.number(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Below(Expression, kind="below"):
    """1 if a proxy or a feature is below a limit, else 0."""

    name: str
    limit: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.name,)

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return 1 or 0."""
        return evaluator.below(evaluator.number(self.name), self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByLevel(Expression, kind="by-level"):
    """A number for each level of a group column.

    Parameters
    ----------
    name : str
        The group column.
    levels : tuple of str (L,)
    values : tuple of float (L,)
        The number of each level.
    otherwise : float
        The number of all other levels.
    """

    name: str
    levels: tuple[str, ...]
    values: tuple[float, ...]
    otherwise: float = 0.0

    def __post_init__(self) -> None:
        # This method replaces `_freeze`, which converts lists to tuples.
        self._freeze()
        self._set(values=tuple(float(value) for value in self.values))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.name,)

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the numbers."""
        return evaluator.by_level(self.name, self.levels, self.values, self.otherwise)

    @property
    def complement(self) -> ByLevel:
        """The test that exactly the units pass that do not pass this test."""
        values = tuple(1.0 - value for value in self.values)
        return ByLevel(name=self.name, levels=self.levels, values=values, otherwise=1.0 - self.otherwise)

    def product(self, other: ByLevel) -> ByLevel:
        """Return the product with another formula of the same column; two tests give the test of both."""
        first = dict(zip(self.levels, self.values, strict=True))
        second = dict(zip(other.levels, other.values, strict=True))
        otherwise = self.otherwise * other.otherwise
        products = {
            level: first.get(level, self.otherwise) * second.get(level, other.otherwise)
            for level in sorted({*first, *second})
        }
        # Levels with the number of all other levels have no entry, so that equal tests are equal records.
        differing = {level: value for level, value in products.items() if value != otherwise}
        return ByLevel(
            name=self.name, levels=tuple(differing), values=tuple(differing.values()), otherwise=otherwise
        )

    def is_disjoint_from(self, other: ByLevel) -> bool:
        """Return whether no level passes both tests."""
        product = self.product(other)
        return self.name == other.name and not any((*product.values, product.otherwise))


@dataclass(frozen=True, slots=True, kw_only=True)
class Agree(Expression, kind="agree"):
    """1 if several group columns have the same value, else 0."""

    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The group columns."""
        return self.names

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return 1 or 0."""
        return evaluator.all_equal(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Composite(Expression, nested={"parts": Expression}):
    """A formula of other formulas, its parts."""

    parts: tuple[Expression, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the parts read, each once."""
        return columns_read(self.parts)


class Sum(_Composite, kind="sum"):
    """The sum of formulas."""

    __slots__ = ()

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the sum."""
        # The order is the same on every engine, so that results differ only by the engine's rounding.
        return reduce(add, (part.evaluate_with(evaluator) for part in self.parts))


class Product(_Composite, kind="times"):
    """The product of formulas."""

    __slots__ = ()

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the product."""
        return reduce(mul, (part.evaluate_with(evaluator) for part in self.parts))


class Exponential(_Composite, kind="exponential"):
    """exp(x) of one formula."""

    __slots__ = ()

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the number."""
        return evaluator.apply("exp", self.parts[0].evaluate_with(evaluator))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLoss(_Composite, kind="log-loss"):
    """−log x of one formula x; smaller values of x are replaced by `least`."""

    least: float

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the loss."""
        # NumPy and all engines call the binary logarithm `log2`; the natural one has different names.
        value = evaluator.at_least(self.parts[0].evaluate_with(evaluator), self.least)
        return -math.log(2.0) * evaluator.apply("log2", value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient(_Composite, kind="share"):
    """The first formula divided by the second; smaller divisors are replaced by `least`."""

    least: float

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the quotient."""
        dividend, divisor = (part.evaluate_with(evaluator) for part in self.parts)
        return dividend / evaluator.at_least(divisor, self.least)


def logistic(x: Expression) -> Expression:
    """Return the formula 1 / (1 + exp(−x))."""
    return Quotient(parts=(Constant(value=1.0), 1.0 + Exponential(parts=(-1.0 * x,))), least=1.0)


# Functions of NumPy by their names in Ibis.
_FUNCTIONS = {"exp": np.exp, "sqrt": np.sqrt, "floor": np.floor, "log2": np.log2}


class ArrayEvaluator:
    """Evaluates formulas on NumPy arrays; its subclass `TableEvaluator` evaluates them on an Ibis table.

    Parameters
    ----------
    columns : mapping of column to array (n,)
    levels : mapping of column to (list of str, int (n,)), optional
        The levels of group columns, and the number of the level of each unit, if they have been computed
        before. Those of other columns are computed when a formula first needs them.
    """

    def __init__(
        self, columns: Mapping[str, AnyArray], levels: Mapping[str, tuple[list[str], IntArray]] | None = None
    ) -> None:
        self._columns = columns
        self._levels_by_column = dict(levels or {})

    def number(self, name: str) -> FloatArray:
        """Return a numeric column (n,)."""
        return np.asarray(self._columns[name], dtype=np.float64)

    def by_level(
        self, name: str, levels: tuple[str, ...], values: tuple[float, ...], otherwise: float
    ) -> FloatArray:
        """Return the number of each unit's level of a group column (n,)."""
        levels_present, inverse = self._levels(name)
        value_of_level = dict(zip(levels, values, strict=True))
        return np.array([value_of_level.get(level, otherwise) for level in levels_present])[inverse]

    def all_equal(self, names: tuple[str, ...]) -> FloatArray:
        """Return 1 if group columns have the same value, else 0, (n,)."""
        first = np.asarray(self._columns[names[0]])
        others = [np.asarray(self._columns[name]) for name in names[1:]]
        return np.asarray(reduce(mul, [first == other for other in others]), dtype=np.float64)

    def apply(self, function: Literal["exp", "sqrt", "floor", "log2"], value: FloatArray) -> FloatArray:
        """Return a function of values (n,)."""
        return np.asarray(_FUNCTIONS[function](value))

    def constant(self, value: float) -> FloatArray:
        """Return one number for every unit."""
        return np.asarray(value, dtype=np.float64)

    def at_least(self, value: FloatArray, least: float) -> FloatArray:
        """Return values (n,) in which numbers below `least` are replaced by `least`."""
        return np.asarray(np.maximum(value, least))

    def below(self, value: FloatArray, limit: float) -> FloatArray:
        """Return 1 for values (n,) below a constant, else 0."""
        return np.asarray(value < limit, dtype=np.float64)

    def _levels(self, name: str) -> tuple[list[str], IntArray]:
        """Return the levels of a group column, and the number of the level of each unit (n,)."""
        if name not in self._levels_by_column:
            levels, inverse = np.unique(np.asarray(self._columns[name]).astype(np.str_), return_inverse=True)
            self._levels_by_column[name] = levels.tolist(), inverse
        return self._levels_by_column[name]


def as_level_test(test: Expression | None) -> ByLevel | None:
    """Return a test of the levels of one column unchanged; None for other tests."""
    if isinstance(test, ByLevel) and {*test.values, test.otherwise} <= {0.0, 1.0}:
        return test
    return None


def implies(test: Expression, other: Expression) -> bool:
    """Return whether every unit that passes a test also passes another one.

    True if the tests are equal, if the second compares some of the columns of the first, if the first accepts
    fewer levels or has a lower limit, and if the second is a factor of the first.
    """
    if test == other:
        return True
    if isinstance(test, Agree) and isinstance(other, Agree):
        return set(other.names) <= set(test.names)
    if isinstance(test, Below) and isinstance(other, Below):
        return test.name == other.name and test.limit <= other.limit
    level_of_test = as_level_test(test)
    level_of_other = as_level_test(other)
    if level_of_test is not None and level_of_other is not None:
        return level_of_test.is_disjoint_from(level_of_other.complement)
    return isinstance(test, Product) and any(implies(part, other) for part in test.parts)


def factors_of(test: Expression) -> tuple[Expression, ...]:
    """Return the factors of a test; the test itself if it is not a product."""
    if not isinstance(test, Product):
        return (test,)
    return tuple(factor for part in test.parts for factor in factors_of(part))


def reads_only_levels(formula: Expression) -> bool:
    """Return whether a formula reads only levels of group columns."""
    if isinstance(formula, Sum | Product):
        return all(reads_only_levels(part) for part in formula.parts)
    return isinstance(formula, ByLevel | Agree | Constant)


def levels_in(formulas: Iterable[Expression], column: str) -> list[str]:
    """Return the levels that formulas name for a column, or for columns that they compare with it."""
    leaves = list(_leaves(formulas))
    compared = {column}
    for leaf in leaves:
        if isinstance(leaf, Agree) and column in leaf.names:
            compared |= {*leaf.names}
    named = [leaf for leaf in leaves if isinstance(leaf, ByLevel) and leaf.name in compared]
    return list(dict.fromkeys(level for leaf in named for level in leaf.levels))


def _leaves(formulas: Iterable[Expression]) -> Iterator[Expression]:
    """Yield the formulas without parts that formulas consist of."""
    for formula in formulas:
        if isinstance(formula, _Composite):
            yield from _leaves(formula.parts)
        else:
            yield formula


def combine_tests(test: Expression | None, other: Expression | None) -> Expression | None:
    """Return the test that the units pass that pass two tests; None is the test that all units pass."""
    if test is None:
        return other
    if other is None:
        return test
    first = as_level_test(test)
    second = as_level_test(other)
    # `as_level_test` recognises one test of levels, but not a product of two.
    if first is not None and second is not None and first.name == second.name:
        return first.product(second)
    return test * other


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells(Described, noun="division", registry={}, kind="cells", nested={"tests": Expression}):
    """A division of the units into cells: a unit is in the first cell whose test it passes, else in the last.

    Parameters
    ----------
    names : tuple of str (C,)
    tests : tuple of Expression (C − 1,)
        The test of each cell except the last.
    """

    names: tuple[str, ...]
    tests: tuple[Expression, ...] = ()

    def test_of(self, name: str) -> Expression | None:
        """Return the test of a cell; None for the last cell, which has all other units."""
        number = self.names.index(name)
        if number < len(self.tests):
            return self.tests[number]
        return None

    def assign(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return each unit's cell as text (n,), from arrays (n,) by name."""
        size = len(next(iter(columns.values())))
        numbers = np.full(size, len(self.tests))
        evaluator = ArrayEvaluator(columns)
        # In reverse order, because a unit is in the first cell whose test it passes.
        for number, test in reversed(list(enumerate(self.tests))):
            numbers[np.broadcast_to(test.evaluate(evaluator) > 0.5, (size,))] = number
        return np.asarray(np.array(self.names, dtype=np.str_)[numbers])


# The only cell of a population that is stratified as a whole.
ALL_UNITS = Cells(names=("all",))
