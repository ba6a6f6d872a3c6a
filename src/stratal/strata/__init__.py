"""Strata: how a population is divided, and how a labelling budget is divided among the strata."""

from stratal.population.rules import Categories, Crossed, CutPoints, Everything, NearestCentre, Rule
from stratal.strata.allocation import Allocation, allocate, equal, neyman, proportional
from stratal.strata.joint_allocation import allocate_several
from stratal.strata.standard_deviations import smoothed_standard_deviations
from stratal.strata.strata import Strata
from stratal.strata.stratification import STRATIFICATION_METHODS, stratify

__all__ = [
    "STRATIFICATION_METHODS",
    "Allocation",
    "Categories",
    "Crossed",
    "CutPoints",
    "Everything",
    "NearestCentre",
    "Rule",
    "Strata",
    "allocate",
    "allocate_several",
    "equal",
    "neyman",
    "proportional",
    "smoothed_standard_deviations",
    "stratify",
]
