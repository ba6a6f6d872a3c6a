"""The columns that mean something in any table of labels: ids, who answered, whether it was skipped."""

from __future__ import annotations

from typing import Any

from stratal.errors import InputError, LabelError
from stratal.labels.labels import SKIPPED, SUBMITTED
from stratal.population.tables.declaration import ID_NAMES
from stratal.population.tables.small_table import SmallTable

ANNOTATOR_NAMES = ("annotator", "annotator_id", "rater", "labeler", "labeller")
"""Columns that say who answered, the first that is there."""


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
