"""The join of labels to a sample by unit id: the answers in the order of the units, with their mapping."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import multimode
from typing import Any

import numpy as np

from stratal.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    Record,
    refuse_extremes,
)
from stratal.errors import LabelError, list_first
from stratal.labels.accepted_types import are_in_sample_order, labels_with_sample_ids
from stratal.labels.label_values import (
    DECIMAL_COMMA,
    MAX_VALUES_SHOWN,
    LabelMapping,
    LabelValue,
    class_text,
    comparison_key,
    count_values,
    format_mapping,
    refuse_no_answer_words,
    unused_mapping_notes,
)
from stratal.labels.labels import Labels, SampleLike, count_undeclared
from stratal.labels.row_checks import refuse_changed_columns, refuse_other_rows
from stratal.names import option_of
from stratal.question.vocabulary import MAPPING_HELP, is_known_word, success_word
from stratal.randomness import id_text, id_texts
from stratal.tables.number_format import is_percentage

# A share of votes, such as 2/3.
_FRACTION = re.compile(r"[0-9]+ ?/ ?[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinedLabels(Record):
    """The labels of a sample's units, in the order of the units, with the mapping of their values.

    Parameters
    ----------
    unit : int (r,)
        The drawn unit of each label.
    values : (r,)
        The labels: numbers, or texts that `label_mapping` and the vocabularies interpret.
    label_mapping : LabelMapping
    labelled : bool (n,)
        Which drawn units have a label.
    ids : (n,)
        Ids of the drawn units, for error messages.
    unanswered : mapping of str to int
        Number of labels by text, for the texts that are mapped to no answer.
    notes : tuple of str
        Notes about reading and joining the labels.
    source : str
        Source of the labels, for error messages.
    codes_checked : bool
        Whether the values were searched for codes of missing labels, such as -1.
    cache : dict
        Values that several estimands of one call share; empty between calls.
    """

    unit: IntArray
    values: AnyArray
    label_mapping: LabelMapping
    labelled: BoolArray
    ids: AnyArray
    unanswered: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = field(default="labels", compare=False)
    codes_checked: bool = field(default=False, compare=False)
    cache: dict[Any, Any] = field(init=False, default_factory=dict, compare=False, repr=False)

    def undeclared_counts(self) -> dict[str, int]:
        """Return how often each answer occurs whose meaning is not declared, by its text."""
        return count_undeclared(self.values, self.label_mapping)

    def numbers(self, source: str = "labels") -> FloatArray:
        """Return the number that each answer (r,) counts as; an error names `source` and the unit.

        Raises
        ------
        LabelError
            For an answer that does not represent a finite number.
        """
        numbers = self.values
        if numbers.dtype == object:
            number_of = self.label_mapping.numbers(dict.fromkeys(numbers.tolist()))
            no_number_texts = [text for text, number in number_of.items() if number != number]
            refuse_no_answer_words(no_number_texts, source, list(number_of))
            numbers = np.array([number_of[text] for text in numbers.tolist()], dtype=np.float64)
        if not np.all(np.isfinite(numbers)):
            raise self._not_a_number_error(np.asarray(numbers), source)
        refuse_extremes(source, numbers)
        return np.asarray(numbers)

    def _not_a_number_error(self, numbers: FloatArray, source: str) -> LabelError:
        """Return the error about the first answer (r,) that is not a number; unknown words come first."""
        texts = list(map(str, self.values.tolist()))
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
        if has_stray_numbers:
            action = f"Correct it or, if it is not an answer, use {format_mapping({first_text: None})}."
        else:
            action = _action_for_text(first_text, texts)
        count_text = ""
        if len(reported_rows) > 1:
            count_text = f" ({len(reported_rows)} such labels)"
        unit_id = id_text(self.ids.tolist()[self.unit[reported_rows[0]]])
        distinct_labels = list(dict.fromkeys(texts[row] for row in reported_rows))
        labels_text = list_first(map(repr, distinct_labels), MAX_VALUES_SHOWN)
        return LabelError(
            f"{source}: label {first_text!r} of id {unit_id!r} {problem}{count_text}",
            given=labels_text if len(distinct_labels) > 1 else None,
            allowed="numbers, or words such as pass/fail, yes/no, correct/incorrect, win/tie/loss",
            action=action,
        )

    def classes(self, answers: Collection[str] | None = None) -> AnyArray:
        """Return the class of each answer (r,) as text, in the spelling of the model's `answers` if given."""
        class_of = self.distinct_classes(answers)
        return np.array([class_of[value] for value in self.values.tolist()], dtype=object)

    @property
    def distinct_texts(self) -> list[str]:
        """The distinct answers as texts, with the number or class to which the user mapped them."""
        texts = map(class_text, dict.fromkeys(self.values.tolist()))
        return [str(self.label_mapping.meanings.get(text, text)) for text in texts]

    def distinct_classes(self, answers: Collection[str] | None = None) -> dict[Any, str]:
        """Return the class of each distinct answer, in the order of their first occurrence."""
        texts = {value: class_text(value) for value in dict.fromkeys(self.values.tolist())}
        answer_set = None if answers is None else set(answers)
        class_of = self.label_mapping.classes(dict.fromkeys(texts.values()), answer_set)
        return {value: class_of[text] for value, text in texts.items()}

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Bounds of the numbers: those of the mapping, or (0, 1) for words; None if answers are numbers."""
        if self.label_mapping.bounds is not None or self.values.dtype != object:
            return self.label_mapping.bounds
        if self.label_mapping.has_words(dict.fromkeys(self.values.tolist())):
            return (0.0, 1.0)
        return None

    def unit_means(self, numbers: FloatArray) -> FloatArray:
        """Return the mean number of each labelled unit (m,), from the numbers of the answers (r,)."""
        sums = np.bincount(self.unit, numbers)
        counts = np.bincount(self.unit)
        return np.asarray(sums[counts > 0] / counts[counts > 0])

    def majority(self, answers: AnyArray) -> AnyArray:
        """Return the most frequent answer of each drawn unit (n,), None without answers and for ties."""
        majority_answers = np.full(len(self.labelled), None, dtype=object)
        starts = np.flatnonzero(np.diff(self.unit, prepend=-1))
        if len(starts) == len(answers):  # every labelled unit has one answer
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
        """Return the number, or the class if labels are `classes`, of each distinct value of a column."""
        rows = self.label_mapping.table(
            {**count_values(self.values), **self.unanswered}, answers, classes=classes
        )
        if column:
            return tuple(replace(row, column=column) for row in rows)
        return rows


def join_labels(
    sample: SampleLike, labels: object, array_name: str = "an array of labels", *, may_be_sets: bool = True
) -> JoinedLabels:
    """Join labels, or another column of values by id, to a sample, with the mapping of their values.

    Parameters
    ----------
    sample : Sample
    labels : JoinedLabels, or see `as_labels`
        `JoinedLabels` are returned unchanged.
    array_name : str
        Name of an array in error messages.
    may_be_sets : bool
        Whether the values may be sets of tags, as labels and answers may be, but groups may not.

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
    if are_in_sample_order(unit_labels, position.keys()):
        units = np.arange(sample.size)
    else:
        units = _matched_units(sample, unit_labels, position)
    refuse_changed_columns(sample, unit_labels, units)
    values, declared = unit_labels.interpreted()
    # `compares` is None if it is not declared whether labels are compared with answers.
    if may_be_sets and sample.question.outcome.holds_sets and sample.question.compares is not False:
        values = unit_labels.with_set_texts(values, declared, sample.question.outcome)
    elif unit_labels.sets is not None:
        unit_labels.refuse_sets()
    joined = _join_answers(sample, units, values, declared, notes=unit_labels.notes)
    return replace(joined, source=unit_labels.source, codes_checked=unit_labels.codes_checked)


def _matched_units(sample: SampleLike, unit_labels: Labels, position: Mapping[str, int]) -> IntArray:
    """Return the drawn unit of each label (m,); unknown ids and a second label of a unit are refused."""
    unknown_rows = [row for row, text in enumerate(unit_labels.ids) if text not in position]
    if unknown_rows:
        count = "1 id is" if len(unknown_rows) == 1 else f"{len(unknown_rows)} ids are"
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
        first_rows = {key: row for row, key in reversed(list(enumerate(answer_keys)))}
        row = next(row for row, key in enumerate(answer_keys) if first_rows[key] < row)
        by_annotator = ""
        if unit_labels.annotators and unit_labels.annotators[row]:
            by_annotator = f" by annotator {unit_labels.annotators[row]!r}"
        raise LabelError(
            f"{unit_labels.place(row)}: id {unit_labels.ids[row]!r} has two labels{by_annotator}",
            allowed="one label per unit and annotator",
            action="Keep one of them, or name the annotators in a column `annotator`; for labels of "
            "several models, name the column of the models: --model COL.",
        )
    return np.array([position[text] for text in unit_labels.ids], dtype=np.int64)


def _join_answers(
    sample: SampleLike,
    units: IntArray,
    values: AnyArray,
    declared: LabelMapping,
    notes: tuple[str, ...] = (),
) -> JoinedLabels:
    """Return the `values` (m,) of `units` (m,) in the order of the units, without missing answers."""
    unanswered: dict[str, int] = {}
    if values.dtype == object:
        no_answer_texts = {text for text, meaning in declared.meanings.items() if meaning is None}
        texts = values.tolist()
        is_answered = np.array([text is not None and text not in no_answer_texts for text in texts], bool)
        unanswered = dict(Counter(text for text in texts if text in no_answer_texts))
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
        values=values[rows],
        label_mapping=declared,
        labelled=labelled,
        ids=sample.ids,
        unanswered=unanswered,
        notes=(*notes, *_notes_on_mapping(sample, declared)),
    )


def _notes_on_mapping(sample: SampleLike, declared: LabelMapping) -> tuple[str, ...]:
    """Return the notes on a mapping, and on its values that neither labels nor columns of the sample have."""
    unused = declared.unused
    if unused:
        texts = {text for column in sample.groups.values() for text in column.tolist()}
        stored_keys = {comparison_key(text) for text in texts}
        unused = tuple(value for value in unused if comparison_key(value) not in stored_keys)
    return (*unused_mapping_notes(unused), *declared.notes)


def _action_for_text(text: str, texts: Sequence[str]) -> str:
    """Return the next step for a text that is not a number, among the `texts` of all answers."""
    if DECIMAL_COMMA.fullmatch(text):
        return "Use a decimal point; decimal commas are also read if the columns are separated by semicolons."
    action = (
        f"{MAPPING_HELP} If labels are classes, name the column of the model's answers: predicted= "
        "(--predicted). This column must be in the sample or in the file of labels."
    )
    success = success_word(set(texts))
    if success is not None:
        action = f"For the share of {success!r}: {option_of('positive', success)}. {action}"
    if is_percentage(text):
        return f"Write shares as numbers, such as 0.83 for 83%. {action}"
    if _FRACTION.fullmatch(text):
        return f"Write fractions as numbers, such as 0.67 for 2/3. {action}"
    return action
