"""Output items of OpenAI's evaluations, and results of ragas."""

from __future__ import annotations

import json

import pytest

import stratal
from stratal.errors import InputError
from stratal.tables.logs.openai_evals import read_openai_items
from stratal.tables.logs.ragas import read_ragas
from stratal.tables.logs.reading import find_log_tool, read_log_lines


def item(number, run="run_1", **changes):
    return {
        "id": f"outputitem_{number}",
        "object": "eval.run.output_item",
        "datasource_item": {"question": f"question {number}", "answer": str(number)},
        "datasource_item_id": number,
        "eval_id": "eval_1",
        "run_id": run,
        "results": [{"name": "grader", "passed": number % 3 > 0, "score": float(number % 3 > 0)}],
        "sample": {
            "error": None,
            "input": [{"role": "user", "content": f"question {number}"}],
            "output": [{"role": "assistant", "content": f"answer {number}"}],
        },
        "status": "completed",
    } | changes


def sample(number, **changes):
    return {
        "user_input": f"question {number}",
        "retrieved_contexts": [f"text {number}"],
        "response": f"answer {number}",
        "reference": f"reference {number}",
        "faithfulness": number / 10,
    } | changes


def test_output_items_are_units_with_the_scores_of_graders(tmp_path):
    page = {"object": "list", "data": [item(number) for number in range(30)], "has_more": False}
    (tmp_path / "items.json").write_text(json.dumps(page))
    lines = "".join(json.dumps(entry) + "\n" for entry in page["data"])
    (tmp_path / "items.jsonl").write_text(lines)

    for name in ("items.json", "items.jsonl"):
        population = stratal.Population.read(tmp_path / name)
        assert (population.size, population.proxy_names) == (30, ("grader",))
        assert population.shown_names == ("input", "answer")
        assert find_log_tool(tmp_path / name) == "OpenAI evals"


def test_an_item_whose_sample_has_an_error_is_a_failed_answer():
    broken = item(2)
    broken["sample"] |= {"error": {"code": "server_error", "message": "overloaded"}, "output": []}

    log = read_openai_items([item(1), broken], "items.jsonl")

    assert log.failed == {"grader": ("2",)}
    assert log.columns["grader"] == [1.0, None]


def test_several_runs_have_a_column_each():
    log = read_openai_items([item(1), item(1, "run_2"), item(2), item(2, "run_2")], "items.jsonl")

    assert log.proxies == ("grader@run_1", "grader@run_2")
    assert log.columns["id"] == ["1", "2"]


def test_samples_of_ragas_have_ids_that_do_not_depend_on_the_answer():
    first = read_ragas([sample(1), sample(2), sample(2)], "a")
    second = read_ragas([sample(2, response="other", faithfulness=None), sample(1)], "b")

    assert first.proxies == ("faithfulness",)
    assert first.columns["id"][:2] == list(reversed(second.columns["id"]))
    assert first.columns["id"][2] == f"{first.columns['id'][1]}#2"
    assert first.columns["target"] == ["reference 1", "reference 2", "reference 2"]
    assert second.missing == {"faithfulness": 1}


def test_an_array_of_samples_is_a_log_and_a_table_with_labels_is_none(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps([sample(number) for number in range(20)]))

    assert stratal.Population.read(tmp_path / "result.json").proxy_names == ("faithfulness",)
    assert find_log_tool(tmp_path / "result.json") == "ragas"
    assert read_log_lines([sample(1, label="Pass")], "a") is None


def test_a_record_of_another_form_names_its_number():
    with pytest.raises(InputError, match=r"items.jsonl, item 2: has no 'output'"):
        read_openai_items([item(1), item(2, sample={"input": []})], "items.jsonl")


def run(number, **changes):
    return {
        "id": f"run-{number}",
        "run_type": "chain",
        "trace_id": f"run-{number}",
        "inputs": {"question": f"question {number}"},
        "outputs": {"answer": f"answer {number}"},
        "feedback_stats": {"correctness": {"n": 1, "avg": number / 10}},
    } | changes


def row(number, **changes):
    return {
        "id": f"row-{number}",
        "span_id": f"span-{number}",
        "root_span_id": f"span-{number}",
        "input": f"question {number}",
        "output": f"answer {number}",
        "expected": f"target {number}",
        "scores": {"Factuality": number / 10},
    } | changes


def call(number, **changes):
    return {
        "id": f"call-{number}",
        "op_name": "weave:///entity/project/op/Evaluation.predict_and_score:abc",
        "trace_id": "trace",
        "inputs": {"example": {"question": f"question {number}"}},
        "output": {"output": f"answer {number}", "scores": {"judge": {"correct": number / 10}}},
        "summary": {},
    } | changes


@pytest.mark.parametrize(
    ("tool", "records", "proxy", "first"),
    [
        ("LangSmith", [run(1), run(2), run(3, trace_id="run-1")], "correctness", "run-1"),
        ("Braintrust", [row(1), row(2), row(3, root_span_id="span-1")], "Factuality", "row-1"),
        (
            "W&B Weave",
            [call(1), call(2), call(3, op_name="weave:///op/predict:1")],
            "judge.correct",
            "call-1",
        ),
    ],
)
def test_exported_records_of_tracing_platforms(tool, records, proxy, first, tmp_path):
    path = tmp_path / "export.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))

    population = stratal.Population.read(path)
    assert (population.size, population.proxy_names) == (2, (proxy,))
    assert population.shown_names[-1] == "answer"
    assert find_log_tool(path) == tool
    log = read_log_lines(records, "export.jsonl")
    assert log.columns["id"][0] == first
    assert log.columns[proxy] == [0.1, 0.2]


def test_a_run_with_an_error_is_a_failed_answer():
    log = read_log_lines([run(1), run(2, error="timeout", outputs=None, feedback_stats=None)], "a")

    assert log.failed == {"correctness": ("run-2",)}
