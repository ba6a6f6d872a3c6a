"""A study of sets of tags: any number of choices, whose set is compared with the model's."""

import csv
import json

import numpy as np
import pytest
from sklearn.metrics import f1_score

import stratal
from stratal.errors import InputError
from stratal.study import StudyQuestion, create_study

TAGS = ("billing", "login", "refund")
N = 60


@pytest.fixture(scope="module")
def table():
    draws = np.random.default_rng(3)
    true = draws.random((N, 3)) < 0.4
    answer = np.where(draws.random((N, 3)) < 0.85, true, ~true)
    return true, answer


def of_row(row):
    return [tag for tag, there in zip(TAGS, row, strict=True) if there]


@pytest.fixture
def study(table, tmp_path):
    population = stratal.Population.from_arrays(
        ids=[f"u{row}" for row in range(N)],
        groups={"answer": [of_row(row) for row in table[1]]},
        predicted="answer",
    )
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)
    question = StudyQuestion.of_classes("What is it about?")
    with create_study(tmp_path / "study", sample, question, annotators=["ann"]) as made:
        yield made


def label_all(study, table):
    for _ in range(40):
        item = study.next_item("ann")
        study.submit("ann", item.id, of_row(table[0][int(item.id[1:])])[::-1])


def test_classes_of_sets_become_any_number_of_tags(study):
    question = study.form.first

    assert question.kind == "tags"
    assert [choice.name for choice in question.choices] == list(TAGS)


def test_a_study_has_the_estimate_of_its_sets(study, table):
    label_all(study, table)
    rows = [int(unit[1:]) for unit in study.sample().ids.tolist()]
    expected = f1_score(table[0][rows], table[1][rows], average="micro")

    labels = study.labels()
    estimate = stratal.estimate(study.sample(), labels, estimand="average:f1,average=micro")
    assert estimate.value == pytest.approx(expected)
    right = np.mean((table[0][rows] == table[1][rows]).all(axis=1))
    assert stratal.study.estimate_study(study).value == pytest.approx(right)


def test_an_answer_is_a_set_of_the_choices(study):
    item = study.next_item("ann")

    with pytest.raises(InputError, match="this question does not accept this answer"):
        study.submit("ann", item.id, ["other"])
    study.submit("ann", item.id, [])
    assert study.labels().answered == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('["refund", "billing"]', '["billing", "refund"]'),
        ("refund;billing", '["billing", "refund"]'),
        ("refund, billing", '["billing", "refund"]'),
        ("refund", '["refund"]'),
        ("[]", "[]"),
    ],
)
def test_tags_are_taken_as_people_write_them(study, text, kept):
    assert study.form.answer(text) == kept


def test_a_table_takes_sets_out_and_back(study, table, tmp_path, run_command):
    folder = study.folder
    study.close()
    path = tmp_path / "items.csv"
    assert run_command("study", "export", folder, "--output", path).status == 0
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["label"] = json.dumps(of_row(table[0][int(row["item_id"][1:])]))
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    done = run_command("study", "import", folder, path, "--annotator", "ann")
    assert done.status == 0, done.message
    printed = json.loads(run_command("estimate", folder, "--estimand", "average:f1", "--json").stdout)
    drawn = [int(row["item_id"][1:]) for row in rows]
    expected = f1_score(table[0][drawn], table[1][drawn], average="macro")
    assert printed["estimate"] == pytest.approx(expected)
    refused = run_command(
        "study", "export", folder, "--output", tmp_path / "tasks.json", "--to", "label-studio"
    )
    assert "cannot ask for sets of tags" in refused.message or refused.status == 2
