"""A simulation is the same table from any back end of joblib, and goes on from what is finished."""

from __future__ import annotations

import numpy as np
import pytest

import stratal

GENERATOR = np.random.default_rng(3)
PROXY = np.round(GENERATOR.beta(4, 1, 800), 2)
Z = (GENERATOR.random(800) < PROXY).astype(float)
HOW = {"designs": ["simple-random", "k-means:4:neyman"], "budgets": [40, 80], "replicates": 60, "seed": 7}


def table(**more):
    population = stratal.Population.from_arrays(proxy=PROXY)
    return stratal.simulate(population, Z, **HOW, **more)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_table(tmp_path):
    joblib = pytest.importorskip("joblib")
    distributed = pytest.importorskip("distributed")
    expected = table(workers=1)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert table(workers=None, store=tmp_path / "cells.parquet") == expected
    again = []
    found = table(workers=1, store=tmp_path / "cells.parquet", progress=lambda *done: again.append(done))

    assert found == expected
    assert all(done == total for done, total in again)
