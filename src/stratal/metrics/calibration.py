"""Calibration of probabilities: reliability curve, calibration errors, Brier score and its components.

The components of the Brier score are the squared calibration error, the resolution and the uncertainty
(Murphy 1973). The first two are quadratic functions of the means of bins of the score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, Request
from stratal.estimation.estimate import Estimate, linearised_estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.linearised import of_variable, target_covariance
from stratal.intervals.interval import two_sided_level
from stratal.intervals.interval_types import OffsetInterval, StudentInterval
from stratal.metrics.associations import ScoreComparison
from stratal.metrics.calibration_error import N_BINS, calibration_error
from stratal.metrics.score_roles import is_probability

__all__ = ["Calibration"]

# Minimum number of labels in a bin: the noise of a bin's mean is estimated from its own labels.
_MIN_LABELS_PER_BIN = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreBins(Record):
    """K bins of a score, and the means of score and outcome in each.

    Parameters
    ----------
    codes : int (n,)
        The bin of each labelled unit.
    edges : float (K + 1,)
    shares, scores, outcomes : float (K,)
        Estimated share of the units, and means.
    """

    codes: IntArray
    edges: FloatArray
    shares: FloatArray
    scores: FloatArray
    outcomes: FloatArray

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray, weights: FloatArray) -> ScoreBins:
        """Return ten bins of equal width, of which those with few labels are merged; weights sum to 1."""
        tenths = np.minimum((x * N_BINS).astype(np.int64), N_BINS - 1)
        counts = np.bincount(tenths, minlength=N_BINS)
        # Edges in tenths.
        edges = [0]
        for edge in range(1, N_BINS + 1):
            if counts[edges[-1] : edge].sum() >= _MIN_LABELS_PER_BIN:
                edges.append(edge)
        if len(edges) == 1:
            edges.append(N_BINS)
        # Few labels at the top belong to the bin below.
        edges[-1] = N_BINS
        codes = np.searchsorted(edges, tenths, side="right") - 1
        shares = np.bincount(codes, weights).astype(np.float64)
        mean_scores = np.bincount(codes, weights * x) / shares
        mean_outcomes = np.bincount(codes, weights * y) / shares
        return cls(
            codes=codes,
            edges=np.array(edges) / N_BINS,
            shares=shares,
            scores=mean_scores,
            outcomes=mean_outcomes,
        )

    @property
    def indicators(self) -> FloatArray:
        """Which bin each unit is in (n, K)."""
        return np.asarray(self.codes[:, None] == np.arange(len(self.shares)), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpperLimit(OffsetInterval):
    """The one-sided upper limit of a nonnegative quantity, as an interval from 0.

    Parameters
    ----------
    two_sided : OffsetInterval
        The interval of the quantity for known shares of the bins.
    by_error : StudentInterval
        The interval from its standard error, which includes the errors of the shares.
    """

    two_sided: OffsetInterval
    by_error: StudentInterval

    method = "upper limit"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits from the value; all of the error is above."""
        if alternative == "two-sided":
            error = 2.0 * error
        above = self.two_sided.offsets(error, "less")[1]
        length = float(self.by_error.offsets(error, "two-sided")[1])
        return self.value, math.hypot(above, length)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointInterval(OffsetInterval):
    """The interval of one of several means, at the simultaneous level for all of them (Bonferroni)."""

    mean: Estimate
    n_means: int

    method = "joint"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits from the value."""
        interval = self.mean.confidence_interval(two_sided_level(error / self.n_means))
        return self.value - interval.low, interval.high - self.value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuadraticInterval(OffsetInterval):
    """The values of Σ share_k c_k² that are possible within the joint intervals of the outcomes of K bins.

    The contrast c_k of a bin is the distance of its mean outcome from its mean score, or from the mean of all
    outcomes. A quadratic function is not smooth at 0, where an interval from its standard error fails. The
    joint intervals take the shares of the bins as known; the length from the standard error, which has the
    errors of the shares, is added as if both were independent.

    Parameters
    ----------
    by_error : StudentInterval
        The interval from the standard error.
    outcomes : tuple of Estimate (K,)
    shares : float (K,)
    scores : float (K,), optional
        Default: the contrasts are distances from the mean of all outcomes.
    """

    by_error: StudentInterval
    outcomes: tuple[Estimate, ...]
    shares: FloatArray
    scores: FloatArray | None = None

    method = "joint intervals"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits from the value."""
        level = two_sided_level(error / len(self.outcomes))
        intervals = [outcome.confidence_interval(level) for outcome in self.outcomes]
        low = np.array([interval.low for interval in intervals])
        high = np.array([interval.high for interval in intervals])
        if self.scores is None:
            smallest, largest = spread_range(low, high, self.shares)
        else:
            smallest, largest = distance_range(low - self.scores, high - self.scores, self.shares)
        length = float(self.by_error.offsets(error, "two-sided")[1])
        below = math.hypot(max(self.value - smallest, 0.0), length)
        above = math.hypot(max(largest - self.value, 0.0), length)
        # The quantity is not below 0; the value, corrected for noise, may be.
        return min(below, max(self.value, 0.0)), above


def distance_range(low: FloatArray, high: FloatArray, shares: FloatArray) -> tuple[float, float]:
    """Return the smallest and the largest Σ share_k c_k² of contrasts between `low` and `high` (K,)."""
    nearest = np.clip(0.0, low, high)
    farthest = np.maximum(np.abs(low), np.abs(high))
    return float(shares @ nearest**2), float(shares @ farthest**2)


def spread_range(low: FloatArray, high: FloatArray, shares: FloatArray) -> tuple[float, float]:
    """Return the smallest and largest variance Σ share_k (y_k − ȳ)² of values between `low` and `high` (K,).

    At the smallest variance all values are as near as possible to their mean, which bisection finds. The
    variance is convex, so that the largest is at a corner.
    """
    start = float(low.min())
    end = float(high.max())
    # Sixty halvings reach the precision of a float.
    for _ in range(60):
        middle = (start + end) / 2.0
        if shares @ np.clip(middle, low, high) > middle:
            start = middle
        else:
            end = middle
    nearest = np.clip(start, low, high)
    smallest = float(shares @ (nearest - shares @ nearest) ** 2)
    is_high = np.indices((2,) * len(low)).reshape(len(low), -1).astype(bool)
    corners = np.where(is_high, high[:, None], low[:, None])
    largest = float(np.max(shares @ (corners - shares @ corners) ** 2))
    return smallest, largest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UncertaintyInterval(OffsetInterval):
    """The values p (1 − p) of the means p in an interval, since p (1 − p) is not normal for rare outcomes."""

    mean: Estimate

    method = "interval of the mean"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits from the value."""
        interval = self.mean.confidence_interval(two_sided_level(error))
        values = [limit * (1.0 - limit) for limit in (interval.low, interval.high)]
        largest = max(values)
        if interval.low <= 0.5 <= interval.high:
            # p (1 − p) has its maximum, ¼, at p = ½.
            largest = 0.25
        # The correction of the bias may move the value beyond the largest p (1 − p) in the interval.
        return max(self.value - min(values), 0.0), max(largest - self.value, 0.0)


def quadratic_estimate(
    contrasts: FloatArray,
    deviations: FloatArray,
    bins: ScoreBins,
    weighting: Weighting,
    target: str,
    *,
    outcomes: tuple[Estimate, ...],
    scores: FloatArray | None = None,
    variance_of_mean: float = 0.0,
) -> Estimate:
    """Return Σ share_k c_k² of contrasts (K,) of the bins, without the bias from sampling errors.

    The variance has a term of second order, so that the standard error is not 0 if all contrasts are 0.

    Parameters
    ----------
    contrasts : float (K,)
    deviations : float (n, K)
        Their linearised variables.
    outcomes, scores : of K bins
        As in `QuadraticInterval`.
    variance_of_mean : float
        Sampling variance of the mean of all outcomes, if the contrasts are distances from it.
    """
    covariance = target_covariance(deviations, weighting, target)
    bias = float(bins.shares @ covariance.diagonal()) - variance_of_mean
    squares = contrasts**2
    biased_value = float(bins.shares @ squares)
    value = biased_value - bias
    variable = 2.0 * deviations @ (bins.shares * contrasts) + bins.indicators @ squares - biased_value
    result = of_variable(value, variable, weighting, target)
    # The variance of a quadratic form of normal contrasts: 2 tr((D Σ)²).
    scaled = bins.shares[:, None] * covariance
    variance = result.variance + 2.0 * float(np.trace(scaled @ scaled))
    standard_error = float(np.sqrt(variance))
    by_error = _interval_from_error(value, standard_error, result.degrees_of_freedom)
    interval = QuadraticInterval(
        value=value, by_error=by_error, outcomes=outcomes, shares=bins.shares, scores=scores
    )
    return linearised_estimate(
        result, weighting, interval=interval, target=target, standard_error=standard_error
    )


def _interval_from_error(value: float, standard_error: float, degrees_of_freedom: float) -> StudentInterval:
    """Return Student's interval, with at least one degree of freedom."""
    return StudentInterval(
        value=value, standard_error=standard_error, degrees_of_freedom=max(degrees_of_freedom, 1.0)
    )


def calibration_rows(
    x: FloatArray, y: FloatArray, weighting: Weighting, target: str
) -> Iterator[tuple[str, str | None, Estimate]]:
    """Yield the name of each quantity of probabilities x and outcomes y (n,), its bin, and its estimate.

    The score is that of Brier (1950). Its components are those of Murphy (1973) without the bias of few
    labels (Bröcker 2012; Ferro & Fricker 2012).
    """
    all_units = np.ones(len(x), dtype=bool)
    weights = weighting.weights / weighting.weights.sum()
    bins = ScoreBins.of(x, y, weights)
    mean = float(weights @ y)
    gaps = bins.outcomes - bins.scores
    # The linearised variables (n, K) of the gaps and of the mean outcomes.
    scaled_indicators = bins.indicators / bins.shares
    gap_deviations = scaled_indicators * ((y - x)[:, None] - gaps)
    outcome_deviations = scaled_indicators * (y[:, None] - bins.outcomes)
    yield "brier", None, domain_mean((x - y) ** 2, all_units, weighting, bounds=(0.0, 1.0), target=target)
    outcomes = tuple(
        domain_mean(y, bins.codes == k, weighting, bounds=(0.0, 1.0), target=target)
        for k in range(len(bins.shares))
    )
    squared_error = quadratic_estimate(
        gaps, gap_deviations, bins, weighting, target, outcomes=outcomes, scores=bins.scores
    )
    yield "squared_calibration_error", None, squared_error
    variance_of_mean = float(target_covariance((y - mean)[:, None], weighting, target)[0, 0])
    resolution = quadratic_estimate(
        bins.outcomes - mean,
        outcome_deviations,
        bins,
        weighting,
        target,
        outcomes=outcomes,
        variance_of_mean=variance_of_mean,
    )
    yield "resolution", None, resolution
    mean_outcome = domain_mean(y, all_units, weighting, bounds=(0.0, 1.0), target=target)
    # The sampling error of the mean biases p (1 − p) downwards by its variance.
    value = min(mean * (1.0 - mean) + variance_of_mean, 0.25)
    variable = (1.0 - 2.0 * mean) * (y - mean)
    result = of_variable(value, variable, weighting, target)
    interval = UncertaintyInterval(value=value, bounds=(0.0, 0.25), mean=mean_outcome)
    yield "uncertainty", None, linearised_estimate(result, weighting, interval=interval, target=target)
    yield "expected_calibration_error", None, _calibration_error_with_limit(x, y, weighting, target)
    for k, outcome in enumerate(outcomes):
        joint = JointInterval(value=outcome.value, bounds=(0.0, 1.0), mean=outcome, n_means=len(bins.shares))
        name = f"{bins.edges[k]:g} to {bins.edges[k + 1]:g}, mean {bins.scores[k]:.3f}"
        yield "outcome", name, replace(outcome, evidence=replace(outcome.evidence, interval=joint))


def _calibration_error_with_limit(
    x: FloatArray, y: FloatArray, weighting: Weighting, target: str
) -> Estimate:
    """Return the expected calibration error of probabilities and outcomes (n,), with an upper limit."""
    expected_error = calibration_error(x, y, weighting, target)
    evidence = expected_error.evidence
    value = expected_error.value
    assert isinstance(evidence.interval, OffsetInterval)
    by_error = _interval_from_error(value, expected_error.standard_error, evidence.degrees_of_freedom)
    limit = UpperLimit(value=value, bounds=(0.0, 1.0), two_sided=evidence.interval, by_error=by_error)
    return replace(expected_error, evidence=replace(evidence, interval=limit))


@dataclass(frozen=True, slots=True)
class Calibration(Estimand, kind="calibration", listed_field="scores", listed_example="score"):
    """Calibration of probabilities: reliability curve, calibration errors, Brier score and its components.

    Parameters
    ----------
    scores : sequence of str, optional
        Proxies that are probabilities of right answers or of a class. Default: all of the sample.

    Examples
    --------
    >>> import stratal
    >>> score = np.linspace(0.05, 0.95, 400)
    >>> population = stratal.Population.from_arrays(proxy={"confidence": score})
    >>> sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=7)
    >>> right = (sample.ids % 20 < 20 * sample.proxies[:, 0]).astype(float)
    >>> estimates = stratal.estimate(sample, right, estimand="calibration:confidence")
    >>> round(estimates.of(metric="brier").value, 2)
    0.18
    """

    scores: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._set(scores=(self.scores,) if isinstance(self.scores, str) else tuple(self.scores))

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """The scores."""
        return self.scores

    def _scores_of(self, sample: Sample) -> tuple[str, ...]:
        """Return the named scores, or all of the sample's that are probabilities."""
        bounds = {info.name: info.bounds for info in sample.proxy_info}
        probabilities = tuple(
            name for name in sample.proxy_names if bounds[name] == (0.0, 1.0) and is_probability(sample, name)
        )
        others = [name for name in self.scores if name not in probabilities]
        if others or not probabilities:
            raise InputError(
                "calibration requires probabilities",
                given=", ".join(map(repr, others or sample.proxy_names)),
                allowed=", ".join(map(repr, probabilities)) or "a proxy from 0 to 1",
                action="Declare what a score predicts: predicts= (--predicts COL=right or COL=class:NAME).",
            )
        return self.scores or probabilities

    def reads_classes(self, sample: Sample) -> bool:
        """Return whether labels are classes: a score is declared to predict one."""
        return any(ScoreComparison(name).reads_classes(sample) for name in self._scores_of(sample))

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        return ScoreComparison(self._scores_of(sample)[0]).labelled_units(sample, labels)

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimates:
        """Return the quantities of each score."""
        rows = []
        remarks = [_NOTE_ON_COMPONENTS]
        for name in self._scores_of(sample):
            x, y, respondents, _ = ScoreComparison(name).units(sample, labels)
            if not np.all((y >= 0) & (y <= 1)):
                raise InputError(
                    "calibration requires labels from 0 to 1",
                    given=f"{y.min():g} to {y.max():g}",
                    action="State the label that counts as 1: positive= (--positive LABEL).",
                )
            role = sample.question.score(name)
            of_class = None if role is None else role.of_class
            for metric, score_bin, estimate in calibration_rows(x, y, respondents.weighting, request.target):
                label = {"score": name, "class": of_class, "metric": metric, "bin": score_bin}
                rows.append(respondents.complete(estimate, sample, label=label))
            remarks += respondents.notes
        return Estimates.from_rows(sample, rows, "calibration", remarks)


_NOTE_ON_COMPONENTS = (
    "brier is the squared calibration error minus the resolution plus the uncertainty, apart from the "
    "variation of scores within bins. The calibration error and the resolution are corrected for the noise "
    "of few labels and may be below 0. The limit of the expected calibration error is one-sided, and the "
    "intervals of all bins of a score are simultaneous"
)
