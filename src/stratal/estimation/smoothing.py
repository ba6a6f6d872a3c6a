"""Variances that few labels cannot make too small, for ratios and other functions of classes.

A stratum of five right answers has no sample variance, but its other units may be wrong. Each stratum's
labels are therefore mixed with one label's worth of the overall distribution, and that with pseudo-labels
for what was not seen (half a label of right and half of wrong). Value and variance of any statistic under
these smoothed distributions give the number of trials that its interval rests on. With one stratum this is
the number of labels that the statistic uses, so that its interval is the textbook one.

Where the rule of the strata says which answers each can hold, a stratum borrows only what is possible there:
one in which nothing was answered "match" holds no false alarm of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.weighting import Weighting

_BORROWED_LABELS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lent(Record):
    """The distribution that each stratum borrows from: all of them alike, or each what is possible there.

    Of n labelled units and J pseudo-labels; the last axis has one entry, or one for each stratum.

    Parameters
    ----------
    shares : float (n + J,)
        The overall smoothed distribution; sums to 1.
    counted : float (n + J,)
        1 for what the statistic counts.
    possible : bool (n + J, 1 or H)
    plain, extra : float (1 or H,)
        What the shares of all, and of those counted, are multiplied by.

    Examples
    --------
    >>> lent = Lent.of(np.array([0.5, 0.25, 0.25]), None, np.array([[True], [True], [False]]))
    >>> lent.means(np.array([3.0, 0.0, 9.0]))
    array([2.])
    """

    shares: FloatArray
    counted: FloatArray
    possible: BoolArray
    plain: FloatArray
    extra: FloatArray

    @classmethod
    def of(cls, shares: FloatArray, counted: FloatArray | None, possible: BoolArray) -> Lent:
        """Return the distribution, half of it what is counted where this is given and possible."""
        every = np.zeros_like(shares) if counted is None else counted
        mass, inside = shares @ possible, (shares * every) @ possible
        half = np.where(inside > 0, 0.5, 0.0)
        plain = np.where(mass > 0, (1.0 - half) / np.where(mass > 0, mass, 1.0), 0.0)
        extra = half / np.where(inside > 0, inside, 1.0)
        return cls(shares=shares, counted=every, possible=possible, plain=plain, extra=extra)

    def means(self, variable: FloatArray) -> FloatArray:
        """Return the means (1 or H,) of a variable (n + J,)."""
        every, counted = (self.shares * variable * part @ self.possible for part in (1.0, self.counted))
        return np.asarray(self.plain * every + self.extra * counted)

    def weights(self, borrowed: FloatArray) -> FloatArray:
        """Return the weights (n + J,) where each stratum borrows so much (H,)."""
        wanted = borrowed if self.possible.shape[1] > 1 else np.array([borrowed.sum()])
        every, counted = (self.possible @ (part * wanted) for part in (self.plain, self.extra))
        return np.asarray(self.shares * (every + self.counted * counted))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Smoothing(Record):
    """Smoothed weights of the labelled units and of the pseudo-labels.

    Parameters
    ----------
    weighting : Weighting
    unit_weights : float (n,)
    pseudo_weights : float (J,)
        With `unit_weights` they sum to what the design's weights sum to.
    lent : Lent
        The distribution that strata borrow from.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(9, dtype=int), sizes=np.array([90]))
    >>> smoothing = smoothed(weighting, np.array([0.1]))
    >>> round(float(smoothing.unit_weights.sum() + smoothing.pseudo_weights.sum()), 9)
    1.0
    """

    weighting: Weighting
    unit_weights: FloatArray
    pseudo_weights: FloatArray
    lent: Lent

    def variance(self, units: FloatArray, pseudo: FloatArray) -> float:
        """Return the variance of the weighted mean of a variable (n,) with pseudo-labels (J,), smoothed."""
        both = np.concatenate([units, pseudo])
        weighting, counts = self.weighting, _own_counts(self.weighting)
        total = counts + _BORROWED_LABELS
        means, squares = (
            (
                np.bincount(weighting.stratum, values[: len(units)], minlength=len(counts)) * (counts > 0)
                + _BORROWED_LABELS * self.lent.means(values)
            )
            / total
            for values in (both, both**2)
        )
        within = np.maximum(squares - means**2, 0.0)
        return float(weighting.variance_factors @ within) * weighting.total**2


def smoothed(
    weighting: Weighting,
    pseudo_shares: FloatArray,
    counted: FloatArray | None = None,
    possible: BoolArray | None = None,
) -> Smoothing:
    """Return the smoothed weights under pseudo-labels of given shares (J,) of the population.

    `counted` (n,) is 1 for the units that the statistic counts, such as the positives for a recall. Half of
    the borrowed label is then one of these: a large stratum in which none was seen may hold some.
    `possible` (n + J, H) says which units and pseudo-labels have their like in which strata; all in all
    unless given.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([40]))
    >>> smoothed(weighting, np.array([0.25])).lent.shares
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """
    weights, total = weighting.weights, weighting.total
    n, scale = len(weights), total + float(pseudo_shares.sum())
    shares = np.concatenate([weights, pseudo_shares]) / scale
    if counted is not None:
        several = np.sum(weighting.counts > 0) > 1
        counted = np.concatenate([counted, np.ones(len(pseudo_shares))]) if several else None
    if possible is None:
        possible = np.ones((len(shares), 1), dtype=bool)
    lent = Lent.of(shares, counted, possible)
    own = _own_counts(weighting)
    per_label = weighting.shares * total / (own + _BORROWED_LABELS)
    borrowed = lent.weights(_BORROWED_LABELS * per_label)
    return Smoothing(
        weighting=weighting,
        unit_weights=(per_label * (own > 0))[weighting.stratum] + borrowed[:n],
        pseudo_weights=borrowed[n:],
        lent=lent,
    )


def _own_counts(weighting: Weighting) -> IntArray:
    """Return the labels (H,) that speak for their own stratum; none where they were not drawn at random."""
    return np.asarray(weighting.counts * weighting.random_within_strata)
