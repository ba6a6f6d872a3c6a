"""How many more labels an interval of a wanted half-width needs, and what more labels would buy.

The rounds are Stein's (1945): labels so far say how much the outcome varies and so how many are needed, and
only the last round's number depends on them. The half-width is that of the interval that will be reported.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs import SimpleRandom, Stratified
from stratal.designs.extending import population_of, refuse_other_designs
from stratal.designs.sample import Sample
from stratal.errors import StratalWarning, names_mistyped
from stratal.estimation.estimand import Estimand, Several, as_estimand
from stratal.estimation.evaluation import estimate
from stratal.labels.labels import join
from stratal.planning.labels_so_far import LabelsSoFar, half_width_of
from stratal.planning.plan import checked_half_widths
from stratal.planning.widths import smallest_budgets

if TYPE_CHECKING:
    from stratal.population.population import Population

CAREFUL_BEYOND = 1.5
"""A round that would multiply the labels by more is taken in two: few labels say too little about many."""

CAREFUL_SHARE = 0.75
"""How much of it is taken first."""

NEARLY = 1.1
"""Times the narrowest that can be, where units without a label keep an interval from what is wanted: what a
round then goes for, and half of the way at most, so that no label is spent where it changes nothing."""

TIMES = (1.5, 2.0, 3.0, 4.0)
"""So many times the units that were drawn are looked at for what more labels would buy."""


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


@names_mistyped
def labels_needed(
    sample: Sample,
    labels: Any,
    half_width: Any,
    *,
    confidence_level: float = 0.95,
    predicted: bool | str = False,
    outcome: str | None = None,
    bounds: tuple[float, float] | None = None,
    population: Population | None = None,
) -> Narrowing:
    """Return how many more units to draw, until the interval's half-width is as wanted.

    Parameters
    ----------
    sample : Sample
        Simple random or stratified, of any number of rounds.
    labels : see `stratal.estimate`
        Of the rounds so far.
    half_width : float
        Half the width of the default interval that is wanted at the end. For a sample that was planned for
        several estimands one for all, or a list with one for each.
    confidence_level : float
    predicted, outcome, bounds
        As in `stratal.estimate`.
    population : Population, optional
        The one that the sample was drawn from; needed for an estimand other than the mean if the sample came
        from a file.

    Returns
    -------
    Narrowing
        Of several estimands of the one that is furthest from its half-width.

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
    asked = as_estimand(sample.estimand)
    if population is not None or not asked.of_one_outcome:
        sample = replace(sample, population=population_of(sample, population))
    options = {"predicted": predicted, "outcome": outcome, "bounds": bounds}
    seen = labels_so_far(sample, labels, confidence_level, options)
    return narrowing(seen, half_width)[0]


def labels_so_far(
    sample: Sample,
    labels: Any,
    confidence_level: float,
    options: Mapping[str, Any],
    *,
    quiet: bool = False,
    **how: Any,
) -> LabelsSoFar:
    """Return what labels say of what the sample was planned for; the sample has its population, if need be.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    confidence_level : float
    options : mapping
        Of `stratal.estimate`.
    quiet : bool
        Whether the estimate warns of nothing: where no interval is asked for.
    **how
        As of `LabelsSoFar.of`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 400)
    >>> sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    >>> labels_so_far(sample, [0.0, 1.0] * 50, 0.95, {}).half_widths.round(2)
    array([0.09])
    """
    asked = as_estimand(sample.estimand)
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", StratalWarning)
        if not asked.label_columns(sample):
            labels = join(sample, labels)
        found = estimate(sample, labels, estimand=asked, **options)
    return LabelsSoFar.of(asked, sample, labels, found, confidence_level=confidence_level, **how)


def narrowing(
    seen: LabelsSoFar, half_width: Any, *, allocation_of: str = "total"
) -> tuple[Narrowing, IntArray]:
    """Return how many units to draw now, until half-widths are as wanted, and n_h (H,) with them.

    Parameters
    ----------
    seen : LabelsSoFar
    half_width : float or (J,)
        One for all, or one for each of several.
    allocation_of : {"total", "remainder"}

    Examples
    --------
    >>> import stratal
    >>> groups = {"new": ["a", "b"] * 50, "old": ["a"] * 100}
    >>> population = stratal.Population.from_arrays(groups=groups)
    >>> sample = stratal.plan(population, budget=20, estimand="difference:new,old").draw(seed=1)
    >>> needed, n_h = narrowing(labels_so_far(sample, ["a", "b"] * 10, 0.95, {}), 0.1)
    >>> bool(n_h.sum() == 20 + needed.additional)
    True
    """
    wanted = checked_half_widths(half_width, len(seen.parts))
    furthest, drawn, most = (
        int(np.argmax(seen.half_widths / wanted)),
        int(seen.drawn.sum()),
        int(seen.most.sum()),
    )
    now, extra, total = seen.half_widths[furthest] / wanted[furthest], 0, drawn
    if now > 1.0 and drawn < most:

        def width(size: IntArray, _: IntArray) -> FloatArray:
            n_h = seen.allocation(int(size[0]), wanted, allocation_of=allocation_of)
            return np.array([np.max(seen.expected(n_h) / wanted)])

        best = float(width(np.array([most]), np.array([0]))[0])
        goal = max(1.0, min(NEARLY * best, (now + best) / 2.0))
        found = further(width, np.array([now]), goal, np.array([drawn]), most, looked=seen.looked)
        extra, total = (int(number[0]) for number in found)
    needed = Narrowing(
        wanted=float(wanted[furthest]),
        half_width=float(seen.half_widths[furthest]),
        additional=extra,
        expected_total=total,
        estimand=seen.names[furthest] if seen.outcomes is None else None,
    )
    return needed, seen.allocation(drawn + extra, wanted, allocation_of=allocation_of)


def more_labels(
    asked: Estimand,
    sample: Sample,
    labels: Any,
    labelled: BoolArray,
    found: Any,
    *,
    confidence_level: float = 0.95,
    interval: str = "auto",
    target: str = "population",
) -> list[dict[str, Any]]:
    """Return half-widths now and at larger numbers of labels; empty of several, and where none is expected.

    Each round goes where the labels so far say that it helps most, as `next_round` does, and as many units as
    so far are answered. For designs without a next round the width falls as that of a larger sample of the
    same kind.

    Parameters
    ----------
    asked : Estimand
    sample, labels
        See `stratal.estimate`.
    labelled : bool (n,)
        Which of the drawn units have a label that counts.
    found : Estimate
        What they give.
    confidence_level : float
    interval : str
        Method of the interval whose width is expected.
    target : str

    Returns
    -------
    list of dict
        `labels`, `half_width`; the first row is now.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 4000)
    >>> sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    >>> labels = np.array([0.0, 1.0] * 50)
    >>> found = stratal.estimate(sample, labels)
    >>> rows = more_labels(as_estimand(None), sample, labels, np.full(100, True), found)
    >>> [row["labels"] for row in rows], rows[0]["half_width"] > 1.8 * rows[-1]["half_width"]
    ([100, 150, 200, 300, 400], True)
    """
    if isinstance(asked, Several):
        return []
    now, drawn, answered = half_width_of(found, confidence_level, interval), sample.size, int(labelled.sum())
    seen, most = None, sample.population_size
    if not math.isfinite(now):
        return []
    if isinstance(sample.design, SimpleRandom | Stratified) and answered > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StratalWarning)
            seen = LabelsSoFar.of(
                *(asked, sample, labels, found),
                labelled=labelled,
                confidence_level=confidence_level,
                interval=interval,
            )
        most = int(seen.most.sum())
    if drawn >= most:
        return []
    rows = [{"labels": answered, "half_width": now}]
    for total in dict.fromkeys(min(round(times * drawn), most) for times in TIMES):
        if seen is None:
            width = now * _shrunk(sample.population_size, answered, total / drawn, target)
            rows.append({"labels": round(answered * total / drawn), "half_width": width})
            continue
        n_h = seen.allocation(total)
        width = float(seen.expected(n_h)[0])
        rows.append({"labels": int(seen.labels_of(n_h).sum()), "half_width": width})
    return rows


def _shrunk(size: int, n: int, times: float, target: str) -> float:
    """Return what a standard error is multiplied by in a sample so many times as large."""
    if target != "population":
        return 1.0 / math.sqrt(times)
    left, now = max(1.0 / (times * n) - 1.0 / size, 0.0), 1.0 / n - 1.0 / size
    return math.sqrt(left / now) if now > 0 else 0.0
