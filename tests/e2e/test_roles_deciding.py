"""Four users who decide by what they read: pairwise preferences, a planner, a benchmark owner, a reader."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from .pasted import next_line, run, write


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_pairwise_preferences():
    """A judge's probability that A wins; people answer A, B or tie."""
    generator = np.random.default_rng(0)
    judged = generator.beta(2, 2, 800).round(4)
    z = np.where(generator.random(800) < 0.1, 0.5, generator.random(800) < judged)
    write("pairs.csv", ["pair_id", "judge"], [(f"q{i:04}", p) for i, p in enumerate(judged)])
    drawing = next_line(run(next_line(run("doctor pairs.csv"))))
    estimating = next_line(run(drawing))
    rows = list(csv.DictReader(Path("audit/to_label.csv").read_text().splitlines()))
    words = {0.0: "B", 0.5: "tie", 1.0: "A"}
    answers = [(row["pair_id"], words[float(z[int(row["pair_id"][1:])])]) for row in rows]
    write("audit/to_label.csv", list(rows[0]), answers)
    found = json.loads(run(f"{estimating} --json"))

    assert found["confidence_interval"][0] < z.mean() < found["confidence_interval"][1]
    assert any("tie" in note and "→ 0.5" in note for note in found["notes"])


def test_a_planner_without_a_file():
    """How many labels for ± 3 points at some 90 %, and can two models 5 points apart be distinguished?"""
    plan = json.loads(run("plan --population-size 5000 --rate .9 --half-width .03 --json"))
    text = run(f"plan --population-size 5000 --rate .9 --budget {plan['budget']} --details")

    assert plan["expected_half_width"] <= 0.03
    assert f"differences of at least {100 * plan['detectable_difference']:.2g} points are detected" in text
    assert plan["detectable_difference"] > 0.05


@pytest.mark.parametrize("shape", ["long", "wide"])
def test_a_benchmark_owner_with_three_models(shape):
    """One labelled sample, three models, in one long table or a wide one: a leaderboard."""
    generator = np.random.default_rng(1)
    write(
        "items.csv", ["id", "score"], [(f"i{i}", p) for i, p in enumerate(generator.beta(3, 1, 900).round(4))]
    )
    run("draw items.csv --proxy score --budget 200 --seed 1 --output audit")
    drawn = [row["id"] for row in csv.DictReader(Path("audit/to_label.csv").read_text().splitlines())]
    rates = {"huge-model-2026-01-31": 0.95, "tiny": 0.5, "medium": 0.75}
    z = {name: (generator.random(200) < rate).astype(int).tolist() for name, rate in rates.items()}
    if shape == "wide":
        write("results.csv", ["id", *z], zip(drawn, *z.values(), strict=True))
        line = f"estimate audit/sample.parquet results.csv --compare {','.join(z)}"
    else:
        rows = [(unit, name, z[name][i]) for i, unit in enumerate(drawn) for name in z]
        write("results.csv", ["id", "model", "label"], rows)
        line = "estimate audit/sample.parquet results.csv --model model"
    found, text = json.loads(run(f"{line} --json")), run(line)

    assert [row["model"] for row in found["leaderboard"]] == ["huge-model-2026-01-31", "medium", "tiny"]
    assert [row["rank"] for row in found["leaderboard"]] == [[1, 1], [2, 2], [3, 3]]
    assert text.count("●") == 3
    assert "huge-model-2026-01-31" in text


def test_a_papers_reader(shared):
    """Which design would have saved what, on a labelled set of the paper: checked in one line."""
    file = shared / "data" / "galaxies.parquet"
    found = json.loads(run(
        f"simulate {shlex.quote(str(file))} --id id --outcome z --proxy proxy --budget 100 --replicates 400 "
        "--design simple-random,k-means:10:proportional --json"
    ))  # fmt: skip
    efficiency = {row["design"]: row["relative_efficiency"] for row in found["rows"]}

    assert efficiency["k-means:10:proportional"] > 1.0
