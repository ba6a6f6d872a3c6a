"""Quantiles: with a proxy, the minimiser of the rectified pinball loss; without one, the weighted quantile.

The estimated distribution function of the outcome is

F(t) = Σ_h W_h [ λ_h F^f_{U_h}(t) + F^y_{S_h}(t) − λ_h F^f_{S_h}(t) ]

with the outcome y, its proxy f, the population's units U_h and the labelled units S_h of stratum h, and the
share of values at or below t as F^f and F^y. The estimate is where F reaches the probability q.

A gap lies between two neighbouring labelled values (of y or f). Within a gap, only the population's part of F
changes, and for λ ≥ 0 it increases. One pass counts the population's values by gap, which determines F at the
ends of each gap. A second pass fetches the values in the few gaps that matter. The population may be larger
than memory.

The interval contains the values that a score test does not reject. At a candidate t the score is F(t) − q,
and its variance is that of the mean of 1(y ≤ t) − λ 1(f ≤ t) under the design. No density is estimated
(Woodruff 1952; Angelopoulos, Duchi & Zrnic 2023, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from stratal.arrays import BoolArray, FloatArray, IntArray, finite_vector
from stratal.designs import Weighting
from stratal.errors import InputError
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimate import Estimate, linearised_estimate, undefined_estimate
from stratal.estimation.lam import ChosenLam
from stratal.estimation.linearised import Linearised, ratio_of_means
from stratal.estimation.share_estimates import mean_of
from stratal.intervals.interval import Interval, tail_shares
from stratal.intervals.interval_types import StudentInterval
from stratal.intervals.proportion import student_quantile, upper_tail
from stratal.intervals.stratified import quantile_ranks
from stratal.regression.losses import MeanLoss
from stratal.regression.m_estimation import common_lam, degrees_factor, minimise_with_lam
from stratal.regression.rectified_loss import RectifiedLoss, Solution

# Sums of weights that should be equal differ by less.
_ROUNDING = 1e-12

# Standard errors are taken at 33 gaps, and where F is within 1.3 times the region's reach of q.
_COARSE = 33
_MARGIN = 1.3


class Pinball(MeanLoss):
    """The score of a quantile, 1(y ≤ θ) − q, in the shape of a loss, so that λ is fitted as for any other.

    Its Hessian is a density that nothing here needs: with Σ w in its place, as of a mean, influence is on the
    scale of the distribution function.
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
        n_strata = len(self.shares)
        m = len(self.points)
        tables = np.zeros((3, n_strata, m + 1))
        if self.unlabelled is not None:
            for block in self.unlabelled.blocks():
                gap, on_point = self._locate(block.proxy)
                if block.weights is None:
                    weights = np.ones(len(gap))
                else:
                    weights = block.weights
                cell = gap + block.stratum * (m + 1)
                parts = weights, weights * on_point, weights * block.proxy
                for total, part in zip(tables, parts, strict=True):
                    total += np.bincount(cell, part, minlength=total.size).reshape(total.shape)
            tables /= self.unlabelled.totals[:, None]
        counts, equal, sums = tables[:, :, :m]
        return np.cumsum(counts, axis=1), equal, np.cumsum(sums, axis=1)

    def _locate(self, values: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the index of the first point at or above each value, and whether the value is that point."""
        gap = np.searchsorted(self.points, values, side="left")
        return gap, self.points[np.minimum(gap, len(self.points) - 1)] == values

    def ends(self, lam: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return F where each gap starts and where it ends (m + 1,), and ∫ v dF up to its start.

        The last end is F at infinity: 1, but for designs whose weights do not add up to one.
        """
        values = self.outcome
        weights = self.weights
        if self.proxy is not None:
            values = np.concatenate([values, self.proxy])
            weights = np.concatenate([weights, -weights * lam[self.stratum]])
        position = np.searchsorted(self.points, values)
        m = len(self.points)
        factors = self.shares * lam
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
        values = np.r_[-np.inf, self.points]
        gap = np.arange(len(starts))
        # Without λ the units of the population have no part in F.
        if self.unlabelled is None or not np.any(lam):
            return values, starts, partial, gap
        per_unit = self.shares * lam / self.unlabelled.totals
        parts: list[FloatArray] = []
        for block in self.unlabelled.blocks():
            where, on_point = self._locate(block.proxy)
            rows = np.flatnonzero(gaps[where] & ~on_point)
            mass = per_unit[block.stratum[rows]]
            if block.weights is not None:
                mass = mass * block.weights[rows]
            parts.append(np.stack([where[rows], block.proxy[rows], mass]))
        inner = np.concatenate(parts, axis=1)
        within, inside, masses = inner[:, np.argsort(inner[1], kind="stable")]
        of = within.astype(np.int64)
        # Masses add up from the start of their own gap.
        first = np.searchsorted(of, of)
        level, product = (
            np.cumsum(part) - np.r_[0.0, np.cumsum(part)][first] for part in (masses, masses * inside)
        )
        order = np.argsort(np.r_[values, inside], kind="stable")
        joined = (values, inside), (starts, starts[of] + level), (partial, partial[of] + product)
        return *(np.r_[outer, inserted][order] for outer, inserted in joined), np.r_[gap, of][order]

    def solve(self, lam: FloatArray, start: FloatArray, tolerance: float = 0.0) -> Solution:
        """Return the smallest minimiser: of the values where F rises through q, the one with least loss."""
        starts, ends, _ = self.ends(lam)
        goal = self.loss.probability * ends[-1] - _ROUNDING
        values, at, partial, gap = self.distribution(lam, (starts < goal) & (ends >= goal))
        share_before = np.r_[0.0, at[:-1]]
        begins = np.r_[False, np.diff(gap) > 0]
        share_before[begins] = ends[gap[begins] - 1]
        # The rectified F may fall between labels, so that it may rise through q several times.
        rises = (share_before < goal) & (at >= goal) & np.isfinite(values)
        values = values[rises]
        losses = (at[rises] - goal) * values - partial[rises]  # ∫ (F − q) up to each
        # Of equal losses the smallest value, as the quantile is defined.
        best = values[np.lexsort((values, losses))[:1]]
        return Solution(theta=best, hessian=np.eye(1))

    def proxy_covariances(self, theta: FloatArray) -> FloatArray:
        """Return the variances (H, 1, 1) of 1(f ≤ θ) over the unlabelled units, of θ in a gap, by counts."""
        assert self.unlabelled is not None
        gap = int(np.searchsorted(self.points, theta[0], side="right"))
        counts = self.unlabelled.counts
        below = self.below[:, max(gap - 1, 0)] * (gap > 0)
        spread = below * (1.0 - below) * counts / np.maximum(counts - 1.0, 1.0)
        return np.asarray(spread[:, None, None])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreInterval(Interval):
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

    def by(self, method: str) -> Interval | None:
        """Return the limits by Student's t or the normal distribution."""
        limits_by_method = {"auto": self, "t": self, "normal": replace(self, degrees_of_freedom=np.inf)}
        return limits_by_method.get(method)

    def with_df(self, degrees_of_freedom: float) -> Interval:
        """Return the limits with these degrees of freedom."""
        return replace(self, degrees_of_freedom=degrees_of_freedom)

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        miss = max(tail_shares(confidence_level, alternative))
        critical = float(student_quantile(1.0 - miss, self.degrees_of_freedom))
        starts, ends, _ = self.rectified.ends(self.lam)
        goal = self.rectified.loss.probability * ends[-1]
        # The test keeps all values at which F differs from q by at most this.
        reach = critical * self._errors(critical, starts - goal, ends - goal)
        limits = goal - reach, goal + reach
        crossed = [(starts <= limit) & (limit <= ends) for limit in limits]
        values, at, _, gap = self.rectified.distribution(self.lam, crossed[0] | crossed[1])
        values, (lowest, highest) = np.r_[values, np.inf], (limit[gap] for limit in limits)
        if np.any(at >= lowest):
            low = values[:-1][np.argmax(at >= lowest)]
        else:
            low = values[-2]
        high = values[np.flatnonzero(at <= highest)[-1] + 1]
        low = -np.inf if alternative == "less" else low
        return self.within(low, np.inf if alternative == "greater" else high)

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
        if alternative == "two-sided":
            return min(1.0, 2 * tail)
        return tail

    def _error(self, gap: int) -> float:
        """Return the standard error of F in a gap: it changes at labelled values alone."""
        loss = self.rectified
        start = max(gap - 1, 0)
        # Any value of the gap gives the same residuals; before the first label, one below it.
        value = np.array([loss.points[start] - (gap == 0)])
        residual = loss.residual_gradients(value, self.lam)
        if loss.correction != "none":
            free = len(residual) - len(loss.shares) + 1
            residual = residual * degrees_factor(free, float(self.fit.spent.sum()) + 1.0)
        covariance = loss.weighting.covariance(residual) + loss.drawn_units(value, self.lam)
        total = float(covariance[0, 0])
        q = loss.loss.probability
        # Beyond all labels the residuals agree; the variance is then that of independent labels at q.
        if total <= _ROUNDING**2:
            total = q * (1.0 - q) * float(np.sum(loss.weights**2))
        return float(np.sqrt(total))

    def _errors(self, critical: float, starts: FloatArray, ends: FloatArray) -> FloatArray:
        """Return the standard error in each gap: exact near the region's ends, interpolated elsewhere."""
        gaps = np.arange(len(starts))
        coarse = np.unique(np.linspace(0, gaps[-1], min(len(gaps), _COARSE)).round().astype(np.int64))
        errors = np.interp(gaps, coarse, [self._error(int(gap)) for gap in coarse])
        # With few gaps, all errors are exact already.
        if len(coarse) == len(gaps):
            return errors
        reach = critical * errors
        starts = np.abs(starts)
        ends = np.abs(ends)
        near = (np.maximum(starts, ends) > reach / _MARGIN) & (np.minimum(starts, ends) < reach * _MARGIN)
        errors[near] = [self._error(int(gap)) for gap in np.flatnonzero(near)]
        return errors


def quantile(
    outcome: object,
    probability: float,
    *,
    weighting: Weighting,
    bounds: tuple[float, float] | None = None,
    **options: object,
) -> Estimate:
    """Estimate a quantile of the outcome over the population.

    The smallest minimiser of the rectified pinball loss, exactly: no grid. With λ = 0 it is the weighted
    sample quantile inf {t : F(t) ≥ q}.

    Parameters
    ----------
    outcome : array-like (n,)
    probability : float
        q, between 0 and 1.
    weighting : Weighting
    bounds : (float, float), optional
        Of the outcome; limits that the labels leave open end there.
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
    >>> from stratal.regression.losses import ArrayUnlabelled
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
    fit, solution = minimise_with_lam(rectified)
    if np.any(np.abs(fit.lam - 0.5) > 0.5):
        raise InputError("λ of a quantile is out of range", given=fit.lam[:, 0].tolist(), allowed="0 to 1")
    residual = rectified.residual_gradients(solution.theta, fit.lam[:, 0])[:, 0]
    freedom = max(rectified.weighting.degrees_of_freedom(residual) - float(fit.spent.sum()), 1.0)
    value = float(solution.theta[0])
    interval = ScoreInterval(
        value=value, bounds=bounds, rectified=rectified, fit=fit, degrees_of_freedom=freedom
    )
    error = width_error(replace(interval, degrees_of_freedom=np.inf), rectified.outcome)
    of_score = float(np.sqrt(rectified.weighting.covariance(residual[:, None])[0, 0]))
    if np.isfinite(error) and of_score > 0:
        scale = error / of_score
    else:
        scale = 0.0
    result = Linearised(
        value=value,
        variable=-scale * residual,
        design_variance=error**2,
        degrees_of_freedom=freedom,
    )
    return linearised_estimate(
        result,
        weighting,
        interval=interval,
        target=rectified.target,
        label={"estimand": f"quantile:{probability:g}"},
        estimator=rectified.estimator_name,
        lam=common_lam(interval.lam),
        remarks=fit.notes,
        population_size=round(rectified.population_size),
    )


def require_probability(probability: float) -> None:
    """Raise an `InputError` unless 0 < probability < 1."""
    if not 0 < probability < 1:
        raise InputError("probability is out of range", given=probability, allowed="between 0 and 1")


def weighted_quantile(values: FloatArray, weights: FloatArray, probability: float) -> float:
    """Return the smallest value with a share of at least `probability` at or below it."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / np.sum(weights)
    # Shares that sum to the probability itself may fall short of it by rounding.
    position = int(np.searchsorted(share, probability - 1e-12))
    return float(values[order][min(position, len(values) - 1)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WoodruffInterval(Interval):
    """The values at which the share of units at or below them may be the quantile's (Woodruff 1952).

    A value t is below the interval if the upper limit of F(t), the share of units at or below t, is less than
    the probability. The interval ends at the first t whose lower limit of F(t) reaches it. The limits of F(t)
    are those of any other share. In a simple random sample the ends are therefore order statistics, whose
    ranks are quantiles of the hypergeometric number of labels at or below the true value (David & Nagaraja
    2003, section 7.1).

    Parameters
    ----------
    probability : float
    z : float (n,)
        The outcomes of all labelled units.
    weighting : Weighting
    member : bool (n,), optional
        The labelled units of a domain.
    """

    probability: float
    z: FloatArray
    weighting: Weighting
    member: BoolArray | None = None

    method = "woodruff"

    @property
    def candidates(self) -> FloatArray:
        """The distinct outcomes (m,), sorted."""
        return np.unique(self.z if self.member is None else self.z[self.member])

    def share(self, below: BoolArray) -> Estimate:
        """Return the share of the units that are like the labelled units `below` (n,)."""
        if self.member is None:
            return mean_of(below.astype(np.float64), self.weighting)
        return domain_mean(below.astype(np.float64), self.member, self.weighting, bounds=(0.0, 1.0))

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit: the bounds where the labels do not reach far enough."""
        error_below, error_above = tail_shares(confidence_level, alternative)
        low, high = self.bounds or (-np.inf, np.inf)
        weighting = self.weighting
        simple = weighting.random_within_strata and len(weighting.counts) == 1
        if simple and self.member is None and not weighting.with_replacement:
            return self._order_statistics(error_below, error_above)
        if error_below > 0:
            low = min(self._first(low, 1.0 - error_below, "less"), self.value)
        if error_above > 0:
            high = max(self._first(high, 1.0 - error_above, "greater"), self.value)
        return low, high

    def _order_statistics(self, error_below: float, error_above: float) -> tuple[float, float]:
        """Return the limits of a simple random sample: the same ones, from ranks."""
        n = len(self.z)
        weighting = self.weighting
        size = round(weighting.population_size)
        lowest, highest = self.bounds or (-np.inf, np.inf)
        values = np.r_[lowest, np.sort(self.z), highest]
        low, high = quantile_ranks(n, size, self.probability, error_below, error_above)
        return float(values[low]), float(values[high])

    def _first(self, otherwise: float, confidence_level: float, alternative: str) -> float:
        """Return the first candidate whose limit of the share on one side reaches the probability.

        `otherwise` is returned if even no label at or below it is enough, or if all of them are not.
        """
        values = np.r_[otherwise, self.candidates, otherwise]
        too_few = -1
        enough = len(values) - 1
        while enough - too_few > 1:
            place = (too_few + enough) // 2
            if place > 0:
                below = self.z <= values[place]
            else:
                below = np.zeros(len(self.z), dtype=bool)
            interval = self.share(below).confidence_interval(confidence_level, alternative=alternative)
            if alternative == "less":
                limit = interval.high
            else:
                limit = interval.low
            if limit >= self.probability - _ROUNDING:
                enough = place
            else:
                too_few = place
        return float(values[enough])

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value of the quantile being `null`, from those of the shares up to it."""
        if alternative == "two-sided":
            return min(1.0, 2.0 * min(self.p_value(null, side) for side in ("less", "greater")))
        tail_shares(0.95, alternative)
        if alternative == "greater":  # the quantile is above the null if too few units are at or below it
            return self.share(self.z <= null).p_value(self.probability, alternative="less")
        return self._p_value_below(null)

    def _p_value_below(self, null: float) -> float:
        """Return the p-value against a quantile below the null: enough units are below the null.

        The test excludes shares of less than the probability. In N units the largest of these is the last
        multiple of 1/N before it.
        """
        size = self.weighting.population_size
        largest = self.probability
        if self.member is None and self.weighting.random_within_strata:
            largest = (np.ceil(self.probability * size - _ROUNDING * size) - 1.0) / size
        return self.share(self.z < null).p_value(max(largest, 0.0), alternative="greater")


# Normal quantiles of the levels that a standard error is read from: first that of 95%, then shorter
# intervals, as the longer ones may be open, then longer ones, as the shorter ones may have no width.
_REACHES = (1.96, 1.64, 1.28, 1.0, 0.67, 0.39, 0.13, 2.58, 3.29, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0)


def width_error(interval: Interval, labels: FloatArray) -> float:
    """Return half the 95% interval over 1.96 (Woodruff 1952).

    If the 95% interval is open or has no width, another level is taken whose interval is finite and has a
    width; after that, one whose interval is finite on one side. If no interval has a width, the chance of
    another value is at most 2 Φ(−8), and the error that this allows within the bounds is returned; without
    bounds, within the range of the `labels` (n,). It is NaN if these all agree, or if the interval is open.
    """
    one_sided = np.nan
    is_open = False
    for reach in _REACHES:
        ends = interval.ends(float(1.0 - 2.0 * ndtr(-reach)), "two-sided")
        lengths = np.abs(np.array(ends) - interval.value)
        finite = np.isfinite(lengths)
        if reach == _REACHES[0]:
            is_open = not finite.all()
        if lengths[finite].sum() <= 0:
            continue
        if finite.all():
            return float(lengths.mean() / reach)
        if np.isnan(one_sided):
            one_sided = float(lengths[finite].mean() / reach)
    if is_open or np.isfinite(one_sided):
        return one_sided
    lowest, highest = interval.bounds or (float(np.min(labels)), float(np.max(labels)))
    if highest > lowest:
        return float((highest - lowest) * np.sqrt(2.0 * ndtr(-_REACHES[-1])))
    return np.nan


def quantile_estimate(
    z: FloatArray,
    probability: float,
    weighting: Weighting,
    *,
    bounds: tuple[float, float] | None = None,
    member: BoolArray | None = None,
) -> Estimate:
    """Return a quantile; ½ is the median. `bounds` are what z (n,) cannot leave, `member` (n,) a domain.

    Its standard error is half the 95% interval over 1.96. It is NaN if the labels of an outcome without
    bounds all agree.

    Raises
    ------
    InputError
        For a probability outside (0, 1).
    """
    require_probability(probability)
    if member is None:
        inside = np.ones(len(z), dtype=bool)
    else:
        inside = member
    if not np.any(inside):
        return undefined_estimate(weighting, 0, bounds, "no labelled unit")
    value = weighted_quantile(z[inside], weighting.weights[inside], probability)
    counted = inside.astype(np.float64)
    reached = counted * (z <= value)
    share = ratio_of_means(reached, counted, weighting)
    interval: Interval = WoodruffInterval(
        value=value, bounds=bounds, probability=probability, z=z, weighting=weighting, member=member
    )
    if weighting.census:
        interval = StudentInterval(value=value, bounds=bounds, standard_error=0.0, degrees_of_freedom=np.inf)
        error = 0.0
    else:
        error = width_error(interval, z[inside])
    if share.standard_error > 0 and np.isfinite(error):
        scale = error / share.standard_error
    else:
        scale = 1.0
    result = Linearised(
        value=value,
        variable=scale * (probability * counted - reached) / float(weighting.weights @ counted),
        design_variance=error**2,
        degrees_of_freedom=share.degrees_of_freedom,
    )
    return linearised_estimate(result, weighting, interval=interval, n=int(inside.sum()))
