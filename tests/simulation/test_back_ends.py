"""A simulation is the same table from any back end, and goes on from what is finished."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiers import cells

import stratal
from stratal.simulation.workers import run_tasks

GENERATOR = np.random.default_rng(3)
PROXY = np.round(GENERATOR.beta(4, 1, 800), 2)
Z = (GENERATOR.random(800) < PROXY).astype(float)
HOW: dict[str, Any] = {
    "designs": ["simple-random", "k-means:4:neyman", "equal-size:3:two-round"],
    "budgets": [40, 80],
    "replicates": 60,
    "seed": 7,
}


def table(**more: Any) -> stratal.simulation.SimulationTable:
    population = stratal.Population.from_arrays(proxy=PROXY)
    return stratal.simulate(population, Z, **HOW | more)


@contextmanager
def dask(_: pytest.FixtureRequest) -> Iterator[Any]:
    """A Dask cluster of two processes, as joblib's back end."""
    joblib, distributed = pytest.importorskip("joblib"), pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield None


@contextmanager
def ray(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A Ray of two processes, as joblib's back end."""
    joblib, ray = pytest.importorskip("joblib"), pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    register_ray()
    folder = request.getfixturevalue("tmp_path_factory").getbasetemp()
    small = {"include_dashboard": False, "object_store_memory": 80 * 2**20, "log_to_driver": False}
    ray.init(num_cpus=2, _temp_dir=str(folder), configure_logging=False, **small)
    try:
        with joblib.parallel_config(backend="ray", n_jobs=2):
            yield None
    finally:
        ray.shutdown()


@contextmanager
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A Spark of a master and two workers."""
    yield request.getfixturevalue("spark")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cluster", cells([dask, ray, spark], fast=[spark]))
def test_a_cluster_gives_the_same_table(cluster: Any, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    expected, cells, again = table(workers=1), tmp_path / "cells.parquet", []
    some = HOW["designs"][:1]
    stratal.simulate(stratal.Population.from_arrays(proxy=PROXY), Z, **HOW | {"designs": some}, store=cells)
    with cluster(request) as workers:
        done: list[tuple[int, int]] = []
        assert table(workers=workers, store=cells, progress=lambda *at: done.append(at)) == expected
    found = table(workers=1, store=cells, progress=lambda *at: again.append(at))

    assert done == [(1, 3), (2, 3), (3, 3)]  # what was finished before is not done again
    assert found == expected
    assert all(finished == total for finished, total in again)


@pytest.mark.filterwarnings("ignore")
def test_a_mistake_on_spark_ends_the_run_and_its_jobs(spark: Any) -> None:
    def work(task: int) -> Iterator[int]:
        if task == 1:
            raise ValueError("no such thing")
        time.sleep(60)
        yield task

    with pytest.raises(Exception, match="no such thing"):
        list(run_tasks(work, [1, 2], spark))
    tracker = spark.sparkContext.statusTracker()
    until = time.monotonic() + 30
    while tracker.getActiveJobsIds() and time.monotonic() < until:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()
