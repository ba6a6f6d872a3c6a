"""Small files that stand for much: what is read as a whole is refused while it is read."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from stratal.errors import InputError
from stratal.labels.label_files import read_labels
from stratal.population import Population
from stratal.tables import files, parquet
from stratal.tables.files import limit_records
from stratal.tables.parquet import MAX_BATCH_BYTES, read_bounded_table, refuse_expanding_columns

TEXT = "x" * 1_000_000


def repeated(values, count):
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(values))


@pytest.mark.parametrize("column", ["id", "text"])
def test_a_parquet_file_of_one_value_a_hundred_thousand_times_is_refused(tmp_path, column):
    table = {"id": pa.array(range(100_000)), "label": pa.array([1.0] * 100_000)}
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table(table | {column: repeated([TEXT], 100_000)}), path, compression="zstd")

    assert path.stat().st_size < 1_000_000
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match=f"a string in column '{column}' is too long"):
        read_labels(path)
    assert pa.total_allocated_bytes() - before < 2**26


@pytest.mark.filterwarnings("ignore:Feather V1:DeprecationWarning")
@pytest.mark.parametrize("version", [1, 2])
def test_a_feather_file_is_bounded_as_a_parquet_file_is(tmp_path, version):
    path = tmp_path / "labels.feather"
    pa.feather.write_feather(pa.table({"id": ["a", "b"], "label": [1.0, 0.0]}), path, version=version)
    assert list(read_labels(path).values) == [1.0, 0.0]

    table = pa.table({"id": pa.array(range(100_000)), "label": repeated([TEXT], 100_000)})
    pa.feather.write_feather(table, path, compression="zstd")
    before = pa.total_allocated_bytes()
    with pytest.raises(InputError, match="a string in column 'label' is too long"):
        read_labels(path)
    assert pa.total_allocated_bytes() - before < 2**26


@pytest.mark.parametrize("text", ['[{"id": "a", "label": 1}]', '[{"id": "a", "label": 1}]' + " " * 10**6])
def test_a_json_document_of_labels_is_bounded(tmp_path, monkeypatch, text):
    monkeypatch.setattr(files, "MAX_TABLE_BYTES", 2**20)
    path = tmp_path / "labels.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert list(read_labels(path).values) == [1]

    path.write_bytes(gzip.compress(text.encode() + b" " * 2**20))
    with pytest.raises(InputError, match="too large for a table of labels"):
        read_labels(path)


def test_a_json_document_of_units_is_bounded(tmp_path, monkeypatch):
    path = tmp_path / "units.json.gz"
    path.write_bytes(gzip.compress(b'[{"id": "a", "proxy": 0.5}]'))
    monkeypatch.setattr(files, "MAX_JSON_VALUES", 10)
    assert Population.read(path, proxy="proxy").size == 1

    path.write_bytes(gzip.compress(b'[{"id": "a", "proxy": 0.5}%s]' % (b', {"a": [[]]}' * 3)))
    with pytest.raises(InputError, match=r"units.json.gz is too large .*10 values.*name the file .jsonl"):
        Population.read(path, proxy="proxy")
    with pytest.raises(InputError, match=r"units.json.gz is too large .*up to 0 MiB"):
        files.json_document(path, max_characters=20)


def test_too_many_objects_of_a_json_document_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "limit_records", partial(limit_records, max_rows=3))
    path = tmp_path / "labels.json"
    path.write_text('[{"id": 1, "label": 1}%s]' % (', {"id": 2, "label": 1}' * 3))
    with pytest.raises(InputError, match="too large for a table of labels"):
        read_labels(path)


@pytest.mark.parametrize("column", ["id", "text"])
def test_one_long_text_of_many_units_is_refused_where_it_is_read(tmp_path, column):
    path = tmp_path / "units.parquet"
    columns = {"id": pa.array(range(3_000)), "proxy": [0.5] * 3_000, "text": pa.array(["x"] * 3_000)}
    mixed = pa.DictionaryArray.from_arrays(
        pa.array([*range(2), *([1] * 2_998)], pa.int32()), pa.array(["a", TEXT])
    )
    pq.write_table(pa.table(columns | {column: mixed}), path, compression="zstd")

    with pytest.raises(InputError, match=f"a string in column '{column}' is too long") as refused:
        Population.read(path, id="id", proxy="proxy", show=["text"])
    assert str(refused.value).count("(given") == 1
    if column == "text":
        assert Population.read(path, id="id", proxy="proxy").size == 3_000


def test_texts_that_pack_too_well_are_refused_and_long_ones_alone_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_MIN_SUSPICIOUS_BYTES", 2**22)
    path = tmp_path / "units.parquet"
    table = pa.table({"id": range(9), "proxy": [0.5] * 9, "text": [TEXT] * 9})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(InputError, match="compressed to an implausibly small size"):
        Population.read(path, proxy="proxy", show=["text"])

    pq.write_table(table.slice(0, 3), path, use_dictionary=False)
    assert Population.read(path, proxy="proxy", show=["text"]).size == 3
    few = MAX_BATCH_BYTES // len(TEXT)
    once = pa.table({"id": range(few), "proxy": [0.5] * few, "text": repeated([TEXT], few)})
    pq.write_table(once, path)
    refuse_expanding_columns(path, ["id", "proxy", "text"])


def test_categories_of_a_parquet_file_are_read(tmp_path):
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"id": ["a", "b", "c"], "label": repeated(["Pass"], 3)}), path)

    assert read_bounded_table(pq.ParquetFile(path)).column("label").to_pylist() == ["Pass"] * 3
    assert list(read_labels(path).values) == ["Pass"] * 3


def test_no_rows_and_two_columns_of_one_name_stay_as_they_are(tmp_path):
    for table in (pa.table({"id": pa.array([], pa.int64())}), pa.table([[1], [2]], names=["id", "id"])):
        pq.write_table(table, tmp_path / "t.parquet")
        with pq.ParquetFile(tmp_path / "t.parquet") as file:
            assert read_bounded_table(file).equals(table)


@pytest.mark.parametrize(("lists", "fewest", "most"), [(False, 1, 2_000), (True, 10_000, 50_000)])
def test_numbers_and_short_texts_are_read_in_large_pieces_lists_in_small(tmp_path, lists, fewest, most):
    """A row at a time, a sample of 500,000 labels took half a minute to read."""
    path, count = tmp_path / "sample.parquet", 50_000
    values = [[number, number] if lists else number for number in range(count)]
    columns = {"id": np.arange(count) * 7, "group.kind": ["a", "b"] * (count // 2), "proxy.score": values}
    pq.write_table(pa.table(columns), path)

    table = read_bounded_table(pq.ParquetFile(path), 10**7)

    assert table.equals(pa.table(columns))
    assert fewest <= table.column("id").num_chunks <= most


@pytest.mark.parametrize(("rows", "characters"), [(2, 100), (100, 4)])
def test_too_many_records_and_too_much_text_are_refused(rows, characters):
    with pytest.raises(InputError, match="too large for a table of labels"):
        list(limit_records(["ab", "cd", "ef"], len, Path("labels.csv"), rows, characters))
    assert list(limit_records(["ab", "cd"], len, Path("labels.csv"), 2, 4)) == ["ab", "cd"]


@pytest.mark.parametrize(
    ("name", "head", "row"), [("l.csv.gz", b"id,label\n", b"u1,1\n"), ("l.jsonl.gz", b"", b'{"id":1}\n')]
)
def test_packed_rows_without_end_are_refused(tmp_path, monkeypatch, name, head, row):
    monkeypatch.setattr(files, "limit_records", partial(limit_records, max_rows=1_000))
    path = tmp_path / name
    path.write_bytes(gzip.compress(head + row * 2_000))
    with pytest.raises(InputError, match="up to 1,000 rows"):
        read_labels(path)
