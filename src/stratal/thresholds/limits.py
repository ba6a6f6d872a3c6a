"""Weighted Clopper–Pearson limits: of a mean of outcomes in [0, 1] from labels with unequal weights.

The gamma limit of Fay and Feuer (1997) with a beta distribution; with equal weights it is Clopper and
Pearson's. A ratio of two such means has MOVER limits (Donner & Zou 2012). All functions are on arrays, with
any leading axes for replicates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import special

from stratal.arrays import FloatArray, IntArray, Number, Record, code_count
from stratal.designs.stratum_moments import stratum_sums

# The beta distribution needs a positive second parameter, even if all labels are successes.
_MIN_SHAPE = 1e-12
# Largest estimate for which the finite population correction applies. Its formula is for rare outcomes: with
# larger rates, limits of single strata of 13 to 5,000 units were exceeded with probability .07 to .10 instead
# of .05.
_MAX_RARE_RATE = 0.2
# A second parameter of the beta distribution that is 0 but for rounding: all outcomes are 1.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightedTotals(Record):
    """Weighted sums of the outcomes in each of J sets.

    Parameters
    ----------
    total : float (…, J)
        T = Σ w x, the estimated mean of the set without its cells that have no label.
    square : float (…, J)
        V = Σ w² x².
    largest_weight : float (…, J)
        w_m, the largest weight of a label, or of a cluster with all its labels in the set.
    unlabelled : float (…, J)
        Share of the set in cells without a label. Their outcomes count as 1, the worst case.
    variance_reduction : float (…, J)
        Smallest (n − 1) / (N − 1), about the sampling fraction, of a cell (its part of a stratum); 0 for the
        superpopulation.

    Examples
    --------
    Two errors among 60 labels of equal weight have Clopper and Pearson's limit:

    >>> weights = np.full((60, 1), 1 / 60)
    >>> totals = WeightedTotals.of(weights, np.arange(60) < 2)
    >>> totals.upper(0.05).round(4), totals.p_values(0.1).round(4)
    (array([0.1012]), array([0.053]))
    """

    total: FloatArray
    square: FloatArray
    largest_weight: FloatArray
    unlabelled: FloatArray
    variance_reduction: FloatArray

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        outcomes: object,
        *,
        cluster: IntArray | None = None,
        unlabelled: object = 0.0,
        variance_reduction: object = 0.0,
    ) -> Self:
        """Return the totals of outcomes (m,) or (m, J) with weights (m, J), 0 outside a set.

        `cluster` (m,) are the units that were drawn together.
        """
        values = np.asarray(outcomes, dtype=np.float64)
        if values.ndim == 1:
            values = values[:, None]
        weighted = weights * values
        largest_weight = weights.max(axis=0, initial=0.0)
        if cluster is not None:
            # All units of a cluster that was not drawn may be in the set and have the outcome 1, even if only
            # some units of the drawn clusters are in the set.
            largest_weight = largest_weight * np.bincount(cluster).max(initial=1)
            weighted = stratum_sums(weighted, cluster, code_count(cluster))
        total = weighted.sum(axis=0)
        zeros = np.zeros_like(total)
        return cls(
            total=total,
            square=np.sum(weighted**2, axis=0),
            largest_weight=largest_weight,
            unlabelled=zeros + unlabelled,
            variance_reduction=zeros + variance_reduction,
        )

    def upper(self, error: Any) -> FloatArray:
        """Return upper limits (…, J) of the means, each exceeded with probability `error` at most."""
        size, successes = self._beta_parameters()
        shape = np.maximum(size + 1.0 - successes, _MIN_SHAPE)
        with np.errstate(invalid="ignore"):
            bound = special.betaincinv(successes, shape, 1.0 - error)
        bound = self.total + self._distance_factor() * np.maximum(bound - self.total, 0.0)
        is_below_one = (self.largest_weight > 0) & (size + 1.0 - successes > _ROUNDING)
        return np.where(is_below_one, np.minimum(bound + self.unlabelled, 1.0), 1.0)

    def p_values(self, limit: Any) -> FloatArray:
        """Return p-values (…, J) of the hypotheses that the means are at least `limit`."""
        size, successes = self._beta_parameters()
        distance = limit - self.unlabelled - self.total
        with np.errstate(divide="ignore", invalid="ignore"):
            # The limit without the finite population correction, which divides its distance.
            point = np.where(distance > 0, self.total + distance / self._distance_factor(), 0.0)
        shape = np.maximum(size + 1.0 - successes, _MIN_SHAPE)
        p_values = 1.0 - special.betainc(successes, shape, np.clip(point, 0.0, 1.0))
        return np.where((distance > 0) & (self.largest_weight > 0), p_values, 1.0)

    def scaled(self, factor: float) -> WeightedTotals:
        """Return the totals of `factor` times as many labels with the same mean."""
        return replace(
            self,
            square=self.square / factor,
            largest_weight=self.largest_weight / factor,
            variance_reduction=np.minimum(self.variance_reduction * factor, 1.0),
        )

    def _beta_parameters(self) -> tuple[FloatArray, FloatArray]:
        """Return the effective number of labels n_eff and the first parameter of the beta distribution."""
        largest_weight = np.where(self.largest_weight > 0, self.largest_weight, 1.0)
        size = (self.total + largest_weight) / (self.square + largest_weight**2)
        return size, (self.total + largest_weight) * size

    def _distance_factor(self) -> FloatArray:
        """Return φ = f / −ln(1 − f), the factor of the distance to the limit in a finite population.

        It is 1 for the superpopulation (f = 0), and for rates that are not rare.
        """
        # A sample misses K rare outcomes with the probability (1 − f)^K, or with replacement about exp(−f K).
        # At equal probabilities, the first K is smaller by the factor φ.
        fraction = np.clip(np.where(self.total <= _MAX_RARE_RATE, self.variance_reduction, 0.0), 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = fraction / -np.log1p(-fraction)
        return np.where(fraction > 0, factor, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionMean:
    """A mean over the population of an outcome that is 0 outside a region of known size.

    Parameters
    ----------
    successes, failures : WeightedTotals
        Totals of the outcomes x in the region, and of 1 − x.
    share : float (…, J)
        Share of the population in the region.
    shift : float (…, J)
        A known constant that is added to the mean.
    """

    successes: WeightedTotals
    failures: WeightedTotals
    share: FloatArray
    shift: Number = 0.0

    @property
    def value(self) -> FloatArray:
        """The estimate (…, J)."""
        return np.asarray(self.successes.total * self.share + self.shift)

    def scaled(self, factor: float) -> RegionMean:
        """Return the mean of `factor` times as many labels."""
        return replace(self, successes=self.successes.scaled(factor), failures=self.failures.scaled(factor))

    def upper(self, error: object) -> FloatArray:
        """Return upper limits (…, J)."""
        return np.asarray(self.successes.upper(error) * self.share + self.shift)

    def lower(self, error: object) -> FloatArray:
        """Return lower limits (…, J)."""
        return np.asarray((1.0 - self.failures.upper(error)) * self.share + self.shift)


def part_limits(part: RegionMean, rest: RegionMean, error: object) -> tuple[FloatArray, FloatArray]:
    """Return MOVER limits (…, J) of part / (part + rest), each passed with probability `error` at most.

    The limit r of the ratio part / rest solves (part − r rest)² = (U − part)² + r² (rest − L)², with
    one-sided limits U of the part and L of the rest (Donner & Zou 2012, eq. 9). If both are 0, the limits are
    0 and 1.
    """
    rest_share = _ratio_limit(part.value, rest.value, part.upper(error), rest.lower(error))
    lower = _ratio_limit(rest.value, part.value, rest.upper(error), part.lower(error))
    return lower, 1.0 - rest_share


def _ratio_limit(part: FloatArray, rest: FloatArray, high: FloatArray, low: FloatArray) -> FloatArray:
    """Return rest / (rest + part) at the upper limit of part / rest, from their limits `high` and `low`."""
    # The ratio solves quadratic r² − 2 part rest r + constant = 0.
    quadratic = low * (2.0 * rest - low)
    constant = high * (2.0 * part - high)
    root = np.sqrt(np.maximum((part * rest) ** 2 - constant * quadratic, 0.0))
    numerator = part * rest + root
    with np.errstate(divide="ignore", invalid="ignore"):
        share = quadratic / (quadratic + numerator)
    return np.where(low > 0, share, 0.0)
