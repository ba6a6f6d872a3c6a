"""Cuts in the middle of the gaps between values: engines that work a formula out differ in the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stratal.arrays import FloatArray
from stratal.population.rules.crossed import Crossed
from stratal.population.rules.rule import CutPoints, Rule

DIGITS = 12
"""Values of a formula that agree in so many digits are one value."""


def in_digits(values: FloatArray) -> FloatArray:
    """Return values rounded to `DIGITS` significant digits.

    Examples
    --------
    >>> in_digits(np.array([1 / 3, 0.0, -20 / 3])).tolist()
    [0.333333333333, 0.0, -6.66666666667]
    """
    size = np.abs(values)
    digits = DIGITS - 1 - np.floor(np.log10(np.where(size > 0, size, 1.0)))
    scale = 10.0 ** np.clip(digits, -290, 290)
    return np.asarray(np.round(values * scale) / scale)


def cut_between(rule: Rule, values: FloatArray) -> Rule:
    """Return a rule that divides values (n,) alike, with each cut in the middle between two of them.

    Parameters
    ----------
    rule : Rule
        Cut points, or such within categories; any other is returned as it is.
    values : float (n,)
        In ascending order.

    Examples
    --------
    >>> cut_between(CutPoints(column="u", cuts=np.array([0.5])), np.array([0.1, 0.2, 0.5])).cuts
    array([0.35])
    """
    if isinstance(rule, Crossed):
        return replace(rule, inner=tuple(cut_between(part, values) for part in rule.inner))
    if not isinstance(rule, CutPoints) or len(rule.cuts) == 0:
        return rule
    above = np.searchsorted(values, rule.cuts)
    between = (above > 0) & (above < len(values))
    low, high = values[np.maximum(above - 1, 0)], values[np.minimum(above, len(values) - 1)]
    return replace(rule, cuts=np.where(between, low + (high - low) / 2.0, rule.cuts))
