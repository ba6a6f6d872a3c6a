"""Repeated runs of a benchmark: the questions are the units, in a wide or a long table."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import LabelError

MODELS = ("gpt-5", "claude-4", "llama-4")
QUESTIONS = 60
RUNS = 4


def wide_table():
    """Return a row for each question and run, with a column of outcomes for each model."""
    rng = np.random.default_rng(7)
    difficulty = rng.beta(1.5, 1, QUESTIONS)
    question = np.repeat(np.arange(QUESTIONS), RUNS)
    table = {"question_id": [f"q{k}" for k in question], "run": (np.arange(len(question)) % RUNS).tolist()}
    table |= {
        name: (rng.random(len(question)) < difficulty[question]).astype(int).tolist() for name in MODELS
    }
    return table


def long_table(*, numbered=True):
    """Return a row for each question, run and model."""
    wide = wide_table()
    rows = len(wide["run"])
    table = {"question_id": wide["question_id"] * 3, "model": np.repeat(MODELS, rows).tolist()}
    table["correct"] = [outcome for name in MODELS for outcome in wide[name]]
    return table | ({"run": wide["run"] * 3} if numbered else {})


def means(evaluation):
    return {row["model"]: row["confidence_interval"] for row in evaluation.to_dict()["leaderboard"]}


@pytest.mark.parametrize("table", [wide_table(), long_table(), long_table(numbered=False)])
def test_a_leaderboard_of_repeated_runs_has_the_questions_as_clusters(table):
    stated = stratal.evaluate(wide_table(), cluster="question_id", compare=MODELS, id="row")

    evaluation = stratal.evaluate(table)

    assert evaluation.sample.question.cluster == "question_id"
    assert f"{RUNS} runs of each of {QUESTIONS} `question_id` (clusters)" in str(evaluation)
    assert means(evaluation) == means(stated)


def test_runs_of_one_model_have_a_wider_interval_than_as_many_questions():
    wide = wide_table()
    table = {"question_id": wide["question_id"], "run": wide["run"], "correct": wide["gpt-5"]}

    of_questions = stratal.evaluate(table).estimate
    of_rows = stratal.evaluate({"correct": wide["gpt-5"]}).estimate

    assert of_questions.value == pytest.approx(of_rows.value)
    assert of_questions.standard_error > 1.2 * of_rows.standard_error


def test_runs_that_failed_may_be_missing():
    table = {name: column[:-2] for name, column in long_table().items()}

    evaluation = stratal.evaluate(table)

    assert f"{RUNS} runs of each of {QUESTIONS} `question_id`" in str(evaluation)
    assert set(means(evaluation)) == set(MODELS)


def test_duplicates_are_no_runs():
    table = {name: [*column, column[0]] for name, column in long_table().items()}

    with pytest.raises(LabelError, match="has 5 rows of model 'gpt-5'"):
        stratal.evaluate(table, model="model", id="question_id")


@pytest.mark.parametrize(
    "changes",
    [
        {"run": [f"run-{row}" for row in range(QUESTIONS * RUNS)]},  # an id of each row
        {"run": [0] * (QUESTIONS * RUNS)},
        {"cost": [0.1] * (QUESTIONS * RUNS), "run": None},
    ],
)
def test_other_tables_have_no_runs(changes):
    wide = wide_table()
    table = {"question_id": wide["question_id"], "run": wide["run"], "correct": wide["gpt-5"], **changes}
    table = {name: column for name, column in table.items() if column is not None}

    assert stratal.evaluate(table).sample.question.cluster is None


def test_models_whose_rows_are_taken_together_are_noted():
    table = {name: column[:-2] for name, column in long_table(numbered=False).items()}

    notes = stratal.evaluate(table).to_dict()["roles"]["notes"]

    assert any("'model' names 3 models, whose rows are evaluated together" in note for note in notes)
