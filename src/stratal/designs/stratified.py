"""Simple random and stratified sampling without replacement, by permanent random numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray
from stratal.designs.sample import Design, Sample
from stratal.designs.stratum_moments import (
    pooled_stratum_covariances,
    population_covariance_parts,
    satterthwaite,
    stratum_counts,
    stratum_means,
)
from stratal.designs.weighting import Weighting
from stratal.errors import InputError
from stratal.population.drawn_units import DrawnUnits
from stratal.population.population import Population
from stratal.population.rules import Everything
from stratal.population.summary import StratumSummary
from stratal.protocols import JsonMapping
from stratal.strata import Allocation, Strata, allocate
from stratal.strata.allocation import LABEL_BASED_METHODS
from stratal.strata.arguments import check_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleRandom(Design):
    """A simple random sample without replacement: the units with the smallest permanent random numbers.

    Draws are nested: with the same seed, a larger budget contains the units of a smaller one.

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
    report_description = ("a simple random sample without replacement", "cochran")
    is_simple_random_sample = True
    allows_label_based_rounds = True
    budget: int

    def __post_init__(self) -> None:
        check_budget(self.budget)

    @property
    def counts(self) -> IntArray:
        """The budget, as the number of units of the single stratum (1,)."""
        return np.array([self.budget])

    def select(self, population: Population, seed: int) -> tuple[Design, DrawnUnits, FloatArray, None]:
        """Draw `budget` units."""
        check_budget(self.budget, population.size)
        drawn = population.units_with_smallest_keys(Everything(), np.array([self.budget]), seed)
        return self, drawn, np.full(self.budget, self.budget / population.size), None

    def larger_design(self, sample: Sample, additional: int) -> SimpleRandom:
        """Return the design with the larger budget."""
        return SimpleRandom(budget=sample.size + additional)

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return equal weights, under the assumption that labels are missing at random."""
        return StratifiedWeighting(stratum=sample.stratum[labelled], sizes=sample.summary.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratified(Design):
    """Stratified simple random sampling: n_h units of each stratum, by permanent random numbers.

    Draws are nested: a larger allocation to the same strata contains the units of a smaller one.

    Parameters
    ----------
    strata : Strata
        From `stratal.strata.stratify`.
    allocation : Allocation
        From `stratal.strata.allocate`.

    Raises
    ------
    InputError
        If the allocation has another number of strata, or more units than a stratum.

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
    report_description = ("a stratified simple random sample without replacement", "cochran", "fogliato")
    allows_label_based_rounds = True
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
                "these strata were formed from another population",
                given=f"sizes {summary.sizes.tolist()[:5]}",
                allowed=f"sizes {strata.sizes.tolist()[:5]}",
            )
        drawn = population.units_with_smallest_keys(strata.rule, self.allocation.n_h, seed)
        # A sample does not refer to its population.
        stored_design = self
        if strata.population is not None:
            stored_design = Stratified(strata=replace(strata, population=None), allocation=self.allocation)
        probabilities = (self.allocation.n_h / summary.sizes)[drawn.stratum]
        return stored_design, drawn, probabilities, summary

    def larger_design(self, sample: Sample, additional: int) -> Stratified:
        """Return the design with the larger budget and the same allocation method.

        If labels determined the current n_h, the new units are allocated proportionally. The allocation keeps
        the name of its method, because the current n_h still depend on labels.
        """
        method = self.allocation.method
        next_method = method
        standard_deviations = None
        if method in LABEL_BASED_METHODS:
            next_method = "proportional"
        elif method == "cost-optimal":
            # The costs are not stored, but the current n_h / N_h are proportional to S_h / √c_h.
            next_method = "neyman"
            standard_deviations = sample.n_h / np.maximum(sample.summary.sizes, 1)
        allocation = allocate(
            self.strata,
            sample.size + additional,
            next_method,
            minimum=sample.n_h,
            standard_deviations=standard_deviations,
        )
        return Stratified(strata=self.strata, allocation=replace(allocation, method=method))

    def weighting(self, sample: Sample, labelled: BoolArray) -> StratifiedWeighting:
        """Return the weights W_h / n_h; labels are assumed to be missing at random within strata."""
        return StratifiedWeighting(
            stratum=sample.stratum[labelled],
            sizes=sample.summary.sizes,
            has_adaptive_allocation=self.allocation.method in LABEL_BASED_METHODS,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratifiedWeighting(Weighting):
    """Weighting of stratified simple random sampling, with n_h labels from the N_h units of each stratum.

    One stratum is simple random sampling. Strata without labels are excluded from the weights; merge them
    first.

    Parameters
    ----------
    stratum : int (n,)
        Stratum of each labelled unit, 0 … H − 1.
    sizes : int (H,)
        N_h.
    with_replacement : bool
        Whether the units were drawn independently, so no finite population correction applies.
    has_adaptive_allocation : bool
        Whether labels of earlier rounds determined the n_h.

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
    # n_h (H,), W_h / n_h per unit (n,), and W_h² (1 − f_h) / n_h (H,), the factor of s_h² in the variance.
    # They are stored, because an estimate uses them often.
    counts: IntArray = field(init=False, repr=False, compare=False)
    weights: FloatArray = field(init=False, repr=False, compare=False)
    variance_factors: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        counts = stratum_counts(self.stratum, len(self.sizes))
        sizes = np.asarray(self.sizes)
        # Strata may have no label, and the sum of sizes is 0 if none has one.
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = (sizes / np.maximum(counts, 1) / sizes[counts > 0].sum())[self.stratum]
            factors = stratified_factors(counts, sizes, with_replacement=self.with_replacement)
        self._set(counts=counts, weights=weights, variance_factors=factors)
        self._freeze()

    @property
    def random_within_strata(self) -> bool:
        """True: the units of each stratum are a simple random sample."""
        return True

    @property
    def population_size(self) -> float:
        """N, the units of all strata."""
        return float(self.sizes.sum())

    @property
    def total(self) -> float:
        """Σ w, which is 1 in every draw."""
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
        """Return Σ N_h ȳ_h / N (q,). The N_h are integers, so the mean of equal values is exact."""
        is_labelled = self.counts > 0
        means = stratum_means(variables, self.stratum, len(self.sizes))[is_labelled]
        sizes = self.sizes[is_labelled]
        return np.asarray(sizes @ means / sizes.sum())

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Return Σ_h W_h² (1 − f_h) s_h² / n_h (q, q) (Cochran, eq. 5.12).

        With replacement, there is no factor 1 − f_h (Kumar & Raj 2016, eq. 6).
        """
        within = pooled_stratum_covariances(variables, self.stratum, self.counts, self.sizes)
        return self._covariance_of_means(within)

    def _covariance_of_means(self, within: FloatArray) -> FloatArray:
        """Return the covariance of the means (q, q) from the covariances within strata (H, q, q)."""
        factors = self.variance_factors
        # A covariance within a stratum without labels may be NaN; its factor is 0.
        is_used = factors > 0
        return np.asarray(np.einsum("h,hqr->qr", factors[is_used], within[is_used]))

    def covariance_and_dfs(self, variables: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the covariance of the means (q, q) and Satterthwaite's degrees of freedom (q,)."""
        within = pooled_stratum_covariances(variables, self.stratum, self.counts, self.sizes)
        contributions = variance_contributions(self.variance_factors, np.einsum("hqq->qh", within))
        degrees_of_freedom = satterthwaite(contributions, self._stratum_degrees_of_freedom)
        return self._covariance_of_means(within), degrees_of_freedom

    def contributions(self, variable: FloatArray) -> FloatArray:
        """Return the contribution of each stratum (H,) to the variance of the mean of one variable (n,)."""
        return np.asarray(self._contributions(variable[:, None])[0])

    def _contributions(self, variables: FloatArray) -> FloatArray:
        """Return the contribution of each stratum to the variance of each mean (q, H)."""
        within = pooled_stratum_covariances(variables, self.stratum, self.counts, self.sizes)
        return variance_contributions(self.variance_factors, np.einsum("hqq->qh", within))

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Return Satterthwaite's degrees of freedom, over the strata with unlabelled units."""
        return float(self.dfs(variable[:, None])[0])

    def dfs(self, variables: FloatArray) -> FloatArray:
        """Return Satterthwaite's degrees of freedom (q,) of each of several variables (n, q)."""
        return satterthwaite(self._contributions(variables), self._stratum_degrees_of_freedom)

    def contributions_and_df(self, variable: FloatArray) -> tuple[FloatArray, float]:
        """Return the `contributions`, and Satterthwaite's degrees of freedom."""
        contributions = self.contributions(variable)
        return contributions, float(satterthwaite(contributions, self._stratum_degrees_of_freedom))

    @property
    def _stratum_degrees_of_freedom(self) -> FloatArray:
        return stratum_degrees_of_freedom(self.counts, self.sizes, with_replacement=self.with_replacement)

    def population_covariance(
        self, variables: FloatArray, *, stratum_weights_known: bool = False
    ) -> FloatArray:
        """Return Σ W_h² s_h²/N_h, plus the between-strata part of s²/N unless the W_h are known."""
        counts = self.counts
        total = float(np.sum(self.sizes[counts > 0]))
        within = pooled_stratum_covariances(variables, self.stratum, counts, self.sizes)
        if stratum_weights_known:
            return np.asarray(np.tensordot(self.shares, within, axes=1) / total)
        means = stratum_means(variables, self.stratum, len(self.sizes))
        within_part, between = population_covariance_parts(means, within, counts, self.sizes)
        values, vectors = np.linalg.eigh(between)
        # The unbiased estimate of the between part may have negative eigenvalues. They are replaced by 0, so
        # that the sum is at least the within part.
        return np.asarray((within_part + (vectors * np.maximum(values, 0.0)) @ vectors.T) / total)

    def resampling_variables(self, variable: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values (n,) or (n, q), and W_h² (1 − f_h) / n_h (H,)."""
        return variable, self.variance_factors

    def as_independent_draws(self) -> StratifiedWeighting:
        """Return the weighting of independent draws within strata: no finite population correction."""
        if self.with_replacement:
            return self
        return replace(self, with_replacement=True)

    def merge_strata(self, codes: IntArray) -> StratifiedWeighting:
        """Return the weighting of merged strata; `codes` (H,) has the new number of each stratum."""
        sizes = np.bincount(codes, self.sizes).astype(np.int64)
        return replace(self, stratum=codes[self.stratum], sizes=sizes)

    def complete_strata_weighting(
        self, member: BoolArray, *, is_whole_strata: bool = False
    ) -> StratifiedWeighting | None:
        """Return the weighting of the member units (n,) alone, if they make up whole strata but not all."""
        counts = self.counts
        members = np.bincount(self.stratum, member, minlength=len(counts))
        # One label says nothing of other units, unless there are none.
        is_known = (counts != 1) | (self.sizes == 1)
        is_complete = (members == counts) & is_known & (counts > 0)
        has_no_member = (members == 0) & (is_known | is_whole_strata)
        if np.all(is_complete) or not np.all(is_complete | has_no_member):
            return None
        is_labelled_completely = bool(np.all(counts[is_complete] == self.sizes[is_complete]))
        if is_labelled_completely and not (is_whole_strata or self.census):
            # All labels of the kind are known only if no unlabelled unit is of it.
            return None
        number = np.cumsum(is_complete) - 1
        return replace(self, stratum=number[self.stratum[member]], sizes=self.sizes[is_complete])

    def post_stratified(self, stratum: IntArray, sizes: IntArray) -> StratifiedWeighting:
        """Return the weighting with post-strata (n,) of known sizes (H,)."""
        if len(sizes) == 1:
            raise InputError(
                "post-stratification requires groups of known sizes",
                action="Add the groups to the sample: stratal.designs.post_stratify(sample, by=…), or "
                "--post-stratify GROUP.",
            )
        return replace(self, stratum=stratum, sizes=sizes)


def stratified_factors(counts: AnyArray, sizes: IntArray, *, with_replacement: bool = False) -> FloatArray:
    """Return W_h² (1 − f_h) / n_h (…, H), the factor of s_h² in the variance of a stratified mean.

    W_h is the share of the strata that have labels. `counts` may have leading axes of replicates (…, H).
    """
    is_labelled = counts > 0
    labelled_sizes = np.where(is_labelled, sizes, 0)
    weights = labelled_sizes / labelled_sizes.sum(axis=-1, keepdims=True)
    correction = 1.0 if with_replacement else 1.0 - np.minimum(counts / sizes, 1.0)
    return np.asarray(np.where(is_labelled, weights**2 * correction / np.maximum(counts, 1), 0.0))


def variance_contributions(factors: FloatArray, within: FloatArray) -> FloatArray:
    """Return the contributions (…, H) of the strata to a variance; 0 if the factor is 0."""
    return np.asarray(np.where(factors > 0, factors * within, 0.0))


def stratum_degrees_of_freedom(
    counts: AnyArray, sizes: IntArray, *, with_replacement: bool = False
) -> FloatArray:
    """Return the degrees of freedom n_h − 1 (…, H) of each stratum; 0 if all of its units are labelled."""
    is_census = (counts >= sizes) & (not with_replacement)
    return np.asarray(np.where(is_census, 0.0, np.maximum(counts - 1.0, 0.0)))
