"""The estimands: one class each, whose `kind` is its name in texts, files and commands."""

from stratal.estimation.comparison import Difference, Differences, Ratio, WinRate
from stratal.estimation.estimand import Estimand, Listed
from stratal.estimation.estimands.classification import (
    F1,
    Accuracy,
    Agreement,
    Average,
    BalancedAccuracy,
    ClassReport,
    FalseDiscoveryRate,
    FBeta,
    Jaccard,
    Kappa,
    MatthewsCorrelation,
    NegativePredictiveValue,
    Precision,
    PredictedPrevalence,
    Prevalence,
    Recall,
    Specificity,
)
from stratal.estimation.estimands.functions import MeanFunction, RatioOfMeans
from stratal.estimation.estimands.judges import JudgeReport
from stratal.estimation.estimands.losses import CrossEntropy, SquaredError
from stratal.estimation.estimands.means import LevelMeans, Mean, Means
from stratal.estimation.estimands.ranking import AUC, AveragePrecision
from stratal.estimation.estimands.scores import (
    Bias,
    CalibrationError,
    IntraclassCorrelation,
    PearsonCorrelation,
    SpearmanCorrelation,
    WeightedKappa,
)

__all__ = [
    "AUC",
    "F1",
    "Accuracy",
    "Agreement",
    "Average",
    "AveragePrecision",
    "BalancedAccuracy",
    "Bias",
    "CalibrationError",
    "ClassReport",
    "CrossEntropy",
    "Difference",
    "Differences",
    "Estimand",
    "FBeta",
    "FalseDiscoveryRate",
    "IntraclassCorrelation",
    "Jaccard",
    "JudgeReport",
    "Kappa",
    "LevelMeans",
    "Listed",
    "MatthewsCorrelation",
    "Mean",
    "MeanFunction",
    "Means",
    "NegativePredictiveValue",
    "PearsonCorrelation",
    "Precision",
    "PredictedPrevalence",
    "Prevalence",
    "Ratio",
    "RatioOfMeans",
    "Recall",
    "SpearmanCorrelation",
    "Specificity",
    "SquaredError",
    "WeightedKappa",
    "WinRate",
]
