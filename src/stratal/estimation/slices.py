"""Slices that borrow strength: one λ for all of them, and each one's own mean proxy, known for every unit."""

from __future__ import annotations

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.estimation.lam import solve_semidefinite
from stratal.estimation.outcome_means import MINIMUM_FOR_FITTING

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
