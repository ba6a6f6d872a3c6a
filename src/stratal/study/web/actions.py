"""What a page asks of a study and gets, in plain dicts; the server's page and the notebook's say the same.

The two columns of a pair are called A and B in the order in which an annotator sees them, so that a model's
name never reaches the page. Proxy, prediction and stratum are not in an item to begin with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stratal.errors import InputError, StratalError
from stratal.study.database import StudyError
from stratal.study.exchange import page_action
from stratal.study.items import sides
from stratal.study.question import CLASSES, PAIR, TIE, Answer, Item, Question
from stratal.study.study import Study
from stratal.study.web.content import Look, markdown

SIDES = ("A", "B")


def question_view(question: Question) -> dict[str, Any]:
    """Return the question as the page has it.

    Examples
    --------
    >>> question_view(Question.of_pair("Which is better?", "gpt", "llama"))["choices"][0]
    {'value': 'A', 'label': 'A', 'key': '1'}
    """
    pair = question.kind == PAIR
    names = (*SIDES, TIE) if pair else tuple(choice.name for choice in question.choices)
    return {
        "text": question.text,
        "kind": question.kind,
        "free": question.kind == CLASSES,
        "choices": [
            {"value": name, "label": "Tie" if pair and name == TIE else name, "key": choice.key}
            for name, choice in zip(names, question.choices, strict=True)
        ],
        "rubric": markdown(question.rubric) if question.rubric else "",
        "rubric_version": question.rubric_version,
    }


def item_view(item: Item, question: Question, look: Look) -> dict[str, Any]:
    """Return one item as the page has it."""
    pair = question.pair or ()
    named = zip(SIDES, item.sides or (), strict=False)
    return {
        "id": item.id,
        "position": item.position,
        "fields": [look.show(name, value) for name, value in item.payload.items() if name not in pair],
        "sides": [{**look.show(column, item.payload.get(column)), "name": side} for side, column in named],
        "answer": None if item.answer is None else answer_view(item.answer, item),
        "flagged": item.flagged,
    }


def answer_view(answer: Answer, item: Item) -> dict[str, Any]:
    """Return an answer as the page has it: in the page's words, without saying whose it is.

    Examples
    --------
    >>> answer = Answer(seq=1, item="a", annotator="ann", status="submitted", value="gpt")
    >>> answer_view(answer, Item(id="a", position=1, sides=("llama", "gpt")))["value"]
    'B'
    """
    value = answer.value
    if item.sides and value in item.sides:
        value = SIDES[item.sides.index(str(value))]
    return {"status": answer.status, "value": value, "note": answer.note, "seq": answer.seq}


def state(study: Study, annotator: str, look: Look, _: Any = None) -> dict[str, Any]:
    """Return what a page needs when it opens."""
    return {
        "study": study.id,
        "annotator": annotator,
        "question": question_view(study.question),
        "adjudicator": annotator in study.adjudicators,
        **_here(study, annotator, look),
    }


def _here(study: Study, annotator: str, look: Look) -> dict[str, Any]:
    """Return the item to label now, None if there is none, and the progress."""
    item = study.next_item(annotator)
    shown = None if item is None else item_view(item, study.question, look)
    return {"item": shown, "progress": study.progress(annotator).to_dict()}


def given_item(study: Study, annotator: str, look: Look, item: Any) -> dict[str, Any]:
    """Return an item that this annotator was given before."""
    return {"item": item_view(study.item(annotator, str(item)), study.question, look)}


def trail(study: Study, annotator: str, _: Look, before: Any) -> dict[str, Any]:
    """Return the items that this annotator answered, newest first; those before a line of the journal."""
    line = "0" if before is None else str(before)
    if not (line.isascii() and line.isdigit() and len(line) < 18):
        raise InputError("'before' must be a line of the journal", given=repr(before)[:60])
    found = study.history(annotator, before=None if before is None else int(line))
    return {"answers": [{"item": answer.item, "seq": answer.seq} for answer in found]}


def open_disagreements(study: Study, annotator: str, look: Look, _: Any = None) -> dict[str, Any]:
    """Return the items that wait for a decision, with their answers; none for whoever does not decide."""
    found, question = [], study.question
    for entry in study.disagreements(limit=20) if annotator in study.adjudicators else ():
        item = replace(entry.item, sides=sides(question, entry.item.id, annotator, study.id))
        answers = [answer_view(answer, item) for answer in entry.answers]
        found.append({**item_view(item, question, look), "answers": answers})
    return {"disagreements": found}


def perform(study: Study, annotator: str, look: Look, body: Any) -> dict[str, Any]:
    """Save what a page did; return the receipt, the next item and the progress."""
    given, question = page_action(body), study.question
    value = given.value
    if question.kind == PAIR and value is not None:
        if value not in (*SIDES, TIE):
            raise InputError("no such side", given=repr(value[:60]), allowed=", ".join((*SIDES, TIE)))
        order = sides(question, str(given.item), annotator, study.id)
        value = value if value == TIE or order is None else order[SIDES.index(value)]
    receipt = study.act(annotator, given.action, given.item, value, **given.how)
    return {"receipt": receipt.to_dict(), **_here(study, annotator, look)}


ANSWERS: dict[str, Callable[[Study, str, Look, Any], dict[str, Any]]] = {
    "state": state, "item": given_item, "trail": trail, "disagreements": open_disagreements, "act": perform,
}  # fmt: skip
"""What a page asks → who answers it; the last argument is what it sends."""


def kind_of(error: StratalError) -> str:
    """Return the kind of an error as a page tells them apart: a `StudyError`'s own, or `input`."""
    return error.kind if isinstance(error, StudyError) else "input"
