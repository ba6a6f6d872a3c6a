"""The columns that mean something in any table of labels: ids, who answered, whether it was skipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from stratal.errors import InputError, LabelError
from stratal.labels.labels import SKIPPED, SUBMITTED
from stratal.labels.numbers import numeric_values
from stratal.population.tables.declaration import ID_NAMES
from stratal.population.tables.small_table import SmallTable, is_missing

ANNOTATOR_NAMES = ("annotator", "annotator_id", "rater", "labeler", "labeller")
"""Columns that say who answered, the first that is there."""

ANSWER_NAMES = ("label", "verdict")
"""Columns of answers, the first that is there."""


def id_column(table: SmallTable, id_name: str) -> str:
    """Return the column of ids: the sample's own name for it, `item_id` or `id`.

    Examples
    --------
    >>> id_column(SmallTable.of({"item_id": ["a"]}, "labels"), "id")
    'item_id'
    """
    known = tuple(dict.fromkeys((id_name, *reversed(ID_NAMES))))
    found = table.find(*known)
    if found is None:
        raise InputError(
            f"{table.label}: no id column",
            given=", ".join(table.lists),
            allowed=" or ".join(known),
            action="Name it: --id COLUMN; --id row where rows are in the order of to_label.csv.",
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumn:
    """The column of answers of a table, and how far it is filled in.

    Parameters
    ----------
    name : str, optional
        None where no column is called so.
    rows, filled : int
    counted : bool
        Whether every answer is a number, or a word that stands for one.

    Examples
    --------
    >>> table = SmallTable.of({"id": ["a", "b"], "label": ["Pass", ""]}, "labels")
    >>> AnswerColumn.of(table).filled
    1
    """

    name: str | None
    rows: int
    filled: int = 0
    counted: bool = False

    @classmethod
    def of(cls, table: SmallTable) -> Self:
        """Return what is known of the answers of a table."""
        name = table.find(*ANSWER_NAMES)
        if name is None:
            return cls(name=None, rows=len(table))
        given = [value for value in table.values(name) if not is_missing(value)]
        try:
            numeric_values(np.array(given, dtype=object))
        except LabelError:
            return cls(name=name, rows=len(table), filled=len(given))
        return cls(name=name, rows=len(table), filled=len(given), counted=bool(given))


def skipped(place: str, status: Any) -> bool:
    """Return whether a status says that an item was skipped.

    Examples
    --------
    >>> skipped("line 2", "Skipped"), skipped("line 2", None)
    (True, False)
    """
    given = str(status or SUBMITTED).strip().lower()
    if given not in (SUBMITTED, SKIPPED):
        raise LabelError(f"{place}: unknown status", given=repr(given), allowed=f"{SUBMITTED} or {SKIPPED}")
    return given == SKIPPED
