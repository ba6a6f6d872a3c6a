"""True classes and answers: their probabilities before labels, and their confusion matrix from labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, Record, has_entry
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, check_choice, similar_names, suggest_names
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.group_means import levels_of_whole_strata
from stratal.estimation.resolve import (
    class_column,
    group_column,
    named_groups,
    no_labels_error,
    with_group,
    with_undrawn_classes,
)
from stratal.estimation.respondents import Respondents
from stratal.intervals.interval_types import BinomialInterval
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.labels.label_values import class_text, refuse_incomparable_verdicts
from stratal.metrics.class_functions import is_f_measure
from stratal.metrics.class_shares import possible_answers
from stratal.metrics.confusion import Confusion
from stratal.population.answer_sets import sets_by_text
from stratal.population.expressions import ByLevel, Constant, Expression, NumberColumn
from stratal.population.influence import population_means
from stratal.population.population import Population
from stratal.population.rules import Categories
from stratal.question.question import NUMBER
from stratal.question.scores import ANSWER_IS_RIGHT
from stratal.tables.no_answer import is_no_verdict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnsweredClasses(Record):
    """True and predicted classes of the labelled units, as numbers.

    Parameters
    ----------
    levels : list of str (K,)
        The classes, sorted.
    population_levels : list of str
        The classes among all answers of the population.
    confusion : Confusion
    respondents : Respondents
    labelled : bool (n,)
    column : str, optional
        The group column of the answers, if they are in one.
    has_verdict : bool (m,), optional
        The labelled units with a verdict of the judge, which are compared; None if all have one.
    """

    levels: list[str]
    population_levels: list[str]
    confusion: Confusion
    respondents: Respondents
    labelled: BoolArray
    column: str | None = None
    has_verdict: BoolArray | None = None

    def metric(self, sample: Sample, name: str, class_or_average: int | str | None, target: str) -> Estimate:
        """Return a metric with its notes; `name` and `class_or_average` are those of `Confusion.metric`."""
        if self.has_verdict is not None and name not in _SHARES_OF_UNITS:
            assert not isinstance(class_or_average, str), "averages over classes need answers, not verdicts"
            estimate = self.confusion.metric_in_domain(self.has_verdict, name, class_or_average, target)
            return self.respondents.complete(estimate, sample)
        estimate = self.respondents.complete(self.confusion.metric(name, class_or_average, target), sample)
        n_classes = len(self.levels)
        is_sum_of_shares = class_or_average in ("macro", "micro") and self.confusion.n_classes == n_classes
        if name in _SHARES_OF_UNITS and is_sum_of_shares:
            note = f"1/{n_classes} by definition, because the shares of all {n_classes} classes add up to 1"
            return _with_known_share(estimate, 1.0 / n_classes, np.inf, note)
        if not isinstance(class_or_average, int):
            return estimate
        level = self.levels[class_or_average]
        all_counts = sample.totals.get(self.column or "", {})
        counts = {entry: units for entry, units in all_counts.items() if entry in self.levels}
        if name == "predicted_prevalence" and counts and self.respondents.share == 1.0:
            size = sum(counts.values())
            note = f"counted over the answers of all {size:,} units: no label is required"
            n_draws = float(size) if target == "superpopulation" else np.inf
            return _with_known_share(estimate, counts.get(level, 0) / size, n_draws, note)
        unseen_note = None
        if name in _COUNTS_MISSES or is_f_measure(name):
            unseen_note = self.confusion.unseen_note(class_or_average, level)
        if unseen_note is None:
            return estimate
        return replace(estimate, remarks=(*estimate.remarks, unseen_note))

    def metric_by_group(
        self, sample: Sample, group: object, name: str, class_number: int | None, target: str
    ) -> dict[str, Estimate]:
        """Return a metric for each group of the drawn units, by the group's name."""
        groups, names = named_groups(sample, group)
        labelled_groups = groups[self.labelled]
        whole_strata = frozenset[str]()
        if self.has_verdict is None and self.respondents.share == 1.0:
            whole_strata = levels_of_whole_strata(sample, group)
        estimates = {}
        for group_name in names:
            member = labelled_groups == group_name
            if self.has_verdict is not None:
                member = member & self.has_verdict
            estimate = self.confusion.metric_in_domain(member, name, class_number, target)
            if group_name in whole_strata:
                estimate = self._with_interval_within_strata(estimate, member, name, class_number, target)
            estimates[group_name] = self.respondents.complete(estimate, sample)
        return estimates

    def _with_interval_within_strata(
        self, estimate: Estimate, member: BoolArray, name: str, class_number: int | None, target: str
    ) -> Estimate:
        """Return the estimate of a group (m,) of whole strata with the interval of its labels alone.

        Labels of other strata contain no information about the group.
        """
        confusion = self.confusion.of_whole_strata(member)
        if confusion is None:
            return estimate
        within_strata = confusion.metric(name, class_number, target)
        evidence = replace(estimate.evidence, interval=within_strata.evidence.interval)
        return replace(estimate, standard_error=within_strata.standard_error, evidence=evidence)

    def domain_estimates(
        self, sample: Sample, group: object, name: str, class_number: int | None, target: str
    ) -> Estimates:
        """Return a metric for each group of the drawn units, with the group as the label `domain`."""
        estimates = self.metric_by_group(sample, group, name, class_number, target)
        rows = [replace(row, label={"domain": domain}) for domain, row in estimates.items()]
        return Estimates.from_rows(sample, rows, "domains", self.respondents.notes)


def _with_known_share(estimate: Estimate, share: float, n_draws: float, note: str) -> Estimate:
    """Return the estimate of a share that does not depend on labels.

    Its only error is that of the draw of `n_draws` units from a superpopulation; infinite without one.
    """
    interval = BinomialInterval(value=share, bounds=(0.0, 1.0), trials=n_draws)
    standard_error = float(np.sqrt(share * (1.0 - share) / n_draws))
    return replace(
        estimate,
        value=share,
        standard_error=standard_error,
        evidence=replace(estimate.evidence, value=share, interval=interval),
        remarks=(note,),
    )


def answered_classes(
    sample: Sample,
    y_true: object,
    y_pred: object,
    classes: Sequence[object] | None = None,
    irrelevant: Expression | None = None,
) -> AnsweredClasses:
    """Return the classes of the labelled units.

    Parameters
    ----------
    sample : Sample
    y_true : labels
        Text or whole numbers. Several labels of a unit are replaced by their majority; a tie is no label.
    y_pred : labels, or name of a group column, optional
        The model's answers, required for all units with a true class. Default: the answers in the sample.
    classes : sequence, optional
        Classes that must occur. Default: all that occur.
    irrelevant : Expression, optional
        The units that do not affect the metric; see `Respondents.of`.
    """
    # Several metrics of one call share the joined labels, whose cache stores their classes.
    is_column = y_pred is None or isinstance(y_pred, str)
    if not is_column or not isinstance(y_true, JoinedLabels):
        return _compute_answered_classes(sample, y_true, y_pred, classes, irrelevant)
    key = (y_pred, classes and tuple(classes), irrelevant)
    if key not in y_true.cache or y_true.cache[key][0] is not sample:
        answered = _compute_answered_classes(sample, y_true, y_pred, classes, irrelevant)
        y_true.cache[key] = sample, answered
    cached: AnsweredClasses = y_true.cache[key][1]
    return cached


def _compute_answered_classes(
    sample: Sample,
    y_true: object,
    y_pred: object,
    classes: Sequence[object] | None,
    irrelevant: Expression | None,
) -> AnsweredClasses:
    """Return the classes of the labelled units; see `answered_classes`."""
    if y_pred is None or (isinstance(y_pred, str) and y_pred == sample.question.answer):
        _refuse_numbers(sample)
    predicted = class_column(sample, y_pred, "y_pred")
    is_column = y_pred is None or isinstance(y_pred, str)
    column = None
    if is_column:
        column = str(y_pred) if y_pred else sample.question.answer
    answers = predicted[has_entry(predicted)]
    if is_column:
        answers = with_undrawn_classes(sample, answers, column)
    true = class_column(sample, y_true, "y_true", answers)
    labelled = has_entry(true)
    if not np.any(labelled):
        raise no_labels_error()
    _require_predictions(sample, predicted, labelled)
    true = true[labelled].tolist()
    predicted = predicted[labelled].tolist()
    population_levels = list(sample.totals.get(column or sample.question.answer or "", {}))
    if not is_column and not {*true, *predicted} <= set(population_levels):
        # These are classes of another task than the sample's answers.
        population_levels = []
    levels = _class_levels({*true, *predicted, *population_levels}, classes or ())
    class_number = {level: k for k, level in enumerate(levels)}
    true_codes = np.array([class_number[entry] for entry in true], np.int64)
    predicted_codes = np.array([class_number[entry] for entry in predicted], np.int64)
    respondents = Respondents.of(sample, labelled, irrelevant)
    possible = possible_answers(sample, respondents, column, levels, predicted_codes)
    if possible is not None and population_levels:
        # A class that the model never answers is not a possible answer in any stratum. The last column is for
        # answers that are none of the levels, which do not exist.
        possible &= np.array([level in population_levels for level in levels] + [False])
    confusion = Confusion(
        true=true_codes,
        predicted=predicted_codes,
        n_classes=len(levels),
        weighting=respondents.weighting,
        possible=possible,
        answered_share=_share_of_second_class(sample, column, levels, respondents),
        has_strata_of_groups=_has_strata_of_groups(sample),
    )
    return AnsweredClasses(
        levels=levels,
        population_levels=population_levels,
        confusion=confusion,
        respondents=respondents,
        labelled=labelled,
        column=column,
    )


def _has_strata_of_groups(sample: Sample) -> bool:
    """Return whether the sample has several strata, formed by a group column or outside of stratal."""
    rule = sample.design.rule
    return len(sample.summary.sizes) > 1 and (rule is None or isinstance(rule, Categories))


def _require_predictions(sample: Sample, predicted: AnyArray, labelled: BoolArray) -> None:
    """Raise a `LabelError` if a labelled unit (n,) has no predicted class."""
    without_answer = labelled & ~has_entry(predicted)
    if not np.any(without_answer):
        return
    first_id = str(sample.ids[np.argmax(without_answer)])
    raise LabelError(
        f"y_pred: {int(without_answer.sum())} labelled units have no prediction (first: {first_id!r})",
        allowed="a predicted class for every labelled unit",
    )


def _class_levels(occurring: set[str], requested: Sequence[object]) -> list[str]:
    """Return the occurring and the requested classes, sorted.

    A requested class may be misspelt, or rare and not drawn. It is an error only if similar names exist.
    """
    requested_levels = set(map(class_text, requested))
    for name in requested_levels - occurring:
        if similar_names(name, occurring):
            allowed = suggest_names(name, sorted(occurring))
            raise InputError(f"no drawn unit has the class {name!r}", allowed=allowed)
    return _sorted_levels(occurring | requested_levels)


def _share_of_second_class(
    sample: Sample, column: str | None, levels: list[str], respondents: Respondents
) -> float | None:
    """Return the share of all units that are answered with the second of two classes; None if not counted."""
    counts = sample.totals.get(column or "", {})
    if len(levels) != 2 or not counts or not set(counts) <= set(levels) or respondents.share < 1.0:
        return None
    return counts.get(levels[1], 0) / sum(counts.values())


def _refuse_numbers(sample: Sample) -> None:
    """Raise an error for a metric of classes if the labels are declared to be numbers."""
    if sample.question.outcome.decoding == NUMBER:
        raise InputError(
            "labels are declared to be numbers, not classes",
            given="a metric of classes",
            allowed="the mean of the outcome, overall or by group",
            action="For a metric of classes, collect the true class as the label.",
        )


def no_verdicts(sample: Sample, labels: object, judge: str) -> BoolArray:
    """Return which drawn units (n,) have no verdict of a judge: an empty one, or a word such as `error`.

    A word that is also a label is a class.
    """
    verdicts = class_column(sample, judge, "judge").tolist()
    words = {str(text) for text in verdicts if text is None or is_no_verdict(str(text))}
    if not words:
        return np.zeros(sample.size, dtype=bool)
    classes = class_column(sample, labels, "y_true").tolist()
    words -= {str(label) for label in classes if label is not None}
    return np.array([str(text) in words for text in verdicts], dtype=bool)


def labels_as_verdicts(sample: Sample, labels: object, judge: str) -> JoinedLabels:
    """Return joined labels in the spelling of the verdicts; see `LabelMapping.spelled_as_verdicts`."""
    joined = join_labels(sample, labels, "y_true")
    is_missing = no_verdicts(sample, joined, judge)
    column = group_column(sample, judge)
    verdicts = {*column.tolist(), *sample.totals.get(judge, {})} - {*column[is_missing].tolist()}
    label_texts = [class_text(value) for value in dict.fromkeys(joined.values.tolist())]
    mapping = joined.label_mapping.spelled_as_verdicts(label_texts, verdicts)
    classes = (mapping.meanings.get(text, text) for text in label_texts)
    labelled_classes = {class_text(value) for value in classes if value is not None}
    refuse_incomparable_verdicts(labelled_classes, {class_text(verdict) for verdict in verdicts}, judge)
    if mapping == joined.label_mapping:
        return joined
    return replace(joined, label_mapping=mapping)


def verdicts_of_judges(sample: Sample, labels: object, judges: Sequence[str]) -> AnyArray:
    """Return the verdicts (J, n) of several judges; equal verdicts have the spelling of the first judge.

    Verdicts are equal like a label and a verdict (`LabelMapping.spelled_as_verdicts`), such as 1 and `pass`.
    """
    label_mapping = join_labels(sample, labels, "y_true").label_mapping
    known_verdicts: dict[str, None] = {}
    columns = []
    for judge in judges:
        column = class_column(sample, judge, judge)
        verdicts = [str(text) for text in dict.fromkeys(column[~no_verdicts(sample, labels, judge)].tolist())]
        try:
            spellings = label_mapping.spelled_as_verdicts(verdicts, known_verdicts.keys()).meanings
        except LabelError:
            # It is unclear which verdicts are equal, so that they are compared as they are written.
            spellings = {}
        column = np.array([spellings.get(text) or text for text in column.tolist()], dtype=object)
        known_verdicts |= dict.fromkeys(str(spellings.get(text) or text) for text in verdicts)
        columns.append(column)
    return np.stack(columns)


def judged_classes(sample: Sample, labels: object, judge: str, *, by_number: bool = True) -> AnsweredClasses:
    """Return the classes of the labelled units; those without a verdict are not compared.

    With `by_number`, a label and a verdict with the same number, such as `pass` and 1, are the same class.
    """
    if by_number:
        labels = labels_as_verdicts(sample, labels, judge)
    is_missing = no_verdicts(sample, labels, judge)
    if not np.any(is_missing):
        return answered_classes(sample, labels, judge)
    true = class_column(sample, labels, "y_true")
    labelled = has_entry(true)
    if not np.any(labelled & ~is_missing):
        raise LabelError(
            f"{judge!r} gave no verdict on any labelled unit",
            given=f"{int(is_missing.sum()):,} of {sample.size:,} drawn units without a verdict",
            action="Compare another judge (judge=, --judge).",
        )
    # A unit that is not compared needs some class; that of its label adds no level.
    verdicts = np.where(is_missing, true, class_column(sample, judge, judge))
    verdicts = np.where(has_entry(verdicts), verdicts, "")
    texts = set(sample.groups[judge][is_missing].tolist())
    counts = {level: units for level, units in sample.totals.get(judge, {}).items() if level not in texts}
    completed = with_group(sample, judge, verdicts)
    completed = replace(completed, totals={**sample.totals, judge: counts})
    answered = answered_classes(completed, labels, judge)
    return replace(answered, has_verdict=~is_missing[answered.labelled])


def irrelevant_units(metric: str, level: str | None, column: str | None) -> Expression | None:
    """Return the formula of the units that a metric of class `level` ignores; None if it ignores none.

    `column` contains the model's answers.
    """
    metrics_of_answers = ("precision", "false_discovery_rate")
    if column is None or level is None or metric not in (*metrics_of_answers, "negative_predictive_value"):
        return None
    if metric in metrics_of_answers:
        return ByLevel(name=column, levels=(level,), values=(0.0,), otherwise=1.0)
    return ByLevel(name=column, levels=(level,), values=(1.0,))


# Metrics that are shares of all units, whose sum over the classes is 1.
_SHARES_OF_UNITS = ("prevalence", "predicted_prevalence")

# Metrics that depend on the number of missed units of the class, as F measures do.
_COUNTS_MISSES = ("recall", "false_negative_rate", "jaccard")


def _sorted_levels(levels: set[str]) -> list[str]:
    """Return levels in order: numbers first, by value, then text."""

    def key(level: str) -> tuple[bool, float, str]:
        try:
            return False, float(level), level
        except ValueError:
            # Names sort after all numbers, among themselves as text.
            return True, 0.0, level

    return sorted(levels, key=key)


# Weight of the stated probability in a forecast; the rest is the population's share of the class, so that a
# class with a probability of 0 is not excluded.
PROBABILITY_WEIGHT = 0.99


# Expected share of right answers without a proxy that predicts it, for plans.
DEFAULT_SHARE_RIGHT = 0.8


def probability_of_right_answer(population: Population) -> Expression:
    """Return the probability of a right answer: the proxy that is declared so, or the first probability."""
    declared = (score.name for score in population.scores if score.declared)
    right = next((name for name in declared if population.predicts[name] == ANSWER_IS_RIGHT), None)
    if right is not None:
        return NumberColumn(name=right)
    if population.proxies:
        info = population.proxy_info()
        if info.scaled and info.bounds == (0.0, 1.0):
            return NumberColumn(name=info.name)
    return Constant(value=DEFAULT_SHARE_RIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassProbabilities(Record):
    """The probabilities of K classes for each unit, and its answer.

    Parameters
    ----------
    answers : str
        The group column of the model's answers.
    levels : tuple of str (K,)
        The classes.
    right : Expression
        Probability that the answer is the true class.
    shares : tuple of float (K,)
        The classes' expected shares of the population.
    declared : (int, Expression), optional
        The number of a class, and its probability, if a column contains it.
    level_of : mapping of str to int, optional
        The number of the level of each text in the column, if several texts have one level: sets with a tag.
    """

    answers: str
    levels: tuple[str, ...]
    right: Expression
    shares: tuple[float, ...]
    declared: tuple[int, Expression] | None = None
    level_of: Mapping[str, int] | None = None

    @classmethod
    def of(
        cls,
        population: Population,
        answers: str | None,
        needed: tuple[str, ...],
        probability: str | None = None,
        right: str | None = None,
    ) -> ClassProbabilities:
        """Return the probabilities in a population's columns.

        Parameters
        ----------
        population : Population
        answers : str, optional
            The group column of the model's answers. Default: that of the population.
        needed : tuple of str
            Classes that must be among the levels, even if the model never answers them.
        probability : str, optional
            Column with the probability of the first needed class. Default: a proxy that is declared so.
        right : str, optional
            Column with the probability that the answer is right. Default: the first proxy, if it is a
            probability.
        """
        name = answers or population.roles.answer
        if name is None:
            action = (
                "Name the column of the answers: predicted= (--predicted COL), or in the estimand itself."
            )
            raise InputError("the estimand requires the model's answers", action=action)
        counts = population.levels(population.require_group(name))
        levels = tuple(sorted({*counts, *needed}))
        sets = sets_by_text(population, name) if needed else {}
        level_of = None
        if sets:
            # The classes of a tag are the sets with it and the sets without it.
            levels = (f"not {needed[0]}", needed[0])
            level_of = {text: int(needed[0] in tags) for text, tags in sets.items()}
            n_with_tag = sum(units for text, units in counts.items() if level_of[text])
            counts = {levels[0]: population.size - n_with_tag, levels[1]: n_with_tag}
        for column in filter(None, (right, probability)):
            numeric_columns = (*population.proxy_names, *population.feature_names)
            check_choice("column of probabilities", column, numeric_columns)
        if right is None and probability is None and needed:
            of_class = (score.name for score in population.scores if score.of_class == needed[0])
            probability = next(of_class, None)
        declared_probability = None
        is_right = probability_of_right_answer(population)
        if right is not None:
            is_right = NumberColumn(name=right)
        elif probability is not None:
            declared_probability = levels.index(needed[0]), NumberColumn(name=probability)
            is_right = Constant(value=DEFAULT_SHARE_RIGHT)
        answer_shares = np.array([counts.get(level, 0) for level in levels], float) / population.size
        with_answer_shares = cls(
            answers=name,
            levels=levels,
            right=is_right,
            shares=tuple(answer_shares),
            declared=declared_probability,
            level_of=level_of,
        )
        # The shares of the classes are the means of their probabilities, starting from those of the answers.
        expectations = [with_answer_shares._expected(row) for row in np.eye(len(levels))]
        class_shares = population_means(population, expectations)
        return replace(with_answer_shares, shares=tuple(class_shares.tolist()))

    def is_answer(self, level: str) -> Expression:
        """Return the formula that is 1 where the answer is this class, else 0."""
        if self.level_of is None:
            return ByLevel(name=self.answers, levels=(level,), values=(1.0,))
        texts = tuple(text for text, number in self.level_of.items() if self.levels[number] == level)
        return ByLevel(name=self.answers, levels=texts, values=(1.0,) * len(texts))

    def by_answer(self, values: FloatArray) -> Expression:
        """Return the formula of a number (K,) for each answer."""
        if self.level_of is None:
            return ByLevel(name=self.answers, levels=self.levels, values=tuple(values.tolist()))
        text_values = tuple(float(values[number]) for number in self.level_of.values())
        return ByLevel(name=self.answers, levels=tuple(self.level_of), values=text_values)

    def of_class(self, values: FloatArray) -> Expression:
        """Return the formula Σ_c P(c | x) values[c], with values (K,)."""
        return PROBABILITY_WEIGHT * self._expected(values) + (1.0 - PROBABILITY_WEIGHT) * float(
            np.dot(self.shares, values)
        )

    def of_answer(self, values: FloatArray) -> Expression:
        """Return the formula P(a | x) values[a] of the answer a."""
        expected = self.by_answer(values) * self.right
        if self.declared is not None:
            # A metric of this class depends only on the units that are answered with it and belong to it.
            k, probability = self.declared
            expected = float(values[k]) * self.is_answer(self.levels[k]) * probability
        by_shares = self.by_answer(np.asarray(self.shares) * values)
        return PROBABILITY_WEIGHT * expected + (1.0 - PROBABILITY_WEIGHT) * by_shares

    def _expected(self, values: FloatArray) -> Expression:
        """Return Σ_c P(c | x) values[c] by the stated probabilities.

        If the probability of one class is declared, the others share the rest equally. Otherwise they share
        the probability of a wrong answer in proportion to their shares.
        """
        if self.declared is not None:
            k, probability = self.declared
            other_values = np.delete(values, k)
            mean_of_others = float(other_values.mean()) if len(other_values) else 0.0
            return mean_of_others + float(values[k] - mean_of_others) * probability
        shares = np.asarray(self.shares)
        other_shares = shares.sum() - shares
        sums_of_others = float(shares @ values) - shares * values
        if_wrong = sums_of_others / np.where(other_shares > 0, other_shares, 1.0)
        return self.by_answer(if_wrong) + self.by_answer(values - if_wrong) * self.right
