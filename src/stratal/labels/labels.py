"""`Labels`: the answers of annotators, and their join to a sample by unit id."""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cached_property
from os import PathLike, fspath
from statistics import multimode
from typing import Any, Protocol, TypeGuard

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
from stratal.errors import LabelError, type_text
from stratal.labels.label_values import (
    DECIMAL_COMMA,
    MAX_VALUES_SHOWN,
    LabelMapping,
    LabelValue,
    are_numeric_labels,
    class_text,
    count_values,
    format_mapping,
    label_value_notes,
    refuse_no_answer_words,
)
from stratal.labels.missing_codes import refuse_missing_code
from stratal.protocols import WithColumns, WithIndex
from stratal.question import Outcome, Question
from stratal.question.tags import SEPARATORS, is_set, read_set, read_sets, tags_of
from stratal.question.vocabulary import MAPPING_HELP, count_words, is_known_word
from stratal.randomness import id_text, id_texts
from stratal.tables.files import unquote_cell
from stratal.tables.small_table import is_missing

# Groups: the sign, and the digits without leading zeros (empty for 0). Possessive quantifiers avoid
# backtracking on long texts.
_WHOLE_NUMBER = re.compile(r"([+-]?)(?:0*+([^\D0]\d*+)|0++)(?:[.,]0*+)?")
_SCIENTIFIC = re.compile(r"([+-]?\d)(?:[.,](\d+))?[eE]([+-]?\d+)")


def restore_spreadsheet_ids(
    ids: Sequence[str], annotators: Sequence[str] | None, sample_ids: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return ids (m,) as they were before a spreadsheet changed them, and notes about the changes.

    An id is restored only if no unit has it, exactly one unit has an id that a spreadsheet could turn into
    it, and the annotator did not also label this unit under its correct id. Other ids are unchanged.

    Parameters
    ----------
    ids : sequence of str (m,)
    annotators : sequence of str (m,), optional
    sample_ids : collection of str
        The sample's ids.
    """
    unmatched_rows = [row for row, text in enumerate(ids) if text not in sample_ids]
    if not unmatched_rows:
        return tuple(ids), ()
    row_annotators: Sequence[str] = [""] * len(ids)
    if annotators is not None:
        row_annotators = annotators
    answered_pairs = {(text, by) for text, by in zip(ids, row_annotators, strict=True) if text in sample_ids}
    sample_texts = _SpreadsheetIds(sample_ids)
    result = list(ids)
    first_change = None
    for row in unmatched_rows:
        originals = sample_texts.originals_of(ids[row])
        if len(originals) == 1 and (originals[0], row_annotators[row]) not in answered_pairs:
            result[row] = originals[0]
            first_change = first_change or (ids[row], originals[0])
    change_count = sum(after != before for after, before in zip(result, ids, strict=True))
    if first_change is None:
        return tuple(result), ()
    if change_count == 1:
        subject = "1 id was"
    else:
        subject = f"{change_count:,} ids were"
    note = f"{subject} matched in the form that a spreadsheet gave {'it' if change_count == 1 else 'them'}"
    return tuple(result), (f"{note} (first: {first_change[0]!r} is {first_change[1]!r})",)


class _SpreadsheetIds:
    """The ids of a sample, by the texts that a spreadsheet could turn them into."""

    def __init__(self, sample_ids: Collection[str]) -> None:
        self._forms: dict[str, list[str]] = {}
        self._numbers: list[tuple[Decimal, str]] = []
        for text in sample_ids:
            self._forms.setdefault(normalize_id(text), []).append(text)
            if _WHOLE_NUMBER.fullmatch(text) or _SCIENTIFIC.fullmatch(text):
                self._numbers.append((Decimal(text.replace(",", ".")), text))
        self._rounded: dict[int, dict[str, list[str]]] = {}

    def originals_of(self, text: str) -> list[str]:
        """Return the ids that a spreadsheet could have turned into `text`."""
        scientific = _SCIENTIFIC.fullmatch(text.strip())
        if scientific is None:
            return self._forms.get(normalize_id(text), [])
        digits = len(scientific.group(2) or "")
        if digits not in self._rounded:
            rounded: dict[str, list[str]] = {}
            for number, original in self._numbers:
                rounded.setdefault(f"{number:.{digits}E}", []).append(original)
            self._rounded[digits] = rounded
        # Spreadsheets of some languages write decimal commas.
        number = Decimal(text.strip().replace(",", "."))
        return self._rounded[digits].get(f"{number:.{digits}E}", [])


def normalize_id(text: str) -> str:
    """Return an id without leading zeros, a trailing .0, surrounding spaces and the midnight of a date."""
    text = text.strip()
    match = _WHOLE_NUMBER.fullmatch(text)
    if match is not None:
        return match.group(1).replace("+", "") + (match.group(2) or "0")
    if text.endswith("00:00"):
        return re.sub(r"[T ]00:00(:00)?$", "", text)
    return text


class UnitRows(Protocol):
    """The drawn units that labels are joined to, in order, such as a `Sample`."""

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
        """Columns (n,) of the sample as text, by name."""

    @property
    def question(self) -> Question:
        """The values of labels as numbers (`outcome`), unless they declare them, and the id column."""


# Column that identifies the rows that a sample's ids number.
SAMPLE_TOKEN = "sample_token"
# Label of an answer that failed, if it counts as wrong and labels are words.
FAILED_ANSWER = "failed answer"
# Annotator of a label that was decided after annotators disagreed.
ADJUDICATED = "adjudicated"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Labels(Record):
    """Labels of units, with one row for each answer of an annotator.

    Parameters
    ----------
    ids : tuple of str (m,)
        Ids as text; several answers of one unit need different annotators.
    values : tuple (m,)
        Numbers or text; None (or NaN, pandas' NA, a masked scalar, a blank) where the unit was skipped or is
        not labelled yet. A `Decimal` is a number.
    annotators : tuple of str (m,), optional
    places : tuple of str (m,), optional
        Position of each answer in its source, for error messages: `line 7`.
    source : str
        Source of the labels, for error messages.
    notes : tuple of str
        Notes about reading the labels, shown with the estimate.
    positive : str, optional
        The label that counts as 1, and every other as 0; case does not matter.
    mapping : mapping of label to float, str or None, optional
        What labels count as: a number, the name of a class, or None for no answer. Case does not matter.
        Where words are mapped to numbers, every word must be.
    columns : mapping of name to tuple (m,)
        Other columns of the file that they were read from. They are compared with the columns that the
        sample keeps.
    replaced : Labels, optional
        Answers that a decision replaced (rows of annotator `adjudicated`). They are not used for estimates,
        but for the agreement of annotators.
    failed : tuple of bool (m,), optional
        Which values are missing because the model's answer failed: its application returned an error or
        nothing. See `failed_as_wrong`.
    sets : tuple of str or None (m,), optional
        The texts of values that were lists: sets of tags. Such a value is this text, unless all lists have
        one tag or none, as annotation tools write a label that could be several.
    tokens : tuple of str (m,), optional
        Of labels from a file: the token of the sample that each row was handed out for, empty where the file
        has none. `join_labels` compares them with the sample's if its ids are row numbers.
    codes_checked : bool
        Whether usual codes of missing labels were looked for, or are stated to be labels.

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
    codes_checked: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        columns = [self.ids, self.values, *([] if self.annotators is None else [self.annotators])]
        if not all(isinstance(column, Sized) for column in columns) or len(set(map(len, columns))) > 1:
            problem = "ids, values and annotators of labels must be lists of the same length"
            lengths = ", ".join(
                str(len(column)) if isinstance(column, Sized) else type_text(column) for column in columns
            )
            action = "Give one id, one value and one annotator for each answer."
            raise LabelError(problem, given=lengths, action=action)
        for argument, accepted_type in (
            (self.positive, str | int | float | None),
            (self.mapping, Mapping | None),
        ):
            if not isinstance(argument, accepted_type):
                allowed = "positive='yes', mapping={'yes': 1, 'no': 0, 'unsure': None}"
                raise LabelError("invalid meaning of labels", given=type_text(argument), allowed=allowed)
        # Ids are usually texts already; `id_text` of each would take most of the time of a large file.
        are_plain_texts = set(map(type, self.ids)) <= {str} and "\0" not in "".join(self.ids)
        ids = tuple(self.ids) if are_plain_texts else tuple(map(id_text, self.ids))
        self._set(ids=ids, values=tuple(self.values))
        if not set(map(type, self.values)) <= _NO_LISTS and any(map(_is_list, self.values)):
            self._read_lists()
        are_plain_numbers = set(map(type, self.values)) <= {float, int}
        if not are_plain_numbers or any(value != value for value in self.values):
            # Labels have few distinct texts, so that each is converted once.
            cleaned_texts = {text: unquote_cell(text.strip()) or None for text in distinct_texts(self.values)}
            cleaned_values = (
                cleaned_texts[entry] if isinstance(entry, str) else self._plain_value(row, entry)
                for row, entry in enumerate(self.values)
            )
            self._set(values=tuple(cleaned_values))
        for row, annotator in enumerate(self.annotators or ()):
            if not isinstance(annotator, str | int | np.generic):
                raise self._container_error("annotator", row, annotator, "one name")

    def _read_lists(self) -> None:
        """Read the values that are lists of tags as the texts of their sets."""
        sets = tuple(read_set(entry) if _is_list(entry) else None for entry in self.values)
        lists = [entry for entry in self.values if _is_list(entry)]
        have_one_tag = all(isinstance(entry, list | tuple) and len(entry) <= 1 for entry in lists)
        values = []
        for entry, text in zip(self.values, sets, strict=True):
            if text is None:
                values.append(entry)
            elif have_one_tag:  # annotation tools that allow several labels
                values.append(next(iter(entry), None))
            else:
                values.append(text)
        self._set(values=tuple(values), sets=sets)

    def _plain_value(self, row: int, entry: object) -> Any:
        """Return a value that is not a text as a Python object, None if it is missing."""
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
            raise self._container_error("label", row, entry, "one number or text")
        return entry

    def refuse_sets(self) -> None:
        """Refuse lists of several tags if the answers are not sets of tags."""
        for row, (value, text) in enumerate(zip(self.values, self.sets or (), strict=True)):
            if text is not None and value == text:
                raise LabelError(
                    f"{self.place(row)}: the label of id {self.ids[row]!r} is a list, and answers are not "
                    "sets of tags",
                    given=text,
                    allowed="one number or text",
                    action="Give each answer its own row, with one value and the annotator's name. If labels "
                    "are sets of tags, answers are too: predicted= (--predicted) and tags= (--tags) of the "
                    "draw.",
                )

    def _container_error(self, noun: str, row: int, entry: object, allowed: str) -> LabelError:
        """Return the error about a label or an annotator that is a container."""
        problem = f"{self.place(row)}: the {noun} of id {self.ids[row]!r} is {type_text(entry)}"
        action = "Give each answer its own row, with one value and the annotator's name."
        return LabelError(problem, given=reprlib.repr(entry), allowed=allowed, action=action)

    def __repr__(self) -> str:
        counts = Counter(class_text(value) for value in self.values if value is not None)
        commonest = counts.most_common(MAX_VALUES_SHOWN)
        values = ", ".join(f"{text!r}: {count:,}" for text, count in commonest)
        if len(counts) > len(commonest):
            values += f" and {len(counts) - len(commonest):,} more values"
        annotators = ""
        if self.annotators is not None:
            annotators = f" by {len({*self.annotators}):,} annotators"
        units = f"{len({*self.ids}):,} units"
        return f"Labels({self.answered:,} labels of {units}{annotators} from {self.source}; {values})"

    @property
    def answered(self) -> int:
        """Number of rows with a value."""
        return sum(value is not None for value in self.values)

    def interpreted(self) -> tuple[AnyArray, LabelMapping]:
        """Return the values (m,), and the mapping that the user declared.

        They are float with NaN for missing values if all are numbers, and otherwise texts and None.
        """
        value_types = set(map(type, self.values)) - {type(None)}
        if self.positive is None and self.mapping is None and value_types <= {float, int}:
            try:
                return np.array(self.values, dtype=np.float64), LabelMapping()
            except OverflowError:  # a whole number beyond the range of floats is a class
                pass
        texts = np.full(len(self.values), None, dtype=object)
        class_texts = {None: None} | {text: class_text(text) for text in distinct_texts(self.values)}
        text_types = (str, type(None))
        texts[:] = [
            class_texts[value] if isinstance(value, text_types) else class_text(value)
            for value in self.values
        ]
        distinct = dict.fromkeys(texts.tolist())
        if self.replaced is not None:
            # A mapping must cover them too: they enter the agreement of annotators.
            answers = (value for value in self.replaced.values if value is not None)
            distinct |= dict.fromkeys(map(class_text, answers))
        distinct.pop(None, None)
        return texts, LabelMapping.of(distinct, self.positive, self.mapping)

    def without_missing_codes(self, column: str, bounds: tuple[float, float] | None = None) -> Labels:
        """Return the labels, refusing usual codes of missing labels among them.

        Parameters
        ----------
        column : str
            Name of the column of labels, for the error message.
        bounds : (float, float), optional
            Of the labels: a code within them is a label.
        """
        if not self.codes_checked:
            values, declared = self.interpreted()
            if values.dtype != object:
                values = values[~np.isnan(values)]
            counts = _undeclared_counts(values, declared)
            refuse_missing_code(counts, self.source, column, bounds=bounds)
        return replace(self, codes_checked=True)

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

    def with_set_texts(self, values: AnyArray, declared: LabelMapping, outcome: Outcome) -> AnyArray:
        """Return interpreted values (m,) with the texts of the sets of tags that they hold.

        Values that are all numbers, or words for numbers, are left as they are: they state whether an answer
        is right.

        Raises
        ------
        LabelError
            For a label that is not a set of tags, if others are, and for tags that differ from those of the
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
        answered_cells = [cells[row] for row in rows]
        texts, invalid_position = read_sets(answered_cells, _tag_format(answered_cells, outcome))
        if invalid_position is not None:
            row = rows[invalid_position]
            raise LabelError(
                f"{self.place(row)}: the label of id {self.ids[row]!r} is not a set of tags, although "
                f"other labels are",
                given=repr(answered_cells[invalid_position]),
                allowed='a list such as ["a", "b"], [] for no tags, or an empty cell if there is no label',
                action="Correct it or, if it is not an answer, use "
                + format_mapping({str(answered_cells[invalid_position]): None})
                + ".",
            )
        if texts is None:
            return values
        self._refuse_misspelt_tags(texts, rows, outcome.tags)
        set_values = np.full(len(cells), None, dtype=object)
        set_values[:] = [cell if cell in no_answer else None for cell in cells]
        set_values[rows] = texts
        return set_values

    def _refuse_misspelt_tags(
        self, texts: Sequence[str], rows: Sequence[int], answer_tags: Sequence[str]
    ) -> None:
        """Refuse tags that differ from those of the answers in case or spaces alone."""
        spellings = {"".join(tag.split()).casefold(): tag for tag in answer_tags}
        for row, text in zip(rows, texts, strict=True):
            for tag in tags_of(text):
                answer_tag = spellings.get("".join(tag.split()).casefold(), tag)
                if answer_tag != tag and tag not in answer_tags:
                    raise LabelError(
                        f"{self.place(row)}: the label of id {self.ids[row]!r} has the tag {tag!r}, where "
                        f"answers have {answer_tag!r}",
                        allowed=", ".join(map(repr, answer_tags)),
                        action="Spell tags as in the answers; otherwise they count as different tags.",
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
        """Return the value of a wrong answer, and the mapping that interprets it."""
        worst = min if lowest else max
        if classes:
            return FAILED_ANSWER, self.mapping
        if self.positive is not None and not lowest:
            return self.positive, self.mapping
        if self.positive is not None:  # every label but the positive one counts as 0
            return FAILED_ANSWER, self.mapping
        numbers = [value for value in (self.mapping or {}).values() if isinstance(value, int | float)]
        if self.mapping is not None and numbers:
            return FAILED_ANSWER, {**self.mapping, FAILED_ANSWER: float(worst(numbers))}
        values = [value for value in self.values if value is not None]
        if any(isinstance(value, str) for value in values):
            words = count_words([str(value) for value in values])
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
        """Return the position of an answer in its source, for error messages."""
        if self.places:
            return f"{self.source}, {self.places[row]}"
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinedLabels(Record):
    """The answers of a sample's units, in the order of the units, with the mapping of their values.

    Parameters
    ----------
    unit : int (r,)
        The drawn unit of each answer.
    answers : (r,)
        Numbers, or texts that `label_mapping` and the vocabularies interpret.
    label_mapping : LabelMapping
    labelled : bool (n,)
        Which drawn units have an answer.
    ids : (n,)
        Ids of the drawn units, for error messages.
    unanswered : mapping of str to int
        Number of occurrences of each text that counts as no answer.
    notes : tuple of str
        Notes about reading and joining the labels.
    source : str
        Source of the labels, for error messages.
    codes_checked : bool
        As in `Labels`.
    cache : dict
        Values that several estimands of one call share; empty between calls.
    """

    unit: IntArray
    answers: AnyArray
    label_mapping: LabelMapping
    labelled: BoolArray
    ids: AnyArray
    unanswered: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = field(default="labels", compare=False)
    codes_checked: bool = field(default=False, compare=False)
    cache: dict[Any, Any] = field(init=False, default_factory=dict, compare=False, repr=False)

    def without_missing_codes(
        self,
        column: str,
        bounds: tuple[float, float] | None = None,
        classes: Collection[str] | None = None,
    ) -> JoinedLabels:
        """Return the labels, refusing usual codes of missing labels; see `Labels.without_missing_codes`.

        `classes` are those of a model that labels are compared with: a code among them is a class.
        """
        if not self.codes_checked:
            counts = _undeclared_counts(self.answers, self.label_mapping)
            refuse_missing_code(counts, self.source, column, bounds=bounds, classes=classes)
        return replace(self, codes_checked=True)

    def numbers(self, source: str = "labels") -> FloatArray:
        """Return the number that each answer (r,) counts as; an error names `source` and the unit.

        Raises
        ------
        LabelError
            For an answer that stands for no finite number.
        """
        numbers = self.answers
        if numbers.dtype == object:
            number_of = self.label_mapping.numbers(dict.fromkeys(numbers.tolist()))
            no_number_texts = [text for text, number in number_of.items() if number != number]
            refuse_no_answer_words(no_number_texts, source, list(number_of))
            numbers = np.array([number_of[text] for text in numbers.tolist()], dtype=np.float64)
        if not np.all(np.isfinite(numbers)):
            raise self._no_number(np.asarray(numbers), source)
        refuse_extremes(source, numbers)
        return np.asarray(numbers)

    def _no_number(self, numbers: FloatArray, source: str) -> LabelError:
        """Return the error about the first answer (r,) that is not a number; unknown words come first."""
        texts = list(map(str, self.answers.tolist()))
        invalid_rows = np.flatnonzero(~np.isfinite(numbers)).tolist()
        unknown_word_rows = [row for row in invalid_rows if not is_known_word(texts[row])]
        # If all words are known, a few ratings on another scale prevent their interpretation as numbers.
        outside_rows = np.flatnonzero((numbers < 0) | (numbers > 1)).tolist()
        has_stray_numbers = not unknown_word_rows and 0 < len(outside_rows) < len(invalid_rows)
        if has_stray_numbers:
            reported_rows = outside_rows
            problem = f"appears among words such as {texts[invalid_rows[0]]!r}"
        else:
            reported_rows = unknown_word_rows or invalid_rows
            problem = "is not a finite number or a known word"
        first_text = texts[reported_rows[0]]
        action = (
            f"{MAPPING_HELP} If labels are classes, name the column of the model's answers: predicted=. The "
            "sample or the file of labels must have it."
        )
        if has_stray_numbers:
            action = f"Correct it or, if it is not an answer, use {format_mapping({first_text: None})}."
        elif DECIMAL_COMMA.fullmatch(first_text):
            action = (
                "Use a decimal point; decimal commas are also read if the columns are separated by "
                "semicolons."
            )
        count_text = ""
        if len(reported_rows) > 1:
            count_text = f" ({len(reported_rows)} such labels)"
        unit_id = id_text(self.ids.tolist()[self.unit[reported_rows[0]]])
        return LabelError(
            f"{source}: label {first_text!r} of id {unit_id!r} {problem}{count_text}",
            allowed="numbers, or words such as pass/fail, yes/no, correct/incorrect, win/tie/loss",
            action=action,
        )

    def classes(self, answers: Collection[str] | None = None) -> AnyArray:
        """Return the class that each answer (r,) is, as text; `answers` are those that the model gives."""
        class_of = self.distinct_classes(answers)
        return np.array([class_of[value] for value in self.answers.tolist()], dtype=object)

    @property
    def distinct_texts(self) -> list[str]:
        """The distinct answers as text, mapped to a class where the user declared one."""
        texts = map(class_text, dict.fromkeys(self.answers.tolist()))
        return [str(self.label_mapping.meanings.get(text, text)) for text in texts]

    def distinct_classes(self, answers: Collection[str] | None = None) -> dict[Any, str]:
        """Return the class of each distinct answer, in the order in which they were given."""
        texts = {value: class_text(value) for value in dict.fromkeys(self.answers.tolist())}
        answer_set = None if answers is None else set(answers)
        class_of = self.label_mapping.classes(dict.fromkeys(texts.values()), answer_set)
        return {value: class_of[text] for value, text in texts.items()}

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Bounds of the numbers, if words count as numbers or the mapping implies bounds."""
        if self.label_mapping.bounds is not None or self.answers.dtype != object:
            return self.label_mapping.bounds
        if self.label_mapping.has_words(dict.fromkeys(self.answers.tolist())):
            return (0.0, 1.0)
        return None

    def by_unit(self, numbers: FloatArray) -> FloatArray:
        """Return the mean of each labelled unit's numbers (m,) from those of the answers (r,)."""
        sums = np.bincount(self.unit, numbers)
        counts = np.bincount(self.unit)
        return np.asarray(sums[counts > 0] / counts[counts > 0])

    def majority(self, answers: AnyArray) -> AnyArray:
        """Return the most frequent answer of each drawn unit (n,), None without answers and for ties."""
        majority_answers = np.full(len(self.labelled), None, dtype=object)
        starts = np.flatnonzero(np.diff(self.unit, prepend=-1))
        if len(starts) == len(answers):  # one answer of each unit
            majority_answers[self.unit] = answers.tolist()
            return majority_answers
        for unit, unit_answers in zip(self.unit[starts].tolist(), np.split(answers, starts)[1:], strict=True):
            modes = multimode(unit_answers.tolist())
            if len(modes) == 1:
                majority_answers[unit] = modes[0]
        return majority_answers

    def table(
        self, answers: Collection[str] | None = None, *, classes: bool = False, column: str = ""
    ) -> tuple[LabelValue, ...]:
        """Return what each distinct value of a column counts as: a number, or one of `classes`."""
        rows = self.label_mapping.table(
            {**count_values(self.answers), **self.unanswered}, answers, classes=classes
        )
        if column:
            return tuple(replace(row, column=column) for row in rows)
        return rows


@dataclass(frozen=True, kw_only=True)
class LabelInterpretation:
    """The interpretation of the labels of an estimate: the columns and the meaning of their values.

    Parameters
    ----------
    columns : mapping of str to JoinedLabels
        Labels by the name of their column; the name is empty if there is only one.
    answers : collection of str, optional
        Answers of the model, if labels are compared with them.
    classes : bool
        Whether labels are classes.
    is_right : bool
        Whether a label 1 means that the answer is right, as a proxy was declared to predict.
    """

    columns: Mapping[str, JoinedLabels]
    answers: Collection[str] | None = None
    classes: bool = False
    is_right: bool = False

    @cached_property
    def table(self) -> tuple[LabelValue, ...]:
        """The number for each distinct value."""
        rows = [
            column_labels.table(self.answers, classes=self.classes, column=name)
            for name, column_labels in self.columns.items()
        ]
        return tuple(row for column_rows in rows for row in column_rows)


def _undeclared_counts(values: AnyArray, declared: LabelMapping) -> dict[str, int]:
    """Return how often each of the values (m,) occurs whose meaning is not declared, by its text."""
    counts = count_values(values)
    return {
        text: count for text, count in counts.items() if text is not None and text not in declared.meanings
    }


def distinct_texts(values: Iterable[object]) -> set[str]:
    """Return the distinct texts among values, which may be unhashable."""
    return {entry for entry in values if isinstance(entry, str)}


def interpretation_notes(
    interpretation: LabelInterpretation | None, remarks: Sequence[str]
) -> tuple[str, ...]:
    """Return the notes about the interpretation of labels, then other remarks, without duplicates."""
    if interpretation is None:
        return tuple(remarks)
    notes = [note for column_labels in interpretation.columns.values() for note in column_labels.notes]
    return tuple(dict.fromkeys([*notes, *label_value_notes(interpretation.table), *remarks]))


def as_labels(labels: object, sample: UnitRows, array_name: str = "an array of labels") -> Labels:
    """Convert labels of any accepted type to `Labels`.

    Parameters
    ----------
    labels : Labels, mapping of id to value, pandas-like Series indexed by id, or array (n,)
        An array is in the order of `sample.ids`. NaN and None mean that there is no label.
    sample : Sample

    Raises
    ------
    LabelError
        If an array has not one entry per drawn unit.
    """
    if isinstance(labels, Labels):
        return labels
    if isinstance(labels, Mapping):
        return Labels(ids=tuple(labels), values=tuple(labels.values()))
    if isinstance(labels, WithColumns):
        allowed = "a mapping of id to label, a Series indexed by id, an array in the order of sample.ids"
        action = "Give dict(zip(frame['id'], frame['label']))."
        raise LabelError("labels cannot be a dataframe", allowed=allowed, action=action)
    if is_indexed(labels):
        return Labels(ids=tuple(labels.index), values=tuple(labels.to_numpy().tolist()))
    if isinstance(labels, str | PathLike):
        path = repr(fspath(labels))
        raise LabelError(
            "labels cannot be a path", given=path, action=f"Read them: stratal.read_labels({path})."
        )
    shape = array_shape(labels)
    if shape != (sample.size,):
        problem = f"{array_name} must have one entry per drawn unit, in the order of sample.ids"
        action = "Give a mapping of id to label instead."
        if len(shape) > 1:
            action = (
                "Give one column of it: labels[:, 0]; for columns of several models, use stratal.compare."
            )
        raise LabelError(problem, given=f"shape {shape}", allowed=f"({sample.size},)", action=action)
    return Labels(ids=tuple(id_texts(sample.ids)), values=tuple(without_mask(labels).tolist()))


def is_indexed(labels: object) -> TypeGuard[WithIndex]:
    """Return whether labels have an index, as a Series; the `index` of a list is a method."""
    return isinstance(labels, WithIndex) and not callable(labels.index)


def array_shape(values: Any) -> tuple[int, ...]:
    """Return the shape of an array; a list whose rows have different lengths has the shape (n, -1)."""
    try:
        return np.shape(values)
    except ValueError:
        return (len(values), -1)


def labels_with_sample_ids(
    sample: UnitRows,
    labels: object,
    array_name: str = "an array of labels",
    sample_ids: KeysView[str] | None = None,
) -> Labels:
    """Convert labels to `Labels`, and restore ids that a spreadsheet changed.

    `sample_ids` are the ids of the sample as texts, in its order, if they are available.
    """
    unit_labels = as_labels(labels, sample, array_name)
    outcome = sample.question.outcome
    if unit_labels.positive is None and unit_labels.mapping is None:
        unit_labels = replace(unit_labels, positive=outcome.positive, mapping=outcome.mapping)
    if sample_ids is None:
        sample_ids = dict.fromkeys(id_texts(sample.ids)).keys()
    if _are_in_order(unit_labels, sample_ids) or sample_ids >= set(unit_labels.ids):
        return unit_labels
    ids, notes = restore_spreadsheet_ids(unit_labels.ids, unit_labels.annotators, sample_ids)
    if notes:
        return replace(unit_labels, ids=ids, notes=(*unit_labels.notes, *notes))
    return unit_labels


def _are_in_order(labels: Labels, sample_ids: KeysView[str]) -> bool:
    """Return whether there is one label for each drawn unit, in the order of the sample, as in most files."""
    return labels.annotators is None and labels.ids == tuple(sample_ids)


# Types of values that are not lists, so that no value of them has to be examined.
_NO_LISTS = {str, float, int, bool, type(None)}


def _is_list(value: object) -> bool:
    """Return whether a value is a list of plain values."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, list | tuple | set | frozenset) and not any(
        isinstance(entry, list | tuple | dict) for entry in value
    )


def _tag_format(texts: Sequence[str], outcome: Outcome) -> str | None:
    """Return the separator of sets of tags in labels; None if only lists are sets.

    Words that count as numbers are verdicts on the answers, unless they are tags.
    """
    if outcome.tag_format in SEPARATORS and ({*texts} & {*outcome.tags} or not are_numeric_labels(texts)):
        return outcome.tag_format
    return None


def join_labels(
    sample: UnitRows, labels: object, array_name: str = "an array of labels", *, answers: bool = True
) -> JoinedLabels:
    """Join labels to a sample by id, and interpret them: each raw value is a value, a class or no answer.

    Parameters
    ----------
    sample : Sample
    labels : see `as_labels`
        Labels that are joined already are returned unchanged.
    array_name : str
        Name of an array in error messages.
    answers : bool
        Whether these are labels or answers, which may be sets of tags.

    Raises
    ------
    LabelError
        For ids that are not in the sample, and for two answers of one unit by the same annotator.
    """
    if isinstance(labels, JoinedLabels):
        return labels
    if (
        type(labels) is np.ndarray  # and not a masked array
        and labels.dtype.kind in "biuf"
        and labels.shape == (sample.size,)
    ):
        return _join_answers(sample, np.arange(sample.size), labels.astype(np.float64), LabelMapping())
    if isinstance(labels, Labels):
        refuse_other_rows(sample, labels)
    position = dict(zip(id_texts(sample.ids), range(sample.size), strict=True))
    unit_labels = labels_with_sample_ids(sample, labels, array_name, position.keys())
    if _are_in_order(unit_labels, position.keys()):
        units = np.arange(sample.size)
    else:
        units = _matched_units(sample, unit_labels, position)
    _refuse_changed_columns(sample, unit_labels, units)
    values, declared = unit_labels.interpreted()
    if answers and sample.question.outcome.holds_sets and sample.question.compares is not False:
        values = unit_labels.with_set_texts(values, declared, sample.question.outcome)
    elif unit_labels.sets is not None:
        unit_labels.refuse_sets()
    joined = _join_answers(sample, units, values, declared, notes=unit_labels.notes)
    return replace(joined, source=unit_labels.source, codes_checked=unit_labels.codes_checked)


def _matched_units(sample: UnitRows, unit_labels: Labels, position: Mapping[str, int]) -> IntArray:
    """Return the drawn unit of each label (m,); unknown ids and a second label of a unit are refused."""
    unknown_rows = [row for row, text in enumerate(unit_labels.ids) if text not in position]
    if unknown_rows:
        if len(unknown_rows) > 1:
            count = f"{len(unknown_rows)} ids are"
        else:
            count = "1 id is"
        first_row = unknown_rows[0]
        raise LabelError(
            f"{unit_labels.place(first_row)}: {count} not in this sample "
            f"(first: {unit_labels.ids[first_row]!r})",
            allowed=f"the {sample.size} drawn ids",
            action=f"Labels can only be joined to drawn units; check that they belong to this sample "
            f"(seed {sample.seed}). If a spreadsheet changed the ids, format their column as text.",
        )
    # An annotator answers a unit once, but several annotators may answer it.
    answer_keys: Sequence[Any] = unit_labels.ids
    if unit_labels.annotators is not None:
        answer_keys = list(zip(unit_labels.ids, unit_labels.annotators, strict=True))
    if len(set(answer_keys)) < len(answer_keys):
        row = next(row for row, entry in enumerate(answer_keys) if entry in answer_keys[:row])
        by = ""
        if unit_labels.annotators and unit_labels.annotators[row]:
            by = f" by annotator {unit_labels.annotators[row]!r}"
        raise LabelError(
            f"{unit_labels.place(row)}: id {unit_labels.ids[row]!r} has two labels{by}",
            allowed="one label per unit and annotator",
            action="Keep one of them, or name the annotators in a column `annotator`; for labels of "
            "several models, name the column of the models: --model COL.",
        )
    return np.array([position[text] for text in unit_labels.ids], dtype=np.int64)


def refuse_other_rows(sample: UnitRows, labels: Labels) -> None:
    """Refuse labels from a file that may number other rows than the sample's ids."""
    token = sample.question.sample_token
    if token is None or labels.tokens is None:
        return
    same_rows_hint = "If they belong to the same rows: same_rows=True (--same-rows)."
    other_row = next((row for row, entry in enumerate(labels.tokens) if entry and entry != token), None)
    if other_row is not None:
        raise LabelError(
            f"{labels.place(other_row)}: the label was given to a row of another sample",
            given=f"{SAMPLE_TOKEN} {labels.tokens[other_row]!r}",
            allowed=f"{token!r}, that of this sample (seed {sample.seed})",
            action=f"Give the labels of this sample. {same_rows_hint}",
        )
    missing_row = next((row for row, entry in enumerate(labels.tokens) if not entry), None)
    if missing_row is not None:
        raise LabelError(
            f"{labels.place(missing_row)}: ids are row numbers, but it is not stated which sample's rows "
            f"they number",
            given=f"no {SAMPLE_TOKEN}",
            allowed=f"a column {SAMPLE_TOKEN} with {token!r}, as in to_label.csv",
            action="Fill in the file that was handed out, or draw with a column of ids (id=). "
            f"{same_rows_hint}",
        )


def _refuse_changed_columns(sample: UnitRows, labels: Labels, units: IntArray) -> None:
    """Refuse labels whose file and sample have different values in a common column.

    `units` (m,) are the drawn units of the labels. Blank entries are not compared, nor the columns that
    annotators saw, which a spreadsheet may reformat, nor columns of verdicts on a model's answers.
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
                action=f"If {name!r} contains answers of another model or version, give it another name; "
                "otherwise leave the column out.",
            )


def _are_verdicts(entries: Iterable[object], stored: Iterable[object]) -> bool:
    """Return whether entries count as 0 and 1, and stored values are not numbers."""
    texts = {class_text(entry) for entry in entries if not is_missing(entry)}
    stored_texts = {class_text(entry) for entry in stored if not is_missing(entry)}
    if not texts or not are_numeric_labels(texts) or are_numeric_labels(stored_texts):
        return False
    return {*LabelMapping().numbers(texts).values()} <= {0.0, 1.0}


def _join_answers(
    sample: UnitRows,
    units: IntArray,
    values: AnyArray,
    declared: LabelMapping,
    notes: tuple[str, ...] = (),
) -> JoinedLabels:
    """Return the answers (m,) of units (m,) in the order of the units, without missing answers."""
    unanswered: dict[str, int] = {}
    if values.dtype == object:
        no_answer_texts = {text for text, meaning in declared.meanings.items() if meaning is None}
        is_answered = np.array(
            [text is not None and text not in no_answer_texts for text in values.tolist()], dtype=bool
        )
        no_answers = [text for text in values.tolist() if text in no_answer_texts]
        unanswered = count_values(np.array(no_answers, dtype=object))
    else:
        is_answered = ~np.isnan(values)
    rows = np.flatnonzero(is_answered)
    # `np.argsort` is skipped for the usual file, whose rows are in the order of the sample.
    if (units[1:] <= units[:-1]).any():
        rows = rows[np.argsort(units[rows], kind="stable")]
    labelled = np.zeros(sample.size, dtype=bool)
    labelled[units[rows]] = True
    return JoinedLabels(
        unit=units[rows],
        answers=values[rows],
        label_mapping=declared,
        labelled=labelled,
        ids=sample.ids,
        unanswered=unanswered,
        notes=(*notes, *declared.notes),
    )
