"""Which of several sets satisfy a requirement, so that all of them do with a stated confidence."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from stratal.arrays import BoolArray, FloatArray
from stratal.intervals.simultaneous import correlation_root

# Draws of correlated normal variables: an error of 5% is simulated to ± .001 (one standard error).
DRAWS = 50_000

# Fixed, so that the same labels accept the same set.
_SEED = 0


@lru_cache(maxsize=4)
def _normal_draws(draws: int, dimensions: int) -> FloatArray:
    """Return standard normal variables (dimensions, draws), the same in every call."""
    return np.ascontiguousarray(np.random.default_rng(_SEED).standard_normal((draws, dimensions)).T)


def set_correlations(weights: FloatArray) -> FloatArray:
    """Return correlations (J, J) of the estimated means of J sets from the weights (m, J) of their labels.

    Outcomes are assumed to have equal variances. The correlation of nested sets with equal weights is
    √(n_i / n_j), that of disjoint sets 0.
    """
    return correlations_of(weights.T @ weights)


def correlations_of(products: FloatArray) -> FloatArray:
    """Return correlations (J, J) of sets from the products of their labels' weights."""
    deviations = np.sqrt(np.maximum(products.diagonal(), np.finfo(np.float64).tiny))
    correlations = products / deviations[:, None] / deviations
    np.fill_diagonal(correlations, 1.0)
    return correlations


def step_down(
    p_values: FloatArray, correlations: FloatArray, error: float, draws: int = DRAWS
) -> tuple[BoolArray, FloatArray]:
    """Return which hypotheses are rejected with family-wise error `error`, and the local level of each.

    Step-down max-t (Romano & Wolf 2005, algorithm 2): the local significance level is the normal probability
    beyond the quantile of the largest remaining statistic. A set is rejected if its p-value is not above it.

    Parameters
    ----------
    p_values : float (J,)
    correlations : float (J, J)
    error : float
    draws : int
    """
    rejected = np.zeros(len(p_values), dtype=bool)
    local_levels = np.full(len(p_values), error)
    root = correlation_root(correlations)
    # The sets that remain always have the largest p-values: running maxima in this order serve every step.
    order = np.argsort(-p_values)
    largest = root[order] @ _normal_draws(draws, root.shape[1])
    for row, next_row in pairwise(largest):
        np.maximum(row, next_row, out=next_row)
    rank = min(int(np.ceil((1.0 - error) * (draws + 1))), draws) - 1
    remaining = len(p_values)
    while remaining > 0:
        quantile = np.partition(largest[remaining - 1], rank)[rank]
        # A single hypothesis is tested at `error`; the simulated quantile may be slightly smaller.
        local_level = min(float(ndtr(-quantile)), error)
        candidates = order[:remaining]
        local_levels[candidates] = local_level
        passing = candidates[p_values[candidates] <= local_level]
        if len(passing) == 0:
            break
        rejected[passing] = True
        remaining -= len(passing)
    return rejected, local_levels
