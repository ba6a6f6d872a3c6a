"""`Proxy`: a prediction of the outcome for every unit, optionally with the conditional variance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

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

# Relative and absolute tolerance of second moments below the squared mean (rounding in the caller's data).
_RELATIVE_TOLERANCE = 1e-6
_ABSOLUTE_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proxy(Record):
    """A prediction of the outcome z for each of N units.

    Parameters
    ----------
    values : float (N,)
        E[z | x] in the units of the outcome, or a score that only ranks units.
    second_moments : float (N,), optional
        E[z² | x]. Default: the variance is the largest that the bounds allow. This is exact for an outcome
        that is 0 or 1, since z² = z.
    scaled : bool
        Whether the values are on the scale of the outcome. Otherwise the proxy can define strata, and it
        enters estimators only with a fitted λ.
    bounds : (float, float), optional
        Bounds of the outcome; `None` for an outcome without bounds.
    name : str
        Column name of the proxy.

    Raises
    ------
    InputError
        If values are not finite or outside the bounds, and if second moments are below the squared mean.

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
            self._set(second_moments=finite_vector("second_moments", self.second_moments))
            self._check_second_moments(self.second_moments)
        if self.bounds is not None and self.scaled:
            self._check_bounds(*self.bounds)

    def _check_second_moments(self, moments: FloatArray) -> None:
        """Raise `InputError` if second moments (N,) do not match the values."""
        same_length(second_moments=moments, **{self.name: self.values})
        if not self.scaled:
            raise InputError(
                "second_moments= requires a proxy on the scale of the outcome",
                given="scaled=False",
                action="Remove second_moments=, or use scaled=True.",
            )
        is_too_small = moments < self.values**2 * (1.0 - _RELATIVE_TOLERANCE) - _ABSOLUTE_TOLERANCE
        if np.any(is_too_small):
            first = int(np.argmax(is_too_small))
            raise InputError(
                f"{is_too_small.sum()} second_moments are below the squared mean (first at position {first})",
                given=f"{moments[first]:g}",
                allowed=f"at least {self.values[first] ** 2:g}",
            )

    def _check_bounds(self, low: float, high: float) -> None:
        """Raise `InputError` if a value is outside the bounds."""
        is_outside = (self.values < low) | (self.values > high)
        if np.any(is_outside):
            first = int(np.argmax(is_outside))
            raise InputError(
                f"{is_outside.sum()} values of '{self.name}' are outside the bounds "
                f"(first at position {first})",
                given=f"{self.values[first]:g}",
                allowed=f"{low:g} to {high:g}",
                action="Give bounds=, or scaled=False for a score that only orders units.",
            )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def conditional_variances(self) -> FloatArray:
        """Var(z | x) (N,): from second moments, else the largest within the bounds, else zero."""
        if self.second_moments is not None:
            return np.asarray(np.maximum(self.second_moments - self.values**2, 0.0))
        if not self.scaled or self.bounds is None:
            return np.zeros(len(self.values))
        low, high = self.bounds
        return np.asarray((self.values - low) * (high - self.values))


# Largest difference of the sum of a row of probabilities from one; rounded probabilities are common.
SUM_TOLERANCE = 1e-3

# Negative probabilities up to this size are rounding errors.
_NEGATIVE_TOLERANCE = 1e-6

# Lower limit of probabilities before the logarithm, which would be infinite for 0.
MIN_PROBABILITY = 1e-7

# exp(−40²/2) is 0 in double precision; larger arguments would overflow the square.
_MAX_STANDARDISED_BIAS = 40.0

# Allowed shapes of scores, for errors.
_SHAPES = "(N,) or (N, K) with K ≥ 2"


def accuracy(
    probabilities: object = None,
    *,
    predicted: object = None,
    surrogate: object = None,
    name: str = "accuracy",
) -> Proxy:
    """Return the proxy of accuracy, z = 1(Y = Ŷ): the probability of the predicted class.

    Parameters
    ----------
    probabilities : array-like (N, K) or (N,), optional
        Probabilities of the evaluated model; (N,) are probabilities of class 1 of two. Optional if
        `predicted` and `surrogate` are given.
    predicted : array-like of int (N,), optional
        Predicted classes 0 … K − 1. Default: the most probable classes.
    surrogate : array-like (N, K) or (N,), optional
        Probabilities of another model, which then predict the outcome.
    name : str
        Name of the proxy.

    Raises
    ------
    InputError
        If rows are not probabilities, if shapes do not match, and if probabilities are missing.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.3, 0.7]]).values
    array([0.9, 0.7])
    >>> accuracy(predicted=[0, 0], surrogate=[[0.8, 0.2], [0.3, 0.7]]).values
    array([0.8, 0.3])
    """
    model_probabilities = None
    if probabilities is not None:
        model_probabilities = checked_probabilities("probabilities", probabilities)
    surrogate_probabilities = None
    if surrogate is not None:
        surrogate_probabilities = checked_probabilities("surrogate", surrogate)
    if surrogate_probabilities is None:
        outcome_probabilities = model_probabilities
    else:
        outcome_probabilities = surrogate_probabilities
    if outcome_probabilities is None or (model_probabilities is None and predicted is None):
        raise InputError(
            "accuracy requires probabilities, or predicted classes with a surrogate's probabilities",
            action="Give probabilities=, or predicted= and surrogate=.",
        )
    if model_probabilities is not None and surrogate_probabilities is not None:
        _check_same_shape(model_probabilities, surrogate_probabilities)
    if predicted is not None:
        classes = _checked_classes(predicted, *outcome_probabilities.shape)
    elif model_probabilities is not None:
        classes = np.argmax(model_probabilities, axis=1)
    else:
        classes = np.argmax(outcome_probabilities, axis=1)
    values = outcome_probabilities[np.arange(len(outcome_probabilities)), classes]
    return Proxy(values=np.clip(values, 0.0, 1.0), name=name)


def _checked_classes(predicted: object, n_units: int, n_classes: int) -> IntArray:
    """Return class numbers (N,), or raise `InputError` if they are not 0 … K − 1."""
    classes = np.asarray(predicted)
    if classes.shape != (n_units,):
        raise InputError(
            "predicted must have one class per unit", given=f"shape {classes.shape}", allowed=f"({n_units},)"
        )
    is_integer = classes.dtype.kind in "biu"
    if not is_integer or (n_units and (classes.min() < 0 or classes.max() >= n_classes)):
        raise InputError(
            "predicted contains values that are not class numbers",
            allowed=f"integers 0 to {n_classes - 1}",
            action="Number the classes in the order of the columns.",
        )
    return np.asarray(classes.astype(np.int64))


def squared_error(probabilities: object, *, surrogate: object = None, name: str = "squared_error") -> Proxy:
    """Return the proxy of the squared error z = (1 − f_Y)²: Σ_k p_k (1 − f_k)².

    Its second moment is Σ_k p_k (1 − f_k)⁴.

    Parameters
    ----------
    probabilities : array-like (N, K) or (N,)
        f.
    surrogate : array-like (N, K) or (N,), optional
        p. Default: f.
    name : str
        Name of the proxy.

    Examples
    --------
    >>> proxy = squared_error([[0.9, 0.1]])
    >>> proxy.values.round(4), proxy.second_moments.round(4)
    (array([0.09]), array([0.0657]))
    """
    mean, second_moments = _expected_loss(probabilities, surrogate, lambda f: (1.0 - f) ** 2)
    return Proxy(values=np.clip(mean, 0.0, 1.0), second_moments=second_moments, name=name)


def cross_entropy(
    probabilities: object,
    *,
    surrogate: object = None,
    floor: float = MIN_PROBABILITY,
    name: str = "cross_entropy",
) -> Proxy:
    """Return the proxy of the cross-entropy z = −log f_Y: −Σ_k p_k log f_k, second moment Σ_k p_k (log f_k)².

    Probabilities f below `floor` are replaced by it, since a single zero would make the mean infinite.
    Compute the labels in the same way, z = −log max(f_Y, floor). The outcome is then in [0, −log floor].

    Parameters
    ----------
    probabilities : array-like (N, K) or (N,)
        f.
    surrogate : array-like (N, K) or (N,), optional
        p. Default: f.
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
    mean, second_moments = _expected_loss(probabilities, surrogate, lambda f: -np.log(np.clip(f, floor, 1.0)))
    return Proxy(
        values=np.clip(mean, 0.0, highest), second_moments=second_moments, bounds=(0.0, highest), name=name
    )


def margin(scores: object, *, name: str = "margin") -> Proxy:
    """Return the margin of a classifier without probabilities (Kumar & Raj 2016).

    Such a proxy only ranks units.

    Parameters
    ----------
    scores : array-like (N,) or (N, K)
        Signed scores (N,) of two classes: |C(x)|. One score per class: the highest score minus the second.
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
    highest_two = np.partition(array, -2, axis=1)[:, -2:]
    return Proxy(values=highest_two[:, 1] - highest_two[:, 0], scaled=False, bounds=None, name=name)


def checked_probabilities(name: str, values: object) -> AnyArray:
    """Return probabilities as (N, K), with two columns for a vector.

    Raises
    ------
    InputError
        For a wrong shape, NaN, a negative entry, or a row that does not sum to one within `SUM_TOLERANCE`.
    """
    array = np.asarray(values)
    if array.dtype not in (np.float32, np.float64):
        array = numeric_array(name, values)
    if array.ndim == 1:
        array = np.stack([1.0 - array, array], axis=1)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(f"{name} have an unsupported shape", given=f"shape {array.shape}", allowed=_SHAPES)
    row_sums = array.sum(axis=1, dtype=np.float64)
    # NaN is invalid too, since comparisons with it are false.
    is_valid = array.min(axis=1) >= -_NEGATIVE_TOLERANCE
    is_valid &= np.abs(row_sums - 1.0) <= SUM_TOLERANCE
    if not is_valid.all():
        row = int(np.argmin(is_valid))
        raise InputError(
            f"{name}: row {row} does not sum to one",
            given=f"{array[row].sum():g}, least {array[row].min():g}",
            allowed=f"{1 - SUM_TOLERANCE:g} to {1 + SUM_TOLERANCE:g}, and no negative entry",
            action="Give probabilities (after a softmax), one column per class.",
        )
    return array


def _expected_loss(
    probabilities: object, surrogate: object, loss: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return Σ_k p_k loss(f_k) and Σ_k p_k loss(f_k)² (N,)."""
    f = checked_probabilities("probabilities", probabilities).astype(np.float64, copy=False)
    if surrogate is None:
        p = f
    else:
        p = checked_probabilities("surrogate", surrogate)
    _check_same_shape(f, p)
    weights = np.clip(p.astype(np.float64, copy=False), 0.0, 1.0)
    weights /= weights.sum(axis=1, keepdims=True)
    losses = loss(np.clip(f, 0.0, 1.0))
    return np.einsum("nk,nk->n", weights, losses), np.einsum("nk,nk->n", weights, losses**2)


def _check_same_shape(f: AnyArray, p: AnyArray) -> None:
    """Raise `InputError` if the probabilities of model and surrogate have different shapes."""
    if f.shape != p.shape:
        raise InputError(
            "probabilities and surrogate must have the same shape",
            given=f"{f.shape} and {p.shape}",
            allowed="two arrays (N, K), or (N,) for two classes",
        )


def absolute_regression_error(
    variance: object, *, mean: object = None, prediction: object = None, name: str = "absolute_error"
) -> Proxy:
    """Return the proxy of z = |Y − f|: the mean of a folded normal, second moment σ² + (μ − f)².

    Parameters
    ----------
    variance : array-like (N,)
        σ², not negative.
    mean, prediction : array-like (N,), optional
        μ and f, both or neither. Default: μ = f.
    name : str
        Name of the proxy.

    Raises
    ------
    InputError
        If a variance is negative, and if only one of `mean` and `prediction` is given.

    Examples
    --------
    >>> absolute_regression_error([1.0, 0.0], mean=[0.0, 2.0], prediction=[0.0, 5.0]).values.round(4)
    array([0.7979, 3.    ])
    """
    sigma2, bias = _error_moments(variance, mean, prediction)
    sigma = np.sqrt(sigma2)
    # Without variance the error is certain: |Y − f| = |μ − f|.
    standardised = np.divide(bias, sigma, out=np.full(len(bias), np.inf), where=sigma > 0)
    folded = np.exp(-0.5 * np.minimum(standardised, _MAX_STANDARDISED_BIAS) ** 2)
    values = sigma * np.sqrt(2.0 / np.pi) * folded + bias * scipy.special.erf(standardised / np.sqrt(2.0))
    return Proxy(values=values, second_moments=sigma2 + bias**2, bounds=None, name=name)


def squared_regression_error(
    variance: object, *, mean: object = None, prediction: object = None, name: str = "squared_error"
) -> Proxy:
    """Return the proxy of z = (Y − f)²: b² + σ², second moment b⁴ + 6 b² σ² + 3 σ⁴, with bias b = μ − f.

    Parameters
    ----------
    variance : array-like (N,)
        σ², not negative.
    mean, prediction : array-like (N,), optional
        μ and f, both or neither. Default: μ = f.
    name : str
        Name of the proxy.

    Examples
    --------
    >>> proxy = squared_regression_error([4.0])
    >>> proxy.values, proxy.second_moments
    (array([4.]), array([48.]))
    """
    sigma2, bias = _error_moments(variance, mean, prediction)
    # The fourth moment of a normal variable about another point than its mean.
    second_moments = bias**4 + 6.0 * bias**2 * sigma2 + 3.0 * sigma2**2
    return Proxy(values=bias**2 + sigma2, second_moments=second_moments, bounds=None, name=name)


def _error_moments(variance: object, mean: object, prediction: object) -> tuple[FloatArray, FloatArray]:
    """Return σ² and |μ − f|, each (N,)."""
    sigma2 = finite_vector("variance", variance)
    if np.any(sigma2 < 0):
        first = int(np.argmax(sigma2 < 0))
        raise InputError(
            f"variance is negative at position {first}", given=f"{sigma2[first]:g}", allowed="0 or more"
        )
    if (mean is None) != (prediction is None):
        raise InputError(
            "mean and prediction must be given together", action="Remove both if they are equal."
        )
    if mean is None:
        return sigma2, np.zeros(len(sigma2))
    mu = finite_vector("mean", mean)
    f = finite_vector("prediction", prediction)
    same_length(variance=sigma2, mean=mu, prediction=f)
    return sigma2, np.abs(mu - f)
