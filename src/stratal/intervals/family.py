"""A family of intervals that hold together: each at the level at which all of them have the wanted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stratal.arrays import FloatArray
from stratal.intervals.limits import Limits, Student
from stratal.intervals.proportion import student_quantile
from stratal.intervals.simultaneous import (
    critical_value,
    exceedance,
    largest_statistics,
    require_alternative,
    upper_tail,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """What the largest of several correlated statistics may be by chance.

    Parameters
    ----------
    correlation : float (m, m)
        Of the estimates.
    degrees_of_freedom : float
        The least of theirs.
    seed : int
        Of the draws that give the largest statistic's distribution.
    """

    correlation: FloatArray
    degrees_of_freedom: float
    seed: int = 0
    _drawn: dict[str, FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, covariance: FloatArray, degrees_of_freedom: Sequence[float], seed: int = 0) -> Family:
        """Return the family of estimates with this covariance (m, m)."""
        own = np.diag(covariance)
        spread = np.sqrt(np.where(own > 0, own, 1.0))
        known = (own > 0)[:, None] & (own > 0)
        correlation = np.where(known, covariance / np.outer(spread, spread), 0.0)
        np.fill_diagonal(correlation, 1.0)
        return cls(correlation=correlation, degrees_of_freedom=max(min(degrees_of_freedom), 1.0), seed=seed)

    def _largest(self, alternative: str) -> FloatArray:
        """Return draws of the largest statistic, sorted."""
        side = require_alternative(alternative)
        if side not in self._drawn:
            freedom = self.degrees_of_freedom
            self._drawn[side] = largest_statistics(self.correlation, freedom, side, self.seed)
        return self._drawn[side]

    def level(self, confidence_level: float, alternative: str = "two-sided") -> float:
        """Return the level of one interval at which all have `confidence_level` together."""
        critical = np.array([critical_value(self._largest(alternative), confidence_level)])
        beyond = float(upper_tail(critical, np.array([self.degrees_of_freedom]))[0])
        return 1.0 - _tails(alternative) * beyond

    def adjusted(self, p_value: float, alternative: str = "two-sided") -> float:
        """Return the p-value of one, adjusted for all."""
        if np.isnan(p_value):
            return p_value
        statistic = -student_quantile(p_value / _tails(alternative), self.degrees_of_freedom)
        return float(exceedance(self._largest(alternative), np.array([statistic]))[0])

    def member(self, limits: Limits) -> Limits:
        """Return the limits of one of the family, adjusted for all."""
        if len(self.correlation) == 1:
            return limits
        if isinstance(limits, Student) and np.isfinite(limits.degrees_of_freedom):
            limits = replace(limits, degrees_of_freedom=self.degrees_of_freedom)
        return _Member(value=limits.value, bounds=limits.bounds, own=limits, family=self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Member(Limits):
    """The limits of one of a family."""

    own: Limits
    family: Family

    @property
    def method(self) -> str:
        """The name of the method."""
        return f"{self.own.method}, simultaneous"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        return self.own.ends(self.family.level(confidence_level, alternative), alternative)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value, adjusted."""
        return self.family.adjusted(self.own.p_value(null, alternative), alternative)


def _tails(alternative: str) -> float:
    return 2.0 if alternative == "two-sided" else 1.0
