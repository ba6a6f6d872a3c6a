"""What a study gives to a page and takes from it: the question, items, answers, receipts, progress."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec

from stratal.arrays import Record, plain
from stratal.errors import InputError

CHOICES, SCALE, PAIR, CLASSES = "choices", "scale", "pair", "classes"
KINDS = (CHOICES, SCALE, PAIR, CLASSES)
TIE = "tie"
LONGEST_CLASS = 200

KEYS = "1234567890qwertyiopadghjklzxcvbm"
"""Keys of choices in their order: without s (skip), u (undo), f (flag) and n (note)."""

_ONE = ("pass", "passed", "yes", "true", "correct", "right", "good", "ok", "1")
_ZERO = ("fail", "failed", "no", "false", "incorrect", "wrong", "bad", "not ok", "0")


class Plain(Record):
    """A record that is a plain dict when it goes out."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a JSON-ready dict."""
        return {entry.name: plain(getattr(self, entry.name)) for entry in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice(Plain):
    """One of the answers that can be chosen.

    Parameters
    ----------
    name : str
    value : float, optional
        What it counts as; None where choices are classes, to be compared with the model's answer.
    key : str
        The key that chooses it.

    Examples
    --------
    >>> Choice(name="Pass", value=1.0, key="1").name
    'Pass'
    """

    name: str
    value: float | None
    key: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question(Plain):
    """What annotators are asked; make one by `of_choices`, `of_scale`, `of_pair` or `of_classes`.

    Parameters
    ----------
    text : str
    kind : {"choices", "scale", "pair", "classes"}
    choices : tuple of Choice
        Of a pair: the two columns and `tie`. Of classes: those known beforehand, which annotators may add to.
    scale : (float, float), optional
        Lowest and highest number; whole numbers between them.
    rubric : str
        How to judge; Markdown.
    rubric_version : int
        From 1; every answer is saved with the version that it was given under.

    Examples
    --------
    >>> question = Question.of_choices("Is the answer correct?", ["Pass", "Fail"])
    >>> [(choice.name, choice.value, choice.key) for choice in question.choices]
    [('Pass', 1.0, '1'), ('Fail', 0.0, '2')]
    """

    text: str
    kind: str = CHOICES
    choices: tuple[Choice, ...] = ()
    scale: tuple[float, float] | None = None
    rubric: str = ""
    rubric_version: int = 1

    @classmethod
    def of_choices(cls, text: str, choices: Iterable[str], *, rubric: str = "") -> Question:
        """Return a question with choices: `Pass`, or `Partly=0.5` with what it counts as.

        Of two choices, words such as Pass and Fail, yes and no, correct and wrong count as 1 and 0. Without
        numbers choices are classes, which an estimate compares with the model's answer.
        """
        named = [_named(choice) for choice in choices]
        _refuse_repeated([name for name, _ in named])
        if len(named) < 2:
            given = ", ".join(name for name, _ in named)
            allowed = "two or more, such as Pass,Fail"
            raise InputError("a question needs two choices", given=given, allowed=allowed)
        rows = zip([name for name, _ in named], _numbers(named), _keys(named), strict=True)
        return cls(text=_worded(text), choices=_choices(rows), rubric=rubric)

    @classmethod
    def of_scale(cls, text: str, low: int, high: int, *, rubric: str = "") -> Question:
        """Return a question answered by a whole number from `low` to `high`."""
        if not (float(low).is_integer() and float(high).is_integer() and 1 <= high - low <= 100):
            what = "a scale needs two whole numbers, the lower first"
            raise InputError(what, given=f"{low}, {high}", allowed="such as 1,5")
        numbers = range(int(low), int(high) + 1)
        choices = _choices((str(k), float(k), str(k) if 0 <= k <= 9 else "") for k in numbers)
        bounds = (float(low), float(high))
        return cls(text=_worded(text), kind=SCALE, choices=choices, scale=bounds, rubric=rubric)

    @classmethod
    def of_pair(cls, text: str, first: str, second: str, *, rubric: str = "") -> Question:
        """Return a question of which of two columns is better; a win of `first` counts as 1, a tie as ½."""
        _refuse_repeated([first, second, TIE])
        choices = _choices([(first, 1.0, "1"), (second, 0.0, "2"), (TIE, 0.5, "3")])
        return cls(text=_worded(text), kind=PAIR, choices=choices, rubric=rubric)

    @classmethod
    def of_classes(cls, text: str, known: Iterable[str] = (), *, rubric: str = "") -> Question:
        """Return a question answered in the annotator's own words, with known classes to choose from."""
        names = [name.strip() for name in known]
        _refuse_repeated(names)
        choices = _choices((name, None, key) for name, key in zip(names, _keys(names), strict=True))
        return cls(text=_worded(text), kind=CLASSES, choices=choices, rubric=rubric)

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Question:
        """Return the question that `to_dict` described."""
        return msgspec.convert(described, cls)

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two columns of a pair."""
        return (self.choices[0].name, self.choices[1].name) if self.kind == PAIR else None

    @property
    def counted(self) -> bool:
        """Whether every answer counts as a number."""
        return self.kind != CLASSES and all(choice.value is not None for choice in self.choices)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lowest and highest number that an answer counts as; None for classes."""
        values = [choice.value for choice in self.choices if choice.value is not None]
        return (min(values), max(values)) if self.counted else None

    def with_rubric(self, rubric: str) -> Question:
        """Return the question with another rubric, one version on."""
        return replace(self, rubric=rubric, rubric_version=self.rubric_version + 1)

    def answer(self, value: Any) -> str:
        """Return an answer as it is kept, refusing one that this question does not take.

        Examples
        --------
        >>> Question.of_scale("How helpful?", 1, 5).answer(4)
        '4'
        """
        text = _text_of(value)
        names = [choice.name for choice in self.choices]
        if text in names:
            return text
        if self.kind == CLASSES and 0 < len(text) <= LONGEST_CLASS:
            return text
        allowed = f"1 to {LONGEST_CLASS} characters" if self.kind == CLASSES else ", ".join(names[:40])
        raise InputError("this question does not take such an answer", given=repr(text[:60]), allowed=allowed)

    def outcome(self, answer: str) -> str | float:
        """Return what an answer counts as: a number, or the class itself."""
        if not self.counted:
            return answer
        return next(float(c.value) for c in self.choices if c.name == answer and c.value is not None)


def _keys(choices: Sequence[Any]) -> list[str]:
    """Return a key for each choice, none for those after the last."""
    return [*KEYS, *[""] * len(choices)][: len(choices)]


def _choices(rows: Iterable[tuple[str, float | None, str]]) -> tuple[Choice, ...]:
    return tuple(Choice(name=name, value=value, key=key) for name, value, key in rows)


def _named(choice: str) -> tuple[str, float | None]:
    """Return the name and the number of `Partly=0.5`."""
    name, mark, number = choice.strip().rpartition("=")
    if not mark:
        name, number = choice.strip(), ""
    if not name.strip():
        action = "Name it, as in --choices Pass,Fail."
        raise InputError("a choice needs a name", given=repr(choice), action=action)
    if not number:
        return name.strip(), None
    try:
        value = float(number)
    except ValueError:
        return choice.strip(), None
    if not math.isfinite(value):
        allowed = "Pass=1, Fail=0, Partial=0.5"
        raise InputError("a choice must count as a finite number", given=repr(choice), allowed=allowed)
    return name.strip(), value


def _numbers(named: list[tuple[str, float | None]]) -> list[float | None]:
    """Return what the choices count as: as given, or 1 and 0 for the usual words."""
    given = [number is not None for _, number in named]
    if any(given) and not all(given):
        name = named[given.index(False)][0]
        action = "Give each, as in Pass=1,Fail=0."
        raise InputError(f"choice {name!r} has no number, others have one", action=action)
    words = [name.lower() for name, _ in named]
    if not any(given) and len(words) == 2:
        for one, zero in ((0, 1), (1, 0)):
            if words[one] in _ONE and words[zero] in _ZERO:
                return [1.0 - one, 1.0 - zero] if one == 0 else [0.0, 1.0]
    return [number for _, number in named]


def _refuse_repeated(names: list[str]) -> None:
    for name in names:
        if not name or names.count(name) > 1:
            given, action = ", ".join(map(repr, names)), "Leave out the repeated or empty one."
            raise InputError("choices need different names", given=given, action=action)


def _worded(text: str) -> str:
    if not text.strip():
        action = "Write what annotators are asked: --question 'Is the answer right?'."
        raise InputError("a question needs words", given=repr(text), action=action)
    return text.strip()


def _text_of(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer(Plain):
    """The present or an earlier answer of one annotator to one item.

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
        When, UTC, by the server's clock.
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
    """An item on which annotators differ.

    Parameters
    ----------
    item : Item
        `item.answer` is the decision, where there is one.
    answers : tuple of Answer
        The answer of each annotator, in the order of the journal.

    Examples
    --------
    >>> Disagreement(item=Item(id="a", position=1), answers=()).item.id
    'a'
    """

    item: Item
    answers: tuple[Answer, ...]
