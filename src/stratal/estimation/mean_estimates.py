"""Estimates of means from labels: of all units, by group, and of several outcomes.

`means` has the estimands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stratal.arrays import NO_DIVISOR, AnyArray, BoolArray, FloatArray
from stratal.designs.sample import Sample
from stratal.designs.weighting import Weighting
from stratal.errors import check_choice, finite_bounds, list_first
from stratal.estimation.composite import composite
from stratal.estimation.default_estimator import MINIMUM_FOR_FITTING
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimand import Request
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.group_means import (
    MAX_STORED_GROUPS,
    GroupMeans,
    group_codes,
    levels_of_whole_strata,
)
from stratal.estimation.labelled_units import LabelledUnits, resolve
from stratal.estimation.lam import domain_lam
from stratal.estimation.outcome_means import outcome_mean
from stratal.estimation.resolve import named_columns, named_groups
from stratal.estimation.respondents import Respondents, known_outcome
from stratal.intervals.interval import UNSEEN_PROBABILITY, max_unseen_share
from stratal.intervals.outcomes import infer_outcome


def mean_of_labels(sample: Sample, labels: object, request: Request) -> Estimate:
    """Return the mean of the outcome; outcomes beyond the limits of the request count as the limit."""
    question = sample.question.refine(predicted=request.predicted)
    units = resolve(question, sample, labels, combine=request.combine)
    limits = request.limits
    if limits is None:
        return outcome_mean(sample, units, request)
    winsorised = units.with_outcomes(winsorise(units.z, limits))
    estimate = outcome_mean(sample, winsorised, replace(request, outcome="bounded", bounds=limits))
    return replace(estimate, remarks=(_winsorised_note(estimate, units.z, limits), *estimate.remarks))


def means_by_group(sample: Sample, labels: object, group: object, request: Request) -> Estimates:
    """Return the mean of each group; `group` is a column, or the group of each drawn unit."""
    question = sample.question.refine(predicted=request.predicted)
    units = resolve(question, sample, labels, combine=request.combine)
    groups, names = named_groups(sample, group)
    if request.limits is not None:
        units = units.with_outcomes(winsorise(units.z, request.limits))
        request = replace(request, outcome="bounded", bounds=request.limits)
    estimates = group_means(sample, units, group, groups, names, request)
    notes = (*_undrawn_group_notes(sample, group, names), *units.outcomes.notes)
    return replace(estimates, remarks=(*estimates.remarks, *notes))


def means_of_outcomes(sample: Sample, labels: object, outcomes: Sequence[str], target: str) -> Estimates:
    """Return the mean of each outcome, only with weights; `labels` maps the outcomes to their labels."""
    z, labelled = named_columns(sample, labels, outcomes)
    respondents = Respondents.of(sample, labelled)
    all_units = np.ones(len(z), dtype=bool)
    rows = []
    for name, column in zip(outcomes, z.T, strict=True):
        outcome, known_bounds, _ = known_outcome(sample, column, labelled=labelled)
        _, bounds = infer_outcome(column, outcome, known_bounds)
        estimate = domain_mean(column, all_units, respondents.weighting, bounds=bounds, target=target)
        rows.append(respondents.complete(estimate, sample, label={"outcome": name}))
    return Estimates.from_rows(sample, rows, "outcomes", respondents.notes)


def winsorise(z: FloatArray, limits: tuple[float, float]) -> FloatArray:
    """Return the outcomes (m,), with each outcome beyond a limit replaced by this limit."""
    limits = finite_bounds(limits, "limits")
    return np.clip(z, *limits)


def _winsorised_note(estimate: Estimate, z: FloatArray, limits: tuple[float, float]) -> str:
    """Return the note on the effect of the limits."""
    low, high = limits
    n_beyond = int(np.sum((z < low) | (z > high)))
    weighting = estimate.evidence.weighting
    change = float(weighting.weights @ (np.clip(z, low, high) - z)) / weighting.total
    labelled_share = len(z) / weighting.population_size
    unseen = float(max_unseen_share(weighting.effective_draws, labelled_share, UNSEEN_PROBABILITY))
    return (
        f"values outside {low:g} to {high:g} count as the limit ({n_beyond} of {len(z)} labels), which moves "
        f"the mean by {change:+.4g}. The mean without limits differs by this much, or by more if units that "
        f"no labelled unit resembles (at most {unseen:.1%} of all units) are also outside the limits"
    )


def group_means(
    sample: Sample,
    units: LabelledUnits,
    group: object,
    groups: AnyArray,
    names: Sequence[str],
    request: Request,
) -> Estimates:
    """Return the mean of each named group; `groups` (n,) are the groups of the drawn units."""
    check_choice("estimator of groups", request.estimator, _ESTIMATORS_OF_GROUPS)
    z = units.z
    respondents = units.respondents
    groups = groups[units.labelled]
    outcome, known_bounds, _ = known_outcome(sample, z, request.outcome, request.bounds, units.outcomes)
    _, bounds = infer_outcome(z, outcome, known_bounds)
    fitted = None
    if request.estimator != "horvitz-thompson":
        fitted = domain_residuals(sample, group, units.labelled, z, groups, respondents.weighting)
    proxy_residuals = None
    lam: dict[str, tuple[float, ...]] = {}
    if fitted is not None:
        residuals, variance_factor, lam = fitted
        proxy_residuals = residuals, variance_factor
    rows: Sequence[Estimate] = GroupMeans(
        z=z,
        codes=group_codes(groups.tolist(), names),
        names=tuple(names),
        sample=sample,
        respondents=respondents,
        bounds=bounds,
        target=request.target,
        proxy_residuals=proxy_residuals,
        lam=lam,
        whole_strata=levels_of_whole_strata(sample, group),
    )
    if len(rows) <= MAX_STORED_GROUPS:
        rows = tuple(rows)
    description = f" by {group}" if isinstance(group, str) else ""
    unused = (_UNUSED_PROXY_NOTE,) if request.estimator == "ppi++" and fitted is None else ()
    table = Estimates.from_rows(sample, rows, "domains", (*respondents.notes, *unused), description)
    if request.estimator == "composite":
        return composite(table)
    return table


_UNUSED_PROXY_NOTE = (
    "estimator 'ppi++' used no proxy in the groups: it requires a proxy on the outcome's scale whose mean "
    "is known in every group, and 50 labels for each proxy"
)


def domain_residuals(
    sample: Sample, group: object, labelled: BoolArray, z: FloatArray, groups: AnyArray, weighting: Weighting
) -> tuple[FloatArray, float, dict[str, tuple[float, ...]]] | None:
    """Return z − λ (ẑ − mean of ẑ in the unit's domain) (m,), the factor of variances for fitting λ, and λ.

    The weighted mean of these residuals in a domain is the model-assisted estimate of its mean of z (Särndal,
    Swensson & Wretman 1992, section 10.6). It is unbiased to first order for any λ.

    Parameters
    ----------
    sample : Sample
    group : object
        The column of the domains. The mean proxies of groups that are not a column are unknown.
    labelled : bool (n,)
    z : float (m,)
        Outcomes of the labelled units.
    groups : (m,)
        Domain of each labelled unit.
    weighting : Weighting
        Weighting of the labelled units.

    Returns
    -------
    residuals, factor, λ of each domain; or None
        λ has an entry for each proxy of the sample. None without a proxy on the outcome's scale, if its mean
        in a domain is unknown, and with fewer than 50 labels per proxy.
    """
    columns = [k for k, info in enumerate(sample.proxy_info) if info.scaled]
    known_means = sample.means_of_levels.get(group, {}) if isinstance(group, str) else {}
    # There are too few clusters to fit λ to their totals.
    if weighting.unit_clusters is not None and weighting.draws < sample.design.hajek_below * len(columns):
        return None
    if not columns or len(z) < MINIMUM_FOR_FITTING * len(columns):
        return None
    if not {*groups.tolist()} <= {*known_means, None}:
        return None
    levels, codes = np.unique([str(name) for name in groups], return_inverse=True)
    unknown_means = [np.nan] * len(sample.proxy_info)
    means = np.array([known_means.get(name, unknown_means) for name in levels])[:, columns]
    x = sample.proxies[labelled][:, columns]
    weights = np.abs(weighting.weights)
    total = np.bincount(codes, weights)
    variables = np.column_stack([z, x])
    centres = np.stack([np.bincount(codes, weights * variable) / total for variable in variables.T], axis=1)
    deviations = (variables - centres[codes]) * np.sqrt(weights)[:, None]
    outcome_deviations = deviations[:, 0]
    proxy_deviations = deviations[:, 1:]
    cross_products = proxy_deviations.T @ outcome_deviations
    proxy_products = proxy_deviations.T @ proxy_deviations
    df = len(z) - len(levels)
    # With fewer degrees of freedom, the factor of variances for fitting λ would exceed 2.
    if df <= 2 * len(columns):
        return None
    lam = domain_lam(cross_products, proxy_products, df)
    # The residual of a unit without a domain is not used, and is set to its outcome.
    domain_means = np.where(np.isnan(means[codes]), x, means[codes])
    # In a domain, λẑ may be mostly noise. Its share of the variance of z is limited to that over all units.
    proxy_squares = np.bincount(codes, (proxy_deviations @ lam) ** 2)
    outcome_squares = np.bincount(codes, outcome_deviations**2)
    share = float(lam @ cross_products) / max(float(outcome_squares.sum()), NO_DIVISOR)
    largest_squares = share * outcome_squares
    factor = np.sqrt(np.minimum(largest_squares / np.maximum(proxy_squares, NO_DIVISOR), 1.0))
    lam_of_domains = np.zeros((len(levels), len(sample.proxy_info)))
    lam_of_domains[:, columns] = factor[:, None] * lam
    by_level = {str(name): tuple(row) for name, row in zip(levels, lam_of_domains.tolist(), strict=True)}
    residuals = z - factor[codes] * ((x - domain_means) @ lam)
    return residuals, df / (df - len(columns)), by_level


def _undrawn_group_notes(sample: Sample, group: object, names: Sequence[str]) -> list[str]:
    """Return a note on the groups without a drawn unit."""
    level_sizes = sample.totals.get(group, {}) if isinstance(group, str) else {}
    missing = sorted(map(str, level_sizes.keys() - {*names}))
    if not missing:
        return []
    return [f"no unit was drawn from {group} {list_first(map(repr, missing), _MAX_GROUPS_NAMED)}"]


# With more names, a note would be longer than a line.
_MAX_GROUPS_NAMED = 5

# "auto" is "ppi++" if there is a proxy: one λ over all groups.
_ESTIMATORS_OF_GROUPS = ("auto", "ppi++", "horvitz-thompson", "composite")
