"""Metrics of a classifier as estimands: accuracy, precision, recall, F_β and their relatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import FloatArray, means_of_sums
from stratal.designs.sample import Sample
from stratal.errors import InputError, list_first, suggest_names
from stratal.estimation.estimand import (
    ACCURACY_OPTIONS,
    DEFAULT_REQUEST,
    Estimand,
    LabelledInfluence,
    Request,
)
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.means import Mean
from stratal.estimation.resolve import (
    ANSWERS_WITH_LABELS,
    compared_column,
    named_groups,
    split_answers,
    with_group,
)
from stratal.metrics import class_functions
from stratal.metrics.class_answers import (
    AnsweredClasses,
    ClassProbabilities,
    answered_classes,
    irrelevant_units,
    judged_classes,
    labels_as_verdicts,
    probability_of_right_answer,
)
from stratal.metrics.class_shares import RatesInStrata
from stratal.metrics.labelled_tag_sets import LabelledTagSets, compares_sets, labelled_tag_sets, unknown_tag
from stratal.population.answer_sets import population_tags, sets_by_text
from stratal.population.expressions import ALL_UNITS, ByLevel, Cells, Expression, NumberColumn, sum_of
from stratal.population.influence import Influence, population_means, stratum_averages
from stratal.population.population import Population
from stratal.question.question import COMPARISON, Outcome
from stratal.question.scores import ANSWER_IS_RIGHT, Score, class_probability
from stratal.question.vocabulary import AVERAGES
from stratal.strata import Strata
from stratal.strata.standard_deviations import smoothed_standard_deviations
from stratal.strata.strata import moments_of_sizes

# Share of right answers below which a proxy is probably not their probability: no usual model has so few
# right answers of one class while its other answers are right twice as often.
MIN_SHARE_RIGHT = 0.25

# Share of the class among other answers, absolute and relative to that among the answers of the class, above
# which a score is probably not its probability: by this score, the model would be wrong on most of them.
MAX_SHARE_OF_CLASS = 0.5
MAX_RELATIVE_SHARE_OF_CLASS = 0.8

# Maximum number of answers by which the population is divided.
_MAX_CELLS = 12

# Maximum number of classes that an error lists.
_MAX_CLASSES_SHOWN = 30


def _class_moments(
    probabilities: ClassProbabilities, hits: FloatArray, answered: FloatArray, true: FloatArray
) -> tuple[Expression, Expression]:
    """Return E[u | x] and E[u² | x] of u = 1(c = a) hits_a + true_c + answered_a.

    c is the true class, and a the known answer. `hits`, `answered` and `true` are slopes by class (K,).
    """
    by_answer = probabilities.by_answer(answered)
    by_class = probabilities.of_class(true)
    mean = by_answer + by_class + probabilities.of_answer(hits)
    squares_of_classes = probabilities.of_class(true**2)
    squares_of_answers = probabilities.by_answer(answered**2)
    # For a hit, the square of hits, and its products with the other two.
    terms_of_hits = probabilities.of_answer(hits**2 + 2.0 * hits * (true + answered))
    square = squares_of_classes + 2.0 * by_answer * by_class + squares_of_answers + terms_of_hits
    return mean, square


def _influence_of_accuracy(population: Population) -> Influence:
    """Return the conditional moments of the influence of the share of right answers."""
    right = probability_of_right_answer(population)
    value = float(population_means(population, [right])[0])
    mean = right - value
    square = mean * mean + right * (1.0 - right)
    return Influence(value=value, mean=mean, square=square)


class Classification(Estimand):
    """A metric of the confusion matrix of a classifier."""

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
        """The metric's class, or average (such as `macro`); None for metrics of all classes."""
        return None

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that the estimand names."""
        return ()

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of the influence, a function of the answer and the true class.

        A unit of class c with the answer a has u = 1(c = a) H_a + T_c + P_a + e. H, T, P and e are the
        derivatives of the metric with respect to the shares of hits, true classes, answers and all units.
        """
        answers = self.predicted or population.roles.answer
        sets: Mapping[str, tuple[str, ...]] = {}
        if answers is not None:
            sets = sets_by_text(population, population.require_group(answers))
        if sets:
            return self._influence_of_sets(population, sets)
        probabilities = self._class_probabilities(population)
        levels = probabilities.levels
        k = len(levels)
        indicators = np.eye(k)
        expressions = [
            *(probabilities.of_answer(row) for row in indicators),
            *(probabilities.by_answer(row) for row in indicators),
            *(probabilities.of_class(row) for row in indicators),
        ]
        hits, predicted, true = population_means(population, expressions).reshape(3, k)
        shares = class_functions.Shares(hits=hits, predicted=predicted, true=true, total=1.0)
        metric = class_functions.metric_function(self.name, self._class_number(levels), k)
        value, slopes, problem = metric(shares, unit="unit")
        if not np.isfinite(value):
            raise InputError(
                f"no forecast is possible for {self.text!r}: {problem}",
                given="answers are " + suggest_names("", [name for name in levels if name != self.of]),
                action="Check the class, give its probability (probability=COL), or plan for the accuracy.",
            )
        answered = slopes.predicted + slopes.total
        mean, square = _class_moments(probabilities, slopes.hits, answered, slopes.true)
        cells, irrelevant_cells = self._cells(probabilities)
        return Influence(value=value, mean=mean, square=square, cells=cells, known_cells=irrelevant_cells)

    def _influence_of_sets(self, population: Population, sets: Mapping[str, tuple[str, ...]]) -> Influence:
        """Return the conditional moments of the influence of a tag's metric, or of its average over the tags.

        u = Σ_t (1(tag in both) H_t + 1(in the label) T_t + 1(in the answer) P_t) + e. The tags of a label are
        assumed to be independent, given the answer and the probabilities.
        """
        if self.of is None:
            return _influence_of_accuracy(population)
        answer_tags = tuple(sorted({tag for answer in sets.values() for tag in answer}))
        tags = self.classes or answer_tags
        for tag in tags:
            if tag not in answer_tags:
                raise unknown_tag(tag, answer_tags)
        tag_probabilities = [
            ClassProbabilities.of(population, self.predicted, (tag,), *self._probability_columns)
            for tag in tags
        ]
        indicator = np.array([0.0, 1.0])
        expressions: list[Expression] = []
        for probabilities in tag_probabilities:
            expressions.append(probabilities.of_answer(indicator))
            expressions.append(probabilities.by_answer(indicator))
            expressions.append(probabilities.of_class(indicator))
        hits, predicted, true = population_means(population, expressions).reshape(len(tags), 3).T
        shares = class_functions.Shares(hits=hits, predicted=predicted, true=true, total=1.0)
        tag_or_average = 0 if self.classes else self.of
        value, slopes, problem = class_functions.metric_function(self.name, tag_or_average, len(tags))(shares)
        if not np.isfinite(value):
            action = "Request a micro average, or plan for the accuracy."
            raise InputError(f"no forecast is possible for {self.text!r}: {problem}", action=action)
        means = []
        variances = []
        for j, probabilities in enumerate(tag_probabilities):
            # The slopes of both classes: units without the tag, whose slope is 0, and units with it.
            hit_slopes = indicator * float(slopes.hits[j])
            answer_slopes = indicator * float(slopes.predicted[j])
            true_slopes = indicator * float(slopes.true[j])
            mean, square = _class_moments(probabilities, hit_slopes, answer_slopes, true_slopes)
            means.append(mean)
            variances.append(square - mean * mean)
        mean_influence = sum_of(means) + slopes.total
        cells = ALL_UNITS
        if self.classes:
            names = (f"answer {tags[0]}", "other answers")
            cells = Cells(names=names, tests=(tag_probabilities[0].is_answer(tags[0]),))
        return Influence(
            value=value,
            mean=mean_influence,
            square=mean_influence * mean_influence + sum_of(variances),
            cells=cells,
        )

    @property
    def _probability_columns(self) -> tuple[str | None, str | None]:
        """The columns with the probability of the class, and with that of a right answer."""
        return None, None

    def _class_probabilities(self, population: Population) -> ClassProbabilities:
        """Return the probabilities of the classes that the metric needs."""
        return ClassProbabilities.of(population, self.predicted, self.classes, *self._probability_columns)

    def _cells(self, probabilities: ClassProbabilities) -> tuple[Cells, tuple[str, ...]]:
        """Return the cells of the population by the model's answer, and the cells that need no label."""
        levels = probabilities.levels
        # Metrics of one class depend on whether the answer is this class; others on all answers.
        class_answers = [self.of] if self.of in levels else list(levels)
        # Each cell would get few labels.
        if len(class_answers) > _MAX_CELLS:
            return ALL_UNITS, ()
        tests = [probabilities.is_answer(level) for level in class_answers]
        names = tuple(f"answer {level}" for level in class_answers)
        if len(class_answers) == len(levels):
            # Units for which no test is true are in the last cell.
            return Cells(names=names, tests=tuple(tests[:-1])), ()
        class_answer = names[0]
        others = "other answers"
        irrelevant = irrelevant_units(self.name, self.of, probabilities.answers)
        if irrelevant is None:
            return Cells(names=(class_answer, others), tests=(tests[0],)), ()
        # The precision needs no label of units with other answers.
        if irrelevant == irrelevant_units("precision", self.of, probabilities.answers):
            return Cells(names=(others, class_answer), tests=(irrelevant,)), (others,)
        return Cells(names=(class_answer, others), tests=(irrelevant,)), (class_answer,)

    def _sets(self, sample: Sample, labels: object) -> LabelledTagSets | None:
        """Return the sets of tags, if they are compared and the metric is of a tag or an average."""
        if self.of is None or not compares_sets(sample, labels, self.predicted):
            return None
        return labelled_tag_sets(sample, labels, self.predicted)

    def _tag_or_average(self, sets: LabelledTagSets) -> int | str:
        """Return the number of the metric's tag, or the average over tags."""
        if self.classes:
            return sets.index(str(self.of))
        return str(self.of)

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the metric, from the true classes."""
        sets = self._sets(sample, labels)
        if sets is not None:
            estimate = sets.counts.metric(self.name, self._tag_or_average(sets), request.target)
            estimate = sets.respondents.complete(estimate, sample)
            return replace(estimate, label=self.label, remarks=(*estimate.remarks, *sets.remarks))
        answered = self._answered(sample, labels)
        estimate = answered.metric(sample, self.name, self._class_number(answered.levels), request.target)
        return replace(estimate, label=self.label)

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the metric of each group: a rate of a class, kappa, or an average over tags."""
        sets = self._sets(sample, labels)
        if sets is not None:
            return self._tag_metric_by_group(sets, sample, group, request)
        answered = self._answered(sample, labels)
        class_number = self._class_number(answered.levels)
        # The average over classes of a group needs a confusion matrix of its own.
        if isinstance(class_number, str):
            return Estimand.by(self, sample, labels, group, request)
        return answered.domain_estimates(sample, group, self.name, class_number, request.target)

    def _tag_metric_by_group(
        self, sets: LabelledTagSets, sample: Sample, group: object, request: Request
    ) -> Estimates:
        """Return the metric of a tag, or its average over the tags, of each group."""
        groups, names = named_groups(sample, group)
        labelled_groups = groups[sets.labelled]
        tag_or_average = self._tag_or_average(sets)
        rows = []
        for name in names:
            estimate = sets.counts.metric(self.name, tag_or_average, request.target, labelled_groups == name)
            rows.append(sets.respondents.complete(estimate, sample, label={"domain": name}))
        return Estimates.from_rows(sample, rows, "domains", (*sets.respondents.notes, *sets.remarks))

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the influence of the labelled units, at the shares that the labels estimate."""
        sets = self._sets(sample, labels)
        if sets is not None and not self.classes:
            u = sets.counts.influence(self.name, str(self.of))
            return LabelledInfluence(u=u, labelled=sets.labelled)
        answered = self._answered(sample, labels)
        confusion = answered.confusion
        weights = confusion.weighting.weights
        # Units without a verdict do not count.
        if answered.has_verdict is not None:
            weights = weights * answered.has_verdict
        n_classes = confusion.n_classes
        shares = class_functions.Shares.of(confusion.true, confusion.predicted, weights, n_classes)
        class_number = self._class_number(answered.levels)
        value, slopes, _ = class_functions.metric_function(self.name, class_number, n_classes)(shares)
        u = np.zeros(0)
        if np.isfinite(value):
            u = slopes.per_unit(confusion.true, confusion.predicted)
            if answered.has_verdict is not None:
                u = np.where(answered.has_verdict, u, 0.0)
        return LabelledInfluence(u=u, labelled=answered.labelled)

    def _answered(self, sample: Sample, labels: object) -> AnsweredClasses:
        """Return true and predicted classes of the labelled units; for a tag, whether a set contains it."""
        sets = self._sets(sample, labels)
        if sets is not None:
            tag = str(self.of)
            return AnsweredClasses(
                levels=[f"not {tag}", tag],
                population_levels=[],
                confusion=sets.counts.confusion(sets.index(tag)),
                respondents=sets.respondents,
                labelled=sets.labelled,
            )
        labels, new_answers = split_answers(labels)
        answers = self.predicted or sample.question.answer
        # Strata by the sample's answers do not separate new answers.
        irrelevant = irrelevant_units(self.name, self.of, answers if new_answers is None else None)
        y_pred = self.predicted if new_answers is None else new_answers
        return answered_classes(sample, labels, y_pred, self.classes or None, irrelevant=irrelevant)

    def _class_number(self, levels: Sequence[str]) -> int | str | None:
        """Return the number of the class; the average, or None, for metrics of several classes."""
        if self.of in levels:
            return levels.index(self.of)
        return self.of

    def _class_and_effect(self, answered: AnsweredClasses) -> tuple[FloatArray, FloatArray] | None:
        """Return 1 for units of the class (m,), and by how much this changes u; None for averages."""
        confusion = answered.confusion
        k = self._class_number(answered.levels)
        if not isinstance(k, int):
            return None
        other = confusion.n_classes
        weights = confusion.weighting.weights
        # One more label of average weight (half a hit, a quarter each a miss and a false alarm) keeps
        # the shares of few labels away from 0 and 1.
        true = np.append(confusion.true, [k, k, other])
        predicted = np.append(confusion.predicted, [k, other, k])
        label_weights = float(weights.mean()) * np.array([0.5, 0.25, 0.25])
        all_weights = np.append(weights, label_weights)
        n_classes = confusion.n_classes + 1
        shares = class_functions.Shares.of(true, predicted, all_weights, n_classes)
        _, slopes, _ = class_functions.metric_function(self.name, k, n_classes)(shares)
        u_if_class = slopes.per_unit(np.full(len(weights), k), confusion.predicted)
        u_otherwise = slopes.per_unit(np.full(len(weights), other), confusion.predicted)
        return (confusion.true == k).astype(np.float64), np.abs(u_if_class - u_otherwise)

    def chance(self, population: Population) -> Expression:
        """Return the probability that a unit is of the class, from the columns of the population."""
        probabilities = self._class_probabilities(population)
        is_class = np.array([float(level == self.of) for level in probabilities.levels])
        return probabilities.of_class(is_class)

    def learned_deviations(
        self, sample: Sample, labels: object, strata: Strata, planned: FloatArray | None = None
    ) -> FloatArray:
        """Return √E[r (1 − r)] times the difference of the two values of the influence in a stratum (H,).

        The rate r of the class is unknown. As the proxy of a mean, the probabilities of the class are
        recalibrated on the labels and smoothed. Averages of several classes, and samples without their
        population, use the method of other estimands.
        """
        if not self.classes and self._sets(sample, labels) is not None:
            return Estimand.learned_deviations(self, sample, labels, strata, planned)
        answered = self._answered(sample, labels)
        class_and_effect = self._class_and_effect(answered)
        if class_and_effect is None or sample.population is None:
            return Estimand.learned_deviations(self, sample, labels, strata, planned)
        is_class, effects = class_and_effect
        stratum = sample.stratum[answered.labelled]
        n_strata = strata.n_strata
        counts = np.bincount(stratum, minlength=n_strata)
        sums = np.bincount(stratum, effects, minlength=n_strata)
        mean_effect = means_of_sums(sums, counts, empty=effects.mean())
        chances = stratum_averages(sample.population, strata.rule, [self.chance(sample.population)])[:, 0]
        moments = replace(moments_of_sizes(strata.sizes), proxy_means=np.clip(chances, 0.0, 1.0))
        positives = np.bincount(stratum, is_class, minlength=n_strata)
        deviations = smoothed_standard_deviations(moments, counts, positives)
        return np.asarray(np.where(strata.is_known, 0.0, deviations * mean_effect))


@dataclass(frozen=True, slots=True)
class _OfAllClasses(Classification):
    """A metric of all classes."""

    predicted: str | None = None


@dataclass(frozen=True, slots=True)
class Accuracy(_OfAllClasses, kind="accuracy"):
    """The share of answers that are right.

    Parameters
    ----------
    predicted : str, optional
        The group column of the model's answers. Default: that of the population.

    Examples
    --------
    >>> Accuracy().text
    'accuracy'
    """

    takes: ClassVar[tuple[str, ...]] = ACCURACY_OPTIONS
    takes_by_group: ClassVar[tuple[str, ...]] = tuple(
        name for name in Mean.takes_by_group if name != "predicted"
    )

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the accuracy, from the true classes: the mean of right answers."""
        return replace(Mean().estimate(*self._mean_arguments(sample, labels, request)), label=self.label)

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the accuracy of each group."""
        sample, labels, request = self._mean_arguments(sample, labels, request)
        return Mean().by(sample, labels, group, request)

    def _mean_arguments(
        self, sample: Sample, labels: object, request: Request
    ) -> tuple[Sample, Any, Request]:
        """Return the arguments of the mean of right answers; new answers become a column of the sample."""
        labels, new_answers = split_answers(labels)
        if new_answers is None:
            if self.predicted is None and request.predicted is None:
                # Raises an error for ambiguous labels, such as 0 and 1.
                compared_column(sample, labels)
            return sample, labels, replace(request, predicted=self.predicted or True)
        return (
            with_group(sample, ANSWERS_WITH_LABELS, new_answers),
            labels,
            replace(request, predicted=ANSWERS_WITH_LABELS),
        )


@dataclass(frozen=True, slots=True)
class Agreement(Accuracy, kind="agreement", name="accuracy", listed_field="predicted"):
    """The share of units on which a judge's verdict equals the label: the accuracy of a judge.

    Parameters
    ----------
    predicted : str, optional
        The group column of the judge's verdicts. Default: the answers of the population.

    Examples
    --------
    >>> Agreement("judge").text
    'agreement:judge'
    """

    def decoded(self, sample: Sample, labels: object) -> Any:
        """Return labels in the spelling of the judge's verdicts."""
        return _labels_as_verdicts_of(self, sample, labels)

    def _mean_arguments(
        self, sample: Sample, labels: object, request: Request
    ) -> tuple[Sample, Any, Request]:
        """Return the arguments of the mean; verdicts are compared with labels, however labels are decoded."""
        sample, labels, request = super(Agreement, self)._mean_arguments(sample, labels, request)
        question = replace(sample.question, outcome=Outcome(decoding=COMPARISON))
        return replace(sample, question=question), labels, request

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the agreement on the units with a verdict."""
        labels = self.decoded(sample, labels)
        answered = _verdicts_with_gaps(self, sample, labels)
        if answered is None:
            return super(Agreement, self).estimate(sample, labels, request)
        estimate = answered.metric(sample, self.name, None, request.target)
        return replace(estimate, label=self.label)

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the agreement of each group, on the units with a verdict."""
        labels = self.decoded(sample, labels)
        answered = _verdicts_with_gaps(self, sample, labels)
        if answered is None:
            return super(Agreement, self).by(sample, labels, group, request)
        return answered.domain_estimates(sample, group, self.name, None, request.target)


def _judge_of(estimand: _OfAllClasses, sample: Sample, labels: object) -> str | None:
    """Return the group column of a judge's verdicts; None if the answers came with the labels."""
    judge = estimand.predicted or sample.question.answer
    if judge is None or judge not in sample.groups or split_answers(labels)[1] is not None:
        return None
    return judge


def _is_of_judge(estimand: _OfAllClasses, sample: Sample) -> bool:
    """Return whether the estimand names a column other than the model's answers, which contains verdicts.

    For the model's own answers, labels such as pass and fail mean right and wrong, and are not classes.
    """
    return estimand.predicted not in (None, sample.question.answer)


def _labels_as_verdicts_of(estimand: _OfAllClasses, sample: Sample, labels: object) -> Any:
    """Return labels in the spelling of the judge's verdicts; other labels as they are."""
    judge = _judge_of(estimand, sample, labels)
    if judge is None or not _is_of_judge(estimand, sample):
        return labels
    return labels_as_verdicts(sample, labels, judge)


def _verdicts_with_gaps(estimand: _OfAllClasses, sample: Sample, labels: object) -> AnsweredClasses | None:
    """Return the classes of a judge that gave no verdict on some units; None of other answers."""
    judge = _judge_of(estimand, sample, labels)
    if judge is None:
        return None
    answered = judged_classes(sample, labels, judge, by_number=_is_of_judge(estimand, sample))
    if answered.has_verdict is None:
        return None
    return answered


@dataclass(frozen=True, slots=True)
class Kappa(_OfAllClasses, kind="kappa", listed_field="predicted"):
    """Cohen's kappa of a judge's verdicts and the labels: (agreement − chance) / (1 − chance).

    Chance is the agreement of independent verdicts and labels with the same shares of classes (Cohen 1960).
    For scores, for which close values agree in part, see `WeightedKappa`.

    Parameters
    ----------
    predicted : str, optional
        The group column of the judge's verdicts. Default: the answers of the population.

    Examples
    --------
    >>> Kappa("judge").text
    'kappa:judge'
    """

    def decoded(self, sample: Sample, labels: object) -> Any:
        """Return labels in the spelling of the judge's verdicts."""
        return _labels_as_verdicts_of(self, sample, labels)

    def _answered(self, sample: Sample, labels: object) -> AnsweredClasses:
        """Return true classes and verdicts of the labelled units."""
        labels = self.decoded(sample, labels)
        answered = _verdicts_with_gaps(self, sample, labels)
        return answered or super(Kappa, self)._answered(sample, labels)


@dataclass(frozen=True, slots=True)
class BalancedAccuracy(_OfAllClasses, kind="balanced_accuracy"):
    """The mean recall over the classes.

    Examples
    --------
    >>> BalancedAccuracy(predicted="answer").text
    'balanced_accuracy:predicted=answer'
    """

    def _answered(self, sample: Sample, labels: object) -> AnsweredClasses:
        """Return true and predicted classes of the labelled units; sets of tags are an error."""
        if compares_sets(sample, labels, self.predicted):
            raise InputError(
                "balanced accuracy requires classes, but the answers are sets of tags",
                action="Request the mean recall over the tags: average:recall.",
            )
        return super(BalancedAccuracy, self)._answered(sample, labels)


@dataclass(frozen=True, slots=True)
class MatthewsCorrelation(_OfAllClasses, kind="mcc"):
    """Matthews' correlation between answers and true classes, for any number of classes.

    Examples
    --------
    >>> MatthewsCorrelation().text
    'mcc'
    """


@dataclass(frozen=True, slots=True)
class Average(Classification, kind="average", listed_field="metric"):
    """The average of a metric over all classes, or over all tags if answers are sets of tags.

    Parameters
    ----------
    metric : str
        One of the metrics of a class, such as `f1`.
    average : {"macro", "micro", "weighted"}
        Tags support only the first two.
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
        class_functions.require_names(self.metric, class_functions.CLASS_METRICS, "metric of a class")
        class_functions.require_names(self.average, AVERAGES, "average")

    @property
    def name(self) -> str:
        """The metric of each class."""
        return self.metric

    @property
    def of(self) -> str:
        """The average."""
        return self.average


@dataclass(frozen=True, slots=True)
class ClassMetric(Classification, listed_field="positive", listed_example="match"):
    """A metric of one class. Its subclasses differ only by name.

    Parameters
    ----------
    positive, predicted, probability, right
        As for `F1`.
    """

    # Whether the metric is undefined, or known, if no label is of the class.
    needs_units_of_class: ClassVar[bool] = False

    positive: str
    predicted: str | None = None
    probability: str | None = None
    right: str | None = field(default=None, kw_only=True)

    @property
    def _probability_columns(self) -> tuple[str | None, str | None]:
        """The columns with the probability of the class, and with that of a right answer."""
        return self.probability, self.right

    def __post_init__(self) -> None:
        self._set(positive=str(self.positive))
        if self.probability is not None and self.right is not None:
            problem = "probability and right are mutually exclusive"
            columns = f"probability={self.probability}, right={self.right}"
            raise InputError(problem, given=columns, allowed="one of the two")

    @property
    def of(self) -> str:
        """The class."""
        return self.positive

    @property
    def classes(self) -> tuple[str, ...]:
        """The class."""
        return (self.positive,)

    @property
    def needs_an_answer(self) -> bool:
        """Whether the metric is undefined or known for a class that the model never answers."""
        return True

    def rates_in_strata(self, census: Sample, labels: object) -> RatesInStrata | None:
        """Return the metric as a function of the class's rates, if every stratum has one kind of answers."""
        if self._sets(census, labels) is not None:
            return None
        answered = self._answered(census, labels)
        return answered.confusion.rates_in_strata(self.name, self._class_number(answered.levels))

    def refuse_unknown_class(self, population: Population) -> None:
        """Raise an `InputError` for a class that is not among the answers, or only in another spelling."""
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
        suggestion = f" Did you mean {alike[0]!r}?" if alike else ""
        raise InputError(
            f"no answer in '{answers}' is {self.positive!r}, the class of {self.text!r}",
            allowed=list_first(map(repr, levels), _MAX_CLASSES_SHOWN),
            action="Write the class as in the answers. To plan for all units, leave out the class."
            f"{suggestion}",
        )

    def refuse_a_misread_proxy(self, population: Population) -> None:
        """Raise an `InputError` if a proxy is clearly not the probability that the answer is right.

        This applies to metrics with neither `probability` nor `right`. The error shows how to state it.
        """
        self.refuse_unknown_class(population)
        self._refuse_contradicted_score(population)
        if not population.proxies or self.probability is not None or self.right is not None:
            return
        proxy = population.proxy_info().name
        if proxy in population.predicts:
            return
        mean_scores = self._mean_scores(population, proxy)
        if mean_scores is not None:
            self._refuse_probability_of_class(population, proxy, *mean_scores)

    def class_formula(self, population: Population) -> Expression | None:
        """Return P(a unit is of the class | x); None for sets of tags, and metrics that need no such unit."""
        answers = self.predicted or population.roles.answer
        is_set = answers in population.group_names and sets_by_text(population, str(answers))
        if not self.needs_units_of_class or is_set:
            return None
        probabilities = self._class_probabilities(population)
        is_class = np.array([level == self.positive for level in probabilities.levels], dtype=np.float64)
        return probabilities.of_class(is_class)

    def misread_score_notes(self, population: Population) -> tuple[str, ...]:
        """Return a warning if `probability` is clearly not the probability of the class."""
        meaning = class_probability(self.positive)
        score = self.probability
        remedy = f"write {replace(self, probability=None).text}"
        if score is None and self.right is None:
            score = next(
                (name for name, declared in population.predicts.items() if declared == meaning), None
            )
            remedy = f"declare it: predicts={{'{score}': 'right'}} (--predicts {score}=right)"
        if score is None or score not in population.proxy_names:
            return ()
        mean_scores = self._mean_scores(population, score)
        if mean_scores is None:
            return ()
        count, mean_in_class, mean_elsewhere = mean_scores
        if mean_elsewhere <= max(MAX_SHARE_OF_CLASS, MAX_RELATIVE_SHARE_OF_CLASS * mean_in_class):
            return ()
        n_others = population.size - count
        text = (
            f"{self.text!r} uses {score!r} as the probability of {self.positive!r}, but then "
            f"{mean_elsewhere:.1%} of the {n_others:,} other answers would be {self.positive!r}, and the "
            "forecast would be wrong. "
            f"If {score!r} is the probability that the answer is right, {remedy}."
        )
        return (text,)

    def _refuse_contradicted_score(self, population: Population) -> None:
        """Raise an `InputError` if the metric uses a score with another meaning than the declared one."""
        columns = {self.probability: class_probability(self.positive), self.right: ANSWER_IS_RIGHT}
        for score, meaning in columns.items():
            declared = None if score is None else population.predicts.get(score)
            if declared is None or declared == meaning:
                continue
            without_column = replace(self, probability=None, right=None).text
            raise InputError(
                f"{self.text!r} contradicts what was declared about {score!r}",
                given=f"{self.text} and {score}={declared}",
                allowed=f"{score}={meaning}, or an estimand without this column",
                action=f"If {score!r} is {Score(name=str(score), predicts=declared).meaning}, write "
                f"{without_column}. Otherwise correct predicts= (--predicts).",
            )

    def _mean_scores(self, population: Population, score: str) -> tuple[int, float, float] | None:
        """Return the number of answers of the class, and the mean score over these and over the others.

        None without both kinds of answers, and for a score that is not a probability.
        """
        answers = self.predicted or population.roles.answer
        if answers in population.group_names and sets_by_text(population, str(answers)):
            return None  # the probability of a whole set does not determine that of one of its tags
        info = population.proxy_info(score)
        is_of_class = population.predicts.get(score) == class_probability(self.positive)
        is_probability = (info.scaled or is_of_class) and info.bounds == (0.0, 1.0)
        if answers not in population.group_names or not is_probability:
            return None
        is_answered = ByLevel(name=str(answers), levels=(self.positive,), values=(1.0,))
        column = NumberColumn(name=score)
        share, mean_in_class, mean = population_means(
            population, [is_answered, is_answered * column, column]
        ).tolist()
        if not 0.0 < share < 1.0:
            return None
        count = round(share * population.size)
        return count, mean_in_class / share, (mean - mean_in_class) / (1.0 - share)

    def _refuse_probability_of_class(
        self,
        population: Population,
        proxy: str,
        count: int,
        share_right_in_class: float,
        share_right_elsewhere: float,
    ) -> None:
        """Raise an `InputError` if a proxy is not the probability of a right answer, but that of a class.

        The two shares are the means of the proxy over `count` answers of the class and over the others.
        """
        answers = str(self.predicted or population.roles.answer)
        # With two classes, the score may also be the probability of the other class.
        is_of_other_class = (
            share_right_in_class < MIN_SHARE_RIGHT
            and share_right_elsewhere > 2.0 * share_right_in_class
            and len(population.levels(answers)) == 2
        )
        is_of_class = (
            share_right_elsewhere < MIN_SHARE_RIGHT and share_right_in_class > 2.0 * share_right_elsewhere
        )
        if not is_of_class and not is_of_other_class:
            return
        as_class_probability = replace(self, probability=proxy).text
        as_right_probability = replace(self, right=proxy).text
        raise InputError(
            f"{self.text!r} uses {proxy!r} as the probability that the answer is right, but then "
            f"{share_right_elsewhere:.1%} of the {population.size - count:,} other answers would be right, "
            f"and {share_right_in_class:.1%} of the {count:,} answers {self.positive!r}",
            action=f"If {proxy!r} is the probability of {self.positive!r}, write {as_class_probability} (if "
            f"it is that of the other class, use 1 - {proxy}). If it is nevertheless the probability of a "
            f"right answer, write {as_right_probability}.",
        )


@dataclass(frozen=True, slots=True)
class Precision(ClassMetric, kind="precision"):
    """The share of the units classified as a class that belong to it.

    Examples
    --------
    >>> Precision("match").text
    'precision:match'
    """


@dataclass(frozen=True, slots=True)
class FalseDiscoveryRate(ClassMetric, kind="false_discovery_rate"):
    """The share of the units classified as a class that do not belong to it: 1 − precision.

    Examples
    --------
    >>> FalseDiscoveryRate("fail", predicted="judge").text
    'false_discovery_rate:fail,predicted=judge'
    """


@dataclass(frozen=True, slots=True)
class Recall(ClassMetric, kind="recall"):
    """The share of the units of a class that are classified as this class.

    Examples
    --------
    >>> Recall("match").text
    'recall:match'
    """

    needs_units_of_class = True


@dataclass(frozen=True, slots=True)
class F1(ClassMetric, kind="f1"):
    """The harmonic mean of the precision and recall of a class.

    Parameters
    ----------
    positive : str
        The class.
    predicted : str, optional
        The group column of the model's answers. Default: that of the population.
    probability : str, optional
        The proxy or feature with the probability of the class. By default, the first proxy is the probability
        that the answer is right.
    right : str, optional
        The proxy or feature with the probability that the answer is right. State it if the values look like
        the probability of the class.

    Examples
    --------
    >>> F1("match").text
    'f1:match'
    """

    needs_units_of_class = True


@dataclass(frozen=True, slots=True)
class Specificity(ClassMetric, kind="specificity"):
    """The share of the units of other classes that are not classified as the class.

    Examples
    --------
    >>> Specificity("match").text
    'specificity:match'
    """


@dataclass(frozen=True, slots=True)
class NegativePredictiveValue(ClassMetric, kind="negative_predictive_value"):
    """The share of the units not classified as a class that do not belong to it.

    Examples
    --------
    >>> NegativePredictiveValue("match").text
    'negative_predictive_value:match'
    """


@dataclass(frozen=True, slots=True)
class FalsePositiveRate(ClassMetric, kind="false_positive_rate"):
    """The share of the units of other classes that are classified as the class: 1 − specificity.

    Examples
    --------
    >>> FalsePositiveRate("match").text
    'false_positive_rate:match'
    """


@dataclass(frozen=True, slots=True)
class FalseNegativeRate(ClassMetric, kind="false_negative_rate"):
    """The share of the units of a class that are not classified as this class: 1 − recall.

    Examples
    --------
    >>> FalseNegativeRate("match").text
    'false_negative_rate:match'
    """

    needs_units_of_class = True


@dataclass(frozen=True, slots=True)
class Jaccard(ClassMetric, kind="jaccard"):
    """The hits divided by the units that belong to a class, are classified as it, or both.

    Examples
    --------
    >>> Jaccard("match").text
    'jaccard:match'
    """

    needs_units_of_class = True


@dataclass(frozen=True, slots=True)
class Prevalence(ClassMetric, kind="prevalence"):
    """The share of the units that belong to a class.

    Examples
    --------
    >>> Prevalence("match").text
    'prevalence:match'
    """

    @property
    def needs_an_answer(self) -> bool:
        """Whether no score predicts the class; with a score, units of any answer may belong to it."""
        return self.probability is None


@dataclass(frozen=True, slots=True)
class PredictedPrevalence(ClassMetric, kind="predicted_prevalence"):
    """The share of units that the model classifies as the class; counted if the population is known.

    Examples
    --------
    >>> PredictedPrevalence("match").text
    'predicted_prevalence:match'
    """


@dataclass(frozen=True, slots=True)
class FBeta(ClassMetric, kind="fbeta"):
    """The F measure, in which recall has β² times the weight of precision (van Rijsbergen 1979).

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

    needs_units_of_class = True

    beta: float = 2.0

    @property
    def name(self) -> str:
        """The metric, as `ClassReport` calls it."""
        return f"f{self.beta:g}"
