"""The plan for an estimand other than the mean: strata and labels where its influence is uncertain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from stratal.allocation import Allocation, allocate, allocate_several
from stratal.allocation.integers import whole_number
from stratal.arrays import BoolArray, FloatArray, numeric_array
from stratal.errors import InputError, not_positive
from stratal.estimation.estimand import Estimand, influences_of, parts_of, refuse_options
from stratal.estimation.estimands.misread import refuse_a_misread_proxy
from stratal.intervals.proportion import student_quantile
from stratal.planning.expectations import PlannedDesign, expectations
from stratal.planning.plan import Plan
from stratal.planning.planned_parts import InfluenceMoments, PlannedPart, planned_parts
from stratal.planning.widths import smallest_budget
from stratal.planning.within_answers import with_floor
from stratal.population.influence import Influence, InfluenceOfLevels, influence_moments
from stratal.population.population import Population
from stratal.sampling import Stratified
from stratal.strata import Strata, stratify

CELL_STRATA = 15
"""Strata of each cell of an influence: fine enough for a class of which there are few."""

_PER_STRATUM = 4
"""Labels per stratum on average at least, so that few are spent on minima."""

MOST_PARTS = 500
"""Most numbers planned for at once: their shared allocation takes seconds, twice as many a minute."""

PILOT = 50
"""Labels of a first round, and where the search for a budget starts."""


@dataclass(frozen=True, kw_only=True)
class EstimandPlanner:
    """What was asked of `plan` for one estimand or for several.

    Parameters
    ----------
    population : Population
    estimand : Estimand
        One, or several at once.
    n_strata : int, optional
        Of each cell; `CELL_STRATA`, or fewer for small budgets, if left out.
    method : str
        How a cell is cut.
    minimum : int
    confidence_level : float
    half_widths : float (J,), optional
        Of each of several estimands.

    Examples
    --------
    >>> import stratal
    >>> population = Population.from_arrays(
    ...     proxy=[0.9, 0.6] * 50, groups={"answer": ["cat", "dog"] * 50}, predicted="answer")
    >>> planner = EstimandPlanner(population=population, estimand=Estimand.parse_text("f1:cat"))
    >>> planner.at(20).allocation.budget
    20
    """

    population: Population
    estimand: Estimand
    n_strata: int | None = None
    method: str = "neyman"
    minimum: int = 2
    confidence_level: float = 0.95
    half_widths: FloatArray | None = None

    @cached_property
    def parts(self) -> list[Estimand]:
        """The single estimands that are asked for."""
        found = list(parts_of(self.estimand, self.population))
        if len(found) > MOST_PARTS:
            raise InputError(
                f"{self.text} asks for more numbers at once than can be planned for",
                given=f"{len(found):,}",
                allowed=f"up to {MOST_PARTS}",
                action="Name fewer levels or estimands, or plan for the mean and ask for the levels of the "
                "estimate: estimate_domains(…), estimate --by.",
            )
        return found

    @cached_property
    def influences(self) -> list[Influence | InfluenceOfLevels]:
        """The influences of all parts, in their order."""
        return list(influences_of(self.estimand, self.population))

    @cached_property
    def influence(self) -> Influence:
        """What the strata are made for."""
        return self.estimand.influence(self.population)

    @cached_property
    def whole(self) -> Strata:
        """The population as one stratum."""
        return stratify(self.population, "none", influence=self.influence)

    def strata(self, budget: int) -> Strata:
        """Return the strata for a budget."""
        wanted = self.n_strata
        if wanted is None:
            cells = len(self.influence.cells.names) - len(self.influence.known)
            wanted = max(1, min(CELL_STRATA, budget // (_PER_STRATUM * max(cells, 1))))
        return stratify(self.population, self.method, wanted, influence=self.influence)

    def at(self, budget: int) -> Plan:
        """Return the plan of a budget; of all units that matter, if there are fewer."""
        strata = self.strata(budget)
        most = int(strata.sizes[~strata.is_known].sum())
        notes = strata.notes
        if most == 0:
            raise InputError(
                f"{self.text} is known without a label: no unit is open",
                action="Nothing needs to be labelled; check the proxies if that is a surprise.",
            )
        if budget >= most:
            notes = (*notes, f"The labels of {most:,} units know it exactly; the others do not matter.")
            budget = most
        return self._planned(strata, self._shared(strata, budget), notes)

    def _planned(self, strata: Strata, shared: Allocation, notes: tuple[str, ...]) -> Plan:
        """Return the plan of an allocation."""
        designs, parts = self._designs(strata, shared), self._parts(strata, shared)
        if parts:
            designs = [replace(row, **_UNTOLD) for row in designs]
        return Plan(
            budget=shared.budget,
            population_size=self.population.size,
            strata=strata,
            allocation=shared,
            designs=tuple(designs),
            recommended=designs[-1],
            assumptions=(self._assumption, _FIRST_ORDER),
            notes=(*self.population.notes, *self._known_note(strata), *notes),
            confidence_level=self.confidence_level,
            population=self.population,
            estimand=self.estimand.to_dict(),
            parts=parts,
        )

    def _parts(self, strata: Strata, shared: Allocation) -> tuple[PlannedPart, ...]:
        """Return what is expected of each of several estimands; nothing of one, the plan itself."""
        if len(self.parts) == 1:
            return ()
        return planned_parts(
            [part.text for part in self.parts],
            self.moments(strata),
            strata,
            shared.n_h,
            self.half_widths,
            self.confidence_level,
        )

    @property
    def text(self) -> str:
        """What is asked for, in words."""
        return self.estimand.text

    def _shared(self, strata: Strata, budget: int) -> Allocation:
        if len(self.parts) == 1:
            return self._with_floor(
                strata, lambda minimum: allocate(strata, budget, "neyman", minimum=minimum)
            )
        deviations = self.moments(strata).spreads(strata)
        wanted = np.ones(len(deviations)) if self.half_widths is None else self.half_widths
        return self._with_floor(
            strata,
            lambda minimum: (
                allocate_several(
                    strata.sizes,
                    deviations,
                    budget,
                    standard_errors=wanted,
                    minimum=minimum,
                    known=strata.is_known,
                    names=[part.text for part in self.parts],
                ).allocation
            ),
        )

    def _with_floor(self, strata: Strata, made: Callable[[Any], Allocation]) -> Allocation:
        """Return an allocation, no stratum with too few of the labels of its answer."""
        found = made(self.minimum)
        minimum = np.minimum(np.full(strata.n_strata, self.minimum), found.n_h)
        n_h = with_floor(strata, self.parts, found.n_h, minimum, lambda minima: made(minima).n_h)
        return found if n_h is found.n_h else replace(found, n_h=n_h, budget=int(n_h.sum()))

    def moments(self, strata: Strata) -> InfluenceMoments:
        """Return mean and mean square of each influence in each stratum (J, H)."""
        means, own, squares, _ = influence_moments(self.population, strata.rule, self.influences)
        return InfluenceMoments(means=means, squares=np.maximum(squares, own))

    def needless(self, strata: Strata) -> BoolArray:
        """Return which strata hold only units that each estimand knows without a label (J, H)."""
        found = influence_moments(self.population, strata.rule, self.influences)
        return np.asarray(found[3] > 1.0 - 1e-9)

    def _designs(self, strata: Strata, shared: Allocation) -> list[PlannedDesign]:
        one, size = np.array([1]), np.array([self.population.size])
        random = Allocation(
            n_h=one * shared.budget, method="proportional", budget=shared.budget, minimum=one, maximum=size
        )
        rows = expectations("simple-random", self.whole, random, self.whole)[:1]
        return rows + expectations(Stratified.kind, strata, shared, self.whole)[:1]

    @property
    def _assumption(self) -> str:
        value = "" if len(self.parts) > 1 else f", which is expected to be {self.influence.value:.4g}"
        return f"Planned for {self.text}{value}: its influence on each unit, as the proxies have it."

    def _known_note(self, strata: Strata) -> tuple[str, ...]:
        if not np.any(strata.is_known):
            return ()
        share = float(strata.weights[strata.is_known].sum())
        return (f"{share:.1%} of the units need no label: {self.text} is known there by construction.",)

    def reaching(self, half_width: float, assume: str) -> Plan:
        """Return the plan of the smallest budget that is expected to reach a half-width."""
        if not (math.isfinite(half_width) and half_width > 0):
            raise not_positive("half_width", half_width)
        least = max(2, self.minimum)

        def width(budget: int) -> float:
            found = self.at(budget).half_width_if(assume)
            return math.inf if found is None else found

        most = int(self.strata(PILOT).sizes[~self.strata(PILOT).is_known].sum())
        budget = smallest_budget(width, half_width, min(PILOT, most), min(least, most), most)
        return replace(self.at(budget), half_width=half_width, assume=assume)

    def reaching_all(self) -> Plan:
        """Return the plan of the fewest labels that are expected to reach every estimand's half-width."""
        assert self.half_widths is not None
        strata = self.strata(PILOT * CELL_STRATA)
        normal = -float(student_quantile((1.0 - self.confidence_level) / 2.0, np.inf))
        deviations, wanted = self.moments(strata).spreads(strata), self.half_widths / normal
        found = self._with_floor(
            strata,
            lambda minimum: (
                allocate_several(
                    strata.sizes,
                    deviations,
                    standard_errors=wanted,
                    minimum=minimum,
                    known=strata.is_known,
                    names=[part.text for part in self.parts],
                ).allocation
            ),
        )
        return self._planned(strata, found, strata.notes)


_UNTOLD: dict[str, Any] = dict.fromkeys(
    ("expected_standard_error", "hopeful_standard_error", "cautious_standard_error"), None
)
"""Left out of a plan for several estimands: the error of all their influences as one says nothing."""

_FIRST_ORDER = "Standard errors hold to first order, and for labels that all come back."


def plan_for(estimand: Estimand, given: Mapping[str, Any]) -> Plan:
    """Return the plan of a budget, or of a half-width: of one estimand, or of each of several.

    Parameters
    ----------
    estimand : Estimand
    given : mapping
        What `plan` was given, checked as far as it is of any plan.

    Examples
    --------
    >>> import stratal
    >>> population = Population.from_arrays(groups={"new": ["a", "b"] * 50, "old": ["a"] * 100})
    >>> found = stratal.plan(population, budget=20, estimand="difference:new,old")
    >>> found.allocation.n_h, found.strata.names
    (array([20,  0]), ('different answers', 'same answer'))
    """
    refuse_options(estimand, dict(given) | ({"allocation": None} if given["allocation"] == "robust" else {}))
    planner = EstimandPlanner(
        population=given["population"],
        estimand=estimand,
        n_strata=given["n_strata"],
        method="neyman" if given["method"] == "k-means" else given["method"],
        minimum=given["minimum"],
        confidence_level=given["confidence_level"],
    )
    for part in planner.parts:
        refuse_a_misread_proxy(part, planner.population)
    budget, pilot = given["budget"], given["pilot"]
    if budget is not None:
        if pilot:
            raise InputError("a pilot needs a half-width to lead to", action="Give half_width=.")
        return planner.at(whole_number("budget", budget))
    wanted = checked_half_widths(given["half_width"], len(planner.parts))
    if len(planner.parts) > 1:
        planner = replace(planner, half_widths=wanted)
        whole = planner.reaching_all()
        return replace(planner.at(_first_of(whole.budget)), pilot=True) if pilot else whole
    width = float(wanted[0])
    if not pilot:
        return planner.reaching(width, given["assume"])
    enough = planner.reaching(width, "hopeful").budget
    return replace(planner.at(_first_of(enough)), half_width=width, pilot=True)


def _first_of(enough: int) -> int:
    """Return the labels of a first round: half of what is expected to be enough, and few at least."""
    return max(min(PILOT, enough), round(enough / 2))


def checked_half_widths(half_widths: Any, count: int) -> FloatArray:
    """Return the wanted half-widths (J,) of J estimands, checked.

    Examples
    --------
    >>> checked_half_widths([0.05, 0.1], 2)
    array([0.05, 0.1 ])
    """
    if np.ndim(half_widths) > 0 and np.shape(half_widths) != (count,):
        raise InputError("there must be a half-width for each", given=len(half_widths), allowed=f"{count}")
    wanted = np.broadcast_to(numeric_array("half_width", half_widths), (count,))
    if not (np.all(np.isfinite(wanted)) and np.all(wanted > 0)):
        raise InputError(
            "half-widths must be positive numbers",
            given=repr(half_widths),
            allowed="above 0, in the estimand's units, such as 0.05",
        )
    return np.array(wanted)
