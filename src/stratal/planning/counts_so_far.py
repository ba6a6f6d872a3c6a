"""`CountsSoFar`: what counts of right answers say of the intervals that more labels would give.

For outcomes of 0 and 1 the labels of a stratum are two numbers. Replicate axes may lead, so that the rule
that ends a study is simulated by the lines that run it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtrik

from stratal.allocation.integers import Bounds, optimal_integers
from stratal.allocation.rates import smoothed_standard_deviations
from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.intervals.guard import UnitMoments, Variances, smoothed_moments, stratum_rates
from stratal.intervals.stratified import stratified_clopper_pearson
from stratal.weighting.weighting import stratified_factors

if TYPE_CHECKING:
    from stratal.strata import Strata

REPLICATES = 5
"""Sets of labels that a width is averaged over; evenly spread over what a stratum may show."""

_SEED = 20_261_121
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountsSoFar(Record):
    """Labels of 0 and 1 in several strata, so far.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    drawn, answered, ones : int (…, H)
        Units drawn, those of them that are labelled, and those labelled 1.
    deviations, means : float (…, H)
        S_h and the rate of each stratum, smoothed.
    looked : bool
        Whether labels decided how many units were drawn so far.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.2] * 500 + [0.9] * 500)
    >>> strata = stratal.stratify(population, n_strata=2)
    >>> seen = CountsSoFar.of(strata, np.array([50, 50]), np.array([50, 50]), np.array([10, 45]))
    >>> float(seen.half_width(0.95).round(3)), float(seen.expected_half_width(np.array(400), 0.95).round(3))
    (0.074, 0.027)
    """

    sizes: IntArray
    drawn: IntArray
    answered: IntArray
    ones: IntArray
    deviations: FloatArray
    means: FloatArray
    looked: bool = False

    @classmethod
    def of(
        cls, strata: Strata, drawn: IntArray, answered: IntArray, ones: IntArray, *, looked: bool = False
    ) -> CountsSoFar:
        """Return what the counts say, the strata's proxy recalibrated on them."""
        deviations = smoothed_standard_deviations(
            strata.sizes,
            answered,
            ones,
            proxy_means=strata.proxy_means,
            proxy_variances=strata.proxy_variances,
            conditional_variances=strata.conditional_variances,
            scaled=strata.scaled,
        )
        means = likely_means(answered, ones, deviations)
        return cls(
            sizes=strata.sizes,
            drawn=drawn,
            answered=answered,
            ones=ones,
            deviations=deviations,
            means=means,
            looked=looked,
        )

    def part(self, rows: IntArray | BoolArray) -> CountsSoFar:
        """Return some of the replicates, the first axis."""
        moved = ("drawn", "answered", "ones", "deviations", "means")
        return replace(self, **{name: getattr(self, name)[rows] for name in moved})

    def allocation(self, total: IntArray) -> IntArray:
        """Return n_h (…, H) with `total` (…,) units drawn in all: Neyman's, none of them taken back."""
        bounds = Bounds(sizes=self.sizes, lower=self.drawn, upper=self.sizes)
        return optimal_integers(self.sizes * self.deviations, bounds, np.asarray(total)[..., None])

    def labels_of(self, n_h: IntArray) -> IntArray:
        """Return the labels (…, H) that n_h drawn units bring if as many as so far are answered."""
        rate = self.answered.sum(axis=-1, keepdims=True) / self.drawn.sum(axis=-1, keepdims=True)
        return np.asarray(self.answered + np.round(rate * (n_h - self.drawn)).astype(np.int64))

    def half_width(self, confidence_level: float) -> FloatArray:
        """Return half the width (…,) of the interval of the labels so far."""
        return half_width_of_counts(
            self.sizes, self.answered, self.ones, confidence_level, looked=self.looked
        )

    def expected_half_width(self, total: IntArray, confidence_level: float) -> FloatArray:
        """Return half the expected width (…,) of the interval after a round to `total` (…,) units."""
        return expected_of_counts(
            self.sizes,
            self.labels_of(self.allocation(total)),
            self.means,
            confidence_level,
            seen=(self.answered, self.ones),
        )


def likely_means(counts: AnyArray, ones: AnyArray, deviations: FloatArray) -> FloatArray:
    """Return each stratum's rate (…, H): the one of the smoothed deviation, on its labels' side of one half.

    Examples
    --------
    >>> likely_means(np.array([5, 5]), np.array([5, 4]), np.array([0.3, 0.4])).round(2)
    array([0.9, 0.8])
    """
    every = ones.sum(axis=-1, keepdims=True) / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    own = np.where(counts > 0, ones / np.maximum(counts, 1), every)
    root = np.sqrt(np.maximum(1.0 - 4.0 * deviations**2, 0.0))
    return np.asarray(np.where(own > 0.5, 1.0 + root, 1.0 - root) / 2.0)


def interval_of_counts(
    sizes: IntArray, counts: AnyArray, ones: AnyArray, confidence_level: float, *, looked: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return the default interval (low, high), each (…,), of a mean of 0 and 1 in one stratum or more.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    counts, ones : int (…, H)
        Labels, and those of them that are 1; `ones` may have more leading axes.
    confidence_level : float
    looked : bool
        Whether labels of earlier rounds decided the counts.

    Examples
    --------
    >>> low, high = interval_of_counts(np.array([500, 500]), np.array([50, 50]), np.array([10, 45]), 0.95)
    >>> float(low.round(3)), float(high.round(3))
    (0.477, 0.624)
    """
    shape = np.shape(ones)
    n_h, right = (np.asarray(part, dtype=np.float64) for part in (counts, ones))
    if n_h.ndim > 1:  # every replicate has its own
        n_h, right = (np.broadcast_to(part, shape).reshape(-1, shape[-1]) for part in (n_h, right))
    labelled = np.where(n_h > 0, sizes, 0)
    shares = labelled / labelled.sum(axis=-1, keepdims=True)
    rates = np.asarray(right / np.maximum(n_h, 1.0))
    labels = UnitMoments(
        means=rates,
        squares=rates,
        counts=n_h,
        shares=shares,
        factors=stratified_factors(n_h, sizes),
        draws=1.0 / np.sum(shares**2 / np.maximum(n_h, 1.0), axis=-1),
        looked=looked,
        units=float(np.sum(sizes)) if np.all(n_h > 0) else np.inf,
        binary=True,
    )
    value = np.sum(shares * rates, axis=-1)
    found = stratum_rates(value, labels, smoothed_moments(labels), Variances.of_labels())
    share = (1.0 - confidence_level) / 2.0
    low, high = stratified_clopper_pearson(found, share, share)
    return (
        np.minimum(low, value).reshape(shape[:-1]),
        np.maximum(high, value).reshape(shape[:-1]),
    )


def half_width_of_counts(
    sizes: IntArray, counts: AnyArray, ones: AnyArray, confidence_level: float, *, looked: bool = False
) -> FloatArray:
    """Return half the width (…,) of that interval.

    Examples
    --------
    >>> half = half_width_of_counts(np.array([500, 500]), np.array([50, 50]), np.array([10, 45]), 0.95)
    >>> float(half.round(3))
    0.074
    """
    low, high = interval_of_counts(sizes, counts, ones, confidence_level, looked=looked)
    return np.asarray((high - low) / 2.0)


def expected_of_counts(
    sizes: IntArray,
    counts: IntArray,
    means: FloatArray,
    confidence_level: float,
    *,
    seen: tuple[IntArray, IntArray] | None = None,
) -> FloatArray:
    """Return half the mean width (…,) of the interval of labels of 0 and 1, `seen` ones among them.

    Parameters
    ----------
    sizes : int (H,)
    counts : int (…, H)
        Labels in all.
    means : float (…, H)
        Rates of those to come.
    confidence_level : float
    seen : (int (…, H), int (…, H)), optional
        Labels that are in, which decided the others' number, and those of them that are 1.

    Examples
    --------
    >>> sizes, n_h = np.array([5000, 5000]), np.array([50, 50])
    >>> float(expected_of_counts(sizes, n_h, np.array([0.2, 0.9]), 0.95).round(3))
    0.076
    """
    known, ones = seen or (np.zeros_like(counts), np.zeros_like(counts))
    sets = ones + quantiles(counts - known, means)
    widths = half_width_of_counts(sizes, counts, sets, confidence_level, looked=seen is not None)
    return np.asarray(widths.mean(axis=0))


def quantiles(counts: IntArray, means: FloatArray) -> FloatArray:
    """Return ones (K, …, H) of so many labels: quantiles of the binomial count, in each stratum's own order.

    Examples
    --------
    >>> sorted(quantiles(np.array([10]), np.array([0.5]))[:, 0].tolist())
    [3.0, 4.0, 5.0, 6.0, 7.0]
    """
    levels = orders(np.shape(means)[-1]).T.reshape(REPLICATES, *(1,) * (np.ndim(counts) - 1), -1)
    open_ = (counts > 0) & (means > 0) & (means < 1)
    with np.errstate(invalid="ignore"):
        found = bdtrik(levels, np.where(open_, counts, 1).astype(np.float64), np.where(open_, means, 0.5))
    # The quantile of a binomial count; the function gives a real number, often just above a whole.
    whole = np.clip(np.ceil(found - _ROUNDING), 0, counts)
    return np.asarray(np.where(open_, whole, counts * (np.asarray(means) >= 1.0)))


def orders(n_strata: int) -> FloatArray:
    """Return levels (H, K), evenly spread over (0, 1), in an order of each stratum's own.

    Examples
    --------
    >>> orders(2).shape, sorted(orders(2)[1].round(1).tolist())
    ((2, 5), [0.1, 0.3, 0.5, 0.7, 0.9])
    """
    rng = np.random.Generator(np.random.PCG64(_SEED))
    levels = (np.arange(REPLICATES) + 0.5) / REPLICATES
    return np.array([rng.permutation(levels) for _ in range(n_strata)])
