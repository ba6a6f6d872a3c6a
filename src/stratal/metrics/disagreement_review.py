"""The table for a review of the items on which judges and people differ."""

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

# Share of the labels' range by which a score and a label differ that are looked at again: of right (1) or
# wrong (0) the score is on the other side.
_FAR = 0.5


def write_disagreements(
    sample: Sample, labels: object, judges: Sequence[str], path: str | Path, *, value: str = "label"
) -> int:
    """Write the labelled items on which a judge and people differ, for a review.

    A row has the id, what annotators saw, each judge's verdict or score, which of them differ, and people's
    label; its last column, called as the labels' own, is empty. Items on which most judges differ come first,
    then those of which the first proxy (or, of scores, the judge) is surest.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    judges : sequence of str
        Columns of verdicts, or proxies with scores.
    path : str or Path
        A CSV file. What is filled in there replaces the first labels: `stratal.read_labels(labels, path)`.
    value : str
        What the labels' own column is called.

    Returns
    -------
    int
        Items in the file.

    Raises
    ------
    InputError
        If the path does not end in `.csv`, or there is a file already.
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
    surest = review.surest
    people = review.people
    count = np.sum(differ, axis=0)
    rows = [row for row in np.lexsort((-surest, -count)).tolist() if count[row]]
    reserved_names = {sample.question.id, *judges, DIFFERS_FROM, FIRST_LABEL_PREFIX + value, value}
    payload = {name: column for name, column in sample.shown.items() if name not in reserved_names}
    if sample.proxies.shape[1] and sample.proxy_names[0] not in reserved_names | set(payload):
        payload[sample.proxy_names[0]] = surest
    ids = id_texts(sample.ids)
    # As people wrote it, by which it is found again in their file.
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
    """Return the numbers of `labelled` items, and of `items` on which a judge and people differ."""
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
    """Labels beside judges, for the drawn units (n,).

    Parameters
    ----------
    people : object (n,)
        The class of each label, None without one.
    decoded : JoinedLabels
        The labels in the spelling of the first judge.
    shown : mapping of judge to (n,)
    differ : sequence of bool (n,)
        For each judge.
    surest : float (n,)
        How sure the first proxy, or the last judge that gives scores, is.
    """

    people: AnyArray
    decoded: JoinedLabels
    shown: Mapping[str, AnyArray]
    differ: Sequence[BoolArray]
    surest: FloatArray


def _review(sample: Sample, joined: JoinedLabels, judges: Sequence[str]) -> _Review:
    spelling = {
        judge: labels_as_verdicts(sample, joined, judge) for judge in judges if judge in sample.groups
    }
    classes = {judge: class_column(sample, verdicts, "labels") for judge, verdicts in spelling.items()}
    people = next(iter(classes.values()), class_column(sample, joined, "labels"))
    labelled = np.array([answer is not None for answer in people], dtype=bool)
    if sample.proxies.shape[1]:
        surest = sample.proxies[:, 0]
    else:
        surest = np.zeros(sample.size)
    differ = []
    shown = {}
    for judge in judges:
        if judge in sample.groups:
            # Classes as those of the labels: the verdict 1.0 is the label 1.
            verdicts = [class_text(verdict) for verdict in group_column(sample, judge).tolist()]
            shown[judge] = np.array(verdicts, dtype=object)
            judged = ~no_verdicts(sample, joined, judge)
            differ.append(labelled & judged & (shown[judge] != classes[judge]))
            continue
        shown[judge] = number_column(sample, judge, "judge")
        numbers = number_column(sample, joined, "label")
        distance = np.abs(np.where(labelled, shown[judge] - numbers, 0.0))
        differ.append(distance > _FAR * (np.nanmax(numbers) - np.nanmin(numbers)))
        surest = distance
    decoded = next(iter(spelling.values()), joined)
    return _Review(people=people, decoded=decoded, shown=shown, differ=differ, surest=surest)
