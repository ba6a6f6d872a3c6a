"""Weights and variances where only weights are known: the units are taken as independent draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs.weighting import Weighting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithReplacementWeighting(Weighting):
    """Units of which only weights are known, taken as independent draws (as R's `survey` does).

    Parameters
    ----------
    design_weight : float (n,)
        1/π, or whatever the labelled units stand for; positive.
    size : float
        N; the sum of the weights where it is not known.

    Examples
    --------
    >>> WithReplacementWeighting(design_weight=np.array([2.0, 4.0]), size=6).weights
    array([0.33333333, 0.66666667])
    """

    design_weight: FloatArray
    size: float

    @property
    def weights(self) -> FloatArray:
        """Design weight / N per unit (n,)."""
        return np.asarray(self.design_weight / self.size)

    def covariance(self, variables: FloatArray) -> FloatArray:
        """See `with_replacement`."""
        return with_replacement(variables, self.weights)


def with_replacement(variables: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the covariance of Σ w y for independent draws with unequal probabilities.

    n / (n − 1) Σ (w y − mean(w y))² (Hansen & Hurwitz 1943; Lohr, eq. 6.13), as R's `survey` takes a design
    that gives weights alone.

    Examples
    --------
    >>> with_replacement(np.array([[1.0], [2.0]]), np.array([1.0, 1.0]))
    array([[1.]])
    """
    n = len(weights)
    scaled = variables * weights[:, None]
    centred = scaled - scaled.mean(axis=0)
    factor: Any = n / (n - 1) if n > 1 else np.nan
    return np.asarray(factor * centred.T @ centred)
