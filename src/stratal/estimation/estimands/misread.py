"""A proxy that is the probability of a class, and would be taken as the probability that the answer is right.

The two agree where the answer is the class, and are each other's opposite elsewhere: read as the other, a
score of 0.004 says that an answer is surely wrong, and a plan would promise a precision that no label keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.errors import InputError
from stratal.estimation.estimands.class_metrics import OfClass
from stratal.population.expressions import ByLevel, Number
from stratal.population.population import Population

FEW_RIGHT = 0.25
"""A share of right answers that no model in use has among its answers of one kind, while the others are right
twice as often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Believed(Record):
    """How many units were answered so, and the mean and the range of their proxies."""

    count: int = 0
    total: float = 0.0
    least: float = np.inf
    most: float = -np.inf

    @property
    def mean(self) -> float:
        return self.total / max(self.count, 1)

    def with_more(self, values: FloatArray) -> _Believed:
        """Return these and some more."""
        return _Believed(
            count=self.count + len(values),
            total=self.total + float(values.sum()),
            least=min(self.least, float(values.min())),
            most=max(self.most, float(values.max())),
        )

    def contradicts(self, other: _Believed) -> bool:
        """Return whether these are believed wrong and the others right, more than answers of one model are.

        A threshold of the proxy that divides the answers says so too: answers were made of the proxy.
        """
        if not (self.count and other.count):
            return False
        few = self.mean < FEW_RIGHT and other.mean > 2.0 * self.mean
        return few or (self.mean < 0.5 <= other.mean and self.most <= other.least)


def _by_answer(population: Population, answers: str, level: str, proxy: str) -> tuple[_Believed, _Believed]:
    """Return what the proxy says of the answers that are this class, and of the others."""
    test, number = ByLevel(name=answers, levels=(level,), values=(1.0,)), Number(name=proxy)
    found = [_Believed(), _Believed()]
    for batch in population.batches((answers, proxy)):
        is_own, values = test.of(batch) == 1.0, number.of(batch)
        for k, chosen in enumerate((values[is_own], values[~is_own])):
            if len(chosen):
                found[k] = found[k].with_more(chosen)
    return found[0], found[1]


def refuse_a_misread_proxy(estimand: object, population: Population) -> None:
    """Raise an `InputError` where a proxy is plainly not the probability that the answer is right.

    Parameters
    ----------
    estimand : Estimand
        Any; metrics of a class that name neither `probability` nor `right` are looked at.
    population : Population

    Raises
    ------
    InputError
        With the estimand as it should be written.

    Examples
    --------
    >>> from stratal.estimation.estimands import F1
    >>> population = Population.from_arrays(
    ...     proxy={"score": [0.9, 0.1, 0.0]}, groups={"answer": ["yes", "no", "no"]}, predicted="answer")
    >>> refuse_a_misread_proxy(F1("yes", probability="score"), population)
    >>> refuse_a_misread_proxy(F1("yes"), population)
    Traceback (most recent call last):
    stratal.errors.InputError: 'f1:yes' takes 'score' as the probability that the answer is right, but then \
5.0% of the 2 other answers would be right, and 90.0% of the 1 answers 'yes'. If it is the probability \
of 'yes', say so: f1:yes,probability=score (--estimand f1:yes,probability=score). If it is that of a \
right answer all the same: f1:yes,right=score.
    """
    if not isinstance(estimand, OfClass) or not population.proxies:
        return
    if estimand.probability is not None or estimand.right is not None:
        return
    answers, proxy = estimand.predicted or population.predicted, population.proxy_info()
    if answers not in population.group_names or not proxy.scaled or proxy.bounds != (0.0, 1.0):
        return
    own, rest = _by_answer(population, answers, estimand.positive, proxy.name)
    if rest.contradicts(own):
        meant = replace(estimand, probability=proxy.name).text
        action = f"If it is the probability of {estimand.positive!r}, say so: {meant} (--estimand {meant})."
    elif own.contradicts(rest) and len(population.levels(answers)) == 2:
        meant = replace(estimand, probability="COLUMN").text
        action = (
            f"If it is the probability of the other class, add a column of 1 - {proxy.name} and name it: "
            f"{meant} (--estimand {meant})."
        )
    else:
        return
    certain = replace(estimand, right=proxy.name).text
    action += f" If it is that of a right answer all the same: {certain}."
    raise InputError(
        f"{estimand.text!r} takes {proxy.name!r} as the probability that the answer is right, but then "
        f"{rest.mean:.1%} of the {rest.count:,} other answers would be right, and {own.mean:.1%} of the "
        f"{own.count:,} answers {estimand.positive!r}",
        action=action,
    )
