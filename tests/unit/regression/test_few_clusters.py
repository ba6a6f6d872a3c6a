import numpy as np
import pytest

from stratal.designs.clusters import bell_mccaffrey
from stratal.regression.m_estimation import cluster_corrected_residuals

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
    return x, residual, cluster, parts, bread


def by_units(x, cluster, bread):
    """Return (I − H)_{·c} (I − H_cc)^(−½) X_c b_k of each cluster (n, m), for every coefficient k."""
    hat = np.eye(len(x)) - x @ bread @ x.T
    found = []
    for k in range(x.shape[1]):
        columns = []
        for c in range(len(SIZES)):
            member = cluster == c
            values, vectors = np.linalg.eigh(hat[np.ix_(member, member)])
            root = vectors / np.sqrt(values) @ vectors.T
            columns.append(hat[:, member] @ root @ x[member] @ bread[:, k])
        found.append(np.stack(columns, axis=1))
    return found


def test_gradients_and_degrees_are_bell_and_mccaffreys():
    x, residual, cluster, parts, bread = fit()
    stretched, found = cluster_corrected_residuals(residual, cluster, parts, bread)
    totals = np.stack([np.bincount(cluster, column) for column in stretched.T], axis=1)
    errors = residual[:, 0]  # the first feature is 1

    for k, columns in enumerate(by_units(x, cluster, bread)):
        omega = columns.T @ columns
        freedom = np.trace(omega) ** 2 / np.sum(omega**2)
        expected = (columns.T @ errors) * np.sqrt(1 - 1 / len(SIZES))

        assert found[k] == pytest.approx(freedom)
        assert totals @ bread[:, k] == pytest.approx(expected)


def test_an_intercept_alone_is_the_mean():
    parts = np.array(SIZES) / sum(SIZES)
    stretched, freedom = cluster_corrected_residuals(
        np.ones((7, 1)), np.arange(7), parts[:, None, None], np.ones((1, 1))
    )

    assert freedom[0] == pytest.approx(bell_mccaffrey(parts, parts))
    assert stretched[:, 0] == pytest.approx(np.sqrt(6 / 7) / np.sqrt(1 - parts))


def test_a_cluster_that_decides_a_coefficient_alone_leaves_one_degree():
    parts = np.stack([np.diag([1.0, 1.0]), *[np.diag([1.0, 0.0])] * 5])
    stretched, freedom = cluster_corrected_residuals(
        np.ones((6, 2)), np.arange(6), parts, np.diag([1 / 6, 1.0])
    )

    assert np.all(np.isfinite(stretched))
    assert freedom[1] == pytest.approx(1.0)
    assert freedom[0] > 4
