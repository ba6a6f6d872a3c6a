"""Drift of the score: its mean and spread over all items of each wave, which need no label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs.sample import Sample
from stratal.protocols import JsonDict


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreMoments:
    """Mean and standard deviation of a score over all items of a wave."""

    mean: float
    standard_deviation: float


def moments_of_column(values: FloatArray) -> ScoreMoments:
    """Return the moments of a score (N,)."""
    return ScoreMoments(mean=float(values.mean()), standard_deviation=float(values.std()))


def moments_of_sample(sample: Sample) -> dict[str, ScoreMoments]:
    """Return the moments of each proxy over the population, from the summaries of its strata."""
    summary = sample.summary
    combined = summary.merge_strata(np.zeros(len(summary.sizes), dtype=np.int64))
    means = combined.proxy_means[0].tolist()
    deviations = np.sqrt(np.diag(combined.proxy_covariances[0])).tolist()
    return {
        name: ScoreMoments(mean=mean, standard_deviation=deviation)
        for name, mean, deviation in zip(sample.proxy_names, means, deviations, strict=True)
    }


def score_drift(names: Sequence[str], scores: Sequence[Mapping[str, ScoreMoments]]) -> list[JsonDict]:
    """Return the mean of each score by wave, and its shift since the previous and the first wave.

    Shifts are in standard deviations of the reference wave. Scores of fewer than two waves are left out.
    `names` (T,) are those of the waves, and `scores` (T,) the moments of each score by its name.
    """
    rows = []
    for score in dict.fromkeys(name for moments in scores for name in moments):
        waves = [
            (name, moments[score]) for name, moments in zip(names, scores, strict=True) if score in moments
        ]
        if len(waves) < 2:
            continue
        first = waves[0][1]
        previous: ScoreMoments | None = None
        for name, moments in waves:
            row: JsonDict = {"score": score, "wave": name, "mean": moments.mean}
            row["standard_deviation"] = moments.standard_deviation
            row["shift_since_previous"] = None
            row["shift_since_first"] = None
            if previous is not None:
                row["shift_since_previous"] = _shift(moments, previous)
                row["shift_since_first"] = _shift(moments, first)
            rows.append(row)
            previous = moments
    return rows


def _shift(moments: ScoreMoments, reference: ScoreMoments) -> float | None:
    """Return the difference of two means in standard deviations of the reference; None if it has none."""
    if reference.standard_deviation > 0:
        return (moments.mean - reference.mean) / reference.standard_deviation
    return None
