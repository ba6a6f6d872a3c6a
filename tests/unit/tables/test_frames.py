"""Dataframes: NaN and null distinguished, types widened, one error for what cannot be read."""

from __future__ import annotations

import uuid
from contextlib import closing
from decimal import Decimal
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import stratal
from stratal.errors import InputError
from stratal.population import Population
from stratal.strata import Everything


def refusal(table: Any, **keywords: Any) -> str:
    with pytest.raises(InputError) as caught:
        Population.from_table(table, **{"proxy": "proxy", **keywords})
    return str(caught.value)


def drawn(table: Any, **keywords: Any) -> Any:
    population = Population.from_table(table, **keywords)
    return population.units_with_smallest_keys(Everything(), np.array([population.size]), 1)


FRAMES = {
    "pandas": lambda values: pd.DataFrame({"id": ["a", "b", "c"], "proxy": values}),
    "pandas objects": lambda values: pd.DataFrame(
        {"id": ["a", "b", "c"], "proxy": np.array(values, dtype=object)}
    ),
    "polars": lambda values: pl.DataFrame({"id": ["a", "b", "c"], "proxy": values}, strict=False),
    "arrow": lambda values: pa.table({"id": ["a", "b", "c"], "proxy": pa.array(values, from_pandas=False)}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_nan_is_nan(kind: str) -> None:
    message = refusal(FRAMES[kind]([0.5, float("nan"), float("nan")]))
    assert "2 values that are NaN" in message
    assert "id 'b', row 2" in message


@pytest.mark.parametrize("kind", [kind for kind in FRAMES if kind != "pandas"])
def test_null_is_missing(kind: str) -> None:
    message = refusal(FRAMES[kind]([0.5, float("nan"), None]))
    assert "1 missing value (first: id 'c', row 3" in message


def test_null_of_pandas_own_types_is_missing() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "proxy": pd.array([0.5, None], dtype="Float64")})
    assert "1 missing value" in refusal(frame)
    assert "1 missing id" in refusal(pd.DataFrame({"id": ["a", None], "proxy": [0.5, 0.5]}))
    assert "1 missing id" in refusal(pd.DataFrame({"id": [1.0, np.nan], "proxy": [0.5, 0.5]}))
    groups = pd.DataFrame({"id": [1, 2], "proxy": [0.5, 0.5], "g": [1.0, np.nan]})
    assert "group column 'g' holds 1 missing value" in refusal(groups, groups="g")


@pytest.mark.parametrize("kind", FRAMES)
def test_infinity_is_infinite(kind: str) -> None:
    assert "1 value that is infinite" in refusal(FRAMES[kind]([0.5, float("-inf"), 1.0]))


def test_narrow_floats_are_widened() -> None:
    for dtype in (np.float16, np.float32):
        values = np.array([0.1, 0.7], dtype)
        units = drawn(pa.table({"id": [1, 2], "proxy": values}), proxy="proxy")
        assert sorted(units.proxies[:, 0]) == sorted(values.astype(np.float64))


@pytest.mark.parametrize(
    "values",
    [[True, False], np.array([1, 0], np.uint8), [Decimal("1.0"), Decimal("0.0")]],
    ids=["truth", "integers", "decimals"],
)
def test_other_numbers_are_numbers(values: Any) -> None:
    assert (
        Population.from_table(pa.table({"id": [1, 2], "proxy": values}), proxy="proxy").distribution().mean
        == 0.5
    )


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (np.array([7, 8], np.uint8), [7, 8]),
        (np.array([7.0, -0.0]), [0, 7]),
        ([Decimal(7), Decimal(8)], [7, 8]),
        (["x", "y"], ["x", "y"]),
        (pa.array(["x", "y"]).dictionary_encode(), ["x", "y"]),
        (np.array([2**64 - 1, 1], np.uint64), [str(2**64 - 1), "1"]),
    ],
    ids=["bytes", "floats", "decimals", "text", "dictionary", "beyond int64"],
)
def test_ids_keep_their_kind(ids: Any, expected: list[Any]) -> None:
    found = drawn(pa.table({"id": ids})).ids
    assert sorted(found.tolist()) == sorted(expected)
    assert found.dtype.kind == ("i" if isinstance(expected[0], int) else "U")


def test_uuids_are_lower_case_text() -> None:
    ids = [uuid.UUID(int=i) for i in (1, 2**100)]
    connection = ibis.duckdb.connect()
    raw = ", ".join(f"('{str(entry).upper()}'::UUID)" for entry in ids)
    connection.raw_sql(f"CREATE TABLE rows AS SELECT * FROM (VALUES {raw}) AS t(id)")
    table = connection.table("rows")
    assert set(drawn(table).ids) == {str(entry) for entry in ids}
    arrays = Population.from_arrays(ids=ids).units_with_smallest_keys(Everything(), np.array([2]), 1)
    assert drawn(table).ids.tolist() == arrays.ids.tolist()


@pytest.mark.parametrize("bad", [2.0**53, 0.5, float("inf")])
def test_floats_that_cannot_be_ids(bad: float) -> None:
    assert "1 id of an unsupported type" in refusal(pa.table({"id": [1.0, bad], "proxy": [0.5, 0.5]}))


def test_blank_ids_are_missing() -> None:
    assert "1 missing id" in refusal(pl.DataFrame({"id": ["a", " "], "proxy": [0.5, 0.5]}))


def test_a_stream_is_consumed_once() -> None:
    reader = pa.table({"id": [1, 2], "proxy": [0.5, 0.25], "wide": [[1], [2]]}).to_reader()
    population = Population.from_table(reader, proxy="proxy")
    assert population.distribution() == population.distribution()
    assert "has no rows" in refusal(reader) or "cannot be read" in refusal(reader)


def test_a_record_batch_is_a_table() -> None:
    assert Population.from_table(pa.record_batch({"id": [1], "proxy": [0.5]}), proxy="proxy").size == 1


def test_an_empty_table() -> None:
    assert "has no rows" in refusal(pd.DataFrame({"id": [], "proxy": []}))


@pytest.mark.parametrize("table", [{"id": [1]}, [[1, 2]], np.zeros((2, 2)), None, "rows.csv"])
def test_what_is_no_table(table: Any) -> None:
    assert "cannot be read" in refusal(table)


def test_an_index_of_row_numbers_is_no_id() -> None:
    assert "no column is called 'id'" in refusal(pd.DataFrame({"proxy": [0.5]}))


def test_pandas_names_are_found_by_position() -> None:
    frame = pd.DataFrame([["a", 0.5, 0.1]], columns=["id", "proxy", "proxy"])
    assert "2 columns are called 'proxy'" in refusal(frame)
    assert drawn(pd.DataFrame({3: ["x"], "id": ["a"]}), show="3").shown["3"].tolist() == ["x"]


def test_mixed_objects_are_refused() -> None:
    frame = pd.DataFrame({"id": ["a", 3], "proxy": [0.5, 0.5]})
    assert "column 'id' contains values of different types" in refusal(frame)
    assert "column 'proxy' is not numeric" in refusal(pd.DataFrame({"id": [1], "proxy": ["0.5"]}))


def test_payload_keeps_its_values() -> None:
    table = pa.table({"id": [1, 2], "text": ["a", None], "tags": [["x"], []]})
    units = drawn(table, show=["text", "tags"])
    by_id = dict(
        zip(units.ids.tolist(), zip(units.shown["text"], units.shown["tags"], strict=True), strict=True)
    )
    assert by_id == {1: ("a", ["x"]), 2: (None, [])}


def test_categories_have_one_text() -> None:
    values = {
        "whole": np.array([1.0, -0.0]),
        "broken": np.array([1.5, 2.0]),
        "truth": np.array([True, False]),
        "number": np.array([1, 2]),
    }
    table = Population.from_table(pa.table({"id": [1, 2], **values}), groups=list(values))
    arrays = Population.from_arrays(ids=[1, 2], groups=values)
    for name in values:
        assert table.levels(name) == arrays.levels(name)


def test_an_ibis_table_stays_lazy_on_its_connection() -> None:
    connection = ibis.duckdb.connect()
    connection.create_table("rows", ibis.memtable(pa.table({"id": ["a", "b"], "p": [0.5, 0.25]})))
    table = connection.table("rows").mutate(proxy=lambda t: t.p / 2)
    population = Population.from_table(table, proxy="proxy")
    assert population.distribution().values.tolist() == [0.125, 0.25]

    connection.raw_sql("UPDATE rows SET p = NULL WHERE id = 'b'")
    assert "1 missing value (first: id 'b'; allowed" in refusal(table)


def test_an_engine_without_md5_is_refused_with_a_way_out(tmp_path: Any) -> None:
    connection = ibis.sqlite.connect(tmp_path / "rows.db")
    connection.create_table("rows", ibis.memtable(pa.table({"id": ["a", "b"], "proxy": [0.5, 0.25]})))
    with closing(connection.con), pytest.raises(InputError, match="Parquet"):
        drawn(connection.table("rows"), proxy="proxy")


@pytest.mark.parametrize("truths", [[True, None], [None, False]])
def test_a_missing_truth_is_no_false(truths):
    import pyarrow as pa

    table = pa.table({"id": ["a", "b"], "group": pa.array(truths, pa.bool_())})
    with pytest.raises(InputError, match="group column 'group' holds 1 missing value"):
        Population.from_table(table, groups="group")


def test_queries_and_records_are_refused_with_the_next_step() -> None:
    frame = pl.DataFrame({"id": [1, 2], "score": [0.2, 0.7], "label": [1, 0]})
    for table, step in ((frame.lazy(), r"\.collect\(\)"), (frame.to_dicts(), "pandas.json_normalize")):
        for read in (
            stratal.evaluate,
            lambda table: stratal.Population.from_table(table, proxy="score"),
            lambda table: stratal.Sample.from_labelled(table, value="label"),
        ):
            with pytest.raises(InputError, match=step):
                read(table)


def test_numbers_and_words_in_a_column_of_labels_are_read_as_from_a_file() -> None:
    """A column of objects was refused in pandas, but not as lists or in a file."""
    labels = [1, 0, "1", 1.0, None, "", True, 0] * 20
    frame = pd.DataFrame({"id": range(160), "label": pd.Series(labels, dtype=object)})
    columns = {"id": list(range(160)), "label": labels}

    assert stratal.evaluate(frame).estimate.value == stratal.evaluate(columns).estimate.value
