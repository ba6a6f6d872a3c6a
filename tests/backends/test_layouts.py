"""Kinds of columns and layouts of files that trip engines: the same units and levels as from arrays."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import InputError
from stratal.population import Population

SIZE = 1200
IDS = [str(uuid.UUID(int=2**90 + 7919 * number)) for number in range(SIZE)]
PROXY = np.round(np.random.default_rng(5).beta(4, 1, SIZE), 3)
SPRING = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # Berlin skips an hour here

ZONED = [SPRING + timedelta(minutes=30 * (n % 6)) for n in range(SIZE)]
MOMENTS = [datetime(2026, 1, 1 + n % 3, 12, 0, 0, 250_000) for n in range(SIZE)]

COLUMNS: dict[str, Any] = {
    "id": pa.array(IDS),
    "exact": pa.array([Decimal(f"{value:.3f}") for value in PROXY], pa.decimal128(18, 3)),
    "single": pa.array(PROXY.astype(np.float32)),
    "whole": pa.array((PROXY * 1000).round().astype(np.int16)),
    "zoned": pa.array(
        [SPRING + timedelta(minutes=30 * (n % 6)) for n in range(SIZE)], pa.timestamp("us", "UTC")
    ),
    "moment": pa.array(
        [datetime(2026, 1, 1 + n % 3, 12, 0, 0, 250_000) for n in range(SIZE)], pa.timestamp("us")
    ),
    "day": pa.array([datetime(2026, 1, 1 + n % 4).date() for n in range(SIZE)]),
    "share": pa.array([(n % 8) / 8 for n in range(SIZE)]),
    "told": pa.array([n % 2 == 0 for n in range(SIZE)]),
}
PROXIES, GROUPS = ("exact", "single", "whole"), ("zoned", "moment", "day", "share", "told")
KEYWORDS: dict[str, Any] = {"proxy": list(PROXIES), "groups": list(GROUPS)}


def from_arrays() -> Population:
    table = pa.table(COLUMNS)
    return Population.from_arrays(
        ids=np.array(IDS),
        proxy={name: np.array(table[name].to_pylist(), np.float64) for name in PROXIES},
        groups={
            "zoned": np.array([str(value) for value in table["zoned"].to_pylist()]),
            "moment": table["moment"].to_numpy(),
            "day": np.array(table["day"].to_pylist(), "datetime64[D]"),
            "share": table["share"].to_numpy(),
            "told": np.array(table["told"].to_pylist()),
        },
    )


def shuffled() -> Any:
    return pa.table(COLUMNS).take(np.random.default_rng(3).permutation(SIZE))


def with_duckdb(request: Any, folder: Path, groups: int) -> Population:
    pq.write_table(shuffled(), folder / "rows.parquet", row_group_size=SIZE // groups)
    return Population.read(folder / "rows.parquet", **KEYWORDS)


def with_postgres(request: Any, folder: Path, groups: int) -> Population:
    import ibis

    server = request.getfixturevalue("postgres")
    name = f"layouts_{uuid.uuid4().hex}"
    server.connect().create_table(name, ibis.memtable(shuffled()))
    connection = server.connect(server.reader)
    connection.raw_sql("SET TIME ZONE 'America/New_York'").close()
    return Population.from_table(connection.table(name), **KEYWORDS)


def with_spark(request: Any, folder: Path, groups: int) -> Population:
    request.getfixturevalue("spark")
    pq.write_table(shuffled(), folder / "rows.parquet", row_group_size=SIZE // groups)
    return Population.read(folder / "rows.parquet", engine="spark", **KEYWORDS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("engine", "groups"),
    [
        (with_duckdb, 1),
        pytest.param(with_duckdb, 600, marks=pytest.mark.slow),
        (with_postgres, 1),
        pytest.param(with_spark, 100, marks=pytest.mark.slow),
    ],
)
def test_kinds_of_columns_mean_the_same(
    request: Any, tmp_path: Path, engine: Callable[..., Population], groups: int
) -> None:
    expected, population = from_arrays(), engine(request, tmp_path, groups)

    for group in GROUPS:
        assert population.levels(group) == expected.levels(group)
    for proxy in PROXIES:
        assert population.distribution(proxy) == expected.distribution(proxy)
    samples = [stratal.plan(each, 60, by="told").draw(seed=7) for each in (population, expected)]
    assert samples[0].ids.tolist() == samples[1].ids.tolist()
    for group in GROUPS:
        np.testing.assert_array_equal(samples[0].groups[group], samples[1].groups[group])


def test_many_small_files_and_empty_ones_are_one_table(tmp_path: Path) -> None:
    table = pa.table({"id": IDS, "proxy": PROXY})
    (tmp_path / "parts").mkdir()
    for number in range(200):
        part = table.slice(number * 10, 10) if number < 120 else table.slice(0, 0)
        pq.write_table(part, tmp_path / "parts" / f"{number}.parquet")
    population = Population.read(tmp_path / "parts", directory=True, proxy="proxy")
    expected = Population.from_arrays(ids=np.array(IDS), proxy=PROXY)

    drawn = [stratal.plan(each, 60).draw(seed=7).ids.tolist() for each in (population, expected)]
    assert drawn[0] == drawn[1]


def test_one_duplicate_among_many_is_named(tmp_path: Path) -> None:
    ids = np.arange(300_000)
    ids[277_777] = 5
    pq.write_table(pa.table({"id": ids, "proxy": np.full(len(ids), 0.5)}), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"1 id is duplicated \(first: '5'\)"):
        Population.read(tmp_path / "rows.parquet", proxy="proxy")


# ---- a file or a directory, read by each engine that reads files itself

READERS = [
    pytest.param("duckdb", id="duckdb"),
    pytest.param(
        "spark",
        id="spark",
        marks=[pytest.mark.filterwarnings("ignore"), pytest.mark.slow],
    ),
]


@pytest.fixture(params=READERS)
def read(request: Any) -> Callable[..., Population]:
    if request.param == "spark":
        request.getfixturevalue("spark")

    def reading(path: Path, **keywords: Any) -> Population:
        return Population.read(path, engine=request.param, **keywords)

    return reading


def drawn(population: Population, **options: Any) -> list[Any]:
    ids: list[Any] = stratal.plan(population, 60, **options).draw(seed=7).ids.tolist()
    return ids


@pytest.mark.parametrize("rows_each", [1, SIZE])
def test_row_groups_and_the_order_of_rows_are_irrelevant(
    read: Callable[..., Population], tmp_path: Path, rows_each: int
) -> None:
    table = pa.table({"id": np.arange(SIZE), "proxy": PROXY})
    mixed = table.take(np.random.default_rng(9).permutation(SIZE))
    pq.write_table(mixed, tmp_path / "rows.parquet", row_group_size=rows_each)

    population = read(tmp_path / "rows.parquet", id="id", proxy="proxy")

    assert drawn(population) == drawn(Population.from_arrays(ids=np.arange(SIZE), proxy=PROXY))


def test_a_category_of_many_levels_is_counted_pooled_and_drawn_from(
    read: Callable[..., Population], tmp_path: Path
) -> None:
    size = sized(24_000, 120_000)
    proxy = np.random.default_rng(4).beta(4, 1, size)
    users = np.array([f"user {number % (size * 5 // 6)}" for number in range(size)])
    users[: size // 3] = "a robot"
    pq.write_table(
        pa.table({"id": np.arange(size), "proxy": proxy, "user": users}), tmp_path / "rows.parquet"
    )
    expected = Population.from_arrays(ids=np.arange(size), proxy=proxy, groups={"user": users})

    population = read(tmp_path / "rows.parquet", id="id", proxy="proxy", groups="user")

    assert population.levels("user") == expected.levels("user")
    assert drawn(population, by="user") == drawn(expected, by="user")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("id", pa.array(["a", None, "c", "d"])),
        ("proxy", pa.array([0.1, None, 0.3, 0.4])),
        ("proxy", pa.array([0.1, float("nan"), 0.3, 0.4])),
        ("language", pa.array(["de", None, "de", "en"])),
    ],
)
def test_a_missing_value_is_one_refusal_that_names_the_column(
    read: Callable[..., Population], tmp_path: Path, column: str, values: Any
) -> None:
    table = {"id": list("abcd"), "proxy": [0.1, 0.2, 0.3, 0.4], "language": ["de", "en"] * 2} | {
        column: values
    }
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")

    with pytest.raises(InputError, match=column):
        read(tmp_path / "rows.parquet", id="id", proxy="proxy", groups="language")


def test_two_names_that_differ_by_case_are_told_apart(
    read: Callable[..., Population], tmp_path: Path
) -> None:
    table = {"id": np.arange(SIZE), "proxy": PROXY, "Proxy": 1 - PROXY}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet")

    for name, values in (("proxy", PROXY), ("Proxy", 1 - PROXY)):
        population = read(tmp_path / "rows.parquet", id="id", proxy=name)
        assert drawn(population) == drawn(Population.from_arrays(ids=np.arange(SIZE), proxy={name: values}))


def test_empty_parts_among_others_add_nothing(read: Callable[..., Population], tmp_path: Path) -> None:
    table = pa.table({"id": np.arange(SIZE), "proxy": PROXY})
    (tmp_path / "parts").mkdir()
    for number in range(12):
        part = table.slice(number * 50, 100) if number % 2 == 0 and number < 22 else table.slice(0, 0)
        pq.write_table(part, tmp_path / "parts" / f"{number}.parquet")
    pq.write_table(table.slice(600), tmp_path / "parts" / "rest.parquet")

    population = read(tmp_path / "parts", directory=True, id="id", proxy="proxy")

    assert drawn(population) == drawn(Population.from_arrays(ids=np.arange(SIZE), proxy=PROXY))


@pytest.mark.slow
def test_ten_thousand_small_files_are_one_table(tmp_path: Path) -> None:
    size = 20_000
    proxy = np.random.default_rng(4).beta(4, 1, size)
    table = pa.table({"id": np.arange(size), "proxy": proxy})
    (tmp_path / "parts").mkdir()
    for number in range(10_000):
        pq.write_table(table.slice(2 * number, 2), tmp_path / "parts" / f"{number}.parquet")

    population = Population.read(tmp_path / "parts", directory=True, id="id", proxy="proxy")

    assert drawn(population) == drawn(Population.from_arrays(ids=np.arange(size), proxy=proxy))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["integers", "text"])
def test_one_duplicate_among_ten_million_is_named(tmp_path: Path, kind: str) -> None:
    size = 10_000_000
    ids = np.arange(size)
    ids[7_777_777] = 5
    column = pa.array(ids) if kind == "integers" else pa.array(ids).cast(pa.string())
    pq.write_table(pa.table({"id": column, "proxy": np.full(size, 0.5)}), tmp_path / "rows.parquet")

    with pytest.raises(InputError, match=r"1 id is duplicated \(first: '5'\)"):
        Population.read(tmp_path / "rows.parquet", id="id", proxy="proxy")
