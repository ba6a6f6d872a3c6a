"""`plan`: what a budget will buy, before any label is bought; or the budget that a precision needs.

One `Planner` plans for every estimand, which says itself what is expected of it and what strata a budget
bears: `Estimand.anticipated`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs import SimpleRandom, Stratified
from stratal.errors import BudgetError, InputError, names_mistyped, near_names, no_level
from stratal.estimation.anticipated import Anticipated, Division
from stratal.estimation.estimand import Asked, Estimand, as_estimand, influences_of, parts_of
from stratal.estimation.estimands.class_metrics import refuse_a_misread_proxy
from stratal.estimation.mean import default_estimator
from stratal.intervals.proportion import student_quantile
from stratal.planning.earlier_labels import EarlierLabels
from stratal.planning.expectations import (
    InfluenceMoments,
    PlannedDesign,
    PlannedPart,
    expectations,
    planned_parts,
    simple_allocation,
)
from stratal.planning.plan import PILOT, Plan, checked_half_widths, not_one_goal, refuse_wide
from stratal.planning.widths import smallest_budget
from stratal.planning.within_answers import with_floor
from stratal.population.influence import Influence, InfluenceOfLevels, influence_moments
from stratal.population.population import require_population
from stratal.strata import Allocation, Strata, allocate, allocate_several
from stratal.strata.integers import check_budget

if TYPE_CHECKING:
    from stratal.population.population import Population

WORTHWHILE = 1.02
"""Stratified sampling is recommended when its expected relative efficiency exceeds this."""

ENDS = ("cautious", "expected", "hopeful")
"""What a budget for a half-width may assume of the proxy."""

PILOT_SHARE = 0.5
"""Share of the hopeful budget that goes to the first round."""

MOST_PARTS = 500
"""Most numbers planned for at once: their shared allocation takes seconds, twice as many a minute."""


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
    assume: str = "cautious",
    pilot: bool = False,
    residual_sd: float | None = None,
    estimand: Asked = None,
    labels: Any = None,
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
        See `stratal.stratify`. For the mean k-means, and ten strata by default (of each category, with `by`),
        fewer for small budgets: on average at least five draws each.
    allocation : str, optional
        See `stratal.allocate`; for the mean `"robust"` unless given.
    minimum : int
        Draws that every stratum gets at least; 2, so that its variance can be estimated.
    confidence_level : float
        Of `half_width`.
    assume : {"cautious", "expected", "hopeful"}
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
        they show of the proxy, from hopeful to cautious as far as they leave it open. Which units the plan
        labels does not change, but where they say that strata will not help.

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
    ('cautious', 0.05)
    """
    if (budget is None) == (half_width is None):
        raise not_one_goal()
    if not (isinstance(confidence_level, int | float) and 0 < confidence_level < 1):
        raise no_level(confidence_level)
    if assume not in ENDS:
        raise InputError(
            "no such assumption of the proxy", given=repr(assume), allowed=near_names(str(assume), ENDS)
        )
    if pilot and labels is not None:
        raise InputError("earlier labels take the place of a pilot", action="Leave pilot or labels out.")
    if pilot and budget is not None:
        raise InputError("a pilot needs a half-width to lead to", action="Give half_width=.")
    asked = as_estimand(estimand)
    division = Division(
        method=method,
        n_strata=n_strata,
        by=by,
        proxy=proxy,
        allocation=allocation,
        minimum=minimum,
        residual_sd=residual_sd,
    )
    asked.refuse_plan_options({"labels": labels} | asdict(division))
    planner = Planner(
        population=require_population(population, "plan"),
        estimand=asked,
        asked=division,
        confidence_level=confidence_level,
        half_width=half_width,
    )
    if labels is not None:
        proxy = planner.anticipated.asked.proxy
        planner = replace(planner, labels=EarlierLabels.of(population, labels, proxy))
    for part in filter(lambda part: part.by_answer, planner.parts):
        refuse_a_misread_proxy(part, population)
    if budget is not None:
        return planner.at(budget)
    return planner.first_round() if pilot else planner.reaching(assume)


@dataclass(frozen=True, kw_only=True)
class Planner:
    """What was asked of `plan`, for whatever estimand.

    Parameters
    ----------
    population : Population
    estimand : Estimand
        One, or several at once.
    asked : Division
        How to divide the units.
    confidence_level : float
    half_width : float or (J,), optional
        What is wanted: one for all parts of the estimand, or one for each.
    labels : EarlierLabels, optional
        What earlier labels say, instead of the proxy.

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
    asked: Division = field(default_factory=Division)
    confidence_level: float = 0.95
    half_width: Any = None
    labels: EarlierLabels | None = None

    @cached_property
    def parts(self) -> list[Estimand]:
        """The single estimands that are asked for."""
        found = list(parts_of(self.estimand, self.population))
        if len(found) > MOST_PARTS:
            raise InputError(
                f"{self.estimand.text} asks for more numbers at once than can be planned for",
                given=f"{len(found):,}",
                allowed=f"up to {MOST_PARTS}",
                action="Name fewer levels or estimands, or plan for the mean and ask for the levels of the "
                "estimate: estimate(…, by=…), estimate --by.",
            )
        return found

    @cached_property
    def influences(self) -> list[Influence | InfluenceOfLevels]:
        """The influences of all parts, in their order."""
        return list(influences_of(self.estimand, self.population))

    @cached_property
    def anticipated(self) -> Anticipated:
        """What is expected of the estimand, and the strata for it."""
        return self.estimand.anticipated(self.population, self.asked)

    @cached_property
    def half_widths(self) -> FloatArray:
        """The wanted half-widths (J,), checked."""
        wanted = checked_half_widths(self.half_width, len(self.parts))
        if len(wanted) == 1:
            refuse_wide(float(wanted[0]), self.whole.bounds)
        return wanted

    @property
    def whole(self) -> Strata:
        """The population as one stratum."""
        return self.anticipated.whole

    @property
    def blind(self) -> bool:
        """Whether nothing can be expected of the proxy: it only orders, or calls every outcome certain."""
        return self.labels is None and (not self.whole.scaled or self.whole.standard_deviations[0] == 0)

    def moments(self, strata: Strata) -> InfluenceMoments:
        """Return mean and mean square of each influence in each stratum (J, H)."""
        means, own, squares, _ = influence_moments(self.population, strata.rule, self.influences)
        return InfluenceMoments(means=means, squares=np.maximum(squares, own))

    def needless(self, strata: Strata) -> BoolArray:
        """Return which strata hold only units that each estimand knows without a label (J, H)."""
        found = influence_moments(self.population, strata.rule, self.influences)
        return np.asarray(found[3] > 1.0 - 1e-9)

    def at(self, budget: int) -> Plan:
        """Return the plan of a budget; of all units that matter, if there are fewer."""
        size = self.population.contents.size
        check_budget(budget, size)
        strata = self.anticipated.strata(budget)
        most = int(strata.sizes[~strata.is_known].sum())
        if not budget >= most < size:
            return self._planned(strata, budget)
        note = f"The labels of {most:,} units know it exactly; the others do not matter."
        return self._planned(strata, most, (note,))

    def reaching(self, assume: str) -> Plan:
        """Return the plan of the fewest labels that are expected to reach the half-widths."""
        wanted, told = self.half_widths, self.anticipated
        if len(wanted) > 1:
            return self._planned(told.strata(PILOT * told.most_strata), None)
        (least, most), half_width = told.budgets, float(wanted[0])
        normal = -float(student_quantile((1.0 - self.confidence_level) / 2.0, np.inf))

        def width(budget: int) -> float:
            found = self.at(budget)
            half = found.worst_half_width if self.blind else found.half_width_if(assume)
            return math.inf if half is None else half

        def normal_width(budget: int) -> float:
            error = getattr(self.at(budget).recommended, f"{assume}_standard_error")
            return math.inf if error is None else normal * float(error)

        start = PILOT
        if self.blind:
            assume = "cautious"
        elif not math.isfinite(width(most)):
            raise BudgetError(
                "nothing can be expected of this proxy, so no half-width can be planned for",
                action="Give a budget, or plan a pilot (pilot=True).",
            )
        else:
            start = smallest_budget(normal_width, half_width, PILOT, least, most)
        found = smallest_budget(width, half_width, start, least, most)
        return replace(self.at(found), half_width=half_width, assume=assume)

    def first_round(self) -> Plan:
        """Return the plan of a pilot: half of what would do if the proxies were better than they say."""
        wanted, size = self.half_widths, self.population.contents.size
        # Where nothing can be expected of the proxy the pilot will tell.
        enough = PILOT if len(wanted) == 1 and self.blind else self.reaching("hopeful").budget
        least = max(self.anticipated.budgets[0], min(PILOT, enough))
        found = self.at(min(size, max(least, round(PILOT_SHARE * enough))))
        return replace(found, half_width=float(wanted[0]) if len(wanted) == 1 else None, pilot=True)

    def _planned(self, strata: Strata, budget: int | None, notes: tuple[str, ...] = ()) -> Plan:
        """Return the plan of a budget; of the half-widths of several estimands, if there is none."""
        told, whole, earlier = self.anticipated, self.whole, self.labels
        divided = strata.n_strata > 1 or not told.simple
        shared = self._shared(strata, budget) if divided else None
        budget = budget if shared is None else shared.budget
        assert budget is not None
        random = simple_allocation(whole, budget)
        with_labels: dict[str, Any] = {"n_proxies": told.n_proxies, "labels": earlier}
        designs = expectations(SimpleRandom.kind, whole, random, whole, **with_labels)
        if shared is not None:
            designs += expectations(Stratified.kind, strata, shared, whole, **with_labels)
        parts: tuple[PlannedPart, ...] = ()
        if shared is not None and len(self.parts) > 1:
            names, moments = [part.text for part in self.parts], self.moments(strata)
            wanted = None if self.half_width is None else self.half_widths
            parts = planned_parts(names, moments, strata, shared.n_h, wanted, self.confidence_level)
            designs = [replace(row, **_UNTOLD) for row in designs]
        chosen, why = self._recommended(designs, strata, budget)
        remarks = () if earlier is not None else told.remarks(strata)
        why = why if divided else strata.notes
        if shared is None or chosen.design == SimpleRandom.kind:
            strata, shared = whole, random
        return Plan(
            budget=budget,
            population_size=whole.size,
            strata=strata,
            allocation=shared,
            designs=tuple(designs),
            recommended=chosen,
            assumptions=told.assumptions if earlier is None else earlier.assumptions,
            notes=(*self.population.contents.notes, *remarks, *why, *strata.notes, *notes, *shared.notes),
            scenario=None if earlier is None else earlier.scenario(strata, shared.n_h),
            labels=None if earlier is None else earlier.to_dict(),
            confidence_level=self.confidence_level,
            population=self.population,
            estimand=self.estimand.to_dict() if self.estimand.recorded else None,
            parts=parts,
        )

    def _shared(self, strata: Strata, budget: int | None) -> Allocation:
        """Return the allocation of a budget, or of the fewest labels with which all half-widths are reached.

        No stratum has too few of the labels of its answer.
        """
        rule, minimum = self.asked.allocation or self.anticipated.allocation, self.asked.minimum
        several = len(self.parts) > 1
        made = self._for_all(strata, budget) if several else partial(allocate, strata, budget, rule)
        found = made(minimum=minimum)
        if not any(part.by_answer for part in self.parts):
            return found
        least = np.minimum(np.full(strata.n_strata, minimum), found.n_h)
        n_h = with_floor(strata, self.parts, found.n_h, least, lambda minima: made(minimum=minima).n_h)
        return found if n_h is found.n_h else replace(found, n_h=n_h, budget=int(n_h.sum()))

    def _for_all(self, strata: Strata, budget: int | None) -> Callable[..., Allocation]:
        """Return what shares labels among several estimands, from the minima of strata."""
        deviations = self.moments(strata).spreads(strata)
        wanted = np.ones(len(deviations)) if self.half_width is None else self.half_widths
        if budget is None:  # the errors themselves, not what they are to each other
            wanted = wanted / -float(student_quantile((1.0 - self.confidence_level) / 2.0, np.inf))
        names = [part.text for part in self.parts]
        how: dict[str, Any] = {"standard_errors": wanted, "known": strata.is_known, "names": names}
        return lambda minimum: (
            allocate_several(strata.sizes, deviations, budget, minimum=minimum, **how).allocation
        )

    def _recommended(
        self, designs: list[PlannedDesign], strata: Strata, budget: int
    ) -> tuple[PlannedDesign, tuple[str, ...]]:
        """Return the row of the design to draw, with the estimator that it will have, and a note."""
        told, usual = self.anticipated, {}
        for row in designs:
            n_strata = strata.n_strata if row.design == Stratified.kind else 1
            if row.estimator == default_estimator(
                row.design, budget, n_strata, told.n_proxies, scaled=self.whole.scaled
            ):
                usual[row.design] = row
        random, stratified = usual[SimpleRandom.kind], usual.get(Stratified.kind)
        if stratified is None:
            return random, ()
        gain, simple = stratified.relative_efficiency, random.relative_efficiency or 0.0
        wanted = not told.simple or told.asked.by is not None or told.asked.n_strata is not None
        if wanted or gain is None or gain >= max(WORTHWHILE, 0.98 * simple):
            return stratified, ()
        if simple >= WORTHWHILE:
            return random, ()
        return random, (
            f"This proxy will hardly help: stratified sampling is expected to be worth {gain:.2f}×.",
        )


_UNTOLD: dict[str, Any] = dict.fromkeys(
    ("expected_standard_error", "hopeful_standard_error", "cautious_standard_error"), None
)
"""Left out of a plan for several estimands: the error of all their influences as one says nothing."""
