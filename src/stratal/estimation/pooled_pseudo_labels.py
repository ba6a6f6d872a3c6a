"""Labels of strata, smoothed with pooled pseudo-labels, so that a few equal labels still have a variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.designs import Weighting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmoothedLabels(Record):
    """Labels of strata; each stratum has one additional label, which is distributed like those of all strata.

    Parameters
    ----------
    weighting : Weighting
    pooled_shares : float (n + J, 1 or H)
        The distribution of the additional label over the n labelled units and J pseudo-labels: one for all
        strata, or one for each stratum with the values that are possible there.
    weights : float (n + J,)
        Smoothed weights; their sum is that of the design's weights.
    """

    weighting: Weighting
    pooled_shares: FloatArray
    weights: FloatArray

    def variance(self, variable: FloatArray) -> float:
        """Return the smoothed variance of the weighted mean of a variable (n + J,)."""
        weighting = self.weighting
        variances = self._stratum_mean(variable**2) - self._stratum_mean(variable) ** 2
        return float(weighting.variance_factors @ np.maximum(variances, 0.0)) * weighting.total**2

    def _stratum_mean(self, variable: FloatArray) -> FloatArray:
        """Return the mean (H,) of a variable (n + J,) in each stratum with its additional label."""
        counts = _counts_at_random(self.weighting)
        labelled_variable = variable[: len(self.weighting.weights)]
        sums = np.bincount(self.weighting.stratum, labelled_variable, minlength=len(counts)) * (counts > 0)
        return np.asarray((sums + variable @ self.pooled_shares) / (counts + 1.0))


def smooth_labels(
    weighting: Weighting,
    pseudo_shares: FloatArray,
    counted: FloatArray | None = None,
    possible: BoolArray | None = None,
) -> SmoothedLabels:
    """Return the labels of strata, smoothed with pseudo-labels.

    Parameters
    ----------
    weighting : Weighting
    pseudo_shares : float (J,)
        Share of the population that each pseudo-label represents.
    counted : float (n,), optional
        1 for the units that the statistic counts, such as the positives for a recall. Such units, and all
        pseudo-labels, then make up half of the additional label, because a large stratum without a counted
        label may contain counted units.
    possible : bool (n + J, H), optional
        Whether the value of a labelled unit or pseudo-label is possible in a stratum. Default: all are.
    """
    weights = weighting.weights
    total = weighting.total
    shares = np.concatenate([weights, pseudo_shares]) / (total + float(pseudo_shares.sum()))
    has_several_strata = np.sum(weighting.counts > 0) > 1
    is_counted = np.zeros(len(shares))
    if counted is not None and has_several_strata:
        is_counted[: len(weights)] = counted
        is_counted[len(weights) :] = 1.0
    if possible is None:
        possible = np.ones((len(shares), 1), dtype=bool)
    possible_share = shares @ possible
    counted_share = (shares * is_counted) @ possible
    # In a stratum without possible counted values, the additional label is not counted.
    counted_half = np.where(counted_share > 0, 0.5, 0.0)
    factor = (1.0 - counted_half) / np.where(possible_share > 0, possible_share, 1.0)
    counted_factor = counted_half / np.where(counted_share > 0, counted_share, 1.0)
    pooled_shares = shares[:, None] * possible * (factor + is_counted[:, None] * counted_factor)
    label_counts = _counts_at_random(weighting)
    weight_per_label = weighting.shares * total / (label_counts + 1.0)
    # A single column is the distribution in all strata.
    if pooled_shares.shape[1] > 1:
        smoothed_weights = pooled_shares @ weight_per_label
    else:
        smoothed_weights = pooled_shares @ weight_per_label.sum(keepdims=True)
    smoothed_weights[: len(weights)] += (weight_per_label * (label_counts > 0))[weighting.stratum]
    return SmoothedLabels(weighting=weighting, pooled_shares=pooled_shares, weights=smoothed_weights)


def _counts_at_random(weighting: Weighting) -> IntArray:
    """Return the numbers of labels (H,) that represent their stratum; 0 if not drawn at random within it."""
    return np.asarray(weighting.counts * weighting.random_within_strata)
