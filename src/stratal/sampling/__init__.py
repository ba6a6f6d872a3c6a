"""Designs: the random mechanisms that pick units, and the variance of any weighted mean under each."""

from stratal.sampling.clusters import ClusterSample
from stratal.sampling.given import GivenWeights, SeparateSamples
from stratal.sampling.inclusion import inclusion_probabilities
from stratal.sampling.margins import Margins, fit_margins
from stratal.sampling.poisson import Poisson
from stratal.sampling.post_strata import PostStratified, post_stratify
from stratal.sampling.proportional_to_size import ProportionalToSize
from stratal.sampling.sample import Design, Sample
from stratal.sampling.stratified import SimpleRandom, Stratified
from stratal.sampling.systematic import Systematic

__all__ = [
    "ClusterSample",
    "Design",
    "GivenWeights",
    "Margins",
    "Poisson",
    "PostStratified",
    "ProportionalToSize",
    "Sample",
    "SeparateSamples",
    "SimpleRandom",
    "Stratified",
    "Systematic",
    "fit_margins",
    "inclusion_probabilities",
    "post_stratify",
]
