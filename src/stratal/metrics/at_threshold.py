"""Precision, recall, F1 and specificity of the units whose score reaches a threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, Request
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.resolve import named_groups
from stratal.labels.label_values import class_text
from stratal.metrics.class_answers import AnsweredClasses, answered_classes
from stratal.metrics.class_functions import linear_forms
from stratal.metrics.class_shares import possible_in_strata_of
from stratal.metrics.classification import F1, ClassMetric, Precision, Recall, Specificity
from stratal.metrics.ranking import score_of_class, scores_of_class
from stratal.population.expressions import Below, Cells, Expression, NumberColumn
from stratal.population.influence import Influence, population_means
from stratal.population.population import Population
from stratal.population.rules import value_ranges
from stratal.protocols import Keywords

__all__ = ["F1At", "PrecisionAt", "RecallAt", "SpecificityAt"]

# The class if neither the estimand nor a score names one: labels are then 1 (of the class) and 0.
_DEFAULT_CLASS = "1"


@dataclass(frozen=True, slots=True)
class _AtThreshold(Estimand):
    """A metric of a class whose answers are the units with a score of at least `threshold`.

    Parameters
    ----------
    threshold : float
    positive : str, optional
        The class. Default: the class of the score, or else 1.
    score : str, optional
        The proxy. Default: the only one.
    """

    # Labels are true classes, which are not compared with a column of answers.
    of_classes = True
    compared = False
    metric: ClassVar[type[ClassMetric]]
    threshold: float
    positive: str | None = None
    score: str | None = None

    def __post_init__(self) -> None:
        self._set(threshold=float(self.threshold))
        if not np.isfinite(self.threshold):
            raise InputError("invalid threshold", given=repr(self.threshold), allowed="a finite number")
        if self.positive is not None:
            self._set(positive=class_text(self.positive))

    @property
    def text(self) -> str:
        """The text form: `precision@threshold=0.8`, then class and score if they are named."""
        options = {"positive": self.positive, "score": self.score}
        texts = [f"{name}={value}" for name, value in options.items() if value is not None]
        return ",".join([f"{self.kind}threshold={self.threshold:g}", *texts])

    @property
    def title(self) -> str:
        """The name in a sentence."""
        return f"{self.kind.rstrip('@')} at threshold {self.threshold:g}"

    @property
    def has_two_rounds(self) -> bool:
        """True: the first round measures the share of the class above the threshold."""
        return True

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        return f"{cls.kind}threshold=.5"

    @classmethod
    def _of_text(cls, text: str, listed: list[str], options: Keywords) -> Estimand:
        """Return the metric at a threshold, or at each of several."""
        # `parse_text` returns the text after @ as the group, here `threshold=.5`.
        name, _, first = options.pop("group", "").partition("=")
        thresholds = _parse_numbers([first, *listed])
        if name != "threshold" or thresholds is None or set(options) - {"positive", "score"}:
            allowed = f"{cls.kind}threshold=.5,.8 with positive=CLASS and score=COL"
            raise InputError("unsupported metric at a threshold", given=repr(text), allowed=allowed)
        estimands = tuple(cls(threshold, **options) for threshold in thresholds)
        if len(estimands) == 1:
            return estimands[0]
        several: Estimand = Estimand.registry["list"](estimands)
        return several

    def _resolve_class(self, sample: Sample) -> str:
        """Return the class: the named one, or else that of the score, or else 1."""
        classes = {entry.of_class for entry in sample.question.scores if entry.of_class is not None}
        if self.positive is None and len(classes) == 1:
            return classes.pop()
        return self.positive or _DEFAULT_CLASS

    def _classify(self, sample: Sample, labels: object) -> tuple[Sample, AnsweredClasses, int]:
        """Return the sample with a column of predicted classes, the labelled classes, and the class's number.

        A unit is predicted to be of the class if its score reaches the threshold.
        """
        positive = self._resolve_class(sample)
        text_with_score = replace(self, score="COLUMN").text
        score = self.score or score_of_class(sample, positive, text_with_score)
        scores = scores_of_class(sample, positive, score)
        column = f"{score} at {self.threshold:g}"
        negative = f"not {positive}"
        predicted = np.where(scores >= self.threshold, positive, negative)
        sample = replace(sample, groups={**sample.groups, column: predicted})
        irrelevant_units = None
        # A precision does not depend on units below the threshold.
        if self.metric is Precision:
            irrelevant_units = Below(name=score, limit=self.threshold)
        answered = answered_classes(sample, labels, column, (positive,), irrelevant_units)
        strata = sample.design.strata
        # Strata of the score exclude one answer, unless the threshold is inside the stratum.
        if strata is not None and answered.confusion.weighting.random_within_strata:
            ranges = value_ranges(strata.rule, score)
            answered = _with_possible_answers(answered, ranges, self.threshold, positive, negative)
        return sample, answered, answered.levels.index(positive)

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the metric, from the true classes."""
        classified, answered, class_number = self._classify(sample, labels)
        result = answered.metric(classified, self.metric.kind, class_number, request.target)
        return replace(result, label=self.label)

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the metric of each group."""
        # Check the group first: its error lists all group columns, and `_classify` adds one.
        named_groups(sample, group)
        classified, answered, class_number = self._classify(sample, labels)
        return answered.domain_estimates(classified, group, self.metric.kind, class_number, request.target)

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        return self._classify(sample, labels)[1].labelled

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of the influence; the score is the probability of the class."""
        score = self._require_probability(population)
        probability = NumberColumn(name=score)
        below = Below(name=score, limit=self.threshold)
        above = 1.0 - below
        hits, predicted, true = population_means(
            population, [probability * above, above, probability]
        ).tolist()
        # The shares of all units, and the coefficients of the metric's numerator and denominator.
        shares = np.array([hits, predicted, true, 1.0])
        numerator, denominator = map(np.array, linear_forms(self.metric.kind))
        denominator_share = float(denominator @ shares)
        if denominator_share <= 0:
            raise InputError(
                f"no forecast is possible for {self.text!r}",
                given=f"{predicted:.2%} of the units reach the threshold",
                action="Name a threshold that some units reach.",
            )
        value = float(numerator @ shares) / denominator_share
        slopes = (numerator - value * denominator) / denominator_share
        return _influence(value, slopes, probability, below)

    def _require_probability(self, population: Population) -> str:
        """Return the name of the score, which must be a probability of the class."""
        info = population.proxy_info(self.score)
        declared = next((row for row in population.scores if row.name == info.name and row.declared), None)
        # A declared probability of a class is used as it is, although it is on no scale of the outcome.
        is_of_class = declared is not None and declared.of_class is not None
        if not is_of_class and (info.bounds != (0.0, 1.0) or not info.scaled):
            raise InputError(
                f"a plan for {self.text!r} requires a probability of the class",
                given=f"{info.name!r}, which only orders units",
                action="Give a score from 0 to 1: predicts= (--predicts COL=class:NAME).",
            )
        if declared is not None and not is_of_class:
            raise InputError(
                f"a plan for {self.text!r} requires a probability of the class",
                given=f"{info.name!r}: {declared.meaning}",
                action=f"Declare it: predicts= (--predicts {info.name}=class:NAME).",
            )
        return info.name


def _parse_numbers(texts: list[str]) -> list[float] | None:
    """Return the numbers; None if a text is not a number."""
    try:
        return [float(text) for text in texts]
    except ValueError:
        return None


def _with_possible_answers(
    answered: AnsweredClasses, ranges: FloatArray, threshold: float, positive: str, negative: str
) -> AnsweredClasses:
    """Return the classes with the answers that are possible in strata with scores in [low, high) (H, 2)."""
    levels = answered.levels
    # The last column is for answers that are no level.
    possible = np.zeros((len(ranges), len(levels) + 1), dtype=bool)
    possible[:, levels.index(positive)] = ranges[:, 1] > threshold
    if negative in levels:
        possible[:, levels.index(negative)] = ranges[:, 0] < threshold
    confusion = answered.confusion
    possible_answers = possible_in_strata_of(answered.respondents, possible, confusion.predicted)
    return replace(answered, confusion=replace(confusion, possible=possible_answers))


def _influence(value: float, slopes: FloatArray, probability: Expression, below: Below) -> Influence:
    """Return the influence of a ratio with this value and these slopes (4,).

    The slopes are the derivatives in the shares of hits, predicted, true and all units.
    """
    hit_slope, predicted_slope, true_slope, total_slope = slopes.tolist()
    above = 1.0 - below
    # The influence of a unit of another class, and of the class.
    if_negative = predicted_slope * above + total_slope
    if_positive = if_negative + hit_slope * above + true_slope
    complement = 1.0 - probability
    mean = probability * if_positive + complement * if_negative
    square = probability * if_positive * if_positive + complement * if_negative * if_negative
    names = (f"{below.name} < {below.limit:g}", f"{below.name} >= {below.limit:g}")
    cells = Cells(names=names, tests=(below,))
    # As for precision, the influence below the threshold is then 0, whatever the label.
    is_known_below = true_slope == 0 and total_slope == 0
    known_cells = names[:1] if is_known_below else ()
    return Influence(value=value, mean=mean, square=square, cells=cells, known_cells=known_cells)


class PrecisionAt(_AtThreshold, kind="precision@", metric=Precision):
    """The share of the units with a score of at least `threshold` that are of the class.

    Examples
    --------
    >>> Estimand.parse_text("precision@threshold=.5,.8").text
    'precision@threshold=0.5;precision@threshold=0.8'
    """

    __slots__ = ()


class RecallAt(_AtThreshold, kind="recall@", metric=Recall):
    """The share of the units of the class whose score is at least `threshold`.

    Examples
    --------
    >>> RecallAt(0.8, positive="toxic").text
    'recall@threshold=0.8,positive=toxic'
    """

    __slots__ = ()


class F1At(_AtThreshold, kind="f1@", metric=F1):
    """The harmonic mean of precision and recall at a threshold.

    Examples
    --------
    >>> F1At(0.8).text
    'f1@threshold=0.8'
    """

    __slots__ = ()


class SpecificityAt(_AtThreshold, kind="specificity@", metric=Specificity):
    """The share of the other units whose score is below `threshold`: 1 minus the false positive rate.

    Examples
    --------
    >>> SpecificityAt(0.8).text
    'specificity@threshold=0.8'
    """

    __slots__ = ()
