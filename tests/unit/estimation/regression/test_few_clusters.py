import numpy as np
import pytest

from stratal.designs.clusters import bell_mccaffrey
from stratal.estimation.regression.m_estimation import FewClusters

SIZES = (3, 9, 4, 2, 14, 5, 6)


def fit(sizes=SIZES):
    """Return features, residuals and the clusters of an ordinary least squares fit."""
    random = np.random.default_rng(1)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    x = np.column_stack(
        [np.ones(len(cluster)), random.normal(size=len(cluster)), random.normal(size=len(sizes))[cluster]]
    )
    y = x @ [1.0, 2.0, -1.0] + random.normal(size=len(cluster))
    bread = np.linalg.inv(x.T @ x)
    residual = (y - x @ (bread @ x.T @ y))[:, None] * x
    parts = np.stack([x[cluster == c].T @ x[cluster == c] for c in range(len(sizes))])
    return x, residual, FewClusters(cluster=cluster, parts=parts, bread=bread)


def by_units(x, few):
    """Return (I − H)_{·c} (I − H_cc)^(−½) X_c b_k of each cluster (n, m), for every coefficient k."""
    hat = np.eye(len(x)) - x @ few.bread @ x.T
    found = []
    for k in range(x.shape[1]):
        columns = []
        for c in range(len(few.parts)):
            member = few.cluster == c
            values, vectors = np.linalg.eigh(hat[np.ix_(member, member)])
            root = vectors / np.sqrt(values) @ vectors.T
            columns.append(hat[:, member] @ root @ x[member] @ few.bread[:, k])
        found.append(np.stack(columns, axis=1))
    return found


def test_gradients_and_degrees_are_bell_and_mccaffreys():
    x, residual, few = fit()
    totals = np.stack([np.bincount(few.cluster, column) for column in few.stretched(residual).T], axis=1)
    errors = residual[:, 0]  # the first feature is 1

    for k, columns in enumerate(by_units(x, few)):
        omega = columns.T @ columns
        freedom = np.trace(omega) ** 2 / np.sum(omega**2)
        expected = (columns.T @ errors) * np.sqrt(1 - 1 / len(SIZES))

        assert few.degrees_of_freedom()[k] == pytest.approx(freedom)
        assert totals @ few.bread[:, k] == pytest.approx(expected)


def test_an_intercept_alone_is_the_mean():
    parts = np.array(SIZES) / sum(SIZES)
    few = FewClusters(
        cluster=np.repeat(np.arange(7), SIZES), parts=parts[:, None, None], bread=np.ones((1, 1))
    )

    assert few.degrees_of_freedom()[0] == pytest.approx(bell_mccaffrey(parts, parts))
    assert few.stretches[:, 0, 0] == pytest.approx(1 / np.sqrt(1 - parts))


def test_a_cluster_that_decides_a_coefficient_alone_leaves_one_degree():
    parts = np.stack([np.diag([1.0, 1.0]), *[np.diag([1.0, 0.0])] * 5])
    few = FewClusters(cluster=np.arange(6), parts=parts, bread=np.diag([1 / 6, 1.0]))

    assert np.all(np.isfinite(few.stretches))
    assert few.degrees_of_freedom()[1] == pytest.approx(1.0)
    assert few.degrees_of_freedom()[0] > 4
