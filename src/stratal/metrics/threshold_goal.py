"""Requirements for the units that a threshold accepts, and plans in two rounds for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record, has_entry
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, check_choice, suggest_names
from stratal.estimation.anticipated import AnticipatedOutcome, StratificationOptions
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, Request
from stratal.estimation.estimate import Estimate
from stratal.estimation.planned_rounds import PlannedRounds
from stratal.estimation.requirement import Requirement
from stratal.estimation.resolve import class_column, compared_column, no_labels_error, outcomes
from stratal.labels.label_values import class_text
from stratal.population.population import Population
from stratal.protocols import Keywords
from stratal.strata import Strata
from stratal.strata.region import (
    N_CELLS,
    PilotCells,
    expected_set,
    planned_region,
    score_cells,
    total_labels,
)

__all__ = ["ThresholdGoal"]

# The supported metrics, and the sign of a requirement on each.
ERROR = "error"
PRECISION = "precision"
RECALL = "recall"
FALSE_POSITIVE_RATE = "false_positive_rate"
SIGNS = {ERROR: "<=", PRECISION: ">=", RECALL: ">=", FALSE_POSITIVE_RATE: "<="}
# Error of the guarantee for which a plan states numbers of labels.
_PLANNED_ERROR = 0.05
# Maximum number of labels in a forecast.
_MAX_LABELS = 2**17
# A set with a precision of at least one half has at most twice as many units as there are positives.
_MAX_UNITS_PER_POSITIVE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRequirement:
    """A requirement on a metric, as the largest accepted rate of faults.

    Parameters
    ----------
    metric : str
    limit : float
        The stated limit, such as .9 in `precision>=.9`.
    positive : str, optional
        The class of precision, recall and false positive rate.
    """

    metric: str
    limit: float
    positive: str | None = None

    @classmethod
    def parse(cls, text: str) -> SetRequirement:
        """Return the requirement that a text states, such as `precision:spam>=.9`.

        Raises
        ------
        InputError
            For an unknown metric, an unsupported sign, and a limit that is not between 0 and 1.
        """
        parsed = Requirement.parse(text)
        metric, _, positive = parsed.name.partition(":")
        check_choice("metric of a threshold", metric, SIGNS)
        # A precision of at most a limit, or an error of at least one, is no goal.
        if parsed.sign != SIGNS[metric] or not 0 < parsed.limit < 1:
            allowed = f"{metric}{SIGNS[metric]}LIMIT with a limit between 0 and 1"
            raise InputError("unsupported requirement of a threshold", given=repr(text), allowed=allowed)
        if metric == ERROR and positive:
            raise InputError(
                "the metric error does not accept a class", given=repr(text), allowed="error<=LIMIT"
            )
        return cls(metric=metric, limit=parsed.limit, positive=positive or None)

    def __str__(self) -> str:
        of_class = f":{self.positive}" if self.positive else ""
        return f"{self.metric}{of_class}{SIGNS[self.metric]}{self.limit:g}"

    @property
    def max_fault_rate(self) -> float:
        """The largest accepted rate of faults: an upper limit itself, or 1 − a lower limit."""
        if SIGNS[self.metric] == "<=":
            return self.limit
        return 1.0 - self.limit

    @property
    def is_monotone(self) -> bool:
        """Whether the rate of faults is monotone in the size of nested sets."""
        return self.metric in (RECALL, FALSE_POSITIVE_RATE)

    @property
    def seeks_smallest_set(self) -> bool:
        """Whether the smallest set that satisfies it is accepted, instead of the largest."""
        return self.metric == RECALL

    def value(self, fault_rates: FloatArray) -> FloatArray:
        """Return the metric at rates of faults, of any shape."""
        if SIGNS[self.metric] == "<=":
            return fault_rates
        return 1.0 - fault_rates

    def of_class(self, sample: Sample) -> SetRequirement:
        """Return the requirement; without a class, it gets the only class that scores predict."""
        classes = [score.of_class for score in sample.question.scores if score.of_class is not None]
        # With scores of several classes, the user must name one.
        if self.metric == ERROR or self.positive is not None or len(classes) != 1:
            return self
        return replace(self, positive=class_text(classes[0]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThresholdOutcomes(Record):
    """Outcomes (m,) of the labelled units, and whether each drawn unit (n,) is labelled.

    An outcome is 1 if the answer is right, or the unit is of the class, and otherwise 0.
    """

    values: FloatArray
    labelled: BoolArray


def threshold_outcomes(
    sample: Sample,
    labels: object,
    requirement: SetRequirement,
    predicted: bool | str | None = None,
    combine: str = "mean",
) -> ThresholdOutcomes:
    """Return whether the answers are right, or the units are of the requirement's class.

    Raises
    ------
    InputError, LabelError
        For labels without the class, and for those that are neither right nor wrong.
    """
    positive = requirement.positive
    if requirement.metric == ERROR or positive is None:
        column = compared_column(sample, labels, predicted)
        if requirement.metric != ERROR and column is not None:
            raise InputError(
                f"{requirement.metric} requires a class",
                given=f"labels that are compared with the answers in {column!r}",
                action=f"Name the class: {requirement.metric}:CLASS.",
            )
        decoded = outcomes(sample, labels, predicted, combine)
        if np.any((decoded.z < 0) | (decoded.z > 1)):
            raise LabelError(
                "a threshold requires labels that are right (1) or wrong (0)",
                given=f"{float(decoded.z.min()):g} to {float(decoded.z.max()):g}",
                action="State the label that counts as 1: positive= (--positive LABEL).",
            )
        return ThresholdOutcomes(values=decoded.z, labelled=decoded.labelled)
    true = class_column(sample, labels, "labels", np.array([], dtype=object))
    labelled = has_entry(true)
    if not labelled.any():
        raise no_labels_error()
    values = np.array([entry == positive for entry in true[labelled]], dtype=np.float64)
    classes = sorted({str(entry) for entry in true[labelled]})
    answers = sample.groups.get(sample.question.answer or "", np.array([]))
    # With labels of one class, the other class may be rare.
    if positive not in classes and positive not in answers and len(classes) > 1:
        raise InputError(
            f"no label is {positive!r}",
            allowed=suggest_names(positive, classes),
            action="Write the class as in the labels.",
        )
    return ThresholdOutcomes(values=values, labelled=labelled)


@dataclass(frozen=True, slots=True)
class ThresholdGoal(Estimand, kind="threshold", listed_field="require", listed_example="error<=.05"):
    """The set that `stratal.threshold` accepts. Its labels are planned in two rounds.

    Parameters
    ----------
    require : str
        As in `stratal.threshold`.
    score : str, optional
        The proxy. Default: the one that predicts the class, or the first.

    Examples
    --------
    >>> ThresholdGoal("precision:spam>=.9").text
    'threshold:precision:spam>=0.9'
    """

    plan_options: ClassVar[tuple[str, ...]] = ("minimum", "proxy")
    is_estimated: ClassVar[bool] = False
    require: str
    score: str | None = None

    def __post_init__(self) -> None:
        self._set(require=str(SetRequirement.parse(self.require)))

    @property
    def text(self) -> str:
        """The text form, with the score if it is named."""
        if self.score is None:
            return f"threshold:{self.require}"
        return f"threshold:{self.require},score={self.score}"

    @classmethod
    def _of_text(cls, text: str, listed: list[str], options: Keywords) -> Estimand:
        """Return the goal; the signs of a requirement are not options."""
        require, *others = text.partition(":")[2].split(",")
        arguments = dict(part.strip().partition("=")[::2] for part in others)
        if not require or set(arguments) - {"score"}:
            allowed = "threshold:REQUIREMENT, such as threshold:error<=.05, with score=COL"
            raise InputError("invalid threshold goal", given=repr(text), allowed=allowed)
        return cls(require, arguments.get("score"))

    @property
    def requirement(self) -> SetRequirement:
        """The requirement."""
        return SetRequirement.parse(self.require)

    @property
    def has_two_rounds(self) -> bool:
        """Whether the labels of a region of the score are sufficient; rates of a class need all scores."""
        return not self.requirement.is_monotone

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Raise an error, since the result is a set and not an estimate."""
        raise InputError(
            "this sample was planned for a threshold, not for an estimate",
            given=self.text,
            allowed=f"stratal.threshold(sample, labels, {self.require!r}) (stratal threshold)",
            action="To estimate another quantity, name it: estimand= (--estimand).",
        )

    def anticipated(self, population: Population, options: StratificationOptions) -> AnticipatedSet:
        """Return the cells of the score."""
        options = replace(options, proxy=options.proxy or self.score, n_strata=N_CELLS, minimum=0)
        if options.proxy is None:
            options = replace(options, proxy=_score_of(population, self.requirement))
        return AnticipatedSet(
            population=population,
            options=options,
            n_proxies=len(population.proxies),
            requirement=self.requirement,
        )

    def planned_rounds(
        self, population: Population, options: StratificationOptions, labels: int
    ) -> PlannedRounds:
        """Return the expected size of the accepted set, and the number of labels that a set needs."""
        return self.anticipated(population, options).forecast(labels)

    def next_counts(self, sample: Sample, labels: object, total: int) -> IntArray | None:
        """Return n_h (H,), with `total` labels, for equal sampling rates in a region of the score.

        The region is planned from the current labels. None if the requirement needs no second round.
        """
        strata = sample.design.strata
        if strata is None or not self.has_two_rounds:
            return None
        outcomes = threshold_outcomes(sample, labels, self.requirement.of_class(sample))
        stratum = sample.stratum[outcomes.labelled]
        # Cells from the highest scores down, without the units that are in no candidate set.
        order = np.flatnonzero(~strata.is_known)[::-1]
        counts = np.bincount(stratum, minlength=strata.n_strata)
        correct_labels = np.bincount(stratum, outcomes.values, strata.n_strata).astype(np.float64)
        cells = PilotCells(
            sizes=strata.sizes[order],
            scores=_probabilities(strata)[order],
            counts=counts[order],
            correct_labels=correct_labels[order],
        )
        region = planned_region(cells, total, self.requirement.max_fault_rate)
        n_h = sample.n_h.copy()
        n_h[order] = total_labels(cells.sizes, sample.n_h[order], region, total)
        # If all units of the region are labelled, it is extended by the next cell.
        while n_h.sum() < total:
            region += 1
            n_h[order] = total_labels(cells.sizes, n_h[order], region, total)
        return n_h


def _score_of(population: Population, requirement: SetRequirement) -> str | None:
    """Return the proxy that predicts the class or a right answer; the first if none is declared."""
    scores = {score.name: score.of_class for score in population.scores}
    if requirement.metric != ERROR:
        names = [name for name, of_class in scores.items() if of_class is not None]
        matching = [name for name in names if scores[name] == requirement.positive]
        if len(names) > 1 and not matching:
            raise InputError(
                f"no score is a probability of the class {requirement.positive!r}",
                given=", ".join(f"{name!r} of class {scores[name]!r}" for name in names),
                action="Name the score of this class: proxy= with predicts= (--predicts COL=class:NAME).",
            )
        return next(iter(matching or names), None)
    name = population.proxy_info(None).name
    if scores.get(name) is not None:
        raise InputError(
            f"{name!r} is the probability of class {scores[name]!r}, not that an answer is right",
            given=str(requirement),
            allowed="a confidence, which is high if the answer is right",
            action="Name a column of confidences: proxy= (--proxy COL). Alternatively, require "
            f"precision:{scores[name]}>=LIMIT.",
        )
    return name


def _probabilities(strata: Strata) -> FloatArray:
    """Return the mean score of each stratum (H,), or its rank if the score is not a probability."""
    if strata.scaled and strata.bounds == (0.0, 1.0):
        return strata.proxy_means
    below = np.cumsum(strata.sizes) - 0.5 * strata.sizes
    return np.asarray(below / strata.size)


@dataclass(frozen=True, kw_only=True)
class AnticipatedSet(AnticipatedOutcome):
    """Cells of a score, and the expected accepted set."""

    requirement: SetRequirement
    allocation: ClassVar[str] = "proportional"

    @property
    def _is_probability(self) -> bool:
        """Whether the score is on the scale of a probability."""
        info = self.population.proxy_info(self.options.proxy)
        return bool(info.scaled and info.bounds == (0.0, 1.0))

    @cached_property
    def cells(self) -> Strata:
        """About twenty cells among the units that an accepted set may have; all units for a monotone rate."""
        distribution = self.population.distribution(self.options.proxy)
        if self.requirement.is_monotone or len(distribution.values) == 1:
            return self.population_stratum
        max_units = distribution.size
        if self._is_probability:
            positives = float(distribution.counts @ distribution.values)
            max_units = min(max_units, max(math.ceil(_MAX_UNITS_PER_POSITIVE * positives), 1))
        column = self.population.proxy_info(self.options.proxy).name
        cells = score_cells(distribution, column, max_units)
        population_stratum = self.population_stratum
        return replace(
            cells,
            scaled=population_stratum.scaled,
            bounds=population_stratum.bounds,
            population=self.population,
        )

    def strata(self, budget: int) -> Strata:
        """Return the cells, whatever the budget."""
        return self.cells

    @property
    def budgets(self) -> tuple[int, int]:
        """The smallest and the largest budget: 1, and the units that may be in an accepted set."""
        return 1, int(self.cells.sizes[~self.cells.is_known].sum())

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The basis of the expectations."""
        return ("Expected numbers assume that the score is a probability; the guarantee does not.",)

    def remarks(self, strata: Strata) -> tuple[str, ...]:
        """Return how many units are in no candidate set."""
        if not np.any(strata.is_known):
            return ()
        share = float(strata.weights[strata.is_known].sum())
        return (
            f"{share:.1%} of the units are not labelled, because their scores are too low for the accepted "
            "set.",
        )

    def forecast(self, labels: int) -> PlannedRounds:
        """Return the expected size of the accepted set, and the number of labels that a set needs.

        For an error or a precision, this is the number for half of the largest set that satisfies the
        requirement. For recall and the false positive rate, it is the smallest random sample that can give a
        guarantee.
        """
        if not self._is_probability:
            return PlannedRounds(total=labels)
        if self.requirement.is_monotone:
            return self._forecast_of_monotone_rate(labels)
        max_fault_rate = self.requirement.max_fault_rate
        strata = self.cells
        # Cells from the highest scores down.
        order = np.flatnonzero(~strata.is_known)[::-1]
        sizes = strata.sizes[order]
        fault_rates = 1.0 - strata.proxy_means[order]
        expected, largest = expected_set(sizes, fault_rates, labels, max_fault_rate)

        def is_sufficient(n_labels: int) -> bool:
            return expected_set(sizes, fault_rates, n_labels, max_fault_rate)[0] >= 0.5 * largest

        # Double the number of labels until it suffices, then bisect to within one percent.
        sufficient = labels
        while sufficient <= _MAX_LABELS and not is_sufficient(sufficient):
            sufficient *= 2
        insufficient = sufficient // 2 if sufficient > labels else 1
        while sufficient - insufficient > max(insufficient // 100, 1):
            middle = (insufficient + sufficient) // 2
            if is_sufficient(middle):
                sufficient = middle
            else:
                insufficient = middle
        is_possible = largest > 0 and sufficient <= _MAX_LABELS
        return PlannedRounds(
            total=labels,
            expected_items=round(expected),
            largest_items=largest,
            labels_needed=sufficient if is_possible else None,
        )

    def _forecast_of_monotone_rate(self, labels: int) -> PlannedRounds:
        """Return the smallest number of labels that can give a guarantee for a monotone rate."""
        # Cases are units of the class (for the false positive rate, units not of the class). The number of
        # cases that without a fault exclude a larger rate is given by (1 − max_fault_rate)^cases = error.
        cases = math.ceil(math.log(_PLANNED_ERROR) / math.log(1.0 - self.requirement.max_fault_rate))
        class_share = float(self.population_stratum.proxy_means[0])
        of_class = self.requirement.metric == RECALL
        case_share = class_share if of_class else 1.0 - class_share
        labels_needed = math.ceil(cases / case_share) if case_share > 0 else None
        return PlannedRounds(
            total=labels, labels_needed=labels_needed, cases_needed=cases, cases_of_class=of_class
        )
