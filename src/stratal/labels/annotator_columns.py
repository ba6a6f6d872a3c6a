"""Tables with a column of labels for each annotator.

In this module, `value` is the value of the option with this name: the name of the column of labels, or the
names of several annotators' columns, separated by commas.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from stratal.arrays import field_values, number_of_text
from stratal.errors import InputError, LabelError, list_first
from stratal.labels.label_values import MAX_VALUES_SHOWN, comparison_key
from stratal.labels.labels import MISSING_ENTRIES, Labels
from stratal.labels.missing_codes import MIN_LABELS_PER_CLASS
from stratal.names import split_names
from stratal.protocols import Keywords
from stratal.question.tags import SEPARATORS, read_set, tags_of
from stratal.question.vocabulary import BINARY_VOCABULARIES, VOCABULARIES
from stratal.tables.no_answer import is_no_answer
from stratal.tables.small_table import SmallTable, is_missing, plain_text

# With fewer answers, annotators may have no label in common by chance.
_MIN_ANSWERS = 5

_TAG_SEPARATOR = re.compile(f"[{re.escape(''.join(SEPARATORS))}]")


def join_column_names(value: str | Sequence[str] | None) -> str | None:
    """Return the names of the columns of labels as one text, separated by commas; None if none is named.

    Raises
    ------
    InputError
        For values that are not names.
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
    """Return the names in `value` if there are several, otherwise an empty tuple."""
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
    # `join_annotators` has added a column `value` to the table.
    if value is not None and value in table.joined:
        return list(table.joined[value])
    names = names_of_annotators(value)
    # A column's name may contain commas.
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
    """Return the table with a column `value` of the first answer in each row, if several columns are named.

    The new column states which rows have a label. Labels that the `mapping` declares to mean no answer are
    only used if no annotator has an answer.

    Raises
    ------
    InputError
        As `columns_of_annotators` and `require_common_values`.
    """
    names = columns_of_annotators(table, value)
    if not names or value in table.joined:
        return table
    require_common_values(table, names, mapping)
    no_answer_keys = {comparison_key(text) for text, meaning in (mapping or {}).items() if meaning is None}

    def first_answer(entries: Sequence[Any]) -> Any:
        labels = [entry for entry in entries if not is_missing(entry)]
        answers = (label for label in labels if comparison_key(label) not in no_answer_keys)
        return next(answers, next(iter(labels), None))

    column = str(value)
    first_answers = [first_answer(entries) for entries in zip(*map(table.values, names), strict=True)]
    return replace(
        table,
        columns={**table.columns, column: first_answers},
        joined={**table.joined, column: tuple(names)},
    )


def require_common_values(
    table: SmallTable, columns: Sequence[str], mapping: Mapping[Any, Any] | None = None
) -> None:
    """Refuse columns without a common value, one of which is probably not a column of labels.

    Numbers, words of one vocabulary (such as pass and fail), free text, and fewer than `_MIN_ANSWERS` answers
    are accepted. Labels in a `mapping` count as the numbers or classes that they are mapped to.
    """
    meanings = {comparison_key(text): meaning for text, meaning in (mapping or {}).items()}
    counts = {column: _count_answers(table, column, meanings) for column in columns}
    counts = {column: count for column, count in counts.items() if count.total() >= _MIN_ANSWERS}
    # Most answers of free text occur once.
    if all(count.total() < MIN_LABELS_PER_CLASS * len(count) for count in counts.values()):
        return
    for column, count in counts.items():
        answers = set(count)
        other_answers = set().union(*(count for name, count in counts.items() if name != column))
        if not other_answers or answers & other_answers or _are_comparable(answers | other_answers):
            continue
        other_column = next(name for name in counts if name != column)
        other_text = f"{other_column!r}: {_list_texts(counts[other_column])}"
        raise InputError(
            f"{table.table_name}: {column!r} has no value in common with the other columns of labels",
            given=f"{column!r}: {_list_texts(answers)}; {other_text}",
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
    # Next to numbers, words must count as 1 and 0.
    vocabularies = BINARY_VOCABULARIES if len(words) < len(texts) else VOCABULARIES
    return not words or any(vocabulary.keys() >= words for vocabulary in vocabularies)


def _list_texts(texts: Collection[str]) -> str:
    """Return the first few texts as a list."""
    return list_first(map(repr, sorted(texts)), MAX_VALUES_SHOWN)


def labels_of_annotators(labels: Mapping[str, Labels]) -> Labels:
    """Return the labels of several annotators, given by name, as one with a row for each answer.

    Raises
    ------
    LabelError
        If the labels of one of them are of several annotators already.
    """
    first = next(iter(labels.values()))
    if first.annotators is not None:
        raise LabelError(
            f"{first.source}: annotators are named in a column, and by the columns of labels",
            given=", ".join(map(repr, labels)),
            action="Name one column of labels: value= (--value COL).",
        )
    named_labels = [one_column.of_annotator(name) for name, one_column in labels.items()]
    places = tuple(place for one_column in named_labels for place in one_column.places or ())
    return replace(
        concatenate_labels(named_labels),
        places=places or None,
        source=first.source,
        # All columns have the notes of their common table.
        notes=tuple(dict.fromkeys(note for one_column in named_labels for note in one_column.notes)),
    )


def concatenate_labels(sources: Sequence[Labels]) -> Labels:
    """Return the rows of several sources as one; missing names of annotators are empty texts."""
    optional_fields: Keywords = {}
    for name, missing_entry in MISSING_ENTRIES.items():
        columns = [field_values(source, (name,))[name] for source in sources]
        if any(columns):
            complete_columns = (
                column or (missing_entry,) * len(source.ids)
                for source, column in zip(sources, columns, strict=True)
            )
            optional_fields[name] = tuple(chain.from_iterable(complete_columns))
    return Labels(
        ids=tuple(unit for source in sources for unit in source.ids),
        values=tuple(answer for source in sources for answer in source.values),
        columns=_shared_columns(sources),
        places=tuple(source.place(row) for source in sources for row in range(len(source.ids))),
        notes=tuple(note for source in sources for note in source.notes),
        **optional_fields,
    )


def _shared_columns(sources: Sequence[Labels]) -> dict[str, tuple[Any, ...]]:
    """Return the further columns that all sources have."""
    if not sources:
        return {}
    names = set.intersection(*(set(source.columns) for source in sources))
    return {name: tuple(entry for source in sources for entry in source.columns[name]) for name in names}
