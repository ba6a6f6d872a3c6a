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
    """Weights of n labelled units under one design, and the variance of any mean that they form.

    Variables are `(n, q)`; every mean is over the population of N units. A design without strata is one
    stratum.

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
        """Weights w (n,): Σ w y estimates the population mean of y (they include the 1/N)."""

    # N, or its estimate, where there are no strata.
    size: float

    @property
    def population_size(self) -> float:
        """N, or its estimate."""
        return float(self.size)

    @abstractmethod
    def covariance(self, variables: FloatArray) -> FloatArray:
        """Estimated covariance (q, q) of the weighted means of `variables` (n, q), over repeated draws."""

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Degrees of freedom of the variance estimate of one variable (n,): one less than the draws."""
        return float(max(self.draws - 1, 1))

    def dfs(self, variables: FloatArray) -> FloatArray:
        """Degrees of freedom (q,) of each of several variables (n, q)."""
        return np.array([self.degrees_of_freedom(column) for column in variables.T])

    def covariance_and_dfs(self, variables: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the `covariance` (q, q) and the `dfs` (q,) of several variables (n, q)."""
        return self.covariance(variables), self.dfs(variables)

    def parts_and_df(self, variable: FloatArray) -> tuple[FloatArray, float]:
        """Return the `contributions` of one variable (n,) and its degrees of freedom."""
        return self.contributions(variable), self.degrees_of_freedom(variable)

    def few_cluster_residuals(self, residuals: FloatArray, member: BoolArray | None = None) -> FloatArray:
        """Return residuals (n,) or (n, q) of fitted means, corrected for few clusters; here unchanged.

        Each of few clusters influences the mean, so that its residuals are too small. `member` (n,) are the
        units of the mean; by default all.
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
        if self.groups is None:
            return None
        return self.group_clusters_of(member)

    def group_clusters_of(self, member: BoolArray | None) -> GroupClusters:
        """Return the clusters of the member units (n,); units that were drawn individually are clusters."""
        n = len(self.weights)
        cluster = self.groups
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
        self, variable: FloatArray, member: BoolArray | None = None, *, is_stretched: bool = True
    ) -> float:
        """Return the factor of the variance of a group's mean for its few clusters, at least 1.

        It is the variance with `GroupClusters.stretch`, divided by the reported variance: that with
        `few_cluster_residuals`, or without a correction if not `is_stretched`. It is 1 for two clusters,
        whose interval with one degree of freedom is R's (coverage .93 for clusters of equal size, .86 to .93
        for unequal ones).
        """
        clusters = self.group_clusters(member)
        if clusters is None or clusters.count <= 2:
            return 1.0
        if is_stretched:
            reported = self.few_cluster_residuals(variable[:, None], member)
        else:
            reported = variable[:, None]
        variables = np.column_stack([reported, variable * clusters.stretch])
        reported_variance, stretched_variance = self.covariance(variables).diagonal().tolist()
        if reported_variance > 0:
            return max(float(stretched_variance / reported_variance), 1.0)
        return 1.0

    def design_df(self, member: BoolArray | None = None) -> float:
        """Return R's `degf(subset(design))`: clusters (or units) of the members minus the strata of these."""
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
        """Whether a unit could be drawn more than once, so that no finite-population correction applies."""
        return False

    @property
    def random_within_strata(self) -> bool:
        """Whether each stratum's units are a simple random sample of a known size N_h, drawn one by one.

        The weights of a stratum then add up to W_h in every draw, and its labels can stand for its others.
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
        """W_h (H,), over the strata that have labels."""
        labelled = self.counts > 0
        return np.asarray(np.where(labelled, self.sizes, 0) / self.sizes[labelled].sum())

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
        """Kish's (1965) effective number of draws, (Σ w)² / Σ w², where w are weights of clusters."""
        weights = self.weights
        if self.groups is not None:
            weights = np.asarray(np.bincount(self.groups, weights), dtype=np.float64)
        return float(min(self.draws, weights.sum() ** 2 / np.sum(weights**2)))

    @property
    def groups(self) -> IntArray | None:
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
        return len(weights) >= size and bool(np.all(weights * size <= 1))

    @property
    def variance_factors(self) -> FloatArray:
        """The factor (H,) of each stratum variance s_h² in the variance of the mean (Kish)."""
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
        """Each stratum's part (H,) of the variance of the mean of one variable (n,)."""
        return np.asarray(self.covariance(variable[:, None])[0])

    def population_covariance(
        self, variables: FloatArray, *, stratum_weights_known: bool = False
    ) -> FloatArray:
        """Estimated covariance (q, q) of the mean of all N units over draws of the population itself.

        This is what the target `superpopulation` adds: s²(y)/N, with the population's own variance estimated
        by the weights. With `stratum_weights_known` only the within-stratum part Σ W_h² s_h²/N_h counts
        (Fisch et al. 2024 take w_h as known).
        """
        weights = self.weights / self.weights.sum()
        centred = variables - weights @ variables
        spread = (centred * weights[:, None]).T @ centred
        n = len(weights)
        return np.asarray(spread * (n / max(n - 1, 1)) / self.population_size)

    def superpopulation_covariance(
        self, variables: FloatArray, *, stratum_weights_known: bool = False
    ) -> FloatArray:
        """Covariance (q, q) that the target `superpopulation` adds to that of the design.

        That of independently drawn units, unless the population consists of clusters that were drawn.
        """
        return self.population_covariance(variables, stratum_weights_known=stratum_weights_known)

    def resampling(self, variable: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (n,) or (n, q) to resample within strata, and the factor (H,) of s_h² in their variance.

        Without strata w·y are resampled as independent draws.
        """
        n = len(variable)
        return np.asarray((n * self.weights * variable.T).T), np.array([1.0 / n])

    def independent(self) -> Weighting:
        """Return the weighting of independent draws within strata: no finite population correction."""
        return self

    def merged(self, codes: IntArray) -> Weighting:
        """Return the weighting with strata joined to new ones, by the new number of each old one (H,)."""
        return self

    def whole_strata(self, member: BoolArray) -> Weighting | None:
        """Return the weighting of the member units (n,) alone, if they make up whole strata.

        As far as the labels show, no other stratum then contains such units. Otherwise None.
        """
        return None

    def post_stratified(self, stratum: IntArray, sizes: IntArray) -> Weighting:
        """Return the weighting of strata (n,) of known sizes (H,), given how many units of each were drawn.

        Raises
        ------
        InputError
            If units of one stratum had unequal probabilities, or were drawn in clusters: the weights of
            strata would replace those of the draw.
        """
        problem = "post-stratification requires units that were drawn individually with equal probabilities"
        raise InputError(problem, action="Use estimator='hajek', 'difference' or 'ppi++' for this design.")
