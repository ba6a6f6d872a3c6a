"""Proxies: predictions of the outcome for every unit, from probabilities, variances, scores or judges."""

from stratal.proxy.agreement import peer_agreement
from stratal.proxy.calibration import FittedCurve, calibrate, combine, cross_fit, learn
from stratal.proxy.history import fit_history
from stratal.proxy.proxy import (
    Proxy,
    absolute_regression_error,
    accuracy,
    cross_entropy,
    margin,
    squared_error,
    squared_regression_error,
)

__all__ = [
    "FittedCurve",
    "Proxy",
    "absolute_regression_error",
    "accuracy",
    "calibrate",
    "combine",
    "cross_entropy",
    "cross_fit",
    "fit_history",
    "learn",
    "margin",
    "peer_agreement",
    "squared_error",
    "squared_regression_error",
]
