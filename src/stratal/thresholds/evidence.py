"""The evidence of the labels on the required metric, for every candidate set.

Each metric is a rate of faults, or 1 minus one. A fault is a wrong accepted answer, an accepted unit of
another class, or for recall a unit of the class that is not accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray, divide
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
    """The evidence of labels on a rate in each of J sets: the mean of an outcome x, or a ratio of means.

    In `set_evidence`, x is 1 for a fault, so that a smaller rate is better. In `f1_evidence`, it is 1 for a
    true positive.

    Parameters
    ----------
    weights : float (m, J)
        Weights of the labels, which determine the correlations of the sets.
    totals, complement_totals : WeightedTotals, optional
        Totals of x and of 1 − x, if the rate is a mean.
    part, rest : RegionMean, optional
        If the rate is the ratio part / (part + rest).
    """

    weights: FloatArray
    totals: WeightedTotals | None = None
    complement_totals: WeightedTotals | None = None
    part: RegionMean | None = None
    rest: RegionMean | None = None

    @property
    def estimates(self) -> FloatArray:
        """Estimated rates (J,); NaN if too large a share of the set has no labels."""
        if self.totals is not None:
            has_labels = self.totals.largest_weight > 0
            labelled = has_labels & (self.totals.unlabelled <= _MAX_UNLABELLED_SHARE)
            return divide(self.totals.total, 1.0 - self.totals.unlabelled, where=labelled, otherwise=np.nan)
        assert self.part is not None
        assert self.rest is not None
        total = self.part.value + self.rest.value
        for mean in (self.part, self.rest):
            # A total of 0 gives NaN below.
            total = np.where(mean.successes.unlabelled * mean.share > _MAX_UNLABELLED_SHARE, 0.0, total)
        return divide(self.part.value, total, where=total > 0, otherwise=np.nan)

    def limits(self, error: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Return one-sided lower and upper limits (J,), each at this error (J,)."""
        if self.totals is not None:
            assert self.complement_totals is not None
            return 1.0 - self.complement_totals.upper(error), self.totals.upper(error)
        assert self.part is not None
        assert self.rest is not None
        return part_limits(self.part, self.rest, error)

    def can_pass(self, limit: float, error: float) -> BoolArray:
        """Return which sets (J,) would pass without any fault, if no other set were tested at this error.

        The rate must be a mean.
        """
        assert self.totals is not None
        zeros = np.zeros_like(self.totals.total)
        return replace(self.totals, total=zeros, square=zeros).p_values(limit) <= error

    def scaled(self, factor: float) -> SetEvidence:
        """Return the evidence of `factor` times as many labels with the same rates."""
        fields = {
            "totals": self.totals,
            "complement_totals": self.complement_totals,
            "part": self.part,
            "rest": self.rest,
        }
        scaled: Keywords = {name: value.scaled(factor) for name, value in fields.items() if value is not None}
        return replace(self, **scaled)


def set_evidence(metric: str, labels: LabelledScores, sets: CandidateSets) -> SetEvidence:
    """Return the evidence on the rate of faults of a metric for every set.

    For an error or a precision, faults are the labels of 0 in the set, as a share of the set. For recall,
    they are the labels of 1 outside the set, as a share of those in the group. For a false positive rate,
    they are the labels of 0 in the set, as a share of those in the group.
    """
    inside = sets.members(labels.scores, labels.group)
    weighted = _region_weights(labels, sets, inside, is_inside=True)
    if metric in (ERROR, PRECISION):
        return mean_evidence(weighted, 1.0 - labels.outcomes, labels)
    in_group = labels.group[:, None] == sets.group
    outside = in_group & ~inside
    # The rate is the share of faulty units in a domain: of the class, or of the other classes.
    if metric == RECALL:
        in_domain = labels.outcomes
        faults = outside
    else:
        in_domain = 1.0 - labels.outcomes
        faults = inside
    if labels.is_simple:
        # The labels of the domain are a simple random sample of the domain, so that limits are exact.
        domain_weights = estimated_weights(in_group, in_domain)
        reductions = np.full(len(sets.group), _variance_reduction_of_sample(labels))
        return mean_evidence(replace(domain_weights, variance_reduction=reductions), faults, labels)
    outside_weights = _region_weights(labels, sets, outside, is_inside=False)
    inside_mean = _region_means(weighted, in_domain, inside, labels)
    outside_mean = _region_means(outside_weights, in_domain, outside, labels)
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


def mean_evidence(weighted: RegionWeights, x: FloatArray, labels: LabelledScores) -> SetEvidence:
    """Return the evidence on the mean of an outcome x, (m,) or (m, J), in each region."""
    options: Keywords = {
        "cluster": labels.cluster,
        "unlabelled": weighted.unlabelled,
        "variance_reduction": weighted.variance_reduction,
    }
    return SetEvidence(
        weights=weighted.weights,
        totals=WeightedTotals.of(weighted.weights, x, **options),
        complement_totals=WeightedTotals.of(weighted.weights, 1.0 - x, **options),
    )


def _region_means(
    weighted: RegionWeights, x: FloatArray, members: BoolArray, labels: LabelledScores
) -> RegionMean:
    """Return the mean of an outcome x (m,) that counts as 0 outside each region with `members` (m, J).

    It is the mean over the group of the region, or over all labels if the sizes of regions are not known.
    """
    if labels.has_exact_sizes:
        evidence = mean_evidence(weighted, x, labels)
    else:
        # `weighted.share` is then 1. A ratio of two such means does not depend on their common denominator.
        all_weights = estimated_weights(np.ones_like(members), labels.weights)
        evidence = mean_evidence(all_weights, x[:, None] * members, labels)
    assert evidence.totals is not None
    assert evidence.complement_totals is not None
    return RegionMean(successes=evidence.totals, failures=evidence.complement_totals, share=weighted.share)
