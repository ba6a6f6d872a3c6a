"""`Limits`: the interval of an estimate that is not a plain mean, at any confidence level.

An estimand returns its value, its linearised variable and, where the mean's rules do not apply to these,
limits of its own: a binomial on the labels that it is worth, the terms that it is a sum of, a function of
shares, a ratio.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
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
