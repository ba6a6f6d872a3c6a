"""Calibration: from a score to E[z | score], fitted on labels.

Fit on labels that the estimate does not use, or cross-fit (`stratal.proxy.cross_fit`): a calibration that
has seen the labels of the units to which it is applied makes intervals too short.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy

from stratal.arrays import (
    FloatArray,
    Record,
    finite_vector,
    numeric_array,
    plain,
    refuse_nonfinite,
    same_length,
)
from stratal.errors import InputError
from stratal.proxy.proxy import Proxy

METHODS = ("isotonic", "logistic")

SMOOTHING = 1.0
"""Labels' worth of the overall mean that is mixed into every level of an isotonic fit."""

PENALTY = 1.0
"""Precision of the normal prior on the logistic coefficients, around "the score is right"."""

_EDGE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit(Record):
    """A function from scores to mean outcomes that was fitted on labels.

    Parameters
    ----------
    bounds : (float, float)
        Bounds of the outcome.
    residual_variance : float, optional
        Mean squared residual on the labels, in squared units of the outcome; `None` where every outcome was
        at a bound, so that the mean alone gives the variance.
    """

    proxy_name: ClassVar[str] = "calibrated"
    bounds: tuple[float, float] = (0.0, 1.0)
    residual_variance: float | None = None

    def apply(self, scores: Any) -> FloatArray:
        """Return the mean outcome of each score (N,)."""
        raise NotImplementedError

    def proxy(self, scores: Any, *, name: str | None = None) -> Proxy:
        """Return the proxy of N scores on the outcome's scale, called after the kind of fit unless named."""
        return proxy_around(self.apply(scores), self.residual_variance, self.bounds, name or self.proxy_name)


Fitted = TypeVar("Fitted", bound=Fit)


def with_residuals(fit: Fitted, x: FloatArray, y: FloatArray, w: FloatArray) -> Fitted:
    """Return the fit with its weighted mean squared residual on outcomes (n,), where it tells anything."""
    if np.all((y == fit.bounds[0]) | (y == fit.bounds[1])):
        return fit
    return replace(fit, residual_variance=float(np.average((y - fit.apply(x)) ** 2, weights=w)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration(Fit):
    """A fitted curve from scores to mean outcomes; increasing if isotonic.

    Parameters
    ----------
    method : {"isotonic", "logistic"}
    bounds, residual_variance : optional
        As in `Fit`.
    scores, levels : float (m,)
        Isotonic: mean outcome at increasing scores, linear in between and flat beyond.
    intercept, slope : float
        Logistic: the outcome's share of its bounds is expit(intercept + slope · t), t the logit of the
        score, or the standardised score.
    centre, scale : float
        By which scores are standardised; scale 0 stands for the logit.

    Examples
    --------
    >>> curve = calibrate([0.1, 0.2, 0.6, 0.9], [0, 0, 1, 1], method="isotonic")
    >>> curve.apply([0.0, 0.95]).round(3)
    array([0.167, 0.833])
    """

    method: str
    scores: FloatArray = field(default_factory=lambda: np.empty(0))
    levels: FloatArray = field(default_factory=lambda: np.empty(0))
    intercept: float = 0.0
    slope: float = 1.0
    centre: float = 0.0
    scale: float = 0.0

    def apply(self, scores: Any) -> FloatArray:
        """Return the calibrated mean outcome of each score (N,)."""
        values = _score_values(scores)
        if self.method == "isotonic":
            return np.asarray(np.interp(values, self.scores, self.levels))
        low, high = self.bounds
        curve = scipy.special.expit(
            self.intercept + self.slope * _standardised(values, self.centre, self.scale)
        )
        return np.asarray(low + (high - low) * curve)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return {entry.name: plain(getattr(self, entry.name)) for entry in fields(self)}

    @staticmethod
    def from_dict(description: dict[str, Any]) -> Calibration:
        """Return the calibration that `to_dict` described."""
        return Calibration(**(description | {"bounds": tuple(description["bounds"])}))


def calibrate(
    scores: Any,
    outcomes: Any,
    *,
    method: str = "isotonic",
    weights: Any = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Calibration:
    """Fit the mean outcome as a function of a score.

    Parameters
    ----------
    scores : array-like (n,) or Proxy
        Scores of labelled units, on any scale.
    outcomes : array-like (n,)
        Their outcomes, within `bounds`.
    method : {"isotonic", "logistic"}
        Isotonic: increasing, by pooling adjacent violators, each level mixed with `SMOOTHING` labels of the
        overall mean, so that none is certain. Logistic (Platt): two coefficients with a normal prior, on
        the logit of scores within (0, 1), else on the standardised score; right for few labels.
    weights : array-like (n,), optional
        Design weights, if the labelled units were not drawn with equal probabilities.
    bounds : (float, float)
        Bounds of the outcome.

    Raises
    ------
    InputError
        For fewer than two labels, an outcome outside the bounds, or weights that are not positive.

    Examples
    --------
    >>> overconfident = np.array([0.5, 0.9, 0.99, 0.999] * 50)
    >>> outcomes = np.arange(200) % 10 < 7  # right 70 % of the time
    >>> calibrate(overconfident, outcomes, method="logistic").apply([0.999]).round(1)
    array([0.6])
    """
    if method not in METHODS:
        raise InputError("no such calibration", given=repr(method), allowed=", ".join(METHODS))
    x, y, w = checked_labels(_score_values(scores), outcomes, weights, bounds)
    fitted = _isotonic(x, y, w) if method == "isotonic" else _logistic(x, y, w, bounds)
    return with_residuals(Calibration(method=method, bounds=bounds, **fitted), x, y, w)


def proxy_around(
    values: FloatArray, residual_variance: float | None, bounds: tuple[float, float], name: str
) -> Proxy:
    """Return the proxy with a common residual variance around its values (N,), at most what the bounds allow.

    Examples
    --------
    >>> proxy_around(np.array([0.5, 0.9]), 0.1, (0.0, 1.0), "calibrated").second_moments
    array([0.35, 0.9 ])
    """
    low, high = bounds
    second = None
    if residual_variance is not None:
        widest = np.maximum((values - low) * (high - values), 0.0)
        second = values**2 + np.minimum(residual_variance, widest)
    return Proxy(values=values, second_moments=second, bounds=bounds, name=name)


def checked_labels(
    x: FloatArray, outcomes: Any, weights: Any, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return scores (n, …), outcomes (n,) and weights (n,) with mean one, or say what is wrong with them.

    Examples
    --------
    >>> checked_labels(np.array([0.1, 0.2]), [0, 1], None, (0.0, 1.0))[2]
    array([1., 1.])
    """
    y = finite_vector("outcomes", outcomes)
    same_length(scores=x, outcomes=y)
    if len(y) < 2:
        raise InputError("too few labels to fit on", given=len(y), allowed="2 or more")
    low, high = bounds
    if not low < high or y.min() < low or y.max() > high:
        raise InputError(
            "outcomes leave their bounds", given=f"{y.min():g} to {y.max():g}", allowed=f"{low:g} to {high:g}"
        )
    if weights is None:
        return x, y, np.ones(len(y))
    w = finite_vector("weights", weights)
    same_length(weights=w, outcomes=y)
    if w.min() <= 0:
        raise InputError(
            "weights must be positive",
            given=f"{w.min():g}",
            allowed="above 0",
            action="Leave out units with weight 0.",
        )
    return x, y, w / w.mean()


def _score_values(scores: Any) -> FloatArray:
    return finite_vector("scores", scores.values if isinstance(scores, Proxy) else scores)


def _standardised(values: FloatArray, centre: float, scale: float) -> FloatArray:
    if scale == 0.0:
        return np.asarray(scipy.special.logit(np.clip(values, _EDGE, 1.0 - _EDGE)))
    return (values - centre) / scale


def _isotonic(x: FloatArray, y: FloatArray, w: FloatArray) -> dict[str, Any]:
    """Return increasing scores and levels of a smoothed isotonic fit, equal scores taken together."""
    from scipy.optimize import isotonic_regression

    scores, inverse = np.unique(x, return_inverse=True)
    weight = np.bincount(inverse, w)
    fit = isotonic_regression(np.bincount(inverse, w * y) / weight, weights=weight)
    held = np.repeat(np.add.reduceat(weight, fit.blocks[:-1]), np.diff(fit.blocks))
    mixed = (fit.x * held + SMOOTHING * np.average(y, weights=w)) / (held + SMOOTHING)
    levels = isotonic_regression(mixed, weights=weight).x  # smoothing may have upset the order
    inner = np.zeros(len(scores), bool)
    inner[1:-1] = (levels[1:-1] == levels[:-2]) & (levels[1:-1] == levels[2:])
    return {"scores": scores[~inner], "levels": levels[~inner]}


def _logistic(x: FloatArray, y: FloatArray, w: FloatArray, bounds: tuple[float, float]) -> dict[str, Any]:
    """Return a penalised logistic regression on the logit or the standardised score, by Newton's method."""
    as_logit = bool(x.min() >= 0.0 and x.max() <= 1.0)
    centre, scale = (0.0, 0.0) if as_logit else (float(x.mean()), float(x.std()) or 1.0)
    t = _standardised(x, centre, scale)
    intercept, slope = _penalised(t, (y - bounds[0]) / (bounds[1] - bounds[0]), w, float(as_logit))
    return {"intercept": intercept, "slope": slope, "centre": centre, "scale": scale}


def _penalised(t: FloatArray, share: FloatArray, w: FloatArray, prior_slope: float) -> tuple[float, float]:
    """Return intercept and slope of a penalised logistic regression, by Newton's method with halving."""
    design = np.stack([np.ones(len(t)), t], axis=1)
    prior = np.array([0.0, prior_slope])

    def objective(beta: FloatArray) -> float:
        eta = design @ beta
        likelihood = w @ (share * eta - np.logaddexp(0.0, eta))
        return float(likelihood - 0.5 * PENALTY * np.sum((beta - prior) ** 2))

    beta, value = prior, objective(prior)
    for _ in range(100):
        mean = scipy.special.expit(design @ beta)
        gradient = design.T @ (w * (share - mean)) - PENALTY * (beta - prior)
        curvature = design.T @ (design * (w * mean * (1.0 - mean))[:, None]) + PENALTY * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        while objective(beta + step) < value and np.abs(step).max() > 1e-14:
            step = 0.5 * step
        beta, previous, value = beta + step, value, objective(beta + step)
        if value - previous <= 1e-13 * (1.0 + abs(value)):
            break
    return float(beta[0]), float(beta[1])


COMBINATIONS = ("linear", "isotonic", "logistic")

RIDGE = 1e-3
"""Penalty on the coefficients of standardised scores: keeps judges that agree from cancelling each other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Combination(Fit):
    """A fitted function of k scores.

    Parameters
    ----------
    intercept : float
    coefficients : float (k,)
        Of the linear index.
    bounds, residual_variance : optional
        As in `Fit`; the index is clipped to the bounds if there is no curve.
    curve : Calibration, optional
        From the index to the outcome.

    Examples
    --------
    >>> judges = np.array([[0.9, 0.2], [0.8, 0.9], [0.1, 0.3], [0.2, 0.8]])
    >>> combine(judges, [1, 1, 0, 0]).apply(judges).round(1)
    array([1. , 0.9, 0. , 0.1])
    """

    proxy_name: ClassVar[str] = "combined"
    intercept: float
    coefficients: FloatArray
    curve: Calibration | None = None

    def apply(self, scores: Any) -> FloatArray:
        """Return the combined mean outcome (N,) of scores (N, k)."""
        matrix = score_matrix(scores)
        if matrix.shape[1] != len(self.coefficients):
            raise InputError(
                "as many scores are needed as were fitted",
                given=matrix.shape[1],
                allowed=str(len(self.coefficients)),
            )
        index = self.intercept + matrix @ self.coefficients
        return np.clip(index, *self.bounds) if self.curve is None else self.curve.apply(index)


def combine(
    scores: Any,
    outcomes: Any,
    *,
    method: str = "linear",
    weights: Any = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Combination:
    """Fit one proxy to several judges' scores.

    Fit on labels that the estimate does not use, or cross-fit (`stratal.proxy.cross_fit`).

    Parameters
    ----------
    scores : array-like (n, k), or mapping of name to array-like (n,) or `Proxy`
        Scores of labelled units.
    outcomes : array-like (n,)
        Their outcomes.
    method : {"linear", "isotonic", "logistic"}
        Least squares clipped to the bounds, alone or followed by a calibration of the index.
    weights : array-like (n,), optional
        Design weights.
    bounds : (float, float)
        Bounds of the outcome.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(400)
    >>> judges = truth[:, None] + rng.normal(0, [0.2, 0.4], (400, 2))
    >>> combine(judges, truth).coefficients.round(1)
    array([0.6, 0.2])
    """
    if method not in COMBINATIONS:
        raise InputError("no such combination", given=repr(method), allowed=", ".join(COMBINATIONS))
    matrix, y, w = checked_labels(score_matrix(scores), outcomes, weights, bounds)
    intercept, coefficients = _ridge(matrix, y, w)
    curve = None
    if method != "linear":
        curve = calibrate(intercept + matrix @ coefficients, y, method=method, weights=w, bounds=bounds)
    combined = Combination(intercept=intercept, coefficients=coefficients, bounds=bounds, curve=curve)
    return with_residuals(combined, matrix, y, w)


def score_matrix(scores: Any) -> FloatArray:
    """Return scores as (N, k), from a matrix or from a mapping of name to vector or `Proxy`.

    Examples
    --------
    >>> score_matrix({"a": [0.1, 0.2], "b": [0.3, 0.4]}).shape
    (2, 2)
    """
    if hasattr(scores, "values") and callable(scores.values):
        columns = [getattr(entry, "values", entry) for entry in scores.values()]
        scores = np.stack([np.asarray(column) for column in columns], axis=1)
    matrix = numeric_array("scores", scores)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError("scores do not fit", given=f"shape {matrix.shape}", allowed="(N, k)")
    refuse_nonfinite("scores", matrix)
    return matrix


def _ridge(matrix: FloatArray, y: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
    """Return intercept and coefficients of weighted least squares with a small ridge."""
    share = w / w.sum()
    centre = share @ matrix
    centred = matrix - centre
    scale = np.sqrt(share @ centred**2)
    constant = scale <= 1e-12 * np.maximum(np.abs(centre), 1e-300)
    standardised = np.where(constant, 0.0, centred / np.where(constant, 1.0, scale))
    mean = float(share @ y)
    gram = standardised.T @ (standardised * share[:, None]) + RIDGE * np.eye(matrix.shape[1])
    solution = np.linalg.solve(gram, standardised.T @ (share * (y - mean)))
    coefficients = np.where(constant, 0.0, solution / np.where(constant, 1.0, scale))
    return mean - float(centre @ coefficients), np.asarray(coefficients)
