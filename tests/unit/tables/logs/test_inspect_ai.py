"""Inspect: files that it wrote itself, by its own reader where it is installed, and damaged ones."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from stratal import Population
from stratal.errors import InputError, MissingExtraError
from stratal.tables.logs.inspect_ai import read_inspect_file
from stratal.tables.logs.reading import read_log_document


@pytest.fixture
def found(tools):
    return json.loads((tools / "inspect-0.3.285.json").read_text())


def test_units_are_epochs_and_samples_clusters(tools):
    population = Population.read(tools / "inspect-0.3.285.json")

    assert population.size == 8
    assert population.levels("sample") == {"007": 2, "0x1": 2, 'a"b': 2, "köln": 2}
    assert population.proxy_names == ("match",)


def test_the_mean_is_that_of_the_tool(found):
    log = read_log_document(found, "a")
    accuracy = {score["name"]: score["metrics"]["accuracy"]["value"] for score in found["results"]["scores"]}

    assert sum(log.columns["match"]) / 8 == accuracy["match"]
    assert sum(log.columns["includes"]) / 8 == accuracy["includes"]


def test_one_epoch_needs_no_cluster_and_keeps_the_samples_ids(found, changed):
    def first(document):
        document["samples"] = [sample for sample in document["samples"] if sample["epoch"] == 1]

    log = read_log_document(changed(found, first), "a")

    assert log.cluster is None
    assert sorted(log.columns["id"]) == ["007", "0x1", 'a"b', "köln"]


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        ("C", 1),
        ("I", 0),
        ("P", 0.5),
        ("N", 0),
        (True, 1),
        ("Yes", 1),
        ("0.25", 0.25),
        ("N/A", None),
        (None, None),
        ([1], 1),
        ("odd", "odd"),
        ([1, 0], "[1, 0]"),
    ],
)
def test_values_count_as_inspect_counts_them(found, changed, value, counts):
    def score(document):
        for sample in document["samples"]:
            sample["scores"]["match"]["value"] = value

    assert read_log_document(changed(found, score), "a").columns["match"][0] == counts


def test_a_score_of_several_parts_becomes_several_columns(found, changed):
    def score(document):
        for sample in document["samples"]:
            sample["scores"] = {"judge": {"value": {"clear": 1, "true": 0.5}}}

    assert read_log_document(changed(found, score), "a").proxies == ("judge.clear", "judge.true")


def test_a_chat_is_kept_as_turns(found, changed):
    def chat(document):
        parts = [{"type": "text", "text": "Hi"}, {"type": "image", "image": "…"}]
        document["samples"][0]["input"] = [{"role": "user", "content": parts}]

    written = read_log_document(changed(found, chat), "a").columns["input"][0]

    assert json.loads(written) == [{"role": "user", "content": "Hi"}]


def test_a_run_that_did_not_finish_is_said_to_be_so(found, changed):
    log = read_log_document(changed(found, lambda document: document.update(status="cancelled")), "a")

    assert "did not finish (cancelled)" in log.notes[-1]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d.pop("samples"), "contains no samples"),
        (
            lambda d: d.update(status="error", samples=[], error={"message": "no key\nfor the API"}),
            "the evaluation did not finish (error), and no sample was scored (given: no key)",
        ),
        (
            lambda d: d.update(status="cancelled", samples=[dict(s, scores=None) for s in d["samples"]]),
            "the evaluation did not finish (cancelled), and no sample was scored",
        ),
        (lambda d: d["samples"][2].pop("epoch"), "sample 3 has no 'epoch'"),
        (lambda d: d["samples"].append("x"), "sample 9 does not have the format that Inspect writes"),
        (
            lambda d: d["samples"][0].update(scores=["C"]),
            "sample 1 does not have the format that Inspect writes",
        ),
        (lambda d: [sample.pop("scores") for sample in d["samples"]], "no unit has a score"),
        (lambda d: d["samples"].append(d["samples"][0]), "unit '007#1' has two answers"),
    ],
)
def test_damaged_files_end_in_one_error(found, changed, refusal, how, said):
    assert said in refusal(changed(found, how))


@pytest.mark.slow
def test_packed_logs_are_read_by_inspects_own_reader(tools):
    pytest.importorskip("inspect_ai")
    packed = Population.read(tools / "inspect-0.3.285.eval")

    assert packed.size == 8
    assert packed.distribution().mean == Population.read(tools / "inspect-0.3.285.json").distribution().mean
    assert read_inspect_file(tools / "inspect-0.3.285.eval").columns["id"][0] == "007#1"


def test_a_damaged_packed_log_is_refused_by_name(tools, tmp_path, monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise ValueError("bad magic number")

    monkeypatch.setitem(sys.modules, "inspect_ai", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "inspect_ai.log", SimpleNamespace(read_eval_log=fails))
    path = tmp_path / "cut.eval"
    path.write_bytes((tools / "inspect-0.3.285.eval").read_bytes()[:1000])

    with pytest.raises(
        InputError,
        match=r"cut.eval: the reader of Inspect cannot read this log .*bad magic "
        "number",
    ):
        Population.read(path)


def test_without_inspect_the_extra_is_named(tools, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)

    with pytest.raises(MissingExtraError, match=r"stratal\[inspect\]"):
        Population.read(tools / "inspect-0.3.285.eval")
