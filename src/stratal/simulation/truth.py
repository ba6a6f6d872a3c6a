"""A fully labelled population in strata: what a simulation knows and a study never does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """The true moments of outcome and proxy in each stratum, and the units themselves.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    means : float (H,)
        True mean outcome.
    variances : float (H,)
        True S_h², divisor N_h − 1 (0 for a single unit).
    proxy_means, proxy_variances, covariances : float (H,)
        Of the proxy, and of proxy and outcome; divisor N_h − 1. Zeros where there is no proxy.
    binary : bool
        Whether every outcome is 0 or 1.
    centre : float
        The population mean, taken off every outcome before it is squared.
    outcomes, proxies : tuple of (N_h,) arrays
        z − centre and p − p̄_h of the units, stratum by stratum; empty for a binary outcome that only needs
        counts.

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0]), None, np.array([0, 1, 1]), 2)
    >>> truth.means, truth.value
    (array([0., 1.]), 0.6666666666666666)
    """

    sizes: IntArray
    means: FloatArray
    variances: FloatArray
    proxy_means: FloatArray
    proxy_variances: FloatArray
    covariances: FloatArray
    binary: bool
    centre: float
    outcomes: tuple[FloatArray, ...] = ()
    proxies: tuple[FloatArray, ...] = ()

    @property
    def value(self) -> float:
        """The population mean."""
        return float(self.sizes @ self.means / self.sizes.sum())

    @property
    def size(self) -> int:
        """N."""
        return int(self.sizes.sum())

    @property
    def weights(self) -> FloatArray:
        """W_h (H,)."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def successes(self) -> IntArray:
        """Units with outcome 1 (H,); binary outcomes only."""
        return np.rint(self.means * self.sizes).astype(np.int64)

    @property
    def population_variance(self) -> float:
        """S², divisor N − 1."""
        within = np.maximum(self.sizes - 1, 0) @ self.variances
        between = self.sizes @ (self.means - self.value) ** 2
        return float((within + between) / max(self.size - 1, 1))

    def residual_variances(self, lam: float | FloatArray) -> FloatArray:
        """True S_h² (H,) of z − λẑ."""
        return np.asarray(
            np.maximum(self.variances - 2 * lam * self.covariances + lam**2 * self.proxy_variances, 0.0)
        )

    @classmethod
    def of(
        cls,
        z: FloatArray,
        proxy: FloatArray | None,
        codes: AnyArray,
        n_strata: int,
        *,
        units: bool = True,
    ) -> Truth:
        """Return the truth of units (N,) in strata `codes` (N,); `units=False` keeps counts only."""
        sizes = np.bincount(codes, minlength=n_strata).astype(np.int64)
        divisor = np.maximum(sizes - 1, 1)
        binary = bool(np.all((z == 0) | (z == 1)))
        centre = float(z.mean())

        def total(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(codes, values, minlength=n_strata), dtype=np.float64)

        shifts = total(z - centre) / sizes
        variances = np.maximum(total((z - centre) ** 2) - sizes * shifts**2, 0.0) / divisor
        zeros = np.zeros(n_strata)
        proxy_means, proxy_variances, covariances, centred = zeros, zeros, zeros, None
        if proxy is not None:
            proxy_means = total(proxy) / sizes
            centred = proxy - proxy_means[codes]
            proxy_variances = total(centred**2) / divisor
            covariances = total(centred * (z - centre)) / divisor
        outcomes: tuple[FloatArray, ...] = ()
        proxies: tuple[FloatArray, ...] = ()
        if units:
            order = np.argsort(codes, kind="stable")
            places = np.cumsum(sizes)[:-1]
            outcomes = tuple(np.split((z - centre)[order], places))
            proxies = () if centred is None else tuple(np.split(centred[order], places))
        return cls(
            sizes=sizes,
            means=total(z) / sizes if binary else shifts + centre,
            variances=variances,
            proxy_means=proxy_means,
            proxy_variances=proxy_variances,
            covariances=covariances,
            binary=binary,
            centre=centre,
            outcomes=outcomes,
            proxies=proxies,
        )
