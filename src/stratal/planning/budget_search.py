"""Search for the smallest budget whose interval reaches a target half-width, and check the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, not_positive_error
from stratal.strata import Strata

# A few evaluations are usual; bisection alone needs 24 for 10⁷ units.
MAX_EVALUATIONS = 24

# Relative precision of a budget: a search stops when it is known to within a hundredth.
_BUDGET_PRECISION = 100

# Each evaluation excludes at least an eighth of the remaining budgets, even if the interpolation is wrong.
_MIN_EXCLUDED = 8


def check_half_widths(half_widths: Any, count: int, population_stratum: Strata | None = None) -> FloatArray:
    """Return the target half-widths (J,) of J estimands, checked.

    For one estimand with bounds, given as the population as one stratum, a half-width that no interval within
    the bounds can exceed raises an error.
    """
    is_sequence = isinstance(half_widths, Sequence | np.ndarray)
    values = half_widths if is_sequence else [half_widths]
    if not all(isinstance(width, int | float | np.number) and 0 < width < math.inf for width in values):
        raise not_positive_error("half_width= (--half-width)", half_widths)
    if is_sequence and len(values) != count:
        raise InputError("there must be one half-width per estimand", given=len(values), allowed=f"{count}")
    if population_stratum is not None and count == 1:
        _refuse_wide_target(float(values[0]), population_stratum.bounds)
    return np.array(np.broadcast_to(np.asarray(values, np.float64), (count,)))


def _refuse_wide_target(half_width: float, bounds: tuple[float, float]) -> None:
    """Raise an error if every interval within the bounds is narrower than the target, often a percentage."""
    low, high = bounds
    if not math.isfinite(high - low) or half_width < (high - low) / 2:
        return
    if high == 1:
        action = f"For {half_width:g} percentage points write {half_width / 100:g}."
    else:
        action = "Half-widths are on the outcome's own scale."
    raise InputError(
        f"every interval for an outcome from {low:g} to {high:g} is narrower than the target",
        given=f"half_width={half_width:g} (--half-width {half_width:g})",
        allowed=f"above 0 and below {(high - low) / 2:g}",
        action=action,
    )


def smallest_budget(
    width: Callable[[int], float], target_half_width: float, start: int, min_budget: int, max_budget: int
) -> int:
    """Return the smallest budget, to within a hundredth, that reaches the target; `max_budget` if none does.

    Squared widths are about linear in 1/n, so that interpolation needs few evaluations.

    Parameters
    ----------
    width : callable
        Budget to half-width.
    target_half_width : float
    start : int
        Budget to evaluate first.
    min_budget, max_budget : int
        `max_budget` labels every unit, so that the width is 0 there.
    """
    target = target_half_width**2
    too_small = min_budget - 1
    sufficient = max_budget
    # Unknown until a budget that is too small has been evaluated.
    squared_too_small = math.nan
    squared_sufficient = 0.0
    budget = min(max(start, min_budget), max_budget)
    for _ in range(MAX_EVALUATIONS):
        squared = width(budget) ** 2
        if squared <= target:
            sufficient = budget
            squared_sufficient = squared
        else:
            too_small = budget
            squared_too_small = squared
        remaining = sufficient - too_small
        if remaining <= max(1, sufficient // _BUDGET_PRECISION):
            break
        if math.isfinite(squared_too_small):
            guess = _interpolate(
                target, (too_small, squared_too_small), (sufficient, squared_sufficient), sufficient
            )
        else:  # the width of a census is 0
            guess = _interpolate(target, (budget, squared), (max_budget, 0.0), sufficient)
        if guess is None:
            guess = (too_small + sufficient) // 2
        step = max(remaining // _MIN_EXCLUDED, 1)
        budget = min(max(guess, too_small + step), sufficient - step)
    return sufficient


def _interpolate(
    target: float, smaller: tuple[int, float], larger: tuple[int, float], max_result: int
) -> int | None:
    """Return the budget whose squared width is the target, on a line in 1/budget through two points.

    `smaller` and `larger` are (budget, squared width). None if the line does not reach the target.
    """
    smaller_budget, smaller_squared = smaller
    larger_budget, larger_squared = larger
    rise = smaller_squared - larger_squared
    if not math.isfinite(smaller_squared) or rise == 0:
        return None
    run = 1.0 / smaller_budget - 1.0 / larger_budget
    inverse_budget = 1.0 / larger_budget + (target - larger_squared) * run / rise
    if inverse_budget > 0:
        return math.ceil(min(1.0 / inverse_budget, max_result))
    return None
