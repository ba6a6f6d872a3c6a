"""Scales of drawings: from values to places, and round ticks between."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Places of values between `start` (at `low`) and `end` (at `high`).

    Examples
    --------
    >>> scale = Scale(0.0, 2.0, 10.0, 30.0)
    >>> scale(1.0), scale.open_ended(None, lower=False)
    (20.0, 30.0)
    """

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, values: Iterable[float | None], start: float, end: float) -> Scale:
        """Return the scale that holds all values that are there; its width is never zero."""
        known = [float(value) for value in values if value is not None] or [0.0, 1.0]
        low, high = min(known), max(known)
        if not high > low:
            low, high = low - 0.5, high + 0.5
        return cls(low, high, start, end)

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def open_ended(self, value: float | None, *, lower: bool) -> float:
        """Return the place of an interval's end; the scale's own end where it is open."""
        if value is None:
            return self.start if lower else self.end
        return self(value)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return up to `most` + 1 round numbers from `low` to `high`.

    Examples
    --------
    >>> ticks(0.911, 0.952)
    [0.92, 0.93, 0.94, 0.95]
    """
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round((first + k) * step, digits) + 0.0 for k in range(count)]
