"""Files: what is read, and what is refused by one error that names the place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import InputError, LabelError
from stratal.population import Population
from stratal.population.inspection import describe_columns
from stratal.strata import Everything
from stratal.tables.readers import open_table
from stratal.tables.source import EveryColumn


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, newline="")
    return path


def parquet(folder: Path, name: str = "rows.parquet", **columns: Any) -> Path:

    path = folder / name
    pq.write_table(pa.table(columns), path)
    return path


def refusal(*arguments: Any, **keywords: Any) -> str:
    with pytest.raises(InputError) as caught:
        Population.read(*arguments, **keywords)
    return str(caught.value)


def drawn(population: Population) -> Any:
    return population.units_with_smallest_keys(Everything(), np.array([population.size]), 1)


# ---- what is read


def test_ids_of_text_files_are_text(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "id,proxy\n007,0.5\n1e3,0.25\n123456789012345678901234,1\n")
    assert set(drawn(Population.read(path, proxy="proxy")).ids) == {"007", "1e3", "123456789012345678901234"}


@pytest.mark.parametrize(
    "text",
    [
        "id,proxy,note\r\na,0.5,x\r\nb,0.25,y\r\n",
        "\ufeffid,proxy,note\na,0.5,x\nb,0.25,y\n",
        'id,proxy,note\na,0.5,x\n"b",0.25,"y"',
        "id,proxy,note\n\na,0.5,x\n\nb, 0.25 ,y\n\n",
        "id,proxy,note\ra,0.5,x\rb,0.25,y\r",
        "\n\nid,proxy,note\na,0.5,x\nb,0.25,y\n",
    ],
)
def test_ways_to_write_csv(tmp_path: Path, text: str) -> None:
    population = Population.read(write(tmp_path, "rows.csv", text), proxy="proxy", show="note")
    units = drawn(population)

    assert dict(zip(units.ids, units.proxies[:, 0], strict=True)) == {"a": 0.5, "b": 0.25}
    assert dict(zip(units.ids, units.shown["note"], strict=True)) == {"a": "x", "b": "y"}


def test_quoted_fields_hold_delimiters_quotes_and_line_breaks(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", 'id,proxy,note\n"a,1",0.5,"say ""so""\nand so"\n')
    units = drawn(Population.read(path, proxy="proxy", show="note"))

    assert units.ids.tolist() == ["a,1"]
    assert units.shown["note"].tolist() == ['say "so"\nand so']


def test_columns_that_differ_in_case_are_told_apart(tmp_path: Path) -> None:
    text = write(tmp_path, "rows.csv", "ID,id,proxy,Proxy\nx,a,0.5,7\ny,b,0.25,8\n")
    stored = parquet(tmp_path, ID=["x", "y"], id=["a", "b"], proxy=[0.5, 0.25], Proxy=[7.0, 8.0])
    for path in (text, stored):
        assert set(drawn(Population.read(path, proxy="proxy")).ids) == {"a", "b"}
        capital = drawn(Population.read(path, id="ID", proxy="Proxy", scaled=False))
        assert dict(zip(capital.ids, capital.proxies[:, 0], strict=True)) == {"x": 7.0, "y": 8.0}


def test_wildcards_in_a_name_are_letters(tmp_path: Path) -> None:
    for name in ("ab.csv", "a*.csv", "a?.csv", "[ab].csv"):
        write(tmp_path, name, f"id,proxy\n{name},0.5\n")
    for name in ("a*.csv", "a?.csv", "[ab].csv"):
        assert drawn(Population.read(tmp_path / name, proxy="proxy")).ids.tolist() == [name]


@pytest.mark.parametrize("name", ["[a] b:c.csv", "a[1]:x.jsonl", "[a]:b.parquet"])
def test_wildcards_beside_a_colon_in_a_name_are_letters(tmp_path: Path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    if name.endswith(".parquet"):
        parquet(tmp_path, name, id=["u"], proxy=[0.5])
    else:
        write(tmp_path, name, "id,proxy\nu,0.5\n" if ".csv" in name else '{"id": "u", "proxy": 0.5}')

    assert Population.read(name, proxy="proxy").size == 1


def test_json_values_are_read_as_text_and_numbers(tmp_path: Path) -> None:
    records = [{"id": 7, "proxy": 0.5, "g": True}, {"id": "b", "proxy": 1, "g": 2.0}]
    path = write(tmp_path, "rows.ndjson", "\n\n".join(map(json.dumps, records)))
    population = Population.read(path, proxy="proxy", groups="g")

    assert set(drawn(population).ids) == {"7", "b"}
    assert population.levels("g") == {"2": 1, "True": 1}


def test_a_format_can_be_said(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.data", '{"id": 1, "proxy": 0.5}\n')
    assert Population.read(path, proxy="proxy", format="jsonl").size == 1


def test_parts_with_keys_in_their_folders(tmp_path: Path) -> None:
    for language in ("de", "en"):
        (tmp_path / f"language={language}").mkdir()
        parquet(tmp_path / f"language={language}", "part-0.parquet", id=[f"{language}1"], proxy=[0.5])
    population = Population.read(tmp_path, proxy="proxy", groups="language", directory=True)

    assert population.levels("language") == {"de": 1, "en": 1}


def test_the_id_defaults_to_a_usual_name(tmp_path: Path) -> None:
    path = parquet(tmp_path, proxy=[0.5], item_id=["a"])
    assert Population.read(path, proxy="proxy").id_name == "item_id"


def test_files_too_large_to_keep_are_parsed_by_each_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stratal.tables.source.MAX_STORED_BYTES", 10)
    monkeypatch.setattr("stratal.tables.source.MAX_MEMORY_ROWS", 1)
    path = write(tmp_path, "rows.csv", "id,proxy\na,0.5\nb,0.25\n")
    population = Population.read(path, proxy="proxy")
    assert population.distribution().values.tolist() == [0.25, 0.5]

    write(tmp_path, "rows.csv", 'id,proxy\na,"0.5\nb,0.25\n')
    with pytest.raises(InputError, match="cannot be read"):
        drawn(population)


def test_blank_lines_are_no_units(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "id\na\n\nb\n\n")
    assert set(drawn(Population.read(path)).ids) == {"a", "b"}


def test_keys_of_any_text(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.jsonl", json.dumps({"i d": 1, "a'b": 0.5, 'a"b': 0.25}))
    assert drawn(Population.read(path, id="i d", proxy=["a'b", 'a"b'])).proxies.tolist() == [[0.5, 0.25]]


def test_uuids_of_parquet_are_text(tmp_path: Path) -> None:
    import uuid

    import duckdb

    ids = [uuid.UUID(int=2**100), uuid.UUID(int=5)]
    column = pa.array([entry.bytes for entry in ids], pa.uuid())
    duckdb.sql("SELECT unnest(?::UUID[]) AS id", params=[ids]).write_parquet(str(tmp_path / "uuids.parquet"))
    for population in (
        Population.read(tmp_path / "uuids.parquet"),
        Population.from_table(pa.table({"id": column})),
    ):
        assert set(drawn(population).ids) == set(map(str, ids))


# ---- what is refused


def test_no_such_file(tmp_path: Path) -> None:
    write(tmp_path, "predictions.csv", "id\n")
    message = refusal(tmp_path / "prediction.csv", proxy="proxy")
    assert "no such file" in message


def test_what_is_not_a_regular_file(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "rows.csv")
    assert "not a regular file" in refusal(tmp_path / "rows.csv", proxy="proxy")


def test_a_directory_is_asked_for(tmp_path: Path) -> None:
    assert "directory=True" in refusal(tmp_path, proxy="proxy")
    assert "contains no Parquet file" in refusal(tmp_path, proxy="proxy", directory=True)
    assert "is not a directory" in refusal(write(tmp_path, "a.csv", ""), proxy="proxy", directory=True)


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.csv.gz"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"" if not name.endswith(".gz") else gzip.compress(b""))
    assert "is empty" in refusal(tmp_path / name, proxy="proxy")


def test_no_rows(tmp_path: Path) -> None:
    assert "has no rows" in refusal(write(tmp_path, "rows.csv", "id,proxy\n"), proxy="proxy")
    assert "has no rows" in refusal(
        parquet(tmp_path, id=np.array([], str), proxy=np.array([])), proxy="proxy"
    )


@pytest.mark.parametrize("data", [b"", b"PAR1 and then nothing", b"id,proxy\n1,0.5\n"])
def test_no_parquet(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "rows.parquet").write_bytes(data)
    assert "rows.parquet cannot be read" in refusal(tmp_path / "rows.parquet", proxy="proxy")


def test_truncated_files(tmp_path: Path) -> None:
    whole = parquet(tmp_path, id=np.arange(5000), proxy=np.random.default_rng(0).random(5000)).read_bytes()
    for keep in (len(whole) // 2, len(whole) - 5):
        (tmp_path / "rows.parquet").write_bytes(whole[:keep])
        assert "rows.parquet cannot be read" in refusal(tmp_path / "rows.parquet", proxy="proxy")
    text = "".join(f"{i},0.5\n" for i in range(20_000))
    packed = gzip.compress(f"id,proxy\n{text}".encode())
    (tmp_path / "rows.csv.gz").write_bytes(packed[: len(packed) // 2])
    assert "rows.csv.gz cannot be read" in refusal(tmp_path / "rows.csv.gz", proxy="proxy")
    (tmp_path / "rows.csv.gz").write_bytes(text.encode())
    assert "rows.csv.gz cannot be read" in refusal(tmp_path / "rows.csv.gz", proxy="proxy")


def test_damaged_parquet_pages(tmp_path: Path) -> None:
    path = parquet(tmp_path, id=np.arange(50_000), proxy=np.random.default_rng(0).random(50_000))
    data = bytearray(path.read_bytes())
    data[2000:4000] = bytes(2000)
    path.write_bytes(data)
    assert "rows.parquet" in refusal(path, proxy="proxy")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('id,proxy\n1,"0.5\n2,0.5\n', "unterminated quote"),
        ("id,proxy\n1,0.5\n2", "Line: 3"),
        ("id,proxy\n1,0.5,9\n", "Line: 2"),
    ],
)
def test_broken_csv(tmp_path: Path, text: str, words: str) -> None:
    message = refusal(write(tmp_path, "rows.csv", text), proxy="proxy")
    assert "rows.csv cannot be read" in message
    assert words in message
    assert "strict_mode" not in message


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    for header in ("id,proxy,näme", "id,proxy,name"):
        (tmp_path / "rows.csv").write_bytes(f"{header}\n1,0.5,é\n".encode("latin-1"))
        assert "rows.csv cannot be read" in refusal(tmp_path / "rows.csv", proxy="proxy", id="id")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"id": 1, "proxy": 0.5}\n{"id": 2, "pro', "line 2"),
        ("id,proxy\n1,0.5\n", "line 1 is not JSON"),
        ("[1, 2]\n", "line 1 is not a JSON object"),
    ],
)
def test_broken_json_lines(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(write(tmp_path, "rows.jsonl", text), proxy="proxy")


def test_json_broken_far_down(tmp_path: Path) -> None:
    lines = [json.dumps({"id": number, "proxy": 0.5}) for number in range(1500)]
    text = "\n".join([*lines, '{"id": 1500, "pro'])
    assert "rows.jsonl cannot be read" in refusal(write(tmp_path, "rows.jsonl", text), proxy="proxy")


def test_unknown_formats_and_delimiters(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.ods", "id,proxy\n1,0.5\n")
    assert ".parquet" in refusal(path, proxy="proxy")
    assert "no such file format" in refusal(path, proxy="proxy", format="excel")
    assert "delimiter" in refusal(path, proxy="proxy", format="csv", delimiter="||")


# ---- where it went wrong


def test_the_line_of_a_bad_value_is_named(tmp_path: Path) -> None:
    text = 'id,proxy,note\n\na,0.5,"two\nlines"\nb,much,\nc,"",\nd,nan,\ne,-inf,\n'
    path = write(tmp_path, "rows.csv", text)
    assert "1 missing value (first: id 'c', line 6" in refusal(path, proxy="proxy")

    path = write(tmp_path, "rows.csv", text.replace('c,"",\n', ""))
    message = refusal(path, proxy="proxy")
    assert "column 'proxy' holds 1 value that is not a number (first: 'much', id 'b', line 5" in message

    path = write(
        tmp_path, "rows.csv", text.replace('c,"",\n', "").replace("much", "1").replace(",-inf", ",NaN")
    )
    assert "2 values that are NaN (first: 'nan', id 'd', line 6" in refusal(path, proxy="proxy")

    path = write(tmp_path, "rows.csv", "id,proxy\na,0.5\nb,-inf\nc,1e999\n")
    assert "2 values that are infinite (first: '-inf', id 'b', line 3" in refusal(path, proxy="proxy")


def test_the_line_of_a_bad_json_value_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.jsonl", '{"id": 1, "proxy": 0.5}\n\n{"id": 2, "proxy": NaN}\n{"id": 3}\n')
    assert "1 missing value (first: id '3', line 4" in refusal(path, proxy="proxy")


def test_missing_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", 'id,proxy\na,0.5\n  ,0.5\n"",0.5\n,0.5\n')
    assert "column 'id' holds 3 missing ids (first: '  ', line 3" in refusal(path, proxy="proxy")


def test_duplicated_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "id,proxy\nb,0.5\na,0.5\nb,0.1\nb,0.2\n")
    assert "2 ids are duplicated (first: 'b')" in refusal(path, proxy="proxy")
    path = parquet(tmp_path, id=[4, 5, 5], proxy=[0.1, 0.2, 0.3])
    assert "1 id is duplicated (first: '5')" in refusal(path, proxy="proxy")


def test_missing_categories(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "id,proxy,g\na,0.5,x\nb,0.5,\n")
    message = refusal(path, proxy="proxy", groups="g")
    assert "group column 'g' holds 1 missing value (first: id 'b', line 3" in message


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "key,proxy,proxy\na,0.5,0.5\n")
    assert "no column is called 'id'" in refusal(path, proxy="proxy")
    assert "2 columns are called 'proxy'" in refusal(path, id="key", proxy="proxy")
    message = refusal(path, id="kei", proxy="proxy")
    assert "no such column: 'kei'" in message
    assert "'key'" in message


def test_rows_of_parquet_are_numbered(tmp_path: Path) -> None:
    path = parquet(tmp_path, id=["a", "b", "c"], proxy=[0.5, None, 0.5])
    assert "1 missing value (first: id 'b', row 2" in refusal(path, proxy="proxy")


def test_types_that_cannot_be(tmp_path: Path) -> None:
    import datetime

    day = datetime.date(2024, 1, 1)
    path = parquet(tmp_path, id=["a"], data=[b"x"], day=[day], text=["0.5"], half=[1.5])
    assert "unsupported type for ids" in refusal(path, id="data")
    assert "unsupported type for ids" in refusal(path, id="day")
    assert "1 id of an unsupported type (first: 1.5" in refusal(path, id="half")
    assert "column 'text' is not numeric" in refusal(path, proxy="text")
    assert Population.read(path, groups="day").levels("day") == {"2024-01-01": 1}


# ---- what was read wrongly, or by a traceback


def test_every_cut_of_a_packed_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"id,proxy\n" + b"".join(b"u%d,0.%d\n" % (i, i) for i in range(60)))
    path = tmp_path / "rows.csv.gz"
    step = sized(7, 1)  # and the last byte, without which all of the text is there
    for length in [*range(0, len(whole), step), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refusal(path, proxy="proxy")


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.jsonl.gz"])
def test_a_changed_packed_file_is_refused_or_the_same(tmp_path: Path, name: str) -> None:
    lines = [f"u{i},0.{i}" for i in range(40)]
    objects = [json.dumps({"id": f"u{i}", "proxy": float(f"0.{i}")}) for i in range(40)]
    text = "\n".join(["id,proxy", *lines] if name == "rows.csv.gz" else objects)
    whole, path = gzip.compress(text.encode(), mtime=0), tmp_path / name
    path.write_bytes(whole)
    expected = drawn(Population.read(path, proxy="proxy"))
    accepted = 0
    for place in range(0, len(whole), sized(9, 3)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        try:
            found = drawn(Population.read(path, proxy="proxy"))
        except InputError:
            continue
        accepted += 1
        assert found.ids.tolist() == expected.ids.tolist()
        assert np.array_equal(found.proxies, expected.proxies)
    assert accepted < 6  # only time and flags of the header may differ


@pytest.mark.parametrize("text", ["1_0", "1__0", "_1", "1_"])
def test_an_underscore_is_in_no_number(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "rows.csv", f"id,proxy\na,{text}\nb,0.5\n")
    assert "not a number" in refusal(path, proxy="proxy")
    lines = write(tmp_path, "rows.jsonl", f'{{"id": "a", "proxy": "{text}"}}\n{{"id": "b", "proxy": 0.5}}\n')
    assert "not a number" in refusal(lines, proxy="proxy")


def test_json_lines_with_a_byte_order_mark(tmp_path: Path) -> None:
    text = '{"id": "a", "proxy": 0.5}\n{"id": "ä", "proxy": 0.25}\n'
    (tmp_path / "rows.jsonl").write_text(text, encoding="utf-8-sig")
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt", encoding="utf-8-sig") as stream:
        stream.write(text)
    for name in ("rows.jsonl", "rows.jsonl.gz"):
        units = drawn(Population.read(tmp_path / name, proxy="proxy"))
        assert dict(zip(units.ids, units.proxies[:, 0], strict=True)) == {"a": 0.5, "ä": 0.25}


def test_a_text_of_three_million_characters_is_read(tmp_path: Path) -> None:
    text = "x" * 3_000_000
    for name, rows in {
        "rows.csv": f"id,proxy,note\na,0.5,{text}\n",
        "rows.jsonl": json.dumps({"id": "a", "proxy": 0.5, "note": text}),
    }.items():
        units = drawn(Population.read(write(tmp_path, name, rows), proxy="proxy", show="note"))
        assert units.shown["note"][0] == text


def test_a_line_without_end_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b"id,proxy\na,")
        for _ in range(100):
            stream.write(bytes(2**20))
    assert "a line is too long" in refusal(path, proxy="proxy")
    assert "a line is too long" in refusal(write(tmp_path, "rows.csv", "x" * (2**24 + 2)), proxy="proxy")


@pytest.mark.parametrize("value", ["[" * 50_000 + "]" * 50_000, "9" * 5000], ids=["nested", "digits"])
def test_json_that_python_cannot_hold_is_one_message(tmp_path: Path, value: str) -> None:
    path = write(tmp_path, "rows.jsonl", f'{{"id": "a", "proxy": {value}}}\n')
    assert "line 1 is not JSON" in refusal(path, proxy="proxy")


def test_ids_and_categories_with_nul_are_refused_when_drawn(tmp_path: Path) -> None:
    path = parquet(tmp_path, id=["a", "a\0"], proxy=[0.5, 0.5], group=["x", "x\0"])
    population = Population.read(path, proxy="proxy", groups="group")
    with pytest.raises(InputError, match="NUL"):
        population.levels("group")
    with pytest.raises(InputError, match="NUL"):
        drawn(population)


# ---- as people have them


def test_blank_rows_are_left_out_and_said(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "id,proxy,note\na,0.5,x\n,,\n , ,\nb,0.25,y\n")
    population = Population.read(path, proxy="proxy")
    assert set(drawn(population).ids) == {"a", "b"}
    assert population.notes == (f"{path}: 2 blank rows were left out",)


def test_a_row_that_holds_something_is_not_blank(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "id,proxy,note\na,0.5,x\n,,\n,,total\n")
    assert "1 missing id (first: line 4" in refusal(path, proxy="proxy")


@pytest.mark.parametrize("names", ["ID,Proxy", "Item_ID,PROXY", " id , proxy "])
def test_columns_are_found_without_regard_to_case(tmp_path: Path, names: str) -> None:
    path = write(tmp_path, "rows.csv", f"{names}\na,0.5\n")
    assert Population.read(path, proxy="proxy").size == 1


def test_columns_that_differ_by_case_are_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "id,Proxy,PROXY\na,0.5,2\n")
    assert "no such column: 'proxy'" in refusal(path, proxy="proxy")
    assert Population.read(path, proxy="PROXY").proxy_names == ("PROXY",)


def test_a_workbook_reads_as_its_csv(tmp_path: Path) -> None:
    import datetime

    import openpyxl

    book = openpyxl.Workbook()
    page = book.active
    page.title = "Predictions"
    page.append(["id", "proxy", "when"])
    rows = [("0415", 0.5), (1336, 0.25), (1e15, 1), ("x", 0)]
    for name, proxy in rows:
        page.append([name, proxy, datetime.date(2026, 3, 1)])
        page.append([None, None, None])
    book.create_sheet("Notes").append(["read me"])
    path = tmp_path / "rows.xlsx"
    book.save(path)

    population = Population.read(path, proxy="proxy", groups="when")

    assert set(drawn(population).ids) == {"0415", "1336", "1000000000000000", "x"}
    assert population.levels("when") == {"2026-03-01": 4}
    assert "'Predictions' was read" in population.notes[0]
    assert "4 blank rows" in population.notes[1]


def test_a_bad_cell_of_a_workbook_is_named_by_its_row(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["id", "proxy"], ["a", 0.5], [None, None], ["b", "much"]):
        book.active.append(row)
    path = tmp_path / "rows.xlsx"
    book.save(path)

    assert "(first: 'much', id 'b', row 4" in refusal(path, proxy="proxy")


def test_a_hugging_face_dataset_is_a_table() -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"id": ["a", "b", "c"], "judge": [{"score": n / 4} for n in range(3)]})

    population = Population.from_table(rows.select([2, 0]), proxy="judge.score")

    assert set(drawn(population).ids) == {"a", "c"}
    splits = datasets.DatasetDict({"train": rows, "test": rows})
    with pytest.raises(InputError, match=r"several splits.*dataset\['test'\]"):
        Population.from_table(splits, proxy="judge.score")


@pytest.mark.parametrize("value", ["0,9%", "90 %", "90,5%"])
def test_percentages_are_shares(tmp_path, value):
    path = tmp_path / "excel.csv"
    path.write_text(f"id;score\na;{value}\nb;{value}\n", encoding="utf-8-sig")

    population = Population.read(path, proxy="score")

    share = float(value.rstrip("% ").replace(",", ".")) / 100
    assert drawn(population).proxies.ravel().tolist() == pytest.approx([share, share])
    assert f"'score' is written as percentages: {value!r} is read as {share:g}" in population.notes


@pytest.mark.parametrize("value", ["0,9%", "90 %", "90,5%"])
def test_percentages_next_to_other_numbers_are_called_so(tmp_path, value):
    path = tmp_path / "excel.csv"
    path.write_text(f"id;score\na;{value}\nb;0.5\n", encoding="utf-8-sig")

    with pytest.raises(InputError, match="written with a decimal comma or a percent sign") as raised:
        Population.read(path, proxy="score")
    assert "Write the numbers with a decimal point" in str(raised.value)


@pytest.mark.parametrize("blank", ["", "," * 10 + "\n"])
def test_a_wide_text_file_read_by_groups_of_columns_is_the_same(tmp_path, monkeypatch, blank) -> None:
    """10,000 columns at once took more memory than the engine may use."""
    digits = np.random.default_rng(0).integers(0, 9, (50, 11)).astype("U3")
    digits[:, 0] = [f"1{row:02}" for row in range(50)]
    names = [f"c{number}" for number in range(11)]
    lines = [",".join(names), *map(",".join, digits)]
    path = write(tmp_path, "wide.csv", "\n".join(lines) + "\n" + blank)

    def look() -> Any:
        population = drawn(Population.read(path, id="c0", features=names))
        return describe_columns(path), {name: column.tolist() for name, column in population.features.items()}

    once = look()
    monkeypatch.setattr("stratal.tables.source._MAX_QUERY_COLUMNS", 3)
    monkeypatch.setattr("stratal.population.inspection._MAX_QUERY_COLUMNS", 3)

    assert look() == once


def test_blank_rows_of_a_wide_text_file_are_left_out(tmp_path) -> None:
    """The expression that found them was as deep as the file has columns."""
    columns = 1_500
    header, full = ",".join(f"c{number}" for number in range(columns)), "," * (columns - 1)
    path = write(tmp_path, "wide.csv", f"{header}\na{full}\n{full}\n{full} \n{full}9\n")

    found = describe_columns(path)

    assert found["rows"] == 2
    assert "2 blank rows were left out" in found["notes"][0]


@pytest.mark.parametrize("rows", [0, 1, 3_000])
def test_json_lines_of_many_keys_are_read_as_those_of_few(tmp_path, monkeypatch, rows) -> None:
    odd: list[list[Any]] = [
        ["text", 'quo"ted\\', " 1 ", "", "null", "[1]", "é\n"],
        [0.5, 1.0, 1e15, -0.0, 12345678901234567890, 1234.5, 0.1000],
        [True, False, None, "True", 1, "1.0", 0],
        [{"b": 1, "c": [1.0, None]}, {"b": None}, None, [1, 2.50], {"b": {"d": True}}, "x", {"b": "y"}],
    ]
    lines = [{f"k {number}": kind[row % 7] for number, kind in enumerate(odd)} for row in range(max(rows, 7))]
    path = write(tmp_path, "o'dd.jsonl", "\n".join(map(json.dumps, lines[: rows or 7])) + "\n")
    if rows == 0:
        path = write(tmp_path, "o'dd.jsonl", path.read_text() + "\n".join(["{}"] * 3))

    def held() -> Any:
        table = open_table(path)
        taken = table.read_columns(EveryColumn(table.names))
        return taken.head(table.names, 10_000)

    few = held()
    monkeypatch.setattr("stratal.tables.json_files._MAX_SQL_KEYS", 1)

    assert "k 3.b.d" in few or rows == 1
    assert held() == few


@pytest.mark.parametrize("many", [200, 0], ids=["few keys", "many keys"])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
@pytest.mark.parametrize("column", ["id", "language", "proxy"])
def test_a_nan_in_json_is_no_category_and_no_id(tmp_path: Path, monkeypatch, name, column, many) -> None:
    monkeypatch.setattr("stratal.tables.json_files._MAX_SQL_KEYS", many)
    rows = [{"id": "a", "language": "NaN", "proxy": 0.5}, {"id": "NaN", "language": "de", "proxy": 0.25}]
    text = {"rows.jsonl": "\n".join(map(json.dumps, rows)), "rows.json": json.dumps(rows)}[name]
    read = Population.read(write(tmp_path, name, text), proxy="proxy", groups="language")
    assert read.levels("language") == {"NaN": 1, "de": 1}

    rows[1][column] = float("nan")
    text = {"rows.jsonl": "\n".join(map(json.dumps, rows)), "rows.json": json.dumps(rows)}[name]
    write(tmp_path, name, text)
    said = "1 value that is NaN" if column == "proxy" else "1 missing"
    assert said in refusal(tmp_path / name, proxy="proxy", groups="language")


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_lone_surrogate_in_json_is_refused_by_the_name_of_the_file(tmp_path: Path, name: str) -> None:
    row = '{"id": "\\ud83d", "proxy": 0.5}'

    write(tmp_path, name, f"[{row}]" if name.endswith(".json") else row)
    assert str(tmp_path / name) in refusal(tmp_path / name, proxy="proxy")


@pytest.mark.parametrize("blank", [" ", '""', "\t", "\u00a0"])
@pytest.mark.parametrize("names", ["id", "id,label"])
def test_rows_of_labels_are_named_by_their_lines_whatever_blank_is(
    tmp_path: Path, blank: str, names: str
) -> None:
    from stratal.tables.small_table import SmallTable

    more = "," if "," in names else ""
    path = write(tmp_path, "labels.csv", f"{names}\na{more}\n{blank}{more}\nb{more}\n")
    table = SmallTable.of(path, "labels")

    assert (table.columns["id"], table.places) == (["a", "b"], ("line 2", "line 4"))


def test_line_ends_that_differ_are_named(tmp_path):
    file = tmp_path / "p.csv"
    file.write_bytes(b"id,p\r\n" + b"".join(b"%d,0.5\r\n" % row for row in range(50)) + b"50,0.5\n51,0.5\n")
    with pytest.raises(InputError, match="line endings"):
        Population.read(file, id="id", proxy="p")


def test_two_columns_of_one_name_are_refused_for_units_and_for_labels(tmp_path):
    path = tmp_path / "rows.parquet"
    columns = [pa.array(["a", "b"]), pa.array([0.2, 0.4]), pa.array([0.8, 0.6])]
    pq.write_table(pa.Table.from_arrays(columns, names=["id", "label", "label"]), path)

    with pytest.raises(InputError, match="label"):
        Population.read(path, proxy="label")
    with pytest.raises(InputError, match="2 columns are called 'label'"):
        stratal.read_labels(path)


@pytest.mark.parametrize("cell", ['[["Pass"]]', '{"by": "ann"}'])
@pytest.mark.parametrize("keys", [1, 300])
@pytest.mark.parametrize("name", ["labels.json", "labels.jsonl"])
def test_nested_json_is_no_label_however_many_keys_there_are(tmp_path, cell, keys, name):
    more = "".join(f', "k{key}": {key}' for key in range(keys))
    record = f'{{"id": "a", "label": {cell}{more}}}'
    path = tmp_path / name
    path.write_text(f"[{record}]" if name == "labels.json" else record)

    with pytest.raises(LabelError, match="label of id 'a' is a"):
        stratal.read_labels(path)


@pytest.mark.parametrize("name", ["labels.parquet", "labels.json", "labels.jsonl", "labels.feather"])
def test_a_key_far_down_is_read_and_rows_are_counted_from_1(tmp_path, name):
    records = [{"id": f"u{row}", "label": 1, "status": None} for row in range(1_200)]
    records[1_100]["status"] = "lost"
    path = tmp_path / name
    if name.endswith(("json", "jsonl")):
        kept = [{key: value for key, value in record.items() if value is not None} for record in records]
        lines = [json.dumps(record) for record in kept]
        path.write_text(f"[{','.join(lines)}]" if name.endswith("json") else "\n".join(lines))
    else:
        write_table = pq.write_table if name.endswith("parquet") else pyarrow.feather.write_feather
        write_table(pa.Table.from_pylist(records), path)

    with pytest.raises(LabelError, match=r"(row|line) 1101: unknown status"):
        stratal.read_labels(path)


def test_labels_of_many_keys_in_json_are_read_in_little_memory(tmp_path):
    path = tmp_path / "labels.jsonl"
    more = {f"p{key}": key / 7 for key in range(400)}
    path.write_text("".join(json.dumps({"id": row, "label": row % 2, **more}) + "\n" for row in range(2_000)))

    assert stratal.read_labels(path).answered == 2_000
