"""`plan`: what a budget will buy, before any label is bought; or the budget that a precision needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.allocation import Allocation, allocate
from stratal.allocation.integers import check_budget
from stratal.errors import BudgetError, InputError, names_mistyped, near_names, no_level, not_positive
from stratal.estimation.estimand import Asked, Estimand, as_estimand
from stratal.estimation.mean import default_estimator
from stratal.intervals.proportion import student_quantile
from stratal.planning.earlier_labels import EarlierLabels
from stratal.planning.estimand_plan import plan_for
from stratal.planning.expectations import (
    PlannedDesign,
    assumptions,
    expectations,
    scale_notes,
    with_residual,
)
from stratal.planning.plan import Plan
from stratal.planning.widths import smallest_budget
from stratal.population.population import require_population
from stratal.sampling import SimpleRandom, Stratified
from stratal.strata import Strata, stratify
from stratal.strata.categories import groups_that_fit

if TYPE_CHECKING:
    from stratal.population.population import Population

WORTHWHILE = 1.02
"""Stratified sampling is recommended when its expected relative efficiency exceeds this."""

ENDS = ("cautious", "expected", "hopeful")
"""What a budget for a half-width may assume of the proxy."""

PILOT = 50
"""Labels of a first round, where nothing says how many will be needed; no fewer, where that is known."""

PILOT_SHARE = 0.5
"""Share of the hopeful budget that goes to the first round."""

DRAWS_PER_STRATUM = 5
MOST_STRATA = 10


@names_mistyped
def plan(
    population: Population,
    budget: int | None = None,
    *,
    half_width: float | Sequence[float] | None = None,
    method: str = "k-means",
    n_strata: int | None = None,
    by: str | None = None,
    proxy: str | None = None,
    allocation: str = "robust",
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
    half_width : float, optional
        Half the width of the interval that is wanted, in the outcome's units; the smallest budget expected to
        reach it is found. Which budget that is depends on how good the proxy is, so that a pilot first is
        cheaper.
    method, n_strata, by, proxy
        See `stratal.stratify`. Ten strata by default (of each category, with `by`), fewer for small budgets:
        on average at least five draws each.
    allocation : str
        See `stratal.allocate`.
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
        unless given. Strata are then made of its influence, up to fifteen in each of its cells. With a list,
        `half_width` may be a list too: the fewest labels that reach all of them; with a budget the largest
        expected standard error is made small.
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
        If not exactly one of `budget` and `half_width` is given, for unknown methods or columns, and for
        `labels` with an estimand other than the mean or with a pilot, which they are.
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
    if residual_sd is not None and not _positive(residual_sd):
        raise not_positive("residual_sd", residual_sd)
    population = require_population(population, "plan")
    asked = None if estimand is None else as_estimand(estimand)
    if labels is not None:
        _refuse_beside_labels(pilot, asked)
    if asked is not None and asked.kind != "mean":
        return plan_for(asked, locals())
    if half_width is not None and not isinstance(half_width, int | float):
        raise not_positive("half_width (one for a mean)", half_width)
    whole = stratify(population, "none", proxy=proxy)
    unbounded = not math.isfinite(whole.bounds[1] - whole.bounds[0])
    planner = _Planner(
        population=population,
        whole=with_residual(whole, residual_sd) if unbounded or residual_sd is not None else whole,
        unbounded=unbounded,
        method=method,
        n_strata=n_strata,
        by=population.contents.own_stratum if by is None else by,
        proxy=proxy,
        allocation=allocation,
        minimum=minimum,
        confidence_level=confidence_level,
        residual_sd=residual_sd,
        labels=None if labels is None else EarlierLabels.of(population, labels, proxy),
    )
    if budget is not None:
        if pilot:
            raise InputError("a pilot needs a half-width to lead to", action="Give half_width=.")
        return planner.at(budget)
    assert half_width is not None
    check_half_width(half_width, planner.whole.bounds)
    return planner.first_round(half_width) if pilot else planner.reaching(half_width, assume)


def not_one_goal() -> InputError:
    """Return the error of a plan with both a budget and a half-width, or neither.

    Examples
    --------
    >>> not_one_goal().what
    'give either a budget or a half-width'
    """
    either = "one of budget= (--budget N) and half_width= (--half-width W)"
    return InputError("give either a budget or a half-width", allowed=either)


def check_half_width(half_width: float, bounds: tuple[float, float]) -> None:
    """Refuse a half-width that is no positive number, or that every interval within the bounds is under.

    Examples
    --------
    >>> check_half_width(2, (0.0, 1.0))
    Traceback (most recent call last):
    stratal.errors.InputError: every interval of an outcome from 0 to 1 is narrower than that...
    """
    if not _positive(half_width):
        raise not_positive("half_width", half_width)
    low, high = bounds
    if math.isfinite(high - low) and half_width >= (high - low) / 2:
        percent = f"; for {half_width:g} percent points write {half_width / 100:g}" if high == 1 else ""
        raise InputError(
            f"every interval of an outcome from {low:g} to {high:g} is narrower than that",
            given=f"half-width {half_width:g}",
            allowed=f"below {(high - low) / 2:g}",
            action=f"Half-widths are on the outcome's own scale{percent}.",
        )


def _refuse_beside_labels(pilot: bool, asked: Estimand | None) -> None:
    """Refuse a pilot beside earlier labels, and an estimand of which these tell nothing."""
    if pilot:
        raise InputError("earlier labels take the place of a pilot", action="Leave pilot or labels out.")
    if asked is not None and asked.kind != "mean":
        raise InputError(
            "a plan learns from earlier labels for the mean alone",
            given=f"labels with the estimand '{asked.text}'",
            action="Plan without them. If they are of a sample that was drawn for it, draw more of that one: "
            "next_round(sample, labels, half_width=…) (draw --extend SAMPLE --labels FILE --half-width W).",
        )


def _positive(number: float) -> bool:
    return isinstance(number, int | float) and math.isfinite(number) and number > 0


@dataclass(frozen=True, kw_only=True)
class _Planner:
    """What was asked of `plan`; strata are kept from budget to budget while their number stays the same.

    `whole` is the population as one stratum, `unbounded` whether the outcome has no bounds.
    """

    population: Population
    whole: Strata
    unbounded: bool
    method: str
    n_strata: int | None
    by: str | None
    proxy: str | None
    allocation: str
    minimum: int
    confidence_level: float
    residual_sd: float | None
    labels: EarlierLabels | None = None
    _strata: dict[tuple[int, int | None], Strata] = field(default_factory=dict)

    @property
    def blind(self) -> bool:
        """Whether nothing can be expected of the proxy: it only orders, or calls every outcome certain."""
        return self.labels is None and (not self.whole.scaled or self.whole.standard_deviations[0] == 0)

    def at(self, budget: int) -> Plan:
        """Return the plan of a budget."""
        known, whole = self.population.contents, self.whole
        check_budget(budget, known.size)
        strata, notes = self._divided(budget)
        one = np.array([1])
        used, shared = (
            whole,
            Allocation(
                n_h=one * budget, method="proportional", budget=budget, minimum=one, maximum=whole.sizes
            ),
        )
        designs = expectations(SimpleRandom.kind, used, shared, whole, self.labels)
        divided = None
        if strata is not None:
            divided = allocate(strata, budget, self.allocation, minimum=self.minimum)
            designs += expectations(Stratified.kind, strata, divided, whole, self.labels)
        chosen, why = self._recommend(designs, budget, strata)
        if strata is not None and divided is not None and chosen.design == Stratified.kind:
            used, shared = strata, divided
        earlier = self.labels
        asked = () if whole.scaled or earlier else scale_notes(self.population, self.proxy)
        return Plan(
            budget=budget,
            population_size=known.size,
            strata=used,
            allocation=shared,
            designs=tuple(designs),
            recommended=chosen,
            assumptions=assumptions(whole, earlier),
            notes=(*known.notes, *asked, *notes, *why, *used.notes, *shared.notes),
            scenario=None if earlier is None else earlier.scenario(used, shared.n_h),
            labels=None if earlier is None else earlier.to_dict(),
            confidence_level=self.confidence_level,
            population=self.population,
        )

    def reaching(self, half_width: float, assume: str) -> Plan:
        """Return the plan of the smallest budget that is expected to reach a half-width."""
        most = self.population.size
        least = min(most, max(2, self.minimum))
        normal = -float(student_quantile((1.0 - self.confidence_level) / 2.0, np.inf))

        def worst(budget: int) -> float:
            found = self.at(budget).worst_half_width
            return math.inf if found is None else found

        if self.blind:
            budget = smallest_budget(worst, half_width, PILOT, least, most)
            return replace(self.at(budget), half_width=half_width, assume="cautious")

        def normal_width(budget: int) -> float:
            error = getattr(self.at(budget).recommended, f"{assume}_standard_error")
            return math.inf if error is None else normal * float(error)

        def width(budget: int) -> float:
            found = self.at(budget).half_width_if(assume)
            return math.inf if found is None else found

        if not math.isfinite(width(most)):
            raise BudgetError(
                "nothing can be expected of this proxy, so no half-width can be planned for",
                action="Give a budget, or plan a pilot (pilot=True).",
            )
        start = smallest_budget(normal_width, half_width, PILOT, least, most)
        found = smallest_budget(width, half_width, start, least, most)
        return replace(self.at(found), half_width=half_width, assume=assume)

    def first_round(self, half_width: float) -> Plan:
        """Return the plan of a pilot: half of what would do if the proxy were better than it says."""
        size = self.population.size
        # Where nothing can be expected of the proxy the pilot will tell.
        enough = PILOT if self.blind else self.reaching(half_width, "hopeful").budget
        least = max(2, self.minimum, min(PILOT, enough))
        return replace(
            self.at(min(size, max(least, round(PILOT_SHARE * enough)))), half_width=half_width, pilot=True
        )

    def _divided(self, budget: int) -> tuple[Strata | None, tuple[str, ...]]:
        """Return the strata for a budget, or None where there is nothing to stratify by."""
        if not self.population.contents.proxies and self.by is None and self.method != "features":
            return None, ("There is no proxy: nothing tells which units are uncertain.",)
        n_groups, pooled = 1, False
        if self.by is not None:
            sizes = np.array(list(self.population.levels(self.by).values()))
            n_groups = groups_that_fit(sizes, budget, self.minimum)
            pooled = n_groups < len(sizes)
        wanted = self.n_strata
        if wanted is None:
            each = max(DRAWS_PER_STRATUM, self.minimum) * (1 if self.method == "category" else n_groups)
            wanted = max(1, min(MOST_STRATA, budget // each))
        key = (wanted, budget if pooled else None)
        if key not in self._strata:
            method = (
                "category" if self.by is not None and not self.population.contents.proxies else self.method
            )
            found = stratify(
                self.population,
                method,
                wanted,
                by=self.by,
                proxy=self.proxy,
                minimum=self.minimum,
                budget=key[1],
            )
            self._strata[key] = with_residual(found, self.residual_sd) if self.unbounded else found
        strata = self._strata[key]
        needed = int(np.minimum(self.minimum, strata.sizes).sum())
        if len(strata.sizes) > 1 and budget < needed:
            raise BudgetError(
                f"the budget is below {self.minimum} units for each of {strata.n_strata} strata",
                given=budget,
                allowed=f"{needed} to {strata.size}",
                action="Use fewer strata, a larger budget, or minimum=1 (--minimum 1).",
            )
        return (strata, ()) if len(strata.sizes) > 1 else (None, strata.notes)

    def _recommend(
        self, designs: list[PlannedDesign], budget: int, strata: Strata | None
    ) -> tuple[PlannedDesign, tuple[str, ...]]:
        """Return the row of the design to draw, with the estimator that it will have, and a note."""
        k, usual = len(self.population.contents.proxies), {}
        for row in designs:
            n_strata = len(strata.sizes) if strata is not None and row.design == Stratified.kind else 1
            if row.estimator == default_estimator(row.design, budget, n_strata, k, scaled=self.whole.scaled):
                usual[row.design] = row
        random = usual[SimpleRandom.kind]
        if strata is None:
            return random, ()
        stratified = usual[Stratified.kind]
        gain, simple = stratified.relative_efficiency, random.relative_efficiency or 0.0
        asked = self.by is not None or self.n_strata is not None
        if gain is None or asked or gain >= max(WORTHWHILE, 0.98 * simple):
            return stratified, ()
        if simple >= WORTHWHILE:
            return random, ()
        return random, (
            f"This proxy will hardly help: stratified sampling is expected to be worth {gain:.2f}×.",
        )
