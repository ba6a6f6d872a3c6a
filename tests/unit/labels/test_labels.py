from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from openpyxl import Workbook

import stratal
from stratal.designs.labelling_files import write_labelling_folder
from stratal.errors import InputError, LabelError, StratalWarning
from stratal.estimation.entry_points import estimate
from stratal.labels.annotator_columns import labels_of_annotators
from stratal.labels.joined_labels import join_labels
from stratal.labels.label_files import read_labels
from stratal.labels.label_values import LabelMapping
from stratal.labels.labels import Labels


@pytest.fixture
def sample(population):
    return stratal.designs.SimpleRandom(budget=20).draw(population, seed=3)


def test_every_kind_of_labels_gives_the_same_join(sample, truth):
    mapping = {name: truth[name] for name in sample.ids.tolist()}
    series = pd.Series(mapping)
    array = np.array([truth[name] for name in sample.ids.tolist()])
    expected = join_labels(sample, mapping).numbers().tolist()

    for labels in (series, series.sample(frac=1, random_state=0), array, array.tolist(), pl.Series(array)):
        assert join_labels(sample, labels).numbers().tolist() == expected


def test_integer_ids_are_joined_whatever_their_type():
    population = stratal.Population.from_arrays(proxy=[0.1, 0.2, 0.3], ids=[7, 8, 9])
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)

    made = stratal.Labels(ids=(7, np.int64(8), 9.0), values=(1, 0, 1))
    series = pd.Series([1, 0, 1], index=[7.0, 8.0, 9.0])

    for labels in ({7: 1, 8: 0, 9: 1}, {"7": 1, "8": 0, "9": 1}, series, made):
        values = dict(zip(sample.ids.tolist(), join_labels(sample, labels).numbers().tolist(), strict=True))
        assert values == {7: 1, 8: 0, 9: 1}


def test_strangers_are_counted_and_the_first_is_named(sample):
    with pytest.raises(LabelError, match=r"2 ids are not in this sample \(first: 'nobody'\)"):
        join_labels(sample, {"nobody": 1, "noone": 0, sample.ids[0]: 1})


def test_missing_labels_are_nonresponse(sample, truth):
    ids = sample.ids.tolist()
    with pytest.warns(StratalWarning, match="5 of 20 drawn units have no label"):
        result = estimate(
            sample, {name: truth[name] for name in ids[:15]} | {ids[16]: float("nan"), ids[17]: None}
        )

    told = result.nonresponse.to_dict()
    low, high = told.pop("worst_bounds")
    assert told == {"drawn": 20, "labelled": 15, "rate": 0.25}
    assert high - low == pytest.approx(0.25)
    assert result.n == 15


def test_an_array_of_the_wrong_length_is_refused(sample):
    with pytest.raises(LabelError, match="one entry per drawn unit"):
        join_labels(sample, [1, 0])


def test_no_label_at_all_is_refused(sample):
    with pytest.raises(LabelError, match="no unit is labelled yet"):
        estimate(sample, {})


@pytest.mark.parametrize("value", ["cat", "1,5", "inf"])
def test_a_label_that_is_not_a_number_is_named(sample, value):
    with pytest.raises(LabelError, match=f"label '{value}' of id .* is not a finite number"):
        estimate(sample, {sample.ids[0]: value})


def test_true_and_false_are_one_and_zero():
    assert list(LabelMapping().numbers(["True", "false", "TRUE"]).values()) == [1, 0, 1]


# ---- files


def test_long_form_with_status_and_annotators(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item_id,label,annotator,status\na,1,ann,submitted\na,0,bob,submitted\nb,1,ann,skipped\n")

    labels = read_labels(path)

    assert labels.ids == ("a", "a", "b")
    assert labels.values == ("1", "0", None)
    assert labels.annotators == ("ann", "bob", "ann")


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.jsonl", "labels.parquet"])
def test_every_format_reads_the_same(tmp_path, name):
    path = tmp_path / name
    frame = pd.DataFrame({"id": ["007", "008"], "label": [1.0, None]})
    if name.endswith("parquet"):
        frame.to_parquet(path)
    elif name.endswith("jsonl"):
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if name.endswith("tsv") else ",")

    labels = read_labels(path)

    assert labels.ids == ("007", "008")
    assert float(labels.values[0]) == 1.0
    assert labels.values[1] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("id,label\n", "contains no row"),
        ("name,label\na,1\n", "no id column"),
        ("id,lable\na,1\n", "no column 'label'.*'lable'"),
        ("id,label\na,1,2\n", "line 2: wrong number of columns"),
        ("id,label\n,1\n", "line 2: the id is missing"),
        ("id,label,status\na,1,submitted\nb,1,done\n", "line 3: unknown status.*Rename the column"),
        ('id,label\n"a,1\n', "cannot be read"),
    ],
)
def test_bad_files_get_one_clear_error(tmp_path, content, message):
    path = tmp_path / "labels.csv"
    path.write_text(content)

    with pytest.raises(InputError, match=message):
        read_labels(path)


def test_duplicates_are_named_with_their_line(tmp_path, sample):
    path = tmp_path / "labels.csv"
    name = sample.ids[0]
    path.write_text(f"id,label\n{name},1\n{name},0\n")

    with pytest.raises(LabelError, match=f"line 3: id '{name}' has two labels"):
        join_labels(sample, read_labels(path))


def test_the_same_annotator_twice_is_refused_and_two_annotators_are_averaged(tmp_path, sample):
    path = tmp_path / "labels.csv"
    name = sample.ids[0]
    path.write_text(f"id,label,annotator\n{name},1,ann\n{name},0,bob\n")
    with pytest.warns(StratalWarning, match="19 of 20 drawn units have no label"):
        assert estimate(sample, read_labels(path), bounds=(0, 1)).value == 0.5
    path.write_text(f"id,label,annotator\n{name},1,ann\n{name},0,ann\n")
    with pytest.raises(LabelError, match="two labels by annotator 'ann'"):
        join_labels(sample, read_labels(path))


@pytest.mark.parametrize("text", ["1_0", "0_1", "_1"])
def test_an_underscore_is_in_no_label(text):
    assert np.isnan(LabelMapping().numbers(["0", text])[text])


def test_masked_labels_are_not_there():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 8))
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)
    given = np.ma.masked_array([1.0, 99.0, 0.0], [False, True, False])

    assert join_labels(sample, given).labelled.tolist() == [True, False, True]
    assert stratal.estimate(sample, given).n == 2


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"values": (1, 2)}, "given: 1, 2"),
        ({"values": (1,), "annotators": ("ann", "bob")}, "given: 1, 1, 2"),
    ],
)
def test_ids_values_and_annotators_are_as_many(columns, said):
    with pytest.raises(LabelError, match=said):
        stratal.Labels(ids=("a",), **columns)


@pytest.mark.parametrize(
    "missing",
    [None, float("nan"), pd.NA, pd.NaT, np.ma.masked, Decimal("NaN"), Decimal("sNaN"), " "],
    ids=repr,
)
def test_what_is_missing_is_no_answer(missing):
    assert Labels(ids=("a", "b"), values=(missing, 1.0)).values == (None, 1.0)


@pytest.mark.parametrize(
    "number", [Decimal(1), np.float32(1), np.int8(1), np.array(1.0), np.bool_(True)], ids=repr
)
def test_numbers_of_every_kind_are_numbers(number):
    (value,) = Labels(ids=("a",), values=(number,)).values

    assert value == 1
    assert type(value) in (float, int, bool)


@pytest.mark.parametrize(
    "container",
    [[1, 0], {"a": 1}, {1}, (1, 0), np.array([1.0]), pd.Series([1]), pd.DataFrame({"a": [1]})],
    ids=type,
)
@pytest.mark.parametrize("way", ["Labels", "mapping", "array"])
def test_a_container_is_no_label(container, way):
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5], ids=["a", "b"])
    sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    array = np.empty(2, object)
    array[0], array[1] = container, 1.0
    given = {
        "Labels": lambda: Labels(ids=tuple(sample.ids.tolist()), values=(container, 1.0)),
        "mapping": lambda: dict(zip(sample.ids.tolist(), array, strict=True)),
        "array": lambda: array,
    }[way]

    with pytest.raises(LabelError, match="is a"):
        stratal.estimate(sample, given())


@pytest.mark.parametrize("number", [10**400, 1j, Decimal("1e999")])
def test_a_number_that_is_none_is_named(number):
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    with pytest.raises(LabelError, match="not a finite number"):
        stratal.estimate(sample, {0: number, 1: 1.0})


def test_labels_in_the_order_of_the_sample_are_joined_as_in_any_other():
    population = stratal.Population.from_arrays(ids=[f"item-{number}" for number in range(200)])
    sample = stratal.designs.SimpleRandom(budget=50).draw(population, seed=1)
    ids = sample.ids.tolist()
    values = [float(number % 3) for number in range(50)]
    in_order = join_labels(sample, Labels(ids=tuple(ids), values=tuple(values)))
    reversed_ids = join_labels(sample, Labels(ids=tuple(ids[::-1]), values=tuple(values[::-1])))

    np.testing.assert_array_equal(in_order.numbers(), reversed_ids.numbers())
    np.testing.assert_array_equal(in_order.numbers(), values)


def test_an_id_of_labels_contains_no_nul():
    with pytest.raises(InputError, match="NUL"):
        Labels(ids=("a", "b\0"), values=(1.0, 0.0))


@pytest.mark.parametrize("id_column", ["row", "text"])
@pytest.mark.parametrize("table", ["out.xlsx", "out"])
def test_a_table_that_was_drawn_with_other_ids_is_read_without_naming_them(tmp_path, id_column, table):
    rows = "".join(f"text {number},{number % 10 / 10}\n" for number in range(40))
    (tmp_path / "file.csv").write_text("text,score\n" + rows)
    population = stratal.Population.read(tmp_path / "file.csv", id=id_column, proxy="score", show="text")
    sample = stratal.plan(population, budget=20).draw(seed=1)
    choices = ("Pass", "Fail") if table.endswith("xlsx") else None
    written = write_labelling_folder(sample, tmp_path / "out", None, choices)

    labels = read_labels(written.to_label)

    assert labels.ids == tuple(map(str, sample.ids.tolist()))
    with pytest.raises(InputError, match="no unit is labelled"):
        stratal.estimate(sample, labels)
    if table == "out" and id_column == "text":
        content = written.to_label.read_text()
        (tmp_path / "renamed.csv").write_text(content)
        with pytest.raises(InputError, match=r"no id column.*id_name='…'"):
            read_labels(tmp_path / "renamed.csv")
        assert read_labels(tmp_path / "renamed.csv", id_name="text").ids == labels.ids


def test_row_numbers_without_the_token_of_a_sample_are_not_taken_for_its_ids(tmp_path):
    (tmp_path / "labels.csv").write_text("row,label\n1,Pass\n2,Fail\n")

    with pytest.raises(InputError, match="no id column"):
        read_labels(tmp_path / "labels.csv")


def test_rows_without_ids_need_the_order_of_the_sample(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("label\nPass\nFail\n")

    with pytest.raises(InputError, match=r"order=sample\.ids"):
        read_labels(path, id_name="row")
    assert read_labels(path, id_name="row", order=["a", "b"]).ids == ("a", "b")


def test_columns_of_several_annotators_are_their_answers(tmp_path, sample):
    ids = sample.ids.tolist()
    anna = [row % 2 for row in range(len(ids))]
    ben = [int(row % 3 == 0) for row in range(len(ids))]
    wide = tmp_path / "wide.csv"
    rows = [f"{name},{a},{b}" for name, a, b in zip(ids, anna, ben, strict=True)]
    wide.write_text("id,anna,ben\n" + "\n".join(rows[:-1]) + f"\n{ids[-1]},1,\n")

    with pytest.raises(InputError, match="several annotators: value='A,B'"):
        read_labels(wide)
    labels = read_labels(wide, value="anna,ben")

    assert labels.annotators == ("anna",) * len(ids) + ("ben",) * len(ids)
    means = {name: (a + b) / 2 for name, a, b in zip(ids, anna, ben, strict=True)}
    expected = stratal.estimate(sample, {**means, ids[-1]: 1.0})
    assert stratal.estimate(sample, labels).value == pytest.approx(expected.value)


def test_columns_of_annotators_next_to_a_column_of_annotators_are_refused(tmp_path):
    path = tmp_path / "both.csv"
    path.write_text("id,anna,ben,annotator\na,1,0,ann\n")

    with pytest.raises(LabelError, match="annotators are named in a column, and by the columns of labels"):
        read_labels(path, value="anna,ben")


def test_a_missing_column_is_named_with_the_option_of_its_role(tmp_path, sample):
    path = tmp_path / "labels.csv"
    path.write_text("id,label\n" + "".join(f"{name},1\n" for name in sample.ids.tolist()))

    with pytest.raises(InputError, match=r"no column 'foo'.*ids: id="):
        stratal.evaluate(sample, path, id="foo")
    with pytest.raises(InputError, match=r"no column 'answer'.*new answers: answers="):
        stratal.evaluate(sample, path, against=path)


def test_a_label_that_is_an_object_is_named_by_its_entry():
    with pytest.raises(LabelError, match=r"is a dict.*value='COLUMN.verdict'"):
        Labels(ids=("a",), values=({"verdict": "pass"},))


def test_labels_in_percent_are_refused_with_the_number_to_write(sample):
    labels = Labels(ids=tuple(sample.ids.tolist()), values=("83%",) * sample.size)

    with pytest.raises(LabelError, match=r"such as 0\.83 for 83%"):
        stratal.estimate(sample, labels)


def test_two_words_of_which_one_means_success_are_refused_with_its_option(sample):
    values = ["safe" if row % 3 else "unsafe" for row in range(sample.size)]

    with pytest.raises(LabelError, match="For the share of 'safe': positive='safe'"):
        stratal.estimate(sample, values)
    assert stratal.evaluate(sample, values, positive="safe").estimate.value == pytest.approx(13 / 20)


def write_columns(path, ids, **columns):
    """Write a table of ids and columns; return its path."""
    rows = [",".join(map(str, row)) for row in zip(ids, *columns.values(), strict=True)]
    path.write_text("\n".join([",".join(["id", *columns]), *rows]) + "\n")
    return path


def test_a_file_may_have_some_of_the_columns_of_annotators_or_a_column_label(tmp_path):
    both = write_columns(tmp_path / "both.csv", "ab", ann=[1, 0], ben=[1, 1])
    second = write_columns(tmp_path / "second.csv", "cd", ben=[0, 1])
    plain = write_columns(tmp_path / "plain.csv", "ef", label=[1, 0])

    labels = read_labels(both, second, plain, value=["ann", "ben"])

    answers = dict(zip(zip(labels.ids, labels.annotators, strict=True), labels.values, strict=True))
    expected = {("a", "ann"): "1", ("b", "ann"): "0", ("a", "ben"): "1", ("b", "ben"): "1"}
    expected |= {("c", "ben"): "0", ("d", "ben"): "1", ("e", ""): "1", ("f", ""): "0"}
    assert answers == expected
    with pytest.raises(InputError, match=r"no column 'bne' \(allowed: 'ben'"):
        read_labels(both, second, plain, value="ann,bne")
    with pytest.raises(InputError, match="no column 'ann'"):
        read_labels(plain, value="ann,ben")


def test_of_several_files_one_may_have_a_column_label_in_place_of_the_named_column(tmp_path):
    named = write_columns(tmp_path / "named.csv", "ab", ann=[1, 0], label=["cat", "dog"])
    plain = write_columns(tmp_path / "plain.csv", "cd", label=[0, 1])

    labels = read_labels(named, plain, value="ann")

    assert dict(zip(labels.ids, labels.values, strict=True)) == {"a": "1", "b": "0", "c": "0", "d": "1"}
    for paths in ([plain], [plain, plain]):
        with pytest.raises(InputError, match="no column 'ann'"):
            read_labels(*paths, value="ann")
    with pytest.raises(InputError, match=r"plain.csv: no column 'ann'"):
        read_labels(named, plain, value="ann", in_every_file=True)


def test_an_export_of_a_tool_has_no_column_to_name(tmp_path):
    named = write_columns(tmp_path / "named.csv", "ab", ann=[1, 0], ben=[1, 1])
    result = [{"from_name": "label", "to_name": "t", "type": "choices", "value": {"choices": ["1"]}}]
    annotations = [{"id": 1, "completed_by": 7, "result": result}]
    export = tmp_path / "export.json"
    export.write_text(json.dumps([{"id": 1, "data": {"id": "c"}, "annotations": annotations}]))

    for value, count in (("ann", 3), ("ann,ben", 5)):
        assert read_labels(named, export, value=value).answered == count
    with pytest.raises(InputError, match="exports of annotation tools have no columns of labels"):
        read_labels(export, value="ann,ben")


def test_a_column_label_is_not_read_in_place_of_a_judge(tmp_path, sample):
    ids = sample.ids.tolist()
    named = write_columns(tmp_path / "named.csv", ids[:10], ann=[1, 0] * 5, judge=[1, 1] * 5)
    plain = write_columns(tmp_path / "plain.csv", ids[10:], label=[0, 1] * 5)

    assert stratal.evaluate(sample, [named, plain], value="ann").labels.answered == 20
    with pytest.raises(InputError, match="neither the sample nor the labels have a column 'judge'"):
        stratal.evaluate(sample, [named, plain], value="ann", judge="judge")


def test_a_table_in_memory_has_all_named_columns(tmp_path, sample):
    path = tmp_path / "sample.parquet"
    sample.write(path)
    table = pd.DataFrame({"id": sample.ids, "ann": [1, 0] * 10, "ben": [1, 1] * 10})

    for source in (sample, path):
        assert stratal.evaluate(source, table, value=["ann", "ben"]).labels.answered == 40
        for value in (["ann", "bne"], ["bne", "nan"]):
            with pytest.raises(InputError, match="no column 'bne'"):
                stratal.evaluate(source, table, value=value)


def test_the_sheet_with_columns_of_annotators_is_read(tmp_path):
    book = tmp_path / "labels.xlsx"
    workbook = Workbook()
    answers = [["id", "ann", "ben"], ["a", 1, 0], ["b", 1, 1]]
    sheets = {"answers": answers, "cities": [["city", "size"], ["x", 3]]}
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(row)
    workbook.save(book)

    assert read_labels(book, value="ann,ben").answered == 4


def test_a_column_with_a_comma_in_its_name_is_one_column(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text('id,"ann,ben",ann\na,1,0\nb,0,0\n')

    labels = read_labels(path, value="ann,ben")

    assert (labels.annotators, labels.values) == (None, ("1", "0"))


def test_columns_of_annotators_have_values_of_one_kind_and_different_names(tmp_path):
    columns = {
        "ann": [1, 0] * 3,
        "ben": [0, 1] * 3,
        "site": ["A", "B"] * 3,
        "up": ["pass"] * 6,
        "down": ["fail"] * 6,
        "grade": ["gut", "schlecht"] * 3,
        "comment": ["fine", "ok so", "why", "late", "so so", "good"],
        "score": [0.25, 0.75] * 3,
        "first": [*"ab", "", "", "", ""],
        "second": [*"cd", "", "", "", ""],
        "tags": ["x;y", "y"] * 3,
        "more tags": ["y;z", "z"] * 3,
    }
    path = write_columns(tmp_path / "labels.csv", "abcdef", **columns)

    with pytest.raises(InputError, match="names the column 'ann' twice"):
        read_labels(path, value="ann,ben,Ann")
    for value in ("ann,site", "up,comment", "up,ann,site", "up,grade", ["up", "down", "grade"]):
        with pytest.raises(InputError, match="has no value in common with the other columns of labels"):
            read_labels(path, value=value)
    with pytest.raises(InputError, match="value= names no column of labels"):
        read_labels(path, value=[])
    # Numbers differ, two words are of one vocabulary or words for 1 and 0, and tags overlap.
    for value in ("ann,score", "up,down", "up,ann", "tags,more tags"):
        assert read_labels(path, value=value).answered == 12
    assert read_labels(path, value="up,grade", mapping={"gut": "pass", "schlecht": "fail"}).answered == 12
    # Of a few answers each may be a class of its own.
    assert read_labels(path, value="first,second").answered == 4


def test_labels_of_annotators_have_the_notes_places_and_failures_of_each_column():
    first = Labels(ids=("a",), values=(1,), places=("line 2",), notes=("first",), failed=(False,))
    second = Labels(ids=("b",), values=(None,), places=("line 9",), notes=("first", "second"), failed=(True,))

    labels = labels_of_annotators({"ann": first, "ben": second})

    assert labels.places == ("line 2", "line 9")
    assert labels.notes == ("first", "second")
    assert labels.failed == (False, True)
    assert labels.tokens is None
    assert labels.annotators == ("ann", "ben")


def test_sets_of_several_annotators_are_refused_like_those_of_one(sample):
    ids = sample.ids.tolist()
    lists = [["x", "y"]] * len(ids)
    table = {"id": ids, "ann": lists, "ben": lists}

    for value in ("ann", "ann,ben"):
        with pytest.raises(LabelError, match="is a list, and answers are not sets of tags"):
            stratal.evaluate(sample, table, value=value)


def test_columns_of_annotators_equal_a_row_for_each_answer(tmp_path, sample):
    ids = sample.ids.tolist()
    ann = ["TODO" if row % 4 == 0 else row % 2 for row in range(len(ids))]
    ben = ["TODO" if row % 5 == 0 else int(row % 3 == 0) for row in range(len(ids))]
    wide = write_columns(tmp_path / "wide.csv", ids, ann=ann, ben=ben)
    annotators = ["ann"] * len(ids) + ["ben"] * len(ids)
    long = write_columns(tmp_path / "long.csv", ids * 2, annotator=annotators, label=ann + ben)
    mapping = {"TODO": None}

    expected = stratal.evaluate(sample, long, mapping=mapping)
    results = [stratal.evaluate(sample, wide, value=v, mapping=mapping) for v in ("ann,ben", ["ben", "ann"])]

    for result in results:
        assert result.estimate.value == pytest.approx(expected.estimate.value)
        assert result.estimate.standard_error == pytest.approx(expected.estimate.standard_error)
