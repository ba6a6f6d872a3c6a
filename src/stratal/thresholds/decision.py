"""Which candidate sets are accepted: step-down max-t, or a fixed sequence of a monotone metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import BoolArray, FloatArray, Record
from stratal.metrics.threshold_goal import SetRequirement
from stratal.thresholds.evidence import SetEvidence
from stratal.thresholds.sets import CandidateSets
from stratal.thresholds.step_down import DRAWS, set_correlations, step_down


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision(Record):
    """Which sets (J,) are accepted, and the local error (J,) of each."""

    accepted: BoolArray
    local_errors: FloatArray


def decide(
    requirement: SetRequirement,
    evidence: SetEvidence,
    sets: CandidateSets,
    error: float,
    draws: int = DRAWS,
) -> Decision:
    """Return the sets for which the requirement holds, all together with probability 1 − `error`.

    Sets that would not pass without a fault take no part: where their labels are does not depend on outcomes.
    After two rounds it does a little, for which there is simulation alone (benchmarks/results/thresholds.md).
    """
    count = len(sets.group)
    accepted = np.zeros(count, dtype=bool)
    local_errors = np.full(count, error)
    if requirement.is_monotone:
        return _decide_monotone(requirement, evidence, sets, error)
    assert evidence.faults is not None
    p_values = evidence.faults.p_values(requirement.faults)
    tested = evidence.can_pass(requirement.faults, error)
    if tested.any():
        correlations = set_correlations(evidence.weights[:, tested])
        accepted[tested], local_errors[tested] = step_down(p_values[tested], correlations, error, draws)
    return Decision(accepted=accepted, local_errors=local_errors)


def _decide_monotone(
    requirement: SetRequirement, evidence: SetEvidence, sets: CandidateSets, error: float
) -> Decision:
    """Return the accepted sets of a rate that changes in one direction: a fixed sequence in each group.

    Sets of two scores are not nested; each then has its share of the error.
    """
    is_nested = sets.thresholds.shape[1] == 1
    divisor = len(sets.groups) if is_nested else len(sets.group)
    local_errors = np.full(len(sets.group), error / divisor)
    passing = evidence.limits(local_errors)[1] <= requirement.faults
    # All units together have a recall of 1, which says nothing about the score.
    is_trivial = requirement.seeks_smallest_set & np.all(np.isinf(sets.thresholds), axis=1)
    accepted = passing & ~is_trivial
    for code in range(len(sets.groups)):
        places = np.flatnonzero((sets.group == code) & ~is_trivial)
        if is_nested:
            # The set that satisfies it most surely comes first.
            if requirement.seeks_smallest_set:
                order = places[::-1]
            else:
                order = places
            accepted[order] = np.logical_and.accumulate(passing[order])
        # They are accepted with another set of their group.
        accepted[is_trivial & (sets.group == code)] = accepted[places].any()
    return Decision(accepted=accepted, local_errors=local_errors)
