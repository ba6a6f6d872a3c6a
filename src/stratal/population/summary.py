"""Sizes of strata and moments of proxies in them, from which estimators compute population means."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record, code_count
from stratal.errors import InputError

# Relative rounding error of a variance that is computed as the mean square minus the squared mean: four times
# that of one operation.
_ROUNDING_ERROR = 4 * np.finfo(np.float64).eps

# A standard deviation of at most this share of the mean is a rounding error of a constant proxy.
_MAX_DEVIATION_OF_CONSTANT = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumSummary(Record):
    """Sizes of the H strata of a population, and moments of its k proxies in them.

    Parameters
    ----------
    sizes : int (H,)
        Number of units in each stratum, N_h.
    proxy_means : float (H, k)
        Mean of each of the k proxies over the N_h units.
    proxy_covariances : float (H, k, k)
        Covariances of the proxies over the N_h units, divisor N_h.
    """

    sizes: IntArray
    proxy_means: FloatArray
    proxy_covariances: FloatArray

    def __post_init__(self) -> None:
        self._freeze()
        n_strata, k = self.proxy_means.shape
        if self.sizes.shape != (n_strata,) or self.proxy_covariances.shape != (n_strata, k, k):
            raise InputError("stratum sizes, proxy means and covariances do not match")

    def select_proxies(self, columns: list[int]) -> StratumSummary:
        """Return the summary of the proxies at the positions `columns`, from 0."""
        return replace(
            self,
            proxy_means=self.proxy_means[:, columns],
            proxy_covariances=self.proxy_covariances[:, columns][:, :, columns],
        )

    @property
    def size(self) -> int:
        """Number of units in all strata, N."""
        return int(self.sizes.sum())

    @classmethod
    def without_proxies(cls, sizes: IntArray) -> StratumSummary:
        """Return the summary of strata (H,) of a population without proxies."""
        n_strata = len(sizes)
        return cls(
            sizes=sizes, proxy_means=np.empty((n_strata, 0)), proxy_covariances=np.empty((n_strata, 0, 0))
        )

    @property
    def unbiased_covariances(self) -> FloatArray:
        """Covariances of the proxies (H, k, k), divisor N_h − 1; exactly 0 for a constant proxy."""
        factor = np.where(self.sizes > 1, self.sizes / np.maximum(self.sizes - 1, 1), 0.0)
        deviations = np.sqrt(np.abs(np.einsum("hii->hi", self.proxy_covariances)))
        # Engines add in any order, so that the variance of a constant may be a rounding error instead of 0.
        is_constant = deviations <= _MAX_DEVIATION_OF_CONSTANT * np.abs(self.proxy_means)
        covariances = self.proxy_covariances * factor[:, None, None]
        return np.asarray(np.where(is_constant[:, :, None] | is_constant[:, None, :], 0.0, covariances))

    @property
    def overall_means(self) -> FloatArray:
        """Proxy means (k,) over all strata."""
        return np.asarray(self.sizes @ self.proxy_means / self.size)

    @classmethod
    def from_centred_sums(
        cls, counts: IntArray, sums: FloatArray, products: FloatArray, centres: FloatArray
    ) -> StratumSummary:
        """Return the summary of proxies, from sums of their differences from fixed numbers, the centres.

        Parameters
        ----------
        counts : int (H,)
            Number of units in each stratum.
        sums : float (H, k)
            Sums of the differences.
        products : float (H, k, k)
            Sums of the products of two differences; only the lower triangles are read.
        centres : float (k,)
        """
        divisor = np.maximum(counts, 1)
        means = sums / divisor[:, None]
        moments = np.tril(products) + np.tril(products, -1).transpose(0, 2, 1)
        covariances = moments / divisor[:, None, None] - means[:, :, None] * means[:, None, :]
        diagonal = np.arange(len(centres))
        # The variance of a constant proxy is only rounding error, which grows with the square root of the
        # number of units.
        variances = covariances[:, diagonal, diagonal]
        squares = moments[:, diagonal, diagonal]
        rounding_error = _ROUNDING_ERROR / np.sqrt(divisor[:, None]) * squares
        covariances[:, diagonal, diagonal] = np.where(variances > rounding_error, variances, 0.0)
        return cls(sizes=counts, proxy_means=means + centres, proxy_covariances=covariances)

    def select_strata(self, mask: BoolArray) -> StratumSummary:
        """Return the summary of the strata for which `mask` (H,) is true."""
        return StratumSummary(
            sizes=self.sizes[mask],
            proxy_means=self.proxy_means[mask],
            proxy_covariances=self.proxy_covariances[mask],
        )

    def merge_strata(self, codes: IntArray) -> StratumSummary:
        """Return the summary of merged strata, given the number of the new stratum of each stratum (H,)."""
        n_merged = code_count(codes)
        k = self.proxy_means.shape[1]
        sizes = np.bincount(codes, self.sizes, minlength=n_merged)
        means = np.zeros((n_merged, k))
        np.add.at(means, codes, self.proxy_means * self.sizes[:, None])
        means /= sizes[:, None]
        # The covariance of a merged stratum is the mean covariance within its old strata plus that between
        # their means.
        centred = self.proxy_means - means[codes]
        second_moments = self.proxy_covariances + centred[:, :, None] * centred[:, None, :]
        sums = np.zeros((n_merged, k, k))
        np.add.at(sums, codes, second_moments * self.sizes[:, None, None])
        return StratumSummary(
            sizes=sizes.astype(np.int64),
            proxy_means=means,
            proxy_covariances=sums / sizes[:, None, None],
        )
