"""The table for a review of the items on which judges and annotators disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, has_entry
from stratal.designs.files import replacing
from stratal.designs.labelling_files import token_column
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.resolve import check_label_codes, class_column, group_column, number_column
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.labels.label_files import DIFFERS_FROM, FIRST_LABEL_PREFIX
from stratal.labels.label_values import class_text
from stratal.metrics.class_answers import labels_as_verdicts, no_verdicts
from stratal.randomness import id_texts
from stratal.tables.files import csv_line

# A score and a label disagree if they differ by more than this share of the range of the labels. For labels
# of right (1) and wrong (0), the score then lies closer to the other label.
_MIN_DISAGREEMENT = 0.5


def write_disagreements(
    sample: Sample, labels: object, judges: Sequence[str], path: str | Path, *, value: str = "label"
) -> int:
    """Write the labelled items on which a judge and the annotators disagree, for a review.

    A row has the id, the columns that annotators saw, the verdict or score of each judge, the names of the
    judges that disagree with the label, and the label. The last column has the name of the column of labels,
    and is empty. Items on which most judges disagree come first, then those with the highest first proxy (or
    for scores, the largest difference between score and label).

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    judges : sequence of str
        Columns of verdicts, or proxies with scores.
    path : str or Path
        A CSV file. Its answers replace the first labels: `stratal.read_labels(labels, path)`.
    value : str
        Name of the column of labels.

    Returns
    -------
    int
        Number of items in the file.

    Raises
    ------
    InputError
        If the path does not end in `.csv`, or the file exists.
    LabelError
        If a label may be a code of missing labels.
    """
    file = Path(path)
    if file.suffix.lower() != ".csv" or file.exists():
        raise InputError(
            f"{file}: disagreements can only be written to a new file",
            given="an existing file, which may contain answers" if file.exists() else file.suffix,
            allowed="a path that ends in .csv, at which there is no file",
            action="Choose another name.",
        )
    joined = _join_checked_labels(sample, labels, judges, value)
    review = _compare_judges(sample, joined, judges)
    judge_answers = review.judge_answers
    n_disagreeing = np.sum(review.disagrees, axis=0)
    order = np.lexsort((-review.priority, -n_disagreeing)).tolist()
    units = [unit for unit in order if n_disagreeing[unit]]
    first_label_name = FIRST_LABEL_PREFIX + value
    reserved_names = {sample.question.id, *judges, DIFFERS_FROM, first_label_name, value}
    context = {name: column for name, column in sample.shown.items() if name not in reserved_names}
    if sample.proxies.shape[1] and sample.proxy_names[0] not in reserved_names | set(context):
        context[sample.proxy_names[0]] = sample.proxies[:, 0]
    ids = id_texts(sample.ids)
    # Labels as the annotators wrote them, so that the review can be compared with their file.
    classes = review.decoded.classes().tolist()
    written_labels = {}
    for unit, name, answer in zip(joined.unit.tolist(), classes, joined.values.tolist(), strict=True):
        written_labels[unit, name] = class_text(answer)
    with replacing(file) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        # Identifies the rows of a sample without ids.
        token = token_column(sample)
        names = (*context, *judge_answers, *token, DIFFERS_FROM, first_label_name, value)
        stream.write(csv_line((sample.question.id, *names)))
        for unit in units:
            disagreeing = [judge for judge, mask in zip(judges, review.disagrees, strict=True) if mask[unit]]
            label = review.classes[unit]
            first_label = written_labels.get((unit, label), label)
            entries = (column[unit] for column in (*context.values(), *judge_answers.values()))
            stream.write(
                csv_line((ids[unit], *entries, *token.values(), " ".join(disagreeing), first_label, ""))
            )
    return len(units)


def count_disagreements(sample: Sample, labels: object, judges: Sequence[str]) -> dict[str, int]:
    """Return the numbers of `labelled` items, and of `items` on which a judge and annotators disagree."""
    review = _compare_judges(sample, _join_checked_labels(sample, labels, judges, "label"), judges)
    n_labelled = int(has_entry(review.classes).sum())
    return {"items": int(np.any(review.disagrees, axis=0).sum()), "labelled": n_labelled}


def _join_checked_labels(sample: Sample, labels: object, judges: Sequence[str], column: str) -> JoinedLabels:
    """Return labels joined to the sample; codes of missing labels are an error, unless they are verdicts."""
    classes = {*sample.question.outcome.classes}
    for name in (*judges, sample.question.answer or ""):
        if name in sample.groups:
            classes |= set(map(class_text, sample.groups[name].tolist()))
    return check_label_codes(sample, join_labels(sample, labels), column, classes=classes or None)


class _Review(NamedTuple):
    """Labels and judges of the drawn units (n,).

    Parameters
    ----------
    classes : object (n,)
        The class of each label, None without one.
    decoded : JoinedLabels
        The labels as verdicts of the first judge, if it gives verdicts.
    judge_answers : mapping of judge to (n,)
        Verdicts or scores of each judge.
    disagrees : sequence of bool (n,)
        For each judge, whether it disagrees with the label.
    priority : float (n,)
        Items with a high priority come first: the first proxy, or the distance between the label and the
        score of the last judge that gives scores.
    """

    classes: AnyArray
    decoded: JoinedLabels
    judge_answers: Mapping[str, AnyArray]
    disagrees: Sequence[BoolArray]
    priority: FloatArray


def _compare_judges(sample: Sample, joined: JoinedLabels, judges: Sequence[str]) -> _Review:
    """Return the labels of the drawn units, the answers of judges, and the units on which they disagree."""
    labels_for_judge = {
        judge: labels_as_verdicts(sample, joined, judge) for judge in judges if judge in sample.groups
    }
    classes_for_judge = {
        judge: class_column(sample, labels, "labels") for judge, labels in labels_for_judge.items()
    }
    classes = next(iter(classes_for_judge.values()), class_column(sample, joined, "labels"))
    labelled = has_entry(classes)
    if sample.proxies.shape[1]:
        priority = sample.proxies[:, 0]
    else:
        priority = np.zeros(sample.size)
    judge_answers = {}
    disagrees = []
    for judge in judges:
        if judge in sample.groups:
            # Verdicts in the spelling of labels: the verdict 1.0 is the label 1.
            verdicts = [class_text(verdict) for verdict in group_column(sample, judge).tolist()]
            judge_answers[judge] = np.array(verdicts, dtype=object)
            has_verdict = ~no_verdicts(sample, joined, judge)
            disagrees.append(labelled & has_verdict & (judge_answers[judge] != classes_for_judge[judge]))
            continue
        judge_answers[judge] = number_column(sample, judge, "judge")
        numbers = number_column(sample, joined, "label")
        distance = np.abs(np.where(labelled, judge_answers[judge] - numbers, 0.0))
        disagrees.append(distance > _MIN_DISAGREEMENT * (np.nanmax(numbers) - np.nanmin(numbers)))
        priority = distance
    return _Review(
        classes=classes,
        decoded=next(iter(labels_for_judge.values()), joined),
        judge_answers=judge_answers,
        disagrees=disagrees,
        priority=priority,
    )
