"""Quantiles of a numeric outcome, with Woodruff's interval.

The interval of the distribution function at the quantile is turned back through the weighted sample
(Woodruff 1952; Lohr, section 9.5.2). It is not symmetric, and never leaves the labels' range unless that is
all that can be said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.estimation.domain_means import domain_mean, domain_trials
from stratal.estimation.quantity import Quantity
from stratal.intervals.interval import ConfidenceInterval
from stratal.weighting import Weighting


def weighted_quantile(values: FloatArray, weights: FloatArray, probability: float) -> float:
    """Return the smallest value with a share of at least `probability` at or below it.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / np.sum(weights)
    position = int(np.searchsorted(share, probability - 1e-12))
    return float(values[order][min(position, len(values) - 1)])


def quantile_interval(
    z: FloatArray,
    probability: float,
    weighting: Weighting,
    *,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    bounds: tuple[float, float] | None = None,
) -> tuple[Quantity, ConfidenceInterval]:
    """Return a quantile and its interval.

    Parameters
    ----------
    z : float (n,)
    probability : float
        Between 0 and 1; ½ is the median.
    weighting : Weighting
    confidence_level, alternative
        See `Estimate.confidence_interval`.
    bounds : (float, float), optional
        What z cannot leave. The end is there, or infinite, where the labels do not reach far enough.

    Raises
    ------
    InputError
        For a probability outside (0, 1).

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> z, h = np.arange(1.0, 100.0), np.zeros(99, dtype=int)
    >>> weighting = StratifiedWeighting(stratum=h, sizes=np.array([99_000]))
    >>> quantity, (low, high) = quantile_interval(z, 0.5, weighting)
    >>> quantity.value, low, high
    (50.0, 40.0, 60.0)
    """
    if not 0.0 < probability < 1.0:
        raise InputError("probability is out of range", given=probability, allowed="between 0 and 1")
    weights = weighting.weights
    value = weighted_quantile(z, weights, probability)
    everyone = np.ones(len(z), dtype=bool)
    reached = (z <= value).astype(np.float64)
    below, result = domain_mean(reached, everyone, weighting, bounds=(0.0, 1.0))
    trials, _ = domain_trials(reached, everyone * 1.0, weighting, (0.0, 1.0), result.design_variance)
    # The interval of a share of `probability`, on as many trials as the labels around the quantile are worth.
    share = Quantity(
        value=probability,
        standard_error=below.standard_error,
        degrees_of_freedom=below.degrees_of_freedom,
        n=len(z),
        bounds=(0.0, 1.0),
        trials=trials,
    ).confidence_interval(confidence_level, alternative)
    lowest, highest = bounds or (-np.inf, np.inf)
    smallest = float(np.min(weights)) / float(np.sum(weights))
    low = weighted_quantile(z, weights, share.low) if share.low > smallest else lowest
    high = weighted_quantile(z, weights, share.high) if share.high < 1.0 - smallest else highest
    if np.isinf(trials):
        low = high = value
    quantity = Quantity(
        value=value,
        standard_error=_half_reach(z, weights, probability, result.standard_error),
        degrees_of_freedom=result.degrees_of_freedom,
        n=len(z),
        bounds=bounds,
    )
    interval = ConfidenceInterval(
        low=min(low, value) if alternative != "less" else lowest,
        high=max(high, value) if alternative != "greater" else highest,
        confidence_level=confidence_level,
        method="woodruff",
        alternative=alternative,
    )
    return quantity, interval


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantileQuantity(Quantity):
    """A quantile whose interval of any level is Woodruff's.

    Parameters
    ----------
    z : float (n,)
    probability : float
    weighting : Weighting

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(99, dtype=int), sizes=np.array([99_000]))
    >>> [*woodruff(np.arange(1.0, 100.0), 0.5, weighting).confidence_interval()]
    [40.0, 60.0]
    """

    z: FloatArray
    probability: float
    weighting: Weighting

    @property
    def method(self) -> str:
        """How the interval is made."""
        return "woodruff"

    def _ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        _, interval = quantile_interval(
            self.z,
            self.probability,
            self.weighting,
            confidence_level=confidence_level,
            alternative=alternative,
            bounds=self.bounds,
        )
        return interval.low, interval.high


def woodruff(z: FloatArray, probability: float, weighting: Weighting) -> QuantileQuantity:
    """Return a quantile that gives its interval at any level.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(3, dtype=int), sizes=np.array([30]))
    >>> woodruff(np.array([3.0, 1.0, 2.0]), 0.5, weighting).value
    2.0
    """
    found, _ = quantile_interval(z, probability, weighting)
    return QuantileQuantity(
        value=found.value,
        standard_error=found.standard_error,
        degrees_of_freedom=found.degrees_of_freedom,
        n=found.n,
        z=z,
        probability=probability,
        weighting=weighting,
    )


def _half_reach(z: FloatArray, weights: FloatArray, probability: float, error: float) -> float:
    """Return half the distance of the quantiles one standard error of the share to either side.

    That is the share's standard error over the density there; 0 where the labels around agree.
    """
    if not np.isfinite(error):
        return float("nan")
    low, high = (
        weighted_quantile(z, weights, min(max(probability + side * error, 1e-9), 1.0)) for side in (-1.0, 1.0)
    )
    return (high - low) / 2.0
