"""The table for a review of the items on which judges and annotators disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.designs.files import replacing
from stratal.designs.labelling_files import token_columns
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
    target = Path(path)
    if target.suffix.lower() != ".csv" or target.exists():
        raise InputError(
            f"{target}: disagreements can only be written to a new file",
            given="an existing file, which may contain answers" if target.exists() else target.suffix,
            allowed="a path that ends in .csv, at which there is no file",
            action="Choose another name.",
        )
    joined = _join_checked_labels(sample, labels, judges, value)
    review = _review(sample, joined, judges)
    differ = review.differ
    shown = review.shown
    priority = review.priority
    people = review.people
    count = np.sum(differ, axis=0)
    rows = [row for row in np.lexsort((-priority, -count)).tolist() if count[row]]
    reserved_names = {sample.question.id, *judges, DIFFERS_FROM, FIRST_LABEL_PREFIX + value, value}
    payload = {name: column for name, column in sample.shown.items() if name not in reserved_names}
    if sample.proxies.shape[1] and sample.proxy_names[0] not in reserved_names | set(payload):
        payload[sample.proxy_names[0]] = sample.proxies[:, 0]
    ids = id_texts(sample.ids)
    # Labels as the annotators wrote them, so that the review can be compared with their file.
    decoded = review.decoded
    labels_by_class = zip(
        joined.unit.tolist(), decoded.classes().tolist(), joined.answers.tolist(), strict=True
    )
    written = {(unit, name): class_text(label) for unit, name, label in labels_by_class}
    with replacing(target) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        token = token_columns(sample)
        head = (sample.question.id, *payload, *shown, *token, DIFFERS_FROM, FIRST_LABEL_PREFIX + value, value)
        stream.write(csv_line(head))
        for row in rows:
            which = " ".join(judge for judge, mask in zip(judges, differ, strict=True) if mask[row])
            first = written.get((row, people[row]), people[row])
            entries = (column[row] for column in (*payload.values(), *shown.values()))
            stream.write(csv_line((ids[row], *entries, *token.values(), which, first, "")))
    return len(rows)


def count_disagreements(sample: Sample, labels: object, judges: Sequence[str]) -> dict[str, int]:
    """Return the numbers of `labelled` items, and of `items` on which a judge and annotators disagree."""
    review = _review(sample, _join_checked_labels(sample, labels, judges, "label"), judges)
    labelled = np.array([answer is not None for answer in review.people], dtype=bool)
    return {"items": int(np.any(review.differ, axis=0).sum()), "labelled": int(labelled.sum())}


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
    people : object (n,)
        The class of each label, None without one.
    decoded : JoinedLabels
        The labels in the spelling of the first judge.
    shown : mapping of judge to (n,)
        Verdicts or scores of each judge.
    differ : sequence of bool (n,)
        For each judge, whether it disagrees with the label.
    priority : float (n,)
        The first proxy, or the distance between the label and the last judge that gives scores.
    """

    people: AnyArray
    decoded: JoinedLabels
    shown: Mapping[str, AnyArray]
    differ: Sequence[BoolArray]
    priority: FloatArray


def _review(sample: Sample, joined: JoinedLabels, judges: Sequence[str]) -> _Review:
    spelling = {
        judge: labels_as_verdicts(sample, joined, judge) for judge in judges if judge in sample.groups
    }
    classes = {judge: class_column(sample, verdicts, "labels") for judge, verdicts in spelling.items()}
    people = next(iter(classes.values()), class_column(sample, joined, "labels"))
    labelled = np.array([answer is not None for answer in people], dtype=bool)
    if sample.proxies.shape[1]:
        priority = sample.proxies[:, 0]
    else:
        priority = np.zeros(sample.size)
    differ = []
    shown = {}
    for judge in judges:
        if judge in sample.groups:
            # Verdicts in the spelling of labels: the verdict 1.0 is the label 1.
            verdicts = [class_text(verdict) for verdict in group_column(sample, judge).tolist()]
            shown[judge] = np.array(verdicts, dtype=object)
            judged = ~no_verdicts(sample, joined, judge)
            differ.append(labelled & judged & (shown[judge] != classes[judge]))
            continue
        shown[judge] = number_column(sample, judge, "judge")
        numbers = number_column(sample, joined, "label")
        distance = np.abs(np.where(labelled, shown[judge] - numbers, 0.0))
        differ.append(distance > _MIN_DISAGREEMENT * (np.nanmax(numbers) - np.nanmin(numbers)))
        priority = distance
    decoded = next(iter(spelling.values()), joined)
    return _Review(people=people, decoded=decoded, shown=shown, differ=differ, priority=priority)
