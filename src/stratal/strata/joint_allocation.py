"""`allocate_several`: one allocation for several estimands, each with a target standard error.

The constraints are Σ_h A_jh / n_h ≤ limit_j for each estimand j. The real-valued optimum is computed by
Newton's method on the dual problem, whose variables are the Lagrange multipliers λ_j of the constraints. For
any λ, the minimum of the Lagrangian is a lower bound on the cost of all allocations, also over integers.
Integer allocations are found by rounding with these multipliers and a local search, and the bound shows how
far from the optimum they can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import NO_DIVISOR, BoolArray, FloatArray, IntArray, Record
from stratal.errors import BudgetError, InputError
from stratal.strata.allocation import Allocation
from stratal.strata.arguments import one_per_stratum
from stratal.strata.integer_allocation import WRIGHT, AllocationBounds, optimal_integers

# Relative duality gap at which Newton's method has converged, near the precision of a double.
_MAX_GAP = 1e-10

# Maximum number of Newton steps. About ten are usual, and the bound is valid after any number.
_MAX_NEWTON_STEPS = 300

# Number of steps of Chromy's algorithm before Newton's method. They converge slowly, but from any start.
_CHROMY_STEPS = 12

# Maximum number of steps of the search for a level: bisection then determines all digits of a double.
_MAX_LEVEL_STEPS = 60

# Relative distance to its limit below which a constraint at the upper bounds has no room for fewer labels.
_TIGHTNESS = 1e-9

# Damping of the first Newton step, which is nearly undamped, and its smallest value. At the largest one, a
# step is too small to change a double.
_INITIAL_DAMPING = 1e-8
_MIN_DAMPING = 1e-12
_MAX_DAMPING = 1e12

# A step is accepted if the bound increases by this share of the increase that the gradient predicts (Armijo).
_MIN_GAIN_SHARE = 1e-4

# Relative rounding error of the bound.
_BOUND_ROUNDING = 1e-13

# Smallest multiplier, relative to the largest one, in the initial values, in the scale of a Newton step, and
# below which a multiplier is 0.
_MIN_INITIAL_MULTIPLIER = 1e-8
_MIN_MULTIPLIER_SCALE = 1e-6
_ZERO_MULTIPLIER = 1e-12

# Maximum number of times that n_h is increased in proportion to satisfy the constraints. The bounds may
# prevent that the first increase is sufficient.
_MAX_SCALINGS = 8

# Share of nonzero numbers below which a sparse matrix product takes less time.
_MAX_SPARSE_DENSITY = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Constraints Σ_h A_jh / n_h ≤ level + correction_j on n_h between bounds.

    Parameters
    ----------
    coefficients : float (J, H)
        A_jh = W_h² S_jh² / (target standard error of j)², so that the target variance of every estimand is 1.
    correction : float (J,)
        Finite population correction, Σ_h A_jh / N_h, or 0 without one.
    lower, upper : float (H,)
        Bounds on n_h.
    level : float
        Maximum variance, as a multiple of the target variance.
    """

    coefficients: FloatArray
    correction: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float = 1.0

    @property
    def limits(self) -> FloatArray:
        """The limits of Σ_h A_jh / n_h, (J,)."""
        return self.level + self.correction

    def sums(self, n_h: FloatArray | IntArray) -> FloatArray:
        """Return Σ_h A_jh / n_h (J,), without strata with n_h = 0, whose A_jh are 0."""
        return self.coefficients @ (1.0 / np.maximum(n_h, NO_DIVISOR) * (n_h > 0))

    def cost(self, n_h: FloatArray | IntArray) -> float:
        """Return Σ n_h."""
        return float(n_h.sum())

    def levels(self, n_h: FloatArray | IntArray) -> FloatArray:
        """Return the variance of each estimand as a multiple of its target, (J,)."""
        return np.maximum(self.sums(n_h) - self.correction, 0.0)

    def dual(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """Return the n_h (H,) that minimise the Lagrangian for λ (J,), and the minimum."""
        n_h = np.clip(np.sqrt(multipliers @ self.coefficients), self.lower, self.upper)
        return n_h, self.cost(n_h) + float(multipliers @ (self.sums(n_h) - self.limits))

    def select(self, estimands: BoolArray, lower: FloatArray) -> Constraints:
        """Return the constraints of some of the estimands (J,), with other lower bounds (H,)."""
        return replace(
            self,
            coefficients=self.coefficients[estimands],
            correction=self.correction[estimands],
            lower=lower,
        )


@dataclass(frozen=True, slots=True)
class Optimum:
    """The optimal real-valued n_h (H,), the multipliers λ (J,), and a lower bound on the objective.

    The objective is the cost Σ n_h, or the level.
    """

    n_h: FloatArray
    multipliers: FloatArray
    bound: float


def unsatisfied_constraints(constraints: Constraints) -> tuple[Constraints, BoolArray]:
    """Return the constraints that affect the optimum, and the mask of their estimands (J,).

    The lower bounds satisfy some constraints. Others need all labels that the upper bounds allow: their
    strata get the upper bounds as lower bounds.
    """
    sums_at_upper = constraints.sums(constraints.upper)
    limits = constraints.limits
    needs_all_labels = sums_at_upper >= limits * (1 - _TIGHTNESS)
    is_satisfied = constraints.sums(constraints.lower) <= limits
    is_full = np.any(constraints.coefficients[needs_all_labels] > 0, axis=0)
    is_active = ~needs_all_labels & ~is_satisfied
    lower = np.where(is_full, constraints.upper, constraints.lower)
    return constraints.select(is_active, lower), is_active


def minimise_cost(constraints: Constraints, start: FloatArray | None = None) -> Optimum:
    """Return the real-valued n_h with the smallest cost that satisfy all constraints, which must be possible.

    `start` has initial multipliers (J,), for example of a similar problem.
    """
    remaining, is_active = unsatisfied_constraints(constraints)
    multipliers = np.zeros(len(is_active))
    if not is_active.any():
        return Optimum(n_h=remaining.lower, multipliers=multipliers, bound=remaining.cost(remaining.lower))
    if start is not None and start[is_active].any():
        initial_multipliers = start[is_active]
    else:
        initial_multipliers = _initial_multipliers(remaining)
    optimum = _maximise_dual(remaining, initial_multipliers)
    multipliers[is_active] = optimum.multipliers
    return replace(optimum, multipliers=multipliers)


def minimise_level(constraints: Constraints, max_cost: float) -> Optimum:
    """Return the real-valued n_h with the smallest maximum level and Σ n_h ≤ `max_cost`.

    The minimum cost is a decreasing convex function of the level, and its slope is −Σ λ. The level with the
    cost `max_cost` is found by Newton's method on the reciprocal of the cost, which is nearly linear.
    """
    low = float(constraints.levels(constraints.upper).max())
    high = float(constraints.levels(constraints.lower).max())
    level = float(np.clip(1.0, low + (high - low) * 1e-6, high))
    optimum = minimise_cost(replace(constraints, level=level))
    for _ in range(_MAX_LEVEL_STEPS):
        cost = constraints.cost(optimum.n_h)
        slope = float(optimum.multipliers.sum())
        if cost > max_cost:
            low = level
        else:
            high = level
        if abs(cost - max_cost) <= _MAX_GAP * max_cost or high - low <= 1e-14 * high:
            break
        newton_level = low
        if slope > 0:
            newton_level = level + (cost / max_cost - 1.0) * cost / slope
        if low < newton_level < high:
            level = newton_level
        else:
            level = (low + high) / 2.0
        start = optimum.multipliers if slope > 0 else None
        optimum = minimise_cost(replace(constraints, level=level), start)
    slope = float(optimum.multipliers.sum())
    bound = low
    if slope > 0:
        bound = level + (optimum.bound - max_cost) / slope
    return replace(optimum, bound=max(bound, float(constraints.levels(constraints.upper).max())))


def budget_limited_constraints(constraints: Constraints, max_cost: float) -> tuple[Constraints, BoolArray]:
    """Return the constraints whose level depends on the budget, and the mask of their estimands (J,).

    If the budget is sufficient for the smallest possible value of the maximum level, the strata of the
    estimands with this level get their upper bounds, and the rest of the budget is for the other estimands.
    """
    is_active = np.ones(len(constraints.coefficients), dtype=bool)
    lower = constraints.lower
    while is_active.any():
        remaining = constraints.select(is_active, lower)
        min_levels = remaining.levels(remaining.upper)
        optimum = minimise_cost(replace(remaining, level=min_levels.max()))
        if remaining.cost(optimum.n_h) > max_cost * (1 + _MAX_GAP):
            return remaining, is_active
        is_at_minimum = min_levels >= min_levels.max() * (1 - _TIGHTNESS)
        is_full = np.any(remaining.coefficients[is_at_minimum] > 0, axis=0)
        lower = np.where(is_full, constraints.upper, lower)
        is_active[np.flatnonzero(is_active)[is_at_minimum]] = False
    return constraints.select(is_active, lower), is_active


def _initial_multipliers(constraints: Constraints) -> FloatArray:
    """Return initial multipliers: those of separate problems, after some steps of Chromy (1987)."""
    separate_roots = np.sqrt(constraints.coefficients).sum(axis=1) / constraints.limits
    multipliers = separate_roots**2 / len(separate_roots)
    for _ in range(_CHROMY_STEPS):
        n_h, _ = constraints.dual(multipliers)
        ratio = constraints.sums(n_h) / constraints.limits
        multipliers = multipliers * np.clip(ratio, 0.1, 10.0) ** 2
    return np.asarray(np.maximum(multipliers, _MIN_INITIAL_MULTIPLIER * multipliers.max()))


def _maximise_dual(constraints: Constraints, multipliers: FloatArray) -> Optimum:
    """Return the maximum of the dual function over λ ≥ 0, by damped Newton steps."""
    n_h, bound = constraints.dual(multipliers)
    damping = _INITIAL_DAMPING
    best = Optimum(n_h=constraints.upper, multipliers=multipliers, bound=-np.inf)
    for _ in range(_MAX_NEWTON_STEPS):
        best = replace(best, n_h=min(best.n_h, _feasible(constraints, n_h), key=constraints.cost))
        if bound >= best.bound:
            best = replace(best, multipliers=multipliers, bound=bound)
        gap = constraints.cost(best.n_h) - best.bound
        if gap <= _MAX_GAP * abs(best.bound) or damping > _MAX_DAMPING:
            break
        gradient = constraints.sums(n_h) - constraints.limits
        is_free = (multipliers > 0) | (gradient > 0)
        curvature = _curvature(constraints, n_h, is_free)
        while damping <= _MAX_DAMPING:
            trial_multipliers = _newton_step(multipliers, gradient, curvature, is_free, damping)
            trial_n_h, trial_bound = constraints.dual(trial_multipliers)
            predicted_gain = max(float(gradient @ (trial_multipliers - multipliers)), 0.0)
            is_accepted = trial_bound > bound + _MIN_GAIN_SHARE * predicted_gain
            # Near the optimum, rounding hides an increase of the bound: a step is then accepted if it at
            # least halves the violation of the optimality conditions.
            is_equal = trial_bound >= bound - _BOUND_ROUNDING * abs(bound)
            if not is_accepted and is_equal:
                violation = _optimality_violation(constraints, n_h, multipliers)
                trial_violation = _optimality_violation(constraints, trial_n_h, trial_multipliers)
                is_accepted = 2 * trial_violation < violation
            if is_accepted:
                multipliers = trial_multipliers
                n_h = trial_n_h
                bound = trial_bound
                damping = max(damping / 10.0, _MIN_DAMPING)
                break
            damping *= 10.0
    return best


def _optimality_violation(constraints: Constraints, n_h: FloatArray, multipliers: FloatArray) -> float:
    """Return the largest relative violation of the constraints, which are equalities if λ_j > 0."""
    excess = constraints.sums(n_h) / constraints.limits - 1.0
    return float(np.where(multipliers > 0, np.abs(excess), np.maximum(excess, 0.0)).max())


def _curvature(constraints: Constraints, n_h: FloatArray, is_free: BoolArray) -> FloatArray:
    """Return the negative Hessian of the dual function for the free λ; strata at a bound have no effect."""
    is_between_bounds = (n_h > constraints.lower) & (n_h < constraints.upper)
    coefficients = constraints.coefficients[np.ix_(is_free, is_between_bounds)]
    weights = 0.5 / n_h[is_between_bounds] ** 3
    # The matrix is sparse if the estimands are means of the levels of a category, which have no strata in
    # common. Only these problems load the module of sparse matrices.
    if np.count_nonzero(coefficients) < _MAX_SPARSE_DENSITY * coefficients.size:
        from scipy.sparse import csr_array

        sparse = csr_array(coefficients)
        return np.asarray(((sparse * weights) @ sparse.T).toarray())
    return np.asarray((coefficients * weights) @ coefficients.T)


def _newton_step(
    multipliers: FloatArray, gradient: FloatArray, curvature: FloatArray, is_free: BoolArray, damping: float
) -> FloatArray:
    """Return λ after a damped Newton step on a relative scale. A λ_j decreases by at most 99.9%."""
    scales = np.maximum(multipliers[is_free], _MIN_MULTIPLIER_SCALE * multipliers.max())
    scaled_curvature = curvature * scales[:, None] * scales
    scaled_gradient = gradient[is_free] * scales
    mean_diagonal = float(np.trace(scaled_curvature)) / len(scaled_curvature)
    # The gradient is a lower limit, because the curvature may be 0.
    damping_unit = max(mean_diagonal, _MIN_MULTIPLIER_SCALE * float(np.abs(scaled_gradient).max()))
    damped_curvature = scaled_curvature + damping * damping_unit * np.eye(len(scaled_curvature))
    step = np.linalg.solve(damped_curvature, scaled_gradient) * scales
    next_multipliers = np.zeros_like(multipliers)
    next_multipliers[is_free] = np.maximum(multipliers[is_free] + step, 1e-3 * multipliers[is_free])
    is_positive = next_multipliers > _ZERO_MULTIPLIER * next_multipliers.max()
    return np.where(is_positive, next_multipliers, 0.0)


def _feasible(constraints: Constraints, n_h: FloatArray) -> FloatArray:
    """Return n_h, increased in proportion until all constraints are satisfied, or the upper bounds."""
    for _ in range(_MAX_SCALINGS):
        ratio = float((constraints.sums(n_h) / constraints.limits).max())
        if ratio <= 1.0:
            return n_h
        # A little more than the ratio, because the product is rounded.
        n_h = np.clip(n_h * ratio * (1 + 1e-15), constraints.lower, constraints.upper)
    # Rounding errors only.
    if ratio <= 1 + 1e-12:
        return n_h
    return constraints.upper


# Relative violation of a constraint that is attributed to rounding.
_MAX_VIOLATION = 1e-10

# Number of integer roundings with different multipliers; more find no better allocation.
_N_ROUNDINGS = 12

# Number of these roundings, those with the smallest violations, that are made feasible.
_N_REPAIRED = 3

# Maximum numbers of strata that may get a label from, or give a label to, another one in a step of the local
# search, and maximum number of steps.
_MAX_RECEIVERS = 24
_MAX_DONORS = 48
_MAX_MOVES = 200


# The best integer n_h (H,) that was found, its objective, a lower bound on it, and the real-valued optimum.
AllocationSolution = tuple[IntArray, float, float, Optimum]


def _lagrangian_integers(constraints: Constraints, multipliers: FloatArray) -> tuple[FloatArray, float]:
    """Return the integer n_h (H,) that minimise Σ n_h + Σ_j λ_j (sum_j − correction_j), and the minimum."""
    real_n_h = np.sqrt(multipliers @ constraints.coefficients)
    n_h = np.clip(WRIGHT.count(real_n_h), constraints.lower, constraints.upper)
    return n_h, constraints.cost(n_h) + float(multipliers @ (constraints.sums(n_h) - constraints.correction))


def _adjust_multipliers(multipliers: FloatArray, ratio: FloatArray, step: int) -> FloatArray:
    """Return λ (J,), increased if the ratio of variance to limit is above 1; less in later steps."""
    smallest = 1e-6 * multipliers.max(initial=0.0)
    positive = np.where(ratio >= 1.0, np.maximum(multipliers, smallest), multipliers)
    return np.asarray(positive * ratio ** (2.0 / (1.0 + 0.2 * step)))


def _add_labels(constraints: Constraints, n_h: FloatArray) -> FloatArray:
    """Return n_h with labels added until all constraints are satisfied, the most effective label first."""
    n_h = n_h.copy()
    while True:
        excess = constraints.sums(n_h) - constraints.limits
        is_violated = excess > constraints.limits * _MAX_VIOLATION
        is_below_upper = n_h < constraints.upper
        if not is_violated.any() or not is_below_upper.any():
            return n_h
        gains = constraints.coefficients[is_violated] / np.maximum(n_h * (n_h + 1.0), 1.0)
        relative_gain = np.minimum(gains / excess[is_violated, None], 1.0).sum(axis=0)
        n_h[int(np.argmax(np.where(is_below_upper, relative_gain, -1.0)))] += 1.0


def _remove_labels(constraints: Constraints, n_h: FloatArray) -> FloatArray:
    """Return n_h without the labels that no constraint needs, the least effective label first."""
    n_h = n_h.copy()
    while True:
        slack = constraints.limits * (1 + _MAX_VIOLATION) - constraints.sums(n_h)
        losses = constraints.coefficients / np.maximum(n_h * (n_h - 1.0), 0.5)
        is_removable = (n_h > constraints.lower) & np.all(losses <= slack[:, None], axis=0)
        if not is_removable.any():
            return n_h
        relative_loss = (losses / np.maximum(slack, NO_DIVISOR)[:, None]).max(axis=0, initial=0.0)
        n_h[int(np.argmin(np.where(is_removable, relative_loss, np.inf)))] -= 1.0


def _move_labels(constraints: Constraints, n_h: FloatArray) -> FloatArray:
    """Return n_h after moves of single labels between strata, which reduce the maximum level."""
    n_h = n_h.copy()
    for _ in range(_MAX_MOVES):
        levels = constraints.sums(n_h) - constraints.correction
        worst = int(np.argmax(levels))
        gains = constraints.coefficients / np.maximum(n_h * (n_h + 1.0), 0.5)
        gains = np.where(n_h < constraints.upper, gains, 0.0)
        losses = constraints.coefficients / np.maximum(n_h * (n_h - 1.0), 0.5)
        max_loss = np.where(n_h > constraints.lower, losses.max(axis=0), np.inf)
        receivers = np.argsort(-gains[worst], kind="stable")[:_MAX_RECEIVERS]
        donors = np.argsort(max_loss, kind="stable")[:_MAX_DONORS]
        new_levels = levels[:, None, None] - gains[:, receivers, None] + losses[:, None, donors]
        is_valid = np.isfinite(max_loss[donors]) & (receivers[:, None] != donors)
        max_levels = np.where(is_valid, new_levels.max(axis=0), np.inf)
        receiver, donor = np.unravel_index(int(np.argmin(max_levels)), max_levels.shape)
        if not max_levels[receiver, donor] < levels[worst] * (1 - 1e-12):
            break
        n_h[receivers[receiver]] += 1.0
        n_h[donors[donor]] -= 1.0
    return n_h


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedAllocation(Record):
    """Labels per stratum for J estimands, and the largest possible distance from the optimum.

    Parameters
    ----------
    n_h : int (H,)
        Labels per stratum.
    real_n_h : float (H,)
        The real-valued optimum.
    objective : str
        "cost" (number of labels) or "ratio" (largest ratio of expected to target standard error).
    value, bound : float
        The objective at n_h, and a lower bound on the objective of all integer allocations.
    standard_errors : float (J,)
        Expected standard errors with n_h.
    target_standard_errors : float (J,)
        Target standard errors.
    shares : float (J,)
        Influence of each estimand on the allocation: its Lagrange multiplier as a share of the sum; 0 if its
        constraint is not binding.
    names : tuple of str
        Names of the estimands.
    minimum, maximum : int (H,)
        Bounds on n_h.
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
        """Largest possible relative improvement by another integer allocation; 0 if n_h is optimal."""
        if self.value > self.bound:
            return (self.value - self.bound) / self.value
        return 0.0

    @property
    def ratios(self) -> FloatArray:
        """Expected over target standard errors (J,)."""
        return np.asarray(self.standard_errors / self.target_standard_errors)

    @property
    def allocation(self) -> Allocation:
        """The labels per stratum as an `Allocation`, for a design."""
        return Allocation(
            n_h=self.n_h, method="several", budget=self.budget, minimum=self.minimum, maximum=self.maximum
        )


def _bounds_for_estimands(
    bounds: AllocationBounds, deviations: FloatArray, known_strata: object
) -> AllocationBounds:
    """Return bounds of 0 for known strata, and lower bounds of at least 1 for strata with a positive S_jh.

    `deviations` (J, H) are the S_jh.
    """
    is_known = np.zeros(len(bounds.sizes), dtype=bool)
    if known_strata is not None:
        is_known = np.asarray(known_strata, dtype=bool)
    varies = np.any(deviations > 0, axis=0) & (bounds.sizes > 0)
    for h in np.flatnonzero(varies & (is_known | (bounds.upper < 1)))[:1].tolist():
        problem = f"stratum {h} varies, but {'is declared known' if is_known[h] else 'may have no label'}"
        deviation_text = f"standard deviation {deviations[:, h].max():g}"
        raise InputError(
            problem,
            given=deviation_text,
            action="Leave this stratum out of known_strata=, or raise its maximum.",
        )
    lower = np.where(is_known, 0, np.maximum(bounds.lower, varies))
    return AllocationBounds(sizes=bounds.sizes, lower=lower, upper=np.where(is_known, 0, bounds.upper))


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
    """Allocate labels to strata for J estimands.

    Without a budget, the result is the smallest number of labels that reaches all target standard errors.
    With a budget, the largest ratio of expected to target standard error is minimised. To minimise a weighted
    sum of variances, use `neyman` with S_h² = Σ_j weight_j S_jh².

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
        Total number of labels.
    standard_errors : float (J,), optional
        Target standard errors: half-widths divided by the quantile, which is 1.96 at 95%.
    minimum, maximum : int or int (H,)
        Bounds on n_h. If a stratum is smaller than its minimum, the minimum is its size. A stratum with a
        positive S_jh gets at least one label.
    known_strata : bool (H,), optional
        Strata in which every u_j is a known constant by construction, which get no label. Do not include
        strata in which this is only assumed.
    finite_population_correction : bool
        Use False for the superpopulation: the terms −1/N_h are then omitted.
    names : sequence of str, optional
        Names of the estimands in errors and tables.

    Returns
    -------
    SharedAllocation

    Raises
    ------
    BudgetError
        If no allocation within the bounds has the sum `budget`, or reaches a target standard error.
    InputError
        If an array has a wrong shape or an invalid value.

    Notes
    -----
    Bethel (1989), "Sample allocation in multivariate surveys", and Chromy (1987). The module docstring
    describes the algorithm.

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
    bounds = _bounds_for_estimands(bounds, deviations, known_strata)
    n_estimands = len(deviations)
    target_errors = one_per_stratum("standard_errors", standard_errors, n_estimands, entity="estimand")
    if np.any(target_errors <= 0):
        raise InputError("standard_errors must be positive", given=target_errors.tolist(), allowed="above 0")
    max_cost = None
    if budget is not None:
        max_cost = float(bounds.check(budget))
    weights = bounds.sizes / max(int(bounds.sizes.sum()), 1)
    coefficients = (weights * deviations) ** 2
    correction = np.zeros(n_estimands)
    if finite_population_correction:
        correction = (coefficients / np.maximum(bounds.sizes, 1)).sum(axis=1)
    target_variances = target_errors**2
    constraints = Constraints(
        coefficients=coefficients / target_variances[:, None],
        correction=correction / target_variances,
        lower=bounds.lower.astype(np.float64),
        upper=bounds.upper.astype(np.float64),
    )
    estimand_names = _distinct_names(names, n_estimands)
    if max_cost is None:
        solution = _minimise_integer_cost(constraints, estimand_names, target_errors)
    else:
        solution = _minimise_integer_level(constraints, max_cost, bounds.sizes)
    n_h, value, bound, optimum = solution
    multipliers = optimum.multipliers
    sums = (coefficients / np.maximum(n_h, 1) * (n_h > 0)).sum(axis=1)
    return SharedAllocation(
        n_h=n_h,
        real_n_h=optimum.n_h,
        objective="cost" if max_cost is None else "ratio",
        value=value,
        bound=bound,
        standard_errors=np.sqrt(np.maximum(sums - correction, 0.0)),
        target_standard_errors=target_errors,
        shares=multipliers / (multipliers.sum() or 1.0),
        names=estimand_names,
        minimum=bounds.lower,
        maximum=bounds.upper,
    )


def _distinct_names(names: Sequence[str] | None, n_estimands: int) -> tuple[str, ...]:
    """Return a name for each estimand, by default its number; raise an error unless all are different."""
    distinct_names = tuple(names or (f"estimand {j}" for j in range(n_estimands)))
    if len(distinct_names) != n_estimands or len(set(distinct_names)) < n_estimands:
        raise InputError(
            "names must contain a different name for each estimand",
            given=", ".join(distinct_names),
            allowed=f"{n_estimands}",
        )
    return distinct_names


def _minimise_integer_cost(
    constraints: Constraints, names: Sequence[str], target_errors: FloatArray
) -> AllocationSolution:
    """Return integer n_h that reach all target standard errors (J,) with the smallest cost that was found."""
    min_levels = constraints.levels(constraints.upper)
    # More than rounding: even the upper bounds are insufficient.
    if np.any(min_levels > 1 + 1e-9):
        j = int(np.argmax(min_levels))
        problem = f"no allocation within the bounds is as precise as requested for {names[j]}"
        allowed = f"at least {target_errors[j] * np.sqrt(min_levels[j]):.6g}"
        raise BudgetError(problem, given=f"standard error {target_errors[j]:g}", allowed=allowed)
    optimum = minimise_cost(constraints)
    constraints, is_active = unsatisfied_constraints(constraints)
    bound = -np.inf
    multipliers = optimum.multipliers[is_active]
    roundings: list[tuple[float, FloatArray]] = []
    for step in range(_N_ROUNDINGS):
        n_h, lagrangian = _lagrangian_integers(constraints, multipliers)
        bound = max(bound, lagrangian - constraints.level * float(multipliers.sum()))
        ratio = constraints.sums(n_h) / constraints.limits
        violation = float(np.maximum(ratio - 1.0, 0.0).sum())
        roundings.append((violation, n_h))
        multipliers = _adjust_multipliers(multipliers, ratio, step)
    roundings.sort(key=lambda rounding: rounding[0])
    repaired = []
    for _, n_h in roundings[:_N_REPAIRED]:
        sufficient_n_h = _add_labels(constraints, n_h)
        repaired.append(_remove_labels(constraints, sufficient_n_h))
    best = min(repaired, key=constraints.cost)
    # The cost is an integer, so that the bound can be rounded up, except for its rounding error.
    bound = float(np.ceil(bound - 1e-7))
    cost = constraints.cost(best)
    return best.astype(np.int64), cost, min(bound, cost), optimum


def _minimise_integer_level(constraints: Constraints, max_cost: float, sizes: IntArray) -> AllocationSolution:
    """Return integer n_h with the sum `max_cost` and the smallest maximum level that was found.

    The objective is the square root of the level: the ratio of expected to target standard error.
    """
    remaining, is_active = budget_limited_constraints(constraints, max_cost)
    upper = remaining.upper.astype(np.int64)
    if is_active.any():
        optimum = minimise_level(remaining, max_cost)
        bounds = AllocationBounds(sizes=sizes, lower=remaining.lower.astype(np.int64), upper=upper)
        rounded_n_h, bound = _rounded_level(remaining, bounds, optimum.multipliers, max_cost)
        n_h = _move_labels(remaining, rounded_n_h)
    else:
        optimum = Optimum(remaining.lower, np.zeros(0), 0.0)
        n_h = remaining.lower
        bound = 0.0
    all_multipliers = np.zeros(len(is_active))
    all_multipliers[is_active] = optimum.multipliers
    # The rest of the budget, if all constraints are at their minimum level before it is spent.
    bounds_of_rest = AllocationBounds(sizes=sizes, lower=n_h.astype(np.int64), upper=upper)
    total_importance = np.sqrt(remaining.coefficients.sum(axis=0))
    integer_n_h = optimal_integers(total_importance, bounds_of_rest, int(max_cost))
    level = float(constraints.levels(integer_n_h).max())
    bound = min(max(bound, float(constraints.levels(constraints.upper).max())), level)
    optimum = replace(optimum, multipliers=all_multipliers)
    return integer_n_h, float(np.sqrt(level)), float(np.sqrt(bound)), optimum


def _rounded_level(
    constraints: Constraints, bounds: AllocationBounds, multipliers: FloatArray, max_cost: float
) -> tuple[FloatArray, float]:
    """Return the best of several integer roundings with the sum `max_cost`, and a lower bound on the level.

    `multipliers` (J,) are those of the real-valued optimum; each rounding adjusts them to the result before.
    """
    best_n_h = constraints.lower
    best_level = np.inf
    bound = 0.0
    for step in range(_N_ROUNDINGS):
        importance = np.sqrt(multipliers @ constraints.coefficients)
        n_h = optimal_integers(importance, bounds, int(max_cost)).astype(np.float64)
        levels = constraints.levels(n_h)
        max_level = float(levels.max())
        if max_level < best_level:
            best_n_h = n_h
            best_level = max_level
        _, lagrangian = _lagrangian_integers(constraints, multipliers)
        bound = max(bound, (lagrangian - max_cost) / (float(multipliers.sum()) or np.inf))
        multipliers = _adjust_multipliers(multipliers, levels / (max_level or 1.0), step)
    return best_n_h, bound
