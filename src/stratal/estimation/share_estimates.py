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

# Number of decimals of the values of cells: further decimals are rounding errors.
_DIGITS = 12

# Number of graded labels with which their products of cells get weight 0.5 (with twice as many, 0.8). The
# intervals of slices in plans then have 1.02 times the width of those in random samples (300 labels). For
# labels of which 97% are alike, the coverage is 0.94 to 1.00, and 0.83 without this rule.
_GRADED_LABELS_OF_HALF_WEIGHT = 12.0


def mean_of(unit: FloatArray, weighting: Weighting, target: str = "population") -> Estimate:
    """Return the mean of an indicator, or of a variable from 0 to 1, by the estimator of `estimate`."""
    is_binary = bool(np.all(np.isin(unit, (0.0, 1.0))))
    outcome = "binary" if is_binary else "bounded"
    # Hájek's estimator is not affected by the random size of a sample of clusters or of a Poisson sample.
    estimator = "auto" if weighting.random_within_strata else "hajek"
    return plain_mean(unit, weighting, estimator=estimator, outcome=outcome, bounds=(0.0, 1.0), target=target)


def rate_in_strata(is_class: FloatArray, strata: BoolArray, weighting: Weighting, target: str) -> Estimate:
    """Return the mean over the strata for which `strata` (H,) is true. Their labels are a separate sample."""
    inside = strata[weighting.stratum]
    stratum = (np.cumsum(strata) - 1)[weighting.stratum[inside]]
    assert isinstance(weighting, StratifiedWeighting)
    weighting_of_strata = replace(weighting, stratum=stratum, sizes=weighting.sizes[strata])
    return plain_mean(is_class[inside], weighting_of_strata, outcome="binary", target=target)


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
    values, lowest, highest = (np.round(column, _DIGITS) for column in (values, lowest, highest))
    edges = np.unique([*values, lowest[is_labelled].min(), highest[is_labelled].max()])
    terms: list[Term] = []
    coefficients = []
    indicators = []
    for below, above in pairwise(edges.tolist()):
        indicator = (values >= above).astype(np.float64)
        # In other strata, all units or none have a value of `above` or more.
        is_open = is_labelled & (lowest < above) & (highest > below)
        share_of_strata = 1.0
        if weighting.random_within_strata and target == "population" and np.any(is_open < is_labelled):
            terms.append(rate_in_strata(indicator, is_open, weighting, target))
            share_of_strata = float(np.sum(weighting.sizes[is_open]) / np.sum(weighting.sizes[is_labelled]))
        else:
            terms.append(mean_of(indicator, weighting, target))
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

    The moments of each stratum are mixed with one label that has the overall moments, because those of few
    labels are mostly noise. For the same reason, few graded labels count in part as if each were in only one
    cell: labels that are all equal would otherwise give an interval without width.
    """
    n_inside = int(np.sum(cells.sum(axis=0) > 0))
    graded_share = n_inside**2 / (n_inside**2 + _GRADED_LABELS_OF_HALF_WEIGHT**2)
    exclusive = cells[:, None] * np.eye(len(cells))[:, :, None]
    products = graded_share * cells[:, None] * cells[None] + (1.0 - graded_share) * exclusive
    means = _stratum_shares(cells, weighting)
    squares = _stratum_shares(products.reshape(-1, cells.shape[1]), weighting).reshape(
        *products.shape[:2], -1
    )
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
