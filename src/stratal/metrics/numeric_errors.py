"""Errors of numeric predictions: mean square, its root, and the explained share of the labels' variance.

Squared errors are skewed, and their variance has a larger error than the number of labels suggests. Without
bounds, the interval of a mean square is corrected for skewness, with degrees of freedom from the kurtosis of
the squares. With bounds, it is that of any bounded mean. The limits of the root are the roots of its limits.
The explained share is 1 − mean square / variance of the labels. Without bounds, its limits are the outer ones
of the linearised ratio and of its logarithm; with bounds, the smallest and the largest value over the ellipse
of the two intervals (MOVER; Zou & Donner 2008).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.designs import Weighting
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimate import Estimate, correlation_from, linearised_estimate, undefined_estimate
from stratal.estimation.linearised import Linearised, kurtosis_df, ratio_of_means, skewed_interval
from stratal.estimation.mover import directions
from stratal.intervals.guards import ROUNDING
from stratal.intervals.interval import Interval, two_sided_level
from stratal.intervals.interval_types import OffsetInterval, OuterInterval, Term
from stratal.intervals.proportion import student_quantile
from stratal.report.notes import Note

# The share of the labels with the largest squares, and their share of the sum of squares above which the
# interval is not reliable. In simulations, t errors with 9 degrees of freedom exceed it in less than 5% of
# samples of 50 and 150; those with 4 degrees of freedom in 20 to 34%.
TOP_SHARE = 0.02
HEAVY_TAIL_SHARE = 0.3

# R² is negative if the mean of the labels predicts better.
_BOUNDS_OF_R2 = (-np.inf, 1.0)

# Fewer errors do not show heavy tails: one of 20 normal errors may have a third of the sum of squares.
MIN_LABELS_FOR_TAILS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RootInterval(OffsetInterval):
    """The limits of the root of an estimate: the roots of its limits."""

    square: Term

    method = "root of the mean square"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the root."""
        low, high = self.square.confidence_interval(two_sided_level(error))
        low_root = float(np.sqrt(max(low, 0.0)))
        high_root = float(np.sqrt(max(high, 0.0)))
        return self.value - low_root, high_root - self.value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplainedInterval(OffsetInterval):
    """The limits of 1 − mean square / variance of the labels, from those of both and their correlation."""

    mean_square: Term
    label_variance: Term
    correlation: float

    method = "mover"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the explained share."""
        level = two_sided_level(error)
        unit_ellipse = directions(np.array([[1.0, self.correlation], [self.correlation, 1.0]]))
        # The values of both terms at the points of the ellipse that their limits determine.
        term_values = []
        for term, coordinates in zip((self.mean_square, self.label_variance), unit_ellipse, strict=True):
            low, high = term.confidence_interval(level)
            below = term.value - max(low, 0.0)
            above = min(high, np.finfo(np.float64).max) - term.value
            distances = np.where(coordinates > 0, above, below) * coordinates
            term_values.append(np.maximum(term.value + distances, 0.0))
        mean_squares, variances = term_values
        values = 1.0 - mean_squares / np.where(variances > 0, variances, np.nan)
        values = np.where(np.isnan(values), -np.inf, values)
        return self.value - float(values.min()), float(values.max()) - self.value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogResidualInterval(OffsetInterval):
    """The limits of an explained share by Student's t on the logarithm of the unexplained share, 1 − R²."""

    standard_error: float
    degrees_of_freedom: float

    method = "log-t"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the explained share."""
        unexplained = 1.0 - self.value
        quantile = -float(student_quantile(error, self.degrees_of_freedom))
        log_distance = quantile * self.standard_error / unexplained
        return unexplained * float(np.expm1(log_distance)), -unexplained * float(np.expm1(-log_distance))


def mean_square(
    errors: FloatArray,
    weighting: Weighting,
    max_error: float | None = None,
    target: str = "population",
    member: BoolArray | None = None,
) -> Estimate:
    """Return the mean of the squared errors (n,).

    `max_error` is the largest possible absolute error; None without bounds. `member` (n,) are the units of a
    group. Default: all units.
    """
    squares = errors**2
    if member is None:
        member = np.ones(len(errors), dtype=bool)
    if max_error is not None or not np.any(member):
        bounds = (0.0, np.inf if max_error is None else max_error**2)
        return domain_mean(squares, member, weighting, bounds=bounds, target=target)
    # A group may be in few clusters, which the interval of a domain allows for.
    if weighting.unit_clusters is not None:
        return domain_mean(squares, member, weighting, target=target)
    inside = member.astype(np.float64)
    result = ratio_of_means(inside * squares, inside, weighting, target)
    n = int(member.sum())
    df_of_squares = kurtosis_df(result.variable[member], weighting.weights[member])
    df = max(min(result.degrees_of_freedom, n - 1.0, df_of_squares), 1.0)
    interval = None
    if np.isfinite(result.variance) and result.variance > ROUNDING * result.value**2:
        estimate = np.array([[result.value], [result.variance], [df]])
        interval = skewed_interval(estimate, result.variable[:, None], weighting).of(0)
        interval = replace(interval, bounds=(0.0, np.inf))
    return linearised_estimate(
        result, weighting, interval=interval, target=target, n=n, degrees_of_freedom=df
    )


def root_mean_square(square: Estimate) -> Estimate:
    """Return the root of a mean square."""
    bounds = (0.0, np.inf if square.bounds is None else float(np.sqrt(square.bounds[1])))
    if not np.isfinite(square.value):
        return undefined_estimate(square.evidence.weighting, square.n, bounds, target=square.target)
    value = float(np.sqrt(square.value))
    evidence = square.evidence
    # At a root of 0, the slope is infinite. The error is then at most the root of the error of the square.
    slope = 1.0 / (2.0 * value) if value > 0 else 0.0
    result = Linearised(
        value=value,
        variable=slope * evidence.residuals,
        design_variance=slope**2 * (evidence.variance - evidence.population_part),
        population_variance=slope**2 * evidence.population_part,
        degrees_of_freedom=square.degrees_of_freedom,
    )
    error = min(slope * square.standard_error or np.inf, float(np.sqrt(square.standard_error)))
    return linearised_estimate(
        result,
        evidence.weighting,
        interval=RootInterval(value=value, bounds=bounds, square=square),
        target=square.target,
        n=square.n,
        standard_error=error,
    )


def explained_share(
    errors: FloatArray,
    labels: FloatArray,
    weighting: Weighting,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
) -> Estimate:
    """Return R²: 1 − mean square of the errors (n,) / variance of the labels (n,).

    `bounds` are those of labels and predictions.
    """
    centre = float(weighting.weights @ labels) / weighting.total
    ratio = ratio_of_means(errors**2, (labels - centre) ** 2, weighting, target)
    if not np.isfinite(ratio.value):
        reason = "the labels do not differ"
        return undefined_estimate(weighting, len(labels), _BOUNDS_OF_R2, reason, target=target)
    df = max(min(ratio.degrees_of_freedom, kurtosis_df(ratio.variable, weighting.weights)), 1.0)
    result = replace(ratio, value=1.0 - ratio.value, variable=-ratio.variable)
    value = result.value
    varies = result.variance > ROUNDING * ratio.value**2
    interval: Interval | None = None
    if bounds is not None:
        low, high = bounds
        square = mean_square(errors, weighting, high - low, target)
        variance = mean_square(labels - centre, weighting, max(centre - low, high - centre), target)
        variables = np.column_stack([square.evidence.residuals, variance.evidence.residuals])
        correlations = correlation_from(weighting.covariance(variables))
        interval = ExplainedInterval(
            value=value,
            bounds=_BOUNDS_OF_R2,
            mean_square=square,
            label_variance=variance,
            correlation=float(correlations[0, 1]),
        )
    elif np.isfinite(result.variance) and varies:
        estimate = np.array([[value], [result.variance], [df]])
        skewed = skewed_interval(estimate, result.variable[:, None], weighting).of(0)
        log_interval = LogResidualInterval(
            value=value, standard_error=result.standard_error, degrees_of_freedom=skewed.degrees_of_freedom
        )
        interval = OuterInterval(value=value, bounds=_BOUNDS_OF_R2, first=skewed, second=log_interval)
    return linearised_estimate(result, weighting, interval=interval, target=target, degrees_of_freedom=df)


def top_share_of_squares(values: FloatArray) -> float:
    """Return the share of the largest 2% of the values (n,), at least one, in the sum of squares."""
    squares = np.sort(np.asarray(values, dtype=np.float64) ** 2)
    count = max(1, round(TOP_SHARE * len(squares)))
    total = float(squares.sum())
    if total > 0:
        return float(squares[-count:].sum()) / total
    return 0.0


def heavy_tail_notes(errors: FloatArray) -> tuple[Note, ...]:
    """Return a warning if a few errors (n,) without bounds are a large share of the sum of squares."""
    share = top_share_of_squares(errors)
    n = len(errors)
    if n < MIN_LABELS_FOR_TAILS or share <= HEAVY_TAIL_SHARE:
        return ()
    count = max(1, round(TOP_SHARE * n))
    if count == 1:
        subject = "the largest error accounts for"
    else:
        subject = f"the {count} largest of {n} errors account for"
    text = (
        f"{subject} {share:.0%} of the sum of squares: the errors have heavy tails. If the largest errors "
        "were not drawn, the interval for the mean square covers the true value less often than stated. If "
        "labels and predictions have bounds, state them (bounds=, --bounds); otherwise, report the mean "
        "absolute error (mae) or the share within a tolerance (within:T)"
    )
    return (Note("heavy-tails", text),)
