"""Potato: what its own server made of our export comes back; damaged files."""

from __future__ import annotations

import json

import pytest

from stratal.errors import InputError, LabelError
from stratal.labels.annotation_tools import ToolQuestion, write_potato
from stratal.labels.label_files import read_answers


@pytest.fixture
def state(tools):
    return json.loads((tools / "potato-2.12.1" / "ann" / "user_state.json").read_text())


def test_the_tools_own_folder_comes_back_whole(tools, expected, given):
    found = read_answers(tools / "potato-2.12.1")

    assert found.tool == "potato"
    assert given(found) == expected(skips=False)
    assert found.answers[0].note == 'doubtful, "very"'


def test_one_annotators_file_is_read_too(tools, expected, given):
    alone = given(read_answers(tools / "potato-2.12.1" / "ann" / "user_state.json"))

    assert alone == {key: value for key, value in expected(skips=False).items() if key[0] == "ann"}


def test_the_config_has_what_potato_requires(tasks, asked, tmp_path):
    write_potato(tasks, asked, tmp_path)

    config = json.loads((tmp_path / "config.yaml").read_text())
    assert {"item_properties", "task_dir", "output_annotation_dir", "annotation_task_name"} <= set(config)
    assert config["annotation_schemes"][0]["labels"] == [
        {"name": "Pass", "key_value": "1"},
        {"name": "Fail", "key_value": "2"},
    ]
    lines = [json.loads(line) for line in (tmp_path / "instances.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [task.id for task in tasks]
    assert "answer@strict:\n<b>東京</b>" in lines[0]["text"]


def test_free_words_are_a_text(tasks, tmp_path, state, given):
    write_potato(tasks, ToolQuestion(text="What?", choices=("cat",), allows_free_text=True), tmp_path)
    config = json.loads((tmp_path / "config.yaml").read_text())
    state["instance_id_to_label_to_value"]["007"] = [[{"schema": "verdict", "name": "text_box"}, "dog"]]
    path = tmp_path / "user_state.json"
    path.write_text(json.dumps(state))

    assert config["annotation_schemes"][0]["annotation_type"] == "text"
    assert given(read_answers(path))["ann", "007"] == "dog"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d.update(user_id=""), "has no 'user_id'"),
        (
            lambda d: d.update(instance_id_to_label_to_value=[]),
            "annotator 1 does not have the format that Potato writes",
        ),
        (
            lambda d: d["instance_id_to_label_to_value"].update({"007": [["Pass"]]}),
            "does not have the format that Potato writes",
        ),
        (
            lambda d: d["instance_id_to_label_to_value"].update({"007": 7}),
            "does not have the format that Potato writes",
        ),
        (
            lambda d: d["instance_id_to_label_to_value"]["007"].append(
                [{"schema": "verdict", "name": "Fail"}, "Fail"]
            ),
            "item '007' has several answers (given: Pass, Fail",
        ),
        (lambda d: d["instance_id_to_label_to_value"].clear(), "contains no answers"),
    ],
)
def test_damaged_files_end_in_one_error(state, changed, refusal, how, said):
    assert said in refusal(changed(state, how))


def test_a_damaged_file_of_a_folder_is_named(tmp_path):
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "user_state.json").write_text("{")
    with pytest.raises(InputError, match=r"ann/user_state.json is not JSON"):
        read_answers(tmp_path)
    (tmp_path / "ann" / "user_state.json").write_text("{}")
    with pytest.raises(LabelError, match=r"ann/user_state.json is not an export of Potato"):
        read_answers(tmp_path)
