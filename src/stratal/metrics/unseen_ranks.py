"""Interval of a ranking metric if a large stratum with few labels may hide units of the rarer class.

The ranks of such units are unknown unless strata have similar scores. As for correlations (`rarer_value`), a
part of the rarer class may have the lowest or the highest score among the labels of each stratum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs import Weighting
from stratal.intervals.interval import Interval, error_probabilities, joint_method
from stratal.intervals.proportion import clopper_pearson
from stratal.metrics.rarer_value import RarerValueMoments, UnseenUnits, extension_weight, unseen_share

# Function that returns a metric and the influence of each unit (n,), from scores, the mask of positives, and
# weights (n,).
Statistic = Callable[[FloatArray, BoolArray, FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnseenRanksInterval(Interval):
    """An interval that allows for unseen units of the rarer class in each stratum.

    With V(p, u) the metric if the rarer class has the share p of the units, and the part u of it has the
    lowest or the highest score of a stratum, a limit is at least √((V(p, 0) − V)₊² + (V(p, u) − V(p, 0))₊²)
    from the value V, over the observed p and its Clopper–Pearson limits (Zou & Donner 2008). u and the weight
    of this extension are those of `RarerValueInterval`.

    Parameters
    ----------
    inner : Interval
    statistic : callable
    score : float (n,)
    is_positive, is_rarer : bool (n,)
    weights : float (n,)
    moments : RarerValueMoments
        Of the rarer class.
    """

    inner: Interval
    statistic: Statistic
    score: FloatArray
    is_positive: BoolArray
    is_rarer: BoolArray
    weights: FloatArray
    moments: RarerValueMoments

    @property
    def method(self) -> str:
        """The name of the method."""
        return joint_method(self.inner.method, "mover")

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        low, high = self.inner.ends(confidence_level, alternative)
        error = max(error_probabilities(confidence_level, alternative))
        # A one-sided limit with such an error is on the other side of the value: there is nothing to extend.
        if error >= 0.5:
            return low, high
        extended_low = low
        extended_high = high
        for unseen in self.moments.unseen_in_strata:
            below, above = self._distances(error, unseen)
            extension = extension_weight(unseen)
            extended_low = min(extended_low, low - extension * (low - (self.value - below)))
            extended_high = max(extended_high, high + extension * (self.value + above - high))
        return self.clip_to_bounds(extended_low, extended_high)

    def _distances(self, error: float, unseen: UnseenUnits) -> tuple[float, float]:
        """Return the distances of the limits below and above the metric."""
        observed_share = self.moments.share
        limits = clopper_pearson(observed_share, self.moments.n_labels, confidence_level=1.0 - 2.0 * error)
        below = 0.0
        above = 0.0
        for share in (observed_share, *map(float, limits)):
            # A share of 0 or 1 leaves one class, and no ranking.
            if not 0.0 < share < 1.0:
                continue
            value = self._metric(share, 0.0, 0.0)
            change = value - self.value
            for score in unseen.extremes[:, 0].tolist():
                rank_change = self._metric(share, unseen_share(error, unseen), score) - value
                below = max(below, float(np.hypot(max(-change, 0.0), max(-rank_change, 0.0))))
                above = max(above, float(np.hypot(max(change, 0.0), max(rank_change, 0.0))))
        return below, above

    def _metric(self, share: float, unseen_part: float, unseen_score: float) -> float:
        """Return the metric for a share of the rarer class, of which a part has `unseen_score`."""
        observed_share = self.moments.share
        factor_of_rarer = share * (1.0 - unseen_part) / observed_share
        factor_of_others = (1.0 - share) / (1.0 - observed_share)
        weights = self.weights * np.where(self.is_rarer, factor_of_rarer, factor_of_others)
        class_of_rarer = bool(self.is_positive[np.argmax(self.is_rarer)])
        value, _ = self.statistic(
            np.append(self.score, unseen_score),
            np.append(self.is_positive, class_of_rarer),
            np.append(weights, share * unseen_part),
        )
        return value


def allow_for_unseen_ranks(
    interval: Interval,
    statistic: Statistic,
    score: FloatArray,
    is_positive: BoolArray,
    weighting: Weighting,
    target: str,
) -> Interval:
    """Return the interval of a ranking metric, extended for unseen units of the rarer class in strata."""
    weights = weighting.weights / weighting.total
    is_rarer = is_positive if float(weights @ is_positive) <= 0.5 else ~is_positive
    score_range = (float(score.min()), float(score.max()))
    moments = RarerValueMoments.of(
        score, is_positive.astype(np.float64), is_rarer, score_range, weighting, target
    )
    if moments is None or not moments.unseen_in_strata:
        return interval
    return UnseenRanksInterval(
        value=interval.value,
        bounds=interval.bounds,
        inner=interval,
        statistic=statistic,
        score=score,
        is_positive=is_positive,
        is_rarer=is_rarer,
        weights=weights,
        moments=moments,
    )
