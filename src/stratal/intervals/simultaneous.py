"""The level at which several correlated intervals hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stratal.arrays import FloatArray
from stratal.intervals.proportion import student_quantile, upper_tail
from stratal.whole_numbers import rounded_up

# A critical value of 95% then has a Monte Carlo error of .006 standard errors.
_DRAWS = 100_000

# Statistics that are drawn at once: 32 MB.
_CELLS_AT_ONCE = 4_000_000

# An eigenvalue below this share of the largest is rounding: estimates that sum to a constant have one.
_NO_DIRECTION = 1e-12


def correlation_root(correlations: FloatArray) -> FloatArray:
    """Return A (d, r) with A Aᵀ the correlations (d, d), r the number of directions in which they vary."""
    values, vectors = np.linalg.eigh(correlations)
    used = values > _NO_DIRECTION * max(values[-1], 0.0)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0)))[:, used])


def largest_statistics(
    covariance: FloatArray, degrees_of_freedom: float, alternative: str, seed: int
) -> FloatArray:
    """Return sorted draws of the largest of d correlated t statistics (its absolute value if two-sided).

    Multivariate t with the estimates' own correlation (Hothorn, Bretz & Westfall 2008, section 3.1). A
    statistic without variance is drawn as 0.
    """
    error = np.sqrt(np.diag(covariance))
    error = np.where(error > 0, error, 1.0)
    root = correlation_root(covariance / error[:, None] / error)
    random = np.random.default_rng(seed)
    rows = max(_CELLS_AT_ONCE // len(error), 1)
    largest = np.empty(_DRAWS)
    for start in range(0, _DRAWS, rows):
        part = largest[start : start + rows]
        draws = random.standard_normal((len(part), root.shape[1])) @ root.T
        part[:] = (np.abs(draws) if alternative == "two-sided" else draws).max(axis=1)
    if np.isfinite(degrees_of_freedom):
        largest /= np.sqrt(random.chisquare(degrees_of_freedom, _DRAWS) / degrees_of_freedom)
    return np.sort(largest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimultaneousLevel:
    """Several estimates whose intervals hold together, and the level that this makes of each one's own.

    Parameters
    ----------
    covariance : float (m, m)
        Of the estimates.
    degrees_of_freedom : float
        The least of theirs.
    seed : int
        Of the simulation of the largest of the correlated statistics.
    """

    covariance: FloatArray
    degrees_of_freedom: float
    seed: int = 0
    _drawn: dict[tuple[str, float], FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, covariance: FloatArray, degrees_of_freedom: Sequence[float], seed: int = 0
    ) -> SimultaneousLevel:
        """Return what is shared by estimates of which some may not vary, as where two models never differ."""
        variances = np.diag(covariance)
        joint = np.where((variances > 0)[:, None] & (variances > 0), covariance, 0.0)
        np.fill_diagonal(joint, np.where(variances > 0, variances, 1.0))
        return cls(covariance=joint, degrees_of_freedom=max(min(degrees_of_freedom), 1.0), seed=seed)

    def level(self, confidence_level: float, alternative: str, *, normal: bool = False) -> float:
        """Return the level that each interval has on its own."""
        draws, df = self._largest(alternative, normal)
        # The smallest draw beyond which every statistic has a p-value of at most 1 − level.
        rank = rounded_up(confidence_level * (len(draws) + 1))
        beyond = upper_tail(draws[min(rank, len(draws)) - 1], np.array(df))
        return float(1.0 - _SIDES[alternative] * beyond)

    def adjusted(self, p: float, alternative: str, *, normal: bool = False) -> float:
        """Return the p-value that the p-value of one of them by itself becomes.

        The share of draws that reach the statistic, itself counted, so never 0 (Davison & Hinkley 1997,
        eq. 4.11).
        """
        draws, df = self._largest(alternative, normal)
        statistic = -student_quantile(p / _SIDES[alternative], df)
        reached = len(draws) - np.searchsorted(draws, statistic, side="left")
        return float((reached + 1) / (len(draws) + 1))

    def _largest(self, alternative: str, normal: bool) -> tuple[FloatArray, float]:
        """Return draws of the largest statistic, simulated on first use, and its degrees of freedom."""
        df = np.inf if normal else self.degrees_of_freedom
        key = (alternative, df)
        if key not in self._drawn:
            self._drawn[key] = largest_statistics(self.covariance, df, alternative, self.seed)
        return self._drawn[key], df


# Number of ends of an interval that may miss the value.
_SIDES = {"two-sided": 2.0, "greater": 1.0, "less": 1.0}
