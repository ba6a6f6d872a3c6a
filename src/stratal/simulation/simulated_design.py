"""What to simulate: the designs, and the settings of every one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stratal.arrays import AnyArray, FloatArray
from stratal.errors import BudgetError, InputError, no_level, refuse_unknown
from stratal.estimation.estimand import Estimand
from stratal.simulation.replicates import Settings
from stratal.strata import METHODS

if TYPE_CHECKING:
    from stratal.population.population import Population


# `oracle` is Neyman's rule with the true S_h, which no study knows.
ONE_ROUND = ("proportional", "equal", "neyman", "robust", "stratppi", "oracle")


# `two-round`: half the budget in a proportional pilot, the total by Neyman on recalibrated S_h.
# `opt-a1`, `opt-a2`: the literal rules of Kumar & Raj.
ROUNDS = ("two-round", "opt-a1", "opt-a2")


MECHANISMS = ("poisson", "proportional-to-size", "systematic")


# Designs of `stratal.plan`, for the estimand: the whole budget at once, and half of it as a pilot.
PLANS = ("planned", "two-round")


_IN_STRATA = re.compile(r"([^:]+):(\d+):([^:]+)(?::(\d*\.?\d*))?(?::(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDesign:
    """One design of a simulation.

    Parameters
    ----------
    stratification : str, optional
        A method of `stratal.strata.stratify`; simple random sampling if left out.
    n_strata : int
        H.
    allocation : str
        One of `ONE_ROUND` or `ROUNDS`.
    pilot : float, optional
        `two-round`: the pilot's share of the budget, 0.5 by default. `opt-a1`, `opt-a2`: labels per stratum,
        10 and 5 by default.
    step : int, optional
        `opt-a2`: labels of one step, 10 by default.
    minimum : int
        Labels that every stratum gets at least.
    by, proxy : str, optional
        As in `stratal.strata.stratify`.
    label : str, optional
        A name of its own.
    mechanism : str, optional
        One of `MECHANISMS` or `PLANS`, drawn one replicate at a time, instead of strata.
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
    n_strata: int = 10
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
        for what, given, known in (
            ("mechanism", self.mechanism, (*MECHANISMS, *PLANS)),
            ("stratification", self.stratification, METHODS),
            ("allocation in a simulation", self.allocation, (*ONE_ROUND, *ROUNDS)),
        ):
            if given is not None:
                refuse_unknown(what, given, known)
        if self.allocation == "two-round" and not 0 < self.pilot_size < 1:
            what = "the pilot is a share of the budget"
            raise InputError(what, given=self.pilot, allowed="between 0 and 1")
        if self.allocation in ("opt-a1", "opt-a2") and self.pilot_size < 2:
            raise InputError("the pilot needs two labels per stratum", given=self.pilot, allowed="2 or more")
        if self.step is not None and self.step < 1:
            raise InputError("step must be positive", given=self.step, allowed="1 or more")

    @property
    def adaptive(self) -> bool:
        """Whether the allocation follows labels."""
        return self.stratification is not None and self.allocation in ROUNDS

    @property
    def pilot_size(self) -> float:
        """The pilot, defaults filled in."""
        usual = {"two-round": 0.5, "opt-a1": 10, "opt-a2": 5}
        if self.pilot is None:
            return usual.get(self.allocation, 0)
        return self.pilot

    @property
    def name(self) -> str:
        """The label, or the text that `parse` understands."""
        if self.label is not None:
            return self.label
        if self.mechanism is not None:
            if self.size == "sqrt-variance":
                return self.mechanism
            return f"{self.mechanism}:{self.size}"
        if self.stratification is None:
            return "simple-random"
        pilot = "" if self.pilot is None else f"{self.pilot:g}"
        step = "" if self.step is None else f":{self.step}"
        rounds = f":{pilot}{step}" if pilot or step else ""
        return f"{self.stratification}:{self.n_strata}:{self.allocation}{rounds}"

    @classmethod
    def parse(cls, text: str) -> SimulatedDesign:
        """Return the design of a text.

        `simple-random`, `stratification:n_strata:allocation[:pilot[:step]]`, `poisson[:size]`,
        `proportional-to-size[:size]`, `systematic`, `planned` or `two-round`.
        """
        if text == "simple-random":
            return cls()
        first, _, size = text.partition(":")
        sized = first in ("poisson", "proportional-to-size") and ":" not in size
        if text in (*PLANS, "systematic") or sized:
            return cls(mechanism=first, size=size or "sqrt-variance")
        strata = _IN_STRATA.fullmatch(text)
        if strata is None or int(strata[2]) < 1:
            raise InputError(
                "this design cannot be read",
                given=repr(text),
                allowed="simple-random, or stratification:number:allocation[:pilot[:step]], as "
                "k-means:10:neyman",
            )
        pilot = float(strata[4]) if strata[4] else None
        step = int(strata[5]) if strata[5] else None
        return cls(
            stratification=strata[1], n_strata=int(strata[2]), allocation=strata[3], pilot=pilot, step=step
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return {name: getattr(self, name) for name in self.__slots__}


def several(given: Any) -> tuple[Any, ...]:
    """Return one name, or several, as a tuple.

    Examples
    --------
    >>> several("simple-random"), several(["t", "wilson"])
    (('simple-random',), ('t', 'wilson'))
    """
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        return (given,)
    return tuple(given)


def check_settings(settings: Settings, size: int) -> None:
    """Refuse settings that cannot be run."""
    if settings.replicates < 2:
        raise InputError("replicates must be 2 or more", given=settings.replicates, allowed="2 or more")
    if not settings.estimators:
        raise InputError("no estimator is given", action="Give estimators=, such as 'horvitz-thompson'.")
    if not settings.budgets or min(settings.budgets) < 2 or max(settings.budgets) > size:
        raise BudgetError("a budget is out of range", given=list(settings.budgets), allowed=f"2 to {size}")
    if not 0 < settings.confidence_level < 1:
        raise no_level(settings.confidence_level)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationTask:
    """Designs with the same strata, and what is simulated: the unit of work that goes to one process.

    Parameters
    ----------
    population : Population
    estimand : Estimand
    labels : (N,)
        The label of every unit.
    z : float (N,), optional
        The outcome that the estimand is the mean of; None where it is no mean.
    value : float
        What the estimand is in the population, where it is no mean.
    proxy : float (N,), optional
        The proxy that enters the estimators of a mean, and its name.
    proxy_name : str, optional
    designs, keys : tuple
        The designs, and the keys of their cells.
    settings : Settings
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
