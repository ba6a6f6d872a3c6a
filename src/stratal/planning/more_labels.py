"""What more labels would buy: the half-width to expect of the interval at larger numbers of labels."""

from __future__ import annotations

import math
import warnings
from typing import Any

from stratal.errors import StratalWarning
from stratal.estimation.estimate import Estimate
from stratal.planning.labels_so_far import LabelsSoFar
from stratal.planning.narrowing import half_width_of
from stratal.sampling import SimpleRandom, Stratified
from stratal.sampling.sample import Sample

TIMES = (1.5, 2.0, 3.0, 4.0)
"""So many times the units that were drawn."""


def more_labels(
    sample: Sample,
    labels: Any,
    found: Estimate,
    *,
    confidence_level: float = 0.95,
    predicted: bool | str = False,
) -> list[dict[str, Any]]:
    """Return half-widths now and at larger numbers of labels; empty where none can be expected.

    Each round goes where the labels so far say that it helps most, as `next_round` does, and as many units as
    so far are answered. For designs without a next round the width falls as that of a larger sample of the
    same kind.

    Parameters
    ----------
    sample, labels, predicted
        See `stratal.estimate`.
    found : Estimate
        What they give.
    confidence_level : float

    Returns
    -------
    list of dict
        `labels`, `half_width`; the first row is now.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 4000)
    >>> sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    >>> labels = [0.0, 1.0] * 50
    >>> rows = more_labels(sample, labels, stratal.estimate(sample, labels))
    >>> [row["labels"] for row in rows], rows[0]["half_width"] > 1.8 * rows[-1]["half_width"]
    ([100, 150, 200, 300, 400], True)
    """
    now = half_width_of(found, confidence_level)
    if not math.isfinite(now) or sample.size >= sample.population_size:
        return []
    rows = [{"labels": found.n, "half_width": now}]
    totals = [min(round(times * sample.size), sample.population_size) for times in TIMES]
    known = isinstance(sample.design, SimpleRandom | Stratified) and found.nonresponse.labelled > 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StratalWarning)
        seen = LabelsSoFar.of(sample, labels, found, predicted) if known else None
        base = seen.width(sample.size, confidence_level) if seen is not None else 0.0
        for total in dict.fromkeys(totals):
            if seen is not None and base > 0:
                width = now * seen.width(total, confidence_level) / base
                number = int(seen.labels_of(seen.allocation(total)).sum())
            else:
                width = now * _shrunk(found, total / sample.size)
                number = round(found.n * total / sample.size)
            rows.append({"labels": number, "half_width": width})
    return rows


def _shrunk(found: Estimate, times: float) -> float:
    """Return what a standard error is multiplied by in a sample so many times as large."""
    size, n = found.population_size, found.n
    if found.target != "population":
        return 1.0 / math.sqrt(times)
    left, now = max(1.0 / (times * n) - 1.0 / size, 0.0), 1.0 / n - 1.0 / size
    return math.sqrt(left / now) if now > 0 else 0.0
