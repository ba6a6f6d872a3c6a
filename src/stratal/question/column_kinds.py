"""What one column may be by its name and content: an id, labels, answers, a proxy, a weight, groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from stratal.question.code_numbers import is_missing_code
from stratal.question.column_words import (
    ANNOTATOR_WORDS,
    HUMAN_LABEL_WORDS,
    ID_NAMES,
    JUDGE_WORDS,
    LABEL_NAMES,
    MACHINE_WORDS,
    MEASUREMENT_WORDS,
    NO_LABEL_WORDS,
    OUTCOME_WORDS,
    PROBABILITY_WORDS,
    PROXY_WORDS,
    WEAK_LABEL_WORDS,
    WEIGHT_WORDS,
)
from stratal.question.content import is_content_text
from stratal.question.decoding import fold_text, truth_number
from stratal.question.facts import MAX_CLASS_LENGTH, MAX_RATINGS, MAX_VERDICTS, ColumnFacts


def columns_without(columns: Iterable[ColumnFacts], *names: str | None) -> list[ColumnFacts]:
    """Return the columns without those with the names."""
    return [column for column in columns if column.name not in names]


def has_fields(column: ColumnFacts, names: Iterable[str]) -> bool:
    """Return whether the entries are objects whose fields are columns of the table, such as `judge.score`."""
    return column.is_nested and any(name.startswith(f"{column.name}.") for name in names)


def is_named_id(column: ColumnFacts) -> bool:
    """Return whether a column is named like an id, such as `doc_id`."""
    return "id" in column.words or "uuid" in column.words or column.folded_name.endswith("id")


def may_be_id(column: ColumnFacts) -> bool:
    """Return whether a column may contain ids: no entry missing, all different, and no measurement.

    A column with a usual name of ids may have duplicates, which a note mentions.
    """
    if column.is_nested or column.is_date:
        return False
    # With more duplicates, such a column identifies something else, such as the item of each model's row.
    if column.folded_name in ID_NAMES and 2 * column.n_distinct > column.n_rows:
        return True
    if not column.is_complete or column.n_distinct != column.n_rows:
        return False
    if is_named_id(column):
        return True
    if column.is_number:
        return column.is_position and not column.words & (PROXY_WORDS | HUMAN_LABEL_WORDS)
    if is_content_text(column.name) or column.words & (MEASUREMENT_WORDS - {"code", "no"}):
        return False
    return column.mean_length <= MAX_CLASS_LENGTH


def id_preference(column: ColumnFacts) -> tuple[bool, bool, bool, bool]:
    """Return the sort key of candidates for the ids: usual names, other names of ids, text, short text."""
    is_usual = column.folded_name in ID_NAMES
    return (
        not is_usual,
        not is_named_id(column),
        column.is_number,
        column.mean_length > MAX_CLASS_LENGTH / 2,
    )


# How certain it is by the name of a column that it contains labels of people.
NOT_LABELS = -1
NEUTRAL_NAME = 0
POSSIBLY_LABELS = 1
PROBABLY_LABELS = 2
CERTAINLY_LABELS = 3


def label_certainty(column: ColumnFacts) -> int:
    """Return how certain it is by its name that a column contains labels of people."""
    words = column.words
    if column.folded_name in LABEL_NAMES:
        # A column `label` without gaps may also contain the model's answers.
        return CERTAINLY_LABELS if column.is_partial else PROBABLY_LABELS
    if words & NO_LABEL_WORDS or (column.is_measurement and not words & HUMAN_LABEL_WORDS):
        return NOT_LABELS
    if words & HUMAN_LABEL_WORDS and not words & MACHINE_WORDS:
        return CERTAINLY_LABELS
    if words & MACHINE_WORDS:
        return NOT_LABELS
    if words & WEAK_LABEL_WORDS:
        return POSSIBLY_LABELS
    return NEUTRAL_NAME


def has_name_of_labels(column: ColumnFacts) -> bool:
    """Return whether the name is that of people's labels, and not of the people."""
    return label_certainty(column) == CERTAINLY_LABELS and not column.words <= ANNOTATOR_WORDS


def may_be_labels(column: ColumnFacts) -> bool:
    """Return whether the entries may be labels, or the name is that of labels."""
    if column.is_date:
        return False
    # A column with a name of labels may contain sets of tags: lists, or text with separators.
    is_named = column.folded_name in LABEL_NAMES
    return is_named or column.is_number or column.are_classes or column.verdicts is not None


def may_be_sets(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    """Return whether a column may contain people's sets of tags: a model predicts sets for all rows."""
    if not column.is_nested or label_certainty(column) < PROBABLY_LABELS:
        return False
    return any(other.is_nested and other.is_complete and other is not column for other in columns)


def contains_labels(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    """Return whether a column with gaps has labels: by its name, or as verdicts or classes of few rows."""
    if label_certainty(column) > NEUTRAL_NAME:
        return True
    # People label few rows; a column with few gaps has other values, such as verdicts of a judge that failed.
    is_sparse = 2 * column.n_entries < column.n_rows
    return is_sparse and (column.verdicts is not None or _has_same_classes(column, columns))


def have_outcomes(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    """Return whether the entries, as labels, are outcomes: numbers, or classes that are compared with others.

    Classes in every row that occur in no other column are a model's answers.
    """
    if column.is_nested:
        return any(other.is_nested and other is not column for other in columns)
    return column.is_number or column.verdicts is not None or _has_same_classes(column, columns)


def _has_same_classes(column: ColumnFacts, columns: Sequence[ColumnFacts]) -> bool:
    """Return whether a column of classes shares them with another column, which may have the answers."""
    if not column.are_classes or column.is_number:
        return False
    return any(
        other is not column and other.is_complete and _share_classes(column, other) for other in columns
    )


def is_outcome(column: ColumnFacts) -> bool:
    """Return whether a column contains outcomes of a benchmark, by its name and content."""
    is_named = bool(column.words & OUTCOME_WORDS) and not column.is_measurement
    return is_named and (column.is_number or column.verdicts is not None)


def are_answers(labels: ColumnFacts, column: ColumnFacts) -> bool:
    """Return whether a column may contain a model's answers, if the labels are classes."""
    return column.is_complete and column.are_classes and _share_classes(labels, column)


def _share_classes(labels: ColumnFacts, other: ColumnFacts) -> bool:
    """Return whether most classes of the labels also occur in another column.

    Not all have to: people may use a class that the model never predicts. Codes of missing labels are not
    counted. Case and spaces are ignored here; the comparison of labels and answers reports them.
    """
    if labels.values is None or other.values is None:
        return False
    label_classes = set(map(class_key, labels.values))
    other_classes = set(map(class_key, other.values))
    codes = {value for value in label_classes - other_classes if is_missing_code(value)}
    return 2 * len(label_classes & other_classes) > len(label_classes - codes)


def class_key(text: str) -> str:
    """Return the text by which classes are recognised: 1, True and 01 are one class.

    The comparison of labels with answers refuses classes that differ in their spelling.
    """
    number = truth_number(text)
    if number.is_integer():
        return str(int(number))
    return fold_text(text)


def are_scores_in_percent(column: ColumnFacts) -> bool:
    """Return whether percentages are scores rather than classes such as 10%, 25% and 50%."""
    has_score_name = bool(column.words & (PROXY_WORDS | JUDGE_WORDS))
    return column.is_percentage and (has_score_name or column.n_distinct > MAX_RATINGS)


def is_comparable(column: ColumnFacts, labels: ColumnFacts) -> bool:
    """Return whether a judge's verdicts or scores can be compared with the labels."""
    # Two or three percentages, such as 0% and 100%, are verdicts.
    is_score = column.is_number or (column.is_percentage and column.n_distinct > MAX_VERDICTS)
    if labels.verdicts is not None:
        # A judge may have verdicts that no label has, such as `maybe` next to pass and fail.
        are_words = all(math.isnan(truth_number(text)) for text in column.values or ())
        return column.verdicts is not None or is_score or (are_words and _share_classes(labels, column))
    if labels.is_number:
        return is_score
    return _share_classes(labels, column)


def named_like_labels(columns: Sequence[ColumnFacts], labels: ColumnFacts) -> list[ColumnFacts]:
    """Return the columns whose names share a specific word with that of the labels, such as `tone`."""
    specific_words = labels.words - HUMAN_LABEL_WORDS - {"label", "score", "rating", "verdict"}
    return [column for column in columns if column.words & specific_words]


def may_be_proxy(column: ColumnFacts) -> bool:
    """Return whether a column may contain scores, by its name and content."""
    is_labels = label_certainty(column) >= PROBABLY_LABELS
    if not (column.is_number or column.is_percentage) or column.is_measurement or is_labels:
        return False
    if is_named_id(column) or column.words & HUMAN_LABEL_WORDS:
        return False
    if column.is_score_of_log or column.words & (PROXY_WORDS | JUDGE_WORDS):
        return True
    # A few percentages, such as discounts, are classes.
    return column.is_probability and not is_group(column)


def is_score_from_0_to_1(column: ColumnFacts) -> bool:
    """Return whether a column contains scores from 0 to 1 without gaps, and is not named as a probability."""
    has_score_name = bool(column.words & (PROXY_WORDS | JUDGE_WORDS)) or column.is_score_of_log
    has_range = column.is_complete and column.is_probability
    return has_score_name and has_range and not column.words & PROBABILITY_WORDS


def unreadable_score_note(column: ColumnFacts) -> str | None:
    """Return the note on a column whose scores are not numbers of one form; None for other columns."""
    if column.differing_entries is None or column.verdicts is not None:
        return None
    if not may_be_proxy(replace(column, is_percentage=True)):
        return None
    number, other = column.differing_entries
    if number is None:
        return (
            f"{column.name!r} is not used, because its entries, such as {other!r}, cannot be read as "
            "numbers; write them as numbers with a decimal point to use it"
        )
    return (
        f"{column.name!r} is not used, because it contains {other!r} next to numbers such as {number!r}; "
        "write all its entries as numbers of the same form to use it"
    )


def is_comparable_score(column: ColumnFacts) -> bool:
    """Return whether the entries are numbers, or verdicts that count as numbers."""
    return column.is_number or column.is_percentage or column.verdicts is not None


def may_be_weights(column: ColumnFacts) -> bool:
    """Return whether a column may contain the weights of the rows, by its name and content."""
    is_positive = column.minimum is not None and column.minimum > 0
    return bool(column.words & WEIGHT_WORDS) and column.is_number and is_positive and column.n_distinct > 1


def may_be_quantity(column: ColumnFacts) -> bool:
    """Return whether a column of numbers may be a score on any scale."""
    is_other = column.is_measurement or is_named_id(column) or label_certainty(column) > NEUTRAL_NAME
    return column.is_number and column.is_complete and column.n_distinct > 2 and not is_other


# A table of results with more groups is hard to read.
_MAX_GROUPS = 50


def is_group(column: ColumnFacts) -> bool:
    """Return whether a column contains categories by which results may be reported."""
    is_category = column.are_classes and not column.is_number and not column.is_measurement
    return is_category and column.is_complete and 1 < column.n_distinct <= _MAX_GROUPS
