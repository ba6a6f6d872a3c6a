"""Cluster sampling: whole groups are drawn, such as all answers to a question, and every unit is labelled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, code_count
from stratal.designs.group_clusters import bell_mccaffrey
from stratal.designs.sample import Design, Sample
from stratal.designs.weighting import ROUNDING_VARIANCE, Weighting
from stratal.errors import BudgetError, InputError
from stratal.population.population import Population
from stratal.population.summary import DrawnUnits
from stratal.randomness import keys_of_ids
from stratal.strata.allocation import whole_number


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
    squared_sizes : int, optional
        Σ N_c² over all M clusters; samples of 0.1.0 and before lack it.

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
    squared_sizes: int | None = None

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

    @property
    def undrawn_share(self) -> float:
        """1 − m / M."""
        return max(1.0 - self.draws / self.clusters, 0.0)

    def few_cluster_residuals(self, residuals: FloatArray, member: BoolArray | None = None) -> FloatArray:
        """Return residuals (n,) or (n, q) of the mean of a group, times `GroupClusters.stretch`."""
        if self.draws < 2:
            return residuals
        return np.asarray((residuals.T * self.group_clusters_of(member).stretch).T)

    @property
    def are_sizes_equal(self) -> bool:
        """Whether all clusters of the population have the same number of units, as far as is known."""
        if np.ptp(self.drawn) > 0:
            return False
        if self.squared_sizes is None:
            return True
        return bool(np.isclose(self.squared_sizes * self.clusters, self.size**2))

    @property
    def lacks_cluster_sizes(self) -> bool:
        """Whether drawn clusters differ in size, and `squared_sizes` are not known."""
        return self.squared_sizes is None and bool(np.ptp(self.drawn) > 0)

    def mean_over_cluster_sizes(self, variable: FloatArray) -> tuple[float, float, float] | None:
        """Return the mean of a variable (n,) over all sizes of clusters, its variance and degrees of freedom.

        It is the prediction of the regression of units on the size of their cluster, at the mean size over
        all units. The variance is that of the residuals of clusters, which few large clusters dominate
        (degrees of freedom as for unequal weights: `Evidence.satterthwaite_df`). None if sizes are
        uninformative.
        """
        m = self.draws
        share = self.drawn / self.drawn.sum()
        # The mean size of a unit's cluster, over the drawn clusters and over all.
        drawn_size = float(self.drawn @ self.drawn / self.drawn.sum())
        if self.squared_sizes is None:
            population_size = drawn_size
        else:
            population_size = self.squared_sizes / self.size
        deviations = self.drawn - drawn_size
        size_variance = share @ deviations**2
        sizes_differ = abs(population_size - drawn_size) > np.sqrt(ROUNDING_VARIANCE) * drawn_size
        # Two clusters lie on every line, so that their residuals would be 0.
        if m < 3 or not sizes_differ or size_variance <= ROUNDING_VARIANCE * drawn_size**2:
            return None
        weights = self.weights
        means = np.bincount(self.cluster, weights * variable) / np.bincount(self.cluster, weights)
        slope = share @ (deviations * means) / size_variance
        residuals = means - share @ means - deviations * slope
        # The prediction is a weighted mean of the clusters' means.
        prediction_weights = share * (1.0 + (population_size - drawn_size) * deviations / size_variance)
        variance = float((1.0 - m / self.clusters) * np.sum((prediction_weights * residuals) ** 2))
        freedom = 2.0 * np.sum(prediction_weights**2) ** 2 / np.sum(prediction_weights**4)
        return float(prediction_weights @ means), variance, float(np.clip(freedom, 1.0, m - 1.0))

    def superpopulation_covariance(
        self, variables: FloatArray, *, stratum_weights_known: bool = False
    ) -> FloatArray:
        """Return the covariance due to the draw of the M clusters themselves: that between clusters over M.

        Units of a cluster resemble each other, so that independent draws of units would understate it. With
        one cluster nothing is known, and the covariance is NaN.
        """
        if self.draws < 2:
            return np.full((variables.shape[1], variables.shape[1]), np.nan)
        weights = self.weights / self.weights.sum()
        centred = self.few_cluster_residuals(variables - weights @ variables)
        between = between_clusters(centred * weights[:, None], self.cluster, np.inf)
        return between * (self.draws / self.clusters)

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Return Bell & McCaffrey's (2002): m − 1 where clusters are of one size, fewer where not."""
        if self.draws < 2:
            return 1.0
        clusters = self.group_clusters_of(None)
        return max(bell_mccaffrey(clusters.parts, clusters.squares), 1.0)


def between_clusters(parts: FloatArray, cluster: IntArray, clusters: float) -> FloatArray:
    """Return the covariance of the sum of all parts when m of M clusters were drawn at random.

    (1 − m/M) m / (m − 1) Σ (t_c − t̄)² with t_c the cluster's sum of weighted variables (Cochran, eq. 9A.2;
    Lohr, eq. 5.2). Every unit of a drawn cluster counts, so that nothing is added for within.

    Parameters
    ----------
    parts : float (n, q)
        Weighted variables of the labelled units.
    cluster : int (n,)
        0 … m − 1.
    clusters : float
        M; infinite for independent draws.

    Returns
    -------
    float (q, q)
        NaN for one cluster out of several.
    """
    m = code_count(cluster)
    q = parts.shape[1]
    # A census of the clusters has no sampling error.
    if m >= clusters:
        return np.zeros((q, q))
    # One of several clusters shows no difference between clusters.
    if m < 2:
        return np.full((q, q), np.nan)
    totals = np.stack([np.bincount(cluster, column, minlength=m) for column in parts.T], axis=1)
    centred = totals - totals.mean(axis=0)
    return np.asarray((1.0 - m / clusters) * m / (m - 1) * centred.T @ centred)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSample(Design):
    """A simple random sample of groups (documents, patients, questions); all units of a drawn one count.

    Each group has a permanent random number from (seed, its name); the smallest are drawn, so that a larger
    draw with the same seed contains the smaller one. Units of a group resemble each other, so a label is
    worth less than under simple random sampling: the variance is that between clusters.

    Parameters
    ----------
    cluster : str
        A group column.
    n_clusters : int, optional
        Clusters to draw, at least 2.
    budget : int, optional
        Labels instead: as many clusters as are expected to hold no more. The clusters drawn may hold more or
        fewer; a cap on the labels drawn would favour small clusters.
    clusters : int, optional
        Clusters in the population; set by the draw.
    squared_sizes : int, optional
        Σ N_c² over the population's clusters, which says how large those are that were not drawn; set by the
        draw. Samples that were drawn without it have intervals that know the mean size alone.

    Notes
    -----
    Cochran, chapter 9A; Lohr, chapter 5. `estimate` takes the ratio to the labelled units (Hájek), since
    totals vary with the clusters' sizes.

    Examples
    --------
    >>> import stratal
    >>> groups = {"document": ["a", "a", "b"]}
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], groups=groups)
    >>> ClusterSample(cluster="document", n_clusters=2).draw(population, seed=7).size
    3
    """

    kind = "clusters"
    report_description = ("a simple random sample of whole groups of units", "cochran")
    # With fewer clusters, λ is fitted to noise and costs 5% more error (docs/decisions/0010).
    hajek_below = 20
    cluster: str
    n_clusters: int | None = None
    budget: int | None = None
    clusters: int | None = None
    squared_sizes: int | None = None

    def __post_init__(self) -> None:
        if (self.n_clusters is None) == (self.budget is None):
            options = f"n_clusters={self.n_clusters}, budget={self.budget}"
            raise InputError("give either n_clusters or a budget", given=options, allowed="one of the two")

    def select(self, population: Population, seed: int) -> tuple[Design, DrawnUnits, FloatArray, None]:
        """Draw clusters, and every unit of each."""
        levels = population.levels(self.cluster)
        count = self._count(len(levels), population.size)
        names = np.array(list(levels))
        chosen = names[np.lexsort((names, keys_of_ids(names.tolist(), seed, "cluster:")))[:count]]
        drawn = population.units_of_levels(self.cluster, tuple(chosen.tolist()), seed)
        realised = ClusterSample(
            cluster=self.cluster,
            n_clusters=count,
            clusters=len(levels),
            squared_sizes=sum(int(size) ** 2 for size in levels.values()),
        )
        return realised, drawn, np.full(len(drawn.ids), count / len(levels)), None

    @classmethod
    def from_options(cls, budget: int, size: str, cluster: str | None, proxy: str | None = None) -> Self:
        """Return the design of about a budget, in groups of a column."""
        if cluster is None:
            action = "Name the column whose groups are drawn as a whole: cluster= (--cluster COL)."
            raise InputError("a cluster sample requires the column of its clusters", action=action)
        return cls(cluster=cluster, budget=budget)

    def _count(self, clusters: int, size: int) -> int:
        """Return m, at least 2 and at most M."""
        if self.n_clusters is not None:
            count = whole_number("n_clusters", self.n_clusters)
        else:
            count = min(math.floor(whole_number("budget", self.budget) * clusters / size), clusters)
        if not min(2, clusters) <= count <= clusters:
            least = min(2, clusters)
            given = f"n_clusters={count}"
            action = "Choose another number of clusters."
            if self.n_clusters is None:
                least_budget = math.ceil(least * size / clusters)
                given = f"a budget of {self.budget} units; clusters of {size / clusters:.4g} on average"
                action = f"Use a budget of at least {least_budget} units, or a column with smaller clusters."
            if count < 2:
                action = f"A variance cannot be estimated from one cluster. {action}"
            raise BudgetError(
                f"{count} clusters of '{self.cluster}' cannot be drawn",
                given=given,
                allowed=f"{least} to {clusters} clusters",
                action=action,
            )
        return count

    def weighting(self, sample: Sample, labelled: BoolArray) -> ClusterWeighting:
        """Return M / (m N), nonresponse taken to be at random within clusters, then among clusters."""
        names = sample.groups[self.cluster]
        drawn_clusters, sizes = np.unique(names, return_counts=True)
        labelled_clusters, codes = np.unique(names[labelled], return_inverse=True)
        drawn = sizes[np.searchsorted(drawn_clusters, labelled_clusters)].astype(np.int64)
        assert self.clusters is not None
        return ClusterWeighting(
            cluster=codes.astype(np.int64),
            drawn=drawn,
            clusters=self.clusters,
            size=sample.population_size,
            squared_sizes=self.squared_sizes,
        )
