"""`Candidate`: strata with an allocation of the budget, and how wide an interval they are expected to give.

A plan compares candidates at its own budget: strata that differ in number and in which small categories are
pooled, and a simple random sample. A larger budget suffices for all candidates of a smaller one, and gives
none of their strata fewer labels. So the narrowest candidate is never wider with more labels, although a
minimum for each of many small strata takes labels from the others.
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

# An earlier candidate is preferred if it is wider than the narrowest by no more than the rounding of whole
# numbers of labels, and three quarters of the narrowing by one more label, about 1/(2n (1 − f)). So a plan
# with one more label is at most .2 % wider, and no plan is 1 % wider than a simple random sample.
_ROUNDING_TOLERANCE = 0.0015
_SHARE_OF_NEXT_LABEL = 0.75
_MAX_TOLERANCE = 0.0095

# Standard errors below this share of a simple random sample's are as precise.
LARGEST_ERROR_RATIO = 1.0 + _MAX_TOLERANCE

# At this share of a simple random sample's standard error, rounding cannot make strata the less precise.
_CLEARLY_MORE_PRECISE = 0.97

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
        Whether the most variable outcomes are assumed, because nothing is expected of the proxy.
    """

    strata: Strata
    allocation: Allocation
    confidence_level: float
    estimator: str = "horvitz-thompson"
    is_worst_case: bool = False

    @cached_property
    def error(self) -> float:
        """Expected standard error; that of the worst labels if nothing is expected of the proxy."""
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

    def is_more_precise(self, simple: Candidate) -> bool:
        """Return whether the standard error is so small that whole numbers of labels do not matter."""
        return self.error <= _CLEARLY_MORE_PRECISE * simple.error


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

    It is the width for λ = 0, as much narrower as the standard error is smaller.
    """
    plain = math.sqrt(expected_variance(sizes, n_h, scenario.variances))
    width = planned_half_width(
        sizes,
        n_h,
        scenario.means,
        scenario.variances,
        bounds=scenario.bounds or bounds,
        confidence_level=confidence_level,
    )
    if plain > 0:
        return width * error / plain
    return width


def width_tolerance(n_labels: int, n_units: int) -> float:
    """Return the share by which an earlier candidate may be wider than the narrowest.

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
    """Return budgets above this one: the next ones, then powers of 1.1.

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
    """Return the bounds of the outcome for the worst case: 0 and 1 if they are unknown.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(groups={"g": ["a"]})
    >>> bounds_of_worst_case(stratal.strata.stratify(population, "none"))
    (0.0, 1.0)
    """
    low, high = strata.bounds
    if math.isfinite(high - low):
        return (low, high)
    return (0.0, 1.0)


def worst_error(strata: Strata, n_h: IntArray) -> float:
    """Return the largest possible standard error: half of each stratum's labels lie at either bound."""
    low, high = bounds_of_worst_case(strata)
    variances = np.full(len(n_h), ((high - low) / 2) ** 2)
    return math.sqrt(float(expected_variance(strata.sizes, n_h, variances)))
