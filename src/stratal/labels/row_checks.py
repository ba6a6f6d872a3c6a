"""Checks that labels from a file belong to the rows of a sample."""

from __future__ import annotations

from collections.abc import Iterable

from stratal.arrays import IntArray, same_value
from stratal.errors import LabelError
from stratal.labels.label_values import LabelMapping, are_numeric_labels, class_text
from stratal.labels.labels import SAMPLE_TOKEN, Labels, SampleLike
from stratal.question.tags import SEPARATORS, is_set, read_set
from stratal.tables.small_table import is_missing


def refuse_other_rows(sample: SampleLike, labels: Labels) -> None:
    """Refuse labels from a file with row numbers as ids, unless their tokens are that of the sample."""
    token = sample.question.sample_token
    if token is None or labels.tokens is None:
        return
    same_rows_hint = "If the labels belong to the same rows: same_rows=True (--same-rows)."
    other_row = next((row for row, entry in enumerate(labels.tokens) if entry and entry != token), None)
    if other_row is not None:
        raise LabelError(
            f"{labels.place(other_row)}: the label was given to a row of another sample",
            given=f"{SAMPLE_TOKEN} {labels.tokens[other_row]!r}",
            allowed=f"{token!r}, the token of this sample (seed {sample.seed})",
            action=f"Give the labels of this sample. {same_rows_hint}",
        )
    missing_row = next((row for row, entry in enumerate(labels.tokens) if not entry), None)
    if missing_row is not None:
        raise LabelError(
            f"{labels.place(missing_row)}: ids are row numbers, but the file does not state to which sample "
            "they belong",
            given=f"no {SAMPLE_TOKEN}",
            allowed=f"a column {SAMPLE_TOKEN} with {token!r}, as in to_label.csv",
            action="Fill in the file that was handed out, or draw with a column of ids (id=). "
            f"{same_rows_hint}",
        )


def refuse_changed_columns(sample: SampleLike, labels: Labels, units: IntArray) -> None:
    """Refuse labels whose file and sample have different values in a common column.

    `units` (m,) are the positions of the labelled units in the sample. Blank entries, columns that annotators
    saw (a spreadsheet may reformat them), and verdicts on a model's answers are not compared.
    """
    tag_format = sample.question.outcome.tag_format
    separator = tag_format if tag_format in SEPARATORS else None
    for name, entries in labels.columns.items():
        if name not in sample.groups:
            continue
        sample_values = sample.groups[name].tolist()
        if _are_verdicts(entries, sample_values):
            continue
        for row, (unit, entry) in enumerate(zip(units.tolist(), entries, strict=True)):
            sample_value = sample_values[unit]
            if is_missing(entry) or same_value(entry, sample_value):
                continue
            if is_set(sample_value) and read_set(entry, separator) == sample_value:
                continue
            raise LabelError(
                f"{labels.place(row)}: column {name!r} of id {labels.ids[row]!r} differs from the value in "
                "the sample",
                given=repr(entry),
                allowed=f"{sample_value!r}, the value when the sample was drawn",
                action=f"If {name!r} contains answers of another model or version, give it another name; "
                "otherwise leave the column out.",
            )


def _are_verdicts(entries: Iterable[object], sample_values: Iterable[object]) -> bool:
    """Return whether entries can be read as 0 and 1, but the values of the sample are not numbers."""
    texts = {class_text(entry) for entry in entries if not is_missing(entry)}
    sample_texts = {class_text(value) for value in sample_values if not is_missing(value)}
    if not texts or not are_numeric_labels(texts) or are_numeric_labels(sample_texts):
        return False
    return set(LabelMapping().numbers(texts).values()) <= {0.0, 1.0}
