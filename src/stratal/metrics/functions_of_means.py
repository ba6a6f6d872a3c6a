"""Ratios and other smooth functions of the means of several outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray, divide
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, Request
from stratal.estimation.estimate import Estimate, linearised_estimate, undefined_estimate
from stratal.estimation.linearised import (
    Linearised,
    df_of_variable,
    domain_units,
    ratio_of_means,
    smooth_mean_function,
    superpopulation_variance,
    target_covariance,
    target_df,
)
from stratal.estimation.resolve import named_columns
from stratal.estimation.respondents import Respondents
from stratal.intervals.guards import ROUNDING
from stratal.intervals.interval import Interval, two_sided_level
from stratal.intervals.interval_types import OffsetInterval, StudentInterval
from stratal.intervals.proportion import skewnesses_of, student_t
from stratal.report.notes import Note

# Distances from the ratio, in standard errors, of a first search for its limits.
_SEARCH_DISTANCES = np.geomspace(1e-3, 1e4, 128)
# The step with the limit is divided into 16 parts, 9 times: 16⁹ parts are finer than 1e-10 of the step.
_STEP_FRACTIONS = np.arange(1, 17) / 16.0
_N_REFINEMENTS = 9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FiellerInterval(OffsetInterval):
    """Fieller's interval of a ratio of two means: all ratios ρ for which the mean of a − ρb may be 0.

    Parameters
    ----------
    value : float
        The ratio.
    standard_error : float
        By linearisation, as the unit of the search for the limits.
    means : float (2,)
        Means of numerator and denominator.
    covariance : float (2, 2)
        Covariance of these means, for the requested target.
    degrees_of_freedom : float
    variables : float (n, 2)
        Numerator and denominator of the labelled units.
    weighting : Weighting
    has_one_sign : bool
        Whether no two denominators have different signs.
    """

    standard_error: float
    means: FloatArray
    covariance: FloatArray
    degrees_of_freedom: float
    variables: FloatArray
    weighting: Weighting
    has_one_sign: bool

    @classmethod
    def of(
        cls, numerator: FloatArray, denominator: FloatArray, weighting: Weighting, target: str = "population"
    ) -> FiellerInterval:
        """Return the ratio of two variables (n,) of labelled units; the denominator's mean is not 0."""
        variables = np.column_stack([numerator, denominator])
        means = weighting.mean(variables)
        value = float(means[0] / means[1])
        coefficients = np.array([1.0, -value])
        residuals = variables @ coefficients
        members = domain_units(residuals, weighting)
        # A ratio does not depend on the number of clusters of the domain in the sample, but both means do.
        mean_part = mean_cluster_part(denominator, weighting, members)
        variables = variables - mean_part[:, None] * [value, 1.0]
        covariance = target_covariance(variables, weighting, target)
        # `target_covariance` has no correction for few clusters.
        covariance = covariance * weighting.few_clusters_factor(residuals, members, is_cr2_corrected=False)
        variance = float(coefficients @ covariance @ coefficients)
        # The part of the variance that is due to the draw of the population from a superpopulation.
        population_variance = superpopulation_variance(residuals, weighting, target)
        design_variance = variance - population_variance
        df = df_of_variable(residuals, weighting)
        df = target_df(df, residuals, weighting, design_variance, population_variance)
        standard_error = np.sqrt(max(variance, 0.0)) / abs(means[1])
        has_one_sign = np.all(denominator >= 0) or np.all(denominator <= 0)
        return cls(
            value=value,
            standard_error=float(standard_error),
            means=means,
            covariance=covariance,
            degrees_of_freedom=max(df, 1.0),
            variables=variables,
            weighting=weighting,
            has_one_sign=bool(has_one_sign),
        )

    method = "fieller"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the ratio, each with this error."""
        # If the mean denominator may be 0, every ratio is possible.
        if not self.has_one_sign and not self._excludes_zero(np.array([[0.0, 1.0]]), error)[0]:
            return np.inf, np.inf
        return self._limit_distance(-1.0, error), self._limit_distance(1.0, error)

    def _limit_distance(self, side: float, error: float) -> float:
        """Return the distance to the first excluded ratio below (`side` −1) or above (1) the estimate."""
        steps = _SEARCH_DISTANCES * self.standard_error
        is_excluded = self._excludes_ratios(self.value + side * steps, error)
        # Ten thousand standard errors away, nothing is excluded: the limit is infinite.
        if not np.any(is_excluded):
            return float("inf")
        first = int(np.argmax(is_excluded))
        near = steps[first - 1] if first else 0.0
        far = steps[first]
        for _ in range(_N_REFINEMENTS):
            distances = near + (far - near) * _STEP_FRACTIONS
            # The last distance is known to be excluded.
            is_excluded = self._excludes_ratios(self.value + side * distances[:-1], error)
            first = int(np.argmax(np.append(is_excluded, True)))
            near = distances[first - 1] if first else near
            far = distances[first]
        return float(far)

    def _excludes_ratios(self, ratios: FloatArray, error: float) -> BoolArray:
        """Return whether the mean of a − ρb differs significantly from 0 (m,)."""
        return self._excludes_zero(np.column_stack([np.ones_like(ratios), -ratios]), error)

    def _excludes_zero(self, coefficients: FloatArray, error: float) -> BoolArray:
        """Return whether linear combinations (m, 2) of both means differ significantly from 0 (m,)."""
        variances = np.einsum("mi,ij,mj->m", coefficients, self.covariance, coefficients)
        standard_errors = np.sqrt(np.maximum(variances, 0.0))
        skewnesses = skewnesses_of(self.variables @ coefficients.T, self.weighting)
        low, high = student_t(
            coefficients @ self.means,
            standard_errors,
            skewness=skewnesses,
            degrees_of_freedom=self.degrees_of_freedom,
            confidence_level=two_sided_level(error),
        )
        return np.asarray((low > 0) | (high < 0))


def mean_cluster_part(variable: FloatArray, weighting: Weighting, members: BoolArray | None) -> FloatArray:
    """Return the part of a variable (n,) whose total is the same in every cluster with units of a domain.

    It is the mean total of these clusters in a stratum, divided by the weight of each cluster. The number of
    drawn clusters with units of the domain is random, but a ratio does not depend on it. Without this part,
    the denominator varies only with the totals of these clusters. It is 0 for designs without clusters.
    `members` (n,) are the units of the domain.
    """
    clusters = weighting.group_clusters(members)
    if clusters is None or members is None:
        return np.zeros(len(variable))
    cluster = clusters.cluster
    weights = weighting.weights * members
    totals = np.bincount(cluster, weights * variable)
    sizes = np.bincount(cluster, weights)
    stratum = np.zeros(len(totals), dtype=np.int64)
    stratum[cluster] = weighting.primary_strata
    in_domain = sizes > 0
    counts = np.bincount(stratum, in_domain)
    means = np.bincount(stratum, totals * in_domain) / np.maximum(counts, 1.0)
    per_weight = divide(means[stratum], sizes, where=in_domain, otherwise=0.0)
    return np.asarray(per_weight[cluster] * members)


class OutcomesEstimand(Estimand):
    """A function of the means of several outcomes; labels map each outcome's name to its labels."""

    __slots__ = ()

    names: Sequence[str]

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the outcomes."""
        return tuple(self.names)

    def _outcomes(self, sample: Sample, labels: object) -> tuple[FloatArray, Respondents, BoolArray]:
        """Return the outcomes (m, q) of the units that have all, these units, and their mask (n,)."""
        columns, labelled = named_columns(sample, labels, tuple(self.names))
        return columns, Respondents.of(sample, labelled), labelled

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have all outcomes."""
        return self._outcomes(sample, labels)[2]


# `listed` is the field after the colon in the text form, as in `ratio_of_means:errors,words`.
@dataclass(frozen=True, slots=True)
class RatioOfMeans(OutcomesEstimand, kind="ratio_of_means", listed_field="names"):
    """The ratio of the means of two outcomes, such as errors per answer word.

    The interval is Fieller's, which is valid for few and skewed labels. A limit is infinite if the mean of
    the denominator does not differ significantly from 0.

    Parameters
    ----------
    names : (str, str)
        Names of numerator and denominator in the labels.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 60)
    >>> sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=7)
    >>> labels = {"errors": [1, 2, 3, 4], "words": [2, 4, 6, 8]}
    >>> stratal.estimate(sample, labels, estimand=RatioOfMeans(["errors", "words"])).value
    0.5
    """

    names: Sequence[str]

    def __post_init__(self) -> None:
        self._set(names=tuple(self.names))
        if len(set(self.names)) != 2:
            raise InputError(
                "a ratio requires two outcomes", given=", ".join(self.names), allowed="numerator, denominator"
            )

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the ratio."""
        columns, respondents, _ = self._outcomes(sample, labels)
        weighting = respondents.weighting
        target = request.target
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite ratio raises an error below
            result = ratio_of_means(columns[:, 0], columns[:, 1], weighting, target)
        lower_bound = 0.0 if np.all(columns >= 0) else -np.inf
        bounds = (lower_bound, np.inf)
        if not np.any(columns[:, 1]):
            note = Note(
                "undefined", f"no labelled unit counts towards {self.names[1]!r}, so there is no ratio"
            )
            n_counted = 0
            undefined = undefined_estimate(weighting, n_counted, bounds, note, target=target)
            return respondents.complete(undefined, sample, label=self.label)
        if not np.isfinite(result.value):
            action = "Check the denominator, or label units in which it is not 0."
            raise InputError("the denominator's mean is 0, so there is no ratio", action=action)
        _require_standard_error(result, len(columns), "ratio")
        interval: Interval | None = None
        if weighting.census and target == "population":
            interval = StudentInterval(value=result.value, standard_error=0.0, degrees_of_freedom=np.inf)
        # Equal labels, or a single one, have no interval, as for any outcome without bounds.
        elif np.isfinite(result.variance) and result.variance > ROUNDING * result.value**2:
            fieller = FiellerInterval.of(columns[:, 0], columns[:, 1], weighting, target)
            interval = replace(fieller, bounds=bounds)
        estimate = linearised_estimate(result, weighting, interval=interval, target=target)
        return respondents.complete(estimate, sample, label=self.label)


@dataclass(frozen=True, slots=True, eq=False)
class MeanFunction(OutcomesEstimand, kind="function", listed_field="names"):
    """Any smooth function of the means of several outcomes; its variance is computed by linearisation.

    Parameters
    ----------
    function : callable
        Receives the means as keyword arguments with the names of the outcomes, and returns a number.
    names : sequence of str
        The outcomes.
    bounds : (float, float), optional
        Bounds of the function, which also limit the interval.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 60)
    >>> sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=7)
    >>> spread = MeanFunction(lambda z, square: (square - z**2) ** 0.5, ["z", "square"])
    >>> labels = {"z": [1, 2, 3, 4], "square": [1, 4, 9, 16]}
    >>> round(stratal.estimate(sample, labels, estimand=spread).value, 4)
    1.118
    """

    function: Callable[..., float]
    names: Sequence[str]
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._set(names=tuple(self.names))
        if not self.names or not callable(self.function):
            problem = "a function of means requires a callable and the names of its outcomes"
            raise InputError(problem, action="Write MeanFunction(function, ['z', 'square']).")

    @property
    def text(self) -> str:
        """The kind with the outcomes; a function has no text."""
        return f"{self.kind}:{','.join(self.names)}"

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the function's value at the estimated means."""
        columns, respondents, _ = self._outcomes(sample, labels)

        def value_at(means: FloatArray) -> float:
            means_by_name = dict(zip(self.names, means.tolist(), strict=True))
            return float(self.function(**means_by_name))

        result = smooth_mean_function(columns, value_at, respondents.weighting, target=request.target)
        _require_standard_error(result, len(columns), "function")
        estimate = linearised_estimate(
            result, respondents.weighting, bounds=self.bounds, target=request.target
        )
        return respondents.complete(estimate, sample, label=self.label)


def _require_standard_error(result: Linearised, n: int, quantity: str) -> None:
    """Raise an error if the standard error of a result from n labels is unknown."""
    if not np.isfinite(result.standard_error):
        labels_text = f"{n} label{'s' if n > 1 else ''}, value {result.value:g}"
        action = "Label at least 2 units, or rescale values that are far from 1."
        raise InputError(
            f"the standard error of the {quantity} cannot be estimated", given=labels_text, action=action
        )
