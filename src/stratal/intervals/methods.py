"""Intervals of a mean by the name of their method, and the method that `auto` selects.

`estimate` and `simulate` use the same methods: numbers of the evidence are floats, or arrays (R,) for R
replicates. To add a method, write a function of (interval, confidence level, alternative) that returns the
lower and the upper end, and add it to `INTERVAL_METHODS`.
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
from stratal.intervals.interval import (
    ConfidenceInterval,
    Ends,
    Interval,
    check_alternative,
    check_confidence_level,
    error_probabilities,
)
from stratal.intervals.interval_types import no_variation_error
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson


def interval_of(
    evidence: Evidence, confidence_level: float, method: str = "auto", alternative: str = "two-sided"
) -> ConfidenceInterval:
    """Return the interval of one method; see `Estimate.confidence_interval`."""
    check_confidence_level(confidence_level)
    check_alternative(alternative)
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
    check_alternative(alternative)
    p_value = find_interval(evidence, method).p_value(null, alternative)
    if evidence.simultaneous is not None:
        p_value = evidence.simultaneous.adjusted_p_value(p_value, alternative, normal=method == "normal")
    if evidence.planned_look is not None:
        p_value = evidence.planned_look.adjusted_p_value(p_value, alternative)
    return p_value


def find_interval(evidence: IntervalEvidence, method: str) -> Interval:
    """Return the interval of a method; `auto` depends on the design and the kind of outcome.

    Raises
    ------
    InputError
        For an unknown method, a method that requires bounds for an outcome without bounds, and if the labels
        of an unbounded outcome all agree.
    """
    if method not in INTERVAL_METHOD_NAMES:
        raise InputError(
            "unknown kind of interval",
            given=repr(method),
            allowed=suggest_names(method, INTERVAL_METHOD_NAMES),
        )
    if evidence.interval is not None:
        is_undefined = not np.isfinite(evidence.value)
        interval = evidence.interval.with_method("auto" if is_undefined else method)
        if interval is not None:
            return interval
    check_method_applies(evidence, method)
    if evidence.linearised and evidence.degrees_of_freedom == 0:
        problem = (
            "the relevant labels are in one cluster, or in one cluster per stratum, so there is no interval"
        )
        raise InputError(problem, action="Label units of more clusters.")
    # `auto` does not depend on the result. docs/methods/intervals.md contains its coverage.
    if method == "auto" and evidence.bounds is None:
        method = "skewness-corrected"
    elif method == "auto":
        if evidence.in_strata:
            method = "stratified-clopper-pearson"
        else:
            method = "clopper-pearson"
    if evidence.bounds is None:
        _ = evidence.textbook_variance  # raises an error for a single label
    if evidence.bounds is None and not (evidence.census or evidence.varies):
        raise no_variation_error()
    if method == "bootstrap" and not (evidence.census or evidence.varies):
        # Resampled labels would all agree too. The exact interval depends on their number.
        method = "clopper-pearson"
    return MeanInterval(value=evidence.value, bounds=evidence.bounds, method=method, evidence=evidence)


# Methods that apply to functions of means, such as the means of groups.
LINEARISED_METHODS = ("auto", "t", "normal", "survey")


def check_method_applies(evidence: IntervalEvidence, method: str) -> None:
    """Raise an error for a method that does not apply to this kind of estimate, for any labels."""
    if method == "auto" or (
        evidence.interval is not None and evidence.interval.with_method(method) is not None
    ):
        return
    if evidence.linearised and method not in LINEARISED_METHODS:
        raise InputError(
            "this kind of interval is available only for the mean of all units",
            given=f"{method!r}, for a group or another estimand",
            allowed=", ".join(map(repr, LINEARISED_METHODS)),
            action="Choose one of these methods: interval= (--interval). Alternatively, leave out by= "
            "(--by), metric= (--metric) and estimand= (--estimand).",
        )
    if evidence.bounds is not None and INTERVAL_METHODS[method].reads_skewness:
        action = "Set the method to 'auto', whose interval stays within the bounds."
        raise InputError(f"method '{method}' can only be used for outcomes without bounds", action=action)
    if evidence.bounds is None and INTERVAL_METHODS[method].needs_bounds:
        problem = f"method '{method}' requires an outcome with bounds"
        action = "Give bounds=(lowest, highest) if the outcome has them."
        raise InputError(
            problem, allowed=", ".join(repr(name) for name in METHODS_WITHOUT_BOUNDS), action=action
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanInterval(Interval):
    """The interval of a mean by one method.

    Numbers that do not depend on the level (resampled means, effective trials) are computed once, because a
    p-value needs the interval at many levels.
    """

    method: str = "clopper-pearson"
    evidence: IntervalEvidence

    def ends(self, confidence_level: float, alternative: str) -> Ends:
        """Return the lower and the upper end."""
        if self.evidence.census:
            return self.value, self.value
        method = INTERVAL_METHODS[self.method]
        low, high = method.ends(self, confidence_level, alternative)
        if method.needs_bounds:
            lowest, highest = self.evidence.outcome_bounds
            low = lowest + (highest - lowest) * low
            high = lowest + (highest - lowest) * high
        errors = error_probabilities(confidence_level, alternative)
        if method.counts_trials and self.allows_for_unseen_units:
            low, high = self._widen_for_unseen_units(low, high, errors)
        if method.widens_for_cluster_sizes:
            low, high = self._widen_for_cluster_sizes(low, high, max(errors))
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
        """Rates of the strata, on the 0–1 scale."""
        return self.evidence.rates

    @cached_property
    def standard_error(self) -> Number:
        """Standard error of the design, without guards."""
        return np.sqrt(self.evidence.textbook_variance)

    @cached_property
    def textbook_error(self) -> Number:
        """Standard error of the design, with a warning if it is 0 because all labels agree."""
        if not self.evidence.varies:
            problem = f"all labels are equal, so the textbook interval '{self.method}' has width 0"
            warn_caller(f"{problem}; use method='auto'")
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
        """Deviations of resampled means from the mean (10,000,)."""
        return bootstrap_deviations(self.single_evidence)

    @property
    def single_evidence(self) -> Evidence:
        """The evidence of one estimate, for methods that use single labels."""
        assert isinstance(self.evidence, Evidence)
        return self.evidence

    @cached_property
    def allows_for_unseen_units(self) -> bool:
        """Whether the limits must be widened for units unlike all labels.

        The limits of 0–1 outcomes already allow for them if there is no proxy or if there are strata. The
        means of clusters are not 0 or 1: an unseen cluster has the same effect as an unseen unit.
        """
        evidence = self.evidence
        if evidence.outcome != "binary" or evidence.are_clusters:
            return True
        return bool(evidence.uses_proxy and not evidence.in_strata)

    @cached_property
    def _unseen_deviations(self) -> FloatArray:
        """Largest deviations of units unlike all labels, towards the lower and the upper bound (2, …).

        The square is the squared distance from the value to the bound, plus the variance over units of the
        values expected from the strata and λ.
        """
        lowest, highest = self.evidence.outcome_bounds
        scale = highest - lowest
        distances = np.array([self.value - lowest, highest - self.value]) / scale
        return np.asarray(scale * np.sqrt(distances**2 + self.evidence.expected_spread))

    def _widen_for_unseen_units(self, low: Number, high: Number, errors: tuple[float, float]) -> Ends:
        """Return limits that allow for few large residuals, observed or unseen.

        The skewness of 0–1 outcomes follows from their rate. The skewness of graded outcomes, and of
        residuals from a proxy, depends on a few large residuals.
        """
        poisson_distances = proportion.poisson_distances(self.skewness, errors)
        # The minimum distances of the two limits from the value.
        distances = []
        sides = zip(errors, self._unseen_deviations, poisson_distances, strict=True)
        for error, deviation, poisson_distance in sides:
            unseen_distance = self.evidence.distance_for_unseen_units(deviation, error)
            distances.append(np.maximum(unseen_distance, self.standard_error * poisson_distance))
        below, above = distances
        return np.minimum(low, self.value - below), np.maximum(high, self.value + above)

    @cached_property
    def _cluster_size_corrections(self) -> tuple[float, float, float, float]:
        """Shift of the mean for the mean size, and for all sizes, with its error factor and df."""
        return (self.evidence.mean_size_correction, *self.evidence.large_cluster_correction)

    def _widen_for_cluster_sizes(self, low: Number, high: Number, error: float) -> Ends:
        """Return limits that allow for a difference in size between the drawn clusters and all clusters."""
        mean_size_shift, large_cluster_shift, error_factor, df = self._cluster_size_corrections
        if mean_size_shift == 0.0 and large_cluster_shift == 0.0:
            return low, high
        value = self.value
        # The correction for large clusters widens only the limit in the direction of its shift.
        width_factor = error_factor / np.sqrt(
            proportion.df_correction(self.single_evidence.weighting.draws, df, error)
        )
        corrected_low = low
        corrected_high = high
        if large_cluster_shift < 0:
            corrected_low = value + large_cluster_shift - width_factor * (value - low)
        if large_cluster_shift > 0:
            corrected_high = value + large_cluster_shift + width_factor * (high - value)
        return (
            min(low + min(mean_size_shift, 0.0), corrected_low),
            max(high + max(mean_size_shift, 0.0), corrected_high),
        )

    def _within_bounds(self, low: Number, high: Number, alternative: str) -> Ends:
        """Return limits within the bounds and the possible means, on both sides of the value."""
        if self.bounds is None:
            lowest, highest = (-np.inf, np.inf)
        else:
            lowest, highest = self.bounds
        if np.any(np.isnan(low) | np.isnan(high)):
            problem = "these labels do not determine the width of this interval"
            raise InputError(problem, action="Label more units, or set the method to 'auto'.")
        if self.bounds is not None and not self.evidence.linearised:
            lowest_mean, highest_mean = self.evidence.possible_means()
            low = np.maximum(low, lowest + (highest - lowest) * lowest_mean)
            high = np.minimum(high, lowest + (highest - lowest) * highest_mean)
        if alternative == "less":
            low = lowest
        else:
            low = np.maximum(np.minimum(low, self.value), lowest)
        if alternative == "greater":
            high = highest
        else:
            high = np.minimum(np.maximum(high, self.value), highest)
        # Only a census has an interval of width 0.
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
    """Return Student's t with a standard error `error`; see `proportion.student_t`."""
    return proportion.student_t(
        interval.value,
        error,
        skewness=skewness,
        degrees_of_freedom=degrees_of_freedom,
        bounds=interval.bounds or (-np.inf, np.inf),
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
    factor, cluster_df = interval.few_clusters
    df = np.minimum(interval.evidence.degrees_of_freedom, cluster_df)
    error = interval.textbook_error * factor
    return _t_ends(interval, confidence_level, alternative, error, df, interval.skewness)


def _survey(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    """Return Student's t with R's degrees of freedom: clusters minus strata (`svymean`, `degf`)."""
    evidence = interval.single_evidence
    df = evidence.design_df
    if df < 1:
        raise InputError(
            "there are as many strata with labels as clusters (or units), which leaves no degrees of freedom",
            action="Label units of more clusters, or merge strata.",
        )
    return _t_ends(interval, confidence_level, alternative, evidence.design_standard_error, df)


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


def _trials_for_weights(interval: MeanInterval, error: float) -> Number:
    """Return the trials, reduced because unequal weights reduce the degrees of freedom of the variance."""
    evidence = interval.evidence
    return interval.trials * proportion.df_correction(evidence.n, evidence.satterthwaite_df, error)


def _blaker(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    trials = _trials_for_weights(interval, max(error_probabilities(confidence_level, alternative)))
    return proportion.blaker(
        interval.unit_value, trials, confidence_level=confidence_level, alternative=alternative
    )


def _clopper_pearson(
    interval: MeanInterval, confidence_level: float, alternative: str, *, by_strata: bool = False
) -> Ends:
    """Return Clopper–Pearson's interval; by test inversion for one stratum, and with `by_strata`."""
    errors = error_probabilities(confidence_level, alternative)
    if interval.evidence.in_one_stratum or (by_strata and interval.evidence.in_strata):
        return stratified_clopper_pearson(interval.rates, *errors)
    trials = _trials_for_weights(interval, max(errors))
    return proportion.clopper_pearson(
        interval.unit_value, trials, confidence_level=confidence_level, alternative=alternative
    )


def _korn_graubard(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    error = max(error_probabilities(confidence_level, alternative))
    trials = korn_graubard_trials(interval.single_evidence, interval.trials, error)
    return proportion.clopper_pearson(
        interval.unit_value, trials, confidence_level=confidence_level, alternative=alternative
    )


def korn_graubard_trials(evidence: Evidence, guarded_trials: Number, error: float) -> Number:
    """Return Korn & Graubard's effective size n* = θ(1 − θ)/variance · (t_{n−1} / t_ν)², without guards.

    As in R's `svyciprop(method = "beta")`, ν is the number of draws minus the number of strata. If all labels
    agree, the result is `guarded_trials`. `error` is the error probability of one side.
    """
    low, high = evidence.outcome_bounds
    value = unit_scale(evidence.value, evidence.outcome_bounds)
    if not evidence.varies or not 0 < value < 1:
        return guarded_trials
    n_strata = int(np.sum(evidence.weighting.counts > 0))
    design_df = max(evidence.weighting.draws - n_strata, 1)
    scaled_variance = evidence.variance / (high - low) ** 2
    df_correction = proportion.df_correction(evidence.n, design_df, error)
    trials = float(value * (1 - value) / scaled_variance * df_correction)
    if np.isfinite(trials) and trials > 0:
        return trials
    return guarded_trials


# ---- resampling and betting

# Number of replicates. A limit of a 95% interval then has a Monte Carlo error of 0.03 standard errors.
_REPLICATES = 10_000

# A fixed seed, so that the same labels have the same interval.
_BOOTSTRAP_SEED = 20_240_611

# Maximum number of resampled labels in memory at once: 32 MB.
_BATCH_CELLS = 4_000_000


def _bootstrap(interval: MeanInterval, confidence_level: float, alternative: str) -> Ends:
    below, above = error_probabilities(confidence_level, alternative)
    low, high = np.quantile(interval.replicates, [below, 1.0 - above])
    return interval.value + low, interval.value + high


def bootstrap_deviations(evidence: Evidence) -> FloatArray:
    """Return deviations of bootstrap means from the mean (10,000,), with the variance of the design.

    This is the rescaling bootstrap of Rao & Wu (1988). In each stratum, n_h − 1 units are drawn with
    replacement from the n_h, and the deviation of their mean is multiplied by √(1 − f_h). The bootstrap
    variance is then exactly W_h² (1 − f_h) s_h² / n_h.
    """
    rng = np.random.default_rng(_BOOTSTRAP_SEED)
    weighting = evidence.weighting
    values, factors = weighting.resampling_variables(evidence.residuals)
    deviations = rescaled_deviations(values, weighting.stratum, factors, rng=rng)
    within = stratum_covariances(values[:, None], weighting.stratum, len(factors))[:, 0, 0]
    bootstrap_variance = float(factors @ np.nan_to_num(within))
    if bootstrap_variance > 0:
        return np.asarray(deviations * np.sqrt(evidence.variance / bootstrap_variance))
    # Every stratum has one label, which cannot be resampled. The normal distribution is used instead.
    return np.asarray(np.sqrt(evidence.variance) * rng.standard_normal(len(deviations)))


def rescaled_deviations(
    values: FloatArray,
    stratum: IntArray,
    factors: FloatArray,
    *,
    replicates: int = _REPLICATES,
    rng: np.random.Generator,
) -> FloatArray:
    """Return bootstrap deviations (replicates,) of Σ W_h ȳ_h.

    Parameters
    ----------
    values : float (n,)
        The variable y.
    stratum : int (n,)
    factors : float (H,)
        W_h² (1 − f_h) / n_h, the factors of s_h² in the variance. Strata with one label contribute 0.
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
        batch = max(1, _BATCH_CELLS // (n - 1))
        for start in range(0, replicates, batch):
            batch_deviations = deviations[start : start + batch]
            drawn = centred[rng.integers(0, n, (len(batch_deviations), n - 1), dtype=np.int32)]
            # The mean of n_h − 1 draws has variance s_h² / n_h; √(n_h · factor) turns it into factor · s_h².
            batch_deviations += np.sqrt(factor * n) * drawn.mean(axis=1)
    return deviations


def _betting(
    interval: MeanInterval, confidence_level: float, alternative: str, *, anytime: bool = False
) -> Ends:
    errors = error_probabilities(confidence_level, alternative)
    return betting_ends(interval.single_evidence, errors, anytime=anytime)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """An interval method and its requirements.

    Parameters
    ----------
    ends : callable
        Returns (low, high) for an interval, a confidence level and an alternative.
    needs_bounds : bool
        Whether the method applies only to outcomes with bounds. Its ends are then on the 0–1 scale.
    reads_skewness : bool
        Whether the method uses third powers of the labels. It then applies only to outcomes without bounds.
    reads_labels : bool
        Whether the method uses single labels, not only their sums. It is then not available for replicates.
    counts_trials : bool
        Whether the method treats labels as 0–1 trials. Its limits are then widened for few large residuals.
    widens_for_cluster_sizes : bool
        Whether the limits are widened for clusters of unequal size. Textbook methods are not.
    """

    ends: Callable[[MeanInterval, float, str], Ends]
    needs_bounds: bool = False
    reads_skewness: bool = False
    reads_labels: bool = False
    counts_trials: bool = False
    widens_for_cluster_sizes: bool = False


_trials_method = partial(Method, needs_bounds=True, counts_trials=True)

# Every method by name.
INTERVAL_METHODS: dict[str, Method] = {
    "clopper-pearson": _trials_method(ends=_clopper_pearson, widens_for_cluster_sizes=True),
    "stratified-clopper-pearson": _trials_method(
        ends=partial(_clopper_pearson, by_strata=True), widens_for_cluster_sizes=True
    ),
    # As in textbooks, without allowance for few large residuals and for clusters of unequal size.
    "korn-graubard": Method(ends=_korn_graubard, needs_bounds=True, reads_labels=True),
    "blaker": _trials_method(ends=_blaker, widens_for_cluster_sizes=True),
    "wilson": _trials_method(ends=_wilson),
    "logit": _trials_method(ends=_logit),
    "t": Method(ends=_student),
    "normal": Method(ends=_normal),
    "survey": Method(ends=_survey, reads_labels=True),
    "bootstrap": Method(ends=_bootstrap, reads_labels=True),
    "betting": Method(ends=_betting, reads_labels=True, needs_bounds=True),
    "betting-anytime": Method(ends=partial(_betting, anytime=True), reads_labels=True, needs_bounds=True),
    "skewness-corrected": Method(
        ends=_skewness_corrected, reads_skewness=True, widens_for_cluster_sizes=True
    ),
}

INTERVAL_METHOD_NAMES = ("auto", *INTERVAL_METHODS)
METHODS_WITHOUT_BOUNDS = tuple(name for name, method in INTERVAL_METHODS.items() if not method.needs_bounds)
