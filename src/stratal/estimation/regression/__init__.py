"""Prediction-powered M-estimation under any design: means, quantiles, regressions, or a loss of one's own."""

from stratal.estimation.regression.from_sample import Formula, from_population, regress
from stratal.estimation.regression.losses import (
    ArrayUnlabelled,
    Block,
    LinearLoss,
    LogisticLoss,
    Loss,
    MeanLoss,
    PoissonLoss,
    Unlabelled,
)
from stratal.estimation.regression.m_estimation import (
    Coefficients,
    SuppliedWeights,
    heuristic_spreads,
    influence_spreads,
    linear_regression,
    logistic_regression,
    m_estimate,
    mean_vector,
    poisson_regression,
)
from stratal.estimation.regression.quantiles import quantile

__all__ = [
    "ArrayUnlabelled",
    "Block",
    "Coefficients",
    "Formula",
    "LinearLoss",
    "LogisticLoss",
    "Loss",
    "MeanLoss",
    "PoissonLoss",
    "SuppliedWeights",
    "Unlabelled",
    "from_population",
    "heuristic_spreads",
    "influence_spreads",
    "linear_regression",
    "logistic_regression",
    "m_estimate",
    "mean_vector",
    "poisson_regression",
    "quantile",
    "regress",
]
