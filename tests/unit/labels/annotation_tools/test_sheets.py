"""Tables that a person fills in: CSV, Excel, JSON Lines."""

from __future__ import annotations

import csv
import json

import pytest

from stratal.errors import InputError
from stratal.labels import label_files
from stratal.labels.annotation_tools import Task, ToolQuestion
from stratal.labels.label_files import read_answers


def fill_csv(path, answers):
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    for row, answer in zip(rows[1:], answers, strict=True):
        row[-2:] = [answer, "why" if answer else ""]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def fill_excel(path, answers):
    import openpyxl

    book = openpyxl.load_workbook(path)
    for number, answer in enumerate(answers, start=2):
        book.active.cell(number, book.active.max_column - 1).value = answer or None
        book.active.cell(number, book.active.max_column).value = "why" if answer else None
    book.save(path)


def fill_lines(path, answers):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    filled = [
        {**line, "label": answer or None, "note": "why"} for line, answer in zip(lines, answers, strict=True)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in filled))


@pytest.mark.parametrize(
    ("write", "fill", "name"),
    [
        (label_files.write_csv, fill_csv, "items.csv"),
        (label_files.write_excel, fill_excel, "items.xlsx"),
        (label_files.write_json_lines, fill_lines, "items.jsonl"),
    ],
)
def test_what_is_filled_in_comes_back_with_its_ids(tasks, asked, tmp_path, write, fill, name):
    pytest.importorskip("openpyxl")
    path = tmp_path / name
    write(tasks, asked, path)
    fill(path, ["Pass", "Fail", "Pass", "", "Fail"])

    found = read_answers(path)

    ids = [task.id for task in tasks if task.id != "köln"]
    assert [entry.id for entry in found.answers] == ids
    assert [entry.value for entry in found.answers] == ["Pass", "Fail", "Pass", "Fail"]
    assert {entry.note for entry in found.answers} == {"why"}


def test_a_workbook_keeps_ids_as_text_and_offers_the_choices(tasks, asked, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    label_files.write_excel(tasks, asked, tmp_path / "items.xlsx")

    sheet = openpyxl.load_workbook(tmp_path / "items.xlsx").active
    assert [cell.value for cell in sheet["A"]] == ["item_id", *(task.id for task in tasks)]
    assert {cell.data_type for cell in sheet["A"]} == {"s"}
    assert sheet.data_validations.dataValidation[0].formula1 == '"Pass,Fail"'


def test_columns_that_would_mean_something_else_are_renamed(asked, tmp_path):
    label_files.write_csv([Task(id="a", payload={"label": "x", "Note": "y"})], asked, tmp_path / "items.csv")

    assert (tmp_path / "items.csv").read_text().splitlines() == [
        "item_id,label_shown,Note_shown,label,note",
        "a,x,y,,",
    ]


def test_skips_annotators_and_times_are_read(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "id,label,annotator,status,note,timestamp\na,Pass,ann,,,2026-01-01\na,,bob,skipped,blurred,\n"
    )

    first, second = read_answers(path).answers

    assert (first.annotator, first.value, first.timestamp) == ("ann", "Pass", "2026-01-01")
    assert (second.annotator, second.value, second.note) == ("bob", None, "blurred")


def test_nothing_but_classes_is_offered_without_a_list(tasks, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    label_files.write_excel(
        tasks, ToolQuestion(text="What?", choices=("cat",), allows_free_text=True), tmp_path / "items.xlsx"
    )

    assert not openpyxl.load_workbook(tmp_path / "items.xlsx").active.data_validations.dataValidation


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,label\na,Pass\n", "no id column"),
        ("item_id,verdikt\na,Pass\n", "no column 'label'"),
        ("item_id,label\n,Pass\n", "line 2: the id is missing"),
        ("item_id,label,status\na,Pass,done\n", "line 2: unknown status"),
        ("item_id,label\na,Pass\na,Fail\n", "line 3: item 'a' has two answers"),
        ("item_id,label\na,\n", "contains no answers"),
        ("", "is empty"),
    ],
)
def test_damaged_tables_end_in_one_error(tmp_path, text, said):
    path = tmp_path / "labels.csv"
    path.write_text(text)

    with pytest.raises(InputError) as caught:
        read_answers(path)
    assert said in str(caught.value)
