"""`Plan`: a budget shared among strata, and the range of what it is expected to buy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import SimpleRandom, Stratified
from stratal.designs.same_population import require_planned
from stratal.errors import InputError, names_mistyped, not_positive
from stratal.intervals.proportion import student_quantile
from stratal.planning.earlier_labels import EarlierLabels
from stratal.planning.widths import expected_half_width, smallest_budget
from stratal.population.rules.rule import Everything
from stratal.report import Bars, Page, Plotted, Printed, Tabular, plain, plain_dict, plan_page
from stratal.strata import Allocation, Strata
from stratal.strata.integers import check_budget, whole_number
from stratal.strata.moments import Scenario, expected_variance, scenarios

if TYPE_CHECKING:
    from stratal.designs.sample import Design, Sample
    from stratal.population.population import Population

ESTIMATORS = ("horvitz-thompson", "difference", "ppi++")
"""The estimators that a plan compares under each design."""

_EXPECTED = (
    *("expected_standard_error", "hopeful_standard_error"),
    *("cautious_standard_error", "relative_efficiency"),
)
"""What is unknown of a design where nothing can be expected of the proxy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDesign:
    """What one design and estimator are expected to give at the budget.

    Parameters
    ----------
    design, estimator : str
    expected_standard_error : float
        In the outcome's units; None where the proxy only orders units, so that nothing can be expected.
    hopeful_standard_error, cautious_standard_error : float
        The ends of its range over the ways in which the proxy may be off (`scenarios`).
    relative_efficiency : float
        Expected variance of a simple random sample's mean over this variance; above 1 is better.
    worst_standard_error : float, optional
        Where nothing can be expected: that of labels of which half lie at either end of the outcome's bounds,
        of 0 and 1 where none are known.

    Examples
    --------
    >>> row = PlannedDesign(design="stratified", estimator="difference", expected_standard_error=0.02,
    ...                     hopeful_standard_error=0.01, cautious_standard_error=0.03,
    ...                     relative_efficiency=1.5)
    >>> row.to_dict()["design"]
    'stratified'
    """

    design: str
    estimator: str
    expected_standard_error: float | None
    hopeful_standard_error: float | None
    cautious_standard_error: float | None
    relative_efficiency: float | None
    worst_standard_error: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict."""
        return {name: getattr(self, name) for name in self.__slots__}


def expectations(
    design: str,
    strata: Strata,
    allocation: Allocation,
    whole: Strata,
    *,
    n_proxies: int = 1,
    labels: EarlierLabels | None = None,
) -> list[PlannedDesign]:
    """Return what each estimator is expected to give under one design.

    Parameters
    ----------
    design : str
        Its name.
    strata : Strata
        What it draws from.
    allocation : Allocation
    whole : Strata
        The population as one stratum, to compare with a simple random sample.
    n_proxies : int
        Proxies that estimators may correct by.
    labels : EarlierLabels, optional
        Labels that are in already, whose word is taken instead of the proxy's.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 100)
    >>> whole = stratal.stratify(population, "none")
    >>> expectations("simple-random", whole, stratal.allocate(whole, 10), whole)[0].relative_efficiency
    1.0
    """
    usable: tuple[str, ...] = ESTIMATORS if n_proxies else ESTIMATORS[:1]
    if not whole.scaled:
        usable = tuple(name for name in usable if name != "difference")
    unknown: dict[str, float | None] = dict.fromkeys(_EXPECTED)
    n_h, census = allocation.n_h, allocation.budget == whole.sizes[0]
    blind = not whole.scaled or (whole.standard_deviations[0] == 0 and not census)
    if labels is None and blind:
        low, high = worst_bounds(whole)
        # The worst: half of each stratum's labels lie at either end of their bounds.
        worst = math.sqrt(expected_variance(strata.sizes, n_h, np.full(len(n_h), ((high - low) / 2) ** 2)))
        return [
            PlannedDesign(
                design=design,
                estimator=name,
                worst_standard_error=None if name == "difference" else worst,
                **unknown,
            )
            for name in usable
        ]
    n = np.array([allocation.budget])
    ways = scenarios(strata) if labels is None else labels.scenario(strata, n_h)
    simple = scenarios(whole) if labels is None else labels.scenario(whole, n)
    random = float(expected_variance(whole.sizes, n, simple.variances[0]))
    rows = []
    for name in usable:
        errors = ways.standard_errors(strata, n_h, name)
        error = float(errors[0])
        efficiency = random / error**2 if error > 0 else (1.0 if random == 0 else None)
        found = error, float(errors.min()), float(errors.max()), efficiency
        rows.append(PlannedDesign(design=design, estimator=name, **dict(zip(_EXPECTED, found, strict=True))))
    return rows


def simple_allocation(whole: Strata, budget: int) -> Allocation:
    """Return a simple random sample's allocation: all labels to all units as one stratum.

    Examples
    --------
    >>> import stratal
    >>> simple_allocation(stratal.stratify(stratal.Population.from_arrays(proxy=[0.5] * 9), "none"), 4).n_h
    array([4])
    """
    one = np.array([1])
    return Allocation(
        n_h=one * budget, method="proportional", budget=budget, minimum=one, maximum=whole.sizes
    )


def worst_bounds(strata: Strata) -> tuple[float, float]:
    """Return the ends between which labels may lie where the worst is planned for: 0 and 1 if none are known.

    Examples
    --------
    >>> import stratal
    >>> worst_bounds(stratal.stratify(stratal.Population.from_arrays(groups={"g": ["a"]}), "none"))
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
    >>> part.to_dict()["labels"]
    40
    """

    estimand: str
    labels: int
    expected_standard_error: float
    expected_half_width: float
    wanted_half_width: float | None
    relative_efficiency: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON twin; what is not finite is None."""
        return plain_dict(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class InfluenceMoments:
    """Mean and mean square of J influences in H strata, each (J, H).

    Examples
    --------
    >>> InfluenceMoments(means=np.array([[1.0]]), squares=np.array([[5.0]])).deviations
    array([[2.]])
    """

    means: FloatArray
    squares: FloatArray

    @property
    def deviations(self) -> FloatArray:
        """The standard deviations (J, H)."""
        return np.asarray(np.sqrt(np.maximum(self.squares - self.means**2, 0.0)))

    def spreads(self, strata: Strata) -> FloatArray:
        """Return S_h of each influence (J, H), whose divisor is N_h − 1."""
        sizes = strata.sizes
        return np.asarray(self.deviations * np.sqrt(sizes / np.maximum(sizes - 1, 1)))

    def overall(self, strata: Strata) -> FloatArray:
        """Return the variance of each influence over all units (J,)."""
        shares = strata.weights
        return np.asarray(np.maximum(self.squares @ shares - (self.means @ shares) ** 2, 0.0))


def planned_parts(
    names: Sequence[str],
    moments: InfluenceMoments,
    strata: Strata,
    n_h: Any,
    wanted: FloatArray | None,
    confidence_level: float,
) -> tuple[PlannedPart, ...]:
    """Return a row for each of J estimands.

    Parameters
    ----------
    names : sequence of str (J,)
    moments : InfluenceMoments
    strata : Strata
    n_h : int (H,)
    wanted : float (J,), optional
    confidence_level : float

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 100)
    >>> strata = stratal.stratify(population, "none")
    >>> moments = InfluenceMoments(means=np.zeros((1, 1)), squares=np.ones((1, 1)))
    >>> part = planned_parts(["mean"], moments, strata, np.array([25]), None, 0.95)[0]
    >>> round(part.expected_standard_error, 4), round(part.relative_efficiency, 4), part.labels
    (0.1741, 1.0, 25)
    """
    normal = -float(student_quantile((1.0 - confidence_level) / 2.0, np.inf))
    left = 1.0 / int(np.sum(n_h)) - 1.0 / strata.size
    rows = []
    overall, every = moments.overall(strata), np.where(strata.is_known, 0.0, moments.deviations)
    for j, (name, deviations) in enumerate(zip(names, every, strict=True)):
        error = float(np.sqrt(expected_variance(strata.sizes, n_h, deviations**2)))
        random = float(overall[j]) * left * strata.size / max(strata.size - 1, 1)
        rows.append(
            PlannedPart(
                estimand=name,
                labels=int(n_h[deviations > 0].sum()),
                expected_standard_error=error,
                expected_half_width=normal * error,
                wanted_half_width=None if wanted is None else float(wanted[j]),
                relative_efficiency=random / error**2 if error > 0 else np.inf,
            )
        )
    return tuple(rows)


POWER = 0.8
"""How often a difference of this size is shown, in repeated draws."""


def detectable_difference(
    standard_errors: tuple[float, float],
    *,
    confidence_level: float = 0.95,
    power: float = POWER,
    correlation: float = 0.0,
) -> float:
    """Return the difference of two means that a two-sided test on the same labels shows with this power.

    (z_(1 − α/2) + z_power) √(SE_a² + SE_b² − 2 ρ SE_a SE_b); Cochran, 4.6, paired.

    Parameters
    ----------
    standard_errors : (float, float)
        Of the two models' means.
    confidence_level, power : float
    correlation : float
        Of the two means; 0 if the models err on unrelated units, more where they err on the same ones.

    Examples
    --------
    >>> round(detectable_difference((0.02, 0.02)), 4)
    0.0792
    """
    first, second = standard_errors
    variance = first**2 + second**2 - 2 * correlation * first * second
    reach = student_quantile((1.0 - confidence_level) / 2.0, np.inf) + student_quantile(1.0 - power, np.inf)
    return -float(reach) * math.sqrt(max(variance, 0.0))


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
