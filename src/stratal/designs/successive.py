"""Rounds with unequal probabilities: each draws from the remaining units, based on the current prediction."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.extending import rows_of
from stratal.designs.poisson import (
    UnequalProbabilities,
    fixed_size,
    inclusion_scale,
    poisson,
    sequential_poisson,
)
from stratal.designs.sample import Design, Sample
from stratal.designs.stratum_moments import satterthwaite
from stratal.designs.weighting import Weighting
from stratal.errors import InputError
from stratal.population.drawn_units import DrawnUnits
from stratal.population.expressions import Expression, NumberColumn, logistic, sum_of
from stratal.population.population import Population
from stratal.population.size_measure import SizeMeasure, SizeProfile
from stratal.protocols import JsonDict, JsonMapping
from stratal.proxy.history import HISTORY, FactorPosterior, history_columns
from stratal.randomness import id_texts
from stratal.strata.arguments import check_budget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SuccessiveWeighting(Weighting):
    """Estimates of rounds that draw from the remaining units, combined in proportion to their sizes.

    The estimate of a round uses the known outcomes of previously drawn units, and weights its own units by
    1/π. Given the previous rounds it is unbiased, so that the errors of rounds are uncorrelated.

    Parameters
    ----------
    inclusion_probability : float (n,)
        π of the labelled units in the round of their draw.
    round : int (n,)
        Index of this round, from 0.
    round_weights : float (T,)
        Weights of the rounds in the estimate, with sum 1.
    response_rates : float (T,)
        Weighted share of the drawn units of each round that have a label.
    size : float
        N.
    """

    inclusion_probability: FloatArray
    round: IntArray
    round_weights: FloatArray
    response_rates: FloatArray
    size: float

    @property
    def weights(self) -> FloatArray:
        """The weight of each unit (n,): that of its round divided by π, plus those of later rounds."""
        sums_from_round = np.cumsum(self.round_weights[::-1])[::-1]
        later_weights = np.append(sums_from_round[1:], 0.0)
        own_round_weights = self.round_weights[self.round] / self.inclusion_probability
        unit_weights = own_round_weights + later_weights[self.round]
        return np.asarray(unit_weights / self.response_rates[self.round] / self.size)

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Return the sum of the covariances of the rounds, each with a fixed size."""
        covariance = np.zeros((variables.shape[1],) * 2)
        for t, round_weight in enumerate(self.round_weights):
            in_round_mask = self.round == t
            response_rate = min(float(self.response_rates[t]), 1.0)
            probabilities = self.inclusion_probability[in_round_mask] * response_rate
            if np.sum(probabilities < 1) > 1:
                covariance_function = fixed_size
            else:
                # The formula of a fixed size requires at least two random units.
                covariance_function = poisson
            covariance += round_weight**2 * covariance_function(
                variables[in_round_mask], probabilities, self.size
            )
        return covariance

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Effective number of units drawn by chance (Satterthwaite), minus one for each round."""
        is_random = self.inclusion_probability < 1
        variances = (variable * self.weights) ** 2 * (1.0 - self.inclusion_probability)
        effective_units = float(satterthwaite(variances[is_random], np.ones(int(is_random.sum()))))
        return max(effective_units - len(self.round_weights), 1.0)

    @property
    def sampled_fractions(self) -> FloatArray:
        """0 (1,): the weights of a round are known, so that cross-fitted predictions need no correction."""
        return np.zeros(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Successive(Design):
    """Rounds with probabilities proportional to the current predicted standard deviation of each unit.

    Each round draws the n_t remaining units with the smallest u/x. Here u are the random numbers of the
    round, and x = √(p'(1 − p')) for the predicted outcome p', shrunk by a fifth towards its overall mean.
    Labels determine only the probabilities of later rounds, never the weight of an existing label.

    Parameters
    ----------
    budgets : tuple of int (T,)
        Units of each round.
    predicted : tuple of Expression (T,)
        The prediction of the outcome (between 0 and 1) at the time of each round.

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
    report_description = (
        "rounds of sequential Poisson samples, each from the remaining units, with inclusion "
        "probabilities proportional to the predicted standard deviation",
        "ohlsson",
    )
    assumption = "The variance is the approximate variance of the design."
    allows_label_based_rounds = True
    # As for the other designs with unequal probabilities.
    hajek_below = UnequalProbabilities.hajek_below
    nested: ClassVar[JsonMapping] = {"predicted": Expression}
    budgets: tuple[int, ...]
    predicted: tuple[Expression, ...]

    def __post_init__(self) -> None:
        self._freeze()
        if len(self.budgets) != len(self.predicted) or not self.budgets:
            raise InputError(
                "each round requires a number of units and a prediction",
                allowed="the same number of each",
            )

    @property
    def budget(self) -> int:
        """Units of all rounds."""
        return sum(self.budgets)

    def draw(self, population: Population, seed: int) -> Sample:
        """Draw all rounds; the π of a unit is that of its round."""
        sample = Design.draw(self, population, seed)
        return replace(sample, round=np.repeat(np.arange(1, len(self.budgets) + 1), self.budgets))

    def select(self, population: Population, seed: int) -> tuple[Design, DrawnUnits, FloatArray, None]:
        """Draw all rounds, one after the other."""
        check_budget(self.budget, population.size)
        drawn_ids: list[str] = []
        probabilities: list[float] = []
        for index, (budget, predicted) in enumerate(zip(self.budgets, self.predicted, strict=True)):
            mean = float(population.means_of([predicted])[0])
            # A centre of 0 or 1 would give size 0 to units with such a prediction.
            centre = min(max(mean, 0.01), 0.99)
            measure = SizeMeasure(kind="sqrt-variance", formula=predicted, centre=centre)
            drawn_before = population.units_with_ids(drawn_ids) if drawn_ids else None
            profile = _profile_of_undrawn(population, measure, drawn_before, budget)
            scale = inclusion_scale(profile, budget)
            candidates, new_rows = sequential_poisson(
                population, measure, scale, budget, _round_seed(seed, index), drawn_ids
            )
            candidate_ids = id_texts(candidates.drawn.ids)
            drawn_ids += [candidate_ids[row] for row in new_rows]
            probabilities += [min(1.0, float(scale * candidates.size[row])) for row in new_rows]
        units = population.units_with_ids(drawn_ids)
        return self, units.only(rows_of(drawn_ids, units.ids)), np.array(probabilities), None

    def weighting(self, sample: Sample, labelled: BoolArray) -> SuccessiveWeighting:
        """Return the weights of the rounds, assuming that labels are missing at random in each round."""
        round_index = sample.round - 1
        weights = 1.0 / sample.inclusion_probability
        n_rounds = len(self.budgets)
        drawn_weights = np.bincount(round_index, weights, minlength=n_rounds)
        labelled_weights = np.bincount(round_index[labelled], weights[labelled], minlength=n_rounds)
        # A round without a label has no weight in the estimate.
        labelled_budgets = np.array(self.budgets) * (labelled_weights > 0)
        response_rates = np.where(labelled_weights > 0, labelled_weights / drawn_weights, 1.0)
        return SuccessiveWeighting(
            inclusion_probability=sample.inclusion_probability[labelled],
            round=round_index[labelled],
            round_weights=labelled_budgets / max(labelled_budgets.sum(), 1),
            response_rates=response_rates,
            size=sample.population_size,
        )

    @classmethod
    def from_options(cls, budget: int, size: str, cluster: str | None, proxy: str | None = None) -> Self:
        """Return the first round, by a proxy between 0 and 1; by default that of the history."""
        return cls(budgets=(budget,), predicted=(NumberColumn(name=proxy or HISTORY),))

    def larger_design(self, sample: Sample, additional: int) -> Successive:
        """Return the design with another round, based on the same prediction."""
        budgets = (*self.budgets, additional)
        return replace(self, budgets=budgets, predicted=(*self.predicted, self.predicted[-1]))

    def next_round_design(self, sample: Sample, additional: int, outcomes: Any) -> Design:
        """Return the design with another round, predicted from the current labels and the history.

        Without factors of a history, or for outcomes outside 0 to 1, the previous prediction is used.
        """
        design = self.larger_design(sample, additional)
        population = sample.population
        assert population is not None
        names = history_columns(population.feature_names)
        if names and outcomes is not None and np.all((outcomes.z >= 0) & (outcomes.z <= 1)):
            units = population.units_with_ids(id_texts(sample.ids))
            rows = rows_of(id_texts(sample.ids[outcomes.labelled]), units.ids)
            values = np.column_stack([units.features[name][rows] for name in names])
            posterior = FactorPosterior.of(values, outcomes.z)
            # The mean of a logistic function of a normal variable is approximately the function of its mean
            # divided by √(1 + π v / 8); v is the average variance of the log-odds.
            attenuation = 1.0 / float(np.sqrt(1.0 + np.pi / 8.0 * posterior.variances(values).mean()))
            weights = [attenuation, *(attenuation * posterior.mean).tolist()]
            terms = [weight * NumberColumn(name=name) for weight, name in zip(weights, names, strict=True)]
            design = replace(design, predicted=(*self.predicted, logistic(sum_of(terms))))
        return design


def _round_seed(seed: int, index: int) -> int:
    """Return the seed of the permanent random numbers of a round, independent of those of other rounds."""
    if index == 0:
        return seed
    digest = hashlib.md5(f"round:{index}:{seed}".encode()).digest()
    return int.from_bytes(digest[:_SEED_BYTES], "big")


# Number of bytes of a digest that form the seed of a later round. Another number would change all samples.
_SEED_BYTES = 6

# Sizes from an engine may differ from those computed here in the last digits.
_RELATIVE_ROUNDING = 1e-9


def _profile_of_undrawn(
    population: Population, measure: SizeMeasure, drawn_before: DrawnUnits | None, budget: int
) -> SizeProfile:
    """Return the profile of the sizes of the undrawn units, with the `budget` largest ones."""
    if drawn_before is None:
        return population.size_profile(measure, budget)
    columns: JsonDict = {**drawn_before.features}
    columns |= {name: drawn_before.proxies[:, k] for k, name in enumerate(population.proxy_names)}
    assert measure.formula is not None
    drawn_sizes = np.sort(measure.evaluate(measure.formula.evaluate(columns)))[::-1]
    profile = population.size_profile(measure, min(budget + len(drawn_sizes), population.size))
    # Match the drawn sizes with the largest sizes, both in decreasing order. Those without a match are
    # undrawn.
    is_undrawn = np.ones(len(profile.largest), bool)
    position = 0
    n_matched = 0
    for size in drawn_sizes:
        while position < len(is_undrawn) and profile.largest[position] > size * (1.0 + _RELATIVE_ROUNDING):
            position += 1
        if position == len(is_undrawn):
            break
        is_undrawn[position] = False
        position += 1
        n_matched += 1
    largest = profile.largest[is_undrawn]
    # `profile.rest` includes the drawn sizes without a match, but not the largest sizes beyond the budget.
    rest = profile.rest - float(drawn_sizes[n_matched:].sum()) + float(largest[budget:].sum())
    return SizeProfile(
        units=profile.units - len(drawn_sizes), low=profile.low, largest=largest[:budget], rest=rest
    )
