"""Allocation when labels cost different amounts in different strata and the budget is money.

Units are taken by value per cost while they fit; then dynamic programming looks for better. With a price μ on
money, Σ a_h²/n_h + μ c_h n_h splits into one small problem per stratum, and its minimum less μ·budget is a
lower bound on the sum. A choice of n_h that alone costs more than the gap between this bound and the solution
in hand cannot be part of a better one. Few choices remain, and combinations that are both dearer and worse
than another are dropped as strata are added.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import BudgetError, InputError
from stratal.strata.integers import Bounds, by_threshold, importance_of, one_per_stratum

_SLACK = 1e-12
_MOST_STRATA = 1000
_REACH = 64
_STATES = 200_000
_FEWEST, _MOST = 500, 20_000
_NEAR = 1e-6


def cost_optimal(
    sizes: Any,
    standard_deviations: Any,
    costs: Any,
    cost_budget: float,
    minimum: Any = 2,
    maximum: Any = None,
) -> IntArray:
    """Return n_h ∝ N_h S_h / √c_h: the best whole numbers found with Σ c_h n_h ≤ budget.

    The exact problem is a knapsack. Units are taken by variance removed per cost while they fit, then a
    search looks for better, and finds the optimum unless strata are many. With equal costs the result is
    `neyman`'s. It is not nested: what was left over at a small budget may be spent better at a larger
    one.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    standard_deviations : float (H,)
        S_h.
    costs : float (H,)
        c_h, the cost of one label in each stratum; positive.
    cost_budget : float
        Most to be spent, in the costs' unit (1e-12 of it is allowed for rounding).
    minimum, maximum : int or int (H,)
        Bounds as in `neyman`.

    Raises
    ------
    BudgetError
        If the minima cost more than the budget.
    InputError
        If a cost is not positive, or as in `neyman`.

    Notes
    -----
    Cochran, "Sampling techniques", 5.5 (eq. 5.23).

    Examples
    --------
    >>> cost_optimal([100, 100], [0.5, 0.5], [1.0, 4.0], 60.0)
    array([20, 10])
    """
    bounds = Bounds.read(sizes, minimum, maximum)
    importance = importance_of(bounds, "standard_deviations", standard_deviations)
    prices = one_per_stratum("costs", costs, len(bounds.sizes))
    if not np.all(prices > 0):
        raise InputError("every cost must be positive", given=f"{prices.min():g}", allowed="above 0")
    money = check_money(bounds, prices, cost_budget)
    if not importance.any():
        importance = bounds.sizes.astype(np.float64)
    n_h = filled(importance, prices, money, bounds, start_below(importance, prices, money, bounds))
    if len(n_h) > _MOST_STRATA:
        return n_h
    return filled(importance, prices, money, bounds, _improved(importance, prices, money, bounds, n_h))


def check_money(bounds: Bounds, prices: FloatArray, cost_budget: float) -> float:
    """Return the money that may be spent, a trifle for rounding added; it must pay for the minima."""
    money = float(cost_budget) if np.ndim(cost_budget) == 0 else float("nan")
    if not np.isfinite(money) or money < 0:
        raise InputError("cost_budget must be a finite number", given=cost_budget, allowed="0 or more")
    least = float(prices @ bounds.lower)
    if least > money * (1 + _SLACK):
        raise BudgetError(
            "the budget is below the cost of the strata's minima",
            given=f"{money:g}",
            allowed=f"at least {least:g}",
            action="Raise cost_budget, use fewer strata, or give minimum=1.",
        )
    return money * (1 + _SLACK)


def start_below(a: FloatArray, prices: FloatArray, money: float, bounds: Bounds) -> IntArray:
    """Return a point below the greedy solution, so that the heap has little left to do."""
    useful = (a > 0) & (bounds.upper > 0) & (bounds.lower > 0)
    n_h = bounds.lower.copy()
    if useful.any():
        spent = float(prices[~useful] @ bounds.lower[~useful])
        free = bounds.lower == 0
        reserve = float(prices[free] @ np.minimum(1, bounds.upper[free]))
        value = a[useful] / np.sqrt(prices[useful])
        least, most = bounds.lower[useful], bounds.upper[useful]
        _, below = by_threshold(
            value / value.max(), least, most, money - spent - reserve, costs=prices[useful]
        )
        n_h[useful] = np.maximum(below - 1, least)
    return n_h


def filled(a: FloatArray, prices: FloatArray, money: float, bounds: Bounds, start: IntArray) -> IntArray:
    """Return `start` with units added by value per cost as long as one fits."""
    n_h, left = start.copy(), money - float(prices @ start)

    def entry(h: int) -> tuple[float, float, int]:
        value = float(a[h] / np.sqrt(prices[h]))
        n = int(n_h[h])
        worth = value / math.sqrt(n * (n + 1)) if n else math.inf if value > 0 else 0.0
        return -worth, -value, h

    heap = [entry(h) for h in range(len(a)) if n_h[h] < bounds.upper[h]]
    heapq.heapify(heap)
    while heap:
        h = heap[0][2]
        if prices[h] > left:
            heapq.heappop(heap)  # Money only gets less: this stratum is done.
            continue
        n_h[h] += 1
        left -= float(prices[h])
        if n_h[h] < bounds.upper[h]:
            heapq.heapreplace(heap, entry(h))
        else:
            heapq.heappop(heap)
    return n_h


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partial:
    """Undominated choices for the strata so far: cost, Σ a²/n, excess over the bound, and origin."""

    cost: FloatArray
    value: FloatArray
    excess: FloatArray
    parent: IntArray
    chosen: IntArray


def _improved(a: FloatArray, prices: FloatArray, money: float, bounds: Bounds, n_h: IntArray) -> IntArray:
    """Return the best whole numbers found with Σ c_h n_h ≤ money, at least as good as `n_h` (H,).

    Optimal unless combinations had to be left out, or `n_h` was within a millionth of the bound.
    """
    members = np.flatnonzero((a > 0) & (bounds.upper > np.maximum(bounds.lower, 0)))
    if len(members) < 2 or np.any(n_h[members] == 0):
        return n_h
    scaled, costs = a[members] / a[members].max(), prices[members]
    lower, upper = np.maximum(bounds.lower[members], 1), bounds.upper[members]
    share = money - float(np.delete(prices * n_h, members).sum())
    value = scaled / np.sqrt(costs)
    threshold, best = by_threshold(value / value.max(), lower, upper, share, costs=costs, tolerance=0.0)
    multiplier = float((threshold[0] * value.max()) ** 2)
    found = float((scaled**2 / n_h[members]).sum())
    gap = found - float((scaled**2 / best + multiplier * costs * best).sum()) + multiplier * share
    if gap <= _NEAR * found:
        return n_h
    layers = _layers(
        _Gap(
            a=scaled,
            prices=costs,
            lower=lower,
            upper=upper,
            money=share,
            multiplier=multiplier,
            best=best,
            gap=gap + 1e-12 * found,
        )
    )
    if not layers or layers[-1].value.min() >= found:
        return n_h
    result = n_h.copy()
    state = int(np.argmin(layers[-1].value))
    for h, layer in zip(members[::-1], layers[::-1], strict=True):
        result[h], state = layer.chosen[state], int(layer.parent[state])
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """The strata that matter, the price of money, and how far a choice may be from its bound."""

    a: FloatArray
    prices: FloatArray
    lower: IntArray
    upper: IntArray
    money: float
    multiplier: float
    best: IntArray
    gap: float

    @property
    def charged(self) -> FloatArray:
        """The smallest a²/n + μ c n of each stratum."""
        return self.a**2 / self.best + self.multiplier * self.prices * self.best


def _layers(problem: _Gap) -> list[_Partial]:
    """Return the undominated choices after each stratum; nothing if none is left."""
    a, prices, charged = problem.a, problem.prices, problem.charged
    most = int(np.clip(_STATES // len(a), _FEWEST, _MOST))
    zero, none = np.zeros(1), np.zeros(1, dtype=np.int64)
    last = _Partial(cost=zero, value=zero, excess=zero, parent=none, chosen=none)
    rest = np.append(np.cumsum((prices * problem.lower)[::-1])[::-1], 0.0)
    first = np.maximum(problem.lower, problem.best - _REACH)
    final = np.minimum(problem.upper, problem.best + _REACH)
    layers = []
    for h in range(len(a)):
        choices = np.arange(first[h], final[h] + 1)
        excess = a[h] ** 2 / choices + problem.multiplier * prices[h] * choices - charged[h]
        choices, excess = choices[excess <= problem.gap], excess[excess <= problem.gap]
        last = _extended(last, choices, a[h] ** 2 / choices, prices[h] * choices, excess)
        last = _pruned(last, (last.excess <= problem.gap) & (last.cost <= problem.money - rest[h + 1]), most)
        if len(last.cost) == 0:
            return []
        layers.append(last)
    return layers


def _extended(
    last: _Partial, choices: IntArray, values: FloatArray, costs: FloatArray, excess: FloatArray
) -> _Partial:
    parents, picks = np.divmod(np.arange(len(last.cost) * len(choices)), max(len(choices), 1))
    return _Partial(
        cost=last.cost[parents] + costs[picks],
        value=last.value[parents] + values[picks],
        excess=last.excess[parents] + excess[picks],
        parent=parents,
        chosen=choices[picks],
    )


def _pruned(states: _Partial, allowed: FloatArray, most: int) -> _Partial:
    """Return the allowed states that no other undercuts; of too many, the nearest to the bound."""
    keep = np.flatnonzero(allowed)
    keep = keep[np.lexsort((states.value[keep], states.cost[keep]))]
    if len(keep):
        lowest = np.minimum.accumulate(states.value[keep])
        keep = keep[np.append(True, states.value[keep][1:] < lowest[:-1])]
    if len(keep) > most:
        keep = keep[np.sort(np.argsort(states.excess[keep], kind="stable")[:most])]
    return _Partial(
        cost=states.cost[keep],
        value=states.value[keep],
        excess=states.excess[keep],
        parent=states.parent[keep],
        chosen=states.chosen[keep],
    )
