"""Clopper–Pearson's interval for a weighted sum of counts: one rule for any strata and any allocation.

A candidate value θ₀ is tested at the rates that explain the labels best under Σ W_h p_h = θ₀ (constrained
maximum likelihood, as Miettinen & Nurminen 1985 take it for two strata), and the limit is the θ₀ at which the
tail Σ (W_h/n_h) K_h beyond the estimate has probability α/2 (a test at estimated nuisance parameters: Lloyd
2008). Rates change most in the strata with the largest weights, so that a large stratum with equal labels may
have other outcomes. With one stratum and a large population it is Clopper & Pearson's interval.

The tail is that of the binomial, Poisson or negative binomial count, scaled, with the sum's first three
moments (`intervals.tail`). Three constants, each fading with the labels of a stratum, each measured
(docs/decisions/0009-few-labels.md):

- a stratum's rate costs its variance a degree of freedom, p̂(1 − p̂) being (1 − 1/n_h) of what it should be
  on average: n_h − (1 − w_h)(1 − 1/n_h)² trials, w_h the stratum's share of the variance (one stratum loses
  none: nothing but θ₀ is estimated);
- each stratum has (1 − w_h)/n_h additional labels with the mean of all strata (borrowed labels), because
  one label does not show the variance of its stratum;
- a count has steps of W_h/n_h (a correction of half a step).

Drawing without replacement has its own third moment, (1 − 2 f_h)/(1 − f_h) times that of n_h/(1 − f_h)
independent trials. The mean of N units of 0 and 1 is a multiple of 1/N between the means if none and all of
the unlabelled units are 1. Both matter if few units are unlabelled
(docs/decisions/0009-few-labels.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import betainc, gammaln, ndtri

from stratal.arrays import FloatArray, IntArray, Number, Record, field_names, field_values
from stratal.protocols import Keywords
from stratal.strata.standard_deviations import PSEUDO_LABELS

# Rates nearer 0 are set to this: the binomial and the negative binomial distribution then equal Poisson's.
_POISSON = 1e-8

# Maximum of third/second moment over second/first moment; at 2, the scale of the negative binomial is 0.
_MAX_SKEWNESS = 1.9

# Replaces 0 in logarithms and divisors.
_NOTHING = 1e-300

# The largest probability below 1 in floating point.
_ALL = 1.0 - 1e-16

# Maximum number of pairs of strata in memory at once: 32 MB, all pairs of 2,000 strata.
_MAX_CELLS = 4_000_000

# Number of the largest steps that are compared if there are more strata, whose sum has much smaller steps.
_MAX_STEPS = 100

# The normal quantile of a probability that rounds to 1.
MAX_QUANTILE = float(ndtri(_ALL))


def count_quantile(
    estimate: FloatArray,
    mean: FloatArray,
    rest: FloatArray,
    variance: FloatArray,
    third: FloatArray,
    half: FloatArray,
    *,
    near: bool = True,
) -> FloatArray:
    """Return the normal quantile (R,) of the probability that a sum reaches the estimate.

    The distribution is that of a scaled count with the sum's first three moments: binomial if the variance is
    below the mean, otherwise negative binomial (with negative size and rate). The count is that of ones or
    of zeros, whichever is nearer to the estimate.

    Parameters
    ----------
    estimate, mean, variance, third : float (R,)
        The estimate, and the mean, variance and third moment of the sum.
    rest : float (R,)
        The largest possible sum minus its mean.
    half : float (R,)
        Half a step of the sum, the correction for continuity.
    near : bool
        Whether to use the incomplete beta function. Otherwise, the saddlepoint approximation of Lugannani &
        Rice (1980) is used where it is defined; its error is about .001.

    Examples
    --------
    >>> ten = [np.array([number]) for number in (8.0, 5.0, 5.0, 2.5, 0.0, 0.5)]
    >>> count_quantile(*ten).round(3)
    array([-1.601])
    """
    total = mean + rest
    turned = estimate > total / 2.0
    centre = np.maximum(np.where(turned, rest, mean), _NOTHING)
    third = np.where(turned, -third, third)
    from_end = np.where(turned, total - estimate + half, estimate - half)
    ratio = variance / centre
    skew = np.minimum(third / variance, _MAX_SKEWNESS * ratio)
    scale = 2.0 * ratio - skew
    rate = (ratio - skew) / scale
    if (np.abs(rate) < _POISSON).any():
        rate = np.where(np.abs(rate) < _POISSON, np.copysign(_POISSON, rate), rate)
    size = centre / (scale * rate)
    reached = from_end / scale
    guess: Number = np.nan
    if not near:
        expected = size * rate
        rest = size - reached
        one = np.log(reached / expected)
        two = np.log(rest / (size - expected))
        root = np.sqrt(2.0 * np.maximum(reached * one + rest * two, 0.0))
        root = np.copysign(root, reached - expected)
        wald = 2.0 * np.sinh((one - two) / 2.0) * np.sqrt(reached * rest / size)
        guess = np.where(turned, 1.0, -1.0) * (root + np.log(wald / root) / root)
        if np.isfinite(guess).all():
            return np.asarray(guess)
    count = np.maximum(reached + 0.5, _NOTHING)
    other = size - count + 1.0
    chance = np.minimum(rate, 1.0)
    if (rate < 0).any():
        other = np.where(rate > 0, other, -size)
        chance = np.where(rate > 0, chance, -rate / (1.0 - rate))
    tail = betainc(count, np.maximum(other, _NOTHING), chance)
    tail = np.where(other > 0, tail, 0.0)
    exact = ndtri(np.minimum(np.maximum(np.where(turned, 1.0 - tail, tail), _NOTHING), _ALL))
    return np.asarray(exact if near else np.where(np.isfinite(guess), guess, exact))


def blurring(steps: FloatArray, pull: FloatArray) -> tuple[Any, FloatArray]:
    """Return an index of the K strata with the largest steps, and the weights with which others blur these.

    The steps of a sum are smaller than those of one stratum, because the counts of the other strata vary. For
    at most 2000 strata, K is their number; otherwise 100 or less. The weights (K, H), or (K, H, R) for
    replicates, are multiplied by each stratum's p(1 − p).

    Parameters
    ----------
    steps, pull : float (H, R) or (H, 1)
        s_h, and c_h, the factor of the stratum's p(1 − p).

    Examples
    --------
    >>> blurring(np.array([[0.1], [0.2]]), np.array([[10.0], [10.0]]))[1].round(6)
    array([[ 0.,  0.],
           [20.,  0.]])
    """
    most = max(_MAX_CELLS // len(steps), 1)
    # All rows, without a copy of the arrays, or the numbers of some.
    largest: slice | IntArray = slice(None)
    if most < len(steps):
        largest = np.argsort(-steps.max(axis=1), kind="stable")[: min(most, _MAX_STEPS)]
    largest_step = steps[largest]
    blur = (
        1.0 - np.cos(2.0 * np.pi * steps / np.where(largest_step > 0, largest_step, np.inf)[:, None])
    ) * pull
    return largest, blur[..., 0] if blur.shape[-1] == 1 else blur


# Maximum number of terms of the tail in memory at once.
_AT_ONCE = 2_000_000


def smallest_count(ones: IntArray, counts: IntArray, size: int, error: float) -> IntArray:
    """Return the smallest M (…,) of N = `size` for which P(K ≥ ones) of n labels is larger than `error`.

    Parameters
    ----------
    ones, counts : int (…,)
        k and n; `counts` may have fewer axes.
    size : int
    error : float

    Examples
    --------
    >>> smallest_count(np.array([15, 16]), np.array(16), 20, 0.025)
    array([17, 18])
    """
    shape = np.shape(ones)
    each, back = np.unique(
        np.column_stack([np.ravel(ones), np.broadcast_to(counts, shape).ravel()]), axis=0, return_inverse=True
    )
    k, n = each.T
    below = k - 1
    # The upper bound: all units that were not drawn are 1.
    smallest = k + size - n
    while np.any(open_ := smallest - below > 1):
        middle = (below + smallest) // 2
        enough = np.zeros(len(k), dtype=bool)
        enough[open_] = hypergeometric_upper_tail(k[open_], n[open_], size, middle[open_]) > error
        smallest = np.where(open_ & enough, middle, smallest)
        below = np.where(open_ & ~enough, middle, below)
    return np.asarray(smallest[back.ravel()].reshape(shape))


def largest_count(ones: IntArray, counts: IntArray, size: int, error: float) -> IntArray:
    """Return the largest M (…,) for which P(K ≤ ones) is larger than `error`.

    Examples
    --------
    >>> largest_count(np.array([0, 1]), np.array(16), 20, 0.025)
    array([2, 3])
    """
    return np.asarray(size - smallest_count(counts - ones, counts, size, error))


def quantile_ranks(n: int, size: int, probability: float, below: float, above: float) -> tuple[int, int]:
    """Return the ranks among n labels, 1 … n, of the limits of a quantile of N = `size` units.

    Rank 0 or n + 1 means that there is no limit on this side. The quantile is that of the ⌈qN⌉-th unit. The
    lower rank is the largest r with P(K < r) ≤ `below`, K the hypergeometric number of labels at or below it;
    the upper rank is the smallest s with P(K′ ≥ s) ≤ `above`, K′ that of the labels below it (David &
    Nagaraja 2003, section 7.1).

    Examples
    --------
    >>> quantile_ranks(400, 10**6, 0.01, 0.025, 0.025), quantile_ranks(5, 10**6, 0.5, 0.025, 0.025)
    ((1, 9), (0, 6))
    """
    at_or_below = int(np.ceil(probability * size - _ROUNDING))
    # The labels above the quantile are a hypergeometric count of the other units.
    if below > 0:
        low = n + 1 - _rarest_count(n, size, size - at_or_below, below)
    else:
        low = 0
    return low, _rarest_count(n, size, at_or_below - 1, above) if above > 0 else n + 1


def _rarest_count(n: int, size: int, total: int, error: float) -> int:
    """Return the smallest k, up to n + 1, with P(K ≥ k) ≤ error: K of n are among `total` of N."""
    certain = max(n - (size - total), 0)
    rare = min(n, total) + 1
    while rare - certain > 1:
        middle = (certain + rare) // 2
        tail = hypergeometric_upper_tail(np.array([middle]), np.array([n]), size, np.array([total]))[0]
        if tail <= error:
            rare = middle
        else:
            certain = middle
    return rare


def hypergeometric_upper_tail(ones: IntArray, counts: IntArray, size: int, total: IntArray) -> FloatArray:
    """Return P(K ≥ k) (R,) of k among n drawn of N units, M of them 1: the first term and its ratios.

    k ones can be drawn: k ≤ M, and n − k ≤ N − M.
    """
    terms = np.minimum(counts, total) - ones
    first = _logs(total, ones) + _logs(size - total, counts - ones) - _logs(np.full(1, size), counts)
    result = np.zeros(len(ones))
    batch = max(_AT_ONCE // (int(terms.max(initial=0)) + 1), 1)
    for start in range(0, len(ones), batch):
        rows = slice(start, start + batch)
        step = np.arange(int(terms[rows].max(initial=0)))
        k, n, m = (part[rows, None].astype(np.float64) for part in (ones, counts, total))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (m - k - step) * (n - k - step) / ((k + step + 1.0) * (size - m - n + k + step + 1.0))
        ratio = np.where(step < terms[rows, None], np.maximum(ratio, 0.0), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            logarithm = first[rows] + np.log1p(np.cumprod(ratio, axis=1).sum(axis=1))
        result[rows] = np.exp(np.minimum(logarithm, 0.0))
    return result


def _logs(total: IntArray, part: IntArray) -> FloatArray:
    """Return the logarithm of the binomial coefficient; invalid outside 0 ≤ part ≤ total."""
    inside = (part >= 0) & (part <= total)
    total = np.where(inside, total, 0.0)
    part = np.where(inside, part, 0.0)
    return np.asarray(gammaln(total + 1.0) - gammaln(part + 1.0) - gammaln(total - part + 1.0))


# Neyman's sizes are proportional to √(p(1 − p)): their elasticity to a small rate is one half.
_ELASTICITY = 0.5


def shrink_to_half(
    rates: FloatArray, counts: FloatArray, left: FloatArray, parts: FloatArray, factor: FloatArray
) -> FloatArray:
    """Return the rates (…, H), shrunk to one half by the bias of sizes that depend on earlier labels.

    Parameters
    ----------
    rates, counts : float (…, H)
        Mean and number of the labels.
    left : float (…, H)
        1 − f_h, the unlabelled share of each stratum.
    parts : float (…, H)
        Each stratum's contribution to the variance of the mean.
    factor : float (…,)
        Number of binary trials with the information of one label.

    Examples
    --------
    >>> n_h, one = np.array([200.0]), np.ones(1)
    >>> shrink_to_half(np.array([0.05]), n_h, one, np.array([2e-4]), np.ones(())).round(4)
    array([0.053])
    """
    share = mixed_label_share(rates, counts, left, parts, factor)
    return np.asarray((1.0 - share) * rates + share / 2.0)


def mixed_label_share(
    rates: FloatArray, counts: FloatArray, left: FloatArray, parts: FloatArray, factor: FloatArray
) -> FloatArray:
    """Return the share (…, H) of each label that counts as half of either class; see `shrink_to_half`.

    A stratum whose first labels are equal gets fewer further ones, so that its rate is biased away from one
    half. Pseudo-labels, half of them of each class, compensate for this bias.
    """
    total = np.sum(parts, axis=-1, keepdims=True)
    share = parts / np.where(total > 0, total, 1.0)
    followed = sum(counts / (counts + weight) for weight in PSEUDO_LABELS) / len(PSEUDO_LABELS)
    each = _ELASTICITY * (1.0 + share) * left * followed
    rarer = counts * np.minimum(rates, 1.0 - rates)
    each = each * (rarer + 0.5) / (rarer + 1.0) / np.maximum(factor, 1.0)[..., None]
    # Strata without labels have no pseudo-labels either: the divisor is then unused.
    return np.asarray(2.0 * each / np.maximum(counts + 2.0 * each, 1.0))


# Maximum number of evaluations of the tail probability. The search usually ends after a few.
_STEPS = 80

# Tolerance of the search on the scale of arsinh: six digits of a limit. The limits of one stratum are those
# of Clopper & Pearson, and must agree with other implementations to more digits.
_TOLERANCE = 1e-6
_TOLERANCE_OF_ONE_STRATUM = 1e-10

# Relative width of a bracket at which its ends differ by rounding only.
_EQUAL = 1e-11

# A mean this near 0 is the limit: an estimate within half a step of 0 is reached at any Lagrange multiplier.
_NO_MEAN = 1e-10

# Share of the target quantile at which arsinh changes from linear to logarithmic.
_UNIT = 0.1

# Share of a label added at each bound for the first step, so that equal labels have a variance too.
_PART = 0.1

# The longest step of the search, a factor of about e² in the Lagrange multiplier ("price").
_STRIDE = 2.0

# Range of the first slope, which is computed from the derivative of the variance.
_SLOPES = (-2.0, -0.3)

# Number of rows up to which the time of a step does not depend on it, so that both limits share the steps.
_FEW_ROWS = 100

# Replicates per batch: arrays of this size fit into the cache of a processor.
_ROWS_AT_ONCE = 2048
# Replicates × strata per batch: arrays of 8 MB fit into the cache too.
_CELLS_AT_ONCE = 1_000_000

# Number of first steps with the saddlepoint approximation if there are many rows: it is faster than the beta
# function, and its error is about .001. For few rows it is no faster, and would only add steps.
_GUESSES = 3

# Minimum of a divisor that depends on the skewness, which few labels estimate poorly.
_MIN_DIVISOR = 0.25

# Maximum share of unsettled replicates for which these are copied, and the others dropped.
_LEFT_TO_COPY = 0.75

# A variance of the sum below this is 0: every open stratum has rate 0 or 1.
_NO_SPREAD = 1e-290

# A slope nearer 0 than this is a rounding error, and the previous slope is kept.
_FLAT = -1e-3

# With more units than this, draws without replacement are practically independent.
_MAX_UNITS = 1e9
# Share of a unit by which limits are moved outwards before they are rounded inwards to whole units: the
# three moments of the tail do not show that units are whole. The minimum coverage of two strata of up to 12
# units is .890 without it and .942 with a third. At 1,000 labels, a half makes intervals of the default plan
# 2.4% wider, a third 1.4%.
_OUTWARDS = 1.0 / 3.0
# The same for an outcome on a scale: with a third, coverage for {0, ½, 1} is .935 for five of eleven units.
_OUTWARDS_ON_SCALE = 0.5
# Maximum number of unlabelled units for which the likelihood of every share is computed; with more, no
# likelihood is near the error probability.
_FEW_OPEN_UNITS = 64

# A limit this near to a whole number of units, as a share of a unit, equals that number.
_ROUNDING = 1e-6


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
    least, most : float (…,)
        The mean of the units if all unlabelled ones are 0, or 1.
    units : float
        N if the mean is that of N units, otherwise infinite.
    is_binary : bool
        Whether each outcome is 0 or 1.
    shrunk : float (…, H), optional
        Other rates, for which limits are computed too: each limit is then the outer one.
    smooth : bool
        Whether the step of the sum falls with every label, as forecasts require.

    Examples
    --------
    >>> rates = StratumRates(value=np.array(0.9), rates=np.array([0.9]), counts=np.array([20.0]),
    ...                      trials=np.array([20.0]), shares=np.array([1.0]))
    >>> low, high = stratified_clopper_pearson(rates, 0.025, 0.025)
    >>> round(float(low), 4), round(float(high), 4)
    (0.683, 0.9877)
    """

    value: FloatArray
    rates: FloatArray
    counts: FloatArray
    trials: FloatArray
    shares: FloatArray
    factor: FloatArray = field(default_factory=lambda: np.ones(()))
    least: FloatArray = field(default_factory=lambda: np.zeros(()))
    most: FloatArray = field(default_factory=lambda: np.ones(()))
    units: float = np.inf
    is_binary: bool = False
    shrunk: FloatArray | None = None
    smooth: bool = False

    def kept_possible(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return limits (…,) moved outwards by a share of a unit and rounded to possible means."""
        if not np.isfinite(self.units):
            return low, high
        if self.is_binary:
            outwards = _OUTWARDS
        else:
            outwards = _OUTWARDS_ON_SCALE
        low = low * self.units - outwards
        high = high * self.units + outwards
        least = self.least * self.units
        most = self.most * self.units
        if self.is_binary:
            low = np.ceil(low - _ROUNDING)
            high = np.floor(high + _ROUNDING)
            least = np.round(least)
            most = np.round(most)
        return np.maximum(low, least) / self.units, np.minimum(high, most) / self.units


def stratified_clopper_pearson(
    strata: StratumRates, below: float, above: float
) -> tuple[FloatArray, FloatArray]:
    """Return the limits (low, high), each (…,), at error probabilities `below` and `above`; 0 is no limit.

    Examples
    --------
    >>> rates = StratumRates(value=np.array(1.0), rates=np.ones(2), counts=np.array([30.0, 30.0]),
    ...                      trials=np.array([30.0, 30.0]), shares=np.array([0.9, 0.1]))
    >>> low, high = stratified_clopper_pearson(rates, 0.025, 0.025)
    >>> round(float(low), 3), float(high)
    (0.896, 1.0)
    """
    if strata.shrunk is not None:
        moved = strata.value + np.sum(strata.shares * (strata.shrunk - strata.rates), axis=-1)
        values = np.stack(np.broadcast_arrays(strata.value, np.clip(moved, 0.0, 1.0)))
        rates = np.stack(np.broadcast_arrays(strata.rates, strata.shrunk))
        both = replace(strata, value=values, rates=rates, shrunk=None)
        low, high = stratified_clopper_pearson(both, below, above)
        return low.min(axis=0), high.max(axis=0)
    if _is_one_count(strata):
        size = round(strata.units)
        counts = np.round(strata.counts[..., 0]).astype(np.int64)
        ones = np.round(strata.rates[..., 0] * counts).astype(np.int64)
        if below > 0:
            low = smallest_count(ones, counts, size, below) / size
        else:
            low = np.zeros(ones.shape)
        return low, largest_count(ones, counts, size, above) / size if above > 0 else np.ones(ones.shape)
    low, high = strata.kept_possible(*_inverted(strata, below, above))
    if _are_few_counts(strata):
        least, most = _likely_shares(strata, below, above)
        low = np.minimum(low, least)
        high = np.maximum(high, most)
    return low if below > 0 else np.zeros_like(low), high if above > 0 else np.ones_like(high)


def _is_one_count(strata: StratumRates) -> bool:
    """Return whether the labels are one hypergeometric count: one stratum of 0 and 1, and λ = 0."""
    if strata.rates.shape[-1] > 1 or not strata.is_binary or strata.units > _MAX_UNITS:
        return False
    open_share = 1.0 - strata.counts / strata.units
    return bool(
        np.all(strata.factor == 1.0) and np.allclose(strata.counts / strata.trials, open_share, atol=1e-9)
    )


def _are_few_counts(strata: StratumRates) -> bool:
    """Return whether the labels are hypergeometric counts (0 and 1, λ = 0) and few units are unlabelled."""
    if not strata.is_binary or strata.units > _MAX_UNITS or np.any(strata.factor != 1.0):
        return False
    sizes = strata.shares * strata.units
    ones = strata.rates * strata.counts
    few = np.all(np.sum(np.round(sizes) - strata.counts, axis=-1) <= _FEW_OPEN_UNITS)
    return bool(few and all(np.allclose(part, np.round(part), atol=_ROUNDING) for part in (sizes, ones)))


def _likely_shares(strata: StratumRates, below: float, above: float) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest share of ones (…,) for which the labels have more than the error.

    A tail has at least the probability of the observed labels, so that no valid test excludes a share for
    which this probability exceeds the error. The most likely counts with a sum are computed by stratum.
    """
    arrays = np.broadcast_arrays(strata.shares * strata.units, strata.counts, strata.rates * strata.counts)
    sizes, counts, ones = (np.round(part).astype(np.int64) for part in arrays)
    shape = ones.shape[:-1]
    open_units = sizes - counts
    most = int(open_units.sum(axis=-1).max(initial=0))
    likelihood = np.where(np.arange(most + 1) == 0, 0.0, np.full((*shape, most + 1), -np.inf))
    for h in range(ones.shape[-1]):
        size, n, k = (part[..., h, None] for part in (sizes, counts, ones))
        hidden = np.arange(int(open_units[..., h].max(initial=0)) + 1)
        total = k + np.minimum(hidden, size - n)
        log_likelihood = _logs(total, k) + _logs(size - total, n - k) - _logs(size, n)
        log_likelihood = np.where(hidden <= size - n, log_likelihood, -np.inf)
        longer = np.full_like(likelihood, -np.inf)
        for j in hidden.tolist():
            np.maximum(
                longer[..., j:],
                likelihood[..., : most + 1 - j] + log_likelihood[..., j : j + 1],
                out=longer[..., j:],
            )
        likelihood = longer
    shares = (ones.sum(axis=-1)[..., None] + np.arange(most + 1)) / strata.units
    least, largest = (
        np.where(likelihood > np.log(error), shares, edge) if error > 0 else np.full_like(shares, edge)
        for error, edge in ((below, np.inf), (above, -np.inf))
    )
    return least.min(axis=-1), largest.max(axis=-1)


def borrowed_labels(counts: FloatArray, trials: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the labels (…, H) that each stratum borrows: (1 − w_h)/n_h, w_h its share of the variance."""
    random = np.isfinite(trials) & (shares > 0)
    spread = np.where(random, shares, 0.0) ** 2 / np.where(random, trials, 1.0)
    total = spread.sum(axis=-1, keepdims=True)
    return np.asarray((1.0 - spread / np.where(total > 0, total, 1.0)) / np.where(random, counts, 1.0))


def with_borrowed(
    rates: FloatArray, counts: FloatArray, trials: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return the rates (…, H) of an outcome on a scale, including the borrowed labels of each stratum.

    Examples
    --------
    >>> one = np.ones(2)
    >>> with_borrowed(np.array([0.0, 1.0]), one, one, one / 2)
    array([0.16666667, 0.83333333])
    """
    overall = (shares * rates).sum(axis=-1, keepdims=True) / shares.sum(axis=-1, keepdims=True)
    borrowed = borrowed_labels(counts, trials, shares)
    finite = np.isfinite(trials)
    finite_trials = np.where(finite, trials, 1.0)
    return np.asarray(
        np.where(finite, (finite_trials * rates + borrowed * overall) / (finite_trials + borrowed), rates)
    )


def _spread(part: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return an array of this shape, without a call of `broadcast_to` if possible: it is slow in loops."""
    if part.shape == shape:
        return part
    return np.broadcast_to(part, shape)


def _inverted(strata: StratumRates, below: float, above: float) -> tuple[FloatArray, FloatArray]:
    shape = np.broadcast_shapes(np.shape(strata.value), np.shape(strata.rates)[:-1], np.shape(strata.factor))
    value, factor = (_spread(part, shape).ravel() for part in (strata.value, strata.factor))
    n_strata = strata.rates.shape[-1]
    rates = _spread(strata.rates, (*shape, n_strata)).reshape(-1, n_strata)
    layouts = [
        part[None] if part.ndim == 1 else _spread(part, (*shape, n_strata)).reshape(-1, n_strata)
        for part in (strata.counts, strata.trials, strata.shares)
    ]
    alike = all(len(part) == 1 for part in layouts)
    batch = min(_ROWS_AT_ONCE, 1 + _CELLS_AT_ONCE // rates.shape[1] ** (1 if alike else 2))
    low = np.zeros(len(value))
    high = np.ones(len(value))
    for start in range(0, len(value), batch):
        rows = slice(start, start + batch)
        rates_of_rows = np.ascontiguousarray(rates[rows].T)
        count = rates_of_rows.shape[1]
        # Few rows: both limits are computed together, because the time of a step is constant.
        both = below == above and count <= _FEW_ROWS
        ends = 2 if both else 1
        sums = _Sums.of(
            np.concatenate([factor[rows]] * ends),
            strata.is_binary,
            strata.smooth,
            *(part if len(part) == 1 else np.concatenate([part[rows]] * ends) for part in layouts),
        )
        if both:
            values = np.concatenate([value[rows], 1.0 - value[rows]])
            limits = _lower_limit(
                values, np.concatenate([rates_of_rows, 1.0 - rates_of_rows], axis=1), sums, below
            )
            low[rows], high[rows] = limits[:count], 1.0 - limits[count:]
            continue
        if below > 0:
            low[rows] = _lower_limit(value[rows], rates_of_rows, sums, below)
        if above > 0:
            high[rows] = 1.0 - _lower_limit(1.0 - value[rows], 1.0 - rates_of_rows, sums, above)
    return low.reshape(shape), high.reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Σ (W_h/n_h) K_h over the strata with unlabelled units; all arrays are (H, R) or (H, 1).

    `weights` are W_h and `total` their sum; `trials` allow for the lost degree of freedom; `borrowed` are
    labels and `steps` those of the count. `second` is the factor of p(1 − p) in the variance, and `third`
    that of p(1 − p)(1 − 2p) in the third moment, with (1 − 2f)/(1 − f) = 2 − t/n without replacement.
    `largest` and `blur` are those of `blurring`. `factor` (R,) multiplies the trials and, for an outcome on a
    scale, the borrowed labels.
    """

    shares: FloatArray
    weights: FloatArray
    total: FloatArray
    trials: FloatArray
    borrowed: FloatArray
    steps: FloatArray
    second: FloatArray
    third: FloatArray
    blur: FloatArray
    largest: slice | IntArray
    factor: FloatArray
    is_binary: bool
    smooth: bool

    @classmethod
    def of(
        cls,
        factor: FloatArray,
        is_binary: bool,
        smooth: bool,
        counts: FloatArray,
        trials: FloatArray,
        shares: FloatArray,
    ) -> _Sums:
        if not counts.shape == trials.shape == shares.shape:
            counts, trials, shares = np.broadcast_arrays(counts, trials, shares)
        borrowed = borrowed_labels(counts, trials, shares).T
        counts = counts.T
        trials = trials.T
        shares = shares.T
        random = np.isfinite(trials) & (shares > 0)
        weights = np.where(random, shares, 0.0)
        n = np.where(random, counts, 1.0)
        t = np.where(random, trials, 1.0)
        # For an outcome on a scale, the factor is of sample variances, with n − 1 degrees of freedom already.
        if is_binary:
            left = t * (1.0 - borrowed * (1.0 - 1.0 / n) ** 2)
        else:
            left = t
        largest, blur = blurring(weights / n, n**2 / left * random)
        return cls(
            shares=shares,
            weights=weights,
            total=weights.sum(axis=0),
            trials=left,
            borrowed=borrowed,
            is_binary=is_binary,
            smooth=smooth,
            steps=weights / n,
            second=weights**2 / left,
            third=weights**3 / left**2 * (2.0 - t / n),
            blur=blur,
            largest=largest,
            factor=factor,
        )

    def at(self, rows: IntArray) -> _Sums:
        """Return the sums of some replicates."""
        if self.weights.shape[1] == 1:
            return replace(self, factor=self.factor[rows])
        scalars: Keywords = {
            "largest": self.largest,
            "is_binary": self.is_binary,
            "smooth": self.smooth,
        }
        names = [name for name in field_names(self) if name not in scalars]
        arrays = {name: values[..., rows] for name, values in field_values(self, names).items()}
        return _Sums(**arrays, **scalars)

    def moments(self, rates: FloatArray) -> tuple[FloatArray, ...]:
        """Return the sum's mean, the variance without the factor, variance, third moment and half step (R,).

        The rates (H, R) are overwritten.
        """
        apart = 1.0 - rates
        apart *= rates
        mean = _weighted(self.weights, rates)
        spread = np.maximum(_weighted(self.second, apart), _NO_SPREAD)
        half = self.half_step(apart, spread)
        rates *= -2.0
        rates += 1.0
        third = _weighted(self.third, np.multiply(rates, apart, out=rates)) / self.factor**2
        return mean, spread, spread / self.factor, third, half

    def half_step(self, apart: FloatArray, variance: FloatArray) -> FloatArray:
        """Return half the step (R,) of the sum: the largest step of a stratum, blurred by the other strata.

        A stratum without variance has no step. `apart` (H, R) is p(1 − p).
        """
        if self.smooth:
            # The mean over many allocations, measured for 1 to 10 strata (benchmarks/plan_order.py).
            average = self.steps.max(axis=0) / len(self.steps)
            return np.asarray(average / (2.0 * np.sqrt(self.factor)))
        largest = self.largest
        share = self.second[largest] * apart[largest]
        share *= len(apart) / variance
        if self.blur.ndim == 2:
            left = self.blur @ apart
        else:
            left = np.einsum("hkr,kr->hr", self.blur, apart)
        np.exp(np.negative(left, out=left), out=left)
        left *= self.steps[largest]
        left *= np.minimum(share, 1.0, out=share)
        return np.asarray(left.max(axis=0) / (2.0 * np.sqrt(self.factor)))


def _weighted(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Return the sums (R,) over strata; weights (H, 1) or (H, R)."""
    if weights.shape[1] == 1:
        return np.asarray(weights[:, 0] @ values)
    return np.asarray(np.einsum("hr,hr->r", weights, values))


def _lower_limit(value: FloatArray, rates: FloatArray, sums: _Sums, error: float) -> FloatArray:
    """Return the mean (R,) for which an estimate of at least `value` has probability `error`."""
    known_sum = _weighted(sums.shares - sums.weights, rates)
    limit = np.zeros(len(value))
    rest = value - known_sum
    open_ = (rest > 0) & (sums.total > 0)
    # All rows, without a copy of the arrays, or the numbers of some.
    sought: slice | IntArray = slice(None)
    if not open_.all():
        sought = np.flatnonzero(open_)
        rates = rates[:, sought]
        sums = sums.at(sought)
        rest = rest[sought]
        if len(sought) == 0:
            return known_sum
    overall = np.minimum(rest / sums.total, 1.0)
    if (sums.factor == 1.0).all():
        trials = sums.trials
    else:
        trials = sums.trials * sums.factor
    if sums.is_binary:
        borrowed = sums.borrowed
    else:
        borrowed = sums.borrowed * sums.factor
    labels = trials + borrowed
    ones = trials * rates + borrowed * overall
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        limit[sought] = np.minimum(_solved(rest, ones, labels, sums, -float(ndtri(error))), rest)
    return np.asarray(known_sum + limit)


def _solved(
    estimate: FloatArray, ones: FloatArray, labels: FloatArray, sums: _Sums, target_quantile: float
) -> FloatArray:
    """Return the sum's mean (R,) at which the tail has normal quantile −`target_quantile`.

    The price is the Lagrange multiplier of the constraint. Price and quantile are on the scale of arsinh,
    which is nearly logarithmic but defined at 0: their relation is then nearly linear with slope −1. Steps
    are those of the secant method, the first from the derivative of the variance. A step out of the bracket
    is replaced by bisection. The error of the next step is about the product of the last two errors.
    """
    scale = _UNIT * max(abs(target_quantile), _UNIT)
    n = len(estimate)
    goal = np.arcsinh(target_quantile / scale)
    unit, x = _first_price(ones, labels, sums, target_quantile, scale)
    last_x = x
    last_y = x
    last_mean = x
    reach = x
    low = np.full(n, -np.inf)
    high = np.full(n, np.inf)
    rows = np.arange(n)
    result = np.zeros(n)
    guesses = 0 if n <= 2 * _FEW_ROWS else _GUESSES
    tolerance = _TOLERANCE if len(ones) > 1 else _TOLERANCE_OF_ONE_STRATUM
    for step in range(_STEPS):
        price = unit * np.sinh(x)
        near = step >= guesses
        rates = _constrained_rates(ones, labels, sums.weights, price)
        quantile, mean, bend = _tail(estimate, rates, price, sums, near)
        y = np.arcsinh(quantile / scale) + goal
        if step == 0:
            slope = np.minimum(np.maximum(bend / 2.0 - 1.0, _SLOPES[0]), _SLOPES[1])
            change = np.zeros(n)
        # The approximation and the exact formula have no common secant.
        elif step != guesses:
            run = x - last_x
            run[run == 0.0] = 1.0
            secant_slope = (y - last_y) / run
            slope = np.where(secant_slope < _FLAT, secant_slope, slope)
            change = (mean - last_mean) / run
        ahead = x + np.minimum(np.maximum(-y / slope, -_STRIDE), _STRIDE)
        if near:
            above = y > 0
            low = np.where(above, x, low)
            high = np.where(above, high, x)
            beyond = (ahead <= low) | (ahead >= high)
            if beyond.any():
                middle = (low + high) / 2.0
                ahead = np.where(beyond & np.isfinite(middle), middle, ahead)
            reach = np.abs(last_y) + (reach if step == guesses else 0.0)
            settled = (np.abs(y * reach) < tolerance) | (high - low < _EQUAL) | (mean < _NO_MEAN)
            left = np.flatnonzero(~settled)
            result[rows] = mean + (ahead - x) * change
            if len(left) == 0:
                break
        else:
            reach = np.abs(last_y)
            left = rows
        last_x = x
        last_y = y
        last_mean = mean
        x = ahead
        if len(left) <= _LEFT_TO_COPY * len(rows):
            state = np.stack([estimate, unit, x, slope, change, reach, last_x, last_y, last_mean, low, high])
            estimate, unit, x, slope, change, reach, last_x, last_y, last_mean, low, high = state[:, left]
            rows = rows[left]
            sums = sums.at(left)
            ones = ones[:, left]
            if labels.shape[1] != 1:
                labels = labels[:, left]
    return result


def _first_price(
    ones: FloatArray, labels: FloatArray, sums: _Sums, target_quantile: float, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Return the unit of Lagrange multipliers (R,), and the first one on the scale of arsinh (R,).

    The first price is μ = u/√V, with the variance V and skewness γ at the labels' rates: estimate − mean is
    μ V(μ), and V(μ) = V/(1 + γ u) = V/r² as of a Poisson count. Cornish & Fisher's (1938) quantile, half a
    step beyond, then makes u = w r + c r² with c = γ (w² − 1)/6 + half/√V, which is quadratic in r.
    """
    variance, third, half = sums.moments((ones + _PART) / (labels + 2.0 * _PART))[-3:]
    deviation = np.sqrt(variance)
    skewness = third / (variance * deviation)
    # Cornish & Fisher's correction of the quantile, and half a step of the discrete sum.
    curvature = skewness * (target_quantile**2 - 1.0) / 6.0 + half / deviation
    lean = skewness * target_quantile
    divisor = np.maximum(1.0 - skewness * curvature, _MIN_DIVISOR)
    root = (lean + np.sqrt(lean**2 + 4.0 * divisor)) / (2.0 * divisor)
    x = np.arcsinh((target_quantile * root + curvature * root**2) / scale)
    return scale / deviation, x


def _constrained_rates(
    ones: FloatArray, labels: FloatArray, weights: FloatArray, price: FloatArray
) -> FloatArray:
    """Return the most likely rates (H, R) for the Lagrange multiplier μ = `price` (R,) of Σ W_h p_h.

    They solve ones/p − (labels − ones)/(1 − p) = μ W_h. For μ < 0, zeros are counted instead of ones.
    """
    back = price < 0
    turned = back.any()
    if turned:
        ones = np.where(back, labels - ones, ones)
    m = weights * np.abs(price)
    b = labels + m
    # In place, because allocating arrays of this size at every line is slow.
    m *= ones
    m *= -4.0
    m += b * b
    root = np.sqrt(np.maximum(m, 0.0, out=m), out=m)
    root += b
    rates = np.divide(ones, root, out=root)
    rates *= 2.0
    return np.asarray(np.where(back, 1.0 - rates, rates) if turned else rates)


def _tail(
    estimate: FloatArray, rates: FloatArray, price: FloatArray, sums: _Sums, near: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the normal quantile (R,) of P(sum ≥ estimate), the sum's mean, and −d log V / d log μ."""
    mean, spread, variance, third, half = sums.moments(rates)
    rest = np.maximum(sums.total - mean, 0.0)
    quantile = count_quantile(estimate, mean, rest, variance, third, half, near=near)
    return np.where(spread > _NO_SPREAD, quantile, MAX_QUANTILE), mean, price * third / variance
