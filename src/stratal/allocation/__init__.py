"""Sharing a budget of labels among strata: rules as pure functions, and `allocate` for a `Strata`."""

from __future__ import annotations

from stratal.allocation.allocation import METHODS, Allocation, allocate, residual_deviations
from stratal.allocation.cost import cost_optimal
from stratal.allocation.rates import smoothed_standard_deviations
from stratal.allocation.rules import (
    equal,
    neyman,
    power,
    proportional,
    residual,
    robust,
    robust_standard_deviations,
)
from stratal.allocation.several import allocate_several
from stratal.allocation.several_task import SharedAllocation

__all__ = [
    "METHODS",
    "Allocation",
    "SharedAllocation",
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
]
