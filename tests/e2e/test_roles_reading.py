"""New users with the files that they have: the tool's own next lines, followed, lead to an estimate."""

from __future__ import annotations

import csv
import datetime
import json
import re
import shlex
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest

import stratal
from stratal.designs.sample import Sample


@pytest.fixture
def follow(run_command, tmp_path, monkeypatch):
    """Run what a command said comes next, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(said):
        lines = [line for line in said.stdout.splitlines() if line.startswith("Next: stratal ")]
        assert lines, said
        done = run_command(*shlex.split(lines[-1].removeprefix("Next: stratal ")))
        assert done.status == 0, done.message
        return done

    return run


def trip_through_a_spreadsheet(handed, path, answer, rows=None):
    """Open the annotators' CSV file in a spreadsheet, fill the labels in, and save a workbook.

    As a spreadsheet does, everything that looks like a number becomes one, so that 0415 is 415; a blank row
    stands after every fifth, a date beside each, and a second sheet holds notes.
    """
    with Path(handed).open(encoding="utf-8") as stream:
        header, *given = list(csv.reader(stream))
    book = openpyxl.Workbook()
    page = book.active
    page.title = "Labels"
    page.append([*(name.title() for name in header), "When"])
    for number, row in enumerate(given[:rows]):
        cells = [float(cell) if cell.replace(".", "").isdigit() else cell or None for cell in row]
        cells[header.index("label")] = answer(row[0])
        page.append([*cells, datetime.datetime(2026, 11, 21)])
        if number % 5 == 4:
            page.append([None] * (len(cells) + 1))
    book.create_sheet("Notes").append(["All done by Friday."])
    book.save(path)
    return path


@pytest.fixture
def judged(tmp_path):
    """What an evaluation tool writes: one JSON object per answer, a nested verdict, ids with zeros."""
    rng = np.random.default_rng(0)
    score = rng.beta(4, 1, 1200).round(3)
    right = rng.random(1200) < score
    rows = [
        {
            "id": f"{n:04d}",
            "input": f"Question {n}?",
            "output": f"Answer, {n}",
            "judge": {"score": float(score[n]), "model": "judge-1", "reason": "…"},
        }
        for n in range(1200)
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path, {f"{n:04d}": bool(right[n]) for n in range(1200)}


def test_a_judge_and_two_annotators_with_spreadsheets(judged, follow, run_command, tmp_path):
    path, truth = judged
    inspected = run_command("doctor", path)
    drawn = follow(follow(inspected))
    sample = Sample.read(tmp_path / "audit" / "sample.parquet")
    disagreed = set(sample.ids.tolist()[:20])
    handed = tmp_path / "audit" / "to_label.csv"
    words = {True: "Pass", False: "Fail"}
    files = [
        trip_through_a_spreadsheet(handed, tmp_path / "ann.xlsx", lambda unit: words[truth[unit]]),
        trip_through_a_spreadsheet(
            handed, tmp_path / "bob.xlsx", lambda unit: words[truth[unit] != (unit in disagreed)]
        ),
    ]
    expected = stratal.estimate(sample, {unit: truth[unit] - 0.0 for unit in sample.ids.tolist()})

    done = run_command("estimate", "audit/sample.parquet", *files, "--json")
    found = json.loads(done.stdout)
    notes = " ".join(found["notes"])

    assert "--proxy judge.score" in inspected.stdout
    assert "to_label.csv" in drawn.stdout
    assert found["n"] == sample.size == 300
    assert re.search(r"labels: Pass \d+ → 1, Fail \d+ → 0", notes)
    assert "annotators are taken from the files' names: ann, bob" in notes
    assert "matched although a spreadsheet had changed them" in notes
    assert "blank rows were left out" in notes
    assert "sheet 'Labels' was read" in notes
    assert (
        "2 annotators, 600 answers, 300 of 300 units with several answers (93% of the pairs agree)" in notes
    )
    flipped = sum(0.5 - truth[unit] for unit in disagreed)
    assert abs(found["estimate"] - expected.value) < 20 / 300
    assert np.sign(found["estimate"] - expected.value) in (0, np.sign(flipped))


def test_one_workbook_gives_the_estimate_of_the_answers(judged, follow, run_command, tmp_path):
    path, truth = judged
    follow(follow(run_command("doctor", path)))
    sample = Sample.read("audit/sample.parquet")
    book = trip_through_a_spreadsheet(
        "audit/to_label.csv", tmp_path / "labels.xlsx", lambda unit: "yes" if truth[unit] else "no"
    )

    found = json.loads(run_command("estimate", "audit/sample.parquet", book, "--json").stdout)
    expected = stratal.estimate(sample, {unit: float(truth[unit]) for unit in sample.ids.tolist()})

    assert found["estimate"] == expected.value
    assert found["confidence_interval"] == list(expected.confidence_interval())


def test_majority_of_three_with_a_mapping(judged, follow, run_command, tmp_path):
    path, truth = judged
    follow(follow(run_command("doctor", path)))
    ids = Sample.read("audit/sample.parquet").ids.tolist()
    for who in ("ann", "bob", "eve"):
        rows = [f"{unit},{'good' if truth[unit] else 'poor'}" for unit in ids]
        (tmp_path / f"{who}.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    files = [f"{who}.csv" for who in ("ann", "bob", "eve")]

    refused = run_command("estimate", "audit/sample.parquet", *files)
    assert refused.status != 0
    assert "--map Pass=1,Fail=0,unsure=" in refused.message

    done = run_command(
        "estimate", "audit/sample.parquet", *files, "--map", "good=1,poor=0", "--combine", "majority"
    )

    assert done.status == 0, done.message
    assert re.search(r"labels: good \d+ → 1, poor \d+ → 0", done.stdout)
    assert "the majority of several answers is used" in done.stdout
    assert "Krippendorff's alpha (nominal) 1.000" in done.stdout


def test_a_group_of_averaged_answers_stays_within_0_and_1(judged, follow, run_command, tmp_path):
    path, _ = judged
    drawn = run_command(
        "draw",
        path,
        "--proxy",
        "judge.score",
        "--margin",
        "--groups",
        "judge.model",
        "--budget",
        40,
        "--output",
        "a",
    )
    assert drawn.status == 0, drawn.message
    ids = Sample.read("a/sample.parquet").ids.tolist()
    for who in ("ann", "bob"):
        rows = [f"{unit},{int(row == 0 and who == 'ann')}" for row, unit in enumerate(ids)]
        (tmp_path / f"{who}.csv").write_text("\n".join(["id,label", *rows]) + "\n")

    done = run_command("estimate", "a/sample.parquet", "ann.csv", "bob.csv", "--by", "judge.model", "--json")
    low, high = json.loads(done.stdout)["domains"][0]["confidence_interval"]

    assert 0 <= low < high <= 1


def test_a_classifier_with_a_softmax(follow, run_command, tmp_path):
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    images, digits = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=50, C=0.002).fit(images[:200] / 16, digits[:200])
    probabilities = model.predict_proba(images[200:] / 16)
    table = pd.DataFrame(probabilities, columns=[f"p_{name}" for name in model.classes_])
    table.insert(0, "image", [f"img_{n:05d}" for n in range(len(table))])
    table.to_csv(tmp_path / "softmax.csv", index=False)
    truth = dict(zip(table["image"], digits[200:], strict=True))

    inspected = run_command("doctor", "softmax.csv")
    planned = follow(inspected)
    drawn = follow(planned)
    handed = pd.read_csv("audit/to_label.csv")
    handed.assign(label=handed["image"].map(truth)).to_csv("audit/to_label.csv", index=False)
    estimated = follow(drawn)

    assert "10 columns add up to 1 in each row: a softmax" in inspected.stdout
    assert "--softmax 'p_*'" in inspected.stdout
    assert "the proxy is the probability of the most probable class" in planned.stdout
    sample = Sample.read("audit/sample.parquet")
    assert sample.proxy_names == ("confidence",)
    assert np.allclose(sample.proxies[:, 0], table.set_index("image").loc[sample.ids].max(axis=1), atol=1e-12)
    value = float(estimated.stdout.split("Accuracy ")[1].split("%")[0]) / 100
    told = float(np.mean(model.classes_[probabilities.argmax(axis=1)] == digits[200:]))
    assert abs(value - told) < 0.08


def test_prediction_powered_inference_on_a_sample_that_exists(run_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    score = rng.beta(3, 1, 3000)
    everything = pd.DataFrame({"id": range(3000), "score": score, "topic": rng.choice(["a", "b"], 3000)})
    everything.to_parquet("predictions.parquet")
    chosen = rng.choice(3000, 250, replace=False)
    labelled = everything.iloc[chosen].assign(
        label=np.where(rng.random(250) < score[chosen], "correct", "incorrect")
    )
    labelled.to_csv("labelled.csv", sep=";", index=False)
    of_labels = score[chosen]

    first = run_command("estimate", "labelled.csv")
    second = run_command("estimate", "labelled.csv", "--proxy", "score")
    done = run_command(
        "estimate",
        "labelled.csv",
        "--proxy",
        "score",
        "--population",
        "predictions.parquet",
        "--json",
    )
    stratified = run_command(
        *(
            "estimate",
            "labelled.csv",
            "--proxy",
            "score",
            "--population",
            "predictions.parquet",
        ),
        *("--chosen", "random-within:topic", "--json"),
    )

    assert "--population FILE" in first.stdout
    assert "--population FILE" in second.stdout
    found = json.loads(done.stdout)
    z = (labelled["label"] == "correct").to_numpy(float)
    arrays = stratal.estimate_from(z, of_labels, np.delete(score, chosen))
    assert found["estimate"] == pytest.approx(arrays.value, abs=1e-12)
    assert found["population_size"] == 3000
    assert "including the 250 labelled units" in " ".join(found["notes"])
    assert len(json.loads(stratified.stdout)["strata"]) == 2


def test_one_file_with_a_few_labels_is_enough(run_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"u{n};0,9;{'Pass' if n % 9 else 'Fail'}" if n < 60 else f"u{n};0,9;" for n in range(600)]
    Path("all.csv").write_text("\n".join(["id;score;label", *rows]).replace("0,9", "0.9") + "\n")

    done = run_command("estimate", "all.csv", "--proxy", "score", "--json")

    assert json.loads(done.stdout)["population_size"] == 600, done.message


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_statisticians_stratified_file(run_command, tmp_path, monkeypatch, kind):
    """As an institute hands it over: codes with zeros, capitals, semicolons, sizes in a file of their own."""
    monkeypatch.chdir(tmp_path)
    sizes = {"01": 300, "02": 600, "03": 100}
    rng = np.random.default_rng(8)
    sample = pd.DataFrame(
        {"ID": range(60), "REGION": np.repeat(list(sizes), 20), "Y": rng.integers(0, 2, 60)}
    )
    frame = pd.DataFrame({"REGION": list(sizes), "N_h": list(sizes.values())})
    if kind == "csv":
        sample.to_csv("sample.csv", sep=";", index=False)
        frame.to_csv("sizes.csv", sep=";", index=False)
    else:
        sample.to_excel("sample.xlsx", index=False)
        frame.to_excel("sizes.xlsx", index=False)

    refused = run_command("estimate", f"sample.{kind}", "--value", "Y", "--chosen", "random-within:region")
    done = run_command(
        *("estimate", f"sample.{kind}", "--value", "y", "--chosen", "random-within:region"),
        *("--sizes", f"sizes.{kind}", "--json"),
    )

    assert "--sizes FILE" in refused.message
    means = sample.groupby("REGION")["Y"].mean()
    expected = sum(size * means[name] for name, size in sizes.items()) / 1000
    variances = sample.groupby("REGION")["Y"].var()
    parts = [(size / 1000) ** 2 * (1 - 20 / size) * variances[name] / 20 for name, size in sizes.items()]
    found = json.loads(done.stdout)
    assert found["estimate"] == pytest.approx(expected)
    assert found["standard_error"] == pytest.approx(sum(parts) ** 0.5)


def test_labels_without_ids_in_the_order_handed_over(judged, follow, run_command, tmp_path):
    path, truth = judged
    follow(follow(run_command("doctor", path)))
    handed = pd.read_csv("audit/to_label.csv", dtype=str)
    handed["id"].map(truth).astype(int).to_frame("label").to_csv("only.csv", index=False)

    refused = run_command("estimate", "audit/sample.parquet", "only.csv")
    done = run_command("estimate", "audit/sample.parquet", "only.csv", "--id", "row", "--json")

    assert "--id row" in refused.message
    expected = stratal.estimate(
        Sample.read("audit/sample.parquet"), {unit: float(truth[unit]) for unit in handed["id"]}
    )
    assert json.loads(done.stdout)["estimate"] == expected.value


def test_a_statistician_with_a_decimal_comma_and_sizes_in_each_row(run_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{n:03d};{'NS'[n % 2]};{(500, 1200)[n % 2]};{n % 7},5" for n in range(60)]
    (tmp_path / "survey.csv").write_text("\n".join(["unit;region;N_h;income", *rows]) + "\n")

    given = ("--value", "income", "--chosen", "random-within:region", "--sizes", "survey.csv")
    done = run_command("estimate", "survey.csv", *given)

    north = np.mean([n % 7 + 0.5 for n in range(0, 60, 2)])
    south = np.mean([n % 7 + 0.5 for n in range(1, 60, 2)])
    value = float(done.stdout.split("Mean of `income` ")[1].split(" ")[0])
    assert value == pytest.approx((500 * north + 1200 * south) / 1700, rel=1e-3)


def test_a_file_with_a_column_of_human_answers_follows_doctor(follow, run_command, tmp_path):
    rows = [f"q{n};0,{n % 9 + 1};{('Pass' if n % 4 else 'Fail') if n % 10 == 0 else ''}" for n in range(900)]
    (tmp_path / "judged.csv").write_text("\n".join(["question;judge;human", *rows]) + "\n")

    done = follow(run_command("doctor", "judged.csv"))

    # A judge that the labels do not support is not used.
    assert "random labels" not in done.stdout
    assert "Pass rate 50.0% (95% interval" in done.stdout


def test_a_file_of_labels_alone_is_told_from_a_sample(run_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labelled.csv").write_text("id,human\na,Pass\nb,Fail\nc,Pass\nd,Pass\n")

    alone = run_command("estimate", "labelled.csv")
    twice = run_command("estimate", "labelled.csv", "labelled.csv")
    unnamed = run_command("estimate", "labelled.csv", "--population-size", "9")

    assert "every row has a label" in alone.stdout
    assert "one table with labels in some rows" in twice.message
    assert "Labels: `human` in 4 of 4 rows, taken as a random sample of 9 units" in unnamed.stdout
