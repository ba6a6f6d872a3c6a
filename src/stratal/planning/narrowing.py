"""Until it is narrow enough: how many more labels an interval of a wanted half-width needs.

The rounds are Stein's (1945): labels so far say how much the outcome varies and so how many are needed, and
only the last round's number depends on them. The half-width is that of the interval that will be reported,
computed on the labels that are in and on likely ones of the units to come.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.errors import InputError
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.planning.labels_so_far import LabelsSoFar
from stratal.planning.widths import smallest_budgets
from stratal.sampling.extending import refuse_other_designs
from stratal.sampling.sample import Sample

CAREFUL_BEYOND = 1.5
"""A round that would multiply the labels by more than this is taken in two: few say too little for many."""

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

    Examples
    --------
    >>> Narrowing(wanted=0.05, half_width=0.04, additional=0, expected_total=100).reached
    True
    """

    wanted: float
    half_width: float
    additional: int
    expected_total: int

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
        }


def labels_needed(
    sample: Sample,
    labels: Any,
    half_width: float,
    *,
    confidence_level: float = 0.95,
    predicted: bool | str = False,
    outcome: Any = None,
    bounds: tuple[float, float] | None = None,
) -> Narrowing:
    """Return how many more units to draw, until the interval's half-width is as wanted.

    Parameters
    ----------
    sample : Sample
        Simple random or stratified, of any number of rounds.
    labels : see `stratal.estimate`
        Of the rounds so far.
    half_width : float
        Half the width of the default interval that is wanted at the end.
    confidence_level : float
    predicted, outcome, bounds
        As in `stratal.estimate`.

    Returns
    -------
    Narrowing

    Raises
    ------
    InputError
        For a half-width that is no positive number, and designs that have no next round.
    LabelError
        For labels that are not of this sample, and if there is none.

    Notes
    -----
    Stein (1945), in a few stages; docs/methods/adaptive.md has labels and coverage, measured.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1] * 500 + [0.9] * 500)
    >>> pilot = stratal.plan(population, half_width=0.1, pilot=True).draw(seed=7)
    >>> labels = {unit: float(unit >= 500) for unit in pilot.ids.tolist()}
    >>> found = labels_needed(pilot, labels, half_width=0.1)
    >>> found.reached, found.additional
    (True, 0)
    """
    refuse_other_designs(sample)
    if not (isinstance(half_width, int | float) and math.isfinite(half_width) and half_width > 0):
        raise InputError("half_width must be a positive number", given=repr(half_width))
    found = estimate(sample, labels, predicted=predicted, outcome=outcome, bounds=bounds)
    now = half_width_of(found, confidence_level)
    left = sample.population_size - sample.size
    if now <= half_width or left == 0:
        return Narrowing(wanted=half_width, half_width=now, additional=0, expected_total=sample.size)
    seen = LabelsSoFar.of(sample, labels, found, predicted)
    base = seen.width(sample.size, confidence_level)
    scale = now / base if math.isfinite(now) and base > 0 else 1.0
    extra, total = further(
        lambda size, _: np.array([scale * seen.width(int(size[0]), confidence_level)]),
        np.array([now]),
        half_width,
        np.array([sample.size]),
        sample.population_size,
    )
    return Narrowing(
        wanted=half_width, half_width=now, additional=int(extra[0]), expected_total=int(total[0])
    )


def further(
    width: Callable[[IntArray, IntArray], FloatArray],
    now: FloatArray,
    wanted: float,
    drawn: IntArray,
    population_size: int,
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
    extra = total - drawn
    careful = np.maximum(np.ceil(CAREFUL_SHARE * extra), 1.0).astype(np.int64)
    return np.where(total > CAREFUL_BEYOND * drawn, careful, extra), total


def half_width_of(found: Estimate, confidence_level: float) -> float:
    """Return half the width of the default interval; infinite where there is none yet.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 400)
    >>> sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    >>> round(half_width_of(stratal.estimate(sample, [0.0, 1.0] * 50), 0.95), 2)
    0.09
    """
    try:
        return found.confidence_interval(confidence_level).width / 2.0
    except InputError:  # labels of an unbounded outcome that all agree
        return math.inf
