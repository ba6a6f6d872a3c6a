"""Small files that stand for much: what is read as a whole is refused while it is read."""

from __future__ import annotations

import gzip
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stratal.errors import InputError
from stratal.labels.label_file import read_labels
from stratal.population.tables import small_table
from stratal.population.tables.limits import bounded_table, limited

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
    with pytest.raises(InputError, match="more than 256 MiB of memory"):
        read_labels(path)
    assert pa.total_allocated_bytes() - before < 2**26


def test_categories_of_a_parquet_file_are_read(tmp_path):
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"id": ["a", "b", "c"], "label": repeated(["Pass"], 3)}), path)

    assert bounded_table(pq.ParquetFile(path)).column("label").to_pylist() == ["Pass"] * 3
    assert list(read_labels(path).values) == ["Pass"] * 3


def test_no_rows_and_two_columns_of_one_name_stay_as_they_are(tmp_path):
    for table in (pa.table({"id": pa.array([], pa.int64())}), pa.table([[1], [2]], names=["id", "id"])):
        pq.write_table(table, tmp_path / "t.parquet")
        with pq.ParquetFile(tmp_path / "t.parquet") as file:
            assert bounded_table(file).equals(table)


@pytest.mark.parametrize(("rows", "characters"), [(2, 100), (100, 4)])
def test_too_many_records_and_too_much_text_are_refused(rows, characters):
    with pytest.raises(InputError, match="too large for a table of labels"):
        list(limited(["ab", "cd", "ef"], len, Path("labels.csv"), rows, characters))
    assert list(limited(["ab", "cd"], len, Path("labels.csv"), 2, 4)) == ["ab", "cd"]


@pytest.mark.parametrize(
    ("name", "head", "row"), [("l.csv.gz", b"id,label\n", b"u1,1\n"), ("l.jsonl.gz", b"", b'{"id":1}\n')]
)
def test_packed_rows_without_end_are_refused(tmp_path, monkeypatch, name, head, row):
    monkeypatch.setattr(small_table, "limited", partial(limited, rows=1_000))
    path = tmp_path / name
    path.write_bytes(gzip.compress(head + row * 2_000))
    with pytest.raises(InputError, match="up to 1,000 rows"):
        read_labels(path)
