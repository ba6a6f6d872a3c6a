"""Metrics of a classifier: accuracy, precision, recall and their relatives from the labels of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, IntArray, Record
from stratal.errors import InputError, LabelError, near_names
from stratal.estimation.classes import class_text, refuse_unlike
from stratal.estimation.columns import class_column
from stratal.estimation.confusion import Confusion
from stratal.estimation.estimand import LabelledInfluence
from stratal.estimation.estimate import Estimate
from stratal.estimation.known_answers import possible_answers
from stratal.estimation.metric_functions import Shares, is_f_measure, metric_function
from stratal.estimation.respondents import Respondents
from stratal.intervals.limits import Binomial
from stratal.population.expressions import ByLevel, Expression
from stratal.sampling.sample import Sample


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

    def metric(self, sample: Sample, name: str, which: int | str | None, target: str) -> Estimate:
        """Return a metric, with what the user should know of it; `name`, `which` as in `Confusion.metric`."""
        found = self.frame.complete(self.confusion.metric(name, which, target), sample)
        every = self.confusion.n_classes == len(self.levels)
        if name in _SHARES and every and which in ("macro", "micro"):
            return self._of_all(found, len(self.levels))
        if not isinstance(which, int):
            return found
        level = self.levels[which]
        counts = sample.totals.get(self.column or "", {})
        if name == "predicted_prevalence" and counts and self.frame.share == 1.0:
            return self._counted(found, counts.get(level, 0), sum(counts.values()), target)
        unseen = self.confusion.unseen_misses(which) if name in _COUNTS_MISSES or is_f_measure(name) else None
        return found if unseen is None else replace(found, remarks=(*found.remarks, unseen.note(level)))

    @staticmethod
    def _counted(found: Estimate, count: int, size: int, target: str) -> Estimate:
        """Return the predicted prevalence of the whole population, which is counted and not estimated."""
        share, drawn = count / size, target == "superpopulation"
        limits = Binomial(value=share, bounds=(0.0, 1.0), trials=float(size) if drawn else np.inf)
        note = f"counted over the answers of all {size:,} units: no label is needed for it"
        return replace(
            found,
            value=share,
            standard_error=float(np.sqrt(share * (1.0 - share) / size)) if drawn else 0.0,
            evidence=replace(found.evidence, value=share, own=limits),
            remarks=(note,),
        )

    @staticmethod
    def _of_all(found: Estimate, count: int) -> Estimate:
        """Return the mean of shares that add up to 1."""
        limits = Binomial(value=1.0 / count, bounds=(0.0, 1.0), trials=np.inf)
        note = f"1/{count} by definition, as the shares of all {count} classes add up to 1"
        return replace(
            found,
            value=limits.value,
            standard_error=0.0,
            evidence=replace(found.evidence, value=limits.value, own=limits),
            remarks=(note,),
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
    """Return the classes of the labelled units.

    Parameters
    ----------
    sample : Sample
    y_true : labels
        Text or whole numbers. Several answers of one unit give their majority, a tie none.
    y_pred : labels, or name of a group column, optional
        The model's answers, needed where there is a true class; the sample's own column unless given.
    classes : sequence, optional
        Classes that must exist; all that occur unless given.
    needless : Expression, optional
        The units that the metric does not look at; see `Respondents.of`.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=2).draw(stratal.Population.from_arrays(ids=["a", "b"]), seed=7)
    >>> answered_classes(sample, ["cat", "dog"], ["cat", "cat"]).levels
    ['cat', 'dog']
    """
    read = read_classes(sample, y_true, y_pred, classes)
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
class ReadClasses:
    """The classes, those known of the population, and the labelled units' truth and answer."""

    levels: list[str]
    known: list[str]
    codes: tuple[IntArray, IntArray]
    labelled: BoolArray


def read_classes(sample: Sample, y_true: Any, y_pred: Any, classes: Sequence[Any] | None) -> ReadClasses:
    """Return the classes of labels and answers, as numbers."""
    true, predicted, labelled = _both(sample, y_true, y_pred)
    named = y_pred is None or isinstance(y_pred, str)
    known = list(sample.totals.get((y_pred if named else None) or sample.predicted or "", {}))
    if not named and not {*true.tolist(), *predicted.tolist()} <= set(known):
        known = []  # classes of another task than the sample's own answers
    levels, codes = _codes(true, predicted, known, classes)
    return ReadClasses(levels, known, codes, labelled)


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


_SHARES = ("prevalence", "predicted_prevalence")
"""Metrics of a class that are shares of all units: over all classes they add up to 1."""

_COUNTS_MISSES = ("recall", "jaccard")
"""Metrics of a class that missed units of it make smaller, and F measures."""


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
