"""A design as arrays: the weights of the labelled units and the covariance of any weighted mean.

An estimator uses only the `Weighting` of a design. It converts outcome and proxies into one variable per
unit; the weighting returns weighted means of variables, their covariance and the degrees of freedom. k
estimators and m designs therefore need k + m implementations instead of k × m.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.designs.group_clusters import GroupClusters
from stratal.errors import InputError

# A variance of at most this share of the squared mean is rounding, for example of sizes, or of Σ w, which
# estimates 1.
ROUNDING_VARIANCE = 1e-18


class Weighting(Record, ABC):
    """Weights of n labelled units under one design, and the covariance of weighted means.

    Variables are `(n, q)`, and means estimate those of the population of N units. A design without strata
    has one stratum.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0, 1, 1]), sizes=np.array([10, 10]))
    >>> weighting.mean(np.array([[1.0], [3.0], [5.0], [5.0]]))
    array([3.5])
    """

    @property
    @abstractmethod
    def weights(self) -> FloatArray:
        """Weights w (n,): Σ w y estimates the population mean of y (they include the factor 1/N)."""

    # N, or its estimate, in subclasses without strata.
    size: float

    @property
    def population_size(self) -> float:
        """N, or its estimate."""
        return float(self.size)

    @abstractmethod
    def covariance(self, variables: FloatArray) -> FloatArray:
        """Estimated covariance (q, q) of the weighted means of `variables` (n, q), over repeated draws."""

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Degrees of freedom of the variance estimate of one variable (n,): number of draws minus 1."""
        return float(max(self.draws - 1, 1))

    def dfs(self, variables: FloatArray) -> FloatArray:
        """Degrees of freedom (q,) of each of several variables (n, q)."""
        return np.array([self.degrees_of_freedom(column) for column in variables.T])

    def covariance_and_dfs(self, variables: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the `covariance` (q, q) and the `dfs` (q,) of several variables (n, q)."""
        return self.covariance(variables), self.dfs(variables)

    def contributions_and_df(self, variable: FloatArray) -> tuple[FloatArray, float]:
        """Return the `contributions` of one variable (n,) and its degrees of freedom."""
        return self.contributions(variable), self.degrees_of_freedom(variable)

    def few_cluster_residuals(self, residuals: FloatArray, member: BoolArray | None = None) -> FloatArray:
        """Return residuals (n,) or (n, q) of fitted means, corrected for few clusters; here unchanged.

        Each of few clusters influences the mean, so its residuals are too small. `member` (n,) is the mask of
        the units of the mean; by default all.
        """
        return residuals

    @property
    def primary_strata(self) -> IntArray:
        """Stratum (n,) within which the unit, or its cluster, was drawn."""
        return self.stratum

    @property
    def undrawn_share(self) -> float:
        """Share of the population's clusters that were not drawn; 1 for draws with replacement."""
        return 1.0

    def group_clusters(self, member: BoolArray | None = None) -> GroupClusters | None:
        """Return the clusters of the member units (n,); None if units were drawn individually."""
        if self.unit_clusters is None:
            return None
        return self.group_clusters_of(member)

    def sampled_clusters(self, member: BoolArray) -> GroupClusters | None:
        """Return the clusters of the member units (n,); None also for a census, which has all clusters."""
        if self.census:
            return None
        return self.group_clusters(member)

    def group_clusters_of(self, member: BoolArray | None) -> GroupClusters:
        """Return the clusters of the member units (n,); units that were drawn individually are clusters."""
        n = len(self.weights)
        cluster = self.unit_clusters
        if cluster is None:
            cluster = np.arange(n)
        if member is None:
            member = np.ones(n, dtype=bool)
        return GroupClusters.of(
            cluster=cluster,
            stratum=self.primary_strata,
            weights=self.weights,
            member=member,
            undrawn_share=self.undrawn_share,
        )

    def few_clusters_factor(
        self, variable: FloatArray, member: BoolArray | None = None, *, is_cr2_corrected: bool = True
    ) -> float:
        """Return the factor of the variance of a group's mean for its few clusters, at least 1.

        It is the variance with the correction "CR2" (`GroupClusters.cr2_factors`), divided by the reported
        variance. If `is_cr2_corrected`, the reported variance has the correction `few_cluster_residuals`.
        The factor is 1 for two clusters, whose interval with one degree of freedom is R's (coverage .93 for
        clusters of equal size, .86 to .93 for unequal ones).
        """
        clusters = self.group_clusters(member)
        # With two clusters the correction would rest on one degree of freedom, which the interval already
        # allows for.
        if clusters is None or clusters.count <= 2:
            return 1.0
        if is_cr2_corrected:
            reported = self.few_cluster_residuals(variable[:, None], member)
        else:
            reported = variable[:, None]
        variables = np.column_stack([reported, variable * clusters.cr2_factors])
        reported_variance, corrected_variance = self.covariance(variables).diagonal().tolist()
        # If all residuals are 0, there is no ratio of variances.
        if reported_variance > 0:
            return max(float(corrected_variance / reported_variance), 1.0)
        return 1.0

    def design_df(self, member: BoolArray | None = None) -> float:
        """Return the number of clusters (or units) with members minus that of their strata, as R's `degf`."""
        return float(self.group_clusters_of(member).design_df)

    def unexplained(self, variables: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the part of `variables` (n, q) that weights do not explain: deviations from their mean.

        A weighting that is fitted to known totals explains a larger part.

        Parameters
        ----------
        variables : float (n, q)
        weights : float (n,)
            Weights of the design; 0 for excluded units.
        """
        return np.asarray(variables - weights @ variables / weights.sum())

    @property
    def with_replacement(self) -> bool:
        """Whether a unit could be drawn more than once, so no finite-population correction applies."""
        return False

    @property
    def random_within_strata(self) -> bool:
        """Whether the units of each stratum are a simple random sample from N_h units, with known N_h.

        The sum of the weights of a stratum is then W_h in every draw.
        """
        return False

    @property
    def has_adaptive_allocation(self) -> bool:
        """Whether labels of earlier rounds determined the number of drawn units of each stratum."""
        return False

    @property
    def stratum(self) -> IntArray:
        """Stratum of each labelled unit (n,), 0 … H − 1."""
        return np.zeros(len(self.weights), dtype=np.int64)

    @property
    def sizes(self) -> AnyArray:
        """N_h (H,)."""
        return np.array([self.population_size])

    @property
    def counts(self) -> IntArray:
        """n_h (H,), labels per stratum."""
        return np.array([len(self.weights)])

    @property
    def shares(self) -> FloatArray:
        """W_h (H,): N_h as a share of the strata that have labels; 0 for strata without labels."""
        is_labelled = self.counts > 0
        return np.asarray(np.where(is_labelled, self.sizes, 0) / self.sizes[is_labelled].sum())

    @property
    def total(self) -> float:
        """Σ w, which estimates 1."""
        return float(self.weights.sum())

    @property
    def draws(self) -> int:
        """Number of independent draws: n, or fewer if units were drawn together."""
        return len(self.weights)

    @property
    def effective_draws(self) -> float:
        """Kish's effective number of draws; see `effective_draws_of`."""
        return self.effective_draws_of(np.ones(len(self.weights), bool))

    def effective_draws_of(self, member: BoolArray) -> float:
        """Return Kish's (1965) effective number of draws with a member (n,): (Σ w)² / Σ w², w of clusters."""
        weights = np.where(member, self.weights, 0.0)
        if self.unit_clusters is not None:
            # Units of one cluster are one draw.
            weights = np.asarray(np.bincount(self.unit_clusters, weights), dtype=np.float64)
        return float(min(self.draws, weights.sum() ** 2 / np.sum(weights**2)))

    @property
    def unit_clusters(self) -> IntArray | None:
        """The cluster (n,) of each unit; None if units were drawn individually."""
        return None

    @property
    def sampled_fractions(self) -> FloatArray:
        """f_h (H,), the share of each stratum that is labelled; 0 for independent draws."""
        return np.array([min(len(self.weights) / self.population_size, 1.0)])

    @property
    def census(self) -> bool:
        """Whether every unit of the population is labelled."""
        weights = self.weights
        size = self.population_size
        # A unit of a census represents only itself. With replacement, some may be drawn twice.
        return len(weights) >= size and bool(np.all(weights * size <= 1))

    @property
    def variance_factors(self) -> FloatArray:
        """The factor (H,) of s_h² in the variance of the mean; without strata Σ w² / (Σ w)² (Kish)."""
        weights = self.weights
        return np.array([float(np.sum(weights**2)) / float(np.sum(weights)) ** 2])

    @property
    def lacks_cluster_sizes(self) -> bool:
        """Whether drawn clusters differ in size, and the sizes of the others are unknown."""
        return False

    def mean_over_cluster_sizes(self, variable: FloatArray) -> tuple[float, float, float] | None:
        """Return the mean of a variable (n,) over all sizes of clusters, its variance and degrees of freedom.

        None if there are no clusters, or sizes are uninformative.
        """
        return None

    def mean(self, variables: FloatArray) -> FloatArray:
        """Weighted means (q,) of `variables` (n, q)."""
        return np.asarray(self.weights @ variables)

    def contributions(self, variable: FloatArray) -> FloatArray:
        """Contribution of each stratum (H,) to the variance of the mean of one variable (n,)."""
        return np.asarray(self.covariance(variable[:, None])[0])

    def population_covariance(
        self, variables: FloatArray, *, stratum_weights_known: bool = False
    ) -> FloatArray:
        """Estimated covariance (q, q) of the mean of all N units over draws of the population itself.

        The target `superpopulation` adds this covariance, s²(y)/N, where the weights estimate the variance of
        the population. With `stratum_weights_known`, it is only the within-stratum part Σ W_h² s_h²/N_h
        (Fisch et al. 2024 assume known w_h).
        """
        weights = self.weights / self.weights.sum()
        deviations = variables - weights @ variables
        covariance = (deviations * weights[:, None]).T @ deviations
        n = len(weights)
        # Bessel's correction; with one label, the divisor n − 1 would be 0.
        return np.asarray(covariance * (n / max(n - 1, 1)) / self.population_size)

    def superpopulation_covariance(
        self, variables: FloatArray, *, stratum_weights_known: bool = False
    ) -> FloatArray:
        """Covariance (q, q) that the target `superpopulation` adds to that of the design.

        It is that of independent units, except in a population of clusters.
        """
        return self.population_covariance(variables, stratum_weights_known=stratum_weights_known)

    def resampling_variables(self, variable: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (n,) or (n, q) to resample within strata, and the factor (H,) of s_h² in their variance.

        Without strata, the values n·w·y are resampled as independent draws.
        """
        n = len(variable)
        return np.asarray((n * self.weights * variable.T).T), np.array([1.0 / n])

    def as_independent_draws(self) -> Weighting:
        """Return the weighting of independent draws within strata: no finite population correction."""
        return self

    def merge_strata(self, codes: IntArray) -> Weighting:
        """Return the weighting of merged strata; `codes` (H,) has the new number of each stratum."""
        return self

    def complete_strata_weighting(
        self, member: BoolArray, *, is_whole_strata: bool = False
    ) -> Weighting | None:
        """Return the weighting of the units in the mask `member` (n,), if they are all labels of some strata.

        It is None if another stratum has a label of a member, or possibly an unlabelled member.
        `is_whole_strata` states that all members, labelled or not, are the units of these strata.
        """
        return None

    def post_stratified(self, stratum: IntArray, sizes: IntArray) -> Weighting:
        """Return the weighting with post-strata (n,) of known sizes (H,).

        Raises
        ------
        InputError
            If units had unequal probabilities or were drawn in clusters, because the weights of post-strata
            would replace those of the draw.
        """
        problem = "post-stratification requires units that were drawn individually with equal probabilities"
        raise InputError(problem, action="Use estimator='hajek', 'difference' or 'ppi++' for this design.")
