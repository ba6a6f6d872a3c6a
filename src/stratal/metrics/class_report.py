"""`ClassReport`: metrics of a classifier in one table, of all classes, of each class, and averaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, Request, as_estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.resolve import split_answers
from stratal.estimation.respondents import unlabelled_stratum_tests
from stratal.labels.label_values import class_text
from stratal.metrics import class_functions
from stratal.metrics.class_answers import answered_classes, irrelevant_units
from stratal.metrics.classification import Accuracy, Classification
from stratal.metrics.labelled_tag_sets import compares_sets, labelled_tag_sets
from stratal.population.expressions import implies
from stratal.question.vocabulary import AVERAGES

_NOTE_ON_OCCURRING_CLASSES = (
    "balanced_accuracy is the mean over the {} classes that occur in the labels. Name all classes (classes=, "
    "--class), because the metric is unknown if a class has no label"
)


@dataclass(frozen=True, slots=True)
class ClassReport(Estimand, kind="metrics", listed_field="metrics"):
    """Metrics of a classifier: for all classes, for each class, and averaged.

    Parameters
    ----------
    metrics : sequence of str
        Any of `accuracy`, `balanced_accuracy`, `mcc`, `kappa`, and per class `precision`, `recall`, `f1`
        (`f2`, `f0.5` for other weights of recall), `specificity`, `negative_predictive_value`,
        `false_discovery_rate`, `false_positive_rate`, `false_negative_rate`, `jaccard`, `prevalence`,
        `predicted_prevalence`.
    classes : sequence, optional
        The classes to report. Default: all that occur in the sample, or in the population if the sample
        stores the counts of its answers.
    average : sequence of str
        Any of `macro`, `micro`, `weighted` (by true share): averages over the reported classes, if several.
    predicted : str, optional
        The group column of the model's answers. Default: that of the sample. Answers that are in no column
        are given with the labels: `{"label": labels, "predicted": answers}`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> sample = stratal.designs.SimpleRandom(budget=5).draw(population, seed=7)
    >>> table = stratal.estimate(sample, {"label": [1, 1, 0, 1, 0], "predicted": [1, 1, 0, 0, 1]},
    ...                          estimand=ClassReport(["recall"]))
    >>> [(row.label["class"], round(row.value, 3), row.n) for row in table]
    [('0', 0.5, 2), ('1', 0.667, 3), ('macro', 0.583, 5)]
    """

    of_classes = True
    metrics: Sequence[str] = ("accuracy", "precision", "recall", "f1")
    classes: Sequence[Any] = ()
    average: Sequence[str] = ("macro",)
    predicted: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.classes, str):
            raise InputError(
                "classes must be a list", given=repr(self.classes), action="Write a list with one entry."
            )
        self._set(
            metrics=class_functions.require_names(self.metrics, class_functions.METRICS, "metric"),
            average=class_functions.require_names(self.average, AVERAGES, "average"),
            classes=tuple(class_text(entry) for entry in self.classes),
        )

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimates:
        """Return the metrics, with a row for each metric and class."""
        if compares_sets(sample, labels, self.predicted):
            return self._estimate_of_tags(sample, labels, request)
        class_labels, new_answers = split_answers(labels)
        answers = new_answers
        column = None
        if new_answers is None:
            answers = self.predicted
            column = self.predicted or sample.question.answer
        # A sample that was drawn for one metric may have strata without labels, which other metrics need.
        planned_estimand = as_estimand(sample.question.estimand)
        stratum_tests = unlabelled_stratum_tests(sample)
        irrelevant = None
        if stratum_tests and isinstance(planned_estimand, Classification):
            irrelevant = irrelevant_units(planned_estimand.name, planned_estimand.of, column)
        answered = answered_classes(sample, class_labels, answers, self.classes or None, irrelevant)
        levels = answered.levels
        remarks = list(answered.respondents.notes)
        reported = [levels.index(name) for name in self.classes] or list(range(len(levels)))
        # Averages are over the reported classes.
        averaged = answered
        if len(set(reported)) < len(levels):
            averaged = replace(answered, confusion=answered.confusion.restricted(reported))
        rows = []
        not_estimable = []
        for name, class_or_average in self._quantities(reported):
            if isinstance(class_or_average, int):
                level: str | None = levels[class_or_average]
                text = f"{name} of {level!r}"
                ignored_units = irrelevant_units(name, level, column)
            else:
                level = class_or_average
                text = f"{level or ''} {name}".strip()
                # Averages, and metrics of all classes, depend on all units.
                ignored_units = None
            ignores_unlabelled = ignored_units is not None and all(
                implies(test, ignored_units) for test in stratum_tests
            )
            if stratum_tests and not ignores_unlabelled:
                not_estimable.append(text)
                continue
            # Accuracy is the mean of right answers, so its estimate can use the proxy.
            if name == "accuracy":
                accuracy_request = Request(target=request.target)
                estimate = Accuracy(self.predicted).estimate(sample, labels, accuracy_request)
            elif isinstance(class_or_average, str):
                estimate = averaged.metric(sample, name, class_or_average, request.target)
            else:
                estimate = answered.metric(sample, name, class_or_average, request.target)
            rows.append(replace(estimate, label={"metric": name, "class": level}))
        # Raises the error why this sample has no labels for these metrics.
        if not rows:
            answered_classes(sample, class_labels, answers)
        if not_estimable:
            names = ", ".join(not_estimable)
            remarks.append(
                f"this sample was drawn for {planned_estimand.text!r} and cannot be used to estimate {names}"
            )
        if "balanced_accuracy" in self.metrics and not self.classes and not answered.population_levels:
            remarks.append(_NOTE_ON_OCCURRING_CLASSES.format(len(levels)))
        return Estimates.from_rows(sample, rows, "metrics", remarks)

    def _quantities(self, reported: Sequence[int]) -> Iterator[tuple[str, int | str | None]]:
        """Yield each metric with the number of a reported class, with an average, or with None."""
        averages = self.average if len(reported) > 1 else ()
        for name in self.metrics:
            classes_and_averages: tuple[int | str | None, ...] = (*reported, *averages)
            if name in class_functions.OVERALL_METRICS:
                classes_and_averages = (None,)
            for class_or_average in classes_and_averages:
                yield name, class_or_average

    def _estimate_of_tags(self, sample: Sample, labels: object, request: Request) -> Estimates:
        """Return the metrics of sets of tags, a row for each metric and tag."""
        sets = labelled_tag_sets(sample, labels, self.predicted)
        target = request.target
        reported = [sets.index(str(tag)) for tag in self.classes] or list(range(len(sets.tags)))
        averages = self.average if len(reported) > 1 else ()
        averaged = sets.counts.restricted(reported)
        rows: list[Estimate] = []
        for name in self.metrics:
            if name in class_functions.OVERALL_METRICS:
                estimand: Estimand = Estimand.class_of_kind(name)(predicted=self.predicted)
                overall: Any = estimand.estimate(sample, labels, Request(target=target))
                rows.append(replace(overall, label={"metric": name, "class": None}))
                continue
            estimates = {sets.tags[tag]: sets.counts.metric(name, tag, target) for tag in reported}
            estimates |= {average: averaged.metric(name, average, target) for average in averages}
            for tag_or_average, estimate in estimates.items():
                label = {"metric": name, "class": tag_or_average}
                rows.append(sets.respondents.complete(estimate, sample, label=label))
        return Estimates.from_rows(sample, rows, "metrics", (*sets.respondents.notes, *sets.remarks))
