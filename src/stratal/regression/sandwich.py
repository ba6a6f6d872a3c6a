"""The sandwich A⁻¹ B A⁻¹: A the Hessian of the population's loss, B the rectified gradient's covariance.

B has up to three parts: the labelled units' (from the `Weighting`, of the residual gradients ∇ℓ(x, y) −
λ∇ℓ(x, f)), the population's own (target "superpopulation"), and that of a separate unlabelled sample (Fisch
et al. 2024, Theorem 2). Residual gradients are corrected for the fit: by units' leverages, or by clusters'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.designs import Weighting
from stratal.designs.stratum_moments import stratum_means
from stratal.regression.options import Options
from stratal.regression.rectified_loss import RectifiedLoss

_HIGHEST_LEVERAGE = 0.75
_LEAST_LEFT = 0.25
"""Least share of its variance that a cluster is taken to show, in any direction; as of single units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandwich:
    """The two parts of the covariance at one θ and λ.

    Parameters
    ----------
    rectified : RectifiedLoss
    options : Options
    theta : float (d,)
    lam : float (H,)

    Examples
    --------
    >>> from stratal.regression.losses import MeanLoss
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(2, int), sizes=np.array([4]))
    >>> rectified = RectifiedLoss(MeanLoss(), [1.0, 3.0], weighting)
    >>> parts = Sandwich(rectified=rectified, options=Options(), theta=np.array([2.0]), lam=np.zeros(1))
    >>> parts.meat(rectified.residual_gradients(parts.theta, parts.lam))
    array([[0.5]])
    """

    rectified: RectifiedLoss
    options: Options
    theta: FloatArray
    lam: FloatArray

    def hessian(self, at_minimum: FloatArray) -> FloatArray:
        """Return A (d, d), estimated as `options.hessian` says; `at_minimum` is the rectified loss's own."""
        if self.options.hessian == "rectified":
            return at_minimum
        data, loss = self.rectified, self.rectified.loss
        units, weights = data.unlabelled, data.weights
        if self.options.hessian == "labelled" or units is None or not np.any(self.lam):
            return loss.hessian(self.theta, data.features, data.outcome, weights)
        if not units.separate:
            return units.summed(loss, self.theta, data.shares).hessian
        share = data.counts / (data.counts + units.counts)
        own = loss.hessian(self.theta, data.features, data.outcome, weights * data.per_unit(share))
        return own + units.summed(loss, self.theta, data.shares * (1.0 - share)).hessian

    def meat(self, residual: FloatArray, unlabelled: FloatArray | None = None) -> FloatArray:
        """Return B (d, d), the covariance of the rectified gradient.

        Parameters
        ----------
        residual : float (n, d)
            ∇ℓ(x, y) − λ∇ℓ(x, f) of the labelled units, corrected for what was fitted on them.
        unlabelled : float (H, d, d), optional
            Covariances of ∇ℓ(x, f) within the strata of a separate unlabelled sample (eq. 10, 13).
        """
        data, total = self.rectified, self.rectified.weighting.covariance(residual)
        if data.unlabelled is not None and data.separate and unlabelled is not None:
            factors = data.shares**2 * self.lam**2 / data.unlabelled.counts
            return np.asarray(total + np.tensordot(factors, unlabelled, axes=1))
        if self.options.target == "superpopulation" and not data.separate:
            gradients = data.loss.gradients(self.theta, data.features, data.outcome)
            known = self.options.stratum_weights_known
            return total + data.weighting.population_covariance(gradients, stratum_weights_known=known)
        return total


def degrees_of_freedom(weighting: Weighting, variables: FloatArray) -> FloatArray:
    """Return the degrees of freedom (q,) of the variance of each variable (n, q).

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(3, int), sizes=np.array([9]))
    >>> degrees_of_freedom(weighting, np.arange(6.0).reshape(3, 2))
    array([2., 2.])
    """
    if weighting.random_within_strata and len(weighting.sizes) == 1:
        # Of one stratum they do not depend on the variable.
        return np.full(variables.shape[1], weighting.degrees_of_freedom(variables[:, 0]))
    return np.array([weighting.degrees_of_freedom(column) for column in variables.T])


def left_out_residuals(
    residuals: FloatArray, leverages: FloatArray, stratum: IntArray, n_strata: int
) -> FloatArray:
    """Return the residual gradients as if each unit had been left out of the fits: over 1 − leverage.

    The leverage of a labelled unit is what it adds to the rectified Hessian, w (1 − λ) tr(A⁻¹∇²ℓ), plus its
    pull on the fitted λ. At λ = 0 this is HC3 (MacKinnon & White 1985); as λ goes to 1 the Hessian comes
    from the population and nothing of the first part is left. Deviations from the stratum's mean are
    stretched, since those alone vary.

    Parameters
    ----------
    residuals : float (n, d)
    leverages : float (n,)
        Cut at 0.75.
    stratum : int (n,)
    n_strata : int

    Examples
    --------
    >>> left_out_residuals(np.array([[1.0], [3.0]]), np.array([0.5, 0.5]), np.zeros(2, int), 1).ravel()
    array([0., 4.])
    """
    centre = stratum_means(residuals, stratum, n_strata)[stratum]
    kept = 1.0 - np.clip(leverages, 0.0, _HIGHEST_LEVERAGE)
    return np.asarray(centre + (residuals - centre) / kept[:, None])


def degrees_factor(n: int, used: float) -> float:
    """Return √((n − 1)/(n − used)): residuals times this give HC1 with a design's divisor n − 1.

    Examples
    --------
    >>> degrees_factor(10, 1)
    1.0
    """
    return float(np.sqrt(max((n - 1) / max(n - used, 1.0), 1.0)))


def directed_variances(covariances: FloatArray, directions: FloatArray) -> FloatArray:
    """Return Tr(P' V_h P) (H,), the variance along the directions (d, k) that covariances (H, d, d) give.

    Examples
    --------
    >>> directed_variances(np.array([[[4.0, 1.0], [1.0, 9.0]]]), np.array([[1.0], [1.0]]))
    array([15.])
    """
    return np.asarray(np.sum(covariances * (directions @ directions.T), axis=(1, 2)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FewClusters(Record):
    """What each of m clusters adds to a fit.

    A cluster pulls the fit towards itself and shows (1 − H_c A⁻¹) of its gradient's variance, with H_c its
    part of the Hessian A (Bell & McCaffrey 2002). Units' own leverages do not tell: twenty of .02 that stand
    together are .4.

    Parameters
    ----------
    cluster : int (n,)
        Of each labelled unit, 0 … m − 1.
    parts : float (m, d, d)
        H_c, of the labelled units' loss as far as it is not taken from the proxy.
    bread : float (d, d)
        A⁻¹, positive definite.

    Examples
    --------
    >>> alike = FewClusters(cluster=np.repeat([0, 1, 2, 3], 2), parts=np.full((4, 1, 1), 0.25),
    ...                     bread=np.eye(1))
    >>> alike.stretched(np.ones((8, 1)))[0], alike.degrees_of_freedom()
    (array([1.]), array([3.]))
    """

    cluster: IntArray
    parts: FloatArray
    bread: FloatArray

    @property
    def stretches(self) -> FloatArray:
        """(1 − H_c A⁻¹)^(−1/2) (m, d, d)."""
        root = np.linalg.cholesky(self.bread)
        values, vectors = np.linalg.eigh(root.T @ self.parts @ root)
        powers = vectors / np.sqrt(np.maximum(1.0 - values, _LEAST_LEFT))[:, None, :]
        return np.asarray(np.linalg.inv(root).T @ powers @ vectors.transpose(0, 2, 1) @ root.T)

    def stretched(self, residual: FloatArray) -> FloatArray:
        """Return residual gradients (n, d) as they would be of a fit without their cluster ("CR2").

        The factor m/(m − 1) of the covariance between clusters, which does the same for clusters that are
        alike, is taken off.
        """
        shrink = np.sqrt(max(1.0 - 1.0 / len(self.parts), 0.0))
        return np.asarray(shrink * np.einsum("nij,nj->ni", self.stretches[self.cluster], residual))

    def degrees_of_freedom(self) -> FloatArray:
        """Return (tr Ω)² / tr Ω² of each coefficient (d,).

        Ω is the covariance of the clusters' stretched gradients where units vary alike and independently.
        """
        stretches = self.stretches
        pulls = np.einsum("cij,jk->cik", stretches.transpose(0, 2, 1), self.bread)  # S_c' b_k
        halves = np.einsum("cij,cjk->kci", self.parts, pulls)  # H_c S_c' b_k
        own = np.einsum("cik,kci->kc", pulls, halves)
        shared = np.einsum("kci,ij,kcj->kc", halves, self.bread, halves)
        joint = np.einsum("kci,kcj->kij", halves, halves) @ self.bread
        squares = np.sum(own**2 - 2.0 * own * shared, axis=1) + np.einsum("kij,kji->k", joint, joint)
        trace = np.sum(own - shared, axis=1)
        return np.asarray(np.where(squares > 0, trace**2 / np.where(squares > 0, squares, 1.0), 1.0))
