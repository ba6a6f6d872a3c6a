import numpy as np
import pytest

from stratal.designs.clusters import ClusterWeighting, bell_mccaffrey


def clusters_of(sizes, of=60):
    drawn = np.array(sizes)
    cluster = np.repeat(np.arange(len(drawn)), drawn)
    return ClusterWeighting(cluster=cluster, drawn=drawn, clusters=of, size=float(of * drawn.mean()))


def by_matrices(weighting):
    """Bell & McCaffrey's quadratic form of the units themselves: Σ (A_c X_c'e_c)² of a mean, units alike."""
    n, m = len(weighting.cluster), weighting.draws
    maker = np.eye(n) - np.full((n, n), 1.0 / n)
    forms = []
    for c in range(m):
        member = weighting.cluster == c
        own = maker[np.ix_(member, member)]
        values, vectors = np.linalg.eigh(own)
        root = vectors / np.sqrt(values) @ vectors.T
        forms.append(maker[:, member] @ root @ np.ones(member.sum()) / n)
    joint = np.stack(forms, axis=1)
    omega = joint.T @ joint
    return np.trace(omega) ** 2 / np.sum(omega**2), joint


@pytest.mark.parametrize("sizes", [(3, 3, 3, 3), (1, 2, 9, 4, 4), (40, 2, 3, 5, 2, 6, 1)])
def test_degrees_of_freedom_and_variance_are_bell_and_mccaffreys(sizes):
    weighting = clusters_of(sizes)
    freedom, joint = by_matrices(weighting)
    z = np.random.default_rng(3).normal(size=sum(sizes))
    expected = (1 - len(sizes) / 60) * np.sum((joint.T @ z) ** 2)

    u = weighting.few_cluster_residuals((z - z.mean())[:, None]) / weighting.weights.sum()
    totals = np.bincount(weighting.cluster, u[:, 0] * weighting.weights)
    found = (1 - len(sizes) / 60) * len(sizes) / (len(sizes) - 1) * np.sum(totals**2)

    assert weighting.degrees_of_freedom(z) == pytest.approx(freedom)
    assert found == pytest.approx(expected)
    assert weighting.covariance(u)[0, 0] == pytest.approx(found, rel=0.1)


def test_clusters_of_one_size_are_independent_draws():
    weighting = clusters_of((7,) * 12)
    z = np.random.default_rng(4).normal(size=(84, 2))

    assert weighting.degrees_of_freedom(z[:, 0]) == 11
    assert weighting.few_cluster_residuals(z) == pytest.approx(z)


def test_the_variance_has_no_bias_where_units_vary_alike():
    weighting = clusters_of((60, 5, 3, 8, 2, 4), of=10**9)
    random = np.random.default_rng(5)
    n, replicates = len(weighting.cluster), 20_000
    z = random.normal(size=(n, replicates))
    off = (z - z.mean(axis=0)) / weighting.weights.sum()
    found = np.diag(weighting.covariance(weighting.few_cluster_residuals(off)[:, :400])).mean()
    plain = np.diag(weighting.covariance(off[:, :400])).mean()

    true = 1.0 / n
    assert found == pytest.approx(true, rel=0.15)
    assert plain < 0.75 * true  # a cluster of 60 among 82 units pulls the mean to itself


def test_one_cluster_tells_nothing():
    weighting = clusters_of((5,))

    assert weighting.degrees_of_freedom(np.ones(5)) == 1
    assert weighting.few_cluster_residuals(np.ones((5, 1))).tolist() == [[1.0]] * 5


def test_a_dominant_cluster_leaves_few_degrees():
    assert bell_mccaffrey(np.r_[0.91, np.full(9, 0.01)], np.r_[0.91, np.full(9, 0.01)]) < 1.5
