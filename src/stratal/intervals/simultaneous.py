"""Coordinate-wise and simultaneous intervals of a vector of coefficients, and p-values that agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.special import ndtr, stdtr

from stratal.arrays import FloatArray, Record
from stratal.errors import InputError, no_level
from stratal.intervals.interval import tail_shares
from stratal.intervals.limits import Limits, StudentLimits
from stratal.intervals.proportion import student_quantile

Alternative = Literal["two-sided", "less", "greater"]

_DRAWS = 100_000
_CELLS_AT_ONCE = 4_000_000
_NO_DIRECTION = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoefficientIntervals:
    """Intervals for all coefficients at one level.

    Parameters
    ----------
    low, high : float (d,)
        Infinite on the open side of a one-sided interval.
    confidence_level : float
    method : str
        "t" or "normal", with the simultaneous method after it.

    Examples
    --------
    >>> low, high = CoefficientIntervals(low=np.zeros(1), high=np.ones(1), confidence_level=0.95, method="t")
    >>> low
    array([0.])
    """

    low: FloatArray
    high: FloatArray
    confidence_level: float
    method: str

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter((self.low, self.high))


def require_level(confidence_level: float) -> float:
    """Return the level, refusing anything but a number strictly between 0 and 1.

    Examples
    --------
    >>> require_level(0.9)
    0.9
    """
    if not 0 < confidence_level < 1:
        raise no_level(confidence_level)
    return float(confidence_level)


def require_alternative(alternative: str) -> Alternative:
    """Return the alternative, refusing unknown ones.

    Examples
    --------
    >>> require_alternative("less")
    'less'
    """
    if alternative not in ("two-sided", "less", "greater"):
        raise InputError(
            "unknown alternative", given=repr(alternative), allowed="'two-sided', 'less', 'greater'"
        )
    return alternative  # type: ignore[return-value]


def upper_tail(statistic: FloatArray, degrees_of_freedom: FloatArray) -> FloatArray:
    """Return P(T > statistic); infinite degrees of freedom are the normal distribution.

    Examples
    --------
    >>> upper_tail(np.array([0.0]), np.array([np.inf]))
    array([0.5])
    """
    finite = np.where(np.isinf(degrees_of_freedom), 1.0, degrees_of_freedom)
    return np.asarray(np.where(np.isinf(degrees_of_freedom), ndtr(-statistic), stdtr(finite, -statistic)))


def largest_statistics(
    covariance: FloatArray, degrees_of_freedom: float, alternative: Alternative, seed: int
) -> FloatArray:
    """Return sorted draws of the largest of d correlated t statistics (its absolute value if two-sided).

    Multivariate t with the estimates' own correlation (Hothorn, Bretz & Westfall 2008, section 3.1). A
    statistic without variance is drawn as 0.

    Examples
    --------
    >>> draws = largest_statistics(np.eye(1), np.inf, "two-sided", seed=0)
    >>> bool(abs(np.quantile(draws, 0.95) - 1.96) < 0.03)
    True
    """
    error = np.sqrt(np.diag(covariance))
    error = np.where(error > 0, error, 1.0)
    values, vectors = np.linalg.eigh(covariance / error[:, None] / error)
    used = values > _NO_DIRECTION * max(values[-1], 0.0)
    root = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, used]
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


def critical_value(draws: FloatArray, confidence_level: float) -> float:
    """Return the smallest draw beyond which every statistic has a p-value of at most 1 − level.

    Examples
    --------
    >>> critical_value(np.arange(1.0, 101.0), 0.95)
    96.0
    """
    rank = int(np.ceil(confidence_level * (len(draws) + 1) - 1e-9))
    return float(draws[min(rank, len(draws)) - 1])


def exceedance(draws: FloatArray, statistic: FloatArray) -> FloatArray:
    """Return the p-value of each statistic: the share of draws that reach it, itself counted, so never 0.

    Davison & Hinkley (1997), eq. 4.11: (k + 1) / (m + 1).

    Examples
    --------
    >>> exceedance(np.arange(1.0, 100.0), np.array([96.0, 100.0]))
    array([0.05, 0.01])
    """
    reached = len(draws) - np.searchsorted(draws, statistic, side="left")
    return np.asarray((reached + 1) / (len(draws) + 1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family(Record):
    """How the intervals of several estimates hold together, and what that makes of each one's p-value.

    Parameters
    ----------
    side : {"two-sided", "less", "greater"}
    freedom : float (m,)
        Degrees of freedom of each statistic.
    largest : float (draws,), optional
        Sorted draws of the largest statistic of all; without them each interval holds by itself.
    shared : int
        How many share what their intervals may miss (Bonferroni).

    Examples
    --------
    >>> family = Family.of(np.array([20.0]), np.eye(1))
    >>> float(family.critical(0.95)[0].round(3)), float(family.p_values(np.array([2.0]))[0].round(3))
    (2.086, 0.059)
    """

    side: Alternative
    freedom: FloatArray
    largest: FloatArray | None = None
    shared: int = 1

    @staticmethod
    def of(
        degrees_of_freedom: FloatArray,
        covariance: FloatArray,
        alternative: str = "two-sided",
        simultaneous: str | None = "max-t",
        seed: int = 0,
    ) -> Family:
        """Return the family of estimates with these degrees of freedom (m,) and covariance (m, m).

        `simultaneous` is "max-t", "bonferroni", or None where each interval holds by itself; `seed` is of the
        simulated largest t.
        """
        side = require_alternative(alternative)
        if simultaneous not in (None, "bonferroni", "max-t"):
            raise InputError(
                "unknown simultaneous method",
                given=repr(simultaneous),
                allowed="None, 'bonferroni', 'max-t'",
            )
        m = len(degrees_of_freedom)
        if m == 1 or simultaneous != "max-t":
            shared = m if simultaneous == "bonferroni" else 1
            return Family(side=side, freedom=degrees_of_freedom, shared=shared)
        least = float(np.min(degrees_of_freedom))
        largest = largest_statistics(covariance, least, side, seed)
        return Family(side=side, freedom=np.full(m, least), largest=largest)

    def critical(self, confidence_level: float) -> FloatArray:
        """Return the critical value of each t (m,)."""
        if self.largest is not None:
            return np.full(len(self.freedom), critical_value(self.largest, confidence_level))
        return -student_quantile(max(tail_shares(confidence_level, self.side)) / self.shared, self.freedom)

    def level(self, confidence_level: float) -> float:
        """Return the level that an interval of one difference has for itself."""
        if self.largest is None:
            return confidence_level
        beyond = upper_tail(self.critical(confidence_level), self.freedom)[0]
        return float(1.0 - self._sides * beyond)

    def p_values(self, t: FloatArray) -> FloatArray:
        """Return the p-values (m,) of statistics t that are 0 where there is no difference."""
        return self.tails({"two-sided": np.abs(t), "greater": t, "less": -t}[self.side])

    def tails(self, signed: FloatArray) -> FloatArray:
        """Return the p-values (m,) of statistics that are large where they speak against the null."""
        if self.largest is not None:
            return exceedance(self.largest, signed)
        return np.minimum(upper_tail(signed, self.freedom) * self._sides * self.shared, 1.0)

    def adjusted(self, p: FloatArray) -> FloatArray:
        """Return the p-values (m,) that those of each difference by itself become in the family."""
        if self.largest is None:
            return p
        return exceedance(self.largest, -student_quantile(p / self._sides, self.freedom[0]))

    @property
    def _sides(self) -> float:
        return 2.0 if self.side == "two-sided" else 1.0


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
        if isinstance(limits, StudentLimits) and np.isfinite(limits.degrees_of_freedom):
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
