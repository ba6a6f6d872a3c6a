"""λ, how much to trust the proxy of a regression: given, or fitted from the gradients at a first estimate.

λ minimises the estimated variance of the chosen coefficients: PPI++ (Angelopoulos, Duchi & Zrnic 2023,
section 6) and its stratified form (Fisch et al. 2024, eq. 16). With P = A⁻¹C the influence directions, u =
P'∇ℓ(x, y) and v = P'∇ℓ(x, f), one number per stratum is needed of each: c_h = Σ Cov(u, v) and s_h = Σ Var v.

Two choices differ from the papers, both measured in docs/methods/regression.md. The denominator blends the
labelled units' own Var v with that of all units: numerator and denominator from the same units cancel most of
the noise in λ when the proxy is good, and the known variance steadies it when labels are few. And λ_h is
shrunk to the pooled λ unless the strata differ by more than their own noise (an empirical Bayes estimate).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record, finite_vector
from stratal.errors import InputError
from stratal.estimation.lam import pooled_lam, solve_semidefinite
from stratal.regression.losses import Loss
from stratal.regression.options import Options, contrasts, require_one_per
from stratal.regression.rectified_loss import RectifiedLoss
from stratal.regression.sandwich import directed_variances
from stratal.regression.solver import Solution, newton
from stratal.regression.unlabelled import finite_array
from stratal.weighting.stratum_moments import stratum_means

POOLED_LABELS = 10.0
"""Weight of the pooled noise of λ_h, in labels, against the stratum's own."""

FEWEST_LABELS = 6
"""Strata with fewer labels take the pooled λ: their own would be noise (measured)."""

PRIOR_LABELS = {"blended": 2.0, "population": np.inf, "labelled": 0.0}
"""Weight, in labels, of the known variance of the proxy gradient against the labelled units' own."""

_ROUNDING = 1e-24
"""A variance below this share of the mean square is that of a constant, in floating point."""

_FIRST_TOLERANCE = 0.05
"""Of the first round: λ needs no exact θ."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedLam:
    """λ, and what it cost to find it.

    Parameters
    ----------
    lam : float (H,)
    kept : float (H,)
        Share of its own value that each fitted λ_h kept.
    fitted : float
        How many free λ were fitted, for the degrees of freedom.
    leverages : float (n,), optional
        Each labelled unit's pull on the λ that its residual is taken with.
    notes : tuple of str

    Examples
    --------
    >>> FittedLam(lam=np.ones(1), kept=np.zeros(1)).fitted
    0.0
    """

    lam: FloatArray
    kept: FloatArray
    fitted: float = 0.0
    leverages: FloatArray | None = None
    notes: tuple[str, ...] = ()


def choose_lam(rectified: RectifiedLoss, options: Options) -> tuple[FittedLam, Solution]:
    """Return λ, given or fitted, with the minimum of the rectified loss at it.

    A fitted λ depends on θ and the other way round: two rounds are made from the classical estimate (or,
    where the labels alone have none, from the fit to the proxies). One would do in the limit.
    """
    zero = np.zeros(len(rectified.shares))
    start = _given_start(rectified, options)
    if options.lam is not None or options.estimator == "classical" or rectified.unlabelled is None:
        lam = zero if options.lam is None else _given_lam(options.lam, len(zero))
        start = _start(rectified, options, start) if np.any(lam) else start
        found = FittedLam(lam=lam, kept=zero, notes=_outside(lam, rectified.loss))
        return found, rectified.require_solution(lam, start, options)
    bounds = _clip_range(options.clip, rectified.loss)
    theta = _start(rectified, options, start)
    first = dataclasses.replace(options, tolerance=_FIRST_TOLERANCE)
    for chosen in (first, options):
        fit = fit_lam(rectified, options, theta)
        lam = np.clip(fit.lam, *bounds)
        solution = rectified.require_solution(lam, theta, chosen)
        theta = solution.theta
    why = "the range in which the rectified loss is convex" if options.clip == "convex" else "the given range"
    notes = (f"λ was clipped to {why}",) if np.any(lam != fit.lam) else ()
    return dataclasses.replace(fit, lam=lam, notes=notes), solution


def fit_lam(rectified: RectifiedLoss, options: Options, theta: FloatArray) -> FittedLam:
    """Return λ as the gradients at θ give it, before any clipping."""
    loss, features, n_strata = rectified.loss, rectified.features, len(rectified.shares)
    proxy, units = rectified.proxied()
    bread = rectified.labelled_inverse(theta)
    directions = bread @ contrasts(options.minimise, rectified.n_parameters, rectified.names)
    u = loss.gradients(theta, features, rectified.outcome) @ directions
    v = loss.gradients(theta, features, proxy) @ directions
    none = np.zeros(n_strata)
    if not rectified.weighting.random_within_strata:
        if options.estimator == "stratppi":
            raise InputError(
                "λ per stratum needs a stratified design", action="Use estimator='ppi++' (one λ)."
            )
        lam = _design_lam(rectified, theta, directions, u, v)
        return FittedLam(lam=lam, kept=none, fitted=1.0, leverages=np.full(len(u), 1.0 / len(u)))
    moments = StratumMoments(
        true_influence=u,
        proxy_influence=v,
        stratum=rectified.stratum,
        counts=rectified.counts,
        population_spread=directed_variances(units.moments(loss, theta).covariances, directions),
        labelled_factor=rectified.weighting.variance_factors,
        unlabelled_factor=rectified.shares**2 / units.counts if units.separate else none,
        denominator=options.denominator,
    )
    if options.estimator == "ppi++":
        lam, kept, own = np.full(n_strata, moments.pooled()), none, 0.0
    else:
        lam, kept = moments.shrunk() if options.shrink else (moments.own(), np.ones(n_strata))
        own = float(np.mean(kept)) * (n_strata - 1)
    return FittedLam(lam=lam, kept=kept, fitted=1.0 + own, leverages=moments.leverages(kept))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumMoments(Record):
    """What λ depends on: how the influence of outcome and proxy vary together within strata.

    Parameters
    ----------
    true_influence, proxy_influence : float (n, q)
        u and v of each labelled unit.
    stratum : int (n,)
    counts : int (H,)
        n_h.
    population_spread : float (H,)
        Var v over all units of the stratum, summed over the coefficients.
    labelled_factor : float (H,)
        What multiplies a variance within the stratum in that of the estimate: W_h² (1 − n_h/N_h) / n_h.
    unlabelled_factor : float (H,)
        What multiplies λ² s_h besides: W_h² / N_h for a separate unlabelled sample, else 0.
    denominator : str
        "blended", "population" or "labelled": whose Var v divides.

    Attributes
    ----------
    products, squares : float (n,)
        u·v and v·v of each labelled unit, centred within strata, summed over the coefficients.
    labelled_spread : float (H,)
        Var v among the labelled units.

    Examples
    --------
    >>> v = np.array([[0.0], [1.0], [2.0]])
    >>> moments = StratumMoments(
    ...     true_influence=2 * v, proxy_influence=v, stratum=np.zeros(3, int), counts=np.array([3]),
    ...     population_spread=np.ones(1), labelled_factor=np.ones(1), unlabelled_factor=np.zeros(1))
    >>> moments.pooled()
    2.0
    """

    true_influence: FloatArray
    proxy_influence: FloatArray
    stratum: IntArray
    counts: IntArray
    population_spread: FloatArray
    labelled_factor: FloatArray
    unlabelled_factor: FloatArray
    denominator: str = "blended"
    products: FloatArray = field(init=False)
    squares: FloatArray = field(init=False)
    labelled_spread: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        stratum, n_strata = self.stratum, len(self.counts)
        u, v = (
            values - stratum_means(values, stratum, n_strata)[stratum]
            for values in (self.true_influence, self.proxy_influence)
        )
        size = self._sums(np.sum(self.proxy_influence**2, axis=1)) / np.maximum(self.counts, 1)
        squares = np.sum(v * v, axis=1)
        squares = np.where(squares > _ROUNDING * size[stratum], squares, 0.0)
        spread = np.where(self.population_spread > _ROUNDING * size, self.population_spread, 0.0)
        products = np.where(squares > 0, np.sum(u * v, axis=1), 0.0)
        self._set(squares=squares, products=products, population_spread=spread)
        self._set(labelled_spread=self._sums(squares) / self.labels)

    @property
    def labels(self) -> FloatArray:
        """n_h − 1, at least one."""
        return np.asarray(np.maximum(self.counts - 1.0, 1.0), dtype=np.float64)

    @property
    def cross(self) -> FloatArray:
        """c_h (H,)."""
        return np.asarray(self._sums(self.products) / self.labels)

    @property
    def spread(self) -> FloatArray:
        """s_h (H,), as the denominator says."""
        return self._blended(self.counts - 1.0)

    def pooled(self) -> float:
        """Return the λ that minimises the whole variance, 0 where the proxy gradient never varies.

        Its denominator is blended once over all strata, so that labels in any of them count.
        """
        spread = self._inflated(self._blended(np.sum(self.counts - 1.0)))
        return float(pooled_lam(self.cross[:, None], spread[:, None, None], self.labelled_factor)[0])

    def own(self) -> FloatArray:
        """Return each stratum's own λ_h (H,), 0 where the proxy gradient does not vary (eq. 16)."""
        spread = self._inflated(self.spread)
        return solve_semidefinite(spread[:, None, None], self.cross[:, None])[:, 0]

    def agreement(self) -> FloatArray:
        """Return the share (H,) of λ_h's own value to keep, in [0, 1]: τ² / (τ² + noise).

        τ², the variance of the true λ_h, is found by moments (DerSimonian & Laird 1986) from what Cochran's Q
        has beyond its mean and one standard deviation under equal λ: a stratum's own λ must earn its place.
        Where it has, the noise that shrinks it is that of its own residuals.
        """
        noise = self._noise(np.full(len(self.counts), self.pooled()))
        used = (self.spread > 0) & (self.labelled_factor > 0) & (noise > 0) & (self.counts >= FEWEST_LABELS)
        kept = np.zeros(len(noise))
        if used.sum() < 2:
            return kept
        weight, own, free = 1.0 / noise[used], self.own()[used], used.sum() - 1.0
        centre = np.sum(weight * own) / weight.sum()
        excess = np.sum(weight * (own - centre) ** 2) - free - np.sqrt(2.0 * free)
        between = max(0.0, excess / (weight.sum() - np.sum(weight**2) / weight.sum()))
        residual = self._noise(self.own())[used]
        kept[used] = between / (between + residual) if between > 0 else 0.0
        return kept

    def shrunk(self) -> tuple[FloatArray, FloatArray]:
        """Return λ_h shrunk to the pooled λ (H,), and the share of its own value that each kept (H,)."""
        pooled, kept = self.pooled(), self.agreement()
        return pooled + kept * (self.own() - pooled), kept

    def leverages(self, kept: FloatArray) -> FloatArray:
        """Return each labelled unit's pull (n,) on the λ that its own residual is taken with."""
        factor = (self.labelled_factor / self.labels)[self.stratum]
        total = self.labelled_factor @ self._inflated(self._blended(np.sum(self.counts - 1.0)))
        own = (self.labels * self.spread)[self.stratum]
        pooled = factor * self.squares / total if total > 0 else np.zeros(len(self.squares))
        single = np.where(own > 0, self.squares / np.where(own > 0, own, 1.0), 0.0)
        share = kept[self.stratum]
        return np.asarray(share * single + (1.0 - share) * pooled)

    def _sums(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.stratum, values, minlength=len(self.counts)))

    def _blended(self, labels: Any) -> FloatArray:
        """Return the labelled variance (H,) blended with the population's, which weighs a few labels."""
        own, prior = self.labelled_spread, PRIOR_LABELS[self.denominator]
        if prior == 0:
            return own
        whole = self.population_spread
        return whole if np.isinf(prior) else np.asarray((labels * own + prior * whole) / (labels + prior))

    def _inflated(self, spread: FloatArray) -> FloatArray:
        """Return s_h (H,) with what a separate unlabelled sample adds to the variance; 0 for a census."""
        known = self.labelled_factor > 0
        more = self.unlabelled_factor / np.where(known, self.labelled_factor, 1.0)
        return np.asarray(np.where(known, (1.0 + more) * spread, 0.0))

    def _noise(self, lam: FloatArray) -> FloatArray:
        """Return the sampling variance (H,) of λ_h if `lam` were the truth, steadied by the pooled one."""
        spread = np.where(self.spread > 0, self.spread, np.inf)
        base = self.population_spread[self.stratum] if self.denominator == "population" else self.squares
        scaled = (self.products - lam[self.stratum] * base) / spread[self.stratum]
        squares, labels = self._sums(scaled**2), self.labels
        typical = squares.sum() / labels.sum()
        own = (squares + POOLED_LABELS * typical) / (labels + POOLED_LABELS)
        return np.asarray(own / labels * (1.0 + 2.0 / labels))


def _design_lam(
    rectified: RectifiedLoss, theta: FloatArray, directions: FloatArray, u: FloatArray, v: FloatArray
) -> FloatArray:
    """Return the one λ (1,) of a design without strata, from its own covariances of u and v."""
    _, units = rectified.proxied()
    q = u.shape[1]
    joint = rectified.weighting.covariance(np.concatenate([u, v], axis=1))
    spread = float(np.trace(joint[q:, q:]))
    if units.separate:
        whole = units.moments(rectified.loss, theta).covariances / units.counts
        spread += float(directed_variances(whole, directions)[0])
    return np.array([np.trace(joint[:q, q:]) / spread if spread > 0 else 0.0])


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


def _given_start(rectified: RectifiedLoss, options: Options) -> FloatArray:
    d = rectified.n_parameters
    start = np.zeros(d) if options.start is None else finite_vector("start", options.start)
    require_one_per("coefficient", "start", start, d)
    return start


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
    allowed = "'convex', None, (low, high)"
    if isinstance(clip, str):
        raise InputError("unknown clip", given=repr(clip), allowed=allowed)
    bounds = np.asarray(clip, dtype=np.float64)
    if bounds.shape != (2,) or not bounds[0] <= bounds[1]:
        raise InputError("clip must be a range", given=repr(clip), allowed=allowed)
    return float(bounds[0]), float(bounds[1])
