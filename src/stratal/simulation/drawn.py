"""Designs whose probabilities differ from unit to unit: drawn and estimated one replicate at a time.

Poisson sampling, sequential Poisson and systematic sampling have no strata whose sums would say it all. They
go through the library's own draw and estimate, at a millisecond or so a replicate.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError, StratalWarning
from stratal.estimation.evaluation import estimate
from stratal.sampling import Design, Poisson, ProportionalToSize, Systematic
from stratal.simulation.settings import Settings
from stratal.simulation.simulated_design import SimulatedDesign

if TYPE_CHECKING:
    from stratal.population.population import Population


def design_at(design: SimulatedDesign, budget: int) -> Design:
    """Return the library's design at one budget.

    Examples
    --------
    >>> design_at(SimulatedDesign.parse("proportional-to-size"), 50).budget
    50
    """
    if design.mechanism == "poisson":
        return Poisson(budget=budget, size=design.size, proxy=design.proxy)
    if design.mechanism == "proportional-to-size":
        return ProportionalToSize(budget=budget, size=design.size, proxy=design.proxy)
    return Systematic(budget=budget, order=design.proxy)


def collect_drawn(
    design: SimulatedDesign,
    population: Population,
    z: FloatArray,
    settings: Settings,
    seeds: np.random.SeedSequence,
    proxy: str | None,
) -> dict[tuple[int, str, str], list[FloatArray]]:
    """Return values, variances and bounds of every replicate, by (budget, estimator, what).

    Every replicate has one seed for all budgets, so that its draws are nested where the design's are.

    Parameters
    ----------
    design : SimulatedDesign
    population : Population
        Without ids of its own: the units are then numbered by row, as `z` is.
    z : float (N,)
    settings : Settings
    seeds : numpy.random.SeedSequence
    proxy : str, optional
        The proxy that enters the estimators.
    """
    refused = [name for name in (*settings.estimators, *settings.intervals) if name.startswith("published")]
    if refused:
        raise InputError(
            f"'{refused[0]}' is for strata only", action=f"Leave {design.name} out, or name another."
        )
    if settings.with_replacement:
        raise InputError(
            f"{design.name} is not drawn with replacement",
            action=f"Leave {design.name} out, or with_replacement.",
        )
    if not population.numbered_by_row:
        raise InputError(
            f"{design.name} needs units numbered by row", action="Give Population.from_arrays no ids."
        )
    collected: dict[tuple[int, str, str], list[float]] = {}
    for seed in seeds.generate_state(settings.replicates, np.uint64).tolist():
        for budget in settings.budgets:
            sample = design_at(design, budget).draw(population, seed=seed)
            labels = z[np.asarray(sample.ids, dtype=np.int64)]
            for estimator in settings.estimators:
                for name, value in _one(sample, labels, estimator, settings, proxy).items():
                    collected.setdefault((budget, estimator, name), []).append(value)
    return {key: [np.array(values)] for key, values in collected.items()}


def _one(
    sample: Any, labels: FloatArray, estimator: str, settings: Settings, proxy: str | None
) -> Mapping[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StratalWarning)
        found = estimate(
            sample,
            labels,
            estimator=estimator,
            target=settings.target,
            stratum_weights_known=settings.stratum_weights_known,
            bounds=settings.bounds,
            proxy=proxy,
            outcome=None if settings.bounds is not None else "unbounded",
        )
        result = {"values": found.value, "variances": found.evidence.textbook_variance}
        for method in settings.intervals:
            low, high = found.confidence_interval(settings.confidence_level, method=method)
            result[f"{method} low"], result[f"{method} high"] = low, high
    return result
