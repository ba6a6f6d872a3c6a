"""Linearisation: any smooth function of weighted means, with the variance of its linearised variable.

A function g of the means of q variables has, to first order, the same error as the weighted mean of one
per-unit variable u = Σ_j ∂g/∂m_j · y_j (Woodruff 1971; Särndal, Swensson & Wretman 1992, section 5.5). The
`Weighting` gives the variance of any such variable, so no estimator here knows a design.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import Weighting
from stratal.errors import InputError
from stratal.intervals.evidence import require_target


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
