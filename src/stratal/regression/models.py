"""One function per model: arrays in, `MEstimate` out. All take the options of `m_estimate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stratal.arrays import finite_vector
from stratal.errors import InputError
from stratal.regression.coefficients import MEstimate
from stratal.regression.losses import Linear, Logistic, Loss, Mean, Poisson
from stratal.regression.m_estimation import m_estimate
from stratal.regression.unlabelled import ArrayUnlabelled, Unlabelled, feature_matrix
from stratal.weighting import Weighting, WithReplacementWeighting

_POPULATION = ("unlabelled", "population_features", "population_proxy", "population_stratum")


def mean_vector(
    outcome: Any,
    *,
    weighting: Weighting,
    proxy: Any = None,
    unlabelled: Unlabelled | None = None,
    population_proxy: Any = None,
    population_stratum: Any = None,
    names: Sequence[str] | None = None,
    **options: Any,
) -> MEstimate:
    """Estimate the mean of one or several outcomes together.

    Parameters
    ----------
    outcome : array-like (n,) or (n, q)
        Labels.
    weighting : Weighting
    proxy : array-like like `outcome`, optional
        Predictions for the labelled units.
    unlabelled : Unlabelled, optional
        The population side, or give its arrays:
    population_proxy : array-like (N,) or (N, q), optional
    population_stratum : int (N,), optional
    names : sequence of str, optional
    **options
        See `m_estimate`.

    Returns
    -------
    MEstimate

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0, 1, 1]), sizes=np.array([10, 30]))
    >>> mean_vector([1.0, 3.0, 5.0, 5.0], weighting=weighting).coefficients
    array([4.25])
    """
    units = _population(unlabelled, None, population_proxy, population_stratum)
    return m_estimate(
        Mean(), outcome, weighting=weighting, proxy=proxy, unlabelled=units, names=names, **options
    )


def linear_regression(features: Any, outcome: Any, *, weighting: Weighting, **arguments: Any) -> MEstimate:
    """Estimate the least-squares coefficients of the population.

    Parameters
    ----------
    features : array-like (n, p)
        Of the labelled units. No intercept is added unless `intercept=True`.
    outcome : array-like (n,)
    weighting : Weighting
    proxy, unlabelled, population_features, population_proxy, population_stratum, names, intercept, **options
        As in `mean_vector` and `m_estimate`; `population_features` is (N, p).

    Returns
    -------
    MEstimate

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> x, y = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 5.0, 7.0]
    >>> fit = linear_regression(x, y, weighting=weighting, intercept=True)
    >>> fit.coefficients.round(6)
    array([-1.,  2.])
    """
    return _regression(Linear(), features, outcome, {**arguments, "weighting": weighting})


def logistic_regression(features: Any, outcome: Any, *, weighting: Weighting, **arguments: Any) -> MEstimate:
    """Estimate the logistic coefficients of the population; outcome and proxy in [0, 1].

    The parameters are those of `linear_regression`.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> fit = logistic_regression(np.ones(4), [0, 1, 1, 1], weighting=weighting, names=["intercept"])
    >>> bool(abs(fit.coefficients[0] - np.log(3)) < 1e-9)
    True
    """
    return _regression(Logistic(), features, outcome, {**arguments, "weighting": weighting})


def poisson_regression(features: Any, outcome: Any, *, weighting: Weighting, **arguments: Any) -> MEstimate:
    """Estimate the log-linear coefficients of the population; outcome and proxy are counts.

    The parameters are those of `linear_regression`.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> fit = poisson_regression(np.ones(4), [0, 1, 4, 3], weighting=weighting, names=["intercept"])
    >>> bool(abs(fit.coefficients[0] - np.log(2)) < 1e-9)
    True
    """
    return _regression(Poisson(), features, outcome, {**arguments, "weighting": weighting})


def with_intercept(features: Any) -> Any:
    """Return the features with a column of ones before them.

    Examples
    --------
    >>> with_intercept(np.array([[2.0]]))
    array([[1., 2.]])
    """
    return np.concatenate([np.ones((len(features), 1)), features], axis=1)


def SuppliedWeights(*, sampling_weight: Any, size: float | None = None) -> WithReplacementWeighting:  # noqa: N802
    """Return the weighting of units of which only sampling weights are known, taken as independent draws.

    The variance is that of R's `survey` for a design of weights alone (Hansen & Hurwitz 1943), and
    `ppi-python`'s.

    Parameters
    ----------
    sampling_weight : array-like (n,)
        Positive, on any scale; they are made to add up to one.
    size : float, optional
        N; the sum of the weights if left out.

    Raises
    ------
    InputError
        For weights that are not positive numbers.

    Examples
    --------
    >>> SuppliedWeights(sampling_weight=[1.0, 3.0]).weights
    array([0.25, 0.75])
    """
    given = finite_vector("sampling_weight", sampling_weight)
    if len(given) == 0 or given.min() <= 0:
        raise InputError(
            "sampling weights must be positive",
            given=f"{given.min():g} at the lowest" if len(given) else "none",
            action="Leave units with weight 0 out.",
        )
    total = float(given.sum())
    size = total if size is None else float(size)
    return WithReplacementWeighting(design_weight=given * (size / total), size=size)


def _population(
    unlabelled: Unlabelled | None = None,
    population_features: Any = None,
    population_proxy: Any = None,
    population_stratum: Any = None,
    intercept: bool = False,
) -> Unlabelled | None:
    """Return the population side, from units or from arrays; `None` where there is no proxy."""
    if unlabelled is not None and population_proxy is not None:
        raise InputError(
            "give unlabelled= or the population's arrays, not both",
            action="Give unlabelled= alone, or the arrays alone.",
        )
    if unlabelled is not None and intercept:
        raise InputError(
            "intercept=True cannot reach into unlabelled=", action="Add the column of ones there."
        )
    if population_proxy is None:
        return unlabelled
    if population_features is not None:
        population_features = feature_matrix("population_features", population_features)
        population_features = with_intercept(population_features) if intercept else population_features
    return ArrayUnlabelled(features=population_features, proxy=population_proxy, stratum=population_stratum)


def _regression(loss: Loss, features: Any, outcome: Any, arguments: dict[str, Any]) -> MEstimate:
    """Return the estimate, with the arguments of `mean_vector`, `population_features` and `intercept`."""
    given = {name: arguments.pop(name) for name in _POPULATION if name in arguments}
    if given.get("population_proxy") is not None and given.get("population_features") is None:
        raise InputError(
            "population_proxy needs population_features", action="Give the features of all N units."
        )
    intercept, names = arguments.pop("intercept", False), arguments.pop("names", None)
    units = _population(**given, intercept=intercept)
    matrix = feature_matrix("features", features)
    if intercept:
        matrix = with_intercept(matrix)
        if names is None:
            names = ("intercept", *(f"x{j}" for j in range(matrix.shape[1] - 1)))
        elif len(names) == matrix.shape[1] - 1:
            names = ("intercept", *names)
    if isinstance(units, ArrayUnlabelled) and units.features.shape[1] != matrix.shape[1]:
        raise InputError(
            "labelled and unlabelled units have different numbers of features",
            given=f"{matrix.shape[1]} and {units.features.shape[1]}",
            allowed="the same columns in both",
        )
    return m_estimate(loss, outcome, features=matrix, unlabelled=units, names=names, **arguments)
