"""Thousands and decimals: the convention of a file, from all values of all its columns."""

from __future__ import annotations

import pandas as pd
import pytest

import stratal
from stratal.errors import InputError
from stratal.tables.number_format import column_format
from stratal.tables.small_table import SmallTable


@pytest.mark.parametrize(
    ("entries", "numbers"),
    [
        (["1.234", "900", "2.500", "1.100"], [1234, 900, 2500, 1100]),
        (["1.299,99", "1.299"], [1299.99, 1299]),
        (["1.234.567", "1.234"], [1234567, 1234]),
        (["1.234", "0,5"], [1234, 0.5]),
        (["1,234", "0.5"], [1234, 0.5]),
        (["1,234,567", "1,234"], [1234567, 1234]),
        (["1.234", "0.5"], [1.234, 0.5]),
        (["1.234", "5678"], [1.234, 5678]),
        (["1,234", "12,5", "-3"], [1.234, 12.5, -3]),
        (["-1.234,5", "+2.000"], [-1234.5, 2000]),
        (["1,5e3", "2"], [1500, 2]),
    ],
)
def test_a_column_shows_its_convention(tmp_path, entries, numbers):
    path = tmp_path / "labels.csv"
    path.write_text("id;label\n" + "".join(f"u{k};{entry}\n" for k, entry in enumerate(entries)))

    assert SmallTable.of(path, "labels").numbers("label").tolist() == numbers


@pytest.mark.parametrize(("other", "number"), [("0,5", 1234), ("2.345.678", 1234), ("0.5", 1.234)])
def test_another_column_shows_the_convention_however_late(tmp_path, other, number):
    path = tmp_path / "labels.csv"
    rows = [f"u{k};1.234;7\n" for k in range(1_500)]
    path.write_text("id;label;other\n" + "".join(rows) + f"last;1.234;{other}\n")

    assert set(SmallTable.of(path, "labels").numbers("label").tolist()) == {number}


def test_an_ambiguous_column_is_refused_with_both_readings_where_it_is_used(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id;label;p\na;1.234;1\nb;2.345;0\n")

    with pytest.raises(InputError, match=r"'1.234' in column 'label' may be 1234 or 1.234"):
        stratal.read_labels(path)
    with pytest.raises(InputError, match=r"'1.234' in column 'label' may be 1234 or 1.234"):
        stratal.Population.read(path, proxy="label")
    assert stratal.read_labels(path, value="p").values == ("1", "0")


def test_files_with_commas_or_tabs_between_columns_have_decimal_points(tmp_path):
    for name, mark in (("labels.csv", ","), ("labels.tsv", "\t")):
        path = tmp_path / name
        path.write_text(f"id{mark}label\na{mark}1.234\nb{mark}2.345\n")
        assert SmallTable.of(path, "labels").numbers("label").tolist() == [1.234, 2.345]


def test_what_is_no_column_of_numbers_shows_nothing():
    columns = {"a": ["1.234", "x", "y"], "date": ["12.03.2024"], "version": ["1.2.3"], "unit_id": ["0,5"]}

    found = column_format({**columns, "label": ["1.234"]}, may_group=True)

    assert not found.decimals
    assert list(found.ambiguous) == ["label"]


def test_the_note_names_the_column_and_an_entry(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id;label\na;1.234,5\nb;900\n")

    notes = SmallTable.of(path, "labels").notes

    assert "point between thousands; for example, '1.234,5' is read as 1234.5" in "".join(notes)


@pytest.mark.parametrize("mark", [";", ",", "\t", "|"])
def test_the_first_line_may_name_the_delimiter(tmp_path, mark):
    path = tmp_path / "labels.csv"
    path.write_text(f"sep={mark}\r\nid{mark}label\r\na{mark}1\r\nb{mark}0\r\n")

    table = SmallTable.of(path, "labels")

    assert (table.columns["id"], table.places) == (["a", "b"], ("line 3", "line 4"))
    assert any("names the delimiter" in note for note in table.notes)
    assert stratal.Population.read(path, proxy="label").size == 2


@pytest.mark.parametrize("name", ["f.csv", "f.jsonl", "f.parquet"])
def test_truth_values_are_numbers_from_every_file(tmp_path, name):
    path = tmp_path / name
    if name == "f.parquet":
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"id": ["a", "b"], "flag": [True, False]}), path)
    else:
        path.write_text(
            "id,flag\na,True\nb,false\n"
            if name == "f.csv"
            else '{"id": "a", "flag": true}\n{"id": "b", "flag": false}\n'
        )

    assert stratal.Population.read(path, proxy="flag").distribution().mean == 0.5
    assert stratal.Population.read(path, proxy="flag", missing="own-stratum").distribution().mean == 0.5


@pytest.mark.parametrize(
    "name", ["~/x.csv", "file:x.csv", "a\\b.csv", "a:b.csv", "x[1].csv", "~x/y\\*.jsonl"]
)
def test_names_mean_the_same_file_to_every_reader(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    decoys = [tmp_path / "home" / "x.csv", tmp_path / "x.csv", tmp_path / "a" / "b.csv"]
    for decoy in decoys:
        decoy.parent.mkdir(exist_ok=True)
        decoy.write_text("id,score\nother,0.9\n")
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"id": "a", "score": 0.1}\n' if name.endswith("jsonl") else "id,score\na,0.1\n")

    assert stratal.Population.read(name, proxy="score").distribution().mean == 0.1
    assert SmallTable.of(name, "labels").columns["id"] == ["a"]


def test_the_home_folder_and_file_addresses_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "my units.csv").write_text("id,score\na,0.1\n")

    for name in ("~/my units.csv", f"file://{tmp_path}/my%20units.csv", f"file:{tmp_path}/my units.csv"):
        assert stratal.Population.read(name, proxy="score").size == 1
        assert SmallTable.of(name, "labels").columns["id"] == ["a"]


@pytest.mark.parametrize(
    ("delimiter", "entries", "shares"),
    [
        (",", ["83%", "7.5%", "0%", "100%"], [0.83, 0.075, 0.0, 1.0]),
        (";", ["83,2 %", "7\u00a0%", "-1,5%"], [0.832, 0.07, -0.015]),
        ("\t", ["57.9%", "0.3%"], [0.579, 0.003]),
    ],
)
def test_a_column_of_percentages_contains_shares(tmp_path, delimiter, entries, shares):
    path = tmp_path / "labels.csv"
    rows = "".join(f"u{k}{delimiter}{entry}\n" for k, entry in enumerate(entries))
    path.write_text(f"id{delimiter}score\n{rows}", encoding="utf-8")

    table = SmallTable.of(path, "labels")

    assert table.numbers("score").tolist() == shares
    assert f"'score' is written as percentages: {entries[0]!r} is read as {shares[0]:g}" in (
        table.percentage_notes(["score"])
    )


@pytest.mark.parametrize(
    "entries", [["83%", "0.9"], ["83%", "7,5%", "7.5%"], ["83%", "high"], ["100% wool", "50% off"]]
)
def test_other_entries_next_to_percentages_are_left_alone(tmp_path, entries):
    path = tmp_path / "labels.csv"
    path.write_text("id;score\n" + "".join(f"u{k};{entry}\n" for k, entry in enumerate(entries)))

    assert SmallTable.of(path, "labels").columns["score"] == entries


def test_percentages_stay_text_unless_they_are_declared_to_be_numbers(tmp_path):
    path = tmp_path / "answers.csv"
    rows = [("10%", "25%", "83%"), ("25%", "25%", "70%"), ("50%", "10%", "41%"), ("10%", "10%", "99%")] * 3
    lines = [f"u{row},{','.join(entries)}" for row, entries in enumerate(rows)]
    path.write_text("id,discount,rebate,score\n" + "\n".join(lines) + "\n")

    table = SmallTable.of(path, "answers")
    population = stratal.Population.read(path, proxy="discount", groups="rebate")

    assert table.columns["discount"] == ["10%", "25%", "50%", "10%"] * 3
    assert table.columns["score"] == ["83%", "70%", "41%", "99%"] * 3
    assert table.numbers("score").tolist() == [0.83, 0.7, 0.41, 0.99] * 3
    drawn = stratal.designs.SimpleRandom(budget=12).draw(population, seed=1)
    assert sorted(drawn.proxies[:, 0].tolist()) == [0.1] * 6 + [0.25] * 3 + [0.5] * 3
    assert set(drawn.groups["rebate"].tolist()) == {"10%", "25%"}
    assert stratal.evaluate(path, predicted="discount", value="rebate").estimate.value == 0.5


# A class, an answer, and a score in percent: the labels are of the first 60 rows.
_CLASSES = ("10%", "25%", "50%")
_ROWS = range(240)
_PERCENTAGES = {
    "id": [f"u{row}" for row in _ROWS],
    "score": [f"{(row * 37) % 101}%" for row in _ROWS],
    "label": [str(int((row * 37) % 101 > 50)) if row < 60 else None for row in _ROWS],
}


def _write_percentages(columns, path):
    frame = pd.DataFrame(columns)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif path.suffix == ".xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        frame.to_parquet(path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "xlsx", "parquet"])
def test_every_format_gives_the_same_estimate_from_percentages(tmp_path, suffix):
    shares = [(row * 37) % 101 / 100 for row in _ROWS]
    path = tmp_path / f"rows.{suffix}"
    _write_percentages(_PERCENTAGES, path)
    note = "'score' is written as percentages: '0%' is read as 0"

    expected = stratal.evaluate(pd.DataFrame({**_PERCENTAGES, "score": shares})).estimate
    of_file = stratal.evaluate(path).estimate
    of_frame = stratal.evaluate(pd.DataFrame(_PERCENTAGES)).estimate
    population = stratal.Population.read(path, proxy="score")

    for estimate in (of_file, of_frame):
        assert estimate.value == pytest.approx(expected.value)
        interval = estimate.confidence_interval(0.95)
        assert [*interval] == pytest.approx([*expected.confidence_interval(0.95)])
        assert note in estimate.notes
    assert population.distribution().mean == pytest.approx(sum(shares) / len(shares))
    assert note in population.notes
    framed = stratal.Population.from_table(pd.DataFrame(_PERCENTAGES), proxy="score")
    assert framed.distribution().mean == population.distribution().mean


def test_a_number_among_percentages_is_named_in_a_note(tmp_path):
    path = tmp_path / "rows.csv"
    _write_percentages({**_PERCENTAGES, "score": ["0.4", *_PERCENTAGES["score"][1:]]}, path)

    evaluation = stratal.evaluate(path)

    assert "'score' is not used, because '0.4' has no percent sign" in str(evaluation)


@pytest.mark.parametrize("name", ["discount", "judge", "topic", "confidence"])
def test_classes_in_percent_are_classes_under_any_name(tmp_path, name):
    path = tmp_path / "rows.csv"
    answers = [_CLASSES[row % 3] for row in _ROWS]
    labels = [_CLASSES[row % 3 - (row % 10 == 0)] for row in _ROWS]
    _write_percentages({"id": _PERCENTAGES["id"], name: answers, "truth": labels}, path)

    evaluation = stratal.evaluate(path, predicted=name, value="truth")

    assert evaluation.estimate.value == pytest.approx(0.9)
    by_group = stratal.evaluate(path, predicted="truth", value=name, by=name)
    assert "10%" in str(by_group)
    assert "0.1" not in str(by_group).split()
