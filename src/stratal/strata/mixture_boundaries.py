"""Intervals of a proxy between the components of a Gaussian mixture."""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.population.distribution import Distribution
from stratal.strata.classical_boundaries import equal_size, inner_boundaries
from stratal.strata.optimal_boundaries import run_edges
from stratal.strata.strata import moments_of_bins

# Maximum number of bins to which a mixture is fitted. If there are more, neighbouring bins are merged.
MAX_FITTED_BINS = 1_024

# Maximum number of iterations of the EM algorithm.
MAX_ITERATIONS = 300

# The EM algorithm has converged if the mean log-likelihood increases by less.
LIKELIHOOD_TOLERANCE = 1e-6

# Lower limit for the standard deviation of a component, relative to the standard deviation of the proxy.
# Without a limit, the likelihood is unbounded.
MIN_RELATIVE_DEVIATION = 1e-3

# The same limit for the initial values.
MIN_INITIAL_RELATIVE_DEVIATION = 0.05

# A component with a smaller share is removed.
MIN_COMPONENT_SHARE = 1e-12


def log_densities(values: FloatArray, mixture: FloatArray) -> FloatArray:
    """Return log(share · density) + constant (B, K) of values (B,) under the components of `fit_mixture`."""
    shares, means, deviations = mixture
    return np.asarray(-0.5 * ((values[:, None] - means) / deviations) ** 2 + np.log(shares / deviations))


def fit_mixture(distribution: Distribution, n_components: int) -> FloatArray:
    """Fit a Gaussian mixture to the bins by the EM algorithm, with groups of equal size as the start.

    Returns the shares, means and standard deviations (3, K) of the components, in the order of the means.
    There are no random numbers, so that equal populations have equal strata.
    """
    edges = run_edges(distribution, MAX_FITTED_BINS)
    merged_bins = moments_of_bins(distribution, edges[1:-1])
    values = merged_bins.proxy_means
    weights = merged_bins.sizes / merged_bins.sizes.sum()
    mean = float(weights @ values)
    deviation = float(np.sqrt(weights @ (values - mean) ** 2))
    if deviation == 0.0:
        return np.array([[1.0], [mean], [1.0]])
    groups = moments_of_bins(distribution, equal_size(distribution, n_components))
    initial_deviations = np.maximum(
        np.sqrt(groups.proxy_variances), deviation * MIN_INITIAL_RELATIVE_DEVIATION
    )
    mixture = np.stack([groups.weights, groups.proxy_means, initial_deviations])
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
    for k in range(mixture.shape[1] - 1):
        neighbours = mixture[:, k : k + 2]
        first_bin, last_bin = np.searchsorted(values, neighbours[1])
        bins_between = np.arange(first_bin, min(last_bin + 1, len(values)))
        density, next_density = log_densities(values[bins_between], neighbours).T
        is_next_likelier = next_density > density
        boundary = int(last_bin)
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
