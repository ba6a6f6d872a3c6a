"""Prediction-powered M-estimation under any design: means, quantiles, regressions, or a loss of one's own."""

from stratal.estimation.regression.from_sample import Formula, from_population, regress
from stratal.estimation.regression.label_allocation import heuristic_spreads, influence_spreads
from stratal.estimation.regression.losses import (
    GeneralisedLinear,
    LinearLoss,
    LogisticLoss,
    Loss,
    LossSums,
    MeanLoss,
    PoissonLoss,
)
from stratal.estimation.regression.m_estimation import (
    Coefficients,
    SuppliedWeights,
    linear_regression,
    logistic_regression,
    m_estimate,
    mean_vector,
    poisson_regression,
)
from stratal.estimation.regression.quantiles import quantile
from stratal.estimation.regression.unlabelled import ArrayUnlabelled, BatchedUnlabelled, Block, Unlabelled

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
