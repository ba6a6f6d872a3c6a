"""Prediction-powered M-estimation under any design: means, quantiles, regressions, or a loss of one's own."""

from stratal.regression.from_sample import Formula, from_population, regress
from stratal.regression.label_allocation import heuristic_spreads, influence_spreads
from stratal.regression.losses import (
    GeneralisedLinear,
    LinearLoss,
    LogisticLoss,
    Loss,
    LossSums,
    MeanLoss,
    PoissonLoss,
)
from stratal.regression.m_estimation import (
    Coefficients,
    SuppliedWeights,
    linear_regression,
    logistic_regression,
    m_estimate,
    mean_vector,
    poisson_regression,
)
from stratal.regression.quantiles import quantile
from stratal.regression.unlabelled import ArrayUnlabelled, BatchedUnlabelled, Block, Unlabelled

__all__ = [
    "ArrayUnlabelled",
    "BatchedUnlabelled",
    "Block",
    "Coefficients",
    "Formula",
    "GeneralisedLinear",
    "LinearLoss",
    "LogisticLoss",
    "Loss",
    "LossSums",
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
