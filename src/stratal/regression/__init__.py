"""Prediction-powered M-estimation under any design: means, quantiles, regressions, or a loss of one's own."""

from stratal.regression.coefficients import MEstimate as MEstimate
from stratal.regression.formula import Formula as Formula
from stratal.regression.from_sample import from_population as from_population
from stratal.regression.from_sample import regress as regress
from stratal.regression.label_allocation import heuristic_spreads as heuristic_spreads
from stratal.regression.label_allocation import influence_spreads as influence_spreads
from stratal.regression.losses import GeneralisedLinear as GeneralisedLinear
from stratal.regression.losses import LinearLoss as LinearLoss
from stratal.regression.losses import LogisticLoss as LogisticLoss
from stratal.regression.losses import Loss as Loss
from stratal.regression.losses import LossSums as LossSums
from stratal.regression.losses import MeanLoss as MeanLoss
from stratal.regression.losses import PoissonLoss as PoissonLoss
from stratal.regression.m_estimation import m_estimate as m_estimate
from stratal.regression.models import SuppliedWeights as SuppliedWeights
from stratal.regression.models import linear_regression as linear_regression
from stratal.regression.models import logistic_regression as logistic_regression
from stratal.regression.models import mean_vector as mean_vector
from stratal.regression.models import poisson_regression as poisson_regression
from stratal.regression.quantiles import QuantileEstimate as QuantileEstimate
from stratal.regression.quantiles import quantile as quantile
from stratal.regression.unlabelled import ArrayUnlabelled as ArrayUnlabelled
from stratal.regression.unlabelled import BatchedUnlabelled as BatchedUnlabelled
from stratal.regression.unlabelled import Block as Block
from stratal.regression.unlabelled import Unlabelled as Unlabelled
