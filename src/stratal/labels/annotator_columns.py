"""Labels of several annotators: a column of a table for each of them, joined to one row for each answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import number_of_text
from stratal.errors import InputError, LabelError, list_first
from stratal.labels.label_values import MAX_VALUES_SHOWN, comparison_key
from stratal.labels.labels import Labels
from stratal.labels.missing_codes import MIN_LABELS_PER_CLASS
from stratal.names import split_names
from stratal.question.tags import SEPARATORS, read_set, tags_of
from stratal.question.vocabulary import BINARY_VOCABULARIES, VOCABULARIES
from stratal.tables.no_answer import is_no_answer
from stratal.tables.small_table import SmallTable, is_missing, plain_text

# With fewer answers, annotators may have labelled units of different classes by chance.
_MIN_ANSWERS = 5

_TAG_SEPARATOR = re.compile(f"[{re.escape(''.join(SEPARATORS))}]")


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

    Raises
    ------
    InputError
        For a column that is named twice, and for a missing column unless columns `are_optional`.
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
    if len(columns) < len(names) and not are_optional:
        # Raises the error for an unknown column.
        table.values(next(name for name in names if table.find(name) is None))
    return columns


def join_annotators(
    table: SmallTable, value: str | None, mapping: Mapping[Any, Any] | None = None
) -> SmallTable:
    """Return the table with a column that states which rows have a label of any of several annotators.

    Each of them has a column, which `value` names. The new column has the first answer of each row; labels
    that the `mapping` declares to mean no answer are only used where no annotator has one.

    Raises
    ------
    InputError
        As `columns_of_annotators` and `require_common_values`.
    """
    names = columns_of_annotators(table, value)
    if not names or value in table.joined:
        return table
    require_common_values(table, names, mapping)
    no_answer = {comparison_key(text) for text, meaning in (mapping or {}).items() if meaning is None}

    def label_of(entries: Sequence[Any]) -> Any:
        present = [entry for entry in entries if not is_missing(entry)]
        answers = (entry for entry in present if comparison_key(entry) not in no_answer)
        return next(answers, next(iter(present), None))

    joined = str(value)
    labels = [label_of(entries) for entries in zip(*map(table.values, names), strict=True)]
    return replace(
        table, columns={**table.columns, joined: labels}, joined={**table.joined, joined: tuple(names)}
    )


def require_common_values(
    table: SmallTable, columns: Sequence[str], mapping: Mapping[Any, Any] | None = None
) -> None:
    """Refuse columns of annotators without a common value, one of which is probably not a column of labels.

    Numbers may differ, such as scores, and so may the words of one vocabulary, such as pass and fail, free
    text, and a few answers. Labels in a `mapping` are the numbers or classes that they are mapped to.
    """
    meanings = {comparison_key(text): meaning for text, meaning in (mapping or {}).items()}
    counts = {column: _count_answers(table, column, meanings) for column in columns}
    counts = {column: count for column, count in counts.items() if count.total() >= _MIN_ANSWERS}
    if all(count.total() < MIN_LABELS_PER_CLASS * len(count) for count in counts.values()):
        return
    for column, count in counts.items():
        answers = set(count)
        others = set().union(*(count for name, count in counts.items() if name != column))
        if not others or answers & others or _are_comparable(answers | others):
            continue
        other = next(name for name in counts if name != column)
        raise InputError(
            f"{table.table_name}: {column!r} has no value in common with the other columns of labels",
            given=f"{column!r}: {_shown_texts(answers)}; {other!r}: {_shown_texts(counts[other])}",
            allowed="columns in which each annotator writes the same labels",
            action="Leave out a column that is not an annotator's, or declare which words mean the same: "
            "mapping={'kitty': 'cat'} (--map kitty=cat).",
        )


def _count_answers(table: SmallTable, column: str, meanings: Mapping[str, Any]) -> Counter[str]:
    """Return how often each answer occurs in a column of labels, without those that mean no answer.

    Of a set of tags, each tag is counted.
    """
    texts = (text for entry in table.answers(column) for text in _texts_of_answer(entry))
    keys = (comparison_key(text) for text in texts)
    answers = (meanings.get(key, None if is_no_answer(key) else key) for key in keys)
    return Counter(comparison_key(answer) for answer in answers if answer is not None)


def _texts_of_answer(entry: object) -> Sequence[str]:
    """Return the text of an answer, or the tags of an answer that may be a set of them."""
    tags = read_set(entry)
    if tags is not None:
        return tags_of(tags)
    parts = _TAG_SEPARATOR.split(plain_text(entry) or "")
    return [part.strip() for part in parts if part.strip()]


def _are_comparable(texts: Collection[str]) -> bool:
    """Return whether texts are numbers, words of one vocabulary, or words for 1 and 0 with numbers."""
    words = {text for text in texts if np.isnan(number_of_text(text))}
    vocabularies = BINARY_VOCABULARIES if len(words) < len(texts) else VOCABULARIES
    return not words or any(vocabulary.keys() >= words for vocabulary in vocabularies)


def _shown_texts(texts: Collection[str]) -> str:
    """Return the first few of some texts."""
    return list_first(map(repr, sorted(texts)), MAX_VALUES_SHOWN)


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
