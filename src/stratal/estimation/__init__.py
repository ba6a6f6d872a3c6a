"""From a sample and its labels to an estimate: options, λ, means, metrics, differences and domains."""

import stratal.estimation.estimands  # noqa: F401  (the kinds of estimand enter themselves)
from stratal.estimation.comparison import compare, ranks
from stratal.estimation.domains import estimate_domains, group_differences
from stratal.estimation.estimate import Estimate, Nonresponse, StratumRow
from stratal.estimation.estimate_table import EstimateTable
from stratal.estimation.evaluation import estimate, estimate_mean
from stratal.estimation.mean import ESTIMATORS, EstimateOptions, MeanEstimate, mean_estimate
from stratal.estimation.metrics import classification_metrics
from stratal.estimation.quantity import Quantity
from stratal.estimation.smooth_functions import quantile, ranking_metrics, ratio, smooth_function

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "EstimateOptions",
    "EstimateTable",
    "MeanEstimate",
    "Nonresponse",
    "Quantity",
    "StratumRow",
    "classification_metrics",
    "compare",
    "estimate",
    "estimate_domains",
    "estimate_mean",
    "group_differences",
    "mean_estimate",
    "quantile",
    "ranking_metrics",
    "ranks",
    "ratio",
    "smooth_function",
]
