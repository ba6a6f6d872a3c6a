"""A design as arrays: the weights of the labelled units and the covariance of any weighted mean.

A `Weighting` is all that an estimator ever sees of a design. An estimator turns outcome and proxies into
per-unit variables; the weighting gives their weighted means, the covariance of those, and the degrees of
freedom. k estimators and m designs therefore cost k + m small pieces of code, not k × m.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.designs.stratum_moments import (
    pooled_stratum_covariances,
    population_spread,
    satterthwaite,
    stratum_counts,
    stratum_means,
)
from stratal.errors import InputError

SAME = 1e-18
"""A variance that is no more than this share of the squared mean is rounding: of sizes, or of Σ w, which
estimates 1."""


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

    size: float
    """N, or its estimate, where there are no strata."""

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

    def stretched(self, residuals: FloatArray) -> FloatArray:
        """Return residuals (n,) or (n, q) of means fitted on these units, for the covariance: as they are.

        Where few groups of units were drawn together, each pulls the mean towards itself, and the residuals
        are too small by that.
        """
        return residuals

    def unexplained(self, variables: FloatArray, weights: FloatArray) -> FloatArray:
        """Return what the weights leave open of `variables` (n, q): deviations from their weighted mean.

        A weighting that is fitted to known totals explains more.

        Parameters
        ----------
        variables : float (n, q)
        weights : float (n,)
            The design's own, 0 for units that are left out.
        """
        return np.asarray(variables - weights @ variables / weights.sum())

    @property
    def random_within_strata(self) -> bool:
        """Whether each stratum's units are a simple random sample of a known size N_h, drawn one by one.

        The weights of a stratum then add up to W_h in every draw, and its labels can stand for its others.
        """
        return False

    @property
    def sizes_follow_labels(self) -> bool:
        """Whether labels of earlier rounds decided how many units of each stratum were drawn."""
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
        return np.asarray(np.where(labelled, self.sizes, 0) / np.sum(self.sizes[labelled]))

    @property
    def total(self) -> float:
        """Σ w, which estimates 1."""
        return float(self.weights.sum())

    @property
    def draws(self) -> int:
        """Independent draws behind the n units: n, or fewer where units were drawn together."""
        return len(self.weights)

    @property
    def effective_draws(self) -> float:
        """Draws, counted less where their weights differ: (Σ w)² / Σ w² (Kish 1965), w of whole clusters."""
        weights = self.weights if self.groups is None else np.bincount(self.groups, self.weights)
        return float(min(self.draws, weights.sum() ** 2 / np.sum(weights**2)))

    @property
    def groups(self) -> IntArray | None:
        """The group (n,) that each unit was drawn with; None where units were drawn one by one."""
        return None

    @property
    def sampled_fractions(self) -> FloatArray:
        """f_h (H,), the share of each stratum that is labelled; 0 for independent draws."""
        return np.array([min(len(self.weights) / self.population_size, 1.0)])

    @property
    def census(self) -> bool:
        """Whether every unit of the population is labelled."""
        weights, size = self.weights, self.population_size
        return len(weights) >= size and bool(np.all(weights * size <= 1))

    @property
    def variance_factors(self) -> FloatArray:
        """What the variance s_h² within each stratum (H,) is multiplied by in that of the mean (Kish)."""
        weights = self.weights
        return np.array([float(np.sum(weights**2)) / float(np.sum(weights)) ** 2])

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

    def resampling(self, variable: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (n,) to resample within strata, and the factor (H,) of s_h² in the variance of their mean.

        Without strata w·y are resampled as independent draws.
        """
        n = len(variable)
        return np.asarray(n * self.weights * variable), np.array([1.0 / n])

    def independent(self) -> Weighting:
        """Return the weighting of independent draws within strata: no finite population correction."""
        return self

    def merged(self, codes: IntArray) -> Weighting:
        """Return the weighting with strata joined to new ones, by the new number of each old one (H,)."""
        return self

    def whole_strata(self, member: BoolArray) -> Weighting | None:
        """Return the weighting of the member units (n,) alone, if they make up whole strata.

        As far as can be seen no other stratum then holds any of their kind. None where they do not.
        """
        return None

    def post_stratified(self, stratum: IntArray, sizes: IntArray) -> Weighting:
        """Return the weighting of strata (n,) of known sizes (H,), given how many units of each were drawn.

        Raises
        ------
        InputError
            Where units of one stratum had unequal chances or came in clusters: the strata's weights would put
            other ones in the place of those that the units were drawn with.
        """
        raise InputError(
            "post-stratification needs units drawn with equal chances, one by one",
            action="Use estimator='hajek', 'difference' or 'ppi++' for this design.",
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
    sizes_follow_labels : bool
        Whether labels of earlier rounds decided the n_h.

    Examples
    --------
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0, 1, 1]), sizes=np.array([10, 30]))
    >>> weighting.weights
    array([0.125, 0.125, 0.375, 0.375])
    """

    stratum: IntArray = field()
    sizes: IntArray = field()
    with_replacement: bool = False
    sizes_follow_labels: bool = False

    @property
    def random_within_strata(self) -> bool:
        """True: the size of every stratum's sample was fixed."""
        return True

    @property
    def counts(self) -> IntArray:
        """n_h (H,), labels per stratum."""
        return stratum_counts(self.stratum, len(self.sizes))

    @property
    def population_size(self) -> float:
        """N, the units of all strata."""
        return float(np.sum(self.sizes))

    @property
    def weights(self) -> FloatArray:
        """W_h / n_h per unit (n,)."""
        counts = self.counts
        total = np.sum(self.sizes[counts > 0])
        return np.asarray((self.sizes / np.maximum(counts, 1) / total)[self.stratum])

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
        return not self.with_replacement and bool(np.all(self.counts >= self.sizes))

    def mean(self, variables: FloatArray) -> FloatArray:
        """Σ N_h ȳ_h / N (q,): summed over whole numbers, so that labels which are all 1 average to 1."""
        labelled = self.counts > 0
        means = stratum_means(variables, self.stratum, len(self.sizes))[labelled]
        sizes = self.sizes[labelled]
        return np.asarray(sizes @ means / np.sum(sizes))

    @property
    def variance_factors(self) -> FloatArray:
        """W_h² (1 − f_h) / n_h (H,), the factor of s_h² in the variance."""
        return stratified_factors(self.counts, self.sizes, with_replacement=self.with_replacement)

    def covariance(self, variables: FloatArray) -> FloatArray:
        """Σ_h W_h² (1 − f_h) s_h² / n_h (q, q) (Cochran, eq. 5.12).

        With replacement the factor 1 − f_h is left out (Kumar & Raj 2016, eq. 6).
        """
        within = pooled_stratum_covariances(variables, self.stratum, self.counts, self.sizes)
        factors = self.variance_factors
        used = factors > 0
        return np.asarray(np.tensordot(factors[used], within[used], axes=1))

    def contributions(self, variable: FloatArray) -> FloatArray:
        """Each stratum's part (H,) of the variance of the mean of one variable (n,)."""
        within = pooled_stratum_covariances(variable[:, None], self.stratum, self.counts, self.sizes)
        return stratum_parts(self.variance_factors, within[:, 0, 0])

    def degrees_of_freedom(self, variable: FloatArray) -> float:
        """Satterthwaite's, over the strata that are not labelled whole."""
        free = free_labels(self.counts, self.sizes, with_replacement=self.with_replacement)
        return float(satterthwaite(self.contributions(variable), free))

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
        own, between = population_spread(means, within, counts, self.sizes)
        values, vectors = np.linalg.eigh(between)
        # Unbiased, the between part can come out negative: never let it take from the within part.
        return np.asarray((own + (vectors * np.maximum(values, 0.0)) @ vectors.T) / total)

    def resampling(self, variable: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The values themselves (n,), and W_h² (1 − f_h) / n_h (H,)."""
        return variable, self.variance_factors

    def independent(self) -> StratifiedWeighting:
        """Return the weighting of independent draws within strata: no finite population correction."""
        return dataclasses.replace(self, with_replacement=True)

    def merged(self, codes: IntArray) -> StratifiedWeighting:
        """Return the weighting with strata joined to new ones, by the new number of each old one (H,)."""
        sizes = np.bincount(codes, self.sizes).astype(np.int64)
        return dataclasses.replace(self, stratum=codes[self.stratum], sizes=sizes)

    def whole_strata(self, member: BoolArray) -> StratifiedWeighting | None:
        """Return the weighting of the member units (n,) alone, if they make up whole strata but not all."""
        counts = self.counts
        members = np.bincount(self.stratum, member, minlength=len(counts))
        # One label says nothing of other units, unless there are none.
        whole = (members == counts) & ((counts > 1) | (counts == self.sizes))
        if np.all(whole) or not np.all(whole | (members == 0)):
            return None
        number = np.cumsum(whole) - 1
        return dataclasses.replace(self, stratum=number[self.stratum[member]], sizes=self.sizes[whole])

    def post_stratified(self, stratum: IntArray, sizes: IntArray) -> StratifiedWeighting:
        """Return the weighting of strata (n,) of known sizes (H,), given the units drawn of each."""
        if len(sizes) == 1:
            raise InputError(
                "post-stratification needs groups of known sizes",
                action="Give the sample its groups: stratal.post_stratify(sample, by=…), "
                "--post-stratify GROUP.",
            )
        return dataclasses.replace(self, stratum=stratum, sizes=sizes)


def stratified_factors(counts: AnyArray, sizes: IntArray, *, with_replacement: bool = False) -> FloatArray:
    """Return W_h² (1 − f_h) / n_h (…, H), the factor of s_h² in the variance of a stratified mean.

    W_h is taken over the strata that have labels: a stratum without labels stands for itself nowhere. Counts
    may carry replicate axes (…, H).

    Examples
    --------
    >>> stratified_factors(np.array([2, 10]), np.array([10, 10]))
    array([0.1, 0. ])
    """
    labelled = counts > 0
    size = np.where(labelled, sizes, 0)
    weights = size / size.sum(axis=-1, keepdims=True)
    correction = 1.0 if with_replacement else 1.0 - np.minimum(counts / sizes, 1.0)
    return np.asarray(np.where(labelled, weights**2 * correction / np.maximum(counts, 1), 0.0))


def stratum_parts(factors: FloatArray, within: FloatArray) -> FloatArray:
    """Return each stratum's part (…, H) of a variance; a stratum that cannot vary has none.

    Examples
    --------
    >>> stratum_parts(np.array([0.1, 0.0]), np.array([2.0, np.nan]))
    array([0.2, 0. ])
    """
    return np.asarray(np.where(factors > 0, factors * within, 0.0))


def free_labels(counts: AnyArray, sizes: IntArray, *, with_replacement: bool = False) -> FloatArray:
    """Return the degrees of freedom n_h − 1 (…, H) of each stratum, none where every unit is labelled.

    Examples
    --------
    >>> free_labels(np.array([3, 1, 0]), np.array([9, 1, 9]))
    array([2., 0., 0.])
    """
    whole = (counts >= sizes) & (not with_replacement)
    return np.asarray(np.where(whole, 0.0, np.maximum(counts - 1.0, 0.0)))
