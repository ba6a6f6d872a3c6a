"""The interval methods by name, and which of them `auto` takes."""

from __future__ import annotations

import numpy as np

from stratal.errors import InputError, near_names
from stratal.intervals import proportion, student
from stratal.intervals.evidence import Evidence
from stratal.intervals.guard import smoothed_mean
from stratal.intervals.interval import ConfidenceInterval, tail_shares

METHODS = ("auto", "t", "normal", "clopper-pearson", "blaker", "wilson", "logit")


def resolve_method(evidence: Evidence) -> str:
    """Return the method that `auto` stands for: by what is known of the outcome.

    An outcome with bounds gets Clopper–Pearson on the effective number of trials, any other Student's t.
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
    unit = (evidence.value - lowest) / scale
    if method in ("t", "normal"):
        error = float(np.sqrt(evidence.guarded_variance))
        freedom = np.inf if method == "normal" else evidence.degrees_of_freedom
        low, high = student.student_t(
            evidence.value, 0.0 if evidence.census else error, degrees_of_freedom=freedom,
            bounds=evidence.bounds, confidence_level=confidence_level, alternative=alternative,
        )  # fmt: skip
        return float(low), float(high)
    formula = {
        "clopper-pearson": proportion.clopper_pearson,
        "blaker": proportion.blaker,
        "wilson": proportion.wilson,
        "logit": proportion.logit,
    }[method]
    low, high = formula(unit, trials(evidence), confidence_level=confidence_level, alternative=alternative)
    return lowest + scale * float(low), lowest + scale * float(high)


def trials(evidence: Evidence) -> float:
    """Return the number of independent trials as informative as the labels: p̃(1 − p̃) / variance on the 0–1
    scale."""
    if evidence.census:
        return float("inf")
    assert evidence.bounds is not None
    scale = evidence.bounds[1] - evidence.bounds[0]
    overall = smoothed_mean((evidence.z - evidence.bounds[0]) / scale, evidence.weighting)
    return overall * (1 - overall) * scale**2 / evidence.guarded_variance


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
