"""What a page asks of a study and gets, in plain dicts; the server's page and the notebook's say the same.

The two columns of a pair are called A and B in the order in which an annotator sees them, so that a model's
name never reaches the page. Proxy, prediction and stratum are not in an item to begin with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stratal.errors import InputError, StratalError
from stratal.study.database import StudyError
from stratal.study.exchange import page_action
from stratal.study.items import AHEAD, sides
from stratal.study.question import PAIR, SEVERAL, TIE, Answer, Form, Item, Question
from stratal.study.study import Study
from stratal.study.web.content import Look, markdown

SIDES = ("A", "B")
SUBMIT_ON_CHOICE = "page_submit_on_choice"
"""Setting of the study: whether a choice that answers all questions is submitted at once."""


def question_view(question: Question) -> dict[str, Any]:
    """Return a question as the page has it.

    Examples
    --------
    >>> question_view(Question.of_pair("Which is better?", "gpt", "llama"))["choices"][0]
    {'value': 'A', 'label': 'A', 'key': '1'}
    """
    pair = question.kind == PAIR
    names = (*SIDES, TIE) if pair else tuple(choice.name for choice in question.choices)
    return {
        "name": question.name,
        "text": question.text,
        "kind": question.kind,
        "choices": [
            {"value": name, "label": "Tie" if pair and name == TIE else name, "key": choice.key}
            for name, choice in zip(names, question.choices, strict=True)
        ],
        "ends": question.ends,
        "when": question.when,
    }


def form_view(study: Study) -> dict[str, Any]:
    """Return all questions and the rubric as the page has them."""
    first = study.form.first
    return {
        "questions": [question_view(question) for question in study.form.questions],
        "rubric": markdown(first.rubric) if first.rubric else "",
        "rubric_version": first.rubric_version,
        "submit_on_choice": study.setting(SUBMIT_ON_CHOICE) == "yes",
    }


def item_view(item: Item, form: Form, look: Look) -> dict[str, Any]:
    """Return one item as the page has it."""
    pair = form.pair or ()
    named = zip(SIDES, item.sides or (), strict=False)
    return {
        "id": item.id,
        "position": item.position,
        "fields": [look.show(name, value) for name, value in item.payload.items() if name not in pair],
        "sides": [{**look.show(column, item.payload.get(column)), "name": side} for side, column in named],
        "answer": None if item.answer is None else answer_view(item.answer, item, form),
        "flagged": item.flagged,
    }


def answer_view(answer: Answer, item: Item, form: Form) -> dict[str, Any]:
    """Return an answer as the page has it: by question, in the page's words, without saying whose it is.

    Examples
    --------
    >>> form = Form.of(Question.of_pair("Which?", "gpt", "llama"))
    >>> answer = Answer(seq=1, item="a", annotator="ann", status="submitted", value="gpt")
    >>> answer_view(answer, Item(id="a", position=1, sides=("llama", "gpt")), form)["value"]
    {'': 'B'}
    """
    shown: dict[str, Any] = dict(form.answers(answer.value))
    for question in form.questions:
        value = shown.get(question.name)
        if question.kind == PAIR and item.sides and value in item.sides:
            shown[question.name] = SIDES[item.sides.index(str(value))]
        elif question.kind == SEVERAL and value is not None:
            shown[question.name] = json.loads(value)
    return {"status": answer.status, "value": shown or None, "note": answer.note, "seq": answer.seq}


def state(study: Study, annotator: str, look: Look, _: Any = None) -> dict[str, Any]:
    """Return what a page needs when it opens."""
    return {
        "study": study.id,
        "annotator": annotator,
        "name": study.names.get(annotator, annotator),
        "form": form_view(study),
        "adjudicator": annotator in study.adjudicators,
        **_here(study, annotator, look),
    }


def _here(study: Study, annotator: str, look: Look) -> dict[str, Any]:
    """Return the item to label now, None if there is none, those after it, and the progress."""
    form = study.form
    shown = [item_view(item, form, look) for item in study.next_items(annotator, ahead=AHEAD)]
    return {
        "item": shown[0] if shown else None,
        "ahead": shown[1:],
        "progress": study.progress(annotator).to_dict(),
    }


def given_item(study: Study, annotator: str, look: Look, item: Any) -> dict[str, Any]:
    """Return an item that this annotator was given before."""
    return {"item": item_view(study.item(annotator, str(item)), study.form, look)}


def trail(study: Study, annotator: str, _: Look, before: Any) -> dict[str, Any]:
    """Return the items that this annotator answered, newest first; those before a line of the journal."""
    line = "0" if before is None else str(before)
    if not (line.isascii() and line.isdigit() and len(line) < 18):
        raise InputError("'before' must be a line of the journal", given=repr(before)[:60])
    found = study.history(annotator, before=None if before is None else int(line))
    return {"answers": [{"item": answer.item, "seq": answer.seq} for answer in found]}


def open_disagreements(study: Study, annotator: str, look: Look, _: Any = None) -> dict[str, Any]:
    """Return items that wait for a decision, with their answers; none for whoever does not decide.

    `mine` is how many are assigned to this annotator.
    """
    form, (mine, found) = study.form, study.assigned(annotator)
    shown = []
    for entry in found:
        item = replace(entry.item, sides=sides(form, entry.item.id, annotator, study.id))
        answers = [answer_view(answer, item, form) for answer in entry.answers]
        shown.append({**item_view(item, form, look), "answers": answers})
    return {"disagreements": shown, "mine": mine}


def perform(study: Study, annotator: str, look: Look, body: Any) -> dict[str, Any]:
    """Save what a page did; return the receipt, the next item and the progress."""
    given, form = page_action(body), study.form
    value: Any = given.value
    if form.pair and value is not None:
        order = sides(form, str(given.item), annotator, study.id) or ()
        columns = dict(zip((*SIDES, TIE), (*order, TIE), strict=True))
        named = value if isinstance(value, dict) else {form.first.name: value}
        pairs = {question.name for question in form.questions if question.kind == PAIR}
        value = {name: _column_of(columns, one) if name in pairs else one for name, one in named.items()}
    receipt = study.act(annotator, given.action, given.item, value, ahead=AHEAD, **given.how)
    return {"receipt": receipt.to_dict(), **_here(study, annotator, look)}


def _column_of(columns: Mapping[str, str], side: Any) -> str:
    """Return the column that a side of a pair shows."""
    if side not in columns:
        raise InputError("no such side", given=repr(side)[:60], allowed=", ".join(columns))
    return columns[side]


ANSWERS: dict[str, Callable[[Study, str, Look, Any], dict[str, Any]]] = {
    "state": state, "item": given_item, "trail": trail, "disagreements": open_disagreements, "act": perform,
}  # fmt: skip
"""What a page asks → who answers it; the last argument is what it sends."""


def kind_of(error: StratalError) -> str:
    """Return the kind of an error as a page distinguishes them: a `StudyError`'s own, or `input`."""
    return error.kind if isinstance(error, StudyError) else "input"
