"""What a study gives to a page and takes from it: items, answers, receipts, progress, disagreements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from stratal.arrays import Record, plain

SUBMIT, CHANGE, SKIP, UNDO = "submit", "change", "skip", "undo"
FLAG, UNFLAG, NOTE, ADJUDICATE = "flag", "unflag", "note", "adjudicate"
SET_ASIDE, TAKE_BACK, RUBRIC, ROUND, SETTING = "set-aside", "take-back", "rubric", "round", "setting"
ACTIONS = (
    *(SUBMIT, CHANGE, SKIP, UNDO, FLAG, UNFLAG, NOTE),
    *(ADJUDICATE, SET_ASIDE, TAKE_BACK, RUBRIC, ROUND, SETTING),
)
"""What a line of the journal can say."""


class Plain(Record):
    """A record that is a plain dict when it goes out."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON twin."""
        return {entry.name: plain(getattr(self, entry.name)) for entry in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer(Plain):
    """What one annotator says of one item now, or said.

    Parameters
    ----------
    seq : int
        Line of the journal.
    item : str
        Id of the item.
    annotator : str
    status : {"submitted", "skipped"}
    value : str, optional
        Name of the choice, number on the scale, column of the better side or `tie`, class; None for a skip.
    note : str
    at : str
        When, UTC, as the server's clock said.
    seconds : float, optional
        Time that the annotator took.

    Examples
    --------
    >>> Answer(seq=1, item="a", annotator="ann", status="skipped", value=None).to_dict()["status"]
    'skipped'
    """

    seq: int
    item: str
    annotator: str
    status: str
    value: str | None
    note: str = ""
    at: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Item(Plain):
    """One item as an annotator sees it: without proxy, prediction or stratum.

    Parameters
    ----------
    id : str
    position : int
        Place in the study's random order, from 1.
    payload : mapping of column to value
        The columns of `--show`, in their order: text, numbers, lists and dicts (JSON).
    sides : (str, str), optional
        Pairs: the columns in the order in which they are to be shown, shuffled for each annotator and item.
    answer : Answer, optional
        What this annotator says of it now; None where there is nothing yet.
    flagged : bool

    Examples
    --------
    >>> Item(id="a", position=1, payload={"text": "hello"}).payload["text"]
    'hello'
    """

    id: str
    position: int
    payload: Mapping[str, Any] = field(default_factory=dict)
    sides: tuple[str, str] | None = None
    answer: Answer | None = None
    flagged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Receipt(Plain):
    """What was saved, on disk before this is returned.

    Parameters
    ----------
    seq : int
        Line of the journal.
    action : str
        One of `ACTIONS`; `change` for an answer that replaces an earlier one.
    item : str, optional
    repeated : bool
        Whether the same request had been saved before; nothing was saved twice.

    Examples
    --------
    >>> Receipt(seq=3, action="submit", item="a").repeated
    False
    """

    seq: int
    action: str
    item: str | None
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Progress(Plain):
    """How far the study is, for one annotator.

    Parameters
    ----------
    submitted, skipped : int
        Of this annotator.
    open : int
        Items that this annotator could still get.
    done, total : int
        Answers given and wanted, of all annotators (an item that two label counts twice).
    seconds_per_item : float, optional
        Median of this annotator's last answers.
    seconds_left : float, optional
        Expected time until the study is done, for this annotator, at the pace of all.
    disagreements : int
        Items that wait for adjudication.
    enough : bool
        Whether the interval is as narrow as was asked for, so that labelling may stop.
    message : str
        What the annotator should know, such as a clock that went back; empty if nothing.

    Examples
    --------
    >>> Progress(submitted=3, skipped=1, open=6, done=4, total=10).total
    10
    """

    submitted: int
    skipped: int
    open: int
    done: int
    total: int
    seconds_per_item: float | None = None
    seconds_left: float | None = None
    disagreements: int = 0
    enough: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Disagreement(Plain):
    """An item of which annotators say different things.

    Parameters
    ----------
    item : Item
        `item.answer` is the decision, where there is one.
    answers : tuple of Answer
        What each annotator says, in the order in which they said it.

    Examples
    --------
    >>> Disagreement(item=Item(id="a", position=1), answers=()).item.id
    'a'
    """

    item: Item
    answers: tuple[Answer, ...]
