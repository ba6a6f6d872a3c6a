"""DeepEval: files that it wrote itself, and damaged ones."""

from __future__ import annotations

import json

import pytest

from stratal import Population
from stratal.tables.logs.reading import read_log_document


@pytest.fixture
def found(tools):
    return json.loads((tools / "deepeval-4.3.1.json").read_text())


def test_test_cases_are_units_and_metrics_columns(tools):
    population = Population.read(tools / "deepeval-4.3.1.json")

    assert population.proxy_names == ("Exact Match",)
    assert population.distribution().mean == 0.75
    assert population.shown_names == ("input", "target", "answer")


def test_ids_survive(found):
    assert read_log_document(found, "a").columns["id"] == ["007", 'a"b', "köln", "0x1"]


def test_the_latest_run_is_read_from_its_envelope(found):
    assert read_log_document({"testRunData": found}, "a") == read_log_document(found, "b")


def test_the_turns_of_a_conversation_are_one_cluster(tools, changed):
    result = json.loads((tools / "deepeval-4.3.1-conversation.json").read_text())

    def longer(document):
        talk = document["conversationalTestCases"][0]
        talk["turns"] += [{"role": "user", "content": "Bye"}, {"role": "assistant", "content": "So long"}]

    log = read_log_document(changed(result, longer), "a")

    assert log.cluster == "conversation"
    assert log.columns["id"] == ["talk#1", "talk#2"]
    assert log.columns["answer"] == ["Hello", "So long"]
    assert json.loads(log.columns["turns"][1])[-1] == {"role": "user", "content": "Bye"}
    assert log.columns["Polite"] == [0.75, 0.75]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d["testCases"].clear(), "contains no test case"),
        (lambda d: d["testCases"][1].pop("input"), "test case 2 has no 'input'"),
        (lambda d: d["testCases"][1]["metricsData"][0].pop("name"), "test case 2 has no 'metric'"),
        (lambda d: d.update(testCases={"a": 1}), "does not have the format that DeepEval writes"),
        (
            lambda d: d["conversationalTestCases"].append({"turns": [], "metricsData": []}),
            "test cases and conversations",
        ),
    ],
)
def test_damaged_files_end_in_one_error(found, changed, refusal, how, said):
    assert said in refusal(changed(found, how))
