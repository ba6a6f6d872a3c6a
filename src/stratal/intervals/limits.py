"""`Limits`: the interval of an estimate that is not a plain mean, at any confidence level.

An estimand returns its value, its linearised variable and, where the mean's rules do not apply to these,
limits of its own: a binomial on the labels that it is worth, the terms that it is a sum of, a function of
shares, a ratio.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
from scipy.special import ndtr, stdtr

from stratal.arrays import FloatArray, Record
from stratal.errors import InputError, no_level
from stratal.intervals.interval import ConfidenceInterval, p_value, tail_shares
from stratal.intervals.proportion import clopper_pearson, student_quantile, student_t


class Term(Protocol):
    """An estimated number with intervals: an `Estimate`, or `Limits`."""

    @property
    def value(self) -> float:
        """The estimate."""

    def confidence_interval(
        self, confidence_level: float = 0.95, *, alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Return its interval."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Limits(ABC):
    """The limits of an interval around `value`, within `bounds` where it has any."""

    value: float
    bounds: tuple[float, float] | None = None

    @property
    @abstractmethod
    def method(self) -> str:
        """The name of the method."""

    @abstractmethod
    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Return the limits cut at the bounds."""
        lowest, highest = self.bounds or (-np.inf, np.inf)
        return max(low, lowest), min(high, highest)

    def confidence_interval(
        self, confidence_level: float = 0.95, alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Return the interval."""
        low, high = self.ends(confidence_level, alternative)
        return ConfidenceInterval(
            low=low,
            high=high,
            confidence_level=confidence_level,
            method=self.method,
            alternative=alternative,
        )

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value: one less the highest level whose interval leaves `null` out."""
        return p_value(null, lambda level: self.ends(level, alternative))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UndefinedLimits(Limits):
    """Every possible value: the labels do not define the estimate."""

    value: float = np.nan

    @property
    def method(self) -> str:
        """The name of the method."""
        return "every possible value"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the bounds."""
        tail_shares(confidence_level, alternative)
        return self.bounds or (-np.inf, np.inf)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return NaN."""
        return float("nan")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudentLimits(Limits):
    """Student's t around the value; where the standard error is unknown, the bounds."""

    standard_error: float
    degrees_of_freedom: float

    @property
    def method(self) -> str:
        """The name of the method."""
        return "t"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        error = self.standard_error
        if not np.isfinite(error):
            return self.bounds or (-np.inf, np.inf)
        if error == 0 and self.bounds is None and np.isfinite(self.degrees_of_freedom):
            raise nothing_varies()
        low, high = student_t(
            self.value,
            error,
            degrees_of_freedom=self.degrees_of_freedom,
            bounds=self.bounds or (-np.inf, np.inf),
            confidence_level=confidence_level,
            alternative=alternative,
        )
        return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinomialLimits(Limits):
    """Clopper–Pearson on the number of labels that the estimate is worth (Korn & Graubard 1998).

    Parameters
    ----------
    trials : float
    degrees_of_freedom : float
        Of the variance that the trials were counted by; infinite where it follows from the design.
    scale : {"identity", "dice"}
        "dice" takes the value for 2 j / (1 + j) of a share j, as F1 is of the Jaccard index.
    """

    trials: float
    degrees_of_freedom: float = np.inf
    scale: str = "identity"

    @property
    def method(self) -> str:
        """The name of the method."""
        return "clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        lowest, highest = self.bounds or (0.0, 1.0)
        scale = highest - lowest
        unit = min(max((self.value - lowest) / scale, 0.0), 1.0)
        unit = unit / (2.0 - unit) if self.scale == "dice" else unit
        trials = self.trials * self._shrinkage(confidence_level, alternative)
        low, high = (
            float(end)
            for end in clopper_pearson(
                unit, trials, confidence_level=confidence_level, alternative=alternative
            )
        )
        if self.scale == "dice":
            low, high = 2.0 * low / (1.0 + low), 2.0 * high / (1.0 + high)
        return lowest + scale * low, lowest + scale * high

    def _shrinkage(self, confidence_level: float, alternative: str) -> float:
        """Return the factor on the trials for a variance of few degrees of freedom."""
        if not np.isfinite(self.degrees_of_freedom):
            return 1.0
        # At one half both quantiles are 0.
        share = min(max(tail_shares(confidence_level, alternative)), 0.49)
        normal = student_quantile(share, np.inf)
        student = student_quantile(share, max(self.degrees_of_freedom, 1.0))
        return float((normal / student) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OffsetLimits(Limits):
    """Limits that lie below and above the value by lengths of their own."""

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        error = max(tail_shares(confidence_level, alternative))
        # A one-sided end of less than 50 % lies beyond the value: as far as the other side's of the rest.
        mirrored = error > 0.5
        side = (
            {"greater": "less", "less": "greater"}.get(alternative, alternative) if mirrored else alternative
        )
        below, above = self.lengths(1.0 - error if mirrored else error, side)
        if mirrored:
            below, above = -above, -below
        low = self.value - below if alternative != "less" else -np.inf
        return self.within(low, self.value + above if alternative != "greater" else np.inf)

    @abstractmethod
    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the value, `error` being left out on either side.

        What `alternative` does not ask for may be anything.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumLimits(OffsetLimits):
    """The limits of a sum of estimates, from those of its terms.

    Each end lies as far from the sum as the root of the correlated sum of squares of the terms' own distances
    ("MOVER", Zou & Donner 2008), so that skewness and small numbers are the terms' business.

    Parameters
    ----------
    terms : tuple of Term (K,)
    coefficients : float (K,)
        1/K for a mean, 1 and −1 for a difference.
    correlation : float (K, K)
    """

    terms: tuple[Term, ...]
    coefficients: FloatArray
    correlation: FloatArray

    @property
    def method(self) -> str:
        """The name of the method."""
        return "mover"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the value."""
        below = np.inf if alternative == "less" else self._length(error, -1.0)
        above = np.inf if alternative == "greater" else self._length(error, 1.0)
        return below, above

    def _length(self, error: float, direction: float) -> float:
        """Return how far the end lies from the sum above (1) or below (−1) it."""
        level, signs = max(1.0 - error, 0.5), np.sign(self.coefficients)
        reach = np.empty(len(self.terms))
        for k, term in enumerate(self.terms):
            upwards = signs[k] * direction > 0
            low, high = term.confidence_interval(level, alternative="less" if upwards else "greater")
            reach[k] = high - term.value if upwards else term.value - low
        # What would cancel is left out: ends of different levels would cross otherwise.
        shared = np.maximum(self.correlation * np.outer(signs, signs), 0.0)
        lengths = reach * np.abs(self.coefficients)
        finite = bool(np.all(np.isfinite(lengths)))
        return float(np.sqrt(max(lengths @ shared @ lengths, 0.0))) if finite else np.inf

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value. Both ends leave out as much, so that only the one on the null's side counts."""
        if alternative != "two-sided":
            return p_value(null, lambda level: self.ends(level, alternative))
        side = "greater" if self.value > null else "less"
        return 1.0 if self.value == null else min(2.0 * self.p_value(null, side), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OuterLimits(Limits):
    """The outer of two intervals: terms at their bounds have no room there and make theirs too short."""

    first: Limits
    second: Limits

    @property
    def method(self) -> str:
        """The name of the method."""
        return f"{self.first.method} and {self.second.method}"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        low, high = self.first.ends(confidence_level, alternative)
        below, above = self.second.ends(confidence_level, alternative)
        return self.within(min(low, below), max(high, above))


def nothing_varies() -> InputError:
    """Return the error of an outcome without bounds whose labels all agree."""
    return InputError(
        "all labels agree, so an interval of an unbounded outcome would have no width",
        action="Give the outcome's bounds, or label more units.",
    )


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
