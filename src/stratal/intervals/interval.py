"""`Interval`: the protocol of all interval methods, with the p-value that agrees with an interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

import numpy as np

from stratal.arrays import FloatArray, Number
from stratal.errors import InputError, check_choice, invalid_confidence_level_error

# Decimals of an error probability; see `tail_shares`.
_DIGITS = 15

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
        How it was made, `auto` resolved.
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
    """Raise an `InputError` for anything but a number between 0 and 1."""
    if not isinstance(confidence_level, int | float | np.number) or not 0.0 < confidence_level < 1.0:
        raise invalid_confidence_level_error(confidence_level)


# Confidence level instead of 0, for which there is no interval.
_MIN_LEVEL = 1e-12


def two_sided_level(error: float) -> float:
    """Return the confidence level with an error on each side; with errors of one half, it is nearly 0."""
    return max(1.0 - 2.0 * error, _MIN_LEVEL)


def tail_shares(confidence_level: float, alternative: str) -> tuple[float, float]:
    """Return the error probabilities of an interval: how much may lie under `low`, and over `high`.

    Raises
    ------
    InputError
        For a level outside (0, 1) or an unknown alternative.
    """
    check_confidence_level(confidence_level)
    check_choice("alternative", alternative, ALTERNATIVES)
    # 1 − .975 and (1 − .95) / 2 differ in their last bits, and what is made of them would too.
    error = round(1.0 - confidence_level, _DIGITS) or 1.0 - confidence_level
    if alternative == "two-sided":
        return error / 2.0, error / 2.0
    if alternative == "less":
        return (0.0, error)
    return (error, 0.0)


# Stands for infinity in the search for a p-value, which subtracts.
_FAR = 1e300
# Stands for the distance of a null that is an end of the interval, which contains its ends.
_AT_AN_END = 1e-300


def p_value(null: float, interval: Callable[[float], Ends]) -> float:
    """Return the p-value of `null`: one minus the smallest level whose interval contains it.

    Found by root search on the level, so that a test and an interval can never contradict each other.

    Parameters
    ----------
    null : float
        The hypothetical value.
    interval : callable
        Confidence level to (low, high); the intervals must be nested.

    Raises
    ------
    InputError
        If `null` is not a number.
    """

    if not isinstance(null, Real) or np.isnan(float(null)):
        raise InputError("the hypothetical value is not a number", given=repr(null), allowed="a number")

    from scipy.optimize import brentq  # takes longer to import than anything else here

    def inside(level: float) -> float:
        """Return how far within the interval the null lies: positive inside and at its ends, else negative.

        A limit may lie at a bound of the estimate for a range of levels, of which the root is the smallest.
        """
        low, high = interval(level)
        distance = float(np.clip(min(null - low, high - null), -_FAR, _FAR))
        if distance != 0.0:
            return distance
        return _AT_AN_END

    # At levels of 0 and 1 there is no interval.
    smallest = 1e-12
    largest = 1.0 - 1e-12
    if inside(smallest) > 0:
        return 1.0
    if inside(largest) < 0:
        return 0.0
    # On log(1 − level) small p-values keep their relative precision.
    ends = np.log1p(-smallest), np.log1p(-largest)
    log_error = brentq(lambda error: inside(-np.expm1(error)), *ends, xtol=1e-12, maxiter=500)
    return float(np.exp(log_error))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interval(ABC):
    """The interval of an estimate at any level: the one protocol of all interval methods.

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
        """Return the p-value: one minus the highest level whose interval excludes `null`."""
        return p_value(null, lambda level: self.ends(level, alternative))

    def by(self, method: str) -> Interval | None:
        """Return the interval by one of its own methods; None for any other."""
        if method == "auto":
            return self
        return None

    def with_df(self, degrees_of_freedom: float) -> Interval:
        """Return the interval with the degrees of freedom of all estimates that hold together."""
        return self

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends cut at the bounds."""
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


# Probability with which a sample misses a share of units: the usual error of a 95% statement.
UNSEEN_PROBABILITY = 0.05


def unseen_share(draws: Number, fraction: Number, error: float) -> FloatArray:
    """Return the largest share (…,) of units that `draws` labels can have missed.

    Parameters
    ----------
    draws : float (…,)
        Labels, or the number of equally weighted ones that they are worth.
    fraction : float (…,)
        Share of the population that is labelled; the rest alone can be unseen. 0 for an endless one.
    error : float
        Its probability; 0 where that side is open.
    """
    if error <= 0:
        return np.zeros(np.shape(draws))
    share = -np.expm1(np.log(error) / np.maximum(draws, 1.0))
    return np.asarray(np.minimum((1.0 - fraction / 2.0) * share, 1.0 - fraction))
