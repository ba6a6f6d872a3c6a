"""Interpretation of label values: each distinct value is a number, a class, no answer, or an error.

Values are compared as text: 1, 1.0 and "1.0" are the same value. Words that replace numbers (Pass and Fail,
yes and no, win, tie and loss) count as numbers if one vocabulary contains every word of the column. Words
that mean "no answer" raise an error until the user declares what they count as.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, TypeAlias

import numpy as np

from stratal.arrays import AnyArray, number_of_text
from stratal.errors import LabelError, list_first, type_text
from stratal.names import option_of
from stratal.protocols import JsonDict
from stratal.question.decoding import TRUTH_VALUES, fold_text, truth_number
from stratal.question.facts import MAX_VERDICTS
from stratal.question.tags import is_set
from stratal.question.vocabulary import (
    BINARY_VOCABULARIES,
    VOCABULARIES,
    numbers_by_word,
    reversed_verdicts,
    reverses_success,
    success_word,
)
from stratal.tables.no_answer import is_no_answer

# Whole numbers that programs write with decimals, such as 1.0; the group is the number without decimals.
_WHOLE_NUMBER = re.compile(r"([+-]?(?:0|[1-9]\d*))\.0+")
# A column with more distinct words contains classes or free text, and is not compared with the vocabularies.
_MAX_VOCABULARY_WORDS = 50
# Longest list of values in a note or an error message. More distinct numbers are summarised by their range.
_MAX_ROWS_SHOWN = 10
# Longest list of values in an error message about a mapping.
MAX_VALUES_SHOWN = 5
# Maximum number of distinct classes with decimals, such as 0.5; more values are measurements.
_MAX_FRACTIONS = 10
# Maximum number of classes with codes: more whole numbers are quantities.
_MAX_CODED_CLASSES = 30
# Minimum number of labels for the error that none of them is an answer: with fewer, this may be chance.
_MIN_UNMATCHED_LABELS = 10
# Numbers of labels with two or three values: wrong or a loss, a tie, and right or a win.
_SIGNS = frozenset((-1.0, 0.0, 1.0))
# A text such as 0,5 is not a number in Python. Its error message suggests a decimal point.
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
# 3/5 and 3,5.
_UNREAD_NUMBER = re.compile(r"[-+]?\d+ ?[,/] ?\d+")

# The number or the class that a label counts as; None for no answer.
Meaning: TypeAlias = float | str | None


def class_text(value: object) -> str:
    """Return a label or an answer as text, so that 1, 1.0, '1' and '1.0' are one class."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    match = _WHOLE_NUMBER.fullmatch(text)
    if match is None:
        return text
    return match[1]


def comparison_key(value: object) -> str:
    """Return the text by which values are compared: without differences in case and surrounding spaces."""
    if isinstance(value, str):
        value = value.strip()
    return class_text(value).casefold()


# Truth values as text. Their numbers need no explanation in the table of label values.
_TRUTH_TEXTS = {"True": 1.0, "False": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelValue:
    """A row of the table of label values: a raw value, its number of answers, and what it counts as.

    Parameters
    ----------
    value : str
        The raw value, or the range of many distinct numbers.
    count : int
        Number of answers.
    meaning : float, str, (float, float) or None
        The number, the class or the range of numbers that it counts as, or None for no answer.
    counts_as_itself : bool
        Whether the value counts as the number or the class that it is written as.
    column : str
        Column of the labels; empty if there is only one.
    """

    value: str
    count: int
    meaning: float | str | tuple[float, float] | None
    counts_as_itself: bool
    column: str = ""

    def to_dict(self) -> JsonDict:
        """Return a JSON-serializable dict."""
        entries: JsonDict = {"value": self.value, "count": self.count, "meaning": self.meaning}
        if isinstance(self.meaning, tuple):
            entries["meaning"] = list(self.meaning)
        if self.column:
            return {"column": self.column, **entries}
        return entries

    def __str__(self) -> str:
        if isinstance(self.meaning, tuple):
            return f"{self.count:,} numbers from {self.value}"
        if self.meaning is None:
            meaning_text = "no answer"
        elif isinstance(self.meaning, float):
            meaning_text = f"{self.meaning:g}"
        else:
            meaning_text = self.meaning
        return f"{self.value} {self.count:,} → {meaning_text}"


def label_value_notes(table: Sequence[LabelValue]) -> tuple[str, ...]:
    """Return a note for each column of labels in which a value does not count as itself."""
    notes = []
    for column in dict.fromkeys(row.column for row in table):
        rows = [row for row in table if row.column == column]
        converted_rows = [row for row in rows if not row.counts_as_itself]
        if not converted_rows:
            continue
        shown_rows = rows
        remainder = ""
        if len(rows) > _MAX_ROWS_SHOWN:
            shown_rows = converted_rows[:_MAX_ROWS_SHOWN]
            remainder = f", and {len(rows) - len(shown_rows):,} more values"
        of_column = f" of {column!r}" if column else ""
        notes.append(f"labels{of_column}: {', '.join(map(str, shown_rows))}{remainder}")
    return tuple(notes)


def describe_label_values(table: Sequence[LabelValue]) -> JsonDict:
    """Return the table of label values as a JSON-serializable part of an estimate, empty without labels."""
    if table:
        return {"label_values": [row.to_dict() for row in table]}
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMapping:
    """The declared number, class or missing answer of each label.

    Parameters
    ----------
    meanings : mapping of text to float, str or None
        The number, the class or no answer that a text counts as.
    bounds : (float, float), optional
        Bounds of the numbers, where the declaration implies them.
    positive : str, optional
        The label that counts as 1.
    other_meanings : mapping of text to float, str or None
        The same for texts that are not labels, by comparison key: verdicts of judges, and labels that
        `spelled_as_verdicts` has replaced by verdicts.
    unused : tuple of str
        The values in the user's mapping that no label has.
    notes : tuple of str
    """

    meanings: Mapping[str, Meaning] = field(default_factory=dict)
    bounds: tuple[float, float] | None = None
    positive: str | None = None
    other_meanings: Mapping[str, Meaning] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        texts: Collection[str],
        positive: str | None,
        mapping: Mapping[Any, object] | None,
        *,
        is_partial: bool = False,
    ) -> LabelMapping:
        """Return the mapping of some texts; `positive` and `mapping` are compared without regard to case.

        A mapping to numbers must contain all words, unless it `is_partial`.
        """
        if positive is None and mapping is None:
            return cls()
        declared = _normalize_mapping({} if mapping is None else mapping)
        keys = {text: comparison_key(text) for text in texts}
        meanings = {text: declared[key] for text, key in keys.items() if key in declared}
        unused = tuple(str(label) for label in mapping or () if comparison_key(label) not in keys.values())
        other_meanings = {key: value for key, value in declared.items() if key not in keys.values()}
        if positive is not None:
            mapping_of_positive = cls._of_positive(texts, class_text(positive), meanings)
            return replace(mapping_of_positive, other_meanings=other_meanings, unused=unused)
        if len(meanings) < len(keys):
            # A number that is mapped to itself, such as 99, does not require a mapping of the other labels.
            declared = {key: _without_identity(key, value) for key, value in declared.items()}
            meanings = {text: _without_identity(text, value) for text, value in meanings.items()}
        if not is_partial:
            _require_complete_mapping(texts, meanings, declared, mapping or {})
        numbers = [value for value in declared.values() if isinstance(value, float)]
        bounds = None
        if len(set(numbers)) > 1:
            bounds = (min(numbers), max(numbers))
        return cls(meanings=meanings, bounds=bounds, other_meanings=other_meanings, unused=unused)

    @classmethod
    def _of_positive(
        cls, texts: Collection[str], positive: str, meanings: Mapping[str, Meaning]
    ) -> LabelMapping:
        """Return the mapping in which one label counts as 1, and every other answer as 0."""
        positive_key = comparison_key(positive)
        unmapped_texts = [text for text in texts if text not in meanings]
        refuse_no_answer_words([text for text in unmapped_texts if comparison_key(text) != positive_key])
        classes = {text: text for text in unmapped_texts} | {
            text: class_text(value) for text, value in meanings.items() if value is not None
        }
        indicators = {text: float(comparison_key(value) == positive_key) for text, value in classes.items()}
        notes: tuple[str, ...] = ()
        if not any(indicators.values()):
            notes = (_unused_positive_note(positive, list(classes.values())),)
        return cls(meanings={**meanings, **indicators}, bounds=(0.0, 1.0), positive=positive, notes=notes)

    @property
    def stands_for_numbers(self) -> bool:
        """Whether the user declared that labels represent numbers, so that they are not classes."""
        return self.positive is not None or any(isinstance(value, float) for value in self.meanings.values())

    def numbers(self, texts: Iterable[str]) -> dict[str, float]:
        """Return the number of each text, NaN if it has none; texts that mean no answer are left out."""
        meanings = {text: self.meanings.get(text, text) for text in texts}
        numbers: dict[str, float] = {}
        for text, value in meanings.items():
            if isinstance(value, str):
                numbers[text] = number_of_text(value)
            elif value is not None:
                numbers[text] = float(value)
        words = {text: str(meanings[text]) for text, number in numbers.items() if number != number}
        # Vocabularies have numbers from 0 to 1, which cannot be mixed with ratings on another scale.
        has_other_scale = any(number < 0 or number > 1 for number in numbers.values())
        if has_other_scale or not 0 < len(words) <= _MAX_VOCABULARY_WORDS:
            return numbers
        word_numbers = numbers_by_word(words.values()) or {}
        return numbers | {text: word_numbers[word] for text, word in words.items() if word in word_numbers}

    def has_words(self, texts: Iterable[str]) -> bool:
        """Return whether some text is a word without a declared number."""
        meanings = (self.meanings.get(text, text) for text in texts)
        return any(isinstance(value, str) and not _is_number(value) for value in meanings)

    def classes(self, texts: Iterable[str], model_answers: Collection[str] | None) -> dict[str, str]:
        """Return the class of each text, in the spelling of the model's answers if these are given."""
        meanings = {text: self.meanings.get(text, text) for text in texts}
        class_values = {text: value for text, value in meanings.items() if value is not None}
        if model_answers is None:
            return {text: class_text(value) for text, value in class_values.items()}
        if self.positive is not None:
            raise LabelError(
                "positive= turns labels into 1 and 0, which cannot be compared with the model's answers",
                given=repr(self.positive),
                action="Leave out positive= (--positive) or predicted= (--predicted). For one class: "
                f"--metric precision,recall --class {quote(self.positive)}.",
            )
        spellings = _answer_spellings(model_answers)
        classes = {}
        for text, value in class_values.items():
            if value in model_answers:
                classes[text] = str(value)
            else:
                classes[text] = spellings.get(class_text(value), class_text(value))
        undeclared_texts = [text for text in classes if text not in self.meanings]
        refuse_no_answer_words([text for text in undeclared_texts if classes[text] not in model_answers])
        return classes

    def spelled_as_verdicts(self, texts: Collection[str], verdicts: Collection[str]) -> LabelMapping:
        """Return the mapping in which labels that agree with a judge's verdict have its spelling.

        A label and a verdict agree if they are the same word. Otherwise they agree if they count as the same
        number: by the mapping or the positive label that the user declared, or by a vocabulary, which must
        contain all labels, and also all verdicts if a label is a verdict. Other labels keep their spelling.

        Parameters
        ----------
        texts : collection of str
            The distinct labels.
        verdicts : collection of str
            The distinct verdicts, without words that mean "no verdict".

        Raises
        ------
        LabelError
            If several verdicts count as the number of a label, or if verdicts are ratings on another scale.
        """
        words = {text: _class_word(text, self.meanings.get(text, text)) for text in texts}
        answered = [text for text, word in words.items() if word is not None]
        spellings = _answer_spellings(verdicts)
        verdict_of = {text: spellings.get(str(words[text])) for text in answered}
        unmatched_texts = [text for text in answered if verdict_of[text] is None]
        other_words: set[str] = set()
        if len(unmatched_texts) < len(answered):
            other_words = {*(str(words[text]) for text in answered), *verdicts}
        numbers = self._numbers_to_compare(unmatched_texts, other_words)
        if numbers:
            verdict_of |= self._verdicts_of_numbers(numbers, verdicts)
        meanings = dict(self.meanings)
        for text in answered:
            word = verdict_of[text] or words[text]
            if word != text or text in meanings:
                meanings[text] = word
        # Another judge may have other words, and is compared by the numbers again.
        numbers_by_key = {
            comparison_key(text): value for text, value in self.meanings.items() if isinstance(value, float)
        }
        other_meanings = {**self.other_meanings, **numbers_by_key}
        return replace(self, meanings=meanings, bounds=None, positive=None, other_meanings=other_meanings)

    def _verdicts_of_numbers(
        self, numbers: Mapping[str, float], verdicts: Collection[str]
    ) -> dict[str, str | None]:
        """Return the verdict that counts as the number of each label, None if there is none."""
        verdict_numbers = self._verdict_numbers(verdicts)
        self._refuse_ratings_as_verdicts(numbers, verdict_numbers)
        verdict_of = {}
        for text, number in numbers.items():
            equal_verdicts = [verdict for verdict, value in verdict_numbers.items() if value == number]
            if len(equal_verdicts) > 1:
                raise LabelError(
                    f"the verdicts {list_first(map(repr, equal_verdicts), _MAX_ROWS_SHOWN)} and the label "
                    f"{text!r} all count as {number:g}",
                    action=f"Map the label to one of them: {format_mapping({text: equal_verdicts[0]})}.",
                )
            verdict_of[text] = next(iter(equal_verdicts), None)
        return verdict_of

    def _numbers_to_compare(self, texts: Collection[str], other_words: Collection[str]) -> dict[str, float]:
        """Return the numbers of labels without a verdict, by declaration or by a vocabulary.

        If some labels are verdicts, the vocabulary must contain the `other_words`, too: next to `model_a` and
        `model_b`, the label `tie (bothbad)` is the verdict `tie`. Next to verdicts, a declared number of any
        label excludes the vocabulary.
        """
        numbers = {}
        for text in texts:
            value = self.meanings.get(text)
            number = value if isinstance(value, float) else self.other_meanings.get(comparison_key(text))
            if isinstance(number, float):
                numbers[text] = number
        if len(numbers) == len(texts):
            return numbers
        if other_words and (numbers or not _of_one_vocabulary({*other_words})):
            return numbers
        try:
            vocabulary_numbers = self.numbers([*texts, *other_words])
        except LabelError:  # a single word of several vocabularies
            return numbers
        if any(number != number for number in vocabulary_numbers.values()):
            return numbers
        return {text: vocabulary_numbers[text] for text in texts if text in vocabulary_numbers}

    def _verdict_numbers(self, verdicts: Collection[str]) -> dict[str, float]:
        """Return the numbers of verdicts, which are interpreted like labels; NaN if there is none."""
        declared = {
            comparison_key(text): value
            for text, value in {**self.other_meanings, **self.meanings}.items()
            if isinstance(value, float)
        }
        keys = {verdict: comparison_key(verdict) for verdict in verdicts}
        meanings = {verdict: declared[key] for verdict, key in keys.items() if key in declared}
        try:
            numbers = LabelMapping(meanings=meanings).numbers(sorted(verdicts))
        except LabelError:  # a single word of several vocabularies
            return dict(meanings)
        # If bad=1 is declared for labels, failure counts as 1, also for other words in the verdicts. Declared
        # numbers of verdicts are used as they are.
        if not meanings and reverses_success(declared):
            return reversed_verdicts(numbers)
        return numbers

    def _refuse_ratings_as_verdicts(self, labels: Mapping[str, float], verdicts: Mapping[str, float]) -> None:
        """Refuse to compare words with ratings beyond the numbers that the words count as."""
        if all(_is_number(text) for text in labels):
            return
        low, high = self.bounds or (min(0.0, *labels.values()), max(1.0, *labels.values()))
        outside = [verdict for verdict, number in verdicts.items() if number < low or number > high]
        if outside:
            numbers = ", ".join(f"{text}={number:g}" for text, number in labels.items())
            raise LabelError(
                f"the verdicts contain numbers outside the range of the labels (such as {outside[0]!r})",
                given=numbers,
                allowed=f"verdicts from {low:g} to {high:g}",
                action="If the verdicts are ratings, draw with the column as a score: proxy= (--proxy COL).",
            )

    def table(
        self, counts: Mapping[str, int], model_answers: Collection[str] | None, *, classes: bool
    ) -> tuple[LabelValue, ...]:
        """Return the table of label values: numbers in descending order, classes by count, then no answer."""
        if classes:
            return self._class_table(counts, model_answers)
        return self._number_table(counts)

    def _class_table(
        self, counts: Mapping[str, int], model_answers: Collection[str] | None
    ) -> tuple[LabelValue, ...]:
        """Return the table of labels that are classes."""
        class_of = self.classes(counts, model_answers)
        rows = []
        for text, count in counts.items():
            meaning = class_of.get(text)
            is_expected = model_answers is None or text in model_answers or is_set(text)
            rows.append(
                LabelValue(
                    value=text, count=count, meaning=meaning, counts_as_itself=meaning == text and is_expected
                )
            )
        return tuple(sorted(rows, key=_row_order))

    def _number_table(self, counts: Mapping[str, int]) -> tuple[LabelValue, ...]:
        """Return the table of labels that are numbers; many plain numbers are one row with their range."""
        numbers = self.numbers(counts)
        plain_numbers = {
            text: number
            for text, number in numbers.items()
            if _TRUTH_TEXTS.get(text, number_of_text(text)) == number
        }
        rows = [
            LabelValue(
                value=text, count=count, meaning=numbers.get(text), counts_as_itself=text in plain_numbers
            )
            for text, count in counts.items()
        ]
        if len(plain_numbers) <= _MAX_ROWS_SHOWN:
            return tuple(sorted(rows, key=_row_order))
        low = min(plain_numbers.values())
        high = max(plain_numbers.values())
        plain_count = sum(counts[text] for text in plain_numbers)
        range_row = LabelValue(
            value=f"{low:g} to {high:g}", count=plain_count, meaning=(low, high), counts_as_itself=True
        )
        other_rows = sorted((row for row in rows if row.value not in plain_numbers), key=_row_order)
        return (range_row, *other_rows)


def _without_identity(text: str, meaning: Meaning) -> Meaning:
    """Return the meaning of a label; a number that is mapped to itself has its text as the meaning."""
    if isinstance(meaning, float) and number_of_text(text) == meaning:
        return class_text(text)
    return meaning


def _require_complete_mapping(
    texts: Collection[str],
    meanings: Mapping[str, Meaning],
    declared: Mapping[str, Meaning],
    mapping: Mapping[Any, object],
) -> None:
    """Refuse a mapping to numbers that leaves out a label.

    Labels that are numbers may be left out, unless the mapping gives numbers to numbers.
    """
    mapped_to_numbers = [text for text, value in declared.items() if isinstance(value, float)]
    if not mapped_to_numbers:
        return
    maps_numbers = any(map(_is_number, mapped_to_numbers))
    unmapped = [text for text in texts if text not in meanings and (maps_numbers or not _is_number(text))]
    if unmapped:
        raise LabelError(
            f"labels: the mapping leaves out {list_first(map(repr, unmapped), MAX_VALUES_SHOWN)}",
            given=", ".join(map(str, mapping)),
            action="Add them to the mapping; an empty value means no answer (--map Unsure=).",
        )


def _answer_spellings(answers: Collection[str]) -> dict[str, str]:
    """Return the spelling of each class among answers; 1 and True are one class."""
    spellings = {class_text(answer.strip()): answer for answer in sorted(answers)}
    for truth, digit in TRUTH_VALUES.items():
        if truth in spellings:
            spellings.setdefault(digit, spellings[truth])
    for truth, digit in TRUTH_VALUES.items():
        if digit in spellings:
            spellings.setdefault(truth, spellings[digit])
    return spellings


def _class_word(text: str, meaning: Meaning) -> str | None:
    """Return the class of a label: the label itself unless it is mapped to a class or to no answer."""
    if meaning is None:
        return None
    if isinstance(meaning, str):
        return class_text(meaning)
    return text


def _row_order(row: LabelValue) -> tuple[bool, float, int, str]:
    """Return the sort key of a row: no answer last, large numbers first, then frequent values first."""
    number = 0.0
    if isinstance(row.meaning, float):
        number = row.meaning
    return row.meaning is None, -number, -row.count, row.value


def _normalize_mapping(mapping: Mapping[Any, object]) -> dict[str, Meaning]:
    """Return a mapping by comparison key, refusing a label that it contains twice."""
    meanings: dict[str, Meaning] = {}
    for label, value in mapping.items():
        key = comparison_key(label)
        if key in meanings:
            entries = ", ".join(f"{name}={'' if other is None else other}" for name, other in mapping.items())
            action = "Map each label once; case does not matter, and 1 equals 1.0."
            raise LabelError(f"labels: {str(label)!r} is mapped twice", given=entries, action=action)
        if not (value is None or isinstance(value, str | int | float | np.number)):
            problem = f"labels: {str(label)!r} cannot be mapped to {type_text(value)}"
            raise LabelError(problem, allowed="a number, the name of a class, or None for no answer")
        if isinstance(value, str):
            meanings[key] = value.strip() or None
        elif value is None or value != value:  # NaN means no answer, as in dataframes
            meanings[key] = None
        else:
            meanings[key] = float(value)
    return meanings


def _is_number(text: str) -> bool:
    """Return whether a text is a number."""
    return not math.isnan(number_of_text(text))


def format_mapping(meanings: Mapping[str, Meaning]) -> str:
    """Return a mapping of labels as the keyword and as the option that declare it."""
    keyword = ",".join(f"{text!r}:{_mapping_value(value)}" for text, value in meanings.items())
    option = ",".join(f"{text}={_option_value(value)}" for text, value in meanings.items())
    return f"mapping={{{keyword}}} (--map {quote(option)})"


def _mapping_value(value: Meaning) -> str:
    """Return the value of a label as it is written in the keyword `mapping`."""
    if isinstance(value, float | int):
        return class_text(float(value))
    return repr(value)


def _option_value(value: Meaning) -> str:
    """Return the value of a label as it is written in the option `--map`; empty for no answer."""
    if isinstance(value, float | int):
        return class_text(float(value))
    return value or ""


def refuse_no_answer_words(
    texts: Sequence[str], source: str = "labels", numeric_labels: Sequence[str] | None = None
) -> None:
    """Refuse words for "no answer", as classes or among `numeric_labels`, which count as numbers."""
    no_answer_words = [text for text in texts if is_no_answer(text)]
    if not no_answer_words:
        return
    shown_words = no_answer_words[:_MAX_ROWS_SHOWN]
    as_no_answer = format_mapping(dict.fromkeys(shown_words))
    if numeric_labels is None:
        as_answer = f"a class: {format_mapping({text: text for text in shown_words})}"
    else:
        words = [text for text in numeric_labels if not _is_number(text) and text not in no_answer_words]
        numbers: Mapping[str, float] = {}
        if len(words) <= _MAX_ROWS_SHOWN:
            numbers = numbers_by_word(words) or {}
        as_answer = f"a number: {format_mapping({**numbers, **dict.fromkeys(shown_words, 0.0)})}"
    raise LabelError(
        f"{source}: {no_answer_words[0]!r} indicates that there is no answer",
        given=list_first(map(repr, no_answer_words), MAX_VALUES_SHOWN),
        allowed="an empty label where there is no answer",
        action=f"If it means that there is no answer: {as_no_answer}; if it is {as_answer}.",
    )


def unused_mapping_notes(unused: Sequence[str]) -> tuple[str, ...]:
    """Return the note on values in a mapping that no label has; empty for none."""
    if not unused:
        return ()
    pronoun = "this value"
    if len(unused) > 1:
        pronoun = "these values"
    values = " or ".join(map(repr, unused[:MAX_VALUES_SHOWN]))
    return (f"no label is {values}, although the mapping contains {pronoun}",)


def _unused_positive_note(positive: str, classes: list[str]) -> str:
    """Return the note that no label equals the positive label, or raise an error if it is probably misspelt.

    It probably is if only one of them is a number, or if the labels are opposites: pass and fail, or 1 and 0.
    """
    label_list = list_first(map(repr, classes), _MAX_ROWS_SHOWN)
    folded_classes = [name.casefold() for name in classes]
    are_opposites = any(
        {numbers.get(name) for name in folded_classes} == {0.0, 1.0} for numbers in BINARY_VOCABULARIES
    )
    differ_in_kind = {_is_number(name) for name in classes} == {not _is_number(positive)}
    are_signs = bool(classes) and {truth_number(name) for name in classes} <= _SIGNS
    if differ_in_kind or are_opposites or (are_signs and truth_number(positive) not in _SIGNS):
        raise LabelError(
            f"no label is {positive!r}",
            given=option_of("positive", positive),
            allowed=f"a label of the file: {label_list}",
            action="Give the label that counts as 1, exactly as it is written in the file; 0 and 1, yes and "
            "no, and pass and fail need not be named.",
        )
    return f"no label is {positive!r}, so all count as 0; the labels are {label_list}"


def refuse_incomparable_classes(labels: Sequence[str], answers: Sequence[str]) -> None:
    """Refuse labels (r,) that can never equal one of the model's answers (n,).

    Raises
    ------
    LabelError
        For measurements, for a label that differs from an answer only in case or spaces, and if no label
        occurs among answers that repeat. Free text may never be equal, and is accepted.
    """
    distinct_labels = set(labels)
    distinct_answers = set(answers)
    fraction_count = sum(map(_has_decimals, distinct_labels | distinct_answers))
    if fraction_count > _MAX_FRACTIONS:
        raise LabelError(
            f"labels and answers are measurements ({fraction_count} have decimals), "
            "which are almost never equal",
            action="Use the labels 1 and 0, or the error itself, and leave out predicted= (--predicted).",
        )
    _refuse_unread_numbers(distinct_labels | distinct_answers)
    _refuse_mixed_truth_values(distinct_answers)
    _refuse_shares_as_classes(distinct_labels, distinct_answers)
    _refuse_misspelt_classes(labels, distinct_answers)
    if not distinct_labels.isdisjoint(distinct_answers):
        return
    # Free text may never equal an answer, but then neither labels nor answers repeat.
    have_repeats = len(distinct_answers) <= len(answers) / 2 or len(distinct_labels) <= len(labels) / 2
    are_unmatched_classes = have_repeats and len(labels) >= _MIN_UNMATCHED_LABELS
    if are_unmatched_classes or _are_verdict_words(distinct_labels, distinct_answers):
        advice = code_mapping_advice(distinct_labels, distinct_answers)
        raise LabelError(
            f"no label occurs among the model's answers (first label: {labels[0]!r})",
            allowed=list_first(map(repr, sorted(distinct_answers)), MAX_VALUES_SHOWN),
            action=("" if advice is None else f"If labels and answers are the same classes: {advice}. ")
            + "If labels are verdicts (right or wrong, or which of two models is better), they are "
            "outcomes, not classes: leave out predicted= (--predicted) and estimands for classes. Their mean "
            "is the share of right answers, or of wins.",
        )


def code_mapping_advice(labels: Collection[str], answers: Collection[str]) -> str | None:
    """Return the advice to map labels to answers if the labels may be codes of the answers, or the reverse.

    None unless one of them are whole numbers and the other at least as many words. No label is an answer.
    """
    if not _are_codes(labels, answers) and not _are_codes(answers, labels):
        return None
    if len(labels) != len(answers):
        return "map each label to its class: mapping={'LABEL': 'CLASS', …} (--map LABEL=CLASS,…)"
    pairs = zip(_in_code_order(labels), _in_code_order(answers), strict=True)
    return f"map each label to its class, such as {format_mapping(dict(pairs))}"


def _are_codes(codes: Collection[str], names: Collection[str]) -> bool:
    """Return whether whole numbers may be the codes of a few classes with names."""
    are_whole = all(truth_number(code).is_integer() for code in codes)
    are_few = 1 < len(codes) <= len(names) <= _MAX_CODED_CLASSES
    return are_few and are_whole and all(math.isnan(truth_number(name)) for name in names)


def _in_code_order(classes: Collection[str]) -> list[str]:
    """Return classes in the order in which programs number them: numbers by size, names alphabetically."""
    numbers = {text: truth_number(text) for text in classes}
    return sorted(classes, key=lambda text: (0.0 if math.isnan(numbers[text]) else numbers[text], text))


def refuse_incomparable_verdicts(labels: Collection[str], verdicts: Collection[str], judge: str) -> None:
    """Refuse labels of which none is a verdict of a judge, if both are few words or numbers.

    `labels` and `verdicts` are distinct. Labels that agree with a verdict have its spelling.
    """
    words = {*labels, *verdicts}
    folded_labels = set(map(fold_text, labels))
    are_few = 0 < len(labels) <= MAX_VERDICTS and 0 < len(verdicts) <= MAX_VERDICTS
    if not are_few or not folded_labels.isdisjoint(map(fold_text, verdicts)):
        return
    if _of_one_vocabulary(words) or any(map(_has_decimals, words)):
        return
    raise LabelError(
        f"no label is a verdict of the judge {judge!r}",
        given=f"labels {', '.join(map(repr, sorted(labels)))}",
        allowed=f"verdicts {', '.join(map(repr, sorted(verdicts)))}",
        action=f"Map labels and verdicts to the same numbers, {_mapping_of_verdicts(labels, verdicts)}.",
    )


def _mapping_of_verdicts(labels: Collection[str], verdicts: Collection[str]) -> str:
    """Return a mapping of labels and verdicts to numbers, and the meaning of verdicts that it assumes."""
    if len(labels) > 2 or len(verdicts) > 2:
        return "all in one mapping: mapping={…} (--map WORD=NUMBER,…)"
    best_label, *other_labels = _best_first(labels)
    best_verdict, *other_verdicts = _best_first(verdicts)
    numbers = dict.fromkeys((best_label, best_verdict), 1.0)
    numbers |= dict.fromkeys((*other_labels, *other_verdicts), 0.0)
    return f"such as {format_mapping(numbers)} if {best_verdict!r} means {best_label!r}"


def _best_first(words: Collection[str]) -> list[str]:
    """Return two opposite words, the one that means success, 1 or 100% first if it is known."""
    best = success_word(words)
    return sorted(words, key=lambda word: (word != best, truth_number(word) != 1.0, word != "100%", word))


def _refuse_unread_numbers(texts: set[str]) -> None:
    """Refuse labels and answers that are all numbers in a form that is not read as numbers."""
    first = min(texts, default="")
    if texts and all(_UNREAD_NUMBER.fullmatch(text) for text in texts):
        raise LabelError(
            f"labels and answers such as {first!r} are numbers in a form that is not read, and not classes",
            allowed="numbers with a decimal point",
            action="Write 3 or 0.6 for 3/5, and 3.5 for 3,5; if they are classes, give them names in both "
            "columns.",
        )


def _refuse_mixed_truth_values(answers: set[str]) -> None:
    """Refuse answers in which one class has two spellings, such as 1 and True."""
    for truth, digit in TRUTH_VALUES.items():
        if {truth, digit} <= answers:
            raise LabelError(
                f"the answers contain {truth!r} and {digit!r}, which are one class",
                allowed="one spelling of each class",
                action=f"Write {digit} for {truth} in the column of answers or verdicts.",
            )


def _refuse_shares_as_classes(labels: set[str], answers: set[str]) -> None:
    """Refuse labels between the answers 0 and 1, such as the share of annotators who chose 1.

    A label of 0.5 may be a class of its own, such as a tie.
    """
    shares = sorted(label for label in labels - answers if 0.0 < truth_number(label) < 1.0)
    if shares == ["0.5"]:
        return
    if not shares or not {truth_number(answer) for answer in answers} <= {0.0, 1.0}:
        return
    classes = {label: _nearest_answer(label, answers) for label in sorted(labels) if _is_number(label)}
    raise LabelError(
        f"the label {shares[0]!r} is a number between the answers 0 and 1, so it never equals one of them",
        given=list_first(map(repr, shares), MAX_VALUES_SHOWN),
        allowed="classes: the labels 0 and 1",
        action=f"If labels are shares of votes, map each to the class of the majority: "
        f"{format_mapping(classes)}, with predicted=True (--predicted COLUMN); or give the labels of each "
        "annotator. If they state how right an answer is: predicted=False (--predicted none).",
    )


def _nearest_answer(label: str, answers: Collection[str]) -> str | None:
    """Return the answer that is nearest to a label; None for a tie of votes."""
    number = truth_number(label)
    if number == 0.5:
        return None
    return min(sorted(answers), key=lambda answer: abs(truth_number(answer) - number))


def _refuse_misspelt_classes(labels: Sequence[str], answers: set[str]) -> None:
    """Refuse labels that differ from an answer only in case or spaces."""
    answers_by_fold = {fold_text(answer): answer for answer in sorted(answers)}
    misspelt_labels = [
        label for label in labels if label not in answers and fold_text(label) in answers_by_fold
    ]
    if not misspelt_labels:
        return
    spellings = {label: answers_by_fold[fold_text(label)] for label in misspelt_labels}
    first = misspelt_labels[0]
    count = f"{len(misspelt_labels)} such label{'s' * (len(misspelt_labels) > 1)}"
    raise LabelError(
        f"labels contain {first!r}, but the answers contain {spellings[first]!r} ({count})",
        action="Spell the labels as in the answers; otherwise, the answer counts as wrong for each of these "
        f"labels: {format_mapping(spellings)}.",
    )


def _has_decimals(text: str) -> bool:
    """Return whether a text is a number that is not whole."""
    return _is_number(text) and not number_of_text(text).is_integer()


def _are_verdict_words(labels: set[str], answers: set[str]) -> bool:
    """Return whether labels are verdicts such as pass and fail, and the answers are not of the same words.

    Single letters are not verdicts, because they are often classes.
    """
    if all(len(label) <= 1 for label in labels):
        return False
    return _of_one_vocabulary(labels) and not _of_one_vocabulary(labels | answers)


def _of_one_vocabulary(words: set[str]) -> bool:
    """Return whether one vocabulary contains all words."""
    normalized_words = {word.strip().casefold() for word in words}
    return any(normalized_words <= numbers.keys() for numbers in VOCABULARIES)


def count_values(answers: AnyArray) -> dict[str, int]:
    """Return the number of occurrences of each value among answers (r,), by its text."""
    if answers.dtype == object:
        return dict(Counter(answers.tolist()))
    values, counts = np.unique(answers, return_counts=True)
    return {class_text(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}


def are_numeric_labels(texts: Iterable[str]) -> bool:
    """Return whether there are texts, and all of them are finite numbers or words that count as numbers."""
    try:
        numbers = list(LabelMapping().numbers(texts).values())
    except LabelError:
        # The words have different numbers in several vocabularies.
        return False
    return bool(numbers) and bool(np.all(np.isfinite(numbers)))
