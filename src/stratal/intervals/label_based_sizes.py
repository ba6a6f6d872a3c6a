"""Pseudo-labels that compensate for the bias of strata whose sample sizes depend on earlier labels.

The formula is that of guard 6 in docs/methods/intervals.md.
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray
from stratal.strata.standard_deviations import PSEUDO_LABELS

# Neyman's sizes are proportional to √(p(1 − p)): their elasticity to a small rate is one half.
_ELASTICITY = 0.5


def shrink_to_half(
    rates: FloatArray,
    counts: FloatArray,
    unlabelled_shares: FloatArray,
    contributions: FloatArray,
    factor: FloatArray,
) -> FloatArray:
    """Return the rates (…, H), shrunk to one half by the bias of sizes that depend on earlier labels.

    Parameters
    ----------
    rates, counts : float (…, H)
        Mean and number of the labels.
    unlabelled_shares : float (…, H)
        1 − f_h, the unlabelled share of each stratum.
    contributions : float (…, H)
        Each stratum's contribution to the variance of the mean.
    factor : float (…,)
        Number of binary trials with the information of one label.
    """
    shares = stratum_pseudo_label_shares(rates, counts, unlabelled_shares, contributions, factor)
    return np.asarray((1.0 - shares) * rates + shares / 2.0)


def stratum_pseudo_label_shares(
    rates: FloatArray,
    counts: FloatArray,
    unlabelled_shares: FloatArray,
    contributions: FloatArray,
    factor: FloatArray,
) -> FloatArray:
    """Return the share (…, H) of pseudo-labels among all labels of each stratum; see `shrink_to_half`.

    A stratum whose first labels are equal gets fewer further ones, so that its rate is biased away from one
    half. As many pseudo-labels of each class compensate for this bias.
    """
    total = np.sum(contributions, axis=-1, keepdims=True)
    variance_shares = contributions / np.where(total > 0, total, 1.0)
    # Weight of the labels in the smoothed rates that determine the sizes, averaged over the priors.
    weight_of_labels = sum(counts / (counts + prior) for prior in PSEUDO_LABELS) / len(PSEUDO_LABELS)
    pseudo_labels = _ELASTICITY * (1.0 + variance_shares) * unlabelled_shares * weight_of_labels
    rarer_labels = counts * np.minimum(rates, 1.0 - rates)
    pseudo_labels = pseudo_labels * (rarer_labels + 0.5) / (rarer_labels + 1.0)
    pseudo_labels = pseudo_labels / np.maximum(factor, 1.0)[..., None]
    # Strata without labels have no pseudo-labels either: the divisor is then unused.
    return np.asarray(2.0 * pseudo_labels / np.maximum(counts + 2.0 * pseudo_labels, 1.0))
