"""lm-evaluation-harness: files that it wrote itself, and damaged ones."""

from __future__ import annotations

import json
import math

import pytest

from stratal import Population, read_labels
from stratal.tables.logs.lm_eval import read_lm_eval


@pytest.fixture
def lines(tools):
    return [json.loads(line) for line in (tools / "lm-eval-0.4.13-capitals.jsonl").read_text().splitlines()]


def test_one_unit_a_document_and_a_column_a_filter(tools):
    population = Population.read(tools / "lm-eval-0.4.13-capitals.jsonl")

    assert population.size == 4
    assert population.proxy_names == ("exact_match@strict-match",)
    assert population.shown_names == ("input", "target", "answer@strict-match")
    assert population.distribution().mean == 0.25


def test_another_filter_is_chosen_by_naming_its_column(tools):
    population = Population.read(
        tools / "lm-eval-0.4.13-capitals.jsonl", proxy="exact_match@flexible-extract"
    )

    assert population.distribution().mean == 0.75
    assert population.shown_names == ("input", "target", "answer@flexible-extract")


def test_means_are_those_of_the_tool(tools):
    results = json.loads((tools / "lm-eval-0.4.13-results.json").read_text())["results"]["capitals"]

    for chosen in ("strict-match", "flexible-extract"):
        population = Population.read(tools / "lm-eval-0.4.13-capitals.jsonl", proxy=f"exact_match@{chosen}")
        assert population.distribution().mean == results[f"exact_match,{chosen}"]


def test_ids_are_the_three_hashes_whatever_the_order(lines):
    one = read_lm_eval(lines, "a")
    other = read_lm_eval(list(reversed(lines)), "b")
    first = lines[0]

    assert set(one.columns["id"]) == set(other.columns["id"])
    assert one.columns["id"][0] == "-".join(
        first[name][:12] for name in ("doc_hash", "prompt_hash", "target_hash")
    )


def test_a_document_that_the_data_set_holds_twice_is_two_units(lines):
    log = read_lm_eval([*lines, *({**line, "doc_id": line["doc_id"] + 4} for line in lines)], "a")

    assert len(log.columns["id"]) == len(set(log.columns["id"])) == 8


def test_choices_give_a_confidence(tools):
    path = tools / "lm-eval-0.4.13-choose.jsonl"
    record = json.loads(path.read_text().splitlines()[1])
    weights = [math.exp(float(answer[0])) for answer in record["filtered_resps"]]

    log = read_lm_eval([record], "a")

    assert log.proxies == ("acc", "acc_norm", "confidence")
    assert log.columns["confidence"] == [pytest.approx(max(weights) / sum(weights))]
    assert log.columns["answer"] == ["7"]
    assert log.columns["target"] == ["6"]


def test_its_scores_are_labels_of_the_units_that_were_drawn(tools):
    path = tools / "lm-eval-0.4.13-capitals.jsonl"
    ids = read_lm_eval([json.loads(line) for line in path.read_text().splitlines()], "a").columns["id"]

    labels = read_labels(path, value="exact_match@flexible-extract", order=ids[2:])

    assert labels.ids == tuple(ids[2:])
    assert labels.values == (1.0, 0.0)
    assert any("2 units that were not drawn" in note for note in labels.notes)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda lines: lines[1].pop("filtered_resps"), "line 2 has no 'filtered_resps'"),
        (lambda lines: [line.update(metrics=[]) for line in lines], "no unit has a score"),
        (
            lambda lines: lines[2].update(metrics=[{}]),
            "does not have the format that lm-evaluation-harness writes",
        ),
    ],
)
def test_damaged_files_end_in_one_error(lines, changed, refusal, how, said):
    assert said in refusal(changed(lines, how))


def test_aggregated_results_are_named_as_such(tools, refusal):
    result = json.loads((tools / "lm-eval-0.4.13-results.json").read_text())

    assert "--log_samples" in refusal(result)
