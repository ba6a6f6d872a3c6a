"""Replicates that the library itself draws and estimates, one at a time: any design, any estimand.

Poisson sampling, sequential Poisson and systematic sampling, plans, and estimands that are no mean have no
sums per stratum that would say it all. A replicate takes a millisecond or more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from stratal.designs import Design, Poisson, ProportionalToSize, SimpleRandom, Stratified, Systematic
from stratal.designs.sample import Sample
from stratal.errors import InputError, StratalWarning
from stratal.estimation.estimand import Several
from stratal.estimation.evaluation import estimate
from stratal.planning.planner import plan
from stratal.planning.rounds import next_round, units_left
from stratal.simulation.simulated_design import SimulatedDesign, SimulationTask
from stratal.simulation.summary import Collected
from stratal.strata import Strata, allocate


def library_design(design: SimulatedDesign, strata: Strata, budget: int) -> Design:
    """Return the library's design at one budget.

    Raises
    ------
    InputError
        For allocations that look at the outcome of a mean.

    Examples
    --------
    >>> import stratal
    >>> strata = stratal.stratify(stratal.Population.from_arrays(proxy=[0.2, 0.9]), "none")
    >>> library_design(SimulatedDesign.parse("proportional-to-size"), strata, 50).budget
    50
    """
    if design.mechanism == "poisson":
        return Poisson(budget=budget, size=design.size, proxy=design.proxy)
    if design.mechanism == "proportional-to-size":
        return ProportionalToSize(budget=budget, size=design.size, proxy=design.proxy)
    if design.mechanism == "systematic":
        return Systematic(budget=budget, order=design.proxy)
    if strata.n_strata == 1:
        return SimpleRandom(budget=budget)
    if design.adaptive or design.allocation == "oracle":
        raise InputError(
            f"'{design.allocation}' looks at the outcome of a mean",
            given=design.name,
            action="Use 'planned' or 'two-round', or an allocation that looks at no outcome.",
        )
    allocation = allocate(strata, budget, design.allocation, design.minimum)
    return Stratified(strata=strata, allocation=allocation)


def drawn_replicates(design: SimulatedDesign, strata: Strata, task: SimulationTask) -> Collected:
    """Return values, variances and bounds of every replicate, by (budget, estimator, what).

    Every replicate has one seed for all designs and budgets: designs are compared on the same permanent
    random numbers, and draws are nested where the design's are.

    Raises
    ------
    InputError
        For what only sums per stratum can do, and for units with ids of their own.
    """
    settings = task.settings
    refused = [name for name in (*settings.estimators, *settings.intervals) if name.startswith("published")]
    leave_out = f"Leave {design.name} out, or "
    if refused:
        raise InputError(f"'{refused[0]}' is for strata only", action=f"{leave_out}name another.")
    if settings.with_replacement:
        raise InputError(
            f"{design.name} is not drawn with replacement", action=f"{leave_out}with_replacement."
        )
    if not task.population.numbered_by_row:
        raise InputError(
            f"{design.name} needs units numbered by row", action="Give Population.from_arrays no ids."
        )
    draws = {budget: _draw(design, strata, task, budget) for budget in settings.budgets}
    collected: dict[tuple[int, str, str], list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StratalWarning)
        seeds = np.random.SeedSequence(settings.seed).generate_state(settings.replicates, np.uint64)
        for seed in seeds.tolist():
            for budget, draw in draws.items():
                sample = draw(seed)
                for estimator in settings.estimators:
                    for name, value in _one(sample, estimator, task).items():
                        collected.setdefault((budget, estimator, name), []).append(value)
    return {key: [np.array(values)] for key, values in collected.items()}


def _draw(
    design: SimulatedDesign, strata: Strata, task: SimulationTask, budget: int
) -> Callable[[int], Sample]:
    """Return the draw by seed."""
    if design.mechanism == "planned":
        return plan(task.population, budget, estimand=task.estimand).draw
    if design.mechanism != "two-round":
        return partial(library_design(design, strata, budget).draw, task.population)
    pilot = plan(task.population, budget // 2, estimand=task.estimand)

    def two_rounds(seed: int) -> Sample:
        first = pilot.draw(seed)
        more = min(budget - budget // 2, units_left(first))
        return next_round(first, task.labels[first.ids], additional=more) if more else first

    return two_rounds


def _one(sample: Sample, estimator: str, task: SimulationTask) -> dict[str, float]:
    settings, labels = task.settings, task.labels[np.asarray(sample.ids, dtype=np.int64)]
    options: dict[str, Any] = {"estimand": task.estimand, "target": settings.target}
    if task.z is not None:
        options |= {
            "estimator": estimator,
            "stratum_weights_known": settings.stratum_weights_known,
            "bounds": settings.bounds,
            "proxy": task.proxy_name,
            "outcome": None if settings.bounds is not None else "unbounded",
        }
    found = estimate(sample, labels, **options)
    variance = found.standard_error**2 if task.z is None else found.evidence.textbook_variance
    result = {"values": found.value, "variances": variance}
    for method in settings.intervals:
        low, high = found.confidence_interval(settings.confidence_level, method)
        result[f"{method} low"], result[f"{method} high"] = low, high
    return result


def census_value(task: SimulationTask) -> float:
    """Return what the estimand is in a population whose labels are all known.

    Raises
    ------
    InputError
        For several estimands at once, and for units with ids of their own.
    """
    if isinstance(task.estimand, Several):
        raise InputError(
            "one estimand is simulated at a time", given=task.estimand.text, action="Simulate each by itself."
        )
    if not task.population.numbered_by_row:
        raise InputError(
            "an estimand is simulated on units numbered by row", action="Give Population.from_arrays no ids."
        )
    census = SimpleRandom(budget=task.population.size).draw(task.population, seed=0)
    return float(estimate(census, task.labels[census.ids], estimand=task.estimand).value)
