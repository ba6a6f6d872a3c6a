"""Types of columns by kind of dataframe: each is read right, or refused in one message."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import stratal
from stratal.errors import InputError

NUMBERS = [0.1, 0.2, 0.8, 0.9]
LETTERS = list("abab")
DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 2
DECIMALS = [Decimal(str(number)) for number in NUMBERS]
HALVES = {"a": 2, "b": 2}
NANOSECONDS = {"1 nanoseconds": 2, "2 nanoseconds": 2}
DATES = {"2020-01-01": 2, "2021-01-01": 2}


def in_pandas(**changed):
    return pd.DataFrame({"id": range(4), "p": NUMBERS, "g": LETTERS} | changed)


def in_polars(**changed):
    return pl.DataFrame({"id": range(4), "p": NUMBERS, "g": LETTERS} | changed)


def in_arrow(**changed):
    return pa.table({"id": range(4), "p": NUMBERS, "g": LETTERS} | changed)


GROUPS = {
    "pandas category": (in_pandas(g=pd.Categorical(LETTERS)), HALVES),
    "pandas period": (
        in_pandas(g=pd.PeriodIndex(["2020-01", "2020-02"] * 2, freq="M")),
        {"2020-01": 2, "2020-02": 2},
    ),
    "pandas interval": (in_pandas(g=pd.cut([1, 3, 1, 3], [0, 2, 4])), {"(0, 2]": 2, "(2, 4]": 2}),
    "pandas nullable boolean": (
        in_pandas(g=pd.array([True, False, True, True], dtype="boolean")),
        {"False": 1, "True": 3},
    ),
    "pandas string": (in_pandas(g=pd.array(LETTERS, dtype="string")), HALVES),
    "polars categorical": (in_polars(g=pl.Series(LETTERS, dtype=pl.Categorical)), HALVES),
    "polars enum": (in_polars(g=pl.Series(LETTERS, dtype=pl.Enum(["b", "a"]))), HALVES),
    "polars date": (in_polars(g=DAYS), DATES),
    "arrow dictionary": (in_arrow(g=pa.array(LETTERS).dictionary_encode()), HALVES),
    "arrow dictionary of views": (
        in_arrow(g=pa.DictionaryArray.from_arrays([0, 1, 0, 1], pa.array(["a", "b"], pa.string_view()))),
        HALVES,
    ),
    "arrow runs": (in_arrow(g=pc.run_end_encode(pa.array(list("aabb")))), HALVES),
    "arrow view": (in_arrow(g=pa.array(LETTERS, pa.string_view())), HALVES),
    "arrow date": (in_arrow(g=DAYS), DATES),
    "pandas durations": (in_pandas(g=pd.to_timedelta([1, 2] * 2, unit="ns")), NANOSECONDS),
    "polars durations": (in_polars(g=pl.Series([1, 2] * 2, dtype=pl.Duration("ns"))), NANOSECONDS),
    "arrow durations": (in_arrow(g=pa.array([1, 2] * 2, pa.duration("ns"))), NANOSECONDS),
    "arrow decimals": (in_arrow(g=pa.array([1, 2] * 2, pa.decimal256(60, 2))), {"1.00": 2, "2.00": 2}),
}
PROXIES = {
    "pandas nullable": in_pandas(p=pd.array(NUMBERS, dtype="Float64")),
    "pandas sparse": in_pandas(p=pd.arrays.SparseArray(NUMBERS)),
    "pandas decimals": in_pandas(p=DECIMALS),
    "polars decimals": in_polars(p=DECIMALS),
    "polars float32": in_polars(p=pl.Series(NUMBERS, dtype=pl.Float32)),
    "arrow half": in_arrow(p=pa.array(np.array(NUMBERS, np.float16))),
    "arrow decimals": in_arrow(p=DECIMALS),
}
IDS = {
    "polars unsigned beyond int64": in_polars(id=pl.Series([2**63 + k for k in range(4)], dtype=pl.UInt64)),
    "polars categorical": in_polars(id=pl.Series(list("wxyz"), dtype=pl.Categorical)),
    "arrow dictionary": in_arrow(id=pa.array(list("wxyz")).dictionary_encode()),
    "arrow decimals": in_arrow(id=[Decimal(k) for k in range(4)]),
}
REFUSED = {
    "pandas NaT": in_pandas(g=[pd.Timestamp("2020-01-01"), pd.NaT] * 2),
    "pandas null boolean": in_pandas(g=pd.array([True, None, True, True], dtype="boolean")),
    "pandas null period": in_pandas(g=pd.PeriodIndex(["2020-01", None] * 2, freq="M")),
    "pandas null category": in_pandas(g=pd.Categorical(["a", None, "b", "a"])),
    "pandas null proxy": in_pandas(p=pd.array([0.1, None, 0.3, 0.4], dtype="Float64")),
    "pandas integers of 31 digits": in_pandas(id=[10**30 + k for k in range(4)]),
    "pandas complex": in_pandas(p=[1j] * 4),
    "polars null enum": in_polars(g=pl.Series(["a", None, "a", "b"], dtype=pl.Enum(["a", "b"]))),
    "polars list of lists": in_polars(g=[[[1]], [[2]], [[1]], [[2]]]),
    "polars object": in_polars(g=pl.Series([object()] * 4, dtype=pl.Object)),
    "arrow struct": in_arrow(g=[{"a": 1}] * 4),
    "arrow bytes": in_arrow(g=[b"a", b"b"] * 2),
    "arrow text for a number": in_arrow(p=LETTERS),
    "arrow duration for a number": in_arrow(p=pa.array([1, 2, 3, 4], pa.duration("s"))),
    "arrow null dictionary": in_arrow(g=pa.array(["a", None, "a", "b"]).dictionary_encode()),
    "pandas null duration": in_pandas(g=pd.to_timedelta([1, None] * 2)),
    "polars null duration": in_polars(g=pl.Series([1, None] * 2, dtype=pl.Duration("us"))),
    "arrow null duration": in_arrow(g=pa.array([1, None] * 2, pa.duration("ms"))),
    "arrow months": in_arrow(g=[pa.MonthDayNano([1, 2, 3])] * 4),
    "arrow union": in_arrow(
        g=pa.UnionArray.from_sparse(pa.array([0] * 4, pa.int8()), [pa.array([1, 2] * 2)])
    ),
    "arrow long decimals": in_arrow(g=pa.array([Decimal(10**50)] * 4, pa.decimal256(60, 0))),
    "arrow fractions as ids": in_arrow(id=[0.5, 1.5, 2.5, 3.5]),
}


def read(table):
    return stratal.Population.from_table(table, id="id", proxy="p", groups="g")


@pytest.mark.parametrize("name", GROUPS)
def test_categories_are_their_texts(name):
    table, expected = GROUPS[name]

    assert read(table).levels("g") == expected


@pytest.mark.parametrize("name", PROXIES)
def test_numbers_are_numbers(name):
    drawn = stratal.designs.SimpleRandom(budget=4).draw(read(PROXIES[name]), seed=1)

    assert sorted(drawn.proxies[:, 0]) == pytest.approx(NUMBERS, abs=3e-4)


@pytest.mark.parametrize("name", IDS)
def test_ids_stay_what_they_are(name):
    drawn = stratal.designs.SimpleRandom(budget=4).draw(read(IDS[name]), seed=1)

    assert sorted(map(str, drawn.ids.tolist())) == sorted(map(str, pl.DataFrame(IDS[name])["id"].to_list()))


@pytest.mark.parametrize("name", REFUSED)
def test_the_rest_is_one_message(name):
    with pytest.raises(InputError, match=r"column|id"):
        read(REFUSED[name])


@pytest.mark.parametrize("name", GROUPS)
def test_arrays_of_them_are_the_same_categories(name):
    table, expected = GROUPS[name]

    assert stratal.Population.from_arrays(proxy=NUMBERS, groups={"g": table["g"]}).levels("g") == expected


@pytest.mark.parametrize("name", [name for name in REFUSED if "null" in name and "proxy" not in name])
def test_arrays_of_them_with_something_missing_are_refused(name):
    with pytest.raises(InputError, match=r"group column 'g' holds \d missing values? "):
        stratal.Population.from_arrays(proxy=NUMBERS, groups={"g": REFUSED[name]["g"]})


SHOWN = {
    "durations": (pa.array([1, None, 3, 4], pa.duration("ns")), ["1 nanoseconds", None, "3 nanoseconds"]),
    "bytes in views": (pa.array([b"a", b"b", b"c", b"d"], pa.binary_view()), [b"a", b"b", b"c"]),
    "bytes of one length": (pa.array([b"ab", b"cd", b"ef", b"gh"], pa.binary(2)), [b"ab", b"cd", b"ef"]),
    "lists of durations": (pa.array([[1], [2], [3], [4]], pa.list_(pa.duration("s"))), None),
    "a duration within": (pa.array([{"x": 1}] * 4, pa.struct({"x": pa.duration("s")})), None),
    "months": (pa.array([pa.MonthDayNano([1, 2, 3])] * 4), None),
    "lists in views": (pa.array([[1], [2], [3], [4]], pa.list_view(pa.int32())), None),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_is_shown_as_it_is_or_refused_in_one_message(name):
    column, expected = SHOWN[name]

    def draw():
        table = pa.table({"id": range(4), "p": NUMBERS, "s": column})
        return stratal.designs.SimpleRandom(budget=4).draw(
            stratal.Population.from_table(table, proxy="p", show="s"), seed=1
        )

    if expected is None:
        with pytest.raises(
            InputError, match=r"the table: (column 's' has a type|PyArrow could not run the query)"
        ):
            draw()
    else:
        drawn = draw()
        shown = dict(zip(drawn.ids.tolist(), drawn.shown["s"].tolist(), strict=True))
        assert [shown[row] for row in range(3)] == expected


@pytest.mark.parametrize(
    "of", [pa.array, lambda given: pa.chunked_array([given]), pl.Series, pd.Series, list]
)
def test_arrays_that_are_shown_hold_plain_values(of):
    population = stratal.Population.from_arrays(proxy=NUMBERS, show={"s": of(["a", None, "c", "d"])})
    drawn = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)

    assert [drawn.shown["s"].tolist()[drawn.ids.tolist().index(row)] for row in range(4)] == [
        "a",
        None,
        "c",
        "d",
    ]


def test_what_is_missing_in_a_column_that_is_shown_is_written_as_nothing(tmp_path):
    shown = {
        "moments": pd.Series(pd.to_datetime(["2020-01-01", None, "2020-01-03", "2020-01-04"])),
        "counts": pd.Series([1, None, 3, 4], dtype="Int64"),
        "texts": pd.Series(["a", None, "c", "d"], dtype="string"),
    }
    population = stratal.Population.from_arrays(proxy=NUMBERS, show=shown)
    drawn = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)
    written = stratal.Sample.read(drawn.write(tmp_path / "sample.parquet"))

    row = written.ids.tolist().index(1)
    assert {name: column.tolist()[row] for name, column in written.shown.items()} == dict.fromkeys(shown)


@pytest.mark.parametrize("blank", ["", " ", "\t"])
@pytest.mark.parametrize("of", [stratal.Population.from_arrays, stratal.Population.from_table])
def test_an_empty_id_is_a_missing_one(of, blank):
    given = {"ids": ["a", "b", blank, "d"], "proxy": NUMBERS}
    table = pa.table({"id": given["ids"], "p": NUMBERS})

    with pytest.raises(InputError, match=r"missing"):
        of(**given) if "arrays" in of.__name__ else of(table, proxy="p")


HALF = "a\ud83d"


@pytest.mark.parametrize(
    "given",
    [{"groups": {"g": [HALF, *"bcd"]}}, {"show": {"s": [HALF, *"bcd"]}}, {"show": {HALF: LETTERS}}],
    ids=["group", "shown", "name"],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_text_that_no_file_can_hold_is_refused_where_it_is_written(tmp_path, given, suffix):
    population = stratal.Population.from_arrays(proxy=NUMBERS, **given)
    drawn = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)

    with pytest.raises(InputError, match=r"the sample contains a lone surrogate, .*\\ud83d"):
        drawn.write(tmp_path / f"sample{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_a_dataframe_with_a_text_that_no_file_can_hold_is_refused():
    with pytest.raises(InputError, match=r"column 'g' contains a lone surrogate"):
        read(in_pandas(g=pd.Series([HALF, *"bcd"], dtype=object)))
