"""A log as it is used, where the request says nothing."""

from __future__ import annotations

import pytest

from stratal.population.declaration import Declared
from stratal.tables.logs.log import Row, log_of
from stratal.tables.readers import log_source


@pytest.fixture
def log():
    rows = [
        Row(
            unit=f"{s}#{e}",
            shared={"sample": s},
            own={"answer": "x\ud800"},
            scores={"match": 1.0, "near": None},
        )
        for s in "ab"
        for e in (1, 2)
    ]
    return log_of("a tool", rows, cluster="sample")


def test_what_is_named_stays(log):
    request = Declared(proxy="near", show="sample", groups="sample").of_log(log)

    assert (request.proxy, request.show, request.groups) == ("near", ("sample",), ("sample",))


def test_no_proxy_can_be_asked_for(log):
    assert Declared(proxy=()).of_log(log).proxy == ()


def test_the_cluster_is_a_group(log):
    assert Declared().of_log(log).groups == ("sample",)


def test_half_characters_and_empty_columns_are_text(log):
    source, _ = log_source(log, Declared(proxy=(), show=("answer", "near")), "log.json")

    found = source.run(source.table).to_pydict()
    assert found[source.columns["answer"]][0] == "x?"
    assert found[source.columns["near"]] == [None] * 4
