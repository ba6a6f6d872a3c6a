"""Items of a study or a sample out to an annotation tool, and its answers back into the study.

What comes back is compared with what the study says now, item by item; then all of it is saved, or none.
A pair's sides go out as `left` and `right`, shuffled for each item, and come back unshuffled.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stratal.designs import Sample
from stratal.errors import InputError, LabelError, near_names
from stratal.labels.damaged_ids import matched
from stratal.labels.exchange.exchange import Answers, Asked, Said, Task
from stratal.randomness import id_texts
from stratal.study import showing, team
from stratal.study.answers import save_answer
from stratal.study.assignment import block, give
from stratal.study.creating import payloads
from stratal.study.journal import Entry, Transaction, setting
from stratal.study.question import CLASSES, TIE, Question
from stratal.study.records import SKIP, SUBMIT, Plain

LEFT, RIGHT = "left", "right"
NOBODY = ""
"""Whom the sides of a pair are shuffled for in a tool: for everybody alike."""

_FIRST = 5
"""Ids that are named of those that are not in the study."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taken(Plain):
    """What an import does, or would do.

    Parameters
    ----------
    tool : str
    new : int
        Items that get an answer.
    changed : int
        Items whose annotator had said something else.
    skipped : int
        Items that the annotator skipped, of these.
    same : int
        Answers that the study has already.
    repeated : int
        Answers that were taken in before, and are something else by now: they stay as they are.
    unmatched : int
        Answers of items that are not in the study: left out.
    strangers : tuple of str
        The first of their ids.
    annotators : mapping of str to int
        Answers per annotator.
    applied : bool
    notes : tuple of str

    Examples
    --------
    >>> Taken(tool="csv", new=3).to_dict()["new"]
    3
    """

    tool: str
    new: int = 0
    changed: int = 0
    skipped: int = 0
    same: int = 0
    repeated: int = 0
    unmatched: int = 0
    strangers: tuple[str, ...] = ()
    annotators: Mapping[str, int] = field(default_factory=dict)
    applied: bool = False
    notes: tuple[str, ...] = ()


def asked_of(question: Question) -> Asked:
    """Return a question as tools ask it.

    Examples
    --------
    >>> asked_of(Question.of_pair("Which is better?", "a", "b")).choices
    ('left', 'right', 'tie')
    """
    names = [choice.name for choice in question.choices]
    keys = [choice.key for choice in question.choices]
    return Asked(
        text=question.text,
        choices=(LEFT, RIGHT, TIE) if _shuffles(question) else tuple(names),
        keys=tuple(keys),
        free=question.kind == CLASSES,
        rubric=question.rubric,
    )


def study_tasks(
    transaction: Transaction, question: Question, annotator: str | None, items: int | None
) -> list[Task]:
    """Return a study's items that still need an answer; with an annotator, those kept for that one alone.

    Examples
    --------
    >>> study_tasks.__name__
    'study_tasks'
    """
    connection = transaction.connection
    if items is not None and not (isinstance(items, int) and items > 0):
        raise InputError("items must be a whole number", given=items, allowed="1 or more")
    if annotator is not None:
        numbers = block(transaction, team.known(connection, annotator), items)
    else:
        rows = connection.execute(
            "SELECT item FROM item WHERE answers < copies AND decision IS NULL ORDER BY item LIMIT ?",
            (-1 if items is None else items,),
        )
        numbers = [int(row["item"]) for row in rows]
    found = [showing.item_row(connection, number) for number in numbers]
    study = str(setting(connection, "id"))
    return [_task(question, row["id"], json.loads(row["payload"]), study) for row in found]


def sample_tasks(sample: Sample, question: Question | None) -> list[Task]:
    """Return the items of a sample's newest round.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.5]), seed=7)
    >>> [task.id for task in sample_tasks(sample, None)]
    ['0']
    """
    asked = question or Question.of_classes("What is right?")
    if asked.pair is not None:
        raise InputError(
            "pairs come back through a study alone, which unshuffles their sides",
            action="Make one: stratal init … --pair A,B.",
        )
    shown, texts, last = payloads(sample, asked), id_texts(sample.ids), sample.round.max()
    return [
        Task(id=texts[row], payload=json.loads(shown[row]))
        for row, number in enumerate(sample.round)
        if number == last
    ]


def take_in_answers(
    transaction: Transaction,
    question: Question,
    answers: Answers,
    who: Mapping[str, str] | str | None,
    folder: Path,
) -> Taken:
    """Save a tool's answers; return what was done with each.

    Parameters
    ----------
    transaction : Transaction
        Rolled back by whoever only wants to see.
    question : Question
    answers : Answers
    who : str or mapping of str to str, optional
        Whose all answers are, or the study's name for each of the tool's.
    folder : Path
        Of the study, where the names behind pseudonyms are.

    Raises
    ------
    LabelError
        For annotators whom the study does not know, answers that the question does not take, and a file of
        which no item is in the study.

    Examples
    --------
    >>> take_in_answers.__name__
    'take_in_answers'
    """
    known = {row["id"] for row in transaction.connection.execute("SELECT id FROM item")}
    said, notes = _with_ids(_named(transaction, answers, who, folder), known)
    strangers = [entry.id for entry in said if entry.id not in known]
    if len(strangers) == len(said):
        raise LabelError(
            "no item of the file is in this study",
            given=", ".join(map(repr, dict.fromkeys(strangers[:_FIRST]))),
            allowed=", ".join(map(repr, sorted(known)[:_FIRST])),
            action="Take it in where its items came from.",
        )
    counts: dict[str, Any] = dict.fromkeys(("new", "changed", "skipped", "same", "repeated"), 0)
    people: dict[str, int] = {}
    for entry in (entry for entry in said if entry.id in known):
        value = None if entry.value is None else _value(transaction, question, entry)
        kind = _save(transaction, question, entry, value)
        counts[kind] += 1
        counts["skipped"] += int(value is None and kind in ("new", "changed"))
        people[entry.annotator] = people.get(entry.annotator, 0) + 1
    return Taken(
        tool=answers.tool,
        **counts,
        unmatched=len(strangers),
        strangers=tuple(dict.fromkeys(strangers))[:_FIRST],
        annotators=people,
        notes=(*answers.notes, *notes),
    )


def _shuffles(question: Question) -> bool:
    return question.pair is not None and not {LEFT, RIGHT} & set(question.pair)


def _task(question: Question, item: str, payload: dict[str, Any], study: str) -> Task:
    order = showing.sides(question, item, NOBODY, study) if _shuffles(question) else None
    if order is None:
        return Task(id=item, payload=payload)
    shown = {name: value for name, value in payload.items() if name not in order}
    return Task(id=item, payload={**shown, LEFT: payload[order[0]], RIGHT: payload[order[1]]})


def _named(
    transaction: Transaction, answers: Answers, who: Mapping[str, str] | str | None, folder: Path
) -> list[Said]:
    """Return the answers with the names that stand in the journal."""
    people = [
        row["name"] for row in transaction.connection.execute("SELECT name FROM annotator ORDER BY name")
    ]
    codes = {name: code for code, name in team.read_names(folder).items()}
    given = list(dict.fromkeys(entry.annotator for entry in answers.said))
    if isinstance(who, str):
        names = dict.fromkeys(given, who)
    else:
        names = {name: (who or {}).get(name, name) for name in given}
        alone = team.people(transaction.connection)
        names |= {"": alone[0]} if names.get("") == "" and len(alone) == 1 else {}
    names = {theirs: codes.get(ours, ours) for theirs, ours in names.items()}
    unknown = [theirs for theirs, ours in names.items() if ours not in people]
    if unknown:
        raise LabelError(
            "the file does not say who answered"
            if unknown == [""]
            else "the study does not know who answered",
            given=None if unknown == [""] else ", ".join(map(repr, unknown[:_FIRST])),
            allowed=near_names(unknown[0], people),
            action="Say whose answers these are: --annotator NAME, or --annotator THEIRS=NAME,….",
        )
    several = isinstance(who, str) and len(given) > 1
    seen: set[str] = set()
    for entry in answers.said:
        if several and entry.id in seen:
            raise LabelError(
                f"{entry.place}: item {entry.id!r} was answered by several people",
                given=", ".join(map(repr, given[:_FIRST])),
                action="Say who each of them is: --annotator THEIRS=NAME,….",
            )
        seen.add(entry.id)
    return [replace(entry, annotator=names[entry.annotator]) for entry in answers.said]


def _with_ids(said: Sequence[Said], known: set[str]) -> tuple[list[Said], tuple[str, ...]]:
    """Return the answers with the study's ids where a spreadsheet changed them."""
    ids, notes = matched([entry.id for entry in said], [entry.annotator for entry in said], known)
    return [replace(entry, id=item) for entry, item in zip(said, ids, strict=True)], notes


def _value(transaction: Transaction, question: Question, entry: Said) -> str:
    """Return an answer as the study keeps it: the sides of a pair unshuffled, the spelling the question's."""
    given = str(entry.value).strip()
    if _shuffles(question) and given.lower() in (LEFT, RIGHT):
        order = _order(transaction, question, entry.id)
        return order[given.lower() == RIGHT]
    names = [choice.name for choice in question.choices]
    alike = [name for name in names if name.casefold() == given.casefold()]
    try:
        return question.answer(alike[0] if given not in names and len(alike) == 1 else _whole(given, names))
    except InputError as error:
        raise LabelError(f"{entry.place}: item {entry.id!r}: {error}") from None


def _whole(given: str, names: Sequence[str]) -> str:
    """Return `4.0` as `4`, where only the latter is an answer."""
    shorter = given.removesuffix(".0")
    return shorter if given not in names and shorter in names else given


def _order(transaction: Transaction, question: Question, item: str) -> tuple[str, str]:
    order = showing.sides(question, item, NOBODY, str(setting(transaction.connection, "id")))
    assert order is not None
    return order


def _save(transaction: Transaction, question: Question, entry: Said, value: str | None) -> str:
    """Save one answer; return what it was: new, changed, same or repeated."""
    row = transaction.one("SELECT item FROM item WHERE id = ?", entry.id)
    now = transaction.one(
        "SELECT status, value FROM answer WHERE item = ? AND annotator = ?", row["item"], entry.annotator
    )
    if now is not None and (now["status"] == "skipped", now["value"]) == (value is None, value):
        return "same"
    text = json.dumps([entry.id, value, entry.note, entry.at], ensure_ascii=False)
    request = f"import {hashlib.sha256(text.encode()).hexdigest()}"
    if transaction.one("SELECT 1 FROM journal WHERE annotator = ? AND request = ?", entry.annotator, request):
        return "repeated"
    given = "SELECT 1 FROM given WHERE item = ? AND annotator = ?"
    if not transaction.one(given, row["item"], entry.annotator):
        give(transaction, entry.annotator, row["item"])
    order = _order(transaction, question, entry.id) if _shuffles(question) else None
    saved = Entry(
        annotator=entry.annotator,
        action=SKIP if value is None else SUBMIT,
        id=entry.id,
        value=value,
        note=entry.note,
        seconds=math.nan if entry.seconds is None else entry.seconds,
        shown=None if order is None or value is None else "|".join(order),
        request=request,
    )
    save_answer(transaction, saved)
    return "new" if now is None else "changed"
