"""Cluster sampling: whole groups of units are drawn, such as all answers to a question."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, code_count, sums_by_code
from stratal.designs.group_clusters import bell_mccaffrey
from stratal.designs.sample import Design, Sample
from stratal.designs.weighting import ROUNDING_VARIANCE, Weighting
from stratal.errors import BudgetError, InputError
from stratal.population.drawn_units import DrawnUnits
from stratal.population.population import Population
from stratal.randomness import keys_of_ids
from stratal.strata.arguments import whole_number


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterWeighting(Weighting):
    """Weighting of a simple random sample of clusters: m of M clusters have labelled units.

    Parameters
    ----------
    cluster : int (n,)
        Cluster of each labelled unit, 0 … m − 1. Each cluster has a labelled unit.
    drawn : int (m,)
        Number of drawn units of each cluster, labelled or not.
    clusters : int
        M, number of clusters in the population.
    size : int
        N, number of units in the population.
    squared_sizes : int, optional
        Σ N_c² over all M clusters. Samples of version 0.1.0 and older do not have it.

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
        """M / (m N) per unit (n,), times the ratio of drawn to labelled units of its cluster."""
        labelled = np.bincount(self.cluster, minlength=len(self.drawn))
        inverse_response_rates = (self.drawn / labelled)[self.cluster]
        return np.asarray(self.clusters / (len(self.drawn) * self.size) * inverse_response_rates)

    @property
    def draws(self) -> int:
        """Number of clusters with labelled units, m."""
        return len(self.drawn)

    @property
    def unit_clusters(self) -> IntArray:
        """The clusters (n,)."""
        return self.cluster

    def covariance(self, variables: FloatArray) -> FloatArray:
        """See `between_cluster_covariance`."""
        return between_cluster_covariance(variables * self.weights[:, None], self.cluster, self.clusters)

    @property
    def undrawn_share(self) -> float:
        """1 − m / M."""
        return max(1.0 - self.draws / self.clusters, 0.0)

    def few_cluster_residuals(self, residuals: FloatArray, member: BoolArray | None = None) -> FloatArray:
        """Return residuals (n,) or (n, q) of a mean, with the correction "CR2" of Bell & McCaffrey (2002).

        `member` (n,) is the mask of the units of the mean; by default all.
        """
        # The only cluster has no variance between clusters, which could be corrected.
        if self.draws < 2:
            return residuals
        return np.asarray((residuals.T * self.group_clusters_of(member).cr2_factors).T)

    @property
    def are_sizes_equal(self) -> bool:
        """Whether all clusters have the same number of units; without `squared_sizes`, the drawn clusters."""
        if np.ptp(self.drawn) > 0:
            return False
        if self.squared_sizes is None:
            return True
        return bool(np.isclose(self.squared_sizes * self.clusters, self.size**2))

    @property
    def lacks_cluster_sizes(self) -> bool:
        """Whether drawn clusters differ in size, and `squared_sizes` is not known."""
        return self.squared_sizes is None and bool(np.ptp(self.drawn) > 0)

    def mean_over_cluster_sizes(self, variable: FloatArray) -> tuple[float, float, float] | None:
        """Return the mean of a variable (n,) over all sizes of clusters, its variance and degrees of freedom.

        It is the prediction of the regression of units on the size of their cluster, at the mean size over
        all units. The variance is that of the residuals of clusters, which few large clusters dominate
        (degrees of freedom as for unequal weights: `Evidence.satterthwaite_df`). None if sizes are
        uninformative.
        """
        m = self.draws
        unit_shares = self.drawn / self.drawn.sum()
        # The mean size of a unit's cluster, over the units of the drawn clusters and over all units.
        drawn_mean_size = float(self.drawn @ self.drawn / self.drawn.sum())
        if self.squared_sizes is None:
            mean_size = drawn_mean_size
        else:
            mean_size = self.squared_sizes / self.size
        deviations = self.drawn - drawn_mean_size
        size_variance = unit_shares @ deviations**2
        sizes_differ = abs(mean_size - drawn_mean_size) > np.sqrt(ROUNDING_VARIANCE) * drawn_mean_size
        # A line through two clusters leaves no residuals.
        if m < 3 or not sizes_differ or size_variance <= ROUNDING_VARIANCE * drawn_mean_size**2:
            return None
        weights = self.weights
        means = np.bincount(self.cluster, weights * variable) / np.bincount(self.cluster, weights)
        slope = unit_shares @ (deviations * means) / size_variance
        residuals = means - unit_shares @ means - deviations * slope
        # The prediction is a weighted mean of the clusters' means.
        prediction_weights = unit_shares * (1.0 + (mean_size - drawn_mean_size) * deviations / size_variance)
        variance = float((1.0 - m / self.clusters) * np.sum((prediction_weights * residuals) ** 2))
        df = 2.0 * np.sum(prediction_weights**2) ** 2 / np.sum(prediction_weights**4)
        return float(prediction_weights @ means), variance, float(np.clip(df, 1.0, m - 1.0))

    def superpopulation_covariance(
        self, variables: FloatArray, *, stratum_weights_known: bool = False
    ) -> FloatArray:
        """Return the covariance due to the random population: that between clusters, divided by M.

        The units of a cluster are correlated, so the covariance of independent units would be too small.
        With one cluster, it is NaN.
        """
        if self.draws < 2:
            return np.full((variables.shape[1], variables.shape[1]), np.nan)
        weights = self.weights / self.weights.sum()
        centred = self.few_cluster_residuals(variables - weights @ variables)
        between = between_cluster_covariance(centred * weights[:, None], self.cluster, np.inf)
        return between * (self.draws / self.clusters)

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Return degrees of freedom by Bell & McCaffrey (2002): m − 1 for equal sizes, otherwise fewer."""
        if self.draws < 2:
            return 1.0
        drawn_clusters = self.group_clusters_of(None)
        return max(bell_mccaffrey(drawn_clusters.weight_shares, drawn_clusters.squared_weights), 1.0)


def between_cluster_covariance(
    weighted_variables: FloatArray, cluster: IntArray, clusters: float
) -> FloatArray:
    """Return the covariance of sums of weighted variables under a random draw of m of M clusters.

    It is (1 − m/M) m / (m − 1) Σ (t_c − t̄)², where t_c is the sum over a cluster (Cochran, eq. 9A.2; Lohr,
    eq. 5.2). There is no variance within clusters, because all units of a drawn cluster are in the sample.
    `weighted_variables` (n, q) are times the weights of the labelled units, `cluster` (n,) is 0 … m − 1, and
    `clusters` is M; infinite for independent draws. The result is (q, q).
    """
    m = code_count(cluster)
    q = weighted_variables.shape[1]
    # A census of the clusters has no sampling error.
    if m >= clusters:
        return np.zeros((q, q))
    # One of several clusters shows no difference between clusters.
    if m < 2:
        return np.full((q, q), np.nan)
    totals = sums_by_code(weighted_variables, cluster, m)
    deviations = totals - totals.mean(axis=0)
    return np.asarray((1.0 - m / clusters) * m / (m - 1) * deviations.T @ deviations)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSample(Design):
    """A simple random sample of groups, such as documents, patients or questions, with all of their units.

    Each group has a permanent random number, which is derived from the seed and its name. The groups with the
    smallest numbers are drawn, so a larger draw with the same seed contains a smaller one. The units of
    a group are correlated, so the variance per label is larger than in a simple random sample of units.

    Parameters
    ----------
    cluster : str
        A group column.
    n_clusters : int, optional
        Number of clusters to draw, at least 2.
    budget : int, optional
        Expected number of labels, instead of `n_clusters`: the largest number of clusters whose expected
        number of units is at most the budget. The drawn clusters may have more or fewer units. A limit on the
        drawn units would make small clusters more probable.
    clusters : int, optional
        Number of clusters in the population, set by the draw.
    squared_sizes : int, optional
        Σ N_c² over the clusters of the population, set by the draw. Intervals use it for the sizes of the
        clusters that were not drawn. Samples without it have intervals that use only the mean size.

    Notes
    -----
    Cochran, chapter 9A; Lohr, chapter 5. `estimate` uses the ratio estimator (Hájek), because
    totals vary with the sizes of the drawn clusters.

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
            raise InputError(
                "either n_clusters or a budget must be given", given=options, allowed="one of the two"
            )

    def select(self, population: Population, seed: int) -> tuple[Design, DrawnUnits, FloatArray, None]:
        """Draw clusters with all of their units."""
        levels = population.levels(self.cluster)
        count = self._n_clusters_to_draw(len(levels), population.size)
        names = np.array(list(levels))
        order = np.lexsort((names, keys_of_ids(names.tolist(), seed, "cluster:")))
        drawn_names = names[order[:count]]
        drawn = population.units_of_levels(self.cluster, tuple(drawn_names.tolist()), seed)
        realised = ClusterSample(
            cluster=self.cluster,
            n_clusters=count,
            clusters=len(levels),
            squared_sizes=sum(int(size) ** 2 for size in levels.values()),
        )
        return realised, drawn, np.full(len(drawn.ids), count / len(levels)), None

    @classmethod
    def from_options(cls, budget: int, size: str, cluster: str | None, proxy: str | None = None) -> Self:
        """Return the design with an expected number of labels, and the groups of a column as clusters."""
        if cluster is None:
            action = "Name the column whose groups are drawn as a whole: cluster= (--cluster COL)."
            raise InputError("a cluster sample requires the column of its clusters", action=action)
        return cls(cluster=cluster, budget=budget)

    def _n_clusters_to_draw(self, clusters: int, size: int) -> int:
        """Return m, at least 2 and at most M, for a population of M clusters with N units in all."""
        if self.n_clusters is not None:
            count = whole_number("n_clusters", self.n_clusters)
        else:
            count = min(math.floor(whole_number("budget", self.budget) * clusters / size), clusters)
        if not min(2, clusters) <= count <= clusters:
            min_clusters = min(2, clusters)
            options_text = f"n_clusters={count}"
            action = "Choose another number of clusters."
            if self.n_clusters is None:
                min_budget = math.ceil(min_clusters * size / clusters)
                options_text = (
                    f"a budget of {self.budget} units; clusters of {size / clusters:.4g} on average"
                )
                action = f"Use a budget of at least {min_budget} units, or a column with smaller clusters."
            if count < 2:
                action = f"A variance cannot be estimated from one cluster. {action}"
            raise BudgetError(
                f"{count} clusters of '{self.cluster}' cannot be drawn",
                given=options_text,
                allowed=f"{min_clusters} to {clusters} clusters",
                action=action,
            )
        return count

    def weighting(self, sample: Sample, labelled: BoolArray) -> ClusterWeighting:
        """Return the weights; labels are assumed to be missing at random within and among clusters."""
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
