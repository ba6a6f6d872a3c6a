"""`Candidate`: strata with an allocation of the budget, and how wide an interval they are expected to give.

The candidates of a plan are a simple random sample, and strata that differ in their number and in the small
categories that are pooled. A larger budget allows all candidates of a smaller one, and gives each of their
strata at least as many labels. So the interval of the narrowest candidate never becomes wider with more
labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.planning.expected_widths import normal_half_width, planned_half_width
from stratal.strata import Allocation, Strata
from stratal.strata.strata import Scenario, expected_variance, miscalibrated_rates

# The first candidate is preferred if it is wider than the narrowest by at most the effect of rounding to
# whole numbers of labels, plus three quarters of the narrowing by one more label, about 1/(2n (1 − f)). So a
# plan with one more label is at most .2 % wider, and no plan is 1 % wider than a simple random sample.
_ROUNDING_TOLERANCE = 0.0015
_SHARE_OF_NEXT_LABEL = 0.75
_MAX_TOLERANCE = 0.0095

# Strata count as equally precise as a simple random sample up to this ratio of their standard errors.
LARGEST_ERROR_RATIO = 1.0 + _MAX_TOLERANCE

# Below this ratio of standard errors, strata stay more precise whatever the rounding to whole labels.
_CLEARLY_SMALLER_ERROR_RATIO = 0.97

# Larger budgets to compare: the next 20 one by one for budgets up to 200, then powers of 1.1. With more
# labels, whole numbers matter less, and fewer budgets are compared.
_CONSECUTIVE_BUDGETS = 20
_SMALL_BUDGET = 200
_BUDGET_RATIO = 1.1


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Strata and the labels of each, with the precision that they are expected to give.

    Parameters
    ----------
    strata : Strata
        One stratum is a simple random sample.
    allocation : Allocation
    confidence_level : float
    estimator : str
    is_worst_case : bool
        Whether the most variable outcomes are assumed, because the proxy predicts no variance.
    """

    strata: Strata
    allocation: Allocation
    confidence_level: float
    estimator: str = "horvitz-thompson"
    is_worst_case: bool = False

    @cached_property
    def error(self) -> float:
        """Expected standard error; in the worst case the largest possible one."""
        if self.is_worst_case:
            return worst_error(self.strata, self.allocation.n_h)
        return float(self.expected.standard_errors(self.strata, self.allocation.n_h, self.estimator))

    @cached_property
    def half_width(self) -> float:
        """Half the expected width of the interval."""
        if self.is_worst_case:
            return normal_half_width(self.error, self.confidence_level)
        return scenario_half_width(
            self.strata.sizes,
            self.allocation.n_h,
            self.expected,
            bounds=self.strata.bounds,
            error=self.error,
            confidence_level=self.confidence_level,
        )

    @property
    def miscalibrated_variances(self) -> FloatArray:
        """Variances (12,) of the mean of outcomes 0 and 1, for each of `miscalibrated_rates`."""
        rates = miscalibrated_rates(self.strata)
        return np.asarray(expected_variance(self.strata.sizes, self.allocation.n_h, rates * (1.0 - rates)))

    @property
    def expected(self) -> Scenario:
        """The expected scenario (H,)."""
        return self.strata.scenarios.select(0)

    def is_as_precise(self, simple: Candidate) -> bool:
        """Return whether the standard error is above a simple random sample's by less than 1%."""
        return self.error <= LARGEST_ERROR_RATIO * simple.error

    def is_clearly_more_precise(self, simple: Candidate) -> bool:
        """Return whether the standard error is below a simple random sample's by at least 3%."""
        return self.error <= _CLEARLY_SMALLER_ERROR_RATIO * simple.error


def scenario_half_width(
    sizes: IntArray,
    n_h: IntArray,
    scenario: Scenario,
    *,
    bounds: tuple[float, float],
    error: float,
    confidence_level: float,
) -> float:
    """Return half the expected width in one scenario (H,), of an estimator with this standard error.

    It is the width for λ = 0, multiplied by the ratio of `error` to the standard error for λ = 0.
    """
    unadjusted_error = math.sqrt(expected_variance(sizes, n_h, scenario.variances))
    width = planned_half_width(
        sizes,
        n_h,
        scenario.means,
        scenario.variances,
        bounds=scenario.bounds or bounds,
        confidence_level=confidence_level,
    )
    if unadjusted_error > 0:
        return width * error / unadjusted_error
    return width


def width_tolerance(n_labels: int, n_units: int) -> float:
    """Return the share by which the first candidate may be wider than the narrowest.

    Examples
    --------
    >>> round(width_tolerance(20, 10_000), 4), round(width_tolerance(1000, 10_000), 4)
    (0.0095, 0.0019)
    """
    labels = max(n_labels * (1.0 - n_labels / n_units), 1.0)
    return min(_ROUNDING_TOLERANCE + _SHARE_OF_NEXT_LABEL / (2.0 * labels), _MAX_TOLERANCE)


def first_within_tolerance(candidates: Sequence[Candidate]) -> Candidate:
    """Return the first candidate that is about as narrow as the narrowest of them."""
    first = candidates[0]
    tolerance = width_tolerance(first.allocation.budget, first.strata.size)
    limit = (1.0 + tolerance) * min(candidate.half_width for candidate in candidates)
    return next(candidate for candidate in candidates if candidate.half_width <= limit)


def larger_budgets(budget: int, n_units: int) -> list[int]:
    """Return budgets above this one, up to all units: consecutive ones, then powers of 1.1.

    Examples
    --------
    >>> larger_budgets(40, 64)[:3], larger_budgets(40, 64)[-2:]
    ([41, 42, 43], [59, 60])
    """
    max_power = int(math.log(n_units, _BUDGET_RATIO))
    powers = [int(_BUDGET_RATIO**power) for power in range(max_power + 1)]
    n_consecutive = round(_CONSECUTIVE_BUDGETS * min(_SMALL_BUDGET / budget, 1.0))
    end = min(budget + max(n_consecutive, 1), n_units)
    return [*range(budget + 1, end), *(power for power in powers if power >= end)]


def bounds_of_worst_case(strata: Strata) -> tuple[float, float]:
    """Return the bounds of the outcome for the worst case: 0 and 1 if they are unknown."""
    low, high = strata.bounds
    if math.isfinite(high - low):
        return (low, high)
    return (0.0, 1.0)


def worst_error(strata: Strata, n_h: IntArray) -> float:
    """Return the largest standard error for n_h (H,): half of each stratum's outcomes lie at either bound."""
    low, high = bounds_of_worst_case(strata)
    variances = np.full(len(n_h), ((high - low) / 2) ** 2)
    return math.sqrt(float(expected_variance(strata.sizes, n_h, variances)))
