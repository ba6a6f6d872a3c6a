"""Many precision constraints on one allocation, in real numbers: a price per estimand, and its certificate.

With a price λ_j on the variance of each estimand, Σ c_h n_h + Σ_j λ_j Σ_h A_jh / n_h splits into one small
problem per stratum, solved by n_h = √(Σ_j λ_j A_jh / c_h) within the bounds. Its minimum less Σ λ_j V_j is a
lower bound on the cost of every allocation that keeps all constraints, and the best such bound is the cost of
the optimum (Bethel 1989; Chromy 1987). It is concave in λ, with one variable per estimand: Newton's method on
λ ≥ 0 finds its maximum, and the distance between a feasible allocation and the bound certifies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray

_GAP = 1e-10
_STEPS = 300
_FIRST_STEPS = 12
_ROOT_STEPS = 60
_TIGHT = 1e-9
_MOST_DAMPING = 1e12
_SPARSE = 0.05


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
