"""Recognise the column of labels, or several columns of outcomes that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote

from stratal.names import option_of
from stratal.question.column_kinds import (
    CERTAINLY_LABELS,
    NEUTRAL_NAME,
    NOT_LABELS,
    PROBABLY_LABELS,
    contains_labels,
    has_name_of_labels,
    have_outcomes,
    is_outcome,
    label_certainty,
    may_be_labels,
    may_be_sets,
)
from stratal.question.column_words import ANSWER_WORDS, CORRECTNESS_WORDS, MODEL_WORDS, PROXY_WORDS
from stratal.question.facts import ColumnFacts
from stratal.question.recognised_roles import Recognition, RoleQuestion, StatedRoles

# Largest number of columns that a question names as possible labels.
_MAX_LABELS_NAMED = 4


def with_labels(recognition: Recognition, columns: Sequence[ColumnFacts], stated: StatedRoles) -> Recognition:
    """Return the recognition with the column of labels, or a question; `columns` have no other role."""
    usable = [
        column
        for column in columns
        if label_certainty(column) > NOT_LABELS and (may_be_labels(column) or may_be_sets(column, columns))
    ]
    partial = [column for column in usable if column.is_partial and contains_labels(column, columns)]
    probable = [
        column for column in usable if column.is_complete and label_certainty(column) >= PROBABLY_LABELS
    ]
    complete = [
        column
        for column in probable
        if stated.answer is not None or has_name_of_labels(column) or have_outcomes(column, columns)
    ]
    if partial:
        return _with_label_column(recognition, _label_candidates(partial, complete))
    if complete:
        return _with_label_column(recognition, _most_certain(complete))
    scores_of_log = [column for column in columns if column.is_score_of_log]
    if scores_of_log:
        return _with_score_as_labels(recognition, scores_of_log)
    if recognition.model is not None:
        return _with_label_column(recognition, [column for column in columns if is_outcome(column)])
    return _with_compared_models(recognition, columns)


def _most_certain(columns: Sequence[ColumnFacts]) -> list[ColumnFacts]:
    """Return the columns whose names most certainly are those of labels."""
    max_certainty = max(map(label_certainty, columns))
    return [column for column in columns if label_certainty(column) == max_certainty]


def _label_candidates(partial: Sequence[ColumnFacts], complete: Sequence[ColumnFacts]) -> list[ColumnFacts]:
    """Return the columns that may have the labels, from those with gaps (`partial`) and without gaps."""
    candidates = _most_certain(partial)
    if label_certainty(candidates[0]) == CERTAINLY_LABELS:
        return candidates + [column for column in complete if label_certainty(column) == CERTAINLY_LABELS]
    return [*candidates, *complete]


def _with_score_as_labels(recognition: Recognition, scores: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with a score of a log as the labels, or a question."""
    passed = passing_metric([column.name for column in scores])
    if passed is None:
        return _with_label_column(recognition, scores)
    note = "'score' is not used; to estimate its mean: value='score' (--value score)"
    return replace(recognition, value=passed, notes=(*recognition.notes, note))


def passing_metric(names: Sequence[str]) -> str | None:
    """Return the score of a log that states whether an answer passed, if the only other one is `score`."""
    other_names = [name for name in names if name != "score"]
    if len(other_names) == 1 and len(names) == 2 and other_names[0] in CORRECTNESS_WORDS:
        return other_names[0]
    return None


def _with_label_column(recognition: Recognition, candidates: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the only candidate as the column of labels, or a question."""
    if len(candidates) == 1:
        return replace(recognition, value=candidates[0].name)
    names = tuple(column.name for column in candidates)
    if not candidates:
        text = "no column of labels is recognised"
        options: tuple[str, ...] = ("value='COLUMN' (--value COLUMN)",)
    else:
        text = "several columns may contain the labels"
        options = tuple(option_of("value", name) for name in names)
        if all(column.is_number or column.verdicts for column in candidates):
            options += (compare_option(names),)
        if all(column.is_partial or label_certainty(column) > NEUTRAL_NAME for column in candidates):
            options += (_annotators_option(names),)
    question = RoleQuestion(
        role="value", text=text, candidates=names, options=options, is_ambiguous=len(names) > 1
    )
    return recognition.with_question(question)


def _annotators_option(names: Sequence[str]) -> str:
    """Return the text of the option that names the columns of several annotators."""
    return f"if they are the answers of several annotators: {option_of('value', ','.join(names))}"


def compare_option(names: Sequence[str], content: str = "outcomes") -> str:
    """Return the text of the option that compares several models; `content` of the columns is theirs."""
    option = f"compare={list(names)} (--compare {quote(','.join(names))})"
    return f"if they are the {content} of several models: {option}"


def _with_compared_models(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the outcomes of several models, or a question."""
    outcomes = [
        column
        for column in columns
        if column.is_complete and column.verdicts is not None and not column.is_measurement
    ]
    correctness = [column for column in outcomes if column.words & CORRECTNESS_WORDS]
    others = [column for column in outcomes if column not in correctness]
    if len(correctness) == 1 and all(column.words & ANSWER_WORDS for column in others):
        return replace(recognition, value=correctness[0].name)
    if len(outcomes) > 1 and all(column.words & MODEL_WORDS for column in outcomes):
        return replace(recognition, models=tuple(column.name for column in outcomes))
    if len(outcomes) > 1:
        return _with_label_column(recognition, outcomes)
    empty_label_names = [
        name
        for name, column in recognition.columns.items()
        if not column.n_entries and label_certainty(column) >= PROBABLY_LABELS
    ]
    if empty_label_names:
        question = RoleQuestion(
            role="value",
            text=f"no row of column {empty_label_names[0]!r} has a label",
            candidates=(),
            options=("fill in labels, or name another column: value='COLUMN' (--value COLUMN)",),
        )
        return recognition.with_question(question)
    names = tuple(
        column.name
        for column in columns
        if may_be_labels(column) and not column.is_measurement and not column.words & PROXY_WORDS
    )
    options = [option_of("value", name) for name in names[:_MAX_LABELS_NAMED] or ("COLUMN",)]
    question = RoleQuestion(
        role="value",
        text="no column of labels is recognised",
        is_ambiguous=False,
        candidates=names,
        options=(*options, "if no row has a label, choose rows to label: stratal plan FILE"),
    )
    return recognition.with_question(question)
