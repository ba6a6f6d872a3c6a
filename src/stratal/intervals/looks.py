"""Planned looks: intervals that hold together at a fixed number of looks, by α spending (Lan & DeMets 1983).

The estimates at successive looks are, to first order, a Brownian motion at the times of their information,
1 / variance: each look's labels are a random part of the next one's, within every stratum. So the boundaries
follow by recursion over the looks (Armitage, McPherson & Rowe 1969; Jennison & Turnbull 2000, chapter 19).
Each look spends its share of the error by its number alone, whatever labels decided of its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.intervals.interval import tail_shares

# The recursion is exact for more, but nobody plans them: `betting-anytime` is then about as narrow.
MAX_LOOKS = 50

# Gauss–Legendre nodes of each look's density: boundaries are then exact to six decimals.
_NODES = 160

# Standard errors beyond which a boundary is not sought: the error there is below 1e-32.
_FARTHEST = 12.0

# The least p-value that is sought, as of an interval.
_MIN_P_VALUE = 1e-12


def _pocock(error: float, part: float) -> float:
    return error * math.log1p((math.e - 1.0) * part)


def _obrien_fleming(error: float, part: float) -> float:
    return 2.0 * float(ndtr(ndtri(error / 2.0) / math.sqrt(part)))


# The error of one side that is spent when a part of the looks is done (Lan & DeMets 1983, eqs. 5 and 7).
SPENDING: dict[str, Callable[[float, float], float]] = {"pocock": _pocock, "obrien-fleming": _obrien_fleming}


@dataclass(frozen=True, slots=True)
class PlannedLooks:
    """How often a study is looked at, and how the error is shared among the looks.

    Parameters
    ----------
    number : int
        Looks in all, the last one included.
    boundary : {"pocock", "obrien-fleming"}
        About the same level at every look, or hardly any error at the first ones and nearly all at the last.

    Raises
    ------
    InputError
        For fewer than 2 looks or more than 50, and an unknown boundary.
    """

    number: int
    boundary: str = "pocock"

    def __post_init__(self) -> None:
        is_whole_number = isinstance(self.number, int | np.integer) and not isinstance(self.number, bool)
        if not (is_whole_number and 2 <= self.number <= MAX_LOOKS and self.boundary in SPENDING):
            allowed = f"2 to {MAX_LOOKS}, or with the boundary first: obrien-fleming:4, pocock:4"
            raise InputError("unknown plan of looks", given=repr(self.text), allowed=allowed)

    @classmethod
    def parse(cls, value: PlannedLooks | int | str) -> PlannedLooks:
        """Return the looks that a number or a text such as `obrien-fleming:4` stands for."""
        if isinstance(value, PlannedLooks):
            return value
        boundary, colon, number = str(value).rpartition(":")
        return cls(int(number) if number.isdecimal() else -1, boundary if colon else "pocock")

    @property
    def text(self) -> str:
        """The boundary and the number: `pocock:4`."""
        return f"{self.boundary}:{self.number}"

    def at(self, look_number: int, information: FloatArray | None = None) -> Look:
        """Return a look, from 1, with the increasing `information` (look_number,) of the looks up to it.

        By default, the information increases evenly.

        Raises
        ------
        InputError
            For a look that was not planned.
        """
        if not isinstance(look_number, int | np.integer) or not 1 <= look_number <= self.number:
            raise InputError(
                "this interim analysis was not planned",
                given=repr(look_number),
                allowed=f"1 to {self.number}, in order",
            )
        if information is None:
            times = np.arange(1.0, look_number + 1.0)
        else:
            times = information
        return Look(planned=self, information=tuple((np.asarray(times) / times[-1]).tolist()))


@dataclass(frozen=True, slots=True)
class Look:
    """One of the planned looks, and the information at it and at those before.

    Parameters
    ----------
    planned : PlannedLooks
    information : tuple of float
        Of each look so far over that of this one; increasing up to 1.
    """

    planned: PlannedLooks
    information: tuple[float, ...]

    def __str__(self) -> str:
        name = {"pocock": "Pocock", "obrien-fleming": "O'Brien–Fleming"}[self.planned.boundary]
        return f"look {len(self.information)} of {self.planned.number} ({name})"

    def level(self, confidence_level: float, alternative: str) -> float:
        """Return the level at which this look's own interval holds together with those of the others."""
        error = max(tail_shares(confidence_level, alternative))
        sides = 2 if alternative == "two-sided" else 1
        spend = SPENDING[self.planned.boundary]
        parts = np.arange(1, len(self.information) + 1)
        spent = [0.0, *(spend(error, part) for part in (parts / self.planned.number).tolist())]
        bounds = boundaries(tuple(np.diff(spent).tolist()), self.information, two_sided=sides == 2)
        return 1.0 - sides * float(ndtr(-bounds[-1]))

    def adjusted(self, p: float, alternative: str) -> float:
        """Return what the p-value of this look alone becomes: the least error that excludes as much.

        Jennison & Turnbull (2000), section 9.3: a repeated p-value.
        """
        return _root(
            lambda error: 1.0 - self.level(1.0 - error, alternative) - p, _MIN_P_VALUE, 1.0 - _MIN_P_VALUE
        )


@lru_cache(maxsize=256)
def boundaries(
    spent: tuple[float, ...], information: tuple[float, ...], *, two_sided: bool = True
) -> FloatArray:
    """Return the bounds (k,) of successive z statistics, each of which is first passed with a given chance.

    Parameters
    ----------
    spent : tuple of float (k,)
        The chance at each look to pass its bound upwards, and none before.
    information : tuple of float (k,)
        Increasing.
    two_sided : bool
        Whether bounds lie below zero as well, each with the same chance.
    """
    bounds: list[float] = []
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    # Where the score process (its variance is the information) is before this look, and with what density.
    score = np.zeros(1)
    mass = np.ones(1)
    time = 0.0
    for chance, information_now in zip(spent, information, strict=True):
        step = math.sqrt(information_now - time)

        def beyond(bound: float) -> float:
            return float(mass @ ndtr((score - bound * math.sqrt(information_now)) / step))  # noqa: B023  (called here)

        bounds.append(_root(lambda bound: chance - beyond(bound), -_FARTHEST, _FARTHEST))  # noqa: B023
        top = bounds[-1] * math.sqrt(information_now)
        if two_sided:
            bottom = -top
        else:
            bottom = -_FARTHEST * math.sqrt(information_now)
        inside = (top + bottom) / 2.0 + (top - bottom) / 2.0 * nodes
        density = np.exp(-0.5 * ((inside[:, None] - score) / step) ** 2) @ mass
        mass = density * weights * (top - bottom) / 2.0 / (step * math.sqrt(2.0 * math.pi))
        score = inside
        time = information_now
    return np.array(bounds)


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that rises passes 0; an end where it does not."""
    from scipy.optimize import brentq  # takes longer to import than anything else here

    if rising(low) >= 0.0:
        return low
    if rising(high) <= 0.0:
        return high
    return float(brentq(rising, low, high, xtol=1e-12))
