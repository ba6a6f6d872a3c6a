"""`allocate_several`: one allocation for many estimands, each with a wanted precision or a weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.errors import BudgetError, names_mistyped
from stratal.strata.cost import cost_optimal
from stratal.strata.integers import Bounds, optimal_integers
from stratal.strata.several_dual import (
    Optimum,
    cheapest,
    most_precise,
    without_floors,
    without_settled,
)  # fmt: skip
from stratal.strata.several_integers import Whole, closest, fewest
from stratal.strata.several_task import SharedAllocation, SharedTask, read_task


@names_mistyped
def allocate_several(
    sizes: Any,
    standard_deviations: Any,
    budget: int | None = None,
    *,
    standard_errors: Any = None,
    weights: Any = None,
    costs: Any = None,
    cost_budget: float | None = None,
    minimum: Any = 2,
    maximum: Any = None,
    known: Any = None,
    finite_population_correction: bool = True,
    names: Sequence[str] | None = None,
) -> SharedAllocation:
    """Share labels among strata for J estimands at once.

    With `standard_errors` alone: the fewest labels (the least money, with `costs`) that reach all of them.
    With a budget too: the labels that make the largest ratio of expected to wanted standard error smallest.
    With a budget and `weights`: the smallest weighted sum of variances.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    standard_deviations : float (J, H)
        S_jh: the standard deviation within stratum h of estimand j's influence u_j, the variable whose mean
        over all N units has the estimand's error. So the variance of estimand j is
        Σ_h (N_h / N)² S_jh² (1/n_h − 1/N_h). For a mean u is the outcome; for the mean of a domain that is a
        share w of the units it is (outcome − mean) / w inside and 0 outside; for a total it is N times the
        outcome.
    budget : int, optional
        Labels in all.
    standard_errors : float (J,), optional
        Wanted standard errors: half-widths divided by the quantile, 1.96 at 95 %.
    weights : float (J,), optional
        Weights of the variances.
    costs : float (H,), optional
        Cost of a label in each stratum; 1 if left out.
    cost_budget : float, optional
        Money in all, in the place of `budget` where there are costs.
    minimum, maximum : int or int (H,)
        Bounds on n_h; the minimum of a smaller stratum is its size. A stratum in which anything varies has
        at least one label.
    known : bool (H,), optional
        Strata in which every u_j is a known constant by construction: they get no label. Where that is only
        believed, leave it out: the stratum keeps its minimum.
    finite_population_correction : bool
        False leaves out the −1/N_h, for the superpopulation.
    names : sequence of str, optional
        What the estimands are called in errors and tables.

    Returns
    -------
    SharedAllocation

    Raises
    ------
    BudgetError
        If the bounds cannot meet the budget, or cannot reach a wanted standard error.
    InputError
        If an array has another shape or an impossible value, or the task is not one of the three.

    Notes
    -----
    Bethel (1989), "Sample allocation in multivariate surveys", and Chromy (1987), whose real-valued optimum
    is found here by Newton's method on the dual, with the duality gap as certificate; whole numbers are found
    by rounding with the dual's prices, exchange, and a programme in whole numbers over what the gap leaves
    possible.

    Examples
    --------
    >>> sd = [[0.4, 0.4, 0.4], [0.1, 0.9, 0.2]]
    >>> allocate_several([800, 150, 50], sd, standard_errors=[0.03, 0.03]).n_h
    array([120,  23,   8])
    >>> allocate_several([800, 150, 50], sd, 100, standard_errors=[0.03, 0.03]).ratios.round(3)
    array([1.265, 1.147])
    """
    task = read_task(
        Bounds.read(sizes, minimum, maximum),
        standard_deviations,
        (standard_errors, weights, names),
        (budget, costs, cost_budget),
        known=known,
        correction=finite_population_correction,
    )
    if task.weights is not None:
        return _weighted(task)
    return _fewest(task) if task.money is None else _closest(task, task.money)


def _fewest(task: SharedTask) -> SharedAllocation:
    demands = task.scaled
    floors = demands.levels(demands.upper)
    if np.any(floors > 1 + 1e-9):
        assert task.wanted is not None
        j = int(np.argmax(floors))
        raise BudgetError(
            f"no allocation within the bounds is as precise as wanted for {task.names[j]}",
            given=f"standard error {task.wanted[j]:g}",
            allowed=f"at least {task.wanted[j] * np.sqrt(floors[j]):.6g}",
            action="Ask for less, or raise maximum.",
        )
    optimum = cheapest(demands)
    kept, open_ = without_settled(demands)
    found = fewest(kept, optimum.multipliers[open_])
    return task.result(found, optimum, "cost", kept.cost(found.n_h))


def _closest(task: SharedTask, money: float) -> SharedAllocation:
    demands = task.scaled
    kept, open_ = without_floors(demands, money)
    optimum = Optimum(n_h=kept.lower, multipliers=np.zeros(len(open_)), bound=0.0)
    if open_.any():
        found = most_precise(kept, money)
        optimum.multipliers[open_] = found.multipliers
        optimum = replace(optimum, n_h=found.n_h)
    whole = closest(kept, optimum.multipliers[open_], money, task.bounds.sizes)
    value = float(demands.levels(whole.n_h).max())
    bound = max(whole.bound, float(demands.levels(demands.upper).max()))
    whole = Whole(whole.n_h, float(np.sqrt(min(bound, value))))
    return task.result(whole, optimum, "ratio", float(np.sqrt(value)))


def _weighted(task: SharedTask) -> SharedAllocation:
    """Minimise one weighted variance: Neyman's rule on the root of the weighted sum of squares."""
    assert task.weights is not None
    assert task.money is not None
    bounds, combined = task.bounds, task.weights @ task.spread
    importance, slack = np.sqrt(combined), float(task.weights @ task.slack)
    demands = task.demands(combined[None, :], np.array([slack]))
    unit = demands.levels(np.maximum(demands.lower, 1.0))[0] or 1.0
    demands = replace(demands, spread=demands.spread / unit, slack=demands.slack / unit)
    kept, open_ = without_floors(demands, task.money)
    optimum = Optimum(n_h=kept.lower, multipliers=np.zeros(1), bound=float(demands.levels(demands.upper)[0]))
    optimum = most_precise(kept, task.money) if open_.any() else optimum
    if np.all(task.prices == 1.0):
        n_h = optimal_integers(importance, bounds, int(task.money))
        bound = float(demands.levels(n_h)[0])
    else:
        deviations = importance / np.maximum(bounds.sizes, 1)
        money = task.money / (1 + 1e-12)
        n_h = cost_optimal(bounds.sizes, deviations, task.prices, money, bounds.lower, bounds.upper)
        bound = optimum.bound
    value = float(demands.levels(n_h)[0]) * unit
    shares = task.weights * task.spread.sum(axis=1)
    found = task.result(Whole(n_h, bound * unit), optimum, "variance", value)
    return replace(found, shares=shares / (shares.sum() or 1.0))
