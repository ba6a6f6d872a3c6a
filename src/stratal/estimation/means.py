"""Means as estimands: of the outcome, of each level of a category, of several outcomes.

The estimates are in `mean_estimates`, which is imported with the first labels. A plan needs only this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratal.arrays import NO_DIVISOR, BoolArray, FloatArray, Record, finite_vector
from stratal.designs.sample import Sample
from stratal.errors import InputError, suggest_names
from stratal.estimation.anticipated import RESIDUAL_SHARE, AnticipatedOutcome, StratificationOptions
from stratal.estimation.estimand import (
    DEFAULT_REQUEST,
    MEAN_OPTIONS,
    Estimand,
    LabelledInfluence,
    LabelledOutcomes,
    Request,
    Several,
    signed_norm,
)
from stratal.population.expressions import ByLevel, Cells, Constant, Expression, NumberColumn
from stratal.population.influence import Influence, population_means, stratum_averages
from stratal.population.population import Population
from stratal.population.rules import Categories
from stratal.proxy.history import HISTORY
from stratal.strata.proxy_intervals import CUT_METHODS

if TYPE_CHECKING:
    from stratal.estimation.estimate import Estimate
    from stratal.estimation.estimates import Estimates


@dataclass(frozen=True, slots=True, kw_only=True)
class AnticipatedMoments(Record):
    """Moments of a numeric outcome given the columns x of a unit: E[z | x] and Var(z | x), as formulas."""

    mean: Expression
    variance: Expression

    @classmethod
    def of(cls, population: Population, proxy: str | None) -> AnticipatedMoments:
        """Return the moments given a proxy, by default the first; without a proxy, mean 1/2, variance 1/4."""
        if not population.proxies:
            return cls(mean=Constant(value=0.5), variance=Constant(value=0.25))
        info = population.proxy_info(proxy)
        value: Expression = NumberColumn(name=info.name)
        if not info.scaled:
            return cls(mean=Constant(value=0.0), variance=Constant(value=1.0))
        if info.bounds is not None:
            low, high = info.bounds
            return cls(mean=value, variance=(value - low) * (high - value))
        mean_square, mean = population_means(population, [value * value, value])
        # The variance of a constant proxy may be 0 or, by rounding, less.
        proxy_variance = max(float(mean_square - mean**2), NO_DIVISOR)
        residual_variance = RESIDUAL_SHARE**2 * proxy_variance
        return cls(mean=value, variance=Constant(value=residual_variance))


@dataclass(frozen=True, slots=True)
class Mean(Estimand, kind="mean"):
    """The mean outcome.

    Parameters
    ----------
    proxy : str, optional
        The proxy of the plan. Default: the first of the population.

    Examples
    --------
    >>> Mean().text
    'mean'
    """

    of_one_outcome: ClassVar[bool] = True
    is_stored: ClassVar[bool] = False
    plan_options: ClassVar[tuple[str, ...]] = (
        *Estimand.plan_options,
        *("by", "proxy", "allocation", "residual_sd", "labels"),
    )
    proxy: str | None = None

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of z minus its mean."""
        outcome = AnticipatedMoments.of(population, self.proxy)
        value = float(population_means(population, [outcome.mean])[0])
        mean = outcome.mean - value
        return Influence(value=value, mean=mean, square=mean * mean + outcome.variance)

    takes: ClassVar[tuple[str, ...]] = MEAN_OPTIONS
    takes_by_group: ClassVar[tuple[str, ...]] = (
        *("target", "estimator", "outcome", "bounds", "limits", "predicted", "combine", "population"),
    )

    @property
    def label(self) -> dict[str, str]:
        """Empty: an estimate without a label is the mean."""
        return {}

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the mean, from outcomes, or from classes that are compared with the model's answers."""
        from stratal.estimation.mean_estimates import mean_of_labels

        if request.proxy is None and self.proxy is not None:
            request = replace(request, proxy=self.proxy)
        return mean_of_labels(sample, labels, request)

    def by(
        self, sample: Sample, labels: object, group: object, request: Request = DEFAULT_REQUEST
    ) -> Estimates:
        """Return the mean of each group."""
        from stratal.estimation.mean_estimates import means_by_group

        return means_by_group(sample, labels, group, request)

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the outcomes, which are the influence up to a constant."""
        from stratal.estimation.resolve import outcomes

        observed = outcomes(sample, labels)
        return LabelledInfluence(u=observed.z, labelled=observed.labelled)

    def labelled_outcomes(self, estimate: Estimate, labelled: BoolArray) -> LabelledOutcomes:
        """Return the outcomes whose mean is the estimate."""
        return LabelledOutcomes(
            z=estimate.evidence.z,
            labelled=labelled,
            bounds=estimate.bounds or (-np.inf, np.inf),
            binary=estimate.outcome == "binary",
        )

    def outcome_of(self, labels: object) -> FloatArray | None:
        """Return the labels: they are the outcome."""
        return finite_vector("outcome", labels)

    def anticipated(self, population: Population, options: StratificationOptions) -> AnticipatedOutcome:
        """Return the expected moments of the outcome by the proxy of the options or of the estimand."""
        proxy = options.proxy or self.proxy
        by = options.by or population.missing_proxy_group
        options = replace(options, proxy=proxy, by=by)
        anticipated = AnticipatedOutcome(
            population=population, options=options, n_proxies=len(population.proxies)
        )
        # The mean of several scores is not available for strata within categories, nor for very many units.
        divides_intervals = options.method in (None, *CUT_METHODS) and by is None
        has_several = len(population.proxies) > 1 and population.proxies[0].name != HISTORY
        if proxy is not None or not divides_intervals or not has_several:
            return anticipated
        from stratal.strata.mean_score import MAX_UNITS, MeanScore, select_scores

        if population.size > MAX_UNITS:
            return anticipated
        selection = select_scores(population, options.opposed_scores or {})
        anticipated = replace(anticipated, score_notes=selection.notes)
        if len(selection.names) > 1:
            return replace(anticipated, scores=MeanScore(population=population, names=selection.names))
        return replace(anticipated, options=replace(options, proxy=next(iter(selection.names), None)))


@dataclass(frozen=True, slots=True)
class LevelMean(Estimand, kind="level_mean", takes=(*Estimand.takes, "estimator")):
    """The mean outcome of one level of a category; a part of `LevelMeans`.

    Parameters
    ----------
    group, level : str
    proxy, predicted : str, optional
        As for `LevelMeans`.

    Examples
    --------
    >>> LevelMean("language", "de").text
    'mean@language:de'
    """

    group: str
    level: str
    proxy: str | None = None
    predicted: str | None = None

    @property
    def text(self) -> str:
        """The text form: that of `LevelMeans` with one level."""
        return self._as_level_means.text

    @property
    def _as_level_means(self) -> LevelMeans:
        """The means of a list of levels that contains only this level."""
        return LevelMeans(self.group, (self.level,), self.proxy, self.predicted)

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of 1(in the level) (z − mean of the level) / share of the level."""
        names = (f"other {self.group}", f"{self.group} {self.level}")
        cells = Cells(names=names, tests=(self._as_level_means.outside,))
        return replace(
            next(self._as_level_means.influences(population)), cells=cells, known_cells=names[:1], levels=None
        )

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the mean of the level's units."""
        return replace(self._as_level_means.estimate(sample, labels, request)[0], label=self.label)


@dataclass(frozen=True, slots=True)
class LevelMeans(Several, kind="mean@", listed_field="levels", listed_example="language"):
    """The mean outcome of every level of a category, or of the named levels.

    Parameters
    ----------
    group : str
        The group column.
    levels : tuple of str, optional
        Default: all levels. Units of other levels are not drawn for labelling.
    proxy : str, optional
        The proxy of the plan. Default: the first of the population.
    predicted : str, optional
        The column of answers if labels are classes: the outcome is whether label and answer are equal.

    Examples
    --------
    >>> LevelMeans("language").text, Estimand.parse_text("mean@language:de,en").levels
    ('mean@language', ('de', 'en'))
    """

    group: str
    levels: tuple[str, ...] = ()
    proxy: str | None = None
    predicted: str | None = None

    def __post_init__(self) -> None:
        self._set(levels=tuple(self.levels))

    @property
    def text(self) -> str:
        """The text form: `mean@language`, then the levels."""
        rest = Estimand.text.fget(self).partition(":")[2]  # type: ignore[attr-defined]
        parts = [part for part in rest.split(",") if part and not part.startswith("group=")]
        return f"{self.kind}{self.group}" + (f":{','.join(parts)}" if parts else "")

    takes: ClassVar[tuple[str, ...]] = (*Estimand.takes, "estimator")

    def parts_in(self, population: Population) -> tuple[LevelMean, ...]:
        """Return the mean of each level."""
        return self._parts(self.levels or tuple(population.levels(population.require_group(self.group))))

    def parts_of(self, sample: Sample) -> tuple[LevelMean, ...]:
        """Return the mean of each level that was drawn."""
        from stratal.estimation.resolve import group_column

        return self._parts(self.levels or tuple(np.unique(group_column(sample, self.group)).tolist()))

    def _parts(self, levels: tuple[str, ...]) -> tuple[LevelMean, ...]:
        return tuple(LevelMean(self.group, level, self.proxy, self.predicted) for level in levels)

    def influence(self, population: Population) -> Influence:
        """Return one influence for all levels, which are its cells.

        The influence of each level is divided by its expected standard deviation, as in
        `combined_influence`.
        """
        within = next(self.influences(population))
        levels = self._names(population)
        squares = self._level_averages(population, levels, within.square) * self._shares(population, levels)
        scales = 1.0 / np.sqrt(np.maximum(squares, NO_DIVISOR))
        names = tuple(f"{self.group} {level}" for level in levels)
        tests: tuple[Expression, ...] = tuple(self._by_level((level,), np.ones(1)) for level in levels)
        irrelevant_cells: tuple[str, ...] = ()
        if self.levels:
            irrelevant_cells = (f"other {self.group}",)
            names = irrelevant_cells + names
            tests = (self.outside, *tests)
        return Influence(
            value=np.nan,
            mean=self._by_level(levels, scales) * within.mean,
            square=self._by_level(levels, len(levels) * scales**2) * within.square,
            # The last cell has no test.
            cells=Cells(names=names, tests=tests[:-1]),
            known_cells=irrelevant_cells,
        )

    def influences(self, population: Population) -> Iterator[Influence]:
        """Yield one influence for all levels: (z − mean of the level) / share of the level."""
        levels = self._names(population)
        outcome = AnticipatedMoments.of(population, self.proxy)
        shares = self._shares(population, levels)
        values = self._level_averages(population, levels, outcome.mean)
        deviation = outcome.mean - self._by_level(levels, values)
        expected_square = deviation * deviation + outcome.variance
        level_numbers = self._by_level(levels, np.arange(float(len(levels))))
        yield Influence(
            value=float(values[0]) if len(levels) == 1 else np.nan,
            mean=self._by_level(levels, 1.0 / shares) * deviation,
            square=self._by_level(levels, 1.0 / shares**2) * expected_square,
            levels=replace(level_numbers, otherwise=float(len(levels))),
        )

    def _names(self, population: Population) -> tuple[str, ...]:
        return tuple(part.level for part in self.parts_in(population))

    def _by_level(self, levels: tuple[str, ...], values: FloatArray) -> ByLevel:
        """Return the formula that is values[l] (L,) for the units of level l."""
        return ByLevel(name=self.group, levels=levels, values=tuple(values.tolist()))

    def _shares(self, population: Population, levels: tuple[str, ...]) -> FloatArray:
        """Return the share of the units (L,) that is in each level."""
        counts = population.levels(population.require_group(self.group))
        absent = next((level for level in levels if level not in counts), None)
        if absent is not None:
            near = suggest_names(absent, list(counts))
            raise InputError(f"no unit has {self.group} = {absent!r}", allowed=near)
        return np.array([counts[level] for level in levels]) / population.size

    def _level_averages(
        self, population: Population, levels: tuple[str, ...], formula: Expression
    ) -> FloatArray:
        """Return the mean (L,) of a formula in each level."""
        rule = Categories.of_levels(self.group, population.levels(self.group))
        means = dict(zip(rule.levels, stratum_averages(population, rule, [formula])[:, 0], strict=True))
        # Rounded, because the strata must not depend on the last digits: engines add in different orders.
        return np.array([float(f"{means[level]:.9g}") for level in levels])

    @property
    def outside(self) -> Expression:
        """The formula that is 1 for the units of other levels than the named ones, which need no label."""
        return ByLevel(name=self.group, levels=self.levels, values=(0.0,) * len(self.levels), otherwise=1.0)

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimates:
        """Return the mean of each level."""
        from stratal.estimation.labelled_units import resolve
        from stratal.estimation.mean_estimates import group_means
        from stratal.estimation.resolve import group_column

        irrelevant = self.outside if self.levels else None
        question = sample.question.refine(predicted=self.predicted)
        units = resolve(question, sample, labels, irrelevant=irrelevant)
        names = [part.level for part in self.parts_of(sample)]
        groups = group_column(sample, self.group)
        return group_means(sample, units, self.group, groups, names, request)


@dataclass(frozen=True, slots=True)
class Means(Several, kind="means", listed_field="names"):
    """The means of several outcomes of each unit, such as fluency and adequacy.

    Parameters
    ----------
    names : tuple of str
        Names of the outcomes; labels are a mapping of these names to the labels of each.
    proxies : tuple of str, optional
        The proxy of each outcome. Default: the proxy of the same name.

    Examples
    --------
    >>> Means(("fluency", "adequacy")).text
    'means:fluency,adequacy'
    """

    names: tuple[str, ...]
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._set(names=tuple(self.names), proxies=tuple(self.proxies))
        if not self.names or (self.proxies and len(self.proxies) != len(self.names)):
            problem = "every mean must have a name, and either all means or none of them must have a proxy"
            raise InputError(
                problem, given=", ".join(self.names), action="Give as many proxies as names, or no proxies."
            )

    def parts_in(self, population: Population) -> tuple[Mean, ...]:
        """Return the mean of each outcome."""
        return tuple(Mean(proxy) for proxy in self.proxies or self.names)

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the outcomes."""
        return self.names

    def labels_of_parts(self, labels: Any, count: int) -> list[Any]:
        """Return the labels of each outcome. A unit counts as labelled if it has a label of each."""
        return [labels[name] for name in self.names]

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimates:
        """Return each mean, without a proxy, from a mapping of each outcome's name to its labels."""
        from stratal.estimation.mean_estimates import means_of_outcomes

        return means_of_outcomes(sample, labels, self.names, request.target)

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the distance of the outcomes from their means, each divided by its standard deviation."""
        from stratal.estimation.resolve import named_columns

        z, labelled = named_columns(sample, labels, self.names)
        # The deviations of an outcome that does not vary are 0; the divisor then only avoids 0 / 0.
        standardised = (z - z.mean(axis=0)) / np.maximum(z.std(axis=0), 1e-12)
        return LabelledInfluence(u=signed_norm(standardised), labelled=labelled)
