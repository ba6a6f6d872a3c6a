"""Weights and variances of cluster samples: the variance is that between clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.weighting.weighting import Weighting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterWeighting(Weighting):
    """A simple random sample of clusters, realised: m of M clusters have labelled units.

    Parameters
    ----------
    cluster : int (n,)
        Cluster of each labelled unit, 0 … m − 1; every number occurs.
    drawn : int (m,)
        Units of each cluster, labelled or not.
    clusters : int
        M, clusters in the population.
    size : int
        N, units in the population.

    Examples
    --------
    >>> weighting = ClusterWeighting(cluster=np.array([0, 0, 1]), drawn=np.array([2, 2]), clusters=4, size=8)
    >>> weighting.weights
    array([0.25, 0.25, 0.5 ])
    >>> weighting.covariance(np.array([[1.0], [1.0], [0.0]]))
    array([[0.125]])
    """

    cluster: IntArray
    drawn: IntArray
    clusters: int
    size: float

    @property
    def weights(self) -> FloatArray:
        """M / (m N) per unit (n,), times drawn over labelled units of its cluster."""
        labelled = np.bincount(self.cluster, minlength=len(self.drawn))
        share = (self.drawn / labelled)[self.cluster]
        return np.asarray(self.clusters / (len(self.drawn) * self.size) * share)

    @property
    def draws(self) -> int:
        """Clusters with labelled units, m."""
        return len(self.drawn)

    @property
    def groups(self) -> IntArray:
        """The clusters (n,)."""
        return self.cluster

    def covariance(self, variables: FloatArray) -> FloatArray:
        """See `between_clusters`."""
        return between_clusters(variables * self.weights[:, None], self.cluster, self.clusters)


def between_clusters(parts: FloatArray, cluster: IntArray, clusters: int) -> FloatArray:
    """Return the covariance of the sum of all parts when m of M clusters were drawn at random.

    (1 − m/M) m / (m − 1) Σ (t_c − t̄)² with t_c the cluster's sum of weighted variables (Cochran, eq. 9A.2;
    Lohr, eq. 5.2). Every unit of a drawn cluster counts, so that nothing is added for within.

    Parameters
    ----------
    parts : float (n, q)
        Weighted variables of the labelled units.
    cluster : int (n,)
        0 … m − 1.
    clusters : int
        M.

    Returns
    -------
    float (q, q)
        NaN for one cluster out of several.

    Examples
    --------
    >>> between_clusters(np.array([[0.25], [0.25], [0.0]]), np.array([0, 0, 1]), 4)
    array([[0.125]])
    """
    m, q = int(cluster.max()) + 1, parts.shape[1]
    if m >= clusters:
        return np.zeros((q, q))
    if m < 2:
        return np.full((q, q), np.nan)
    totals = np.stack([np.bincount(cluster, column, minlength=m) for column in parts.T], axis=1)
    centred = totals - totals.mean(axis=0)
    return np.asarray((1.0 - m / clusters) * m / (m - 1) * centred.T @ centred)
