"""`Estimate`: a value that knows how it came about, and gives any interval afterwards."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Self, TypeVar, overload

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError, optional_import
from stratal.estimation.effective_sample_size import effective_size_interval, random_labels_of_equal_width
from stratal.estimation.linearised import Linearised, few_clusters_standard_error, skewed_interval, undefined
from stratal.estimation.plan_check_notes import NoteInputs
from stratal.estimation.quantity import ACCURACY, are_shares, is_share, label_name, mean_name
from stratal.estimation.stratum_table import StratumRow, StratumTable
from stratal.intervals.evidence import Evidence, OutcomeKind, design_effect
from stratal.intervals.interval import ConfidenceInterval, Interval
from stratal.intervals.interval_types import SkewedInterval, StudentInterval, SumInterval, UndefinedInterval
from stratal.intervals.looks import Look
from stratal.intervals.methods import interval_of, p_value_of
from stratal.intervals.simultaneous import SimultaneousLevel
from stratal.labels.label_values import LabelValue, describe_label_values
from stratal.labels.labels import JoinedLabels, LabelInterpretation, interpretation_notes
from stratal.protocols import JsonDict, Keywords
from stratal.report.estimates import answer_page, details_page, estimates_table
from stratal.report.figures import Intervals, PlotDisplay
from stratal.report.notes import Note, as_notes, warnings_among
from stratal.report.text import Page, PageDisplay, ReportTable, json_dict, json_value, noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Nonresponse:
    """Units drawn, units labelled, and the share that was not labelled.

    `worst_bounds`: what the estimate without a proxy is if every missing label is at the lower bound of the
    outcome, and at the upper; None where none is missing, or there are no bounds.
    """

    drawn: int
    labelled: int
    worst_bounds: tuple[float, float] | None = None

    @property
    def rate(self) -> float:
        """1 − labelled / drawn."""
        if self.drawn:
            return (self.drawn - self.labelled) / self.drawn
        return 0.0

    def to_dict(self) -> JsonDict:
        """Return a plain dict."""
        if self.worst_bounds is None:
            bounds = None
        else:
            bounds = list(self.worst_bounds)
        return {"drawn": self.drawn, "labelled": self.labelled, "rate": self.rate, "worst_bounds": bounds}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Estimate(Record, PageDisplay, PlotDisplay):
    """An estimate with all that is needed to judge it. Level and kind of interval are chosen afterwards.

    Parameters
    ----------
    value, standard_error, degrees_of_freedom : float
        In the outcome's units; the value lies within its bounds.
    n : int
        Labels used.
    population_size : int
        N.
    design, estimator : str
        `auto` resolved.
    lam : tuple of float
        One per proxy; empty where λ = 0 by definition. Per stratum in `strata`.
    nonresponse : Nonresponse
    stratum_table : StratumTable, optional
        What `strata` are made of.
    reference_population : (float, float), optional
        Variance of the outcome over the population, and N, where the evidence is of a part of it.
    label : mapping of str
        What it is of, where that is not the mean: the estimand, or the row's group, class or models.
    null : float, optional
        The value that it is compared with: 0 for a difference.
    read : LabelInterpretation, optional
        How its labels were read.
    remarks : tuple of str
        What was said while it was made.
    note_inputs : NoteInputs, optional
        What further notes are computed from when they are read, so that the number does not wait for them.
    evidence : Evidence
        Labelled units' arrays for the interval methods; not shown, not compared.

    Examples
    --------
    >>> import numpy as np
    >>> from stratal.estimation.outcome_means import estimate_mean
    >>> from stratal.designs import StratifiedWeighting
    >>> z, h = np.array([1.0, 1, 0, 1, 0, 1]), np.zeros(6, dtype=int)
    >>> weighting = StratifiedWeighting(stratum=h, sizes=np.array([100]))
    >>> estimate = estimate_mean(z, np.zeros((6, 0)), weighting, None, stratum=h, design="simple-random")
    >>> low, high = estimate.confidence_interval(0.9)
    >>> round(estimate.value, 3), low > 0, high < 1
    (0.667, True, True)
    """

    value: float
    standard_error: float
    degrees_of_freedom: float
    n: int
    population_size: int
    design: str = "stratified"
    estimator: str = "linearised"
    lam: tuple[float, ...] = ()
    nonresponse: Nonresponse
    stratum_table: StratumTable | None = field(default=None, repr=False, compare=False)
    reference_population: tuple[float, float] | None = field(default=None, repr=False)
    label: Mapping[str, str | None] = field(default_factory=dict)
    null: float | None = None
    read: LabelInterpretation | None = field(default=None, repr=False, compare=False)
    remarks: tuple[str, ...] = ()
    note_inputs: NoteInputs | None = field(default=None, repr=False, compare=False)
    evidence: Evidence = field(repr=False, compare=False)

    @classmethod
    def from_evidence(cls, evidence: Evidence, **shown: object) -> Estimate:
        """Return the estimate of what labels showed, with all that follows from it unless `shown`."""
        labels = evidence.n
        defaults: Keywords = {
            "value": evidence.value,
            "degrees_of_freedom": evidence.degrees_of_freedom,
            "n": labels,
            "population_size": round(evidence.weighting.population_size),
            "nonresponse": Nonresponse(drawn=labels, labelled=labels),
        }
        return cls(evidence=evidence, **defaults | shown)

    @property
    def target(self) -> str:
        """The target: the `population`, or the `superpopulation` that its units came from."""
        if self.evidence.superpopulation:
            return "superpopulation"
        return "population"

    @property
    def outcome(self) -> OutcomeKind:
        """`binary`, `bounded` or `unbounded`."""
        return self.evidence.outcome

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of the value; None for an unbounded outcome."""
        return self.evidence.bounds

    @property
    def strata(self) -> tuple[StratumRow, ...]:
        """The strata that the labels are of: their sizes, labels, λ, and mean and spread of the outcome."""
        if self.stratum_table is None:
            return ()
        return self.stratum_table.rows()

    @property
    def design_effect(self) -> float | None:
        """Variance over that of a simple random sample of n; None where the labels show no variance."""
        return self._of_random_samples[0]

    @property
    def effective_sample_size(self) -> float | None:
        """Size of the simple random sample of this population with the same variance; a census is worth N."""
        return self._of_random_samples[1]

    @property
    def _of_random_samples(self) -> tuple[float | None, float | None]:
        evidence = self.evidence
        variance = self.standard_error**2
        if evidence.linearised:
            return None, None
        if self.reference_population is not None:
            return design_effect(
                variance, self.reference_population[0], evidence.n, self.reference_population[1]
            )
        is_known = evidence.varies or evidence.census
        size = evidence.weighting.population_size
        return design_effect(
            variance if is_known else np.nan, evidence.population_spread, evidence.n, size, self.target
        )

    @property
    def label_values(self) -> tuple[LabelValue, ...]:
        """The number for each distinct raw value of the labels, and how many labels have it."""
        if self.read is None:
            return ()
        return self.read.table

    @property
    def is_share(self) -> bool:
        """Whether it is a share, which is shown in percent."""
        return self.is_share_of(self.read)

    def is_share_of(self, read: LabelInterpretation | None) -> bool:
        """Return whether it is a share if its labels are interpreted so."""
        if read is None:
            labels_are_shares = self.outcome == "binary"
        else:
            labels_are_shares = self.bounds in ((0.0, 1.0), (-1.0, 1.0)) and are_shares(read.table)
        return is_share(self.label, labels_are_shares=labels_are_shares)

    @property
    def quantity(self) -> str:
        """The name of what is estimated, such as `accuracy`, `pass rate` or `F1 of cat`."""
        if self.label:
            return label_name(self.label, is_difference=self.null is not None)
        if self.read is None:
            return mean_name((), is_share=self.is_share, is_right=False)
        if self.read.classes:
            return ACCURACY
        return self.quantity_in_words(self.read.table)

    def quantity_in_words(self, values: Sequence[LabelValue], column: str = "") -> str:
        """Return the quantity by the annotators' words and the labels' column: a study stores numbers."""
        if self.label or self.read is None or self.read.classes:
            return self.quantity
        return mean_name(values, column, is_share=self.is_share, is_right=self.read.is_right)

    @property
    def general_notes(self) -> tuple[Note, ...]:
        """Notes for the reader, without those on contradicted assumptions."""
        of_outcome = () if self.note_inputs is None else self.note_inputs.of_outcome(self)
        return as_notes(interpretation_notes(self.read, (*self.remarks, *of_outcome)))

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes for the reader: how labels were read, what was assumed, and what they contradict."""
        return (*self.general_notes, *self.refuted)

    @property
    def refuted(self) -> tuple[Note, ...]:
        """Assumptions of the plan that the labels contradict; the last of the notes."""
        if self.note_inputs is None:
            return ()
        return self.note_inputs.of_plan(self)

    @property
    def labels(self) -> int:
        """Labelled units; `n` of them count, where a metric's denominator holds only some."""
        return self.nonresponse.labelled

    @property
    def outcomes(self) -> FloatArray | None:
        """The outcome of each labelled unit (n,), where the estimate is a mean of such."""
        if self.evidence.linearised:
            return None
        return self.evidence.z

    @property
    def relative_efficiency(self) -> float | None:
        """Variance of a simple random sample of n over this variance; above 1 is better."""
        if self.design_effect is None:
            return None
        if self.design_effect > 0:
            return 1.0 / self.design_effect
        return float("inf")

    def at(self, look: Look | None) -> Estimate:
        """Return the estimate at a planned look, with intervals that hold at all looks together."""
        return replace(self, evidence=replace(self.evidence, look=look))

    def confidence_interval(
        self, confidence_level: float = 0.95, method: str = "auto", alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Return a confidence interval of the chosen level and kind.

        Parameters
        ----------
        confidence_level : float
            Between 0 and 1.
        method : str
            `auto`, or one of `stratal.intervals.methods.METHODS`.
        alternative : {"two-sided", "less", "greater"}
            `less` bounds the value from above, `greater` from below.

        Raises
        ------
        InputError
            For an unknown method or level, and where the labels of an unbounded outcome all agree.
        """
        return interval_of(self.evidence, confidence_level, method, alternative)

    def p_value(self, null: float, method: str = "auto", alternative: str = "two-sided") -> float:
        """Return the p-value of the hypothesis that the value is `null`; agrees with `confidence_interval`.

        `alternative` names what is held against the null: `greater` asks whether the value is above it.
        """
        return p_value_of(self.evidence, null, method, alternative)

    def to_dict(self, confidence_level: float = 0.95, method: str = "auto") -> JsonDict:
        """Return a JSON-ready dict: plain numbers, text, lists and dicts; what is not finite is None."""
        return self._described(self.confidence_interval(confidence_level, method))

    def effective_sample_size_interval(self, confidence_level: float = 0.95) -> tuple[float, float] | None:
        """Return a range for the effective sample size, which few labels leave open.

        None where it is not known: for designs other than simple random and stratified sampling, for the
        superpopulation, and where labels agree.
        """
        return effective_size_interval(self.effective_sample_size, self.evidence, confidence_level)

    def _described(self, interval: ConfidenceInterval | None) -> JsonDict:
        if interval is None:
            level = 0.95
        else:
            level = interval.confidence_level
        # How many random labels these are worth: by variances, or by widths where these say less.
        size = self.effective_sample_size
        range_ = self.effective_sample_size_interval(level)
        equal = None
        if interval is not None:
            ends = interval.low, interval.high
            equal = random_labels_of_equal_width(size, self.evidence, ends, level, range_)
        return json_dict(
            {
                **self.label,
                "quantity": self.quantity,
                "share": self.is_share,
                "estimate": self.value,
                "standard_error": self.standard_error,
                "degrees_of_freedom": self.degrees_of_freedom,
                "confidence_interval": None if interval is None else [*interval],
                "confidence_level": None if interval is None else interval.confidence_level,
                "interval_method": None if interval is None else interval.method,
                "n": self.n,
                **({} if self.labels == self.n else {"labels": self.labels}),
                "population_size": self.population_size,
                "target": self.target,
                "design": self.design,
                "estimator": self.estimator,
                "outcome": self.outcome,
                "bounds": self.bounds,
                "lam": self.lam,
                "design_effect": self.design_effect,
                "effective_sample_size": size,
                "effective_sample_size_interval": range_,
                "random_labels_of_equal_width": equal,
                "relative_efficiency": self.relative_efficiency,
                "nonresponse": self.nonresponse.to_dict(),
                **describe_label_values(self.label_values),
                "strata": [row.to_dict() for row in self.strata],
                "notes": self.notes,
                **_warned(self.notes),
            }
        )

    def limits(self, confidence_level: float = 0.95, method: str = "auto") -> list[float | None] | None:
        """Return the interval's two ends, None for one that is infinite; None where there is no interval."""
        try:
            ends: list[float | None] = json_value([*self.confidence_interval(confidence_level, method)])
        except InputError:  # labels of an outcome without bounds that all agree
            return None
        if ends == [None, None]:
            return None
        return ends

    def labels_to_exclude(self, limit: float, interval: Sequence[float | None] | None) -> int | None:
        """Return how many more labels would leave a limit outside of the interval, if the estimate stays.

        The interval's reach towards the limit falls as its standard error does: the part that labels add by
        (1/m − 1/N) / (1/n − 1/N), that of a superpopulation not at all. If every unit is labelled and the
        target is the superpopulation, further labels are of new units. None where no number of labels would
        do, or nothing is known.

        Examples
        --------
        >>> import stratal
        >>> population = stratal.Population.from_arrays(ids=range(100_000))
        >>> sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
        >>> found = stratal.estimate(sample, [1.0] * 90 + [0.0] * 10)
        >>> [found.labels_to_exclude(limit, [0.8, 0.95]) for limit in (0.85, 0.9)]
        [299, None]
        """
        low, high = interval or (None, None)
        end = low if limit < self.value else high
        n = self.labels
        size = self.population_size
        far = abs(self.value - limit)
        if end is None or not far > 0 or self.value == end:
            return None
        target_ratio = (far / abs(self.value - end)) ** 2
        if n >= size:
            if not self.evidence.superpopulation:
                return None
            return max(math.ceil(n / target_ratio - 1e-9) - n, 1)
        variance = self.evidence.variance
        if variance > 0:
            fixed = self.evidence.population_part / variance
        else:
            fixed = 0.0
        if not 0.0 <= fixed < target_ratio:
            return None
        inverse_size = (target_ratio - fixed) / (1.0 - fixed) * (1.0 / n - 1.0 / size)
        return max(min(math.ceil(1.0 / (1.0 / size + inverse_size) - 1e-9), size) - n, 1)

    def row(self, confidence_level: float = 0.95, read: LabelInterpretation | None = None) -> JsonDict:
        """Return what a table shows of it: label, value, standard error, interval and labels.

        Where it is held against a value, also the p-value and the labels that would tell it from this. `read`
        is how its labels were interpreted, if the table has it.
        """
        ends = self.limits(confidence_level)
        row = {
            **self.label,
            "share": self.is_share_of(self.read or read),
            "estimate": json_value(self.value),
            "standard_error": json_value(self.standard_error),
            "confidence_interval": ends,
        }
        if self.null is not None:
            low, high = ends or (None, None)
            open_ = low is not None and high is not None and low <= self.null <= high
            if ends is None:
                row["p_value"] = None
            else:
                row["p_value"] = json_value(self.p_value(self.null))
            if open_:
                row["more_labels"] = self.labels_to_exclude(self.null, ends)
            else:
                row["more_labels"] = None
        return row | {"n": self.n}

    def described(self, confidence_level: float = 0.95, method: str = "auto") -> JsonDict:
        """Return the dict, with the reason where there is no interval."""
        try:
            return self.to_dict(confidence_level, method)
        except InputError as error:
            return self._described(None) | {"confidence_level": confidence_level, "no_interval": str(error)}

    def _page(self) -> Page:
        return answer_page(self.described())

    def summary(self, confidence_level: float = 0.95, method: str = "auto") -> Page:
        """Return the answer with the methods, all notes and the table of the strata, to be printed."""
        return details_page(self.described(confidence_level, method))

    def _plot(self) -> Intervals:
        """Draw the estimate with its interval, and below it the mean label of each stratum."""
        described = self.described()
        if len(described["strata"]) > 1:
            strata = described["strata"]
        else:
            strata = []
        units = f"{self.population_size:,} units"
        return Intervals(
            title=f"{self.n:,} labels of {units}, {self.design} sample",
            x_label=", ".join(str(name) for name in self.label.values()) or "mean outcome",
            rows=[
                ("estimate", described["estimate"], described["confidence_interval"]),
                *((row["name"], row["mean"], None) for row in strata),
            ],
            confidence_level=described["confidence_level"],
            no_interval_label="mean label of a stratum",
        )


def linearised_estimate(
    result: Linearised,
    weighting: Weighting,
    *,
    interval: Interval | None = None,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
    n: int | None = None,
    member: BoolArray | None = None,
    **shown: Any,
) -> Estimate:
    """Return the estimate of a function of means from its linearised variable.

    Parameters
    ----------
    limits : Limits, optional
        The estimand's own interval, with its bounds; Student's t on the linearised variance unless given.
    n : int, optional
        Labels that count towards it; all unless given.
    member : bool (labels,), optional
        The labelled units of the group that it is of; all unless given.
    **shown
        Fields of `Estimate` that differ from what follows: standard_error, degrees_of_freedom, remarks, …
    """
    defined = bool(np.isfinite(result.value))
    freedom = shown.pop("degrees_of_freedom", result.degrees_of_freedom)
    error = shown.pop("standard_error", result.standard_error if defined else np.nan)
    if interval is None:
        interval = StudentInterval(
            value=result.value,
            bounds=bounds,
            standard_error=few_clusters_standard_error(result, weighting, member),
            degrees_of_freedom=max(freedom, 1.0),
        )
    bounds = interval.bounds
    evidence = Evidence(
        value=result.value,
        variance=result.variance,
        population_part=result.population_variance,
        degrees_of_freedom=freedom,
        outcome="unbounded" if bounds is None else "bounded",
        bounds=bounds,
        z=result.value + result.variable,
        residuals=result.variable,
        offset=0.0,
        weighting=weighting,
        uses_proxy=False,
        superpopulation=target == "superpopulation",
        interval=interval if defined else UndefinedInterval(bounds=bounds),
        linearised=True,
        member=member,
    )
    return Estimate.from_evidence(evidence, standard_error=error, **({} if n is None else {"n": n}), **shown)


def undefined_estimate(
    weighting: Weighting, n: int, bounds: tuple[float, float] | None, *notes: str, target: str = "population"
) -> Estimate:
    """Return the estimate of what no label tells anything of: every possible value."""
    nothing = undefined(len(weighting.weights))
    return linearised_estimate(nothing, weighting, bounds=bounds, target=target, n=n, remarks=notes)


def correlation_from(covariance: FloatArray) -> FloatArray:
    """Return the correlation (d, d) of a covariance; what does not vary is correlated with nothing."""
    covariance = np.nan_to_num(covariance)  # one label leaves a covariance unknown
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(spread > 0, 1.0 / np.where(spread > 0, spread, 1.0), 0.0)
    correlation = np.asarray(scale[:, None] * covariance * scale)
    correlation[np.diag_indices(len(correlation))] = 1.0
    return np.clip(correlation, -1.0, 1.0)


def difference_of(first: Estimate, second: Estimate, covariance: FloatArray | None = None) -> Estimate:
    """Return the difference of two estimates from the same labels, its interval made of theirs.

    `covariance` (2, 2) is that of the estimates, where their influences do not say it all.
    """
    look = first.evidence.look  # the price of looking is paid once, for the difference
    pair = [first.at(None), second.at(None)]
    signs = np.array([1.0, -1.0])
    weighting = first.evidence.weighting
    n = first.n + second.n
    target = first.target
    bounds = None
    if first.bounds is not None and second.bounds is not None:
        bounds = first.bounds[0] - second.bounds[1], first.bounds[1] - second.bounds[0]
    if not all(np.isfinite(row.value) for row in pair):
        return replace(undefined_estimate(weighting, n, bounds, target=target), null=0.0)
    variables = np.column_stack([row.evidence.residuals for row in pair])
    if covariance is None:
        joint = weighting.covariance(variables)
    else:
        joint = covariance
    of_population = np.zeros((2, 2))
    if target == "superpopulation":
        outcomes = np.column_stack([row.evidence.z for row in pair])
        of_population = weighting.superpopulation_covariance(outcomes)
    result = Linearised(
        value=first.value - second.value,
        variable=variables @ signs,
        design_variance=float(signs @ joint @ signs),
        population_variance=float(signs @ of_population @ signs),
        degrees_of_freedom=min(row.degrees_of_freedom for row in pair),
    )
    interval: Interval = SumInterval(
        value=result.value,
        bounds=bounds,
        terms=tuple(pair),
        coefficients=signs,
        correlation=correlation_from(joint + of_population),
    )
    if all(isinstance(row.evidence.interval, SkewedInterval) for row in pair):
        moments = np.array([[result.value], [result.variance], [result.degrees_of_freedom]])
        interval = skewed_interval(moments, result.variable[:, None], weighting).of(0)
    difference = linearised_estimate(result, weighting, interval=interval, target=target, n=n, null=0.0)
    return difference.at(look)


class ComputedRows(Sequence[Estimate], ABC):
    """Estimates that are computed when they are read, because there may be too many to store."""

    __slots__ = ()

    @property
    @abstractmethod
    def values(self) -> FloatArray:
        """The estimates (m,), without their errors."""

    @property
    @abstractmethod
    def counts(self) -> IntArray:
        """Their numbers of labels (m,)."""

    @abstractmethod
    def label(self, place: int) -> dict[str, str]:
        """Return the label of an estimate."""

    @abstractmethod
    def with_own_notes(self) -> Iterator[Estimate]:
        """Yield the estimates that may have notes which the others do not have."""

    def lowest_rows(
        self, n_lowest: int, confidence_level: float, read: LabelInterpretation | None
    ) -> list[JsonDict]:
        """Return a plain dict for each; only the lowest have a standard error and an interval."""
        values = self.values
        lowest_places = np.argsort(values, kind="stable")[:n_lowest].tolist()
        lowest = {place: self[place].row(confidence_level, read) for place in lowest_places}
        is_share = any(row["share"] for row in lowest.values())
        rows: list[JsonDict] = []
        for place, (value, count) in enumerate(zip(values.tolist(), self.counts.tolist(), strict=True)):
            row = lowest.get(place)
            if row is None:
                row = {
                    **self.label(place),
                    "share": is_share,
                    "estimate": None,
                    "standard_error": None,
                    "confidence_interval": None,
                    "n": count,
                }
            # Sums in another order may differ in the last digit, which decides the order of equal estimates.
            rows.append(row | {"estimate": json_value(value)})
        return rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Estimates(Sequence[Estimate], PageDisplay, PlotDisplay):
    """Several estimates from the same labels: of estimands, classes, groups or pairs of models.

    Parameters
    ----------
    estimates : sequence of Estimate
        Each with its `label`, such as `{"metric": "recall", "class": "cat"}`.
    kind : str
        What the rows are: `estimands`, `metrics`, `domains`, `outcomes` or `comparisons`.
    title : str
    remarks : tuple of str
        What concerns all of them.
    joint : float (m, m), optional
        Their covariance, where their influences do not say it all.
    read : LabelInterpretation, optional
        How their labels were read.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(
    ...     stratal.Population.from_arrays(groups={"language": ["de", "en"] * 50}), seed=1)
    >>> found = stratal.estimate(sample, [1, 0] * 10, by="language")
    >>> [row.label["domain"] for row in found], found.of(domain="de") is found[0]
    (['de', 'en'], True)
    """

    estimates: Sequence[Estimate]
    kind: str
    title: str
    remarks: tuple[str, ...] = ()
    joint: FloatArray | None = field(default=None, repr=False, compare=False)
    read: LabelInterpretation | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_rows(
        cls,
        sample: Sample,
        rows: Sequence[Estimate],
        kind: str,
        remarks: Sequence[str] = (),
        subject: str = "",
        **more: Any,
    ) -> Self:
        """Return estimates of a sample, with their heading and without remarks made twice."""
        first = rows[0]
        if isinstance(rows, ComputedRows):  # all of the same labels
            labels = first.labels
        else:
            labels = max(row.labels for row in rows)
            rows = tuple(rows)
        size = f"{labels:,} labels of {sample.population_size:,} units"
        title = f"{size}{subject}, {sample.design.kind} sample, target: {first.target}"
        return cls(estimates=rows, kind=kind, title=title, remarks=tuple(dict.fromkeys(remarks)), **more)

    @overload
    def __getitem__(self, place: int) -> Estimate: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Estimate]: ...
    def __getitem__(self, place: int | slice) -> Estimate | Sequence[Estimate]:
        return self.estimates[place]

    def __len__(self) -> int:
        return len(self.estimates)

    def of(self, **label: str | None) -> Estimate:
        """Return the one estimate whose label holds all of `label`.

        Raises
        ------
        InputError
            If none does, or several do.
        """
        rows = self.estimates
        labels: list[Mapping[str, str | None]]
        if isinstance(rows, ComputedRows):
            labels = [rows.label(place) for place in range(len(rows))]
        else:
            labels = [row.label for row in rows]
        matches = [
            place
            for place, row_label in enumerate(labels)
            if all(row_label.get(name) == value for name, value in label.items())
        ]
        if len(matches) != 1:
            if len(matches) > 1:
                have = "estimates have"
            else:
                have = "estimate has"
            label_text = ", ".join(f"{name}={value!r}" for name, value in label.items())
            allowed = "; ".join(_named(row) for row in self.estimates[:5])
            raise InputError(f"{len(matches) or 'no'} {have} this label", given=label_text, allowed=allowed)
        return rows[matches[0]]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on all estimates, and then on each one with its name."""
        rows: dict[Note, list[str]] = {}
        noted_rows = self.estimates
        if isinstance(noted_rows, ComputedRows):
            noted_rows = list(noted_rows.with_own_notes())
        for row in noted_rows:
            for note in dict.fromkeys(row.general_notes):
                rows.setdefault(note, []).append(_named(row))
        of_all = interpretation_notes(self.read, self.remarks)
        row_notes = [
            Note(note.code, f"{_several(names)}: {note}")
            for note, names in rows.items()
            if note not in of_all
        ]
        return as_notes([*of_all, *row_notes])

    @property
    def label_values(self) -> tuple[LabelValue, ...]:
        """The number for each distinct raw value of the labels, and how many labels have it."""
        if self.read is None:
            return ()
        return self.read.table

    def differences(self, *, simultaneous: bool = True, seed: int = 0) -> Estimates:
        """Return the differences of all pairs, with intervals that hold together unless told otherwise.

        Each interval is made of the two estimates' own (Zou & Donner 2008), its level of the largest of the
        correlated differences.
        """
        differences = []
        for place in combinations(range(len(self)), 2):
            a, b = (self[k] for k in place)
            if self.joint is None:
                joint = None
            else:
                joint = self.joint[np.ix_(place, place)]
            label = {"a": _named(a), "b": _named(b)}
            differences.append(replace(difference_of(a, b, joint), label=label, design=a.design))
        comparisons = Estimates(
            estimates=tuple(differences), kind="comparisons", title=self.title, remarks=self.remarks
        )
        if simultaneous:
            return comparisons.simultaneous(seed=seed)
        return comparisons

    def simultaneous(self, seed: int = 0) -> Self:
        """Return the estimates with intervals and p-values that hold together.

        Parameters
        ----------
        seed : int
            Of the simulation of the largest of the correlated statistics.
        """
        is_defined = np.isfinite(self.values)
        if is_defined.sum() < 2:
            return self
        dfs = [row.degrees_of_freedom for row, defined in zip(self, is_defined, strict=True) if defined]
        shared_level = SimultaneousLevel.of(self.covariance[np.ix_(is_defined, is_defined)], dfs, seed)
        least = shared_level.degrees_of_freedom
        rows = list(self)
        for k in np.flatnonzero(is_defined).tolist():
            evidence = rows[k].evidence
            freedom = min(rows[k].degrees_of_freedom, least)
            interval = evidence.interval and evidence.interval.with_df(freedom)
            freedom = min(evidence.degrees_of_freedom, least)
            evidence = replace(
                evidence, interval=interval, degrees_of_freedom=freedom, simultaneous=shared_level
            )
            rows[k] = replace(rows[k], evidence=evidence)
        return replace(self, estimates=tuple(rows), title=f"{self.title}, simultaneous")

    @property
    def values(self) -> FloatArray:
        """The estimates (m,)."""
        if isinstance(self.estimates, ComputedRows):
            return self.estimates.values
        return np.array([row.value for row in self])

    @property
    def standard_errors(self) -> FloatArray:
        """The standard errors (m,)."""
        return np.array([row.standard_error for row in self])

    @property
    def covariance(self) -> FloatArray:
        """The covariance of the estimates (m, m), which are from the same labels."""
        if self.joint is not None:
            return self.joint
        weighting = self[0].evidence.weighting
        counts = {row.evidence.n for row in self}
        if len(counts) > 1:
            counts_text = ", ".join(f"{count} labels" for count in sorted(counts))
            action = "Take those together that are of all labels, or of the same ones."
            raise InputError(
                "these estimates are not of the same labelled units", given=counts_text, action=action
            )
        covariance = weighting.covariance(np.column_stack([row.evidence.residuals for row in self]))
        # One label leaves a covariance unknown, whatever is added to it.
        if self[0].target == "superpopulation" and np.all(np.isfinite(covariance)):
            outcomes = np.column_stack([row.evidence.z for row in self])
            covariance = covariance + weighting.superpopulation_covariance(outcomes)
        return covariance

    def confidence_interval(
        self, confidence_level: float = 0.95, method: str = "auto", alternative: str = "two-sided"
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper limits, (m,) each."""
        ends = [row.confidence_interval(confidence_level, method, alternative) for row in self]
        return np.array([end.low for end in ends]), np.array([end.high for end in ends])

    def p_values(
        self, null: object = 0.0, method: str = "auto", alternative: str = "two-sided"
    ) -> FloatArray:
        """Return the p-value (m,) of each being `null`, one number or (m,)."""
        nulls = np.asarray(null, dtype=np.float64)
        if nulls.shape not in ((), (len(self),)):
            allowed = f"({len(self)},)"
            raise InputError(
                "null must be one number or one per estimate", given=nulls.shape, allowed=allowed
            )
        pairs = zip(self, np.broadcast_to(nulls, len(self)).tolist(), strict=True)
        return np.array([row.p_value(row_null, method, alternative) for row, row_null in pairs])

    def rows(self, confidence_level: float = 0.95) -> list[JsonDict]:
        """Return a plain dict for each: label, estimate, standard error, interval, number of labels."""
        return [row.row(confidence_level, self.read) for row in self]

    def to_dict(self, confidence_level: float = 0.95) -> JsonDict:
        """Return a JSON-ready dict."""
        return self._described(self.rows(confidence_level), confidence_level)

    def lowest_to_dict(self, n_lowest: int, confidence_level: float = 0.95) -> JsonDict:
        """Return `to_dict`, in which only the lowest of very many rows have errors and intervals."""
        if not isinstance(self.estimates, ComputedRows):
            return self.to_dict(confidence_level)
        rows = self.estimates.lowest_rows(n_lowest, confidence_level, self.read)
        return self._described(rows, confidence_level)

    def _described(self, rows: list[JsonDict], confidence_level: float) -> JsonDict:
        """Return the JSON-ready dict with these rows."""
        return {
            self.kind: rows,
            "confidence_level": confidence_level,
            **describe_label_values(self.label_values),
            "notes": list(self.notes),
            **_warned(self.notes),
        }

    def to_pandas(self, confidence_level: float = 0.95) -> Any:
        """Return a pandas dataframe, a row for each, the interval in two columns.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        with optional_import("pandas", extra="pandas"):
            import pandas
        rows = self.rows(confidence_level)
        ends = [row.pop("confidence_interval") or (np.nan, np.nan) for row in rows]
        return pandas.DataFrame(
            [{**row, "low": low, "high": high} for row, (low, high) in zip(rows, ends, strict=True)]
        )

    def to_markdown(self, confidence_level: float = 0.95) -> str:
        """Return a table in Markdown."""
        from stratal.report.document import table_markdown

        return table_markdown(self.table(confidence_level))

    def to_latex(self, confidence_level: float = 0.95) -> str:
        """Return a table in LaTeX, with the rules of booktabs."""
        from stratal.report.document import table_latex

        return table_latex(self.table(confidence_level))

    def table(self, confidence_level: float = 0.95) -> ReportTable:
        """Return the table that is printed."""
        return estimates_table(self.title, self.rows(confidence_level), confidence_level)

    def page(self, confidence_level: float = 0.95) -> Page:
        """Return what is printed."""
        return Page(tables=[self.table(confidence_level)], notes=noted(self.notes))

    def __repr__(self) -> str:
        return f"<Estimates: {self.title or self.kind}, {len(self):,} rows>"

    def _page(self) -> Page:
        return self.page()

    def _plot(self) -> Intervals:
        tested = any(row.null is not None for row in self)
        rows = [(_named(row), row.value, row.limits()) for row in self]
        return Intervals(
            title=self.title,
            x_label="difference" if tested else "estimate",
            rows=rows,
            confidence_level=0.95,
            level=0.0 if tested else None,
        )


def _several(names: Sequence[str]) -> str:
    """Return names as one writes them, the first two of many."""
    if len(names) < 3:
        return " and ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more"


def _named(row: Estimate) -> str:
    """Return a row's name: its label's words."""
    between = " − " if row.null is not None else " "
    return between.join(str(value) for value in row.label.values() if value is not None)


EstimateType = TypeVar("EstimateType", bound=Estimate | Estimates)


def with_label_values(
    result: EstimateType,
    columns: Mapping[str, object],
    answers: set[str] | None = None,
    *,
    classes: bool = False,
    is_right: bool = False,
) -> EstimateType:
    """Return an estimate with what each distinct value of its labels counts as, and notes of it.

    `columns` are joined labels by name, "" that of one column alone.
    """
    joined = {name: labels for name, labels in columns.items() if isinstance(labels, JoinedLabels)}
    read = LabelInterpretation(columns=joined, answers=answers, classes=classes, is_right=is_right)
    if classes:  # a word that is neither a class nor an answer is refused now, not when it is shown
        read.table  # noqa: B018
    return replace(result, read=read)


def with_tables(
    described: JsonDict,
    tables: Sequence[Estimates],
    confidence_level: float = 0.95,
    remarks: Sequence[str] = (),
    lowest: int | None = None,
) -> JsonDict:
    """Return an estimate's dict with the rows and notes of tables from the same labels, and then remarks.

    With `lowest`, only so many of very many rows have errors and intervals.
    """
    if lowest is None:
        described_tables = [table.to_dict(confidence_level) for table in tables]
    else:
        described_tables = [table.lowest_to_dict(lowest, confidence_level) for table in tables]
    notes = [note for each in [*described_tables, described] for note in each["notes"]]
    rows = {
        name: value for each in described_tables for name, value in each.items() if name != "confidence_level"
    }
    # That a judge is worse in a group is what a reader must not miss among other notes.
    warned = [note for table in tables if table.kind == "judge_groups" for note in table.remarks]
    combined = described | rows | {"notes": [*dict.fromkeys(notes), *remarks]}
    return combined | _warned(notes, warned)


def _warned(notes: Sequence[str], others: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return what a reader must not miss, as an entry of an estimate's dict; none if there is nothing."""
    warned = [*dict.fromkeys([*warnings_among(notes), *others])]
    if warned:
        return {"warnings": warned}
    return {}
