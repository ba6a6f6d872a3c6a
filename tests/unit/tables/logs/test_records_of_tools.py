"""Output items of OpenAI's evaluations, and results of ragas."""

from __future__ import annotations

import json

import pytest

import stratal
from stratal.errors import InputError
from stratal.tables.logs.openai_evals import read_openai_items
from stratal.tables.logs.ragas import read_ragas
from stratal.tables.logs.reading import find_log_tool, read_log_lines
from stratal.tables.readers import open_table


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
    with pytest.raises(InputError, match=r"items.jsonl, item 2 has no 'output'"):
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


# Columns and cells as pandas writes them.
TABLES = {
    "LangSmith results": (
        "LangSmith",
        "inputs.question,outputs.answer,error,reference.answer,feedback.correct,example_id,id,outputs.output\n",
        [
            "question 1,answer 1,,target 1,True,e1,r1,\n",
            "question 2,,ValueError('timeout'),target 2,False,e2,r2,\n",
            "question 3,answer 3,,target 3,False,e3,r3,\n",
        ],
        ("correct", ["e1", "e2", "e3"], [1, None, 0], "target 1"),
    ),
    "LangSmith runs": (
        "LangSmith",
        "id,name,run_type,trace_id,inputs,outputs,feedback_stats,reference_example_id\n",
        [
            """r1,app,chain,r1,{'q': 1},{'a': 1},"{'judge': {'n': 1, 'avg': 0.25}}",e1\n""",
            """r2,app,llm,r1,{'q': 1},{'a': 1},,\n""",
            """r3,app,chain,r3,{'q': 3},{'a': 3},"{'judge': {'n': 1, 'avg': 0.5}}",\n""",
        ],
        ("judge", ["e1", "r3"], [0.25, 0.5], None),
    ),
    "Braintrust": (
        "Braintrust",
        "id,span_id,root_span_id,input,output,expected,scores\n",
        [
            """b1,s1,s1,question 1,answer 1,target 1,"{""Factuality"":0.6}"\n""",
            """b2,s2,s1,question 1,answer 1,target 1,"{""Factuality"":0.1}"\n""",
            """b3,s3,s3,question 3,answer 3,target 3,"{""Factuality"":0.9}"\n""",
        ],
        ("Factuality", ["b1", "b3"], [0.6, 0.9], "target 1"),
    ),
    "W&B Weave": (
        "W&B Weave",
        "id,trace_id,op_name,inputs.example,output.output,output.scores.judge.correct,output.model_latency\n",
        [
            "c1,t,weave:///e/p/op/Evaluation.predict_and_score:1,weave:///row/1,answer 1,True,0.5\n",
            "c2,t,weave:///e/p/op/predict:1,weave:///row/1,answer 1,,\n",
            "c3,t,weave:///e/p/op/Evaluation.predict_and_score:1,weave:///row/2,answer 2,False,0.5\n",
        ],
        ("judge.correct", ["weave:///row/1", "weave:///row/2"], [1, 0], None),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_exported_tables_are_logs(name, tmp_path):
    tool, header, rows, (proxy, ids, scores, target) = TABLES[name]
    path = tmp_path / "export.csv"
    path.write_text(header + "".join(rows), encoding="utf-8")

    assert find_log_tool(path) == tool
    log = open_table(path).log
    assert (log.proxies[0], log.columns["id"], log.columns[proxy]) == (proxy, ids, scores)
    assert log.columns.get("target", [None])[0] == target
    assert stratal.Population.read(path, missing="own-stratum").proxy_names == (proxy,)


@pytest.mark.parametrize(
    ("key", "record", "tool", "proxy"),
    [
        ("runs", run, "LangSmith", "correctness"),
        ("data", row, "Braintrust", "Factuality"),
        ("events", row, "Braintrust", "Factuality"),
        ("calls", call, "W&B Weave", "judge.correct"),
    ],
)
def test_answers_of_apis_are_logs(key, record, tool, proxy, tmp_path):
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({key: [record(number) for number in range(20)], "cursor": "next"}))

    assert find_log_tool(path) == tool
    assert stratal.Population.read(path).proxy_names == (proxy,)


def test_repeats_of_an_example_are_one_cluster():
    log = read_log_lines([run(n, reference_example_id=f"e{n // 2}") for n in range(4)], "runs.jsonl")

    assert log.columns["id"] == ["e0", "e0#2", "e1", "e1#2"]
    assert log.cluster == "example"


def test_experiments_of_a_data_set_are_joined_by_example(tmp_path):
    paths = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for shift, path in enumerate(paths):
        rows = [f"question,answer,{(n + shift) % 3 > 0},e{n},run-{shift}-{n}\n" for n in range(30)]
        path.write_text("inputs.q,outputs.a,feedback.correct,example_id,id\n" + "".join(rows))

    assert stratal.evaluate(paths).estimate.n == 30


@pytest.mark.parametrize("column", ["label", "human", "ok"])
def test_a_table_with_a_column_that_a_person_added_is_no_export(column, tmp_path):
    path = tmp_path / "labelled.csv"
    rows = [f"r{n},e{n},q,a,{n % 3 > 0},{n % 4 // 3 if n < 20 else ''}\n" for n in range(60)]
    path.write_text(f"id,example_id,inputs.q,outputs.a,feedback.correct,{column}\n" + "".join(rows))

    assert find_log_tool(path) is None
    assert "inputs.q" in open_table(path).names
    assert stratal.evaluate(path, value=column).estimate.n == 20
