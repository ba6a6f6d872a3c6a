"""The evidence of an estimate for its interval, and the guards that few labels need.

Guard 1 smooths the moments of strata whose labels (nearly) agree, guard 2 shrinks what λ seems to remove,
guard 3 counts graded labels as binary trials, guard 4 adds rates for sizes that follow labels.

Few labels are smoothed in the following places. They differ in what is unknown, so that none can replace
another without a change of coverage.

| function | smoothed | towards | labels' worth |
|---|---|---|---|
| `smoothed_moments` (guard 1) | mean and variance of strata | all strata, these towards 1/2 | √(n_h/2); 2 |
| `graded_variances` | variance of strata on a scale | all strata, these a binary one | 1; 1 |
| `remaining_share` (guard 2) | share of variance that λ leaves | 1 | 5 informative |
| `stratified.with_borrowed` | rates under the test of strata | all strata | (1 − w_h)/n_h |
| `stratified.shrink_to_half` (guard 4) | rates if sizes follow labels | 1/2 | by the bias of the sizes |
| `estimation.lam` | λ | λ of a calibrated proxy, then 0 | 20; 10 informative |
| `proportion_functions.smoothed` | shares of pairs of classes | those of all strata | 1 |
| `confusion.mixed_variance` | influences of a ranking | the same units with other labels | 1 |
| `effective_sample_size` | effective sample size | all strata | 2 |
| `strata.smoothed_variances` | standard deviations for an allocation | a line in the proxy | by the labels |
| `planning.interim_analysis` | the same, of residuals | their pooled variance | fixed |
| `proxy.calibration` | steps of a calibration curve | the overall mean | 1 |

The first four smooth one outcome. `lam`, functions of shares and rankings smooth a joint distribution of
several variables. The last three decide sizes or a proxy and never enter an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from scipy.special import gammaln, ndtri

from stratal.arrays import BoolArray, FloatArray, Number, Record
from stratal.designs import Weighting
from stratal.designs.stratum_moments import stratum_means
from stratal.designs.weighting import SAME
from stratal.errors import InputError, LabelError, not_bounds, refuse_unknown
from stratal.intervals.interval import Ends, Interval, unseen_share
from stratal.intervals.looks import Look
from stratal.intervals.proportion import skewness_of
from stratal.intervals.simultaneous import SimultaneousLevel
from stratal.intervals.stratified import (
    StratumRates,
    shrink_to_half,
    stratified_clopper_pearson,
    with_borrowed,
)
from stratal.question.question import SCALES

# Labels, one at either bound, by which guard 1 smooths the mean of all strata.
LABELS_AT_THE_BOUNDS = 2.0

# Labels at either bound that the labels can have missed (Agresti & Coull 1998).
_LABELS_UNSEEN = 2.0

# Clusters, each worth one unit, that are set against what few drawn ones show of resemblance.
_DRAWS_AGAINST_RESEMBLANCE = 2.0

# A factor on the trials this near 1 is rounding, and the exact test of one stratum may be taken.
_AS_IT_WAS = 1e-9

# With more units than this nothing tells drawing without replacement from independent draws.
_MOST_UNITS = 1e9

# Informative labels that no λ counts for in an interval.
_LABELS_AGAINST_LAM = 5.0

# A number of units this near a whole number is that whole number, up to rounding.
_ROUNDED_UNITS = 1e-6

# A variance on the 0–1 scale below this is rounding error: the labels agree.
ROUNDING = 1e-24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitMoments(Record):
    """What the labels of an outcome on the 0–1 scale add up to, per stratum; replicate axes may lead.

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
    label_driven : bool, or bool (…,)
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
    label_driven: Any = False
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
            label_driven=weighting.sizes_follow_labels,
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
    at_bounds = _LABELS_UNSEEN / (labels.draws + 2.0 * _LABELS_UNSEEN)
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
    of_neighbours, neighbours_freedom = _variance_of_neighbours(labels.means, single)
    ones = (counts * labels.means).sum(axis=-1)
    share = (ones + _LABEL_AT_A_BOUND) / (counts.sum(axis=-1) + 2.0 * _LABEL_AT_A_BOUND)
    pooled = squares.sum(axis=-1) + neighbours_freedom * of_neighbours
    pooled = pooled + _LABEL_AT_A_BOUND * share * (1.0 - share)
    pooled = pooled / (free.sum(axis=-1) + neighbours_freedom + _LABEL_AT_A_BOUND)
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
    freedom = 2.0 * pairs**2 / np.maximum(3.0 * pairs - 1.0, 1.0)
    return halves / np.maximum(pairs, 1.0), freedom


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
    tuned : bool
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
    tuned: Any = False
    drawn_from: float = np.inf
    weights_known: bool = False
    of_design: Number = 1.0

    @property
    def changed(self) -> bool:
        """Whether λ or the population's own draw makes it another than that of the design."""
        return self.tuned is not False or math.isfinite(self.drawn_from)

    def share(self, smooth: SmoothedMoments) -> FloatArray:
        """Return the share (…,) of the outcome's variance that the estimate has; 1 for λ = 0."""
        if self.tuned is False:
            return np.ones(())
        possible = self.of_design * smooth.possible
        remaining = remaining_share(self.plain, self.residual, smooth.information, possible)
        return np.where(self.tuned, remaining, 1.0)

    def drawn_part(self, smooth: SmoothedMoments) -> FloatArray:
        """Return what the population's own draw adds (…,), from the smoothed moments."""
        return np.asarray((smooth.within if self.weights_known else smooth.spread) / self.drawn_from)


def effective_labels_of(smooth: SmoothedMoments, variances: Variances) -> FloatArray:
    """Return the number (…,) of independent labels that the labels are worth, guards 1 and 2 applied."""
    share = variances.share(smooth)
    floor = share * variances.of_design * smooth.variance + variances.drawn_part(smooth)
    variance = (
        np.where(variances.tuned, share * variances.plain, variances.residual) + variances.population_part
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
    label_driven = np.any(labels.label_driven) and np.shape(shares)[-1] > 1
    # Otherwise a stratum's labels are its trials, regardless of the smoothing.
    if label_driven or variances.changed or not labels.binary:
        smooth = smoothed_moments(labels)
        # What the test has at the estimate: it moves an outcome on a scale by all that its labels vary.
        if labels.binary:
            rates = labels.means
            of_strata = smooth.binary
        else:
            rates = with_borrowed(labels.means, counts, trials, shares)
            of_strata = rates * (1.0 - rates)
        binary = (basis * of_strata).sum(axis=-1)
        target_variance = variances.share(smooth) * smooth.variance + variances.drawn_part(smooth)
        varies = binary > 0
        factor = np.where(varies, binary, 1.0) / np.where(
            varies, np.maximum(target_variance, ROUNDING * binary), 1.0
        )
        if label_driven:
            shrunk = shrink_to_half(labels.means, counts, labels.left, factors * of_strata, factor)
            shrunk = np.where(np.asarray(labels.label_driven)[..., None], shrunk, labels.means)
    return StratumRates(
        value=np.minimum(np.maximum(value, 0.0), 1.0),
        rates=labels.means,
        counts=counts,
        trials=trials,
        shares=shares,
        factor=np.where(np.abs(factor - 1.0) < _AS_IT_WAS, 1.0, factor),
        is_binary=labels.binary,
        shrunk=shrunk,
        **({} if drawn else _possible(labels, labels.means)),
    )


def _possible(labels: UnitMoments, means: FloatArray) -> dict[str, Any]:
    """Return N, and what the mean is if all unlabelled units are 0, or 1, given the labels' means (…, H)."""
    if not np.isfinite(labels.units):
        return {}
    unlabelled_shares = labels.left
    lowest = (labels.shares * (1.0 - unlabelled_shares) * means).sum(axis=-1)
    return {
        "units": labels.units,
        "least": lowest,
        "most": lowest + (labels.shares * unlabelled_shares).sum(axis=-1),
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
        **_possible(labels, labels.means),
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
        **({} if drawn else _possible(labels, rates)),
    )


OutcomeKind = Literal["binary", "bounded", "unbounded"]
TARGETS = ("population", "superpopulation")


class IntervalEvidence(Protocol):
    """Everything that the interval methods read: of one estimate, or of R replicates, then (R,)."""

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
        """What `auto` takes instead of a method for means."""

    @property
    def linearised(self) -> bool:
        """Whether the labels are those of a linearised variable, and no outcomes."""

    @property
    def tuned(self) -> bool:
        """Whether λ is not 0."""

    @property
    def superpopulation(self) -> bool:
        """Whether the population's own draw counts."""

    @property
    def n(self) -> int:
        """Labels."""

    @property
    def census(self) -> bool:
        """Whether every unit is labelled, so that nothing is left to be estimated of the population."""

    @property
    def varies(self) -> bool:
        """Whether the labels do not all agree; replicates among which they may are taken as they are."""

    @property
    def textbook_variance(self) -> Number:
        """The variance by the formula."""

    @property
    def moments(self) -> UnitMoments:
        """Moments of the labels on the 0–1 scale."""

    @property
    def trials(self) -> Number:
        """Independent binary trials that the labels are worth."""

    @property
    def skewness(self) -> Number:
        """γ of the estimate, from what its labels (or residuals) show."""

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata, and each one's labels are a random sample of it."""

    @property
    def in_one_stratum(self) -> bool:
        """Whether the labels are one random sample of a population whose units are all that counts."""

    @property
    def few_clusters(self) -> tuple[float, float]:
        """Factor on the standard error, and degrees of freedom, of few clusters."""

    @property
    def weights_freedom(self) -> float:
        """Degrees of freedom that unequal weights leave to a variance, at most n − 1."""

    @property
    def size_shift(self) -> float:
        """How far the mean moves if the drawn clusters had the population's mean size; 0 for single units."""

    @property
    def size_reach(self) -> tuple[float, float, float]:
        """How far the mean moves if clusters are as large as all are, its error's factor and freedom."""

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds of an outcome that has them."""

    @property
    def rates(self) -> StratumRates:
        """Rates of the strata, on the 0–1 scale."""

    @property
    def expected_spread(self) -> Number:
        """The variance over units of what strata and λ lead one to expect, on the 0–1 scale."""

    def variances(self, labels: UnitMoments) -> Variances:
        """Return the variances that the guards compare, on the 0–1 scale; `labels` are the `moments`."""

    def unseen(self, error: float) -> Number:
        """Return the share of units that, but for this error, no label was like."""

    def jump_reach(self, jump: Number, error: float) -> Number:
        """Return how far a limit must be from the value where units unlike all labels move it by `jump`."""

    def certain_range(self) -> Ends:
        """Return the smallest and the largest mean that the labels leave possible, on the 0–1 scale."""


class DerivedEvidence:
    """What follows from the rest of the evidence in the same way for one estimate and for replicates."""

    __slots__ = ()
    interval: Interval | None = None
    linearised = False

    @property
    def varies(self) -> bool:
        """Whether the labels do not all agree; replicates among which they may are taken as they are."""
        return True

    @property
    def size_shift(self) -> float:
        """How far the mean moves if the drawn clusters had the population's mean size; 0 for single units."""
        return 0.0

    @property
    def size_reach(self) -> tuple[float, float, float]:
        """How far the mean moves if clusters are as large as all are, its error's factor and freedom."""
        return 0.0, 1.0, 1.0

    @property
    def few_clusters(self) -> tuple[float, float]:
        """Factor on the standard error, and degrees of freedom, of few clusters."""
        return 1.0, np.inf

    @property
    def weights_freedom(self: IntervalEvidence) -> float:
        """Degrees of freedom that unequal weights leave to a variance, at most n − 1."""
        return float(max(self.n - 1, 1))

    @property
    def limits(self: IntervalEvidence) -> tuple[float, float]:
        """The bounds of an outcome that has them."""
        if self.bounds is None:
            raise InputError("this needs an outcome with bounds", action="Give bounds=(lowest, highest).")
        low, high = self.bounds
        return low, high

    @property
    def rates(self: IntervalEvidence) -> StratumRates:
        """What the labels say of each stratum, on the 0–1 scale."""
        low, high = self.limits
        labels = self.moments
        value = (self.value - low) / (high - low)
        if self.in_one_stratum and (self.tuned or not labels.binary):
            return one_stratum_rates(value, labels, self.trials)
        # Without λ the trials follow from the design, and no variance is needed.
        if self.tuned or self.superpopulation:
            variances = self.variances(labels)
        else:
            variances = Variances()
        return stratum_rates(value, labels, variances)

    @property
    def expected_spread(self: IntervalEvidence) -> Number:
        """The variance (…,) over units of what strata and λ lead one to expect, on the 0–1 scale."""
        labels = self.moments
        smooth = smoothed_moments(labels)
        expected_within = smooth.within
        if self.tuned:
            expected_within = self.variances(labels).share(smooth) * smooth.within
        return np.maximum(smooth.spread - expected_within, 0.0)

    def unseen(self: IntervalEvidence, error: float) -> Number:
        """Return the share of units that, but for this error, no label was like: if all labels agreed."""
        if error <= 0:
            return 0.0
        agreeing = agreeing_rates(self.moments, drawn=self.superpopulation)
        return 1.0 - stratified_clopper_pearson(agreeing, error, 0.0)[0]

    def jump_reach(self: IntervalEvidence, jump: Number, error: float) -> Number:
        """Return how far a limit (…,) must be from the value where units unlike all labels move it by `jump`.

        With m such units, which are all unlabelled with probability p(m) = C(N−m, n)/C(N, n), the limit must
        also hold for the error of the other units, at the quantile of error/p(m). m is the largest number
        that is not refuted. Where most units are labelled, fewer may reach farther: the largest distance over
        m = 0, 1, … is returned, which never decreases with the confidence level.
        """
        share = self.unseen(error)
        labels = self.moments
        open_units = labels.units * (labels.shares * labels.left).sum(axis=-1)
        if error <= 0 or self.superpopulation or not labels.units < _MOST_UNITS:
            return share * jump
        if np.all(open_units >= labels.units):
            return share * jump
        unseen_units = np.asarray(np.minimum(share * labels.units, open_units))[..., None]
        most = math.ceil(float(np.max(unseen_units)) - _ROUNDED_UNITS)
        if np.all(2.0 * open_units < labels.units):
            numbers = np.arange(most + 1.0)
        else:
            numbers = np.array([float(most)])
        unlike = np.minimum(numbers, unseen_units)
        unlike_units = np.minimum(numbers, np.ceil(unseen_units - _ROUNDED_UNITS))
        open_units = np.asarray(open_units)[..., None]
        unlabelled_chance = np.exp(
            gammaln(open_units + 1.0)
            - gammaln(open_units - unlike_units + 1.0)
            - gammaln(labels.units + 1.0)
            + gammaln(labels.units - unlike_units + 1.0)
        )
        quantiles = np.maximum(-ndtri(np.minimum(error / np.maximum(unlabelled_chance, error), 1.0)), 0.0)
        standard_error = np.sqrt(self.textbook_variance)
        reaches = unlike / labels.units * np.asarray(jump)[..., None]
        reaches = reaches + quantiles * np.asarray(standard_error)[..., None]
        return np.maximum(share * jump, reaches.max(axis=-1))

    def certain_range(self: IntervalEvidence) -> Ends:
        """Return the mean (…,) if every unlabelled unit has the lowest outcome, and if it has the highest.

        On the 0–1 scale; 0 and 1 where the target, or the design, does not make these certain.
        """
        labels = self.moments
        random_in_strata = self.in_strata or self.in_one_stratum
        if self.superpopulation or not random_in_strata or not np.isfinite(labels.units):
            return 0.0, 1.0
        range_of_mean = _possible(labels, np.where(labels.counts > 0, labels.means, 0.0))
        return range_of_mean["least"], range_of_mean["most"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence(DerivedEvidence, Record):
    """What the interval methods see of an estimate.

    Parameters
    ----------
    value : float
        The estimate, within the bounds.
    variance : float
        Of the target; may be NaN (one label) or 0 (all residuals agree).
    population_part : float
        The part of the variance that is due to the population's own draw.
    degrees_of_freedom : float
    outcome : {"binary", "bounded", "unbounded"}
    bounds : (float, float), optional
    z, residuals : float (n,)
        The outcome, and the variable whose weighted mean plus `offset` is the estimate.
    offset : float
    weighting : Weighting
    tuned : bool
        Whether the residuals differ from z: λ is not 0.
    superpopulation : bool
        Whether the population's own draw counts.
    stratum_weights_known : bool
        Whether the W_h are known then, rather than drawn with the N units.
    given_trials : float, optional
        Effective trials, where the estimator counts them better than `Evidence.trials` (a ratio, say).
    own : Limits, optional
        Limits that `auto` gives instead of the mean's.
    linearised : bool
        The labels are value + u of a linearised variable u, and no outcomes: only their variance counts.
    simultaneous : SimultaneousLevel, optional
        The estimates with which its interval is to hold.
    member : bool (n,), optional
        The labelled units of the group that it is of; all unless given.
    look : Look, optional
        The planned look at which it is made; its interval is to hold with those of all looks.
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
    tuned: bool
    superpopulation: bool = False
    stratum_weights_known: bool = False
    given_trials: float | None = None
    interval: Interval | None = None
    linearised: bool = False
    member: BoolArray | None = None
    simultaneous: SimultaneousLevel | None = None
    look: Look | None = None

    @property
    def n(self) -> int:
        """Labels."""
        return len(self.z)

    @property
    def census(self) -> bool:
        """Whether every unit is labelled, so that nothing is left to be estimated of the population."""
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
        """The variance by the formula: 0 where the labels agree, the guarded one of a single label."""
        if np.isfinite(self.variance):
            return max(self.variance, 0.0)
        if self.bounds is None:
            raise InputError(
                "the variance cannot be estimated from one label of an unbounded outcome",
                action="Label at least 2 units, or give the outcome's bounds.",
            )
        return self.guarded_variance

    @property
    def reported_variance(self) -> float:
        """The same, and the guarded one where labels agree: none is 0 while units are unlabelled.

        NaN where an outcome without bounds shows none.
        """
        if self.varies or self.census or not np.isfinite(self.variance):
            return self.textbook_variance
        if self.bounds is None:
            return float("nan")
        return self.guarded_variance

    @property
    def guarded_variance(self) -> float:
        """The variance, not less than what the effective trials allow; bounded outcomes only."""
        low, high = self.limits
        smooth = float(smoothed_moments(self.moments).mean)
        floor = smooth * (1.0 - smooth) / self.trials * (high - low) ** 2
        if np.isfinite(self.variance):
            return max(self.variance, floor)
        return floor

    @property
    def few_clusters(self) -> tuple[float, float]:
        """What few clusters multiply the standard error by, and the degrees of freedom that they leave."""
        clusters = self.weighting.group_clusters(self.member)
        if clusters is None or clusters.count < 2:
            return 1.0, np.inf
        factor = self.weighting.few_clusters_factor(self.residuals, self.member)
        return math.sqrt(factor), max(clusters.degrees_of_freedom, 1.0)

    @property
    def design_freedom(self) -> float:
        """R's `degf`: clusters with units that the estimate is of, minus the strata that hold them."""
        return self.weighting.design_freedom(self.member)

    @property
    def design_error(self) -> float:
        """The linearised standard error without any correction for few clusters, as R's `survey` has it."""
        variance = float(self.weighting.covariance(self.residuals[:, None])[0, 0])
        return math.sqrt(max(variance + self.population_part, 0.0))

    @property
    def unit(self) -> FloatArray:
        """The outcome on the 0–1 scale (n,)."""
        low, high = self.limits
        return np.asarray((self.z - low) / (high - low))

    @property
    def moments(self) -> UnitMoments:
        """What the labels add up to, on the 0–1 scale."""
        return UnitMoments.of(self.unit, self.weighting, binary=self.outcome == "binary")

    @property
    def trials(self) -> float:
        """Independent binary trials that the labels are worth; infinite for a census."""
        if self.census:
            return float("inf")
        if self.given_trials is not None:
            return self.given_trials
        labels = self.moments
        smooth = smoothed_moments(labels)
        effective_labels = effective_labels_of(smooth, self.variances(labels))
        weighting = self.weighting
        if weighting.groups is not None:
            # A few clusters say little of how much their units resemble each other; at worst each is worth
            # one unit, and clusters of unequal size as many as fewer equal ones (Kish's count).
            parts = np.bincount(weighting.groups, weighting.weights) / weighting.total
            free = max(weighting.draws - 1.0, 0.0)
            against = _DRAWS_AGAINST_RESEMBLANCE
            effective_labels = (free + against) / (free / effective_labels + against * np.sum(parts**2))
        return float(binary_trials(effective_labels, smooth))

    @property
    def weights_freedom(self) -> float:
        """Degrees of freedom that unequal weights leave to a variance, at most n − 1.

        Satterthwaite's of Σ w² e², twice: he takes e² to vary as a normal outcome's, with kurtosis 3, and an
        outcome inside its bounds has less than 2 unless it is rare, which the number of trials sees to.
        """
        weighting = self.weighting
        largest = float(max(self.n - 1, 1))
        if weighting.groups is not None or weighting.random_within_strata:
            return largest
        squares = weighting.weights**2
        return float(np.clip(2.0 * squares.sum() ** 2 / np.sum(squares**2), 1.0, largest))

    @property
    def size_shift(self) -> float:
        """How far the mean moves if the drawn clusters had the population's mean size; 0 for single units.

        By the regression of the clusters' residuals on their sizes, whose mean is known. Where the outcome
        goes with the size of its cluster, large clusters are many units that most samples lack.
        """
        weighting = self.weighting
        if weighting.groups is None or weighting.draws < 3:  # any two clusters lie on a line
            return 0.0
        off = self.residuals - weighting.weights @ self.residuals / weighting.total
        joint = weighting.covariance(np.column_stack([off, np.ones(self.n)]))
        # Below this the sum of the weights, which estimates 1, is the same in every draw but for rounding.
        varies = joint[1, 1] > SAME
        if varies:
            return float(joint[0, 1] / joint[1, 1] * (1.0 - weighting.total))
        return 0.0

    @property
    def size_reach(self) -> tuple[float, float, float]:
        """How far the mean moves if units are in clusters as large as all units are, and its error's factor.

        A sample of clusters mostly lacks the largest, and with them many units at once. Their known squared
        sizes tell how many; the regression of units on the size of their cluster how unlike they are, with a
        standard error that is larger for reaching beyond what was drawn, and has the third number as degrees
        of freedom. (0, 1, 1) where sizes tell nothing.
        """
        mean_variance_freedom = self.weighting.at_all_sizes(self.residuals if self.tuned else self.z)
        if mean_variance_freedom is None or not self.varies:
            return 0.0, 1.0, 1.0
        mean = mean_variance_freedom[0] + (self.offset if self.tuned else 0.0)
        variance = mean_variance_freedom[1] + self.population_part
        return mean - self.value, float(np.sqrt(max(variance / self.variance, 1.0))), mean_variance_freedom[2]

    @property
    def in_strata(self) -> bool:
        """Whether there are several strata, and each one's labels are a random sample of it."""
        several = bool((self.weighting.counts > 0).sum() > 1)
        return self.given_trials is None and self.weighting.random_within_strata and several

    @property
    def in_one_stratum(self) -> bool:
        """Whether the labels are one random sample of a population whose units are all that counts."""
        is_single_stratum = self.weighting.random_within_strata and len(self.weighting.counts) == 1
        return self.given_trials is None and is_single_stratum and not self.superpopulation

    def unseen(self, error: float) -> Number:
        """Return the share of units that, but for this error, no label was like; see `intervals.unseen`."""
        if self.weighting.random_within_strata:
            return super(Evidence, self).unseen(error)
        if self.superpopulation:
            share = 0.0
        else:
            share = min(self.n / self.weighting.population_size, 1.0)
        return unseen_share(self.weighting.effective_draws, share, error)

    def variances(self, labels: UnitMoments) -> Variances:
        """Return the variances that the guards compare, on the 0–1 scale; `labels` are the `moments`."""
        (low, high), unit, weighting = self.limits, self.unit, self.weighting
        total = weighting.total
        size = weighting.population_size
        scale = (high - low) ** 2
        spread = float(weighting.population_covariance(unit[:, None])[0, 0]) * size
        centred = (
            unit - weighting.weights @ unit / total
        ) / total  # as it is, where the weights add up to one
        plain = float(weighting.covariance(weighting.stretched(centred[:, None]))[0, 0])
        of_design: Number = 1.0
        if not labels.by_stratum:
            information = smoothed_moments(labels).information
            of_design = remaining_share(spread / labels.draws, plain, information)
        return Variances(
            residual=(self.variance - self.population_part) / scale,
            plain=plain,
            spread=spread,
            population_part=self.population_part / scale,
            tuned=self.tuned,
            drawn_from=size if self.superpopulation else np.inf,
            weights_known=self.stratum_weights_known,
            of_design=of_design,
        )

    @property
    def skewness(self) -> float:
        """γ of the estimate, from what its labels (or residuals) show."""
        return skewness_of(self.residuals, self.weighting)

    @property
    def population_spread(self) -> float:
        """S², the estimated variance of z over the population; smoothed where all labels agree."""
        weighting = self.weighting
        spread = float(weighting.population_covariance(self.z[:, None])[0, 0]) * weighting.population_size
        if not (np.isfinite(spread) and spread > 0) and self.bounds is not None:
            low, high = self.bounds
            return float(smoothed_moments(self.moments).spread) * (high - low) ** 2
        return spread


def infer_outcome(
    z: FloatArray, outcome: OutcomeKind | None, bounds: tuple[float, float] | None
) -> tuple[OutcomeKind, tuple[float, float] | None]:
    """Return the outcome's kind and bounds: as given, else binary if all labels are 0 or 1, else unbounded.

    Raises
    ------
    LabelError
        For a label outside the bounds.
    InputError
        For an unknown kind, bounds in the wrong order, or a bounded outcome without bounds.
    """
    if outcome is not None:
        refuse_unknown("kind of outcome", outcome, SCALES)
    if bounds is not None:
        bounds = (float(bounds[0]), float(bounds[1]))
        if not -math.inf < bounds[0] < bounds[1] < math.inf:
            raise not_bounds(bounds)
    binary_labels = bool(np.all((z == 0) | (z == 1)))
    if outcome is None:
        outcome = "unbounded" if bounds is None else "bounded"
        if binary_labels and bounds in (None, (0.0, 1.0)):
            outcome = "binary"
    if outcome == "unbounded":
        return outcome, None
    if outcome == "binary":
        bounds = (0.0, 1.0)
    if bounds is None:
        raise InputError("a bounded outcome needs its bounds", action="Give bounds=(lowest, highest).")
    if outcome == "binary" and binary_labels:
        return outcome, bounds
    if outcome == "binary":
        outside = (z != 0) & (z != 1)
    else:
        outside = (z < bounds[0]) | (z > bounds[1])
    if np.any(outside):
        raise LabelError(
            f"{outside.sum()} labels lie outside the {outcome} outcome's values (first: {z[outside][0]:g})",
            allowed="0 or 1" if outcome == "binary" else f"{bounds[0]:g} to {bounds[1]:g}",
        )
    return outcome, bounds


def design_effect(
    variance: float, spread: float, n: int, population_size: float, target: str = "population"
) -> tuple[float | None, float | None]:
    """Return the design effect and the effective sample size.

    The effective size m is that of a simple random sample of this population with the same variance:
    (1 − m/N) S²/m = variance, so m = S² / (variance + S²/N). For a superpopulation the S²/N is in the
    variance already.
    """
    if not (spread > 0 and np.isfinite(variance)):
        return None, None
    if target == "population":
        population_part = spread / population_size
    else:
        population_part = 0.0
    if variance + population_part > 0:
        effective = min(spread / (variance + population_part), population_size)
    else:
        effective = population_size
    random = spread / n - population_part
    return (float(variance / random) if random > 0 else 1.0), float(effective)


def require_target(target: str) -> None:
    """Raise an `InputError` for an unknown target."""
    refuse_unknown("target", target, TARGETS)
