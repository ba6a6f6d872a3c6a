"""The expected calibration error of a score that is a probability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimand import DEFAULT_REQUEST, Request
from stratal.estimation.estimate import Estimate, linearised_estimate
from stratal.estimation.linearised import of_variable
from stratal.intervals.interval import two_sided_level
from stratal.intervals.interval_types import OffsetInterval
from stratal.metrics.associations import Bias, ScoreComparison
from stratal.metrics.score_roles import is_probability
from stratal.population.influence import Influence
from stratal.population.population import Population

# Number of bins of equal width, as is usual for calibration errors (Guo et al. 2017).
N_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _BinsInterval(OffsetInterval):
    """Interval of the weighted sum of the bins' absolute differences of mean label and mean score.

    The limits are the sums of the limits of the bins, because the sum of absolute values is not normal near 0
    and its estimate is biased upwards. The lower limit is valid if the limits of all bins are, so that the
    error probability is divided among the bins (Bonferroni). For the upper limit this is not necessary,
    because the errors of bins compensate each other.
    """

    mean_labels: tuple[Estimate, ...]
    mean_scores: FloatArray
    bin_shares: FloatArray

    method = "sum of bins"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the value."""
        # The lower limit depends on both ends of a difference, so that each has half of the error. The upper
        # limit is only too low if the end on the side of the true difference is.
        low, high = self._limits_of_differences(0.5 * error / len(self.mean_labels))
        min_distances = np.maximum(np.maximum(low, -high), 0.0)
        low, high = self._limits_of_differences(error)
        max_distances = np.maximum(np.abs(low), np.abs(high))
        lower_limit = float(self.bin_shares @ min_distances)
        upper_limit = float(self.bin_shares @ max_distances)
        return max(self.value - lower_limit, 0.0), upper_limit - self.value

    def _limits_of_differences(self, error: float) -> tuple[FloatArray, FloatArray]:
        """Return the limits (bins,) of mean label − mean score, each with the error probability `error`."""
        level = two_sided_level(error)
        intervals = [estimate.confidence_interval(level) for estimate in self.mean_labels]
        low = np.array([interval.low for interval in intervals]) - self.mean_scores
        high = np.array([interval.high for interval in intervals]) - self.mean_scores
        return low, high


def calibration_error(
    scores: FloatArray, labels: FloatArray, weighting: Weighting, target: str = "population"
) -> Estimate:
    """Return the expected calibration error of probabilities and labels (n,), with its interval."""
    # The last bin includes a score of 1.
    bins = np.minimum((scores * N_BINS).astype(int), N_BINS - 1)
    weights = weighting.weights / weighting.total
    bin_shares = np.bincount(bins, weights, minlength=N_BINS).astype(np.float64)
    nonempty_bins = np.flatnonzero(bin_shares > 0)
    differences = labels - scores
    bin_differences = np.bincount(bins, weights * differences, minlength=N_BINS)[nonempty_bins]
    value = float(np.abs(bin_differences).sum())
    signs = np.zeros(N_BINS)
    signs[nonempty_bins] = np.sign(bin_differences)
    influence = signs[bins] * differences - value
    linearised = of_variable(value, influence / weighting.total, weighting, target)
    # Scores hardly differ within a bin, so that the interval of the mean label is used. It has a width even
    # if all labels are equal.
    mean_labels = tuple(
        domain_mean(labels, bins == k, weighting, bounds=(0.0, 1.0), target=target)
        for k in nonempty_bins.tolist()
    )
    bin_shares = bin_shares[nonempty_bins]
    bin_scores = np.bincount(bins, weights * scores, minlength=N_BINS)[nonempty_bins]
    interval = _BinsInterval(
        value=value,
        bounds=(0.0, 1.0),
        mean_labels=mean_labels,
        mean_scores=bin_scores / bin_shares,
        bin_shares=bin_shares,
    )
    return linearised_estimate(linearised, weighting, interval=interval, target=target)


@dataclass(frozen=True, slots=True)
class CalibrationError(ScoreComparison, kind="calibration_error"):
    """The expected calibration error: the mean over bins of |mean label − mean score|.

    The estimate is never below 0 and is biased upwards with few labels. The interval accounts for this, and
    contains 0 if the judge may be calibrated.

    Examples
    --------
    >>> CalibrationError("judge").text
    'calibration_error:judge'
    """

    def influence(self, population: Population) -> Influence:
        """Return the influence of the bias, since the calibration error sums the biases of bins."""
        return Bias(self.score).influence(population)

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the calibration error."""
        score = self.score_name(sample)
        role = sample.question.score(score)
        if role is not None and not is_probability(sample, score):
            raise InputError(
                f"a calibration error requires probabilities, but {score!r} is not a probability",
                given=f"{role.meaning} ({'declared' if role.declared else 'inferred'})",
                allowed="right, class:NAME",
                action="Declare what the score predicts (predicts=, --predicts), or estimate a correlation: "
                "pearson, spearman or icc.",
            )
        # Scores and labels.
        x, y, respondents, _ = self.units(sample, labels)
        if not np.all((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)):
            raise InputError(
                "a calibration error requires probabilities and labels from 0 to 1",
                given=f"scores {x.min():g} to {x.max():g}, labels {y.min():g} to {y.max():g}",
                action="Estimate a correlation instead: pearson, spearman or icc.",
            )
        estimate = calibration_error(x, y, respondents.weighting, request.target)
        return respondents.complete(estimate, sample, label=self.label)
