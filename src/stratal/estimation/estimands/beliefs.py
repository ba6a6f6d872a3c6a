"""What is believed of a unit's class before its label: formulas of the columns that say so.

The probability of a class may be a column of its own. Otherwise the proxy is taken as the probability that
the answer is right, as everywhere, and what it leaves is shared among the other classes as the answers are.
Where there is no proxy either, answers are right as often as `UNTOLD` has it.

A proxy that says too much promises too much: a share `1 − CREDIT` of the belief is that of the whole
population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.errors import InputError
from stratal.population.expressions import ByLevel, Constant, Expression, Number
from stratal.population.influence import averages
from stratal.population.population import Population

CREDIT = 0.99
"""Share of a probability that is believed; the rest is the population's share of the class."""

UNTOLD = 0.8
"""How often answers are taken to be right where no proxy says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs(Record):
    """The probabilities of K classes for each unit, and its answer.

    Parameters
    ----------
    answers : str
        The group column of the model's answers.
    levels : tuple of str (K,)
        The classes.
    right : Expression
        Probability that the answer is the true class.
    shares : tuple of float (K,)
        The classes' expected shares of the population.
    columns : tuple of Expression or None (K,)
        Probability of each class where a column says it, else None.

    Examples
    --------
    >>> population = Population.from_arrays(
    ...     proxy=[0.9, 0.6], groups={"answer": ["cat", "dog"]}, predicted="answer")
    >>> beliefs = Beliefs.of(population, None, ())
    >>> beliefs.levels, beliefs.of_class(np.array([1.0, 0.0])).columns
    (('cat', 'dog'), ('answer', 'proxy'))
    """

    answers: str
    levels: tuple[str, ...]
    right: Expression
    shares: tuple[float, ...]
    columns: tuple[Expression | None, ...]

    @classmethod
    def of(
        cls,
        population: Population,
        answers: str | None,
        needed: tuple[str, ...],
        probability: str | None = None,
        right: str | None = None,
    ) -> Beliefs:
        """Return what a population's columns say.

        Parameters
        ----------
        population : Population
        answers : str, optional
            The group column of the model's answers; the population's own unless given.
        needed : tuple of str
            Classes that must be among the levels, whether or not the model answers them.
        probability : str, optional
            Column of the probability of the (first) needed class.
        right : str, optional
            Column of the probability that the answer is right; the first proxy, if it is one, unless given.
        """
        name = answers or population.predicted
        if name is None:
            raise InputError(
                "the estimand needs the model's answers",
                action="Name their column: predicted= (--predicted COL), or in the estimand itself.",
            )
        counts = population.levels(population.require_group(name))
        levels = tuple(sorted({*counts, *needed}))
        columns: list[Expression | None] = [None] * len(levels)
        is_right: Expression = Constant(value=UNTOLD)
        if right is not None:
            _require_number(population, right)
            is_right = Number(name=right)
        elif probability is not None:
            _require_number(population, probability)
            columns[levels.index(needed[0])] = Number(name=probability)
            is_right = Constant(value=0.0)
        elif population.proxies:
            info = population.proxy_info()
            if info.scaled and info.bounds == (0.0, 1.0):
                is_right = Number(name=info.name)
        told = np.array([counts.get(level, 0) for level in levels], float) / population.size
        return cls._with_shares(name, levels, is_right, tuple(columns), told, population)

    @classmethod
    def _with_shares(
        cls,
        answers: str,
        levels: tuple[str, ...],
        right: Expression,
        columns: tuple[Expression | None, ...],
        told: FloatArray,
        population: Population,
    ) -> Beliefs:
        """Return the beliefs with the classes' shares that they themselves make of the population."""
        plain = cls(answers=answers, levels=levels, right=right, shares=tuple(told), columns=columns)
        each = np.eye(len(levels))
        found = averages(population, [plain._believed(row) for row in each])
        return cls(answers=answers, levels=levels, right=right, shares=tuple(found.tolist()), columns=columns)

    def is_answer(self, level: str) -> Expression:
        """Return the formula that is 1 where the answer is this class, else 0."""
        return ByLevel(name=self.answers, levels=(level,), values=(1.0,))

    def by_answer(self, values: FloatArray) -> Expression:
        """Return the formula of a number (K,) for each answer."""
        return ByLevel(name=self.answers, levels=self.levels, values=tuple(values.tolist()))

    def of_class(self, values: FloatArray) -> Expression:
        """Return the formula Σ_c P(c | x) values[c], with values (K,)."""
        return CREDIT * self._believed(values) + (1.0 - CREDIT) * float(np.dot(self.shares, values))

    def of_answer(self, values: FloatArray) -> Expression:
        """Return the formula P(a | x) values[a] of the answer a."""
        own = self._own(values)
        return CREDIT * own + (1.0 - CREDIT) * self.by_answer(np.asarray(self.shares) * values)

    def _own(self, values: FloatArray) -> Expression:
        told = np.array([column is None for column in self.columns])
        own = self.by_answer(values * told) * self.right
        for k, column in enumerate(self.columns):
            if column is not None and values[k] != 0:
                own = own + float(values[k]) * self.is_answer(self.levels[k]) * column
        return own

    def _believed(self, values: FloatArray) -> Expression:
        if any(column is not None for column in self.columns):
            return self._from_columns(values)
        shares = np.asarray(self.shares)
        rest = shares.sum() - shares
        others = (float(shares @ values) - shares * values) / np.where(rest > 0, rest, 1.0)
        return self.by_answer(others) + self.by_answer(values - others) * self.right

    def _from_columns(self, values: FloatArray) -> Expression:
        """Return Σ_c P(c | x) values[c] where columns say some P; classes without one share the rest."""
        without = np.array([column is None for column in self.columns])
        others = values[without]
        rest = float(others.mean()) if len(others) else 0.0
        found: Expression = Constant(value=rest)
        for k, column in enumerate(self.columns):
            if column is not None and values[k] != rest:
                found = found + float(values[k] - rest) * column
        return found


def _require_number(population: Population, name: str) -> None:
    numbers = (*population.proxy_names, *population.feature_names)
    if name not in numbers:
        raise InputError(
            f"no such column of probabilities: {name!r}",
            allowed=", ".join(map(repr, numbers)) or "a proxy or a feature",
        )
