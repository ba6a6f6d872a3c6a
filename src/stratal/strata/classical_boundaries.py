"""Intervals of a proxy by classical rules: equal sizes, equal widths, equal sums, and powers of the density.

Boundaries (H − 1,) are the first bin of each stratum but the first. There are fewer of them if strata would
be empty, because the units of a bin are not divided.
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.population.distribution import Distribution

# Number of cells of the grid on which a density is estimated.
DENSITY_CELLS = 4_096


def equal_size(distribution: Distribution, n_strata: int) -> IntArray:
    """Return the boundaries of strata with sizes as equal as the bins allow (EQSZ)."""
    return split_evenly(distribution.counts.astype(np.float64), n_strata)


def equal_width(distribution: Distribution, n_strata: int) -> IntArray:
    """Return the boundaries at minimum + range · h/H (EQWD); empty intervals are omitted."""
    cuts = np.linspace(distribution.values[0], distribution.values[-1], n_strata + 1)[1:-1]
    return _bins_at_cuts(distribution, cuts)


def weighted_mean(distribution: Distribution, n_strata: int) -> IntArray:
    """Return the boundaries of strata with equal Σ ẑ (WTMN; Hansen, Hurwitz & Madow).

    If a proxy has negative values, its minimum is subtracted first.
    """
    shifted = distribution.values - min(0.0, float(distribution.values[0]))
    return split_evenly(distribution.counts * shifted, n_strata)


def cumulative_root(distribution: Distribution, n_strata: int, *, power: float) -> IntArray:
    """Return the boundaries that divide the cumulative sum of a power of the density into equal parts.

    Parameters
    ----------
    distribution : Distribution
    n_strata : int
        H.
    power : float
        1/2 for cum-√f (SQRT; Dalenius & Hodges 1959), 1/3 for cum-∛f (CBRT; Singh 1971).
    """
    edges, density = kernel_density(distribution)
    if len(density) == 1:
        return np.empty(0, np.int64)
    cumulative = np.concatenate([[0.0], np.cumsum(density**power)])
    targets = cumulative[-1] * np.arange(1, n_strata) / n_strata
    return _bins_at_cuts(distribution, np.interp(targets, cumulative, edges))


def kernel_density(distribution: Distribution) -> tuple[FloatArray, FloatArray]:
    """Return the edges (C + 1,) of C cells, and a Gaussian kernel estimate of the density in each cell (C,).

    The bandwidth is that of Silverman, 0.9 min(s, IQR / 1.34) N^(−1/5), but at least half a cell. The
    estimate is reflected at both ends, because there are no units beyond, and computed by fast Fourier
    transform. A constant proxy has a single cell.
    """
    cells = DENSITY_CELLS
    low = float(distribution.values[0])
    high = float(distribution.values[-1])
    width = (high - low) / cells
    if not 0.0 < width < np.inf:
        return np.array([low, high]), np.ones(1)
    cell_of_bin = np.clip(((distribution.values - low) / width).astype(np.int64), 0, cells - 1)
    cell_shares = np.bincount(cell_of_bin, distribution.counts, minlength=cells) / distribution.size
    rank = (np.cumsum(distribution.counts) - 0.5 * distribution.counts) / distribution.size
    lower_quartile, upper_quartile = np.interp([0.25, 0.75], rank, distribution.values)
    deviations = distribution.values - distribution.mean
    scale = float(np.sqrt(distribution.counts @ deviations**2 / distribution.size))
    if upper_quartile > lower_quartile:
        scale = min(scale, float(upper_quartile - lower_quartile) / 1.34)
    bandwidth = max(float(0.9 * scale * distribution.size**-0.2) / width, 0.5)  # in cells
    reflected = np.concatenate([cell_shares, cell_shares[::-1]])
    frequency = 2.0 * np.pi * np.fft.rfftfreq(2 * cells)
    kernel = np.exp(-0.5 * (bandwidth * frequency) ** 2)
    smoothed: FloatArray = np.fft.irfft(np.fft.rfft(reflected) * kernel, 2 * cells)[:cells]
    # Rounding errors of the transform may make a share negative, and the density is raised to a power.
    smoothed = np.maximum(smoothed, 1e-12 / cells)
    return np.asarray(low + width * np.arange(cells + 1)), smoothed / (smoothed.sum() * width)


def split_evenly(mass: FloatArray, n_strata: int) -> IntArray:
    """Return the distinct boundaries whose cumulative mass is nearest to h/H of the total.

    `mass` (B,) is a nonnegative quantity of each bin, such as its number of units.
    """
    cumulative = np.concatenate([[0.0], np.cumsum(mass)])
    targets = cumulative[-1] * np.arange(1, n_strata) / n_strata
    right = np.clip(np.searchsorted(cumulative, targets), 1, len(mass))
    is_left_nearer = targets - cumulative[right - 1] <= cumulative[right] - targets
    nearest = np.where(is_left_nearer, right - 1, right)
    return inner_boundaries(nearest, len(mass))


def _bins_at_cuts(distribution: Distribution, cuts: FloatArray) -> IntArray:
    """Return the first bins that begin at or after the cuts, as boundaries."""
    return inner_boundaries(np.searchsorted(distribution.cuts, cuts) + 1, len(distribution.values))


def inner_boundaries(boundaries: IntArray, n_bins: int) -> IntArray:
    """Return the distinct boundaries without the first and the last edge, which would make empty strata."""
    distinct = np.unique(boundaries)
    return np.asarray(distinct[(distinct > 0) & (distinct < n_bins)])
