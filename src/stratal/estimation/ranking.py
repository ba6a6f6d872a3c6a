"""How well a score ranks: area under the ROC curve and average precision, with design-based standard errors.

Both are functions of weighted distributions of the score among positives and negatives. Their linearised
variables are the units' influences: placements for the area (DeLong, DeLong & Clarke-Pearson 1988, weighted
as in Lumley's pseudo-values), and the change of every precision for the average precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.errors import InputError, near_names
from stratal.estimation.confusion import satterthwaite_of_groups
from stratal.estimation.linearisation import Linearised, of_variable
from stratal.estimation.quantity import Quantity, Reach
from stratal.weighting import Weighting

Statistic = Callable[[FloatArray, BoolArray, FloatArray], tuple[float, FloatArray]]


def area_under_curve(score: FloatArray, positive: BoolArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Return P(score of a positive > that of a negative) + ½ P(tie), and the units' influences (n,).

    Examples
    --------
    >>> score, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    >>> area_under_curve(score, positive, np.full(4, 0.25))[0]
    0.75
    """
    _, group = np.unique(score, return_inverse=True)
    of_positives = np.bincount(group, weights * positive)
    of_negatives = np.bincount(group, weights * ~positive, minlength=len(of_positives))
    total_positive, total_negative = float(of_positives.sum()), float(of_negatives.sum())
    below = (np.cumsum(of_negatives) - of_negatives / 2.0) / total_negative
    above = (total_positive - np.cumsum(of_positives) + of_positives / 2.0) / total_positive
    value = float(of_positives @ below) / total_positive
    influence = np.where(
        positive, (below[group] - value) / total_positive, (above[group] - value) / total_negative
    )
    return value, np.asarray(influence)


def average_precision(
    score: FloatArray, positive: BoolArray, weights: FloatArray
) -> tuple[float, FloatArray]:
    """Return the mean over positives of the precision at their score, and the units' influences (n,).

    Units of one score are ranked together, as in scikit-learn.

    Examples
    --------
    >>> score, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    >>> round(average_precision(score, positive, np.full(4, 0.25))[0], 4)
    0.8333
    """
    _, group = np.unique(score, return_inverse=True)
    of_positives = np.bincount(group, weights * positive)
    of_all = np.bincount(group, weights)
    total = float(of_positives.sum())
    retrieved = np.cumsum(of_all[::-1])[::-1]
    precision = np.cumsum(of_positives[::-1])[::-1] / retrieved
    value = float(of_positives @ precision) / total
    gain = np.cumsum(of_positives / retrieved)
    loss = np.cumsum(of_positives * precision / retrieved)
    own = np.where(positive, precision[group] - value + gain[group], 0.0)
    return value, np.asarray((own - loss[group]) / total)


STATISTICS: dict[str, Statistic] = {"auc": area_under_curve, "average_precision": average_precision}


def ranking_metric(
    name: str, score: FloatArray, positive: BoolArray, weighting: Weighting, target: str = "population"
) -> Quantity:
    """Return one ranking metric with its interval.

    Parameters
    ----------
    name : {"auc", "average_precision"}
    score : float (n,)
        Higher for what the model holds to be positive.
    positive : bool (n,)
    weighting : Weighting
    target : {"population", "superpopulation"}

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(6, dtype=int), sizes=np.array([60]))
    >>> positive = np.array([True, True, True, False, False, False])
    >>> perfect = ranking_metric("auc", np.arange(6.0)[::-1], positive, weighting)
    >>> perfect.value, perfect.confidence_interval().low < 0.8
    (1.0, True)
    """
    if name not in STATISTICS:
        raise InputError("no such ranking metric", given=repr(name), allowed=near_names(name, STATISTICS))
    count = int(positive.sum())
    n = min(count, len(positive) - count)
    if n == 0:
        return Quantity.undefined(n, (0.0, 1.0), "the labels are all of one class")
    value, influence = STATISTICS[name](score, positive, weighting.weights)
    result = of_variable(value, influence, weighting, target)
    trials, freedom, error, smooth = _trials(STATISTICS[name], score, positive, weighting, result, target)
    several = np.sum(weighting.counts > 0) > 1
    shown = result.variance if np.isfinite(result.variance) else 0.0
    return Quantity(
        value=value,
        # A perfect ranking has no variance of its own; what its labels may have missed has.
        standard_error=float(np.sqrt(shown)) if shown > _DUST else error,
        degrees_of_freedom=result.degrees_of_freedom,
        n=n,
        bounds=(0.0, 1.0),
        trials=trials,
        trials_freedom=freedom,
        parts=_OfSmoothed(smoothed=smooth) if several and np.isfinite(trials) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _OfSmoothed(Reach):
    """The interval around the value that the smoothed strata have, for where the labels' own is off.

    Few labels of a stratum of high scores miss its positives, and those seen elsewhere rank low: intervals
    around that value covered .82.
    """

    smoothed: Quantity
    method = "smoothed"

    def ends(self, value: float, confidence_level: float, alternative: str) -> tuple[float, float]:
        found = self.smoothed.confidence_interval(confidence_level, alternative)
        return found.low, found.high

    def _reach(self, error: float, alternative: str) -> tuple[float, float]:
        raise NotImplementedError


def _trials(
    statistic: Statistic,
    score: FloatArray,
    positive: BoolArray,
    weighting: Weighting,
    result: Linearised,
    target: str,
) -> tuple[float, float, float, Quantity]:
    """Return the effective trials, degrees of freedom, the smoothed standard error, and the smoothed value.

    Every unit counts a little as one of the other class with the same score: each stratum's labels are mixed
    with half a label of either class, so that a stratum whose labels all agree may still hold others.
    """
    counts, stratum, factors = weighting.counts, weighting.stratum, weighting.variance_factors
    total = counts + 1.0
    own = ((counts + 0.5) / total)[stratum]
    classes = np.concatenate([positive, ~positive])
    shares = np.concatenate([own, 1.0 - own])
    weights = shares * np.tile(weighting.weights, 2)
    value, influence = statistic(np.tile(score, 2), classes, weights)
    first, second = (
        np.bincount(np.tile(stratum, 2), shares * influence**power, minlength=len(counts))
        / np.maximum(counts, 1)
        for power in (1, 2)
    )
    hidden, drawn = float(factors @ np.maximum(second - first**2, 0.0)), 0.0
    if target == "superpopulation":
        drawn = float(weights @ influence**2 / weights.sum()) / weighting.population_size
    shown = result.design_variance if np.isfinite(result.design_variance) else 0.0
    largest = max(hidden, shown) + max(drawn, result.population_variance)
    if largest <= _DUST:
        # Either every unit is labelled, or all scores tie, so that no label tells anything.
        fewest = float(min(positive.sum(), len(positive) - positive.sum()))
        trials = fewest if np.any(factors > 0) else np.inf
        error = 0.5 / float(np.sqrt(trials))
        return trials, np.inf, error, _quantity(value, error, len(score), trials, np.inf)
    freedom = satterthwaite_of_groups(classes.astype(np.int64), weights, influence)
    trials, error = value * (1.0 - value) / largest, float(np.sqrt(hidden + drawn))
    return trials, freedom, error, _quantity(value, error, len(score), trials, freedom)


def _quantity(value: float, error: float, n: int, trials: float, freedom: float) -> Quantity:
    return Quantity(
        value=value,
        standard_error=error,
        degrees_of_freedom=np.inf,
        n=n,
        bounds=(0.0, 1.0),
        trials=trials,
        trials_freedom=freedom,
    )


_DUST = 1e-24
