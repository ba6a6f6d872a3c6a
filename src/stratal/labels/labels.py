"""`Labels`: the answers of annotators, as they wrote them."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Protocol

import numpy as np

from stratal.arrays import (
    AnyArray,
    Record,
    field_values,
)
from stratal.errors import LabelError, type_text
from stratal.labels.label_values import (
    MAX_VALUES_SHOWN,
    LabelMapping,
    are_numeric_labels,
    class_text,
    count_values,
    format_mapping,
)
from stratal.names import option_of
from stratal.protocols import Keywords
from stratal.question import Outcome, Question
from stratal.question.tags import SEPARATORS, read_set, read_sets, tags_of
from stratal.question.vocabulary import numbers_by_word
from stratal.randomness import id_text
from stratal.tables.files import unquote_cell
from stratal.tables.small_table import is_missing


class SampleLike(Protocol):
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
        """The id column, and what labels count as (`outcome`) if they do not declare it themselves."""


# The column that annotators fill in, and the column of the annotator who gave each label.
LABEL_COLUMN = "label"
ANNOTATOR_COLUMN = "annotator"

# Column with the token of the sample to which a row belongs, for ids that are row numbers.
SAMPLE_TOKEN = "sample_token"

# Tables that annotators fill in, which `draw` wrote: their first column has the ids.
TO_LABEL_NAME = "to_label.csv"
WORKBOOK_NAME = "to_label.xlsx"
# Label of an answer that failed, if it counts as wrong and labels are words.
FAILED_ANSWER = "failed answer"
# Annotator of a label that was decided after annotators disagreed.
ADJUDICATED = "adjudicated"

# Optional fields of `Labels` with an entry for each row, and the entry of a row for which it is unknown.
MISSING_ENTRIES = {"annotators": "", "failed": False, "sets": None, "tokens": ""}
# All fields with an entry for each row.
_ROW_FIELDS = ("ids", "values", "places", *MISSING_ENTRIES)


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
        The label that counts as 1; every other label counts as 0. Case does not matter.
    mapping : mapping of label to float, str or None, optional
        The number or class that each label represents, or None for no answer. Case does not matter. If words
        are mapped to numbers, every word must be mapped.
    columns : mapping of name to tuple (m,)
        Other columns of the file from which the labels were read. They are compared with the columns of the
        sample.
    replaced : Labels, optional
        Answers that were replaced by a decision (rows of annotator `adjudicated`). They are not used for
        estimates, but only for the agreement of annotators.
    failed : tuple of bool (m,), optional
        Which values are missing because the model's answer failed: its application returned an error or
        nothing. See `failed_as_wrong`.
    sets : tuple of str or None (m,), optional
        The texts of values that were lists, which are sets of tags. Such a value is this text, unless all
        lists have at most one tag: annotation tools that allow several labels write a single label in this
        way.
    tokens : tuple of str (m,), optional
        For labels from a file: the token of the sample for which each row was written; empty if there is
        none. `join_labels` compares it with the token of the sample if the ids are row numbers.
    codes_checked : bool
        Whether the values were searched for codes of missing labels, such as -1, or need not be.

    Raises
    ------
    LabelError
        If the numbers of ids, values and annotators differ, for a value that is a dict or a list of anything
        but tags, and for an annotator that is a container.

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
        self._require_same_lengths()
        accepted_types = ((self.positive, str | int | float | None), (self.mapping, Mapping | None))
        for argument, accepted_type in accepted_types:
            if not isinstance(argument, accepted_type):
                allowed = "positive='yes', mapping={'yes': 1, 'no': 0, 'unsure': None}"
                raise LabelError(
                    "the meaning of labels cannot be read", given=type_text(argument), allowed=allowed
                )
        # Ids are usually texts already; `id_text` of each would take most of the time of a large file.
        are_texts = set(map(type, self.ids)) <= {str} and "\0" not in "".join(self.ids)
        ids = self.ids if are_texts else map(id_text, self.ids)
        self._set(ids=tuple(ids), values=tuple(self.values))
        if not set(map(type, self.values)) <= _TYPES_WITHOUT_LISTS and any(map(_is_list, self.values)):
            self._read_lists()
        are_numbers = set(map(type, self.values)) <= {float, int}
        if not are_numbers or any(value != value for value in self.values):
            self._clean_values()
        for row, annotator in enumerate(self.annotators or ()):
            if not isinstance(annotator, str | int | np.generic):
                raise self._container_error("annotator", row, annotator, "one name")

    def _require_same_lengths(self) -> None:
        """Raise an error unless ids, values and annotators are lists of the same length."""
        columns: list[Any] = [self.ids, self.values]
        if self.annotators is not None:
            columns.append(self.annotators)
        if all(isinstance(column, Sized) for column in columns) and len(set(map(len, columns))) == 1:
            return
        lengths = (str(len(column)) if isinstance(column, Sized) else type_text(column) for column in columns)
        raise LabelError(
            "ids, values and annotators of labels must be lists of the same length",
            given=", ".join(lengths),
            action="Give one id, one value and one annotator for each answer.",
        )

    def _clean_values(self) -> None:
        """Convert values to numbers and to texts without surrounding spaces; missing ones become None."""
        # Labels have few distinct texts, so that each is converted once.
        cleaned_texts = {text: unquote_cell(text.strip()) or None for text in distinct_texts(self.values)}
        values = (
            cleaned_texts[entry] if isinstance(entry, str) else self._python_value(row, entry)
            for row, entry in enumerate(self.values)
        )
        self._set(values=tuple(values))

    def _read_lists(self) -> None:
        """Convert values that are lists of tags to the texts of their sets, or to their only tag."""
        set_texts = tuple(read_set(entry) if _is_list(entry) else None for entry in self.values)
        lists = [entry for entry in self.values if _is_list(entry)]
        # Annotation tools that allow several labels export a single label as a list.
        have_one_tag = all(isinstance(entry, list | tuple) and len(entry) <= 1 for entry in lists)
        values = []
        for entry, set_text in zip(self.values, set_texts, strict=True):
            if set_text is None:
                values.append(entry)
            elif have_one_tag:
                values.append(next(iter(entry), None))
            else:
                values.append(set_text)
        self._set(values=tuple(values), sets=set_texts)

    def _python_value(self, row: int, entry: object) -> Any:
        """Return a value that is not a text as a Python object, None if missing; containers are refused."""
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
        """Raise an error for lists of several tags if the answers are not sets of tags."""
        for row, (value, text) in enumerate(zip(self.values, self.sets or (), strict=True)):
            if text is not None and value == text:
                raise LabelError(
                    f"{self.place(row)}: the label of id {self.ids[row]!r} is a list, and answers are not "
                    "sets of tags",
                    given=text,
                    allowed="one number or text",
                    action="Give each answer its own row, with one value and the annotator's name. If "
                    "labels are sets of tags, the answers must be, too: draw with predicted= (--predicted) "
                    "and tags= (--tags).",
                )

    def _container_error(self, noun: str, row: int, entry: object, allowed: str) -> LabelError:
        """Return the error about a label or an annotator that is a container."""
        problem = f"{self.place(row)}: the {noun} of id {self.ids[row]!r} is {type_text(entry)}"
        action = "Give each answer its own row, with one value and the annotator's name."
        if isinstance(entry, Mapping) and entry and noun == "label":
            name = f"COLUMN.{next(iter(entry))}"
            action = f"Name the entry of the object that is the label: {option_of('value', name)}."
        return LabelError(problem, given=reprlib.repr(entry), allowed=allowed, action=action)

    def __repr__(self) -> str:
        counts = Counter(class_text(value) for value in self.values if value is not None)
        most_common = counts.most_common(MAX_VALUES_SHOWN)
        values = ", ".join(f"{text!r}: {count:,}" for text, count in most_common)
        if len(counts) > len(most_common):
            values += f" and {len(counts) - len(most_common):,} more values"
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
        """Return the values (m,), and the declared mapping.

        The values are floats, NaN if missing, if all are numbers. Otherwise they are texts, None if missing.
        """
        value_types = set(map(type, self.values)) - {type(None)}
        if self.positive is None and self.mapping is None and value_types <= {float, int}:
            try:
                return np.array(self.values, dtype=np.float64), LabelMapping()
            except OverflowError:  # a whole number beyond the range of floats is a class
                pass
        texts = np.full(len(self.values), None, dtype=object)
        # Labels have few distinct texts, so that each is converted once.
        class_texts = {None: None} | {text: class_text(text) for text in distinct_texts(self.values)}
        text_types = (str, type(None))
        texts[:] = [
            class_texts[value] if isinstance(value, text_types) else class_text(value)
            for value in self.values
        ]
        distinct = dict.fromkeys(texts.tolist())
        if self.replaced is not None:
            # The mapping must also contain the replaced answers, which the agreement of annotators uses.
            replaced_answers = (value for value in self.replaced.values if value is not None)
            distinct |= dict.fromkeys(map(class_text, replaced_answers))
        distinct.pop(None, None)
        return texts, LabelMapping.of(distinct, self.positive, self.mapping)

    def undeclared_counts(self) -> dict[str, int]:
        """Return the frequency of each label whose meaning is not declared, by its text."""
        values, declared = self.interpreted()
        if values.dtype != object:
            values = values[~np.isnan(values)]
        return count_undeclared(values, declared)

    def only(self, rows: Sequence[int]) -> Labels:
        """Return some of the rows, in this order."""
        columns = {name: tuple(entries[row] for row in rows) for name, entries in self.columns.items()}
        changes: Keywords = {}
        for name, entries in field_values(self, _ROW_FIELDS).items():
            if entries is not None:
                changes[name] = tuple(entries[row] for row in rows)
        return replace(self, columns=columns, **changes)

    def of_annotator(self, name: str) -> Labels:
        """Return the labels as the answers of one annotator."""
        return replace(self, annotators=(name,) * len(self.ids))

    def with_set_texts(self, values: AnyArray, declared: LabelMapping, outcome: Outcome) -> AnyArray:
        """Return interpreted values (m,), with sets of tags as the texts of `stratal.question.tags`.

        Values that are all numbers, or words for numbers, are not changed: they state whether an answer is
        right.

        Raises
        ------
        LabelError
            If only some labels are sets of tags, and for tags that differ from those of the answers only in
            case or spaces.
        """
        if values.dtype != object and self.sets is None:
            return values
        cells: list[Any] = list(values.tolist())
        if values.dtype != object:
            cells = [None if value != value else class_text(value) for value in cells]
        for row, set_text in enumerate(self.sets or ()):
            if set_text is not None:
                cells[row] = set_text
        no_answer_texts = {text for text, meaning in declared.meanings.items() if meaning is None}
        rows = [row for row, cell in enumerate(cells) if cell is not None and cell not in no_answer_texts]
        answered_cells = [cells[row] for row in rows]
        set_texts, invalid_position = read_sets(answered_cells, _tag_format(answered_cells, outcome))
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
        if set_texts is None:
            return values
        self._refuse_misspelt_tags(set_texts, rows, outcome.tags)
        set_values = np.full(len(cells), None, dtype=object)
        for row, cell in enumerate(cells):
            if cell in no_answer_texts:
                set_values[row] = cell
        set_values[rows] = set_texts
        return set_values

    def _refuse_misspelt_tags(
        self, set_texts: Sequence[str], rows: Sequence[int], answer_tags: Sequence[str]
    ) -> None:
        """Refuse tags in the sets of `rows` that differ from those of the answers only in case or spaces."""
        spellings = {"".join(tag.split()).casefold(): tag for tag in answer_tags}
        for row, set_text in zip(rows, set_texts, strict=True):
            for tag in tags_of(set_text):
                answer_tag = spellings.get("".join(tag.split()).casefold(), tag)
                if answer_tag != tag and tag not in answer_tags:
                    raise LabelError(
                        f"{self.place(row)}: the label of id {self.ids[row]!r} has the tag {tag!r}, but the "
                        f"answers have {answer_tag!r}",
                        allowed=", ".join(map(repr, answer_tags)),
                        action="Spell tags as in the answers; otherwise they count as different tags.",
                    )

    @property
    def failed_answers(self) -> int:
        """Number of rows whose answer failed."""
        return sum(self.failed or ())

    def failed_as_wrong(
        self, bounds: tuple[float, float] | None = None, *, lowest: bool = True, classes: bool = False
    ) -> Labels:
        """Return labels in which each failed answer counts as wrong.

        Parameters
        ----------
        bounds : (float, float), optional
            Bounds of the scores. Default: 0 and 1 if all scores lie between them, or those of the words and
            of the mapping.
        lowest : bool
            Whether low scores are wrong. For an error rate, high scores are wrong.
        classes : bool
            Whether labels are classes; a failed answer then belongs to a separate class.

        Raises
        ------
        LabelError
            For scores without bounds, and for words that do not represent numbers.

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
        worst_of = min if lowest else max
        if self.positive is not None and not lowest and not classes:
            return self.positive, self.mapping
        # A new label is a separate class; next to a positive label it counts as 0.
        if classes or self.positive is not None:
            return FAILED_ANSWER, self.mapping
        numbers = [value for value in (self.mapping or {}).values() if isinstance(value, int | float)]
        if self.mapping is not None and numbers:
            return FAILED_ANSWER, {**self.mapping, FAILED_ANSWER: float(worst_of(numbers))}
        values = [value for value in self.values if value is not None]
        if any(isinstance(value, str) for value in values):
            word_numbers = numbers_by_word([str(value) for value in values])
            if word_numbers is None:
                action = (
                    "Name the label that counts as 1 (positive=, --positive), or count failed answers as "
                    "missing (--failed-answers missing)."
                )
                raise LabelError(f"{self.source}: failed answers have no label", action=action)
            return worst_of(word_numbers, key=word_numbers.__getitem__), self.mapping
        if bounds is None and all(0 <= value <= 1 for value in values):
            bounds = (0.0, 1.0)
        if bounds is None:
            raise LabelError(
                f"{self.source}: failed answers cannot count as wrong, since the scores have no bounds",
                given=f"{min(values):g} to {max(values):g}",
                action="Give the bounds (bounds=, --bounds), or count failed answers as missing "
                "(--failed-answers missing).",
            )
        return worst_of(bounds), self.mapping

    def place(self, row: int) -> str:
        """Return the source of a row's answer and its position in it, for error messages."""
        if self.places:
            return f"{self.source}, {self.places[row]}"
        return self.source


def count_undeclared(values: AnyArray, declared: LabelMapping) -> dict[str, int]:
    """Return how often each of the values (m,) occurs whose meaning is not declared, by its text."""
    counts = count_values(values)
    return {
        text: count for text, count in counts.items() if text is not None and text not in declared.meanings
    }


def distinct_texts(values: Iterable[object]) -> set[str]:
    """Return the distinct texts among values, which may be unhashable."""
    return {entry for entry in values if isinstance(entry, str)}


# If all values have these types, none is a list, and the values need not be examined one by one.
_TYPES_WITHOUT_LISTS = {str, float, int, bool, type(None)}


def _is_list(value: object) -> bool:
    """Return whether a value is a list without lists or dicts in it."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, list | tuple | set | frozenset) and not any(
        isinstance(entry, list | tuple | dict) for entry in value
    )


def _tag_format(texts: Sequence[str], outcome: Outcome) -> str | None:
    """Return the separator of sets of tags in the texts of labels; None if only lists are sets.

    Texts that all count as numbers state whether answers are right. They are not split, unless one is a tag.
    """
    if outcome.tag_format in SEPARATORS and ({*texts} & {*outcome.tags} or not are_numeric_labels(texts)):
        return outcome.tag_format
    return None
