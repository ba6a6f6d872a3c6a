"""Estimands: the quantities that labels are planned for and estimate. Public as `stratal.estimands`."""

from stratal.estimation.estimand import Estimand
from stratal.estimation.estimands.class_metrics import (
    F1,
    Accuracy,
    Average,
    BalancedAccuracy,
    FBeta,
    Jaccard,
    MatthewsCorrelation,
    NegativePredictiveValue,
    Precision,
    Prevalence,
    Recall,
    Specificity,
)
from stratal.estimation.estimands.listed import Listed
from stratal.estimation.estimands.means import LevelMeans, Mean, Means
from stratal.estimation.estimands.models import Difference, Ratio, WinRate
from stratal.estimation.estimands.pairs import Differences
from stratal.estimation.estimands.quantile import Quantile

__all__ = [
    "F1",
    "Accuracy",
    "Average",
    "BalancedAccuracy",
    "Difference",
    "Differences",
    "Estimand",
    "FBeta",
    "Jaccard",
    "LevelMeans",
    "Listed",
    "MatthewsCorrelation",
    "Mean",
    "Means",
    "NegativePredictiveValue",
    "Precision",
    "Prevalence",
    "Quantile",
    "Ratio",
    "Recall",
    "Specificity",
    "WinRate",
]
