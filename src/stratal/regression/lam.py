"""λ of a regression, given or fitted: the mean's rule, on the influences at a first estimate of θ.

λ minimises the estimated variance of the chosen coefficients: PPI++ (Angelopoulos, Duchi & Zrnic 2023,
section 6) and its stratified form (Fisch et al. 2024, eq. 16). With P = A⁻¹C the influence directions,
u = P'∇ℓ(x, y) and v = P'∇ℓ(x, f) are to it what outcome and proxy are to a mean, their moments summed over
the coefficients. The rule itself stands in `stratal.estimation.lam`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, finite_vector
from stratal.designs.stratum_moments import LabelledSpread, stratum_means
from stratal.errors import InputError
from stratal.estimation.lam import ChosenLam, fit_general, fit_stratified
from stratal.regression.losses import Loss
from stratal.regression.options import Options, contrasts, require_one_per
from stratal.regression.rectified_loss import RectifiedLoss
from stratal.regression.sandwich import directed_variances
from stratal.regression.solver import Solution, newton
from stratal.regression.unlabelled import finite_array

_ROUNDING = 1e-24
"""A variance below this share of the mean square is that of a constant, in floating point."""

_FIRST_TOLERANCE = 0.05
"""Of the first round: λ needs no exact θ."""


def choose_lam(rectified: RectifiedLoss, options: Options) -> tuple[ChosenLam, Solution]:
    """Return λ (H, 1), given or fitted, with the minimum of the rectified loss at it.

    A fitted λ depends on θ and the other way round: two rounds are made from the classical estimate (or,
    where the labels alone have none, from the fit to the proxies). One would do in the limit.
    """
    nothing, loss = np.zeros(len(rectified.shares)), rectified.loss
    start = np.zeros(rectified.n_parameters)
    if options.start is not None:
        require_one_per("coefficient", "start", np.ravel(options.start), len(start))
        start = finite_vector("start", options.start)
    if options.lam is not None or options.estimator == "classical" or rectified.unlabelled is None:
        lam = nothing if options.lam is None else _given_lam(options.lam, len(nothing))
        start = _start(rectified, options, start) if np.any(lam) else start
        found = ChosenLam(lam=lam[:, None], spent=nothing, notes=_outside(lam, loss))
        return found, rectified.require_solution(lam, start, options)
    bounds, theta = _clip_range(options.clip, loss), _start(rectified, options, start)
    for chosen in (dataclasses.replace(options, tolerance=_FIRST_TOLERANCE), options):
        fit = fit_lam(rectified, options, theta)
        lam = np.clip(fit.lam, *bounds)
        solution = rectified.require_solution(lam[:, 0], theta, chosen)
        theta = solution.theta
    why = "the range in which the rectified loss is convex" if options.clip == "convex" else "the given range"
    notes = (f"λ was clipped to {why}",) if np.any(lam != fit.lam) else ()
    return dataclasses.replace(fit, lam=lam, notes=notes), solution


def fit_lam(rectified: RectifiedLoss, options: Options, theta: FloatArray) -> ChosenLam:
    """Return λ (H, 1) as the gradients at θ give it, before any clipping."""
    loss, stratum, counts = rectified.loss, rectified.stratum, rectified.counts
    proxy, units = rectified.proxied()
    bread = rectified.labelled_inverse(theta)
    directions = bread @ contrasts(options.minimise, rectified.n_parameters, rectified.names)
    u, v = (
        loss.gradients(theta, rectified.features, given) @ directions for given in (rectified.outcome, proxy)
    )
    weighting, n_strata = rectified.weighting, len(counts)
    if not weighting.random_within_strata:
        if options.estimator == "stratppi":
            raise InputError(
                "λ per stratum needs a stratified design", action="Use estimator='ppi++' (one λ)."
            )
        found = fit_general(u, v[..., None], weighting, n_strata=n_strata, sized=False)
        if not units.separate:
            return found
        whole = directed_variances(units.covariances(loss, theta), directions)
        own = float(np.trace(weighting.covariance(v)))
        imputed = float(np.sum(rectified.shares**2 * whole / units.counts))
        return dataclasses.replace(found, lam=found.lam * own / max(own + imputed, _ROUNDING))
    whole = directed_variances(units.covariances(loss, theta), directions)
    size = np.sum(v * v, axis=1)
    u, v = (part - stratum_means(part, stratum, n_strata)[stratum] for part in (u, v))
    squares = np.sum(v * v, axis=1)
    of_outcome, cross, of_proxy, size = (
        np.bincount(stratum, part, minlength=n_strata) / np.maximum(counts - 1.0, 1.0)
        for part in (np.sum(u * u, axis=1), np.sum(u * v, axis=1), squares, size)
    )
    of_proxy, whole = (np.where(part > _ROUNDING * size, part, 0.0) for part in (of_proxy, whole))
    factors, known = weighting.variance_factors, weighting.variance_factors > 0
    if units.separate:  # λ² V_h is drawn twice, with the labels and with the unlabelled units
        more = 1.0 + rectified.shares**2 / units.counts / np.where(known, factors, 1.0)
        of_proxy, whole = more * of_proxy, more * whole
    published = options.shrinkage == 0
    spread = LabelledSpread.of(of_proxy[:, None, None], of_outcome, np.zeros(n_strata), counts, None)
    found = fit_stratified(
        np.where(of_proxy > 0, cross, 0.0)[:, None],
        whole[:, None, None],
        factors,
        counts,
        options.shrinkage if options.estimator == "stratppi" else None,
        None if published else dataclasses.replace(spread, information=np.array(np.inf)),
    )
    if published:
        return dataclasses.replace(found, spent=0.0 * found.spent)
    shared = np.bincount(stratum, squares, minlength=n_strata)
    pulls = found.spent / np.where(shared > 0, shared, 1.0)
    return dataclasses.replace(found, leverages=pulls[stratum] * squares)


def _start(rectified: RectifiedLoss, options: Options, start: FloatArray) -> FloatArray:
    """Return the classical estimate, or the fit to the proxies where the labels alone have none."""
    _, units = rectified.proxied()
    zero = np.zeros(len(rectified.shares))
    classical = rectified.solve(zero, start, options)
    if rectified.failure(classical, zero) is None:
        return classical.theta
    loss, shares = rectified.loss, rectified.shares
    found = newton(
        lambda theta, curvature: units.summed(loss, theta, shares, curvature=curvature),
        start,
        max_iterations=options.max_iterations,
    )
    return found.theta if found.status == "converged" else start


def _given_lam(lam: Any, n_strata: int) -> FloatArray:
    """Return a given λ as one per stratum (H,)."""
    values = finite_array("lam", np.atleast_1d(lam))
    if values.shape not in ((1,), (n_strata,)):
        raise InputError(
            "lam must be one number or one per stratum", given=values.shape, allowed=f"({n_strata},)"
        )
    return np.array(np.broadcast_to(values, n_strata))


def _outside(lam: FloatArray, loss: Loss) -> tuple[str, ...]:
    """Return a note where a given λ leaves the range in which the rectified loss is surely convex."""
    low, high = loss.convex_range
    if np.all((lam >= low) & (lam <= high)):
        return ()
    return (f"λ is outside {low:g} to {high:g}: the rectified loss need not be convex, nor this its minimum",)


def _clip_range(clip: Any, loss: Loss) -> tuple[float, float]:
    if clip is None:
        return -np.inf, np.inf
    if isinstance(clip, str) and clip == "convex":
        return loss.convex_range
    bounds = None if isinstance(clip, str) else np.asarray(clip, dtype=np.float64)
    if bounds is None or bounds.shape != (2,) or not bounds[0] <= bounds[1]:
        raise InputError("clip must be a range", given=repr(clip), allowed="'convex', None, (low, high)")
    return float(bounds[0]), float(bounds[1])
