"""Files of labels as people have them."""

from __future__ import annotations

import gzip
import json
import re
import zipfile

import openpyxl
import pandas as pd
import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.labels.label_files import read_labels


def workbook(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        page = book.create_sheet(title)
        for row in rows:
            page.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("name", ["l.xlsx", "l.csv.gz", "l.json", "l.feather", "l.jsonl", "l.csv", "l.tsv"])
def test_every_format_reads_the_same(tmp_path, name):
    path = tmp_path / name
    rows = [{"id": "007", "label": "Pass"}, {"id": "x", "label": None}]
    if name == "l.xlsx":
        workbook(path, ("Sheet1", [["id", "label"], ["007", "Pass"], ["x", None]]))
    elif name == "l.feather":
        pd.DataFrame(rows).to_feather(path)
    elif name.startswith("l.json"):
        path.write_text(json.dumps(rows) if name == "l.json" else "\n".join(map(json.dumps, rows)))
    else:
        text = "id,label\n007,Pass\nx,\n".replace(",", "\t" if name == "l.tsv" else ",")
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())

    labels = read_labels(path)

    assert labels.ids == ("007", "x")
    assert labels.values == ("Pass", None)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_the_delimiter_is_found(tmp_path, mark):
    path = tmp_path / "labels.csv"
    path.write_text(f"id{mark}label\na{mark}1\n")

    assert read_labels(path).values == ("1",)


def test_columns_are_found_without_regard_to_case(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("ID,Label,Annotator,Status\na,1,ann,skipped\nb,0,bob,\n")

    labels = read_labels(path)

    assert labels.ids == ("a", "b")
    assert labels.values == (None, "0")
    assert labels.annotators == ("ann", "bob")


def test_two_columns_that_differ_by_case_are_told_apart(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,LABEL,Label\na,1,0\n")

    with pytest.raises(InputError, match=r"several columns.*'LABEL', 'Label'.*value='LABEL'"):
        read_labels(path)
    assert read_labels(path, value="Label").values == ("0",)


def test_blank_rows_are_left_out_and_counted(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,label\na,1\n,\n , \nb,0\n")

    labels = read_labels(path)

    assert labels.ids == ("a", "b")
    assert labels.notes == (f"{path}: 2 blank rows were left out",)


def test_the_sheet_with_the_labels_is_read(tmp_path):
    path = workbook(
        tmp_path / "labels.xlsx",
        ("Notes", [["How to label"], ["carefully"]]),
        ("Answers", [["id", "label"], ["a", 1], [None, None], ["b", 0.5]]),
    )

    labels = read_labels(path)

    assert labels.ids == ("a", "b")
    assert labels.values == ("1", "0.5")
    assert any("'Answers' was read" in note for note in labels.notes)
    assert any("1 blank row" in note for note in labels.notes)


def test_two_sheets_that_could_be_meant_are_asked_about(tmp_path):
    rows = [["id", "label"], ["a", 1]]
    path = workbook(tmp_path / "labels.xlsx", ("first", rows), ("second", rows))

    with pytest.raises(InputError, match=r"2 of 2 sheets have the requested columns.*'first', 'second'"):
        read_labels(path)


def test_a_sheet_of_notes_is_not_the_table(tmp_path):
    rows = [["id", "label"], ["a", 1]]
    notes = [["Labels of March"], ["checked by Ann"]]
    path = workbook(
        tmp_path / "labels.xlsx", ("notes", notes), ("labels", rows), ("empty", [["id", "label"]])
    )

    found = stratal.evaluate(path, value="label")

    assert found.estimate.value == 1.0
    assert any("'labels' was read" in note for note in found.to_dict()["notes"])


def test_a_workbook_that_is_none_is_refused(tmp_path):
    path = tmp_path / "labels.xlsx"
    path.write_text("id,label\n")

    with pytest.raises(InputError, match="not a readable workbook"):
        read_labels(path)


def test_annotators_are_taken_from_the_files_names(tmp_path):
    for name, label in (("ann", 1), ("bob", 0)):
        (tmp_path / f"{name}.csv").write_text(f"id,label\na,{label}\n")

    labels = read_labels(tmp_path / "ann.csv", tmp_path / "bob.csv")

    assert labels.annotators == ("ann", "bob")
    assert "ann, bob" in labels.notes[0]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    for name in ("ann", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "labels.csv").write_text("id,label\na,1\n")

    labels = read_labels(tmp_path / "ann" / "labels.csv", tmp_path / "bob" / "labels.csv")

    assert len(set(labels.annotators)) == 2


def test_rounds_are_not_annotators(tmp_path):
    for name, unit in (("first", "a"), ("second", "b")):
        (tmp_path / f"{name}.csv").write_text(f"id,label\n{unit},1\n")

    assert read_labels(tmp_path / "first.csv", tmp_path / "second.csv").annotators is None


def test_rows_without_ids_are_in_the_order_of_the_sample(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("label\n1\n0\n")

    labels = read_labels(path, id_name="row", order=["b", "a"])

    assert labels.ids == ("b", "a")
    with pytest.raises(LabelError, match="one row per drawn unit"):
        read_labels(path, id_name="row", order=["b"])


def test_words_are_counted_as_said(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,label\na,ok\nb,meh\n")

    labels = read_labels(path, positive="ok")

    assert list(labels.interpreted()[1].meanings.items()) == [("ok", 1.0), ("meh", 0.0)]


def test_nested_labels_have_dotted_names(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": 1, "review": {"verdict": "Pass"}}\n')

    assert read_labels(path, value="review.verdict").values == ("Pass",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[1, 2]", "not an array of JSON objects"),
        ("{}", "not an array of JSON objects"),
    ],
)
def test_json_that_is_no_table_is_refused(tmp_path, content, message):
    path = tmp_path / "labels.json"
    path.write_text(content)

    with pytest.raises(InputError, match=message):
        read_labels(path)


def test_no_file_is_an_error():
    with pytest.raises(InputError, match="no file of labels is given"):
        read_labels()


def test_labels_in_memory_are_not_a_file_of_labels():
    with pytest.raises(InputError, match="reads files") as caught:
        read_labels({"id": [1], "label": [1]})

    assert "estimate(sample, labels)" in str(caught.value)


# ---- what a file may hold that is not what it seems


def test_a_column_label_beside_another_is_refused(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,label,Label\na,1,0\n")

    with pytest.raises(
        InputError, match=r"several columns.*'label', 'Label'.*value='label' or value='Label'"
    ):
        read_labels(path)
    assert read_labels(path, value="label").values == ("1",)
    assert read_labels(path, value="Label").values == ("0",)


@pytest.mark.parametrize(
    ("name", "text"),
    [("labels.jsonl", '{"id": "a", "label": 1, "label": 0}\n'), ("labels.json", '[{"id": "a", "id": "b"}]')],
)
def test_a_key_that_stands_twice_is_refused(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(InputError, match="occurs twice"):
        read_labels(path)


def test_a_formula_without_a_saved_value_and_merged_cells_are_named(tmp_path):
    """A spreadsheet shows something there, and a reader finds nothing."""
    path = workbook(tmp_path / "f.xlsx", ("Answers", [["id", "label"], ["a", "=1+0"], ["b", 0]]))
    with pytest.raises(InputError, match=r"sheet 'Answers' contains a formula without a saved value: B2"):
        read_labels(path)
    path = workbook(tmp_path / "m.xlsx", ("Answers", [["id", "label"], ["a", 1], ["b", None]]))
    book = openpyxl.load_workbook(path)
    book["Answers"].merge_cells("B2:B3")
    book.save(path)
    with pytest.raises(InputError, match=r"sheet 'Answers' contains merged cells: B2:B3"):
        read_labels(path)


def test_a_title_above_the_header_is_named(tmp_path):
    path = workbook(tmp_path / "t.xlsx", ("Answers", [["My labels"], ["id", "label"], ["a", 1]]))
    with pytest.raises(InputError, match=r"first row of sheet 'Answers' is a title.*'My labels'.*Delete"):
        read_labels(path)
    path = workbook(tmp_path / "one.xlsx", ("Answers", [["id"], ["a"]]))
    with pytest.raises(InputError, match="no column 'label'"):
        read_labels(path)


def test_formulas_with_values_and_notes_on_another_sheet_are_read(tmp_path):
    plain = workbook(
        tmp_path / "plain.xlsx",
        ("Notes", [["How", "to"], ["a", "b"]]),
        ("Answers", [["id", "label"], ["a", "=1+0"], ["b", '=""']]),
    )
    book = openpyxl.load_workbook(plain)
    book["Notes"].merge_cells("A1:B1")
    book.save(plain)
    path = tmp_path / "calculated.xlsx"
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.endswith("sheet2.xml"):  # as a spreadsheet saves what it has calculated
                text = re.sub(rb"(<f>1\+0</f>)<v ?/>|(<f>1\+0</f>)<v></v>", rb"<f>1+0</f><v>1</v>", text)
                text = text.replace(b'<c r="B3"', b'<c t="str" r="B3"')
            new.writestr(name, text)

    assert read_labels(path).values == ("1", None)


def test_commas_that_may_group_digits_are_refused_by_name(tmp_path):
    path = tmp_path / "labels.csv"
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5], ids=["a", "b"])
    sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=1)

    path.write_text("id;label\na;2,033\nb;583\n")
    with pytest.raises(InputError, match=r"'2,033' in column 'label' may be 2033 or 2.033"):
        stratal.estimate(sample, read_labels(path))
    path.write_text("id;label\na;2,5\nb;3\n")
    assert stratal.estimate(sample, read_labels(path)).value == 2.75


@pytest.mark.parametrize(
    "text",
    [
        b"id,label\r\na,1\nb,0\rc,1\r\n",
        b"id,label\r\na,1\nb,0\r\nc,1\n",
        b"id,label\na,1\r\nb,0\nc,1",
    ],
)
def test_mixed_line_ends_are_read_as_lines_or_refused_by_name(tmp_path, text):
    path = tmp_path / "labels.csv"
    path.write_bytes(text)

    try:
        labels = read_labels(path)
    except InputError:
        with pytest.raises(InputError, match=re.escape(str(path))):
            read_labels(path)
    else:
        assert (labels.ids, labels.values) == (("a", "b", "c"), ("1", "0", "1"))


def test_the_apostrophe_before_what_a_spreadsheet_would_run_is_taken_away_from_every_format(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b", "c"], "label": ["'=x", "'@y", "'tis"]})
    frame.to_csv(tmp_path / "labels.csv", index=False)
    frame.to_parquet(tmp_path / "labels.parquet")
    frame.to_excel(tmp_path / "labels.xlsx", index=False)
    frame.to_json(tmp_path / "labels.json", orient="records")

    for name in ("csv", "parquet", "xlsx", "json"):
        assert read_labels(tmp_path / f"labels.{name}").values == ("=x", "@y", "'tis")


def test_the_ids_of_an_export_may_have_another_key(tmp_path, run_command):
    """`--id` was refused by the command, which looked for a column of this name."""
    population = stratal.Population.from_arrays(ids=[f"q{row}" for row in range(20)])
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    sample.write(tmp_path / "sample.parquet")

    def export(key):
        """Write an export of Label Studio, in which 5 of 20 answers are `Fail`."""
        tasks = []
        for row in range(20):
            choices = {"choices": ["Fail" if row % 4 == 0 else "Pass"]}
            result = [{"from_name": "verdict", "to_name": "text", "type": "choices", "value": choices}]
            annotation = {"id": row, "completed_by": 1, "result": result, "was_cancelled": False}
            tasks.append({"id": 100 + row, "data": {key: f"q{row}"}, "annotations": [annotation]})
        path = tmp_path / f"{key}.json"
        path.write_text(json.dumps(tasks), encoding="utf-8")
        return path

    words = ("estimate", tmp_path / "sample.parquet")
    done = run_command(*words, export("question"), "--id", "question", "--json")
    assert json.loads(done.stdout)["estimate"] == 0.75
    assert json.loads(run_command(*words, export("ID"), "--json").stdout)["estimate"] == 0.75
    assert "--id KEY" in run_command(*words, export("question")).message
