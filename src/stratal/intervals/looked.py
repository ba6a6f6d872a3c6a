"""Rates of strata whose numbers of labels followed from earlier labels.

A stratum whose first labels happened to agree gets fewer later ones to correct it. If n_h goes with the e-th
power of p̂(1 − p̂), the final rate is biased by −e (1 − 2p)/n_h: as much as e labels of either kind make up
for, as the pseudo-labels of inverse binomial sampling do (Haldane 1945). Neyman's shares have e = ½, and a
total that is to bring an interval to a width adds ½ in a stratum that makes up all of the variance. A rule
that smooths follows n_h labels by n_h/(n_h + k), its prior weighing k labels: 16, 64 or 256, equally likely
(`allocation.rates`).

The bias is that of a stratum that happened to agree. Where m labels of the rarer kind were seen the whole of
it is too much, and by chance alone moves the value from where it should be: (m + ½)/(m + 1) of it is taken,
and the limits allow for the rate with and without it (docs/decisions/0017-rates-drawn-back.md).
"""

from __future__ import annotations

import numpy as np

from stratal.allocation.rates import PSEUDO_LABELS
from stratal.arrays import FloatArray

_ELASTICITY = 0.5


def drawn_back(
    rates: FloatArray, counts: FloatArray, left: FloatArray, parts: FloatArray, factor: FloatArray
) -> FloatArray:
    """Return the rates (…, H), drawn towards one half by what looking at labels amounts to.

    Parameters
    ----------
    rates, counts : float (…, H)
        Mean of the labels, and how many there are.
    left : float (…, H)
        1 − f_h, the share of each stratum that is not labelled.
    parts : float (…, H)
        Each stratum's part of the variance of the mean.
    factor : float (…,)
        Binary trials that a label is worth.

    Examples
    --------
    >>> n_h, one = np.array([200.0]), np.ones(1)
    >>> drawn_back(np.array([0.05]), n_h, one, np.array([2e-4]), np.ones(())).round(4)
    array([0.053])
    """
    whole = np.sum(parts, axis=-1, keepdims=True)
    share = parts / np.where(whole > 0, whole, 1.0)
    followed = sum(counts / (counts + weight) for weight in PSEUDO_LABELS) / len(PSEUDO_LABELS)
    each = _ELASTICITY * (1.0 + share) * left * followed
    rarer = counts * np.minimum(rates, 1.0 - rates)
    each = each * (rarer + 0.5) / (rarer + 1.0) / np.maximum(factor, 1.0)[..., None]
    return np.asarray((counts * rates + each) / np.maximum(counts + 2.0 * each, 1.0))
