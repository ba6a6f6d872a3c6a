"""Rounds of unequal probabilities: each draws from the units that are left, by what is predicted by then."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.extending import rows_of
from stratal.designs.poisson import fixed_size, inclusion_scale, poisson, sequential_poisson
from stratal.designs.sample import Design, Sample
from stratal.designs.stratum_moments import satterthwaite
from stratal.designs.weighting import Weighting
from stratal.errors import InputError
from stratal.population.expressions import Expression, NumberColumn, logistic, total
from stratal.population.population import Population
from stratal.population.summary import Drawn, Size, SizeProfile
from stratal.protocols import JsonDict, JsonMapping
from stratal.proxy.history import HISTORY, FactorPosterior, history_columns
from stratal.randomness import id_texts
from stratal.strata.allocation import check_budget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SuccessiveWeighting(Weighting):
    """Rounds that each draw from what earlier ones left, combined by their sizes.

    A round's estimate is exact for units that were drawn before it, and for all others it is weighted by the
    round's 1/π. Given the rounds before it has no bias, so errors of rounds are uncorrelated.

    Parameters
    ----------
    inclusion_probability : float (n,)
        π of the labelled units, in their own round.
    round : int (n,)
        From 0.
    shares : float (T,)
        Of the rounds in the estimate; they add up to 1.
    answered : float (T,)
        Share of each round's units that have a label, by their weights.
    size : float
        N.
    """

    inclusion_probability: FloatArray
    round: IntArray
    shares: FloatArray
    answered: FloatArray
    size: float

    @property
    def weights(self) -> FloatArray:
        """For each unit (n,): its round's share over π, and the shares of later rounds, which know it."""
        later = np.append(np.cumsum(self.shares[::-1])[::-1][1:], 0.0)
        round_weights = self.shares[self.round] / self.inclusion_probability + later[self.round]
        return np.asarray(round_weights / self.answered[self.round] / self.size)

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Add up the rounds', each as of a fixed-size design; with one label, as of a Poisson sample."""
        covariance = np.zeros((variables.shape[1],) * 2)
        for t, share in enumerate(self.shares):
            in_round_mask = self.round == t
            chance = self.inclusion_probability[in_round_mask] * min(float(self.answered[t]), 1.0)
            formula = fixed_size if np.sum(chance < 1) > 1 else poisson  # one label has no spread
            covariance += share**2 * formula(variables[in_round_mask], chance, self.size)
        return covariance

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Units drawn by chance, less one for each round; each squared term is one degree of freedom."""
        chance = self.inclusion_probability < 1
        scaled = (variable * self.weights) ** 2 * (1.0 - self.inclusion_probability)
        free = float(satterthwaite(scaled[chance], np.ones(int(chance.sum()))))
        return max(free - len(self.shares), 1.0)

    @property
    def sampled_fractions(self) -> FloatArray:
        """0: a unit's prediction by the other folds needs no correction, as its weight is known."""
        return np.zeros(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Successive(Design):
    """Rounds of unequal probabilities: √ of the variance that is predicted of each unit by then.

    Each round draws the n_t of the units that are left with the smallest u/x, u random numbers of its own
    and x = √(p'(1 − p')), p' the predicted outcome moved a fifth of the way to its overall mean. What labels
    of earlier rounds decide is a later round's probabilities, never the weight of a label that is in.

    Parameters
    ----------
    budgets : tuple of int (T,)
        Units of each round.
    predicted : tuple of Expression (T,)
        What predicted the outcome (between 0 and 1) when the round was drawn.

    Notes
    -----
    Active sampling by rounds, as in sequential active inference (Zrnic & Candès 2024), without replacement;
    sequential Poisson sampling within a round (Ohlsson 1998).

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy={"p": [0.9, 0.5, 0.1, 0.8]})
    >>> Successive(budgets=(2,), predicted=(NumberColumn(name="p"),)).draw(population, seed=7).size
    2
    """

    kind = "successive"
    words = (
        "rounds of sequential Poisson samples, each from the units that were left, with inclusion "
        "probabilities proportional to the predicted standard deviation",
        "ohlsson",
    )
    assumption = "The variance is the design's approximate one."
    rounds_by_labels = True
    hajek_below = 8
    nested: ClassVar[JsonMapping] = {"predicted": Expression}
    budgets: tuple[int, ...]
    predicted: tuple[Expression, ...]

    def __post_init__(self) -> None:
        self._freeze()
        if len(self.budgets) != len(self.predicted) or not self.budgets:
            raise InputError("each round has a number of units and a prediction", allowed="as many of each")

    @property
    def budget(self) -> int:
        """Units of all rounds."""
        return sum(self.budgets)

    def draw(self, population: Population, seed: int) -> Sample:
        """Draw all rounds; the sample's π are each unit's in its own round."""
        sample = Design.draw(self, population, seed)
        return replace(sample, round=np.repeat(np.arange(1, len(self.budgets) + 1), self.budgets))

    def select(self, population: Population, seed: int) -> tuple[Design, Drawn, FloatArray, None]:
        """Draw all rounds, one after the other."""
        check_budget(self.budget, population.size)
        texts: list[str] = []
        probabilities: dict[str, float] = {}
        for number, (budget, predicted) in enumerate(zip(self.budgets, self.predicted, strict=True)):
            mean = float(population.means_of([predicted])[0])
            measured = Size(kind="sqrt-variance", formula=predicted, centre=min(max(mean, 0.01), 0.99))
            # The sample's own random numbers in the first round, others of it afterwards.
            named = hashlib.md5(f"round:{number}:{seed}".encode()).digest()
            if number:
                round_seed = int.from_bytes(named[:6], "big")
            else:
                round_seed = seed
            if texts:
                drawn_before = population.find(texts)
            else:
                drawn_before = None
            scale = inclusion_scale(_profile_of_undrawn(population, measured, drawn_before, budget), budget)
            candidates, new_rows = sequential_poisson(population, measured, scale, budget, round_seed, texts)
            ids = id_texts(candidates.drawn.ids)
            texts += [ids[row] for row in new_rows]
            probabilities |= {ids[row]: min(1.0, float(scale * candidates.size[row])) for row in new_rows}
        drawn = population.find(texts)
        drawn = drawn.only(rows_of(texts, drawn.ids))
        return self, drawn, np.array([probabilities[text] for text in texts]), None

    def weighting(self, sample: Sample, labelled: BoolArray) -> SuccessiveWeighting:
        """Return the rounds' weights; nonresponse is taken to be at random within each round."""
        number = sample.round - 1
        weights = 1.0 / sample.inclusion_probability
        drawn_weights, answered_weights = (
            np.bincount(number[part], weights[part], minlength=len(self.budgets))
            for part in (np.ones(sample.size, bool), labelled)
        )
        used = np.array(self.budgets) * (answered_weights > 0)
        return SuccessiveWeighting(
            inclusion_probability=sample.inclusion_probability[labelled],
            round=number[labelled],
            shares=used / max(used.sum(), 1),
            answered=np.where(answered_weights > 0, answered_weights / drawn_weights, 1.0),
            size=sample.population_size,
        )

    @classmethod
    def of_options(cls, budget: int, size: str, cluster: str | None, proxy: str | None = None) -> Self:
        """Return the first round, by a proxy between 0 and 1: the history's unless another is named."""
        return cls(budgets=(budget,), predicted=(NumberColumn(name=proxy or HISTORY),))

    def larger(self, sample: Sample, additional: int) -> Successive:
        """Return the design with another round by the same prediction."""
        return replace(
            self, budgets=(*self.budgets, additional), predicted=(*self.predicted, self.predicted[-1])
        )

    def following(self, sample: Sample, additional: int, outcomes: Any) -> Design:
        """Return the design with another round, by what the labels so far and the history predict.

        Without factors of a history, or for labels that are not shares of 1, the earlier prediction stays.
        """
        design = self.larger(sample, additional)
        population = sample.population
        assert population is not None
        names = history_columns(population.feature_names)
        if names and outcomes is not None and np.all((outcomes.z >= 0) & (outcomes.z <= 1)):
            candidates = population.find(id_texts(sample.ids))
            rows = rows_of(id_texts(sample.ids[outcomes.labelled]), candidates.ids)
            values = np.column_stack([candidates.features[name][rows] for name in names])
            posterior = FactorPosterior.of(values, outcomes.z)
            # What is still uncertain of a unit's log-odds is taken to be what it is on average.
            shrunk = 1.0 / float(np.sqrt(1.0 + np.pi / 8.0 * posterior.variances(values).mean()))
            weights = [shrunk, *(shrunk * posterior.mean).tolist()]
            terms = [w * NumberColumn(name=name) for w, name in zip(weights, names, strict=True)]
            design = replace(design, predicted=(*self.predicted, logistic(total(terms))))
        return design


def _profile_of_undrawn(
    population: Population, measured: Size, before: Drawn | None, budget: int
) -> SizeProfile:
    """Return the profile of the sizes of the units that are not drawn yet, with its `budget` largest."""
    if before is None:
        return population.size_profile(measured, budget)
    columns: JsonDict = {**before.features}
    columns |= {name: before.proxies[:, k] for k, name in enumerate(population.proxy_names)}
    assert measured.formula is not None
    drawn = np.sort(measured.of_arrays(measured.formula.of(columns)))[::-1]
    profile = population.size_profile(measured, min(budget + len(drawn), population.size))
    # Those of drawn units are taken out of the largest; an engine's sizes may differ in the last digit.
    undrawn_mask = np.ones(len(profile.largest), bool)
    position = 0
    matched = 0
    for size in drawn:
        while position < len(undrawn_mask) and profile.largest[position] > size * (1.0 + 1e-9):
            position += 1
        if position == len(undrawn_mask):
            break
        undrawn_mask[position] = False
        position = position + 1
        matched = matched + 1
    largest = profile.largest[undrawn_mask]
    rest = profile.rest - float(drawn[matched:].sum()) + float(largest[budget:].sum())
    return SizeProfile(units=profile.units - len(drawn), low=profile.low, largest=largest[:budget], rest=rest)
