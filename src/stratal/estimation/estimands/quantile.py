"""A quantile of a numeric outcome as an estimand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.errors import InputError
from stratal.estimation.columns import number_columns
from stratal.estimation.estimand import Estimand, LabelledInfluence
from stratal.estimation.estimands.means import Outlook
from stratal.estimation.estimate import Estimate
from stratal.estimation.quantile import quantile_estimate, weighted_quantile
from stratal.estimation.request import PLAIN, Request
from stratal.estimation.respondents import Respondents
from stratal.population.cells import Cells
from stratal.population.expressions import Logistic
from stratal.population.influence import Influence, averages
from stratal.population.population import Population
from stratal.sampling.sample import Sample

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
