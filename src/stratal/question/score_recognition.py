"""Recognise the proxy, and note the scores and weights that are not used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from shlex import quote

from stratal.names import option_of
from stratal.question.column_kinds import (
    is_comparable_score,
    may_be_proxy,
    may_be_quantity,
    named_like_labels,
    unreadable_score_note,
)
from stratal.question.column_words import JUDGE_WORDS, PROXY_WORDS
from stratal.question.facts import ColumnFacts
from stratal.question.recognised_roles import Recognition

# Maximum number of unused scores that a note names, and of possible labels that a question names.
_MAX_SCORES_NAMED = 3


def with_proxy(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with the proxy: a column `proxy`, the first judge, or the likeliest score."""
    named = [
        column.name for column in columns if column.folded_name == "proxy" and is_comparable_score(column)
    ]
    if recognition.judges or named:
        return replace(recognition, proxy=[*named, *recognition.judges][0])
    candidates = [column for column in columns if may_be_proxy(column)]
    if recognition.value is not None:
        # A score with gaps cannot be the proxy, but an estimate is valid without one. A plan refuses gaps.
        notes = [_note_on_gaps(column) for column in candidates if not column.is_complete]
        notes += [note for note in map(unreadable_score_note, columns) if note is not None]
        recognition = recognition.with_notes(*notes)
        candidates = [column for column in candidates if column.is_complete]
    # The first test that a column passes decides; several columns that pass it are ambiguous.
    tests: list[Callable[[ColumnFacts], bool]] = [
        lambda column: column.folded_name in ("proxy", "confidence", "score", "judge"),
        lambda column: column.is_complete and bool(column.words & PROXY_WORDS) and column.is_probability,
        lambda column: bool(column.words & (PROXY_WORDS | JUDGE_WORDS)),
        lambda column: column.is_complete and column.is_score_of_log,
        lambda column: column.is_complete and column.n_distinct > 2,
    ]
    names_in_order = [column.name for passes in tests for column in candidates if passes(column)]
    recognition = replace(recognition, scores=tuple(dict.fromkeys(names_in_order)))
    for passes in tests:
        passing = [column for column in candidates if passes(column)]
        if len(passing) > 1 and recognition.value is not None:
            passing = named_like_labels(passing, recognition.columns[recognition.value]) or passing
        if len(passing) == 1:
            return replace(recognition, proxy=passing[0].name)
        if passing:
            options = " or ".join(option_of("proxy", column.name) for column in passing)
            text = f"no proxy is used, because several columns may be a proxy: {options}"
            return recognition.with_notes(text)
    return recognition


def _note_on_gaps(column: ColumnFacts) -> str:
    """Return the note that a score with gaps is not used."""
    return (
        f"{column.name!r} is not used, because {column.n_rows - column.n_entries:,} of {column.n_rows:,} "
        "rows have no score; fill in the missing scores to use it"
    )


def with_notes_on_scores(recognition: Recognition, columns: Sequence[ColumnFacts]) -> Recognition:
    """Return the recognition with a note on columns that may be scores and are not used."""
    labels = recognition.columns.get(recognition.value or "")
    # `with_proxy` has a note on several candidates already.
    has_note = recognition.proxy is None and recognition.scores
    # If every row has a label, the estimate needs no proxy.
    if labels is None or not labels.is_partial or has_note:
        return recognition
    if recognition.proxy is None:
        # Every number may be a score on another scale, such as a percentage.
        unused = [column for column in columns if may_be_quantity(column)]
        reason = "not recognised as a score"
    else:
        unused = [column for column in columns if may_be_proxy(column) and column.is_complete]
        reason = f"{recognition.proxy!r} is the proxy"
    if not unused:
        return recognition
    unused_names = [column.name for column in unused[:_MAX_SCORES_NAMED]]
    names = ", ".join(map(repr, unused_names))
    verb = "is" if len(unused) == 1 else "are"
    if recognition.proxy is None:
        purpose = "to use it"
        options = " or ".join(option_of("proxy", name) for name in unused_names)
    else:
        purpose = "to use all scores"
        score_names = [recognition.proxy, *unused_names]
        options = f"proxy={score_names!r} (--proxy {quote(','.join(score_names))})"
    note = f"{names} {verb} not used ({reason}); {purpose}: {options}"
    return recognition.with_notes(note)


def note_on_weights(column: ColumnFacts) -> str:
    """Return the note that a column may contain weights, which are not used."""
    option = option_of("weight", column.name)
    return f"{column.name!r} is not used; if it is the number of units that each row represents, add {option}"
