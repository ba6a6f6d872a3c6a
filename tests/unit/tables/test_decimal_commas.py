"""Files of a spreadsheet that writes 0,5 for a half: read where nothing else can be meant, and said."""

from __future__ import annotations

import pytest

import stratal
from stratal.errors import InputError
from stratal.tables.small_table import SmallTable

ROWS = "unit;kind;score\n1,1;a;0,25\n1,2;b;1\n1,3;a;0,5\n;;\n"


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_population_is_read_with_decimal_commas_and_its_ids_stay(tmp_path, mark):
    path = tmp_path / "rows.csv"
    path.write_text(ROWS.replace(";", mark))

    population = stratal.Population.read(path, id="unit", proxy="score", groups="kind", delimiter=mark)

    drawn = stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)
    scores = dict(zip(drawn.ids.tolist(), drawn.proxies[:, 0].tolist(), strict=True))
    assert scores == {"1,1": 0.25, "1,2": 1.0, "1,3": 0.5}
    assert "'score' is written with a decimal comma; for example, '0,25' is read as 0.25" in population.notes


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_table_of_labels_is_read_with_decimal_commas(tmp_path, mark):
    path = tmp_path / "rows.csv"
    path.write_text(ROWS.replace("unit", "id").replace(";", mark))

    table = SmallTable.of(path, "labels")

    assert table.numbers("score").tolist() == [0.25, 1.0, 0.5]
    assert table.texts("id").tolist() == ["1,1", "1,2", "1,3"]
    assert any("decimal comma" in note for note in table.notes)


@pytest.mark.parametrize("made", ["population", "labels"])
def test_a_workbook_is_read_with_decimal_commas_that_were_typed_as_text(tmp_path, made):
    workbook = pytest.importorskip("openpyxl").Workbook()
    for row in (["Nr", "Text", "score"], [1, "a", "0,25"], [2, "b", 1], [3, None, None], [4, "d", "0,5"]):
        workbook.active.append(row)
    workbook.save(tmp_path / "rows.xlsx")

    if made == "labels":
        table = SmallTable.of(tmp_path / "rows.xlsx", "labels")
        assert (table.columns["score"], table.columns["Nr"]) == (
            ["0.25", "1", None, "0.5"],
            ["1", "2", "3", "4"],
        )
        notes = table.notes
    else:
        path = tmp_path / "rows.xlsx"
        population = stratal.Population.read(path, id="Nr", proxy="score", missing="own-stratum")
        assert population.size == 4
        notes = population.notes
    assert "'score' is written with a decimal comma; for example, '0,25' is read as 0.25" in notes


@pytest.mark.parametrize(
    ("entries", "read"), [(["1,234", "2,500"], ["1,234", "2,500"]), (["1,234", "2,5"], ["1.234", "2.5"])]
)
def test_commas_of_a_workbook_that_may_group_thousands_are_left_alone(tmp_path, entries, read):
    workbook = pytest.importorskip("openpyxl").Workbook()
    for row in ("n", *entries):
        workbook.active.append([row])
    workbook.save(tmp_path / "rows.xlsx")

    assert SmallTable.of(tmp_path / "rows.xlsx", "labels").columns["n"] == read


@pytest.mark.parametrize("entries", [["0,5", "x"], ["0,5", "0.5"], ["1", "2"], ["a,b"], ["5,1 %", "5"]])
def test_what_could_mean_something_else_is_left_alone(tmp_path, entries):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["score;n", *(f"{entry};" for entry in entries)]))

    table = SmallTable.of(path, "labels")

    assert (table.columns["score"], table.notes) == (entries, ())


def test_a_later_row_that_is_no_number_is_refused_as_it_is_written(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id;score\n" + "".join(f"u{n};0,5\n" for n in range(1200)) + "last;1,2,3\n")

    with pytest.raises(InputError, match="'1,2,3', id 'last'"):
        stratal.Population.read(path, proxy="score")
