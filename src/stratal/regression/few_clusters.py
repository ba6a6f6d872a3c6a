"""Coefficients from few clusters: residual gradients and degrees of freedom of Bell and McCaffrey (2002).

A cluster pulls the fit towards itself and shows (1 − H_c A⁻¹) of its gradient's variance, with H_c its part
of the Hessian A. Units' own leverages do not tell: twenty of .02 that stand together are .4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record

_LEAST_LEFT = 0.25
"""Least share of its variance that a cluster is taken to show, in any direction; as of single units."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FewClusters(Record):
    """What each of m clusters adds to a fit.

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
