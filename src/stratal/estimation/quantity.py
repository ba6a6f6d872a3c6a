"""`Quantity`: a number estimated from labels, with intervals and p-values of any level."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, names_mistyped
from stratal.intervals.interval import ConfidenceInterval, p_value, tail_shares
from stratal.intervals.proportion import clopper_pearson, student_quantile
from stratal.intervals.student import student_t
from stratal.report import Page, Printed, estimate_page, plain


class Reach(ABC):
    """What an interval is made of that reaches below and above the value by lengths of its own.

    Examples
    --------
    >>> issubclass(Parts, Reach)
    True
    """

    __slots__ = ()
    method: ClassVar[str] = "mover"

    def ends(self, value: float, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the interval around `value`."""
        error = max(tail_shares(confidence_level, alternative))
        # A one-sided end of less than 50 % lies beyond the value: as far as the other side's of the rest.
        mirrored = error > 0.5
        asked = (
            {"greater": "less", "less": "greater"}.get(alternative, alternative) if mirrored else alternative
        )
        below, above = self._reach(1.0 - error if mirrored else error, asked)
        if mirrored:
            below, above = -above, -below
        low = value - below if alternative != "less" else -np.inf
        return low, value + above if alternative != "greater" else np.inf

    @abstractmethod
    def _reach(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the value, `error` being left out on either side.

        What `alternative` does not ask for may be anything.
        """


class Term(Protocol):
    """An estimated number with intervals of its own.

    Examples
    --------
    >>> term: Term = Quantity(value=1.0, standard_error=0.1, degrees_of_freedom=4, n=5)
    >>> term.value
    1.0
    """

    @property
    def value(self) -> float:
        """The estimate."""

    def confidence_interval(
        self, confidence_level: float = 0.95, *, alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Return its interval."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts(Reach):
    """The terms of a sum of several quantities, for an interval made of theirs.

    Each end lies as far from the sum as the root of the correlated sum of squares of the terms' own
    distances ("MOVER", Zou & Donner 2008), so that skewness and small numbers are the terms' business.

    Parameters
    ----------
    terms : tuple of Term (K,)
    coefficients : float (K,)
        1/K for a mean, 1 and −1 for a difference.
    correlation : float (K, K)

    Examples
    --------
    >>> term = Quantity(value=1.0, standard_error=0.0, degrees_of_freedom=4, n=5, trials=5)
    >>> parts = Parts(terms=(term,) * 4, coefficients=np.full(4, 0.25), correlation=np.eye(4))
    >>> round(parts.ends(1.0, 0.95, "two-sided")[0], 2), round(term.confidence_interval().low, 2)
    (0.74, 0.48)
    """

    terms: tuple[Term, ...]
    coefficients: FloatArray
    correlation: FloatArray

    def _reach(self, error: float, alternative: str) -> tuple[float, float]:
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
        return (
            float(np.sqrt(max(lengths @ shared @ lengths, 0.0))) if np.all(np.isfinite(lengths)) else np.inf
        )


def nothing_varies() -> InputError:
    """Return the error of an outcome without bounds whose labels all agree."""
    return InputError(
        "all labels agree, so an interval of an unbounded outcome would have no width",
        action="Give the outcome's bounds, or label more units.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity(Printed):
    """An estimated number that is not a plain mean: a ratio, a metric, a difference.

    Its interval is Clopper–Pearson's on `trials` where they are given, else Student's t with
    `interval_error`, cut at the bounds.

    Parameters
    ----------
    value : float
        NaN where it is undefined.
    standard_error : float
        By linearisation.
    degrees_of_freedom : float
    n : int
        Labels that it rests on: for a metric or a domain those of its denominator.
    bounds : (float, float), optional
        What it cannot leave.
    trials : float, optional
        Independent trials as informative as the labels, infinite for a census.
    trials_freedom : float
        Degrees of freedom of the trials: fewer make the interval wider as Student's t is wider than the
        normal (Korn & Graubard 1998).
    interval_error : float, optional
        The standard error that the t interval takes; `standard_error` if not given.
    scale : {"identity", "dice"}
        Where the interval is made: "dice" is Clopper–Pearson's for the Jaccard index F / (2 − F), of which
        the F1 score is a monotone function.
    parts : Reach, optional
        For a mean of several quantities, and where a metric is known to be a function of two shares.
    notes : tuple of str
    labels : int, optional
        All that were given, where `n` are those of a denominator.

    Examples
    --------
    >>> metric = Quantity(
    ...     value=0.9, standard_error=0.05, degrees_of_freedom=30, n=40, bounds=(0, 1), trials=36)
    >>> low, high = metric.confidence_interval()
    >>> 0.75 < low < 0.9 < high < 1
    True
    """

    value: float
    standard_error: float
    degrees_of_freedom: float
    n: int
    bounds: tuple[float, float] | None = None
    trials: float | None = None
    trials_freedom: float = np.inf
    interval_error: float | None = None
    scale: str = "identity"
    parts: Reach | None = None
    notes: tuple[str, ...] = ()
    labels: int | None = None
    refuted: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def undefined(
        cls, n: int, bounds: tuple[float, float] | None, *notes: str, labels: int | None = None
    ) -> Quantity:
        """Return a quantity without a value, and why there is none."""
        return cls(
            value=np.nan,
            standard_error=np.nan,
            degrees_of_freedom=0.0,
            n=n,
            bounds=bounds,
            notes=notes,
            labels=labels,
        )

    @property
    def defined(self) -> bool:
        """Whether there is a value at all."""
        return bool(np.isfinite(self.value))

    @property
    def method(self) -> str:
        """How the interval is made."""
        if self.parts is not None:
            return self.parts.method if self.trials is None else f"clopper-pearson and {self.parts.method}"
        if self.trials is not None:
            return "clopper-pearson"
        return "t"

    @names_mistyped
    def confidence_interval(
        self, confidence_level: float = 0.95, alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Return a confidence interval; all that is possible where the value is undefined.

        Raises
        ------
        InputError
            For a level outside (0, 1), and where all labels of an unbounded quantity agree.
        """
        tail_shares(confidence_level, alternative)
        everything = (-np.inf, np.inf) if self.bounds is None else self.bounds
        low, high = self._ends(confidence_level, alternative) if self.defined else everything
        return ConfidenceInterval(
            low=low,
            high=high,
            confidence_level=confidence_level,
            method=self.method,
            alternative=alternative,
        )

    @names_mistyped
    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value of `null`; it agrees with `confidence_interval`."""
        if not self.defined:
            return float("nan")
        if isinstance(self.parts, Parts) and self.trials is None and alternative == "two-sided":
            # Both ends leave out as much, so that only the one on the null's side has to be found.
            side = "greater" if self.value > null else "less"
            return 1.0 if self.value == null else min(2.0 * self.p_value(null, side), 1.0)
        return p_value(null, lambda level: self._ends(level, alternative))

    def row(self, confidence_level: float, alternative: str = "two-sided") -> dict[str, Any]:
        """Return estimate, standard error and interval as plain numbers; None where undefined."""
        try:
            interval = self.confidence_interval(confidence_level, alternative)
            ends = plain([interval.low, interval.high])
        except InputError:
            ends = [None, None]
        return {
            "estimate": plain(self.value),
            "standard_error": plain(self.standard_error),
            "confidence_interval": None if ends == [None, None] else ends,
            "n": self.n,
        }

    def to_dict(self, confidence_level: float = 0.95) -> dict[str, Any]:
        """Return the JSON twin; what is not finite is None."""
        return {
            **self.row(confidence_level),
            "labels": self.n if self.labels is None else self.labels,
            "degrees_of_freedom": plain(self.degrees_of_freedom),
            "confidence_level": confidence_level,
            "interval_method": self.method,
            "bounds": None if self.bounds is None else plain(list(self.bounds)),
            "notes": list(self.notes),
        }

    def _page(self) -> Page:
        return estimate_page(self.to_dict())

    def _ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        if self.parts is not None and self.trials is None:
            lowest, highest = self.bounds or (-np.inf, np.inf)
            low, high = self.parts.ends(self.value, confidence_level, alternative)
            return max(low, lowest), min(high, highest)
        if self.trials is not None:
            low, high = self._binomial_ends(self.trials, confidence_level, alternative)
            if self.parts is None:
                return low, high
            # Terms at their bounds have no room on that side and make it too short: take the outer ends.
            other = self.parts.ends(self.value, confidence_level, alternative)
            lowest, highest = self.bounds or (0.0, 1.0)
            return max(min(low, other[0]), lowest), min(max(high, other[1]), highest)
        error = self.standard_error if self.interval_error is None else self.interval_error
        if not np.isfinite(error):
            return (-np.inf, np.inf) if self.bounds is None else self.bounds
        if error == 0 and self.bounds is None and np.isfinite(self.degrees_of_freedom):
            raise nothing_varies()
        ends = student_t(
            self.value,
            error,
            degrees_of_freedom=self.degrees_of_freedom,
            bounds=self.bounds or (-np.inf, np.inf),
            confidence_level=confidence_level,
            alternative=alternative,
        )
        return float(ends[0]), float(ends[1])

    def _binomial_ends(self, trials: float, confidence_level: float, alternative: str) -> tuple[float, float]:
        lowest, highest = self.bounds or (0.0, 1.0)
        scale = highest - lowest
        unit = min(max((self.value - lowest) / scale, 0.0), 1.0)
        unit = unit / (2.0 - unit) if self.scale == "dice" else unit
        trials *= _shrinkage(self.trials_freedom, confidence_level, alternative)
        low, high = (
            float(end)
            for end in clopper_pearson(
                unit, trials, confidence_level=confidence_level, alternative=alternative
            )
        )
        if self.scale == "dice":
            low, high = 2.0 * low / (1.0 + low), 2.0 * high / (1.0 + high)
        return lowest + scale * low, lowest + scale * high


def _shrinkage(degrees_of_freedom: float, confidence_level: float, alternative: str) -> float:
    """Return (z / t)², what few degrees of freedom leave of a number of trials."""
    if not np.isfinite(degrees_of_freedom):
        return 1.0
    share = min(max(tail_shares(confidence_level, alternative)), 0.49)
    normal, student = student_quantile(share, np.inf), student_quantile(share, max(degrees_of_freedom, 1.0))
    return float((normal / student) ** 2)
