"""Formulas over a population's columns: written once, worked out on arrays and in queries alike.

An estimand says what its influence may be as a formula of columns that exist (answers, probabilities). The
formula goes into the rule that puts units into strata, and with it into the sample file, so that a later
round finds the same strata without any column having been added to the user's data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from stratal.arrays import AnyArray, Described, FloatArray, IntArray


class Engine(Protocol):
    """What works formulas out: on NumPy arrays here, on Ibis columns in `population.queries.translate`."""

    def number(self, name: str) -> Any:
        """Return a numeric column."""

    def by_level(
        self, name: str, levels: tuple[str, ...], values: tuple[float, ...], otherwise: float
    ) -> Any:
        """Return the number of each unit's level of a group column."""

    def same(self, names: tuple[str, ...]) -> Any:
        """Return 1 where group columns all agree, else 0."""

    def logistic(self, value: Any) -> Any:
        """Return 1 / (1 + exp(−value))."""

    def exponential(self, value: Any) -> Any:
        """Return exp(value)."""

    def constant(self, value: float) -> Any:
        """Return one number for every unit."""

    def at_least(self, value: Any, least: float) -> Any:
        """Return the larger of a value and a constant."""


class Expression(Described):
    """A formula over columns. Add, subtract and multiply formulas and numbers with the usual signs.

    Examples
    --------
    >>> sure = 2.0 * Number(name="p") - 1.0
    >>> sure.of({"p": np.array([0.5, 0.9])}).round(3)
    array([0. , 0.8])
    >>> Expression.from_dict(sure.to_dict()) == sure
    True
    """

    __slots__ = ()
    noun: ClassVar[str] = "formula"
    registry: ClassVar[dict[str, Any]] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that the formula reads."""
        parts: tuple[Expression, ...] = getattr(self, "parts", ())
        return tuple(dict.fromkeys(name for part in parts for name in part.columns))

    def on(self, engine: Engine) -> Any:
        """Return the formula worked out by an engine."""
        raise NotImplementedError

    def of(self, columns: Mapping[str, AnyArray] | OnArrays) -> FloatArray:
        """Return the formula worked out on arrays (n,) by name; give `OnArrays` of them to many formulas."""
        engine = columns if isinstance(columns, OnArrays) else OnArrays(columns)
        return np.asarray(self.on(engine), dtype=np.float64)

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
    return value if isinstance(value, Expression) else Constant(value=float(value))


def total(parts: list[Expression]) -> Expression:
    """Return the sum of formulas; 0 of none.

    Examples
    --------
    >>> total([Constant(value=1.0), Constant(value=2.0)]).of({"any": np.zeros(1)})
    array(3.)
    """
    return Sum(parts=tuple(parts)) if parts else Constant(value=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Expression):
    """One number for every unit.

    Examples
    --------
    >>> Constant(value=0.5).columns
    ()
    """

    kind: ClassVar[str] = "constant"
    value: float

    def on(self, engine: Engine) -> Any:
        """Return the number."""
        return engine.constant(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Expression):
    """A proxy or a feature.

    Examples
    --------
    >>> Number(name="confidence").columns
    ('confidence',)
    """

    kind: ClassVar[str] = "number"
    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.name,)

    def on(self, engine: Engine) -> Any:
        """Return the column."""
        return engine.number(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByLevel(Expression):
    """A number for each level of a group column.

    Parameters
    ----------
    name : str
        The group column.
    levels : tuple of str (L,)
    values : tuple of float (L,)
    otherwise : float
        Of a unit at any other level.

    Examples
    --------
    >>> is_cat = ByLevel(name="answer", levels=("cat",), values=(1.0,))
    >>> is_cat.of({"answer": np.array(["cat", "dog"])})
    array([1., 0.])
    """

    kind: ClassVar[str] = "by-level"
    name: str
    levels: tuple[str, ...]
    values: tuple[float, ...]
    otherwise: float = 0.0

    def __post_init__(self) -> None:
        self._set(levels=tuple(self.levels), values=tuple(float(value) for value in self.values))

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.name,)

    def on(self, engine: Engine) -> Any:
        """Return the numbers."""
        return engine.by_level(self.name, self.levels, self.values, self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agree(Expression):
    """1 where several group columns all hold the same, else 0.

    Examples
    --------
    >>> columns = {"new": np.array(["cat", "dog"]), "old": np.array(["cat", "cat"])}
    >>> Agree(names=("new", "old")).of(columns)
    array([1., 0.])
    """

    kind: ClassVar[str] = "agree"
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        self._set(names=tuple(self.names))

    @property
    def columns(self) -> tuple[str, ...]:
        """The group columns."""
        return self.names

    def on(self, engine: Engine) -> Any:
        """Return 1 or 0."""
        return engine.same(self.names)


class _OfParts(Expression):
    __slots__ = ()
    parts: tuple[Expression, ...]

    def __post_init__(self) -> None:
        self._set(parts=tuple(self.parts))

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Return the formula from the fields of `to_dict` but `kind`."""
        return cls(**{**fields, "parts": tuple(Expression.from_dict(part) for part in fields["parts"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(_OfParts):
    """The sum of formulas.

    Examples
    --------
    >>> (Number(name="p") + 1).of({"p": np.array([0.5])})
    array([1.5])
    """

    kind: ClassVar[str] = "sum"
    parts: tuple[Expression, ...]

    def on(self, engine: Engine) -> Any:
        """Return the sum."""
        return reduce(add, (part.on(engine) for part in self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Times(_OfParts):
    """The product of formulas.

    Examples
    --------
    >>> (Number(name="p") * Number(name="p")).of({"p": np.array([0.5])})
    array([0.25])
    """

    kind: ClassVar[str] = "times"
    parts: tuple[Expression, ...]

    def on(self, engine: Engine) -> Any:
        """Return the product."""
        return reduce(mul, (part.on(engine) for part in self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic(_OfParts):
    """1 / (1 + exp(−x)) of one formula.

    Examples
    --------
    >>> Logistic(parts=(Constant(value=0.0),)).of({})
    array(0.5)
    """

    kind: ClassVar[str] = "logistic"
    parts: tuple[Expression, ...]

    def on(self, engine: Engine) -> Any:
        """Return the share."""
        return engine.logistic(self.parts[0].on(engine))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(_OfParts):
    """exp(x) of one formula.

    Examples
    --------
    >>> Exponential(parts=(Constant(value=0.0),)).of({})
    array(1.)
    """

    kind: ClassVar[str] = "exponential"
    parts: tuple[Expression, ...]

    def on(self, engine: Engine) -> Any:
        """Return the number."""
        return engine.exponential(self.parts[0].on(engine))


@dataclass(frozen=True, slots=True, kw_only=True)
class Share(_OfParts):
    """The first formula over the second, which counts as `least` where it is smaller.

    Examples
    --------
    >>> part, whole = Constant(value=1.0), Number(name="total")
    >>> Share(parts=(part, whole), least=1.0).of({"total": np.array([0.5, 4.0])})
    array([1.  , 0.25])
    """

    kind: ClassVar[str] = "share"
    parts: tuple[Expression, ...]
    least: float

    def on(self, engine: Engine) -> Any:
        """Return the quotient."""
        above, below = (part.on(engine) for part in self.parts)
        return above / engine.at_least(below, self.least)


class OnArrays:
    """The engine of NumPy arrays, which finds the levels of a group column once for all formulas.

    Examples
    --------
    >>> engine = OnArrays({"answer": np.array(["cat", "dog"])})
    >>> is_cat = ByLevel(name="answer", levels=("cat",), values=(1.0,))
    >>> is_cat.of(engine), (2.0 * is_cat).of(engine)
    (array([1., 0.]), array([2., 0.]))
    """

    def __init__(self, columns: Mapping[str, AnyArray]) -> None:
        self._columns = columns
        self._known: dict[str, tuple[list[str], IntArray]] = {}

    def number(self, name: str) -> FloatArray:
        """Return a numeric column (n,)."""
        return np.asarray(self._columns[name], dtype=np.float64)

    def by_level(
        self, name: str, levels: tuple[str, ...], values: tuple[float, ...], otherwise: float
    ) -> FloatArray:
        """Return the number of each unit's level of a group column (n,)."""
        found, inverse = self._levels(name)
        known = dict(zip(levels, values, strict=True))
        return np.array([known.get(level, otherwise) for level in found])[inverse]

    def same(self, names: tuple[str, ...]) -> FloatArray:
        """Return 1 where group columns all agree, else 0, (n,)."""
        first = np.asarray(self._columns[names[0]])
        others = [np.asarray(self._columns[name]) for name in names[1:]]
        return np.asarray(reduce(mul, [first == other for other in others]), dtype=np.float64)

    def logistic(self, value: FloatArray) -> FloatArray:
        """Return 1 / (1 + exp(−value))."""
        return np.asarray(1.0 / (1.0 + np.exp(-value)))

    def exponential(self, value: FloatArray) -> FloatArray:
        """Return exp(value)."""
        return np.asarray(np.exp(value))

    def constant(self, value: float) -> FloatArray:
        """Return one number for every unit."""
        return np.asarray(value, dtype=np.float64)

    def at_least(self, value: FloatArray, least: float) -> FloatArray:
        """Return the larger of a value and a constant."""
        return np.asarray(np.maximum(value, least))

    def _levels(self, name: str) -> tuple[list[str], IntArray]:
        """Return the levels of a group column, and which each unit has (n,); found once."""
        if name not in self._known:
            levels, inverse = np.unique(np.asarray(self._columns[name]).astype(np.str_), return_inverse=True)
            self._known[name] = levels.tolist(), inverse
        return self._known[name]
