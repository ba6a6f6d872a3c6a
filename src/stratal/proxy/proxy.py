"""`Proxy`: a prediction of the outcome for every unit, with the outcome's spread around it where known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from stratal.arrays import (
    AnyArray,
    FloatArray,
    IntArray,
    Record,
    finite_vector,
    numeric_array,
    refuse_nonfinite,
    same_length,
)
from stratal.errors import InputError

_SLACK = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proxy(Record):
    """A prediction of the outcome z for each of N units.

    Parameters
    ----------
    values : float (N,)
        E[z | x], in the outcome's units, or a score that only orders.
    second_moments : float (N,), optional
        E[z² | x]. Without it the outcome is taken to be as spread as its bounds allow; for an outcome that
        is 0 or 1 that is exact, as z² = z.
    scaled : bool
        Whether the values are on the outcome's scale. If not, the proxy may stratify, and may enter an
        estimator only through a fitted λ.
    bounds : (float, float), optional
        Bounds of the outcome; `None` where it has none.
    name : str
        What the proxy is called as a column.

    Raises
    ------
    InputError
        For values that are not finite or leave the bounds, and for second moments below the squared mean.

    Examples
    --------
    >>> Proxy(values=np.array([0.9, 0.4])).conditional_variances.round(2)
    array([0.09, 0.24])
    """

    values: FloatArray
    second_moments: FloatArray | None = None
    scaled: bool = True
    bounds: tuple[float, float] | None = (0.0, 1.0)
    name: str = "proxy"

    def __post_init__(self) -> None:
        self._set(values=finite_vector(self.name, self.values))
        if self.second_moments is not None:
            moments = finite_vector("second_moments", self.second_moments)
            self._set(second_moments=moments)
            same_length(second_moments=moments, **{self.name: self.values})
            if not self.scaled:
                raise InputError("a proxy that only orders has no second moments", action="Leave them out.")
            short = moments < self.values**2 * (1.0 - _SLACK) - 1e-12
            if np.any(short):
                first = int(np.argmax(short))
                what = f"{short.sum()} second_moments are below the squared mean (first at position {first})"
                allowed = f"at least {self.values[first] ** 2:g}"
                raise InputError(what, given=f"{moments[first]:g}", allowed=allowed)
        if self.bounds is not None and self.scaled:
            low, high = self.bounds
            outside = (self.values < low) | (self.values > high)
            if np.any(outside):
                first = int(np.argmax(outside))
                what = f"{outside.sum()} values of '{self.name}' leave the bounds (first at position {first})"
                given = f"{self.values[first]:g}"
                allowed = f"{low:g} to {high:g}"
                action = "Give bounds=, or scaled=False for a score that only orders."
                raise InputError(what, given=given, allowed=allowed, action=action)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def conditional_variances(self) -> FloatArray:
        """Var(z | x) of each unit (N,): known, or the largest that the bounds allow; zero without either."""
        if self.second_moments is not None:
            return np.asarray(np.maximum(self.second_moments - self.values**2, 0.0))
        if not self.scaled or self.bounds is None:
            return np.zeros(len(self.values))
        low, high = self.bounds
        return np.asarray((self.values - low) * (high - self.values))


# Rows of probabilities may miss a sum of one by this much.
SUM_TOLERANCE = 1e-3


# Probabilities are raised to at least this before their logarithm is taken.
FLOOR = 1e-7


_SHAPES = "(N,) or (N, K) with K ≥ 2"


def accuracy(
    probabilities: Any = None, *, predicted: Any = None, surrogate: Any = None, name: str = "accuracy"
) -> Proxy:
    """Return the proxy of accuracy, z = 1(Y = Ŷ): the probability of the predicted class.

    Parameters
    ----------
    probabilities : array-like (N, K) or (N,), optional
        The model's own; (N,) are probabilities of class 1 of two. May be left out if `predicted` and
        `surrogate` are given.
    predicted : array-like of int (N,), optional
        Predicted classes 0 … K − 1; the most probable ones if left out.
    surrogate : array-like (N, K) or (N,), optional
        Probabilities of another model, by which the outcome is then predicted.
    name : str
        Name of the proxy.

    Raises
    ------
    InputError
        For rows that are not probabilities, arrays that do not fit, or nothing to predict from.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.3, 0.7]]).values
    array([0.9, 0.7])
    >>> accuracy(predicted=[0, 0], surrogate=[[0.8, 0.2], [0.3, 0.7]]).values
    array([0.8, 0.3])
    """
    if probabilities is None:
        own = None
    else:
        own = checked_probabilities("probabilities", probabilities)
    if surrogate is None:
        other = None
    else:
        other = checked_probabilities("surrogate", surrogate)
    judge = own if other is None else other
    if judge is None or (own is None and predicted is None):
        what = "accuracy needs probabilities, or predicted classes with a surrogate's probabilities"
        raise InputError(what, action="Give probabilities=, or predicted= and surrogate=.")
    if own is not None and other is not None:
        _same_shape(own, other)
    if predicted is None:
        classes: IntArray = np.argmax(judge if own is None else own, axis=1)
    else:
        classes, (n, k) = np.asarray(predicted), judge.shape
        if classes.shape != (n,):
            given = f"shape {classes.shape}"
            raise InputError("predicted must have one class per unit", given=given, allowed=f"({n},)")
        if classes.dtype.kind not in "biu" or (n and (classes.min() < 0 or classes.max() >= k)):
            action = "Number the classes in the order of the columns."
            what = "predicted holds something else than class numbers"
            allowed = f"whole numbers 0 to {k - 1}"
            raise InputError(what, allowed=allowed, action=action)
        classes = classes.astype(np.int64)
    return Proxy(values=np.clip(judge[np.arange(len(judge)), classes], 0.0, 1.0), name=name)


def squared_error(probabilities: Any, *, surrogate: Any = None, name: str = "squared_error") -> Proxy:
    """Return the proxy of the squared error z = (1 − f_Y)²: Σ_k p_k (1 − f_k)².

    Its second moment is Σ_k p_k (1 − f_k)⁴.

    Parameters
    ----------
    probabilities : array-like (N, K) or (N,)
        f.
    surrogate : array-like (N, K) or (N,), optional
        p; f itself if left out.
    name : str
        Name of the proxy.

    Examples
    --------
    >>> proxy = squared_error([[0.9, 0.1]])
    >>> proxy.values.round(4), proxy.second_moments.round(4)
    (array([0.09]), array([0.0657]))
    """
    mean, second = _expected_loss(probabilities, surrogate, lambda f: (1.0 - f) ** 2)
    return Proxy(values=np.clip(mean, 0.0, 1.0), second_moments=second, name=name)


def cross_entropy(
    probabilities: Any, *, surrogate: Any = None, floor: float = FLOOR, name: str = "cross_entropy"
) -> Proxy:
    """Return the proxy of the cross-entropy z = −log f_Y: −Σ_k p_k log f_k, second moment Σ_k p_k (log f_k)².

    Probabilities f below `floor` are raised to it, since one zero would make the mean infinite; score the
    labels in the same way, z = −log max(f_Y, floor). The outcome then lies in [0, −log floor].

    Parameters
    ----------
    probabilities : array-like (N, K) or (N,)
        f.
    surrogate : array-like (N, K) or (N,), optional
        p; f itself if left out.
    floor : float
        Between 0 and 1.
    name : str
        Name of the proxy.

    Examples
    --------
    >>> cross_entropy([[0.5, 0.5]]).values.round(4)
    array([0.6931])
    """
    if not 0.0 < floor < 1.0:
        raise InputError("floor is out of range", given=floor, allowed="between 0 and 1")
    highest = -math.log(floor)
    mean, second = _expected_loss(probabilities, surrogate, lambda f: -np.log(np.clip(f, floor, 1.0)))
    return Proxy(values=np.clip(mean, 0.0, highest), second_moments=second, bounds=(0.0, highest), name=name)


def margin(scores: Any, *, name: str = "margin") -> Proxy:
    """Return how far a classifier without probabilities is from changing its mind (Kumar & Raj 2016).

    Such a proxy only orders units.

    Parameters
    ----------
    scores : array-like (N,) or (N, K)
        Signed scores of two classes: |C(x)|. One score per class: the highest less the next.
    name : str
        Name of the proxy.

    Examples
    --------
    >>> margin([-2.0, 0.5]).values, margin([[3.0, 1.0, 2.5]]).values
    (array([2. , 0.5]), array([0.5]))
    """
    array = numeric_array("scores", scores)
    refuse_nonfinite("scores", array)
    if array.ndim == 1:
        return Proxy(values=np.abs(array), scaled=False, bounds=None, name=name)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError("scores do not match the units", given=f"shape {array.shape}", allowed=_SHAPES)
    top = np.partition(array, -2, axis=1)[:, -2:]
    return Proxy(values=top[:, 1] - top[:, 0], scaled=False, bounds=None, name=name)


def checked_probabilities(name: str, values: Any) -> AnyArray:
    """Return probabilities as (N, K), two columns for a vector, refusing rows that are none by position.

    Raises
    ------
    InputError
        For a wrong shape, NaN, a negative entry, or a row that does not sum to one within `SUM_TOLERANCE`.

    Examples
    --------
    >>> checked_probabilities("probabilities", [0.25])
    array([[0.75, 0.25]])
    >>> checked_probabilities("probabilities", [[0.9, 0.2]])
    Traceback (most recent call last):
    stratal.errors.InputError: probabilities: row 0 does not sum to one (given: 1.1, least 0.2; allowed: ...
    """
    array = np.asarray(values)
    if array.dtype not in (np.float32, np.float64):
        array = numeric_array(name, values)
    if array.ndim == 1:
        array = np.stack([1.0 - array, array], axis=1)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(f"{name} do not fit", given=f"shape {array.shape}", allowed=_SHAPES)
    good = (array.min(axis=1) >= -1e-6) & (np.abs(array.sum(axis=1, dtype=np.float64) - 1.0) <= SUM_TOLERANCE)
    if not good.all():  # NaN compares false
        row = int(np.argmin(good))
        raise InputError(
            f"{name}: row {row} does not sum to one",
            given=f"{array[row].sum():g}, least {array[row].min():g}",
            allowed=f"{1 - SUM_TOLERANCE:g} to {1 + SUM_TOLERANCE:g}, and no negative entry",
            action="Give probabilities (after a softmax), one column per class.",
        )
    return array


def _expected_loss(
    probabilities: Any, surrogate: Any, loss: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return Σ_k p_k loss(f_k) and Σ_k p_k loss(f_k)² (N,)."""
    f = checked_probabilities("probabilities", probabilities).astype(np.float64, copy=False)
    if surrogate is None:
        p = f
    else:
        p = checked_probabilities("surrogate", surrogate)
    _same_shape(f, p)
    weight = np.clip(p.astype(np.float64, copy=False), 0.0, 1.0)
    weight /= weight.sum(axis=1, keepdims=True)
    losses = loss(np.clip(f, 0.0, 1.0))
    return np.einsum("nk,nk->n", weight, losses), np.einsum("nk,nk->n", weight, losses**2)


def _same_shape(f: AnyArray, p: AnyArray) -> None:
    if f.shape != p.shape:
        what = "probabilities and the surrogate's must have one row per unit and one column per class"
        allowed = "two arrays (N, K), or (N,) for two classes"
        raise InputError(what, given=f"{f.shape} and {p.shape}", allowed=allowed)


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
    if np.any(sigma2 < 0):
        first = int(np.argmax(sigma2 < 0))
        what = f"variance is negative at position {first}"
        given = f"{sigma2[first]:g}"
        raise InputError(what, given=given, allowed="0 or more")
    if (mean is None) != (prediction is None):
        what = "mean and prediction must be given together"
        raise InputError(what, action="Leave both out if they are equal.")
    if mean is None:
        return sigma2, np.zeros(len(sigma2))
    mu = finite_vector("mean", mean)
    f = finite_vector("prediction", prediction)
    same_length(variance=sigma2, mean=mu, prediction=f)
    return sigma2, np.abs(mu - f)
