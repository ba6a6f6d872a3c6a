"""Strata: how a population is divided, and how a budget of labels is shared among the parts."""

from stratal.population.rules.centres import NearestCentre
from stratal.population.rules.crossed import Crossed
from stratal.population.rules.rule import Categories, CutPoints, Everything, Rule
from stratal.strata.allocation import Allocation, allocate, residual_deviations
from stratal.strata.cost import cost_optimal
from stratal.strata.rates import smoothed_standard_deviations
from stratal.strata.rules import (
    equal,
    neyman,
    power,
    proportional,
    residual,
    robust,
    robust_standard_deviations,
)
from stratal.strata.several import allocate_several
from stratal.strata.several_task import SharedAllocation
from stratal.strata.strata import METHODS, Strata, stratify

__all__ = [
    "METHODS",
    "Allocation",
    "Categories",
    "Crossed",
    "CutPoints",
    "Everything",
    "NearestCentre",
    "Rule",
    "SharedAllocation",
    "Strata",
    "allocate",
    "allocate_several",
    "cost_optimal",
    "equal",
    "neyman",
    "power",
    "proportional",
    "residual",
    "residual_deviations",
    "robust",
    "robust_standard_deviations",
    "smoothed_standard_deviations",
    "stratify",
]
