"""The same labels read with and without the design: what a report sets beside the estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import StratalError
from stratal.estimation.estimate import Estimate
from stratal.estimation.outcome_means import estimate_mean
from stratal.report import plain_dict
from stratal.sampling.sample import Sample
from stratal.weighting import StratifiedWeighting

REPORTED = "with the design"
NAIVE = "labels, unweighted"
PROXY = "proxy alone"
WEIGHTED = "labels alone, weighted"


def side_by_side(
    sample: Sample, found: Estimate, confidence_level: float = 0.95, method: str = "auto"
) -> list[dict[str, Any]]:
    """Return readings of the same labels: naive, the proxy alone, the labels alone, and the reported one.

    Parameters
    ----------
    sample : Sample
    found : Estimate
        What is reported.
    confidence_level : float
    method : str
        Of the reported interval.

    Returns
    -------
    list of dict
        `name`, `estimate`, `confidence_interval` (or None), `what`, `reported`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2] * 50 + [0.8] * 50)
    >>> sample = stratal.plan(population, budget=20).draw(seed=7)
    >>> found = stratal.estimate(sample, [1.0, 0.0] * 10)
    >>> [row["name"] for row in side_by_side(sample, found)]
    ['labels, unweighted', 'proxy alone', 'with the design']
    """
    evidence = found.evidence
    rows = [
        _row(
            NAIVE, _unweighted(found), confidence_level, "their plain mean, as if units had been drawn alike"
        )
    ]
    proxy = proxy_mean(sample)
    if proxy is not None:
        what = "its mean over all units: no label, so no interval, and whatever error the proxy has"
        rows.append(_reading(PROXY, proxy, None, what))
    if evidence.tuned:
        z, stratum = evidence.z, evidence.weighting.stratum
        plainly = estimate_mean(
            z,
            np.zeros((len(z), 0)),
            evidence.weighting,
            None,
            stratum=stratum,
            outcome=found.outcome,
            bounds=found.bounds,
            target=found.target,
            design=found.design,
        )
        rows.append(_row(WEIGHTED, plainly, confidence_level, "weighted as drawn, the proxy left out"))
    what = "weighted as drawn" + (", the proxy's help included" if evidence.tuned else "")
    rows.append(_row(REPORTED, found, confidence_level, what, method=method) | {"reported": True})
    return rows


def proxy_mean(sample: Sample) -> float | None:
    """Return the first proxy's mean over all units; None if there is none on the outcome's scale.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2, 0.6])
    >>> proxy_mean(stratal.SimpleRandom(budget=1).draw(population, seed=7))
    0.4
    """
    if not sample.proxy_info or not sample.proxy_info[0].scaled:
        return None
    value = float(sample.summary.overall_means[0])
    return value if np.isfinite(value) else None


def _unweighted(found: Estimate) -> Estimate:
    """Return the estimate that the labels would give if they were a simple random sample."""
    z: FloatArray = found.evidence.z
    one: IntArray = np.zeros(len(z), np.int64)
    return estimate_mean(
        z,
        np.zeros((len(z), 0)),
        StratifiedWeighting(stratum=one, sizes=np.array([max(found.population_size, len(z))])),
        None,
        stratum=one,
        outcome=found.outcome,
        bounds=found.bounds,
        design="simple-random",
    )


def _row(name: str, found: Estimate, level: float, what: str, method: str = "auto") -> dict[str, Any]:
    try:
        interval = list(found.confidence_interval(level, method))
    except StratalError:
        interval = None
    return _reading(name, found.value, interval, what)


def _reading(name: str, value: float, interval: Any, what: str) -> dict[str, Any]:
    return plain_dict(
        {"name": name, "estimate": value, "confidence_interval": interval, "what": what, "reported": False}
    )
