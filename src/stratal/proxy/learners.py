"""Learners: any scikit-learn estimator as a proxy fitted on labels, from several judges, metrics, embeddings.

Fit on labels that the estimate does not use, or cross-fit: `stratal.proxy.cross_fit`, or
`stratal.estimate(…, calibration=learner)`.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.errors import InputError, MissingExtraError
from stratal.proxy.calibration import (
    Calibration,
    Combination,
    Fit,
    calibrate,
    checked_labels,
    combine,
    proxy_around,
    score_matrix,
    with_residuals,
)
from stratal.proxy.proxy import Proxy

NAMES = ("gradient-boosting", "logistic-regression", "ridge")
"""Learners that go by a name."""

SEED = 0
"""Of learners that draw random numbers and were given no seed: the same labels give the same estimate."""

ALPHAS = tuple(10.0 ** (k / 2) for k in range(-4, 9))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned(Fit):
    """A learner fitted on labelled units.

    Parameters
    ----------
    model : scikit-learn estimator, optional
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


def learn(
    scores: Any,
    outcomes: Any,
    *,
    learner: Any,
    weights: Any = None,
    bounds: tuple[float, float] = (0.0, 1.0),
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
    model = fresh(learner, binary=bool(np.all(np.isin(y, bounds))))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence and the like: what counts is how it predicts
            _fit(model, matrix, y, w, bounds)
    except (ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"the learner {described(learner)} cannot be fitted: {error}",
            action="Give numeric features without missing values, or a learner that takes others.",
        ) from None
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
    return method in NAMES if isinstance(method, str) else hasattr(method, "fit")


def fresh(learner: Any, *, binary: bool) -> Any:
    """Return an unfitted copy of a learner, or the learner of a name, with a seed.

    Examples
    --------
    >>> type(fresh("ridge", binary=True)).__name__
    'Pipeline'
    """
    try:
        from sklearn.base import clone
    except ImportError:
        raise MissingExtraError("scikit-learn", extra="learn") from None
    if isinstance(learner, str):
        return _named(learner, binary)
    if inspect.isclass(learner) or not (
        hasattr(learner, "fit") and hasattr(learner, "predict") and hasattr(learner, "get_params")
    ):
        raise InputError(
            "a learner must be a scikit-learn estimator",
            given=learner.__name__ if inspect.isclass(learner) else type(learner).__name__,
            allowed=f"{', '.join(NAMES)}, a regressor, or a classifier with predict_proba",
            action="Give an instance, as in Ridge()." if inspect.isclass(learner) else None,
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
        kind = GradientBoostingClassifier if binary else GradientBoostingRegressor
        return kind(n_estimators=100, learning_rate=0.05, max_depth=2, subsample=0.7, random_state=SEED)
    raise InputError("no such learner", given=repr(name), allowed=", ".join(NAMES))


def _is_classifier(model: Any) -> bool:
    from sklearn.base import is_classifier

    return bool(is_classifier(model))


def _fit(model: Any, matrix: FloatArray, y: FloatArray, w: FloatArray, bounds: tuple[float, float]) -> None:
    """Fit a model to outcomes, a classifier to their share of the bounds."""
    if not _is_classifier(model):
        _fit_weighted(model, matrix, y, w)
        return
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"the learner {described(model)} has no probabilities",
            allowed="a classifier with predict_proba, or a regressor",
            action="Wrap it: sklearn.calibration.CalibratedClassifierCV.",
        )
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
        raise InputError(
            f"the learner {described(model)} takes no weights, so it cannot learn a graded outcome",
            allowed="a regressor, or a classifier whose fit takes sample_weight",
        )
    _fit_weighted(model, np.concatenate([matrix, matrix])[kept], classes[kept], doubled[kept])


def _weight_name(model: Any) -> str | None:
    """Return what `fit` calls the weights; those of a pipeline are its last step's."""
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if steps else model
    if "sample_weight" not in inspect.signature(last.fit).parameters:
        return None
    return f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"


def _fit_weighted(model: Any, matrix: FloatArray, y: Any, w: FloatArray) -> None:
    name = _weight_name(model)
    model.fit(matrix, y, **({} if name is None or np.all(w == w[0]) else {name: w}))


def _predicted(model: Any, matrix: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    if not _is_classifier(model):
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
    fits : tuple of Calibration, Combination or Learned (K,)
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

    fits: tuple[Calibration | Combination | Learned, ...]
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
    method: Any = "logistic",
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
    method : str
        As in `calibrate` (`"isotonic"`, `"logistic"`) or `combine` (`"linear"` too), or a learner as in
        `learn`: a scikit-learn estimator, `"gradient-boosting"`, `"logistic-regression"` or `"ridge"`.
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
    learned = is_learner(method)
    x = _as_fitted(scores, learned)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    if not 2 <= n_folds <= len(y) or len(x) != len(y) or len(w) != len(y):
        raise InputError(
            "n_folds does not fit the labels", given=f"{n_folds} for {len(y)}", allowed=f"2 to {len(y)}"
        )
    folds = np.empty(len(y), np.int64)
    folds[np.random.default_rng(seed).permutation(len(y))] = np.arange(len(y)) % n_folds
    fit: Any = learn if learned else combine if x.ndim == 2 else calibrate
    how = partial(fit, **{"learner" if learned else "method": method}, bounds=bounds)
    parts = (folds != k for k in range(n_folds))
    fits = tuple(how(x[kept], y[kept], weights=w[kept]) for kept in parts)
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
