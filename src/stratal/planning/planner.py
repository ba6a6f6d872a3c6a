"""`plan`: what a budget will buy, before any label is bought; or the budget that a precision needs.

A `Plan` is a budget shared among strata, and the range of what it is expected to buy. One `Planner` plans for
every estimand, which says itself what is expected of it and what strata a budget bears:
`Estimand.anticipated`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs import SimpleRandom, Stratified
from stratal.designs.successive import Successive
from stratal.errors import BudgetError, InputError, names_mistyped, near_names, no_level, refuse_unknown
from stratal.estimation.anticipated import Anticipated, Division
from stratal.estimation.estimand import Estimand, ToolQuestion, as_estimand, parts_of, planned_for
from stratal.estimation.outcome_means import default_estimator
from stratal.intervals.looks import PlannedLooks
from stratal.planning.candidates import Candidate, first_narrow, larger_budgets, worst_error
from stratal.planning.expected_widths import normal_half_width
from stratal.planning.plan import (
    BY_COST,
    ENDS,
    Plan,
    PlannedDesign,
    PlannedPart,
    checked_half_widths,
    floor_of,
    level_of_last_look,
    smallest_budget,
)
from stratal.planning.previous_labels import PreviousLabels
from stratal.population.expressions import Number
from stratal.population.influence import Influence, averages, influence_moments, stratum_averages
from stratal.population.population import Population, require_population
from stratal.population.predictions import with_predictions
from stratal.population.summary import HEDGE
from stratal.proxy.history import HISTORY, history_columns
from stratal.strata import Allocation, Strata, allocate, allocate_several
from stratal.strata.allocation import check_budget, whole_number
from stratal.strata.region import PILOT_SHARE as SHARE_OF_FIRST_ROUND
from stratal.strata.strata import expected_variance, of_sizes

# The estimators that a plan compares under each design.
ESTIMATORS = ("horvitz-thompson", "difference", "ppi++")


def expectations(
    design: str,
    strata: Strata,
    n_h: IntArray,
    whole: Strata,
    *,
    n_proxies: int = 1,
    labels: PreviousLabels | None = None,
) -> list[PlannedDesign]:
    """Return what each estimator is expected to give under one design.

    Parameters
    ----------
    design : str
        Its name.
    strata : Strata
        What it draws from.
    n_h : int (H,)
    whole : Strata
        The population as one stratum, to compare with a simple random sample.
    n_proxies : int
        Proxies that estimators may correct by.
    labels : PreviousLabels, optional
        Labels that are in already, whose word is taken instead of the proxy's.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 100)
    >>> whole = stratal.strata.stratify(population, "none")
    >>> expectations("simple-random", whole, np.array([10]), whole)[0].relative_efficiency
    1.0
    """
    usable: tuple[str, ...] = ESTIMATORS if n_proxies else ESTIMATORS[:1]
    if not whole.scaled:
        usable = tuple(name for name in usable if name != "difference")
    n = np.array([n_h.sum()])
    census = n[0] == whole.sizes[0]
    if labels is None and (not whole.scaled or (whole.standard_deviations[0] == 0 and not census)):
        worst = worst_error(strata, n_h)
        errors = {name: None if name == "difference" else worst for name in usable}
        return [
            PlannedDesign(design=design, estimator=name, worst_standard_error=error)
            for name, error in errors.items()
        ]
    ways = strata.scenarios if labels is None else labels.scenario(strata, n_h)
    simple = whole.scenarios if labels is None else labels.scenario(whole, n)
    random = float(expected_variance(whole.sizes, n, simple.variances[0]))
    rows = []
    for name in usable:
        possible = ways.standard_errors(strata, n_h, name)
        possible = np.where(possible <= NOTHING * float(np.sqrt(simple.variances[0].max())), 0.0, possible)
        error = float(possible[0])
        rows.append(
            PlannedDesign(
                design=design,
                estimator=name,
                expected_standard_error=error,
                optimistic_standard_error=float(possible.min()),
                conservative_standard_error=float(possible.max()),
                relative_efficiency=random / error**2 if error > 0 else (1.0 if random == 0 else None),
            )
        )
    return rows


def narrower_plan_notes(chosen: PlannedDesign, designs: Sequence[PlannedDesign]) -> tuple[str, ...]:
    """Return a note if a simple random sample is expected to be more precise than the chosen design."""
    simple = [row.expected_standard_error for row in designs if row.design == SimpleRandom.kind]
    smallest = min((error for error in simple if error is not None), default=None)
    expected = chosen.expected_standard_error
    if smallest is None or expected is None or expected <= NOTICEABLY_WIDER * smallest:
        return ()
    return (
        f"A simple random sample is expected to be more precise (standard error {smallest:.4f}). To plan it: "
        "method='none' (--stratify none).",
    )


def simple_allocation(whole: Strata, budget: int) -> Allocation:
    """Return a simple random sample's allocation: all labels to all units as one stratum.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 9)
    >>> simple_allocation(stratal.strata.stratify(population, "none"), 4).n_h
    array([4])
    """
    one = np.array([1])
    return Allocation(
        n_h=one * budget, method="proportional", budget=budget, minimum=one, maximum=whole.sizes
    )


def one_stratum(size: int, mean: float = math.nan, variance: float = 0.0, *, scaled: bool = True) -> Strata:
    """Return N units as one stratum, of which nothing else is known."""
    known: dict[str, Any] = {"proxy_means": [mean], "conditional_variances": [variance], "scaled": scaled}
    return Strata.of(replace(of_sizes(np.array([size])), **known), method="none")


def influence_spreads(
    population: Population, strata: Strata, influences: Sequence[Influence]
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return how J influences are expected to vary, and where no label tells more of them.

    Returns
    -------
    deviations : float (J, H)
        Standard deviation of each in each stratum, divisor N_h.
    variances : float (J,)
        Of each over all units.
    known : bool (J, H)
        Whether a stratum holds only units that the estimand knows without a label.
    """
    means, own, squares, known = influence_moments(population, strata.rule, influences)
    squares = np.maximum(squares, own)
    overall = squares @ strata.weights - (means @ strata.weights) ** 2
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    return deviations, np.maximum(overall, 0.0), np.asarray(known > 1.0 - 1e-9)


# Labels of a first round, where nothing says how many will be needed; no fewer, where that is known. The
# search for a budget starts here too.
PILOT = 50


# A standard error below this share of the standard deviation is rounding.
NOTHING = 1e-12

EVERY_UNIT = "Every unit is labelled: the value for these units will be exact."

# The rate at which labels say least.
WORST_RATE = 0.5


def _refuse_two_goals(budget: int | None, half_width: Any) -> None:
    """Refuse a plan with both a budget and a half-width, or neither."""
    if (budget is None) == (half_width is None):
        either = "one of budget= (--budget N) and half_width= (--half-width W)"
        raise InputError("give either a budget or a half-width", allowed=either)


# Stratified sampling is recommended when its expected relative efficiency exceeds this.
WORTHWHILE = 1.02


SIMPLE_IS_NARROWER = (
    "A simple random sample is expected to give a narrower interval than strata with a minimum of labels "
    "each, and is planned instead."
)

# Ratio of expected standard errors from which a plan states that a simple random sample is more precise.
NOTICEABLY_WIDER = 1.01

# Share of the optimistic budget that goes to the first round.
PILOT_SHARE = 0.5


# Most numbers planned for at once: their shared allocation takes seconds, twice as many a minute.
MOST_PARTS = 500


@names_mistyped
def plan(
    population: Population,
    budget: int | None = None,
    *,
    half_width: float | Sequence[float] | None = None,
    method: str | None = None,
    n_strata: int | None = None,
    by: str | None = None,
    proxy: str | None = None,
    allocation: str | None = None,
    minimum: int = 2,
    confidence_level: float = 0.95,
    assume: str = "conservative",
    pilot: bool = False,
    residual_sd: float | None = None,
    estimand: ToolQuestion = None,
    labels: Any = None,
    calibrate_by: str | None = None,
    labelled_units: Population | None = None,
    looks: int | str | PlannedLooks | None = None,
    predicts: str | Mapping[str, str] | None = None,
    for_: str | None = None,
) -> Plan:
    """Plan which units to label and say what to expect, before any label is bought.

    Give either `budget` or `half_width`.

    Parameters
    ----------
    population : Population
    budget : int, optional
        Labels that can be bought.
    half_width : float or sequence of float, optional
        Half the width of the interval that is wanted, in the outcome's units; the smallest budget expected to
        reach it is found. Which budget that is depends on how good the proxy is, so that a pilot first is
        cheaper.
    method, n_strata, by, proxy
        See `stratal.strata.stratify`. For the mean k-means, and ten strata by default (of each category, with
        `by`), fewer for small budgets: on average at least five draws each.
    allocation : str, optional
        See `stratal.strata.allocate`; for the mean `"robust"` unless given. `"cost-optimal:minutes"` names a
        column of what each unit's label costs; `budget` is then money.
    minimum : int
        Draws that every stratum gets at least; 2, so that its variance can be estimated.
    confidence_level : float
        Of `half_width`.
    assume : {"conservative", "expected", "optimistic"}
        How good the proxy is taken to be when a budget is found for `half_width`.
    pilot : bool
        Plan only the first round on the way to `half_width`. Its labels then say how many more are needed:
        see `next_round`.
    residual_sd : float, optional
        Standard deviation of outcome less proxy, for outcomes without bounds; half the proxy's own if left
        out.
    estimand : Estimand, str, mapping or list of these, optional
        What the labels are for, such as `F1("match")` or `"f1:match"` (see `stratal.estimands`); the mean
        unless given. Strata are then Neyman's of its influence, up to fifteen in each of its cells. With a
        list, `half_width` may be a list too: the fewest labels that reach all of them; with a budget the
        largest expected standard error is made small.
    labels : Labels, mapping of id to label or Series, optional
        Labels of any of the units, of an earlier sample or a pilot: what is expected then follows from what
        they show of the proxy, from optimistic to conservative as far as they leave it open. Which units the
        plan labels does not change, but where they say that strata will not help.
    calibrate_by : str, optional
        With `labels`: column of categories in which the proxy may be worth something else each time. The
        labels of each recalibrate it there; strata are crossed with it.
    labelled_units : Population, optional
        The units that `labels` are of, where these are others than the population's, with the same proxy:
        last month's audit. A note warns if the proxy has another distribution.

    looks : int or str, optional
        How often the labels will be looked at, such as 4 or "obrien-fleming:4"; "pocock" unless named. The
        intervals of `estimate(…, look=1)` to the last hold together, so that labelling may stop at any look.
    predicts : str or mapping of proxy to str, optional
        What proxies predict, as in `Population.read`; it may say what was inferred there, and not contradict
        what was declared.
    for_ : str, optional
        Instead of an estimand, what `stratal.threshold` is to guarantee: `"threshold:error<=.05"`. For it,
        and for metrics at a threshold, the plan of a budget is the first of two rounds, with a quarter of the
        labels at random; `next_round` allocates the rest by their labels.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If not exactly one of `budget` and `half_width` is given, for unknown methods or columns, for options
        that the estimand does not take, such as `by`, `proxy`, `allocation` and `labels` with any but the
        mean, and for `labels` with a pilot, which they are.
    LabelError
        For labels of ids that are not in the population.
    BudgetError
        If the budget is below what the design needs or above N, or no budget reaches the half-width.

    Notes
    -----
    Expected variances are those of Fogliato et al. (2024), eq. 3-5 and 8, with the S_h of an overconfident
    proxy: outcomes are taken to follow it with a slope of 0.8 (`CALIBRATION_SLOPE`). A judge that says 0 or 1
    is not taken to be certain.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 500 + [0.9] * 500)
    >>> careful = stratal.plan(population, half_width=0.05)
    >>> careful.assume, round(careful.half_width_range[1], 2)
    ('conservative', 0.05)
    """
    _refuse_two_goals(budget, half_width)
    if not (isinstance(confidence_level, int | float) and 0 < confidence_level < 1):
        raise no_level(confidence_level)
    refuse_unknown("assumption of the proxy", assume, ENDS)
    if pilot and labels is not None:
        raise InputError("`pilot` and `labels` are mutually exclusive", action="Leave pilot or labels out.")
    if pilot and budget is not None:
        raise InputError("a pilot needs a half-width to lead to", action="Give half_width=.")
    for name, value in (("calibrate_by", calibrate_by), ("labelled_units", labelled_units)):
        if value is not None and labels is None:
            raise InputError(f"{name} needs labels", action="Give labels=, or leave it out.")
    requested = as_estimand(planned_for(estimand, for_))
    if budget is None and not requested.is_estimated:
        raise InputError(
            "a threshold has no half-width", given=f"{half_width=}", action="Give budget= (--budget N)."
        )
    population = with_predictions(require_population(population, "plan"), predicts)
    division = Division(
        method=method,
        n_strata=n_strata,
        by=by or calibrate_by,
        proxy=proxy,
        allocation=allocation,
        minimum=minimum,
        residual_sd=residual_sd,
    )
    requested.refuse_plan_options({"labels": labels} | asdict(division))
    planner = Planner(
        population=population,
        estimand=requested,
        requested=division,
        confidence_level=confidence_level,
        half_width=half_width,
        looks=None if looks is None else PlannedLooks.parse(looks),
    )
    if labels is not None:
        proxy, how = planner.anticipated.requested.proxy, {"labelled_units": labelled_units}
        earlier = PreviousLabels(population, labels, proxy, calibrate_by=calibrate_by, **how)
        planner = replace(planner, labels=earlier)
    for part in planner.parts:
        part.refuse_a_misread_proxy(population)
    if budget is not None:
        return planner.in_rounds(budget)
    return planner.first_round() if pilot else planner.reaching(assume)


@dataclass(frozen=True, kw_only=True)
class Planner:
    """What was asked of `plan`, for whatever estimand.

    Parameters
    ----------
    population : Population
    estimand : Estimand
        One, or several at once.
    requested : Division
        How to divide the units.
    confidence_level : float
    half_width : float or (J,), optional
        What is wanted: one for all parts of the estimand, or one for each.
    labels : PreviousLabels, optional
        What earlier labels say, instead of the proxy.
    looks : PlannedLooks, optional

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(
    ...     proxy=[0.9, 0.6] * 50, groups={"answer": ["cat", "dog"] * 50}, predicted="answer")
    >>> planner = Planner(population=population, estimand=Estimand.parse_text("f1:cat"))
    >>> planner.at(20).allocation.budget
    20
    """

    population: Population
    estimand: Estimand
    requested: Division = field(default_factory=Division)
    confidence_level: float = 0.95
    half_width: Any = None
    labels: PreviousLabels | None = None
    looks: PlannedLooks | None = None

    @cached_property
    def normal(self) -> float:
        """How many standard errors half of the (last look's) interval is, by the normal."""
        return normal_half_width(1.0, self.interval_level)

    @cached_property
    def interval_level(self) -> float:
        """The level of the last look's interval by itself."""
        return level_of_last_look(self.confidence_level, self.looks)

    @cached_property
    def parts(self) -> list[Estimand]:
        """The single estimands that are asked for."""
        found = list(parts_of(self.estimand, self.population))
        if len(found) > MOST_PARTS:
            what = f"{self.estimand.text} asks for more numbers at once than can be planned for"
            action = "Plan for the mean, and ask for the levels of the estimate: by=, --by."
            raise InputError(what, given=f"{len(found):,}", allowed=f"up to {MOST_PARTS}", action=action)
        return found

    @cached_property
    def anticipated(self) -> Anticipated:
        """What is expected of the estimand, and the strata for it."""
        return self.estimand.anticipated(self.population, self.requested)

    @cached_property
    def half_widths(self) -> FloatArray:
        """The wanted half-widths (J,), checked."""
        return checked_half_widths(self.half_width, len(self.parts), self.anticipated.whole)

    @property
    def blind(self) -> bool:
        """Whether nothing can be expected of the proxy: it only orders, or calls every outcome certain."""
        whole = self.anticipated.whole
        return self.labels is None and (not whole.scaled or whole.standard_deviations[0] == 0)

    def reaching(self, assume: str) -> Plan:
        """Return the plan of the fewest labels that are expected to reach the half-widths."""
        wanted, anticipated = self.half_widths, self.anticipated
        if len(wanted) > 1:
            return self.at(None)
        (least, most), half_width = anticipated.budgets, float(wanted[0])

        def width(budget: int, *, normal: bool = False) -> float:
            found = self.at(budget)
            if normal:
                error = getattr(found.recommended, f"{assume}_standard_error")
                return math.inf if error is None else self.normal * float(error)
            half = found.worst_half_width if self.blind else found.half_width_if(assume)
            return math.inf if half is None else half

        start = PILOT
        if self.blind:
            assume = "conservative"
        elif not math.isfinite(width(most)):
            what = "nothing can be expected of this proxy, so no half-width can be planned for"
            raise BudgetError(what, action="Give a budget, or plan a pilot (pilot=True).")
        else:
            start = smallest_budget(partial(width, normal=True), half_width, PILOT, least, most)
        found = smallest_budget(width, half_width, start, least, most)
        return replace(self.at(found), half_width=half_width, assume=assume)

    def first_round(self) -> Plan:
        """Return the plan of a pilot: half of what would do if the proxies were better than they say."""
        wanted, size = self.half_widths, self.population.size
        # Where nothing can be expected of the proxy the pilot will tell.
        blind = len(wanted) == 1 and self.blind
        enough = PILOT if blind else self.reaching("optimistic").budget
        least, share = max(self.anticipated.budgets[0], min(PILOT, enough)), round(PILOT_SHARE * enough)
        found = self.at(min(size, max(least, share)))
        why = f"half of the {enough:,} that would do if the proxy is better than it says"
        if blind or share < least:
            nothing = (
                "nothing can be expected of the proxy" if self.population.proxies else "there is no proxy"
            )
            why = "fewer teach too little" + (f", and {nothing}" if blind else "")
        notes = (*found.notes, f"The pilot has {found.budget:,} labels: {why}.")
        half_width = float(wanted[0]) if len(wanted) == 1 else None
        return replace(found, half_width=half_width, pilot=True, notes=notes)

    def in_rounds(self, budget: int) -> Plan:
        """Return the plan of a budget; where a second round follows the labels of a pilot, of the pilot."""
        check_budget(budget, self.population.size)
        rounds = self.estimand.planned_rounds(self.population, self.requested, budget)
        if rounds is None:
            return self.at(budget)
        first = budget
        planner = self
        if self.estimand.has_two_rounds:
            least, most = self.anticipated.budgets
            first = min(budget, max(int(SHARE_OF_FIRST_ROUND * budget), least))
            rounds = replace(rounds, total=min(budget, most))
            planner = replace(self, requested=replace(self.requested, allocation="proportional"))
        found = replace(planner.at(first), rounds=rounds)
        if not self.estimand.is_estimated:
            return found
        # What both rounds together are expected to give: at least one round by the score alone.
        whole = self.at(rounds.total)
        return replace(
            found, parts=whole.parts, rounds=replace(rounds, expected_half_width=whole.expected_half_width)
        )

    def at(self, budget: int | None) -> Plan:
        """Return the plan of a budget, or of all units that matter, if there are fewer.

        Without a budget it is that of the half-widths of several estimands.
        """
        anticipated, whole, earlier = self.anticipated, self.anticipated.whole, self.labels
        size, proxies = self.population.size, self.population.proxies
        parts: tuple[PlannedPart, ...] = ()
        notes: tuple[str, ...] = ()
        cost, money = None, budget
        if (self.requested.allocation or "").partition(":")[0] == BY_COST:
            cost, budget = self._affordable(money)
        if budget is not None:
            check_budget(budget, size)
        most = anticipated.budgets[1]
        if budget is not None and budget >= most < size:
            budget = most
            notes = (f"The labels of {most:,} units know it exactly; the others do not matter.",)
        choice = None
        shared = None
        if budget is not None and self.compares:
            choice, shown = self._choice(budget)
            strata = shown.strata
            if strata.n_strata > 1 or not anticipated.simple:
                shared = shown.allocation
        else:
            strata = anticipated.strata(PILOT * anticipated.most_strata if budget is None else budget)
        divided = strata.n_strata > 1 or not anticipated.simple
        if choice is None and divided and len(self.parts) > 1:
            shared, parts = self._shared_by_all(strata, budget)
        elif choice is None and divided:
            rule = self.requested.allocation or anticipated.allocation
            minimum = anticipated.requested.minimum
            how: dict[str, Any] = {"budget": budget, "method": rule}
            if cost is not None:
                prices = stratum_averages(self.population, strata.rule, [Number(name=cost)])[:, 0]
                how = {"method": BY_COST, "costs": prices, "cost_budget": money}
                notes = (*notes, f"Of a simple random sample the money buys about {budget:,} labels.")
            shared = self._above_the_floor(strata, minimum, partial(allocate, strata, **how))
        budget = budget if shared is None else shared.budget
        assert budget is not None
        expected = partial(expectations, whole=whole, n_proxies=anticipated.n_proxies, labels=earlier)
        designs = expected(SimpleRandom.kind, whole, np.array([budget]))
        if shared is not None:
            designs += expected(Stratified.kind, strata, shared.n_h)
        if parts:  # the error of all their influences as one says nothing
            ends: Any = dict.fromkeys(f"{name}_standard_error" for name in reversed(ENDS))
            designs = [replace(row, **ends) for row in designs]
        if not self.estimand.is_estimated:
            designs = [PlannedDesign(design=row.design, estimator=row.estimator) for row in designs]
        chosen, why = self._recommended(designs, strata, budget, choice)
        usual = chosen.expected_standard_error
        if usual and proxies and proxies[0].name == HISTORY and self.of_history:
            designs.append(self._successive(chosen, usual, budget))
            chosen = designs[-1] if (designs[-1].expected_standard_error or 0.0) < usual else chosen
        if budget == size:
            notes = (*notes, EVERY_UNIT)
        elif not parts and choice is None:
            notes = (*notes, *narrower_plan_notes(chosen, designs))
        remarks = earlier.notes if earlier is not None else anticipated.remarks(strata)
        why = why if divided else strata.notes
        if shared is None or chosen.design != Stratified.kind:
            strata, shared = whole, simple_allocation(whole, budget)
        return Plan(
            budget=budget,
            population_size=size,
            strata=strata,
            allocation=shared,
            designs=tuple(designs),
            recommended=chosen,
            assumptions=anticipated.assumptions if earlier is None else earlier.assumptions,
            notes=(*self.population.notes, *remarks, *why, *strata.notes, *notes, *shared.notes),
            scenario=None if earlier is None else earlier.scenario(strata, shared.n_h),
            labels=None if earlier is None else earlier.to_dict(),
            confidence_level=self.confidence_level,
            population=self.population,
            estimand=self.estimand.to_dict() if self.estimand.recorded else None,
            parts=parts,
            looks=self.looks,
        )

    def _affordable(self, money: float | None) -> tuple[str, int]:
        """Return the column of each unit's cost, and how many labels of random units the money buys.

        The allocation names it: `cost-optimal:minutes`.
        """
        _, colon, column = (self.requested.allocation or "").partition(":")
        known = (*self.population.feature_names, *self.population.proxy_names)
        if not colon or column not in known:
            allowed = near_names(column, known) if known else "a column of numbers: features="
            raise InputError(
                f"write '{BY_COST}:COLUMN', what labels cost", given=repr(column), allowed=allowed
            )
        if money is None or self.half_width is not None:
            raise InputError(f"'{BY_COST}' needs a budget of money", action="Give budget=, no half_width=.")
        (mean,) = averages(self.population, [Number(name=column)])
        if not mean > 0:
            raise InputError(f"'{column}' holds no costs", given=f"mean {mean:g}", allowed="above 0")
        return column, max(1, min(self.population.size, int(money / mean)))

    @cached_property
    def of_history(self) -> bool:
        """Whether the mean of one outcome is asked for, strata are left to us, and a history predicts it."""
        asked = self.requested
        left = (asked.method, asked.n_strata, asked.by, asked.allocation) == (None, None, None, None)
        mean = self.estimand.of_one_outcome and len(self.parts) == 1 and self.labels is None
        known = bool(history_columns(self.population.feature_names))
        return known and left and mean and self.requested.proxy in (None, HISTORY)

    def _successive(self, stratified: PlannedDesign, usual: float, budget: int) -> PlannedDesign:
        """Return what a round of unequal probabilities is expected to give, by the history's own word.

        With π ∝ x the difference estimator has variance (Σ x)²/n − Σ x² over N², x² being the variance that
        the history predicts of a unit, hedged as the probabilities are. The range is the strata's.
        """
        picture = self.population.distribution(HISTORY)
        moved = (1.0 - HEDGE) * picture.values + HEDGE * picture.mean
        variances = np.maximum(moved * (1.0 - moved), 0.0)
        left = float(picture.counts @ np.sqrt(variances)) ** 2 / budget - float(picture.counts @ variances)
        share = math.sqrt(max(left, 0.0)) / picture.size / usual
        gain = (stratified.relative_efficiency or 1.0) / share**2 if share > 0 else None
        names = (f"{end}_standard_error" for end in ENDS)
        ends: Any = {name: getattr(stratified, name) * share for name in names}
        return PlannedDesign(design=Successive.kind, estimator="ppi++", relative_efficiency=gain, **ends)

    @cached_property
    def compares(self) -> bool:
        """Whether strata and a simple random sample are compared: the number of strata is open."""
        is_open = self.anticipated.requested.is_open and self.anticipated.divides
        return is_open and self.labels is None and len(self.parts) == 1

    def _choice(self, budget: int) -> tuple[Candidate, Candidate]:
        """Return the candidate to plan, and the one to show: strata, if there are any."""
        anticipated = self.anticipated
        stratified = [self._allocated(strata, budget) for strata in anticipated.alternatives(budget)]
        if not anticipated.simple:
            choice = first_narrow(stratified)
            return choice, choice
        simple = self._simple(budget)
        if not stratified:
            return simple, simple
        choice = simple
        if self.is_worthwhile:
            precise = [candidate for candidate in stratified if self._stays_precise(candidate, simple)]
            choice = first_narrow([*precise, simple])
        shown = first_narrow(stratified) if choice is simple else choice
        return choice, shown

    def _stays_precise(self, candidate: Candidate, simple: Candidate) -> bool:
        """Return whether strata are as precise as a simple random sample, at larger budgets too.

        A few labels more would otherwise turn strata into a simple random sample, whose interval of few
        labels is wider at the same standard error.
        """
        if self.blind or candidate.is_more_precise(simple) or not candidate.is_as_precise(simple):
            return candidate.is_as_precise(simple)
        budgets = larger_budgets(candidate.allocation.budget, candidate.strata.size)
        return all(self._is_as_precise_at(candidate.strata, budget) for budget in budgets)

    def _is_as_precise_at(self, strata: Strata, budget: int) -> bool:
        """Return whether strata are as precise as a simple random sample of this budget."""
        # `anticipated` keeps its strata, so that their identities stay different.
        key = id(strata), budget
        if key not in self._precise_budgets:
            candidate = self._allocated(strata, budget)
            self._precise_budgets[key] = candidate.is_as_precise(self._simple(budget))
        return self._precise_budgets[key]

    @cached_property
    def _precise_budgets(self) -> dict[tuple[int, int], bool]:
        """Whether strata (by identity) are as precise as a simple random sample, by budget."""
        return {}

    @cached_property
    def is_worthwhile(self) -> bool:
        """Whether strata were asked for, or reduce the variance of a simple random sample's mean.

        It does not depend on the budget, so that no label more turns strata into a simple random sample.
        """
        anticipated = self.anticipated
        if self.blind or anticipated.requested.by is not None:
            return True
        whole = anticipated.whole
        finest = min(anticipated.per_stratum * anticipated.most_strata, whole.size // 2)
        plain = expected_variance(whole.sizes, np.array([finest]), whole.scenarios.variances[0])
        errors = [self._allocated(strata, finest).error for strata in anticipated.alternatives(finest)]
        return bool(plain >= WORTHWHILE * min(errors, default=math.inf) ** 2)

    def _allocated(self, strata: Strata, budget: int) -> Candidate:
        """Return strata with the allocation of a budget."""
        make_allocation = partial(allocate, strata, budget, self.anticipated.allocation)
        return Candidate(
            strata=strata,
            allocation=self._above_the_floor(strata, self.requested.minimum, make_allocation),
            blind=self.blind,
            confidence_level=self.interval_level,
        )

    def _simple(self, budget: int) -> Candidate:
        """Return a simple random sample, with the estimator that it will have."""
        whole = self.anticipated.whole
        n_proxies = self.anticipated.n_proxies
        return Candidate(
            strata=whole,
            allocation=simple_allocation(whole, budget),
            confidence_level=self.interval_level,
            estimator=default_estimator(SimpleRandom.kind, budget, 1, n_proxies, scaled=whole.scaled),
            blind=self.blind,
        )

    def _above_the_floor(self, strata: Strata, minimum: int, made: Callable[..., Allocation]) -> Allocation:
        """Return the allocation that is made with no stratum far below its share of its answer's labels."""
        found = made(minimum=minimum)
        least = None
        if any(part.by_answer for part in self.parts):
            least = floor_of(strata, found.n_h, minimum)
        if least is None:
            return found
        n_h = made(minimum=least).n_h
        return replace(found, n_h=n_h, budget=int(n_h.sum()))

    def _shared_by_all(
        self, strata: Strata, budget: int | None
    ) -> tuple[Allocation, tuple[PlannedPart, ...]]:
        """Return the allocation among several estimands, and what it is expected to give each of them.

        It is of the budget, or of the fewest labels with which all half-widths are reached.
        """
        influences = list(self.estimand.influences(self.population))
        deviations, variances, _ = influence_spreads(self.population, strata, influences)
        spreads = deviations * np.sqrt(strata.sizes / np.maximum(strata.sizes - 1, 1))
        wanted = np.ones(len(spreads)) if self.half_width is None else self.half_widths
        names = [part.text for part in self.parts]

        def made(minimum: Any) -> Allocation:
            # Without a budget the errors themselves count, not what they are to each other.
            if self.requested.allocation is not None:
                return allocate(strata, budget, self.requested.allocation, minimum)
            errors = wanted / self.normal if budget is None else wanted
            how: dict[str, Any] = {"known": strata.is_known, "names": names, "minimum": minimum}
            return allocate_several(strata.sizes, spreads, budget, standard_errors=errors, **how).allocation

        shared = self._above_the_floor(strata, self.requested.minimum, made)
        left = (1.0 / shared.budget - 1.0 / strata.size) * strata.size / max(strata.size - 1, 1)
        parts = []
        for j, spread in enumerate(np.where(strata.is_known, 0.0, deviations)):
            error = float(np.sqrt(expected_variance(strata.sizes, shared.n_h, spread**2)))
            parts.append(
                PlannedPart(
                    estimand=names[j],
                    labels=int(shared.n_h[spread > 0].sum()),
                    expected_standard_error=error,
                    expected_half_width=self.normal * error,
                    wanted_half_width=None if self.half_width is None else float(wanted[j]),
                    relative_efficiency=float(variances[j]) * left / error**2 if error > 0 else np.inf,
                )
            )
        return shared, tuple(parts)

    def _recommended(
        self, designs: list[PlannedDesign], strata: Strata, budget: int, choice: Candidate | None
    ) -> tuple[PlannedDesign, tuple[str, ...]]:
        """Return the row of the design to draw, with the estimator that it will have, and notes."""
        anticipated = self.anticipated
        usual = {}
        for row in designs:
            n_strata = strata.n_strata if row.design == Stratified.kind else 1
            scaled = anticipated.whole.scaled
            if row.estimator == default_estimator(
                row.design, budget, n_strata, anticipated.n_proxies, scaled=scaled
            ):
                usual[row.design] = row
        random = usual[SimpleRandom.kind]
        stratified = usual.get(Stratified.kind, random)
        if choice is None:
            if self._keeps_strata(random, stratified):
                return stratified, ()
        elif choice.strata is not anticipated.whole:
            return stratified, ()
        elif anticipated.requested.by is not None:
            return random, (f"{SIMPLE_IS_NARROWER} {self._how_to_keep}",)
        gain = stratified.relative_efficiency
        if stratified is random or gain is None or max(gain, random.relative_efficiency or 0.0) >= WORTHWHILE:
            return random, ()
        return random, (
            f"This proxy will hardly help: stratified sampling is expected to be worth {gain:.2f}×.",
        )

    def _keeps_strata(self, random: PlannedDesign, stratified: PlannedDesign) -> bool:
        """Return whether strata that are not compared with others are planned."""
        asked = self.anticipated.requested
        by_cost = (asked.allocation or "").partition(":")[0] == BY_COST
        if not self.anticipated.simple or by_cost or (asked.by, asked.n_strata) != (None, None):
            return True
        gain = stratified.relative_efficiency
        return gain is None or gain >= max(WORTHWHILE, 0.98 * (random.relative_efficiency or 0.0))

    @property
    def _how_to_keep(self) -> str:
        """How to ask for the strata that are not planned otherwise."""
        if self.anticipated.n_proxies:
            return "To keep the strata, state their number: n_strata= (--strata)."
        return "To keep them: method='category' (--stratify category)."


SMALLER_WITH_A_FILE = "With a file of predictions fewer labels may do: stratal plan FILE --proxy COLUMN."


def plan_for_rate(
    population_size: int,
    rate: float = WORST_RATE,
    *,
    budget: int | None = None,
    half_width: float | None = None,
    confidence_level: float = 0.95,
) -> Plan:
    """Plan a simple random sample of outcomes that are 1 at a guessed rate, else 0, before there is any file.

    Parameters
    ----------
    population_size : int
        N.
    rate : float
        The share that is expected; ½ is the worst case.
    budget, half_width
        Give one of them, as in `stratal.plan`.
    confidence_level : float

    Returns
    -------
    Plan
        It holds no population, so that nothing can be drawn from it.

    Raises
    ------
    InputError
        For a rate outside (0, 1), such as percent, and if not exactly one of budget and half-width is given.

    Examples
    --------
    >>> plan_for_rate(5000, 0.9, half_width=0.03).budget
    385
    """
    size = whole_number("population_size", population_size)
    if not 0 < rate < 1:
        percent = f"For {rate:g} % write {rate / 100:g}." if 1 <= rate < 100 else None
        raise InputError("rate must lie between 0 and 1", given=f"{rate:g}", action=percent)
    _refuse_two_goals(budget, half_width)
    whole = one_stratum(size, rate, rate * (1 - rate))

    def at(labels: int) -> Plan:
        check_budget(labels, size)
        shared = simple_allocation(whole, labels)
        (row,) = expectations(SimpleRandom.kind, whole, shared.n_h, whole, n_proxies=0)
        return Plan(
            budget=labels,
            population_size=size,
            strata=whole,
            allocation=shared,
            designs=(row,),
            recommended=row,
            assumptions=(f"Outcomes are 0 or 1, and {rate:g} of them 1; nothing tells which.",),
            notes=(EVERY_UNIT if labels == size else SMALLER_WITH_A_FILE,),
            confidence_level=confidence_level,
        )

    if budget is not None:
        return at(budget)
    wanted = float(checked_half_widths(half_width, 1, whole)[0])
    start, least = min(2 * PILOT, size), min(2, size)
    return at(
        smallest_budget(lambda labels: at(labels).expected_half_width or 0.0, wanted, start, least, size)
    )
