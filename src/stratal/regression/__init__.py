"""Prediction-powered M-estimation under any design: means, quantiles, regressions, user-defined losses."""

from stratal.regression.features import Formula as Formula
from stratal.regression.from_sample import regress as regress
from stratal.regression.losses import ArrayUnlabelled as ArrayUnlabelled
from stratal.regression.losses import Block as Block
from stratal.regression.losses import LinearLoss as LinearLoss
from stratal.regression.losses import LogisticLoss as LogisticLoss
from stratal.regression.losses import Loss as Loss
from stratal.regression.losses import MeanLoss as MeanLoss
from stratal.regression.losses import PoissonLoss as PoissonLoss
from stratal.regression.losses import Unlabelled as Unlabelled
from stratal.regression.m_estimation import Coefficients as Coefficients
from stratal.regression.m_estimation import linear_regression as linear_regression
from stratal.regression.m_estimation import logistic_regression as logistic_regression
from stratal.regression.m_estimation import m_estimate as m_estimate
from stratal.regression.m_estimation import mean_vector as mean_vector
from stratal.regression.m_estimation import poisson_regression as poisson_regression
from stratal.regression.quantiles import quantile as quantile

__all__ = [name for name in dir() if callable(globals()[name]) and not name.startswith("_")]
