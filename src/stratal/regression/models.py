"""One function per model: arrays in, `MEstimate` out. All take the arguments of `m_estimate`."""

from __future__ import annotations

from typing import Any

from stratal.arrays import finite_vector
from stratal.designs import Weighting, WithReplacementWeighting
from stratal.errors import InputError
from stratal.regression.coefficients import MEstimate
from stratal.regression.losses import LinearLoss, LogisticLoss, MeanLoss, PoissonLoss
from stratal.regression.m_estimation import m_estimate


def mean_vector(outcome: Any, *, weighting: Weighting, **arguments: Any) -> MEstimate:
    """Estimate the mean of one or several outcomes together.

    Parameters
    ----------
    outcome : array-like (n,) or (n, q)
        Labels.
    weighting : Weighting
    **arguments
        Of `m_estimate`.

    Returns
    -------
    MEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0, 1, 1]), sizes=np.array([10, 30]))
    >>> mean_vector([1.0, 3.0, 5.0, 5.0], weighting=weighting).coefficients
    array([4.25])
    """
    return m_estimate(MeanLoss(), outcome, weighting=weighting, **arguments)


def linear_regression(features: Any, outcome: Any, *, weighting: Weighting, **arguments: Any) -> MEstimate:
    """Estimate the least-squares coefficients of the population.

    Parameters
    ----------
    features : array-like (n, p)
        Of the labelled units. No intercept is added unless `intercept=True`.
    outcome : array-like (n,)
    weighting : Weighting
    **arguments
        Of `m_estimate`.

    Returns
    -------
    MEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> x, y = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 5.0, 7.0]
    >>> fit = linear_regression(x, y, weighting=weighting, intercept=True)
    >>> fit.coefficients.round(6)
    array([-1.,  2.])
    """
    return m_estimate(LinearLoss(), outcome, features=features, weighting=weighting, **arguments)


def logistic_regression(features: Any, outcome: Any, *, weighting: Weighting, **arguments: Any) -> MEstimate:
    """Estimate the logistic coefficients of the population; outcome and proxy in [0, 1].

    The parameters are those of `linear_regression`.

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> fit = logistic_regression(np.ones(4), [0, 1, 1, 1], weighting=weighting, names=["intercept"])
    >>> bool(abs(fit.coefficients[0] - np.log(3)) < 1e-9)
    True
    """
    return m_estimate(LogisticLoss(), outcome, features=features, weighting=weighting, **arguments)


def poisson_regression(features: Any, outcome: Any, *, weighting: Weighting, **arguments: Any) -> MEstimate:
    """Estimate the log-linear coefficients of the population; outcome and proxy are counts.

    The parameters are those of `linear_regression`.

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([40]))
    >>> fit = poisson_regression(np.ones(4), [0, 1, 4, 3], weighting=weighting, names=["intercept"])
    >>> bool(abs(fit.coefficients[0] - np.log(2)) < 1e-9)
    True
    """
    return m_estimate(PoissonLoss(), outcome, features=features, weighting=weighting, **arguments)


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
