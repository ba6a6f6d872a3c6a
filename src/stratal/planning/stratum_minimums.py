"""Minimum numbers of labels of strata that lie within the same cell, such as one answer of the model.

An allocation by expected standard deviations gives few labels to a stratum whose scores are near 0 or 1. If
the scores are wrong, such a stratum dominates the error. So each stratum gets at least half of its
proportional share of the labels of its cell (measured in benchmarks/wrong_scores.py).
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray, IntArray
from stratal.population.rules import cells_of
from stratal.strata import Strata
from stratal.whole_numbers import all_rounded_up

# Minimum of a stratum, as a part of its proportional share of the labels of its cell.
MIN_CELL_SHARE = 0.5

# Bisection steps in the search for the largest minimums that the budget allows: precise to a millionth.
_BISECTION_STEPS = 20


def stratum_minimums(strata: Strata, n_h: IntArray, lower: int | IntArray) -> IntArray | None:
    """Return minimums (H,) that give each stratum half of its share of its cell's labels; None without cells.

    Parameters
    ----------
    strata : Strata
    n_h : int (H,)
        An allocation without these minimums.
    lower : int or int (H,)
        Lower limits of that allocation, such as the units that are drawn already.
    """
    cells = cells_of(strata.rule)
    if cells is None:
        return None
    return cell_share_minimums(strata.sizes, cells, n_h, np.minimum(lower, n_h), strata.is_known)


def cell_share_minimums(
    sizes: IntArray, cells: IntArray, n_h: IntArray, lower: IntArray, is_known: BoolArray
) -> IntArray:
    """Return minimums (H,) that give each stratum half of its share of its cell's labels.

    All shares are reduced by one factor if the lower limits leave too few labels. `cells` are the cell
    numbers of the strata; those with `is_known` need no label, because their contribution to the estimand is
    known. Parameters have the shape (H,) and are otherwise those of `stratum_minimums`.
    """
    labels_of_cell = np.bincount(cells, n_h * ~is_known)
    size_of_cell = np.bincount(cells, sizes * ~is_known)
    labels_per_unit = (labels_of_cell / np.maximum(size_of_cell, 1))[cells]
    shares = MIN_CELL_SHARE * labels_per_unit * np.where(is_known, 0, sizes)
    total = int(n_h.sum())
    minimums = lower
    # The search begins with the complete shares, which usually fit.
    factor = 1.0
    step = 0.5
    for _ in range(_BISECTION_STEPS):
        whole_shares = all_rounded_up(factor * shares).astype(np.int64)
        larger_minimums = np.minimum(np.maximum(whole_shares, lower), sizes)
        if int(larger_minimums.sum()) > total:
            factor -= step
        else:
            minimums = larger_minimums
            if factor == 1.0:
                break
            factor += step
        step /= 2.0
    return minimums
