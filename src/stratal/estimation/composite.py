"""Means of groups that are shrunk towards each other: smaller errors on average, not for each group."""

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
MIN_GROUPS = 4

_NOTE = (
    "slices are shrunk towards each other: intervals are valid on average over slices, but not for a slice "
    "that is unlike the others"
)


def composite_means(values: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means (…, D) of groups, shrunk towards each other, and their mean squared errors (…, D).

    Morris (1983), with the variance between groups by DerSimonian & Laird (1986). The errors are averages
    over the groups: a group that is unlike the others may have a much larger one.

    Parameters
    ----------
    values, variances : float (…, D)
        Estimates of at least four groups, and their variances, which are positive.
    """
    d = values.shape[-1]
    weights = 1.0 / variances
    total = weights.sum(axis=-1, keepdims=True)
    centre = np.sum(weights * values, axis=-1, keepdims=True) / total
    spread = np.sum(weights * (values - centre) ** 2, axis=-1, keepdims=True) - (d - 1)
    between = np.maximum(spread / (total - np.sum(weights**2, axis=-1, keepdims=True) / total), 0.0)
    weights = 1.0 / (between + variances)
    total = weights.sum(axis=-1, keepdims=True)
    centre = np.sum(weights * values, axis=-1, keepdims=True) / total
    # The weight of the common mean, reduced because the variance between groups is estimated (Morris, eq.
    # 1.16).
    common_weights = (d - 3.0) / (d - 1.0) * variances * weights
    deviations = values - centre
    sampling_errors = variances * (1.0 - common_weights * (1.0 - weights / total))
    # The error of the estimated variance between groups matters most for groups far from the common mean.
    variance_errors = 2.0 / (d - 3.0) * common_weights**2 * deviations**2
    return centre + (1.0 - common_weights) * deviations, sampling_errors + variance_errors


def composite(table: Estimates) -> Estimates:
    """Return the estimates of groups shrunk towards each other, with a note on their intervals."""
    # A group whose labels are all equal has no variance, and its infinite weight would determine the common
    # mean.
    used = [k for k, row in enumerate(table) if np.isfinite(row.value) and row.standard_error > 0]
    if len(used) < MIN_GROUPS:
        problem = "a composite requires several groups in which outcomes vary"
        action = "Set the estimator to 'auto'."
        raise InputError(problem, given=f"{len(used)}", allowed=f"{MIN_GROUPS} or more", action=action)
    rows = list(table)
    values, variances = composite_means(table.values[used], table.standard_errors[used] ** 2)
    for k, value, variance in zip(used, values.tolist(), variances.tolist(), strict=True):
        rows[k] = _shrunk(rows[k], value, variance)
    return replace(table, estimates=tuple(rows), remarks=(*table.remarks, _NOTE))


def _shrunk(row: Estimate, value: float, variance: float) -> Estimate:
    """Return the estimate of a group at another value, with Student's interval."""
    error = float(np.sqrt(variance))
    freedom = max(row.degrees_of_freedom, 1.0)
    interval = StudentInterval(
        value=value, standard_error=error, degrees_of_freedom=freedom, bounds=row.bounds
    )
    evidence = replace(row.evidence, value=value, variance=variance, interval=interval, linearised=True)
    return replace(row, value=value, standard_error=error, evidence=evidence, estimator="composite")
