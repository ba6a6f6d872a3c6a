"""Which rows of a table were labelled in groups, and what follows: clusters, a refusal, or a warning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from shlex import quote

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, number_of_text
from stratal.errors import InputError
from stratal.question.labelled_groups import LabelledGroups
from stratal.question.recognition import ColumnFacts
from stratal.report.notes import LABELS_BY_GROUP, Note
from stratal.tables.column_facts import facts_of_table
from stratal.tables.small_table import SmallTable, plain_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups:
    """How rows were labelled in groups.

    Parameters
    ----------
    clusters : LabelledGroups, optional
        The groups that were drawn as a whole; None if single rows were drawn.
    warnings : tuple of Note
        Where labels are in some groups without being a random sample of them.
    """

    clusters: LabelledGroups | None = None
    warnings: tuple[Note, ...] = ()


def labelled_groups(
    rows: SmallTable, column: str, is_labelled: BoolArray, stratum: str | None = None
) -> LabelledGroups:
    """Return the groups of rows with an equal entry of a column, and which rows have labels (n,).

    A row without an entry is a group of its own. Rows at random are drawn within each level of `stratum`.
    """
    return LabelledGroups(
        column=column,
        codes=_level_codes(rows, column),
        is_labelled=np.asarray(is_labelled, dtype=bool),
        strata=np.zeros(len(rows), dtype=np.int64) if stratum is None else _level_codes(rows, stratum),
    )


def candidate_groups(
    rows: SmallTable,
    facts: Iterable[ColumnFacts],
    is_labelled: BoolArray,
    without: Collection[str | None],
    stratum: str | None = None,
) -> list[LabelledGroups]:
    """Return the groups of each column that may have been labelled by group; the most groups first.

    Columns in `without` have other roles.
    """
    if np.all(is_labelled) or not np.any(is_labelled):
        return []
    groups = []
    for column in facts:
        # A table with a row for each unit and model may have become one with a row for each unit.
        if column.name in without or column.name not in rows.lists or not column.may_be_groups:
            continue
        of_column = labelled_groups(rows, column.name, is_labelled, stratum)
        if not of_column.may_mark_labels:
            groups.append(of_column)
    return sorted(groups, key=lambda of_column: -len(of_column.sizes))


def groups_as_drawn(
    rows: SmallTable,
    groups: Sequence[LabelledGroups],
    unit: LabelledGroups | None = None,
    *,
    is_stated: bool = False,
    allows_stages: bool = False,
    otherwise: str = "",
) -> RowGroups:
    """Return the groups that were drawn as a whole, and warnings about others in which labels concentrate.

    Of conversations within users, the users were drawn if the conversations with labels are in fewer users
    than conversations at random would be.

    Parameters
    ----------
    rows : SmallTable
    groups : sequence of LabelledGroups
        The most groups first.
    unit : LabelledGroups, optional
        Groups that are drawn as a whole in any case, such as the questions of lists.
    is_stated : bool
        Whether the user stated what was drawn: single rows, or `unit`. Nothing else is recognised or refused
        then.
    allows_stages : bool
        Whether labels in some rows of some groups are a warning.
    otherwise : str
        What a user can state if single rows were drawn all the same.

    Raises
    ------
    InputError
        If some rows of some groups have labels: an interval of single rows would be too narrow.
    """
    clusters = unit
    for of_column in groups if not is_stated else ():
        is_unit = of_column.are_whole and of_column.are_sampling_units
        if is_unit and _are_concentrated(of_column, clusters):
            clusters = of_column
    concentrated = [of_column for of_column in groups if _are_concentrated(of_column, clusters)]
    if not is_stated and not allows_stages:
        for of_column in concentrated:
            _refuse_second_stage(rows.label, of_column, clusters, otherwise)
    warnings = [_concentration_warning(of_column, clusters) for of_column in concentrated[-1:]]
    if clusters is not None:
        warnings += _cluster_warnings(rows, clusters)
    return RowGroups(clusters=clusters, warnings=tuple(warnings))


def with_missing_groups(rows: SmallTable, column: str) -> SmallTable:
    """Return the table with a group of its own for each row that has no entry in a column."""
    entries = [
        f"row {row + 1} without {column}" if plain_text(entry) is None else entry
        for row, entry in enumerate(rows.values(column))
    ]
    return replace(rows, lists={**rows.lists, column: entries})


def _level_codes(rows: SmallTable, column: str) -> IntArray:
    """Return the number of the level of each row (n,), in order of occurrence."""
    entries = with_missing_groups(rows, column).values(column)
    texts = [plain_text(entry) for entry in entries]
    number_of_level = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return np.array([number_of_level[text] for text in texts], dtype=np.int64)


def _in_units(of_column: LabelledGroups, clusters: LabelledGroups | None) -> LabelledGroups | None:
    """Return the groups with the drawn units in place of rows; None if units do not lie within them."""
    if clusters is None:
        return of_column
    if clusters.column == of_column.column or not clusters.lie_within(of_column):
        return None
    return of_column.of_clusters(clusters)


def _are_concentrated(of_column: LabelledGroups, clusters: LabelledGroups | None) -> bool:
    """Return whether labels are in fewer groups than those of units at random."""
    in_units = _in_units(of_column, clusters)
    return in_units is not None and in_units.are_concentrated


def _refuse_second_stage(
    label: str, of_column: LabelledGroups, clusters: LabelledGroups | None, otherwise: str
) -> None:
    """Refuse labels in some units of some groups if the groups are sampling units."""
    in_units = _in_units(of_column, clusters)
    if in_units is None or in_units.are_whole or not in_units.are_sampling_units:
        return
    unit = "rows"
    if clusters is not None:
        unit = repr(clusters.column)
    raise InputError(
        f"{label}: some {unit} of some {of_column.column!r} have labels, as in two stages of sampling",
        given=f"labels in {in_units.labelled:,} of {len(in_units.sizes):,} {of_column.column!r}, about "
        f"{in_units.expected:,.0f} if {unit} were chosen at random, and in "
        f"{in_units.labelled_share:.0%} of the {unit} of these",
        allowed=f"labels in all {unit} of the chosen groups, or {unit} that were chosen one by one",
        action=f"Label the other {unit} of these groups, or leave them out of the table{otherwise}.",
    )


def _concentration_warning(of_column: LabelledGroups, clusters: LabelledGroups | None) -> Note:
    """Return the warning that labels are concentrated in some groups."""
    in_units = _in_units(of_column, clusters)
    assert in_units is not None
    unit = "rows"
    if clusters is not None:
        unit = repr(clusters.column)
    column = of_column.column
    text = (
        f"the labelled {unit} are not a random sample of the table: labels occur in "
        f"{in_units.labelled:,} of {len(in_units.sizes):,} levels of {column!r}, and of as many {unit} "
        f"chosen at random in about {in_units.expected:,.0f}. The interval may miss the value of all rows. "
        f"If {unit} of the other levels are not of interest, leave them out"
    )
    if in_units.are_whole:
        text += f"; if whole levels were drawn: cluster={column!r} (--cluster {quote(column)})"
    return Note(LABELS_BY_GROUP, text)


def _cluster_warnings(rows: SmallTable, clusters: LabelledGroups) -> list[Note]:
    """Return the warnings that the labelled clusters are of other sizes, or follow each other."""
    column = clusters.column
    warnings = []
    if clusters.differ_in_size:
        with_label = clusters.counts > 0
        labelled_size = float(clusters.sizes[with_label].mean())
        other_size = float(clusters.sizes[~with_label].mean())
        text = (
            f"the labelled {column!r} are not a random sample: they have {labelled_size:.1f} rows on "
            f"average, the others {other_size:.1f}. The interval may miss the value of all rows"
        )
        warnings.append(Note(LABELS_BY_GROUP, text))
    order = _order_of_rows(rows, column)
    if order is not None and clusters.are_adjacent(order):
        text = (
            f"the labelled {column!r} are not a random sample: they follow each other. The interval may miss "
            f"the value of all rows. If the other {column!r} are not of interest, leave them out"
        )
        warnings.append(Note(LABELS_BY_GROUP, text))
    return warnings


def _order_of_rows(rows: SmallTable, column: str) -> FloatArray | None:
    """Return the time or position of each row (n,) in a column of these, None of other columns.

    The order of other numbers, such as ids, says nothing.
    """
    entries = rows.values(column)
    (facts,) = facts_of_table(SmallTable.of({column: entries}, rows.label))
    if not facts.is_measurement:
        return None
    places = np.array([_place_of_text(plain_text(entry) or "") for entry in entries])
    return places if np.all(np.isfinite(places)) else None


def _place_of_text(text: str) -> float:
    """Return a number, or a date as days, NaN for other texts."""
    try:
        return float(datetime.fromisoformat(text).toordinal())
    except ValueError:
        return number_of_text(text)
