"""A directory of parts: nothing is cast to the first part's types, no folder speaks over a file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tiers import sized

from stratal.errors import InputError
from stratal.population import Population
from stratal.strata import Everything
from stratal.tables.parquet import parquet_column_names


def written(folder: Path, *parts: dict, under: tuple[str, ...] = ()) -> Path:
    for number, columns in enumerate(parts):
        place = folder / (under[number] if under else "") / f"part{number}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), place)
    return folder


def values(folder: Path) -> dict[str, float]:
    population = Population.read(folder, proxy="proxy", directory=True)
    units = population.units_with_smallest_keys(Everything(), np.array([population.size]), 1)
    return dict(zip(map(str, units.ids.tolist()), units.proxies[:, 0].tolist(), strict=True))


@pytest.mark.parametrize("order", [1, -1])
def test_floating_point_numbers_of_two_widths_keep_their_values(tmp_path, order):
    parts = [
        {"id": ["c", "d"], "proxy": pa.array([0.5, 0.25], pa.float64())},
        {"id": ["e"], "proxy": pa.array([0.125], pa.float32())},
    ]
    folder = written(tmp_path, *parts[::order])

    assert values(folder) == {"c": 0.5, "d": 0.25, "e": 0.125}


def test_an_id_that_is_no_whole_number_is_not_made_one(tmp_path):
    folder = written(tmp_path, {"id": [1, 2], "proxy": [0.1, 0.2]}, {"id": [3.4, 4.0], "proxy": [0.3, 0.4]})

    with pytest.raises(InputError, match="column 'id' holds floating-point numbers"):
        Population.read(folder, proxy="proxy", directory=True)


@pytest.mark.parametrize(
    "other",
    [pa.array(["1", "2"]), pa.array([True, False]), pa.array([b"a", b"b"]), pa.array([[1], [2]])],
    ids=["text", "truth", "bytes", "lists"],
)
@pytest.mark.parametrize("first", [0, 1])
def test_parts_of_another_kind_are_refused_by_name(tmp_path, other, first):
    parts = [{"id": ["a", "b"], "proxy": [0.5, 1.0]}, {"id": ["c", "d"], "proxy": other}]
    folder = written(tmp_path, *(parts if first == 0 else parts[::-1]))

    with pytest.raises(InputError, match=r"part1.parquet: column 'proxy' holds .*as in part0.parquet"):
        Population.read(folder, proxy="proxy", directory=True)


def test_a_part_without_a_column_is_refused_by_name(tmp_path):
    folder = written(tmp_path, {"id": ["a"], "proxy": [0.5]}, {"id": ["b"]})

    with pytest.raises(InputError, match=r"part1.parquet: no column 'proxy'"):
        Population.read(folder, proxy="proxy", directory=True)


def test_a_folders_name_does_not_speak_over_the_files_column(tmp_path):
    columns = {"id": ["a"], "proxy": [0.5], "language": ["fr"]}
    folder = written(tmp_path, columns, under=("language=de",))

    with pytest.raises(InputError, match="'language' occurs both in the file and in the name of its folder"):
        Population.read(folder, proxy="proxy", groups="language", directory=True)
    assert Population.read(folder, proxy="proxy", directory=True).size == 1


def test_a_folders_name_is_text_as_it_stands(tmp_path):
    parts = [{"id": ["a"], "proxy": [0.5]}, {"id": ["b"], "proxy": [0.5]}]
    folder = written(tmp_path, *parts, under=("day=01", "day=1"))
    population = Population.read(folder, proxy="proxy", groups="day", directory=True)

    assert population.levels("day") == {"01": 1, "1": 1}


def test_a_flipped_bit_of_the_footer_is_one_message_or_read(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": range(50), "proxy": [number / 50 for number in range(50)]}), path)
    whole = path.read_bytes()
    kinds = set()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    for place in range(len(whole) - footer, len(whole), sized(11, 1)):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            try:
                parquet_column_names(path, 2)
            except InputError as error:
                kinds.add(type(error.__context__))

    assert {pa.ArrowNotImplementedError, pa.ArrowInvalid, OSError} <= kinds


def refused(folder: Path, message: str, **columns: str) -> None:
    with pytest.raises(InputError, match=message):
        Population.read(folder, **{"proxy": "proxy", **columns}, directory=True)


HALF = [0.5, 0.25]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("large", "small"),
    [
        (pa.array([2**24 + 1, 1], pa.int64()), pa.array(HALF, pa.float32())),
        (pa.array([2**24 + 1, 1], pa.uint32()), pa.array(np.array(HALF, np.float16))),
        (pa.array([-(2**53) - 1, 1], pa.int64()), pa.array(HALF, pa.float64())),
        (pa.array([Decimal("0.123456789"), Decimal(1)]), pa.array(HALF, pa.float32())),
        (pa.array([Decimal(10**30), Decimal(1)], pa.decimal128(38, 0)), pa.array(HALF, pa.float64())),
    ],
    ids=["float", "half", "double", "decimal", "long decimal"],
)
@pytest.mark.parametrize("what", ["groups", "show", "proxy", "id"])
def test_numbers_of_another_kind_than_another_parts_are_refused_by_name(tmp_path, large, small, order, what):
    parts = [{"key": ["a", "b"], "proxy": HALF, "x": large}, {"key": ["c", "d"], "proxy": HALF, "x": small}]
    folder = written(tmp_path, *parts[::order])

    refused(folder, "column 'x' holds .*allowed: .*, as in part0.parquet", **{"id": "key", what: "x"})


@pytest.mark.parametrize("inner", ["01", True, {"x": 1}], ids=["text", "truth", "struct"])
def test_fields_of_structs_are_held_to_the_same(tmp_path, inner):
    parts = [
        {"id": ["a"], "proxy": [0.5], "of": [{"x": 1}]},
        {"id": ["b"], "proxy": [0.5], "of": [{"x": inner}]},
    ]
    folder = written(tmp_path, *parts)

    refused(folder, "part1.parquet: column 'of.x' holds .*allowed: whole numbers", groups="of.x")


@pytest.mark.parametrize(
    "other",
    [["id", "P", "proxy", "PROXY"], ["id", "PROXY", "proxy", "P"], ["proxy", "PROXY", "id", "P"]],
    ids=["one more", "swapped", "other order"],
)
def test_parts_whose_names_differ_in_capitals_alone_are_not_mistaken_for_each_other(tmp_path, other):
    first = ["id", "P", "proxy", "PROXY"] if other[1] == "PROXY" else ["id", "P", "proxy"]
    cells = {"id": ["a", "b"], "proxy": [0.5, 0.25], "PROXY": [1.0, 1.0], "P": [1.0, 1.0]}
    folder = written(tmp_path, {name: cells[name] for name in first})
    pq.write_table(
        pa.table({**{name: cells[name] for name in other}, "id": ["c", "d"]}), folder / "q.parquet"
    )

    refused(folder, "an engine cannot distinguish the columns '(proxy|PROXY)' and '(proxy|PROXY)'")

    for part, ids in (("part0", ["a", "b"]), ("q", ["c", "d"])):
        rows = {**{name: cells[name] for name in other}, "id": ids}
        pq.write_table(pa.table(rows), folder / f"{part}.parquet")
    assert values(folder) == {"a": 0.5, "b": 0.25, "c": 0.5, "d": 0.25}


@pytest.mark.parametrize("asked", ["language", "Language"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_folder_that_differs_from_a_files_column_in_capitals_does_not_speak_over_it(tmp_path, asked, count):
    parts = [{"id": [name], "proxy": [0.5], "language": ["fr"]} for name in "ab"[:count]]
    folder = written(tmp_path, *parts, under=("Language=de", "Language=en"))

    refused(folder, "'Language' occurs both in the file and in the name of its folder", groups=asked)


def test_a_folder_written_in_percent_signs_does_not_speak_over_the_files_column(tmp_path):
    columns = {"id": ["a"], "proxy": [0.5], "a%20b": ["fr"]}
    folder = written(tmp_path, columns, under=("a%20b=de",))

    refused(folder, "'a%20b' occurs both in the file and in the name of its folder", groups="a%20b")


def test_two_folders_that_give_one_column_are_refused(tmp_path):
    folder = written(tmp_path, {"id": ["a"], "proxy": [0.5]}, under=("day=1/DAY=2",))

    refused(folder, "two folder names contain 'day'", groups="day")
