"""Proxies: predictions of the outcome for every unit, from probabilities, variances, scores or judges."""

from stratal.proxy.calibration import Calibration, Combination, calibrate, combine
from stratal.proxy.learners import CrossFit, Learned, cross_fit, learn
from stratal.proxy.losses import (
    absolute_regression_error,
    accuracy,
    cross_entropy,
    margin,
    squared_error,
    squared_regression_error,
)
from stratal.proxy.proxy import Proxy

__all__ = [
    "Calibration",
    "Combination",
    "CrossFit",
    "Learned",
    "Proxy",
    "absolute_regression_error",
    "accuracy",
    "calibrate",
    "combine",
    "cross_entropy",
    "cross_fit",
    "learn",
    "margin",
    "squared_error",
    "squared_regression_error",
]
