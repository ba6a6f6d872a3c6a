"""Whole numbers in floating point: which are exact, and counts that rounding moved off a whole number."""

from __future__ import annotations

import math

import numpy as np

from stratal.arrays import FloatArray

# A double represents every whole number up to this one; beyond it, neighbours are the same number.
MAX_EXACT_INTEGER = 2.0**53

# Amount by which rounding may move the result of a few operations off a whole number.
COUNT_ROUNDING = 1e-9


def rounded_up(number: float) -> int:
    """Return the next whole number, apart from rounding errors.

    >>> 0.07 * 100, rounded_up(0.07 * 100)
    (7.000000000000001, 7)
    """
    return math.ceil(number - COUNT_ROUNDING)


def all_rounded_up(numbers: FloatArray) -> FloatArray:
    """Return the next whole number of each number, apart from rounding errors."""
    return np.asarray(np.ceil(numbers - COUNT_ROUNDING))


def rounded_down(number: float) -> int:
    """Return the previous whole number, apart from rounding errors."""
    return math.floor(number + COUNT_ROUNDING)
