"""`Narrowing`: how far an interval is from the half-width that is wanted, and how far there is to go."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate
from stratal.planning.widths import smallest_budgets

CAREFUL_BEYOND = 1.5
"""A round that would multiply the labels by more is taken in two: few labels say too little about many."""

CAREFUL_SHARE = 0.75
"""How much of it is taken first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """How far an interval is from the half-width that is wanted.

    Parameters
    ----------
    wanted : float
    half_width : float
        Of the interval now; infinite where the labels give none yet.
    additional : int
        Units to draw now; 0 when the interval is there, or every unit is drawn.
    expected_total : int
        Labels that are expected to be enough; more than the next round draws where that is done in two.
    estimand : str, optional
        Of several estimands the one that is furthest from its half-width; of one, itself; of the mean, none.

    Examples
    --------
    >>> Narrowing(wanted=0.05, half_width=0.04, additional=0, expected_total=100).reached
    True
    """

    wanted: float
    half_width: float
    additional: int
    expected_total: int
    estimand: str | None = None

    @property
    def reached(self) -> bool:
        """Whether the interval is narrow enough."""
        return self.half_width <= self.wanted

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict."""
        return {
            "wanted": self.wanted,
            "half_width": self.half_width if math.isfinite(self.half_width) else None,
            "reached": self.reached,
            "additional": self.additional,
            "expected_total": self.expected_total,
            **({} if self.estimand is None else {"estimand": self.estimand}),
        }


def further(
    width: Callable[[IntArray, IntArray], FloatArray],
    now: FloatArray,
    wanted: float,
    drawn: IntArray,
    population_size: int,
    *,
    looked: bool = False,
) -> tuple[IntArray, IntArray]:
    """Return the units (R,) of the next round, and the total (R,) that is expected to be enough.

    Parameters
    ----------
    width : callable
        Totals (r,) and the replicates (r,) that they are of, to expected half-widths (r,).
    now : float (R,)
        Half-widths so far, above the one that is wanted.
    wanted : float
    drawn : int (R,)
        Units drawn so far.
    population_size : int
    looked : bool
        Whether this is not the first round that labels decide.

    Examples
    --------
    >>> further(lambda n, _: n**-0.5, np.array([0.12]), 0.1, np.array([70]), 1000)
    (array([30]), array([100]))
    >>> further(lambda n, _: n**-0.5, np.array([0.2]), 0.1, np.array([25]), 1000)
    (array([57]), array([100]))
    """
    start = np.round(drawn * np.minimum(now / wanted, 8.0) ** 2)
    most = np.full(len(drawn), population_size)
    total = smallest_budgets(width, wanted, np.minimum(start, most).astype(np.int64), drawn + 1, most)
    extra = np.minimum(taken_now(drawn, total, looked=looked), population_size - drawn)
    return extra, np.maximum(total, drawn + extra)


def taken_now(drawn: Any, total: Any, *, looked: bool = False) -> IntArray:
    """Return how many (R,) of the missing units are drawn now: a few labels are no basis for a large round.

    The total is where the interval is *expected* to be there, and half of the studies would end a label or
    two short of it, round after round. So from the second such round on √e are added to e missing ones: what
    a count of e is uncertain by.

    Examples
    --------
    >>> taken_now(np.array([100, 100]), np.array([140, 500]))
    array([ 40, 300])
    >>> taken_now(np.array([100, 100]), np.array([125, 500]), looked=True)
    array([ 30, 300])
    """
    extra = np.asarray(total - drawn)
    careful = np.maximum(np.ceil(CAREFUL_SHARE * extra), 1.0).astype(np.int64)
    surely = extra + (np.ceil(np.sqrt(extra)).astype(np.int64) if looked else 0)
    return np.where(total > CAREFUL_BEYOND * drawn, careful, surely)


def half_width_of(found: Estimate, confidence_level: float, method: str = "auto") -> float:
    """Return half the width of the interval; infinite where there is none yet.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 400)
    >>> sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    >>> round(half_width_of(stratal.estimate(sample, [0.0, 1.0] * 50), 0.95), 2)
    0.09
    """
    try:
        given = {} if method == "auto" else {"method": method}  # only means have several methods
        return found.confidence_interval(confidence_level, **given).width / 2.0
    except InputError:  # labels of an unbounded outcome that all agree
        return math.inf
