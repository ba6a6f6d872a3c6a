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
from stratal.estimation.domain_means import domain_trials
from stratal.estimation.estimate import Estimate
from stratal.estimation.linearisation import Linearised, linearised_estimate, ratio_of_means
from stratal.intervals.limits import Binomial, Limits
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Woodruff(Limits):
    """The quantiles at the limits of the share of units up to the value (Woodruff 1952).

    Parameters
    ----------
    z, weights : float (n,)
    share : Limits
        Of a share of the quantile's probability, on as many trials as the labels around it are worth.
    exact : bool
        Whether every unit is labelled.
    """

    z: FloatArray
    weights: FloatArray
    share: Limits
    exact: bool

    @property
    def method(self) -> str:
        """The name of the method."""
        return "woodruff"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit: the bounds where the labels do not reach far enough."""
        lowest, highest = self.bounds or (-np.inf, np.inf)
        below, above = self.share.ends(confidence_level, alternative)
        smallest = float(np.min(self.weights)) / float(np.sum(self.weights))
        low = weighted_quantile(self.z, self.weights, below) if below > smallest else lowest
        high = weighted_quantile(self.z, self.weights, above) if above < 1.0 - smallest else highest
        if self.exact:
            low = high = self.value
        return (
            min(low, self.value) if alternative != "less" else lowest,
            max(high, self.value) if alternative != "greater" else highest,
        )


def quantile_estimate(
    z: FloatArray,
    probability: float,
    weighting: Weighting,
    *,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Return a quantile; ½ is the median. `bounds` are what z (n,) cannot leave.

    Raises
    ------
    InputError
        For a probability outside (0, 1).

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> z, h = np.arange(1.0, 100.0), np.zeros(99, dtype=int)
    >>> found = quantile_estimate(z, 0.5, StratifiedWeighting(stratum=h, sizes=np.array([99_000])))
    >>> found.value, *found.confidence_interval()
    (50.0, 40.0, 60.0)
    """
    if not 0.0 < probability < 1.0:
        raise InputError("probability is out of range", given=probability, allowed="between 0 and 1")
    weights, everyone = weighting.weights, np.ones(len(z))
    value = weighted_quantile(z, weights, probability)
    reached = (z <= value).astype(np.float64)
    share = ratio_of_means(reached, everyone, weighting)
    trials, _ = domain_trials(reached, everyone, weighting, (0.0, 1.0), share.design_variance)
    error = _half_reach(z, weights, probability, share.standard_error)
    scale = error / share.standard_error if share.standard_error > 0 else 1.0
    result = Linearised(
        value=value,
        variable=scale * (probability - reached),
        design_variance=error**2,
        population_variance=0.0,
        degrees_of_freedom=share.degrees_of_freedom,
    )
    limits = Woodruff(
        value=value,
        bounds=bounds,
        z=z,
        weights=weights,
        share=Binomial(value=probability, bounds=(0.0, 1.0), trials=trials),
        exact=bool(np.isinf(trials)),
    )
    return linearised_estimate(result, weighting, limits=limits, bounds=bounds)


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
