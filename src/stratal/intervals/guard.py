"""Variances that few labels cannot make too small: strata whose labels all agree have a variance
nevertheless."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratal import variance as formulas
from stratal.arrays import FloatArray
from stratal.weighting import StratifiedWeighting, Weighting

if TYPE_CHECKING:
    from stratal.intervals.evidence import Evidence

_PSEUDO_LABELS = 1.0


def guarded_variance(evidence: Evidence) -> float:
    """Return the larger of the variance estimate and one from smoothed stratum means, in the outcome's
    units."""
    assert evidence.bounds is not None
    scale = evidence.bounds[1] - evidence.bounds[0]
    floor = smoothed_variance(evidence.z, evidence.weighting, evidence.bounds) * scale**2
    own = evidence.variance if np.isfinite(evidence.variance) else 0.0
    if evidence.tuned and own > 0:
        return own
    return max(own, floor + evidence.population_part)


def smoothed_variance(z: FloatArray, weighting: Weighting, bounds: tuple[float, float]) -> float:
    """Return Σ a_h p̃_h (1 − p̃_h) on the 0–1 scale, stratum means p̃_h shrunk to the overall one."""
    unit = (z - bounds[0]) / (bounds[1] - bounds[0])
    overall = smoothed_mean(unit, weighting)
    if not isinstance(weighting, StratifiedWeighting):
        weights = weighting.weights
        return overall * (1 - overall) * float(np.sum(weights**2))
    counts = weighting.counts
    means = formulas.stratum_means(unit[:, None], weighting.stratum, len(counts))[:, 0]
    means = np.where(counts > 0, means, overall)
    smooth = (counts * means + _PSEUDO_LABELS * overall) / (counts + _PSEUDO_LABELS)
    return float(weighting.variance_factors @ (smooth * (1 - smooth)))


def smoothed_mean(unit: FloatArray, weighting: Weighting) -> float:
    """Return the weighted mean of outcomes on the 0–1 scale with half a label added at either end."""
    weights = weighting.weights / weighting.weights.sum()
    n = 1.0 / float(np.sum(weights**2))
    return float((n * (weights @ unit) + 0.5) / (n + 1.0))


def smoothed_spread(z: FloatArray, weighting: Weighting, bounds: tuple[float, float]) -> float:
    """Return p̃ (1 − p̃) of the smoothed mean, in the outcome's units squared."""
    scale = bounds[1] - bounds[0]
    overall = smoothed_mean((z - bounds[0]) / scale, weighting)
    return overall * (1 - overall) * scale**2
