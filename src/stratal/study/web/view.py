"""What the page is given (the question, an item, the progress), and its answers in the data's own words.

The two columns of a pair are called A and B in the order in which an annotator sees them, so that a model's
name never reaches the page. Proxy, prediction and stratum are not in an item to begin with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stratal.errors import InputError
from stratal.study.question import CLASSES, PAIR, TIE, Question
from stratal.study.records import Answer, Disagreement, Item
from stratal.study.showing import sides
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
    names = (*SIDES, TIE) if question.kind == PAIR else tuple(choice.name for choice in question.choices)
    return {
        "text": question.text,
        "kind": question.kind,
        "free": question.kind == CLASSES,
        "choices": [
            {
                "value": name,
                "label": "Tie" if question.kind == PAIR and name == TIE else name,
                "key": choice.key,
            }
            for name, choice in zip(names, question.choices, strict=True)
        ],
        "rubric": markdown(question.rubric) if question.rubric else "",
        "rubric_version": question.rubric_version,
    }


def item_view(item: Item, question: Question, look: Look) -> dict[str, Any]:
    """Return one item as the page has it.

    Examples
    --------
    >>> from pathlib import Path
    >>> look = Look(media=Path("media"), address=str)
    >>> question = Question.of_choices("Is it correct?", ["Pass", "Fail"])
    >>> view = item_view(Item(id="a", position=1, payload={"text": "hello"}), question, look)
    >>> [entry["name"] for entry in view["fields"]]
    ['text']
    """
    pair = question.pair or ()
    fields = [look.show(name, value) for name, value in item.payload.items() if name not in pair]
    named = zip(SIDES, item.sides or (), strict=False)
    shown = [replace(look.show(column, item.payload.get(column)), name=side) for side, column in named]
    return {
        "id": item.id,
        "position": item.position,
        "fields": [_plain(entry) for entry in fields],
        "sides": [_plain(entry) for entry in shown],
        "answer": None if item.answer is None else answer_view(item.answer, item, question),
        "flagged": item.flagged,
    }


def answer_view(answer: Answer, item: Item, question: Question) -> dict[str, Any]:
    """Return an answer as the page has it: in the page's words, without saying whose it is.

    Examples
    --------
    >>> question = Question.of_pair("Which is better?", "gpt", "llama")
    >>> item = Item(id="a", position=1, sides=("llama", "gpt"))
    >>> said = Answer(seq=1, item="a", annotator="ann", status="submitted", value="gpt")
    >>> answer_view(said, item, question)["value"]
    'B'
    """
    value = answer.value
    if item.sides and value in item.sides:
        value = SIDES[item.sides.index(str(value))]
    return {"status": answer.status, "value": value, "note": answer.note, "seq": answer.seq}


def said_value(value: str, shown: tuple[str, str] | None, question: Question) -> str:
    """Return what the page said in the data's words.

    Examples
    --------
    >>> question = Question.of_pair("Which is better?", "gpt", "llama")
    >>> said_value("A", ("llama", "gpt"), question)
    'llama'
    """
    if question.kind != PAIR:
        return value
    if value not in (*SIDES, TIE):
        raise InputError("no such side", given=repr(value[:60]), allowed=", ".join((*SIDES, TIE)))
    return value if value == TIE or shown is None else shown[SIDES.index(value)]


def sides_for(study: Study, annotator: str, item: str) -> tuple[str, str] | None:
    """Return the columns of a pair in the order in which an annotator sees them.

    Examples
    --------
    >>> sides_for.__name__
    'sides_for'
    """
    return sides(study.question, item, annotator, study.id)


def disagreement_view(entry: Disagreement, study: Study, annotator: str, look: Look) -> dict[str, Any]:
    """Return an item to be decided, with what was said of it.

    Examples
    --------
    >>> disagreement_view.__name__
    'disagreement_view'
    """
    question = study.question
    item = replace(entry.item, sides=sides_for(study, annotator, entry.item.id))
    said = [answer_view(answer, item, question) for answer in entry.answers]
    return {**item_view(item, question, look), "answers": said}


def _plain(shown: Any) -> dict[str, Any]:
    return {"name": shown.name, "html": shown.html, "long": shown.long}
