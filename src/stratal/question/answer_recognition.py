"""Recognise the column of the model's answers and the judges, with which labels are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stratal.names import option_of
from stratal.question.column_kinds import (
    CERTAINLY_LABELS,
    are_answers,
    are_scores_in_percent,
    columns_without,
    is_comparable,
    label_certainty,
    named_like_labels,
)
from stratal.question.column_words import (
    ANSWER_WORDS,
    CLASS_NAMES,
    CORRECTNESS_WORDS,
    HUMAN_LABEL_WORDS,
    JUDGE_WORDS,
    LABEL_NAMES,
    NO_COLUMN,
    NO_LABEL_WORDS,
    PROXY_WORDS,
)
from stratal.question.facts import MAX_RATINGS, ColumnFacts
from stratal.question.label_recognition import compare_option
from stratal.question.recognised_roles import Recognition, RoleQuestion, StatedRoles


def with_answer_and_judges(
    recognition: Recognition, columns: list[ColumnFacts], stated: StatedRoles
) -> tuple[Recognition, list[ColumnFacts]]:
    """Return the recognition with the column of answers or the judges, and the columns that have no role."""
    labels = recognition.columns.get(recognition.value or "")
    if labels is None or recognition.has_models:
        return recognition, columns_without(columns, *recognition.judges)
    if stated.answer is None and stated.is_compared is None:
        # Results may be reported by the model's answers.
        groups = [recognition.columns[name] for name in stated.groups if name in recognition.columns]
        answers = [column for column in groups if column.words & ANSWER_WORDS]
        recognition = _with_answer(recognition, [*columns, *answers], labels)
    columns = columns_without(columns, recognition.answer)
    if recognition.answer is None and stated.judges is None:
        recognition = _with_judges(recognition, columns, labels)
    if recognition.answer is None and stated.no_judge:
        columns = columns_without(columns, *_with_judges(recognition, columns, labels).judges)
    return recognition, columns_without(columns, *recognition.judges)


def _with_answer(
    recognition: Recognition, columns: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with the column of answers that labels are compared with, or a question."""
    if labels.is_nested:
        comparable = [column for column in columns if column.is_complete and column.is_nested]
    else:
        comparable = [column for column in columns if are_answers(labels, column)]
    named = [column for column in comparable if column.words & ANSWER_WORDS]
    are_numbers = labels.verdicts is not None or labels.is_number
    are_classes = labels.folded_name in CLASS_NAMES and all(column.are_truth_values for column in named)
    if named and labels.are_truth_values and not are_classes:
        return _with_truth_question(recognition, named, labels)
    if named and labels.verdicts is not None and labels.words & CORRECTNESS_WORDS:
        # `correct` with yes and no may be the correct answer.
        return _with_meaning_question(recognition, named, labels)
    if not named and labels.folded_name in CLASS_NAMES and labels.verdicts is not None:
        # Classes in other words, such as yes and 1, are compared too, so that the comparison refuses them.
        named = [column for column in columns if column.words & ANSWER_WORDS and column.verdicts is not None]
    if len(named) == 1:
        return replace(recognition, answer=named[0].name)
    if are_numbers and not named:
        return _with_class_question(recognition, comparable, labels)
    candidates = named or [
        column
        for column in comparable
        if label_certainty(column) < CERTAINLY_LABELS and not are_scores_in_percent(column)
    ]
    if len(candidates) == 1:
        return replace(recognition, answer=candidates[0].name)
    if not candidates:
        return recognition
    names = tuple(column.name for column in candidates)
    options = [option_of("predicted", name) for name in names]
    question = RoleQuestion(
        role="predicted",
        text="several columns may contain the model's answers",
        candidates=names,
        options=(*options, compare_option(names, "answers")),
    )
    return recognition.with_question(question)


def _with_truth_question(
    recognition: Recognition, answers: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with the question whether the labels 0 and 1 are classes, or wrong and right.

    If the name of their column means correct, they are wrong and right, and there is no question.
    """
    if labels.words & CORRECTNESS_WORDS:
        return recognition
    return _with_meaning_question(recognition, answers, labels)


def _with_meaning_question(
    recognition: Recognition, answers: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with the question whether labels are classes, or mean wrong and right."""
    words = ["0", "1"] if labels.are_truth_values else sorted(labels.values or ())
    names = tuple(column.name for column in answers)
    class_options = (option_of("predicted", name) for name in names)
    question = RoleQuestion(
        role="predicted",
        text=f"the labels {' and '.join(words)} in {labels.name!r} may be classes, or mean wrong and right",
        candidates=names,
        options=(
            *(f"if they are classes: {option}" for option in class_options),
            f"if they mean wrong and right: predicted={NO_COLUMN!r} (--predicted {NO_COLUMN})",
        ),
    )
    return recognition.with_question(question)


def _with_class_question(
    recognition: Recognition, comparable: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with a question if labels that are whole numbers may be classes or quantities.

    The `comparable` columns have most of the numbers, too.
    """
    is_rating = bool(labels.words & PROXY_WORDS) or labels.n_distinct <= 2
    candidates = [column for column in comparable if column.is_number and not column.is_measurement]
    candidates = [column for column in candidates if not column.words & (PROXY_WORDS | JUDGE_WORDS)]
    # More numbers than ratings have may be codes of classes if they repeat.
    are_many = labels.n_distinct > MAX_RATINGS and labels.folded_name in LABEL_NAMES
    is_unclear = bool(candidates) or (are_many and labels.n_distinct <= labels.n_entries / 2)
    if not labels.is_number or not labels.is_whole or is_rating or not is_unclear:
        return recognition
    names = tuple(column.name for column in candidates)
    options = [option_of("predicted", name) for name in names]
    question = RoleQuestion(
        role="predicted",
        text=f"the whole numbers in {labels.name!r} may be classes or quantities",
        candidates=names or (labels.name,),
        options=(
            *(f"if they are classes: {option}" for option in options or ["predicted=… (--predicted COLUMN)"]),
            "if they are quantities: predicted='none' (--predicted none)",
        ),
    )
    return recognition.with_question(question)


def _with_judges(
    recognition: Recognition, columns: Sequence[ColumnFacts], labels: ColumnFacts
) -> Recognition:
    """Return the recognition with the judges, and notes on columns that may be judges but are not used."""
    comparable = [column for column in columns if not column.is_measurement and is_comparable(column, labels)]
    # A column with an entry in fewer than half of the rows is not used.
    candidates = [column for column in comparable if 2 * column.n_entries >= column.n_rows]
    named = [
        column
        for column in comparable
        if column.words & JUDGE_WORDS and not column.words & (NO_LABEL_WORDS | HUMAN_LABEL_WORDS)
    ]
    judges = [column for column in named if column in candidates]
    notes_on_sparse = [
        f"{column.name!r} has an entry in only {column.n_entries:,} of {column.n_rows:,} rows and is not "
        f"used; to compare it with the labels: {option_of('judge', column.name)}"
        for column in named
        if column not in candidates
    ]
    recognition = recognition.with_notes(*notes_on_sparse)
    verdicts = [column for column in judges if column.verdicts is not None]
    # A judge with verdicts usually has a column of scores too.
    if verdicts and len(verdicts) < len(judges):
        judges = verdicts
    if len(judges) > 1 and len(verdicts) == 0:
        judges = named_like_labels(judges, labels) or judges
    if judges:
        return replace(recognition, judges=tuple(column.name for column in judges))
    complete_verdicts = [
        column for column in candidates if column.is_complete and column.verdicts is not None
    ]
    unnamed = [
        column for column in complete_verdicts if not column.is_number or column.words & CORRECTNESS_WORDS
    ]
    notes = tuple(
        f"{column.name!r} is not used; if it is a judge: {option_of('judge', column.name)}"
        f"; if it is the model's answer: {option_of('predicted', column.name)}"
        for column in unnamed
    )
    return recognition.with_notes(*notes)


def with_notes_on_answers(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with a note on columns of answers that labels are not compared with."""
    may_be_compared = recognition.value is not None and not recognition.has_models
    if not may_be_compared or recognition.answer is not None or recognition.questions:
        return recognition
    notes = tuple(
        f"{column.name!r} is not used, because the labels count as numbers; if they are classes to compare "
        f"with it: {option_of('predicted', column.name)}"
        for column in columns
        if column.words & ANSWER_WORDS and column.are_classes and column.is_complete
    )
    return recognition.with_notes(*notes)
