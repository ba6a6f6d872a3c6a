"""What each distinct raw value of labels stands for: a number, a class, no answer, or a refusal.

Values are compared as text: 1, 1.0 and "1.0" are one. Words that people write in place of numbers (Pass and
Fail, yes and no, win, tie and loss) are numbers where every word of a column is of one such list. Words that
say that there is no answer are refused until the user says what they count as.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, number_of_text
from stratal.errors import LabelError, kind_of
from stratal.question.decoding import TRUTH_VALUES
from stratal.question.tags import is_set
from stratal.tables.no_answer import is_no_answer

_PAIRS = (
    "pass passed p / fail failed f",
    "yes y / no n",
    "true t / false f",
    "correct / incorrect",
    "right / wrong",
    "good / bad",
    "accept accepted / reject rejected",
    "valid / invalid",
)

_THREES: tuple[Mapping[str, float], ...] = (
    {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0},  # Inspect's grades: correct, partial, incorrect, no answer
    {"correct": 1.0, "partial": 0.5, "incorrect": 0.0, "no answer": 0.0},
    {"win": 1.0, "won": 1.0, "w": 1.0, "tie": 0.5, "tied": 0.5, "draw": 0.5, "t": 0.5}
    | {"loss": 0.0, "lose": 0.0, "lost": 0.0, "l": 0.0},
    {"a": 1.0, "tie": 0.5, "b": 0.0},
    {"model_a": 1.0, "tie": 0.5, "tie (bothbad)": 0.5, "both_bad": 0.5, "model_b": 0.0},
)


def _pair(words: str) -> dict[str, float]:
    """Return the words before the stroke as 1, those after it as 0."""
    ones, zeros = words.split("/")
    return dict.fromkeys(ones.split(), 1.0) | dict.fromkeys(zeros.split(), 0.0)


# Words for numbers; every word of a column must be in one of them.
VOCABULARIES = (*map(_pair, _PAIRS), *_THREES)

_WHOLE = re.compile(r"([+-]?(?:0|[1-9]\d*))\.0+")
# More different words than this are classes or free text, and no vocabulary.
_MOST_WORDS = 50
# Rows of a table that a sentence holds, and different numbers that are listed one by one.
_SHOWN = 10
# More different answers than this with digits behind the point are measurements, and no classes.
_MOST_FRACTIONS = 10
# So many labels that are all no answer of the model are no accident.
_ENOUGH = 10
# What to do with labels that stand for no number.
HOW = (
    "Say what counts: positive='…' (--positive VALUE), or mapping={'Pass': 1, 'Fail': 0, 'unsure': None} "
    "(--map Pass=1,Fail=0,unsure=)."
)

DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


def class_text(value: Any) -> str:
    """Return a label or an answer as text: 1, 1.0, '1' and '1.0' are one class.

    Examples
    --------
    >>> class_text(1.0), class_text("1.0"), class_text("007"), class_text("cat")
    ('1', '1', '007', 'cat')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    whole = _WHOLE.fullmatch(text)
    return text if whole is None else whole[1]


def _key(value: Any) -> str:
    """Return what values have in common that are the same but for case and spaces."""
    return class_text(str(value).strip() if isinstance(value, str) else value).casefold()


def is_known_word(text: str) -> bool:
    """Return whether a word stands in some vocabulary."""
    return any(text.casefold() in known for known in VOCABULARIES)


def vocabulary(words: Iterable[str]) -> dict[str, float] | None:
    """Return the number that each word stands for, None where no vocabulary holds them all.

    Raises
    ------
    LabelError
        If several vocabularies hold them all and say different things, as of a lone `P` or `T`.

    Examples
    --------
    >>> vocabulary(["Pass", "FAIL"]), vocabulary(["cat", "dog"])
    ({'Pass': 1.0, 'FAIL': 0.0}, None)
    """
    given = list(dict.fromkeys(words))
    plain = [word.strip().casefold() for word in given]
    found = [[known[word] for word in plain] for known in VOCABULARIES if all(w in known for w in plain)]
    if not given or not found:
        return None
    if any(other != found[0] for other in found):
        what = f"labels: {', '.join(map(repr, given))} may stand for several things"
        raise LabelError(what, allowed="words that mean one thing together", action=HOW)
    return dict(zip(given, found[0], strict=True))


# Truth values as text: what they count as needs no word to the reader.
_TRUTH = {"True": 1.0, "False": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """A row of the table of labels: a raw value, how many answers have it, and what it counts as.

    Parameters
    ----------
    value : str
        As it was written; of many different numbers, their range.
    count : int
    meaning : float, str, (float, float) or None
        A number, a class, a range of numbers, or no answer.
    usual : bool
        Whether it is just the number, or the model's class, that is written there.
    column : str
        Which column of labels it is of, where there are several.

    Examples
    --------
    >>> str(Meaning(value="unsure", count=16, meaning=None, usual=False))
    'unsure 16 → no answer'
    """

    value: str
    count: int
    meaning: float | str | tuple[float, float] | None
    usual: bool
    column: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict."""
        meaning = list(self.meaning) if isinstance(self.meaning, tuple) else self.meaning
        column = {"column": self.column} if self.column else {}
        return {**column, "value": self.value, "count": self.count, "meaning": meaning}

    def __str__(self) -> str:
        if isinstance(self.meaning, tuple):
            return f"{self.count:,} numbers from {self.value}"
        given = "no answer" if self.meaning is None else self.meaning
        return f"{self.value} {self.count:,} → {f'{given:g}' if isinstance(given, float) else given}"


def sentences(table: Sequence[Meaning]) -> tuple[str, ...]:
    """Return a table of labels as a note for each column in which anything is unusual.

    Examples
    --------
    >>> sentences([Meaning(value="Pass", count=9, meaning=1.0, usual=False)])
    ('labels: Pass 9 → 1',)
    """
    found = []
    for column in dict.fromkeys(row.column for row in table):
        rows = [row for row in table if row.column == column]
        unusual = [row for row in rows if not row.usual]
        if unusual:
            shown = rows if len(rows) <= _SHOWN else unusual[:_SHOWN]
            if len(shown) < len(rows):
                more = f", and {len(rows) - len(shown):,} more values"
            else:
                more = ""
            of = f" of {column!r}" if column else ""
            found.append(f"labels{of}: {', '.join(map(str, shown))}{more}")
    return tuple(found)


def values_described(table: Sequence[Meaning]) -> dict[str, Any]:
    """Return a table of labels as a JSON-ready part of an estimate, nothing where there is none."""
    if table:
        return {"label_values": [row.to_dict() for row in table]}
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the user said that labels count as.

    Parameters
    ----------
    meanings : mapping of text to float, str or None
        The number, the class or no answer that a text counts as.
    bounds : (float, float), optional
        What no answer can leave, where that follows.
    positive : str, optional
        The label that counts as 1, where one was named.
    notes : tuple of str

    Examples
    --------
    >>> Declared.of(["Good", "poor", "n/a"], "good", {"n/a": None}).meanings
    {'n/a': None, 'Good': 1.0, 'poor': 0.0}
    """

    meanings: Mapping[str, float | str | None] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None
    positive: str | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        texts: Collection[str],
        positive: str | None,
        mapping: Mapping[Any, Any] | None,
        *,
        partly: bool = False,
    ) -> Declared:
        """Return what the given texts count as; case matters in neither `positive` nor `mapping`.

        A mapping to numbers must have all words, unless it is to be of some answers of a question.
        """
        if positive is None and mapping is None:
            return cls()
        wanted = _mapping({} if mapping is None else mapping)
        found = {text: wanted[_key(text)] for text in texts if _key(text) in wanted}
        given = set(map(_key, texts))
        unused = [str(label) for label in mapping or () if _key(label) not in given]
        notes = (f"no label is {' or '.join(map(repr, unused[:5]))}, as mapped",) if unused else ()
        if positive is not None:
            one = class_text(positive)
            rest = [text for text in texts if text not in found]
            refuse_no_answer([text for text in rest if _key(text) != _key(one)])
            classes = {text: text for text in rest} | {
                text: class_text(value) for text, value in found.items() if value is not None
            }
            ones = {text: float(_key(value) == _key(one)) for text, value in classes.items()}
            if not any(ones.values()):
                notes = (*notes, _never_given(one, list(classes.values())))
            return cls(meanings={**found, **ones}, bounds=(0.0, 1.0), positive=one, notes=notes)
        numbers = [value for value in wanted.values() if isinstance(value, float)]
        of_numbers = any(_is_number(text) for text, value in wanted.items() if isinstance(value, float))
        left = [text for text in texts if text not in found and (of_numbers or not _is_number(text))]
        if numbers and left and not partly:
            what = f"labels: the mapping leaves out {', '.join(map(repr, left[:5]))}"
            action = "Say what they count as; an empty value means no answer (--map Unsure=)."
            raise LabelError(what, given=", ".join(map(str, mapping or ())), action=action)
        if len(set(numbers)) > 1:
            bounds = (min(numbers), max(numbers))
        else:
            bounds = None
        return cls(meanings=found, bounds=bounds, notes=notes)

    @property
    def stands_for_numbers(self) -> bool:
        """Whether the user declared numbers, so that labels are no classes."""
        return self.positive is not None or any(isinstance(value, float) for value in self.meanings.values())

    def numbers(self, texts: Iterable[str]) -> dict[str, float]:
        """Return the number that each text counts as, NaN where it is none."""
        given = {text: self.meanings.get(text, text) for text in texts}
        found = {
            text: number_of_text(value) if isinstance(value, str) else float(value)
            for text, value in given.items()
            if value is not None
        }
        words = {text: str(given[text]) for text, number in found.items() if number != number}
        if not 0 < len(words) <= _MOST_WORDS or any(not (0 <= n <= 1) for n in found.values() if n == n):
            return found
        known = vocabulary(words.values()) or {}
        return found | {text: known[word] for text, word in words.items() if word in known}

    def has_words(self, texts: Iterable[str]) -> bool:
        """Return whether some text counts as a number by a vocabulary alone."""
        given = (self.meanings.get(text, text) for text in texts)
        return any(isinstance(value, str) and not _is_number(value) for value in given)

    def classes(self, texts: Iterable[str], known: Collection[str] | None) -> dict[str, str]:
        """Return the class that each text is, spelt as the model spells it; see `refuse_unlike`."""
        if known is not None and self.positive is not None:
            raise LabelError(
                "positive= makes labels 1 and 0, which cannot be compared with the model's answers",
                given=repr(self.positive),
                action="Leave out positive= (--positive) or predicted= (--predicted). Of one class: "
                f"--metric precision,recall --class {quote(self.positive)}.",
            )
        given = {text: self.meanings.get(text, text) for text in texts}
        spelling = {} if known is None else _spellings(known)
        found = {
            text: str(value) if known is not None and value in known else spelling.get(name, name)
            for text, value in given.items()
            if value is not None
            for name in [class_text(value)]
        }
        if known is not None:
            refuse_no_answer([t for t, name in found.items() if t not in self.meanings and name not in known])
        return found

    def spelled_as_verdicts(self, texts: Collection[str], verdicts: Collection[str]) -> Declared:
        """Return the declaration in which labels that agree with a judge's verdict have its spelling.

        A label and a verdict agree if they are the same word. A label that is no verdict agrees with the
        verdict that stands for the same number: by the mapping or the positive label that the user declared,
        or, if no label is a verdict, by a vocabulary. Other labels keep their own word.

        Parameters
        ----------
        texts : collection of str
            The distinct labels.
        verdicts : collection of str
            The distinct verdicts, without words that mean "no verdict".

        Raises
        ------
        LabelError
            If several verdicts stand for the number of a label, or if verdicts are ratings on another scale.

        Examples
        --------
        >>> Declared().spelled_as_verdicts(["pass", "fail"], ["1", "0"]).meanings
        {'pass': '1', 'fail': '0'}
        """
        words = {text: _own_word(text, self.meanings.get(text, text)) for text in texts}
        answered = [text for text, word in words.items() if word is not None]
        known = _spellings(verdicts)
        spelled: dict[str, float | str | None] = {text: known.get(str(words[text])) for text in answered}
        left = [text for text in answered if spelled[text] is None]
        numbers = self._numbers_to_compare(left, any_equal=len(left) < len(answered))
        if numbers:
            of_verdicts = self._verdict_numbers(verdicts)
            self._refuse_other_scale(numbers, of_verdicts)
            for text, number in numbers.items():
                equal = [verdict for verdict, value in of_verdicts.items() if value == number]
                if len(equal) > 1:
                    raise LabelError(
                        f"the verdicts {', '.join(map(repr, equal[:_SHOWN]))} all count as {number:g}, "
                        f"as the label {text!r} does",
                        action=f"Map the label to one of them: {mapped({text: equal[0]})}.",
                    )
                spelled[text] = equal[0] if equal else None
        meanings = dict(self.meanings)
        for text in answered:
            word = spelled[text] or words[text]
            if word != text or text in meanings:
                meanings[text] = word
        return replace(self, meanings=meanings, bounds=None, positive=None)

    def _numbers_to_compare(self, texts: Collection[str], *, any_equal: bool) -> dict[str, float]:
        """Return the numbers of labels that are no verdicts; vocabularies count if no label is a verdict."""
        declared = {text: value for text, value in self.meanings.items() if isinstance(value, float)}
        numbers = {text: declared[text] for text in texts if text in declared}
        if any_equal or len(numbers) == len(texts):
            return numbers
        try:
            by_words = self.numbers(texts)
        except LabelError:  # a lone word of several vocabularies
            return numbers
        if all(number == number for number in by_words.values()):
            return by_words
        return numbers

    def _verdict_numbers(self, verdicts: Collection[str]) -> dict[str, float]:
        """Return the numbers that verdicts count as, as labels of the same words do; NaN where none."""
        declared = {_key(text): value for text, value in self.meanings.items() if isinstance(value, float)}
        meanings = {verdict: declared[_key(verdict)] for verdict in verdicts if _key(verdict) in declared}
        try:
            return Declared(meanings=meanings).numbers(sorted(verdicts))
        except LabelError:
            return dict(meanings)

    def _refuse_other_scale(self, labels: Mapping[str, float], verdicts: Mapping[str, float]) -> None:
        """Refuse to compare labels in words with ratings beyond the numbers that the words stand for."""
        if all(_is_number(text) for text in labels):
            return
        low, high = self.bounds or (min(0.0, *labels.values()), max(1.0, *labels.values()))
        beyond = [verdict for verdict, number in verdicts.items() if number < low or number > high]
        if beyond:
            numbers = ", ".join(f"{text}={number:g}" for text, number in labels.items())
            raise LabelError(
                f"the verdicts are numbers beyond those of the labels (such as {beyond[0]!r})",
                given=numbers,
                allowed=f"verdicts from {low:g} to {high:g}",
                action="If the verdicts are ratings, draw with the column as a score: proxy= (--proxy COL).",
            )

    def table(
        self, counts: Mapping[str, int], known: Collection[str] | None, *, classes: bool
    ) -> tuple[Meaning, ...]:
        """Return the table of labels: numbers from the largest down, classes by their counts, no answer."""
        meant: Mapping[str, float | str]
        if classes:
            meant = self.classes(counts, known)
        else:
            meant = self.numbers(counts)
        numbers = {} if classes else meant
        plain = {text: n for text, n in numbers.items() if _TRUTH.get(text, number_of_text(text)) == n}
        rows = [
            Meaning(
                value=text,
                count=count,
                meaning=meaning,
                usual=text in plain
                or (classes and meaning == text and (known is None or text in known or is_set(text))),
            )
            for text, count in counts.items()
            for meaning in [meant.get(text)]
            if len(plain) <= _SHOWN or text not in plain
        ]
        rows.sort(key=_rank)
        if len(plain) <= _SHOWN:
            return tuple(rows)
        low = min(map(float, plain.values()))
        high = max(map(float, plain.values()))
        number = sum(counts[text] for text in plain)
        rest = Meaning(value=f"{low:g} to {high:g}", count=number, meaning=(low, high), usual=True)
        return (rest, *rows)


def _spellings(answers: Collection[str]) -> dict[str, str]:
    """Return how answers are spelt, by their class; 1 and True are one class."""
    spelling = {class_text(answer.strip()): answer for answer in sorted(answers)}
    for truth, digit in TRUTH_VALUES.items():
        if digit in spelling:
            spelling.setdefault(truth, spelling[digit])
        elif truth in spelling:
            spelling[digit] = spelling[truth]
    return spelling


def _own_word(text: str, meaning: float | str | None) -> str | None:
    """Return the class that a label names: its own word unless it is mapped to a class or to no answer."""
    if meaning is None:
        return None
    return class_text(meaning) if isinstance(meaning, str) else text


def _rank(row: Meaning) -> tuple[bool, float, int, str]:
    number = -row.meaning if isinstance(row.meaning, float) else 0.0
    return row.meaning is None, number, -row.count, row.value


def _mapping(mapping: Mapping[Any, Any]) -> dict[str, float | str | None]:
    """Return a mapping by what its labels have in common, refusing one that stands there twice."""
    found: dict[str, float | str | None] = {}
    for label, value in mapping.items():
        if _key(label) in found:
            given = ", ".join(f"{name}={'' if v is None else v}" for name, v in mapping.items())
            action = "Map each label once; case does not matter, and 1 is 1.0."
            raise LabelError(f"labels: {str(label)!r} is mapped twice", given=given, action=action)
        if not (value is None or isinstance(value, str | int | float | np.number)):
            what = f"labels: {str(label)!r} cannot be mapped to {kind_of(value)}"
            raise LabelError(what, allowed="a number, the name of a class, or None for no answer")
        if isinstance(value, str):
            found[_key(label)] = value.strip() or None
        else:
            if value is None or value != value:
                found[_key(label)] = None
            else:
                found[_key(label)] = float(value)
    return found


def _is_number(text: str) -> bool:
    return number_of_text(text) == number_of_text(text)


def mapped(meanings: Mapping[str, float | str | None]) -> str:
    """Return what labels count as, as the keyword and the option that say so.

    Examples
    --------
    >>> mapped({"n/a": None}), mapped({"not ok": 0, "ok": 1})
    ("mapping={'n/a':None} (--map n/a=)", "mapping={'not ok':0,'ok':1} (--map 'not ok=0,ok=1')")
    """
    number = {text: f"{meaning:g}" for text, meaning in meanings.items() if isinstance(meaning, float | int)}
    keyword = ",".join(f"{text!r}:{number.get(text, repr(given))}" for text, given in meanings.items())
    option = ",".join(f"{text}={number.get(text, given or '')}" for text, given in meanings.items())
    return f"mapping={{{keyword}}} (--map {quote(option)})"


def refuse_no_answer(texts: Sequence[str], where: str = "labels", among: Sequence[str] | None = None) -> None:
    """Refuse words that say that there is no answer: as classes, or `among` labels that count as numbers.

    Examples
    --------
    >>> refuse_no_answer(["cat", "n/a"])
    Traceback (most recent call last):
    stratal.errors.LabelError: labels: 'n/a' says that there is no answer...
    """
    found = [text for text in texts if is_no_answer(text)]
    if not found:
        return
    nothing = mapped(dict.fromkeys(found[:_SHOWN]))
    if among is None:
        other = f"a class: {mapped({text: text for text in found[:_SHOWN]})}"
    else:
        words = [text for text in among if not _is_number(text) and text not in found]
        if len(words) <= _SHOWN:
            numbers = vocabulary(words) or {}
        else:
            numbers = {}
        other = f"a number: {mapped(numbers | dict.fromkeys(found[:_SHOWN], 0.0))}"
    what = f"{where}: {found[0]!r} says that there is no answer"
    given = ", ".join(map(repr, found[:5]))
    action = f"If it is not an answer: {nothing}; if it is {other}."
    raise LabelError(what, given=given, allowed="an empty label where there is none", action=action)


def _never_given(positive: str, given: list[str]) -> str:
    """Return what to say of a label that is to count as 1 and that nobody gave.

    It is refused where labels are numbers and it is none, or the other way round, and where labels are
    opposites, such as pass and fail.
    """
    there = ", ".join(map(repr, given[:_SHOWN])) + (" …" if len(given) > _SHOWN else "")
    plain = [word.casefold() for word in given]
    paired = any({known.get(word) for word in plain} == {0.0, 1.0} for known in map(_pair, _PAIRS))
    if {_is_number(word) for word in given} == {not _is_number(positive)} or paired:
        action = (
            "Name the label that counts as 1 as it is written in the file; 0 and 1, yes and no, "
            "pass and fail need no name."
        )
        raise LabelError(f"no label is {positive!r}", given=there, action=action)
    return f"no label is {positive!r}, so that all count as 0; there are {there}"


def refuse_unlike(labels: Sequence[str], answers: Sequence[str]) -> None:
    """Refuse labels (r,) that can never be one of the model's answers (n,), though they seem to be.

    Raises
    ------
    LabelError
        For measurements, for a label that differs from an answer in case or blanks alone, and if no label is
        ever among the answers, which repeat: free text may never be right.

    Examples
    --------
    >>> refuse_unlike(["Cat", "dog"], ["cat", "dog"])
    Traceback (most recent call last):
    stratal.errors.LabelError: labels say 'Cat' where answers say 'cat' (1 such label)...
    """
    given = set(labels)
    known = set(answers)
    fractions = sum(not number_of_text(entry).is_integer() and _is_number(entry) for entry in given | known)
    if fractions > _MOST_FRACTIONS:
        what = f"labels and answers are measurements ({fractions} have decimals), which are hardly ever equal"
        action = "Label 1 or 0, or the error itself, and leave out predicted= (--predicted)."
        raise LabelError(what, action=action)
    folded = {_folded(answer): answer for answer in sorted(known)}
    spelt = [label for label in labels if label not in known and _folded(label) in folded]
    if spelt:
        right = {label: folded[_folded(label)] for label in spelt}
        what = f"labels say {spelt[0]!r} where answers say {right[spelt[0]]!r}"
        such = f"({len(spelt)} such label{'s' * (len(spelt) > 1)})"
        action = f"Spell labels as the answers are, or they all count as wrong: {mapped(right)}."
        raise LabelError(f"{what} {such}", action=action)
    # Free text may never be right, but then labels are free text too, and as different as answers are.
    repeated = len(known) <= len(answers) / 2 or len(given) <= len(labels) / 2
    # Words such as A, B and tie say which is better, unless answers are of these words too; letters alone are
    # as often classes.
    judged = any(len(label) > 1 for label in given) and _of_one_vocabulary(given)
    judged = judged and not _of_one_vocabulary(given | known)
    if given.isdisjoint(known) and (judged or (repeated and len(labels) >= _ENOUGH)):
        raise LabelError(
            f"no label is ever among the model's answers (first: {labels[0]!r})",
            allowed=", ".join(map(repr, sorted(known)[:5])),
            action="If labels say right or wrong, or which of two models is better, they are outcomes and no "
            "classes: leave out predicted= and the estimand of the two (--predicted, --estimand), and their "
            "mean is the share of right answers, or of wins.",
        )


def _of_one_vocabulary(words: set[str]) -> bool:
    """Return whether all are words of one list of outcomes, such as pass and fail, or A, B and tie."""
    return any({word.strip().casefold() for word in words} <= known.keys() for known in VOCABULARIES)


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()


def counted(given: AnyArray) -> dict[str, int]:
    """Return how often each value occurs among answers (r,), as text.

    Examples
    --------
    >>> counted(np.array([1.0, 0.0, 1.0])), counted(np.array(["a", "b", "a"], dtype=object))
    ({'0': 1, '1': 2}, {'a': 2, 'b': 1})
    """
    if given.dtype == object:
        return dict(Counter(given.tolist()))
    values, counts = np.unique(given, return_counts=True)
    return {class_text(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}


def stand_for_numbers(texts: Iterable[str]) -> bool:
    """Return whether there are texts, and all are finite numbers or words that stand for numbers.

    Examples
    --------
    >>> stand_for_numbers(["Pass", "fail"]), stand_for_numbers(["cat"]), stand_for_numbers([])
    (True, False, False)
    """
    try:
        found = list(Declared().numbers(texts).values())
    except LabelError:
        return False
    return bool(found) and bool(np.all(np.isfinite(found)))
