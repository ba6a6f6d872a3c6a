"""Quantiles with a proxy: the least rectified pinball loss, and the values that its score test keeps.

F(t) = Σ_h W_h [ λ_h F^f_{U_h}(t) + F^y_{S_h}(t) − λ_h F^f_{S_h}(t) ]

Between two labelled values (of y or f), a gap, only the population's part of F moves, and for λ ≥ 0 it rises.
F is therefore known from one pass that counts the population's values by gap; the values themselves are
fetched, by a second pass, for the few gaps that matter. The population may be larger than memory.

At a candidate t the score is F(t) − q and its variance that of the mean of 1(y ≤ t) − λ 1(f ≤ t) under the
design: no density is estimated (Woodruff 1952; Angelopoulos, Duchi & Zrnic 2023, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from stratal.arrays import BoolArray, FloatArray, IntArray, finite_vector
from stratal.designs import Weighting
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate, linearised_estimate, undefined_estimate
from stratal.estimation.lam import ChosenLam
from stratal.estimation.linearised import Linearised, ratio_of_means
from stratal.estimation.regression.losses import MeanLoss
from stratal.estimation.regression.m_estimation import choose_lam, common_lam, degrees_factor
from stratal.estimation.regression.rectified_loss import RectifiedLoss, Solution
from stratal.estimation.shares import domain_trials
from stratal.intervals.interval import tail_shares
from stratal.intervals.limits import BinomialLimits, Limits, upper_tail
from stratal.intervals.proportion import student_quantile

# Sums of weights that should be equal differ by less.
_ROUNDING = 1e-12

# Standard errors are taken at 33 gaps, and where F is within 1.3 times the region's reach of q.
_COARSE, _MARGIN = 33, 1.3


class Pinball(MeanLoss):
    """The score of a quantile, 1(y ≤ θ) − q, in the shape of a loss, so that λ is fitted as for any other.

    Its Hessian is a density that nothing here needs: with Σ w in its place, as of a mean, influence is on the
    scale of the distribution function.

    Examples
    --------
    >>> Pinball(0.5).gradients(np.array([1.0]), np.empty((2, 0)), np.array([0.0, 3.0])).ravel()
    array([ 0.5, -0.5])
    """

    name: ClassVar[str] = "quantile"
    convex_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    quadratic: ClassVar[bool] = False

    def __init__(self, probability: float) -> None:
        self.probability = probability

    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """Return 1(y ≤ θ) − q."""
        return np.asarray(((outcome <= theta[0]) - self.probability)[:, None])


@dataclass(kw_only=True, eq=False)
class RectifiedPinball(RectifiedLoss):
    """The rectified pinball loss, with the labelled points and the population's counts at them.

    Attributes
    ----------
    points : float (m,)
        Sorted distinct labelled values of y and f.
    below, equal, sums : float (H, m)
        Of each stratum's units the share with f ≤ point and with f = point, and the mean of f · 1(f ≤ point).

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(3, int), sizes=np.array([30]))
    >>> loss = RectifiedPinball(loss=Pinball(0.5), outcome=[1.0, 2.0, 9.0], weighting=weighting)
    >>> loss.solve(np.zeros(1), np.zeros(1)).theta
    array([2.])
    """

    loss: Pinball

    def __post_init__(self) -> None:
        self.outcome = finite_vector("outcome", self.outcome)
        RectifiedLoss.__post_init__(self)
        labels = self.outcome
        self.points = np.unique(labels if self.proxy is None else np.concatenate([labels, self.proxy]))
        self.below, self.equal, self.sums = self._counts()

    def _counts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Count the population's proxies at the points, in one pass."""
        n_strata, m = len(self.shares), len(self.points)
        found = np.zeros((3, n_strata, m + 1))
        if self.unlabelled is not None:
            for block in self.unlabelled.blocks():
                gap, on_point = self._locate(block.proxy)
                weights = np.ones(len(gap)) if block.weights is None else block.weights
                cell = gap + block.stratum * (m + 1)
                parts = weights, weights * on_point, weights * block.proxy
                for total, part in zip(found, parts, strict=True):
                    total += np.bincount(cell, part, minlength=total.size).reshape(total.shape)
            found /= self.unlabelled.totals[:, None]
        counts, equal, sums = found[:, :, :m]
        return np.cumsum(counts, axis=1), equal, np.cumsum(sums, axis=1)

    def _locate(self, values: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the index of the first point at or above each value, and whether the value is that point."""
        gap = np.searchsorted(self.points, values, side="left")
        return gap, self.points[np.minimum(gap, len(self.points) - 1)] == values

    def ends(self, lam: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return F where each gap starts and where it ends (m + 1,), and ∫ v dF up to its start.

        The last end is F at infinity: 1, but for designs whose weights do not add up to one.
        """
        values, weights = self.outcome, self.weights
        if self.proxy is not None:
            values = np.concatenate([values, self.proxy])
            weights = np.concatenate([weights, -weights * lam[self.stratum]])
        position, m, factors = np.searchsorted(self.points, values), len(self.points), self.shares * lam
        steps = np.bincount(position, weights, minlength=m)
        at = np.cumsum(steps) + factors @ self.below
        before = at - steps - factors @ self.equal
        partial = np.cumsum(np.bincount(position, weights * values, minlength=m)) + factors @ self.sums
        total = float(weights.sum() + (0.0 if self.unlabelled is None else factors.sum()))
        return np.r_[0.0, at], np.r_[before, total], np.r_[0.0, partial]

    def distribution(
        self, lam: FloatArray, gaps: BoolArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Return the rectified F at sorted values in one pass: those labelled, and in some gaps (m + 1,).

        The values (v,) are −∞, the labelled ones, and the population's in the gaps; then F at each, ∫ v dF up
        to and including each, and the gap that each begins or lies in: gap k lies before the labelled value
        k, the last one after all.
        """
        starts, _, partial = self.ends(lam)
        values, gap = np.r_[-np.inf, self.points], np.arange(len(starts))
        if self.unlabelled is None or not np.any(lam):
            return values, starts, partial, gap
        per_unit = self.shares * lam / self.unlabelled.totals
        found: list[FloatArray] = []
        for block in self.unlabelled.blocks():
            where, on_point = self._locate(block.proxy)
            rows = np.flatnonzero(gaps[where] & ~on_point)
            mass = per_unit[block.stratum[rows]]
            mass = mass if block.weights is None else mass * block.weights[rows]
            found.append(np.stack([where[rows], block.proxy[rows], mass]))
        inner = np.concatenate(found, axis=1)
        within, inside, masses = inner[:, np.argsort(inner[1], kind="stable")]
        of = within.astype(np.int64)
        # Masses add up from the start of their own gap.
        first = np.searchsorted(of, of)
        level, product = (
            np.cumsum(part) - np.r_[0.0, np.cumsum(part)][first] for part in (masses, masses * inside)
        )
        order = np.argsort(np.r_[values, inside], kind="stable")
        joined = (values, inside), (starts, starts[of] + level), (partial, partial[of] + product)
        return *(np.r_[one, two][order] for one, two in joined), np.r_[gap, of][order]

    def solve(self, lam: FloatArray, start: FloatArray, tolerance: float = 0.0) -> Solution:
        """Return the smallest minimiser: of the values at which F rises through q the one of least loss."""
        starts, ends, _ = self.ends(lam)
        goal = self.loss.probability * ends[-1] - _ROUNDING
        values, at, partial, gap = self.distribution(lam, (starts < goal) & (ends >= goal))
        left = np.r_[0.0, at[:-1]]
        begins = np.r_[False, np.diff(gap) > 0]
        left[begins] = ends[gap[begins] - 1]
        rises = (left < goal) & (at >= goal) & np.isfinite(values)
        values = values[rises]
        losses = (at[rises] - goal) * values - partial[rises]  # ∫ (F − q) up to each
        best = values[np.lexsort((values, losses))[:1]]
        return Solution(theta=best, hessian=np.eye(1))

    def proxy_covariances(self, theta: FloatArray) -> FloatArray:
        """Return the variances (H, 1, 1) of 1(f ≤ θ) over the unlabelled units, of θ in a gap, by counts."""
        assert self.unlabelled is not None
        gap, counts = int(np.searchsorted(self.points, theta[0], side="right")), self.unlabelled.counts
        below = self.below[:, max(gap - 1, 0)] * (gap > 0)
        spread = below * (1.0 - below) * counts / np.maximum(counts - 1.0, 1.0)
        return np.asarray(spread[:, None, None])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreLimits(Limits):
    """The values that the score test keeps; infinite on a side that the labels cannot bound.

    Parameters
    ----------
    rectified : RectifiedPinball
        It keeps the population side to look values up.
    fit : ChosenLam
    degrees_of_freedom : float
    """

    rectified: RectifiedPinball = field(repr=False)
    fit: ChosenLam = field(repr=False)
    degrees_of_freedom: float

    @property
    def method(self) -> str:
        """The name of the method."""
        return f"score, {'normal' if np.isinf(self.degrees_of_freedom) else 't'}"

    @property
    def lam(self) -> FloatArray:
        """λ per stratum (H,)."""
        return self.fit.lam[:, 0]

    def by(self, method: str) -> Limits | None:
        """Return the limits by Student's t or the normal distribution."""
        known = {"auto": self, "t": self, "normal": replace(self, degrees_of_freedom=np.inf)}
        return known.get(method)

    def with_freedom(self, degrees_of_freedom: float) -> Limits:
        """Return the limits with these degrees of freedom."""
        return replace(self, degrees_of_freedom=degrees_of_freedom)

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        miss = max(tail_shares(confidence_level, alternative))
        critical = float(student_quantile(1.0 - miss, self.degrees_of_freedom))
        starts, ends, _ = self.rectified.ends(self.lam)
        goal = self.rectified.loss.probability * ends[-1]
        reach = critical * self._errors(critical, starts - goal, ends - goal)
        limits = goal - reach, goal + reach
        crossed = [(starts <= limit) & (limit <= ends) for limit in limits]
        values, at, _, gap = self.rectified.distribution(self.lam, crossed[0] | crossed[1])
        values, (lowest, highest) = np.r_[values, np.inf], (limit[gap] for limit in limits)
        low = values[:-1][np.argmax(at >= lowest)] if np.any(at >= lowest) else values[-2]
        high = values[np.flatnonzero(at <= highest)[-1] + 1]
        return (-np.inf if alternative == "less" else low), (np.inf if alternative == "greater" else high)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value of the quantile being `null`."""
        loss = self.rectified
        starts, ends, _ = loss.ends(self.lam)
        gap = int(np.searchsorted(loss.points, null, side="right"))
        values, at, _, _ = loss.distribution(self.lam, np.arange(len(starts)) == gap)
        level = at[np.searchsorted(values, null, side="right") - 1]
        statistic = (self.rectified.loss.probability * ends[-1] - level) / self._error(gap)
        sign = {"greater": 1.0, "less": -1.0}.get(alternative, np.sign(statistic) or 1.0)
        tail = float(upper_tail(np.array(sign * statistic), np.array(self.degrees_of_freedom)))
        return min(1.0, 2 * tail) if alternative == "two-sided" else tail

    @property
    def standard_error(self) -> float:
        """Half the 95 % interval over 1.96 (Woodruff 1952); infinite where the interval is."""
        low, high = replace(self, degrees_of_freedom=np.inf).ends(0.95, "two-sided")
        return float((high - low) / (2 * ndtri(0.975)))

    def _error(self, gap: int) -> float:
        """Return the standard error of F in a gap: it changes at labelled values alone."""
        loss, start = self.rectified, max(gap - 1, 0)
        value = np.array([loss.points[start] - (gap == 0)])
        residual = loss.residual_gradients(value, self.lam)
        if loss.correction != "none":
            free = len(residual) - len(loss.shares) + 1
            residual = residual * degrees_factor(free, float(self.fit.spent.sum()) + 1.0)
        covariance = loss.weighting.covariance(residual) + loss.drawn_units(value, self.lam)
        total, q = float(covariance[0, 0]), loss.loss.probability
        if total <= _ROUNDING**2:
            total = q * (1.0 - q) * float(np.sum(loss.weights**2))
        return float(np.sqrt(total))

    def _errors(self, critical: float, starts: FloatArray, ends: FloatArray) -> FloatArray:
        """Return the standard error in each gap: exact near the region's ends, interpolated elsewhere."""
        gaps = np.arange(len(starts))
        coarse = np.unique(np.linspace(0, gaps[-1], min(len(gaps), _COARSE)).round().astype(np.int64))
        errors = np.interp(gaps, coarse, [self._error(int(gap)) for gap in coarse])
        if len(coarse) == len(gaps):
            return errors
        reach, starts, ends = critical * errors, np.abs(starts), np.abs(ends)
        near = (np.maximum(starts, ends) > reach / _MARGIN) & (np.minimum(starts, ends) < reach * _MARGIN)
        errors[near] = [self._error(int(gap)) for gap in np.flatnonzero(near)]
        return errors


def quantile(outcome: Any, probability: float, *, weighting: Weighting, **options: Any) -> Estimate:
    """Estimate a quantile of the outcome over the population.

    The smallest minimiser of the rectified pinball loss, exactly: no grid. With λ = 0 it is the weighted
    sample quantile inf {t : F(t) ≥ q}.

    Parameters
    ----------
    outcome : array-like (n,)
    probability : float
        q, between 0 and 1.
    weighting : Weighting
    **options
        `proxy`, `unlabelled`, `estimator`, `lam` (in [0, 1]), `target`, `stratum_weights_known`, `shrinkage`,
        `correction` of `stratal.regression.m_estimation.m_estimate`.

    Returns
    -------
    Estimate
        Its interval inverts the score test, so that no density is estimated.

    Raises
    ------
    InputError
        For a probability outside (0, 1), λ outside [0, 1], unusable numbers.

    Notes
    -----
    Angelopoulos, Duchi & Zrnic (2023), "PPI++", example 3, with Fisch et al. (2024), eq. 16, for λ.

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> from stratal.estimation.regression.losses import ArrayUnlabelled
    >>> f = np.arange(100.0)
    >>> weighting = StratifiedWeighting(stratum=np.zeros(10, int), sizes=np.array([100]))
    >>> quantile(f[::10] + 1, 0.5, weighting=weighting, proxy=f[::10], lam=1.0,
    ...          unlabelled=ArrayUnlabelled(proxy=f)).value
    51.0
    """
    require_probability(probability)
    for name in ("features", "names", "minimise", "hessian", "form"):
        if name in options:
            raise InputError(f"a quantile has no {name}=", action="Leave it out.")
    loss = Pinball(float(probability))
    rectified = RectifiedPinball.of(loss=loss, outcome=outcome, weighting=weighting, **options)
    fit, solution = choose_lam(rectified)
    if np.any(np.abs(fit.lam - 0.5) > 0.5):
        raise InputError("λ of a quantile is out of range", given=fit.lam[:, 0].tolist(), allowed="0 to 1")
    residual = rectified.residual_gradients(solution.theta, fit.lam[:, 0])[:, 0]
    freedom = max(rectified.weighting.degrees_of_freedom(residual) - float(fit.spent.sum()), 1.0)
    value = float(solution.theta[0])
    limits = ScoreLimits(value=value, rectified=rectified, fit=fit, degrees_of_freedom=freedom)
    error = limits.standard_error
    of_score = float(np.sqrt(rectified.weighting.covariance(residual[:, None])[0, 0]))
    scale = error / of_score if np.isfinite(error) and of_score > 0 else 0.0
    result = Linearised(
        value=value,
        variable=-scale * residual,
        design_variance=error**2,
        degrees_of_freedom=freedom,
    )
    return linearised_estimate(
        result,
        weighting,
        limits=limits,
        target=rectified.target,
        label={"estimand": f"quantile:{probability:g}"},
        estimator=rectified.estimator_name,
        lam=common_lam(limits.lam),
        remarks=fit.notes,
        population_size=round(rectified.population_size),
    )


def require_probability(probability: float) -> None:
    """Raise an `InputError` unless 0 < probability < 1."""
    if not 0 < probability < 1:
        raise InputError("probability is out of range", given=probability, allowed="between 0 and 1")


def weighted_quantile(values: FloatArray, weights: FloatArray, probability: float) -> float:
    """Return the smallest value with a share of at least `probability` at or below it.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / np.sum(weights)
    # Shares that sum to the probability itself may fall short of it by rounding.
    position = int(np.searchsorted(share, probability - 1e-12))
    return float(values[order][min(position, len(values) - 1)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Woodruff(Limits):
    """The quantiles at the limits of the share of units up to the value (Woodruff 1952).

    Parameters
    ----------
    z, weights : float (n,)
    share : Limits
        Of a share of the quantile's probability, on as many trials as the labels around it are worth.
    exact : bool
        Whether every unit is labelled.
    """

    z: FloatArray
    weights: FloatArray
    share: Limits
    exact: bool

    method = "woodruff"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit: the bounds where the labels do not reach far enough."""
        lowest, highest = self.bounds or (-np.inf, np.inf)
        below, above = self.share.ends(confidence_level, alternative)
        smallest = float(np.min(self.weights)) / float(np.sum(self.weights))
        low = weighted_quantile(self.z, self.weights, below) if below > smallest else lowest
        high = weighted_quantile(self.z, self.weights, above) if above < 1.0 - smallest else highest
        if self.exact:
            low = high = self.value
        return (
            min(low, self.value) if alternative != "less" else lowest,
            max(high, self.value) if alternative != "greater" else highest,
        )


def quantile_estimate(
    z: FloatArray,
    probability: float,
    weighting: Weighting,
    *,
    bounds: tuple[float, float] | None = None,
    member: BoolArray | None = None,
) -> Estimate:
    """Return a quantile; ½ is the median. `bounds` are what z (n,) cannot leave, `member` (n,) a domain.

    Raises
    ------
    InputError
        For a probability outside (0, 1).

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> z, h = np.arange(1.0, 100.0), np.zeros(99, dtype=int)
    >>> found = quantile_estimate(z, 0.5, StratifiedWeighting(stratum=h, sizes=np.array([99_000])))
    >>> found.value, *found.confidence_interval()
    (50.0, 40.0, 60.0)
    """
    require_probability(probability)
    inside = np.ones(len(z), dtype=bool) if member is None else member
    if not np.any(inside):
        return undefined_estimate(weighting, 0, bounds, "no labelled unit")
    own, weights = z[inside], weighting.weights[inside]
    value = weighted_quantile(own, weights, probability)
    counted = inside.astype(np.float64)
    reached = counted * (z <= value)
    share = ratio_of_means(reached, counted, weighting)
    trials, _ = domain_trials(reached, counted, weighting, (0.0, 1.0), share.design_variance)
    error = np.nan
    if np.isfinite(share.standard_error):  # over the density there; 0 where the labels around agree
        ends = (min(max(probability + side * share.standard_error, 1e-9), 1.0) for side in (-1.0, 1.0))
        low, high = (weighted_quantile(own, weights, end) for end in ends)
        error = (high - low) / 2.0
    scale = error / share.standard_error if share.standard_error > 0 else 1.0
    result = Linearised(
        value=value,
        variable=scale * (probability * counted - reached) / float(weighting.weights @ counted),
        design_variance=error**2,
        degrees_of_freedom=share.degrees_of_freedom,
    )
    limits = Woodruff(
        value=value,
        bounds=bounds,
        z=own,
        weights=weights,
        share=BinomialLimits(value=probability, bounds=(0.0, 1.0), trials=trials),
        exact=bool(np.isinf(trials)),
    )
    return linearised_estimate(result, weighting, limits=limits, n=len(own))
