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
QUESTIONS = list(itertools.product(LABELS, PREDICTED, ESTIMANDS, GROUPS))[:: sized(11, 1)]


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
    if "roles" in printed[0]:
        reported[0]["notes"].remove(printed[0]["roles"]["sentence"])
    assert [reported[0][name] for name in (*PLAIN, "notes")] == [
        printed[0][name] for name in (*PLAIN, "notes")
    ]


# ---- labels and answers that are sets of tags

TAGS = ("billing", "login", "refund")
# How sets are written in the files of answers and of labels, and what declares it.
FORMS = {"json": None, "text": ";"}
DESIGNS = ("simple-random", "stratified", "elsewhere")
OF_SETS = (
    *(None, "accuracy", "mean_jaccard", "hamming_loss", "kappa"),
    *("f1:refund", "recall:refund", "precision:refund"),
    *("average:f1", "average:recall", "average:f1,average=micro", "average:precision,average=micro"),
)
SETS = list(itertools.product(DESIGNS, OF_SETS, GROUPS))[:: sized(7, 1)]


def written(row, form):
    """A set of tags as a cell, in the order of its tags or against it."""
    tags = [tag for tag, there in zip(TAGS, row, strict=True) if there]
    tags = tags[::-1] if sum(row) > 1 else tags
    return json.dumps(tags) if form == "json" else ";".join(tags) or "[]"


@pytest.fixture(scope="module", params=FORMS)
def sets(request, tmp_path_factory):
    """Samples whose answers are sets of tags, and the files of their labels."""
    form, folder = request.param, tmp_path_factory.mktemp(request.param)
    draws = np.random.default_rng(11)
    true = draws.random((N, len(TAGS))) < 0.4
    answer = np.where(draws.random(true.shape) < 0.85, true, ~true)
    site = draws.choice(SITES, N)
    population = stratal.Population.from_arrays(
        ids=[f"u{row}" for row in range(N)],
        proxy=draws.uniform(0.5, 1.0, N),
        groups={"answer": [written(row, form) for row in answer], "site": site.tolist()},
        predicted="answer",
        tags=FORMS[form],
    )
    plan = stratal.plan(population, budget=BUDGET, by="site")
    samples = {
        "simple-random": stratal.designs.SimpleRandom(budget=BUDGET).draw(population, seed=3),
        "stratified": plan.draw(seed=3),
    }
    rows = {}
    for name, sample in samples.items():
        sample.write(folder / f"{name}.parquet")
        rows[name] = [int(unit[1:]) for unit in sample.ids.tolist()]
        lines = [[unit, written(true[row], form)] for unit, row in zip(sample.ids, rows[name], strict=True)]
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([["id", "label"], *lines])
    rows["elsewhere"] = rows["simple-random"]
    with (folder / "elsewhere.csv").open("w", newline="", encoding="utf-8") as stream:
        lines = [
            [f"u{row}", written(true[row], form), written(answer[row], form), site[row]]
            for row in rows["elsewhere"]
        ]
        csv.writer(stream).writerows([["id", "label", "answer", "site"], *lines])
    return folder, FORMS[form], true, answer, rows


def value_of_sets(estimand, true, answer):
    """The value of an estimand over units with these tags (n, T), by counting."""
    name, _, rest = (estimand or "accuracy").partition(":")
    hits, union = true & answer, true | answer
    if name == "accuracy":
        return np.mean((true == answer).all(axis=1))
    if name == "hamming_loss":
        return np.mean(true != answer)
    if name == "mean_jaccard":
        return np.mean([h.sum() / u.sum() if u.any() else 1.0 for h, u in zip(hits, union, strict=True)])
    name, _, average = rest.partition(",average=") if name == "average" else (name, "", "")
    column = TAGS.index(rest) if rest in TAGS else slice(None)
    axis = None if average == "micro" or rest in TAGS else 0
    h, t, a = (np.sum(table[:, column], axis=axis) for table in (hits, true, answer))
    return np.mean({"f1": 2 * h / (t + a), "recall": h / t, "precision": h / a}[name])


def sets_in_python(folder, separator, design, estimand, by):
    """What Python returns for labels that are sets: the parts that every entry point shows."""
    options = {"estimand": estimand}
    if design == "elsewhere":
        groups = {"groups": [by]} if by is not None else {}
        sample, labels = stratal.Sample.from_labelled(
            folder / "elsewhere.csv",
            value="label",
            predicted="answer",
            tags=separator,
            population_size=N,
            **groups,
        )
    else:
        sample = stratal.Sample.read(folder / f"{design}.parquet")
        labels = stratal.read_labels(folder / f"{design}.csv")
    rows = [stratal.estimate(sample, labels, **options).to_dict()]
    if by is not None:
        rows += stratal.estimate(sample, labels, by=by, **options).rows()
    return rows


def sets_by_command(run, folder, separator, design, estimand, by, command="estimate", *more):
    """What a command prints as JSON for labels that are sets."""
    words = [command, folder / f"{design}.parquet", folder / f"{design}.csv"]
    if design == "elsewhere":
        words = [command, folder / "elsewhere.csv", "--population-size", N]
        words += ["--predicted", "answer"]
        words += [] if separator is None else ["--tags", separator]
    for name, value in (("estimand", estimand), ("by", by)):
        words += [] if value is None else [f"--{name}", value]
    done = run(*words, "--json", *more)
    assert done.status == 0, done.message
    printed = json.loads(done.stdout)
    printed = printed["estimate"] if command == "report" else printed
    return [printed, *printed.get("domains", [])]


def test_sets_of_tags_have_the_same_numbers_at_every_entry_point(sets, run_command):
    folder, separator, true, answer, rows = sets
    for design, estimand, by in SETS:
        question = (design, estimand, by)
        ours = sets_in_python(folder, separator, *question)
        printed = sets_by_command(run_command, folder, separator, *question)
        assert len(ours) == len(printed), question
        for own, theirs in zip(ours, printed, strict=True):
            for name in PLAIN:
                assert own[name] == theirs[name], (question, name)
        if estimand != "kappa" and design != "stratified":
            drawn = rows[design]
            expected = value_of_sets(estimand, true[drawn], answer[drawn])
            # The proxy moves a mean of right answers by no more than its noise.
            wide = 0.02 if estimand in (None, "accuracy") else 1e-12
            assert ours[0]["estimate"] == pytest.approx(expected, abs=wide), question


@pytest.mark.parametrize("estimand", [None, "average:f1,average=micro", "mean_jaccard", "recall:refund"])
@pytest.mark.parametrize("design", ["simple-random", "elsewhere"])
def test_a_report_of_sets_has_the_numbers_of_the_estimate(sets, run_command, tmp_path, design, estimand):
    folder, separator, *_ = sets
    question = (folder, separator, design, estimand, None)
    printed = sets_by_command(run_command, *question)
    reported = sets_by_command(run_command, *question, "report", "--output", tmp_path / "report.html")

    if "roles" in printed[0]:
        reported[0]["notes"].remove(printed[0]["roles"]["sentence"])
    assert [reported[0][name] for name in (*PLAIN, "notes")] == [
        printed[0][name] for name in (*PLAIN, "notes")
    ]
