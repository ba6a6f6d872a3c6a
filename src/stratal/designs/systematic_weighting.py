"""Weights and variances of systematic samples: equal weights, variance from successive differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs.weighting import Weighting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystematicWeighting(Weighting):
    """A systematic sample, realised.

    Parameters
    ----------
    order : int (n,)
        Positions of the labelled units in the order that they were drawn along.
    size : int
        N.

    Examples
    --------
    >>> weighting = SystematicWeighting(order=np.array([0, 2, 1]), size=30)
    >>> weighting.covariance(np.array([[0.0], [4.0], [2.0]])).round(3)
    array([[0.6]])
    """

    order: IntArray
    size: float

    @property
    def weights(self) -> FloatArray:
        """1/n per unit (n,)."""
        n = len(self.order)
        return np.full(n, 1.0 / n)

    def covariance(self, variables: FloatArray) -> FloatArray:
        """See `successive_differences`."""
        return successive_differences(variables[self.order], self.size)

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Those of von Neumann's mean square successive difference, 2 (n − 1)² / (3n − 4), at least 1."""
        n = len(self.order)
        return max(2.0 * (n - 1) ** 2 / (3 * n - 4), 1.0) if n > 1 else 1.0


def successive_differences(variables: FloatArray, population_size: float) -> FloatArray:
    """Return the approximate covariance of the mean of a systematic sample.

    (1 − n/N) Σ (y_i − y_(i−1))² / (2 n (n − 1)) over units in drawing order: each pair of neighbours is taken
    as two draws from one stratum. It overstates the variance a little where the mean moves along the order,
    and can be far off where the order has a period near N/n (Wolter 2007, eq. 8.2.4).

    Parameters
    ----------
    variables : float (n, q)
        In the order along which the units were drawn.
    population_size : float
        N.

    Returns
    -------
    float (q, q)
        NaN for a single unit out of several.

    Examples
    --------
    >>> successive_differences(np.array([[0.0], [2.0], [4.0]]), 30).round(3)
    array([[0.6]])
    """
    n, q = variables.shape
    if n >= population_size:
        return np.zeros((q, q))
    if n < 2:
        return np.full((q, q), np.nan)
    steps = np.diff(variables, axis=0)
    return np.asarray((1.0 - n / population_size) / (2.0 * n * (n - 1)) * steps.T @ steps)
