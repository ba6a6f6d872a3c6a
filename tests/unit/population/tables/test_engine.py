"""What is particular to one engine."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from stratal.population.tables.engine import connect, memory_limit, small_table

TEXTS = ["a", "b\tc\nd", "'quoted' \\ \ue000", "日本"]


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_small_tables_are_the_same_however_an_engine_takes_them(name):
    columns = {
        "text": np.array(TEXTS, object),
        "whole": np.arange(4) - 2**62,
        "number": np.array([0.1, -np.inf, 1e-300, 5.0]),
        "told": np.array([True, False, True, True]),
    }
    found = connect().to_pyarrow(small_table(columns, SimpleNamespace(name=name)))

    assert found.sort_by("whole").to_pydict() == {key: values.tolist() for key, values in columns.items()}


def test_an_engine_without_small_tables_of_its_own_needs_none():
    import ibis

    table = small_table({"code": np.arange(3)}, SimpleNamespace(name="postgres"))

    assert "memtable" not in ibis.to_sql(table, dialect="postgres")


def test_threads_and_memory_are_what_was_asked_for():
    found = connect(threads=1, memory="300MB").raw_sql(
        "SELECT current_setting('threads'), current_setting('memory_limit')"
    )

    assert found.fetchone() == (1, "286.1 MiB")
    assert memory_limit(8) == "2000MB"
