"""The last step of allocation under a budget of money: dynamic programming over what can still be optimal.

With a price μ on money, Σ a_h²/n_h + μ c_h n_h splits into one small problem per stratum, and its minimum
less μ·budget is a lower bound on the sum. A choice of n_h that alone costs more than the gap between this
bound and the solution in hand cannot be part of a better one. Few choices remain, and combinations that are
both dearer and worse than another are dropped as strata are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stratal.allocation.bounds import Bounds
from stratal.arrays import FloatArray, IntArray

_STEPS = 100
_REACH = 64
_STATES = 200_000
_FEWEST, _MOST = 500, 20_000
_NEAR = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partial:
    """Undominated choices for the strata so far: cost, Σ a²/n, excess over the bound, and origin."""

    cost: FloatArray
    value: FloatArray
    excess: FloatArray
    parent: IntArray
    chosen: IntArray


def improved(a: FloatArray, prices: FloatArray, money: float, bounds: Bounds, n_h: IntArray) -> IntArray:
    """Return the best whole numbers found with Σ c_h n_h ≤ money, at least as good as `n_h`.

    Optimal unless combinations had to be left out, or `n_h` was within a millionth of the bound.

    Parameters
    ----------
    a : float (H,)
        Importance, none negative; zero counts for nothing.
    prices : float (H,)
        c_h.
    money : float
        The budget.
    bounds : Bounds
        Lower and upper bounds.
    n_h : int (H,)
        A solution to start from.

    Examples
    --------
    >>> bounds = Bounds.read([9, 9], minimum=1)
    >>> improved(np.array([1.0, 1.0]), np.array([2.0, 3.0]), 12.0, bounds, np.array([4, 1]))
    array([3, 2])
    """
    members = np.flatnonzero((a > 0) & (bounds.upper > np.maximum(bounds.lower, 0)))
    if len(members) < 2 or np.any(n_h[members] == 0):
        return n_h
    b, c = a[members] / a[members].max(), prices[members]
    lower, upper = np.maximum(bounds.lower[members], 1), bounds.upper[members]
    fixed = np.ones(len(a), dtype=bool)
    fixed[members] = False
    share = money - float(prices[fixed] @ n_h[fixed])
    multiplier, best = _price_of_money(b, c, share, lower, upper)
    charged = b**2 / best + multiplier * c * best
    found = float((b**2 / n_h[members]).sum())
    gap = found - (float(charged.sum()) - multiplier * share)
    if gap <= _NEAR * found:
        return n_h
    layers = _layers(b, c, share, multiplier, gap + 1e-12 * found, best, charged, lower, upper)
    if not layers or layers[-1].value.min() >= found:
        return n_h
    result = n_h.copy()
    state = int(np.argmin(layers[-1].value))
    for h, layer in zip(members[::-1], layers[::-1], strict=True):
        result[h], state = layer.chosen[state], int(layer.parent[state])
    return result


def _price_of_money(
    b: FloatArray, c: FloatArray, money: float, lower: IntArray, upper: IntArray
) -> tuple[float, IntArray]:
    """Return the μ at which the separate optima just fit the money, and these optima."""

    def separate(multiplier: float) -> IntArray:
        ratio = np.minimum(b**2 / (multiplier * c), 1e24)
        n = np.floor((np.sqrt(1.0 + 4.0 * ratio) - 1.0) / 2.0) + 1.0
        return np.clip(n, lower, upper).astype(np.int64)

    scale = float((b**2 / c).max())
    low, high = math.log(scale) - 100.0, math.log(scale) + 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if float(c @ separate(math.exp(middle))) <= money:
            high = middle
        else:
            low = middle
    return math.exp(high), separate(math.exp(high))


def _layers(
    b: FloatArray,
    c: FloatArray,
    money: float,
    multiplier: float,
    gap: float,
    best: IntArray,
    charged: FloatArray,
    lower: IntArray,
    upper: IntArray,
) -> list[_Partial]:
    """Return the undominated choices after each stratum; nothing if none is left."""
    most = int(np.clip(_STATES // len(b), _FEWEST, _MOST))
    zero, none = np.zeros(1), np.zeros(1, dtype=np.int64)
    last = _Partial(cost=zero, value=zero, excess=zero, parent=none, chosen=none)
    rest = np.append(np.cumsum((c * lower)[::-1])[::-1], 0.0)
    layers = []
    for h in range(len(b)):
        choices = np.arange(max(lower[h], best[h] - _REACH), min(upper[h], best[h] + _REACH) + 1)
        excess = b[h] ** 2 / choices + multiplier * c[h] * choices - charged[h]
        choices, excess = choices[excess <= gap], excess[excess <= gap]
        last = _extended(last, choices, b[h] ** 2 / choices, c[h] * choices, excess)
        last = _pruned(last, (last.excess <= gap) & (last.cost <= money - rest[h + 1]), most)
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
