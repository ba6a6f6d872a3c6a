"""A printed claim as numbers: what comes out here, how far from the print, and whether that is much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

_NOISE = 2.0
"""Monte Carlo standard errors that a number may lie beyond its tolerance before the answer is no."""

LEAST_SETS = 5
"""Sets that a claim on tasks in general needs for a verdict: of fewer, one odd set is a fifth or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number that a claim rests on, beside the range that the paper prints.

    Parameters
    ----------
    value : float
        What comes out here.
    error : float
        Its Monte Carlo standard error; 0 for closed forms.
    low, high : float
        The printed range, or one end of it where only a direction is printed.
    tolerance : float
        How far beyond that range still counts as agreement: the accuracy of the print.
    unit : str

    Examples
    --------
    >>> number = Number(value=0.30, error=0.01, low=0.40, high=0.45, tolerance=0.05)
    >>> round(number.deviation, 2), number.holds
    (-0.1, False)
    >>> Number(value=0.93, error=0.02, high=1.0).holds
    True
    """

    value: float
    error: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    tolerance: float = 0.0
    unit: str = ""

    @property
    def deviation(self) -> float:
        """How far the value lies outside the printed range, with its sign; 0 inside."""
        return min(self.value - self.low, 0.0) + max(self.value - self.high, 0.0)

    @property
    def excess(self) -> float:
        """How far it lies beyond the tolerance; negative inside."""
        inside = max(self.low - self.value, self.value - self.high)
        return inside - self.tolerance if math.isfinite(inside) else -math.inf

    @property
    def holds(self) -> bool | None:
        """Whether the value agrees; None where only Monte Carlo noise separates it from agreement."""
        if not math.isfinite(self.value):
            return False
        if self.excess <= 0:
            return True
        return None if self.excess <= _NOISE * self.error else False


Pair = tuple[float, float]
"""A value and its Monte Carlo standard error."""


def within(found: Pair, low: float, high: float, tolerance: float = 0.0, unit: str = "") -> Number:
    """Return a value and its error beside a printed range.

    Examples
    --------
    >>> within((0.42, 0.01), 0.4, 0.45).holds
    True
    """
    value, error = found
    return Number(value=value, error=error, low=low, high=high, tolerance=tolerance, unit=unit)


def near(found: Pair, printed: float, tolerance: float = 0.0, unit: str = "") -> Number:
    """Return a value and its error beside one printed number."""
    return within(found, printed, printed, tolerance, unit)


def at_least(found: Pair, low: float, tolerance: float = 0.0, unit: str = "") -> Number:
    """Return a value and its error beside a least value."""
    return within(found, low, math.inf, tolerance, unit)


def at_most(found: Pair, high: float, tolerance: float = 0.0, unit: str = "") -> Number:
    """Return a value and its error beside a largest value."""
    return within(found, -math.inf, high, tolerance, unit)


def less(one: Pair, other: Pair) -> Pair:
    """Return the difference of two independent values, and its error.

    Examples
    --------
    >>> less((0.5, 0.3), (0.25, 0.4))
    (0.25, 0.5)
    """
    return one[0] - other[0], joint(one[1], other[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One row of "paper says / we get".

    Parameters
    ----------
    where : str
        Figure, table or section of the paper.
    says : str
        What is printed, in our words.
    found : str
        What comes out here.
    numbers : tuple of Number
        What the verdict rests on; all must agree. None where the data could not be had.
    sets : int, optional
        How many sets a claim on tasks in general rests on.
    data : str
        The data's name; simulated stand-ins say so.

    Examples
    --------
    >>> claim = Claim(where="Fig. 2", says="narrower by 10 %", found="by 12 %",
    ...               numbers=(Number(value=12.0, error=0.4, low=10.0, tolerance=1.0, unit=" points"),))
    >>> claim.verdict
    'yes'
    """

    where: str
    says: str
    found: str
    numbers: tuple[Number, ...]
    data: str = ""
    sets: int | None = None

    @property
    def worst(self) -> Number:
        """The number that is furthest from agreeing."""
        order = {False: 2, None: 1, True: 0}
        numbers = self.numbers or (Number(value=math.nan, error=math.nan),)
        return max(numbers, key=lambda number: (order[number.holds], number.excess))

    @property
    def holds(self) -> bool | None:
        """Whether every number agrees; None where noise, too few sets or no data leave it open."""
        few = not self.numbers or (self.sets is not None and self.sets < LEAST_SETS)
        return None if few else self.worst.holds

    @property
    def verdict(self) -> str:
        """The claim's last column."""
        worst = self.worst
        if not self.numbers:
            return "not run: no data"
        if self.holds is None and worst.holds is not None:
            return f"open: {self.sets} sets are too few"
        if worst.holds is None:
            return "open: within the noise"
        if not worst.holds:
            return "**no**"
        return "yes" if worst.deviation == 0 else "yes, within what is allowed"

    @property
    def off(self) -> str:
        """How far off the worst number is, or how much room it has inside a one-sided range."""
        worst = self.worst
        if not math.isfinite(worst.value):
            return "not reached" if self.numbers else "unknown"
        if worst.deviation != 0:
            return f"{worst.deviation:+.2g}{worst.unit}"
        both = math.isfinite(worst.low) and math.isfinite(worst.high)
        room = min(worst.value - worst.low, worst.high - worst.value)
        return "0" if both or not math.isfinite(room) else f"0 (room {room:.2g}{worst.unit})"

    def row(self) -> list[str]:
        """Return the cells of the page's table."""
        worst = self.worst
        error, allowed = (
            f"{x:.1g}{worst.unit}" if x and math.isfinite(x) else "0" if x == 0 else "unknown"
            for x in (worst.error, worst.tolerance)
        )
        return [self.where, self.says, self.data, self.found, self.off, error, allowed, self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        worst = self.worst
        return {
            "where": self.where,
            "paper_says": self.says,
            "data": self.data,
            "we_get": self.found,
            "deviation": _finite(worst.deviation),
            "monte_carlo_error": _finite(worst.error),
            "tolerance": worst.tolerance,
            "agrees": self.holds,
            "values": [[_finite(number.value), _finite(number.error)] for number in self.numbers],
        }


def _finite(value: float) -> float | None:
    """Return ten digits of a value, which is more than a change of the order of additions moves."""
    return float(f"{value:.10g}") if math.isfinite(value) else None


def joint(*errors: float) -> float:
    """Return the Monte Carlo error of a sum or difference of independent numbers.

    Examples
    --------
    >>> joint(0.3, 0.4)
    0.5
    """
    return math.hypot(*errors)
