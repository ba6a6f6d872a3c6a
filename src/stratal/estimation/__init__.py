"""Labels to estimates: λ, the estimands, intervals of their own where the mean's do not apply, domains."""

import stratal.estimation.estimands  # noqa: F401  (the kinds of estimand enter themselves)
from stratal.estimation.comparison import Comparisons, compare
from stratal.estimation.estimate import Estimate, Estimates, Nonresponse, StratumRow
from stratal.estimation.evaluation import estimate
from stratal.estimation.outcome_means import (
    ESTIMATORS,
    EstimateOptions,
    MeanEstimate,
    estimate_mean,
    mean_estimate,
)

__all__ = [
    "ESTIMATORS",
    "Comparisons",
    "Estimate",
    "EstimateOptions",
    "Estimates",
    "MeanEstimate",
    "Nonresponse",
    "StratumRow",
    "compare",
    "estimate",
    "estimate_mean",
    "mean_estimate",
]
