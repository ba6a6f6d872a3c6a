"""Designs of external samples, of which only the weights of units or the shares of strata are known."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, code_count, finite_vector, sums_by_code
from stratal.designs.poisson import PoissonWeighting
from stratal.designs.sample import Design, Sample
from stratal.designs.stratified import StratifiedWeighting
from stratal.designs.weighting import Weighting
from stratal.errors import InputError, check_choice


def _empty_codes() -> IntArray:
    """Return the default of optional codes, which `__post_init__` replaces."""
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithReplacementWeighting(Weighting):
    """Weighting of units, or of clusters within strata, with known weights, treated as independent draws.

    The variance is that between the weighted totals of the clusters within strata ("ultimate clusters",
    Hansen, Hurwitz & Madow 1953; Lohr, eq. 7.6), as in R's `survey` with strata, clusters and weights. It is
    conservative if clusters were drawn without replacement, and valid for any sampling of units within
    clusters.

    Parameters
    ----------
    design_weight : float (n,)
        Number of population units that each labelled unit represents, such as 1/π; positive.
    size : float
        N; the sum of the weights if N is not known.
    primary : int (n,), optional
        Stratum within which each unit, or its cluster, was drawn, 0 … H − 1, each with a labelled unit.
    cluster : int (n,), optional
        Cluster of each unit, 0 … m − 1, within one stratum. Default: each unit is a cluster.
    sizes_known : bool
        Whether the weights are N_h / n_h with known N_h, so the sum of the weights of a stratum is the same
        in every draw.

    Examples
    --------
    >>> weighting = WithReplacementWeighting(design_weight=np.full(4, 2.0), primary=np.zeros(4, dtype=int),
    ...                                      cluster=np.array([0, 0, 1, 1]), size=8)
    >>> weighting.covariance(np.array([[1.0], [1.0], [0.0], [0.0]]))
    array([[0.25]])
    >>> weighting.draws, weighting.degrees_of_freedom(np.ones(4))
    (2, 1.0)
    """

    design_weight: FloatArray
    size: float
    primary: IntArray = field(default_factory=_empty_codes)
    cluster: IntArray = field(default_factory=_empty_codes)
    sizes_known: bool = False

    def __post_init__(self) -> None:
        weights = finite_vector("design_weight", self.design_weight)
        if np.any(weights <= 0):
            raise InputError("every weight must be positive", given=f"{weights.min():g}", allowed="above 0")
        n = len(weights)
        if len(self.primary) == 0:
            self._set(primary=np.zeros(n, dtype=np.int64))
        if len(self.cluster) == 0:
            self._set(cluster=np.arange(n))
        self._freeze()

    @property
    def weights(self) -> FloatArray:
        """Design weight / N per unit (n,)."""
        return np.asarray(self.design_weight / self.size)

    @property
    def draws(self) -> int:
        """Number of clusters, m."""
        return code_count(self.cluster)

    @property
    def unit_clusters(self) -> IntArray | None:
        """The clusters (n,); None if each unit is a cluster."""
        if self.draws < len(self.cluster):
            return self.cluster
        return None

    @property
    def primary_strata(self) -> IntArray:
        """Stratum (n,) within which the unit, or its cluster, was drawn."""
        return self.primary

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Number of clusters minus number of strata, as in R's `degf`; at least 1."""
        return float(max(self.draws - int(self.primary.max()) - 1, 1))

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Return Σ_h m_h / (m_h − 1) Σ_c (t_c − t̄_h)² (q, q); NaN for a single cluster.

        For a stratum with one cluster, t̄_h is replaced by the mean of all clusters, which is conservative
        (R's option `survey.lonely.psu = "adjust"`).
        """
        m = self.draws
        q = variables.shape[1]
        # One cluster shows no difference between clusters.
        if m < 2:
            return np.full((q, q), np.nan)
        # If weights follow from the sizes of strata, the sum of the weights of a stratum has no error. Then
        # only deviations from the means of strata contribute to the variance.
        if self.sizes_known:
            variables = self.unexplained(variables, self.design_weight)
        totals = sums_by_code(variables * self.weights[:, None], self.cluster, m)
        _, first_unit = np.unique(self.cluster, return_index=True)
        stratum = self.primary[first_unit]
        counts = np.bincount(stratum)
        means = sums_by_code(totals, stratum) / counts[:, None]
        has_one_cluster = counts < 2
        means[has_one_cluster] = totals.mean(axis=0)
        factors = np.where(has_one_cluster, 1.0, counts / np.maximum(counts - 1, 1))[stratum]
        deviations = totals - means[stratum]
        return np.asarray((deviations * factors[:, None]).T @ deviations)

    def unexplained(self, variables: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the deviations (n, q) of variables from the means of their strata with weights (n,)."""
        stratum_weights = np.bincount(self.primary, weights)
        sums = sums_by_code(weights[:, None] * variables, self.primary)
        means = sums / np.where(stratum_weights > 0, stratum_weights, 1.0)[:, None]
        return np.asarray(variables - means[self.primary])


# Sampling mechanisms that the variance of a weighted sample may assume. It then follows from the weights
# alone, without joint inclusion probabilities.
ASSUMED_MECHANISMS = ("with-replacement", "poisson")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWeights(Design):
    """An external sample with weights. The sampling mechanism is unknown.

    Parameters
    ----------
    scale : float
        Product of weight and stored inclusion probability, equal for all units: 1, or less for relative
        weights.
    mechanism : {"with-replacement", "poisson"}
        Assumption of the variance: independent draws, as in R's `survey` (conservative for draws without
        replacement), or a Poisson sample.
    known_size : bool
        Whether N is known. Otherwise it is the sum of the weights.
    stratum, cluster : str, optional
        Group columns of the strata, and of the clusters that were drawn within strata.
    sizes_known : bool
        Whether N_h of every stratum is known, too, and the weights are N_h / n_h.
    """

    kind = "given-weights"
    report_description = ("a probability sample drawn elsewhere, with known weights", "lohr")
    # With fewer drawn units per proxy, Hájek's mean is the default, because λ would be fitted to noise.
    hajek_below = 8
    scale: float = 1.0
    mechanism: str = "with-replacement"
    known_size: bool = False
    stratum: str | None = None
    cluster: str | None = None
    sizes_known: bool = False

    def __post_init__(self) -> None:
        check_choice("sampling mechanism", self.mechanism, ASSUMED_MECHANISMS)

    def weighting(self, sample: Sample, labelled: BoolArray) -> Weighting:
        """Return the weights of the labelled units, divided by the response rate of their stratum."""
        all_weights = self.scale / sample.inclusion_probability
        strata = np.zeros(sample.size, dtype=np.int64)
        if self.stratum is not None:
            strata = np.unique(sample.groups[self.stratum], return_inverse=True)[1].astype(np.int64)
        labelled_weights = all_weights[labelled]
        stratum_totals = np.bincount(strata, all_weights, minlength=1)
        labelled_totals = np.bincount(strata[labelled], labelled_weights, minlength=len(stratum_totals))
        # All other strata represent a stratum without labels, with one common rate.
        if np.all(labelled_totals > 0):
            inverse_rates = stratum_totals / labelled_totals
        else:
            inverse_overall_rate = stratum_totals.sum() / labelled_totals.sum()
            inverse_rates = np.full(len(labelled_totals), inverse_overall_rate)
        adjusted_weights = labelled_weights * inverse_rates[strata[labelled]]
        size = float(all_weights.sum())
        if self.known_size:
            size = float(sample.population_size)
        if self.mechanism == "poisson":
            # A weight below 1, which relative weights have, is not the inverse of a probability.
            return PoissonWeighting(inclusion_probability=np.minimum(1.0 / adjusted_weights, 1.0), size=size)
        primary = np.unique(strata[labelled], return_inverse=True)[1]
        clusters = np.arange(len(adjusted_weights))
        if self.cluster is not None:
            names = np.unique(sample.groups[self.cluster][labelled], return_inverse=True)[1]
            # Clusters of different strata may have the same name.
            clusters = np.unique(primary * (names.max(initial=0) + 1) + names, return_inverse=True)[1]
        return WithReplacementWeighting(
            design_weight=adjusted_weights,
            primary=primary.astype(np.int64),
            cluster=clusters.astype(np.int64),
            size=size,
            sizes_known=self.sizes_known,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeparateSamples(Design):
    """A labelled and a separate unlabelled sample of the same distribution, with known shares of the strata.

    This is the setting of Fisch et al. (2024). The target is the superpopulation.

    Parameters
    ----------
    names : tuple of str (H,)
    shares : float (H,)
        w_h, with the sum 1.
    counts : int (H,)
        Number of unlabelled units of each stratum.
    means : float (H,)
        Mean proxy of the unlabelled units.
    variances : float (H,)
        Variance of their proxy, divisor count − 1.
    """

    kind = "separate-samples"
    report_description = ("a labelled sample and a separate unlabelled one", "fisch")
    names: tuple[str, ...]
    shares: FloatArray
    counts: IntArray
    means: FloatArray
    variances: FloatArray

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """Names of the strata (H,)."""
        return self.names

    @property
    def unlabelled(self) -> SeparateSamples:
        """The design, which has the moments of the unlabelled sample."""
        return self

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return w_h / n_h, without a finite population correction."""
        return StratifiedWeighting(
            stratum=sample.stratum[labelled], sizes=sample.summary.sizes, with_replacement=True
        )
