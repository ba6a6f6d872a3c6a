"""Detect whether the rows of a table were labelled in groups: as clusters, or with a possible bias."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, number_of_text
from stratal.errors import InputError
from stratal.names import option_of
from stratal.question.facts import ColumnFacts
from stratal.question.labelled_groups import LabelledGroups
from stratal.report.notes import LABELS_BY_GROUP, Note
from stratal.tables.column_facts import facts_of_table
from stratal.tables.small_table import SmallTable, plain_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFindings:
    """The result of `detect_clusters`.

    Parameters
    ----------
    clusters : LabelledGroups, optional
        The groups that were drawn as a whole; None if single rows were drawn.
    warnings : tuple of Note
        Warnings that the labelled rows or groups are no random sample.
    """

    clusters: LabelledGroups | None = None
    warnings: tuple[Note, ...] = ()


def labelled_groups(
    rows: SmallTable, column: str, is_labelled: BoolArray, stratum: str | None = None
) -> LabelledGroups:
    """Return the groups of rows with the same entry in a column, given which rows have labels (n,).

    A row without an entry is a separate group. `stratum` is the column of the strata within which rows or
    groups were drawn.
    """
    strata = np.zeros(len(rows), dtype=np.int64)
    if stratum is not None:
        strata = _level_codes(rows, stratum)
    return LabelledGroups(
        column=column,
        codes=_level_codes(rows, column),
        is_labelled=np.asarray(is_labelled, dtype=bool),
        strata=strata,
    )


def candidate_groups(
    rows: SmallTable,
    facts: Iterable[ColumnFacts],
    is_labelled: BoolArray,
    excluded: Collection[str | None],
    stratum: str | None = None,
) -> list[LabelledGroups]:
    """Return the groups of each column that may have been labelled by group; the most groups first.

    Columns in `excluded` have other roles.
    """
    # Labels cannot be concentrated in groups if all rows have them.
    if np.all(is_labelled) or not np.any(is_labelled):
        return []
    groups = []
    for column in facts:
        # A table with a row for each unit and model was converted, and may have lost columns.
        if column.name in excluded or column.name not in rows.columns or not column.may_be_groups:
            continue
        grouping = labelled_groups(rows, column.name, is_labelled, stratum)
        # A column that only states which rows have a label, such as a status, has no groups.
        if not grouping.may_be_label_status:
            groups.append(grouping)
    return sorted(groups, key=lambda grouping: -len(grouping.sizes))


def detect_clusters(
    rows: SmallTable,
    groups: Sequence[LabelledGroups],
    unit: LabelledGroups | None = None,
    *,
    is_stated: bool = False,
    allows_second_stage: bool = False,
    override_hint: str = "",
) -> ClusterFindings:
    """Return the groups that were drawn as a whole, and warnings that labels are concentrated in others.

    If conversations are nested in users, users count as the sampling units if the conversations with labels
    are in fewer users than randomly selected conversations would be.

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
    allows_second_stage : bool
        Whether partly labelled groups are a warning instead of an error.
    override_hint : str
        How to state that single rows were drawn after all.

    Raises an `InputError` if some rows of some groups have labels: an interval of single rows would be too
    narrow.
    """
    clusters = unit
    candidates = [] if is_stated else groups
    for grouping in candidates:
        may_be_clusters = grouping.are_fully_labelled and grouping.are_sampling_units
        if may_be_clusters and _are_concentrated(grouping, clusters):
            clusters = grouping
    concentrated = [grouping for grouping in groups if _are_concentrated(grouping, clusters)]
    if not is_stated and not allows_second_stage:
        for grouping in concentrated:
            _refuse_second_stage(rows.table_name, grouping, clusters, override_hint)
    # One warning is sufficient: the finer groups are nested in the coarsest ones, which are last.
    warnings = [_concentration_warning(grouping, clusters) for grouping in concentrated[-1:]]
    if clusters is not None:
        warnings += _cluster_warnings(rows, clusters)
    return ClusterFindings(clusters=clusters, warnings=tuple(warnings))


def with_missing_groups(rows: SmallTable, column: str) -> SmallTable:
    """Return the table in which each row without an entry in a column has a unique entry there."""
    entries = [
        f"row {row + 1} without {column}" if plain_text(entry) is None else entry
        for row, entry in enumerate(rows.values(column))
    ]
    return replace(rows, columns={**rows.columns, column: entries})


def _level_codes(rows: SmallTable, column: str) -> IntArray:
    """Return the number of the level of each row (n,), in order of occurrence."""
    entries = with_missing_groups(rows, column).values(column)
    texts = [plain_text(entry) for entry in entries]
    number_of_level = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return np.array([number_of_level[text] for text in texts], dtype=np.int64)


def _with_units_as_rows(grouping: LabelledGroups, clusters: LabelledGroups | None) -> LabelledGroups | None:
    """Return the groups with the drawn units in place of rows; None if units do not lie within them."""
    if clusters is None:
        return grouping
    if clusters.column == grouping.column or not clusters.is_nested_in(grouping):
        return None
    return grouping.with_clusters_as_rows(clusters)


def _are_concentrated(grouping: LabelledGroups, clusters: LabelledGroups | None) -> bool:
    """Return whether labels are in fewer groups than those of units at random."""
    by_unit = _with_units_as_rows(grouping, clusters)
    return by_unit is not None and by_unit.are_concentrated


def _unit_name(clusters: LabelledGroups | None) -> str:
    """Return what was drawn, in words."""
    if clusters is None:
        return "rows"
    return f"levels of {clusters.column!r}"


def _refuse_second_stage(
    label: str, grouping: LabelledGroups, clusters: LabelledGroups | None, override_hint: str
) -> None:
    """Raise an error if only some units of the labelled groups have labels, and groups are sampling units."""
    by_unit = _with_units_as_rows(grouping, clusters)
    if by_unit is None or by_unit.are_fully_labelled or not by_unit.are_sampling_units:
        return
    unit = _unit_name(clusters)
    raise InputError(
        f"{label}: only some {unit} of the labelled levels of {grouping.column!r} have labels, as in "
        "two-stage sampling",
        given=f"labels in {by_unit.n_labelled:,} of {len(by_unit.sizes):,} levels of {grouping.column!r} "
        f"(about {by_unit.expected_labelled:,.0f} expected if {unit} were chosen at random), and in "
        f"{by_unit.labelled_share:.0%} of their {unit}",
        allowed=f"labels in all {unit} of the chosen groups, or {unit} that were chosen individually",
        action=f"Label the other {unit} of these groups, or leave the unlabelled {unit} out of the "
        f"table{override_hint}.",
    )


def _concentration_warning(grouping: LabelledGroups, clusters: LabelledGroups | None) -> Note:
    """Return the warning that labels are concentrated in some groups."""
    by_unit = _with_units_as_rows(grouping, clusters)
    assert by_unit is not None
    unit = _unit_name(clusters)
    column = grouping.column
    text = (
        f"the labelled {unit} are not a random sample of the table: labels occur in "
        f"{by_unit.n_labelled:,} of {len(by_unit.sizes):,} levels of {column!r}; the same number of randomly "
        f"chosen {unit} would fall in about {by_unit.expected_labelled:,.0f}. The interval may miss the "
        "value of all rows. "
        f"If {unit} of the other levels are not of interest, leave them out"
    )
    if by_unit.are_fully_labelled:
        text += f"; if whole levels were drawn: {option_of('cluster', column)}"
    return Note(LABELS_BY_GROUP, text)


def _cluster_warnings(rows: SmallTable, clusters: LabelledGroups) -> list[Note]:
    """Return the warnings that the labelled clusters differ in size, or are consecutive."""
    column = clusters.column
    warnings = []
    if clusters.differ_in_size:
        with_label = clusters.label_counts > 0
        labelled_size = float(clusters.sizes[with_label].mean())
        other_size = float(clusters.sizes[~with_label].mean())
        text = (
            f"the labelled levels of {column!r} are not a random sample: those with labels have "
            f"{labelled_size:.1f} rows on average, and those without labels {other_size:.1f}. The interval "
            "may miss the value of all rows"
        )
        warnings.append(Note(LABELS_BY_GROUP, text))
    order = _row_positions(rows, column)
    if order is not None and clusters.are_consecutive(order):
        text = (
            f"the labelled levels of {column!r} are not a random sample: they are consecutive. The interval "
            "may miss the value of all rows. If the other levels are not of interest, leave them out"
        )
        warnings.append(Note(LABELS_BY_GROUP, text))
    return warnings


def _row_positions(rows: SmallTable, column: str) -> FloatArray | None:
    """Return the time or position of each row (n,); None if the column has neither.

    Other numbers, such as ids, have no meaningful order.
    """
    entries = rows.values(column)
    (facts,) = facts_of_table(SmallTable.of({column: entries}, rows.table_name))
    if not facts.is_measurement:
        return None
    positions = np.array([_parse_position(plain_text(entry) or "") for entry in entries])
    return positions if np.all(np.isfinite(positions)) else None


def _parse_position(text: str) -> float:
    """Return a number, or a date or time in seconds, NaN for other texts."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return number_of_text(text)
    # Only the order matters, so that any time zone is suitable for a time without one.
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
