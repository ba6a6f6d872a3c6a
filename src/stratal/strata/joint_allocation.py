"""`allocate_several`: one allocation for many estimands, each with a wanted precision or a weight.

From the real optimum to the best whole numbers found, and a bound on any. The prices λ of the real optimum
give each stratum a whole number too, and with it a bound on all whole allocations. Labels are added until
every constraint is kept and taken away where nobody needs them, or moved where the worst of the variances
falls by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.errors import BudgetError, InputError
from stratal.strata.allocation import WRIGHT, Allocation, AllocationBounds, one_per_stratum, optimal_integers

# Relative distance of cost and bound at which the real optimum is proved: near what doubles resolve.
_GAP = 1e-10

# Newton steps at most; some ten are usual, and the bound is valid wherever they end.
_STEPS = 300

# Chromy's steps before Newton's: they converge slowly, but from anywhere.
_FIRST_STEPS = 12

# Levels tried at most: with bisection alone that is all digits of a double.
_ROOT_STEPS = 60

# A constraint that the upper bounds meet no better than this needs every label of its strata.
_TIGHT = 1e-9

# From here a damped step is too small to change a double.
_MOST_DAMPING = 1e12

# Share of numbers that are not 0 below which a sparse product takes less time.
_SPARSE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Constraints Σ_h A_jh / n_h ≤ level + slack_j on labels that lie between bounds.

    Parameters
    ----------
    spread : float (J, H)
        A_jh, scaled so that the wanted variance of every estimand is 1.
    slack : float (J,)
        What the finite population correction adds: Σ_h A_jh / N_h, or 0.
    lower, upper : float (H,)
        Bounds on n_h.
    level : float
        Variance allowed, as a multiple of the wanted one.
    """

    spread: FloatArray
    slack: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float = 1.0

    @property
    def allowed(self) -> FloatArray:
        """The limits of Σ_h A_jh / n_h, (J,)."""
        return self.level + self.slack

    def used(self, n_h: FloatArray | IntArray) -> FloatArray:
        """Return Σ_h A_jh / n_h (J,); nothing varies where n_h may be 0."""
        return self.spread @ (1.0 / np.maximum(n_h, 1e-300) * (n_h > 0))

    def cost(self, n_h: FloatArray | IntArray) -> float:
        """Return Σ n_h."""
        return float(n_h.sum())

    def levels(self, n_h: FloatArray | IntArray) -> FloatArray:
        """Return the variance of each estimand as a multiple of the wanted one, (J,)."""
        return np.maximum(self.used(n_h) - self.slack, 0.0)

    def at(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """Return the n_h (H,) that λ (J,) leads to, and the lower bound on the cost that λ proves."""
        n_h = np.clip(np.sqrt(multipliers @ self.spread), self.lower, self.upper)
        return n_h, self.cost(n_h) + float(multipliers @ (self.used(n_h) - self.allowed))


@dataclass(frozen=True, slots=True)
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
    used = demands.used(demands.upper)
    allowed = demands.allowed
    settled = used >= allowed * (1 - _TIGHT)
    idle = demands.used(demands.lower) <= allowed
    full = np.any(demands.spread[settled] > 0, axis=0)
    open_ = ~settled & ~idle
    lower = np.where(full, demands.upper, demands.lower)
    remaining = replace(demands, spread=demands.spread[open_], slack=demands.slack[open_], lower=lower)
    return remaining, open_


def cheapest(demands: Demands, start: FloatArray | None = None) -> Optimum:
    """Return the real-valued n_h of least cost that keep every constraint; one must exist."""
    remaining, open_ = without_settled(demands)
    multipliers = np.zeros(len(open_))
    if not open_.any():
        return Optimum(n_h=remaining.lower, multipliers=multipliers, bound=remaining.cost(remaining.lower))
    warm = start is not None and start[open_].any()
    optimum = _newton(remaining, start[open_] if start is not None and warm else _first(remaining))
    multipliers[open_] = optimum.multipliers
    return replace(optimum, multipliers=multipliers)


def most_precise(demands: Demands, money: float) -> Optimum:
    """Return the real-valued n_h that make the largest level smallest with Σ n_h ≤ money.

    The least cost of a level falls with the level and is convex: the level that costs just the money is found
    by Newton's method on the cost's reciprocal, whose slope the prices λ give.
    """
    low = float(demands.levels(demands.upper).max())
    high = float(demands.levels(demands.lower).max())
    level = float(np.clip(1.0, low + (high - low) * 1e-6, high))
    optimum = cheapest(replace(demands, level=level))
    for _ in range(_ROOT_STEPS):
        cost = demands.cost(optimum.n_h)
        slope = float(optimum.multipliers.sum())
        low, high = (level, high) if cost > money else (low, level)
        if abs(cost - money) <= _GAP * money or high - low <= 1e-14 * high:
            break
        if slope > 0:
            step = level + (cost / money - 1.0) * cost / slope
        else:
            step = low
        if low < step < high:
            level = step
        else:
            level = (low + high) / 2.0
        optimum = cheapest(replace(demands, level=level), optimum.multipliers if slope > 0 else None)
    slope = float(optimum.multipliers.sum())
    if slope > 0:
        bound = level + (optimum.bound - money) / slope
    else:
        bound = low
    return replace(optimum, bound=max(bound, float(demands.levels(demands.upper).max())))


def without_floors(demands: Demands, money: float) -> tuple[Demands, BoolArray]:
    """Return the demands whose precision the money decides, and which estimands (J,) they are of.

    Where the money reaches the level that no allocation can undercut, the estimands that are at it have
    every label of their strata, and the rest of the money is for the others.
    """
    open_ = np.ones(len(demands.spread), dtype=bool)
    lower = demands.lower
    remaining = demands
    while open_.any():
        remaining = replace(demands, spread=demands.spread[open_], slack=demands.slack[open_], lower=lower)
        floors = remaining.levels(remaining.upper)
        if remaining.cost(cheapest(replace(remaining, level=floors.max())).n_h) > money * (1 + _GAP):
            return remaining, open_
        reached = floors >= floors.max() * (1 - _TIGHT)
        lower = np.where(np.any(remaining.spread[reached] > 0, axis=0), demands.upper, lower)
        open_[np.flatnonzero(open_)[reached]] = False
    return replace(remaining, spread=remaining.spread[:0], slack=remaining.slack[:0], lower=lower), open_


def _first(demands: Demands) -> FloatArray:
    """Return prices to start from: each estimand's own, then Chromy's steps λ_j (used_j / allowed_j)²."""
    separate_prices = np.sqrt(demands.spread).sum(axis=1) / demands.allowed
    multipliers = separate_prices**2 / len(separate_prices)
    for _ in range(_FIRST_STEPS):
        ratio = demands.used(demands.at(multipliers)[0]) / demands.allowed
        multipliers = multipliers * np.clip(ratio, 0.1, 10.0) ** 2
    return np.asarray(np.maximum(multipliers, 1e-8 * multipliers.max()))


def _newton(demands: Demands, multipliers: FloatArray) -> Optimum:
    """Return the maximum of the bound over λ ≥ 0: Newton's steps, damped until they help."""
    n_h, bound = demands.at(multipliers)
    damping = 1e-8
    best = Optimum(n_h=demands.upper, multipliers=multipliers, bound=-np.inf)
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
                multipliers = moved
                n_h = trial_n
                bound = trial
                damping = max(damping / 10.0, 1e-12)
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
    weights = 0.5 / n_h[inside] ** 3
    if np.count_nonzero(spread) < _SPARSE * spread.size:  # levels of a category share no strata
        # Sparse matrices are imported only for many strata.
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
    if excess <= 1 + 1e-12:
        return n_h
    return demands.upper


# Relative excess of a constraint that counts as rounding.
_EXACT = 1e-10

# Roundings that are tried; more find no better allocation.
_ROUNDINGS = 12

# Of these, the ones nearest to what is wanted are repaired.
_STARTS = 3

# Strata between which a label may move, and moves at most: each must lower the worst level.
_ADDED = 24
_REMOVED = 48
_SWAPS = 200


# The best whole n_h (H,) found, its cost or level, what no whole one comes below, and the real optimum.
AllocationSolution = tuple[IntArray, float, float, Optimum]


def _rounded(demands: Demands, multipliers: FloatArray) -> tuple[FloatArray, float]:
    """Return the whole n_h (H,) of least cost and priced variance, and what these are together."""
    n_h = np.clip(WRIGHT.count(np.sqrt(multipliers @ demands.spread)), demands.lower, demands.upper)
    return n_h, demands.cost(n_h) + float(multipliers @ (demands.used(n_h) - demands.slack))


def _balanced(prices: FloatArray, ratio: FloatArray, step: int) -> FloatArray:
    """Return the prices (J,) raised where the variance is too large, lowered elsewhere, by less and less."""
    raised = np.where(ratio >= 1.0, np.maximum(prices, 1e-6 * prices.max(initial=0.0)), prices)
    return np.asarray(raised * ratio ** (2.0 / (1.0 + 0.2 * step)))


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
        score = np.minimum(gains / excess[broken, None], 1.0).sum(axis=0)
        n_h[int(np.argmax(np.where(open_, score, -1.0)))] += 1.0


def _trimmed(demands: Demands, n_h: FloatArray) -> FloatArray:
    """Return n_h without the labels that no constraint needs: the least missed first."""
    n_h = n_h.copy()
    while True:
        slack = demands.allowed * (1 + _EXACT) - demands.used(n_h)
        losses = demands.spread / np.maximum(n_h * (n_h - 1.0), 0.5)
        free = (n_h > demands.lower) & np.all(losses <= slack[:, None], axis=0)
        if not free.any():
            return n_h
        harm = (losses / np.maximum(slack, 1e-300)[:, None]).max(axis=0, initial=0.0)
        n_h[int(np.argmin(np.where(free, harm, np.inf)))] -= 1.0


def _swapped(demands: Demands, n_h: FloatArray) -> FloatArray:
    """Return n_h after moves of one label between strata, the best each time, while the worst level falls."""
    n_h = n_h.copy()
    for _ in range(_SWAPS):
        levels = demands.used(n_h) - demands.slack
        worst = int(np.argmax(levels))
        gains = np.where(n_h < demands.upper, demands.spread / np.maximum(n_h * (n_h + 1.0), 0.5), 0.0)
        losses = demands.spread / np.maximum(n_h * (n_h - 1.0), 0.5)
        harm = np.where(n_h > demands.lower, losses.max(axis=0), np.inf)
        adds = np.argsort(-gains[worst], kind="stable")[:_ADDED]
        drops = np.argsort(harm, kind="stable")[:_REMOVED]
        after = levels[:, None, None] - gains[:, adds, None] + losses[:, None, drops]
        allowed = np.isfinite(harm[drops]) & (adds[:, None] != drops)
        result = np.where(allowed, after.max(axis=0), np.inf)
        add, drop = np.unravel_index(int(np.argmin(result)), result.shape)
        if not result[add, drop] < levels[worst] * (1 - 1e-12):
            break
        n_h[adds[add]] += 1.0
        n_h[drops[drop]] -= 1.0
    return n_h


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedAllocation(Record):
    """Labels per stratum that serve J estimands at once, and how far they are from the best there is.

    Parameters
    ----------
    n_h : int (H,)
        Labels per stratum.
    real_n_h : float (H,)
        The optimum in real numbers.
    objective : str
        "cost" (labels) or "ratio" (largest of expected to target standard error).
    value, bound : float
        The objective at n_h, and a number that no whole allocation comes below: a certificate.
    standard_errors : float (J,)
        Expected with n_h.
    target_standard_errors : float (J,)
        Target standard errors.
    shares : float (J,)
        How much each estimand decides: its price in the optimum, as a share of all; 0 where it has slack.
    names : tuple of str
        Of the estimands.
    minimum, maximum : int (H,)
        The bounds that were respected.
    """

    n_h: IntArray
    real_n_h: FloatArray
    objective: str
    value: float
    bound: float
    standard_errors: FloatArray
    target_standard_errors: FloatArray
    shares: FloatArray
    names: tuple[str, ...]
    minimum: IntArray
    maximum: IntArray

    @property
    def budget(self) -> int:
        """Σ n_h."""
        return int(self.n_h.sum())

    @property
    def gap(self) -> float:
        """How much better another whole allocation could be at most, relatively; 0 if none is better."""
        if self.value > self.bound:
            return (self.value - self.bound) / self.value
        return 0.0

    @property
    def ratios(self) -> FloatArray:
        """Expected over target standard errors (J,)."""
        return np.asarray(self.standard_errors / self.target_standard_errors)

    @property
    def allocation(self) -> Allocation:
        """The labels per stratum, as a design takes them."""
        return Allocation(
            n_h=self.n_h, method="several", budget=self.budget, minimum=self.minimum, maximum=self.maximum
        )


def _bounds(bounds: AllocationBounds, deviations: FloatArray, known_strata: object) -> AllocationBounds:
    """Return the bounds with no label where all is known, and at least one where anything varies."""
    if known_strata is None:
        free = np.zeros(len(bounds.sizes), dtype=bool)
    else:
        free = np.asarray(known_strata, dtype=bool)
    varies = np.any(deviations > 0, axis=0) & (bounds.sizes > 0)
    for h in np.flatnonzero(varies & (free | (bounds.upper < 1)))[:1].tolist():
        problem = f"stratum {h} varies, but {'is declared known' if free[h] else 'may have no label'}"
        deviation_text = f"standard deviation {deviations[:, h].max():g}"
        raise InputError(
            problem, given=deviation_text, action="Leave it out of known=, or raise its maximum."
        )
    lower = np.where(free, 0, np.maximum(bounds.lower, varies))
    return AllocationBounds(sizes=bounds.sizes, lower=lower, upper=np.where(free, 0, bounds.upper))


def allocate_several(
    sizes: object,
    standard_deviations: object,
    budget: int | None = None,
    *,
    standard_errors: object = None,
    minimum: object = 2,
    maximum: object = None,
    known_strata: object = None,
    finite_population_correction: bool = True,
    names: Sequence[str] | None = None,
) -> SharedAllocation:
    """Share labels among strata for J estimands at once.

    With `standard_errors` alone: the fewest labels that reach all of them.
    With a budget too: the labels that make the largest ratio of expected to target standard error smallest.
    The smallest weighted sum of variances is `neyman`'s, on the root of the weighted sum of squares.

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
        Wanted standard errors: half-widths divided by the quantile, 1.96 at 95%.
    minimum, maximum : int or int (H,)
        Bounds on n_h; the minimum of a smaller stratum is its size. A stratum in which anything varies has
        at least one label.
    known_strata : bool (H,), optional
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
        If the bounds cannot meet the budget, or cannot reach a target standard error.
    InputError
        If an array has another shape or an impossible value, or the task is not one of the two.

    Notes
    -----
    Bethel (1989), "Sample allocation in multivariate surveys", and Chromy (1987), whose real-valued optimum
    is found here by Newton's method on the dual, with the duality gap as certificate; whole numbers are found
    by rounding with the dual's prices and exchange.

    Examples
    --------
    >>> sd = [[0.4, 0.4, 0.4], [0.1, 0.9, 0.2]]
    >>> allocate_several([800, 150, 50], sd, standard_errors=[0.03, 0.03]).n_h
    array([120,  23,   8])
    >>> allocate_several([800, 150, 50], sd, 100, standard_errors=[0.03, 0.03]).ratios.round(3)
    array([1.265, 1.147])
    """
    bounds = AllocationBounds.read(sizes, minimum, maximum)
    deviations = one_per_stratum("standard_deviations", standard_deviations, len(bounds.sizes), max_axes=2)
    deviations = np.atleast_2d(deviations)
    bounds = _bounds(bounds, deviations, known_strata)
    count = len(deviations)
    target_errors = one_per_stratum("standard_errors", standard_errors, count, entity="estimand")
    if np.any(target_errors <= 0):
        raise InputError("standard_errors must be positive", given=target_errors.tolist(), allowed="above 0")
    if budget is None:
        money = None
    else:
        money = float(bounds.check(budget))
    spread = (bounds.sizes / max(int(bounds.sizes.sum()), 1) * deviations) ** 2
    slack = (spread / np.maximum(bounds.sizes, 1)).sum(axis=1) * bool(finite_population_correction)
    squares = target_errors**2
    demands = Demands(
        spread=spread / squares[:, None],
        slack=slack / squares,
        lower=bounds.lower.astype(np.float64),
        upper=bounds.upper.astype(np.float64),
    )
    called = tuple(names or (f"estimand {j}" for j in range(count)))
    if len(called) != count or len(set(called)) < count:
        raise InputError(
            "names must contain a different name for each estimand",
            given=", ".join(called),
            allowed=f"{count}",
        )
    if money is None:
        solution = _fewest(demands, called, target_errors)
    else:
        solution = _closest(demands, money, bounds.sizes)
    n_h, value, bound, optimum = solution
    price = optimum.multipliers
    used = (spread / np.maximum(n_h, 1) * (n_h > 0)).sum(axis=1)
    return SharedAllocation(
        n_h=n_h,
        real_n_h=optimum.n_h,
        objective="cost" if money is None else "ratio",
        value=value,
        bound=bound,
        standard_errors=np.sqrt(np.maximum(used - slack, 0.0)),
        target_standard_errors=target_errors,
        shares=price / (price.sum() or 1.0),
        names=called,
        minimum=bounds.lower,
        maximum=bounds.upper,
    )


def _fewest(demands: Demands, names: Sequence[str], target_errors: FloatArray) -> AllocationSolution:
    """Return the cheapest whole n_h found that reach every target standard error (J,), and the real ones."""
    floors = demands.levels(demands.upper)
    if np.any(floors > 1 + 1e-9):  # beyond rounding: a census would not do
        j = int(np.argmax(floors))
        problem = f"no allocation within the bounds is as precise as requested for {names[j]}"
        allowed = f"at least {target_errors[j] * np.sqrt(floors[j]):.6g}"
        raise BudgetError(problem, given=f"standard error {target_errors[j]:g}", allowed=allowed)
    optimum = cheapest(demands)
    demands, open_ = without_settled(demands)
    bound = -np.inf
    prices = optimum.multipliers[open_]
    starts: list[tuple[float, FloatArray]] = []
    for step in range(_ROUNDINGS):
        n_h, priced = _rounded(demands, prices)
        bound = max(bound, priced - demands.level * float(prices.sum()))
        ratio = demands.used(n_h) / demands.allowed
        starts.append((float(np.maximum(ratio - 1.0, 0.0).sum()), n_h))
        prices = _balanced(prices, ratio, step)
    starts.sort(key=lambda start: start[0])
    candidates = (_trimmed(demands, _repaired(demands, n_h)) for _, n_h in starts[:_STARTS])
    best = min(candidates, key=demands.cost)
    bound = float(np.ceil(bound - 1e-7))
    cost = demands.cost(best)
    return best.astype(np.int64), cost, min(bound, cost), optimum


def _closest(demands: Demands, money: float, sizes: IntArray) -> AllocationSolution:
    """Return the whole n_h found with the smallest largest ratio of expected to target standard error.

    All the money is spent.
    """
    remaining, open_ = without_floors(demands, money)
    if open_.any():
        optimum = most_precise(remaining, money)
    else:
        optimum = Optimum(remaining.lower, np.zeros(0), 0.0)
    multipliers = np.zeros(len(open_))
    multipliers[open_] = optimum.multipliers
    bounds = AllocationBounds(
        sizes=sizes, lower=remaining.lower.astype(np.int64), upper=remaining.upper.astype(np.int64)
    )
    n_h = remaining.lower
    level = np.inf
    prices = optimum.multipliers
    bound = 0.0
    for step in range(_ROUNDINGS if open_.any() else 0):
        trial = optimal_integers(np.sqrt(prices @ remaining.spread), bounds, int(money)).astype(np.float64)
        levels = remaining.levels(trial)
        worst = float(levels.max())
        n_h, level = (trial, worst) if worst < level else (n_h, level)
        bound = max(bound, (_rounded(remaining, prices)[1] - money) / (float(prices.sum()) or np.inf))
        prices = _balanced(prices, levels / (worst or 1.0), step)
    if open_.any():
        n_h = _swapped(remaining, n_h)
    rest = AllocationBounds(sizes=sizes, lower=n_h.astype(np.int64), upper=bounds.upper)
    rounded = optimal_integers(np.sqrt(remaining.spread.sum(axis=0)), rest, int(money))
    value = float(demands.levels(rounded).max())
    bound = min(max(bound, float(demands.levels(demands.upper).max())), value)
    return rounded, float(np.sqrt(value)), float(np.sqrt(bound)), replace(optimum, multipliers=multipliers)
