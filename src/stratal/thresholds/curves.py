"""Metrics as functions of the threshold, with pointwise and simultaneous bands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs import Weighting
from stratal.estimation.linearised import target_covariance
from stratal.intervals.simultaneous import SimultaneousLevel
from stratal.metrics.threshold_goal import FALSE_POSITIVE_RATE, PRECISION, RECALL
from stratal.protocols import JsonDict
from stratal.report.text import json_dict
from stratal.thresholds.evidence import SetEvidence, f1_evidence, set_evidence
from stratal.thresholds.sets import CandidateSets, LabelledScores

F1_NAME = "f1"
CURVES = (PRECISION, RECALL, F1_NAME, FALSE_POSITIVE_RATE)
# Thresholds of a curve: about every second one of the 20 candidate sets of a score.
N_THRESHOLDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveValue:
    """A metric at a threshold, with its pointwise interval and its interval of the simultaneous band."""

    estimate: float
    pointwise: tuple[float, float]
    simultaneous: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """All metrics of the set at a threshold; None stands for the set of all units."""

    threshold: float | None
    share: float
    labels: int
    metrics: Mapping[str, CurveValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Metrics at several thresholds.

    Parameters
    ----------
    points : tuple of CurvePoint
        From the highest threshold to the lowest.
    confidence_level : float
        Of the bands.
    best_f1 : int, optional
        Index of the point with the largest estimated F1.
    """

    points: tuple[CurvePoint, ...]
    confidence_level: float
    best_f1: int | None

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict."""
        points = [json_dict(asdict(point)) for point in self.points]
        return {"confidence_level": self.confidence_level, "best_f1": self.best_f1, "points": points}


def curve_of(
    labels: LabelledScores,
    sets: CandidateSets,
    weighting: Weighting,
    target: str,
    confidence_level: float,
    metrics: tuple[str, ...] = CURVES,
) -> Curve:
    """Return the curve of the sets of one score, without groups, at about ten of their thresholds (J, 1)."""
    positions = np.linspace(0, len(sets.thresholds) - 1, N_THRESHOLDS)
    set_indices = np.unique(positions.round().astype(np.int64))
    members = sets.members(labels.scores, labels.group)
    if labels.sizes is None or labels.group_sizes is None:
        shares = labels.weights @ members
    else:
        # The numbers of units of the population in each stratum and set are known.
        shares = labels.sizes.sum(axis=0) / labels.group_sizes.sum()
    values = {}
    for metric in metrics:
        level = _simultaneous_level(
            metric, labels, members[:, set_indices], weighting, target, confidence_level
        )
        evidence = _metric_evidence(metric, labels, sets)
        values[metric] = _curve_values(metric, evidence, set_indices, confidence_level, level)
    points = []
    for index, j in enumerate(set_indices):
        point = CurvePoint(
            threshold=_finite_or_none(sets.thresholds[j, 0]),
            share=float(shares[j]),
            labels=int(members[:, j].sum()),
            metrics={metric: values[metric][index] for metric in metrics},
        )
        points.append(point)
    f1 = np.array([value.estimate for value in values.get(F1_NAME, ())])
    if np.isfinite(f1).any():
        best = int(np.nanargmax(f1))
    else:
        best = None
    return Curve(points=tuple(points), confidence_level=confidence_level, best_f1=best)


def _curve_values(
    metric: str,
    evidence: SetEvidence | _F1Evidence,
    set_indices: IntArray,
    pointwise_level: float,
    simultaneous_level: float,
) -> tuple[CurveValue, ...]:
    """Return the values of a metric for some of the sets, with intervals of the two confidence levels."""
    # The evidence is on rates of faults; precision and recall are 1 minus such a rate.
    is_complement = metric in (PRECISION, RECALL)
    estimates = evidence.estimates
    pointwise = evidence.limits(0.5 * (1.0 - pointwise_level))
    simultaneous = evidence.limits(0.5 * (1.0 - simultaneous_level))
    if is_complement:
        estimates = 1.0 - estimates
    return tuple(
        CurveValue(
            estimate=float(estimates[j]),
            pointwise=_metric_interval(pointwise, j, is_complement=is_complement),
            simultaneous=_metric_interval(simultaneous, j, is_complement=is_complement),
        )
        for j in set_indices
    )


def _finite_or_none(value: float) -> float | None:
    """Return a threshold; None for −inf, which every unit reaches."""
    if np.isinf(value):
        return None
    return float(value)


def _metric_interval(
    limits: tuple[FloatArray, FloatArray], index: int, *, is_complement: bool
) -> tuple[float, float]:
    """Return one of the intervals; that of 1 minus the rate if `is_complement`."""
    low = float(limits[0][index])
    high = float(limits[1][index])
    if is_complement:
        return 1.0 - high, 1.0 - low
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class _F1Evidence:
    """F1 from the evidence on Jaccard's index or on half of F1."""

    evidence: SetEvidence
    is_jaccard: bool

    @property
    def estimates(self) -> FloatArray:
        """F1 (J,)."""
        return self._f1(self.evidence.estimates)

    def limits(self, error: float) -> tuple[FloatArray, FloatArray]:
        """Return one-sided limits (J,) of F1."""
        low, high = self.evidence.limits(error)
        return self._f1(low), self._f1(high)

    def _f1(self, share: FloatArray) -> FloatArray:
        """Return 2 TP / (2 TP + FP + FN) from TP / (TP + FP + FN), or from TP / (TP + FP + TP + FN)."""
        if self.is_jaccard:
            return np.asarray(2.0 * share / (1.0 + share))
        return np.minimum(2.0 * share, 1.0)


def _metric_evidence(metric: str, labels: LabelledScores, sets: CandidateSets) -> SetEvidence | _F1Evidence:
    """Return the evidence on a metric of every set."""
    if metric != F1_NAME:
        return set_evidence(metric, labels, sets)
    # For simple random samples, `f1_evidence` is on Jaccard's index, whose limits are exact.
    return _F1Evidence(evidence=f1_evidence(labels, sets), is_jaccard=labels.is_simple)


def _simultaneous_level(
    metric: str,
    labels: LabelledScores,
    members: BoolArray,
    weighting: Weighting,
    target: str,
    confidence_level: float,
) -> float:
    """Return the confidence level of each interval for which all of them hold simultaneously.

    It is derived from the covariance, under the design, of the linearised metric of the sets (m, J).
    """
    positive = labels.outcomes[:, None]
    numerator = positive * members
    if metric == PRECISION:
        denominator = members.astype(np.float64)
    elif metric == RECALL:
        denominator = np.broadcast_to(positive, members.shape)
    elif metric == F1_NAME:
        numerator = 2.0 * numerator
        denominator = members + positive
    else:
        numerator = (1.0 - positive) * members
        denominator = np.broadcast_to(1.0 - positive, members.shape)
    # Linearisation of a ratio: (numerator − ratio · denominator) / mean denominator. A set without labels of
    # its denominator has no variance; 1 avoids the division by 0.
    totals = labels.weights @ denominator
    divisors = np.where(totals > 0, totals, 1.0)
    ratios = labels.weights @ numerator / divisors
    variables = (numerator - ratios * denominator) / divisors
    covariance = target_covariance(variables, weighting, target)
    dfs = [np.inf] * members.shape[1]
    return SimultaneousLevel.of(covariance, dfs).level(confidence_level, "two-sided", normal=True)
