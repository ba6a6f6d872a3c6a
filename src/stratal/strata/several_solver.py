"""Whole numbers of labels for many estimands: from the real optimum to the best found, and a bound on any.

The prices λ of the real optimum give each stratum a whole number too, and with it a bound on all whole
allocations. Labels are added until every constraint is kept and taken away where nobody needs them. Where the
bound is not met, a choice of n_h that alone costs more than the distance to it cannot be part of a better
solution; the few choices that are left are a programme in whole numbers.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.errors import BudgetError, InputError
from stratal.strata.integers import WRIGHT, Bounds, by_threshold, one_per_stratum, optimal_integers

_GAP = 1e-10
"""Relative distance of cost and bound at which the real optimum is proved: near what doubles resolve."""

_STEPS = 300
"""Newton steps at most; some ten are usual, and the bound is valid wherever they end."""

_FIRST_STEPS = 12
"""Chromy's steps before Newton's: they converge slowly, but from anywhere."""

_ROOT_STEPS = 60
"""Levels tried at most: with bisection alone that is all digits of a double."""

_TIGHT = 1e-9
"""A constraint that the upper bounds meet no better than this needs every label of its strata."""

_MOST_DAMPING = 1e12
"""From here a damped step is too small to change a double."""

_SPARSE = 0.05
"""Share of numbers that are not 0 below which a sparse product takes less time."""

_SLACK = 1e-12
"""Share of the money that rounding may cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Constraints Σ_h A_jh / n_h ≤ level + slack_j on labels that cost c_h and lie between bounds.

    Parameters
    ----------
    spread : float (J, H)
        A_jh, scaled so that the wanted variance of every estimand is 1.
    slack : float (J,)
        What the finite population correction adds: Σ_h A_jh / N_h, or 0.
    prices : float (H,)
        c_h.
    lower, upper : float (H,)
        Bounds on n_h.
    level : float
        Variance allowed, as a multiple of the wanted one.
    """

    spread: FloatArray
    slack: FloatArray
    prices: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float = 1.0

    @property
    def allowed(self) -> FloatArray:
        """What Σ_h A_jh / n_h may be, (J,)."""
        return self.level + self.slack

    def used(self, n_h: FloatArray | IntArray) -> FloatArray:
        """Return Σ_h A_jh / n_h (J,); nothing varies where n_h may be 0."""
        return self.spread @ (1.0 / np.maximum(n_h, 1e-300) * (n_h > 0))

    def cost(self, n_h: FloatArray | IntArray) -> float:
        """Return Σ c_h n_h."""
        return float(self.prices @ n_h)

    def levels(self, n_h: FloatArray | IntArray) -> FloatArray:
        """Return the variance of each estimand as a multiple of the wanted one, (J,)."""
        return np.maximum(self.used(n_h) - self.slack, 0.0)

    def at(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """Return the n_h (H,) that λ (J,) leads to, and the lower bound on the cost that λ proves."""
        total = multipliers @ self.spread
        n_h = np.clip(np.sqrt(total / self.prices), self.lower, self.upper)
        bound = self.cost(n_h) + float(multipliers @ (self.used(n_h) - self.allowed))
        return n_h, bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """The best real-valued allocation n_h (H,), the prices λ (J,) that prove it, and what it costs.

    `bound` is a number below which no allocation can come: of the cost, or of the level.
    """

    n_h: FloatArray
    multipliers: FloatArray
    bound: float


def without_settled(demands: Demands) -> tuple[Demands, BoolArray]:
    """Return the demands that leave a choice, and which estimands (J,) they are of.

    An estimand that needs every label the upper bounds allow has them: its strata are fixed there.
    """
    used, allowed = demands.used(demands.upper), demands.allowed
    settled = used >= allowed * (1 - _TIGHT)
    idle = demands.used(demands.lower) <= allowed
    full = np.any(demands.spread[settled] > 0, axis=0)
    open_ = ~settled & ~idle
    lower = np.where(full, demands.upper, demands.lower)
    kept = replace(demands, spread=demands.spread[open_], slack=demands.slack[open_], lower=lower)
    return kept, open_


def cheapest(demands: Demands, start: FloatArray | None = None) -> Optimum:
    """Return the real-valued n_h of least cost that keep every constraint; one must exist.

    Examples
    --------
    >>> one = np.ones(2)
    >>> demands = Demands(spread=np.array([[4.0, 1.0], [0.0, 9.0]]), slack=0 * one, prices=one,
    ...                   lower=0 * one + 2, upper=99 * one)
    >>> found = cheapest(demands)
    >>> found.n_h.round(4), round(found.bound, 4)
    (array([4.5, 9. ]), 13.5)
    """
    kept, open_ = without_settled(demands)
    multipliers = np.zeros(len(open_))
    if not open_.any():
        return Optimum(n_h=kept.lower, multipliers=multipliers, bound=kept.cost(kept.lower))
    warm = start is not None and start[open_].any()
    found = _newton(kept, start[open_] if start is not None and warm else _first(kept))
    multipliers[open_] = found.multipliers
    return replace(found, multipliers=multipliers)


def most_precise(demands: Demands, money: float) -> Optimum:
    """Return the real-valued n_h that make the largest level smallest with Σ c_h n_h ≤ money.

    The least cost of a level falls with the level and is convex: the level that costs just the money is found
    by Newton's method on the cost's reciprocal, whose slope the prices λ give.

    Examples
    --------
    >>> one = np.ones(2)
    >>> demands = Demands(spread=np.array([[4.0, 1.0], [0.0, 9.0]]), slack=0 * one, prices=one,
    ...                   lower=0 * one + 2, upper=99 * one)
    >>> found = most_precise(demands, 27.0)
    >>> found.n_h.round(4), round(found.bound, 4)
    (array([ 9., 18.]), 0.5)
    """
    low, high = float(demands.levels(demands.upper).max()), float(demands.levels(demands.lower).max())
    level = float(np.clip(1.0, low + (high - low) * 1e-6, high))
    found = cheapest(replace(demands, level=level))
    for _ in range(_ROOT_STEPS):
        cost, slope = demands.cost(found.n_h), float(found.multipliers.sum())
        low, high = (level, high) if cost > money else (low, level)
        if abs(cost - money) <= _GAP * money or high - low <= 1e-14 * high:
            break
        step = level + (cost / money - 1.0) * cost / slope if slope > 0 else low
        level = step if low < step < high else (low + high) / 2.0
        found = cheapest(replace(demands, level=level), found.multipliers if slope > 0 else None)
    slope = float(found.multipliers.sum())
    bound = level + (found.bound - money) / slope if slope > 0 else low
    return replace(found, bound=max(bound, float(demands.levels(demands.upper).max())))


def without_floors(demands: Demands, money: float) -> tuple[Demands, BoolArray]:
    """Return the demands whose precision the money decides, and which estimands (J,) they are of.

    Where the money reaches the level that no allocation can undercut, the estimands that are at it have
    every label of their strata, and the rest of the money is for the others.
    """
    open_, lower = np.ones(len(demands.spread), dtype=bool), demands.lower
    kept = demands
    while open_.any():
        kept = replace(demands, spread=demands.spread[open_], slack=demands.slack[open_], lower=lower)
        floors = kept.levels(kept.upper)
        if kept.cost(cheapest(replace(kept, level=floors.max())).n_h) > money * (1 + _GAP):
            return kept, open_
        reached = floors >= floors.max() * (1 - _TIGHT)
        lower = np.where(np.any(kept.spread[reached] > 0, axis=0), demands.upper, lower)
        open_[np.flatnonzero(open_)[reached]] = False
    return replace(kept, spread=kept.spread[:0], slack=kept.slack[:0], lower=lower), open_


def _first(demands: Demands) -> FloatArray:
    """Return prices to start from: each estimand's own, then Chromy's steps λ_j (used_j / allowed_j)²."""
    alone = np.sqrt(demands.spread * demands.prices).sum(axis=1) / demands.allowed
    multipliers = alone**2 / len(alone)
    for _ in range(_FIRST_STEPS):
        ratio = demands.used(demands.at(multipliers)[0]) / demands.allowed
        multipliers = multipliers * np.clip(ratio, 0.1, 10.0) ** 2
    return np.asarray(np.maximum(multipliers, 1e-8 * multipliers.max()))


def _newton(demands: Demands, multipliers: FloatArray) -> Optimum:
    """Return the maximum of the bound over λ ≥ 0: Newton's steps, damped until they help."""
    n_h, bound = demands.at(multipliers)
    damping, best = 1e-8, Optimum(n_h=demands.upper, multipliers=multipliers, bound=-np.inf)
    for _ in range(_STEPS):
        best = replace(best, n_h=min(best.n_h, _kept(demands, n_h), key=demands.cost))
        if bound >= best.bound:
            best = replace(best, multipliers=multipliers, bound=bound)
        if demands.cost(best.n_h) - best.bound <= _GAP * abs(best.bound) or damping > _MOST_DAMPING:
            break
        gradient = demands.used(n_h) - demands.allowed
        free = (multipliers > 0) | (gradient > 0)
        curvature = _curvature(demands, n_h, free)
        while damping <= _MOST_DAMPING:
            moved = _moved(multipliers, gradient, curvature, free, damping)
            trial_n, trial = demands.at(moved)
            rises = trial > bound + 1e-4 * max(float(gradient @ (moved - multipliers)), 0.0)
            level = trial >= bound - 1e-13 * abs(bound)
            if rises or (level and 2 * _miss(demands, trial_n, moved) < _miss(demands, n_h, multipliers)):
                multipliers, n_h, bound, damping = moved, trial_n, trial, max(damping / 10.0, 1e-12)
                break
            damping *= 10.0
    return best


def _miss(demands: Demands, n_h: FloatArray, multipliers: FloatArray) -> float:
    """Return how far the constraints that have a price are from being met exactly, relatively."""
    excess = demands.used(n_h) / demands.allowed - 1.0
    return float(np.where(multipliers > 0, np.abs(excess), np.maximum(excess, 0.0)).max())


def _curvature(demands: Demands, n_h: FloatArray, free: BoolArray) -> FloatArray:
    """Return minus the second derivatives of the bound in the free λ: strata at a bound have none."""
    inside = (n_h > demands.lower) & (n_h < demands.upper)
    spread = demands.spread[np.ix_(free, inside)]
    weights = 0.5 / (demands.prices[inside] * n_h[inside] ** 3)
    if np.count_nonzero(spread) < _SPARSE * spread.size:  # levels of a category share no strata
        from scipy.sparse import csr_array

        few = csr_array(spread)
        return np.asarray(((few * weights) @ few.T).toarray())
    return np.asarray((spread * weights) @ spread.T)


def _moved(
    multipliers: FloatArray, gradient: FloatArray, curvature: FloatArray, free: BoolArray, damping: float
) -> FloatArray:
    """Return λ after one damped step of Newton's in units of λ, none below a thousandth of what it was."""
    units = np.maximum(multipliers[free], 1e-6 * multipliers.max())
    scaled = curvature * units[:, None] * units
    size = max(float(np.trace(scaled)) / len(scaled), 1e-6 * float(np.abs(gradient[free] * units).max()))
    step = np.linalg.solve(scaled + damping * size * np.eye(len(scaled)), gradient[free] * units) * units
    moved = np.zeros_like(multipliers)
    moved[free] = np.maximum(multipliers[free] + step, 1e-3 * multipliers[free])
    return np.where(moved > 1e-12 * moved.max(), moved, 0.0)


def _kept(demands: Demands, n_h: FloatArray) -> FloatArray:
    """Return n_h raised in proportion until every constraint is kept; the upper bounds if that fails."""
    for _ in range(8):
        excess = float((demands.used(n_h) / demands.allowed).max())
        if excess <= 1.0:
            return n_h
        n_h = np.clip(n_h * excess * (1 + 1e-15), demands.lower, demands.upper)
    return n_h if excess <= 1 + 1e-12 else demands.upper


_NODES = 200
"""Nodes that are looked at: a number and not a time, so that every machine finds the same."""

_FEW = 1e-9
"""Relative difference below which two values of a programme count as one."""

_INFEASIBLE = 2
"""What SciPy's `milp` reports where no choice keeps every constraint."""


_SMALL = 64
"""Where more choices than these each matter to several estimands, whole numbers would take seconds for
thousandths: the real numbers' bound, and what they are rounded to, are enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The m labels that a better solution may or may not have, one unknown each.

    Parameters
    ----------
    first : float (H,)
        The labels that every better solution has.
    stratum : int (m,)
        Where each further label is.
    gains : float (J, m)
        What it takes off each estimand's Σ A_jh / n_h.
    """

    first: FloatArray
    stratum: IntArray
    gains: FloatArray

    @classmethod
    def between(cls, demands: Demands, first: FloatArray, final: FloatArray) -> Choices:
        """Return the labels from `first` to `final` (H,)."""
        counts = (final - first).astype(np.int64)
        stratum = np.repeat(np.arange(len(first)), counts)
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        n = first[stratum] + offsets
        gains = demands.spread[:, stratum] / np.maximum(n * (n + 1.0), 1.0)
        return cls(first=first, stratum=stratum, gains=gains)

    @property
    def whole(self) -> int:
        """How many of them are decided as whole numbers: all, or none where that would take long."""
        shared = np.count_nonzero(self.gains) > 1.5 * len(self.stratum)
        return 0 if shared and len(self.stratum) > _SMALL else len(self.stratum)

    def counted(self, taken: FloatArray) -> FloatArray:
        """Return n_h (H,) with the labels that were taken."""
        return np.asarray(self.first + np.bincount(self.stratum, taken, minlength=len(self.first)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Minimise constant + objective @ x with rows @ x ≤ limits, choices 0 or 1, the rest from 0."""

    objective: FloatArray
    rows: FloatArray
    limits: FloatArray
    constant: float

    def solved(self, choices: Choices, most: float) -> tuple[FloatArray | None, float]:
        """Return the best x found of those with a value of `most` or less, and what no x comes below.

        There may be no such x: what none comes below is then `most`.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp

        places = np.arange(len(self.objective))
        found = milp(
            self.objective,
            integrality=(places < choices.whole).astype(np.int64),
            bounds=Bounds(0.0, np.where(places < len(choices.stratum), 1.0, np.inf)),
            constraints=LinearConstraint(
                np.vstack([self.rows, self.objective]), -np.inf, np.append(self.limits, most - self.constant)
            ),
            options={"node_limit": _NODES, "mip_rel_gap": _FEW},
        )
        if found.status == _INFEASIBLE:
            return None, most
        bound = found.mip_dual_bound if choices.whole else found.fun
        return found.x, -np.inf if bound is None else self.constant + float(bound)


def searched(
    program: Program,
    choices: Choices,
    n_h: FloatArray,
    rounded: Callable[[FloatArray], FloatArray],
    value: Callable[[FloatArray], float],
    step: float = 0.0,
) -> Whole:
    """Return the best whole n_h found.

    Parameters
    ----------
    program : Program
        Its first unknowns are the choices.
    choices : Choices
        The labels in doubt.
    n_h : float (H,)
        A solution to improve on: the programme is asked for better ones alone, which is what makes it quick.
    rounded : callable
        From a solution of the program to a whole n_h that keeps every constraint.
    value : callable
        Of a whole n_h.
    step : float
        The least by which values differ: 1 where costs are whole.
    """
    least = value(n_h)
    wanted = min(least - step * (1 - 1e-6), least * (1 - _FEW))
    if len(choices.stratum):
        x, bound = program.solved(choices, wanted)
    else:  # the labels that every better solution has are the only other one
        x, bound = np.zeros(len(program.objective)), np.inf
    trial = n_h if x is None else rounded(x)
    best = trial if value(trial) < least else n_h
    proved = bound >= wanted * (1 - 1e-12)  # nothing is better than what was there
    return Whole(best, value(best), value(best) if proved else min(bound, value(best)))


_EXACT = 1e-10
"""Relative excess of a constraint that counts as rounding."""

_REACH = 64
"""Labels more or fewer than the priced number that are considered in a stratum."""

_MOST_UNKNOWNS = 400
"""Labels in doubt beyond which the programme would take seconds."""

_BALANCING = 30
"""Steps in which prices are balanced; their size falls as 1 / (1 + 0.2 k)."""

_EVENING = 12
"""Steps in which levels are evened out; more find no better allocation."""

_STARTS = 3
"""Roundings from which labels are added and taken away."""

_CLOSE = 1e-9
"""Relative distance to the bound at which an allocation counts as the best."""

_ADDED, _REMOVED, _SWAPS = 24, 48, 200
"""Strata between which a label may move, and moves at most: each must lower the worst level."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The best whole n_h (H,) found, its cost or level, and what no whole allocation comes below."""

    n_h: Any
    value: float
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
    >>> from stratal.strata.several_solver import cheapest
    >>> one = np.ones(2)
    >>> demands = Demands(spread=np.array([[4.4, 1.0], [0.3, 9.0]]), slack=0 * one, prices=one,
    ...                   lower=0 * one + 2, upper=99 * one)
    >>> fewest(demands, cheapest(demands).multipliers)
    Whole(n_h=array([ 5, 10]), value=15.0, bound=15.0)
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
    return Whole(n_h.astype(np.int64), cost, min(bound, cost))


def closest(demands: Demands, multipliers: FloatArray, money: float, sizes: IntArray) -> Whole:
    """Return the whole n_h found with the smallest largest level and Σ c_h n_h ≤ money; the money is spent.

    Examples
    --------
    >>> from stratal.strata.several_solver import most_precise
    >>> one = np.ones(2)
    >>> demands = Demands(spread=np.array([[4.0, 1.0], [0.0, 9.0]]), slack=0 * one, prices=one,
    ...                   lower=0 * one + 2, upper=99 * one)
    >>> found = closest(demands, most_precise(demands, 20.0).multipliers, 20.0, np.array([99, 99]))
    >>> found.n_h, round(found.bound, 4)
    (array([ 7, 13]), 0.6923)
    """
    bounds = Bounds(sizes=sizes, lower=demands.lower.astype(np.int64), upper=demands.upper.astype(np.int64))
    if len(demands.spread) == 0:
        return Whole(_spent(np.zeros(len(sizes)), demands, money, bounds).astype(np.int64), 0.0, 0.0)
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
    return Whole(n_h.astype(np.int64), level, min(bound, level))


def _rounded(bound: float, whole: bool) -> float:
    """Return the bound, raised to the next whole number where all costs are whole."""
    return float(np.ceil(bound - 1e-7)) if whole and np.isfinite(bound) else bound


def round_to_integers(demands: Demands, multipliers: FloatArray) -> FloatArray:
    """Return the whole n_h (H,) of least cost and priced variance: units worth their price are taken."""
    counts = WRIGHT.worth(np.sqrt(multipliers @ demands.spread / demands.prices))
    return np.clip(counts, demands.lower, demands.upper)


def _priced(demands: Demands, multipliers: FloatArray) -> float:
    n_h = round_to_integers(demands, multipliers)
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
        n_h = round_to_integers(demands, multipliers)
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
    return filled(a, demands.prices, money, bounds).astype(np.float64)


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
    best = round_to_integers(demands, multipliers)
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


def _fewer(demands: Demands, choices: Choices, n_h: FloatArray, whole: bool) -> Whole:
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


def _closer(demands: Demands, choices: Choices, n_h: FloatArray, money: float) -> Whole:
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


# ---- one weighted variance, where labels cost different amounts


def check_money(bounds: Bounds, costs: Any, cost_budget: float | None) -> tuple[FloatArray, float]:
    """Return what a label costs in each stratum (H,), and the money that may be spent: any if not limited.

    It must pay for the minima; a trifle for rounding is added.
    """
    prices = one_per_stratum("costs", costs, len(bounds.sizes))
    if not np.all(prices > 0):
        raise InputError("every cost must be positive", given=f"{prices.min():g}", allowed="above 0")
    if cost_budget is None:
        return prices, np.inf
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
    return prices, money * (1 + _SLACK)


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


def filled(a: FloatArray, prices: FloatArray, money: float, bounds: Bounds) -> IntArray:
    """Return the lower bounds with units added by value per cost as long as one fits."""
    n_h = start_below(a, prices, money, bounds)
    left = money - float(prices @ n_h)

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


def least_variance(a: FloatArray, prices: FloatArray, money: float, bounds: Bounds) -> IntArray:
    """Return the best whole numbers found with Σ c_h n_h ≤ money for Σ a_h²/n_h: a knapsack.

    Units are taken by value per cost while they fit; then the programme of one estimand looks for better.

    Examples
    --------
    >>> bounds = Bounds.read([100, 100])
    >>> least_variance(np.array([50.0, 50.0]), np.array([1.0, 4.0]), 60.0, bounds)
    array([20, 10])
    """
    n_h = filled(a, prices, money, bounds)
    matters = (a > 0) & (bounds.upper > 0)
    if len(a) > _MOST_UNKNOWNS or np.any(n_h[matters] == 0) or np.all(prices == prices[0]):
        return n_h  # by value alone: too many, too poor, or optimal already
    spread = (a / a.max()) ** 2
    demands = Demands(
        spread=spread[None, :],
        slack=np.zeros(1),
        prices=prices,
        lower=np.maximum(bounds.lower, matters).astype(np.float64),
        upper=bounds.upper.astype(np.float64),
    )
    kept, open_ = without_floors(demands, money)
    if not open_.any():
        return n_h
    better = closest(kept, most_precise(kept, money).multipliers, money, bounds.sizes).n_h
    return better if demands.used(better)[0] < demands.used(n_h)[0] * (1 - _SLACK) else n_h
