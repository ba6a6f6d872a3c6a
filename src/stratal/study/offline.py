"""Labelling without the server: items that one annotator takes away, and the answers that come back.

What goes out: `{"format": "stratal-offline", "version": 1, "study", "annotator", "question", "items"}`. What
comes back: `{"format": "stratal-actions", "version": 1, "study", "annotator", "actions"}`, each action with
`request` (unique), `action` (submit, skip, undo, flag, unflag or note), and `item`, `value`, `note`,
`seconds`, `at` as far as it has them. Taking the same file in again saves nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stratal.errors import InputError, LabelError
from stratal.study import showing
from stratal.study.answers import save_answer, save_mark, undo_last
from stratal.study.assignment import block
from stratal.study.journal import Entry, Transaction, setting
from stratal.study.question import Question
from stratal.study.records import FLAG, NOTE, SKIP, SUBMIT, UNDO, UNFLAG, Receipt
from stratal.study.team import known

OUT, BACK = "stratal-offline", "stratal-actions"
VERSION = 1
MOST_ACTIONS = 1_000_000
LARGEST = 200_000_000
"""Characters of a file that is taken in."""

TAKEN = (SUBMIT, SKIP, UNDO, FLAG, UNFLAG, NOTE)


def package(
    transaction: Transaction, question: Question, annotator: str, items: int | None
) -> dict[str, Any]:
    """Return what a page in one file needs, and keep its items for this annotator.

    Examples
    --------
    >>> package.__name__
    'package'
    """
    if items is not None and not (isinstance(items, int) and items > 0):
        raise InputError("items must be a whole number", given=items, allowed="1 or more")
    connection = transaction.connection
    shown = [
        showing.shown_item(connection, question, annotator, showing.item_row(connection, item)).to_dict()
        for item in block(transaction, annotator, items)
    ]
    return {
        "format": OUT, "version": VERSION, "study": setting(connection, "id"), "annotator": annotator,
        "question": question.to_dict(), "items": shown,
    }  # fmt: skip


def take_in(transaction: Transaction, question: Question, text: str, source: str) -> dict[str, int]:
    """Save the actions of a labels file, all of them or none; return how many were new and how many not.

    Raises
    ------
    LabelError
        For a file of another kind or another study, and for an action that cannot be taken, naming it.

    Examples
    --------
    >>> take_in.__name__
    'take_in'
    """
    described = _read(text, source)
    own = setting(transaction.connection, "id")
    if described.get("study") != own:
        raise LabelError(
            f"{source}: belongs to another study",
            given=repr(described.get("study"))[:60],
            allowed=f"study {own}",
            action="Take it in where its page came from.",
        )
    annotator = known(transaction.connection, str(described.get("annotator")))
    counts = {"saved": 0, "repeated": 0}
    for number, action in enumerate(_actions(described, source), start=1):
        place = f"{source}, action {number}"
        try:
            receipt = _save(transaction, question, annotator, action, place)
        except (InputError, TypeError) as error:
            if isinstance(error, LabelError):
                raise
            raise LabelError(f"{place}: {error}") from None
        counts["repeated" if receipt.repeated else "saved"] += 1
    return counts


def _read(text: str, source: str) -> dict[str, Any]:
    if len(text) > LARGEST:
        raise LabelError(f"{source}: is too large", given=len(text), allowed=f"{LARGEST:,} characters")
    try:
        described = json.loads(text)
    except (ValueError, RecursionError):
        raise LabelError(f"{source}: is no JSON", action="Give the file that the page saved.") from None
    if not isinstance(described, dict) or described.get("format") != BACK:
        raise LabelError(f"{source}: is not a labels file of the page", action="Give the file that it saved.")
    if described.get("version") != VERSION:
        raise LabelError(
            f"{source}: is of another version",
            given=repr(described.get("version"))[:40],
            action="Write the offline page again with this version, or read it with the one that wrote it.",
        )
    return described


def _actions(described: Mapping[str, Any], source: str) -> list[dict[str, Any]]:
    actions = described.get("actions")
    if not isinstance(actions, list) or not all(isinstance(action, dict) for action in actions):
        raise LabelError(
            f"{source}: holds no list of actions", action="Take the file as the offline page saved it."
        )
    if len(actions) > MOST_ACTIONS:
        raise LabelError(f"{source}: holds too many actions", given=len(actions), allowed=f"{MOST_ACTIONS:,}")
    return actions


def _save(
    transaction: Transaction, question: Question, annotator: str, action: Mapping[str, Any], place: str
) -> Receipt:
    kind, item, request = action.get("action"), action.get("item"), action.get("request")
    if kind not in TAKEN:
        raise LabelError(f"{place}: no such action", given=repr(kind)[:60], allowed=", ".join(TAKEN))
    if not isinstance(request, str) or not request:
        raise LabelError(f"{place}: has no request", allowed="a text that no other action has")
    if kind != UNDO and not isinstance(item, str):
        raise LabelError(
            f"{place}: names no item",
            given=repr(item)[:60],
            action="Take the file as the offline page saved it.",
        )
    note, seconds = action.get("note") or "", action.get("seconds")
    if not isinstance(note, str):
        raise LabelError(
            f"{place}: the note is not text", action="Take the file as the offline page saved it."
        )
    timed = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    entry = Entry(
        annotator=annotator, action=str(kind), id=None if kind == UNDO else item, note=note,
        value=question.answer(action.get("value")) if kind == SUBMIT else None,
        seconds=seconds if timed else None, request=request,
        shown=_shown(transaction, question, annotator, item) if kind == SUBMIT else None,
    )  # fmt: skip
    if kind == UNDO:
        return undo_last(transaction, entry)
    return (save_answer if kind in (SUBMIT, SKIP) else save_mark)(transaction, entry)


def _shown(transaction: Transaction, question: Question, annotator: str, item: Any) -> str | None:
    order = showing.sides(question, str(item), annotator, str(setting(transaction.connection, "id")))
    return None if order is None else "|".join(order)
