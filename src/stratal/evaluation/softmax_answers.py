"""The model's answers in a table with the probabilities of all classes, but without a column of answers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.evaluation.request import EvaluationRequest
from stratal.labels.label_values import class_text, comparison_key
from stratal.names import option_of
from stratal.population.inspection import find_softmax_columns
from stratal.population.softmax import CONFIDENCE, PREDICTED_CLASS, class_names
from stratal.protocols import JsonDict
from stratal.question.column_kinds import class_key
from stratal.question.column_words import ANSWER_WORDS, CLASS_NAMES
from stratal.question.decoding import fold_text
from stratal.question.facts import ColumnFacts
from stratal.question.recognised_roles import Recognition
from stratal.tables.small_table import SmallTable, is_missing

# With fewer classes, labels that are numbers, such as 0 and 1, may be outcomes rather than classes.
_MIN_NUMBER_CLASSES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxColumns:
    """The columns of a table with the probabilities of all classes.

    Parameters
    ----------
    rows : SmallTable
        The table, in which percentages in these columns are shares.
    columns : tuple of str
        The k columns.
    probabilities : float (m, k)
        NaN where a row has no probability.
    """

    rows: SmallTable
    columns: tuple[str, ...]
    probabilities: FloatArray

    @classmethod
    def find(cls, rows: SmallTable, facts: Sequence[ColumnFacts]) -> SoftmaxColumns | None:
        """Return the columns that add up to 1 in each row that has them; None if there are none."""
        possible = [
            column
            for column in facts
            if (column.is_number or column.is_percentage) and column.minimum is not None
        ]
        shares = rows.with_shares([column.name for column in possible])
        descriptions: list[JsonDict] = [
            {
                "name": column.name,
                "kind": "number",
                "missing": 0,
                "minimum": column.minimum,
                "maximum": column.maximum,
                "mean": float(np.nanmean(_matrix(shares, [column.name]))),
            }
            for column in possible
        ]

        def row_sums(names: Sequence[str]) -> JsonDict:
            """Return the facts by which `find_softmax_columns` decides whether columns are a softmax."""
            probabilities = _matrix(shares, names)
            complete_rows = probabilities[~np.isnan(probabilities).any(axis=1)]
            # Columns with few common rows have nothing to do with each other.
            if 2 * len(complete_rows) < len(probabilities):
                return {"n_rows": 0}
            return {
                "n_rows": len(complete_rows),
                "minimum": float(complete_rows.min()),
                "max_deviation": float(np.abs(complete_rows.sum(axis=1) - 1.0).max()),
            }

        columns = find_softmax_columns(descriptions, row_sums)
        if columns is None:
            return None
        return cls(rows=rows.with_shares(columns), columns=columns, probabilities=_matrix(shares, columns))

    @property
    def classes(self) -> list[str]:
        """The names of the classes (k,)."""
        return class_names(self.columns)

    @property
    def answers(self) -> list[str]:
        """The most probable class of each row (m,), which has all probabilities."""
        return [self.classes[position] for position in self.probabilities.argmax(axis=1)]

    @property
    def description(self) -> str:
        """The first and the last column."""
        return f"{self.columns[0]} … {self.columns[-1]}"

    def table(self) -> SmallTable:
        """Return the table with the most probable class and its probability in place of all probabilities.

        Raises
        ------
        InputError
            If a row lacks a probability.
        """
        self._require_complete()
        rows = self.rows
        other_columns = {name: entries for name, entries in rows.columns.items() if name not in self.columns}
        new_columns = {PREDICTED_CLASS: self.answers, CONFIDENCE: self.probabilities.max(axis=1).tolist()}
        note = (
            f"{len(self.columns)} columns that add up to 1 ({self.description}) are a softmax: the model's "
            "answer is the most probable class"
        )
        joined = {**rows.joined, **dict.fromkeys(new_columns, self.columns)}
        return replace(
            rows, columns={**other_columns, **new_columns}, joined=joined, notes=(*rows.notes, note)
        )

    def has_names(
        self, entries: Sequence[object], request: EvaluationRequest, *, allows_truth_values: bool
    ) -> bool:
        """Return whether entries are names of the classes, as written or as the request maps them.

        Differences in case are ignored; the comparison of labels with answers reports them. The truth values
        True and False may be the classes 1 and 0.
        """
        meanings = {comparison_key(text): value for text, value in (request.mapping or {}).items()}
        # Whole numbers beside empty cells are floats in pandas: 1.0 is the class 1.
        texts = {class_text(entry).strip() for entry in entries if not is_missing(entry)}
        names = [meanings.get(comparison_key(text), text) for text in texts]
        key = class_key if allows_truth_values else fold_text
        keys = {key(class_text(name)) for name in names if name is not None}
        return bool(keys) and keys <= set(map(key, self.classes))

    def _require_complete(self) -> None:
        """Refuse rows that lack a probability, in which the most probable class is unknown."""
        is_incomplete = np.isnan(self.probabilities).any(axis=1)
        if np.any(is_incomplete):
            first = self.rows.places[int(np.argmax(is_incomplete))]
            count = int(np.sum(is_incomplete))
            raise InputError(
                f"{self.rows.table_name}: the columns {self.description} are a softmax, but "
                f"a probability is missing in {count:,} of {len(self.rows):,} rows",
                given=f"the first in {first}",
                allowed="a probability of each class in every row",
                action="Fill in or drop these rows, or name a column of the model's answers: predicted= "
                "(--predicted COL).",
            )


def with_most_probable_class(
    rows: SmallTable, request: EvaluationRequest, recognition: Recognition
) -> SmallTable | None:
    """Return the table with the most probable class as the model's answer; see `SoftmaxColumns.table`.

    None without columns of probabilities, with those of two models, if the labels are not the names of these
    classes, and if another column has the answers.

    Raises
    ------
    InputError
        If a row lacks a probability, and if a column that differs from the most probable class may have the
        answers.
    """
    facts = [*recognition.columns.values()]
    if rows.find(PREDICTED_CLASS, CONFIDENCE) is not None:
        return None
    softmax = SoftmaxColumns.find(rows, facts)
    if softmax is None or _has_other_softmax(softmax, facts):
        return None
    labels = _column_of_labels(softmax, request, recognition)
    if labels is None:
        return None
    if recognition.answer is None:
        return softmax.table()
    answer = recognition.columns[recognition.answer]
    if not answer.words & ANSWER_WORDS:
        _require_most_probable_class(softmax, answer.name)
    return None


def most_probable_class_as_stated(rows: SmallTable, facts: Sequence[ColumnFacts]) -> SmallTable:
    """Return the table with the most probable class, which the request names as the column of answers.

    Without columns of probabilities, the table is unchanged.
    """
    softmax = SoftmaxColumns.find(rows, facts)
    if rows.find(PREDICTED_CLASS, CONFIDENCE) is not None or softmax is None:
        return rows
    return softmax.table()


def _require_most_probable_class(softmax: SoftmaxColumns, name: str) -> None:
    """Refuse a column that is no column of answers by its name, and differs from the most probable class."""
    entries = [class_text(entry).strip() for entry in softmax.rows.values(name)]
    if entries == softmax.answers:
        return
    raise InputError(
        f"{softmax.rows.table_name}: the model's answers may be {name!r}, or the most probable classes of "
        f"{softmax.description}",
        given=f"{name!r} differs from the most probable class",
        action=f"State it: {option_of('predicted', name)}, or {option_of('predicted', PREDICTED_CLASS)} for "
        "the most probable class.",
    )


def _matrix(rows: SmallTable, columns: Sequence[str]) -> FloatArray:
    """Return columns of numbers as a matrix (m, k), NaN where an entry is missing."""
    return np.column_stack([rows.numbers_or_nan(name) for name in columns])


def _has_other_softmax(softmax: SoftmaxColumns, facts: Sequence[ColumnFacts]) -> bool:
    """Return whether a second model has probabilities of the same classes."""
    others = [column for column in facts if column.name not in softmax.columns]
    other = SoftmaxColumns.find(softmax.rows, others)
    return other is not None and set(other.classes) == set(softmax.classes)


def _column_of_labels(
    softmax: SoftmaxColumns, request: EvaluationRequest, recognition: Recognition
) -> str | None:
    """Return the column of labels if it has names of the classes; None otherwise.

    If no column of labels is recognised, it must be the only column with names of these classes: of two, one
    may contain the answers.
    """
    possible_labels: Collection[str] = recognition.possible_labels
    if recognition.value is not None:
        possible_labels = [recognition.value]
    names = []
    for column in recognition.columns.values():
        is_named = column.folded_name in CLASS_NAMES
        may_be_classes = is_named or not column.is_number or len(softmax.classes) >= _MIN_NUMBER_CLASSES
        if column.name in softmax.columns or not may_be_classes:
            continue
        is_constant = column.n_distinct < 2 and column.name != recognition.value
        entries = softmax.rows.columns[column.name]
        if not is_constant and softmax.has_names(entries, request, allows_truth_values=is_named):
            names.append(column.name)
    if recognition.value in names:
        return recognition.value
    if len(names) == 1 and names[0] in possible_labels:
        return names[0]
    return None
