"""Workbooks whose sheets claim another size than they have, or are no XML."""

from __future__ import annotations

import tracemalloc
import zipfile

import pytest

from stratal.errors import InputError
from stratal.tables.small_table import SmallTable


@pytest.fixture
def workbook(tmp_path):
    """Return a function that writes a workbook whose first sheet a function changed."""
    openpyxl = pytest.importorskip("openpyxl")

    def write(change):
        path, plain = tmp_path / "labels.xlsx", tmp_path / "plain.xlsx"
        book = openpyxl.Workbook()
        for row in (["id", "label"], ["a", 1], ["b", 0]):
            book.active.append(row)
        book.save(plain)
        with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w") as target:
            for name in source.namelist():
                content = source.read(name)
                if name == "xl/worksheets/sheet1.xml":
                    content = change(content.decode()).encode()
                target.writestr(name, content)
        return path

    return write


def test_a_declared_dimension_takes_no_memory(workbook):
    path = workbook(lambda text: text.replace('ref="A1:B3"', 'ref="A1:XFD1048576"'))

    tracemalloc.start()
    table = SmallTable.of(path, "labels")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert table.columns["id"] == ["a", "b"]
    assert peak < 50e6


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("<sheetData>", "<sheetData><<"),
        lambda text: text.replace("<v>1</v>", "<v>&undefined;</v>"),
        lambda text: "",
    ],
)
def test_errors_of_xml_are_one_error(workbook, change):
    with pytest.raises(InputError, match="is not a readable workbook"):
        SmallTable.of(workbook(change), "labels")


@pytest.mark.parametrize(
    ("rows", "row_number"),
    [([[None], ["Source"]], 5), ([["Source: all of 2026"]], 4), ([["Note 1"], [None], ["Note 2"]], 4)],
)
def test_notes_below_the_rows_are_no_units(tmp_path, rows, row_number):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "label"], ["a", 1], ["b", 0], *rows):
        book.active.append(row)
    book.save(tmp_path / "labels.xlsx")

    with pytest.raises(InputError, match=f"row {row_number} of sheet 'Sheet' is a note below the table"):
        SmallTable.of(tmp_path / "labels.xlsx", "labels")


def test_the_last_ids_may_have_no_label(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "label"], ["item 1", 1], ["item 2", 0], ["item 3"]):
        book.active.append(row)
    book.save(tmp_path / "labels.xlsx")

    assert SmallTable.of(tmp_path / "labels.xlsx", "labels").columns["id"][-1] == "item 3"
