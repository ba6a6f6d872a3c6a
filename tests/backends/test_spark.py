"""Spark as people use it: the command, refusals, and a worker that dies during a draw."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import engines
from tests.tiers import cells

import stratal
from stratal.errors import InputError
from stratal.population import Population

from .sources import Rows, from_arrays, on_spark_dataframe
from .test_conformance import RULES, mixed_rows, same_draw

pytestmark = pytest.mark.filterwarnings("ignore")


def written(folder: Path, **columns: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return folder / "rows.parquet"


@pytest.mark.parametrize(
    ("words", "ids", "proxy"),
    cells(
        [
            ("1 id is duplicated (first: 'b')", ["a", "b", "b"], [0.1, 0.2, 0.3]),
            ("1 missing value (first: id 'b'", ["a", "b", "c"], [0.1, None, 0.3]),
            ("1 missing id", ["a", " ", "c"], [0.1, 0.2, 0.3]),
            ("1 id that is of an unsupported type (first: 2.5)", [1.0, 2.5, 3.0], [0.1, 0.2, 0.3]),
        ],
        fast=(),
    ),
)
def test_what_spark_holds_is_refused_alike(
    spark: Any, tmp_path: Path, words: str, ids: list[Any], proxy: list[Any]
) -> None:
    path = written(tmp_path, id=ids, proxy=proxy)
    with pytest.raises(InputError) as caught:
        Population.read(path, engine="spark", proxy="proxy")
    assert words in str(caught.value)


@pytest.mark.slow
def test_strata_and_text_ids_are_the_same_on_spark(spark: Any, tmp_path: Path) -> None:
    rows = mixed_rows(600, np.array([f' ünit {number}, "{number % 7}"' for number in range(600)]))
    expected, population = from_arrays(rows, tmp_path), on_spark_dataframe(spark, rows, tmp_path)

    for rule in (RULES["crossed"], RULES["centres"]):
        counts = np.minimum(expected.summarise(rule).sizes, 9)
        same_draw(
            population.units_with_smallest_keys(rule, counts, 3),
            expected.units_with_smallest_keys(rule, counts, 3),
        )
    assert population.levels("language") == expected.levels("language")
    assert population.distribution("judge") == expected.distribution("judge")
    assert population.digest(3) == expected.digest(3)


@pytest.mark.slow
def test_files_that_spark_cannot_read_are_one_error(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"rows.parquet.*(cannot be read|Spark could not run the query)"):
        Population.read(path, engine="spark", proxy="proxy")
    with pytest.raises(InputError, match=r"hdfs://nowhere.*Spark could not run the query"):
        Population.read("hdfs://nowhere.invalid/rows.parquet", engine="spark", proxy="proxy")
    whole = written(tmp_path, id=[1, 2], proxy=[0.1, 0.9])
    with pytest.raises(InputError, match="another Spark session is already running in this process"):
        Population.read(whole, engine="spark", master="local[7]", proxy="proxy")


@pytest.mark.slow
def test_a_directory_is_read_by_its_parts(spark: Any, tmp_path: Path) -> None:
    from .sources import from_parquet_parts

    rows = mixed_rows(300)
    expected = from_parquet_parts(rows, tmp_path)
    population = Population.read(tmp_path / "parts", engine="spark", directory=True, **rows.keywords)

    drawn = [stratal.plan(each, 40).draw(seed=7).ids.tolist() for each in (population, expected)]
    assert drawn[0] == drawn[1]


@pytest.mark.slow
def test_clusters_do_not_depend_on_how_many_rows_spark_hands_on(spark: Any, tmp_path: Path) -> None:
    generator, size = np.random.default_rng(2), 25_000  # Spark hands on 10,000 at a time
    columns = {"id": np.arange(size), "proxy": generator.random(size), "length": generator.normal(size=size)}
    path = written(tmp_path, **columns)
    table = Population.read(path, engine="spark", id="id", proxy="proxy", features="length")
    arrays = Population.from_arrays(
        ids=columns["id"], proxy=columns["proxy"], features={"length": columns["length"]}
    )

    found, expected = (stratal.strata.stratify(each, "features", 4) for each in (table, arrays))

    assert found.sizes.tolist() == expected.sizes.tolist()
    assert found.rule == expected.rule


@pytest.mark.slow
def test_a_worker_killed_during_a_draw_changes_nothing(
    spark: Any, spark_cluster: engines.Cluster, tmp_path: Path
) -> None:
    rows = mixed_rows(200_000)
    columns = rows.columns(3)
    path = written(tmp_path, **columns)
    rule, counts = RULES["cuts"], np.full(4, 200)
    expected = from_arrays(rows, tmp_path).units_with_smallest_keys(rule, counts, 7)
    population = Population.read(path, engine="spark", **rows.keywords)
    started = time.monotonic()
    same_draw(population.units_with_smallest_keys(rule, counts, 7), expected)
    took = time.monotonic() - started
    spark_cluster.start_workers(1)  # in place of the one that dies
    first = spark_cluster.workers[0]
    kill = threading.Timer(took / 3, first.send_signal, [signal.SIGKILL])
    kill.start()
    drawn = [population.units_with_smallest_keys(rule, counts, 7) for _ in range(3)]
    kill.join()
    assert first.wait(5) == -signal.SIGKILL
    for each in drawn:
        same_draw(each, expected)


DRAW = ["--proxy", "proxy", "--groups", "language", "--budget", "30", "--seed", "7"]


def test_the_command_draws_the_same_on_spark(
    spark: Any, run_command: Callable[..., Any], tmp_path: Path
) -> None:
    path = written(tmp_path, **mixed_rows(500).columns(3))
    for engine in ("spark", "duckdb"):
        done = run_command("draw", path, *DRAW, "--engine", engine, "--output", tmp_path / engine)
        assert done.status == 0, done.message

    drawn = [(tmp_path / engine / "to_label.csv").read_text() for engine in ("spark", "duckdb")]
    assert drawn[0] == drawn[1]


@pytest.mark.slow
def test_the_command_starts_a_spark_of_its_own(tmp_path: Path) -> None:
    engines.require_spark()
    rows: Rows = mixed_rows(500)
    path = written(tmp_path, **rows.columns(3))

    def handed(name: str, *more: str) -> str:
        words = ["draw", path, *DRAW]
        out = tmp_path / name
        done = subprocess.run(
            [sys.executable, "-m", "stratal", *map(str, words), "--output", str(out), *more],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return (out / "to_label.csv").read_text()

    assert handed("spark", "--engine", "spark=local[2]") == handed("duckdb")
