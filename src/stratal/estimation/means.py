"""Means as estimands: of the outcome, of each level of a category, of several outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import NO_DIVISOR, AnyArray, BoolArray, FloatArray, Record, finite_vector
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError, check_choice, finite_bounds, list_first, suggest_names
from stratal.estimation.anticipated import RESIDUAL_SHARE, AnticipatedOutcome, StratificationOptions
from stratal.estimation.composite import composite
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimand import (
    MEAN_OPTIONS,
    PLAIN,
    Estimand,
    LabelledInfluence,
    LabelledOutcomes,
    Request,
    Several,
    signed_norm,
)
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.group_means import MAX_STORED_GROUPS, GroupMeans, group_codes
from stratal.estimation.labelled_units import LabelledUnits, resolve
from stratal.estimation.lam import domain_lam
from stratal.estimation.outcome_means import MINIMUM_FOR_FITTING, outcome_mean
from stratal.estimation.resolve import group_column, named_columns, named_groups, outcomes
from stratal.estimation.respondents import Respondents, known_outcome
from stratal.intervals.evidence import infer_outcome
from stratal.intervals.interval import UNSEEN_PROBABILITY, max_unseen_share
from stratal.population.expressions import ByLevel, Cells, Constant, Expression, NumberColumn
from stratal.population.influence import Influence, population_means, stratum_averages
from stratal.population.population import Population
from stratal.population.rules import Categories
from stratal.proxy.history import HISTORY
from stratal.strata.mean_score import MAX_UNITS, MeanScore, select_scores
from stratal.strata.proxy_intervals import CUT_METHODS

_ALL_UNITS = Cells(names=("all",))


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
    recorded: ClassVar[bool] = False
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
        return Influence(value=value, mean=mean, square=mean * mean + outcome.variance, cells=_ALL_UNITS)

    takes: ClassVar[tuple[str, ...]] = MEAN_OPTIONS
    takes_by_group: ClassVar[tuple[str, ...]] = (
        *("target", "estimator", "outcome", "bounds", "limits", "predicted", "combine", "population"),
    )

    @property
    def label(self) -> dict[str, str]:
        """Empty: an estimate without a label is the mean."""
        return {}

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the mean, from outcomes, or from classes that are compared with the model's answers."""
        if request.proxy is None and self.proxy is not None:
            request = replace(request, proxy=self.proxy)
        question = sample.question.refine(predicted=request.predicted)
        units = resolve(question, sample, labels, combine=request.combine)
        limits = request.limits
        if limits is None:
            return outcome_mean(sample, units, request)
        winsorised = units.with_outcomes(winsorise(units.z, limits))
        estimate = outcome_mean(sample, winsorised, replace(request, outcome="bounded", bounds=limits))
        return replace(estimate, remarks=(_winsorised_note(estimate, units.z, limits), *estimate.remarks))

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return the mean of each group."""
        question = sample.question.refine(predicted=request.predicted)
        units = resolve(question, sample, labels, combine=request.combine)
        groups, names = named_groups(sample, group)
        if request.limits is not None:
            units = units.with_outcomes(winsorise(units.z, request.limits))
            request = replace(request, outcome="bounded", bounds=request.limits)
        estimates = _group_means(sample, units, group, groups, names, request)
        notes = (*_undrawn_group_notes(sample, group, names), *units.outcomes.notes)
        return replace(estimates, remarks=(*estimates.remarks, *notes))

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the outcomes, which are the influence up to a constant."""
        observed = outcomes(sample, labels)
        return LabelledInfluence(u=observed.z, labelled=observed.labelled)

    def labelled_outcomes(self, estimate: Estimate, labelled: BoolArray) -> LabelledOutcomes:
        """Return the outcomes whose mean is the estimate."""
        return LabelledOutcomes(
            z=estimate.evidence.z,
            labelled=labelled,
            bounds=(-np.inf, np.inf) if estimate.bounds is None else estimate.bounds,
            binary=estimate.outcome == "binary",
        )

    def outcome_of(self, labels: object) -> FloatArray | None:
        """Return the labels: they are the outcome."""
        return finite_vector("outcome", labels)

    def anticipated(self, population: Population, options: StratificationOptions) -> AnticipatedOutcome:
        """Return the expected moments of the outcome by the proxy of the options or of the estimand."""
        proxy = options.proxy or self.proxy
        by = options.by or population.own_stratum
        options = replace(options, proxy=proxy, by=by)
        anticipated = AnticipatedOutcome(
            population=population, options=options, n_proxies=len(population.proxies)
        )
        # The mean of several scores is not available for strata within categories, nor for very many units.
        divides_intervals = options.method in (None, *CUT_METHODS) and by is None
        has_several = len(population.proxies) > 1 and population.proxies[0].name != HISTORY
        if proxy is not None or not divides_intervals or not has_several or population.size > MAX_UNITS:
            return anticipated
        selection = select_scores(population, options.opposed_scores or {})
        anticipated = replace(anticipated, score_notes=selection.notes)
        if len(selection.names) > 1:
            return replace(anticipated, scores=MeanScore(population=population, names=selection.names))
        return replace(anticipated, options=replace(options, proxy=next(iter(selection.names), None)))


def winsorise(z: FloatArray, limits: tuple[float, float]) -> FloatArray:
    """Return the outcomes (m,), with each outcome beyond a limit replaced by this limit."""
    limits = finite_bounds(limits, "limits")
    return np.clip(z, *limits)


def _winsorised_note(estimate: Estimate, z: FloatArray, limits: tuple[float, float]) -> str:
    """Return the note on the effect of the limits."""
    low, high = limits
    n_beyond = int(np.sum((z < low) | (z > high)))
    weighting = estimate.evidence.weighting
    change = float(weighting.weights @ (np.clip(z, low, high) - z)) / weighting.total
    labelled_share = len(z) / weighting.population_size
    unseen = float(max_unseen_share(weighting.effective_draws, labelled_share, UNSEEN_PROBABILITY))
    return (
        f"values outside {low:g} to {high:g} count as the limit ({n_beyond} of {len(z)} labels), which moves "
        f"the mean by {change:+.4g}. The mean without limits differs by this much, or by more if units that "
        f"no labelled unit resembles (at most {unseen:.1%} of all units) are also outside the limits"
    )


def _group_means(
    sample: Sample,
    units: LabelledUnits,
    group: object,
    groups: AnyArray,
    names: Sequence[str],
    request: Request,
) -> Estimates:
    """Return the mean of each named group; `groups` (n,) are the groups of the drawn units."""
    check_choice("estimator of groups", request.estimator, _ESTIMATORS_OF_GROUPS)
    z = units.z
    respondents = units.respondents
    groups = groups[units.labelled]
    outcome, bounds, _ = known_outcome(sample, z, request.outcome, request.bounds, units.outcomes)
    _, limits = infer_outcome(z, outcome, bounds)
    fitted = None
    if request.estimator != "horvitz-thompson":
        fitted = domain_residuals(sample, group, units.labelled, z, groups, respondents.weighting)
    rows: Sequence[Estimate] = GroupMeans(
        z=z,
        codes=group_codes(groups.tolist(), names),
        names=tuple(names),
        sample=sample,
        respondents=respondents,
        limits=limits,
        target=request.target,
        proxy_residuals=None if fitted is None else fitted[:2],
        lam={} if fitted is None else fitted[2],
    )
    if len(rows) <= MAX_STORED_GROUPS:
        rows = tuple(rows)
    description = f" by {group}" if isinstance(group, str) else ""
    unused = (_UNUSED_PROXY_NOTE,) if request.estimator == "ppi++" and fitted is None else ()
    table = Estimates.from_rows(sample, rows, "domains", (*respondents.notes, *unused), description)
    if request.estimator == "composite":
        return composite(table)
    return table


_UNUSED_PROXY_NOTE = (
    "estimator 'ppi++' used no proxy in the groups: it requires a proxy on the outcome's scale whose mean "
    "is known in every group, and 50 labels for each proxy"
)


def domain_residuals(
    sample: Sample, group: object, labelled: BoolArray, z: FloatArray, groups: AnyArray, weighting: Weighting
) -> tuple[FloatArray, float, dict[str, tuple[float, ...]]] | None:
    """Return z − λ (ẑ − mean of ẑ in the unit's domain) (m,), the factor of variances for fitting λ, and λ.

    The weighted mean of these residuals in a domain is the model-assisted estimate of its mean of z (Särndal,
    Swensson & Wretman 1992, section 10.6). It is unbiased to first order for any λ.

    Parameters
    ----------
    sample : Sample
    group : object
        The column of the domains. The mean proxies of groups that are not a column are unknown.
    labelled : bool (n,)
    z : float (m,)
        Outcomes of the labelled units.
    groups : (m,)
        Domain of each labelled unit.
    weighting : Weighting
        Weighting of the labelled units.

    Returns
    -------
    residuals, factor, λ of each domain; or None
        λ has an entry for each proxy of the sample. None without a proxy on the outcome's scale, if its mean
        in a domain is unknown, and with fewer than 50 labels per proxy.
    """
    columns = [k for k, info in enumerate(sample.proxy_info) if info.scaled]
    known_means = sample.means_of_levels.get(group, {}) if isinstance(group, str) else {}
    # There are too few clusters to fit λ to their totals.
    if weighting.unit_clusters is not None and weighting.draws < sample.design.hajek_below * len(columns):
        return None
    if (
        not columns
        or len(z) < MINIMUM_FOR_FITTING * len(columns)
        or not {*groups.tolist()} <= {*known_means, None}
    ):
        return None
    levels, codes = np.unique([str(name) for name in groups], return_inverse=True)
    unknown_means = [np.nan] * len(sample.proxy_info)
    means = np.array([known_means.get(name, unknown_means) for name in levels])[:, columns]
    x = sample.proxies[labelled][:, columns]
    weights = np.abs(weighting.weights)
    total = np.bincount(codes, weights)
    variables = np.column_stack([z, x])
    centres = np.stack([np.bincount(codes, weights * variable) / total for variable in variables.T], axis=1)
    deviations = (variables - centres[codes]) * np.sqrt(weights)[:, None]
    outcome_deviations = deviations[:, 0]
    proxy_deviations = deviations[:, 1:]
    cross_products = proxy_deviations.T @ outcome_deviations
    proxy_products = proxy_deviations.T @ proxy_deviations
    df = len(z) - len(levels)
    # With fewer degrees of freedom, the factor of variances for fitting λ would exceed 2.
    if df <= 2 * len(columns):
        return None
    lam = domain_lam(cross_products, proxy_products, df)
    # The residual of a unit without a domain is not used, and is set to its outcome.
    domain_means = np.where(np.isnan(means[codes]), x, means[codes])
    # In a domain, λẑ may be mostly noise. Its share of the variance of z is limited to that over all units.
    proxy_squares = np.bincount(codes, (proxy_deviations @ lam) ** 2)
    outcome_squares = np.bincount(codes, outcome_deviations**2)
    share = float(lam @ cross_products) / max(float(outcome_squares.sum()), NO_DIVISOR)
    factor = np.sqrt(np.minimum(share * outcome_squares / np.maximum(proxy_squares, NO_DIVISOR), 1.0))
    lam_of_domains = np.zeros((len(levels), len(sample.proxy_info)))
    lam_of_domains[:, columns] = factor[:, None] * lam
    by_level = {str(name): tuple(row) for name, row in zip(levels, lam_of_domains.tolist(), strict=True)}
    residuals = z - factor[codes] * ((x - domain_means) @ lam)
    return residuals, df / (df - len(columns)), by_level


def _undrawn_group_notes(sample: Sample, group: object, names: Sequence[str]) -> list[str]:
    """Return a note on the groups without a drawn unit."""
    level_sizes = sample.totals.get(group, {}) if isinstance(group, str) else {}
    missing = sorted(map(str, level_sizes.keys() - {*names}))
    if not missing:
        return []
    return [f"no unit was drawn from {group} {list_first(map(repr, missing), _MAX_GROUPS_NAMED)}"]


# With more names, a note would be longer than a line.
_MAX_GROUPS_NAMED = 5

# "auto" is "ppi++" if there is a proxy: one λ over all groups.
_ESTIMATORS_OF_GROUPS = ("auto", "ppi++", "horvitz-thompson", "composite")


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

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the mean of the level's units."""
        return replace(self._as_level_means.estimate(sample, labels, request)[0], label=self.label)


@dataclass(frozen=True, slots=True)
class LevelMeans(Several, kind="mean@", listed="levels", shown="language"):
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
        return Influence(
            value=np.nan,
            mean=self._by_level(levels, scales) * within.mean,
            square=self._by_level(levels, len(levels) * scales**2) * within.square,
            cells=Cells(names=names, tests=((self.outside,) * len(irrelevant_cells) + tests)[:-1]),
            known_cells=irrelevant_cells,
        )

    def influences(self, population: Population) -> Iterator[Influence]:
        """Yield one influence for all levels: (z − mean of the level) / share of the level."""
        levels = self._names(population)
        outcome = AnticipatedMoments.of(population, self.proxy)
        shares = self._shares(population, levels)
        values = self._level_averages(population, levels, outcome.mean)
        deviation = outcome.mean - self._by_level(levels, values)
        level_numbers = self._by_level(levels, np.arange(float(len(levels))))
        yield Influence(
            value=float(values[0]) if len(levels) == 1 else np.nan,
            mean=self._by_level(levels, 1.0 / shares) * deviation,
            square=self._by_level(levels, 1.0 / shares**2) * (deviation * deviation + outcome.variance),
            cells=_ALL_UNITS,
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

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimates:
        """Return the mean of each level."""
        irrelevant = self.outside if self.levels else None
        question = sample.question.refine(predicted=self.predicted)
        units = resolve(question, sample, labels, irrelevant=irrelevant)
        names = [part.level for part in self.parts_of(sample)]
        groups = group_column(sample, self.group)
        return _group_means(sample, units, self.group, groups, names, request)


@dataclass(frozen=True, slots=True)
class Means(Several, kind="means", listed="names"):
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

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimates:
        """Return each mean, without a proxy, from a mapping of each outcome's name to its labels."""
        z, labelled = named_columns(sample, labels, self.names)
        respondents = Respondents.of(sample, labelled)
        all_units = np.ones(len(z), dtype=bool)
        rows = []
        for name, column in zip(self.names, z.T, strict=True):
            kind, bounds, _ = known_outcome(sample, column, labelled=labelled)
            _, limits = infer_outcome(column, kind, bounds)
            estimate = domain_mean(
                column, all_units, respondents.weighting, bounds=limits, target=request.target
            )
            rows.append(respondents.complete(estimate, sample, label={"outcome": name}))
        return Estimates.from_rows(sample, rows, "outcomes", respondents.notes)

    def labelled_influence(self, sample: Sample, labels: object) -> LabelledInfluence:
        """Return the distance of the outcomes from their means, each divided by its standard deviation."""
        z, labelled = named_columns(sample, labels, self.names)
        # The deviations of an outcome that does not vary are 0; the divisor then only avoids 0 / 0.
        standardised = (z - z.mean(axis=0)) / np.maximum(z.std(axis=0), 1e-12)
        return LabelledInfluence(u=signed_norm(standardised), labelled=labelled)
