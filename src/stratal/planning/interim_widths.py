"""The expected width of a sample's interval if new labels are added to the existing ones.

The width is averaged over several simulated sets of new labels, whose means are those of the strata. Binary
labels are stored as two counts per stratum, which may have leading axes for replicates. If the outcome has no
bounds, new labels are resampled from the residuals of the existing ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrik, betaincinv

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, means_of_sums, unit_scale
from stratal.designs import StratifiedWeighting
from stratal.designs.stratified import stratified_factors
from stratal.estimation.estimand import LabelledOutcomes
from stratal.estimation.outcome_means import mean_without_proxy
from stratal.intervals.guards import UnitMoments, Variances, stratum_rates
from stratal.intervals.stratified import stratified_clopper_pearson
from stratal.planning.expected_widths import (
    MAX_SIMULATED_LABELS,
    QUANTILE_SETS,
    level_orders,
    normal_half_width,
    unbounded_half_width,
)
from stratal.strata import Strata
from stratal.strata.strata import expected_variance
from stratal.whole_numbers import all_rounded_up

# From this share of the largest variance, mean · (1 − mean), a graded outcome counts as binary.
_BINARY_SHARE = 0.98

# Smallest variance of a simulated outcome: the quantiles of a beta distribution fail near 0.
_MIN_VARIANCE = 1e-12


@dataclass(frozen=True, kw_only=True)
class ExpectedMeanWidths:
    """Half the expected width of the interval of a stratified mean, as a function of the labels.

    Parameters
    ----------
    sizes : int (H,)
    means, variances : float (H,)
        Mean and S_h² of new outcomes in each stratum.
    outcomes : LabelledOutcomes
        Existing labels (m,).
    stratum : int (m,)
        Stratum of each.
    confidence_level : float
    """

    sizes: IntArray
    means: FloatArray
    variances: FloatArray
    outcomes: LabelledOutcomes
    stratum: IntArray
    confidence_level: float

    @classmethod
    def of(
        cls,
        strata: Strata,
        outcomes: LabelledOutcomes,
        stratum: IntArray,
        deviations: FloatArray,
        confidence_level: float,
    ) -> ExpectedMeanWidths:
        """Return the widths if new labels have the smoothed deviations (H,) of the existing ones."""
        counts = np.bincount(stratum, minlength=strata.n_strata)
        sums = np.bincount(stratum, outcomes.z, minlength=strata.n_strata)
        if outcomes.binary and strata.n_strata > 1:
            means = implied_means(counts, sums, deviations)
        else:
            means = means_of_sums(sums, counts, empty=outcomes.z.mean())
            means = _possible_means(means, deviations, outcomes.bounds)
        return cls(
            sizes=strata.sizes,
            means=means,
            variances=deviations**2,
            outcomes=outcomes,
            stratum=stratum,
            confidence_level=confidence_level,
        )

    def half_widths(self, labels: IntArray, *, label_based: bool | BoolArray = True) -> FloatArray:
        """Return half the expected widths (…,) with a total number of labels (…, H).

        `label_based`, one or (…,), states whether these numbers depend on labels.
        """
        n_strata = len(self.sizes)
        z = self.outcomes.z
        if self.outcomes.binary and n_strata > 1:
            counts = np.bincount(self.stratum, minlength=n_strata)
            ones = np.rint(np.bincount(self.stratum, z, minlength=n_strata)).astype(np.int64)
            return expected_half_width_of_counts(
                self.sizes,
                labels,
                self.means,
                self.confidence_level,
                observed=(counts, ones),
                label_based=label_based,
            )
        is_label_based = np.broadcast_to(label_based, labels.shape[:-1]).ravel().tolist()
        widths = [
            self._simulated_half_width(n_h, label_based=depends_on_labels)
            for n_h, depends_on_labels in zip(labels.reshape(-1, n_strata), is_label_based, strict=True)
        ]
        return np.reshape(widths, labels.shape[:-1])

    def _simulated_half_width(self, n_h: IntArray, *, label_based: bool) -> float:
        """Return half the mean width of the default interval with n_h (H,) labels, of which some exist.

        `label_based` states whether n_h depends on the existing labels.
        """
        sizes = self.sizes
        z = self.outcomes.z
        low, high = self.outcomes.bounds
        if not math.isfinite(high - low):
            observed = z, self.stratum
            return unbounded_half_width(sizes, n_h, self.variances, self.confidence_level, observed)
        if n_h.sum() > MAX_SIMULATED_LABELS or np.all(n_h >= sizes):
            error = math.sqrt(expected_variance(sizes, n_h, self.variances))
            return normal_half_width(error, self.confidence_level)
        n_new = n_h - np.bincount(self.stratum, minlength=len(sizes))
        unit_means = unit_scale(self.means, (low, high))
        unit_variances = self.variances / (high - low) ** 2
        stratum = np.concatenate([self.stratum, np.repeat(np.arange(len(sizes)), n_new)])
        is_adaptive = label_based and len(sizes) > 1
        weighting = StratifiedWeighting(stratum=stratum, sizes=sizes, has_adaptive_allocation=is_adaptive)
        is_binary = bool(np.all((z == low) | (z == high)))
        widths = []
        for unit_outcomes in label_sets(n_new, unit_means, unit_variances, is_binary=is_binary):
            all_outcomes = np.concatenate([z, low + (high - low) * unit_outcomes])
            estimate = mean_without_proxy(
                all_outcomes, weighting, estimator="horvitz-thompson", bounds=(low, high)
            )
            widths.append(estimate.confidence_interval(self.confidence_level).width)
        return float(np.mean(widths)) / 2.0


def _possible_means(means: FloatArray, deviations: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return the nearest means (H,) for which outcomes within the bounds can have these deviations (H,)."""
    low, high = bounds
    if not math.isfinite(high - low):
        return means
    # The largest variance of an outcome with mean m on the 0-1 scale is m (1 − m).
    root = np.sqrt(np.maximum(1.0 - 4.0 * (deviations / (high - low)) ** 2, 0.0))
    unit_means = np.clip((means - low) / (high - low), (1.0 - root) / 2.0, (1.0 + root) / 2.0)
    return low + (high - low) * unit_means


def label_sets(
    n_h: IntArray, means: FloatArray, variances: FloatArray, *, is_binary: bool = True
) -> list[FloatArray]:
    """Return `QUANTILE_SETS` sets of simulated outcomes (n,) on the 0-1 scale, sorted by stratum.

    The number of ones in a stratum is another quantile of its binomial distribution in each set. An outcome
    with a smaller variance than a binary one has the quantiles of a beta distribution instead.

    Parameters
    ----------
    n_h : int (H,)
    means, variances : float (H,)
    is_binary : bool
        Whether outcomes are 0 or 1 in strata whose variance allows it.

    Examples
    --------
    >>> sets = label_sets(np.array([10]), np.array([0.5]), np.array([0.25]))
    >>> sorted(int(labels.sum()) for labels in sets)
    [3, 4, 5, 6, 7]
    """
    by_stratum = []  # (QUANTILE_SETS, n_h) each
    ones_by_stratum = count_quantiles(n_h, means).T[..., None]
    orders = level_orders(len(n_h))
    strata = zip(n_h.tolist(), means.tolist(), variances.tolist(), orders, ones_by_stratum, strict=True)
    for n, mean, variance, order, ones in strata:
        binary_variance = mean * (1.0 - mean)
        if n == 0 or binary_variance <= 0:
            by_stratum.append(np.full((QUANTILE_SETS, n), mean))
        elif is_binary and variance > _BINARY_SHARE * binary_variance:
            by_stratum.append((np.arange(n) < ones).astype(np.float64))
        else:
            # The parameters of the beta distribution with this mean and variance have the sum α + β.
            beta_variance = max(min(variance, _BINARY_SHARE * binary_variance), _MIN_VARIANCE)
            parameter_sum = binary_variance / beta_variance - 1.0
            levels = (np.arange(n) + order[:, None]) / n
            by_stratum.append(betaincinv(mean * parameter_sum, (1.0 - mean) * parameter_sum, levels))
    return [np.concatenate([outcomes[k] for outcomes in by_stratum]) for k in range(QUANTILE_SETS)]


def implied_means(counts: AnyArray, ones: AnyArray, deviations: FloatArray) -> FloatArray:
    """Return the rates (…, H) r with √(r (1 − r)) equal to the deviations, on the labels' side of one half.

    Examples
    --------
    >>> implied_means(np.array([5, 5]), np.array([5, 4]), np.array([0.3, 0.4])).round(2)
    array([0.9, 0.8])
    """
    overall = ones.sum(axis=-1, keepdims=True) / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    rates = means_of_sums(ones, counts, empty=overall)
    root = np.sqrt(np.maximum(1.0 - 4.0 * deviations**2, 0.0))
    return np.asarray(np.where(rates > 0.5, 1.0 + root, 1.0 - root) / 2.0)


def label_moments(
    sizes: IntArray,
    counts: FloatArray,
    means: FloatArray,
    squares: FloatArray,
    *,
    factors: FloatArray,
    label_based: bool | BoolArray,
    binary: bool,
) -> UnitMoments:
    """Return the moments of n_h labels, `counts` (…, H), from their means and mean squares (…, H).

    `factors` are those of `stratified_factors`. Strata without a label are left out of the estimate.
    """
    labelled_sizes = np.where(counts > 0, sizes, 0)
    shares = labelled_sizes / labelled_sizes.sum(axis=-1, keepdims=True)
    return UnitMoments(
        means=means,
        squares=squares,
        counts=counts,
        shares=shares,
        factors=factors,
        draws=1.0 / np.sum(shares**2 / np.maximum(counts, 1.0), axis=-1),
        label_based=label_based,
        units=float(np.sum(sizes)) if np.all(counts > 0) else np.inf,
        binary=binary,
    )


def interval_of_counts(
    sizes: IntArray,
    counts: AnyArray,
    ones: AnyArray,
    confidence_level: float,
    *,
    label_based: bool | BoolArray = False,
) -> tuple[FloatArray, FloatArray]:
    """Return the default interval (low, high), each (…,), of a mean of 0 and 1 in one stratum or more.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    counts, ones : int (…, H)
        Number of labels, and number of ones; `ones` may have more leading axes.
    confidence_level : float
    label_based : bool, or bool (…,)
        Whether the counts depend on labels of earlier rounds.
    """
    shape = np.shape(ones)
    n_h = np.asarray(counts, dtype=np.float64)
    sums = np.asarray(ones, dtype=np.float64)
    # The interval functions accept one leading axis.
    if n_h.ndim > 1:  # the counts differ between replicates
        n_h = np.broadcast_to(n_h, shape).reshape(-1, shape[-1])
        sums = np.broadcast_to(sums, shape).reshape(-1, shape[-1])
        label_based = np.broadcast_to(label_based, shape[:-1]).ravel()
    rates = np.asarray(sums / np.maximum(n_h, 1.0))
    factors = stratified_factors(n_h, sizes)
    labels = label_moments(sizes, n_h, rates, rates, factors=factors, label_based=label_based, binary=True)
    value = np.sum(labels.shares * rates, axis=-1)
    rates_of_strata = stratum_rates(value, labels, Variances())
    tail = (1.0 - confidence_level) / 2.0
    low, high = stratified_clopper_pearson(rates_of_strata, tail, tail)
    low = np.minimum(low, value).reshape(shape[:-1])
    high = np.maximum(high, value).reshape(shape[:-1])
    return low, high


def expected_half_width_of_counts(
    sizes: IntArray,
    counts: IntArray,
    means: FloatArray,
    confidence_level: float,
    *,
    observed: tuple[IntArray, IntArray] | None = None,
    label_based: bool | BoolArray = True,
) -> FloatArray:
    """Return half the mean width (…,) of the interval of binary labels, some of which may exist already.

    Parameters
    ----------
    sizes : int (H,)
    counts : int (…, H)
        Total number of labels.
    means : float (…, H)
        Rates of the new labels.
    confidence_level : float
    observed : (int (…, H), int (…, H)), optional
        Number of existing labels, and number of ones among them.
    label_based : bool, or bool (…,)
        Whether the number of new labels depends on the existing ones.
    """
    observed_counts, observed_ones = observed or (np.zeros_like(counts), np.zeros_like(counts))
    ones = observed_ones + count_quantiles(counts - observed_counts, means)
    depends_on_labels = observed is not None and label_based
    low, high = interval_of_counts(sizes, counts, ones, confidence_level, label_based=depends_on_labels)
    return np.asarray((high - low).mean(axis=0) / 2.0)


def count_quantiles(counts: IntArray, means: FloatArray) -> FloatArray:
    """Return K quantiles of the number of ones among `counts` (…, H) labels: (K, …, H).

    `means` (…, H) are the rates. The quantiles have another order in each stratum.
    """
    levels = level_orders(np.shape(means)[-1]).T.reshape(QUANTILE_SETS, *(1,) * (np.ndim(counts) - 1), -1)
    varies = (counts > 0) & (means > 0) & (means < 1)
    trials = np.where(varies, counts, 1).astype(np.float64)
    rates = np.where(varies, means, 0.5)
    with np.errstate(invalid="ignore"):
        counts_of_levels = bdtrik(levels, trials, rates)
    # `bdtrik` returns a real number, often just above a whole one because of rounding.
    ones = np.clip(all_rounded_up(counts_of_levels), 0, counts)
    return np.asarray(np.where(varies, ones, counts * (np.asarray(means) >= 1.0)))
