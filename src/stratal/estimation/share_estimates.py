"""Estimates of shares of the units, their correlations, and the mean of a variable as a sum of shares."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs import StratifiedWeighting, Weighting
from stratal.estimation.estimate import Estimate, correlation_from
from stratal.estimation.outcome_means import mean_without_proxy
from stratal.intervals.interval_types import SumInterval, Term

# Number of decimals to which values are rounded: further decimals are rounding errors.
_DECIMALS = 12

# Number of graded labels for which the observed products of cells have weight 0.5 (with twice as many, 0.8).
# The intervals of slices in plans are then 1.02 times as wide as in random samples (300 labels). If 97% of
# the labels are equal, the coverage is 0.94 to 1.00; without this rule, it is 0.83.
_GRADED_LABELS_OF_HALF_WEIGHT = 12.0


def share_estimate(unit: FloatArray, weighting: Weighting, target: str = "population") -> Estimate:
    """Return the mean of an indicator, or of a variable from 0 to 1, by the estimator of `estimate`."""
    is_binary = bool(np.all(np.isin(unit, (0.0, 1.0))))
    outcome = "binary" if is_binary else "bounded"
    # Hájek's estimator is not affected by the random size of a sample of clusters or of a Poisson sample.
    estimator = "auto" if weighting.random_within_strata else "hajek"
    return mean_without_proxy(
        unit, weighting, estimator=estimator, outcome=outcome, bounds=(0.0, 1.0), target=target
    )


def share_in_strata(is_class: FloatArray, strata: BoolArray, weighting: Weighting, target: str) -> Estimate:
    """Return the share of a class over the strata for which `strata` (H,) is true.

    `is_class` (n,) is 1 for the units of the class.
    """
    inside = strata[weighting.stratum]
    stratum = (np.cumsum(strata) - 1)[weighting.stratum[inside]]
    assert isinstance(weighting, StratifiedWeighting)
    weighting_of_strata = replace(weighting, stratum=stratum, sizes=weighting.sizes[strata])
    return mean_without_proxy(is_class[inside], weighting_of_strata, outcome="binary", target=target)


def shares_above(
    values: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    weighting: Weighting,
    target: str = "population",
) -> SumInterval | None:
    """Return the mean of a variable with few values as a sum of shares, each with the interval of a mean.

    It is Σ (v_j − v_{j−1}) times the share of units at v_j or above. For a possible value without a label,
    the estimated share is 0 or 1, and its interval depends on the number of labels. None if all possible
    values are equal.

    Parameters
    ----------
    values : float (n,)
        Values of the labelled units.
    lowest, highest : float (H,)
        The smallest and the largest possible value in each stratum.
    weighting : Weighting
    target : {"population", "superpopulation"}
    """
    is_labelled = weighting.counts > 0
    values = np.round(values, _DECIMALS)
    lowest = np.round(lowest, _DECIMALS)
    highest = np.round(highest, _DECIMALS)
    edges = np.unique([*values, lowest[is_labelled].min(), highest[is_labelled].max()])
    terms: list[Term] = []
    coefficients = []
    indicators = []
    for below, above in pairwise(edges.tolist()):
        indicator = (values >= above).astype(np.float64)
        # In other strata, it is known that all units, or none, have a value of `above` or more.
        is_unknown = is_labelled & (lowest < above) & (highest > below)
        share_of_strata = 1.0
        if weighting.random_within_strata and target == "population" and np.any(is_unknown < is_labelled):
            terms.append(share_in_strata(indicator, is_unknown, weighting, target))
            n_unknown = np.sum(weighting.sizes[is_unknown])
            share_of_strata = float(n_unknown / np.sum(weighting.sizes[is_labelled]))
        else:
            terms.append(share_estimate(indicator, weighting, target))
        coefficients.append((above - below) * share_of_strata)
        indicators.append(indicator)
    if not terms:
        return None
    shares = _stratum_shares(np.array(indicators), weighting)
    # A unit that reaches the higher of two values also reaches the lower one, so that the product of the two
    # indicators is the smaller one.
    covariances = np.minimum(shares[:, None], shares[None]) - shares[:, None] * shares[None]
    return SumInterval(
        value=float(weighting.weights @ values / weighting.total),
        terms=tuple(terms),
        coefficients=np.array(coefficients),
        correlation=correlation_from(covariances @ _variance_factors(weighting, target)),
    )


def cell_correlation(cells: FloatArray, weighting: Weighting, target: str = "population") -> FloatArray:
    """Return the correlation (d, d) of the means of cells, or of other variables from 0 to 1 (d, n).

    One label with the overall moments is added to each stratum, because the moments of few labels are mostly
    noise. For the same reason, the products of cells are partly replaced by those of labels that are each in
    one cell if there are few graded labels: equal labels would otherwise have an interval of width 0.
    """
    n_inside = int(np.sum(cells.sum(axis=0) > 0))
    graded_share = n_inside**2 / (n_inside**2 + _GRADED_LABELS_OF_HALF_WEIGHT**2)
    exclusive = cells[:, None] * np.eye(len(cells))[:, :, None]
    products = graded_share * cells[:, None] * cells[None] + (1.0 - graded_share) * exclusive
    means = _stratum_shares(cells, weighting)
    shares_of_products = _stratum_shares(products.reshape(-1, cells.shape[1]), weighting)
    squares = shares_of_products.reshape(*products.shape[:2], -1)
    covariances = squares - means[:, None] * means[None]
    return correlation_from(covariances @ _variance_factors(weighting, target))


def _variance_factors(weighting: Weighting, target: str) -> FloatArray:
    """Return the factors (H,) with which variances within strata enter the variance of the mean."""
    if target == "population":
        return weighting.variance_factors
    # Completely labelled strata have a variance for the superpopulation.
    return weighting.as_independent_draws().variance_factors


def _stratum_shares(cells: FloatArray, weighting: Weighting) -> FloatArray:
    """Return the shares (d, H) of cells (d, n) in strata, mixed with one label with the overall shares."""
    overall = (cells @ weighting.weights / weighting.total)[:, None]
    if not weighting.random_within_strata:
        return np.asarray(overall)
    counts = weighting.counts
    sums = np.stack([np.bincount(weighting.stratum, row, minlength=len(counts)) for row in cells])
    return np.asarray((sums + overall) / (counts + 1.0))
