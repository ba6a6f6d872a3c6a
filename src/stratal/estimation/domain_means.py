"""The mean of a domain, such as a group or a predicted class, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray, unit_scale
from stratal.designs import StratifiedWeighting, Weighting
from stratal.designs.group_clusters import GroupClusters
from stratal.estimation.estimate import Estimate, linearised_estimate, undefined_estimate
from stratal.estimation.linearised import Linearised, ratio_of_means
from stratal.estimation.mover import ShareFunctionInterval
from stratal.estimation.outcome_means import mean_without_proxy
from stratal.estimation.pooled_pseudo_labels import smooth_labels
from stratal.estimation.share_estimates import cell_correlation, share_estimate
from stratal.estimation.share_functions import FirstOfTwo
from stratal.intervals.evidence import Evidence
from stratal.intervals.guards import LABELS_AT_THE_BOUNDS, remaining_share
from stratal.intervals.interval import Interval, error_probabilities
from stratal.intervals.interval_types import BinomialInterval, StudentInterval, UndefinedInterval
from stratal.intervals.methods import interval_of
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson
from stratal.whole_numbers import rounded_up


def domain_mean(
    z: FloatArray,
    member: BoolArray,
    weighting: Weighting,
    *,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
    proxy_residuals: tuple[FloatArray, float] | None = None,
    is_whole_strata: bool = False,
) -> Estimate:
    """Return the mean of z over the units of one domain.

    Parameters
    ----------
    z : float (n,)
    member : bool (n,)
    weighting : Weighting
        The weighting of all labelled units.
    bounds : (float, float), optional
        Bounds of z. With bounds, the interval of a domain of whole strata is that of their mean, and that of
        other domains is Clopper–Pearson's at an effective number of trials, which is finite even if all
        labels are equal. Without bounds, it is Student's t with at most m − 1 degrees of freedom for m
        labels.
    target : {"population", "superpopulation"}
    proxy_residuals : (float (n,), float), optional
        Residuals of z on the proxy, with the same mean over the domain as z, and the factor by which fitting
        λ increases their variance; see `estimation.mean_estimates.domain_residuals`. Their share of the
        variance of z is estimated from the labels of the domain, and shrunk towards 1 if there are few.
    is_whole_strata : bool
        Whether the domain is known to be one or several whole strata. Otherwise, units without labels in
        other strata may belong to it.
    """
    inside = member.astype(np.float64)
    n = int(member.sum())
    if n == 0:
        return undefined_estimate(weighting, 0, bounds, "no labelled unit", target=target)
    clusters = weighting.sampled_clusters(member)
    result = ratio_of_means(inside * z, inside, weighting, target, member)
    if clusters is not None and clusters.degrees_of_freedom == 0.0:
        unknown = replace(result, design_variance=np.nan)
        return estimate_without_interval(unknown, clusters, weighting, member, bounds, target)
    outcomes = result.variable
    # With one label, the share of the variance that the proxy explains is unknown.
    if n == 1:
        proxy_residuals = None
    residual_share = 1.0
    if proxy_residuals is not None:
        draws = n if clusters is None else clusters.count
        result, residual_share = _mean_of_residuals(
            result, proxy_residuals, z, member, weighting, target, bounds, draws
        )
    variance = result.design_variance
    if clusters is None:
        max_df = n - 1.0 if bounds is None else float(n)
        df = max(min(result.degrees_of_freedom, max_df), 1.0)
        # The variance of deviations from an estimated mean has the divisor n − 1.
        correction = n / (n - 1) if n > 1 else np.inf
    else:
        df = clusters.degrees_of_freedom
        correction = weighting.few_clusters_factor(result.variable, member)
    value = float(result.value if bounds is None else np.clip(result.value, *bounds))
    is_binary = bounds is not None and bool(np.all(np.isin(z[member], bounds)))
    domain_weighting = _weighting_of_domain(
        member, weighting, is_binary=is_binary, is_whole_strata=is_whole_strata
    )
    reported_error = float(np.sqrt(max(variance + result.population_variance, 0.0)))
    interval: Interval
    if bounds is None:
        error = np.nan
        if n > 1:
            error = _corrected_error(result, correction)
        interval = StudentInterval(value=value, standard_error=error, degrees_of_freedom=df)
    elif domain_weighting is not None:
        evidence = _evidence_of_random_sample(
            z[member], domain_weighting, bounds, target, is_binary=is_binary
        )
        if proxy_residuals is not None:
            residuals = proxy_residuals[0][member]
            evidence = _evidence_with_proxy(evidence, value, residuals, residual_share)
        interval = _DomainSampleInterval(value=value, bounds=bounds, evidence=evidence)
        reported_error = float(np.sqrt(evidence.reported_variance))
    else:
        variance_of_labels = variance / residual_share
        # The binomial distribution needs no correction.
        if not is_binary or clusters is not None:
            variance_of_labels *= correction
        trials, smoothed_variance = domain_trials(z, inside, weighting, bounds, variance_of_labels)
        interval = _trials_interval(
            value, z, inside, weighting, target, bounds, clusters, trials / residual_share, residual_share
        )
        if not (reported_error > 0):
            reported_error = float(np.sqrt(smoothed_variance * residual_share))
    return linearised_estimate(
        replace(result, value=value),
        weighting,
        interval=interval,
        target=target,
        n=n,
        member=member,
        outcomes=outcomes,
        standard_error=reported_error,
        degrees_of_freedom=df,
    )


def _corrected_error(result: Linearised, correction: float) -> float:
    """Return the standard error with a factor on the design variance, which 0 does not need."""
    if not result.design_variance > 0:
        return float(np.sqrt(result.variance))
    return float(np.sqrt(result.design_variance * correction + result.population_variance))


def _mean_of_residuals(
    result: Linearised,
    proxy_residuals: tuple[FloatArray, float],
    z: FloatArray,
    member: BoolArray,
    weighting: Weighting,
    target: str,
    bounds: tuple[float, float] | None,
    draws: int,
) -> tuple[Linearised, float]:
    """Return the mean of a domain from its residuals (n,), and their share of the variance of z.

    `result` is the mean without a proxy; for the other parameters, see `domain_mean` and `_residual_share`.
    """
    residuals, variance_factor = proxy_residuals
    inside = member.astype(np.float64)
    mean = ratio_of_means(inside * residuals, inside, weighting, target, member)
    with_proxy = mean.design_variance * variance_factor
    share = _residual_share(with_proxy, result.design_variance, z[member], bounds, draws)
    mean = replace(
        mean,
        population_variance=result.population_variance,
        design_variance=share * result.design_variance,
    )
    return mean, share


def _evidence_of_random_sample(
    z: FloatArray, weighting: Weighting, bounds: tuple[float, float], target: str, *, is_binary: bool
) -> Evidence:
    """Return the evidence of a domain's mean without a proxy; its labels z (m,) are a random sample of it."""
    outcome = "binary" if is_binary and bounds == (0.0, 1.0) else "bounded"
    return mean_without_proxy(z, weighting, outcome=outcome, bounds=bounds, target=target).evidence


def _evidence_with_proxy(
    evidence: Evidence, value: float, residuals: FloatArray, residual_share: float
) -> Evidence:
    """Return the evidence of a domain's mean with the value, residuals (m,) and variance by a proxy."""
    design_variance = residual_share * (evidence.variance - evidence.population_part)
    return replace(
        evidence,
        value=value,
        variance=design_variance + evidence.population_part,
        residuals=residuals,
        uses_proxy=True,
    )


def _weighting_of_domain(
    member: BoolArray, weighting: Weighting, *, is_binary: bool, is_whole_strata: bool
) -> Weighting | None:
    """Return the weighting of a domain whose labels are a random sample of it; None for other domains."""
    if not weighting.random_within_strata:
        return None
    if np.all(member):
        return weighting
    of_strata = weighting.complete_strata_weighting(member, is_whole_strata=is_whole_strata)
    if of_strata is None and not is_binary:
        return _simple_random_part(member, weighting)
    return of_strata


def _simple_random_part(member: BoolArray, weighting: Weighting) -> StratifiedWeighting | None:
    """Return the weighting of a domain of a simple random sample: a simple random sample of the domain.

    The size of the domain is estimated from its share of the labels. None if several strata have labels.
    """
    if not isinstance(weighting, StratifiedWeighting) or np.sum(weighting.counts > 0) > 1:
        return None
    labelled = int(member.sum())
    units = rounded_up(weighting.population_size * labelled / len(member))
    sizes = np.array([max(units, labelled)])
    return replace(weighting, stratum=np.zeros(labelled, dtype=np.int64), sizes=sizes)


def _residual_share(
    with_proxy: float,
    without_proxy: float,
    z: FloatArray,
    bounds: tuple[float, float] | None,
    draws: int,
) -> float:
    """Return the share of the variance of a domain's mean that the proxy leaves, shrunk to 1.

    `with_proxy` and `without_proxy` are the variances, `z` (m,) the labels of the domain, and `draws` the
    number of labels, or of clusters if clusters were drawn.
    """
    if bounds is None:
        return float(remaining_share(without_proxy, with_proxy, float(draws)))
    mean = float(np.mean(unit_scale(z, bounds)))
    n = draws
    scale = bounds[1] - bounds[0]
    smooth = (n * mean + LABELS_AT_THE_BOUNDS) / (n + 2.0 * LABELS_AT_THE_BOUNDS)
    smooth_variance = smooth * (1.0 - smooth) / n * scale**2
    # Labels that are nearly all equal contain little information about the variance.
    informative_draws = 4.0 * n * mean * (1.0 - mean)
    return float(remaining_share(without_proxy, with_proxy, informative_draws, smooth_variance))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DomainSampleInterval(Interval):
    """The interval of a domain whose labels are a random sample of it, such as a domain of whole strata."""

    evidence: Evidence

    method = "stratified-clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        interval = interval_of(self.evidence, confidence_level, "auto", alternative)
        return self.clip_to_bounds(interval.low, interval.high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FinitePopulationInterval(Interval):
    """The interval of a domain at an effective number of trials, with a finite population correction.

    With several strata, the ends are the outer ones of this interval and `interval_of_two_shares`, because
    one number of trials does not account for strata with different rates. `labelled` and `units` are the
    numbers of labelled and of all units of the domain, and `residual_share` is the share of the variance that
    the proxy leaves.
    """

    trials: float
    labelled: int
    units: float
    interval_of_two_shares: ShareFunctionInterval | None
    residual_share: float

    method = "clopper-pearson"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        bounds = self.bounds or (0.0, 1.0)
        scale = bounds[1] - bounds[0]
        trials = np.array([self.trials])
        # At least one unit is unlabelled, because a completely labelled domain would have no trials.
        unlabelled_share = max(1.0 - self.labelled / self.units, 1.0 / self.units)
        unit = np.clip(unit_scale(self.value, bounds), 0.0, 1.0)
        rates = StratumRates(
            value=unit,
            rates=unit[None],
            counts=trials * unlabelled_share,
            trials=trials,
            shares=np.ones(1),
            units=self.units,
        )
        tails = error_probabilities(confidence_level, alternative)
        low_rate, high_rate = stratified_clopper_pearson(rates, *tails)
        low = bounds[0] + scale * float(low_rate)
        high = bounds[0] + scale * float(high_rate)
        if self.interval_of_two_shares is not None:
            share = self.interval_of_two_shares.value
            low_share, high_share = self.interval_of_two_shares.ends(confidence_level, alternative)
            # `interval_of_two_shares` does not use the proxy, which reduces the variance to this share.
            factor = scale * math.sqrt(self.residual_share)
            low = min(low, self.value - factor * (share - low_share))
            high = max(high, self.value + factor * (high_share - share))
        return self.clip_to_bounds(min(low, self.value), max(high, self.value))


def _trials_interval(
    value: float,
    z: FloatArray,
    inside: FloatArray,
    weighting: Weighting,
    target: str,
    bounds: tuple[float, float],
    clusters: GroupClusters | None,
    trials: float,
    residual_share: float,
) -> Interval:
    """Return the interval of a domain's mean at an effective number of binary trials.

    `inside` (n,) is 1 for the units of the domain, and `residual_share` is the share of the variance that the
    proxy leaves.
    """
    units = float(weighting.weights @ inside) / weighting.total * weighting.population_size
    if target == "superpopulation":
        # The units of the domain are independent trials of the superpopulation, and limit the number.
        trials = 1.0 / (1.0 / trials + 1.0 / units)
    interval = BinomialInterval(value=value, bounds=bounds, trials=trials)
    if clusters is not None:
        interval = adjust_for_few_clusters(interval, clusters)
    if target != "population" or not np.isfinite(trials) or not weighting.random_within_strata:
        return interval
    interval_of_two_shares = None
    if np.sum(weighting.counts > 0) > 1:
        interval_of_two_shares = two_sum_interval(unit_scale(z, bounds), inside, weighting)
    return _FinitePopulationInterval(
        value=value,
        bounds=bounds,
        trials=trials,
        labelled=int(inside.sum()),
        units=float(rounded_up(units)),
        interval_of_two_shares=interval_of_two_shares,
        residual_share=residual_share,
    )


def domain_trials(
    z: FloatArray, inside: FloatArray, weighting: Weighting, bounds: tuple[float, float], variance: float
) -> tuple[float, float]:
    """Return the number of independent trials with the variance of the domain's mean, and this variance.

    `inside` (n,) is 1 for the units of the domain. The variance is the larger one of `variance` and that of
    labels smoothed with half a label at each bound.
    """
    weights = weighting.weights * inside
    label_weight = float(np.sum(weights**2) / np.sum(weights))
    smoothing = smooth_labels(weighting, np.full(2, label_weight / 2), inside)
    outcomes = np.append(unit_scale(z, bounds), [0.0, 1.0])
    counted = np.append(inside, [1.0, 1.0])
    domain_weight = float(smoothing.weights @ counted)
    value = float(smoothing.weights @ (counted * outcomes)) / domain_weight
    smoothed_variance = smoothing.variance(counted * (outcomes - value) / domain_weight)
    # Smoothing adds weight to the domain. This factor undoes the effect on the variance of the domain's mean.
    smoothed_variance *= max(domain_weight / float(np.sum(weights)), 1.0) ** 2
    scale = (bounds[1] - bounds[0]) ** 2
    largest = smoothed_variance
    if np.isfinite(variance):
        largest = max(largest, variance / scale)
    if largest > 0:
        return value * (1.0 - value) / largest, largest * scale
    return np.inf, 0.0


def two_sum_interval(
    unit: FloatArray, inside: FloatArray, weighting: Weighting, target: str = "population"
) -> ShareFunctionInterval:
    """Return the interval of the mean u / (u + v) of a domain, from the shares u of ones and v of zeros.

    It is necessary because the effective trials, of all strata together, do not account for a stratum with
    few unlabelled units whose labels are all equal: the coverage of 95% intervals was 0.80. `unit` (n,) are
    the outcomes on the 0–1 scale, and `inside` (n,) is 1 for the units of the domain.
    """
    sums = np.stack([inside * unit, inside * (1.0 - unit)])
    rates = [share_estimate(row, weighting, target) for row in sums]
    units = weighting.population_size if target == "population" else np.inf
    return ShareFunctionInterval.of(FirstOfTwo(), rates, cell_correlation(sums, weighting, target), units)


def estimate_without_interval(
    result: Linearised,
    clusters: GroupClusters,
    weighting: Weighting,
    member: BoolArray,
    bounds: tuple[float, float] | None,
    target: str,
) -> Estimate:
    """Return the estimate of a group with members (n,) in too few clusters: no stratum has two of them."""
    return linearised_estimate(
        result,
        weighting,
        interval=UndefinedInterval(value=result.value, bounds=bounds),
        target=target,
        n=int(member.sum()),
        member=member,
        standard_error=float("nan"),
        degrees_of_freedom=0.0,
        remarks=(_no_interval_note(clusters),),
    )


def _no_interval_note(clusters: GroupClusters) -> str:
    """Return why there is no interval for a group in these clusters."""
    location = "1 cluster"
    if clusters.count > 1:
        location = f"{clusters.count} clusters, each in a stratum of its own"
    return f"no interval: the labels that count are in {location}, so they do not show how clusters differ"


# Weight, in clusters, of a prior under which a cluster contains as much information as one unit. For 30
# clusters and a rate of 0.97, the coverage is 0.99 with half a cluster, and 0.86 without the prior.
_PRIOR_CLUSTERS = 0.5


def adjust_for_few_clusters(interval: BinomialInterval, clusters: GroupClusters) -> BinomialInterval:
    """Return the interval of a share in few clusters: fewer trials, and the df of the clusters.

    Clusters with (nearly) equal labels provide little information on the similarity of units within clusters.
    The weight of a cluster is therefore 4 p (1 − p). At worst, it contains as much information as one unit.
    """
    share = float(np.clip(unit_scale(interval.value, interval.bounds or (0.0, 1.0)), 0.0, 1.0))
    information = 4.0 * (clusters.count - 1.0) * share * (1.0 - share)
    prior = _PRIOR_CLUSTERS / clusters.effective_count
    trials = (information + _PRIOR_CLUSTERS) / (information / interval.trials + prior)
    return replace(interval, trials=trials, degrees_of_freedom=clusters.degrees_of_freedom)
