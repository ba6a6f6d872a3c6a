"""The extension of Inspect, found by its entry point: from a log to human scores and their estimate."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.environments import python_with, run_script

TOOLS = Path(__file__).parents[1] / "tools"
METRICS = """
import json, sys
from inspect_ai.log import read_eval_log
log = read_eval_log(sys.argv[1])
scores = {
    score.name: {name: metric.value for name, metric in score.metrics.items()} for score in log.results.scores
}
values = [sample.scores["human_labels"].value for sample in log.samples]
print(json.dumps({"scores": scores, "labelled": sum(value == value for value in values)}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_epochs", "options"), [(1, ()), (2, ("--design", "clusters", "--cluster", "sample"))]
)
def test_human_labels_are_scores_of_the_log_with_the_estimate_as_metric(n_epochs, options, tmp_path):
    python = python_with("inspect_ai")
    run_script(python, TOOLS / "inspect_project.py", 120, n_epochs, cwd=tmp_path)
    [log] = (tmp_path / "logs").glob("*.eval")

    def stratal(*words):
        return json.loads(run_script(python, "-m", "stratal", *words, "--json", cwd=tmp_path))

    stratal("draw", log, "--budget", 30, "--seed", 1, *options, "--output", "audit")
    with (tmp_path / "audit" / "to_label.csv").open(encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    labels = [f"{unit},{'Fail' if number % 3 == 0 else 'Pass'}\n" for number, unit in enumerate(ids)]
    (tmp_path / "labels.csv").write_text("".join(["id,label\n", *labels]))
    estimate = stratal("estimate", "audit/sample.parquet", "labels.csv", "--map", "Pass=1,Fail=0")

    score = ["-m", "inspect_ai", "score", log, "--scorer", "stratal/human_labels", "--action", "append"]
    score += ["-S", "sample=audit/sample.parquet", "-S", "labels=labels.csv"]
    score += ["-S", "mapping={Pass: 1, Fail: 0}", "--overwrite", "--display", "none"]
    run_script(python, *score, cwd=tmp_path)

    result = json.loads(run_script(python, "-c", METRICS, log, cwd=tmp_path))
    low, high = estimate["confidence_interval"]
    metrics = result["scores"]["human_labels"]
    assert metrics["estimate"] == pytest.approx(estimate["estimate"])
    assert (metrics["estimate_low"], metrics["estimate_high"]) == pytest.approx((low, high))
    assert metrics["estimate_labels"] == estimate["n"]
    assert result["labelled"] == len(ids)
    assert "match" in result["scores"]
