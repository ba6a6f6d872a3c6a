"""Where the next labels help most: the optimal split of a budget for one coefficient or for all.

Fisch et al. (2024), eq. 18: ρ_h ∝ W_h √Tr(C' A⁻¹ V_h A⁻¹ C), with V_h the covariance of the residual
gradients within the stratum: `stratal.strata.neyman` with S_h the spread of the coefficients' influence.
From a pilot, V_h is estimated; before any label, the proxies stand in for the labels (the papers' heuristic).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.estimation.regression.losses import GeneralisedLinear, LinearLoss, Loss
from stratal.estimation.regression.m_estimation import Coefficients, directed_variances
from stratal.estimation.regression.rectified_loss import (
    Solution,
    contrasts,
    minimum_failure,
    newton,
    require_choice,
    require_inverse,
)
from stratal.estimation.regression.unlabelled import Unlabelled


def influence_spreads(pilot: Coefficients, minimise: Any = "trace", side: str = "labelled") -> FloatArray:
    """Return S_h (H,), the standard deviation of the coefficients' influence in each stratum, from a pilot.

    Parameters
    ----------
    pilot : Coefficients
        From a stratified design.
    minimise : "trace", coefficient name or index, or vector (d,)
        Whose variance matters.
    side : str
        "labelled": of ∇ℓ(x, y) − λ∇ℓ(x, f), for the labels. "unlabelled": of λ∇ℓ(x, f), the second half of
        eq. 18, for a separate unlabelled sample that costs something too.

    Returns
    -------
    float (H,)
        A stratum with fewer than two pilot labels takes the largest of the others: it has shown nothing yet.

    Examples
    --------
    >>> from stratal.estimation.regression.m_estimation import mean_vector
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.array([0, 0, 1, 1]), sizes=np.array([50, 50]))
    >>> influence_spreads(mean_vector([0.0, 2.0, 0.0, 4.0], weighting=weighting)).round(3)
    array([1.414, 2.828])
    """
    require_choice("side", side, ("labelled", "unlabelled"))
    directions = require_inverse(pilot.hessian) @ contrasts(minimise, len(pilot), pilot.names)
    if side == "labelled":
        within = pilot.residual_covariances
    else:
        within = pilot.lam[:, None, None] ** 2 * pilot.proxy_covariances
    spreads = np.sqrt(np.maximum(directed_variances(within, directions), 0.0))
    unknown = pilot.counts < 2
    if np.any(unknown) and not np.all(unknown):
        spreads[unknown] = spreads[~unknown].max()
    return spreads


def heuristic_spreads(
    loss: Loss,
    unlabelled: Unlabelled,
    *,
    conditional_variance: str | float | FloatArray = "auto",
    lam: float = 1.0,
    minimise: Any = "trace",
) -> FloatArray:
    """Return S_h (H,) from the proxies alone, taking them for conditional means of the outcome (eq. 20–21).

    θ is fitted to the proxies; then Var_h(P'∇ℓ(x, y) − λP'∇ℓ(x, f)) is
    mean_h(‖P'x‖² Var(y|x)) + (1 − λ)² Var_h(P'∇ℓ(x, f)).

    Parameters
    ----------
    loss : Loss
        A generalised linear one, or `MeanLoss`.
    unlabelled : Unlabelled
    conditional_variance : "auto", float or (N,)
        Var(y | x). "auto": f(1 − f) for logistic regression and means in [0, 1], f for Poisson, and one (the
        same everywhere) otherwise. An array goes in the order of `unlabelled.blocks()`.
    lam : float
        As it will be used; 1 as in the paper.
    minimise : "trace", index or vector (d,)

    Returns
    -------
    float (H,)

    Examples
    --------
    >>> from stratal.estimation.regression.losses import MeanLoss
    >>> from stratal.estimation.regression.unlabelled import ArrayUnlabelled
    >>> units = ArrayUnlabelled(proxy=[0.5, 0.5, 0.9, 0.9], stratum=np.array([0, 0, 1, 1]))
    >>> heuristic_spreads(MeanLoss(), units)
    array([0.5, 0.3])
    """
    fit = fit_to_proxies(loss, unlabelled)
    directions = require_inverse(fit.hessian) @ contrasts(minimise, len(fit.theta))
    noise = _mean_noise(loss, unlabelled, directions, conditional_variance)
    if lam != 1.0:
        spread = directed_variances(unlabelled.covariances(loss, fit.theta), directions)
        noise = noise + (1.0 - lam) ** 2 * spread
    return np.asarray(np.sqrt(noise))


def fit_to_proxies(loss: Loss, unlabelled: Unlabelled) -> Solution:
    """Return the minimiser over all units with the proxies in the place of the outcomes, and its hessian.

    Raises
    ------
    InputError
        Where there is no minimum: collinear features, proxies that features separate.

    Examples
    --------
    >>> from stratal.estimation.regression.losses import MeanLoss
    >>> from stratal.estimation.regression.unlabelled import ArrayUnlabelled
    >>> fit_to_proxies(MeanLoss(), ArrayUnlabelled(proxy=[0.5, 0.5, 0.9, 0.9])).theta
    array([0.7])
    """
    shares = unlabelled.totals / unlabelled.totals.sum()
    block = next(unlabelled.blocks())
    start = np.zeros(loss.n_parameters(block.features, block.proxy))
    fit = newton(
        lambda theta, curvature: unlabelled.summed(loss, theta, shares, curvature=curvature),
        start,
        quadratic=loss.quadratic,
    )
    gram = None
    if isinstance(loss, GeneralisedLinear):
        gram = unlabelled.summed(LinearLoss(), start, shares).hessian
    if minimum_failure(fit, loss, block.proxy, gram, rectified=False) is not None:
        raise InputError("the fit to the proxies has no minimum", action="Check proxies and features.")
    return fit


def _mean_noise(
    loss: Loss, unlabelled: Unlabelled, directions: FloatArray, conditional_variance: str | float | FloatArray
) -> FloatArray:
    """Return mean over each stratum of ‖P'x‖² Var(y | x) (H,)."""
    totals, seen = np.zeros(unlabelled.n_strata), 0
    for block in unlabelled.blocks():
        m = len(block.proxy)
        if isinstance(conditional_variance, np.ndarray) and conditional_variance.ndim:
            noise = conditional_variance[seen : seen + m]
        elif isinstance(conditional_variance, str):
            noise = _model_variance(loss, block.proxy)
        else:
            noise = np.full(block.proxy.shape, float(conditional_variance))
        seen += m
        if isinstance(loss, GeneralisedLinear):
            lengths = np.sum((block.features @ directions) ** 2, axis=1)
            terms = lengths * noise
        else:
            terms = noise.reshape(m, -1) @ np.sum(directions**2, axis=1)
        if block.weights is not None:
            terms = terms * block.weights
        totals += np.bincount(block.stratum, terms, minlength=unlabelled.n_strata)
    return totals / unlabelled.totals


def _model_variance(loss: Loss, proxy: FloatArray) -> FloatArray:
    """Return Var(y | x) of a proxy that is the conditional mean; that of 0 and 1 for means in [0, 1]."""
    if isinstance(loss, GeneralisedLinear):
        return loss.variance(proxy)
    return proxy * (1.0 - proxy) if proxy.min() >= 0 and proxy.max() <= 1 else np.ones_like(proxy)
