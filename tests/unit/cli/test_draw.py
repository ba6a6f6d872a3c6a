"""From a half-width to labels by the command: a pilot, as many rounds as it takes, and a stop."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import stratal
from stratal.cli.application import app
from stratal.errors import InputError, StratalError


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=True)
    if isinstance(result.exception, StratalError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "data"
    run("demo", "--output", folder, "--json")
    return folder


def fill(to_label, labels, path):
    truth = {row["id"]: row["label"] for row in csv.DictReader(labels.read_text().splitlines())}
    rows = list(csv.DictReader(to_label.read_text().splitlines()))
    path.write_text("id,label\n" + "".join(f"{row['id']},{truth[row['id']]}\n" for row in rows))
    return path


def test_draw_and_extend_until_the_interval_is_narrow_enough(demo, tmp_path):
    file = demo / "predictions.parquet"
    words = ("--half-width", 0.04, "--json")
    drawn = json.loads(
        run("draw", file, "--proxy", "confidence", *words, "--seed", 7, "--output", tmp_path / "1")
    )
    pilot, labels = drawn["n"], []
    assert drawn["pilot"].startswith(f"The pilot has {pilot} labels: ")
    for number in range(1, 7):
        filled = fill(
            tmp_path / str(number) / "to_label.csv", demo / "labels.csv", tmp_path / f"{number}.csv"
        )
        labels += ["--labels", filled]
        sample = drawn["sample"]
        next_folder = tmp_path / str(number + 1)
        drawn = json.loads(run("draw", file, "--extend", sample, *labels, *words, "--output", next_folder))
        if drawn["new"] == 0:
            break
        assert drawn["round"] == number + 1
        assert drawn["needed"]["additional"] == drawn["new"]

    assert drawn["needed"]["reached"]
    assert not next_folder.exists()
    estimate = json.loads(run("estimate", sample, *labels[1::2], "--json"))
    low, high = estimate["confidence_interval"]
    assert (high - low) / 2 == pytest.approx(drawn["needed"]["half_width"])
    assert (high - low) / 2 <= 0.04
    assert estimate["n"] > pilot
    said = run("draw", file, "--extend", sample, *labels, *words[:2], "--output", next_folder)
    assert "No more labels: the interval is narrow enough" in said
    assert "stratal estimate" in said


def test_what_to_type_next_goes_on_from_the_pilot(demo, tmp_path):
    said = run("draw", demo / "predictions.parquet", "--proxy", "confidence", "--half-width", 0.04,
               "--output", tmp_path / "a")  # fmt: skip

    assert "--extend" in said
    assert "\nThe pilot has " in said
    assert json.loads((tmp_path / "a" / "plan.json").read_text())["options"]["half_width"] == 0.04


def test_a_plan_for_a_half_width_has_its_range_and_leads_to_a_pilot(demo):
    words = ("plan", demo / "predictions.parquet", "--proxy", "confidence", "--half-width", 0.04)
    found = json.loads(run(*words, "--json"))
    optimistic = json.loads(run(*words, "--assume", "optimistic", "--json"))

    low, high = found["half_width_range"]
    assert low < found["expected_half_width"] < high <= 0.04
    assert optimistic["budget"] < found["budget"]
    assert "optimistic SE" not in run(*words)
    said = run(*words, "--details")
    assert "optimistic SE" in said
    assert "conservative SE" in said
    assert "--half-width 0.04" in said.splitlines()[-1]


def test_a_plan_with_labels_of_a_pilot_promises_by_them(demo, tmp_path):
    file = (demo / "predictions.parquet", "--proxy", "confidence")
    run("draw", *file, "--budget", 50, "--output", tmp_path / "a")
    filled = fill(tmp_path / "a" / "to_label.csv", demo / "labels.csv", tmp_path / "a.csv")
    words = ("plan", *file, "--predicted", "predicted", "--half-width", 0.04)

    alone, found = (json.loads(run(*words, *more, "--json")) for more in ((), ("--labels", filled)))
    assert found["labels"]["used"] == 50
    assert found["labels"]["source"] == str(filled)
    assert found["budget"] < alone["budget"]
    said = run(*words, "--labels", filled)
    assert f"Recalibrated on 50 labels from {filled}" in said
    assert f"--budget {found['budget']}" in said.splitlines()[-1]
    with pytest.raises(InputError, match="--value would have no effect"):
        run(*words, "--value", "other")


def test_extending_takes_a_number_of_units_or_a_half_width(demo, tmp_path):
    run("draw", demo / "predictions.parquet", "--proxy", "confidence", "--budget", 50,
        "--output", tmp_path / "a")  # fmt: skip
    filled = fill(tmp_path / "a" / "to_label.csv", demo / "labels.csv", tmp_path / "a.csv")
    words = ("draw", demo / "predictions.parquet", "--extend", tmp_path / "a" / "sample.parquet",
             "--labels", filled, "--output", tmp_path / "b")  # fmt: skip

    for options in ((), ("--additional", 5, "--half-width", 0.1)):
        with pytest.raises(InputError, match="or a half-width"):
            run(*words, *options)


def test_whoever_labels_ids_alone_is_told_of_the_columns(demo, tmp_path):
    words = ("draw", demo / "predictions.parquet", "--budget", 20, "--seed", 1, "--output")

    alone, beside = run(*words, tmp_path / "1"), run(*words, tmp_path / "2", "--show", "predicted")

    assert "Annotators will see only the ids; --show image" in alone
    assert "--show" not in beside


def test_classes_are_compared_in_every_round(demo, tmp_path):
    drawn = (
        "--proxy",
        "confidence",
        "--predicted",
        "predicted",
        "--half-width",
        0.2,
        "--output",
        tmp_path / "a",
    )
    run("draw", demo / "predictions.parquet", *drawn)
    classes = {
        row.split(",")[0]: "3" for row in (tmp_path / "a" / "to_label.csv").read_text().splitlines()[1:]
    }
    file = tmp_path / "labels.csv"
    file.write_text("id,label\n" + "".join(f"{unit},{label}\n" for unit, label in classes.items()))
    again = ("--extend", tmp_path / "a" / "sample.parquet", "--labels", file)
    needed = [
        json.loads(run("draw", *again, *more, "--output", tmp_path / out, "--json"))["needed"]
        for out, more in (("b", ()), ("c", ("--predicted", "predicted")))
    ]
    assert needed[0] == needed[1]


def test_a_round_after_labels_that_need_a_map(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from stratal.cli.application import app

    monkeypatch.chdir(tmp_path)
    rows = [f"u{row},{0.2 + 0.6 * row / 60}" for row in range(60)]
    (tmp_path / "p.csv").write_text("\n".join(["id,score", *rows]))
    first = ["draw", "p.csv", "--id", "id", "--proxy", "score", "--budget", "20", "--output", "first"]
    assert CliRunner().invoke(app, first).exit_code == 0
    header, *units = (tmp_path / "first" / "to_label.csv").read_text().splitlines()
    said = ["good", "bad", "unsure", "good"]
    filled = [unit.rstrip(",") + "," + said[at % 4] for at, unit in enumerate(units)]
    (tmp_path / "labels.csv").write_text("\n".join([header, *filled]))
    again = ["draw", "p.csv", "--extend", "first/sample.parquet", "--labels", "labels.csv"]
    again += ["--additional", "10", "--output", "second"]
    refused = CliRunner().invoke(app, again)
    taken = CliRunner().invoke(app, [*again, "--map", "good=1,bad=0,unsure="])

    assert "--map" in str(refused.exception)
    assert taken.exit_code == 0, taken.output
    assert stratal.Sample.read("second/sample.parquet").question.outcome.mapping["unsure"] is None


@pytest.mark.parametrize(
    "words", [("--design", "clusters", "--cluster", "page"), ("--design", "simple-random")]
)
@pytest.mark.parametrize(
    ("label", "scale", "bounds"), [("0,100", "bounded", (0, 100)), ("pass/fail", "binary", None)]
)
def test_a_draw_without_a_proxy_keeps_what_labels_will_be(tmp_path, words, label, scale, bounds):
    file = tmp_path / "items.csv"
    file.write_text("id,page\n" + "".join(f"u{number},p{number % 30}\n" for number in range(300)))

    run("draw", file, *words, "--label", label, "--budget", 60, "--output", tmp_path / "audit")

    outcome = stratal.Sample.read(tmp_path / "audit" / "sample.parquet").question.outcome
    assert (outcome.scale, outcome.bounds) == (scale, bounds)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ((), "a number, or a word such as pass or fail"),
        (("--predicts", "right"), "1 if the model's answer is right, 0 if it is wrong"),
        (
            ("--predicted", "predicted"),
            "the correct class, such as 0, 1, 2, 3, 4, 5, 6, 7, 8 or 9, "
            "which is compared with the model's answer",
        ),
    ],
)
def test_a_draw_states_what_a_label_means(demo, tmp_path, options, hint):
    words = ("draw", demo / "predictions.parquet", "--proxy", "confidence", "--budget", 20)

    shown = run(*words, *options, "--output", tmp_path / "a")

    assert f"(fill in the column `label`: {hint})" in shown


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Return a file of 300 records in 60 clusters of 3 to 7, and the label of each, half of them 1."""
    rng = np.random.default_rng(5)
    file = tmp_path_factory.mktemp("clusters") / "records.csv"
    cluster = np.repeat([f"c{k:02d}" for k in range(60)], np.tile([3, 4, 5, 6, 7], 12))
    file.write_text("id,cluster\n" + "".join(f"r{k},{name}\n" for k, name in enumerate(cluster.tolist())))
    return file, {f"r{k}": int(label) for k, label in enumerate(rng.random(300) < 0.5)}


def test_a_draw_of_clusters_states_their_number_and_how_far_it_exceeds_the_budget(records, tmp_path):
    file, labels = records
    words = ("draw", file, "--budget", 33, "--design", "clusters", "--cluster", "cluster")
    exceeded = set()
    for seed in range(6):
        text = run(*words, "--seed", seed, "--output", tmp_path / f"text{seed}")
        found = json.loads(run(*words, "--seed", seed, "--output", tmp_path / f"json{seed}", "--json"))
        assert (found["clusters"], found["budget"]) == (6, 33)
        assert f"Drew {found['n']} of 300 units in 6 clusters (clusters, seed {seed})." in text
        excess = found["n"] - 33
        sentence = f"the sample has {excess} more units than the budget of 33."
        assert (sentence in text) == ("more units than the budget" in text) == (excess > 0)
        exceeded.add(excess > 0)
    assert exceeded == {True, False}

    sample = stratal.Sample.read(tmp_path / "json0" / "sample.parquet")
    filled = tmp_path / "filled.csv"
    filled.write_text("id,label\n" + "".join(f"{unit},{labels[unit]}\n" for unit in sample.ids.tolist()))
    estimate = ("estimate", tmp_path / "json0", filled)
    found = json.loads(run(*estimate, "--json"))
    assert (found["n"], found["clusters"]) == (sample.size, 6)
    assert f"{sample.size} labels in 6 clusters" in run(*estimate).splitlines()[0]


def test_units_that_were_drawn_one_by_one_are_in_no_clusters(records, tmp_path):
    file, _ = records
    words = (
        "draw",
        file,
        "--budget",
        33,
        "--design",
        "simple-random",
        "--output",
        tmp_path / "out",
        "--json",
    )
    assert not {"clusters", "budget"} & set(json.loads(run(*words)))


def test_a_draw_states_how_the_file_was_read(tmp_path):
    """The note that percentages are read as shares is printed by `plan`, and by a draw without a plan."""
    path = tmp_path / "scores.csv"
    path.write_text("id,score\n" + "".join(f"u{row},{row}%\n" for row in range(100)))
    note = "'score' is written as percentages"

    assert note in run("draw", path, "--proxy", "score", "--budget", 20, "--output", tmp_path / "a")
    plan = tmp_path / "plan.json"
    assert note in run("plan", path, "--proxy", "score", "--budget", 20, "--output", plan)
    assert note not in run("draw", plan, "--output", tmp_path / "b")
