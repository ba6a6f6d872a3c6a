"""Comparison of judges with people: correlation, bias and calibration of scores, and agreement of verdicts.

All quantities but the bias are functions of the joint distribution of score and label, with linearised
variables. The interval of a correlation is Fisher's: Student's t on the scale of its inverse hyperbolic
tangent. It has two guards:

- The labels are mixed with pairs of a score and the label of another unit, which count as one label. Few
  pairs that all agree then do not exclude that others disagree. The pairs count less, the more the labels
  show of the variance and of units that disagree with the score.
- The variance of a heavy-tailed variable, as with rare disagreements, is uncertain even with many labels. The
  degrees of freedom therefore depend on the kurtosis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, number_of_text
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError
from stratal.estimation.estimand import PLAIN, Estimand, Request
from stratal.estimation.estimate import Estimate, linearised_estimate, undefined_estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.linearised import (
    ROUNDING_ERROR,
    Linearised,
    adaptive_label_share,
    numeric_gradient,
    of_variable,
    pseudo_label_share,
    undefined,
)
from stratal.estimation.means import Mean
from stratal.estimation.proportion_functions import domain_mean, mean_of
from stratal.estimation.resolve import (
    class_column,
    compared_column,
    number_column,
    number_columns,
    outcomes,
    with_group,
)
from stratal.estimation.respondents import Respondents
from stratal.intervals.evidence import OutcomeKind
from stratal.intervals.interval_types import OffsetInterval, OuterInterval
from stratal.intervals.proportion import student_quantile
from stratal.metrics.class_answers import (
    AnsweredClasses,
    judged_classes,
    labels_as_verdicts,
    no_verdicts,
)
from stratal.metrics.numeric_errors import LARGEST_PART, MIN_ERRORS_FOR_TAILS, largest_share
from stratal.metrics.ranking import area_under_curve, only_proxy, ranking_metric
from stratal.metrics.smoothed_variances import mixed_variance, smoothed_variance
from stratal.population.expressions import Cells, Expression, NumberColumn
from stratal.population.influence import Influence, averages
from stratal.population.population import Population
from stratal.question.question import NUMBER
from stratal.question.scores import ORDER, OUTCOME, Score
from stratal.report.notes import Note

# Scores, labels and weights (n,) that sum to 1: the value, and the influence of each unit (n,).
Pairs = Callable[[FloatArray, FloatArray, FloatArray], tuple[float, FloatArray]]

# A variance of this size is a rounding error: all values are equal.
_MIN_SPREAD = 1e-12
# Largest correlation on Fisher's scale, which is infinite at 1.
_MAX_CORRELATION = 1.0 - 1e-9

# Number of other units whose labels the score of a unit is paired with, spread over the sample. All of these
# pairs together count as one label, so that more of them make no difference.
_N_PARTNERS = 8


def _moment_variables(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return x, y, x², y² and xy (n, 5)."""
    return np.column_stack([x, y, x * x, y * y, x * y])


def _of_moments(function: Callable[[FloatArray], float]) -> Pairs:
    """Return a function of the means of x, y, x², y² and xy, of standardised scores and labels."""

    def of(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
        # A common centre and scale of both changes neither a correlation nor an agreement, and avoids
        # rounding errors.
        centre = float(weights @ (x + y)) / 2.0
        scale = float(np.sqrt(weights @ ((x - centre) ** 2 + (y - centre) ** 2)))
        if scale == 0:
            scale = 1.0
        variables = _moment_variables((x - centre) / scale, (y - centre) / scale)
        means = weights @ variables
        with np.errstate(divide="ignore", invalid="ignore"):
            value = function(means)
            slopes = numeric_gradient(function, means)
        return value, (variables - means) @ slopes

    return of


def _correlation(m: FloatArray) -> float:
    """Return Pearson's correlation from the means of x, y, x², y² and xy."""
    spread = (m[2] - m[0] ** 2) * (m[3] - m[1] ** 2)
    if spread > _MIN_SPREAD**2:
        return float((m[4] - m[0] * m[1]) / np.sqrt(spread))
    return np.nan


def _agreement(m: FloatArray) -> float:
    """Return Lin's concordance correlation from the means of x, y, x², y² and xy."""
    spread = float(m[2] + m[3] - 2.0 * m[0] * m[1])
    if spread > _MIN_SPREAD:
        return 2.0 * float(m[4] - m[0] * m[1]) / spread
    return np.nan


pearson = _of_moments(_correlation)
intraclass = _of_moments(_agreement)


def _mid_ranks(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return P(V < v) + ½ P(V = v) of each unit (n,), and the number of its value in ascending order."""
    _, group = np.unique(values, return_inverse=True)
    group_weights = np.bincount(group, weights)
    ranks = (np.cumsum(group_weights) - group_weights / 2.0)[group]
    return ranks, group


def _sums_above(group: IntArray, variable: FloatArray) -> FloatArray:
    """Return the sum (n,) of a variable over the units with a higher value; ties count one half."""
    sums = np.bincount(group, variable)
    return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2.0)[group])


def spearman(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Return the correlation of the ranks, with mean ranks of ties, and the influence of each unit (n,).

    A unit changes the moments by its own ranks, and by increasing the ranks of the units above it.

    Examples
    --------
    >>> x, y = np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 1, 4, 3, 5])
    >>> round(spearman(x, y, np.full(5, 0.2))[0], 3)
    0.8
    """
    ranks_of_x, group_of_x = _mid_ranks(x, weights)
    ranks_of_y, group_of_y = _mid_ranks(y, weights)
    variables = _moment_variables(ranks_of_x, ranks_of_y)
    means = weights @ variables
    slopes = numeric_gradient(_correlation, means)
    influence = (variables - means) @ slopes
    for ranks, other_ranks, group, k in (
        (ranks_of_x, ranks_of_y, group_of_x, 0),
        (ranks_of_y, ranks_of_x, group_of_y, 1),
    ):
        # Derivative of the correlation with respect to the rank of each unit.
        rank_slopes = weights * (slopes[k] + 2.0 * slopes[2 + k] * ranks + slopes[4] * other_ranks)
        influence = influence + _sums_above(group, rank_slopes) - float(rank_slopes @ ranks)
    return _correlation(means), np.asarray(influence)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FisherInterval(OffsetInterval):
    """Student's t on the inverse hyperbolic tangent of a correlation (Fisher 1921)."""

    standard_error: float
    degrees_of_freedom: float

    method = "fisher"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the correlation."""
        if self.standard_error == 0.0:
            return 0.0, 0.0
        value = min(max(self.value, -_MAX_CORRELATION), _MAX_CORRELATION)
        quantile = -float(student_quantile(error, self.degrees_of_freedom))
        # The derivative of arctanh converts the standard error to Fisher's scale.
        half_width = quantile * self.standard_error / (1.0 - value**2)
        low = np.tanh(np.arctanh(value) - half_width)
        high = np.tanh(np.arctanh(value) + half_width)
        return max(self.value - float(low), 0.0), max(float(high) - self.value, 0.0)


def association(
    statistic: Pairs, x: FloatArray, y: FloatArray, weighting: Weighting, target: str = "population"
) -> Estimate:
    """Return the correlation or agreement of scores and labels (n,), from −1 to 1, with its interval."""
    n = len(x)
    bounds = (-1.0, 1.0)
    weights = weighting.weights / weighting.total
    with np.errstate(divide="ignore", invalid="ignore"):
        value, influence = statistic(x, y, weights)
    if not (np.isfinite(value) and np.all(np.isfinite(influence))):
        reason = "scores or labels do not differ"
        return undefined_estimate(weighting, n, bounds, reason, target=target)
    value = min(max(value, -1.0), 1.0)
    result = of_variable(value, influence / weighting.total, weighting, target)
    smooth = _smoothed(statistic, x, y, weighting, result, target)
    has_error = np.isfinite(result.variance) and result.standard_error > ROUNDING_ERROR
    # The interval around the value has the same width on Fisher's scale as that around the smoothed value.
    ratio = (1.0 - min(value**2, 1.0)) / max(1.0 - smooth.value**2, 1.0 - _MAX_CORRELATION)
    around_value = replace(smooth, value=value, standard_error=smooth.standard_error * ratio)
    interval = OuterInterval(value=value, bounds=bounds, first=around_value, second=smooth)
    standard_error = smooth.standard_error
    if has_error or weighting.census:
        standard_error = result.standard_error
    return linearised_estimate(
        result,
        weighting,
        interval=interval,
        target=target,
        standard_error=standard_error,
        degrees_of_freedom=smooth.degrees_of_freedom,
    )


def _smoothed(
    statistic: Pairs, x: FloatArray, y: FloatArray, weighting: Weighting, result: Linearised, target: str
) -> FisherInterval:
    """Return the interval of the labels mixed with pairs of a unit's score and another unit's label.

    The share of these pairs is `pseudo_label_share`.
    """
    n = len(x)
    pair_share, degrees_of_freedom = pseudo_label_share(result, weighting, _exceptions(x, y, weighting))
    steps = np.unique(np.linspace(1, max(n - 1, 1), _N_PARTNERS).astype(int))
    partners = [np.roll(np.arange(n), int(step)) for step in steps]
    n_copies = 1 + len(partners)
    unit_shares = np.full(n, pair_share)
    if len(np.unique(y)) == 2:
        unit_shares = np.maximum(unit_shares, adaptive_label_share(y == y.max(), weighting))
    shares = np.concatenate([1.0 - unit_shares] + [unit_shares / len(partners)] * len(partners))
    weights = shares * np.tile(weighting.weights, n_copies)
    scores = np.tile(x, n_copies)
    labels = np.concatenate([y, *(y[partner] for partner in partners)])
    value, influence = statistic(scores, labels, weights / weights.sum())
    if not np.isfinite(value) or weighting.census:
        return FisherInterval(
            value=result.value, bounds=(-1.0, 1.0), standard_error=0.0, degrees_of_freedom=np.inf
        )
    influence = influence / weighting.total
    design_variance = mixed_variance(weighting, shares, influence) * weighting.total**2
    variance, _ = smoothed_variance(design_variance, influence, weights, result, weighting, target)
    return FisherInterval(
        value=min(max(value, -1.0), 1.0),
        bounds=(-1.0, 1.0),
        standard_error=float(np.sqrt(variance)),
        degrees_of_freedom=max(degrees_of_freedom, 1.0),
    )


def _exceptions(x: FloatArray, y: FloatArray, weighting: Weighting) -> FloatArray:
    """Return the residuals of the labels (n,) from their isotonic fit on the scores, rising or falling.

    If all labels of each stratum agree with the score, the variance within strata is near 0, although units
    without a label may disagree: coverage was .71 with 1% of such units and 100 labels.
    """
    from scipy.optimize import isotonic_regression

    inverse = np.unique(x, return_inverse=True)[1]
    weight = np.bincount(inverse, weighting.weights)
    means = np.bincount(inverse, weighting.weights * y) / weight
    fits = (isotonic_regression(means, weights=weight, increasing=rising).x for rising in (True, False))
    residuals = [y - fit[inverse] for fit in fits]
    return min(residuals, key=lambda residual: float(weighting.weights @ residual**2))


# Share of the squared influence in the largest 2 % of the labels above which a correlation has a note. One in
# ten samples of 100 labels with normal errors exceeds it, and half of those with t errors (df = 3).
_HEAVY_INFLUENCE_SHARE = 0.45


# Slope of the labels on the score that a plan expects, as for a mean.
SLOPE = 0.8


@dataclass(frozen=True, slots=True)
class OfScores(Estimand, listed="score", shown="judge"):
    """A comparison of a judge's scores with the labels, which are numbers.

    Parameters
    ----------
    score : str, optional
        The proxy with the judge's score. Default: the only proxy.
    """

    score: str | None = None

    def units(
        self, sample: Sample, labels: object, scores: object = None
    ) -> tuple[FloatArray, FloatArray, Respondents, BoolArray]:
        """Return scores and labels (m,) of the labelled units, and whether drawn units are labelled (n,)."""
        score_column = scores
        if scores is None:
            score_column = self.score or only_proxy(sample)
        if isinstance(score_column, str):
            score = sample.question.score(score_column)
            if score is not None and score.of_class is not None:
                labels = class_indicator(sample, labels, score)
        columns, labelled = number_columns(sample, {"score": score_column, "label": labels})
        return columns[:, 0], columns[:, 1], Respondents.of(sample, labelled), labelled

    def reads_classes(self, sample: Sample) -> bool:
        """Return whether labels are classes: the score is declared to predict one."""
        score = self.score or (sample.proxy_names[0] if len(sample.proxy_names) == 1 else "")
        return _class_of(sample, score) is not None

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        return self.units(sample, labels)[3]

    def _scaled(self, population: Population) -> tuple[NumberColumn, tuple[float, float]]:
        """Return the score and its bounds, which are those of the labels."""
        info = population.proxy_info(self.score)
        if not info.scaled or info.bounds is None or not np.all(np.isfinite(info.bounds)):
            problem = f"'{self.kind}' cannot be planned for: the score is not on the scale of the labels"
            action = "Give the labels' bounds (bounds=, --bounds), or plan for the mean."
            raise InputError(problem, given=repr(info.name), action=action)
        return NumberColumn(name=info.name), info.bounds


@dataclass(frozen=True, slots=True)
class Association(OfScores):
    """A correlation of scores and labels."""

    statistic: ClassVar[Pairs]
    # The function of the moments that a plan uses.
    planned: ClassVar[Callable[[FloatArray], float]] = _correlation

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the correlation or agreement of scores and labels."""
        x, y, respondents, _ = self.units(sample, labels)
        estimate = association(type(self).statistic, x, y, respondents.weighting, request.target)
        notes = self._tail_notes(y, estimate)
        if notes:
            estimate = replace(estimate, remarks=(*estimate.remarks, *notes))
        return respondents.complete(estimate, sample, label=self.label)

    def _tail_notes(self, labels: FloatArray, estimate: Estimate) -> tuple[Note, ...]:
        """Return a warning if few labels (n,) without bounds dominate the variance of the correlation."""
        if type(self).statistic is spearman or len(labels) < MIN_ERRORS_FOR_TAILS:
            return ()
        share = largest_share(estimate.evidence.residuals)
        if share <= _HEAVY_INFLUENCE_SHARE:
            return ()
        text = (
            f"{LARGEST_PART:.0%} of the labels make up {share:.0%} of the squared influence on {self.text}: "
            "if labels have heavy tails, the interval covers less often than stated, because rare extreme "
            "labels may be missing from the sample. Report the correlation of ranks (spearman)"
        )
        return (Note("heavy-tails", text),)

    def influence(self, population: Population) -> Influence:
        """Return the moments of the influence for labels at the bounds, whose mean is linear in the score.

        For each of the two labels u = c_0 + c_1 x + c_2 x², with the derivatives of the correlation at the
        expected moments. Plans for ranks use the same formula.
        """
        x, (low, high) = self._scaled(population)
        first, second = averages(population, [x, x * x])
        if second - first**2 <= _MIN_SPREAD:
            problem = f"no forecast is possible for '{self.text}': all scores are equal"
            action = "Choose a score that differs between units, or plan for the mean."
            raise InputError(problem, given=f"{first:g}", action=action)
        product = SLOPE * second + (1.0 - SLOPE) * first**2
        m = np.array([first, first, second, (low + high) * first - low * high, product])
        function = type(self).planned
        slopes = numeric_gradient(function, m)
        expected = SLOPE * x + (1.0 - SLOPE) * float(first)
        chance = (expected - low) * (1.0 / (high - low))

        def of_label(y: float) -> Expression:
            base = float(slopes[1] * y + slopes[3] * y**2 - slopes @ m)
            return float(slopes[2]) * (x * x) + float(slopes[0] + slopes[4] * y) * x + base

        above = of_label(high)
        below = of_label(low)
        mean = chance * above + (1.0 - chance) * below
        square = chance * (above * above) + (1.0 - chance) * (below * below)
        return Influence(value=float(function(m)), mean=mean, square=square, cells=Cells(names=("all",)))


@dataclass(frozen=True, slots=True)
class PearsonCorrelation(Association, kind="pearson", statistic=pearson):
    """Pearson's correlation of a judge's scores and the labels.

    Examples
    --------
    >>> PearsonCorrelation("judge").text
    'pearson:judge'
    """


@dataclass(frozen=True, slots=True)
class SpearmanCorrelation(Association, kind="spearman", statistic=spearman):
    """Spearman's correlation: that of the ranks, with mean ranks of ties.

    Examples
    --------
    >>> SpearmanCorrelation("judge").text
    'spearman:judge'
    """


@dataclass(frozen=True, slots=True)
class IntraclassCorrelation(Association, kind="icc", statistic=intraclass, planned=_agreement):
    """The intraclass correlation of a judge's score and the label, for one of each (McGraw & Wong 1996).

    In the population it is Lin's concordance: 2 cov / (sum of the variances + squared difference of the
    means). It is below 1 for a judge whose scores are always one point higher than the labels.

    Examples
    --------
    >>> IntraclassCorrelation("judge").text
    'icc:judge'
    """


@dataclass(frozen=True, slots=True)
class WeightedKappa(IntraclassCorrelation, kind="weighted_kappa"):
    """Cohen's weighted kappa of scores: 1 − mean squared distance / that expected by chance (Cohen 1968).

    In the population it equals the intraclass correlation (Fleiss & Cohen 1973).

    Examples
    --------
    >>> WeightedKappa("judge").text
    'weighted_kappa:judge'
    """


@dataclass(frozen=True, slots=True)
class Bias(OfScores, kind="bias"):
    """The bias of a judge: the mean of its scores minus that of the labels.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy={"judge": [0.9, 0.7, 0.8, 0.6]})
    >>> sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=7)
    >>> labels = dict(enumerate([1, 0, 1, 0]))
    >>> round(stratal.estimate(sample, labels, estimand=Bias("judge")).value, 3)
    0.25
    """

    def influence(self, population: Population) -> Influence:
        """Return the influence of the mean of the labels, since the mean of the scores is known."""
        x, (low, high) = self._scaled(population)
        (first,) = averages(population, [x])
        expected = SLOPE * x + (1.0 - SLOPE) * float(first)
        square = x * x - 2.0 * (x * expected) + ((low + high) * expected - low * high)
        return Influence(value=0.0, mean=x - expected, square=square, cells=Cells(names=("all",)))

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the bias: the mean of score minus label."""
        x, y, _, labelled = self.units(sample, labels)
        score = self.score or only_proxy(sample)
        info = next(entry for entry in sample.proxy_info if entry.name == score)
        difference = np.full(sample.size, np.nan)
        difference[labelled] = x - y
        bounds: tuple[float, float] | None = None
        outcome: OutcomeKind = "unbounded"
        role = sample.question.score(score)
        on_scale = info.scaled or (role is not None and role.of_class is not None)
        if on_scale and info.bounds is not None and np.all(np.isfinite(info.bounds)):
            width = info.bounds[1] - info.bounds[0]
            bounds = (-width, width)
            outcome = "bounded"
        requested = replace(request, outcome=outcome, bounds=bounds, estimator="horvitz-thompson")
        # The differences are numbers, even if labels are words.
        question = sample.question.with_outcome(decoding=NUMBER, positive=None, mapping=None)
        numeric = replace(sample, question=question)
        return replace(Mean().estimate(numeric, difference, requested), label=self.label, null=0.0)


# Confidence level instead of 0, for which there is no interval.
_MIN_LEVEL = 1e-12

# Number of bins of equal width, as is usual for calibration errors (Guo et al. 2017).
N_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _BinsInterval(OffsetInterval):
    """Interval of a weighted sum of absolute differences between the means of labels and known means.

    The limits are the sums of the limits of the bins, because the sum of absolute values is not normal near 0
    and its estimate is biased upwards. The lower limit needs the correct limit in every bin, so that each bin
    gets its part of the error (Bonferroni). Above, errors of bins compensate each other.
    """

    terms: tuple[Estimate, ...]
    means: FloatArray
    shares: FloatArray

    method = "sum of bins"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the value."""
        low, high = self._limits_of_gaps(1.0 - error / len(self.terms))
        min_gaps = np.maximum(np.maximum(low, -high), 0.0)
        low, high = self._limits_of_gaps(1.0 - 2.0 * error)
        max_gaps = np.maximum(np.abs(low), np.abs(high))
        smallest = float(self.shares @ min_gaps)
        largest = float(self.shares @ max_gaps)
        return max(self.value - smallest, 0.0), largest - self.value

    def _limits_of_gaps(self, confidence_level: float) -> tuple[FloatArray, FloatArray]:
        """Return the limits (bins,) of the differences between labels' means and known means."""
        level = max(confidence_level, _MIN_LEVEL)
        ends = [term.confidence_interval(level) for term in self.terms]
        low = np.array([end.low for end in ends]) - self.means
        high = np.array([end.high for end in ends]) - self.means
        return low, high


def calibration_error(
    x: FloatArray, y: FloatArray, weighting: Weighting, target: str = "population"
) -> Estimate:
    """Return the expected calibration error of probabilities and labels (n,), with its interval."""
    bins = np.minimum((x * N_BINS).astype(int), N_BINS - 1)
    weights = weighting.weights / weighting.total
    shares = np.bincount(bins, weights, minlength=N_BINS).astype(np.float64)
    used = np.flatnonzero(shares > 0)
    gaps = np.bincount(bins, weights * (y - x), minlength=N_BINS)[used]
    value = float(np.abs(gaps).sum())
    signs = np.zeros(N_BINS)
    signs[used] = np.sign(gaps)
    influence = signs[bins] * (y - x) - value
    result = of_variable(value, influence / weighting.total, weighting, target)
    # Scores hardly differ within a bin. The interval of a mean of labels has a width even if all are equal.
    terms = tuple(
        domain_mean(y, bins == k, weighting, bounds=(0.0, 1.0), target=target) for k in used.tolist()
    )
    means = np.bincount(bins, weights * x, minlength=N_BINS)[used] / shares[used]
    interval = _BinsInterval(value=value, bounds=(0.0, 1.0), terms=terms, means=means, shares=shares[used])
    return linearised_estimate(result, weighting, interval=interval, target=target)


@dataclass(frozen=True, slots=True)
class CalibrationError(OfScores, kind="calibration_error"):
    """The expected calibration error: the mean absolute difference of mean label and mean score over bins.

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

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the error."""
        score = self.score or only_proxy(sample)
        role = sample.question.score(score)
        if role is not None and not is_probability(sample, score):
            raise InputError(
                f"a calibration error requires probabilities, but {score!r} is not one",
                given=f"{role.meaning} ({'declared' if role.declared else 'inferred'})",
                allowed="right, class:NAME",
                action="Declare what it predicts (predicts=, --predicts), or estimate a correlation: "
                "pearson, spearman or icc.",
            )
        x, y, respondents, _ = self.units(sample, labels)
        if not np.all((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)):
            raise InputError(
                "a calibration error requires probabilities and labels from 0 to 1",
                given=f"scores {x.min():g} to {x.max():g}, labels {y.min():g} to {y.max():g}",
                action="Estimate a correlation instead: pearson, spearman or icc.",
            )
        estimate = calibration_error(x, y, respondents.weighting, request.target)
        return respondents.complete(estimate, sample, label=self.label)


# Maximum number of classes in the report of a judge, since each has four rows. With more, only agreement and
# kappa are reported.
_MAX_CLASSES = 6

# The share of the units on which a judge gave no verdict.
MISSING_VERDICT_SHARE = "no_verdict"

# The label of a row (`metric`, `class`, and `judged` for cells), and its estimate.
JudgeRow = tuple[Mapping[str, str | None], Estimate]


@dataclass(frozen=True, slots=True)
class JudgeReport(Estimand, kind="judge", listed="judges", shown="verdict", of_classes=True):
    """Comparison of judges with people: agreement, kappa and rates of each class, or correlations of scores.

    Parameters
    ----------
    judges : sequence of str
        Group columns of verdicts in the words of the labels, or proxies with scores. Several judges, or
        repeated calls of one, have rows each, and rows of their consistency. Scores have rows of their mean,
        and three or more verdicts rows of their majority (the first named of tied judges decides).

    Notes
    -----
    For two classes, the share of a class is reported in three ways: from the labels by the design, from the
    judge's verdicts without correction, and by Rogan & Gladen (1978), who correct the share of the verdicts
    by the judge's error rates, as if the labels were of a simple random sample.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(groups={"judge": ["pass", "fail"] * 50})
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> labels = sample.groups["judge"].copy()
    >>> labels[:2] = "pass"
    >>> report = stratal.estimate(sample, labels, judge="judge")
    >>> report.of(metric="agreement").value >= 0.9
    True
    """

    judges: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.judges, str):
            names = self.judges.split(",")
        else:
            names = self.judges
        self._set(judges=tuple(dict.fromkeys(name.strip() for name in names)))

    def compares(self, predicted: str | bool, sample_answer: str | None) -> bool:
        """Return whether labels are compared with this column of answers."""
        return predicted is True or predicted in self.judges

    def influence(self, population: Population) -> Influence:
        """Return the influence of the first judge's agreement, or of its correlation if it gives scores."""
        first = self.judges[0]
        if first in population.proxy_names:
            return PearsonCorrelation(first).influence(population)
        return Estimand.parse_text(f"agreement:{first}").influence(population)

    def _are_scores(self, sample: Sample, labels: object) -> bool:
        """Return whether the judges give scores: proxies, or columns of ratings with labels 0 and 1."""
        if all(name in sample.proxy_names and name not in sample.groups for name in self.judges):
            return True
        return all(_holds_ratings(sample, labels, name) for name in self.judges)

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        if self._are_scores(sample, labels):
            numbers = _numbers_for_score(sample, labels, self.judges[0])
            return np.isfinite(number_column(sample, numbers, "label"))
        return judged_classes(sample, labels, self.judges[0]).labelled

    def decoded(self, sample: Sample, labels: object) -> Any:
        """Return labels in the spelling of the first judge's verdicts."""
        if self._are_scores(sample, labels):
            return labels
        return labels_as_verdicts(sample, labels, self.judges[0])

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimates:
        """Return a row for each quantity, labelled with `judge`, `metric` and `class`."""
        target = request.target
        judges = self.judges
        count = len(self.judges)
        report: list[tuple[str, Iterable[JudgeRow]]]
        if self._are_scores(sample, labels):
            report = [(name, _of_scores(sample, labels, name, target)) for name in judges]
            # Scores of different classes have no common mean.
            if count > 1 and len({_class_of(sample, name) for name in judges}) == 1:
                report.append((f"mean of {count}", _of_mean_score(sample, labels, judges, target)))
        else:
            if count > 2:  # the majority of two judges is the first one's verdict
                sample, judges = with_majority(sample, judges, labels)
            report = [(name, _of_verdicts(sample, labels, name, target)) for name in judges]
            if count > 1:
                consistency = _consistency(sample, labels, self.judges, target)
                report.append((f"{count} together", [({"metric": "consistency"}, consistency)]))
        judge_rows = [(name, label, row) for name, rows in report for label, row in rows]
        keys = ["metric", "class"]
        if any("judged" in label for _, label, _ in judge_rows):
            keys.append("judged")
        rows = [
            replace(row, label={"judge": name} | {key: label.get(key) for key in keys})
            for name, label, row in judge_rows
        ]
        verdicts = () if self._are_scores(sample, labels) else self.judges
        remarks = [remark for name in verdicts for remark in _no_verdict_remarks(sample, labels, name)]
        description = f", judge {', '.join(self.judges)}"
        return Estimates.from_rows(sample, rows, "judge", remarks, description)

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return agreement, kappa and the recall of each class in each group, for verdicts.

        A remark names each group in which a judge is worse than over all units. There, the upper limit of the
        group's interval is below the overall value, at a level that holds for all groups and quantities of a
        judge together (Bonferroni).
        """
        if self._are_scores(sample, labels):
            return Estimand.by(self, sample, labels, group, request)
        rows = []
        remarks = []
        for judge in self.judges:
            answered = judged_classes(sample, labels, judge)
            # The name of each quantity, its metric and its class.
            quantities: list[tuple[str, str, int | None]] = [
                ("agreement", "accuracy", None),
                ("kappa", "kappa", None),
            ]
            if len(answered.levels) <= _MAX_CLASSES:
                quantities += [("recall", "recall", k) for k in range(len(answered.levels))]
            has_verdict = _has_verdict(answered)
            group_rows = [
                answered.within(sample, group, name, k, request.target) for _, name, k in quantities
            ]
            level = 1.0 - _FAMILY_ERROR / max(sum(map(len, group_rows)), 1)
            for (quantity, name, k), estimates in zip(quantities, group_rows, strict=True):
                overall = answered.confusion.within(has_verdict, name, k, request.target).value
                class_name = None if k is None else answered.levels[k]
                description = quantity if k is None else f"{quantity} of {class_name!r}"
                label = {"judge": judge, "metric": quantity, "class": class_name}
                for domain, row in estimates.items():
                    rows.append(replace(row, label={"domain": domain} | label))
                    if row.confidence_interval(level).high < overall:
                        remarks.append(
                            f"in {domain!r} {description} of {judge!r} is lower than elsewhere: "
                            f"{row.value:.3f}, {overall:.3f} over all units"
                        )
        judges = ", ".join(self.judges)
        return Estimates.from_rows(sample, rows, "judge_groups", remarks, f", judge {judges} by group")


# Probability that a judge who is equally good in all groups is reported as worse in some group.
_FAMILY_ERROR = 0.05


def _has_verdict(answered: AnsweredClasses) -> BoolArray:
    """Return which of the labelled units (m,) have a verdict."""
    if answered.judged is None:
        return np.ones(len(answered.confusion.true), dtype=bool)
    return answered.judged


def _no_verdict_remarks(sample: Sample, labels: object, judge: str) -> list[str]:
    """Return a note on the drawn units without a verdict of a judge, with the texts in place of verdicts."""
    missing = no_verdicts(sample, labels, judge)
    if not np.any(missing):
        return []
    texts, counts = np.unique(sample.groups[judge][missing], return_counts=True)
    shown = ", ".join(
        f"{text or 'empty'!r} {count:,}" for text, count in zip(texts.tolist(), counts.tolist(), strict=True)
    )
    return [
        f"{int(missing.sum()):,} of {sample.size:,} drawn units have no verdict of {judge!r} ({shown}): the "
        "judge is compared with people on the others alone"
    ]


def _consistency(sample: Sample, labels: object, judges: tuple[str, ...], target: str) -> Estimate:
    """Return the share of equal verdicts among all pairs of verdicts on a unit."""
    has_verdict = np.stack([~no_verdicts(sample, labels, judge) for judge in judges])
    verdicts = np.stack([sample.groups[judge] for judge in judges])
    judge_pairs = list(combinations(range(len(judges)), 2))
    is_pair = np.array([has_verdict[a] & has_verdict[b] for a, b in judge_pairs])
    is_equal = np.array([verdicts[a] == verdicts[b] for a, b in judge_pairs])
    all_units = sample.weighting(np.ones(sample.size, dtype=bool))
    if np.all(is_pair):
        return mean_of(np.mean(is_equal, axis=0), all_units, target)
    n_pairs = is_pair.sum(axis=0)
    shares = (is_equal & is_pair).sum(axis=0) / np.maximum(n_pairs, 1)
    return domain_mean(shares, n_pairs > 0, all_units, bounds=(0.0, 1.0), target=target)


def with_majority(sample: Sample, judges: tuple[str, ...], labels: object) -> tuple[Sample, tuple[str, ...]]:
    """Return the sample with the majority of the judges as a group column, and the names with that column.

    In a tie, the first named of the tied judges decides. A judge without a verdict has no vote, unless no
    judge has a verdict.
    """
    name = f"majority of {len(judges)}"
    columns: AnyArray = np.stack([class_column(sample, judge, judge) for judge in judges])
    votes = np.sum(columns[:, None] == columns[None], axis=0)
    votes[np.stack([no_verdicts(sample, labels, judge) for judge in judges])] = 0
    chosen = columns[np.argmax(votes, axis=0), np.arange(sample.size)]
    return with_group(sample, name, dict(zip(sample.ids.tolist(), chosen, strict=True))), (*judges, name)


def _label_numbers(sample: Sample, labels: object) -> Any:
    """Return labels as numbers: 1 if the model's answer is the label's class, else 0.

    Labels that are not classes are unchanged.
    """
    if compared_column(sample, labels) is None:
        return labels
    observed = outcomes(sample, labels)
    numbers = np.full(sample.size, np.nan)
    numbers[observed.labelled] = observed.z
    return numbers


def _of_mean_score(sample: Sample, labels: object, judges: Sequence[str], target: str) -> Iterator[JudgeRow]:
    """Yield the rows that compare the mean score of several judges with labels."""
    labels = _numbers_for_score(sample, labels, judges[0])
    scores = np.mean([number_column(sample, name, name) for name in judges], axis=0)
    same = all(_on_scale_of_labels(sample, labels, name) for name in judges)
    yield from _associations(sample, labels, scores, target, same_scale=same)
    yield from _area(sample, labels, scores, target)


def _associations(
    sample: Sample, labels: object, scores: object, target: str, *, same_scale: bool
) -> Iterator[JudgeRow]:
    """Yield the correlations of labels with scores: the name of a proxy, or a score for each drawn unit (n,).

    The intraclass correlation requires the same scale of scores and labels.
    """
    x, y, respondents, _ = OfScores().units(sample, labels, scores)
    statistics = {"pearson": pearson, "spearman": spearman}
    if same_scale:
        statistics["icc"] = intraclass
    for name, statistic in statistics.items():
        estimate = association(statistic, x, y, respondents.weighting, target)
        yield {"metric": name}, respondents.complete(estimate, sample)


def _area(sample: Sample, labels: object, scores: object, target: str) -> Iterator[JudgeRow]:
    """Yield the area under the ROC curve of scores on any scale, if labels are 0 and 1."""
    x, y, respondents, _ = OfScores().units(sample, labels, scores)
    if _are_binary(y):
        area = ranking_metric(area_under_curve, x, y == 1, respondents.weighting, target)
        yield {"metric": "auc"}, respondents.complete(area, sample)


def _holds_ratings(sample: Sample, labels: object, judge: str) -> bool:
    """Return whether a judge's column contains numbers other than 0 and 1, and labels count as 0 or 1."""
    verdicts = sample.groups.get(judge)
    if verdicts is None:
        return judge in sample.proxy_names
    verdicts_present = set(verdicts[~no_verdicts(sample, labels, judge)].tolist())
    ratings = np.array([number_of_text(text) for text in verdicts_present], dtype=np.float64)
    if len(ratings) == 0 or not np.all(np.isfinite(ratings)) or _are_binary(ratings):
        return False
    try:
        numbers = number_column(sample, _label_numbers(sample, labels), "label")
    except LabelError:
        return False
    return _are_binary(numbers[np.isfinite(numbers)])


def _are_binary(numbers: FloatArray) -> bool:
    """Return whether all numbers (m,) are 0 or 1."""
    return bool(np.all((numbers == 0) | (numbers == 1)))


def _on_scale_of_labels(sample: Sample, labels: object, judge: str) -> bool:
    """Return whether a score is on the scale of the labels, so that their difference is meaningful.

    Labels 0 and 1 are on the scale of probabilities.
    """
    if judge not in sample.proxy_names:
        return False
    if _class_of(sample, judge) is not None:
        return True
    x, y, _, _ = OfScores().units(sample, labels, judge)
    role = sample.question.score(judge)
    info = next(entry for entry in sample.proxy_info if entry.name == judge)
    if not info.scaled or (role is not None and role.predicts == ORDER):
        return False
    if role is not None and role.is_rating and role.bounds != (0.0, 1.0) and _are_binary(y):
        return False
    low, high = info.bounds or (-np.inf, np.inf)
    if _are_binary(y):
        low = 0.0
        high = 1.0
    stated = sample.question.outcome.bounds
    if stated is not None and info.bounds is not None and stated != info.bounds:
        return False
    return bool(np.all((x >= low) & (x <= high)) and np.all((y >= low) & (y <= high)))


def is_probability(sample: Sample, score: str) -> bool:
    """Return whether a score may be a probability: it is not declared as a rating or an order."""
    role = sample.question.score(score)
    return role is None or role.is_probability or role.predicts == OUTCOME


def _class_of(sample: Sample, score: str) -> str | None:
    """Return the class whose probability a score is declared to be; None for other scores."""
    role = sample.question.score(score)
    if role is None:
        return None
    return role.of_class


def class_indicator(sample: Sample, labels: object, score: Score) -> FloatArray:
    """Return 1 where the label is the class that a score predicts, else 0 (n,); NaN without a label."""
    classes = class_column(sample, labels, "labels")
    present = {str(entry) for entry in classes if entry is not None}
    # A class may be missing from few labels, but not from labels that are declared to be numbers.
    if sample.question.compares is False and len(present) > 1:
        score.refuse_unknown_class(present, "the labels")
    return np.array([np.nan if entry is None else float(entry == score.of_class) for entry in classes])


def _numbers_for_score(sample: Sample, labels: object, score: str) -> Any:
    """Return the number of each label that a score is compared with."""
    role = sample.question.score(score)
    if role is None or role.of_class is None:
        return _label_numbers(sample, labels)
    return class_indicator(sample, labels, role)


def _of_scores(sample: Sample, labels: object, judge: str, target: str) -> Iterator[JudgeRow]:
    """Yield the rows that compare a judge's scores with labels."""
    if _class_of(sample, judge) is None:
        labels = _label_numbers(sample, labels)
    same_scale = _on_scale_of_labels(sample, labels, judge)
    yield from _associations(sample, labels, judge, target, same_scale=same_scale)
    if same_scale:
        yield from _of_one_scale(sample, labels, judge, target)
    yield from _area(sample, labels, judge, target)


def _of_one_scale(sample: Sample, labels: object, judge: str, target: str) -> Iterator[JudgeRow]:
    """Yield the bias of a score, and the calibration error if it is a probability."""
    if target == "population":
        yield {"metric": "bias"}, Bias(judge).estimate(sample, labels)
    x, y, _, _ = OfScores().units(sample, labels, judge)
    info = next(entry for entry in sample.proxy_info if entry.name == judge)
    in_range = np.all((x >= 0) & (x <= 1)) and np.all((y >= 0) & (y <= 1))
    if info.bounds == (0.0, 1.0) and in_range and is_probability(sample, judge):
        estimate = CalibrationError(judge).estimate(sample, labels, Request(target=target))
        yield {"metric": "calibration_error"}, estimate


def _of_verdicts(sample: Sample, labels: object, judge: str, target: str) -> Iterator[JudgeRow]:
    """Yield the rows that compare a judge's verdicts with labels."""
    labels = labels_as_verdicts(sample, labels, judge)
    answered = judged_classes(sample, labels, judge)
    agreement = Estimand.parse_text(f"agreement:{judge}")
    first = agreement.estimate(sample, labels, Request(target=target))
    assert isinstance(first, Estimate)
    yield {"metric": "agreement"}, first
    if answered.judged is not None:
        missing = no_verdicts(sample, labels, judge).astype(np.float64)
        all_units = sample.weighting(np.ones(sample.size, dtype=bool))
        yield {"metric": MISSING_VERDICT_SHARE}, mean_of(missing, all_units, target)
    metrics = ["kappa"]
    # Matthews' correlation of more than two classes has no interval for only a part of the units.
    if answered.judged is None or len(answered.levels) == 2:
        metrics.append("mcc")
    for name in metrics:
        yield {"metric": name}, answered.metric(sample, name, None, target)
    levels = answered.levels
    confusion = answered.confusion
    if len(levels) > _MAX_CLASSES:
        return
    for name in ("recall", "false_discovery_rate", "prevalence", "predicted_prevalence"):
        for k, level in enumerate(levels):
            row = answered.metric(sample, name, k, target)
            if name == "predicted_prevalence":
                row = replace(row, remarks=())  # they are about labels
            yield {"metric": name, "class": level}, row
    has_verdict = _has_verdict(answered)
    true = confusion.true[has_verdict]
    predicted = confusion.predicted[has_verdict]
    for k, level in enumerate(levels if len(levels) == 2 else ()):
        share = answered.metric(sample, "predicted_prevalence", k, target).value
        value, variance = rogan_gladen(true == k, predicted == k, share)
        # Its variance is that of binomial counts, and not of a linearised variable.
        corrected = replace(
            undefined(0),
            value=value,
            variable=np.zeros(len(confusion.true)),
            design_variance=variance,
            degrees_of_freedom=np.inf,
        )
        row = linearised_estimate(corrected, confusion.weighting, bounds=(0.0, 1.0), target=target)
        yield {"metric": "rogan_gladen", "class": level}, row
    for k, level in enumerate(levels):
        for j, other in enumerate(levels):
            cell = (confusion.true == k) & (confusion.predicted == j)
            unit = cell.astype(np.float64)
            if answered.judged is None:
                estimate = mean_of(unit, confusion.weighting, target)
            else:
                estimate = domain_mean(
                    unit, has_verdict, confusion.weighting, bounds=(0.0, 1.0), target=target
                )
            label = {"metric": "share", "class": level, "judged": other}
            yield label, answered.respondents.complete(estimate, sample)


def rogan_gladen(true: BoolArray, judged: BoolArray, share: float) -> tuple[float, float]:
    """Return Rogan & Gladen's estimate from labels (n,) and the judge's share, with its variance.

    (p + specificity − 1) / (recall + specificity − 1), clipped to 0 and 1, with the variance of the delta
    method. NaN if the labels do not show both rates, or if the judge is not better than chance.
    """
    n_true = float(true.sum())
    n_false = float((~true).sum())
    if n_true == 0 or n_false == 0:
        return np.nan, np.nan
    recall = float(judged[true].mean())
    false_positive_rate = float(judged[~true].mean())
    youden = recall - false_positive_rate
    if youden <= 0:
        return np.nan, np.nan
    value = min(max((share - false_positive_rate) / youden, 0.0), 1.0)
    recall_variance = recall * (1.0 - recall) / n_true
    rate_variance = false_positive_rate * (1.0 - false_positive_rate) / n_false
    variance = value**2 * recall_variance + (1.0 - value) ** 2 * rate_variance
    return value, variance / youden**2
