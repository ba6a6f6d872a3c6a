"""`Plan`: a budget shared among strata, and the range of what it is expected to buy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import SimpleRandom, Stratified
from stratal.designs.same_population import require_planned
from stratal.errors import InputError, names_mistyped, not_positive
from stratal.intervals.proportion import student_quantile
from stratal.planning.expectations import (
    PlannedDesign,
    PlannedPart,
    detectable_difference,
    expectations,
    simple_allocation,
    worst_bounds,
)
from stratal.planning.widths import expected_half_width, smallest_budget
from stratal.population.rules.rule import Everything
from stratal.report import Bars, Page, Plotted, Printed, Tabular, plain, plan_page
from stratal.strata import Allocation, Strata
from stratal.strata.integers import check_budget, whole_number
from stratal.strata.moments import Scenario, expected_variance, scenarios

if TYPE_CHECKING:
    from stratal.designs.sample import Design, Sample
    from stratal.population.population import Population

PILOT = 50
"""Labels of a first round, where nothing says how many will be needed; no fewer, where that is known. The
search for a budget starts here too."""

WORST_RATE = 0.5
"""The rate at which labels say least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Printed, Tabular, Plotted):
    """A budget shared among strata, and what it is expected to buy.

    Parameters
    ----------
    budget : int
    population_size : int
    strata : Strata
        One stratum where simple random sampling is recommended.
    allocation : Allocation
    designs : tuple of PlannedDesign
    recommended : PlannedDesign
    assumptions : tuple of str
        What the expectations rest on.
    notes : tuple of str
        What the user should know, such as that the proxy will not help.
    half_width : float, optional
        The half-width that the budget was found for, or that a pilot is the first step to.
    assume : {"cautious", "expected", "hopeful"}, optional
        The end of the range that the budget was found for.
    pilot : bool
        Whether this is a first round, to be extended until the interval is narrow enough.
    confidence_level : float
        Of that half-width.
    estimand : mapping, optional
        The record of what was planned for; the mean if left out.
    parts : tuple of PlannedPart
        Of several estimands: what is expected of each.
    scenario : Scenario, optional
        The ways in which strata may lie as far as earlier labels tell; those of the proxy's word if left out.
    labels : mapping, optional
        Which labels these were: how many, from where, their mean and that of the proxy on the same units.

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
    estimand: Mapping[str, Any] | None = None
    parts: tuple[PlannedPart, ...] = ()
    scenario: Scenario | None = field(default=None, repr=False, compare=False)
    labels: Mapping[str, Any] | None = None
    population: Population | None = field(default=None, repr=False, compare=False)

    @property
    def design(self) -> Design:
        """The recommended design, ready to draw."""
        if self.recommended.design == SimpleRandom.kind:
            return SimpleRandom(budget=self.budget)
        return Stratified(strata=self.strata, allocation=self.allocation)

    @names_mistyped
    def draw(self, seed: int, population: Population | None = None) -> Sample:
        """Draw the recommended design.

        Parameters
        ----------
        seed : int
            The same seed and ids give the same units on every engine.
        population : Population, optional
            The one that was planned for, unless given; the same units in another object, such as a file that
            was read again.

        Raises
        ------
        InputError
            For a population other than the one that was planned for.
        """
        where = self.population if population is None else population
        if where is None:
            raise InputError("this plan does not hold its population", action="Give population=.")
        sample = self.design.draw(where, seed)
        if self.population is not None:
            require_planned(sample, self.population)
        return replace(sample, estimand=self.estimand)

    def using(self, design: str | None) -> Plan:
        """Return the plan with another of its designs: `simple-random` or `stratified`; None keeps it.

        Raises
        ------
        InputError
            If the plan has only one stratum, so that nothing can be stratified.
        """
        if design is None or design == self.recommended.design:
            return self
        rows = [row for row in self.designs if row.design == design]
        if design == Stratified.kind or not rows:
            raise InputError(
                f"this plan has no {design} design",
                allowed=self.recommended.design,
                action="Say how to stratify: n_strata=, by= (--strata, --by).",
            )
        return replace(self, recommended=rows[0])

    @property
    def expected_half_width(self) -> float | None:
        """Half the expected width of the default interval at `confidence_level`, or None where unknown."""
        return self.half_width_if("expected")

    @property
    def half_width_range(self) -> tuple[float, float] | None:
        """The same if the proxy is off in the most hopeful and in the most cautious way."""
        hopeful, cautious = self.half_width_if("hopeful"), self.half_width_if("cautious")
        return None if hopeful is None or cautious is None else (hopeful, cautious)

    def half_width_if(self, assume: str) -> float | None:
        """Return half the expected width at one end of the range: `hopeful`, `expected` or `cautious`."""
        chosen = self.recommended
        error = getattr(chosen, f"{assume}_standard_error")
        if error is None:
            return None
        strata, n_h = self.strata, self.allocation.n_h
        way = self._way(assume)
        means, variances = way.means, way.variances
        sizes, bounds = strata.sizes, way.bounds or strata.bounds
        if chosen.design == SimpleRandom.kind and strata.n_strata > 1:
            overall = float(strata.weights @ means)
            variances = np.array([float(strata.weights @ (variances + (means - overall) ** 2))])
            means, sizes, n_h = np.array([overall]), np.array([strata.size]), np.array([self.budget])
        plain = math.sqrt(expected_variance(sizes, n_h, variances))
        width = expected_half_width(
            sizes, n_h, means, variances, bounds=bounds, confidence_level=self.confidence_level
        )
        return width * error / plain if plain > 0 else width

    @property
    def detectable_difference(self) -> float | None:
        """The smallest difference of two models on these labels that four draws in five would show.

        Strata follow the first model's proxy, so that the second is taken as precise as a simple random
        sample makes it, and the two to err on unrelated units. None where nothing can be expected.
        """
        own, random = self.recommended.expected_standard_error, self.designs[0].expected_standard_error
        if own is None or random is None or self.estimand is not None:
            return None
        return detectable_difference((own, max(own, random)), confidence_level=self.confidence_level)

    @property
    def worst_half_width(self) -> float | None:
        """The same where nothing can be expected: half of the labels at either end of their bounds."""
        error = self.recommended.worst_standard_error
        if error is None:
            return None
        return -float(student_quantile((1.0 - self.confidence_level) / 2.0, np.inf)) * error

    def _way(self, assume: str) -> Scenario:
        """Return the scenario at one end of the range."""
        ways = scenarios(self.strata) if self.scenario is None else self.scenario
        errors = ways.standard_errors(self.strata, self.allocation.n_h, self.recommended.estimator)
        ends = {"expected": 0, "hopeful": int(errors.argmin()), "cautious": int(errors.argmax())}
        return ways.way(ends[assume])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON twin."""
        strata, n_h = self.strata, self.allocation.n_h
        told = strata.scaled or self.scenario is not None
        deviations = np.sqrt(self._way("expected").variances) if told else [None] * strata.n_strata
        return {
            **({} if self.estimand is None else {"estimand": dict(self.estimand)}),
            **({} if self.labels is None else {"labels": dict(self.labels)}),
            "population_size": self.population_size,
            "budget": self.budget,
            "half_width": self.half_width,
            "assume": self.assume,
            "pilot": self.pilot,
            "expected_half_width": self.expected_half_width,
            "half_width_range": plain(self.half_width_range),
            "worst_half_width": self.worst_half_width,
            "worst_bounds": None if self.worst_half_width is None else list(worst_bounds(strata)),
            "detectable_difference": self.detectable_difference,
            "confidence_level": self.confidence_level,
            "recommended": self.recommended.to_dict(),
            "allocation": self.allocation.method,
            "stratification": strata.method,
            "designs": [row.to_dict() for row in self.designs],
            "strata": [
                {
                    "name": strata.names[h],
                    "size": int(strata.sizes[h]),
                    "n": int(n_h[h]),
                    "proxy_mean": plain(strata.proxy_means[h]),
                    "expected_standard_deviation": plain(deviations[h]),
                }
                for h in range(strata.n_strata)
            ],
            **({"estimands": [part.to_dict() for part in self.parts]} if self.parts else {}),
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
        }

    def _columns(self) -> dict[str, Any]:
        return {**self.strata._columns(), "to_label": self.allocation.n_h}

    def _page(self) -> Page:
        return plan_page(self.to_dict())

    def _plot(self) -> Bars:
        """Draw each stratum's share of the units and of the labels."""
        found = self.to_dict()
        rows = found["strata"]
        return Bars(
            title=f"{found['budget']:,} labels of {found['population_size']:,} units ({found['allocation']})",
            x_label="share",
            names=[row["name"] for row in rows],
            series={
                "of the units": [row["size"] / found["population_size"] for row in rows],
                "of the labels": [row["n"] / found["budget"] for row in rows],
            },
        )


def checked_half_widths(half_widths: Any, count: int) -> FloatArray:
    """Return the wanted half-widths (J,) of J estimands, checked.

    Examples
    --------
    >>> checked_half_widths([0.05, 0.1], 2)
    array([0.05, 0.1 ])
    """
    several = half_widths if isinstance(half_widths, Sequence | np.ndarray) else [half_widths]
    if not all(isinstance(width, int | float | np.number) and 0 < width < math.inf for width in several):
        raise not_positive("half_width", half_widths)
    if several is half_widths and len(several) != count:
        raise InputError("there must be a half-width for each", given=len(several), allowed=f"{count}")
    return np.array(np.broadcast_to(np.asarray(several, np.float64), (count,)))


def refuse_wide(half_width: float, bounds: tuple[float, float]) -> None:
    """Refuse a half-width that every interval within the bounds is under.

    Examples
    --------
    >>> refuse_wide(2, (0.0, 1.0))
    Traceback (most recent call last):
    stratal.errors.InputError: every interval of an outcome from 0 to 1 is narrower than that...
    """
    low, high = bounds
    if math.isfinite(high - low) and half_width >= (high - low) / 2:
        percent = f"; for {half_width:g} percent points write {half_width / 100:g}" if high == 1 else ""
        raise InputError(
            f"every interval of an outcome from {low:g} to {high:g} is narrower than that",
            given=f"half-width {half_width:g}",
            allowed=f"below {(high - low) / 2:g}",
            action=f"Half-widths are on the outcome's own scale{percent}.",
        )


def not_one_goal() -> InputError:
    """Return the error of a plan with both a budget and a half-width, or neither.

    Examples
    --------
    >>> not_one_goal().what
    'give either a budget or a half-width'
    """
    either = "one of budget= (--budget N) and half_width= (--half-width W)"
    return InputError("give either a budget or a half-width", allowed=either)


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
    383
    """
    size = whole_number("population_size", population_size)
    if not 0 < rate < 1:
        percent = f"For {rate:g} % write {rate / 100:g}." if 1 <= rate < 100 else None
        raise InputError("rate must lie between 0 and 1", given=f"{rate:g}", action=percent)
    if (budget is None) == (half_width is None):
        raise not_one_goal()
    whole = Strata(
        rule=Everything(),
        names=("all",),
        sizes=np.array([size]),
        proxy_means=np.array([rate]),
        proxy_variances=np.zeros(1),
        conditional_variances=np.array([rate * (1 - rate)]),
        method="none",
    )

    def at(labels: int) -> Plan:
        check_budget(labels, size)
        shared = simple_allocation(whole, labels)
        (row,) = expectations(SimpleRandom.kind, whole, shared, whole, n_proxies=0)
        return Plan(
            budget=labels,
            population_size=size,
            strata=whole,
            allocation=shared,
            designs=(row,),
            recommended=row,
            assumptions=(f"Outcomes are 0 or 1, and {rate:g} of them 1; nothing tells which.",),
            notes=("With a file of predictions fewer labels may do: stratal plan FILE --proxy COLUMN.",),
            confidence_level=confidence_level,
        )

    if budget is not None:
        return at(budget)
    wanted = float(checked_half_widths(half_width, 1)[0])
    refuse_wide(wanted, whole.bounds)

    def width(labels: int) -> float:
        found = at(labels).expected_half_width
        return math.inf if found is None else found

    return at(smallest_budget(width, wanted, min(2 * PILOT, size), min(2, size), size))
