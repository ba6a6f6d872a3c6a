"""Designs: the random mechanisms that select units, and the variance of any weighted mean under each."""

from stratal.designs.clusters import ClusterSample, ClusterWeighting
from stratal.designs.disagreements import Disagreements
from stratal.designs.external_weights import WithReplacementWeighting
from stratal.designs.margins import fit_margins, post_stratify
from stratal.designs.poisson import Poisson, PoissonWeighting, ProportionalToSize, inclusion_probabilities
from stratal.designs.sample import Design, Sample, derive_question
from stratal.designs.stratified import SimpleRandom, Stratified, StratifiedWeighting
from stratal.designs.successive import Successive
from stratal.designs.systematic import Systematic
from stratal.designs.weighting import Weighting

__all__ = [
    "ClusterSample",
    "ClusterWeighting",
    "Design",
    "Disagreements",
    "Poisson",
    "PoissonWeighting",
    "ProportionalToSize",
    "Sample",
    "SimpleRandom",
    "Stratified",
    "StratifiedWeighting",
    "Successive",
    "Systematic",
    "Weighting",
    "WithReplacementWeighting",
    "derive_question",
    "fit_margins",
    "inclusion_probabilities",
    "post_stratify",
]
