"""Precision, recall, F1 and specificity of the units whose score reaches a threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimand import PLAIN, Estimand, Request
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.resolve import named_groups
from stratal.labels.label_values import class_text
from stratal.metrics.class_answers import AnsweredClasses, answered_classes
from stratal.metrics.class_functions import linear_forms
from stratal.metrics.class_shares import possible_in
from stratal.metrics.classification import F1, ClassMetric, Precision, Recall, Specificity
from stratal.metrics.ranking import score_of_class, scores_of_class
from stratal.population.expressions import Below, Cells, Expression, NumberColumn
from stratal.population.influence import Influence, averages
from stratal.population.population import Population
from stratal.population.rules import value_ranges
from stratal.protocols import Keywords

__all__ = ["F1At", "PrecisionAt", "RecallAt", "SpecificityAt"]

# The class of labels that are 1 or 0.
_POSITIVE = "1"


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
        named = {"positive": self.positive, "score": self.score}
        options = [f"{name}={value}" for name, value in named.items() if value is not None]
        return ",".join([f"{self.kind}threshold={self.threshold:g}", *options])

    @property
    def title(self) -> str:
        """The name in a sentence."""
        return f"{self.kind.rstrip('@')} at threshold {self.threshold:g}"

    @property
    def has_two_rounds(self) -> bool:
        """Yes: the first round measures the share of the class above the threshold, which scores misstate."""
        return True

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        return f"{cls.kind}threshold=.5"

    @classmethod
    def _of_text(cls, text: str, listed: list[str], options: Keywords) -> Estimand:
        """Return the metric at a threshold, or at each of several."""
        # The text after @ arrives as the group.
        name, equals, first = options.pop("group", "").partition("=")
        are_numbers = bool(equals)
        thresholds = []
        for entry in (first, *listed):
            try:
                thresholds.append(float(entry))
            except ValueError:
                # The check below has the error for all invalid texts.
                are_numbers = False
        unknown_options = set(options) - {"positive", "score"}
        if name != "threshold" or not are_numbers or unknown_options:
            allowed = f"{cls.kind}threshold=.5,.8 with positive=CLASS and score=COL"
            raise InputError("unsupported metric at a threshold", given=repr(text), allowed=allowed)
        parts = tuple(cls(threshold, **options) for threshold in thresholds)
        if len(parts) == 1:
            return parts[0]
        several: Estimand = Estimand.registry["list"](parts)
        return several

    def _class_in(self, sample: Sample) -> str:
        """Return the class: as named, the score's, or 1."""
        classes = {entry.of_class for entry in sample.question.scores if entry.of_class is not None}
        if self.positive is None and len(classes) == 1:
            return classes.pop()
        return self.positive or _POSITIVE

    def _answered(self, sample: Sample, labels: object) -> tuple[Sample, AnsweredClasses, int]:
        """Return the answers that the threshold gives, with the sample and the number of the class."""
        positive = self._class_in(sample)
        name = self.score or score_of_class(sample, positive, replace(self, score="COLUMN").text)
        scores = scores_of_class(sample, positive, name)
        column = f"{name} at {self.threshold:g}"
        negative = f"not {positive}"
        answers = np.where(scores >= self.threshold, positive, negative)
        answered = replace(sample, groups={**sample.groups, column: answers})
        # Nothing below the threshold counts for a precision.
        if self.metric is Precision:
            irrelevant_units = Below(name=name, limit=self.threshold)
        else:
            irrelevant_units = None
        classes = answered_classes(answered, labels, column, (positive,), irrelevant_units)
        confusion = classes.confusion
        strata = sample.design.strata
        if strata is not None and confusion.weighting.random_within_strata:
            ranges = value_ranges(strata.rule, name)
            table = np.zeros((len(ranges), len(classes.levels) + 1), dtype=bool)
            table[:, classes.levels.index(positive)] = ranges[:, 1] > self.threshold
            if negative in classes.levels:
                table[:, classes.levels.index(negative)] = ranges[:, 0] < self.threshold
            possible = possible_in(classes.respondents, table, confusion.predicted)
            classes = replace(classes, confusion=replace(confusion, possible=possible))
        return answered, classes, classes.levels.index(positive)

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the metric, from the true classes."""
        answered, classes, which = self._answered(sample, labels)
        result = classes.metric(answered, self.metric.kind, which, request.target)
        return replace(result, label=self.label)

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return the metric of each group."""
        # Check the group first: `_answered` adds a column that is not a group to offer.
        named_groups(sample, group)
        answered, classes, which = self._answered(sample, labels)
        results = classes.within(answered, group, self.metric.kind, which, request.target)
        rows = [replace(row, label={"domain": name}) for name, row in results.items()]
        return Estimates.from_rows(sample, rows, "domains", classes.respondents.notes)

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        return self._answered(sample, labels)[1].labelled

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of the influence; the score is the probability of the class."""
        info = population.proxy_info(self.score)
        role = {entry.name: entry for entry in population.scores}.get(info.name)
        # A declared probability of a class has no scale of right and wrong, but can be used as it is.
        is_of_class = role is not None and role.declared and role.of_class is not None
        if not is_of_class and (info.bounds != (0.0, 1.0) or not info.scaled):
            raise InputError(
                f"a plan for {self.text!r} requires a probability of the class",
                given=f"{info.name!r}, which only orders units",
                action="Give a score from 0 to 1: predicts= (--predicts COL=class:NAME).",
            )
        if role is not None and role.declared and not is_of_class:
            raise InputError(
                f"a plan for {self.text!r} requires a probability of the class",
                given=f"{info.name!r}: {role.meaning}",
                action=f"Declare it: predicts= (--predicts {info.name}=class:NAME).",
            )
        probability = NumberColumn(name=info.name)
        inside = 1.0 - Below(name=info.name, limit=self.threshold)
        hits, answers, truths = averages(population, [probability * inside, inside, probability]).tolist()
        shares = np.array([hits, answers, truths, 1.0])
        numerator, denominator = map(np.array, linear_forms(self.metric.kind))
        total = float(denominator @ shares)
        if total <= 0:
            raise InputError(
                f"no forecast is possible for {self.text!r}",
                given=f"{answers:.2%} of the units reach the threshold",
                action="Name a threshold that some units reach.",
            )
        value = float(numerator @ shares) / total
        slopes = (numerator - value * denominator) / total
        return _influence(value, slopes, probability, Below(name=info.name, limit=self.threshold))


def _influence(value: float, slopes: FloatArray, probability: Expression, outside: Below) -> Influence:
    """Return the influence with slopes in hits, answers, truths and all (4,)."""
    hits, answers, truths, constant = slopes.tolist()
    inside = 1.0 - outside
    if_negative = answers * inside + constant
    if_positive = if_negative + hits * inside + truths
    rest = 1.0 - probability
    names = (f"{outside.name} < {outside.limit:g}", f"{outside.name} >= {outside.limit:g}")
    is_known_outside = truths == 0 and constant == 0
    return Influence(
        value=value,
        mean=probability * if_positive + rest * if_negative,
        square=probability * if_positive * if_positive + rest * if_negative * if_negative,
        cells=Cells(names=names, tests=(outside,)),
        known_cells=names[:1] if is_known_outside else (),
    )


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
