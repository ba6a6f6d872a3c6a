"""`Interval`: the base class of all interval methods, and the p-value that agrees with an interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

import numpy as np

from stratal.arrays import FloatArray, Number
from stratal.errors import InputError, check_choice, invalid_confidence_level_error

# Decimals to which an error probability is rounded; see `error_probabilities`.
_ERROR_DECIMALS = 15

# Names as in SciPy: `less` has only an upper limit, `greater` only a lower one.
ALTERNATIVES = ("two-sided", "less", "greater")

# The lower and the upper end of an interval.
Ends: TypeAlias = tuple[Number, Number]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceInterval:
    """A confidence interval that can be unpacked: `low, high = interval`.

    Parameters
    ----------
    low, high : float
        In the outcome's units; infinite on the open side of a one-sided interval of an unbounded outcome.
    confidence_level : float
    method : str
        Name of the method that was used; `auto` is replaced by the method that it selected.
    alternative : {"two-sided", "less", "greater"}
        `less` bounds the value from above, `greater` from below, as in SciPy.
    """

    low: float
    high: float
    confidence_level: float
    method: str
    alternative: str = "two-sided"

    def __iter__(self) -> Iterator[float]:
        yield self.low
        yield self.high

    @property
    def width(self) -> float:
        """`high − low`."""
        return self.high - self.low

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def check_confidence_level(confidence_level: object) -> None:
    """Raise an `InputError` unless the confidence level is a number between 0 and 1."""
    if not isinstance(confidence_level, int | float | np.number) or not 0.0 < confidence_level < 1.0:
        raise invalid_confidence_level_error(confidence_level)


def check_alternative(alternative: object) -> None:
    """Raise an `InputError` for an unknown alternative."""
    check_choice("alternative", alternative, ALTERNATIVES)


# Smallest and largest confidence level at which intervals are computed: at 0 and 1 there is none.
_MIN_LEVEL = 1e-12
_MAX_LEVEL = 1.0 - 1e-12


def two_sided_level(error: float) -> float:
    """Return the confidence level of an interval with this error probability on each side."""
    return max(1.0 - 2.0 * error, _MIN_LEVEL)


def error_probabilities(confidence_level: float, alternative: str) -> tuple[float, float]:
    """Return the probabilities that the true value lies below `low`, and above `high`.

    The probability of a side without a limit is 0.

    Raises
    ------
    InputError
        For a level outside (0, 1) or an unknown alternative.
    """
    check_confidence_level(confidence_level)
    check_alternative(alternative)
    # 1 − .975 and (1 − .95) / 2 differ in their last bits. Rounding makes their limits equal. A probability
    # that would be rounded to 0 is kept.
    error = round(1.0 - confidence_level, _ERROR_DECIMALS) or 1.0 - confidence_level
    if alternative == "two-sided":
        return error / 2.0, error / 2.0
    if alternative == "less":
        return (0.0, error)
    return (error, 0.0)


# Replaces an infinite distance in the root search, which subtracts distances.
_MAX_DISTANCE = 1e300
# Replaces a distance of 0: an interval contains its ends.
_MIN_DISTANCE = 1e-300


def p_value_by_inversion(null: float, interval: Callable[[float], Ends]) -> float:
    """Return the p-value of `null`: one minus the smallest level whose interval contains it.

    It is the root of a search over the level, so that the test and the interval always agree.

    Parameters
    ----------
    null : float
        The hypothetical value.
    interval : callable
        Returns (low, high) for a confidence level. The interval of a higher level must contain that of a
        lower level.

    Raises
    ------
    InputError
        If `null` is not a number.
    """
    if not isinstance(null, Real) or np.isnan(float(null)):
        raise InputError("the hypothetical value is not a number", given=repr(null), allowed="a number")

    from scipy.optimize import brentq  # slow to import

    def signed_distance(level: float) -> float:
        """Return the distance from the null to the nearer end, negative if the interval excludes the null.

        It is positive at an end. If an end is the same for a range of levels, the root is the smallest level.
        """
        low, high = interval(level)
        distance = float(np.clip(min(null - low, high - null), -_MAX_DISTANCE, _MAX_DISTANCE))
        if distance != 0.0:
            return distance
        return _MIN_DISTANCE

    if signed_distance(_MIN_LEVEL) > 0:
        return 1.0
    if signed_distance(_MAX_LEVEL) < 0:
        return 0.0

    # The search is over log(1 − level), so that small p-values keep their relative precision.
    def distance_at(log_error: float) -> float:
        return signed_distance(-np.expm1(log_error))

    highest = np.log1p(-_MIN_LEVEL)
    lowest = np.log1p(-_MAX_LEVEL)
    return float(np.exp(brentq(distance_at, highest, lowest, xtol=1e-12, maxiter=500)))


def joint_method(*methods: str) -> str:
    """Return the name of an interval with limits of several methods, each of them once.

    Examples
    --------
    >>> joint_method("fisher and mover", "fisher")
    'fisher and mover'
    """
    names = dict.fromkeys(name for method in methods for name in method.split(" and "))
    return " and ".join(names)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interval(ABC):
    """The interval of an estimate at any confidence level: the base class of all interval methods.

    Parameters
    ----------
    value : float
        The estimate; an array of estimates for some subclasses.
    bounds : (float, float), optional
        Smallest and largest possible value.
    """

    value: Number
    bounds: tuple[float, float] | None = None

    @property
    @abstractmethod
    def method(self) -> str:
        """The name of the method."""

    @abstractmethod
    def ends(self, confidence_level: float, alternative: str) -> Ends:
        """Return the lower and the upper end."""

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value of `null`; see `p_value_by_inversion`."""
        return p_value_by_inversion(null, lambda level: self.ends(level, alternative))

    def with_method(self, method: str) -> Interval | None:
        """Return the interval by another method, or None if this interval does not offer the method."""
        if method == "auto":
            return self
        return None

    def with_df(self, degrees_of_freedom: float) -> Interval:
        """Return the interval with the common degrees of freedom of simultaneous estimates."""
        return self

    def clip_to_bounds(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends, moved to the nearer bound if they lie outside the bounds."""
        if self.bounds is None:
            return low, high
        lowest, highest = self.bounds
        return max(low, lowest), min(high, highest)

    def confidence_interval(
        self, confidence_level: float = 0.95, alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Return the interval at one level."""
        low, high = self.ends(confidence_level, alternative)
        return ConfidenceInterval(
            low=low, high=high, confidence_level=confidence_level, method=self.method, alternative=alternative
        )


# Error probability of `max_unseen_share` in notes: that of a one-sided 95% limit.
UNSEEN_PROBABILITY = 0.05


def max_unseen_share(draws: Number, fraction: Number, error: float) -> FloatArray:
    """Return the largest share (…,) of units unlike all labels, as an upper confidence limit.

    Parameters
    ----------
    draws : float (…,)
        Number of labels, or of equally weighted labels with the same precision.
    fraction : float (…,)
        Labelled share of the population; 0 for an infinite population.
    error : float
        Error probability of the limit; with 0, the share is 0.
    """
    if error <= 0:
        return np.zeros(np.shape(draws))
    binomial_limit = -np.expm1(np.log(error) / np.maximum(draws, 1.0))  # (1 − share)^draws = error
    # Without replacement, the limit is about (N − n/2) / N times the binomial one.
    return np.asarray(np.minimum((1.0 - fraction / 2.0) * binomial_limit, 1.0 - fraction))
