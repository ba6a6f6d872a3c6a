"""Bounds of differences between models that hold at every look, however the next units were chosen.

Units are labelled one after another, the t-th drawn from those left with known probabilities q_t. Of two
models, the gain g of a unit is how much better the first does there: 1, 0 or −1 where answers are right or
wrong. If the first is better by m on average, E[g_t / q_t] = N m − Σ_{i<t} g_i, and the capital of a gambler
who bets against it, each factor 1 + λ_t (N m − Σ_{i<t} g_i − g_t / q_t) / N, has mean 1. It reaches 1/α with
probability α at most (Ville), whenever one looks and whatever decided λ_t and q_t before the unit was drawn
(Waudby-Smith & Ramdas 2023; unequal probabilities: Shekhar et al. 2023). No normal approximation is made, and
nothing is paid for the number of looks. The capital is the mean of several gamblers', who expect the true
difference to be this far below m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray, Record
from stratal.intervals.betting import CUT
from stratal.intervals.interval import tail_shares
from stratal.intervals.limits import Limits

SMALLEST_STEP = 0.0025
"""The nearest that a gambler expects the truth, where no indifference is given: nearer ones need so many
labels that nearly all units are labelled by then."""

DOUBLINGS = 4
"""Gamblers, each of whom expects twice the distance: four are within √2 of the best for 1 to 11 times the
step, and cost at most log 4 labels' worth, a fifth of what 30 models cost."""

PRIOR = 4.0
"""Labels' worth of the guess that each label of a disagreement tells the models apart."""

_BISECTIONS = 24
"""2⁻²³ of the scale."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turns(Record):
    """How units were drawn in turn.

    Parameters
    ----------
    inverse : float (t,)
        1 / q of each unit.
    largest : float (t,)
        The largest 1 / q that the unit drawn then could have had.
    size : int
        N.
    """

    inverse: FloatArray
    largest: FloatArray
    size: int


def log_capital(
    gain: FloatArray,
    spread: FloatArray,
    turns: Turns,
    m: float,
    *,
    step: float,
    reach: float = 1.0,
    left: FloatArray | float = np.inf,
) -> FloatArray:
    """Return the largest log capital (J,) so far of gamblers who bet that J differences are below m.

    Parameters
    ----------
    gain : float (t, J)
        g of each unit in its turn; where a label is missing the largest that it can be.
    spread : float (t, J)
        Σ 1 / q over the units, of those left in each turn, on which the two models can differ.
    turns : Turns
    m : float
    step : float
        The smallest distance below m that is expected.
    reach : float
        The largest |g|.
    left : float (J,)
        The largest Σ g of the units without a turn; infinite if that is not known.

    Examples
    --------
    >>> few = Turns(inverse=np.full(20, 100.0), largest=np.full(20, 100.0), size=100)
    >>> bool(log_capital(-np.ones((20, 1)), np.full((20, 1), 1e4), few, 0.0, step=0.1)[0] > 5)
    True
    """
    size, inverse = float(turns.size), turns.inverse[:, None]
    drawn = gain * inverse
    fair = m * size - (np.cumsum(gain, axis=0) - gain)
    excess = (fair - drawn) / size
    # The variance of a turn: what the geometry makes of it, times how many disagreements mattered so far.
    squares, possible = drawn**2, spread * reach**2
    seen = np.cumsum(squares, axis=0) - squares + PRIOR * possible
    variance = seen / np.maximum(np.cumsum(possible, axis=0) - possible + PRIOR * possible, 1e-300) * possible
    with np.errstate(divide="ignore"):
        per_distance = np.where(variance > 0, size**2 / variance, 0.0)
    # No bet may lose more than CUT of the capital, whatever the next label is.
    most = CUT * size / np.maximum(turns.largest[:, None] * reach - fair, 1e-9)
    logs = np.stack(
        [
            np.cumsum(np.log1p(np.minimum(step * 2.0**doubling * per_distance, most) * excess), axis=0)
            for doubling in range(DOUBLINGS)
        ]
    )
    top = logs.max(axis=0)
    capital = top + np.log(np.mean(np.exp(logs - top), axis=0))
    found = np.maximum(capital.max(axis=0, initial=0.0), 0.0)
    return np.where(gain.sum(axis=0) + left < m * size, np.inf, found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DifferenceLimits(Limits):
    """The interval of a difference that holds together with those of all other pairs, at every look.

    Parameters
    ----------
    ahead, behind : float (t, 1)
        Gains of the first model over the second, and of the second over the first, each the largest that
        they can be where a label is missing.
    spread : float (t, 1)
    turns : Turns
    step, reach, left : float
        As in `log_capital`.
    pairs : int
        Pairs of models whose intervals hold together.
    """

    ahead: FloatArray
    behind: FloatArray
    spread: FloatArray
    turns: Turns
    step: float
    reach: float
    left: float
    pairs: int

    method = "betting, at every look and for all pairs together"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        below, above = tail_shares(confidence_level, alternative)
        low = -self._upper(self.behind, below) if below > 0 else -np.inf
        high = self._upper(self.ahead, above) if above > 0 else np.inf
        return self.within(min(low, self.value), max(high, self.value))

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return pairs over the largest capital of those who bet against the null."""
        sides = {"two-sided": (1, -1), "less": (1,), "greater": (-1,)}[alternative]
        capitals = [self._capital(self.ahead if side > 0 else self.behind, side * null) for side in sides]
        return float(min(1.0, len(sides) * self.pairs * np.exp(-max(capitals))))

    def _capital(self, gain: FloatArray, m: float) -> float:
        return float(
            log_capital(gain, self.spread, self.turns, m, step=self.step, reach=self.reach, left=self.left)[0]
        )

    def _upper(self, gain: FloatArray, error: float) -> float:
        """Return the smallest m that is refuted; what the units left make certain is an upper bound too."""
        limit = np.log(self.pairs / error)
        low, high = -self.reach, min((gain.sum() + self.left) / self.turns.size, self.reach)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self._capital(gain, middle) >= limit else (middle, high)
        return float(high)
