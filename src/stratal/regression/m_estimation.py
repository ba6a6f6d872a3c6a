"""The flow of an M-estimation: check, find λ, minimise the rectified loss, take the sandwich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import Weighting
from stratal.designs.stratum_moments import stratum_covariances
from stratal.errors import InputError
from stratal.estimation.lam import ChosenLam
from stratal.regression import sandwich
from stratal.regression.coefficients import MEstimate
from stratal.regression.lam import choose_lam
from stratal.regression.losses import Loss
from stratal.regression.moved_proxy import move_of
from stratal.regression.options import Options
from stratal.regression.rectified_loss import RectifiedLoss
from stratal.regression.sandwich import FewClusters, Sandwich
from stratal.regression.solver import require_inverse
from stratal.regression.unlabelled import Unlabelled, feature_matrix, population_units, with_intercept

_DECIDES = 0.5
"""Leverage beyond which a unit pulls its own prediction more than all others together."""

_DECIDES_GROWTH = 0.4
_FEWEST = 10.0
"""Where the mean grows exponentially: the leverage, and how many equal labels a slope's influences are worth.
With log-normal features (σ = 1) 2 to 6 % of intervals miss without a note; with .5 and 5, 3 to 23 %."""


def m_estimate(
    loss: Loss,
    outcome: Any,
    *,
    weighting: Weighting,
    features: Any = None,
    proxy: Any = None,
    unlabelled: Unlabelled | None = None,
    population_features: Any = None,
    population_proxy: Any = None,
    population_stratum: Any = None,
    intercept: bool = False,
    names: Sequence[str] | None = None,
    **options: Any,
) -> MEstimate:
    """Estimate the minimiser of a convex loss over the population, from labels and a proxy on all units.

    Parameters
    ----------
    loss : Loss
        `Mean`, `LinearLoss`, `Logistic`, `Poisson`, or your own.
    outcome : array-like (n,) or (n, q)
        Labels.
    weighting : Weighting
        The design of the labelled units.
    features : array-like (n, p), optional
        Of the labelled units, without an intercept unless `intercept`.
    proxy : array-like like `outcome`, optional
        Predictions of the outcome for the labelled units.
    unlabelled : Unlabelled, optional
        Features and proxy of all units of the population (or of a separate sample), or in its place
    population_features, population_proxy, population_stratum : array-like (N, p), (N,) and (N,), optional
    intercept : bool
        Whether a column of ones goes before the features.
    names : sequence of str, optional
        Of the coefficients; that of the intercept may be left out.
    estimator : str
        "ppi++": one fitted λ. "stratppi": one per stratum, shrunk to the common one. "classical": λ = 0, no
        proxy used.
    lam : float or (H,), optional
        A given λ instead of a fitted one.
    target : str
        "population": the minimiser over these N units, with finite population correction. "superpopulation":
        over the distribution that they came from.
    stratum_weights_known : bool
        For the superpopulation: whether the W_h are those of the distribution itself (Fisch et al. take them
        so).
    minimise : "trace", coefficient name or index, or vector (d,)
        Whose variance λ minimises. The trace depends on the features' units, as in the papers.
    clip : "convex", None or (low, high)
        Range of a fitted λ; "convex" is the loss's own (0 to 1 for regressions, free for means).
    shrinkage : float
        How far few labels shrink the λ_h of "stratppi" to the common λ (`stratal.estimation.lam`). With 0 the
        fitted λ is the papers': its denominator the population's, not shrunk, used as if it were known.
    hessian : str
        "rectified" (the default: exact for linear losses), "pooled" over labelled and unlabelled units (as
        `ppi-python`), "labelled" (as Fisch et al., Algorithm 1).
    form : str
        "loss" minimises the rectified loss. "auto" does too, but for least squares with a fitted λ it first
        moves the proxy by its bias along the features, as far as the labels tell of one. "fits" (linear
        regression alone) adds the fit of λf on the population to the fit of y − λf on the labels, as
        `ppi-python` does.
    correction : str
        Small-sample correction of the variance: "leverage" (HC3 at λ = 0), "degrees" (HC1), "none".
    start : array-like (d,), optional
    tolerance : float
    max_iterations : int

    Returns
    -------
    MEstimate

    Raises
    ------
    InputError
        For collinear features, separated labels, an unbounded rectified loss, too few labels, unusable
        numbers.

    Notes
    -----
    Angelopoulos, Duchi & Zrnic (2023), "PPI++"; Fisch et al. (2024), "Stratified prediction-powered
    inference".

    Examples
    --------
    >>> from stratal.regression.losses import LinearLoss
    >>> from stratal.regression.unlabelled import ArrayUnlabelled
    >>> from stratal.designs import StratifiedWeighting
    >>> x = np.stack([np.ones(8), np.arange(8.0)], axis=1)
    >>> y, f = 1 + 2 * x[:, 1] + np.tile([0.1, -0.1], 4), 1 + 2 * x[:, 1]
    >>> drawn = np.array([0, 2, 3, 5, 7])
    >>> weighting = StratifiedWeighting(stratum=np.zeros(5, int), sizes=np.array([8]))
    >>> result = m_estimate(LinearLoss(), y[drawn], features=x[drawn], proxy=f[drawn],
    ...                     unlabelled=ArrayUnlabelled(features=x, proxy=f), names=["intercept", "slope"],
    ...                     weighting=weighting, lam=1.0)
    >>> result.names, bool(np.all(np.abs(result.coefficients - [1, 2]) < 0.2))
    (('intercept', 'slope'), True)
    """
    units = population_units(
        unlabelled, population_features, population_proxy, population_stratum, intercept=intercept
    )
    if intercept:
        features = with_intercept(feature_matrix("features", features))
        plain = features.shape[1] - 1
        names = [f"x{j}" for j in range(plain)] if names is None else names
        names = ("intercept", *names) if len(names) == plain else names
    rectified = RectifiedLoss(loss, outcome, weighting, features, proxy, units, names)
    chosen = Options.read(options)
    if chosen.form == "fits" and not loss.quadratic:
        raise InputError("form='fits' is for linear regression", given=loss.name, allowed="form='loss'")
    rectified.require_target(chosen)
    move = move_of(rectified, chosen)
    if move is not None:
        rectified = move.of(rectified)
    fit, solution = choose_lam(rectified, chosen)
    theta, lam = solution.theta, fit.lam[:, 0]
    parts = Sandwich(rectified=rectified, options=chosen, theta=theta, lam=lam)
    hessian = parts.hessian(solution.hessian)
    moved = 0.0 if move is None else move.kept
    if moved > 0:  # so far it is the labels' own fit that was taken from the proxy
        own_hessian = loss.hessian(theta, rectified.features, rectified.outcome, rectified.weights)
        hessian = moved * own_hessian + (1.0 - moved) * hessian
    residual = rectified.residual_gradients(theta, lam)
    covariance, freedom, influences, doubts = _sandwich(parts, fit, require_inverse(hessian), residual, moved)
    within = _within(rectified, residual)
    own = None if rectified.proxy is None else loss.gradients(theta, rectified.features, rectified.proxy)
    return MEstimate(
        names=rectified.names,
        coefficients=theta,
        covariance=covariance,
        degrees_of_freedom=freedom,
        loss=loss.name,
        estimator=chosen.estimator_name(proxy is not None),
        lam=lam if move is None else move.stretch * lam,
        target=chosen.target,
        n=len(rectified.outcome),
        population_size=rectified.population_size,
        counts=rectified.counts,
        sizes=weighting.sizes,
        hessian=hessian,
        influences=influences,
        weighting=weighting,
        residual_covariances=within,
        proxy_covariances=np.zeros_like(within) if own is None else _within(rectified, own),
        iterations=solution.iterations,
        notes=(*fit.notes, *(() if move is None else move.notes), *doubts),
    )


def _sandwich(
    parts: Sandwich, fit: ChosenLam, bread: FloatArray, residual: FloatArray, moved: float
) -> tuple[FloatArray, FloatArray, FloatArray, tuple[str, ...]]:
    """Return the coefficients' covariance (d, d), degrees of freedom, influences (n, d), and notes."""
    rectified, unlabelled = parts.rectified, None
    if rectified.unlabelled is not None and rectified.separate and np.any(parts.lam):
        unlabelled = rectified.unlabelled.covariances(rectified.loss, parts.theta)
    few, pulls = _few_clusters(parts, bread, moved), _pulls(parts, bread, moved)
    corrected = _corrected(parts, fit, residual, pulls, few)
    spread = bread @ parts.meat(corrected, unlabelled) @ bread
    used = float(fit.spent.sum()) + max(rectified.features.shape[1] - 1, 0)
    free = max(len(residual) - len(rectified.shares), 1)
    kept = max(1.0 - used / free, 0.0)
    influences = -corrected @ bread
    if few is None:
        freedom = sandwich.degrees_of_freedom(rectified.weighting, influences)
    else:
        freedom = few.degrees_of_freedom()
    notes = leverage_notes(rectified.names, pulls, influences, grows=rectified.loss.grows)
    return 0.5 * (spread + spread.T), np.maximum(kept * freedom, 1.0), influences, notes


def _pulls(parts: Sandwich, bread: FloatArray, moved: float) -> FloatArray | None:
    """Return each labelled unit's leverage (n,) in the fit, as far as it is not taken from the proxy."""
    rectified = parts.rectified
    own = rectified.loss.leverages(parts.theta, rectified.features, bread)
    labelled = 1.0 - (1.0 - moved) * rectified.per_unit(parts.lam)
    return None if own is None else np.asarray(rectified.weights * labelled * own)


def leverage_notes(
    names: Sequence[str], pulls: FloatArray | None, influences: FloatArray, *, grows: bool
) -> tuple[str, ...]:
    """Return what to say where few labelled units decide the fit, and on how many a coefficient rests.

    A unit with a leverage above one half predicts itself more than all others do together. Where the mean
    grows exponentially (`grows`), units farther out than the labelled ones would decide: the slope of a
    Poisson regression on a log-normal feature covered .43 to .78 (docs/methods/regression.md).

    Examples
    --------
    >>> u = np.array([[9.0], [1.0], [-1.0]])
    >>> leverage_notes(("slope",), np.array([0.8, 0.1, 0.1]), u, grows=False)[0].split(";")[0]
    "coefficient 'slope' rests on about 1.0 of 3 labels (highest leverage 0.80)"
    """
    if pulls is None or not len(pulls):
        return ()
    squares, fourth = np.sum(influences**2, axis=0), np.sum(influences**4, axis=0)
    worth = np.where(fourth > 0, squares**2 / np.where(fourth > 0, fourth, 1.0), len(influences))
    fewest, highest = int(np.argmin(worth)), float(pulls.max())
    few = highest > _DECIDES_GROWTH or worth[fewest] < _FEWEST if grows else highest > _DECIDES
    if not few:
        return ()
    return (
        f"coefficient {names[fewest]!r} rests on about {worth[fewest]:.1f} of {len(influences)} labels "
        f"(highest leverage {highest:.2f}); its interval covers less often than it says where other units "
        "lie farther out: take the logarithm of a feature with a long tail, or label its far units",
    )


def _few_clusters(parts: Sandwich, bread: FloatArray, moved: float) -> FewClusters | None:
    """Return what each cluster adds to the fit; None where units were drawn one by one."""
    rectified, groups = parts.rectified, parts.rectified.weighting.groups
    if groups is None or parts.options.correction != "leverage" or np.linalg.eigvalsh(bread)[0] <= 0:
        return None
    weights = rectified.weights * (1.0 - (1.0 - moved) * rectified.per_unit(parts.lam))
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    x, y = rectified.features, rectified.outcome
    hessians = [rectified.loss.hessian(parts.theta, x[rows], y[rows], weights[rows]) for rows in members]
    return FewClusters(cluster=groups, parts=np.stack(hessians), bread=bread)


def _corrected(
    parts: Sandwich,
    fit: ChosenLam,
    residual: FloatArray,
    pulls: FloatArray | None,
    few: FewClusters | None,
) -> FloatArray:
    """Return residual gradients corrected for what was fitted on the same labels: coefficients and λ."""
    rectified, correction = parts.rectified, parts.options.correction
    n, n_strata = len(residual), len(rectified.shares)
    if correction == "none":
        return residual
    if correction == "degrees":
        tuned = sandwich.degrees_factor(n - n_strata + 1, float(fit.spent.sum()) + 1.0)
        return residual * tuned * sandwich.degrees_factor(n, max(rectified.features.shape[1], 1))
    leverages = np.zeros(n) if fit.leverages is None else fit.leverages
    if few is not None:
        residual = few.stretched(residual)
    elif pulls is None:
        residual = residual * sandwich.degrees_factor(n, residual.shape[1])
    else:
        leverages = leverages + pulls
    return sandwich.left_out_residuals(residual, leverages, rectified.stratum, n_strata)


def _within(rectified: RectifiedLoss, gradients: FloatArray) -> FloatArray:
    """Return covariances within strata (H, d, d); zeros where a stratum has one label."""
    within = stratum_covariances(gradients, rectified.stratum, len(rectified.counts))
    return np.nan_to_num(within, copy=False)
