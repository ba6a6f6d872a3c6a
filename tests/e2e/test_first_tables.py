"""Tables and logs as tools write them: the first command gives the answer, or names the option that does."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tests.e2e.pasted import write


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def promptfoo_log(rng, path, *, rate):
    """Write a log of promptfoo, with a score and a success of every result; return the share of passes."""
    passed = rng.random(150) < rate
    results = [
        {
            "promptIdx": 0,
            "testIdx": number,
            "success": bool(success),
            "score": float(success),
            "namedScores": {},
            "gradingResult": {"pass": bool(success), "score": float(success), "reason": ""},
            "vars": {"question": f"question {number}"},
            "prompt": {"raw": "p", "label": "p"},
            "provider": {"id": "openai:gpt"},
            "response": {"output": f"answer {number}"},
        }
        for number, success in enumerate(passed)
    ]
    with open(path, "w") as stream:
        json.dump({"evalId": "eval-1", "results": {"version": 3, "results": results}}, stream)
    return passed.mean()


def test_a_gate_on_a_log_with_scores_of_all_answers(run_command):
    rate = promptfoo_log(np.random.default_rng(1), "log.json", rate=0.97)

    gate = run_command("estimate", "log.json", "--require", "value>=.9", "--json")
    result = json.loads(gate.stdout)

    assert gate.status == 0
    assert result["estimate"] == pytest.approx(rate)
    assert result["roles"]["label"] == "success"
    assert result["roles"]["chosen"] == "all"
    assert (
        "'score' is not used; to estimate its mean: value='score' (--value score)" in result["roles"]["notes"]
    )


def test_two_logs_with_a_score_and_a_success_are_compared(run_command):
    rng = np.random.default_rng(2)
    rates = {
        name: promptfoo_log(rng, f"{name}.json", rate=rate) for name, rate in (("new", 0.9), ("old", 0.6))
    }

    result = json.loads(run_command("estimate", "new.json", "old.json", "--json").stdout)

    assert {row["model"]: row["mean"] for row in result["leaderboard"]} == pytest.approx(rates)


def test_a_table_with_a_column_of_weeks_names_its_option(run_command):
    rng = np.random.default_rng(3)
    rows = [
        [row, f"2026-W{40 + row // 100}", int(rng.random() < 0.8) if row % 5 == 0 else ""]
        for row in range(400)
    ]
    write("weekly.csv", ["request_id", "week", "label"], rows)

    refused = run_command("trend", "weekly.csv")
    (option,) = re.findall(r"--wave \w+", refused.message)

    assert "In 2026-W43" in run_command("trend", "weekly.csv", *option.split()).stdout


def test_no_predicted_tag_is_the_empty_set(run_command):
    rng = np.random.default_rng(4)
    tags = np.array(["health", "money", "sport"])
    rows = []
    for row in range(300):
        true = rng.random(3) < 0.4
        true[0] |= not true.any()
        answered = true & (rng.random(3) < 0.7)
        rows.append([row, ";".join(tags[answered]), ";".join(tags[true])])
    write("tags.csv", ["id", "predicted_tags", "label"], rows)

    options = ["--predicted", "predicted_tags", "--tags", ";", "--metric", "recall"]
    result = json.loads(run_command("estimate", "tags.csv", *options, "--json").stdout)

    true_sets, answered_sets = ([{*row[column].split(";")} - {""} for row in rows] for column in (2, 1))
    hits = sum("money" in a and "money" in t for t, a in zip(true_sets, answered_sets, strict=True))
    (recall,) = [row for row in result["metrics"] if row["class"] == "money"]
    assert recall["estimate"] == pytest.approx(hits / sum("money" in t for t in true_sets))


def test_margins_are_no_labels_of_a_survey(run_command):
    rng = np.random.default_rng(5)
    rows = [[row, rng.choice(["north", "south"], p=[0.8, 0.2])] for row in range(300)]
    rows = [[*row, "yes" if rng.random() < (0.8 if row[1] == "north" else 0.4) else "no"] for row in rows]
    write("survey.csv", ["respondent_id", "region", "satisfied"], rows)
    totals = [["region", "north", 5000], ["region", "south", 5000]]
    write("totals.csv", ["variable", "level", "total"], totals)

    asked = run_command("estimate", "survey.csv", "--margins", "totals.csv")
    (option,) = re.findall(r"--value \w+", asked.message)
    answer = run_command("estimate", "survey.csv", "--margins", "totals.csv", *option.split(), "--json")

    low, high = json.loads(answer.stdout)["confidence_interval"]
    assert option == "--value satisfied"
    assert low < 0.6 < high
    assert high < 0.72  # the share of the rows is .72
