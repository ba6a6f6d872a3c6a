"""A log as it is used, where the request says nothing."""

from __future__ import annotations

import pytest

from stratal.population.declaration import Declaration, with_log_defaults
from stratal.tables.engine import duckdb_connection
from stratal.tables.log_tables import log_table
from stratal.tables.logs.log import LogRow, make_log


@pytest.fixture
def log():
    rows = [
        LogRow(
            unit=f"{s}#{e}",
            unit_columns={"sample": s},
            variant_columns={"answer": "x\ud800"},
            scores={"match": 1.0, "near": None},
        )
        for s in "ab"
        for e in (1, 2)
    ]
    return make_log("a tool", rows, cluster="sample")


def test_what_is_named_stays(log):
    found = with_log_defaults({"proxy": "near", "show": "sample", "groups": "sample"}, log)

    assert found == {"proxy": "near", "show": ("sample",), "groups": ("sample",)}


def test_no_proxy_can_be_asked_for(log):
    assert with_log_defaults({"proxy": ()}, log)["proxy"] == ()


def test_the_cluster_is_a_group(log):
    assert with_log_defaults({}, log)["groups"] == ("sample",)


def test_half_characters_and_empty_columns_are_text(log):
    table = log_table(duckdb_connection(), log, "log.json")
    rows = table.read_columns(Declaration(id=table.names[0], shown=("answer", "near")))

    assert rows.head(["answer", "near"], 4) == {"answer": ["x?"] * 4, "near": [None] * 4}
