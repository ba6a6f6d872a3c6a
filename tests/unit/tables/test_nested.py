"""Dotted names: fields within JSON objects, Parquet structs and Arrow structs are columns."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.population import Population

ROWS = [
    {"id": f"u{n}", "judge": {"score": n / 10, "by": {"model": "x"}}, "tag.name": "t", "é/~": {"a": n / 10}}
    for n in range(10)
]


def scores(population):
    sample = stratal.designs.SimpleRandom(budget=10).draw(population, seed=1)
    return sample.proxies[np.argsort(sample.ids), 0].tolist(), sample.groups


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "arrow", "feather"])
def test_what_is_nested_has_a_dotted_name(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    table = pa.Table.from_pylist(ROWS)
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif kind == "json":
        path.write_text(json.dumps({"version": 1, "results": ROWS}))
    elif kind == "parquet":
        pq.write_table(table, path)
    elif kind == "feather":
        pa.feather.write_feather(table, path)
    keywords = {"proxy": "judge.score", "groups": ["judge.by.model", "tag.name"]}

    if kind == "arrow":
        population = Population.from_table(table, **keywords)
    else:
        population = Population.read(path, **keywords)
    found, groups = scores(population)

    assert found == [n / 10 for n in range(10)]
    assert set(groups["judge.by.model"]) == {"x"}
    assert set(groups["tag.name"]) == {"t"}


def test_keys_with_signs_of_their_own_are_found(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))

    assert scores(Population.read(path, proxy="é/~.a"))[0] == [n / 10 for n in range(10)]


def test_a_table_on_a_connection_has_them_too():
    import ibis

    connection = ibis.duckdb.connect()
    table = connection.create_table(
        "rows", ibis.memtable(pa.Table.from_pylist([{"id": 1, "judge": {"score": 0.5}}]))
    )

    assert Population.from_table(table, proxy="judge.score").size == 1
