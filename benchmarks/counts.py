"""Labels of 0 and 1 in replicates of a study, allocated and judged as the library does it for one study.

`furthers` and `smallest_budgets` are the `further` and `smallest_budget` of `stratal.planning`, for many
studies at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.planning.budget_search import MAX_EVALUATIONS
from stratal.planning.interim_widths import expected_half_width_of_counts, implied_means
from stratal.planning.rounds import FIRST_SHARE_OF_LARGE_ROUND, MAX_GROWTH
from stratal.strata import Strata
from stratal.strata.integer_allocation import AllocationBounds, optimal_integers
from stratal.strata.standard_deviations import smoothed_standard_deviations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountsSoFar(Record):
    """Labels of 0 and 1 in several strata: of one sample, or of replicates on leading axes.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    counts, ones : int (…, H)
        Labels, and those of them that are 1.
    deviations, means : float (…, H)
        S_h and the rate of each stratum, smoothed.
    """

    sizes: IntArray
    counts: IntArray
    ones: IntArray
    deviations: FloatArray
    means: FloatArray

    @classmethod
    def of(cls, strata: Strata, counts: IntArray, ones: IntArray) -> CountsSoFar:
        """Return what the counts say, the strata's proxy recalibrated on them."""
        deviations = smoothed_standard_deviations(strata, counts, ones)
        means = implied_means(counts, ones, deviations)
        return cls(sizes=strata.sizes, counts=counts, ones=ones, deviations=deviations, means=means)

    def part(self, rows: IntArray | BoolArray) -> CountsSoFar:
        """Return some of the replicates."""
        moved = ("counts", "ones", "deviations", "means")
        return replace(self, **{name: getattr(self, name)[rows] for name in moved})

    def allocation(self, total: IntArray) -> IntArray:
        """Return n_h (…, H) with `total` (…,) labels in all: Neyman's, none of them taken back."""
        bounds = AllocationBounds(sizes=self.sizes, lower=self.counts, upper=self.sizes)
        return optimal_integers(self.sizes * self.deviations, bounds, np.asarray(total)[..., None])

    def half_width(
        self, labels: IntArray, confidence_level: float, *, label_based: bool = True
    ) -> FloatArray:
        """Return half the expected width (…,) of the interval with so many labels (…, H), these included.

        `label_based` is whether labels decided how many these are.
        """
        seen = self.counts, self.ones
        return expected_half_width_of_counts(
            self.sizes, labels, self.means, confidence_level, observed=seen, label_based=label_based
        )


def furthers(
    width: Callable[[IntArray, IntArray], FloatArray],
    now: FloatArray,
    wanted: float,
    drawn: IntArray,
    population_size: int,
    *,
    label_based: bool = False,
) -> tuple[IntArray, IntArray]:
    """Return the units (R,) of the next round, and the total (R,) that is expected to be enough.

    Parameters
    ----------
    width : callable
        Totals (r,) and the replicates (r,) that they are of, to expected half-widths (r,).
    now : float (R,)
        Half-widths so far, above the one that is wanted.
    wanted : float
    drawn : int (R,)
        Units drawn so far.
    population_size : int
    label_based : bool
        Whether this is not the first round that labels decide.
    """
    start = np.round(drawn * np.minimum(now / wanted, 8.0) ** 2)
    most = np.full(len(drawn), population_size)
    total = smallest_budgets(width, wanted, np.minimum(start, most).astype(np.int64), drawn + 1, most)
    extra = np.minimum(taken_now(drawn, total, label_based=label_based), population_size - drawn)
    return extra, np.maximum(total, drawn + extra)


def taken_now(drawn: Any, total: Any, *, label_based: bool = False) -> IntArray:
    """Return how many (R,) of the missing units are drawn now: a few labels are no basis for a large round.

    The total is where the interval is *expected* to be there, and half of the studies would end a label or
    two short of it, round after round. So from the second such round on √e are added to e missing ones: what
    a count of e is uncertain by.
    """
    extra = np.asarray(total - drawn)
    careful = np.maximum(np.ceil(FIRST_SHARE_OF_LARGE_ROUND * extra), 1.0).astype(np.int64)
    surely = extra + (np.ceil(np.sqrt(extra)).astype(np.int64) if label_based else 0)
    return np.where(total > MAX_GROWTH * drawn, careful, surely)


def smallest_budgets(
    width: Callable[[IntArray, IntArray], FloatArray],
    wanted: float,
    start: IntArray,
    least: IntArray,
    most: IntArray,
) -> IntArray:
    """Return the smallest budgets (R,), to within a hundredth, whose widths are as wanted.

    Squared widths are about linear in 1/n, so that a few looks are enough.

    Parameters
    ----------
    width : callable
        Budgets (r,) and the replicates (r,) that they are of, to half-widths (r,).
    wanted : float
    start, least, most : int (R,)
        As in `smallest_budget`.
    """
    above, below = least - 1, most.copy()
    # Every unit labelled leaves nothing open.
    wide, narrow = np.full(len(most), np.nan), np.zeros(len(most))
    rows, n = np.arange(len(most)), np.clip(start, least, most)
    for _ in range(MAX_EVALUATIONS):
        squared = width(n, rows) ** 2
        enough = squared <= wanted**2
        below[rows[enough]], narrow[rows[enough]] = n[enough], squared[enough]
        above[rows[~enough]], wide[rows[~enough]] = n[~enough], squared[~enough]
        open_ = below[rows] - above[rows] > np.maximum(1, below[rows] // 100)
        rows = rows[open_]
        if len(rows) == 0:
            break
        last = (n[open_], squared[open_])
        ends = above[rows], wide[rows], below[rows], narrow[rows]
        n = _between(ends, last, most[rows], wanted**2)
    return below


def _between(
    ends: tuple[IntArray, FloatArray, IntArray, FloatArray],
    last: tuple[IntArray, FloatArray],
    most: IntArray,
    wanted: float,
) -> IntArray:
    """Return the next budgets (r,) to look at, within their brackets (above, below with squared widths)."""
    above, wide, below, narrow = ends
    both = np.isfinite(wide)
    one, first = 1.0 / np.where(both, above, last[0]), np.where(both, wide, last[1])
    other, second = 1.0 / np.where(both, below, most), np.where(both, narrow, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = other + (wanted - second) * (one - other) / (first - second)
        usable = np.isfinite(first) & (first != second) & (inverse > 0)
        guess = np.ceil(np.minimum(1.0 / np.where(usable, inverse, 1.0), below))
    guess = np.where(usable, guess, (above + below) // 2).astype(np.int64)
    least = np.maximum((below - above) // 8, 1)
    return np.asarray(np.minimum(np.maximum(guess, above + least), below - least))
