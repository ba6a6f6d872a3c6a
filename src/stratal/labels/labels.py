"""`Labels`: what the annotators said, joined to the sample by id."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from os import PathLike, fspath
from statistics import multimode
from typing import Any, Protocol

import numpy as np

from stratal.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    Record,
    refuse_extremes,
    same_value,
    without_mask,
)
from stratal.errors import LabelError, kind_of
from stratal.labels.meanings import (
    DECIMAL_COMMA,
    HOW,
    Declared,
    Meaning,
    class_text,
    counted,
    is_known_word,
    mapped,
    refuse_no_answer,
    sentences,
    stand_for_numbers,
    vocabulary,
)
from stratal.question import Outcome, Question
from stratal.question.tags import SEPARATORS, is_set, read_set, read_sets, tags_of
from stratal.randomness import id_text, id_texts
from stratal.tables.files import text_of_cell
from stratal.tables.small_table import is_missing

# Possessive, so that no text is looked at twice. Without its leading zeros; no second group for 0 itself.
_WHOLE = re.compile(r"([+-]?)(?:0*+([^\D0]\d*+)|0++)(?:[.,]0*+)?")
_SCIENTIFIC = re.compile(r"([+-]?\d)(?:[.,](\d+))?[eE]([+-]?\d+)")


def matched(
    ids: Sequence[str], annotators: Sequence[str] | None, known: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return ids (m,) as they were before a spreadsheet changed them, and what is to be said of that.

    An id is matched only where it is that of no unit, exactly one unit could have become it, and nobody
    gave that unit's own id as well. All others stay as they are.

    Parameters
    ----------
    ids : sequence of str (m,)
    annotators : sequence of str (m,), optional
    known : collection of str
        The sample's ids.

    Examples
    --------
    >>> matched(["415", "x"], None, {"0415", "x"})
    (('0415', 'x'), ("1 id was matched as a spreadsheet changed it (first: '415' is '0415')",))
    >>> matched(["415"], None, {"0415", "00415"})
    (('415',), ())
    """
    strangers = [row for row, text in enumerate(ids) if text not in known]
    if not strangers:
        return tuple(ids), ()
    who = [""] * len(ids) if annotators is None else annotators
    taken = {(text, by) for text, by in zip(ids, who, strict=True) if text in known}
    could = _Candidates(known)
    result = list(ids)
    first = None
    for row in strangers:
        found = could.become(ids[row])
        if len(found) == 1 and (found[0], who[row]) not in taken:
            result[row] = found[0]
            first = first or (ids[row], found[0])
    changed = sum(after != before for after, before in zip(result, ids, strict=True))
    if first is None:
        return tuple(result), ()
    if changed == 1:
        ids_were = "1 id was"
    else:
        ids_were = f"{changed:,} ids were"
    note = f"{ids_were} matched as a spreadsheet changed {'it' if changed == 1 else 'them'}"
    return tuple(result), (f"{note} (first: {first[0]!r} is {first[1]!r})",)


class _Candidates:
    """The units whose ids a spreadsheet could have turned into a given text."""

    def __init__(self, known: Collection[str]) -> None:
        self._forms: dict[str, list[str]] = {}
        self._numbers: list[tuple[Decimal, str]] = []
        for text in known:
            self._forms.setdefault(bare_form(text), []).append(text)
            if _WHOLE.fullmatch(text) or _SCIENTIFIC.fullmatch(text):
                self._numbers.append((Decimal(text.replace(",", ".")), text))
        self._rounded: dict[int, dict[str, list[str]]] = {}

    def become(self, text: str) -> list[str]:
        """Return the ids that could have become `text`."""
        scientific = _SCIENTIFIC.fullmatch(text.strip())
        if scientific is None:
            return self._forms.get(bare_form(text), [])
        digits = len(scientific.group(2) or "")
        if digits not in self._rounded:
            rounded: dict[str, list[str]] = {}
            for number, known in self._numbers:
                rounded.setdefault(f"{number:.{digits}E}", []).append(known)
            self._rounded[digits] = rounded
        return self._rounded[digits].get(f"{Decimal(text.strip().replace(',', '.')):.{digits}E}", [])


def bare_form(text: str) -> str:
    """Return what is left of an id without leading zeros, a trailing .0, spaces and a date's midnight.

    Examples
    --------
    >>> bare_form("007"), bare_form(" 7.0")
    ('7', '7')
    """
    text = text.strip()
    whole = _WHOLE.fullmatch(text)
    if whole is not None:
        return whole.group(1).replace("+", "") + (whole.group(2) or "0")
    if text.endswith("00:00"):
        return re.sub(r"[T ]00:00(:00)?$", "", text)
    return text


class UnitRows(Protocol):
    """What labels are joined to: drawn units, in order; a `Sample` is one."""

    @property
    def ids(self) -> AnyArray:
        """Ids (n,)."""

    @property
    def size(self) -> int:
        """Units drawn, n."""

    @property
    def seed(self) -> int:
        """Seed of the draw, for error messages."""

    @property
    def groups(self) -> Mapping[str, AnyArray]:
        """Kept columns (n,) as text, by name."""

    @property
    def question(self) -> Question:
        """What labels count as (`outcome`), where they do not say it themselves, and the id column."""


# Column that states of which rows a sample's ids are the numbers.
SAMPLE_TOKEN = "sample_token"
SKIPPED = "skipped"
SUBMITTED = "submitted"
# The label of an answer that failed, where it counts as wrong and labels are words.
FAILED_ANSWER = "failed answer"
# The annotator of a label that was decided where people disagreed.
ADJUDICATED = "adjudicated"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels(Record):
    """One row per answer: which unit, what was said, by whom.

    Parameters
    ----------
    ids : tuple of str (m,)
        Ids as text; several answers of one unit need different annotators.
    values : tuple (m,)
        Numbers or text; None (or NaN, pandas' NA, a masked scalar, a blank) where the unit was skipped or is
        not labelled yet. A `Decimal` is a number.
    annotators : tuple of str (m,), optional
    places : tuple of str (m,), optional
        Where each answer was read from, for error messages: `line 7`.
    source : str
        Where the labels came from, for error messages.
    notes : tuple of str
        What was done to read them, to be said beside the estimate.
    positive : str, optional
        The label that counts as 1, and every other as 0; case does not matter.
    mapping : mapping of label to float, str or None, optional
        What labels count as: a number, the name of a class, or None for no answer. Case does not matter.
        Where words are mapped to numbers, every word must be.
    columns : mapping of name to tuple (m,)
        Other columns of the file that they were read from; `join` compares those that the sample keeps too.
    replaced : Labels, optional
        What annotators had answered where a decision replaced it (rows of annotator `adjudicated`): no
        evidence of the outcome any more, but of how far people agree.
    failed : tuple of bool (m,), optional
        Which values are missing because the model's answer failed: its application returned an error or
        nothing. See `failed_as_wrong`.
    sets : tuple of str or None (m,), optional
        The texts of values that were lists: sets of tags. Such a value is this text, unless all lists have
        one tag or none, as annotation tools write a label that could be several.
    tokens : tuple of str (m,), optional
        Of labels from a file: the token of the sample that each row was handed out for, empty where the file
        has none. `join` compares them with the sample's if its ids are row numbers.

    Raises
    ------
    LabelError
        If there are not as many ids, values and annotators, for a value that is a dict or a list of other
        things than tags, and for an annotator that is a container.

    Examples
    --------
    >>> Labels(ids=("a", "b"), values=(1.0, None)).answered
    1
    """

    ids: tuple[str, ...]
    values: tuple[Any, ...]
    annotators: tuple[str, ...] | None = None
    places: tuple[str, ...] | None = field(default=None, compare=False)
    source: str = field(default="labels", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    positive: str | None = None
    mapping: Mapping[Any, float | str | None] | None = None
    columns: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, compare=False, repr=False)
    replaced: Labels | None = field(default=None, compare=False)
    failed: tuple[bool, ...] | None = field(default=None, compare=False)
    sets: tuple[str | None, ...] | None = field(default=None, compare=False, repr=False)
    tokens: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        columns = [self.ids, self.values, *([] if self.annotators is None else [self.annotators])]
        if not all(isinstance(given, Sized) for given in columns) or len(set(map(len, columns))) > 1:
            what = "ids, values and annotators of labels must be lists of one length"
            lengths = ", ".join(str(len(c)) if isinstance(c, Sized) else kind_of(c) for c in columns)
            action = "Give one id, one value and one annotator for each answer."
            raise LabelError(what, given=lengths, action=action)
        for given, kind in ((self.positive, str | int | float | None), (self.mapping, Mapping | None)):
            if not isinstance(given, kind):
                allowed = "positive='yes', mapping={'yes': 1, 'no': 0, 'unsure': None}"
                raise LabelError("what labels count as cannot be read", given=kind_of(given), allowed=allowed)
        self._set(ids=tuple(map(id_text, self.ids)))
        self._set(values=tuple(self.values))
        if any(map(_is_list, self.values)):
            self._read_lists()
        plain = set(map(type, self.values)) <= {float, int}
        if not plain or any(value != value for value in self.values):
            # Most labels are a few texts, many times over: each is read once.
            read = {text: text_of_cell(text.strip()) or None for text in texts_among(self.values)}
            rows = enumerate(self.values)
            each = (read[e] if isinstance(e, str) else self._value(row, e) for row, e in rows)
            self._set(values=tuple(each))
        for row, who in enumerate(self.annotators or ()):
            if not isinstance(who, str | int | np.generic):
                raise self._not_one("annotator", row, who, "one name")

    def _read_lists(self) -> None:
        """Read the values that are lists of tags as the texts of their sets."""
        sets = tuple(read_set(entry) if _is_list(entry) else None for entry in self.values)
        lists = [entry for entry in self.values if _is_list(entry)]
        single = all(isinstance(entry, list | tuple) and len(entry) <= 1 for entry in lists)
        values = []
        for entry, text in zip(self.values, sets, strict=True):
            if text is None:
                values.append(entry)
            elif single:  # annotation tools that allow several labels
                values.append(next(iter(entry), None))
            else:
                values.append(text)
        self._set(values=tuple(values), sets=sets)

    def _value(self, row: int, entry: Any) -> Any:
        """Return a value as plain Python has it, None where it is missing."""
        if isinstance(entry, str):
            return text_of_cell(entry.strip()) or None
        if is_missing(entry):
            return None
        if isinstance(entry, date | time | timedelta | np.datetime64 | np.timedelta64):
            raise LabelError(
                f"{self.place(row)}: the label of id {self.ids[row]!r} is a time",
                given=str(entry),
                allowed="one number or text",
                action="Name the column of the labels: value= (--value COL). A spreadsheet turns entries "
                "such as 1-2 into dates: format the column as text, and fill it in again.",
            )
        if isinstance(entry, np.generic) or (isinstance(entry, np.ndarray) and entry.ndim == 0):
            entry = entry.item()
        if isinstance(entry, Decimal):
            return float(entry)
        if isinstance(entry, Iterable | Sized) and not isinstance(entry, str | bytes):
            raise self._not_one("label", row, entry, "one number or text")
        return entry

    def refuse_sets(self) -> None:
        """Refuse lists of several tags, where answers are no sets of tags."""
        for row, (value, text) in enumerate(zip(self.values, self.sets or (), strict=True)):
            if text is not None and value == text:
                raise LabelError(
                    f"{self.place(row)}: the label of id {self.ids[row]!r} is a list, and answers are no "
                    "sets of tags",
                    given=text,
                    allowed="one number or text",
                    action="Give each answer its own row, with one value and the annotator's name. If labels "
                    "are sets of tags, answers are too: predicted= (--predicted) and tags= (--tags) of the "
                    "draw.",
                )

    def _not_one(self, what: str, row: int, entry: Any, allowed: str) -> LabelError:
        what = f"{self.place(row)}: the {what} of id {self.ids[row]!r} is {kind_of(entry)}"
        action = "Give each answer its own row, with one value and the annotator's name."
        return LabelError(what, given=reprlib.repr(entry), allowed=allowed, action=action)

    @property
    def answered(self) -> int:
        """Rows with a value."""
        return sum(value is not None for value in self.values)

    def interpreted(self) -> tuple[AnyArray, Declared]:
        """Return the values (m,), and what the user said that they count as.

        They are float where all are numbers, NaN where there is none, and otherwise texts and None.
        """
        kinds = set(map(type, self.values)) - {type(None)}
        if self.positive is None and self.mapping is None and kinds <= {float, int}:
            try:
                return np.array(self.values, dtype=np.float64), Declared()
            except OverflowError:
                pass
        texts = np.full(len(self.values), None, dtype=object)
        read = {None: None} | {text: class_text(text) for text in texts_among(self.values)}
        known = (str, type(None))
        texts[:] = [read[e] if isinstance(e, known) else class_text(e) for e in self.values]
        before = () if self.replaced is None else self.replaced.values
        distinct = dict.fromkeys([*texts.tolist(), *(e if e is None else class_text(e) for e in before)])
        distinct.pop(None, None)
        return texts, Declared.of(distinct, self.positive, self.mapping)

    def only(self, rows: Sequence[int]) -> Labels:
        """Return some of the rows, in this order."""
        return replace(
            self,
            ids=tuple(self.ids[row] for row in rows),
            values=tuple(self.values[row] for row in rows),
            annotators=self.annotators and tuple(self.annotators[row] for row in rows),
            places=self.places and tuple(self.places[row] for row in rows),
            failed=self.failed and tuple(self.failed[row] for row in rows),
            sets=self.sets and tuple(self.sets[row] for row in rows),
            tokens=self.tokens and tuple(self.tokens[row] for row in rows),
            columns={name: tuple(entries[row] for row in rows) for name, entries in self.columns.items()},
        )

    def with_set_texts(self, values: AnyArray, declared: Declared, outcome: Outcome) -> AnyArray:
        """Return interpreted values (m,) with the texts of the sets of tags that they hold.

        Values that are all numbers, or words for numbers, are left as they are: they state whether an answer
        is right.

        Raises
        ------
        LabelError
            For a label that is no set of tags, if others are, and for tags that differ from those of the
            answers in case or spaces alone.
        """
        if values.dtype != object and self.sets is None:
            return values
        cells: list[Any] = list(values.tolist())
        if values.dtype != object:
            cells = [None if value != value else class_text(value) for value in cells]
        for row, text in enumerate(self.sets or ()):
            cells[row] = cells[row] if text is None else text
        no_answer = {text for text, meaning in declared.meanings.items() if meaning is None}
        rows = [row for row, cell in enumerate(cells) if cell is not None and cell not in no_answer]
        given = [cells[row] for row in rows]
        texts, other = read_sets(given, _format_of(given, outcome))
        if other is not None:
            raise LabelError(
                f"{self.place(rows[other])}: the label of id {self.ids[rows[other]]!r} is no set of tags, as "
                "others are",
                given=repr(given[other]),
                allowed='a list such as ["a", "b"], [] for no tags, an empty cell where there is no label',
                action="Correct it; if it is no answer: " + mapped({str(given[other]): None}) + ".",
            )
        if texts is None:
            return values
        self._refuse_misspelt_tags(texts, rows, outcome.tags)
        found = np.full(len(cells), None, dtype=object)
        found[:] = [cell if cell in no_answer else None for cell in cells]
        found[rows] = texts
        return found

    def _refuse_misspelt_tags(self, texts: Sequence[str], rows: Sequence[int], known: Sequence[str]) -> None:
        """Refuse tags that differ from those of the answers in case or spaces alone."""
        spelling = {"".join(tag.split()).casefold(): tag for tag in known}
        for row, text in zip(rows, texts, strict=True):
            for tag in tags_of(text):
                right = spelling.get("".join(tag.split()).casefold(), tag)
                if right != tag and tag not in known:
                    raise LabelError(
                        f"{self.place(row)}: the label of id {self.ids[row]!r} has the tag {tag!r}, where "
                        f"answers have {right!r}",
                        allowed=", ".join(map(repr, known)),
                        action="Spell tags as the answers do, or they count as other tags.",
                    )

    @property
    def failed_answers(self) -> int:
        """Rows whose answer failed."""
        return sum(self.failed or ())

    def failed_as_wrong(
        self, bounds: tuple[float, float] | None = None, *, lowest: bool = True, classes: bool = False
    ) -> Labels:
        """Return labels in which each failed answer counts as wrong.

        Parameters
        ----------
        bounds : (float, float), optional
            Of the scores; 0 and 1 if they lie there, or those of the words and of the mapping.
        lowest : bool
            Whether low scores are wrong; high ones are of an error rate.
        classes : bool
            Whether labels are classes, so that a failed answer is of a class of its own.

        Raises
        ------
        LabelError
            For scores without bounds, and for words that stand for no numbers.

        Examples
        --------
        >>> Labels(ids=("a", "b"), values=(1.0, None), failed=(False, True)).failed_as_wrong().values
        (1.0, 0.0)
        """
        if not self.failed_answers:
            return self
        wrong, mapping = self._wrong_value(bounds, lowest, classes)
        values = (
            wrong if is_failed else value
            for value, is_failed in zip(self.values, self.failed or (), strict=True)
        )
        return replace(self, values=tuple(values), mapping=mapping, failed=None)

    def _wrong_value(
        self, bounds: tuple[float, float] | None, lowest: bool, classes: bool
    ) -> tuple[float | str, Mapping[Any, float | str | None] | None]:
        """Return the value of a wrong answer, and the mapping that says what it counts as."""
        worst = min if lowest else max
        if classes:
            return FAILED_ANSWER, self.mapping
        if self.positive is not None:  # every label but the positive one counts as 0
            return (FAILED_ANSWER if lowest else self.positive), self.mapping
        numbers = [value for value in (self.mapping or {}).values() if isinstance(value, int | float)]
        if self.mapping is not None and numbers:
            return FAILED_ANSWER, {**self.mapping, FAILED_ANSWER: float(worst(numbers))}
        values = [value for value in self.values if value is not None]
        if any(isinstance(value, str) for value in values):
            words = vocabulary([str(value) for value in values])
            if words is None:
                action = "Name the label that counts as 1 (positive=, --positive), or count them as missing."
                raise LabelError(f"{self.source}: failed answers have no label", action=action)
            return worst(words, key=words.__getitem__), self.mapping
        if bounds is None and all(0 <= value <= 1 for value in values):
            bounds = (0.0, 1.0)
        if bounds is None:
            raise LabelError(
                f"{self.source}: failed answers cannot count as wrong, since the scores have no bounds",
                given=f"{min(values):g} to {max(values):g}",
                action="Give the bounds (bounds=, --bounds), or count failed answers as missing "
                "(--failed-answers missing).",
            )
        return worst(bounds), self.mapping

    def place(self, row: int) -> str:
        """Return where an answer stands, for an error message."""
        if self.places:
            return f"{self.source}, {self.places[row]}"
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joined(Record):
    """The answers of a sample's units, in the order of the units: what they count as, and what is missing.

    Parameters
    ----------
    unit : int (r,)
        The drawn unit of each answer.
    given : (r,)
        Numbers, or texts for `declared` and the vocabularies to interpret.
    declared : Declared
    labelled : bool (n,)
        Which drawn units have an answer.
    ids : (n,)
        Of the drawn units, for error messages.
    unanswered : mapping of str to int
        How often each text was given that counts as no answer.
    notes : tuple of str
        What was done to read and to join them.
    kept : dict
        What several estimands of one call read off them alike; empty between calls.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> int(join(sample, {0: 1, 1: None}).labelled.sum())
    1
    """

    unit: IntArray
    given: AnyArray
    declared: Declared
    labelled: BoolArray
    ids: AnyArray
    unanswered: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kept: dict[Any, Any] = field(init=False, default_factory=dict, compare=False, repr=False)

    def numbers(self, source: str = "labels") -> FloatArray:
        """Return the number that each answer (r,) counts as; an error names `source` and the unit.

        Raises
        ------
        LabelError
            For an answer that stands for no finite number.
        """
        numbers = self.given
        if numbers.dtype == object:
            meant = self.declared.numbers(dict.fromkeys(numbers.tolist()))
            strange = [text for text, number in meant.items() if number != number]
            refuse_no_answer(strange, source, list(meant))
            numbers = np.array([meant[text] for text in numbers.tolist()], dtype=np.float64)
        if not np.all(np.isfinite(numbers)):
            raise self._no_number(np.asarray(numbers), source)
        refuse_extremes(source, numbers)
        return np.asarray(numbers)

    def _no_number(self, numbers: FloatArray, source: str) -> LabelError:
        """Return the error that names the odd one of the answers (r,): a word of no vocabulary, if any."""
        texts = list(map(str, self.given.tolist()))
        wrong = np.flatnonzero(~np.isfinite(numbers)).tolist()
        unknown = [row for row in wrong if not is_known_word(texts[row])]
        # All words may be known, and a few numbers stand among them that none of them counts as.
        outside = np.flatnonzero((numbers < 0) | (numbers > 1)).tolist()
        among = not unknown and 0 < len(outside) < len(wrong)
        odd = outside if among else unknown or wrong
        first = texts[odd[0]]
        if among:
            what = f"stands among words such as {texts[wrong[0]]!r}"
        else:
            what = "is not a finite number"
        action = f"{HOW} If labels are classes, name the column of the model's answers: predicted=."
        if among:
            action = f"Correct it; if it is no answer: {mapped({first: None})}."
        elif DECIMAL_COMMA.fullmatch(first):
            action = "Write decimal points; in a file with ; between its columns decimal commas are read too."
        return LabelError(
            f"{source}: label {first!r} of id {id_text(self.ids.tolist()[self.unit[odd[0]]])!r} {what}"
            + (f" ({len(odd)} such labels)" if len(odd) > 1 else ""),
            allowed="numbers, or words such as pass/fail, yes/no, correct/incorrect, win/tie/loss",
            action=action,
        )

    def classes(self, answers: Collection[str] | None = None) -> AnyArray:
        """Return the class that each answer (r,) is, as text; `answers` are those that the model gives."""
        meant = self.distinct_classes(answers)
        return np.array([meant[value] for value in self.given.tolist()], dtype=object)

    @property
    def distinct_texts(self) -> list[str]:
        """The distinct answers as text, mapped to a class where the user declared one."""
        texts = map(class_text, dict.fromkeys(self.given.tolist()))
        return [str(self.declared.meanings.get(text, text)) for text in texts]

    def distinct_classes(self, answers: Collection[str] | None = None) -> dict[Any, str]:
        """Return the class of each distinct answer, in the order in which they were given."""
        texts = {value: class_text(value) for value in dict.fromkeys(self.given.tolist())}
        known = None if answers is None else set(answers)
        meant = self.declared.classes(dict.fromkeys(texts.values()), known)
        return {value: meant[text] for value, text in texts.items()}

    @property
    def bounds(self) -> tuple[float, float] | None:
        """What no number can leave, where words stand for numbers."""
        if self.declared.bounds is not None or self.given.dtype != object:
            return self.declared.bounds
        if self.declared.has_words(dict.fromkeys(self.given.tolist())):
            return (0.0, 1.0)
        return None

    def by_unit(self, numbers: FloatArray) -> FloatArray:
        """Return the mean of each labelled unit's numbers (m,) from those of the answers (r,)."""
        sums = np.bincount(self.unit, numbers)
        counts = np.bincount(self.unit)
        return np.asarray(sums[counts > 0] / counts[counts > 0])

    def majority(self, answers: AnyArray) -> AnyArray:
        """Return the answer that each drawn unit (n,) has most often, None where none or two are."""
        found = np.full(len(self.labelled), None, dtype=object)
        starts = np.flatnonzero(np.diff(self.unit, prepend=-1))
        if len(starts) == len(answers):  # one answer of each unit
            found[self.unit] = answers.tolist()
            return found
        for unit, own in zip(self.unit[starts].tolist(), np.split(answers, starts)[1:], strict=True):
            most = multimode(own.tolist())
            found[unit] = most[0] if len(most) == 1 else None
        return found

    def table(
        self, answers: Collection[str] | None = None, *, classes: bool = False, column: str = ""
    ) -> tuple[Meaning, ...]:
        """Return what each distinct value of a column counts as: a number, or one of `classes`."""
        rows = self.declared.table({**counted(self.given), **self.unanswered}, answers, classes=classes)
        if column:
            return tuple(replace(row, column=column) for row in rows)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsRead:
    """How the labels of an estimate were read: what each of their values counts as, and what is said of it.

    Parameters
    ----------
    columns : mapping of str to Joined
        By their names, "" that of one column alone.
    answers : collection of str, optional
        Those of the model, where labels are compared with them.
    classes : bool
        Whether labels are classes.
    """

    columns: Mapping[str, Joined]
    answers: Collection[str] | None = None
    classes: bool = False

    @property
    def table(self) -> tuple[Meaning, ...]:
        """What each distinct value counts as."""
        rows = [
            own.table(self.answers, classes=self.classes, column=name) for name, own in self.columns.items()
        ]
        return tuple(row for part in rows for row in part)


def texts_among(values: Iterable[Any]) -> set[str]:
    """Return the different texts among values of any kind, which need not have a hash."""
    return {entry for entry in values if isinstance(entry, str)}


def noted_of(read: LabelsRead | None, remarks: Sequence[str]) -> tuple[str, ...]:
    """Return how labels were read, as notes, and then other remarks; none is said twice."""
    if read is None:
        return tuple(remarks)
    notes = [note for own in read.columns.values() for note in own.notes]
    return tuple(dict.fromkeys([*notes, *sentences(read.table), *remarks]))


def as_labels(labels: Any, sample: UnitRows, what: str = "an array of labels") -> Labels:
    """Return labels of any accepted kind as `Labels`.

    Parameters
    ----------
    labels : Labels, mapping of id to value, pandas-like Series indexed by id, or array (n,)
        An array is in the order of `sample.ids`. NaN and None mean that there is no label.
    sample : Sample

    Raises
    ------
    LabelError
        If an array has not one entry per drawn unit.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> as_labels({1: 0.0, 0: 1.0}, sample).ids
    ('1', '0')
    """
    if isinstance(labels, Labels):
        return labels
    if isinstance(labels, Mapping):
        return Labels(ids=tuple(labels), values=tuple(labels.values()))
    if hasattr(labels, "columns"):
        allowed = "a mapping of id to label, a Series indexed by id, an array in the order of sample.ids"
        action = "Give dict(zip(frame['id'], frame['label']))."
        raise LabelError("labels cannot be a dataframe", allowed=allowed, action=action)
    if hasattr(labels, "index") and not callable(labels.index) and hasattr(labels, "to_numpy"):
        return Labels(ids=tuple(labels.index), values=tuple(labels.to_numpy().tolist()))
    if isinstance(labels, str | PathLike):
        path = repr(fspath(labels))
        raise LabelError(
            "labels cannot be a path", given=path, action=f"Read them: stratal.read_labels({path})."
        )
    shape = shape_of(labels)
    if shape != (sample.size,):
        what = f"{what} must have one entry per drawn unit, in the order of sample.ids"
        action = "Give a mapping of id to label instead."
        if len(shape) > 1:
            action = "Give one column of it: labels[:, 0]; columns of several models go to stratal.compare."
        raise LabelError(what, given=f"shape {shape}", allowed=f"({sample.size},)", action=action)
    return Labels(ids=tuple(id_texts(sample.ids)), values=tuple(without_mask(labels).tolist()))


def shape_of(given: Any) -> tuple[int, ...]:
    """Return the shape of an array, or that of a list whose rows are of different lengths: (n, -1).

    Examples
    --------
    >>> shape_of([[1, 0], [1, 1]]), shape_of([[1, 0], [1]])
    ((2, 2), (2, -1))
    """
    try:
        return np.shape(given)
    except ValueError:
        return (len(given), -1)


def with_ids_of(
    sample: UnitRows, labels: Any, what: str = "an array of labels", known: AbstractSet[str] = frozenset()
) -> Labels:
    """Return labels of any accepted kind with the sample's ids, where a spreadsheet changed them.

    `known` are the ids' texts, where they are at hand.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5], ids=["007", "x"])
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> with_ids_of(sample, {"7": 1.0}).ids
    ('007',)
    """
    given = as_labels(labels, sample, what)
    outcome = sample.question.outcome
    if given.positive is None and given.mapping is None:
        given = replace(given, positive=outcome.positive, mapping=outcome.mapping)
    known = known or set(id_texts(sample.ids))
    if known >= set(given.ids):
        return given
    ids, notes = matched(given.ids, given.annotators, known)
    if notes:
        return replace(given, ids=ids, notes=(*given.notes, *notes))
    return given


def _is_list(value: Any) -> bool:
    """Return whether a value is a list of plain values."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, list | tuple | set | frozenset) and not any(
        isinstance(entry, list | tuple | dict) for entry in value
    )


def _format_of(texts: Sequence[str], outcome: Outcome) -> str | None:
    """Return the format in which labels hold sets; None if only lists are sets.

    Words for numbers among separated tags state whether an answer is right, unless they are tags.
    """
    if outcome.tag_format in SEPARATORS and ({*texts} & {*outcome.tags} or not stand_for_numbers(texts)):
        return outcome.tag_format
    return None


def join(sample: UnitRows, labels: Any, what: str = "an array of labels", *, answers: bool = True) -> Joined:
    """Join labels to a sample by id, and interpret them: each raw value is a value, a class or no answer.

    Parameters
    ----------
    sample : Sample
    labels : see `as_labels`
        Joined ones stay as they are.
    what : str
        What an array is called in an error.
    answers : bool
        Whether these are labels or answers, which may be sets of tags.

    Raises
    ------
    LabelError
        For ids that are not in the sample, and for two answers of one unit by the same annotator (or by
        nobody named).

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> join(sample, {5: 1.0})
    Traceback (most recent call last):
    stratal.errors.LabelError: labels: 1 id is not in this sample (first: '5')...
    """
    if isinstance(labels, Joined):
        return labels
    if (
        type(labels) is np.ndarray  # a masked array is a kind of its own
        and labels.dtype.kind in "biuf"
        and labels.shape == (sample.size,)
    ):
        return _in_order(sample, np.arange(sample.size), labels.astype(np.float64), Declared())
    if isinstance(labels, Labels):
        refuse_other_rows(sample, labels)
    position = dict(zip(id_texts(sample.ids), range(sample.size), strict=True))
    given = with_ids_of(sample, labels, what, position.keys())
    strangers = [row for row, text in enumerate(given.ids) if text not in position]
    if strangers:
        if len(strangers) > 1:
            count = f"{len(strangers)} ids are"
        else:
            count = "1 id is"
        raise LabelError(
            f"{given.place(strangers[0])}: {count} not in this sample (first: {given.ids[strangers[0]]!r})",
            allowed=f"the {sample.size} drawn ids",
            action=f"Labels can only be joined to drawn units; check that they belong to this sample "
            f"(seed {sample.seed}). Where a spreadsheet changed the ids, format their column as text.",
        )
    each = given.ids if given.annotators is None else list(zip(given.ids, given.annotators, strict=True))
    if len(set(each)) < len(each):
        row = next(row for row, entry in enumerate(each) if entry in each[:row])
        who = given.annotators[row] if given.annotators else ""
        by = f" by annotator {who!r}" if who else ""
        raise LabelError(
            f"{given.place(row)}: id {given.ids[row]!r} has two labels{by}",
            allowed="one label per unit and annotator",
            action="Keep one of them, or name the annotators in a column `annotator`; of several models name "
            "the column of theirs: --model COL.",
        )
    units = np.array([position[text] for text in given.ids], dtype=np.int64)
    _refuse_other_columns(sample, given, units)
    values, declared = given.interpreted()
    if answers and sample.question.outcome.holds_sets and sample.question.compares is not False:
        values = given.with_set_texts(values, declared, sample.question.outcome)
    elif given.sets is not None:
        given.refuse_sets()
    return _in_order(sample, units, values, declared, notes=given.notes)


def refuse_other_rows(sample: UnitRows, labels: Labels) -> None:
    """Refuse labels from a file that are not known to be of the rows that the sample's row numbers count.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1])
    >>> sample = stratal.designs.SimpleRandom(budget=1).draw(population, seed=7)
    >>> refuse_other_rows(sample, Labels(ids=("1",), values=(1,), tokens=("",)))
    Traceback (most recent call last):
    stratal.errors.LabelError: labels: ids are row numbers, and nothing states of which rows...
    """
    token = sample.question.sample_token
    if token is None or labels.tokens is None:
        return
    same = "If they are of the same rows: same_rows=True (--same-rows)."
    other = next((row for row, entry in enumerate(labels.tokens) if entry and entry != token), None)
    if other is not None:
        raise LabelError(
            f"{labels.place(other)}: the label was given to a row of another sample",
            given=f"{SAMPLE_TOKEN} {labels.tokens[other]!r}",
            allowed=f"{token!r}, that of this sample (seed {sample.seed})",
            action=f"Give the labels of this sample. {same}",
        )
    missing = next((row for row, entry in enumerate(labels.tokens) if not entry), None)
    if missing is not None:
        raise LabelError(
            f"{labels.place(missing)}: ids are row numbers, and nothing states of which rows",
            given=f"no {SAMPLE_TOKEN}",
            allowed=f"a column {SAMPLE_TOKEN} with {token!r}, as to_label.csv has it",
            action=f"Fill in the file that was handed out, or draw with a column of ids (id=). {same}",
        )


def _refuse_other_columns(sample: UnitRows, labels: Labels, units: IntArray) -> None:
    """Refuse labels whose file has another value than the sample in a column that both have.

    `units` (m,) are the drawn units of the labels. Blank entries and the columns that annotators saw, which a
    spreadsheet may reformat, are not compared. Nor are columns of verdicts on a model's answers.
    """
    tag_format = sample.question.outcome.tag_format
    separator = tag_format if tag_format in SEPARATORS else None
    for name, entries in labels.columns.items():
        if name not in sample.groups:
            continue
        stored = sample.groups[name].tolist()
        if _are_verdicts(entries, stored):
            continue
        for row, (unit, entry) in enumerate(zip(units.tolist(), entries, strict=True)):
            if is_missing(entry) or same_value(entry, stored[unit]):
                continue
            if is_set(stored[unit]) and read_set(entry, separator) == stored[unit]:
                continue
            raise LabelError(
                f"{labels.place(row)}: column {name!r} of id {labels.ids[row]!r} differs from the sample's",
                given=repr(entry),
                allowed=f"{stored[unit]!r}, as when the sample was drawn",
                action=f"If {name!r} holds answers of another model or version, give it another name; "
                "otherwise leave the column out.",
            )


def _are_verdicts(entries: Iterable[Any], stored: Iterable[Any]) -> bool:
    """Return whether entries mean right and wrong, and stored values do not."""
    texts = {class_text(entry) for entry in entries if not is_missing(entry)}
    kept = {class_text(entry) for entry in stored if not is_missing(entry)}
    if not texts or not stand_for_numbers(texts) or stand_for_numbers(kept):
        return False
    return {*Declared().numbers(texts).values()} <= {0.0, 1.0}


def _in_order(
    sample: UnitRows,
    units: IntArray,
    values: AnyArray,
    declared: Declared,
    notes: tuple[str, ...] = (),
) -> Joined:
    """Return answers (m,) of some units (m,) in the units' order, without those that are none."""
    unanswered: dict[str, int] = {}
    if values.dtype == object:
        none = {text for text, meaning in declared.meanings.items() if meaning is None}
        there = np.array([text is not None and text not in none for text in values.tolist()], dtype=bool)
        unanswered = counted(np.array([t for t in values.tolist() if t in none], dtype=object))
    else:
        there = ~np.isnan(values)
    rows = np.flatnonzero(there)
    if (units[1:] <= units[:-1]).any():
        rows = rows[np.argsort(units[rows], kind="stable")]
    labelled = np.zeros(sample.size, dtype=bool)
    labelled[units[rows]] = True
    return Joined(
        unit=units[rows],
        given=values[rows],
        declared=declared,
        labelled=labelled,
        ids=sample.ids,
        unanswered=unanswered,
        notes=(*notes, *declared.notes),
    )
