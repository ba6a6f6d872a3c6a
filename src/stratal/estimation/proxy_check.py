"""What the proxy said beside what the labels say: in bins of the proxy, and on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.errors import StratalError
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimate import Estimate
from stratal.estimation.outcome_means import estimate_mean
from stratal.report import plain_dict
from stratal.sampling.sample import Sample

BINS = 10
LEAST = 10
"""Labels of a bin, so that its mean says something."""

NARROWEST = 0.02
"""Share of the proxies' range that a bin has at least."""


def proxy_check(
    sample: Sample, labelled: BoolArray, found: Estimate, confidence_level: float = 0.95
) -> dict[str, Any] | None:
    """Return how far the first proxy is calibrated; None if there is none on the outcome's scale.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
        The drawn units that the estimate used.
    found : Estimate
    confidence_level : float

    Returns
    -------
    dict
        `proxy`; `bias`, the mean of proxy less label with its interval; `bins`, each with `from`, `to`, `n`,
        `proxy_mean`, `outcome_mean` and its `confidence_interval`. Bins have about as many labels each; all
        means are weighted as the units were drawn.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.25] * 50 + [0.75] * 50)
    >>> sample = stratal.SimpleRandom(budget=40).draw(population, seed=7)
    >>> found = stratal.estimate(sample, [0.0, 1.0] * 20)
    >>> check = proxy_check(sample, np.ones(40, dtype=bool), found)
    >>> [round(row["proxy_mean"], 9) for row in check["bins"]]
    [0.25, 0.75]
    """
    z, weighting = found.evidence.z, found.evidence.weighting
    if not sample.proxy_info or not sample.proxy_info[0].scaled or int(labelled.sum()) != len(z):
        return None
    proxy = sample.proxies[labelled, 0]
    bins = []
    for low, high, member in _bins(proxy):
        row = domain_mean(z, member, weighting, bounds=found.bounds, target=found.target).row(
            confidence_level
        )
        bins.append(
            plain_dict(
                {
                    "from": low,
                    "to": high,
                    "n": int(member.sum()),
                    "proxy_mean": domain_mean(proxy, member, weighting).value,
                    "outcome_mean": row["estimate"],
                    "confidence_interval": row["confidence_interval"],
                }
            )
        )
    return {
        "proxy": sample.proxy_info[0].name,
        "bias": _bias(proxy, found, confidence_level),
        "bins": bins,
    }


def _bins(proxy: FloatArray) -> list[tuple[float, float, BoolArray]]:
    """Return lowest and highest proxy, and members (n,), of up to BINS groups of about equal size."""
    values = np.sort(proxy)
    count = max(1, min(BINS, len(values) // LEAST))
    apart = NARROWEST * (values[-1] - values[0])
    cuts: list[float] = []
    for cut in values[[(k * len(values)) // count for k in range(1, count)]].tolist():
        if cut - (cuts[-1] if cuts else values[0]) > apart:
            cuts.append(cut)
    code = np.searchsorted(np.array(cuts), proxy, side="right")
    members = [code == k for k in range(len(cuts) + 1)]
    return [
        (float(proxy[member].min()), float(proxy[member].max()), member) for member in members if member.any()
    ]


def _bias(proxy: FloatArray, found: Estimate, level: float) -> dict[str, Any] | None:
    """Return the mean of proxy less label with its interval; None where the labels give no interval."""
    evidence = found.evidence
    try:
        result = estimate_mean(
            proxy - evidence.z,
            np.zeros((len(proxy), 0)),
            evidence.weighting,
            None,
            stratum=evidence.weighting.stratum,
            outcome="unbounded",
            target=found.target,
            design=found.design,
        )
        interval = result.confidence_interval(level)
    except StratalError:
        return None
    return {"estimate": result.value, "confidence_interval": [interval.low, interval.high]}
