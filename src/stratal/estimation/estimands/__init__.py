"""The estimands: one class each, whose `kind` is its name in texts, files and commands."""

from stratal.estimation.comparison import Difference, Differences, Ratio, WinRate
from stratal.estimation.estimand import Estimand, Listed
from stratal.estimation.estimands.classification import (
    F1,
    Accuracy,
    Average,
    BalancedAccuracy,
    ClassReport,
    FBeta,
    Jaccard,
    MatthewsCorrelation,
    NegativePredictiveValue,
    Precision,
    PredictedPrevalence,
    Prevalence,
    Recall,
    Specificity,
)
from stratal.estimation.estimands.functions import MeanFunction, RatioOfMeans
from stratal.estimation.estimands.means import LevelMeans, Mean, Means
from stratal.estimation.estimands.ranking import AUC, AveragePrecision

__all__ = [
    "AUC",
    "F1",
    "Accuracy",
    "Average",
    "AveragePrecision",
    "BalancedAccuracy",
    "ClassReport",
    "Difference",
    "Differences",
    "Estimand",
    "FBeta",
    "Jaccard",
    "LevelMeans",
    "Listed",
    "MatthewsCorrelation",
    "Mean",
    "MeanFunction",
    "Means",
    "NegativePredictiveValue",
    "Precision",
    "PredictedPrevalence",
    "Prevalence",
    "Ratio",
    "RatioOfMeans",
    "Recall",
    "Specificity",
    "WinRate",
]
