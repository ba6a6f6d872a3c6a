"""The interval methods by name, and which of them `auto` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from stratal.errors import InputError, near_names, warn_caller
from stratal.intervals import proportion, skewed
from stratal.intervals.betting import betting_bounds
from stratal.intervals.bootstrap import bootstrap_bounds
from stratal.intervals.evidence import Evidence
from stratal.intervals.interval import ConfidenceInterval, tail_shares
from stratal.intervals.stratified import stratified_clopper_pearson
from stratal.intervals.student import student_t
from stratal.intervals.unseen import unseen_share

Bounds: TypeAlias = Callable[[float], tuple[float, float]]
"""Confidence level to (low, high)."""

UNBOUNDED = ("t", "normal", "bootstrap", "bootstrap-t", "skewness-corrected")
BOUNDED = (
    "clopper-pearson",
    "stratified-clopper-pearson",
    "korn-graubard",
    "blaker",
    "wilson",
    "logit",
    "t",
    "normal",
    "bootstrap",
    "bootstrap-t",
    "betting",
    "betting-anytime",
)
METHODS = ("auto", *BOUNDED, "skewness-corrected")
_GUARDED = ("clopper-pearson", "stratified-clopper-pearson", "blaker")
"""Those that unequal weights and clusters widen; the others are the textbook's."""


def resolve_method(evidence: Evidence) -> str:
    """Return the method that `auto` stands for: fixed by what is known of the outcome, never by the result.

    An outcome with bounds gets Clopper–Pearson on the effective number of trials, those of each stratum
    where there are several, any other Student's t with Satterthwaite's degrees of freedom, each limit moved
    outwards where the labels are skewed.
    docs/methods/intervals.md has the coverage, cell by cell.
    """
    if evidence.bounds is None:
        return "skewness-corrected"
    return "stratified-clopper-pearson" if evidence.in_strata else "clopper-pearson"


def interval_of(
    evidence: Evidence, confidence_level: float, method: str = "auto", alternative: str = "two-sided"
) -> ConfidenceInterval:
    """Return the interval of one method; see `Estimate.confidence_interval`."""
    tail_shares(confidence_level, alternative)
    name, bounds = bounds_function(evidence, method, alternative)
    low, high = bounds(confidence_level)
    return ConfidenceInterval(
        low=low, high=high, confidence_level=confidence_level, method=name, alternative=alternative
    )


def bounds_function(evidence: Evidence, method: str, alternative: str) -> tuple[str, Bounds]:
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
    own = evidence.own
    if own is not None and (method == "auto" or not np.isfinite(evidence.value)):
        return own.method, lambda level: own.ends(level, alternative)
    if evidence.linearised:
        return method, _of_linearised(evidence, method, alternative)
    if method == "auto":
        method = resolve_method(evidence)
    if evidence.bounds is None:
        return method, _unbounded(evidence, method, alternative)
    if method == "skewness-corrected":
        raise InputError(
            "method 'skewness-corrected' is for outcomes without bounds",
            action="Leave the method to 'auto', whose interval stays inside the bounds.",
        )
    if evidence.census:
        return method, lambda level: (evidence.value, evidence.value)
    if method.startswith("bootstrap") and not evidence.varies:
        # Resampling labels that all agree shows nothing; the exact interval knows how many there were.
        method = "clopper-pearson"
    return method, _kept_within(evidence, _bounded(evidence, method, alternative), alternative)


def _of_linearised(evidence: Evidence, method: str, alternative: str) -> Bounds:
    """Return a textbook's interval of a function of means; its estimand's own is that of `auto`."""
    if method not in ("t", "normal"):
        raise InputError(
            f"an interval by {method!r} is for means", allowed="'auto', 't' and 'normal' for this estimand"
        )
    return _student(evidence, method, alternative, float(np.sqrt(evidence.textbook_variance)))


def _bounded(evidence: Evidence, method: str, alternative: str) -> Bounds:
    if method in ("t", "normal"):
        if not evidence.varies:
            warn_caller(
                f"the labels all agree, so the textbook interval '{method}' has no width; use method='auto'"
            )
        return _student(evidence, method, alternative, float(np.sqrt(evidence.textbook_variance)))
    if method.startswith("bootstrap"):
        return bootstrap_bounds(evidence, alternative, studentise=method == "bootstrap-t")
    if method.startswith("betting"):
        return betting_bounds(evidence, alternative, anytime=method == "betting-anytime")
    if _by_strata(evidence, method):
        exact = _stratified(evidence, alternative)
    else:
        exact = _proportion(evidence, method, alternative)
    if evidence.outcome != "binary":
        exact = _with_unseen(evidence, exact, alternative)
    return _with_shift(evidence, exact, alternative) if method in _GUARDED else exact


def _with_shift(evidence: Evidence, exact: Bounds, alternative: str) -> Bounds:
    """Widen an interval to the farther of its limits with and without the shifts of unequal clusters.

    That by squared sizes widens only the limit that it moves: on the other side nothing was left out.
    """
    shift, value = evidence.size_shift, evidence.value
    further, wider, freedom = evidence.size_reach

    def bounds(level: float) -> tuple[float, float]:
        low, high = exact(level)
        error, draws = max(tail_shares(level, alternative)), evidence.weighting.draws
        stretch = wider / np.sqrt(freedom_factor(draws, freedom, error))
        below, above = low + min(shift, 0.0), high + max(shift, 0.0)
        if further < 0:
            below = min(below, value + further - stretch * (value - low))
        if further > 0:
            above = max(above, value + further + stretch * (high - value))
        return below, above

    return bounds


def _by_strata(evidence: Evidence, method: str) -> bool:
    """Return whether the method is the test inverted over strata: of one alone too, where units are left."""
    if method == "stratified-clopper-pearson" and evidence.in_strata:
        return True
    return method in ("clopper-pearson", "stratified-clopper-pearson") and evidence.in_one_stratum


def _with_unseen(evidence: Evidence, exact: Bounds, alternative: str) -> Bounds:
    """Widen a graded outcome's interval to what its labels cannot have shown; see `intervals.unseen`."""

    agreeing, (lowest, highest) = evidence.agreeing, evidence.limits

    def bounds(level: float) -> tuple[float, float]:
        low, high = exact(level)
        below, above = (unseen(error) for error in tail_shares(level, alternative))
        value = evidence.value
        return min(low, value - below * (value - lowest)), max(high, value + above * (highest - value))

    def unseen(error: float) -> float:
        if agreeing is not None:
            return 1.0 - float(stratified_clopper_pearson(agreeing, error, 0.0)[0]) if error > 0 else 0.0
        return float(unseen_share(evidence.weighting.effective_draws, evidence.labelled_share, error))

    return bounds


def _stratified(evidence: Evidence, alternative: str) -> Bounds:
    lowest, highest = evidence.limits
    rates = evidence.rates

    def bounds(level: float) -> tuple[float, float]:
        low, high = stratified_clopper_pearson(rates, *tail_shares(level, alternative))
        return lowest + (highest - lowest) * float(low), lowest + (highest - lowest) * float(high)

    return bounds


def _proportion(evidence: Evidence, method: str, alternative: str) -> Bounds:
    lowest, highest = evidence.limits
    value = (evidence.value - lowest) / (highest - lowest)
    trials, freedom = evidence.trials, evidence.weights_freedom

    def bounds(level: float) -> tuple[float, float]:
        error = max(tail_shares(level, alternative))
        if method == "logit":
            low, high = proportion.logit(
                value,
                trials,
                degrees_of_freedom=evidence.degrees_of_freedom,
                confidence_level=level,
                alternative=alternative,
            )
        else:
            formula = {"blaker": proportion.blaker, "wilson": proportion.wilson}
            size = trials
            if method == "korn-graubard":
                size = korn_graubard_trials(evidence, error)
            elif method in _GUARDED:
                size = trials * freedom_factor(evidence.n, freedom, error)
            low, high = formula.get(method, proportion.clopper_pearson)(
                value, size, confidence_level=level, alternative=alternative
            )
        return lowest + (highest - lowest) * float(low), lowest + (highest - lowest) * float(high)

    return bounds


def _student(evidence: Evidence, method: str, alternative: str, standard_error: float) -> Bounds:
    freedom = np.inf if method == "normal" else evidence.degrees_of_freedom
    limits = (-np.inf, np.inf) if evidence.bounds is None else evidence.bounds

    def bounds(level: float) -> tuple[float, float]:
        low, high = student_t(
            evidence.value,
            standard_error,
            degrees_of_freedom=freedom,
            bounds=limits,
            confidence_level=level,
            alternative=alternative,
        )
        return float(low), float(high)

    return bounds


def _kept_within(evidence: Evidence, bounds: Bounds, alternative: str) -> Bounds:
    """Undo what rounding does at the scale's ends: never outside the bounds, never without the value."""
    lowest, highest = (-np.inf, np.inf) if evidence.bounds is None else evidence.bounds

    def kept(level: float) -> tuple[float, float]:
        low, high = bounds(level)
        if np.isnan(low) or np.isnan(high):
            raise InputError(
                "these labels do not tell how wide this interval is",
                given=f"{evidence.n} labels, variance {evidence.variance:g}",
                action="Label more units, or leave the method to 'auto'.",
            )
        low = lowest if alternative == "less" else max(min(low, evidence.value), lowest)
        high = highest if alternative == "greater" else min(max(high, evidence.value), highest)
        if low == high:
            low = max(np.nextafter(low, -np.inf), lowest)
            high = min(np.nextafter(high, np.inf), highest)
        return float(low), float(high)

    return kept


_MIDDLE = 0.5 - 1e-6
"""Both quantiles are 0 at one half; just below it their ratio is what it tends to."""


def freedom_factor(n: int, degrees_of_freedom: float, error: float) -> float:
    """Return what trials are multiplied by where the variance has fewer degrees of freedom than n − 1.

    (t_{n−1} / t_ν)² at the error of one side (Korn & Graubard 1998).

    Examples
    --------
    >>> freedom_factor(20, 19, 0.025), round(freedom_factor(20, 5, 0.025), 3)
    (1.0, 0.663)
    """
    error = min(error, 1.0 - error, _MIDDLE)
    simple = proportion.student_quantile(error, max(n - 1, 1))
    return float((simple / proportion.student_quantile(error, degrees_of_freedom)) ** 2)


def korn_graubard_trials(evidence: Evidence, error: float) -> float:
    """Return Korn & Graubard's effective size n* = θ(1 − θ)/variance · (t_{n−1} / t_ν)², without any guard.

    As R's `svyciprop(method = "beta")`, whose ν counts draws less strata. Where the labels all agree it is
    the guarded number of trials. `error` is that of one side.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> z = np.array([0.0, 1.0, 1.0, 1.0])
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([10**6]))
    >>> evidence = Evidence(value=0.75, variance=0.0625, population_part=0.0, degrees_of_freedom=3.0,
    ...     outcome="binary", bounds=(0.0, 1.0), z=z, residuals=z, known=0.0, weighting=weighting,
    ...     tuned=False)
    >>> round(korn_graubard_trials(evidence, 0.025), 3)
    3.0
    """
    low, high = evidence.limits
    value = (evidence.value - low) / (high - low)
    if evidence.census or not evidence.varies or not 0 < value < 1:
        return evidence.trials
    strata = int(np.sum(evidence.weighting.counts > 0))
    own = freedom_factor(evidence.n, max(evidence.weighting.draws - strata, 1), error)
    trials = float(value * (1 - value) / (evidence.variance / (high - low) ** 2) * own)
    return trials if np.isfinite(trials) and trials > 0 else evidence.trials


def _unbounded(evidence: Evidence, method: str, alternative: str) -> Bounds:
    if method not in UNBOUNDED:
        raise InputError(
            f"method '{method}' needs an outcome with bounds",
            allowed=", ".join(repr(name) for name in UNBOUNDED),
            action="Give bounds=(lowest, highest) if the outcome has them.",
        )
    variance = evidence.textbook_variance
    if evidence.census:
        return lambda level: (evidence.value, evidence.value)
    if not evidence.varies:
        raise InputError(
            "all labels agree, so an interval of an unbounded outcome would have no width",
            action="Give the outcome's bounds, or label more units.",
        )
    if method.startswith("bootstrap"):
        return _kept_within(
            evidence, bootstrap_bounds(evidence, alternative, studentise=method == "bootstrap-t"), alternative
        )
    if method == "skewness-corrected":
        exact = _skewness_corrected(evidence, alternative, float(np.sqrt(variance)))
        return _with_shift(evidence, exact, alternative)
    return _student(evidence, method, alternative, float(np.sqrt(variance)))


def _skewness_corrected(evidence: Evidence, alternative: str, standard_error: float) -> Bounds:
    skewness, freedom = evidence.skewness, evidence.degrees_of_freedom

    def bounds(level: float) -> tuple[float, float]:
        low, high = skewed.skewness_corrected(
            evidence.value,
            standard_error,
            skewness,
            degrees_of_freedom=freedom,
            confidence_level=level,
            alternative=alternative,
        )
        return float(low), float(high)

    return bounds
