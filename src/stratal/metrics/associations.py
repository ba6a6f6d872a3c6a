"""Comparison of a judge's scores with labels: correlations and bias, with their intervals.

All quantities but the bias are functions of the joint distribution of score and label, with linearised
variables. The interval of a correlation is Fisher's: Student's t on the scale of its inverse hyperbolic
tangent. It has three guards:

- Each score also has pseudo-labels: labels that it might have instead of its own. Together they count as one
  label. Few labels that all follow the score then do not exclude that others differ. Where the labels vary,
  the pseudo-labels count less, the more labels deviate from the score.
- The variance of a heavy-tailed variable, as with rare disagreements, is uncertain even with many labels. The
  degrees of freedom therefore depend on the kurtosis.
- Few labels that differ from the most frequent value extend the interval (`rarer_value`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from stratal.arrays import NO_DIVISOR, BoolArray, FloatArray, IntArray
from stratal.designs import Weighting
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimand import DEFAULT_REQUEST, Estimand, Request
from stratal.estimation.estimate import Estimate, linearised_estimate, undefined_estimate
from stratal.estimation.linearised import (
    ROUNDING_ERROR,
    Linearised,
    adaptive_label_share,
    largest_label_share,
    numeric_gradient,
    of_variable,
    pseudo_label_share,
)
from stratal.estimation.means import Mean
from stratal.estimation.resolve import number_columns
from stratal.estimation.respondents import Respondents
from stratal.intervals.interval import Interval
from stratal.intervals.interval_types import OffsetInterval, OuterInterval
from stratal.intervals.outcomes import OutcomeKind
from stratal.intervals.proportion import student_quantile
from stratal.metrics.numeric_errors import MIN_LABELS_FOR_TAILS, TOP_SHARE, top_share_of_squares
from stratal.metrics.pseudo_label_variances import mixed_variance, smoothed_variance
from stratal.metrics.ranking import only_proxy
from stratal.metrics.rarer_value import (
    MomentsFunction,
    RarerValueInterval,
    RarerValueMoments,
    moment_variables,
)
from stratal.metrics.score_roles import class_indicator, class_of_score
from stratal.population.expressions import Expression, NumberColumn
from stratal.population.influence import Influence, population_means
from stratal.population.population import Population
from stratal.question.question import NUMBER
from stratal.report.notes import Note

# Function that returns a statistic and the influence of each unit (n,), from scores, labels and weights (n,)
# that sum to 1.
AssociationFunction = Callable[[FloatArray, FloatArray, FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True, slots=True)
class AssociationStatistic:
    """A correlation or agreement of scores and labels, with the influence of each unit.

    Parameters
    ----------
    function : callable
        An `AssociationFunction`.
    of_moments : callable, optional
        Returns the value from the means of x, y, x², y² and xy; None for a statistic of ranks.
    compares_means : bool
        Whether the squared difference of the means is a part of it.
    """

    function: AssociationFunction
    of_moments: MomentsFunction | None = None
    compares_means: bool = False

    def __call__(self, x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the influence of each unit (n,); the weights (n,) sum to 1."""
        return self.function(x, y, weights)


# A variance of standardised values of this size is a rounding error: all values are equal.
_MIN_VARIANCE = 1e-12


# Largest correlation on Fisher's scale, which is infinite at 1.
_MAX_CORRELATION = 1.0 - 1e-9


# Number of pseudo-labels of a unit. Together they count as one label: more of them make no difference.
_N_PSEUDO_LABELS = 8


def _standardise(
    x: FloatArray, y: FloatArray, weights: FloatArray, *, on_common_scale: bool
) -> tuple[FloatArray, FloatArray]:
    """Return standardised scores and labels (n,), which avoids rounding errors; the weights (n,) sum to 1.

    A correlation does not depend on either scale. An agreement requires the same centre and scale for both.
    """
    if not on_common_scale:
        return _standardise_variable(x, weights), _standardise_variable(y, weights)
    centre = float(weights @ (x + y)) / 2.0
    scale = float(np.sqrt(weights @ ((x - centre) ** 2 + (y - centre) ** 2)))
    if scale == 0:
        scale = 1.0
    return (x - centre) / scale, (y - centre) / scale


def _standardise_variable(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return values (n,) with mean 0 and variance 1, or 0 if they are equal; the weights (n,) sum to 1."""
    deviations = values - weights @ values
    scale = float(np.sqrt(weights @ deviations**2))
    if scale <= ROUNDING_ERROR * float(np.abs(values).max(initial=0.0)):
        return np.zeros_like(values)
    return np.asarray(deviations / scale)


def _linearise(function: MomentsFunction, *, on_common_scale: bool) -> AssociationFunction:
    """Return the function of scores and labels for a function of their moments, with numeric derivatives."""

    def value_and_influence(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
        variables = moment_variables(*_standardise(x, y, weights, on_common_scale=on_common_scale))
        means = weights @ variables
        with np.errstate(divide="ignore", invalid="ignore"):
            value = function(means)
            slopes = numeric_gradient(function, means)
        return value, (variables - means) @ slopes

    return value_and_influence


def _correlation(moments: FloatArray) -> float:
    """Return Pearson's correlation from the means (5,) of x, y, x², y² and xy."""
    x, y, xx, yy, xy = moments
    product_of_variances = (xx - x**2) * (yy - y**2)
    if product_of_variances > _MIN_VARIANCE**2:
        return float((xy - x * y) / np.sqrt(product_of_variances))
    return np.nan


def _agreement(moments: FloatArray) -> float:
    """Return Lin's concordance correlation from the means (5,) of x, y, x², y² and xy."""
    x, y, xx, yy, xy = moments
    # If labels, or scores, are all equal, it is 0 however well the judge rates the other units.
    if min(xx - x**2, yy - y**2) <= _MIN_VARIANCE:
        return np.nan
    # The sum of the variances and the squared difference of the means.
    denominator = xx + yy - 2.0 * x * y
    return 2.0 * float(xy - x * y) / float(denominator)


pearson = AssociationStatistic(_linearise(_correlation, on_common_scale=False), of_moments=_correlation)


intraclass = AssociationStatistic(
    _linearise(_agreement, on_common_scale=True), of_moments=_agreement, compares_means=True
)


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


def _rank_correlation(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
    """Return the correlation of the ranks, with mean ranks of ties, and the influence of each unit (n,).

    A unit changes the moments by its own ranks, and by increasing the ranks of the units above it.
    """
    ranks_of_x, group_of_x = _mid_ranks(x, weights)
    ranks_of_y, group_of_y = _mid_ranks(y, weights)
    variables = moment_variables(ranks_of_x, ranks_of_y)
    means = weights @ variables
    slopes = numeric_gradient(_correlation, means)
    influence = (variables - means) @ slopes
    x_slope, y_slope, xx_slope, yy_slope, xy_slope = slopes
    for ranks, other_ranks, group, slope, square_slope in (
        (ranks_of_x, ranks_of_y, group_of_x, x_slope, xx_slope),
        (ranks_of_y, ranks_of_x, group_of_y, y_slope, yy_slope),
    ):
        # Derivative of the correlation with respect to the rank of each unit.
        rank_slopes = weights * (slope + 2.0 * square_slope * ranks + xy_slope * other_ranks)
        influence = influence + _sums_above(group, rank_slopes) - float(rank_slopes @ ranks)
    return _correlation(means), np.asarray(influence)


spearman = AssociationStatistic(_rank_correlation)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FisherInterval(OffsetInterval):
    """Student's t on the inverse hyperbolic tangent of a correlation (Fisher 1921)."""

    standard_error: float
    degrees_of_freedom: float

    method = "fisher"

    def recentred(self, value: float) -> FisherInterval:
        """Return an interval around another value, with the same width on Fisher's scale."""
        ratio = (1.0 - min(value**2, 1.0)) / max(1.0 - self.value**2, 1.0 - _MAX_CORRELATION)
        return replace(self, value=value, standard_error=self.standard_error * ratio)

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
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
    statistic: AssociationStatistic,
    x: FloatArray,
    y: FloatArray,
    weighting: Weighting,
    target: str = "population",
) -> Estimate:
    """Return the correlation or agreement of scores and labels (n,), from −1 to 1, with its interval."""
    n = len(x)
    bounds = (-1.0, 1.0)
    weights = weighting.weights / weighting.total
    with np.errstate(divide="ignore", invalid="ignore"):
        value, influence = statistic(x, y, weights)
    if not (np.isfinite(value) and np.all(np.isfinite(influence))):
        reason = "all scores or all labels are equal"
        return undefined_estimate(weighting, n, bounds, reason, target=target)
    value = min(max(value, -1.0), 1.0)
    result = of_variable(value, influence / weighting.total, weighting, target)
    smoothed = _interval_with_pseudo_labels(statistic, x, y, weighting, result, target)
    # Pseudo-labels move the value. The interval contains the limits around both values.
    interval: Interval = OuterInterval(
        value=value, bounds=bounds, first=smoothed.recentred(value), second=smoothed
    )
    if statistic.compares_means:
        at_equal_means = _agreement_at_equal_means(value, x, y, weighting)
        interval = OuterInterval(
            value=value, bounds=bounds, first=interval, second=smoothed.recentred(at_equal_means)
        )
    if statistic.of_moments is not None:
        interval = _extend_for_rare_value(interval, statistic, statistic.of_moments, x, y, weighting, target)
    has_positive_error = np.isfinite(result.variance) and result.standard_error > ROUNDING_ERROR
    if has_positive_error or weighting.census:
        standard_error = result.standard_error
    else:
        standard_error = smoothed.standard_error
    return linearised_estimate(
        result,
        weighting,
        interval=interval,
        target=target,
        standard_error=standard_error,
        degrees_of_freedom=smoothed.degrees_of_freedom,
    )


def _extend_for_rare_value(
    interval: Interval,
    statistic: AssociationStatistic,
    function: MomentsFunction,
    x: FloatArray,
    y: FloatArray,
    weighting: Weighting,
    target: str,
) -> Interval:
    """Return the interval, extended if few labels (n,) determine it: see `_rarer_labels`.

    If 1 to 6 of 30 to 100 labels differ from the most frequent value, .77 to .92 of the intervals of
    Pearson's correlation covered without this, and .72 to .92 of those of the intraclass correlation.
    """
    weights = weighting.weights / weighting.total
    x, y = _standardise(x, y, weights, on_common_scale=statistic.compares_means)
    # Units without a label may have any score in the range. An agreement is largest if it equals the label.
    scores = np.concatenate([x, y]) if statistic.compares_means else x
    score_range = (float(scores.min()), float(scores.max()))
    for is_rarer in _rarer_labels(y, weights):
        moments = RarerValueMoments.of(x, y, is_rarer, score_range, weighting, target)
        if moments is not None:
            interval = RarerValueInterval(
                value=interval.value,
                bounds=interval.bounds,
                inner=interval,
                moments=moments,
                function=function,
            )
    return interval


def _rarer_labels(y: FloatArray, weights: FloatArray) -> list[BoolArray]:
    """Return masks (n,) of labels of which few may determine a correlation, none twice.

    They are the labels that differ from a value which at least half of the labels have, and those of
    `_far_labels`. There are two masks of the first kind if two values are equally frequent, or if one value
    has most labels and another stands for most units: the labels of an oversampled stratum do not show how
    many units with its value are in the others.
    """
    values, inverse, counts = np.unique(y, return_inverse=True, return_counts=True)
    half = 0.5 * (1.0 - ROUNDING_ERROR)
    is_frequent = (counts >= half * len(y)) | (np.bincount(inverse, weights) >= half)
    masks = [y != value for value in values[is_frequent]]
    for far in _far_labels(y, weights):
        if not any(np.array_equal(far, mask) for mask in masks):
            masks.append(far)
    return masks


# Largest share of the units of the labels that are far from the others. With a quarter, intervals of 40
# skewed ratings of five levels would be 1.3 times as wide although they cover .97 anyway; with .15, they are
# 1.1 times as wide.
_MAX_FAR_SHARE = 0.15


def _far_labels(y: FloatArray, weights: FloatArray) -> list[BoolArray]:
    """Return the mask (n,) of the labels that are far from the others; two masks if both ends are as far.

    The division of the labels into low and high ones is that with the largest variance between both (Otsu
    1979; the k-means of one variable and two clusters). If the others vary a little, no value is frequent,
    but few far labels determine the correlation nevertheless: of 40 random labels near 0 or, for 5 % of the
    units, near 1, .68 to .80 of the intervals covered without this.
    """
    values, inverse = np.unique(y, return_inverse=True)
    value_weights = np.bincount(inverse, weights)
    low_share = np.cumsum(value_weights)[:-1] / value_weights.sum()
    low_sum = np.cumsum(value_weights * values)[:-1] / value_weights.sum()
    mean = float(weights @ y / weights.sum())
    between = (low_sum - low_share * mean) ** 2 / (low_share * (1.0 - low_share))
    is_best = between >= between.max(initial=0.0) * (1.0 - ROUNDING_ERROR)
    masks = []
    for share, cut in zip(low_share[is_best], values[:-1][is_best], strict=True):
        if min(share, 1.0 - share) <= _MAX_FAR_SHARE:
            masks.append(y <= cut if share < 0.5 else y > cut)
    return masks


# Largest square of a sampling error, in variances: that of 95 % of normal errors.
_LARGEST_SQUARED_ERROR = 4.0


def _agreement_at_equal_means(value: float, x: FloatArray, y: FloatArray, weighting: Weighting) -> float:
    """Return Lin's concordance `value` without the part of (x̄ − ȳ)² that may be sampling error.

    McGraw and Wong (1996) subtract the expected part, Var(x̄ − ȳ); this is the largest plausible part. If
    x̄ = ȳ, the linearised variance of (x̄ − ȳ)² is 0. For a judge that reverses the scale, intervals without
    this correction covered .04.
    """
    weights = weighting.weights / weighting.total
    mean_x = weights @ x
    mean_y = weights @ y
    squared_difference = float(mean_x - mean_y) ** 2
    variances = float(weights @ (x - mean_x) ** 2 + weights @ (y - mean_y) ** 2)
    denominator = variances + squared_difference
    difference = ((x - y) / weighting.total)[:, None]
    sampling_error = _LARGEST_SQUARED_ERROR * float(weighting.covariance(difference)[0, 0])
    if not sampling_error > 0.0:
        return value
    reduced_denominator = denominator - min(sampling_error, squared_difference)
    return float(np.clip(value * denominator / reduced_denominator, -1.0, 1.0))


# Maximum to which pseudo-labels raise the degrees of freedom. Without them, one exception leaves 1 or 2, and
# intervals of ratings that agree with 99 % of the labels were seven times as wide as their error needs.
_MAX_DF_WITH_PSEUDO_LABELS = 4.0


def _interval_with_pseudo_labels(
    statistic: AssociationStatistic,
    x: FloatArray,
    y: FloatArray,
    weighting: Weighting,
    result: Linearised,
    target: str,
) -> FisherInterval:
    """Return Fisher's interval of the labels mixed with pseudo-labels of the same scores.

    `result` is that of the labels without pseudo-labels.
    """
    fit, residuals = _isotonic_fit(x, y, weighting)
    share, degrees_of_freedom = pseudo_label_share(result, weighting, residuals)
    share_where_labels_agree = max(largest_label_share(weighting), share)
    pseudo_shares = np.where(_all_labels_agree(fit, residuals), share_where_labels_agree, share)
    pseudo_labels = _pseudo_labels(y)
    if len(np.unique(y)) == 2:
        # 0 unless the allocation depends on labels.
        pseudo_shares = np.maximum(pseudo_shares, adaptive_label_share(y == y.max(), weighting))
    pseudo_shares = pseudo_shares * _diversity(y)
    n_pseudo = len(pseudo_labels)
    # The label of each unit, and then one pseudo-label of each unit after the other.
    shares = np.concatenate([1.0 - pseudo_shares] + [pseudo_shares / n_pseudo] * n_pseudo)
    weights = shares * np.tile(weighting.weights, 1 + n_pseudo)
    labels = np.concatenate([y, *pseudo_labels])
    value, influence = statistic(np.tile(x, 1 + n_pseudo), labels, weights / weights.sum())
    if weighting.census and target == "population":
        return FisherInterval(
            value=result.value, bounds=(-1.0, 1.0), standard_error=0.0, degrees_of_freedom=np.inf
        )
    influence = influence / weighting.total
    # The sampling error is the weighted sum of this influence: the total times its weighted mean.
    design_variance = mixed_variance(weighting, shares, influence) * weighting.total**2
    variance, _ = smoothed_variance(design_variance, influence, weights, result, weighting, target)
    if 0.0 < result.design_variance < design_variance:
        # Satterthwaite's rule: only the part of the variance that is estimated from labels is uncertain.
        satterthwaite_df = degrees_of_freedom * (design_variance / result.design_variance) ** 2
        degrees_of_freedom = max(degrees_of_freedom, min(satterthwaite_df, _MAX_DF_WITH_PSEUDO_LABELS))
    standard_error = float(np.sqrt(variance * _small_sample_factor(weighting)))
    return FisherInterval(
        value=min(max(value, -1.0), 1.0),
        bounds=(-1.0, 1.0),
        standard_error=standard_error,
        degrees_of_freedom=max(degrees_of_freedom, 1.0),
    )


def _small_sample_factor(weighting: Weighting) -> float:
    """Return (m − 1) / (m − 3), for m labels of equal weight: Fisher's variance is 1 / (m − 3)."""
    labels = max(weighting.effective_draws, 4.0)
    return (labels - 1.0) / (labels - 3.0)


def _pseudo_labels(y: FloatArray) -> list[FloatArray]:
    """Return labels (n,) that units might have instead: quantiles of the labels that differ from their own.

    The labels of other units, equal or not, are mostly the common one where one value is frequent: intervals
    of ratings of which few have the rare value covered .88.
    """
    in_order = np.sort(y)
    first = np.searchsorted(in_order, y)
    n_equal = np.searchsorted(in_order, y, side="right") - first
    pseudo_labels = []
    for k in range(_N_PSEUDO_LABELS):
        # A rank among the labels with another value, and then its position among all labels.
        rank = ((k + 0.5) / _N_PSEUDO_LABELS * (len(y) - n_equal)).astype(int)
        position = np.where(rank < first, rank, rank + n_equal)
        pseudo_labels.append(in_order[position])
    return pseudo_labels


# Smallest factor of the weight of pseudo-labels. Where one value is frequent, two labels rarely differ: with
# the probability alone, intervals of 30 ratings of which 85 % are at the top covered .87.
_MIN_DIVERSITY = 0.5


def _diversity(y: FloatArray) -> float:
    """Return the probability that two of the labels (n,) differ (Gini and Simpson), at least one half."""
    n = len(y)
    _, counts = np.unique(y, return_counts=True)
    n_equal_pairs = float(counts @ (counts - 1))
    return max(1.0 - n_equal_pairs / (n * (n - 1)), _MIN_DIVERSITY)


def _isotonic_fit(x: FloatArray, y: FloatArray, weighting: Weighting) -> tuple[FloatArray, FloatArray]:
    """Return the isotonic fit of labels from 0 to 1 on the scores (n,), and its residuals (n,).

    It rises or falls. The labels are moved to this scale, so that the limits do not depend on theirs.
    """
    from scipy.optimize import isotonic_regression

    y = (y - y.min()) / max(float(np.ptp(y)), NO_DIVISOR)
    inverse = np.unique(x, return_inverse=True)[1]
    weight = np.bincount(inverse, weighting.weights)
    means = np.bincount(inverse, weighting.weights * y) / weight
    fits = [
        isotonic_regression(means, weights=weight, increasing=rising).x[inverse] for rising in (True, False)
    ]
    fit = min(fits, key=lambda fit: float(weighting.weights @ (y - fit) ** 2))
    return fit, y - fit


def _all_labels_agree(fit: FloatArray, residuals: FloatArray) -> BoolArray:
    """Return for which units (n,) all labels with about the same score agree: the fit has no residuals.

    At such scores the estimated variance is 0 even if units without a label differ. With five ratings, three
    labels and 1 % reversed labels, intervals of plans of 90 labels covered .58 without this.
    """
    _, block, sizes = np.unique(fit, return_inverse=True, return_counts=True)
    largest_residuals = np.zeros(len(sizes))
    np.maximum.at(largest_residuals, block, np.abs(residuals))
    # A single label agrees with itself: scores and labels without ties have many such blocks.
    agree = (sizes > 1) & (largest_residuals <= ROUNDING_ERROR)
    return np.asarray(agree[block])


# Share of the 2 % largest squared influences in their sum above which a correlation has a note. One in
# ten samples of 100 labels with normal errors exceeds it, and half of those with t errors (df = 3).
_HEAVY_INFLUENCE_SHARE = 0.45


# Clusters below which a correlation has a note. Where the labels are not monotone in the score, or follow it
# except in few clusters, .77 to .90 of the intervals covered with 4 to 12 clusters, and .89 or more with 20.
_MIN_CLUSTERS = 20


def _few_clusters_notes(weighting: Weighting) -> tuple[Note, ...]:
    """Return a warning if the labels are those of few clusters."""
    if weighting.unit_clusters is None or weighting.draws >= _MIN_CLUSTERS:
        return ()
    text = (
        f"the labels are from {weighting.draws:,} clusters. With fewer than {_MIN_CLUSTERS}, intervals of a "
        "correlation may cover the true value less often than stated if scores and labels are related "
        "differently in different clusters. Label more clusters, with fewer units each"
    )
    return (Note("few-clusters", text),)


# Slope of the labels on the score that a plan expects, as for a mean.
EXPECTED_SLOPE = 0.8


# `listed_field` is the field after the colon in the text form, as in `pearson:judge`.
@dataclass(frozen=True, slots=True)
class ScoreComparison(Estimand, listed_field="score", listed_example="judge"):
    """A comparison of a judge's scores with the labels, which are numbers.

    Parameters
    ----------
    score : str, optional
        The proxy with the judge's score. Default: the only proxy.
    """

    score: str | None = None

    def score_name(self, sample: Sample) -> str:
        """Return the column of the score; without one, the error shows how to name it."""
        return self.score or only_proxy(sample, replace(self, score="COLUMN").text)

    def units(
        self, sample: Sample, labels: object, scores: object = None
    ) -> tuple[FloatArray, FloatArray, Respondents, BoolArray]:
        """Return scores and labels (m,) of the labelled units, these units, and their mask (n,).

        `scores` replaces the estimand's score: the name of a proxy, or a score of each drawn unit (n,).
        """
        score_column = scores
        if scores is None:
            score_column = self.score_name(sample)
        if isinstance(score_column, str):
            score = sample.question.score(score_column)
            if score is not None and score.of_class is not None:
                labels = class_indicator(sample, labels, score)
        columns, labelled = number_columns(sample, {"score": score_column, "label": labels})
        return columns[:, 0], columns[:, 1], Respondents.of(sample, labelled), labelled

    def reads_classes(self, sample: Sample) -> bool:
        """Return whether labels are classes: the score is declared to predict one."""
        score = self.score or (sample.proxy_names[0] if len(sample.proxy_names) == 1 else "")
        return class_of_score(sample, score) is not None

    def labelled_units(self, sample: Sample, labels: object) -> BoolArray:
        """Return which of the drawn units (n,) have a label."""
        return self.units(sample, labels)[3]

    def _score_and_bounds(self, population: Population) -> tuple[NumberColumn, tuple[float, float]]:
        """Return the score and its bounds, which are those of the labels; other scores are an error."""
        info = population.proxy_info(self.score)
        if not info.scaled or info.bounds is None or not np.all(np.isfinite(info.bounds)):
            problem = f"a plan for '{self.kind}' is not possible: the score is not on the scale of the labels"
            action = "Give the labels' bounds (bounds=, --bounds), or plan for the mean."
            raise InputError(problem, given=repr(info.name), action=action)
        return NumberColumn(name=info.name), info.bounds


@dataclass(frozen=True, slots=True)
class Association(ScoreComparison):
    """A correlation of scores and labels."""

    statistic: ClassVar[AssociationStatistic]
    # The function of the moments that a plan uses.
    planned_function: ClassVar[MomentsFunction] = _correlation

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the correlation or agreement of scores and labels."""
        x, y, respondents, _ = self.units(sample, labels)
        weighting = respondents.weighting
        estimate = association(self.statistic, x, y, weighting, request.target)
        notes = (*self._tail_notes(y, estimate), *_few_clusters_notes(weighting))
        if notes:
            estimate = replace(estimate, remarks=(*estimate.remarks, *notes))
        return respondents.complete(estimate, sample, label=self.label)

    def _tail_notes(self, labels: FloatArray, estimate: Estimate) -> tuple[Note, ...]:
        """Return a warning if few labels (n,) without bounds dominate the variance of the correlation."""
        if self.statistic.of_moments is None or len(labels) < MIN_LABELS_FOR_TAILS:
            return ()
        share = top_share_of_squares(estimate.evidence.residuals)
        if share <= _HEAVY_INFLUENCE_SHARE:
            return ()
        text = (
            f"{TOP_SHARE:.0%} of the labels account for {share:.0%} of the squared influence on "
            f"{self.text}. If labels have heavy tails, the interval covers the true value less often than "
            "stated, because rare extreme labels may be missing from the sample. Report the rank "
            "correlation (spearman)"
        )
        return (Note("heavy-tails", text),)

    def influence(self, population: Population) -> Influence:
        """Return the moments of the influence for labels at the bounds, whose mean is linear in the score.

        Given the label, the influence is a quadratic function of the score, with the derivatives of the
        correlation at the expected moments. Plans for ranks use the same formula.
        """
        x, (low, high) = self._score_and_bounds(population)
        mean_score, mean_square = population_means(population, [x, x * x])
        if mean_square - mean_score**2 <= _MIN_VARIANCE:
            problem = f"no forecast is possible for '{self.text}': all scores are equal"
            action = "Choose a score that differs between units, or plan for the mean."
            raise InputError(problem, given=f"{mean_score:g}", action=action)
        # The means of x, y, x², y² and xy.
        label_square = (low + high) * mean_score - low * high
        product = EXPECTED_SLOPE * mean_square + (1.0 - EXPECTED_SLOPE) * mean_score**2
        moments = np.array([mean_score, mean_score, mean_square, label_square, product])
        function = type(self).planned_function
        slopes = numeric_gradient(function, moments)
        x_slope, y_slope, xx_slope, yy_slope, xy_slope = map(float, slopes)
        constant = float(slopes @ moments)
        expected_label = EXPECTED_SLOPE * x + (1.0 - EXPECTED_SLOPE) * float(mean_score)
        probability_high = (expected_label - low) * (1.0 / (high - low))

        def influence_of_label(y: float) -> Expression:
            label_terms = y_slope * y + yy_slope * y**2 - constant
            return xx_slope * (x * x) + (x_slope + xy_slope * y) * x + label_terms

        if_high = influence_of_label(high)
        if_low = influence_of_label(low)
        mean = probability_high * if_high + (1.0 - probability_high) * if_low
        square = probability_high * (if_high * if_high) + (1.0 - probability_high) * (if_low * if_low)
        value = float(function(moments))
        return Influence(value=value, mean=mean, square=square)


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
class IntraclassCorrelation(Association, kind="icc", statistic=intraclass, planned_function=_agreement):
    """The intraclass correlation of one score of a judge and one label (McGraw & Wong 1996).

    In the population it is Lin's concordance: 2 cov / (sum of the variances + squared difference of the
    means). It is below 1 for a judge whose scores are always one point higher than the labels.

    Examples
    --------
    >>> IntraclassCorrelation("judge").text
    'icc:judge'
    """


@dataclass(frozen=True, slots=True)
class WeightedKappa(IntraclassCorrelation, kind="weighted_kappa"):
    """Cohen's weighted kappa of scores: 1 − mean squared distance / its expectation by chance (Cohen 1968).

    In the population it equals the intraclass correlation (Fleiss & Cohen 1973).

    Examples
    --------
    >>> WeightedKappa("judge").text
    'weighted_kappa:judge'
    """


@dataclass(frozen=True, slots=True)
class Bias(ScoreComparison, kind="bias"):
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
        x, (low, high) = self._score_and_bounds(population)
        (mean_score,) = population_means(population, [x])
        expected_label = EXPECTED_SLOPE * x + (1.0 - EXPECTED_SLOPE) * float(mean_score)
        # The expected square of a label at one of the bounds.
        label_square = (low + high) * expected_label - low * high
        square = x * x - 2.0 * (x * expected_label) + label_square
        return Influence(value=0.0, mean=x - expected_label, square=square)

    def estimate(self, sample: Sample, labels: object, request: Request = DEFAULT_REQUEST) -> Estimate:
        """Return the bias: the mean of score minus label."""
        x, y, _, labelled = self.units(sample, labels)
        score = self.score_name(sample)
        info = next(entry for entry in sample.proxy_info if entry.name == score)
        difference = np.full(sample.size, np.nan)
        difference[labelled] = x - y
        bounds: tuple[float, float] | None = None
        outcome: OutcomeKind = "unbounded"
        on_scale = info.scaled or class_of_score(sample, score) is not None
        if on_scale and info.bounds is not None and np.all(np.isfinite(info.bounds)):
            width = info.bounds[1] - info.bounds[0]
            bounds = (-width, width)
            outcome = "bounded"
        mean_request = replace(request, outcome=outcome, bounds=bounds, estimator="horvitz-thompson")
        # The differences are numbers, even if labels are words.
        question = sample.question.with_outcome(decoding=NUMBER, positive=None, mapping=None)
        numeric_sample = replace(sample, question=question)
        mean = Mean().estimate(numeric_sample, difference, mean_request)
        return replace(mean, label=self.label, null=0.0)
