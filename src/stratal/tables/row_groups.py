"""Which rows of a table were labelled in groups, and what follows: clusters, a refusal, or a warning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from shlex import quote

import numpy as np

from stratal.arrays import BoolArray
from stratal.errors import InputError
from stratal.question.labelled_groups import LabelledGroups
from stratal.question.recognition import ColumnFacts
from stratal.report.notes import LABELS_BY_GROUP, Note
from stratal.tables.small_table import SmallTable


def labelled_groups(rows: SmallTable, column: str, is_labelled: BoolArray) -> LabelledGroups:
    """Return the groups of rows with an equal entry of a column, and which of them have labels (n,)."""
    return LabelledGroups.of(column, rows.texts(column).tolist(), is_labelled)


def chosen_groups(
    rows: SmallTable, facts: Iterable[ColumnFacts], is_labelled: BoolArray, without: Collection[str | None]
) -> list[LabelledGroups]:
    """Return the groups of rows that were chosen, and not single rows; the column of fewest groups first.

    Of conversations within users, all rows of some users are also those of their conversations. Columns in
    `without` have other roles.
    """
    if np.all(is_labelled) or not np.any(is_labelled):
        return []
    groups = []
    for column in facts:
        # A table with a row for each unit and model may have become one with a row for each unit.
        if column.name in without or column.name not in rows.lists or not column.may_be_groups:
            continue
        of_column = labelled_groups(rows, column.name, is_labelled)
        if of_column.are_chosen and not of_column.are_marks:
            groups.append(of_column)
    return sorted(groups, key=lambda of_column: of_column.groups)


def recognised_clusters(
    rows: SmallTable, groups: Sequence[LabelledGroups], otherwise: str = ""
) -> LabelledGroups | None:
    """Return the groups that are clusters, None if there are none.

    `otherwise` is what a user can state if single rows were chosen all the same.

    Raises
    ------
    InputError
        If some rows of some groups have labels: an interval of single rows would be too narrow.
    """
    for of_column in groups:
        if of_column.are_clusters:
            return of_column
    for of_column in groups:
        if of_column.are_many and not of_column.are_whole:
            raise InputError(
                f"{rows.label}: some rows of some {of_column.column!r} have labels, as in two stages of "
                "sampling",
                given=f"labels in {of_column.labelled:,} of {of_column.groups:,} {of_column.column!r}, about "
                f"{of_column.expected:,.0f} if rows were chosen at random, and in "
                f"{of_column.labelled_share:.0%} of the rows of these",
                allowed="labels in all rows of the chosen groups, or rows that were chosen one by one",
                action=f"Label the other rows of these groups, or leave them out of the table{otherwise}.",
            )
    return None


def group_warning(groups: Sequence[LabelledGroups]) -> tuple[Note, ...]:
    """Return the warning that labels are concentrated in some of the first groups; none without groups."""
    if not groups:
        return ()
    of_column = groups[0]
    text = (
        "the labelled rows are not a random sample of the table: labels occur in "
        f"{of_column.labelled:,} of {of_column.groups:,} levels of {of_column.column!r}, and of as many rows "
        f"chosen at random in about {of_column.expected:,.0f}. The interval may miss the value of all rows. "
        "If rows of the other levels are not of interest, leave them out"
    )
    if of_column.are_whole:
        name = of_column.column
        text += f"; if whole levels were drawn: cluster={name!r} (--cluster {quote(name)})"
    return (Note(LABELS_BY_GROUP, text),)
