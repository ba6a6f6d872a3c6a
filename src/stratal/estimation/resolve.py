"""Convert labels, answers and other columns of the drawn units to arrays in the order of `sample.ids`.

No other module decodes a label or compares it with an answer. In shapes, n is the number of drawn units, m
that of labelled units, and r that of labels (several for a unit with several annotators). The variable
`answers` always contains answers of a model.
"""

from __future__ import annotations

import copy
import reprlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, Record, has_entry
from stratal.designs.sample import Design, Sample
from stratal.errors import InputError, LabelError, check_choice, suggest_names
from stratal.labels.accepted_types import as_labels
from stratal.labels.annotators import COMBINATIONS
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.labels.label_values import class_text, code_mapping_advice, refuse_incomparable_classes
from stratal.labels.missing_codes import AnyLabels, refuse_missing_codes
from stratal.question.decoding import RIGHT_OR_WRONG, comparison_note, is_compared
from stratal.question.question import NOT_COMPARED
from stratal.question.scores import Predictions, Score, declared_scores
from stratal.question.tags import JSON_LISTS, is_set, read_sets, tags_of
from stratal.question.tags import tags_of_sets as tag_vocabulary
from stratal.report.notes import NO_MATCH, Note
from stratal.tables.number_format import numbers_of_texts


def agreement_with_models(sample: Sample, joined: JoinedLabels, models: Sequence[str]) -> FloatArray:
    """Return the share of each labelled unit's labels that are equal to each model's answer (m, k).

    Raises
    ------
    LabelError
        If the answers of a model match almost no label.
    """
    answers = {model: answers_of(sample, model) for model in models}
    classes = joined.classes({answer for column in answers.values() for answer in column.tolist()})
    answers_of_labelled = {model: column[joined.unit] for model, column in answers.items()}
    refuse_mismatched_models(classes, answers_of_labelled, answers)
    same = [decode_classes(joined, answers[model]) == answers_of_labelled[model] for model in models]
    return np.column_stack([joined.unit_means(np.asarray(each, dtype=np.float64)) for each in same])


def decode_classes(joined: JoinedLabels, answers: AnyArray, others: tuple[str, ...] = ()) -> AnyArray:
    """Return the classes of the labels (r,); raise an error if they cannot be compared with the answers (n,).

    `others` are further classes that labels may name.
    """
    vocabulary = [*answers.tolist(), *others]
    classes = joined.classes(vocabulary)
    if vocabulary and all(map(is_set, (*set(classes.tolist()), *set(vocabulary)))):
        tags_of_labels = [tag for text in classes for tag in tags_of(text)]
        tags_of_answers = [tag for text in vocabulary for tag in tags_of(text)]
        refuse_incomparable_classes(tags_of_labels, tags_of_answers)
    elif vocabulary:
        refuse_incomparable_classes(classes.tolist(), vocabulary)
    return classes


def with_undrawn_classes(sample: Sample, answers: AnyArray, column: str | None) -> AnyArray:
    """Return answers (n,), followed by classes that no drawn unit has: the classes that labels may name.

    Such classes were declared, or counted among all answers of the population.

    Parameters
    ----------
    sample : Sample
    answers : (n,)
        Answers of drawn units.
    column : str, optional
        The column of the answers. Default: that of the sample's question.
    """
    counts = sample.totals.get(column or sample.question.answer or "", {})
    # Drawn classes are not added again: answers that occur twice are interpreted as classes, not free text.
    drawn_classes = set(answers.tolist())
    classes = dict.fromkeys((*sample.question.outcome.classes, *counts))
    undrawn_classes = [name for name in classes if name not in drawn_classes]
    return np.array([*answers.tolist(), *undrawn_classes], dtype=object)


# Minimum number of labels of a mismatch. A model may be wrong on all of fewer labels by chance.
_MIN_LABELS_TO_MATCH = 10

# Largest share of labels that the answers of a mismatched model match.
_MAX_MATCH_SHARE = 0.02

# Smallest share of a model's answers that are classes of the labels, if both are written in the same way. A
# classifier that is always wrong still answers with these classes.
_MIN_KNOWN_SHARE = 0.1

# Number of mismatches that an error lists for each model.
_MISMATCHES_LISTED = 3

MATCH_REMEDIES = (
    "Give a column of right (1) and wrong (0) for each model instead of one column of classes, "
    "or bring answers and labels into one form (case, punctuation, the bare value) in both files"
)


def mismatches_by_model(
    labels: AnyArray, answers: Mapping[str, AnyArray], vocabulary: Mapping[str, AnyArray]
) -> dict[str, str]:
    """Return, for each model whose answers match almost no label, its most frequent mismatches as text.

    A classifier may be wrong on every labelled unit, particularly if only units on which models disagree are
    labelled. Therefore, a model is accepted if its answers are classes of the labels, or answers of an
    accepted model.

    Parameters
    ----------
    labels : (r,)
        Classes, as text.
    answers : mapping of model to (r,)
        The answer of each model for the unit of each label.
    vocabulary : mapping of model to (v,)
        The answers of each model to all drawn units, and further classes that labels may name.
    """
    if len(labels) < _MIN_LABELS_TO_MATCH:
        return {}
    mismatched = [
        name
        for name, model_answers in answers.items()
        if np.mean(model_answers == labels) <= _MAX_MATCH_SHARE
    ]
    # Return early, because reading the answers to all units takes time.
    if not mismatched:
        return {}
    if all(map(is_set, set(labels.tolist()))):
        # The same sets seldom occur twice, but their tags do.
        vocabulary = {name: _tags_among(column) for name, column in vocabulary.items()}
        known_values = {*_tags_among(labels).tolist(), _NO_TAGS}
    else:
        known_values = set(labels.tolist())
    for name in answers:
        if name not in mismatched:
            known_values |= set(vocabulary[name].tolist())
    # The answers of accepted models are added to the known values until no further model is accepted.
    accepted = [""]
    while accepted:
        accepted = [
            name
            for name in mismatched
            if np.mean([answer in known_values for answer in vocabulary[name].tolist()]) >= _MIN_KNOWN_SHARE
        ]
        mismatched = [name for name in mismatched if name not in accepted]
        for name in accepted:
            known_values |= set(vocabulary[name].tolist())
    return {name: _most_frequent_mismatches(labels, answers[name]) for name in mismatched}


# Text that represents the empty set among tags.
_NO_TAGS = "[]"


def _tags_among(texts: AnyArray) -> AnyArray:
    """Return the tags of all texts (v,) that are sets, and the other texts unchanged."""
    tags: list[str] = []
    for text in texts.tolist():
        if is_set(text):
            tags += tags_of(text) or (_NO_TAGS,)
        else:
            tags.append(text)
    return np.array(tags, dtype=object)


def _most_frequent_mismatches(labels: AnyArray, answers: AnyArray) -> str:
    """Return the most frequent pairs of an answer (r,) and another label (r,), with their counts."""
    pairs = zip(answers.tolist(), labels.tolist(), strict=True)
    counts = Counter(pair for pair in pairs if pair[0] != pair[1])
    shown = (
        f"{reprlib.repr(answer)} → {reprlib.repr(label)} ({count})"
        for (answer, label), count in counts.most_common(_MISMATCHES_LISTED)
    )
    return ", ".join(shown)


def refuse_mismatched_models(
    labels: AnyArray, answers: Mapping[str, AnyArray], vocabulary: Mapping[str, AnyArray]
) -> None:
    """Raise an error if the answers of a model match almost no label; see `mismatches_by_model`."""
    mismatched = mismatches_by_model(labels, answers, vocabulary)
    if mismatched:
        names = ", ".join(map(repr, mismatched))
        listed = "; ".join(f"{name}: {pairs}" for name, pairs in mismatched.items())
        raise LabelError(
            f"the answers of {names} match almost none of {len(labels):,} labels",
            given=f"most frequent answer → label, with counts: {listed}",
            action=f"{MATCH_REMEDIES}, or leave the model out.",
        )


def mismatch_notes(labels: AnyArray, answers: AnyArray, vocabulary: AnyArray) -> tuple[Note, ...]:
    """Return a warning if the answers (r,) match almost none of the labels (r,)."""
    mismatched = mismatches_by_model(labels, {"": answers}, {"": vocabulary})
    return tuple(
        Note(
            NO_MATCH,
            f"the answers match almost none of {len(labels):,} labels (most frequent answer → label: "
            f"{pairs}), which usually means that they are written differently. {MATCH_REMEDIES}",
        )
        for pairs in mismatched.values()
    )


def source_noun(sample: Sample) -> str:
    """Return the noun for a sample in messages: "the table" if its labelled rows are used as a sample."""
    if sample.declared_random:
        return "the table"
    return "this sample"


def answers_of(sample: Sample, predicted: bool | str) -> AnyArray:
    """Return the model's answer for each drawn unit (n,), as text."""
    name = predicted if isinstance(predicted, str) else sample.question.answer
    problem = f"{source_noun(sample)} does not contain the model's answers"
    return group_column(sample, name, problem, "predicted")


def class_column(
    sample: Sample,
    column: object,
    array_name: str,
    answers: AnyArray | None = None,
    *,
    may_be_sets: bool = True,
) -> AnyArray:
    """Return the class of each drawn unit (n,) as text; None without a class, or without a majority.

    Parameters
    ----------
    sample : Sample
    column : None, str, array (n,), mapping of id to class, Series, or Labels
        None is the sample's column of the model's answers, a text one of its group columns.
    array_name : str
        Name of an array in error messages.
    answers : (n,), optional
        The answers that labels are compared with; see `decode_classes`.
    may_be_sets : bool
        Whether a class may be a set of tags.
    """
    if column is None:
        return np.array(answers_of(sample, True), dtype=object)
    if isinstance(column, str):
        return np.array(group_column(sample, column), dtype=object)
    joined = join_labels(sample, column, array_name, may_be_sets=may_be_sets)
    if answers is None:
        return joined.majority(joined.classes())
    return joined.majority(decode_classes(joined, answers, sample.question.outcome.classes))


def group_column(
    sample: Sample, name: str | None, problem: str | None = None, option: str = "groups"
) -> AnyArray:
    """Return a group column of the drawn units (n,).

    `problem` is that of the error if there is no such column, and `option` the option that adds it.
    """
    if name is None or name not in sample.groups:
        column = name or "COL"
        if sample.declared_random:
            action = f"Name the column in the table: {option}= (--{option} COL)."
        else:
            action = _redraw_action(sample, option, column)
        raise InputError(
            problem or f"{source_noun(sample)} has no group column {name!r}",
            allowed=suggest_names(name or "", sample.groups) or None,
            action=action,
        )
    return np.asarray(sample.groups[name])


def _redraw_action(sample: Sample, option: str, column: str) -> str:
    """Return how to draw a sample with the column, and whether existing labels then remain valid."""
    named = f"Draw again with {option}= (--{option} {column})"
    is_drawable = type(sample.design).select is not Design.select
    # Groups change no draw. Other roles may change the proxy, and later rounds depend on labels.
    if option != "groups" or not is_drawable or sample.round.max() > 1:
        return f"{named}, so that the sample contains the column."
    return (
        f"{named}, seed {sample.seed} and the other options as before: this draws the same units, so that "
        "the existing labels remain valid."
    )


def named_groups(sample: Sample, group: object) -> tuple[AnyArray, list[str]]:
    """Return the group of each drawn unit (n,), and the names of the groups; see `class_column`."""
    groups = class_column(sample, group, "by", may_be_sets=False)
    names = sorted({str(entry) for entry in groups if entry is not None})
    if not names:
        raise LabelError("no drawn unit has a group", allowed="a group for each labelled unit")
    return groups, names


def with_group(sample: Sample, name: str, values: object) -> Sample:
    """Return the sample with a further group column; units without a value have the empty text.

    `values` are an array (n,), a mapping of id to class, a Series, or Labels.
    """
    column = class_column(sample, values, name)
    cells = ["" if value is None else value for value in column]
    question = sample.question
    sets, _ = read_sets([cell for cell in cells if cell], question.outcome.tag_format)
    if sets is not None:
        read = iter(sets)
        cells = [next(read) if cell else "" for cell in cells]
        tags = sorted({*question.outcome.tags, *tag_vocabulary(sets)})
        question = question.with_outcome(
            tag_format=question.outcome.tag_format or JSON_LISTS, tags=tuple(tags)
        )
    return replace(sample, question=question, groups={**sample.groups, name: np.array(cells, dtype=np.str_)})


def refuse_unlabelled_class(sample: Sample, joined: JoinedLabels) -> None:
    """Raise an error for a score that is declared as the probability of a class without any label.

    Only labels of at least two classes are checked. A declaration is checked at the draw if the sample has
    answers of the model.
    """
    scores = _declared_class_scores(sample)
    if not scores:
        return
    classes = _labelled_classes(sample, joined)
    if classes:
        for score in scores:
            score.refuse_unknown_class(classes, "the labels")


def _declared_class_scores(sample: Sample) -> list[Score]:
    """Return the scores that are declared as the probability of a class, if there are no answers to check."""
    question = sample.question
    if question.answer is not None or question.outcome.holds_sets:
        return []
    return [score for score in question.scores if score.declared and score.of_class is not None]


def _labelled_classes(sample: Sample, joined: JoinedLabels) -> set[str]:
    """Return the classes of labels; none if all labels are of one class."""
    # A declared class may be a label as it was written, or the class to which the user mapped it.
    written_classes = {class_text(value) for value in joined.values.tolist()}
    mapped_classes = set(joined.distinct_texts)
    classes = written_classes | mapped_classes
    if len(classes) > 1:
        return {*classes, *sample.question.outcome.classes}
    return set()


def with_corrected_scores(sample: Sample, predicts: Predictions | None, labels: object) -> Sample:
    """Return the sample without the classes of scores that no label has, if `predicts` corrects these scores.

    The correction is `order`: the score only orders the units. A class that was misspelt at the draw is
    detected only if there are labels.
    """
    declared = declared_scores(predicts, sample.proxy_names)
    scores = [
        score
        for score in _declared_class_scores(sample)
        if score.name in declared and declared[score.name].is_order
    ]
    if not scores:
        return sample
    classes = _labelled_classes(sample, join_labels(sample, labels))
    unknown = {score.name for score in scores if score.of_class not in classes}
    if not classes or not unknown:
        return sample
    question = sample.question
    corrected = tuple(
        replace(score, declared=score.declared and score.name not in unknown) for score in question.scores
    )
    population = sample.population
    if population is not None:
        population = copy.copy(population)
        population.predicts = {
            name: text for name, text in population.predicts.items() if name not in unknown
        }
    return replace(sample, question=replace(question, scores=corrected), population=population)


# Name of the group column with the answers that the user gave together with the labels.
ANSWERS_WITH_LABELS = "answers given with the labels"


def split_answers(labels: object) -> tuple[Any, Any]:
    """Return labels, and the model's answers or None; a mapping `{"label": …, "predicted": …}` has both."""
    if isinstance(labels, Mapping) and set(labels) == {"label", "predicted"}:
        return labels["label"], labels["predicted"]
    return labels, None


def with_answer_sets(sample: Sample, labels: object) -> Sample:
    """Return the sample with the tag format of answers that came with the labels, if all are sets of tags."""
    answers = split_answers(labels)[1]
    if answers is None or sample.question.outcome.tag_format is not None:
        return sample
    rows = as_labels(answers, sample)
    # `rows.sets` has the text of each value that was a list, and None for other values.
    list_texts = rows.sets or rows.values
    cells = [text or value for text, value in zip(list_texts, rows.values, strict=True)]
    texts, _ = read_sets([str(cell) for cell in cells if cell is not None], None)
    if texts is None:
        return sample
    question = sample.question.with_outcome(tag_format=JSON_LISTS, tags=tag_vocabulary(texts))
    return replace(sample, question=question)


def number_column(sample: Sample, column: object, noun: str) -> FloatArray:
    """Return the number of each drawn unit (n,): the mean of the numbers of its annotators; NaN without one.

    Parameters
    ----------
    sample : Sample
    column : str, array (n,), mapping of id to number, Series, or Labels
        A text is the name of a proxy, or of another column of numbers that the sample stores.
    noun : str
        Name of the numbers in error messages, such as `score`.
    """
    if isinstance(column, str):
        return _stored_numbers(sample, column, noun)
    joined = join_labels(sample, column, noun, may_be_sets=False)
    numbers = np.full(sample.size, np.nan)
    numbers[joined.labelled] = joined.unit_means(joined.numbers(noun))
    return numbers


def _stored_numbers(sample: Sample, name: str, noun: str) -> FloatArray:
    """Return a stored column (n,) as numbers: a proxy, a group, or a column that annotators see."""
    if name in sample.proxy_names:
        return np.asarray(sample.proxies[:, sample.proxy_names.index(name)])
    columns = {**sample.shown, **sample.groups}
    if name not in columns:
        names = (*sample.proxy_names, *columns)
        options = f"--proxy {name}, --groups {name}"
        action = f"Draw again with proxy= or groups= ({options}), so that the sample contains this column."
        if sample.declared_random:
            action = "Name another column of the table."
        raise InputError(
            f"{source_noun(sample)} has no column {name!r} for the {noun}",
            allowed=suggest_names(name, names) or None,
            action=action,
        )
    texts = ["" if value is None else str(value) for value in columns[name].tolist()]
    numbers = dict(zip(texts, numbers_of_texts(texts), strict=True))
    for row, text in enumerate(texts):
        if np.isnan(numbers[text]) and text.strip().casefold() not in ("", "nan"):
            raise InputError(
                f"column {name!r} contains entries that are not numbers",
                given=f"{text!r} of id {str(sample.ids[row])!r}",
                action="Name a column of numbers.",
            )
    return np.array([numbers[text] for text in texts])


def joined_columns(sample: Sample, columns: Mapping[str, object]) -> dict[str, Any]:
    """Return columns of labels by name, joined to the sample; names of proxies stay as they are."""
    from stratal.labels.label_files import read_labels_if_table  # a plan needs no labels

    joined: dict[str, Any] = {}
    for name, column in columns.items():
        if isinstance(column, str):
            joined[name] = column
        else:
            joined[name] = join_labels(sample, read_labels_if_table(column, sample), name)
    return joined


def check_label_codes(
    sample: Sample,
    labels: AnyLabels,
    column: str,
    *,
    outcome: str | None = None,
    bounds: tuple[float, float] | None = None,
    classes: Collection[str] | None = None,
) -> AnyLabels:
    """Return the labels; raise an error if some are codes of missing labels, such as -99.

    Parameters
    ----------
    sample : Sample
    labels : Labels or JoinedLabels
    column : str
        Name of the column of labels, for the error message.
    outcome : str, optional
        The stated scale of the labels. If it is `binary`, another error is raised later for other numbers.
    bounds : (float, float), optional
        Stated bounds of the labels, by default those of the sample's question.
    classes : collection of str, optional
        The classes that labels are compared with.
    """
    if outcome == "binary":
        return replace(labels, codes_checked=True)
    question = sample.question
    right_or_wrong = question.predicts_right or question.answer is not None
    bounds = bounds or question.outcome.bounds
    return refuse_missing_codes(labels, column, bounds=bounds, classes=classes, right_or_wrong=right_or_wrong)


def no_labels_error(outcomes_text: str = "") -> LabelError:
    """Return the error that no unit has a label, or a label of each of several outcomes, such as `z, w`."""
    problem = "no unit is labelled yet"
    if outcomes_text:
        problem = f"no unit has a label of all {outcomes_text}"
    return LabelError(
        problem,
        allowed="at least one label",
        action="Fill in the label column, then estimate again.",
    )


def named_columns(sample: Sample, labels: object, names: Sequence[str]) -> tuple[FloatArray, BoolArray]:
    """Return the outcomes (m, q) of the units that have all of them, and which units these are (n,)."""
    if not isinstance(labels, Mapping) or {str(name) for name in labels} != set(names):
        raise InputError("labels must map each outcome to its labels", allowed=", ".join(names))
    return number_columns(sample, {name: labels[name] for name in names})


def number_columns(sample: Sample, variables: Mapping[str, object]) -> tuple[FloatArray, BoolArray]:
    """Return the variables (m, q) of the units that have all of them, and which units these are (n,)."""
    columns = np.column_stack([number_column(sample, column, name) for name, column in variables.items()])
    labelled = np.all(np.isfinite(columns), axis=1)
    if not np.any(labelled):
        raise no_labels_error(", ".join(variables) if len(variables) > 1 else "")
    return columns[labelled], labelled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelOutcomes(Record):
    """The outcomes of the labels: their numbers, or whether they are equal to the model's answers.

    Parameters
    ----------
    z : float (m,)
        Mean or majority of the labels of each labelled unit.
    labelled : bool (n,)
    bounds : (float, float), optional
        Bounds of the outcome, if the words of the labels determine them.
    right_or_wrong : bool
        Whether every single label is 0 or 1, also if their mean is not.
    notes : tuple of str
        Notes on the interpretation of the labels, and on units with several labels.
    """

    z: FloatArray
    labelled: BoolArray
    bounds: tuple[float, float] | None = None
    right_or_wrong: bool
    notes: tuple[str, ...] = ()


def compared_column(sample: Sample, labels: object, predicted: bool | str | None = None) -> str | None:
    """Return the column of the model's answers that labels are compared with; None if they are numbers.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    predicted : bool or str, optional
        The declaration of the caller; see `Question.refine`. Default: that of the sample's question, and
        without a declaration, it is inferred from the labels.

    Raises
    ------
    LabelError
        If nothing is declared and labels may be classes as well as right and wrong.
    InputError
        If `predicted` contradicts the sample's question.
    """
    if isinstance(predicted, str) and predicted != NOT_COMPARED:
        return predicted
    question = sample.question.refine(predicted=predicted)
    if question.answer is None:
        return None
    compares = question.compares
    if compares is None:
        joined = join_labels(sample, labels)
        if joined.label_mapping.stands_for_numbers:
            return None
        answers = set(answers_of(sample, question.answer).tolist())
        compares = is_compared(question, joined.distinct_texts, answers)
    if compares:
        return question.answer
    return None


def outcomes(
    sample: Sample, labels: object, predicted: bool | str | None = None, combine: str = "mean"
) -> LabelOutcomes:
    """Return the outcomes of the labelled units.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    predicted : bool or str, optional
        See `compared_column`.
    combine : {"mean", "majority"}
        How several labels of one unit are combined.
    """
    check_choice("combination", combine, COMBINATIONS)
    joined = join_labels(sample, labels)
    if not joined.labelled.any():
        raise no_labels_error()
    column = compared_column(sample, joined, predicted)
    if column is None:
        answers = None
    else:
        answers = answers_of(sample, column)
    answer_column = sample.question.answer
    if answers is None and answer_column is not None and answer_column in sample.groups:
        _refuse_averaged_classes(answer_column, sample.groups[answer_column], joined)
    notes: list[str] = []
    if column is not None and predicted is None:
        ambiguity = comparison_note(sample.question, joined.distinct_texts)
        notes = [] if ambiguity is None else [ambiguity]
    if answers is None:
        values = joined.numbers()
        if predicted is None:
            notes += _notes_on_codes(sample, joined)
    else:
        vocabulary = with_undrawn_classes(sample, answers, column)
        values = decode_classes(joined, vocabulary)
        notes += mismatch_notes(values, answers[joined.unit], vocabulary)
    z, labelled, combination_notes = _combine_labels(joined, values, answers, combine)
    return LabelOutcomes(
        z=z,
        labelled=labelled,
        bounds=joined.bounds if answers is None else (0.0, 1.0),
        right_or_wrong=answers is not None or bool(((values == 0) | (values == 1)).all()),
        notes=(*notes, *combination_notes),
    )


def _combine_labels(
    joined: JoinedLabels, values: AnyArray, answers: AnyArray | None, combine: str
) -> tuple[FloatArray, BoolArray, list[str]]:
    """Return the outcomes of labelled units (m,), which units these are (n,), and a note on several labels.

    `values` (r,) are the numbers of the labels. With the model's answers (n,), they are the classes of the
    labels, and the outcome is whether these are equal to the answer.
    """
    labelled = joined.labelled
    units = joined.unit
    counts = np.bincount(units)
    counts = counts[counts > 0]
    n_repeated = int((counts > 1).sum())
    noun = "unit" if n_repeated == 1 else "units"
    note = f"for {n_repeated} {noun}, the {combine} of several answers is used"
    if n_repeated and combine == "majority":
        majority = joined.majority(values)
        labelled = has_entry(majority)
        values = majority[labelled]
        units = np.flatnonzero(labelled)
        n_ties = len(counts) - len(units)
        note += f"; {n_ties} without a majority count as not labelled" if n_ties else ""
    if answers is not None:
        values = values == answers[units]
    z = np.asarray(values, dtype=np.float64)
    if not n_repeated:
        return z, labelled, []
    if combine == "mean":
        if answers is None:
            means = np.repeat(joined.unit_means(z), counts)
            pooled_variance = float(np.sum((z - means) ** 2) / np.sum(counts - 1))
            note += f"; the variance of the answers within a unit is {pooled_variance:.4g}"
        z = joined.unit_means(z)
    return z, labelled, [note]


def _notes_on_codes(sample: Sample, joined: JoinedLabels) -> list[str]:
    """Return a note if labels that are used as numbers may be codes of the model's answers.

    Labels of 0 and 1 usually mean wrong and right, unless the model's answers have two classes.
    """
    column = sample.question.answer
    if column is None or column not in sample.groups or sample.question.compares is not None:
        return []
    if joined.label_mapping.stands_for_numbers:
        return []
    labels = set(joined.distinct_texts)
    answers = set(with_undrawn_classes(sample, sample.groups[column], column).tolist())
    advice = code_mapping_advice(labels, answers)
    if advice is None or (labels <= RIGHT_OR_WRONG and len(answers) > 2):
        return []
    return [
        f"the labels count as numbers and are not compared with the answers in {column!r}; if they are codes "
        f"of these classes, {advice}; if they are numbers: predicted=False (--predicted none)"
    ]


def _refuse_averaged_classes(column: str, answers: AnyArray, joined: JoinedLabels) -> None:
    """Raise an error for labels that would be averaged, but are classes among the model's answers (n,).

    Labels of 0 (wrong), ½ (half right) and 1 (right) can be averaged, also if the model has answers 0 and 1.
    `column` is the name of the column of answers.
    """
    labels = joined.values
    if labels.dtype != object and ((labels == 0) | (labels == 1) | (labels == 0.5)).all():
        return
    names = [name for name in joined.distinct_classes().values() if name not in RIGHT_OR_WRONG]
    answer_values = set(answers.tolist()) if names else set()
    shared_class = next((name for name in names if name in answer_values), None)
    if shared_class is not None:
        raise LabelError(
            f"the labels are classes, like the model's answers in {column!r} (first: {shared_class!r}), "
            "and cannot be averaged",
            action=f"Compare the labels with the answers: predicted=True (--predicted {column}).",
        )
