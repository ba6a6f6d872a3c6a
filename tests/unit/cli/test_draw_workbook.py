"""`draw --output NAME.xlsx`: a workbook to label, whose answers are restricted to the choices."""

from __future__ import annotations

import json

import openpyxl
import pytest
from tests.e2e.pasted import run, write

import stratal


@pytest.fixture(autouse=True)
def _predictions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [[f"00{unit}", unit / 300, f"=text {unit}"] for unit in range(300)]
    write("predictions.csv", ["id", "score", "text"], rows)


DRAW = "draw predictions.csv --proxy score --show text --budget 40 --seed 1"


def fill_in(path, answer):
    book = openpyxl.load_workbook(path)
    sheet = book.active
    for row in range(2, sheet.max_row + 1):
        sheet.cell(row, sheet.max_column).value = answer(row)
    book.save(path)


def test_a_workbook_has_the_rows_of_the_csv_file_and_its_labels_are_estimated(run_command):
    run(f"{DRAW} --output plain")
    run(f"{DRAW} --output audit.xlsx --choices Pass,Fail")
    sheet = openpyxl.load_workbook("audit/to_label.xlsx").active
    [validation] = sheet.data_validations.dataValidation

    assert [cell.value for cell in sheet[1]] == ["id", "text", "label"]
    drawn = stratal.Sample.read("plain/sample.parquet").ids.tolist()
    assert [cell.value for cell in sheet["A"][1:]] == drawn
    assert {cell.data_type for cell in sheet["B"]} == {"s"}
    assert (validation.formula1, str(validation.sqref)) == ('"Pass,Fail"', "C2:C41")
    assert validation.showErrorMessage

    fill_in("audit/to_label.xlsx", lambda row: "Fail" if row % 4 == 0 else "Pass")
    words = ["estimate", "audit/sample.parquet", "audit/to_label.xlsx", "--map", "Pass=1,Fail=0", "--json"]
    assert json.loads(run_command(*words).stdout)["n"] == 40


def test_the_choices_are_those_of_the_map(run_command):
    run(f"{DRAW} --output audit.xlsx --map good=1,bad=0")

    [validation] = openpyxl.load_workbook("audit/to_label.xlsx").active.data_validations.dataValidation
    assert validation.formula1 == '"good,bad"'


def test_choices_that_excel_cannot_store_are_not_restricted(run_command):
    run(f"{DRAW} --output audit.xlsx --choices {','.join(f'answer-{number}' for number in range(40))}")

    assert openpyxl.load_workbook("audit/to_label.xlsx").active.data_validations.dataValidation == []


def test_a_workbook_is_found_in_its_folder(run_command):
    run(f"{DRAW} --output audit.xlsx")

    assert "Next: stratal doctor audit/to_label.xlsx" in run_command("doctor", "audit").stdout


def test_labels_are_not_overwritten_and_choices_need_a_workbook(run_command):
    run(f"{DRAW} --output audit.xlsx")

    assert "is not empty" in run_command(*DRAW.split(), "--output", "audit.xlsx").message
    assert "NAME.xlsx" in run_command(*DRAW.split(), "--output", "other", "--choices", "a,b").message
