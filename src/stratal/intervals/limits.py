"""`Limits`: the interval of an estimate that is not a plain mean, at any confidence level.

An estimand returns its value, its linearised variable and, where the mean's rules do not apply to these,
limits of its own: a binomial on the labels that it is worth, the terms that it is a sum of, a function of
shares, a ratio.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr, stdtr

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.intervals.interval import ConfidenceInterval, p_value, tail_shares
from stratal.intervals.proportion import clopper_pearson, farther, freedom_factor, nearer, student_quantile

# An estimated number with a `value` and a `confidence_interval`: an `Estimate`, or `Limits`.
Term: TypeAlias = Any


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

    def by(self, method: str) -> Limits | None:
        """Return these limits by one of their own methods; None for any other."""
        return self if method == "auto" else None

    def with_freedom(self, degrees_of_freedom: float) -> Limits:
        """Return the limits with the degrees of freedom of all estimates that hold together."""
        return self

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Return the limits cut at the bounds."""
        if self.bounds is None:
            return low, high
        lowest, highest = self.bounds
        return max(low, lowest), min(high, highest)

    def confidence_interval(
        self, confidence_level: float = 0.95, alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Return the interval."""
        low, high = self.ends(confidence_level, alternative)
        return ConfidenceInterval(
            low=low, high=high, confidence_level=confidence_level, method=self.method, alternative=alternative
        )

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value: one less the highest level whose interval leaves `null` out."""
        return p_value(null, lambda level: self.ends(level, alternative))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UndefinedLimits(Limits):
    """Every possible value: the labels do not define the estimate."""

    value: float = np.nan

    method = "every possible value"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the bounds."""
        tail_shares(confidence_level, alternative)
        return self.bounds or (-np.inf, np.inf)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return NaN."""
        return float("nan")


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

    method = "clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        lowest, highest = self.bounds or (0.0, 1.0)
        scale = highest - lowest
        unit = min(max((self.value - lowest) / scale, 0.0), 1.0)
        unit = unit / (2.0 - unit) if self.scale == "dice" else unit
        error = max(tail_shares(confidence_level, alternative))
        trials = self.trials * freedom_factor(np.inf, max(self.degrees_of_freedom, 1.0), error)
        ends = clopper_pearson(unit, trials, confidence_level=confidence_level, alternative=alternative)
        low, high = map(float, ends)
        if self.scale == "dice":
            low = 2.0 * low / (1.0 + low)
            high = 2.0 * high / (1.0 + high)
        return lowest + scale * low, lowest + scale * high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OffsetLimits(Limits):
    """Limits that lie below and above the value by lengths of their own."""

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        error = max(tail_shares(confidence_level, alternative))
        # A one-sided end of less than 50 % lies beyond the value: as far as the other side's of the rest.
        mirrored = error > 0.5
        other = {"greater": "less", "less": "greater"}.get(alternative, alternative)
        if mirrored:
            above, below = (-length for length in self.lengths(1.0 - error, other))
        else:
            below, above = self.lengths(error, alternative)
        low = self.value - below if alternative != "less" else -np.inf
        return self.within(low, self.value + above if alternative != "greater" else np.inf)

    @abstractmethod
    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the value, `error` being left out on either side.

        The end that `alternative` leaves open may be anything.
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

    method = "mover"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the value."""
        if alternative == "less":
            below = np.inf
        else:
            below = self._length(error, -1.0)
        if alternative == "greater":
            above = np.inf
        else:
            above = self._length(error, 1.0)
        return below, above

    def _length(self, error: float, direction: float) -> float:
        """Return how far the end lies from the sum above (1) or below (−1) it."""
        level = max(1.0 - error, 0.5)
        signs = np.sign(self.coefficients)
        reach = np.empty(len(self.terms))
        for k, term in enumerate(self.terms):
            upwards = signs[k] * direction > 0
            low, high = term.confidence_interval(level, alternative="less" if upwards else "greater")
            reach[k] = high - term.value if upwards else term.value - low
        # What would cancel is left out: ends of different levels would cross otherwise.
        shared = np.maximum(self.correlation * np.outer(signs, signs), 0.0)
        lengths = reach * np.abs(self.coefficients)
        finite = bool(np.all(np.isfinite(lengths)))
        if finite:
            return float(np.sqrt(max(lengths @ shared @ lengths, 0.0)))
        return np.inf

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value. Both ends leave out as much, so that only the one on the null's side counts."""
        if alternative != "two-sided":
            return p_value(null, lambda level: self.ends(level, alternative))
        side = "greater" if self.value > null else "less"
        if self.value == null:
            return 1.0
        return min(2.0 * self.p_value(null, side), 1.0)


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudentLimits(OffsetLimits):
    """The farther of Student's t and of Hall's (1992) transformation of it, on both sides.

    Labels lean one way and curvature the other, so that both sides are moved.

    Parameters
    ----------
    standard_error, degrees_of_freedom : float
        Where the standard error is not known, the limits are the bounds.
    skewness : float
        γ of the estimate; 0 is Student's t.
    own_freedom : float
        The degrees of freedom at which it is transformed: those of the estimate by itself.
    """

    value: Any
    standard_error: Any
    degrees_of_freedom: Any
    skewness: Any = 0.0
    own_freedom: Any = np.inf

    method = "t"

    def with_freedom(self, degrees_of_freedom: float) -> Limits:
        """Return the limits with these degrees of freedom, where they have any."""
        has_freedom = np.isfinite(self.degrees_of_freedom)
        if has_freedom:
            return replace(self, degrees_of_freedom=degrees_of_freedom)
        return self

    def ends(self, confidence_level: float, alternative: str) -> tuple[Any, Any]:
        """Return the lower and the upper limit."""
        has_error = np.isfinite(self.standard_error)
        if not has_error.any():
            return self.bounds or (-np.inf, np.inf)
        if self.bounds is None and np.any((self.standard_error == 0) & np.isfinite(self.degrees_of_freedom)):
            raise nothing_varies()
        ends = OffsetLimits.ends(self, confidence_level, alternative)
        if has_error.all():
            return ends
        return (np.where(has_error, ends[0], -np.inf), np.where(has_error, ends[1], np.inf))

    def lengths(self, error: float, alternative: str) -> tuple[Any, Any]:
        """Return how far the ends lie below and above the value."""
        quantile = -student_quantile(error, self.degrees_of_freedom)
        reach = self.standard_error * farther(quantile, -abs(self.skewness), self.own_freedom)
        if np.ndim(reach):
            return (reach, reach)
        return (float(reach), float(reach))

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value: below 1 − level just where the interval leaves `null` out."""
        if not np.isfinite(self.standard_error):
            return 1.0
        gap = self.value - null
        with np.errstate(divide="ignore"):
            statistic = gap and float(np.divide(gap, self.standard_error))
        signed = {"two-sided": abs(statistic), "greater": statistic, "less": -statistic}[alternative]
        t = nearer(np.array(signed), np.array(-abs(self.skewness)), self.own_freedom)
        tail = float(upper_tail(t, np.array(self.degrees_of_freedom)))
        if alternative == "two-sided":
            return min(2.0 * tail, 1.0)
        return tail


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkewedLimits(StudentLimits):
    """Student's limits of a linearised variable whose skewness is known, by any method that it has.

    Its numbers may be arrays (d,), of d estimates: the ends are (d,) each then.
    """

    method: str = "skewness-corrected"

    def of(self, place: int) -> SkewedLimits:
        """Return the limits of one of several estimates."""
        names = ("value", "standard_error", "degrees_of_freedom", "skewness", "own_freedom")
        values: dict[str, Any] = {name: float(getattr(self, name)[place]) for name in names}
        return replace(self, **values)

    def by(self, method: str) -> Limits | None:
        """Return these limits, or those of Student's t or of the normal distribution."""
        if method == "t":
            return replace(self, skewness=0.0, method="t")
        if method == "normal":
            return replace(self, skewness=0.0, method="normal", degrees_of_freedom=np.inf, own_freedom=np.inf)
        return self if method in ("auto", self.method) else None


def nothing_varies() -> InputError:
    """Return the error of an estimate without bounds about which no label varies."""
    return InputError(
        "all labels agree, or are as fitted, so an interval without bounds would have no width",
        action="Give the outcome's bounds, or label more units.",
    )


# A critical value of 95 % then has a Monte Carlo error of .006 standard errors.
_DRAWS = 100_000

# Statistics that are drawn at once: 32 MB.
_CELLS_AT_ONCE = 4_000_000

# An eigenvalue below this share of the largest is rounding: estimates that sum to a constant have one.
_NO_DIRECTION = 1e-12


def upper_tail(statistic: FloatArray, degrees_of_freedom: FloatArray) -> FloatArray:
    """Return P(T > statistic); infinite degrees of freedom are the normal distribution."""
    finite = np.where(np.isinf(degrees_of_freedom), 1.0, degrees_of_freedom)
    return np.asarray(np.where(np.isinf(degrees_of_freedom), ndtr(-statistic), stdtr(finite, -statistic)))


def largest_statistics(
    covariance: FloatArray, degrees_of_freedom: float, alternative: str, seed: int
) -> FloatArray:
    """Return sorted draws of the largest of d correlated t statistics (its absolute value if two-sided).

    Multivariate t with the estimates' own correlation (Hothorn, Bretz & Westfall 2008, section 3.1). A
    statistic without variance is drawn as 0.
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
        """Return the level that the interval of one of them has for itself."""
        draws, freedom = self._largest(alternative, normal)
        # The smallest draw beyond which every statistic has a p-value of at most 1 − level.
        rank = int(np.ceil(confidence_level * (len(draws) + 1) - 1e-9))
        beyond = upper_tail(draws[min(rank, len(draws)) - 1], np.array(freedom))
        return float(1.0 - _SIDES[alternative] * beyond)

    def adjusted(self, p: float, alternative: str, *, normal: bool = False) -> float:
        """Return the p-value that the p-value of one of them by itself becomes.

        The share of draws that reach the statistic, itself counted, so never 0 (Davison & Hinkley 1997,
        eq. 4.11).
        """
        draws, freedom = self._largest(alternative, normal)
        statistic = -student_quantile(p / _SIDES[alternative], freedom)
        reached = len(draws) - np.searchsorted(draws, statistic, side="left")
        return float((reached + 1) / (len(draws) + 1))

    def _largest(self, alternative: str, normal: bool) -> tuple[FloatArray, float]:
        """Return draws of the largest statistic, simulated on first use, and its freedom."""
        freedom = np.inf if normal else self.degrees_of_freedom
        key = (alternative, freedom)
        if key not in self._drawn:
            self._drawn[key] = largest_statistics(self.covariance, freedom, alternative, self.seed)
        return self._drawn[key], freedom


_SIDES = {"two-sided": 2.0, "greater": 1.0, "less": 1.0}
