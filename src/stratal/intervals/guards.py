"""Smoothed moments of strata with few labels: the guards of an interval.

Guard 1 smooths the moments of strata whose labels (nearly) agree, guard 2 shrinks what λ seems to remove,
guard 3 counts graded labels as binary trials, guard 4 adds rates for sizes that follow labels.

Few labels are smoothed in the following places. They differ in what is unknown, so that none can replace
another without a change of coverage.

| function | smoothed | towards | labels' worth |
|---|---|---|---|
| `smoothed_moments` (guard 1) | mean and variance of strata | all strata, these towards 1/2 | √(n_h/2); 2 |
| `graded_variances` | variance of strata on a scale | all strata, these a binary one | 1; 1 |
| `remaining_share` (guard 2) | share of variance that λ leaves | 1 | 5 informative |
| `stratified.rates_with_borrowed_labels` | rates in the test of strata | all strata | (1 − w_h)/n_h |
| `label_based_sizes.shrink_to_half` (guard 4) | rates if sizes follow labels | 1/2 | bias of the sizes |
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

from stratal.arrays import BoolArray, FloatArray, Number, Record
from stratal.designs import Weighting
from stratal.designs.stratum_moments import stratum_means
from stratal.intervals.label_based_sizes import shrink_to_half
from stratal.intervals.stratified import StratumRates, rates_with_borrowed_labels

# Labels, one at either bound, by which guard 1 smooths the mean of all strata.
LABELS_AT_THE_BOUNDS = 2.0

# Labels at either bound that the labels can have missed (Agresti & Coull 1998).
_UNSEEN_LABELS = 2.0

# A factor on the trials this near 1 is rounding, and the exact test of one stratum may be taken.
_NEARLY_ONE = 1e-9

# Informative labels that no λ counts for in an interval.
_LABELS_AGAINST_LAM = 5.0

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
        Labels of each stratum.
    shares : float (…, H)
        W_h.
    factors : float (…, H)
        What s_h² is multiplied by in the variance of the mean.
    draws : float (…,)
        Equally weighted labels that these are worth (Kish).
    by_stratum : bool
        Whether each stratum's labels are a random sample of it.
    label_based : bool, or bool (…,)
        Whether labels of earlier rounds decided the n_h.
    units : float
        N; infinite where strata without labels are left out, or where units are not drawn one by one.
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
    def left(self) -> FloatArray:
        """1 − f_h (…, H), the share of each stratum that is not labelled."""
        return np.asarray(self.factors * self.counts / np.where(self.shares > 0, self.shares, 1.0) ** 2)

    @classmethod
    def of(cls, unit: FloatArray, weighting: Weighting, *, binary: bool = False) -> UnitMoments:
        """Return the moments of labelled units (n,)."""
        weights = weighting.weights / weighting.weights.sum()
        kish = 1.0 / (weights @ weights)
        # The square of 0 or 1 is itself.
        if binary:
            powers = unit[:, None]
        else:
            powers = np.column_stack([unit, unit**2])
        by_stratum = weighting.random_within_strata
        if by_stratum:
            counts = weighting.counts.astype(np.float64)
            means = stratum_means(powers, weighting.stratum, len(counts))
            means[counts == 0] = 0.0
        else:
            counts = np.array([kish * weighting.draws / len(weights)])
            means = weights[None, :] @ powers
        return cls(
            means=means[:, 0],
            squares=means[:, -1],
            counts=counts,
            shares=weighting.shares,
            factors=weighting.variance_factors,
            draws=kish,
            by_stratum=by_stratum,
            label_based=weighting.has_adaptive_allocation,
            units=weighting.population_size if by_stratum and (counts > 0).all() else np.inf,
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
        Σ W_h S̃_h², the part of it within strata.
    variance : float (…,)
        Of the weighted mean.
    possible : float (…,)
        Of the mean of an outcome with two labels more at either bound (Agresti & Coull 1998): what the labels
        can have missed.
    binary : float (…, H)
        Variance of a binary outcome with each stratum's mean.
    information : float (…,)
        4 Σ n_h p_h (1 − p_h): labels, counted less where they (nearly) all agree.
    """

    mean: FloatArray
    spread: FloatArray
    within: FloatArray
    variance: FloatArray
    possible: FloatArray
    binary: FloatArray
    information: FloatArray


def smoothed_moments(labels: UnitMoments) -> SmoothedMoments:
    """Return the smoothed moments: guard 1."""
    counts = labels.counts
    shares = labels.shares
    share = labels.draws / (labels.draws + LABELS_AT_THE_BOUNDS)
    labelled = counts > 0
    own_weight = np.where(labelled, counts / np.where(labelled, counts + np.sqrt(counts / 2.0), 1.0), 0.0)
    own_weight = own_weight * labels.by_stratum

    def over_strata(raw: FloatArray) -> FloatArray:
        return np.asarray((shares * raw).sum(axis=-1)[..., None])

    def mixed(raw: FloatArray, others: FloatArray) -> FloatArray:
        return own_weight * raw + (1.0 - own_weight) * (share * others + (1.0 - share) * 0.5)

    share = share[..., None]
    means = labels.means
    if labels.binary:
        mean = square = mixed(means, over_strata(means))
    else:  # labels of a scale show where their stratum lies; of others they need the spread within strata
        mean = mixed(means, means)
        square = mixed(labels.squares, means**2 + over_strata(labels.squares - means**2))
    within = np.maximum(square - mean**2, 0.0)
    variance = (labels.factors * within).sum(axis=-1)
    if labels.by_stratum and not labels.binary and np.shape(counts)[-1] > 1:
        of_labels, plain = graded_variances(labels)
        largest = np.maximum(plain, (labels.factors * of_labels).sum(axis=-1))
        varies = plain > ROUNDING  # labels that agree show nothing of how others vary
        within = np.where(varies[..., None], of_labels, within)
        variance = np.where(varies, largest, variance)
    centre = (shares * mean).sum(axis=-1)
    at_bounds = _UNSEEN_LABELS / (labels.draws + 2.0 * _UNSEEN_LABELS)
    centre_of_possible = at_bounds + (1.0 - 2.0 * at_bounds) * (shares * labels.means).sum(axis=-1)
    return SmoothedMoments(
        mean=centre,
        spread=(shares * square).sum(axis=-1) - centre**2,
        within=(shares * within).sum(axis=-1),
        possible=centre_of_possible * (1.0 - centre_of_possible) * labels.factors.sum(axis=-1),
        binary=mean * (1.0 - mean),
        variance=variance,
        information=4.0 * (counts * labels.means * (1.0 - labels.means)).sum(axis=-1),
    )


# Weight, in labels, of the pooled variance next to that of a stratum, and of the variance of a binary outcome
# next to the pooled one.
_POOLED_LABELS = 1.0
_LABEL_AT_A_BOUND = 1.0


def graded_variances(labels: UnitMoments) -> tuple[FloatArray, FloatArray]:
    """Return smoothed S_h² (…, H) of an outcome on a scale, and the unsmoothed variance (…,) of its mean.

    Sample variances s_h², divisor n_h − 1, are shrunk to their mean over all strata by one label, and this
    mean to the variance of a binary outcome by one more. Strata of one label use the differences between
    neighbours (von Neumann 1941), because similar strata are usually adjacent.
    """
    counts = labels.counts
    squares = labels.centred_squares
    free = np.maximum(counts - 1.0, 0.0)
    single = (counts == 1.0) & (labels.factors > 0)
    of_neighbours, neighbours_df = _variance_of_neighbours(labels.means, single)
    ones = (counts * labels.means).sum(axis=-1)
    share = (ones + _LABEL_AT_A_BOUND) / (counts.sum(axis=-1) + 2.0 * _LABEL_AT_A_BOUND)
    pooled = squares.sum(axis=-1) + neighbours_df * of_neighbours
    pooled = pooled + _LABEL_AT_A_BOUND * share * (1.0 - share)
    pooled = pooled / (free.sum(axis=-1) + neighbours_df + _LABEL_AT_A_BOUND)
    within = (squares + _POOLED_LABELS * pooled[..., None]) / (free + _POOLED_LABELS)
    plain = np.where(single, of_neighbours[..., None], squares / np.maximum(free, 1.0))
    return within, np.asarray((labels.factors * plain).sum(axis=-1))


def _variance_of_neighbours(means: FloatArray, single: Number) -> tuple[FloatArray, FloatArray]:
    """Return half the mean squared difference (…,) of consecutive single labels (…, H), and its freedom.

    Of m independent normal labels its relative variance is (3m − 4)/(m − 1)² (von Neumann 1941).
    """
    means, single = np.broadcast_arrays(means, single)
    last = np.maximum.accumulate(np.where(single, np.arange(means.shape[-1]), -1), axis=-1)
    previous = np.concatenate([np.full_like(last[..., :1], -1), last[..., :-1]], axis=-1)
    paired = single & (previous >= 0)
    differences = means - np.take_along_axis(means, np.maximum(previous, 0), axis=-1)
    pairs = paired.sum(axis=-1).astype(np.float64)
    halves = np.where(paired, differences**2, 0.0).sum(axis=-1) / 2.0
    df = 2.0 * pairs**2 / np.maximum(3.0 * pairs - 1.0, 1.0)
    return halves / np.maximum(pairs, 1.0), df


def remaining_share(
    plain: Number, residual: Number, information: Number, possible: Number = 0.0
) -> FloatArray:
    """Return the share (…,) of the variance that λ leaves, shrunk to 1: guard 2.

    What is above 1 the proxy adds. It is set against the `possible` variance of the outcome where that is
    larger, since labels that (nearly) agree show none of their own.
    """
    usable = (np.asarray(plain) > ROUNDING) & np.isfinite(residual)
    share = np.where(usable, residual, 1.0) / np.where(usable, plain, 1.0)
    shrunk = (information * share + _LABELS_AGAINST_LAM) / (information + _LABELS_AGAINST_LAM)
    plain_variance = np.where(np.isfinite(plain), plain, 0.0)
    added_variance = np.maximum(np.where(np.isfinite(residual), residual, 0.0) - plain_variance, 0.0)
    added = 1.0 + added_variance / np.maximum(np.maximum(plain_variance, possible), ROUNDING)
    return np.asarray(np.where(usable & (share < 1.0), shrunk, added))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variances:
    """Variances of an estimate on the 0–1 scale, each float (…,).

    Parameters
    ----------
    residual : float
        The design variance of the estimate, inflated for λ; may be NaN or 0.
    plain : float
        The same of the outcome's weighted mean, without λ.
    spread : float
        S², estimated.
    population_part : float
        The part due to drawing the N units themselves.
    uses_proxy : bool
        Whether λ is not 0.
    drawn_from : float
        N, where the population's own draw counts; else infinite.
    weights_known : bool
        Whether only the strata's own units were drawn then, the W_h being known.
    of_design : float
        The variance of an unstratified design over that of independent draws, shrunk to 1.
    """

    residual: Number = np.nan
    plain: Number = np.nan
    spread: Number = np.nan
    population_part: Number = 0.0
    uses_proxy: bool | BoolArray = False
    drawn_from: float = np.inf
    weights_known: bool = False
    of_design: Number = 1.0

    @property
    def changed(self) -> bool:
        """Whether λ or the population's own draw makes it another than that of the design."""
        return self.uses_proxy is not False or math.isfinite(self.drawn_from)

    def share(self, smooth: SmoothedMoments) -> FloatArray:
        """Return the share (…,) of the outcome's variance that the estimate has; 1 for λ = 0."""
        if self.uses_proxy is False:
            return np.ones(())
        possible = self.of_design * smooth.possible
        remaining = remaining_share(self.plain, self.residual, smooth.information, possible)
        return np.where(self.uses_proxy, remaining, 1.0)

    def drawn_part(self, smooth: SmoothedMoments) -> FloatArray:
        """Return what the population's own draw adds (…,), from the smoothed moments."""
        return np.asarray((smooth.within if self.weights_known else smooth.spread) / self.drawn_from)


def effective_labels_of(smooth: SmoothedMoments, variances: Variances) -> FloatArray:
    """Return the number (…,) of independent labels that the labels are worth, guards 1 and 2 applied."""
    share = variances.share(smooth)
    floor = share * variances.of_design * smooth.variance + variances.drawn_part(smooth)
    variance = (
        np.where(variances.uses_proxy, share * variances.plain, variances.residual)
        + variances.population_part
    )
    usable = np.isfinite(variance) & (variance > ROUNDING) & (np.asarray(variances.spread) > ROUNDING)
    above = np.where(floor > 0, smooth.spread / np.where(floor > 0, floor, 1.0), np.inf)
    plain = np.where(usable, variances.spread / np.where(usable, variance, 1.0), np.inf)
    return np.asarray(np.minimum(above, plain))


def binary_trials(effective_labels: Number, smooth: SmoothedMoments) -> FloatArray:
    """Return the binary trials (…,) that so many labels are: guard 3."""
    return np.asarray(effective_labels * smooth.mean * (1.0 - smooth.mean) / smooth.spread)


def stratum_rates(value: Number, labels: UnitMoments, variances: Variances) -> StratumRates:
    """Return what the labels say of each stratum, guards 2 and 3 applied to the trials of all strata alike.

    Guard 4 adds rates that the limits must allow for too.

    λ = 0 and a binary outcome leave n_h / (1 − f_h) trials. What λ leaves of the variance, what a graded
    outcome lacks to a binary one, and what the population's own draw adds change them by one factor.

    Parameters
    ----------
    value : float (…,)
        The estimate on the 0–1 scale.
    labels : UnitMoments
        Of the labelled units.
    variances : Variances
    """
    counts = labels.counts
    shares = labels.shares
    factors = labels.factors
    drawn = math.isfinite(variances.drawn_from)
    open_strata = factors > 0
    basis = factors
    if drawn:
        open_strata = open_strata | (counts > 0)
        basis = shares**2 / np.maximum(counts, 1.0)
    trials = np.where(open_strata, shares**2 / np.where(open_strata, basis, 1.0), np.inf)
    factor = np.ones(np.shape(labels.means)[:-1])
    shrunk = None
    # One stratum has no shares that could follow labels.
    label_based = np.any(labels.label_based) and np.shape(shares)[-1] > 1
    # Otherwise a stratum's labels are its trials, regardless of the smoothing.
    if label_based or variances.changed or not labels.binary:
        smooth = smoothed_moments(labels)
        # What the test has at the estimate: it moves an outcome on a scale by all that its labels vary.
        if labels.binary:
            rates = labels.means
            of_strata = smooth.binary
        else:
            rates = rates_with_borrowed_labels(labels.means, counts, trials, shares)
            of_strata = rates * (1.0 - rates)
        binary = (basis * of_strata).sum(axis=-1)
        target_variance = variances.share(smooth) * smooth.variance + variances.drawn_part(smooth)
        varies = binary > 0
        factor = np.where(varies, binary, 1.0) / np.where(
            varies, np.maximum(target_variance, ROUNDING * binary), 1.0
        )
        if label_based:
            shrunk = shrink_to_half(labels.means, counts, labels.left, factors * of_strata, factor)
            shrunk = np.where(np.asarray(labels.label_based)[..., None], shrunk, labels.means)
    return StratumRates(
        value=np.minimum(np.maximum(value, 0.0), 1.0),
        rates=labels.means,
        counts=counts,
        trials=trials,
        shares=shares,
        factor=np.where(np.abs(factor - 1.0) < _NEARLY_ONE, 1.0, factor),
        is_binary=labels.binary,
        shrunk_rates=shrunk,
        **({} if drawn else range_of_mean(labels, labels.means)),
    )


def range_of_mean(labels: UnitMoments, means: FloatArray) -> dict[str, Any]:
    """Return N, and what the mean is if all unlabelled units are 0, or 1, given the labels' means (…, H)."""
    if not np.isfinite(labels.units):
        return {}
    unlabelled_shares = labels.left
    lowest = (labels.shares * (1.0 - unlabelled_shares) * means).sum(axis=-1)
    return {
        "units": labels.units,
        "lowest_mean": lowest,
        "highest_mean": lowest + (labels.shares * unlabelled_shares).sum(axis=-1),
    }


def one_stratum_rates(value: Number, labels: UnitMoments, trials: Number) -> StratumRates:
    """Return what the labels say of the one stratum that there is, worth so many binary trials (…,).

    For an outcome that is graded or moved by λ: `Evidence.trials` has applied the guards.
    """
    value = np.clip(value, 0.0, 1.0)
    trials = np.asarray(trials)[..., None]
    is_finite = np.isfinite(trials)
    return StratumRates(
        value=value,
        rates=np.asarray(value)[..., None],
        counts=np.where(is_finite, trials, 1.0) * np.where(is_finite, labels.left, labels.counts),
        trials=trials,
        shares=np.ones(1),
        is_binary=labels.binary,
        **range_of_mean(labels, labels.means),
    )


def agreeing_rates(labels: UnitMoments, *, drawn: bool = False) -> StratumRates:
    """Return what the labels would say if all of them agreed: of how many units none was like them.

    `drawn`: whether the population's own draw counts.
    """
    counts = labels.counts
    shares = labels.shares
    unlabelled_shares = labels.left
    open_strata = (counts > 0) & ((unlabelled_shares > 0) | drawn)
    below = np.where(open_strata, 1.0 if drawn else unlabelled_shares, 1.0)
    rates = np.ones(np.shape(counts))
    return StratumRates(
        value=np.ones(np.shape(counts)[:-1]),
        rates=rates,
        counts=counts,
        trials=np.where(open_strata, counts / below, np.inf),
        shares=shares,
        is_binary=True,
        **({} if drawn else range_of_mean(labels, rates)),
    )
