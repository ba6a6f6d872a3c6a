"""Judges against people: correlations, bias and calibration of scores, and all that labels say of judges.

All but the bias are functions of the joint distribution of score and label, with linearised variables. An
interval of a correlation is Fisher's: Student's t on the scale of its inverse hyperbolic tangent, where a
correlation near 1 has room. Two guards are added. The labels are mixed with one label's worth of pairs whose
label is another unit's, so that a few pairs that all agree leave open that others do not. The more the labels
show of the variance, and of units that disagree with the score, the less these pairs count. And the variance
of a heavy-tailed variable, as of rare disagreements, is known less well than its labels are many: its degrees
of freedom are those of its kurtosis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, number_of_text
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError
from stratal.estimation.estimand import PLAIN, Estimand, Request
from stratal.estimation.estimate import Estimate, Estimates, linearised_estimate, undefined_estimate
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
from stratal.metrics.confusion import mixed_variance, smoothed_variance
from stratal.metrics.numeric_errors import LARGEST_PART, MIN_ERRORS_FOR_TAILS, largest_share
from stratal.metrics.ranking import area_under_curve, only_proxy, ranking_metric
from stratal.population.expressions import Cells, Expression, NumberColumn
from stratal.population.influence import Influence, averages
from stratal.population.population import Population
from stratal.question.question import NUMBER
from stratal.question.scores import ORDER, OUTCOME, Score
from stratal.report.notes import Note

# Scores, labels and weights (n,) that sum to 1: the value, and the influence of each unit (n,).
Pairs = Callable[[FloatArray, FloatArray, FloatArray], tuple[float, FloatArray]]

# A variance of this size is rounding: all values are equal.
_DUST = 1e-12
# The correlation nearest 1 that has an inverse hyperbolic tangent to compute with.
_WITHIN = 1.0 - 1e-9

# Other units whose labels a unit's score is paired with, spread over the sample: eight times the labels are
# enough for the one label's worth that these pairs count.
_PARTNERS = 8


def _moments(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.column_stack([x, y, x * x, y * y, x * y])


def _of_moments(function: Callable[[FloatArray], float]) -> Pairs:
    """Return a function of the means of x, y, x², y² and xy, of standardised scores and labels."""

    def of(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
        # On one scale for both: what compares the two is changed by no common shift and scale.
        centre = float(weights @ (x + y)) / 2.0
        scale = float(np.sqrt(weights @ ((x - centre) ** 2 + (y - centre) ** 2)))
        variables = _moments(*((part - centre) / (scale if scale > 0 else 1.0) for part in (x, y)))
        means = weights @ variables
        with np.errstate(divide="ignore", invalid="ignore"):
            value = function(means)
            slopes = numeric_gradient(function, means)
        return value, (variables - means) @ slopes

    return of


def _correlation(m: FloatArray) -> float:
    spread = (m[2] - m[0] ** 2) * (m[3] - m[1] ** 2)
    if spread > _DUST**2:
        return float((m[4] - m[0] * m[1]) / np.sqrt(spread))
    return np.nan


def _agreement(m: FloatArray) -> float:
    spread = float(m[2] + m[3] - 2.0 * m[0] * m[1])
    if spread > _DUST:
        return 2.0 * float(m[4] - m[0] * m[1]) / spread
    return np.nan


pearson, intraclass = map(_of_moments, (_correlation, _agreement))


def _placed(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return P(V < v) + ½ P(V = v) of each unit, and what sums a (n,) over the units above, ties by half."""
    _, group = np.unique(values, return_inverse=True)
    of_group = np.bincount(group, weights)
    places = (np.cumsum(of_group) - of_group / 2.0)[group]

    def above(a: FloatArray) -> FloatArray:
        sums = np.bincount(group, a)
        return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2.0)[group])

    return places, above


def spearman(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Return the correlation of the ranks, ties at their mean, and the units' influences (n,).

    A unit adds to the moments of the ranks by its own, and moves the ranks of the units above it.

    Examples
    --------
    >>> x, y = np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 1, 4, 3, 5])
    >>> round(spearman(x, y, np.full(5, 0.2))[0], 3)
    0.8
    """
    (ranks_of_x, above), (ranks_of_y, above_other) = _placed(x, weights), _placed(y, weights)
    variables = _moments(ranks_of_x, ranks_of_y)
    means = weights @ variables
    slopes = numeric_gradient(_correlation, means)
    influence = (variables - means) @ slopes
    for places, partner, sums, k in (
        (ranks_of_x, ranks_of_y, above, 0),
        (ranks_of_y, ranks_of_x, above_other, 1),
    ):
        moved = weights * (slopes[k] + 2.0 * slopes[2 + k] * places + slopes[4] * partner)
        influence = influence + sums(moved) - float(moved @ places)
    return _correlation(means), np.asarray(influence)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FisherInterval(OffsetInterval):
    """Student's t on the inverse hyperbolic tangent of a correlation (Fisher 1921)."""

    standard_error: float
    degrees_of_freedom: float

    method = "fisher"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the correlation."""
        if self.standard_error == 0.0:
            return 0.0, 0.0
        value = min(max(self.value, -_WITHIN), _WITHIN)
        reach = -float(student_quantile(error, self.degrees_of_freedom))
        reach *= self.standard_error / (1.0 - value**2)
        low = np.tanh(np.arctanh(value) - reach)
        high = np.tanh(np.arctanh(value) + reach)
        return max(self.value - float(low), 0.0), max(float(high) - self.value, 0.0)


def association(
    statistic: Pairs, x: FloatArray, y: FloatArray, weighting: Weighting, target: str = "population"
) -> Estimate:
    """Return how far scores and labels (n,) go together, from −1 to 1, with its interval."""
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
    # As far on Fisher's scale: at a value near 1 the smoothed error would reach all over it.
    room = (1.0 - min(value**2, 1.0)) / max(1.0 - smooth.value**2, 1.0 - _WITHIN)
    plain_limits = replace(smooth, value=value, standard_error=smooth.standard_error * room)
    interval = OuterInterval(value=value, bounds=bounds, first=plain_limits, second=smooth)
    if has_error or weighting.census:
        reported_error = result.standard_error
    else:
        reported_error = None
    return linearised_estimate(
        result,
        weighting,
        interval=interval,
        target=target,
        standard_error=smooth.standard_error if reported_error is None else reported_error,
        degrees_of_freedom=smooth.degrees_of_freedom,
    )


def _smoothed(
    statistic: Pairs, x: FloatArray, y: FloatArray, weighting: Weighting, result: Linearised, target: str
) -> FisherInterval:
    """Return the limits around the value of the labels mixed with pairs of one unit's score, another's label.

    These pairs count as much as `pseudo_label_share`.
    """
    n = len(x)
    pair_share, degrees_of_freedom = pseudo_label_share(result, weighting, _exceptions(x, y, weighting))
    steps = np.unique(np.linspace(1, max(n - 1, 1), _PARTNERS).astype(int))
    pairs = [np.roll(np.arange(n), int(step)) for step in steps]
    unit_shares = np.full(n, pair_share)
    if len(np.unique(y)) == 2:
        unit_shares = np.maximum(unit_shares, adaptive_label_share(y == y.max(), weighting))
    shares = np.concatenate([1.0 - unit_shares, *(unit_shares / len(pairs) for _ in pairs)])
    weights = shares * np.tile(weighting.weights, 1 + len(pairs))
    both = np.tile(x, 1 + len(pairs)), np.concatenate([y, *(y[pair] for pair in pairs)])
    value, influence = statistic(*both, weights / weights.sum())
    if not np.isfinite(value) or weighting.census:
        return FisherInterval(
            value=result.value, bounds=(-1.0, 1.0), standard_error=0.0, degrees_of_freedom=np.inf
        )
    influence = influence / weighting.total
    hidden = mixed_variance(weighting, shares, influence) * weighting.total**2
    largest, _ = smoothed_variance(hidden, influence, weights, result, weighting, target)
    return FisherInterval(
        value=min(max(value, -1.0), 1.0),
        bounds=(-1.0, 1.0),
        standard_error=float(np.sqrt(largest)),
        degrees_of_freedom=max(degrees_of_freedom, 1.0),
    )


def _exceptions(x: FloatArray, y: FloatArray, weighting: Weighting) -> FloatArray:
    """Return what the labels (n,) differ by from their isotonic fit on the scores, rising or falling.

    Right and wrong answers can agree with the score in every stratum. Then the variance within strata is near
    0, however many units of the population disagree: coverage was .71 with 1% of such units and 100 labels.
    """
    from scipy.optimize import isotonic_regression

    inverse = np.unique(x, return_inverse=True)[1]
    weight = np.bincount(inverse, weighting.weights)
    means = np.bincount(inverse, weighting.weights * y) / weight
    fits = (isotonic_regression(means, weights=weight, increasing=rising).x for rising in (True, False))
    residuals = [y - fit[inverse] for fit in fits]
    return min(residuals, key=lambda each: float(weighting.weights @ each**2))


# Share of the squared influence that the largest 2% of the labels hold above which a correlation has a note:
# exceeded by a tenth of samples of 100 labels with normal noise, by half with t noise (3 degrees of freedom).
_HEAVY_INFLUENCE_SHARE = 0.45


# How steeply labels are expected to follow the score before there are any: as a plan for a mean has it.
SLOPE = 0.8


@dataclass(frozen=True, slots=True)
class OfScores(Estimand, listed="score", shown="judge"):
    """A comparison of a judge's scores with the labels, which are numbers.

    Parameters
    ----------
    score : str, optional
        The proxy that holds the judge's score; the only one unless given.
    """

    score: str | None = None

    def units(
        self, sample: Sample, labels: object, scores: object = None
    ) -> tuple[FloatArray, FloatArray, Respondents, BoolArray]:
        """Return scores and labels (m,) of the labelled units, and which of the drawn these are (n,)."""
        if scores is not None:
            score_column = scores
        else:
            score_column = self.score or only_proxy(sample)
        if isinstance(score_column, str):
            score = sample.question.score(score_column)
        else:
            score = None
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
        """Return the score, and the bounds of the labels' scale that it is on."""
        info = population.proxy_info(self.score)
        if not info.scaled or info.bounds is None or not np.all(np.isfinite(info.bounds)):
            problem = f"'{self.kind}' cannot be planned for: the score has no scale of the labels"
            action = "Give the labels' bounds (bounds=, --bounds), or plan for the mean."
            raise InputError(problem, given=repr(info.name), action=action)
        return NumberColumn(name=info.name), info.bounds


@dataclass(frozen=True, slots=True)
class Association(OfScores):
    """A correlation of scores and labels."""

    statistic: ClassVar[Pairs]
    # The function of the moments by which a plan expects it.
    planned: ClassVar[Callable[[FloatArray], float]] = _correlation

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return how far scores and labels go together."""
        x, y, frame, _ = self.units(sample, labels)
        estimate = association(type(self).statistic, x, y, frame.weighting, request.target)
        notes = self._tail_notes(y, estimate)
        if notes:
            estimate = replace(estimate, remarks=(*estimate.remarks, *notes))
        return frame.complete(estimate, sample, label=self.label)

    def _tail_notes(self, labels: FloatArray, estimate: Estimate) -> tuple[Note, ...]:
        """Return a warning where a few labels (n,) without bounds decide the variance of the correlation."""
        if type(self).statistic is spearman or len(labels) < MIN_ERRORS_FOR_TAILS:
            return ()
        share = largest_share(estimate.evidence.residuals)
        if share <= _HEAVY_INFLUENCE_SHARE:
            return ()
        text = (
            f"{LARGEST_PART:.0%} of the labels hold {share:.0%} of the squared influence on {self.text}: if "
            "labels have heavy tails, the interval covers less often than it states, because rare extreme "
            "labels may be missing from the sample. Report the correlation of ranks (spearman)"
        )
        return (Note("heavy-tails", text),)

    def influence(self, population: Population) -> Influence:
        """Return the moments of the influence where labels are at either bound and follow the score.

        u = c_0 + c_1 x for each of the two labels, plus c_2 x², with the slopes of the correlation at the
        moments that are expected. Ranks and distances are planned for as the correlation.
        """
        x, (low, high) = self._scaled(population)
        first, second = averages(population, [x, x * x])
        if second - first**2 <= _DUST:
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
    """Spearman's correlation: that of the ranks, ties at their mean.

    Examples
    --------
    >>> SpearmanCorrelation("judge").text
    'spearman:judge'
    """


@dataclass(frozen=True, slots=True)
class IntraclassCorrelation(Association, kind="icc", statistic=intraclass, planned=_agreement):
    """The intraclass correlation of a judge's score and the label, for one of each (McGraw & Wong 1996).

    Of the whole population: 2 cov over the variances' sum and the squared difference of the means (Lin's
    concordance): a judge that is always a point higher disagrees.

    Examples
    --------
    >>> IntraclassCorrelation("judge").text
    'icc:judge'
    """


@dataclass(frozen=True, slots=True)
class WeightedKappa(IntraclassCorrelation, kind="weighted_kappa"):
    """Cohen's weighted kappa of scores on a scale: 1 less the squared distance over that of chance (1968).

    Of the whole population it is the intraclass correlation (Fleiss & Cohen 1973).

    Examples
    --------
    >>> WeightedKappa("judge").text
    'weighted_kappa:judge'
    """


@dataclass(frozen=True, slots=True)
class Bias(OfScores, kind="bias"):
    """The mean of a judge's score less that of the labels: what the raw mean of a judge is wrong by.

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
        """Return what a plan expects of the mean: the score's own mean is known."""
        x, (low, high) = self._scaled(population)
        (first,) = averages(population, [x])
        expected = SLOPE * x + (1.0 - SLOPE) * float(first)
        square = x * x - 2.0 * (x * expected) + ((low + high) * expected - low * high)
        return Influence(value=0.0, mean=x - expected, square=square, cells=Cells(names=("all",)))

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the bias: the mean of score less label."""
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
        # Differences are numbers, whatever the labels are.
        question = sample.question.with_outcome(decoding=NUMBER, positive=None, mapping=None)
        numeric = replace(sample, question=question)
        return replace(Mean().estimate(numeric, difference, requested), label=self.label, null=0.0)


# Of equal width, as calibration errors are usually taken (Guo et al. 2017).
BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _BinsInterval(OffsetInterval):
    """A weighted sum of absolute differences of labels' means from known ones, each with its interval.

    An end is the sum of the bins' ends: the sum of absolute values is far from normal where all are near 0,
    and its own estimate then lies above it. Below, an error in any one bin would be one of the sum, so that
    each has its part of what may be left out (Bonferroni); above, the other bins' room makes up for it.
    """

    terms: tuple[Estimate, ...]
    means: FloatArray
    shares: FloatArray

    method = "sum of bins"

    def lengths(self, error: float, alternative: str) -> tuple[float, float]:
        """Return how far the ends lie below and above the value."""
        outer, inner = (max(1.0 - part * error, _DUST) for part in (1.0 / len(self.terms), 2.0))
        (below, above), (low, high) = (
            np.array([[*term.confidence_interval(level)] for term in self.terms]).T - self.means
            for level in (outer, inner)
        )
        least = np.maximum(np.maximum(below, -above), 0.0)
        most = np.maximum(np.abs(low), np.abs(high))
        return max(self.value - float(self.shares @ least), 0.0), float(self.shares @ most) - self.value


def calibration_error(
    x: FloatArray, y: FloatArray, weighting: Weighting, target: str = "population"
) -> Estimate:
    """Return the expected calibration error of probabilities and labels (n,), with its interval."""
    bins = np.minimum((x * BINS).astype(int), BINS - 1)
    weights = weighting.weights / weighting.total
    shares = np.bincount(bins, weights, minlength=BINS).astype(np.float64)
    used = np.flatnonzero(shares > 0)
    gap = np.bincount(bins, weights * (y - x), minlength=BINS)[used]
    value = float(np.abs(gap).sum())
    signs = np.zeros(BINS)
    signs[used] = np.sign(gap)
    influence = signs[bins] * (y - x) - value
    result = of_variable(value, influence / weighting.total, weighting, target)
    # Of the labels' means: within a bin scores hardly differ, and labels that all agree have a guard.
    terms = tuple(
        domain_mean(y, bins == k, weighting, bounds=(0.0, 1.0), target=target) for k in used.tolist()
    )
    means = np.bincount(bins, weights * x, minlength=BINS)[used] / shares[used]
    interval = _BinsInterval(value=value, bounds=(0.0, 1.0), terms=terms, means=means, shares=shares[used])
    return linearised_estimate(result, weighting, interval=interval, target=target)


@dataclass(frozen=True, slots=True)
class CalibrationError(OfScores, kind="calibration_error"):
    """The expected calibration error: how far the labels' mean is off the score's, over bins of the score.

    Its estimate is never below 0 and few labels make it too large; the interval knows that, and holds 0 where
    the judge may be calibrated.

    Examples
    --------
    >>> CalibrationError("judge").text
    'calibration_error:judge'
    """

    def influence(self, population: Population) -> Influence:
        """Return what a plan expects of the bias, whose parts it sums."""
        return Bias(self.score).influence(population)

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimate:
        """Return the error."""
        score = self.score or only_proxy(sample)
        role = sample.question.score(score)
        if role is not None and not is_probability(sample, score):
            raise InputError(
                f"a calibration error requires probabilities, and {score!r} is none",
                given=f"{role.meaning} ({'declared' if role.declared else 'inferred'})",
                allowed="right, class:NAME",
                action="Declare what it predicts (predicts=, --predicts), or ask how far they go together: "
                "pearson, spearman or icc.",
            )
        x, y, frame, _ = self.units(sample, labels)
        if not np.all((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)):
            raise InputError(
                "a calibration error requires probabilities and labels from 0 to 1",
                given=f"scores {x.min():g} to {x.max():g}, labels {y.min():g} to {y.max():g}",
                action="Ask for their association: pearson, spearman or icc.",
            )
        estimate = calibration_error(x, y, frame.weighting, request.target)
        return frame.complete(estimate, sample, label=self.label)


# A judge with more verdicts is described by its agreement alone: each class has four rows.
_MAX_CLASSES = 6

# The share of the units on which a judge gave no verdict.
MISSING_VERDICT_SHARE = "no_verdict"

# What a row is of, `metric`, `class` and where it is a cell `judged`, and its estimate.
JudgeRow = tuple[Mapping[str, str | None], Estimate]


@dataclass(frozen=True, slots=True)
class JudgeReport(Estimand, kind="judge", listed="judges", shown="verdict", of_classes=True):
    """Judges against people: agreement, kappa, what each finds and what it calls so wrongly; or its scores.

    Parameters
    ----------
    judges : sequence of str
        Group columns of verdicts, which are called as the labels are; or proxies that hold scores. Several,
        or repeated calls of one, have rows each, and also how far they agree with each other, and their mean
        or, of three and more, their majority (a tie is the verdict of the one that is named first).

    Notes
    -----
    Of two classes there are three readings of each class's share: the labels', as the sample was drawn; the
    judge's own, which no label corrects; and Rogan & Gladen's (1978), which corrects the judge's by the rates
    at which the labels find it right, taken for labels of a random sample.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(groups={"judge": ["pass", "fail"] * 50})
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    >>> labels = sample.groups["judge"].copy()
    >>> labels[:2] = "pass"
    >>> found = stratal.estimate(sample, labels, judge="judge")
    >>> found.of(metric="agreement").value >= 0.9
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
        """Return that of the first one's agreement, or of its correlation where it gives scores."""
        first = self.judges[0]
        if first in population.proxy_names:
            return PearsonCorrelation(first).influence(population)
        return Estimand.parse_text(f"agreement:{first}").influence(population)

    def _scores(self, sample: Sample, labels: object) -> bool:
        """Return whether the judges give scores: proxies, or columns of ratings where labels are 0 and 1."""
        if all(name in sample.proxy_names and name not in sample.groups for name in self.judges):
            return True
        return all(_rates(sample, labels, name) for name in self.judges)

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        if self._scores(sample, labels):
            numbers = _numbers_for_score(sample, labels, self.judges[0])
            return np.isfinite(number_column(sample, numbers, "label"))
        return judged_classes(sample, labels, self.judges[0]).labelled

    def decoded(self, sample: Sample, labels: object) -> Any:
        """Return labels in the spelling of the first judge's verdicts."""
        if self._scores(sample, labels):
            return labels
        return labels_as_verdicts(sample, labels, self.judges[0])

    def estimate(self, sample: Sample, labels: object, request: Request = PLAIN) -> Estimates:
        """Return a row for each quantity, labelled with `judge`, `metric` and `class`."""
        target = request.target
        judges = self.judges
        count = len(self.judges)
        each: list[tuple[str, Iterable[JudgeRow]]]
        if self._scores(sample, labels):
            each = [(name, _of_scores(sample, labels, name, target)) for name in judges]
            # Scores of different classes have no common mean.
            if count > 1 and len({_class_of(sample, name) for name in judges}) == 1:
                each.append((f"mean of {count}", _of_mean_score(sample, labels, judges, target)))
        else:
            if count > 2:  # of two, that of the first
                sample, judges = with_majority(sample, judges, labels)
            each = [(name, _of_verdicts(sample, labels, name, target)) for name in judges]
            if count > 1:
                same = _consistency(sample, labels, self.judges, target)
                each.append((f"{count} together", [({"metric": "consistency"}, same)]))
        rows_found = [(name, of, row) for name, rows in each for of, row in rows]
        keys = ("metric", "class", *(["judged"] if any("judged" in of for _, of, _ in rows_found) else []))
        rows = [
            replace(row, label={"judge": name} | {key: of.get(key) for key in keys})
            for name, of, row in rows_found
        ]
        verdicts = () if self._scores(sample, labels) else self.judges
        remarks = [remark for name in verdicts for remark in _no_verdict_remarks(sample, labels, name)]
        description = f", judge {', '.join(self.judges)}"
        return Estimates.from_rows(sample, rows, "judge", remarks, description)

    def by(self, sample: Sample, labels: object, group: object, request: Request = PLAIN) -> Estimates:
        """Return agreement, kappa and what is found of each class in each group, for verdicts.

        A remark names each group in which a judge is worse than over all units: the group's interval, at a
        level that holds for all groups and quantities of a judge together (Bonferroni), lies below.
        """
        if self._scores(sample, labels):
            return Estimand.by(self, sample, labels, group, request)
        rows = []
        remarks = []
        for judge in self.judges:
            answered = judged_classes(sample, labels, judge)
            several = range(len(answered.levels) if len(answered.levels) <= _MAX_CLASSES else 0)
            requested: list[tuple[str, str, int | None]] = [("recall", "recall", k) for k in several]
            requested = [("agreement", "accuracy", None), ("kappa", "kappa", None), *requested]
            everyone = _compared(answered)
            each = [answered.within(sample, group, name, k, request.target) for _, name, k in requested]
            level = 1.0 - _ERROR / max(sum(map(len, each)), 1)
            for (metric, name, k), row_of_group in zip(requested, each, strict=True):
                overall = answered.confusion.within(everyone, name, k, request.target).value
                if k is None:
                    level_name = None
                else:
                    level_name = answered.levels[k]
                of = {"judge": judge, "metric": metric, "class": level_name}
                rows += [replace(row, label={"domain": part} | of) for part, row in row_of_group.items()]
                if k is None:
                    shown = metric
                else:
                    shown = f"{metric} of {level_name!r}"
                remarks += [
                    f"in {part!r} {shown} of {judge!r} is lower than elsewhere: {row.value:.3f}, "
                    f"{overall:.3f} over all units"
                    for part, row in row_of_group.items()
                    if row.confidence_interval(level).high < overall
                ]
        judges = ", ".join(self.judges)
        return Estimates.from_rows(sample, rows, "judge_groups", remarks, f", judge {judges} by group")


# Chance that a judge who is as good in every group is called worse in one.
_ERROR = 0.05


def _compared(answered: AnsweredClasses) -> BoolArray:
    """Return which of the labelled units (m,) have a verdict."""
    if answered.judged is None:
        return np.ones(len(answered.confusion.true), dtype=bool)
    return answered.judged


def _no_verdict_remarks(sample: Sample, labels: object, judge: str) -> list[str]:
    """Return how many drawn units have no verdict of a judge, and in which words."""
    missing = no_verdicts(sample, labels, judge)
    if not np.any(missing):
        return []
    words, counts = np.unique(sample.groups[judge][missing], return_counts=True)
    shown = ", ".join(
        f"{word or 'empty'!r} {count:,}" for word, count in zip(words.tolist(), counts.tolist(), strict=True)
    )
    return [
        f"{int(missing.sum()):,} of {sample.size:,} drawn units have no verdict of {judge!r} ({shown}): the "
        "judge is compared with people on the others alone"
    ]


def _consistency(sample: Sample, labels: object, judges: tuple[str, ...], target: str) -> Estimate:
    """Return how often two judges say the same, over the pairs of verdicts on a unit."""
    has_verdict = np.stack([~no_verdicts(sample, labels, judge) for judge in judges])
    verdicts = np.stack([sample.groups[judge] for judge in judges])
    both = np.array([has_verdict[a] & has_verdict[b] for a, b in combinations(range(len(judges)), 2)])
    equal = np.array([verdicts[a] == verdicts[b] for a, b in combinations(range(len(judges)), 2)])
    all_units = sample.weighting(np.ones(sample.size, dtype=bool))
    if np.all(both):
        return mean_of(np.mean(equal, axis=0), all_units, target)
    pairs = both.sum(axis=0)
    shares = (equal & both).sum(axis=0) / np.maximum(pairs, 1)
    return domain_mean(shares, pairs > 0, all_units, bounds=(0.0, 1.0), target=target)


def with_majority(sample: Sample, judges: tuple[str, ...], labels: object) -> tuple[Sample, tuple[str, ...]]:
    """Return the sample with the judges' majority as a group column, and all their names.

    A tie is the verdict of the one that is named first among those tied; a judge without a verdict has no
    vote, unless none has one.
    """
    name = f"majority of {len(judges)}"
    columns: AnyArray = np.stack([class_column(sample, judge, judge) for judge in judges])
    votes = np.sum(columns[:, None] == columns[None], axis=0)
    votes[np.stack([no_verdicts(sample, labels, judge) for judge in judges])] = 0
    chosen = columns[np.argmax(votes, axis=0), np.arange(sample.size)]
    return with_group(sample, name, dict(zip(sample.ids.tolist(), chosen, strict=True))), (*judges, name)


def _label_numbers(sample: Sample, labels: object) -> Any:
    """Return the number of each label; of compared classes whether the answer is right.

    Labels that are numbers, or words that stand for numbers, stay as they are.
    """
    if compared_column(sample, labels) is None:
        return labels
    observed = outcomes(sample, labels)
    numbers = np.full(sample.size, np.nan)
    numbers[observed.labelled] = observed.z
    return numbers


def _of_mean_score(sample: Sample, labels: object, judges: Sequence[str], target: str) -> Iterator[JudgeRow]:
    """Yield what compares the mean of several judges' scores with labels."""
    labels = _numbers_for_score(sample, labels, judges[0])
    scores = np.mean([number_column(sample, name, name) for name in judges], axis=0)
    same = all(_on_scale_of_labels(sample, labels, name) for name in judges)
    yield from _associations(sample, labels, scores, target, same_scale=same)
    yield from _area(sample, labels, scores, target)


def _associations(
    sample: Sample, labels: object, scores: object, target: str, *, same_scale: bool
) -> Iterator[JudgeRow]:
    """Yield how far scores go together with labels: a proxy's name, or a score for each drawn unit (n,).

    An intraclass correlation compares values, and is of one scale alone.
    """
    x, y, frame, _ = OfScores().units(sample, labels, scores)
    statistics = {"pearson": pearson, "spearman": spearman}
    if same_scale:
        statistics["icc"] = intraclass
    for name, statistic in statistics.items():
        estimate = association(statistic, x, y, frame.weighting, target)
        yield {"metric": name}, frame.complete(estimate, sample)


def _area(sample: Sample, labels: object, scores: object, target: str) -> Iterator[JudgeRow]:
    """Yield the area under the curve of scores, on any scale, if labels are right and wrong."""
    x, y, frame, _ = OfScores().units(sample, labels, scores)
    if _are_binary(y):
        area = ranking_metric(area_under_curve, x, y == 1, frame.weighting, target)
        yield {"metric": "auc"}, frame.complete(area, sample)


def _rates(sample: Sample, labels: object, judge: str) -> bool:
    """Return whether a column of verdicts holds numbers other than 0 and 1, and labels count as 0 or 1."""
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
    """Return whether a score is on the scale of the labels, so that their difference means something.

    Labels of right and wrong are on the scale of probabilities.
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
    if _are_binary(y):
        low = 0.0
        high = 1.0
    else:
        low, high = info.bounds or (-np.inf, np.inf)
    stated = sample.question.outcome.bounds
    if stated is not None and info.bounds is not None and stated != info.bounds:
        return False
    return bool(np.all((x >= low) & (x <= high)) and np.all((y >= low) & (y <= high)))


def is_probability(sample: Sample, score: str) -> bool:
    """Return whether a score can be a probability: it is declared as no rating and no order."""
    role = sample.question.score(score)
    return role is None or role.is_probability or role.predicts == OUTCOME


def _class_of(sample: Sample, score: str) -> str | None:
    """Return the class of which a score is declared to be the probability."""
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
    # Matthews' correlation of more than two classes has no interval within a part of the units.
    of_all = answered.judged is None or len(answered.levels) == 2
    for name in ("kappa", *(["mcc"] if of_all else [])):
        yield {"metric": name}, answered.metric(sample, name, None, target)
    levels = answered.levels
    confusion = answered.confusion
    if len(levels) > _MAX_CLASSES:
        return
    for name in ("recall", "false_discovery_rate", "prevalence", "predicted_prevalence"):
        for k, level in enumerate(levels):
            row = answered.metric(sample, name, k, target)
            if name == "predicted_prevalence":
                shown = replace(row, remarks=())
            else:
                shown = row
            yield {"metric": name, "class": level}, shown
    compared = _compared(answered)
    true = confusion.true[compared]
    predicted = confusion.predicted[compared]
    for k, level in enumerate(levels if len(levels) == 2 else ()):
        share = answered.metric(sample, "predicted_prevalence", k, target).value
        value, variance = rogan_gladen(true == k, predicted == k, share)
        nothing = np.zeros(len(confusion.true))
        corrected = replace(undefined(0), value=value, variable=nothing, design_variance=variance)
        corrected = replace(corrected, degrees_of_freedom=np.inf)
        row = linearised_estimate(corrected, confusion.weighting, bounds=(0.0, 1.0), target=target)
        yield {"metric": "rogan_gladen", "class": level}, row
    for k, level in enumerate(levels):
        for j, other in enumerate(levels):
            cell = (confusion.true == k) & (confusion.predicted == j)
            unit = cell.astype(np.float64)
            if answered.judged is None:
                estimate = mean_of(unit, confusion.weighting, target)
            else:
                estimate = domain_mean(unit, compared, confusion.weighting, bounds=(0.0, 1.0), target=target)
            of = {"metric": "share", "class": level, "judged": other}
            yield of, answered.frame.complete(estimate, sample)


def rogan_gladen(true: BoolArray, judged: BoolArray, share: float) -> tuple[float, float]:
    """Return Rogan & Gladen's estimate from labels (n,) and the judge's share, with its variance.

    (p + specificity − 1) / (recall + specificity − 1), cut at 0 and 1, with the delta method's variance. NaN
    where the labels do not tell both rates, or the judge is no better than chance on them.
    """
    counts = np.array([true.sum(), (~true).sum()], float)
    if counts.min() == 0:
        return np.nan, np.nan
    recall = float(judged[true].mean())
    wrongly = float(judged[~true].mean())
    better = recall - wrongly
    if better <= 0:
        return np.nan, np.nan
    value = min(max((share - wrongly) / better, 0.0), 1.0)
    spread: FloatArray = np.array([recall * (1.0 - recall), wrongly * (1.0 - wrongly)]) / counts
    return value, float(np.array([value**2, (1.0 - value) ** 2]) @ spread) / better**2
