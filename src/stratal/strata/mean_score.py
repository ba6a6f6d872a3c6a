"""`MeanScore`: strata of the mean of several scores, and which scores belong in it.

A mean of scores that agree has less noise than each of them. A score that runs against the others, or is not
on the scale of the outcome, would spoil it. It is left out with a note, and the estimate still uses it: the
estimate fits a λ to each score, with its sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from stratal.arrays import FloatArray
from stratal.population import rules
from stratal.population.expressions import Cells, Expression, NumberColumn, total
from stratal.population.population import Population
from stratal.proxy.proxy import Proxy
from stratal.strata.dividing import stratify
from stratal.strata.strata import Strata

# Smallest correlation of a score with the mean of the others. The correlation of an unrelated score has the
# standard deviation 1/√N, so that with 1,000 units one in 1,300 reaches it by chance.
MIN_AGREEMENT = 0.1

# Most units of which the mean is computed: 80 MB. Of more, only the first score is divided.
MAX_UNITS = 10_000_000

# All units are in one cell: the strata follow from the formula alone.
_CELLS = Cells(names=("all",))

# Parts of the note on scores that are not averaged.
_LEFT_OUT = "'{}' is not part of the strata: {}."
_REVERSE = "if its high values predict low outcomes, reverse it"


@dataclass(frozen=True, kw_only=True)
class ScoreSelection:
    """The scores whose mean the strata divide, and notes on these and on the others."""

    names: tuple[str, ...]
    notes: tuple[str, ...]


def select_scores(population: Population, opposed_scores: Mapping[str, float]) -> ScoreSelection:
    """Return the scores on the scale of the first one that agree with each other.

    Parameters
    ----------
    population : Population
        With two or more proxies.
    opposed_scores : mapping of str to float
        Scores that fall as the outcome of existing labels rises, with their correlation.
    """
    first = population.proxies[0]
    notes = []
    numbers = []
    for number, info in enumerate(population.proxies):
        is_alike = info.scaled and info.bounds == first.bounds and info.second_moment is None
        if info.name in opposed_scores:
            reason = f"its correlation with the earlier labels is {opposed_scores[info.name]:.2f}; {_REVERSE}"
            notes.append(_LEFT_OUT.format(info.name, reason))
        elif is_alike:
            numbers.append(number)
        else:
            notes.append(_LEFT_OUT.format(info.name, f"it is not on the scale of '{first.name}'"))
    names = population.proxy_names
    if len(numbers) > 1:
        covariances = population.summarise(rules.Everything()).proxy_covariances[0]
    while len(numbers) > 1:
        agreement = agreement_with_others(covariances[np.ix_(numbers, numbers)])
        # The last of several that agree least: the first score is the one that the user trusts most.
        least = len(numbers) - 1 - int(np.argmin(agreement[::-1]))
        if agreement[least] >= MIN_AGREEMENT:
            listed = ", ".join(f"'{names[number]}'" for number in numbers)
            notes.insert(0, f"The strata divide the mean of {listed}.")
            break
        reason = f"its correlation with the other scores is {agreement[least]:.2f}"
        if agreement[least] <= -MIN_AGREEMENT:
            reason = f"{reason}; {_REVERSE}"
        notes.append(_LEFT_OUT.format(names[numbers.pop(least)], reason))
    return ScoreSelection(names=tuple(names[number] for number in numbers), notes=tuple(notes))


def agreement_with_others(covariances: FloatArray) -> FloatArray:
    """Return the correlation (k,) of each score with the sum of the others; 0 of a constant one.

    Examples
    --------
    >>> agreement_with_others(np.array([[1.0, 0.5, -0.5], [0.5, 1.0, -0.5], [-0.5, -0.5, 1.0]])).round(2)
    array([ 0.  ,  0.  , -0.58])
    """
    variances = np.diag(covariances)
    row_sums = covariances.sum(axis=1)
    with_others = row_sums - variances
    others = covariances.sum() - 2.0 * row_sums + variances
    scale = np.sqrt(np.maximum(variances * others, 0.0))
    return np.asarray(np.divide(with_others, scale, out=np.zeros(len(scale)), where=scale > 0))


@dataclass(frozen=True, kw_only=True)
class MeanScore:
    """The mean of several scores of a population.

    Parameters
    ----------
    population : Population
    names : tuple of str (k,)
        Scores that enter the mean.
    """

    population: Population = field(repr=False)
    names: tuple[str, ...]

    @property
    def formula(self) -> Expression:
        """The mean as a formula of the columns."""
        return (1.0 / len(self.names)) * total([NumberColumn(name=name) for name in self.names])

    @cached_property
    def view(self) -> Population:
        """The population with the mean as its only proxy."""
        batches = self.population.batches(self.names)
        values = rules.round_to_digits(np.concatenate([self.formula.evaluate(batch) for batch in batches]))
        bounds = self.population.proxy_info(self.names[0]).bounds
        return Population.from_arrays(proxy=Proxy(values=values, bounds=bounds, name=rules.INFLUENCE))

    @cached_property
    def _distinct_values(self) -> FloatArray:
        """The distinct means of all units, in ascending order."""
        (batch,) = self.view.batches((rules.INFLUENCE,), self.view.size)
        return np.unique(batch[rules.INFLUENCE])

    def strata(self, method: str, n_strata: int) -> Strata:
        """Return strata of the mean, with a rule of the columns that exist."""
        strata = replace(stratify(self.view, method, n_strata), population=self.population)
        if strata.n_strata == 1:
            return strata
        inner = rules.cut_between(strata.rule, self._distinct_values)
        names = tuple(name.replace(rules.INFLUENCE, "mean score", 1) for name in strata.names)
        rule = rules.Derived(inner=inner, cells=_CELLS, influence=self.formula)
        return replace(strata, rule=rule, names=names)
