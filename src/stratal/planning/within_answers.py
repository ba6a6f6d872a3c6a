"""A floor under the labels of strata that share the model's answer, where a metric is planned.

Neyman's rule believes the proxy: a stratum of answers that should all be right gets next to nothing, and each
of its labels then stands for very many units. Where the proxy errs there, one label decides the metric and
makes its interval wide. With at least half of its proportional share among the strata of the same answer no
label weighs more than about twice the mean of its group, which costs little where the proxy is right:
`benchmarks/results/wrong_scores.md` has both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from stratal.arrays import BoolArray, IntArray
from stratal.estimation.estimand import Estimand
from stratal.population.rules.possible import cells_of
from stratal.strata import Strata

LEAST_SHARE = 0.5
"""Of the proportional share of a stratum among those of its answer."""

_HALVINGS = 20


def with_floor(
    strata: Strata,
    estimands: Iterable[Estimand],
    n_h: IntArray,
    drawn: IntArray,
    again: Callable[[IntArray], IntArray],
) -> IntArray:
    """Return an allocation made again with the floor under it; as it is where no metric is planned.

    Parameters
    ----------
    strata : Strata
    estimands : iterable of Estimand
        The single ones that are planned for.
    n_h : int (H,)
        The allocation.
    drawn : int (H,)
        What it cannot be less than, such as units drawn already.
    again : callable
        From such minima (H,) to the allocation.

    Examples
    --------
    >>> import stratal
    >>> strata = stratal.stratify(stratal.Population.from_arrays(proxy=[0.5, 0.7]), "none")
    >>> with_floor(strata, [], np.array([2]), np.array([0]), lambda minima: minima)
    array([2])
    """
    cells = cells_of(strata.rule)
    if cells is None or not any(part.by_answer for part in estimands):
        return n_h
    return again(floored(strata.sizes, cells, n_h, drawn, strata.is_known))


def floored(sizes: IntArray, cells: IntArray, n_h: IntArray, drawn: IntArray, known: BoolArray) -> IntArray:
    """Return the minima (H,) that give each stratum half of its share among those of its cell.

    Less than half where units drawn already leave too few labels for all strata.

    Examples
    --------
    >>> sizes, cells, known = np.array([900, 100, 500]), np.array([0, 0, 1]), np.zeros(3, dtype=bool)
    >>> floored(sizes, cells, np.array([10, 40, 50]), np.array([2, 2, 2]), known)
    array([23,  3, 25])
    """
    n_cell, size = (np.bincount(cells, values * ~known) for values in (n_h, sizes))
    share = LEAST_SHARE * (n_cell / np.maximum(size, 1))[cells] * np.where(known, 0, sizes)
    total, part = int(n_h.sum()), 1.0
    step = 0.5
    for _ in range(_HALVINGS):
        minima = np.minimum(np.maximum(np.ceil(part * share - 1e-9).astype(np.int64), drawn), sizes)
        fits = int(minima.sum()) <= total
        if fits and part == 1.0:
            return minima
        part, step = (part + step if fits else part - step), step / 2.0
    return minima if fits else drawn
