"""What one replicate's labels leave behind: a few sums per stratum, for thousands of replicates at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.weighting.stratum_moments import kurtoses_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumSums:
    """Sums over the labelled units of each stratum, R replicates at once.

    Every estimator of a mean with one proxy, its variance and its interval are functions of these.

    Parameters
    ----------
    counts : float (R, H) or (1, H)
        n_h; one row where all replicates share the allocation.
    z, zz : float (R, H)
        Σ z and Σ z².
    p, pp, zp : float (R, H), optional
        Σ p, Σ p² and Σ z p of the proxy p, centred at its mean over the stratum's N_h units.
    zzz, zzp, zpp, ppp : float (R, H), optional
        Third powers, where an interval looks at skewness.
    zzzz : float (R, H), optional
        Σ z⁴, where the next round looks at how uncertain a variance is.

    Examples
    --------
    >>> sums = StratumSums(counts=np.array([[4.0]]), z=np.array([[3.0]]), zz=np.array([[3.0]]))
    >>> sums.means
    array([[0.75]])
    """

    counts: FloatArray
    z: FloatArray
    zz: FloatArray
    p: FloatArray | None = None
    pp: FloatArray | None = None
    zp: FloatArray | None = None
    zzz: FloatArray | None = None
    zzp: FloatArray | None = None
    zpp: FloatArray | None = None
    ppp: FloatArray | None = None
    zzzz: FloatArray | None = None

    @property
    def means(self) -> FloatArray:
        """Mean outcome of each stratum (R, H)."""
        return self.z / self.counts

    @property
    def kurtoses(self) -> FloatArray | None:
        """n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² (R, H), where fourth powers were summed."""
        if self.zzz is None or self.zzzz is None:
            return None
        mean = self.means
        second = np.maximum(self.zz - mean * self.z, 0.0)
        fourth = self.zzzz - 4.0 * mean * self.zzz + 6.0 * mean**2 * self.zz - 3.0 * mean**3 * self.z
        return kurtoses_of(self.counts, second, fourth)

    def residual(self, lam: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ r and Σ r² (R, H) of r = z − λ_h p; λ is (H,) or (R, H)."""
        if self.p is None or self.pp is None or self.zp is None or not np.any(lam):
            return self.z, self.zz
        return self.z - lam * self.p, self.zz - 2.0 * lam * self.zp + lam**2 * self.pp

    def centred_thirds(self, lam: FloatArray) -> FloatArray:
        """Return Σ (r − r̄_h)³ (R, H) of r = z − λ_h p."""
        first, second = self.residual(lam)
        assert self.zzz is not None
        third = self.zzz
        if self.ppp is not None and self.zzp is not None and self.zpp is not None and np.any(lam):
            third = third - 3.0 * lam * self.zzp + 3.0 * lam**2 * self.zpp - lam**3 * self.ppp
        mean = first / self.counts
        return np.asarray(third - 3.0 * mean * second + 2.0 * mean**2 * first)


def spread(counts: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return s_h² with divisor n_h − 1, from Σ y and Σ y²; NaN where n_h < 2.

    Examples
    --------
    >>> spread(np.array([2.0, 1.0]), np.array([4.0, 5.0]), np.array([10.0, 25.0]))
    array([ 2., nan])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.maximum(second - first * first / counts, 0.0)
        return np.asarray(squares / np.where(counts > 1, counts - 1.0, np.nan))


def covariance(counts: FloatArray, first: FloatArray, other: FloatArray, products: FloatArray) -> FloatArray:
    """Return the sample covariance of each stratum, 0 where n_h < 2.

    Examples
    --------
    >>> covariance(np.array([2.0]), np.array([4.0]), np.array([0.0]), np.array([1.0]))
    array([1.])
    """
    return np.asarray((products - first * other / counts) / np.maximum(counts - 1.0, 1.0) * (counts > 1))


def pooled_spread(
    counts: FloatArray, first: FloatArray, second: FloatArray, sizes: IntArray, group: IntArray | None
) -> FloatArray:
    """Return s_h² (R, H) where single-label strata take that of their collapsed group.

    Parameters
    ----------
    counts, first, second : float (R, H)
    sizes : int (H,)
        N_h; a stratum that is labelled whole gets 0 where nothing can be estimated.
    group : int (H,), optional
        From `stratal.weighting.stratum_moments.collapse_singletons`, if any stratum has one label.

    Examples
    --------
    >>> y, yy = np.array([[2.0, 1.0]]), np.array([[4.0, 1.0]])
    >>> pooled_spread(np.array([[2.0, 1.0]]), y, yy, np.array([20, 10]), np.array([0, 0]))
    array([[2., 1.]])
    """
    own = spread(counts, first, second)
    if group is not None:
        member = (group[:, None] == np.arange(len(sizes))[None, :]).astype(np.float64)
        joint = spread(counts @ member, first @ member, second @ member)[:, group]
        own = np.where(np.isnan(own), joint, own)
    return np.where(np.isnan(own) & ((counts >= sizes) | (sizes == 1)), 0.0, own)
