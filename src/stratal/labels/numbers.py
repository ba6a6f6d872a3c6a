"""Joined labels as numbers: words become the numbers that they stand for, several answers are averaged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, number_of_text, refuse_extremes
from stratal.errors import LabelError
from stratal.labels.labels import Joined
from stratal.labels.vocabulary import meanings, spoken
from stratal.randomness import id_text

_MOST_WORDS = 50
"""More different words than this are classes or free text, and no vocabulary."""


def understood(joined: Joined) -> Joined:
    """Return joined labels with words as the numbers that they stand for, said and bounded.

    Words that stand for nothing stay, for `numeric_values` to name them.

    Examples
    --------
    >>> values, labelled = np.array(["Pass", "Fail"], dtype=object), np.array([True, True])
    >>> understood(Joined(values=values, labelled=labelled, annotators=values)).notes
    ("'Pass' counts as 1, 'Fail' counts as 0",)
    """
    if joined.values.dtype != object:  # plain numbers
        return joined
    entries = [_answers(value) for value in joined.values.tolist() if value is not None]
    answers = [answer for entry in entries for answer in entry]
    known = _meanings(answers)
    if known is None:
        return joined
    values = joined.values.copy()
    for row, value in enumerate(joined.values.tolist()):
        if value is not None:
            given = tuple(known.get(answer, answer) for answer in _answers(value))
            values[row] = given if isinstance(value, tuple) else given[0]
    note = spoken(dict(known))
    return replace(joined, values=values, notes=(*joined.notes, note), bounds=joined.bounds or (0.0, 1.0))


def words_for_one(values: list[Any]) -> list[str]:
    """Return the words among answers that count as 1; none where answers are numbers, or no vocabulary fits.

    Examples
    --------
    >>> words_for_one(["Pass", None, ("Fail", "Pass")]), words_for_one([1.0, 0.0])
    (['Pass'], [])
    """
    answers = [answer for value in values if value is not None for answer in _answers(value)]
    return [word for word, number in (_meanings(answers) or {}).items() if number == 1.0]


def zeros_and_ones(joined: Joined) -> bool:
    """Return whether every single answer is 0 or 1, whatever several of one unit are on average.

    Examples
    --------
    >>> values = np.full(2, None, object)
    >>> values[0], values[1] = ("1", 0), 1
    >>> zeros_and_ones(Joined(values=values, labelled=np.array([True, True]), annotators=values))
    True
    """
    given = joined.values[joined.labelled].tolist()
    return all(_number(answer) in (0.0, 1.0) for value in given for answer in _answers(value))


def averaged(values: AnyArray, source: str = "labels", ids: AnyArray | None = None) -> FloatArray:
    """Return one number per unit (n,), several answers of a unit averaged.

    Examples
    --------
    >>> values = np.full(2, None, object)
    >>> values[0], values[1] = ("1", 0), 1
    >>> averaged(values)
    array([0.5, 1. ])
    """
    if values.dtype != object:
        numbers = numeric_values(values, source, ids)
        refuse_extremes(source, numbers)
        return numbers
    entries = [_answers(value) for value in values.tolist()]
    counts = np.array([len(entry) for entry in entries], np.int64)
    unit = np.repeat(np.arange(len(entries)), counts)
    answers = np.full(len(unit), None, object)
    answers[:] = [answer for entry in entries for answer in entry]
    numbers = numeric_values(answers, source, None if ids is None else ids[unit])
    refuse_extremes(source, numbers)
    return np.asarray(np.bincount(unit, numbers, minlength=len(entries)) / counts)


def numeric_values(values: AnyArray, source: str = "labels", ids: AnyArray | None = None) -> FloatArray:
    """Return labels (n,) as numbers, words of a vocabulary as what they stand for.

    An error names `source` and, of `ids` (n,), the unit.

    Examples
    --------
    >>> numeric_values(np.array([True, "0", 0.5], dtype=object)), numeric_values(np.array(["Pass", "Fail"]))
    (array([1. , 0. , 0.5]), array([1., 0.]))
    """
    if values.dtype.kind == "f" and np.all(np.isfinite(values)):
        return np.asarray(values, dtype=np.float64)
    known = _meanings(values.tolist()) or {}
    numbers = [_number(known.get(value, value)) for value in values.tolist()]
    wrong = [row for row, number in enumerate(numbers) if not np.isfinite(number)]
    if wrong:
        unit = "" if ids is None else f" of id {id_text(ids.tolist()[wrong[0]])!r}"
        others = f" ({len(wrong)} such labels)" if len(wrong) > 1 else ""
        raise LabelError(
            f"{source}: label {values.tolist()[wrong[0]]!r}{unit} is not a finite number{others}",
            allowed="numbers, or words such as pass/fail, yes/no, correct/incorrect, win/tie/loss",
            action="Say what counts: --positive VALUE, or --map Pass=1,Fail=0,Partial=0.5 "
            "(n/a= without a number: no label). If labels are classes, say which column holds the "
            "model's answer (--predicted).",
        )
    return np.array(numbers, dtype=np.float64)


def _meanings(answers: list[Any]) -> dict[str, float] | None:
    """Return what the words among answers stand for, None where none do or a number is outside 0 to 1."""
    words = list(dict.fromkeys(entry for entry in answers if isinstance(entry, str) and _is_word(entry)))
    if not words or len(words) > _MOST_WORDS:
        return None
    others = [_number(entry) for entry in answers if not isinstance(entry, str) or not _is_word(entry)]
    return meanings(words) if all(0 <= number <= 1 for number in others) else None


def _answers(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _is_word(text: str) -> bool:
    return _number(text) != _number(text)


def _number(value: object) -> float:
    if isinstance(value, str):
        return number_of_text(value)
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return float("nan")
