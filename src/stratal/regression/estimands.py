"""A regression coefficient and a quantile as estimands: their influence for a plan, and their estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from stratal.arrays import NO_DIVISOR, BoolArray, FloatArray
from stratal.designs.sample import Sample
from stratal.errors import InputError, check_choice, suggest_names
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, LabelledInfluence, Request
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.means import AnticipatedMoments
from stratal.estimation.resolve import named_groups, number_columns
from stratal.estimation.respondents import Respondents, known_outcome, refuse_outside
from stratal.population.expressions import (
    Constant,
    Exponential,
    Expression,
    NumberColumn,
    logistic,
    sum_of,
)
from stratal.population.influence import Influence, population_means
from stratal.population.population import Population
from stratal.protocols import Keywords
from stratal.regression.features import INTERCEPT, NumericFeatures
from stratal.regression.from_sample import prepare_fit, regress, unlabelled_of_population
from stratal.regression.losses import FAMILIES
from stratal.regression.m_estimation import fit_to_proxies
from stratal.regression.quantiles import (
    quantile,
    require_probability,
    weighted_quantile,
    weighted_quantile_estimate,
)
from stratal.regression.rectified_loss import require_inverse

# Fields of `Request` that a fit of `m_estimate` or `quantile` supports.
_FIT_OPTIONS = ("target", "population", "estimator", "lam", "proxy", "stratum_weights_known")

# Estimator of `m_estimate` by the `estimator` of a request. The difference estimator is `ppi++` with λ = 1.
_ESTIMATORS = {"auto": "ppi++", "horvitz-thompson": "classical", "difference": "ppi++"}


def _m_estimate_options(request: Request, sample: Sample) -> Keywords:
    """Return the options of `m_estimate` for a request; `auto` uses a proxy that is known for all units."""
    has_proxy = sample.population is not None and bool(sample.proxy_names)
    estimator = _ESTIMATORS.get(request.estimator, request.estimator)
    if request.estimator == "auto" and request.lam is None and not has_proxy:
        estimator = "classical"
    has_fixed_lam = request.estimator == "difference" and request.lam is None
    return {
        "estimator": estimator,
        "lam": 1.0 if has_fixed_lam else request.lam,
        "proxy": None if estimator == "classical" else request.proxy,
        "target": request.target,
        "stratum_weights_known": request.stratum_weights_known,
    }


def _anticipated_moments(population: Population, proxy: str | None, subject: str) -> AnticipatedMoments:
    """Return the outcome's mean and variance given the proxy; raise an error if the proxy only ranks units.

    `subject` is what requires the proxy, in the error.
    """
    if not population.proxy_names or not population.proxy_info(proxy).scaled:
        raise InputError(
            f"{subject} requires a proxy on the outcome's scale",
            given=", ".join(population.proxy_names) or "no proxy",
            action="Name a column that predicts the outcome (proxy=, --proxy); give the outcome's bounds "
            "(bounds=, --bounds LOW,HIGH), or scaled=True if the outcome has no bounds.",
        )
    return AnticipatedMoments.of(population, proxy)


# The mean of the outcome as a function of the linear predictor, by family (the keys of `FAMILIES`).
_INVERSE_LINKS: dict[str, Callable[[Expression], Expression]] = {
    "linear": lambda predictor: predictor,
    "logistic": logistic,
    "poisson": lambda predictor: Exponential(parts=(predictor,)),
}


# Mean influence that `Coefficient.influence` returns for a unit with the average E[u² | x], divided by
# √E[u²]. It is small enough not to change the anticipated variance, and large enough to order the units.
_ORDERING_MEAN = 1e-3


@dataclass(frozen=True, slots=True)
class Coefficient(Estimand):
    """One coefficient of a linear, logistic or Poisson regression of the outcome on numeric columns.

    The influence of a unit is w(x) (y − μ(x)), where w(x) is the coefficient's row of A⁻¹x: units with
    extreme values of a feature matter most. Before there are labels, the fit and A are those of the proxy, as
    in Fisch et al. (2024), eq. 20–21.

    Parameters
    ----------
    of : str
        A feature, or `intercept`.
    features : tuple of str, optional
        All features of the regression, which also has an intercept. Default: only `of`.
    family : {"linear", "logistic", "poisson"}
    proxy : str, optional
        The proxy for the plan, which predicts the outcome. Default: the first proxy of the population.

    Examples
    --------
    >>> Coefficient("length", ("length", "age")).text
    'coefficient:length,features=length+age'
    """

    kind: ClassVar[str] = "coefficient"
    listed_field: ClassVar[str] = "of"
    listed_example: ClassVar[str] = "length,features=length+age"
    of: str
    features: tuple[str, ...] = ()
    family: str = "linear"
    proxy: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.features, str):
            features = (self.features,)
        else:
            features = tuple(self.features)
        # Equal estimands have equal fields and texts.
        self._set(features=() if features == self._default_features else features)
        if not self.numeric_columns or self.of not in self.names:
            raise InputError(
                "the regression has no such coefficient",
                given=repr(self.of),
                allowed=suggest_names(self.of, self.names),
                action="Name all features of the regression: coefficient:length,features=length+age.",
            )
        check_choice("family", self.family, _INVERSE_LINKS)

    @property
    def numeric_columns(self) -> tuple[str, ...]:
        """The numeric columns that are features."""
        return self.features or self._default_features

    @property
    def _default_features(self) -> tuple[str, ...]:
        """The features if none are named."""
        if self.of == INTERCEPT:
            return ()
        return (self.of,)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all coefficients."""
        return (INTERCEPT, *self.numeric_columns)

    # The estimate needs the features and the proxy of all units.
    reads_population = True

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of w(x) (y − μ(x)) for the fit to the proxies.

        The expected influence is 0 for all units, but strata are intervals of the expected influence. The
        returned mean is therefore proportional to E[u² | x] and very small (`_ORDERING_MEAN`), so that units
        with a similar variance of u are in the same stratum.
        """
        outcome = self._outcome_moments(population)
        units = unlabelled_of_population(
            population, population.proxy_info(self.proxy).name, NumericFeatures(self.numeric_columns)
        )
        fit = fit_to_proxies(FAMILIES[self.family](), units)
        index = self.names.index(self.of)
        weight = self._linear_combination(require_inverse(fit.hessian)[index])
        residual = outcome.mean - _INVERSE_LINKS[self.family](self._linear_combination(fit.theta))
        square = weight * weight * (residual * residual + outcome.variance)
        # The mean square is 0 if the proxy determines the outcome and the fit is perfect.
        mean_square = max(float(population_means(population, [square])[0]), NO_DIVISOR)
        return Influence(
            value=float(fit.theta[index]),
            mean=(_ORDERING_MEAN / mean_square**0.5) * square,
            square=square,
        )

    def _outcome_moments(self, population: Population) -> AnticipatedMoments:
        """Return the outcome's mean and variance given the proxy; the variance of a count is its mean.

        Raises
        ------
        InputError
            If the population has no such proxy, or does not have all features.
        """
        moments = _anticipated_moments(population, self.proxy, repr(self.text))
        population_columns = (*population.feature_names, *population.proxy_names)
        for name in self.numeric_columns:
            if name not in population_columns:
                raise InputError(
                    f"the population has no column of numbers {name!r}",
                    allowed=suggest_names(name, population_columns),
                    action="Write several features as coefficient:length,features=length+age.",
                )
        if self.family == "poisson":
            return AnticipatedMoments(mean=moments.mean, variance=moments.mean)
        return moments

    def _linear_combination(self, coefficients: FloatArray) -> Expression:
        """Return the intercept plus the features times their coefficients; `coefficients` (d,) has both.

        The coefficients have nine digits, because further digits may differ between engines, which add in
        different orders.
        """
        intercept, *slopes = (float(f"{coefficient:.9g}") for coefficient in coefficients)
        terms = [
            slope * NumberColumn(name=name) for slope, name in zip(slopes, self.numeric_columns, strict=True)
        ]
        return sum_of([Constant(value=intercept), *terms])

    takes: ClassVar[tuple[str, ...]] = _FIT_OPTIONS

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the coefficient; it uses the proxy if the population is available."""
        options = _m_estimate_options(replace(request, proxy=request.proxy or self.proxy), sample)
        coefficients = regress(sample, labels, family=self.family, features=self.numeric_columns, **options)
        estimate: Estimate = coefficients.of(coefficient=self.of)
        # Without `null`: tables of coefficients test the value 0, but an estimand is reported without a test.
        return replace(estimate, label=self.label, null=None, remarks=coefficients.remarks)


# The logistic function of 1.702 t differs from the normal distribution function of t by at most .01 (Camilli
# 1994).
_LOGISTIC_SCALE = 1.702
# Lower limit of the residual standard deviation and of the density at the quantile, which are divisors.
_MIN_DIVISOR = 1e-12


@dataclass(frozen=True, slots=True)
class Quantile(Estimand):
    """The smallest value such that a given share of the outcomes is at or below it.

    Parameters
    ----------
    probability : float
        The share; ½ gives the median.
    proxy : str, optional
        The proxy for the plan, on the scale of the outcome. Default: the first proxy of the population.

    Examples
    --------
    >>> Quantile(0.9).text, Estimand.parse_text("quantile:.9").probability
    ('quantile:0.9', 0.9)
    """

    has_superpopulation: ClassVar[bool] = False
    kind: ClassVar[str] = "quantile"
    listed_field: ClassVar[str] = "probability"
    listed_example: ClassVar[str] = ".9"
    probability: float
    proxy: str | None = None

    def __post_init__(self) -> None:
        self._set(probability=float(self.probability))
        require_probability(self.probability)

    @property
    def title(self) -> str:
        """The name in a sentence: `0.9 quantile`."""
        return f"{self.probability:g} quantile"

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of (β − 1(z ≤ θ)) / density, where β is `probability`.

        θ is the quantile of the proxy. Given the proxy, z has a logistic distribution around it, with the
        mean residual standard deviation.
        """
        outcome = _anticipated_moments(population, self.proxy, "a quantile")
        distribution = population.distribution(population.proxy_info(self.proxy).name)
        theta = weighted_quantile(
            distribution.values, distribution.counts.astype(np.float64), self.probability
        )
        # The logistic distribution needs a variance, even if the proxy determines the outcome.
        residual_sd = max(float(population_means(population, [outcome.variance])[0]), _MIN_DIVISOR) ** 0.5
        slope = _LOGISTIC_SCALE / residual_sd
        probability_below = logistic(slope * (theta - outcome.mean))
        unit_density = slope * probability_below * (1.0 - probability_below)
        density, mean_probability = population_means(population, [unit_density, probability_below])
        # The density is 0 if no unit has an expected value near the quantile.
        scale = 1.0 / max(float(density), _MIN_DIVISOR)
        # The expected share below θ, which is near β, replaces β, so that the mean influence is 0.
        beta = float(mean_probability)
        mean = scale * (beta - probability_below)
        square = scale**2 * (beta**2 + (1.0 - 2.0 * beta) * probability_below)
        return Influence(value=theta, mean=mean, square=square)

    takes: ClassVar[tuple[str, ...]] = (*_FIT_OPTIONS, "bounds")

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the weighted quantile with Woodruff's interval, or that of an explicitly chosen fit."""
        if request.estimator not in ("auto", "horvitz-thompson") or request.lam is not None:
            return self._fit(sample, labels, request)
        if request.target != "population":
            raise InputError(
                "a weighted quantile always refers to the population",
                action="Give estimator='ppi++', or leave target= out.",
            )
        outcomes, labelled = _labelled_outcomes(sample, labels)
        respondents = Respondents.of(sample, labelled)
        bounds = _bounds_of(sample, outcomes, labelled, request)
        estimate = weighted_quantile_estimate(
            outcomes, self.probability, respondents.weighting, bounds=bounds
        )
        if len(outcomes) < 2 and not np.isfinite(estimate.standard_error):
            raise InputError(
                "the standard error of a quantile cannot be estimated",
                action="Label at least 2 units, drawn at random.",
            )
        return respondents.complete(estimate, sample, label=self.label)

    def _fit(self, sample: Sample, labels: object, request: Request) -> Estimate:
        """Return the quantile that minimises the rectified pinball loss."""
        options = _m_estimate_options(replace(request, proxy=request.proxy or self.proxy), sample)
        proxy = options.pop("proxy")
        joined, respondents, arguments = prepare_fit(
            sample, labels, sample.population, proxy, estimator=options["estimator"]
        )
        outcomes = joined.unit_means(joined.numbers())
        bounds = _bounds_of(sample, outcomes, joined.labelled, request)
        estimate = quantile(outcomes, self.probability, bounds=bounds, **arguments, **options)
        return respondents.complete(estimate, sample, label=self.label)

    takes_by_group: ClassVar[tuple[str, ...]] = ("population", "bounds")

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the weighted quantile of each group."""
        outcomes, labelled = _labelled_outcomes(sample, labels)
        respondents = Respondents.of(sample, labelled)
        groups, names = named_groups(sample, group)
        bounds = _bounds_of(sample, outcomes, labelled, request)
        estimates = []
        for name in names:
            estimate = weighted_quantile_estimate(
                outcomes,
                self.probability,
                respondents.weighting,
                bounds=bounds,
                member=groups[labelled] == name,
            )
            estimates.append(respondents.complete(estimate, sample, label={"domain": name}))
        return Estimates.from_rows(sample, estimates, "domains", respondents.notes)

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return β − 1(z ≤ θ̂) of the labelled units: the influence up to a factor common to all strata."""
        z, labelled = _labelled_outcomes(sample, labels)
        weights = Respondents.of(sample, labelled).weighting.weights
        theta = weighted_quantile(z, weights, self.probability)
        return LabelledInfluence(u=np.asarray(self.probability - (z <= theta), np.float64), labelled=labelled)


def _labelled_outcomes(sample: Sample, labels: object) -> tuple[FloatArray, BoolArray]:
    """Return the outcomes (m,) of the labelled units, and the mask (n,) of these among the drawn units."""
    columns, labelled = number_columns(sample, {"labels": labels})
    return columns[:, 0], labelled


def _bounds_of(
    sample: Sample, outcomes: FloatArray, labelled: BoolArray, request: Request
) -> tuple[float, float] | None:
    """Return the requested bounds, or those of the sample; raise an error for outcomes outside.

    `outcomes` (m,) are those of the labelled units, and `labelled` (n,) is their mask.
    """
    refuse_outside(outcomes, sample, labelled, "bounded", request.bounds)
    _, bounds, _ = known_outcome(sample, outcomes, None, request.bounds, labelled=labelled)
    return bounds
