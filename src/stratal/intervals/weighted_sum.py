"""The distribution of Σ (W_h/n_h) K_h, the weighted sum of the counts of strata.

Its tail is that of a scaled binomial, Poisson or negative binomial count with the same mean, variance and
third moment. Drawing without replacement has its own third moment, (1 − 2 f_h)/(1 − f_h) times that of n_h/(1
− f_h) independent trials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc, ndtri

from stratal.arrays import BoolArray, FloatArray, IntArray, field_names, field_values
from stratal.protocols import Keywords

# Rates nearer 0 are set to this: the binomial and the negative binomial distribution then equal Poisson's.
_MIN_RATE = 1e-8

# Maximum of third/second moment over second/first moment; at 2, the scale of the negative binomial is 0.
_MAX_SKEWNESS = 1.9

# Replaces 0 in logarithms and divisors.
_TINY = 1e-300

# The largest probability below 1 in floating point, and its normal quantile.
_MAX_PROBABILITY = 1.0 - 1e-16
_MAX_QUANTILE = float(ndtri(_MAX_PROBABILITY))

# Maximum number of pairs of strata in memory at once: 32 MB, all pairs of 2,000 strata.
_MAX_PAIRS = 4_000_000

# Number of the largest steps that are compared if there are more strata, whose sum has much smaller steps.
_MAX_STEPS = 100

# A variance of the sum below this is 0: the rate of every stratum with unlabelled units is 0 or 1.
_MIN_VARIANCE = 1e-290


def count_quantile(
    estimate: FloatArray,
    mean: FloatArray,
    remainder: FloatArray,
    variance: FloatArray,
    third_moment: FloatArray,
    half_step: FloatArray,
    *,
    exact: bool = True,
) -> FloatArray:
    """Return the normal quantile (R,) of the probability that a sum reaches the estimate.

    The distribution is that of a scaled count with the sum's first three moments: binomial if the variance is
    below the mean, otherwise negative binomial (with negative size and rate). The count is that of ones or
    of zeros, whichever is nearer to the estimate.

    Parameters
    ----------
    estimate, mean, variance, third_moment : float (R,)
        The estimate, and the mean, variance and third central moment of the sum.
    remainder : float (R,)
        The largest possible sum minus its mean.
    half_step : float (R,)
        Half a step of the sum, the correction for continuity.
    exact : bool
        Whether to use the incomplete beta function. Otherwise, the saddlepoint approximation of Lugannani &
        Rice (1980) is used where it is defined; its error is about 0.001.
    """
    largest_sum = mean + remainder
    counts_zeros = estimate > largest_sum / 2.0
    centre = np.maximum(np.where(counts_zeros, remainder, mean), _TINY)
    third_moment = np.where(counts_zeros, -third_moment, third_moment)
    distance = np.where(counts_zeros, largest_sum - estimate + half_step, estimate - half_step)
    dispersion = variance / centre
    skewness = np.minimum(third_moment / variance, _MAX_SKEWNESS * dispersion)
    scale = 2.0 * dispersion - skewness
    rate = (dispersion - skewness) / scale
    if (np.abs(rate) < _MIN_RATE).any():
        rate = np.where(np.abs(rate) < _MIN_RATE, np.copysign(_MIN_RATE, rate), rate)
    size = centre / (scale * rate)
    count = distance / scale
    if exact:
        return _beta_quantile(count, size, rate, counts_zeros)
    quantile = _saddlepoint_quantile(count, size, rate, counts_zeros)
    is_defined = np.isfinite(quantile)
    if is_defined.all():
        return quantile
    return np.asarray(np.where(is_defined, quantile, _beta_quantile(count, size, rate, counts_zeros)))


def _beta_quantile(
    count: FloatArray, size: FloatArray, rate: FloatArray, counts_zeros: BoolArray
) -> FloatArray:
    """Return the normal quantile (R,) of the probability, from the incomplete beta function.

    With half a step, `count` is the number of ones minus ½, or the number of zeros plus ½. Therefore it is
    P(K ≥ count + ½) for ones, and 1 − P(K ≥ count + ½) for zeros.
    """
    shape = np.maximum(count + 0.5, _TINY)
    other_shape = size - shape + 1.0
    probability = np.minimum(rate, 1.0)
    if (rate < 0).any():
        other_shape = np.where(rate > 0, other_shape, -size)
        probability = np.where(rate > 0, probability, -rate / (1.0 - rate))
    tail = betainc(shape, np.maximum(other_shape, _TINY), probability)
    tail = np.where(other_shape > 0, tail, 0.0)
    tail = np.where(counts_zeros, 1.0 - tail, tail)
    return np.asarray(ndtri(np.minimum(np.maximum(tail, _TINY), _MAX_PROBABILITY)))


def _saddlepoint_quantile(
    count: FloatArray, size: FloatArray, rate: FloatArray, counts_zeros: BoolArray
) -> FloatArray:
    """Return the approximation of `_beta_quantile` by Lugannani & Rice; not finite where it is undefined."""
    expected = size * rate
    other_count = size - count
    log_ratio = np.log(count / expected)
    other_log_ratio = np.log(other_count / (size - expected))
    root = np.sqrt(2.0 * np.maximum(count * log_ratio + other_count * other_log_ratio, 0.0))
    root = np.copysign(root, count - expected)
    wald = 2.0 * np.sinh((log_ratio - other_log_ratio) / 2.0) * np.sqrt(count * other_count / size)
    return np.asarray(np.where(counts_zeros, 1.0, -1.0) * (root + np.log(wald / root) / root))


def step_smoothing(steps: FloatArray, variance_factors: FloatArray) -> tuple[Any, FloatArray]:
    """Return an index of the K strata with the largest steps, and the weights by which others smooth these.

    The steps of a sum are smaller than those of one stratum, because the counts of the other strata vary. At
    the frequency of a step, exp(−Σ weight p(1 − p)) is about the absolute value of their characteristic
    function. The weights are (K, H), or (K, H, R) for replicates. With more than 2,000 strata, K ≤ 100.

    Parameters
    ----------
    steps, variance_factors : float (H, R) or (H, 1)
        s_h, and the factor of the stratum's p(1 − p).
    """
    max_rows = max(_MAX_PAIRS // len(steps), 1)
    # All rows as a slice, without a copy of the arrays, or the indices of some.
    largest: slice | IntArray = slice(None)
    if max_rows < len(steps):
        largest = np.argsort(-steps.max(axis=1), kind="stable")[: min(max_rows, _MAX_STEPS)]
    largest_steps = steps[largest]
    periods = np.where(largest_steps > 0, largest_steps, np.inf)[:, None]
    smoothing = (1.0 - np.cos(2.0 * np.pi * steps / periods)) * variance_factors
    return largest, smoothing[..., 0] if smoothing.shape[-1] == 1 else smoothing


def borrowed_labels(counts: FloatArray, trials: FloatArray, shares: FloatArray) -> FloatArray:
    """Return each stratum's number of pseudo-labels at the mean of all strata (…, H), (1 − w_h)/n_h.

    w_h is the stratum's share of the variance. One label does not show the variance of its stratum
    (docs/decisions/0009-few-labels.md).
    """
    is_sampled = np.isfinite(trials) & (shares > 0)
    variances = np.where(is_sampled, shares, 0.0) ** 2 / np.where(is_sampled, trials, 1.0)
    total = variances.sum(axis=-1, keepdims=True)
    variance_shares = variances / np.where(total > 0, total, 1.0)
    return np.asarray((1.0 - variance_shares) / np.where(is_sampled, counts, 1.0))


class SumMoments(NamedTuple):
    """Moments of a weighted sum at given rates, each (R,).

    `variance` and `third_moment` are divided by the factor of the trials; `half_step` is half the step of the
    sum, and `is_random` whether it has a variance.
    """

    mean: FloatArray
    variance: FloatArray
    third_moment: FloatArray
    half_step: FloatArray
    is_random: BoolArray


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSum:
    """Σ (W_h/n_h) K_h over the strata with unlabelled units; all arrays are (H, R) or (H, 1).

    Parameters
    ----------
    shares : float
        W_h of all strata.
    weights : float
        W_h of the strata with unlabelled units, 0 for others.
    total_weight : float (R,) or (1,)
        Sum of `weights`.
    trials : float
        Numbers of independent trials, reduced by the lost degree of freedom.
    borrowed : float
        Numbers of pseudo-labels, from `borrowed_labels`.
    steps : float
        W_h/n_h.
    variance_factors : float
        Factors of p(1 − p) in the variance.
    third_moment_factors : float
        Factors of p(1 − p)(1 − 2p) in the third moment. Without replacement, they include (1 − 2f)/(1 − f).
    largest_steps, smoothing
        The index and the weights of `step_smoothing`.
    factor : float (R,)
        Multiplies the trials and, for an outcome on a scale, the borrowed labels. It allows for λ, an outcome
        on a scale or a superpopulation.
    is_binary : bool
        Whether each outcome is 0 or 1.
    uses_average_step : bool
        Whether the step is its average over allocations, for forecasts, which must fall with every label.
    """

    shares: FloatArray
    weights: FloatArray
    total_weight: FloatArray
    trials: FloatArray
    borrowed: FloatArray
    steps: FloatArray
    variance_factors: FloatArray
    third_moment_factors: FloatArray
    smoothing: FloatArray
    largest_steps: slice | IntArray
    factor: FloatArray
    is_binary: bool
    uses_average_step: bool

    @classmethod
    def of(
        cls,
        factor: FloatArray,
        is_binary: bool,
        uses_average_step: bool,
        counts: FloatArray,
        trials: FloatArray,
        shares: FloatArray,
    ) -> WeightedSum:
        """Return the sum of strata with these counts, trials and shares, each (R, H) or (1, H)."""
        if not counts.shape == trials.shape == shares.shape:
            counts, trials, shares = np.broadcast_arrays(counts, trials, shares)
        borrowed = borrowed_labels(counts, trials, shares).T
        counts = counts.T
        trials = trials.T
        shares = shares.T
        is_sampled = np.isfinite(trials) & (shares > 0)
        weights = np.where(is_sampled, shares, 0.0)
        n = np.where(is_sampled, counts, 1.0)
        nominal_trials = np.where(is_sampled, trials, 1.0)
        # For an outcome on a scale, `factor` is computed from sample variances, which have n − 1 degrees of
        # freedom already.
        if is_binary:
            effective_trials = nominal_trials * (1.0 - borrowed * (1.0 - 1.0 / n) ** 2)
        else:
            effective_trials = nominal_trials
        steps = weights / n
        largest_steps, smoothing = step_smoothing(steps, n**2 / effective_trials * is_sampled)
        # (1 − 2f)/(1 − f) = 2 − t/n, because t = n/(1 − f).
        third_moment_factors = weights**3 / effective_trials**2 * (2.0 - nominal_trials / n)
        return cls(
            shares=shares,
            weights=weights,
            total_weight=weights.sum(axis=0),
            trials=effective_trials,
            borrowed=borrowed,
            is_binary=is_binary,
            uses_average_step=uses_average_step,
            steps=steps,
            variance_factors=weights**2 / effective_trials,
            third_moment_factors=third_moment_factors,
            smoothing=smoothing,
            largest_steps=largest_steps,
            factor=factor,
        )

    def select(self, replicates: IntArray) -> WeightedSum:
        """Return the sums of some replicates."""
        if self.weights.shape[1] == 1:
            return replace(self, factor=self.factor[replicates])
        without_replicates: Keywords = {
            "largest_steps": self.largest_steps,
            "is_binary": self.is_binary,
            "uses_average_step": self.uses_average_step,
        }
        names = [name for name in field_names(self) if name not in without_replicates]
        arrays = {name: values[..., replicates] for name, values in field_values(self, names).items()}
        return WeightedSum(**arrays, **without_replicates)

    def moments(self, rates: FloatArray) -> SumMoments:
        """Return the moments of the sum at rates (H, R), which are overwritten."""
        binary_variances = 1.0 - rates
        binary_variances *= rates
        mean = sum_over_strata(self.weights, rates)
        unscaled_variance = np.maximum(
            sum_over_strata(self.variance_factors, binary_variances), _MIN_VARIANCE
        )
        half_step = self.half_step(binary_variances, unscaled_variance)
        # p(1 − p)(1 − 2p), in place, because allocating arrays of this size is slow.
        rates *= -2.0
        rates += 1.0
        rates *= binary_variances
        return SumMoments(
            mean=mean,
            variance=unscaled_variance / self.factor,
            third_moment=sum_over_strata(self.third_moment_factors, rates) / self.factor**2,
            half_step=half_step,
            is_random=unscaled_variance > _MIN_VARIANCE,
        )

    def half_step(self, binary_variances: FloatArray, variance: FloatArray) -> FloatArray:
        """Return half the step (R,) of the sum: the largest step of a stratum, smoothed by the other strata.

        A stratum without variance has no step. `binary_variances` (H, R) are p(1 − p).
        """
        if self.uses_average_step:
            # The mean over many allocations, measured for 1 to 10 strata (benchmarks/plan_order.py).
            average_step = self.steps.max(axis=0) / len(self.steps)
            return np.asarray(average_step / (2.0 * np.sqrt(self.factor)))
        largest = self.largest_steps
        # A stratum with less than the mean variance has a proportionally smaller step: none without variance.
        variance_ratios = self.variance_factors[largest] * binary_variances[largest]
        variance_ratios *= len(binary_variances) / variance
        if self.smoothing.ndim == 2:
            exponents = self.smoothing @ binary_variances
        else:
            exponents = np.einsum("hkr,kr->hr", self.smoothing, binary_variances)
        smoothed_steps = np.exp(np.negative(exponents, out=exponents), out=exponents)
        smoothed_steps *= self.steps[largest]
        smoothed_steps *= np.minimum(variance_ratios, 1.0, out=variance_ratios)
        return np.asarray(smoothed_steps.max(axis=0) / (2.0 * np.sqrt(self.factor)))

    def tail_quantile(self, estimate: FloatArray, moments: SumMoments, *, exact: bool) -> FloatArray:
        """Return the normal quantile (R,) of P(sum ≥ estimate)."""
        remainder = np.maximum(self.total_weight - moments.mean, 0.0)
        quantile = count_quantile(
            estimate,
            moments.mean,
            remainder,
            moments.variance,
            moments.third_moment,
            moments.half_step,
            exact=exact,
        )
        return np.where(moments.is_random, quantile, _MAX_QUANTILE)


def sum_over_strata(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Return the weighted sums (R,) of values (H, R) over strata; weights (H, 1) or (H, R)."""
    if weights.shape[1] == 1:
        return np.asarray(weights[:, 0] @ values)
    return np.asarray(np.einsum("hr,hr->r", weights, values))
