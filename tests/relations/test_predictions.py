"""What a score predicts means the same by command, in Python, in a study, in a report and in a table."""

from __future__ import annotations

import csv
import itertools
import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import StratalError
from stratal.study import StudyQuestion, create_study

pytestmark = pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")

N = 200
BUDGET = 90
MEANINGS = (None, "right", "class:spam", "rating:0..1", "outcome", "order")
ESTIMANDS = (None, "auc:spam", "auc:ham", "average_precision:spam", "calibration_error:score", "judge")

# Every reason for which a question is refused.
REASONS = {
    "a probability of something else is not a score of the class": lambda meaning, estimand: (
        estimand in ("auc:spam", "auc:ham", "average_precision:spam")
        and (meaning in (None, "right") or (meaning == "class:spam" and estimand == "auc:ham"))
    ),
    "a calibration error is of probabilities": lambda meaning, estimand: (
        estimand == "calibration_error:score" and meaning in ("rating:0..1", "order")
    ),
    "classes are numbers only for the probability of a class": lambda meaning, estimand: (
        estimand == "calibration_error:score" and meaning in (None, "right", "outcome")
    ),
}
DECLARED_AT = ("draw", "estimate")


def written(path, columns):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Predictions, the class of every unit, and the folder of both."""
    folder = tmp_path_factory.mktemp("predictions")
    draws = np.random.default_rng(31)
    score = draws.uniform(size=N).round(4)
    truth = np.where(draws.random(N) < score, "spam", "ham")
    answer = np.where(draws.random(N) < 0.8, truth, "ham")
    units = {"id": [f"u{row}" for row in range(N)], "score": score.tolist(), "answer": answer.tolist()}
    written(folder / "p.csv", units)
    return folder, units, dict(zip(units["id"], truth.tolist(), strict=True))


@pytest.fixture(scope="module")
def draw(world, run_command):
    """Draw a sample by the command, once for each declaration, and write its labels."""
    folder, _, truth = world

    @cache
    def make(meaning, declared_at):
        place = folder / f"{MEANINGS.index(meaning)}-{declared_at}"
        words: list[object] = ["--id", "id", "--proxy", "score", "--predicted", "answer"]
        if meaning is not None and declared_at == "draw":
            words += ["--predicts", f"score={meaning}"]
        words += ["--design", "simple-random", "--budget", BUDGET, "--seed", 3, "--output", place]
        done = run_command("draw", folder / "p.csv", *words)
        assert done.status == 0, done.message
        sample = stratal.Sample.read(place / "sample.parquet")
        labels = [truth[unit] for unit in sample.ids.tolist()]
        written(place / "labels.csv", {"id": sample.ids.tolist(), "label": labels})
        return place, sample

    return make


@pytest.fixture(scope="module")
def study(draw, run_command):
    """Make a study of a sample with the same labels, once for each declaration."""

    @cache
    def make(meaning, declared_at):
        place, sample = draw(meaning, declared_at)
        question = StudyQuestion.of_classes("Which?", ["spam", "ham"])
        create_study(place / "study", sample, question, annotators=["ann"]).close()
        imported = ["study", "import", place / "study", place / "labels.csv", "--annotator", "ann"]
        assert run_command(*imported).status == 0
        return place / "study"

    return make


def outcome_of(*evidence, **options):
    """Return the result as JSON has it, or the refusal."""
    try:
        return json.loads(json.dumps(stratal.evaluate(*evidence, **options).to_dict())), None
    except StratalError as error:
        return None, str(error)


# What every entry point shows of an estimate.
PLAIN = ("estimate", "standard_error", "confidence_interval", "n")


# All 72 questions in the slow tier; every seventh, spread over all dimensions, in the fast one.
QUESTIONS = list(itertools.product(MEANINGS, DECLARED_AT, ESTIMANDS))[:: sized(13, 1)]


@pytest.mark.parametrize(("meaning", "declared_at", "estimand"), QUESTIONS)
def test_every_entry_point_reads_the_declaration_alike(
    draw, study, run_command, tmp_path, meaning, declared_at, estimand
):
    place, sample = draw(meaning, declared_at)
    file = place / "labels.csv"
    reasons = [reason for reason, applies in REASONS.items() if applies(meaning, estimand)]
    options: dict[str, Any] = {"judge": "score"} if estimand == "judge" else {"estimand": estimand}
    options = {name: value for name, value in options.items() if value is not None}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    if meaning is not None and declared_at == "estimate":
        options["predicts"] = {"score": meaning}
        words += ["--predicts", f"score={meaning}"]

    in_python, refusal = outcome_of(sample, [file], **options)
    assert (refusal is None) == (not reasons), (refusal, reasons)
    of_study, study_refusal = outcome_of(study(meaning, declared_at), **options)
    by_command = run_command("estimate", place / "sample.parquet", file, *words, "--json")
    report = tmp_path / "report.json"
    reported = run_command("report", place / "sample.parquet", file, *words, "--output", report)
    assert (by_command.status == 0) == (reported.status == 0) == (refusal is None)
    assert (study_refusal is None) == (refusal is None)
    if refusal is not None:
        return

    assert json.loads(by_command.stdout) == in_python
    in_report = json.loads(report.read_text(encoding="utf-8"))["estimate"]
    for name in PLAIN:
        assert in_report[name] == in_python[name] == of_study[name], name
    assert of_study.get("judge") == in_python.get("judge") == in_report.get("judge")
    if estimand != "judge":
        read = stratal.read_labels(file)
        plain = stratal.estimate(sample, read, **options)
        assert plain.to_dict()["estimate"] == in_python["estimate"]


@pytest.mark.parametrize("meaning", MEANINGS[1:])
def test_a_declaration_at_the_draw_and_at_the_estimate_give_one_result(draw, meaning):
    """The outcome and the design are the same: labels are compared with answers, and a random draw."""
    declared, _ = draw(meaning, "draw")
    undeclared, _ = draw(None, "draw")
    for estimand in (None, "auc:spam"):
        at_draw = outcome_of(declared, [declared / "labels.csv"], estimand=estimand)
        predicts = {"score": meaning}
        later = outcome_of(undeclared, [undeclared / "labels.csv"], estimand=estimand, predicts=predicts)
        assert at_draw == later, estimand


@pytest.mark.parametrize("meaning", MEANINGS)
def test_a_table_from_elsewhere_takes_the_declaration(world, draw, run_command, tmp_path, meaning):
    _, units, truth = world
    place, sample = draw(meaning, "draw")
    kept = set(sample.ids.tolist())
    label = [truth[unit] if unit in kept else "" for unit in units["id"]]
    table = written(tmp_path / "table.csv", {**units, "label": label})
    words = [table, "--proxy", "score", "--predicted", "answer"]
    predicts = None if meaning is None else {"score": meaning}
    words += [] if meaning is None else ["--predicts", f"score={meaning}"]

    found, refusal = outcome_of(table, proxy="score", predicted="answer", predicts=predicts)
    expected, _ = outcome_of(sample, [place / "labels.csv"], predicted="answer")
    done = run_command("estimate", *words, "--json")

    assert refusal is None
    assert json.loads(done.stdout) == found
    for name in PLAIN:
        assert found[name] == pytest.approx(expected[name], rel=1e-9), name


def test_contradictions_are_one_error_by_command(world, draw, run_command):
    folder = world[0]
    place, _ = draw("class:spam", "draw")
    evidence = ["estimate", place / "sample.parquet", place / "labels.csv"]

    done = run_command(*evidence, "--predicts", "score=order")
    assert done.status != 0
    assert "score=order" in done.message
    assert "score=class:spam" in done.message
    planning = ["plan", folder / "p.csv", "--proxy", "score", "--predicted", "answer", "--budget", 20]
    for meaning, both in (
        ("rating:0.5..1", ("0.5 to 1", "rating:0.5..1")),
        ("class:eggs", ("'eggs'", "'ham'")),
    ):
        done = run_command(*planning, "--predicts", f"score={meaning}")
        assert done.status != 0
        assert all(text in done.message for text in both)


def test_a_plan_stores_the_declaration_and_draws_by_it(world, run_command, tmp_path):
    folder = world[0]
    plan = tmp_path / "plan.json"
    words = ["--proxy", "score", "--predicted", "answer", "--predicts", "score=class:spam", "--budget", 20]
    done = run_command("plan", folder / "p.csv", *words, "--output", plan)
    assert "score predicts the probability of class 'spam' (declared)" in done.stdout
    assert json.loads(plan.read_text(encoding="utf-8"))["question"]["scores"] == [
        {"name": "score", "predicts": "class:spam", "declared": True}
    ]

    assert run_command("draw", plan, "--output", tmp_path / "audit").status == 0
    sample = stratal.Sample.read(tmp_path / "audit" / "sample.parquet")
    assert sample.question.score("score").predicts == "class:spam"
    done = run_command("doctor", folder / "p.csv", "--proxy", "score", "--predicted", "answer")
    assert "score predicts the probability that the answer is right (inferred)" in done.stdout
