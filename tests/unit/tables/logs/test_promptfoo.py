"""promptfoo: a file that it wrote itself, and damaged ones."""

from __future__ import annotations

import json

import pytest

from stratal import Population
from stratal.tables.logs.reading import read_log_document


@pytest.fixture
def found(tools):
    return json.loads((tools / "promptfoo-0.121.20.json").read_text())


def test_units_are_tests_repeats_are_clusters_and_providers_columns(tools):
    population = Population.read(tools / "promptfoo-0.121.20.json", proxy="score@small")

    assert population.size == 8
    assert population.levels("test") == {"007": 2, "0x1": 2, 'a"b': 2, "köln": 2}
    assert population.distribution().mean == 0.25
    assert population.shown_names == ("input", "answer@small")


def test_scores_are_those_that_the_tool_counts(found):
    log = read_log_document(found, "a")
    counted = {prompt["provider"]: prompt["metrics"] for prompt in found["results"]["prompts"]}

    for provider in ("large", "small"):
        assert sum(log.columns[f"score@{provider}"]) == counted[provider]["score"]
        assert sum(log.columns[f"exact@{provider}"]) == counted[provider]["namedScores"]["exact"]


def test_ids_survive(found):
    assert read_log_document(found, "a").columns["id"][:4] == ["007#1", "007#2", 'a"b#1', 'a"b#2']


def test_without_an_id_the_variables_are_the_key_whatever_their_order(found, changed):
    def strip(document):
        for result in document["results"]["results"]:
            del result["vars"]["item_id"]

    def turn(document):
        strip(document)
        for result in document["results"]["results"]:
            result["vars"] = dict(reversed(result["vars"].items()))

    one = read_log_document(changed(found, strip), "a").columns["id"]
    assert one == read_log_document(changed(found, turn), "a").columns["id"]
    assert len(set(one)) == 8


def test_an_answer_that_failed_has_no_score(found, changed):
    def fail(document):
        document["results"]["results"][0].update(response=None, error="timeout")

    log = read_log_document(changed(found, fail), "a")

    assert log.columns["score@small"][0] is None
    assert log.columns["success@small"][0] is None


def test_two_prompts_of_one_provider_are_told_apart(found, changed):
    def rename(document):
        for result in document["results"]["results"]:
            result["provider"] = {"id": "one"}
            result["prompt"]["label"] = f"prompt {result['promptIdx']}"
            result["prompt"]["raw"] = f"{result['promptIdx']}: {result['vars']['question']}"

    log = read_log_document(changed(found, rename), "a")

    assert "score@one-prompt1" in log.proxies
    assert "score@one-prompt2" in log.proxies
    assert log.columns_to_show("score@one-prompt1") == ("input@one-prompt1", "answer@one-prompt1")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d["results"].pop("results"), "contains no results"),
        (lambda d: d["results"]["results"].clear(), "contains no results"),
        (lambda d: d["results"]["results"][2].pop("score"), "result 3 has no 'score'"),
        (
            lambda d: d["results"]["results"][0].update(vars="x"),
            "does not have the format that promptfoo writes",
        ),
        (lambda d: d["results"]["results"].append(7), "does not have the format that promptfoo writes"),
        (lambda d: d["results"]["results"].append(d["results"]["results"][0]), "has two answers"),
    ],
)
def test_damaged_files_end_in_one_error(found, changed, refusal, how, said):
    assert said in refusal(changed(found, how))
