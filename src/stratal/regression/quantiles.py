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
from stratal.estimation.share_estimates import share_estimate
from stratal.intervals.hypergeometric import quantile_ranks
from stratal.intervals.interval import Interval, check_alternative, error_probabilities
from stratal.intervals.interval_types import StudentInterval
from stratal.intervals.proportion import student_quantile, upper_tail
from stratal.regression.losses import MeanLoss
from stratal.regression.m_estimation import fit_lam_and_minimise, hc1_factor, shared_lam
from stratal.regression.rectified_loss import RectifiedLoss, Solution

# Largest rounding error of sums of weights.
_ROUNDING = 1e-12

# Standard errors are computed at this number of gaps, and at gaps near the limits: where the distance of F
# from q is between the half-width of the non-rejected values divided by the factor and times the factor.
_N_COARSE_GAPS = 33
_NEAR_FACTOR = 1.3


class Pinball(MeanLoss):
    """The pinball loss of a quantile with the gradient 1(y ≤ θ) − q, so that λ is fitted as for other losses.

    The true Hessian is a density, which is not needed. With the Hessian Σ w of a mean, influences are on the
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
    """The rectified pinball loss, with the labelled values and the counts of the population at them.

    Attributes
    ----------
    points : float (m,)
        Sorted distinct labelled values of y and f.
    shares_up_to, shares_at, partial_means : float (H, m)
        Share of the units of each stratum with f ≤ point and with f = point, and mean of f · 1(f ≤ point).
    """

    loss: Pinball

    def __post_init__(self) -> None:
        self.outcome = finite_vector("outcome", self.outcome)
        RectifiedLoss.__post_init__(self)
        labels = self.outcome
        self.points = np.unique(labels if self.proxy is None else np.concatenate([labels, self.proxy]))
        self.shares_up_to, self.shares_at, self.partial_means = self._proxy_distribution()

    def _proxy_distribution(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the three attributes by stratum and point, from one pass over the population's proxies."""
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
                terms_by_table = weights, weights * on_point, weights * block.proxy
                for table, terms in zip(tables, terms_by_table, strict=True):
                    table += np.bincount(cell, terms, minlength=table.size).reshape(table.shape)
            tables /= self.unlabelled.weight_sums[:, None]
        gap_shares, shares_at, gap_means = tables[:, :, :m]
        return np.cumsum(gap_shares, axis=1), shares_at, np.cumsum(gap_means, axis=1)

    def _locate(self, values: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the index of the first point at or above each value, and whether it equals the value."""
        gap = np.searchsorted(self.points, values, side="left")
        return gap, self.points[np.minimum(gap, len(self.points) - 1)] == values

    def distribution_at_gaps(self, lam: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return F at the start and at the end of each gap, and ∫ v dF up to its start, each (m + 1,).

        The last end is F at infinity. It is 1 unless the sum of a design's weights is not 1.
        """
        values = self.outcome
        weights = self.weights
        if self.proxy is not None:
            values = np.concatenate([values, self.proxy])
            weights = np.concatenate([weights, -weights * lam[self.stratum]])
        position = np.searchsorted(self.points, values)
        m = len(self.points)
        factors = self.shares * lam
        labelled_masses = np.bincount(position, weights, minlength=m)
        at_points = np.cumsum(labelled_masses) + factors @ self.shares_up_to
        before_points = at_points - labelled_masses - factors @ self.shares_at
        labelled_sums = np.bincount(position, weights * values, minlength=m)
        integrals = np.cumsum(labelled_sums) + factors @ self.partial_means
        total = float(weights.sum())
        if self.unlabelled is not None:
            total += float(factors.sum())
        return np.r_[0.0, at_points], np.r_[before_points, total], np.r_[0.0, integrals]

    def distribution(
        self, lam: FloatArray, gaps: BoolArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Return the rectified F at sorted values, from one pass over the population.

        `gaps` (m + 1,) is a mask of the gaps whose population values are included. The results are arrays
        (v,): the values (−∞, the labelled values, and the population's values in these gaps), F at each
        value, ∫ v dF up to and including it, and the index of its gap. Gap k is before the labelled value k,
        and the last gap is after all of them. A labelled value has the index of the gap that it starts.
        """
        starts, _, integrals = self.distribution_at_gaps(lam)
        values = np.r_[-np.inf, self.points]
        gap = np.arange(len(starts))
        # If λ is 0, F does not depend on the population's proxies.
        if self.unlabelled is None or not np.any(lam):
            return values, starts, integrals, gap
        mass_per_unit = self.shares * lam / self.unlabelled.weight_sums
        rows_of_blocks: list[FloatArray] = []
        for block in self.unlabelled.blocks():
            gap_of_unit, on_point = self._locate(block.proxy)
            rows = np.flatnonzero(gaps[gap_of_unit] & ~on_point)
            mass = mass_per_unit[block.stratum[rows]]
            if block.weights is not None:
                mass = mass * block.weights[rows]
            rows_of_blocks.append(np.stack([gap_of_unit[rows], block.proxy[rows], mass]))
        inner_rows = np.concatenate(rows_of_blocks, axis=1)
        gap_numbers, inner_values, masses = inner_rows[:, np.argsort(inner_rows[1], kind="stable")]
        inner_gap = gap_numbers.astype(np.int64)
        first_of_gap = np.searchsorted(inner_gap, inner_gap)

        def sums_from_gap(start_of_gap: FloatArray, terms: FloatArray) -> FloatArray:
            """Return cumulative sums of terms, which start at the beginning of each gap with its value."""
            sums = np.cumsum(terms)
            return np.asarray(start_of_gap[inner_gap] + (sums - np.r_[0.0, sums][first_of_gap]))

        all_values = np.r_[values, inner_values]
        all_shares = np.r_[starts, sums_from_gap(starts, masses)]
        all_integrals = np.r_[integrals, sums_from_gap(integrals, masses * inner_values)]
        all_gaps = np.r_[gap, inner_gap]
        order = np.argsort(all_values, kind="stable")
        return all_values[order], all_shares[order], all_integrals[order], all_gaps[order]

    def solve(self, lam: FloatArray, start: FloatArray, tolerance: float = 0.0) -> Solution:
        """Return the smallest minimiser: of the values at which F reaches q, the one with the least loss.

        F may decrease, so that there may be several such values.
        """
        starts, ends, _ = self.distribution_at_gaps(lam)
        level = self.loss.probability * ends[-1] - _ROUNDING
        values, shares, integrals, gap = self.distribution(lam, (starts < level) & (ends >= level))
        shares_before = np.r_[0.0, shares[:-1]]
        starts_gap = np.r_[False, np.diff(gap) > 0]
        shares_before[starts_gap] = ends[gap[starts_gap] - 1]
        reaches_level = (shares_before < level) & (shares >= level) & np.isfinite(values)
        values = values[reaches_level]
        losses = (shares[reaches_level] - level) * values - integrals[reaches_level]  # ∫ (F − q) dv
        # Of equal losses, the quantile is by definition the smallest value.
        best = values[np.lexsort((values, losses))[:1]]
        return Solution(theta=best, hessian=np.eye(1))

    def proxy_covariances(self, theta: FloatArray) -> FloatArray:
        """Return the variances (H, 1, 1) of 1(f ≤ θ) of the unlabelled units, from counts at the points."""
        assert self.unlabelled is not None
        gap = int(np.searchsorted(self.points, theta[0], side="right"))
        counts = self.unlabelled.counts
        shares = self.shares_up_to[:, max(gap - 1, 0)] * (gap > 0)
        variances = shares * (1.0 - shares) * counts / np.maximum(counts - 1.0, 1.0)
        return np.asarray(variances[:, None, None])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreInterval(Interval):
    """The values that the score test does not reject. A limit is infinite if the labels do not determine it.

    Parameters
    ----------
    rectified : RectifiedPinball
        It reads the values of the population in the gaps of the limits.
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

    def with_method(self, method: str) -> Interval | None:
        """Return the limits by Student's t or the normal distribution."""
        limits_by_method = {"auto": self, "t": self, "normal": replace(self, degrees_of_freedom=np.inf)}
        return limits_by_method.get(method)

    def with_df(self, degrees_of_freedom: float) -> Interval:
        """Return the limits with these degrees of freedom."""
        return replace(self, degrees_of_freedom=degrees_of_freedom)

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        miss = max(error_probabilities(confidence_level, alternative))
        critical = float(student_quantile(1.0 - miss, self.degrees_of_freedom))
        starts, ends, _ = self.rectified.distribution_at_gaps(self.lam)
        level = self.rectified.loss.probability * ends[-1]
        # The test does not reject the values at which F differs from q by at most this.
        half_widths = critical * self._standard_errors(critical, starts - level, ends - level)
        lower_levels = level - half_widths
        upper_levels = level + half_widths
        has_lower_limit = (starts <= lower_levels) & (lower_levels <= ends)
        has_upper_limit = (starts <= upper_levels) & (upper_levels <= ends)
        values, shares, _, gap = self.rectified.distribution(self.lam, has_lower_limit | has_upper_limit)
        is_above_lower = shares >= lower_levels[gap]
        low = values[-1]
        if np.any(is_above_lower):
            low = values[np.argmax(is_above_lower)]
        next_values = np.r_[values[1:], np.inf]
        high = next_values[np.flatnonzero(shares <= upper_levels[gap])[-1]]
        if alternative == "less":
            low = -np.inf
        if alternative == "greater":
            high = np.inf
        return self.clip_to_bounds(low, high)

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value of the hypothesis that the quantile is `null`."""
        rectified = self.rectified
        starts, ends, _ = rectified.distribution_at_gaps(self.lam)
        gap = int(np.searchsorted(rectified.points, null, side="right"))
        values, shares, _, _ = rectified.distribution(self.lam, np.arange(len(starts)) == gap)
        share = shares[np.searchsorted(values, null, side="right") - 1]
        statistic = (rectified.loss.probability * ends[-1] - share) / self._standard_error(gap)
        sign = {"greater": 1.0, "less": -1.0}.get(alternative, np.sign(statistic) or 1.0)
        tail = float(upper_tail(np.array(sign * statistic), np.array(self.degrees_of_freedom)))
        if alternative == "two-sided":
            return min(1.0, 2 * tail)
        return tail

    def _standard_error(self, gap: int) -> float:
        """Return the standard error of F in a gap. It is constant between two labelled values."""
        rectified = self.rectified
        point = rectified.points[max(gap - 1, 0)]
        # The first gap is represented by a value below all points.
        value = np.array([point - (gap == 0)])
        residual = rectified.residual_gradients(value, self.lam)
        if rectified.correction != "none":
            # The divisors n_h − 1 of the strata already correct for one parameter each.
            n_free = len(residual) - len(rectified.shares) + 1
            residual = residual * hc1_factor(n_free, float(self.fit.n_parameters.sum()) + 1.0)
        covariance = rectified.weighting.covariance(residual)
        covariance = covariance + rectified.sampling_covariance_of_units(value, self.lam)
        variance = float(covariance[0, 0])
        if variance <= _ROUNDING**2:
            # No label differs from the others: the variance of independent draws with the probability q.
            q = rectified.loss.probability
            variance = q * (1.0 - q) * float(np.sum(rectified.weights**2))
        return float(np.sqrt(variance))

    def _standard_errors(self, critical: float, starts: FloatArray, ends: FloatArray) -> FloatArray:
        """Return the standard error in each gap: exact near the limits, interpolated elsewhere.

        `critical` is the quantile of the test statistic. `starts` and `ends` are F minus q at the start and
        the end of each gap.
        """
        gaps = np.arange(len(starts))
        n_coarse = min(len(gaps), _N_COARSE_GAPS)
        coarse_gaps = np.unique(np.linspace(0, gaps[-1], n_coarse).round().astype(np.int64))
        coarse_errors = [self._standard_error(int(gap)) for gap in coarse_gaps]
        errors = np.interp(gaps, coarse_gaps, coarse_errors)
        # With few gaps, all errors are exact already.
        if len(coarse_gaps) == len(gaps):
            return errors
        half_widths = critical * errors
        largest_distances = np.maximum(np.abs(starts), np.abs(ends))
        smallest_distances = np.minimum(np.abs(starts), np.abs(ends))
        is_near = largest_distances > half_widths / _NEAR_FACTOR
        is_near &= smallest_distances < half_widths * _NEAR_FACTOR
        errors[is_near] = [self._standard_error(int(gap)) for gap in np.flatnonzero(is_near)]
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

    The estimate is the smallest minimiser of the rectified pinball loss, computed exactly, without a grid.
    With λ = 0 it is the weighted sample quantile inf {t : F(t) ≥ q}.

    Parameters
    ----------
    outcome : array-like (n,)
    probability : float
        q, between 0 and 1.
    weighting : Weighting
    bounds : (float, float), optional
        Bounds of the outcome. Limits that the labels do not determine are equal to them.
    **options
        `proxy`, `unlabelled`, `estimator`, `lam` (in [0, 1]), `target`, `stratum_weights_known`, `shrinkage`,
        `correction` of `stratal.regression.m_estimation.m_estimate`.

    Returns
    -------
    Estimate
        The interval inverts the score test, so no density is estimated.

    Raises
    ------
    InputError
        For a probability outside (0, 1), λ outside [0, 1], and numbers that are not finite.

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
    fit, solution = fit_lam_and_minimise(rectified)
    if np.any(np.abs(fit.lam - 0.5) > 0.5):
        raise InputError("λ of a quantile is out of range", given=fit.lam[:, 0].tolist(), allowed="0 to 1")
    residual = rectified.residual_gradients(solution.theta, fit.lam[:, 0])[:, 0]
    degrees_of_freedom = rectified.weighting.degrees_of_freedom(residual) - float(fit.n_parameters.sum())
    degrees_of_freedom = max(degrees_of_freedom, 1.0)
    value = float(solution.theta[0])
    interval = ScoreInterval(
        value=value, bounds=bounds, rectified=rectified, fit=fit, degrees_of_freedom=degrees_of_freedom
    )
    error = standard_error_from_width(replace(interval, degrees_of_freedom=np.inf), rectified.outcome)
    score_error = float(np.sqrt(rectified.weighting.covariance(residual[:, None])[0, 0]))
    # Influences on the scale of the outcome: their standard error is that of the quantile.
    scale = 0.0
    if np.isfinite(error) and score_error > 0:
        scale = error / score_error
    result = Linearised(
        value=value,
        variable=-scale * residual,
        design_variance=error**2,
        degrees_of_freedom=degrees_of_freedom,
    )
    reference_population = None
    if interval.lam.any():
        # Residuals do not show the variance without the proxy.
        reference_population = np.nan, rectified.population_size
    return linearised_estimate(
        result,
        weighting,
        interval=interval,
        target=rectified.target,
        reference_population=reference_population,
        label={"estimand": f"quantile:{probability:g}"},
        estimator=rectified.estimator_name,
        lam=shared_lam(interval.lam),
        remarks=fit.notes,
        population_size=round(rectified.population_size),
    )


def require_probability(probability: float) -> None:
    """Raise an `InputError` unless 0 < probability < 1."""
    if not 0 < probability < 1:
        raise InputError("probability is out of range", given=probability, allowed="between 0 and 1")


def weighted_quantile(values: FloatArray, weights: FloatArray, probability: float) -> float:
    """Return the smallest value whose cumulative share of the weights is at least `probability`."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / np.sum(weights)
    # Shares that sum to the probability itself may fall short of it by rounding.
    position = int(np.searchsorted(share, probability - _ROUNDING))
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
        """Return the estimated share of the units in the mask `below` of labelled units (n,)."""
        if self.member is None:
            return share_estimate(below.astype(np.float64), self.weighting)
        return domain_mean(below.astype(np.float64), self.member, self.weighting, bounds=(0.0, 1.0))

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit. If the labels do not determine one, it is the bound."""
        error_below, error_above = error_probabilities(confidence_level, alternative)
        low, high = self.bounds or (-np.inf, np.inf)
        weighting = self.weighting
        is_simple = weighting.random_within_strata and len(weighting.counts) == 1
        if is_simple and self.member is None and not weighting.with_replacement:
            return self._order_statistics(error_below, error_above)
        if error_below > 0:
            low = min(self._first_candidate(low, 1.0 - error_below, "less"), self.value)
        if error_above > 0:
            high = max(self._first_candidate(high, 1.0 - error_above, "greater"), self.value)
        return low, high

    def _order_statistics(self, error_below: float, error_above: float) -> tuple[float, float]:
        """Return the limits of a simple random sample from ranks, which are the same limits in less time."""
        n = len(self.z)
        weighting = self.weighting
        size = round(weighting.population_size)
        lowest, highest = self.bounds or (-np.inf, np.inf)
        values = np.r_[lowest, np.sort(self.z), highest]
        low, high = quantile_ranks(n, size, self.probability, error_below, error_above)
        return float(values[low]), float(values[high])

    def _first_candidate(self, default: float, confidence_level: float, alternative: str) -> float:
        """Return the first candidate for which the one-sided limit of the share reaches the probability.

        `default` is returned if the limit reaches it for a share of 0, or does not reach it for a share of 1.
        """
        values = np.r_[default, self.candidates, default]
        # Bisection: the limit does not reach the probability at `below_first`, and reaches it at `first`.
        below_first = -1
        first = len(values) - 1
        while first - below_first > 1:
            middle = (below_first + first) // 2
            below = np.zeros(len(self.z), dtype=bool)
            if middle > 0:
                below = self.z <= values[middle]
            interval = self.share(below).confidence_interval(confidence_level, alternative=alternative)
            if alternative == "less":
                limit = interval.high
            else:
                limit = interval.low
            if limit >= self.probability - _ROUNDING:
                first = middle
            else:
                below_first = middle
        return float(values[first])

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the p-value of the hypothesis that the quantile is `null`."""
        if alternative == "two-sided":
            return min(1.0, 2.0 * min(self.p_value(null, side) for side in ("less", "greater")))
        check_alternative(alternative)
        if alternative == "greater":  # the quantile is above the null if too few units are at or below it
            return self.share(self.z <= null).p_value(self.probability, alternative="less")
        return self._p_value_below(null)

    def _p_value_below(self, null: float) -> float:
        """Return the p-value for the alternative that the quantile is below the null.

        It holds if the share of the units below the null is at least the probability. The test rejects all
        smaller shares. In a population of N units, the largest smaller share is the last multiple of 1/N
        below the probability.
        """
        size = self.weighting.population_size
        largest_smaller_share = self.probability
        if self.member is None and self.weighting.random_within_strata:
            largest_smaller_share = (np.ceil(self.probability * size - _ROUNDING * size) - 1.0) / size
        return self.share(self.z < null).p_value(max(largest_smaller_share, 0.0), alternative="greater")


# Normal quantiles of the confidence levels from which a standard error may be computed: first 95%, then
# smaller levels, because intervals of larger ones may be infinite, then larger levels, because intervals of
# smaller ones may have the width 0.
_NORMAL_QUANTILES = (1.96, 1.64, 1.28, 1.0, 0.67, 0.39, 0.13, 2.58, 3.29, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0)


def standard_error_from_width(interval: Interval, labels: FloatArray) -> float:
    """Return the standard error of a quantile: the half-width of the 95% interval over 1.96 (Woodruff 1952).

    If the 95% interval is infinite or has the width 0, another level is used: one with a finite interval of
    positive width, otherwise one whose interval is finite on one side. If all intervals have the width 0, the
    probability of another value is at most 2 Φ(−8), and the largest possible error with this probability is
    returned, within the bounds or, without bounds, the range of the `labels` (n,). It is NaN if all labels
    are equal, or if the interval is infinite on both sides.
    """
    one_sided_error = np.nan
    is_infinite = False
    for normal_quantile in _NORMAL_QUANTILES:
        ends = interval.ends(float(1.0 - 2.0 * ndtr(-normal_quantile)), "two-sided")
        lengths = np.abs(np.array(ends) - interval.value)
        is_finite = np.isfinite(lengths)
        if normal_quantile == _NORMAL_QUANTILES[0]:
            is_infinite = not is_finite.all()
        if lengths[is_finite].sum() <= 0:
            continue
        if is_finite.all():
            return float(lengths.mean() / normal_quantile)
        if np.isnan(one_sided_error):
            one_sided_error = float(lengths[is_finite].mean() / normal_quantile)
    if is_infinite or np.isfinite(one_sided_error):
        return one_sided_error
    lowest, highest = interval.bounds or (float(np.min(labels)), float(np.max(labels)))
    if highest > lowest:
        return float((highest - lowest) * np.sqrt(2.0 * ndtr(-_NORMAL_QUANTILES[-1])))
    return np.nan


def weighted_quantile_estimate(
    z: FloatArray,
    probability: float,
    weighting: Weighting,
    *,
    bounds: tuple[float, float] | None = None,
    member: BoolArray | None = None,
) -> Estimate:
    """Return the weighted quantile of z (n,), without a proxy, in the domain with the mask `member` (n,).

    The standard error is that of `standard_error_from_width`. It is NaN if the outcome has no bounds and all
    labels are equal.
    """
    require_probability(probability)
    in_domain = np.ones(len(z), dtype=bool)
    if member is not None:
        in_domain = member
    if not np.any(in_domain):
        return undefined_estimate(weighting, 0, bounds, "no labelled unit")
    value = weighted_quantile(z[in_domain], weighting.weights[in_domain], probability)
    domain_indicator = in_domain.astype(np.float64)
    indicator_up_to_value = domain_indicator * (z <= value)
    share = ratio_of_means(indicator_up_to_value, domain_indicator, weighting)
    interval: Interval = WoodruffInterval(
        value=value, bounds=bounds, probability=probability, z=z, weighting=weighting, member=member
    )
    if weighting.census:
        interval = StudentInterval(value=value, bounds=bounds, standard_error=0.0, degrees_of_freedom=np.inf)
        error = 0.0
    else:
        error = standard_error_from_width(interval, z[in_domain])
    # Influences on the scale of the outcome: their standard error is that of the quantile.
    scale = 1.0
    if share.standard_error > 0 and np.isfinite(error):
        scale = error / share.standard_error
    domain_share = float(weighting.weights @ domain_indicator)
    influence = probability * domain_indicator - indicator_up_to_value
    result = Linearised(
        value=value,
        variable=scale * influence / domain_share,
        design_variance=error**2,
        degrees_of_freedom=share.degrees_of_freedom,
    )
    return linearised_estimate(result, weighting, interval=interval, n=int(in_domain.sum()))
