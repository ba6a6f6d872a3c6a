"""Guaranteed finite-sample intervals by betting, for bounded outcomes drawn without replacement.

A test of "the mean is m" by betting: a gambler bets on each unit that the mean is larger than m. If it is
not, the probability that the capital ever reaches 1/α is at most α (Ville). The m for which it stays below
1/α are the interval (Waudby-Smith & Ramdas 2023, section 4; without replacement, section 5). The only
assumptions are the bounds and the random order.

Unit t multiplies the capital by 1 + λ_t (x_t − μ_t(m)), where μ_t(m) = (N m − Σ_{i<t} x_i) / (N − t + 1) is
the mean of the remaining units. λ_t is predicted from the earlier units, and limited so that the capital
stays positive. The capital then falls as m grows, so that a bound can be found by bisection.

The second half has bounds of differences between models that are valid at every look, however the next units
are chosen. Units are labelled in turn, unit t with known probabilities q_t of the remaining units. The gain g
of a unit is the outcome of the first model minus that of the second: 1, 0 or −1 for right and wrong answers.
If the mean gain is m, then E[g_t / q_t] = N m − Σ_{i<t} g_i, and each factor of the capital of a gambler who
bets against it, 1 + λ_t (N m − Σ_{i<t} g_i − g_t / q_t) / N, has mean 1. The probability that the capital
reaches 1/α is at most α at any look, if λ_t and q_t depend only on the earlier units (Waudby-Smith & Ramdas
2023; unequal probabilities: Shekhar et al. 2023). There is no normal approximation and no correction for the
number of looks. The capital is the mean over several gamblers, who expect different distances of the true
difference from m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import NO_DIVISOR, BoolArray, FloatArray, IntArray, Record
from stratal.errors import InputError
from stratal.intervals.evidence import Evidence
from stratal.intervals.interval import Interval, tail_shares

# Maximum share of the capital that one bet may lose; Waudby-Smith & Ramdas use 1/2 or 3/4.
CUT = 0.75

# Seed of the order of labels: a fixed one, so that the same labels have the same interval.
_SEED = 20_230_217


def betting_ends(evidence: Evidence, errors: tuple[float, float], *, anytime: bool) -> tuple[float, float]:
    """Return guaranteed bounds at the error probabilities of both sides; the proxies are not used.

    Raises
    ------
    InputError
        For designs with unequal probabilities, and for a superpopulation from several strata.
    """
    weighting = evidence.weighting
    has_strata = len(weighting.sizes) > 1
    if not weighting.random_within_strata or (evidence.superpopulation and has_strata):
        problem = "betting intervals require a simple random sample, or a stratified sample of one population"
        raise InputError(problem, action="Use method='auto', or target='population'.")
    # Labels are shuffled because the file may be sorted. An interval for every n needs the actual order.
    if anytime:
        order = np.arange(evidence.n)
    else:
        order = np.random.default_rng(_SEED).permutation(evidence.n)
    return stratified_betting_interval(
        evidence.unit[order],
        weighting.stratum[order],
        weighting.sizes,
        *errors,
        with_replacement=not np.any(weighting.sampled_fractions) or evidence.superpopulation,
        anytime=anytime,
    )


def betting_interval(
    unit: FloatArray, population_size: float, below: float, above: float, *, anytime: bool = False
) -> tuple[float, float]:
    """Return bounds (low, high) of the population mean of outcomes on the 0–1 scale.

    Parameters
    ----------
    unit : float (n,)
        Outcomes in [0, 1], in an order that is random, or that of a simple random draw.
    population_size : float
        N; infinite for independent draws.
    below, above : float
        Error probabilities of the two bounds; 0 leaves a side open.
    anytime : bool
        Whether the bound must hold at every n at once, so that labelling may stop when it is narrow enough.
    """
    ones = np.ones(len(unit))
    order = RandomOrder(weight=ones, largest=ones, is_complete=ones > 0, size=population_size)
    low, high = sequence_interval(unit, order, below, above, anytime=anytime)
    # The mean is outside the bounds if the first outcomes are unlike the later ones.
    value = float(unit.mean())
    return min(low, value), max(high, value)


def stratified_betting_interval(
    unit: FloatArray,
    stratum: IntArray,
    sizes: IntArray,
    below: float,
    above: float,
    *,
    with_replacement: bool = False,
    anytime: bool = False,
) -> tuple[float, float]:
    """Return guaranteed bounds of a stratified mean: Σ W_h times the strata's bounds.

    The error probability is divided equally among the strata with unlabelled units (Bonferroni). This is
    valid for any strata, but wide for many. The bounds of strata without a label are 0 and 1.
    """
    counts = np.bincount(stratum, minlength=len(sizes))
    open_strata = max(int(np.sum((counts > 0) & (with_replacement | (counts < sizes)))), 1)
    shares = sizes / np.sum(sizes)
    low = high = 0.0
    for h, size in enumerate(np.where(with_replacement, np.inf, sizes).tolist()):
        stratum_values = unit[stratum == h]
        bounds = (0.0, 1.0)
        if len(stratum_values) >= size:
            bounds = (float(stratum_values.mean()),) * 2
        elif len(stratum_values):
            bounds = betting_interval(
                stratum_values, size, below / open_strata, above / open_strata, anytime=anytime
            )
        low = low + shares[h] * bounds[0]
        high = high + shares[h] * bounds[1]
    return float(low), float(high)


def predicted_bets(unit: FloatArray, error: float, anytime: bool) -> FloatArray:
    """Return the predicted λ_t (n,), from the units before t (Waudby-Smith & Ramdas 2023, eq. 26 and 15)."""
    n = len(unit)
    t = np.arange(1, n + 1)
    # The formulas start from one label of ½ with the variance ¼, so that the first bet is defined.
    means = (0.5 + np.cumsum(unit)) / (t + 1)
    variances = (0.25 + np.cumsum((unit - means) ** 2)) / (t + 1)
    before = np.r_[0.25, variances[:-1]]
    horizon = t * np.log1p(t) if anytime else float(n)
    return np.asarray(np.sqrt(2.0 * np.log(1.0 / error) / (before * horizon)))


# Number of bisections: the error of a bound is 2⁻⁴⁰ of the scale.
_BISECTIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RandomOrder(Record):
    """The order in which units are labelled.

    Parameters
    ----------
    weight : float (t,)
        v of each labelled unit: the share of its stratum in the unlabelled units over that in the draws left.
    largest : float (t,)
        The largest v that the next unit could have had.
    is_complete : bool (t,)
        Whether every stratum with unlabelled units had a unit left to draw.
    size : float
        N; infinite for independent draws.
    """

    weight: FloatArray
    largest: FloatArray
    is_complete: BoolArray
    size: float


def random_order(
    stratum: IntArray, answered: BoolArray, sizes: IntArray, drawn: IntArray, rounds: IntArray | None = None
) -> RandomOrder:
    """Return the weights of units in the order in which they were labelled.

    Parameters
    ----------
    stratum : int (m,)
        Stratum of each drawn unit.
    answered : bool (m,)
        Whether each unit has a label; missing labels are assumed to be equally frequent in all strata.
    sizes : int (H,)
        N_h.
    drawn : int (H,) or (R, H)
        Number of drawn units, or that of each round.
    rounds : int (m,), optional
        Round of each unit, from 0; rounds must follow each other.
    """
    if rounds is None:
        round_index = np.zeros(len(stratum), np.int64)
    else:
        round_index = rounds
    plans = np.atleast_2d(drawn).astype(np.float64)
    first = np.searchsorted(round_index, round_index)
    in_stratum = stratum[:, None] == np.arange(len(sizes))
    n_drawn = _count_before(in_stratum)
    unseen = sizes - _count_before(answered[:, None] & in_stratum)
    units_to_come = plans.sum(axis=1)[round_index] - (np.arange(len(stratum)) - first)
    to_come = plans[round_index] - (n_drawn - n_drawn[first])
    with np.errstate(divide="ignore", invalid="ignore"):
        share_of_unseen = unseen / (int(np.sum(sizes)) - _count_before(answered))[:, None]
        v = share_of_unseen * units_to_come[:, None] / to_come
    is_exhaustive = np.all((to_come > 0) | (unseen == 0), axis=1)
    return RandomOrder(
        weight=v[in_stratum][answered],
        largest=np.max(np.where(to_come > 0, v, 0.0), axis=1, initial=0.0)[answered],
        is_complete=is_exhaustive[answered],
        size=int(np.sum(sizes)),
    )


def sequence_interval(
    unit: FloatArray, order: RandomOrder, below: float, above: float, *, anytime: bool = True
) -> tuple[float, float]:
    """Return bounds (low, high) of the population mean that are valid after every label simultaneously.

    Bounds for one n (`anytime` false) are narrower, because the bets are optimal for this number of labels.

    Parameters
    ----------
    unit : float (t,)
        Outcomes in [0, 1], in the order of labelling.
    order : RandomOrder
    below, above : float
        Error probabilities of the two bounds; 0 leaves a side open.
    """
    if below > 0:
        low = _lower_bound(unit, order, below, anytime)
    else:
        low = 0.0
    if above > 0:
        high = 1.0 - _lower_bound(1.0 - unit, order, above, anytime)
    else:
        high = 1.0
    return low, high


def log_capital(
    m: float, unit: FloatArray, order: RandomOrder, error: float, anytime: bool = True
) -> FloatArray:
    """Return the log capital (t,) after each label of a gambler who bets that the mean is above m.

    If the mean is at most m, the capital is a supermartingale, so that the probability that it reaches
    1 / error is at most `error` (Ville). It is infinite as soon as the labels make a mean of m impossible.
    """
    forecast = _forecast(unit) * order.is_complete
    payoff = order.weight * (unit - forecast) + forecast
    least = forecast * (1.0 - np.maximum(order.largest, 1.0))
    mean = np.full(len(unit), m)
    if np.isfinite(order.size):
        mean = (order.size * m - np.r_[0.0, np.cumsum(unit)[:-1]]) / (order.size - np.arange(len(unit)))
    impossible = np.maximum.accumulate(np.r_[False, _exceeds_total(m, unit, order.size)[:-1]])
    # The mean of the remaining units is 0 or negative only if m is impossible, which `steps` excludes.
    fair = np.maximum(mean, 1e-12)
    stake = np.minimum(predicted_bets(payoff, error, anytime), CUT / (fair - least))
    steps = np.where(impossible, 0.0, np.log1p(stake * (payoff - fair)))
    return np.where(_exceeds_total(m, unit, order.size), np.inf, np.cumsum(steps))


def _lower_bound(unit: FloatArray, order: RandomOrder, error: float, anytime: bool) -> float:
    """Return the largest m that is refuted after some label, at least the sum of the labels over N."""

    def refuted(m: float) -> bool:
        return bool(np.max(log_capital(m, unit, order, error, anytime)) >= -np.log(error))

    low = float(unit.sum() / order.size)
    high = 1.0
    if len(unit) == 0 or not refuted(low):
        return low
    return _bisect(refuted, low, high, _BISECTIONS)[0]


def _bisect(condition: Callable[[float], bool], low: float, high: float, times: int) -> tuple[float, float]:
    """Return the bounds of the number up to which a condition holds, by repeated bisection."""
    for _ in range(times):
        middle = (low + high) / 2.0
        low, high = (middle, high) if condition(middle) else (low, middle)
    return low, high


def _exceeds_total(m: float, unit: FloatArray, size: float) -> BoolArray:
    """Return whether the sum of the labels up to each label (t,) exceeds N m."""
    # A sum of exactly N m is possible, and rounding must not exclude it.
    return np.asarray(np.cumsum(unit) > size * m * (1 + 1e-12) + 1e-12)


def _forecast(unit: FloatArray) -> FloatArray:
    """Return the expected value of each outcome (t,), predicted from the earlier outcomes."""
    return np.asarray((0.5 + np.r_[0.0, np.cumsum(unit)[:-1]]) / (1.0 + np.arange(len(unit))))


def _count_before(flags: BoolArray) -> IntArray:
    """Return the number of true flags before each flag (m, …)."""
    return np.asarray(np.cumsum(flags, axis=0) - flags, dtype=np.int64)


# The smallest expected distance of the true difference if no indifference is given: smaller distances are
# only detected after nearly all units have labels.
SMALLEST_STEP = 0.0025

# Number of gamblers, each of whom expects twice the distance of the previous one. For distances of 1 to 11
# times the step, one of four is within a factor of √2. The loss from averaging is at most log 4, a fifth of
# that from comparing 30 models.
DOUBLINGS = 4

# Weight, in labels, of the prior assumption that models differ on each unit on which their answers differ.
PRIOR = 4.0

# Number of bisections: the error of a bound is 2⁻²³ of the scale.
_DIFFERENCE_BISECTIONS = 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawSteps(Record):
    """The probabilities with which units were drawn in turn.

    Parameters
    ----------
    inverse : float (t,)
        1 / q of each unit.
    largest : float (t,)
        The largest possible 1 / q at each draw.
    size : int
        N.
    """

    inverse: FloatArray
    largest: FloatArray
    size: int


def difference_capital(
    gain: FloatArray,
    spread: FloatArray,
    draw_steps: DrawSteps,
    m: float,
    *,
    step: float,
    largest_gain: float = 1.0,
    undrawn_total: FloatArray | float = np.inf,
) -> FloatArray:
    """Return the largest log capital (J,) of gamblers who bet that each of J differences is below m.

    Parameters
    ----------
    gain : float (t, J)
        g of each unit in the order of drawing; the largest possible one if its label is missing.
    spread : float (t, J)
        At each draw, Σ 1 / q over the units not drawn yet on which the two models can differ.
    draw_steps : DrawSteps
    m : float
    step : float
        The smallest distance below m that is expected.
    largest_gain : float
        The largest possible |g|.
    undrawn_total : float (J,)
        The largest possible Σ g of the units that were not drawn; infinite if unknown.
    """
    size = float(draw_steps.size)
    inverse = draw_steps.inverse[:, None]
    drawn = gain * inverse
    fair = m * size - (np.cumsum(gain, axis=0) - gain)
    excess = (fair - drawn) / size
    # The variance of a draw: the largest possible one, times the share of it that occurred so far.
    squares = drawn**2
    possible = spread * largest_gain**2
    squares_so_far = np.cumsum(squares, axis=0) - squares + PRIOR * possible
    variance = (
        squares_so_far
        / np.maximum(np.cumsum(possible, axis=0) - possible + PRIOR * possible, NO_DIVISOR)
        * possible
    )
    with np.errstate(divide="ignore"):
        per_distance = np.where(variance > 0, size**2 / variance, 0.0)
    # No bet may lose more than CUT of the capital, for any next label.
    largest_bet = CUT * size / np.maximum(draw_steps.largest[:, None] * largest_gain - fair, 1e-9)
    logs = np.stack(
        [
            np.cumsum(np.log1p(np.minimum(step * 2.0**doubling * per_distance, largest_bet) * excess), axis=0)
            for doubling in range(DOUBLINGS)
        ]
    )
    top = logs.max(axis=0)
    capital = top + np.log(np.mean(np.exp(logs - top), axis=0))
    largest_capital = np.maximum(capital.max(axis=0, initial=0.0), 0.0)
    return np.where(gain.sum(axis=0) + undrawn_total < m * size, np.inf, largest_capital)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DifferenceInterval(Interval):
    """The interval of a difference that is valid simultaneously with those of all pairs, at every look.

    Parameters
    ----------
    gains, losses : float (t, 1)
        Gains of the first model over the second, and of the second over the first, at each draw. If a label
        is missing, both are the largest possible ones.
    spread : float (t, 1)
        At each draw, Σ 1 / q over the units not drawn yet on which the two models can differ.
    draw_steps : DrawSteps
    step : float
        The smallest expected distance between the difference and a refuted value.
    largest_gain : float
        The largest possible |gain| of a unit.
    undrawn_total : float
        The largest possible sum of the gains of the units that were not drawn.
    pairs : int
        Number of pairs of models whose intervals are valid simultaneously.
    """

    gains: FloatArray
    losses: FloatArray
    spread: FloatArray
    draw_steps: DrawSteps
    step: float
    largest_gain: float
    undrawn_total: float
    pairs: int

    method = "betting, valid at every look and for all pairs simultaneously"

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        """Return the lower and the upper limit."""
        below, above = tail_shares(confidence_level, alternative)
        if below > 0:
            low = -self._upper(self.losses, below)
        else:
            low = -np.inf
        if above > 0:
            high = self._upper(self.gains, above)
        else:
            high = np.inf
        return self.within(min(low, self.value), max(high, self.value))

    def p_value(self, null: float, alternative: str = "two-sided") -> float:
        """Return the number of pairs divided by the largest capital of bets against the null."""
        sides = {"two-sided": (1, -1), "less": (1,), "greater": (-1,)}[alternative]
        capitals = [self._capital(self.gains if side > 0 else self.losses, side * null) for side in sides]
        return float(min(1.0, len(sides) * self.pairs * np.exp(-max(capitals))))

    def _capital(self, gain: FloatArray, m: float) -> float:
        options = {"step": self.step, "largest_gain": self.largest_gain, "undrawn_total": self.undrawn_total}
        return float(difference_capital(gain, self.spread, self.draw_steps, m, **options)[0])

    def _upper(self, gain: FloatArray, error: float) -> float:
        """Return the smallest m that is refuted, at most the largest possible mean given the labels."""
        limit = np.log(self.pairs / error)
        low = -self.largest_gain
        high = min((gain.sum() + self.undrawn_total) / self.draw_steps.size, self.largest_gain)

        def possible(m: float) -> bool:
            return bool(self._capital(gain, m) < limit)

        return float(_bisect(possible, low, high, _DIFFERENCE_BISECTIONS)[1])
