"""Each command reads what the one before wrote: plan.json, the folder of a draw, sample and labels."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from tests.e2e.pasted import invoke, next_line, run, write

import stratal
from stratal.cli.printed import command_schema
from stratal.errors import InputError

PLAN = "plan p.csv --proxy score --predicted answer --budget 60 --map 'kitty=cat' --output plan.json"


@pytest.fixture
def truth(tmp_path, monkeypatch):
    """Predictions, and the class of each unit."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(5)
    score = generator.beta(3, 1, 400).round(4)
    answers = generator.choice(["cat", "dog"], 400)
    write("p.csv", ["id", "score", "answer", "text"], [(f"u{k}", s, a, f"text {k}") for k, (s, a) in
          enumerate(zip(score, answers, strict=True))])  # fmt: skip
    right = generator.random(400) < score
    other = {"cat": "dog", "dog": "cat"}
    return {f"u{k}": a if r else other[a] for k, (a, r) in enumerate(zip(answers, right, strict=True))}


def fill(folder, answers):
    """Do what annotators do."""
    path = Path(folder) / "to_label.csv"
    rows = list(csv.DictReader(path.read_text().splitlines()))
    write(path, ["id", "label"], [(row["id"], answers[row["id"]]) for row in rows])


def test_nothing_is_typed_twice_from_the_plan_to_the_report(truth):
    drawing = next_line(run(PLAN))
    estimating = next_line(run(drawing))
    fill("audit", {unit: "kitty" if label == "cat" else label for unit, label in truth.items()})
    found = json.loads(run(f"{estimating} --json"))
    reporting = next_line(run(estimating))
    run(reporting)

    assert drawing == "draw plan.json --show text --seed 7 --output audit/"
    assert estimating == "estimate audit/sample.parquet audit/to_label.csv"
    assert reporting == "report audit/sample.parquet audit/to_label.csv --output report.html"
    sample = stratal.Sample.read("audit/sample.parquet")
    expected = stratal.estimate(sample, truth_of(sample, truth), predicted=True)
    assert found["estimate"] == expected.value


def truth_of(sample, truth):
    return {unit: truth[unit] for unit in sample.ids.tolist()}


def test_a_plan_and_its_options_draw_the_same_units(truth):
    options = PLAN.removeprefix("plan ").removesuffix(" --output plan.json")
    run(PLAN)
    run("draw plan.json --seed 7 --show text --output one")
    run(f"draw {options} --seed 7 --show text --output two")

    assert stratal.Sample.read("one/sample.parquet") == stratal.Sample.read("two/sample.parquet")
    assert Path("one/to_label.csv").read_text() == Path("two/to_label.csv").read_text()
    assert Path("one/plan.json").read_text() == Path("two/plan.json").read_text()


def test_a_plan_stores_the_question_that_the_sample_gets(truth):
    run(PLAN)
    run("draw plan.json --seed 7 --output audit")
    planned = json.loads(Path("plan.json").read_text())["question"]
    drawn = stratal.Sample.read("audit/sample.parquet").question.to_dict()

    assert planned == drawn
    assert planned["scores"] == [{"name": "score", "predicts": "right", "declared": False}]
    assert planned["outcome"]["mapping"] == {"kitty": "cat"}


def test_a_draw_with_another_question_than_the_plan_is_refused(truth):
    run(PLAN)
    path = Path("plan.json")
    path.write_text(path.read_text().replace('"predicts": "right"', '"predicts": "outcome"'))
    done = invoke("draw plan.json --seed 7 --output audit")

    assert isinstance(done.exception, InputError)
    assert "'scores'" in str(done.exception)
    assert not Path("audit").exists()


def test_plans_are_as_their_schema_says(truth):
    run(PLAN)
    run("draw plan.json --seed 7 --output audit")
    schema = json.loads(run("schema plan-file"))

    assert schema == command_schema("plan-file")
    for path in ("plan.json", "audit/plan.json"):
        jsonschema.validate(json.loads(Path(path).read_text()), schema)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:-1], "given: 399 units; allowed: the 400 units"),
        (lambda rows: [*rows[:-1], [*rows[-1][:1], "0.123", *rows[-1][2:]]], "proxy 'score' differs"),
        (lambda rows: [["other", *rows[0][1:]], *rows[1:]], "ids differ"),
    ],
)
def test_a_file_that_has_changed_since_the_plan_is_refused_by_name(truth, change, message):
    run(PLAN)
    rows = list(csv.reader(Path("p.csv").read_text().splitlines()))
    write("p.csv", rows[0], change(rows[1:]))
    error = str(invoke("draw plan.json --output audit").exception)

    assert "p.csv has changed since plan.json was written" in error
    assert message in error
    assert not Path("audit").exists()


def test_the_order_of_rows_is_no_change(truth):
    run(PLAN)
    rows = list(csv.reader(Path("p.csv").read_text().splitlines()))
    write("p.csv", rows[0], rows[:0:-1])
    run("draw plan.json --output audit")


def test_a_plan_is_drawn_as_it_is_or_planned_again(truth):
    run(PLAN)
    error = str(invoke("draw plan.json --budget 70 --output audit").exception)
    assert "--budget is set by the plan" in error
    assert "plan again with it" in error
    Path("plan.json").write_text(Path("plan.json").read_text().replace('"budget"', '"bugdet"'))
    assert "plan.json: the plan is damaged" in str(invoke("draw plan.json --output audit").exception)
    Path("notes.json").write_text("{}")
    assert "exists and is not a plan" in str(invoke(PLAN.replace("plan.json", "notes.json")).exception)
    assert "such as plan.json" in str(invoke(PLAN.replace("plan.json", "plan.txt")).exception)


def test_a_plan_finds_its_file_from_any_folder(truth, monkeypatch, tmp_path):
    run(PLAN)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run("draw ../plan.json --output audit")
    fill("audit", truth)

    run("draw --extend audit/sample.parquet --labels audit/to_label.csv --additional 20 --output more")
    assert stratal.Sample.read("more/sample.parquet").size == 80
    assert "p.csv" in json.loads(Path("more/plan.json").read_text())["options"]["file"]


def test_a_pilot_is_extended_without_typing_its_half_width_again(truth):
    line = next_line(run("draw p.csv --proxy score --half-width 0.06 --map right=1,wrong=0 --output audit"))
    own = {row["id"]: row["answer"] for row in csv.DictReader(Path("p.csv").read_text().splitlines())}
    fill("audit", {unit: "right" if own[unit] == label else "wrong" for unit, label in truth.items()})
    run(line)

    assert line == "draw --extend audit/sample.parquet --labels audit/to_label.csv --output audit-next"
    assert stratal.Sample.read("audit-next/sample.parquet").half_width == 0.06


def test_python_knows_what_labels_count_as_too(truth):
    run("draw p.csv --proxy score --budget 40 --map right=1,wrong=0 --output audit")
    sample = stratal.Sample.read("audit/sample.parquet")
    words = {unit: "right" if k % 4 else "wrong" for k, unit in enumerate(sample.ids.tolist())}
    numbers = {unit: float(word == "right") for unit, word in words.items()}

    assert sample.question.outcome.mapping == {"right": 1.0, "wrong": 0.0}
    assert stratal.estimate(sample, words).value == stratal.estimate(sample, numbers).value


def test_labels_that_say_right_or_wrong_are_not_compared(truth):
    run("draw p.csv --proxy score --predicted answer --budget 40 --output audit")
    fill("audit", dict.fromkeys(truth, 1))
    found = json.loads(run("estimate audit/sample.parquet audit/to_label.csv --json"))

    assert found["estimate"] == 1


def test_zeros_and_ones_are_compared_with_answers_of_these_and_it_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("p.csv", ["id", "score", "answer"], [(f"u{k}", 0.5 + k / 400, k % 2) for k in range(200)])
    run("draw p.csv --proxy score --predicted answer --budget 40 --output audit")
    fill("audit", {f"u{k}": 1 for k in range(200)})
    line = "estimate audit/sample.parquet audit/to_label.csv"
    found = json.loads(run(f"{line} --json"))

    assert found["estimate"] < 1
    assert any("--predicted none" in note for note in found["notes"])
    assert json.loads(run(f"{line} --predicted none --json"))["estimate"] == 1


def test_a_draw_without_a_file_says_what_to_give(truth):
    assert "a plan, or a file of predictions" in str(invoke("draw --output audit").exception)
    run("draw p.csv --proxy score --budget 40 --output audit")
    Path("audit/plan.json").unlink()
    line = "draw --extend audit/sample.parquet --labels audit/to_label.csv --additional 5 --output more"
    assert "plan.json, so the file of its predictions is unknown" in str(invoke(line).exception)


def test_the_words_of_a_plan_are_those_of_a_shell(truth):
    Path("p.csv").rename("my file.csv")
    drawing = next_line(run(shlex.join(["plan", "my file.csv", "--proxy", "score", "--half-width", "0.06"])))
    assert shlex.split(drawing)[1] == "my file.csv"
    run(drawing)


def test_the_loss_of_probabilities_goes_from_plan_to_estimate(tmp_path, monkeypatch):
    """The estimate finds the probabilities of the labelled units by the plan in the draw's folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    f = rng.dirichlet([0.5, 0.8, 1.0], 300).round(6)
    f[:, 2] = (1 - f[:, 0] - f[:, 1]).round(6)
    classes = np.array(["a", "b", "c"])[[rng.choice(3, p=row / row.sum()) for row in np.clip(f, 0, 1)]]
    write("p.csv", ["id", "p_a", "p_b", "p_c"], [(f"u{k}", *row) for k, row in enumerate(f)])
    run("plan p.csv --estimand 'squared_error:p_*' --budget 80 --output plan.json")
    run("draw plan.json --seed 7 --output audit/")
    answers = {f"u{k}": name for k, name in enumerate(classes)}
    fill("audit", answers)
    found = json.loads(run("estimate audit/sample.parquet audit/to_label.csv --json"))
    losses = (1 - f[np.arange(300), [int(ord(name) - 97) for name in classes]]) ** 2

    assert abs(found["estimate"] - losses.mean()) < 4 * found["standard_error"]
    assert found["n"] == 80


def test_a_plan_learns_by_category_from_other_units_and_counts_money(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    kinds = rng.choice(["law", "news"], 600)
    odds = rng.normal(1, 1, 600)
    score = 1 / (1 + np.exp(-odds))
    right = rng.random(600) < 1 / (1 + np.exp(-np.where(kinds == "law", 0.0, 2.0) * odds))
    rows = [
        (f"u{k}", round(score[k], 6), kinds[k], 9 if kinds[k] == "law" else 1, int(right[k]))
        for k in range(600)
    ]
    header = ["id", "score", "kind", "minutes", "label"]
    write("new.csv", header[:4], [row[:4] for row in rows[:400]])
    write("old.csv", header, rows[400:])
    write("high.csv", header, [row for row in rows[400:] if row[1] > 0.7])
    command = "plan new.csv --proxy score --budget 100 --labels old.csv"
    one, each = (json.loads(run(f"{command} {more} --json")) for more in ("--by kind", "--calibrate-by kind"))

    assert one["labels"]["used"] == each["labels"]["used"] == 200
    law = [
        [s["expected_standard_deviation"] for s in plan["strata"] if "law" in s["name"]]
        for plan in (one, each)
    ]
    assert min(law[1]) > min(law[0])
    text = run(command.replace("old", "high") + " --calibrate-by kind --output plan.json")
    assert "the distribution of 'score' differs" in text
    run("draw plan.json --seed 7 --output audit/")
    paid = "--budget 300 --allocation cost-optimal:minutes"
    run(f"plan new.csv --proxy score --by kind {paid} --output cost.json")
    run("draw cost.json --seed 7 --output paid/")
    drawn = stratal.Sample.read("paid/sample.parquet")
    spent = sum(9 if kind == "law" else 1 for kind in drawn.groups["kind"])
    assert 280 <= spent <= 300
    alone = invoke("plan new.csv --proxy score --budget 100 --calibrate-by kind")
    assert "--calibrate-by with --labels" in str(alone.exception)
