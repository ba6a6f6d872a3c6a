import itertools
from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.designs.margins import PostStratified
from stratal.errors import InputError
from stratal.estimands import ClassReport

LANGUAGE = np.array(["de"] * 700 + ["en"] * 250 + ["fr"] * 50)
RNG = np.random.default_rng(0)
PROXY = RNG.random(1000)
Z = (RNG.random(1000) < np.select([LANGUAGE == "de", LANGUAGE == "en"], [0.9, 0.5], 0.1)).astype(float)


@pytest.fixture
def sample():
    population = stratal.Population.from_arrays(
        proxy=PROXY,
        groups={"language": LANGUAGE, "answer": np.where(PROXY > 0.5, "yes", "no")},
        predicted="answer",
    )
    return stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)


def test_is_cochrans_estimator_and_its_variance_given_the_group_sizes(sample):
    found = stratal.estimate(
        stratal.designs.post_stratify(sample, "language"), Z[sample.ids], estimator="horvitz-thompson"
    )

    sizes = np.array([700, 250, 50])
    parts = [Z[sample.ids][LANGUAGE[sample.ids] == level] for level in ("de", "en", "fr")]
    n_h = np.array([len(part) for part in parts])
    value = sizes @ [part.mean() for part in parts] / 1000
    spread = np.array([part.var(ddof=1) for part in parts])
    variance = np.sum((sizes / 1000) ** 2 * (1 - n_h / sizes) * spread / n_h)
    assert found.value == pytest.approx(value)
    assert found.standard_error == pytest.approx(np.sqrt(variance))
    assert [row.name for row in found.strata] == ["de", "en", "fr"]


def test_over_all_samples_it_is_unbiased_given_the_group_sizes():
    z, kind = np.array([0.0, 1, 1, 0, 1, 0]), np.array(["a", "a", "a", "a", "b", "b"])
    population = stratal.Population.from_arrays(ids=range(6), groups={"kind": kind})
    drawn = stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)
    values = []
    for units in map(list, itertools.combinations(range(6), 3)):
        if np.sum(kind[units] == "b") == 1:
            sample = replace(drawn, ids=np.array(units), groups={"kind": kind[units]})
            again = stratal.designs.post_stratify(sample, "kind")
            values.append(stratal.estimate(again, z[units], estimator="horvitz-thompson").value)

    assert len(values) == 12
    assert np.mean(values) == pytest.approx(z.mean(), abs=1e-12)


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_it_is_sharper_and_its_interval_holds():
    population = stratal.Population.from_arrays(ids=range(1000), groups={"language": LANGUAGE})
    rows = []
    for seed in range(300):
        drawn = stratal.designs.SimpleRandom(budget=100).draw(population, seed=seed)
        plain = stratal.estimate(drawn, Z[drawn.ids]).value
        found = stratal.estimate(stratal.designs.post_stratify(drawn, "language"), Z[drawn.ids])
        low, high = found.confidence_interval()
        rows.append((plain - Z.mean(), found.value - Z.mean(), low <= Z.mean() <= high))
    errors = np.array(rows)

    assert np.mean(errors[:, 1] ** 2) < 0.85 * np.mean(errors[:, 0] ** 2)
    assert errors[:, 2].mean() >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300)


def test_how_often_each_class_is_predicted_sharpens_precision_and_recall(sample):
    labels = np.where(RNG.random(100) < 0.8, sample.groups["answer"], "no")

    recall = ClassReport(["recall"], predicted="answer")
    plain = stratal.estimate(sample, labels, estimand=recall)
    known = stratal.estimate(stratal.designs.post_stratify(sample, "answer"), labels, estimand=recall)

    no = {"class": "no"}
    assert known.of(**no).standard_error < 0.8 * plain.of(**no).standard_error


def test_proxies_stay_where_their_means_in_the_groups_can_be_counted(sample):
    again = stratal.designs.post_stratify(sample, "language")
    alone = stratal.designs.post_stratify(replace(sample, population=None), "language")

    assert again.summary.proxy_means[0, 0] == pytest.approx(PROXY[:700].mean())
    assert stratal.estimate(again, Z[sample.ids], estimator="stratppi").estimator == "stratppi"
    assert alone.proxy_names == ()
    assert stratal.estimate(alone, Z[sample.ids]).n == 100


def test_goes_through_a_file(sample, tmp_path):
    again = stratal.designs.post_stratify(sample, "language")

    read = stratal.Sample.read(again.write(tmp_path / "s.parquet"))

    assert read == again
    assert isinstance(read.design, PostStratified)


def test_sizes_may_come_from_elsewhere(sample):
    bare = replace(sample, totals={})
    sizes = {"de": 700, "en": 250, "fr": 50, "it": 0}

    again = stratal.designs.post_stratify(bare, "language", sizes)

    assert again.summary.sizes.tolist() == [700, 250, 50]
    with pytest.raises(InputError, match="give sizes="):
        stratal.designs.post_stratify(bare, "language")
    with pytest.raises(InputError, match="do not add up"):
        stratal.designs.post_stratify(bare, "language", {"de": 700, "en": 250, "fr": 49})
    with pytest.raises(InputError, match="'fr'"):
        stratal.designs.post_stratify(bare, "language", {"de": 750, "en": 250})
    with pytest.raises(InputError, match="fewer units than were drawn"):
        stratal.designs.post_stratify(bare, "language", {"de": 10, "en": 250, "fr": 740})


def test_mistakes(sample):
    population = sample.population
    stratified = stratal.plan(population, budget=50).draw(seed=1)

    with pytest.raises(InputError, match="stored in the sample; 'tongue' is not"):
        stratal.designs.post_stratify(stratified, "tongue")
    with pytest.raises(InputError, match="stored in the sample; 'tongue' is not"):
        stratal.designs.post_stratify(sample, "tongue")
    with pytest.raises(InputError, match="takes a Sample"):
        stratal.designs.post_stratify(population, "language")
    with pytest.raises(InputError, match="was drawn"):
        PostStratified(group="language", levels=("de",)).draw(population, 1)


def test_the_estimator_without_groups_is_refused_and_names_the_way(sample):
    with pytest.raises(InputError, match="post_stratify"):
        stratal.estimate(sample, Z[sample.ids], estimator="post-stratified")
    again = stratal.designs.post_stratify(sample, "language")
    found = stratal.estimate(again, Z[sample.ids], estimator="post-stratified")
    assert found.value == stratal.estimate(again, Z[sample.ids], estimator="horvitz-thompson").value
