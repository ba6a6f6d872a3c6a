"""Simple random and stratified sampling without replacement, by permanent random numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray
from stratal.designs.sample import Design, Sample
from stratal.designs.stratum_moments import (
    pooled_stratum_covariances,
    population_spread,
    satterthwaite,
    stratum_counts,
    stratum_means,
)
from stratal.designs.weighting import Weighting
from stratal.errors import InputError
from stratal.population.population import Population
from stratal.population.rules import Everything
from stratal.population.summary import DrawnUnits, StratumSummary
from stratal.protocols import JsonMapping
from stratal.strata import Allocation, Strata, allocate
from stratal.strata.allocation import LABEL_BASED_METHODS, check_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleRandom(Design):
    """A simple random sample without replacement: the units with the smallest permanent random numbers.

    Nested: a larger budget with the same seed contains the smaller one's units.

    Parameters
    ----------
    budget : int
        Units to draw, from 1 to N.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
    >>> SimpleRandom(budget=2).draw(population, seed=7).size
    2
    """

    kind = "simple-random"
    words = ("a simple random sample without replacement", "cochran")
    one_simple_sample = True
    rounds_by_labels = True
    budget: int

    def __post_init__(self) -> None:
        check_budget(self.budget)

    @property
    def counts(self) -> IntArray:
        """The budget, of the one stratum."""
        return np.array([self.budget])

    def select(self, population: Population, seed: int) -> tuple[Design, DrawnUnits, FloatArray, None]:
        """Draw `budget` units."""
        check_budget(self.budget, population.size)
        drawn = population.units_with_smallest_keys(Everything(), np.array([self.budget]), seed)
        return self, drawn, np.full(self.budget, self.budget / population.size), None

    def larger(self, sample: Sample, additional: int) -> SimpleRandom:
        """Return the design of the larger budget."""
        return SimpleRandom(budget=sample.size + additional)

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return equal weights; nonresponse is taken to be at random."""
        return StratifiedWeighting(stratum=sample.stratum[labelled], sizes=sample.summary.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratified(Design):
    """Stratified simple random sampling: of each stratum the n_h smallest permanent random numbers.

    Nested: a larger allocation in the same strata contains the smaller one's units.

    Parameters
    ----------
    strata : Strata
        From `stratal.strata.stratify`.
    allocation : Allocation
        From `stratal.strata.allocate`.

    Raises
    ------
    InputError
        If strata and allocation do not fit together.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.2, 0.8, 0.9])
    >>> strata = stratal.strata.stratify(population, n_strata=2)
    >>> design = Stratified(strata=strata, allocation=stratal.strata.allocate(strata, budget=2, minimum=1))
    >>> sorted(design.draw(population, seed=7).stratum.tolist())
    [0, 1]
    """

    kind = "stratified"
    nested: ClassVar[JsonMapping] = {"strata": Strata, "allocation": Allocation}
    words = ("a stratified simple random sample without replacement", "cochran", "fogliato")
    rounds_by_labels = True
    strata: Strata = field()
    allocation: Allocation = field()

    def __post_init__(self) -> None:
        action = "Create the allocation with stratal.strata.allocate(strata, budget)."
        if not isinstance(self.strata, Strata) or not isinstance(self.allocation, Allocation):
            raise InputError("Stratified takes strata and an allocation", action=action)
        n_h = self.allocation.n_h
        sizes = self.strata.sizes
        if n_h.shape != sizes.shape or np.any(n_h > sizes):
            raise InputError(
                "the allocation does not fit these strata",
                given=f"{n_h.tolist()[:5]} of {sizes.tolist()[:5]} units",
                action=action,
            )

    def select(
        self, population: Population, seed: int
    ) -> tuple[Design, DrawnUnits, FloatArray, StratumSummary]:
        """Draw n_h units of each stratum."""
        strata = self.strata
        summary = population.summarise(strata.rule)
        if not np.array_equal(summary.sizes, strata.sizes):
            raise InputError(
                "these strata were made from another population",
                given=f"sizes {summary.sizes.tolist()[:5]}",
                allowed=f"sizes {strata.sizes.tolist()[:5]}",
            )
        drawn = population.units_with_smallest_keys(strata.rule, self.allocation.n_h, seed)
        compact = self
        if strata.population is not None:
            compact = Stratified(strata=replace(strata, population=None), allocation=self.allocation)
        probabilities = (self.allocation.n_h / summary.sizes)[drawn.stratum]
        return compact, drawn, probabilities, summary

    def larger(self, sample: Sample, additional: int) -> Stratified:
        """Return the design of the larger budget by the same rule.

        If labels determined the sizes, further units are allocated proportionally. The name of the rule
        stays, because the present sizes still depend on labels.
        """
        method = self.allocation.method
        dense = None
        if method in LABEL_BASED_METHODS:
            rule = "proportional"
        else:
            rule = method
        # The costs are not stored, but the present sizes are proportional to W_h S_h / √c_h.
        if method == "cost-optimal":
            rule = "neyman"
            dense = sample.n_h / np.maximum(sample.summary.sizes, 1)
        total = sample.size + additional
        allocation = allocate(self.strata, total, rule, minimum=sample.n_h, standard_deviations=dense)
        return Stratified(strata=self.strata, allocation=replace(allocation, method=method))

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return W_h / n_h with the realised n_h: nonresponse is taken to be at random within strata."""
        return StratifiedWeighting(
            stratum=sample.stratum[labelled],
            sizes=sample.summary.sizes,
            has_adaptive_allocation=self.allocation.method in LABEL_BASED_METHODS,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratifiedWeighting(Weighting):
    """Stratified simple random sampling, realised: n_h of N_h units of each stratum are labelled.

    One stratum is simple random sampling. Strata without any label are left out of the weights (collapse them
    before).

    Parameters
    ----------
    stratum : int (n,)
        Stratum of each labelled unit, 0 … H − 1.
    sizes : int (H,)
        N_h.
    with_replacement : bool
        Whether the units were drawn independently, so that no finite population correction applies.
    has_adaptive_allocation : bool
        Whether labels of earlier rounds decided the n_h.
    counts : int (H,)
        n_h, labels per stratum; counted when it is made.

    Examples
    --------
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0, 1, 1]), sizes=np.array([10, 30]))
    >>> weighting.weights
    array([0.125, 0.125, 0.375, 0.375])
    """

    stratum: IntArray = field()
    sizes: IntArray = field()
    with_replacement: bool = False
    has_adaptive_allocation: bool = False
    # n_h (H,), labels per stratum, W_h / n_h per unit (n,), and W_h² (1 − f_h) / n_h (H,), the factor of s_h²
    # in the variance: read many times for one estimate.
    counts: IntArray = field(init=False, repr=False, compare=False)
    weights: FloatArray = field(init=False, repr=False, compare=False)
    variance_factors: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        counts = stratum_counts(self.stratum, len(self.sizes))
        sizes = np.asarray(self.sizes)
        # Strata may have no label, or all of them none.
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = (sizes / np.maximum(counts, 1) / sizes[counts > 0].sum())[self.stratum]
            factors = stratified_factors(counts, sizes, with_replacement=self.with_replacement)
        self._set(counts=counts, weights=weights, variance_factors=factors)
        self._freeze()

    @property
    def random_within_strata(self) -> bool:
        """True: the size of every stratum's sample was fixed."""
        return True

    @property
    def population_size(self) -> float:
        """N, the units of all strata."""
        return float(self.sizes.sum())

    @property
    def total(self) -> float:
        """Σ w, in every draw."""
        return 1.0

    @property
    def sampled_fractions(self) -> FloatArray:
        """f_h (H,), the share of each stratum that is labelled; 0 for independent draws."""
        if self.with_replacement:
            return np.zeros(len(self.sizes))
        return np.asarray(np.minimum(self.counts / np.maximum(self.sizes, 1), 1.0))

    @property
    def census(self) -> bool:
        """Whether every unit of every stratum is labelled."""
        return not self.with_replacement and bool((self.counts >= self.sizes).all())

    def mean(self, variables: FloatArray) -> FloatArray:
        """Σ N_h ȳ_h / N (q,): summed over whole numbers, so that labels which are all 1 average to 1."""
        labelled = self.counts > 0
        means = stratum_means(variables, self.stratum, len(self.sizes))[labelled]
        sizes = self.sizes[labelled]
        return np.asarray(sizes @ means / sizes.sum())

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Σ_h W_h² (1 − f_h) s_h² / n_h (q, q) (Cochran, eq. 5.12).

        With replacement the factor 1 − f_h is left out (Kumar & Raj 2016, eq. 6).
        """
        return self._joint(pooled_stratum_covariances(variables, self.stratum, self.counts, self.sizes))

    def _joint(self, within: FloatArray) -> FloatArray:
        """Return the covariance of means from those within strata (H, q, q)."""
        factors = self.variance_factors
        used = factors > 0
        return np.asarray(np.einsum("h,hqr->qr", factors[used], within[used]))

    def covariance_and_dfs(self, variables: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the covariance of the means (q, q) and Satterthwaite's degrees of freedom (q,)."""
        within = pooled_stratum_covariances(variables, self.stratum, self.counts, self.sizes)
        parts = stratum_parts(self.variance_factors, np.einsum("hqq->qh", within))
        return self._joint(within), satterthwaite(parts, self._free)

    def contributions(self, variable: FloatArray) -> FloatArray:
        """Each stratum's part (H,) of the variance of the mean of one variable (n,)."""
        return np.asarray(self._parts(variable[:, None])[0])

    def _parts(self, variables: FloatArray) -> FloatArray:
        """Return each stratum's part of the variance of each mean (q, H)."""
        within = pooled_stratum_covariances(variables, self.stratum, self.counts, self.sizes)
        return stratum_parts(self.variance_factors, np.einsum("hqq->qh", within))

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Satterthwaite's, over the strata that are not labelled whole."""
        return float(self.dfs(variable[:, None])[0])

    def dfs(self, variables: FloatArray) -> FloatArray:
        """Satterthwaite's of each of several variables (n, q)."""
        return satterthwaite(self._parts(variables), self._free)

    def parts_and_df(self, variable: FloatArray) -> tuple[FloatArray, float]:
        """Return each stratum's part (H,) of the variance, and Satterthwaite's degrees of freedom."""
        parts = self.contributions(variable)
        return parts, float(satterthwaite(parts, self._free))

    @property
    def _free(self) -> FloatArray:
        return free_labels(self.counts, self.sizes, with_replacement=self.with_replacement)

    def population_covariance(
        self, variables: FloatArray, *, stratum_weights_known: bool = False
    ) -> FloatArray:
        """Σ W_h² s_h²/N_h, plus the between-strata part of s²/N unless the W_h are known."""
        counts = self.counts
        total = float(np.sum(self.sizes[counts > 0]))
        within = pooled_stratum_covariances(variables, self.stratum, counts, self.sizes)
        if stratum_weights_known:
            return np.asarray(np.tensordot(self.shares, within, axes=1) / total)
        means = stratum_means(variables, self.stratum, len(self.sizes))
        within_part, between = population_spread(means, within, counts, self.sizes)
        values, vectors = np.linalg.eigh(between)
        # Unbiased, the between part can come out negative: never let it take from the within part.
        return np.asarray((within_part + (vectors * np.maximum(values, 0.0)) @ vectors.T) / total)

    def resampling(self, variable: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The values themselves (n,) or (n, q), and W_h² (1 − f_h) / n_h (H,)."""
        return variable, self.variance_factors

    def independent(self) -> StratifiedWeighting:
        """Return the weighting of independent draws within strata: no finite population correction."""
        if self.with_replacement:
            return self
        return replace(self, with_replacement=True)

    def merged(self, codes: IntArray) -> StratifiedWeighting:
        """Return the weighting with strata joined to new ones, by the new number of each old one (H,)."""
        sizes = np.bincount(codes, self.sizes).astype(np.int64)
        return replace(self, stratum=codes[self.stratum], sizes=sizes)

    def whole_strata(self, member: BoolArray) -> StratifiedWeighting | None:
        """Return the weighting of the member units (n,) alone, if they make up whole strata but not all."""
        counts = self.counts
        members = np.bincount(self.stratum, member, minlength=len(counts))
        # One label says nothing of other units, unless there are none.
        is_known = (counts != 1) | (self.sizes == 1)
        is_complete = (members == counts) & is_known & (counts > 0)
        if np.all(is_complete) or not np.all(is_complete | ((members == 0) & is_known)):
            return None
        if np.all(counts[is_complete] == self.sizes[is_complete]) and not self.census:
            # All labels of the kind are known only if no unlabelled unit is of it.
            return None
        number = np.cumsum(is_complete) - 1
        return replace(self, stratum=number[self.stratum[member]], sizes=self.sizes[is_complete])

    def post_stratified(self, stratum: IntArray, sizes: IntArray) -> StratifiedWeighting:
        """Return the weighting of strata (n,) of known sizes (H,), given the units drawn of each."""
        if len(sizes) == 1:
            raise InputError(
                "post-stratification requires groups of known sizes",
                action="Give the sample its groups: stratal.designs.post_stratify(sample, by=…), "
                "--post-stratify GROUP.",
            )
        return replace(self, stratum=stratum, sizes=sizes)


def stratified_factors(counts: AnyArray, sizes: IntArray, *, with_replacement: bool = False) -> FloatArray:
    """Return W_h² (1 − f_h) / n_h (…, H), the factor of s_h² in the variance of a stratified mean.

    W_h is taken over the strata that have labels: a stratum without labels stands for itself nowhere. Counts
    may carry replicate axes (…, H).
    """
    labelled = counts > 0
    size = np.where(labelled, sizes, 0)
    weights = size / size.sum(axis=-1, keepdims=True)
    correction = 1.0 if with_replacement else 1.0 - np.minimum(counts / sizes, 1.0)
    return np.asarray(np.where(labelled, weights**2 * correction / np.maximum(counts, 1), 0.0))


def stratum_parts(factors: FloatArray, within: FloatArray) -> FloatArray:
    """Return each stratum's part (…, H) of a variance; a stratum that cannot vary has none."""
    return np.asarray(np.where(factors > 0, factors * within, 0.0))


def free_labels(counts: AnyArray, sizes: IntArray, *, with_replacement: bool = False) -> FloatArray:
    """Return the degrees of freedom n_h − 1 (…, H) of each stratum, none where every unit is labelled."""
    is_census = (counts >= sizes) & (not with_replacement)
    return np.asarray(np.where(is_census, 0.0, np.maximum(counts - 1.0, 0.0)))
