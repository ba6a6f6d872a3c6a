"""A quantile of a numeric outcome as an estimand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.columns import number_columns
from stratal.estimation.domain_means import domain_trials
from stratal.estimation.estimand import Estimand, LabelledInfluence
from stratal.estimation.estimands.means import Outlook
from stratal.estimation.estimate import Estimate
from stratal.estimation.linearisation import Linearised, linearised_estimate, ratio_of_means
from stratal.estimation.request import PLAIN, Request
from stratal.estimation.respondents import Respondents
from stratal.intervals.limits import BinomialLimits, Limits
from stratal.population.cells import Cells
from stratal.population.expressions import Logistic
from stratal.population.influence import Influence, averages
from stratal.population.population import Population


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
    >>> from stratal.designs import StratifiedWeighting
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
        share=BinomialLimits(value=probability, bounds=(0.0, 1.0), trials=trials),
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


_LOGISTIC = 1.702
"""The logistic function of 1.702 t is the normal one of t to .01 (Camilli 1994)."""


@dataclass(frozen=True, slots=True)
class Quantile(Estimand):
    """The value with a given share of the outcomes at or below it.

    Parameters
    ----------
    probability : float
        ½ is the median.
    proxy : str, optional
        The proxy to plan with; the population's first unless named. It must be on the outcome's scale.

    Examples
    --------
    >>> Quantile(0.9).text, Estimand.parse_text("quantile:.9").probability
    ('quantile:0.9', 0.9)
    """

    kind: ClassVar[str] = "quantile"
    listed: ClassVar[str] = "probability"
    probability: float
    proxy: str | None = None

    def __post_init__(self) -> None:
        self._set(probability=float(self.probability))
        if not 0 < self.probability < 1:
            raise InputError("probability is out of range", given=self.probability, allowed="between 0 and 1")

    @property
    def title(self) -> str:
        """What a sentence calls it: `0.9 quantile`."""
        return f"{self.probability:g} quantile"

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        return "quantile:.9"

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of (β − 1(z ≤ θ)) / density, with z about its proxy as a logistic.

        θ is the quantile of the proxy; the chance that z is at or below it falls with the proxy, and what the
        proxy leaves open says how steeply.
        """
        info = population.proxy_info(self.proxy)
        if not info.scaled:
            raise InputError(
                "a quantile needs a proxy on the outcome's scale",
                given=repr(info.name),
                action="Give the outcome's bounds (bounds=, --bounds LOW,HIGH), or scaled=True if the "
                "proxy predicts its values.",
            )
        told = Outlook.of(population, self.proxy)
        picture = population.distribution(info.name)
        theta = weighted_quantile(picture.values, picture.counts.astype(np.float64), self.probability)
        left = max(float(averages(population, [told.variance])[0]), 1e-12) ** 0.5
        steep = _LOGISTIC / left
        below = Logistic(parts=(steep * (theta - told.mean),))
        density, share = averages(population, [steep * below * (1.0 - below), below])
        scale = 1.0 / max(float(density), 1e-12)
        # u is centred where the logistic has its share, which is near β.
        mean = scale * (float(share) - below)
        square = scale**2 * (float(share) ** 2 + (1.0 - 2.0 * float(share)) * below)
        return Influence(value=theta, mean=mean, square=square, cells=Cells(names=("all",)))

    takes: ClassVar[tuple[str, ...]] = ("target", "population", "bounds")

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the quantile, its interval by the limits of the share below it."""
        if request.target != "population":
            raise InputError(
                "a quantile is always that of the population",
                given=f"target={request.target!r}",
                allowed="'population'",
            )
        columns, labelled = number_columns(sample, {"labels": labels})
        frame = Respondents.of(sample, labelled)
        found = quantile_estimate(columns[:, 0], self.probability, frame.weighting, bounds=request.bounds)
        if not np.isfinite(found.standard_error):
            raise InputError(
                "the standard error of a quantile cannot be estimated",
                given=f"{len(columns)} label{'s' if len(columns) > 1 else ''}",
                action="Label at least 2 units, drawn by chance.",
            )
        return replace(frame.complete(found, sample), label=self.label)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return β − 1(z ≤ θ̂) of the labelled units, on no scale but that of strata among each other."""
        columns, labelled = number_columns(sample, {"labels": labels})
        z, weights = columns[:, 0], Respondents.of(sample, labelled).weighting.weights
        value = weighted_quantile(z, weights, self.probability)
        return LabelledInfluence(u=np.asarray(self.probability - (z <= value), np.float64), labelled=labelled)
