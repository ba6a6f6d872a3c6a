"""Types of intervals for estimates other than means; estimands select and combine them.

They are: a binomial interval at an effective number of trials, Student's t with or without a correction for
skewness, the interval of a sum of estimates, and the outer ends of two intervals.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from stratal.arrays import FloatArray, Number, field_values
from stratal.errors import InputError
from stratal.intervals.interval import (
    Ends,
    Interval,
    check_alternative,
    check_confidence_level,
    error_probabilities,
    joint_method,
    max_unseen_share,
    p_value_by_inversion,
)
from stratal.intervals.proportion import (
    adjusted_quantile,
    adjusted_statistic,
    clopper_pearson,
    df_correction,
    student_quantile,
    upper_tail,
)
from stratal.protocols import Keywords

# An object with a `value` and a `confidence_interval`: an `Interval`, or an `Estimate`, which this
# subpackage cannot import.
Term: TypeAlias = Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UndefinedInterval(Interval):
    """The interval of an estimate that the labels do not define: all possible values."""

    value: float = np.nan

    method = "every possible value"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the bounds."""
        check_confidence_level(confidence_level)
        check_alternative(alternative)
        return self.bounds or (-np.inf, np.inf)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return NaN."""
        return float("nan")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinomialInterval(Interval):
    """Clopper–Pearson's interval at an effective number of trials (Korn & Graubard 1998).

    Parameters
    ----------
    trials : float
        Effective number of trials.
    degrees_of_freedom : float
        Degrees of freedom of the variance that determined `trials`; infinite if the design determined them.
    scale : {"identity", "dice"}
        With "dice", the value is 2 p / (1 + p) of a proportion p, as F1 is of the Jaccard index, and the
        interval is that of p, transformed.
    """

    trials: float
    degrees_of_freedom: float = np.inf
    scale: str = "identity"

    method = "clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        lowest, highest = self.bounds or (0.0, 1.0)
        width = highest - lowest
        proportion = min(max((self.value - lowest) / width, 0.0), 1.0)
        if self.scale == "dice":
            proportion = proportion / (2.0 - proportion)
        error = max(error_probabilities(confidence_level, alternative))
        trials = self.trials * df_correction(np.inf, max(self.degrees_of_freedom, 1.0), error)
        ends = clopper_pearson(proportion, trials, confidence_level=confidence_level, alternative=alternative)
        low, high = map(float, ends)
        if self.scale == "dice":
            low = 2.0 * low / (1.0 + low)
            high = 2.0 * high / (1.0 + high)
        return lowest + width * low, lowest + width * high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OffsetInterval(Interval):
    """An interval from value − offset below to value + offset above."""

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        error = max(error_probabilities(confidence_level, alternative))
        if error > 0.5:
            # A lower limit at a level below 50% is the upper limit at 100% minus this level, and vice versa.
            opposite = {"greater": "less", "less": "greater"}.get(alternative, alternative)
            above, below = (-offset for offset in self.offsets(1.0 - error, opposite))
        else:
            below, above = self.offsets(error, alternative)
        low = self.value - below
        high = self.value + above
        if alternative == "less":
            low = -np.inf
        if alternative == "greater":
            high = np.inf
        return self.clip_to_bounds(low, high)

    @abstractmethod
    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the ends below and above the value, at the error probability of each side.

        The distance on the side that `alternative` leaves open is not used.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumInterval(OffsetInterval):
    """The interval of a weighted sum of estimates, from the intervals of the estimates.

    The squared distance of an end is the correlated sum of the squared distances of the terms ("MOVER", Zou &
    Donner 2008). The intervals of the terms already allow for skewness and few labels.

    Parameters
    ----------
    terms : tuple of Term (K,)
    coefficients : float (K,)
        Weights of the terms: 1/K for a mean, 1 and −1 for a difference.
    correlation : float (K, K)
        Correlations of the terms.
    """

    terms: tuple[Term, ...]
    coefficients: FloatArray
    correlation: FloatArray

    method = "mover"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the ends below and above the sum."""
        if alternative == "less":
            below = np.inf
        else:
            below = self._distance(error, -1.0)
        if alternative == "greater":
            above = np.inf
        else:
            above = self._distance(error, 1.0)
        return below, above

    def _distance(self, error: float, direction: float) -> float:
        """Return the distance of the end above (`direction` 1) or below (−1) the sum."""
        level = max(1.0 - error, 0.5)
        signs = np.sign(self.coefficients)
        distances = np.empty(len(self.terms))
        for k, term in enumerate(self.terms):
            upwards = signs[k] * direction > 0
            low, high = term.confidence_interval(level, alternative="less" if upwards else "greater")
            if upwards:
                distances[k] = high - term.value
            else:
                distances[k] = term.value - low
        # Correlations that shorten the interval are not used. Otherwise, the ends of a higher level could lie
        # inside those of a lower level.
        lengthening = np.maximum(self.correlation * np.outer(signs, signs), 0.0)
        weighted_distances = distances * np.abs(self.coefficients)
        if not np.all(np.isfinite(weighted_distances)):
            return np.inf
        return float(np.sqrt(max(weighted_distances @ lengthening @ weighted_distances, 0.0)))

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value of `null`."""
        if alternative != "two-sided":
            return p_value_by_inversion(null, lambda level: self.ends(level, alternative))
        if self.value == null:
            return 1.0
        # The errors of both sides are equal, and only the end on the side of the null can exclude it.
        side = "greater" if self.value > null else "less"
        return min(2.0 * self.p_value(null, side), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OuterInterval(Interval):
    """The smaller lower end and the larger upper end of two intervals.

    If terms of a sum are at their bounds, the interval of the sum is too short.
    """

    first: Interval
    second: Interval

    @property
    def method(self) -> str:
        """The name of the method."""
        return joint_method(self.first.method, self.second.method)

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        low, high = self.first.ends(confidence_level, alternative)
        second_low, second_high = self.second.ends(confidence_level, alternative)
        return self.clip_to_bounds(min(low, second_low), max(high, second_high))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnseenClustersInterval(Interval):
    """An interval that allows for undrawn clusters in which all units have the lowest, or highest, outcome.

    Parameters
    ----------
    inner : Interval
        The interval without this allowance.
    draws : float
        Effective number of drawn clusters: fewer if their sizes differ (Kish).
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
        share_below, share_above = (
            float(max_unseen_share(self.draws, self.fraction, error))
            for error in error_probabilities(confidence_level, alternative)
        )
        value = float(self.value)
        return (
            min(low, value - share_below * (value - lowest)),
            max(high, value + share_above * (highest - value)),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudentInterval(OffsetInterval):
    """Student's t, with both ends moved outwards by Hall's (1992) transformation for skewness.

    The skewness of the labels and the curvature of the estimand may have opposite signs, so that either end
    may be too near.

    Parameters
    ----------
    standard_error, degrees_of_freedom : float
        If the standard error is NaN, the ends are the bounds.
    skewness : float
        γ of the estimate; with 0, the interval is Student's t.
    transformation_df : float
        Degrees of freedom of the transformation. They are those of the single estimate, also if
        `degrees_of_freedom` are those of several simultaneous estimates.
    """

    standard_error: Number
    degrees_of_freedom: Number
    skewness: Number = 0.0
    transformation_df: Number = np.inf

    method = "t"

    def with_df(self, degrees_of_freedom: float) -> Interval:
        """Return the interval with these degrees of freedom. A normal interval does not change."""
        if np.isfinite(self.degrees_of_freedom):
            return replace(self, degrees_of_freedom=degrees_of_freedom)
        return self

    def ends(self, confidence_level: float, alternative: str) -> Ends:
        """Return the lower and the upper limit."""
        has_error = np.isfinite(self.standard_error)
        # One label determines no standard error.
        if not has_error.any():
            return self.bounds or (-np.inf, np.inf)
        if self.bounds is None and np.any((self.standard_error == 0) & np.isfinite(self.degrees_of_freedom)):
            raise no_variation_error()
        ends = OffsetInterval.ends(self, confidence_level, alternative)
        if has_error.all():
            return ends
        # Without a standard error, no value is excluded.
        return (np.where(has_error, ends[0], -np.inf), np.where(has_error, ends[1], np.inf))

    def offsets(self, error: float, alternative: str) -> Ends:
        """Return the distance of the ends from the value, the same below and above."""
        quantile = -student_quantile(error, self.degrees_of_freedom)
        # With a negative skewness, the distance is that of the longer side.
        n_errors = adjusted_quantile(quantile, -abs(self.skewness), self.transformation_df)
        distance = self.standard_error * n_errors
        if np.ndim(distance):
            return (distance, distance)
        return (float(distance), float(distance))

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value. It is below 1 − level exactly if the interval of this level excludes `null`."""
        if not np.isfinite(self.standard_error):
            return 1.0
        difference = self.value - null
        # A standard error of 0 excludes every other value: the statistic is infinite.
        with np.errstate(divide="ignore"):
            statistic = difference and float(np.divide(difference, self.standard_error))
        t = {"two-sided": abs(statistic), "greater": statistic, "less": -statistic}[alternative]
        t = adjusted_statistic(np.array(t), np.array(-abs(self.skewness)), self.transformation_df)
        tail = float(upper_tail(t, np.array(self.degrees_of_freedom)))
        if alternative == "two-sided":
            return min(2.0 * tail, 1.0)
        return tail


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkewedInterval(StudentInterval):
    """The interval of a linearised variable with known skewness, which is also offered as "t" and "normal".

    The numbers may be arrays (d,) for d estimates. Then each end is (d,), too.
    """

    method: str = "skewness-corrected"

    def of(self, index: int) -> SkewedInterval:
        """Return the interval of one of several estimates."""
        names = ("value", "standard_error", "degrees_of_freedom", "skewness", "transformation_df")
        arrays = field_values(self, names)
        numbers: Keywords = {name: float(array[index]) for name, array in arrays.items()}
        return replace(self, **numbers)

    def with_method(self, method: str) -> Interval | None:
        """Return this interval, or that of Student's t or of the normal distribution."""
        if method == "t":
            return replace(self, skewness=0.0, method="t")
        if method == "normal":
            return replace(
                self, skewness=0.0, method="normal", degrees_of_freedom=np.inf, transformation_df=np.inf
            )
        if method in ("auto", self.method):
            return self
        return None


def no_variation_error() -> InputError:
    """Return the error for an estimate without bounds if all labels agree."""
    return InputError(
        "all labels agree, or equal the fitted values, so an interval without bounds would have width 0",
        action="Give the outcome's bounds, or label more units.",
    )
