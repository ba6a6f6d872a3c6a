"""Smoothed moments of strata with few labels: the guards of an interval.

Guard 1 smooths the moments of strata whose labels (nearly) agree. Guard 2 shrinks the part of the variance
that λ seems to remove. Guard 3 counts graded labels as binary trials. Guard 6 adds rates for sample sizes
that depend on labels. Guards 4 and 5 widen limits: `methods.MeanInterval`. The numbers are those of
docs/methods/intervals.md.

Few labels are smoothed in the following places. Different quantities are unknown in each, so that none can
replace another without a change of coverage.

| function | smoothed | towards | weight, in labels |
|---|---|---|---|
| `smoothed_moments` (guard 1) | mean and variance of strata | all strata, these towards 1/2 | √(n_h/2); 2 |
| `graded_variances` | variance of strata on a scale | all strata, these a binary one | 1; 1 |
| `remaining_share` (guard 2) | share of variance that λ leaves | 1 | 5 informative |
| `stratified.rates_with_borrowed_labels` | rates in the test of strata | all strata | (1 − w_h)/n_h |
| `label_based_sizes.shrink_to_half` (guard 6) | rates if sizes follow labels | 1/2 | bias of the sizes |
| `estimation.lam` | λ | λ of a calibrated proxy, then 0 | 20; 10 informative |
| `estimation.pooled_pseudo_labels` | shares of pairs of classes | those of all strata | 1 |
| `metrics.pseudo_label_variances` | influences of a ranking | the same units with other labels | 1 |
| `effective_sample_size` | effective sample size | all strata | 2 |
| `strata.standard_deviations` | standard deviations for an allocation | a line in the proxy | by the labels |
| `planning.stratum_deviations` | the same, of residuals | their pooled variance | fixed |
| `proxy.calibration` | steps of a calibration curve | the overall mean | 1 |

The first four smooth one outcome. `lam`, functions of shares and rankings smooth a joint distribution of
several variables. The last three decide sizes or a proxy and never enter an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, Number, Record, divide
from stratal.designs import Weighting
from stratal.designs.stratum_moments import stratum_means
from stratal.intervals.label_based_sizes import shrink_to_half
from stratal.intervals.stratified import StratumRates, rates_with_borrowed_labels

# Number of labels, half of them at each bound, by which guard 1 smooths the mean of all strata.
LABELS_AT_THE_BOUNDS = 2.0

# Number of labels at each bound that the sample may have missed (Agresti & Coull 1998).
_UNSEEN_LABELS = 2.0

# A smaller difference of the factor of the trials from 1 is a rounding error. With 1, the test is exact.
_FACTOR_ROUNDING = 1e-9

# Weight, in informative labels, of the assumption that λ removes no variance.
_LABELS_WITHOUT_GAIN = 5.0

# A variance on the 0–1 scale below this is rounding error: the labels agree.
ROUNDING = 1e-24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitMoments(Record):
    """The moments of the labels of an outcome on the 0–1 scale, per stratum; replicate axes may lead.

    Parameters
    ----------
    means, squares : float (…, H)
        Mean of the labels of each stratum, and of their squares; 0 in strata without labels.
    counts : float (…, H)
        Number of labels of each stratum.
    shares : float (…, H)
        W_h.
    factors : float (…, H)
        Factors of s_h² in the variance of the mean.
    draws : float (…,)
        Number of equally weighted labels with the same precision (Kish).
    by_stratum : bool
        Whether each stratum's labels are a random sample of it.
    label_based : bool, or bool (…,)
        Whether labels of earlier rounds determined the n_h.
    units : float
        N; infinite if there are strata without labels, or if units are not drawn one by one.
    binary : bool
        Whether the outcome of every unit is 0 or 1.
    """

    means: FloatArray
    squares: FloatArray
    counts: FloatArray
    shares: FloatArray
    factors: FloatArray
    draws: FloatArray
    by_stratum: bool = True
    label_based: bool | BoolArray = False
    units: float = np.inf
    binary: bool = False

    @property
    def centred_squares(self) -> FloatArray:
        """Σ (z − z̄_h)² (…, H) over the labels of each stratum."""
        return np.asarray(self.counts * np.maximum(self.squares - self.means**2, 0.0))

    @property
    def unlabelled_shares(self) -> FloatArray:
        """1 − f_h (…, H), the share of each stratum that is not labelled."""
        return np.asarray(self.factors * self.counts / np.where(self.shares > 0, self.shares, 1.0) ** 2)

    @classmethod
    def of(cls, outcomes: FloatArray, weighting: Weighting, *, binary: bool = False) -> UnitMoments:
        """Return the moments of outcomes on the 0–1 scale (n,) of the labelled units."""
        weights = weighting.weights / weighting.weights.sum()
        kish = 1.0 / (weights @ weights)
        # The square of 0 or 1 is itself.
        if binary:
            powers = outcomes[:, None]
        else:
            powers = np.column_stack([outcomes, outcomes**2])
        by_stratum = weighting.random_within_strata
        if by_stratum:
            counts = weighting.counts.astype(np.float64)
            means = stratum_means(powers, weighting.stratum, len(counts))
            means[counts == 0] = 0.0
        else:
            counts = np.array([kish * weighting.draws / len(weights)])
            means = weights[None, :] @ powers
        units = np.inf
        if by_stratum and (counts > 0).all():
            units = weighting.population_size
        return cls(
            means=means[:, 0],
            squares=means[:, -1],
            counts=counts,
            shares=weighting.shares,
            factors=weighting.variance_factors,
            draws=kish,
            by_stratum=by_stratum,
            label_based=weighting.has_adaptive_allocation,
            units=units,
            binary=binary,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmoothedMoments(Record):
    """Smoothed mean, spread and design variance of an outcome on the 0–1 scale.

    Parameters
    ----------
    mean : float (…,)
        θ̃.
    spread : float (…,)
        S̃², over the population.
    within : float (…,)
        Σ W_h S̃_h², the part of the spread within strata.
    variance : float (…,)
        Variance of the weighted mean.
    variance_with_unseen : float (…,)
        Variance of the mean of an outcome with two more labels at each bound, which the sample may have
        missed (Agresti & Coull 1998).
    binary_variances : float (…, H)
        Variance of a binary outcome with each stratum's mean.
    information : float (…,)
        4 Σ n_h p_h (1 − p_h): the number of labels, with less weight in strata whose labels nearly agree.
    """

    mean: FloatArray
    spread: FloatArray
    within: FloatArray
    variance: FloatArray
    variance_with_unseen: FloatArray
    binary_variances: FloatArray
    information: FloatArray


def smoothed_moments(labels: UnitMoments) -> SmoothedMoments:
    """Return the smoothed moments: guard 1."""
    counts = labels.counts
    shares = labels.shares
    is_labelled = counts > 0
    divisors = np.where(is_labelled, counts + np.sqrt(counts / 2.0), 1.0)
    stratum_weights = np.where(is_labelled, counts / divisors, 0.0) * labels.by_stratum
    weight_of_labels = (labels.draws / (labels.draws + LABELS_AT_THE_BOUNDS))[..., None]

    def overall(values: FloatArray) -> FloatArray:
        return np.asarray((shares * values).sum(axis=-1)[..., None])

    def smooth(values: FloatArray, prior: FloatArray) -> FloatArray:
        shrunk_prior = weight_of_labels * prior + (1.0 - weight_of_labels) * 0.5
        return stratum_weights * values + (1.0 - stratum_weights) * shrunk_prior

    means = labels.means
    if labels.binary:
        smooth_means = smooth_squares = smooth(means, overall(means))
    else:
        # Graded labels determine the mean of their stratum. Only their spread is taken from all strata.
        smooth_means = smooth(means, means)
        smooth_squares = smooth(labels.squares, means**2 + overall(labels.squares - means**2))
    within = np.maximum(smooth_squares - smooth_means**2, 0.0)
    variance = (labels.factors * within).sum(axis=-1)
    if labels.by_stratum and not labels.binary and np.shape(counts)[-1] > 1:
        graded_within, unsmoothed_variance = graded_variances(labels)
        graded_variance = (labels.factors * graded_within).sum(axis=-1)
        # Labels that all agree contain no information about the variance of other labels.
        varies = unsmoothed_variance > ROUNDING
        within = np.where(varies[..., None], graded_within, within)
        variance = np.where(varies, np.maximum(unsmoothed_variance, graded_variance), variance)
    mean = (shares * smooth_means).sum(axis=-1)
    unseen_share = _UNSEEN_LABELS / (labels.draws + 2.0 * _UNSEEN_LABELS)
    mean_with_unseen = unseen_share + (1.0 - 2.0 * unseen_share) * (shares * means).sum(axis=-1)
    variance_with_unseen = mean_with_unseen * (1.0 - mean_with_unseen) * labels.factors.sum(axis=-1)
    informative_labels = counts * means * (1.0 - means)
    return SmoothedMoments(
        mean=mean,
        spread=(shares * smooth_squares).sum(axis=-1) - mean**2,
        within=(shares * within).sum(axis=-1),
        variance_with_unseen=variance_with_unseen,
        binary_variances=smooth_means * (1.0 - smooth_means),
        variance=variance,
        information=4.0 * informative_labels.sum(axis=-1),
    )


# Weight, in labels, of the pooled variance in that of a stratum.
_POOLED_LABELS = 1.0
# Weight, in labels, of the variance of a binary outcome in the pooled variance, and number of labels added at
# each bound to its mean.
_LABEL_AT_A_BOUND = 1.0


def graded_variances(labels: UnitMoments) -> tuple[FloatArray, FloatArray]:
    """Return smoothed S_h² (…, H) of an outcome on a scale, and the unsmoothed variance (…,) of its mean.

    Sample variances s_h², divisor n_h − 1, are shrunk to their mean over all strata by one label, and this
    mean to the variance of a binary outcome by one more. Strata of one label use the differences between
    neighbours (von Neumann 1941), because similar strata are usually adjacent.
    """
    counts = labels.counts
    squares = labels.centred_squares
    stratum_dfs = np.maximum(counts - 1.0, 0.0)
    has_one_label = (counts == 1.0) & (labels.factors > 0)
    neighbour_variance, neighbour_df = _variance_of_neighbours(labels.means, has_one_label)
    ones = (counts * labels.means).sum(axis=-1)
    rate = (ones + _LABEL_AT_A_BOUND) / (counts.sum(axis=-1) + 2.0 * _LABEL_AT_A_BOUND)
    pooled_sum = squares.sum(axis=-1) + neighbour_df * neighbour_variance
    pooled_sum = pooled_sum + _LABEL_AT_A_BOUND * rate * (1.0 - rate)
    pooled_variance = pooled_sum / (stratum_dfs.sum(axis=-1) + neighbour_df + _LABEL_AT_A_BOUND)
    smoothed = (squares + _POOLED_LABELS * pooled_variance[..., None]) / (stratum_dfs + _POOLED_LABELS)
    sample_variances = squares / np.maximum(stratum_dfs, 1.0)
    unsmoothed = np.where(has_one_label, neighbour_variance[..., None], sample_variances)
    return smoothed, np.asarray((labels.factors * unsmoothed).sum(axis=-1))


def _variance_of_neighbours(means: FloatArray, has_one_label: Number) -> tuple[FloatArray, FloatArray]:
    """Return half the mean squared difference (…,) of consecutive single labels (…, H), and its degrees.

    For m independent normal labels, the relative variance is (3m − 4)/(m − 1)² (von Neumann 1941). The
    degrees of freedom are those of a variance estimate with the same relative variance.
    """
    means, has_one_label = np.broadcast_arrays(means, has_one_label)
    indices = np.where(has_one_label, np.arange(means.shape[-1]), -1)
    last_single = np.maximum.accumulate(indices, axis=-1)
    before_first = np.full_like(last_single[..., :1], -1)
    previous = np.concatenate([before_first, last_single[..., :-1]], axis=-1)
    is_pair = has_one_label & (previous >= 0)
    differences = means - np.take_along_axis(means, np.maximum(previous, 0), axis=-1)
    n_pairs = is_pair.sum(axis=-1).astype(np.float64)
    half_squares = np.where(is_pair, differences**2, 0.0).sum(axis=-1) / 2.0
    degrees_of_freedom = 2.0 * n_pairs**2 / np.maximum(3.0 * n_pairs - 1.0, 1.0)
    return half_squares / np.maximum(n_pairs, 1.0), degrees_of_freedom


def remaining_share(
    without_lam: Number, with_lam: Number, information: Number, variance_with_unseen: Number = 0.0
) -> FloatArray:
    """Return the share (…,) of the variance that λ leaves, shrunk to 1: guard 2.

    Parameters
    ----------
    without_lam, with_lam : float (…,)
        Variance of the estimate for λ = 0, and with the fitted λ.
    information : float (…,)
        Number of informative labels; see `SmoothedMoments`.
    variance_with_unseen : float (…,)
        Minimum of the variance by which an increase is divided: labels that nearly agree have no variance.
    """
    is_usable = (np.asarray(without_lam) > ROUNDING) & np.isfinite(with_lam)
    share = np.where(is_usable, with_lam, 1.0) / np.where(is_usable, without_lam, 1.0)
    shrunk_share = (information * share + _LABELS_WITHOUT_GAIN) / (information + _LABELS_WITHOUT_GAIN)
    finite_without_lam = np.where(np.isfinite(without_lam), without_lam, 0.0)
    increase = np.maximum(np.where(np.isfinite(with_lam), with_lam, 0.0) - finite_without_lam, 0.0)
    divisor = np.maximum(np.maximum(finite_without_lam, variance_with_unseen), ROUNDING)
    return np.asarray(np.where(is_usable & (share < 1.0), shrunk_share, 1.0 + increase / divisor))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variances:
    """Variances of an estimate on the 0–1 scale, each float (…,).

    Parameters
    ----------
    with_lam : float
        The design variance of the estimate, inflated because λ is fitted; may be NaN or 0.
    without_lam : float
        The design variance of the weighted mean of the outcome.
    spread : float
        S², estimated.
    population_part : float
        The variance due to drawing the N units from a superpopulation.
    uses_proxy : bool
        Whether λ is not 0.
    superpopulation_draws : float
        N if the target is the superpopulation, from which the N units were drawn; otherwise infinite.
    stratum_weights_known : bool
        Whether the W_h of the superpopulation are known, so that only the units within strata were drawn.
    design_effect : float
        The variance of an unstratified design over that of independent draws, shrunk to 1.
    """

    with_lam: Number = np.nan
    without_lam: Number = np.nan
    spread: Number = np.nan
    population_part: Number = 0.0
    uses_proxy: bool | BoolArray = False
    superpopulation_draws: float = np.inf
    stratum_weights_known: bool = False
    design_effect: Number = 1.0

    @property
    def differs_from_design(self) -> bool:
        """Whether λ or a superpopulation changes the variance of the design."""
        return self.uses_proxy is not False or math.isfinite(self.superpopulation_draws)

    def variance_share(self, smooth: SmoothedMoments) -> FloatArray:
        """Return the share (…,) of the outcome's variance that the estimate has; 1 for λ = 0."""
        if self.uses_proxy is False:
            return np.ones(())
        variance_with_unseen = self.design_effect * smooth.variance_with_unseen
        remaining = remaining_share(self.without_lam, self.with_lam, smooth.information, variance_with_unseen)
        return np.where(self.uses_proxy, remaining, 1.0)

    def superpopulation_part(self, smooth: SmoothedMoments) -> FloatArray:
        """Return the smoothed variance (…,) due to drawing the N units from a superpopulation."""
        spread = smooth.within if self.stratum_weights_known else smooth.spread
        return np.asarray(spread / self.superpopulation_draws)


def effective_labels_of(smooth: SmoothedMoments, variances: Variances) -> FloatArray:
    """Return the number (…,) of independent labels with the same variance; guards 1 and 2 are applied.

    It is the smaller of two numbers, from the smoothed moments and from the estimated variances.
    """
    share = variances.variance_share(smooth)
    smooth_variance = share * variances.design_effect * smooth.variance
    smooth_variance = smooth_variance + variances.superpopulation_part(smooth)
    design_variance = np.where(variances.uses_proxy, share * variances.without_lam, variances.with_lam)
    variance = design_variance + variances.population_part
    is_usable = np.isfinite(variance) & (variance > ROUNDING) & (np.asarray(variances.spread) > ROUNDING)
    is_positive = smooth_variance > 0
    smooth_labels = divide(smooth.spread, smooth_variance, where=is_positive, otherwise=np.inf)
    unsmoothed_labels = divide(variances.spread, variance, where=is_usable, otherwise=np.inf)
    return np.asarray(np.minimum(smooth_labels, unsmoothed_labels))


def binary_trials(effective_labels: Number, smooth: SmoothedMoments) -> FloatArray:
    """Return the number (…,) of binary trials with the same variance as so many labels: guard 3."""
    return np.asarray(effective_labels * smooth.mean * (1.0 - smooth.mean) / smooth.spread)


def stratum_rates(value: Number, labels: UnitMoments, variances: Variances) -> StratumRates:
    """Return the rates and trials of each stratum. Guards 2 and 3 multiply all trials by one factor.

    For λ = 0 and a binary outcome, there are n_h / (1 − f_h) trials. The factor allows for the share of the
    variance that λ leaves, for the smaller variance of a graded outcome, and for a superpopulation. Guard 6
    adds shrunk rates, for which limits are computed too.

    Parameters
    ----------
    value : float (…,)
        The estimate on the 0–1 scale.
    labels : UnitMoments
        Moments of the labelled units.
    variances : Variances
    """
    counts = labels.counts
    shares = labels.shares
    factors = labels.factors
    is_superpopulation = math.isfinite(variances.superpopulation_draws)
    is_random = factors > 0
    variance_factors = factors
    if is_superpopulation:
        # A completely labelled stratum is still a sample from the superpopulation.
        is_random = is_random | (counts > 0)
        variance_factors = shares**2 / np.maximum(counts, 1.0)
    trials = divide(shares**2, variance_factors, where=is_random, otherwise=np.inf)
    factor = np.ones(np.shape(labels.means)[:-1])
    shrunk_rates = None
    # With a single stratum, there is no allocation that could depend on labels.
    is_label_based = np.any(labels.label_based) and np.shape(shares)[-1] > 1
    # For a binary outcome and λ = 0, the factor is 1.
    if is_label_based or variances.differs_from_design or not labels.binary:
        smooth = smoothed_moments(labels)
        binary_variances = _variances_of_test(labels, smooth, trials)
        test_variance = (variance_factors * binary_variances).sum(axis=-1)
        target_variance = variances.variance_share(smooth) * smooth.variance
        target_variance = target_variance + variances.superpopulation_part(smooth)
        varies = test_variance > 0
        divisor = np.where(varies, np.maximum(target_variance, ROUNDING * test_variance), 1.0)
        factor = np.where(varies, test_variance, 1.0) / divisor
        if is_label_based:
            contributions = factors * binary_variances
            shrunk_rates = shrink_to_half(
                labels.means, counts, labels.unlabelled_shares, contributions, factor
            )
            # Only some of the replicates may have sizes that depend on labels.
            shrunk_rates = np.where(np.asarray(labels.label_based)[..., None], shrunk_rates, labels.means)
    finite_population = {} if is_superpopulation else range_of_mean(labels, labels.means)
    return StratumRates(
        value=np.minimum(np.maximum(value, 0.0), 1.0),
        rates=labels.means,
        counts=counts,
        trials=trials,
        shares=shares,
        factor=np.where(np.abs(factor - 1.0) < _FACTOR_ROUNDING, 1.0, factor),
        is_binary=labels.binary,
        shrunk_rates=shrunk_rates,
        **finite_population,
    )


def _variances_of_test(labels: UnitMoments, smooth: SmoothedMoments, trials: FloatArray) -> FloatArray:
    """Return the variance p(1 − p) of each stratum (…, H) that the test assumes at the estimate."""
    if labels.binary:
        return smooth.binary_variances
    rates = rates_with_borrowed_labels(labels.means, labels.counts, trials, labels.shares)
    return rates * (1.0 - rates)


def range_of_mean(labels: UnitMoments, means: FloatArray) -> dict[str, Any]:
    """Return N, and the means if all unlabelled units are 0, or 1, as keywords of `StratumRates`.

    `means` (…, H) are the mean labels of the strata. The result is empty if N is infinite.
    """
    if not np.isfinite(labels.units):
        return {}
    unlabelled_shares = labels.unlabelled_shares
    lowest = (labels.shares * (1.0 - unlabelled_shares) * means).sum(axis=-1)
    return {
        "units": labels.units,
        "lowest_mean": lowest,
        "highest_mean": lowest + (labels.shares * unlabelled_shares).sum(axis=-1),
    }


def one_stratum_rates(value: Number, labels: UnitMoments, trials: Number) -> StratumRates:
    """Return the rates of a single stratum with a number of binary trials (…,).

    It is for graded outcomes and for λ > 0. `Evidence.trials` has applied the guards.
    """
    value = np.clip(value, 0.0, 1.0)
    trials = np.asarray(trials)[..., None]
    is_finite = np.isfinite(trials)
    # n is (1 − f) times the n / (1 − f) trials. A census has infinitely many trials.
    factors = np.where(is_finite, labels.unlabelled_shares, labels.counts)
    counts = np.where(is_finite, trials, 1.0) * factors
    return StratumRates(
        value=value,
        rates=np.asarray(value)[..., None],
        counts=counts,
        trials=trials,
        shares=np.ones(1),
        is_binary=labels.binary,
        **range_of_mean(labels, labels.means),
    )


def agreeing_rates(labels: UnitMoments, *, superpopulation: bool = False) -> StratumRates:
    """Return the rates if all labels agreed. One minus their lower limit is the share of units unlike them.

    `superpopulation` is whether it is the target of the interval.
    """
    counts = labels.counts
    shares = labels.shares
    unlabelled_shares = labels.unlabelled_shares
    is_random = (counts > 0) & ((unlabelled_shares > 0) | superpopulation)
    rates = np.ones(np.shape(counts))
    divisors = np.where(is_random, unlabelled_shares, 1.0)
    if superpopulation:
        divisors = np.ones_like(rates)
    finite_population = {} if superpopulation else range_of_mean(labels, rates)
    return StratumRates(
        value=np.ones(np.shape(counts)[:-1]),
        rates=rates,
        counts=counts,
        trials=np.where(is_random, counts / divisors, np.inf),
        shares=shares,
        is_binary=True,
        **finite_population,
    )
