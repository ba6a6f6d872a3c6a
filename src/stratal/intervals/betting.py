"""Guaranteed finite-sample intervals of a mean by betting, for bounded outcomes.

A test of "the mean is m" by betting: a gambler bets on each unit that the mean is larger than m. If it is
not, the probability that the capital ever reaches 1/α is at most α (Ville). The interval consists of the m
for which the capital stays below 1/α (Waudby-Smith & Ramdas 2023, section 4; without replacement, section 5).
The only assumptions are the bounds and the random order.

Unit t multiplies the capital by 1 + λ_t (x_t − μ_t(m)), where μ_t(m) = (N m − Σ_{i<t} x_i) / (N − t + 1) is
the mean of the remaining units. The bet λ_t is predicted from the earlier units, and limited so that the
capital stays positive. The capital decreases in m, so that the end of the interval follows by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.errors import InputError
from stratal.intervals.evidence import Evidence

# Maximum share of the capital that one bet may lose; Waudby-Smith & Ramdas use 1/2 or 3/4.
MAX_LOST_SHARE = 0.75

# A fixed seed for the order of the labels, so that the same labels have the same interval.
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
    # Labels are shuffled because their file may be sorted. Bounds that hold at every n need the actual order.
    if anytime:
        order = np.arange(evidence.n)
    else:
        order = np.random.default_rng(_SEED).permutation(evidence.n)
    # All sampled fractions are 0 for independent draws.
    with_replacement = not np.any(weighting.sampled_fractions) or evidence.superpopulation
    return stratified_betting_interval(
        evidence.scaled_outcomes[order],
        weighting.stratum[order],
        weighting.sizes,
        *errors,
        with_replacement=with_replacement,
        anytime=anytime,
    )


def betting_interval(
    outcomes: FloatArray, population_size: float, below: float, above: float, *, anytime: bool = False
) -> tuple[float, float]:
    """Return bounds (low, high) of the population mean of outcomes on the 0–1 scale.

    Parameters
    ----------
    outcomes : float (n,)
        Outcomes in [0, 1], in random order or in the order of a simple random draw.
    population_size : float
        N; infinite for independent draws.
    below, above : float
        Error probabilities of the two bounds; with 0, there is no bound on this side.
    anytime : bool
        Whether the bounds must hold at every n simultaneously, so that labelling may stop at any label.
    """
    ones = np.ones(len(outcomes))
    order = RandomOrder(weight=ones, largest_weight=ones, is_complete=ones > 0, size=population_size)
    low, high = sequence_interval(outcomes, order, below, above, anytime=anytime)
    # The mean of the labels may lie outside the bounds if the first labels differ from the later ones.
    value = float(outcomes.mean())
    return min(low, value), max(high, value)


def stratified_betting_interval(
    outcomes: FloatArray,
    stratum: IntArray,
    sizes: IntArray,
    below: float,
    above: float,
    *,
    with_replacement: bool = False,
    anytime: bool = False,
) -> tuple[float, float]:
    """Return guaranteed bounds of a stratified mean: Σ W_h times the bounds of the strata.

    The error probability is divided equally among the strata with unlabelled units (Bonferroni). The result
    is valid for any strata, but wide if there are many. The bounds of strata without a label are 0 and 1.

    Parameters
    ----------
    outcomes : float (n,)
        Outcomes in [0, 1]; see `betting_interval`.
    stratum : int (n,)
    sizes : int (H,)
        N_h.
    below, above : float
        Error probabilities of the two bounds.
    with_replacement : bool
        Whether the draws are independent.
    anytime : bool
        As in `betting_interval`.
    """
    counts = np.bincount(stratum, minlength=len(sizes))
    n_uncertain = max(int(np.sum((counts > 0) & (with_replacement | (counts < sizes)))), 1)
    shares = sizes / np.sum(sizes)
    low = high = 0.0
    for h, size in enumerate(np.where(with_replacement, np.inf, sizes).tolist()):
        stratum_outcomes = outcomes[stratum == h]
        bounds = (0.0, 1.0)
        if len(stratum_outcomes) >= size:
            bounds = (float(stratum_outcomes.mean()),) * 2
        elif len(stratum_outcomes):
            bounds = betting_interval(
                stratum_outcomes, size, below / n_uncertain, above / n_uncertain, anytime=anytime
            )
        low = low + shares[h] * bounds[0]
        high = high + shares[h] * bounds[1]
    return float(low), float(high)


def predicted_bets(outcomes: FloatArray, error: float, anytime: bool) -> FloatArray:
    """Return the bets λ_t (n,), from the units before t (Waudby-Smith & Ramdas 2023, eq. 26 and 15)."""
    n = len(outcomes)
    t = np.arange(1, n + 1)
    # The formulas start from one label of ½ with the variance ¼, so that the first bet is defined.
    means = (0.5 + np.cumsum(outcomes)) / (t + 1)
    variances = (0.25 + np.cumsum((outcomes - means) ** 2)) / (t + 1)
    previous_variances = np.r_[0.25, variances[:-1]]
    horizon = t * np.log1p(t) if anytime else float(n)
    return np.asarray(np.sqrt(2.0 * np.log(1.0 / error) / (previous_variances * horizon)))


# Number of bisections: the error of a bound is 2⁻⁴⁰ of the scale.
_BISECTIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RandomOrder(Record):
    """Weights of units in the order in which they are labelled.

    Parameters
    ----------
    weight : float (t,)
        v of each labelled unit: the share of its stratum in the unlabelled units, divided by the share of its
        stratum in the remaining draws.
    largest_weight : float (t,)
        The largest possible v at each draw.
    is_complete : bool (t,)
        Whether each stratum with unlabelled units had remaining draws.
    size : float
        N; infinite for independent draws.
    """

    weight: FloatArray
    largest_weight: FloatArray
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
        Round of each unit, from 0, in increasing order.
    """
    if rounds is None:
        round_index = np.zeros(len(stratum), np.int64)
    else:
        round_index = rounds
    total_size = int(np.sum(sizes))
    drawn_by_round = np.atleast_2d(drawn).astype(np.float64)
    round_start = np.searchsorted(round_index, round_index)
    in_stratum = stratum[:, None] == np.arange(len(sizes))
    n_drawn = _count_before(in_stratum)
    unlabelled = sizes - _count_before(answered[:, None] & in_stratum)
    drawn_in_round = np.arange(len(stratum)) - round_start
    remaining_total = drawn_by_round.sum(axis=1)[round_index] - drawn_in_round
    remaining = drawn_by_round[round_index] - (n_drawn - n_drawn[round_start])
    with np.errstate(divide="ignore", invalid="ignore"):
        unlabelled_share = unlabelled / (total_size - _count_before(answered))[:, None]
        v = unlabelled_share * remaining_total[:, None] / remaining
    is_complete = np.all((remaining > 0) | (unlabelled == 0), axis=1)
    largest_v = np.max(np.where(remaining > 0, v, 0.0), axis=1, initial=0.0)
    return RandomOrder(
        weight=v[in_stratum][answered],
        largest_weight=largest_v[answered],
        is_complete=is_complete[answered],
        size=total_size,
    )


def sequence_interval(
    outcomes: FloatArray, order: RandomOrder, below: float, above: float, *, anytime: bool = True
) -> tuple[float, float]:
    """Return bounds (low, high) of the population mean that are valid after every label simultaneously.

    If `anytime` is false, they are valid for this number of labels only, and narrower.

    Parameters
    ----------
    outcomes : float (t,)
        Outcomes in [0, 1], in the order of labelling.
    order : RandomOrder
    below, above : float
        Error probabilities of the two bounds; with 0, there is no bound on this side.
    anytime : bool
    """
    if below > 0:
        low = _lower_bound(outcomes, order, below, anytime)
    else:
        low = 0.0
    if above > 0:
        high = 1.0 - _lower_bound(1.0 - outcomes, order, above, anytime)
    else:
        high = 1.0
    return low, high


def log_capital(
    m: float, outcomes: FloatArray, order: RandomOrder, error: float, anytime: bool = True
) -> FloatArray:
    """Return the log capital (t,) after each label of a gambler who bets that the mean is above m.

    If the mean is at most m, the capital is a supermartingale, so that the probability that it reaches
    1 / error is at most `error` (Ville). It is infinite as soon as the labels make a mean of m impossible.
    """
    # The weights v have the mean 1. Hence v (x − forecast) + forecast has the mean of the remaining units. If
    # a stratum has unlabelled units but no remaining draws, the mean of v is below 1. Then the forecast is 0,
    # because the mean of v x is at most that of the remaining units.
    forecast = np.where(order.is_complete, _forecast(outcomes), 0.0)
    payoff = order.weight * (outcomes - forecast) + forecast
    smallest_payoff = forecast * (1.0 - np.maximum(order.largest_weight, 1.0))
    n = len(outcomes)
    mean = np.full(n, m)
    if np.isfinite(order.size):
        total_before = np.r_[0.0, np.cumsum(outcomes)[:-1]]
        mean = (order.size * m - total_before) / (order.size - np.arange(n))
    exceeds = _exceeds_total(m, outcomes, order.size)
    # Once the labels make m impossible, so do the same labels with any further ones.
    impossible = np.maximum.accumulate(np.r_[False, exceeds[:-1]])
    # The mean of the remaining units is 0 or negative only if m is impossible. These steps are set to 0.
    mean = np.maximum(mean, 1e-12)
    largest_bets = MAX_LOST_SHARE / (mean - smallest_payoff)
    bets = np.minimum(predicted_bets(payoff, error, anytime), largest_bets)
    steps = np.where(impossible, 0.0, np.log1p(bets * (payoff - mean)))
    return np.where(exceeds, np.inf, np.cumsum(steps))


def _lower_bound(outcomes: FloatArray, order: RandomOrder, error: float, anytime: bool) -> float:
    """Return the largest m that is rejected after some label, at least the sum of the labels over N."""

    def is_rejected(m: float) -> bool:
        return bool(np.max(log_capital(m, outcomes, order, error, anytime)) >= -np.log(error))

    low = float(outcomes.sum() / order.size)
    if len(outcomes) == 0 or not is_rejected(low):
        return low
    return bisect(is_rejected, low, 1.0, _BISECTIONS)[0]


def bisect(condition: Callable[[float], bool], low: float, high: float, times: int) -> tuple[float, float]:
    """Return the bounds of the number up to which a condition holds, by repeated bisection."""
    for _ in range(times):
        middle = (low + high) / 2.0
        low, high = (middle, high) if condition(middle) else (low, middle)
    return low, high


def _exceeds_total(m: float, outcomes: FloatArray, size: float) -> BoolArray:
    """Return whether the sum of the labels up to each label (t,) exceeds N m."""
    # A sum of exactly N m is possible, and rounding must not exclude it.
    return np.asarray(np.cumsum(outcomes) > size * m * (1 + 1e-12) + 1e-12)


def _forecast(outcomes: FloatArray) -> FloatArray:
    """Return the expected value of each outcome (t,), predicted from the earlier outcomes."""
    total_before = np.r_[0.0, np.cumsum(outcomes)[:-1]]
    return np.asarray((0.5 + total_before) / (1.0 + np.arange(len(outcomes))))


def _count_before(flags: BoolArray) -> IntArray:
    """Return the number of true flags before each flag (m, …)."""
    return np.asarray(np.cumsum(flags, axis=0) - flags, dtype=np.int64)
