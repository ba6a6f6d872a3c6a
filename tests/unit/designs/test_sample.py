from __future__ import annotations

import json
import os
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.designs.files import replacing
from stratal.errors import InputError


def drawn(population, seed=7, budget=60):
    strata = stratal.strata.stratify(population, n_strata=5)
    design = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, budget))
    return design.draw(population, seed)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_sample_is_read_back_equal(population, tmp_path, suffix):
    sample = drawn(population)

    back = stratal.Sample.read(sample.write(tmp_path / f"sample.{suffix}"))

    assert back == sample
    assert back.ids.dtype.kind == "U"
    assert back.design == sample.design


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_integer_ids_categories_and_payload_survive(tmp_path, suffix):
    population = stratal.Population.from_arrays(
        proxy={"a": [0.1, 0.2, 0.9], "b": [3.0, -1.0, 2.0]},
        ids=[10, 20, 30],
        groups={"answer": ["cat", "dog,\n'dog'", "über"]},
        show={"text": ["x", "y, z", 'a "quoted"\nline']},
        predicted="answer",
    )
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)

    back = stratal.Sample.read(sample.write(tmp_path / f"sample.{suffix}"))

    assert back == sample
    assert back.ids.tolist() == sample.ids.tolist()
    assert back.question.answer == "answer"
    assert [info.scaled for info in back.proxy_info] == [True, False]


def test_equality_sees_a_changed_value(population):
    one, other = drawn(population), drawn(population, seed=8)

    assert one == drawn(population)
    assert one != other


def test_a_sample_holds_what_the_estimate_needs_of_the_population(population):
    sample = drawn(population)
    proxy = np.random.default_rng(0).beta(3, 1, 500)
    summary = sample.summary
    total = float(summary.sizes @ summary.proxy_means[:, 0])

    assert total == pytest.approx(proxy.sum(), rel=1e-12)
    assert sample.population_size == 500
    assert sample.inclusion_probability == pytest.approx((sample.n_h / summary.sizes)[sample.stratum])


def test_files_that_are_no_sample_are_refused(tmp_path, population):
    (tmp_path / "text.parquet").write_text("hello")
    (tmp_path / "alone.csv").write_text("id,stratum\n1,0\n")
    table = pq.read_table(drawn(population).write(tmp_path / "s.parquet"))
    pq.write_table(table.replace_schema_metadata(None), tmp_path / "bare.parquet")
    for name in ("text.parquet", "alone.csv", "bare.parquet"):
        with pytest.raises(InputError, match="not a sample file"):
            stratal.Sample.read(tmp_path / name)


def test_a_sample_with_a_flipped_byte_is_called_damaged(tmp_path, population):
    path = drawn(population).write(tmp_path / "s.parquet")
    written = bytearray(path.read_bytes())
    written[-9] ^= 1  # of Parquet's own footer
    path.write_bytes(written)
    with pytest.raises(InputError, match="damaged later: restore it from a copy"):
        stratal.Sample.read(path)


def test_a_newer_format_and_a_damaged_description_are_refused(tmp_path, population):
    path = drawn(population).write(tmp_path / "s.csv")
    description = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps({**description, "format": 99}))
    with pytest.raises(InputError, match="another version"):
        stratal.Sample.read(path)
    del description["summary"]
    path.with_suffix(".json").write_text(json.dumps(description))
    with pytest.raises(InputError, match="digest does not match"):
        stratal.Sample.read(path)
    del description["digest"]
    path.with_suffix(".json").write_text(json.dumps({**description, "format": 1}))
    with pytest.raises(InputError, match="damaged"):
        stratal.Sample.read(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, population, monkeypatch):
    path = drawn(population).write(tmp_path / "s.parquet")
    before = path.read_bytes()
    monkeypatch.setattr(
        "pyarrow.parquet.write_table", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        drawn(population, seed=8).write(path)

    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.parquet"]


def without_digest(path, change):
    """Write a Parquet sample of format 1, which has no digest, again with rows or description changed."""
    table = pq.read_table(path)
    description = json.loads(table.schema.metadata[b"stratal"])
    description = {**{k: v for k, v in description.items() if k != "digest"}, "format": 1}
    table, description = change(table, description)
    pq.write_table(table.replace_schema_metadata({b"stratal": json.dumps(description)}), path)
    return path


def replaced(table, name, values):
    return table.set_column(table.column_names.index(name), name, [values])


def test_a_file_of_format_1_is_still_read(population, tmp_path):
    sample = drawn(population)
    path = without_digest(sample.write(tmp_path / "s.parquet"), lambda table, told: (table, told))

    assert stratal.Sample.read(path) == sample


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t, d: (pa.concat_tables([t, t]), d), "occurs twice"),
        (lambda t, d: (t.slice(1), d), "differ from those that its design draws"),
        (lambda t, d: (replaced(t, "stratum", [10**9] + [0] * (len(t) - 1)), d), "nonexistent"),
        (lambda t, d: (replaced(t, "stratum", [-1] + [0] * (len(t) - 1)), d), "nonexistent"),
        (lambda t, d: (replaced(t, "stratum", t["stratum"].to_pylist()[::-1]), d), "those of its design"),
        (lambda t, d: (replaced(t, "stratum", [0] * len(t)), d), "differ from those that its design draws"),
        (lambda t, d: (replaced(t, "proxy.proxy", [float("nan")] * len(t)), d), "not finite"),
        (lambda t, d: (replaced(t, "inclusion_probability", [0.5] * len(t)), d), "inclusion prob"),
        (lambda t, d: (t, []), "contains no design"),
        (lambda t, d: (t, "text"), "contains no design"),
        (lambda t, d: (t, {**d, "design": []}), "damaged"),
        (lambda t, d: (t, {**d, "proxies": [3]}), "damaged"),
        (lambda t, d: (t, {**d, "summary": {**d["summary"], "sizes": "many"}}), "damaged"),
    ],
)  # fmt: skip
def test_rows_that_the_design_does_not_draw_are_refused(population, tmp_path, change, said):
    path = without_digest(drawn(population).write(tmp_path / "s.parquet"), change)

    with pytest.raises(InputError, match=said):
        stratal.Sample.read(path)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_any_value_that_was_changed_is_told_by_the_digest(population, tmp_path, suffix):
    path = drawn(population).write(tmp_path / f"s.{suffix}")
    if suffix == "csv":
        path.write_text(path.read_text().replace("0.9", "0.8", 1))
    else:
        table = pq.read_table(path)
        table = replaced(table, "proxy.proxy", [0.5, *table["proxy.proxy"].to_pylist()[1:]])
        pq.write_table(table, path)

    with pytest.raises(InputError, match="changed after it was written"):
        stratal.Sample.read(path)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        pytest.param(False, "require more than 1,024 MiB", marks=pytest.mark.slow),
        (True, "does not write"),
    ],
)
def test_a_table_that_explodes_is_no_sample(tmp_path, stored, said):
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(200_000, np.int32)), ["x" * 100_000])
    table = pa.table({"id": values}).replace_schema_metadata({"stratal": "{}"})
    with pq.ParquetWriter(tmp_path / "s.parquet", table.schema, store_schema=stored) as writer:
        writer.add_key_value_metadata({"stratal": "{}"})
        writer.write_table(table)
    assert (tmp_path / "s.parquet").stat().st_size < 400_000

    with pytest.raises(InputError, match=said):
        stratal.Sample.read(tmp_path / "s.parquet")


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_the_files_mode_follows_the_umask(population, tmp_path, mask):
    before = os.umask(mask)
    try:
        path = drawn(population).write(tmp_path / "s.parquet")
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_what_a_killed_run_left_is_cleared_and_what_a_living_one_writes_stays(population, tmp_path):
    left = tmp_path / ".s.0123456789abcdef.partial.parquet"
    other = tmp_path / ".t.0123456789abcdef.partial.parquet"
    left.touch()
    other.touch()
    with replacing(tmp_path / "s.parquet") as partial:
        assert not left.exists()
        drawn(population).write(tmp_path / "s.parquet")
        assert partial.exists()
        partial.write_text("whole")

    assert sorted(entry.name for entry in tmp_path.iterdir()) == [other.name, "s.parquet"]
