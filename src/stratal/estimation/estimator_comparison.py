"""Other estimates from the same labels, and the calibration of the proxy: for comparison in a report."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs import StratifiedWeighting
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimate import Estimate
from stratal.estimation.outcome_means import mean_without_proxy
from stratal.protocols import JsonDict
from stratal.report.text import json_dict

# Maximum number of bins, as in most calibration plots.
PROXY_BINS = 10

# Minimum number of labels of a bin: the interval of a smaller bin contains nearly every mean.
MIN_LABELS_OF_A_BIN = 10


def proxy_check(
    sample: Sample, labelled: BoolArray, estimate: Estimate, confidence_level: float = 0.95
) -> JsonDict | None:
    """Return the calibration of the first proxy; None if there is none on the scale of the outcome.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
        The drawn units that the estimate used.
    estimate : Estimate
    confidence_level : float

    Returns
    -------
    dict
        `proxy`; `bias`, the mean of proxy minus label with its interval; `bins`, each with `from`, `to`, `n`,
        `proxy_mean`, `outcome_mean` and its `confidence_interval`; `correlations` of each proxy with the
        labels; `left_open`, the variance of the residuals divided by that of the labels. Bins have about
        equal numbers of labels; all means are weighted by the design.
    """
    z = estimate.evidence.z
    weighting = estimate.evidence.weighting
    if not _has_proxy_of_outcome(sample, estimate) or int(labelled.sum()) != len(z):
        return None
    # Weights that are fitted to margins may be negative.
    proxy = sample.proxies[labelled, 0]
    weights = np.maximum(weighting.weights, 0.0)
    bias = None
    # A single label has no interval.
    with suppress(InputError):
        mean = mean_without_proxy(
            proxy - z, weighting, outcome="unbounded", target=estimate.target, design=estimate.design
        )
        bias = {"estimate": mean.value, "confidence_interval": [*mean.confidence_interval(confidence_level)]}
    covariance = np.cov(estimate.evidence.residuals, z, aweights=weights, ddof=0)
    residual_variance, outcome_variance = np.diag(covariance).tolist()
    unexplained_share = None
    if outcome_variance > 0:
        unexplained_share = residual_variance / outcome_variance
    columns = zip(sample.proxy_info, sample.proxies[labelled].T, strict=True)
    correlations = [
        {"proxy": info.name, "correlation": _correlation(column, z, weights)} for info, column in columns
    ]
    return json_dict(
        {
            "proxy": sample.proxy_info[0].name,
            "bias": bias,
            "bins": _calibration_bins(proxy, estimate, confidence_level),
            "correlations": correlations,
            "left_open": unexplained_share,
        }
    )


def _calibration_bins(proxy: FloatArray, estimate: Estimate, confidence_level: float) -> list[JsonDict]:
    """Return the mean proxy and the mean outcome in bins of the labelled units by their proxy (m,)."""
    z = estimate.evidence.z
    weighting = estimate.evidence.weighting
    values = np.sort(proxy)
    count = max(1, min(PROXY_BINS, len(z) // MIN_LABELS_OF_A_BIN))
    cuts = values[[(k * len(values)) // count for k in range(1, count)]]
    # With tied scores, cuts may be equal, and there are fewer bins.
    code = np.searchsorted(np.unique(cuts), proxy, side="right")
    bins = []
    for k in np.unique(code):
        member = code == k
        outcome = domain_mean(z, member, weighting, bounds=estimate.bounds, target=estimate.target)
        bins.append(
            {
                "from": float(proxy[member].min()),
                "to": float(proxy[member].max()),
                "n": int(member.sum()),
                "proxy_mean": domain_mean(proxy, member, weighting).value,
                "outcome_mean": outcome.value,
                "confidence_interval": outcome.limits(confidence_level),
            }
        )
    return bins


def _correlation(proxy: FloatArray, z: FloatArray, weights: FloatArray) -> float | None:
    """Return the weighted correlation of a proxy (n,) with labels (n,); None if one of them is constant."""
    covariance = np.cov(proxy, z, aweights=weights, ddof=0)
    product = covariance[0, 0] * covariance[1, 1]
    if product > 0:
        return float(covariance[0, 1] / np.sqrt(product))
    return None


# Names of the rows.
REPORTED = "with the design"
NAIVE = "labels, unweighted"
PROXY = "proxy alone"
WEIGHTED = "labels alone, weighted"


def compare_estimators(
    sample: Sample, estimate: Estimate, confidence_level: float = 0.95, method: str = "auto"
) -> list[JsonDict]:
    """Return estimates from the same labels: unweighted, proxy only, weighted without proxy, and reported.

    Parameters
    ----------
    sample : Sample
    estimate : Estimate
        The reported estimate.
    confidence_level : float
    method : str
        Method of the reported interval.

    Returns
    -------
    list of dict
        `name`, `estimate`, `confidence_interval` (or None), `what`, `reported`.
    """
    evidence = estimate.evidence
    options = {"outcome": estimate.outcome, "bounds": estimate.bounds}
    n = len(evidence.z)
    one_stratum = np.zeros(n, np.int64)
    size = max(estimate.population_size, n)
    equal_weighting = StratifiedWeighting(stratum=one_stratum, sizes=np.array([size]))
    naive = mean_without_proxy(
        evidence.z, equal_weighting, target=estimate.target, design="simple-random", **options
    )
    description = "their plain mean, as if all units had had the same probability of selection"
    rows = [_row(NAIVE, naive.value, naive.limits(confidence_level), description)]
    if _has_proxy_of_outcome(sample, estimate):
        proxy = float(sample.summary.overall_means[0])
    else:
        proxy = np.nan
    if np.isfinite(proxy):
        description = (
            "its mean over all units; without labels, there is no interval, and the proxy's error remains"
        )
        rows.append(_row(PROXY, proxy, None, description))
    if evidence.uses_proxy:
        weighted = mean_without_proxy(
            evidence.z, evidence.weighting, target=estimate.target, design=estimate.design, **options
        )
        ends = weighted.limits(confidence_level)
        rows.append(_row(WEIGHTED, weighted.value, ends, "weighted by the design, without the proxy"))
    description = "weighted by the design" + (", with the proxy" if evidence.uses_proxy else "")
    ends = estimate.limits(confidence_level, method)
    return [*rows, _row(REPORTED, estimate.value, ends, description) | {"reported": True}]


def _has_proxy_of_outcome(sample: Sample, estimate: Estimate) -> bool:
    """Return whether the first proxy is on the scale of the outcome, so that its mean is meaningful.

    Ratings from 1 to 5 are not on the scale of outcomes 0 and 1, and probabilities not on that of ratings.
    """
    if not sample.proxy_info or not sample.proxy_info[0].scaled:
        return False
    values = sample.proxies[:, 0]
    outcomes = estimate.outcomes
    bounds_of_proxy = sample.proxy_info[0].bounds
    is_proxy_within = _are_within(values, estimate.bounds)
    return is_proxy_within and (outcomes is None or _are_within(outcomes, bounds_of_proxy))


def _are_within(values: FloatArray, bounds: tuple[float, float] | None) -> bool:
    """Return whether all values (n,) lie within bounds; True without bounds."""
    return bounds is None or bool(np.all((values >= bounds[0]) & (values <= bounds[1])))


def _row(name: str, value: float, ends: object, description: str) -> JsonDict:
    """Return one estimate of the comparison as a plain dict."""
    return json_dict(
        {"name": name, "estimate": value, "confidence_interval": ends, "what": description, "reported": False}
    )
