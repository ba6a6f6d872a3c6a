"""Two rounds of labels for an accepted set: cells of the score, and the region of the second round.

The accepted set has the highest scores. The score is divided into cells, and the accepted set ends between
two of them. The first round (pilot) is proportional. The second round labels only the region, the K cells
with the highest scores, so that its sampling rates are equal. A fault is a label that is not correct.
"""

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
from stratal.strata.proxy_intervals import interval_names
from stratal.strata.strata import Strata, moments_of_bins

# Number of cells of the score.
N_CELLS = 20
# Share of the labels in the first round.
PILOT_SHARE = 0.25
# Error probability of the test of each set in the plan; about that of the step-down test of 20 nested sets.
_ERROR_PER_SET = 0.015
# Weight of the fitted curve in the rate of a cell, as a number of labels.
_CURVE_LABELS = 10.0
# Standard deviations of the normal prior of intercept and slope; its means are 0 and 1, a calibrated score.
_PRIOR_DEVIATIONS = (3.0, 1.0)

# Maximum number of Newton steps, and size of a step at which they have converged. The posterior is concave,
# so that fewer steps are sufficient.
_MAX_NEWTON_STEPS = 25
_STEP_TOLERANCE = 1e-9

# Scores are kept this far from 0 and 1, so that their log-odds are finite.
_MIN_SCORE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PilotCells(Record):
    """The cells in the order of decreasing scores, with their labels of the first round.

    Parameters
    ----------
    sizes : int (J,)
        Number of units of the population.
    scores : float (J,)
        Mean score of the units of each cell, between 0 and 1.
    counts, correct_labels : (J,)
        Number of labels, and number of correct ones.
    """

    sizes: IntArray
    scores: FloatArray
    counts: IntArray
    correct_labels: FloatArray


def planned_region(cells: PilotCells, labels: int, limit: float) -> int:
    """Return the number of cells K of the region.

    K maximises the expected number of accepted units if all `labels` are in the first K cells, relative to
    the best K. It is averaged over three recalibrations of the score: that of the labels of the first round,
    and those with the intercept changed by ± one standard error. `limit` is the largest accepted share of
    faults.

    Examples
    --------
    >>> cells = PilotCells(
    ...     sizes=np.full(4, 250), scores=np.array([0.99, 0.97, 0.8, 0.6]), counts=np.full(4, 25),
    ...     correct_labels=np.array([25, 24, 20, 15]))
    >>> planned_region(cells, 400, 0.05)
    2
    """
    intercept, slope, standard_error = _fit_curve(cells)
    logits = special.logit(np.clip(cells.scores, _MIN_SCORE, 1.0 - _MIN_SCORE))
    relative_values = np.zeros(len(cells.sizes))
    for shift in (-standard_error, 0.0, standard_error):
        fitted_rates = special.expit(intercept + shift + slope * logits)
        rates = (_CURVE_LABELS * fitted_rates + cells.correct_labels) / (_CURVE_LABELS + cells.counts)
        accepted_units = _expected_accepted_units(cells.sizes, 1.0 - rates, labels, limit)
        relative_values += accepted_units / max(float(accepted_units.max()), NO_DIVISOR)
    return int(np.argmax(relative_values)) + 1


def _fit_curve(cells: PilotCells) -> tuple[float, float, float]:
    """Fit logit P(correct) as a linear function of the score's logit; return its coefficients.

    The results are the intercept, the slope, and the standard error of the intercept.
    """
    logits = special.logit(np.clip(cells.scores, _MIN_SCORE, 1.0 - _MIN_SCORE))
    design = np.column_stack([np.ones_like(logits), logits])
    prior_means = np.array([0.0, 1.0])
    precision = np.diag(1.0 / np.square(_PRIOR_DEVIATIONS))
    coefficients = prior_means
    for _ in range(_MAX_NEWTON_STEPS):
        rates = special.expit(design @ coefficients)
        gradient = design.T @ (cells.correct_labels - cells.counts * rates)
        gradient = gradient - precision @ (coefficients - prior_means)
        information = (design.T * (cells.counts * rates * (1.0 - rates))) @ design + precision
        step = np.linalg.solve(information, gradient)
        coefficients = coefficients + step
        if np.abs(step).max() < _STEP_TOLERANCE:
            break
    standard_error = float(np.sqrt(np.linalg.inv(information)[0, 0]))
    return float(coefficients[0]), float(coefficients[1]), standard_error


def _expected_accepted_units(
    sizes: IntArray, fault_rates: FloatArray, labels: int, limit: float
) -> FloatArray:
    """Return the expected number of accepted units (J,) for regions of 1, …, J cells.

    `sizes` and `fault_rates` (J,) are those of the cells, `labels` is the number of labels in the region, and
    `limit` the largest accepted share of faults.
    """
    totals = np.cumsum(sizes)
    fault_rates_of_sets = np.cumsum(fault_rates * sizes) / np.maximum(totals, 1)
    # Rows: the last cell of the region. Columns: the last cell of the set, which is part of the region.
    is_in_region = np.tri(len(sizes), dtype=bool)
    counts = np.where(is_in_region, labels * totals // np.maximum(totals[:, None], 1), 0)
    allowed_faults = max_faults(labels, limit, _ERROR_PER_SET)[counts]
    # P(X ≤ a) of a binomial X, by the incomplete beta function.
    pass_probabilities = special.betaincc(
        np.maximum(allowed_faults, 0) + 1.0, np.maximum(counts - allowed_faults, 1), fault_rates_of_sets
    )
    pass_probabilities = np.where(is_in_region & (allowed_faults >= 0), pass_probabilities, 0.0)
    # A cell is accepted if the set that ends with it, or a larger one, passes.
    cell_probabilities = np.maximum.accumulate(pass_probabilities[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(cell_probabilities @ sizes)


@lru_cache(maxsize=8)
def max_faults(labels: int, limit: float, error: float) -> FloatArray:
    """Return the largest number of faults that passes the test, for 0, …, n labels (n + 1,).

    It passes if the upper limit of Clopper and Pearson with the error probability `error` is at most `limit`.
    The number is −1 if 0 faults do not pass. It does not decrease with the number of labels.
    """
    faults = np.arange(int(limit * labels) + 1)
    # The smallest number of labels with which each number of faults passes, by bisection.
    failing_labels = faults.copy()
    passing_labels = np.full(len(faults), labels + 1)
    while np.any(passing_labels - failing_labels > 1):
        middle = (failing_labels + passing_labels) // 2
        passes = 1.0 - special.betainc(faults + 1.0, np.maximum(middle - faults, 1), limit) <= error
        passes &= middle > faults
        passing_labels = np.where(passes, middle, passing_labels)
        failing_labels = np.where(passes, failing_labels, middle)
    # A number of faults that passes with some labels also passes with more.
    allowed_faults = np.full(labels + 2, -1.0)
    np.maximum.at(allowed_faults, passing_labels, faults)
    return np.asarray(np.maximum.accumulate(allowed_faults[: labels + 1]))


def expected_set(sizes: IntArray, fault_rates: FloatArray, labels: int, limit: float) -> tuple[float, int]:
    """Return the expected number of accepted units, and that of the largest set within the limit.

    The arguments are those of `_expected_accepted_units`, for the best region.

    Examples
    --------
    >>> expected, largest = expected_set(np.array([500, 500]), np.array([0.0, 0.2]), 200, 0.05)
    >>> round(expected), largest
    (500, 500)
    """
    totals = np.cumsum(sizes)
    fault_rates_of_sets = np.cumsum(fault_rates * sizes) / totals
    satisfying_sizes = totals[fault_rates_of_sets <= limit]
    expected = float(_expected_accepted_units(sizes, fault_rates, labels, limit).max())
    return expected, int(satisfying_sizes.max(initial=0))


def score_cells(distribution: Distribution, column: str, max_units: int) -> Strata:
    """Return cells of about equal sizes of the `max_units` units with the highest scores as strata.

    The other units are a stratum without labels.
    """
    units_from_bin = np.cumsum(distribution.counts[::-1])[::-1]
    first_bin = int(np.searchsorted(-units_from_bin, -max_units))
    divided_counts = np.where(np.arange(len(units_from_bin)) < first_bin, 0, distribution.counts)
    boundaries = split_evenly(divided_counts.astype(np.float64), N_CELLS)
    known_influences: tuple[Expression | None, ...] = ()
    if first_bin > 0:
        boundaries = np.unique(np.append(boundaries[boundaries > first_bin], first_bin))
    rule = CutPoints(column=column, cuts=distribution.cuts[boundaries - 1])
    if first_bin > 0:
        # The formula is 1 for the units whose influence is known, because no set contains them: it is 0.
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

    `sizes` and `counts` (J,) are the numbers of units and of labels of the first round, `region` is the
    number of cells of the region, and `labels` the total number of labels of both rounds.
    """
    totals = counts.astype(np.int64).copy()
    is_in_region = np.arange(len(sizes)) < region
    additional = labels - int(counts.sum())
    # A cell with more labels than its share keeps them, and the others share the rest.
    while additional > 0:
        is_available = is_in_region & (totals < sizes)
        if not is_available.any():
            break
        rate = (totals[is_available].sum() + additional) / sizes[is_available].sum()
        target_labels = np.minimum(np.where(is_available, rate * sizes, 0.0), sizes)
        missing = np.maximum(target_labels - totals, 0.0)
        shares = missing * (additional / missing.sum())
        added = np.floor(shares).astype(np.int64)
        remainder = additional - int(added.sum())
        order = np.argsort(-(shares - added), kind="stable")
        added[order[:remainder]] += 1
        added = np.minimum(added, sizes - totals)
        if not added.any():
            break
        totals += added
        additional -= int(added.sum())
    return totals
