"""Two rounds for an accepted set: cells of the score, and a region of the highest with equal rates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from stratal.arrays import NO_DIVISOR, FloatArray, IntArray, Record
from stratal.population.distribution import Distribution
from stratal.population.expressions import Below, Expression
from stratal.population.rules import CutPoints
from stratal.strata.classical_boundaries import split_evenly
from stratal.strata.dividing import interval_names
from stratal.strata.strata import Strata, moments_of_bins

# Cells of the score, between which the accepted set may end.
N_CELLS = 20
# Share of the labels in the first round, which is proportional over all units.
PILOT_SHARE = 0.25
# Local error at which a set of the plan is expected to pass, about that of 20 nested sets.
_LOCAL_ERROR = 0.015
# Labels of a cell that count as much as the fitted curve.
_CURVE_LABELS = 10.0
# Standard deviations of the prior of intercept and slope, around a calibrated score.
_PRIOR_DEVIATIONS = (3.0, 1.0)

# A limit of Newton's method; the posterior is concave, so that it settles in fewer steps.
_NEWTON_STEPS = 25
_SETTLED = 1e-9

# A score of 0 or 1 has no finite log-odds.
_CLIP = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PilotCells(Record):
    """Cells between the thresholds, from the highest scores down, and their labels of the first round.

    Parameters
    ----------
    sizes : int (J,)
        Units of the population.
    scores : float (J,)
        Mean score of each cell's units, within 0 and 1.
    counts, rights : (J,)
        Labels, and how many of them are right.
    """

    sizes: IntArray
    scores: FloatArray
    counts: IntArray
    rights: FloatArray


def planned_region(cells: PilotCells, labels: int, faults: float) -> int:
    """Return the number of cells K in which the labels of both rounds have equal sampling rates.

    The accepted share that is expected of `labels` in the first K cells, relative to the best K, averaged
    over three recalibrations of the score: by the labels, and one standard error of the intercept either way.

    Examples
    --------
    >>> cells = PilotCells(
    ...     sizes=np.full(4, 250), scores=np.array([0.99, 0.97, 0.8, 0.6]), counts=np.full(4, 25),
    ...     rights=np.array([25, 24, 20, 15]))
    >>> planned_region(cells, 400, 0.05)
    2
    """
    intercept, slope, deviation = _fitted_curve(cells)
    logits = special.logit(np.clip(cells.scores, _CLIP, 1.0 - _CLIP))
    merit = np.zeros(len(cells.sizes))
    for shift in (-deviation, 0.0, deviation):
        curve = special.expit(intercept + shift + slope * logits)
        rates = (_CURVE_LABELS * curve + cells.rights) / (_CURVE_LABELS + cells.counts)
        values = _expected_shares(cells.sizes, 1.0 - rates, labels, faults)
        merit += values / max(float(values.max()), NO_DIVISOR)
    return int(np.argmax(merit)) + 1


def _fitted_curve(cells: PilotCells) -> tuple[float, float, float]:
    """Return intercept, slope and the intercept's standard error of logit P(right) on the score's logit."""
    logits = special.logit(np.clip(cells.scores, _CLIP, 1.0 - _CLIP))
    design = np.column_stack([np.ones_like(logits), logits])
    centre = np.array([0.0, 1.0])
    precision = np.diag(1.0 / np.square(_PRIOR_DEVIATIONS))
    coefficients = centre
    for _ in range(_NEWTON_STEPS):
        rates = special.expit(design @ coefficients)
        slopes = design.T @ (cells.rights - cells.counts * rates) - precision @ (coefficients - centre)
        information = (design.T * (cells.counts * rates * (1.0 - rates))) @ design + precision
        step = np.linalg.solve(information, slopes)
        coefficients = coefficients + step
        if np.abs(step).max() < _SETTLED:
            break
    deviation = float(np.sqrt(np.linalg.inv(information)[0, 0]))
    return float(coefficients[0]), float(coefficients[1]), deviation


def _expected_shares(sizes: IntArray, faults: FloatArray, labels: int, limit: float) -> FloatArray:
    """Return the expected accepted units (K,) if the labels are spread evenly over the first 1 … K cells."""
    totals = np.cumsum(sizes)
    rates = np.cumsum(faults * sizes) / np.maximum(totals, 1)
    # Row: the last cell of the region; column: the last cell of the set, which lies in the region.
    inside = np.tri(len(sizes), dtype=bool)
    counts = np.where(inside, labels * totals // np.maximum(totals[:, None], 1), 0)
    allowed = most_faults(labels, limit, _LOCAL_ERROR)[counts]
    # P(X ≤ a) of a binomial X, by the incomplete beta function.
    passing = special.betaincc(np.maximum(allowed, 0) + 1.0, np.maximum(counts - allowed, 1), rates)
    passing = np.where(inside & (allowed >= 0), passing, 0.0)
    best = np.maximum.accumulate(passing[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(best @ sizes)


@lru_cache(maxsize=8)
def most_faults(labels: int, limit: float, error: float) -> FloatArray:
    """Return the most faults among 0 … n labels (n + 1,) with a Clopper–Pearson limit of at most `limit`; −1.

    One more label never allows fewer faults.
    """
    faults = np.arange(int(limit * labels) + 1)
    # The fewest labels with which so many faults pass, by bisection.
    below = faults.copy()
    above = np.full(len(faults), labels + 1)
    while np.any(above - below > 1):
        middle = (below + above) // 2
        passes = 1.0 - special.betainc(faults + 1.0, np.maximum(middle - faults, 1), limit) <= error
        passes &= middle > faults
        above = np.where(passes, middle, above)
        below = np.where(passes, below, middle)
    allowed = np.full(labels + 2, -1.0)
    np.maximum.at(allowed, above, faults)
    return np.asarray(np.maximum.accumulate(allowed[: labels + 1]))


def expected_set(sizes: IntArray, faults: FloatArray, labels: int, limit: float) -> tuple[float, int]:
    """Return the units that are expected to be accepted of cells with these rates of faults, and the most.

    Examples
    --------
    >>> expected, largest = expected_set(np.array([500, 500]), np.array([0.0, 0.2]), 200, 0.05)
    >>> round(expected), largest
    (500, 500)
    """
    totals = np.cumsum(sizes)
    rates = np.cumsum(faults * sizes) / totals
    valid = totals[rates <= limit]
    return float(_expected_shares(sizes, faults, labels, limit).max()), int(valid.max(initial=0))


def score_cells(distribution: Distribution, column: str, most: int) -> Strata:
    """Return about equal cells of the `most` units with the highest scores; the others need no label."""
    above = np.cumsum(distribution.counts[::-1])[::-1]
    first = int(np.searchsorted(-above, -most))
    mass = np.where(np.arange(len(above)) < first, 0, distribution.counts)
    boundaries = split_evenly(mass.astype(np.float64), N_CELLS)
    known_influences: tuple[Expression | None, ...] = ()
    if first > 0:
        boundaries = np.unique(np.append(boundaries[boundaries > first], first))
    rule = CutPoints(column=column, cuts=distribution.cuts[boundaries - 1])
    if first > 0:
        known_influences = (Below(name=column, limit=float(rule.cuts[0])), *[None] * len(boundaries))
    names = interval_names(column, rule.cuts)
    return Strata.from_moments(
        moments_of_bins(distribution, boundaries),
        rule,
        names,
        method="equal-size",
        known_influences=known_influences,
    )


def total_labels(sizes: IntArray, counts: IntArray, region: int, labels: int) -> IntArray:
    """Return the labels (J,) of each cell after both rounds: equal rates in the region, the pilot outside.

    Parameters
    ----------
    sizes, counts : int (J,)
        Units, and labels of the first round.
    region : int
        Cells that belong to it.
    labels : int
        In total.
    """
    totals = counts.astype(np.int64).copy()
    inside = np.arange(len(sizes)) < region
    additional = labels - int(counts.sum())
    # A cell that has more than its share already keeps it, and the others share the rest.
    while additional > 0:
        open_cells = inside & (totals < sizes)
        if not open_cells.any():
            break
        rate = (totals[open_cells].sum() + additional) / sizes[open_cells].sum()
        target_labels = np.minimum(np.where(open_cells, rate * sizes, 0.0), sizes)
        lacking = np.maximum(target_labels - totals, 0.0)
        shares = lacking * (additional / lacking.sum())
        added = np.floor(shares).astype(np.int64)
        left = additional - int(added.sum())
        order = np.argsort(-(shares - added), kind="stable")
        added[order[:left]] += 1
        added = np.minimum(added, sizes - totals)
        if not added.any():
            break
        totals += added
        additional -= int(added.sum())
    return totals
