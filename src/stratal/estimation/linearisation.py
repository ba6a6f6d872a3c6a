"""Linearisation: any smooth function of weighted means, with the variance of its linearised variable.

A function g of the means of q variables has, to first order, the same error as the weighted mean of one
per-unit variable u = Σ_j ∂g/∂m_j · y_j (Woodruff 1971; Särndal, Swensson & Wretman 1992, section 5.5). The
`Weighting` gives the variance of any such variable, so no estimator here knows a design.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import Weighting
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate, Nonresponse
from stratal.intervals.evidence import Evidence, require_target
from stratal.intervals.limits import Limits, StudentLimits, SumLimits, UndefinedLimits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linearised:
    """An estimate with the per-unit variable that carries its error.

    Parameters
    ----------
    value : float
    variable : float (n,)
        u: the weighted mean of u, less its expectation, is the estimate's error to first order.
    design_variance : float
        Due to drawing n of the N units; NaN where one label leaves nothing to estimate it from.
    population_variance : float
        Due to drawing the N units themselves; 0 for the target `population`.
    degrees_of_freedom : float

    Examples
    --------
    >>> Linearised(value=0.5, variable=np.zeros(2), design_variance=0.04, population_variance=0.0,
    ...            degrees_of_freedom=1.0).standard_error
    0.2
    """

    value: float
    variable: FloatArray
    design_variance: float
    population_variance: float
    degrees_of_freedom: float

    @property
    def variance(self) -> float:
        """Of the target asked for."""
        return self.design_variance + self.population_variance

    @property
    def standard_error(self) -> float:
        """Square root of the variance."""
        return float(np.sqrt(max(self.variance, 0.0)))


def of_variable(
    value: float, variable: FloatArray, weighting: Weighting, target: str = "population"
) -> Linearised:
    """Return an estimate from its value and its linearised variable (n,).

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0]), sizes=np.array([10]))
    >>> of_variable(1.0, np.array([0.0, 2.0]), weighting).design_variance
    0.8
    """
    require_target(target)
    extra = 0.0
    if target == "superpopulation":
        extra = float(weighting.population_covariance(variable[:, None])[0, 0])
    return Linearised(
        value=value,
        variable=variable,
        design_variance=float(weighting.covariance(weighting.stretched(variable[:, None]))[0, 0]),
        population_variance=extra,
        degrees_of_freedom=weighting.degrees_of_freedom(variable),
    )


def linearised_estimate(
    result: Linearised,
    weighting: Weighting,
    *,
    limits: Limits | None = None,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
    n: int | None = None,
    **shown: Any,
) -> Estimate:
    """Return the estimate of a function of means from its linearised variable.

    Parameters
    ----------
    limits : Limits, optional
        The estimand's own interval; Student's t on the linearised variance unless given.
    n : int, optional
        Labels that count towards it; all unless given.
    **shown
        Fields of `Estimate` that differ from what follows: standard_error, degrees_of_freedom, remarks, …
    """
    defined, labels = bool(np.isfinite(result.value)), len(result.variable)
    freedom = shown.pop("degrees_of_freedom", result.degrees_of_freedom)
    error = shown.pop("standard_error", result.standard_error if defined else np.nan)
    if limits is None:
        limits = StudentLimits(
            value=result.value,
            standard_error=result.standard_error,
            degrees_of_freedom=max(freedom, 1.0),
            bounds=bounds,
        )
    evidence = Evidence(
        value=result.value,
        variance=result.variance,
        population_part=result.population_variance,
        degrees_of_freedom=freedom,
        outcome="unbounded" if bounds is None else "bounded",
        bounds=bounds,
        z=result.value + result.variable,
        residuals=result.variable,
        known=0.0,
        weighting=weighting,
        tuned=False,
        superpopulation=target == "superpopulation",
        own=limits if defined else UndefinedLimits(bounds=bounds),
        linearised=True,
    )
    return Estimate(
        value=result.value,
        standard_error=error,
        degrees_of_freedom=freedom,
        n=labels if n is None else n,
        population_size=round(weighting.population_size),
        target=target,
        bounds=bounds,
        outcome=evidence.outcome,
        evidence=evidence,
        **{
            "design": "stratified",
            "estimator": "linearised",
            "lam": (),
            "nonresponse": Nonresponse(drawn=labels, labelled=labels),
            "strata": (),
            "design_effect": None,
            "effective_sample_size": None,
            **shown,
        },
    )


def undefined_estimate(
    weighting: Weighting, n: int, bounds: tuple[float, float] | None, *notes: str, target: str = "population"
) -> Estimate:
    """Return the estimate of what no label tells anything of: every possible value."""
    nothing = Linearised(
        value=np.nan,
        variable=np.full(len(weighting.weights), np.nan),
        design_variance=np.nan,
        population_variance=0.0,
        degrees_of_freedom=0.0,
    )
    return linearised_estimate(nothing, weighting, bounds=bounds, target=target, n=n, remarks=notes)


def difference_of(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two estimates from the same labels, its interval made of theirs.

    Examples
    --------
    >>> from stratal.estimation.domain_means import domain_mean
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(6, dtype=int), sizes=np.array([60]))
    >>> z, a = np.array([1.0, 1, 0, 0, 1, 0]), np.array([True, True, True, False, False, False])
    >>> means = [domain_mean(z, member, weighting, bounds=(0, 1)) for member in (a, ~a)]
    >>> round(difference_of(*means).value, 3)
    0.333
    """
    both, weighting = (first, second), first.evidence.weighting
    bounds = first.bounds
    span = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    n = first.n + second.n
    if not all(np.isfinite(found.value) for found in both):
        return replace(undefined_estimate(weighting, n, span, target=first.target), null=0.0)
    variables = np.column_stack([found.evidence.residuals for found in both])
    joint = weighting.covariance(variables)
    extra = sum(found.evidence.population_part for found in both)
    variance = float(joint[0, 0] + joint[1, 1] - 2.0 * joint[0, 1])
    spread = float(np.sqrt(joint[0, 0]) * np.sqrt(joint[1, 1]))
    shared = float(np.clip(joint[0, 1] / spread, -1.0, 1.0)) if spread > 0 else 0.0
    result = Linearised(
        value=first.value - second.value,
        variable=variables[:, 0] - variables[:, 1],
        design_variance=variance,
        population_variance=extra,
        degrees_of_freedom=min(found.degrees_of_freedom for found in both),
    )
    limits = SumLimits(
        value=result.value,
        bounds=span,
        terms=both,
        coefficients=np.array([1.0, -1.0]),
        correlation=np.array([[1.0, shared], [shared, 1.0]]),
    )
    return linearised_estimate(
        result, weighting, limits=limits, bounds=span, target=first.target, n=n, null=0.0
    )


def smooth_mean_function(
    variables: FloatArray,
    function: Callable[[FloatArray], float],
    weighting: Weighting,
    *,
    gradient: Callable[[FloatArray], FloatArray] | None = None,
    target: str = "population",
) -> Linearised:
    """Return g(means) of the weighted means of several variables, with its linearised variable.

    Parameters
    ----------
    variables : float (n, q)
        Of the labelled units.
    function : callable
        Means (q,) to a number; differentiable at the means.
    weighting : Weighting
    gradient : callable, optional
        Means (q,) to the partial derivatives (q,); central differences if not given.
    target : {"population", "superpopulation"}

    Raises
    ------
    InputError
        If the function or its gradient is not finite at the means.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(3, dtype=int), sizes=np.array([30]))
    >>> result = smooth_mean_function(np.array([[1.0], [2.0], [3.0]]), lambda m: m[0] ** 2, weighting)
    >>> result.value, round(result.standard_error, 4)
    (4.0, 2.1909)
    """
    means = weighting.mean(variables)
    value = float(function(means))
    slopes = numeric_gradient(function, means) if gradient is None else np.asarray(gradient(means), float)
    if slopes.shape != means.shape:
        raise InputError(
            "the gradient must have one entry per mean", given=slopes.shape, allowed=f"({len(means)},)"
        )
    if not (np.isfinite(value) and np.all(np.isfinite(slopes))):
        raise InputError(
            "the function or its gradient is not finite at the estimated means",
            given=f"means {[float(mean) for mean in means]}",
            action="Choose a function that is smooth there, or label more units.",
        )
    return of_variable(value, variables @ slopes, weighting, target)


def numeric_gradient(function: Callable[[FloatArray], float], means: FloatArray) -> FloatArray:
    """Return the partial derivatives (q,) by central differences.

    Examples
    --------
    >>> numeric_gradient(lambda m: m[0] / m[1], np.array([1.0, 2.0])).round(6)
    array([ 0.5 , -0.25])
    """
    steps = np.cbrt(np.finfo(np.float64).eps) * np.maximum(np.abs(means), 1e-3)
    slopes = np.empty_like(means)
    for j, step in enumerate(steps):
        up, down = means.copy(), means.copy()
        up[j] += step
        down[j] -= step
        slopes[j] = (float(function(up)) - float(function(down))) / (up[j] - down[j])
    return slopes


def ratio_of_means(
    numerator: FloatArray, denominator: FloatArray, weighting: Weighting, target: str = "population"
) -> Linearised:
    """Return Σ w a / Σ w b with its linearised variable (a − R b) / Σ w b (Cochran, section 6.4).

    NaN where the denominator is 0.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([40]))
    >>> ratio_of_means(np.array([1.0, 0, 1, 0]), np.array([1.0, 1, 1, 0]), weighting).value.__round__(4)
    0.6667
    """
    above, below = (float(weighting.weights @ column) for column in (numerator, denominator))
    if below == 0:
        return Linearised(
            value=np.nan,
            variable=np.full(len(numerator), np.nan),
            design_variance=np.nan,
            population_variance=0.0,
            degrees_of_freedom=0.0,
        )
    value = above / below
    return of_variable(value, (numerator - value * denominator) / below, weighting, target)
