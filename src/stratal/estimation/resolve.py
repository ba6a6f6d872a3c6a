"""The resolver: columns of the drawn units, and what their labels mean, in the order of `sample.ids`.

No other module decodes a label or compares an answer.
"""

from __future__ import annotations

import copy
import reprlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, Record
from stratal.designs.sample import Design, Sample
from stratal.errors import InputError, LabelError, check_choice, suggest_names
from stratal.labels.accepted_types import as_labels
from stratal.labels.annotators import COMBINATIONS
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.labels.label_values import class_text, mapping_of_codes, refuse_incomparable_classes
from stratal.labels.missing_codes import AnyLabels, refuse_missing_codes
from stratal.question.decoding import RIGHT_OR_WRONG, comparison_note, is_compared
from stratal.question.question import NOT_COMPARED
from stratal.question.scores import Predictions, Score, declared_scores
from stratal.question.tags import JSON_LISTS, is_set, read_sets, tags_of
from stratal.question.tags import tags_of_sets as tag_vocabulary
from stratal.report.notes import NO_MATCH, Note


def shares_equal(sample: Sample, joined: JoinedLabels, models: Sequence[str]) -> FloatArray:
    """Return whether each labelled unit's label is each model's answer (m, k); of several labels a share.

    Raises
    ------
    LabelError
        If the answers of a model match almost no label.
    """
    answers = {model: answers_of(sample, model) for model in models}
    classes = joined.classes({answer for column in answers.values() for answer in column.tolist()})
    answers_of_labelled = {model: column[joined.unit] for model, column in answers.items()}
    refuse_mismatched_models(classes, answers_of_labelled, answers)
    same = [known_classes(joined, answers[model]) == answers_of_labelled[model] for model in models]
    return np.column_stack([joined.by_unit(np.asarray(each, dtype=np.float64)) for each in same])


def known_classes(joined: JoinedLabels, answers: AnyArray, others: tuple[str, ...] = ()) -> AnyArray:
    """Return the classes of the labels (r,), refusing those that are never one of the answers (n,).

    `others` are further classes that labels may name.
    """
    vocabulary = [*answers.tolist(), *others]
    classes = joined.classes(vocabulary)
    if vocabulary and all(map(is_set, (*set(classes.tolist()), *set(vocabulary)))):
        labels, answered = (
            [tag for text in texts for tag in tags_of(text)] for texts in (classes, vocabulary)
        )
        refuse_incomparable_classes(labels, answered)
    elif vocabulary:
        refuse_incomparable_classes(classes.tolist(), vocabulary)
    return classes


def with_undrawn_classes(sample: Sample, answers: AnyArray, column: str | None) -> AnyArray:
    """Return answers (n,), then the classes that only units outside the sample may have.

    These are declared, or counted among all answers of the population. If no drawn answer is right, the
    drawn answers alone do not show which classes labels may name.

    Parameters
    ----------
    sample : Sample
    answers : (n,)
        Answers of drawn units.
    column : str, optional
        The column of the answers; None is the sample's own.
    """
    counts = sample.totals.get(column or sample.question.answer or "", {})
    # Classes that were drawn are not repeated: repeated answers are taken as classes rather than free text.
    drawn_classes = set(answers.tolist())
    classes = dict.fromkeys((*sample.question.outcome.classes, *counts))
    undrawn_classes = [name for name in classes if name not in drawn_classes]
    return np.array([*answers.tolist(), *undrawn_classes], dtype=object)


# Minimum number of labels: a model may by chance be wrong on all of fewer.
_ENOUGH_TO_MATCH = 10

# Largest share of labelled units on which a model's answers match "almost no" label.
_ALMOST_NONE = 0.02

# A model that answers at least this share of its units in the labels' vocabulary is wrong, and not spelt in
# another way: a classifier that is never right still answers with the classes.
_IN_VOCABULARY = 0.1

# Number of mismatches that an error lists for each model: enough to see the difference of spelling.
_MISMATCHES = 3

MATCH_REMEDIES = (
    "Give a column of right (1) and wrong (0) for each model instead of one column of classes, "
    "or bring answers and labels into one form (case, punctuation, the bare value) in both files"
)


def mismatches_by_model(
    labels: AnyArray, answers: Mapping[str, AnyArray], vocabulary: Mapping[str, AnyArray]
) -> dict[str, str]:
    """Return, for each model whose answers match almost no label, its most frequent mismatches as text.

    A classifier may be wrong on every labelled unit, particularly where only units are labelled on which
    models disagree. Therefore a model passes if its answers are of the labels' vocabulary, or of that of a
    model that passes.

    Parameters
    ----------
    labels : (r,)
        Classes, as text.
    answers : mapping of model to (r,)
        What each model answered to the unit of each label.
    vocabulary : mapping of model to (N,)
        All answers of each model.
    """
    if len(labels) < _ENOUGH_TO_MATCH:
        return {}
    mismatched = [
        name for name, model_answers in answers.items() if np.mean(model_answers == labels) <= _ALMOST_NONE
    ]
    # Return early, because reading the answers to all units takes time.
    if not mismatched:
        return {}
    if all(map(is_set, set(labels.tolist()))):
        # Sets seldom repeat, and tags do.
        vocabulary = {name: _tags_among(column) for name, column in vocabulary.items()}
        known_values = {*_tags_among(labels).tolist(), _NO_TAGS}
    else:
        known_values = set(labels.tolist())
    for name in answers:
        known_values |= set() if name in mismatched else set(vocabulary[name].tolist())
    # Each model that passes adds its answers to the vocabulary, by which others may pass.
    passing = [""]
    while passing:
        passing = [
            name
            for name in mismatched
            if np.mean([answer in known_values for answer in vocabulary[name].tolist()]) >= _IN_VOCABULARY
        ]
        mismatched = [name for name in mismatched if name not in passing]
        for name in passing:
            known_values |= set(vocabulary[name].tolist())
    return {name: _most_frequent_mismatches(labels, answers[name]) for name in mismatched}


# Stands for the set without tags among tags.
_NO_TAGS = "[]"


def _tags_among(texts: AnyArray) -> AnyArray:
    """Return the tags of sets (N,), and texts that are not sets as they are."""
    tags = [
        tag
        for text in texts.tolist()
        for tag in ((tags_of(text) or (_NO_TAGS,)) if is_set(text) else (text,))
    ]
    return np.array(tags, dtype=object)


def _most_frequent_mismatches(labels: AnyArray, answers: AnyArray) -> str:
    """Return the most frequent pairs of an answer (r,) and another label (r,), with their counts."""
    pairs = zip(answers.tolist(), labels.tolist(), strict=True)
    counts = Counter(pair for pair in pairs if pair[0] != pair[1])
    shown = (
        f"{reprlib.repr(answer)} → {reprlib.repr(label)} ({count})"
        for (answer, label), count in counts.most_common(_MISMATCHES)
    )
    return ", ".join(shown)


def refuse_mismatched_models(
    labels: AnyArray, answers: Mapping[str, AnyArray], vocabulary: Mapping[str, AnyArray]
) -> None:
    """Refuse to compare models if the answers of some match almost no label; see `mismatches_by_model`."""
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
    """Return what the user gave instead of a sample: a table whose labelled rows are taken as one."""
    if sample.declared_random:
        return "the table"
    return "this sample"


def answers_of(sample: Sample, predicted: bool | str) -> AnyArray:
    """Return the model's answer for each drawn unit (n,), as text."""
    name = predicted if isinstance(predicted, str) else sample.question.answer
    what = f"{source_noun(sample)} does not contain the model's answers"
    return group_column(sample, name, what, "predicted")


def class_column(sample: Sample, column: object, what: str, answers: AnyArray | None = None) -> AnyArray:
    """Return a class for each drawn unit (n,) as text, None where there is none.

    Several answers of one unit give their majority; where there is a tie, none.

    Parameters
    ----------
    sample : Sample
    column : None, str, array (n,), mapping of id to class, Series, or Labels
        None is the sample's column of the model's answers, a text one of its group columns.
    what : str
        What the column is called in an error.
    answers : (n,), optional
        Where these are labels, what the model answered: labels that can never be one of these are refused.
    """
    if column is None:
        return np.array(answers_of(sample, True), dtype=object)
    if isinstance(column, str):
        return np.array(group_column(sample, column), dtype=object)
    joined = join_labels(sample, column, what, answers=what != "by")
    if answers is None:
        return joined.majority(joined.classes())
    return joined.majority(known_classes(joined, answers, sample.question.outcome.classes))


def group_column(
    sample: Sample, name: str | None, what: str | None = None, option: str = "groups"
) -> AnyArray:
    """Return a group column of the drawn units (n,); `what` and `option` are for the error.

    Raises
    ------
    InputError
        If the sample has no such column, naming near ones.
    """
    if name is None or name not in sample.groups:
        column = name or "COL"
        if sample.declared_random:
            action = f"Name the column in the table: {option}= (--{option} COL)."
        else:
            action = _redraw_action(sample, option, column)
        raise InputError(
            what or f"{source_noun(sample)} has no group column {name!r}",
            allowed=suggest_names(name or "", sample.groups) or None,
            action=action,
        )
    return np.asarray(sample.groups[name])


def _redraw_action(sample: Sample, option: str, column: str) -> str:
    """Return how to get a sample that keeps a column, and whether existing labels remain valid."""
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
    """Return the group of each drawn unit (n,) and the groups' names: a column's, or those that are given."""
    groups = class_column(sample, group, "by")
    names = sorted({str(entry) for entry in groups if entry is not None})
    if not names:
        raise LabelError("no drawn unit has a group", allowed="a group for each labelled unit")
    return groups, names


def with_group(sample: Sample, name: str, values: object) -> Sample:
    """Return the sample with another group column; units without a value have the empty text.

    Parameters
    ----------
    sample : Sample
    name : str
        What the column is called.
    values : array (n,), mapping of id to class, Series, or Labels
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
    """Refuse a score that is declared as the probability of a class of which there is no sign.

    Classes occur among the model's answers, which a draw compares, or among labels of at least two classes.
    """
    scores = _declared_class_scores(sample)
    if scores:
        classes = _labelled_classes(sample, joined)
    else:
        classes = set()
    for score in scores if classes else ():
        score.refuse_unknown_class(classes, "the labels")


def _declared_class_scores(sample: Sample) -> list[Score]:
    """Return the scores that are declared as the probability of a class which only labels may show."""
    question = sample.question
    if question.answer is not None or question.outcome.holds_sets:
        return []
    return [score for score in question.scores if score.declared and score.of_class is not None]


def _labelled_classes(sample: Sample, joined: JoinedLabels) -> set[str]:
    """Return the classes of labels; none if all labels are of one class."""
    classes = {class_text(label) for label in joined.answers.tolist()} | set(joined.distinct_texts)
    if len(classes) > 1:
        return {*classes, *sample.question.outcome.classes}
    return set()


def with_corrected_scores(sample: Sample, predicts: Predictions | None, labels: object) -> Sample:
    """Return the sample without declarations of unknown classes that `predicts` corrects to an order.

    A class that was misspelt at the draw is known to be wrong only once there are labels.
    """
    names = {name for name, score in declared_scores(predicts, sample.proxy_names).items() if score.is_order}
    scores = [score for score in _declared_class_scores(sample) if score.name in names]
    if scores:
        classes = _labelled_classes(sample, join_labels(sample, labels))
    else:
        classes = set()
    unknown = {score.name for score in scores if classes and score.of_class not in classes}
    if not unknown:
        return sample
    question = sample.question
    corrected = tuple(
        replace(one, declared=one.declared and one.name not in unknown) for one in question.scores
    )
    population = sample.population
    if population is not None:
        population = copy.copy(population)
        population.predicts = {n: text for n, text in population.predicts.items() if n not in unknown}
    return replace(sample, question=replace(question, scores=corrected), population=population)


# Name of the group column of answers that came with the labels.
GIVEN = "answers given with the labels"


def split_answers(labels: object) -> tuple[Any, Any]:
    """Return labels, and the model's answers where both were given: `{"label": …, "predicted": …}`."""
    if isinstance(labels, Mapping) and set(labels) == {"label", "predicted"}:
        return labels["label"], labels["predicted"]
    return labels, None


def with_given_sets(sample: Sample, labels: object) -> Sample:
    """Return the sample whose answers are sets of tags, if every answer that came with the labels is one."""
    answers = split_answers(labels)[1]
    if answers is None or sample.question.outcome.tag_format is not None:
        return sample
    sets = as_labels(answers, sample)
    cells = [tags or value for tags, value in zip(sets.sets or sets.values, sets.values, strict=True)]
    texts, _ = read_sets([str(cell) for cell in cells if cell is not None], None)
    if texts is None:
        return sample
    question = sample.question.with_outcome(tag_format=JSON_LISTS, tags=tag_vocabulary(texts))
    return replace(sample, question=question)


def number_column(sample: Sample, column: object, what: str) -> FloatArray:
    """Return a number for each drawn unit (n,), NaN where there is none; several answers are averaged.

    Parameters
    ----------
    sample : Sample
    column : str, array (n,), mapping of id to number, Series, or Labels
        A text is the name of a proxy, or of another column that the sample holds, of numbers.
    what : str
        What the column is called in an error.
    """
    if isinstance(column, str):
        return _kept_numbers(sample, column, what)
    joined = join_labels(sample, column, what, answers=False)
    numbers = np.full(sample.size, np.nan)
    numbers[joined.labelled] = joined.by_unit(joined.numbers(what))
    return numbers


def _kept_numbers(sample: Sample, name: str, what: str) -> FloatArray:
    """Return a column (n,) that the sample holds as numbers: a proxy, a group column or a shown one."""
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
            f"{source_noun(sample)} has no column {name!r} for the {what}",
            allowed=suggest_names(name, names) or None,
            action=action,
        )
    numbers = np.full(sample.size, np.nan)
    for row, value in enumerate(columns[name].tolist()):
        try:
            if value in (None, ""):
                numbers[row] = np.nan
            else:
                numbers[row] = float(value)
        except ValueError:
            cell = f"{value!r} of id {str(sample.ids[row])!r}"
            action = "Name a column of numbers."
            raise InputError(
                f"column {name!r} contains entries that are not numbers", given=cell, action=action
            ) from None
    return numbers


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
    """Return labels without codes of missing labels among them; the codes raise an error.

    Parameters
    ----------
    sample : Sample
    labels : Labels or JoinedLabels
    column : str
        Name of the column of labels, for the error message.
    outcome : str, optional
        The stated scale of the labels. If it is `binary`, other numbers are refused later, by another error.
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


def none_labelled(what: str = "") -> LabelError:
    """Return the error of labels of no unit."""
    return LabelError(
        f"no unit has a label{what}" if what else "no unit is labelled yet",
        allowed="at least one label",
        action="Fill in the label column, then estimate again.",
    )


def named_columns(sample: Sample, labels: object, names: Sequence[str]) -> tuple[FloatArray, BoolArray]:
    """Return the outcomes (m, q) of these names of the units that have all, and which those are (n,)."""
    if not isinstance(labels, Mapping) or {str(name) for name in labels} != set(names):
        raise InputError("labels must map each outcome to its labels", allowed=", ".join(names))
    return number_columns(sample, {name: labels[name] for name in names})


def number_columns(sample: Sample, variables: Mapping[str, object]) -> tuple[FloatArray, BoolArray]:
    """Return the variables (m, q) of the units that have all of them, and which those are (n,).

    Raises
    ------
    LabelError
        Where there is no such unit.
    """
    columns = np.column_stack([number_column(sample, column, name) for name, column in variables.items()])
    labelled = np.all(np.isfinite(columns), axis=1)
    if not np.any(labelled):
        raise none_labelled(" of all " + ", ".join(variables) if len(variables) > 1 else "")
    return columns[labelled], labelled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelOutcomes(Record):
    """The outcomes that labels give: the numbers that they count as, or whether they are the model's answers.

    Parameters
    ----------
    z : float (m,)
        Of the labelled units; several answers of one unit are averaged, or their majority.
    labelled : bool (n,)
        Which of the drawn units these are.
    bounds : (float, float), optional
        What they cannot leave, where the labels' words tell.
    right_or_wrong : bool
        Whether every single answer is 0 or 1, whatever several of one unit are on average.
    notes : tuple of str
        How several answers of one unit became one.
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
        What the caller declares; see `Question.refine`. Otherwise the sample's question decides, or, if that
        declares nothing, the labels themselves.

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
    """Return the outcomes of the labelled units: what labels count as, or whether the model answers them.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    predicted : bool or str, optional
        See `compared_column`.
    combine : {"mean", "majority"}
        What several answers of one unit become.
    """
    check_choice("combination", combine, COMBINATIONS)
    joined = join_labels(sample, labels)
    if not joined.labelled.any():
        raise none_labelled()
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
        values = known_classes(joined, vocabulary)
        notes += mismatch_notes(values, answers[joined.unit], vocabulary)
    labelled = joined.labelled
    units = joined.unit
    several = 0
    counts = np.zeros(0, np.int64)
    if len(units) > np.count_nonzero(labelled):
        counts = np.bincount(units)
        counts = counts[counts > 0]
        several = int((counts > 1).sum())
    note = f"for {several} {'unit' if several == 1 else 'units'}, the {combine} of several answers is used"
    right_or_wrong = answers is not None or bool(((values == 0) | (values == 1)).all())
    if several and combine == "majority":
        most = joined.majority(values)
        labelled = np.array([value is not None for value in most.tolist()], dtype=bool)
        values = most[labelled]
        units = np.flatnonzero(labelled)
        ties = len(counts) - len(units)
        note += f"; {ties} without a majority count as not labelled" if ties else ""
    z = np.asarray(values if answers is None else values == answers[units], dtype=np.float64)
    if several and combine == "mean":
        if answers is None:
            means = np.repeat(joined.by_unit(z), counts)
            pooled_variance = float(np.sum((z - means) ** 2) / np.sum(counts - 1))
            note += f"; the variance of the answers within a unit is {pooled_variance:.4g}"
        z = joined.by_unit(z)
    return LabelOutcomes(
        z=z,
        labelled=labelled,
        bounds=joined.bounds if answers is None else (0.0, 1.0),
        right_or_wrong=right_or_wrong,
        notes=(*notes, *([note] if several else [])),
    )


def _notes_on_codes(sample: Sample, joined: JoinedLabels) -> list[str]:
    """Return the note that labels, which count as numbers, may be codes of the model's answers.

    Labels of 0 and 1 usually mean wrong and right, unless the model answers with two classes.
    """
    column = sample.question.answer
    if column is None or column not in sample.groups or sample.question.compares is not None:
        return []
    if joined.label_mapping.stands_for_numbers:
        return []
    labels = set(joined.distinct_texts)
    answers = set(with_undrawn_classes(sample, sample.groups[column], column).tolist())
    codes = mapping_of_codes(labels, answers)
    if codes is None or (labels <= RIGHT_OR_WRONG and len(answers) > 2):
        return []
    return [
        f"the labels count as numbers and are not compared with the answers in {column!r}; if they are codes "
        f"of these classes, {codes}; if they are numbers: predicted=False (--predicted none)"
    ]


def _refuse_averaged_classes(predicted: str, answers: AnyArray, joined: JoinedLabels) -> None:
    """Refuse to average labels that are the names of the model's own answers (n,), `predicted` their column.

    Labels of 0, ½ and 1 are outcomes, unless the model answers nothing else: then they are still averaged.
    """
    answers_given = joined.answers
    if (
        answers_given.dtype != object
        and ((answers_given == 0) | (answers_given == 1) | (answers_given == 0.5)).all()
    ):
        return
    names = [name for name in joined.distinct_classes().values() if name not in RIGHT_OR_WRONG]
    answer_values = set(answers.tolist()) if names else set()
    shared_class = next((name for name in names if name in answer_values), None)
    if shared_class is not None:
        raise LabelError(
            f"the labels are classes, like the model's answers in {predicted!r} (first: {shared_class!r}), "
            "and cannot be averaged",
            action=f"Compare the labels with the answers: predicted=True (--predicted {predicted}).",
        )
