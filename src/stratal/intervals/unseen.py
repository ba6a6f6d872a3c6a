"""What n labels may have missed: units at the far bound of a graded outcome.

A rating that is nearly always 3 of 1 … 5 looks settled until the first 5 is drawn, and its sample variance
says so. n labels bound the share of units that none of them was like: with probability 1 − a it is at most
q = 1 − a^(1/n), as for a proportion with no success (Clopper & Pearson 1934). Without replacement about
N − (n − 1)/2 units count, the mean number left over the draws, and never more than those not drawn. If those
units lie at a bound, the mean moves towards it by q. Stratified samples take the interval of labels that all
agree instead (`guard.agreeing_rates`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import FloatArray


def unseen_share(draws: Any, fraction: Any, error: float) -> FloatArray:
    """Return the largest share (…,) of units that `draws` labels can have missed.

    Parameters
    ----------
    draws : float (…,)
        Labels, or the number of equally weighted ones that they are worth.
    fraction : float (…,)
        Share of the population that is labelled; the rest alone can be unseen. 0 for an endless one.
    error : float
        Its probability; 0 where that side is not asked for.

    Examples
    --------
    >>> round(float(unseen_share(50, 0.0, 0.025)), 3)
    0.071
    """
    if error <= 0:
        return np.zeros(np.shape(draws))
    share = -np.expm1(np.log(error) / np.maximum(draws, 1.0))
    return np.asarray(np.minimum((1.0 - fraction / 2.0) * share, 1.0 - fraction))
