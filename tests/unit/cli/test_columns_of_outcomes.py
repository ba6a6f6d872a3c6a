"""Two models from columns of right and wrong: what the command prints is what Python gives."""

import json

import numpy as np
import pytest
from tests.e2e.pasted import write

import stratal

QUESTIONS = ("difference:new,old", "ratio:new,old", "win_rate:new,old")


@pytest.fixture
def outcomes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    population = stratal.Population.from_arrays(
        ids=[f"u{k}" for k in range(600)], proxy=rng.uniform(size=600)
    )
    sample = stratal.plan(population, 90).draw(seed=3)
    sample.write("sample.parquet")
    found = {name: (rng.random(90) < rate).astype(float) for name, rate in (("new", 0.8), ("old", 0.6))}
    write(
        "labels.csv",
        ["id", "new", "old"],
        [[unit, int(a), int(b)] for unit, a, b in zip(sample.ids.tolist(), *found.values(), strict=True)],
    )
    return sample, found


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_command_gives_what_python_gives(outcomes, run_command, question):
    sample, given = outcomes
    expected = stratal.estimate(sample, given, estimand=question).to_dict()

    done = run_command("estimate", "sample.parquet", "labels.csv", "--estimand", question, "--json")

    assert done.status == 0
    found = json.loads(done.stdout)
    for name in ("estimand", "estimate", "standard_error", "confidence_interval", "n"):
        assert found[name] == pytest.approx(expected[name]), name


def test_each_column_of_words_says_what_it_counts_as(outcomes, run_command):
    sample, given = outcomes
    words = [["Pass" if value else "Fail" for value in column] for column in given.values()]
    write("words.csv", ["id", "new", "old"], list(zip(sample.ids.tolist(), *words, strict=True)))

    printed = run_command("estimate", "sample.parquet", "words.csv", "--compare", "new,old")
    done = run_command("estimate", "sample.parquet", "words.csv", "--estimand", QUESTIONS[0], "--json")

    assert "labels of 'old': Pass " in printed.stdout
    assert {row["column"] for row in json.loads(done.stdout)["label_values"]} == {"new", "old"}


def test_several_questions_share_the_columns(outcomes, run_command):
    done = run_command(
        "estimate", "sample.parquet", "labels.csv", "--estimand", ";".join(QUESTIONS), "--json"
    )

    assert [row["estimand"] for row in json.loads(done.stdout)["estimands"]] == list(QUESTIONS)


def test_a_report_is_of_both(outcomes, run_command):
    done = run_command(
        "report", "sample.parquet", "labels.csv", "--estimand", QUESTIONS[0], "--output", "report.html"
    )

    assert done.status == 0
    assert "Difference of new, old" in done.stdout
