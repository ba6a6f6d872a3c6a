"""Which tool a file is of, and files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.labels.label_files import (
    TOOLS,
    find_tool,
    read_answers,
    read_tool_answers,
    tool_name_for,
    write_tasks,
)


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("label-studio-sdk-2.1.2.json", "label-studio"),
        ("label-studio-sdk-2.1.2-min.json", "label-studio"),
        ("argilla-2.8.0-list.json", "argilla"),
        ("potato-2.12.1", "potato"),
        ("lm-eval-0.4.13-capitals.jsonl", None),
        ("inspect-0.3.285.json", None),
        ("promptfoo-0.121.20.json", None),
        ("datasets-5.2.0", None),
    ],
)
def test_a_file_is_recognised(tools, name, tool):
    found = read_tool_answers(tools / name)

    assert (None if found is None else found.tool) == tool


def test_a_file_of_another_tool_is_named(tools):
    with pytest.raises(LabelError, match="is not an export of Argilla; it looks like Label Studio"):
        read_answers(tools / "label-studio-sdk-2.1.2.json", "argilla")


def test_an_unknown_tool_is_refused():
    with pytest.raises(InputError, match=r"unknown annotation tool \(given: 'word'; allowed: label-studio"):
        find_tool("word")


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_nothing_is_overwritten_and_nothing_half_written(tasks, asked, tmp_path, name):
    pytest.importorskip("openpyxl")
    tool = TOOLS[name]
    suffix = tool.suffixes[0] if tool.suffixes else ""
    path = tmp_path / f"a{suffix}"
    write_tasks(tool, tasks, asked, path)

    with pytest.raises(InputError, match="already exists"):
        write_tasks(tool, tasks, asked, path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "tasks_path", "answers_path"),
    [
        ("potato", "out", "out/annotation_output"),
        ("argilla", "out", "records.json"),
        ("csv", "a.csv", "a.csv"),
    ],
)
def test_the_path_of_the_answers(name, tasks_path, answers_path):
    assert TOOLS[name].answers_path(Path(tasks_path)) == str(Path(answers_path))


@pytest.mark.parametrize(("suffix", "name"), [(".jsonl", "jsonl"), (".XLSX", "excel"), (".html", None)])
def test_the_tool_of_a_suffix_is_a_table(suffix, name):
    assert tool_name_for(Path(f"items{suffix}")) == name


def test_a_name_of_another_kind_is_refused(tasks, asked, tmp_path):
    with pytest.raises(InputError, match="Excel requires a different file name"):
        write_tasks(TOOLS["excel"], tasks, asked, tmp_path / "a.csv")


def test_nothing_to_label_is_said(asked, tmp_path):
    with pytest.raises(InputError, match="no item is left to label"):
        write_tasks(TOOLS["csv"], [], asked, tmp_path / "a.csv")


def test_exports_of_tools_are_labels_of_a_sample(tools):
    labels = stratal.read_labels(tools / "label-studio-sdk-2.1.2.json")

    assert labels.ids[:2] == ("007", "007")
    assert labels.values[:2] == ("Pass", "Fail")
    assert labels.annotators[:2] == ("1", "2")
    assert stratal.read_labels(tools / "potato-2.12.1" / "ann" / "user_state.json").annotators[0] == "ann"
