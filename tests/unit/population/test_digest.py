"""The digest by its definition, in Python's integers, and what it sees."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stratal

N = 200
IDS = [f"u{number}" for number in range(N)]
RNG = np.random.default_rng(2)
COLUMNS = {
    "shares": RNG.random(N),
    "signed": RNG.normal(size=N) * 1000,
    "a sentinel": np.where(np.arange(N) == 5, -1e30, RNG.random(N)),
    "tiny": RNG.random(N) * 1e-12,
    "zeros": np.zeros(N),
    "whole": RNG.integers(0, 5, N).astype(float),
}


def first_bits(text: str) -> int:
    return int(hashlib.md5(text.encode()).hexdigest()[:8], 16)


def digits(value: Fraction, exponent: int) -> list[int]:
    scaled = value * Fraction(2) ** (30 - exponent)
    whole = math.floor(scaled)
    found = [whole + 2**30, math.floor((scaled - whole) * 2**31)]
    cut = max(min(value, Fraction(2**30)), Fraction(-(2**30)))
    return found if exponent <= 30 else found + digits(cut, 30)


def by_definition(values: Any, seed: int) -> str:
    exponent = math.frexp(max(abs(values)))[1]
    rows = [digits(Fraction(float(value)), exponent) for value in values]
    keys = [first_bits(f"{seed}:{unit}") for unit in IDS]
    sums = [sum(key * row[at] for key, row in zip(keys, rows, strict=True)) for at in range(len(rows[0]))]
    return f"{exponent}:" + ".".join(f"{total % 2**64:x}" for total in sums)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("kind", ["arrays", "table"])
def test_it_is_what_its_definition_says(name, kind):
    values, levels = COLUMNS[name], ["de", "日本"] * (N // 2)
    if kind == "arrays":
        population = stratal.Population.from_arrays(ids=IDS, features={"x": values}, groups={"g": levels})
    else:
        table = pa.table({"id": IDS, "x": values, "g": levels})
        population = stratal.Population.from_table(table, features="x", groups="g")
    found = population.digest(7)
    keys = [first_bits(f"7:{unit}") for unit in IDS]
    of_levels = sum(key * (first_bits(level) >> 1) for key, level in zip(keys, levels, strict=True))

    assert found.size == N
    assert found.ids == f"{sum(keys):x}"
    assert found.columns == {"number:x": by_definition(values, 7), "group:g": f"{of_levels % 2**64:x}"}


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "zeros"])
def test_two_units_that_exchange_their_values_are_seen(name):
    values = COLUMNS[name].copy()
    before = stratal.Population.from_arrays(ids=IDS, proxy=values).digest(3)
    one, other = 1, next(row for row in range(6, N) if values[row] != values[1])
    values[[one, other]] = values[[other, one]]

    assert stratal.Population.from_arrays(ids=IDS, proxy=values).digest(3).different_columns(before) == [
        "number:proxy"
    ]


def test_rows_without_ids_and_threads():
    values = RNG.random(200_000)
    digests = [stratal.Population.from_arrays(proxy=values, threads=threads).digest(7) for threads in (1, 2)]
    assert digests[0] == digests[1]
    assert digests[0] != stratal.Population.from_arrays(proxy=values[::-1]).digest(7)
    assert digests[0].columns != stratal.Population.from_arrays(proxy=values).digest(8).columns


def test_a_draw_in_memory_makes_none_until_a_file_needs_it(tmp_path):
    population = stratal.Population.from_arrays(proxy=RNG.random(1000))
    sample = stratal.plan(population, budget=50).draw(seed=7)
    assert not population._digests
    sample.write(tmp_path / "sample.parquet")
    assert list(population._digests) == [7]


def test_a_draw_from_a_table_makes_it_in_its_own_pass(monkeypatch):
    monkeypatch.setattr("stratal.tables.source.MAX_MEMORY_ROWS", 0)
    table = pa.table({"id": range(20_000), "proxy": RNG.random(20_000)})
    population = stratal.Population.from_table(table, proxy="proxy")
    plan = stratal.plan(population, budget=20, n_strata=2)
    sample = plan.draw(seed=7)
    assert list(population._digests) == [7]
    monkeypatch.setattr("stratal.population.queries.table._digest_query", None)  # no further pass
    assert sample.population_digest().size == 20_000
