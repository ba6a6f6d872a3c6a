"""A `Plan`: a budget allocated among strata, and the range of the precision to expect from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs import SimpleRandom, Stratified
from stratal.designs.extending import require_planned
from stratal.designs.sample import Design, Sample
from stratal.designs.successive import Successive
from stratal.errors import InputError, names_mistyped, not_positive
from stratal.estimation.planned_rounds import PlannedRounds
from stratal.intervals.looks import PlannedLooks
from stratal.intervals.proportion import student_quantile
from stratal.planning.candidates import scenario_half_width, worst_bounds
from stratal.planning.expected_widths import normal_half_width
from stratal.population.expressions import Number
from stratal.population.population import Population
from stratal.population.rules import cells_of
from stratal.proxy.history import HISTORY
from stratal.report.figures import Bars, PlotDisplay
from stratal.report.pages import plan_page
from stratal.report.text import Page, PageDisplay, TableDisplay, json_dict
from stratal.strata import Allocation, Strata, allocate
from stratal.strata.strata import Scenario


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
class Plan(PageDisplay, TableDisplay, PlotDisplay):
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
    rounds : PlannedRounds, optional
        Where labels follow in a second round: those of both, and what they are expected to give.

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
    rounds: PlannedRounds | None = None
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
        return replace(sample, question=replace(sample.question, estimand=self.estimand), looks=looks)

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
        """Return half the expected width at one end: `optimistic`, `expected` or `conservative`.

        The scenario with the largest standard error is not always the one with the widest interval: the ends
        are the narrowest and the widest interval of the scenarios whose standard errors the plan records.
        """
        if getattr(self.recommended, f"{assume}_standard_error") is None:
            return None
        if assume == "expected":
            return self._half_width(assume)
        widths = [self._half_width(end) for end in ENDS]
        return min(widths) if assume == "optimistic" else max(widths)

    def _half_width(self, assume: str) -> float:
        """Return half the expected width in the scenario with one of the recorded standard errors."""
        chosen = self.recommended
        error: float = getattr(chosen, f"{assume}_standard_error")
        strata, n_h = self.strata, self.allocation.n_h
        sizes = strata.sizes
        way = self._way(assume)
        if chosen.design == SimpleRandom.kind and strata.n_strata > 1:
            way = _undivided(strata, way)
            sizes = np.array([strata.size])
            n_h = np.array([self.budget])
        return scenario_half_width(
            sizes, n_h, way, bounds=strata.bounds, error=error, confidence_level=self.interval_level
        )

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
        return normal_half_width(error, self.interval_level)

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
            ways = self.scenario or self.strata.scenarios
            errors = ways.standard_errors(self.strata, n_h, self.recommended.estimator)
            found = (float(value) for value in (errors.min(), errors[0], errors.max()))
            row = dict(zip((f"{end}_standard_error" for end in reversed(ENDS)), found, strict=True))
            efficiency = gain * (error / row["expected_standard_error"]) ** 2
            rows.append({"allocation": rule, **row, "relative_efficiency": efficiency})
        return rows

    def _way(self, assume: str) -> Scenario:
        """Return the scenario at one end of the range."""
        ways = self.scenario or self.strata.scenarios
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
            "rounds": None if self.rounds is None else asdict(self.rounds),
            "recommended": asdict(self.recommended),
            "allocation": self.allocation.method,
            "stratification": strata.method,
            "proxies": self.population and [score.described() for score in self.population.scores],
            "designs": [asdict(row) for row in self.designs],
            "allocations": self.allocations,
            "strata": [dict(zip(columns, row, strict=True)) for row in rows],
            "estimands": [asdict(part) for part in self.parts] or None,
            "assumptions": self.assumptions,
            "notes": self.notes,
        }
        optional = ("estimand", "labels", "looks", "rounds", "estimands", "proxies")
        return json_dict({k: v for k, v in described.items() if v is not None or k not in optional})

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


def _undivided(strata: Strata, scenario: Scenario) -> Scenario:
    """Return a scenario of strata (H,) for all units as one stratum."""
    overall = float(strata.weights @ scenario.means)
    variance = float(strata.weights @ (scenario.variances + (scenario.means - overall) ** 2))
    return replace(scenario, means=np.array([overall]), variances=np.array([variance]))


def level_of_last_look(confidence_level: float, looks: PlannedLooks | None) -> float:
    """Return the level that the last look's interval has for itself."""
    return confidence_level if looks is None else looks.at(looks.number).level(confidence_level, "two-sided")


# What a budget for a half-width may assume of the proxy.
ENDS = ("conservative", "expected", "optimistic")


# Allocations that the details of a plan compare: no trust in the proxy, some, and all.
COMPARED = ("proportional", "robust", "neyman")

# The allocation where a label's price depends on its stratum.
BY_COST = "cost-optimal"


def checked_half_widths(half_widths: Any, count: int, whole: Strata | None = None) -> FloatArray:
    """Return the wanted half-widths (J,) of J estimands, checked.

    Of one estimand, whose population is the stratum `whole`, a half-width that every interval within its
    bounds is under is refused.

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
    low, high = (-math.inf, math.inf) if whole is None or count > 1 else whole.bounds
    half_width = float(several[0])
    if math.isfinite(high - low) and half_width >= (high - low) / 2:
        percent = f"; for {half_width:g} percent points write {half_width / 100:g}" if high == 1 else ""
        raise InputError(
            f"every interval of an outcome from {low:g} to {high:g} is narrower than that",
            allowed=f"below {(high - low) / 2:g}",
            action=f"Half-widths are on the outcome's own scale{percent}.",
        )
    return np.array(np.broadcast_to(np.asarray(several, np.float64), (count,)))


# Of the proportional share of a stratum among those of its answer.
LEAST_SHARE = 0.5


# Halvings of the share that fits: a millionth of it is left.
_HALVINGS = 20


def floor_of(strata: Strata, n_h: IntArray, least: Any) -> IntArray | None:
    """Return minima (H,) that give each stratum half of its share of its answer's labels; None without cells.

    Parameters
    ----------
    strata : Strata
    n_h : int (H,)
        An allocation without them.
    least : int or int (H,)
        What it was not to be less than, such as units drawn already.
    """
    cells = cells_of(strata.rule)
    if cells is None:
        return None
    return floored(strata.sizes, cells, n_h, np.minimum(least, n_h), strata.is_known)


def floored(sizes: IntArray, cells: IntArray, n_h: IntArray, drawn: IntArray, known: BoolArray) -> IntArray:
    """Return the minima (H,) that give each stratum half of its share among those of its cell.

    Less than half where units drawn already leave too few labels for all strata.

    Examples
    --------
    >>> sizes, cells, known = np.array([900, 100, 500]), np.array([0, 0, 1]), np.zeros(3, dtype=bool)
    >>> floored(sizes, cells, np.array([10, 40, 50]), np.array([2, 2, 2]), known)
    array([23,  3, 25])
    """
    n_cell, size = (np.bincount(cells, values * ~known) for values in (n_h, sizes))
    share = LEAST_SHARE * (n_cell / np.maximum(size, 1))[cells] * np.where(known, 0, sizes)
    total, part = int(n_h.sum()), 1.0
    step = 0.5
    for _ in range(_HALVINGS):
        minima = np.minimum(np.maximum(np.ceil(part * share - 1e-9).astype(np.int64), drawn), sizes)
        fits = int(minima.sum()) <= total
        if fits and part == 1.0:
            return minima
        part, step = (part + step if fits else part - step), step / 2.0
    return minima if fits else drawn


def smallest_budget(width: Callable[[int], float], wanted: float, start: int, least: int, most: int) -> int:
    """Return the smallest budget, to within a hundredth, whose width is as wanted; `most` if none is.

    Squared widths are about linear in 1/n, so that a few looks are enough.

    Parameters
    ----------
    width : callable
        Budget to half-width.
    wanted : float
    start, least, most : int
        Where to look first, and between which budgets; `most` is the whole population.

    Examples
    --------
    >>> smallest_budget(lambda n: n**-0.5, 0.1, 20, 2, 1000)
    100
    """
    above, below, wide, narrow = least - 1, most, math.nan, 0.0
    n = min(max(start, least), most)
    for _ in range(_MOST_LOOKS):
        squared = width(n) ** 2
        if squared <= wanted**2:
            below, narrow = n, squared
        else:
            above, wide = n, squared
        if below - above <= max(1, below // 100):
            break
        # Every unit labelled leaves nothing open.
        known = math.isfinite(wide)
        one, first = (1.0 / above, wide) if known else (1.0 / n, squared)
        other, second = (1.0 / below, narrow) if known else (1.0 / most, 0.0)
        guess = (above + below) // 2
        if math.isfinite(first) and first != second:
            inverse = other + (wanted**2 - second) * (one - other) / (first - second)
            guess = math.ceil(min(1.0 / inverse, below)) if inverse > 0 else guess
        step = max((below - above) // 8, 1)
        n = min(max(guess, above + step), below - step)
    return below


# Budgets tried at most; a few are usual, and bisection alone needs as many for 10⁷ units.
_MOST_LOOKS = 24
