"""Intervals of a proxy between the components of a Gaussian mixture."""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.population.distribution import Distribution
from stratal.strata.classical_boundaries import equal_size, inner_boundaries
from stratal.strata.optimal_boundaries import run_edges
from stratal.strata.strata import moments_of_bins

# Maximum number of bins to which a mixture is fitted; more are merged into runs.
MAX_FITTED_BINS = 1_024

# Maximum number of iterations of the EM algorithm.
MAX_ITERATIONS = 300

# The EM algorithm has converged if the mean log-likelihood increases by less.
LIKELIHOOD_TOLERANCE = 1e-6

# Lower limit for the standard deviation of a component, as a share of that of all units. Without a limit, the
# likelihood is unbounded.
MIN_RELATIVE_DEVIATION = 1e-3

# Lower limit at the start, as a share of the standard deviation of all units.
MIN_INITIAL_DEVIATION = 0.05

# A component with a smaller share is removed.
MIN_COMPONENT_SHARE = 1e-12


def log_densities(values: FloatArray, mixture: FloatArray) -> FloatArray:
    """Return log(share · density) of each value (B,) under each component (B, K) of a mixture (3, K)."""
    shares, means, deviations = mixture
    return np.asarray(-0.5 * ((values[:, None] - means) / deviations) ** 2 + np.log(shares / deviations))


def fit_mixture(distribution: Distribution, n_components: int) -> FloatArray:
    """Fit a Gaussian mixture to the bins by the EM algorithm, with groups of equal size as the start.

    Returns the shares, means and standard deviations (3, K) of the components, in the order of the means.
    There are no random numbers, so that equal populations have equal strata.
    """
    edges = run_edges(distribution, MAX_FITTED_BINS)
    runs = moments_of_bins(distribution, edges[1:-1])
    values = runs.proxy_means
    weights = runs.sizes / runs.sizes.sum()
    mean = float(weights @ values)
    deviation = float(np.sqrt(weights @ (values - mean) ** 2))
    if deviation == 0.0:
        return np.array([[1.0], [mean], [1.0]])
    start = moments_of_bins(distribution, equal_size(distribution, n_components))
    initial_deviations = np.maximum(np.sqrt(start.proxy_variances), deviation * MIN_INITIAL_DEVIATION)
    mixture = np.stack([start.weights, start.proxy_means, initial_deviations])
    previous_likelihood = -np.inf
    for _ in range(MAX_ITERATIONS):
        mixture, likelihood = _em_step(mixture, values, weights, deviation * MIN_RELATIVE_DEVIATION)
        if likelihood - previous_likelihood < LIKELIHOOD_TOLERANCE:
            break
        previous_likelihood = likelihood
    return np.asarray(mixture[:, np.argsort(mixture[1], kind="stable")])


def mixture_boundaries(distribution: Distribution, n_strata: int) -> IntArray:
    """Return the boundaries between neighbouring components of a fitted mixture.

    A stratum begins at the first bin between the means of two neighbouring components in which the second one
    is more likely. The strata are therefore intervals, even if a wide component surrounds a narrow one.
    """
    mixture = fit_mixture(distribution, n_strata)
    values = distribution.values
    boundaries = []
    for left in range(mixture.shape[1] - 1):
        pair = mixture[:, left : left + 2]
        first, last = np.searchsorted(values, pair[1])
        bins_between = np.arange(first, min(max(last, first) + 1, len(values)))
        density, next_density = log_densities(values[bins_between], pair).T
        is_next_likelier = next_density > density
        boundary = int(last)
        if is_next_likelier.any():
            boundary = int(bins_between[np.argmax(is_next_likelier)])
        boundaries.append(boundary)
    return inner_boundaries(np.array(boundaries, np.int64), len(values))


def _em_step(
    mixture: FloatArray, values: FloatArray, weights: FloatArray, min_deviation: float
) -> tuple[FloatArray, float]:
    """Return the mixture (3, K) after one step of the EM algorithm, and the mean log-likelihood before it."""
    log_joint = log_densities(values, mixture)
    maxima = log_joint.max(axis=1)
    responsibilities = np.exp(log_joint - maxima[:, None])
    totals = responsibilities.sum(axis=1)
    responsibilities *= (weights / totals)[:, None]
    shares = responsibilities.sum(axis=0)
    is_retained = shares > MIN_COMPONENT_SHARE
    responsibilities = responsibilities[:, is_retained]
    shares = shares[is_retained]
    means = responsibilities.T @ values / shares
    variances = np.sum(responsibilities * (values[:, None] - means) ** 2, axis=0) / shares
    next_mixture = np.stack([shares / shares.sum(), means, np.maximum(np.sqrt(variances), min_deviation)])
    return next_mixture, float(weights @ (maxima + np.log(totals)))
