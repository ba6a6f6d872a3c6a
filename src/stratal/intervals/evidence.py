"""The evidence of an estimate: the numbers and arrays from which its interval is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import gammaln, ndtri

from stratal.arrays import BoolArray, FloatArray, Number, Record, unit_scale
from stratal.designs import Weighting
from stratal.designs.weighting import ROUNDING_VARIANCE
from stratal.errors import InputError
from stratal.intervals.guards import (
    ROUNDING,
    UnitMoments,
    Variances,
    agreeing_rates,
    binary_trials,
    effective_labels_of,
    one_stratum_rates,
    range_of_mean,
    remaining_share,
    smoothed_moments,
    stratum_rates,
)
from stratal.intervals.interval import Ends, Interval, max_unseen_share
from stratal.intervals.looks import Look
from stratal.intervals.outcomes import OutcomeKind
from stratal.intervals.proportion import skewness_of
from stratal.intervals.simultaneous import SimultaneousLevel
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson

# Weight, in clusters, of the worst case, in which all units of a cluster have the same outcome. If all labels
# agree, they contain no information about the correlation within clusters.
_PRIOR_CLUSTERS = 2.0

# A number of units this near a whole number is that whole number, up to rounding.
_WHOLE_NUMBER_TOLERANCE = 1e-6

# With more units than this, draws without replacement are practically independent.
_MAX_FINITE_SIZE = 1e9


class IntervalEvidence(Protocol):
    """The input of the interval methods, for one estimate or for R replicates (R,)."""

    @property
    def value(self) -> Number:
        """The estimate."""

    @property
    def degrees_of_freedom(self) -> Number:
        """Degrees of freedom of the variance."""

    @property
    def outcome(self) -> OutcomeKind:
        """Kind of outcome."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Smallest and largest possible outcome."""

    @property
    def interval(self) -> Interval | None:
        """The interval that `auto` uses instead of that of a mean."""

    @property
    def linearised(self) -> bool:
        """Whether the labels are values of a linearised variable instead of outcomes."""

    @property
    def uses_proxy(self) -> bool:
        """Whether λ is not 0."""

    @property
    def superpopulation(self) -> bool:
        """Whether the target is a superpopulation, from which the N units were drawn."""

    @property
    def n(self) -> int:
        """Number of labels."""

    @property
    def census(self) -> bool:
        """Whether all units of the target are labelled."""

    @property
    def varies(self) -> bool:
        """Whether the labels differ; always true of replicates."""

    @property
    def textbook_variance(self) -> Number:
        """The variance estimate of the design, without guards."""

    @property
    def moments(self) -> UnitMoments:
        """Moments of the labels on the 0–1 scale."""

    @property
    def trials(self) -> Number:
        """Effective number of binary trials."""

    @property
    def skewness(self) -> Number:
        """Skewness γ of the estimate, from its labels or residuals."""

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata, and the labels of each are a random sample of it."""

    @property
    def in_one_stratum(self) -> bool:
        """Whether the labels are one random sample of the target population, without strata."""

    @property
    def are_clusters(self) -> bool:
        """Whether units were drawn in clusters."""

    @property
    def few_clusters(self) -> tuple[float, float]:
        """Standard-error factor and degrees of freedom for few clusters."""

    @property
    def satterthwaite_df(self) -> float:
        """Degrees of freedom of a variance with unequal weights, at most n − 1."""

    @property
    def mean_size_correction(self) -> float:
        """Change of the mean if the drawn clusters had the population's mean size; 0 for single units."""

    @property
    def large_cluster_correction(self) -> tuple[float, float, float]:
        """Change of the mean for the sizes of all clusters; factor of its error, and degrees of freedom."""

    @property
    def outcome_bounds(self) -> tuple[float, float]:
        """The bounds of an outcome that has them."""

    @property
    def rates(self) -> StratumRates:
        """Rates of the strata, on the 0–1 scale."""

    @property
    def expected_spread(self) -> Number:
        """The variance over units that strata and λ explain, on the 0–1 scale."""

    def variances(self, labels: UnitMoments) -> Variances:
        """Return the variances that the guards compare, on the 0–1 scale; `labels` are the `moments`."""

    def max_unseen_share(self, error: float) -> Number:
        """Return the largest share of units unlike all labels with this error probability."""

    def distance_for_unseen_units(self, deviation: Number, error: float) -> Number:
        """Return the minimum distance of a limit from the value, if unseen units deviate by `deviation`."""

    def possible_means(self) -> Ends:
        """Return the smallest and the largest mean that the labels leave possible, on the 0–1 scale."""


class DerivedEvidence:
    """Quantities derived from the evidence in the same way for one estimate and for replicates."""

    __slots__ = ()
    interval: Interval | None = None
    linearised = False

    @property
    def varies(self) -> bool:
        """Whether the labels differ; always true of replicates."""
        return True

    @property
    def mean_size_correction(self) -> float:
        """Change of the mean if the drawn clusters had the population's mean size; 0 for single units."""
        return 0.0

    @property
    def large_cluster_correction(self) -> tuple[float, float, float]:
        """Change of the mean for the sizes of all clusters; factor of its error, and degrees of freedom."""
        return 0.0, 1.0, 1.0

    @property
    def are_clusters(self) -> bool:
        """Whether units were drawn in clusters."""
        return False

    @property
    def few_clusters(self) -> tuple[float, float]:
        """Standard-error factor and degrees of freedom for few clusters."""
        return 1.0, np.inf

    @property
    def satterthwaite_df(self: IntervalEvidence) -> float:
        """Degrees of freedom of a variance with unequal weights, at most n − 1."""
        return float(max(self.n - 1, 1))

    @property
    def outcome_bounds(self: IntervalEvidence) -> tuple[float, float]:
        """The bounds of an outcome that has them."""
        if self.bounds is None:
            raise InputError(
                "this interval requires an outcome with bounds", action="Give bounds=(lowest, highest)."
            )
        low, high = self.bounds
        return low, high

    @property
    def rates(self: IntervalEvidence) -> StratumRates:
        """The labels' summary of each stratum, on the 0–1 scale."""
        labels = self.moments
        value = unit_scale(self.value, self.outcome_bounds)
        # Without strata, the effective number of trials of the estimate is that of its only stratum.
        if self.in_one_stratum and (self.uses_proxy or not labels.binary):
            return one_stratum_rates(value, labels, self.trials)
        # Without λ the trials follow from the design, and no variance is needed.
        if self.uses_proxy or self.superpopulation:
            variances = self.variances(labels)
        else:
            variances = Variances()
        return stratum_rates(value, labels, variances)

    @property
    def expected_spread(self: IntervalEvidence) -> Number:
        """The variance (…,) over units of the values expected from the strata and λ, on the 0–1 scale."""
        labels = self.moments
        smooth = smoothed_moments(labels)
        expected_within = smooth.within
        if self.uses_proxy:
            expected_within = self.variances(labels).variance_share(smooth) * smooth.within
        return np.maximum(smooth.spread - expected_within, 0.0)

    def max_unseen_share(self: IntervalEvidence, error: float) -> Number:
        """Return the largest share of units unlike all labels with this error probability.

        It is computed as if all labels agreed.
        """
        if error <= 0:
            return 0.0
        agreeing = agreeing_rates(self.moments, superpopulation=self.superpopulation)
        return 1.0 - stratified_clopper_pearson(agreeing, error, 0.0)[0]

    def distance_for_unseen_units(self: IntervalEvidence, deviation: Number, error: float) -> Number:
        """Return the minimum distance (…,) of a limit from the value, if unseen units deviate by `deviation`.

        Unseen units are unlike all labels. If there are m of them, all are unlabelled with probability p(m) =
        C(N−m, n)/C(N, n). The limit must then also allow for the error of the other units, at the quantile of
        error/p(m). m is the largest possible number. If most units are labelled, the distance may be larger
        for fewer units. It is then the maximum over m = 0, 1, …, which never decreases with the confidence
        level.
        """
        unseen_share = self.max_unseen_share(error)
        labels = self.moments
        n_unlabelled = labels.units * (labels.shares * labels.unlabelled_shares).sum(axis=-1)
        # In a superpopulation or a very large population, the share is not a number of units.
        is_share_only = error <= 0 or self.superpopulation or not labels.units < _MAX_FINITE_SIZE
        if is_share_only or np.all(n_unlabelled >= labels.units):
            return unseen_share * deviation
        unseen_units = np.asarray(np.minimum(unseen_share * labels.units, n_unlabelled))[..., None]
        max_unseen = math.ceil(float(np.max(unseen_units)) - _WHOLE_NUMBER_TOLERANCE)
        if np.all(2.0 * n_unlabelled < labels.units):
            numbers = np.arange(max_unseen + 1.0)
        else:
            numbers = np.array([float(max_unseen)])
        unseen_fractional = np.minimum(numbers, unseen_units)
        unseen_whole = np.minimum(numbers, np.ceil(unseen_units - _WHOLE_NUMBER_TOLERANCE))
        n_unlabelled = np.asarray(n_unlabelled)[..., None]
        # Logarithms, because the binomial coefficients exceed the range of a float.
        log_unlabelled = gammaln(n_unlabelled + 1.0) - gammaln(n_unlabelled - unseen_whole + 1.0)
        p_all_unlabelled = np.exp(
            log_unlabelled - gammaln(labels.units + 1.0) + gammaln(labels.units - unseen_whole + 1.0)
        )
        # If the unseen units are less probable than the error, no other error is added.
        conditional_error = np.minimum(error / np.maximum(p_all_unlabelled, error), 1.0)
        quantiles = np.maximum(-ndtri(conditional_error), 0.0)
        standard_error = np.sqrt(self.textbook_variance)
        distances = unseen_fractional / labels.units * np.asarray(deviation)[..., None]
        distances = distances + quantiles * np.asarray(standard_error)[..., None]
        return np.maximum(unseen_share * deviation, distances.max(axis=-1))

    def possible_means(self: IntervalEvidence) -> Ends:
        """Return the means (…,) on the 0–1 scale if all unlabelled units have the lowest or highest outcome.

        They are 0 and 1 if the number of unlabelled units of the target is unknown.
        """
        labels = self.moments
        is_random_in_strata = self.in_strata or self.in_one_stratum
        if self.superpopulation or not is_random_in_strata or not np.isfinite(labels.units):
            return 0.0, 1.0
        possible = range_of_mean(labels, np.where(labels.counts > 0, labels.means, 0.0))
        return possible["lowest_mean"], possible["highest_mean"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence(DerivedEvidence, Record):
    """The input of the interval methods for one estimate.

    Parameters
    ----------
    value : float
        The estimate, within the bounds.
    variance : float
        Variance of the estimate of the target; may be NaN (one label) or 0 (all residuals agree).
    population_part : float
        The part of the variance that is due to drawing the N units from a superpopulation.
    degrees_of_freedom : float
    outcome : {"binary", "bounded", "unbounded"}
    bounds : (float, float), optional
    z, residuals : float (n,)
        The outcome, and the variable whose weighted mean plus `offset` is the estimate.
    offset : float
    weighting : Weighting
    uses_proxy : bool
        Whether the residuals differ from z: λ is not 0.
    superpopulation : bool
        Whether the target is the superpopulation.
    stratum_weights_known : bool
        Whether the W_h of the superpopulation are known. Otherwise, they are estimated from the N units.
    interval : Interval, optional
        The interval that `auto` uses instead of that of a mean.
    linearised : bool
        Whether the labels are value + u of a linearised variable u instead of outcomes. Only their variance
        is then meaningful.
    simultaneous : SimultaneousLevel, optional
        The estimates whose intervals are simultaneous with this one.
    member : bool (n,), optional
        The labelled units of the group of the estimate. Default: all.
    planned_look : Look, optional
        The planned look of the estimate. The intervals of all looks are simultaneous.
    """

    value: float
    variance: float
    population_part: float
    degrees_of_freedom: float
    outcome: OutcomeKind
    bounds: tuple[float, float] | None
    z: FloatArray
    residuals: FloatArray
    offset: float
    weighting: Weighting
    uses_proxy: bool
    superpopulation: bool = False
    stratum_weights_known: bool = False
    interval: Interval | None = None
    linearised: bool = False
    member: BoolArray | None = None
    simultaneous: SimultaneousLevel | None = None
    planned_look: Look | None = None

    @property
    def n(self) -> int:
        """Number of labels."""
        return len(self.z)

    @property
    def census(self) -> bool:
        """Whether all units of the target are labelled."""
        return self.weighting.census and not self.superpopulation

    @property
    def varies(self) -> bool:
        """Whether the variance estimate is more than rounding: the labels (or residuals) do not all agree."""
        if self.bounds is None:
            scale = np.max(np.abs(self.z), initial=0.0)
        else:
            scale = self.bounds[1] - self.bounds[0]
        return bool(np.isfinite(self.variance) and self.variance > ROUNDING * scale**2)

    @property
    def textbook_variance(self) -> float:
        """The variance estimate of the design: 0 if all labels agree, guarded if there is only one label."""
        if np.isfinite(self.variance):
            # An unbiased variance of several parts may be negative.
            return max(self.variance, 0.0)
        if self.bounds is None:
            raise InputError(
                "the variance cannot be estimated from one label of an unbounded outcome",
                action="Label at least 2 units, or give the outcome's bounds.",
            )
        return self.guarded_variance

    @property
    def reported_variance(self) -> float:
        """The textbook variance, or the guarded one if all labels agree while units are unlabelled.

        It is NaN for an outcome without bounds if all labels agree.
        """
        # With one label, `textbook_variance` is the guarded variance.
        if self.varies or self.census or not np.isfinite(self.variance):
            return self.textbook_variance
        if self.bounds is None:
            return float("nan")
        return self.guarded_variance

    @property
    def guarded_variance(self) -> float:
        """The variance, at least that of the effective trials; for bounded outcomes only."""
        low, high = self.outcome_bounds
        mean = float(smoothed_moments(self.moments).mean)
        variance_of_trials = mean * (1.0 - mean) / self.trials * (high - low) ** 2
        if np.isfinite(self.variance):
            return max(self.variance, variance_of_trials)
        return variance_of_trials

    @property
    def are_clusters(self) -> bool:
        """Whether units were drawn in clusters."""
        return self.weighting.unit_clusters is not None

    @property
    def few_clusters(self) -> tuple[float, float]:
        """The factor of the standard error for few clusters, and their degrees of freedom."""
        clusters = self.weighting.group_clusters(self.member)
        # With one cluster, the variance between clusters is unknown, and `covariance` is NaN.
        if clusters is None or clusters.count < 2:
            return 1.0, np.inf
        factor = self.weighting.few_clusters_factor(self.residuals, self.member)
        return math.sqrt(factor), max(clusters.degrees_of_freedom, 1.0)

    @property
    def design_df(self) -> float:
        """R's `degf`: the number of clusters with members of the group, minus the number of their strata."""
        return self.weighting.design_df(self.member)

    @property
    def design_standard_error(self) -> float:
        """The linearised standard error without a correction for few clusters, as in R's `survey`."""
        variance = float(self.weighting.covariance(self.residuals[:, None])[0, 0])
        return math.sqrt(max(variance + self.population_part, 0.0))

    @property
    def scaled_outcomes(self) -> FloatArray:
        """The outcomes on the 0–1 scale (n,)."""
        return np.asarray(unit_scale(self.z, self.outcome_bounds))

    @property
    def moments(self) -> UnitMoments:
        """The moments of the labels, on the 0–1 scale."""
        return UnitMoments.of(self.scaled_outcomes, self.weighting, binary=self.outcome == "binary")

    @property
    def trials(self) -> float:
        """Effective number of binary trials; infinite for a census."""
        if self.census:
            return float("inf")
        labels = self.moments
        smooth = smoothed_moments(labels)
        effective_labels = effective_labels_of(smooth, self.variances(labels))
        weighting = self.weighting
        if weighting.unit_clusters is not None:
            # A few clusters contain little information about the intraclass correlation. In the worst case,
            # each is one effective unit, and their number is Kish's for clusters of unequal size.
            cluster_weights = np.bincount(weighting.unit_clusters, weighting.weights) / weighting.total
            worst_variance = np.sum(cluster_weights**2)
            cluster_df = max(weighting.draws - 1.0, 0.0)
            weighted_variance = cluster_df / effective_labels + _PRIOR_CLUSTERS * worst_variance
            effective_labels = (cluster_df + _PRIOR_CLUSTERS) / weighted_variance
        return float(binary_trials(effective_labels, smooth))

    @property
    def satterthwaite_df(self) -> float:
        """Degrees of freedom of a variance with unequal weights, at most n − 1.

        They are twice Satterthwaite's for Σ w² e². His approximation assumes a normal outcome, with kurtosis
        3. A bounded outcome has a kurtosis below 2 unless it is rare; the number of trials allows for that.
        """
        weighting = self.weighting
        largest = float(max(self.n - 1, 1))
        # Within strata, weights are equal. Clusters have other degrees of freedom.
        if weighting.unit_clusters is not None or weighting.random_within_strata:
            return largest
        squares = weighting.weights**2
        return float(np.clip(2.0 * squares.sum() ** 2 / np.sum(squares**2), 1.0, largest))

    @property
    def mean_size_correction(self) -> float:
        """Change of the mean if the drawn clusters had the population's mean size; 0 for single units.

        It follows from the regression of the clusters' residuals on their sizes, whose mean is known. If the
        outcome depends on the size of the cluster, most samples lack the many units of large clusters.
        """
        weighting = self.weighting
        # A regression of two clusters has no residuals.
        if weighting.unit_clusters is None or weighting.draws < 3:
            return 0.0
        # With deviations from the mean, the correction does not depend on the origin of the outcome.
        deviations = self.residuals - weighting.weights @ self.residuals / weighting.total
        covariances = weighting.covariance(np.column_stack([deviations, np.ones(self.n)]))
        # Clusters of equal size: the sum of the weights, which estimates 1, is the same in every draw.
        if covariances[1, 1] <= ROUNDING_VARIANCE:
            return 0.0
        return float(covariances[0, 1] / covariances[1, 1] * (1.0 - weighting.total))

    @property
    def large_cluster_correction(self) -> tuple[float, float, float]:
        """Change of the mean for the sizes of all clusters; factor of its error, and degrees of freedom.

        Most samples of clusters lack the largest, which contain many units. The number of these units follows
        from the known squared sizes, and their mean from a regression on the size of the cluster. This
        extrapolation has a larger standard error than the estimate. The result is (0, 1, 1) if the sizes
        contain no information.
        """
        large_cluster_mean = self.weighting.mean_over_cluster_sizes(
            self.residuals if self.uses_proxy else self.z
        )
        # Equal labels give no regression on sizes.
        if large_cluster_mean is None or not self.varies:
            return 0.0, 1.0, 1.0
        mean, design_variance, degrees_of_freedom = large_cluster_mean
        if self.uses_proxy:
            # Residuals lack the part of the estimate that the proxies of all units determine.
            mean += self.offset
        variance = design_variance + self.population_part
        return mean - self.value, math.sqrt(max(variance / self.variance, 1.0)), degrees_of_freedom

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata, and the labels of each are a random sample of it."""
        several = bool((self.weighting.counts > 0).sum() > 1)
        return self.weighting.random_within_strata and several

    @property
    def in_one_stratum(self) -> bool:
        """Whether the labels are one random sample of the target population, without strata."""
        is_single_stratum = self.weighting.random_within_strata and len(self.weighting.counts) == 1
        return is_single_stratum and not self.superpopulation

    def max_unseen_share(self, error: float) -> Number:
        """Return the largest share of units unlike all labels with this error probability."""
        if self.weighting.random_within_strata:
            return super(Evidence, self).max_unseen_share(error)
        if self.superpopulation:
            labelled_share = 0.0
        else:
            labelled_share = min(self.n / self.weighting.population_size, 1.0)
        return max_unseen_share(self.weighting.effective_draws, labelled_share, error)

    def variances(self, labels: UnitMoments) -> Variances:
        """Return the variances that the guards compare, on the 0–1 scale; `labels` are the `moments`."""
        low, high = self.outcome_bounds
        outcomes = self.scaled_outcomes
        weighting = self.weighting
        total = weighting.total
        size = weighting.population_size
        scale = (high - low) ** 2
        spread = float(weighting.population_covariance(outcomes[:, None])[0, 0]) * size
        # The linearised variable of a ratio, because the sum of the weights may vary between samples.
        centred = (outcomes - weighting.weights @ outcomes / total) / total
        residuals = weighting.few_cluster_residuals(centred[:, None])
        without_lam = float(weighting.covariance(residuals)[0, 0])
        design_effect: Number = 1.0
        if not labels.by_stratum:
            information = smoothed_moments(labels).information
            design_effect = remaining_share(spread / labels.draws, without_lam, information)
        return Variances(
            with_lam=(self.variance - self.population_part) / scale,
            without_lam=without_lam,
            spread=spread,
            population_part=self.population_part / scale,
            uses_proxy=self.uses_proxy,
            superpopulation_draws=size if self.superpopulation else np.inf,
            stratum_weights_known=self.stratum_weights_known,
            design_effect=design_effect,
        )

    @property
    def skewness(self) -> float:
        """Skewness γ of the estimate, from its labels or residuals."""
        return skewness_of(self.residuals, self.weighting)

    @property
    def outcome_variance(self) -> float:
        """S², the estimated variance of z over the population; smoothed if all labels agree."""
        weighting = self.weighting
        spread = float(weighting.population_covariance(self.z[:, None])[0, 0]) * weighting.population_size
        if not (np.isfinite(spread) and spread > 0) and self.bounds is not None:
            low, high = self.bounds
            return float(smoothed_moments(self.moments).spread) * (high - low) ** 2
        return spread


def design_effect(
    variance: float, spread: float, n: int, population_size: float, target: str = "population"
) -> tuple[float | None, float | None]:
    """Return the design effect and the effective sample size, or None if the outcome does not vary.

    The effective size m is that of a simple random sample of this population with the same variance:
    (1 − m/N) S²/m = variance, so m = S² / (variance + S²/N). For a superpopulation, the variance already
    includes S²/N. `spread` is S².
    """
    if not (spread > 0 and np.isfinite(variance)):
        return None, None
    if target == "population":
        population_part = spread / population_size
    else:
        population_part = 0.0
    if variance + population_part > 0:
        # No sample has more labels than a census.
        effective_size = min(spread / (variance + population_part), population_size)
    else:
        # A variance of 0 is that of a census.
        effective_size = population_size
    simple_random_variance = spread / n - population_part
    if simple_random_variance > 0:
        return float(variance / simple_random_variance), float(effective_size)
    return 1.0, float(effective_size)
