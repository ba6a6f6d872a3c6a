"""`Planner`: finds the strata, the allocation and the design of a plan, for any estimand.

`Estimand.anticipated` returns what depends on the estimand: the expected moments, the strata that a budget
allows, and the range of budgets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs import SimpleRandom, Stratified
from stratal.errors import BudgetError, InputError, suggest_names
from stratal.estimation.anticipated import Anticipated, StratificationOptions
from stratal.estimation.default_estimator import default_estimator
from stratal.estimation.estimand import Estimand, parts_of
from stratal.planning.budget_search import check_half_widths, smallest_budget
from stratal.planning.candidates import (
    LARGEST_ERROR_RATIO,
    Candidate,
    first_within_tolerance,
    larger_budgets,
)
from stratal.planning.design_precision import (
    expected_precision,
    is_uninformative,
    more_precise_design_notes,
    simple_allocation,
    successive_precision,
)
from stratal.planning.expected_widths import normal_half_width
from stratal.planning.plan import COST_OPTIMAL, Plan, PlannedDesign, PlannedPart, level_of_last_look
from stratal.planning.stratum_minimums import stratum_minimums
from stratal.population.expressions import NumberColumn
from stratal.population.influence import population_means, stratum_averages
from stratal.population.population import Population
from stratal.proxy.history import HISTORY, history_columns
from stratal.strata import Allocation, Strata, allocate
from stratal.strata.allocation import allocate_budgets
from stratal.strata.arguments import check_budget
from stratal.strata.region import PILOT_SHARE as FIRST_ROUND_SHARE
from stratal.strata.strata import expected_variance

if TYPE_CHECKING:
    from stratal.intervals.looks import PlannedLooks
    from stratal.planning.previous_labels import PreviousLabels
    from stratal.planning.previous_waves import PreviousWaves

# Labels of a pilot if nothing is known about how many will be needed. A search for a budget starts here too.
PILOT_LABELS = 50

# Share of the optimistic budget that a pilot gets. Later rounds allocate the other half by its labels.
PILOT_BUDGET_SHARE = 0.5

# Most estimands that are planned jointly: their common allocation takes seconds. Twice as many take a minute.
MAX_ESTIMANDS = 500

# Stratified sampling is recommended if its expected relative efficiency exceeds this.
_MIN_EFFICIENCY = 1.02

# Strata by options of the user are planned if they are at least this efficient, relative to a simple random
# sample with its own estimator. A loss below 2% does not justify another plan than the requested one.
_EFFICIENCY_TOLERANCE = 0.98

EVERY_UNIT = "Every unit is labelled: the value for these units will be exact."

_SIMPLE_IS_NARROWER = (
    "A simple random sample is expected to give a narrower interval than strata with a minimum number of "
    "labels each, and is planned instead."
)

# If the width with the default strata exceeds this share of a simple random sample's width, fallback strata
# are compared too.
_CLEARLY_NARROWER_RATIO = 0.97

# Strata of k-means are planned if some miscalibration gives the default strata more than this multiple of
# their variance (docs/decisions/0007-plans.md).
_LARGEST_VARIANCE_RATIO = 1.02

# Largest accepted standard error of strata that are divided by earlier waves, relative to the default strata.
# Both are expected by the score alone, so this limits the loss if the earlier labels mislead.
_LARGEST_ERROR_RATIO_OF_HALVES = 1.05

# Expected number of labels of a class below which its metric may be undefined, or have a very wide interval.
_MIN_LABELS_OF_CLASS = 10.0

_TOO_FEW_FOR_HALVES = "The budget is too small to divide the strata by labels of earlier waves."
_SCORE_IS_BETTER = "Labels of earlier waves are not used: the score alone divides the units more finely."


@dataclass(frozen=True, kw_only=True)
class _PlannedStrata:
    """Strata of a plan and their labels, before the designs are compared.

    Parameters
    ----------
    strata : Strata
    allocation : Allocation, optional
        None if only a simple random sample is possible.
    candidate : Candidate, optional
        The candidate to plan, if candidates were compared: a simple random sample or these strata.
    parts : tuple of PlannedPart
        The expected precision of each of several estimands.
    notes : tuple of str
    has_simple_forecast : bool
        Whether a precision can be forecast for a simple random sample.
    previous : str, optional
        How labels of earlier waves are used.
    """

    strata: Strata
    allocation: Allocation | None = None
    candidate: Candidate | None = None
    parts: tuple[PlannedPart, ...] = ()
    notes: tuple[str, ...] = ()
    has_simple_forecast: bool = True
    previous: str | None = None


@dataclass(frozen=True, kw_only=True)
class Planner:
    """The arguments of `stratal.plan`, and the plans that follow from them.

    Parameters
    ----------
    population : Population
    estimand : Estimand
        One estimand, or several.
    options : StratificationOptions
    confidence_level : float
    half_width : float or (J,), optional
        Target: one for all parts of the estimand, or one for each.
    labels : PreviousLabels, optional
        Existing labels, which replace what the proxy predicts.
    looks : PlannedLooks, optional
    previous : PreviousWaves, optional
        Labels of earlier waves, by which strata are divided and allocated.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     proxy=[0.9, 0.6] * 50, groups={"answer": ["cat", "dog"] * 50}, predicted="answer")
    >>> planner = Planner(population=population, estimand=Estimand.parse_text("f1:cat"))
    >>> planner.plan_budget(20).allocation.budget
    20
    """

    population: Population
    estimand: Estimand
    options: StratificationOptions = field(default_factory=StratificationOptions)
    confidence_level: float = 0.95
    half_width: float | Sequence[float] | None = None
    labels: PreviousLabels | None = None
    looks: PlannedLooks | None = None
    previous: PreviousWaves | None = None

    @cached_property
    def interval_level(self) -> float:
        """Confidence level of the last look's interval."""
        return level_of_last_look(self.confidence_level, self.looks)

    @cached_property
    def normal_quantile(self) -> float:
        """Half-width of the last look's normal interval in standard errors."""
        return normal_half_width(1.0, self.interval_level)

    @cached_property
    def parts(self) -> list[Estimand]:
        """The single estimands (J,)."""
        parts = list(parts_of(self.estimand, self.population))
        if len(parts) > MAX_ESTIMANDS:
            problem = f"{self.estimand.text} has too many parts to plan jointly"
            action = "Plan for the mean, and estimate the levels from the labels: by=, --by."
            allowed = f"up to {MAX_ESTIMANDS}"
            raise InputError(problem, given=f"{len(parts):,}", allowed=allowed, action=action)
        return parts

    @cached_property
    def anticipated(self) -> Anticipated:
        """The expectations of the estimand, and its strata."""
        options = self.options
        if self.labels is not None:
            opposed_scores = self.labels.opposed_scores(self.population.proxy_names)
            options = replace(options, opposed_scores=opposed_scores)
        return self.estimand.anticipated(self.population, options)

    @cached_property
    def target_half_widths(self) -> FloatArray:
        """The target half-widths (J,), checked."""
        return check_half_widths(self.half_width, len(self.parts), self.anticipated.population_stratum)

    @property
    def is_worst_case(self) -> bool:
        """Whether the plan assumes the most variable outcomes, because the proxy predicts no variance."""
        return self.labels is None and is_uninformative(self.anticipated.population_stratum)

    def plan_rounds(self, budget: int) -> Plan:
        """Return the plan of a budget: of all its labels, or of the first of two rounds."""
        check_budget(budget, self.population.size)
        rounds = self.estimand.planned_rounds(self.population, self.options, budget)
        if rounds is None:
            return self.plan_budget(budget)
        first_budget = budget
        first_planner = self
        if self.estimand.has_two_rounds:
            min_budget, max_budget = self.anticipated.budgets
            first_budget = min(budget, max(int(FIRST_ROUND_SHARE * budget), min_budget))
            rounds = replace(rounds, total=min(budget, max_budget))
            first_planner = replace(self, options=replace(self.options, allocation="proportional"))
        plan = replace(first_planner.plan_budget(first_budget), rounds=rounds)
        # A threshold has a guarantee, and no precision.
        if not self.estimand.is_estimated:
            return plan
        # Both rounds together are expected to be at least as precise as one round by the score alone.
        one_round_plan = self.plan_budget(rounds.total)
        rounds = replace(rounds, expected_half_width=one_round_plan.expected_half_width)
        return replace(plan, parts=one_round_plan.parts, rounds=rounds)

    def plan_budget(self, budget: int | None) -> Plan:
        """Return the plan of a budget, which is limited to the units whose labels affect the estimate.

        Without a budget, return the plan that reaches the half-widths of several estimands.
        """
        cost_column = self._cost_column()
        if cost_column is None:
            n_labels = budget
        else:
            n_labels = self._affordable_labels(budget, cost_column)
        n_labels, notes = self._limit_to_unknown_labels(n_labels)
        planned = self._planned_strata(n_labels, cost_column, money=budget)
        if planned.allocation is not None:
            n_labels = planned.allocation.budget
        assert n_labels is not None
        designs = self._designs(planned, n_labels)
        recommended, recommendation_notes = self._recommend(designs, planned, n_labels)
        notes += planned.notes
        if self._compares_successive and recommended.expected_standard_error:
            error = recommended.expected_standard_error
            successive = successive_precision(self.population, recommended, error, n_labels)
            designs.append(successive)
            # A multiple of `error` is not None.
            assert successive.expected_standard_error is not None
            if successive.expected_standard_error < error:
                recommended = successive
        if n_labels == self.population.size:
            notes += (EVERY_UNIT,)
        elif not planned.parts and planned.candidate is None:
            notes += more_precise_design_notes(recommended, designs)
        if not self._is_divided(planned.strata):
            # They state why there are no strata.
            recommendation_notes = planned.strata.notes
        return self._assemble(n_labels, planned, designs, recommended, recommendation_notes, notes)

    def _assemble(
        self,
        n_labels: int,
        planned: _PlannedStrata,
        designs: list[PlannedDesign],
        recommended: PlannedDesign,
        recommendation_notes: tuple[str, ...],
        notes: tuple[str, ...],
    ) -> Plan:
        """Return the plan with its strata and allocation: one stratum if it does not stratify."""
        strata = planned.strata
        allocation = planned.allocation
        score_notes = self.anticipated.score_notes
        if allocation is None or recommended.design != Stratified.kind:
            strata = self.anticipated.population_stratum
            allocation = simple_allocation(strata, n_labels)
            score_notes = ()
        labels = self.labels
        if labels is None:
            scenario = None
            described_labels = None
            expectation_notes = self.anticipated.remarks(planned.strata)
            assumptions = self.anticipated.assumptions
        else:
            scenario = labels.scenario(strata, allocation.n_h)
            described_labels = labels.to_dict()
            expectation_notes = labels.notes
            assumptions = labels.assumptions
        misread_notes = (note for part in self.parts for note in part.misread_score_notes(self.population))
        return Plan(
            budget=n_labels,
            population_size=self.population.size,
            strata=strata,
            allocation=allocation,
            designs=tuple(designs),
            recommended=recommended,
            assumptions=assumptions,
            notes=(
                *self.population.notes,
                *score_notes,
                *misread_notes,
                *self._rare_class_notes(strata, allocation),
                *expectation_notes,
                *recommendation_notes,
                *strata.notes,
                *notes,
                *allocation.notes,
            ),
            scenario=scenario,
            labels=described_labels,
            confidence_level=self.confidence_level,
            population=self.population,
            estimand=self.estimand.to_dict() if self.estimand.is_stored else None,
            parts=planned.parts,
            looks=self.looks,
            previous=planned.previous,
        )

    def plan_half_width(self, assume: str) -> Plan:
        """Return the plan of the fewest labels that are expected to reach the half-widths."""
        targets = self.target_half_widths
        if len(targets) > 1:
            return self.plan_budget(None)
        if self.is_worst_case:
            assume = "conservative"
        target = float(targets[0])
        min_budget, max_budget = self.anticipated.budgets
        start = PILOT_LABELS
        width_of_budget = partial(self._planned_half_width, assume=assume)
        if not self.is_worst_case:
            if not math.isfinite(width_of_budget(max_budget)):
                problem = (
                    "no forecast is possible with this proxy, so it is not known how many labels a "
                    "half-width requires"
                )
                raise BudgetError(problem, action="Give a budget, or plan a pilot (pilot=True).")
            # The normal interval is faster to compute, and nearly as wide.
            normal_width_of_budget = partial(self._normal_half_width, assume=assume)
            start = smallest_budget(normal_width_of_budget, target, start, min_budget, max_budget)
        budget = smallest_budget(width_of_budget, target, start, min_budget, max_budget)
        return replace(self.plan_budget(budget), half_width=target, assume=assume)

    def _planned_half_width(self, budget: int, *, assume: str) -> float:
        """Return the half-width that a budget is expected to give; infinite if no forecast is possible."""
        plan = self.plan_budget(budget)
        if self.is_worst_case:
            half_width = plan.worst_half_width
        else:
            half_width = plan.half_width_if(assume)
        if half_width is None:
            return math.inf
        return half_width

    def _normal_half_width(self, budget: int, *, assume: str) -> float:
        """Return the half-width of the normal interval; infinite if no forecast is possible."""
        error = self.plan_budget(budget).recommended.standard_error(assume)
        if error is None:
            return math.inf
        return self.normal_quantile * float(error)

    def plan_pilot(self) -> Plan:
        """Return the plan of a pilot: half of the labels that suffice in the optimistic scenario."""
        targets = self.target_half_widths
        # Without a forecast, the pilot shows how precise the proxy is.
        is_worst_case = len(targets) == 1 and self.is_worst_case
        if is_worst_case:
            n_sufficient = PILOT_LABELS
        else:
            n_sufficient = self.plan_half_width("optimistic").budget
        min_budget = max(self.anticipated.budgets[0], min(PILOT_LABELS, n_sufficient))
        pilot_budget = round(PILOT_BUDGET_SHARE * n_sufficient)
        plan = self.plan_budget(min(self.population.size, max(min_budget, pilot_budget)))
        if is_worst_case and self.population.proxies:
            reason = (
                "fewer labels would provide too little information, and no forecast is possible with the "
                "proxy"
            )
        elif is_worst_case:
            reason = "fewer labels would provide too little information, and there is no proxy"
        elif pilot_budget < min_budget:
            reason = "fewer labels would provide too little information"
        else:
            reason = f"half of the {n_sufficient:,} that would suffice if the proxy were better than expected"
        notes = (*plan.notes, f"The pilot has {plan.budget:,} labels: {reason}.")
        if len(targets) == 1:
            half_width = float(targets[0])
        else:
            half_width = None
        return replace(plan, half_width=half_width, pilot=True, notes=notes)

    def _limit_to_unknown_labels(self, n_labels: int | None) -> tuple[int | None, tuple[str, ...]]:
        """Return at most the number of units whose labels affect the value, and a note if that is less."""
        size = self.population.size
        if n_labels is None:
            return None, ()
        check_budget(n_labels, size)
        max_labels = self.anticipated.budgets[1]
        if max_labels < size and n_labels >= max_labels:
            note = f"The labels of {max_labels:,} units determine the value; the others do not affect it."
            return max_labels, (note,)
        return n_labels, ()

    def _cost_column(self) -> str | None:
        """Return the column of label costs in the allocation, such as `cost-optimal:minutes`, or None."""
        rule, colon, column = (self.options.allocation or "").partition(":")
        if rule != COST_OPTIMAL:
            return None
        columns = (*self.population.feature_names, *self.population.proxy_names)
        if not colon or column not in columns:
            if columns:
                allowed = suggest_names(column, columns)
            else:
                allowed = "a column of numbers: features="
            problem = f"'{COST_OPTIMAL}' requires a column with the costs of labels: '{COST_OPTIMAL}:COLUMN'"
            raise InputError(problem, given=repr(column), allowed=allowed)
        return column

    def _affordable_labels(self, money: float | None, cost_column: str) -> int:
        """Return the number of labels of random units that the money pays for."""
        if money is None or self.half_width is not None:
            action = "Give budget= (--budget), not half_width= (--half-width)."
            raise InputError(f"'{COST_OPTIMAL}' requires a budget in units of cost", action=action)
        (mean_cost,) = population_means(self.population, [NumberColumn(name=cost_column)])
        if not mean_cost > 0:
            mean_text = f"mean {mean_cost:g}"
            raise InputError(f"'{cost_column}' has no positive mean cost", given=mean_text, allowed="above 0")
        return max(1, min(self.population.size, int(money / mean_cost)))

    def _is_divided(self, strata: Strata) -> bool:
        """Return whether a stratified sample is possible: there are several strata, or they are required."""
        return strata.n_strata > 1 or not self.anticipated.strata_are_optional

    def _planned_strata(
        self, n_labels: int | None, cost_column: str | None, money: float | None
    ) -> _PlannedStrata:
        """Return the strata and their allocation; for a cost-optimal one of the money."""
        if n_labels is not None and self.compares_candidates:
            planned = self._compare_candidates(n_labels)
            if self.previous is None:
                return planned
            return self._divide_by_previous_waves(planned, n_labels, self.previous)
        if n_labels is None:  # half-widths of several estimands: strata as for a large budget
            strata = self.anticipated.strata(PILOT_LABELS * self.anticipated.most_strata)
        else:
            strata = self.anticipated.strata(n_labels)
        if not self._is_divided(strata):
            return _PlannedStrata(strata=strata)
        if len(self.parts) > 1:
            return self._allocate_jointly(strata, n_labels)
        if cost_column is not None:
            return self._allocate_by_cost(strata, n_labels, cost_column, money)
        rule = self.options.allocation or self.anticipated.allocation
        allocate_labels = partial(allocate, strata, budget=n_labels, method=rule)
        minimum = self.options_with_defaults.minimum
        return _PlannedStrata(strata=strata, allocation=self._with_minimums(strata, allocate_labels, minimum))

    def _allocate_by_cost(
        self, strata: Strata, n_labels: int | None, cost_column: str, money: float | None
    ) -> _PlannedStrata:
        """Return the cost-optimal allocation of the money; `n_labels` is that of a random sample."""
        costs = stratum_averages(self.population, strata.rule, [NumberColumn(name=cost_column)])[:, 0]
        allocate_labels = partial(allocate, strata, method=COST_OPTIMAL, costs=costs, cost_budget=money)
        return _PlannedStrata(
            strata=strata,
            allocation=self._with_minimums(strata, allocate_labels, self.options_with_defaults.minimum),
            notes=(f"With a simple random sample, this budget buys about {n_labels:,} labels.",),
        )

    def _with_minimums(
        self, strata: Strata, allocate_labels: Callable[..., Allocation], minimum: int
    ) -> Allocation:
        """Return an allocation with the minimums of `stratum_minimums`, if strata are of single answers.

        `allocate_labels` is called with `minimum=`.
        """
        allocation = allocate_labels(minimum=minimum)
        minimums = None
        if self._has_strata_of_answers:
            minimums = stratum_minimums(strata, allocation.n_h, minimum)
        if minimums is None:
            return allocation
        n_h = allocate_labels(minimum=minimums).n_h
        return replace(allocation, n_h=n_h, budget=int(n_h.sum()))

    def _allocate_jointly(self, strata: Strata, n_labels: int | None) -> _PlannedStrata:
        """Return one allocation for several estimands: of the budget, or the smallest for the half-widths."""
        from stratal.planning.joint_plan import influence_deviations, planned_parts
        from stratal.strata import allocate_several

        influences = list(self.estimand.influences(self.population))
        stratum_deviations, population_variances, _ = influence_deviations(
            self.population, strata, influences
        )
        # Divisor N_h − 1, as in the variance of a stratified mean.
        sample_deviations = stratum_deviations * np.sqrt(strata.sizes / np.maximum(strata.sizes - 1, 1))
        if self.half_width is None:
            targets = None
        else:
            targets = self.target_half_widths
        if targets is None:
            target_errors = np.ones(len(stratum_deviations))
        elif n_labels is None:
            target_errors = targets / self.normal_quantile
        else:  # with a budget, only the ratios of the errors matter
            target_errors = targets
        names = [part.text for part in self.parts]

        def allocate_labels(minimum: int | IntArray) -> Allocation:
            if self.options.allocation is not None:
                return allocate(strata, n_labels, self.options.allocation, minimum)
            return allocate_several(
                strata.sizes,
                sample_deviations,
                n_labels,
                standard_errors=target_errors,
                known_strata=strata.is_known,
                names=names,
                minimum=minimum,
            ).allocation

        allocation = self._with_minimums(strata, allocate_labels, self.options_with_defaults.minimum)
        parts = planned_parts(
            names,
            strata,
            allocation.n_h,
            stratum_deviations,
            population_variances,
            normal_quantile=self.normal_quantile,
            target_half_widths=targets,
        )
        return _PlannedStrata(strata=strata, allocation=allocation, parts=parts)

    def _rare_class_notes(self, strata: Strata, allocation: Allocation) -> tuple[str, ...]:
        """Return the warning that few labels are expected to be of the class that a metric needs."""
        if self.labels is not None:
            # The expected number would be based on the proxies, but the labels show how rare the class is.
            return ()
        notes = []
        for part in self.parts:
            class_probability = part.class_formula(self.population)
            if class_probability is None:
                continue
            class_shares = stratum_averages(self.population, strata.rule, [class_probability])[:, 0]
            n_in_labels = float(allocation.n_h @ class_shares)
            n_in_population = float(strata.sizes @ class_shares)
            if n_in_labels < _MIN_LABELS_OF_CLASS:
                notes.append(_rare_class_text(part.text, n_in_labels, n_in_population, allocation.budget))
        return tuple(notes)

    @cached_property
    def compares_candidates(self) -> bool:
        """Whether strata and a simple random sample are compared: no option fixes the number of strata."""
        is_open = self.options_with_defaults.is_open and self.anticipated.can_be_stratified
        return is_open and self.labels is None and len(self.parts) == 1

    @property
    def options_with_defaults(self) -> StratificationOptions:
        """The options with the proxy and the category that the estimand chooses by default."""
        return self.anticipated.options

    @cached_property
    def _has_strata_of_answers(self) -> bool:
        """Whether the strata of an estimand have one answer of a model each."""
        return any(part.by_answer for part in self.parts)

    def _compare_candidates(self, budget: int) -> _PlannedStrata:
        """Return the best strata of a budget, and whether these or a simple random sample is planned."""
        stratified = self._stratified_candidates(budget)
        simple = self._simple_candidate(budget)
        if not stratified:
            return _PlannedStrata(strata=simple.strata, candidate=simple)
        missed_cell = self._missed_cell(stratified[-1].strata, budget)
        if missed_cell is not None:
            best = first_within_tolerance(stratified)
            note = (
                f"A simple random sample of {budget:,} units would have few or no labels in {missed_cell!r}, "
                "so no precision can be forecast for it."
            )
            return _PlannedStrata(
                strata=best.strata,
                allocation=best.allocation,
                candidate=best,
                notes=(note,),
                has_simple_forecast=False,
            )
        narrowest = min(candidate.half_width for candidate in stratified)
        if narrowest > _CLEARLY_NARROWER_RATIO * simple.half_width:
            # Robust cuts give few labels to strata in which a near-perfect score leaves little variance, and
            # the interval is wide for few labels. With fewer strata it can be narrower.
            stratified += self._fallback_candidates(budget)
        choice = simple
        if self.is_worthwhile:
            precise = [candidate for candidate in stratified if self._stays_precise(candidate, simple)]
            choice = first_within_tolerance([*precise, simple])
        # The table of designs also contains strata that are not recommended.
        if choice is simple:
            compared = first_within_tolerance(stratified)
        else:
            compared = choice
        if self._is_divided(compared.strata):
            allocation = compared.allocation
        else:
            allocation = None
        return _PlannedStrata(strata=compared.strata, allocation=allocation, candidate=choice)

    def _stratified_candidates(self, budget: int) -> list[Candidate]:
        """Return the default strata, or those of k-means if a miscalibration makes these more precise."""
        default = [self._candidate(strata, budget) for strata in self.anticipated.alternatives(budget)]
        fallbacks = self._fallback_candidates(budget)
        if not default or not fallbacks or self.is_worst_case:
            return default
        variances = first_within_tolerance(default).miscalibrated_variances
        fallback_variances = first_within_tolerance(fallbacks).miscalibrated_variances
        if np.any(variances > _LARGEST_VARIANCE_RATIO * fallback_variances):
            return fallbacks
        return default

    def _fallback_candidates(self, budget: int) -> list[Candidate]:
        """Return the strata of k-means where robust Neyman cuts are the default."""
        return [self._candidate(strata, budget) for strata in self.anticipated.fallback_alternatives(budget)]

    def _divide_by_previous_waves(
        self, planned: _PlannedStrata, budget: int, previous: PreviousWaves
    ) -> _PlannedStrata:
        """Return half as many strata, each divided in two by earlier waves, if they are as precise."""
        candidate = planned.candidate
        assert candidate is not None
        if not previous.is_sufficient:
            return replace(planned, previous=previous.insufficient_note)
        undivided = self._simple_candidate(budget)
        for strata in self.anticipated.alternatives(budget):
            if 2 * strata.n_strata <= candidate.strata.n_strata:
                undivided = self._candidate(strata, budget)
                break
        divided = previous.divide(self.population, undivided.strata, undivided.allocation)
        if divided is None:
            return replace(planned, previous=_TOO_FEW_FOR_HALVES)
        strata, allocation = divided
        choice = Candidate(strata=strata, allocation=allocation, confidence_level=self.interval_level)
        if choice.error > _LARGEST_ERROR_RATIO_OF_HALVES * candidate.error:
            return replace(planned, previous=_SCORE_IS_BETTER)
        return _PlannedStrata(
            strata=choice.strata,
            allocation=choice.allocation,
            candidate=choice,
            notes=planned.notes,
            previous=previous.note,
        )

    def _missed_cell(self, coarsest: Strata, budget: int) -> str | None:
        """Return a cell of a metric that a simple random sample is expected to miss; None if there is none.

        The coarsest strata of a metric are its cells, such as the answers. Without a label in one of them the
        metric may be undefined, and the linear approximation of its standard error is not valid.
        """
        # Strata that are optional are those of a mean, which is defined without labels in one of them.
        if self.anticipated.strata_are_optional:
            return None
        expected_labels = np.where(coarsest.is_known, np.inf, budget * coarsest.weights)
        smallest = int(np.argmin(expected_labels))
        if expected_labels[smallest] >= self.options_with_defaults.minimum:
            return None
        return coarsest.names[smallest]

    def _stays_precise(self, candidate: Candidate, simple: Candidate) -> bool:
        """Return whether strata are as precise as a simple random sample, at larger budgets too.

        Otherwise a few more labels would change the plan from strata to a simple random sample, whose
        interval is wider at the same standard error if labels are few.
        """
        is_precise = candidate.is_as_precise(simple)
        if self.is_worst_case or candidate.is_clearly_more_precise(simple) or not is_precise:
            return is_precise
        budgets = larger_budgets(candidate.allocation.budget, candidate.strata.size)
        strata = candidate.strata
        if self._has_strata_of_answers:
            return all(self._is_as_precise_at(strata, budget) for budget in budgets)
        # One call for all budgets: separate calls took a fifth of the time of the command.
        n_h = allocate_budgets(
            strata,
            np.array(budgets, np.int64),
            self.anticipated.allocation,
            self.options_with_defaults.minimum,
        )
        errors = candidate.expected.standard_errors(strata, n_h, candidate.estimator)
        simple_errors = np.array([self._simple_error(budget) for budget in budgets])
        return bool(np.all(errors <= LARGEST_ERROR_RATIO * simple_errors))

    def _is_as_precise_at(self, strata: Strata, budget: int) -> bool:
        """Return whether strata are as precise as a simple random sample of this budget."""
        return self._candidate(strata, budget).error <= LARGEST_ERROR_RATIO * self._simple_error(budget)

    def _simple_error(self, budget: int) -> float:
        """Return the standard error that a simple random sample is expected to give."""
        if budget not in self._simple_errors:
            self._simple_errors[budget] = self._simple_candidate(budget).error
        return self._simple_errors[budget]

    @cached_property
    def _simple_errors(self) -> dict[int, float]:
        """The standard errors of simple random samples by budget."""
        return {}

    @cached_property
    def is_worthwhile(self) -> bool:
        """Whether strata were requested, or reduce the variance of a simple random sample's mean.

        It does not depend on the budget, so that more labels do not change strata into a simple random
        sample.
        """
        if self.is_worst_case or self.options_with_defaults.by is not None:
            return True
        if not self.anticipated.strata_are_optional:
            return True
        anticipated = self.anticipated
        population_stratum = anticipated.population_stratum
        # The smallest budget with the largest number of strata, at most half of the units: if all were
        # labelled, no error would remain to compare.
        budget = min(anticipated.per_stratum * anticipated.most_strata, population_stratum.size // 2)
        variances = population_stratum.scenarios.variances[0]
        simple_variance = expected_variance(population_stratum.sizes, np.array([budget]), variances)
        errors = [self._candidate(strata, budget).error for strata in anticipated.alternatives(budget)]
        return bool(simple_variance >= _MIN_EFFICIENCY * min(errors, default=math.inf) ** 2)

    def _candidate(self, strata: Strata, budget: int) -> Candidate:
        """Return strata with the allocation of a budget."""
        allocate_labels = partial(allocate, strata, budget, self.anticipated.allocation)
        return Candidate(
            strata=strata,
            allocation=self._with_minimums(strata, allocate_labels, self.options_with_defaults.minimum),
            is_worst_case=self.is_worst_case,
            confidence_level=self.interval_level,
        )

    def _simple_candidate(self, budget: int) -> Candidate:
        """Return a simple random sample, with the estimator that it will have."""
        population_stratum = self.anticipated.population_stratum
        return Candidate(
            strata=population_stratum,
            allocation=simple_allocation(population_stratum, budget),
            confidence_level=self.interval_level,
            estimator=self._default_estimator(SimpleRandom.kind, budget, 1),
            is_worst_case=self.is_worst_case,
        )

    def _default_estimator(self, design: str, budget: int, n_strata: int) -> str:
        """Return the estimator that `estimate` will use for a design."""
        n_proxies = self.anticipated.n_proxies
        return default_estimator(
            design, budget, n_strata, n_proxies, scaled=self.anticipated.population_stratum.scaled
        )

    def _designs(self, planned: _PlannedStrata, n_labels: int) -> list[PlannedDesign]:
        """Return the precision of each possible design and estimator: simple random ones first."""
        population_stratum = self.anticipated.population_stratum
        expected = partial(
            expected_precision,
            population_stratum=population_stratum,
            n_proxies=self.anticipated.n_proxies,
            labels=self.labels,
        )
        designs = expected(SimpleRandom.kind, population_stratum, np.array([n_labels]))
        if planned.allocation is not None:
            designs += expected(Stratified.kind, planned.strata, planned.allocation.n_h)
        if not planned.has_simple_forecast:
            designs = [replace(row, relative_efficiency=None) for row in designs]
            designs = [
                row.without_expectation() if row.design == SimpleRandom.kind else row for row in designs
            ]
        if planned.parts:  # several estimands have no common standard error
            designs = [row.without_expectation() for row in designs]
        if not self.estimand.is_estimated:
            designs = [PlannedDesign(design=row.design, estimator=row.estimator) for row in designs]
        return designs

    def _recommend(
        self, designs: Sequence[PlannedDesign], planned: _PlannedStrata, n_labels: int
    ) -> tuple[PlannedDesign, tuple[str, ...]]:
        """Return the design to draw, with the estimator that `estimate` will use, and notes."""
        by_kind = {}
        for row in designs:
            if row.design == Stratified.kind:
                n_strata = planned.strata.n_strata
            else:
                n_strata = 1
            if row.estimator == self._default_estimator(row.design, n_labels, n_strata):
                by_kind[row.design] = row
        simple = by_kind[SimpleRandom.kind]
        stratified = by_kind.get(Stratified.kind, simple)
        candidate = planned.candidate
        if candidate is None:
            if self._keeps_strata(simple, stratified):
                return stratified, ()
        elif candidate.strata is not self.anticipated.population_stratum:
            return stratified, ()
        elif self.options_with_defaults.by is not None:
            return simple, (f"{_SIMPLE_IS_NARROWER} {self._how_to_keep_strata}",)
        return simple, self._inefficiency_notes(simple, stratified)

    def _inefficiency_notes(self, simple: PlannedDesign, stratified: PlannedDesign) -> tuple[str, ...]:
        """Return a note if neither strata nor the proxy of a simple random sample increase the precision."""
        efficiency = stratified.relative_efficiency
        if stratified is simple or efficiency is None:
            return ()
        if max(efficiency, simple.relative_efficiency or 0.0) >= _MIN_EFFICIENCY:
            return ()
        note = (
            "This proxy will hardly help: stratified sampling is expected to be only "
            f"{efficiency:.2f} times as efficient as simple random sampling."
        )
        return (note,)

    def _keeps_strata(self, simple: PlannedDesign, stratified: PlannedDesign) -> bool:
        """Return whether strata that were not compared with a simple random sample are planned."""
        options = self.options_with_defaults
        is_by_cost = (options.allocation or "").partition(":")[0] == COST_OPTIMAL
        is_fixed = options.by is not None or options.n_strata is not None
        if not self.anticipated.strata_are_optional or is_by_cost or is_fixed:
            return True
        efficiency = stratified.relative_efficiency
        simple_efficiency = simple.relative_efficiency or 0.0
        min_efficiency = max(_MIN_EFFICIENCY, _EFFICIENCY_TOLERANCE * simple_efficiency)
        return efficiency is None or efficiency >= min_efficiency

    @property
    def _how_to_keep_strata(self) -> str:
        """The option that keeps strata for which a simple random sample is planned."""
        if self.anticipated.n_proxies:
            return "To keep the strata, state their number: n_strata= (--strata)."
        return "To keep the strata: method='category' (--stratify category)."

    @cached_property
    def _compares_successive(self) -> bool:
        """Whether rounds with unequal probabilities are compared: a history predicts the outcome."""
        options = self.options
        strata_options = (options.method, options.n_strata, options.by, options.allocation)
        # Options of strata request strata.
        if any(value is not None for value in strata_options) or options.proxy not in (None, HISTORY):
            return False
        is_mean = self.estimand.of_one_outcome and len(self.parts) == 1 and self.labels is None
        proxies = self.population.proxies
        has_history = bool(history_columns(self.population.feature_names))
        return is_mean and has_history and bool(proxies) and proxies[0].name == HISTORY


def _rare_class_text(estimand: str, n_in_labels: float, n_in_population: float, budget: int) -> str:
    """Return the warning on a class of which few labels and units are expected, and what to do."""
    if n_in_population > _MIN_LABELS_OF_CLASS:
        n_required = math.ceil(budget * _MIN_LABELS_OF_CLASS / n_in_labels)
        more_labels = f"plan about {n_required:,} labels for {_MIN_LABELS_OF_CLASS:g} of them"
    else:
        more_labels = "the class is too rare in these units for more labels to suffice"
    # The number of labels of a rare class has about a Poisson distribution.
    probability_of_none = math.exp(-n_in_labels)
    return (
        f"Only about {n_in_labels:.2g} of {budget:,} labels are expected to belong to the class of "
        f"{estimand!r}, if the proxies are accurate. Without such labels, it is undefined (probability about "
        f"{probability_of_none:.1%}); with few, its interval is very wide. To change this: {more_labels}; "
        "allocate the labels by a better score of the class (probability=COL in the estimand); or plan for "
        "the precision, which does not require such labels."
    )
