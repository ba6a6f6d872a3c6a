"""Intervals of estimates that are not plain means, from which estimands choose or compose theirs.

A binomial on the labels that an estimate is worth, Student's t with or without skewness, a sum of estimates,
the outer of two intervals.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from stratal.arrays import FloatArray, Number
from stratal.errors import InputError
from stratal.intervals.interval import Ends, Interval, p_value, tail_shares, unseen_share
from stratal.intervals.proportion import (
    adjusted_quantile,
    adjusted_statistic,
    clopper_pearson,
    df_correction,
    student_quantile,
    upper_tail,
)

# An estimated number with a `value` and a `confidence_interval`: an `Interval`, or an `Estimate`, which is
# defined in a later layer.
Term: TypeAlias = Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UndefinedInterval(Interval):
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
class BinomialInterval(Interval):
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
        if self.scale == "dice":
            unit = unit / (2.0 - unit)
        error = max(tail_shares(confidence_level, alternative))
        trials = self.trials * df_correction(np.inf, max(self.degrees_of_freedom, 1.0), error)
        ends = clopper_pearson(unit, trials, confidence_level=confidence_level, alternative=alternative)
        low, high = map(float, ends)
        if self.scale == "dice":
            low = 2.0 * low / (1.0 + low)
            high = 2.0 * high / (1.0 + high)
        return lowest + scale * low, lowest + scale * high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OffsetInterval(Interval):
    """Limits that lie below and above the value by lengths of their own."""

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        error = max(tail_shares(confidence_level, alternative))
        # A one-sided end of less than 50% lies beyond the value: as far as the other side's of the rest.
        mirrored = error > 0.5
        other = {"greater": "less", "less": "greater"}.get(alternative, alternative)
        if mirrored:
            above, below = (-length for length in self.lengths(1.0 - error, other))
        else:
            below, above = self.lengths(error, alternative)
        if alternative != "less":
            low = self.value - below
        else:
            low = -np.inf
        return self.within(low, self.value + above if alternative != "greater" else np.inf)

    @abstractmethod
    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the value, `error` being left out on either side.

        The end that `alternative` leaves open may be anything.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumInterval(OffsetInterval):
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
            if upwards:
                reach[k] = high - term.value
            else:
                reach[k] = term.value - low
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
        # At equal errors on both sides, only the end on the side of the null can exclude it.
        side = "greater" if self.value > null else "less"
        if self.value == null:
            return 1.0
        return min(2.0 * self.p_value(null, side), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OuterInterval(Interval):
    """The outer of two intervals: terms at their bounds have no room there and make theirs too short."""

    first: Interval
    second: Interval

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
class UnseenClustersInterval(Interval):
    """An interval that allows for clusters unlike all that were drawn, in which the value is at a bound.

    Parameters
    ----------
    inner : Interval
    draws : float
        Drawn clusters, fewer if their sizes differ (Kish).
    fraction : float
        Share of the population's clusters that were drawn.
    """

    inner: Interval
    draws: float
    fraction: float

    @property
    def method(self) -> str:
        """The name of the method of the inner interval."""
        return self.inner.method

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        lowest, highest = self.bounds or (0.0, 1.0)
        low, high = self.inner.ends(confidence_level, alternative)
        below, above = (
            float(unseen_share(self.draws, self.fraction, error))
            for error in tail_shares(confidence_level, alternative)
        )
        value = float(self.value)
        return min(low, value - below * (value - lowest)), max(high, value + above * (highest - value))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudentInterval(OffsetInterval):
    """The farther of Student's t and of Hall's (1992) transformation of it, on both sides.

    Labels lean one way and curvature the other, so that both sides are moved.

    Parameters
    ----------
    standard_error, degrees_of_freedom : float
        Where the standard error is not known, the limits are the bounds.
    skewness : float
        γ of the estimate; 0 is Student's t.
    own_df : float
        The degrees of freedom at which it is transformed: those of the estimate by itself.
    """

    standard_error: Number
    degrees_of_freedom: Number
    skewness: Number = 0.0
    own_df: Number = np.inf

    method = "t"

    def with_df(self, degrees_of_freedom: float) -> Interval:
        """Return the limits with these degrees of freedom, where they have any."""
        has_freedom = np.isfinite(self.degrees_of_freedom)
        if has_freedom:
            return replace(self, degrees_of_freedom=degrees_of_freedom)
        return self

    def ends(self, confidence_level: float, alternative: str) -> Ends:
        """Return the lower and the upper limit."""
        has_error = np.isfinite(self.standard_error)
        # Unknown errors of all estimates, such as from one label.
        if not has_error.any():
            return self.bounds or (-np.inf, np.inf)
        if self.bounds is None and np.any((self.standard_error == 0) & np.isfinite(self.degrees_of_freedom)):
            raise nothing_varies()
        ends = OffsetInterval.ends(self, confidence_level, alternative)
        if has_error.all():
            return ends
        # An estimate with an unknown error excludes nothing.
        return (np.where(has_error, ends[0], -np.inf), np.where(has_error, ends[1], np.inf))

    def lengths(self, error: float, alternative: str) -> Ends:
        """Return how far the ends lie below and above the value."""
        quantile = -student_quantile(error, self.degrees_of_freedom)
        reach = self.standard_error * adjusted_quantile(quantile, -abs(self.skewness), self.own_df)
        if np.ndim(reach):
            return (reach, reach)
        return (float(reach), float(reach))

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value: below 1 − level just where the interval leaves `null` out."""
        if not np.isfinite(self.standard_error):
            return 1.0
        gap = self.value - null
        # A standard error of 0 excludes every other value: the statistic is infinite.
        with np.errstate(divide="ignore"):
            statistic = gap and float(np.divide(gap, self.standard_error))
        signed = {"two-sided": abs(statistic), "greater": statistic, "less": -statistic}[alternative]
        t = adjusted_statistic(np.array(signed), np.array(-abs(self.skewness)), self.own_df)
        tail = float(upper_tail(t, np.array(self.degrees_of_freedom)))
        if alternative == "two-sided":
            return min(2.0 * tail, 1.0)
        return tail


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkewedInterval(StudentInterval):
    """Student's limits of a linearised variable whose skewness is known, by any method that it has.

    Its numbers may be arrays (d,), of d estimates: the ends are (d,) each then.
    """

    method: str = "skewness-corrected"

    def of(self, index: int) -> SkewedInterval:
        """Return the limits of one of several estimates."""
        return replace(
            self,
            value=float(self.value[index]),
            standard_error=float(self.standard_error[index]),
            degrees_of_freedom=float(self.degrees_of_freedom[index]),
            skewness=float(self.skewness[index]),
            own_df=float(self.own_df[index]),
        )

    def by(self, method: str) -> Interval | None:
        """Return these limits, or those of Student's t or of the normal distribution."""
        if method == "t":
            return replace(self, skewness=0.0, method="t")
        if method == "normal":
            return replace(self, skewness=0.0, method="normal", degrees_of_freedom=np.inf, own_df=np.inf)
        if method in ("auto", self.method):
            return self
        return None


def nothing_varies() -> InputError:
    """Return the error of an estimate without bounds about which no label varies."""
    return InputError(
        "all labels agree, or equal the fitted values, so an interval without bounds would have width 0",
        action="Give the outcome's bounds, or label more units.",
    )
