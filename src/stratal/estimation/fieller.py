"""Fieller's interval of a ratio of means (Fieller 1954; Cochran, section 6.5), for few and skewed labels.

A ratio ρ is left out where the mean of a − ρb is told from 0. Its mean, variance and third moment are
polynomials of ρ, so each ρ has the interval that an outcome without bounds has: Student's t, each limit moved
outwards as the labels lean (Hall 1992). Linearised at the estimate instead, 10 labels of clustered answers
cover .886; this way .949. Where the denominator itself is not told from 0 an end is infinite, and both are
if it has values on either side of 0: ratios of the other sign are then possible too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.intervals.limits import Margins
from stratal.intervals.skewed import mean_skewness, skewness_corrected
from stratal.weighting import Weighting
from stratal.weighting.stratum_moments import stratum_means

_OUTWARDS = np.geomspace(1e-3, 1e4, 128)
_BISECTIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fieller(Margins):
    """A ratio of two means, with what tells it from any other ratio.

    Parameters
    ----------
    value : float
        The ratio.
    standard_error : float
        By linearisation: the scale on which the ends are sought.
    means : float (2,)
        Of numerator and denominator.
    covariance : float (2, 2)
        Of these means, for the target asked for.
    degrees_of_freedom : float
    counts, factors : float (H,)
        n_h, and the factor of s_h² in the variance.
    centred : float (n, 2)
        Both variables less their stratum's mean, as they would be resampled.
    stratum : int (n,)
    one_sign : bool
        Whether no denominator is on the other side of 0.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(5, dtype=int), sizes=np.array([10**6]))
    >>> found = Fieller.of(np.array([1.0, 0, 2, 1, 0]), np.array([4.0, 2, 6, 5, 3]), weighting)
    >>> [round(end, 2) for end in found.ends(0.95, "two-sided")]
    [-0.11, 0.34]
    """

    standard_error: float
    means: FloatArray
    covariance: FloatArray
    degrees_of_freedom: float
    counts: FloatArray
    factors: FloatArray
    centred: FloatArray
    stratum: IntArray
    one_sign: bool

    @classmethod
    def of(
        cls,
        numerator: FloatArray,
        denominator: FloatArray,
        weighting: Weighting,
        target: str = "population",
    ) -> Fieller:
        """Return the ratio of two variables (n,) of labelled units; the denominator's mean is not 0."""
        both = np.column_stack([numerator, denominator])
        means, covariance = weighting.mean(both), weighting.covariance(both)
        if target == "superpopulation":
            covariance = covariance + weighting.population_covariance(both)
        value = float(means[0] / means[1])
        lean = np.array([1.0, -value])
        columns = [weighting.resampling(column)[0] for column in both.T]
        factors = weighting.resampling(both[:, 0])[1]
        stratum = weighting.stratum if len(factors) > 1 else np.zeros(len(both), dtype=np.int64)
        values = np.column_stack(columns)
        return cls(
            value=value,
            standard_error=float(np.sqrt(max(lean @ covariance @ lean, 0.0)) / abs(means[1])),
            means=means,
            covariance=covariance,
            degrees_of_freedom=max(weighting.degrees_of_freedom(both @ lean), 1.0),
            counts=np.bincount(stratum, minlength=len(factors)).astype(np.float64),
            factors=factors,
            centred=values - stratum_means(values, stratum, len(factors))[stratum],
            stratum=stratum,
            one_sign=bool(np.all(denominator >= 0) or np.all(denominator <= 0)),
        )

    @property
    def method(self) -> str:
        """The name of the method."""
        return "fieller"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the ratio, `error` being left out on either side."""
        if not self.one_sign and not self._told_from_zero(np.array([[0.0, 1.0]]), error)[0]:
            return np.inf, np.inf
        return self._end(-1.0, error), self._end(1.0, error)

    def _end(self, side: float, error: float) -> float:
        """Return how far the first ratio that is left out lies from the estimate, on one side."""
        steps = _OUTWARDS * self.standard_error
        out = self._left_out(self.value + side * steps, error)
        if not np.any(out):
            return float("inf")
        first = int(np.argmax(out))
        near, far = (steps[first - 1] if first else 0.0), steps[first]
        for _ in range(_BISECTIONS):
            middle = (near + far) / 2.0
            if self._left_out(np.array([self.value + side * middle]), error)[0]:
                far = middle
            else:
                near = middle
        return float(far)

    def _left_out(self, ratios: FloatArray, error: float) -> BoolArray:
        """Return whether the mean of a − ρb is told from 0 (m,)."""
        return self._told_from_zero(np.column_stack([np.ones_like(ratios), -ratios]), error)

    def _told_from_zero(self, leans: FloatArray, error: float) -> BoolArray:
        """Return whether these combinations (m, 2) of both means are told from 0 (m,)."""
        variance = np.einsum("mi,ij,mj->m", leans, self.covariance, leans)
        low, high = skewness_corrected(
            leans @ self.means,
            np.sqrt(np.maximum(variance, 0.0)),
            self._skewness(leans),
            degrees_of_freedom=self.degrees_of_freedom,
            confidence_level=max(1.0 - 2.0 * error, 1e-12),
        )
        return np.asarray((low > 0) | (high < 0))

    def _skewness(self, leans: FloatArray) -> FloatArray:
        """Return the skewness (m,) of the mean of a − ρb."""
        residuals = self.centred @ leans.T
        largest = np.max(np.abs(residuals), axis=0, initial=0.0)
        residuals = residuals / np.where(largest > 0, largest, 1.0)  # no power that overflows
        second, third = (self._by_stratum(residuals**power) for power in (2, 3))
        spreads = second / np.maximum(self.counts - 1.0, 1.0)
        return np.asarray(mean_skewness(self.counts, self.factors, spreads, third))

    def _by_stratum(self, values: FloatArray) -> FloatArray:
        """Return the sums (m, H) of values (n, m)."""
        sums = np.zeros((len(self.counts), values.shape[1]))
        np.add.at(sums, self.stratum, values)
        return sums.T
