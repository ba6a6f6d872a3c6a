"""What n labels may have missed: units at the far bound of a graded outcome.

A rating that is nearly always 3 of 1 … 5 looks settled until the first 5 is drawn, and its sample variance
says so. n labels bound the share of units that none of them was like: with probability 1 − a it is at most
q = 1 − a^(1/n), as for a proportion with no success (Clopper & Pearson 1934). If those units lie at a
bound, the mean moves towards it by q.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.intervals.interval import tail_shares


def unseen_share(draws: Any, fraction: Any, error: float) -> FloatArray:
    """Return the largest share (…,) of units that `draws` labels can have missed.

    Parameters
    ----------
    draws : float (…,)
        Labels, or the number of equally weighted ones that they are worth.
    fraction : float (…,)
        Share of the population that is labelled; the rest alone can be unseen.
    error : float
        Its probability; 0 where that side is not asked for.

    Examples
    --------
    >>> round(float(unseen_share(50, 0.0, 0.025)), 3)
    0.071
    """
    if error <= 0:
        return np.zeros(np.shape(draws))
    return np.asarray((1.0 - fraction) * -np.expm1(np.log(error) / np.maximum(draws, 1.0)))


def unseen_bounds(
    value: float,
    limits: tuple[float, float],
    weights: FloatArray,
    population_size: float,
    confidence_level: float,
    alternative: str,
) -> tuple[float, float]:
    """Return what the mean may be if the unseen units lie at either bound.

    Parameters
    ----------
    value : float
        The estimate.
    limits : (float, float)
        Bounds of the outcome.
    weights : float (n,)
        Of the labelled units; Kish's effective number counts.
    population_size : float
        N.

    Examples
    --------
    >>> low, high = unseen_bounds(3.0, (1.0, 5.0), np.ones(50), 10**6, 0.95, "two-sided")
    >>> round(low, 2), round(high, 2)
    (2.86, 3.14)
    """
    kish = float(np.sum(weights) ** 2 / np.sum(weights**2))
    fraction = min(len(weights) / population_size, 1.0)
    low_error, high_error = tail_shares(confidence_level, alternative)
    low = value - unseen_share(kish, fraction, low_error) * (value - limits[0])
    high = value + unseen_share(kish, fraction, high_error) * (limits[1] - value)
    return float(low), float(high)
