"""Weights and variances of samples with unequal probabilities: Poisson sampling, or a fixed size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs.stratum_moments import satterthwaite
from stratal.designs.weighting import StratifiedWeighting, Weighting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoissonWeighting(Weighting):
    """Poisson sampling, or a fixed-size design with unequal probabilities.

    Parameters
    ----------
    inclusion_probability : float (n,)
        π of the labelled units, in (0, 1].
    size : float
        N.
    fixed_size : bool
        Whether the number of units was fixed (sequential Poisson), which takes the variation of n out of the
        variance.

    Examples
    --------
    >>> PoissonWeighting(inclusion_probability=np.array([0.5, 0.25]), size=6).weights
    array([0.33333333, 0.66666667])
    """

    inclusion_probability: FloatArray
    size: float
    fixed_size: bool = False

    @property
    def weights(self) -> FloatArray:
        """1 / (N π) per unit (n,)."""
        return np.asarray(1.0 / (self.inclusion_probability * self.size))

    def covariance(self, variables: FloatArray) -> FloatArray:
        """See `poisson` and `fixed_size`."""
        formula = fixed_size if self.fixed_size else poisson
        return formula(variables, self.inclusion_probability, self.size)

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Units drawn by chance, less one; each unit's squared term taken as one degree of freedom."""
        scaled = (variable / self.inclusion_probability) ** 2 * (1.0 - self.inclusion_probability)
        chance = self.inclusion_probability < 1
        return max(float(satterthwaite(scaled[chance], np.ones(int(chance.sum())))) - 1.0, 1.0)

    def post_stratified(self, stratum: IntArray, sizes: IntArray) -> Weighting:
        """Return the weighting of strata (n,) of known sizes (H,); units must have had equal chances."""
        if np.ptp(self.inclusion_probability) > 0:
            return Weighting.post_stratified(self, stratum, sizes)
        return StratifiedWeighting(stratum=stratum, sizes=sizes)


def poisson(variables: FloatArray, inclusion_probability: FloatArray, population_size: float) -> FloatArray:
    """Return the covariance of Σ y / (N π) under Poisson sampling.

    Σ (1 − π) (y / π)² / N², unbiased (Särndal, Swensson & Wretman 1992, eq. 3.5.3).

    Parameters
    ----------
    variables : float (n, q)
    inclusion_probability : float (n,)
        π of the labelled units, in (0, 1].
    population_size : float
        N.

    Examples
    --------
    >>> poisson(np.array([[1.0]]), np.array([0.5]), 2)
    array([[0.5]])
    """
    scaled = variables / (population_size * inclusion_probability[:, None])
    return np.asarray((scaled * (1.0 - inclusion_probability)[:, None]).T @ scaled)


def fixed_size(
    variables: FloatArray, inclusion_probability: FloatArray, population_size: float
) -> FloatArray:
    """Return the approximate covariance of Σ y / (N π) under a fixed-size design with unequal probabilities.

    n / (n − 1) Σ (1 − π) (y/π − A)² / N² with A = Σ (1 − π) y/π / Σ (1 − π): conditional Poisson sampling's
    approximation (Hájek 1964), used for sequential Poisson sampling too (Rosén 1997).

    Examples
    --------
    >>> fixed_size(np.array([[1.0], [1.0]]), np.array([0.5, 0.5]), 4)
    array([[0.]])
    """
    free = 1.0 - inclusion_probability
    scaled = variables / (population_size * inclusion_probability[:, None])
    if np.sum(free) <= 0:
        return np.zeros((variables.shape[1],) * 2)
    centred = scaled - np.average(scaled, axis=0, weights=free)
    drawn = int(np.sum(free > 0))
    factor = drawn / (drawn - 1) if drawn > 1 else np.nan
    return np.asarray(factor * (centred * free[:, None]).T @ centred)
