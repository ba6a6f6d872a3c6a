"""`stratal estimate` and `doctor` on a table with labels: what the lines of the answer say."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from tests.e2e.pasted import next_line, write

import stratal
from stratal.errors import InputError

ROWS = 400


def judged_rows(labels):
    """Rows of a score, a judge's verdict and a person's label of the first `labels` of them."""
    rng = np.random.default_rng(3)
    for row in range(ROWS):
        score = rng.beta(5, 2)
        verdict = "pass" if rng.random() < score else "fail"
        yield (
            row,
            round(score, 3),
            verdict,
            ("pass" if rng.random() < score else "fail") if row < labels else "",
        )


def first_lines(text):
    return text.split("\n\n", maxsplit=1)[0].splitlines()


@pytest.mark.parametrize(("labels", "is_used"), [(40, False), (120, True)])
def test_a_proxy_that_is_not_used_is_named_with_the_reason(run_command, tmp_path, labels, is_used):
    file = tmp_path / "table.csv"
    write(file, ["id", "confidence", "label"], [[i, s, y] for i, s, _, y in judged_rows(labels)])

    (roles,) = [
        line for line in first_lines(run_command("estimate", file).stdout) if "labels: `label`" in line
    ]

    assert roles.startswith(
        "Proxy: `confidence`; " if is_used else "Proxy: `confidence` (not used: fewer than 50 labels)"
    )
    # One more option, and the proxy is used.
    assert "not used" not in run_command("estimate", file, "--estimator", "ppi++").stdout


@pytest.mark.parametrize(
    ("labels", "scores", "reason"),
    [
        ([1] * 316 + [None] * 84, "different", "all labels are equal"),
        ([0, 1] * 158 + [None] * 84, "equal", "all its values are equal"),
        ([0, 1] * 200, "different", "every unit has a label"),
    ],
)
def test_a_proxy_of_many_labels_is_not_unused_for_lack_of_labels(labels, scores, reason):
    """The reason was "fewer than 50 labels" beside 316 of them."""
    random = np.random.default_rng(0)
    score = random.random(400) if scores == "different" else np.full(400, 0.5)
    table = {"id": [str(number) for number in range(400)], "label": labels, "score": score.tolist()}
    result = stratal.evaluate(table, value="label", proxy=["score"])

    assert f"`score` (not used: {reason})" in result.to_dict()["roles"]["sentence"]


def test_labels_that_do_not_vary_are_worth_no_number_of_random_labels():
    """316 labels of 1 were "as precise as about 0 random labels"."""
    score = np.random.default_rng(3).random(400)
    table = {"id": [str(number) for number in range(400)], "label": [1] * 316 + [None] * 84}
    result = stratal.evaluate(table | {"score": score.tolist()}, value="label", proxy=["score"])

    assert "random labels" not in str(result)


def test_a_judge_that_corrects_nothing_is_named_with_the_reason(run_command, tmp_path):
    file = tmp_path / "table.csv"
    write(file, ["id", "verdict", "human"], [[i, v, y] for i, _, v, y in judged_rows(40)])

    answer = run_command("estimate", file).stdout

    assert "`verdict` (pass/fail), which does not correct the estimate (fewer than 50 labels)" in answer
    assert "Labels only" in answer


def test_clusters_are_counted_in_the_reason(run_command, tmp_path):
    file = tmp_path / "table.csv"
    rows = [[f"q{i // 4}", s, y == "pass" if y else ""] for i, s, _, y in judged_rows(48)]
    write(file, ["question_id", "score", "label"], rows)

    assert "`score` (not used: fewer than 20 clusters)" in run_command("estimate", file).stdout


@pytest.mark.parametrize(
    "options",
    ["", "--judge verdict", "--by site", "--judge verdict --require value>=.5", "--compare first,second"],
)
def test_details_contain_the_answer(run_command, tmp_path, options):
    file = tmp_path / "table.csv"
    rows = [[i, s, v, y, "ns"[i % 2], y, v if y else ""] for i, s, v, y in judged_rows(120)]
    write(file, ["id", "score", "verdict", "human", "site", "first", "second"], rows)
    options = options.split() or ["--value", "human", "--judge", "none"]
    if "--compare" not in options:
        options += ["--value", "human"]

    answer = run_command("estimate", file, *options)
    details = run_command("estimate", file, *options, "--details")

    assert answer.status == details.status == 0
    assert set(first_lines(answer.stdout)) <= set(details.stdout.splitlines())
    assert len(details.stdout) > len(answer.stdout)
    assert "Standard error" in details.stdout


def test_details_of_several_estimands_have_the_roles(run_command, tmp_path):
    file = tmp_path / "table.csv"
    write(
        file,
        ["id", "score", "label"],
        [[i, s, int(y == "pass") if y else ""] for i, s, _, y in judged_rows(120)],
    )
    estimands = ["--estimand", "mean", "--estimand", "quantile:.5"]

    details = run_command("estimate", file, *estimands, "--details").stdout

    assert "labels: `label` in 120 of 400 rows, taken as a random sample" in details


@pytest.fixture
def classes(tmp_path):
    """A file of two classes, the model's answers and the probability of one class; and its Brier score."""
    rng = np.random.default_rng(8)
    rows = []
    errors = []
    for row in range(ROWS):
        probability = round(rng.random(), 3)
        label = "spam" if rng.random() < probability else "ham"
        rows.append([row, "spam" if probability > 0.5 else "ham", probability, label if row < 150 else ""])
        errors += [(probability - (label == "spam")) ** 2] if row < 150 else []
    file = tmp_path / "classes.csv"
    write(file, ["id", "prediction", "spam_probability", "label"], rows)
    return file, np.mean(errors)


def test_the_brier_score_of_classes_is_of_the_named_class(run_command, classes):
    file, brier = classes

    unnamed = run_command("estimate", file, "--metric", "fpr,brier")
    named = run_command("estimate", file, "--metric", "fpr,brier", "--class", "spam")

    assert unnamed.status == 1
    assert "--class CLASS" in unnamed.message
    (row,) = [line for line in named.stdout.splitlines() if line.lstrip().startswith("brier")]
    assert row.split()[:3] == ["brier", "spam", f"{brier:.4f}"]


def test_the_brier_score_of_a_class_is_not_that_of_a_confidence(run_command, tmp_path):
    rng = np.random.default_rng(8)
    probability = rng.random(ROWS).round(3)
    labels = np.where(rng.random(ROWS) < probability, "spam", "ham")
    answers = np.where(probability > 0.5, "spam", "ham")
    file = tmp_path / "table.csv"
    confidence = np.maximum(probability, 1 - probability).round(3)
    rows = zip(range(ROWS), answers, confidence, labels, strict=True)
    write(file, ["id", "prediction", "confidence", "label"], rows)

    refused = run_command("estimate", file, "--metric", "brier", "--class", "spam")

    assert refused.status == 1
    assert "'confidence' is not the probability of the class 'spam'" in refused.message
    assert "--predicts confidence=class:spam" in refused.message


def test_the_columns_of_a_softmax_keep_the_meanings_that_are_declared(run_command, tmp_path):
    file = tmp_path / "two.csv"
    rows = [f"{i},{i % 10 / 10},{1 - i % 10 / 10:.1f},{'cat' if i % 10 > 5 else 'dog'}" for i in range(60)]
    file.write_text("\n".join(["id,p_cat,p_dog,answer", *rows]))
    declared = ("--proxy", "p_cat,p_dog", "--predicts", "p_cat=class:cat,p_dog=class:dog")

    drawn = run_command(
        "draw", file, *declared, "--predicted", "answer", "--budget", "60", "--output", tmp_path / "a"
    )

    assert drawn.status == 0
    sample = stratal.Sample.read(tmp_path / "a" / "sample.parquet")
    assert sample.proxy_names == ("p_cat", "p_dog")
    labels = dict.fromkeys(sample.ids.tolist(), "cat")
    found = stratal.evaluate(sample, labels, metric="brier", classes="cat").to_dict()["metrics"]
    assert found[0]["estimate"] == pytest.approx(np.mean([(i % 10 / 10 - 1) ** 2 for i in range(60)]))


def test_the_brier_scores_of_declared_classes_are_those_of_the_named_class(run_command, tmp_path):
    rows = []
    for i in range(60):
        label, answer = "cat" if i % 3 else "dog", "cat" if i % 2 else "dog"
        rows.append(f"{i},{i % 10 / 10},{1 - i % 10 / 10},{label},{answer}")
    file = tmp_path / "two.csv"
    file.write_text("\n".join(["id,p_cat,p_dog,label,answer", *rows]))
    declared = ("--proxy", "p_cat,p_dog", "--predicts", "p_cat=class:cat,p_dog=class:dog")
    options = ("estimate", file, "--predicted", "answer", *declared, "--metric", "brier", "--json")

    for classes, expected in ((), ["cat", "dog"]), (("--class", "cat"), ["cat"]):
        done = run_command(*options, *classes)
        metrics = json.loads(done.stdout)["metrics"]
        assert [row["class"] for row in metrics] == expected


def test_the_doctor_states_how_rows_were_labelled(run_command, tmp_path):
    file = tmp_path / "table.csv"
    rows = [[f"q{i // 4}", s, y == "pass" if y else ""] for i, s, _, y in judged_rows(120)]
    write(file, ["question_id", "score", "label"], rows)

    inspected = run_command("doctor", file).stdout
    (roles,) = [line for line in inspected.splitlines() if "labels: `label`" in line]

    assert roles.endswith("taken as a random sample of whole groups (clusters).")
    assert roles in run_command(*next_line(inspected).split()).stdout


def test_metrics_in_python_are_separated_as_in_the_command(classes):
    file, _ = classes

    one = stratal.evaluate(file, metric="fpr,fnr", classes="spam")
    two = stratal.evaluate(file, metric=["fpr", "fnr"], classes="spam")

    assert one.to_dict()["metrics"] == two.to_dict()["metrics"]
    assert stratal.estimate_from(file, metric="fpr,fnr", classes="spam").to_dict() == one.to_dict()


@pytest.mark.parametrize(
    ("metric", "advice"),
    [
        ("fprr", "allowed: 'fpr'"),
        ("recal", "'recall'"),
        ("mae", "It is an estimand: estimand='mae'"),
    ],
)
def test_an_unknown_metric_names_similar_ones(classes, metric, advice):
    with pytest.raises(InputError) as refused:
        stratal.evaluate(classes[0], metric=metric)

    assert advice in str(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        {"estimand": "auc:pass,score=nothing"},
        {"metric": "f1"},
        {"metric": "f1", "estimand": "recall:pass"},
        {"look": 1},
    ],
)
def test_errors_about_a_table_do_not_speak_of_a_sample(tmp_path, options):
    file = tmp_path / "table.csv"
    write(file, ["id", "score", "verdict", "label"], judged_rows(120))

    with pytest.raises(InputError) as refused:
        stratal.evaluate(file, **options)

    assert "this sample" not in str(refused.value)
    assert "Draw again" not in str(refused.value)


def test_names_in_one_text_are_to_be_a_list(tmp_path):
    file = tmp_path / "table.csv"
    write(file, ["id", "score", "verdict", "label"], judged_rows(120))

    with pytest.raises(InputError, match=r"give a list: \['score', 'verdict'\]"):
        stratal.evaluate(file, judge="score,verdict")


def test_the_probability_of_a_class_is_named_with_its_option(run_command, tmp_path):
    rng = np.random.default_rng(9)
    rows = []
    for row in range(ROWS):
        answer = "spam" if row % 2 else "ham"
        other = "ham" if row % 2 else "spam"
        is_right = rng.random() < (0.6 if row % 2 else 0.95)
        label = answer if is_right else other
        rows.append([row, answer, 0.9 if row % 2 else 0.1, label if row < 150 else ""])
    file = tmp_path / "classes.csv"
    write(file, ["id", "prediction", "spam_probability", "label"], rows)

    (option,) = re.findall(r"--predicts (\S+=class:)CLASS", run_command("estimate", file).stdout)

    assert "contradict" not in run_command("estimate", file, "--predicts", f"{option}spam").stdout


def labelled_lines(labels=60):
    """Rows of an id, a score and a label of the first `labels` of them."""
    return [[i, s, y] for i, s, _, y in judged_rows(labels)]


def test_two_columns_of_labels_with_one_name_are_refused_and_not_called_empty(run_command, tmp_path):
    file = tmp_path / "table.csv"
    write(file, ["id", "score", "label", "label"], [[*row, row[2]] for row in labelled_lines(ROWS)])

    failed = run_command("estimate", file)
    inspected = run_command("doctor", file).stdout

    assert "2 columns are called 'label'" in failed.message
    assert "2 columns are called 'label' and are not used" in inspected
    assert "nothing is filled in" not in inspected


def test_two_scores_with_one_name_are_named_in_a_note(run_command, tmp_path):
    file = tmp_path / "table.csv"
    write(file, ["id", "score", "score", "label"], [[i, s, s, y] for i, s, y in labelled_lines(ROWS // 2)])

    for command in ("estimate", "doctor"):
        printed = run_command(command, file).stdout
        assert printed.count("2 columns are called 'score' and are not used") == 1


def test_a_summary_below_the_rows_is_named_in_a_note(run_command, tmp_path):
    file = tmp_path / "table.csv"
    rows = [[i, s, {"pass": 1, "fail": 0, "": ""}[y]] for i, s, y in labelled_lines(120)]

    for last_id, is_summary in (("Mean", True), ("u17", False)):
        write(file, ["id", "score", "label"], [*rows, [last_id, 0.712, 0.725]])
        for command in ("estimate", "doctor"):
            printed = run_command(command, file).stdout
            assert ("counts as a unit; if it summarises the other rows" in printed) == is_summary


def test_objects_whose_fields_are_columns_have_no_role_of_their_own(run_command, tmp_path):
    file = tmp_path / "table.jsonl"
    lines = [
        {
            "meta": {"id": f"u{row}"},
            "judge": {"verdict": verdict, "score": score},
            "human": {"verdict": label} if label else None,
        }
        for row, score, verdict, label in judged_rows(120)
    ]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    printed = run_command("estimate", file).stdout

    assert "Judge: `judge.verdict` (pass/fail); labels: `human.verdict` in 120 of 400 rows" in printed


def test_verdicts_in_brackets_are_words_and_no_lists(run_command, tmp_path):
    file = tmp_path / "table.csv"
    words = {"pass": "[[A]]", "fail": "[[B]]", "": ""}
    rows = [[row, words[verdict], words[label]] for row, _, verdict, label in judged_rows(120)]
    write(file, ["id", "judge", "human"], rows)

    result = run_command("estimate", file, "--judge", "judge", "--map", "[[A]]=1,[[B]]=0").stdout

    assert "Judge: `judge`; labels: `human` in 120 of 400 rows" in result


def test_missing_labels_as_pandas_writes_them_as_text_can_be_declared(run_command, tmp_path):
    empty = tmp_path / "empty.csv"
    marked = tmp_path / "marked.csv"
    rows = [[i, s, {"pass": 1, "fail": 0, "": ""}[y]] for i, s, y in labelled_lines(120)]
    write(empty, ["id", "score", "label"], rows)
    write(marked, ["id", "score", "label"], [[i, s, "<NA>" if y == "" else y] for i, s, y in rows])

    failed = run_command("estimate", marked).message
    declared = json.loads(run_command("estimate", marked, "--map", "<NA>=", "--json").stdout)
    expected = json.loads(run_command("estimate", empty, "--json").stdout)

    assert "'<NA>' indicates that there is no answer" in failed
    assert declared["estimate"] == expected["estimate"]


def test_labels_in_another_case_than_the_answers_are_refused_with_the_mapping(run_command, tmp_path):
    file = tmp_path / "table.csv"
    animal = {"pass": "cat", "fail": "dog", "": ""}
    rows = [[row, animal[verdict], animal[label].title()] for row, _, verdict, label in judged_rows(120)]
    write(file, ["id", "prediction", "label"], rows)

    failed = run_command("estimate", file).message
    option = re.search(r"--map ([^\s)]+)", failed)[1]

    assert "Accuracy" in run_command("estimate", file, "--map", option).stdout
