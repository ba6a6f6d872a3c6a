"""`Allocation`: how many labels each stratum gets; `allocate`: one for a `Strata`, by the name of a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record, finite_vector, numeric_array, plain
from stratal.errors import InputError, kind_of, names_mistyped, near_names
from stratal.report import Tabular
from stratal.strata.integers import Bounds, importance_of, one_per_stratum, optimal_integers, whole_number
from stratal.strata.moments import KnownMoments, expected_deviations
from stratal.strata.several_solver import check_money, least_variance

FROM_LABELS = ("opt-a1", "opt-a2")
"""Names of the rules that look at labels: a second round, and later ones (Kumar & Raj 2016)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation(Record, Tabular):
    """How many units of the budget each stratum gets.

    Parameters
    ----------
    n_h : int (H,)
        Labels per stratum; their sum is `budget`.
    method : str
        Name of the rule that made it.
    budget : int
        Labels in all.
    minimum, maximum : int (H,)
        The bounds that were respected.
    notes : tuple of str
        What the user should know, for a report.

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
        self._set(n_h=np.array(self.n_h), notes=tuple(self.notes))
        self._freeze()
        self._set(budget=whole_number("budget", self.budget))
        if not self.n_h.shape == self.minimum.shape == self.maximum.shape or self.n_h.ndim != 1:
            raise InputError(
                "n_h, minimum and maximum must have one entry per stratum",
                allowed="whole numbers (H,)",
                action="Make allocations by stratal.allocate(strata, budget).",
            )
        if self.n_h.sum() != self.budget:
            raise InputError(
                "n_h must sum to the budget",
                given=f"{self.n_h.sum()} for {self.budget}",
                action="Set budget to the sum of n_h, or make the allocation by stratal.allocate.",
            )
        if np.any(self.n_h < self.minimum) or np.any(self.n_h > self.maximum):
            raise InputError(
                "n_h breaks its bounds",
                given=self.n_h.tolist(),
                allowed=f"at least {self.minimum.tolist()}, at most {self.maximum.tolist()}",
            )

    @property
    def n_strata(self) -> int:
        """H."""
        return len(self.n_h)

    def _columns(self) -> dict[str, Any]:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        return {"stratum": range(self.n_strata), "n_h": self.n_h, **bounds}

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        names = ("method", "budget", "n_h", "minimum", "maximum", "notes")
        return {name: plain(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Allocation:
        """Return the allocation that `to_dict` described."""
        return cls(**description)


_UNSCALED = "The proxy only orders the units, so the strata count as equally variable."
_KNAPSACK = "The best whole numbers found within the cost budget; the exact problem is a knapsack."

Weigh = Callable[[KnownMoments, FloatArray, Mapping[str, Any]], FloatArray]
"""From strata, N_h (H,) and options to the weight a_h (H,) of each stratum."""


def _deviations(strata: KnownMoments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    """Return S_h (H,): given ones, else the proxy's, else ones."""
    given = options["standard_deviations"]
    if given is not None:
        return one_per_stratum("standard_deviations", given, len(sizes))
    return strata.standard_deviations if strata.scaled else np.ones(len(sizes))


def _neyman(strata: KnownMoments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    return importance_of(sizes, "standard_deviations", _deviations(strata, sizes, options))


def _robust(strata: KnownMoments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    if not strata.scaled:
        return sizes
    variances = strata.proxy_variances + strata.conditional_variances
    weights = sizes / max(1.0, float(sizes.sum()))
    return sizes * expected_deviations(weights, strata.proxy_means, variances, strata.bounds)


def _power(strata: KnownMoments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    exponent = 0.5 if options["exponent"] is None else options["exponent"]
    return power_importance(sizes, _deviations(strata, sizes, options), exponent)


def _stratppi(strata: KnownMoments, sizes: FloatArray, options: Mapping[str, Any]) -> FloatArray:
    if not strata.scaled:
        return sizes
    lam = numeric_array("lam", 1.0 if options["lam"] is None else options["lam"])
    if lam.shape not in ((), sizes.shape) or not np.all(np.isfinite(lam)):
        raise InputError(
            "lam must be one finite number or one per stratum",
            given=np.asarray(options["lam"]).tolist(),
            action="Use lam=1, StratPPI's own rule, or lam=0, Neyman's.",
        )
    return sizes * residual_deviations(strata.proxy_variances, strata.conditional_variances, lam)


def power_importance(sizes: FloatArray, deviations: FloatArray, exponent: float) -> FloatArray:
    """Return Bankier's X_h^q S_h (H,).

    Examples
    --------
    >>> power_importance(np.array([4.0, 9.0]), np.ones(2), 0.5)
    array([2., 3.])
    """
    if not (np.ndim(exponent) == 0 and 0.0 <= float(exponent) <= 1.0):
        raise InputError("exponent is out of range", given=exponent, allowed="between 0 and 1")
    return sizes ** float(exponent) * deviations


def residual_deviations(
    proxy_variances: FloatArray, conditional_variances: FloatArray, lam: FloatArray
) -> FloatArray:
    """Return σ_h (H,) with σ_h² = (1 − λ)² Var(ẑ) + mean of Var(z | x), the plug-in of Var(z − λẑ).

    It is Fisch et al. eq. 20–21 with the autorater's mean as the prediction: the mean of z − λẑ given x is
    (1 − λ)ẑ, and its variance given x is that of z.

    Examples
    --------
    >>> residual_deviations(np.array([0.04]), np.array([0.21]), np.array(0.0))
    array([0.5])
    """
    return np.asarray(np.sqrt((1.0 - lam) ** 2 * proxy_variances + conditional_variances))


METHODS: dict[str, Weigh] = {
    "proportional": lambda strata, sizes, options: sizes,
    "equal": lambda strata, sizes, options: (sizes > 0).astype(np.float64),
    "neyman": _neyman,
    "robust": _robust,
    "power": _power,
    "cost-optimal": _neyman,
    "stratppi": _stratppi,
}
"""The weight a_h (H,) of each rule by name: the labels minimise Σ a_h² / n_h (`integers`, `cost`)."""

_USERS = {
    "standard_deviations": ("neyman", "power", "cost-optimal"),
    "costs": ("cost-optimal",),
    "cost_budget": ("cost-optimal",),
    "exponent": ("power",),
    "lam": ("stratppi",),
}
"""Options, and the methods that do not ignore them."""


@names_mistyped
def allocate(
    strata: KnownMoments,
    budget: int | None = None,
    method: str = "robust",
    minimum: Any = 2,
    maximum: Any = None,
    *,
    standard_deviations: Any = None,
    costs: Any = None,
    cost_budget: float | None = None,
    exponent: float | None = None,
    lam: Any = None,
) -> Allocation:
    """Share a budget of labels among strata.

    Parameters
    ----------
    strata : Strata
        Sizes and plug-in moments per stratum.
    budget : int
        Labels in all; left out only for "cost-optimal".
    method : str
        "robust" (default), "proportional", "equal", "neyman", "power", "cost-optimal" or "stratppi".
    minimum, maximum : int or int (H,)
        Bounds; 2 by default, so that every stratum has a variance. Strata in which an estimand is known by
        construction get no label.
    standard_deviations : float (H,), optional
        S_h instead of the proxy's, for "neyman", "power" and "cost-optimal".
    costs : float (H,), cost_budget : float
        Cost of a label per stratum and money in all, for "cost-optimal".
    exponent : float, optional
        Bankier's q for "power", 0.5 by default.
    lam : float or float (H,), optional
        λ of the residual for "stratppi", 1 by default.

    Returns
    -------
    Allocation

    Raises
    ------
    BudgetError
        If the bounds cannot meet the budget.
    InputError
        If the method is unknown, or lacks what it needs.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> strata = SimpleNamespace(sizes=[600, 300, 100])
    >>> allocate(strata, 50, method="proportional").n_h
    array([30, 15,  5])
    """
    if not hasattr(strata, "sizes"):
        raise InputError(
            "allocate takes Strata",
            given=kind_of(strata),
            action="Divide the population first: stratal.stratify(population).",
        )
    if method not in METHODS:
        raise InputError(
            "unknown allocation method",
            given=repr(method),
            allowed=", ".join(METHODS),
            action=f"Did you mean {near_names(str(method), METHODS)}?",
        )
    if getattr(strata, "known", ()):
        minimum, maximum = _without_known(strata, minimum, maximum)
    options = {"standard_deviations": standard_deviations, "costs": costs, "cost_budget": cost_budget}
    options |= {"exponent": exponent, "lam": lam}
    for name, users in _USERS.items():
        if options[name] is not None and method not in users:
            allowed = f"with method {', '.join(map(repr, users))}"
            raise InputError(f"method '{method}' takes no {name}", allowed=allowed)
    limits = Bounds.read(strata.sizes, minimum, maximum)
    notes: tuple[str, ...] = ()
    by_cost = method == "cost-optimal"
    if by_cost and (costs is None or cost_budget is None or budget is not None):
        raise InputError(
            "method 'cost-optimal' needs costs, and a budget of money instead of labels",
            given="budget" if budget is not None else None,
            action="Give a cost per stratum and the money: costs=, cost_budget=.",
        )
    sizes = limits.sizes.astype(np.float64)
    if by_cost:
        assert cost_budget is not None
        deviations = _deviations(strata, sizes, options)
        n_h = cost_optimal(limits.sizes, deviations, costs, cost_budget, limits.lower, limits.upper)
        notes = (_KNAPSACK, f"The labels cost {float(np.asarray(costs) @ n_h):g}.")
    elif budget is None:
        raise InputError("budget is missing", action="Give the labels; only cost-optimal does without.")
    else:
        n_h = optimal_integers(METHODS[method](strata, sizes, options), limits, limits.check(budget))
        if method not in ("proportional", "equal") and standard_deviations is None and not strata.scaled:
            notes = (_UNSCALED,)
    return Allocation(
        n_h=n_h,
        method=method,
        budget=int(n_h.sum()),
        minimum=limits.lower,
        maximum=limits.upper,
        notes=notes,
    )


def _without_known(strata: KnownMoments, minimum: Any, maximum: Any) -> tuple[Any, Any]:
    """Return the bounds with no label for strata of which everything is known by construction."""
    known = np.asarray(getattr(strata, "is_known", False))
    if not np.any(known):
        return minimum, maximum
    most = strata.sizes if maximum is None else np.broadcast_to(maximum, known.shape)
    return np.where(known, 0, minimum), np.where(known, 0, most)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumArrays(Record):
    """Sizes and plug-in moments of strata as `allocate` asks for them.

    Examples
    --------
    >>> StratumArrays(sizes=np.array([50, 50])).scaled
    True
    """

    sizes: AnyArray
    proxy_means: FloatArray = field(default_factory=lambda: np.zeros(0))
    proxy_variances: FloatArray = field(default_factory=lambda: np.zeros(0))
    conditional_variances: FloatArray = field(default_factory=lambda: np.zeros(0))
    bounds: tuple[float, float] = (0.0, 1.0)
    scaled: bool = True

    @property
    def standard_deviations(self) -> FloatArray:
        """S_h (H,)."""
        return np.asarray(np.sqrt(self.proxy_variances + self.conditional_variances))


def _strata_of(sizes: Any, variances: Any, conditional: Any, means: Any = None, **more: Any) -> StratumArrays:
    """Return strata of arrays that are checked to have one number for each."""
    count = len(finite_vector("sizes", sizes))
    return StratumArrays(
        sizes=sizes,
        proxy_means=np.zeros(0) if means is None else one_per_stratum("proxy_means", means, count, -np.inf),
        proxy_variances=one_per_stratum("proxy_variances", variances, count),
        conditional_variances=one_per_stratum("conditional_variances", conditional, count),
        **more,
    )


def proportional(sizes: Any, budget: int, minimum: Any = 2, maximum: Any = None) -> IntArray:
    """Return n_h ∝ N_h, the best for equal S_h (Cochran, 5.3).

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds; the minimum of a small stratum is its size, a maximum of None is the size.

    Returns
    -------
    int (H,)
        n_h, whose sum is the budget.

    Raises
    ------
    BudgetError
        If the bounds cannot meet the budget.
    InputError
        If a size or bound is no whole number, or a maximum is below its minimum.

    Examples
    --------
    >>> proportional([50, 30, 20], 10)
    array([5, 3, 2])
    """
    return np.array(allocate(StratumArrays(sizes=sizes), budget, "proportional", minimum, maximum).n_h)


def equal(sizes: Any, budget: int, minimum: Any = 2, maximum: Any = None) -> IntArray:
    """Return n_h as equal as the bounds allow: the best where W_h S_h is constant.

    Parameters, errors and result are those of `proportional`; what does not divide goes to the first strata.

    Examples
    --------
    >>> equal([50, 30, 3], 12)
    array([5, 4, 3])
    """
    return np.array(allocate(StratumArrays(sizes=sizes), budget, "equal", minimum, maximum).n_h)


def neyman(
    sizes: Any, standard_deviations: Any, budget: int, minimum: Any = 2, maximum: Any = None
) -> IntArray:
    """Return n_h ∝ N_h S_h, exactly optimal among integers for the variance Σ W_h² (1 − f_h) S_h² / n_h.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    standard_deviations : float (H,)
        S_h, in the outcome's units; zeros are allowed.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds; the minimum of a small stratum is its size, a maximum of None is the size.

    Returns
    -------
    int (H,)
        n_h, whose sum is the budget. Ties go to the lowest index.

    Raises
    ------
    BudgetError
        If the bounds cannot meet the budget.
    InputError
        If a size or bound is no whole number, an S_h is negative, NaN or infinite, or lengths differ.

    Notes
    -----
    Neyman (1934); integers by the priority values of Wright (2012), see `stratal.strata.integers`.

    Examples
    --------
    >>> neyman([8, 10, 9], [1.95, 0.04, 0.12], 12, minimum=1)
    array([8, 1, 3])
    """
    bounds = Bounds.read(sizes, minimum, maximum)
    importance = importance_of(bounds.sizes, "standard_deviations", standard_deviations)
    return optimal_integers(importance, bounds, bounds.check(budget))


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
    importance = importance_of(bounds.sizes, "standard_deviations", standard_deviations)
    prices, money = check_money(bounds, costs, cost_budget)
    if not importance.any():
        importance = bounds.sizes.astype(np.float64)
    return least_variance(importance, prices, money, bounds)


def power(
    sizes: Any,
    standard_deviations: Any,
    budget: int,
    exponent: float = 0.5,
    totals: Any = None,
    means: Any = None,
    minimum: Any = 2,
    maximum: Any = None,
) -> IntArray:
    """Return Bankier's power allocation n_h ∝ X_h^q S_h / Ȳ_h: a bargain between the whole and each stratum.

    With exponent 1 it is Neyman's; with 0 every stratum's own mean is about equally precise.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    standard_deviations : float (H,)
        S_h.
    budget : int
        Σ n_h.
    exponent : float
        q, between 0 and 1.
    totals : float (H,), optional
        X_h, the importance of each stratum, none negative; the sizes by default.
    means : float (H,), optional
        Ȳ_h, none zero, where precision is relative to the stratum's mean; absolute by default.
    minimum, maximum : int or int (H,)
        Bounds as in `neyman`.

    Notes
    -----
    Bankier (1988), "Power allocations: determining sample sizes for subnational areas".

    Examples
    --------
    >>> power([900, 100], [0.3, 0.3], 40, exponent=0.0), power([900, 100], [0.3, 0.3], 40, exponent=1.0)
    (array([20, 20]), array([36,  4]))
    """
    bounds = Bounds.read(sizes, minimum, maximum)
    deviations = one_per_stratum("standard_deviations", standard_deviations, len(bounds.sizes))
    x = one_per_stratum("totals", bounds.sizes if totals is None else totals, len(bounds.sizes))
    centres = np.ones(len(x)) if means is None else np.abs(one_per_stratum("means", means, len(x), -np.inf))
    if not np.all(centres > 0):
        raise InputError("means must not be zero", action="Leave means out for absolute precision.")
    importance = power_importance(x, deviations, exponent) / centres
    return optimal_integers(importance, bounds, bounds.check(budget))


def residual(
    sizes: Any,
    proxy_variances: Any,
    conditional_variances: Any,
    budget: int,
    lam: Any = 1.0,
    minimum: Any = 2,
    maximum: Any = None,
) -> IntArray:
    """Return n_h ∝ N_h σ_h for the residual z − λẑ, σ_h its plug-in deviation (StratPPI's heuristic rule).

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    proxy_variances : float (H,)
        Variance of the proxy ẑ = E[z | x] within each stratum.
    conditional_variances : float (H,)
        Mean of Var(z | x) within each stratum.
    budget : int
        Σ n_h.
    lam : float or float (H,)
        λ, one or one per stratum: 0 is Neyman's rule, 1 the paper's.
    minimum, maximum : int or int (H,)
        Bounds as in `neyman`.

    Notes
    -----
    Fisch et al. (2024), Proposition 3 and Example 2 (eq. 18–21), whose double sum is `residual_deviations`.

    Examples
    --------
    >>> residual([100, 100], [0.04, 0.04], [0.21, 0.05], 20)
    array([13,  7])
    >>> residual([100, 100], [0.04, 0.04], [0.21, 0.05], 20, lam=0)
    array([12,  8])
    """
    strata = _strata_of(sizes, proxy_variances, conditional_variances)
    return np.array(allocate(strata, budget, "stratppi", minimum, maximum, lam=lam).n_h)


def robust(
    sizes: Any,
    proxy_means: Any,
    proxy_variances: Any,
    conditional_variances: Any,
    budget: int,
    minimum: Any = 2,
    maximum: Any = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> IntArray:
    """Return n_h by Neyman's rule on `robust_standard_deviations`: the default before any label is known.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    proxy_means : float (H,)
        Mean of E[z | x] in each stratum.
    proxy_variances : float (H,)
        Variance of E[z | x] within each stratum (divisor N_h).
    conditional_variances : float (H,)
        Mean of Var(z | x) in each stratum.
    budget : int
        Σ n_h.
    minimum, maximum : int or int (H,)
        Bounds on n_h as in `neyman`.
    bounds : (float, float)
        The outcome's limits; infinite where it has none.

    Returns
    -------
    int (H,)
        n_h, whose sum is the budget.

    Raises
    ------
    BudgetError, InputError
        As `neyman`.

    Notes
    -----
    Neyman's rule believes the proxy. A model that is 99.9 % sure of every unit in a stratum where it is right
    98 % of the time has a true S_h four times its plug-in, and with √(m(1 − m)) of a judge's flat 0 and 1
    whole strata are left with the minimum. This rule minimises the variance *expected* over the ways in which
    the proxy may be off, which is Neyman's with √(mean of S_h²) for S_h. Measured by
    `benchmarks/robust_allocation.py`; see `docs/methods/allocation.md`.

    Examples
    --------
    >>> robust([500, 500], [0.5, 0.999], [0.0, 0.0], [0.25, 0.001], 20)
    array([13,  7])
    """
    strata = _strata_of(sizes, proxy_variances, conditional_variances, proxy_means, bounds=bounds)
    return np.array(allocate(strata, budget, "robust", minimum, maximum).n_h)


def robust_standard_deviations(
    sizes: Any,
    proxy_means: Any,
    proxy_variances: Any,
    conditional_variances: Any,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> FloatArray:
    """Return √(mean of S_h²) over the ways in which the proxy may be off (`stratal.strata.moments`).

    Parameters
    ----------
    sizes, proxy_means, proxy_variances, conditional_variances, bounds
        As in `robust`.

    Returns
    -------
    float (H,)
        In the outcome's units.

    Examples
    --------
    >>> robust_standard_deviations([500, 500], [0.5, 1.0], [0.0, 0.0], [0.25, 0.0]).round(3)
    array([0.479, 0.236])
    """
    strata = _strata_of(sizes, proxy_variances, conditional_variances, proxy_means)
    weights = strata.sizes / max(1.0, float(np.sum(strata.sizes)))
    variances = strata.proxy_variances + strata.conditional_variances
    return expected_deviations(weights, strata.proxy_means, variances, bounds)
