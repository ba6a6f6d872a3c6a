"""Designs: the random mechanisms that pick units, and the variance of any weighted mean under each."""

from stratal.design.base import Design
from stratal.design.clusters import ClusterSample
from stratal.design.given import GivenWeights, SeparateSamples
from stratal.design.inclusion import inclusion_probabilities
from stratal.design.poisson import Poisson
from stratal.design.proportional_to_size import ProportionalToSize
from stratal.design.stratified import SimpleRandom, Stratified
from stratal.design.systematic import Systematic

__all__ = [
    "ClusterSample",
    "Design",
    "GivenWeights",
    "Poisson",
    "ProportionalToSize",
    "SeparateSamples",
    "SimpleRandom",
    "Stratified",
    "Systematic",
    "inclusion_probabilities",
]
