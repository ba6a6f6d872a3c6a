"""Answers that failed: counted in the first lines, missing in the estimate and wrong for what is required."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::stratal.StratalWarning")


def document(failed, errors=0, size=40, score=1.0):
    """Return a DeepEval run of which the first answers failed, and of the next ones the metric."""
    cases = []
    for k in range(size):
        metric = {"name": "exact", "success": True, "score": score}
        if failed <= k < failed + errors:
            metric = {"name": "exact", "success": False, "error": "RateLimitError"}
        output = {} if k < failed else {"actualOutput": "a"}
        cases.append({"name": f"q{k:03d}", "input": "q", "success": True, "metricsData": [metric], **output})
    return {"testCases": cases, "metricsScores": []}


@pytest.fixture
def run(tmp_path, run_command):
    """Return a function that draws all units without a proxy and estimates from the log."""

    def estimate(found, *options):
        path = tmp_path / "run.json"
        path.write_text(json.dumps(found))
        population = tmp_path / "units.csv"
        ids = [case["name"] for case in found["testCases"]]
        population.write_text("\n".join(["id", *ids]))
        budget = str(len(ids))
        if not (tmp_path / "a").exists():
            run_command("draw", population, "--budget", budget, "--seed", 1, "--output", tmp_path / "a")
        sample = tmp_path / "a" / "sample.parquet"
        return run_command("estimate", sample, path, "--value", "exact", *options)

    return estimate


def test_the_first_lines_show_the_counts(run):
    lines = run(document(failed=4, errors=6)).stdout.splitlines()

    assert lines[0].startswith("Share of ones in `exact` 100.0% (")
    assert lines[1].startswith("4 answers failed (an error, or no output); they count as missing")
    assert lines[2] == "Missing scores: 6 of 'exact'."


def test_an_application_that_mostly_fails_passes_no_gate(run):
    printed = run(document(failed=36), "--require", "value>=.5")

    assert "Required value>=0.5: FAIL" in printed.stdout
    assert printed.status == 4


@pytest.mark.parametrize(
    ("options", "status", "estimate"),
    [
        ((), 4, "100.0% "),
        (("--failed-answers", "missing"), 0, "100.0% "),
        (("--failed-answers", "wrong"), 4, "2"),
    ],
)
def test_an_option_says_what_failed_answers_count_as(run, options, status, estimate):
    printed = run(document(failed=30), "--require", "value>=.5", *options)

    assert printed.status == status
    assert printed.stdout.startswith(f"Share of ones in `exact` {estimate}")


def test_a_failed_answer_is_wrong_where_the_score_is_to_be_low(run):
    assert run(document(failed=30, score=0.0), "--require", "value<=.5").status == 4


def test_scores_without_bounds_need_them(run):
    found = document(failed=30, score=7.0)

    assert "--bounds" in run(found, "--require", "value>=5").message
    assert run(found, "--require", "value>=5", "--bounds", "0,10").status == 4


def test_the_option_needs_a_log(run_command, tmp_path):
    (tmp_path / "units.csv").write_text("id,label\na,1\nb,0\n")
    run_command("draw", tmp_path / "units.csv", "--budget", 2, "--seed", 1, "--output", tmp_path / "a")
    sample = tmp_path / "a" / "sample.parquet"

    printed = run_command("estimate", sample, tmp_path / "units.csv", "--failed-answers", "wrong")

    assert "--failed-answers" in printed.message
