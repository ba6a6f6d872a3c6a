"""Argilla: what its own records made of our export comes back; damaged files."""

from __future__ import annotations

import json

import pytest

from stratal.errors import InputError
from stratal.labels.annotation_tools import ToolQuestion, write_argilla
from stratal.labels.label_files import read_answers

ANN, BOB = ("6f2c1c9e-0000-4000-8000-000000000001", "6f2c1c9e-0000-4000-8000-000000000002")


def test_the_tools_own_file_comes_back_whole(tools, expected, given):
    found = read_answers(tools / "argilla-2.8.0-list.json")

    assert found.tool == "argilla"
    assert given(found) == expected(ANN, BOB)
    assert found.answers[0].note == 'doubtful, "very"'


def test_to_json_is_refused_for_what_it_leaves_out(tools):
    with pytest.raises(InputError, match="to_list"):
        read_answers(tools / "argilla-2.8.0.json")


def test_records_and_settings_are_what_argilla_has_read(tasks, asked, tools, tmp_path):
    write_argilla(tasks, asked, tmp_path)

    records = json.loads((tmp_path / "records.json").read_text())
    kept = json.loads((tools / "argilla-2.8.0.json").read_text())
    assert [record["fields"] for record in records] == [record["fields"] for record in kept]
    settings = json.loads((tmp_path / ".argilla" / "settings.json").read_text())
    assert [question["type"] for question in settings["questions"]] == ["label_selection", "text"]
    assert [field["type"] for field in settings["fields"]] == ["text", "text", "text"]


def test_drafts_are_no_answers(tools, changed, tmp_path, given):
    found = json.loads((tools / "argilla-2.8.0-list.json").read_text())
    found[0]["verdict.responses.status"][0] = "draft"
    path = tmp_path / "records.json"
    path.write_text(json.dumps(found))

    assert (ANN, "007") not in given(read_answers(path))


def test_free_words_need_no_choices(tasks, tmp_path):
    write_argilla(tasks, ToolQuestion(text="What is it?", choices=(), allows_free_text=True), tmp_path)

    settings = json.loads((tmp_path / ".argilla" / "settings.json").read_text())
    assert settings["questions"][0]["type"] == "text"


def test_what_is_no_record_among_records_is_named(tools, refusal):
    found = json.loads((tools / "argilla-2.8.0-list.json").read_text())

    assert "record 6 does not have the format that Argilla writes" in refusal([*found, 1e308])


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d[1].pop("id"), "record 2 has no 'id'"),
        (lambda d: d[1].update(id=None), "record 2 has no 'id'"),
        (lambda d: d[0]["verdict.responses"].pop(), "record 1 does not have the format that Argilla writes"),
        (lambda d: d.append(7), "record 6 does not have the format that Argilla writes"),
        (
            lambda d: d[0].update(
                {
                    "clear.responses": d[0]["verdict.responses"],
                    "right.responses": d[0].pop("verdict.responses"),
                }
            ),
            "record 1: several questions were answered (given: clear, right",
        ),
        (
            lambda d: (
                [entry.update({"verdict.responses.status": ["draft"] * 2}) for entry in d[:2]]
                + [entry.update({"verdict.responses.status": ["draft"]}) for entry in d[2:]]
            ),
            "contains no answers",
        ),
    ],
)
def test_damaged_files_end_in_one_error(tools, changed, refusal, how, said):
    found = json.loads((tools / "argilla-2.8.0-list.json").read_text())

    assert said in refusal(changed(found, how))
