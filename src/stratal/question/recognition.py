"""Recognise the roles of a table's columns by their names and contents.

A needed role with several candidates is a `RoleQuestion`, which callers turn into an error with the options
to type. An optional role with several candidates is not used, and a note names the options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote

from stratal.names import option_of
from stratal.question.answer_recognition import with_answer_and_judges, with_notes_on_answers
from stratal.question.column_kinds import (
    columns_without,
    has_fields,
    id_preference,
    is_group,
    is_named_id,
    may_be_id,
    may_be_weights,
)
from stratal.question.column_words import MODEL_NAMES
from stratal.question.facts import ColumnFacts
from stratal.question.label_recognition import with_labels
from stratal.question.recognised_roles import Recognition, StatedRoles
from stratal.question.score_recognition import note_on_weights, with_notes_on_scores, with_proxy


def recognise(columns: Sequence[ColumnFacts], stated: StatedRoles | None = None) -> Recognition:
    """Return the roles of columns by name and content.

    Parameters
    ----------
    columns : sequence of ColumnFacts
    stated : StatedRoles, optional
        Roles that the user states. They are not recognised again, and their columns have no other role.
    """
    stated = stated or StatedRoles()
    by_name = {column.name: column for column in columns}
    recognition = Recognition(
        n_rows=max((column.n_rows for column in columns), default=0),
        id=stated.id,
        value=stated.value,
        answer=stated.answer,
        judges=stated.judges or (),
        proxy=next(iter(stated.proxies or ()), None),
        model=stated.model,
        models=stated.models,
        columns=by_name,
    )
    remaining = [column for column in columns_without(columns, *stated.columns) if column.n_entries]
    remaining = [column for column in remaining if not has_fields(column, by_name)]
    # Each step removes the columns that get a role, so that no column has two roles.
    if not recognition.has_models:
        recognition = _with_model_column(recognition, remaining)
    remaining = columns_without(remaining, recognition.model)
    if recognition.id is None:
        recognition = _with_id(recognition, remaining)
    remaining = columns_without(remaining, recognition.id)
    if recognition.value is None and not recognition.models:
        recognition = with_labels(recognition, remaining, stated)
    remaining = columns_without(remaining, recognition.value, *recognition.models)
    recognition, remaining = with_answer_and_judges(recognition, remaining, stated)
    if stated.proxies is None and not recognition.has_models:
        recognition = with_proxy(recognition, remaining)
        remaining = columns_without(remaining, recognition.proxy)
        recognition = with_notes_on_scores(recognition, remaining)
    if stated.answer is None and stated.is_compared is None:
        recognition = with_notes_on_answers(recognition, remaining)
    if recognition.value is not None:
        notes = tuple(note_on_weights(column) for column in remaining if may_be_weights(column))
        recognition = recognition.with_notes(*notes)
    groups = [column.name for column in columns_without(remaining, recognition.proxy) if is_group(column)]
    return replace(recognition, groups=tuple(groups))


def _with_id(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the column of ids, if there is one."""
    candidates = [column for column in columns if may_be_id(column)]
    id_column = min(candidates, key=id_preference, default=None)
    if id_column is None:
        return recognition
    n_duplicates = id_column.n_entries - id_column.n_distinct
    notes = recognition.notes
    if n_duplicates:
        text = duplicates_text(id_column.name, n_duplicates)
        notes = (*notes, f"{text}: remove them, or number the rows: id='row' (--id row)")
    return replace(recognition, id=id_column.name, notes=notes)


def duplicates_text(name: str, count: int) -> str:
    """Return the statement that a column of ids has duplicate values."""
    if count == 1:
        noun = "duplicate value"
    else:
        noun = "duplicate values"
    return f"{name!r} has {count:,} {noun}, so it does not identify rows"


def _with_model_column(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the column of models, if each item has a row for each of them."""
    by_name = {column.folded_name: column for column in columns}
    model = next((by_name[name] for name in MODEL_NAMES if name in by_name), None)
    if model is None or not model.is_complete or not 1 < model.n_distinct <= recognition.n_rows // 2:
        return recognition
    # Text that differs in every row identifies a row, so that no item has several rows.
    if any(column.n_distinct == column.n_rows and not column.is_number for column in columns):
        return recognition
    # If each item has one row for each model, the number of rows is the number of items times that of models.
    columns_once_per_model = [
        column
        for column in columns
        if column.is_complete and column.n_distinct * model.n_distinct == column.n_rows
    ]
    items = [
        column
        for column in columns_once_per_model
        if column is not model and (is_named_id(column) or not column.is_number)
    ]
    item = min(items, key=id_preference, default=None) or _question_with_runs(columns, model)
    if item is None:
        name = model.name
        note = (
            f"{name!r} names {model.n_distinct:,} models, whose rows are evaluated together; to compare them "
            f"on the same items: {option_of('model', name)}; to report each: by={name!r} "
            f"(--by {quote(name)})"
        )
        return recognition.with_notes(note)
    return replace(recognition, model=model.name, id=recognition.id or item.name)


def _question_with_runs(columns: Sequence[ColumnFacts], model: ColumnFacts) -> ColumnFacts | None:
    """Return the column of questions that each model has answered several times; None without one."""
    questions = [column for column in columns if column.is_complete and column.may_be_repeated_questions]
    run_counts = [column.n_distinct for column in columns if column.is_complete and column.may_number_runs]
    for question in sorted(questions, key=id_preference):
        n_runs, remainder = divmod(question.n_rows, question.n_distinct * model.n_distinct)
        is_balanced = remainder == 0 and n_runs > 1
        # Some rows of runs may be missing.
        has_runs = any(
            question.n_rows <= question.n_distinct * model.n_distinct * count for count in run_counts
        )
        if is_balanced or (n_runs >= 1 and has_runs):
            return question
    return None
