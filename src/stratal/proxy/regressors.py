"""Proxies of a regression's error, from a normal predictive distribution of the response.

Y is taken as normal with mean μ(x) and variance σ²(x), from the model itself or a surrogate; the model that
is evaluated predicts f(x). The error e = Y − f is normal around the bias μ − f, which is zero if the
distribution is the model's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # of which a part is loaded at its first use

from stratal.arrays import FloatArray, finite_vector, same_length
from stratal.errors import InputError
from stratal.proxy.proxy import Proxy


def absolute_regression_error(
    variance: Any, *, mean: Any = None, prediction: Any = None, name: str = "absolute_error"
) -> Proxy:
    """Return the proxy of z = |Y − f|: the mean of a folded normal, second moment σ² + (μ − f)².

    Parameters
    ----------
    variance : array-like (N,)
        σ², not negative.
    mean, prediction : array-like (N,), optional
        μ and f, both or neither; equal if left out.
    name : str
        Name of the proxy.

    Raises
    ------
    InputError
        For a negative variance, or one of `mean` and `prediction` without the other.

    Examples
    --------
    >>> absolute_regression_error([1.0, 0.0], mean=[0.0, 2.0], prediction=[0.0, 5.0]).values.round(4)
    array([0.7979, 3.    ])
    """
    sigma2, bias = _error_moments(variance, mean, prediction)
    sigma = np.sqrt(sigma2)
    standardised = np.divide(bias, sigma, out=np.full(len(bias), np.inf), where=sigma > 0)
    folded = np.exp(-0.5 * np.minimum(standardised, 40.0) ** 2)
    values = sigma * np.sqrt(2.0 / np.pi) * folded + bias * scipy.special.erf(standardised / np.sqrt(2.0))
    return Proxy(values=values, second_moments=sigma2 + bias**2, bounds=None, name=name)


def squared_regression_error(
    variance: Any, *, mean: Any = None, prediction: Any = None, name: str = "squared_error"
) -> Proxy:
    """Return the proxy of z = (Y − f)²: b² + σ², second moment b⁴ + 6 b² σ² + 3 σ⁴, with bias b = μ − f.

    Parameters
    ----------
    variance : array-like (N,)
        σ², not negative.
    mean, prediction : array-like (N,), optional
        μ and f, both or neither; equal if left out.
    name : str
        Name of the proxy.

    Examples
    --------
    >>> proxy = squared_regression_error([4.0])
    >>> proxy.values, proxy.second_moments
    (array([4.]), array([48.]))
    """
    sigma2, bias = _error_moments(variance, mean, prediction)
    second = bias**4 + 6.0 * bias**2 * sigma2 + 3.0 * sigma2**2
    return Proxy(values=bias**2 + sigma2, second_moments=second, bounds=None, name=name)


def _error_moments(variance: Any, mean: Any, prediction: Any) -> tuple[FloatArray, FloatArray]:
    """Return σ² and |μ − f|, each (N,)."""
    sigma2 = finite_vector("variance", variance)
    if len(sigma2) and sigma2.min() < 0:
        first = int(np.flatnonzero(sigma2 < 0)[0])
        raise InputError(
            f"variance is negative at position {first}", given=f"{sigma2[first]:g}", allowed="0 or more"
        )
    if (mean is None) != (prediction is None):
        raise InputError(
            "mean and prediction must be given together", action="Leave both out if they are equal."
        )
    if mean is None:
        return sigma2, np.zeros(len(sigma2))
    mu, f = finite_vector("mean", mean), finite_vector("prediction", prediction)
    same_length(variance=sigma2, mean=mu, prediction=f)
    return sigma2, np.abs(mu - f)
