"""Units on which the candidates for the best model disagree, drawn in rounds until the best model is known.

A unit with the permanent random number u is drawn when its exposure reaches −log(1 − u), an exponential
waiting time. Per unit of time, the exposure increases by the size x of the unit in the current round. The
next unit is then i with probability x_i / Σ x among the remaining units. This does not depend on previous
draws, because the exponential distribution is memoryless (Efraimidis & Spirakis 2006). It holds even if sizes
change between rounds because models are eliminated. Draws are nested, and the probabilities of each draw are
known exactly, as the bounds of `stratal.intervals.difference_betting` require.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.poisson import PoissonWeighting
from stratal.designs.sample import Design, Sample
from stratal.errors import InputError
from stratal.population.answer_sets import mixed_answers_error
from stratal.population.drawn_units import Candidates, DrawnUnits
from stratal.population.population import Population
from stratal.population.size_measure import SizeMeasure
from stratal.proxy.agreement import answer_shares, coded_answers, estimate_accuracies
from stratal.question.tags import read_sets

# Smallest size of a unit on which survivors differ, relative to the root mean square of these sizes. No label
# then has more than about twice the weight of the others, whichever model leads in the end. Values of .3 to
# .6 need the same number of labels, and .1 a third more.
MIN_RELATIVE_SIZE = 0.5

# Number of units whose answers determine the estimated accuracies of the models before there are labels.
UNITS_FOR_ACCURACIES = 1_024

# Number of units in each slice of a sum. Their answers stay in the cache of the processor: with four times as
# many units, the sums take six times as long.
_UNITS_AT_ONCE = 4_096

# Number of the latest draws that are kept: an update needs the draw before its new round and the one with it.
_DRAWS_KEPT = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawRound:
    """A round of a draw.

    Parameters
    ----------
    inverse_sizes : float (N,)
        1 / x of each unit that was not drawn before the round; 0 for the others, and for size 0.
    rows : int (m,)
        The drawn units, in the order of the draw.
    totals : float (m,)
        Σ x over the remaining units, before each of them was drawn.
    """

    inverse_sizes: FloatArray
    rows: IntArray
    totals: FloatArray


class DifferingUnits:
    """The units on which the answers of each model differ from those of a reference model.

    Counts and sums over all units are computed once, because each round of a selection needs them again.

    Parameters
    ----------
    codes : int (N, k)
        The answers as numbers.
    reference : int
    counts_agreements : bool
        Whether units on which all models agree affect the criterion too. Every unit then counts as one on
        which every model differs.
    """

    def __init__(self, codes: IntArray, reference: int, *, counts_agreements: bool = False) -> None:
        self._codes = codes
        self._reference_answers = codes[:, reference]
        self._counts_agreements = counts_agreements
        self._sums: WeakKeyDictionary[DrawRound, FloatArray] = WeakKeyDictionary()
        self.size = len(codes)

    def of_model(self, model: int) -> BoolArray:
        """Return on which units (N,) a model differs."""
        return np.asarray((self._codes[:, model] != self._reference_answers) | self._counts_agreements)

    def of_units(self, rows: IntArray | slice) -> BoolArray:
        """Return which models differ on these units (n, k)."""
        return np.asarray(
            (self._codes[rows] != self._reference_answers[rows, None]) | self._counts_agreements
        )

    @cached_property
    def counts(self) -> IntArray:
        """The number of units (k,) on which each model differs."""
        models = range(self._codes.shape[1])
        return np.array([np.count_nonzero(self.of_model(model)) for model in models], dtype=np.int64)

    def inverse_sizes(self, draw_round: DrawRound) -> FloatArray:
        """Return Σ 1/x (k,) over the units that remained before a round and on which each model differs."""
        if draw_round not in self._sums:
            sums = np.zeros(self._codes.shape[1])
            for units in _unit_slices(self.size):
                # BLAS, which is faster, has no products with bool.
                sums += draw_round.inverse_sizes[units] @ self.of_units(units).astype(np.float64)
            self._sums[draw_round] = sums
        return self._sums[draw_round]


def _unit_slices(size: int) -> list[slice]:
    """Return slices that cover all units."""
    return [slice(start, start + _UNITS_AT_ONCE) for start in range(0, size, _UNITS_AT_ONCE)]


class SuccessiveDraws:
    """Draws of one unit after another, with sizes that may change between rounds.

    Parameters
    ----------
    uniform : float (N,)
        Permanent random numbers in [0, 1).

    Attributes
    ----------
    remaining_exposure : float (N,)
        Exposure at which the unit is drawn, minus its current exposure.
    exposure : float (N,)
        Sum over the rounds of the unit's size times the elapsed time.
    drawn : bool (N,)
    rows : int (n,)
        The drawn units, in the order of the draw.
    inverse_probability : float (n,)
        1 / q of each drawn unit, where q is its probability in that draw.
    max_inverse_probability : float (n,)
        Largest possible 1 / q in that draw, that of the smallest size.
    """

    def __init__(self, uniform: FloatArray) -> None:
        self.remaining_exposure = -np.log1p(-uniform)
        self.exposure = np.zeros(len(uniform))
        self.drawn = np.zeros(len(uniform), dtype=bool)
        self.rows = np.empty(0, np.int64)
        self.inverse_probability = np.empty(0)
        self.max_inverse_probability = np.empty(0)
        self._rounds: tuple[DrawRound, ...] = ()

    def copy(self) -> SuccessiveDraws:
        """Return a draw that can be continued without changing this one."""
        copied = copy.copy(self)
        copied.remaining_exposure = self.remaining_exposure.copy()
        copied.exposure = self.exposure.copy()
        copied.drawn = self.drawn.copy()
        return copied

    def draw(self, sizes: FloatArray, count: int) -> int:
        """Draw a round of up to `count` units, in proportion to their sizes (N,); return their number."""
        candidates = np.flatnonzero(~self.drawn & (sizes > 0))
        count = min(count, len(candidates))
        if count < 1:
            return 0
        x = sizes[candidates]
        waiting_times = self.remaining_exposure[candidates] / x
        earliest = np.flatnonzero(waiting_times <= np.partition(waiting_times, count - 1)[count - 1])
        first = earliest[np.argsort(waiting_times[earliest], kind="stable")[:count]]
        new_rows = candidates[first]
        elapsed = float(waiting_times[first[-1]])
        # Σ x over the remaining units before each draw.
        totals = x.sum() - np.concatenate([[0.0], np.cumsum(x[first])[:-1]])
        inverse_sizes = np.zeros(len(sizes))
        inverse_sizes[candidates] = 1.0 / x
        self._rounds += (DrawRound(inverse_sizes=inverse_sizes, rows=new_rows, totals=totals),)
        self.remaining_exposure[candidates] -= x * elapsed
        # If all units are drawn, each has the probability 1.
        if count == len(candidates):
            elapsed = np.inf
        # The exposure of drawn units increases, too: `probability` is that of a draw in any round so far.
        has_size = sizes > 0
        self.exposure[has_size] += sizes[has_size] * elapsed
        self.drawn[new_rows] = True
        self.rows = np.concatenate([self.rows, new_rows])
        self.inverse_probability = np.concatenate([self.inverse_probability, totals / x[first]])
        self.max_inverse_probability = np.concatenate([self.max_inverse_probability, totals / x.min()])
        return count

    @property
    def probability(self) -> FloatArray:
        """The inclusion probability (n,) of each drawn unit, from its total exposure."""
        return np.asarray(-np.expm1(-self.exposure[self.rows]))

    def inverse_probability_sums(self, differences: DifferingUnits, models: IntArray) -> FloatArray:
        """Return Σ 1/q over the remaining units on which each of J models differs, at each draw (n, J)."""
        sums = [np.empty((0, len(models)))]
        for draw_round in self._rounds:
            rows = draw_round.rows
            drawn = draw_round.inverse_sizes[rows, None] * differences.of_units(rows)[:, models]
            earlier = np.cumsum(drawn, axis=0) - drawn
            remaining = differences.inverse_sizes(draw_round)[models] - earlier
            sums.append(remaining * draw_round.totals[:, None])
        return np.concatenate(sums)


def unit_sizes(
    codes: IntArray, leader: int, survivors: IntArray, rivals: IntArray, *, counts_agreements: bool = False
) -> FloatArray:
    """Return the size (N,) of each unit in a round: √ of the share of rivals that differ from the leader.

    These sizes minimise the sum of the variances of the differences between the leader and its rivals. Units
    on which no survivor differs have size 0, unless units on which all models agree affect the criterion
    (`counts_agreements`). `codes` (N, k) are the answers as numbers. `survivors` are the models that could
    still be the best, and `rivals` those of them that are not yet distinguished from the leader.
    """
    # A loop over models, because the answers of one model are contiguous in memory.
    leader_answers = codes[:, leader]
    n_differing_rivals = np.zeros(len(codes), dtype=np.int16)
    survivor_differs = np.zeros(len(codes), dtype=bool)
    for model in np.union1d(survivors, rivals).tolist():
        differs = codes[:, model] != leader_answers
        if model in survivors:
            survivor_differs |= differs
        if model in rivals:
            n_differing_rivals += differs
    sizes = np.sqrt(n_differing_rivals / max(len(rivals), 1))
    if np.any(survivor_differs):
        min_size = MIN_RELATIVE_SIZE * np.sqrt(np.mean(sizes[survivor_differs] ** 2))
    else:
        min_size = 1.0
    return np.asarray(np.where(survivor_differs | counts_agreements, np.maximum(sizes, min_size), 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreements(Design):
    """Units on which models that may still be the best give different answers; drawn by `stratal.select`.

    Parameters
    ----------
    answers : tuple of str (k,)
        The group columns of the models' answers.
    units, leaders : tuple of int (rounds,)
        Number of units of each round, and the leading model as its index in `answers`.
    survivors, rivals : tuple of tuple of int (rounds,)
        The models that could still be the best, and those of them that were not yet distinguished from the
        leader.
    criterion : str
        `accuracy`, `preference` or a metric of classes.
    positive : str, optional
        The class of the metric.
    confidence : float
        Probability with which the selected model is the best, or worse by less than `indifference`.
    indifference : float
    budget : int, optional
        Largest number of labels.

    Examples
    --------
    >>> import stratal
    >>> answers = {"a": ["x", "y", "x"], "b": ["x", "x", "x"]}
    >>> population = stratal.Population.from_arrays(groups=answers)
    >>> stratal.select(population, answers=["a", "b"], seed=7).sample.ids.tolist()
    [1]
    """

    kind = "disagreements"
    # The second entry is the source: its key in `report/methods.toml`.
    report_description = ("units on which the candidates for the best model disagree", "ohlsson")
    assumption = "Only differences between the models are estimated."
    answers: tuple[str, ...]
    units: tuple[int, ...]
    leaders: tuple[int, ...]
    survivors: tuple[tuple[int, ...], ...]
    rivals: tuple[tuple[int, ...], ...]
    criterion: str = "accuracy"
    positive: str | None = None
    confidence: float = 0.95
    indifference: float = 0.01
    budget: int | None = None

    @property
    def counts_agreements(self) -> bool:
        """Whether units on which all models agree affect the criterion: not for accuracy and preference."""
        return self.criterion not in ("accuracy", "preference")

    def sizes(
        self, codes: IntArray, leader: int, survivors: tuple[int, ...], rivals: tuple[int, ...]
    ) -> FloatArray:
        """Return the sizes (N,) of the units of a round, from answers (N, k) as numbers."""
        return unit_sizes(
            codes,
            leader,
            np.array(survivors, np.int64),
            np.array(rivals, np.int64),
            counts_agreements=self.counts_agreements,
        )

    def with_round(
        self, count: int, leader: int, survivors: tuple[int, ...], rivals: tuple[int, ...]
    ) -> Disagreements:
        """Return the design with another round of `count` units."""
        return replace(
            self,
            units=(*self.units, count),
            leaders=(*self.leaders, leader),
            survivors=(*self.survivors, survivors),
            rivals=(*self.rivals, rivals),
        )

    def select(self, population: Population, seed: int) -> tuple[Design, DrawnUnits, FloatArray, None]:
        """Draw all rounds; units are in the order of the draw. The summary of strata is None."""
        units = units_and_answers(population, self.answers, seed)
        draws = units.draws(self)
        return self, units.candidates.drawn.only(draws.rows), np.minimum(draws.probability, 1.0), None

    def larger_design(self, sample: Sample, additional: int) -> Design:
        """Raise an error, because labels determine the next units."""
        action = "Also give the labels: Selection.update(labels), or stratal select --extend with --labels."
        raise InputError("the next disagreements depend on the existing labels", action=action)

    def weighting(self, sample: Sample, labelled: BoolArray) -> PoissonWeighting:
        """Raise an error: no mean can be estimated, as units on which all models agree are never drawn."""
        raise InputError(
            "this sample only distinguishes models: units on which all of them agree are never labelled",
            action="Estimate differences: stratal.select, stratal select --extend. For the winner's own "
            "value, draw a separate sample: stratal plan, stratal draw.",
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelAnswers:
    """All units with their permanent random numbers, and the answers of the models.

    Parameters
    ----------
    candidates : Candidates
    codes : int (N, k)
        The answers as numbers.
    code_by_answer : dict
        The number of each answer.
    """

    candidates: Candidates
    codes: IntArray
    code_by_answer: dict[Any, int]
    # The latest draws by their rounds, and the latest differences by their reference model.
    _draws: dict[tuple[Any, ...], SuccessiveDraws] = field(default_factory=dict, init=False, repr=False)
    _differences: dict[tuple[int, bool], DifferingUnits] = field(default_factory=dict, init=False, repr=False)

    def draws(self, design: Disagreements, rounds: int | None = None) -> SuccessiveDraws:
        """Return the draws of all rounds of a design, or of the first `rounds`.

        They are cached, so that a caller that adds a round must copy them first.
        """
        models = zip(design.leaders, design.survivors, design.rivals, strict=True)
        # The number of units of each round, and the arguments of its sizes.
        round_arguments = tuple(zip(design.units, models, strict=True))[:rounds]
        if round_arguments in self._draws:
            return self._draws[round_arguments]
        if round_arguments:
            draws = self.draws(design, len(round_arguments) - 1).copy()
            count, size_arguments = round_arguments[-1]
            draws.draw(design.sizes(self.codes, *size_arguments), count)
        else:
            draws = SuccessiveDraws(self.candidates.uniform)
        self._draws[round_arguments] = draws
        for outdated in [*self._draws][:-_DRAWS_KEPT]:
            del self._draws[outdated]
        return draws

    def differences(self, reference: int, *, counts_agreements: bool) -> DifferingUnits:
        """Return the differences from a model; those of the latest model are kept."""
        key = (reference, counts_agreements)
        if key not in self._differences:
            self._differences.clear()
            self._differences[key] = DifferingUnits(
                self.codes, reference, counts_agreements=counts_agreements
            )
        return self._differences[key]

    @cached_property
    def n_distinct_models(self) -> int:
        """The number of models, where models with the same answers to all units count once."""
        return len({column.tobytes() for column in self.codes.T})

    @cached_property
    def correct_probabilities(self) -> CorrectProbabilities:
        """The probability that each answer is correct, from the models' agreement without labels."""
        return CorrectProbabilities(self.codes)


class CorrectProbabilities:
    """The probability that each answer is correct, from the agreement of the models without labels.

    Parameters
    ----------
    codes : int (N, k)
        The answers as numbers.
    """

    def __init__(self, codes: IntArray) -> None:
        self._codes = codes
        _, self._vote_weights = estimate_accuracies(codes, UNITS_FOR_ACCURACIES)

    def of_units(self, rows: IntArray | slice) -> FloatArray:
        """Return the probabilities (n, k) of the models' answers to these units."""
        return answer_shares(self._codes[rows], self._vote_weights)

    @cached_property
    def totals(self) -> FloatArray:
        """The sum (k,) of the probabilities of each model over all units."""
        sums = [self.of_units(units).sum(axis=0) for units in _unit_slices(len(self._codes))]
        return np.asarray(np.sum(sums, axis=0))


# Cache of the latest answers of each population, by their columns and the seed, because every round of a
# selection needs them.
_ANSWERS_BY_POPULATION: WeakKeyDictionary[Population, dict[tuple[tuple[str, ...], int], ModelAnswers]] = (
    WeakKeyDictionary()
)


def units_and_answers(population: Population, answers: tuple[str, ...], seed: int) -> ModelAnswers:
    """Return all units and the answers of the models; they are cached for the next rounds."""
    if (answers, seed) not in _ANSWERS_BY_POPULATION.get(population, {}):
        _ANSWERS_BY_POPULATION[population] = {(answers, seed): _read_answers(population, answers, seed)}
    return _ANSWERS_BY_POPULATION[population][answers, seed]


def _read_answers(population: Population, answers: tuple[str, ...], seed: int) -> ModelAnswers:
    """Read all units and the answers of the models; sets with the same tags in another order are equal."""
    # With equal sizes, every random number is below the limit of 1.
    candidates = population.units_below_size_limit(SizeMeasure(kind="equal"), 1.0, seed)
    columns = {name: candidates.drawn.groups[population.require_group(name)] for name in answers}
    for name, column in columns.items():
        texts, other = read_sets(column.tolist(), population.tags)
        if other is not None:
            place = f"id {str(candidates.drawn.ids[other])!r}"
            raise mixed_answers_error(name, column[other], place, population.tags)
        if texts is None:
            columns[name] = column
        else:
            columns[name] = np.array(texts, dtype=np.str_)
    drawn = replace(candidates.drawn, groups={**candidates.drawn.groups, **columns})
    codes, code_by_answer = coded_answers(list(columns.values()))
    # A round compares all answers, which is faster with few bytes per answer. The type must hold the largest
    # code plus 1, which `answer_shares` computes.
    codes = codes.astype(np.min_scalar_type(-len(code_by_answer) - 2))
    return ModelAnswers(
        candidates=replace(candidates, drawn=drawn), codes=codes, code_by_answer=code_by_answer
    )
