"""Prediction-powered M-estimation under any design: means, quantiles, regressions, or a loss of one's own."""

from stratal.estimation.regression.from_sample import Formula as Formula
from stratal.estimation.regression.from_sample import regress as regress
from stratal.estimation.regression.losses import ArrayUnlabelled as ArrayUnlabelled
from stratal.estimation.regression.losses import Block as Block
from stratal.estimation.regression.losses import LinearLoss as LinearLoss
from stratal.estimation.regression.losses import LogisticLoss as LogisticLoss
from stratal.estimation.regression.losses import Loss as Loss
from stratal.estimation.regression.losses import MeanLoss as MeanLoss
from stratal.estimation.regression.losses import PoissonLoss as PoissonLoss
from stratal.estimation.regression.losses import Unlabelled as Unlabelled
from stratal.estimation.regression.m_estimation import Coefficients as Coefficients
from stratal.estimation.regression.m_estimation import linear_regression as linear_regression
from stratal.estimation.regression.m_estimation import logistic_regression as logistic_regression
from stratal.estimation.regression.m_estimation import m_estimate as m_estimate
from stratal.estimation.regression.m_estimation import mean_vector as mean_vector
from stratal.estimation.regression.m_estimation import poisson_regression as poisson_regression
from stratal.estimation.regression.quantiles import quantile as quantile

__all__ = [name for name in dir() if callable(globals()[name]) and not name.startswith("_")]
