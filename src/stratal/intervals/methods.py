"""Intervals of a mean by the name of their method, and the method that `auto` stands for.

One table serves `estimate` and `simulate`. The values of the evidence are numbers, or arrays (R,) of as many
replicates. To add a method, write a function of (interval, confidence level, alternative) and add it to
`TABLE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from stratal.arrays import FloatArray, IntArray, Number, unit_scale
from stratal.designs.stratum_moments import stratum_covariances
from stratal.errors import InputError, suggest_names, warn_caller
from stratal.intervals import proportion
from stratal.intervals.betting import betting_ends
from stratal.intervals.evidence import Evidence, IntervalEvidence
from stratal.intervals.interval import ConfidenceInterval, Ends, Interval, tail_shares
from stratal.intervals.interval_types import nothing_varies
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson


def interval_of(
    evidence: Evidence, confidence_level: float, method: str = "auto", alternative: str = "two-sided"
) -> ConfidenceInterval:
    """Return the interval of one method; see `Estimate.confidence_interval`."""
    tail_shares(confidence_level, alternative)
    interval = find_interval(evidence, method)
    name = interval.method
    level = confidence_level
    if evidence.planned_look is not None:
        name = f"{name}, {evidence.planned_look}"
        level = evidence.planned_look.level(level, alternative)
    if evidence.simultaneous is not None:
        name = f"{name}, simultaneous"
        level = evidence.simultaneous.level(level, alternative, normal=method == "normal")
    low, high = interval.ends(level, alternative)
    return ConfidenceInterval(
        low=float(low),
        high=float(high),
        confidence_level=confidence_level,
        method=name,
        alternative=alternative,
    )


def p_value_of(
    evidence: Evidence, null: float, method: str = "auto", alternative: str = "two-sided"
) -> float:
    """Return the p-value of one method; see `Estimate.p_value`."""
    tail_shares(0.95, alternative)
    p = find_interval(evidence, method).p_value(null, alternative)
    if evidence.simultaneous is not None:
        p = evidence.simultaneous.adjusted(p, alternative, normal=method == "normal")
    if evidence.planned_look is None:
        return p
    return evidence.planned_look.adjusted_p_value(p, alternative)


def find_interval(evidence: IntervalEvidence, method: str) -> Interval:
    """Return the interval of a method, `auto` resolved.

    Raises
    ------
    InputError
        For an unknown method, one that needs bounds where there are none, and where the labels of an
        unbounded outcome all agree.
    """
    if method not in INTERVAL_METHOD_NAMES:
        raise InputError(
            "unknown kind of interval",
            given=repr(method),
            allowed=suggest_names(method, INTERVAL_METHOD_NAMES),
        )
    if evidence.interval is not None:
        is_undefined = not np.isfinite(evidence.value)
        interval = evidence.interval.by("auto" if is_undefined else method)
        if interval is not None:
            return interval
    refuse_unfit_method(evidence, method)
    if evidence.linearised and evidence.degrees_of_freedom == 0:
        problem = (
            "the relevant labels are in one cluster, or in one cluster per stratum, so there is no interval"
        )
        raise InputError(problem, action="Label units of more clusters.")
    # `auto` is fixed by what is known of the outcome, never by the result: docs/methods/intervals.md has the
    # coverage, cell by cell.
    if method == "auto" and evidence.bounds is None:
        method = "skewness-corrected"
    elif method == "auto":
        if evidence.in_strata:
            method = "stratified-clopper-pearson"
        else:
            method = "clopper-pearson"
    if evidence.bounds is None:
        _ = evidence.textbook_variance  # refuses one label, which has none
    if evidence.bounds is None and not (evidence.census or evidence.varies):
        raise nothing_varies()
    if method == "bootstrap" and not (evidence.census or evidence.varies):
        # Resampling labels that all agree shows nothing; the exact interval knows how many there were.
        method = "clopper-pearson"
    return MeanInterval(value=evidence.value, bounds=evidence.bounds, method=method, evidence=evidence)


# Methods of functions of means, such as the means of groups.
LINEARISED_METHODS = ("auto", "t", "normal", "survey")


def refuse_unfit_method(evidence: IntervalEvidence, method: str) -> None:
    """Refuse a method that estimates of this kind do not have, whatever their labels show."""
    if method == "auto" or (evidence.interval is not None and evidence.interval.by(method) is not None):
        return
    if evidence.linearised and method not in LINEARISED_METHODS:
        raise InputError(
            "this kind of interval is available only for the mean of all units",
            given=f"{method!r}, for a group or another estimand",
            allowed=", ".join(map(repr, LINEARISED_METHODS)),
            action="Choose one of these methods: interval= (--interval). Alternatively, leave out by= "
            "(--by), metric= (--metric) and estimand= (--estimand).",
        )
    if evidence.bounds is not None and TABLE[method].reads_skewness:
        action = "Set the method to 'auto', whose interval stays within the bounds."
        raise InputError(f"method '{method}' can only be used for outcomes without bounds", action=action)
    if evidence.bounds is None and TABLE[method].needs_bounds:
        problem = f"method '{method}' requires an outcome with bounds"
        action = "Give bounds=(lowest, highest) if the outcome has them."
        raise InputError(problem, allowed=", ".join(repr(name) for name in UNBOUNDED), action=action)


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanInterval(Interval):
    """The interval of a mean by one method.

    What does not depend on the level (resampling, effective trials) is computed once, so that a p-value costs
    no more than an interval.
    """

    method: str = "clopper-pearson"
    evidence: IntervalEvidence

    def ends(self, confidence_level: float, alternative: str) -> Ends:
        """Return the lower and the upper end."""
        if self.evidence.census:
            return self.value, self.value
        method = TABLE[self.method]
        low, high = method.ends(self, confidence_level, alternative)
        if method.needs_bounds:
            lowest, highest = self.evidence.outcome_bounds
            low = lowest + (highest - lowest) * low
            high = lowest + (highest - lowest) * high
        errors = tail_shares(confidence_level, alternative)
        if method.counts_trials and self.has_jumps:
            low, high = self._with_jumps(low, high, errors)
        if method.widened:
            low, high = self._with_cluster_sizes(low, high, max(errors))
        return self._within_bounds(low, high, alternative)

    @property
    def unit_value(self) -> Number:
        """The value on the 0–1 scale."""
        return unit_scale(self.value, self.evidence.outcome_bounds)

    @cached_property
    def trials(self) -> Number:
        """Effective trials."""
        return self.evidence.trials

    @cached_property
    def rates(self) -> StratumRates:
        """Rates of the strata."""
        return self.evidence.rates

    @cached_property
    def standard_error(self) -> Number:
        """Standard error by the formula."""
        return np.sqrt(self.evidence.textbook_variance)

    @cached_property
    def textbook_error(self) -> Number:
        """The same, with a warning if it is 0 because the labels all agree."""
        if not self.evidence.varies:
            what = f"all labels are equal, so the textbook interval '{self.method}' has width 0"
            warn_caller(f"{what}; use method='auto'")
        return self.standard_error

    @cached_property
    def skewness(self) -> Number:
        """Skewness of the estimate."""
        return self.evidence.skewness

    @cached_property
    def few_clusters(self) -> tuple[float, float]:
        """Standard-error factor and degrees of freedom for few clusters."""
        return self.evidence.few_clusters

    @cached_property
    def replicates(self) -> FloatArray:
        """Deviations of resampled means."""
        return bootstrap_deviations(self.labels)

    @property
    def labels(self) -> Evidence:
        """The evidence of one estimate, for methods that read the labels one by one."""
        assert isinstance(self.evidence, Evidence)
        return self.evidence

    @cached_property
    def has_jumps(self) -> bool:
        """Whether single units can move the limits.

        Not labels of 0 and 1 in strata: the test of strata knows in what direction each can be wrong. The
        mean of a cluster is not 0 or 1, and a cluster unlike all that were drawn moves the limit like a unit.
        """
        evidence = self.evidence
        if evidence.outcome != "binary" or evidence.are_clusters:
            return True
        return bool(evidence.uses_proxy and not evidence.in_strata)

    @cached_property
    def _jumps(self) -> FloatArray:
        """How far units unlike any label move the lower and the upper limit (2, …).

        They lie at a bound, as far from what was expected of them as units are in the root mean square: among
        the farther ones more often.
        """
        lowest, highest = self.evidence.outcome_bounds
        scale = highest - lowest
        reach = np.array([self.value - lowest, highest - self.value]) / scale
        return np.asarray(scale * np.sqrt(reach**2 + self.evidence.expected_spread))

    def _with_jumps(self, low: Number, high: Number, errors: tuple[float, float]) -> Ends:
        """Return limits that allow for single units.

        Trials of 0 and 1 lean as their rate says. An outcome on a scale, or what λ leaves, leans as few large
        residuals do: those that were seen (`proportion.jump_reach`), or units unlike any label.
        """
        observed_reach = proportion.jump_reach(self.skewness, errors)
        below, above = (
            np.maximum(self.evidence.jump_reach(jump, error), self.standard_error * observed)
            for error, jump, observed in zip(errors, self._jumps, observed_reach, strict=True)
        )
        return np.minimum(low, self.value - below), np.maximum(high, self.value + above)

    @cached_property
    def _cluster_sizes(self) -> tuple[float, float, float, float]:
        return (self.evidence.mean_size_correction, *self.evidence.large_cluster_correction)

    def _with_cluster_sizes(self, low: Number, high: Number, error: float) -> Ends:
        """Return limits that allow for sizes of the drawn clusters unlike those of all."""
        shift, extra, factor, df = self._cluster_sizes
        if shift == 0.0 and extra == 0.0:
            return low, high
        value = self.value
        # Squared sizes widen only the limit that they move: on the other side nothing was left out.
        stretch = factor / np.sqrt(proportion.df_correction(self.labels.weighting.draws, df, error))
        below = low
        above = high
        if extra < 0:
            below = value + extra - stretch * (value - low)
        if extra > 0:
            above = value + extra + stretch * (high - value)
        return min(low + min(shift, 0.0), below), max(high + max(shift, 0.0), above)

    def _within_bounds(self, low: Number, high: Number, alternative: str) -> Ends:
        """Return limits within the bounds and within what the labels make certain, and around the value."""
        if self.bounds is None:
            lowest, highest = (-np.inf, np.inf)
        else:
            lowest, highest = self.bounds
        if np.any(np.isnan(low) | np.isnan(high)):
            problem = "these labels do not determine the width of this interval"
            raise InputError(problem, action="Label more units, or set the method to 'auto'.")
        if self.bounds is not None and not self.evidence.linearised:
            least, most = self.evidence.possible_range()
            low = np.maximum(low, lowest + (highest - lowest) * least)
            high = np.minimum(high, lowest + (highest - lowest) * most)
        if alternative == "less":
            low = lowest
        else:
            low = np.maximum(np.minimum(low, self.value), lowest)
        if alternative == "greater":
            high = highest
        else:
            high = np.minimum(np.maximum(high, self.value), highest)
        if np.any(is_flat := low == high):
            low = np.where(is_flat, np.maximum(np.nextafter(low, -np.inf), lowest), low)
            high = np.where(is_flat, np.minimum(np.nextafter(high, np.inf), highest), high)
        return low, high


# ---- Student's t


def _t_ends(
    interval: MeanInterval,
    confidence_level: float,
    alternative: str,
    error: Number,
    degrees_of_freedom: Number,
    skewness: Number = 0.0,
) -> Ends:
    return proportion.student_t(
        interval.value,
        error,
        skewness=skewness,
        degrees_of_freedom=degrees_of_freedom,
        bounds=(-np.inf, np.inf) if interval.bounds is None else interval.bounds,
        confidence_level=confidence_level,
        alternative=alternative,
    )


def _student(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    df = interval.evidence.degrees_of_freedom
    return _t_ends(interval, confidence_level, alternative, interval.textbook_error, df)


def _normal(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    return _t_ends(interval, confidence_level, alternative, interval.textbook_error, np.inf)


def _skewness_corrected(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    """Return Student's t with the skewness removed (Hall 1992)."""
    factor, least = interval.few_clusters
    df = np.minimum(interval.evidence.degrees_of_freedom, least)
    error = interval.textbook_error * factor
    return _t_ends(interval, confidence_level, alternative, error, df, interval.skewness)


def _survey(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    """Return Student's t with R's degrees of freedom: clusters minus strata (`svymean`, `degf`)."""
    df = interval.labels.design_df
    if df < 1:
        raise InputError(
            "there are as many strata with labels as clusters (or units), which leaves no degrees of freedom",
            action="Label units of more clusters, or merge strata.",
        )
    return _t_ends(interval, confidence_level, alternative, interval.labels.design_standard_error, df)


# ---- proportions, at an effective number of trials


def _wilson(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    return proportion.wilson(
        interval.unit_value, interval.trials, confidence_level=confidence_level, alternative=alternative
    )


def _logit(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    return proportion.logit(
        interval.unit_value,
        interval.trials,
        degrees_of_freedom=interval.evidence.degrees_of_freedom,
        confidence_level=confidence_level,
        alternative=alternative,
    )


def _trials_of_weights(interval: MeanInterval, error: float) -> Number:
    """Return the trials, fewer for the degrees of freedom that unequal weights take."""
    evidence = interval.evidence
    return interval.trials * proportion.df_correction(evidence.n, evidence.satterthwaite_df, error)


def _blaker(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    trials = _trials_of_weights(interval, max(tail_shares(confidence_level, alternative)))
    return proportion.blaker(
        interval.unit_value, trials, confidence_level=confidence_level, alternative=alternative
    )


def _clopper_pearson(
    interval: MeanInterval, confidence_level: float, alternative: str, *, by_strata: bool = False
) -> Ends:
    """Return Clopper–Pearson's interval; in strata (of one too, where units are left) its test inverted."""
    errors = tail_shares(confidence_level, alternative)
    if interval.evidence.in_one_stratum or (by_strata and interval.evidence.in_strata):
        return stratified_clopper_pearson(interval.rates, *errors)
    trials = _trials_of_weights(interval, max(errors))
    return proportion.clopper_pearson(
        interval.unit_value, trials, confidence_level=confidence_level, alternative=alternative
    )


def _korn_graubard(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    error = max(tail_shares(confidence_level, alternative))
    trials = korn_graubard_trials(interval.labels, interval.trials, error)
    return proportion.clopper_pearson(
        interval.unit_value, trials, confidence_level=confidence_level, alternative=alternative
    )


def korn_graubard_trials(evidence: Evidence, guarded: Number, error: float) -> Number:
    """Return Korn & Graubard's effective size n* = θ(1 − θ)/variance · (t_{n−1} / t_ν)², without any guard.

    As R's `svyciprop(method = "beta")`, whose ν counts draws less strata. Where the labels all agree it is
    the guarded number of trials. `error` is that of one side.
    """
    low, high = evidence.outcome_bounds
    value = unit_scale(evidence.value, evidence.outcome_bounds)
    if not evidence.varies or not 0 < value < 1:
        return guarded
    strata = int(np.sum(evidence.weighting.counts > 0))
    freedom_ratio = proportion.df_correction(evidence.n, max(evidence.weighting.draws - strata, 1), error)
    trials = float(value * (1 - value) / (evidence.variance / (high - low) ** 2) * freedom_ratio)
    if np.isfinite(trials) and trials > 0:
        return trials
    return guarded


# ---- resampling and betting

# So many leave a limit of a 95% interval a Monte Carlo error of .03 standard errors.
REPLICATES = 10_000

# Fixed, so that the same labels have the same interval.
BOOTSTRAP_SEED = 20_240_611

# Resampled labels that are held at once: 32 MB.
_CELLS_AT_ONCE = 4_000_000


def _bootstrap(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    below, above = tail_shares(confidence_level, alternative)
    low, high = np.quantile(interval.replicates, [below, 1.0 - above])
    return interval.value + low, interval.value + high


def bootstrap_deviations(evidence: Evidence) -> FloatArray:
    """Return the rescaling bootstrap of Rao & Wu (1988): resampled means with the design's own variance.

    In each stratum n_h − 1 units are drawn with replacement from the n_h, and their mean's deviation is
    scaled by √(1 − f_h), so that the bootstrap variance is W_h² (1 − f_h) s_h² / n_h exactly.
    """
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    weighting = evidence.weighting
    values, factors = weighting.resampling_variables(evidence.residuals)
    deviations = rescaled_deviations(values, weighting.stratum, factors, rng=rng)
    within = stratum_covariances(values[:, None], weighting.stratum, len(factors))[:, 0, 0]
    spread = float(factors @ np.nan_to_num(within))
    if spread > 0:
        return np.asarray(deviations * np.sqrt(evidence.variance / spread))
    # Every stratum has one label: nothing to resample, so the normal shape stands in.
    return np.asarray(np.sqrt(evidence.variance) * rng.standard_normal(len(deviations)))


def rescaled_deviations(
    values: FloatArray,
    stratum: IntArray,
    factors: FloatArray,
    *,
    replicates: int = REPLICATES,
    rng: np.random.Generator,
) -> FloatArray:
    """Return bootstrap deviations (replicates,) of Σ W_h ȳ_h.

    Parameters
    ----------
    values : float (n,)
    stratum : int (n,)
    factors : float (H,)
        W_h² (1 − f_h) / n_h: what s_h² is multiplied by in the variance. Strata of one label have no spread
        and add nothing.
    replicates : int
    rng : numpy Generator
    """
    deviations = np.zeros(replicates)
    for h, factor in enumerate(factors):
        stratum_values = values[stratum == h]
        n = len(stratum_values)
        if n < 2 or factor <= 0:
            continue
        centred = stratum_values - stratum_values.mean()
        batch = max(1, _CELLS_AT_ONCE // (n - 1))
        for start in range(0, replicates, batch):
            batch_deviations = deviations[start : start + batch]
            drawn = centred[rng.integers(0, n, (len(batch_deviations), n - 1), dtype=np.int32)]
            # The mean of n_h − 1 draws has variance s_h² / n_h; √(n_h · factor) turns it into factor · s_h².
            batch_deviations += np.sqrt(factor * n) * drawn.mean(axis=1)
    return deviations


def _betting(
    interval: MeanInterval, confidence_level: float, alternative: str, *, anytime: bool = False
) -> Ends:
    errors = tail_shares(confidence_level, alternative)
    return betting_ends(interval.labels, errors, anytime=anytime)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One kind of interval, and what it needs.

    Parameters
    ----------
    ends : callable
        Interval, confidence level and alternative to (low, high).
    needs_bounds : bool
        Whether it is for outcomes with bounds only; its ends are on their 0–1 scale.
    reads_skewness : bool
        Whether it reads third powers of the labels; it is then for outcomes without bounds only.
    reads_labels : bool
        Whether it reads the labels one by one, rather than their sums: not for many replicates.
    counts_trials : bool
        Whether it takes labels for trials of 0 and 1, so that a graded outcome needs more.
    widened : bool
        Whether it is widened for clusters of unequal size. The other methods are as in textbooks.
    """

    ends: Callable[[MeanInterval, float, str], Ends]
    needs_bounds: bool = False
    reads_skewness: bool = False
    reads_labels: bool = False
    counts_trials: bool = False
    widened: bool = False


_counting = partial(Method, needs_bounds=True, counts_trials=True)

# Every method by name.
TABLE: dict[str, Method] = {
    "clopper-pearson": _counting(ends=_clopper_pearson, widened=True),
    "stratified-clopper-pearson": _counting(ends=partial(_clopper_pearson, by_strata=True), widened=True),
    # The textbook's: it counts trials, but allows neither for few large residuals nor for clusters unlike all
    # that were drawn.
    "korn-graubard": Method(ends=_korn_graubard, needs_bounds=True, reads_labels=True),
    "blaker": _counting(ends=_blaker, widened=True),
    "wilson": _counting(ends=_wilson),
    "logit": _counting(ends=_logit),
    "t": Method(ends=_student),
    "normal": Method(ends=_normal),
    "survey": Method(ends=_survey, reads_labels=True),
    "bootstrap": Method(ends=_bootstrap, reads_labels=True),
    "betting": Method(ends=_betting, reads_labels=True, needs_bounds=True),
    "betting-anytime": Method(ends=partial(_betting, anytime=True), reads_labels=True, needs_bounds=True),
    "skewness-corrected": Method(ends=_skewness_corrected, reads_skewness=True, widened=True),
}

INTERVAL_METHOD_NAMES = ("auto", *TABLE)
UNBOUNDED = tuple(name for name, method in TABLE.items() if not method.needs_bounds)
