"""Studies that end when their interval is narrow enough, thousands at once: labels, half-width, coverage.

The rule is that of `labels_needed` and `next_round`, on outcomes of 0 and 1 in several strata.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.designs import Stratified
from stratal.errors import InputError
from stratal.planning.labels_so_far import CountsSoFar
from stratal.planning.needs import further
from stratal.planning.plan import Plan
from stratal.planning.widths import interval_of_counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stopped(Record):
    """How each of R studies ended.

    Parameters
    ----------
    labels, rounds : int (R,)
        Labels, and rounds with the pilot.
    value, low, high : float (R,)
        The estimate, and its default interval.
    truth : float

    Examples
    --------
    >>> ended = Stopped(labels=np.array([50]), rounds=np.array([1]), value=np.array([0.5]),
    ...                 low=np.array([0.4]), high=np.array([0.6]), truth=0.55)
    >>> ended.half_widths.round(3), ended.coverage
    (array([0.1]), 1.0)
    """

    labels: IntArray
    rounds: IntArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    truth: float

    @property
    def half_widths(self) -> FloatArray:
        """Half the width of each interval (R,)."""
        return np.asarray((self.high - self.low) / 2.0)

    @property
    def coverage(self) -> float:
        """The share of intervals that hold the truth."""
        return float(np.mean((self.low <= self.truth) & (self.truth <= self.high)))


def stopped(
    plan: Plan, z: FloatArray, half_width: float, *, studies: int, seed: int, most_rounds: int = 4
) -> Stopped:
    """Return how studies end that begin with a plan and go on until their interval is narrow enough.

    Parameters
    ----------
    plan : Plan
        Of the first round (`pilot=True`), in several strata.
    z : float (N,)
        True outcomes, 0 or 1, in the order of the units.
    half_width : float
    studies, seed : int
    most_rounds : int
        A study ends after so many rounds, with the pilot, even if its interval is wider.

    Raises
    ------
    InputError
        For a plan without strata, and outcomes other than 0 and 1.

    Examples
    --------
    >>> import stratal
    >>> proxy = np.linspace(0.05, 0.95, 2000)
    >>> z = (np.random.default_rng(1).random(2000) < proxy).astype(float)
    >>> plan = stratal.plan(stratal.Population.from_arrays(proxy=proxy), half_width=0.04, pilot=True)
    >>> ended = stopped(plan, z, 0.04, studies=100, seed=1)
    >>> bool(np.mean(ended.half_widths <= 0.042) > 0.9), bool(ended.rounds.max() <= 4)
    (True, True)
    """
    strata = plan.strata
    if not isinstance(plan.design, Stratified) or strata.n_strata < 2:
        raise InputError(
            "stopping is simulated in several strata",
            given=plan.recommended.design,
            action="Plan with a proxy that divides the units: plan(population, half_width=…, pilot=True).",
        )
    if not np.all((z == 0) | (z == 1)):
        raise InputError("stopping is simulated for outcomes of 0 and 1", allowed="0 and 1")
    random, level = np.random.default_rng(seed), plan.confidence_level
    good = np.bincount(np.asarray(strata.codes), z, minlength=strata.n_strata).astype(np.int64)
    bad = strata.sizes - good
    n_h = np.tile(plan.allocation.n_h, (studies, 1))
    ones = random.hypergeometric(good, bad, n_h)
    rounds, open_ = np.ones(studies, dtype=np.int64), np.arange(studies)
    low, high = np.zeros(studies), np.ones(studies)
    for number in range(1, most_rounds + 1):
        looked = number > 1
        low[open_], high[open_] = interval_of_counts(
            strata.sizes, n_h[open_], ones[open_], level, looked=looked
        )
        wide = (high - low)[open_] / 2.0 > half_width
        open_ = open_[wide & (n_h[open_].sum(axis=1) < strata.size)]
        if len(open_) == 0 or number == most_rounds:
            break
        seen = CountsSoFar.of(strata, n_h[open_], ones[open_])
        larger = _next(seen, (high - low)[open_] / 2.0, half_width, level, looked)
        more = larger - n_h[open_]
        right = random.hypergeometric(good - ones[open_], bad - (n_h - ones)[open_], more)
        ones[open_] += right
        n_h[open_] = larger
        rounds[open_] += 1
    return Stopped(
        labels=n_h.sum(axis=1),
        rounds=rounds,
        value=(ones / n_h) @ strata.weights,
        low=low,
        high=high,
        truth=float(z.mean()),
    )


def _next(seen: CountsSoFar, now: FloatArray, wanted: float, level: float, looked: bool) -> IntArray:
    """Return n_h (R, H) after the next round."""
    drawn = seen.drawn.sum(axis=1)
    extra, _ = further(
        lambda total, rows: seen.part(rows).expected_half_width(total, level),
        now,
        wanted,
        drawn,
        int(seen.sizes.sum()),
        looked=looked,
    )
    return seen.allocation(drawn + extra)
