"""What is particular to one engine."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import duckdb
import fsspec
import ibis
import numpy as np
import pyarrow as pa
import pytest

from stratal.tables.engine import duckdb_connection, literal_table, memory_limit, record_batches, run_query

TEXTS = ["a", "b\tc\nd", "'quoted' \\ \ue000", "日本"]


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_small_tables_are_the_same_however_an_engine_takes_them(name):
    columns = {
        "text": np.array(TEXTS, object),
        "whole": np.arange(4) - 2**62,
        "number": np.array([0.1, -np.inf, 1e-300, 5.0]),
        "told": np.array([True, False, True, True]),
    }
    found = ibis.duckdb.connect().to_pyarrow(literal_table(columns, SimpleNamespace(name=name)))

    assert found.sort_by("whole").to_pydict() == {key: values.tolist() for key, values in columns.items()}


def test_an_engine_without_small_tables_of_its_own_needs_none():
    import ibis

    table = literal_table({"code": np.arange(3)}, SimpleNamespace(name="postgres"))

    assert "memtable" not in ibis.to_sql(table, dialect="postgres")


def test_threads_and_memory_are_what_was_asked_for():
    found = duckdb_connection(threads=1, memory="300MB").execute(
        "SELECT current_setting('threads'), current_setting('memory_limit')"
    )

    assert found.fetchone() == (1, "286.1 MiB")
    assert memory_limit(8) == "2000MB"


def test_connections_share_a_database_and_neither_tables_nor_settings():
    one, other = duckdb_connection(), duckdb_connection()
    one.register("rows", pa.table({"a": [1]}))
    one.execute("CREATE TEMP TABLE stored AS SELECT 1 AS a")
    one.execute("SET TimeZone = 'Asia/Tokyo'")

    for name in ("rows", "stored"):
        with pytest.raises(duckdb.CatalogException):
            other.execute(f"SELECT * FROM {name}")
    assert other.execute("SELECT current_setting('TimeZone')").fetchone() != ("Asia/Tokyo",)
    one.close()
    assert other.execute("SELECT 1").fetchone() == (1,)


def test_other_settings_and_filesystems_of_its_own_have_another_database():
    setting = "SELECT current_setting('threads')"
    few, many = duckdb_connection(threads=1), duckdb_connection(threads=3)
    local = [duckdb_connection(shared=False) for _ in range(2)]
    for connection in local:
        connection.register_filesystem(fsspec.filesystem("memory"))

    assert (few.execute(setting).fetchone(), many.execute(setting).fetchone()) == ((1,), (3,))
    assert "memory" not in duckdb_connection().list_filesystems()


FORKED = """
import os
from stratal.tables.engine import duckdb_connection
query = "SELECT sum(range) FROM range(1_000_000)"
expected = duckdb_connection().execute(query).fetchone()
child = os.fork()
if child == 0:
    os._exit(0 if duckdb_connection().execute(query).fetchone() == expected else 1)
raise SystemExit(os.waitpid(child, 0)[1])
"""


def test_a_process_that_was_forked_has_a_database_of_its_own():
    """The threads of its parent's database are not there."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("pieces", [[10], [1] * 10, [4, 6], [0, 7, 0, 3]])
def test_batches_have_the_size_that_was_asked_for_however_the_engine_hands_them_on(pieces):
    starts = np.cumsum([0, *pieces])
    engine = SimpleNamespace(
        name="pyspark",
        to_pyarrow_batches=lambda expression, chunk_size: (
            pa.record_batch({"a": np.arange(start, start + rows)})
            for start, rows in zip(starts, pieces, strict=False)
        ),
    )

    for size, expected in ((4, [4, 4, 2]), (10, [10]), (100, [10])):
        found = list(record_batches(engine, None, size))
        assert [batch.num_rows for batch in found] == expected
        assert [entry for batch in found for entry in batch.column("a").to_pylist()] == list(range(10))


@pytest.mark.parametrize(
    "columns",
    [
        {"nothing": pa.nulls(2), "there": pa.array([1, 2])},
        {"flag": pa.array([True, None]), "moment": pa.array([0, None], pa.timestamp("us", "UTC"))},
        {
            "few": pa.array([1, None], pa.int8()),
            "list": pa.array([["a"], []]),
            "amount": pa.array([1.5, None]),
        },
    ],
)
def test_an_answer_of_duckdb_is_what_ibis_hands_on(columns):
    ibis = pytest.importorskip("ibis")
    connection, table = ibis.duckdb.connect(), ibis.memtable(pa.table(columns))

    assert run_query(connection, table).equals(connection.to_pyarrow(table))
