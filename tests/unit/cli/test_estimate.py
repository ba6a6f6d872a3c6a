"""`stratal estimate --require-lower`: an exit status of its own, and the next command."""

import json

import numpy as np
import pytest
from tests.e2e.pasted import next_line, run, write

import stratal


@pytest.fixture
def audit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    population = stratal.Population.from_arrays(proxy=np.full(400, 0.5))
    sample = stratal.SimpleRandom(budget=100).draw(population, seed=7)
    sample.write("sample.parquet")
    write("labels.csv", ["id", "label"], [[unit, int(k >= 5)] for k, unit in enumerate(sample.ids.tolist())])
    return "estimate sample.parquet labels.csv"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ("", 0),
        ("--require-lower .85", 0),
        ("--require-lower .9", 4),
        ("--require-upper .99", 0),
        ("--require-upper .95", 4),
        ("--require-lower .9 --confidence-level .5", 0),
    ],
)
def test_exit_statuses(audit, run_command, options, status):
    assert run_command(*audit.split(), *options.split()).status == status
    done = run_command(*audit.split(), *options.split(), "--json")
    assert done.status == status
    found = json.loads(done.stdout)
    assert ("requirement" in found) == bool("require" in options)
    if "requirement" in found:
        assert found["requirement"]["met"] == (status == 0)


def test_it_is_said_in_words(audit, run_command):
    done = run_command(*audit.split(), "--require-lower", ".9")

    assert "Required: lower end at least 0.9: NOT met." in done.stdout


def test_a_mistake_keeps_its_own_status(audit, run_command):
    done = run_command("estimate", "nowhere.parquet", "labels.csv", "--require-lower", ".9")

    assert "no such file" in done.message


def test_the_report_comes_next_with_the_same_options(audit, tmp_path):
    line = next_line(run(f"{audit} --interval wilson --require-lower .5"))

    assert line == "report sample.parquet labels.csv --interval wilson --output report.html"
    run(line)
    assert (tmp_path / "report.html").exists()


def test_words_are_those_of_the_help():
    from stratal.cli.evidence import EstimateOptions
    from stratal.cli.options import words

    asked = EstimateOptions(class_="3,8", id="key", value="right", predicted="answer", labelled=None)
    assert words(asked) == ["--value", "right", "--id", "key", "--predicted", "answer", "--class", "3,8"]
