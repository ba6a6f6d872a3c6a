"""Rounds of labels whose shares follow from the labels so far, for thousands of replicates at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.simulation.adaptive_allocation import (
    allocate_remainder,
    recalibrated_deviations,
    replicate_deviations,
)
from stratal.simulation.draws import Draws, StratumSums, Truth
from stratal.strata import Strata
from stratal.strata.integer_allocation import AllocationBounds, optimal_integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A population in strata, and its truth."""

    strata: Strata
    truth: Truth

    @property
    def sizes(self) -> IntArray:
        return self.strata.sizes


def recalibrated(sums: StratumSums, pool: Pool) -> FloatArray:
    """Return the default's S_h (R, H)."""
    return recalibrated_deviations(sums, pool.truth.centre, pool.strata, binary=pool.truth.binary)


def raw(sums: StratumSums, pool: Pool) -> FloatArray:
    """Return s_h (R, H) of Kumar & Raj's eq. 3; where no labels differ, the same in every stratum."""
    found = replicate_deviations(sums)
    return np.where(found.sum(axis=1, keepdims=True) > 0, found, 1.0)


DEVIATIONS: dict[str, Callable[[StratumSums, Pool], FloatArray]] = {"recalibrated": recalibrated, "raw": raw}


def rounds(pool: Pool, draws: Draws, pilot: IntArray, budget: int, step: int, deviations: str) -> IntArray:
    """Return n_h (R, H) after rounds of `step` labels: Neyman's shares of all of them.

    With deviations "printed" they are Kumar & Raj's: raw S_h, and shares of the step's labels alone.
    """
    n_h, sizes = pilot[None], pool.sizes
    for drawn in range(int(pilot.sum()), budget, step):
        total, sums = min(drawn + step, budget), draws.sums(n_h)
        if deviations == "printed":
            n_h = n_h + allocate_remainder(sums, pool.strata, n_h, total - drawn)
        else:
            importance = sizes * DEVIATIONS[deviations](sums, pool)
            n_h = optimal_integers(importance, AllocationBounds(sizes=sizes, lower=n_h, upper=sizes), total)
    return n_h
