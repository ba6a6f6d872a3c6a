"""`Allocation`: how many labels each stratum gets; `allocate`: one for a `Strata`, by the name of a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record, numeric_array
from stratal.errors import InputError, kind_of, names_mistyped, near_names
from stratal.report import Tabular
from stratal.strata.cost import cost_optimal
from stratal.strata.integers import Bounds, importance_of, one_per_stratum, optimal_integers, whole_number
from stratal.strata.known_moments import KnownMoments
from stratal.strata.moments import expected_deviations

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
        return {
            "stratum": range(self.n_strata),
            "n_h": self.n_h,
            "minimum": self.minimum,
            "maximum": self.maximum,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return {
            "method": self.method,
            "budget": self.budget,
            "n_h": self.n_h.tolist(),
            "minimum": self.minimum.tolist(),
            "maximum": self.maximum.tolist(),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> Allocation:
        """Return the allocation that `to_dict` described."""
        return cls(**description)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What `allocate` was asked for, once."""

    strata: KnownMoments
    limits: Bounds
    standard_deviations: Any
    costs: Any
    cost_budget: float | None
    exponent: float | None
    lam: Any

    @property
    def sizes(self) -> FloatArray:
        """N_h (H,)."""
        return self.limits.sizes.astype(np.float64)

    @property
    def deviations(self) -> FloatArray:
        """S_h: given ones, else the proxy's, else ones."""
        if self.standard_deviations is not None:
            return one_per_stratum("standard_deviations", self.standard_deviations, len(self.limits.sizes))
        return self.strata.standard_deviations if self.strata.scaled else np.ones(len(self.limits.sizes))


_UNSCALED = "The proxy only orders the units, so the strata count as equally variable."
_KNAPSACK = "The best whole numbers found within the cost budget; the exact problem is a knapsack."


def _proportional(request: _Request) -> FloatArray:
    return request.sizes


def _equal(request: _Request) -> FloatArray:
    return (request.limits.sizes > 0).astype(np.float64)


def _neyman(request: _Request) -> FloatArray:
    return importance_of(request.limits, "standard_deviations", request.deviations)


def _robust(request: _Request) -> FloatArray:
    strata, sizes = request.strata, request.limits.sizes
    if not strata.scaled:
        return request.sizes
    variances = strata.proxy_variances + strata.conditional_variances
    weights = sizes / max(1.0, float(sizes.sum()))
    return sizes * expected_deviations(weights, strata.proxy_means, variances, strata.bounds)


def _power(request: _Request) -> FloatArray:
    exponent = 0.5 if request.exponent is None else request.exponent
    return power_importance(request.sizes, request.deviations, exponent)


def _stratppi(request: _Request) -> FloatArray:
    strata, sizes = request.strata, request.sizes
    if not strata.scaled:
        return sizes
    lam = numeric_array("lam", 1.0 if request.lam is None else request.lam)
    if lam.shape not in ((), sizes.shape) or not np.all(np.isfinite(lam)):
        raise InputError(
            "lam must be one finite number or one per stratum",
            given=np.asarray(request.lam).tolist(),
            allowed="a number, or an array (H,)",
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


METHODS: dict[str, Callable[[_Request], FloatArray]] = {
    "proportional": _proportional,
    "equal": _equal,
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


def _within_costs(request: _Request, budget: int | None) -> IntArray:
    """Return the labels (H,) that the money buys."""
    if request.costs is None or request.cost_budget is None:
        raise InputError(
            "method 'cost-optimal' needs costs and cost_budget",
            action="Give a cost per stratum and the money.",
        )
    if budget is not None:
        raise InputError(
            "cost-optimal takes a budget of money, not of labels",
            given=f"budget={budget}",
            action="Leave budget out, or use method='neyman'.",
        )
    limits = request.limits
    return cost_optimal(
        limits.sizes, request.deviations, request.costs, request.cost_budget, limits.lower, limits.upper
    )


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
    given = {
        "standard_deviations": standard_deviations,
        "costs": costs,
        "cost_budget": cost_budget,
        "exponent": exponent,
        "lam": lam,
    }
    for name, users in _USERS.items():
        if given[name] is not None and method not in users:
            allowed = f"with method {', '.join(map(repr, users))}"
            raise InputError(f"method '{method}' takes no {name}", allowed=allowed)
    limits = Bounds.read(strata.sizes, minimum, maximum)
    request = _Request(strata=strata, limits=limits, **given)
    if method == "cost-optimal":
        n_h = _within_costs(request, budget)
    elif budget is None:
        raise InputError("budget is missing", action="Give the labels; only cost-optimal does without.")
    else:
        n_h = optimal_integers(METHODS[method](request), limits, limits.check(budget))
    notes: tuple[str, ...] = ()
    if method == "cost-optimal":
        notes = (_KNAPSACK, f"The labels cost {float(np.asarray(costs) @ n_h):g}.")
    elif method not in ("proportional", "equal") and standard_deviations is None and not strata.scaled:
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
