"""Comparison of judges with labels: agreement of verdicts; correlation, bias and calibration of scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from shlex import quote
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, are_binary
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, suggest_names
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, Request
from stratal.estimation.estimate import Estimate, linearised_estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.linearised import undefined_result
from stratal.estimation.resolve import compared_column, number_column, outcomes, with_group
from stratal.estimation.share_estimates import share_estimate
from stratal.metrics.associations import (
    Bias,
    PearsonCorrelation,
    ScoreComparison,
    association,
    intraclass,
    pearson,
    spearman,
)
from stratal.metrics.calibration_error import CalibrationError
from stratal.metrics.class_answers import (
    AnsweredClasses,
    judged_classes,
    labels_as_verdicts,
    no_verdicts,
    verdicts_of_judges,
)
from stratal.metrics.ranking import area_under_curve, ranking_metric
from stratal.metrics.score_roles import class_indicator, class_of_score, is_probability
from stratal.names import split_names
from stratal.population.influence import Influence
from stratal.population.population import Population
from stratal.question.scores import ORDER
from stratal.tables.number_format import numbers_of_texts

# Maximum number of classes in the report of a judge if none are named, since each has four rows, and each
# pair has one. With more, only agreement and kappa are reported.
MAX_CLASSES = 6

# The share of the units on which a judge gave no verdict.
MISSING_VERDICT_SHARE = "no_verdict"

# The label of a row (`metric`, `class`, and `judged` for cells), and its estimate.
JudgeRow = tuple[Mapping[str, str | None], Estimate]


@dataclass(frozen=True, slots=True)
class JudgeReport(Estimand, kind="judge", listed_field="judges", listed_example="verdict", of_classes=True):
    """Comparison of judges with people: agreement, kappa and rates of each class, or correlations of scores.

    Parameters
    ----------
    judges : sequence of str
        Group columns with verdicts in the words of the labels, or proxies with scores. Each of several
        judges, or of repeated calls to one, has rows; further rows contain their consistency, the mean of
        their scores, and the majority of three or more verdicts (for a tie, the verdict of the judge named
        first).
    classes : sequence of str, optional
        The classes of verdicts that have separate rows. Default: all classes, or none if there are more than
        six.

    Notes
    -----
    For two classes, the share of a class is reported in three ways: from the labels by the design, from the
    judge's verdicts without correction, and by Rogan & Gladen (1978), who correct the share of the verdicts
    by the judge's error rates, under the assumption that the labels are those of a simple random sample.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(groups={"judge": ["pass", "fail"] * 50})
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> labels = sample.groups["judge"].copy()
    >>> labels[:2] = "pass"
    >>> report = stratal.estimate(sample, labels, judge="judge")
    >>> report.of(metric="agreement").value >= 0.9
    True
    """

    judges: tuple[str, ...]
    classes: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.judges, str):
            names = split_names(self.judges)
        else:
            names = tuple(name.strip() for name in self.judges)
        self._set(judges=tuple(dict.fromkeys(names)), classes=tuple(self.classes))

    def compares(self, predicted: str | bool, sample_answer: str | None) -> bool:
        """Return whether labels are compared with this column of answers."""
        return predicted is True or predicted in self.judges

    def influence(self, population: Population) -> Influence:
        """Return the influence of the first judge's agreement, or of its correlation if it gives scores."""
        first = self.judges[0]
        if first in population.proxy_names:
            return PearsonCorrelation(first).influence(population)
        return Estimand.parse_text(f"agreement:{first}").influence(population)

    def _split_judges(self, sample: Sample, labels: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the judges that give verdicts, and those that give scores."""
        scores = tuple(name for name in self.judges if _gives_scores(sample, labels, name))
        return tuple(name for name in self.judges if name not in scores), scores

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        if _gives_scores(sample, labels, self.judges[0]):
            numbers = _numbers_for_score(sample, labels, self.judges[0])
            return np.isfinite(number_column(sample, numbers, "label"))
        return judged_classes(sample, labels, self.judges[0]).labelled

    def decoded(self, sample: Sample, labels: object) -> Any:
        """Return labels in the spelling of the first judge's verdicts."""
        if _gives_scores(sample, labels, self.judges[0]):
            return labels
        return labels_as_verdicts(sample, labels, self.judges[0])

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimates:
        """Return a row for each quantity, labelled with `judge`, `metric` and `class`."""
        target = request.target
        verdicts, scores = self._split_judges(sample, labels)
        report: list[tuple[str, Iterable[JudgeRow]]] = []
        columns = verdicts
        if len(verdicts) > 2:  # the majority of two judges is the first one's verdict
            sample, columns = with_majority(sample, verdicts, labels)
        report += [(name, _verdict_rows(sample, labels, name, target, self.classes)) for name in columns]
        if len(verdicts) > 1:
            consistency = _consistency(sample, labels, verdicts, target)
            report.append((f"{len(verdicts)} together", [({"metric": "consistency"}, consistency)]))
        report += [(name, _score_rows(sample, labels, name, target)) for name in scores]
        # Scores of different classes have no common mean.
        if len(scores) > 1 and len({class_of_score(sample, name) for name in scores}) == 1:
            report.append((f"mean of {len(scores)}", _mean_score_rows(sample, labels, scores, target)))
        judge_rows = [(name, label, row) for name, rows in report for label, row in rows]
        keys = ["metric", "class"]
        if any("judged" in label for _, label, _ in judge_rows):
            keys.append("judged")
        rows = [
            replace(row, label={"judge": name} | {key: label.get(key) for key in keys})
            for name, label, row in judge_rows
        ]
        remarks = [remark for name in verdicts for remark in _no_verdict_remarks(sample, labels, name)]
        if verdicts and not self.classes:
            remarks += _many_classes_remarks(sample, labels, verdicts[0])
        description = f", judge {', '.join(self.judges)}"
        return Estimates.from_rows(sample, rows, "judge", remarks, description)

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return agreement, kappa and the recall of each class in each group, for verdicts.

        A remark names each group in which a judge is worse than over all units. There, the upper limit of the
        group's interval is below the overall value, at a level that holds for all groups and quantities of a
        judge together (Bonferroni).
        """
        verdicts, _ = self._split_judges(sample, labels)
        if not verdicts:
            return Estimand.by(self, sample, labels, group, request)
        rows = []
        remarks = []
        for judge in verdicts:
            answered = judged_classes(sample, labels, judge)
            # The name of each quantity, its metric and the number of its class.
            quantities: list[tuple[str, str, int | None]] = [
                ("agreement", "accuracy", None),
                ("kappa", "kappa", None),
            ]
            if len(answered.levels) <= MAX_CLASSES:
                quantities += [("recall", "recall", k) for k in range(len(answered.levels))]
            has_verdict = _has_verdict(answered)
            estimates_by_quantity = [
                answered.metric_by_group(sample, group, name, k, request.target) for _, name, k in quantities
            ]
            level = 1.0 - _FAMILY_ERROR / max(sum(map(len, estimates_by_quantity)), 1)
            for (quantity, name, k), estimates in zip(quantities, estimates_by_quantity, strict=True):
                overall = answered.confusion.metric_in_domain(has_verdict, name, k, request.target).value
                class_name = None if k is None else answered.levels[k]
                description = quantity if k is None else f"{quantity} of {class_name!r}"
                label = {"judge": judge, "metric": quantity, "class": class_name}
                for domain, row in estimates.items():
                    rows.append(replace(row, label={"domain": domain} | label))
                    if row.confidence_interval(level).high < overall:
                        remarks.append(
                            f"in {domain!r}, {description} of {judge!r} is lower than elsewhere: "
                            f"{row.value:.3f}, compared with {overall:.3f} over all units"
                        )
        judges = ", ".join(self.judges)
        return Estimates.from_rows(sample, rows, "judge_groups", remarks, f", judge {judges} by group")


# Probability that a judge who is equally good in all groups is reported as worse in some group.
_FAMILY_ERROR = 0.05


def _has_verdict(answered: AnsweredClasses) -> BoolArray:
    """Return which of the labelled units (m,) have a verdict."""
    if answered.has_verdict is None:
        return np.ones(len(answered.confusion.true), dtype=bool)
    return answered.has_verdict


def _no_verdict_remarks(sample: Sample, labels: object, judge: str) -> list[str]:
    """Return a note on the drawn units without a verdict of a judge, with the texts in place of verdicts."""
    missing = no_verdicts(sample, labels, judge)
    if not np.any(missing):
        return []
    texts, counts = np.unique(sample.groups[judge][missing], return_counts=True)
    shown = ", ".join(
        f"{text or 'empty'!r} {count:,}" for text, count in zip(texts.tolist(), counts.tolist(), strict=True)
    )
    return [
        f"{int(missing.sum()):,} of {sample.size:,} drawn units have no verdict of {judge!r} ({shown}): the "
        "judge is compared with people's labels only on the other units"
    ]


def _consistency(sample: Sample, labels: object, judges: tuple[str, ...], target: str) -> Estimate:
    """Return the share of equal verdicts among all pairs of verdicts on a unit."""
    has_verdict = np.stack([~no_verdicts(sample, labels, judge) for judge in judges])
    verdicts = verdicts_of_judges(sample, labels, judges)
    judge_pairs = list(combinations(range(len(judges)), 2))
    is_pair = np.array([has_verdict[a] & has_verdict[b] for a, b in judge_pairs])
    is_equal = np.array([verdicts[a] == verdicts[b] for a, b in judge_pairs])
    all_units = sample.weighting(np.ones(sample.size, dtype=bool))
    if np.all(is_pair):
        return share_estimate(np.mean(is_equal, axis=0), all_units, target)
    n_pairs = is_pair.sum(axis=0)
    shares = (is_equal & is_pair).sum(axis=0) / np.maximum(n_pairs, 1)
    return domain_mean(shares, n_pairs > 0, all_units, bounds=(0.0, 1.0), target=target)


def with_majority(sample: Sample, judges: tuple[str, ...], labels: object) -> tuple[Sample, tuple[str, ...]]:
    """Return the sample with the majority of the judges as a group column, and the names with that column.

    In a tie, the first named of the tied judges decides. A judge without a verdict has no vote, unless no
    judge has a verdict.
    """
    name = f"majority of {len(judges)}"
    columns = verdicts_of_judges(sample, labels, judges)
    votes = np.sum(columns[:, None] == columns[None], axis=0)
    votes[np.stack([no_verdicts(sample, labels, judge) for judge in judges])] = 0
    chosen = columns[np.argmax(votes, axis=0), np.arange(sample.size)]
    verdicts = dict(zip(sample.ids.tolist(), chosen, strict=True))
    return with_group(sample, name, verdicts), (*judges, name)


def _label_numbers(sample: Sample, labels: object) -> Any:
    """Return labels as numbers: 1 if the model's answer is the label's class, else 0.

    Labels that are not classes are unchanged.
    """
    if compared_column(sample, labels) is None:
        return labels
    observed = outcomes(sample, labels)
    numbers = np.full(sample.size, np.nan)
    numbers[observed.labelled] = observed.z
    return numbers


def _mean_score_rows(
    sample: Sample, labels: object, judges: Sequence[str], target: str
) -> Iterator[JudgeRow]:
    """Yield the rows that compare the mean score of several judges with labels."""
    labels = _numbers_for_score(sample, labels, judges[0])
    scores = np.mean([number_column(sample, name, name) for name in judges], axis=0)
    same_scale = all(_on_scale_of_labels(sample, labels, name) for name in judges)
    yield from _correlation_rows(sample, labels, scores, target, same_scale=same_scale)
    yield from _auc_rows(sample, labels, scores, target)


def _correlation_rows(
    sample: Sample, labels: object, scores: object, target: str, *, same_scale: bool
) -> Iterator[JudgeRow]:
    """Yield the correlations of labels with scores: the name of a proxy, or a score for each drawn unit (n,).

    The intraclass correlation requires the same scale of scores and labels.
    """
    x, y, respondents, _ = ScoreComparison().units(sample, labels, scores)
    statistics = {"pearson": pearson, "spearman": spearman}
    if same_scale:
        statistics["icc"] = intraclass
    for name, statistic in statistics.items():
        estimate = association(statistic, x, y, respondents.weighting, target)
        yield {"metric": name}, respondents.complete(estimate, sample)


def _auc_rows(sample: Sample, labels: object, scores: object, target: str) -> Iterator[JudgeRow]:
    """Yield the area under the ROC curve of scores on any scale, if labels are 0 and 1."""
    x, y, respondents, _ = ScoreComparison().units(sample, labels, scores)
    if are_binary(y):
        area = ranking_metric(area_under_curve, x, y == 1, respondents.weighting, target)
        yield {"metric": "auc"}, respondents.complete(area, sample)


def _gives_scores(sample: Sample, labels: object, judge: str) -> bool:
    """Return whether a judge gives scores: a proxy, or a column of numbers if labels are other numbers.

    These are ratings if labels count as 0 or 1; and 0 and 1 if labels are shares of votes, such as 0.67.
    """
    verdicts = sample.groups.get(judge)
    if verdicts is None:
        return judge in sample.proxy_names
    distinct_verdicts = set(verdicts[~no_verdicts(sample, labels, judge)].tolist())
    ratings = np.array(numbers_of_texts(list(distinct_verdicts)), dtype=np.float64)
    if len(ratings) == 0 or not np.all(np.isfinite(ratings)):
        return False
    try:
        numbers = number_column(sample, _label_numbers(sample, labels), "label")
    except LabelError:
        # Labels that are words without a number cannot be compared with ratings.
        return False
    labelled_numbers = numbers[np.isfinite(numbers)]
    if are_binary(ratings):
        # A label of 0.5 may be a class of its own, such as a tie.
        return bool(np.any((2.0 * labelled_numbers) % 1.0))
    return are_binary(labelled_numbers)


def _on_scale_of_labels(sample: Sample, labels: object, judge: str) -> bool:
    """Return whether a score is on the scale of the labels, so that their difference is meaningful.

    Labels 0 and 1 are on the scale of probabilities.
    """
    if judge not in sample.proxy_names:
        return False
    if class_of_score(sample, judge) is not None:
        return True
    x, y, _, _ = ScoreComparison().units(sample, labels, judge)
    role = sample.question.score(judge)
    info = next(entry for entry in sample.proxy_info if entry.name == judge)
    if not info.scaled or (role is not None and role.predicts == ORDER):
        return False
    if role is not None and role.is_rating and role.bounds != (0.0, 1.0) and are_binary(y):
        return False
    low, high = info.bounds or (-np.inf, np.inf)
    if are_binary(y):
        low = 0.0
        high = 1.0
    stated = sample.question.outcome.bounds
    if stated is not None and info.bounds is not None and stated != info.bounds:
        return False
    return bool(np.all((x >= low) & (x <= high)) and np.all((y >= low) & (y <= high)))


def _numbers_for_score(sample: Sample, labels: object, score: str) -> Any:
    """Return the number of each label that a score is compared with."""
    role = sample.question.score(score)
    if role is None or class_of_score(sample, score) is None:
        return _label_numbers(sample, labels)
    return class_indicator(sample, labels, role)


def _score_rows(sample: Sample, labels: object, judge: str, target: str) -> Iterator[JudgeRow]:
    """Yield the rows that compare a judge's scores with labels."""
    if class_of_score(sample, judge) is None:
        labels = _label_numbers(sample, labels)
    same_scale = _on_scale_of_labels(sample, labels, judge)
    yield from _correlation_rows(sample, labels, judge, target, same_scale=same_scale)
    if same_scale:
        yield from _bias_and_calibration_rows(sample, labels, judge, target)
    yield from _auc_rows(sample, labels, judge, target)


def _bias_and_calibration_rows(sample: Sample, labels: object, judge: str, target: str) -> Iterator[JudgeRow]:
    """Yield the bias of a score, and the calibration error if it is a probability."""
    if target == "population":
        yield {"metric": "bias"}, Bias(judge).estimate(sample, labels)
    x, y, _, _ = ScoreComparison().units(sample, labels, judge)
    info = next(entry for entry in sample.proxy_info if entry.name == judge)
    in_range = np.all((x >= 0) & (x <= 1)) and np.all((y >= 0) & (y <= 1))
    if info.bounds == (0.0, 1.0) and in_range and is_probability(sample, judge):
        estimate = CalibrationError(judge).estimate(sample, labels, Request(target=target))
        yield {"metric": "calibration_error"}, estimate


def _verdict_rows(
    sample: Sample, labels: object, judge: str, target: str, classes: Sequence[str] = ()
) -> Iterator[JudgeRow]:
    """Yield the rows that compare a judge's verdicts with labels; `classes` as in `JudgeReport`."""
    labels = labels_as_verdicts(sample, labels, judge)
    answered = judged_classes(sample, labels, judge)
    agreement = Estimand.parse_text(f"agreement:{judge}").estimate(sample, labels, Request(target=target))
    assert isinstance(agreement, Estimate)
    yield {"metric": "agreement"}, agreement
    if answered.has_verdict is not None:
        is_missing = no_verdicts(sample, labels, judge).astype(np.float64)
        all_units = sample.weighting(np.ones(sample.size, dtype=bool))
        yield {"metric": MISSING_VERDICT_SHARE}, share_estimate(is_missing, all_units, target)
    metrics = ["kappa"]
    # Matthews' correlation of more than two classes has no interval for only a part of the units.
    if answered.has_verdict is None or len(answered.levels) == 2:
        metrics.append("mcc")
    for name in metrics:
        yield {"metric": name}, answered.metric(sample, name, None, target)
    levels = answered.levels
    # Classes with rows of their own, by number.
    reported = {levels.index(name): name for name in _reported_classes(levels, classes)}
    for name in ("recall", "false_discovery_rate", "prevalence", "predicted_prevalence"):
        for k, level in reported.items():
            row = answered.metric(sample, name, k, target)
            if name == "predicted_prevalence":
                row = replace(row, remarks=())  # they are about labels
            yield {"metric": name, "class": level}, row
    if len(levels) == 2:
        yield from _rogan_gladen_rows(sample, answered, reported, target)
    yield from _cell_rows(sample, answered, reported, target)


def _rogan_gladen_rows(
    sample: Sample, answered: AnsweredClasses, reported: Mapping[int, str], target: str
) -> Iterator[JudgeRow]:
    """Yield the share of each reported class, corrected by the judge's error rates (Rogan & Gladen 1978)."""
    confusion = answered.confusion
    has_verdict = _has_verdict(answered)
    true = confusion.true[has_verdict]
    predicted = confusion.predicted[has_verdict]
    for k, level in reported.items():
        share = answered.metric(sample, "predicted_prevalence", k, target).value
        value, variance = rogan_gladen(true == k, predicted == k, share)
        # Its variance is that of binomial counts, and not of a linearised variable.
        corrected = replace(
            undefined_result(0),
            value=value,
            variable=np.zeros(len(confusion.true)),
            design_variance=variance,
            degrees_of_freedom=np.inf,
        )
        row = linearised_estimate(corrected, confusion.weighting, bounds=(0.0, 1.0), target=target)
        yield {"metric": "rogan_gladen", "class": level}, row


def _cell_rows(
    sample: Sample, answered: AnsweredClasses, reported: Mapping[int, str], target: str
) -> Iterator[JudgeRow]:
    """Yield the share of each cell of the confusion matrix of the reported classes."""
    confusion = answered.confusion
    for true_class, true_name in reported.items():
        for verdict, verdict_name in reported.items():
            is_in_cell = (confusion.true == true_class) & (confusion.predicted == verdict)
            outcome = is_in_cell.astype(np.float64)
            if answered.has_verdict is None:
                estimate = share_estimate(outcome, confusion.weighting, target)
            else:
                estimate = domain_mean(
                    outcome, answered.has_verdict, confusion.weighting, bounds=(0.0, 1.0), target=target
                )
            label = {"metric": "share", "class": true_name, "judged": verdict_name}
            yield label, answered.respondents.complete(estimate, sample)


def _reported_classes(levels: Sequence[str], classes: Sequence[str]) -> Sequence[str]:
    """Return the classes among `levels` that have rows of their own.

    Raises
    ------
    InputError
        For a class that neither labels nor verdicts have.
    """
    for name in classes:
        if name not in levels:
            raise InputError("unknown class", given=repr(name), allowed=suggest_names(name, levels))
    if not classes and len(levels) <= MAX_CLASSES:
        return levels
    return classes


def most_frequent_classes(sample: Sample, labels: object, answer: str) -> tuple[list[str], list[str]]:
    """Return the most frequent classes of labels, at most `MAX_CLASSES`, and the others.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    answer : str
        Column of the answers that labels are compared with.
    """
    answered = judged_classes(sample, labels, answer)
    counts = np.bincount(answered.confusion.true, minlength=len(answered.levels))
    order = np.argsort(-counts, kind="stable").tolist()
    frequent = sorted(order[:MAX_CLASSES])
    others = sorted(order[MAX_CLASSES:])
    return [answered.levels[k] for k in frequent], [answered.levels[k] for k in others]


def _many_classes_remarks(sample: Sample, labels: object, judge: str) -> list[str]:
    """Return the remark that classes have no rows of their own because there are too many."""
    n_classes = len(judged_classes(sample, labels, judge).levels)
    if n_classes <= MAX_CLASSES:
        return []
    return [
        f"the rates and the confusion matrix of {judge!r} are left out, because there are {n_classes} "
        f"classes; for the confusion matrix of some of these classes: predicted={judge!r}, "
        f"metric=['confusion'], classes=[…] (--predicted {quote(judge)} --metric confusion --class CLASS,…)"
    ]


def rogan_gladen(true: BoolArray, judged: BoolArray, share: float) -> tuple[float, float]:
    """Return Rogan & Gladen's estimate of the share of a class, and its variance.

    It is (p + specificity − 1) / (recall + specificity − 1), clipped to 0 and 1, where p is the `share` of
    the class among all verdicts. The variance is that of the delta method. NaN if the labels do not show both
    rates, or if the judge is not better than chance. `true` and `judged` (n,) are the labels and the verdicts
    of the labelled units.
    """
    n_true = float(true.sum())
    n_false = float((~true).sum())
    if n_true == 0 or n_false == 0:
        return np.nan, np.nan
    recall = float(judged[true].mean())
    false_positive_rate = float(judged[~true].mean())
    youden = recall - false_positive_rate
    if youden <= 0:
        return np.nan, np.nan
    value = min(max((share - false_positive_rate) / youden, 0.0), 1.0)
    recall_variance = recall * (1.0 - recall) / n_true
    rate_variance = false_positive_rate * (1.0 - false_positive_rate) / n_false
    variance = value**2 * recall_variance + (1.0 - value) ** 2 * rate_variance
    return value, variance / youden**2
