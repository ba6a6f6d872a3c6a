"""E-values of waves, and the e-process that an alarm follows; arrays only.

The e-value of a wave is the capital of a bet that its mean θ is below a level θ₀. Under the null hypothesis
θ ≥ θ₀, its expectation is at most 1. For simple random sampling within strata this holds exactly, with any
allocation and any prediction of the outcomes: by Maclaurin's inequality the expectation of the product over a
sample without replacement is at most Π (1 + λ_h (m̄_h − μ_h))^{n_h} ≤ exp(c (θ₀ − θ)) ≤ 1. Here m̄_h and μ_h
are the mean prediction and the mean outcome of a stratum, Σ W_h m̄_h = θ₀, and λ_h = c W_h / n_h is its stake.
The effects and the limits of predictions below affect only how soon a fall is detected.

The e-process mixes over the wave in which a change begins. It stays below 1/α in all waves together with
probability 1 − α at least (Ville's inequality).
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray, IntArray

# Falls, as shares of the outcome's range, for which the bets grow fastest; the capital is shared equally.
EFFECTS = np.array([0.03, 0.08])

# Weight of the prior prediction of a stratum, as a number of labels.
PRIOR_LABELS = 4.0

# Limits of the predicted rate m of a stratum. A draw gains c w m if its outcome is 0 and loses c w (1 − m) if
# it is 1: with m = 0, the bet could only lose, and with m = 1, no loss would limit the stake.
_MIN_RATE = 0.05
_MAX_RATE = 0.995

# Largest stake, as a share of the stake with which one draw could lose the whole capital.
_MAX_STAKE = 0.95

# Weights of the wave in which a change begins: .2 on waves 1 to 5, .6 on waves 1 to 200, .2 on later ones.
_FIRST_WAVES = 5
_FIRST_WEIGHT = 0.04
_PLANNED_WAVES = 200
_PLANNED_WEIGHT = 0.003
_LATE_WEIGHT = 0.2


def change_point_weight(wave: int) -> float:
    """Return the weight of a change that begins in a wave, counted from 1; all weights add up to 1.

    Examples
    --------
    >>> round(sum(change_point_weight(wave) for wave in range(1, 201)), 9)
    0.8
    """
    if wave > _PLANNED_WAVES:
        # Σ 1 / (k (k + 1)) over k > K is 1 / (K + 1), so that these weights sum to _LATE_WEIGHT.
        return _LATE_WEIGHT * (_PLANNED_WAVES + 1) / (wave * (wave + 1))
    if wave <= _FIRST_WAVES:
        return _PLANNED_WEIGHT + _FIRST_WEIGHT
    return _PLANNED_WEIGHT


def log_e_process(log_e_values: FloatArray) -> FloatArray:
    """Return the logarithm of the e-process after each wave (…, T), from log E_t of each effect (…, T, D).

    The capital of an effect is M_t = E_t (M_{t−1} + w_t), and e_t = mean of M_t + Σ_{k>t} w_k.
    """
    n_waves = log_e_values.shape[-2]
    log_capital = np.full(log_e_values.shape[:-2] + log_e_values.shape[-1:], -np.inf)
    remaining_weight = 1.0
    log_process = np.empty(log_e_values.shape[:-1])
    for wave in range(n_waves):
        weight = change_point_weight(wave + 1)
        log_capital = log_e_values[..., wave, :] + np.logaddexp(log_capital, np.log(weight))
        remaining_weight -= weight
        log_mean = np.logaddexp.reduce(log_capital, axis=-1) - np.log(log_capital.shape[-1])
        # Rounding may leave a remaining weight of 0 or below.
        log_remaining = np.log(max(remaining_weight, np.finfo(float).tiny))
        log_process[..., wave] = np.logaddexp(log_mean, log_remaining)
    return log_process


def log_e_values(
    outcomes: FloatArray,
    expected: FloatArray,
    lowest: FloatArray,
    weights: FloatArray,
    variances: FloatArray,
    labels: int | IntArray,
    effects: FloatArray = EFFECTS,
    copies: FloatArray | None = None,
) -> FloatArray:
    """Return the logarithm of a wave's e-value (…, D) for each effect: Σ log(1 + c w_i (m_i − z_i)).

    c = δ / (V + δ²/n) maximises the expected growth for a fall by δ to second order.

    Parameters
    ----------
    outcomes : float (…, J)
        w z of each independent draw: of a unit, or summed over a cluster. z lies between 0 and 1.
    expected : float (…, J)
        w m of each draw; the mean of m over the population is the level of the null hypothesis.
    lowest : float (…, J)
        Lower bound of w m over all units that could be drawn, because the stake must not depend on the draw.
    weights : float (…, J)
        w of each draw, which includes 1/N.
    variances : float (…, J)
        Expected variance of z in each draw.
    labels : int or int (…)
        n.
    effects : float (D,)
        δ, as shares of the outcome's range.
    copies : float (…, J), optional
        Number of equal draws that each entry represents; 1 by default. With copies, one entry is enough for
        all draws of a stratum with the same outcome.
    """
    if copies is None:
        copies = np.ones(weights.shape[-1])
    variance = np.sum(copies * weights**2 * variances, axis=-1)[..., None]
    # The largest loss of a draw is w (1 − m).
    largest_loss = np.max(np.maximum(weights - lowest, np.finfo(float).eps), axis=-1)[..., None]
    n = np.asarray(labels)[..., None]
    stakes = np.minimum(effects / (variance + effects**2 / n), _MAX_STAKE / largest_loss)
    gains = expected - outcomes
    log_capital = [np.sum(copies * np.log1p(stakes[..., [d]] * gains), axis=-1) for d in range(len(effects))]
    return np.stack(log_capital, axis=-1)


def smoothed_rates(totals: FloatArray, labels: FloatArray, prior: FloatArray) -> FloatArray:
    """Return the expected outcome of each stratum (…, H) from sums and numbers of earlier labels (…, H).

    The prior prediction (…, H) has the weight of `PRIOR_LABELS` labels.
    """
    rates = (totals + PRIOR_LABELS * prior) / (labels + PRIOR_LABELS)
    return np.clip(rates, _MIN_RATE, _MAX_RATE)


def centred_rates(rates: FloatArray, shares: FloatArray, levels: FloatArray) -> FloatArray:
    """Return rates (…, H) shifted so that their mean over the population, with W_h (H,), is the level (…)."""
    return rates + (levels - rates @ shares)[..., None]


def expected_variances(rates: FloatArray, variance_ratio: float | FloatArray = 1.0) -> FloatArray:
    """Return the variances of outcomes with means r: r (1 − r) for outcomes 0 and 1, times a ratio."""
    # `centred_rates` may leave the interval from 0 to 1. The limits are symmetric, as r (1 − r) is.
    limited_rates = np.clip(rates, 1.0 - _MAX_RATE, _MAX_RATE)
    return variance_ratio * limited_rates * (1.0 - limited_rates)
