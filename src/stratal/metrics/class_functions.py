"""Metrics of classes as functions of the shares of labels and answers, such as precision, F1 and kappa.

Every metric of a class k is a ratio of two linear forms in four weighted shares: hits (true and predicted
k), predicted k, true k, and all units. A linear form is a weighted sum with fixed coefficients. The slopes
are the derivatives of a metric with respect to the shares. Those of averages over classes and of Matthews'
correlation follow by the chain rule.
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

# Coefficients of (hits, predicted, true, all) in the numerator and in the denominator.
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

# Metrics of a class whose denominator counts units of the other classes, and no hits.
METRICS_OF_OTHER_CLASSES = ("specificity", "negative_predictive_value", "false_positive_rate")


# With two classes, a metric of one class equals another metric of the other class: the specificity of one is
# the recall of the other. The averages over both classes are then equal, too. Their interval is that of the
# second metric, because pseudo-labels are added to the class of a metric.
METRIC_OF_OTHER_CLASS = {
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
        is_hit = true == predicted
        # A class that averages exclude may occur only among the answers, or only among the true classes.
        size = max(n_classes, code_count(true), code_count(predicted))

        def shares_of_classes(codes: IntArray, weights: FloatArray) -> FloatArray:
            return np.bincount(codes, weights, minlength=size).astype(np.float64)

        return Shares(
            hits=shares_of_classes(true[is_hit], weights[is_hit]),
            predicted=shares_of_classes(predicted, weights),
            true=shares_of_classes(true, weights),
            total=float(weights.sum()),
        )

    @staticmethod
    def of_coefficients(coefficients: FloatArray) -> Shares:
        """Return slopes from coefficients (…, K, 4) of (hits, predicted, true, all) for each class."""
        return Shares(
            hits=coefficients[..., 0],
            predicted=coefficients[..., 1],
            true=coefficients[..., 2],
            total=coefficients[..., 3].sum(axis=-1)[()],
        )

    def per_unit(self, true: IntArray, predicted: IntArray) -> FloatArray:
        """Return the linearised variable (n,): for each unit, the sum of the slopes of its shares."""
        hits = np.where(true == predicted, self.hits[true], 0.0)
        return np.asarray(hits + self.true[true] + self.predicted[predicted] + self.total)

    def linear_form(self, coefficients: FloatArray) -> FloatArray:
        """Return the linear form of each class (…, K), from coefficients (4,) of its shares."""
        of_hits, of_predicted, of_true, of_all = coefficients
        sums = of_hits * self.hits + of_predicted * self.predicted + of_true * self.true
        return np.asarray(sums + of_all * self.total)


@dataclass(frozen=True, slots=True)
class ClassRatio:
    """Ratio of two linear forms in the shares of one class, or its average over K classes.

    Parameters
    ----------
    numerator, denominator : float (4,)
        Coefficients of (hits, predicted, true, all).
    class_or_average : int or str
    n_classes : int
        K. The shares may have a further class, which averages do not include.
    """

    numerator: FloatArray
    denominator: FloatArray
    class_or_average: int | str
    n_classes: int

    def _ratios(self, shares: Shares) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the ratio of each class (…, K), 0 if undefined, its weight and its denominator."""
        numerators = shares.linear_form(self.numerator)
        denominators = shares.linear_form(self.denominator)
        class_codes = np.arange(denominators.shape[-1])
        if isinstance(self.class_or_average, str):
            is_counted = class_codes < self.n_classes
        else:
            is_counted = class_codes == self.class_or_average
        is_defined = (denominators > MIN_SHARE * shares.total) & is_counted
        denominators = np.where(is_defined, denominators, 1.0)
        ratios = np.where(is_defined, numerators / denominators, 0.0)
        weights = {"micro": denominators, "weighted": shares.true}.get(str(self.class_or_average), 1.0)
        return ratios, np.asarray(weights * is_defined, np.float64), denominators

    def value(self, shares: Shares) -> FloatArray:
        """Return the ratio or the average (…,), NaN where it is undefined."""
        ratios, weights, _ = self._ratios(shares)
        # A mean over the classes needs all of them.
        is_defined = np.all(weights[..., : self.n_classes] > 0, axis=-1) | (self.class_or_average != "macro")
        total = weights.sum(axis=-1)
        is_defined &= total > MIN_SHARE
        ratio = (weights * ratios).sum(axis=-1) / np.where(is_defined, total, 1.0)
        return np.where(is_defined, np.clip(ratio, 0.0, 1.0), np.nan)

    def __call__(self, shares: Shares, unit: str = "labelled unit") -> tuple[float, Shares, str]:
        """Return the value, its slopes, and why it is undefined; `unit` is the name of the counted units."""
        value = float(self.value(shares))
        ratios, weights, denominators = self._ratios(shares)
        if np.isnan(value) and isinstance(self.class_or_average, int):
            return np.nan, shares, f"no {unit} counts towards its denominator"
        if np.isnan(value):
            missing = self.n_classes - int(np.sum(weights > 0))
            return np.nan, shares, f"{missing} of {self.n_classes} classes have no unit in the denominator"
        # A micro average is one ratio of sums, so that all classes have the slopes at its value.
        at_ratios = np.full_like(ratios, value) if self.class_or_average == "micro" else ratios
        slopes = self._slopes(weights / weights.sum(), denominators, at_ratios)
        # The weights of this average are shares of true classes, which are estimated too.
        if self.class_or_average == "weighted":
            slopes[:, 2] += np.where(weights > 0, ratios - value, 0.0) / weights.sum()
        return value, Shares.of_coefficients(slopes), ""

    def slopes(self, shares: Shares) -> Shares:
        """Return the slopes of the ratio of one class; leading axes are for replicates."""
        ratios, weights, denominators = self._ratios(shares)
        return Shares.of_coefficients(self._slopes(weights, denominators, ratios))

    def _slopes(self, weights: FloatArray, denominators: FloatArray, ratios: FloatArray) -> FloatArray:
        """Return the slopes (…, K, 4) of Σ weight · ratio with respect to hits, predicted, true and all."""
        factors = (weights / denominators)[..., None]
        return np.asarray(factors * (self.numerator - ratios[..., None] * self.denominator))


@dataclass(frozen=True, slots=True)
class _SignedMetric:
    """Matthews' correlation of K classes (Gorodkin 2004), or Cohen's kappa: agreement beyond chance.

    Both are (Σ hits − the hits expected by chance) / the largest possible difference.
    """

    name: str

    def _terms(self, shares: Shares) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the numerator (…,), the denominator, and the two factors of the denominator's square."""
        p = shares.predicted
        t = shares.true
        total = shares.total
        numerator = shares.hits.sum(axis=-1) * total - (p * t).sum(axis=-1)
        if self.name == "mcc":
            pairs = ((p, p), (t, t))
        else:
            pairs = ((p, t), (t, p))
        first, second = (np.asarray(total**2 - (a * b).sum(axis=-1)) for a, b in pairs)
        return numerator, np.sqrt(np.maximum(first * second, 0.0)), first, second

    def value(self, shares: Shares) -> FloatArray:
        """Return the metric (…,), NaN if it is undefined."""
        numerator, denominator, first, second = self._terms(shares)
        is_defined = np.minimum(first, second) > MIN_SHARE * shares.total**2
        ratio = numerator / np.where(is_defined, denominator, 1.0)
        return np.where(is_defined, np.clip(ratio, -1.0, 1.0), np.nan)

    def __call__(self, shares: Shares, unit: str = "labelled unit") -> tuple[float, Shares, str]:
        """Return the value, its slopes, and why it is undefined, as `ClassRatio` does."""
        value = float(self.value(shares))
        if np.isnan(value):
            return np.nan, shares, "only one class was observed"
        p = shares.predicted
        t = shares.true
        total = shares.total
        _, denominator, first, second = self._terms(shares)
        of_answers, of_truth = (p, t) if self.name == "mcc" else (t, p)
        total_slope = shares.hits.sum() / denominator - value * total * (1 / first + 1 / second)
        slopes = Shares(
            hits=np.full(len(p), total / denominator),
            predicted=value * of_answers / first - t / denominator,
            true=value * of_truth / second - p / denominator,
            total=float(total_slope),
        )
        return value, slopes, ""


# A metric as a function of shares.
Metric = ClassRatio | _SignedMetric


def metric_function(name: str, class_or_average: int | str | None, n_classes: int) -> Metric:
    """Return a metric as a function of the shares of K classes.

    Parameters
    ----------
    name : str
        One of `METRICS`, or F_β as `f2` or `f0.5`.
    class_or_average : int or str, optional
        A class number, or one of `AVERAGES`.
    n_classes : int
        K.

    Raises
    ------
    InputError
        For an unknown metric or average.
    """
    if name in SIGNED:
        return _SignedMetric(name)
    # The accuracy is the micro-averaged recall, and the balanced accuracy the macro-averaged recall.
    if name in ("accuracy", "balanced_accuracy"):
        class_or_average = "micro" if name == "accuracy" else "macro"
        name = "recall"
    numerator, denominator = (np.array(form, dtype=np.float64) for form in linear_forms(name))
    if isinstance(class_or_average, str):
        check_choice("average", class_or_average, AVERAGES)
    assert class_or_average is not None, "a metric of a class needs a class, or an average"
    return ClassRatio(numerator, denominator, class_or_average, n_classes)


@dataclass(frozen=True, slots=True)
class TwoClassMetric:
    """A metric of a class and all others as a function of three shares: hits, misses, and answers.

    Parameters
    ----------
    metric : Metric
    """

    metric: Metric

    def __call__(self, hits: Number, misses: Number, answered: Number) -> FloatArray:
        """Return the metric at shares (…,) of hits, of misses, and of units answered with the class."""
        return self.metric.value(_two_class_shares(hits, misses, answered))

    def slopes(self, hits: Number, misses: Number, answered: Number) -> tuple[FloatArray, FloatArray]:
        """Return the slopes (…,) of a ratio of one class with respect to its hits and to its misses."""
        assert isinstance(self.metric, ClassRatio)
        slopes = self.metric.slopes(_two_class_shares(hits, misses, answered))
        of_true = slopes.true[..., 0]
        return slopes.hits[..., 0] + of_true, of_true


def _two_class_shares(hits: Number, misses: Number, answered: Number) -> Shares:
    """Return the shares of a class (number 0) and of all others, from its hits, misses and answers."""
    hits, misses, answered = np.broadcast_arrays(hits, misses, answered)
    true = hits + misses
    hits_of_others = 1.0 - answered - misses
    return Shares(
        hits=np.stack([hits, hits_of_others], axis=-1),
        predicted=np.stack([answered, 1.0 - answered], axis=-1),
        true=np.stack([true, 1.0 - true], axis=-1),
        total=1.0,
    )


def two_class_metric(function: Metric, n_classes: int) -> TwoClassMetric | None:
    """Return a metric as a function of the shares (…,) of hits, misses, and answers with a class.

    Every metric of one class is such a function, and so is any metric of two classes. None for others.

    Parameters
    ----------
    function : Metric
        The result of `metric_function`.
    n_classes : int
    """
    metric = function
    if isinstance(function, ClassRatio) and isinstance(function.class_or_average, int):
        metric = replace(function, class_or_average=0)
    elif n_classes != 2:
        return None
    return TwoClassMetric(metric)


def linear_forms(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the coefficients of (hits, predicted, true, all) in a metric's numerator and denominator.

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


def is_mean_of_classes(name: str, class_or_average: int | str | None) -> bool:
    """Return whether a metric is the unweighted mean of a rate of each class."""
    return class_or_average == "macro" or name == "balanced_accuracy"


def is_averaged(name: str, class_or_average: int | str | None) -> bool:
    """Return whether a metric averages classes, of which some may have few labels."""
    return name in (*SIGNED, "balanced_accuracy") or class_or_average in ("macro", "weighted")
