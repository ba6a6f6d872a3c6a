"""Metrics of a classifier as estimands: accuracy, precision, recall, F_β and their relatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs.sample import Sample
from stratal.errors import InputError, suggest_names
from stratal.estimation.estimand import (
    PLAIN,
    RIGHT_OPTIONS,
    Estimand,
    LabelledInfluence,
    Request,
)
from stratal.estimation.estimate import Estimate, Estimates
from stratal.estimation.means import Mean
from stratal.estimation.proportion_functions import RatesInStrata
from stratal.estimation.resolve import GIVEN, compared_column, named_groups, split_answers, with_group
from stratal.metrics import confusion as measures
from stratal.metrics.answered_sets import (
    AnsweredSets,
    answered_sets,
    compares_sets,
    unknown_tag,
)
from stratal.metrics.class_answers import (
    AnsweredClasses,
    ClassProbabilities,
    answered_classes,
    judged_classes,
    labels_as_verdicts,
    needless_units,
    right_answers,
)
from stratal.population.answer_sets import population_tags, sets_by_text
from stratal.population.expressions import ByLevel, Cells, Expression, NumberColumn, total
from stratal.population.influence import Influence, averages, stratum_averages
from stratal.population.population import Population
from stratal.question.question import COMPARISON, Outcome
from stratal.question.vocabulary import AVERAGES
from stratal.strata import Strata
from stratal.strata.smoothed_variances import smoothed_standard_deviations
from stratal.strata.strata import of_sizes

# A share of right answers that no model in use has among its answers of one kind, while the others are right
# twice as often.
FEW_RIGHT = 0.25

# A classifier with more classes is not divided by its answers.
_MAX_CELLS = 12

# Classes that an error lists.
_MAX_CLASSES = 30


class Classification(Estimand):
    """A metric of the confusion of a classifier's answers with the truth."""

    __slots__ = ()
    by_answer = True
    of_classes = True
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
    def classes(self) -> tuple[str, ...]:
        """The classes that it names."""
        return ()

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of the influence: u is a function of the answer and the true class.

        With slopes H, P, T and e of the metric in the shares of hits, of answers, of truths and of all,
        u = 1(c = a) H_a + T_c + P_a + e for a unit of class c that was answered a.
        """
        answers = self.predicted or population.roles.answer
        if answers is None:
            sets = {}
        else:
            sets = sets_by_text(population, population.require_group(answers))
        if sets:
            return self._influence_of_sets(population, sets)
        beliefs = self._beliefs(population)
        levels = beliefs.levels
        k = len(beliefs.levels)
        each = np.eye(k)
        sums = averages(
            population,
            [
                *(beliefs.of_answer(row) for row in each),
                *(beliefs.by_answer(row) for row in each),
                *(beliefs.of_class(row) for row in each),
            ],
        ).reshape(3, k)
        shares = measures.Shares(hits=sums[0], predicted=sums[1], true=sums[2], everything=1.0)
        metric = measures.metric_function(self.name, self._which(levels), k)
        value, slopes, problem = metric(shares, unit="unit")
        if not np.isfinite(value):
            raise InputError(
                f"no forecast is possible for {self.text!r}: {problem}",
                given="answers are " + suggest_names("", [name for name in levels if name != self.of]),
                action="Check the class, give its probability (probability=COL), or plan for the accuracy.",
            )
        base = slopes.predicted + slopes.everything
        hits = slopes.hits
        true = slopes.true
        mean = beliefs.by_answer(base) + beliefs.of_class(true) + beliefs.of_answer(hits)
        square = (
            beliefs.of_class(true**2)
            + 2.0 * beliefs.by_answer(base) * beliefs.of_class(true)
            + beliefs.by_answer(base**2)
            + beliefs.of_answer(hits**2 + 2.0 * hits * (true + base))
        )
        cells, needless_cells = self._cells(beliefs)
        return Influence(value=value, mean=mean, square=square, cells=cells, known_cells=needless_cells)

    def _influence_of_sets(self, population: Population, sets: Mapping[str, tuple[str, ...]]) -> Influence:
        """Return the conditional moments of the influence of a tag's metric, or of its average over the tags.

        u = Σ_t (1(tag in both) H_t + 1(in the label) T_t + 1(in the answer) P_t) + e. The tags of one label
        are taken as independent, given the answer and the probabilities.
        """
        if self.of is None:
            right = right_answers(population)
            value = float(averages(population, [right])[0])
            mean = right - value
            square = mean * mean + right * (1.0 - right)
            return Influence(value=value, mean=mean, square=square, cells=Cells(names=("all",)))
        every = sorted({tag for tags in sets.values() for tag in tags})
        tags = self.classes or tuple(every)
        for tag in tags:
            if tag not in every:
                raise unknown_tag(tag, tuple(every))
        each = [
            ClassProbabilities.of(population, self.predicted, (tag,), *self._probability_columns)
            for tag in tags
        ]
        indicator = np.array([0.0, 1.0])
        parts = [
            expression
            for beliefs in each
            for expression in (
                beliefs.of_answer(indicator),
                beliefs.by_answer(indicator),
                beliefs.of_class(indicator),
            )
        ]
        sums = averages(population, parts).reshape(len(tags), 3)
        shares = measures.Shares(hits=sums[:, 0], predicted=sums[:, 1], true=sums[:, 2], everything=1.0)
        which = 0 if self.classes else self.of
        value, slopes, problem = measures.metric_function(self.name, which, len(tags))(shares)
        if not np.isfinite(value):
            action = "Ask for a micro average, or plan for the accuracy."
            raise InputError(f"no forecast is possible for {self.text!r}: {problem}", action=action)
        means = []
        variances = []
        for at, beliefs in enumerate(each):
            hits, answered, true = (
                indicator * float(slope[at]) for slope in (slopes.hits, slopes.predicted, slopes.true)
            )
            mean = beliefs.by_answer(answered) + beliefs.of_class(true) + beliefs.of_answer(hits)
            square = (
                beliefs.of_class(true**2)
                + 2.0 * beliefs.by_answer(answered) * beliefs.of_class(true)
                + beliefs.by_answer(answered**2)
                + beliefs.of_answer(hits**2 + 2.0 * hits * (true + answered))
            )
            means.append(mean)
            variances.append(square - mean * mean)
        mean_influence = total(means) + slopes.everything
        cells = Cells(names=("all",))
        if self.classes:
            names = (f"answer {tags[0]}", "other answers")
            cells = Cells(names=names, tests=(each[0].is_answer(tags[0]),))
        return Influence(
            value=value,
            mean=mean_influence,
            square=mean_influence * mean_influence + total(variances),
            cells=cells,
        )

    @property
    def _probability_columns(self) -> tuple[str | None, str | None]:
        """The columns that are named for the probability of the class, and of a right answer."""
        return None, None

    def _beliefs(self, population: Population) -> ClassProbabilities:
        return ClassProbabilities.of(population, self.predicted, self.classes, *self._probability_columns)

    def _cells(self, beliefs: ClassProbabilities) -> tuple[Cells, tuple[str, ...]]:
        """Return the parts of the population by what the model answered, and which of them need no label."""
        if self.of in beliefs.levels:
            named = [self.of]
        else:
            named = list(beliefs.levels)
        if len(named) > _MAX_CELLS:
            return Cells(names=("all",)), ()
        tests = [beliefs.is_answer(level) for level in named]
        if len(named) == len(beliefs.levels):
            tests = tests[:-1]
            return Cells(names=tuple(f"answer {level}" for level in named), tests=tuple(tests)), ()
        inside = f"answer {named[0]}"
        outside = "other answers"
        test = needless_units(self.name, self.of, beliefs.answers)
        if test is None:
            return Cells(names=(inside, outside), tests=(tests[0],)), ()
        answered = test == needless_units("precision", self.of, beliefs.answers)
        if answered:
            ignored = outside
            counted = inside
        else:
            ignored = inside
            counted = outside
        return Cells(names=(ignored, counted), tests=(test,)), (ignored,)

    def _sets(self, sample: Sample, labels: object) -> AnsweredSets | None:
        """Return the sets of tags, if they are compared and the metric is of a tag or an average."""
        if self.of is None or not compares_sets(sample, labels, self.predicted):
            return None
        return answered_sets(sample, labels, self.predicted)

    def _of_sets(self, sets: AnsweredSets) -> int | str:
        """Return the number of the tag that the metric is of, or how it is averaged over tags."""
        if self.classes:
            return sets.number(str(self.of))
        return str(self.of)

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the metric, from the true classes."""
        sets = self._sets(sample, labels)
        if sets is not None:
            estimate = sets.counts.metric(self.name, self._of_sets(sets), request.target)
            estimate = sets.frame.complete(estimate, sample)
            return replace(estimate, label=self.label, remarks=(*estimate.remarks, *sets.remarks))
        answered = self._answered(sample, labels)
        estimate = answered.metric(sample, self.name, self._which(answered.levels), request.target)
        return replace(estimate, label=self.label)

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return the metric of each group: a rate of a class, kappa, or an average over tags."""
        sets = self._sets(sample, labels)
        if sets is not None:
            return self._sets_by(sets, sample, group, request)
        answered = self._answered(sample, labels)
        which = self._which(answered.levels)
        if isinstance(which, str):
            return Estimand.by(self, sample, labels, group, request)
        estimates = answered.within(sample, group, self.name, which, request.target)
        rows = [replace(row, label={"domain": name}) for name, row in estimates.items()]
        return Estimates.from_rows(sample, rows, "domains", answered.frame.notes)

    def _sets_by(self, sets: AnsweredSets, sample: Sample, group: object, request: Request) -> Estimates:
        """Return the metric of a tag, or its average over the tags, of each group."""
        groups, names = named_groups(sample, group)
        inside = groups[sets.labelled]
        rows = []
        for level in names:
            metric = sets.counts.metric(self.name, self._of_sets(sets), request.target, inside == level)
            rows.append(sets.frame.complete(metric, sample, label={"domain": level}))
        return Estimates.from_rows(sample, rows, "domains", (*sets.frame.notes, *sets.remarks))

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the influence of the labelled units, at the shares that the labels estimate."""
        sets = self._sets(sample, labels)
        if sets is not None and not self.classes:
            u = sets.counts.influence(self.name, str(self.of))
            return LabelledInfluence(u=u, labelled=sets.labelled)
        answered = self._answered(sample, labels)
        confusion = answered.confusion
        weights = confusion.weighting.weights
        if answered.judged is not None:
            weights = weights * answered.judged
        shares = measures.Shares.of(confusion.true, confusion.predicted, weights, confusion.n_classes)
        metric = measures.metric_function(self.name, self._which(answered.levels), confusion.n_classes)
        value, slopes, _ = metric(shares)
        if np.isfinite(value):
            u = slopes.along(confusion.true, confusion.predicted)
        else:
            u = np.zeros(0)
        if answered.judged is not None and np.isfinite(value):
            u = np.where(answered.judged, u, 0.0)
        return LabelledInfluence(u=u, labelled=answered.labelled)

    def _answered(self, sample: Sample, labels: object) -> AnsweredClasses:
        sets = self._sets(sample, labels)
        if sets is not None:
            return AnsweredClasses(
                levels=[f"not {self.of}", str(self.of)],
                known_levels=[],
                confusion=sets.counts.confusion(sets.number(str(self.of))),
                frame=sets.frame,
                labelled=sets.labelled,
            )
        labels, new_answers = split_answers(labels)
        answers = self.predicted or sample.question.answer
        needless = needless_units(self.name, self.of, answers if new_answers is None else None)
        if new_answers is None:
            compared = self.predicted
        else:
            compared = new_answers
        return answered_classes(sample, labels, compared, self.classes or None, needless=needless)

    def _which(self, levels: Sequence[str]) -> int | str | None:
        if self.of in levels:
            return levels.index(self.of)
        return self.of

    def _rates(self, answered: AnsweredClasses) -> tuple[FloatArray, FloatArray] | None:
        """Return whether units are of the class (m,), and by how much u differs if so; None of averages."""
        confusion = answered.confusion
        k = self._which(answered.levels)
        if not isinstance(k, int):
            return None
        other = confusion.n_classes
        weights = confusion.weighting.weights
        # One label of average weight, half right, keeps what few labels show from one of its ends.
        shares = measures.Shares.of(
            np.append(confusion.true, [k, k, other]),
            np.append(confusion.predicted, [k, other, k]),
            np.append(weights, float(weights.mean()) * np.array([0.5, 0.25, 0.25])),
            confusion.n_classes + 1,
        )
        _, slopes, _ = measures.metric_function(self.name, k, confusion.n_classes + 1)(shares)
        either = [slopes.along(np.full(len(weights), truth), confusion.predicted) for truth in (k, other)]
        return (confusion.true == k).astype(np.float64), np.abs(either[0] - either[1])

    def chance(self, population: Population) -> Expression:
        """Return the probability that a unit is of the class, as the columns have it."""
        beliefs = self._beliefs(population)
        return beliefs.of_class(np.array([float(level == self.of) for level in beliefs.levels]))

    def learned_deviations(
        self, sample: Sample, labels: object, strata: Strata, planned: FloatArray | None = None
    ) -> FloatArray:
        """Return √E[r (1 − r)] times the gap between the two values that the influence has in a stratum (H,).

        What is unknown is the rate r of the class: its probabilities are recalibrated on the labels, and
        smoothed, as a mean's proxy is. For averages of several classes, and where no population is at hand,
        as of other estimands.
        """
        if not self.classes and self._sets(sample, labels) is not None:
            return Estimand.learned_deviations(self, sample, labels, strata, planned)
        answered = self._answered(sample, labels)
        if sample.population is None:
            rates = None
        else:
            rates = self._rates(answered)
        if rates is None or sample.population is None:
            return Estimand.learned_deviations(self, sample, labels, strata, planned)
        is_class, gaps = rates
        stratum = sample.stratum[answered.labelled]
        n_strata = strata.n_strata
        counts = np.bincount(stratum, minlength=n_strata)
        gap = np.bincount(stratum, gaps, minlength=n_strata) / np.maximum(counts, 1)
        gap = np.where(counts > 0, gap, gaps.mean())
        chances = stratum_averages(sample.population, strata.rule, [self.chance(sample.population)])[:, 0]
        moments = replace(of_sizes(strata.sizes), proxy_means=np.clip(chances, 0.0, 1.0))
        positives = np.bincount(stratum, is_class, minlength=n_strata)
        deviations = smoothed_standard_deviations(moments, counts, positives)
        return np.asarray(np.where(strata.is_known, 0.0, deviations * gap))


@dataclass(frozen=True, slots=True)
class _OfAll(Classification):
    predicted: str | None = None


@dataclass(frozen=True, slots=True)
class Accuracy(_OfAll, kind="accuracy"):
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

    takes: ClassVar[tuple[str, ...]] = RIGHT_OPTIONS
    takes_by_group: ClassVar[tuple[str, ...]] = tuple(
        name for name in Mean.takes_by_group if name != "predicted"
    )

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the accuracy, from the true classes: the mean of right answers."""
        return replace(Mean().estimate(*self._compared(sample, labels, request)), label=self.label)

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return the accuracy of each group."""
        sample, labels, request = self._compared(sample, labels, request)
        return Mean().by(sample, labels, group, request)

    def _compared(self, sample: Sample, labels: object, request: Request) -> tuple[Sample, Any, Request]:
        """Return what a mean takes: the sample with answers that came with the labels, and which they are."""
        labels, new_answers = split_answers(labels)
        if new_answers is None:
            if self.predicted is None and request.predicted is None:
                compared_column(sample, labels)  # refuses labels that may be classes, or right and wrong
            return sample, labels, replace(request, predicted=self.predicted or True)
        return with_group(sample, GIVEN, new_answers), labels, replace(request, predicted=GIVEN)


@dataclass(frozen=True, slots=True)
class Agreement(Accuracy, kind="agreement", name="accuracy", listed="predicted"):
    """The share of the units on which a judge's verdict is what people say: the accuracy of a judge.

    Parameters
    ----------
    predicted : str, optional
        The group column of the judge's verdicts; the population's own answers unless given.

    Examples
    --------
    >>> Agreement("judge").text
    'agreement:judge'
    """

    def decoded(self, sample: Sample, labels: object) -> Any:
        """Return labels in the spelling of the judge's verdicts."""
        return _in_words_of_judge(self, sample, labels)

    def _compared(self, sample: Sample, labels: object, request: Request) -> tuple[Sample, Any, Request]:
        """Return what a mean takes: how a label becomes an outcome says nothing of verdicts."""
        sample, labels, request = super(Agreement, self)._compared(sample, labels, request)
        question = replace(sample.question, outcome=Outcome(decoding=COMPARISON))
        return replace(sample, question=question), labels, request

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the agreement on the units with a verdict."""
        labels = self.decoded(sample, labels)
        answered = _verdicts_with_gaps(self, sample, labels)
        if answered is None:
            return super(Agreement, self).estimate(sample, labels, request)
        estimate = answered.metric(sample, self.name, None, request.target)
        return replace(estimate, label=self.label)

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return the agreement of each group, on the units with a verdict."""
        labels = self.decoded(sample, labels)
        answered = _verdicts_with_gaps(self, sample, labels)
        if answered is None:
            return super(Agreement, self).by(sample, labels, group, request)
        estimates = answered.within(sample, group, self.name, None, request.target)
        rows = [replace(row, label={"domain": name}) for name, row in estimates.items()]
        return Estimates.from_rows(sample, rows, "domains", answered.frame.notes)


def _judge_of(estimand: _OfAll, sample: Sample, labels: object) -> str | None:
    """Return the group column of a judge's verdicts; None if the answers came with the labels."""
    judge = estimand.predicted or sample.question.answer
    if judge is None or judge not in sample.groups or split_answers(labels)[1] is not None:
        return None
    return judge


def _is_of_judge(estimand: _OfAll, sample: Sample) -> bool:
    """Return whether a column other than the model's own answers is named, whose words are verdicts.

    Labels such as pass and fail say of the model's own answers whether they are right, and are not classes.
    """
    return estimand.predicted not in (None, sample.question.answer)


def _in_words_of_judge(estimand: _OfAll, sample: Sample, labels: object) -> Any:
    """Return labels in the spelling of the judge's verdicts; other labels as they are."""
    judge = _judge_of(estimand, sample, labels)
    if judge is None or not _is_of_judge(estimand, sample):
        return labels
    return labels_as_verdicts(sample, labels, judge)


def _verdicts_with_gaps(estimand: _OfAll, sample: Sample, labels: object) -> AnsweredClasses | None:
    """Return the classes of a judge that gave no verdict on some units; None of other answers."""
    judge = _judge_of(estimand, sample, labels)
    if judge is None:
        return None
    answered = judged_classes(sample, labels, judge, by_number=_is_of_judge(estimand, sample))
    if answered.judged is None:
        return None
    return answered


@dataclass(frozen=True, slots=True)
class Kappa(_OfAll, kind="kappa", listed="predicted"):
    """Cohen's kappa of a judge's verdicts and people's: agreement less that of chance, over what is left.

    Chance is that two who say each class as often as these do agree (Cohen 1960). For scores in which a near
    miss counts as a part of agreement see `WeightedKappa`.

    Parameters
    ----------
    predicted : str, optional
        The group column of the judge's verdicts; the population's own answers unless given.

    Examples
    --------
    >>> Kappa("judge").text
    'kappa:judge'
    """

    def decoded(self, sample: Sample, labels: object) -> Any:
        """Return labels in the spelling of the judge's verdicts."""
        return _in_words_of_judge(self, sample, labels)

    def _answered(self, sample: Sample, labels: object) -> AnsweredClasses:
        labels = self.decoded(sample, labels)
        return _verdicts_with_gaps(self, sample, labels) or super(Kappa, self)._answered(sample, labels)


@dataclass(frozen=True, slots=True)
class BalancedAccuracy(_OfAll, kind="balanced_accuracy"):
    """The mean recall over the classes.

    Examples
    --------
    >>> BalancedAccuracy(predicted="answer").text
    'balanced_accuracy:predicted=answer'
    """

    def _answered(self, sample: Sample, labels: object) -> AnsweredClasses:
        if compares_sets(sample, labels, self.predicted):
            raise InputError(
                "balanced accuracy is of classes, and the answers are sets of tags",
                action="Ask for the mean recall over the tags: average:recall.",
            )
        return super(BalancedAccuracy, self)._answered(sample, labels)


@dataclass(frozen=True, slots=True)
class MatthewsCorrelation(_OfAll, kind="mcc"):
    """Matthews' correlation of answers and truth, of any number of classes.

    Examples
    --------
    >>> MatthewsCorrelation().text
    'mcc'
    """


@dataclass(frozen=True, slots=True)
class Average(Classification, kind="average", listed="metric"):
    """A metric of each class, averaged over all classes; of each tag where answers are sets of tags.

    Parameters
    ----------
    metric : str
        One of the metrics of a class, such as `f1`.
    average : {"macro", "micro", "weighted"}
        Of tags the first two.
    predicted : str, optional
        As for `Accuracy`.

    Examples
    --------
    >>> Average("f1").text, Average("recall", "weighted").text
    ('average:f1', 'average:recall,average=weighted')
    """

    metric: str
    average: str = "macro"
    predicted: str | None = None

    def __post_init__(self) -> None:
        measures.require_names(self.metric, measures.CLASS_METRICS, "metric of a class")
        measures.require_names(self.average, AVERAGES, "average")

    @property
    def name(self) -> str:
        """The metric of each class."""
        return self.metric

    @property
    def of(self) -> str:
        """The average."""
        return self.average


@dataclass(frozen=True, slots=True)
class ClassMetric(Classification, listed="positive", shown="match"):
    """A metric of one class; what follows has these fields, and differs by its name alone.

    Parameters
    ----------
    positive, predicted, probability, right
        As for `F1`.
    """

    positive: str
    predicted: str | None = None
    probability: str | None = None
    right: str | None = field(default=None, kw_only=True)

    @property
    def _probability_columns(self) -> tuple[str | None, str | None]:
        """The columns that are named for the probability of the class, and of a right answer."""
        return self.probability, self.right

    def __post_init__(self) -> None:
        self._set(positive=str(self.positive))
        if self.probability is not None and self.right is not None:
            beliefs = f"probability={self.probability}, right={self.right}"
            problem = "a belief is the probability of the class or that of a right answer"
            raise InputError(problem, given=beliefs, allowed="one of the two")

    @property
    def of(self) -> str:
        """The class."""
        return self.positive

    @property
    def classes(self) -> tuple[str, ...]:
        """The class alone."""
        return (self.positive,)

    @property
    def needs_an_answer(self) -> bool:
        """Whether the metric says nothing of a class that the model never answers."""
        return True

    def rates_in_strata(self, census: Sample, labels: object) -> RatesInStrata | None:
        """Return the metric as a function of the class's rates, if every stratum has one kind of answers."""
        if self._sets(census, labels) is not None:
            return None
        answered = self._answered(census, labels)
        return answered.confusion.rates_in_strata(self.name, self._which(answered.levels))

    def refuse_unknown_class(self, population: Population) -> None:
        """Raise an `InputError` for a class that is none of the answers, or one in another spelling."""
        answers = self.predicted or population.roles.answer
        if answers not in population.group_names:
            return
        levels = tuple(population.levels(str(answers)))
        tags = population_tags(population, str(answers))
        if tags:
            if self.positive not in tags:
                raise unknown_tag(self.positive, tags)
            return
        if self.positive in levels:
            return
        alike = [level for level in levels if level.strip().casefold() == self.positive.strip().casefold()]
        if not alike and not self.needs_an_answer:
            return
        if alike:
            suggestion = f" Did you mean {alike[0]!r}?"
        else:
            suggestion = ""
        shown = ", ".join(map(repr, levels[:_MAX_CLASSES]))
        shown += f" and {len(levels) - _MAX_CLASSES} more" if len(levels) > _MAX_CLASSES else ""
        raise InputError(
            f"no answer in '{answers}' is {self.positive!r}, the class of {self.text!r}",
            allowed=shown,
            action=f"Name a class as the answers do; to plan for all units, leave the class out.{suggestion}",
        )

    def refuse_a_misread_proxy(self, population: Population) -> None:
        """Raise an `InputError` where a proxy is plainly not the probability that the answer is right.

        Of metrics that name neither `probability` nor `right`; it says how to write the estimand.

        Examples
        --------
        >>> population = Population.from_arrays(
        ...     proxy={"score": [0.9, 0.1, 0.0]}, groups={"answer": ["yes", "no", "no"]}, predicted="answer")
        >>> F1("yes", probability="score").refuse_a_misread_proxy(population)
        >>> F1("yes").refuse_a_misread_proxy(population)
        Traceback (most recent call last):
        stratal.errors.InputError: 'f1:yes' takes 'score' as the probability that the answer is right, but \
then 5.0% of the 2 other answers would be right, and 90.0% of the 1 answers 'yes'. If it is the \
probability of 'yes', write f1:yes,probability=score (of the other class: of 1 - score). If it is that of a \
right answer all the same: f1:yes,right=score.
        """
        self.refuse_unknown_class(population)
        if not population.proxies or self.probability is not None or self.right is not None:
            return
        answers = self.predicted or population.roles.answer
        proxy = population.proxy_info()
        if proxy.name in population.predicts:
            return
        if answers in population.group_names and sets_by_text(population, str(answers)):
            return  # whether a whole set is right says little of one of its tags
        if answers not in population.group_names or not proxy.scaled or proxy.bounds != (0.0, 1.0):
            return
        named = ByLevel(name=str(answers), levels=(self.positive,), values=(1.0,))
        score = NumberColumn(name=proxy.name)
        share, share_right_in_class, mean_score = averages(population, [named, named * score, score]).tolist()
        if not 0.0 < share < 1.0:
            return
        share_right_in_class, share_right_elsewhere = (
            share_right_in_class / share,
            (mean_score - share_right_in_class) / (1.0 - share),
        )
        is_reversed = (
            share_right_in_class < FEW_RIGHT
            and share_right_elsewhere > 2.0 * share_right_in_class
            and len(population.levels(str(answers))) == 2
        )
        if not is_reversed and (
            share_right_elsewhere >= FEW_RIGHT or share_right_in_class <= 2.0 * share_right_elsewhere
        ):
            return
        as_class_probability, as_right_probability = (
            replace(self, **{name: proxy.name}).text for name in ("probability", "right")
        )
        count = round(share * population.size)
        raise InputError(
            f"{self.text!r} takes {proxy.name!r} as the probability that the answer is right, but then "
            f"{share_right_elsewhere:.1%} of the {population.size - count:,} other answers would be right, "
            f"and {share_right_in_class:.1%} of the {count:,} answers {self.positive!r}",
            action=f"If it is the probability of {self.positive!r}, write {as_class_probability} (of the "
            f"other class: of 1 - {proxy.name}). If it is that of a right answer all the same: "
            f"{as_right_probability}.",
        )


@dataclass(frozen=True, slots=True)
class Precision(ClassMetric, kind="precision"):
    """The share of the units answered as a class that are of it.

    Examples
    --------
    >>> Precision("match").text
    'precision:match'
    """


@dataclass(frozen=True, slots=True)
class FalseDiscoveryRate(ClassMetric, kind="false_discovery_rate"):
    """The share of the units answered as a class that are not of it: 1 less the precision.

    Examples
    --------
    >>> FalseDiscoveryRate("fail", predicted="judge").text
    'false_discovery_rate:fail,predicted=judge'
    """


@dataclass(frozen=True, slots=True)
class Recall(ClassMetric, kind="recall"):
    """The share of the units of a class that are answered as it.

    Examples
    --------
    >>> Recall("match").text
    'recall:match'
    """


@dataclass(frozen=True, slots=True)
class F1(ClassMetric, kind="f1"):
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


@dataclass(frozen=True, slots=True)
class Specificity(ClassMetric, kind="specificity"):
    """The share of the units of other classes that are not answered as the class.

    Examples
    --------
    >>> Specificity("match").text
    'specificity:match'
    """


@dataclass(frozen=True, slots=True)
class NegativePredictiveValue(ClassMetric, kind="negative_predictive_value"):
    """The share of the units not answered as a class that are not of it.

    Examples
    --------
    >>> NegativePredictiveValue("match").text
    'negative_predictive_value:match'
    """


@dataclass(frozen=True, slots=True)
class FalsePositiveRate(ClassMetric, kind="false_positive_rate"):
    """The share of the units of other classes that are answered as the class: 1 less the specificity.

    Examples
    --------
    >>> FalsePositiveRate("match").text
    'false_positive_rate:match'
    """


@dataclass(frozen=True, slots=True)
class FalseNegativeRate(ClassMetric, kind="false_negative_rate"):
    """The share of the units of a class that are not answered as it: 1 less the recall.

    Examples
    --------
    >>> FalseNegativeRate("match").text
    'false_negative_rate:match'
    """


@dataclass(frozen=True, slots=True)
class Jaccard(ClassMetric, kind="jaccard"):
    """Hits over the units that are of a class or answered as it.

    Examples
    --------
    >>> Jaccard("match").text
    'jaccard:match'
    """


@dataclass(frozen=True, slots=True)
class Prevalence(ClassMetric, kind="prevalence"):
    """The share of the units that are of a class.

    Examples
    --------
    >>> Prevalence("match").text
    'prevalence:match'
    """

    @property
    def needs_an_answer(self) -> bool:
        """Whether no score predicts the class: units belong to it whatever the model answers."""
        return self.probability is None


@dataclass(frozen=True, slots=True)
class PredictedPrevalence(ClassMetric, kind="predicted_prevalence"):
    """The share of units that the model answers with the class: counted where the population is known.

    Examples
    --------
    >>> PredictedPrevalence("match").text
    'predicted_prevalence:match'
    """


@dataclass(frozen=True, slots=True)
class FBeta(ClassMetric, kind="fbeta"):
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

    beta: float = 2.0

    @property
    def name(self) -> str:
        """The metric, as `ClassReport` calls it."""
        return f"f{self.beta:g}"
