"""Whether rows were labelled one by one or in groups, such as all answers to some of the questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.special

from stratal.arrays import BoolArray, FloatArray, IntArray, mid_ranks

# Below this p-value, random labelling of single rows does not explain the labels of groups. A table has up to
# a few hundred columns with two bounds each: less than one false alarm in 1,000 tables.
_SIGNIFICANCE_LEVEL = 1e-6
# Groups count as fully labelled from this share of labelled rows on; the other rows are then nonresponse. If
# rows were sampled within the groups, more of them would have no label.
_MIN_LABELLED_SHARE = 0.9
# The same if the user states that the groups are clusters: a response rate of one half is usual in surveys.
_MIN_LABELLED_SHARE_OF_CLUSTERS = 0.5
# An interval based on the differences between groups needs this many groups with labels, which give Student's
# t four degrees of freedom.
_MIN_LABELLED_GROUPS = 5
# Columns with fewer groups are categories, such as a dozen languages.
_MIN_GROUPS = 15
# Below this p-value, labelled groups that differ in size from the others, or are consecutive, were not drawn
# at random. It is larger than the level above, because only one column of a table is tested: the clusters.
_CLUSTER_SIGNIFICANCE_LEVEL = 1e-3


@dataclass(frozen=True, kw_only=True)
class LabelledGroups:
    """The M groups of rows with an equal value of a column, and which of the N rows have labels.

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
    def label_counts(self) -> IntArray:
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
        bound_of_unlabelled = _tail_bound(self.label_counts == 0, p_unlabelled)
        is_all_or_none = (self.label_counts == 0) | (self.label_counts == self.sizes)
        p_all_or_none = np.minimum(p_unlabelled + p_fully_labelled, 1.0)
        bound_of_all_or_none = _tail_bound(is_all_or_none, p_all_or_none) / self._probability_of_counts
        return min(bound_of_unlabelled, bound_of_all_or_none)

    @property
    def n_labelled(self) -> int:
        """Number of groups with a labelled row."""
        return int(np.sum(self.label_counts > 0))

    @property
    def expected_labelled(self) -> float:
        """Expected number of groups with a labelled row if single rows are labelled at random."""
        return float(len(self.sizes) - np.sum(self._group_products(1.0 - self.label_probability)))

    @property
    def labelled_share(self) -> float:
        """Share of labelled rows among all rows of the groups with a labelled row."""
        return float(self.label_counts.sum() / max(self.sizes[self.label_counts > 0].sum(), 1))

    @property
    def are_concentrated(self) -> bool:
        """Whether labels are in fewer groups, or more often in whole groups, than labels of random rows."""
        return self.n_labelled >= 1 and self.p_value_bound < _SIGNIFICANCE_LEVEL

    @property
    def are_fully_labelled(self) -> bool:
        """Whether nearly all rows of the groups with labels have a label."""
        return self.labelled_share >= _MIN_LABELLED_SHARE

    @property
    def are_labelled_enough_for_clusters(self) -> bool:
        """Whether enough rows of the groups with labels have a label for groups that are stated clusters."""
        return self.labelled_share >= _MIN_LABELLED_SHARE_OF_CLUSTERS

    @property
    def are_sampling_units(self) -> bool:
        """Whether there are many groups, as of clusters rather than categories, and enough have labels."""
        return self.n_labelled >= _MIN_LABELLED_GROUPS and len(self.sizes) >= _MIN_GROUPS

    @property
    def may_be_label_status(self) -> bool:
        """Whether the column may only state which rows have a label, such as a status with few values."""
        return self.are_fully_labelled and self.n_labelled <= 2

    @property
    def differ_in_size(self) -> bool:
        """Whether the sizes of the groups with labels differ from those of a random sample of groups."""
        n_unlabelled = len(self.sizes) - self.n_labelled
        if self.n_labelled == 0 or n_unlabelled == 0 or len(np.unique(self.sizes)) == 1:
            return False
        has_label = self.label_counts > 0
        return _rank_sum_p_value(self.sizes, has_label) < _CLUSTER_SIGNIFICANCE_LEVEL

    def are_consecutive(self, order: FloatArray) -> bool:
        """Return whether the groups with labels are consecutive in an order (N,), equal within each group.

        If m of M groups were drawn at random, all sets would be equally likely; M − m + 1 are consecutive.
        """
        n_groups = len(self.sizes)
        if not 0 < self.n_labelled < n_groups:
            return False
        order_of_group = np.zeros(n_groups)
        order_of_group[self.codes] = order
        is_labelled = (self.label_counts > 0)[np.argsort(order_of_group, kind="stable")]
        positions = np.flatnonzero(is_labelled)
        if positions[-1] - positions[0] + 1 != len(positions):
            return False
        n_consecutive_sets = n_groups - self.n_labelled + 1
        n_sets = float(scipy.special.comb(n_groups, self.n_labelled))
        return n_consecutive_sets < _CLUSTER_SIGNIFICANCE_LEVEL * n_sets

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
        return LabelledGroups(
            column=self.column, codes=codes, is_labelled=clusters.label_counts > 0, strata=strata
        )

    @property
    def description(self) -> str:
        """Which groups have labels, in words."""
        share = "all rows" if self.are_fully_labelled else f"{self.labelled_share:.0%} of the rows"
        return f"{share} of {self.n_labelled:,} of {len(self.sizes):,} `{self.column}`"

    def _group_products(self, probabilities: FloatArray) -> FloatArray:
        """Return the product of the rows' probabilities (N,) in each group (M,)."""
        # A probability is 0 in strata that are fully labelled, or have no label.
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
        """The probability that independent labels have the observed number in each stratum."""
        sizes = self._stratum_sizes
        counts = self._stratum_label_counts
        shares = counts / sizes
        log_binomials = (
            scipy.special.gammaln(sizes + 1)
            - scipy.special.gammaln(counts + 1)
            - scipy.special.gammaln(sizes - counts + 1)
        )
        log_powers = scipy.special.xlogy(counts, shares) + scipy.special.xlog1py(sizes - counts, -shares)
        return float(np.exp(np.sum(log_binomials + log_powers)))


def _tail_bound(occurs: BoolArray, probabilities: FloatArray) -> float:
    """Return Hoeffding's bound on the probability that at least as many of M independent events occur."""
    share = float(occurs.mean())
    expected_share = float(probabilities.mean())
    if share <= expected_share:
        return 1.0
    divergence = scipy.special.rel_entr(share, expected_share)
    divergence += scipy.special.rel_entr(1 - share, 1 - expected_share)
    return float(np.exp(-len(occurs) * divergence))


def _rank_sum_p_value(values: IntArray, is_chosen: BoolArray) -> float:
    """Return the two-sided p-value of Wilcoxon's rank-sum test for values (M,) (normal approximation)."""
    ranks = mid_ranks(values)
    n_chosen = int(np.sum(is_chosen))
    variance = float(np.var(ranks, ddof=1)) * n_chosen * (1 - n_chosen / len(values))
    deviation = abs(float(ranks[is_chosen].sum()) - n_chosen * float(ranks.mean()))
    return 2.0 * float(scipy.special.ndtr(-deviation / np.sqrt(variance)))
