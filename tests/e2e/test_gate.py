"""The documented recipe of a pipeline passes a good model, and fails a broken one."""

import csv
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

GUIDE = Path(__file__).parents[2] / "docs/guide/machines.md"
CLASSES = ("refund", "address", "cancel", "other")


def write(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([header, *rows])


@pytest.fixture(scope="module")
def audit(tmp_path_factory, run_command):
    """A drawn sample with labels that are true classes, and the answers of several new versions."""
    folder = tmp_path_factory.mktemp("gate")
    draws = np.random.default_rng(7)
    truth = draws.choice(CLASSES, 1_000)
    old = np.where(draws.random(1_000) < 0.93, truth, draws.choice(CLASSES, 1_000))
    better = np.where(draws.random(1_000) < 0.97, truth, "other")
    ids = [f"q{row}" for row in range(1_000)]
    confidence = np.round(draws.uniform(0.6, 1.0, 1_000), 3)
    write(folder / "predictions.csv", ["id", "answer", "confidence"], zip(ids, old, confidence, strict=True))
    options = "--proxy confidence --predicted answer --budget 200 --seed 1"
    run_command("draw", folder / "predictions.csv", *options.split(), "--output", folder / "audit")
    with (folder / "audit/to_label.csv").open(encoding="utf-8-sig") as stream:
        to_label = [row["id"] for row in csv.DictReader(stream)]
    by_id = dict(zip(ids, truth, strict=True))
    answer = dict(zip(ids, old, strict=True))
    write(folder / "audit/labels.csv", ["id", "label"], [(unit, by_id[unit]) for unit in to_label])
    judged = [(unit, int(by_id[unit] == answer[unit])) for unit in to_label]
    write(folder / "audit/judged.csv", ["id", "label"], judged)
    versions = {
        "better": zip(ids, better, strict=True),
        "always-refund": [(unit, "refund") for unit in ids],
        "error-text": [(unit, "ERROR 500") for unit in ids],
        "four-fifths": list(zip(ids, old, strict=True))[:800],
    }
    for name, rows in versions.items():
        write(folder / f"{name}.csv", ["id", "answer"], rows)
    return folder


STATUSES = {"better": 0, "always-refund": 4, "error-text": 4, "four-fifths": 5}


def recipe():
    """The commands of the documented recipe."""
    lines = re.findall(r"- run: (stratal .*)", GUIDE.read_text(encoding="utf-8"))
    return [shlex.split(line.partition(" && ")[0])[1:] for line in lines]


@pytest.mark.parametrize("version", STATUSES)
def test_the_recipe_fails_for_a_broken_model(version, audit, run_command, monkeypatch, tmp_path):
    commands = recipe()
    gate = [command for command in commands if "--require" in command]
    assert len(gate) == 1
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit").symlink_to(audit / "audit")
    (tmp_path / "new_answers.csv").symlink_to(audit / f"{version}.csv")

    for command in commands:
        expected = STATUSES[version] if command in gate else 0
        assert run_command(*command).status == expected


@pytest.mark.parametrize("version", STATUSES)
def test_a_report_has_the_exit_status_of_the_estimate(version, audit, run_command, tmp_path):
    request = (
        audit / "audit/sample.parquet",
        audit / "audit/labels.csv",
        "--against",
        audit / f"{version}.csv",
    )

    for command, options in (("estimate", ()), ("report", ("--output", tmp_path / "report.html"))):
        assert run_command(command, *request, "--require", "value>=.9", *options).status == STATUSES[version]


def test_labels_that_judge_the_old_answer_leave_changed_answers_open(audit, run_command):
    request = (audit / "audit/sample.parquet", audit / "audit/judged.csv", "--predicted", "none")

    assert run_command("estimate", *request, "--require", "value>=.9").status == 0
    changed = ("--against", audit / "always-refund.csv", "--require", "value>=.9")
    assert run_command("estimate", *request, *changed).status == 5


@pytest.mark.parametrize("options", [(), ("--details",), ("--json",)])
def test_a_reader_that_leaves_changes_no_verdict(options, audit):
    """As `head -1` does; the rest of the output cannot be written."""
    request = (audit / "audit/sample.parquet", audit / "audit/labels.csv")
    answers = ("--against", audit / "always-refund.csv", "--require", "value>=.9")
    command = [sys.executable, "-m", "stratal", "estimate", *request, *answers, *options]
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run([*map(str, command)], stdout=writing, stderr=subprocess.DEVNULL, check=False)
    os.close(writing)

    assert done.returncode == 4
