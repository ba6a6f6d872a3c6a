"""A coefficient of a regression as an estimand: planned where it is uncertain, estimated by `regress`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs.sample import Sample
from stratal.errors import InputError, near_names
from stratal.estimation.estimand import Estimand, LabelledInfluence
from stratal.estimation.estimands.means import Outlook
from stratal.estimation.estimate import Estimate
from stratal.estimation.linearisation import Linearised, linearised_estimate
from stratal.estimation.request import PLAIN, Request
from stratal.estimation.respondents import Respondents
from stratal.intervals.limits import OffsetLimits
from stratal.labels.labels import join
from stratal.population.cells import Cells
from stratal.population.expressions import Constant, Exponential, Expression, Logistic, Number, total
from stratal.population.influence import Influence, averages
from stratal.population.population import Population
from stratal.regression.coefficients import MEstimate
from stratal.regression.from_sample import FAMILIES, from_population, regress
from stratal.regression.label_allocation import fit_to_proxies
from stratal.regression.options import require_choice
from stratal.regression.solver import require_inverse

INTERCEPT = "intercept"

IN_ORDER = 1e-3
"""Mean of u over its deviation, in a unit of average square: what puts units in order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoefficientLimits(OffsetLimits):
    """The interval of one coefficient of a regression."""

    fitted: MEstimate
    index: int

    @property
    def method(self) -> str:
        """The name of the method."""
        return "skewness-corrected"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the coefficient."""
        low, high = self.fitted.confidence_interval(max(1.0 - 2.0 * error, 1e-12))
        return self.value - float(low[self.index]), float(high[self.index]) - self.value


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
        told = self._outlook(population)
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

    def _outlook(self, population: Population) -> Outlook:
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
        told = Outlook.of(population, self.proxy)
        return Outlook(mean=told.mean, variance=told.mean) if self.family == "poisson" else told

    def _linear(self, weights: FloatArray) -> Expression:
        """Return the intercept's weight and the features times theirs, in nine digits on every engine."""
        first, *others = (float(f"{weight:.9g}") for weight in weights)
        terms = [weight * Number(name=name) for weight, name in zip(others, self.numbers, strict=True)]
        return total([Constant(value=first), *terms])

    def fitted(self, sample: Sample, labels: Any, target: str = "population") -> MEstimate:
        """Return the whole regression: with the proxy where the population is at hand, else by weights."""
        reads = sample.population is not None and bool(sample.proxy_names)
        options = {"proxy": self.proxy} if reads else {"estimator": "classical"}
        found = regress(sample, labels, family=self.family, features=self.numbers, target=target, **options)
        assert isinstance(found, MEstimate)
        return found

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimate:
        """Return the coefficient, its interval corrected for skewness."""
        fitted = self.fitted(sample, labels, request.target)
        k = fitted.index(self.of)
        assert fitted.influences is not None
        assert fitted.weighting is not None
        value = float(fitted.coefficients[k])
        result = Linearised(
            value=value,
            variable=np.asarray(fitted.influences[:, k]),
            design_variance=float(fitted.standard_errors[k]) ** 2,
            population_variance=0.0,
            degrees_of_freedom=float(fitted.degrees_of_freedom[k]),
        )
        found = linearised_estimate(
            result,
            fitted.weighting,
            limits=CoefficientLimits(value=value, fitted=fitted, index=k),
            target=request.target,
        )
        frame = Respondents.of(sample, join(sample, labels).labelled)
        found = frame.complete(found, sample)
        return replace(found, label=self.label, remarks=tuple(dict.fromkeys([*found.remarks, *fitted.notes])))

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return what each label adds to the coefficient."""
        fitted = self.fitted(sample, labels)
        assert fitted.influences is not None
        u = np.asarray(fitted.influences[:, fitted.index(self.of)])
        return LabelledInfluence(u=u, labelled=join(sample, labels).labelled)


def _same(line: Expression) -> Expression:
    return line


def _logistic(line: Expression) -> Expression:
    return Logistic(parts=(line,))


def _exponential(line: Expression) -> Expression:
    return Exponential(parts=(line,))


LINKS = {"linear": _same, "logistic": _logistic, "poisson": _exponential}
"""The mean of the outcome at a linear predictor."""
