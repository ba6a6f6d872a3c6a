"""`stratal init --until` begins with a pilot; `stratal extend` adds what the labels say is needed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from stratal.cli.application import app
from stratal.study import open_study

N, WIDTH = 2000, 0.08


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (words, done.exception)
    return done.output


@pytest.fixture
def truth(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(3)
    proxy = generator.beta(3, 1, N)
    rows = [f"u{number},{score:.6f},text {number}\n" for number, score in enumerate(proxy)]
    (tmp_path / "p.csv").write_text("id,proxy,text\n" + "".join(rows))
    return {f"u{number}": bool(right) for number, right in enumerate(generator.random(N) < proxy)}


def label_all(truth):
    with open_study("audit") as study:
        while (item := study.next_item("ann")) is not None:
            study.submit("ann", item.id, "Pass" if truth[item.id] else "Fail", seconds=2.0)


def test_a_half_width_without_a_budget_begins_with_a_pilot_and_is_reached_by_extending(truth):
    asked = ["--question", "Right?", "--choices", "Pass,Fail", "--annotators", "ann", "--show", "text"]
    made = run("init", "p.csv", "--proxy", "proxy", "--until", WIDTH, "--study", "audit", *asked, "--json")
    pilot = json.loads(made)["n"]
    label_all(truth)
    assert pilot < N / 2
    assert "Next: stratal extend audit" in run("status", "audit")

    rounds = 1
    while not json.loads(run("status", "audit", "--json"))["stop"]["enough"]:
        found = json.loads(run("extend", "audit", "--json"))
        rounds += 1
        assert found["new"] > 0
        assert rounds <= 6
        label_all(truth)

    stop = json.loads(run("status", "audit", "--json"))["stop"]
    low, high = stop["anytime_interval"] if "anytime_interval" in stop else (0, 2 * WIDTH)
    assert high - low <= 2 * WIDTH + 1e-9
    assert json.loads(run("extend", "audit", "--json"))["new"] == 0


def test_a_study_without_a_half_width_says_what_to_give(truth):
    asked = ["--question", "Right?", "--choices", "Pass,Fail", "--annotators", "ann", "--show", "text"]
    run("init", "p.csv", "--proxy", "proxy", "--budget", 50, "--study", "audit", *asked)

    done = CliRunner().invoke(app, ["extend", "audit"])

    assert "no half-width to extend it to" in str(done.exception)
    assert "--additional N" in str(done.exception)


def test_a_study_without_labels_cannot_say_how_many_more_it_needs(truth):
    asked = ["--question", "Right?", "--choices", "Pass,Fail", "--annotators", "ann", "--show", "text"]
    run("init", "p.csv", "--proxy", "proxy", "--until", WIDTH, "--study", "audit", *asked)

    assert "label" in str(CliRunner().invoke(app, ["extend", "audit"]).exception)
