"""`stratal trend` on folders that `draw` wrote, with labels that come in week by week."""

from __future__ import annotations

import csv
import json
import shutil

import numpy as np
import pytest

RATES = (0.95, 0.93, 0.6)


@pytest.fixture(scope="module")
def weeks(tmp_path_factory, run_command):
    folder = tmp_path_factory.mktemp("weeks")
    rng = np.random.default_rng(0)
    for week, rate in enumerate(RATES, start=1):
        rows = [[f"{week}-{item}", round(float(rng.beta(6, 1)), 3)] for item in range(400)]
        with open(folder / f"week{week}.csv", "w", newline="") as stream:
            csv.writer(stream).writerows([["id", "confidence"], *rows])
        output = folder / f"week{week}"
        done = run_command(
            *("draw", f"{output}.csv", "--proxy", "confidence", "--budget", "60", "--seed", "7"),
            *("--output", str(output)),
        )
        assert done.status == 0, done.message
        fill(output / "to_label.csv", lambda rate=rate: int(rng.random() < rate))
    return folder


def fill(path, label):
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows([{**row, "label": label()} for row in rows])


def test_folders_in_their_order_give_levels_and_changes(weeks, run_command):
    done = run_command("trend", *(str(weeks / f"week{week}") for week in (1, 2, 3)), "--json")
    result = json.loads(done.stdout)

    assert done.status == 0
    assert [wave["wave"] for wave in result["waves"]] == ["week1", "week2", "week3"]
    assert [row["reference"] for row in result["rows"]] == [None, "week2", "week1"]
    single = run_command("estimate", str(weeks / "week3"), str(weeks / "week3/to_label.csv"), "--json")
    assert result["waves"][2]["estimates"][0]["estimate"] == json.loads(single.stdout)["estimate"]
    assert result["rows"][1]["confidence_interval"][1] < 0


def test_an_alarm_ends_with_status_4_and_is_the_first_line(weeks, run_command, tmp_path):
    folders = [str(weeks / f"week{week}") for week in (1, 2, 3)]
    report = tmp_path / "trend.html"
    done = run_command("trend", *folders, "--require", ">=.9", "--output", str(report))

    assert done.status == 4
    assert done.stdout.startswith("Required value>=0.9: ALARM in week3 (e-value ")
    assert "ALARM in week3" in report.read_text(encoding="utf-8")
    quiet = run_command("trend", *folders[:2], "--require", ">=.8")
    assert quiet.status == 0
    assert quiet.stdout.startswith("Required value>=0.8: NO ALARM")


def test_a_requirement_that_no_wave_is_tested_for_ends_with_status_5(weeks, run_command):
    """It ended with status 0, as if the requirement had been tested."""
    folders = [str(weeks / f"week{week}") for week in (1, 2)]
    waiting = run_command("trend", *folders, "--require", "fell<=.03", "--json")

    assert waiting.status == 5
    assert json.loads(waiting.stdout)["verdict"] == "UNDECIDED"
    assert run_command("trend", *folders, "--require", "fell<=.5", "--reference", "1").status == 0


def test_other_files_of_labels_are_named_after_the_folder(weeks, run_command, tmp_path):
    shutil.copytree(weeks / "week2", tmp_path / "week2")
    (tmp_path / "week2/to_label.csv").rename(tmp_path / "labels.csv")
    named = f"{tmp_path / 'week2'}={tmp_path / 'labels.csv'}"
    results = [
        json.loads(run_command("trend", str(weeks / "week1"), wave, "--json").stdout)
        for wave in (named, str(weeks / "week2"))
    ]
    assert results[0]["rows"] == results[1]["rows"]


def test_mistakes_are_one_error(weeks, run_command):
    week = str(weeks / "week1")
    assert "no waves are given" in run_command("trend").message
    assert (
        "--wave must be a column of one table" in run_command("trend", week, week, "--wave", "week").message
    )
    assert "--reference would have no effect" in run_command("trend", week, week, "--reference", "2").message


def test_earlier_waves_inform_the_next_draw(tmp_path, run_command):
    rng = np.random.default_rng(5)
    for week in (1, 2, 3):
        rows = [[f"{week}-{item}", round(float(rng.beta(6, 1)), 3), "ab"[item % 2]] for item in range(600)]
        with open(tmp_path / f"week{week}.csv", "w", newline="") as stream:
            csv.writer(stream).writerows([["id", "confidence", "topic"], *rows])

    def draw(week, *more):
        words = ("--proxy", "confidence", "--groups", "topic", "--budget", "60", "--output")
        return run_command(
            "draw", str(tmp_path / f"week{week}.csv"), *words, str(tmp_path / f"week{week}"), *more
        )

    for week in (1, 2):
        assert draw(week).status == 0
        fill(tmp_path / f"week{week}/to_label.csv", lambda: int(rng.random() < 0.8))
    earlier = [str(tmp_path / f"week{week}") for week in (1, 2)]
    done = draw(3, "--previous", *earlier, "--seed", "4")
    stored = json.loads((tmp_path / "week3/plan.json").read_text())["options"]
    again = run_command("draw", str(tmp_path / "week3/plan.json"), "--output", str(tmp_path / "again"))

    assert done.status == 0, done.message
    assert "120 labels of 2 earlier waves" in done.stdout
    assert stored["previous"] == ["../week1", "../week2"]
    assert again.status == 0, again.message
    assert (tmp_path / "again/to_label.csv").read_text() == (tmp_path / "week3/to_label.csv").read_text()
    refused = draw(3, "--previous", *earlier, "--by", "topic")
    assert refused.status != 0
    assert "--previous" in refused.message
