"""Estimates of shares of the units: of one share, of several with their correlation, and of their sum."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs import StratifiedWeighting, Weighting
from stratal.estimation.estimate import Estimate, correlation_from
from stratal.estimation.outcome_means import plain_mean
from stratal.intervals.interval_types import SumInterval, Term


def mean_of(unit: FloatArray, weighting: Weighting, target: str = "population") -> Estimate:
    """Return the mean of an indicator, or of a variable from 0 to 1, by the estimator of `estimate`."""
    is_binary = bool(np.all(np.isin(unit, (0.0, 1.0))))
    outcome = "binary" if is_binary else "bounded"
    # Hájek's estimator is not affected by the random size of a sample of clusters or of a Poisson sample.
    estimator = "auto" if weighting.random_within_strata else "hajek"
    return plain_mean(unit, weighting, estimator=estimator, outcome=outcome, bounds=(0.0, 1.0), target=target)


def rate_of_strata(is_class: FloatArray, side: BoolArray, weighting: Weighting, target: str) -> Estimate:
    """Return the mean over some of the strata (H,), whose labels are a sample of their own."""
    inside = side[weighting.stratum]
    stratum = (np.cumsum(side) - 1)[weighting.stratum[inside]]
    assert isinstance(weighting, StratifiedWeighting)
    weighting_of_side = replace(weighting, stratum=stratum, sizes=weighting.sizes[side])
    return plain_mean(is_class[inside], weighting_of_side, outcome="binary", target=target)


def shares_above(
    values: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    weighting: Weighting,
    target: str = "population",
) -> SumInterval | None:
    """Return the mean of a variable with few values as a sum of shares, each with the interval of a mean.

    It is Σ (v_j − v_{j−1}) times the share of units at v_j or above. A value without a label is a share of 0
    or 1, whose interval depends on the number of labels; it has no effect on the variance of the labels.
    None if all possible values are equal.

    Parameters
    ----------
    values : float (n,)
        Of the labelled units.
    lowest, highest : float (H,)
        The smallest and the largest possible value in each stratum.
    weighting : Weighting
    target : {"population", "superpopulation"}
    """
    used = weighting.counts > 0
    stands_for_stratum = weighting.random_within_strata
    values, lowest, highest = (np.round(part, _DIGITS) for part in (values, lowest, highest))
    edges = np.unique([*values, lowest[used].min(), highest[used].max()])
    terms: list[Term] = []
    steps = []
    indicators = []
    for below, above in pairwise(edges.tolist()):
        reached = (values >= above).astype(np.float64)
        side = used & (lowest < above) & (highest > below)
        part = 1.0
        if stands_for_stratum and target == "population" and np.any(side < used):
            terms.append(rate_of_strata(reached, side, weighting, target))
            part = float(np.sum(weighting.sizes[side]) / np.sum(weighting.sizes[used]))
        else:
            terms.append(mean_of(reached, weighting, target))
        steps.append((above - below) * part)
        indicators.append(reached)
    if not terms:
        return None
    rows = _stratum_shares(np.array(indicators), weighting)
    # A unit at the higher value also counts at the lower one: the product of two indicators is the smaller.
    joint = np.minimum(rows[:, None], rows[None]) - rows[:, None] * rows[None]
    correlation = correlation_from(joint @ _factors(weighting, target))
    value = float(weighting.weights @ values / weighting.total)
    return SumInterval(value=value, terms=tuple(terms), coefficients=np.array(steps), correlation=correlation)


# Number of decimals of the values of cells: further decimals are rounding errors.
_DIGITS = 12

# Graded labels at which their own products of cells count half; twice as many count for four fifths. Slices
# of plans then have 1.02 times the width of those of random samples (300 labels); labels of which 97% are
# alike cover .94 to 1.00, and without it .83.
_ENOUGH_GRADED = 12.0


def cell_correlation(cells: FloatArray, weighting: Weighting, target: str = "population") -> FloatArray:
    """Return the correlation (d, d) of the means of cells, or of other variables from 0 to 1 (d, n).

    The moments of each stratum are mixed with one label of the overall moments, because those of few labels
    are mostly noise. For the same reason, few graded labels count in part as if each were in only one cell:
    labels that are all equal would otherwise give an interval without width.
    """
    n_inside = int(np.sum(cells.sum(axis=0) > 0))
    graded_share = n_inside**2 / (n_inside**2 + _ENOUGH_GRADED**2)
    exclusive = cells[:, None] * np.eye(len(cells))[:, :, None]
    products = graded_share * cells[:, None] * cells[None] + (1.0 - graded_share) * exclusive
    means = _stratum_shares(cells, weighting)
    squares = _stratum_shares(products.reshape(-1, cells.shape[1]), weighting).reshape(
        *products.shape[:2], -1
    )
    within = squares - means[:, None] * means[None]
    return correlation_from(within @ _factors(weighting, target))


def _factors(weighting: Weighting, target: str) -> FloatArray:
    """Return the factors (H,) of the variances within strata in that of the mean."""
    if target == "population":
        return weighting.variance_factors
    # Completely labelled strata have a variance for the superpopulation.
    return weighting.as_independent_draws().variance_factors


def _stratum_shares(cells: FloatArray, weighting: Weighting) -> FloatArray:
    """Return the shares (d, H) of cells (d, n) by stratum, mixed with one label of the overall shares."""
    overall = (cells @ weighting.weights / weighting.total)[:, None]
    if not weighting.random_within_strata:
        return np.asarray(overall)
    counts = weighting.counts
    sums = np.stack([np.bincount(weighting.stratum, row, minlength=len(counts)) for row in cells])
    return np.asarray((sums + overall) / (counts + 1.0))
