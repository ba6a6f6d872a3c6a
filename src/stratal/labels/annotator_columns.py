"""Labels of several annotators: a column of a table for each of them, joined to one row for each answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import number_of_text
from stratal.errors import InputError, LabelError
from stratal.labels.label_values import MAX_VALUES_SHOWN, comparison_key
from stratal.labels.labels import Labels
from stratal.names import split_names
from stratal.question.vocabulary import VOCABULARIES
from stratal.tables.no_answer import is_no_answer
from stratal.tables.small_table import SmallTable, plain_text


def joined_names(value: str | Sequence[str] | None) -> str | None:
    """Return the names of the columns of labels as one text, separated by commas.

    Raises
    ------
    InputError
        For anything but names.
    """
    if value is None or isinstance(value, str):
        return value
    names = list(value) if isinstance(value, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(
            "value= (--value) names no column of labels",
            given=repr(value),
            allowed="the name of a column; or those of several annotators: value=['A', 'B'] (--value A,B)",
        )
    return ",".join(names)


def names_of_annotators(value: str | None) -> tuple[str, ...]:
    """Return the names that `value` separates by commas; empty if there are not at least two."""
    names = split_names(value)
    return names if len(names) > 1 else ()


def names_of_labels(value: str | None) -> tuple[str, ...]:
    """Return the names of the columns of labels; empty if none is named."""
    if value is None:
        return ()
    return names_of_annotators(value) or (value,)


def columns_of_annotators(table: SmallTable, value: str | None, *, are_optional: bool = False) -> list[str]:
    """Return the columns that `value` names, one for each annotator; empty if it names one column.

    The result is also empty if all of them are missing.

    Raises
    ------
    InputError
        For a column that is named twice, for columns without a common value, and for a missing column unless
        columns `are_optional`.
    """
    if value is not None and value in table.joined:
        return list(table.joined[value])
    names = names_of_annotators(value)
    if not names or table.find(str(value)) is not None:
        return []
    columns = [column for column in map(table.find, names) if column is not None]
    repeated = next((column for column in columns if columns.count(column) > 1), None)
    if repeated is not None:
        raise InputError(
            f"{table.table_name}: value= (--value) names the column {repeated!r} twice",
            given=value,
            action="Name the column of each annotator once.",
        )
    if not columns:
        return []
    if len(columns) < len(names) and not are_optional:
        # Raises the error for an unknown column.
        table.values(next(name for name in names if table.find(name) is None))
    _require_common_values(table, columns)
    return columns


def _require_common_values(table: SmallTable, columns: Sequence[str]) -> None:
    """Refuse columns of annotators without a common value, one of which is probably not a column of labels.

    Numbers may differ, such as scores, and so may the words of one vocabulary, such as pass and fail.
    """
    texts = {column: _distinct_answers(table, column) for column in columns}
    texts = {column: answers for column, answers in texts.items() if answers}
    for column, answers in texts.items():
        others = set().union(*(entries for name, entries in texts.items() if name != column))
        if not others or answers & others or _are_comparable(answers | others):
            continue
        other = next(name for name in texts if name != column)
        raise InputError(
            f"{table.table_name}: {column!r} has no value in common with the other columns of labels",
            given=f"{column!r}: {_shown_texts(answers)}; {other!r}: {_shown_texts(texts[other])}",
            allowed="columns in which each annotator writes the same labels",
            action="Leave out a column that is not an annotator's, or write the same words in each column.",
        )


def _distinct_answers(table: SmallTable, column: str) -> set[str]:
    """Return the distinct texts of a column of labels, without those that mean no answer."""
    entries = [entry if isinstance(entry, list) else [entry] for entry in table.answers(column)]
    texts = {plain_text(entry) for values in entries for entry in values}
    return {comparison_key(text) for text in texts if text is not None and not is_no_answer(text)}


def _are_comparable(texts: Collection[str]) -> bool:
    """Return whether texts are numbers, or words of one vocabulary."""
    are_numbers = all(np.isfinite(number_of_text(text)) for text in texts)
    return are_numbers or any(vocabulary.keys() >= set(texts) for vocabulary in VOCABULARIES)


def _shown_texts(texts: Collection[str]) -> str:
    """Return the first few of some texts."""
    return ", ".join(map(repr, sorted(texts)[:MAX_VALUES_SHOWN]))


def labels_of_annotators(labels: Mapping[str, Labels]) -> Labels:
    """Return the labels of several annotators in one table, by name, with a row for each answer.

    Raises
    ------
    LabelError
        If the labels of one of them are of several annotators already.
    """
    parts = list(labels.values())
    first = parts[0]
    if first.annotators is not None:
        raise LabelError(
            f"{first.source}: annotators are named in a column, and by the columns of labels",
            given=", ".join(map(repr, labels)),
            action="Name one column of labels: value= (--value COL).",
        )
    named = [replace(part, annotators=(name,) * len(part.ids)) for name, part in labels.items()]
    places = tuple(place for part in parts for place in part.places or ())
    return replace(
        concatenate_labels(named),
        places=places or None,
        source=first.source,
        # Each column has the notes of its table.
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def concatenate_labels(parts: Sequence[Labels]) -> Labels:
    """Return the rows of several labels as one; a missing annotator is an empty text if others have names."""
    have_annotators = any(part.annotators for part in parts)
    annotators = (name for part in parts for name in part.annotators or ("",) * len(part.ids))
    failed = (entry for part in parts for entry in part.failed or (False,) * len(part.ids))
    sets = (entry for part in parts for entry in part.sets or (None,) * len(part.ids))
    tokens = (entry for part in parts for entry in part.tokens or ("",) * len(part.ids))
    return Labels(
        ids=tuple(unit for part in parts for unit in part.ids),
        values=tuple(answer for part in parts for answer in part.values),
        annotators=tuple(annotators) if have_annotators else None,
        columns=_shared_columns(parts),
        places=tuple(part.place(row) for part in parts for row in range(len(part.ids))),
        failed=tuple(failed) if any(part.failed for part in parts) else None,
        sets=tuple(sets) if any(part.sets for part in parts) else None,
        tokens=tuple(tokens) if any(part.tokens for part in parts) else None,
        notes=tuple(note for part in parts for note in part.notes),
    )


def _shared_columns(parts: Sequence[Labels]) -> dict[str, tuple[Any, ...]]:
    """Return the other columns that all files have."""
    if not parts:
        return {}
    shared = set.intersection(*(set(part.columns) for part in parts))
    return {name: tuple(entry for part in parts for entry in part.columns[name]) for name in shared}
