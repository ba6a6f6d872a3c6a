"""Losses of a classifier's probabilities as estimands: labels are the true classes.

Let f_k be the model's probability of class k. Before labels, the expected loss of a unit is Σ f_k ℓ(f_k), and
the expected square of its loss is Σ f_k ℓ(f_k)² (Fogliato et al. 2024, sections 2.1 and B.2). The loss of a
unit with the label Y is ℓ(f_Y), and the estimate is the weighted mean of these losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from stratal.arrays import BoolArray, FloatArray, has_entry
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, suggest_names
from stratal.estimation.calibrated import features_of, learner_columns
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, LabelledInfluence, Request
from stratal.estimation.estimate import Estimate
from stratal.estimation.means import Mean
from stratal.estimation.resolve import class_column, no_labels_error
from stratal.population.expressions import Expression, LogLoss, NumberColumn, sum_of
from stratal.population.influence import Influence, population_means
from stratal.population.population import Population
from stratal.population.softmax import SOFTMAX_TOLERANCE, class_names
from stratal.protocols import Keywords
from stratal.proxy.proxy import MIN_PROBABILITY


@dataclass(frozen=True, slots=True)
class ClassLoss(Estimand, listed_field="probabilities", listed_example="p_cat,p_dog"):
    """The mean loss of a model's class probabilities.

    Parameters
    ----------
    probabilities : tuple of str
        Columns of the f_k, which are named after the classes: `p_cat`, `p_dog`, or the pattern `p_*`.
    """

    reads_population = True
    of_classes = True
    compared = False
    takes: ClassVar[tuple[str, ...]] = ("target", "population")
    bounds: ClassVar[tuple[float, float]]
    probabilities: tuple[str, ...]

    def __post_init__(self) -> None:
        self._set(probabilities=tuple(self.probabilities))

    @classmethod
    def parse(cls, fields: Keywords) -> Self:
        """Return the loss from its stored fields, without the `surrogate` that earlier versions stored."""
        return super(ClassLoss, cls).parse({name: fields[name] for name in fields if name != "surrogate"})

    @staticmethod
    def loss_formula(probability: Expression) -> Expression:
        """Return the loss at a probability of the true class, as a formula."""
        raise NotImplementedError

    @classmethod
    def loss(cls, probability: FloatArray) -> FloatArray:
        """Return the loss (n,) at the probability of the true class."""
        return cls.loss_formula(NumberColumn(name="p")).evaluate({"p": probability})

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of the loss minus its mean."""
        columns = _columns_by_class(population, self.probabilities).values()
        _require_softmax(population, list(columns))
        probabilities = [NumberColumn(name=name) for name in columns]
        losses = [self.loss_formula(probability) for probability in probabilities]
        mean = sum_of([p * loss for p, loss in zip(probabilities, losses, strict=True)])
        second_moment = sum_of([p * (loss * loss) for p, loss in zip(probabilities, losses, strict=True)])
        value = float(population_means(population, [mean])[0])
        square = second_moment - (2.0 * value) * mean + value * value
        return Influence(value=value, mean=mean - value, square=square)

    def _losses(
        self, sample: Sample, labels: object, population: Population | None
    ) -> tuple[FloatArray, BoolArray]:
        """Return the losses (m,) of the labelled units, and which drawn units (n,) are labelled."""
        if population is None:
            problem = f"{self.text}: the sample does not contain the class probabilities of its units"
            raise InputError(problem, action="Give the population: population= (--population FILE).")
        columns = _columns_by_class(population, self.probabilities)
        classes = class_column(sample, labels, "labels")
        labelled = has_entry(classes)
        if not np.any(labelled):
            raise no_labels_error()
        column_by_class = {name: k for k, name in enumerate(columns)}
        unknown = next((name for name in classes[labelled] if name not in column_by_class), None)
        if unknown is not None:
            problem = f"no column contains the probability of the class {unknown!r}"
            action = "Map the label to a class (--map), or name the column of this class."
            raise LabelError(problem, allowed=suggest_names(unknown, column_by_class), action=action)
        probabilities = features_of(sample, population, tuple(columns.values()))[labelled]
        true_columns = [column_by_class[name] for name in classes[labelled]]
        return self.loss(probabilities[np.arange(len(probabilities)), true_columns]), labelled

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the losses. They differ from the influence only by a constant."""
        u, labelled = self._losses(sample, labels, sample.population)
        return LabelledInfluence(u=u, labelled=labelled)

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the mean loss, from the true classes and the probabilities of the labelled units."""
        z, labelled = self._losses(sample, labels, request.population or sample.population)
        losses = np.full(sample.size, np.nan)
        losses[labelled] = z
        # Without proxies: those of the sample do not predict this loss.
        mean_request = replace(
            request, estimator="horvitz-thompson", outcome="bounded", bounds=self.bounds, population=None
        )
        return replace(Mean().estimate(sample, losses, mean_request), label=self.label)


@dataclass(frozen=True, slots=True)
class SquaredError(ClassLoss, kind="squared_error", bounds=(0.0, 1.0)):
    """The mean of (1 − f_Y)², where f_Y is the model's probability of the true class.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     features={"p_cat": [0.9, 0.2, 0.6] * 20, "p_dog": [0.1, 0.8, 0.4] * 20})
    >>> plan = stratal.plan(population, 30, estimand="squared_error:p_*")
    >>> sample = plan.draw(seed=7)
    >>> round(stratal.estimate(sample, ["cat"] * 30).value, 2)
    0.27
    """

    @staticmethod
    def loss_formula(probability: Expression) -> Expression:
        """Return the loss as a formula."""
        error = 1.0 - probability
        return error * error


@dataclass(frozen=True, slots=True)
class CrossEntropy(ClassLoss, kind="cross_entropy", bounds=(0.0, -math.log(MIN_PROBABILITY))):
    """The mean of −log f_Y, where a probability below 1e-7 is replaced by 1e-7.

    Examples
    --------
    >>> CrossEntropy.loss(np.array([1.0, 0.0])).round(1) + 0.0
    array([ 0. , 16.1])
    """

    @staticmethod
    def loss_formula(probability: Expression) -> Expression:
        """Return the loss as a formula."""
        return LogLoss(parts=(probability,), least=MIN_PROBABILITY)


def _columns_by_class(population: Population, patterns: tuple[str, ...]) -> dict[str, str]:
    """Return the column of the model's probability of each class, by class."""
    names = learner_columns(population, patterns)
    if len(names) < 2:
        raise InputError(
            "a loss requires a probability of each class", given=names[0], allowed="two columns or more"
        )
    return dict(zip(class_names(names), names, strict=True))


def _require_softmax(population: Population, names: list[str]) -> None:
    """Raise an error unless the columns are probabilities that add up to about 1."""
    probabilities = [NumberColumn(name=name) for name in names]
    deviation = sum_of([*probabilities]) - 1.0
    formulas = [deviation * deviation, *(probability * probability for probability in probabilities)]
    mean_square_deviation, *mean_squares = population_means(population, formulas)
    if mean_square_deviation > SOFTMAX_TOLERANCE**2 or max(mean_squares) > 1.0:
        raise InputError(
            f"the columns {names[0]} … {names[-1]} are not probabilities",
            given=f"rows add up to 1 ± {math.sqrt(mean_square_deviation):.3g}",
            allowed="columns between 0 and 1 that add up to 1 in each row",
            action="If these are logits, apply a softmax first.",
        )
