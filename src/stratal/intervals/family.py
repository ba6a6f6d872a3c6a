"""Intervals that hold together: each at the level at which all of them have the wanted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stratal.arrays import FloatArray
from stratal.intervals.limits import Limits, Student
from stratal.intervals.simultaneous import Family


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Together:
    """Several estimates whose largest statistic decides the level of each one's interval (max-t).

    Parameters
    ----------
    covariance : float (m, m)
        Of the estimates.
    degrees_of_freedom : float
        The least of theirs.
    seed : int
        Of the draws that give the largest statistic's distribution.
    """

    covariance: FloatArray
    degrees_of_freedom: float
    seed: int = 0
    _families: dict[str, Family] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, covariance: FloatArray, degrees_of_freedom: Sequence[float], seed: int = 0) -> Together:
        """Return what is shared by estimates of which some may not vary, as where two models never differ."""
        own = np.diag(covariance)
        known = (own > 0)[:, None] & (own > 0)
        joint = np.where(known, covariance, 0.0)
        np.fill_diagonal(joint, np.where(own > 0, own, 1.0))
        return cls(covariance=joint, degrees_of_freedom=max(min(degrees_of_freedom), 1.0), seed=seed)

    def family(self, alternative: str) -> Family:
        """Return the family for an alternative; its largest statistic is simulated when first asked for."""
        if alternative not in self._families:
            freedom = np.full(len(self.covariance), self.degrees_of_freedom)
            found = Family.of(freedom, self.covariance, alternative, "max-t", self.seed)
            self._families[alternative] = found
        return self._families[alternative]

    def member(self, limits: Limits) -> Limits:
        """Return the limits of one of them, adjusted for all."""
        if len(self.covariance) == 1:
            return limits
        if isinstance(limits, Student) and np.isfinite(limits.degrees_of_freedom):
            limits = replace(limits, degrees_of_freedom=self.degrees_of_freedom)
        return _Member(value=limits.value, bounds=limits.bounds, own=limits, together=self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Member(Limits):
    """The limits of one of several."""

    own: Limits
    together: Together

    @property
    def method(self) -> str:
        """The name of the method."""
        return f"{self.own.method}, simultaneous"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        return self.own.ends(self.together.family(alternative).level(confidence_level), alternative)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value, adjusted."""
        own = np.array([self.own.p_value(null, alternative)])
        return float(self.together.family(alternative).adjusted(own)[0])
