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
    """Which sets (J,) are accepted, and the local significance level (J,) of the test of each set alone."""

    accepted: BoolArray
    local_levels: FloatArray


def decide(
    requirement: SetRequirement,
    evidence: SetEvidence,
    sets: CandidateSets,
    error: float,
    draws: int = DRAWS,
) -> Decision:
    """Return the sets for which the requirement holds: for all of them together with probability 1 − `error`.

    Sets that would not pass even without a fault are not tested. This keeps the error, because the number of
    labels in a set does not depend on outcomes. After two rounds it depends on them slightly; the evidence
    for that case is only simulation (benchmarks/results/thresholds.md).
    """
    count = len(sets.group)
    accepted = np.zeros(count, dtype=bool)
    local_levels = np.full(count, error)
    if requirement.is_monotone:
        return _decide_monotone(requirement, evidence, sets, error)
    # The metrics that are not monotone are means, whose evidence has totals.
    assert evidence.totals is not None
    p_values = evidence.totals.p_values(requirement.max_fault_rate)
    tested = evidence.can_pass(requirement.max_fault_rate, error)
    if tested.any():
        correlations = set_correlations(evidence.weights[:, tested])
        accepted[tested], local_levels[tested] = step_down(p_values[tested], correlations, error, draws)
    return Decision(accepted=accepted, local_levels=local_levels)


def _decide_monotone(
    requirement: SetRequirement, evidence: SetEvidence, sets: CandidateSets, error: float
) -> Decision:
    """Return the accepted sets of a rate that changes in one direction with the threshold.

    The sets of a group are tested in a fixed sequence, up to the first that does not pass. Sets of two scores
    are not nested, and each gets an equal share of the error (Bonferroni).
    """
    is_nested = sets.thresholds.shape[1] == 1
    if is_nested:
        divisor = len(sets.groups)
    else:
        divisor = len(sets.group)
    local_levels = np.full(len(sets.group), error / divisor)
    passing = evidence.limits(local_levels)[1] <= requirement.max_fault_rate
    # The set of all units has a recall of 1 for any score, so that it needs no test.
    is_trivial = requirement.seeks_smallest_set & np.all(np.isinf(sets.thresholds), axis=1)
    accepted = passing & ~is_trivial
    for code in range(len(sets.groups)):
        set_indices = np.flatnonzero((sets.group == code) & ~is_trivial)
        if is_nested:
            # The sequence starts with the set that most probably satisfies the requirement.
            if requirement.seeks_smallest_set:
                order = set_indices[::-1]
            else:
                order = set_indices
            accepted[order] = np.logical_and.accumulate(passing[order])
        # The set of all units is accepted only together with another set of its group.
        accepted[is_trivial & (sets.group == code)] = accepted[set_indices].any()
    return Decision(accepted=accepted, local_levels=local_levels)
