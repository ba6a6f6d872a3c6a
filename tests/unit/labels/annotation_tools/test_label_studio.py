"""Label Studio: what its own SDK made of our export comes back; damaged files."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from stratal.labels.annotation_tools import Task, ToolQuestion, write_label_studio
from stratal.labels.label_files import read_answers


@pytest.fixture
def export(tools):
    return json.loads((tools / "label-studio-sdk-2.1.2.json").read_text())


def test_the_tools_own_file_comes_back_whole(tools, expected, given):
    found = read_answers(tools / "label-studio-sdk-2.1.2.json")

    assert found.tool == "label-studio"
    assert given(found) == expected("1", "2")
    first = found.answers[0]
    assert (first.note, first.timestamp, first.seconds) == ('doubtful, "very"', "2026-11-21T10:01:30Z", 12.5)


def test_json_min_lacks_the_skips_and_says_so(tools, expected, given):
    found = read_answers(tools / "label-studio-sdk-2.1.2-min.json")

    assert given(found) == expected("1", "2", skips=False)
    assert "leaves out skipped tasks" in found.notes[0]


def test_tasks_hold_the_ids_and_what_was_labelled_is_what_we_write_today(tasks, asked, export, tmp_path):
    write_label_studio(tasks, asked, tmp_path)

    written = json.loads((tmp_path / "tasks.json").read_text())
    assert [task["data"] for task in written] == [task["data"] for task in export]


def test_the_config_asks_the_question_with_its_keys(tasks, asked, tmp_path):
    write_label_studio(tasks, asked, tmp_path)

    view = ET.parse(tmp_path / "config.xml").getroot()
    assert [(c.get("value"), c.get("hotkey")) for c in view.iter("Choice")] == [("Pass", "1"), ("Fail", "2")]
    assert [entry.get("value") for entry in view.iter("Text")] == ["$question", "$answer_strict", "$turns"]
    assert "Is the answer correct?" in [entry.get("value") for entry in view.iter("Header")]


def test_words_of_the_annotators_own_may_be_asked_for(tmp_path):
    question = ToolQuestion(text='What "class" & why <?>', choices=("cat",), allows_free_text=True)
    write_label_studio([Task(id="a", payload={"id": "x"})], question, tmp_path)

    view = ET.parse(tmp_path / "config.xml").getroot()
    assert [entry.get("name") for entry in view.iter("TextArea")] == ["verdict_words", "note"]
    assert json.loads((tmp_path / "tasks.json").read_text())[0]["data"] == {"item_id": "a", "id_2": "x"}


def test_a_project_of_ones_own_with_one_control_is_read(export, changed, tmp_path, given):
    def rename(document):
        for task in document:
            for annotation in task["annotations"]:
                for entry in annotation["result"]:
                    entry["from_name"] = "quality" if entry["from_name"] == "verdict" else "note"

    path = tmp_path / "export.json"
    path.write_text(json.dumps(changed(export, rename)))

    assert given(read_answers(path))["1", "köln"] == "Pass"


def test_the_newest_of_two_annotations_counts(export, changed, tmp_path, given):
    def again(document):
        later = json.loads(json.dumps(document[0]["annotations"][0]))
        later["updated_at"] = "2026-11-22T10:00:00Z"
        later["result"][0]["value"]["choices"] = ["Fail"]
        document[0]["annotations"].insert(0, later)

    path = tmp_path / "export.json"
    path.write_text(json.dumps(changed(export, again)))

    assert given(read_answers(path))["1", "007"] == "Fail"


def test_annotators_are_called_by_their_mail(export, changed, tmp_path):
    def name(document):
        document[0]["annotations"][0]["completed_by"] = {"id": 1, "email": "ann@example.org"}

    path = tmp_path / "export.json"
    path.write_text(json.dumps(changed(export, name)))

    assert read_answers(path).answers[0].annotator == "ann@example.org"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d[1]["data"].pop("item_id"), "task 2 has no 'item_id'"),
        (
            lambda d: d[0]["annotations"][0]["result"].clear(),
            "task 1: an annotation must contain exactly one answer",
        ),
        (
            lambda d: d[0]["annotations"][0]["result"][0]["value"].update(choices=["Pass", "Fail"]),
            "exactly one answer (given: 'Pass', 'Fail'",
        ),
        (
            lambda d: d[2].update(annotations="none"),
            "task 3 does not have the format that Label Studio writes",
        ),
        (
            lambda d: d[2]["annotations"].append(7),
            "task 3 does not have the format that Label Studio writes",
        ),
        (
            lambda d: d[2]["annotations"][0].update(result=[7]),
            "task 3 does not have the format that Label Studio writes",
        ),
        (lambda d: d.append("x"), "task 6 does not have the format that Label Studio writes"),
        (lambda d: [task["annotations"].clear() for task in d], "contains no answers"),
    ],
)
def test_damaged_files_end_in_one_error(export, changed, refusal, how, said):
    assert said in refusal(changed(export, how))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d[1].pop("item_id"), "entry 2 has no 'item_id'"),
        (
            lambda d: d[0].update(verdict=["Pass", "Fail"]),
            "entry 1: an annotation must contain exactly one answer",
        ),
        (lambda d: d[0].pop("verdict"), "entry 1: an annotation must contain exactly one answer"),
        (lambda d: d.append(None), "entry 7 does not have the format that Label Studio writes"),
        (lambda d: d.append({**d[0], "verdict": "Fail"}), "item '007' has two answers by '1'"),
    ],
)
def test_damaged_json_min_ends_in_one_error(tools, changed, refusal, how, said):
    found = json.loads((tools / "label-studio-sdk-2.1.2-min.json").read_text())

    assert said in refusal(changed(found, how))
