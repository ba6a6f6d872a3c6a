"""Whether rows got labels one by one or in groups, such as all answers to some of the questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.special

from stratal.arrays import BoolArray, FloatArray, IntArray

# Probability below which labels in groups are not explained by rows that were labelled at random. A table
# has up to a few hundred columns with two bounds each: less than one false alarm in 1,000 tables.
_LEAST_PROBABILITY = 1e-6
# Labelled share of the rows of groups with labels from which the other rows are missing labels rather than
# rows that a second stage of sampling left out.
_WHOLE_SHARE = 0.9
# The same if the user states that the groups are clusters: half of the labels may be missing.
_STATED_WHOLE_SHARE = 0.5
# Labelled groups from which an interval can be based on the differences between groups, and all groups from
# which they are units that are drawn rather than categories.
_LEAST_DRAWN = 5
_LEAST_GROUPS = 15
# Probability below which labelled groups of other sizes, or next to each other, were not drawn at random.
# Only the groups that are taken as clusters are tested, which is one column of a table.
_LEAST_PROBABILITY_OF_CLUSTERS = 1e-3


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
        The stratum of each row, from 0: rows at random are a simple random sample within each of them.
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
    def chance(self) -> FloatArray:
        """The probability of a label of each row (N,) if single rows are labelled at random."""
        return (self._labels_of_strata / self._rows_of_strata)[self.strata]

    @cached_property
    def probability(self) -> float:
        """The lower of two bounds: on the probability of so few groups with labels, and of so few in parts.

        With independent labels, a group has no label with probability Π (1 − chance), and labels in all its
        rows with probability Π chance. The tail of the number of such groups is bounded by
        exp(−M · KL(share ‖ expected share)) (Hoeffding 1963, theorem 1). Draws without replacement are
        independent labels whose number is given: for groups without a label the bound holds as it is, since
        these are negatively associated (Joag-Dev & Proschan 1983); for groups that are labelled as a whole or
        not at all it is divided by the probability of the number.
        """
        without = self._product(1.0 - self.chance)
        whole = self._product(self.chance)
        of_few_groups = _tail_bound(self.counts == 0, without)
        is_uniform = (self.counts == 0) | (self.counts == self.sizes)
        of_few_parts = _tail_bound(is_uniform, np.minimum(without + whole, 1.0)) / self._size_probability
        return min(of_few_groups, of_few_parts)

    @property
    def labelled(self) -> int:
        """Number of groups with a labelled row."""
        return int(np.sum(self.counts > 0))

    @property
    def expected(self) -> float:
        """Expected number of groups with a labelled row if single rows are labelled at random."""
        return float(len(self.sizes) - np.sum(self._product(1.0 - self.chance)))

    @property
    def labelled_share(self) -> float:
        """Labelled share of the rows of the groups with labels."""
        return float(self.counts.sum() / max(self.sizes[self.counts > 0].sum(), 1))

    @property
    def are_concentrated(self) -> bool:
        """Whether labels are in fewer groups, or more often in whole groups, than rows at random explain."""
        return self.labelled >= 1 and self.probability < _LEAST_PROBABILITY

    @property
    def are_whole(self) -> bool:
        """Whether nearly all rows of the groups with labels have one."""
        return self.labelled_share >= _WHOLE_SHARE

    @property
    def are_whole_as_stated(self) -> bool:
        """Whether enough rows of the groups with labels have one if they are stated to be clusters."""
        return self.labelled_share >= _STATED_WHOLE_SHARE

    @property
    def are_sampling_units(self) -> bool:
        """Whether the groups are units that are drawn rather than categories, and enough have labels."""
        return self.labelled >= _LEAST_DRAWN and len(self.sizes) >= _LEAST_GROUPS

    @property
    def may_mark_labels(self) -> bool:
        """Whether the column may only mark which rows have a label, such as a status."""
        return self.are_whole and self.labelled <= 2

    @property
    def differ_in_size(self) -> bool:
        """Whether the groups with labels have other sizes than a random sample of the groups would have."""
        others = len(self.sizes) - self.labelled
        if self.labelled == 0 or others == 0 or len(np.unique(self.sizes)) == 1:
            return False
        with_label = self.counts > 0
        return _rank_sum_probability(self.sizes, with_label) < _LEAST_PROBABILITY_OF_CLUSTERS

    def are_adjacent(self, order: FloatArray) -> bool:
        """Return whether the groups with labels follow each other in an order of the rows (N,).

        All sets of m of M groups are equally likely, and M − m + 1 of them are adjacent.
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
        adjacent_sets = total - self.labelled + 1
        sets = float(scipy.special.comb(total, self.labelled))
        return adjacent_sets < _LEAST_PROBABILITY_OF_CLUSTERS * sets

    def lie_within(self, other: LabelledGroups) -> bool:
        """Return whether all rows of each group are in one group of another column."""
        pairs = np.unique(self.codes * np.int64(len(other.sizes)) + other.codes)
        return len(pairs) == len(self.sizes)

    def of_clusters(self, clusters: LabelledGroups) -> LabelledGroups:
        """Return the groups of clusters that lie within them: each cluster is a row."""
        codes = np.zeros(len(clusters.sizes), dtype=np.int64)
        codes[clusters.codes] = self.codes
        strata = np.zeros(len(codes), dtype=np.int64)
        strata[clusters.codes] = self.strata
        return LabelledGroups(column=self.column, codes=codes, is_labelled=clusters.counts > 0, strata=strata)

    @property
    def description(self) -> str:
        """Which groups have labels, in words."""
        return f"all rows of {self.labelled:,} of {len(self.sizes):,} `{self.column}`"

    def _product(self, probabilities: FloatArray) -> FloatArray:
        """Return the product of the rows' probabilities (N,) in each group (M,)."""
        # Rows of strata that are labelled as a whole have probability 0.
        with np.errstate(divide="ignore"):
            logarithms = np.log(probabilities)
        return np.exp(np.bincount(self.codes, weights=logarithms, minlength=len(self.sizes)))

    @property
    def _rows_of_strata(self) -> IntArray:
        return np.bincount(self.strata)

    @property
    def _labels_of_strata(self) -> IntArray:
        return np.bincount(self.strata[self.is_labelled], minlength=len(self._rows_of_strata))

    @property
    def _size_probability(self) -> float:
        """The probability that independent labels are as many in each stratum as there are."""
        rows = self._rows_of_strata
        labels = self._labels_of_strata
        share = labels / rows
        log_choices = (
            scipy.special.gammaln(rows + 1)
            - scipy.special.gammaln(labels + 1)
            - scipy.special.gammaln(rows - labels + 1)
        )
        log_powers = scipy.special.xlogy(labels, share) + scipy.special.xlog1py(rows - labels, -share)
        return float(np.exp(np.sum(log_choices + log_powers)))


def _tail_bound(occurs: BoolArray, probabilities: FloatArray) -> float:
    """Return a bound on the probability that so many independent events (M,) occur, 1 if few do."""
    share = float(occurs.mean())
    expected = float(probabilities.mean())
    if share <= expected:
        return 1.0
    divergence = scipy.special.rel_entr(share, expected) + scipy.special.rel_entr(1 - share, 1 - expected)
    return float(np.exp(-len(occurs) * divergence))


def _rank_sum_probability(values: IntArray, is_chosen: BoolArray) -> float:
    """Return the two-sided probability of Wilcoxon's rank sum of the chosen values, by its normal limit."""
    _, code, count = np.unique(values, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(count) - (count - 1) / 2
    ranks = mean_ranks[code]
    chosen = int(np.sum(is_chosen))
    variance = float(np.var(ranks, ddof=1)) * chosen * (1 - chosen / len(values))
    deviation = abs(float(ranks[is_chosen].sum()) - chosen * float(ranks.mean()))
    return 2.0 * float(scipy.special.ndtr(-deviation / np.sqrt(variance)))
