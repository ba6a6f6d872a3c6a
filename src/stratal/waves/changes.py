"""The change of an estimate between two waves, and its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, FloatArray, means_of_sums
from stratal.designs import PoissonWeighting
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate
from stratal.intervals.interval import Interval
from stratal.intervals.interval_types import SumInterval
from stratal.intervals.methods import find_interval
from stratal.labels.joined_labels import join_labels
from stratal.metrics.comparison import ModelOutcomes
from stratal.randomness import id_texts
from stratal.waves.wave import RowKey, Wave


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """The difference of two estimates: the later one less the earlier one.

    Parameters
    ----------
    value, standard_error : float
    correlation : float
        Correlation of the two estimates: 0 if the waves have different items.
    interval : Interval
        The interval of the paired differences, or derived from the intervals of the two estimates (Zou &
        Donner 2008).
    is_paired : bool
        Whether it is the mean of paired differences: the waves have the same labelled items.
    """

    value: float
    standard_error: float
    correlation: float
    interval: Interval
    is_paired: bool = False

    def limits(self, confidence_level: float) -> list[float | None] | None:
        """Return the ends of the interval; None for an infinite end, and where there is no interval."""
        try:
            ends = self.interval.ends(confidence_level, "two-sided")
        except InputError:  # labels of an outcome without bounds that all agree
            return None
        limits = [float(end) if np.isfinite(end) else None for end in ends]
        if limits == [None, None]:
            return None
        return limits

    @property
    def p_value(self) -> float | None:
        """The p-value of no change; None where there is no interval."""
        try:
            return self.interval.p_value(0.0)
        except InputError:
            # One label in a wave has no variance.
            return None


def change_between(later: Estimate, earlier: Estimate, correlation: float) -> Change:
    """Return the change from one estimate to another.

    Parameters
    ----------
    later, earlier : Estimate
    correlation : float
        Correlation of the two estimates; see `correlation_between`.
    """
    correlations = np.array([[1.0, correlation], [correlation, 1.0]])
    errors = np.array([later.standard_error, earlier.standard_error])
    signs = np.array([1.0, -1.0])
    bounds = None
    if later.bounds is not None and earlier.bounds is not None:
        bounds = (later.bounds[0] - earlier.bounds[1], later.bounds[1] - earlier.bounds[0])
    value = later.value - earlier.value
    interval = SumInterval(
        value=value,
        bounds=bounds,
        terms=(later, earlier),
        coefficients=signs,
        correlation=correlations,
    )
    return Change(
        value=value,
        standard_error=float(np.sqrt(max((signs * errors) @ correlations @ (signs * errors), 0.0))),
        correlation=correlation,
        interval=interval,
    )


def paired_change(later: Wave, earlier: Wave) -> Change | None:
    """Return the change of the mean outcome of the same labelled items, from the paired differences.

    None if the labelled items differ, or if the estimates are not plain means of the labels. The interval of
    `change_between` would be too long, because it ignores a positive correlation.
    """
    pair = (later.rows.get(()), earlier.rows.get(()))
    if any(row is None or row.outcomes is None or any(row.lam) for row in pair):
        return None
    first, second = (row for row in pair if row is not None)
    units = _labelled_units(later, first)
    other_units = _labelled_units(earlier, second)
    if not have_same_items(later, earlier) or units is None or other_units is None:
        return None
    if sorted(units.ids) != sorted(other_units.ids):
        return None
    assert later.evaluation is not None
    # The order in which the other wave's units have the ids of this wave.
    order = np.argsort(other_units.ids)[np.argsort(np.argsort(units.ids))]
    sample = later.evaluation.sample
    labelled = join_labels(sample, later.evaluation.labels).labelled
    if first.bounds == second.bounds:
        bounds = first.bounds
    else:
        bounds = None
    outcomes = ModelOutcomes.of(
        sample,
        np.column_stack([first.evidence.z, second.evidence.z[order]]),
        labelled,
        ("later", "earlier"),
        bounds=bounds,
        target=first.target,
    )
    difference = outcomes.difference()
    value = first.value - second.value
    # The designs of the waves may weight the same units differently.
    if not np.isclose(difference.value, value, rtol=1e-9, atol=1e-12):
        return None
    return Change(
        value=value,
        standard_error=difference.standard_error,
        correlation=correlation_between(later, earlier, ()),
        interval=find_interval(difference.evidence, "auto"),
        is_paired=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LabelledUnits:
    """The labelled units of an estimate: ids, design weights, and deviations from the mean, (m,) each."""

    ids: AnyArray
    weights: FloatArray
    deviations: FloatArray


def correlation_between(later: Wave, earlier: Wave, label: RowKey) -> float:
    """Return the correlation of two estimates; 0 if the waves have different items.

    Labels of the same item in two waves are correlated. If both waves have the same labelled units, the
    design gives the covariance. Otherwise, with w the design weights and d the deviations from the stratum
    means, it is Σ w₁ w₂ d₁ d₂ − (1/N) · mean(d₁ d₂) over the units in both waves. For permanent random
    numbers with one seed, this estimates S₁₂ (1/max(n₁, n₂) − 1/N), and for independent draws 0. Cluster
    samples and systematic samples have no such formula: the result is 0, which makes the interval too long
    if outcomes of the same item agree.

    Parameters
    ----------
    later, earlier : Wave
    label
        The row of both waves.
    """
    first = later.rows[label]
    second = earlier.rows[label]
    if not have_same_items(later, earlier):
        return 0.0
    first_units = _labelled_units(later, first)
    second_units = _labelled_units(earlier, second)
    if first_units is None or second_units is None:
        return 0.0
    shared_ids, positions, other_positions = np.intersect1d(
        first_units.ids, second_units.ids, return_indices=True
    )
    if len(shared_ids) < 2:
        return 0.0
    if len(shared_ids) == len(first_units.ids) == len(second_units.ids):
        order = other_positions[np.argsort(positions)]
        pair = np.column_stack([first.evidence.residuals, second.evidence.residuals[order]])
        outcomes = np.column_stack([first.evidence.z, second.evidence.z[order]])
        covariance = _covariance(first, pair, outcomes)
        return _correlation(covariance[0, 1], covariance[0, 0], covariance[1, 1])
    if not all(_draws_single_units(row) for row in (first, second)):
        return 0.0
    products = first_units.deviations[positions] * second_units.deviations[other_positions]
    weights = first_units.weights[positions]
    other_weights = second_units.weights[other_positions]
    covariance_of_draws = float(np.sum(weights * other_weights * products))
    if first.target != "superpopulation":
        shares = np.maximum(weights, other_weights)
        covariance_of_draws -= float(shares @ products / shares.sum()) / first.population_size
    variances = []
    for row in (first, second):
        residuals = row.evidence.residuals[:, None]
        outcomes = row.evidence.z[:, None]
        variances.append(_covariance(row, residuals, outcomes)[0, 0])
    return _correlation(covariance_of_draws, *variances)


def _covariance(row: Estimate, residuals: FloatArray, outcomes: FloatArray) -> FloatArray:
    """Return the covariance of means (q, q) under the design of an estimate, without guards."""
    weighting = row.evidence.weighting
    covariance = weighting.covariance(residuals)
    if row.target == "superpopulation":
        covariance = covariance + weighting.superpopulation_covariance(outcomes)
    return covariance


def _correlation(covariance: float, variance: float, other_variance: float) -> float:
    """Return a correlation between −1 and 1; 0 if an estimate has no variance."""
    if not variance > 0 or not other_variance > 0:
        return 0.0
    return float(np.clip(covariance / np.sqrt(variance * other_variance), -1.0, 1.0))


def _draws_single_units(row: Estimate) -> bool:
    """Return whether inclusion probabilities of single units describe the draw."""
    weighting = row.evidence.weighting
    return weighting.random_within_strata or isinstance(weighting, PoissonWeighting)


def have_same_items(later: Wave, earlier: Wave) -> bool:
    """Return whether equal ids of two waves are the same item.

    Row numbers occur in every file: equal numbers are the same item only if the columns of the files agree.
    """
    samples = (later.sample, earlier.sample)
    if any(sample is None for sample in samples):
        return False
    first, second = (sample for sample in samples if sample is not None)
    if first.question.row_base is None and second.question.row_base is None:
        return True
    digests = (first.population_digest(), second.population_digest())
    if digests[0] is None or digests[1] is None or digests[0].ids != digests[1].ids:
        return False
    shared_columns = set(digests[0].columns) & set(digests[1].columns)
    return bool(shared_columns) and not digests[0].different_columns(digests[1])


def _labelled_units(wave: Wave, row: Estimate) -> _LabelledUnits | None:
    """Return the labelled units of an estimate; None if its arrays do not match the labelled units."""
    evaluation = wave.evaluation
    if evaluation is None or isinstance(evaluation.labels, dict):
        return None
    ids = np.array(id_texts(evaluation.sample.ids))
    labelled = join_labels(evaluation.sample, evaluation.labels).labelled
    evidence = row.evidence
    residuals = evidence.residuals
    if len(residuals) != int(labelled.sum()):
        domain = row.label.get("domain")
        groups = evaluation.sample.groups.get(evaluation.request.by or "")
        if domain is None or groups is None:
            return None
        labelled = labelled & (groups == domain)
        if len(residuals) != int(labelled.sum()):
            return None
    weighting = evidence.weighting
    deviations = residuals
    if weighting.random_within_strata:
        counts = weighting.counts
        sums = np.bincount(weighting.stratum, residuals, minlength=len(counts))
        means = means_of_sums(sums, counts)
        # s² has the divisor n − 1.
        factors = np.sqrt(counts / np.maximum(counts - 1, 1))
        deviations = (residuals - means[weighting.stratum]) * factors[weighting.stratum]
    return _LabelledUnits(ids=ids[labelled], weights=weighting.weights, deviations=deviations)
