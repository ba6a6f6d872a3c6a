"""Strata: how a population is divided, and how a labelling budget is divided among the strata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratal.names import import_on_use

if TYPE_CHECKING:
    from stratal.population.rules import Categories as Categories
    from stratal.population.rules import Crossed as Crossed
    from stratal.population.rules import CutPoints as CutPoints
    from stratal.population.rules import Everything as Everything
    from stratal.population.rules import NearestCentre as NearestCentre
    from stratal.population.rules import Rule as Rule
    from stratal.strata.allocation import Allocation as Allocation
    from stratal.strata.allocation import allocate as allocate
    from stratal.strata.allocation import equal as equal
    from stratal.strata.allocation import neyman as neyman
    from stratal.strata.allocation import proportional as proportional
    from stratal.strata.joint_allocation import allocate_several as allocate_several
    from stratal.strata.standard_deviations import (
        smoothed_standard_deviations as smoothed_standard_deviations,
    )
    from stratal.strata.strata import Strata as Strata
    from stratal.strata.stratification import STRATIFICATION_METHODS as STRATIFICATION_METHODS
    from stratal.strata.stratification import stratify as stratify

_NAMES = {
    "stratal.population.rules": "Categories Crossed CutPoints Everything NearestCentre Rule",
    "stratal.strata.allocation": "Allocation allocate equal neyman proportional",
    "stratal.strata.joint_allocation": "allocate_several",
    "stratal.strata.standard_deviations": "smoothed_standard_deviations",
    "stratal.strata.strata": "Strata",
    "stratal.strata.stratification": "STRATIFICATION_METHODS stratify",
}
__all__ = sorted(" ".join(_NAMES.values()).split())
__getattr__, __dir__ = import_on_use(__name__, _NAMES)
