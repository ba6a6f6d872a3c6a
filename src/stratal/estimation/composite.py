"""Means of groups, shrunk towards their common mean: smaller errors on average, but not for each group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.intervals.interval_types import StudentInterval

# With fewer groups, the variance between groups cannot be estimated: Morris's weight of the common mean has
# the factor D − 3.
_MIN_GROUPS = 4

_NOTE = (
    "slices are shrunk towards each other: intervals are valid on average over slices, but not for a slice "
    "that is unlike the others"
)


def composite_means(values: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means (…, D) of groups, shrunk towards their common mean, and their mean squared errors (…, D).

    Morris (1983), with the variance between groups by DerSimonian & Laird (1986). The errors are valid on
    average over the groups. The error of a group that is unlike the others may be much larger.

    Parameters
    ----------
    values, variances : float (…, D)
        Estimates of at least four groups, and their variances, which are positive.
    """
    d = values.shape[-1]
    weights = 1.0 / (_variance_between_groups(values, variances) + variances)
    total = weights.sum(axis=-1, keepdims=True)
    common_mean = np.sum(weights * values, axis=-1, keepdims=True) / total
    # The weight of the common mean, reduced because the variance between groups is estimated (Morris, eq.
    # 1.16).
    common_weights = (d - 3.0) / (d - 1.0) * variances * weights
    deviations = values - common_mean
    sampling_errors = variances * (1.0 - common_weights * (1.0 - weights / total))
    # The error of the estimated variance between groups matters most for groups far from the common mean.
    variance_errors = 2.0 / (d - 3.0) * common_weights**2 * deviations**2
    return common_mean + (1.0 - common_weights) * deviations, sampling_errors + variance_errors


def _variance_between_groups(values: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the moment estimate (…, 1) of DerSimonian & Laird, at least 0."""
    degrees_of_freedom = values.shape[-1] - 1
    weights = 1.0 / variances
    total = weights.sum(axis=-1, keepdims=True)
    mean = np.sum(weights * values, axis=-1, keepdims=True) / total
    # Cochran's Q. Its mean is the degrees of freedom if the groups do not differ.
    q = np.sum(weights * (values - mean) ** 2, axis=-1, keepdims=True)
    factor = total - np.sum(weights**2, axis=-1, keepdims=True) / total
    return np.asarray(np.maximum((q - degrees_of_freedom) / factor, 0.0))


def composite(table: Estimates) -> Estimates:
    """Return the estimates of groups, shrunk towards their common mean, with a note on their intervals."""
    # A group whose labels are all equal has no variance, and its infinite weight would determine the common
    # mean.
    positions = [k for k, row in enumerate(table) if np.isfinite(row.value) and row.standard_error > 0]
    if len(positions) < _MIN_GROUPS:
        problem = "a composite requires several groups in which outcomes vary"
        action = "Set the estimator to 'auto'."
        raise InputError(problem, given=f"{len(positions)}", allowed=f"{_MIN_GROUPS} or more", action=action)
    rows = list(table)
    values, variances = composite_means(table.values[positions], table.standard_errors[positions] ** 2)
    for k, value, variance in zip(positions, values.tolist(), variances.tolist(), strict=True):
        rows[k] = _shrunk(rows[k], value, variance)
    return replace(table, estimates=tuple(rows), remarks=(*table.remarks, _NOTE))


def _shrunk(row: Estimate, value: float, variance: float) -> Estimate:
    """Return the estimate of a group with another value and variance, and with Student's interval."""
    error = float(np.sqrt(variance))
    interval = StudentInterval(
        value=value,
        standard_error=error,
        degrees_of_freedom=max(row.degrees_of_freedom, 1.0),
        bounds=row.bounds,
    )
    # `linearised`: methods for counts of labels do not apply to a shrunk value.
    evidence = replace(row.evidence, value=value, variance=variance, interval=interval, linearised=True)
    return replace(row, value=value, standard_error=error, evidence=evidence, estimator="composite")
