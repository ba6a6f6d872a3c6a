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

    Examples
    --------
    >>> clusters = GroupClusters.of(cluster=np.array([0, 0, 1, 2]), stratum=np.zeros(4, dtype=int),
    ...                             weights=np.full(4, 0.25), member=np.array([True, True, True, False]))
    >>> clusters.count, clusters.design_freedom, clusters.parts.round(2).tolist()
    (2, 1, [0.67, 0.33, 0.0])
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
    def design_freedom(self) -> int:
        """Clusters minus the strata that hold them: R's `degf(subset(design))`."""
        return self.count - self.strata

    @property
    def degrees_of_freedom(self) -> float:
        """Bell and McCaffrey's degrees of freedom, at most `design_freedom`; 0 without an interval."""
        if self.count < 2 or self.design_freedom < 1:
            return 0.0
        used = self.parts > 0
        parts, squares = self.parts[used], self.squares[used]
        freedom = bell_mccaffrey(parts, (1.0 - _RESEMBLANCE) * squares + _RESEMBLANCE * parts**2)
        return min(float(self.design_freedom), max(freedom, 1.0))

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
        left = np.where(self.parts < 1.0, 1.0 - self.parts, 1.0)
        factors = np.sqrt((1.0 - 1.0 / m) / left) if m > 1 else np.ones(m)
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

    Examples
    --------
    >>> bell_mccaffrey(np.full(10, 0.1), np.full(10, 0.1))
    9.0
    >>> round(bell_mccaffrey(np.array([0.7, 0.1, 0.1, 0.1]), np.array([0.7, 0.1, 0.1, 0.1])), 2)
    1.59
    """
    stretch, whole = 1.0 / (1.0 - parts), variances.sum()
    trace = stretch * (variances - 2.0 * parts * variances + whole * parts**2)
    # Ω² summed without the m × m matrix: diag(v) less g v' + v g' − Σv g g', each row and column stretched.
    own, cross, other = stretch @ parts**2, stretch @ (parts * variances), stretch @ variances**2
    joint = 2.0 * (own * other + cross**2) - 4.0 * whole * own * cross + (whole * own) ** 2
    alone = stretch**2 * variances * (variances - 4.0 * parts * variances + 2.0 * whole * parts**2)
    return float(round(trace.sum() ** 2 / (joint + alone.sum()), 9))
