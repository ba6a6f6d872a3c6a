"""Intervals of correlations with labels of two values, few of which have the rarer one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.designs import StratifiedWeighting
from stratal.metrics import associations
from stratal.metrics.rarer_value import RarerValueInterval, RarerValueMoments

SIZE = 1000
STATISTICS = {"pearson": associations.pearson, "icc": associations.intraclass}
Statistic = Callable[[FloatArray, FloatArray, FloatArray], float]


def scores_and_labels(n_rarer: int, n: int = 40) -> tuple[FloatArray, FloatArray]:
    """Return scores and labels, of which the first have the rarer value 1."""
    rng = np.random.default_rng(4)
    labels = (np.arange(n) < n_rarer).astype(np.float64)
    return np.clip(0.25 + 0.15 * labels + 0.2 * rng.normal(size=n), 0.0, 1.0), labels


def random_sample(n: int, size: int = SIZE) -> StratifiedWeighting:
    """Return the weighting of a simple random sample."""
    return StratifiedWeighting(stratum=np.zeros(n, dtype=int), sizes=np.array([size]))


def limits(statistic: str, scores: FloatArray, labels: FloatArray, size: int = SIZE) -> AnyArray:
    """Return the limits of the 95 % interval of a simple random sample."""
    weighting = random_sample(len(labels), size)
    return np.array(associations.association(STATISTICS[statistic], scores, labels, weighting).limits(0.95))


def limits_without_extension(
    monkeypatch: pytest.MonkeyPatch, statistic: str, scores: FloatArray, labels: FloatArray
) -> AnyArray:
    """Return the limits of Fisher's interval alone."""
    with monkeypatch.context() as patch:
        patch.setattr(associations, "_extend_for_rare_value", lambda interval, *rest: interval)
        return limits(statistic, scores, labels)


def weighted_pearson(x: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    """Return the correlation with NumPy's weighted covariance."""
    covariance = np.cov(x, y, aweights=weights, ddof=0)
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


def weighted_concordance(x: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    """Return Lin's concordance as 1 − mean squared distance / that of independent values (Lin 1989)."""
    weights = weights / weights.sum()
    independent = float(weights @ (x[:, None] - y) ** 2 @ weights)
    return 1.0 - float(weights @ (x - y) ** 2) / independent


REFERENCES = {"pearson": weighted_pearson, "icc": weighted_concordance}


def reference_distances(
    statistic: Statistic, x: FloatArray, y: FloatArray, is_rarer: BoolArray, extremes: FloatArray
) -> tuple[float, float]:
    """Return the distances of the MOVER limits, from weighted copies of the units instead of moments."""
    n_labels = len(x) / (1.0 - len(x) / SIZE)
    n_rarer = is_rarer.mean() * n_labels
    value = statistic(x, y, np.ones(len(x)))
    interval = stats.beta.ppf(
        [0.025, 0.975], [n_rarer, n_rarer + 1], [n_labels - n_rarer + 1, n_labels - n_rarer]
    )
    distances = []
    for share in (is_rarer.mean(), *interval):
        weights = np.where(is_rarer, share / is_rarer.sum(), (1.0 - share) / (~is_rarer).sum())
        at_share = statistic(x, y, weights)
        step = 1e-6
        influence = np.array(
            [
                (statistic(x, y, weights + step * unit) - statistic(x, y, weights - step * unit))
                / (2.0 * step)
                for unit in np.eye(len(x))
            ]
        )
        variance = share**2 * influence[is_rarer].var(ddof=1) / n_rarer
        variance += (1.0 - share) ** 2 * influence[~is_rarer].var(ddof=1) / (n_labels - n_rarer)
        distance = stats.t.ppf(0.975, n_labels - 2.0) * np.sqrt(variance)
        unseen = 1.0 - 0.025 ** (2.0 / 3.0 / n_rarer)
        changes = []
        for extreme in extremes:
            mixed = np.append(np.where(is_rarer, 1.0 - unseen, 1.0) * weights, share * unseen)
            changes.append(statistic(np.append(x, extreme), np.append(y, y[is_rarer][0]), mixed) - at_share)
        change = at_share - value
        distances.append(
            (
                np.hypot(max(-change, 0.0), max(distance, -min(changes))),
                np.hypot(max(change, 0.0), max(distance, *changes)),
            )
        )
    below, above = np.max(distances, axis=0)
    return below, above


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("n_rarer", [2, 4, 9])
def test_limits_agree_with_weighted_copies_of_the_units(monkeypatch, statistic, n_rarer):
    scores, labels = scores_and_labels(n_rarer)
    low, high = limits_without_extension(monkeypatch, statistic, scores, labels)
    extremes = np.array([scores.min(), scores.max()])
    if statistic == "icc":
        extremes = np.array([0.0, 1.0])
    value = REFERENCES[statistic](scores, labels, np.ones(len(labels)))
    below, above = reference_distances(REFERENCES[statistic], scores, labels, labels == 1.0, extremes)
    part = 1.0 / (1.0 + (n_rarer / (1.0 - len(labels) / SIZE) / 12.0) ** 3)

    expected = [low - part * max(low - value + below, 0.0), high + part * max(value + above - high, 0.0)]

    assert limits(statistic, scores, labels) == pytest.approx(expected, abs=1e-6)
    assert expected[0] < low or expected[1] > high


def test_moments_reproduce_the_correlation_and_the_number_of_labels():
    scores, labels = scores_and_labels(5)
    score_range = (float(scores.min()), float(scores.max()))

    moments = RarerValueMoments.of(
        scores, labels, labels == 1.0, score_range, random_sample(len(labels)), "population"
    )

    assert moments is not None
    means = moments.overall_means(moments.share, moments.means[0])
    assert associations.pearson.of_moments(means) == pytest.approx(np.corrcoef(scores, labels)[0, 1])
    assert moments.n_labels == pytest.approx(len(labels) / (1.0 - len(labels) / SIZE))


@pytest.mark.parametrize("n_rarer", [3, 20])
def test_limits_are_mirrored_if_the_labels_are_swapped(n_rarer):
    """With 20 of 40 labels, both values are the rarer one."""
    scores, labels = scores_and_labels(n_rarer)
    low, high = limits("pearson", scores, labels)

    assert limits("pearson", scores, 1.0 - labels) == pytest.approx([-high, -low], abs=1e-9)
    assert limits("icc", 1.0 - scores, 1.0 - labels) == pytest.approx(limits("icc", scores, labels), abs=1e-9)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_limits_do_not_depend_on_the_order_of_the_units(statistic):
    scores, labels = scores_and_labels(4)
    order = np.random.default_rng(1).permutation(len(labels))

    expected = limits(statistic, scores, labels)

    assert limits(statistic, scores[order], labels[order]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_many_labels_of_both_values_hardly_change_the_limits(monkeypatch, statistic):
    scores, labels = scores_and_labels(40, 100)
    low, high = limits_without_extension(monkeypatch, statistic, scores, labels)

    assert limits(statistic, scores, labels) == pytest.approx([low, high], abs=0.01 * (high - low))


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("n_rarer", [1, 3])
def test_intervals_are_nested_and_within_the_bounds(statistic, n_rarer):
    scores, labels = scores_and_labels(n_rarer)
    estimate = associations.association(STATISTICS[statistic], scores, labels, random_sample(len(labels)))
    levels = [0.01, 0.5, 0.8, 0.95, 0.99, 0.9999, 1.0 - 1e-9]

    intervals = np.array([estimate.limits(level) for level in levels])

    assert np.all(np.diff(intervals[:, 0]) <= 1e-12)
    assert np.all(np.diff(intervals[:, 1]) >= -1e-12)
    assert np.all(np.abs(intervals) <= 1.0)
    one_sided = estimate.confidence_interval(0.975, alternative="less")
    assert one_sided.high == pytest.approx(intervals[3, 1])
    assert one_sided.low == -1.0
    p_value = estimate.p_value(float(intervals[3, 1]))
    assert p_value == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_census_has_no_extension(statistic):
    scores, labels = scores_and_labels(3)
    value = STATISTICS[statistic](scores, labels, np.full(len(labels), 1.0 / len(labels)))[0]

    assert limits(statistic, scores, labels, size=len(labels)) == pytest.approx([value, value])


@pytest.mark.parametrize(("by_score", "counted"), [(True, 0), (False, 2)])
def test_strata_of_similar_scores_have_no_unseen_units_of_their_own(by_score, counted):
    scores, labels = scores_and_labels(4)
    stratum = np.arange(len(labels)) % 2
    if by_score:
        stratum = (scores > np.median(scores)).astype(int)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([SIZE // 2, SIZE // 2]))
    score_range = (float(scores.min()), float(scores.max()))

    moments = RarerValueMoments.of(scores, labels, labels == 1.0, score_range, weighting, "population")

    assert moments is not None
    assert len(moments.unseen) == 1 + counted


def test_a_large_stratum_with_few_labels_may_have_many_unseen_units() -> None:
    # One label of the second stratum stands for ten of the first, and none shows the rarer value.
    scores, labels = scores_and_labels(8)
    stratum = np.repeat([0, 1], 20)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([100, 1000]))
    score_range = (float(scores.min()), float(scores.max()))

    moments = RarerValueMoments.of(scores, labels, labels == 1.0, score_range, weighting, "superpopulation")

    assert moments is not None
    assert moments.n_rarer == pytest.approx(8.0)
    assert [unseen.n_labels for unseen in moments.unseen] == pytest.approx([8.0, 8.0, 0.8])
    # Strata without an error do not make the number of labels larger than that of independent draws.
    assert moments.n_labels <= 20.0 * 1.1**2 / (0.1**2 + 1.0) + 1e-9


def test_the_scale_of_the_scores_changes_neither_the_correlation_nor_its_error() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=60)
    labels = (rng.random(60) < 0.3).astype(np.float64)

    def figures(scaled: FloatArray) -> list[float]:
        estimate = associations.association(associations.pearson, scaled, labels, random_sample(60))
        return [estimate.value, estimate.standard_error, *estimate.limits(0.95)]

    expected = figures(scores)
    # A common scale of scores and labels lost the labels: the standard error of 600 x was 1.25.
    for factor, shift in ((600.0, 0.0), (1e6, 5.0), (1e-6, 0.0), (1.0, 1e4)):
        assert figures(factor * scores + shift) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("statistic", ["pearson", "spearman", "intraclass"])
def test_limits_do_not_depend_on_the_scale_of_scores_and_labels(statistic):
    """Whether labels agree was decided by an absolute tolerance: limits of tiny scales differed by .004."""
    rng = np.random.default_rng(4)
    scores = rng.random(60)
    labels = (rng.random(60) < scores).astype(np.float64)
    function = getattr(associations, statistic)

    def limits_at(factor: float, shift: float) -> tuple[float, float]:
        scaled_scores = factor * scores + shift
        scaled_labels = factor * labels + shift
        lower, upper = associations.association(
            function, scaled_scores, scaled_labels, random_sample(60)
        ).limits(0.95)
        assert lower is not None
        assert upper is not None
        return lower, upper

    expected = limits_at(1.0, 0.0)
    for factor, shift in ((7.3, -0.1), (1e6, 0.0), (1e-9, 0.0)):
        assert limits_at(factor, shift) == pytest.approx(expected, abs=1e-7)


def test_ranks_and_labels_without_a_frequent_value_are_not_extended():
    scores, labels = scores_and_labels(4)
    weighting = random_sample(len(labels))
    ratings = np.tile([0.0, 0.25, 0.5, 0.75, 1.0], len(labels) // 5)

    ranks = associations.association(associations.spearman, scores, labels, weighting)
    rated = associations.association(associations.pearson, scores, ratings, weighting)

    assert not isinstance(ranks.evidence.interval, RarerValueInterval)
    assert not isinstance(rated.evidence.interval, RarerValueInterval)


def test_graded_labels_that_mostly_have_one_value_are_extended():
    """The unseen units have the lowest and the highest of the rarer labels."""
    scores, labels = scores_and_labels(4)
    graded = np.where(np.arange(len(labels)) < 2, 0.5 * labels, labels)

    estimate = associations.association(associations.pearson, scores, graded, random_sample(len(labels)))

    interval = estimate.evidence.interval
    assert isinstance(interval, RarerValueInterval)
    assert interval.moments.share == pytest.approx(0.1)
    (unseen,) = interval.moments.unseen
    assert len(np.unique(unseen.extremes[:, 1])) == 2
    low, high = estimate.confidence_interval()
    inner_low, inner_high = interval.inner.ends(0.95, "two-sided")
    assert low < inner_low or high > inner_high


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_far_labels_are_the_few_at_one_end(sign: float):
    labels = sign * np.array([0.0, 0.03, 0.01, 0.05, 0.02, 0.08, 0.04, 1.0, 0.06, 0.07])

    (far,) = associations._far_labels(labels, np.full(10, 0.1))

    assert np.flatnonzero(far).tolist() == [7]


def test_there_are_no_far_labels_among_evenly_spread_ones():
    assert associations._far_labels(np.linspace(0.0, 1.0, 20), np.full(20, 0.05)) == []
    assert associations._far_labels(np.zeros(3), np.full(3, 1 / 3)) == []


def test_a_rare_value_has_one_extension():
    labels = np.array([0.0] * 9 + [1.0])

    assert len(associations._rarer_labels(labels, np.full(10, 0.1))) == 1
