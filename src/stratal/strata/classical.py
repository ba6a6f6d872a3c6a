"""The stratifications of survey practice on one variable, as Kumar & Raj (2016, section 5) list them.

Each takes a distribution and a number of strata and returns boundaries: the bin at which each stratum but the
first begins. Bins are never split, so there may be fewer strata than asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.population.distribution import Distribution
from stratal.strata.moments import of_bins
from stratal.strata.optimal import coarse_edges

DENSITY_CELLS = 4_096
"""Cells of the grid on which a density is estimated."""


def equal_size(distribution: Distribution, n_strata: int) -> IntArray:
    """Return boundaries that split the units as evenly as the bins allow (EQSZ).

    Examples
    --------
    >>> equal_size(_example(), 2)
    array([2])
    """
    return _even_split(distribution.counts.astype(np.float64), n_strata)


def equal_width(distribution: Distribution, n_strata: int) -> IntArray:
    """Return boundaries at low + range · h/H (EQWD); intervals without a unit are left out.

    Examples
    --------
    >>> equal_width(_example(), 2)
    array([2])
    """
    return _at_cuts(
        distribution, np.linspace(distribution.values[0], distribution.values[-1], n_strata + 1)[1:-1]
    )


def weighted_mean(distribution: Distribution, n_strata: int) -> IntArray:
    """Return boundaries that give every stratum the same Σ ẑ (WTMN; Hansen, Hurwitz & Madow).

    Negative proxies are shifted so that the smallest is zero.

    Examples
    --------
    >>> weighted_mean(_example(), 2)
    array([3])
    """
    shifted = distribution.values - min(0.0, float(distribution.values[0]))
    return _even_split(distribution.counts * shifted, n_strata)


def cumulative_root(distribution: Distribution, n_strata: int, *, power: float) -> IntArray:
    """Return boundaries that split the cumulative of a power of the density evenly.

    Parameters
    ----------
    distribution : Distribution
    n_strata : int
        H.
    power : float
        1/2 for cum-√f (SQRT; Dalenius & Hodges 1959), 1/3 for cum-∛f (CBRT; Singh 1971).

    Examples
    --------
    >>> cumulative_root(_example(), 2, power=0.5)
    array([2])
    """
    edges, density = kernel_density(distribution)
    if len(density) == 1:
        return np.empty(0, np.int64)
    cumulative = np.concatenate([[0.0], np.cumsum(density**power)])
    targets = cumulative[-1] * np.arange(1, n_strata) / n_strata
    return _at_cuts(distribution, np.interp(targets, cumulative, edges))


def kernel_density(distribution: Distribution, cells: int = DENSITY_CELLS) -> tuple[FloatArray, FloatArray]:
    """Return cell edges (cells + 1,) and a Gaussian kernel estimate of the density in each cell (cells,).

    Silverman's bandwidth, .9 min(s, IQR / 1.34) N^(−1/5), at least half a cell. The estimate is reflected at
    both ends, since no unit lies beyond, and computed by fast Fourier transform. A constant proxy has a
    single cell.

    Examples
    --------
    >>> edges, density = kernel_density(_example())
    >>> round(float(density @ np.diff(edges)), 6)
    1.0
    """
    low, high = float(distribution.values[0]), float(distribution.values[-1])
    width = (high - low) / cells
    if not 0.0 < width < np.inf:
        return np.array([low, high]), np.ones(1)
    position = np.clip(((distribution.values - low) / width).astype(np.int64), 0, cells - 1)
    mass = np.bincount(position, distribution.counts, minlength=cells) / distribution.size
    bandwidth = max(_silverman(distribution) / width, 0.5)
    reflected = np.concatenate([mass, mass[::-1]])
    frequency = 2.0 * np.pi * np.fft.rfftfreq(2 * cells)
    kernel = np.exp(-0.5 * (bandwidth * frequency) ** 2)
    smooth: FloatArray = np.fft.irfft(np.fft.rfft(reflected) * kernel, 2 * cells)[:cells]
    smooth = np.maximum(smooth, 1e-12 / cells)
    return np.asarray(low + width * np.arange(cells + 1)), smooth / (smooth.sum() * width)


def _silverman(distribution: Distribution) -> float:
    share = (np.cumsum(distribution.counts) - 0.5 * distribution.counts) / distribution.size
    quarter, three_quarters = np.interp([0.25, 0.75], share, distribution.values)
    deviations = distribution.values - distribution.mean
    deviation = float(np.sqrt(distribution.counts @ deviations**2 / distribution.size))
    interquartile = float(three_quarters - quarter) / 1.34
    spread = min(deviation, interquartile) if interquartile > 0 else deviation
    return float(0.9 * spread * distribution.size**-0.2)


def _even_split(mass: FloatArray, n_strata: int) -> IntArray:
    """Return the boundaries whose cumulative mass is nearest to h/H of the total, each at most once."""
    before = np.concatenate([[0.0], np.cumsum(mass)])
    targets = before[-1] * np.arange(1, n_strata) / n_strata
    right = np.clip(np.searchsorted(before, targets), 1, len(mass))
    nearest = np.where(targets - before[right - 1] <= before[right] - targets, right - 1, right)
    return _inner(nearest, len(mass))


def _at_cuts(distribution: Distribution, cuts: FloatArray) -> IntArray:
    """Return the first bin that begins at or after each cut."""
    return _inner(np.searchsorted(distribution.cuts, cuts) + 1, len(distribution.values))


def _inner(boundaries: IntArray, n_bins: int) -> IntArray:
    distinct = np.unique(boundaries)
    return np.asarray(distinct[(distinct > 0) & (distinct < n_bins)])


def _example() -> Distribution:
    values = np.array([0.1, 0.2, 0.8, 0.9])
    return Distribution(values=values, counts=np.ones(4, np.int64), cuts=values[1:])


FIT_BINS = 1_024
ITERATIONS = 300
TOLERANCE = 1e-6
"""EM stops when the mean log-likelihood rises by less."""

SMALLEST_DEVIATION = 1e-3
"""No component is narrower than this share of the standard deviation of all units."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mixture:
    """Components in the order of their means.

    Parameters
    ----------
    shares, means, deviations : float (K,)
    """

    shares: FloatArray
    means: FloatArray
    deviations: FloatArray

    def part(self, which: Any) -> Mixture:
        """Return some of the components."""
        parts = (self.shares[which], self.means[which], self.deviations[which])
        return Mixture(**dict(zip(("shares", "means", "deviations"), parts, strict=True)))

    def log_densities(self, values: FloatArray) -> FloatArray:
        """Return log(share · density) of each value under each component (B, K)."""
        standardised = (values[:, None] - self.means) / self.deviations
        return np.asarray(-0.5 * standardised**2 + np.log(self.shares / self.deviations))


def fit_mixture(distribution: Distribution, n_components: int) -> Mixture:
    """Fit a Gaussian mixture by expectation–maximisation on weighted bins, from equal-sized starting groups.

    The start depends on nothing random, so the same population always gives the same strata.

    Examples
    --------
    >>> values = np.array([0.0, 0.1, 5.0, 5.1])
    >>> picture = Distribution(values=values, counts=np.array([9, 9, 1, 1]), cuts=values[1:])
    >>> fit_mixture(picture, 2).shares.round(3)
    array([0.9, 0.1])
    """
    edges = coarse_edges(distribution, FIT_BINS)
    groups = of_bins(distribution, edges[1:-1])
    values, weights = groups.proxy_means, groups.sizes / groups.sizes.sum()
    centre = float(weights @ values)
    deviation = float(np.sqrt(weights @ (values - centre) ** 2))
    if deviation == 0.0:
        return Mixture(shares=np.ones(1), means=np.array([centre]), deviations=np.ones(1))
    mixture = _start(distribution, n_components, deviation)
    previous = -np.inf
    for _ in range(ITERATIONS):
        mixture, likelihood = _step(mixture, values, weights, deviation * SMALLEST_DEVIATION)
        if likelihood - previous < TOLERANCE:
            break
        previous = likelihood
    return mixture.part(np.argsort(mixture.means, kind="stable"))


def mixture_boundaries(distribution: Distribution, n_strata: int) -> IntArray:
    """Return the boundaries between neighbouring components of a fitted mixture.

    A stratum begins where its component becomes likelier than the one before it, between their means; so
    strata are intervals even where a wide component surrounds a narrow one.

    Examples
    --------
    >>> values = np.array([0.0, 0.1, 5.0, 5.1])
    >>> picture = Distribution(values=values, counts=np.array([9, 9, 1, 1]), cuts=values[1:])
    >>> mixture_boundaries(picture, 2)
    array([2])
    """
    mixture = fit_mixture(distribution, n_strata)
    values = distribution.values
    boundaries = []
    for left in range(len(mixture.means) - 1):
        pair = slice(left, left + 2)
        first, last = np.searchsorted(values, mixture.means[pair])
        between = np.arange(first, max(last, first) + 1)
        between = between[between < len(values)]
        log_densities = mixture.part(pair).log_densities(values[between])
        later = np.flatnonzero(log_densities[:, 1] > log_densities[:, 0])
        boundaries.append(int(between[later[0]]) if len(later) else int(last))
    return _inner(np.array(boundaries, np.int64), len(values))


def _start(distribution: Distribution, n_components: int, deviation: float) -> Mixture:
    groups = of_bins(distribution, equal_size(distribution, n_components))
    return Mixture(
        shares=groups.sizes / groups.sizes.sum(),
        means=groups.proxy_means,
        deviations=np.maximum(np.sqrt(groups.proxy_variances), deviation * 0.05),
    )


def _step(
    mixture: Mixture, values: FloatArray, weights: FloatArray, narrowest: float
) -> tuple[Mixture, float]:
    """Return the mixture after a step of EM, without weightless components, and the mean log-likelihood."""
    joint = mixture.log_densities(values)
    highest = joint.max(axis=1)
    responsibilities = np.exp(joint - highest[:, None])
    totals = responsibilities.sum(axis=1)
    responsibilities *= (weights / totals)[:, None]
    shares = responsibilities.sum(axis=0)
    alive = shares > 1e-12
    responsibilities, shares = responsibilities[:, alive], shares[alive]
    means = responsibilities.T @ values / shares
    variances = np.sum(responsibilities * (values[:, None] - means) ** 2, axis=0) / shares
    stepped = Mixture(
        shares=shares / shares.sum(), means=means, deviations=np.maximum(np.sqrt(variances), narrowest)
    )
    return stepped, float(weights @ (highest + np.log(totals)))
