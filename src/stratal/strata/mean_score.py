"""`MeanScore`: strata of the mean of several scores, and the selection of these scores.

The mean of scores that agree with each other has less noise than a single score. A score that has a negative
correlation with the others, or another scale, is excluded from the mean, with a note. The estimate still uses
it, because it fits a separate λ for each score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from stratal.arrays import FloatArray
from stratal.population import rules
from stratal.population.expressions import ALL_UNITS, Expression, NumberColumn, sum_of
from stratal.population.population import Population
from stratal.proxy.proxy import Proxy
from stratal.strata.strata import Strata
from stratal.strata.stratification import stratify

# Smallest correlation of a score with the mean of the others. The correlation of an unrelated score has the
# standard deviation 1/√N, so that with 1,000 units one in 1,300 reaches it by chance.
MIN_AGREEMENT = 0.1

# Maximum number of units for which the mean is computed (80 MB). With more, strata use only the first score.
MAX_UNITS = 10_000_000

# Notes on excluded scores.
_EXCLUDED_NOTE = "'{}' is not part of the strata: {}."
_REVERSE_ADVICE = "if high values of this score predict low outcomes, reverse the score"


@dataclass(frozen=True, kw_only=True)
class ScoreSelection:
    """The scores whose mean defines the strata, and notes on the selected and excluded scores."""

    names: tuple[str, ...]
    notes: tuple[str, ...]


def select_scores(population: Population, opposed_scores: Mapping[str, float]) -> ScoreSelection:
    """Return the scores on the scale of the first one that agree with each other.

    Parameters
    ----------
    population : Population
        A population with two or more proxies.
    opposed_scores : mapping of str to float
        Scores with a negative correlation with the outcome of existing labels, and this correlation.
    """
    first = population.proxies[0]
    notes = []
    numbers = []
    for number, info in enumerate(population.proxies):
        # The mean of scores has no second moment E[z² | x], which strata of a single score use.
        can_be_averaged = info.scaled and info.bounds == first.bounds and info.second_moment is None
        if info.name in opposed_scores:
            correlation = opposed_scores[info.name]
            reason = f"its correlation with the earlier labels is {correlation:.2f}; {_REVERSE_ADVICE}"
            notes.append(_EXCLUDED_NOTE.format(info.name, reason))
        elif can_be_averaged:
            numbers.append(number)
        else:
            notes.append(_EXCLUDED_NOTE.format(info.name, f"it is not on the scale of '{first.name}'"))
    names = population.proxy_names
    if len(numbers) > 1:
        covariances = population.summarise(rules.Everything()).proxy_covariances[0]
    while len(numbers) > 1:
        agreement = agreement_with_others(covariances[np.ix_(numbers, numbers)])
        # If several scores have the smallest agreement, the last one is excluded, because users name the best
        # score first.
        worst = len(numbers) - 1 - int(np.argmin(agreement[::-1]))
        if agreement[worst] >= MIN_AGREEMENT:
            names_text = ", ".join(f"'{names[number]}'" for number in numbers)
            notes.insert(0, f"The strata are intervals of the mean of {names_text}.")
            break
        reason = f"its correlation with the other scores is {agreement[worst]:.2f}"
        if agreement[worst] <= -MIN_AGREEMENT:
            reason = f"{reason}; {_REVERSE_ADVICE}"
        notes.append(_EXCLUDED_NOTE.format(names[numbers.pop(worst)], reason))
    return ScoreSelection(names=tuple(names[number] for number in numbers), notes=tuple(notes))


def agreement_with_others(covariances: FloatArray) -> FloatArray:
    """Return the correlation (k,) of each score with the sum of the others, from covariances (k, k).

    It is 0 for a constant score.

    Examples
    --------
    >>> agreement_with_others(np.array([[1.0, 0.5, -0.5], [0.5, 1.0, -0.5], [-0.5, -0.5, 1.0]])).round(2)
    array([ 0.  ,  0.  , -0.58])
    """
    variances = np.diag(covariances)
    row_sums = covariances.sum(axis=1)
    covariances_with_others = row_sums - variances
    variances_of_others = covariances.sum() - 2.0 * row_sums + variances
    scale = np.sqrt(np.maximum(variances * variances_of_others, 0.0))
    return np.asarray(np.divide(covariances_with_others, scale, out=np.zeros(len(scale)), where=scale > 0))


@dataclass(frozen=True, kw_only=True)
class MeanScore:
    """The mean of several scores of a population.

    Parameters
    ----------
    population : Population
    names : tuple of str (k,)
        Names of the scores in the mean.
    """

    population: Population = field(repr=False)
    names: tuple[str, ...]

    @property
    def formula(self) -> Expression:
        """The mean as a formula of the columns."""
        return (1.0 / len(self.names)) * sum_of([NumberColumn(name=name) for name in self.names])

    @cached_property
    def mean_population(self) -> Population:
        """The population with the mean as its only proxy."""
        batches = self.population.batches(self.names)
        # Means that differ by less are equal: such a difference is a rounding error.
        values = rules.round_to_digits(np.concatenate([self.formula.evaluate(batch) for batch in batches]))
        bounds = self.population.proxy_info(self.names[0]).bounds
        # The name of the column that a `Derived` rule computes by its formula.
        return Population.from_arrays(proxy=Proxy(values=values, bounds=bounds, name=rules.INFLUENCE))

    @cached_property
    def _distinct_values(self) -> FloatArray:
        """The distinct means of all units, in ascending order."""
        (batch,) = self.mean_population.batches((rules.INFLUENCE,), self.mean_population.size)
        return np.unique(batch[rules.INFLUENCE])

    def strata(self, method: str, n_strata: int) -> Strata:
        """Return strata that are intervals of the mean, with a rule in terms of the columns of the scores."""
        strata = replace(stratify(self.mean_population, method, n_strata), population=self.population)
        if strata.n_strata == 1:
            return strata
        # Rounding errors of an engine move no unit across a cut in the middle between two values.
        inner = rules.cut_between(strata.rule, self._distinct_values)
        names = tuple(name.replace(rules.INFLUENCE, "mean score", 1) for name in strata.names)
        rule = rules.Derived(inner=inner, cells=ALL_UNITS, influence=self.formula)
        return replace(strata, rule=rule, names=names)
