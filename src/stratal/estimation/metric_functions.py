"""Classification metrics as functions of weighted shares, with their slopes.

Every metric of a class k is a ratio of two linear forms in four shares: hits (true and predicted k),
predicted k, true k, and everything. Averages over classes and Matthews' correlation follow by the chain rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import InputError, near_names

_FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "precision": ((1, 0, 0, 0), (0, 1, 0, 0)),
    "recall": ((1, 0, 0, 0), (0, 0, 1, 0)),
    "f1": ((2, 0, 0, 0), (0, 1, 1, 0)),
    "specificity": ((1, -1, -1, 1), (0, 0, -1, 1)),
    "negative_predictive_value": ((1, -1, -1, 1), (0, -1, 0, 1)),
    "jaccard": ((1, 0, 0, 0), (-1, 1, 1, 0)),
    "prevalence": ((0, 0, 1, 0), (0, 0, 0, 1)),
    "predicted_prevalence": ((0, 1, 0, 0), (0, 0, 0, 1)),
}
"""Numerator and denominator in (hits, predicted, true, all)."""

CLASS_METRICS = tuple(_FORMS)
OVERALL_METRICS = ("accuracy", "balanced_accuracy", "mcc")
METRICS = (*OVERALL_METRICS, *CLASS_METRICS)
AVERAGES = ("macro", "micro", "weighted")


_DUST = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Weighted shares per class, or slopes with respect to them.

    Parameters
    ----------
    hits, predicted, true : float (K,)
    everything : float

    Examples
    --------
    >>> shares = Shares.of(np.array([0, 1]), np.array([1, 1]), np.array([0.5, 0.5]), 2)
    >>> shares.hits.tolist(), shares.predicted.tolist()
    ([0.0, 0.5], [0.0, 1.0])
    """

    hits: FloatArray
    predicted: FloatArray
    true: FloatArray
    everything: float

    @staticmethod
    def of(true: IntArray, predicted: IntArray, weights: FloatArray, n_classes: int) -> Shares:
        """Return the shares of units (n,) with these weights."""
        hit = true == predicted
        # A class that no average counts may be among the answers alone, or among the truths alone.
        size = max(n_classes, *(int(codes.max(initial=-1)) + 1 for codes in (true, predicted)))
        return Shares(
            hits=np.bincount(true[hit], weights[hit], minlength=size).astype(np.float64),
            predicted=np.bincount(predicted, weights, minlength=size).astype(np.float64),
            true=np.bincount(true, weights, minlength=size).astype(np.float64),
            everything=float(weights.sum()),
        )

    @staticmethod
    def of_class(which: int, form: FloatArray, n_classes: int) -> Shares:
        """Return a linear form of one class's shares."""
        unit = np.zeros(n_classes)
        unit[which] = 1.0
        return Shares(
            hits=form[0] * unit, predicted=form[1] * unit, true=form[2] * unit, everything=float(form[3])
        )

    def along(self, true: IntArray, predicted: IntArray) -> FloatArray:
        """Return the slopes applied to each unit (n,): its linearised variable."""
        hits = np.where(true == predicted, self.hits[true], 0.0)
        return np.asarray(hits + self.true[true] + self.predicted[predicted] + self.everything)

    def forms(self, form: FloatArray) -> FloatArray:
        """Return a linear form of the shares for each class (K,)."""
        parts = form[0] * self.hits + form[1] * self.predicted + form[2] * self.true
        return np.asarray(parts + form[3] * self.everything)


Metric = Callable[[Shares], tuple[float, Shares, str]]
"""A metric's value, its slopes, and what is wrong where it has none."""


@dataclass(frozen=True, slots=True)
class ClassRatio:
    """The ratio of two linear forms in the shares of one class.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> recall = ClassRatio(np.array([1.0, 0, 0, 0]), np.array([0.0, 0, 1, 0]), 1)
    >>> recall(Shares(hits=half / 2, predicted=half, true=half, everything=1.0))[0]
    0.5
    """

    above: FloatArray
    below: FloatArray
    which: int

    def __call__(self, shares: Shares) -> tuple[float, Shares, str]:
        """Return the ratio, its slopes, and what is wrong where there is none."""
        k = self.which
        below = float(shares.forms(self.below)[k])
        if below <= _DUST * shares.everything:
            return np.nan, shares, "no labelled unit counts towards its denominator"
        value = min(max(float(shares.forms(self.above)[k]) / below, 0.0), 1.0)
        slopes = (self.above - value * self.below) / below
        return value, Shares.of_class(k, slopes, len(shares.hits)), ""


@dataclass(frozen=True, slots=True)
class _Averaged:
    above: FloatArray
    below: FloatArray
    average: str
    n_classes: int

    def __call__(self, shares: Shares) -> tuple[float, Shares, str]:
        above, below = shares.forms(self.above), shares.forms(self.below)
        kept = below > _DUST * shares.everything
        kept[self.n_classes :] = False
        missing = self.n_classes - int(kept.sum())
        if missing and (self.average == "macro" or not np.any(kept)):
            return np.nan, shares, f"{missing} of {self.n_classes} classes have no unit in the denominator"
        if self.average == "weighted" and not np.any(shares.true[kept] > 0):
            return np.nan, shares, "the classes with units in the denominator have none in the truth"
        if self.average == "micro":
            total = float(below[kept].sum())
            value = float(above[kept].sum()) / total
            slopes = np.outer(kept, (self.above - value * self.below) / total)
            return value, _from_rows(slopes), ""
        each = np.where(kept, above / np.where(kept, below, 1.0), 0.0)
        part = np.where(kept, 1.0 / kept.sum(), 0.0)
        support = np.zeros(len(each))
        value = float(part @ each)
        if self.average == "weighted":
            part = np.where(kept, shares.true, 0.0)
            part /= part.sum()
            value = float(part @ each)
            support = np.where(kept, each - value, 0.0) / float(shares.true[kept].sum())
        scale = np.where(kept, part / np.where(kept, below, 1.0), 0.0)
        slopes = scale[:, None] * (self.above - each[:, None] * self.below)
        slopes[:, 2] += support
        return min(max(value, 0.0), 1.0), _from_rows(slopes), ""


def _from_rows(slopes: FloatArray) -> Shares:
    """Return slopes (K, 4) in (hits, predicted, true, all), one row per class, as shares."""
    return Shares(
        hits=slopes[:, 0], predicted=slopes[:, 1], true=slopes[:, 2], everything=float(slopes[:, 3].sum())
    )


def _accuracy(shares: Shares) -> tuple[float, Shares, str]:
    nothing = np.zeros(len(shares.hits))
    value = min(float(shares.hits.sum()) / shares.everything, 1.0)
    slopes = Shares(
        hits=nothing + 1.0 / shares.everything,
        predicted=nothing,
        true=nothing,
        everything=-value / shares.everything,
    )
    return value, slopes, ""


def _matthews(shares: Shares) -> tuple[float, Shares, str]:
    """Return Matthews' correlation of K classes (Gorodkin 2004)."""
    total = shares.everything
    above = float(shares.hits.sum()) * total - float(shares.predicted @ shares.true)
    of_predicted = total**2 - float(shares.predicted @ shares.predicted)
    of_true = total**2 - float(shares.true @ shares.true)
    if min(of_predicted, of_true) <= _DUST * total**2:
        return np.nan, shares, "only one class was seen"
    below = np.sqrt(of_predicted * of_true)
    value = above / below
    slopes = Shares(
        hits=np.full(len(shares.hits), total / below),
        predicted=-shares.true / below + value * shares.predicted / of_predicted,
        true=-shares.predicted / below + value * shares.true / of_true,
        everything=float(shares.hits.sum()) / below - value * total * (1 / of_predicted + 1 / of_true),
    )
    return min(max(value, -1.0), 1.0), slopes, ""


def metric_function(name: str, which: int | str | None, n_classes: int) -> Metric:
    """Return a metric as a function of the shares of K classes: its value, its slopes, and what is wrong.

    Parameters
    ----------
    name : str
        One of `METRICS`, or F_β as `f2` or `f0.5`.
    which : int or str, optional
        A class number, or one of `AVERAGES`.
    n_classes : int
        K.

    Raises
    ------
    InputError
        For an unknown metric or average.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> perfect = Shares(hits=half, predicted=half, true=half, everything=1.0)
    >>> metric_function("f2", 1, 2)(perfect)[0]
    1.0
    """
    if name == "accuracy":
        return _accuracy
    if name == "mcc":
        return _matthews
    if name == "balanced_accuracy":
        name, which = "recall", "macro"
    above, below = (np.array(form, dtype=np.float64) for form in form_of(name))
    if isinstance(which, str):
        if which not in AVERAGES:
            raise InputError("no such average", given=repr(which), allowed=", ".join(AVERAGES))
        return _Averaged(above, below, which, n_classes)
    if which is None:
        raise InputError(
            f"metric '{name}' needs a class or an average",
            allowed=f"the number of a class, or {', '.join(AVERAGES)}",
        )
    return ClassRatio(above, below, which)


def of_two_shares(function: Metric, n_classes: int) -> Callable[..., FloatArray] | None:
    """Return a metric as a function of the shares (…,) of hits, of misses, and answered with a class.

    That is what every metric of one class is, and of two classes any metric, of either one's shares alike.
    None of others.

    Parameters
    ----------
    function : Metric
        As `metric_function` returns it.
    n_classes : int

    Examples
    --------
    >>> recall = of_two_shares(metric_function("recall", 1, 5), 5)
    >>> recall(np.array([0.1, 0.2]), np.array([0.1, 0.0]), 0.3)
    array([0.5, 1. ])
    >>> round(float(of_two_shares(metric_function("mcc", None, 2), 2)(0.1, 0.1, 0.3)), 3)
    0.218
    """
    if isinstance(function, ClassRatio):
        return lambda hits, misses, answered: _ratio(function, hits, answered, hits + misses)
    if n_classes != 2:
        return None
    if isinstance(function, _Averaged):
        return lambda hits, misses, answered: _averaged_ratio(function, hits, misses, answered)
    return _correlation if function is _matthews else None


def _ratio(form: ClassRatio | _Averaged, hits: Any, answered: Any, true: Any) -> FloatArray:
    shares = np.broadcast_arrays(hits, answered, true, 1.0)
    above, below = (np.tensordot(part, np.array(shares), axes=1) for part in (form.above, form.below))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(below > _DUST, np.clip(above / below, 0.0, 1.0), np.nan))


def _averaged_ratio(form: _Averaged, hits: Any, misses: Any, answered: Any) -> FloatArray:
    """Return an average over the two classes; `micro` is that of all shares together."""
    true = hits + misses
    either = ((hits, answered, true), (1.0 - answered - misses, 1.0 - answered, 1.0 - true))
    if form.average == "micro":
        shares = [np.broadcast_arrays(*rows, 1.0) for rows in either]
        above, below = (
            sum(np.tensordot(part, np.array(rows), axes=1) for rows in shares)
            for part in (form.above, form.below)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(below > _DUST, above / below, np.nan))
    each = [_ratio(form, *rows) for rows in either]
    weight = true if form.average == "weighted" else 0.5
    return np.asarray(weight * each[0] + (1.0 - weight) * each[1])


def _correlation(hits: Any, misses: Any, answered: Any) -> FloatArray:
    """Return Matthews' correlation of two classes, the covariance over both standard deviations."""
    true = hits + misses
    spread = true * (1.0 - true) * answered * (1.0 - answered)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (hits - true * answered) / np.sqrt(spread)
    return np.asarray(np.where(spread > _DUST**2, np.clip(value, -1.0, 1.0), np.nan))


def form_of(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return a metric's numerator and denominator in (hits, predicted, true, all).

    F_β is (1 + β²) hits over predicted + β² true (van Rijsbergen 1979).

    Examples
    --------
    >>> form_of("f2")
    ((5.0, 0, 0, 0), (0, 1, 4.0, 0))
    """
    if name in _FORMS:
        return _FORMS[name]
    if not is_f_measure(name):
        raise InputError("no such metric", given=repr(name), allowed=near_names(name, METRICS))
    square = float(name[1:]) ** 2
    return (1 + square, 0, 0, 0), (0, 1, square, 0)


def is_f_measure(name: str) -> bool:
    """Return whether a name is that of an F_β.

    Examples
    --------
    >>> is_f_measure("f0.5"), is_f_measure("f0"), is_f_measure("false")
    (True, False, False)
    """
    return bool(re.fullmatch(r"f\d+(\.\d+)?", name)) and float(name[1:]) > 0
