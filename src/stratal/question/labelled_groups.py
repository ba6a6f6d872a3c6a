"""Whether rows got labels one by one or in groups, such as all answers to some of the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special

from stratal.arrays import BoolArray

# Probability below which so few groups with labels are not explained by rows that were labelled at random.
# A table has up to a few hundred columns, so that a false alarm occurs in less than one of 1,000 tables.
_LEAST_PROBABILITY = 1e-6
# Labelled share of the rows of groups with labels from which the other rows are missing labels rather than
# rows that a second stage of sampling left out.
_WHOLE_SHARE = 0.9
# Labelled groups from which an interval can be based on the differences between groups, and all groups from
# which they are units that are drawn rather than categories.
_LEAST_DRAWN = 10
_LEAST_GROUPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledGroups:
    """The groups of rows with an equal value of a column, and which of them have labels.

    Parameters
    ----------
    column : str
    groups : int
        All groups of the table.
    labelled : int
        Groups with a labelled row.
    expected : float
        Groups with a labelled row that are expected if as many rows are labelled at random.
    labelled_share : float
        Labelled share of the rows of these groups.
    probability : float
        Bound on the probability of so few groups with labels if rows are labelled at random.
    """

    column: str
    groups: int
    labelled: int
    expected: float
    labelled_share: float
    probability: float

    @classmethod
    def of(cls, column: str, levels: Sequence[str], is_labelled: BoolArray) -> LabelledGroups:
        """Return the groups of a column's levels (N,).

        A group of N_c rows has no label with probability (1 − n/N)^N_c at most. The tail of the number of
        such groups is bounded by exp(−M · KL(share ‖ expected share)) (Hoeffding 1963, theorem 1), which also
        holds for draws without replacement.
        """
        number_of_level = {level: number for number, level in enumerate(dict.fromkeys(levels))}
        codes = np.array([number_of_level[level] for level in levels])
        sizes = np.bincount(codes)
        counts = np.bincount(codes, weights=is_labelled)
        expected_without = float(np.sum((1.0 - is_labelled.mean()) ** sizes))
        without = int(np.sum(counts == 0))
        shares = without / len(sizes), expected_without / len(sizes)
        probability = np.exp(-len(sizes) * _divergence(*shares)) if shares[0] > shares[1] else 1.0
        return cls(
            column=column,
            groups=len(sizes),
            labelled=len(sizes) - without,
            expected=len(sizes) - expected_without,
            labelled_share=float(counts.sum() / max(sizes[counts > 0].sum(), 1)),
            probability=float(probability),
        )

    @property
    def are_whole(self) -> bool:
        """Whether nearly all rows of the groups with labels have one."""
        return self.labelled_share >= _WHOLE_SHARE

    @property
    def are_chosen(self) -> bool:
        """Whether groups were chosen, and not single rows: fewer have labels than rows at random explain."""
        return self.probability < _LEAST_PROBABILITY and self.labelled >= 1

    @property
    def are_clusters(self) -> bool:
        """Whether the groups can be taken as a random sample of whole groups."""
        return self.are_chosen and self.are_whole and self.are_many

    @property
    def are_many(self) -> bool:
        """Whether the groups are units that are drawn rather than categories, and enough have labels."""
        return self.labelled >= _LEAST_DRAWN and self.groups >= _LEAST_GROUPS

    @property
    def are_marks(self) -> bool:
        """Whether the column may only mark which rows have a label, such as a status."""
        return self.are_whole and self.labelled <= 2

    @property
    def sentence(self) -> str:
        """How the groups are taken as chosen, in words."""
        return (
            f"all rows of {self.labelled:,} of {self.groups:,} `{self.column}`, taken as a random sample of "
            "whole groups (clusters)"
        )


def _divergence(share: float, expected: float) -> float:
    """Return the Kullback–Leibler divergence of two Bernoulli variables."""
    return float(
        scipy.special.rel_entr(share, expected) + scipy.special.rel_entr(1.0 - share, 1.0 - expected)
    )
