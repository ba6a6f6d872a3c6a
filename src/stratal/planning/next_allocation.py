"""The allocation and the design of a further round, given the standard deviations of the strata."""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs import Stratified
from stratal.designs.extending import last_round
from stratal.designs.sample import Design, Sample
from stratal.estimation.estimand import LabelledOutcomes
from stratal.strata import Allocation
from stratal.strata.allocation import neyman_importance
from stratal.strata.integer_allocation import AllocationBounds, optimal_integers


def next_allocation(
    sizes: IntArray,
    drawn: IntArray,
    deviations: FloatArray,
    additional: int,
    *,
    allocation_of: str = "total",
    minimums: IntArray | None = None,
) -> IntArray:
    """Return the total n_h (H,) after another round with Neyman's allocation.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    drawn : int (H,)
        Units drawn so far.
    deviations : float (H,)
        S_h.
    additional : int
        Units to add.
    allocation_of : {"total", "remainder"}
        See `next_round`.
    minimums : int (H,), optional
        Minimums of n_h, in addition to the drawn units.
    """
    weights = neyman_importance(sizes, "deviations", deviations)
    if minimums is None:
        lower = drawn
    else:
        lower = np.maximum(drawn, minimums)
    if allocation_of == "total":
        bounds = AllocationBounds(sizes=sizes, lower=lower, upper=sizes)
        return optimal_integers(weights, bounds, int(drawn.sum()) + additional)
    bounds = AllocationBounds(sizes=sizes, lower=lower - drawn, upper=sizes - drawn)
    return drawn + optimal_integers(weights, bounds, additional)


def design_with_counts(
    sample: Sample,
    n_h: IntArray,
    rule_text: str,
    *,
    label_based: bool,
    outcomes: LabelledOutcomes | None = None,
) -> Design:
    """Return the design of the sample with n_h (H,) units after the next round.

    `rule_text` describes the allocation in a note. `label_based` states whether n_h depends on labels.
    `outcomes` are the existing ones, for designs without strata.
    """
    strata = sample.design.strata
    total = int(n_h.sum())
    if strata is None:
        return sample.design.next_round_design(sample, total - sample.size, outcomes)
    assert sample.design.allocation is not None
    method = sample.design.allocation.method
    if label_based:
        method = "opt-a1" if last_round(sample) == 1 else "opt-a2"
    allocation = Allocation(
        n_h=n_h,
        method=method,
        budget=total,
        minimum=sample.n_h,
        maximum=strata.sizes,
        notes=(f"Round {last_round(sample) + 1}: {rule_text}.",),
    )
    return Stratified(strata=strata, allocation=allocation)
