"""Prodigy: files in its documented format (it is not on PyPI), and damaged ones."""

from __future__ import annotations

import json

import pytest

from stratal.errors import InputError
from stratal.labels.annotation_tools import ToolQuestion, write_prodigy
from stratal.labels.label_files import read_answers


@pytest.fixture
def answered(tasks, asked, tmp_path, expected):
    """What `prodigy db-out` makes of our lines: each as it was, with hashes, the choice and who made it."""
    write_prodigy(tasks, asked, tmp_path / "tasks.jsonl")
    lines = {
        line["item_id"]: line for line in map(json.loads, (tmp_path / "tasks.jsonl").read_text().splitlines())
    }
    return [
        {
            **lines[item],
            "_input_hash": 1,
            "_task_hash": 2,
            "_view_id": "choice",
            "accept": [] if value is None else [value],
            "answer": "ignore" if value is None else "accept",
            "_timestamp": 1795255200,
            "_annotator_id": who,
        }
        for (who, item), value in expected().items()
    ]


def test_answers_come_back_whole(answered, tmp_path, expected, given):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in answered))

    found = read_answers(path)

    assert found.tool == "prodigy"
    assert given(found) == expected()
    assert found.answers[0].timestamp == "2026-11-21T10:00:00+00:00"


def test_choices_are_options(tasks, asked, tmp_path):
    write_prodigy(tasks, asked, tmp_path / "tasks.jsonl")

    first = json.loads((tmp_path / "tasks.jsonl").read_text().splitlines()[0])
    assert first["options"] == [{"id": "Pass", "text": "Pass"}, {"id": "Fail", "text": "Fail"}]


def test_a_question_without_choices_is_refused(tasks, tmp_path):
    with pytest.raises(InputError, match="Prodigy requires choices"):
        write_prodigy(
            tasks, ToolQuestion(text="What?", choices=(), allows_free_text=True), tmp_path / "tasks.jsonl"
        )


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d[1].pop("item_id"), "line 2 has no 'item_id'"),
        (lambda d: d[1].update(answer="maybe"), "line 2: unknown answer"),
        (lambda d: d[1].update(accept=[]), "line 2: an accepted item must have exactly one choice"),
        (
            lambda d: d[1].update(accept=["Pass", "Fail"]),
            "line 2: an accepted item must have exactly one choice",
        ),
        (lambda d: d.append({**d[0], "accept": ["Fail"]}), "item '007' has two answers by 'ann'"),
    ],
)
def test_damaged_files_end_in_one_error(answered, changed, refusal, how, said):
    assert said in refusal(changed(answered, how), lines=True)
