"""Weights and variances of survey samples, whose weights, strata and clusters were given together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs.weighting import Weighting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SurveyWeighting(Weighting):
    """Clusters drawn independently within strata, realised, with a weight for every labelled unit.

    The variance is that between the clusters' weighted totals within strata ("ultimate clusters", Hansen,
    Hurwitz & Madow 1953; Lohr, eq. 7.6), as R's `survey` takes strata, clusters and weights. It is cautious
    where clusters were drawn without replacement, and holds however units were drawn within them.

    Parameters
    ----------
    design_weight : float (n,)
        What the labelled units stand for; positive.
    primary : int (n,)
        Stratum of each, 0 … H − 1; every number occurs.
    cluster : int (n,)
        Cluster of each, 0 … m − 1, every number in one stratum; each unit its own where none were drawn.
    size : float
        N; the sum of the weights where it is not known.
    sizes_known : bool
        Whether the weights were made of the strata's known sizes, N_h / n_h: Σ w of a stratum is then the
        same in every draw.

    Examples
    --------
    >>> weighting = SurveyWeighting(design_weight=np.full(4, 2.0), primary=np.zeros(4, dtype=int),
    ...                             cluster=np.array([0, 0, 1, 1]), size=8)
    >>> weighting.covariance(np.array([[1.0], [1.0], [0.0], [0.0]]))
    array([[0.25]])
    >>> weighting.draws, weighting.degrees_of_freedom(np.ones(4))
    (2, 1.0)
    """

    design_weight: FloatArray
    primary: IntArray
    cluster: IntArray
    size: float
    sizes_known: bool = False

    @property
    def weights(self) -> FloatArray:
        """Design weight / N per unit (n,)."""
        return np.asarray(self.design_weight / self.size)

    @property
    def draws(self) -> int:
        """Clusters, m."""
        return int(self.cluster.max()) + 1 if len(self.cluster) else 0

    @property
    def groups(self) -> IntArray | None:
        """The clusters (n,); None where units were drawn one by one."""
        return self.cluster if self.draws < len(self.cluster) else None

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Clusters less strata, as R's `degf`."""
        return float(max(self.draws - int(self.primary.max()) - 1, 1))

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Σ_h m_h / (m_h − 1) Σ_c (t_c − t̄_h)² (q, q); NaN for a single cluster.

        A stratum with one cluster is set against the mean of all clusters, which is cautious (R's option
        `survey.lonely.psu = "adjust"`).
        """
        m = self.draws
        q = variables.shape[1]
        if m < 2:
            return np.full((q, q), np.nan)
        if self.sizes_known:
            variables = self.unexplained(variables, self.design_weight)
        parts = variables * self.weights[:, None]
        totals = np.stack([np.bincount(self.cluster, column, minlength=m) for column in parts.T], axis=1)
        _, first = np.unique(self.cluster, return_index=True)
        stratum = self.primary[first]
        count = np.bincount(stratum)
        means = np.stack([np.bincount(stratum, column) for column in totals.T], axis=1) / count[:, None]
        lonely = count < 2
        means[lonely] = totals.mean(axis=0)
        factor = np.where(lonely, 1.0, count / np.maximum(count - 1, 1))[stratum]
        centred = totals - means[stratum]
        return np.asarray((centred * factor[:, None]).T @ centred)

    def unexplained(self, variables: FloatArray, weights: FloatArray) -> FloatArray:
        """Return deviations from the strata's weighted means: the covariance sees no others."""
        return np.asarray(variables - self._stratum_means(variables, weights)[self.primary])

    def _stratum_means(self, variables: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the weighted means of the strata (H, q)."""
        whole = np.bincount(self.primary, weights)
        sums = [np.bincount(self.primary, weights * column) for column in variables.T]
        return np.stack(sums, axis=1) / np.where(whole > 0, whole, 1.0)[:, None]
