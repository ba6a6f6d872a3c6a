"""The rules of `allocate` for those who have arrays instead of `Strata`: whole numbers out.

Every rule names a weight a_h and minimises Σ a_h²/n_h over all integers within the bounds (`integers`), so Σ
n_h is the budget, always, and a larger budget never takes a unit back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stratal.arrays import (
    AnyArray,
    FloatArray,
    IntArray,
    Record,
    finite_vector,
    numeric_array,
)
from stratal.errors import InputError
from stratal.strata.allocation import allocate, power_importance
from stratal.strata.integers import Bounds, one_per_stratum, optimal_integers
from stratal.strata.moments import expected_deviations


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


def _moments(sizes: Any, variances: Any, conditional: Any) -> dict[str, Any]:
    """Return sizes, and variances checked to be one per stratum."""
    count = len(finite_vector("sizes", sizes))
    return {
        "sizes": sizes,
        "proxy_variances": one_per_stratum("proxy_variances", variances, count),
        "conditional_variances": one_per_stratum("conditional_variances", conditional, count),
    }


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
    shared = allocate(
        StratumArrays(sizes=sizes),
        budget,
        "neyman",
        minimum,
        maximum,
        standard_deviations=standard_deviations,
    )
    return np.array(shared.n_h)


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
    centres = np.ones(len(x)) if means is None else np.abs(numeric_array("means", means))
    if centres.shape != x.shape or not np.all(centres > 0):
        raise InputError(
            "means must be one per stratum, none zero",
            given=np.asarray(means).tolist(),
            action="Leave means out for absolute precision.",
        )
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
    strata = StratumArrays(**_moments(sizes, proxy_variances, conditional_variances))
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
    moments = _moments(sizes, proxy_variances, conditional_variances)
    strata = StratumArrays(proxy_means=_means(sizes, proxy_means), bounds=bounds, **moments)
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
    units, means = finite_vector("sizes", sizes), _means(sizes, proxy_means)
    moments = _moments(sizes, proxy_variances, conditional_variances)
    variances = moments["proxy_variances"] + moments["conditional_variances"]
    return expected_deviations(units / max(1.0, float(units.sum())), means, variances, bounds)


def _means(sizes: Any, proxy_means: Any) -> FloatArray:
    """Return the means of the strata, checked to be one for each."""
    means = finite_vector("proxy_means", proxy_means)
    if len(means) != np.size(sizes):
        given = f"{len(means)} for {np.size(sizes)} strata"
        raise InputError(
            "proxy_means must have one entry per stratum",
            given=given,
            action="Give one mean for each stratum, in the order of sizes.",
        )
    return means
