"""The evidence of the labels on the required metric, for every candidate set.

Each metric is a rate of faults, or 1 minus one. A fault is a wrong accepted answer, an accepted unit of
another class, or for recall a unit of the class that is not accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.metrics.threshold_goal import ERROR, FALSE_POSITIVE_RATE, PRECISION, RECALL
from stratal.protocols import Keywords
from stratal.thresholds.limits import RegionMean, WeightedTotals, part_limits
from stratal.thresholds.sets import (
    CandidateSets,
    LabelledScores,
    RegionWeights,
    estimated_weights,
    region_weights,
    variance_reduction,
)

# If at most this share of a set lies in strata without a label, the estimate uses the labels of the others.
_MAX_UNLABELLED_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEvidence:
    """The evidence of labels on the rate of faults in each of J sets: a mean, or a ratio of means.

    Parameters
    ----------
    weights : float (m, J)
        Weights of the labels, which determine the correlations of the sets.
    faults, successes : WeightedTotals, optional
        Totals of the faults and of the other labels, if the rate is a mean.
    part, rest : RegionMean, optional
        If the rate is the ratio part / (part + rest).
    """

    weights: FloatArray
    faults: WeightedTotals | None = None
    successes: WeightedTotals | None = None
    part: RegionMean | None = None
    rest: RegionMean | None = None

    @property
    def estimates(self) -> FloatArray:
        """Estimated rates of faults (J,); NaN if too large a share of the set has no labels."""
        if self.faults is not None:
            labelled = (self.faults.largest > 0) & (self.faults.unlabelled <= _MAX_UNLABELLED_SHARE)
            covered = np.where(labelled, 1.0 - self.faults.unlabelled, 1.0)
            return np.where(labelled, self.faults.total / covered, np.nan)
        assert self.part is not None
        assert self.rest is not None
        total = self.part.value + self.rest.value
        for mean in (self.part, self.rest):
            # A total of 0 gives NaN below.
            total = np.where(mean.successes.unlabelled * mean.share > _MAX_UNLABELLED_SHARE, 0.0, total)
        return np.where(total > 0, self.part.value / np.where(total > 0, total, 1.0), np.nan)

    def limits(self, error: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Return one-sided lower and upper limits (J,), each at this error (J,)."""
        if self.faults is not None:
            assert self.successes is not None
            return 1.0 - self.successes.upper(error), self.faults.upper(error)
        assert self.part is not None
        assert self.rest is not None
        return part_limits(self.part, self.rest, error)

    def can_pass(self, limit: float, error: float) -> BoolArray:
        """Return which sets (J,) would pass alone if their labels showed no fault."""
        # A ratio is tested in a fixed sequence, which skips no set.
        if self.faults is None:
            return np.ones(self.weights.shape[1], dtype=bool)
        zeros = self.faults.total * 0.0
        return replace(self.faults, total=zeros, square=zeros).p_values(limit) <= error

    def scaled(self, factor: float) -> SetEvidence:
        """Return the evidence of `factor` times as many labels with the same rates."""
        fields = {"faults": self.faults, "successes": self.successes, "part": self.part, "rest": self.rest}
        scaled: Keywords = {name: value.scaled(factor) for name, value in fields.items() if value is not None}
        return replace(self, **scaled)


def set_evidence(metric: str, labels: LabelledScores, sets: CandidateSets) -> SetEvidence:
    """Return the evidence on a metric for every set."""
    inside = sets.members(labels.scores, labels.group)
    weighted = _region_weights(labels, sets, inside, is_inside=True)
    if metric in (ERROR, PRECISION):
        return mean_evidence(weighted, 1.0 - labels.outcomes, labels)
    in_group = labels.group[:, None] == sets.group
    outside = in_group & ~inside
    # The rate is the share of faulty units in a domain: of the class, or of the other classes.
    if metric == RECALL:
        domain = labels.outcomes
        faulty = outside
    else:
        domain = 1.0 - labels.outcomes
        faulty = inside
    if labels.is_simple:
        # The labels of the domain are a simple random sample of the domain, so that limits are exact.
        in_domain = estimated_weights(in_group, domain)
        fraction = _variance_reduction_of_sample(labels)
        return mean_evidence(replace(in_domain, fraction=in_domain.fraction + fraction), faulty, labels)
    outside_weights = _region_weights(labels, sets, outside, is_inside=False)
    inside_mean = _region_means(weighted, domain, inside, labels)
    outside_mean = _region_means(outside_weights, domain, outside, labels)
    if metric == FALSE_POSITIVE_RATE:
        return SetEvidence(weights=weighted.weights, part=inside_mean, rest=outside_mean)
    return SetEvidence(weights=weighted.weights, part=outside_mean, rest=inside_mean)


def f1_evidence(labels: LabelledScores, sets: CandidateSets) -> SetEvidence:
    """Return the evidence on TP / (TP + FP + TP + FN), half of F1; TP + FP is the known share of the set.

    For a simple random sample (see `is_simple`), return that on TP / (TP + FP + FN), whose limits are exact.
    """
    inside = sets.members(labels.scores, labels.group)
    if labels.is_simple:
        either = np.maximum(labels.outcomes[:, None], inside)
        weighted = estimated_weights(either > 0, labels.weights)
        return mean_evidence(weighted, labels.outcomes[:, None] * inside, labels)
    weighted = _region_weights(labels, sets, inside, is_inside=True)
    hits = _region_means(weighted, labels.outcomes, inside, labels)
    outside_weights = _region_weights(labels, sets, ~inside, is_inside=False)
    misses = _region_means(outside_weights, labels.outcomes, ~inside, labels)
    if labels.has_exact_sizes:
        shares = weighted.share
    else:
        shares = labels.weights @ inside
    return SetEvidence(weights=weighted.weights, part=hits, rest=replace(misses, shift=shares))


def _variance_reduction_of_sample(labels: LabelledScores) -> float:
    """Return `variance_reduction` of a simple random sample; 0 if the population's size is not known."""
    if labels.group_sizes is None or not labels.has_exact_sizes or not labels.is_finite:
        return 0.0
    return float(variance_reduction(len(labels.outcomes), int(labels.group_sizes.sum())))


def _region_weights(
    labels: LabelledScores, sets: CandidateSets, members: BoolArray, *, is_inside: bool
) -> RegionWeights:
    """Return the weights for the regions with these labelled members (m, J), inside or outside the sets."""
    if labels.sizes is None or labels.group_sizes is None or not labels.has_exact_sizes:
        return estimated_weights(members, labels.weights)
    sizes_of_group = labels.group_sizes[:, sets.group]
    if is_inside:
        sizes = labels.sizes
    else:
        sizes = sizes_of_group - labels.sizes
    return region_weights(members, labels.stratum, sizes, sizes_of_group, is_finite=labels.is_finite)


def mean_evidence(weighted: RegionWeights, faults: FloatArray, labels: LabelledScores) -> SetEvidence:
    """Return the evidence on the mean of faults (m,) or (m, J) in each region."""
    options: Keywords = {
        "cluster": labels.cluster,
        "unlabelled": weighted.unlabelled,
        "fraction": weighted.fraction,
    }
    return SetEvidence(
        weights=weighted.weights,
        faults=WeightedTotals.of(weighted.weights, faults, **options),
        successes=WeightedTotals.of(weighted.weights, 1.0 - faults, **options),
    )


def _region_means(
    weighted: RegionWeights, domain: FloatArray, members: BoolArray, labels: LabelledScores
) -> RegionMean:
    """Return the mean over a group of the domain (m,) within each region (m, J)."""
    if not labels.has_exact_sizes:
        # The region's share is not known: the mean is over all labels of the group.
        all_weights = estimated_weights(np.ones_like(members), labels.weights)
        evidence = mean_evidence(all_weights, domain[:, None] * members, labels)
    else:
        evidence = mean_evidence(weighted, domain, labels)
    assert evidence.faults is not None
    assert evidence.successes is not None
    return RegionMean(successes=evidence.faults, failures=evidence.successes, share=weighted.share)
