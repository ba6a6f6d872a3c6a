"""Means and metrics of groups in few clusters: degrees of freedom, limits, and where there is no interval."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.cluster_groups import Setting, measure, page
from scipy.stats import t as student
from tests.tiers import sized

import stratal
from stratal.designs.clusters import ClusterWeighting
from stratal.designs.external_weights import WithReplacementWeighting
from stratal.designs.group_clusters import GroupClusters, bell_mccaffrey
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimate import difference_of
from stratal.metrics.confusion import Confusion
from stratal.metrics.functions_of_means import FiellerInterval

CASE = Path(__file__).parents[4] / "shared" / "cases" / "01-domain-in-few-clusters" / "turns.csv"


def weights_of(cluster, stratum=None):
    n = len(cluster)
    primary = np.zeros(n, dtype=np.int64) if stratum is None else stratum
    return WithReplacementWeighting(
        design_weight=np.full(n, 10.0), size=10.0 * n, primary=primary, cluster=cluster
    )


def numbers(clusters, units=5, seed=0):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), units)
    return cluster, 10.0 + rng.normal(size=clusters)[cluster] + rng.normal(size=len(cluster))


@pytest.mark.skipif(not CASE.exists(), reason="needs the folder of cases")
def test_the_group_in_two_of_twelve_talks_has_the_interval_of_r():
    sample, labels = stratal.Sample.from_labelled(
        CASE, value="rating", weight="weight", cluster="talk", groups=("lang",)
    )
    estimate = stratal.estimate(sample, labels, by="lang", outcome="unbounded")
    danish, english = estimate.of(domain="da"), estimate.of(domain="en")

    assert danish.degrees_of_freedom == 1.0
    assert danish.standard_error == pytest.approx(1.036923, abs=1e-6)
    assert [*danish.confidence_interval()] == pytest.approx([-1.763352, 24.58735], abs=1e-5)
    assert english.degrees_of_freedom == 9.0
    assert english.standard_error == pytest.approx(0.4517372, abs=1e-6)
    survey = english.confidence_interval(method="survey")
    assert [*survey] == pytest.approx([9.387899, 11.4317], abs=1e-5)
    auto = english.confidence_interval()
    assert auto.low <= survey.low
    assert auto.high >= survey.high
    assert auto.high - auto.low < 1.02 * (survey.high - survey.low)


@pytest.mark.parametrize("design", ["weights", "whole clusters"])
def test_clusters_of_the_group_count_and_not_its_labels(design):
    cluster, z = numbers(40)
    member = cluster < 4
    weighting = weights_of(cluster)
    if design == "whole clusters":
        weighting = ClusterWeighting(cluster=cluster, drawn=np.full(40, 5), clusters=10**6, size=5 * 10**6)
    estimate = domain_mean(z, member, weighting)
    means = z[member].reshape(4, 5).mean(axis=1)
    low, high = estimate.confidence_interval()

    assert estimate.degrees_of_freedom == 3.0
    # Clusters of one size: the interval of the means of clusters, as if these were all labels.
    error = means.std(ddof=1) / 2.0
    reach = student.ppf(0.975, 3) * error
    assert [low, high] == pytest.approx([means.mean() - reach, means.mean() + reach], rel=1e-4)


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_one_cluster_has_no_interval(bounds):
    cluster, z = numbers(12)
    z = z if bounds is None else (z > 10.0).astype(np.float64)
    estimate = domain_mean(z, cluster == 3, weights_of(cluster), bounds=bounds)

    assert estimate.limits() == (None if bounds is None else [0.0, 1.0])
    assert np.isnan(estimate.standard_error)
    assert estimate.degrees_of_freedom == 0.0
    assert any("1 cluster" in note for note in estimate.notes)
    for method in ("t", "survey"):
        with pytest.raises(stratal.errors.InputError):
            estimate.confidence_interval(method=method)


def test_a_cluster_in_each_stratum_has_no_interval():
    cluster, z = numbers(12)
    member = cluster % 2 == 0
    estimate = domain_mean(z, member, weights_of(cluster, stratum=cluster // 2))

    assert estimate.evidence.design_df == 0.0
    assert estimate.limits() is None


def test_right_or_wrong_answers_in_few_clusters_are_worth_few_trials():
    """Before, four clusters in which all is right were as good as their labels."""
    cluster = np.repeat(np.arange(40), 6)
    z = np.ones(240)
    z[cluster > 20] = 0.0
    few = domain_mean(z, cluster < 4, weights_of(cluster), bounds=(0.0, 1.0)).confidence_interval()
    more = domain_mean(z, cluster < 20, weights_of(cluster), bounds=(0.0, 1.0)).confidence_interval()

    assert few.low < 0.4
    assert 0.75 < more.low < 0.9


def test_a_rate_of_a_class_that_is_in_few_clusters():
    cluster = np.repeat(np.arange(40), 6)
    rng = np.random.default_rng(1)
    true = np.where(cluster < 3, 1, 0)
    predicted = np.where(rng.random(240) < 0.8, true, 1 - true)
    confusion = Confusion(true=true, predicted=predicted, n_classes=2, weighting=weights_of(cluster))

    recall = confusion.metric("recall", 1)
    assert recall.degrees_of_freedom == 2.0
    assert recall.evidence.design_df == 2.0
    f1 = confusion.metric("f1", 1)
    assert f1.evidence.interval.inner.degrees_of_freedom <= 39.0
    alone = Confusion(
        true=np.where(cluster < 1, 1, 0), predicted=predicted * (cluster < 1), n_classes=2,
        weighting=weights_of(cluster),
    )  # fmt: skip
    assert alone.metric("recall", 1).limits() == [0.0, 1.0]
    assert alone.metric("f1", 1).limits() == [0.0, 1.0]


def test_a_difference_from_a_group_without_an_interval_has_none():
    cluster, z = numbers(12)
    weighting = weights_of(cluster)
    groups = [domain_mean(z, member, weighting) for member in (cluster == 0, cluster > 0)]

    assert difference_of(*groups).limits() is None


def test_fewer_degrees_of_freedom_for_unequal_clusters_and_never_more_than_r():
    rng = np.random.default_rng(2)
    for _ in range(50):
        sizes = rng.integers(1, 40, 8)
        cluster = np.repeat(np.arange(8), sizes)
        member = cluster < 5
        clusters = GroupClusters.of(
            cluster=cluster,
            stratum=np.zeros(len(cluster), dtype=np.int64),
            weights=rng.uniform(1, 3, len(cluster)),
            member=member,
        )
        assert clusters.design_df == 4
        assert 1.0 <= clusters.degrees_of_freedom <= 4.0
    equal = GroupClusters.of(
        cluster=np.arange(8) // 2, stratum=np.zeros(8, dtype=int), weights=np.ones(8), member=np.ones(8, bool)
    )
    assert equal.degrees_of_freedom == bell_mccaffrey(np.full(4, 0.25), np.full(4, 0.25)) == 3.0


def setting(outcome, group_clusters, drawn_clusters=40, design="weights", sizes="equal"):
    return Setting(
        outcome=outcome,
        group_clusters=group_clusters,
        drawn_clusters=drawn_clusters,
        design=design,
        sizes=sizes,
    )


def test_the_mean_of_few_weighted_clusters_of_unequal_size_is_wider_than_t():
    """Before, .916 at 10 clusters of log-normal sizes."""
    tally = measure(setting("number", 10, 10, sizes="unequal"), sized(150, 2000), 0)["mean"]

    assert tally.coverage >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / tally.intervals)


@pytest.mark.parametrize("outcome", ["number", "right or wrong, .7"])
def test_coverage_in_four_of_forty_clusters(outcome):
    """Before, .81 and .88."""
    tally = measure(setting(outcome, 4, design="whole clusters"), sized(150, 4000), 0)["mean of the group"]

    assert tally.coverage >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / tally.intervals)


@pytest.mark.parametrize("design", ["weights", "whole clusters"])
def test_the_ratio_of_two_means_of_a_group_in_four_of_forty_clusters(design):
    """Before, every interval of the ratio was infinite: the number of drawn clusters of the group varies."""
    tally = measure(setting("number", 4, design=design), sized(60, 4000), 0)["ratio of two means"]

    assert tally.missing == 0
    assert tally.coverage >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / tally.intervals)


def test_fieller_in_whole_clusters_allows_for_the_pull_of_few_clusters():
    """Before, residuals of whole clusters were not stretched, although those of weighted clusters were."""
    cluster, z = numbers(40)
    member = cluster < 4
    whole = ClusterWeighting(cluster=cluster, drawn=np.full(40, 5), clusters=10**6, size=5 * 10**6)
    errors = [
        FiellerInterval.of(z * member, 1.0 * member, weighting).standard_error
        for weighting in (whole, weights_of(cluster))
    ]

    assert errors[0] == pytest.approx(errors[1], rel=1e-4)
    assert errors[0] == pytest.approx(z[member].reshape(4, 5).mean(axis=1).std(ddof=1) / 2.0, rel=1e-4)


def test_the_page_is_made_of_the_cells():
    cell = setting("number", 2)
    results = {(cell, name): tally for name, tally in measure(cell, 5, 0).items()}
    text = page(results, 0, "command", 1.0)

    assert "| number | mean of the group | 2 |" in text
