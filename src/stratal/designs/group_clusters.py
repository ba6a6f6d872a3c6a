"""Clusters that hold labelled units of a group: how many there are, and what few of them leave uncertain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record

# Correlation of the units of a cluster that the degrees of freedom assume. With none, as Bell and McCaffrey
# have it, log-normal sizes of 10 or 30 clusters cover .936 to .947; with .1 they cover .953 to .965.
_RESEMBLANCE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupClusters(Record):
    """The clusters that hold labelled units of a group.

    Parameters
    ----------
    cluster : int (n,)
        Cluster of each labelled unit, 0 … m − 1.
    parts : float (m,)
        g_c, each cluster's part of the group's weights; 0 for clusters without a unit of the group.
    squares : float (m,)
        Σ w² of each cluster's units of the group, whose w add up to 1.
    strata : int
        Strata that hold clusters of the group.
    undrawn_share : float
        Share of the population's clusters that were not drawn; 1 for draws with replacement.
    """

    cluster: IntArray
    parts: FloatArray
    squares: FloatArray
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
        """Count the clusters (n,) in strata (n,) of the member units (n,), whose weights are (n,)."""
        inside = np.abs(weights) * member
        m = int(cluster.max(initial=-1)) + 1
        sums = np.asarray(np.bincount(cluster, inside, minlength=m), dtype=np.float64)
        total = float(sums.sum())
        return cls(
            cluster=cluster,
            parts=sums / total if total > 0 else sums,
            squares=np.asarray(np.bincount(cluster, (inside / (total or 1.0)) ** 2, minlength=m), np.float64),
            strata=len(np.unique(stratum[member])),
            undrawn_share=undrawn_share,
        )

    @property
    def count(self) -> int:
        """Clusters with a labelled unit of the group."""
        return int(np.count_nonzero(self.parts))

    @property
    def design_df(self) -> int:
        """Clusters minus the strata that hold them: R's `degf(subset(design))`."""
        return self.count - self.strata

    @property
    def degrees_of_freedom(self) -> float:
        """Bell and McCaffrey's degrees of freedom, at most `design_df`; 0 without an interval."""
        if self.count < 2 or self.design_df < 1:
            return 0.0
        used = self.parts > 0
        parts = self.parts[used]
        squares = self.squares[used]
        freedom = bell_mccaffrey(parts, (1.0 - _RESEMBLANCE) * squares + _RESEMBLANCE * parts**2)
        return min(float(self.design_df), max(freedom, 1.0))

    @property
    def unequal_draws(self) -> float:
        """Clusters of equal size that the group's clusters are worth (Kish): 1 / Σ g_c²."""
        return float(1.0 / np.sum(self.parts**2))

    @property
    def stretch(self) -> FloatArray:
        """Factor (n,) of the residuals of a mean of the group, √((1 − 1/m) / (1 − g_c)).

        A cluster pulls the mean towards itself, so that its residuals show (1 − g_c) of its variance (Bell &
        McCaffrey 2002, "CR2"). The covariance's own factor m / (m − 1) is taken off: it counts all drawn
        clusters, also those without a unit of the group.
        """
        m = len(self.parts)
        leverage_complement = np.where(self.parts < 1.0, 1.0 - self.parts, 1.0)
        if m > 1:
            factors = np.sqrt((1.0 - 1.0 / m) / leverage_complement)
        else:
            factors = np.ones(m)
        return np.asarray(factors[self.cluster])


def bell_mccaffrey(parts: FloatArray, variances: AnyArray) -> float:
    """Return Satterthwaite's degrees of freedom of the variance between clusters, of a mean that they form.

    The residual totals of clusters, stretched by 1/√(1 − g_c), have covariance Ω when units vary alike and
    independently; the variance estimate, their sum of squares, has those of a χ² with (tr Ω)² / tr Ω²
    (Bell & McCaffrey 2002; Imbens & Kolesár 2016).

    Parameters
    ----------
    parts : float (m,)
        g_c, each cluster's part of the mean; they add up to 1.
    variances : float (m,)
        What the variance of each cluster's total is proportional to.
    """
    stretch = 1.0 / (1.0 - parts)
    total_variance = variances.sum()
    trace = stretch * (variances - 2.0 * parts * variances + total_variance * parts**2)
    # Ω² summed without the m × m matrix: diag(v) less g v' + v g' − Σv g g', each row and column stretched.
    squared_parts = stretch @ parts**2
    crossed_parts = stretch @ (parts * variances)
    squared_variances = stretch @ variances**2
    off_diagonal = (
        2.0 * (squared_parts * squared_variances + crossed_parts**2)
        - 4.0 * total_variance * squared_parts * crossed_parts
        + (total_variance * squared_parts) ** 2
    )
    diagonal = (
        stretch**2 * variances * (variances - 4.0 * parts * variances + 2.0 * total_variance * parts**2)
    )
    return float(round(trace.sum() ** 2 / (off_diagonal + diagonal.sum()), 9))
