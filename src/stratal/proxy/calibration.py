"""Calibration: from a score to E[z | score], fitted on labels.

Fit on labels that the estimate does not use, or cross-fit (`stratal.proxy.cross_fit`): a calibration that
has seen the labels of the units to which it is applied makes intervals too short.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy

from stratal.arrays import (
    FloatArray,
    IntArray,
    Record,
    finite_vector,
    numeric_array,
    refuse_nonfinite,
    same_length,
)
from stratal.errors import InputError, installed
from stratal.proxy.history import HISTORY, FactorPosterior
from stratal.proxy.proxy import Proxy

METHODS = ("isotonic", "logistic")


# Labels' worth of the overall mean that is mixed into every level of an isotonic fit.
SMOOTHING = 1.0


# Precision of the normal prior on the logistic coefficients, around "the score is right".
PENALTY = 1.0


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
        index = self.intercept + self.slope * _standardised(values, self.centre, self.scale)
        return np.asarray(low + (high - low) * scipy.special.expit(index))


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
    if method == "isotonic":
        fitted = _isotonic(x, y, w)
    else:
        fitted = _logistic(x, y, w, bounds)
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
        given = f"{y.min():g} to {y.max():g}"
        allowed = f"{low:g} to {high:g}"
        raise InputError("outcomes leave their bounds", given=given, allowed=allowed)
    w = finite_vector("weights", np.ones(len(y)) if weights is None else weights)
    same_length(weights=w, outcomes=y)
    if w.min() <= 0:
        given = f"{w.min():g}"
        action = "Leave out units with weight 0."
        raise InputError("weights must be positive", given=given, allowed="above 0", action=action)
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
    if as_logit:
        centre, scale = (0.0, 0.0)
    else:
        centre, scale = (float(x.mean()), float(x.std()) or 1.0)
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

    beta = prior
    value = objective(prior)
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
        raise InputError("scores do not match the units", given=f"shape {matrix.shape}", allowed="(N, k)")
    refuse_nonfinite("scores", matrix)
    return matrix


# Penalty on the coefficients of standardised scores: keeps judges that agree from cancelling each other.
RIDGE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeastSquares(Record):
    """Intercept and coefficients (k,) of weighted least squares with a small ridge.

    Examples
    --------
    >>> found = LeastSquares.of(np.array([[0.0], [1.0]]), np.array([1.0, 3.0]), np.ones(2))
    >>> found.predict(np.array([[0.5]]))
    array([2.])
    """

    intercept: float
    coefficients: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, y: FloatArray, w: FloatArray) -> LeastSquares:
        """Return the fit to scores (n, k), outcomes (n,) and weights (n,)."""
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
        return cls(intercept=mean - float(centre @ coefficients), coefficients=coefficients)

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return the mean outcome (N,) of scores (N, k)."""
        fitted = len(self.coefficients)
        if matrix.shape[1] != fitted:
            what = "as many scores are needed as were fitted"
            raise InputError(what, given=matrix.shape[1], allowed=str(fitted))
        return np.asarray(self.intercept + matrix @ self.coefficients)


# Learners that go by a name.
NAMES = ("gradient-boosting", HISTORY, "logistic-regression", "ridge")


# Of learners that draw random numbers and were given no seed: the same labels give the same estimate.
SEED = 0


ALPHAS = tuple(10.0 ** (k / 2) for k in range(-4, 9))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned(Fit):
    """A learner fitted on labelled units.

    Parameters
    ----------
    model : LeastSquares, FactorPosterior or scikit-learn estimator, optional
        Fitted; None where all outcomes were equal, so that there was nothing to learn.
    level : float
        The mean outcome, which stands for the model where there is none.
    bounds, residual_variance : optional
        As in `Fit`; the bounds are infinite where the outcome has none.

    Examples
    --------
    >>> Learned(model=None, level=0.5).apply([[1.0], [2.0]])
    array([0.5, 0.5])
    """

    proxy_name: ClassVar[str] = "learned"
    model: Any = field(default=None, compare=False)
    level: float = 0.0

    def apply(self, scores: Any) -> FloatArray:
        """Return the predicted mean outcome (N,) of features (N, d), within the bounds."""
        matrix = score_matrix(scores)
        if self.model is None:
            return np.full(len(matrix), self.level)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.clip(_predicted(self.model, matrix, self.bounds), *self.bounds)


def combine(
    scores: Any, outcomes: Any, *, weights: Any = None, bounds: tuple[float, float] = (0.0, 1.0)
) -> Learned:
    """Fit one proxy to several judges' scores: least squares, clipped to the bounds.

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
    return with_residuals(Learned(model=LeastSquares.of(matrix, y, w), bounds=bounds), matrix, y, w)


def learn(
    scores: Any, outcomes: Any, *, learner: Any, weights: Any = None, bounds: tuple[float, float] = (0.0, 1.0)
) -> Learned:
    """Fit a learner to the features of labelled units.

    Parameters
    ----------
    scores : array-like (n, d), or mapping of name to array-like (n,)
        Features of labelled units: judges' scores, metrics, embeddings.
    outcomes : array-like (n,)
        Their outcomes.
    learner : str or scikit-learn estimator
        One of `NAMES`, a regressor, or a classifier with `predict_proba`. The estimator is cloned, never
        fitted itself; where it has no seed of its own it gets one. A classifier learns the outcome's share of
        its bounds: a unit of .3 counts as three tenths of a 1 and seven tenths of a 0.
    weights : array-like (n,), optional
        Design weights, for learners that take weights.
    bounds : (float, float)
        Bounds of the outcome; infinite where it has none, and then the learner must be a regressor.

    Raises
    ------
    InputError
        For something that is no estimator, a classifier without probabilities or for an outcome without
        bounds, and what scikit-learn says of the features.
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
        return with_residuals(Learned(level=mean, bounds=bounds), matrix, y, w)
    if isinstance(learner, str) and learner == HISTORY:
        low, high = bounds
        if not np.isfinite(high - low):
            raise InputError(
                "a history predicts an outcome with bounds", action="Give bounds=(lowest, highest)."
            )
        # No weights: which units were drawn says nothing of them that the factors do not.
        own = FactorPosterior.of(matrix, (y - low) / (high - low))
        return with_residuals(Learned(model=own, level=mean, bounds=bounds), matrix, y, w)
    model = fresh(learner, binary=bool(np.all(np.isin(y, bounds))))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence and the like: what counts is how it predicts
            _fit(model, matrix, y, w, bounds)
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        what = f"the learner {described(learner)} cannot be fitted: {error}"
        action = "Give numeric features without missing values, or a learner that takes others."
        raise InputError(what, action=action) from None
    return with_residuals(Learned(model=model, level=mean, bounds=bounds), matrix, y, w)


def described(learner: Any) -> str:
    """Return how a learner is called in notes and errors.

    Examples
    --------
    >>> described("ridge")
    'ridge'
    """
    if isinstance(learner, str):
        return learner
    steps = getattr(learner, "steps", None)
    return type(steps[-1][1] if steps else learner).__name__


def is_learner(method: Any) -> bool:
    """Return whether `method` names or is a learner.

    Examples
    --------
    >>> is_learner("ridge"), is_learner("isotonic")
    (True, False)
    """
    if isinstance(method, str):
        return method in NAMES
    return hasattr(method, "fit")


def fresh(learner: Any, *, binary: bool) -> Any:
    """Return an unfitted copy of a learner, or the learner of a name, with a seed.

    Examples
    --------
    >>> type(fresh("ridge", binary=True)).__name__
    'Pipeline'
    """
    with installed("scikit-learn", extra="learn"):
        from sklearn.base import clone
    if isinstance(learner, str):
        return _named(learner, binary)
    made = not inspect.isclass(learner)
    if not made or not all(hasattr(learner, name) for name in ("fit", "predict", "get_params")):
        raise InputError(
            "a learner must be a scikit-learn estimator",
            given=(type(learner) if made else learner).__name__,
            allowed=f"{', '.join(NAMES)}, a regressor, or a classifier with predict_proba",
            action=None if made else "Give an instance, as in Ridge().",
        )
    model = clone(learner)
    unset = [k for k, v in model.get_params().items() if k.split("__")[-1] == "random_state" and v is None]
    return model.set_params(**dict.fromkeys(unset, SEED))


def _named(name: str, binary: bool) -> Any:
    """Return the learner of a name: small, for hundreds of labels."""
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "ridge":
        return make_pipeline(StandardScaler(), RidgeCV(alphas=ALPHAS))
    if name == "logistic-regression":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    if name == "gradient-boosting":
        if binary:
            kind = GradientBoostingClassifier
        else:
            kind = GradientBoostingRegressor
        return kind(n_estimators=100, learning_rate=0.05, max_depth=2, subsample=0.7, random_state=SEED)
    raise InputError("no such learner", given=repr(name), allowed=", ".join(NAMES))


def _fit(model: Any, matrix: FloatArray, y: FloatArray, w: FloatArray, bounds: tuple[float, float]) -> None:
    """Fit a model to outcomes, a classifier to their share of the bounds."""
    from sklearn.base import is_classifier

    if not is_classifier(model):
        _fit_weighted(model, matrix, y, w)
        return
    if not hasattr(model, "predict_proba"):
        what = f"the learner {described(model)} has no probabilities"
        action = "Wrap it: sklearn.calibration.CalibratedClassifierCV."
        raise InputError(what, allowed="a classifier with predict_proba, or a regressor", action=action)
    low, high = bounds
    if not np.isfinite(high - low):
        raise InputError("a classifier cannot learn an outcome without bounds", allowed="a regressor")
    share = (y - low) / (high - low)
    if np.all((share == 0) | (share == 1)):
        _fit_weighted(model, matrix, share.astype(np.int64), w)
        return
    classes = np.repeat([0, 1], len(y))
    doubled = np.concatenate([w * (1 - share), w * share])
    kept = doubled > 0
    if _weight_name(model) is None:
        what = f"the learner {described(model)} takes no weights, so it cannot learn a graded outcome"
        raise InputError(what, allowed="a regressor, or a classifier whose fit takes sample_weight")
    _fit_weighted(model, np.concatenate([matrix, matrix])[kept], classes[kept], doubled[kept])


def _weight_name(model: Any) -> str | None:
    """Return what `fit` calls the weights; those of a pipeline are its last step's."""
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if steps else model
    if "sample_weight" not in inspect.signature(last.fit).parameters:
        return None
    if steps:
        return f"{steps[-1][0]}__sample_weight"
    return "sample_weight"


def _fit_weighted(model: Any, matrix: FloatArray, y: Any, w: FloatArray) -> None:
    name = _weight_name(model)
    model.fit(matrix, y, **({} if name is None or np.all(w == w[0]) else {name: w}))


def _predicted(model: Any, matrix: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    if isinstance(model, FactorPosterior):
        return bounds[0] + (bounds[1] - bounds[0]) * model.predict(matrix)
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(matrix), np.float64).reshape(len(matrix))
    low, high = bounds
    probabilities = np.asarray(model.predict_proba(matrix), np.float64)
    place = int(np.flatnonzero(np.asarray(model.classes_) == 1)[0])
    return np.asarray(low + (high - low) * probabilities[:, place])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossFit(Record):
    """Fits that each left a fold of the labelled units out.

    Parameters
    ----------
    fits : tuple of Calibration or Learned (K,)
        One for each fold, fitted on the others.
    folds : int (n,)
        Fold of each labelled unit.
    labelled : float (n,)
        Calibrated value of each labelled unit, by the fit that has not seen its label.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(100)
    >>> fitted = cross_fit(scores, rng.random(100) < scores**2, method="logistic")
    >>> len(fitted.fits), fitted.apply([0.5]).shape
    (5, (1,))
    """

    fits: tuple[Calibration | Learned, ...]
    folds: IntArray
    labelled: FloatArray

    def apply(self, scores: Any) -> FloatArray:
        """Return the mean of all fits (N,): for units without a label."""
        scores = _as_fitted(scores, isinstance(self.fits[0], Learned))
        return np.asarray(np.mean([fit.apply(scores) for fit in self.fits], axis=0))

    def proxy(self, scores: Any, *, labelled_rows: Any = None, name: str = "calibrated") -> Proxy:
        """Return the proxy of the whole population.

        Parameters
        ----------
        scores : array-like (N,) or (N, k)
            All units' scores.
        labelled_rows : array-like of int (n,), optional
            Rows of the labelled units, in the order in which they were given to `cross_fit`; they get the
            value of the fit that has not seen them.
        name : str
            Name of the proxy.
        """
        values = self.apply(scores)
        if labelled_rows is not None:
            values[np.asarray(labelled_rows, np.int64)] = self.labelled
        residuals = [fit.residual_variance for fit in self.fits if fit.residual_variance is not None]
        variance = float(np.mean(residuals)) if residuals else None
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
    """Calibrate one score, or combine several, on labelled units by folds.

    Parameters
    ----------
    scores : array-like (n,) or (n, k)
        Scores of the labelled units. One score is calibrated (`calibrate`), several are combined (`combine`).
    outcomes : array-like (n,)
        Their outcomes.
    method : str or scikit-learn estimator, optional
        Of one score as in `calibrate`, `logistic` if left out; or a learner as in `learn`, of one or several.
    n_folds : int
        K; at most n.
    weights : array-like (n,), optional
        Design weights.
    bounds : (float, float)
        Bounds of the outcome.
    seed : int
        Of the folds.

    Raises
    ------
    InputError
        If a fold would leave fewer than two labels to fit on.

    Examples
    --------
    >>> cross_fit([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1], n_folds=2).folds.shape
    (4,)
    """
    y = np.asarray(outcomes, np.float64)
    x = _as_fitted(scores, is_learner(method))
    if weights is None:
        w = np.ones(len(y))
    else:
        w = np.asarray(weights, np.float64)
    if not 2 <= n_folds <= len(y) or len(x) != len(y) or len(w) != len(y):
        given = f"{n_folds} for {len(y)}"
        allowed = f"2 to {len(y)}"
        raise InputError("n_folds does not suit the labels", given=given, allowed=allowed)
    folds = np.empty(len(y), np.int64)
    folds[np.random.default_rng(seed).permutation(len(y))] = np.arange(len(y)) % n_folds
    fit: Any = partial(calibrate, method=method or "logistic")
    if x.ndim == 2:
        if method is None:
            fit = combine
        else:
            fit = partial(learn, learner=method)
    parts = (folds != k for k in range(n_folds))
    fits = tuple(fit(x[kept], y[kept], weights=w[kept], bounds=bounds) for kept in parts)
    labelled = np.empty(len(y))
    for k, fitted in enumerate(fits):
        labelled[folds == k] = fitted.apply(x[folds == k])
    return CrossFit(fits=fits, folds=folds, labelled=labelled)


def _as_fitted(scores: Any, learned: bool) -> FloatArray:
    """Return scores as a matrix (n, k) where they are several or for a learner, else as a vector (n,)."""
    if not isinstance(scores, Proxy) and (isinstance(scores, dict) or np.ndim(scores) == 2):
        return score_matrix(scores)
    values = np.asarray(getattr(scores, "values", scores), np.float64)
    return values[:, None] if learned else values
