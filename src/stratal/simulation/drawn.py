"""Designs that are drawn one replicate at a time, by the library's own plans, draws and estimates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.designs import Design, SimpleRandom, Stratified
from stratal.designs.sample import Sample
from stratal.errors import InputError, StratalWarning
from stratal.estimation.estimand import Estimand, Several
from stratal.estimation.evaluation import estimate
from stratal.planning.planner import plan
from stratal.planning.rounds import next_round, units_left
from stratal.simulation.simulated_design import MECHANISMS, SimulatedDesign, SimulationTask
from stratal.strata import Strata, allocate

if TYPE_CHECKING:
    from stratal.population.population import Population

# (budget, estimator, what) → batches of replicates.
Collected = dict[tuple[int, str, str], list[FloatArray]]


def library_design(design: SimulatedDesign, strata: Strata, budget: int) -> Design:
    """Return the library's design at one budget.

    Raises
    ------
    InputError
        For allocations that look at the outcome of a mean.

    Examples
    --------
    >>> import stratal
    >>> strata = stratal.strata.stratify(stratal.Population.from_arrays(proxy=[0.2, 0.9]), "none")
    >>> library_design(SimulatedDesign.parse("proportional-to-size"), strata, 50).budget
    50
    """
    if design.mechanism in MECHANISMS:
        found: Design = Design.of_kind(design.mechanism).of_options(budget, design.size, None, design.proxy)
        return found
    if strata.n_strata == 1:
        return SimpleRandom(budget=budget)
    if design.adaptive or design.allocation == "oracle":
        what = f"'{design.allocation}' follows the outcomes of a mean"
        action = "Use 'planned' or 'two-round', or an allocation that needs no outcome."
        raise InputError(what, given=design.name, action=action)
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
    named = (*settings.estimators, *settings.intervals)
    for bad, what in (
        (any(name.startswith("published") for name in named), "takes nothing that is 'published'"),
        (settings.with_replacement, "is not drawn with replacement"),
        (not task.population.numbered_by_row, "needs units numbered by row, without ids"),
    ):
        if bad:
            raise InputError(f"{design.name} {what}", action="Leave it out, or the other.")
    draws = {budget: _draw(design, strata, task, budget) for budget in settings.budgets}
    collected: dict[tuple[int, str, str], list[float]] = {}
    with warnings.catch_warnings(action="ignore", category=StratalWarning):
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
        if more:
            return next_round(first, task.labels[first.ids], additional=more)
        return first

    return two_rounds


def _one(sample: Sample, estimator: str, task: SimulationTask) -> dict[str, float]:
    settings = task.settings
    labels = task.labels[np.asarray(sample.ids, dtype=np.int64)]
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
    if task.z is None:
        variance = found.standard_error**2
    else:
        variance = found.evidence.textbook_variance
    result = {"values": found.value, "variances": variance}
    for method in settings.intervals:
        try:
            ends: tuple[float, float] = found.confidence_interval(settings.confidence_level, method)
        except InputError:
            # Labels of an outcome without bounds that all agree have no interval: it counts as one without
            # width, as among the replicates that are sums.
            if found.standard_error > 0:
                raise
            ends = (found.value, found.value)
        result[f"{method} low"], result[f"{method} high"] = ends
    return result


def census_value(population: Population, labels: AnyArray, estimand: Estimand) -> float:
    """Return what the estimand is in a population whose labels (N,) are all known.

    Raises
    ------
    InputError
        For several estimands at once, and for units with ids of their own.
    """
    if isinstance(estimand, Several):
        raise InputError(
            "one estimand is simulated at a time", given=estimand.text, action="Simulate each by itself."
        )
    if not population.numbered_by_row:
        raise InputError(
            "an estimand is simulated on units numbered by row", action="Give Population.from_arrays no ids."
        )
    census = SimpleRandom(budget=population.size).draw(population, seed=0)
    return float(estimate(census, labels[census.ids], estimand=estimand, target="population").value)
