"""Whether rows got labels one by one or in groups, such as all answers to some of the questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.special

from stratal.arrays import BoolArray, FloatArray, IntArray, mid_ranks

# Below this probability, random labelling of single rows does not explain the labels of groups. A table has
# up to a few hundred columns with two bounds each: less than one false alarm in 1,000 tables.
_SIGNIFICANCE_LEVEL = 1e-6
# Groups count as fully labelled from this share on; their other rows are then nonresponse. A second stage of
# sampling leaves out more.
_MIN_LABELLED_SHARE = 0.9
# The same if the user states that the groups are clusters: a response rate of one half is usual in surveys.
_MIN_STATED_LABELLED_SHARE = 0.5
# An interval based on the differences between groups needs this many with labels: Student's t with four
# degrees of freedom. Columns with fewer groups in all are categories, such as a dozen languages.
_MIN_LABELLED_GROUPS = 5
_MIN_GROUPS = 15
# Probability below which labelled groups that differ in size from the others, or are consecutive, were not
# drawn at random.
# Only the groups that are taken as clusters are tested, which is one column of a table.
_CLUSTER_SIGNIFICANCE_LEVEL = 1e-3


@dataclass(frozen=True, kw_only=True)
class LabelledGroups:
    """The groups of rows with an equal value of a column, and which rows have labels.

    Parameters
    ----------
    column : str
    codes : array of int (N,)
        The group of each row, from 0.
    is_labelled : array of bool (N,)
    strata : array of int (N,)
        The stratum of each row, from 0. Under random labelling, the labelled rows of a stratum are a simple
        random sample of it.
    """

    column: str
    codes: IntArray
    is_labelled: BoolArray
    strata: IntArray

    @cached_property
    def sizes(self) -> IntArray:
        """The number of rows of each group (M,)."""
        return np.bincount(self.codes)

    @cached_property
    def counts(self) -> IntArray:
        """The number of labelled rows of each group (M,)."""
        return np.bincount(self.codes[self.is_labelled], minlength=len(self.sizes))

    @cached_property
    def label_probability(self) -> FloatArray:
        """The probability that each row (N,) has a label if single rows are labelled at random."""
        return (self._stratum_label_counts / self._stratum_sizes)[self.strata]

    @cached_property
    def p_value_bound(self) -> float:
        """The smaller of two bounds: for so few groups with labels, and for so few partly labelled groups.

        With independent labels and p the `label_probability` of each row, a group has no label with
        probability Π (1 − p), and labels in all its rows with probability Π p. The tail of the number of such
        groups is bounded by exp(−M · KL(share ‖ expected share)) (Hoeffding 1963, theorem 1). Draws without
        replacement are independent labels conditional on their number. For groups without a label the bound
        holds as it is, since these are negatively associated (Joag-Dev & Proschan 1983); for groups that are
        labelled as a whole or not at all it is divided by the probability of the number.
        """
        p_unlabelled = self._group_products(1.0 - self.label_probability)
        p_fully_labelled = self._group_products(self.label_probability)
        bound_of_unlabelled = _tail_bound(self.counts == 0, p_unlabelled)
        is_all_or_none = (self.counts == 0) | (self.counts == self.sizes)
        p_all_or_none = np.minimum(p_unlabelled + p_fully_labelled, 1.0)
        bound_of_all_or_none = _tail_bound(is_all_or_none, p_all_or_none) / self._probability_of_counts
        return min(bound_of_unlabelled, bound_of_all_or_none)

    @property
    def labelled(self) -> int:
        """Number of groups with a labelled row."""
        return int(np.sum(self.counts > 0))

    @property
    def expected(self) -> float:
        """Expected number of groups with a labelled row if single rows are labelled at random."""
        return float(len(self.sizes) - np.sum(self._group_products(1.0 - self.label_probability)))

    @property
    def labelled_share(self) -> float:
        """Labelled share of the rows of the groups with labels."""
        return float(self.counts.sum() / max(self.sizes[self.counts > 0].sum(), 1))

    @property
    def are_concentrated(self) -> bool:
        """Whether labels are in fewer groups, or more often in whole groups, than random rows would be."""
        return self.labelled >= 1 and self.p_value_bound < _SIGNIFICANCE_LEVEL

    @property
    def are_fully_labelled(self) -> bool:
        """Whether nearly all rows of the groups with labels have one."""
        return self.labelled_share >= _MIN_LABELLED_SHARE

    @property
    def are_labelled_enough_for_clusters(self) -> bool:
        """Whether enough rows of the groups with labels have one if they are stated to be clusters."""
        return self.labelled_share >= _MIN_STATED_LABELLED_SHARE

    @property
    def are_sampling_units(self) -> bool:
        """Whether the groups are units that are drawn rather than categories, and enough have labels."""
        return self.labelled >= _MIN_LABELLED_GROUPS and len(self.sizes) >= _MIN_GROUPS

    @property
    def may_be_label_status(self) -> bool:
        """Whether the column may only mark which rows have a label, such as a status of one or two values."""
        return self.are_fully_labelled and self.labelled <= 2

    @property
    def differ_in_size(self) -> bool:
        """Whether the sizes of the groups with labels differ from those of a random sample of groups."""
        others = len(self.sizes) - self.labelled
        if self.labelled == 0 or others == 0 or len(np.unique(self.sizes)) == 1:
            return False
        with_label = self.counts > 0
        return _rank_sum_p_value(self.sizes, with_label) < _CLUSTER_SIGNIFICANCE_LEVEL

    def are_consecutive(self, order: FloatArray) -> bool:
        """Return whether the groups with labels are consecutive in an order (N,), equal within each group.

        All sets of m of M groups are equally likely, and M − m + 1 of them are consecutive.
        """
        total = len(self.sizes)
        if not 0 < self.labelled < total:
            return False
        order_of_group = np.zeros(total)
        order_of_group[self.codes] = order
        is_labelled = (self.counts > 0)[np.argsort(order_of_group, kind="stable")]
        positions = np.flatnonzero(is_labelled)
        if positions[-1] - positions[0] + 1 != len(positions):
            return False
        consecutive_sets = total - self.labelled + 1
        sets = float(scipy.special.comb(total, self.labelled))
        return consecutive_sets < _CLUSTER_SIGNIFICANCE_LEVEL * sets

    def is_nested_in(self, other: LabelledGroups) -> bool:
        """Return whether all rows of each group are in one group of another column."""
        pairs = np.unique(self.codes * np.int64(len(other.sizes)) + other.codes)
        return len(pairs) == len(self.sizes)

    def with_clusters_as_rows(self, clusters: LabelledGroups) -> LabelledGroups:
        """Return the groups with each cluster, which lies within one of them, counted as one row."""
        codes = np.zeros(len(clusters.sizes), dtype=np.int64)
        codes[clusters.codes] = self.codes
        strata = np.zeros(len(codes), dtype=np.int64)
        strata[clusters.codes] = self.strata
        return LabelledGroups(column=self.column, codes=codes, is_labelled=clusters.counts > 0, strata=strata)

    @property
    def description(self) -> str:
        """Which groups have labels, in words."""
        share = "all rows" if self.are_fully_labelled else f"{self.labelled_share:.0%} of the rows"
        return f"{share} of {self.labelled:,} of {len(self.sizes):,} `{self.column}`"

    def _group_products(self, probabilities: FloatArray) -> FloatArray:
        """Return the product of the rows' probabilities (N,) in each group (M,)."""
        # The logarithm of 0: rows of strata that are fully labelled, and of strata without a label.
        with np.errstate(divide="ignore"):
            logarithms = np.log(probabilities)
        return np.exp(np.bincount(self.codes, weights=logarithms, minlength=len(self.sizes)))

    @property
    def _stratum_sizes(self) -> IntArray:
        return np.bincount(self.strata)

    @property
    def _stratum_label_counts(self) -> IntArray:
        return np.bincount(self.strata[self.is_labelled], minlength=len(self._stratum_sizes))

    @property
    def _probability_of_counts(self) -> float:
        """The probability that independent labels are as many in each stratum as there are."""
        rows = self._stratum_sizes
        labels = self._stratum_label_counts
        share = labels / rows
        log_binomials = (
            scipy.special.gammaln(rows + 1)
            - scipy.special.gammaln(labels + 1)
            - scipy.special.gammaln(rows - labels + 1)
        )
        log_powers = scipy.special.xlogy(labels, share) + scipy.special.xlog1py(rows - labels, -share)
        return float(np.exp(np.sum(log_binomials + log_powers)))


def _tail_bound(occurs: BoolArray, probabilities: FloatArray) -> float:
    """Return Hoeffding's bound on the probability of at least as many independent events (M,)."""
    share = float(occurs.mean())
    expected = float(probabilities.mean())
    if share <= expected:
        return 1.0
    divergence = scipy.special.rel_entr(share, expected) + scipy.special.rel_entr(1 - share, 1 - expected)
    return float(np.exp(-len(occurs) * divergence))


def _rank_sum_p_value(values: IntArray, is_chosen: BoolArray) -> float:
    """Return the two-sided p-value of Wilcoxon's rank-sum test, by its normal approximation."""
    ranks = mid_ranks(values)
    chosen = int(np.sum(is_chosen))
    variance = float(np.var(ranks, ddof=1)) * chosen * (1 - chosen / len(values))
    deviation = abs(float(ranks[is_chosen].sum()) - chosen * float(ranks.mean()))
    return 2.0 * float(scipy.special.ndtr(-deviation / np.sqrt(variance)))
