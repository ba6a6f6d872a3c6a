"""Samples of earlier commands, and their files, read again."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from tests.unit.cli.test_draw import run

from stratal.errors import InputError


@pytest.fixture
def predictions(tmp_path):
    rng = np.random.default_rng(8)
    truth = rng.random(3000) < 0.05
    score = np.where(truth, rng.beta(6, 2, 3000), rng.beta(1, 12, 3000)).round(4)
    file = tmp_path / "p.csv"
    with file.open("w", newline="") as stream:
        rows = zip(range(3000), score, np.where(score > 0.5, "cat", "dog"), strict=True)
        csv.writer(stream).writerows([("id", "score", "answer"), *rows])
    return file, np.where(truth, "cat", "dog")


def fill(folder, truth):
    with (folder / "to_label.csv").open() as stream:
        rows = list(csv.reader(stream))
    at = rows[0].index("label")
    for row in rows[1:]:
        row[at] = truth[int(row[0])]
    with (folder / "to_label.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return folder / "to_label.csv"


@pytest.mark.parametrize(
    "estimand", ["f1:cat,probability=score", "f1:cat,probability=score;recall:cat,probability=score"]
)
def test_a_round_reads_the_columns_that_the_estimand_names(predictions, tmp_path, estimand):
    file, truth = predictions
    run("draw", file, "--id", "id", "--predicted", "answer", "--estimand", estimand, "--budget", 80,
        "--output", tmp_path / "a")  # fmt: skip
    labels = fill(tmp_path / "a", truth)
    words = ("draw", file, "--extend", tmp_path / "a" / "sample.parquet", "--labels", labels)

    more = json.loads(run(*words, "--additional", 20, "--output", tmp_path / "b", "--json"))
    assert (more["n"], more["new"]) == (100, 20)


@pytest.mark.slow
def test_rounds_of_an_estimand_end_at_the_half_width(predictions, tmp_path):
    file, truth = predictions
    run("draw", file, "--id", "id", "--predicted", "answer", "--estimand", "f1:cat,probability=score",
        "--half-width", 0.08, "--output", tmp_path / "0")  # fmt: skip
    labels, sample = [], tmp_path / "0" / "sample.parquet"
    for k in range(9):
        labels += ["--labels", fill(tmp_path / str(k), truth)]
        words = ("draw", "--extend", sample, *labels)
        found = json.loads(run(*words, "--output", tmp_path / str(k + 1), "--json"))
        if found["needed"]["reached"]:
            break
        sample = tmp_path / str(k + 1) / "sample.parquet"

    estimate = json.loads(run("estimate", sample, *labels[1::2], "--json"))
    low, high = estimate["confidence_interval"]
    assert found["needed"]["estimand"] == "f1:cat,probability=score"
    assert found["new"] == 0
    assert (high - low) / 2 == pytest.approx(found["needed"]["half_width"])
    assert (high - low) / 2 <= 0.08


def test_a_list_counts_the_labels_that_were_given(predictions, tmp_path):
    file, truth = predictions
    run("draw", file, "--id", "id", "--predicted", "answer", "--budget", 80, "--output", tmp_path / "a",
        "--estimand", "f1:cat,probability=score;recall:cat,probability=score")  # fmt: skip
    said = run("estimate", tmp_path / "a" / "sample.parquet", fill(tmp_path / "a", truth))

    assert "80 labels of 3,000 units" in said


def test_rounds_of_several_have_a_half_width_each(predictions, tmp_path):
    file, _ = predictions
    asked = "f1:cat,probability=score;recall:cat,probability=score"
    words = (
        "draw",
        file,
        "--id",
        "id",
        "--predicted",
        "answer",
        "--estimand",
        asked,
        "--half-width",
        "0.06,0.1",
    )
    planned = json.loads(run("plan", *words[1:], "--json"))
    drawn = json.loads(run(*words, "--output", tmp_path / "0", "--json"))

    assert [part["wanted_half_width"] for part in planned["estimands"]] == [0.06, 0.1]
    assert all(part["expected_half_width"] <= part["wanted_half_width"] for part in planned["estimands"])
    assert drawn["half_width"] == [0.06, 0.1]
    assert drawn["n"] == max(50, round(planned["budget"] / 2))
    assert json.loads((tmp_path / "0" / "plan.json").read_text())["options"]["half_width"] == [0.06, 0.1]


def drawn_by(predictions, folder):
    """Draw a sample by the score and the answers; return how another round of it is asked for."""
    run("draw", predictions, "--id", "id", "--proxy", "score", "--groups", "answer", "--budget", 60,
        "--output", folder)  # fmt: skip
    files = ("--extend", folder / "sample.parquet", "--labels", folder / "to_label.csv")
    return (*files, "--additional", 20)


def test_a_round_from_another_file_says_which_columns_it_lacks(predictions, tmp_path):
    words = drawn_by(predictions[0], tmp_path / "a")
    other = tmp_path / "other.csv"
    other.write_text("id,text\n" + "".join(f"{k},{k}\n" for k in range(3000)))

    with pytest.raises(InputError, match=r"other.csv: no such column: 'score' \(allowed: 'id', 'text'\)"):
        run("draw", other, *words, "--output", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_round_by_another_proxy_says_what_the_sample_has(predictions, tmp_path):
    words = drawn_by(predictions[0], tmp_path / "a")
    other = tmp_path / "other.csv"
    other.write_text("id,other,answer\n" + "".join(f"{k},{k / 3000},cat\n" for k in range(3000)))

    with pytest.raises(InputError, match="3000 units without 'score'; allowed: 3000 units with 'score'"):
        run("draw", other, *words, "--proxy", "other", "--output", tmp_path / "b")
