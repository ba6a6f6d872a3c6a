"""Slices shrunk towards each other: less error on average over them, and nothing promised of any one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.intervals.interval_types import StudentInterval

# Fewer slices do not show how much they differ: Morris's share of the common mean has the factor D − 3.
MIN_SLICES = 4

_PROMISE = (
    "slices are shrunk towards each other: intervals are valid on average over slices, but not for a slice "
    "that is unlike the others"
)


def composite_means(values: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means (…, D) of slices, shrunk towards each other, and their mean squared errors (…, D).

    Morris (1983), with the variance between slices by DerSimonian & Laird (1986). The errors are those on
    average over the slices: of one that is unlike the others nothing is promised.

    Parameters
    ----------
    values, variances : float (…, D)
        Of at least four slices; variances above 0.
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
    # The share of the common mean, less what estimating the variance between slices takes (Morris, eq. 1.16).
    common = (d - 3.0) / (d - 1.0) * variances * weights
    deviations = values - centre
    of_sampling = variances * (1.0 - common * (1.0 - weights / total))
    # The variance between slices is estimated, which matters most for slices far from the common mean.
    of_common = 2.0 / (d - 3.0) * common**2 * deviations**2
    return centre + (1.0 - common) * deviations, of_sampling + of_common


def composite(table: Estimates) -> Estimates:
    """Return the estimates of slices shrunk towards each other, and say what their intervals promise."""
    # A slice whose labels all agree has no variance, and would be the common mean of all.
    used = [k for k, row in enumerate(table) if np.isfinite(row.value) and row.standard_error > 0]
    if len(used) < MIN_SLICES:
        problem = "a composite requires several groups in which outcomes vary"
        action = "Set the estimator to 'auto'."
        raise InputError(problem, given=f"{len(used)}", allowed=f"{MIN_SLICES} or more", action=action)
    rows = list(table)
    values, variances = composite_means(table.values[used], table.standard_errors[used] ** 2)
    for k, value, variance in zip(used, values.tolist(), variances.tolist(), strict=True):
        rows[k] = _shrunk(rows[k], value, variance)
    return replace(table, estimates=tuple(rows), remarks=(*table.remarks, _PROMISE))


def _shrunk(row: Estimate, value: float, variance: float) -> Estimate:
    """Return a slice's estimate at another value, with Student's interval."""
    error = float(np.sqrt(variance))
    freedom = max(row.degrees_of_freedom, 1.0)
    interval = StudentInterval(
        value=value, standard_error=error, degrees_of_freedom=freedom, bounds=row.bounds
    )
    evidence = replace(row.evidence, value=value, variance=variance, interval=interval, linearised=True)
    return replace(row, value=value, standard_error=error, evidence=evidence, estimator="composite")
