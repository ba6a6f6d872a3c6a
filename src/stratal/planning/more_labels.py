"""What more labels would buy: the half-width to expect of the interval at larger numbers of labels."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from stratal.arrays import BoolArray
from stratal.errors import StratalWarning
from stratal.estimation.estimand import Estimand, Several
from stratal.estimation.estimate import Estimate
from stratal.planning.estimand_needs import errors_of
from stratal.planning.estimand_rounds import deviations_of_labels, influence_deviations
from stratal.planning.labels_so_far import LabelsSoFar, next_allocation
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
    interval: str = "auto",
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
    interval : str
        Method of the interval whose width is expected.

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
    now = half_width_of(found, confidence_level, interval)
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
                width = now * _shrunk(found.population_size, found.n, total / sample.size, found.target)
                number = round(found.n * total / sample.size)
            rows.append({"labels": number, "half_width": width})
    return rows


def more_labels_of(
    estimand: Estimand,
    sample: Sample,
    labels: Any,
    labelled: BoolArray,
    found: Any,
    confidence_level: float,
) -> list[dict[str, Any]]:
    """Return the same of an estimand other than the mean; empty of several, and where nothing is expected.

    Parameters
    ----------
    estimand : Estimand
    sample, labels
        See `stratal.estimate`.
    labelled : bool (n,)
    found : Estimate or Quantity
        What they give.
    confidence_level : float

    Examples
    --------
    >>> import stratal
    >>> from stratal.estimation.estimands import Recall
    >>> answers = {"answer": ["no", "yes"] * 400}
    >>> population = stratal.Population.from_arrays(groups=answers, predicted="answer")
    >>> sample, labels = stratal.SimpleRandom(budget=40).draw(population, seed=7), ["no", "yes"] * 20
    >>> recall = stratal.estimate(sample, labels, estimand=Recall("yes"))
    >>> rows = more_labels_of(Recall("yes"), sample, labels, np.full(40, True), recall, 0.95)
    >>> [row["labels"] for row in rows], rows[0]["half_width"] > 1.9 * rows[-1]["half_width"]
    ([40, 60, 80, 120, 160], True)
    """
    if isinstance(estimand, Several):
        return []
    now, answered = half_width_of(found, confidence_level), float(np.mean(labelled))
    strata = sample.design.strata if isinstance(sample.design, Stratified) else None
    most = np.array([sample.population_size])
    if strata is not None:
        most = np.where(strata.is_known, sample.n_h, strata.sizes)
    if not math.isfinite(now) or sample.size >= int(most.sum()):
        return []
    totals = dict.fromkeys(min(round(times * sample.size), int(most.sum())) for times in TIMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StratalWarning)
        if strata is None:
            shrunk = [_shrunk(sample.population_size, sample.size, n / sample.size) for n in totals]
        else:
            learned = influence_deviations(estimand, sample, labels, strata, sample.population)
            drawn = [next_allocation(most, sample.n_h, learned, n - sample.size) for n in totals]
            # By the labels alone too, and the wider of both: what the plan expected may only widen.
            alone = deviations_of_labels(estimand, sample, labels, strata)
            ways = np.array([learned, learned if alone is None else alone])
            errors = np.array([errors_of(strata, answered * n_h, ways) for n_h in (sample.n_h, *drawn)])
            shrunk = (errors[1:] / errors[0]).max(axis=1).tolist() if np.all(errors[0] > 0) else []
    rows = [(sample.size, 1.0), *zip(totals, shrunk, strict=False)]
    return [{"labels": round(answered * n), "half_width": now * share} for n, share in rows if shrunk]


def _shrunk(size: int, n: int, times: float, target: str = "population") -> float:
    """Return what a standard error is multiplied by in a sample so many times as large."""
    if target != "population":
        return 1.0 / math.sqrt(times)
    left, now = max(1.0 / (times * n) - 1.0 / size, 0.0), 1.0 / n - 1.0 / size
    return math.sqrt(left / now) if now > 0 else 0.0
