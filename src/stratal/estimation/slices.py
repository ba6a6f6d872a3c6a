"""Slices that borrow strength: one λ for all of them, and each one's own mean proxy, known for every unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimate import Estimates
from stratal.estimation.lam import solve_semidefinite
from stratal.estimation.outcome_means import MINIMUM_FOR_FITTING
from stratal.intervals.limits import StudentLimits

_OTHER_LABELS = 20.0
"""Labels' worth of λ = 0: few labels of rare outcomes would fit the noise."""


def slice_residuals(
    sample: Sample, group: object, labelled: BoolArray, z: FloatArray, groups: AnyArray, weighting: Weighting
) -> tuple[FloatArray, float] | None:
    """Return z − λ (ẑ − mean of ẑ in the unit's slice) (m,), and what fitting λ multiplies variances by.

    The weighted mean of these in a slice is the model-assisted estimate of its mean of z (Särndal, Swensson &
    Wretman 1992, section 10.6): any λ leaves it unbiased to first order, so that the proxy is no evidence.

    Parameters
    ----------
    sample : Sample
    group : str
        The column of the slices; anything else has no known mean proxy.
    labelled : bool (n,)
    z : float (m,)
        Outcomes of the labelled units.
    groups : (m,)
        Their slices.
    weighting : Weighting
        Of the labelled units.

    Returns
    -------
    residuals, factor; or None
        Nothing where there is no proxy on the outcome's scale, or its mean in the slices is not known; for
        fewer than 50 labels for each proxy.
    """
    column = [k for k, info in enumerate(sample.proxy_info) if info.scaled]
    known = sample.means_of_levels.get(group, {}) if isinstance(group, str) else {}
    if not column or len(z) < MINIMUM_FOR_FITTING * len(column) or not {*groups.tolist()} <= {*known, None}:
        return None
    levels, codes = np.unique([str(name) for name in groups], return_inverse=True)
    means = np.array([known.get(name, [np.nan] * len(sample.proxy_info)) for name in levels])[:, column]
    x = sample.proxies[labelled][:, column]
    weights = np.abs(weighting.weights)
    total = np.bincount(codes, weights)
    both = np.column_stack([z, x])
    centres = np.stack([np.bincount(codes, weights * part) / total for part in both.T], axis=1)
    away = (both - centres[codes]) * np.sqrt(weights)[:, None]
    cross, spread = away[:, 1:].T @ away[:, 0], away[:, 1:].T @ away[:, 1:]
    free = len(z) - len(levels)
    if free <= 2 * len(column):
        return None
    lam = solve_semidefinite(spread, cross) * free / (free + _OTHER_LABELS)
    own = np.where(np.isnan(means[codes]), x, means[codes])  # a unit of no slice: it is in none
    # λx has no greater share of a slice's variance of z than it explains over all: it may be noise there.
    squares, outcomes = np.bincount(codes, (away[:, 1:] @ lam) ** 2), np.bincount(codes, away[:, 0] ** 2)
    share = float(lam @ cross) / max(float(outcomes.sum()), 1e-300)
    part = np.sqrt(np.minimum(share * outcomes / np.maximum(squares, 1e-300), 1.0))
    return z - part[codes] * ((x - own) @ lam), free / (free - len(column))


def composite_means(values: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means (…, D) of slices, shrunk towards each other, and their mean squared errors (…, D).

    Morris (1983), with the variance between slices by DerSimonian & Laird (1986). The errors are those on
    average over the slices: of one that is unlike the others nothing is promised.

    Parameters
    ----------
    values, variances : float (…, D)
        Of at least four slices; variances above 0.

    Examples
    --------
    >>> composite_means(np.array([0.5, 0.6, 0.7, 0.6]), np.full(4, 0.01))[0].round(3)
    array([0.533, 0.6  , 0.667, 0.6  ])
    """
    d, weights = values.shape[-1], 1.0 / variances
    total = weights.sum(axis=-1, keepdims=True)
    centre = np.sum(weights * values, axis=-1, keepdims=True) / total
    spread = np.sum(weights * (values - centre) ** 2, axis=-1, keepdims=True) - (d - 1)
    between = np.maximum(spread / (total - np.sum(weights**2, axis=-1, keepdims=True) / total), 0.0)
    weights = 1.0 / (between + variances)
    total = weights.sum(axis=-1, keepdims=True)
    centre = np.sum(weights * values, axis=-1, keepdims=True) / total
    # The share of the common mean, less what estimating the variance between slices takes (Morris, eq. 1.16).
    common = (d - 3.0) / (d - 1.0) * variances * weights
    away = values - centre
    error = variances * (1.0 - common * (1.0 - weights / total)) + 2.0 / (d - 3.0) * common**2 * away**2
    return centre + (1.0 - common) * away, error


FEWEST_SLICES = 4
"""Slices that a composite needs: three leave nothing to tell how much they differ."""

_COMPOSITE = (
    "slices are shrunk towards each other: intervals hold on average over slices, and not for one that is "
    "unlike the others"
)


def composite(table: Estimates) -> Estimates:
    """Return the estimates of slices shrunk towards each other, and say what their intervals promise."""
    used = [k for k, row in enumerate(table) if np.isfinite(row.value) and row.standard_error > 0]
    if len(used) < FEWEST_SLICES:
        raise InputError(
            "a composite needs several groups that vary",
            given=f"{len(used)}",
            allowed=f"{FEWEST_SLICES} or more",
            action="Leave the estimator to 'auto'.",
        )
    values, variances = composite_means(table.values[used], table.standard_errors[used] ** 2)
    rows = list(table)
    for k, value, variance in zip(used, values.tolist(), variances.tolist(), strict=True):
        row = rows[k]
        own = StudentLimits(
            value=value,
            standard_error=float(np.sqrt(variance)),
            degrees_of_freedom=max(row.degrees_of_freedom, 1.0),
            bounds=row.bounds,
        )
        seen = replace(row.evidence, value=value, variance=variance, own=own, linearised=True)
        rows[k] = replace(
            row,
            value=value,
            standard_error=own.standard_error,
            estimator="composite",
            design_effect=None,
            effective_sample_size=None,
            evidence=seen,
        )
    return replace(table, estimates=tuple(rows), remarks=(*table.remarks, _COMPOSITE))
