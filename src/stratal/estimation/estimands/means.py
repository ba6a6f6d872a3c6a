"""Means as estimands: of the outcome, of each level of a category, of several outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray, Record
from stratal.errors import InputError, near_names
from stratal.estimation.anticipated import RESIDUAL_SHARE, AnticipatedOutcome, Division
from stratal.estimation.columns import group_column, number_columns
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimand import Estimand, LabelledInfluence, Several
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimate_table import EstimateTable, title_of
from stratal.estimation.evaluation import estimate
from stratal.estimation.quantity import Quantity
from stratal.estimation.respondents import Respondents, known_outcome, outcomes, said
from stratal.intervals.evidence import infer_outcome
from stratal.labels.labels import join
from stratal.population.cells import Cells
from stratal.population.expressions import ByLevel, Constant, Expression, Number
from stratal.population.influence import Influence, InfluenceOfLevels, averages, stratum_averages
from stratal.population.population import Population
from stratal.population.rules.rule import Categories
from stratal.sampling.sample import Sample

_EVERYONE = Cells(names=("all",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook(Record):
    """What a proxy says of a numeric outcome: E[z | x] and Var(z | x), as formulas.

    Examples
    --------
    >>> Outlook.of(Population.from_arrays(proxy=[0.5, 0.7]), None).mean.columns
    ('proxy',)
    """

    mean: Expression
    variance: Expression

    @classmethod
    def of(cls, population: Population, proxy: str | None) -> Outlook:
        """Return the outlook of a proxy, the first unless named; of nothing where there is none."""
        if not population.proxies:
            return cls(mean=Constant(value=0.5), variance=Constant(value=0.25))
        info = population.proxy_info(proxy)
        value: Expression = Number(name=info.name)
        if not info.scaled:
            return cls(mean=Constant(value=0.0), variance=Constant(value=1.0))
        if info.bounds is not None:
            low, high = info.bounds
            return cls(mean=value, variance=(value - low) * (high - value))
        spread, centre = averages(population, [value * value, value])
        left = RESIDUAL_SHARE**2 * max(float(spread - centre**2), 1e-300)
        return cls(mean=value, variance=Constant(value=left))


@dataclass(frozen=True, slots=True)
class Mean(Estimand):
    """The mean outcome.

    Parameters
    ----------
    proxy : str, optional
        The proxy to plan with; the population's first unless named.

    Examples
    --------
    >>> Mean().text
    'mean'
    """

    kind: ClassVar[str] = "mean"
    recorded: ClassVar[bool] = False
    plan_options: ClassVar[tuple[str, ...]] = (
        *Estimand.plan_options,
        *("by", "proxy", "allocation", "residual_sd", "labels"),
    )
    proxy: str | None = None

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of z less its mean."""
        told = Outlook.of(population, self.proxy)
        value = float(averages(population, [told.mean])[0])
        mean = told.mean - value
        return Influence(value=value, mean=mean, square=mean * mean + told.variance, cells=_EVERYONE)

    def estimate(self, sample: Sample, labels: Any, target: str = "population") -> Estimate:
        """Return the mean, as `stratal.estimate` gives it without an estimand."""
        return estimate(sample, labels, estimand=self, proxy=self.proxy, target=target)

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the outcomes of the labelled units."""
        z, labelled = outcomes_of(sample, labels, None)
        return LabelledInfluence(u=z, labelled=labelled)

    def anticipated(self, population: Population, asked: Division) -> AnticipatedOutcome:
        """Return what a proxy says of the outcome: the one that was asked for, or else its own."""
        known = population.contents
        asked = replace(asked, proxy=asked.proxy or self.proxy, by=asked.by or known.own_stratum)
        return AnticipatedOutcome(population=population, asked=asked, n_proxies=len(known.proxies))


def outcomes_of(sample: Sample, labels: Any, predicted: str | None) -> tuple[FloatArray, BoolArray]:
    """Return z (m,) of the labelled units, and which of the drawn ones these are (n,).

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=2).draw(Population.from_arrays(proxy=[0.5, 0.7]), seed=7)
    >>> outcomes_of(sample, {0: 1.0}, None)[0]
    array([1.])
    """
    joined = said(join(sample, labels), predicted or False)
    return outcomes(sample, joined, predicted or False), joined.labelled


@dataclass(frozen=True, slots=True)
class LevelMean(Estimand):
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

    kind: ClassVar[str] = "level_mean"
    group: str
    level: str
    proxy: str | None = None
    predicted: str | None = None

    @property
    def text(self) -> str:
        """The text form: that of the means of the levels that are named, of which there is one."""
        return LevelMeans(self.group, (self.level,), self.proxy, self.predicted).text

    @property
    def outside(self) -> Expression:
        """The formula that is 1 for the units of other levels, which do not matter."""
        return ByLevel(name=self.group, levels=(self.level,), values=(0.0,), otherwise=1.0)

    def influence(self, population: Population) -> Influence:
        """Return the conditional moments of 1(in the level) (z − mean there) / share of the level."""
        counts = population.levels(population.require_group(self.group))
        _require_level(self.group, self.level, counts)
        told = Outlook.of(population, self.proxy)
        share = counts[self.level] / population.size
        inside = ByLevel(name=self.group, levels=(self.level,), values=(1.0,))
        value = float(averages(population, [inside * told.mean])[0]) / share
        gap = told.mean - value
        return Influence(
            value=value,
            mean=(1.0 / share) * inside * gap,
            square=(1.0 / share**2) * inside * (gap * gap + told.variance),
            cells=Cells(names=(f"other {self.group}", f"{self.group} {self.level}"), tests=(self.outside,)),
            known=(f"other {self.group}",),
        )

    def _means(self, sample: Sample, labels: Any, target: str) -> tuple[Quantity, FloatArray, BoolArray]:
        z, labelled = outcomes_of(sample, labels, self.predicted)
        frame = Respondents.of(sample, labelled, self.outside)
        kind, bounds, _ = known_outcome(sample, z)
        _, limits = infer_outcome(z, kind, bounds)
        member = group_column(sample, self.group)[labelled] == self.level
        quantity, linearised = domain_mean(z, member, frame.weighting, bounds=limits, target=target)
        return quantity, linearised.variable, labelled

    def estimate(self, sample: Sample, labels: Any, target: str = "population") -> Quantity:
        """Return the mean of the level."""
        return self._means(sample, labels, target)[0]

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return the level's linearised variable on the labelled units."""
        _, variable, labelled = self._means(sample, labels, "population")
        return LabelledInfluence(u=np.nan_to_num(variable), labelled=labelled)


def _require_level(group: str, level: str, counts: Mapping[str, int]) -> None:
    if level not in counts:
        raise InputError(f"no unit has {group} = {level!r}", allowed=near_names(level, list(counts)))


@dataclass(frozen=True, slots=True)
class LevelMeans(Several):
    """The mean outcome of every level of a category, or of those that are named.

    Parameters
    ----------
    group : str
        The group column.
    levels : tuple of str, optional
        All of them unless given. Units of others are not asked about, and get no label.
    proxy : str, optional
        The proxy to plan with; the population's first unless named.
    predicted : str, optional
        Labels are classes: the outcome is whether they equal this column of answers.

    Examples
    --------
    >>> LevelMeans("language").text, Estimand.parse_text("mean@language:de,en").levels
    ('mean@language', ('de', 'en'))
    """

    kind: ClassVar[str] = "mean@"
    listed: ClassVar[str] = "levels"
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

    @classmethod
    def example(cls) -> str:
        """Return an example of the text form."""
        return "mean@language"

    def parts_in(self, population: Population) -> tuple[LevelMean, ...]:
        """Return the mean of each level."""
        return self._parts(self.levels or tuple(population.levels(population.require_group(self.group))))

    def parts_of(self, sample: Sample) -> tuple[LevelMean, ...]:
        """Return the mean of each level that was drawn."""
        return self._parts(self.levels or tuple(np.unique(group_column(sample, self.group)).tolist()))

    def _parts(self, levels: tuple[str, ...]) -> tuple[LevelMean, ...]:
        return tuple(LevelMean(self.group, level, self.proxy, self.predicted) for level in levels)

    def influence(self, population: Population) -> Influence:
        """Return the moments of all levels' influences as one; the levels are the cells.

        Each is divided by the deviation that it is expected to have, as in `together`.
        """
        found = next(self.influences(population))
        within, levels = found.within, found.levels
        squares = self._of_levels(population, levels, within.square) * self._shares(population, levels)
        scales = 1.0 / np.sqrt(np.maximum(squares, 1e-300))
        names = tuple(f"{self.group} {level}" for level in levels)
        tests: tuple[Expression, ...] = tuple(self._by_level((level,), np.ones(1)) for level in levels)
        known: tuple[str, ...] = ()
        if self.levels:
            known = (f"other {self.group}",)
            names = known + names
        return Influence(
            value=np.nan,
            mean=self._by_level(levels, scales) * within.mean,
            square=self._by_level(levels, len(levels) * scales**2) * within.square,
            cells=Cells(names=names, tests=((self._outside,) * len(known) + tests)[:-1]),
            known=known,
        )

    def influences(self, population: Population) -> Iterator[InfluenceOfLevels]:
        """Yield the influences of all levels as one: (z − mean there) / share of the level."""
        levels = tuple(part.level for part in self.parts_in(population))
        told, shares = Outlook.of(population, self.proxy), self._shares(population, levels)
        values = self._of_levels(population, levels, told.mean)
        gap = told.mean - self._by_level(levels, values)
        within = Influence(
            value=0.0,
            mean=self._by_level(levels, 1.0 / shares) * gap,
            square=self._by_level(levels, 1.0 / shares**2) * (gap * gap + told.variance),
            cells=_EVERYONE,
        )
        yield InfluenceOfLevels(group=self.group, levels=levels, within=within)

    def _by_level(self, levels: tuple[str, ...], values: FloatArray) -> ByLevel:
        return ByLevel(name=self.group, levels=levels, values=tuple(values.tolist()))

    def _shares(self, population: Population, levels: tuple[str, ...]) -> FloatArray:
        """Return the share of the units (L,) that is in each level."""
        counts = population.levels(population.require_group(self.group))
        for level in levels:
            _require_level(self.group, level, counts)
        return np.array([counts[level] for level in levels]) / population.size

    def _of_levels(self, population: Population, levels: tuple[str, ...], formula: Expression) -> FloatArray:
        """Return the mean (L,) of a formula in each level."""
        every = tuple(population.levels(self.group))
        rule = Categories(column=self.group, levels=every, codes=np.arange(len(every)))
        found = dict(zip(every, stratum_averages(population, rule, [formula])[:, 0], strict=True))
        return np.array([float(f"{found[level]:.9g}") for level in levels])

    @property
    def _outside(self) -> Expression:
        return ByLevel(name=self.group, levels=self.levels, values=(0.0,) * len(self.levels), otherwise=1.0)

    def estimate(
        self, sample: Sample, labels: Any, target: str = "population", confidence_level: float = 0.95
    ) -> EstimateTable:
        """Return a row for each level, as `estimate_domains` gives them."""
        z, labelled = outcomes_of(sample, labels, self.predicted)
        frame = Respondents.of(sample, labelled, self._outside if self.levels else None)
        kind, bounds, _ = known_outcome(sample, z)
        _, limits = infer_outcome(z, kind, bounds)
        member = group_column(sample, self.group)[labelled]
        rows, notes = [], list(frame.notes)
        for part in self.parts_of(sample):
            found, _ = domain_mean(z, member == part.level, frame.weighting, bounds=limits, target=target)
            rows.append({"domain": part.level, **found.row(confidence_level)})
            notes += [f"{part.level}: {note}" for note in found.notes]
        title = title_of(sample, len(z), target, f" by {self.group}")
        return EstimateTable(
            kind="domains",
            title=title,
            rows=tuple(rows),
            confidence_level=confidence_level,
            notes=tuple(notes),
        )


@dataclass(frozen=True, slots=True)
class Means(Several):
    """The means of several outcomes of each unit, such as fluency and adequacy.

    Parameters
    ----------
    names : tuple of str
        What the outcomes are called; labels are a mapping of these to each one's labels.
    proxies : tuple of str, optional
        The proxy of each; that of the same name unless given.

    Examples
    --------
    >>> Means(("fluency", "adequacy")).text
    'means:fluency,adequacy'
    """

    kind: ClassVar[str] = "means"
    listed: ClassVar[str] = "names"
    names: tuple[str, ...]
    proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._set(names=tuple(self.names), proxies=tuple(self.proxies))
        if not self.names or (self.proxies and len(self.proxies) != len(self.names)):
            raise InputError(
                "every mean needs a name, and all of them a proxy or none",
                given=", ".join(self.names),
                action="Give as many proxies as names, or none.",
            )

    def parts_in(self, population: Population) -> tuple[Mean, ...]:
        """Return the mean of each outcome."""
        return tuple(Mean(proxy) for proxy in self.proxies or self.names)

    def labels_of_parts(self, labels: Any, count: int) -> list[Any]:
        """Return the labels of each outcome, which must all be told of a unit for it to count as labelled."""
        return [labels[name] for name in self.names]

    def _columns(self, sample: Sample, labels: Any) -> tuple[FloatArray, BoolArray]:
        if not isinstance(labels, Mapping) or set(labels) != set(self.names):
            raise InputError("labels must map each outcome to its labels", allowed=", ".join(self.names))
        return number_columns(sample, {name: labels[name] for name in self.names})

    def estimate(
        self, sample: Sample, labels: Any, target: str = "population", confidence_level: float = 0.95
    ) -> EstimateTable:
        """Return a row for each outcome."""
        z, labelled = self._columns(sample, labels)
        frame = Respondents.of(sample, labelled)
        everyone = np.ones(len(z), dtype=bool)
        rows = []
        for name, column in zip(self.names, z.T, strict=True):
            kind, bounds, _ = known_outcome(sample, column)
            _, limits = infer_outcome(column, kind, bounds)
            found, _ = domain_mean(column, everyone, frame.weighting, bounds=limits, target=target)
            rows.append({"outcome": name, **found.row(confidence_level)})
        return EstimateTable(
            kind="outcomes",
            title=title_of(sample, len(z), target),
            rows=tuple(rows),
            confidence_level=confidence_level,
            notes=frame.notes,
        )

    def labelled_influence(self, sample: Sample, labels: Any) -> LabelledInfluence:
        """Return how far the outcomes lie from their means, each divided by its deviation."""
        z, labelled = self._columns(sample, labels)
        scaled = (z - z.mean(axis=0)) / np.maximum(z.std(axis=0), 1e-12)
        sign = np.where(scaled.sum(axis=1) < 0, -1.0, 1.0)
        return LabelledInfluence(u=sign * np.sqrt(np.sum(scaled**2, axis=1)), labelled=labelled)
