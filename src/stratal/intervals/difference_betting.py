"""Intervals by betting for differences between models, valid at every look and for any choice of units.

Units are labelled in turn, unit t with known probabilities q_t of the remaining units. The gain g of a unit
is the outcome of the first model minus that of the second: 1, 0 or −1 for correct and wrong answers. If the
mean gain is m, then E[g_t / q_t] = N m − Σ_{i<t} g_i, and each factor of the capital of a gambler who bets
that it is below m, 1 + λ_t (N m − Σ_{i<t} g_i − g_t / q_t) / N, has mean 1. The probability that the capital
ever reaches 1/α is at most α, if λ_t and q_t depend only on the earlier units (Waudby-Smith & Ramdas 2023;
unequal probabilities: Shekhar et al. 2023). There is no normal approximation and no correction for the number
of looks. The capital is the mean over several gamblers, who expect different distances of the true difference
from m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import NO_DIVISOR, FloatArray, Record
from stratal.intervals.betting import MAX_LOST_SHARE, bisect
from stratal.intervals.interval import Interval, error_probabilities

# Smallest distance that the gamblers expect if the user gives no indifference margin: smaller distances are
# detected only after nearly all units have labels.
MIN_EXPECTED_DISTANCE = 0.0025

# Number of gamblers, each of whom expects twice the distance of the previous one. For distances of 0.7 to 11
# times the smallest, the expectation of one of four is correct within a factor of √2. The loss of log capital
# by averaging is at most log 4, a fifth of the loss by comparing 30 models.
N_GAMBLERS = 4

# Weight, in labels, of the prior assumption that the gain is as large as possible on each unit on which the
# answers of the models differ.
_PRIOR_LABELS = 4.0

# Number of bisections: the error of a bound is 2⁻²³ of the scale.
_BISECTIONS = 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawSteps(Record):
    """The inverse probabilities with which units were drawn in turn.

    Parameters
    ----------
    inverse_probability : float (t,)
        1 / q of each unit.
    largest_inverse : float (t,)
        The largest possible 1 / q at each draw.
    size : int
        N.
    """

    inverse_probability: FloatArray
    largest_inverse: FloatArray
    size: int


def difference_capital(
    gain: FloatArray,
    spread: FloatArray,
    draw_steps: DrawSteps,
    m: float,
    *,
    min_distance: float,
    largest_gain: float = 1.0,
    undrawn_total: FloatArray | float = np.inf,
) -> FloatArray:
    """Return the largest log capital (J,) of gamblers who bet that each of J differences is below m.

    It is infinite if the labels make a mean gain of m impossible.

    Parameters
    ----------
    gain : float (t, J)
        g of each unit in the order of drawing; the largest possible gain if its label is missing.
    spread : float (t, J)
        At each draw, Σ 1 / q over the undrawn units on which the two models can differ.
    draw_steps : DrawSteps
    m : float
    min_distance : float
        Smallest distance of the difference below m that a gambler expects.
    largest_gain : float
        The largest possible |g|.
    undrawn_total : float (J,)
        The largest possible Σ g of the units that were not drawn; infinite if unknown.
    """
    size = float(draw_steps.size)
    weighted_gain = gain * draw_steps.inverse_probability[:, None]
    # Mean of the weighted gain if the mean gain is m.
    expected_gain = m * size - (np.cumsum(gain, axis=0) - gain)
    payoff = (expected_gain - weighted_gain) / size
    with np.errstate(divide="ignore"):
        variance = _predicted_variance(weighted_gain**2, spread * largest_gain**2)
        bet_per_distance = np.where(variance > 0, size**2 / variance, 0.0)
    # No bet may lose more than this share of the capital, for any next label.
    largest_loss = draw_steps.largest_inverse[:, None] * largest_gain - expected_gain
    largest_bet = MAX_LOST_SHARE * size / np.maximum(largest_loss, 1e-9)
    bets = (
        np.minimum(min_distance * 2.0**gambler * bet_per_distance, largest_bet)
        for gambler in range(N_GAMBLERS)
    )
    log_capitals = np.stack([np.cumsum(np.log1p(bet * payoff), axis=0) for bet in bets])
    # Log of the mean capital of the gamblers (t, J); the maximum is subtracted because exp could overflow.
    highest = log_capitals.max(axis=0)
    mean_log_capital = highest + np.log(np.mean(np.exp(log_capitals - highest), axis=0))
    largest_capital = np.maximum(mean_log_capital.max(axis=0, initial=0.0), 0.0)
    return np.where(gain.sum(axis=0) + undrawn_total < m * size, np.inf, largest_capital)


def _predicted_variance(squares: FloatArray, largest_squares: FloatArray) -> FloatArray:
    """Return the variance of each draw (t, J), predicted from the earlier draws.

    It is the largest possible variance of the draw, multiplied by the ratio of the observed squares to the
    largest possible ones in the earlier draws.
    """
    prior = _PRIOR_LABELS * largest_squares
    observed = np.cumsum(squares, axis=0) - squares + prior
    possible = np.cumsum(largest_squares, axis=0) - largest_squares + prior
    return np.asarray(observed / np.maximum(possible, NO_DIVISOR) * largest_squares)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DifferenceInterval(Interval):
    """The interval of a difference that is valid simultaneously with those of all pairs, at every look.

    Parameters
    ----------
    gains, losses : float (t, 1)
        Gains of the first model over the second, and of the second over the first, at each draw. If a label
        is missing, both are the largest possible gains.
    spread : float (t, 1)
        At each draw, Σ 1 / q over the undrawn units on which the two models can differ.
    draw_steps : DrawSteps
    min_distance : float
        Smallest distance between the difference and a rejected value that a gambler expects.
    largest_gain : float
        The largest possible |gain| of a unit.
    undrawn_total : float
        The largest possible sum of the gains of the undrawn units.
    pairs : int
        Number of pairs of models whose intervals are valid simultaneously.
    """

    gains: FloatArray
    losses: FloatArray
    spread: FloatArray
    draw_steps: DrawSteps
    min_distance: float
    largest_gain: float
    undrawn_total: float
    pairs: int

    method = "betting, valid at every look and for all pairs simultaneously"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        below, above = error_probabilities(confidence_level, alternative)
        if below > 0:
            low = -self._upper(self.losses, below)
        else:
            low = -np.inf
        if above > 0:
            high = self._upper(self.gains, above)
        else:
            high = np.inf
        return self.clip_to_bounds(min(low, self.value), max(high, self.value))

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the number of pairs divided by the largest capital of bets against the null."""
        sides = {"two-sided": (1, -1), "less": (1,), "greater": (-1,)}[alternative]
        capitals = [self._capital(self.gains if side > 0 else self.losses, side * null) for side in sides]
        return float(min(1.0, len(sides) * self.pairs * np.exp(-max(capitals))))

    def _capital(self, gain: FloatArray, m: float) -> float:
        """Return the largest log capital of bets that the mean of `gain` (t, 1) is below m."""
        log_capitals = difference_capital(
            gain,
            self.spread,
            self.draw_steps,
            m,
            min_distance=self.min_distance,
            largest_gain=self.largest_gain,
            undrawn_total=self.undrawn_total,
        )
        return float(log_capitals[0])

    def _upper(self, gain: FloatArray, error: float) -> float:
        """Return the smallest mean of `gain` (t, 1) that is rejected, at most the largest possible mean."""
        log_threshold = np.log(self.pairs / error)
        low = -self.largest_gain
        high = min((gain.sum() + self.undrawn_total) / self.draw_steps.size, self.largest_gain)

        def is_accepted(m: float) -> bool:
            return bool(self._capital(gain, m) < log_threshold)

        return float(bisect(is_accepted, low, high, _BISECTIONS)[1])
