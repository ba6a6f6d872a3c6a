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
from stratal.waves.wave import MEAN_OF_ALL_ITEMS, RowKey, Wave


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
        except InputError:
            # Equal labels of an outcome without bounds have no interval.
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
    """Return the change from one estimate to another with this correlation (`correlation_between`)."""
    correlations = np.array([[1.0, correlation], [correlation, 1.0]])
    errors = np.array([later.standard_error, earlier.standard_error])
    signs = np.array([1.0, -1.0])
    bounds = None
    if later.bounds is not None and earlier.bounds is not None:
        bounds = (later.bounds[0] - earlier.bounds[1], later.bounds[1] - earlier.bounds[0])
    value = later.value - earlier.value
    signed_errors = signs * errors
    variance = signed_errors @ correlations @ signed_errors
    interval = SumInterval(
        value=value,
        bounds=bounds,
        terms=(later, earlier),
        coefficients=signs,
        correlation=correlations,
    )
    return Change(
        value=value,
        # Rounding may make the variance of equal estimates negative.
        standard_error=float(np.sqrt(max(variance, 0.0))),
        correlation=correlation,
        interval=interval,
    )


def paired_change(later: Wave, earlier: Wave) -> Change | None:
    """Return the change of the mean outcome of the same labelled items, from the paired differences.

    None if the labelled items differ, or if the estimates are not means of the labels alone, without a proxy.
    The interval of `change_between` would be too long, because it ignores a positive correlation.
    """
    later_row = later.rows.get(MEAN_OF_ALL_ITEMS)
    earlier_row = earlier.rows.get(MEAN_OF_ALL_ITEMS)
    if later_row is None or later_row.outcomes is None or any(later_row.lam):
        return None
    if earlier_row is None or earlier_row.outcomes is None or any(earlier_row.lam):
        return None
    later_units = _labelled_units(later, later_row)
    earlier_units = _labelled_units(earlier, earlier_row)
    if not have_same_items(later, earlier) or later_units is None or earlier_units is None:
        return None
    if sorted(later_units.ids) != sorted(earlier_units.ids):
        return None
    assert later.evaluation is not None
    # The order in which the units of the earlier wave have the ids of the later wave.
    order = np.argsort(earlier_units.ids)[np.argsort(np.argsort(later_units.ids))]
    sample = later.evaluation.sample
    labelled = join_labels(sample, later.evaluation.labels).labelled
    bounds = None
    if later_row.bounds == earlier_row.bounds:
        bounds = later_row.bounds
    outcome_pairs = np.column_stack([later_row.evidence.z, earlier_row.evidence.z[order]])
    outcomes = ModelOutcomes.of(
        sample,
        outcome_pairs,
        labelled,
        ("later", "earlier"),
        bounds=bounds,
        target=later_row.target,
    )
    difference = outcomes.difference()
    value = later_row.value - earlier_row.value
    # The designs of the waves may weight the same units differently.
    if not np.isclose(difference.value, value, rtol=1e-9, atol=1e-12):
        return None
    return Change(
        value=value,
        standard_error=difference.standard_error,
        correlation=correlation_between(later, earlier, MEAN_OF_ALL_ITEMS),
        interval=find_interval(difference.evidence, "auto"),
        is_paired=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LabelledUnits:
    """The labelled units of an estimate: ids, design weights, and deviations from the mean, (m,) each."""

    ids: AnyArray
    weights: FloatArray
    deviations: FloatArray


def correlation_between(later: Wave, earlier: Wave, key: RowKey) -> float:
    """Return the correlation of the estimates with this key in two waves; 0 if these have different items.

    Labels of the same item in two waves are correlated. If both waves have the same labelled units, the
    design gives the covariance. Otherwise, with w the design weights and d the deviations from the stratum
    means, it is Σ w₁ w₂ d₁ d₂ − (1/N) · mean(d₁ d₂) over the units in both waves. For permanent random
    numbers with one seed, this estimates S₁₂ (1/max(n₁, n₂) − 1/N), and for independent draws 0. Cluster
    samples and systematic samples have no such formula: the result is 0, which makes the interval too long
    if outcomes of the same item agree.
    """
    later_row = later.rows[key]
    earlier_row = earlier.rows[key]
    if not have_same_items(later, earlier):
        return 0.0
    later_units = _labelled_units(later, later_row)
    earlier_units = _labelled_units(earlier, earlier_row)
    if later_units is None or earlier_units is None:
        return 0.0
    shared_ids, later_positions, earlier_positions = np.intersect1d(
        later_units.ids, earlier_units.ids, return_indices=True
    )
    # A single shared item does not determine a covariance.
    if len(shared_ids) < 2:
        return 0.0
    if len(shared_ids) == len(later_units.ids) == len(earlier_units.ids):
        order = earlier_positions[np.argsort(later_positions)]
        residuals = np.column_stack([later_row.evidence.residuals, earlier_row.evidence.residuals[order]])
        outcomes = np.column_stack([later_row.evidence.z, earlier_row.evidence.z[order]])
        covariances = _covariance(later_row, residuals, outcomes)
        return _correlation(covariances[0, 1], covariances[0, 0], covariances[1, 1])
    if not (_draws_single_units(later_row) and _draws_single_units(earlier_row)):
        return 0.0
    products = later_units.deviations[later_positions] * earlier_units.deviations[earlier_positions]
    later_weights = later_units.weights[later_positions]
    earlier_weights = earlier_units.weights[earlier_positions]
    covariance = float(np.sum(later_weights * earlier_weights * products))
    if later_row.target != "superpopulation":
        # A unit is in both samples with the smaller of its two inclusion probabilities.
        joint_weights = np.maximum(later_weights, earlier_weights)
        mean_product = float(joint_weights @ products / joint_weights.sum())
        covariance -= mean_product / later_row.population_size
    return _correlation(covariance, _variance(later_row), _variance(earlier_row))


def _variance(row: Estimate) -> float:
    """Return the variance of an estimate, without the corrections of its standard error."""
    return float(_covariance(row, row.evidence.residuals[:, None], row.evidence.z[:, None])[0, 0])


def _covariance(row: Estimate, residuals: FloatArray, outcomes: FloatArray) -> FloatArray:
    """Return the covariance of means (q, q) of residuals and outcomes (n, q), with an estimate's design."""
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
    if later.sample is None or earlier.sample is None:
        return False
    if later.sample.question.row_base is None and earlier.sample.question.row_base is None:
        return True
    later_digest = later.sample.population_digest()
    earlier_digest = earlier.sample.population_digest()
    if later_digest is None or earlier_digest is None or later_digest.ids != earlier_digest.ids:
        return False
    shared_columns = set(later_digest.columns) & set(earlier_digest.columns)
    return bool(shared_columns) and not later_digest.different_columns(earlier_digest)


def _labelled_units(wave: Wave, row: Estimate) -> _LabelledUnits | None:
    """Return the labelled units of an estimate; None if its arrays do not match the labelled units."""
    evaluation = wave.evaluation
    # A dict has labels by column, of several outcomes or models, which may be labelled for different units.
    if evaluation is None or isinstance(evaluation.labels, dict):
        return None
    ids = np.array(id_texts(evaluation.sample.ids))
    labelled = join_labels(evaluation.sample, evaluation.labels).labelled
    evidence = row.evidence
    residuals = evidence.residuals
    # The estimate of a domain has only the units of this domain.
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
