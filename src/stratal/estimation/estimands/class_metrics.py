"""The metrics of a classifier by name: what `stratal.estimands` offers of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.designs.sample import Sample
from stratal.errors import InputError, near_names
from stratal.estimation.columns import GIVEN, split_answers, with_group
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimands.classification import (
    Classification,
    answered_classes,
    needless_units,
    read_classes,
)
from stratal.estimation.estimands.means import Mean
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates, title_of
from stratal.estimation.linearisation import undefined_estimate
from stratal.estimation.metric_functions import (
    AVERAGES,
    CLASS_METRICS,
    METRICS,
    OVERALL_METRICS,
    is_f_measure,
)
from stratal.estimation.request import PLAIN, RIGHT_OPTIONS, Request
from stratal.estimation.respondents import CannotTellError
from stratal.labels.meanings import class_text
from stratal.population.expressions import ByLevel, Number
from stratal.population.population import Population


@dataclass(frozen=True, slots=True)
class _OfAll(Classification):
    predicted: str | None = None


@dataclass(frozen=True, slots=True)
class Accuracy(_OfAll):
    """The share of answers that are right.

    Parameters
    ----------
    predicted : str, optional
        The group column of the model's answers; the population's own unless given.

    Examples
    --------
    >>> Accuracy().text
    'accuracy'
    """

    kind: ClassVar[str] = "accuracy"

    takes: ClassVar[tuple[str, ...]] = RIGHT_OPTIONS

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the accuracy, from the true classes: the mean of right answers."""
        found = Mean().estimate(*self._compared(sample, labels, request))
        return replace(found, label=self.label)

    def by(self, sample: Sample, labels: Any, group: Any, request: Request = PLAIN) -> Estimates:
        """Return the accuracy of each group."""
        sample, labels, request = self._compared(sample, labels, request)
        return Mean().by(sample, labels, group, request)

    def _compared(self, sample: Sample, labels: Any, request: Request) -> tuple[Sample, Any, Request]:
        """Return what a mean takes: the sample with answers that came with the labels, and which they are."""
        labels, given = split_answers(labels)
        if given is None:
            return sample, labels, replace(request, predicted=self.predicted or True)
        return with_group(sample, GIVEN, given), labels, replace(request, predicted=GIVEN)


@dataclass(frozen=True, slots=True)
class BalancedAccuracy(_OfAll):
    """The mean recall over the classes.

    Examples
    --------
    >>> BalancedAccuracy(predicted="answer").text
    'balanced_accuracy:predicted=answer'
    """

    kind: ClassVar[str] = "balanced_accuracy"


@dataclass(frozen=True, slots=True)
class MatthewsCorrelation(_OfAll):
    """Matthews' correlation of answers and truth, of any number of classes.

    Examples
    --------
    >>> MatthewsCorrelation().text
    'mcc'
    """

    kind: ClassVar[str] = "mcc"


@dataclass(frozen=True, slots=True)
class Average(Classification):
    """A metric of each class, averaged over all classes.

    Parameters
    ----------
    metric : str
        One of the metrics of a class, such as `f1`.
    average : {"macro", "micro", "weighted"}
    predicted : str, optional
        As for `Accuracy`.

    Examples
    --------
    >>> Average("f1").text, Average("recall", "weighted").text
    ('average:f1', 'average:recall,average=weighted')
    """

    kind: ClassVar[str] = "average"
    listed: ClassVar[str] = "metric"
    metric: str
    average: str = "macro"
    predicted: str | None = None

    def __post_init__(self) -> None:
        if self.metric not in CLASS_METRICS and not is_f_measure(self.metric):
            raise InputError(
                "no such metric of a class", given=repr(self.metric), allowed=", ".join(CLASS_METRICS)
            )
        if self.average not in AVERAGES:
            raise InputError("no such average", given=repr(self.average), allowed=", ".join(AVERAGES))

    @property
    def name(self) -> str:
        """The metric of each class."""
        return self.metric

    @property
    def of(self) -> str:
        """The average."""
        return self.average


@dataclass(frozen=True, slots=True)
class OfClass(Classification):
    """A metric of one class; what follows has these fields, and differs by its name alone.

    Parameters
    ----------
    positive, predicted, probability, right
        As for `F1`.

    Examples
    --------
    >>> issubclass(F1, OfClass)
    True
    """

    listed: ClassVar[str] = "positive"
    positive: str
    predicted: str | None = None
    probability: str | None = None
    right: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._set(positive=str(self.positive))
        if self.probability is not None and self.right is not None:
            raise InputError(
                "a belief is the probability of the class or that of a right answer",
                given=f"probability={self.probability}, right={self.right}",
                allowed="one of the two",
            )

    @property
    def of(self) -> str:
        """The class."""
        return self.positive

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        return f"{cls.kind}:match"


@dataclass(frozen=True, slots=True)
class Precision(OfClass):
    """The share of the units answered as a class that are of it.

    Examples
    --------
    >>> Precision("match").text
    'precision:match'
    """

    kind: ClassVar[str] = "precision"


@dataclass(frozen=True, slots=True)
class Recall(OfClass):
    """The share of the units of a class that are answered as it.

    Examples
    --------
    >>> Recall("match").text
    'recall:match'
    """

    kind: ClassVar[str] = "recall"


@dataclass(frozen=True, slots=True)
class F1(OfClass):
    """The harmonic mean of a class's precision and recall.

    Parameters
    ----------
    positive : str
        The class.
    predicted : str, optional
        The group column of the model's answers; the population's own unless given.
    probability : str, optional
        The proxy or feature that holds the probability of the class. Without it the first proxy is taken as
        the probability that the answer is right.
    right : str, optional
        The proxy or feature that holds the probability that the answer is right. Naming it says that it is
        so, even where its values look like the probability of the class.

    Examples
    --------
    >>> F1("match").text
    'f1:match'
    """

    kind: ClassVar[str] = "f1"


@dataclass(frozen=True, slots=True)
class Specificity(OfClass):
    """The share of the units of other classes that are not answered as the class.

    Examples
    --------
    >>> Specificity("match").text
    'specificity:match'
    """

    kind: ClassVar[str] = "specificity"


@dataclass(frozen=True, slots=True)
class NegativePredictiveValue(OfClass):
    """The share of the units not answered as a class that are not of it.

    Examples
    --------
    >>> NegativePredictiveValue("match").text
    'negative_predictive_value:match'
    """

    kind: ClassVar[str] = "negative_predictive_value"


@dataclass(frozen=True, slots=True)
class Jaccard(OfClass):
    """Hits over the units that are of a class or answered as it.

    Examples
    --------
    >>> Jaccard("match").text
    'jaccard:match'
    """

    kind: ClassVar[str] = "jaccard"


@dataclass(frozen=True, slots=True)
class Prevalence(OfClass):
    """The share of the units that are of a class.

    Examples
    --------
    >>> Prevalence("match").text
    'prevalence:match'
    """

    kind: ClassVar[str] = "prevalence"


@dataclass(frozen=True, slots=True)
class PredictedPrevalence(OfClass):
    """The share of units that the model answers with the class: counted where the population is known.

    Examples
    --------
    >>> PredictedPrevalence("match").text
    'predicted_prevalence:match'
    """

    kind: ClassVar[str] = "predicted_prevalence"


@dataclass(frozen=True, slots=True)
class FBeta(OfClass):
    """The F measure that weighs recall β² times as much as precision (van Rijsbergen 1979).

    Parameters
    ----------
    positive, predicted, probability, right
        As for `F1`.
    beta : float

    Examples
    --------
    >>> FBeta("match", beta=0.5).text
    'fbeta:match,beta=0.5'
    """

    kind: ClassVar[str] = "fbeta"
    beta: float = 2.0

    @property
    def name(self) -> str:
        """The metric, as `ClassReport` calls it."""
        return f"f{self.beta:g}"


@dataclass(frozen=True, slots=True)
class ClassReport(Estimand):
    """Metrics of a classifier: of all classes, of each class, and averaged.

    Parameters
    ----------
    metrics : sequence of str
        Of `accuracy`, `balanced_accuracy`, `mcc`, and per class `precision`, `recall`, `f1` (`f2`, `f0.5` for
        other weights of recall), `specificity`, `negative_predictive_value`, `jaccard`, `prevalence`,
        `predicted_prevalence`.
    classes : sequence, optional
        The classes to report; if not given all that occur in the sample, or in the population where the
        sample knows the model's answers there.
    average : sequence of str
        Of `macro`, `micro`, `weighted` (by true share): rows over the reported classes, if there are several.
    predicted : str, optional
        The group column of the model's answers; the sample's own unless given. Answers that are no column
        come with the labels: `{"label": labels, "predicted": answers}`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> sample = stratal.SimpleRandom(budget=5).draw(population, seed=7)
    >>> table = stratal.estimate(sample, {"label": [1, 1, 0, 1, 0], "predicted": [1, 1, 0, 0, 1]},
    ...                          estimand=ClassReport(["recall"]))
    >>> [(row.label["class"], round(row.value, 3), row.n) for row in table]
    [('0', 0.5, 2), ('1', 0.667, 3), ('macro', 0.583, 5)]
    """

    kind: ClassVar[str] = "metrics"
    listed: ClassVar[str] = "metrics"
    metrics: Sequence[str] = ("accuracy", "precision", "recall", "f1")
    classes: Sequence[Any] = ()
    average: Sequence[str] = ("macro",)
    predicted: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.classes, str):
            raise InputError(
                "classes must be a list", given=repr(self.classes), action="Write a list of one."
            )
        self._set(
            metrics=_names(self.metrics, METRICS, "metric"),
            average=_names(self.average, AVERAGES, "average"),
            classes=tuple(class_text(entry) for entry in self.classes),
        )

    @property
    def of_classes(self) -> bool:
        """Labels are classes."""
        return True

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimates:
        """Return the metrics, a row for each metric and class."""
        given, answers = split_answers(labels)
        target, classes = request.target, self.classes or None
        predicted = self.predicted if answers is None else answers
        try:
            answered = answered_classes(sample, given, predicted, classes)
        except CannotTellError as refused:
            return self._left_open(refused, sample, given, predicted, target)
        levels, whole = answered.levels, answered.confusion
        reported = [levels.index(name) for name in self.classes] or list(range(len(levels)))
        all_of_them = len(set(reported)) == whole.n_classes
        restricted = answered if all_of_them else replace(answered, confusion=whole.restricted(reported))
        rows: list[Estimate] = []
        remarks = list(answered.frame.notes)
        for name in self.metrics:
            if name == "accuracy":
                found = Accuracy(self.predicted).estimate(sample, labels, Request(target=target))
                rows.append(replace(found, label={"metric": name, "class": None}))
            elif name in OVERALL_METRICS:
                found = answered.metric(sample, name, None, target)
                rows.append(replace(found, label={"metric": name, "class": None}))
                if name == "balanced_accuracy" and not self.classes and not answered.known:
                    remarks.append(_ONLY_SEEN.format(len(levels)))
            else:
                cells = [(levels[k], answered.metric(sample, name, k, target)) for k in reported]
                if len(reported) > 1:
                    cells += [(kind, restricted.metric(sample, name, kind, target)) for kind in self.average]
                rows += [replace(found, label={"metric": name, "class": cell}) for cell, found in cells]
        return Estimates(
            estimates=tuple(rows),
            kind="metrics",
            title=title_of(sample, len(whole.true), target),
            remarks=tuple(dict.fromkeys(remarks)),
        )

    def _left_open(
        self, refused: CannotTellError, sample: Sample, labels: Any, predicted: Any, target: str
    ) -> Estimates:
        """Return the table of a sample that left units without labels: what it was drawn for is known there.

        Precision and negative predictive value are each of the units answered with one class, or with
        another, so that a sample may tell some of them and nothing else. Raises where it tells none.
        """
        column = (
            None if not (predicted is None or isinstance(predicted, str)) else predicted or sample.predicted
        )
        read = read_classes(sample, labels, predicted, self.classes or None)
        reported = [read.levels.index(name) for name in self.classes] or list(range(len(read.levels)))
        told: list[Estimate | None] = []
        names: list[tuple[str, str | None]] = []
        for name in self.metrics:
            whole = name in OVERALL_METRICS
            several = self.average if len(reported) > 1 else ()
            cells: list[int | str | None] = [None] if whole else [*reported, *several]
            for which in cells:
                level = read.levels[which] if isinstance(which, int) else which
                names.append((name, level))
                told.append(None)
                needless = needless_units(name, level, column) if isinstance(which, int) else None
                if needless is None:
                    continue
                with suppress(CannotTellError):
                    own = answered_classes(sample, labels, predicted, self.classes or None, needless=needless)
                    told[-1] = own.metric(sample, name, which, target)
        known = [found for found in told if found is not None]
        if not known:
            raise refused
        weighting = known[0].evidence.weighting
        rows = []
        for (name, level), found in zip(names, told, strict=True):
            bounds = (-1.0 if name == "mcc" else 0.0, 1.0)
            row = found or undefined_estimate(weighting, 0, bounds, target=target)
            rows.append(replace(row, label={"metric": name, "class": level}))
        without = dict.fromkeys(name for (name, _), found in zip(names, told, strict=True) if found is None)
        note = f"not all of {', '.join(without)} can be told by this sample: {refused.reason}"
        return Estimates(
            estimates=tuple(rows),
            kind="metrics",
            title=title_of(sample, max(found.labels for found in known), target),
            remarks=(note,) if without else (),
        )


_ONLY_SEEN = (
    "balanced_accuracy: the mean over the {} classes that the labels show; name all of them (classes=, "
    "--class), for a class without a label makes it unknown"
)


def _names(given: Sequence[str] | str, allowed: tuple[str, ...], what: str) -> tuple[str, ...]:
    names = [part.strip() for part in given.split(",")] if isinstance(given, str) else list(given)
    for name in names:
        if name not in allowed and not (what == "metric" and is_f_measure(name)):
            raise InputError(f"no such {what}", given=repr(name), allowed=near_names(str(name), allowed))
    return tuple(dict.fromkeys(names))


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
