"""Columns of the drawn units, in the order of `sample.ids`: kept ones by name, others joined by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.designs.asked import require_sample
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, near_names
from stratal.labels.annotators import combine_answers
from stratal.labels.labels import Joined, Labels, join, shape_of
from stratal.labels.numbers import averaged
from stratal.labels.vocabulary import VOCABULARIES

_RIGHT_OR_WRONG = {"0", "1", "0.5", "True", "False", "true", "false"}
"""Labels that are outcomes themselves, whatever the model's answers are called."""

_MOST_FRACTIONS = 10
"""More different answers than this with digits behind the point are measurements, and no classes."""


_ENOUGH = 10
"""So many labels that are all no answer of the model are no accident."""


def shares_equal(sample: Sample, joined: Joined, predicted: bool | str) -> FloatArray:
    """Return for each labelled unit (m,) whether its label is the model's answer; a share, of several labels.

    Raises
    ------
    LabelError
        For labels that the model can never give (another spelling, right or wrong instead of classes), and
        for measurements, which are hardly ever equal.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5], groups={"answer": ["cat", "dog"]})
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> from stratal.labels.labels import join
    >>> float(shares_equal(sample, join(sample, {0: "cat", 1: "cat"}), "answer").sum())
    1.0
    """
    answers = answers_of(sample, predicted)
    given = [entries_of(value) for value in joined.values[joined.labelled].tolist()]
    labels = [class_text(entry) for entries in given for entry in entries]
    refuse_unlike(labels, answers.tolist())
    pairs = zip(given, answers[joined.labelled].tolist(), strict=True)
    return np.array([np.mean([class_text(entry) == answer for entry in own]) for own, answer in pairs])


def entries_of(value: Any) -> tuple[Any, ...]:
    """Return the answers of one unit: several annotators' are a tuple.

    Examples
    --------
    >>> entries_of("cat"), entries_of(("cat", "dog"))
    (('cat',), ('cat', 'dog'))
    """
    return value if isinstance(value, tuple) else (value,)


def refuse_averaged_classes(sample: Sample, joined: Joined) -> None:
    """Refuse to average labels that are the names of the model's own answers.

    Labels of 0, ½ and 1 are outcomes, unless the model answers nothing else: then they are still averaged.

    Raises
    ------
    LabelError
        If the sample carries the model's answers, and labels are among them.

    Examples
    --------
    >>> import stratal
    >>> from stratal.labels.labels import join
    >>> population = stratal.Population.from_arrays(
    ...     proxy=[0.1, 0.5], groups={"digit": ["4", "7"]}, predicted="digit")
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> refuse_averaged_classes(sample, join(sample, {0: "4", 1: "4"}))
    Traceback (most recent call last):
    stratal.errors.LabelError: the labels are classes, as the model's answers in 'digit' are (first: '4')...
    """
    if sample.predicted is None or sample.predicted not in sample.groups:
        return
    answers = set(sample.groups[sample.predicted].tolist()) - _RIGHT_OR_WRONG
    given = [entry for value in joined.values[joined.labelled].tolist() for entry in entries_of(value)]
    classes = [class_text(entry) for entry in given if class_text(entry) in answers]
    if classes:
        raise LabelError(
            f"the labels are classes, as the model's answers in {sample.predicted!r} are (first: "
            f"{classes[0]!r}), and cannot be averaged",
            action=f"Compare them: predicted=True (--predicted {sample.predicted}).",
        )


def refuse_unlike(labels: list[str], answers: list[str]) -> None:
    """Refuse labels that can never equal one of the model's answers, though they look as if they should.

    Raises
    ------
    LabelError
        For measurements, for a label that differs from an answer in case or blanks alone, and if no label is
        ever among the answers, which repeat: free text may never be right.

    Examples
    --------
    >>> refuse_unlike(["Cat", "dog"], ["cat", "dog"])
    Traceback (most recent call last):
    stratal.errors.LabelError: the model never answers 'Cat', but 'cat' (1 such label)...
    """
    known = set(answers)
    fractions = {entry for entry in {*labels, *known} if _is_fraction(entry)}
    if len(fractions) > _MOST_FRACTIONS:
        raise LabelError(
            f"labels and answers are measurements ({len(fractions)} different ones have digits behind the "
            "point), which are hardly ever equal",
            action="Say when an answer is right: label 1 or 0, or the error itself, and leave out "
            "predicted= (--predicted).",
        )
    folded = {_folded(answer): answer for answer in sorted(known)}
    strange = [label for label in labels if label not in known]
    spelt = [label for label in strange if _folded(label) in folded]
    if spelt:
        plural = "s" if len(spelt) > 1 else ""
        raise LabelError(
            f"the model never answers {spelt[0]!r}, but {folded[_folded(spelt[0])]!r} "
            f"({len(spelt)} such label{plural})",
            action="Spell labels as the model's answers are spelt, or they all count as wrong.",
        )
    # Free text may never be right, but then labels are free text too, and as different as answers are.
    repeated = len(known) <= len(answers) / 2 or len(set(labels)) <= len(labels) / 2
    # Words such as A, B and tie say which is better, unless answers are of these words too; letters alone are
    # as often classes.
    judged = any(len(label) > 1 for label in labels) and _of_one_vocabulary(labels)
    judged = judged and not _of_one_vocabulary([*labels, *known])
    if len(strange) == len(labels) and (judged or (repeated and len(labels) >= _ENOUGH)):
        raise LabelError(
            f"no label is ever among the model's answers (first: {labels[0]!r})",
            allowed=", ".join(map(repr, sorted(known)[:5])),
            action="If labels say right or wrong, or which of two models is better, they are outcomes and no "
            "classes: leave out predicted= and the estimand of the two (--predicted, --estimand), and their "
            "mean is the share of right answers, or of wins.",
        )


def _of_one_vocabulary(words: list[str]) -> bool:
    """Return whether all are words of one list of outcomes, such as pass and fail, or A, B and tie."""
    plain = {word.strip().casefold() for word in words}
    return any(plain <= known.keys() for known in VOCABULARIES)


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()


def _is_fraction(text: str) -> bool:
    try:
        return not float(text).is_integer()
    except (ValueError, OverflowError):
        return False


def answer_spread(several: list[tuple[Any, ...]]) -> str:
    """Return the pooled variance of the answers of one unit, in words; nothing where they are no numbers.

    Examples
    --------
    >>> answer_spread([(1, 0), (1, 1)])
    'answers of one unit have variance 0.25'
    """
    try:
        numbers = [np.array(value, dtype=np.float64) for value in several]
    except (TypeError, ValueError):
        return ""
    squares = sum(float(np.sum((value - value.mean()) ** 2)) for value in numbers)
    freedom = sum(len(value) - 1 for value in numbers)
    return f"answers of one unit have variance {squares / freedom:.4g}"


def answers_of(sample: Sample, predicted: bool | str) -> AnyArray:
    """Return the model's answer for each drawn unit (n,), as text.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1], groups={"answer": ["cat"]})
    >>> answers_of(stratal.SimpleRandom(budget=1).draw(population, seed=7), "answer").tolist()
    ['cat']
    """
    name = predicted if isinstance(predicted, str) else sample.predicted
    if name is None or name not in sample.groups:
        raise InputError(
            "this sample does not hold the model's answers",
            given=repr(name),
            allowed=", ".join(map(repr, sample.groups)) or "none was kept",
            action="Draw with predicted= (--predicted COL), so that the column is kept.",
        )
    return np.asarray(sample.groups[name])


def class_text(value: Any) -> str:
    """Return a class label as text: 1, 1.0 and '1' are one class.

    Examples
    --------
    >>> class_text(1.0), class_text("cat")
    ('1', 'cat')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def class_column(sample: Sample, given: Any, what: str) -> AnyArray:
    """Return a class for each drawn unit (n,) as text, None where there is none.

    Several answers of one unit give their majority; where there is a tie, none.

    Parameters
    ----------
    sample : Sample
    given : None, str, array (n,), mapping of id to class, Series, or Labels
        None is the sample's column of the model's answers, a text one of its group columns.
    what : str
        What the column is called in an error.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5], groups={"answer": ["cat", "dog"]})
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> sorted(class_column(sample, "answer", "y_pred").tolist())
    ['cat', 'dog']
    >>> class_column(sample, {0: 1.0, 1: None}, "y_true")[sample.ids == 0].tolist()
    ['1']
    """
    require_sample(sample, "an estimate")
    if given is None:
        return np.array(answers_of(sample, True), dtype=object)
    if isinstance(given, str):
        return np.array(group_column(sample, given), dtype=object)
    _refuse_shapes(sample, given, what)
    joined = join(sample, given)
    pairs = zip(joined.values, joined.labelled, strict=True)
    return np.array([_majority(value) if labelled else None for value, labelled in pairs], dtype=object)


def group_column(sample: Sample, name: str) -> AnyArray:
    """Return a group column of the drawn units (n,).

    Raises
    ------
    InputError
        If the sample has no such column, naming near ones.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1], groups={"language": ["de"]})
    >>> group_column(stratal.SimpleRandom(budget=1).draw(population, seed=7), "language").tolist()
    ['de']
    """
    if name not in sample.groups:
        raise InputError(
            f"this sample has no group column {name!r}",
            allowed=near_names(name, sample.groups) or "none was kept",
            action="Draw with groups= (--groups COL), so that the column is kept.",
        )
    return np.asarray(sample.groups[name])


def with_group(sample: Sample, name: str, values: Any) -> Sample:
    """Return the sample with another group column; units without a value have the empty text.

    Parameters
    ----------
    sample : Sample
    name : str
        What the column is called.
    values : array (n,), mapping of id to class, Series, or Labels

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> sorted(with_group(sample, "answer", {0: "cat", 1: "dog"}).groups["answer"].tolist())
    ['cat', 'dog']
    """
    column = class_column(sample, values, name)
    texts = np.array(["" if value is None else value for value in column], dtype=np.str_)
    return replace(sample, groups={**sample.groups, name: texts})


GIVEN = "answers given with the labels"
"""Name of the group column of answers that came with the labels."""


def split_answers(labels: Any) -> tuple[Any, Any]:
    """Return labels, and the model's answers where both were given: `{"label": …, "predicted": …}`."""
    if isinstance(labels, Mapping) and set(labels) == {"label", "predicted"}:
        return labels["label"], labels["predicted"]
    return labels, None


def number_column(sample: Sample, given: Any, what: str) -> FloatArray:
    """Return a number for each drawn unit (n,), NaN where there is none; several answers are averaged.

    Parameters
    ----------
    sample : Sample
    given : str, array (n,), mapping of id to number, Series, or Labels
        A text is the name of a proxy.
    what : str
        What the column is called in an error.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.25]), seed=7)
    >>> number_column(sample, "proxy", "score").tolist(), number_column(sample, [True], "z").tolist()
    ([0.25], [1.0])
    """
    require_sample(sample, "an estimate")
    if isinstance(given, str):
        if given not in sample.proxy_names:
            raise InputError(f"no such proxy: {given!r}", allowed=near_names(given, sample.proxy_names))
        return np.asarray(sample.proxies[:, sample.proxy_names.index(given)])
    _refuse_shapes(sample, given, what)
    joined = join(sample, given)
    numbers = np.full(sample.size, np.nan)
    numbers[joined.labelled] = averaged(joined.values[joined.labelled], what)
    return numbers


def number_columns(
    sample: Sample,
    variables: Mapping[str, Any],
    nobody: str = "no unit is labelled yet",
    allowed: str = "label",
) -> tuple[FloatArray, BoolArray]:
    """Return the variables (m, q) of the units that have all of them, and which those are (n,).

    Raises
    ------
    LabelError
        Where there is no such unit; `nobody` says so.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.25]), seed=7)
    >>> number_columns(sample, {"score": "proxy", "z": [1]})[0].tolist()
    [[0.25, 1.0]]
    """
    columns = np.column_stack([number_column(sample, given, name) for name, given in variables.items()])
    labelled = np.all(np.isfinite(columns), axis=1)
    if not np.any(labelled):
        raise LabelError(nobody, allowed=f"at least one {allowed}")
    return columns[labelled], labelled


def _refuse_shapes(sample: Sample, given: Any, what: str) -> None:
    if isinstance(given, Joined | Labels | Mapping) or hasattr(given, "index"):
        return
    shape = shape_of(given)
    if shape != (sample.size,):
        raise InputError(
            f"{what} must have one entry per drawn unit, in the order of sample.ids",
            given=f"shape {shape}",
            allowed=f"({sample.size},)",
            action="Give a mapping of id to value instead.",
        )


def _majority(value: Any) -> str | None:
    if not isinstance(value, tuple):
        return class_text(value)
    return combine_answers([class_text(entry) for entry in value])
