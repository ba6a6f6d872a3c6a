"""Samples of whole groups."""

from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.designs.clusters import bell_mccaffrey
from stratal.designs.sample import Design
from stratal.errors import BudgetError, InputError
from stratal.report.notes import UNLIKE_CLUSTERS, has_code


def population(clusters=30, seed=0):
    rng = np.random.default_rng(seed)
    document = np.repeat([f"d{i:02d}" for i in range(clusters)], rng.integers(1, 8, clusters))
    order = rng.permutation(len(document))
    return stratal.Population.from_arrays(
        proxy=rng.random(len(document)), ids=order, groups={"document": document[order]}
    )


def test_every_unit_of_a_drawn_cluster_is_in_the_sample():
    units = population()
    sample = stratal.designs.ClusterSample(cluster="document", n_clusters=7).draw(units, seed=1)

    drawn, counts = np.unique(sample.groups["document"], return_counts=True)
    assert len(drawn) == 7
    levels = units.levels("document")
    assert [levels[name] for name in drawn.tolist()] == counts.tolist()
    np.testing.assert_allclose(sample.inclusion_probability, 7 / 30)


def test_more_clusters_keep_those_that_were_drawn():
    units = population()
    samples = [
        stratal.designs.ClusterSample(cluster="document", n_clusters=m).draw(units, seed=1)
        for m in (3, 9, 30)
    ]
    ids = [set(sample.ids.tolist()) for sample in samples]

    assert ids[0] < ids[1] < ids[2]
    assert samples[2].size == units.size


def test_a_budget_of_labels_is_kept_on_average():
    units = population(300)
    design = stratal.designs.ClusterSample(cluster="document", budget=200)
    sizes = np.array([design.draw(units, seed=seed).size for seed in range(400)])

    expected = int(200 * 300 / units.size) * units.size / 300
    assert expected <= 200
    assert sizes.mean() == pytest.approx(expected, abs=4 * sizes.std() / 20)


@pytest.mark.parametrize("options", [{"n_clusters": 1}, {"n_clusters": 31}, {"budget": 5}])
def test_fewer_than_two_clusters_or_more_than_there_are_is_refused(options):
    with pytest.raises(BudgetError, match="cannot be drawn"):
        stratal.designs.ClusterSample(cluster="document", **options).draw(population(), seed=1)


@pytest.mark.parametrize("options", [{}, {"n_clusters": 3, "budget": 9}])
def test_exactly_one_of_clusters_and_labels_is_required(options):
    with pytest.raises(InputError, match="either n_clusters or a budget"):
        stratal.designs.ClusterSample(cluster="document", **options)


def test_an_unknown_group_is_named():
    with pytest.raises(InputError, match="no such group column: 'doc'"):
        stratal.designs.ClusterSample(cluster="doc", n_clusters=3).draw(population(), seed=1)


def test_a_census_has_no_error():
    units = population()
    sample = stratal.designs.ClusterSample(cluster="document", n_clusters=30).draw(units, seed=1)
    result = stratal.estimate(sample, sample.ids % 2, target="population")

    assert result.standard_error == 0
    assert result.confidence_interval().low == result.value == result.confidence_interval().high


def test_units_alike_within_clusters_are_worth_one_each():
    units = population(200)
    sample = stratal.designs.ClusterSample(cluster="document", n_clusters=50).draw(units, seed=1)
    alike = np.array([int(name[1:]) % 2 for name in sample.groups["document"]])

    result = stratal.estimate(sample, alike, estimator="hajek")

    assert result.effective_sample_size < 70 < result.n
    sizes = np.unique(sample.groups["document"], return_counts=True)[1]
    assert result.degrees_of_freedom == pytest.approx(
        bell_mccaffrey(sizes / sizes.sum(), sizes / sizes.sum())
    )
    assert 35 < result.degrees_of_freedom < 49  # fewer than clusters less one, since sizes differ


def test_a_proxy_is_trusted_once_there_are_clusters_enough():
    names = [
        stratal.estimate(sample, sample.ids % 2).estimator
        for sample in (
            stratal.designs.ClusterSample(cluster="document", n_clusters=m).draw(population(200), seed=1)
            for m in (19, 20)
        )
    ]

    assert names == ["hajek", "ppi++"]


def test_unanswered_units_and_clusters_are_taken_at_random():
    sample = stratal.designs.ClusterSample(cluster="document", n_clusters=10).draw(population(), seed=1)
    documents = sample.groups["document"]
    answered = (documents != documents[0]) & (np.arange(sample.size) % 4 > 0)

    weights = sample.weighting(answered)

    whole = 30 / (9 * sample.population_size) * np.sum(documents != documents[0])
    assert weights.draws == 9
    assert weights.weights.sum() == pytest.approx(whole)


def test_the_population_is_not_needed_again(tmp_path):
    sample = stratal.designs.ClusterSample(cluster="document", n_clusters=10).draw(population(), seed=1)
    again = stratal.Sample.read(sample.write(tmp_path / "sample.parquet"))

    z = sample.ids % 2
    assert stratal.estimate(again, z) == stratal.estimate(sample, z)


def test_the_squared_sizes_of_all_clusters_travel_with_the_sample(tmp_path):
    units = population()
    sample = stratal.designs.ClusterSample(cluster="document", n_clusters=7).draw(units, seed=1)
    squared = sum(size**2 for size in units.levels("document").values())

    read = stratal.Sample.read(sample.write(tmp_path / "sample.parquet"))
    assert read.design.squared_sizes == sample.design.squared_sizes == squared
    assert read.weighting().squared_sizes == squared


def test_a_sample_without_squared_sizes_is_read():
    """Samples drawn before the squared sizes were kept have the interval that they had."""
    sample = stratal.designs.ClusterSample(cluster="document", n_clusters=7).draw(population(), seed=1)
    record = {name: value for name, value in sample.design.to_dict().items() if name != "squared_sizes"}
    older = replace(sample, design=Design.from_dict(record))
    labels = sample.ids % 2

    before, now = stratal.estimate(older, labels), stratal.estimate(sample, labels)
    assert before.value == now.value
    assert before.evidence.large_cluster_correction == (0.0, 1.0, 1.0)
    low, high = before.confidence_interval().low, before.confidence_interval().high
    assert now.confidence_interval().low <= low < high <= now.confidence_interval().high


def of_few_clusters(labels_of):
    """Return the estimate from 7 of 250 clusters of 20 units, with the labels (n,) of a function."""
    cluster = np.repeat([f"c{k:03d}" for k in range(250)], 20)
    units = stratal.Population.from_arrays(groups={"cluster": cluster})
    sample = stratal.designs.ClusterSample(cluster="cluster", n_clusters=7).draw(units, seed=1)
    return stratal.estimate(sample, labels_of(np.random.default_rng(2), sample.groups["cluster"]))


def test_a_note_says_that_the_interval_allows_for_clusters_unlike_those_that_were_drawn():
    estimate = of_few_clusters(lambda rng, cluster: (rng.random(len(cluster)) < 0.5).astype(float))

    assert estimate.clusters == 7
    assert has_code(estimate.notes, UNLIKE_CLUSTERS)
    low, high = estimate.confidence_interval()
    assert high - low > 1.5 * 4 * estimate.standard_error
    by_survey = estimate.confidence_interval(method="survey")
    assert by_survey.high - by_survey.low < 1.3 * 4 * estimate.standard_error
    # The note is about the default interval, and an answer with another one does not have it.
    stated = {method: " ".join(estimate.summary(0.95, method).notes) for method in ("auto", "survey")}
    assert ["unlike all that were drawn" in text for text in stated.values()] == [True, False]


def test_no_such_note_where_clusters_differ_as_much_as_units_do_or_units_were_drawn():
    of_whole_clusters = of_few_clusters(lambda _, cluster: np.unique(cluster, return_inverse=True)[1] % 2.0)
    units = stratal.Population.from_arrays(ids=range(5000))
    sample = stratal.designs.SimpleRandom(budget=140).draw(units, seed=1)
    of_units = stratal.estimate(sample, [1.0, 0.0] * 70)

    assert of_units.clusters is None
    for estimate in (of_whole_clusters, of_units):
        assert not has_code(estimate.notes, UNLIKE_CLUSTERS)
