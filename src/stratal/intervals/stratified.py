"""Clopper–Pearson's interval for a weighted sum of counts: one rule for any strata and any allocation.

A candidate value θ₀ is tested at the rates that explain the labels best under Σ W_h p_h = θ₀ (constrained
maximum likelihood, as Miettinen & Nurminen 1985 take it for two strata), and the limit is the θ₀ at which the
tail Σ (W_h/n_h) K_h beyond the estimate has probability α/2 (a test at estimated nuisance parameters: Lloyd
2008). These rates differ most from the mean labels in the strata with the largest W_h/n_h. Even if all labels
of such a stratum are 0, θ₀ may thus be explained by units of 1 in it. With one stratum and a large population
it is Clopper & Pearson's interval.

The tail is approximated by three moments (`intervals.weighted_sum`), with three corrections that vanish as
the labels of a stratum increase. docs/decisions/0009-few-labels.md contains the coverage without each of
them:

- On average, p̂(1 − p̂) is (1 − 1/n_h) times p(1 − p). A stratum therefore has n_h − (1 − w_h)(1 − 1/n_h)²
  trials, where w_h is its share of the variance. A single stratum loses none: only θ₀ is estimated.
- One label does not show the variance of its stratum. Each stratum therefore has (1 − w_h)/n_h additional
  labels with the mean of all strata (borrowed labels).
- A count has steps of W_h/n_h. The estimate is corrected by half a step.

The mean of N units of 0 and 1 is a multiple of 1/N, between the means if none and all of the unlabelled units
are 1. This matters if few units are unlabelled.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri

from stratal.arrays import FloatArray, IntArray, Record
from stratal.intervals.hypergeometric import largest_count, log_binomial, smallest_count
from stratal.intervals.weighted_sum import SumMoments, WeightedSum, borrowed_labels, sum_over_strata

# Maximum number of evaluations of the tail probability. The search usually ends after a few.
_MAX_SEARCH_STEPS = 80

# Tolerance of the search on the scale of arsinh: six digits of a limit. The limits of one stratum are those
# of Clopper & Pearson, and must agree with other implementations to more digits.
_TOLERANCE = 1e-6
_TOLERANCE_OF_ONE_STRATUM = 1e-10

# Width of a bracket at which its ends differ by rounding only.
_MIN_BRACKET = 1e-11

# A mean this near 0 is the limit: an estimate within half a step of 0 is reached at any Lagrange multiplier.
_NEGLIGIBLE_MEAN = 1e-10

# Share of the target quantile at which arsinh changes from linear to logarithmic. The quantile is 0 for the
# error probability ½, so that its size has a minimum.
_LINEAR_SHARE = 0.1
_MIN_QUANTILE_SIZE = 0.1

# Number of labels added at each bound for the first step, so that equal labels have a variance too.
_LABELS_AT_BOUND = 0.1

# The longest step of the search, a factor of about e² in the Lagrange multiplier.
_MAX_STEP = 2.0

# Range of the first slope, which is computed from the derivative of the variance.
_MIN_FIRST_SLOPE = -2.0
_MAX_FIRST_SLOPE = -0.3

# A slope nearer 0 than this is a rounding error, and the previous slope is kept.
_MAX_SLOPE = -1e-3

# Number of replicates up to which the time of a step does not depend on it: both limits share the steps.
_FEW_REPLICATES = 100

# Replicates per batch: arrays of this size fit into the cache of a processor.
_BATCH_REPLICATES = 2048
# Replicates × strata per batch: arrays of 8 MB fit into the cache too.
_BATCH_CELLS = 1_000_000

# Number of first steps with the saddlepoint approximation if there are many replicates: it is faster than the
# beta function, and its error is about 0.001. For few replicates it is no faster, and would only add steps.
_APPROXIMATE_STEPS = 3

# Minimum of a divisor that depends on the skewness, which few labels estimate poorly.
_MIN_DIVISOR = 0.25

# Maximum share of unsettled replicates for which these are copied, and the others dropped.
_MAX_COPIED_SHARE = 0.75

# With more units than this, draws without replacement are practically independent.
_MAX_UNITS = 1e9
# Share of a unit by which limits are moved outwards before they are rounded inwards to whole units: the three
# moments of the tail do not show that units are whole. The minimum coverage of two strata of up to 12 units
# is 0.890 without it and 0.942 with a third. At 1,000 labels, a half makes intervals of the default plan 2.4%
# wider, a third 1.4%.
_BINARY_MARGIN = 1.0 / 3.0
# The same for an outcome on a scale: with a third, coverage for {0, ½, 1} is 0.935 for five of eleven units.
_GRADED_MARGIN = 0.5
# Maximum number of unlabelled units for which the likelihood of every number of ones among them is computed.
# With more, the limits may exclude means at which the observed labels are more likely than the error.
_MAX_UNLABELLED_UNITS = 64

# A limit this near to a whole number of units, as a share of a unit, equals that number.
_UNIT_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumRates(Record):
    """The labels' summary of each stratum of an outcome on the 0–1 scale; replicate axes may lead.

    Parameters
    ----------
    value : float (…,)
        The estimate: Σ W_h times the rates, or near this sum if a proxy is used (λ > 0).
    rates : float (…, H)
        Mean outcome of the labels of each stratum.
    counts : float (…, H)
        Number of labels, n_h; at least 1 if the share is above 0.
    trials : float (…, H)
        Effective number of independent trials, n_h / (1 − f_h) for λ = 0; infinite if all units have labels.
    shares : float (…, H)
        W_h, 0 for strata without labels.
    factor : float (…,)
        Factor of the trials of all strata, which allows for λ, a graded outcome or a superpopulation. It is
        separate from `trials`, so that replicates of one allocation share the values computed from these.
    lowest_mean, highest_mean : float (…,)
        The mean of the units if all unlabelled ones are 0, or 1.
    units : float
        N if the mean is that of N units, otherwise infinite.
    is_binary : bool
        Whether each outcome is 0 or 1.
    shrunk_rates : float (…, H), optional
        Rates shrunk to ½, if labels determined the allocation. Each limit is the outer one of both rates.
    uses_average_step : bool
        Whether the step of the sum is its average over random allocations to as many strata, instead of that
        of `counts`. It then falls with every label, as forecasts require.
    """

    value: FloatArray
    rates: FloatArray
    counts: FloatArray
    trials: FloatArray
    shares: FloatArray
    factor: FloatArray = field(default_factory=lambda: np.ones(()))
    lowest_mean: FloatArray = field(default_factory=lambda: np.zeros(()))
    highest_mean: FloatArray = field(default_factory=lambda: np.ones(()))
    units: float = np.inf
    is_binary: bool = False
    shrunk_rates: FloatArray | None = None
    uses_average_step: bool = False

    def round_to_possible_means(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return limits (…,) moved outwards by a share of a unit and rounded to possible means."""
        if not np.isfinite(self.units):
            return low, high
        if self.is_binary:
            margin = _BINARY_MARGIN
        else:
            margin = _GRADED_MARGIN
        low_total = low * self.units - margin
        high_total = high * self.units + margin
        lowest_total = self.lowest_mean * self.units
        highest_total = self.highest_mean * self.units
        if self.is_binary:
            low_total = np.ceil(low_total - _UNIT_ROUNDING)
            high_total = np.floor(high_total + _UNIT_ROUNDING)
            lowest_total = np.round(lowest_total)
            highest_total = np.round(highest_total)
        return (
            np.maximum(low_total, lowest_total) / self.units,
            np.minimum(high_total, highest_total) / self.units,
        )


def stratified_clopper_pearson(
    strata: StratumRates, error_below: float, error_above: float
) -> tuple[FloatArray, FloatArray]:
    """Return the limits (low, high), each (…,), with these error probabilities.

    With an error probability of 0, there is no limit on this side: it is 0 or 1.
    """
    if strata.shrunk_rates is not None:
        differences = np.sum(strata.shares * (strata.shrunk_rates - strata.rates), axis=-1)
        shrunk_value = np.clip(strata.value + differences, 0.0, 1.0)
        values = np.stack(np.broadcast_arrays(strata.value, shrunk_value))
        rates = np.stack(np.broadcast_arrays(strata.rates, strata.shrunk_rates))
        with_shrunk = replace(strata, value=values, rates=rates, shrunk_rates=None)
        low, high = stratified_clopper_pearson(with_shrunk, error_below, error_above)
        return low.min(axis=0), high.max(axis=0)
    if _is_one_hypergeometric_count(strata):
        return _hypergeometric_limits(strata, error_below, error_above)
    low, high = strata.round_to_possible_means(*_invert_tests(strata, error_below, error_above))
    if _has_few_unlabelled_units(strata):
        lowest_likely, highest_likely = _range_of_likely_means(strata, error_below, error_above)
        low = np.minimum(low, lowest_likely)
        high = np.maximum(high, highest_likely)
    return (
        low if error_below > 0 else np.zeros_like(low),
        high if error_above > 0 else np.ones_like(high),
    )


def _is_one_hypergeometric_count(strata: StratumRates) -> bool:
    """Return whether the labels are one hypergeometric count: one stratum of 0 and 1, and λ = 0."""
    if strata.rates.shape[-1] > 1 or not strata.is_binary or strata.units > _MAX_UNITS:
        return False
    unlabelled_share = 1.0 - strata.counts / strata.units
    return bool(
        np.all(strata.factor == 1.0)
        and np.allclose(strata.counts / strata.trials, unlabelled_share, atol=1e-9)
    )


def _hypergeometric_limits(
    strata: StratumRates, error_below: float, error_above: float
) -> tuple[FloatArray, FloatArray]:
    """Return the exact limits (…,) of one stratum of 0 and 1."""
    size = round(strata.units)
    counts = np.round(strata.counts[..., 0]).astype(np.int64)
    ones = np.round(strata.rates[..., 0] * counts).astype(np.int64)
    low = np.zeros(ones.shape)
    high = np.ones(ones.shape)
    if error_below > 0:
        low = smallest_count(ones, counts, size, error_below) / size
    if error_above > 0:
        high = largest_count(ones, counts, size, error_above) / size
    return low, high


def _has_few_unlabelled_units(strata: StratumRates) -> bool:
    """Return whether few units are unlabelled and the labels are hypergeometric counts (0 and 1, λ = 0)."""
    if not strata.is_binary or strata.units > _MAX_UNITS or np.any(strata.factor != 1.0):
        return False
    sizes = strata.shares * strata.units
    ones = strata.rates * strata.counts
    unlabelled_units = np.sum(np.round(sizes) - strata.counts, axis=-1)
    are_whole = (np.allclose(array, np.round(array), atol=_UNIT_ROUNDING) for array in (sizes, ones))
    return bool(np.all(unlabelled_units <= _MAX_UNLABELLED_UNITS) and all(are_whole))


def _range_of_likely_means(
    strata: StratumRates, error_below: float, error_above: float
) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest mean (…,) at which the observed labels are more likely than the error.

    The tail of a test contains the observed labels. No valid test therefore excludes a mean at which they are
    more likely than the error probability. The likelihood of a mean is that of the most likely division of
    its ones among the strata, computed one stratum after the other.
    """
    arrays = np.broadcast_arrays(strata.shares * strata.units, strata.counts, strata.rates * strata.counts)
    sizes, counts, ones = (np.round(array).astype(np.int64) for array in arrays)
    shape = ones.shape[:-1]
    unlabelled_units = sizes - counts
    max_unlabelled = int(unlabelled_units.sum(axis=-1).max(initial=0))
    # Log-likelihood of 0, 1, … unlabelled ones in the strata so far.
    log_likelihood = np.full((*shape, max_unlabelled + 1), -np.inf)
    log_likelihood[..., 0] = 0.0
    for h in range(ones.shape[-1]):
        size, n, k = (array[..., h, None] for array in (sizes, counts, ones))
        unlabelled_ones = np.arange(int(unlabelled_units[..., h].max(initial=0)) + 1)
        total = k + np.minimum(unlabelled_ones, size - n)
        of_stratum = log_binomial(total, k) + log_binomial(size - total, n - k) - log_binomial(size, n)
        of_stratum = np.where(unlabelled_ones <= size - n, of_stratum, -np.inf)
        with_stratum = np.full_like(log_likelihood, -np.inf)
        for j in unlabelled_ones.tolist():
            # j ones in this stratum, in addition to those of the strata before it.
            likelihoods = with_stratum[..., j:]
            joint = log_likelihood[..., : max_unlabelled + 1 - j] + of_stratum[..., j : j + 1]
            np.maximum(likelihoods, joint, out=likelihoods)
        log_likelihood = with_stratum
    totals = ones.sum(axis=-1)[..., None] + np.arange(max_unlabelled + 1)
    means = totals / strata.units
    lowest = np.full(shape, np.inf)
    highest = np.full(shape, -np.inf)
    if error_below > 0:
        lowest = np.where(log_likelihood > np.log(error_below), means, np.inf).min(axis=-1)
    if error_above > 0:
        highest = np.where(log_likelihood > np.log(error_above), means, -np.inf).max(axis=-1)
    return lowest, highest


def rates_with_borrowed_labels(
    rates: FloatArray, counts: FloatArray, trials: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return the rates (…, H) of an outcome on a scale, including the borrowed labels of each stratum."""
    overall = (shares * rates).sum(axis=-1, keepdims=True) / shares.sum(axis=-1, keepdims=True)
    borrowed = borrowed_labels(counts, trials, shares)
    has_unlabelled = np.isfinite(trials)
    finite_trials = np.where(has_unlabelled, trials, 1.0)
    combined = (finite_trials * rates + borrowed * overall) / (finite_trials + borrowed)
    return np.asarray(np.where(has_unlabelled, combined, rates))


def _broadcast(array: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return an array of this shape, without a call of `broadcast_to` if possible: it is slow in loops."""
    if array.shape == shape:
        return array
    return np.broadcast_to(array, shape)


def _invert_tests(
    strata: StratumRates, error_below: float, error_above: float
) -> tuple[FloatArray, FloatArray]:
    """Return the limits (…,) by the tail of the weighted sum, in batches of replicates."""
    *leading_shape, n_strata = np.shape(strata.rates)
    shape = np.broadcast_shapes(np.shape(strata.value), tuple(leading_shape), np.shape(strata.factor))
    value = _broadcast(strata.value, shape).ravel()
    factor = _broadcast(strata.factor, shape).ravel()

    def by_replicate(array: FloatArray) -> FloatArray:
        return _broadcast(array, (*shape, n_strata)).reshape(-1, n_strata)

    rates = by_replicate(strata.rates)
    # Counts, trials and shares: one row if they are the same for all replicates.
    allocation = [
        array[None] if array.ndim == 1 else by_replicate(array)
        for array in (strata.counts, strata.trials, strata.shares)
    ]
    has_one_allocation = all(len(array) == 1 for array in allocation)
    # `WeightedSum.smoothing`, the largest array, is (H, H) for one allocation, otherwise (H, H, R).
    cells_per_replicate = n_strata if has_one_allocation else n_strata**2
    batch_size = min(_BATCH_REPLICATES, 1 + _BATCH_CELLS // cells_per_replicate)
    low = np.zeros(len(value))
    high = np.ones(len(value))
    for start in range(0, len(value), batch_size):
        batch = slice(start, start + batch_size)
        batch_rates = np.ascontiguousarray(rates[batch].T)
        n_replicates = batch_rates.shape[1]
        are_limits_joint = error_below == error_above and n_replicates <= _FEW_REPLICATES
        n_copies = 2 if are_limits_joint else 1
        batch_factor = np.concatenate([factor[batch]] * n_copies)
        batch_allocation = [
            array if len(array) == 1 else np.concatenate([array[batch]] * n_copies) for array in allocation
        ]
        weighted_sum = WeightedSum.of(
            batch_factor, strata.is_binary, strata.uses_average_step, *batch_allocation
        )
        # The upper limit is one minus the lower limit of the share of zeros.
        if are_limits_joint:
            values = np.concatenate([value[batch], 1.0 - value[batch]])
            both_rates = np.concatenate([batch_rates, 1.0 - batch_rates], axis=1)
            limits = _lower_limit(values, both_rates, weighted_sum, error_below)
            low[batch] = limits[:n_replicates]
            high[batch] = 1.0 - limits[n_replicates:]
            continue
        if error_below > 0:
            low[batch] = _lower_limit(value[batch], batch_rates, weighted_sum, error_below)
        if error_above > 0:
            high[batch] = 1.0 - _lower_limit(1.0 - value[batch], 1.0 - batch_rates, weighted_sum, error_above)
    return low.reshape(shape), high.reshape(shape)


def _lower_limit(value: FloatArray, rates: FloatArray, weighted_sum: WeightedSum, error: float) -> FloatArray:
    """Return the mean (R,) for which an estimate of at least `value` (R,) has probability `error`.

    `rates` (H, R) are the mean labels of the strata.
    """
    # The contribution of completely labelled strata.
    known_sum = sum_over_strata(weighted_sum.shares - weighted_sum.weights, rates)
    limit = np.zeros(len(value))
    estimate = value - known_sum
    has_limit = (estimate > 0) & (weighted_sum.total_weight > 0)
    # All replicates as a slice, without a copy of the arrays, or the indices of some.
    replicates: slice | IntArray = slice(None)
    if not has_limit.all():
        replicates = np.flatnonzero(has_limit)
        if len(replicates) == 0:
            return known_sum
        rates = rates[:, replicates]
        weighted_sum = weighted_sum.select(replicates)
        estimate = estimate[replicates]
    overall_rate = np.minimum(estimate / weighted_sum.total_weight, 1.0)
    trials = weighted_sum.trials
    borrowed = weighted_sum.borrowed
    if not (weighted_sum.factor == 1.0).all():
        trials = trials * weighted_sum.factor
    # For an outcome on a scale, the factor is the number of binary labels that one label is worth, also if
    # it is borrowed. For a binary outcome, it is due to λ or the superpopulation only.
    if not weighted_sum.is_binary:
        borrowed = borrowed * weighted_sum.factor
    labels = trials + borrowed
    ones = trials * rates + borrowed * overall_rate
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        mean = _solve_for_mean(estimate, ones, labels, weighted_sum, -float(ndtri(error)))
        limit[replicates] = np.minimum(mean, estimate)
    return np.asarray(known_sum + limit)


def _solve_for_mean(
    estimate: FloatArray,
    ones: FloatArray,
    labels: FloatArray,
    weighted_sum: WeightedSum,
    target_quantile: float,
) -> FloatArray:
    """Return the sum's mean (R,) at which the tail has normal quantile −`target_quantile`.

    The search is over the Lagrange multiplier μ of the constraint, with x = arsinh(μ/unit) and y = arsinh of
    the scaled quantile minus its target. arsinh is nearly logarithmic but defined at 0, so that y is nearly
    linear in x with slope −1. Steps are those of the secant method, the first from the derivative of the
    variance. A step out of the bracket is replaced by bisection. The error of the next step is about the
    product of the last two errors.
    """
    scale = _LINEAR_SHARE * max(abs(target_quantile), _MIN_QUANTILE_SIZE)
    n = len(estimate)
    target = np.arcsinh(target_quantile / scale)
    unit, x = _first_multiplier(ones, labels, weighted_sum, target_quantile, scale)
    # There is no point before the first step, whose slope is not that of a secant. With slope −1, y at μ = 0
    # is about the solution x: the size of the first error.
    previous_x = x
    previous_y = x
    previous_mean = x
    error_bound = x
    low = np.full(n, -np.inf)
    high = np.full(n, np.inf)
    # Indices of the replicates that are still searched.
    searched = np.arange(n)
    result = np.zeros(n)
    approximate_steps = 0 if n <= 2 * _FEW_REPLICATES else _APPROXIMATE_STEPS
    tolerance = _TOLERANCE if len(ones) > 1 else _TOLERANCE_OF_ONE_STRATUM
    for step in range(_MAX_SEARCH_STEPS):
        multiplier = unit * np.sinh(x)
        is_exact = step >= approximate_steps
        rates = _constrained_rates(ones, labels, weighted_sum.weights, multiplier)
        quantile, moments = _tail(estimate, rates, weighted_sum, is_exact)
        mean = moments.mean
        y = np.arcsinh(quantile / scale) + target
        if step == 0:
            slope = _first_slope(multiplier, moments)
            mean_slope = np.zeros(n)
        # The approximation and the exact formula have no common secant.
        elif step != approximate_steps:
            run = x - previous_x
            run[run == 0.0] = 1.0
            secant_slope = (y - previous_y) / run
            slope = np.where(secant_slope < _MAX_SLOPE, secant_slope, slope)
            mean_slope = (mean - previous_mean) / run
        next_x = x + np.minimum(np.maximum(-y / slope, -_MAX_STEP), _MAX_STEP)
        if is_exact:
            is_low = y > 0
            low = np.where(is_low, x, low)
            high = np.where(is_low, high, x)
            is_outside = (next_x <= low) | (next_x >= high)
            if is_outside.any():
                middle = (low + high) / 2.0
                next_x = np.where(is_outside & np.isfinite(middle), middle, next_x)
            # The first exact step has the slope of an earlier secant, so that the errors of two steps add up.
            error_bound = np.abs(previous_y) + (error_bound if step == approximate_steps else 0.0)
            is_settled = np.abs(y * error_bound) < tolerance
            is_settled |= (high - low < _MIN_BRACKET) | (mean < _NEGLIGIBLE_MEAN)
            unsettled = np.flatnonzero(~is_settled)
            result[searched] = mean + (next_x - x) * mean_slope
            if len(unsettled) == 0:
                break
        else:
            error_bound = np.abs(previous_y)
            unsettled = searched
        previous_x = x
        previous_y = y
        previous_mean = mean
        x = next_x
        if len(unsettled) <= _MAX_COPIED_SHARE * len(searched):
            arrays = [estimate, unit, x, slope, mean_slope, error_bound, low, high]
            arrays += [previous_x, previous_y, previous_mean]
            arrays = list(np.stack(arrays)[:, unsettled])
            estimate, unit, x, slope, mean_slope, error_bound, low, high, *previous = arrays
            previous_x, previous_y, previous_mean = previous
            searched = searched[unsettled]
            weighted_sum = weighted_sum.select(unsettled)
            ones = ones[:, unsettled]
            if labels.shape[1] != 1:
                labels = labels[:, unsettled]
    return result


def _first_slope(multiplier: FloatArray, moments: SumMoments) -> FloatArray:
    """Return the slope (R,) of y in x for the first step, from the derivative of the variance V in μ."""
    # −d log V / d log μ
    log_variance_slope = multiplier * moments.third_moment / moments.variance
    slope = log_variance_slope / 2.0 - 1.0
    return np.asarray(np.minimum(np.maximum(slope, _MIN_FIRST_SLOPE), _MAX_FIRST_SLOPE))


def _first_multiplier(
    ones: FloatArray, labels: FloatArray, weighted_sum: WeightedSum, target_quantile: float, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Return the unit of Lagrange multipliers (R,), and the first one on the scale of arsinh (R,).

    The first multiplier is μ = u/√V, with the variance V and skewness γ at the labels' rates: estimate − mean
    is μ V(μ), and V(μ) = V/(1 + γ u) = V/r² as of a Poisson count. Cornish & Fisher's (1938) quantile, half a
    step beyond, then makes u = w r + c r², where w is the target quantile and c = γ (w² − 1)/6 + half/√V.
    With r² = 1 + γ u, this is a quadratic equation in r.
    """
    rates = (ones + _LABELS_AT_BOUND) / (labels + 2.0 * _LABELS_AT_BOUND)
    moments = weighted_sum.moments(rates)
    deviation = np.sqrt(moments.variance)
    skewness = moments.third_moment / (moments.variance * deviation)
    c = skewness * (target_quantile**2 - 1.0) / 6.0 + moments.half_step / deviation
    linear = skewness * target_quantile
    quadratic = np.maximum(1.0 - skewness * c, _MIN_DIVISOR)
    r = (linear + np.sqrt(linear**2 + 4.0 * quadratic)) / (2.0 * quadratic)
    x = np.arcsinh((target_quantile * r + c * r**2) / scale)
    return scale / deviation, x


def _constrained_rates(
    ones: FloatArray, labels: FloatArray, weights: FloatArray, multiplier: FloatArray
) -> FloatArray:
    """Return the most likely rates (H, R) for the Lagrange multiplier μ (R,) of Σ W_h p_h.

    They solve ones/p − (labels − ones)/(1 − p) = μ W_h, a quadratic equation in p. For μ < 0, it is solved
    for the rates of zeros, so that no digits cancel.
    """
    is_negative = multiplier < 0
    any_negative = is_negative.any()
    if any_negative:
        ones = np.where(is_negative, labels - ones, ones)
    # p = 2 ones / (b + √(b² − 4 ones W|μ|)), with b = labels + W|μ|. In place, because allocating arrays of
    # this size at every line is slow.
    products = weights * np.abs(multiplier)
    b = labels + products
    products *= ones
    products *= -4.0
    products += b * b
    divisor = np.sqrt(np.maximum(products, 0.0, out=products), out=products)
    divisor += b
    rates = np.divide(ones, divisor, out=divisor)
    rates *= 2.0
    return np.asarray(np.where(is_negative, 1.0 - rates, rates) if any_negative else rates)


def _tail(
    estimate: FloatArray, rates: FloatArray, weighted_sum: WeightedSum, is_exact: bool
) -> tuple[FloatArray, SumMoments]:
    """Return the normal quantile (R,) of P(sum ≥ estimate), and the moments of the sum."""
    moments = weighted_sum.moments(rates)
    return weighted_sum.tail_quantile(estimate, moments, exact=is_exact), moments
