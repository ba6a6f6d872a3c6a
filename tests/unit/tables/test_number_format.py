"""Thousands and decimals: the convention of a file, from all values of all its columns."""

from __future__ import annotations

import pandas as pd
import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.population.inspection import describe_columns
from stratal.tables.number_format import count_formats, file_format
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

    counts = {name: count_formats(entries) for name, entries in {**columns, "label": ["1.234"]}.items()}
    found = file_format(counts, point_may_group_thousands=True)

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

    table = SmallTable.of(path, "labels").with_shares(["score"])

    assert table.numbers("score").tolist() == shares
    assert f"'score' is written as percentages: {entries[0]!r} is read as {shares[0]:g}" in table.notes


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
    assert table.with_shares(["score"]).numbers("score").tolist() == [0.83, 0.7, 0.41, 0.99] * 3
    with pytest.raises(InputError, match="column 'score', line 2 is not usable"):
        table.numbers("score")
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


_DECIMALS = [str((row * 37) % 101 / 100) for row in _ROWS]
_SHARES = _PERCENTAGES["score"]
_UNREADABLE_SCORES = [
    (["0.4", *_SHARES[1:]], "it contains '0.4' next to numbers such as '37%'"),
    ([_SHARES[0], "<1%", *_SHARES[2:]], "it contains '<1%' next to numbers such as '0%'"),
    ([_DECIMALS[0], "12%", *_DECIMALS[2:]], "it contains '12%' next to numbers such as '0.0'"),
    ([_DECIMALS[0], "see text", *_DECIMALS[2:]], "it contains 'see text' next to numbers such as '0.0'"),
    (
        [f"{row % 7},5%" if row % 2 else f"{row % 7}.5%" for row in _ROWS],
        "it contains '1,5%' next to numbers such as '0.5%'",
    ),
    ([f"{row % 11}/10" for row in _ROWS], "its entries, such as '0/10', cannot be read as numbers"),
]


@pytest.mark.parametrize(
    ("entries", "reason"), _UNREADABLE_SCORES, ids=[row[1] for row in _UNREADABLE_SCORES]
)
def test_a_score_that_is_not_readable_as_numbers_is_named_in_a_note(tmp_path, entries, reason):
    path = tmp_path / "rows.csv"
    _write_percentages({**_PERCENTAGES, "score": entries}, path)
    without_labels = {"id": _PERCENTAGES["id"], "score": entries}
    _write_percentages(without_labels, tmp_path / "items.parquet")

    evaluation = stratal.evaluate(path)
    description = describe_columns(tmp_path / "items.parquet")

    assert f"'score' is not used, because {reason}" in str(evaluation)
    assert any(f"'score' is not used, because {reason}" in note for note in description["notes"])


def test_an_entry_after_the_first_rows_is_named_too(tmp_path):
    path = tmp_path / "rows.csv"
    _write_percentages({"id": [f"u{row}" for row in range(1_500)], "score": ["12%"] * 1_499 + ["0.3"]}, path)

    (note,) = describe_columns(path)["notes"]

    assert "it contains '0.3' next to numbers such as '12%'" in note


def test_a_number_among_percentages_that_are_declared_as_scores_is_an_error(tmp_path):
    path = tmp_path / "rows.csv"
    _write_percentages({**_PERCENTAGES, "score": [*_SHARES[:9], "0.3", *_SHARES[10:]]}, path)

    with pytest.raises(InputError, match=r"1 value without a percent sign.*'0.3', id 'u9', line 11"):
        stratal.Population.read(path, proxy="score")


@pytest.mark.parametrize("form", ["{}\uff05", "{}  %", "{}.%", "{}\u00a0%"])
def test_percentages_have_several_forms(tmp_path, form):
    path = tmp_path / "rows.csv"
    _write_percentages({**_PERCENTAGES, "score": [form.format((row * 37) % 101) for row in _ROWS]}, path)

    population = stratal.Population.read(path, proxy="score")

    assert population.distribution().mean == pytest.approx(sum(map(float, _DECIMALS)) / len(_DECIMALS))
    assert stratal.evaluate(path).estimate.estimator == "ppi++"


def test_ratings_in_percent_are_not_compared_with_scores_in_percent():
    """The accuracy of the scores was reported: the share of equal percentages."""
    ratings = [f"{row % 31}%" if row < 60 else None for row in _ROWS]
    table = {"id": _PERCENTAGES["id"], "rating": ratings, "score": _SHARES}

    with pytest.raises(LabelError, match=r"Write shares as numbers, such as 0.83 for 83%"):
        stratal.evaluate(table, value="rating")


def test_every_analysis_of_a_table_reads_scores_in_percent():
    waves = ["a" if row < 120 else "b" for row in _ROWS]
    labels = [int((row * 37) % 101 > 40) if row % 2 else None for row in _ROWS]
    table = {"id": _PERCENTAGES["id"], "label": labels, "score": _SHARES, "wave": waves}
    with_numbers = {**table, "score": list(map(float, _DECIMALS))}

    def results(table):
        threshold = stratal.threshold(table, require="error<=.9", score="score").to_dict()
        trend = stratal.trend(table, wave="wave").to_dict()
        judge = stratal.evaluate({**table, "judge": table["score"]}).to_dict()["judge"]
        return threshold["candidates"], trend["score"], judge

    assert results(table) == results(with_numbers)


@pytest.mark.parametrize("role", ["probability", "feature"])
def test_percentages_in_other_roles_are_shares_with_a_note(role):
    table = {**_PERCENTAGES, "x": ["25%"] * 120 + ["50%"] * 120}

    if role == "feature":
        outcomes = [float(row % 7) if row % 2 else None for row in _ROWS]
        notes = stratal.regress("y ~ x", {"y": outcomes, "x": table["x"]}).notes
    else:
        table["label"] = [str(row % 2) if row % 4 < 2 else None for row in _ROWS]
        notes = stratal.evaluate(table, chosen="probability:x", proxy="none").estimate.notes

    assert "'x' is written as percentages: '25%' is read as 0.25" in notes


def test_sizes_in_percent_are_refused():
    table = {"id": _PERCENTAGES["id"][:60], "label": ["1", "0"] * 30, "group": ["a", "a", "b"] * 20}
    sizes = {"stratum": ["a", "b"], "size": ["40%", "60%"]}

    with pytest.raises(InputError, match=r"given: '40%'; allowed: whole numbers of units"):
        stratal.evaluate(table, sizes=sizes, chosen="random-within:group")


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


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_probabilities_in_percent_are_a_softmax(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    chances = [(row * 37) % 101 for row in _ROWS]
    probabilities = {
        "prob_cat": [f"{chance}%" for chance in chances],
        "prob_dog": [f"{100 - chance}%" for chance in chances],
    }
    _write_percentages({"id": _PERCENTAGES["id"], **probabilities}, path)

    population = stratal.Population.read(path, softmax="prob_*")

    assert describe_columns(path)["softmax"] == "prob_*"
    confidences = [max(chance, 100 - chance) / 100 for chance in chances]
    assert population.distribution().mean == pytest.approx(sum(confidences) / len(confidences))
    assert any("'prob_cat', 'prob_dog' are written as percentages" in note for note in population.notes)


@pytest.mark.parametrize("delimiter", ["\t", "|", ";"])
def test_whole_numbers_next_to_three_decimals_with_zeros_show_thousands(tmp_path, delimiter):
    """Spreadsheets also write tabs: 2.500 next to 900 was read as 2.5 there."""
    entries = ["1.234", "900", "2.500", "1.100"]
    path = tmp_path / "labels.csv"
    path.write_text(f"id{delimiter}label\n" + "".join(f"u{k}{delimiter}{e}\n" for k, e in enumerate(entries)))

    assert SmallTable.of(path, "labels").numbers("label").tolist() == [1234, 900, 2500, 1100]
