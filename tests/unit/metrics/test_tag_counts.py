"""Counts of tags: ratios of means under every weighting, and their intervals."""

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.errors import InputError
from stratal.estimation.linearised import ratio_of_means
from stratal.metrics.tag_counts import TagCounts, hamming_losses, jaccard_indices, ratio_of_counts


def weighting(n, size=4000, strata=1):
    return StratifiedWeighting(stratum=np.arange(n) % strata, sizes=np.full(strata, size // strata))


def counts(n=80, tags=3, seed=2, strata=1):
    draws = np.random.default_rng(seed)
    true = draws.random((n, tags)) < 0.4
    predicted = np.where(draws.random((n, tags)) < 0.85, true, ~true)
    return TagCounts(true=true, predicted=predicted, weighting=weighting(n, strata=strata))


def test_a_micro_average_is_the_ratio_of_means_of_its_counts():
    table = counts(strata=2)
    hits = (table.true & table.predicted).sum(axis=1)
    sums = {
        "precision": (hits, table.predicted.sum(axis=1)),
        "recall": (hits, table.true.sum(axis=1)),
        "f1": (2 * hits, table.true.sum(axis=1) + table.predicted.sum(axis=1)),
        "jaccard": (hits, (table.true | table.predicted).sum(axis=1)),
    }
    for name, (above, below) in sums.items():
        estimate = table.metric(name, "micro")
        expected = ratio_of_means(above.astype(float), below.astype(float), table.weighting)
        assert estimate.value == pytest.approx(expected.value), name
        assert estimate.standard_error == pytest.approx(expected.standard_error), name


def test_one_tag_is_a_class():
    table = counts(tags=1)

    for name in ("precision", "recall", "f1"):
        of_tag, macro, micro = (table.metric(name, which) for which in (0, "macro", "micro"))
        assert of_tag.value == pytest.approx(macro.value) == pytest.approx(micro.value)
        assert (
            of_tag.standard_error
            == pytest.approx(macro.standard_error)
            == pytest.approx(micro.standard_error)
        )


def test_a_macro_average_is_the_mean_over_the_tags():
    table = counts()
    values = [table.metric("f1", tag).value for tag in range(3)]

    assert table.metric("f1", "macro").value == pytest.approx(np.mean(values))
    found = table.metric("f1", "macro").confidence_interval()
    assert found.low < np.mean(values) < found.high


def test_the_influence_is_that_of_the_estimate():
    table = counts()

    for which in ("macro", "micro"):
        spread = np.sqrt(table.weighting.covariance(table.influence("f1", which)[:, None])[0, 0])
        assert table.metric("f1", which).standard_error == pytest.approx(float(spread))


def test_labels_without_an_error_leave_an_interval_and_an_error():
    true = counts().true
    table = TagCounts(true=true, predicted=true, weighting=weighting(len(true)))

    for which in ("macro", "micro", 0):
        estimate = table.metric("f1", which)
        low, high = estimate.confidence_interval().low, estimate.confidence_interval().high
        assert estimate.value == high == 1.0
        assert 0.8 < low < 1.0
        assert estimate.standard_error > 0


def test_a_tag_that_nobody_has_leaves_the_macro_average_undefined():
    table = counts()
    none = np.zeros((len(table.true), 1), dtype=bool)
    more = TagCounts(
        true=np.hstack([table.true, none]),
        predicted=np.hstack([table.predicted, none]),
        weighting=table.weighting,
    )

    assert np.isnan(more.metric("recall", "macro").value)
    assert more.metric("recall", "micro").value == pytest.approx(table.metric("recall", "micro").value)


def test_few_tags_without_a_label_widen_the_macro_average():
    table = counts(tags=9)
    none = np.zeros((len(table.true), 1), dtype=bool)
    more = TagCounts(
        true=np.hstack([table.true, none]),
        predicted=np.hstack([table.predicted, none]),
        weighting=table.weighting,
    )
    estimate = more.metric("recall", "macro")

    assert np.isfinite(estimate.value)
    assert "1 of 10 tags have no label in the denominator" in str(estimate.remarks)
    interval = estimate.confidence_interval()
    assert interval.high - interval.low > 0.1


def test_no_count_in_the_denominator_leaves_nothing():
    none = np.zeros((10, 2), dtype=bool)
    table = TagCounts(true=none, predicted=none, weighting=weighting(10))

    assert np.isnan(table.metric("precision", "micro").value)
    assert jaccard_indices(none, none).tolist() == [1.0] * 10
    assert hamming_losses(none, none).tolist() == [0.0] * 10


def test_a_numerator_is_part_of_its_denominator():
    with pytest.raises(InputError, match="a numerator is not part of its denominator"):
        ratio_of_counts(np.array([2.0]), np.array([1.0]), weighting(1))


def test_a_weighted_average_over_tags_is_refused():
    with pytest.raises(InputError, match="average over tags"):
        counts().metric("f1", "weighted")
