"""Metrics of a classifier as estimands: accuracy, precision, recall, F_β and their relatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.allocation.rates import smoothed_standard_deviations
from stratal.arrays import BoolArray, FloatArray, Record
from stratal.errors import InputError, near_names
from stratal.estimation.columns import split_answers
from stratal.estimation.estimand import Estimand, LabelledInfluence
from stratal.estimation.estimands.beliefs import Beliefs
from stratal.estimation.estimate import Estimate
from stratal.estimation.metric_functions import Shares, metric_function
from stratal.estimation.metrics import AnsweredClasses, answered_classes, needless_units
from stratal.estimation.request import PLAIN, Request
from stratal.population.cells import Cells
from stratal.population.expressions import Expression
from stratal.population.influence import Influence, averages, stratum_averages
from stratal.population.population import Population
from stratal.sampling.sample import Sample
from stratal.strata import Strata

_MOST_CELLS = 12
"""A classifier with more classes is not divided by its answers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledRates(Record):
    """Which of the labelled units are of a class, and by how much the influence differs if they are.

    Parameters
    ----------
    is_class : float (m,)
    gap : float (m,)
        |u if it is − u if it is not|, the same for all units that are answered alike.
    labelled : bool (n,)
        Which of the drawn units these are.

    Examples
    --------
    >>> LabelledRates(is_class=[1.0], gap=[0.5], labelled=[True]).gap
    array([0.5])
    """

    is_class: FloatArray
    gap: FloatArray
    labelled: BoolArray


class Classification(Estimand):
    """A metric of the confusion of a classifier's answers with the truth.

    Examples
    --------
    >>> issubclass(Classification, Estimand)
    True
    """

    __slots__ = ()
    by_answer = True
    predicted: str | None

    @property
    def name(self) -> str:
        """The metric, as `ClassReport` calls it."""
        return self.kind

    @property
    def of(self) -> str | None:
        """The class that the metric is of, or how it is averaged over classes; None where of all."""
        return None

    @property
    def of_classes(self) -> bool:
        """Whether labels are true classes: always."""
        return True

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of the influence: u is a function of the answer and the true class.

        With slopes H, P, T and e of the metric in the shares of hits, of answers, of truths and of all,
        u = 1(c = a) H_a + T_c + P_a + e for a unit of class c that was answered a.
        """
        averaged = self.of in ("macro", "micro", "weighted", None)
        needed = () if averaged or self.of is None else (self.of,)
        beliefs = self._beliefs(population, needed)
        levels, k = beliefs.levels, len(beliefs.levels)
        which = None if self.of is None else self.of if averaged else levels.index(self.of)
        each = np.eye(k)
        sums = averages(
            population,
            [
                *(beliefs.of_answer(row) for row in each),
                *(beliefs.by_answer(row) for row in each),
                *(beliefs.of_class(row) for row in each),
            ],
        ).reshape(3, k)
        shares = Shares(hits=sums[0], predicted=sums[1], true=sums[2], everything=1.0)
        value, slopes, why = metric_function(self.name, which, k)(shares)
        if not np.isfinite(value):
            raise InputError(
                f"nothing can be expected of {self.text!r}: {why.replace('labelled unit', 'unit')}",
                given="answers are " + near_names("", [name for name in levels if name != self.of]),
                action="Check the class, give its probability (probability=COL), or plan for the accuracy.",
            )
        base = slopes.predicted + slopes.everything
        hits, true = slopes.hits, slopes.true
        mean = beliefs.by_answer(base) + beliefs.of_class(true) + beliefs.of_answer(hits)
        square = (
            beliefs.of_class(true**2)
            + 2.0 * beliefs.by_answer(base) * beliefs.of_class(true)
            + beliefs.by_answer(base**2)
            + beliefs.of_answer(hits**2 + 2.0 * hits * (true + base))
        )
        cells, known = self._cells(beliefs)
        return Influence(value=value, mean=mean, square=square, cells=cells, known=known)

    def _beliefs(self, population: Population, needed: tuple[str, ...]) -> Beliefs:
        told = (getattr(self, "probability", None), getattr(self, "right", None))
        return Beliefs.of(population, self.predicted, needed, *told)

    def _cells(self, beliefs: Beliefs) -> tuple[Cells, tuple[str, ...]]:
        """Return the parts of the population by what the model answered, and which of them need no label."""
        named = [self.of] if self.of in beliefs.levels else list(beliefs.levels)
        if len(named) > _MOST_CELLS:
            return Cells(names=("all",)), ()
        tests = [beliefs.is_answer(level) for level in named]
        if len(named) == len(beliefs.levels):
            tests = tests[:-1]
            return Cells(names=tuple(f"answer {level}" for level in named), tests=tuple(tests)), ()
        inside, outside = f"answer {named[0]}", "other answers"
        test = self._needless(beliefs.answers)
        if test is None:
            return Cells(names=(inside, outside), tests=(tests[0],)), ()
        counted = inside if test == self._not_answered(beliefs.answers) else outside
        left = outside if counted == inside else inside
        return Cells(names=(left, counted), tests=(test,)), (left,)

    def _needless(self, answers: str) -> Expression | None:
        return needless_units(self.name, self.of, answers)

    def _not_answered(self, answers: str) -> Expression | None:
        return needless_units("precision", self.of, answers)

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the metric, from the true classes."""
        answered = self._answered(sample, labels)
        found = answered.metric(sample, self.name, self._which(answered), request.target)
        return replace(found, label=self.label)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the influence of the labelled units, at the shares that the labels estimate."""
        answered = self._answered(sample, labels)
        return answered.influence(self.name, self._which(answered))

    def _answered(self, sample: Sample, labels: Any) -> AnsweredClasses:
        averaged = self.of in ("macro", "micro", "weighted", None)
        labels, given = split_answers(labels)
        answers = self.predicted or sample.predicted
        needless = None if answers is None or given is not None else self._needless(answers)
        return answered_classes(
            sample,
            labels,
            self.predicted if given is None else given,
            None if averaged else [self.of],
            needless=needless,
        )

    def _which(self, answered: AnsweredClasses) -> int | str | None:
        return answered.levels.index(self.of) if self.of in answered.levels else self.of

    def labelled_rates(self, sample: Sample, labels: Any) -> LabelledRates | None:
        """Return which labelled units are of the class, and what that changes of u; None of averages."""
        answered = self._answered(sample, labels)
        confusion, k = answered.confusion, self._which(answered)
        if not isinstance(k, int):
            return None
        other, weights = confusion.n_classes, confusion.weighting.weights
        # One label of average weight, half right, keeps what few labels show from one of its ends.
        shares = Shares.of(
            np.append(confusion.true, [k, k, other]),
            np.append(confusion.predicted, [k, other, k]),
            np.append(weights, float(weights.mean()) * np.array([0.5, 0.25, 0.25])),
            confusion.n_classes + 1,
        )
        _, slopes, _ = metric_function(self.name, k, confusion.n_classes + 1)(shares)
        either = [slopes.along(np.full(len(weights), truth), confusion.predicted) for truth in (k, other)]
        return LabelledRates(
            is_class=(confusion.true == k).astype(np.float64),
            gap=np.abs(either[0] - either[1]),
            labelled=answered.labelled,
        )

    def chance(self, population: Population) -> Expression:
        """Return the probability that a unit is of the class, as the columns have it."""
        assert self.of is not None
        beliefs = self._beliefs(population, (self.of,))
        return beliefs.of_class(np.array([float(level == self.of) for level in beliefs.levels]))

    def learned_deviations(
        self, sample: Sample, labels: Any, strata: Strata, planned: FloatArray | None = None
    ) -> FloatArray:
        """Return √E[r (1 − r)] times the gap between the two values that the influence has in a stratum (H,).

        What is unknown is the rate r of the class: its probabilities are recalibrated on the labels, and
        smoothed, as a mean's proxy is. For averages of several classes, and where no population is at hand,
        as of other estimands.
        """
        rates = None if sample.population is None else self.labelled_rates(sample, labels)
        if rates is None or sample.population is None:
            return Estimand.learned_deviations(self, sample, labels, strata, planned)
        stratum, n_strata = sample.stratum[rates.labelled], strata.n_strata
        counts = np.bincount(stratum, minlength=n_strata)
        gap = np.bincount(stratum, rates.gap, minlength=n_strata) / np.maximum(counts, 1)
        gap = np.where(counts > 0, gap, rates.gap.mean())
        chances = stratum_averages(sample.population, strata.rule, [self.chance(sample.population)])[:, 0]
        deviations = smoothed_standard_deviations(
            strata.sizes,
            counts,
            np.bincount(stratum, rates.is_class, minlength=n_strata),
            proxy_means=np.clip(chances, 0.0, 1.0),
        )
        return np.asarray(np.where(strata.is_known, 0.0, deviations * gap))
