"""What a page asks of a study, in plain dicts; the server's page and the notebook's say the same."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from stratal.errors import InputError
from stratal.study.journal import LONGEST_NOTE, LONGEST_REQUEST, LONGEST_TIME
from stratal.study.records import ADJUDICATE, FLAG, NOTE, SKIP, SUBMIT, UNDO, UNFLAG, Receipt
from stratal.study.study import Study
from stratal.study.web.content import Look
from stratal.study.web.view import disagreement_view, item_view, question_view, said_value, sides_for

LONGEST_ID = 10_000
NEEDS = {
    SUBMIT: ("item", "value"), SKIP: ("item",), UNDO: (), FLAG: ("item",), UNFLAG: ("item",),
    NOTE: ("item", "note"), ADJUDICATE: ("item",),
}  # fmt: skip
"""What each action of a page must say besides its name and its request."""

TEXTS = {
    "action": 20, "item": LONGEST_ID, "value": LONGEST_NOTE, "note": LONGEST_NOTE, "request": LONGEST_REQUEST,
}  # fmt: skip
"""Texts of an action, and how long each may be."""


def state(study: Study, annotator: str, look: Look) -> dict[str, Any]:
    """Return what a page needs when it opens.

    Examples
    --------
    >>> state.__name__
    'state'
    """
    return {
        "study": study.id,
        "annotator": annotator,
        "question": question_view(study.question),
        "adjudicator": annotator in study.adjudicators,
        **here(study, annotator, look),
    }


def here(study: Study, annotator: str, look: Look) -> dict[str, Any]:
    """Return the item to label now, None if there is none, and the progress.

    Examples
    --------
    >>> here.__name__
    'here'
    """
    item = study.next_item(annotator)
    shown = None if item is None else item_view(item, study.question, look)
    return {"item": shown, "progress": study.progress(annotator).to_dict()}


def given_item(study: Study, annotator: str, look: Look, id: str) -> dict[str, Any]:  # noqa: A002
    """Return an item that this annotator was given before.

    Examples
    --------
    >>> given_item.__name__
    'given_item'
    """
    return {"item": item_view(study.item(annotator, checked_text("id", id)), study.question, look)}


def trail(study: Study, annotator: str, before: int | None) -> dict[str, Any]:
    """Return the items that this annotator answered, newest first.

    Examples
    --------
    >>> trail.__name__
    'trail'
    """
    found = study.history(annotator, before=before)
    return {"answers": [{"item": answer.item, "seq": answer.seq} for answer in found]}


def open_disagreements(study: Study, annotator: str, look: Look) -> dict[str, Any]:
    """Return the items that wait for a decision; none for whoever does not decide.

    Examples
    --------
    >>> open_disagreements.__name__
    'open_disagreements'
    """
    found = study.disagreements(limit=20) if annotator in study.adjudicators else ()
    return {"disagreements": [disagreement_view(entry, study, annotator, look) for entry in found]}


def perform(study: Study, annotator: str, look: Look, body: Any) -> dict[str, Any]:
    """Save what a page did; return the receipt, the next item and the progress.

    Raises
    ------
    InputError
        If the action is not understood.
    StudyError
        If it could not be saved.

    Examples
    --------
    >>> perform.__name__
    'perform'
    """
    action = checked_action(body)
    receipt = _DO[action["action"]](study, annotator, action)
    return {"receipt": receipt.to_dict(), **here(study, annotator, look)}


def read_action(text: bytes) -> Any:
    """Return the JSON that a page sent.

    Examples
    --------
    >>> read_action(b'{"action": "undo"}')
    {'action': 'undo'}
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("the request is not JSON", allowed="one JSON object in UTF-8") from None


def checked_action(body: Any) -> Mapping[str, Any]:
    """Return an action, refusing one that lacks something or has something else.

    Examples
    --------
    >>> checked_action({"action": "undo", "request": "r1"})["action"]
    'undo'
    """
    if not isinstance(body, dict):
        raise InputError("an action is a JSON object", given=type(body).__name__, allowed="an object")
    strange = sorted(set(body) - {*TEXTS, "seconds"})
    if strange:
        allowed = ", ".join((*TEXTS, "seconds"))
        raise InputError("an action has no such entry", given=repr(strange[0][:60]), allowed=allowed)
    if not isinstance(body.get("action"), str) or body["action"] not in NEEDS:
        raise InputError("no such action", given=repr(body.get("action"))[:60], allowed=", ".join(NEEDS))
    needs = ("request", *NEEDS[body["action"]])
    for name in needs:
        if body.get(name) is None:
            raise InputError(f"{body['action']} needs {name!r}", allowed=", ".join(needs))
    for name in TEXTS.keys() & body.keys():
        if body[name] is not None:
            checked_text(name, body[name])
    return {**body, "seconds": _seconds(body.get("seconds"))}


def checked_text(name: str, value: Any) -> str:
    """Return a text of the page, refusing what cannot be kept or looked for.

    Examples
    --------
    >>> checked_text("item", "a")
    'a'
    """
    longest = TEXTS.get(name, LONGEST_ID)
    if not isinstance(value, str) or (len(value) > longest) or (name == "request" and not value):
        raise InputError(f"{name!r} must be a text", allowed=f"up to {longest:,} characters")
    if "\0" in value or any("\ud800" <= mark <= "\udfff" for mark in value):
        raise InputError(f"{name!r} holds a character that is not text", allowed="Unicode text")
    return value


def _seconds(value: Any) -> float | None:
    """Return a time taken, None where it says nothing."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(
            "'seconds' must be a number", given=type(value).__name__, allowed="0 or more, or left out"
        )
    usable = not (isinstance(value, float) and math.isnan(value)) and 0 <= value <= LONGEST_TIME
    return float(value) if usable else None


def _said(study: Study, annotator: str, action: Mapping[str, Any]) -> str | None:
    value, item = action.get("value"), action["item"]
    return None if value is None else said_value(value, sides_for(study, annotator, item), study.question)


def _submit(study: Study, annotator: str, action: Mapping[str, Any]) -> Receipt:
    value = _said(study, annotator, action)
    return study.submit(annotator, action["item"], value, **_besides(action), seconds=action["seconds"])


def _skip(study: Study, annotator: str, action: Mapping[str, Any]) -> Receipt:
    return study.skip(annotator, action["item"], **_besides(action), seconds=action["seconds"])


def _undo(study: Study, annotator: str, action: Mapping[str, Any]) -> Receipt:
    return study.undo(annotator, request=action["request"])


def _flag(study: Study, annotator: str, action: Mapping[str, Any]) -> Receipt:
    return study.flag(annotator, action["item"], on=action["action"] == FLAG, **_besides(action))


def _note(study: Study, annotator: str, action: Mapping[str, Any]) -> Receipt:
    return study.note(annotator, action["item"], action["note"], request=action["request"])


def _adjudicate(study: Study, annotator: str, action: Mapping[str, Any]) -> Receipt:
    value = _said(study, annotator, action)
    return study.adjudicate(annotator, action["item"], value, **_besides(action))


def _besides(action: Mapping[str, Any]) -> dict[str, Any]:
    return {"note": action.get("note") or "", "request": action["request"]}


_DO: dict[str, Callable[[Study, str, Mapping[str, Any]], Receipt]] = {
    SUBMIT: _submit, SKIP: _skip, UNDO: _undo, FLAG: _flag, UNFLAG: _flag, NOTE: _note,
    ADJUDICATE: _adjudicate,
}  # fmt: skip
