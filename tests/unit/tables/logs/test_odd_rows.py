"""The odd rows of each tool's log: a score, a missing score that is counted, or a failed answer."""

from __future__ import annotations

import json

import pytest

from stratal import Population, read_labels
from stratal.errors import InputError
from stratal.tables.logs.lm_eval import read_lm_eval
from stratal.tables.logs.reading import read_log_document

SCORE, MISSING, FAILED = "score", "missing", "failed"


def state(log, column, unit):
    """Return the state of a unit in a column of scores, and its number."""
    value = log.columns[column][log.columns["id"].index(unit)]
    if unit in log.failed[column]:
        assert value is None
        return FAILED
    return MISSING if value is None else value


def case(name="q", output="a", metrics=((1.0, None),), success=True, **more):
    """Return a test case as DeepEval writes it: fields that are None are left out."""
    entries = [
        {"name": f"m{k}", "threshold": 0.5, "success": bool(score and score >= 0.5)}
        | ({} if score is None else {"score": score})
        | ({} if error is None else {"error": error})
        for k, (score, error) in enumerate(metrics or ())
    ]
    found = {"name": name, "input": "q", "success": success, "order": 0}
    found |= {} if output is None else {"actualOutput": output}
    return found | ({} if metrics is None else {"metricsData": entries}) | more


GOOD_CASE = case("good")


@pytest.mark.parametrize(
    ("row", "metric", "success"),
    [
        (case(metrics=[(0.0, None)], success=False), 0.0, 0.0),
        (case(metrics=[(None, "RateLimitError")], success=False), MISSING, MISSING),
        (case(metrics=[(None, None)], success=False), MISSING, MISSING),
        (case(metrics=[(0.9, "late error")]), MISSING, MISSING),
        (case(metrics=[(1.0, None), (None, "error")], success=False), 1.0, MISSING),
        (case(metrics=[(0.0, None), (None, "error")], success=False), 0.0, 0.0),
        (case(metrics=[(float("nan"), None)]), MISSING, MISSING),
        (case(metrics=None), MISSING, MISSING),
        (case(metrics=[]), MISSING, MISSING),
        (case(output=None), FAILED, FAILED),
        (case(output="  "), FAILED, FAILED),
        (case(output=None, metrics=None), FAILED, FAILED),
        (case(output="", toolsCalled=[{"name": "search"}]), 1.0, 1.0),
        (
            {**case(metrics=None), "metricsMetadata": [{"metric": "m0", "score": 0.5, "success": True}]},
            0.5,
            1.0,
        ),
    ],
)
def test_deepeval(row, metric, success):
    log = read_log_document({"testCases": [GOOD_CASE, row], "metricsScores": []}, "run.json")

    assert state(log, "m0", "q") == pytest.approx(metric, nan_ok=True)
    assert state(log, "success", "q") == success
    assert (state(log, "m0", "good"), state(log, "success", "good")) == (1.0, 1.0)


def test_two_metrics_of_one_name_are_two_columns():
    row = case(metrics=[(1.0, None), (0.0, None)])
    for entry in row["metricsData"]:
        entry["name"] = "Correctness [GEval]"

    log = read_log_document({"testCases": [row], "metricsScores": []}, "run.json")

    assert log.proxies == ("Correctness [GEval]", "Correctness [GEval]#2", "success")


def sample(name="q", completion="a", value=1, scores=True, **more):
    """Return a sample as Inspect writes it."""
    score = {"value": value, "answer": "", "explanation": ""}
    found = {"id": name, "epoch": 1, "input": "q", "target": "t", "metadata": {}}
    found["output"] = {"model": "m", "choices": [], "completion": completion}
    return found | {"scores": {"grade": score} if scores is True else scores} | more


def inspect_document(*samples, status="success", **more):
    return {"version": 2, "status": status, "eval": {}, "plan": {}, "samples": list(samples), **more}


CRASH = {"message": "boom", "traceback": "", "traceback_ansi": ""}
SCORING = [{"event": "span_begin", "type": "solvers"}, {"event": "span_begin", "type": "scorers"}]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (sample(value="C"), 1.0),
        (sample(value="N"), 0.0),
        (sample(value="P"), 0.5),
        (sample(value=False), 0.0),
        (sample(value="0.25"), 0.25),
        (sample(value=float("nan")), MISSING),
        (sample(value=None), MISSING),
        (sample(value="NOT_PARSABLE"), MISSING),
        (sample(scores={"grade": None}), MISSING),
        (sample(scores={}), MISSING),
        (sample(scores=None), MISSING),
        (sample(invalidation={"author": "ann", "reason": "leak"}), MISSING),
        (sample(scores=None, error=CRASH, completion=""), FAILED),
        (sample(scores=None, error=CRASH), FAILED),
        (sample(scores=None, error=CRASH, events=SCORING), MISSING),
        (sample(value="I", completion=""), FAILED),
        (sample(value="I", output=None), FAILED),
        (
            sample(value="C", output={"completion": "", "choices": [{"message": {"tool_calls": [{}]}}]}),
            1.0,
        ),
        (sample(scores={"grade": {"value": 1, "answer": "found in a file"}}, completion=""), 1.0),
        ({**sample(scores=None), "score": {"value": 0.75}}, MISSING),
    ],
)
def test_inspect(row, expected):
    log = read_log_document(inspect_document(sample("good"), row), "log.json")

    assert state(log, "grade", "q") == expected
    assert state(log, "grade", "good") == 1.0


def test_inspect_logs_of_version_1_have_one_score():
    row = sample(scores=None)
    row |= {"score": {"value": "C"}}
    del row["scores"]

    assert read_log_document(inspect_document(row), "log.json").columns["score"] == [1.0]


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (
            ["A", "B", "C", "D"],
            "'grade' is not a score: 'A' for unit 'q0' is not a number; to use it as a verdict, ",
        ),
        (
            [1, 0, "odd", 1],
            "'grade' is not a score: 'odd' for unit 'q2' is not a number, although 3 others are",
        ),
        (
            [[1, 0], [1], [0], [1]],
            "'grade' is not a score: it contains several values per unit (first: '[1, 0]'",
        ),
    ],
)
def test_a_column_with_a_value_that_is_no_score_stays_text_and_the_row_is_named(values, note, written):
    samples = [sample(f"q{k}", value=value) for k, value in enumerate(values)]
    document = inspect_document(*samples)

    log = read_log_document(document, "log.json")

    assert log.proxies == ()
    assert all(isinstance(value, str) for value in log.columns["grade"])
    assert any(entry.startswith(note) for entry in log.notes)
    assert "no unit has a number as its score" in log.notes
    with pytest.raises(
        InputError, match=r"column 'grade' holds .* not (a number|numbers) \(first: .*unit 'q"
    ):
        Population.read(written(document, lines=False), proxy="grade")


def line(name="q", resps="a", metrics=("acc",), target="t", **more):
    """Return a line of a log of lm-evaluation-harness."""
    found = {"doc_id": name, "doc": {"q": name}, "target": target, "arguments": [[name, {}]]}
    found |= {"resps": [[resps]], "filtered_resps": [resps], "filter": "none"}
    return found | ({} if metrics is None else {"metrics": list(metrics)}) | more


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (line(acc=True), 1.0),
        (line(acc=0), 0.0),
        (line(acc=None), MISSING),
        (line(acc=float("nan")), MISSING),
        (line(acc="[invalid]"), MISSING),
        (line(), MISSING),
        (line(metrics=()), MISSING),
        (line(acc=0.0, resps=""), FAILED),
        (line(acc=0.0, resps=" \n"), FAILED),
        (line(acc=1.0, resps="", target=""), 1.0),
        (line(metrics=None, acc=0.5), 0.5),
        (line(acc=0.0, filtered_resps=["[invalid]"]), 0.0),
    ],
)
def test_lm_eval(row, expected):
    log = read_lm_eval([line("good", acc=1.0), row], "samples.jsonl")

    assert state(log, "acc", log.columns["id"][1]) == expected
    assert state(log, "acc", log.columns["id"][0]) == 1.0


def test_lm_eval_computes_the_hashes_that_an_older_version_did_not_write(tools):
    lines = [json.loads(text) for text in (tools / "lm-eval-0.4.13-capitals.jsonl").read_text().splitlines()]
    bare = [{key: value for key, value in each.items() if not key.endswith("_hash")} for each in lines]

    assert read_lm_eval(bare, "a").columns["id"] == read_lm_eval(lines, "b").columns["id"]


@pytest.mark.parametrize(("values", "proxies"), [([[1, 0], [1, 1]], ()), ([[True], [False]], ("mcc",))])
def test_a_metric_that_is_a_list_is_no_score_unless_it_has_one_entry(values, proxies):
    lines = [line(str(k), metrics=["mcc"], mcc=value) for k, value in enumerate(values)]

    assert read_lm_eval(lines, "samples.jsonl").proxies == proxies


def result(test=1, output="a", score=1.0, success=True, **more):
    """Return a result as promptfoo writes it."""
    found = {
        "promptIdx": 0,
        "testIdx": test,
        "vars": {"id": f"q{test}"},
        "prompt": {"raw": "p", "label": "p"},
    }
    found |= {"provider": {"id": "one"}, "response": {"output": output}, "namedScores": {"exact": score}}
    return found | {"score": score, "success": success} | more


def graded(*components):
    parts = [
        {"pass": passed, "score": float(passed), "assertion": {"metric": metric}}
        | ({"metadata": {"graderError": True}} if error else {})
        for metric, passed, error in components
    ]
    return {"pass": all(part["pass"] for part in parts), "componentResults": parts}


@pytest.mark.parametrize(
    ("row", "score", "success", "exact"),
    [
        (result(score=0.0, success=False, failureReason=1, error="Expected a to equal b"), 0.0, 0.0, 0.0),
        (result(output=None, score=0.0, success=False, error="No output"), FAILED, FAILED, FAILED),
        (result(output="", score=0.0, success=False), FAILED, FAILED, FAILED),
        (result(response=None, score=0.0, success=False, error="timeout"), FAILED, FAILED, FAILED),
        (
            result(
                response={"error": "401", "output": ""},
                score=0.0,
                success=False,
                failureReason=2,
                error="401",
            ),
            FAILED,
            FAILED,
            FAILED,
        ),
        (
            result(score=0.0, success=False, failureReason=2, error="assertion raised"),
            MISSING,
            MISSING,
            MISSING,
        ),
        (
            result(score=0.0, success=False, gradingResult=graded(("exact", False, True))),
            MISSING,
            MISSING,
            MISSING,
        ),
        (
            result(
                score=0.0,
                success=False,
                gradingResult=graded(("exact", False, False), ("tone", False, True)),
            ),
            MISSING,
            0.0,
            0.0,
        ),
        (result(namedScores=None), 1.0, 1.0, MISSING),
        (result(score=None), MISSING, 1.0, MISSING),
        (result(output={"tool": "search"}), 1.0, 1.0, 1.0),
    ],
)
def test_promptfoo(row, score, success, exact):
    document = {"evalId": "e", "results": {"version": 3, "results": [result(0), row]}}
    log = read_log_document(document, "out.json")

    assert [state(log, name, "q1") for name in ("score", "success", "exact")] == [score, success, exact]
    assert [state(log, name, "q0") for name in ("score", "success", "exact")] == [1.0, 1.0, 1.0]


def test_results_of_promptfoo_before_version_3_have_no_numbers():
    rows = [
        result(test, provider={"id": provider}, score=float(provider == "large"))
        for test in (0, 1)
        for provider in ("large", "small")
    ]
    for row in rows:
        del row["promptIdx"]
        del row["testIdx"]

    log = read_log_document({"evalId": "e", "results": {"version": 2, "results": rows}}, "out.json")

    assert log.columns["id"] == ["q0", "q1"]
    assert log.columns["score@large"] == [1.0, 1.0]
    assert log.columns["score@small"] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("value", "prediction", "expected"),
    [
        (0.5, "a", 0.5),
        (None, "a", MISSING),
        (float("nan"), "a", MISSING),
        ("N/A", "a", MISSING),
        (0.0, "", FAILED),
        (0.0, None, FAILED),
    ],
)
def test_hugging_face_evaluate(value, prediction, expected):
    document = {"_evaluate_version": "0.4.6", "exact_match": [1.0, value], "predictions": ["x", prediction]}

    log = read_log_document(document, "result.json")

    assert state(log, "exact_match", "2") == expected


def test_labels_know_which_answers_failed(written):
    rows = [case("a"), case("b", output=None), case("c", metrics=[(None, "error")])]
    path = written({"testCases": rows, "metricsScores": []}, lines=False)

    labels = read_labels(path, value="success")

    assert labels.values == (1.0, None, None)
    assert labels.failed == (False, True, False)
    assert labels.failed_as_wrong().values == (1.0, 0.0, None)
    assert labels.failed_as_wrong(lowest=False).values == (1.0, 1.0, None)
    assert labels.only([1]).failed_answers == 1


@pytest.mark.parametrize(
    ("name", "column", "states"),
    [
        (
            "inspect-0.3.285-odd.json",
            "graded",
            {"good": 1.0, "metric": MISSING, "crash": FAILED, "empty": FAILED},
        ),
        (
            "deepeval-4.3.1-odd.json",
            "Exact Match",
            {"good": 1.0, "metric": MISSING, "bad": 0.0, "empty": FAILED},
        ),
    ],
)
def test_logs_that_the_tools_wrote_of_failures(tools, name, column, states):
    log = read_log_document(json.loads((tools / name).read_text()), name)

    assert {unit: state(log, column, unit) for unit in log.columns["id"]} == states
