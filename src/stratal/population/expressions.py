"""Formulas over a population's columns: written once, worked out on arrays and in queries alike.

An estimand says what its influence may be as a formula of columns that exist (answers, probabilities). The
formula goes into the rule that puts units into strata, and with it into the sample file, so that a later
round finds the same strata without any column having been added to the user's data.
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
    """A formula over columns. Add, subtract and multiply formulas and numbers with the usual signs."""

    __slots__ = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the formula reads."""
        return ()

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the formula as evaluated by an evaluator."""
        raise NotImplementedError

    def evaluate(self, columns: Mapping[str, AnyArray] | ArrayEvaluator) -> FloatArray:
        """Return the values (n,) from arrays (n,) by name, or from the evaluator of several formulas."""
        if isinstance(columns, ArrayEvaluator):
            evaluator = columns
        else:
            evaluator = ArrayEvaluator(columns)
        return np.asarray(self.evaluate_with(evaluator), dtype=np.float64)

    def __add__(self, other: Expression | float) -> Expression:
        return Sum(parts=(self, _formula(other)))

    def __radd__(self, other: float) -> Expression:
        return Sum(parts=(_formula(other), self))

    def __sub__(self, other: Expression | float) -> Expression:
        return self + (-1.0) * _formula(other)

    def __rsub__(self, other: float) -> Expression:
        return other + (-1.0) * self

    def __mul__(self, other: Expression | float) -> Expression:
        return Times(parts=(self, _formula(other)))

    def __rmul__(self, other: float) -> Expression:
        return Times(parts=(_formula(other), self))


def _formula(value: Expression | float) -> Expression:
    if isinstance(value, Expression):
        return value
    return Constant(value=float(value))


def total(parts: list[Expression]) -> Expression:
    """Return the sum of formulas; 0 of none."""
    if parts:
        return Sum(parts=tuple(parts))
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
    """1 where a proxy or a feature is below a limit, else 0."""

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
    otherwise : float
        Of a unit at any other level.
    """

    name: str
    levels: tuple[str, ...]
    values: tuple[float, ...]
    otherwise: float = 0.0

    def __post_init__(self) -> None:
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
        """The test of all levels but those of this test."""
        values = tuple(1.0 - value for value in self.values)
        return ByLevel(name=self.name, levels=self.levels, values=values, otherwise=1.0 - self.otherwise)

    def product(self, other: ByLevel) -> ByLevel:
        """Return the product of two of one column; of tests, that of the levels that pass both."""
        first, second = (dict(zip(part.levels, part.values, strict=True)) for part in (self, other))
        otherwise = self.otherwise * other.otherwise
        products = {
            level: first.get(level, self.otherwise) * second.get(level, other.otherwise)
            for level in sorted({*first, *second})
        }
        # Levels with the value of all others need no entry, so that equal tests are equal records.
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
    """1 where several group columns all hold the same, else 0."""

    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The group columns."""
        return self.names

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return 1 or 0."""
        return evaluator.all_equal(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfParts(Expression, nested={"parts": Expression}):
    parts: tuple[Expression, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the parts read, each once."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))


class Sum(_OfParts, kind="sum"):
    """The sum of formulas."""

    __slots__ = ()

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the sum."""
        # In this order on every engine, so that results differ by the engine's rounding alone.
        return reduce(add, (part.evaluate_with(evaluator) for part in self.parts))


class Times(_OfParts, kind="times"):
    """The product of formulas."""

    __slots__ = ()

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the product."""
        return reduce(mul, (part.evaluate_with(evaluator) for part in self.parts))


class Exponential(_OfParts, kind="exponential"):
    """exp(x) of one formula."""

    __slots__ = ()

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the number."""
        return evaluator.apply("exp", self.parts[0].evaluate_with(evaluator))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLoss(_OfParts, kind="log-loss"):
    """−log of one formula, which counts as `least` where it is smaller."""

    least: float

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the loss; NumPy and the engines both call the binary logarithm `log2`."""
        return -math.log(2.0) * evaluator.apply(
            "log2", evaluator.at_least(self.parts[0].evaluate_with(evaluator), self.least)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(_OfParts, kind="share"):
    """The first formula over the second, which counts as `least` where it is smaller."""

    least: float

    def evaluate_with(self, evaluator: ArrayEvaluator) -> Any:
        """Return the quotient."""
        above, below = (part.evaluate_with(evaluator) for part in self.parts)
        return above / evaluator.at_least(below, self.least)


def logistic(line: Expression) -> Expression:
    """Return the formula 1 / (1 + exp(−x))."""
    return Share(parts=(Constant(value=1.0), 1.0 + Exponential(parts=(-1.0 * line,))), least=1.0)


# Functions that NumPy and every evaluator have, by the name of the engines.
_FUNCTIONS = {"exp": np.exp, "sqrt": np.sqrt, "floor": np.floor, "log2": np.log2}


class ArrayEvaluator:
    """Evaluates formulas on NumPy arrays; `population.queries.table` does so on a table's columns.

    The levels of a group column are found once for all formulas.
    """

    def __init__(
        self, columns: Mapping[str, AnyArray], levels: Mapping[str, tuple[list[str], IntArray]] | None = None
    ) -> None:
        self._columns = columns
        self._known = dict(levels or {})

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
        """Return 1 where group columns all agree, else 0, (n,)."""
        first = np.asarray(self._columns[names[0]])
        others = [np.asarray(self._columns[name]) for name in names[1:]]
        return np.asarray(reduce(mul, [first == other for other in others]), dtype=np.float64)

    def apply(self, function: Literal["exp", "sqrt", "floor", "log2"], value: FloatArray) -> FloatArray:
        """Return a function of a value."""
        return np.asarray(_FUNCTIONS[function](value))

    def constant(self, value: float) -> FloatArray:
        """Return one number for every unit."""
        return np.asarray(value, dtype=np.float64)

    def at_least(self, value: FloatArray, least: float) -> FloatArray:
        """Return the larger of a value and a constant."""
        return np.asarray(np.maximum(value, least))

    def below(self, value: FloatArray, limit: float) -> FloatArray:
        """Return 1 where a value is below a constant, else 0."""
        return np.asarray(value < limit, dtype=np.float64)

    def _levels(self, name: str) -> tuple[list[str], IntArray]:
        """Return the levels of a group column, and which each unit has (n,); found once."""
        if name not in self._known:
            levels, inverse = np.unique(np.asarray(self._columns[name]).astype(np.str_), return_inverse=True)
            self._known[name] = levels.tolist(), inverse
        return self._known[name]


def level_test(test: Expression | None) -> ByLevel | None:
    """Return a test that depends only on levels, 1 at some and 0 at all others; None for other tests."""
    if isinstance(test, ByLevel) and {*test.values, test.otherwise} <= {0.0, 1.0}:
        return test
    return None


def implies(test: Expression, other: Expression | None) -> bool:
    """Return whether every unit that passes a test also passes another one.

    True if the tests are equal, if the second compares fewer models, if the first has fewer levels or a lower
    limit, and if the second is a factor of the first.
    """
    if other is None:
        return False
    if test == other:
        return True
    if isinstance(test, Agree) and isinstance(other, Agree):
        return set(other.names) <= set(test.names)
    if isinstance(test, Below) and isinstance(other, Below):
        return test.name == other.name and test.limit <= other.limit
    level_of_test = level_test(test)
    level_of_other = level_test(other)
    if level_of_test is not None and level_of_other is not None:
        return level_of_test.is_disjoint_from(level_of_other.complement)
    return isinstance(test, Times) and any(implies(part, other) for part in test.parts)


def factors_of(test: Expression) -> tuple[Expression, ...]:
    """Return the factors of a test; the test itself if it is not a product."""
    if not isinstance(test, Times):
        return (test,)
    return tuple(factor for part in test.parts for factor in factors_of(part))


def is_of_levels(formula: Expression) -> bool:
    """Return whether a formula reads only levels of group columns."""
    if isinstance(formula, Sum | Times):
        return all(is_of_levels(part) for part in formula.parts)
    return isinstance(formula, ByLevel | Agree | Constant)


def levels_in(formulas: Iterable[Expression], column: str) -> list[str]:
    """Return the levels of a column, or of columns compared with it, that formulas of levels name."""
    leaves = list(_leaves(formulas))
    compared = {column}
    for leaf in leaves:
        if isinstance(leaf, Agree) and column in leaf.names:
            compared |= {*leaf.names}
    named = [leaf for leaf in leaves if isinstance(leaf, ByLevel) and leaf.name in compared]
    return list(dict.fromkeys(level for leaf in named for level in leaf.levels))


def _leaves(formulas: Iterable[Expression]) -> Iterator[Expression]:
    for formula in formulas:
        if isinstance(formula, _OfParts):
            yield from _leaves(formula.parts)
        else:
            yield formula


def both_tests(test: Expression | None, other: Expression | None) -> Expression | None:
    """Return the formula that is 1 where two tests are; None is the test that every unit passes."""
    if test is None or other is None:
        if test is None:
            return other
        return test
    first = level_test(test)
    second = level_test(other)
    # One test of levels, and not a product, can be recognised as such later.
    if first is not None and second is not None and first.name == second.name:
        return first.product(second)
    return test * other


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells(Described, noun="division", registry={}, kind="cells", nested={"tests": Expression}):
    """Which of several cells a unit is in: the first whose formula is 1, else the last.

    Parameters
    ----------
    names : tuple of str (C,)
    tests : tuple of Expression (C − 1,)
        1 for the units of a cell, else 0.
    """

    names: tuple[str, ...]
    tests: tuple[Expression, ...] = ()

    def test_of(self, name: str) -> Expression | None:
        """Return the formula that is 1 in a cell; None for the last cell, which has all other units."""
        number = self.names.index(name)
        if number < len(self.tests):
            return self.tests[number]
        return None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the formulas read."""
        return tuple(dict.fromkeys(name for test in self.tests for name in test.columns))

    def assign(self, columns: Mapping[str, AnyArray]) -> AnyArray:
        """Return each unit's cell as text (n,), from arrays (n,) by name."""
        size = len(next(iter(columns.values())))
        numbers = np.full(size, len(self.tests))
        evaluator = ArrayEvaluator(columns)
        # In reverse order, because a unit is in the first cell whose test it passes.
        for number, test in reversed(list(enumerate(self.tests))):
            numbers[np.broadcast_to(test.evaluate(evaluator) > 0.5, (size,))] = number
        return np.asarray(np.array(self.names, dtype=np.str_)[numbers])
