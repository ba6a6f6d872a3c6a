"""Effective trials: how many independent labels a weighted mean of a bounded outcome is worth, honestly.

Few labels make their own variance too small: a stratum whose labels all agree seems to have none, and a λ
fitted on ten labels explains them too well. Four guards, each measured (docs/methods/intervals.md):

1. where one number of trials stands for the whole sample, stratum moments are shrunk to the overall ones with
   the weight of √(n_h / 2) labels, and the overall ones start from one label at either bound; the variance is
   the larger of this one and the plain one, each set against its own S². Where every stratum has its own
   trials (`stratum_rates`) the interval itself sees to this (`stratal.intervals.stratified`);
2. the share of the variance that a fitted or given λ leaves is shrunk to 1 with the weight of five
   informative labels; what a λ adds to the variance is set against what the outcome may have;
3. an outcome inside its bounds is worth more trials than a binary one: p(1 − p) over its variance as many;
4. where labels of earlier rounds decided the n_h, a stratum whose first labels happened to agree got fewer
   later ones to correct it: the limits allow for a rate that is drawn back by what that amounts to, and
   for the rate as it is (`intervals.looked`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.designs import Weighting
from stratal.designs.stratum_moments import LABELS_AGAINST_LAM, stratum_means
from stratal.intervals.stratified import StratumRates, drawn_back

LABELS_AT_THE_BOUNDS = 2.0
_LABELS_UNSEEN = 2.0
_DRAWS_AGAINST_RESEMBLANCE = 2.0
_AS_IT_WAS = 1e-9
ROUNDING = 1e-24
"""A variance on the 0–1 scale below this is rounding error: the labels agree."""


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
    own : bool
        Whether a stratum's labels say more of it than those of others do: not where they were drawn together.
    looked : bool
        Whether labels of earlier rounds decided the n_h.
    units : float
        N; infinite where strata without labels are left out, or where units are not drawn one by one.
    binary : bool
        Whether the outcome of every unit is 0 or 1.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([8]))
    >>> UnitMoments.of(np.array([1.0, 1, 1, 0]), weighting).means
    array([0.75])
    """

    means: FloatArray
    squares: FloatArray
    counts: FloatArray
    shares: FloatArray
    factors: FloatArray
    draws: FloatArray
    own: bool = True
    looked: bool = False
    units: float = np.inf
    binary: bool = False

    @property
    def left(self) -> FloatArray:
        """1 − f_h (…, H), the share of each stratum that is not labelled."""
        return np.asarray(self.factors * self.counts / np.where(self.shares > 0, self.shares, 1.0) ** 2)

    @classmethod
    def of(cls, unit: FloatArray, weighting: Weighting, *, binary: bool = False) -> UnitMoments:
        """Return the moments of labelled units (n,)."""
        weights = weighting.weights / weighting.weights.sum()
        kish = 1.0 / np.sum(weights**2)
        powers = np.column_stack([unit, unit**2])
        own = weighting.random_within_strata
        if own:
            counts = weighting.counts.astype(np.float64)
            means = np.nan_to_num(stratum_means(powers, weighting.stratum, len(counts)))
        else:
            counts = np.array([kish * weighting.draws / len(weights)])
            means = weights[None, :] @ powers
        return cls(
            means=means[:, 0],
            squares=means[:, 1],
            counts=counts,
            shares=weighting.shares,
            factors=weighting.variance_factors,
            draws=kish,
            own=own,
            looked=weighting.sizes_follow_labels,
            units=weighting.population_size if own and np.all(counts > 0) else np.inf,
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

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(8, dtype=int), sizes=np.array([10**6]))
    >>> moments = smoothed_moments(UnitMoments.of(np.ones(8), weighting))
    >>> float(moments.mean), float((moments.spread / moments.variance).round(3))
    (0.98, 8.0)
    """

    mean: FloatArray
    spread: FloatArray
    within: FloatArray
    variance: FloatArray
    possible: FloatArray
    binary: FloatArray
    information: FloatArray


def smoothed_moments(labels: UnitMoments) -> SmoothedMoments:
    """Return the smoothed moments; see guard 1 above."""
    counts, shares = labels.counts, labels.shares
    share = labels.draws / (labels.draws + LABELS_AT_THE_BOUNDS)
    labelled = counts > 0
    kept = np.where(labelled, counts / np.where(labelled, counts + np.sqrt(counts / 2.0), 1.0), 0.0)
    kept = kept * labels.own
    mean, square = (
        kept * raw + (1.0 - kept) * (share * np.sum(shares * raw, axis=-1) + (1.0 - share) * 0.5)[..., None]
        for raw in (labels.means, labels.squares)
    )
    within = np.maximum(square - mean**2, 0.0)
    centre = np.sum(shares * mean, axis=-1)
    at_bounds = _LABELS_UNSEEN / (labels.draws + 2.0 * _LABELS_UNSEEN)
    centre_of_possible = at_bounds + (1.0 - 2.0 * at_bounds) * np.sum(shares * labels.means, axis=-1)
    return SmoothedMoments(
        mean=centre,
        spread=np.sum(shares * square, axis=-1) - centre**2,
        within=np.sum(shares * within, axis=-1),
        possible=centre_of_possible * (1.0 - centre_of_possible) * np.sum(labels.factors, axis=-1),
        binary=mean * (1.0 - mean),
        variance=np.sum(labels.factors * within, axis=-1),
        information=4.0 * np.sum(counts * labels.means * (1.0 - labels.means), axis=-1),
    )


def remaining_share(plain: Any, residual: Any, information: Any, possible: Any = 0.0) -> FloatArray:
    """Return the share (…,) of the variance that λ leaves, shrunk to 1: guard 2.

    What is above 1 the proxy adds. It is set against the `possible` variance of the outcome where that is
    larger, since labels that (nearly) agree show none of their own.

    Examples
    --------
    >>> float(remaining_share(0.02, 0.01, 15.0))
    0.625
    >>> float(remaining_share(0.001, 0.03, 15.0, possible=0.02))
    2.45
    """
    usable = (np.asarray(plain) > ROUNDING) & np.isfinite(residual)
    share = np.where(usable, residual, 1.0) / np.where(usable, plain, 1.0)
    shrunk = (information * share + LABELS_AGAINST_LAM) / (information + LABELS_AGAINST_LAM)
    own = np.where(np.isfinite(plain), plain, 0.0)
    more = np.maximum(np.where(np.isfinite(residual), residual, 0.0) - own, 0.0)
    added = 1.0 + more / np.maximum(np.maximum(own, possible), ROUNDING)
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

    Examples
    --------
    >>> Variances(residual=0.01, plain=0.02, spread=0.25).drawn_from
    inf
    """

    residual: Any
    plain: Any
    spread: Any
    population_part: Any = 0.0
    tuned: Any = False
    drawn_from: float = np.inf
    weights_known: bool = False
    of_design: Any = 1.0

    @classmethod
    def of_labels(cls) -> Variances:
        """Return what λ = 0 and a given population leave to be known: nothing."""
        return cls(residual=np.nan, plain=np.nan, spread=np.nan)

    def share(self, smooth: SmoothedMoments) -> FloatArray:
        """Return the share (…,) of the outcome's variance that the estimate has; 1 for λ = 0."""
        possible = self.of_design * smooth.possible
        left = remaining_share(self.plain, self.residual, smooth.information, possible)
        return np.where(self.tuned, left, 1.0)

    def drawn_part(self, smooth: SmoothedMoments) -> FloatArray:
        """Return what the population's own draw adds (…,), from the smoothed moments."""
        return np.asarray((smooth.within if self.weights_known else smooth.spread) / self.drawn_from)


def worth(smooth: SmoothedMoments, found: Variances) -> FloatArray:
    """Return the number (…,) of independent labels that the labels are worth, guards 1 and 2 applied.

    Examples
    --------
    >>> smooth = SmoothedMoments(
    ...     mean=0.5, spread=0.25, within=0.25, variance=0.01, possible=0.01, binary=np.array([0.25]),
    ...     information=25.0)
    >>> float(worth(smooth, Variances(residual=0.01, plain=0.01, spread=0.25)))
    25.0
    """
    share = found.share(smooth)
    floor = share * found.of_design * smooth.variance + found.drawn_part(smooth)
    own = np.where(found.tuned, share * found.plain, found.residual) + found.population_part
    usable = np.isfinite(own) & (own > ROUNDING) & (np.asarray(found.spread) > ROUNDING)
    above = np.where(floor > 0, smooth.spread / np.where(floor > 0, floor, 1.0), np.inf)
    plain = np.where(usable, found.spread / np.where(usable, own, 1.0), np.inf)
    return np.asarray(np.minimum(above, plain))


def binary_trials(worth: Any, smooth: SmoothedMoments) -> FloatArray:
    """Return the binary trials (…,) that so many labels are: guard 3.

    Examples
    --------
    >>> smooth = SmoothedMoments(
    ...     mean=0.5, spread=0.125, within=0.1, variance=0.01, possible=0.01, binary=np.array([0.25]),
    ...     information=25.0)
    >>> float(binary_trials(10.0, smooth))
    20.0
    """
    return np.asarray(worth * smooth.mean * (1.0 - smooth.mean) / smooth.spread)


def stratum_rates(value: Any, labels: UnitMoments, smooth: SmoothedMoments, found: Variances) -> StratumRates:
    """Return what the labels say of each stratum, guards 2 and 3 applied to the trials of all strata alike.

    Guard 4 adds rates that the limits must allow for too.

    λ = 0 and a binary outcome leave n_h / (1 − f_h) trials. What λ leaves of the variance, what a graded
    outcome lacks to a binary one, and what the population's own draw adds change them by one factor.

    Parameters
    ----------
    value : float (…,)
        The estimate on the 0–1 scale.
    labels, smooth, found
        Of the labelled units.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.repeat([0, 1], 5), sizes=np.array([10, 10]))
    >>> labels = UnitMoments.of(np.r_[np.ones(9), 0.0], weighting)
    >>> found = Variances(residual=0.01, plain=0.01, spread=0.1)
    >>> stratum_rates(0.9, labels, smoothed_moments(labels), found).trials.round(6)
    array([10., 10.])
    """
    counts, shares, factors = labels.counts, labels.shares, labels.factors
    open_strata = (factors > 0) | ((counts > 0) & np.isfinite(found.drawn_from))
    drawn = np.isfinite(found.drawn_from)
    basis = np.where(drawn, shares**2 / np.maximum(counts, 1.0), factors)
    binary = np.sum(basis * smooth.binary, axis=-1)
    wanted = found.share(smooth) * smooth.variance + found.drawn_part(smooth)
    varies = binary > 0
    factor = np.where(varies, binary, 1.0) / np.where(varies, np.maximum(wanted, ROUNDING * binary), 1.0)
    trials = shares**2 / np.where(open_strata, basis, 1.0)
    left = labels.left
    back = None
    if labels.looked and np.shape(shares)[-1] > 1:  # one stratum has no shares that could follow labels
        back = drawn_back(labels.means, counts, left, factors * smooth.binary, factor)
    least = np.sum(shares * (1.0 - left) * labels.means, axis=-1)
    known = labels.units if not drawn else np.inf
    return StratumRates(
        value=np.clip(value, 0.0, 1.0),
        rates=labels.means,
        counts=counts,
        trials=np.where(open_strata, trials, np.inf),
        shares=shares,
        factor=np.where(np.abs(factor - 1.0) < _AS_IT_WAS, 1.0, factor),
        least=least if np.isfinite(known) else np.zeros(()),
        most=least + np.sum(shares * left, axis=-1) if np.isfinite(known) else np.ones(()),
        units=known,
        whole=labels.binary,
        drawn_back=back,
    )


def one_stratum_rates(value: Any, labels: UnitMoments, trials: Any) -> StratumRates:
    """Return what the labels say of the one stratum that there is, worth so many binary trials (…,).

    For an outcome that is graded or moved by λ: `effective_trials` has applied the guards.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(8, dtype=int), sizes=np.array([16]))
    >>> labels = UnitMoments.of(np.full(8, 0.5), weighting)
    >>> one_stratum_rates(0.5, labels, 30.0).counts
    array([15.])
    """
    value, trials = np.clip(value, 0.0, 1.0), np.asarray(trials)[..., None]
    left, least = labels.left, ((1.0 - labels.left) * labels.means)[..., 0]
    return StratumRates(
        value=value,
        rates=np.asarray(value)[..., None],
        counts=np.where(np.isfinite(trials), trials, 1.0)
        * np.where(np.isfinite(trials), left, labels.counts),
        trials=trials,
        shares=np.ones(1),
        least=least,
        most=least + left[..., 0],
        units=labels.units,
        whole=labels.binary,
    )


def agreeing_rates(labels: UnitMoments, *, drawn: bool = False) -> StratumRates:
    """Return what the labels would say if all of them agreed: of how many units none was like them.

    `drawn`: whether the population's own draw counts.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(16, dtype=int), sizes=np.array([20]))
    >>> found = agreeing_rates(UnitMoments.of(np.full(16, 0.5), weighting))
    >>> from stratal.intervals.stratified import stratified_clopper_pearson
    >>> float(stratified_clopper_pearson(found, 0.025, 0.025)[0])
    0.9
    """
    counts, shares, left = labels.counts, labels.shares, labels.left
    open_strata = (counts > 0) & ((left > 0) | drawn)
    below = np.where(open_strata, 1.0 if drawn else left, 1.0)
    known = np.inf if drawn else labels.units
    return StratumRates(
        value=np.ones(np.shape(counts)[:-1]),
        rates=np.ones(np.shape(counts)),
        counts=counts,
        trials=np.where(open_strata, counts / below, np.inf),
        shares=shares,
        least=np.sum(shares * (1.0 - left), axis=-1) if np.isfinite(known) else np.zeros(()),
        units=known,
        whole=True,
    )


def effective_trials(labels: UnitMoments, found: Variances, weighting: Weighting) -> float:
    """Return the number of independent binary trials that the labels are worth, all three guards applied.

    Infinite where nothing is left to chance.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(8, dtype=int), sizes=np.array([16]))
    >>> unit = np.array([1.0, 1, 1, 1, 1, 1, 0, 0])
    >>> labels = UnitMoments.of(unit, weighting)
    >>> variance = float(weighting.covariance(unit[:, None])[0, 0])
    >>> found = variances_of(unit, labels, weighting, residual=variance)
    >>> round(effective_trials(labels, found, weighting), 6)
    16.0
    """
    smooth = smoothed_moments(labels)
    return float(binary_trials(_among_few_draws(worth(smooth, found), weighting), smooth))


def variances_of(
    unit: FloatArray, labels: UnitMoments, weighting: Weighting, *, drawn: bool = False, **known: Any
) -> Variances:
    """Return the variances of an estimate from its labelled units (n,) on the 0–1 scale.

    Parameters
    ----------
    unit, labels, weighting
        The units, and what they add up to.
    drawn : bool
        Whether the population's own draw counts.
    **known
        The fields of `Variances` that do not follow from the labels: `residual`, and `population_part`,
        `tuned` and `weights_known` where they are not the defaults.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(2, dtype=int), sizes=np.array([10]))
    >>> unit = np.array([0.0, 1.0])
    >>> variances_of(unit, UnitMoments.of(unit, weighting), weighting, residual=0.2).plain
    0.2
    """
    total, size = weighting.total, weighting.population_size
    spread = float(weighting.population_covariance(unit[:, None])[0, 0]) * size
    centred = (unit - weighting.weights @ unit / total) / total  # as it is, where the weights add up to one
    plain = float(weighting.covariance(weighting.stretched(centred[:, None]))[0, 0])
    information = smoothed_moments(labels).information
    return Variances(
        plain=plain,
        spread=spread,
        drawn_from=size if drawn else np.inf,
        **known,
        of_design=1.0 if labels.own else remaining_share(spread / labels.draws, plain, information),
    )


def _among_few_draws(worth: FloatArray, weighting: Weighting) -> FloatArray:
    """Return the units' worth, moved to the number of clusters where units were drawn in clusters.

    A few clusters say little of how much their units resemble each other; at worst each is worth one unit,
    and clusters of unequal size as many as fewer equal ones (Kish's count).
    """
    groups = weighting.groups
    if groups is None:
        return worth
    parts = np.bincount(groups, weighting.weights) / weighting.total
    free, against = max(weighting.draws - 1.0, 0.0), _DRAWS_AGAINST_RESEMBLANCE
    return (free + against) / (free / worth + against * np.sum(parts**2))
