"""The meaning of the labels of an estimate, for its table and notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stratal.labels.joined_labels import JoinedLabels
from stratal.labels.label_values import LabelValue, label_value_notes


@dataclass(frozen=True, kw_only=True)
class LabelInterpretation:
    """The columns of labels of an estimate, and how their values are converted to numbers or classes.

    Parameters
    ----------
    columns : mapping of str to JoinedLabels
        Labels by the name of their column; the name is empty if there is only one.
    answers : collection of str, optional
        Answers of the model, if labels are compared with them.
    classes : bool
        Whether labels are classes.
    is_right : bool
        Whether a label 1 means that the answer is right, as a proxy was declared to predict.
    """

    columns: Mapping[str, JoinedLabels]
    answers: Collection[str] | None = None
    classes: bool = False
    is_right: bool = False

    @cached_property
    def table(self) -> tuple[LabelValue, ...]:
        """The number or class of each distinct value."""
        rows = [
            column_labels.table(self.answers, classes=self.classes, column=name)
            for name, column_labels in self.columns.items()
        ]
        return tuple(row for column_rows in rows for row in column_rows)


def interpretation_notes(
    interpretation: LabelInterpretation | None, remarks: Sequence[str]
) -> tuple[str, ...]:
    """Return the notes about the interpretation of labels, then other remarks, without duplicates."""
    if interpretation is None:
        return tuple(remarks)
    notes = [note for column_labels in interpretation.columns.values() for note in column_labels.notes]
    return tuple(dict.fromkeys([*notes, *label_value_notes(interpretation.table), *remarks]))
