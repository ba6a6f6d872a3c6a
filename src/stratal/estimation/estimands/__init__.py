"""The estimands: one class each, whose `kind` is its name in texts, files and commands."""

from stratal.estimation.comparison import Difference as Difference
from stratal.estimation.comparison import Differences as Differences
from stratal.estimation.comparison import Ratio as Ratio
from stratal.estimation.comparison import WinRate as WinRate
from stratal.estimation.estimand import Estimand as Estimand
from stratal.estimation.estimand import Listed as Listed
from stratal.estimation.estimands.classification import F1 as F1
from stratal.estimation.estimands.classification import Accuracy as Accuracy
from stratal.estimation.estimands.classification import Agreement as Agreement
from stratal.estimation.estimands.classification import Average as Average
from stratal.estimation.estimands.classification import BalancedAccuracy as BalancedAccuracy
from stratal.estimation.estimands.classification import ClassReport as ClassReport
from stratal.estimation.estimands.classification import FalseDiscoveryRate as FalseDiscoveryRate
from stratal.estimation.estimands.classification import FBeta as FBeta
from stratal.estimation.estimands.classification import Jaccard as Jaccard
from stratal.estimation.estimands.classification import Kappa as Kappa
from stratal.estimation.estimands.classification import MatthewsCorrelation as MatthewsCorrelation
from stratal.estimation.estimands.classification import NegativePredictiveValue as NegativePredictiveValue
from stratal.estimation.estimands.classification import Precision as Precision
from stratal.estimation.estimands.classification import PredictedPrevalence as PredictedPrevalence
from stratal.estimation.estimands.classification import Prevalence as Prevalence
from stratal.estimation.estimands.classification import Recall as Recall
from stratal.estimation.estimands.classification import Specificity as Specificity
from stratal.estimation.estimands.functions import MeanFunction as MeanFunction
from stratal.estimation.estimands.functions import RatioOfMeans as RatioOfMeans
from stratal.estimation.estimands.judges import JudgeReport as JudgeReport
from stratal.estimation.estimands.losses import CrossEntropy as CrossEntropy
from stratal.estimation.estimands.losses import SquaredError as SquaredError
from stratal.estimation.estimands.means import LevelMeans as LevelMeans
from stratal.estimation.estimands.means import Mean as Mean
from stratal.estimation.estimands.means import Means as Means
from stratal.estimation.estimands.ranking import AUC as AUC
from stratal.estimation.estimands.ranking import AveragePrecision as AveragePrecision
from stratal.estimation.estimands.scores import Bias as Bias
from stratal.estimation.estimands.scores import CalibrationError as CalibrationError
from stratal.estimation.estimands.scores import IntraclassCorrelation as IntraclassCorrelation
from stratal.estimation.estimands.scores import PearsonCorrelation as PearsonCorrelation
from stratal.estimation.estimands.scores import SpearmanCorrelation as SpearmanCorrelation
from stratal.estimation.estimands.scores import WeightedKappa as WeightedKappa

__all__ = [name for name in dir() if name[0].isupper()]
