"""Metrics of classes as functions of the shares of labels and answers, such as precision, F1 and kappa.

Every metric of a class k is a ratio of two linear forms in four weighted shares: hits (true and predicted
k), predicted k, true k, and all units. Averages over classes and Matthews' correlation follow by the chain
rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import FloatArray, IntArray, Number, code_count
from stratal.errors import check_choice
from stratal.names import split_names
from stratal.question.vocabulary import AVERAGES

# Numerator and denominator in (hits, predicted, true, all).
_FORMS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "precision": ((1, 0, 0, 0), (0, 1, 0, 0)),
    "false_discovery_rate": ((-1, 1, 0, 0), (0, 1, 0, 0)),
    "recall": ((1, 0, 0, 0), (0, 0, 1, 0)),
    "f1": ((2, 0, 0, 0), (0, 1, 1, 0)),
    "specificity": ((1, -1, -1, 1), (0, 0, -1, 1)),
    "negative_predictive_value": ((1, -1, -1, 1), (0, -1, 0, 1)),
    "false_positive_rate": ((-1, 1, 0, 0), (0, 0, -1, 1)),
    "false_negative_rate": ((-1, 0, 1, 0), (0, 0, 1, 0)),
    "jaccard": ((1, 0, 0, 0), (-1, 1, 1, 0)),
    "prevalence": ((0, 0, 1, 0), (0, 0, 0, 1)),
    "predicted_prevalence": ((0, 1, 0, 0), (0, 0, 0, 1)),
}


CLASS_METRICS = tuple(_FORMS)

# Metrics of a class that are a share of the units in their denominator.
RATES = tuple(name for name in _FORMS if name != "f1")

OVERALL_METRICS = ("accuracy", "balanced_accuracy", "mcc", "kappa")

# Metrics of a class whose denominator excludes the hits.
OF_OTHER_CLASSES = ("specificity", "negative_predictive_value", "false_positive_rate")


# Each of these metrics is another metric of the other of two classes. Their averages over both classes are
# the same number, with the interval of the second, whose pseudo-labels are of its class.
OF_OTHER_OF_TWO = {
    "specificity": "recall",
    "negative_predictive_value": "precision",
    "false_positive_rate": "false_negative_rate",
}


# Metrics from −1 to 1; all others are from 0 to 1.
SIGNED = ("mcc", "kappa")


METRICS = (*OVERALL_METRICS, *CLASS_METRICS)


# A share below this is a rounding error of an empty cell.
MIN_SHARE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Weighted shares per class, or slopes with respect to them; leading axes are for replicates.

    Parameters
    ----------
    hits, predicted, true : float (…, K)
    total : float or float (…,)
        Share of all units.
    """

    hits: FloatArray
    predicted: FloatArray
    true: FloatArray
    total: Number

    @staticmethod
    def of(true: IntArray, predicted: IntArray, weights: FloatArray, n_classes: int) -> Shares:
        """Return the shares of units (n,) with these weights."""
        hit = true == predicted
        # A class that averages exclude may occur only among the answers, or only among the true classes.
        size = max(n_classes, *(code_count(codes) for codes in (true, predicted)))
        hits, of_answers, of_truth = (
            np.bincount(codes, weight, minlength=size).astype(np.float64)
            for codes, weight in ((true[hit], weights[hit]), (predicted, weights), (true, weights))
        )
        return Shares(hits=hits, predicted=of_answers, true=of_truth, total=float(weights.sum()))

    @staticmethod
    def of_forms(rows: FloatArray) -> Shares:
        """Return a linear form (…, K, 4) in (hits, predicted, true, all), one row per class."""
        return Shares(
            hits=rows[..., 0],
            predicted=rows[..., 1],
            true=rows[..., 2],
            total=rows[..., 3].sum(axis=-1)[()],
        )

    def along(self, true: IntArray, predicted: IntArray) -> FloatArray:
        """Return the slopes applied to each unit (n,): its linearised variable."""
        hits = np.where(true == predicted, self.hits[true], 0.0)
        return np.asarray(hits + self.true[true] + self.predicted[predicted] + self.total)

    def forms(self, form: FloatArray) -> FloatArray:
        """Return a linear form of the shares for each class (…, K)."""
        sums = form[0] * self.hits + form[1] * self.predicted + form[2] * self.true
        return np.asarray(sums + form[3] * self.total)


@dataclass(frozen=True, slots=True)
class ClassRatio:
    """Ratio of two linear forms in the shares of one class, or its average over K classes."""

    above: FloatArray
    below: FloatArray
    which: int | str
    n_classes: int

    def _ratios(self, shares: Shares) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the ratio of each class (…, K), 0 if undefined, its weight and its denominator."""
        above, below = (shares.forms(form) for form in (self.above, self.below))
        class_codes = np.arange(below.shape[-1])
        if isinstance(self.which, str):
            counted = class_codes < self.n_classes
        else:
            counted = class_codes == self.which
        is_defined = (below > MIN_SHARE * shares.total) & counted
        below = np.where(is_defined, below, 1.0)
        weights = {"micro": below, "weighted": shares.true}.get(str(self.which), 1.0)
        return np.where(is_defined, above / below, 0.0), np.asarray(weights * is_defined, np.float64), below

    def value(self, shares: Shares) -> FloatArray:
        """Return the ratio or the average (…,), NaN where there is none."""
        ratios, weights, _ = self._ratios(shares)
        # A mean over the classes needs all of them.
        is_defined = np.all(weights[..., : self.n_classes] > 0, axis=-1) | (self.which != "macro")
        total = weights.sum(axis=-1)
        is_defined &= total > MIN_SHARE
        ratio = (weights * ratios).sum(axis=-1) / np.where(is_defined, total, 1.0)
        return np.where(is_defined, np.clip(ratio, 0.0, 1.0), np.nan)

    def __call__(self, shares: Shares, unit: str = "labelled unit") -> tuple[float, Shares, str]:
        """Return the value, its slopes, and why it is undefined; `unit` is the name of the counted units."""
        value = float(self.value(shares))
        ratios, weights, below = self._ratios(shares)
        if np.isnan(value) and isinstance(self.which, int):
            return np.nan, shares, f"no {unit} counts towards its denominator"
        if np.isnan(value):
            missing = self.n_classes - int(np.sum(weights > 0))
            return np.nan, shares, f"{missing} of {self.n_classes} classes have no unit in the denominator"
        # A micro average is one ratio of sums, so that all classes have the slopes at its value.
        at_ratios = np.full_like(ratios, value) if self.which == "micro" else ratios
        slopes = self._slopes(weights / weights.sum(), below, at_ratios)
        # The weights of this average are shares of true classes, which are estimated too.
        if self.which == "weighted":
            slopes[:, 2] += np.where(weights > 0, ratios - value, 0.0) / weights.sum()
        return value, Shares.of_forms(slopes), ""

    def slopes(self, shares: Shares) -> Shares:
        """Return the slopes of the ratio of one class; leading axes are for replicates."""
        ratios, weights, below = self._ratios(shares)
        return Shares.of_forms(self._slopes(weights, below, ratios))

    def _slopes(self, weights: FloatArray, below: FloatArray, ratios: FloatArray) -> FloatArray:
        """Return the slopes (…, K, 4) of Σ weight · ratio with respect to hits, predicted, true and all."""
        return np.asarray((weights / below)[..., None] * (self.above - ratios[..., None] * self.below))


@dataclass(frozen=True, slots=True)
class _Signed:
    """Matthews' correlation of K classes (Gorodkin 2004), or Cohen's kappa: agreement beyond chance.

    Both are (Σ hits − the hits expected by chance) / the largest possible difference.
    """

    name: str

    def _terms(self, shares: Shares) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the numerator (…,), the denominator, and the two factors whose root of the product it is."""
        p = shares.predicted
        t = shares.true
        total = shares.total
        above = shares.hits.sum(axis=-1) * total - (p * t).sum(axis=-1)
        if self.name == "mcc":
            pairs = ((p, p), (t, t))
        else:
            pairs = ((p, t), (t, p))
        first, second = (np.asarray(total**2 - (a * b).sum(axis=-1)) for a, b in pairs)
        return above, np.sqrt(np.maximum(first * second, 0.0)), first, second

    def value(self, shares: Shares) -> FloatArray:
        """Return the metric (…,), NaN if it is undefined."""
        above, below, first, second = self._terms(shares)
        is_defined = np.minimum(first, second) > MIN_SHARE * shares.total**2
        return np.where(is_defined, np.clip(above / np.where(is_defined, below, 1.0), -1.0, 1.0), np.nan)

    def __call__(self, shares: Shares, unit: str = "labelled unit") -> tuple[float, Shares, str]:
        """Return the value, its slopes, and why it is undefined."""
        value = float(self.value(shares))
        if np.isnan(value):
            return np.nan, shares, "only one class was observed"
        p = shares.predicted
        t = shares.true
        total = shares.total
        _, below, first, second = self._terms(shares)
        of_answers, of_truth = (p, t) if self.name == "mcc" else (t, p)
        slopes = Shares(
            hits=np.full(len(p), total / below),
            predicted=value * of_answers / first - t / below,
            true=value * of_truth / second - p / below,
            total=float(shares.hits.sum() / below - value * total * (1 / first + 1 / second)),
        )
        return value, slopes, ""


# A metric as a function of shares.
Metric = ClassRatio | _Signed


def metric_function(name: str, which: int | str | None, n_classes: int) -> Metric:
    """Return a metric as a function of the shares of K classes.

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
    """
    if name in SIGNED:
        return _Signed(name)
    if name in ("accuracy", "balanced_accuracy"):
        name, which = "recall", "micro" if name == "accuracy" else "macro"
    above, below = (np.array(form, dtype=np.float64) for form in linear_forms(name))
    if isinstance(which, str):
        check_choice("average", which, AVERAGES)
    assert which is not None, "a metric of a class needs a class, or an average"
    return ClassRatio(above, below, which, n_classes)


@dataclass(frozen=True, slots=True)
class TwoShareMetric:
    """A metric of one of two classes as a function of three shares of the units.

    Parameters
    ----------
    metric : Metric
    """

    metric: Metric

    def __call__(self, hits: Number, misses: Number, answered: Number) -> FloatArray:
        """Return the metric at shares (…,) of hits, of misses, and answered with the class."""
        return self.metric.value(_shares_of_two(hits, misses, answered))

    def slopes(self, hits: Number, misses: Number, answered: Number) -> tuple[FloatArray, FloatArray]:
        """Return the slopes (…,) of a ratio of one class with respect to its hits and to its misses."""
        assert isinstance(self.metric, ClassRatio)
        slopes = self.metric.slopes(_shares_of_two(hits, misses, answered))
        of_true = slopes.true[..., 0]
        return slopes.hits[..., 0] + of_true, of_true


def _shares_of_two(hits: Number, misses: Number, answered: Number) -> Shares:
    """Return the shares of a class and of all other classes from its hits, misses and answers."""
    hits, misses, answered = np.broadcast_arrays(hits, misses, answered)
    true = hits + misses
    either = ((hits, 1.0 - answered - misses), (answered, 1.0 - answered), (true, 1.0 - true))
    first, second, third = (np.stack(pair, axis=-1) for pair in either)
    return Shares(hits=first, predicted=second, true=third, total=1.0)


def of_two_shares(function: Metric, n_classes: int) -> TwoShareMetric | None:
    """Return a metric as a function of the shares (…,) of hits, misses, and answers with a class.

    Every metric of one class is such a function, and so is any metric of two classes. None for others.

    Parameters
    ----------
    function : Metric
        The result of `metric_function`.
    n_classes : int
    """
    metric = function
    if isinstance(function, ClassRatio) and isinstance(function.which, int):
        metric = replace(function, which=0)
    elif n_classes != 2:
        return None
    return TwoShareMetric(metric)


def linear_forms(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return a metric's numerator and denominator in (hits, predicted, true, all).

    F_β is (1 + β²) hits over predicted + β² true (van Rijsbergen 1979).
    """
    if name in _FORMS:
        return _FORMS[name]
    if not is_f_measure(name):
        check_choice("metric", name, METRICS)
    square = float(name[1:]) ** 2
    return (1 + square, 0, 0, 0), (0, 1, square, 0)


def is_f_measure(name: str) -> bool:
    """Return whether a name is that of an F_β."""
    return bool(re.fullmatch(r"f\d+(\.\d+)?", name)) and float(name[1:]) > 0


def require_names(requested: Sequence[str] | str, allowed: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """Return the names of metrics or averages without duplicates; `kind` is the noun in the error."""
    if isinstance(requested, str):
        names = split_names(requested)
    else:
        names = tuple(requested)
    for name in names:
        if kind == "average" or not is_f_measure(str(name)):
            check_choice(kind, name, allowed)
    return tuple(dict.fromkeys(names))


def is_mean_of_classes(name: str, which: int | str | None) -> bool:
    """Return whether a metric is the unweighted mean of a rate of each class."""
    return which == "macro" or name == "balanced_accuracy"


def is_averaged(name: str, which: int | str | None) -> bool:
    """Return whether a metric averages classes, of which some may have few labels."""
    return name in (*SIGNED, "balanced_accuracy") or which in ("macro", "weighted")
