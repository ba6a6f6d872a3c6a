"""Designs of samples that were drawn elsewhere: only their weights, or their strata's, are known."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, code_count, finite_vector
from stratal.designs.poisson import PoissonWeighting
from stratal.designs.sample import Design, Sample
from stratal.designs.stratified import StratifiedWeighting
from stratal.designs.weighting import Weighting
from stratal.errors import InputError, check_choice


def _none() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WithReplacementWeighting(Weighting):
    """Units, or clusters within strata, of which only weights are known, taken as independent draws.

    The variance is that between the clusters' weighted totals within strata ("ultimate clusters", Hansen,
    Hurwitz & Madow 1953; Lohr, eq. 7.6), as R's `survey` takes strata, clusters and weights. It is
    conservative where clusters were drawn without replacement, and holds however units were drawn within
    them.

    Parameters
    ----------
    design_weight : float (n,)
        1/π, or whatever the labelled units stand for; positive.
    size : float
        N; the sum of the weights where it is not known.
    primary : int (n,), optional
        Stratum of each, 0 … H − 1; every number occurs.
    cluster : int (n,), optional
        Cluster of each, 0 … m − 1, every number in one stratum; each unit its own where none were drawn.
    sizes_known : bool
        Whether the weights were made of the strata's known sizes, N_h / n_h: Σ w of a stratum is then the
        same in every draw.

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
    primary: IntArray = field(default_factory=_none)
    cluster: IntArray = field(default_factory=_none)
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
        """Clusters, m."""
        return code_count(self.cluster)

    @property
    def groups(self) -> IntArray | None:
        """The clusters (n,); None where units were drawn one by one."""
        if self.draws < len(self.cluster):
            return self.cluster
        return None

    @property
    def primary_strata(self) -> IntArray:
        """The strata (n,) that clusters were drawn in."""
        return self.primary

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Number of clusters minus number of strata, as in R's `degf`; at least 1."""
        return float(max(self.draws - int(self.primary.max()) - 1, 1))

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Σ_h m_h / (m_h − 1) Σ_c (t_c − t̄_h)² (q, q); NaN for a single cluster.

        A stratum with one cluster is set against the mean of all clusters, which is conservative (R's option
        `survey.lonely.psu = "adjust"`).
        """
        m = self.draws
        q = variables.shape[1]
        # One cluster shows no difference between clusters.
        if m < 2:
            return np.full((q, q), np.nan)
        # Weights made of sizes reproduce these in every sample, so that the means of strata have no part in
        # the error.
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
        stratum_weights = np.bincount(self.primary, weights)
        sums = np.stack([np.bincount(self.primary, weights * column) for column in variables.T], axis=1)
        means = sums / np.where(stratum_weights > 0, stratum_weights, 1.0)[:, None]
        return np.asarray(variables - means[self.primary])


# Mechanisms whose variance follows from the weights alone, without joint probabilities.
LINEARISED_MECHANISMS = ("with-replacement", "poisson")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalWeights(Design):
    """Units that came with weights. The weights say what each stands for, not how they were drawn.

    Parameters
    ----------
    scale : float
        Weight of a unit times its inclusion probability in the sample, the same for all: 1, or less where
        the weights are relative.
    mechanism : {"with-replacement", "poisson"}
        What the variance assumes: independent draws, as R's `survey` does (conservative for draws without
        replacement), or a Poisson sample.
    known_size : bool
        Whether the number of units in the population was given; if not, it is the sum of the weights.
    stratum, cluster : str, optional
        Group columns: the strata that units were drawn in, and the clusters within them that were drawn.
    sizes_known : bool
        Whether the weights were made of the strata's sizes, N_h / n_h.
    """

    kind = "given-weights"
    report_description = ("a probability sample drawn elsewhere, with known weights", "lohr")
    hajek_below = 8  # as in `stratal.designs.poisson`
    scale: float = 1.0
    mechanism: str = "with-replacement"
    known_size: bool = False
    stratum: str | None = None
    cluster: str | None = None
    sizes_known: bool = False

    def __post_init__(self) -> None:
        check_choice("sampling mechanism", self.mechanism, LINEARISED_MECHANISMS)

    def weighting(self, sample: Sample, labelled: BoolArray) -> Weighting:
        """Return the weights of the labelled units, raised where others of their stratum did not answer."""
        all_weights = self.scale / sample.inclusion_probability
        strata = np.zeros(sample.size, dtype=np.int64)
        if self.stratum is not None:
            strata = np.unique(sample.groups[self.stratum], return_inverse=True)[1].astype(np.int64)
        answered_weights = all_weights[labelled]
        stratum_totals = np.bincount(strata, all_weights, minlength=1)
        answered_totals = np.bincount(strata[labelled], answered_weights, minlength=len(stratum_totals))
        # A stratum in which nobody answered is represented by all others, with one common rate.
        if np.all(answered_totals > 0):
            rates = stratum_totals / answered_totals
        else:
            rates = np.full(len(answered_totals), stratum_totals.sum() / answered_totals.sum())
        raised_weights = answered_weights * rates[strata[labelled]]
        if self.known_size:
            size = float(sample.population_size)
        else:
            size = float(all_weights.sum())
        if self.mechanism == "poisson":
            # A weight below 1, which relative weights have, is not the inverse of a probability.
            return PoissonWeighting(inclusion_probability=np.minimum(1.0 / raised_weights, 1.0), size=size)
        primary = np.unique(strata[labelled], return_inverse=True)[1]
        clusters = np.arange(len(raised_weights))
        if self.cluster is not None:
            names = np.unique(sample.groups[self.cluster][labelled], return_inverse=True)[1]
            # Clusters of different strata may have the same name.
            clusters = np.unique(primary * (names.max(initial=0) + 1) + names, return_inverse=True)[1]
        return WithReplacementWeighting(
            design_weight=raised_weights,
            primary=primary.astype(np.int64),
            cluster=clusters.astype(np.int64),
            size=size,
            sizes_known=self.sizes_known,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeparateSamples(Design):
    """A labelled and a separate unlabelled sample of one source, with strata weights from elsewhere.

    The setting of Fisch et al. (2024): the target is the superpopulation.

    Parameters
    ----------
    names : tuple of str (H,)
    shares : float (H,)
        w_h; they sum to 1.
    counts : int (H,)
        Unlabelled units per stratum.
    means : float (H,)
        Mean of the proxy over them.
    variances : float (H,)
        Its variance, divisor count − 1.
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
        """These, as the design itself holds them."""
        return self

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return w_h / n_h, without a finite population correction."""
        return StratifiedWeighting(
            stratum=sample.stratum[labelled], sizes=sample.summary.sizes, with_replacement=True
        )
