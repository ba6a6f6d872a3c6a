"""What a proxy says of answers before any label: the chance that each is right, and what else it could be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.errors import InputError, refuse_unknown
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
    told : (int, Expression), optional
        A class, and its probability where a column says it.

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
    told: tuple[int, Expression] | None = None

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
        for column in filter(None, (right, probability)):
            numbers = (*population.proxy_names, *population.feature_names)
            refuse_unknown("column of probabilities", column, numbers)
        told, is_right = None, cast(Expression, Constant(value=UNTOLD))
        if right is not None:
            is_right = Number(name=right)
        elif probability is not None:
            told = levels.index(needed[0]), Number(name=probability)
        elif population.proxies:
            info = population.proxy_info()
            if info.scaled and info.bounds == (0.0, 1.0):
                is_right = Number(name=info.name)
        observed = np.array([counts.get(level, 0) for level in levels], float) / population.size
        plain = cls(answers=name, levels=levels, right=is_right, shares=tuple(observed), told=told)
        # The classes' shares are those that the beliefs themselves make of the population.
        found = averages(population, [plain._believed(row) for row in np.eye(len(levels))])
        return replace(plain, shares=tuple(found.tolist()))

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
        own = self.by_answer(values) * self.right
        if self.told is not None:
            k, chance = self.told
            own = float(values[k]) * self.is_answer(self.levels[k]) * chance
        return CREDIT * own + (1.0 - CREDIT) * self.by_answer(np.asarray(self.shares) * values)

    def _believed(self, values: FloatArray) -> Expression:
        if self.told is not None:  # the other classes share the rest
            k, chance = self.told
            others = np.delete(values, k)
            rest = float(others.mean()) if len(others) else 0.0
            return rest + float(values[k] - rest) * chance
        shares = np.asarray(self.shares)
        left = shares.sum() - shares
        others = (float(shares @ values) - shares * values) / np.where(left > 0, left, 1.0)
        return self.by_answer(others) + self.by_answer(values - others) * self.right
