"""How much to trust the proxy: λ, one for all strata or one per stratum, from the gradients.

λ minimises the estimated variance of the chosen coefficients: PPI++ (Angelopoulos, Duchi & Zrnic 2023,
section 6) and its stratified form (Fisch et al. 2024, eq. 16). With P = A⁻¹C the influence directions, u =
P'∇ℓ(x, y) and v = P'∇ℓ(x, f), one number per stratum is needed of each: c_h = Σ Cov(u, v) and s_h = Σ Var v.

Two choices differ from the papers, both measured in docs/methods/regression.md. The denominator blends the
labelled units' own Var v with that of the whole stratum: numerator and denominator from the same units
cancel most of the noise in λ when the proxy is good, and the stratum's variance steadies it when labels are
few. And λ_h is shrunk to the pooled λ by as much as the strata's λ agree within their own noise (an
empirical Bayes estimate).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal import variance
from stratal.arrays import FloatArray, IntArray

PRIOR_LABELS = 2.0
"""Weight, in labels, of the whole stratum's proxy variance against the labelled units' own."""

POOLED_LABELS = 10.0
"""Weight of the pooled noise of λ_h, in labels, against the stratum's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumMoments:
    """What λ depends on, per stratum.

    Parameters
    ----------
    cross : float (H,)
        c_h, covariance of true and proxy influence, summed over the coefficients.
    spread : float (H,)
        s_h, variance of the proxy influence.
    noise : float (H,)
        Estimated sampling variance of c_h / s_h.
    labelled_factor : float (H,)
        What multiplies a variance within the stratum in that of the estimate: W_h² (1 − n_h/N_h) / n_h.
    unlabelled_factor : float (H,)
        What multiplies λ² s_h besides: W_h² / N_h for a separate unlabelled sample, else 0.

    Examples
    --------
    >>> StratumMoments(cross=np.array([1.0]), spread=np.array([2.0]), noise=np.array([0.1]),
    ...                labelled_factor=np.array([1.0]), unlabelled_factor=np.array([0.0])).pooled()
    0.5
    """

    cross: FloatArray
    spread: FloatArray
    noise: FloatArray
    labelled_factor: FloatArray
    unlabelled_factor: FloatArray

    def pooled(self) -> float:
        """Return the λ that minimises the whole variance, 0 where the proxy gradient never varies."""
        total = float(np.sum((self.labelled_factor + self.unlabelled_factor) * self.spread))
        return float(np.sum(self.labelled_factor * self.cross)) / total if total > 0 else 0.0

    def own(self) -> FloatArray:
        """Return each stratum's own λ_h (H,), 0 where the proxy gradient does not vary (eq. 16)."""
        total = (self.labelled_factor + self.unlabelled_factor) * self.spread
        safe = np.where(total > 0, total, 1.0)
        return np.asarray(np.where(total > 0, self.labelled_factor * self.cross / safe, 0.0))

    def agreement(self) -> FloatArray:
        """Return the share (H,) of λ_h's own value to keep, in [0, 1]: τ² / (τ² + noise).

        τ², the variance of the true λ_h, is found by moments (DerSimonian & Laird 1986). Strata in which λ_h
        does not matter keep nothing.
        """
        used = (self.spread > 0) & (self.labelled_factor > 0) & (self.noise > 0) & np.isfinite(self.noise)
        if used.sum() < 2:
            return np.zeros(len(self.spread))
        weight = 1.0 / self.noise[used]
        own = self.own()[used]
        centre = np.sum(weight * own) / weight.sum()
        excess = np.sum(weight * (own - centre) ** 2) - (len(own) - 1)
        between = max(0.0, excess / (weight.sum() - np.sum(weight**2) / weight.sum()))
        kept = np.zeros(len(self.spread))
        kept[used] = between / (between + self.noise[used])
        return kept

    def shrunk(self) -> tuple[FloatArray, FloatArray]:
        """Return λ_h shrunk to the pooled λ (H,), and the share of its own value that each kept (H,)."""
        pooled, kept = self.pooled(), self.agreement()
        return pooled + kept * (self.own() - pooled), kept


def stratum_moments(
    true_influence: FloatArray,
    proxy_influence: FloatArray,
    stratum: IntArray,
    counts: IntArray,
    population_spread: FloatArray,
    labelled_factor: FloatArray,
    unlabelled_factor: FloatArray,
    denominator: str = "blended",
) -> StratumMoments:
    """Return c_h, s_h and their noise from the labelled units' influence variables.

    Parameters
    ----------
    true_influence, proxy_influence : float (n, q)
        u and v.
    stratum : int (n,)
    counts : int (H,)
        n_h.
    population_spread : float (H,)
        Var v over all units of the stratum, summed over the q coefficients.
    labelled_factor, unlabelled_factor : float (H,)
        See `StratumMoments`.
    denominator : str
        "blended" (the default), "population" or "labelled": whose Var v divides.

    Returns
    -------
    StratumMoments

    Examples
    --------
    >>> v = np.array([[0.0], [1.0], [2.0]])
    >>> one = np.ones(1)
    >>> stratum_moments(2 * v, v, np.zeros(3, int), np.array([3]), one, one, np.zeros(1)).pooled()
    2.0
    """
    n_strata = len(counts)
    u = true_influence - variance.stratum_means(true_influence, stratum, n_strata)[stratum]
    v = proxy_influence - variance.stratum_means(proxy_influence, stratum, n_strata)[stratum]
    free = np.maximum(counts - 1.0, 1.0)
    products, squares = np.sum(u * v, axis=1), np.sum(v * v, axis=1)
    cross = np.bincount(stratum, products, minlength=n_strata) / free
    own_spread = np.bincount(stratum, squares, minlength=n_strata) / free
    prior = {"blended": PRIOR_LABELS, "population": np.inf, "labelled": 0.0}[denominator]
    spread = _blend(own_spread, population_spread, np.maximum(counts - 1.0, 0.0), prior)
    ratio = np.where(spread > 0, cross / np.where(spread > 0, spread, 1.0), 0.0)
    reference = ratio[stratum] * (squares if denominator != "population" else population_spread[stratum])
    scaled = (products - reference) / np.where(spread > 0, spread, np.inf)[stratum]
    return StratumMoments(
        cross=cross,
        spread=spread,
        noise=_noise(scaled, stratum, counts),
        labelled_factor=labelled_factor,
        unlabelled_factor=unlabelled_factor,
    )


def _blend(own: FloatArray, whole: FloatArray, labels: FloatArray, prior: float) -> FloatArray:
    if np.isinf(prior):
        return whole
    if prior == 0:
        return own
    return np.asarray((labels * own + prior * whole) / (labels + prior))


def _noise(scaled: FloatArray, stratum: IntArray, counts: IntArray) -> FloatArray:
    """Return the variance (H,) of a mean of `scaled`: each stratum's own, steadied by the pooled one."""
    squares = np.bincount(stratum, scaled**2, minlength=len(counts))
    free = np.maximum(counts - 2.0, 0.0)
    pooled = squares.sum() / max(free.sum(), 1.0)
    own = (squares + POOLED_LABELS * pooled) / (free + POOLED_LABELS)
    return np.asarray(own / np.maximum(counts, 1))
