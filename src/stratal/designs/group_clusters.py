"""Clusters with labelled units of a group (domain): their number, and the corrections for few clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record, code_count

# Assumed correlation of the units of a cluster in the degrees of freedom. With 0, as in Bell and McCaffrey,
# the coverage for 10 or 30 clusters of log-normal sizes is .936 to .947; with .1 it is .953 to .965.
_INTRACLUSTER_CORRELATION = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupClusters(Record):
    """The clusters that hold labelled units of a group.

    Parameters
    ----------
    cluster : int (n,)
        Cluster of each labelled unit, 0 … m − 1.
    weight_shares : float (m,)
        g_c, the share of each cluster in the weights of the group; 0 for clusters without a unit of the
        group.
    squared_weights : float (m,)
        Σ w² of the units of the group in each cluster, where the weights w of the group have the sum 1.
    strata : int
        Number of strata with clusters of the group.
    undrawn_share : float
        Share of the population's clusters that were not drawn; 1 for draws with replacement.
    """

    cluster: IntArray
    weight_shares: FloatArray
    squared_weights: FloatArray
    strata: int
    undrawn_share: float = 1.0

    @classmethod
    def of(
        cls,
        *,
        cluster: IntArray,
        stratum: IntArray,
        weights: FloatArray,
        member: BoolArray,
        undrawn_share: float = 1.0,
    ) -> GroupClusters:
        """Return the clusters of a group.

        `cluster`, `stratum` and `weights` (n,) are those of all labelled units; `member` (n,) is the mask of
        the units of the group. Weights of calibrated samples may be negative: their sizes count.
        """
        member_weights = np.abs(weights) * member
        m = code_count(cluster)
        weights_of_clusters = np.asarray(np.bincount(cluster, member_weights, minlength=m), dtype=np.float64)
        # A group without weights has no clusters: all shares are 0.
        total = float(weights_of_clusters.sum()) or 1.0
        squared_weights = np.bincount(cluster, (member_weights / total) ** 2, minlength=m)
        return cls(
            cluster=cluster,
            weight_shares=weights_of_clusters / total,
            squared_weights=np.asarray(squared_weights, np.float64),
            strata=len(np.unique(stratum[member])),
            undrawn_share=undrawn_share,
        )

    @property
    def count(self) -> int:
        """Number of clusters with a labelled unit of the group."""
        return int(np.count_nonzero(self.weight_shares))

    @property
    def design_df(self) -> int:
        """Number of clusters minus number of their strata, as in R's `degf(subset(design))`."""
        return self.count - self.strata

    @property
    def degrees_of_freedom(self) -> float:
        """Bell and McCaffrey's degrees of freedom, at most `design_df`; 0 if there is no interval."""
        if self.count < 2 or self.design_df < 1:
            return 0.0
        has_members = self.weight_shares > 0
        weight_shares = self.weight_shares[has_members]
        correlation = _INTRACLUSTER_CORRELATION
        # Variance of the total of units with equal variances and this correlation.
        variances = (1.0 - correlation) * self.squared_weights[has_members] + correlation * weight_shares**2
        # (tr Ω)² / tr Ω² is at least 1, apart from rounding.
        return min(float(self.design_df), max(bell_mccaffrey(weight_shares, variances), 1.0))

    @property
    def effective_count(self) -> float:
        """Effective number of clusters of the group (Kish): 1 / Σ g_c²."""
        return float(1.0 / np.sum(self.weight_shares**2))

    @property
    def cr2_factors(self) -> FloatArray:
        """Factor (n,) of the residuals of a mean of the group, √((1 − 1/m) / (1 − g_c)).

        Each cluster influences the mean, so that the variance of its residuals is too small by the factor
        1 − g_c (Bell & McCaffrey 2002, "CR2"). The factor m / (m − 1) of the covariance is removed, because
        it counts all drawn clusters, including those without a unit of the group.
        """
        m = len(self.weight_shares)
        # A cluster with all weight of the group has no residual, and there is no interval.
        leverage_complement = np.where(self.weight_shares < 1.0, 1.0 - self.weight_shares, 1.0)
        if m > 1:
            factors = np.sqrt((1.0 - 1.0 / m) / leverage_complement)
        else:
            factors = np.ones(m)
        return np.asarray(factors[self.cluster])


def bell_mccaffrey(g: FloatArray, variances: AnyArray) -> float:
    """Return Satterthwaite's degrees of freedom of the variance between clusters for their weighted mean.

    Let Ω be the covariance of the residual totals of clusters, multiplied by 1/√(1 − g_c), for independent
    units with equal variances. The variance estimate is the sum of their squares. Its degrees of freedom are
    (tr Ω)² / tr Ω² (Bell & McCaffrey 2002; Imbens & Kolesár 2016).

    Parameters
    ----------
    g : float (m,)
        g_c, the share of each cluster in the mean, with sum 1.
    variances : float (m,)
        v, the variance of each cluster's total, up to a common factor.
    """
    inverse_complements = 1.0 / (1.0 - g)
    total_variance = variances.sum()
    diagonal = inverse_complements * (variances - 2.0 * g * variances + total_variance * g**2)
    # tr Ω² without the m × m matrix: Ω is diag(v) − g v' − v g' + Σv g g', with scaled rows and columns.
    sum_gg = inverse_complements @ g**2
    sum_gv = inverse_complements @ (g * variances)
    sum_vv = inverse_complements @ variances**2
    # The squares of g v' + v g' − Σv g g', and those of diag(v) with its products with the other terms.
    squares_of_outer_products = (
        2.0 * (sum_gg * sum_vv + sum_gv**2)
        - 4.0 * total_variance * sum_gg * sum_gv
        + (total_variance * sum_gg) ** 2
    )
    terms_with_diag_v = (
        inverse_complements**2 * variances * (variances - 4.0 * g * variances + 2.0 * total_variance * g**2)
    )
    trace_of_square = squares_of_outer_products + terms_with_diag_v.sum()
    # Rounded, so that equal clusters give a whole number.
    return float(round(diagonal.sum() ** 2 / trace_of_square, 9))
