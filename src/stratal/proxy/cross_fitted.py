"""Cross-fitting: a proxy calibrated on the sample that it helps to estimate from, each unit by the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.errors import InputError
from stratal.proxy.calibration import Calibration, calibrate, proxy_around
from stratal.proxy.combination import Combination, combine, score_matrix
from stratal.proxy.learners import Learned, is_learner, learn
from stratal.proxy.proxy import Proxy


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
        several = not isinstance(scores, Proxy) and (isinstance(scores, dict) or np.ndim(scores) == 2)
        if isinstance(self.fits[0], Learned) and not several:
            scores = np.asarray(getattr(scores, "values", scores), np.float64)[:, None]
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
    several = not isinstance(scores, Proxy) and (isinstance(scores, dict) or np.ndim(scores) == 2)
    learned = is_learner(method)
    if learned and not several:
        scores, several = np.asarray(getattr(scores, "values", scores), np.float64)[:, None], True
    x = score_matrix(scores) if several else np.asarray(getattr(scores, "values", scores), np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    if not 2 <= n_folds <= len(y) or len(x) != len(y) or len(w) != len(y):
        raise InputError(
            "n_folds does not fit the labels", given=f"{n_folds} for {len(y)}", allowed=f"2 to {len(y)}"
        )
    folds = np.empty(len(y), np.int64)
    folds[np.random.default_rng(seed).permutation(len(y))] = np.arange(len(y)) % n_folds
    fit = combine if several else calibrate
    how: Any = partial(learn, learner=method) if learned else partial(fit, method=method)
    parts = (folds != k for k in range(n_folds))
    fits = tuple(how(x[kept], y[kept], weights=w[kept], bounds=bounds) for kept in parts)
    labelled = np.empty(len(y))
    for k, fitted in enumerate(fits):
        labelled[folds == k] = fitted.apply(x[folds == k])
    return CrossFit(fits=fits, folds=folds, labelled=labelled)
