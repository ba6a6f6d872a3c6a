"""Replicates that are planned, drawn and estimated by stratal itself, one replicate at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.designs import Design, SimpleRandom, Stratified
from stratal.designs.sample import Sample
from stratal.errors import InputError, StratalWarning
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimand import Estimand, Several
from stratal.labels.joined_labels import JoinedLabels, join_labels
from stratal.planning.entry_points import plan
from stratal.planning.rounds import next_round, units_left
from stratal.protocols import Keywords
from stratal.simulation.class_rates import ClassRates, Quantities
from stratal.simulation.simulated_design import DRAW_MECHANISMS, SimulatedDesign, SimulationTask
from stratal.strata import Strata, allocate

if TYPE_CHECKING:
    from stratal.population.population import Population

# Batches of replicates by (budget, estimator, quantity). The quantities are "values", "variances", and
# "INTERVAL low" and "INTERVAL high" for each interval method.
ReplicateBatches = dict[tuple[int, str, str], list[FloatArray]]
DrawFunction = Callable[[int], Sample]


def library_design(design: SimulatedDesign, strata: Strata, budget: int) -> Design:
    """Return the design of `stratal.designs` for a budget; raise `InputError` if it needs outcomes."""
    if design.mechanism in DRAW_MECHANISMS:
        design_class = Design.class_of_kind(design.mechanism)
        drawn_design: Design = design_class.from_options(budget, design.size, None, design.proxy)
        return drawn_design
    if strata.n_strata == 1:
        return SimpleRandom(budget=budget)
    if design.adaptive or design.allocation == "oracle":
        raise InputError(
            f"the allocation '{design.allocation}' requires the outcomes of a mean",
            given=design.name,
            action="Use 'planned' or 'two-round', or an allocation that requires no outcome.",
        )
    allocation = allocate(strata, budget, design.allocation, design.minimum)
    return Stratified(strata=strata, allocation=allocation)


def library_replicates(design: SimulatedDesign, strata: Strata, task: SimulationTask) -> ReplicateBatches:
    """Draw and estimate every replicate at every budget; raise `InputError` for options of sums only.

    All designs and budgets use the same seeds. Designs are therefore compared on the same permanent random
    numbers, and the draws of nested designs are nested.
    """
    settings = task.settings
    _check_library_options(design, task)
    replicates: ReplicateBatches = {}
    # A warning that concerns one sample is not useful for thousands of replicates.
    with warnings.catch_warnings(action="ignore", category=StratalWarning):
        seeds = np.random.SeedSequence(settings.seed).generate_state(settings.replicates, np.uint64)
        for budget in settings.budgets:
            draw, drawn_design = _draw_function(design, strata, task, budget)
            rates = ClassRates.of(drawn_design, task)
            if rates is None:
                quantities = _draw_and_estimate(draw, seeds, task)
            else:
                quantities = rates.replicates(seeds)
                # Labels without a variance get one from the labels of other strata.
                has_no_variance = rates.without_variance(quantities)
                for name, values in _draw_and_estimate(draw, seeds[has_no_variance], task).items():
                    quantities[name][has_no_variance] = values
            replicates |= {(budget, *name): [values] for name, values in quantities.items()}
    return replicates


def _draw_and_estimate(draw: DrawFunction, seeds: AnyArray, task: SimulationTask) -> Quantities:
    """Return the values (R,) of each estimator and quantity."""
    quantities: dict[tuple[str, str], list[float]] = {}
    for seed in seeds.tolist():
        sample = draw(seed)
        for estimator in task.settings.estimators:
            for name, value in _estimate_replicate(sample, estimator, task).items():
                quantities.setdefault((estimator, name), []).append(value)
    return {name: np.array(values) for name, values in quantities.items()}


def _check_library_options(design: SimulatedDesign, task: SimulationTask) -> None:
    """Raise `InputError` for settings that only replicates from sums per stratum support."""
    settings = task.settings
    if any(name.startswith("published") for name in (*settings.estimators, *settings.intervals)):
        raise InputError(
            f"{design.name} supports no 'published' estimator or interval",
            action="Remove the design, or use other estimators and intervals.",
        )
    if settings.with_replacement:
        raise InputError(
            f"{design.name} cannot be drawn with replacement",
            action="Remove the design, or use with_replacement=False.",
        )
    if not task.population.numbered_by_row:
        raise InputError(
            f"{design.name} requires units that are numbered by row",
            action="Remove the design, or omit the ids in Population.from_arrays.",
        )


def _draw_function(
    design: SimulatedDesign, strata: Strata, task: SimulationTask, budget: int
) -> tuple[DrawFunction, Design | None]:
    """Return the function that draws a sample for a seed, and the design if it has one round."""
    if design.mechanism == "planned":
        planned = plan(task.population, budget, estimand=task.estimand)
        return planned.draw, planned.design
    if design.mechanism != "two-round":
        drawn_design = library_design(design, strata, budget)
        return partial(drawn_design.draw, task.population), drawn_design
    pilot_size = budget // 2
    pilot_plan = plan(task.population, pilot_size, estimand=task.estimand)

    def draw_two_rounds(seed: int) -> Sample:
        pilot = pilot_plan.draw(seed)
        # Fewer units than the second half may be left if the budget is close to N.
        additional = min(budget - pilot_size, units_left(pilot))
        if additional:
            return next_round(pilot, _labels_of_sample(pilot, task.labels), additional=additional)
        return pilot

    return draw_two_rounds, None


def _estimate_replicate(sample: Sample, estimator: str, task: SimulationTask) -> dict[str, float]:
    """Return the value, the variance and the interval limits of one sample by quantity."""
    settings = task.settings
    labels = _labels_of_sample(sample, task.labels)
    options: Keywords = {"estimand": task.estimand, "target": settings.target}
    if task.z is not None:
        options |= {
            "estimator": estimator,
            "stratum_weights_known": settings.stratum_weights_known,
            "bounds": settings.bounds,
            "proxy": task.proxy_name,
            "outcome": None if settings.bounds is not None else "unbounded",
        }
    result = estimate(sample, labels, **options)
    if task.z is None:
        variance = result.standard_error**2
    else:
        variance = result.evidence.textbook_variance
    quantities = {"values": result.value, "variances": variance}
    for method in settings.intervals:
        try:
            low, high = result.confidence_interval(settings.confidence_level, method)
        except InputError:
            # Equal labels of an outcome without bounds have no interval. As for replicates from sums, it
            # counts as an interval of width 0.
            if result.standard_error > 0:
                raise
            low = result.value
            high = result.value
        quantities[f"{method} low"] = low
        quantities[f"{method} high"] = high
    return quantities


def census_value(population: Population, labels: AnyArray, estimand: Estimand) -> float:
    """Return the population value of one estimand from the labels of all units (N,), numbered by row."""
    if isinstance(estimand, Several):
        raise InputError(
            "a simulation accepts one estimand",
            given=estimand.text,
            action="Run one simulation per estimand.",
        )
    if not population.numbered_by_row:
        raise InputError(
            "an estimand can be simulated only for units that are numbered by row",
            action="Omit the ids in Population.from_arrays.",
        )
    census = SimpleRandom(budget=population.size).draw(population, seed=0)
    census_labels = _labels_of_sample(census, labels)
    return float(estimate(census, census_labels, estimand=estimand, target="population").value)


def _labels_of_sample(sample: Sample, labels: AnyArray) -> JoinedLabels:
    """Return the labels of the drawn units from those of all units (N,), numbered by row.

    They are outcomes: no number is taken for the code of a missing label, even if it is rare in one sample.
    """
    joined = join_labels(sample, labels[np.asarray(sample.ids, dtype=np.int64)])
    return replace(joined, codes_checked=True)
