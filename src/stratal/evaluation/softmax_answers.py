"""The model's answers in a table with the probabilities of all classes, but without a column of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stratal.arrays import FloatArray
from stratal.labels.label_values import class_text
from stratal.population.inspection import find_softmax_columns
from stratal.population.softmax import CONFIDENCE, PREDICTED_CLASS, class_names
from stratal.protocols import JsonDict
from stratal.question.facts import ColumnFacts
from stratal.tables.small_table import SmallTable, is_missing

# With fewer classes, labels that are numbers, such as 0 and 1, may be outcomes rather than classes.
_MIN_NUMBER_CLASSES = 3


def with_most_probable_class(
    rows: SmallTable, facts: Sequence[ColumnFacts], possible_labels: Sequence[str]
) -> SmallTable | None:
    """Return the table with the most probable class and its probability in place of all probabilities.

    The class is the model's answer. None without columns of probabilities, with those of two models, and
    unless the labels are the only column with the names of these classes: of two such columns, one may
    contain the answers.
    """
    if rows.find(PREDICTED_CLASS, CONFIDENCE) is not None:
        return None
    columns = _softmax_columns(rows, facts)
    if columns is None:
        return None
    classes = class_names(columns)
    if _has_other_softmax(rows, facts, columns):
        return None
    columns_of_classes = _columns_of_classes(rows, facts, columns, set(classes))
    if len(columns_of_classes) != 1 or columns_of_classes[0] not in possible_labels:
        return None
    probabilities = _matrix(rows, columns)
    answers = [classes[position] for position in probabilities.argmax(axis=1)]
    other_columns = {name: entries for name, entries in rows.columns.items() if name not in columns}
    new_columns = {PREDICTED_CLASS: answers, CONFIDENCE: probabilities.max(axis=1).tolist()}
    note = (
        f"{len(columns)} columns that add up to 1 ({columns[0]} … {columns[-1]}) are a softmax: the model's "
        "answer is the most probable class"
    )
    joined = {**rows.joined, **dict.fromkeys(new_columns, columns)}
    return replace(rows, columns={**other_columns, **new_columns}, joined=joined, notes=(*rows.notes, note))


def _matrix(rows: SmallTable, columns: Sequence[str]) -> FloatArray:
    """Return columns of numbers as a matrix (m, k)."""
    return np.column_stack([np.asarray(rows.values(name), dtype=np.float64) for name in columns])


def _softmax_columns(rows: SmallTable, facts: Sequence[ColumnFacts]) -> tuple[str, ...] | None:
    """Return the columns of probabilities that add up to 1 in each row; None if there are none."""
    descriptions: list[JsonDict] = [
        {
            "name": column.name,
            "kind": "number",
            "missing": 0,
            "minimum": column.minimum,
            "maximum": column.maximum,
            "mean": float(_matrix(rows, [column.name]).mean()),
        }
        for column in facts
        if column.is_number and column.is_complete and column.minimum is not None
    ]

    def row_sums(names: Sequence[str]) -> JsonDict:
        """Return the facts of columns by which `find_softmax_columns` decides whether they are a softmax."""
        probabilities = _matrix(rows, names)
        return {
            "n_rows": len(probabilities),
            "minimum": float(probabilities.min()),
            "max_deviation": float(np.abs(probabilities.sum(axis=1) - 1.0).max()),
        }

    return find_softmax_columns(descriptions, row_sums)


def _has_other_softmax(rows: SmallTable, facts: Sequence[ColumnFacts], columns: Sequence[str]) -> bool:
    """Return whether a second model has probabilities of the same classes."""
    others = [column for column in facts if column.name not in columns]
    other_columns = _softmax_columns(rows, others)
    return other_columns is not None and set(class_names(other_columns)) == set(class_names(columns))


def _columns_of_classes(
    rows: SmallTable, facts: Sequence[ColumnFacts], probability_columns: Sequence[str], classes: set[str]
) -> list[str]:
    """Return the columns whose entries are names of the classes, at least two of them."""
    names = []
    for column in facts:
        may_be_classes = not column.is_number or len(classes) >= _MIN_NUMBER_CLASSES
        if column.name in probability_columns or not may_be_classes or column.n_distinct < 2:
            continue
        # Whole numbers beside empty cells are floats in pandas: 1.0 is the class 1.
        entries = {class_text(entry).strip() for entry in rows.values(column.name) if not is_missing(entry)}
        if entries <= classes:
            names.append(column.name)
    return names
