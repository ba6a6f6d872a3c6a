"""`allocate`: an `Allocation` for a `Strata`, by the name of a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stratal.allocation import rules
from stratal.allocation.allocation import Allocation
from stratal.allocation.bounds import Bounds, whole_number
from stratal.allocation.cost import cost_optimal
from stratal.allocation.shrinkage import robust
from stratal.arrays import FloatArray, IntArray
from stratal.errors import InputError, near_names


class StratumMoments(Protocol):
    """What a rule needs to know of strata: sizes and the plug-in moments of the outcome in each."""

    @property
    def sizes(self) -> IntArray:
        """N_h (H,)."""

    @property
    def standard_deviations(self) -> FloatArray:
        """Plug-in S_h (H,)."""

    @property
    def proxy_means(self) -> FloatArray:
        """Mean of E[z | x] (H,)."""

    @property
    def proxy_variances(self) -> FloatArray:
        """Variance of E[z | x] within the stratum (H,), divisor N_h."""

    @property
    def conditional_variances(self) -> FloatArray:
        """Mean of Var(z | x) (H,)."""

    @property
    def scaled(self) -> bool:
        """Whether the proxy is on the outcome's scale; a margin only orders."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The outcome's limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What `allocate` was asked for, once."""

    strata: StratumMoments
    budget: int | None
    minimum: Any
    maximum: Any
    standard_deviations: Any
    costs: Any
    cost_budget: float | None
    exponent: float | None
    lam: Any

    @property
    def limits(self) -> dict[str, Any]:
        """The bounds, as the rules take them."""
        return {"minimum": self.minimum, "maximum": self.maximum}

    @property
    def labels(self) -> int:
        """The budget of labels."""
        if self.budget is None:
            raise InputError(
                "budget is missing", action="Give the number of labels; only cost-optimal does without."
            )
        return whole_number("budget", self.budget)

    def deviations(self) -> FloatArray:
        """Return S_h: given ones, else the proxy's, else ones."""
        if self.standard_deviations is not None:
            return np.asarray(self.standard_deviations)
        if not self.strata.scaled:
            return np.ones(len(self.strata.sizes))
        return self.strata.standard_deviations


_UNSCALED = "The proxy only orders the units, so the strata count as equally variable."
_KNAPSACK = "The best whole numbers found within the cost budget; the exact problem is a knapsack."


def _proportional(request: _Request) -> IntArray:
    return rules.proportional(request.strata.sizes, request.labels, **request.limits)


def _equal(request: _Request) -> IntArray:
    return rules.equal(request.strata.sizes, request.labels, **request.limits)


def _neyman(request: _Request) -> IntArray:
    return rules.neyman(request.strata.sizes, request.deviations(), request.labels, **request.limits)


def _robust(request: _Request) -> IntArray:
    strata = request.strata
    if not strata.scaled:
        return _proportional(request)
    return robust(
        strata.sizes,
        strata.proxy_means,
        strata.proxy_variances,
        strata.conditional_variances,
        request.labels,
        bounds=strata.bounds,
        **request.limits,
    )


def _power(request: _Request) -> IntArray:
    exponent = 0.5 if request.exponent is None else request.exponent
    return rules.power(
        request.strata.sizes, request.deviations(), request.labels, exponent=exponent, **request.limits
    )


def _stratppi(request: _Request) -> IntArray:
    strata, lam = request.strata, 1.0 if request.lam is None else request.lam
    if not strata.scaled:
        return _proportional(request)
    return rules.residual(
        strata.sizes,
        strata.proxy_variances,
        strata.conditional_variances,
        request.labels,
        lam=lam,
        **request.limits,
    )


def _cost_optimal(request: _Request) -> IntArray:
    if request.costs is None or request.cost_budget is None:
        raise InputError(
            "method 'cost-optimal' needs costs and cost_budget",
            action="Give a cost per stratum and the money.",
        )
    if request.budget is not None:
        raise InputError(
            "cost-optimal takes a budget of money, not of labels",
            given=f"budget={request.budget}",
            action="Leave budget out, or use method='neyman'.",
        )
    return cost_optimal(
        request.strata.sizes, request.deviations(), request.costs, request.cost_budget, **request.limits
    )


METHODS: dict[str, Callable[[_Request], IntArray]] = {
    "proportional": _proportional,
    "equal": _equal,
    "neyman": _neyman,
    "robust": _robust,
    "power": _power,
    "cost-optimal": _cost_optimal,
    "stratppi": _stratppi,
}
"""The rules by name."""


def allocate(
    strata: StratumMoments,
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
        Bounds; 2 by default, so that every stratum has a variance.
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
    if method not in METHODS:
        raise InputError(
            "unknown allocation method", given=repr(method), allowed=", ".join(METHODS),
            action=f"Did you mean {near_names(str(method), METHODS)}?",
        )  # fmt: skip
    _refuse_unused(
        method,
        standard_deviations=standard_deviations,
        costs=costs,
        cost_budget=cost_budget,
        exponent=exponent,
        lam=lam,
    )
    request = _Request(
        strata=strata,
        budget=budget,
        minimum=minimum,
        maximum=maximum,
        standard_deviations=standard_deviations,
        costs=costs,
        cost_budget=cost_budget,
        exponent=exponent,
        lam=lam,
    )
    n_h = METHODS[method](request)
    limits = Bounds.read(strata.sizes, minimum, maximum)
    return Allocation(
        n_h=n_h, method=method, budget=int(n_h.sum()), minimum=limits.lower, maximum=limits.upper,
        notes=_notes(method, strata, costs, standard_deviations, n_h),
    )  # fmt: skip


_OPTIONS = {
    "neyman": {"standard_deviations"},
    "power": {"standard_deviations", "exponent"},
    "cost-optimal": {"standard_deviations", "costs", "cost_budget"},
    "stratppi": {"lam"},
}


def _refuse_unused(method: str, **options: Any) -> None:
    """Refuse an option that the method would ignore without a word."""
    for name, value in options.items():
        if value is not None and name not in _OPTIONS.get(method, set()):
            users = ", ".join(repr(user) for user, names in _OPTIONS.items() if name in names)
            raise InputError(f"method '{method}' takes no {name}", allowed=f"with method {users}")


def _notes(
    method: str, strata: StratumMoments, costs: Any, standard_deviations: Any, n_h: IntArray
) -> tuple[str, ...]:
    if method == "cost-optimal":
        return (_KNAPSACK, f"The labels cost {float(np.asarray(costs) @ n_h):g}.")
    if method in ("proportional", "equal") or strata.scaled or standard_deviations is not None:
        return ()
    return (_UNSCALED,)
