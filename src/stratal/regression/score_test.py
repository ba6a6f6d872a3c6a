"""The score test of a quantile under any design: its variance, its acceptance region, its p-value.

At a candidate t the score is F(t) − q and its variance that of the mean of 1(y ≤ t) − λ 1(f ≤ t) under the
design: no density is estimated (Woodruff 1952; Angelopoulos, Duchi & Zrnic 2023, section 3). The variance
changes at labelled values alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray
from stratal.estimation.lam import ChosenLam
from stratal.intervals import simultaneous as intervals
from stratal.regression.options import Options
from stratal.regression.pinball import RectifiedDistribution, RectifiedPinball, proxy_counts
from stratal.regression.sandwich import Sandwich, degrees_factor

_ROUNDING = 1e-24
_COARSE = 33
_MARGIN = 1.3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreTest:
    """The test of every value of a quantile.

    Parameters
    ----------
    rectified : RectifiedPinball
    options : Options
    fit : ChosenLam
    distribution : RectifiedDistribution
        At the fitted λ.
    """

    rectified: RectifiedPinball
    options: Options
    fit: ChosenLam
    distribution: RectifiedDistribution

    @property
    def goal(self) -> float:
        """The probability, times the total weight where that is not one."""
        return self.rectified.probability * self.distribution.total

    def standard_error(self, value: float, below: FloatArray | None) -> float:
        """Standard error of F at `value`; `below` (H,) are the population's shares at it."""
        units, spread = self.rectified.unlabelled, None
        if units is not None and below is not None:
            spread = below * (1.0 - below) * units.counts / np.maximum(units.counts - 1.0, 1.0)
            spread = spread[:, None, None]
        parts = Sandwich(
            rectified=self.rectified, options=self.options, theta=np.array([value]), lam=self.fit.lam[:, 0]
        )
        total = float(parts.meat(self._residual(value), spread)[0, 0])
        if total <= _ROUNDING:
            q = self.rectified.probability
            total = q * (1.0 - q) * float(np.sum(self.rectified.weights**2))
        return float(np.sqrt(total))

    def degrees_of_freedom(self, value: float) -> float:
        """Of the variance at `value`, less the λ that were fitted."""
        residual = self._residual(value)[:, 0]
        return max(self.rectified.weighting.degrees_of_freedom(residual) - float(self.fit.spent.sum()), 1.0)

    def p_value(self, null: float, degrees_of_freedom: float, side: intervals.Alternative) -> float:
        """Return the p-value of the quantile being `null`."""
        gap = int(np.searchsorted(self.distribution.points, null, side="right"))
        units = self.rectified.unlabelled
        below = None if units is None else proxy_counts(units, np.array([null])).below[:, 0]
        values, masses = self.distribution.inside(np.array([gap]))[gap]
        level = float(self.distribution.starts()[gap] + masses[values <= null].sum())
        statistic = (self.goal - level) / self.standard_error(null, below)
        sign = {"greater": 1.0, "less": -1.0}.get(side, np.sign(statistic) or 1.0)
        tail = float(intervals.upper_tail(np.array(sign * statistic), np.array(degrees_of_freedom)))
        return min(1.0, 2 * tail) if side == "two-sided" else tail

    def region(
        self, level: float, degrees_of_freedom: float, side: intervals.Alternative
    ) -> tuple[float, float]:
        """Return the smallest and largest value that the test does not reject."""
        miss = (1.0 - level) / (2 if side == "two-sided" else 1)
        critical = float(intervals.quantile(1.0 - miss, np.array(degrees_of_freedom)))
        errors = self._errors_by_gap(critical)
        low = -np.inf if side == "less" else self._lower(self.goal - critical * errors)
        high = np.inf if side == "greater" else self._upper(self.goal + critical * errors)
        return low, high

    def _residual(self, value: float) -> FloatArray:
        """1(y ≤ t) − λ 1(f ≤ t), centred at its own goal, corrected for the fitted λ (n, 1)."""
        residual = self.rectified.residual_gradients(np.array([value]), self.fit.lam[:, 0])
        if self.options.correction == "none":
            return residual
        free = len(residual) - len(self.rectified.shares) + 1
        return residual * degrees_factor(free, float(self.fit.spent.sum()) + 1.0)

    def _error_in_gap(self, gap: int) -> float:
        """Return the standard error of F in a gap: it changes at labelled values alone."""
        points, counts = self.distribution.points, self.rectified.counts_at_points
        start = max(gap - 1, 0)
        below = None
        if counts is not None:
            below = counts.below[:, start] if gap else np.zeros(len(counts.below))
        return self.standard_error(float(points[start]) if gap else float(points[0]) - 1.0, below)

    def _errors_by_gap(self, critical: float) -> FloatArray:
        """Return the standard error in each gap: exact near the region's ends, interpolated elsewhere."""
        n_gaps = len(self.distribution.points) + 1
        coarse = np.unique(np.linspace(0, n_gaps - 1, min(n_gaps, _COARSE)).round().astype(np.int64))
        errors = np.interp(np.arange(n_gaps), coarse, [self._error_in_gap(int(gap)) for gap in coarse])
        if len(coarse) == n_gaps:
            return errors
        reach, picture = critical * errors, self.distribution
        starts, ends = np.abs(picture.starts() - self.goal), np.abs(picture.ends() - self.goal)
        near = (np.maximum(starts, ends) > reach / _MARGIN) & (np.minimum(starts, ends) < reach * _MARGIN)
        for gap in np.flatnonzero(near):
            errors[gap] = self._error_in_gap(int(gap))
        return errors

    def _lower(self, limits: FloatArray) -> float:
        """Return the smallest value whose F reaches the limit of its gap."""
        gaps = np.flatnonzero(self.distribution.ends() >= limits)
        starts, points = self.distribution.starts(), self.distribution.points
        for gap in gaps:
            if starts[gap] >= limits[gap]:
                return float(points[gap - 1]) if gap else -np.inf
            proxies, level = self._inside(int(gap))
            reached = int(np.searchsorted(level, limits[gap]))
            if reached < len(proxies):
                return float(proxies[reached])
        return float(points[-1])

    def _upper(self, limits: FloatArray) -> float:
        """Return the supremum of the values whose F stays within the limit of their gap."""
        starts, points = self.distribution.starts(), self.distribution.points
        last = int(np.flatnonzero(starts <= limits)[-1])
        proxies, level = self._inside(last)
        beyond = int(np.searchsorted(level, limits[last], side="right"))
        if beyond < len(proxies):
            return float(proxies[beyond])
        return np.inf if last == len(points) else float(points[last])

    def _inside(self, gap: int) -> tuple[FloatArray, FloatArray]:
        """Return the population's values inside a gap, sorted, and F at each."""
        if not np.any(self.fit.lam):
            return np.empty(0), np.empty(0)
        values, masses = self.distribution.inside(np.array([gap]))[gap]
        return values, self.distribution.starts()[gap] + np.cumsum(masses)
