"""A coefficient of a regression and a quantile as estimands: planned where they are uncertain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs.sample import Sample
from stratal.errors import InputError, near_names
from stratal.estimation.columns import number_columns
from stratal.estimation.estimand import PLAIN, Estimand, LabelledInfluence, Request
from stratal.estimation.estimands.means import AnticipatedMoments
from stratal.estimation.estimate import Estimate
from stratal.estimation.respondents import Respondents
from stratal.population.expressions import Cells, Constant, Exponential, Expression, Logistic, Number, total
from stratal.population.influence import Influence, averages
from stratal.population.population import Population
from stratal.regression.from_sample import FAMILIES, from_population, regress
from stratal.regression.label_allocation import fit_to_proxies
from stratal.regression.quantiles import quantile_estimate, weighted_quantile
from stratal.regression.rectified_loss import require_choice, require_inverse

FITTED = ("target", "population", "estimator", "lam", "proxy", "stratum_weights_known")
"""Options of `estimate` for what is fitted with a proxy; λ stays where the loss has a minimum."""

_ESTIMATORS = {"auto": "ppi++", "horvitz-thompson": "classical", "difference": "ppi++"}


def options_of(request: Request, sample: Sample) -> dict[str, Any]:
    """Return what `regress` is asked for; `auto` takes the proxy where the population is at hand.

    Examples
    --------
    >>> sample = Sample.from_labelled({"y": [1.0, 2.0]}, value="y", population_size=9)[0]
    >>> options_of(PLAIN, sample)["estimator"]
    'classical'
    """
    reads = sample.population is not None and bool(sample.proxy_names)
    estimator = _ESTIMATORS.get(request.estimator, request.estimator)
    if request.estimator == "auto" and request.lam is None and not reads:
        estimator = "classical"
    one = request.estimator == "difference" and request.lam is None
    return {
        "estimator": estimator,
        "lam": 1.0 if one else request.lam,
        "proxy": None if estimator == "classical" else request.proxy,
        "target": request.target,
        "stratum_weights_known": request.stratum_weights_known,
    }


INTERCEPT = "intercept"

IN_ORDER = 1e-3
"""Mean of u over its deviation, in a unit of average square: what puts units in order."""


@dataclass(frozen=True, slots=True)
class Coefficient(Estimand):
    """One coefficient of a linear, logistic or Poisson regression of the outcome on columns of numbers.

    Its influence on a unit is w(x) (y − μ(x)), with w(x) the coefficient's row of A⁻¹x: units far out in a
    feature matter most. The fit and A are those of the proxy before labels, as in Fisch et al. (2024),
    eq. 20–21.

    Parameters
    ----------
    of : str
        A feature, or `intercept`.
    features : tuple of str, optional
        All features of the regression, which has an intercept too; `of` alone unless given.
    family : {"linear", "logistic", "poisson"}
    proxy : str, optional
        The proxy to plan with, which predicts the outcome; the population's first unless named.

    Examples
    --------
    >>> Coefficient("length", ("length", "age")).text
    'coefficient:length,features=length+age'
    """

    kind: ClassVar[str] = "coefficient"
    listed: ClassVar[str] = "of"
    of: str
    features: tuple[str, ...] = ()
    family: str = "linear"
    proxy: str | None = None

    def __post_init__(self) -> None:
        own = () if self.of == INTERCEPT else (self.of,)
        given = (self.features,) if isinstance(self.features, str) else tuple(self.features)
        self._set(features=() if given == own else given)
        if not self.numbers or self.of not in self.names:
            raise InputError(
                "a coefficient must be one of the regression's",
                given=repr(self.of),
                allowed=near_names(self.of, self.names),
                action="Name all of its features: coefficient:length,features=length+age.",
            )
        require_choice("family", self.family, tuple(LINKS))

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        return "coefficient:length,features=length+age"

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of the features."""
        return self.features or (() if self.of == INTERCEPT else (self.of,))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all coefficients."""
        return (INTERCEPT, *self.numbers)

    @property
    def reads_population(self) -> bool:
        """Whether the estimate reads columns of the population: the features, and the proxy of all units."""
        return True

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of w(x) (y − μ(x)), the fit being that to the proxies.

        The mean of what the labels leave open is 0, and strata of one mean would hold units near and far out
        alike. The mean given here is a share of E[u² | x] too small to matter, so that strata follow how much
        u varies.
        """
        told = self._moments(population)
        units = from_population(population, proxy=self.proxy, features=self.numbers)
        fit = fit_to_proxies(FAMILIES[self.family](), units)
        weight = self._linear(require_inverse(fit.hessian)[self.names.index(self.of)])
        gap = told.mean - LINKS[self.family](self._linear(fit.theta))
        square = weight * weight * (gap * gap + told.variance)
        whole = max(float(averages(population, [square])[0]), 1e-300)
        return Influence(
            value=float(fit.theta[self.names.index(self.of)]),
            mean=(IN_ORDER / whole**0.5) * square,
            square=square,
            cells=Cells(names=("all",)),
        )

    def _moments(self, population: Population) -> AnticipatedMoments:
        """Return what the proxy says of the outcome; of a count, that it varies as much as its mean."""
        scaled = [info.name for info in population.proxies if info.scaled]
        if not scaled or not population.proxy_info(self.proxy).scaled:
            raise InputError(
                f"{self.text!r} needs a proxy on the outcome's scale",
                given=", ".join(population.proxy_names) or "no proxy",
                action="Name a column that predicts the outcome (proxy=, --proxy), with scaled=True if it "
                "has no bounds.",
            )
        strange = [
            name for name in self.numbers if name not in (*population.feature_names, *population.proxy_names)
        ]
        if strange:
            raise InputError(
                f"the population has no column of numbers {strange[0]!r}",
                allowed=near_names(strange[0], [*population.feature_names, *population.proxy_names]),
                action="Several features are written coefficient:length,features=length+age; the population "
                "needs each as a column of numbers (features=).",
            )
        told = AnticipatedMoments.of(population, self.proxy)
        return AnticipatedMoments(mean=told.mean, variance=told.mean) if self.family == "poisson" else told

    def _linear(self, weights: FloatArray) -> Expression:
        """Return the intercept's weight and the features times theirs, in nine digits on every engine."""
        first, *others = (float(f"{weight:.9g}") for weight in weights)
        terms = [weight * Number(name=name) for weight, name in zip(others, self.numbers, strict=True)]
        return total([Constant(value=first), *terms])

    takes: ClassVar[tuple[str, ...]] = FITTED

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the coefficient: with the proxy where the population is at hand, else by weights alone."""
        proxy = request.proxy or self.proxy
        fitted = regress(
            sample,
            labels,
            family=self.family,
            features=self.numbers,
            **options_of(replace(request, proxy=proxy), sample),
        )
        found: Estimate = fitted.of(coefficient=self.of)
        return replace(found, label=self.label, null=None, remarks=fitted.remarks)


def _same(line: Expression) -> Expression:
    return line


def _logistic(line: Expression) -> Expression:
    return Logistic(parts=(line,))


def _exponential(line: Expression) -> Expression:
    return Exponential(parts=(line,))


LINKS = {"linear": _same, "logistic": _logistic, "poisson": _exponential}
"""The mean of the outcome at a linear predictor."""


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
        told = AnticipatedMoments.of(population, self.proxy)
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

    takes: ClassVar[tuple[str, ...]] = (*FITTED, "bounds")

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the quantile: by weights, with the limits of the share below, unless λ is asked for."""
        if request.estimator not in ("auto", "horvitz-thompson") or request.lam is not None:
            asked = replace(request, proxy=request.proxy or self.proxy)
            given = {"family": "quantile", "probability": self.probability, **options_of(asked, sample)}
            tuned: Estimate = regress(sample, labels, **given)
            return replace(tuned, label=self.label)
        if request.target != "population":
            raise InputError(
                "a quantile by weights is that of the population",
                given=f"target={request.target!r}",
                allowed="'population'",
                action="Give estimator='ppi++', or leave target= out.",
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
