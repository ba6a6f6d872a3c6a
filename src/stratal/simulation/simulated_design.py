"""Designs of a simulation, checks of its settings, and the tasks that its workers run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stratal.arrays import AnyArray, FloatArray, field_values
from stratal.errors import BudgetError, InputError, check_choice
from stratal.estimation.estimand import Estimand
from stratal.intervals.interval import check_confidence_level
from stratal.protocols import JsonDict
from stratal.simulation.replicates import Settings
from stratal.strata import STRATIFICATION_METHODS
from stratal.strata.number_of_strata import DEFAULT_STRATA

if TYPE_CHECKING:
    from stratal.population.population import Population


# Allocations of the complete budget in one round. `oracle` is Neyman allocation with the true S_h, which are
# not known in practice.
ONE_ROUND_ALLOCATIONS = ("proportional", "equal", "neyman", "robust", "stratppi", "oracle")

# Allocations that depend on labels. `two-round` is a proportional pilot with half of the budget, followed by
# Neyman allocation with S_h from a proxy that is recalibrated on its labels. `opt-a1` and `opt-a2` are those
# of Kumar & Raj (2016), unchanged.
ADAPTIVE_ALLOCATIONS = ("two-round", "opt-a1", "opt-a2")

# Designs without strata, by the kind of `stratal.designs`.
DRAW_MECHANISMS = ("poisson", "proportional-to-size", "systematic")

# Designs of `stratal.plan` for the estimand: the complete budget in one round, or half of it as a pilot. The
# text `two-round` is this plan; after a stratification, as in `k-means:10:two-round`, it is the allocation.
PLANS = ("planned", "two-round")

# Default pilots: a share of the budget for `two-round`, labels per stratum for the other allocations.
_DEFAULT_PILOTS = {"two-round": 0.5, "opt-a1": 10, "opt-a2": 5}

# The text of a stratified design: stratification:n_strata:allocation[:pilot[:step]].
_STRATIFIED_DESIGN = re.compile(r"([^:]+):(\d+):([^:]+)(?::(\d*\.?\d*))?(?::(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDesign:
    """One design of a simulation.

    Parameters
    ----------
    stratification : str, optional
        A method of `stratal.strata.stratify`. Default: simple random sampling.
    n_strata : int
        H.
    allocation : str
        One of `ONE_ROUND_ALLOCATIONS` or `ADAPTIVE_ALLOCATIONS`.
    pilot : float, optional
        `two-round`: share of the budget, 0.5 by default. `opt-a1`, `opt-a2`: labels per stratum, 10 and 5 by
        default.
    step : int, optional
        `opt-a2`: labels of one step, 10 by default.
    minimum : int
        Minimum number of labels per stratum.
    by, proxy : str, optional
        As in `stratal.strata.stratify`.
    label : str, optional
        Name in the table. Default: the text of the design.
    mechanism : str, optional
        One of `DRAW_MECHANISMS` or `PLANS`, instead of strata. Replicates are drawn one at a time.
    size : str
        `poisson`, `proportional-to-size`: the size measure, as in `stratal.designs.ProportionalToSize`.

    Examples
    --------
    >>> SimulatedDesign.parse("k-means:10:neyman").allocation
    'neyman'
    >>> SimulatedDesign.parse("equal-size:6:opt-a2:5:20").step
    20
    """

    stratification: str | None = None
    n_strata: int = DEFAULT_STRATA
    allocation: str = "proportional"
    pilot: float | None = None
    step: int | None = None
    minimum: int = 2
    by: str | None = None
    proxy: str | None = None
    label: str | None = field(default=None, compare=False)
    mechanism: str | None = None
    size: str = "sqrt-variance"

    def __post_init__(self) -> None:
        if self.mechanism is not None:
            check_choice("mechanism", self.mechanism, (*DRAW_MECHANISMS, *PLANS))
        if self.stratification is not None:
            check_choice("stratification", self.stratification, STRATIFICATION_METHODS)
        check_choice(
            "allocation in a simulation", self.allocation, (*ONE_ROUND_ALLOCATIONS, *ADAPTIVE_ALLOCATIONS)
        )
        if self.allocation == "two-round" and not 0 < self.pilot_size < 1:
            raise InputError(
                "the pilot must be a share of the budget", given=self.pilot, allowed="between 0 and 1"
            )
        # A variance needs two labels.
        if self.allocation in ("opt-a1", "opt-a2") and self.pilot_size < 2:
            raise InputError(
                "the pilot must have at least two labels per stratum", given=self.pilot, allowed="2 or more"
            )
        if self.step is not None and self.step < 1:
            raise InputError("step must be positive", given=self.step, allowed="1 or more")

    @property
    def adaptive(self) -> bool:
        """Whether the allocation depends on labels."""
        return self.stratification is not None and self.allocation in ADAPTIVE_ALLOCATIONS

    @property
    def pilot_size(self) -> float:
        """The pilot, or its default: a share of the budget for `two-round`, otherwise labels per stratum."""
        if self.pilot is None:
            return _DEFAULT_PILOTS.get(self.allocation, 0)
        return self.pilot

    @property
    def name(self) -> str:
        """The label, or the text that `parse` reads."""
        if self.label is not None:
            return self.label
        if self.mechanism is not None:
            if self.size == "sqrt-variance":
                return self.mechanism
            return f"{self.mechanism}:{self.size}"
        if self.stratification is None:
            return "simple-random"
        parts = [self.stratification, str(self.n_strata), self.allocation]
        if self.pilot is not None:
            parts.append(f"{self.pilot:g}")
        elif self.step is not None:
            # The pilot comes before the step in the text.
            parts.append("")
        if self.step is not None:
            parts.append(str(self.step))
        return ":".join(parts)

    @classmethod
    def parse(cls, text: str) -> SimulatedDesign:
        """Return the design that a text describes.

        `simple-random`, `stratification:n_strata:allocation[:pilot[:step]]`, `poisson[:size]`,
        `proportional-to-size[:size]`, `systematic`, `planned` or `two-round`.
        """
        if text == "simple-random":
            return cls()
        mechanism, _, size = text.partition(":")
        has_size = mechanism in ("poisson", "proportional-to-size") and ":" not in size
        if text in (*PLANS, "systematic") or has_size:
            return cls(mechanism=mechanism, size=size or "sqrt-variance")
        match = _STRATIFIED_DESIGN.fullmatch(text)
        if match is None or int(match[2]) < 1:
            raise InputError(
                "this design cannot be read",
                given=repr(text),
                allowed="simple-random, or stratification:number:allocation[:pilot[:step]], such as "
                "k-means:10:neyman",
            )
        stratification, n_strata, allocation, pilot, step = match.groups()
        return cls(
            stratification=stratification,
            n_strata=int(n_strata),
            allocation=allocation,
            pilot=float(pilot) if pilot else None,
            step=int(step) if step else None,
        )

    def to_dict(self) -> JsonDict:
        """Return a JSON-serializable dict."""
        return field_values(self)


def as_tuple(names: object) -> tuple[Any, ...]:
    """Return one name, or an iterable of names, as a tuple."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        return (names,)
    return tuple(names)


def check_settings(settings: Settings, population_size: int) -> None:
    """Raise an error for settings that cannot be simulated with this number of units."""
    # A Monte Carlo standard error needs two replicates, and a variance needs two labels.
    if settings.replicates < 2:
        raise InputError("replicates must be 2 or more", given=settings.replicates, allowed="2 or more")
    if not settings.estimators:
        raise InputError("estimators= is empty", action="Give an estimator, such as 'horvitz-thompson'.")
    if not settings.budgets or min(settings.budgets) < 2 or max(settings.budgets) > population_size:
        raise BudgetError(
            "a budget is out of range", given=list(settings.budgets), allowed=f"2 to {population_size}"
        )
    check_confidence_level(settings.confidence_level)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationTask:
    """Designs with the same strata, which one process simulates, and the data of the simulation.

    Parameters
    ----------
    population : Population
    estimand : Estimand
    labels : (N,)
        Labels of all units.
    z : float (N,), optional
        Outcomes whose mean is the estimand; None for other estimands.
    value : float
        Population value of an estimand that is not a mean, otherwise NaN.
    proxy_name : str, optional
        Name of the proxy of the estimators of a mean.
    designs : tuple of SimulatedDesign
    settings : Settings
    proxy : float (N,), optional
        Values of the proxy.
    keys : tuple of str
        For each design, the key by which its finished results are found.
    """

    population: Population
    estimand: Estimand
    labels: AnyArray
    z: FloatArray | None
    value: float
    proxy_name: str | None
    designs: tuple[SimulatedDesign, ...]
    settings: Settings
    proxy: FloatArray | None = None
    keys: tuple[str, ...] = ()
