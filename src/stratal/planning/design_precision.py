"""The precision that a design and its estimators are expected to give, before any label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stratal.arrays import IntArray
from stratal.designs import SimpleRandom
from stratal.planning.candidates import worst_error
from stratal.planning.plan import PlannedDesign
from stratal.population.population import Population
from stratal.population.size_measure import MEAN_SHRINKAGE
from stratal.proxy.history import HISTORY
from stratal.strata import Allocation, Strata
from stratal.strata.strata import expected_variance

if TYPE_CHECKING:
    from stratal.planning.previous_labels import PreviousLabels

# The estimators that a plan compares under each design.
FORECAST_ESTIMATORS = ("horvitz-thompson", "difference", "ppi++")

# A standard error below this share of the standard deviation is a rounding error.
_ROUNDING = 1e-12

# Ratio of expected standard errors from which a plan states that a simple random sample is more precise.
# Expectations are not accurate enough for smaller ratios.
_NOTICEABLE_RATIO = 1.01


def expected_precision(
    design: str,
    strata: Strata,
    n_h: IntArray,
    population_stratum: Strata,
    *,
    n_proxies: int = 1,
    labels: PreviousLabels | None = None,
) -> list[PlannedDesign]:
    """Return the precision that each estimator is expected to have under one design.

    Parameters
    ----------
    design : str
    strata : Strata
        Strata of the design.
    n_h : int (H,)
    population_stratum : Strata
        The population as one stratum, for the comparison with a simple random sample.
    n_proxies : int
        Number of proxies that estimators can use.
    labels : PreviousLabels, optional
        Existing labels; if given, they replace what the proxy predicts.
    """
    estimators = _applicable_estimators(population_stratum, n_proxies)
    n = np.array([n_h.sum()])
    # A census is exact, also if the proxy is certain of every unit.
    is_exact = population_stratum.scaled and n[0] == population_stratum.size
    if labels is None and is_uninformative(population_stratum) and not is_exact:
        return _worst_case_precision(design, estimators, strata, n_h)
    if labels is None:
        scenarios = strata.scenarios
        simple_scenarios = population_stratum.scenarios
    else:
        scenarios = labels.scenario(strata, n_h)
        simple_scenarios = labels.scenario(population_stratum, n)
    simple_variance = float(expected_variance(population_stratum.sizes, n, simple_scenarios.variances[0]))
    rounding_error = _ROUNDING * float(np.sqrt(simple_scenarios.variances[0].max()))
    precisions = []
    for estimator in estimators:
        errors = scenarios.standard_errors(strata, n_h, estimator)
        errors = np.where(errors <= rounding_error, 0.0, errors)
        precision = PlannedDesign(
            design=design,
            estimator=estimator,
            expected_standard_error=float(errors[0]),
            optimistic_standard_error=float(errors.min()),
            conservative_standard_error=float(errors.max()),
            relative_efficiency=_relative_efficiency(simple_variance, float(errors[0])),
        )
        precisions.append(precision)
    return precisions


def is_uninformative(population_stratum: Strata) -> bool:
    """Return whether the proxy predicts no variance: it only orders units, or is certain of each."""
    return not population_stratum.scaled or bool(population_stratum.standard_deviations[0] == 0)


def _applicable_estimators(population_stratum: Strata, n_proxies: int) -> tuple[str, ...]:
    """Return the estimators that the proxies allow: a difference needs a proxy on the outcome's scale."""
    if not n_proxies:
        return FORECAST_ESTIMATORS[:1]
    if population_stratum.scaled:
        return FORECAST_ESTIMATORS
    return tuple(name for name in FORECAST_ESTIMATORS if name != "difference")


def _worst_case_precision(
    design: str, estimators: Sequence[str], strata: Strata, n_h: IntArray
) -> list[PlannedDesign]:
    """Return the largest standard error of each estimator; the difference estimator's has no limit."""
    worst = worst_error(strata, n_h)
    errors = {name: None if name == "difference" else worst for name in estimators}
    return [
        PlannedDesign(design=design, estimator=name, worst_standard_error=error)
        for name, error in errors.items()
    ]


def _relative_efficiency(simple_variance: float, error: float) -> float | None:
    """Return the variance of a simple random sample's mean over `error`²; None if only the latter is 0."""
    if error > 0:
        return simple_variance / error**2
    if simple_variance == 0:
        return 1.0
    return None


def successive_precision(
    population: Population, stratified: PlannedDesign, expected_error: float, budget: int
) -> PlannedDesign:
    """Return the precision of a draw with probabilities by a history, the proxy from results of other models.

    With π ∝ x, the variance of the difference estimator is ((Σ x)²/n − Σ x²) / N², where x² is the variance
    that the history predicts for a unit, shrunk to the mean like π. The ratio of the result to
    `expected_error` also scales the optimistic and the conservative standard error of `stratified`.
    """
    from stratal.designs import Successive

    predictions = population.distribution(HISTORY)
    rates = (1.0 - MEAN_SHRINKAGE) * predictions.values + MEAN_SHRINKAGE * predictions.mean
    variances = np.maximum(rates * (1.0 - rates), 0.0)
    squared_sum = float(predictions.counts @ np.sqrt(variances)) ** 2
    variance_of_total = squared_sum / budget - float(predictions.counts @ variances)
    ratio = math.sqrt(max(variance_of_total, 0.0)) / predictions.size / expected_error
    if ratio > 0:
        efficiency = (stratified.relative_efficiency or 1.0) / ratio**2
    else:
        efficiency = None
    return PlannedDesign(
        design=Successive.kind,
        estimator="ppi++",
        relative_efficiency=efficiency,
        expected_standard_error=_scaled(stratified.expected_standard_error, ratio),
        optimistic_standard_error=_scaled(stratified.optimistic_standard_error, ratio),
        conservative_standard_error=_scaled(stratified.conservative_standard_error, ratio),
    )


def _scaled(error: float | None, ratio: float) -> float | None:
    """Return a standard error times a ratio; None if there is no forecast."""
    if error is None:
        return None
    return error * ratio


def more_precise_design_notes(chosen: PlannedDesign, designs: Sequence[PlannedDesign]) -> tuple[str, ...]:
    """Return a note if a simple random sample is expected to be more precise than the chosen design."""
    simple_errors = [row.expected_standard_error for row in designs if row.design == SimpleRandom.kind]
    simple_error = min((error for error in simple_errors if error is not None), default=None)
    chosen_error = chosen.expected_standard_error
    if simple_error is None or chosen_error is None or chosen_error <= _NOTICEABLE_RATIO * simple_error:
        return ()
    return (
        f"A simple random sample is expected to be more precise (standard error {simple_error:.4f}). To plan "
        "one: method='none' (--stratify none).",
    )


def simple_allocation(population_stratum: Strata, budget: int) -> Allocation:
    """Return the allocation of a simple random sample: all labels to all units as one stratum."""
    return Allocation(
        n_h=np.array([budget]),
        method="proportional",
        budget=budget,
        minimum=np.array([1]),
        maximum=population_stratum.sizes,
    )
