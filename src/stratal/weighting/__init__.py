"""A design as arrays: weights, covariances of weighted means, degrees of freedom."""

from stratal.weighting.calibrated_weighting import CalibratedWeighting
from stratal.weighting.cluster_weighting import ClusterWeighting
from stratal.weighting.poisson_weighting import PoissonWeighting
from stratal.weighting.replacement_weighting import WithReplacementWeighting
from stratal.weighting.survey_weighting import SurveyWeighting
from stratal.weighting.systematic_weighting import SystematicWeighting
from stratal.weighting.weighting import StratifiedWeighting, Weighting

__all__ = [
    "CalibratedWeighting",
    "ClusterWeighting",
    "PoissonWeighting",
    "StratifiedWeighting",
    "SurveyWeighting",
    "SystematicWeighting",
    "Weighting",
    "WithReplacementWeighting",
]
