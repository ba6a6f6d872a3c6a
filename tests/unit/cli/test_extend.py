"""`stratal draw --half-width` draws a pilot; `stratal study extend` adds what the labels say is needed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

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


ASKED = ["--question", "Right?", "--choices", "Pass,Fail", "--annotators", "ann"]


def study_of(*words):
    """Draw units, and make a study of them."""
    run("draw", "p.csv", "--proxy", "proxy", "--show", "text", *words, "--output", "drawn")
    return run("study", "new", "drawn", "--output", "audit", *ASKED, "--json")


def label_all(truth):
    with open_study("audit") as study:
        while (item := study.next_item("ann")) is not None:
            study.submit("ann", item.id, "Pass" if truth[item.id] else "Fail", seconds=2.0)


def test_a_half_width_without_a_budget_begins_with_a_pilot_and_is_reached_by_extending(truth):
    made = study_of("--half-width", WIDTH)
    pilot = json.loads(made)["n"]
    label_all(truth)
    assert pilot < N / 2
    assert "Next: stratal study extend audit" in run("study", "status", "audit")

    rounds = 1
    while not json.loads(run("study", "status", "audit", "--json"))["stop"]["enough"]:
        found = json.loads(run("study", "extend", "audit", "--json"))
        rounds += 1
        assert found["new"] > 0
        assert rounds <= 6
        label_all(truth)

    stop = json.loads(run("study", "status", "audit", "--json"))["stop"]
    low, high = stop["anytime_interval"] if "anytime_interval" in stop else (0, 2 * WIDTH)
    assert high - low <= 2 * WIDTH + 1e-9
    assert json.loads(run("study", "extend", "audit", "--json"))["new"] == 0


def test_a_study_without_a_half_width_says_what_to_give(truth):
    study_of("--budget", 50)

    done = CliRunner().invoke(app, ["study", "extend", "audit"])

    assert "no target half-width" in str(done.exception)
    assert "--additional N" in str(done.exception)


def test_a_study_without_labels_cannot_say_how_many_more_it_needs(truth):
    study_of("--half-width", WIDTH)

    assert "label" in str(CliRunner().invoke(app, ["study", "extend", "audit"]).exception)


def rewritten(tmp_path, change):
    """Write the predictions with changed rows, each a list of fields."""
    rows = [line.split(",") for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
    lines = [",".join(row) for row in change(rows)]
    (tmp_path / "q.csv").write_text("id,proxy,text\n" + "\n".join(lines) + "\n")
    return "q.csv"


def moved(column):
    def change(rows):
        values = [row[column] for row in rows]
        return [[*row[:column], values[at - 7], *row[column + 1 :]] for at, row in enumerate(rows)]

    return change


def items_of(folder):
    with open_study(folder) as study:
        return study.sample().size


OTHER_FILES = {
    "permuted proxies": (moved(1), "proxy 'proxy' of unit 'u"),
    "exchanged texts": (moved(2), "shown column 'text' of unit 'u"),
    "other ids": (lambda rows: [[f"{row[0]}x", *row[1:]] for row in rows], "ids differ"),
    "fewer rows": (lambda rows: rows[:-1], "given: 1999 units"),
}


@pytest.mark.parametrize("what", OTHER_FILES)
def test_a_study_is_not_extended_from_another_file(truth, tmp_path, what):
    study_of("--budget", 60)
    label_all(truth)
    change, message = OTHER_FILES[what]
    before = items_of("audit")
    done = CliRunner().invoke(
        app, ["study", "extend", "audit", "--additional", "20", "--population", rewritten(tmp_path, change)]
    )
    assert message in str(done.exception)
    assert "not the population from which the sample was drawn" in str(done.exception)
    assert items_of("audit") == before
    asked = ["--additional", "20", "--population", rewritten(tmp_path, lambda rows: rows[::-1])]
    assert json.loads(run("study", "extend", "audit", *asked, "--json"))["new"] == 20
    assert "sound" in run("study", "check", "audit")


@pytest.mark.parametrize("what", OTHER_FILES)
def test_a_sample_is_not_extended_from_another_file(truth, tmp_path, what):
    """The next round was of no population at all: an estimate of .216 for .766."""
    run("draw", "p.csv", "--proxy", "proxy", "--show", "text", "--budget", 60, "--output", "first")
    lines = (tmp_path / "first" / "to_label.csv").read_text().splitlines()
    rows = [f"{line},{int(truth[line.split(',')[0]])}" for line in (line.rstrip(",") for line in lines[1:])]
    (tmp_path / "labels.csv").write_text("\n".join(["id,text,label", *rows]) + "\n")
    change, message = OTHER_FILES[what]
    asked = ["--extend", "first/sample.parquet", "--labels", "labels.csv", "--additional", "20"]
    done = CliRunner().invoke(app, ["draw", rewritten(tmp_path, change), *asked, "--output", "second"])
    assert message in str(done.exception)
    assert not (tmp_path / "second").exists()
    other_order = rewritten(tmp_path, lambda rows: rows[::-1])
    assert json.loads(run("draw", other_order, *asked, "--output", "second", "--json"))["n"] == 80


def test_rows_that_changed_places_are_other_units_where_the_row_is_the_id(truth, tmp_path):
    run("draw", "p.csv", "--id", "row", "--proxy", "proxy", "--budget", 60, "--output", "first")
    lines = (tmp_path / "first" / "to_label.csv").read_text().splitlines()
    rows = [f"{line.split(',')[0]},{at % 2}" for at, line in enumerate(lines[1:])]
    (tmp_path / "labels.csv").write_text("\n".join(["row,label", *rows]) + "\n")
    asked = ["--extend", "first/sample.parquet", "--labels", "labels.csv", "--additional", "20"]
    exchanged = rewritten(tmp_path, lambda rows: [rows[1], rows[0], *rows[2:]])
    done = CliRunner().invoke(app, ["draw", exchanged, *asked, "--output", "second"])
    assert "proxy 'proxy'" in str(done.exception)
