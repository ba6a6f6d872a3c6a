"""The mean of one outcome of each labelled unit, from what is known of the outcome, λ and weights."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, checked_labels
from stratal.designs import Weighting
from stratal.designs.given import SeparateSamples
from stratal.designs.sample import Sample
from stratal.designs.stratum_moments import stratum_counts, stratum_covariances, stratum_means
from stratal.estimation.calibrated import Calibrating, sample_folds, with_calibrated
from stratal.estimation.columns import LabelOutcomes
from stratal.estimation.estimate import Estimate, Nonresponse, StratumRow, empty_strata_notes
from stratal.estimation.lam import ProxyMoments
from stratal.estimation.mean import (
    EstimateOptions,
    MeanEstimate,
    UnlabelledMoments,
    mean_estimate,
    refuse_folds,
    separate_mean,
    separate_options,
)
from stratal.estimation.notes import promise_notes, size_notes, tail_notes
from stratal.estimation.request import Request
from stratal.estimation.respondents import (
    Respondents,
    known_outcome,
    proxy_columns,
    refuse_outside,
    resolved,
    worst_bounds,
)
from stratal.intervals.evidence import Evidence, design_effect

if TYPE_CHECKING:
    from stratal.population.summary import StratumSummary

_AUTO = EstimateOptions()


def outcome_mean(sample: Sample, found: LabelOutcomes, request: Request) -> Estimate:
    """Return the mean of the outcomes of the labelled units, with all that `request` asks for."""
    z, labelled = found.z, found.labelled
    outcome, bounds = request.outcome, request.bounds
    declared = "unbounded" if sample.outcome == "unbounded" and bounds is None else None
    refuse_outside(z, sample.ids[labelled], outcome or declared, bounds)
    frame = Respondents.of(sample, labelled)
    outcome, bounds, remarks = known_outcome(sample, z, outcome, bounds, found)
    options = EstimateOptions(
        estimator=request.estimator,
        target=request.target,
        stratum_weights_known=request.stratum_weights_known,
        outcome=outcome,
        bounds=bounds,
        lam=request.lam,
        clip=request.clip,
        design=sample.design.kind,
        drawn=len(labelled),
        notes=(*frame.notes, *found.notes, *remarks),
    )
    if isinstance(sample.design, SeparateSamples):
        refuse_folds(request.cross_fit, request.calibration)
        return _of_separate_samples(sample, sample.design, labelled, z, options)
    column = proxy_columns(sample, request.proxy)
    proxies, summary = sample.proxies[labelled][:, column], frame.summary_of(column)
    scaled = all(sample.proxy_info[c].scaled for c in column)
    folds = None if request.cross_fit is None else sample_folds(sample, labelled, frame, request.cross_fit)
    options = replace(options, scaled=scaled, folds=folds, stratum_names=frame.names)
    if request.calibration is not None or request.features is not None:
        how = Calibrating(
            column=column,
            method=request.calibration,
            features=request.features,
            population=request.population,
        )
        calibrated, options = with_calibrated(sample, labelled, frame, z, how, options)
        proxies, summary = calibrated.values, calibrated.summary
    made = estimate_mean(z, proxies, frame.weighting, summary, stratum=frame.stratum, options=options)
    ends = worst_bounds(sample, labelled, z, made.bounds)
    return replace(
        made,
        nonresponse=replace(made.nonresponse, worst_bounds=ends),
        doubts=partial(promise_notes, sample, labelled),
    )


def _of_separate_samples(
    sample: Sample, design: SeparateSamples, labelled: BoolArray, z: FloatArray, options: EstimateOptions
) -> Estimate:
    """Return the estimate where the unlabelled units are a sample of their own."""
    weighting, proxies = design.weighting(sample, labelled), sample.proxies[labelled]
    options = separate_options(replace(options, stratum_names=design.names), len(z))
    options = resolved(z, options, weighting, proxies.shape[1])
    unlabelled = UnlabelledMoments(
        counts=design.counts, means=design.means[:, None], covariances=design.variances[:, None, None]
    )
    stratum = weighting.stratum
    result = separate_mean(z, proxies, stratum, shares=design.shares, unlabelled=unlabelled, options=options)
    return assemble(z, None, weighting, stratum, result, options)


def estimate_mean(
    z: Any,
    proxies: Any,
    weighting: Weighting,
    summary: StratumSummary | None,
    *,
    stratum: IntArray,
    options: EstimateOptions = _AUTO,
    **changed: Any,
) -> Estimate:
    """Estimate the mean of z over the population from its labelled units.

    Parameters
    ----------
    z : float (n,)
        Outcome of the labelled units.
    proxies : float (n, k)
        Their proxies; k may be 0.
    weighting : Weighting
        The design, realised on the labelled units.
    summary : StratumSummary, optional
        Sizes and proxy moments of the population per stratum; None where there is no proxy.
    stratum : int (n,)
        Stratum of the labelled units, 0 … H − 1.
    options : EstimateOptions
    changed
        Fields of the options that differ.

    Raises
    ------
    InputError
        For labels that are not finite numbers or leave the bounds, and for estimators that lack what they
        need.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> h = np.array([0, 0, 1, 1])
    >>> weighting = StratifiedWeighting(stratum=h, sizes=np.array([10, 30]))
    >>> estimate_mean([0, 1, 1, 1], np.zeros((4, 0)), weighting, None, stratum=h).value
    0.875
    """
    z, proxies, stratum = checked_labels(z, proxies, stratum)
    options = replace(options, **changed)
    options = resolved(z, options, weighting, 0 if summary is None else proxies.shape[1])
    proxy = None
    if summary is not None:
        proxy = ProxyMoments(
            values=proxies,
            stratum=stratum,
            sizes=summary.sizes,
            means=summary.proxy_means,
            covariances=summary.proxy_covariances,
        )
        if options.estimator == "post-stratified":
            weighting = weighting.post_stratified(stratum, summary.sizes)
    result = mean_estimate(z, proxy, weighting=weighting, options=options)
    return assemble(z, proxy, weighting, stratum, result, options)


def assemble(
    z: FloatArray,
    proxy: ProxyMoments | None,
    weighting: Weighting,
    stratum: IntArray,
    result: MeanEstimate,
    options: EstimateOptions,
) -> Estimate:
    """Return the estimate that a mean makes; its outcome and estimator must be decided.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> z, h = np.array([0.0, 1.0]), np.array([0, 0])
    >>> weighting = StratifiedWeighting(stratum=h, sizes=np.array([10]))
    >>> options = resolved(z, EstimateOptions(), weighting, 0)
    >>> assemble(z, None, weighting, h, mean_estimate(z, weighting=weighting), options).value
    0.5
    """
    evidence = _evidence(z, weighting, result, options)
    variance, size = evidence.reported_variance, weighting.population_size
    known = evidence.varies or evidence.census
    effect, effective = design_effect(
        variance if known else np.nan, evidence.population_spread, len(z), size, options.target
    )
    lam = result.lam
    rows = strata_table(z, proxy, weighting, stratum, lam, options.stratum_names)
    return Estimate(
        value=evidence.value,
        standard_error=float(np.sqrt(variance)),
        degrees_of_freedom=result.degrees_of_freedom,
        n=len(z),
        population_size=round(size),
        target=options.target,
        design=options.design,
        estimator=options.estimator if options.lam is None else "difference (given λ)",
        outcome=evidence.outcome,
        bounds=evidence.bounds,
        lam=tuple(float(v) for v in lam[0]) if np.any(lam) and np.all(lam == lam[0]) else (),
        nonresponse=Nonresponse(drawn=options.drawn or len(z), labelled=len(z)),
        strata=rows,
        design_effect=effect,
        effective_sample_size=effective,
        remarks=(
            *options.notes,
            *result.notes,
            *(empty_strata_notes(rows) if any(not row.n for row in rows) else ()),
            *(tail_notes(evidence, proxy) if evidence.bounds is None else ()),
            *size_notes(evidence),
        ),
        evidence=evidence,
    )


def _evidence(
    z: FloatArray, weighting: Weighting, result: MeanEstimate, options: EstimateOptions
) -> Evidence:
    """Return what the interval methods see of a mean."""
    assert options.outcome is not None
    return Evidence(
        value=result.value if options.bounds is None else float(np.clip(result.value, *options.bounds)),
        variance=result.variance,
        population_part=result.population_variance,
        degrees_of_freedom=result.degrees_of_freedom,
        outcome=options.outcome,
        bounds=options.bounds,
        z=z,
        residuals=result.residuals,
        known=result.known,
        weighting=weighting,
        tuned=bool(np.any(result.lam)),
        superpopulation=options.target == "superpopulation",
        stratum_weights_known=options.stratum_weights_known,
    )


def strata_table(
    z: FloatArray,
    proxy: ProxyMoments | None,
    weighting: Weighting,
    stratum: IntArray,
    lam: FloatArray,
    names: tuple[str, ...] | None,
) -> tuple[StratumRow, ...]:
    """Return one row per stratum; the outcome's mean and spread are those of its own labels.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0]), sizes=np.array([10]))
    >>> strata_table(np.array([0.0, 1.0]), None, weighting, np.array([0, 0]), np.zeros((1, 0)), None)[0].mean
    0.5
    """
    sizes = _stratum_sizes(weighting, proxy)
    n_strata = len(sizes)
    if n_strata == 1:
        stratum = np.zeros(len(z), dtype=np.int64)
    counts = stratum_counts(stratum, n_strata)
    means = stratum_means(z[:, None], stratum, n_strata)[:, 0]
    spreads = np.sqrt(stratum_covariances(z[:, None], stratum, n_strata)[:, 0, 0])
    known = np.array([means, spreads]).astype(object)
    known[~np.isfinite([means, spreads])] = None
    numbered = ("all",) if n_strata == 1 else tuple(str(h) for h in range(n_strata))
    given = names if names is not None and len(names) == n_strata else numbered
    by_stratum = np.broadcast_to(lam, (n_strata, lam.shape[1])) if len(lam) in (1, n_strata) else lam
    columns = (sizes, counts, known[0], known[1], sizes / np.sum(sizes), by_stratum)
    return tuple(
        StratumRow(
            name=name,
            size=round(size),
            n=n,
            mean=mean,
            standard_deviation=spread,
            weight=weight,
            lam=tuple(own),
        )
        for name, size, n, mean, spread, weight, own in zip(
            given, *(column.tolist() for column in columns), strict=True
        )
    )


def _stratum_sizes(weighting: Weighting, proxy: ProxyMoments | None) -> FloatArray:
    if weighting.random_within_strata:
        return np.asarray(weighting.sizes, dtype=np.float64)
    if proxy is not None:
        return np.asarray(proxy.sizes, dtype=np.float64)
    return np.array([weighting.population_size])
