"""Planned looks: simultaneous intervals at a fixed number of looks, by α spending (Lan & DeMets 1983).

The labels at each look are a random subset of those at the next, within every stratum. Therefore the
estimates at successive looks are, to first order, a Brownian motion at the times of their information, 1 /
variance. The boundaries follow by recursion over the looks (Armitage, McPherson & Rowe 1969; Jennison &
Turnbull 2000, chapter 19). The error that a look spends depends only on its number, even if labels determine
its size.
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
from stratal.intervals.interval import error_probabilities

# Maximum number of looks. With more, `betting-anytime` is about as narrow.
MAX_LOOKS = 50

# Number of Gauss–Legendre nodes for the density at each look: boundaries are then exact to six decimals.
_NODES = 160

# Largest boundary of the search, in standard errors: the error there is below 1e-32.
_MAX_BOUNDARY = 12.0

# Smallest p-value of the search.
_MIN_P_VALUE = 1e-12


def _pocock(error: float, share: float) -> float:
    return error * math.log1p((math.e - 1.0) * share)


def _obrien_fleming(error: float, share: float) -> float:
    return 2.0 * float(ndtr(ndtri(error / 2.0) / math.sqrt(share)))


# The error of one side that is spent after a share of the looks (Lan & DeMets 1983, eqs. 5 and 7).
SPENDING: dict[str, Callable[[float, float], float]] = {"pocock": _pocock, "obrien-fleming": _obrien_fleming}


@dataclass(frozen=True, slots=True)
class PlannedLooks:
    """The number of looks at a study, and the division of the error among them.

    Parameters
    ----------
    number : int
        Number of all looks, including the last.
    boundary : {"pocock", "obrien-fleming"}
        Nearly the same level at every look, or hardly any error at the first looks and most of it at the
        last.

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
    """One of the planned looks, with the information at all looks up to it.

    Parameters
    ----------
    planned : PlannedLooks
    information : tuple of float
        Information at each look, divided by that at this look; increasing up to 1.
    """

    planned: PlannedLooks
    information: tuple[float, ...]

    def __str__(self) -> str:
        name = {"pocock": "Pocock", "obrien-fleming": "O'Brien–Fleming"}[self.planned.boundary]
        return f"look {len(self.information)} of {self.planned.number} ({name})"

    def level(self, confidence_level: float, alternative: str) -> float:
        """Return the confidence level of this look's interval, for a simultaneous level of all looks."""
        error = max(error_probabilities(confidence_level, alternative))
        sides = 2 if alternative == "two-sided" else 1
        spending_function = SPENDING[self.planned.boundary]
        shares = np.arange(1, len(self.information) + 1) / self.planned.number
        cumulative_errors = [0.0, *(spending_function(error, share) for share in shares.tolist())]
        errors = tuple(np.diff(cumulative_errors).tolist())
        bounds = boundaries(errors, self.information, two_sided=sides == 2)
        return 1.0 - sides * float(ndtr(-bounds[-1]))

    def adjusted_p_value(self, p_value: float, alternative: str) -> float:
        """Return the repeated p-value of a look's own p-value (Jennison & Turnbull 2000, section 9.3).

        It is the simultaneous error probability at which this look has the error probability `p_value`.
        """
        return _root(
            lambda error: 1.0 - self.level(1.0 - error, alternative) - p_value,
            _MIN_P_VALUE,
            1.0 - _MIN_P_VALUE,
        )


@lru_cache(maxsize=256)
def boundaries(
    errors: tuple[float, ...], information: tuple[float, ...], *, two_sided: bool = True
) -> FloatArray:
    """Return the upper bounds (k,) of successive z statistics.

    Parameters
    ----------
    errors : tuple of float (k,)
        Probability that the statistic exceeds the bound of a look, but none of the earlier bounds.
    information : tuple of float (k,)
        Increasing.
    two_sided : bool
        Whether there are lower bounds too, with the same probabilities.
    """
    bounds: list[float] = []
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    # Possible values of the score process before this look, if no bound has been exceeded, and their
    # probabilities. The variance of the process is the information.
    scores = np.zeros(1)
    probabilities = np.ones(1)
    previous_information = 0.0
    for error, current_information in zip(errors, information, strict=True):
        deviation = math.sqrt(current_information - previous_information)
        root_information = math.sqrt(current_information)
        bound = _boundary(error, scores, probabilities, root_information, deviation)
        bounds.append(bound)
        highest = bound * root_information
        lowest = -highest if two_sided else -_MAX_BOUNDARY * root_information
        new_scores = (highest + lowest) / 2.0 + (highest - lowest) / 2.0 * nodes
        density = np.exp(-0.5 * ((new_scores[:, None] - scores) / deviation) ** 2) @ probabilities
        probabilities = density * weights * (highest - lowest) / 2.0 / (deviation * math.sqrt(2.0 * math.pi))
        scores = new_scores
        previous_information = current_information
    return np.array(bounds)


def _boundary(
    error: float, scores: FloatArray, probabilities: FloatArray, root_information: float, deviation: float
) -> float:
    """Return the bound that the z statistic exceeds with probability `error`.

    The score before the look is one of `scores`, and `deviation` is the standard deviation of its increment.
    """

    def excess_error(bound: float) -> float:
        return error - float(probabilities @ ndtr((scores - bound * root_information) / deviation))

    return _root(excess_error, -_MAX_BOUNDARY, _MAX_BOUNDARY)


def _root(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of an increasing function between two ends, or the nearer end if it has none."""
    from scipy.optimize import brentq  # slow to import

    if increasing(low) >= 0.0:
        return low
    if increasing(high) <= 0.0:
        return high
    return float(brentq(increasing, low, high, xtol=1e-12))
