"""Several judges as one proxy: a fitted weighted sum of their scores, calibrated if wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, Record, numeric_array, refuse_nonfinite
from stratal.errors import InputError
from stratal.proxy.calibration import (
    Calibration,
    calibrate,
    checked_labels,
    proxy_around,
    residual_variance_of,
)
from stratal.proxy.proxy import Proxy

METHODS = ("linear", "isotonic", "logistic")

RIDGE = 1e-3
"""Penalty on the coefficients of standardised scores: keeps judges that agree from cancelling each other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Combination(Record):
    """A fitted function of k scores.

    Parameters
    ----------
    intercept : float
    coefficients : float (k,)
        Of the linear index.
    bounds : (float, float)
        Bounds of the outcome; the index is clipped to them if there is no curve.
    curve : Calibration, optional
        From the index to the outcome.
    residual_variance : float, optional
        Mean squared residual; `None` where outcomes were all at the bounds.

    Examples
    --------
    >>> judges = np.array([[0.9, 0.2], [0.8, 0.9], [0.1, 0.3], [0.2, 0.8]])
    >>> combine(judges, [1, 1, 0, 0]).apply(judges).round(1)
    array([1. , 0.9, 0. , 0.1])
    """

    intercept: float
    coefficients: FloatArray
    bounds: tuple[float, float] = (0.0, 1.0)
    curve: Calibration | None = None
    residual_variance: float | None = None

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

    def proxy(self, scores: Any, *, name: str = "combined") -> Proxy:
        """Return the combined proxy of scores (N, k), on the outcome's scale."""
        return proxy_around(self.apply(scores), self.residual_variance, self.bounds, name)


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
    if method not in METHODS:
        raise InputError("no such combination", given=repr(method), allowed=", ".join(METHODS))
    matrix, y, w = checked_labels(score_matrix(scores), outcomes, weights, bounds)
    intercept, coefficients = _ridge(matrix, y, w)
    curve = None
    if method != "linear":
        curve = calibrate(intercept + matrix @ coefficients, y, method=method, weights=w, bounds=bounds)
    combined = Combination(intercept=intercept, coefficients=coefficients, bounds=bounds, curve=curve)
    return replace(combined, residual_variance=residual_variance_of(y, combined.apply(matrix), w, bounds))


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
