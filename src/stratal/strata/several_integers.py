"""Whole numbers of labels for many estimands: from the real optimum to the best found, and a bound on any.

The prices λ of the real optimum give each stratum a whole number too, and with it a bound on all whole
allocations. Labels are added until every constraint is kept and taken away where nobody needs them. Where the
bound is not met, a choice of n_h that alone costs more than the distance to it cannot be part of a better
solution; the few choices that are left are a programme in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.strata.cost import filled, start_below
from stratal.strata.integers import WRIGHT, Bounds, optimal_integers
from stratal.strata.several_dual import Demands
from stratal.strata.several_search import Choices, Found, Program, searched

_EXACT = 1e-10
_REACH = 64
_MOST_UNKNOWNS = 400
_BALANCING = 30
_EVENING = 12
_STARTS = 3
_CLOSE = 1e-9
_ADDED, _REMOVED, _SWAPS = 24, 48, 200


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole n_h (H,), and a number that no whole allocation comes below: of the cost, or of the level."""

    n_h: IntArray
    bound: float


def fewest(demands: Demands, multipliers: FloatArray) -> Whole:
    """Return the cheapest whole n_h found that keep every constraint.

    Parameters
    ----------
    demands : Demands
        Of whole bounds.
    multipliers : float (J,)
        The prices λ of the real optimum.

    Examples
    --------
    >>> from stratal.strata.several_dual import cheapest
    >>> one = np.ones(2)
    >>> demands = Demands(spread=np.array([[4.4, 1.0], [0.3, 9.0]]), slack=0 * one, prices=one,
    ...                   lower=0 * one + 2, upper=99 * one)
    >>> fewest(demands, cheapest(demands).multipliers)
    Whole(n_h=array([ 5, 10]), bound=15.0)
    """
    multipliers, starts = _balanced(demands, multipliers)
    n_h = min((_trimmed(demands, _repaired(demands, start)) for start in starts), key=demands.cost)
    whole = bool(np.all(demands.prices == np.floor(demands.prices)))
    proved = _cost_bound(demands, multipliers)
    cost, bound = demands.cost(n_h), _rounded(proved, whole)
    if cost - bound > _EXACT * cost:
        choices = _within(demands, multipliers, cost - proved - whole * (1 - _EXACT))
        if choices is not None:
            found = _fewer(demands, choices, n_h, whole)
            n_h, cost = found.n_h, found.value
            bound = max(bound, min(cost, _rounded(found.bound, whole)))
    return Whole(n_h.astype(np.int64), min(bound, cost))


def closest(demands: Demands, multipliers: FloatArray, money: float, sizes: IntArray) -> Whole:
    """Return the whole n_h found with the smallest largest level and Σ c_h n_h ≤ money; the money is spent.

    Examples
    --------
    >>> from stratal.strata.several_dual import most_precise
    >>> one = np.ones(2)
    >>> demands = Demands(spread=np.array([[4.0, 1.0], [0.0, 9.0]]), slack=0 * one, prices=one,
    ...                   lower=0 * one + 2, upper=99 * one)
    >>> found = closest(demands, most_precise(demands, 20.0).multipliers, 20.0, np.array([99, 99]))
    >>> found.n_h, round(found.bound, 4)
    (array([ 7, 13]), 0.6923)
    """
    bounds = Bounds(sizes=sizes, lower=demands.lower.astype(np.int64), upper=demands.upper.astype(np.int64))
    if len(demands.spread) == 0:
        return Whole(_spent(np.zeros(len(sizes)), demands, money, bounds).astype(np.int64), 0.0)
    multipliers, n_h = _evened(demands, multipliers, money, bounds)
    n_h = _swapped(demands, n_h, money)
    level, bound = float(demands.levels(n_h).max()), _level_bound(demands, multipliers, money)
    if level - bound > _CLOSE * level:
        room = (level - bound) * float(multipliers.sum())
        choices = _within(demands, multipliers, room)
        if choices is not None:
            found = _closer(demands, choices, n_h, money)
            n_h, level = found.n_h, found.value
            bound = max(bound, min(level, found.bound))
    rest = Bounds(sizes=sizes, lower=n_h.astype(np.int64), upper=bounds.upper)
    n_h = _spent(np.sqrt(demands.spread.sum(axis=0)), demands, money, rest)
    return Whole(n_h.astype(np.int64), min(bound, level))


def _rounded(bound: float, whole: bool) -> float:
    """Return the bound, raised to the next whole number where all costs are whole."""
    return float(np.ceil(bound - 1e-7)) if whole and np.isfinite(bound) else bound


def whole_for(demands: Demands, multipliers: FloatArray) -> FloatArray:
    """Return the whole n_h (H,) of least cost and priced variance: units worth their price are taken."""
    counts = WRIGHT.worth(np.sqrt(multipliers @ demands.spread / demands.prices))
    return np.clip(counts, demands.lower, demands.upper)


def _priced(demands: Demands, multipliers: FloatArray) -> float:
    n_h = whole_for(demands, multipliers)
    return demands.cost(n_h) + float(multipliers @ (demands.used(n_h) - demands.slack))


def _cost_bound(demands: Demands, multipliers: FloatArray) -> float:
    return _priced(demands, multipliers) - demands.level * float(multipliers.sum())


def _level_bound(demands: Demands, multipliers: FloatArray, money: float) -> float:
    total = float(multipliers.sum())
    floor = float(demands.levels(demands.upper).max())
    return max(floor, (_priced(demands, multipliers) - money) / total if total > 0 else floor)


def _balanced(demands: Demands, multipliers: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
    """Return prices at which whole n_h (H,) just meet the constraints, as nearly as found, and such n_h.

    Whole numbers move a sum a little, more where strata get few labels: the prices of broken constraints are
    raised, of slack ones lowered, by less and less.
    """
    best, bound = multipliers, _cost_bound(demands, multipliers)
    starts: list[tuple[float, FloatArray]] = []
    for step in range(_BALANCING):
        n_h = whole_for(demands, multipliers)
        ratio = demands.used(n_h) / demands.allowed
        found = demands.cost(n_h) + float(multipliers @ (demands.used(n_h) - demands.allowed))
        if found > bound:
            best, bound = multipliers, found
        starts.append((float(np.maximum(ratio - 1.0, 0.0).sum()), n_h))
        lowest = 1e-6 * multipliers.max(initial=0.0)
        power = 2.0 / (1.0 + 0.2 * step)
        multipliers = np.where(ratio > 1.0, np.maximum(multipliers, lowest), multipliers) * ratio**power
    starts.sort(key=lambda start: start[0])
    return best, [n_h for _, n_h in starts[:_STARTS]]


def _evened(
    demands: Demands, multipliers: FloatArray, money: float, bounds: Bounds
) -> tuple[FloatArray, FloatArray]:
    """Return the prices with the best bound and the best n_h (H,) found on the way to even levels."""
    best, bound, prices = multipliers, -np.inf, multipliers
    n_h, least = demands.lower, np.inf
    for step in range(_EVENING):
        trial = _spent(np.sqrt(prices @ demands.spread), demands, money, bounds)
        levels = demands.levels(trial)
        worst, proved = float(levels.max(initial=0.0)), _level_bound(demands, prices, money)
        best, bound = (prices, proved) if proved > bound else (best, bound)
        n_h, least = (trial, worst) if worst < least else (n_h, least)
        if least <= bound * (1 + _CLOSE):
            break
        prices = np.maximum(prices, 1e-6 * prices.max()) * (levels / worst) ** (2.0 / (1.0 + 0.2 * step))
    return best, n_h


def _repaired(demands: Demands, n_h: FloatArray) -> FloatArray:
    """Return n_h with labels added where they bring the broken constraints nearest, per cost."""
    n_h = n_h.copy()
    while True:
        excess = demands.used(n_h) - demands.allowed
        broken = excess > demands.allowed * _EXACT
        open_ = n_h < demands.upper
        if not broken.any() or not open_.any():
            return n_h
        gains = demands.spread[broken] / np.maximum(n_h * (n_h + 1.0), 1.0)
        score = np.minimum(gains / excess[broken, None], 1.0).sum(axis=0) / demands.prices
        n_h[int(np.argmax(np.where(open_, score, -1.0)))] += 1.0


def _trimmed(demands: Demands, n_h: FloatArray) -> FloatArray:
    """Return n_h without the labels that no constraint needs: the dearest first, then the least missed."""
    n_h = n_h.copy()
    while True:
        slack = demands.allowed * (1 + _EXACT) - demands.used(n_h)
        losses = demands.spread / np.maximum(n_h * (n_h - 1.0), 0.5)
        free = (n_h > demands.lower) & np.all(losses <= slack[:, None], axis=0)
        if not free.any():
            return n_h
        harm = (losses / np.maximum(slack, 1e-300)[:, None]).max(axis=0, initial=0.0)
        order = np.lexsort((harm, -demands.prices, ~free))
        n_h[int(order[0])] -= 1.0


def _spent(importance: FloatArray, demands: Demands, money: float, bounds: Bounds) -> FloatArray:
    """Return whole n_h that spend the money by the value of each label for Σ a_h²/n_h."""
    if np.all(demands.prices == 1.0):
        return optimal_integers(importance, bounds, int(money)).astype(np.float64)
    a = importance if importance.any() else bounds.sizes.astype(np.float64)
    start = start_below(a, demands.prices, money, bounds)
    return filled(a, demands.prices, money, bounds, start).astype(np.float64)


def _swapped(demands: Demands, n_h: FloatArray, money: float) -> FloatArray:
    """Return n_h after moves of one label between strata, the best each time, while the worst level falls."""
    n_h = n_h.copy()
    for _ in range(_SWAPS):
        levels = demands.used(n_h) - demands.slack
        worst = int(np.argmax(levels))
        gains = np.where(n_h < demands.upper, demands.spread / np.maximum(n_h * (n_h + 1.0), 0.5), 0.0)
        losses = demands.spread / np.maximum(n_h * (n_h - 1.0), 0.5)
        harm = np.where(n_h > demands.lower, losses.max(axis=0), np.inf)
        adds = np.argsort(-gains[worst] / demands.prices, kind="stable")[:_ADDED]
        drops = np.argsort(harm / demands.prices, kind="stable")[:_REMOVED]
        after = levels[:, None, None] - gains[:, adds, None] + losses[:, None, drops]
        spent = demands.cost(n_h) + demands.prices[adds][:, None] - demands.prices[drops]
        allowed = (spent <= money) & np.isfinite(harm[drops]) & (adds[:, None] != drops)
        result = np.where(allowed, after.max(axis=0), np.inf)
        add, drop = np.unravel_index(int(np.argmin(result)), result.shape)
        if not result[add, drop] < levels[worst] * (1 - 1e-12):
            break
        n_h[adds[add]] += 1.0
        n_h[drops[drop]] -= 1.0
    return n_h


def _within(demands: Demands, multipliers: FloatArray, room: float) -> Choices | None:
    """Return the labels within the reach of `room`, the priced cost to spare; None if they are many."""
    if len(demands.prices) > _MOST_UNKNOWNS:
        return None
    total = multipliers @ demands.spread
    best = whole_for(demands, multipliers)
    reach = best[:, None] + np.arange(-_REACH, _REACH + 1)
    choices = np.clip(reach, demands.lower[:, None], demands.upper[:, None])
    least = total / np.maximum(best, 1.0) + demands.prices * best
    priced = total[:, None] / np.maximum(choices, 1.0) + demands.prices[:, None] * choices
    near = priced - least[:, None] <= room + _CLOSE * np.abs(least).sum()
    first = np.where(near, choices, np.inf).min(axis=1)
    final = np.where(near, choices, -np.inf).max(axis=1)
    if not np.all(final >= first) or (final - first).sum() > _MOST_UNKNOWNS:
        return None
    return Choices.between(demands, first, final)


def _fewer(demands: Demands, choices: Choices, n_h: FloatArray, whole: bool) -> Found:
    """Return the cheapest whole n_h of the choices, `n_h` if none is cheaper."""
    needed = demands.used(choices.first) - demands.allowed
    program = Program(
        objective=demands.prices[choices.stratum],
        rows=-choices.gains / demands.allowed[:, None],
        limits=-needed / demands.allowed,
        constant=demands.cost(choices.first),
    )
    return searched(
        program,
        choices,
        n_h,
        lambda taken: _trimmed(demands, _repaired(demands, choices.counted(np.floor(taken + _CLOSE)))),
        demands.cost,
        step=1.0 if whole else 0.0,
    )


def _closer(demands: Demands, choices: Choices, n_h: FloatArray, money: float) -> Found:
    """Return the whole n_h of the choices with the lowest worst level, `n_h` if none has a lower one."""
    levels = demands.used(choices.first) - demands.slack
    scale = float(np.abs(levels).max())
    prices = demands.prices[choices.stratum]
    precise = np.hstack([-choices.gains / scale, -np.ones((len(levels), 1))])
    left = money - demands.cost(choices.first)
    unit = max(left, float(prices.max(initial=1.0)))

    def rounded(taken: FloatArray) -> FloatArray:
        start = choices.counted(np.floor(taken[:-1] + _CLOSE))
        return _swapped(demands, _filled_up(demands, start, money), money)

    program = Program(
        objective=np.append(np.zeros(len(prices)), scale),
        rows=np.vstack([precise, np.append(prices / unit, 0.0)]),
        limits=np.append(-levels / scale, left / unit),
        constant=0.0,
    )
    return searched(program, choices, n_h, rounded, lambda n: float(demands.levels(n).max()))


def _filled_up(demands: Demands, n_h: FloatArray, money: float) -> FloatArray:
    """Return n_h with labels added where the worst estimand gains most, while the money lasts."""
    n_h = n_h.copy()
    while True:
        open_ = (n_h < demands.upper) & (demands.prices <= money - demands.cost(n_h))
        if not open_.any():
            return n_h
        worst = int(np.argmax(demands.used(n_h) - demands.slack))
        gains = demands.spread[worst] / np.maximum(n_h * (n_h + 1.0), 0.5) / demands.prices
        if not np.any(gains[open_] > 0):
            return n_h
        n_h[int(np.argmax(np.where(open_, gains, -1.0)))] += 1.0
