"""Any clusterer as stratifier: named features, fitted on some of the rows, the same rule for tables."""

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.strata import feature_clusters
from stratal.strata.feature_clusters import fit_centres, rows_of_levels

cluster = pytest.importorskip("sklearn.cluster")
mixture = pytest.importorskip("sklearn.mixture")


def blobs(size=600, seed=1):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 3, size)
    centres = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    x = centres[which] + rng.normal(size=(size, 2))
    return x, which, np.clip(0.3 * which + 0.1 * rng.random(size), 0, 1)


def population(x, proxy):
    return stratal.Population.from_arrays(proxy=proxy, features={"a": x[:, 0], "b": x[:, 1]})


@pytest.mark.parametrize(
    "clusterer",
    [
        cluster.KMeans(3, n_init=4, random_state=0),
        cluster.AgglomerativeClustering(3),
        cluster.Birch(n_clusters=3),
        cluster.DBSCAN(eps=0.4),
        mixture.GaussianMixture(3, random_state=0),
    ],
    ids=lambda c: type(c).__name__,
)
def test_clusters_that_are_plain_to_see_are_found_by_any_clusterer(clusterer):
    x, which, proxy = blobs()
    strata = stratal.strata.stratify(population(x, proxy), "features", clusterer=clusterer)

    assert strata.n_strata == 3
    assert np.mean(strata.codes == which) > 0.99
    assert strata.notes == ()


def test_the_users_clusterer_is_not_changed_and_brings_its_own_number():
    x, _, proxy = blobs()
    clusterer = cluster.KMeans(4, n_init=2, random_state=0)
    strata = stratal.strata.stratify(population(x, proxy), "features", 7, clusterer=clusterer, features=["a"])

    assert strata.n_strata == 4
    assert strata.rule.columns == ("a",)
    assert not hasattr(clusterer, "cluster_centers_")


def test_k_means_keeps_its_clusters():
    x, _, proxy = blobs(seed=3)
    found = stratal.strata.stratify(
        population(x, proxy),
        "features",
        clusterer=cluster.KMeans(5, n_init=4, random_state=0),
        standardise=False,
    )
    labels = cluster.KMeans(5, n_init=4, random_state=0).fit_predict(x[np.lexsort(x.T[::-1])])
    codes = found.codes[np.lexsort(x.T[::-1])]

    assert len({(a, b) for a, b in zip(labels, codes, strict=True)}) == 5


def test_a_table_gets_the_same_kind_of_rule_and_few_rows(monkeypatch, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(feature_clusters, "MAX_FITTED_ROWS", 100)
    x, which, proxy = blobs(2000)
    names = [f"u{i}" for i in range(len(x))]
    pq.write_table(pa.table({"id": names, "p": proxy, "a": x[:, 0], "b": x[:, 1]}), tmp_path / "t.parquet")
    table = stratal.Population.read(tmp_path / "t.parquet", id="id", proxy="p", features=["a", "b"])
    seen = []

    class Watched:
        def fit_predict(self, rows):
            seen.append(len(rows))
            return cluster.KMeans(3, n_init=4, random_state=0).fit_predict(rows)

    strata = stratal.strata.stratify(table, "features", clusterer=Watched())

    assert seen == [100]
    assert sorted(strata.sizes.tolist()) == pytest.approx(sorted(np.bincount(which).tolist()), abs=5)


def test_rows_are_evenly_spaced_whatever_the_batches(monkeypatch):
    monkeypatch.setattr(feature_clusters, "MAX_FITTED_ROWS", 20)
    units = stratal.Population.from_arrays(proxy=np.full(130, 0.5), features={"a": np.arange(130.0)})
    batches = type(units).batches
    monkeypatch.setattr(type(units), "batches", lambda self, columns: batches(self, columns, 11))
    found = rows_of_levels(units, None, {"": 130}, ("a",))[""][:, 0]

    assert found.tolist() == list(range(0, 130, 7))


def test_what_is_no_clusterer_is_refused():
    rows = np.arange(6.0)[:, None]
    for clusterer, message in (
        (object(), "cannot be fitted"),
        (cluster.DBSCAN(eps=1e-9, min_samples=5), "found no cluster"),
    ):
        with pytest.raises(InputError, match=message):
            fit_centres(rows, ("a",), 1, clusterer=clusterer)
    x, _, proxy = blobs()
    with pytest.raises(InputError, match="a clusterer can only be used with method='features'"):
        stratal.strata.stratify(population(x, proxy), "k-means", clusterer=cluster.KMeans(3))
