"""The command, Python and the report answer the same question: equal numbers, or equal refusals."""

import csv
import itertools
import json

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import StratalError

N, BUDGET = 240, 120
SITES = ("north", "south", "west")

# How answers and labels of two or three classes are written.
ANSWERS = {
    "words": ("cat", "dog", "cow"),
    "digits": ("0", "1", "2"),
    "zero-one": ("0", "1"),
    "truth": ("False", "True"),
    "yes-no": ("no", "yes"),
}
LABELS = {
    "classes": lambda truth, right: truth,
    "right-wrong": lambda truth, right: str(int(right)),
    "pass-fail": lambda truth, right: "pass" if right else "fail",
    "ratings": lambda truth, right: str(4 + int(right)),
}
PREDICTED = (None, "answer", "none")
RATES = ("f1", "recall", "precision", "prevalence")
# Estimands with a choice of estimators.
MEANS = (None, "mean", "accuracy")
ESTIMANDS = (*MEANS, *RATES, "kappa", "balanced_accuracy")
GROUPS = (None, "site")


@pytest.fixture(scope="module", params=ANSWERS)
def world(request, tmp_path_factory):
    """A drawn sample whose answers are written in one vocabulary, and its labels in several."""
    folder = tmp_path_factory.mktemp(request.param)
    classes = np.array(ANSWERS[request.param])
    draws = np.random.default_rng(17)
    truth = draws.choice(classes, N)
    answer = np.where(draws.random(N) < 0.8, truth, draws.choice(classes, N))
    site = draws.choice(SITES, N)
    population = stratal.Population.from_arrays(
        ids=[f"u{row}" for row in range(N)],
        proxy=draws.uniform(0.5, 1.0, N),
        groups={"answer": answer.tolist(), "site": site.tolist()},
        predicted="answer",
    )
    sample = stratal.designs.SimpleRandom(budget=BUDGET).draw(population, seed=3)
    sample.write(folder / "sample.parquet")
    rows = [int(unit[1:]) for unit in sample.ids.tolist()]
    for name, write in LABELS.items():
        values = [write(truth[row], truth[row] == answer[row]) for row in rows]
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([["id", "label"], *zip(sample.ids.tolist(), values, strict=True)])
    return folder, classes, truth[rows], answer[rows]


def spec(estimand, classes):
    """The text of an estimand, for the last class where it needs one."""
    if estimand in RATES:
        return f"{estimand}:{classes[-1]}"
    return estimand


def reference(estimand, labels, truth, answer, classes):
    """The value from a simple random sample, by counting."""
    right, last = truth == answer, classes[-1]
    if labels == "ratings":
        return 4 + np.mean(right)
    hits = np.sum((truth == last) & (answer == last))
    found, given = np.sum(truth == last), np.sum(answer == last)
    if estimand == "kappa":
        chance = sum(np.mean(truth == name) * np.mean(answer == name) for name in classes)
        return (np.mean(right) - chance) / (1 - chance)
    values = {
        "f1": 2 * hits / (found + given),
        "recall": hits / found,
        "precision": hits / given,
        "prevalence": found / len(truth),
        "balanced_accuracy": np.mean([np.mean(right[truth == name]) for name in classes]),
    }
    return values.get(estimand, np.mean(right))


def in_python(folder, labels, predicted, estimand, by):
    """What Python returns: the parts that every entry point shows, or the refusal."""
    sample = stratal.Sample.read(folder / "sample.parquet")
    read = stratal.read_labels(folder / f"{labels}.csv")
    options = {} if predicted is None else {"predicted": False if predicted == "none" else predicted}
    options |= {"estimator": "horvitz-thompson"} if estimand in MEANS else {}
    try:
        overall = stratal.estimate(sample, read, estimand=estimand, **options)
        rows = [overall.to_dict()]
        if by is not None:
            table = stratal.estimate(sample, read, estimand=estimand, by=by, **options)
            rows += table.rows()
    except StratalError as error:
        return type(error), None
    return None, rows


def by_command(run, folder, labels, predicted, estimand, by, *report):
    """What a command prints as JSON, or the refusal."""
    words = [report[0] if report else "estimate", folder / "sample.parquet", folder / f"{labels}.csv"]
    for name, value in (("predicted", predicted), ("estimand", estimand), ("by", by)):
        words += [] if value is None else [f"--{name}", value]
    words += ["--estimator", "horvitz-thompson"] if estimand in MEANS else []
    done = run(*words, "--json", *report[1:])
    if done.status:
        return done.message, None
    printed = json.loads(done.stdout)
    printed = printed["estimate"] if report else printed
    return None, [printed, *printed.get("domains", [])]


# What every entry point shows of an estimate.
PLAIN = ("estimate", "standard_error", "confidence_interval", "n")


# All 1,080 questions in the slow tier; every fifth, spread over all dimensions, in the fast one.
QUESTIONS = list(itertools.product(LABELS, PREDICTED, ESTIMANDS, GROUPS))[:: sized(5, 1)]


def test_every_entry_point_gives_the_same_numbers_or_refuses(world, run_command):
    folder, classes, truth, answer = world
    answered, refused = 0, 0
    for labels, predicted, estimand, by in QUESTIONS:
        question = (labels, predicted, spec(estimand, classes), by)
        refusal, ours = in_python(folder, *question)
        message, printed = by_command(run_command, folder, *question)
        assert (refusal is None) == (message is None), question
        if ours is None:
            refused += 1
            continue
        answered += 1
        assert len(ours) == len(printed), question
        for own, theirs in zip(ours, printed, strict=True):
            for name in PLAIN:
                assert own[name] == theirs[name], (question, name)
        # Labels of 0 and 1 are classes of a model that answers 0 and 1, whatever they were meant to be.
        meant = labels != "right-wrong" or predicted == "none"
        if meant and not (labels == "classes" and predicted == "none"):
            expected = reference(estimand, labels, truth, answer, classes)
            assert ours[0]["estimate"] == pytest.approx(expected), question
    assert answered > len(QUESTIONS) / 10
    assert refused > len(QUESTIONS) / 10


@pytest.mark.parametrize(
    ("labels", "predicted", "estimand"),
    [
        ("classes", None, None),
        ("classes", "answer", "f1"),
        ("right-wrong", "none", None),
        ("ratings", None, None),
    ],
)
def test_a_report_has_the_numbers_of_the_estimate(world, run_command, tmp_path, labels, predicted, estimand):
    folder, classes, *_ = world
    question = (labels, predicted, spec(estimand, classes), None)
    _, printed = by_command(run_command, folder, *question)
    _, reported = by_command(run_command, folder, *question, "report", "--output", tmp_path / "report.html")

    assert printed is not None
    assert [reported[0][name] for name in (*PLAIN, "notes")] == [
        printed[0][name] for name in (*PLAIN, "notes")
    ]
