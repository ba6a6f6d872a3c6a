"""Candidate sets of units with high scores, and the weights of labels in each set.

The candidates are fixed before labels are used. The units of a set have scores that reach its thresholds. A
cell is the part of a stratum that is in a set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.designs.stratum_moments import stratum_sums
from stratal.estimation.group_means import group_codes
from stratal.population.population import Population
from stratal.population.rules import Rule

# Number of candidate sets of one score. In simulations, the chosen one of 20 sets had as many units as that
# of 40, and that of 10 sets had 2% fewer.
N_SETS = 20
# Thresholds of each of two scores: the 36 pairs are the candidate sets.
N_THRESHOLDS_PER_SCORE = 6
# Weights with a smaller relative difference are equal: the difference is rounding.
_WEIGHT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateSets(Record):
    """J sets: the units of a group whose scores all reach thresholds.

    Parameters
    ----------
    thresholds : float (J, S)
        −inf if every unit reaches it.
    group : int (J,)
        Index of the group.
    groups : tuple of str
        Names of the groups; one empty name if all units are one group.
    """

    thresholds: FloatArray
    group: IntArray
    groups: tuple[str, ...] = ("",)

    def members(self, scores: FloatArray, group: IntArray) -> BoolArray:
        """Return which units with scores (n, S) of groups (n,) each set contains (n, J)."""
        members = group[:, None] == self.group
        # One column at a time: a comparison of all at once takes three times as long for one score.
        for column in range(scores.shape[1]):
            members &= scores[:, column, None] >= self.thresholds[:, column]
        return np.asarray(members)

    def codes(self, values: AnyArray) -> IntArray:
        """Return the index of the group of each unit (n,); −1 for another group."""
        return codes_of_groups(values, self.groups)


def are_equal_weights(weights: FloatArray) -> bool:
    """Return whether weights (n,) are equal, apart from rounding errors."""
    return bool(np.ptp(weights) <= _WEIGHT_TOLERANCE * weights.max())


def codes_of_groups(values: AnyArray, groups: tuple[str, ...]) -> IntArray:
    """Return the index of each value (n,) among the names of groups; −1 for another value.

    If all units are one group, it has an empty name and contains every value.
    """
    if groups == ("",):
        return np.zeros(len(values), dtype=np.int64)
    return group_codes([str(value) for value in values.tolist()], groups)


def candidate_sets(scores: FloatArray, group: IntArray, groups: tuple[str, ...]) -> CandidateSets:
    """Return sets with about equal numbers of drawn units between their thresholds, for each group.

    The drawn units (n,), not the population, determine the thresholds: each set then has enough labels,
    whatever the design.
    """
    thresholds = []
    group_of_sets = []
    for code in range(len(groups)):
        group_thresholds = _threshold_grid(scores[group == code])
        thresholds.append(group_thresholds)
        group_of_sets.append(np.full(len(group_thresholds), code))
    return CandidateSets(
        thresholds=np.concatenate(thresholds), group=np.concatenate(group_of_sets), groups=groups
    )


def _threshold_grid(scores: FloatArray) -> FloatArray:
    """Return the thresholds (J, S) for units (n, S), from the smallest set to the set of all units."""
    n_scores = scores.shape[1]
    count = N_SETS if n_scores == 1 else N_THRESHOLDS_PER_SCORE
    grids = [_quantile_thresholds(scores[:, column], count) for column in range(n_scores)]
    return np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, n_scores)


def _quantile_thresholds(values: FloatArray, count: int) -> FloatArray:
    """Return at most `count` decreasing thresholds, as many values between each two; the last is −inf."""
    ranks = np.ceil(np.arange(1, count) * len(values) / count).astype(np.int64)
    descending = np.sort(values)[::-1]
    # Tied scores give the same threshold several times.
    thresholds = np.unique(descending[ranks[ranks > 0] - 1])[::-1]
    # A threshold at the smallest score contains all units, as −inf does.
    return np.append(thresholds[thresholds > values.min()], -np.inf)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledScores(Record):
    """The labelled units (m,) with scores, and the sizes of the sets in the population.

    Parameters
    ----------
    outcomes : float (m,)
        1 if the answer is right, or the unit is of the class; 0 if not.
    scores : float (m, S)
    group : int (m,)
    stratum : int (m,)
    weights : float (m,)
        Design weights, which sum to 1.
    cluster : int (m,), optional
    sizes : int (H, J), optional
        Units of each stratum in each set; None if the population is not known.
    group_sizes : int (H, G), optional
        Units of each stratum in each group.
    is_random_in_strata : bool
        Whether the labels of a stratum are a simple random sample of it.
    has_all_strata : bool
        Whether every stratum has a label.
    is_finite : bool
        Whether the finite population correction applies (target `population`).
    """

    outcomes: FloatArray
    scores: FloatArray
    group: IntArray
    stratum: IntArray
    weights: FloatArray
    cluster: IntArray | None = None
    sizes: IntArray | None = None
    group_sizes: IntArray | None = None
    is_random_in_strata: bool = True
    has_all_strata: bool = True
    is_finite: bool = True

    @property
    def is_simple(self) -> bool:
        """Whether all labels have the same weight, every stratum has labels, and there are no clusters."""
        return self.has_all_strata and self.cluster is None and are_equal_weights(self.weights)

    @property
    def has_exact_sizes(self) -> bool:
        """Whether the sizes give the weights of labels within each set."""
        return self.is_random_in_strata and self.sizes is not None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionWeights(Record):
    """Weights (m, J) of labels for the means of J regions. A region is a set, or the rest of its group."""

    weights: FloatArray
    # Share (J,) of the region in strata without a label in it.
    unlabelled: FloatArray
    # Smallest `variance_reduction` (J,) of its strata, as in `stratal.thresholds.limits.WeightedTotals`.
    variance_reduction: FloatArray
    # The region's share (J,) of its group.
    share: FloatArray


def region_weights(
    members: BoolArray, stratum: IntArray, sizes: IntArray, sizes_of_group: IntArray, *, is_finite: bool
) -> RegionWeights:
    """Return weights of labels that are a simple random sample within every stratum.

    The labels of a region's part of a stratum are a simple random sample of that part.

    Parameters
    ----------
    members : bool (m, J)
    stratum : int (m,)
    sizes, sizes_of_group : int (H, J)
        Units of each stratum in the region, and in the group of the region.
    is_finite : bool
    """
    counts = stratum_sums(members.astype(np.float64), stratum, len(sizes))
    cells = cell_weights(counts, sizes, sizes_of_group, is_finite=is_finite)
    return replace(cells, weights=cells.weights[stratum] * members)


def cell_weights(
    counts: FloatArray | IntArray, sizes: IntArray, sizes_of_group: IntArray, *, is_finite: bool
) -> RegionWeights:
    """Return the weights (…, H, J) of one label of each cell (a stratum within a region).

    `counts` (…, H, J) are the numbers of labels; leading axes are for replicates.
    """
    totals = sizes.sum(axis=-2)
    shares = sizes / np.maximum(totals, 1)[..., None, :]
    is_labelled = counts > 0
    weights = np.where(is_labelled, shares / np.maximum(counts, 1), 0.0)
    reductions = np.where(is_labelled, variance_reduction(counts, sizes), np.inf).min(axis=-2)
    totals_of_groups = np.maximum(sizes_of_group.sum(axis=-2), 1)
    return RegionWeights(
        weights=weights,
        unlabelled=np.sum(shares, axis=-2, where=~is_labelled),
        variance_reduction=np.minimum(reductions, 1.0) * is_finite,
        share=totals / totals_of_groups,
    )


def variance_reduction(counts: FloatArray | IntArray | float, sizes: IntArray | int) -> FloatArray:
    """Return (n − 1) / (N − 1), the relative reduction of the variance by draws without replacement.

    It is exact for the hypergeometric distribution. With n / N, limits of strata with six units were exceeded
    with probability .059 instead of .05.
    """
    return np.where(counts < sizes, (counts - 1.0) / np.maximum(sizes - 1.0, 1.0), 1.0)


def estimated_weights(members: BoolArray, weights: FloatArray) -> RegionWeights:
    """Return weights (m, J) that sum to 1 in each region, from design weights (m,)."""
    weights_in_region = weights[:, None] * members
    totals = weights_in_region.sum(axis=0)
    # The sizes of regions and strata are not known. Means are then not multiplied by the share of a region,
    # and their variance has no finite population correction.
    zeros = np.zeros_like(totals)
    return RegionWeights(
        weights=weights_in_region / np.where(totals > 0, totals, 1.0),
        unlabelled=zeros,
        variance_reduction=zeros,
        share=np.ones_like(totals),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPopulation:
    """The population with its scores, groups and strata.

    Parameters
    ----------
    population : Population
    rule : Rule
        The strata of the design.
    scores : tuple of str
    by : str, optional
    """

    population: Population
    rule: Rule
    scores: tuple[str, ...]
    by: str | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the scores and of the group."""
        if self.by is None:
            return self.scores
        return (*self.scores, self.by)

    def count(self, sets: CandidateSets) -> tuple[IntArray, IntArray]:
        """Return the numbers of units of each stratum in each set (H, J) and in each group (H, G)."""
        n_strata = self.rule.n_strata
        sizes = np.zeros((n_strata, len(sets.group)), dtype=np.int64)
        group_sizes = np.zeros((n_strata, len(sets.groups)), dtype=np.int64)
        for members, group, stratum in self._batches(sets):
            is_in_group = group >= 0
            cell_codes = stratum[is_in_group] * len(sets.groups) + group[is_in_group]
            group_sizes += np.bincount(cell_codes, minlength=group_sizes.size).reshape(group_sizes.shape)
            for index in range(len(sets.group)):
                sizes[:, index] += np.bincount(stratum[members[:, index]], minlength=n_strata)
        return sizes, group_sizes

    def has_no_other_set(self, sets: CandidateSets, sizes: IntArray) -> bool:
        """Return whether every possible threshold gives one of these sets, because scores have few values.

        Sets of one group with equal `sizes` (J,) are the same set.
        """
        different_sets = set(zip(sets.group.tolist(), sizes.tolist(), strict=True))
        # The distinct values of each score in each group.
        values_by_group: list[list[set[float]]] = [[set() for _ in self.scores] for _ in sets.groups]
        for batch in self.population.batches(self.columns):
            scores, group = self.read(batch, sets)
            for code, values_by_score in enumerate(values_by_group):
                for column, values in zip(scores[group == code].T, values_by_score, strict=True):
                    values.update(np.unique(column).tolist())
            n_thresholds = [math.prod(map(len, values_by_score)) for values_by_score in values_by_group]
            if sum(n_thresholds) > len(different_sets):
                return False
        return True

    def _batches(self, sets: CandidateSets) -> Iterator[tuple[BoolArray, IntArray, IntArray]]:
        """Yield the sets that contain the units (n, J), their group (n,) and their stratum (n,)."""
        columns = dict.fromkeys((*self.columns, *self.rule.columns))
        for batch in self.population.batches(tuple(columns)):
            scores, group = self.read(batch, sets)
            yield sets.members(scores, group), group, self.rule.codes_of(batch).astype(np.int64)

    def read(self, batch: dict[str, AnyArray], sets: CandidateSets) -> tuple[FloatArray, IntArray]:
        """Return scores (n, S) and groups (n,) of a batch."""
        scores = np.column_stack([np.asarray(batch[name], dtype=np.float64) for name in self.scores])
        if self.by is None:
            return scores, np.zeros(len(scores), dtype=np.int64)
        return scores, sets.codes(batch[self.by])
