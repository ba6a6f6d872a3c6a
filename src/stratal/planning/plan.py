"""A `Plan`: a budget allocated among strata, and the precision that it is expected to give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs import SimpleRandom, Stratified
from stratal.designs.extending import require_planned_population
from stratal.designs.sample import Design, Sample
from stratal.errors import InputError
from stratal.estimation.estimand import as_estimand, parts_of
from stratal.estimation.planned_rounds import PlannedRounds
from stratal.estimation.quantity import is_share
from stratal.intervals.proportion import student_quantile
from stratal.planning.candidates import bounds_of_worst_case, scenario_half_width
from stratal.planning.expected_widths import DEFAULT_POWER, normal_half_width
from stratal.population.expressions import NumberColumn
from stratal.population.population import Population
from stratal.protocols import JsonDict, JsonMapping
from stratal.proxy.history import HISTORY
from stratal.question.scores import class_probability
from stratal.report.figures import Bars, PlotDisplay
from stratal.report.pages import plan_page
from stratal.report.text import Page, PageDisplay, TableDisplay, json_dict
from stratal.strata import Allocation, Strata, allocate
from stratal.strata.strata import Scenario

if TYPE_CHECKING:
    from stratal.intervals.looks import PlannedLooks

# Assumptions about the calibration of the proxy, of which the budget for a half-width uses one.
PROXY_ASSUMPTIONS = ("conservative", "expected", "optimistic")

# Allocations that a plan compares: they rely on the proxy not at all, partly and completely.
COMPARED_RULES = ("proportional", "robust", "neyman")

# The allocation for labels whose cost depends on the stratum.
COST_OPTIMAL = "cost-optimal"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDesign:
    """The precision that one design and estimator are expected to have at the budget.

    Parameters
    ----------
    design, estimator : str
    expected_standard_error : float
        In the outcome's units; None if the proxy only orders units, so that no forecast is possible.
    optimistic_standard_error, conservative_standard_error : float
        Smallest and largest standard error over the scenarios of a miscalibrated proxy.
    relative_efficiency : float
        Expected variance of a simple random sample's mean over this variance; above 1 is better.
    worst_standard_error : float, optional
        If no forecast is possible: the standard error if half of the labels are at each bound of the outcome
        (0 and 1 if the bounds are unknown).
    """

    design: str
    estimator: str
    expected_standard_error: float | None = None
    optimistic_standard_error: float | None = None
    conservative_standard_error: float | None = None
    relative_efficiency: float | None = None
    worst_standard_error: float | None = None

    def standard_error(self, assumption: str) -> float | None:
        """Return the standard error under one of `PROXY_ASSUMPTIONS`; None if no forecast is possible."""
        return {
            "conservative": self.conservative_standard_error,
            "expected": self.expected_standard_error,
            "optimistic": self.optimistic_standard_error,
        }[assumption]

    def without_expectation(self) -> PlannedDesign:
        """Return the design without expected standard errors."""
        return replace(
            self,
            expected_standard_error=None,
            optimistic_standard_error=None,
            conservative_standard_error=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """One of several estimands, and the precision that the labels of a plan are expected to give it.

    Parameters
    ----------
    estimand : str
    labels : int
        Number of labels in strata whose units differ in their influence on this estimand.
    expected_standard_error : float
    expected_half_width : float
        Half-width of the normal interval at the plan's confidence level.
    wanted_half_width : float or None
        The target half-width.
    relative_efficiency : float
        Variance of a simple random sample with as many labels over the plan's variance.
    """

    estimand: str
    labels: int
    expected_standard_error: float
    expected_half_width: float
    wanted_half_width: float | None
    relative_efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(PageDisplay, TableDisplay, PlotDisplay):
    """A budget allocated among strata, and the precision that it is expected to give.

    Parameters
    ----------
    budget : int
    population_size : int
    strata : Strata
        One stratum if simple random sampling is recommended.
    allocation : Allocation
    designs : tuple of PlannedDesign
    recommended : PlannedDesign
    assumptions : tuple of str
        Assumptions of the expectations.
    notes : tuple of str
        Remarks for the user, such as that the proxy will not help.
    half_width : float, optional
        The target half-width for which the budget was computed, or that the rounds after a pilot aim at.
    assume : {"conservative", "expected", "optimistic"}, optional
        The assumption about the proxy with which the budget was computed.
    pilot : bool
        Whether this is a first round, to be extended until the interval is narrow enough.
    confidence_level : float
        Confidence level of the interval.
    estimand : mapping, optional
        The record of the estimand; the mean by default.
    parts : tuple of PlannedPart
        For several estimands: the expected precision of each.
    scenario : Scenario, optional
        Possible means and variances of the strata, estimated from existing labels. Default: those that the
        proxy predicts.
    labels : mapping, optional
        Summary of the existing labels: number, source, mean, and mean of the proxy on the same units.
    looks : PlannedLooks, optional
        Planned interim analyses; expected half-widths are those of the last one.
    previous : str, optional
        Description of how labels of earlier waves are used.
    rounds : PlannedRounds, optional
        If there is a second round of labels: the numbers of labels in both rounds, and the expected result.
    population : Population, optional
        The units to draw from. A plan that was read from a file has none.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 50 + [0.9] * 50)
    >>> plan = stratal.plan(population, budget=20)
    >>> plan.recommended.design, plan.allocation.n_h
    ('stratified', array([10, 10]))
    >>> plan.draw(seed=7).size
    20
    """

    budget: int
    population_size: int
    strata: Strata
    allocation: Allocation
    designs: tuple[PlannedDesign, ...]
    recommended: PlannedDesign
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    half_width: float | None = None
    assume: str | None = None
    pilot: bool = False
    confidence_level: float = 0.95
    estimand: JsonMapping | None = None
    parts: tuple[PlannedPart, ...] = ()
    scenario: Scenario | None = field(default=None, repr=False, compare=False)
    labels: JsonMapping | None = None
    looks: PlannedLooks | None = None
    previous: str | None = None
    rounds: PlannedRounds | None = None
    population: Population | None = field(default=None, repr=False, compare=False)

    @property
    def design(self) -> Design:
        """The recommended design, ready to draw."""
        if self.recommended.design == SimpleRandom.kind:
            return SimpleRandom(budget=self.budget)
        from stratal.designs import Successive

        # A history (results of other models) predicts better with each label. Each round therefore has new
        # probabilities of single units instead of strata; this is the first round.
        if self.recommended.design == Successive.kind:
            return Successive(budgets=(self.budget,), predicted=(NumberColumn(name=HISTORY),))
        return Stratified(strata=self.strata, allocation=self.allocation)

    def draw(self, seed: int, population: Population | None = None) -> Sample:
        """Draw the recommended design.

        Parameters
        ----------
        seed : int
            The same seed and ids give the same units on every engine.
        population : Population, optional
            Default: the population of the plan. It may be another object with the same units, such as a file
            that was read again.

        Raises
        ------
        InputError
            For a population that differs from that of the plan.
        """
        if population is None:
            drawn_population = self.population
        else:
            drawn_population = population
        if drawn_population is None:
            raise InputError("this plan does not contain its population", action="Give population=.")
        sample = self.design.draw(drawn_population, seed)
        # A plan that was read from a file has no population. The command compares its stored digest instead.
        if self.population is not None:
            require_planned_population(sample, self.population)
        looks = None if self.looks is None else self.looks.text
        return replace(sample, question=replace(sample.question, estimand=self.estimand), looks=looks)

    @property
    def interval_level(self) -> float:
        """The confidence level of the interval at the last look; without looks, `confidence_level`."""
        return level_of_last_look(self.confidence_level, self.looks)

    def using(self, design: str | None) -> Plan:
        """Return the plan that recommends another of its designs; with None, the plan itself.

        Raises
        ------
        InputError
            If the plan has no such design, such as `stratified` with a single stratum.
        """
        if design is None or design == self.recommended.design:
            return self
        candidates = [candidate for candidate in self.designs if candidate.design == design]
        # The strata are stored only if they are recommended.
        if design == Stratified.kind or not candidates:
            action = "State how to stratify: n_strata=, by= (--strata, --by)."
            raise InputError(f"this plan has no {design} design", action=action)
        return replace(self, recommended=candidates[0])

    @property
    def score_warnings(self) -> tuple[str, ...]:
        """Warnings about scores that are clearly not the probabilities that the estimand assumes."""
        if self.population is None or self.estimand is None:
            return ()
        parts = parts_of(as_estimand(self.estimand), self.population)
        return tuple(note for part in parts for note in part.misread_score_notes(self.population))

    @property
    def is_share(self) -> bool:
        """Whether the estimate will be a share, which is shown in percent."""
        kind = None if self.estimand is None else str(self.estimand.get("kind"))
        return self._is_share_of(kind)

    def _is_share_of(self, estimand_text: str | None) -> bool:
        """Return whether the estimate of an estimand, such as `f1:cat`, will be a share; None is the mean."""
        models = (self.estimand or {}).get("models", ())
        columns = () if self.population is None else self.population.group_names
        # Models in group columns have answers, which are compared with true classes: outcomes are 0 or 1.
        compares_answers = len(models) > 0 and set(models) <= set(columns)
        labels_are_shares = compares_answers or self.strata.bounds == (0.0, 1.0)
        return is_share({"estimand": estimand_text}, labels_are_shares=labels_are_shares)

    def _estimand_rows(self) -> list[JsonDict]:
        """Return the expected precision of each of several estimands."""
        return [asdict(part) | {"share": self._is_share_of(part.estimand)} for part in self.parts]

    @property
    def expected_half_width(self) -> float | None:
        """Half the expected width of the default interval at `confidence_level`, or None if unknown."""
        return self.half_width_if("expected")

    @property
    def half_width_range(self) -> tuple[float, float] | None:
        """The expected half-width in the most optimistic and in the most conservative scenario."""
        optimistic = self.half_width_if("optimistic")
        conservative = self.half_width_if("conservative")
        if optimistic is None or conservative is None:
            return None
        return optimistic, conservative

    def half_width_if(self, assume: str) -> float | None:
        """Return half the expected width under an assumption: `optimistic`, `expected` or `conservative`.

        The optimistic half-width is the smallest of the three scenarios, and the conservative one the
        largest: the scenario with the largest standard error does not always have the widest interval.
        """
        if self.recommended.standard_error(assume) is None:
            return None
        if assume == "expected":
            return self._half_width(assume)
        widths = [self._half_width(assumption) for assumption in PROXY_ASSUMPTIONS]
        if assume == "optimistic":
            return min(widths)
        return max(widths)

    def _half_width(self, assumption: str) -> float:
        """Return half the expected width in the scenario of one of `PROXY_ASSUMPTIONS`."""
        standard_error = self.recommended.standard_error(assumption)
        assert standard_error is not None
        strata = self.strata
        sizes = strata.sizes
        n_h = self.allocation.n_h
        scenario = self._scenario(assumption)
        # `using("simple-random")` keeps the strata of the plan.
        if self.recommended.design == SimpleRandom.kind and strata.n_strata > 1:
            scenario = _merge_strata(strata, scenario)
            sizes = np.array([strata.size])
            n_h = np.array([self.budget])
        return scenario_half_width(
            sizes,
            n_h,
            scenario,
            bounds=strata.bounds,
            error=standard_error,
            confidence_level=self.interval_level,
        )

    @property
    def detectable_difference(self) -> float | None:
        """The smallest difference between two models that these labels detect with 80% power.

        The strata are based on the first model's proxy, so the second model is assumed to be estimated only
        as precisely as in a simple random sample. The errors of the two models are assumed to be independent
        (Cochran, 4.6, paired). None if no forecast is possible.
        """
        first_error = self.recommended.expected_standard_error
        # The first design is the simple random sample.
        simple_error = self.designs[0].expected_standard_error
        # The two errors are those of means.
        if first_error is None or simple_error is None or self.estimand is not None:
            return None
        tail_probabilities = np.array([(1.0 - self.interval_level) / 2.0, 1.0 - DEFAULT_POWER])
        sum_of_quantiles = -float(np.sum(student_quantile(tail_probabilities, np.inf)))
        return sum_of_quantiles * math.hypot(first_error, max(first_error, simple_error))

    @property
    def worst_half_width(self) -> float | None:
        """The half-width without a forecast, in the worst case: half of the labels are at each bound."""
        worst_error = self.recommended.worst_standard_error
        if worst_error is None:
            return None
        return normal_half_width(worst_error, self.interval_level)

    @property
    def allocations(self) -> list[JsonDict]:
        """The expected precision of the plan's allocation and of others; none without strata.

        Compare the ranges: allocations that rely on the proxy are the best if the proxy is right, and the
        worst if it is not.
        """
        planned_error = self.recommended.expected_standard_error
        efficiency = self.recommended.relative_efficiency
        is_stratified = self.recommended.design != SimpleRandom.kind
        # With another allocation, the same budget in units of cost pays for another number of labels.
        is_budget_a_cost = self.allocation.method == COST_OPTIMAL
        # Several estimands have no common standard error.
        is_comparable = is_stratified and not self.parts and not is_budget_a_cost
        if not is_comparable or not planned_error or efficiency is None:
            return []
        rows = []
        for rule in dict.fromkeys((self.allocation.method, *COMPARED_RULES)):
            errors = self._standard_errors(self._n_h_by(rule))
            expected = float(errors[0])
            row = {
                "allocation": rule,
                "optimistic_standard_error": float(errors.min()),
                "expected_standard_error": expected,
                "conservative_standard_error": float(errors.max()),
                "relative_efficiency": efficiency * (planned_error / expected) ** 2,
            }
            rows.append(row)
        return rows

    def _n_h_by(self, rule: str) -> IntArray:
        """Return the n_h (H,) of another rule with the plan's budget and minimums."""
        if rule == self.allocation.method:
            return self.allocation.n_h
        return allocate(self.strata, self.budget, rule, self.allocation.minimum).n_h

    @property
    def _scenarios(self) -> Scenario:
        """Possible means and variances of the strata."""
        return self.scenario or self.strata.scenarios

    def _standard_errors(self, n_h: IntArray) -> FloatArray:
        """Return the standard error of the recommended estimator in each scenario, the expected one first."""
        return self._scenarios.standard_errors(self.strata, n_h, self.recommended.estimator)

    def _scenario(self, assumption: str) -> Scenario:
        """Return the scenario of one of `PROXY_ASSUMPTIONS`."""
        errors = self._standard_errors(self.allocation.n_h)
        # The first scenario is the expected one.
        position = {"expected": 0, "optimistic": int(errors.argmin()), "conservative": int(errors.argmax())}
        return self._scenarios.select(position[assumption])

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict."""
        strata = self.strata
        fields = {
            "estimand": self.estimand,
            "labels": self.labels,
            "population_size": self.population_size,
            "budget": self.budget,
            "share": self.is_share,
            "half_width": self.half_width,
            "assume": self.assume,
            "pilot": self.pilot,
            "expected_half_width": self.expected_half_width,
            "half_width_range": self.half_width_range,
            "worst_half_width": self.worst_half_width,
            "worst_bounds": None if self.worst_half_width is None else bounds_of_worst_case(strata),
            "detectable_difference": self.detectable_difference,
            "confidence_level": self.confidence_level,
            "looks": None if self.looks is None else self.looks.text,
            "previous": self.previous,
            "rounds": None if self.rounds is None else asdict(self.rounds),
            "recommended": asdict(self.recommended),
            "allocation": self.allocation.method,
            "stratification": strata.method,
            "proxies": self._describe_scores(),
            "designs": [asdict(row) for row in self.designs],
            "allocations": self.allocations,
            "strata": self._stratum_rows(),
            "estimands": self._estimand_rows() or None,
            "assumptions": self.assumptions,
            "notes": self.notes,
        }
        omitted_if_none = ("estimand", "labels", "looks", "previous", "rounds", "estimands", "proxies")
        return json_dict(
            {
                name: value
                for name, value in fields.items()
                if value is not None or name not in omitted_if_none
            }
        )

    def _describe_scores(self) -> list[JsonDict] | None:
        """Return a dict for each score with the quantity that it predicts; None without a population."""
        if self.population is None:
            return None
        estimand = self.estimand or {}
        probability = estimand.get("probability")
        descriptions = []
        for score in self.population.scores:
            # Naming a score in the estimand declares that it is the probability of the class.
            if score.name == probability and not score.declared:
                meaning = class_probability(str(estimand["positive"]))
                score = replace(score, predicts=meaning, declared=True)
            descriptions.append(score.to_dict_with_meaning())
        return descriptions

    def _stratum_rows(self) -> list[JsonDict]:
        """Return size, labels, mean proxy and expected standard deviation of each stratum."""
        strata = self.strata
        deviations: Sequence[float | None] | FloatArray = [None] * strata.n_strata
        # A proxy that only orders units predicts no standard deviation; existing labels do.
        if strata.scaled or self.scenario is not None:
            deviations = np.sqrt(self._scenario("expected").variances)
        names = ("name", "size", "n", "proxy_mean", "expected_standard_deviation")
        columns = (strata.names, strata.sizes, self.allocation.n_h, strata.proxy_means, deviations)
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _columns(self) -> JsonDict:
        """Return the columns (H,) of the table of strata by name."""
        return {**self.strata._columns(), "to_label": self.allocation.n_h}

    def _page(self) -> Page:
        """Return the plan without the tables of designs, allocations and strata, to be printed."""
        return plan_page(self.to_dict(), details=False)

    def summary(self) -> Page:
        """Return the plan with all designs, allocations and strata, to be printed."""
        return plan_page(self.to_dict())

    def _plot(self) -> Bars:
        """Draw each stratum's share of the units and of the labels."""
        shares = self.allocation.n_h / self.allocation.n_h.sum()
        columns = (self.strata.names, self.strata.weights.tolist(), shares.tolist())
        return Bars(
            title=f"{self.budget:,} labels of {self.population_size:,} units ({self.allocation.method})",
            x_label="share",
            rows=list(zip(*columns, strict=True)),
            series=["of the units", "of the labels"],
        )


def _merge_strata(strata: Strata, scenario: Scenario) -> Scenario:
    """Return the scenario of all units as one stratum, from that of the strata (H,)."""
    overall_mean = float(strata.weights @ scenario.means)
    variance = float(strata.weights @ (scenario.variances + (scenario.means - overall_mean) ** 2))
    return replace(scenario, means=np.array([overall_mean]), variances=np.array([variance]))


def level_of_last_look(confidence_level: float, looks: PlannedLooks | None) -> float:
    """Return the confidence level of the last look's interval."""
    if looks is None:
        return confidence_level
    return looks.at(looks.number).level(confidence_level, "two-sided")
