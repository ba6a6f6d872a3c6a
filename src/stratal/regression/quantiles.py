"""Quantiles with a proxy: the least rectified pinball loss, and the values that its score test keeps.

F(t) = Σ_h W_h [ λ_h F^f_{U_h}(t) + F^y_{S_h}(t) − λ_h F^f_{S_h}(t) ]

Between two labelled values (of y or f), a gap, only the population's part of F moves, and for λ ≥ 0 it rises.
F is therefore known from one pass that counts the population's values by gap; the values themselves are
fetched, by a second pass, for the few gaps that matter. The population may be larger than memory.

At a candidate t the score is F(t) − q and its variance that of the mean of 1(y ≤ t) − λ 1(f ≤ t) under the
design: no density is estimated (Woodruff 1952; Angelopoulos, Duchi & Zrnic 2023, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from stratal.arrays import BoolArray, FloatArray, IntArray, Record, finite_vector
from stratal.designs import Weighting
from stratal.errors import InputError
from stratal.estimation.lam import ChosenLam
from stratal.intervals.interval import tail_shares
from stratal.intervals.proportion import student_quantile
from stratal.intervals.simultaneous import (
    CoefficientIntervals,
    require_alternative,
    require_level,
    upper_tail,
)
from stratal.regression.lam import choose_lam
from stratal.regression.losses import Loss
from stratal.regression.options import Options, require_choice
from stratal.regression.rectified_loss import RectifiedLoss
from stratal.regression.sandwich import Sandwich, degrees_factor
from stratal.regression.solver import Solution
from stratal.regression.unlabelled import Unlabelled, finite_array, population_units
from stratal.report import Page, Printed, estimate_page, plain_dict

_NOT_OF_QUANTILES = ("minimise", "clip", "hessian", "form", "start", "tolerance", "max_iterations")
_ROUNDING = 1e-12
_COARSE = 33
_MARGIN = 1.3
"""Standard errors are taken at 33 gaps, and where F is within 1.3 times the region's reach of q."""


class Pinball(Loss):
    """The score of a quantile, 1(y ≤ θ) − q, in the shape of a loss, so that λ is fitted as for any other.

    Its Hessian is a density that nothing here needs: with Σ w in its place influence is on the scale of the
    distribution function.

    Examples
    --------
    >>> Pinball(0.5).gradients(np.array([1.0]), np.empty((2, 0)), np.array([0.0, 3.0])).ravel()
    array([ 0.5, -0.5])
    """

    name: ClassVar[str] = "quantile"
    quadratic: ClassVar[bool] = True

    def __init__(self, probability: float) -> None:
        self.probability = probability

    def n_parameters(self, features: FloatArray, outcome: FloatArray) -> int:
        """One."""
        return 1

    def gradients(self, theta: FloatArray, features: FloatArray, outcome: FloatArray) -> FloatArray:
        """Return 1(y ≤ θ) − q."""
        return np.asarray(((outcome <= theta[0]) - self.probability)[:, None])

    def hessian(
        self, theta: FloatArray, features: FloatArray, outcome: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Σ w."""
        return np.array([[float(np.sum(weights))]])


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedDistribution:
    """The rectified F at sorted values; gap k lies before the labelled value k, the last one after all.

    Parameters
    ----------
    values : float (v,)
        −∞, the labelled values, and the population's inside the gaps that were asked for.
    at : float (v,)
        F at each.
    partial : float (v,)
        ∫ v dF up to and including each.
    gap : int (v,)
        The gap that each value begins or lies in.
    """

    values: FloatArray
    at: FloatArray
    partial: FloatArray
    gap: IntArray


class RectifiedPinball(RectifiedLoss):
    """The rectified pinball loss, with the labelled points and the population's counts at them.

    Parameters
    ----------
    probability : float
    outcome : array-like (n,)
    weighting : Weighting
    proxy : array-like (n,), optional
    unlabelled : Unlabelled, optional

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
    >>> loss = RectifiedPinball(0.5, [1.0, 2.0, 9.0], weighting)
    >>> loss.solve(np.zeros(1), np.zeros(1), Options()).theta
    array([2.])
    """

    def __init__(
        self,
        probability: float,
        outcome: Any,
        weighting: Weighting,
        proxy: Any = None,
        unlabelled: Unlabelled | None = None,
    ) -> None:
        self.probability = probability
        labels = finite_vector("outcome", outcome)
        super().__init__(Pinball(probability), labels, weighting, None, proxy, unlabelled)
        self.points = np.unique(labels if self.proxy is None else np.concatenate([labels, self.proxy]))
        self.below, self.equal, self.sums = self._counts()

    def _counts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Count the population's proxies at the points, in one pass."""
        n_strata, m = len(self.shares), len(self.points)
        found = np.zeros((3, n_strata, m + 1))
        if self.unlabelled is None:
            return found[0, :, :m], found[1, :, :m], found[2, :, :m]
        for block in self.unlabelled.blocks():
            gap, on_point = self._locate(block.proxy)
            weights = np.ones(len(gap)) if block.weights is None else block.weights
            cell = gap + block.stratum * (m + 1)
            for total, part in zip(found, (weights, weights * on_point, weights * block.proxy), strict=True):
                total += np.bincount(cell, part, minlength=total.size).reshape(total.shape)
        counts, equal, sums = found[:, :, :m] / self.unlabelled.totals[:, None]
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
            weights = np.concatenate([weights, -weights * self.per_unit(lam)])
        position, m, factors = np.searchsorted(self.points, values), len(self.points), self.shares * lam
        steps = np.bincount(position, weights, minlength=m)
        at = np.cumsum(steps) + factors @ self.below
        before = at - steps - factors @ self.equal
        partial = np.cumsum(np.bincount(position, weights * values, minlength=m)) + factors @ self.sums
        total = float(weights.sum() + (0.0 if self.unlabelled is None else factors.sum()))
        return np.r_[0.0, at], np.r_[before, total], np.r_[0.0, partial]

    def distribution(self, lam: FloatArray, gaps: BoolArray) -> WeightedDistribution:
        """Return F at the labelled values, and at the population's in some gaps (m + 1,), in one pass."""
        starts, _, partial = self.ends(lam)
        values, gap = np.r_[-np.inf, self.points], np.arange(len(starts))
        if self.unlabelled is None or not np.any(lam) or not np.any(gaps):
            return WeightedDistribution(values=values, at=starts, partial=partial, gap=gap)
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
        return WeightedDistribution(
            values=np.r_[values, inside][order],
            at=np.r_[starts, starts[of] + level][order],
            partial=np.r_[partial, partial[of] + product][order],
            gap=np.r_[gap, of][order],
        )

    def solve(self, lam: FloatArray, start: FloatArray, options: Options) -> Solution:
        """Return the smallest minimiser: of the values at which F rises through q the one of least loss."""
        starts, ends, _ = self.ends(lam)
        goal = self.probability * ends[-1] - _ROUNDING
        picture = self.distribution(lam, (starts < goal) & (ends >= goal))
        left = np.r_[0.0, picture.at[:-1]]
        begins = np.r_[False, np.diff(picture.gap) > 0]
        left[begins] = ends[picture.gap[begins] - 1]
        rises = np.flatnonzero((left < goal) & (picture.at >= goal) & np.isfinite(picture.values))
        values = picture.values[rises]
        losses = (picture.at[rises] - goal) * values - picture.partial[rises]  # ∫ (F − q) up to each
        best = values[np.lexsort((values, losses))[:1]]
        return Solution(theta=best, hessian=np.eye(1), iterations=1, status="converged")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantileEstimate(Record, Printed):
    """A quantile; the interval inverts the score test, so that no density is estimated.

    Parameters
    ----------
    value : float
    probability : float
        q.
    lam : float (H,)
    estimator, target : str
    n : int
    population_size : float
    degrees_of_freedom : float
    rectified : RectifiedPinball
        Answers intervals and p-values; it keeps the population side to look values up.
    options : Options
    fit : ChosenLam

    Examples
    --------
    >>> from stratal.designs import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(9, int), sizes=np.array([900]))
    >>> result = quantile(np.arange(1.0, 10.0), 0.5, weighting=weighting)
    >>> result.value
    5.0
    """

    value: float
    probability: float
    lam: FloatArray
    estimator: str
    target: str
    n: int
    population_size: float
    degrees_of_freedom: float
    rectified: RectifiedPinball = field(repr=False)
    options: Options = field(repr=False)
    fit: ChosenLam = field(repr=False)

    def confidence_interval(
        self, confidence_level: float = 0.95, method: str = "t", alternative: str = "two-sided"
    ) -> CoefficientIntervals:
        """Return the values that the score test keeps; infinite on a side that the labels cannot bound."""
        level, side = require_level(confidence_level), require_alternative(alternative)
        miss = max(tail_shares(level, side))
        critical = float(student_quantile(1.0 - miss, self._freedom(method)))
        starts, ends, _ = self.rectified.ends(self.lam)
        goal = self.probability * ends[-1]
        reach = critical * self._errors(critical, starts - goal, ends - goal)
        limits = goal - reach, goal + reach
        crossed = [(starts <= limit) & (limit <= ends) for limit in limits]
        picture = self.rectified.distribution(self.lam, crossed[0] | crossed[1])
        values = np.r_[picture.values, np.inf]
        lowest, highest = (limit[picture.gap] for limit in limits)
        low = values[:-1][np.argmax(picture.at >= lowest)] if np.any(picture.at >= lowest) else values[-2]
        high = values[np.flatnonzero(picture.at <= highest)[-1] + 1]
        return CoefficientIntervals(
            low=np.array([-np.inf if side == "less" else low]),
            high=np.array([np.inf if side == "greater" else high]),
            confidence_level=level,
            method=f"score, {method}",
        )

    def p_value(self, null: float, method: str = "t", alternative: str = "two-sided") -> float:
        """Return the p-value of the quantile being `null`."""
        side, loss = require_alternative(alternative), self.rectified
        starts, ends, _ = loss.ends(self.lam)
        gap = int(np.searchsorted(loss.points, null, side="right"))
        picture = loss.distribution(self.lam, np.arange(len(starts)) == gap)
        level = picture.at[np.searchsorted(picture.values, null, side="right") - 1]
        statistic = (self.probability * ends[-1] - level) / self._error(gap)
        sign = {"greater": 1.0, "less": -1.0}.get(side, np.sign(statistic) or 1.0)
        tail = float(upper_tail(np.array(sign * statistic), np.array(self._freedom(method))))
        return min(1.0, 2 * tail) if side == "two-sided" else tail

    @property
    def standard_error(self) -> float:
        """Half the 95 % interval over 1.96 (Woodruff 1952); infinite where the interval is."""
        low, high = self.confidence_interval(0.95, method="normal")
        return float((high[0] - low[0]) / (2 * ndtri(0.975)))

    def to_dict(self, confidence_level: float = 0.95, method: str = "t") -> dict[str, Any]:
        """Return a JSON-ready description; an open side of the interval is null."""
        low, high = self.confidence_interval(confidence_level, method)
        return plain_dict(
            {
                "kind": "quantile",
                "estimate": self.value,
                "probability": self.probability,
                "confidence_interval": [low[0], high[0]],
                "confidence_level": confidence_level,
                "interval_method": f"score, {method}",
                "estimator": self.estimator,
                "target": self.target,
                "n": self.n,
                "population_size": self.population_size,
                "lam": self.lam,
            }
        )

    def _page(self) -> Page:
        return estimate_page(self.to_dict())

    def _freedom(self, method: str) -> float:
        require_choice("interval method", method, ("t", "normal"))
        return self.degrees_of_freedom if method == "t" else np.inf

    def _error(self, gap: int) -> float:
        """Return the standard error of F in a gap: it changes at labelled values alone."""
        loss, start = self.rectified, max(gap - 1, 0)
        units, spread = loss.unlabelled, None
        if units is not None:
            below = loss.below[:, start] * (gap > 0)
            spread = below * (1.0 - below) * units.counts / np.maximum(units.counts - 1.0, 1.0)
            spread = spread[:, None, None]
        value = np.array([loss.points[start] - (gap == 0)])
        residual = loss.residual_gradients(value, self.lam)
        if self.options.correction != "none":
            free = len(residual) - len(loss.shares) + 1
            residual = residual * degrees_factor(free, float(self.fit.spent.sum()) + 1.0)
        parts = Sandwich(rectified=loss, options=self.options, theta=value, lam=self.lam)
        total = float(parts.meat(residual, spread)[0, 0])
        if total <= _ROUNDING**2:
            total = self.probability * (1.0 - self.probability) * float(np.sum(loss.weights**2))
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


def quantile(
    outcome: Any,
    probability: float,
    *,
    weighting: Weighting,
    proxy: Any = None,
    unlabelled: Unlabelled | None = None,
    population_proxy: Any = None,
    population_stratum: Any = None,
    **options: Any,
) -> QuantileEstimate:
    """Estimate a quantile of the outcome over the population.

    The smallest minimiser of the rectified pinball loss, exactly: no grid. With λ = 0 it is the weighted
    sample quantile inf {t : F(t) ≥ q}.

    Parameters
    ----------
    outcome : array-like (n,)
    probability : float
        q, between 0 and 1.
    weighting : Weighting
    proxy : array-like (n,), optional
        Predictions of the outcome for the labelled units.
    unlabelled : Unlabelled, optional
        The population side, or its arrays `population_proxy` (N,) and `population_stratum` (N,).
    **options
        `estimator`, `lam` (in [0, 1]), `target`, `stratum_weights_known`, `shrinkage`, `correction` of
        `stratal.regression.m_estimation.m_estimate`.

    Returns
    -------
    QuantileEstimate

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
    >>> f = np.arange(100.0)
    >>> weighting = StratifiedWeighting(stratum=np.zeros(10, int), sizes=np.array([100]))
    >>> quantile(f[::10] + 1, 0.5, weighting=weighting, proxy=f[::10], population_proxy=f, lam=1.0).value
    51.0
    """
    if not 0 < probability < 1:
        raise InputError("probability is out of range", given=probability, allowed="between 0 and 1")
    units = population_units(unlabelled, None, population_proxy, population_stratum)
    rectified = RectifiedPinball(float(probability), outcome, weighting, proxy, units)
    unused = [name for name in options if name in _NOT_OF_QUANTILES]
    if unused:
        raise InputError(f"a quantile has no {unused[0]}=", action="Leave it out.")
    chosen = Options.read(options)
    rectified.require_target(chosen)
    if chosen.lam is not None and np.any(np.abs(finite_array("lam", np.atleast_1d(chosen.lam)) - 0.5) > 0.5):
        raise InputError("λ of a quantile is out of range", given=chosen.lam, allowed="0 to 1")
    fit, solution = choose_lam(rectified, chosen)
    residual = rectified.residual_gradients(solution.theta, fit.lam[:, 0])[:, 0]
    freedom = rectified.weighting.degrees_of_freedom(residual) - float(fit.spent.sum())
    return QuantileEstimate(
        value=float(solution.theta[0]),
        probability=float(probability),
        lam=fit.lam[:, 0],
        estimator=chosen.estimator_name(proxy is not None),
        target=chosen.target,
        n=len(rectified.outcome),
        population_size=rectified.population_size,
        degrees_of_freedom=max(freedom, 1.0),
        rectified=rectified,
        options=chosen,
        fit=fit,
    )
