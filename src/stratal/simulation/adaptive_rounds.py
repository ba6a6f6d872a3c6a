"""Adaptive designs, replicate by replicate: who gets the next labels depends on those so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import BudgetError
from stratal.simulation.draws import Draws, StratumSums, Truth, spread
from stratal.simulation.simulated_design import SimulatedDesign
from stratal.strata import Strata, proportional
from stratal.strata.integers import Bounds, nearest_integers, optimal_integers
from stratal.strata.rates import smoothed_standard_deviations

_ROUNDING = 1e-12
"""Of Σ y²: a variance of labels below it is rounding."""


Start: TypeAlias = Callable[[], Draws]
"""Fresh draws of a batch of replicates."""


def adaptive_sums(
    design: SimulatedDesign,
    strata: Strata,
    truth: Truth,
    budgets: tuple[int, ...],
    start: Start,
) -> Iterator[StratumSums]:
    """Yield the sums of an adaptive design at each budget, budgets increasing.

    Parameters
    ----------
    design : SimulatedDesign
    strata : Strata
    truth : Truth
    budgets : tuple of int
    start : callable
        Gives fresh draws of the batch of replicates.

    Examples
    --------
    >>> from stratal.population import Population
    >>> from stratal.simulation.draws import Urns
    >>> from stratal.strata import stratify
    >>> strata = stratify(Population.from_arrays(proxy=[0.6] * 50 + [0.9] * 50), n_strata=2)
    >>> truth = Truth.of(np.array([0.0, 1.0] * 50), None, strata.codes, 2)
    >>> design = SimulatedDesign.parse("k-means:2:opt-a1:5")
    >>> urns = lambda: Urns(truth, 3, np.random.default_rng(1))
    >>> [sums.counts.sum(axis=1) for sums in adaptive_sums(design, strata, truth, (30,), urns)]
    [array([30., 30., 30.])]
    """
    if design.allocation == "opt-a2":
        yield from _step_by_step(design, strata, budgets, start())
        return
    sizes = strata.sizes
    for budget in budgets:
        pilot, draws = pilot_counts(design, sizes, budget), start()
        seen = draws.sums(pilot)
        if design.allocation == "opt-a1":
            n_h = pilot + shares_of_the_remainder(seen, strata, pilot, budget - int(pilot.sum()))
        else:
            limits = _limits(strata, truth)
            found = recalibrated_deviations(seen, truth.centre, strata, binary=truth.binary, bounds=limits)
            n_h = optimal_integers(sizes * found, Bounds(sizes=sizes, lower=pilot, upper=sizes), budget)
        yield draws.sums(n_h)


def _step_by_step(
    design: SimulatedDesign, strata: Strata, budgets: tuple[int, ...], draws: Draws
) -> Iterator[StratumSums]:
    step = design.step_size
    counts = pilot_counts(design, strata.sizes, min(budgets))
    sums, spent = draws.sums(counts), int(counts.sum())
    for budget in budgets:
        while budget - spent >= step:
            counts = counts + shares_of_the_remainder(sums, strata, counts, step)
            spent += step
            sums = draws.sums(counts)
        if spent == budget:
            yield sums
        else:  # the last step is cut short; the next budget goes on from where it was not
            yield draws.branch().sums(counts + shares_of_the_remainder(sums, strata, counts, budget - spent))


def pilot_counts(design: SimulatedDesign, sizes: IntArray, budget: int) -> IntArray:
    """Return the pilot's n_h (H,).

    Examples
    --------
    >>> pilot_counts(SimulatedDesign.parse("k-means:2:two-round"), np.array([60, 40]), 50)
    array([15, 10])
    """
    if design.allocation == "two-round":
        half = max(int(budget * design.pilot_size), int(np.minimum(design.minimum, sizes).sum()))
        if half > budget:
            raise BudgetError("the budget is below the pilot", given=budget, allowed=f"{half} or more")
        return proportional(sizes, half, minimum=design.minimum)
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
    """Return S_h (R, H), recalibrated on each replicate's labels and smoothed.

    Parameters
    ----------
    sums : StratumSums
        Of outcomes with `centre` taken off.
    centre : float
    strata : Strata
    binary : bool
        Whether outcomes are 0 or 1.
    bounds : (float, float), optional
        Of other outcomes; the strata's unless given.

    Examples
    --------
    >>> from stratal.population import Population
    >>> from stratal.strata import stratify
    >>> strata = stratify(Population.from_arrays(proxy=[0.6] * 500 + [0.95] * 500), n_strata=2)
    >>> sums = StratumSums(
    ...     counts=np.array([[5.0, 5.0]]), z=np.array([[3.0, 5.0]]), zz=np.array([[3.0, 5.0]]))
    >>> recalibrated_deviations(sums, 0.0, strata, binary=True).round(2)
    array([[0.46, 0.23]])
    """
    first = sums.z + centre * sums.counts
    second = sums.zz + 2.0 * centre * sums.z + centre**2 * sums.counts
    return smoothed_standard_deviations(
        strata,
        sums.counts,
        np.rint(first) if binary else first,
        None if binary else second,
        kurtoses=sums.kurtoses,
        bounds=(0.0, 1.0) if binary else bounds or strata.bounds,
    )


def raw_deviations(sums: StratumSums) -> FloatArray:
    """Return s_h (R, H) of [K] eq. 3: of the labels alone, 0 where they all agree or there is but one.

    Sums of outcomes with a centre taken off leave rounding where labels agree; it says nothing of S_h.

    Examples
    --------
    >>> labels = np.array([[0.3, 0.3, 0.3], [-0.7, 0.3, 0.3]])
    >>> z, zz = labels.sum(axis=1)[None], (labels**2).sum(axis=1)[None]
    >>> raw_deviations(StratumSums(counts=np.full((1, 2), 3.0), z=z, zz=zz)).round(2)
    array([[0.  , 0.58]])
    """
    variances = np.nan_to_num(spread(sums.counts, sums.z, sums.zz))
    return np.sqrt(np.where(variances > _ROUNDING * sums.zz, variances, 0.0))


def _limits(strata: Strata, truth: Truth) -> tuple[float, float]:
    """Return the strata's bounds of the outcome, none where an outcome lies outside them."""
    low, high = strata.bounds
    inside = all(
        low - 1e-9 <= z.min() + truth.centre and z.max() + truth.centre <= high + 1e-9 for z in truth.outcomes
    )
    return (low, high) if inside else (-np.inf, np.inf)


def shares_of_the_remainder(sums: StratumSums, strata: Strata, taken: IntArray, labels: int) -> IntArray:
    """Return [K] eq. 9 for the next `labels` (R, H), with raw S_h (eq. 3), in whole numbers.

    Parameters
    ----------
    sums : StratumSums
        Of the labels so far.
    strata : Strata
    taken : int (H,) or (R, H)
        How many these are.
    labels : int

    Examples
    --------
    >>> from stratal.population import Population
    >>> from stratal.strata import stratify
    >>> strata = stratify(Population.from_arrays(proxy=[0.6] * 50 + [0.9] * 50), n_strata=2)
    >>> seen = np.array([[2.0, 4.0]])
    >>> sums = StratumSums(counts=np.full((1, 2), 5.0), z=seen, zz=seen)
    >>> shares_of_the_remainder(sums, strata, np.array([5, 5]), 10)
    array([[6, 4]])
    """
    importance: FloatArray = strata.weights * raw_deviations(sums)
    return nearest_integers(importance, np.maximum(strata.sizes - taken, 0), labels)
