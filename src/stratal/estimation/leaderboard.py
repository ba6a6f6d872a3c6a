"""The rows of a leaderboard: each model's mean, its difference to the best, and the ranks left open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate_mean
from stratal.estimation.mean import EstimateOptions
from stratal.estimation.paired import rank_sets
from stratal.estimation.respondents import Respondents
from stratal.report import plain
from stratal.sampling.sample import Sample


def leaderboard(
    sample: Sample,
    frame: Respondents,
    z: FloatArray,
    rows: Sequence[dict[str, Any]],
    *,
    names: Sequence[str],
    options: EstimateOptions,
    confidence_level: float,
) -> tuple[dict[str, Any], ...]:
    """Return models from the highest mean to the lowest.

    Parameters
    ----------
    sample : Sample
    frame : Respondents
        The units that have all outcomes.
    z : float (m, k)
        Their outcomes of the k models.
    rows : sequence of dict
        The comparisons of all pairs, or of all with one model; ranks need all pairs.
    names : sequence of str (k,)
    options : EstimateOptions
        The target and the outcomes' bounds.
    confidence_level : float

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=5).draw(stratal.Population.from_arrays(proxy=[0.5] * 99), seed=7)
    >>> table = stratal.compare(sample, {"old": [1, 0, 0, 1, 0], "new": [1, 1, 0, 1, 1]})
    >>> [(row["model"], row["rank"]) for row in table.leaderboard]
    [('new', [1, 2]), ('old', [1, 2])]
    """
    try:
        results = [
            estimate_mean(
                z[:, j],
                np.zeros((len(z), 0)),
                frame.weighting,
                None,
                stratum=frame.stratum,
                options=replace(options, design=sample.design.kind, stratum_names=frame.names),
            )
            for j in range(len(names))
        ]
    except InputError:  # one label of an outcome without bounds
        return ()
    ranks = _ranks(rows, names)
    order = np.argsort([-result.value for result in results], kind="stable").tolist()
    best = names[order[0]]
    found = []
    for j in order:
        difference, ends = _to_best(rows, names[j], best)
        found.append(
            {
                "rank": ranks[j] if ranks else None,
                "model": names[j],
                "mean": results[j].value,
                "confidence_interval": _interval(results[j], confidence_level),
                "to_best": difference,
                "to_best_interval": ends,
            }
        )
    return tuple(found)


def _interval(result: Estimate, confidence_level: float) -> list[float | None] | None:
    """Return an interval; None where labels that say nothing of their spread refuse one."""
    try:
        found = result.confidence_interval(confidence_level)
    except InputError:
        return None
    return list(plain([found.low, found.high]))


def _ranks(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[list[int]]:
    """Return the ranks that two-sided intervals of all pairs leave open; nothing from fewer pairs."""
    if len(rows) != len(names) * (len(names) - 1) // 2:
        return []
    ends = [row["confidence_interval"] or [None, None] for row in rows]
    low = np.array([-np.inf if end[0] is None else end[0] for end in ends])
    high = np.array([np.inf if end[1] is None else end[1] for end in ends])
    pairs = [(names.index(row["a"]), names.index(row["b"])) for row in rows]
    return rank_sets(low, high, pairs, len(names))


def _to_best(
    rows: Sequence[dict[str, Any]], name: str, best: str
) -> tuple[float | None, list[float | None] | None]:
    """Return a model's difference to the best and its interval, as the comparisons have it."""
    for row in rows:
        low, high = row["confidence_interval"] or (None, None)
        if (row["a"], row["b"]) == (name, best):
            return row["difference"], None if row["confidence_interval"] is None else [low, high]
        if (row["b"], row["a"]) == (name, best):
            turned = [None if end is None else -end for end in (high, low)]
            return -row["difference"], None if row["confidence_interval"] is None else turned
    return None, None
