"""`classification_metrics`: accuracy, precision, recall and their relatives from the labels of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.errors import InputError, LabelError, names_mistyped, near_names
from stratal.estimation.classes import class_text, refuse_unlike
from stratal.estimation.columns import class_column
from stratal.estimation.confusion import Confusion
from stratal.estimation.estimand import LabelledInfluence
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimate_table import EstimateTable, title_of
from stratal.estimation.evaluation import estimate_mean
from stratal.estimation.known_answers import possible_answers
from stratal.estimation.left_out import CannotTellError
from stratal.estimation.metric_functions import (
    AVERAGES,
    METRICS,
    OVERALL_METRICS,
    Shares,
    is_f_measure,
    metric_function,
)
from stratal.estimation.quantity import Quantity
from stratal.estimation.respondents import Respondents
from stratal.population.expressions import ByLevel, Expression
from stratal.sampling.asked import require_sample
from stratal.sampling.sample import Sample

DEFAULT_METRICS = ("accuracy", "precision", "recall", "f1")


@names_mistyped
def classification_metrics(
    sample: Sample,
    y_true: Any,
    y_pred: Any = None,
    *,
    metrics: Sequence[str] | str = DEFAULT_METRICS,
    classes: Sequence[Any] | None = None,
    average: Sequence[str] | str | None = "macro",
    target: str = "population",
    confidence_level: float = 0.95,
) -> EstimateTable:
    """Estimate classification metrics of the whole population, each with its interval.

    The strata need not be the predicted classes (Stehman 2014). Units without a true class are nonresponse,
    handled within strata.

    Parameters
    ----------
    sample : Sample
    y_true : mapping of id to class, Series indexed by id, array in the order of `sample.ids`, or Labels
        Text or whole numbers. Several answers of one unit give their majority, a tie none.
    y_pred : same, or name of a group column, optional
        The model's answers, needed where there is a true class; the sample's own column if not given.
    metrics : sequence of str
        Of `accuracy`, `balanced_accuracy`, `mcc`, and per class `precision`, `recall`, `f1` (`f2`, `f0.5` for
        other weights of recall), `specificity`,
        `negative_predictive_value`, `jaccard`, `prevalence`, `predicted_prevalence`.
    classes : sequence, optional
        The classes to report; if not given all that occur in the sample, or in the population where the
        sample knows the model's answers there.
    average : str or sequence of str, optional
        `macro`, `micro`, `weighted` (by true share): rows over the reported classes, if there are several.
    target : {"population", "superpopulation"}
    confidence_level : float

    Returns
    -------
    EstimateTable
        Rows with `metric`, `class`, `estimate`, `standard_error`, `confidence_interval` and `n`, the labels
        in the metric's denominator. What is undefined (no predicted positive in the sample) is None, with a
        note; so is what a sample that was drawn for a precision alone cannot tell. Intervals lie in [0, 1]
        (Matthews' correlation: [−1, 1]) and have width unless every unit is labelled.

    Raises
    ------
    InputError
        For an unknown metric or average.
    LabelError
        If no unit has a true class, or one of them has no prediction.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> sample = stratal.SimpleRandom(budget=5).draw(population, seed=7)
    >>> table = stratal.classification_metrics(sample, [1, 1, 0, 1, 0], [1, 1, 0, 0, 1], metrics="recall")
    >>> [(row["class"], round(row["estimate"], 3), row["n"]) for row in table]
    [('0', 0.5, 2), ('1', 0.667, 3), ('macro', 0.583, 5)]
    """
    require_sample(sample, "classification_metrics")
    wanted = _names(metrics, METRICS, "metric")
    averages = _names(average, AVERAGES, "average")
    try:
        answered = answered_classes(sample, y_true, y_pred, classes)
    except CannotTellError as refused:
        what: dict[str, Any] = {"target": target, "confidence_level": confidence_level}
        return _left_open(refused, sample, y_true, y_pred, wanted, classes, averages, **what)
    levels, whole, known = answered.levels, answered.confusion, answered.known
    reported = _reported(levels, classes)
    restricted = whole if len(set(reported)) == whole.n_classes else whole.restricted(reported)
    rows: list[dict[str, Any]] = []
    notes = list(answered.frame.notes)
    for name in wanted:
        if name == "accuracy":
            rows.append(_accuracy_row(answered.accuracy(sample, target), confidence_level))
            continue
        cells: list[tuple[str | None, Confusion, int | str | None]] = []
        if name in OVERALL_METRICS:
            cells.append((None, whole, None))
            if name == "balanced_accuracy" and classes is None and not known:
                notes.append(_ONLY_SEEN.format(len(levels)))
        else:
            cells.extend((levels[k], whole, k) for k in reported)
            cells.extend((kind, restricted, kind) for kind in averages if len(reported) > 1)
        for label, confusion, which in cells:
            if confusion is whole:
                quantity = answered.metric(sample, name, which, target)
            else:
                quantity = confusion.metric(name, which, target)
            rows.append({"metric": name, "class": label, **quantity.row(confidence_level)})
            called = name if label is None else f"{name} of {label}"
            notes.extend(f"{called}: {note}" for note in quantity.notes)
    return EstimateTable(
        kind="metrics",
        title=title_of(sample, len(whole.true), target),
        rows=tuple(rows),
        confidence_level=confidence_level,
        notes=tuple(dict.fromkeys(notes)),
    )


def _left_open(
    refused: CannotTellError,
    sample: Sample,
    y_true: Any,
    y_pred: Any,
    metrics: list[str],
    classes: Sequence[Any] | None,
    averages: list[str],
    *,
    target: str,
    confidence_level: float,
) -> EstimateTable:
    """Return the table of a sample that left units without labels: what it was drawn for is known there.

    Precision and negative predictive value are each of the units answered with one class, or with another, so
    that a sample may tell some of them and nothing else. Raises where it tells none.
    """
    column = (y_pred or sample.predicted) if y_pred is None or isinstance(y_pred, str) else None
    read = _read(sample, y_true, y_pred, classes)
    reported = _reported(read.levels, classes)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    labels = 0
    for name in metrics:
        whole = name == "accuracy" or name in OVERALL_METRICS
        several = averages if len(reported) > 1 else []
        cells: list[int | str | None] = [None] if whole else [*reported, *several]
        for which in cells:
            level = read.levels[which] if isinstance(which, int) else which
            bounds = (-1.0 if name == "mcc" else 0.0, 1.0)
            quantity = Quantity.undefined(0, bounds)
            needless = needless_units(name, level, column) if isinstance(which, int) else None
            if needless is not None:
                with suppress(CannotTellError):
                    answered = answered_classes(sample, y_true, y_pred, classes, needless=needless)
                    quantity = answered.metric(sample, name, which, target)
                    own = (f"{name} of {level}: {note}" for note in quantity.notes)
                    notes.extend((*answered.frame.notes, *own))
                    labels = max(labels, len(answered.confusion.true))
            rows.append({"metric": name, "class": level, **quantity.row(confidence_level)})
    if not labels:
        raise refused
    without = dict.fromkeys(row["metric"] for row in rows if row["estimate"] is None)
    if without:
        notes.append(f"not all of {', '.join(without)} can be told by this sample: {refused.reason}")
    return EstimateTable(
        kind="metrics",
        title=title_of(sample, labels, target),
        rows=tuple(rows),
        confidence_level=confidence_level,
        notes=tuple(dict.fromkeys(notes)),
    )


def needless_units(metric: str, level: str | None, column: str | None) -> Expression | None:
    """Return the formula that is 1 for units that a metric of a class does not look at; None where it is all.

    Examples
    --------
    >>> needless_units("recall", "cat", "answer") is None
    True
    >>> needless_units("precision", "cat", "answer").otherwise
    1.0
    """
    if column is None or level is None or metric not in ("precision", "negative_predictive_value"):
        return None
    if metric == "precision":
        return ByLevel(name=column, levels=(level,), values=(0.0,), otherwise=1.0)
    return ByLevel(name=column, levels=(level,), values=(1.0,))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnsweredClasses(Record):
    """True and predicted classes of the labelled units, as numbers.

    Parameters
    ----------
    levels : tuple of str (K,)
        The classes in their order.
    known : tuple of str
        Those that the population's answers are known to have.
    confusion : Confusion
    frame : Respondents
    labelled : bool (n,)
    column : str, optional
        The group column of the answers, where they are one.
    """

    levels: list[str]
    known: list[str]
    confusion: Confusion
    frame: Respondents
    labelled: BoolArray
    column: str | None = None

    def accuracy(self, sample: Sample, target: str) -> Estimate:
        """Return the share of right answers, as `estimate` gives it without a proxy."""
        correct = (self.confusion.true == self.confusion.predicted).astype(np.float64)
        return _mean(sample, self.frame, correct, target)

    def metric(self, sample: Sample, name: str, which: int | str | None, target: str) -> Quantity:
        """Return a metric, with what the user should know of it.

        Parameters
        ----------
        sample : Sample
        name, which, target
            As in `Confusion.metric`.
        """
        found = self.confusion.metric(name, which, target)
        if name in _SHARES and which in ("macro", "micro"):
            return self._of_all(found, self.confusion.n_classes)
        if not isinstance(which, int):
            return found
        level = self.levels[which]
        counts = sample.totals.get(self.column or "", {})
        if name == "predicted_prevalence" and counts and self.frame.share == 1.0:
            return self._counted(found, counts.get(level, 0), sum(counts.values()), target)
        unseen = self.confusion.unseen_misses(which) if name in _COUNTS_MISSES or is_f_measure(name) else None
        return found if unseen is None else replace(found, notes=(*found.notes, unseen.note(level)))

    @staticmethod
    def _counted(found: Quantity, count: int, size: int, target: str) -> Quantity:
        """Return the share of answers that are a class, counted over the whole population."""
        share = count / size
        drawn = target == "superpopulation"
        return replace(
            found,
            value=share,
            standard_error=float(np.sqrt(share * (1.0 - share) / size)) if drawn else 0.0,
            trials=float(size) if drawn else np.inf,
            parts=None,
            notes=(f"counted over the answers of all {size:,} units: no label is needed for it",),
        )

    @staticmethod
    def _of_all(found: Quantity, count: int) -> Quantity:
        """Return the mean of shares that add up to 1."""
        return replace(
            found,
            value=1.0 / count,
            standard_error=0.0,
            trials=np.inf,
            trials_freedom=np.inf,
            parts=None,
            notes=(f"1/{count} by definition, as the shares of all {count} classes add up to 1",),
        )

    def influence(self, name: str, which: int | str | None) -> LabelledInfluence:
        """Return the influence of the labelled units on a metric, at the shares that the labels estimate."""
        confusion = self.confusion
        shares = Shares.of(
            confusion.true, confusion.predicted, confusion.weighting.weights, confusion.n_classes
        )
        value, slopes, _ = metric_function(name, which, confusion.n_classes)(shares)
        u = slopes.along(confusion.true, confusion.predicted) if np.isfinite(value) else np.zeros(0)
        return LabelledInfluence(u=u, labelled=self.labelled)


def answered_classes(
    sample: Sample,
    y_true: Any,
    y_pred: Any,
    classes: Sequence[Any] | None = None,
    needless: Expression | None = None,
) -> AnsweredClasses:
    """Return the classes of the labelled units; see `classification_metrics`.

    Parameters
    ----------
    sample, y_true, y_pred, classes
        As there.
    needless : Expression, optional
        The units that the metric does not look at; see `Respondents.of`.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=2).draw(stratal.Population.from_arrays(ids=["a", "b"]), seed=7)
    >>> answered_classes(sample, ["cat", "dog"], ["cat", "cat"]).levels
    ['cat', 'dog']
    """
    read = _read(sample, y_true, y_pred, classes)
    known, levels, labelled = read.known, read.levels, read.labelled
    true_codes, predicted_codes = read.codes
    frame = Respondents.of(sample, labelled, needless)
    column = (y_pred or sample.predicted) if y_pred is None or isinstance(y_pred, str) else None
    possible = possible_answers(sample, frame, column, levels, predicted_codes)
    if possible is not None and known:
        # No stratum holds what no unit is answered: of two answers, not the one is the other.
        possible &= np.array([level in known for level in levels] + [False])
    whole = Confusion(
        true=true_codes,
        predicted=predicted_codes,
        n_classes=len(levels),
        weighting=frame.weighting,
        possible=possible,
    )
    return AnsweredClasses(
        levels=levels, known=known, confusion=whole, frame=frame, labelled=labelled, column=column
    )


@dataclass(frozen=True, slots=True)
class _Read:
    levels: list[str]
    known: list[str]
    codes: tuple[IntArray, IntArray]
    labelled: BoolArray


def _read(sample: Sample, y_true: Any, y_pred: Any, classes: Sequence[Any] | None) -> _Read:
    """Return the classes, those known of the population, and the labelled units' truth and answer."""
    true, predicted, labelled = _both(sample, y_true, y_pred)
    named = y_pred is None or isinstance(y_pred, str)
    known = list(sample.totals.get((y_pred if named else None) or sample.predicted or "", {}))
    if not named and not {*true.tolist(), *predicted.tolist()} <= set(known):
        known = []  # classes of another task than the sample's own answers
    levels, codes = _codes(true, predicted, known, classes)
    return _Read(levels, known, codes, labelled)


_SHARES = ("prevalence", "predicted_prevalence")
"""Metrics of a class that are shares of all units: over all classes they add up to 1."""

_COUNTS_MISSES = ("recall", "jaccard")
"""Metrics of a class that missed units of it make smaller, and F measures."""

_ONLY_SEEN = (
    "balanced_accuracy: the mean over the {} classes that the labels show; name all of them (classes=, "
    "--class), for a class without a label makes it unknown"
)


def _names(given: Sequence[str] | str | None, allowed: tuple[str, ...], what: str) -> list[str]:
    if given is None:
        return []
    names = [part.strip() for part in given.split(",")] if isinstance(given, str) else list(given)
    for name in names:
        if name not in allowed and not (what == "metric" and is_f_measure(name)):
            raise InputError(f"no such {what}", given=repr(name), allowed=near_names(str(name), allowed))
    return list(dict.fromkeys(names))


def _both(sample: Sample, y_true: Any, y_pred: Any) -> tuple[AnyArray, AnyArray, BoolArray]:
    """Return true and predicted classes (m,) of the units that have a true one, and which they are (n,)."""
    true = class_column(sample, y_true, "y_true")
    predicted = class_column(sample, y_pred, "y_pred")
    labelled = np.array([entry is not None for entry in true], dtype=bool)
    if not np.any(labelled):
        raise LabelError(
            "no unit is labelled yet",
            allowed="at least one label",
            action="Fill in the label column, then estimate again.",
        )
    lacking = labelled & np.array([entry is None for entry in predicted], dtype=bool)
    if np.any(lacking):
        raise LabelError(
            f"y_pred: {int(lacking.sum())} labelled units have no prediction "
            f"(first: {str(sample.ids[np.argmax(lacking)])!r})",
            allowed="a predicted class for every labelled unit",
        )
    refuse_unlike(true[labelled].tolist(), [entry for entry in predicted.tolist() if entry is not None])
    return true[labelled], predicted[labelled], labelled


def _codes(
    true: AnyArray, predicted: AnyArray, known: list[str], classes: Sequence[Any] | None
) -> tuple[list[str], tuple[IntArray, IntArray]]:
    """Return the classes as sorted text, and the class numbers of the units."""
    found = {*true.tolist(), *predicted.tolist(), *known}
    asked = [] if classes is None else [_existing(class_text(entry), found) for entry in classes]
    levels = _sorted({*found, *asked})
    number = {level: k for k, level in enumerate(levels)}
    codes = [np.array([number[entry] for entry in column.tolist()], np.int64) for column in (true, predicted)]
    return levels, (codes[0], codes[1])


def _existing(name: str, found: set[str]) -> str:
    """Return a class that is asked for, refusing a slip of the pen; a rare one need not have been drawn."""
    near = near_names(name, sorted(found))
    if name not in found and len(near.split(", ")) < len(found):
        raise InputError(f"no drawn unit has the class {name!r}", allowed=near)
    return name


def _sorted(levels: set[str]) -> list[str]:
    """Return numbers in their order, before text in its own."""

    def key(level: str) -> tuple[bool, float, str]:
        try:
            return False, float(level), level
        except ValueError:
            return True, 0.0, level

    return sorted(levels, key=key)


def _reported(levels: list[str], classes: Sequence[Any] | None) -> list[int]:
    if classes is None:
        return list(range(len(levels)))
    if isinstance(classes, str):
        raise InputError("classes must be a list", given=repr(classes), action=f"Write [{classes!r}].")
    return [levels.index(class_text(entry)) for entry in classes]


def _mean(sample: Sample, frame: Respondents, z: FloatArray, target: str) -> Estimate:
    """Return the plain mean of a binary variable, as `estimate` gives it without a proxy."""
    return estimate_mean(
        z,
        np.zeros((len(z), 0)),
        frame.weighting,
        None,
        stratum=frame.stratum,
        target=target,
        outcome="binary",
        design=sample.design.kind,
    )


def _accuracy_row(result: Estimate, confidence_level: float) -> dict[str, Any]:
    interval = result.confidence_interval(confidence_level)
    return {
        "metric": "accuracy",
        "class": None,
        "estimate": result.value,
        "standard_error": result.standard_error,
        "confidence_interval": [interval.low, interval.high],
        "n": result.n,
    }
