"""A drawn sample, a table from elsewhere and a study answer one question alike, by command and in Python."""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import InputError, StratalError
from stratal.study import StudyQuestion, create_study, open_study

pytestmark = pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")

N = 160
BUDGET = 80
SITES = ("north", "south")

ANSWERS = {
    "words": ("cat", "dog", "cow"),
    "digits": ("0", "1", "2"),
    "zero-one": ("0", "1"),
    "truth": ("False", "True"),
    "yes-no": ("no", "yes"),
}

UNSURE = "unsure"

# How a person writes a label: the class, whether the answer is right, or a rating.
LABELS = {
    "classes": lambda truth, right: truth,
    "right-wrong": lambda truth, right: str(int(right)),
    "pass-fail": lambda truth, right: "pass" if right else "fail",
    "ratings": lambda truth, right: str(4 + int(right)),
}
PREDICTED = (None, "answer", "none")
OF_CLASSES = ("f1", "recall", "precision", "prevalence", "kappa", "balanced_accuracy")
OF_ONE_CLASS = ("f1", "recall", "precision", "prevalence")
ESTIMANDS = (None, "accuracy", *OF_CLASSES)
GROUPS = (None, "site")
WITH_UNSURE = (False, True)


def shares_no_class(answers, labels):
    """Whether no label of this kind is ever an answer of this vocabulary; 1 is True, 0 is False."""
    numeric = answers in ("digits", "zero-one", "truth")
    return labels != "classes" and not (labels == "right-wrong" and numeric)


def is_compared(predicted, estimand):
    """Whether the question compares labels with answers whatever they are."""
    return predicted == "answer" or estimand in ("accuracy", *OF_CLASSES)


# Every reason for which a question is refused, reviewed one by one.
REASONS = {
    "the estimand compares labels with answers; 'none' says that they are not compared": lambda q: (
        q["estimand"] in ("accuracy", *OF_CLASSES) and q["predicted"] == "none"
    ),
    "labels are compared with answers, and none of them is an answer": lambda q: (
        is_compared(q["predicted"], q["estimand"])
        and q["predicted"] != "none"
        and shares_no_class(q["answers"], q["labels"])
    ),
    "0 and 1 may be classes, or mean wrong and right: the model answers these and others": lambda q: (
        q["labels"] == "right-wrong"
        and q["answers"] == "digits"
        and q["predicted"] is None
        and q["estimand"] in (None, "accuracy")
    ),
    "balanced accuracy by group needs two classes": lambda q: (
        q["estimand"] == "balanced_accuracy"
        and q["by"] is not None
        and q["answers"] in ("words", "digits")
        and (q["labels"] == "classes" or not shares_no_class(q["answers"], q["labels"]))
        and q["predicted"] != "none"
    ),
    "names of classes, the model's own, cannot be averaged": lambda q: (
        q["labels"] == "classes"
        and q["predicted"] == "none"
        and q["answers"] in ("words", "digits", "yes-no")
    ),
}


@pytest.fixture(scope="module", params=ANSWERS)
def world(request, tmp_path_factory):
    """A drawn sample, the whole table with labels in its rows, and the labels in files."""
    folder = tmp_path_factory.mktemp(request.param)
    draws = np.random.default_rng(23)
    classes = np.array(ANSWERS[request.param])
    truth = draws.choice(classes, N)
    answer = np.where(draws.random(N) < 0.8, truth, draws.choice(classes, N))
    units = {
        "id": np.array([f"u{row}" for row in range(N)]),
        "answer": answer,
        "site": draws.choice(SITES, N),
        "score": draws.uniform(0.5, 1.0, N).round(4),
    }
    population = stratal.Population.from_arrays(
        ids=units["id"],
        proxy={"score": units["score"]},
        groups={name: units[name] for name in ("answer", "site")},
        predicted="answer",
    )
    sample = stratal.designs.SimpleRandom(budget=BUDGET).draw(population, seed=0)
    sample.write(folder / "sample.parquet")
    drawn = np.isin(units["id"], sample.ids)
    unsure = drawn & (draws.random(N) < 0.15)
    for name, write in LABELS.items():
        values = np.array([write(*pair) for pair in zip(truth, truth == answer, strict=True)])
        for with_unsure in WITH_UNSURE:
            labels = np.where(unsure, UNSURE, values) if with_unsure else values
            write_csv(file_of(folder, name, with_unsure), {"id": units["id"], "label": labels}, drawn)
            table = {**units, "label": np.where(drawn, labels, "")}
            write_csv(folder / f"table-{name}-{with_unsure}.csv", table, np.ones(N, dtype=bool))
    return request.param, folder, classes, truth, answer, drawn, unsure


def write_csv(path, columns, kept):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(np.column_stack(list(columns.values()))[kept].tolist())


def file_of(folder, labels, with_unsure):
    return folder / f"{labels}-{with_unsure}.csv"


def text_of(estimand, classes):
    """The estimand as it is typed, of the last class where it needs one."""
    return f"{estimand}:{classes[-1]}" if estimand in OF_ONE_CLASS else estimand


def by_counting(estimand, labels, truth, answer, classes):
    """The value from a simple random sample."""
    right = truth == answer
    if labels == "ratings":
        return 4 + np.mean(right)
    last = classes[-1]
    hits = np.sum((truth == last) & (answer == last))
    chance = sum(np.mean(truth == name) * np.mean(answer == name) for name in classes)
    values = {
        "f1": 2 * hits / (np.sum(truth == last) + np.sum(answer == last)),
        "recall": hits / np.sum(truth == last),
        "precision": hits / np.sum(answer == last),
        "prevalence": np.mean(truth == last),
        "kappa": (np.mean(right) - chance) / (1 - chance),
        "balanced_accuracy": np.mean([np.mean(right[truth == name]) for name in classes]),
    }
    return values.get(estimand, np.mean(right))


QUESTIONS = list(itertools.product(LABELS, WITH_UNSURE, PREDICTED, ESTIMANDS, GROUPS))[:: sized(19, 1)]


def options_of(question, classes):
    """The keywords of `stratal.evaluate` and the words of the command."""
    _, with_unsure, predicted, estimand, by = question
    options = {"predicted": predicted, "estimand": text_of(estimand, classes), "by": by}
    if with_unsure:
        options["mapping"] = {UNSURE: None}
    if estimand in (None, "accuracy"):
        options["estimator"] = "horvitz-thompson"
    options = {name: value for name, value in options.items() if value is not None}
    words = []
    for name, value in options.items():
        words += ["--map", f"{UNSURE}="] if name == "mapping" else [f"--{name}", value]
    return options, words


# Notes on where labels are from differ: a table says that its labels are taken as random.
NOTES_OF_SOURCE = ("rows with a label are taken", "label")


# What a table states besides, and what names its source.
UNLIKE = ("notes", "label_values", "roles")


def flat(described, path=""):
    """Yield the entries of a result by their paths; estimates and tables, without notes."""
    if isinstance(described, dict):
        for name, entry in described.items():
            if name not in (*UNLIKE, "effective_sample_size_interval", "more_labels"):
                yield from flat(entry, f"{path}.{name}")
    elif isinstance(described, list | tuple):
        for place, entry in enumerate(described):
            yield from flat(entry, f"{path}.{place}")
    else:
        yield path, described


def assert_alike(found, expected, question):
    found, expected = dict(flat(found)), dict(flat(expected))
    assert set(found) == set(expected), question
    for path, entry in expected.items():
        close = pytest.approx(entry, rel=1e-9) if isinstance(entry, float) else entry
        assert found[path] == close, (question, path)


def outcome_of(*evidence, **options):
    """Return the result as JSON has it, or the refusal."""
    try:
        return json.loads(json.dumps(stratal.evaluate(*evidence, **options).to_dict())), None
    except StratalError as error:
        return None, str(error)


def test_samples_and_tables_agree_by_command_and_in_python(world, run_command):
    vocabulary, folder, classes, truth, answer, drawn, unsure = world
    sample = stratal.Sample.read(folder / "sample.parquet")
    answered = 0
    for question in QUESTIONS:
        labels, with_unsure, predicted, estimand, by = question
        options, words = options_of(question, classes)
        file = file_of(folder, labels, with_unsure)
        table = folder / f"table-{labels}-{with_unsure}.csv"
        parts = {"labels": labels, "answers": vocabulary, "predicted": predicted, "estimand": estimand}
        parts["by"] = by
        reasons = [reason for reason, applies in REASONS.items() if applies(parts)]

        of_sample, refusal = outcome_of(sample, [file], **options)
        assert (refusal is None) == (not reasons), (question, refusal, reasons)

        given = {"predicted": "answer"} if predicted is None and estimand in OF_CLASSES else {}
        of_table, table_refusal = outcome_of(table, proxy="score", **{**given, **options})
        done = run_command("estimate", folder / "sample.parquet", file, *words, "--json")
        assert (done.status == 0) == (refusal is None), (question, done.message)
        if refusal is not None:
            continue

        answered += 1
        assert json.loads(done.stdout) == of_sample, question
        if predicted != "none" and "predicted" in {**given, **options}:
            assert table_refusal is None, question
            assert_alike(of_table, of_sample, question)
        kept = drawn & ~unsure if with_unsure else drawn
        # Labels of 0 and 1 are classes of a model that answers 0 and 1, whatever they were meant to be.
        as_meant = labels != "right-wrong" or predicted == "none" or vocabulary in ("words", "yes-no")
        if as_meant and not (labels == "classes" and predicted == "none"):
            expected = by_counting(estimand, labels, truth[kept], answer[kept], classes)
            assert of_sample["estimate"] == pytest.approx(expected), question
            if estimand in (None, "accuracy"):
                assert of_sample["n"] == np.count_nonzero(kept), question
    assert answered > len(QUESTIONS) / 6


def test_at_least_500_questions_give_numbers_and_no_reason_is_unused():
    names = ("answers", "labels", "with_unsure", "predicted", "estimand", "by")
    questions = [
        dict(zip(names, question, strict=True))
        for question in itertools.product(ANSWERS, LABELS, WITH_UNSURE, PREDICTED, ESTIMANDS, GROUPS)
    ]

    refused = [[reason for reason, applies in REASONS.items() if applies(one)] for one in questions]

    assert sum(not reasons for reasons in refused) >= 500
    assert {reason for reasons in refused for reason in reasons} == set(REASONS)


STUDIES = {
    "classes": lambda classes: StudyQuestion.of_classes("Which?", list(classes)),
    "pass-fail": lambda classes: StudyQuestion.of_choices("Right?", ["pass", "fail"]),
}


@pytest.mark.parametrize("labels", STUDIES)
def test_a_study_gives_what_its_sample_and_labels_give(world, run_command, tmp_path, labels):
    _, folder, classes, *_ = world
    sample = stratal.Sample.read(folder / "sample.parquet")
    file = file_of(folder, labels, False)
    create_study(tmp_path / "study", sample, STUDIES[labels](classes), annotators=["ann"]).close()
    assert run_command("study", "import", tmp_path / "study", file, "--annotator", "ann").status == 0
    compared = "answer" if labels == "classes" else "none"
    for estimand, by in itertools.product((None, "f1", "kappa"), GROUPS):
        options, words = options_of((labels, False, None, estimand, by), classes)
        of_study, refusal = outcome_of(tmp_path / "study", **options)
        question = (labels, estimand, by)
        declared = replace(sample, question=sample.question.refine(predicted=compared))
        of_sample, expected_refusal = outcome_of(declared, [file], **options)
        done = run_command("estimate", tmp_path / "study", *words, "--json")
        assert (refusal is None) == (expected_refusal is None), (question, refusal, expected_refusal)
        assert (done.status == 0) == (refusal is None), (question, done.message)
        if refusal is None:
            assert json.loads(done.stdout) == of_study, question
            assert_alike(of_study, of_sample, question)
    with open_study(tmp_path / "study", read_only=True) as study:
        plain = stratal.study.estimate_study(study, estimator="horvitz-thompson")
    found = stratal.evaluate(tmp_path / "study", estimator="horvitz-thompson").estimate
    assert plain.value == found.value


def test_a_process_prints_what_the_command_prints_here(world, run_command):
    """Four questions of each vocabulary, 20 in all."""
    vocabulary, folder, classes, *_ = world
    questions = [("classes", False, "answer", estimand, by) for estimand in ESTIMANDS for by in GROUPS]
    first = list(ANSWERS).index(vocabulary)
    for question in questions[first :: len(ANSWERS)][: sized(1, 4)]:
        _, words = options_of(question, classes)
        typed = ["estimate", folder / "sample.parquet", file_of(folder, "classes", False), *words, "--json"]
        line = [sys.executable, "-m", "stratal", *map(str, typed)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        here = run_command(*typed)

        assert done.returncode == here.status, question
        assert done.stdout == here.stdout, question


def test_choices_that_the_model_answers_too_are_ambiguous(world, tmp_path):
    _, folder, classes, *_ = world
    sample = stratal.Sample.read(folder / "sample.parquet")
    question = StudyQuestion.of_choices("Which?", list(classes))
    if not question.is_numeric:
        create_study(tmp_path / "study", sample, question, annotators=["ann"]).close()
        return
    with pytest.raises(InputError) as error:
        create_study(tmp_path / "study", sample, question, annotators=["ann"])
    assert "--classes" in str(error.value.action)
    assert not (tmp_path / "study").exists()
