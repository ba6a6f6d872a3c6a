"""Interval of a correlation of scores with labels of which few differ from the most frequent value.

Few rarer labels show neither how frequent they are nor how their scores vary, so that the linearised
variance is too small. The interval is extended towards limits that combine the uncertainty of the share of
the rarer labels with that of the scores within both groups (MOVER, Zou & Donner 2008, as for the
point-biserial correlation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs import Weighting
from stratal.designs.stratum_moments import centre_within_strata
from stratal.estimation.linearised import numeric_gradient, target_covariance
from stratal.intervals.interval import Interval, error_probabilities, joint_method
from stratal.intervals.proportion import clopper_pearson, student_quantile

# Function that returns a correlation, given the means (5,) of x, y, x², y² and xy.
MomentsFunction = Callable[[FloatArray], float]


def moment_variables(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return x, y, x², y² and xy (n, 5)."""
    return np.column_stack([x, y, x * x, y * y, x * y])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnseenUnits:
    """Units with rarer labels that no drawn unit shows.

    Parameters
    ----------
    n_labels : float
        Number of independent rarer labels that would leave as many of these units unseen. In a
        stratum of which each label stands for the share w of the population, it is the share of the rarer
        value over w: a stratum with few labels may have many unseen units.
    extremes : float (2 or 4, 5)
        x, y, x², y² and xy of units with the lowest or the highest score, and the lowest or the highest
        rarer label.
    """

    n_labels: float
    extremes: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RarerValueMoments:
    """Moments of the scores of the rarer labels, and of the others, which have the most frequent value.

    Parameters
    ----------
    share : float
        Weighted share of the rarer labels.
    n_labels : float
        Number of independent labels with the same variance of the share, at most those without strata: a
        stratum without a rarer label has no variance, but may contain units with such labels.
    n_rarer, n_others : float
        Numbers of independent rarer labels, and of the others.
    means : float (2, 5)
        Means of x, y, x², y² and xy of the rarer labels, and of the others.
    covariances : float (2, 5, 5)
        Covariances of these variables between units.
    unseen : tuple of UnseenUnits
        With any score, in all strata together; and of each stratum, with the scores of its labels, unless
        strata are of similar scores.
    """

    share: float
    n_labels: float
    n_rarer: float
    n_others: float
    means: FloatArray
    covariances: FloatArray
    unseen: tuple[UnseenUnits, ...]

    @classmethod
    def of(
        cls,
        x: FloatArray,
        y: FloatArray,
        is_rarer: BoolArray,
        score_range: tuple[float, float],
        weighting: Weighting,
        target: str,
    ) -> RarerValueMoments | None:
        """Return the moments of scores and labels (n,); None if the share of rarer labels has no error."""
        weights = weighting.weights / weighting.total
        share = float(weights[is_rarer].sum())
        indicator = (is_rarer.astype(np.float64) - share) / weighting.total
        variance = float(target_covariance(indicator[:, None], weighting, target)[0, 0])
        if not (np.isfinite(variance) and variance > 0.0):
            return None
        means = []
        covariances = []
        for mask in (is_rarer, ~is_rarer):
            variables = moment_variables(x[mask], y[mask])
            class_weights = weights[mask] / weights[mask].sum()
            mean = class_weights @ variables
            deviations = variables - mean
            count = len(variables)
            bessel_factor = count / max(count - 1, 1)
            means.append(mean)
            covariances.append(bessel_factor * (deviations * class_weights[:, None]).T @ deviations)
        draws = weighting.draws
        design_labels = share * (1.0 - share) / variance * draws / max(draws - 1, 1)
        all_labels = _independent_labels(np.ones(len(x), bool), weighting, target)
        n_rarer = _independent_labels(is_rarer, weighting, target)
        label_range = (float(y[is_rarer].min()), float(y[is_rarer].max()))
        unseen = [_unseen_units(n_rarer, score_range, label_range)]
        for stratum in _strata_with_unseen_scores(x, weighting, target):
            in_stratum = weighting.stratum == stratum
            share_per_label = float(weights[in_stratum].max())
            stratum_scores = x[in_stratum]
            stratum_range = (float(stratum_scores.min()), float(stratum_scores.max()))
            unseen.append(_unseen_units(share / share_per_label, stratum_range, label_range))
        n_others = _independent_labels(~is_rarer, weighting, target)
        return cls(
            share=share,
            n_labels=min(design_labels, all_labels),
            n_rarer=n_rarer,
            n_others=n_others,
            means=np.array(means),
            covariances=np.array(covariances),
            unseen=tuple(unseen),
        )

    @property
    def unseen_in_strata(self) -> tuple[UnseenUnits, ...]:
        """The unseen units of single strata."""
        return self.unseen[1:]

    def overall_means(self, share: float, rarer_means: FloatArray) -> FloatArray:
        """Return the means (5,) over all units for a share of rarer labels with these means (5,)."""
        return np.asarray(share * rarer_means + (1.0 - share) * self.means[1])


def _unseen_units(
    n_labels: float, score_range: tuple[float, float], label_range: tuple[float, float]
) -> UnseenUnits:
    """Return the unseen units with scores and labels in ranges, for `n_labels` rarer labels."""
    labels = np.unique(label_range)
    scores = np.repeat(score_range, len(labels))
    return UnseenUnits(n_labels=n_labels, extremes=moment_variables(scores, np.tile(labels, 2)))


# Largest share of the variance of the scores within strata of similar scores. The labels of such a stratum
# show the scores of its other units, whatever their labels are: .98 of the intervals and more covered without
# unseen units of its own, also if rarer labels were frequent among low scores with one label in eight.
_MAX_WITHIN_SHARE = 0.5


def _strata_with_unseen_scores(x: FloatArray, weighting: Weighting, target: str) -> list[int]:
    """Return the strata with unlabelled units; none if there is one, or strata have similar scores."""
    if len(weighting.counts) == 1:
        return []
    weights = weighting.weights / weighting.total
    deviations = centre_within_strata(x[:, None], weighting.stratum, len(weighting.counts))[:, 0]
    total_variance = float(weights @ (x - weights @ x) ** 2)
    if float(weights @ deviations**2) <= _MAX_WITHIN_SHARE * total_variance:
        return []
    has_unlabelled = weighting.counts > 0
    if target != "superpopulation":
        has_unlabelled &= weighting.sampled_fractions < 1.0
    return [int(stratum) for stratum in np.flatnonzero(has_unlabelled)]


def _independent_labels(member: BoolArray, weighting: Weighting, target: str) -> float:
    """Return the number of independent labels of the members (n,), with a finite population correction."""
    labels = weighting.effective_draws_of(member)
    if target == "superpopulation":
        return labels
    fractions = weighting.sampled_fractions[weighting.stratum[member]]
    sampled_share = float(np.average(fractions, weights=weighting.weights[member]))
    if sampled_share >= 1.0:
        return np.inf
    return labels / (1.0 - sampled_share)


# Rarer labels at which an interval is extended by half of the distance to the MOVER limits, and
# the power by which this share falls. With 30 labels it is .06: linearised variances cover from there on.
_N_HALF_EXTENSION = 12.0
_EXTENSION_POWER = 3.0

# Power of the error with which all rarer labels may miss a part of their scores. For a share
# without error, it would be 1. With 1/2, .92 of Pearson's intervals covered if their scores are of
# two kinds; with 1, intervals of the intraclass correlation were up to 1.2 times as wide and covered .99.
_UNSEEN_POWER = 2.0 / 3.0


def extension_weight(unseen: UnseenUnits) -> float:
    """Return the share of the distance to the limits for unseen units by which an interval is extended."""
    return float(1.0 / (1.0 + (unseen.n_labels / _N_HALF_EXTENSION) ** _EXTENSION_POWER))


def unseen_share(error: float, unseen: UnseenUnits) -> float:
    """Return the share of the rarer labels' units that may be unseen, with this error on each side."""
    return float(1.0 - error ** (_UNSEEN_POWER / unseen.n_labels))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RarerValueInterval(Interval):
    """An interval that allows for few labels that differ from the most frequent value.

    With p the share of these rarer labels and g(p) the correlation if the scores of both groups are as
    observed, the upper limit is extended towards the largest of

        r + √((g(p) − r)₊² + max(t s(p), e(p))²)

    over the observed share and its Clopper–Pearson limits (Zou & Donner 2008). s(p) is the linearised
    standard error of the scores within both groups. e(p) is the increase of the correlation if units with
    rarer labels that were not drawn have the lowest or the highest score: the share 1 − α^(2/(3k)) of them,
    for k such labels and an error α on each side. The lower limit is its mirror image.

    Parameters
    ----------
    inner : Interval
    moments : RarerValueMoments
    function : callable
        The correlation from the means of x, y, x², y² and xy.
    """

    inner: Interval
    moments: RarerValueMoments
    function: MomentsFunction

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
        for unseen in self.moments.unseen:
            below, above = self._distances(error, unseen)
            extension = extension_weight(unseen)
            extended_low = min(extended_low, low - extension * (low - (self.value - below)))
            extended_high = max(extended_high, high + extension * (self.value + above - high))
        return self.clip_to_bounds(extended_low, extended_high)

    def _distances(self, error: float, unseen: UnseenUnits) -> tuple[float, float]:
        """Return the distances of the MOVER limits below and above the correlation."""
        moments = self.moments
        limits = clopper_pearson(moments.share, moments.n_labels, confidence_level=1.0 - 2.0 * error)
        below = 0.0
        above = 0.0
        for share in (moments.share, *map(float, limits)):
            change = self._correlation(share, moments.means[0]) - self.value
            score_below, score_above = self._score_distances(share, error, unseen)
            below = max(below, float(np.hypot(max(-change, 0.0), score_below)))
            above = max(above, float(np.hypot(max(change, 0.0), score_above)))
        return below, above

    def _score_distances(self, share: float, error: float, unseen: UnseenUnits) -> tuple[float, float]:
        """Return the distances due to the scores within both groups, at a share of rarer labels."""
        moments = self.moments
        slopes = np.nan_to_num(
            numeric_gradient(self.function, moments.overall_means(share, moments.means[0]))
        )
        rarer_variance, other_variance = np.einsum("i,kij,j->k", slopes, moments.covariances, slopes)
        variance = share**2 * rarer_variance / moments.n_rarer
        variance += (1.0 - share) ** 2 * other_variance / moments.n_others
        quantile = -float(student_quantile(error, max(moments.n_labels - 2.0, 1.0)))
        distance = quantile * float(np.sqrt(max(variance, 0.0)))
        unseen_part = unseen_share(error, unseen)
        value = self._correlation(share, moments.means[0])
        changes = []
        for extreme in unseen.extremes:
            rarer_means = (1.0 - unseen_part) * moments.means[0] + unseen_part * extreme
            changes.append(self._correlation(share, rarer_means) - value)
        return max(distance, -min(changes)), max(distance, *changes)

    def _correlation(self, share: float, rarer_means: FloatArray) -> float:
        """Return the correlation at a share of rarer labels with these means (5,); 0 for tiny shares."""
        return float(np.nan_to_num(self.function(self.moments.overall_means(share, rarer_means))))
