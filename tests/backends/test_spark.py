"""A table on Spark answers as arrays do; needs pyspark and Java."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stratal.errors import InputError
from stratal.population import Population

from .sources import Rows, from_arrays
from .test_conformance import RULES, mixed_rows, same_draw

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    import ibis
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    yield ibis.pyspark.connect(session)
    session.stop()


def on_spark(connection: Any, rows: Rows, folder: Path) -> Population:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(rows.columns(13)), folder / "rows.parquet", row_group_size=1000)
    return Population.from_table(connection.read_parquet(folder / "rows.parquet"), **rows.keywords)


@pytest.mark.parametrize("n", [3000, 100_000])
def test_spark_answers_as_arrays_do(connection: Any, tmp_path: Path, n: int) -> None:
    rows = mixed_rows(n)
    expected, population = from_arrays(rows, tmp_path), on_spark(connection, rows, tmp_path)

    for proxy in ("proxy", "judge"):
        assert population.distribution(proxy) == expected.distribution(proxy)
        assert population.distributions("language", proxy) == expected.distributions("language", proxy)
    for group in ("language", "year"):
        assert population.levels(group) == expected.levels(group)
    for rule in RULES.values():
        found, wanted = population.summarise(rule), expected.summarise(rule)
        np.testing.assert_array_equal(found.sizes, wanted.sizes)
        np.testing.assert_allclose(found.proxy_means, wanted.proxy_means, rtol=1e-12)
        counts = np.minimum(wanted.sizes, 20)
        same_draw(population.smallest(rule, counts, 7), expected.smallest(rule, counts, 7))


@pytest.mark.parametrize(
    ("ids", "proxy", "words"),
    [
        (["a", "b", "b"], [0.1, 0.2, 0.3], "1 id duplicated (first: 'b')"),
        (["a", "b", "c"], [0.1, None, 0.3], "1 missing value (first: id 'b'"),
        (["a", " ", "c"], [0.1, 0.2, 0.3], "1 missing id"),
        ([1.0, 2.5, 3.0], [0.1, 0.2, 0.3], "1 id that cannot be an id (first: 2.5)"),
    ],
)
def test_what_spark_holds_is_refused_alike(
    connection: Any, tmp_path: Path, ids: list[Any], proxy: list[Any], words: str
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": ids, "proxy": proxy}), tmp_path / "rows.parquet")
    with pytest.raises(InputError) as caught:
        Population.from_table(connection.read_parquet(tmp_path / "rows.parquet"), proxy="proxy")
    assert words in str(caught.value)
