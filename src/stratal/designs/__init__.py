"""Designs: the random mechanisms that select units, and the variance of any weighted mean under each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratal.names import import_on_use

if TYPE_CHECKING:
    from stratal.designs.clusters import ClusterSample as ClusterSample
    from stratal.designs.clusters import ClusterWeighting as ClusterWeighting
    from stratal.designs.disagreements import Disagreements as Disagreements
    from stratal.designs.external_weights import WithReplacementWeighting as WithReplacementWeighting
    from stratal.designs.margins import fit_margins as fit_margins
    from stratal.designs.margins import post_stratify as post_stratify
    from stratal.designs.poisson import Poisson as Poisson
    from stratal.designs.poisson import PoissonWeighting as PoissonWeighting
    from stratal.designs.poisson import ProportionalToSize as ProportionalToSize
    from stratal.designs.poisson import inclusion_probabilities as inclusion_probabilities
    from stratal.designs.sample import Design as Design
    from stratal.designs.sample import Sample as Sample
    from stratal.designs.sample import derive_question as derive_question
    from stratal.designs.stratified import SimpleRandom as SimpleRandom
    from stratal.designs.stratified import Stratified as Stratified
    from stratal.designs.stratified import StratifiedWeighting as StratifiedWeighting
    from stratal.designs.successive import Successive as Successive
    from stratal.designs.systematic import Systematic as Systematic
    from stratal.designs.weighting import Weighting as Weighting

_NAMES = {
    "stratal.designs.clusters": "ClusterSample ClusterWeighting",
    "stratal.designs.disagreements": "Disagreements",
    "stratal.designs.external_weights": "WithReplacementWeighting",
    "stratal.designs.margins": "fit_margins post_stratify",
    "stratal.designs.poisson": "Poisson PoissonWeighting ProportionalToSize inclusion_probabilities",
    "stratal.designs.sample": "Design Sample derive_question",
    "stratal.designs.stratified": "SimpleRandom Stratified StratifiedWeighting",
    "stratal.designs.successive": "Successive",
    "stratal.designs.systematic": "Systematic",
    "stratal.designs.weighting": "Weighting",
}
__all__ = sorted(" ".join(_NAMES.values()).split())
__getattr__, __dir__ = import_on_use(__name__, _NAMES)
