"""Sums per stratum of adaptive designs, which allocate labels by those of a pilot or of earlier steps.

[K] is Kumar & Raj (2016). `opt-a1` and `opt-a2` are their rules; `two-round` is the library's rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import BudgetError
from stratal.simulation.draws import Draws, StratumSums, Truth, sample_variance
from stratal.simulation.simulated_design import SimulatedDesign
from stratal.strata import Strata, proportional
from stratal.strata.integer_allocation import AllocationBounds, nearest_integers, optimal_integers
from stratal.strata.standard_deviations import smoothed_standard_deviations

# Share of Σ y² below which a variance of labels is a rounding error.
_ROUNDING = 1e-12
# Tolerance for outcomes at the bounds after the subtraction and addition of the centre.
_BOUNDS_TOLERANCE = 1e-9
# Labels in one step of `opt-a2` by default.
_DEFAULT_STEP = 10


def adaptive_sums(
    design: SimulatedDesign,
    strata: Strata,
    truth: Truth,
    budgets: tuple[int, ...],
    start: Callable[[], Draws],
) -> Iterator[StratumSums]:
    """Yield the sums of an adaptive design at each budget; `start` returns new draws of R replicates."""
    if design.allocation == "opt-a2":
        yield from _stepwise_sums(design, strata, budgets, start())
        return
    sizes = strata.sizes
    for budget in budgets:
        pilot = pilot_counts(design, sizes, budget)
        draws = start()
        pilot_sums = draws.sums(pilot)
        if design.allocation == "opt-a1":
            n_h = pilot + allocate_remainder(pilot_sums, strata, pilot, budget - int(pilot.sum()))
        else:
            deviations = recalibrated_deviations(
                pilot_sums,
                truth.centre,
                strata,
                binary=truth.binary,
                bounds=_outcome_bounds(strata, truth),
            )
            bounds = AllocationBounds(sizes=sizes, lower=pilot, upper=sizes)
            n_h = optimal_integers(sizes * deviations, bounds, budget)
        yield draws.sums(n_h)


def _stepwise_sums(
    design: SimulatedDesign, strata: Strata, budgets: tuple[int, ...], draws: Draws
) -> Iterator[StratumSums]:
    """Yield the sums at each budget of `opt-a2`, which allocates a few labels per step."""
    step = design.step or _DEFAULT_STEP
    counts = pilot_counts(design, strata.sizes, min(budgets))
    sums = draws.sums(counts)
    n_labels = int(counts.sum())
    for budget in budgets:
        while budget - n_labels >= step:
            counts = counts + allocate_remainder(sums, strata, counts, step)
            n_labels += step
            sums = draws.sums(counts)
        if n_labels == budget:
            yield sums
        else:
            # The last step is incomplete. The next budget continues from the last complete step.
            additional = allocate_remainder(sums, strata, counts, budget - n_labels)
            yield draws.branch().sums(counts + additional)


def pilot_counts(design: SimulatedDesign, sizes: IntArray, budget: int) -> IntArray:
    """Return n_h (H,) of the pilot."""
    if design.allocation == "two-round":
        # Here, `pilot_size` is a share of the budget.
        pilot_budget = max(int(budget * design.pilot_size), int(np.minimum(design.minimum, sizes).sum()))
        if pilot_budget > budget:
            raise BudgetError(
                "the budget is below the pilot", given=budget, allowed=f"{pilot_budget} or more"
            )
        return proportional(sizes, pilot_budget, minimum=design.minimum)
    # Here, `pilot_size` is the number of labels of each stratum.
    pilot = np.minimum(int(design.pilot_size), sizes)
    if pilot.sum() > budget:
        raise BudgetError(
            f"the budget is below the pilot of {design.name}",
            given=budget,
            allowed=f"{int(pilot.sum())} or more",
            action="Use a smaller pilot, fewer strata, or a larger budget.",
        )
    return pilot


def recalibrated_deviations(
    sums: StratumSums,
    centre: float,
    strata: Strata,
    *,
    binary: bool,
    bounds: tuple[float, float] | None = None,
) -> FloatArray:
    """Return S_h (R, H), recalibrated on the labels of each replicate and smoothed.

    `centre` was subtracted from the outcomes of the sums. Outcomes that are not binary have `bounds`; by
    default those of the strata.
    """
    outcome_sums = sums.z + centre * sums.counts
    # Rounding errors can make a sum of squares negative.
    square_sums = np.maximum(sums.zz + 2.0 * centre * sums.z + centre**2 * sums.counts, 0.0)
    if binary:
        return smoothed_standard_deviations(
            strata, sums.counts, np.rint(outcome_sums), None, kurtoses=sums.kurtoses, bounds=(0.0, 1.0)
        )
    return smoothed_standard_deviations(
        strata, sums.counts, outcome_sums, square_sums, kurtoses=sums.kurtoses, bounds=bounds or strata.bounds
    )


def replicate_deviations(sums: StratumSums) -> FloatArray:
    """Return s_h (R, H) of the labels ([K] eq. 3), 0 if all labels are equal or there is only one."""
    variances = np.nan_to_num(sample_variance(sums.counts, sums.z, sums.zz))
    # Sums of centred outcomes leave a rounding error if all labels are equal.
    return np.sqrt(np.where(variances > _ROUNDING * sums.zz, variances, 0.0))


def _outcome_bounds(strata: Strata, truth: Truth) -> tuple[float, float]:
    """Return the bounds of the strata, or infinite bounds if an outcome lies outside them."""
    low, high = strata.bounds
    for centred_outcomes in truth.outcomes:
        outcomes_low = centred_outcomes.min() + truth.centre
        outcomes_high = centred_outcomes.max() + truth.centre
        if outcomes_low < low - _BOUNDS_TOLERANCE or outcomes_high > high + _BOUNDS_TOLERANCE:
            return -np.inf, np.inf
    return low, high


def allocate_remainder(sums: StratumSums, strata: Strata, counts: IntArray, additional: int) -> IntArray:
    """Return the allocation (R, H) of the next `additional` labels ([K] eq. 9) after n_h = `counts`."""
    importance: FloatArray = strata.weights * replicate_deviations(sums)
    return nearest_integers(importance, np.maximum(strata.sizes - counts, 0), additional)
