"""The interval methods by name, and which of them `auto` takes."""

from __future__ import annotations

import numpy as np

from stratal.errors import InputError, near_names
from stratal.intervals import proportion, student
from stratal.intervals.evidence import Evidence
from stratal.intervals.interval import ConfidenceInterval, tail_shares

METHODS = ("auto", "t", "normal", "clopper-pearson", "korn-graubard", "blaker", "wilson", "logit")


def resolve_method(evidence: Evidence) -> str:
    """Return the method that `auto` stands for: fixed by what is known of the outcome, never by the result.

    An outcome with bounds gets Clopper–Pearson on the effective number of trials, any other Student's t with
    Satterthwaite's degrees of freedom. docs/methods/intervals.md has the coverage of both, cell by cell.
    """
    return "t" if evidence.bounds is None else "clopper-pearson"


def interval_of(
    evidence: Evidence, confidence_level: float, method: str = "auto", alternative: str = "two-sided"
) -> ConfidenceInterval:
    """Return the interval of one method; see `Estimate.confidence_interval`."""
    tail_shares(confidence_level, alternative)
    if method not in METHODS:
        raise InputError("no such kind of interval", given=repr(method), allowed=near_names(method, METHODS))
    if method == "auto":
        method = resolve_method(evidence)
    low, high = _bounds(evidence, confidence_level, method, alternative)
    return ConfidenceInterval(
        low=float(low),
        high=float(high),
        confidence_level=confidence_level,
        method=method,
        alternative=alternative,
    )


def _bounds(
    evidence: Evidence, confidence_level: float, method: str, alternative: str
) -> tuple[float, float]:
    if evidence.bounds is None:
        return _unbounded(evidence, confidence_level, method, alternative)
    lowest, highest = evidence.bounds
    scale = highest - lowest
    if method in ("t", "normal"):
        error = 0.0 if evidence.census else float(np.sqrt(evidence.guarded_variance))
        freedom = np.inf if method == "normal" else evidence.degrees_of_freedom
        low, high = student.student_t(
            evidence.value, error, degrees_of_freedom=freedom, bounds=evidence.bounds,
            confidence_level=confidence_level, alternative=alternative,
        )  # fmt: skip
        return float(low), float(high)
    formula = {"blaker": proportion.blaker, "wilson": proportion.wilson, "logit": proportion.logit}
    textbook = method == "korn-graubard"
    trials = korn_graubard_trials(evidence, confidence_level) if textbook else evidence.trials
    low, high = formula.get(method, proportion.clopper_pearson)(
        (evidence.value - lowest) / scale, trials, confidence_level=confidence_level, alternative=alternative
    )
    return _within(lowest + scale * float(low), lowest + scale * float(high), evidence)


def _within(low: float, high: float, evidence: Evidence) -> tuple[float, float]:
    """Undo what rounding does at the scale's ends: never outside the bounds, never without the value."""
    lowest, highest = evidence.limits
    return max(min(low, evidence.value), lowest), min(max(high, evidence.value), highest)


def korn_graubard_trials(evidence: Evidence, confidence_level: float) -> float:
    """Return Korn & Graubard's effective size n* = θ(1 − θ)/variance · (t_{n−1} / t_ν)², without any guard.

    As R's `svyciprop(method = "beta")`. Where the labels all agree it is the guarded number of trials.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> z = np.array([0.0, 1.0, 1.0, 1.0])
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([10**6]))
    >>> evidence = Evidence(value=0.75, variance=0.0625, population_part=0.0, degrees_of_freedom=3.0,
    ...     outcome="binary", bounds=(0.0, 1.0), z=z, residuals=z, known=0.0, weighting=weighting,
    ...     tuned=False)
    >>> round(korn_graubard_trials(evidence, 0.95), 3)
    3.0
    """
    low, high = evidence.limits
    value = (evidence.value - low) / (high - low)
    variance = evidence.variance / (high - low) ** 2
    if evidence.census or not (np.isfinite(variance) and variance > 0) or not 0 < value < 1:
        return evidence.trials
    error = (1.0 - confidence_level) / 2.0
    simple = proportion.student_quantile(error, max(evidence.n - 1, 1))
    own = proportion.student_quantile(error, evidence.degrees_of_freedom)
    return float(value * (1 - value) / variance * (simple / own) ** 2)


def _unbounded(
    evidence: Evidence, confidence_level: float, method: str, alternative: str
) -> tuple[float, float]:
    if method not in ("t", "normal"):
        raise InputError(
            f"method '{method}' needs an outcome with bounds",
            allowed="'t', 'normal'",
            action="Give bounds=(lowest, highest) if the outcome has them.",
        )
    variance = evidence.reported_variance
    if variance == 0 and not evidence.census:
        raise InputError(
            "all labels agree, so an interval of an unbounded outcome would have no width",
            action="Give the outcome's bounds, or label more units.",
        )
    freedom = np.inf if method == "normal" else evidence.degrees_of_freedom
    low, high = student.student_t(
        evidence.value, float(np.sqrt(variance)), degrees_of_freedom=freedom,
        confidence_level=confidence_level, alternative=alternative,
    )  # fmt: skip
    return float(low), float(high)
