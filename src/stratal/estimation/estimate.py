"""`Estimate`: a value with its evidence, from which intervals of any level and method are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, Record
from stratal.designs import Weighting
from stratal.errors import InputError
from stratal.estimation.effective_sample_size import effective_size_interval, random_labels_of_equal_width
from stratal.estimation.linearised import (
    Linearised,
    few_clusters_standard_error,
    skewed_interval,
    undefined_result,
)
from stratal.estimation.plan_check_notes import NoteInputs
from stratal.estimation.quantity import ACCURACY, are_shares, is_share, label_name, mean_name
from stratal.estimation.stratum_table import StratumRow, StratumTable
from stratal.intervals.evidence import Evidence, design_effect
from stratal.intervals.interval import ConfidenceInterval, Interval
from stratal.intervals.interval_types import SkewedInterval, StudentInterval, SumInterval, UndefinedInterval
from stratal.intervals.looks import Look
from stratal.intervals.methods import interval_of, p_value_of
from stratal.intervals.outcomes import OutcomeKind
from stratal.labels.label_interpretation import LabelInterpretation, interpretation_notes
from stratal.labels.label_values import LabelValue, describe_label_values
from stratal.protocols import JsonDict, Keywords
from stratal.report.estimates import answer_page, details_page
from stratal.report.figures import Intervals, PlotDisplay
from stratal.report.notes import UNLIKE_CLUSTERS, Note, as_notes, warnings_among, without_code
from stratal.report.text import Page, PageDisplay, json_dict, json_value
from stratal.whole_numbers import rounded_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Nonresponse:
    """Units drawn, units labelled, and the share that was not labelled.

    `worst_bounds` are the estimates without a proxy if every missing label is at the lower or at the upper
    bound of the outcome; None if no label is missing, or the outcome has no bounds.
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
    """An estimate with its standard error, design and notes. Interval level and method are chosen later.

    Parameters
    ----------
    value, standard_error, degrees_of_freedom : float
        In the units of the outcome; the value is within its bounds.
    n : int
        Number of labels used.
    population_size : int
        N.
    design, estimator : str
        Names of the design and of the estimator that was used, which is never `auto`.
    lam : tuple of float
        One λ per proxy; empty if λ = 0 by definition. `strata` contains the λ of each stratum.
    nonresponse : Nonresponse
    stratum_table : StratumTable, optional
        Table from which `strata` is computed.
    reference_population : (float, float), optional
        Variance of the outcome over the population, and N, if the evidence covers only a part of the
        population. The variance is NaN if the evidence does not determine it; there is then no effective
        sample size.
    label : mapping of str
        The estimand, or the row's group, class or models; empty for the mean.
    null : float, optional
        The value with which the estimate is compared: 0 for a difference.
    read : LabelInterpretation, optional
        The interpretation of the labels.
    remarks : tuple of str
        Notes of the estimator.
    note_inputs : NoteInputs, optional
        Inputs of further notes, which are computed only when `notes` is read, because this takes time.
    evidence : Evidence
        Arrays of the labelled units for the interval methods; not printed and not compared.

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
    def from_evidence(cls, evidence: Evidence, **fields: object) -> Estimate:
        """Return the estimate for evidence; `fields` replace those that the evidence determines."""
        labels = evidence.n
        defaults: Keywords = {
            "value": evidence.value,
            "degrees_of_freedom": evidence.degrees_of_freedom,
            "n": labels,
            "population_size": round(evidence.weighting.population_size),
            "nonresponse": Nonresponse(drawn=labels, labelled=labels),
        }
        return cls(evidence=evidence, **defaults | fields)

    @property
    def target(self) -> str:
        """The target: the `population`, or the `superpopulation` from which its units came."""
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
        """The strata of the labels: sizes, numbers of labels, λ, and mean and spread of the outcome."""
        if self.stratum_table is None:
            return ()
        return self.stratum_table.rows()

    @property
    def design_effect(self) -> float | None:
        """Variance divided by that of a simple random sample of n; None if the labels do not vary."""
        return self._design_effect_and_size[0]

    @property
    def effective_sample_size(self) -> float | None:
        """Size of the simple random sample of this population with the same variance; N for a census."""
        return self._design_effect_and_size[1]

    @property
    def _design_effect_and_size(self) -> tuple[float | None, float | None]:
        """The design effect and the effective sample size, to first order for functions of several means."""
        evidence = self.evidence
        variance = self.standard_error**2
        # The variance of equal labels is unknown, unless every unit is labelled. If the standard error of a
        # function of means is not that of its evidence, a part of it is an assumption about equal labels.
        is_estimated = not evidence.linearised or np.isclose(variance, evidence.variance)
        if not (evidence.varies and is_estimated) and not evidence.census:
            variance = np.nan
        reference = self.reference_population
        if reference is None:
            reference = (evidence.outcome_variance, evidence.weighting.population_size)
        outcome_variance, size = reference
        return design_effect(variance, outcome_variance, evidence.n, size, self.target)

    @property
    def label_values(self) -> tuple[LabelValue, ...]:
        """The number for each distinct raw value of the labels, and how many labels have it."""
        if self.read is None:
            return ()
        return self.read.table

    @property
    def is_share(self) -> bool:
        """Whether the estimate is a share, which is shown in percent."""
        return self.is_share_of(self.read)

    def is_share_of(self, read: LabelInterpretation | None) -> bool:
        """Return whether the estimate is a share under an interpretation of its labels."""
        if read is None:
            labels_are_shares = self.outcome == "binary"
        else:
            # If a difference is known for some units, its bounds are narrower than -1 and 1.
            bounds = self.bounds
            is_within = bounds is not None and bounds[0] >= -1.0 and bounds[1] <= 1.0
            labels_are_shares = is_within and are_shares(read.table)
        return is_share(self.label, labels_are_shares=labels_are_shares)

    @property
    def quantity(self) -> str:
        """The name of the estimated quantity, such as `accuracy`, `pass rate` or `F1 of cat`."""
        if self.label:
            return label_name(self.label, is_difference=self.null is not None)
        if self.read is None:
            return mean_name((), is_share=self.is_share, is_right=False)
        if self.read.classes:
            return ACCURACY
        return self.quantity_in_words(self.read.table)

    def quantity_in_words(self, values: Sequence[LabelValue], column: str = "") -> str:
        """Return the name of the quantity in the words of the labels, for a study, which stores numbers."""
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
        """Notes for the reader: interpretation of labels, assumptions, and contradicted assumptions."""
        return (*self.general_notes, *self.refuted)

    @property
    def refuted(self) -> tuple[Note, ...]:
        """Notes on assumptions of the plan that the labels contradict."""
        if self.note_inputs is None:
            return ()
        return self.note_inputs.of_plan(self)

    @property
    def labels(self) -> int:
        """Number of labelled units; `n` is smaller if a metric's denominator contains only some of them."""
        return self.nonresponse.labelled

    @property
    def clusters(self) -> int | None:
        """Number of clusters with labels; None if units were drawn one by one."""
        groups = self.evidence.weighting.unit_clusters
        if groups is None:
            return None
        return len(np.unique(groups))

    @property
    def outcomes(self) -> FloatArray | None:
        """The outcome of each labelled unit (n,); None if the estimate is not a mean of outcomes."""
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

    def at(self, planned_look: Look | None) -> Estimate:
        """Return the estimate at a planned look, with intervals that hold simultaneously at all looks."""
        return replace(self, evidence=replace(self.evidence, planned_look=planned_look))

    def confidence_interval(
        self, confidence_level: float = 0.95, method: str = "auto", alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Return a confidence interval of the chosen level and kind.

        Parameters
        ----------
        confidence_level : float
            Between 0 and 1.
        method : str
            `auto`, or one of `stratal.intervals.methods.INTERVAL_METHOD_NAMES`.
        alternative : {"two-sided", "less", "greater"}
            `less` bounds the value from above, `greater` from below.

        Raises
        ------
        InputError
            For an unknown method or level, and if the labels of an unbounded outcome are all equal.
        """
        return interval_of(self.evidence, confidence_level, method, alternative)

    def p_value(self, null: float, method: str = "auto", alternative: str = "two-sided") -> float:
        """Return the p-value of the hypothesis that the value is `null`; agrees with `confidence_interval`.

        `alternative` is the alternative hypothesis: `greater` means that the value is above `null`.
        """
        return p_value_of(self.evidence, null, method, alternative)

    def to_dict(self, confidence_level: float = 0.95, method: str = "auto") -> JsonDict:
        """Return a JSON-ready dict of plain values; numbers that are not finite are None."""
        described = self._described(self.confidence_interval(confidence_level, method))
        # This note is only about the width of the default interval.
        if method != "auto":
            described["notes"] = without_code(described["notes"], UNLIKE_CLUSTERS)
        return described

    def effective_sample_size_interval(self, confidence_level: float = 0.95) -> tuple[float, float] | None:
        """Return a confidence interval for the effective sample size, which is uncertain with few labels.

        None for designs other than simple random and stratified sampling, for the superpopulation, and if all
        labels are equal.
        """
        return effective_size_interval(
            self.effective_sample_size, self.evidence, self.population_size, confidence_level
        )

    def _described(self, interval: ConfidenceInterval | None) -> JsonDict:
        """Return the JSON-ready dict with an interval, or without one."""
        level = 0.95 if interval is None else interval.confidence_level
        effective_size = self.effective_sample_size
        size_interval = self.effective_sample_size_interval(level)
        equal_width_size = None
        described_interval: JsonDict = {
            "confidence_interval": None,
            "confidence_level": None,
            "interval_method": None,
        }
        if interval is not None:
            described_interval = {
                "confidence_interval": [*interval],
                "confidence_level": interval.confidence_level,
                "interval_method": interval.method,
            }
            # With few labels, an interval may be wider than the variance implies.
            ends = interval.low, interval.high
            equal_width_size = random_labels_of_equal_width(
                effective_size, self.evidence, ends, level, size_interval
            )
        return json_dict(
            {
                **self.label,
                "quantity": self.quantity,
                "share": self.is_share,
                "estimate": self.value,
                "standard_error": self.standard_error,
                "degrees_of_freedom": self.degrees_of_freedom,
                **described_interval,
                "n": self.n,
                **({} if self.labels == self.n else {"labels": self.labels}),
                **({} if self.clusters is None else {"clusters": self.clusters}),
                "population_size": self.population_size,
                "target": self.target,
                "design": self.design,
                "estimator": self.estimator,
                "outcome": self.outcome,
                "bounds": self.bounds,
                "lam": self.lam,
                "design_effect": self.design_effect,
                "effective_sample_size": effective_size,
                "effective_sample_size_interval": size_interval,
                "random_labels_of_equal_width": equal_width_size,
                "relative_efficiency": self.relative_efficiency,
                "nonresponse": self.nonresponse.to_dict(),
                **describe_label_values(self.label_values),
                "strata": [row.to_dict() for row in self.strata],
                "notes": self.notes,
                **warnings_entry(self.notes),
            }
        )

    def limits(self, confidence_level: float = 0.95, method: str = "auto") -> list[float | None] | None:
        """Return the two ends of the interval, None for an infinite end; None if there is no interval."""
        return self._limits_and_method(confidence_level, method)[0]

    def _limits_and_method(
        self, confidence_level: float, method: str
    ) -> tuple[list[float | None] | None, str | None]:
        """Return the two ends of the interval and the name of its method; None if there is no interval."""
        try:
            interval = self.confidence_interval(confidence_level, method)
        except InputError:
            # Equal labels of an outcome without bounds have no interval.
            return None, None
        ends: list[float | None] = json_value([*interval])
        if ends == [None, None]:
            return None, None
        return ends, interval.method

    def labels_to_exclude(self, limit: float, interval: Sequence[float | None] | None) -> int | None:
        """Return how many more labels would exclude a limit from the interval if the estimate stays the same.

        The width is proportional to the standard error. The variance of the draw changes by the factor (1/m −
        1/N) / (1/n − 1/N) with m labels; the variance of a superpopulation does not change. If every unit is
        labelled and the target is the superpopulation, further labels belong to new units. None if no number
        of labels is sufficient, or if the number is unknown.

        Examples
        --------
        >>> import stratal
        >>> population = stratal.Population.from_arrays(ids=range(100_000))
        >>> sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
        >>> estimate = stratal.estimate(sample, [1.0] * 90 + [0.0] * 10)
        >>> [estimate.labels_to_exclude(limit, [0.8, 0.95]) for limit in (0.85, 0.9)]
        [299, None]
        """
        low, high = interval or (None, None)
        end = low if limit < self.value else high
        n = self.labels
        size = self.population_size
        distance = abs(self.value - limit)
        if end is None or not distance > 0 or self.value == end:
            return None
        # The required ratio of the new variance to the current one.
        target_ratio = (distance / abs(self.value - end)) ** 2
        if n >= size:
            if not self.evidence.superpopulation:
                return None
            # New units of the superpopulation are independent of those of a census.
            return max(rounded_up(n / target_ratio) - n, 1)
        variance = self.evidence.variance
        # The share of the variance that labels do not reduce.
        fixed_share = self.evidence.population_part / variance if variance > 0 else 0.0
        if not 0.0 <= fixed_share < target_ratio:
            return None
        draw_ratio = (target_ratio - fixed_share) / (1.0 - fixed_share)
        inverse_size = 1.0 / size + draw_ratio * (1.0 / n - 1.0 / size)
        return max(min(rounded_up(1.0 / inverse_size), size) - n, 1)

    def row(
        self,
        confidence_level: float = 0.95,
        read: LabelInterpretation | None = None,
        method: str = "auto",
    ) -> JsonDict:
        """Return the row of a table: label, value, standard error, interval and number of labels.

        If the estimate is compared with a value, the row also has the p-value, and the number of further
        labels that would show that the two differ. The row of a group has its estimator and λ, and the row of
        a group or a coefficient has the method of its interval. `read` is the interpretation of the labels,
        if the table has one.
        """
        ends, interval_method = self._limits_and_method(confidence_level, method)
        row = {
            **self.label,
            "share": self.is_share_of(self.read or read),
            "estimate": json_value(self.value),
            "standard_error": json_value(self.standard_error),
            "confidence_interval": ends,
        }
        if self.null is not None:
            low, high = ends or (None, None)
            contains_null = low is not None and high is not None and low <= self.null <= high
            row["p_value"] = None
            row["more_labels"] = None
            if ends is not None:
                row["p_value"] = json_value(self.p_value(self.null, method))
            if contains_null:
                row["more_labels"] = self.labels_to_exclude(self.null, ends)
        row["n"] = self.n
        # The estimator of a group may be another one than that of all units.
        if "domain" in self.label:
            row |= {
                "estimator": self.estimator,
                "lam": json_value(list(self.lam)),
            }
        if "domain" in self.label or "coefficient" in self.label:
            row["interval_method"] = interval_method
        return row

    def described(self, confidence_level: float = 0.95, method: str = "auto") -> JsonDict:
        """Return the dict, with the reason if there is no interval."""
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
        strata = described["strata"]
        # The mean of a single stratum is the estimate without a proxy.
        if len(strata) == 1:
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
    outcomes: FloatArray | None = None,
    **fields: Any,
) -> Estimate:
    """Return the estimate of a function of means from its linearised variable.

    Parameters
    ----------
    interval : Interval, optional
        The interval of the estimand, with its bounds. Default: Student's t on the linearised variance.
    n : int, optional
        Number of labels in the group of the estimate. Default: all.
    member : bool (m,), optional
        Whether each labelled unit is in the group of the estimate. Default: all.
    outcomes : float (m,), optional
        The linearised variable without a proxy, if that of `result` is computed from residuals.
    **fields
        Fields of `Estimate` that differ from those of `result`, such as standard_error and remarks.
    """
    is_defined = bool(np.isfinite(result.value))
    df = fields.pop("degrees_of_freedom", result.degrees_of_freedom)
    error = result.standard_error if is_defined else np.nan
    error = fields.pop("standard_error", error)
    if n is not None:
        fields["n"] = n
    if interval is None:
        interval = StudentInterval(
            value=result.value,
            bounds=bounds,
            standard_error=few_clusters_standard_error(result, weighting, member),
            degrees_of_freedom=max(df, 1.0),
        )
    bounds = interval.bounds
    if not is_defined:
        interval = UndefinedInterval(bounds=bounds)
    if outcomes is None:
        outcomes = result.variable
    evidence = Evidence(
        value=result.value,
        variance=result.variance,
        population_part=result.population_variance,
        degrees_of_freedom=df,
        outcome="unbounded" if bounds is None else "bounded",
        bounds=bounds,
        z=result.value + outcomes,
        residuals=result.variable,
        offset=0.0,
        weighting=weighting,
        uses_proxy=False,
        superpopulation=target == "superpopulation",
        interval=interval,
        linearised=True,
        member=member,
    )
    return Estimate.from_evidence(evidence, standard_error=error, **fields)


def undefined_estimate(
    weighting: Weighting, n: int, bounds: tuple[float, float] | None, *notes: str, target: str = "population"
) -> Estimate:
    """Return an estimate without a value, whose interval contains every possible value."""
    result = undefined_result(len(weighting.weights))
    return linearised_estimate(result, weighting, bounds=bounds, target=target, n=n, remarks=notes)


def correlation_from(covariance: FloatArray) -> FloatArray:
    """Return the correlation matrix (d, d) of a covariance; 0 for a variable that does not vary."""
    # The covariance of one label is NaN.
    covariance = np.nan_to_num(covariance)
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(deviations > 0, 1.0 / np.where(deviations > 0, deviations, 1.0), 0.0)
    correlation = np.asarray(scale[:, None] * covariance * scale)
    correlation[np.diag_indices(len(correlation))] = 1.0
    return np.clip(correlation, -1.0, 1.0)


def difference_of(first: Estimate, second: Estimate, covariance: FloatArray | None = None) -> Estimate:
    """Return the difference of two estimates from the same labels, with an interval from their intervals.

    `covariance` (2, 2) is that of the estimates. Default: computed from their residuals.
    """
    # The correction for interim analyses is applied once, to the difference.
    planned_look = first.evidence.planned_look
    terms = (first.at(None), second.at(None))
    signs = np.array([1.0, -1.0])
    weighting = first.evidence.weighting
    n = first.n + second.n
    target = first.target
    bounds = None
    if first.bounds is not None and second.bounds is not None:
        bounds = first.bounds[0] - second.bounds[1], first.bounds[1] - second.bounds[0]
    if not all(np.isfinite(term.value) for term in terms):
        return replace(undefined_estimate(weighting, n, bounds, target=target), null=0.0)
    variables = np.column_stack([term.evidence.residuals for term in terms])
    if covariance is None:
        joint = weighting.covariance(variables)
    else:
        joint = covariance
    outcomes = np.column_stack([term.evidence.z for term in terms])
    superpopulation_covariance = np.zeros((2, 2))
    if target == "superpopulation":
        superpopulation_covariance = weighting.superpopulation_covariance(outcomes)
    result = Linearised(
        value=first.value - second.value,
        variable=variables @ signs,
        design_variance=float(signs @ joint @ signs),
        population_variance=float(signs @ superpopulation_covariance @ signs),
        degrees_of_freedom=min(term.degrees_of_freedom for term in terms),
    )
    interval: Interval = SumInterval(
        value=result.value,
        bounds=bounds,
        terms=terms,
        coefficients=signs,
        correlation=correlation_from(joint + superpopulation_covariance),
    )
    # If both are linearised, the skewness of the difference itself is known.
    if all(isinstance(term.evidence.interval, SkewedInterval) for term in terms):
        moments = np.array([[result.value], [result.variance], [result.degrees_of_freedom]])
        interval = skewed_interval(moments, result.variable[:, None], weighting).of(0)
    difference = linearised_estimate(
        result,
        weighting,
        interval=interval,
        target=target,
        n=n,
        outcomes=outcomes @ signs - result.value,
        null=0.0,
    )
    return difference.at(planned_look)


def warnings_entry(notes: Sequence[str], others: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the warnings among notes, and others, as an entry of an estimate's dict; empty without any."""
    warned = [*dict.fromkeys([*warnings_among(notes), *others])]
    if warned:
        return {"warnings": warned}
    return {}
