"""Calibrations and learners: functions from scores to E[z | scores], fitted on labels.

Fit on labels that the estimate does not use, or cross-fit (`stratal.proxy.cross_fit`). If a fit is applied to
the units on whose labels it was fitted, intervals are too short.

In the functions, x are scores (n,) or (n, k), y outcomes (n,), and w weights (n,) of labelled units.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy

from stratal.arrays import (
    NO_DIVISOR,
    AnyArray,
    FloatArray,
    IntArray,
    Record,
    are_binary,
    finite_vector,
    numeric_array,
    refuse_nonfinite,
    same_length,
    unit_scale,
)
from stratal.errors import InputError, optional_import
from stratal.protocols import WithValues, values_of
from stratal.proxy.history import HISTORY, FactorPosterior
from stratal.proxy.proxy import Proxy

CALIBRATION_METHODS = ("isotonic", "logistic")

# Number of labels with the overall mean that are added to every level of an isotonic fit.
SMOOTHING = 1.0

# Precision of the normal prior of the logistic coefficients. Its mean is the uncalibrated score.
PENALTY = 1.0

# Scores are at least this far from 0 and 1, so that their logits are finite.
_LOGIT_MARGIN = 1e-6

# Newton's method converges in fewer than 20 steps; the limit prevents an endless loop.
_MAX_NEWTON_STEPS = 100

# Relative increase of the objective, and size of a halved step, at which Newton's method stops: rounding
# errors.
_OBJECTIVE_TOLERANCE = 1e-13
_MIN_STEP = 1e-14

# A score is constant if its standard deviation is below this share of its mean (rounding errors).
_CONSTANT_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit(Record):
    """A fitted function from scores to mean outcomes.

    Parameters
    ----------
    bounds : (float, float)
        Bounds of the outcome.
    residual_variance : float, optional
        Mean squared residual of the labels, in squared units of the outcome; `None` if every outcome was at a
        bound, because the mean then determines the variance.
    """

    proxy_name: ClassVar[str] = "calibrated"
    bounds: tuple[float, float] = (0.0, 1.0)
    residual_variance: float | None = None

    def apply(self, scores: object) -> FloatArray:
        """Return the mean outcome of each score (N,)."""
        raise NotImplementedError

    def proxy(self, scores: object, *, name: str | None = None) -> Proxy:
        """Return the proxy of N scores on the scale of the outcome; the default name is `proxy_name`."""
        return proxy_around(self.apply(scores), self.residual_variance, self.bounds, name or self.proxy_name)


FitType = TypeVar("FitType", bound=Fit)


def with_residuals(fit: FitType, x: FloatArray, y: FloatArray, w: FloatArray) -> FitType:
    """Return the fit with its weighted mean squared residual."""
    # If all outcomes are at the bounds, the mean determines the variance.
    if np.all((y == fit.bounds[0]) | (y == fit.bounds[1])):
        return fit
    return replace(fit, residual_variance=float(np.average((y - fit.apply(x)) ** 2, weights=w)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedCurve(Fit):
    """A fitted curve from one score to mean outcomes; nondecreasing if isotonic.

    Parameters
    ----------
    method : {"isotonic", "logistic"}
    bounds, residual_variance : optional
        As in `Fit`.
    scores, levels : float (m,)
        Isotonic: mean outcomes at increasing scores, linear between them and constant outside.
    intercept, slope : float
        Logistic: the mean outcome on the 0–1 scale is expit(intercept + slope · t), where t is the logit of
        the score or the standardised score.
    centre, scale : float
        Mean and standard deviation for the standardised score. Scale 0 means the logit.

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

    def apply(self, scores: object) -> FloatArray:
        """Return the calibrated mean outcome of each score (N,)."""
        values = _score_values(scores)
        if self.method == "isotonic":
            return np.asarray(np.interp(values, self.scores, self.levels))
        low, high = self.bounds
        log_odds = self.intercept + self.slope * _transform_scores(values, self.centre, self.scale)
        return np.asarray(low + (high - low) * scipy.special.expit(log_odds))


def calibrate(
    scores: object,
    outcomes: object,
    *,
    method: str = "isotonic",
    weights: object = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> FittedCurve:
    """Fit the mean outcome as a function of a score.

    Parameters
    ----------
    scores : array-like (n,) or Proxy
        Scores of labelled units, on any scale.
    outcomes : array-like (n,)
        Their outcomes, within `bounds`.
    method : {"isotonic", "logistic"}
        Isotonic: pool adjacent violators, with `SMOOTHING` labels of the overall mean added to each level so
        that no level is certain. Logistic (Platt): two coefficients with a normal prior, on the logit of
        scores within (0, 1), otherwise on the standardised score. Use logistic for few labels.
    weights : array-like (n,), optional
        Design weights, if the labelled units had different inclusion probabilities.
    bounds : (float, float)
        Bounds of the outcome.

    Raises
    ------
    InputError
        For fewer than two labels, outcomes outside the bounds, and weights that are not positive.

    Examples
    --------
    >>> overconfident = np.array([0.5, 0.9, 0.99, 0.999] * 50)
    >>> outcomes = np.arange(200) % 10 < 7  # right 70% of the time
    >>> calibrate(overconfident, outcomes, method="logistic").apply([0.999]).round(1)
    array([0.6])
    """
    if method not in CALIBRATION_METHODS:
        raise InputError(
            "unknown calibration method", given=repr(method), allowed=", ".join(CALIBRATION_METHODS)
        )
    x, y, w = checked_labels(_score_values(scores), outcomes, weights, bounds)
    if method == "isotonic":
        curve = _fit_isotonic(x, y, w, bounds)
    else:
        curve = _fit_logistic(x, y, w, bounds)
    return with_residuals(curve, x, y, w)


def proxy_around(
    values: FloatArray, residual_variance: float | None, bounds: tuple[float, float], name: str
) -> Proxy:
    """Return the proxy of values (N,) with a common residual variance, limited to what the bounds allow."""
    low, high = bounds
    second_moments = None
    if residual_variance is not None:
        largest_variance = np.maximum((values - low) * (high - values), 0.0)
        second_moments = values**2 + np.minimum(residual_variance, largest_variance)
    return Proxy(values=values, second_moments=second_moments, bounds=bounds, name=name)


def checked_labels(
    x: FloatArray, outcomes: object, weights: object, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return scores (n, …), outcomes (n,) and weights (n,) with mean one; check all three."""
    y = finite_vector("outcomes", outcomes)
    same_length(scores=x, outcomes=y)
    if len(y) < 2:
        raise InputError("too few labels for a fit", given=len(y), allowed="2 or more")
    low, high = bounds
    if not low < high or y.min() < low or y.max() > high:
        raise InputError(
            "outcomes are outside their bounds",
            given=f"{y.min():g} to {y.max():g}",
            allowed=f"{low:g} to {high:g}",
        )
    w = finite_vector("weights", np.ones(len(y)) if weights is None else weights)
    same_length(weights=w, outcomes=y)
    if w.min() <= 0:
        raise InputError(
            "weights must be positive",
            given=f"{w.min():g}",
            allowed="above 0",
            action="Remove units with weight 0.",
        )
    return x, y, w / w.mean()


def _score_values(scores: object) -> FloatArray:
    """Return the scores (N,) of an array or a proxy."""
    return finite_vector("scores", scores.values if isinstance(scores, Proxy) else scores)


def _transform_scores(values: FloatArray, centre: float, scale: float) -> FloatArray:
    """Return the logit of scores (N,) if the scale is 0, otherwise the standardised scores."""
    if scale == 0.0:
        return np.asarray(scipy.special.logit(np.clip(values, _LOGIT_MARGIN, 1.0 - _LOGIT_MARGIN)))
    return (values - centre) / scale


def _fit_isotonic(x: FloatArray, y: FloatArray, w: FloatArray, bounds: tuple[float, float]) -> FittedCurve:
    """Return a smoothed isotonic fit; units with equal scores have one level."""
    # `scipy.optimize` is imported only for this form of calibration, which few estimates fit.
    from scipy.optimize import isotonic_regression

    scores, inverse = np.unique(x, return_inverse=True)
    weight = np.bincount(inverse, w)
    fit = isotonic_regression(np.bincount(inverse, w * y) / weight, weights=weight)
    # Weight of the block of pooled scores that each score belongs to.
    block_weight = np.repeat(np.add.reduceat(weight, fit.blocks[:-1]), np.diff(fit.blocks))
    overall_mean = np.average(y, weights=w)
    smoothed = (fit.x * block_weight + SMOOTHING * overall_mean) / (block_weight + SMOOTHING)
    # Smoothing can change the order of the levels.
    levels = isotonic_regression(smoothed, weights=weight).x
    # The interpolation does not need the points between the ends of a constant piece.
    is_redundant = np.zeros(len(scores), bool)
    is_redundant[1:-1] = (levels[1:-1] == levels[:-2]) & (levels[1:-1] == levels[2:])
    return FittedCurve(
        method="isotonic", bounds=bounds, scores=scores[~is_redundant], levels=levels[~is_redundant]
    )


def _fit_logistic(x: FloatArray, y: FloatArray, w: FloatArray, bounds: tuple[float, float]) -> FittedCurve:
    """Return a penalised logistic regression on the logit or the standardised score."""
    is_probability = bool(x.min() >= 0.0 and x.max() <= 1.0)
    if is_probability:
        centre = 0.0
        scale = 0.0
    else:
        centre = float(x.mean())
        # A constant score has no scale.
        scale = float(x.std()) or 1.0
    t = _transform_scores(x, centre, scale)
    # The uncalibrated probability has slope 1; the sign of another score is unknown.
    prior_slope = 1.0 if is_probability else 0.0
    design = np.stack([np.ones(len(t)), t], axis=1)
    prior = np.array([0.0, prior_slope])
    intercept, slope = fit_penalised(design, unit_scale(y, bounds), w, prior, np.full(2, PENALTY)).tolist()
    return FittedCurve(
        method="logistic", bounds=bounds, intercept=intercept, slope=slope, centre=centre, scale=scale
    )


def fit_penalised(
    design: FloatArray, y: FloatArray, w: FloatArray, prior: FloatArray, penalties: FloatArray
) -> FloatArray:
    """Return the coefficients (k,) of a penalised logistic regression, by Newton's method with step halving.

    Parameters
    ----------
    design : float (m, k)
    y : float (m,)
        Outcomes between 0 and 1.
    w : float (m,)
    prior, penalties : float (k,)
        Each coefficient has a normal prior with this mean and, as its precision, this penalty.
    """

    def objective(beta: FloatArray) -> float:
        eta = design @ beta
        likelihood = w @ (y * eta - np.logaddexp(0.0, eta))
        return float(likelihood - 0.5 * penalties @ (beta - prior) ** 2)

    beta = prior
    value = objective(prior)
    for _ in range(_MAX_NEWTON_STEPS):
        mean = scipy.special.expit(design @ beta)
        gradient = design.T @ (w * (y - mean)) - penalties * (beta - prior)
        curvature = design.T @ (design * (w * mean * (1.0 - mean))[:, None]) + np.diag(penalties)
        step = np.linalg.solve(curvature, gradient)
        while objective(beta + step) < value and np.abs(step).max() > _MIN_STEP:
            step = 0.5 * step
        previous_value = value
        beta = beta + step
        value = objective(beta)
        if value - previous_value <= _OBJECTIVE_TOLERANCE * (1.0 + abs(value)):
            break
    return np.asarray(beta)


def score_matrix(scores: object) -> FloatArray:
    """Return scores as (N, k), from a matrix or from a mapping of name to vector or `Proxy`."""
    # A mapping. The attribute `values` of a data frame is not callable.
    if isinstance(scores, WithValues) and callable(scores.values):
        columns = [values_of(column) for column in scores.values()]
        scores = np.stack([np.asarray(column) for column in columns], axis=1)
    matrix = numeric_array("scores", scores)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError("scores do not match the units", given=f"shape {matrix.shape}", allowed="(N, k)")
    refuse_nonfinite("scores", matrix)
    return matrix


# Penalty on the coefficients of standardised scores. It prevents large opposite coefficients of similar
# judges.
RIDGE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeastSquares(Record):
    """Intercept and coefficients (k,) of weighted least squares with a small ridge penalty."""

    intercept: float
    coefficients: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, y: FloatArray, w: FloatArray) -> LeastSquares:
        """Return the fit to scores (n, k), outcomes (n,) and weights (n,)."""
        relative_weights = w / w.sum()
        centre = relative_weights @ matrix
        centred = matrix - centre
        scale = np.sqrt(relative_weights @ centred**2)
        is_constant = scale <= _CONSTANT_TOLERANCE * np.maximum(np.abs(centre), NO_DIVISOR)
        divisor = np.where(is_constant, 1.0, scale)
        standardised = np.where(is_constant, 0.0, centred / divisor)
        mean = float(relative_weights @ y)
        gram = standardised.T @ (standardised * relative_weights[:, None]) + RIDGE * np.eye(matrix.shape[1])
        standardised_coefficients = np.linalg.solve(gram, standardised.T @ (relative_weights * (y - mean)))
        coefficients = np.where(is_constant, 0.0, standardised_coefficients / divisor)
        return cls(intercept=mean - float(centre @ coefficients), coefficients=coefficients)

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return the mean outcome (N,) of scores (N, k)."""
        n_fitted = len(self.coefficients)
        if matrix.shape[1] != n_fitted:
            raise InputError(
                "the number of scores differs from that of the fit",
                given=matrix.shape[1],
                allowed=str(n_fitted),
            )
        return np.asarray(self.intercept + matrix @ self.coefficients)


# Learners with a name; other learners are scikit-learn estimators.
LEARNER_NAMES = ("gradient-boosting", HISTORY, "logistic-regression", "ridge")

# Seed of learners that draw random numbers and have no seed, so that equal labels give equal estimates.
LEARNER_SEED = 0

# Optimiser steps of the logistic regression; the default of 100 is not always sufficient.
_MAX_ITERATIONS = 1000

# Gradient boosting for hundreds of labels: small trees and a low learning rate.
_BOOSTING_OPTIONS = {"n_estimators": 100, "learning_rate": 0.05, "max_depth": 2, "subsample": 0.7}

# Penalties that the ridge regression compares: 0.01 to 10,000 in steps of a factor of √10.
ALPHAS = tuple(10.0 ** (k / 2) for k in range(-4, 9))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedLearner(Fit):
    """A learner that was fitted on labelled units.

    Parameters
    ----------
    model : LeastSquares, FactorPosterior or scikit-learn estimator, optional
        The fitted model; None if all outcomes were equal.
    level : float
        The mean outcome, which is the prediction without a model.
    bounds, residual_variance : optional
        As in `Fit`; infinite bounds for an outcome without bounds.
    """

    proxy_name: ClassVar[str] = "learned"
    model: Any = field(default=None, compare=False)
    level: float = 0.0

    def apply(self, scores: object) -> FloatArray:
        """Return the predicted mean outcome (N,) of features (N, d), within the bounds."""
        matrix = score_matrix(scores)
        if self.model is None:
            return np.full(len(matrix), self.level)
        with warnings.catch_warnings():
            # Warnings of scikit-learn about feature names and convergence do not concern the estimate.
            warnings.simplefilter("ignore")
            return np.clip(_predict(self.model, matrix, self.bounds), *self.bounds)


def combine(
    scores: object, outcomes: object, *, weights: object = None, bounds: tuple[float, float] = (0.0, 1.0)
) -> FittedLearner:
    """Combine the scores of several judges by least squares, clipped to the bounds.

    Fit on labels that the estimate does not use, or cross-fit (`stratal.proxy.cross_fit`).

    Parameters
    ----------
    scores : array-like (n, k), or mapping of name to array-like (n,) or `Proxy`
        Scores of labelled units.
    outcomes : array-like (n,)
        Their outcomes.
    weights : array-like (n,), optional
        Design weights.
    bounds : (float, float)
        Bounds of the outcome.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(400)
    >>> judges = truth[:, None] + rng.normal(0, [0.2, 0.4], (400, 2))
    >>> combine(judges, truth).model.coefficients.round(1)
    array([0.6, 0.2])
    """
    matrix, y, w = checked_labels(score_matrix(scores), outcomes, weights, bounds)
    return with_residuals(FittedLearner(model=LeastSquares.of(matrix, y, w), bounds=bounds), matrix, y, w)


def learn(
    scores: object,
    outcomes: object,
    *,
    learner: object,
    weights: object = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> FittedLearner:
    """Fit a learner to the features of labelled units.

    Parameters
    ----------
    scores : array-like (n, d), or mapping of name to array-like (n,)
        Features of labelled units, such as judges' scores, metrics or embeddings.
    outcomes : array-like (n,)
        Their outcomes.
    learner : str or scikit-learn estimator
        One of `LEARNER_NAMES`, a regressor, or a classifier with `predict_proba`. A clone of the estimator is
        fitted; an unset seed is set to a constant. A classifier learns the outcome on the 0–1 scale: a unit
        with .3 is fitted as a 1 with weight .3 and a 0 with weight .7.
    weights : array-like (n,), optional
        Design weights. Learners without weights ignore them.
    bounds : (float, float)
        Bounds of the outcome. Infinite bounds require a regressor.

    Raises
    ------
    InputError
        If the learner is not an estimator, for a classifier without probabilities or an outcome without
        bounds, and if scikit-learn rejects the features.
    MissingExtraError
        If a name is given and scikit-learn is not installed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> judges = rng.random((300, 2))
    >>> learned = learn(judges, judges.mean(axis=1) > 0.5, learner="logistic-regression")
    >>> learned.apply([[0.9, 0.9], [0.1, 0.1]]).round(1)
    array([1., 0.])
    """
    matrix, y, w = checked_labels(score_matrix(scores), outcomes, weights, bounds)
    mean = float(np.average(y, weights=w))
    if np.ptp(y) == 0:
        return with_residuals(FittedLearner(level=mean, bounds=bounds), matrix, y, w)
    model: Any
    if isinstance(learner, str) and learner == HISTORY:
        model = _fit_history_learner(matrix, y, bounds)
    else:
        model = new_learner(learner, is_binary=bool(np.all(np.isin(y, bounds))))
        _fit_or_raise_input_error(model, learner_name(learner), matrix, y, w, bounds)
    return with_residuals(FittedLearner(model=model, level=mean, bounds=bounds), matrix, y, w)


def _fit_history_learner(matrix: FloatArray, y: FloatArray, bounds: tuple[float, float]) -> FactorPosterior:
    """Return the posterior of a new model's ability and factors from the items' values and outcomes (n,).

    It has no weights: given the factors, the outcomes do not depend on the selection of the units.
    """
    low, high = bounds
    if not np.isfinite(high - low):
        raise InputError(
            "a history can only predict an outcome with bounds", action="Give bounds=(lowest, highest)."
        )
    return FactorPosterior.of(matrix, unit_scale(y, bounds))


def _fit_or_raise_input_error(
    model: object, name: str, matrix: FloatArray, y: FloatArray, w: FloatArray, bounds: tuple[float, float]
) -> None:
    """Fit a scikit-learn estimator; raise `InputError`, with the name of the learner, if it fails."""
    try:
        with warnings.catch_warnings():
            # The error of the predictions on labels shows whether a learner did not converge.
            warnings.simplefilter("ignore")
            _fit_estimator(model, matrix, y, w, bounds)
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(
            f"the learner {name} cannot be fitted: {error}",
            action="Give numeric features without missing values, or a learner that supports other features.",
        ) from None


def learner_name(learner: object) -> str:
    """Return the name of a learner in notes and errors."""
    if isinstance(learner, str):
        return learner
    return type(_last_step(learner)[1]).__name__


def _last_step(model: object) -> tuple[str, Any]:
    """Return the name and estimator of the last step of a pipeline; for other models "" and the model."""
    steps = getattr(model, "steps", None)
    if not steps:
        return "", model
    name, estimator = steps[-1]
    return name, estimator


def is_learner(method: object) -> bool:
    """Return whether `method` is a learner or the name of one."""
    if isinstance(method, str):
        return method in LEARNER_NAMES
    return hasattr(method, "fit")


def new_learner(learner: object, *, is_binary: bool) -> Any:
    """Return an unfitted copy of a learner, or the learner with a name; an unset seed is set."""
    with optional_import("scikit-learn", extra="learn"):
        from sklearn.base import clone
    if isinstance(learner, str):
        return _named_learner(learner, is_binary=is_binary)
    allowed = f"{', '.join(LEARNER_NAMES)}, a regressor, or a classifier with predict_proba"
    if inspect.isclass(learner):
        raise InputError(
            "a learner must be an instance of a scikit-learn estimator",
            given=f"the class {learner.__name__}",
            allowed=allowed,
            action="Give an instance, as in Ridge().",
        )
    if not all(hasattr(learner, name) for name in ("fit", "predict", "get_params")):
        raise InputError(
            "a learner must be a scikit-learn estimator", given=type(learner).__name__, allowed=allowed
        )
    model = clone(learner)
    unset_seeds = [
        name
        for name, value in model.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    ]
    return model.set_params(**dict.fromkeys(unset_seeds, LEARNER_SEED))


def _named_learner(name: str, *, is_binary: bool) -> Any:
    """Return the learner with a name, with options for hundreds of labels."""
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "ridge":
        return make_pipeline(StandardScaler(), RidgeCV(alphas=ALPHAS))
    if name == "logistic-regression":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=_MAX_ITERATIONS))
    if name == "gradient-boosting":
        if is_binary:
            return GradientBoostingClassifier(**_BOOSTING_OPTIONS, random_state=LEARNER_SEED)
        return GradientBoostingRegressor(**_BOOSTING_OPTIONS, random_state=LEARNER_SEED)
    raise InputError("unknown learner", given=repr(name), allowed=", ".join(LEARNER_NAMES))


def _fit_estimator(
    model: object, matrix: FloatArray, y: FloatArray, w: FloatArray, bounds: tuple[float, float]
) -> None:
    """Fit a regressor to outcomes (n,), or a classifier to the outcomes on the 0–1 scale."""
    from sklearn.base import is_classifier

    if not is_classifier(model):
        _fit_weighted(model, matrix, y, w)
        return
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"the learner {learner_name(model)} does not predict probabilities",
            allowed="a classifier with predict_proba, or a regressor",
            action="Wrap the learner in sklearn.calibration.CalibratedClassifierCV.",
        )
    low, high = bounds
    if not np.isfinite(high - low):
        raise InputError("a classifier cannot learn an outcome without bounds", allowed="a regressor")
    unit_outcomes = unit_scale(y, bounds)
    if are_binary(unit_outcomes):
        _fit_weighted(model, matrix, unit_outcomes.astype(np.int64), w)
        return
    if _weight_name(model) is None:
        raise InputError(
            f"the learner {learner_name(model)} accepts no weights, so it cannot learn a graded outcome",
            allowed="a regressor, or a classifier whose fit has the parameter sample_weight",
        )
    # A graded outcome is a 0 and a 1 with weights that add up to the weight of the unit.
    classes = np.repeat([0, 1], len(y))
    class_weights = np.concatenate([w * (1 - unit_outcomes), w * unit_outcomes])
    has_weight = class_weights > 0
    doubled_matrix = np.concatenate([matrix, matrix])
    _fit_weighted(model, doubled_matrix[has_weight], classes[has_weight], class_weights[has_weight])


def _weight_name(model: object) -> str | None:
    """Return the keyword of `fit` for weights, or None; in a pipeline, that of its last step."""
    step, estimator = _last_step(model)
    if "sample_weight" not in inspect.signature(estimator.fit).parameters:
        return None
    if step:
        return f"{step}__sample_weight"
    return "sample_weight"


def _fit_weighted(model: Any, matrix: FloatArray, y: AnyArray, w: FloatArray) -> None:
    """Fit a model to scores (n, d) and outcomes (n,), with weights (n,) if they differ and are supported."""
    name = _weight_name(model)
    if name is None or np.all(w == w[0]):
        model.fit(matrix, y)
    else:
        model.fit(matrix, y, **{name: w})


def _predict(model: Any, matrix: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return the predicted mean outcome (N,) of scores (N, d) on the scale of the outcome."""
    low, high = bounds
    if isinstance(model, FactorPosterior):
        return low + (high - low) * model.predict(matrix)
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(matrix), np.float64).reshape(len(matrix))
    probabilities = np.asarray(model.predict_proba(matrix), np.float64)
    column = int(np.flatnonzero(np.asarray(model.classes_) == 1)[0])
    return np.asarray(low + (high - low) * probabilities[:, column])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossFit(Record):
    """Fits of a cross-fit: each fit excludes one fold of the labelled units.

    Parameters
    ----------
    fits : tuple of FittedCurve or FittedLearner (K,)
        One fit per fold, on the labels of the other folds.
    folds : int (n,)
        Fold of each labelled unit.
    labelled_values : float (n,)
        Predicted mean outcome of each labelled unit, from the fit that excludes its label.
    """

    fits: tuple[FittedCurve | FittedLearner, ...]
    folds: IntArray
    labelled_values: FloatArray

    def apply(self, scores: object) -> FloatArray:
        """Return the mean of all fits (N,), for units without labels."""
        scores = _scores_of_fit(scores, needs_matrix=isinstance(self.fits[0], FittedLearner))
        return np.asarray(np.mean([fit.apply(scores) for fit in self.fits], axis=0))

    def proxy(self, scores: object, *, labelled_rows: object = None, name: str = "calibrated") -> Proxy:
        """Return the proxy of the population.

        Parameters
        ----------
        scores : array-like (N,) or (N, k)
            Scores of all units.
        labelled_rows : array-like of int (n,), optional
            Rows of the labelled units in the order of `cross_fit`. Their values come from the fit that
            excludes their labels.
        name : str
            Name of the proxy.
        """
        values = self.apply(scores)
        if labelled_rows is not None:
            values[np.asarray(labelled_rows, np.int64)] = self.labelled_values
        residuals = [fit.residual_variance for fit in self.fits if fit.residual_variance is not None]
        if residuals:
            variance = float(np.mean(residuals))
        else:
            variance = None
        return proxy_around(values, variance, self.fits[0].bounds, name)


def cross_fit(
    scores: Any,
    outcomes: Any,
    *,
    method: Any = None,
    n_folds: int = 5,
    weights: Any = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
) -> CrossFit:
    """Cross-fit a calibration of one score, or a combination of several scores, on labelled units.

    Parameters
    ----------
    scores : array-like (n,) or (n, k)
        Scores of the labelled units. One score is calibrated (`calibrate`), several are combined (`combine`).
    outcomes : array-like (n,)
        Their outcomes.
    method : str or scikit-learn estimator, optional
        A method of `calibrate` for one score (default `logistic`), or a learner of `learn` for any number.
    n_folds : int
        K, at most n.
    weights : array-like (n,), optional
        Design weights.
    bounds : (float, float)
        Bounds of the outcome.
    seed : int
        Seed of the random folds.

    Raises
    ------
    InputError
        If fewer than two labels remain for a fit.

    Examples
    --------
    >>> cross_fit([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1], n_folds=2).folds.shape
    (4,)
    """
    y = np.asarray(outcomes, np.float64)
    x = _scores_of_fit(scores, needs_matrix=is_learner(method))
    if weights is None:
        w = np.ones(len(y))
    else:
        w = np.asarray(weights, np.float64)
    if not 2 <= n_folds <= len(y) or len(x) != len(y) or len(w) != len(y):
        raise InputError(
            "n_folds does not match the number of labels, scores and weights",
            given=f"{n_folds} for {len(y)}",
            allowed=f"2 to {len(y)}",
        )
    folds = np.empty(len(y), np.int64)
    folds[np.random.default_rng(seed).permutation(len(y))] = np.arange(len(y)) % n_folds
    fit: Callable[..., FittedCurve | FittedLearner]
    if x.ndim != 2:
        fit = partial(calibrate, method=method or "logistic")
    elif method is None:
        fit = combine
    else:
        fit = partial(learn, learner=method)
    fits = []
    labelled_values = np.empty(len(y))
    for fold in range(n_folds):
        in_fold = folds == fold
        fold_fit = fit(x[~in_fold], y[~in_fold], weights=w[~in_fold], bounds=bounds)
        labelled_values[in_fold] = fold_fit.apply(x[in_fold])
        fits.append(fold_fit)
    return CrossFit(fits=tuple(fits), folds=folds, labelled_values=labelled_values)


def _scores_of_fit(scores: Any, *, needs_matrix: bool) -> FloatArray:
    """Return several scores as a matrix (n, k), and one as a vector (n,) or, if needed, a matrix (n, 1)."""
    if not isinstance(scores, Proxy) and (isinstance(scores, dict) or np.ndim(scores) == 2):
        return score_matrix(scores)
    values = np.asarray(values_of(scores), np.float64)
    if needs_matrix:
        return values[:, None]
    return values
