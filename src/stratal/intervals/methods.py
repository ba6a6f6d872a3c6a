"""The interval methods by name, and which of them `auto` takes.

One table serves `estimate` and `simulate`: what a method reads of its evidence are numbers, or arrays (R,) of
as many replicates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs.stratum_moments import stratum_covariances
from stratal.errors import InputError, near_names, warn_caller
from stratal.intervals import proportion
from stratal.intervals.betting import betting_bounds
from stratal.intervals.evidence import Evidence
from stratal.intervals.interval import ConfidenceInterval, p_value, tail_shares
from stratal.intervals.limits import nothing_varies
from stratal.intervals.stratified import stratified_clopper_pearson

# Confidence level to (low, high).
Bounds: TypeAlias = Callable[[float], tuple[Any, Any]]


def interval_of(
    evidence: Evidence, confidence_level: float, method: str = "auto", alternative: str = "two-sided"
) -> ConfidenceInterval:
    """Return the interval of one method; see `Estimate.confidence_interval`."""
    tail_shares(confidence_level, alternative)
    name, bounds = bounds_function(evidence, method, alternative)
    level = confidence_level
    shared = evidence.together
    look = evidence.look
    if look is not None:
        name = f"{name}, {look}"
        level = look.level(level, alternative)
    if shared is not None:
        name = f"{name}, simultaneous"
        level = shared.level(level, alternative, normal=method == "normal")
    low, high = bounds(level)
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
    own_limits = evidence.own and evidence.own.by(method)
    shared = evidence.together
    if own_limits is None:
        p = p_value(null, bounds_function(evidence, method, alternative)[1])
    else:
        tail_shares(0.95, alternative)
        p = own_limits.p_value(null, alternative)
    if shared is not None:
        p = shared.adjusted(p, alternative, normal=method == "normal")
    if evidence.look is None:
        return p
    return evidence.look.adjusted(p, alternative)


def bounds_function(evidence: Any, method: str, alternative: str) -> tuple[str, Bounds]:
    """Return the method's name, `auto` resolved, and the function from level to bounds.

    What does not depend on the level (resampling, effective trials) is done once, so that a p-value costs no
    more than an interval.

    Raises
    ------
    InputError
        For an unknown method or alternative, one that needs bounds where there are none, and where the labels
        of an unbounded outcome all agree.
    """
    tail_shares(0.95, alternative)
    if method not in METHODS:
        raise InputError("no such kind of interval", given=repr(method), allowed=near_names(method, METHODS))
    unknown = evidence.own is not None and not np.isfinite(evidence.value)
    own_limits = evidence.own and evidence.own.by("auto" if unknown else method)
    if own_limits is not None:
        return own_limits.method, lambda level: own_limits.ends(level, alternative)
    if evidence.linearised and method not in ("t", "normal", "survey"):
        allowed = "'auto', 't', 'normal' and 'survey' for this estimand"
        raise InputError(f"an interval by {method!r} is for means", allowed=allowed)
    if evidence.linearised and evidence.degrees_of_freedom == 0:
        problem = "the labels that count are in one cluster, or one in each stratum: there is no interval"
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
    _refuse_unfit(evidence, method)
    if evidence.census:
        return method, lambda level: (evidence.value, evidence.value)
    if evidence.bounds is None and not evidence.varies:
        raise nothing_varies()
    if method == "bootstrap" and not evidence.varies:
        # Resampling labels that all agree shows nothing; the exact interval knows how many there were.
        method = "clopper-pearson"
    kind = TABLE[method]
    prepared = kind.prepare(evidence, alternative)
    by_jumps = kind.counts_trials and (
        evidence.outcome != "binary" or (evidence.tuned and not evidence.in_strata)
    )
    widened = _with_jumps(evidence) if by_jumps else None
    if kind.widened:
        sizes = (evidence.size_shift, *evidence.size_reach)
    else:
        sizes = (0.0, 0.0, 1.0, 1.0)
    shift, extra, wider, freedom = sizes

    def bounds(level: float) -> tuple[Any, Any]:
        low, high = prepared(level)
        if kind.needs_bounds:
            lowest, highest = evidence.limits
            low = lowest + (highest - lowest) * low
            high = lowest + (highest - lowest) * high
        errors = tail_shares(level, alternative)
        if widened is not None:
            low, high = widened(low, high, errors)
        if shift != 0.0 or extra != 0.0:
            # Squared sizes widen only the limit that they move: on the other side nothing was left out.
            lost = proportion.freedom_factor(evidence.weighting.draws, freedom, max(errors))
            value = evidence.value
            stretch = wider / np.sqrt(lost)
            if extra < 0:
                below = value + extra - stretch * (value - low)
            else:
                below = low
            if extra > 0:
                above = value + extra + stretch * (high - value)
            else:
                above = high
            low = min(low + min(shift, 0.0), below)
            high = max(high + max(shift, 0.0), above)
        return _kept_within(evidence, low, high, alternative)

    return method, bounds


def _refuse_unfit(evidence: Any, method: str) -> None:
    """Refuse a method for outcomes of the other kind, and one label of an outcome without bounds."""
    if evidence.bounds is not None and TABLE[method].reads_skewness:
        action = "Leave the method to 'auto', whose interval stays inside the bounds."
        raise InputError(f"method '{method}' is for outcomes without bounds", action=action)
    if evidence.bounds is None:
        if TABLE[method].needs_bounds:
            problem = f"method '{method}' needs an outcome with bounds"
            action = "Give bounds=(lowest, highest) if the outcome has them."
            raise InputError(problem, allowed=", ".join(repr(name) for name in UNBOUNDED), action=action)
        _ = evidence.textbook_variance  # refuses one label, which has none


def _with_jumps(evidence: Any) -> Callable[[Any, Any, tuple[float, float]], tuple[Any, Any]]:
    """Return what widens limits (low, high) at the errors of both sides to what single units may be.

    Trials of 0 and 1 lean as their rate says. An outcome on a scale, or what λ leaves, leans as few large
    residuals do: those that were seen (`jump_reach`), or units unlike any label. These lie at a bound, as far
    from what was expected of them as units are in the root mean square: among the farther ones more often.
    Labels of 0 and 1 in strata are left alone: the test of strata knows in what direction each can be wrong.
    """
    (lowest, highest), value = evidence.limits, evidence.value
    scale = highest - lowest
    reach = np.array([value - lowest, highest - value]) / scale
    jumps = scale * np.sqrt(reach**2 + evidence.expected_spread)
    error = np.sqrt(evidence.textbook_variance)
    skewness = evidence.skewness

    def widened(low: Any, high: Any, errors: tuple[float, float]) -> tuple[Any, Any]:
        observed_reach = proportion.jump_reach(skewness, errors)
        below, above = (
            np.maximum(evidence.jump_reach(jump, side), error * observed)
            for side, jump, observed in zip(errors, jumps, observed_reach, strict=True)
        )
        return np.minimum(low, value - below), np.maximum(high, value + above)

    return widened


def _kept_within(evidence: Any, low: Any, high: Any, alternative: str) -> tuple[Any, Any]:
    """Return limits within the bounds and within what the labels make certain, and around the value."""
    if evidence.bounds is None:
        lowest = -np.inf
        highest = np.inf
    else:
        lowest, highest = evidence.bounds
    if np.any(np.isnan(low) | np.isnan(high)):
        problem = "these labels do not determine how wide this interval is"
        raise InputError(problem, action="Label more units, or leave the method to 'auto'.")
    value = evidence.value
    if evidence.bounds is not None and not evidence.linearised:
        least, most = evidence.certain_range()
        low = np.maximum(low, lowest + (highest - lowest) * least)
        high = np.minimum(high, lowest + (highest - lowest) * most)
    if alternative == "less":
        low = lowest
    else:
        low = np.maximum(np.minimum(low, value), lowest)
    if alternative == "greater":
        high = highest
    else:
        high = np.minimum(np.maximum(high, value), highest)
    if np.any(flat := low == high):
        low = np.where(flat, np.maximum(np.nextafter(low, -np.inf), lowest), low)
        high = np.where(flat, np.minimum(np.nextafter(high, np.inf), highest), high)
    return low, high


# ---- the methods


def _student(evidence: Any, alternative: str, *, name: str) -> Bounds:
    corrected = name == "skewness-corrected"
    if not evidence.varies:
        warn_caller(
            f"the labels all agree, so the textbook interval '{name}' has no width; use method='auto'"
        )
    error = np.sqrt(evidence.textbook_variance)
    skewness = evidence.skewness if corrected else 0.0
    if name == "normal":
        freedom = np.inf
    else:
        freedom = evidence.degrees_of_freedom
    if corrected:
        factor, least = evidence.few_clusters
        error = error * factor
        freedom = np.minimum(freedom, least)
    if evidence.bounds is None:
        limits = (-np.inf, np.inf)
    else:
        limits = evidence.bounds
    return lambda level: proportion.student_t(
        evidence.value,
        error,
        skewness=skewness,
        degrees_of_freedom=freedom,
        bounds=limits,
        confidence_level=level,
        alternative=alternative,
    )


def _survey(evidence: Evidence, alternative: str) -> Bounds:
    """Return Student's t with R's degrees of freedom: clusters minus strata (`svymean`, `degf`)."""
    freedom = evidence.design_freedom
    if freedom < 1:
        raise InputError(
            "there are as many strata with labels as clusters (or units), which leaves no degree of freedom",
            action="Label units of more clusters, or merge strata.",
        )
    return lambda level: proportion.student_t(
        evidence.value,
        evidence.design_error,
        degrees_of_freedom=freedom,
        bounds=(-np.inf, np.inf) if evidence.bounds is None else evidence.bounds,
        confidence_level=level,
        alternative=alternative,
    )


def _stratified(evidence: Any, alternative: str) -> Bounds:
    """Return the test inverted over strata: of one alone too, where units are left."""
    rates = evidence.rates
    return lambda level: stratified_clopper_pearson(rates, *tail_shares(level, alternative))


def _proportion(
    evidence: Any,
    alternative: str,
    *,
    formula: Callable[..., tuple[Any, Any]] = proportion.clopper_pearson,
    trials: Callable[[Any, Any, float], Any] | None = None,
) -> Bounds:
    """Return a formula for proportions at `trials` of the effective trials and the error of one side."""
    lowest, highest = evidence.limits
    value = (evidence.value - lowest) / (highest - lowest)
    effective = evidence.trials
    if formula is proportion.logit:
        options = {"degrees_of_freedom": evidence.degrees_of_freedom}
    else:
        options = {}

    def bounds(level: float) -> tuple[Any, Any]:
        error = max(tail_shares(level, alternative))
        if trials is None:
            size = effective
        else:
            size = trials(evidence, effective, error)
        return formula(value, size, confidence_level=level, alternative=alternative, **options)

    return bounds


def _with_lost_freedom(evidence: Any, trials: Any, error: float) -> Any:
    return trials * proportion.freedom_factor(evidence.n, evidence.weights_freedom, error)


def _clopper_pearson(evidence: Any, alternative: str, *, by_strata: bool = False) -> Bounds:
    if evidence.in_one_stratum or (by_strata and evidence.in_strata):
        return _stratified(evidence, alternative)
    return _proportion(evidence, alternative, trials=_with_lost_freedom)


def korn_graubard_trials(evidence: Evidence, guarded: float, error: float) -> float:
    """Return Korn & Graubard's effective size n* = θ(1 − θ)/variance · (t_{n−1} / t_ν)², without any guard.

    As R's `svyciprop(method = "beta")`, whose ν counts draws less strata. Where the labels all agree it is
    the guarded number of trials. `error` is that of one side.
    """
    low, high = evidence.limits
    value = (evidence.value - low) / (high - low)
    if not evidence.varies or not 0 < value < 1:
        return guarded
    strata = int(np.sum(evidence.weighting.counts > 0))
    freedom_ratio = proportion.freedom_factor(evidence.n, max(evidence.weighting.draws - strata, 1), error)
    trials = float(value * (1 - value) / (evidence.variance / (high - low) ** 2) * freedom_ratio)
    return trials if np.isfinite(trials) and trials > 0 else guarded


# So many leave a limit of a 95 % interval a Monte Carlo error of .03 standard errors.
REPLICATES = 10_000

# Fixed, so that the same labels have the same interval.
SEED = 20_240_611

# Resampled labels that are held at once: 32 MB.
_CELLS_AT_ONCE = 4_000_000


def _bootstrap(evidence: Evidence, alternative: str) -> Bounds:
    """Return the rescaling bootstrap of Rao & Wu (1988): resampled means with the design's own variance.

    In each stratum n_h − 1 units are drawn with replacement from the n_h, and their mean's deviation is
    scaled by √(1 − f_h), so that the bootstrap variance is W_h² (1 − f_h) s_h² / n_h exactly.
    """
    rng = np.random.default_rng(SEED)
    weighting = evidence.weighting
    values, factors = weighting.resampling(evidence.residuals)
    deviations = rescaled_deviations(values, weighting.stratum, factors, rng=rng)
    within = stratum_covariances(values[:, None], weighting.stratum, len(factors))[:, 0, 0]
    spread = float(factors @ np.nan_to_num(within))
    if spread > 0:
        deviations *= np.sqrt(evidence.variance / spread)
    else:  # every stratum has one label: nothing to resample, so the normal shape stands in
        deviations = np.sqrt(evidence.variance) * rng.standard_normal(len(deviations))

    def bounds(level: float) -> tuple[Any, Any]:
        below, above = tail_shares(level, alternative)
        low, high = np.quantile(deviations, [below, 1.0 - above])
        return evidence.value + low, evidence.value + high

    return bounds


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One kind of interval, and what it needs.

    Parameters
    ----------
    prepare : callable
        Evidence and alternative to the function of the level, whatever the level does not change done.
    needs_bounds : bool
        Whether it is for outcomes with bounds only; its limits are on their 0–1 scale.
    reads_skewness : bool
        Whether it reads third powers of the labels; it is then for outcomes without bounds only.
    reads_labels : bool
        Whether it reads the labels one by one, rather than what they add up to: not for many replicates.
    counts_trials : bool
        Whether it takes labels for trials of 0 and 1, so that a graded outcome needs more.
    widened : bool
        Whether clusters of unequal size widen it; the others are the textbook's.
    """

    prepare: Callable[[Any, str], Bounds]
    needs_bounds: bool = False
    reads_skewness: bool = False
    reads_labels: bool = False
    counts_trials: bool = False
    widened: bool = False


_counting = partial(Method, needs_bounds=True, counts_trials=True)

# Every method by name.
TABLE: dict[str, Method] = {
    "clopper-pearson": _counting(prepare=_clopper_pearson, widened=True),
    "stratified-clopper-pearson": _counting(prepare=partial(_clopper_pearson, by_strata=True), widened=True),
    "korn-graubard": _counting(prepare=partial(_proportion, trials=korn_graubard_trials), reads_labels=True),
    "blaker": _counting(
        prepare=partial(_proportion, formula=proportion.blaker, trials=_with_lost_freedom), widened=True
    ),
    "wilson": _counting(prepare=partial(_proportion, formula=proportion.wilson)),
    "logit": _counting(prepare=partial(_proportion, formula=proportion.logit)),
    "t": Method(prepare=partial(_student, name="t")),
    "normal": Method(prepare=partial(_student, name="normal")),
    "survey": Method(prepare=_survey, reads_labels=True),
    "bootstrap": Method(prepare=_bootstrap, reads_labels=True),
    "betting": Method(prepare=partial(betting_bounds, anytime=False), reads_labels=True, needs_bounds=True),
    "betting-anytime": Method(
        prepare=partial(betting_bounds, anytime=True), reads_labels=True, needs_bounds=True
    ),
    "skewness-corrected": Method(
        prepare=partial(_student, name="skewness-corrected"), reads_skewness=True, widened=True
    ),
}

METHODS = ("auto", *TABLE)
UNBOUNDED = tuple(name for name, kind in TABLE.items() if not kind.needs_bounds)
