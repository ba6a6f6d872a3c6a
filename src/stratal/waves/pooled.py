"""Pooled levels: the latest wave together with earlier ones, under an assumption on how levels change.

There are two results, with different assumptions. Neither replaces the interval of the wave alone.

The limited correction moves the estimate of the latest wave towards a prediction from earlier waves, a
random walk whose steps are averaged over a grid. If the standard error is known, a correction of at most .32
standard errors in this direction increases the root mean squared error by a factor of at most √(1 + .32²) =
1.05, whatever the levels do.

If the user states the largest change between two waves, a weighted mean of the latest waves has a known
largest bias. Its interval is that of a normal estimate with this bias; the weights make it shortest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from stratal.arrays import FloatArray
from stratal.protocols import JsonDict
from stratal.report.text import json_dict

# Largest correction, in standard errors; towards the middle of the bounds it is smaller. An estimate that is
# too near to a bound has too small a standard error, so that a correction in proportion to it is least
# accurate there.
MAX_CORRECTION = 0.32
MAX_CORRECTION_TO_MIDDLE = 0.06

# Standard deviations of the random walk's steps, in standard errors of the latest wave.
_STEP_DEVIATIONS = np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])

# Candidate ratios of the weights of a wave and the next one: from the latest wave alone (0) to all equal (1).
_WEIGHT_RATIOS = np.linspace(0.0, 1.0, 41)

# A level is predicted from at least two earlier waves.
MIN_WAVES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledLevel:
    """The level of the latest wave, estimated with the help of earlier waves.

    Parameters
    ----------
    value : float
    confidence_interval : (float, float), optional
        None without a bound on the change between two waves.
    max_change : float, optional
        That bound.
    """

    value: float
    confidence_interval: tuple[float, float] | None = None
    max_change: float | None = None

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict."""
        return json_dict(
            {
                "estimate": self.value,
                "confidence_interval": self.confidence_interval,
                "max_change": self.max_change,
            }
        )


def limited_level(
    values: FloatArray, standard_errors: FloatArray, labels: FloatArray, bounds: tuple[float, float]
) -> FloatArray:
    """Return the latest levels (…,) with a limited correction towards the prediction from earlier waves.

    Parameters
    ----------
    values, standard_errors : float (…, T)
        Estimates of the waves in their order in time.
    labels : float (T,)
    bounds : (float, float)
        Of the outcome.
    """
    variances = _smoothed_variances(standard_errors, labels)
    latest = values[..., -1]
    latest_variance = variances[..., -1]
    steps = (_STEP_DEVIATIONS**2) * latest_variance[..., None]
    mean = np.repeat(values[..., :1], len(_STEP_DEVIATIONS), axis=-1)
    variance = np.repeat(variances[..., :1], len(_STEP_DEVIATIONS), axis=-1)
    log_likelihood = np.zeros(mean.shape)
    # The Kalman filter of the random walk, for each standard deviation of its steps. It ends with the
    # prediction of the latest wave.
    for wave in range(1, values.shape[-1]):
        variance = variance + steps
        if wave == values.shape[-1] - 1:
            break
        total_variance = variance + variances[..., wave, None]
        difference = values[..., wave, None] - mean
        log_likelihood -= 0.5 * (np.log(total_variance) + difference**2 / total_variance)
        mean = mean + variance / total_variance * difference
        variance = variance * variances[..., wave, None] / total_variance
    weights = np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    prediction = np.sum(weights * mean, axis=-1)
    prediction_variance = np.sum(weights * (variance + (mean - prediction[..., None]) ** 2), axis=-1)
    correction = latest_variance / (prediction_variance + latest_variance) * (prediction - latest)
    middle = sum(bounds) / 2
    is_towards_middle = np.abs(prediction - middle) < np.abs(latest - middle)
    max_correction = np.where(is_towards_middle, MAX_CORRECTION_TO_MIDDLE, MAX_CORRECTION)
    limit = max_correction * np.minimum(standard_errors[..., -1], np.sqrt(latest_variance))
    return np.asarray(latest + np.clip(correction, -limit, limit))


def _smoothed_variances(standard_errors: FloatArray, labels: FloatArray) -> FloatArray:
    """Return the variance of each wave (…, T), under equal variances per label in all waves.

    The estimated variance of a single wave depends on its estimate: it is too small if by chance there are
    few errors.
    """
    variance_per_label = np.mean(standard_errors**2 * labels, axis=-1, keepdims=True)
    return np.asarray(np.maximum(variance_per_label, np.finfo(float).tiny) / labels)


def bounded_level(
    values: FloatArray,
    standard_errors: FloatArray,
    labels: FloatArray,
    max_change: float,
    confidence_level: float,
    bounds: tuple[float, float],
) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean (…,) of the latest waves with the shortest interval, and its half-width (…,).

    Parameters
    ----------
    values, standard_errors : float (…, T)
    labels : float (T,)
    max_change : float
        Largest change of the level between two waves.
    confidence_level : float
    bounds : (float, float)
        Of the outcome.
    """
    # The estimated variance of a wave with few errors of the model is too small.
    variances = np.maximum(standard_errors**2, _smoothed_variances(standard_errors, labels))
    ages = np.arange(values.shape[-1])[::-1]
    weights = labels * _WEIGHT_RATIOS[:, None] ** ages
    weights = weights / weights.sum(axis=-1, keepdims=True)
    errors = np.sqrt(variances @ (weights**2).T)
    biases = max_change * (weights @ ages)
    half_widths = errors * biased_quantile(biases / errors, confidence_level)
    best = np.argmin(half_widths, axis=-1)[..., None]
    mean = np.take_along_axis(values @ weights.T, best, axis=-1)[..., 0]
    error = np.take_along_axis(errors, best, axis=-1)[..., 0]
    half_width = np.take_along_axis(half_widths, best, axis=-1)[..., 0]
    # Outcomes vary more towards the middle of the bounds. As in Wilson's interval, the standard error is that
    # of a mean closer to the middle: half-way to the end of the interval.
    low, high = bounds
    middle = (low + high) / 2.0
    inner_mean = mean + np.clip(middle - mean, -half_width / 2.0, half_width / 2.0)
    max_variance = np.maximum((mean - low) * (high - mean), np.finfo(float).tiny)
    error = error * np.sqrt((inner_mean - low) * (high - inner_mean) / max_variance)
    return mean, error * biased_quantile(biases[best[..., 0]] / error, confidence_level)


def biased_quantile(bias: FloatArray, probability: float) -> FloatArray:
    """Return the quantile of |X| for a normal X with the mean `bias` and the standard deviation 1.

    Examples
    --------
    >>> biased_quantile(np.array([0.0, 10.0]), 0.95).round(3)
    array([ 1.96 , 11.645])
    """
    low = np.maximum(bias, 0.0)
    high = low + 10.0
    # The quantile lies above the bias, by less than 10: bisection to the precision of a float.
    for _ in range(60):
        middle = (low + high) / 2.0
        is_below = ndtr(middle - bias) - ndtr(-middle - bias) < probability
        low = np.where(is_below, middle, low)
        high = np.where(is_below, high, middle)
    return np.asarray(high)


def pool_levels(
    values: FloatArray,
    standard_errors: FloatArray,
    labels: FloatArray,
    *,
    max_change: float | None,
    confidence_level: float,
    bounds: tuple[float, float] | None,
) -> PooledLevel | None:
    """Return the pooled level of the latest of T waves; None with few waves or without any error."""
    if bounds is None or len(values) < MIN_WAVES:
        return None
    if not np.all(np.isfinite(standard_errors)) or not np.any(standard_errors > 0):
        return None
    if max_change is None:
        return PooledLevel(
            value=float(np.clip(limited_level(values, standard_errors, labels, bounds), *bounds))
        )
    mean, half_width = bounded_level(values, standard_errors, labels, max_change, confidence_level, bounds)
    low, high = np.clip([mean - half_width, mean + half_width], *bounds).tolist()
    return PooledLevel(value=float(mean), confidence_interval=(low, high), max_change=max_change)
