"""Simultaneous confidence intervals of several correlated estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stratal.arrays import FloatArray
from stratal.intervals.proportion import student_quantile, upper_tail
from stratal.whole_numbers import rounded_up

# Number of draws. A critical value for 95% then has a Monte Carlo error of 0.006 standard errors.
_DRAWS = 100_000

# Maximum number of statistics in memory at once: 32 MB.
_BATCH_CELLS = 4_000_000

# An eigenvalue below this share of the largest is a rounding error, as for estimates that sum to a constant.
_MIN_EIGENVALUE_SHARE = 1e-12


def correlation_root(correlations: FloatArray) -> FloatArray:
    """Return A (d, r) for which A Aᵀ is the matrix of correlations (d, d); r is its rank."""
    eigenvalues, eigenvectors = np.linalg.eigh(correlations)
    is_positive = eigenvalues > _MIN_EIGENVALUE_SHARE * max(eigenvalues[-1], 0.0)
    return np.asarray((eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)))[:, is_positive])


def largest_statistics(
    covariance: FloatArray, degrees_of_freedom: float, alternative: str, seed: int
) -> FloatArray:
    """Return sorted draws of the largest of d correlated t statistics (its absolute value if two-sided).

    They have a multivariate t distribution with the correlations of the estimates (Hothorn, Bretz & Westfall
    2008, section 3.1). A statistic without variance is drawn as 0.
    """
    standard_errors = np.sqrt(np.diag(covariance))
    standard_errors = np.where(standard_errors > 0, standard_errors, 1.0)
    root = correlation_root(covariance / standard_errors[:, None] / standard_errors)
    rng = np.random.default_rng(seed)
    batch_size = max(_BATCH_CELLS // len(standard_errors), 1)
    largest = np.empty(_DRAWS)
    for start in range(0, _DRAWS, batch_size):
        batch = largest[start : start + batch_size]
        statistics = rng.standard_normal((len(batch), root.shape[1])) @ root.T
        batch[:] = (np.abs(statistics) if alternative == "two-sided" else statistics).max(axis=1)
    if np.isfinite(degrees_of_freedom):
        largest /= np.sqrt(rng.chisquare(degrees_of_freedom, _DRAWS) / degrees_of_freedom)
    return np.sort(largest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimultaneousLevel:
    """The joint distribution of several estimates, from which the levels of simultaneous intervals follow.

    Parameters
    ----------
    covariance : float (m, m)
        Covariances of the estimates.
    degrees_of_freedom : float
        The smallest degrees of freedom of the estimates.
    seed : int
        Seed of the simulation of the largest of the correlated statistics.
    """

    covariance: FloatArray
    degrees_of_freedom: float
    seed: int = 0
    _drawn: dict[tuple[str, float], FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, covariance: FloatArray, degrees_of_freedom: Sequence[float], seed: int = 0
    ) -> SimultaneousLevel:
        """Return the level of estimates, of which some may have no variance (two models that never differ).

        These are treated as independent of the others.
        """
        variances = np.diag(covariance)
        varies = variances > 0
        joint_covariance = np.where(varies[:, None] & varies, covariance, 0.0)
        np.fill_diagonal(joint_covariance, np.where(varies, variances, 1.0))
        degrees = max(min(degrees_of_freedom), 1.0)
        return cls(covariance=joint_covariance, degrees_of_freedom=degrees, seed=seed)

    def level(self, confidence_level: float, alternative: str, *, normal: bool = False) -> float:
        """Return the confidence level of each interval, for a simultaneous level of all."""
        draws, df = self._largest(alternative, normal)
        # The smallest draw beyond which every statistic has a p-value of at most 1 − level.
        rank = rounded_up(confidence_level * (len(draws) + 1))
        tail_probability = upper_tail(draws[min(rank, len(draws)) - 1], np.array(df))
        return float(1.0 - _SIDES[alternative] * tail_probability)

    def adjusted_p_value(self, p_value: float, alternative: str, *, normal: bool = False) -> float:
        """Return the p-value of one estimate, adjusted for all.

        It is the share of draws that are at least as large as the statistic. The statistic itself counts as a
        draw, so that the p-value is never 0 (Davison & Hinkley 1997, eq. 4.11).
        """
        draws, df = self._largest(alternative, normal)
        statistic = -student_quantile(p_value / _SIDES[alternative], df)
        n_as_large = len(draws) - np.searchsorted(draws, statistic, side="left")
        return float((n_as_large + 1) / (len(draws) + 1))

    def _largest(self, alternative: str, normal: bool) -> tuple[FloatArray, float]:
        """Return draws of the largest statistic, simulated on first use, and its degrees of freedom."""
        df = np.inf if normal else self.degrees_of_freedom
        key = (alternative, df)
        if key not in self._drawn:
            self._drawn[key] = largest_statistics(self.covariance, df, alternative, self.seed)
        return self._drawn[key], df


# Number of ends of an interval that may exclude the value.
_SIDES = {"two-sided": 2.0, "greater": 1.0, "less": 1.0}
