"""Proxies: predictions of the outcome for every unit, from probabilities, variances, scores or judges."""

from stratal.proxy.calibration import Calibration, calibrate
from stratal.proxy.combination import Combination, combine
from stratal.proxy.cross_fitted import CrossFit, cross_fit
from stratal.proxy.learners import Learned, learn
from stratal.proxy.probabilities import accuracy, cross_entropy, margin, squared_error
from stratal.proxy.proxy import Proxy
from stratal.proxy.regressors import absolute_regression_error, squared_regression_error

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
