"""Strata: every way of dividing a population, the rules that assign units, and the result."""

from stratal.strata.building import METHODS, stratify
from stratal.strata.crossed import Crossed
from stratal.strata.features import NearestCentre
from stratal.strata.rule import Categories, CutPoints, Everything, Rule
from stratal.strata.strata import Strata

__all__ = [
    "METHODS",
    "Categories",
    "Crossed",
    "CutPoints",
    "Everything",
    "NearestCentre",
    "Rule",
    "Strata",
    "stratify",
]
