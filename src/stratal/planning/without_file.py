"""A plan before there is any file: N units, and a guess of how often the model is right."""

from __future__ import annotations

import math

import numpy as np

from stratal.allocation import Allocation
from stratal.allocation.integers import check_budget, whole_number
from stratal.errors import InputError
from stratal.planning.expectations import expectations
from stratal.planning.plan import Plan
from stratal.planning.planner import check_half_width, not_one_goal
from stratal.planning.widths import smallest_budget
from stratal.population.rules.rule import Everything
from stratal.strata import Strata

WORST_RATE = 0.5
"""The rate at which labels say least."""

_START = 100


def plan_for_rate(
    population_size: int,
    rate: float = WORST_RATE,
    *,
    budget: int | None = None,
    half_width: float | None = None,
    confidence_level: float = 0.95,
) -> Plan:
    """Plan a simple random sample of outcomes that are 1 at a guessed rate, else 0.

    Parameters
    ----------
    population_size : int
        N.
    rate : float
        The share that is expected; ½ is the worst case.
    budget, half_width
        Give one of them, as in `stratal.plan`.
    confidence_level : float

    Returns
    -------
    Plan
        It holds no population, so that nothing can be drawn from it.

    Raises
    ------
    InputError
        For a rate outside (0, 1), such as percent, and if not exactly one of budget and half-width is given.

    Examples
    --------
    >>> plan_for_rate(5000, 0.9, half_width=0.03).budget
    383
    """
    size = whole_number("population_size", population_size)
    if not 0 < rate < 1:
        percent = f"For {rate:g} % write {rate / 100:g}." if 1 <= rate < 100 else None
        raise InputError("rate must lie between 0 and 1", given=f"{rate:g}", action=percent)
    if (budget is None) == (half_width is None):
        raise not_one_goal()
    whole = _whole(size, rate)
    if budget is not None:
        return _at(whole, budget, confidence_level)
    assert half_width is not None
    check_half_width(half_width, whole.bounds)

    def width(labels: int) -> float:
        found = _at(whole, labels, confidence_level).expected_half_width
        return math.inf if found is None else found

    return _at(
        whole, smallest_budget(width, half_width, min(_START, size), min(2, size), size), confidence_level
    )


def _whole(size: int, rate: float) -> Strata:
    """Return the units as one stratum of a constant proxy."""
    return Strata(
        rule=Everything(),
        names=("all",),
        sizes=np.array([size]),
        proxy_means=np.array([rate]),
        proxy_variances=np.zeros(1),
        conditional_variances=np.array([rate * (1 - rate)]),
        method="none",
    )


def _at(whole: Strata, budget: int, confidence_level: float) -> Plan:
    check_budget(budget, whole.size)
    n_h, one = np.array([budget]), np.array([1])
    shared = Allocation(n_h=n_h, method="proportional", budget=budget, minimum=one, maximum=whole.sizes)
    row = expectations("simple-random", whole, shared, whole)[0]
    rate = float(whole.proxy_means[0])
    return Plan(
        budget=budget,
        population_size=whole.size,
        strata=whole,
        allocation=shared,
        designs=(row,),
        recommended=row,
        assumptions=(f"Outcomes are 0 or 1, and {rate:g} of them 1; nothing tells which.",),
        notes=("With a file of predictions fewer labels may do: stratal plan FILE --proxy COLUMN.",),
        confidence_level=confidence_level,
    )
