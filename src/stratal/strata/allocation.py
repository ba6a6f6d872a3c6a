"""`allocate`: the number of labels of each stratum, by any method.

A method is the importance a_h of each stratum. The allocation is the integers that minimise Σ a_h² / n_h
(`stratal.strata.integer_allocation`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record, plain_fields
from stratal.errors import BudgetError, InputError, check_choice, type_text
from stratal.protocols import JsonDict, JsonMapping
from stratal.strata.arguments import one_per_stratum
from stratal.strata.integer_allocation import AllocationBounds, cost_allocation, optimal_integers
from stratal.strata.strata import Moments, expected_deviations

# Allocations of later rounds that depend on the labels of earlier ones: of a second round, and of any number
# of rounds (Kumar & Raj 2016).
LABEL_BASED_METHODS = ("opt-a1", "opt-a2")

# Share by which the sum of costs may exceed the budget, for rounding errors.
_COST_ROUNDING = 1e-12

# Notes on an allocation.
_UNSCALED_NOTE = "There is no proxy, or it only orders the units: all strata are treated as equally variable."

_KNAPSACK_NOTE = (
    "These are the best whole numbers that were found within the cost budget; finding the exact optimum is "
    "a knapsack problem."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation(Record):
    """The number of labels of each stratum.

    Parameters
    ----------
    n_h : int (H,)
        Labels per stratum; their sum is `budget`.
    method : str
        Name of the allocation method.
    budget : int
        Total number of labels.
    minimum, maximum : int (H,)
        Bounds on n_h.
    notes : tuple of str
        Notes for the report.

    Raises
    ------
    InputError
        If the sum is not the budget or a bound is broken.

    Examples
    --------
    >>> allocation = Allocation(n_h=[3, 2], method="given", budget=5, minimum=[2, 2], maximum=[9, 9])
    >>> Allocation.from_dict(allocation.to_dict()) == allocation
    True
    """

    n_h: IntArray
    method: str
    budget: int
    minimum: IntArray
    maximum: IntArray
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._set(n_h=np.array(self.n_h))
        self._freeze()
        is_within_bounds = False
        if self.n_h.ndim == 1 and self.n_h.shape == self.minimum.shape == self.maximum.shape:
            is_within_bounds = bool(np.all((self.n_h >= self.minimum) & (self.n_h <= self.maximum)))
        if not is_within_bounds or self.n_h.sum() != self.budget:
            raise InputError(
                "n_h must lie within its bounds and sum to the budget",
                given=f"{self.n_h.tolist()}, {self.n_h.sum()} in all",
                allowed=f"{self.minimum.tolist()} to {self.maximum.tolist()}, {self.budget} in all",
            )

    @property
    def n_strata(self) -> int:
        """H."""
        return len(self.n_h)

    def to_dict(self) -> JsonDict:
        """Return a JSON-serializable dict."""
        names = ("method", "budget", "n_h", "minimum", "maximum", "notes")
        return plain_fields(self, names)

    @classmethod
    def from_dict(cls, description: JsonMapping) -> Allocation:
        """Return the allocation that `to_dict` described."""
        return cls(**description)


# Returns the importance a_h (H,) of the strata from their moments, N_h (H,) and the options of `allocate`.
ImportanceFunction = Callable[[Moments, FloatArray, Mapping[str, Any]], FloatArray]


def neyman_importance(sizes: AnyArray, name: str, standard_deviations: object) -> FloatArray:
    """Return N_h S_h / max S_h (H,). The division avoids overflow; only ratios affect an allocation.

    `name` is the name of the deviations in errors.
    """
    deviations = one_per_stratum(name, standard_deviations, len(sizes))
    largest = deviations.max()
    if largest > 0:
        return np.asarray(sizes * (deviations / largest))
    return np.zeros(len(deviations))


def _standard_deviations(strata: Moments, options: Mapping[str, object]) -> FloatArray:
    """Return S_h (H,): the option if it is given, otherwise those implied by the proxy, otherwise ones."""
    deviations = options["standard_deviations"]
    if deviations is None:
        return strata.standard_deviations
    return one_per_stratum("standard_deviations", deviations, strata.n_strata)


def _neyman_importance(strata: Moments, sizes: FloatArray, options: Mapping[str, object]) -> FloatArray:
    """Return N_h S_h (H,)."""
    return neyman_importance(sizes, "standard_deviations", _standard_deviations(strata, options))


def _robust_importance(strata: Moments, sizes: FloatArray, options: Mapping[str, object]) -> FloatArray:
    """Return N_h S_h (H,), with S_h averaged over possible miscalibrations of the proxy.

    Neyman allocation assumes that the proxy is calibrated. In a stratum where a model has a confidence of
    99.9% but an accuracy of 98%, the true S_h is four times the plug-in value. Where a judge has only the
    scores 0 and 1, the plug-in S_h is 0, and the stratum would get only its minimum. Measured by
    `benchmarks/robust_allocation.py`.
    """
    if strata.scaled:
        return sizes * expected_deviations(strata)
    return sizes


def _stratppi_importance(strata: Moments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    """Return N_h σ_h (H,) with σ_h² = (1 − λ)² Var(ẑ) + mean of Var(z | x), the plug-in of Var(z − λẑ).

    Fisch et al. (2024), eq. 20–21, with the mean of the autorater as the prediction: the mean of z − λẑ given
    x is (1 − λ)ẑ, and its variance given x is that of z.
    """
    if not strata.scaled:
        return sizes
    lam_option: Any = 1.0 if options["lam"] is None else options["lam"]
    if np.ndim(lam_option) == 0:
        lam_option = np.full(len(sizes), lam_option)
    lam = one_per_stratum("lam", lam_option, len(sizes), -np.inf)
    variances = (1.0 - lam) ** 2 * strata.proxy_variances + strata.conditional_variances
    return np.asarray(sizes * np.sqrt(variances))


# The importance a_h (H,) of each method by name: the allocation minimises Σ a_h² / n_h.
ALLOCATION_METHODS: dict[str, ImportanceFunction] = {
    "proportional": lambda strata, sizes, options: sizes,
    "equal": lambda strata, sizes, options: (sizes > 0).astype(np.float64),
    "neyman": _neyman_importance,
    "robust": _robust_importance,
    "power": lambda strata, sizes, options: np.sqrt(sizes) * _standard_deviations(strata, options),
    "cost-optimal": _neyman_importance,
    "stratppi": _stratppi_importance,
}

# Options of `allocate`, and the methods that use them; with other methods an option is an error.
_METHODS_BY_OPTION = {
    "standard_deviations": ("neyman", "power", "cost-optimal"),
    "costs": ("cost-optimal",),
    "cost_budget": ("cost-optimal",),
    "lam": ("stratppi",),
}


def allocate(
    strata: Moments,
    budget: int | None = None,
    method: str = "robust",
    minimum: Any = 2,
    maximum: Any = None,
    *,
    standard_deviations: Any = None,
    costs: Any = None,
    cost_budget: float | None = None,
    lam: Any = None,
) -> Allocation:
    """Allocate a budget of labels to strata.

    Parameters
    ----------
    strata : Strata
        Sizes and plug-in moments per stratum.
    budget : int
        Total number of labels. Only "cost-optimal" has none.
    method : str
        "robust" (default: Neyman allocation, with S_h averaged over possible miscalibrations of the proxy),
        "proportional", "equal", "neyman", "power" (Bankier 1988: n_h ∝ √N_h S_h, a compromise between the
        precision of the overall mean and of the stratum means), "cost-optimal" (Cochran, eq. 5.23:
        n_h ∝ N_h S_h / √c_h, the best integers found within the cost budget) or "stratppi" (Fisch et al.
        2024, eq. 18-21: n_h ∝ N_h σ_h for the residual z − λẑ).
    minimum, maximum : int or int (H,)
        Bounds on n_h. The default minimum is 2, which is sufficient for a variance in every stratum. Strata
        in which an estimand is known by construction get no label.
    standard_deviations : float (H,), optional
        S_h instead of those implied by the proxy, for "neyman", "power" and "cost-optimal".
    costs : float (H,), cost_budget : float
        Cost of a label in each stratum, and total cost, for "cost-optimal".
    lam : float or float (H,), optional
        λ of the residual for "stratppi". Default: 1.

    Returns
    -------
    Allocation

    Raises
    ------
    BudgetError
        If no allocation within the bounds has the sum `budget`.
    InputError
        If the method is unknown, or a required option is missing.

    Notes
    -----
    The integers are optimal within the bounds (Wright 2012, `stratal.strata.integer_allocation`).
    Measurements of the robust allocation are in docs/methods/allocation.md.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.5] * 20)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> allocate(strata, 50).n_h, allocate(strata, 50, method="proportional").n_h
    (array([37, 13]), array([40, 10]))
    """
    if not isinstance(strata, Moments):
        action = "Create strata first: stratal.strata.stratify(population)."
        raise InputError("allocate takes Strata", given=type_text(strata), action=action)
    check_choice("allocation method", method, ALLOCATION_METHODS)
    options = {
        "standard_deviations": standard_deviations,
        "costs": costs,
        "cost_budget": cost_budget,
        "lam": lam,
    }
    for name, methods in _METHODS_BY_OPTION.items():
        if options[name] is not None and method not in methods:
            allowed = f"with method {', '.join(map(repr, methods))}"
            raise InputError(f"method '{method}' takes no {name}", allowed=allowed)
    bounds = _bounds_of_strata(strata, minimum, maximum)
    importance = ALLOCATION_METHODS[method](strata, bounds.sizes.astype(np.float64), options)
    notes: tuple[str, ...] = ()
    if method == "cost-optimal":
        if costs is None or cost_budget is None or budget is not None:
            raise InputError(
                "method 'cost-optimal' requires costs, and a budget in money rather than in labels",
                given="budget" if budget is not None else None,
                action="Give a cost per stratum and the total cost: costs=, cost_budget=.",
            )
        unit_costs, cost_limit = check_costs(bounds, costs, cost_budget)
        if not importance.any():
            importance = bounds.sizes.astype(np.float64)
        n_h = cost_allocation(importance, unit_costs, cost_limit, bounds)
        notes = (_KNAPSACK_NOTE, f"The labels cost {float(np.asarray(costs) @ n_h):g}.")
    elif budget is None:
        raise InputError(
            "budget is missing",
            action="Give the number of labels; only the method 'cost-optimal' works without it.",
        )
    else:
        n_h = optimal_integers(importance, bounds, bounds.check(budget))
        if method not in ("proportional", "equal") and standard_deviations is None and not strata.scaled:
            notes = (_UNSCALED_NOTE,)
    return Allocation(
        n_h=n_h, method=method, budget=int(n_h.sum()), minimum=bounds.lower, maximum=bounds.upper, notes=notes
    )


def allocate_budgets(strata: Moments, budgets: IntArray, method: str, minimum: Any = 2) -> IntArray:
    """Return the n_h (B, H) of several budgets (B,); each row equals the result of `allocate`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 80 + [0.5] * 20)
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> allocate_budgets(strata, np.array([20, 50]), "robust")
    array([[15,  5],
           [37, 13]])
    """
    bounds = _bounds_of_strata(strata, minimum, None)
    for budget in budgets:
        bounds.check(budget)
    options = dict.fromkeys(_METHODS_BY_OPTION)
    importance = ALLOCATION_METHODS[method](strata, bounds.sizes.astype(np.float64), options)
    importance_by_budget = np.broadcast_to(importance, (len(budgets), len(importance)))
    return optimal_integers(importance_by_budget, bounds, budgets[:, None])


def _bounds_of_strata(strata: Moments, minimum: Any, maximum: Any) -> AllocationBounds:
    """Return the bounds of an allocation. Strata in which the estimand is known by construction get 0."""
    if np.any(strata.is_known):
        if maximum is None:
            maximum = strata.sizes
        minimum = np.where(strata.is_known, 0, minimum)
        maximum = np.where(strata.is_known, 0, maximum)
    return AllocationBounds.read(strata.sizes, minimum, maximum)


def check_costs(bounds: AllocationBounds, costs: Any, cost_budget: Any) -> tuple[FloatArray, float]:
    """Return the validated cost of a label in each stratum (H,), and the limit of the total cost.

    The limit is the cost budget plus a tolerance for rounding. It must be sufficient for the minima.
    """
    unit_costs = one_per_stratum("costs", costs, len(bounds.sizes))
    if not np.all(unit_costs > 0):
        raise InputError("every cost must be positive", given=f"{unit_costs.min():g}", allowed="above 0")
    is_valid = np.ndim(cost_budget) == 0 and np.isfinite(float(cost_budget)) and float(cost_budget) >= 0
    if not is_valid:
        raise InputError("cost_budget must be a finite number", given=cost_budget, allowed="0 or more")
    cost_limit = float(cost_budget) * (1 + _COST_ROUNDING)
    minimum_cost = float(unit_costs @ bounds.lower)
    if minimum_cost > cost_limit:
        raise BudgetError(
            "the budget is below the total cost of the strata's minima",
            given=f"{float(cost_budget):g}",
            allowed=f"at least {minimum_cost:g}",
        )
    return unit_costs, cost_limit


def proportional(sizes: object, budget: int, minimum: object = 2, maximum: object = None) -> IntArray:
    """Return n_h ∝ N_h, the optimal allocation if all S_h are equal (Cochran, 5.3).

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds. If a stratum is smaller than its minimum, the minimum is its size. A maximum of None is the
        size.

    Returns
    -------
    int (H,)
        n_h, whose sum is the budget.

    Raises
    ------
    BudgetError
        If no allocation within the bounds has the sum `budget`.
    InputError
        If a size or bound is not a whole number, or a maximum is below its minimum.

    Examples
    --------
    >>> proportional([50, 30, 20], 10)
    array([5, 3, 2])
    """
    bounds = AllocationBounds.read(sizes, minimum, maximum)
    return optimal_integers(bounds.sizes.astype(np.float64), bounds, bounds.check(budget))


def equal(sizes: object, budget: int, minimum: object = 2, maximum: object = None) -> IntArray:
    """Return n_h as equal as the bounds allow: the optimal allocation if W_h S_h is constant.

    Parameters, errors and result are those of `proportional`. The first strata get the remainder.

    Examples
    --------
    >>> equal([50, 30, 3], 12)
    array([5, 4, 3])
    """
    bounds = AllocationBounds.read(sizes, minimum, maximum)
    return optimal_integers((bounds.sizes > 0).astype(np.float64), bounds, bounds.check(budget))


def neyman(
    sizes: object, standard_deviations: object, budget: int, minimum: object = 2, maximum: object = None
) -> IntArray:
    """Return the integers n_h ∝ N_h S_h that minimise the variance Σ W_h² (1 − f_h) S_h² / n_h.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    standard_deviations : float (H,)
        S_h, in the outcome's units; zeros are allowed.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds. If a stratum is smaller than its minimum, the minimum is its size. A maximum of None is the
        size.

    Returns
    -------
    int (H,)
        n_h, whose sum is the budget. Ties go to the lowest index.

    Raises
    ------
    BudgetError
        If no allocation within the bounds has the sum `budget`.
    InputError
        If a size or bound is not a whole number, an S_h is negative, NaN or infinite, or lengths differ.

    Notes
    -----
    Neyman (1934); integers by the priority values of Wright (2012), `stratal.strata.integer_allocation`.

    Examples
    --------
    >>> neyman([8, 10, 9], [1.95, 0.04, 0.12], 12, minimum=1)
    array([8, 1, 3])
    """
    bounds = AllocationBounds.read(sizes, minimum, maximum)
    importance = neyman_importance(bounds.sizes, "standard_deviations", standard_deviations)
    return optimal_integers(importance, bounds, bounds.check(budget))
