"""Designs: the random mechanisms that pick units, and the variance of any weighted mean under each."""

from stratal.designs.calibrated_weighting import CalibratedWeighting
from stratal.designs.cluster_weighting import ClusterWeighting
from stratal.designs.clusters import ClusterSample
from stratal.designs.given import GivenWeights, SeparateSamples
from stratal.designs.inclusion import inclusion_probabilities
from stratal.designs.margins import Margins, fit_margins
from stratal.designs.poisson import Poisson
from stratal.designs.poisson_weighting import PoissonWeighting
from stratal.designs.post_strata import PostStratified, post_stratify
from stratal.designs.proportional_to_size import ProportionalToSize
from stratal.designs.replacement_weighting import WithReplacementWeighting
from stratal.designs.sample import Design, Sample
from stratal.designs.stratified import SimpleRandom, Stratified
from stratal.designs.survey_weighting import SurveyWeighting
from stratal.designs.systematic import Systematic
from stratal.designs.systematic_weighting import SystematicWeighting
from stratal.designs.weighting import StratifiedWeighting, Weighting

__all__ = [
    "CalibratedWeighting",
    "ClusterSample",
    "ClusterWeighting",
    "Design",
    "GivenWeights",
    "Margins",
    "Poisson",
    "PoissonWeighting",
    "PostStratified",
    "ProportionalToSize",
    "Sample",
    "SeparateSamples",
    "SimpleRandom",
    "Stratified",
    "StratifiedWeighting",
    "SurveyWeighting",
    "Systematic",
    "SystematicWeighting",
    "Weighting",
    "WithReplacementWeighting",
    "fit_margins",
    "inclusion_probabilities",
    "post_stratify",
]
