"""A `Plan`: a budget shared among strata, and the range of what it is expected to buy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from stratal.designs import SimpleRandom, Stratified
from stratal.designs.extending import require_planned
from stratal.designs.sample import Design, Sample
from stratal.designs.successive import Successive
from stratal.errors import InputError, names_mistyped
from stratal.intervals.looks import PlannedLooks
from stratal.intervals.proportion import student_quantile
from stratal.planning.widths import expected_half_width
from stratal.population.expressions import Number
from stratal.population.population import Population
from stratal.proxy.history import HISTORY
from stratal.report.figures import Bars, Plotted
from stratal.report.pages import plan_page
from stratal.report.text import Page, Printed, Tabular, plain_dict
from stratal.strata import Allocation, Strata, allocate
from stratal.strata.strata import Scenario, expected_variance, scenarios


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDesign:
    """What one design and estimator are expected to give at the budget.

    Parameters
    ----------
    design, estimator : str
    expected_standard_error : float
        In the outcome's units; None where the proxy only orders units, so that nothing can be expected.
    optimistic_standard_error, conservative_standard_error : float
        The ends of its range over the ways in which the proxy may be off (`scenarios`).
    relative_efficiency : float
        Expected variance of a simple random sample's mean over this variance; above 1 is better.
    worst_standard_error : float, optional
        Where nothing can be expected: that of labels of which half lie at either end of the outcome's bounds,
        of 0 and 1 where none are known.

    Examples
    --------
    >>> row = PlannedDesign(design="stratified", estimator="difference", expected_standard_error=0.02,
    ...                     optimistic_standard_error=0.01, conservative_standard_error=0.03,
    ...                     relative_efficiency=1.5)
    >>> row.design
    'stratified'
    """

    design: str
    estimator: str
    expected_standard_error: float | None = None
    optimistic_standard_error: float | None = None
    conservative_standard_error: float | None = None
    relative_efficiency: float | None = None
    worst_standard_error: float | None = None


def worst_bounds(strata: Strata) -> tuple[float, float]:
    """Return the ends between which labels may lie where the worst is planned for: 0 and 1 if none are known.

    Examples
    --------
    >>> import stratal
    >>> worst_bounds(stratal.strata.stratify(stratal.Population.from_arrays(groups={"g": ["a"]}), "none"))
    (0.0, 1.0)
    """
    low, high = strata.bounds
    return (low, high) if math.isfinite(high - low) else (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """One of several estimands, and what the labels of a plan are expected to say of it.

    Parameters
    ----------
    estimand : str
    labels : int
        Those of strata in which its influence varies.
    expected_standard_error : float
    expected_half_width : float
        Of the interval at the plan's level, by the normal.
    wanted_half_width : float or None
    relative_efficiency : float
        Variance of as many labels of a simple random sample over the plan's.

    Examples
    --------
    >>> part = PlannedPart(estimand="mean@lang:de", labels=40, expected_standard_error=0.05,
    ...                    expected_half_width=0.1, wanted_half_width=None, relative_efficiency=1.4)
    >>> part.labels
    40
    """

    estimand: str
    labels: int
    expected_standard_error: float
    expected_half_width: float
    wanted_half_width: float | None
    relative_efficiency: float


# How often a difference of this size is shown, in repeated draws.
POWER = 0.8


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
    assume : {"conservative", "expected", "optimistic"}, optional
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
    looks : PlannedLooks, optional
        How often the labels are looked at; what is expected is of the interval at the last look.

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
    looks: PlannedLooks | None = None
    population: Population | None = field(default=None, repr=False, compare=False)

    @property
    def design(self) -> Design:
        """The recommended design, ready to draw."""
        if self.recommended.design == SimpleRandom.kind:
            return SimpleRandom(budget=self.budget)
        if self.recommended.design == Successive.kind:
            return Successive(budgets=(self.budget,), predicted=(Number(name=HISTORY),))
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
        looks = None if self.looks is None else self.looks.text
        return replace(sample, estimand=self.estimand, looks=looks)

    @property
    def interval_level(self) -> float:
        """The level of the last look's interval by itself: `confidence_level` where no looks are planned."""
        return level_of_last_look(self.confidence_level, self.looks)

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
            action = "Say how to stratify: n_strata=, by= (--strata, --by)."
            raise InputError(f"this plan has no {design} design", action=action)
        return replace(self, recommended=rows[0])

    @property
    def expected_half_width(self) -> float | None:
        """Half the expected width of the default interval at `confidence_level`, or None where unknown."""
        return self.half_width_if("expected")

    @property
    def half_width_range(self) -> tuple[float, float] | None:
        """The same if the proxy is off in the most optimistic and in the most conservative way."""
        optimistic, conservative = self.half_width_if("optimistic"), self.half_width_if("conservative")
        return None if optimistic is None or conservative is None else (optimistic, conservative)

    def half_width_if(self, assume: str) -> float | None:
        """Return half the expected width at one end: `optimistic`, `expected` or `conservative`."""
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
            sizes, n_h, means, variances, bounds=bounds, confidence_level=self.interval_level
        )
        return width * error / plain if plain > 0 else width

    @property
    def detectable_difference(self) -> float | None:
        """The smallest difference of two models on these labels that four draws in five would show.

        Strata follow the first model's proxy, so that the second is taken as precise as a simple random
        sample makes it, and the two to err on unrelated units (Cochran, 4.6, paired). None where nothing can
        be expected.
        """
        own, random = self.recommended.expected_standard_error, self.designs[0].expected_standard_error
        if own is None or random is None or self.estimand is not None:
            return None
        tails = np.array([(1.0 - self.interval_level) / 2.0, 1.0 - POWER])
        return -float(np.sum(student_quantile(tails, np.inf))) * math.hypot(own, max(own, random))

    @property
    def worst_half_width(self) -> float | None:
        """The same where nothing can be expected: half of the labels at either end of their bounds."""
        error = self.recommended.worst_standard_error
        if error is None:
            return None
        return -float(student_quantile((1.0 - self.interval_level) / 2.0, np.inf)) * error

    @property
    def allocations(self) -> list[dict[str, Any]]:
        """What the budget is expected to give shared by other rules, the plan's first; none without strata.

        The range tells most: shares that trust the proxy are the best if it is right and the worst if it is
        not.
        """
        error, gain = self.recommended.expected_standard_error, self.recommended.relative_efficiency
        shared, rows = self.allocation, []
        by_cost = shared.method == BY_COST  # other rules would cost something else
        if self.recommended.design == SimpleRandom.kind or self.parts or by_cost or not error or gain is None:
            return []
        for rule in dict.fromkeys((shared.method, *COMPARED)):
            same = rule == shared.method
            n_h = shared.n_h if same else allocate(self.strata, self.budget, rule, shared.minimum).n_h
            errors = self._ways.standard_errors(self.strata, n_h, self.recommended.estimator)
            found = (float(value) for value in (errors.min(), errors[0], errors.max()))
            row = dict(zip((f"{end}_standard_error" for end in reversed(ENDS)), found, strict=True))
            efficiency = gain * (error / row["expected_standard_error"]) ** 2
            rows.append({"allocation": rule, **row, "relative_efficiency": efficiency})
        return rows

    @property
    def _ways(self) -> Scenario:
        """The ways in which strata may lie."""
        return scenarios(self.strata) if self.scenario is None else self.scenario

    def _way(self, assume: str) -> Scenario:
        """Return the scenario at one end of the range."""
        ways = self._ways
        errors = ways.standard_errors(self.strata, self.allocation.n_h, self.recommended.estimator)
        ends = {"expected": 0, "optimistic": int(errors.argmin()), "conservative": int(errors.argmax())}
        return ways.way(ends[assume])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        strata, n_h = self.strata, self.allocation.n_h
        known = strata.scaled or self.scenario is not None
        deviations = np.sqrt(self._way("expected").variances) if known else [None] * strata.n_strata
        rows = zip(strata.names, strata.sizes, n_h, strata.proxy_means, deviations, strict=True)
        columns = ("name", "size", "n", "proxy_mean", "expected_standard_deviation")
        described = {
            "estimand": self.estimand,
            "labels": self.labels,
            "population_size": self.population_size,
            "budget": self.budget,
            "half_width": self.half_width,
            "assume": self.assume,
            "pilot": self.pilot,
            "expected_half_width": self.expected_half_width,
            "half_width_range": self.half_width_range,
            "worst_half_width": self.worst_half_width,
            "worst_bounds": None if self.worst_half_width is None else worst_bounds(strata),
            "detectable_difference": self.detectable_difference,
            "confidence_level": self.confidence_level,
            "looks": None if self.looks is None else self.looks.text,
            "recommended": asdict(self.recommended),
            "allocation": self.allocation.method,
            "stratification": strata.method,
            "designs": [asdict(row) for row in self.designs],
            "allocations": self.allocations,
            "strata": [dict(zip(columns, row, strict=True)) for row in rows],
            "estimands": [asdict(part) for part in self.parts] or None,
            "assumptions": self.assumptions,
            "notes": self.notes,
        }
        optional = ("estimand", "labels", "looks", "estimands")
        return plain_dict({k: v for k, v in described.items() if v is not None or k not in optional})

    def _columns(self) -> dict[str, Any]:
        return {**self.strata._columns(), "to_label": self.allocation.n_h}

    def _page(self) -> Page:
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


def level_of_last_look(confidence_level: float, looks: PlannedLooks | None) -> float:
    """Return the level that the last look's interval has for itself."""
    return confidence_level if looks is None else looks.at(looks.number).level(confidence_level, "two-sided")


# What a budget for a half-width may assume of the proxy.
ENDS = ("conservative", "expected", "optimistic")


# Allocations that the details of a plan compare: no trust in the proxy, some, and all.
COMPARED = ("proportional", "robust", "neyman")


BY_COST = "cost-optimal"
