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

from stratal.arrays import IntArray
from stratal.planning.expected_widths import normal_half_width, planned_half_width
from stratal.strata import Allocation, Strata
from stratal.strata.strata import Scenario, expected_variance

# An earlier candidate is preferred if it is wider than the narrowest by no more than the rounding of whole
# numbers of labels, and half of what a further label narrows the interval by, about 1/(2n (1 − f)). So a plan
# with a label more is at most .2 % wider, and none is 1 % wider than a simple random sample.
_ROUNDING = 0.0015
_OF_A_LABEL = 0.5
_MOST_WIDER = 0.0095

# Share of a simple random sample's standard error below which no rounding makes strata the less precise.
_FAR_MORE_PRECISE = 0.97

# Budgets that are looked at one by one up to a budget of 200, and the ratio of those beyond. With more
# labels, whole numbers matter less, and fewer are looked at.
_NEXT = 20
_SMALL_BUDGET = 200
_RATIO = 1.1


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
    blind : bool
        Whether nothing is expected of the proxy, so that the worst labels are planned for.
    """

    strata: Strata
    allocation: Allocation
    confidence_level: float
    estimator: str = "horvitz-thompson"
    blind: bool = False

    @cached_property
    def error(self) -> float:
        """Expected standard error; that of the worst labels if nothing is expected of the proxy."""
        if self.blind:
            return worst_error(self.strata, self.allocation.n_h)
        return float(self._expected.standard_errors(self.strata, self.allocation.n_h, self.estimator))

    @cached_property
    def half_width(self) -> float:
        """Half the expected width of the interval."""
        if self.blind:
            return normal_half_width(self.error, self.confidence_level)
        return scenario_half_width(
            self.strata.sizes,
            self.allocation.n_h,
            self._expected,
            bounds=self.strata.bounds,
            error=self.error,
            confidence_level=self.confidence_level,
        )

    @property
    def _expected(self) -> Scenario:
        return self.strata.scenarios.way(0)

    def is_as_precise(self, simple: Candidate) -> bool:
        """Return whether the standard error is above a simple random sample's by less than 1 %."""
        return self.error <= (1.0 + _MOST_WIDER) * simple.error

    def is_more_precise(self, simple: Candidate) -> bool:
        """Return whether the standard error is so small that whole numbers of labels do not matter."""
        return self.error <= _FAR_MORE_PRECISE * simple.error


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
    return width * error / plain if plain > 0 else width


def most_wider(n_labels: int, n_units: int) -> float:
    """Return by which share an earlier candidate may be wider than the narrowest.

    Examples
    --------
    >>> round(most_wider(20, 10_000), 4), round(most_wider(1000, 10_000), 4)
    (0.0095, 0.0018)
    """
    labels = max(n_labels * (1.0 - n_labels / n_units), 1.0)
    return min(_ROUNDING + _OF_A_LABEL / (2.0 * labels), _MOST_WIDER)


def first_narrow(candidates: Sequence[Candidate]) -> Candidate:
    """Return the first candidate that is about as narrow as the narrowest."""
    first = candidates[0]
    wider = most_wider(first.allocation.budget, first.strata.size)
    limit = (1.0 + wider) * min(candidate.half_width for candidate in candidates)
    return next(candidate for candidate in candidates if candidate.half_width <= limit)


def larger_budgets(budget: int, n_units: int) -> list[int]:
    """Return budgets above this one: the next ones, then powers of 1.1.

    Examples
    --------
    >>> larger_budgets(40, 64)[:3], larger_budgets(40, 64)[-2:]
    ([41, 42, 43], [59, 60])
    """
    powers = [int(_RATIO**power) for power in range(int(math.log(n_units, _RATIO)) + 1)]
    n_next = round(_NEXT * min(_SMALL_BUDGET / budget, 1.0))
    following = min(budget + max(n_next, 1), n_units)
    return [*range(budget + 1, following), *(power for power in powers if power >= following)]


def worst_bounds(strata: Strata) -> tuple[float, float]:
    """Return the ends between which labels may lie where the worst is planned for: 0 and 1 if none are known.

    Examples
    --------
    >>> import stratal
    >>> worst_bounds(stratal.strata.stratify(stratal.Population.from_arrays(groups={"g": ["a"]}), "none"))
    (0.0, 1.0)
    """
    low, high = strata.bounds
    return (low, high) if math.isfinite(high - low) else (0.0, 1.0)


def worst_error(strata: Strata, n_h: IntArray) -> float:
    """Return the largest possible standard error: half of each stratum's labels lie at either bound."""
    low, high = worst_bounds(strata)
    variances = np.full(len(n_h), ((high - low) / 2) ** 2)
    return math.sqrt(float(expected_variance(strata.sizes, n_h, variances)))
